/* What a credential may do in a minute, and at a time: at its quota, over it, and later. */
#include "tests/support/house/house.h"

enum { REQUESTS = 4, MINUTE = 60000 };

#define PLAN "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':'do','task':'t'}]}"

static struct house *open_as_poor(void)
{
    struct house *h = house_open();

    house_join(h, "calc", 2);
    (void)house_as(h, "poor");
    return h;
}

static void requests_over_the_quota_are_refused_until_the_minute_is_over(void **state)
{
    struct house *h = open_as_poor();

    (void)state;
    for (int minute = 0; minute < 2; minute++) {
        for (int i = 0; i < REQUESTS; i++) {
            (void)house_ok(h, "plan.list", " ");
        }
        house_says(h, house_ask(h, "plan.list", " "),
                   "id=q; ok=false; error.code=BUSY; error.retryAfterMs=*; "
                   "error.details.quota=requests; error.details.limit=4");
        (void)house_as(h, NULL); /* others have theirs */
        (void)house_ok(h, "plan.list", " ");
        house_wait(h, MINUTE);
        (void)house_as(h, "poor");
    }
    house_close(h);
}

static void a_plan_over_the_quota_is_refused_until_one_has_ended(void **state)
{
    struct house *h = open_as_poor();

    (void)state;
    (void)house_submit(h, PLAN);
    house_says(h, house_ask(h, "plan.submit", PLAN),
               "id=q; ok=false; error.code=BUSY; error.details.quota=plans; error.details.limit=1");
    house_done(h, "calc", "'result':{'text':'1'}");
    (void)house_submit(h, PLAN);
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_over_the_quota_are_refused_until_the_minute_is_over),
        cmocka_unit_test(a_plan_over_the_quota_is_refused_until_one_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
