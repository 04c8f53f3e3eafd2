/*
 * Each request that reads, over a journal of which the first read fails, then the second, and so
 * on: it is refused with the reason and nothing else, and the next one is answered as before.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/house/house.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"

static const struct {
    const char *type;
    enum { NO_PLAN, OPEN, ENDED, REVIEW } about; /* its id stands first */
    const char *more;
    uint32_t reads; /* at least */
    bool less;      /* gives what it has */
    bool dies;      /* what it has written may be lost with it: the daemon ends instead */
} asked[] = {
    {"plan.get", OPEN, "", 1},
    {"plan.get", ENDED, "", 1},
    {"plan.result", OPEN, ",'stepId':'a'", 1},
    {"plan.result", ENDED, "", 1},
    {"plan.list", NO_PLAN, " ", 1},
    {"plan.list", NO_PLAN, "'idPrefix':'01'", 1},
    {"plan.history", OPEN, "", 1},
    {"plan.history", ENDED, "", 1},
    {"plan.stats", OPEN, "", 1},
    {"plan.stats", ENDED, "", 1},
    {"plan.cost", NO_PLAN, " ", 1},
    {"plan.cost", ENDED, "", 1},
    {"plan.lint", NO_PLAN, "'goal':'add 1 and 2'", 0},
    {"review.list", OPEN, "", 1, true},
    {"events.read", NO_PLAN, "'fromSeq':1", 1},
    {"events.read", OPEN, ",'fromSeq':1", 1},
    {"blob.get", NO_PLAN, "'blobId':1", 1},
    {"session.get", NO_PLAN, "'sessionId':'s'", 1},
    {"session.list", NO_PLAN, " ", 1},
    {"plan.retry", ENDED, "", 1},
    {"plan.fork", ENDED, ",'fromStep':'x'", 1},
    {"supervisor.stats", NO_PLAN, " ", 1, true},
    {"plan.delete", ENDED, "", 1, .dies = true, .less = true},
    {"plan.prune", NO_PLAN, "'olderThanMs':0", 1, .dies = true, .less = true},
    {"plan.pause", OPEN, "", 0},
    {"plan.modify", OPEN, ",'kind':'skip_steps','stepId':'b'", 0},
    {"plan.submit", NO_PLAN, "'plan':{'goal':'g','steps':[" STEP("n", "") "]},'clientKey':'n'", 1},
    {"session.say", NO_PLAN, "'sessionId':'s','text':'status','clientKey':'n'", 1, .dies = true},
    {"review.get", REVIEW, "", 1, true},
    {"agents.list", NO_PLAN, "'remembered':true", 1},
};

static struct house *arrange(const char **ret_open, const char **ret_ended)
{
    struct house *h = house_open();

    house_join_as(h, "calc", 2,
                  "'skills':[{'id':'do','description':'D'},{'id':'plan','description':'P'}]", "");
    *ret_ended = house_submit(h, "'goal':'many','planner':'agent:calc','sessionId':'s'");
    house_done(h, "calc",
               "'result':{'data':{'steps':[{'stepId':'x','agentId':'calc','skill':'do','task':'t',"
               "'estimate':{'tokens':7,'costMicros':9}}]}},'usage':{'inputTokens':3}");
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    *ret_open = house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", "") "," STEP(
                                    "b", ",'requiresApproval':true") "]},'sessionId':'s'");
    house_done(h, "calc", "'result':{'text':'five'}");
    house_restart(h); /* what happened is in no memory any more */
    return h;
}

static const char *review_of(struct house *h)
{
    return house_get(h, house_ok(h, "review.list", " "), "reviews.0.reviewId");
}

/* *ret_len: of the answer. True: the request reads less than n times; n 0: no read fails. */
static bool is_read(size_t i, uint32_t n, size_t *ret_len)
{
    const char *ended;
    const char *open;
    struct house *h = arrange(&open, &ended);
    const char *id = asked[i].about == OPEN     ? open
                     : asked[i].about == REVIEW ? review_of(h)
                                                : ended;
    const char *answer;
    bool failed;

    house_fail_read(h, n);
    answer = house_ask(h, asked[i].type, "%s",
                       asked[i].about == NO_PLAN
                           ? asked[i].more
                           : house_text(h, "'%s':'%s'%s",
                                        asked[i].about == REVIEW ? "reviewId" : "planId", id,
                                        asked[i].more));
    failed = n > 0 && h->reads >= n;
    house_fail_read(h, 0);
    house_cycle(h);
    if (h->dead && failed && asked[i].dies) {
        assert_null(answer);
        assert_string_equal(h->why.msg, "the disk cannot be read");
        house_close(h);
        return false;
    }
    if (h->dead || answer == NULL) {
        fail_msg("%s: read %u failed, and there is no answer: %s", asked[i].type, n, h->why.msg);
    }
    if (!failed) {
        house_is(h, answer, "ok", "true");
        *ret_len = strlen(answer);
    } else if (strcmp(house_get(h, answer, "ok"), "true") != 0) {
        house_says(h, answer,
                   "error.code=IO; error.message=~the disk cannot be read; "
                   "error.class=-; error.retryAfterMs=-");
    } else if (strlen(answer) != *ret_len && !asked[i].less &&      /* it was read once more */
               strstr(answer, "the disk cannot be read") == NULL) { /* or what is there is given */
        fail_msg("%s: read %u failed, and the answer is another one: %s", asked[i].type, n, answer);
    }
    house_close(h);
    return !failed;
}

static void what_cannot_be_read_is_refused_with_the_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        size_t len = 0;
        uint32_t n = 1;
        (void)is_read(i, 0, &len);
        while (!is_read(i, n, &len)) {
            n++;
        }
        if (n <= asked[i].reads) {
            fail_msg("%s reads only %u times", asked[i].type, n - 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_read_is_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
