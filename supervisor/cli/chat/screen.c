#include "supervisor/cli/chat/screen.h"
#include "supervisor/cli/common/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { NOTE_MAX = 1024, PROMPT_COLUMNS = 2, COLUMNS_MIN = 10, COLUMNS_ELSE = 80 };

static void enter(struct chat_screen *s)
{
    struct termios keys = s->before;

    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    keys.c_cc[VMIN] = 1;
    keys.c_cc[VTIME] = 0;
    s->entered = tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
    (void)fputs("\033[?2004h",
                stderr); /* bracketed paste: the terminal marks where a paste begins and ends */
}

void screen_leave(struct chat_screen *s)
{
    screen_clear(s);
    if (s->entered) {
        (void)fputs("\033[?2004l", stderr);
        (void)fflush(stderr);
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &s->before);
        s->entered = false;
    }
}

void screen_open(struct chat_screen *s, const struct cli *cli)
{
    const char *term = getenv("TERM");

    *s = (struct chat_screen){.cli = cli, .interactive = isatty(STDIN_FILENO) == 1};
    answer_init(&s->answer);
    s->prompt = s->interactive && isatty(STDERR_FILENO) == 1 &&
                (term == NULL || strcmp(term, "dumb") != 0) &&
                tcgetattr(STDIN_FILENO, &s->before) == 0;
    if (s->prompt) {
        enter(s);
    }
}

void screen_close(struct chat_screen *s)
{
    screen_clear(s);
    answer_break(&s->answer);
    answer_done(&s->answer);
    screen_leave(s);
}

void screen_again(struct chat_screen *s)
{
    if (s->prompt) {
        enter(s);
        s->drawn = false;
    }
}

void screen_clear(struct chat_screen *s)
{
    if (s->drawn) {
        (void)fputs("\r\033[K", stderr);
        s->drawn = false;
    }
}

static size_t columns(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
        return COLUMNS_ELSE;
    }
    return size.ws_col < COLUMNS_MIN ? COLUMNS_MIN : size.ws_col;
}

void screen_prompt(struct chat_screen *s)
{
    char shown[CHAT_LINE_MAX + 1];

    if (!s->prompt || s->drawn || s->answer.open) {
        return;
    }
    (void)snprintf(shown, sizeof shown, "%s",
                   chat_line_tail(&s->line, columns() - PROMPT_COLUMNS - 1));
    for (char *c = shown; *c != 0; c++) {
        *c = *c == '\n' || *c == '\t' ? ' ' : *c;
    }
    cli_scrub(shown);
    (void)fprintf(stderr, "\r\033[K> %s", shown);
    s->drawn = true;
}

void screen_typed(struct chat_screen *s)
{
    s->drawn = false; /* drawing wipes the line */
    screen_prompt(s);
}

void screen_note(struct chat_screen *s, const char *fmt, ...)
{
    char text[2 * NOTE_MAX];
    char line[NOTE_MAX];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    cli_one_line(line, sizeof line, text);
    screen_clear(s);
    answer_break(&s->answer);
    (void)fprintf(stderr, "%s\n", line);
}

void screen_text(struct chat_screen *s, const char *text)
{
    screen_clear(s);
    answer_break(&s->answer);
    (void)fputs(text, stderr);
}

void screen_piece(struct chat_screen *s, uint64_t index, const char *text)
{
    screen_clear(s);
    answer_piece(&s->answer, index, text);
}

void screen_answer(struct chat_screen *s, const char *text)
{
    screen_clear(s);
    answer_whole(&s->answer, text);
}
