/*
 * The terminal of `baton chat`: a prompt in the last line with the typed text, all other output
 * above. Notes go to stderr, answers to stdout. Without a terminal there is no prompt and nothing
 * is redrawn. One thread.
 */
#ifndef CLI_CHAT_SCREEN_H
#define CLI_CHAT_SCREEN_H

#include <termios.h>

#include "supervisor/cli/chat/line.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/view/answer.h"

struct chat_screen {
    const struct cli *cli;
    bool interactive; /* stdin is a terminal */
    bool prompt;      /* there is a prompt, and keys are read one by one */
    bool drawn;       /* the prompt is on the screen */
    bool entered;     /* the terminal has the chat's settings */
    bool hold; /* the daemon became unreachable while an answer was written: it is shown when it is
                  complete */
    struct termios before;
    struct chat_line line;
    struct answer answer;
};

void screen_open(struct chat_screen *s, const struct cli *cli);
/* Restore the terminal: at the end, or until screen_again. */
void screen_close(struct chat_screen *s);
void screen_leave(struct chat_screen *s);
/* After the process was stopped and continues, or after a change of the window's size. */
void screen_again(struct chat_screen *s);
/* Removes the prompt, so that other output can be printed. */
void screen_clear(struct chat_screen *s);
/* Draws the prompt, unless it is drawn or an answer is being written. */
void screen_prompt(struct chat_screen *s);
/* Redraws the line after a key. */
void screen_typed(struct chat_screen *s);
/* A line for people; control characters and newlines are replaced. */
void screen_note(struct chat_screen *s, const char *fmt, ...) BT_PRINTF(2, 3);
/* Lines that are safe as they are. */
void screen_text(struct chat_screen *s, const char *text);
/* A piece of an answer, and the whole answer: see answer.h. */
void screen_piece(struct chat_screen *s, uint64_t index, const char *text);
void screen_answer(struct chat_screen *s, const char *text);
#endif
