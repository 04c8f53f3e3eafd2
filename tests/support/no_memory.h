/*
 * Allocations of a handler that fail, one after the other. Whoever includes this, in one file of a
 * program, links it with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup. cJSON's
 * allocations come here when hooks are set that call malloc in this program; those of other shared
 * libraries do not.
 */
#ifndef TEST_NO_MEMORY_H
#define TEST_NO_MEMORY_H

#include <stdlib.h>
#include <string.h>

#include "tests/unit/agents/steps.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *at, size_t n);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *at, size_t n);
char *__wrap_strdup(const char *text);

static long no_memory_after = -1; /* so many allocations succeed; -1 = all do */
static bool no_memory_seen;       /* one has failed */

static bool no_memory_now(void)
{
    if (no_memory_after < 0 || no_memory_after-- > 0) {
        return false;
    }
    no_memory_seen = true;
    return true;
}

void *__wrap_malloc(size_t n)
{
    return no_memory_now() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return no_memory_now() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *at, size_t n)
{
    return no_memory_now() ? NULL : __real_realloc(at, n);
}

char *__wrap_strdup(const char *text)
{
    return no_memory_now() ? NULL : __real_strdup(text);
}

static bt_skill_run no_memory_run;
static long no_memory_at;

static void no_memory_handler(struct bt_step *step, void *self)
{
    no_memory_after = no_memory_at;
    no_memory_run(step, self);
    no_memory_after = -1;
}

/* Runs the handler with every allocation failing in its turn: each reply is the whole one, or
 * says that another attempt may do better. */
static void no_memory_each(const char *skill, const char *step, bt_skill_run run, void *self)
{
    char *whole = strdup(steps_run(steps_make(skill, step), run, self));
    long n = 0;

    assert_non_null(whole);
    no_memory_run = run;
    for (no_memory_seen = true; no_memory_seen; n++) {
        const char *reply;
        no_memory_seen = false;
        no_memory_at = n;
        reply = steps_run(steps_make(skill, step), no_memory_handler, self);
        assert_true(n < 100000);
        if (strcmp(reply, whole) != 0 &&
            (strstr(reply, "\"class\":\"SERVICE_UNAVAILABLE\"") == NULL ||
             strstr(reply, "\"retryable\":true") == NULL)) {
            fail_msg("%s, allocation %ld: %s", skill, n, reply);
        }
    }
    assert_true(n > 3);
    free(whole);
}
#endif
