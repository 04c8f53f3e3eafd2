/*
 * A plan of everything, while the n-th write or read of the journal fails, for every n: the daemon
 * ends and starts again, or answers what it can; in every case the plan comes to its end, and when
 * a write failed to the same one.
 */
#include <stdio.h>
#include <string.h>

#include "tests/support/house/house.h"

enum { ROUNDS = 150, MOST = 2000, ENDING_MAX = 2000 };

static const char plan[] =
    "'plan':{'goal':'g','sessionId':'s','policy':{'concurrencyKey':'all'},'steps':["
    "{'stepId':'a','agentId':'calc','skill':'do','task':'do a','effects':'idempotent',"
    "'compensate':{'skill':'do','task':'undo {{results.a}}'}},"
    "{'stepId':'e','forEach':'{{results.a.rows}}','maxItems':3,'steps':["
    "{'stepId':'x','agentId':'calc','skill':'do','task':'look at {{item}}','concurrencyKey':'k'}]},"
    "{'stepId':'r','agentId':'calc','skill':'do','task':'round {{iteration}}','repeat':{'max':3,"
    "'until':{'results.r.n':1}}},"
    "{'stepId':'w','wait':{'forMs':50}},"
    "{'stepId':'p','plan':{'document':{'steps':[{'agentId':'calc','skill':'do','task':'inside'}]}}}"
    ","
    "{'stepId':'c','agentId':'calc','skill':'do','task':'see {{results.e}}','when':"
    "{'state.k':1}},"
    "{'stepId':'f','agentId':'calc','skill':'do','task':'fails','maxRetries':0}]}";

static void answer(struct house *h)
{
    const char *work = house_work(h, "calc", NULL);
    const char *task = house_get(h, work, "task");

    if (task != NULL && strcmp(task, "fails") == 0) {
        house_failed(h, "calc", "PERMISSION_DENIED", false);
    } else {
        house_done(h, "calc", "'result':{'data':{'rows':[1,2],'n':1},'state':{'k':1}}");
    }
}

/* Until the plan and all inside it have ended; false: they never did. */
static bool runs(struct house *h, const char *id)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (h->dead) {
            house_fail_write(h, 0);
            house_fail_read(h, 0);
            house_restart(h);
            house_join(h, "calc", 2);
        }
        if (!h->dead && house_work(h, "calc", NULL) != NULL) {
            answer(h);
        }
        if (!h->dead) {
            house_wait(h, 100);
        }
        if (!h->dead && i % 4 == 3) {
            const char *view = house_ask(h, "plan.get", "'planId':'%s'", id);
            const char *end = view != NULL ? house_get(h, view, "completedAt") : NULL;
            if (end != NULL) {
                return true;
            }
        }
    }
    return false;
}

/* How the plan and its steps have ended. */
static void ending(struct house *h, const char *id, char ret[ENDING_MAX])
{
    const char *view = house_ok(h, "plan.get", "'planId':'%s'", id);
    size_t at = (size_t)snprintf(ret, ENDING_MAX, "%s:", house_get(h, view, "status"));

    for (int i = 0; i < 7; i++) {
        char path[40];
        (void)snprintf(path, sizeof path, "steps.%d.status", i);
        at += (size_t)snprintf(ret + at, ENDING_MAX - at, " %s", house_get(h, view, path));
    }
}

/* Fails the n-th; whether there was one. */
static bool attempt(uint32_t n, bool write, char ret[ENDING_MAX])
{
    struct house *h = house_open();
    const char *id;
    bool failed;

    house_join(h, "calc", 2);
    id = house_submit(h, plan);
    if (write) {
        house_fail_write(h, n);
    } else {
        house_fail_read(h, n);
    }
    if (!runs(h, id)) {
        fail_msg("%s %u: the plan has no end", write ? "write" : "read", n);
    }
    failed = n > 0 &&
             (write ? h->fail_at != n || h->writes >= n : h->fail_read_at != n || h->reads >= n);
    house_fail_write(h, 0);
    house_fail_read(h, 0);
    if (h->dead) {
        house_restart(h);
    }
    ending(h, id, ret);
    house_close(h);
    return failed;
}

static void a_plan_ends_the_same_way_whatever_write_fails(void **state)
{
    char sound[ENDING_MAX];
    char got[ENDING_MAX];
    uint32_t n = 1;

    (void)state;
    (void)attempt(0, true, sound);
    assert_string_equal(sound, "failed: completed completed completed completed completed "
                               "completed failed");
    while (n < MOST && attempt(n, true, got)) {
        if (strcmp(got, sound) != 0) {
            fail_msg("write %u: %s", n, got);
        }
        n += 1 + n / 25;
    }
    assert_in_range(n, 20, MOST - 1);
}

static void a_plan_comes_to_an_end_whatever_read_fails(void **state)
{
    char got[ENDING_MAX];
    uint32_t n = 1;

    (void)state;
    while (n < MOST && attempt(n, false, got)) {
        assert_true(strncmp(got, "failed:", 7) == 0 || strncmp(got, "quarantined:", 12) == 0);
        n += 1 + n / 25;
    }
    assert_in_range(n, 5, MOST - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_ends_the_same_way_whatever_write_fails),
        cmocka_unit_test(a_plan_comes_to_an_end_whatever_read_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
