/*
 * A crowd of agents in one process: crowd_agents STATE FIRST N CAPACITY. Their ids are echo-FIRST
 * and so on; each is an instance of its own, with a loop, session and lanes of the SDK. One thread
 * waits for all of them. It ends by a signal, or with the process that started it.
 */
#include <baton/agent.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum { ECHO_BYTES = 256, READY_MAX = 64 };

static void echo(struct bt_step *step, void *self)
{
    char text[ECHO_BYTES];

    (void)self;
    memset(text, 'x', sizeof text);
    bt_step_reply_bytes(step, text, sizeof text);
}

static const char *const quick[] = {BT_TAG_QUICK, NULL};
static const struct bt_skill skills[] = {
    {.id = "echo", .tags = quick, .description = "Says 256 bytes.", .run = echo},
};
static const struct bt_agent_def def = {
    .agent_id = "echo", .version = "1.0.0", .skills = skills, .skill_count = 1, .capacity = 1};

static void raise_open_files(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* False: it could not be started. */
static bool start(int poll, char *state, long number, char *capacity)
{
    char program[] = "crowd_agents", state_flag[] = "--state", id_flag[] = "--agent-id",
         capacity_flag[] = "--capacity";
    char id[32];
    char *argv[] = {program, state_flag, state, id_flag, id, capacity_flag, capacity, NULL};
    struct epoll_event ev = {.events = EPOLLIN};
    struct bt_agent *agent;
    struct bt_error err;

    (void)snprintf(id, sizeof id, "echo-%ld", number);
    if (bt_agent_open(&def, (int)(sizeof argv / sizeof argv[0]) - 1, argv, &agent, &err) != BT_OK) {
        (void)fprintf(stderr, "crowd_agents: %s: %s\n", id, err.msg);
        return false;
    }
    ev.data.ptr = agent;
    return epoll_ctl(poll, EPOLL_CTL_ADD, bt_agent_fd(agent), &ev) == 0;
}

int main(int argc, char **argv)
{
    struct epoll_event ready[READY_MAX];
    const int poll = epoll_create1(EPOLL_CLOEXEC);

    if (argc != 5 || poll < 0) {
        (void)fputs("usage: crowd_agents STATE FIRST N CAPACITY\n", stderr);
        return 2;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    raise_open_files();
    for (long i = 0; i < strtol(argv[3], NULL, 10); i++) {
        if (!start(poll, argv[1], strtol(argv[2], NULL, 10) + i, argv[4])) {
            return 1;
        }
    }
    for (;;) {
        const int n = epoll_wait(poll, ready, READY_MAX, -1);
        for (int i = 0; i < n; i++) {
            if (!bt_agent_process(ready[i].data.ptr)) {
                return 0; /* one was told to end, and so were all */
            }
        }
    }
}
