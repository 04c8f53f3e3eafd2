/* Requests about what is kept, over a SQLite journal: delete, prune, export and import, copies,
 * checks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/house/house.h"
#include "tests/unit/journal/journal_fixture.h"

#define STEP(id, more)                                                                             \
    "{'stepId':'" id "','agentId':'calc','skill':'do','task':'do " id "'" more "}"
#define ONE "'plan':{'goal':'g','steps':[" STEP("a", "") "]}"

struct world {
    char dir[64];
    struct house *h;
};

static void open_world(struct world *w)
{
    (void)snprintf(w->dir, sizeof w->dir, "/tmp/house_storage_XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    w->h = house_open_in(w->dir);
    assert_false(w->h->dead);
    house_join(w->h, "calc", 2);
}

static void close_world(struct world *w)
{
    house_close(w->h);
    fixture_remove_tree(w->dir);
}

static const char *completed(struct house *h, const char *more)
{
    const char *id = house_submit(h, ONE "%s", more);

    house_done(h, "calc", "'result':{'text':'forty-two'},'usage':{'inputTokens':3}");
    return id;
}

static void an_ended_plan_is_deleted_and_gone(void **state)
{
    struct world w;
    const char *id;

    (void)state;
    open_world(&w);
    id = house_submit(w.h, ONE ",'clientKey':'k'");
    house_refused(w.h, "CONFLICT", "has not ended", "plan.delete", "'planId':'%s'", id);
    house_done(w.h, "calc", "'result':{'text':'1'}");
    house_refused(w.h, "INVALID", "planId", "plan.delete", " ");
    house_refused(w.h, "NOT_FOUND", "No state found", "plan.delete", "'planId':'x'");
    house_says(w.h, house_ok(w.h, "plan.delete", "'planId':'%s','reason':'old'", id),
               house_text(w.h, "planId=%s; jobs=-", id));
    house_refused(w.h, "GONE", "(old); it had ended at", "plan.get", "'planId':'%s'", id);
    house_refused(w.h, "GONE", "(old)", "plan.delete", "'planId':'%s'", id);
    house_refused(w.h, "CONFLICT", "was used for a plan", "plan.submit", ONE ",'clientKey':'k'");
    house_says(w.h, house_ok(w.h, "plan.list", " "), "plans.#=0");
    house_says(w.h, house_ok(w.h, "events.read", "'fromSeq':1"), "deleted.#=*");
    close_world(&w);
}

static void a_plan_that_is_in_use_is_not_deleted(void **state)
{
    struct world w;
    const char *id;

    (void)state;
    open_world(&w);
    id = house_submit(w.h, ONE);
    (void)house_work(w.h, "calc", "a");
    w.h->agents[0].tells = NULL;
    (void)house_ok(w.h, "plan.cancel", "'planId':'%s'", id);
    house_refused(w.h, "CONFLICT", "has not ended", "plan.delete", "'planId':'%s'", id);
    house_wait(w.h, 5000);
    (void)house_ok(w.h, "plan.delete", "'planId':'%s'", id);
    house_refused(w.h, "GONE", "(on request)", "plan.get", "'planId':'%s'", id);
    close_world(&w);
}

static void old_plans_are_pruned_by_age_and_status(void **state)
{
    struct world w;
    const char *failed;

    (void)state;
    open_world(&w);
    (void)completed(w.h, "");
    failed = house_submit(w.h, ONE ",'policy':{'maxRetries':0}");
    house_failed(w.h, "calc", "PERMISSION_DENIED", false);
    house_wait(w.h, 1000);
    house_refused(w.h, "INVALID", "olderThanMs", "plan.prune", " ");
    house_refused(w.h, "INVALID", "is no status of an ended plan", "plan.prune",
                  "'olderThanMs':0,'status':'running'");
    house_refused(w.h, "INVALID", "cursor: expected", "plan.prune", "'olderThanMs':0,'cursor':'x'");
    house_says(w.h, house_ok(w.h, "plan.prune", "'olderThanMs':1001"), "plans.#=0; cursor=-");
    house_says(w.h, house_ok(w.h, "plan.prune", "'olderThanMs':1000,'dryRun':true"), "plans.#=2");
    house_says(w.h, house_ok(w.h, "plan.prune", "'olderThanMs':0,'status':'failed','dryRun':true"),
               house_text(w.h, "plans.#=1; plans.0.planId=%s; plans.0.status=failed", failed));
    house_says(w.h, house_ok(w.h, "plan.list", " "), "plans.#=2");
    house_says(w.h, house_ok(w.h, "plan.prune", "'olderThanMs':0,'status':'failed'"), "plans.#=1");
    house_refused(w.h, "GONE", "(pruned)", "plan.get", "'planId':'%s'", failed);
    house_says(w.h, house_ok(w.h, "plan.list", " "), "plans.#=1");
    house_says(w.h, house_ok(w.h, "plan.prune", "'olderThanMs':0"), "plans.#=1");
    house_says(w.h, house_ok(w.h, "plan.list", " "), "plans.#=0");
    close_world(&w);
}

static void pruning_goes_on_where_it_stopped(void **state)
{
    struct world w;
    const char *page;

    (void)state;
    open_world(&w);
    for (int i = 0; i < 101; i++) { /* one more than a page has */
        (void)house_submit(w.h, ONE ",'dryRun':true");
    }
    page = house_ok(w.h, "plan.prune", "'olderThanMs':0,'dryRun':true");
    house_says(w.h, page, "plans.#=100; cursor=*");
    page = house_ok(w.h, "plan.prune", "'olderThanMs':0,'dryRun':true,'cursor':'%s'",
                    house_get(w.h, page, "cursor"));
    house_says(w.h, page, "plans.#=1; cursor=-");
    house_says(w.h, house_ok(w.h, "plan.prune", "'olderThanMs':0"), "plans.#=100; cursor=*");
    house_says(w.h, house_ok(w.h, "plan.prune", "'olderThanMs':0"), "plans.#=1; cursor=-");
    close_world(&w);
}

/* All lines of an export, each ended by a line end. */
static const char *exported(struct house *h, const char *fields)
{
    const char *all = "";
    const char *cursor = "";

    for (int i = 0; i < 100; i++) {
        const char *page = house_ok(h, "journal.export", "%s%s'cursor':'%s'", fields,
                                    fields[0] != 0 ? "," : "", cursor);
        all = house_text(h, "%s%s", all, house_get(h, page, "lines"));
        cursor = house_get(h, page, "cursor");
        if (cursor == NULL) {
            return all;
        }
    }
    fail_msg("an export without an end");
    return all;
}

static uint32_t count(const char *text, const char *word)
{
    uint32_t n = 0;

    for (const char *at = text; (at = strstr(at, word)) != NULL; at++) {
        n++;
    }
    return n;
}

/* Lines as a text of JSON: house_text would take their quotes for its own. */
static const char *import(struct house *h, const char *lines, uint32_t before)
{
    static char text[512 * 1024];
    size_t n =
        (size_t)snprintf(text, sizeof text,
                         "{\"v\":1,\"type\":\"journal.import\",\"id\":\"q\",\"token\":\"%s\","
                         "\"before\":%u,\"lines\":\"",
                         HOUSE_TOKEN, before);

    for (const char *at = lines; *at != 0; at++) {
        assert_true(n + 8 < sizeof text);
        if (*at == '"' || *at == '\\') {
            text[n++] = '\\';
        }
        if (*at == '\n') {
            text[n++] = '\\';
            text[n++] = 'n';
        } else {
            text[n++] = *at;
        }
    }
    text[n++] = '"';
    text[n++] = '}';
    return house_ask_bytes(h, text, n);
}

static const char *first_line(struct house *h, const char *lines)
{
    return house_text(h, "%.*s", (int)(strcspn(lines, "\n") + 1), lines);
}

static void a_plan_is_exported_and_imported(void **state)
{
    struct world w;
    struct world other;
    const char *id;
    const char *lines;
    const char *again;

    (void)state;
    open_world(&w);
    id = completed(w.h, ",'sessionId':'s','clientKey':'k'");
    (void)house_ok(w.h, "schedule.put", "'name':'nightly','cron':'@daily'," ONE);
    lines = exported(w.h, house_text(w.h, "'planId':'%s'", id));
    assert_int_equal(count(lines, "\"kind\":\"plan\""), 1);
    assert_int_equal(count(lines, "\"kind\":\"end\""), 1);
    assert_int_equal(count(exported(w.h, ""), "\"kind\":\"plan\""), 1);
    assert_int_equal(count(exported(w.h, ""), "\"kind\":\"schedule\""), 1);
    assert_int_equal(count(exported(w.h, "'sinceMs':99999999999999"), "\"kind\":\"plan\""), 0);
    id = strdup(id);
    lines = strdup(lines);
    assert_true(id != NULL && lines != NULL);
    close_world(&w);
    open_world(&other);
    house_says(other.h, import(other.h, lines, 0), "ok=true; result=done");
    house_says(other.h, house_ok(other.h, "plan.get", "'planId':'%s'", id),
               "status=completed; sessionId=s; steps.0.status=completed");
    house_says(other.h, house_ok(other.h, "plan.result", "'planId':'%s','stepId':'a'", id),
               "result.text=forty-two");
    again = exported(other.h, house_text(other.h, "'planId':'%s'", id));
    assert_string_equal(lines, again);
    house_says(other.h, import(other.h, first_line(other.h, lines), 0), "ok=true; result=exists");
    close_world(&other);
    free((void *)(uintptr_t)id);
    free((void *)(uintptr_t)lines);
}

/* It is not only in the journal: it is known at once, whatever the length of its name. */
static void a_schedule_is_imported_and_is_there_at_once(void **state)
{
    static const char *const names[] = {"n", "nightly"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct world w;
        char *lines;
        open_world(&w);
        (void)house_ok(w.h, "schedule.put", "'name':'%s','cron':'@daily'," ONE, names[i]);
        lines = strdup(exported(w.h, ""));
        assert_non_null(lines);
        close_world(&w);
        open_world(&w);
        house_says(w.h, import(w.h, lines, 0), "ok=true; result=done");
        house_says(
            w.h, house_ok(w.h, "schedule.get", "'name':'%s'", names[i]),
            house_text(w.h, "schedule.name=%s; schedule.cron=@daily; schedule.next.#=5", names[i]));
        house_says(w.h, house_ok(w.h, "schedule.list", " "), "schedules.#=1");
        close_world(&w);
        free(lines);
    }
}

static void a_session_is_exported_with_its_turns(void **state)
{
    struct world w;
    char *lines;

    (void)state;
    open_world(&w);
    (void)house_ok(w.h, "session.say", "'sessionId':'s','text':'status','clientKey':'k'");
    lines = strdup(exported(w.h, ""));
    assert_non_null(lines);
    assert_int_equal(count(lines, "\"kind\":\"session\""), 1);
    assert_int_equal(count(lines, "\"kind\":\"message\""), 2);
    assert_int_equal(count(lines, "\"kind\":\"turn\""), 1); /* who sends it again gets its answer */
    close_world(&w);
    open_world(&w);
    house_says(w.h, import(w.h, lines, 0), "ok=true; result=done");
    assert_string_equal(exported(w.h, ""), lines);
    close_world(&w);
    free(lines);
}

static void an_export_is_refused_by_what_it_asks_for(void **state)
{
    struct world w;
    const char *open;

    (void)state;
    open_world(&w);
    open = house_submit(w.h, ONE);
    house_refused(w.h, "CONFLICT", "only ended plans", "journal.export", "'planId':'%s'", open);
    house_refused(w.h, "NOT_FOUND", "", "journal.export", "'planId':'x'");
    house_refused(w.h, "INVALID", "cursor", "journal.export", "'cursor':'x'");
    house_refused(w.h, "INVALID", "cursor", "journal.export", "'cursor':'p.1.2.3'");
    house_refused(w.h, "INVALID", "cursor", "journal.export", "'cursor':'c.0.0.0'");
    house_refused(w.h, "INVALID", "lines", "journal.import", "'before':0");
    house_refused(w.h, "INVALID", "", "journal.import", "'before':0,'lines':'x'");
    house_refused(w.h, "INVALID", "", "journal.import", "'before':0,'lines':'{}\\n'");
    house_is(w.h, import(w.h, "{\"kind\":\"row\"}\n", 7), "error.code", "CONFLICT");
    close_world(&w);
}

static void a_copy_is_made_while_it_runs(void **state)
{
    struct world w;
    char path[128];

    (void)state;
    open_world(&w);
    (void)completed(w.h, "");
    house_says(w.h, house_ok(w.h, "journal.backup", " "), "file=-; running=-; failure=-");
    house_refused(w.h, "INVALID", "absolute path", "journal.backup", "'file':'copy.db'");
    house_refused(w.h, "INVALID", "journal.db are the daemon's", "journal.backup",
                  "'file':'%s/journal.db.copy'", w.dir);
    (void)snprintf(path, sizeof path, "%s/copy.db", w.dir);
    house_says(w.h, house_ok(w.h, "journal.backup", "'file':'%s'", path),
               house_text(w.h, "file=%s; running=true", path));
    house_wait(w.h, 1000);
    house_says(w.h, house_ok(w.h, "journal.backup", " "),
               house_text(w.h, "file=%s; running=-; failure=-; pages=*; left=-", path));
    assert_int_equal(access(path, R_OK), 0);
    house_refused(w.h, "CONFLICT", "exists", "journal.backup", "'file':'%s'", path);
    close_world(&w);
}

static void the_journal_is_checked_in_parts(void **state)
{
    struct world w;
    const char *part;
    int n = 1;

    (void)state;
    open_world(&w);
    (void)completed(w.h, "");
    house_refused(w.h, "INVALID", "cursor", "supervisor.scrub", "'cursor':'x'");
    part = house_ok(w.h, "supervisor.scrub", " ");
    house_says(w.h, part, "problems=-; total=*; checked=*");
    for (; house_get(w.h, part, "cursor") != NULL; n++) {
        assert_true(n < 1000);
        part = house_ok(w.h, "supervisor.scrub", "'cursor':'%s'", house_get(w.h, part, "cursor"));
        house_says(w.h, part, "problems=-; total=-");
    }
    house_says(w.h, house_ok(w.h, "supervisor.scrub", "'cursor':'1.0'"), "problems=-; total=-");
    close_world(&w);
}

static void a_session_is_deleted_with_its_messages(void **state)
{
    struct world w;

    (void)state;
    open_world(&w);
    (void)house_ok(w.h, "session.say", "'sessionId':'s','text':'status'");
    house_refused(w.h, "INVALID", "sessionId", "session.delete", " ");
    house_refused(w.h, "NOT_FOUND", "", "session.delete", "'sessionId':'x'");
    house_says(w.h, house_ok(w.h, "session.delete", "'sessionId':'s'"), "sessionId=s");
    house_says(w.h, house_ok(w.h, "session.list", " "), "sessions.#=0");
    (void)house_ok(w.h, "session.say", "'sessionId':'s','text':'status'");
    house_says(w.h, house_ok(w.h, "session.get", "'sessionId':'s'"), "messagesTotal=2");
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ended_plan_is_deleted_and_gone),
        cmocka_unit_test(a_plan_that_is_in_use_is_not_deleted),
        cmocka_unit_test(old_plans_are_pruned_by_age_and_status),
        cmocka_unit_test(pruning_goes_on_where_it_stopped),
        cmocka_unit_test(a_plan_is_exported_and_imported),
        cmocka_unit_test(a_schedule_is_imported_and_is_there_at_once),
        cmocka_unit_test(a_session_is_exported_with_its_turns),
        cmocka_unit_test(an_export_is_refused_by_what_it_asks_for),
        cmocka_unit_test(a_copy_is_made_while_it_runs),
        cmocka_unit_test(the_journal_is_checked_in_parts),
        cmocka_unit_test(a_session_is_deleted_with_its_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
