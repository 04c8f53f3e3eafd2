/* chat: signals set flags, which the loop handles. */
#include <signal.h>
#include <stddef.h>

#include "supervisor/cli/chat/chat.h"

volatile sig_atomic_t chat_interrupts, chat_endings, chat_changes;
static volatile sig_atomic_t stops;

static void on_signal(int signal_number)
{
    switch (signal_number) {
    case SIGINT:
        chat_interrupts = chat_interrupts + 1;
        break;
    case SIGTSTP:
        stops = 1;
        break;
    case SIGCONT:
    case SIGWINCH:
        chat_changes = 1;
        break;
    default:
        chat_endings = 1;
        break;
    }
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};

    (void)sigaction(number, &action, NULL);
}

void chat_signals_catch(void)
{
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};

    for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++) {
        handle(caught[i], on_signal);
    }
}

void chat_signals_take(struct chat_screen *s)
{
    if (stops != 0) {
        stops = 0;
        screen_leave(s);
        handle(SIGTSTP, SIG_DFL);
        (void)raise(SIGTSTP); /* returns when the process continues */
        handle(SIGTSTP, on_signal);
        chat_changes = 1;
    }
    if (chat_changes != 0) {
        chat_changes = 0;
        screen_again(s);
    }
}
