/* The agent for test_sdk_ownloop: the skills of probe_agent in an event loop of the program's own.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "baton/agent.h"
#include "protocol/base/clock.h"

enum { JOBS = 2 };

/* Steps that are answered later. */
struct job {
    struct bt_step *step; /* NULL = free */
    msec end;             /* MSEC_NEVER: when its stream was confirmed */
};

static struct job jobs[JOBS];

static void echo(struct bt_step *step, void *self)
{
    (void)self;
    bt_step_reply_text(step, "%s/%u", bt_step_param_string(step, "text", "-"),
                       bt_step_attempt(step));
    bt_step_done(step); /* does nothing to a step that is answered now */
}

static void on_cancel(struct bt_step *step, void *arg)
{
    struct job *job = arg;

    job->step = NULL;
    bt_step_done(step);
}

static void keep(struct bt_step *step, msec end)
{
    struct job *job = jobs[0].step == NULL ? &jobs[0] : &jobs[1];

    if (bt_step_later(step, on_cancel, job)) {
        *job = (struct job){.step = step, .end = end};
    }
}

static void work(struct bt_step *step, void *self)
{
    (void)self;
    bt_step_progress(step, 10.0, "started");
    keep(step, clock_mono_ms() + (msec)bt_step_param_number(step, "ms", 10000));
}

static void stream(struct bt_step *step, void *self)
{
    char line[16];

    (void)self;
    for (unsigned i = 0; i < 400; i++) {
        bt_step_stream(step, line, (size_t)snprintf(line, sizeof line, "line %03u\n", i));
    }
    keep(step, MSEC_NEVER);
}

static void where(struct bt_step *step, void *self)
{
    (void)self;
    if (bt_step_later(step, NULL, NULL)) { /* and is answered within the handler all the same */
        bt_step_reply_text(step, "loop");
        bt_step_done(step);
    }
}

/* Answers what is ready. True: some are still to be answered. */
static bool look(void)
{
    bool left = false;

    for (int i = 0; i < JOBS; i++) {
        struct bt_step *step = jobs[i].step;
        if (step == NULL) {
            continue;
        }
        if (jobs[i].end == MSEC_NEVER ? bt_step_stream_flush(step, 1000000)
                                      : clock_mono_ms() >= jobs[i].end) {
            bt_step_reply_text(step, jobs[i].end == MSEC_NEVER ? "all" : "worked");
            jobs[i].step = NULL;
            bt_step_done(step);
        } else {
            left = true;
        }
    }
    return left;
}

static const char *const tags[] = {"probe", BT_TAG_QUICK, NULL}; /* changes nothing here */

static const struct bt_skill skills[] = {
    {.id = "echo",
     .tags = tags,
     .input_schema = "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}}}",
     .run = echo},
    {.id = "work", .run = work},
    {.id = "stream", .run = stream},
    {.id = "hang", .run = work},
    {.id = "where", .run = where},
};

static const struct bt_agent_def def = {
    .agent_id = "probe", .version = "1", .skills = skills, .skill_count = 5, .capacity = 2};

int main(int argc, char **argv)
{
    struct bt_agent *agent;
    struct bt_error err;
    struct signalfd_siginfo info;
    struct pollfd fds[2];
    sigset_t term;

    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &term, NULL);
    if (bt_agent_open(&def, argc, argv, &agent, &err) != BT_OK) {
        (void)fprintf(stderr, "%s\n", err.msg);
        return 2;
    }
    if (agent == NULL) {
        return 0;
    }
    fds[0] = (struct pollfd){.fd = bt_agent_fd(agent), .events = POLLIN};
    fds[1] = (struct pollfd){.fd = signalfd(-1, &term, 0), .events = POLLIN};
    for (;;) {
        (void)poll(fds, 2, look() ? 1 : -1);
        if (fds[1].revents != 0 && read(fds[1].fd, &info, sizeof info) > 0) {
            bt_agent_stop(agent);
        }
        if (fds[0].revents != 0 && !bt_agent_process(agent)) {
            bt_agent_stop(agent); /* an agent that has ended stays so, whatever is called */
            if (bt_agent_process(agent)) {
                return 99;
            }
            bt_agent_exit(agent);
        }
    }
}
