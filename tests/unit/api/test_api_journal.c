/*
 * Each request that changes something, over a journal that fails at its first write, its second,
 * and so on: the cycle ends with the reason, and after a new start what was answered is there, and
 * of the others nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define PLAN(more) "'plan':{'steps':[" STEP("a", "") "," STEP("b", "") "]" more "}"

/* Makes what the request is about; returns its fields. */
typedef const char *arrange_fn(struct house *h);

static const char *open_plan(struct house *h)
{
    return house_text(h, "'planId':'%s'", house_submit(h, PLAN("")));
}

static const char *paused_plan(struct house *h)
{
    const char *fields = open_plan(h);

    (void)house_ok(h, "plan.pause", "%s", fields);
    return fields;
}

static const char *ended_plan(struct house *h)
{
    const char *fields = open_plan(h);

    house_done(h, "calc", "'result':{'text':'1'}");
    house_done(h, "calc", "'result':{'text':'2'}");
    return fields;
}

static const char *failed_plan(struct house *h)
{
    const char *id = house_submit(h, PLAN("") ",'policy':{'maxRetries':0}");

    house_failed(h, "calc", "PERMISSION_DENIED", false);
    return house_text(h, "'planId':'%s'", id);
}

static const char *new_plan(struct house *h)
{
    return house_text(h, PLAN("") ",'clientKey':'k'");
}

static const char *continued(struct house *h)
{
    (void)house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "]},'sessionId':'s'");
    return house_text(h, "'goal':'g','sessionId':'s','clientKey':'k'");
}

static const char *new_goal(struct house *h)
{
    return house_text(h, "'goal':'do a thing','planner':'agent:calc'");
}

static const char *skipped(struct house *h)
{
    return house_text(h, "%s,'kind':'skip_steps','stepId':'b'", open_plan(h));
}

static const char *inserted(struct house *h)
{
    return house_text(h, "%s,'kind':'insert','afterStepId':'a','steps':[" STEP("n", "") "]",
                      open_plan(h));
}

static const char *retried(struct house *h)
{
    return house_text(h, "%s,'fromStep':'b'", ended_plan(h));
}

static const char *review(struct house *h, const char *more)
{
    (void)house_submit(h, "'plan':{'steps':[" STEP("a", ",'requiresApproval':true") "]}");
    return house_text(h, "'reviewId':'%s','decision':'approve'%s",
                      house_get(h, house_ok(h, "review.list", " "), "reviews.0.reviewId"), more);
}

static const char *approved(struct house *h)
{
    return review(h, "");
}

static const char *edited(struct house *h)
{
    return review(h, ",'edit':{'n':1},'comment':'x'");
}

static const char *signed_off(struct house *h)
{
    (void)house_submit(h, PLAN(",'policy':{'signoff':true}"));
    return house_text(h, "'reviewId':'%s','decision':'approve'",
                      house_get(h, house_ok(h, "review.list", " "), "reviews.0.reviewId"));
}

static const char *asked(struct house *h)
{
    return house_text(h, "'sessionId':'s','text':'status','clientKey':'k'");
}

static const char *cancelled_in_words(struct house *h)
{
    (void)house_submit(h, PLAN("") ",'sessionId':'s'");
    return house_text(h, "'sessionId':'s','text':'cancel the plan'");
}

static const char *joined(struct house *h)
{
    return house_text(h, "'card':{'agentId':'new','name':'n','version':'1','skills':[{'id':'do',"
                         "'description':'D'}]},'capacity':1,'endpoint':'tcp://127.0.0.1:4711',"
                         "'instanceId':'0190F3C2-7A1B-7C3D-9E4F-0000000000AA',"
                         "'sessionKey':'0123456789abcdefxyz'");
}

static const char *instance(struct house *h)
{
    return house_text(h, "'instanceId':'%s','epoch':%llu", h->agents[0].instance,
                      (unsigned long long)h->agents[0].epoch);
}

static const char *late_result(struct house *h)
{
    const char *key;

    (void)open_plan(h);
    key = house_get(h, house_work(h, "calc", NULL), "key");
    h->agents[0].deaf = true;
    house_hang_up(h, "calc", true);
    return house_text(h, "%s,'key':'%s','attempt':1,'outcome':'completed','result':{'text':'5'}",
                      instance(h), key);
}

static const char *progress(struct house *h)
{
    (void)open_plan(h);
    return house_text(h, "%s,'key':'%s','attempt':1,'text':'half'", instance(h),
                      house_get(h, house_work(h, "calc", NULL), "key"));
}

static const char *out_of_service(struct house *h)
{
    (void)h;
    return house_text(h, "'agentId':'calc'");
}

#define DAILY "'name':'s','cron':'@daily','plan':{'goal':'g','steps':[" STEP("a", "") "]}"

static const char *new_schedule(struct house *h)
{
    return house_text(h, DAILY);
}

static const char *scheduled(struct house *h)
{
    (void)house_ok(h, "schedule.put", DAILY);
    return house_text(h, "'name':'s'");
}

static const char *paused_schedule(struct house *h)
{
    const char *fields = scheduled(h);

    (void)house_ok(h, "schedule.pause", "%s", fields);
    return fields;
}

static const char *past(struct house *h)
{
    return house_text(h, "%s,'from':'2023-11-01','to':'2023-11-03'", scheduled(h));
}

static const char *signalled(struct house *h)
{
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[{'stepId':'w','task':'t','wait':{'signal':'go'}}]}");

    return house_text(h, "'planId':'%s','name':'go','data':{'n':1}", id);
}

static const char *all_that_ended(struct house *h)
{
    (void)ended_plan(h);
    return house_text(h, "'olderThanMs':0");
}

static const char *old_session(struct house *h)
{
    (void)house_ok(h, "session.say", "'sessionId':'s','text':'status'");
    return house_text(h, "'sessionId':'s'");
}

static const char *drained(struct house *h)
{
    (void)house_ok(h, "agents.drain", "'agentId':'calc'");
    (void)house_join(h, "calc", 1); /* comes while the agent is out of service */
    (void)open_plan(h);
    return house_text(h, "'agentId':'calc'");
}

/* type, what it needs, and what shows it: an event of this type, or a member of another answer;
 * NULL = none, the answer is enough. */
static const struct {
    const char *type;
    arrange_fn *arrange;
    const char *event;
    const char *look, *member;
} changes[] = {
    {"plan.submit", new_plan, "plan_started"},
    {"plan.submit", new_goal, "planning_started"},
    {"plan.submit", continued, NULL},
    {"plan.cancel", open_plan, "plan_cancelling"},
    {"plan.pause", open_plan, "plan_paused"},
    {"plan.resume", paused_plan, "plan_resumed"},
    {"plan.modify", skipped, "plan_modified"},
    {"plan.modify", inserted, "plan_modified"},
    {"plan.retry", failed_plan, "plan_started"},
    {"plan.fork", retried, "plan_started"},
    {"review.decide", approved, "review_decided"},
    {"review.decide", edited, "review_decided"},
    {"review.decide", signed_off, "review_decided"},
    {"session.say", asked, "turn_end"},
    {"session.say", cancelled_in_words, "turn_end"},
    {"agent.register", joined, "agent_registered"},
    {"agent.drain", instance, "agent_draining"},
    {"agent.deregister", instance, "agent_down"},
    {"agents.drain", out_of_service, "agent_draining"},
    {"step.result", late_result, "plan_step_completed"},
    {"step.progress", progress, "plan_step_progress"},
    {"plan.signal", signalled, "signal_received"},
    {"plan.delete", ended_plan, NULL, "plan.list", "plans"},
    {"plan.prune", all_that_ended, NULL, "plan.list", "plans"},
    {"session.delete", old_session, NULL, "session.list", "sessions"},
    {"agents.enable", drained, "plan_step_started"},
    {"schedule.put", new_schedule, NULL, "schedule.list", "schedules"},
    {"schedule.pause", scheduled, NULL, "schedule.list", "schedules"},
    {"schedule.resume", paused_schedule, NULL, "schedule.list", "schedules"},
    {"schedule.trigger", scheduled, "schedule_fired"},
    {"schedule.backfill", past, NULL, "schedule.list", "schedules"},
    {"schedule.delete", scheduled, NULL, "schedule.list", "schedules"},
};

/* How many events of the type the journal has. */
static uint32_t stored(struct house *h, const char *event)
{
    const char *page = house_ok(h, "events.read", "'fromSeq':1,'limit':1000,'types':['%s']", event);

    return (uint32_t)strtoul(house_get(h, page, "events.#"), NULL, 10);
}

/* What the journal has to show of the change. */
static const char *shown(struct house *h, size_t i)
{
    if (changes[i].look != NULL) {
        const char *all = house_get(h, house_ok(h, changes[i].look, " "), changes[i].member);
        return all != NULL ? all : "";
    }
    return changes[i].event != NULL ? house_text(h, "%u", stored(h, changes[i].event)) : "";
}

static bool shows_nothing(size_t i)
{
    return changes[i].look == NULL && changes[i].event == NULL;
}

/* True: the request wrote less than n times, and was answered. */
static bool fails_at(size_t i, uint32_t n)
{
    struct house *h = house_open();
    const char *fields;
    const char *answer;
    const char *before;
    bool is_there;
    bool dead;

    house_join_as(h, "calc", 2,
                  "'skills':[{'id':'do','description':'D'},{'id':'plan','description':'P'}]", "");
    fields = changes[i].arrange(h);
    before = shown(h, i);
    house_fail_write(h, n);
    answer = house_ask(h, changes[i].type, "%s", fields);
    dead = h->dead;
    if (dead) {
        if (h->writes > n) {
            fail_msg("%s: %u writes after the one that failed", changes[i].type, h->writes - n);
        }
        assert_int_equal(h->why.code, BT_IO);
        assert_non_null(strstr(h->why.msg, "the disk is gone"));
        house_restart(h);
        is_there = strcmp(shown(h, i), before) != 0;
        if (answer != NULL && !is_there) {
            fail_msg("%s is answered, but not durable (write %u): %s", changes[i].type, n, answer);
        }
        if (answer == NULL && is_there) {
            fail_msg("%s: after a failed write %u there is %s\nnot %s", changes[i].type, n,
                     shown(h, i), before);
        }
    } else {
        if (strcmp(house_get(h, answer, "ok"), "true") != 0) {
            fail_msg("%s: the journal failed at write %u, and the daemon goes on: %s",
                     changes[i].type, n, answer);
        }
        if (!shows_nothing(i) && strcmp(shown(h, i), before) == 0) {
            fail_msg("%s: nothing shows it: %s", changes[i].type, before);
        }
    }
    house_close(h);
    return !dead;
}

static void no_request_survives_a_journal_that_fails(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        uint32_t n = 1;
        while (!fails_at(i, n)) {
            n++;
        }
        if (n == 1) {
            fail_msg("%s writes nothing", changes[i].type);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_request_survives_a_journal_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
