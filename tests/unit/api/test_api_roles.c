/* Each request, by the sender's role: who is refused, whose a plan, session and review is, and what
 * a quota leaves. Requests are sealed as on the wire. */
#include <string.h>
#include <strings.h>

#include "protocol/wire/catalog.h"
#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define ONE "'plan':{'goal':'g','steps':[" STEP("a", "") "]}"
#define ENDPOINT "'endpoint':'tcp://127.0.0.1:4711','sessionKey':'0123456789abcdefxyz'"

/* The request, and the first role in the order of the wire that may send it. */
static const struct {
    const char *type, *least;
} requests[] = {
    {"agent.register", "agent"},
    {"agent.heartbeat", "agent"},
    {"agent.drain", "agent"},
    {"agent.deregister", "agent"},
    {"step.progress", "agent"},
    {"step.result", "agent"},
    {"plan.submit", "submitter"},
    {"plans.submit", "submitter"},
    {"plan.lint", "submitter"},
    {"plan.get", "observer"},
    {"plan.list", "observer"},
    {"plan.delete", "admin"},
    {"plan.prune", "admin"},
    {"plan.result", "observer"},
    {"plan.cancel", "submitter"},
    {"plan.pause", "submitter"},
    {"plan.resume", "submitter"},
    {"plan.signal", "submitter"},
    {"plan.modify", "submitter"},
    {"plan.retry", "submitter"},
    {"plan.fork", "submitter"},
    {"plan.history", "observer"},
    {"plan.stats", "observer"},
    {"plan.cost", "observer"},
    {"session.say", "submitter"},
    {"session.get", "observer"},
    {"session.list", "observer"},
    {"review.list", "observer"},
    {"review.get", "observer"},
    {"review.decide", "reviewer"},
    {"session.delete", "admin"},
    {"journal.backup", "admin"},
    {"journal.export", "admin"},
    {"journal.import", "admin"},
    {"schedule.put", "submitter"},
    {"schedule.get", "observer"},
    {"schedule.list", "observer"},
    {"schedule.pause", "submitter"},
    {"schedule.resume", "submitter"},
    {"schedule.trigger", "submitter"},
    {"schedule.backfill", "submitter"},
    {"schedule.delete", "submitter"},
    {"events.read", "observer"},
    {"blob.get", "observer"},
    {"agents.list", "observer"},
    {"agents.get", "observer"},
    {"agents.drain", "admin"},
    {"agents.start", "admin"},
    {"agents.stop", "admin"},
    {"agents.restart", "admin"},
    {"agents.enable", "admin"},
    {"agents.forget", "admin"},
    {"supervisor.info", "observer"},
    {"fleet.map", "observer"},
    {"supervisor.stats", "observer"},
    {"supervisor.scrub", "admin"},
    {"supervisor.reload", "admin"},
    {"supervisor.drain", "admin"},
    {"artifact.fetch", "agent"},
    {"artifact.store", "agent"},
    {"artifact.read", "observer"},
    {"auth.begin", "observer"},
    {"webhook.list", "admin"},
    {"webhook.resend", "admin"},
    {"webhook.test", "admin"},
    {"hook.list", "admin"},
};

enum { REQUESTS = sizeof requests / sizeof requests[0] };

static int rank(const char *role)
{
    static const char *const order[] = {"observer", "submitter", "reviewer", "admin"};

    for (int i = 0; i < 4; i++) {
        if (strcmp(order[i], role) == 0) {
            return i;
        }
    }
    return -1;
}

/* Admins may all, agents what is for agents, the others what their rank allows. */
static bool may(const char *role, const char *least)
{
    if (strcmp(role, "admin") == 0 || strcmp(role, least) == 0) {
        return true;
    }
    return strcmp(role, "agent") != 0 && strcmp(least, "agent") != 0 && rank(role) >= rank(least);
}

static const char *role_of(const char *type)
{
    for (size_t i = 0; i < REQUESTS; i++) {
        if (strcmp(requests[i].type, type) == 0) {
            return requests[i].least;
        }
    }
    return "none in this test";
}

/* A new request is refused here until somebody has written down who may send it. */
static void the_table_has_each_request_of_the_wire(void **state)
{
    size_t n = 0;

    (void)state;
    for (uint32_t i = 0; i < catalog_requests_n; i++) {
        const struct catalog_request *r = &catalog_requests[i];
        const char *type = msg_wire_type(r->type);
        if (r->role == NULL) {
            continue; /* of the supervisor, on a lane */
        }
        n++;
        if (strcasecmp(r->role, role_of(type)) != 0) {
            fail_msg("%s is for the role %s, not %s", type, r->role, role_of(type));
        }
    }
    assert_int_equal(n, REQUESTS);
}

static void each_request_has_its_least_role(void **state)
{
    static const char *const roles[] = {"observer", "submitter", "reviewer", "agent", "admin"};

    (void)state;
    for (size_t r = 0; r < 5; r++) {
        struct house *h = house_open();
        house_join(h, "calc", 1);
        (void)house_as(h, roles[r]);
        for (size_t i = 0; i < REQUESTS; i++) {
            const char *answer = house_ask(h, requests[i].type, " ");
            const char *code = house_get(h, answer, "error.code");
            const bool refused = code != NULL && strcmp(code, "UNAUTHORIZED") == 0;
            if (refused == may(roles[r], requests[i].least)) {
                fail_msg("%s as %s: %s", requests[i].type, roles[r], answer);
            }
            if (refused) {
                house_has(h, answer, "error.message",
                          house_text(h, "%s needs the role %s; the credential", requests[i].type,
                                     requests[i].least));
                house_says(h, answer,
                           house_text(h, "error.details.role=%s; error.details.has=%s",
                                      requests[i].least, roles[r]));
            }
        }
        house_close(h);
    }
}

static void a_plan_is_its_submitters(void **state)
{
    static const char *const changes[] = {"plan.cancel", "plan.pause", "plan.resume", "plan.fork",
                                          "plan.retry"};
    static const char *const reads[] = {"plan.get", "plan.result", "plan.history", "plan.stats",
                                        "plan.cost"};
    struct house *h = house_open();
    const char *id;

    (void)state;
    house_join(h, "calc", 1);
    (void)house_as(h, "submitter");
    id = house_submit(h, ONE ",'clientKey':'k','sessionId':'s'");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "owner=submitter");
    house_says(h, house_ok(h, "plan.list", " "), "plans.#=1; plans.0.owner=submitter");
    house_says(h, house_ok(h, "plan.cost", " "), "plans.#=1");
    (void)house_as(h, "other");
    house_says(h, house_ok(h, "plan.list", " "), "plans.#=0");
    house_says(h, house_ok(h, "plan.cost", " "), "plans=-");
    for (size_t i = 0; i < 5; i++) {
        house_refused(h, "NOT_FOUND", "No state found", reads[i], "'planId':'%s'", id);
        house_refused(h, "NOT_FOUND", "No state found", changes[i], "'planId':'%s','fromStep':'a'",
                      id);
    }
    house_refused(h, "NOT_FOUND", "No state found", "plan.signal", "'planId':'%s','name':'x'", id);
    house_refused(h, "NOT_FOUND", "No state found", "events.read", "'fromSeq':1,'planId':'%s'", id);
    house_says(h, house_ok(h, "events.read", "'fromSeq':1,'types':['plan_started']"), "events.#=0");
    /* the same id is a session of its own */
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", house_submit(h, ONE ",'sessionId':'s'")),
               "owner=other; sessionId=other:s");
    house_says(h, house_ok(h, "session.say", "'sessionId':'s','text':'status'"), "reply=~g");
    /* the same key is another plan of another sender */
    house_says(h, house_ok(h, "plan.submit", ONE ",'clientKey':'k'"), "existing=-");
    (void)house_as(h, "reviewer");
    house_says(h, house_ok(h, "plan.list", " "), "plans.#=3");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "owner=submitter");
    for (size_t i = 0; i < 3; i++) {
        house_refused(h, "UNAUTHORIZED", "the plan is of 'submitter'", changes[i], "'planId':'%s'",
                      id);
    }
    (void)house_as(h, "observer");
    house_says(h, house_ok(h, "plan.get", "'planId':'%s'", id), "status=running");
    (void)house_as(h, "admin");
    (void)house_ok(h, "plan.pause", "'planId':'%s'", id);
    (void)house_as(h, "submitter");
    house_says(h, house_ok(h, "plan.submit", ONE ",'clientKey':'k','sessionId':'s'"),
               house_text(h, "existing=true; planId=%s", id));
    (void)house_ok(h, "plan.resume", "'planId':'%s'", id);
    (void)house_as(h, NULL);
    (void)house_ok(h, "plan.cancel", "'planId':'%s'", id);
    house_close(h);
}

static void a_session_is_its_beginners(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_join(h, "calc", 1);
    (void)house_as(h, "submitter");
    (void)house_ok(h, "session.say", "'sessionId':'mine','text':'status'");
    house_says(h, house_ok(h, "session.list", " "), "sessions.#=1");
    house_says(h, house_ok(h, "session.get", "'sessionId':'mine'"), "messages.0.text=status");
    (void)house_as(h, "other");
    house_says(h, house_ok(h, "session.list", " "), "sessions.#=0");
    house_refused(h, "NOT_FOUND", "", "session.get", "'sessionId':'mine'");
    (void)house_ok(h, "session.say", "'sessionId':'mine','text':'status'"); /* its own */
    house_says(h, house_ok(h, "session.get", "'sessionId':'mine'"), "messagesTotal=2");
    (void)house_ok(h, "plan.submit", ONE ",'sessionId':'plans'"); /* one without a message */
    house_says(h, house_ok(h, "session.get", "'sessionId':'plans'"),
               "owner=other; planHistory.#=1; messagesTotal=0");
    (void)house_as(h, "observer");
    house_says(h, house_ok(h, "session.list", " "), "sessions.#=2");
    (void)house_as(h, "admin");
    (void)house_ok(h, "session.say", "'sessionId':'mine','text':'status'");
    (void)house_ok(h, "session.delete", "'sessionId':'mine'");
    house_refused(h, "NOT_FOUND", "", "session.delete", "'sessionId':'mine'");
    house_close(h);
}

/* "submitter:" stands in front of the name of a session, and all of it is an id. */
static void a_submitters_session_has_a_name_that_is_shorter_by_its_own(void **state)
{
    enum { MOST = LIMIT_ID_BYTES - (int)sizeof "submitter:" + 1 };
    struct house *h = house_open();
    char name[LIMIT_ID_BYTES + 1];

    (void)state;
    house_join(h, "calc", 1);
    (void)house_as(h, "submitter");
    memset(name, 'n', sizeof name);
    name[MOST] = 0;
    (void)house_ok(h, "session.say", "'sessionId':'%s','text':'status'", name);
    name[MOST] = 'n';
    name[MOST + 1] = 0;
    house_refused(h, "LIMIT", "so a new one has at most", "session.say",
                  "'sessionId':'%s','text':'status'", name);
    house_has(h, house_ask(h, "session.say", "'sessionId':'%s','text':'status'", name),
              "error.message", house_text(h, "at most %d characters, got %d", MOST, MOST + 1));
    house_close(h);
}

static void a_reviewer_decides_about_plans_of_others(void **state)
{
    struct house *h = house_open();
    const char *review;

    (void)state;
    house_join(h, "calc", 1);
    (void)house_as(h, "submitter");
    (void)house_submit(h,
                       "'plan':{'goal':'g','steps':[" STEP("a", ",'requiresApproval':true") "]}");
    review = house_get(h, house_ok(h, "review.list", " "), "reviews.0.reviewId");
    assert_non_null(review);
    (void)house_as(h, "other");
    house_says(h, house_ok(h, "review.list", " "), "reviews.#=0");
    house_refused(h, "NOT_FOUND", "", "review.get", "'reviewId':'%s'", review);
    (void)house_as(h, "reviewer");
    house_says(h, house_ok(h, "review.get", "'reviewId':'%s'", review), "review.stepId=a");
    (void)house_ok(h, "review.decide", "'reviewId':'%s','decision':'approve'", review);
    house_says(h, house_event(h, "review_decided"), "by.id=reviewer");
    house_says(h, house_ok(h, "review.decide", "'reviewId':'%s','decision':'approve'", review),
               "ok=true"); /* the same again */
    (void)house_as(h, "admin");
    house_refused(h, "CONFLICT", "reviewer", "review.decide", "'reviewId':'%s','decision':'reject'",
                  review);
    assert_non_null(house_work(h, "calc", "a"));
    house_close(h);
}

static void a_submitter_has_a_quarter_of_the_open_plans(void **state)
{
    struct engine_options opt = house_options();
    struct house *h;
    const char *first;

    (void)state;
    opt.plans_max = 8;
    h = house_open_with(&opt);
    house_join(h, "calc", 1);
    (void)house_as(h, "submitter");
    first = house_submit(h, ONE);
    (void)house_submit(h, ONE); /* 2 of 8 */
    house_refused(h, "BUSY", "its quota is 2", "plan.submit", ONE);
    house_says(h, house_ask(h, "plan.submit", ONE),
               "error.details.quota=plans; error.details.limit=2; error.retryable=true");
    (void)house_as(h, "other");
    (void)house_submit(h, ONE);
    (void)house_as(h, "submitter");
    (void)house_ok(h, "plan.cancel", "'planId':'%s'", first);
    house_wait(h, 2500);
    (void)house_submit(h, ONE);
    (void)house_as(h, NULL);
    for (int i = 0; i < 4; i++) {
        (void)house_submit(h, ONE); /* the token has no quota but the limit of all */
    }
    house_close(h);
}

static void an_agent_is_what_its_globs_fit(void **state)
{
    struct house *h = house_open();

    (void)state;
    (void)house_as(h, "agent");
    house_refused(h, "UNAUTHORIZED", "", "agent.register",
                  "'card':{'agentId':'files','name':'n','version':'1','skills':[{'id':'do',"
                  "'description':'D'}]},'capacity':1,'protocol':[1],"
                  "'instanceId':'0190F3C2-7A1B-7C3D-9E4F-0000000000AA'," ENDPOINT);
    (void)house_ok(h, "agent.register",
                   "'card':{'agentId':'calc','name':'n','version':'1','skills':[{'id':'do',"
                   "'description':'D'}]},'capacity':1,'protocol':[1],"
                   "'instanceId':'0190F3C2-7A1B-7C3D-9E4F-0000000000AB'," ENDPOINT);
    (void)house_as(h, "submitter"); /* who did not register it does not speak for it */
    house_refused(h, "UNAUTHORIZED", "", "agent.heartbeat",
                  "'instanceId':'0190F3C2-7A1B-7C3D-9E4F-0000000000AB','epoch':4294967297");
    (void)house_as(h, "agent");
    (void)house_ok(h, "agent.heartbeat",
                   "'instanceId':'0190F3C2-7A1B-7C3D-9E4F-0000000000AB','epoch':4294967297");
    house_close(h);
}

#define REGISTER(as)                                                                               \
    "'card':{'agentId':'calc','name':'n','version':'1','skills':[{'id':'do','description':'D'}]}," \
    "'capacity':1,'protocol':[1],'instanceId':'0190F3C2-7A1B-7C3D-9E4F-0000000000" as              \
    "'," ENDPOINT

/* A credential that may be the same agent is another one. */
static void an_instance_is_its_credentials_while_it_lives(void **state)
{
    struct house *h = house_open();

    (void)state;
    (void)house_as(h, "agent");
    (void)house_ok(h, "agent.register", REGISTER("AB"));
    (void)house_as(h, "twin");
    house_refused(h, "CONFLICT", "instanceId: belongs to a live instance of another credential",
                  "agent.register", REGISTER("AB"));
    house_refused(h, "NOT_FOUND", "is not registered; register again", "agent.heartbeat",
                  "'instanceId':'0190F3C2-7A1B-7C3D-9E4F-0000000000AB','epoch':4294967297");
    (void)house_as(h, "agent"); /* itself, once more */
    (void)house_ok(h, "agent.register", REGISTER("AB"));
    (void)house_as(h, "admin"); /* who may act for any */
    (void)house_ok(h, "agent.register", REGISTER("AB"));
    (void)house_as(h, "agent");
    house_refused(h, "CONFLICT", "another credential", "agent.register", REGISTER("AB"));
    house_wait(h, HOUSE_LEASE_MS - 1);
    house_refused(h, "CONFLICT", "another credential", "agent.register", REGISTER("AB"));
    house_wait(h, 1); /* its lease is over */
    (void)house_ok(h, "agent.register", REGISTER("AB"));
    house_close(h);
}

static void a_result_is_read_by_those_who_see_its_plan(void **state)
{
    struct house *h = house_open();
    const char *blob;

    (void)state;
    house_join(h, "calc", 1);
    (void)house_as(h, "submitter");
    (void)house_submit(h, ONE);
    house_done(h, "calc", "'result':{'text':'secret'}");
    blob = house_get(h, house_event(h, "plan_step_completed"), "resultRef");
    assert_non_null(blob);
    (void)house_ok(h, "blob.get", "'blobId':%s", blob);
    (void)house_as(h, "other");
    house_refused(h, "NOT_FOUND", "no blob", "blob.get", "'blobId':%s", blob);
    (void)house_as(h, "observer");
    (void)house_ok(h, "blob.get", "'blobId':%s", blob);
    house_close(h);
}

static void an_old_seal_is_not_taken_again(void **state)
{
    struct house *h = house_open();
    struct house_sealed sealed;

    (void)state;
    (void)house_as(h, "observer");
    (void)house_ok(h, "plan.list", " ");
    sealed = house_sealed(h, "plan.list");
    house_is(h, house_ask_bytes(h, sealed.bytes, sealed.len), "ok", "true");
    house_is(h, house_ask_bytes(h, sealed.bytes, sealed.len), "error.code", "UNAUTHORIZED");
    sealed = house_sealed(h, "plan.list");
    sealed.bytes[sealed.len - 3] ^= 1; /* of the body */
    house_is(h, house_ask_bytes(h, sealed.bytes, sealed.len), "error.code", "UNAUTHORIZED");
    house_close(h);
}

static void a_session_of_a_credential_is_begun_with_its_nonce(void **state)
{
    struct house *h = house_open();

    (void)state;
    house_refused(h, "INVALID", "nonceC: expected", "auth.begin",
                  "'credential':'observer','nonceC':'00'");
    house_refused(h, "INVALID", "credential", "auth.begin", "'nonceC':'00'");
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_has_each_request_of_the_wire),
        cmocka_unit_test(each_request_has_its_least_role),
        cmocka_unit_test(a_plan_is_its_submitters),
        cmocka_unit_test(a_session_is_its_beginners),
        cmocka_unit_test(a_submitters_session_has_a_name_that_is_shorter_by_its_own),
        cmocka_unit_test(a_reviewer_decides_about_plans_of_others),
        cmocka_unit_test(a_submitter_has_a_quarter_of_the_open_plans),
        cmocka_unit_test(an_agent_is_what_its_globs_fit),
        cmocka_unit_test(an_instance_is_its_credentials_while_it_lives),
        cmocka_unit_test(a_result_is_read_by_those_who_see_its_plan),
        cmocka_unit_test(an_old_seal_is_not_taken_again),
        cmocka_unit_test(a_session_of_a_credential_is_begun_with_its_nonce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
