#include "supervisor/signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>

enum bt_code signals_open(int *ret_fd, struct bt_error *err)
{
    static const int ignored[] = {SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM, SIGIO};
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) {
        (void)sigaddset(&set, ignored[i]);
    }
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) {
        (void)sigdelset(&set, ignored[i]); /* blocked for ever: a stray one ends nothing */
    }
    *ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *ret_fd >= 0 ? BT_OK : err_errno(err, errno, "signalfd");
}
