/* The allocations of a handler that fail, one after the other: over memory.h, for one source of a
 * program that is linked with ${BT_MEMORY}. */
#ifndef TEST_NO_MEMORY_H
#define TEST_NO_MEMORY_H

#include "tests/support/memory.h"
#include "tests/unit/agents/steps.h"

static bt_skill_run no_memory_run;
static long no_memory_at;

static void no_memory_handler(struct bt_step *step, void *self)
{
    memory_left = no_memory_at;
    no_memory_run(step, self);
    memory_left = -1;
}

/* Whether the reply is the whole one; details beside a result, which stand last, may be missing. */
static bool no_memory_is_whole(const char *reply, const char *whole)
{
    const char *details = strstr(whole, ",\"details\":");
    const size_t n = details != NULL ? (size_t)(details - whole) : 0;

    return strcmp(reply, whole) == 0 ||
           (n > 0 && strncmp(reply, whole, n) == 0 && strcmp(reply + n, "}}") == 0 &&
            strstr(whole, "\"outcome\":\"completed\"") != NULL);
}

/* Runs the handler with every allocation failing in its turn: each reply is the whole one, or
 * says that another attempt may do better; and nothing stays. */
static void no_memory_each(const char *skill, const char *step, bt_skill_run run, void *self)
{
    char *whole = strdup(steps_run(steps_make(skill, step), run, self));
    long n = 0;

    assert_non_null(whole);
    steps_forget();
    const long pieces = memory_pieces;
    no_memory_run = run;
    for (memory_failed = true; memory_failed; n++) {
        const char *reply;
        memory_failed = false;
        no_memory_at = n;
        reply = steps_run(steps_make(skill, step), no_memory_handler, self);
        assert_true(n < 100000);
        if (!no_memory_is_whole(reply, whole) &&
            (strstr(reply, "\"class\":\"SERVICE_UNAVAILABLE\"") == NULL ||
             strstr(reply, "\"retryable\":true") == NULL)) {
            fail_msg("%s, allocation %ld: %s", skill, n, reply);
        }
        steps_forget();
        if (memory_pieces != pieces) {
            fail_msg("%s, allocation %ld: %ld pieces stay", skill, n, memory_pieces - pieces);
        }
    }
    assert_true(n > 3);
    free(whole);
}
#endif
