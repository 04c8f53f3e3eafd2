/* Text on a terminal: safe strings, marks, colours, durations, amounts, suggestions. */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include "supervisor/cli/common/cli.h"

/* Replaces control characters but newline and tab, those that change the direction of text, and
 * invisible ones by '?', in place. */
void cli_scrub(char *text);
/* Prints text on stdout; scrubbed when stdout is a terminal, unchanged otherwise. */
void cli_print_safe(const char *text);
/* The same, and a newline unless the text ends with one. */
void cli_print_lines(const char *text);
/* Copies at most cap - 1 bytes as one scrubbed line, cut at a whole character. `to` may be `from`.
 */
void cli_one_line(char *to, size_t cap, const char *from);
/* The same, cut after a word and with "…" when that is not all; cap > 4. */
void cli_cut_line(char *to, size_t cap, const char *from);
/* The mark of a plan's, step's or agent's status: one character. */
const char *cli_mark(const char *status);
/* The escape sequences of its colour and of the end of a colour; "" unless cli->color. */
const char *cli_color(const struct cli *cli, const char *status);
const char *cli_color_off(const struct cli *cli);
/* "350 ms", "1.2 s", "3 min" */
void cli_format_ms(double ms, char *ret, size_t cap);
/* Millionths of the currency: "1.50", "0.000012" */
void cli_format_micros(double micros, char *ret, size_t cap);
/* The nearest candidate when it is near enough, borrowed; else NULL. The list ends with NULL. */
const char *cli_did_you_mean(const char *word, const char *const *candidates);
/* Prints that one of `words` (NULL-terminated) was expected, and the one that was meant, by its
 * spelling or by the habits of other tools. Returns CLI_USAGE. */
enum cli_exit cli_unknown_word(const char *what, const char *word, const char *const *words);
#endif
