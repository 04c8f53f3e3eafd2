/* An agent in an event loop of the program's own: one descriptor for sockets, answers and time. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "agents/sdk/loop/program.h"
#include "agents/sdk/runtime.h"

struct bt_agent {
    struct program program;
    struct runtime *rt;
    int fd; /* epoll: the sockets, the pool, the timer */
    int timer;
};

/* The descriptor is readable when so much time has passed; -1 = never. */
static void arm(struct bt_agent *a, int ms)
{
    struct itimerspec at = {.it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}};

    if (ms == 0) {
        at.it_value.tv_nsec = 1; /* zero would disarm it */
    } else if (ms < 0) {
        at.it_value.tv_sec = 0;
        at.it_value.tv_nsec = 0;
    }
    (void)timerfd_settime(a->timer, 0, &at, NULL);
}

static enum bt_code open_fds(struct bt_agent *a, struct bt_error *err)
{
    int fds[3];

    a->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    a->fd = epoll_create1(EPOLL_CLOEXEC);
    if (a->timer < 0 || a->fd < 0) {
        return err_errno(err, errno, "the descriptor of the agent");
    }
    fds[0] = link_fd(a->rt->link);
    fds[1] = pool_fd(a->rt->pool);
    fds[2] = a->timer;
    for (int i = 0; i < 3; i++) {
        struct epoll_event ev = {.events = EPOLLIN, .data.fd = fds[i]};
        if (epoll_ctl(a->fd, EPOLL_CTL_ADD, fds[i], &ev) != 0) {
            return err_errno(err, errno, "epoll_ctl");
        }
    }
    return BT_OK;
}

static enum bt_code start(struct bt_agent *a, struct bt_error *err)
{
    const struct runtime_how how = {.opt = &a->program.opt,
                                    .card = &a->program.card,
                                    .self = a->program.self,
                                    .done = a->program.def->done,
                                    .capacity = program_capacity(&a->program),
                                    .own_loop = true};
    enum bt_code code = runtime_new(&how, &a->rt, err);

    if (code == BT_OK) {
        code = open_fds(a, err);
    }
    if (code == BT_OK) {
        arm(a, 0);
    }
    return code;
}

enum bt_code bt_agent_open(const struct bt_agent_def *def, int argc, char **argv,
                           struct bt_agent **ret, struct bt_error *err)
{
    struct bt_agent *a = calloc(1, sizeof *a);
    enum bt_code code;

    *ret = NULL;
    if (a == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the agent");
    }
    code = program_begin(&a->program, def, argc, argv, false, err);
    if (code == BT_OK && a->program.opt.mode == OPTIONS_ONCE) {
        code = err_set(err, BT_INVALID,
                       "--once: this agent runs in its program's own loop; use `baton agents try`");
    }
    if (code == BT_OK && a->program.opt.mode == OPTIONS_RUN) {
        code = start(a, err);
        if (code == BT_OK) {
            *ret = a;
            return BT_OK;
        }
    }
    program_end(&a->program);
    free(a);
    return code;
}

int bt_agent_fd(const struct bt_agent *a)
{
    return a->fd;
}

bool bt_agent_process(struct bt_agent *a)
{
    if (a->rt->ended) {
        return false;
    }
    (void)!runtime_cycle(a->rt, 0); /* no other thread takes this loop */
    arm(a, a->rt->ended ? 0 : runtime_wait_ms(a->rt));
    return !a->rt->ended;
}

void bt_agent_stop(struct bt_agent *a)
{
    if (!a->rt->ended) {
        runtime_feed(a->rt, (struct agent_state_event){.type = AGENT_STATE_STOP});
        arm(a, 0); /* it may have ended by that */
    }
}

void bt_agent_exit(struct bt_agent *a)
{
    runtime_leave(a->rt);
}
