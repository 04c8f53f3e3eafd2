/* Who sees and changes what: every role, own and foreign; and what the journal keeps of it. */
#include <stdio.h>
#include <string.h>

#include "supervisor/engine/access.h"
#include "supervisor/engine/request.h"
#include "supervisor/engine/schedule_key.h"
#include "supervisor/journal/port.h"
#include "tests/support/cmocka.h"
#include "tests/unit/engine/engine_fixture.h"

static struct identity sender(const char *id, enum role role)
{
    struct identity who = {.role = role};

    (void)snprintf(who.id, sizeof who.id, "%s", id);
    return who;
}

/* Rows: what is needed. Columns: observer, submitter, reviewer, agent, admin. */
static void roles_do_what_the_table_says(void **state)
{
    static const char *const does[ROLE_COUNT] = {[ROLE_OBSERVER] = "111.1",
                                                 [ROLE_SUBMITTER] = ".11.1",
                                                 [ROLE_REVIEWER] = "..1.1",
                                                 [ROLE_AGENT] = "...11",
                                                 [ROLE_ADMIN] = "....1"};

    (void)state;
    for (int need = 0; need < ROLE_COUNT; need++) {
        for (int have = 0; have < ROLE_COUNT; have++) {
            assert_int_equal(access_role_does((enum role)have, (enum role)need),
                             does[need][have] == '1');
        }
        assert_false(access_role_does(ROLE_ADMIN, ROLE_COUNT));
        assert_false(access_role_does(ROLE_COUNT, (enum role)need));
    }
}

/* Each role with a plan of its own, of another, and of the token: s = sees, c = changes. */
static void plans_are_seen_and_changed_by_role_and_owner(void **state)
{
    static const char *const rights[ROLE_COUNT][3] = {[ROLE_OBSERVER] = {"s", "s", "s"},
                                                      [ROLE_SUBMITTER] = {"sc", "", ""},
                                                      [ROLE_REVIEWER] = {"sc", "s", "s"},
                                                      [ROLE_AGENT] = {"", "", ""},
                                                      [ROLE_ADMIN] = {"sc", "sc", "sc"}};
    static const char *const owners[3] = {"ann", "bob", ""};

    (void)state;
    for (int role = 0; role < ROLE_COUNT; role++) {
        const struct identity ann = sender("ann", (enum role)role);
        for (int i = 0; i < 3; i++) {
            const struct str owner = str_from(owners[i]);
            assert_int_equal(access_sees(&ann, owner), strchr(rights[role][i], 's') != NULL);
            assert_int_equal(access_changes(&ann, owner), strchr(rights[role][i], 'c') != NULL);
        }
    }
    assert_true(access_sees(NULL, STR_LIT("bob")) && access_changes(NULL, STR_LIT("bob")));
    assert_true(access_changes(identity_local(), STR_LIT("bob")));
    assert_string_equal(access_owner_shown(access_owner(identity_local())).ptr, "local");
}

static void submit_as(struct engine_world *w, const struct identity *who, const char *session,
                      char ret_id[UUID_TEXT_LEN + 1])
{
    const struct submit_request request = {
        .plan = engine_world_doc(w, "{'steps':[{'stepId':'a','agentId':'calc','task':'1+1'}]}"),
        .session_id = str_from(session)};

    engine_act_for(w->engine, who);
    engine_world_submit(w, &request, ret_id);
    engine_act_for(w->engine, NULL);
}

static void a_foreign_plan_answers_as_an_unknown_one(void **state)
{
    const struct identity ann = sender("ann", ROLE_SUBMITTER);
    const struct identity bob = sender("bob", ROLE_SUBMITTER);
    const struct identity eve = sender("eve", ROLE_OBSERVER);
    char id[UUID_TEXT_LEN + 1];
    char expected[BT_ERROR_MSG_MAX];
    struct engine_world w;
    struct journal_plan row;
    struct bt_error err;

    (void)state;
    engine_world_open(&w);
    submit_as(&w, &ann, "", id);
    engine_act_for(w.engine, &ann);
    assert_int_equal(request_plan_row(w.engine, str_from(id), &row, &err), BT_OK);
    assert_true(str_is(row.owner, "ann"));
    engine_act_for(w.engine, &eve);
    assert_int_equal(request_plan_row(w.engine, str_from(id), &row, &err), BT_OK);
    engine_act_for(w.engine, &bob);
    assert_int_equal(request_plan_row(w.engine, str_from(id), &row, &err), BT_NOT_FOUND);
    (void)snprintf(expected, sizeof expected, "No state found for %s", id);
    assert_string_equal(err.msg, expected);
    /* deleted, it is no more there than it was */
    engine_act_for(w.engine, NULL);
    assert_int_equal(journal_plan_status(w.journal, 1, STR_LIT("completed"), 1700000000001, &err),
                     BT_OK);
    assert_int_equal(journal_plan_delete(w.journal, 1, STR_LIT("old"), 1700000000002, &err), BT_OK);
    engine_act_for(w.engine, &bob);
    assert_int_equal(request_plan_row(w.engine, str_from(id), &row, &err), BT_NOT_FOUND);
    assert_string_equal(err.msg, expected);
    engine_act_for(w.engine, &ann);
    assert_int_equal(request_plan_row(w.engine, str_from(id), &row, &err), BT_GONE);
    engine_act_for(w.engine, NULL);
    engine_world_close(&w);
}

static enum bt_code session_code;

static enum bt_code session_fails(struct journal *j, struct str id, struct journal_session *ret,
                                  struct bt_error *err)
{
    (void)j;
    (void)id;
    (void)ret;
    return err_set(err, session_code, "the session cannot be read");
}

/* A damaged one is nobody's to take, and harms no plan; any other failure is one. */
static void a_session_that_cannot_be_read_is_known_and_has_the_owner_of_its_plans(void **state)
{
    const struct identity ann = sender("ann", ROLE_SUBMITTER);
    char owner[LIMIT_ID_BYTES + 1];
    char id[UUID_TEXT_LEN + 1];
    struct journal_ops odd;
    const struct journal_ops *all;
    struct engine_world w;
    struct bt_error err;
    bool known;

    (void)state;
    engine_world_open(&w);
    submit_as(&w, &ann, "s", id);
    all = w.journal->ops;
    odd = *all;
    odd.session = session_fails;
    w.journal->ops = &odd;
    session_code = BT_IO;
    assert_int_equal(access_session_owner(w.engine, STR_LIT("s"), &known, owner, &err), BT_OK);
    assert_true(known);
    assert_string_equal(owner, "ann");
    assert_int_equal(access_session_owner(w.engine, STR_LIT("t"), &known, owner, &err), BT_OK);
    assert_true(known);
    assert_string_equal(owner, "");
    session_code = BT_NOT_FOUND;
    assert_int_equal(access_session_owner(w.engine, STR_LIT("t"), &known, owner, &err), BT_OK);
    assert_false(known);
    session_code = BT_NOMEM;
    assert_int_equal(access_session_owner(w.engine, STR_LIT("s"), &known, owner, &err), BT_NOMEM);
    assert_false(known);
    w.journal->ops = all;
    engine_world_close(&w);
}

static void a_session_belongs_to_its_first_plan(void **state)
{
    const struct identity ann = sender("ann", ROLE_SUBMITTER);
    const struct identity bob = sender("bob", ROLE_REVIEWER);
    char owner[LIMIT_ID_BYTES + 1];
    char id[UUID_TEXT_LEN + 1];
    struct engine_world w;
    struct bt_error err;
    bool known;

    (void)state;
    engine_world_open(&w);
    submit_as(&w, &ann, "s", id);
    assert_int_equal(access_session_owner(w.engine, STR_LIT("s"), &known, owner, &err), BT_OK);
    assert_true(known);
    assert_string_equal(owner, "ann");
    engine_act_for(w.engine, &bob);
    assert_int_equal(access_take_session(w.engine, STR_LIT("s"), &err), BT_CONFLICT);
    assert_int_equal(access_take_session(w.engine, STR_LIT("other"), &err), BT_OK);
    /* what an admin submits in it stays the owner's */
    submit_as(&w, identity_local(), "s", id);
    assert_int_equal(journal_plan_owner(w.journal, 2, owner, sizeof owner, &err), BT_OK);
    assert_string_equal(owner, "ann");
    engine_world_close(&w);
}

/* The name under which the credential's session is stored. */
static void expect_session(struct engine_world *w, const struct identity *who, const char *asked,
                           const char *want)
{
    struct request rq = {.handle = 0};
    struct str name = str_from(asked);

    engine_act_for(w->engine, who);
    assert_true(access_name_session(w->engine, &rq, &name));
    if (!str_is(name, want)) {
        fail_msg("%s is %.*s, not %s", asked, STR_ARG(name), want);
    }
    engine_act_for(w->engine, NULL);
}

static void put_session(struct engine_world *w, const char *id, const char *owner)
{
    const struct journal_session s = {
        .session_id = str_from(id), .owner = str_from(owner), .created_wall = 1, .updated_wall = 1};
    struct bt_error err;

    assert_int_equal(journal_session_put(w->journal, &s, &err), BT_OK);
}

static void a_submitter_names_its_own_sessions(void **state)
{
    struct identity ann = sender("ann", ROLE_SUBMITTER);
    const struct identity eve = sender("eve", ROLE_REVIEWER);
    struct engine_world w;

    (void)state;
    engine_world_open(&w);
    put_session(&w, "old", "ann"); /* of a version that put no name in front */
    put_session(&w, "bobs", "bob");
    put_session(&w, "both", "bob");
    put_session(&w, "ann:both", "ann");
    expect_session(&w, &ann, "", "");
    expect_session(&w, &ann, "new", "ann:new");
    expect_session(&w, &ann, "ann:new", "ann:new");
    expect_session(&w, &ann, "ann", "ann:ann");
    expect_session(&w, &ann, "ann:", "ann:");
    expect_session(&w, &ann, "bob:new", "ann:bob:new");
    expect_session(&w, &ann, "old", "old");
    expect_session(&w, &ann, "bobs", "ann:bobs");
    expect_session(&w, &ann, "both", "ann:both");
    expect_session(&w, &eve, "new", "new");
    expect_session(&w, identity_local(), "new", "new");
    expect_session(&w, NULL, "new", "new");
    engine_world_close(&w);
}

static void who_sees_and_takes_a_session(void **state)
{
    static const struct {
        enum role role;
        bool sees, takes;
    } cases[] = {{ROLE_OBSERVER, true, false},
                 {ROLE_SUBMITTER, false, false},
                 {ROLE_REVIEWER, true, false},
                 {ROLE_AGENT, false, false},
                 {ROLE_ADMIN, true, true}};
    struct engine_world w;
    struct bt_error err;

    (void)state;
    engine_world_open(&w);
    put_session(&w, "bobs", "bob");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct identity ann = sender("ann", cases[i].role);
        const struct identity bob = sender("bob", cases[i].role);
        engine_act_for(w.engine, &ann);
        assert_int_equal(access_sees_session(w.engine, STR_LIT("bobs")), cases[i].sees);
        assert_true(access_sees_session(w.engine, STR_LIT("nobodys")));
        assert_int_equal(access_take_session(w.engine, STR_LIT("bobs"), &err),
                         cases[i].takes ? BT_OK : BT_CONFLICT);
        assert_int_equal(access_take_session(w.engine, STR_LIT(""), &err), BT_OK);
        engine_act_for(w.engine, &bob);
        assert_int_equal(access_take_session(w.engine, STR_LIT("bobs"), &err),
                         access_role_does(cases[i].role, ROLE_SUBMITTER) ? BT_OK : BT_CONFLICT);
    }
    engine_act_for(w.engine, NULL);
    assert_int_equal(access_take_session(w.engine, STR_LIT("bobs"), &err), BT_OK);
    engine_world_close(&w);
}

/* The time of a schedule in the clientKey of a plan that it started. */
static void keys_of_schedules_name_their_schedule_and_time(void **state)
{
    static const struct {
        const char *key, *name, *time;
    } cases[] = {
        {SCHEDULE_KEYS "nightly/2026-01-02T03:04:05Z", "nightly", "2026-01-02T03:04:05Z"},
        {"ann\x1f" SCHEDULE_KEYS "ann:n/2026", "ann:n", "2026"},
        {SCHEDULE_KEYS "n/trigger/abc", "n", ""},
        {SCHEDULE_KEYS "n/trigger/", "n", ""},
        {SCHEDULE_KEYS "n/trigger", "n", "trigger"},
        {SCHEDULE_KEYS "n/", "n", ""},
        {SCHEDULE_KEYS "n", NULL, NULL},
        {SCHEDULE_KEYS "/2026", NULL, NULL},
        {SCHEDULE_KEYS, NULL, NULL},
        {"mine", NULL, NULL},
        {"", NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct str name = {NULL, 0};
        struct str time = {NULL, 0};
        const bool is = schedule_of_key(str_from(cases[i].key), &name, &time);
        assert_int_equal(is, cases[i].name != NULL);
        assert_true(!is || (str_is(name, cases[i].name) && str_is(time, cases[i].time)));
    }
}

static void client_keys_of_two_credentials_are_two_keys(void **state)
{
    const struct identity ann = sender("ann", ROLE_SUBMITTER);
    const struct identity bob = sender("bob", ROLE_SUBMITTER);
    struct buf keys[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        buf_init(&keys[i], 256);
        access_client_key(i == 0 ? &ann : i == 1 ? &bob : identity_local(), STR_LIT("k"), &keys[i]);
    }
    assert_true(str_is(buf_str(&keys[2]), "k"));
    assert_false(str_eq(buf_str(&keys[0]), buf_str(&keys[1])));
    assert_false(str_eq(buf_str(&keys[0]), buf_str(&keys[2])));
    for (int i = 0; i < 3; i++) {
        buf_done(&keys[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles_do_what_the_table_says),
        cmocka_unit_test(plans_are_seen_and_changed_by_role_and_owner),
        cmocka_unit_test(a_foreign_plan_answers_as_an_unknown_one),
        cmocka_unit_test(a_session_that_cannot_be_read_is_known_and_has_the_owner_of_its_plans),
        cmocka_unit_test(a_session_belongs_to_its_first_plan),
        cmocka_unit_test(a_submitter_names_its_own_sessions),
        cmocka_unit_test(who_sees_and_takes_a_session),
        cmocka_unit_test(keys_of_schedules_name_their_schedule_and_time),
        cmocka_unit_test(client_keys_of_two_credentials_are_two_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
