/*
 * The other process of a link test: an agent in one loop.
 *
 *     link_peer MODE URL LOG
 *         prints the URL that it serves, then answers; LOG gets a line per request
 *     echo
 *         answers at once with the same bytes
 *     hold
 *         answers nothing until a byte arrives on stdin, then all that it holds
 *     publish, stopped-subscribe
 *         see below
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "protocol/link/link.h"

enum { HELD_MAX = 64 };

static struct link_event held[HELD_MAX];
static uint32_t held_count;

static void note(const char *log, struct str bytes)
{
    const int fd = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) {
        dprintf(fd, "%.*s\n", bytes.len > 40 ? 40 : (int)bytes.len, bytes.ptr);
        (void)close(fd);
    }
}

static void answer(struct link_event *ev)
{
    const struct str bytes = link_msg_bytes(ev->msg);
    (void)link_answer(ev->server, ev->request, bytes.ptr, bytes.len);
    link_msg_free(ev->msg);
}

static void drain(struct link *l, bool hold, const char *log)
{
    struct link_event ev;
    while (link_next(l, &ev)) {
        if (ev.type == LINK_FRAME) {
            link_msg_free(ev.msg);
        } else if (ev.type == LINK_REQUEST) {
            if (log != NULL) {
                note(log, link_msg_bytes(ev.msg));
            }
            if (hold && held_count < HELD_MAX) {
                held[held_count++] = ev;
            } else {
                answer(&ev);
            }
        }
    }
}

static int serve(struct link *l, bool hold, const char *log)
{
    struct pollfd p[2] = {{.fd = link_fd(l), .events = POLLIN}, {.fd = 0, .events = POLLIN}};
    for (;;) {
        if (poll(p, 2, -1) < 0) {
            return 1;
        }
        drain(l, hold, log);
        if (p[1].revents != 0) {
            char c = 0;
            if (read(0, &c, 1) != 1) {
                return 0; /* the test has ended */
            }
            while (held_count > 0) {
                answer(&held[--held_count]);
            }
        }
    }
}

int main(int argc, char **argv)
{
    const struct link_limits limits = {.recv_max = 4 * 1024 * 1024};
    struct bt_error err = {.msg = ""};
    struct link *l = NULL;
    struct link_server *s = NULL;
    struct link_sub *sub = NULL;
    enum bt_code code = BT_INVALID;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc < 3) {
        return 2;
    }
    code = link_new(256, &l, &err);
    const char *url = argv[2];
    if (code == BT_OK && strcmp(argv[1], "subscribe") == 0) {
        code = link_sub_dial(l, url, NULL, 0, &limits, NULL, &sub, &err);
    } else if (code == BT_OK) {
        code = link_server_open(l, url, 64, &limits, NULL, &s, &err);
        url = code == BT_OK ? link_server_url(s) : url;
    }
    if (code != BT_OK) {
        (void)fprintf(stderr, "link_peer: %s\n", err.msg);
        return 1;
    }
    (void)printf("%s\n", url);
    (void)fflush(stdout);
    const int status = serve(l, strcmp(argv[1], "hold") == 0, argc > 3 ? argv[3] : NULL);
    _exit(status); /* as daemons do: no socket is closed under traffic (N1) */
}
