/*
 * The terminal of `baton chat`: a prompt in the last line with what is being typed, everything else
 * above it. Notes go to stderr, answers to stdout. Without a terminal there is no prompt and
 * nothing is drawn twice. One thread.
 */
#ifndef CLI_CHAT_SCREEN_H
#define CLI_CHAT_SCREEN_H

#include <termios.h>

#include "supervisor/cli/chat/line.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/view/answer.h"

struct chat_screen {
    const struct cli *cli;
    bool interactive; /* somebody types */
    bool prompt;      /* there is a prompt, and keys come one by one */
    bool drawn;       /* the prompt is on the screen */
    bool entered;     /* the terminal has our settings */
    bool hold; /* the daemon went away while an answer was being written: it is shown when it is
                  whole */
    struct termios before;
    struct chat_line line;
    struct answer answer;
};

void screen_open(struct chat_screen *s, const struct cli *cli);
/* Leaves the terminal as it was; for ever, or until screen_again. */
void screen_close(struct chat_screen *s);
void screen_leave(struct chat_screen *s);
/* After the process was stopped and goes on, or the window has another size. */
void screen_again(struct chat_screen *s);
/* Takes the prompt away, so that something can be printed. */
void screen_clear(struct chat_screen *s);
/* Draws the prompt when it is not there and no answer is being written. */
void screen_prompt(struct chat_screen *s);
/* A key changed the line: draws it again. */
void screen_typed(struct chat_screen *s);
/* A line for people; what others said in it becomes one line. */
void screen_note(struct chat_screen *s, const char *fmt, ...) BT_PRINTF(2, 3);
/* A piece of an answer, and the whole of it: see answer.h. */
void screen_piece(struct chat_screen *s, uint64_t index, const char *text);
void screen_answer(struct chat_screen *s, const char *text);
#endif
