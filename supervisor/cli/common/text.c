/* Marks, colours, durations, and text that is safe for a terminal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/suggest.h"
#include "protocol/base/utf8.h"
#include "supervisor/cli/common/terminal.h"
#include "supervisor/cli/common/text.h"

static const struct {
    const char *status;
    const char *mark;
    const char *color;
} styles[] = {
    {"completed", "✓", "\033[32m"}, {"failed", "✗", "\033[31m"},   {"skipped", "-", "\033[33m"},
    {"cancelled", "-", "\033[33m"}, {"waiting", "?", "\033[35m"},  {"in_progress", "▸", "\033[36m"},
    {"running", "▸", "\033[36m"},   {"pending", "·", ""},          {"up", "✓", "\033[32m"},
    {"down", "✗", "\033[31m"},      {"draining", "-", "\033[33m"}, {"quarantined", "✗", "\033[31m"},
};

const char *cli_mark(const char *status)
{
    for (size_t i = 0; i < sizeof styles / sizeof styles[0]; i++) {
        if (strcmp(styles[i].status, status) == 0) {
            return styles[i].mark;
        }
    }
    return "·";
}

const char *cli_color(const struct cli *cli, const char *status)
{
    for (size_t i = 0; cli->color && i < sizeof styles / sizeof styles[0]; i++) {
        if (strcmp(styles[i].status, status) == 0) {
            return styles[i].color;
        }
    }
    return "";
}

const char *cli_color_off(const struct cli *cli)
{
    return cli->color ? "\033[0m" : "";
}

/* "3 h 20 min": a number of small units, of which `per` make a large one; "3 h" without a rest. */
static void format_two(char *ret, size_t cap, uint64_t n, uint64_t per, const char *large,
                       const char *small)
{
    const int used = snprintf(ret, cap, "%llu %s", (unsigned long long)(n / per), large);

    if (n % per != 0 && used > 0 && (size_t)used < cap) {
        (void)snprintf(ret + used, cap - (size_t)used, " %llu %s", (unsigned long long)(n % per),
                       small);
    }
}

void cli_format_ms(double ms, char *ret, size_t cap)
{
    if (ms < 1000) {
        (void)snprintf(ret, cap, "%.0f ms", ms);
    } else if (ms < 120000) {
        (void)snprintf(ret, cap, "%.1f s", ms / 1000);
    } else if (ms < 7200000) {
        (void)snprintf(ret, cap, "%.0f min", ms / 60000);
    } else if (ms < 172800000) {
        format_two(ret, cap, (uint64_t)(ms / 60000), 60, "h", "min");
    } else {
        format_two(ret, cap, (uint64_t)(ms / 3600000), 24, "d", "h");
    }
}

void cli_format_micros(double micros, char *ret, size_t cap)
{
    (void)snprintf(ret, cap, "%.6f", micros / 1e6);
    for (size_t n = strlen(ret); n > 4 && ret[n - 1] == '0' && ret[n - 3] != '.'; n--) {
        ret[n - 1] = 0;
    }
}

void cli_scrub(char *text)
{
    utf8_scrub(text);
}

void cli_one_line(char *to, size_t cap, const char *from)
{
    size_t n = strlen(from) < cap ? strlen(from) : utf8_cut(from, strlen(from), cap - 1);

    memmove(to, from, n); /* it may be the same place */
    to[n] = 0;
    cli_scrub(to);
    for (char *p = to; *p != 0; p++) {
        *p = *p == '\n' || *p == '\t' ? ' ' : *p;
    }
}

void cli_cut_line(char *to, size_t cap, const char *from)
{
    static const char mark[] = "…";
    size_t n = strlen(from);

    cli_one_line(to, cap, from);
    if (n >= cap) {
        n = utf8_cut_words(to, strlen(to), cap - sizeof mark);
        memcpy(to + n, mark, sizeof mark);
    }
}

void cli_print_safe(const char *text)
{
    char *copy = cli_on_terminal() ? strdup(text) : NULL;

    if (copy != NULL) {
        cli_scrub(copy);
    }
    (void)fputs(copy != NULL ? copy : text, stdout);
    free(copy);
}

void cli_print_lines(const char *text)
{
    const size_t n = strlen(text);

    cli_print_safe(text);
    if (n == 0 || text[n - 1] != '\n') {
        (void)fputc('\n', stdout);
    }
}

/* What people type in place of a word of Baton. */
static const char *habit_of(const char *word, const char *const *words)
{
    static const char *const habits[][2] = {
        {"ls", "list"},        {"list", "show"},       {"create", "add"},
        {"create", "issue"},   {"new", "add"},         {"new", "issue"},
        {"add", "issue"},      {"rm", "remove"},       {"rm", "revoke"},
        {"delete", "remove"},  {"delete", "revoke"},   {"remove", "revoke"},
        {"get", "show"},       {"describe", "show"},   {"inspect", "show"},
        {"switch", "use"},     {"set", "use"},         {"select", "use"},
        {"current", "show"},   {"use-context", "use"}, {"get-contexts", "list"},
        {"disable", "revoke"}, {"ls", "show"},         {"create", "put"},
        {"new", "put"},        {"add", "put"},         {"set", "put"},
        {"rm", "delete"},      {"remove", "delete"},   {"show", "get"},
        {"describe", "get"},   {"run", "trigger"},     {"start", "trigger"},
        {"fire", "trigger"},   {"stop", "pause"},      {"disable", "pause"},
        {"suspend", "pause"},  {"enable", "resume"},   {"unpause", "resume"}};

    for (size_t i = 0; i < sizeof habits / sizeof habits[0]; i++) {
        for (size_t k = 0; strcmp(word, habits[i][0]) == 0 && words[k] != NULL; k++) {
            if (strcmp(words[k], habits[i][1]) == 0) {
                return words[k];
            }
        }
    }
    return NULL;
}

enum cli_exit cli_unknown_word(const char *what, const char *word, const char *const *words)
{
    const char *near = habit_of(word, words);
    char list[512] = "";
    size_t n = 0;

    near = near != NULL ? near : cli_did_you_mean(word, words);
    for (size_t i = 0; words[i] != NULL && n < sizeof list; i++) {
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s",
                              i == 0                 ? ""
                              : words[i + 1] == NULL ? " or "
                                                     : ", ",
                              words[i]);
    }
    if (near != NULL) {
        cli_error("%s: expected %s, got '%.100s'; did you mean '%s'?", what, list, word, near);
    } else {
        cli_error("%s: expected %s, got '%.100s'", what, list, word);
    }
    return CLI_USAGE;
}

const char *cli_did_you_mean(const char *word, const char *const *candidates)
{
    struct suggest near = suggest_start(str_from(word));

    for (; *candidates != NULL; candidates++) {
        suggest_offer(&near, str_from(*candidates));
    }
    return near.best.ptr; /* one of the candidates, so terminated */
}
