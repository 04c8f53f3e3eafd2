/* The port's contract for jobs, sessions, messages and turns, tested on both implementations. */
#include "tests/unit/journal/journal_fixture.h"

#include <stdio.h>
#include <string.h>

static uint64_t say(struct journal *j, const char *session, const char *role, const char *text)
{
    struct journal_message m = {
        .role = str_from(role), .text = str_from(text), .wall = 1000 + strlen(text)};
    struct bt_error err;
    uint64_t n = 0;
    assert_ok(journal_message_add(j, str_from(session), &m, &n, &err), err);
    return n;
}

static bool see_message(const struct journal_message *m, void *self)
{
    struct seen *s = self;
    s->n++;
    s->len += (size_t)snprintf(s->text + s->len, sizeof s->text - s->len, "%llu:%.*s:%.*s%s ",
                               (unsigned long long)m->n, STR_ARG(m->role), STR_ARG(m->text),
                               m->damaged ? "!" : "");
    return true;
}

static bool see_session(const struct journal_session *p, void *self)
{
    struct seen *s = self;
    s->n++;
    s->len += (size_t)snprintf(s->text + s->len, sizeof s->text - s->len, "%.*s/%llu ",
                               STR_ARG(p->session_id), (unsigned long long)p->messages);
    return true;
}

static bool see_turn(const struct journal_turn *t, void *self)
{
    struct seen *s = self;
    s->n++;
    s->len += (size_t)snprintf(s->text + s->len, sizeof s->text - s->len, "%.*s:%.*s ",
                               STR_ARG(t->session_id), STR_ARG(t->action));
    return true;
}

static void expect_messages(struct journal *j, const char *session, uint64_t before, uint32_t limit,
                            const char *want)
{
    struct seen s = {{0}};
    struct bt_error err;
    assert_ok(journal_messages(j, str_from(session), before, limit, see_message, &s, &err), err);
    assert_string_equal(s.text, want);
}

static void messages_are_numbered_by_session_and_read_newest_first(void **state)
{
    struct fixture *f = *state;
    struct seen s = {{0}};
    struct bt_error err;

    assert_int_equal(journal_messages(f->j, STR_LIT("a"), 0, 9, see_message, &s, &err),
                     BT_NOT_FOUND);
    assert_int_equal(say(f->j, "a", "user", "one"), 1);
    assert_int_equal(say(f->j, "a", "assistant", "two"), 2);
    assert_int_equal(say(f->j, "b", "user", ""), 1);
    assert_int_equal(say(f->j, "a", "user", "three"), 3);
    expect_messages(f->j, "a", 0, 9, "3:user:three 2:assistant:two 1:user:one "); /* batched */
    commit(f->j);
    fixture_reopen(f);
    expect_messages(f->j, "a", 0, 2, "3:user:three 2:assistant:two ");
    expect_messages(f->j, "a", 2, 9, "1:user:one ");
    expect_messages(f->j, "a", 1, 9, "");
    expect_messages(f->j, "a", 99, 1, "3:user:three ");
    expect_messages(f->j, "a", 0, 0, "");
    expect_messages(f->j, "b", 0, 9, "1:user: ");
}

static void what_was_not_committed_was_not_said(void **state)
{
    struct fixture *f = *state;
    struct journal_turn t = {.turn_id = uuid_new(), .session_id = STR_LIT("a"), .plan = uuid_new()};
    struct journal_session p;
    struct bt_error err;

    (void)say(f->j, "a", "user", "kept");
    commit(f->j);
    (void)say(f->j, "a", "user", "lost");
    (void)say(f->j, "new", "user", "lost");
    assert_ok(journal_turn_put(f->j, &t, &err), err);
    fixture_reopen(f);
    expect_messages(f->j, "a", 0, 9, "1:user:kept ");
    assert_int_equal(journal_session(f->j, STR_LIT("new"), &p, &err), BT_NOT_FOUND);
    assert_int_equal(journal_turn_of_plan(f->j, t.plan, &t, &err), BT_NOT_FOUND);
    assert_int_equal(say(f->j, "a", "user", "again"), 2);
}

static void a_message_and_a_session_come_back_with_all_their_fields(void **state)
{
    struct fixture *f = *state;
    struct journal_message m = {.role = STR_LIT("assistant"),
                                .text = STR_LIT("text with \"quotes\""),
                                .cut = true,
                                .turn = uuid_new(),
                                .plan = uuid_new(),
                                .wall = 77};
    struct journal_session p = {.session_id = STR_LIT("s")};
    struct seen s = {{0}};
    struct bt_error err;
    uint64_t n;

    assert_ok(journal_message_add(f->j, STR_LIT("s"), &m, &n, &err), err);
    assert_ok(journal_session(f->j, STR_LIT("s"), &p, &err), err);
    assert_int_equal(p.created_wall, 77);
    p.summary = 5;
    p.summarized = 1;
    p.agent_calls = 3;
    p.tool_calls = 4;
    assert_ok(journal_session_put(f->j, &p, &err), err);
    m.wall = 99;
    assert_ok(journal_message_add(f->j, STR_LIT("s"), &m, &n, &err), err);
    commit(f->j);
    fixture_reopen(f);
    p = (struct journal_session){.messages = 0};
    assert_ok(journal_session(f->j, STR_LIT("s"), &p, &err), err);
    assert_int_equal(p.created_wall, 77);
    assert_int_equal(p.updated_wall, 99);
    assert_int_equal(p.messages, 2);
    assert_int_equal(p.summary, 5);
    assert_int_equal(p.summarized, 1);
    assert_int_equal(p.agent_calls, 3);
    assert_int_equal(p.tool_calls, 4);
    assert_ok(journal_messages(f->j, STR_LIT("s"), 0, 1, see_message, &s, &err), err);
    assert_string_equal(s.text, "2:assistant:text with \"quotes\" ");
}

static void sessions_are_listed_by_who_spoke_last(void **state)
{
    struct journal *j = ((struct fixture *)*state)->j;
    struct seen s = {{0}};
    struct bt_error err;

    (void)say(j, "first", "user", "1"); /* the clock of say() is the length of the text */
    (void)say(j, "second", "user", "22");
    (void)say(j, "third", "user", "333");
    (void)say(j, "first", "user", "4444");
    commit(j);
    assert_ok(journal_sessions(j, 9, see_session, &s, &err), err);
    assert_string_equal(s.text, "first/2 third/1 second/1 ");
    s = (struct seen){{0}};
    assert_ok(journal_sessions(j, 2, see_session, &s, &err), err);
    assert_string_equal(s.text, "first/2 third/1 ");
}

static void an_open_turn_is_found_by_what_it_waits_for_and_an_ended_one_by_its_key(void **state)
{
    struct fixture *f = *state;
    struct journal_turn t = {.turn_id = uuid_new(),
                             .session_id = STR_LIT("s"),
                             .client_key = STR_LIT("k"),
                             .body_hash = 42,
                             .asked = 7,
                             .started_wall = 1,
                             .context_blob = 12,
                             .plan = uuid_new()};
    struct journal_turn got;
    struct seen s = {{0}};
    struct bt_error err;

    assert_ok(journal_turn_put(f->j, &t, &err), err);
    commit(f->j);
    fixture_reopen(f);
    assert_ok(journal_turn_of_plan(f->j, t.plan, &got, &err), err);
    assert_true(uuid_eq(got.turn_id, t.turn_id));
    assert_true(str_is(got.session_id, "s") && str_is(got.client_key, "k"));
    assert_int_equal(got.asked, 7);
    assert_int_equal(journal_turn(f->j, uuid_new(), &got, &err), BT_NOT_FOUND);
    assert_ok(journal_turn(f->j, t.turn_id, &got, &err), err);
    assert_int_equal(got.context_blob, 12);
    got.action = STR_LIT("new_plan");
    got.ended_wall = 9;
    got.answered = 8;
    assert_ok(journal_turn_put(f->j, &got, &err), err); /* with the strings of the look-up */
    assert_int_equal(journal_turn_of_plan(f->j, t.plan, &got, &err), BT_NOT_FOUND);
    assert_ok(journal_turns_open(f->j, see_turn, &s, &err), err);
    assert_int_equal(s.n, 0);
    commit(f->j);
    fixture_reopen(f);
    assert_ok(journal_turn_by_key(f->j, STR_LIT("s"), STR_LIT("k"), &got, &err), err);
    assert_int_equal(got.answered, 8);
    assert_int_equal(got.body_hash, 42);
    assert_true(str_is(got.action, "new_plan"));
    assert_true(uuid_eq(got.plan, t.plan));
    assert_int_equal(journal_turn_by_key(f->j, STR_LIT("other"), STR_LIT("k"), &got, &err),
                     BT_NOT_FOUND);
}

static void a_key_belongs_to_one_turn_of_a_session(void **state)
{
    struct journal *j = ((struct fixture *)*state)->j;
    struct journal_turn t = {
        .turn_id = uuid_new(), .session_id = STR_LIT("s"), .client_key = STR_LIT("k")};
    struct seen s = {{0}};
    struct bt_error err;

    assert_ok(journal_turn_put(j, &t, &err), err);
    assert_ok(journal_turn_put(j, &t, &err), err); /* the same turn */
    t.turn_id = uuid_new();
    assert_int_equal(journal_turn_put(j, &t, &err), BT_CONFLICT);
    t.session_id = STR_LIT("another");
    assert_ok(journal_turn_put(j, &t, &err), err);
    t.turn_id = uuid_new();
    t.client_key = STR_LIT("");
    assert_ok(journal_turn_put(j, &t, &err), err);
    t.turn_id = uuid_new();
    assert_ok(journal_turn_put(j, &t, &err), err);
    assert_ok(journal_turns_open(j, see_turn, &s, &err), err);
    assert_int_equal(s.n, 4);
}

static void jobs_are_recovered_like_plans_but_never_listed_with_them(void **state)
{
    struct fixture *f = *state;
    struct str any = {NULL, 0};
    struct journal_plan p = {.plan_id = uuid_new(),
                             .session_id = STR_LIT("s1"),
                             .goal = STR_LIT("ask"),
                             .status = STR_LIT("running"),
                             .job = STR_LIT("converse"),
                             .doc = "d",
                             .doc_len = 1};
    struct journal_plan got;
    struct seen s = {{0}};
    struct bt_error err;
    uint64_t ix;

    (void)add_plan(f->j, "", "plan");
    assert_ok(journal_plan_add(f->j, &p, &ix, &err), err);
    (void)add_plan(f->j, "", "other");
    commit(f->j);
    assert_ok(journal_plans(f->j, any, any, 0, 9, see_plan, &s, &err), err);
    assert_ok(journal_plans(f->j, STR_LIT("running"), any, 0, 1, see_plan, &s, &err), err);
    assert_ok(journal_plans(f->j, any, STR_LIT("s1"), 3, 9, see_plan, &s, &err), err);
    assert_string_equal(s.text, "3:other/running 1:plan/running 3:other/running "
                                "1:plan/running ");
    s = (struct seen){{0}};
    assert_ok(journal_jobs(f->j, any, 0, 9, see_plan, &s, &err), err);
    assert_ok(journal_jobs(f->j, STR_LIT("s1"), 0, 9, see_plan, &s, &err), err);
    assert_ok(journal_jobs(f->j, STR_LIT("else"), 0, 9, see_plan, &s, &err), err);
    assert_string_equal(s.text, "2:ask/running 2:ask/running ");
    fixture_reopen(f);
    s = (struct seen){{0}};
    assert_ok(journal_plans_open(f->j, see_plan, &s, &err), err);
    assert_string_equal(s.text, "1:plan/running 2:ask/running 3:other/running ");
    assert_ok(journal_plan_by_id(f->j, p.plan_id, &got, &err), err);
    assert_true(str_is(got.job, "converse"));
}

#define BOTH(test)                                                                                 \
    {#test "[sqlite]", test, fixture_sqlite, fixture_done, NULL},                                  \
    {                                                                                              \
#test "[memory]", test, fixture_memory, fixture_done, NULL                                 \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(messages_are_numbered_by_session_and_read_newest_first),
        BOTH(what_was_not_committed_was_not_said),
        BOTH(a_message_and_a_session_come_back_with_all_their_fields),
        BOTH(sessions_are_listed_by_who_spoke_last),
        BOTH(an_open_turn_is_found_by_what_it_waits_for_and_an_ended_one_by_its_key),
        BOTH(a_key_belongs_to_one_turn_of_a_session),
        BOTH(jobs_are_recovered_like_plans_but_never_listed_with_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
