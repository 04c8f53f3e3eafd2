/* The agent for test_sdk_agent: correct and incorrect handlers. With PROBE_QUICK all its skills say
 * that they are quick. */
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "baton/agent.h"

static void echo(struct bt_step *step, void *self)
{
    (void)self;
    bt_step_reply_text(step, "%s/%u", bt_step_param_string(step, "text", "-"),
                       bt_step_attempt(step));
}

/* Works until it is cancelled, and reports progress. */
static void work(struct bt_step *step, void *self)
{
    int ms = (int)bt_step_param_number(step, "ms", 10000);

    (void)self;
    bt_step_progress(step, 10.0, "started");
    for (int i = 0; i < ms && !bt_step_cancelled(step); i++) {
        (void)poll(NULL, 0, 1);
    }
    if (!bt_step_cancelled(step)) {
        bt_step_reply_text(step, "worked");
    }
}

/* Streams its answer faster than it can be sent. */
static void stream(struct bt_step *step, void *self)
{
    char line[16];

    (void)self;
    for (unsigned i = 0; i < 400; i++) {
        bt_step_stream(step, line, (size_t)snprintf(line, sizeof line, "line %03u\n", i));
    }
    bt_step_reply_text(step, bt_step_stream_flush(step, 10000) ? "all" : "not all");
}

/* Ignores a cancel. */
static void hang(struct bt_step *step, void *self)
{
    (void)self;
    bt_step_progress(step, -1.0, "hanging");
    for (;;) {
        (void)poll(NULL, 0, 60000);
    }
}

/* After `ms` it replies with the name of its thread: the first one is the loop's. */
static void where(struct bt_step *step, void *self)
{
    (void)self;
    (void)poll(NULL, 0, (int)bt_step_param_number(step, "ms", 0));
    bt_step_reply_text(step, gettid() == getpid() ? "loop" : "worker");
}

#ifdef PROBE_QUICK
static const char *const tags[] = {"probe", BT_TAG_QUICK, NULL};
#else
static const char *const tags[] = {"probe", NULL};
#endif

static const struct bt_skill skills[] = {
    {.id = "echo",
     .tags = tags,
     .input_schema = "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}}}",
     .run = echo},
    {.id = "work", .tags = tags, .run = work},
    {.id = "stream", .tags = tags, .run = stream},
    {.id = "hang", .tags = tags, .run = hang},
    {.id = "where", .tags = tags, .run = where},
};

static const struct bt_agent_def def = {
    .agent_id = "probe", .version = "1", .skills = skills, .skill_count = 5, .capacity = 2};

int main(int argc, char **argv)
{
    return bt_agent_main(&def, argc, argv);
}
