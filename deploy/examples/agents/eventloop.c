/* An agent in an event loop of the program's own: it greets at once, and waits without a thread.
 *     cc eventloop.c -o eventloop $(pkg-config --cflags --libs baton-agent) */
#include <baton/agent.h>

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* A step that is answered when its timer ends. */
struct wait {
    struct bt_step *step;
    int timer;
};

static int loop; /* the epoll descriptor */

static void finish(struct wait *w)
{
    (void)close(w->timer); /* which takes it out of the epoll set */
    bt_step_done(w->step);
    free(w);
}

static void on_cancel(struct bt_step *step, void *arg)
{
    (void)step;
    finish(arg);
}

static void greet(struct bt_step *step, void *self)
{
    (void)self;
    bt_step_reply_text(step, "Hello, %s!", bt_step_param_string(step, "name", "world"));
}

static void wait_for(struct bt_step *step, void *self)
{
    double seconds = bt_step_param_number(step, "seconds", 1);
    struct wait *w = calloc(1, sizeof *w);
    struct itimerspec at = {.it_value = {.tv_nsec = 1}};
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = w};

    (void)self;
    if (w == NULL || seconds < 0 || seconds > 86400) {
        bt_step_fail(step, "VALIDATION_ERROR", false, "seconds: expected 0 to 86400");
        free(w);
        return;
    }
    at.it_value.tv_sec = (time_t)seconds;
    at.it_value.tv_nsec += (long)((seconds - (double)at.it_value.tv_sec) * 999999999.0);
    w->step = step;
    w->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (w->timer < 0 || timerfd_settime(w->timer, 0, &at, NULL) != 0 ||
        epoll_ctl(loop, EPOLL_CTL_ADD, w->timer, &ev) != 0 || !bt_step_later(step, on_cancel, w)) {
        bt_step_fail(step, "SERVICE_UNAVAILABLE", true, "no timer is left");
        if (w->timer >= 0) {
            (void)close(w->timer);
        }
        free(w);
    }
}

static const struct bt_skill skills[] = {
    {.id = "greet", .description = "Greets somebody by name.", .run = greet},
    {.id = "wait", .description = "Waits for some seconds.", .run = wait_for},
};

static const struct bt_agent_def def = {.agent_id = "eventloop",
                                        .version = "1.0.0",
                                        .skills = skills,
                                        .skill_count = 2,
                                        .capacity = 16};

static void watch(int fd, void *what)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = what};

    if (fd < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, fd, &ev) != 0) {
        perror("eventloop");
        exit(1);
    }
}

int main(int argc, char **argv)
{
    static char of_agent, of_signals; /* what an event is of, but for waits */
    struct signalfd_siginfo info;
    struct bt_agent *agent;
    struct bt_error err;
    sigset_t stop;
    int signals;

    (void)sigemptyset(&stop);
    (void)sigaddset(&stop, SIGTERM);
    (void)sigaddset(&stop, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &stop, NULL);
    if (bt_agent_open(&def, argc, argv, &agent, &err) != BT_OK) {
        (void)fprintf(stderr, "eventloop: %s\n", err.msg);
        return 2;
    }
    if (agent == NULL) {
        return 0;
    }
    loop = epoll_create1(EPOLL_CLOEXEC);
    signals = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
    watch(bt_agent_fd(agent), &of_agent);
    watch(signals, &of_signals);
    for (;;) {
        struct epoll_event ev; /* one at a time: bt_agent_process may end a wait */

        if (epoll_wait(loop, &ev, 1, -1) != 1) {
            continue;
        }
        if (ev.data.ptr == &of_signals && read(signals, &info, sizeof info) > 0) {
            bt_agent_stop(agent);
        } else if (ev.data.ptr == &of_agent && !bt_agent_process(agent)) {
            bt_agent_exit(agent);
        } else if (ev.data.ptr != &of_agent && ev.data.ptr != &of_signals) {
            struct wait *w = ev.data.ptr;
            bt_step_reply_text(w->step, "waited");
            finish(w);
        }
    }
}
