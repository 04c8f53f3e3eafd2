/* What is answered while the journal waits for its server (G191). */
#include <string.h>

#include "tests/support/house/house.h"
#include "tests/support/house/house_internal.h"
#include "tests/support/memory_journal/memory_journal.h"

#define ONE                                                                                        \
    "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':'do','task':'do it'}]}"

enum { INFO = 90001, LIST, STRANGER, BEAT, SUBMIT, CALLS = 3 };

struct away {
    struct house *h;
    uint32_t calls;
    uint32_t frames;
    uint32_t stop_at;
    bool with_answer; /* an agent's, meanwhile */
};

static void send(struct house *h, uint64_t request, const char *type, const char *token,
                 const char *more)
{
    const char *body =
        house_text(h, "{'v':1,'type':'%s','id':'q','token':'%s'%s}", type, token, more);

    fake_link_request(h->link, false, request, body, strlen(body));
}

static const char *answer_to(struct house *h, uint64_t request)
{
    const struct buf *answer = fake_link_answer_to(h->link, request);

    assert_non_null(answer); /* within the call */
    return house_keep(h, answer->at, answer->len);
}

static void agent_answers(struct house *h)
{
    struct link_lane *lane = house_lane(h, "calc", NULL);
    const char *request = house_keep(h, lane->sent.at, lane->sent.len);
    const char *answer = house_text(
        h,
        "{'v':1,'id':'%s','ok':true,'type':'step.result','key':'%s','attempt':%s,'epoch':%s,"
        "'outcome':'completed','result':{'text':'42'}}",
        house_get(h, request, "id"), house_get(h, request, "key"), house_get(h, request, "attempt"),
        house_get(h, request, "epoch"));

    fake_lane_answer(lane, answer, strlen(answer));
}

static bool on_wait(void *self)
{
    struct away *a = self;
    struct house *h = a->h;
    const struct house_agent *calc = &h->agents[0];

    if (++a->calls == 1) {
        a->frames = fake_link_frames(h->link);
        send(h, INFO, "supervisor.info", HOUSE_TOKEN, "");
        send(h, LIST, "plan.list", HOUSE_TOKEN, "");
        send(h, STRANGER, "plan.list", "wrong", "");
        send(h, BEAT, "agent.heartbeat", HOUSE_TOKEN,
             house_text(h, ",'instanceId':'%s','epoch':%llu", calc->instance,
                        (unsigned long long)calc->epoch));
        send(h, SUBMIT, "plan.submit", HOUSE_TOKEN, house_text(h, "," ONE));
        if (a->with_answer) {
            agent_answers(h);
        }
        engine_meanwhile(h->engine);
        house_says(h, answer_to(h, INFO), "ok=true; storage=away; plansOpen=*");
        house_says(h, answer_to(h, LIST), "ok=false; error.code=UNAVAILABLE; error.retryable=true");
        house_says(h, answer_to(h, STRANGER), "ok=false; error.code=UNAUTHORIZED");
        house_says(h, answer_to(h, BEAT), "ok=false; error.code=UNAVAILABLE");
        house_says(h, answer_to(h, SUBMIT), "ok=false; error.code=UNAVAILABLE");
    }
    engine_meanwhile(h->engine);
    assert_int_equal(fake_link_frames(h->link), a->frames); /* nothing is published */
    return a->calls != a->stop_at;
}

static struct away begin(void)
{
    struct away a = {.h = house_open()};

    house_join(a.h, "calc", 2);
    return a;
}

static void the_cycle_that_waits_goes_on_as_if_it_had_not(void **state)
{
    struct away a = begin();
    const char *id;

    (void)state;
    journal_while_waiting(a.h->journal, on_wait, &a);
    memory_journal_away(a.h->journal, CALLS);
    id = house_submit(a.h, ONE); /* its answer was in the making */
    assert_int_equal(a.calls, CALLS);
    house_done(a.h, "calc", "'result':{'text':'42'}");
    house_says(a.h, house_ask(a.h, "plan.get", "'planId':'%s'", id), "status=completed");
    house_says(a.h, house_ask(a.h, "plan.list", " "),
               "plans.#=1"); /* the refused one is not there */
    house_says(a.h, house_ask(a.h, "supervisor.info", " "), "storage=-");
    house_close(a.h);
}

static void what_an_agent_answers_meanwhile_counts_afterwards(void **state)
{
    struct away a = begin();
    const char *id = house_submit(a.h, ONE);

    (void)state;
    a.with_answer = true;
    assert_non_null(house_work(a.h, "calc", NULL));
    journal_while_waiting(a.h->journal, on_wait, &a);
    memory_journal_away(a.h->journal, CALLS);
    (void)house_submit(a.h, ONE);
    assert_int_equal(a.calls, CALLS);
    house_says(a.h, house_ask(a.h, "plan.get", "'planId':'%s'", id), "status=completed");
    house_close(a.h);
}

static void who_is_asked_to_stop_answers_nobody(void **state)
{
    struct away a = begin();

    (void)state;
    a.stop_at = 2;
    journal_while_waiting(a.h->journal, on_wait, &a);
    memory_journal_away(a.h->journal, CALLS);
    assert_null(house_ask(a.h, "plan.submit", ONE));
    assert_true(a.h->dead);
    assert_int_equal(fake_link_frames(a.h->link), a.frames);
    house_close(a.h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cycle_that_waits_goes_on_as_if_it_had_not),
        cmocka_unit_test(what_an_agent_answers_meanwhile_counts_afterwards),
        cmocka_unit_test(who_is_asked_to_stop_answers_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
