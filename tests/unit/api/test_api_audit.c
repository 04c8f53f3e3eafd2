/* What requests leave in the audit: the line is there before the answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/audit/audit.h"
#include "tests/support/house/house.h"

#define STEP "{'stepId':'a','agentId':'calc','skill':'do','task':'do a','requiresApproval':true}"
#define WORLD_PLAN "'sessionId':'s','plan':{'goal':'g','steps':[" STEP "]}"

static struct {
    char dir[40];
    struct audit *audit;
    struct house *h;
} w;

static int open_world(void **state)
{
    struct engine_options opt = house_options();
    struct bt_error err;

    (void)state;
    (void)snprintf(w.dir, sizeof w.dir, "/tmp/test_api_audit-XXXXXX");
    assert_non_null(mkdtemp(w.dir));
    assert_int_equal(audit_open(w.dir, 1700000000000, &w.audit, &err), BT_OK);
    opt.audit = w.audit;
    w.h = house_open_with(&opt);
    house_join(w.h, "calc", 1);
    return 0;
}

static int close_world(void **state)
{
    char path[80];

    (void)state;
    house_close(w.h);
    audit_close(w.audit);
    (void)snprintf(path, sizeof path, "%s/audit/audit.jsonl", w.dir);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/audit", w.dir);
    (void)rmdir(path);
    (void)rmdir(w.dir);
    return 0;
}

/* The last line as it is in the file; lines in *ret_n. */
static const char *last_line(uint32_t *ret_n)
{
    static char line[4096];
    char path[80];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/audit/audit.jsonl", w.dir);
    f = fopen(path, "re");
    assert_non_null(f);
    *ret_n = 0;
    line[0] = 0;
    while (fgets(line, sizeof line, f) != NULL) {
        (*ret_n)++;
    }
    (void)fclose(f);
    return line;
}

static void is_noted(uint32_t n, const char *wants)
{
    uint32_t lines;
    const char *line = last_line(&lines);

    assert_int_equal(lines, n);
    house_says(w.h, line, wants);
}

static const char *ask_wrong(void)
{
    static const char request[] =
        "{\"v\":1,\"type\":\"plan.list\",\"id\":\"q\",\"token\":\"a wrong one\"}";

    return house_ask_bytes(w.h, request, sizeof request - 1);
}

static void who_proves_nothing_is_noted(void **state)
{
    (void)state;
    house_is(w.h, ask_wrong(), "error.code", "UNAUTHORIZED");
    is_noted(1, "kind=handshake; type=plan.list; by=; role=; peer=127.0.0.1:4711; about=; "
                "outcome=UNAUTHORIZED; topic=system/audit; at=2023-11-14T22:13:20.000Z; text=*");
}

static void what_a_role_does_not_allow_is_noted_and_what_it_allows_is_not(void **state)
{
    const char *id;

    (void)state;
    (void)house_as(w.h, "submitter");
    id = house_submit(w.h, WORLD_PLAN);
    (void)house_ok(w.h, "plan.pause", "'planId':'%s'", id);
    (void)house_ok(w.h, "plan.get", "'planId':'%s'", id);
    is_noted(0, "");
    (void)house_as(w.h, "observer");
    house_refused(w.h, "UNAUTHORIZED", "needs the role", "plan.resume", "'planId':'%s'", id);
    is_noted(1, "kind=refused; type=plan.resume; by=observer; role=observer; "
                "outcome=UNAUTHORIZED; text=~needs the role submitter");
    house_refused(w.h, "INVALID", "", "plan.get", " "); /* no question of rights */
    is_noted(1, "type=plan.resume");
}

static void decisions_are_noted_by_request_and_in_words(void **state)
{
    const char *id;

    (void)state;
    (void)house_as(w.h, "submitter");
    id = house_submit(w.h, WORLD_PLAN);
    (void)house_as(w.h, "reviewer");
    (void)house_ok(w.h, "review.decide", "'reviewId':'%s/a/r1','decision':'approve'", id);
    is_noted(1, house_text(w.h,
                           "kind=decision; type=review.decide; by=reviewer; role=reviewer; "
                           "about=%s/a/r1; outcome=OK; text=approve",
                           id));
    house_refused(w.h, "NOT_FOUND", "", "review.decide", "'reviewId':'%s/b/r7','decision':'skip'",
                  id);
    is_noted(2, "kind=decision; outcome=NOT_FOUND; text=skip");
    (void)house_as(w.h, NULL);
    id = house_submit(w.h, "'sessionId':'t','plan':{'goal':'g','steps':[" STEP "]}");
    (void)house_ok(w.h, "session.say", "'sessionId':'t','text':'no'");
    is_noted(3, house_text(w.h,
                           "kind=decision; type=session.say; by=local; about=%s; outcome=OK; "
                           "text=reject",
                           id));
}

static void what_admins_do_is_noted(void **state)
{
    const char *id;

    (void)state;
    (void)house_as(w.h, "submitter");
    id = house_submit(w.h, WORLD_PLAN);
    (void)house_ok(w.h, "schedule.put", "'name':'own','cron':'@daily','plan':{'steps':[" STEP "]}");
    (void)house_ok(w.h, "schedule.pause", "'name':'own'");
    is_noted(0, "");
    (void)house_as(w.h, "admin");
    (void)house_ok(w.h, "agents.drain", "'agentId':'calc'");
    is_noted(1, "kind=admin; type=agents.drain; by=admin; role=admin; about=calc; outcome=OK");
    house_refused(w.h, "NOT_FOUND", "", "agents.drain", "'agentId':'nobody'");
    is_noted(2, "kind=admin; about=nobody; outcome=NOT_FOUND");
    (void)house_ok(w.h, "plan.pause", "'planId':'%s'", id); /* another's */
    is_noted(3, house_text(w.h, "kind=admin; type=plan.pause; by=admin; about=%s; outcome=OK", id));
    (void)house_ok(w.h, "schedule.resume", "'name':'submitter:own'");
    is_noted(4, "kind=admin; type=schedule.resume; by=admin; about=~own; outcome=OK; "
                "text=changes what is another's");
}

static void refusals_beyond_what_is_allowed_at_once_are_counted(void **state)
{
    (void)state;
    for (int i = 0; i < AUDIT_REFUSALS + 7; i++) {
        (void)ask_wrong();
    }
    is_noted(AUDIT_REFUSALS, "kind=handshake");
    audit_sync(w.audit, w.h->now + 1000, w.h->wall + 1000);
    is_noted(AUDIT_REFUSALS + 1, "kind=suppressed; refusals=7; lost=0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_proves_nothing_is_noted, open_world, close_world),
        cmocka_unit_test_setup_teardown(
            what_a_role_does_not_allow_is_noted_and_what_it_allows_is_not, open_world, close_world),
        cmocka_unit_test_setup_teardown(decisions_are_noted_by_request_and_in_words, open_world,
                                        close_world),
        cmocka_unit_test_setup_teardown(what_admins_do_is_noted, open_world, close_world),
        cmocka_unit_test_setup_teardown(refusals_beyond_what_is_allowed_at_once_are_counted,
                                        open_world, close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
