/* The allocations of a handler that fail, one after the other: over memory.h, for one source of a
 * program that is linked with ${BT_MEMORY}. */
#ifndef TEST_NO_MEMORY_H
#define TEST_NO_MEMORY_H

#include <stdio.h>

#include "tests/support/memory.h"
#include "tests/unit/agents/steps.h"

static bt_skill_run no_memory_run;
static long no_memory_at;
/* Whether the last attempt may have had its effect, and must not be made again; NULL = it may. */
static bool (*no_memory_done)(void);
static const char *no_memory_secret; /* is in no reply; NULL = there is none */

static void no_memory_handler(struct bt_step *step, void *self)
{
    memory_left = no_memory_at;
    no_memory_run(step, self);
    memory_left = -1;
}

/* The same failure, whose sentence had no memory. */
static bool no_memory_is_same_failure(const char *reply, const char *whole)
{
    const char *class_ = strstr(whole, "\"class\":");
    char part[64];

    (void)snprintf(part, sizeof part, "%.*s", class_ != NULL ? (int)strcspn(class_, ",") : 0,
                   class_ != NULL ? class_ : "");
    return class_ != NULL && strstr(reply, part) != NULL &&
           (strstr(reply, "\"out of memory for the sentence\"") != NULL ||
            strstr(reply, "\"failed, and there is no memory for the reason\"") != NULL) &&
           (strstr(reply, "\"retryable\":true") != NULL) ==
               (strstr(whole, "\"retryable\":true") != NULL);
}

/* Whether the reply is the whole one; details, which stand last, may be missing. */
static bool no_memory_is_whole(const char *reply, const char *whole)
{
    const char *details = strstr(whole, ",\"details\":");
    const size_t n = details != NULL ? (size_t)(details - whole) : 0;

    return strcmp(reply, whole) == 0 || no_memory_is_same_failure(reply, whole) ||
           (n > 0 && strncmp(reply, whole, n) == 0 && strcmp(reply + n, "}}") == 0);
}

static void no_memory_expect(const char *reply, const char *whole, const char *skill, long n)
{
    const bool done = no_memory_done != NULL && no_memory_done();

    if (!no_memory_is_whole(reply, whole) &&
        (strstr(reply, "\"class\":\"SERVICE_UNAVAILABLE\"") == NULL ||
         strstr(reply, done ? "\"retryable\":false" : "\"retryable\":true") == NULL)) {
        fail_msg("%s, allocation %ld, %s: %s", skill, n, done ? "done" : "not done", reply);
    }
    if (no_memory_secret != NULL && strstr(reply, no_memory_secret) != NULL) {
        fail_msg("%s, allocation %ld tells the secret: %s", skill, n, reply);
    }
}

/* Runs the handler with every allocation failing in its turn: each reply is the whole one, or
 * says that another attempt may do better; and nothing stays. */
static inline void no_memory_each(const char *skill, const char *step, bt_skill_run run, void *self)
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
        no_memory_expect(reply, whole, skill, n);
        steps_forget();
        if (memory_pieces != pieces) {
            fail_msg("%s, allocation %ld: %ld pieces stay", skill, n, memory_pieces - pieces);
        }
    }
    assert_true(n > 3);
    free(whole);
}
#endif
