/*
 * The cost of a condition: nanoseconds of condition_evaluate, whose values are in hand, in
 * processor time. One line of JSON per case. The goal is at most 1 us a step; patterns and schemas
 * are compiled each time, and cost what their compilation costs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "supervisor/plan/flow/condition.h"

enum { ROUNDS = 200000, BLOCKS = 5 };

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void need(bool ok)
{
    if (!ok) {
        (void)fputs("bench_condition: failed\n", stderr);
        exit(1);
    }
}

static void read_json(const char *json, struct buf *out)
{
    struct bt_error err;

    buf_init(out, CONDITION_BYTES_MAX);
    need(json_to_doc(str_from(json), NULL, out, &err) == BT_OK);
}

/* The result of every step. */
static enum bt_code value_of(void *self, const struct condition_ref *ref, struct doc *ret,
                             struct bt_error *err)
{
    const struct doc *results = self;

    (void)err;
    *ret = doc_path(*results, ref->name);
    return BT_OK;
}

/* The best of some blocks: the others were disturbed. */
static void measure(const char *name, const char *when, bool expected, struct doc results)
{
    struct buf condition;
    struct buf tested;
    uint64_t best = UINT64_MAX;

    read_json(when, &condition);
    buf_init(&tested, CONDITION_BYTES_MAX);
    for (int block = 0; block < BLOCKS; block++) {
        const uint64_t from = now_ns();
        for (int i = 0; i < ROUNDS / BLOCKS; i++) {
            struct bt_error err;
            bool holds = !expected;
            buf_clear(&tested);
            need(condition_evaluate(doc_from_buf(&condition), value_of, &results, &holds, &tested,
                                    &err) == BT_OK);
            need(holds == expected);
        }
        const uint64_t took = now_ns() - from;
        best = took < best ? took : best;
    }
    (void)printf("{\"case\": \"%s\", \"ns\": %.0f}\n", name, (double)best / (ROUNDS / BLOCKS));
    buf_done(&condition);
    buf_done(&tested);
}

int main(void)
{
    struct buf bytes;

    read_json("{\"check\": {\"count\": 7, \"level\": \"high\", \"files\": [\"a\", \"b\"]}}",
              &bytes);
    const struct doc results = doc_from_buf(&bytes);
    measure("one", "{\"results.check.count\": {\"gt\": 3}}", true, results);
    measure("two", "{\"results.check.count\": {\"gt\": 3, \"lt\": 9}}", true, results);
    measure("in", "{\"results.check.level\": {\"in\": [\"low\", \"middle\", \"high\"]}}", true,
            results);
    measure("branch",
            "{\"all\": [{\"not\": {\"results.check.count\": {\"gt\": 9}}},"
            " {\"results.check.count\": {\"gt\": 3}}]}",
            true, results);
    measure("five",
            "{\"all\": [{\"results.check.count\": 7}, {\"results.check.level\": \"high\"},"
            " {\"any\": [{\"results.check.files.0\": \"x\"}, {\"results.check.files.1\": \"b\"}]},"
            " {\"results.check.none\": {\"exists\": false}}]}",
            true, results);
    measure("matches", "{\"results.check.level\": {\"matches\": \"^hi\"}}", true, results);
    buf_done(&bytes);
    return 0;
}
