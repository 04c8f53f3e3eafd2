/* The benchmarks' agent: answers 256 bytes at once, or after parameters.ms milliseconds. */
#include <baton/agent.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ECHO_BYTES = 256 };

/* With BATON_BENCH_LOG set, each execution appends a line: S8 counts repeated executions. */
static void leave_a_trace(struct bt_step *step)
{
    const char *path = getenv("BATON_BENCH_LOG");
    FILE *f = path != NULL ? fopen(path, "ae") : NULL;

    if (f != NULL) {
        (void)fprintf(f, "%s\n", bt_step_key(step));
        (void)fclose(f);
    }
}

static void echo(struct bt_step *step, void *self)
{
    char text[ECHO_BYTES];
    double ms = bt_step_param_number(step, "ms", 0);

    (void)self;
    leave_a_trace(step);
    if (ms > 0) {
        struct timespec t = {.tv_sec = (time_t)(ms / 1000),
                             .tv_nsec = (long)((uint64_t)(ms * 1e6) % 1000000000u)};
        (void)nanosleep(&t, NULL);
    }
    memset(text, 'x', sizeof text);
    bt_step_reply_bytes(step, text, sizeof text);
}

static void approve(struct bt_step *step, void *self)
{
    (void)self;
    if (bt_step_attempt(step) > 1) {
        bt_step_reply_text(step, "approved");
    } else {
        bt_step_need_approval(step, "may I?");
    }
}

static const char *const quick[] = {BT_TAG_QUICK, NULL};

static const struct bt_skill skills[] = {
    {.id = "echo", .tags = quick, .description = "Says 256 bytes.", .run = echo},
    {.id = "approve", .description = "Asks for an approval first.", .run = approve},
};

int main(int argc, char **argv)
{
    static const struct bt_agent_def def = {.agent_id = "echo",
                                            .version = "1.0.0",
                                            .skills = skills,
                                            .skill_count = sizeof skills / sizeof skills[0],
                                            .capacity = 1};
    return bt_agent_main(&def, argc, argv);
}
