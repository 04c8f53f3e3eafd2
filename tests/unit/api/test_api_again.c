/*
 * plan.fork and plan.retry of a large plan: made over cycles, and there in one of them. What
 * happens meanwhile is of the other requests, a kill or a delete.
 */
#include <string.h>

#include "tests/support/house/house.h"

enum { STEPS = 1001, DONE = 3, CYCLES_MAX = 20 };

/* The last step of `steps` has failed, some are done. */
static const char *large(struct house *h, uint32_t steps)
{
    struct buf plan;
    const char *id;

    buf_init(&plan, (size_t)1 << 20);
    for (uint32_t i = 0; i < steps; i++) {
        buf_printf(&plan, "%s{'stepId':'s%u','agentId':'calc','skill':'do','task':'t'}",
                   i > 0 ? "," : "", i);
    }
    id = house_submit(h, "'plan':{'goal':'large','policy':{'maxRetries':0},'steps':[%.*s]}",
                      (int)plan.len, (const char *)plan.at);
    buf_done(&plan);
    for (int i = 0; i < DONE; i++) {
        house_done(h, "calc", "'result':{'text':'r%d'}", i);
    }
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_is(h, house_ok(h, "plan.get", "'planId':'%s','steps':false", id), "status", "failed");
    return id;
}

/* Asks, and looks at nothing; the number of the request. */
static uint64_t send(struct house *h, const char *type, const char *fields)
{
    const char *bytes = house_text(h, "{'v':1,'type':'%s','id':'q','token':'" HOUSE_TOKEN "'%s%s}",
                                   type, fields[0] != 0 ? "," : "", fields);

    fake_link_request(h->link, false, ++h->requests, bytes, strlen(bytes));
    return h->requests;
}

static const char *answer_of(struct house *h, uint64_t request)
{
    const struct buf *answer = fake_link_answer_to(h->link, request);

    return answer == NULL ? NULL : arena_str(&h->arena, buf_str(answer)).ptr;
}

/* The cycles until the request was answered. */
static int until_answered(struct house *h, uint64_t request)
{
    int n = 0;

    for (; answer_of(h, request) == NULL && n < CYCLES_MAX; n++) {
        house_cycle_once(h);
    }
    assert_non_null(answer_of(h, request));
    return n;
}

static void plans_are(struct house *h, const char *n)
{
    house_is(h, house_ok(h, "plan.list", "'limit':100"), "plans.#", n);
}

static const char *const kinds[] = {"plan.fork", "plan.retry"};

static const char *fields_of(struct house *h, size_t kind, const char *id)
{
    return house_text(h, "'planId':'%s','clientKey':'k'%s", id,
                      kind == 0 ? house_text(h, ",'fromStep':'s%d'", DONE) : "");
}

static struct house *house_with_large(uint32_t steps, const char **ret_id)
{
    struct house *h = house_open();

    house_join(h, "calc", 1);
    *ret_id = large(h, steps);
    return h;
}

static void a_large_plan_takes_a_cycle_for_each_stage_and_is_there_in_the_last(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        const char *id;
        struct house *h = house_with_large(STEPS, &id);
        const uint64_t rows = journal_last_seq(h->journal);
        const uint64_t r = send(h, kinds[k], fields_of(h, k, id));

        for (int i = 0; i < 2; i++) {
            const uint64_t other = send(h, "supervisor.info", "");
            house_cycle_once(h);
            house_is(h, answer_of(h, other), "ok", "true"); /* it is not behind it */
            assert_null(answer_of(h, r));
            assert_int_equal(journal_last_seq(h->journal), rows);
        }
        house_cycle_once(h);
        house_says(h, answer_of(h, r), "ok=true; planId=*; reused=3");
        plans_are(h, "2");
        house_close(h);
    }
}

static void one_of_a_thousand_steps_takes_one_cycle(void **state)
{
    const char *id;
    struct house *h = house_with_large(STEPS - 1, &id);
    const uint64_t r = send(h, "plan.fork", fields_of(h, 0, id));

    (void)state;
    assert_int_equal(until_answered(h, r), 1);
    house_says(h, answer_of(h, r), "ok=true; reused=3");
    house_close(h);
}

static void a_kill_between_the_stages_leaves_nothing(void **state)
{
    (void)state;
    for (int cycles = 0; cycles < 3; cycles++) {
        const char *id;
        struct house *h = house_with_large(STEPS, &id);
        const uint64_t r = send(h, "plan.fork", fields_of(h, 0, id));

        for (int i = 0; i < cycles; i++) {
            house_cycle_once(h);
        }
        assert_null(answer_of(h, r));
        house_restart(h);
        house_join(h, "calc", 1);
        plans_are(h, "1");
        house_is(h, house_ok(h, "plan.fork", "%s", fields_of(h, 0, id)), "reused", "3");
        plans_are(h, "2");
        house_close(h);
    }
}

static void a_repeat_meanwhile_gets_the_same_plan(void **state)
{
    const char *id;
    struct house *h = house_with_large(STEPS, &id);
    const uint64_t first = send(h, "plan.fork", fields_of(h, 0, id));
    uint64_t second;

    (void)state;
    house_cycle_once(h);
    assert_null(answer_of(h, first));
    second = send(h, "plan.fork", fields_of(h, 0, id));
    (void)until_answered(h, second);
    house_is(h, answer_of(h, first), "existing", NULL);
    house_says(
        h, answer_of(h, second),
        house_text(h, "existing=true; planId=%s", house_get(h, answer_of(h, first), "planId")));
    plans_are(h, "2");
    house_close(h);
}

static void a_key_that_is_used_meanwhile_is_a_conflict(void **state)
{
    const char *id;
    struct house *h = house_with_large(STEPS, &id);
    const uint64_t r = send(h, "plan.fork", fields_of(h, 0, id));

    (void)state;
    house_cycle_once(h);
    (void)send(h, "plan.submit",
               "'clientKey':'k','plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc',"
               "'skill':'do','task':'t'}]}");
    (void)until_answered(h, r);
    house_says(h, answer_of(h, r), "error.code=CONFLICT; error.message=~clientKey 'k'");
    plans_are(h, "2");
    house_close(h);
}

static void an_old_plan_that_is_deleted_meanwhile_is_gone(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        const char *id;
        struct house *h = house_with_large(STEPS, &id);
        const uint64_t r = send(h, kinds[k], fields_of(h, k, id));
        uint64_t gone;

        house_cycle_once(h);
        assert_null(answer_of(h, r));
        gone = send(h, "plan.delete", house_text(h, "'planId':'%s'", id));
        (void)until_answered(h, r);
        house_is(h, answer_of(h, gone), "ok", "true");
        house_says(h, answer_of(h, r), "error.code=GONE");
        plans_are(h, "0");
        house_close(h);
    }
}

static void a_drain_meanwhile_refuses_the_new_plan(void **state)
{
    const char *id;
    struct house *h = house_with_large(STEPS, &id);
    const uint64_t r = send(h, "plan.fork", fields_of(h, 0, id));

    (void)state;
    house_cycle_once(h);
    assert_null(answer_of(h, r));
    (void)send(h, "supervisor.drain", "'graceMs':60000");
    (void)until_answered(h, r);
    house_says(h, answer_of(h, r), "error.code=UNAVAILABLE");
    house_close(h);
}

/* What was read and checked is its own: nobody else holds it by then. */
static void an_agent_that_ends_meanwhile_is_no_matter(void **state)
{
    const char *id;
    struct house *h = house_with_large(STEPS, &id);
    const uint64_t r = send(h, "plan.fork", fields_of(h, 0, id));

    (void)state;
    house_cycle_once(h);
    house_cycle_once(h);
    assert_null(answer_of(h, r));
    h->agents[0].silent = true;
    h->now += 3 * HOUSE_LEASE_MS;
    h->wall += 3 * HOUSE_LEASE_MS;
    (void)until_answered(h, r);
    house_says(h, answer_of(h, r), "ok=true; planId=*; reused=3");
    house_join(h, "calc", 1);
    assert_non_null(house_work(h, "calc", "s3"));
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_plan_takes_a_cycle_for_each_stage_and_is_there_in_the_last),
        cmocka_unit_test(one_of_a_thousand_steps_takes_one_cycle),
        cmocka_unit_test(a_kill_between_the_stages_leaves_nothing),
        cmocka_unit_test(a_repeat_meanwhile_gets_the_same_plan),
        cmocka_unit_test(a_key_that_is_used_meanwhile_is_a_conflict),
        cmocka_unit_test(an_old_plan_that_is_deleted_meanwhile_is_gone),
        cmocka_unit_test(a_drain_meanwhile_refuses_the_new_plan),
        cmocka_unit_test(an_agent_that_ends_meanwhile_is_no_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
