#include "supervisor/cli/common/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int failed; /* the first error of stdout; 0 = none */

void output_reserve_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            /* open takes the lowest free number, which is fd: reading stdin and writing the others
             * fails with EBADF. */
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

static bool is_reader_gone(void)
{
    struct pollfd p = {.fd = STDOUT_FILENO};

    return poll(&p, 1, 0) > 0 && (p.revents & POLLERR) != 0;
}

bool output_flush(void)
{
    errno = 0;
    if (fflush(stdout) != 0 && failed == 0) {
        failed = errno != 0 ? errno : EIO;
    }
    if (ferror(stdout) != 0 && failed == 0) { /* an earlier write failed: its reason is lost */
        failed = is_reader_gone() ? EPIPE : EIO;
    }
    return failed == 0;
}

enum cli_exit output_finish(enum cli_exit code)
{
    if (output_flush()) {
        return code;
    }
    if (failed != EPIPE) {
        cli_error("the output could not be written: %s", strerror(failed));
    }
    return code == CLI_OK && failed != EPIPE ? CLI_INTERNAL : code;
}
