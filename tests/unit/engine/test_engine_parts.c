/* What of the engine needs no socket: the cache of results, keys of steps, the plans of a session.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/dispatch/keys.h"
#include "supervisor/engine/engine_internal.h"
#include "tests/support/cmocka.h"

static void cached_bytes_come_back_and_a_newer_id_takes_the_slot(void **state)
{
    struct blob_cache c = {0};

    (void)state;
    assert_null(blob_cache_get(&c, 1).ptr);
    blob_cache_put(&c, 0, "x", 1); /* no blob has this id */
    assert_null(blob_cache_get(&c, 0).ptr);
    blob_cache_put(&c, 1, "one", 3);
    blob_cache_put(&c, 2, "", 0);
    assert_memory_equal(blob_cache_get(&c, 1).ptr, "one", 3);
    assert_int_equal(blob_cache_get(&c, 2).len, 0);
    assert_non_null(blob_cache_get(&c, 2).ptr);
    blob_cache_put(&c, 1 + BLOB_CACHE_SLOTS, "new", 3);
    assert_null(blob_cache_get(&c, 1).ptr);
    assert_memory_equal(blob_cache_get(&c, 1 + BLOB_CACHE_SLOTS).ptr, "new", 3);
    /* A copy of an entry's own bytes, at once in its place. */
    struct doc d = blob_cache_get(&c, 1 + BLOB_CACHE_SLOTS);
    blob_cache_put(&c, 1 + BLOB_CACHE_SLOTS, d.ptr, d.len);
    assert_memory_equal(blob_cache_get(&c, 1 + BLOB_CACHE_SLOTS).ptr, "new", 3);
    assert_int_equal(c.bytes, 3);
    blob_cache_done(&c);
    blob_cache_done(&c);
}

static void cache_never_holds_more_than_its_bytes_whatever_the_order_of_ids(void **state)
{
    enum { LEN = 1024 * 1024, N = 400 };
    struct blob_cache c = {0};
    uint8_t *bytes = calloc(1, BLOB_CACHE_BYTES / 4 + 1);
    uint64_t ids[N];

    (void)state;
    assert_non_null(bytes);
    for (uint64_t i = 0; i < N;
         i++) { /* new results, and between them very old ones that are read again */
        ids[i] = i % 3 == 0 ? i + 1 : 1000000 + i;
        blob_cache_put(&c, ids[i], bytes, LEN);
        assert_true(c.bytes <= BLOB_CACHE_BYTES);
        assert_non_null(blob_cache_get(&c, ids[i]).ptr);
    }
    blob_cache_put(&c, 77, bytes, BLOB_CACHE_BYTES / 4 + 1); /* too large to be worth it */
    assert_null(blob_cache_get(&c, 77).ptr);
    free(bytes);
    blob_cache_done(&c);
}

/* An engine with one open plan, whose step came once more under the same id; nothing else is used.
 */
static void with_plan(struct engine *engine, struct open_plan *slot, struct plan *plan,
                      struct plan_step *step)
{
    step[0] = (struct plan_step){.step_id = STR_LIT("a.1"), .revision = 12, .superseded = true};
    step[1] = (struct plan_step){.step_id = STR_LIT("a.1"), .revision = 13};
    *plan = (struct plan){.steps = step, .n_steps = 2, .revision = 13};
    struct open_plan made = {.plan = plan};
    assert_true(uuid_parse(STR_LIT("0190F3C2-7A1B-7C3D-9E4F-0123456789AB"), &made.plan_id));
    *slot = (struct open_plan){.run = 0};
    *engine = (struct engine){.plans = slot, .runs_max = 1, .opt = {.plans_max = 1}};
    open_plan_bind(engine, &made, (uint64_t)1 << 32);
}

static void key_names_its_step_and_nothing_else_does(void **state)
{
    static const char *const wrong[] = {"",
                                        "/",
                                        "//",
                                        "0190F3C2-7A1B-7C3D-9E4F-0123456789AB",
                                        "0190F3C2-7A1B-7C3D-9E4F-0123456789AB/",
                                        "0190F3C2-7A1B-7C3D-9E4F-0123456789AB//a",
                                        "0190F3C2-7A1B-7C3D-9E4F-0123456789AB/12",
                                        "0190F3C2-7A1B-7C3D-9E4F-0123456789AB/12/",
                                        "0190F3C2-7A1B-7C3D-9E4F-0123456789AB/12/a",
                                        "0190F3C2-7A1B-7C3D-9E4F-0123456789AB/14/a.1",
                                        "0190F3C2-7A1B-7C3D-9E4F-0123456789AB/4294967308/a.1",
                                        "0190F3C2-7A1B-7C3D-9E4F-0123456789AB/-12/a.1/x",
                                        "0190F3C2-7A1B-7C3D-9E4F-0123456789AB/12/a.1/",
                                        "0190F3C2-7A1B-7C3D-9E4F-0123456789AB/12/a.1/execute",
                                        "0190F3C2-7A1B-7C3D-9E4F-0123456789AB/12/a.1/gate/",
                                        "0190F3C2-7A1B-7C3D-9E4F-0123456789AB/12//gate",
                                        "0190F3C2-7A1B-7C3D-9E4F-0123456789AC/12/a.1",
                                        "0190F3C2-7A1B-7C3D-9E4F-0123456789AB 12/a.1"};
    static const char *const keys[] = {"0190F3C2-7A1B-7C3D-9E4F-0123456789AB/12/a.1",
                                       "0190F3C2-7A1B-7C3D-9E4F-0123456789AB/12/a.1/search",
                                       "0190F3C2-7A1B-7C3D-9E4F-0123456789AB/12/a.1/gate",
                                       "0190F3C2-7A1B-7C3D-9E4F-0123456789AB/12/a.1/verify",
                                       "0190F3C2-7A1B-7C3D-9E4F-0123456789AB/12/a.1/replan"};
    static const struct lane_instance nobody; /* has nothing on its lanes */
    struct engine engine;
    struct open_plan slot;
    struct plan plan;
    struct plan_step steps[2];
    uint64_t run = 0;
    uint32_t step = 7;
    enum step_phase phase = STEP_PHASE_COUNT;
    char key[LIMIT_KEY_BYTES + 1];

    (void)state;
    with_plan(&engine, &slot, &plan, steps);
    for (uint32_t i = 0; i < STEP_PHASE_COUNT; i++) {
        step_key(&plan, slot.plan_id, 0, (enum step_phase)i, 0, key);
        assert_string_equal(key, keys[i]);
        assert_true(key_find(&engine, &nobody, str_from(key), &run, &step, &phase));
        assert_int_equal(run, slot.run);
        assert_int_equal(step, 0);
        assert_int_equal(phase, i);
    }
    step_key(&plan, slot.plan_id, 1, PHASE_EXECUTE, 0, key);
    assert_true(key_find(&engine, &nobody, str_from(key), &run, &step, &phase));
    assert_int_equal(step, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (key_find(&engine, &nobody, str_from(wrong[i]), &run, &step, &phase)) {
            fail_msg("'%s' was taken for a key", wrong[i]);
        }
    }
    free(engine.by_id);
}

static void traceparent_is_the_trace_of_the_plan_and_the_span_of_the_attempt(void **state)
{
    char first[TRACEPARENT_LEN + 1];
    char other[TRACEPARENT_LEN + 1];
    struct engine engine;
    struct open_plan slot;
    struct open_plan_more more = {.told_percent = 0};
    struct plan plan;
    struct plan_step steps[2];

    (void)state;
    with_plan(&engine, &slot, &plan, steps);
    step_traceparent(&slot, 0, PHASE_EXECUTE, 1, first);
    assert_string_equal(first, "00-0190f3c27a1b7c3d9e4f0123456789ab-ff23b947266b3456-01");
    step_traceparent(&slot, 0, PHASE_VERIFY, 1, other);
    assert_string_equal(first, other);
    step_traceparent(&slot, 0, PHASE_EXECUTE, 2, other);
    assert_string_not_equal(first, other);
    step_traceparent(&slot, 1, PHASE_EXECUTE, 1, other);
    assert_string_not_equal(first, other);
    step_traceparent(&slot, 0, PHASE_GATE, 1, other);
    assert_string_not_equal(first, other);
    step_traceparent(&slot, UINT32_MAX - 1, PHASE_REPLAN, UINT32_MAX, other);
    assert_int_equal(strlen(other), TRACEPARENT_LEN);
    /* That of a client: its trace, and the same span. */
    assert_true(trace_read(STR_LIT("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
                           &more.origin.trace));
    slot.more = &more;
    step_traceparent(&slot, 0, PHASE_EXECUTE, 1, other);
    assert_string_equal(other, "00-0af7651916cd43dd8448eb211c80319c-ff23b947266b3456-01");
    free(engine.by_id);
}

enum { SESSIONS = 1000, PLANS = 8000 };

struct many {
    struct engine engine;
    char ids[SESSIONS + 1][16];
    struct plan plans[PLANS];
    struct run *open, *over;
    struct open_plan slots[PLANS];
    struct job job;
};

/* Plans of one session more than are asked about, and of none; the newest does not stand last.
 * Some have ended, some are jobs, some slots are free. */
static struct many *with_many(void)
{
    struct many *m = calloc(1, sizeof *m);

    assert_non_null(m);
    m->open = calloc(1, sizeof *m->open);
    m->over = calloc(1, sizeof *m->over);
    assert_true(m->open != NULL && m->over != NULL);
    m->open->status = PLAN_RUNNING;
    m->over->status = PLAN_COMPLETED;
    for (uint32_t i = 0; i <= SESSIONS; i++) {
        (void)snprintf(m->ids[i], sizeof m->ids[i], "session-%u", i);
    }
    for (uint32_t i = 0; i < PLANS; i++) {
        m->plans[i].session_id =
            i % 7 == 0 ? (struct str){NULL, 0} : str_from(m->ids[i * 31 % (SESSIONS + 1)]);
        m->slots[i] = (struct open_plan){.run = i % 11 == 0 ? 0 : i + 1,
                                         .ix = PLANS + (i ^ 64),
                                         .plan = &m->plans[i],
                                         .block = i % 5 == 0 ? m->over : m->open,
                                         .job = i % 3 == 0 ? &m->job : NULL};
    }
    m->engine = (struct engine){.plans = m->slots, .runs_max = PLANS, .runs_used = PLANS};
    return m;
}

static void one_pass_finds_what_each_session_finds_by_itself(void **state)
{
    struct many *m = with_many();
    struct open_plan *found[SESSIONS] = {NULL};
    struct map at = {0};
    uint32_t open = 0;

    (void)state;
    for (uint32_t i = 0; i < SESSIONS; i++) {
        assert_int_equal(map_put(&at, str_from(m->ids[i]), i), BT_OK);
    }
    open_plans_of_sessions(&m->engine, &at, found);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        assert_ptr_equal(found[i], open_plan_of_session(&m->engine, str_from(m->ids[i])));
        open += found[i] != NULL ? 1 : 0;
    }
    assert_in_range(open, SESSIONS / 2, SESSIONS);
    map_done(&at);
    free(m->open);
    free(m->over);
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cached_bytes_come_back_and_a_newer_id_takes_the_slot),
        cmocka_unit_test(cache_never_holds_more_than_its_bytes_whatever_the_order_of_ids),
        cmocka_unit_test(key_names_its_step_and_nothing_else_does),
        cmocka_unit_test(traceparent_is_the_trace_of_the_plan_and_the_span_of_the_attempt),
        cmocka_unit_test(one_pass_finds_what_each_session_finds_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
