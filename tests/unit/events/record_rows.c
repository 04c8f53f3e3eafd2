/* Rows of older journals, rows that do not fit their plan, and records that cannot be a row. */
#include "tests/unit/events/codec_bench.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/memory.h"

static struct uuid id_of(uint8_t n)
{
    struct uuid id = {{0}};

    id.b[6] = 0x70;
    id.b[8] = 0x80;
    id.b[15] = n;
    return id;
}

#define P "00000000-0000-7000-8000-000000000009"

static void make_plan(struct bench *b)
{
    codec_plan_make(&b->p, 3, 3, STR_LIT("a task"), 3);
    b->p.plan_id = id_of(9);
}

/* The payload of an event as a row; the core's record comes back. */
static enum bt_code read_row(struct bench *b, enum record_type t, enum msg_type type,
                             const void *payload, struct record *ret)
{
    const struct msg_event base = {
        .seq = 77,
        .plan_seq = 5,
        .event_id = STR_LIT("00000000-0000-7000-8000-000000000001"),
        .type = str_from(record_wire_type(t)),
        .session_id = STR_LIT("chat/1"),
        .plan_id = STR_LIT(P),
        .timestamp = STR_LIT("2023-11-14T22:13:20.000Z"),
    };
    const struct msg_part parts[] = {{MSG_event, &base}, {type, payload}};
    const bool is_public = record_is_public(t);
    const struct record rec = {.type = t};
    struct journal_row row;
    struct bt_error err;

    buf_clear(&b->body);
    assert_ok(
        msg_write(&b->body, WIRE_MSGPACK, is_public ? parts : &parts[1], is_public ? 2 : 1, &err),
        err);
    row = row_of(b, &rec);
    arena_reset(&b->arena);
    return record_decode(&row, &b->p.plan, b->p.plan_id, 1, 1, &b->arena, ret, &err);
}

static void a_decision_of_an_older_journal_has_its_attempt_in_its_id(void **state)
{
    struct bench *b = *state;
    struct msg_ev_review_decided m = {.step_id = STR_LIT("s1x"),
                                      .step_index = 1,
                                      .review_id = STR_LIT(P "/s1x/4"),
                                      .attempt = 2,
                                      .decision = STR_LIT("approve")};
    struct record got;

    make_plan(b);
    msg_set(&m, ev_review_decided, step_index);
    assert_int_equal(read_row(b, REC_REVIEW_DECIDED, MSG_ev_review_decided, &m, &got), BT_OK);
    assert_int_equal(got.attempt, 4);
    assert_int_equal(REC(&got, decided)->serial, 0);
    assert_int_equal(REC(&got, decided)->review, REVIEW_UNKNOWN_OUTCOME); /* the only kind then */
    m.review_id = STR_LIT(P "/s1x/r4");
    m.kind = STR_LIT("approval");
    assert_int_equal(read_row(b, REC_REVIEW_DECIDED, MSG_ev_review_decided, &m, &got), BT_OK);
    assert_int_equal(got.attempt, 2);
    assert_int_equal(REC(&got, decided)->serial, 4);
    assert_int_equal(REC(&got, decided)->review, REVIEW_APPROVAL);
}

static void a_review_id_is_one_of_the_plan_and_of_the_step(void **state)
{
    static const struct {
        const char *id;
        bool step, fits;
    } ids[] = {
        {P "/s1x/r1", true, true},
        {P "/s0x/r1", true, false},
        {P "/s1/r1", true, false},
        {P "/r1", true, false},
        {P "/r1", false, true},
        {P "/s1x/r1", false, false},
        {"00000000-0000-7000-8000-000000000008/s1x/r1", true, false},
        {"00000000-0000-7000-8000-000000000008/r1", false, false},
        {"s1x", true, false},
    };
    struct bench *b = *state;

    make_plan(b);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        struct msg_ev_review_decided m = {.review_id = str_from(ids[i].id),
                                          .decision = STR_LIT("approve")};
        struct record got;
        if (ids[i].step) {
            m.step_id = STR_LIT("s1x");
            m.step_index = 1;
            msg_set(&m, ev_review_decided, step_index);
        }
        if (read_row(b, REC_REVIEW_DECIDED, MSG_ev_review_decided, &m, &got) !=
            (ids[i].fits ? BT_OK : BT_PROTOCOL)) {
            fail_msg("%s", ids[i].id);
        }
    }
}

static void a_step_that_failed_its_plan_is_found_by_its_id_alone(void **state)
{
    struct bench *b = *state;
    struct msg_ev_plan_completed m = {.status = STR_LIT("failed"),
                                      .outcome = STR_LIT("failed"),
                                      .failed_step_id = STR_LIT("s2x")};
    struct record got;

    make_plan(b);
    assert_int_equal(read_row(b, REC_PLAN_COMPLETED, MSG_ev_plan_completed, &m, &got), BT_OK);
    assert_int_equal(got.step, 2);
    m.failed_step_id = STR_LIT("gone");
    assert_int_equal(read_row(b, REC_PLAN_COMPLETED, MSG_ev_plan_completed, &m, &got), BT_OK);
    assert_int_equal(got.step, STEP_NONE);
    m.failed_step_id = STR_LIT("");
    assert_int_equal(read_row(b, REC_PLAN_COMPLETED, MSG_ev_plan_completed, &m, &got), BT_OK);
    assert_int_equal(got.step, STEP_NONE);
}

static void a_row_without_a_phase_is_an_execution(void **state)
{
    struct bench *b = *state;
    struct msg_rec_step m = {.step_index = 1, .attempt = 2};
    struct record got;

    make_plan(b);
    assert_int_equal(read_row(b, REC_STEP_ASSIGNED, MSG_rec_step, &m, &got), BT_OK);
    assert_int_equal(REC(&got, assigned)->phase, PHASE_EXECUTE);
    assert_int_equal(got.agent, 1); /* the step's */
    m.agent_id = STR_LIT("calc");
    m.phase = STR_LIT("verify");
    assert_int_equal(read_row(b, REC_STEP_ASSIGNED, MSG_rec_step, &m, &got), BT_OK);
    assert_int_equal(REC(&got, assigned)->phase, PHASE_VERIFY);
    assert_int_equal(got.agent, 2);
    m.step_index = 2;
    assert_int_equal(read_row(b, REC_STEP_ASSIGNED, MSG_rec_step, &m, &got), BT_OK);
    m.step_index = 3; /* the plan has three */
    assert_int_equal(read_row(b, REC_STEP_ASSIGNED, MSG_rec_step, &m, &got), BT_PROTOCOL);
}

/* An agent that nobody was granted is known by the steps that have it. */
static void agents_of_steps_are_agents_of_the_plan(void **state)
{
    struct bench *b = *state;
    const struct record rec = {.type = REC_STEP_ASSIGNED, .step = 0, .attempt = 1, .agent = 1};
    const struct record own = {.type = REC_STEP_ASSIGNED, .step = 1, .attempt = 1, .agent = 1};
    const struct record_extra x = {.seq = 77, .plan = &b->p.plan, .plan_id = id_of(9)};
    struct msg_rec_step m;
    struct bt_error err;

    make_plan(b);
    b->p.plan.agents.n = 0;
    encode(b, &rec, &x);
    assert_int_equal(decode(b, &rec, 1, 1).agent, 1);

    /* Without a registry only a step's own agent has a name. */
    assert_ok(record_encode(&own, &x, NULL, &b->body, &b->topic, &err), err);
    assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_rec_step, &m, &err), err);
    assert_true(str_is(m.agent_id, "sql-agent"));
    assert_ok(record_encode(&rec, &x, NULL, &b->body, &b->topic, &err), err);
    assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_rec_step, &m, &err), err);
    assert_int_equal(m.agent_id.len, 0);
}

/* The name of an agent is on its card; who has none is called as its id. */
static void who_has_a_step_is_named_as_on_its_card(void **state)
{
    static const struct {
        uint32_t agent;
        const char *id, *name;
    } agents[] = {
        {0, "files", "files"}, {1, "sql-agent", "The SQL agent"}, {2, "calc", "calc"}, {3, "", ""},
        {AGENT_NONE, "", ""},
    };
    struct bench *b = *state;

    make_plan(b);
    for (size_t i = 0; i < sizeof agents / sizeof agents[0]; i++) {
        const struct record rec = {
            .type = REC_STEP_STARTED, .step = 0, .attempt = 1, .agent = agents[i].agent};
        const struct record_extra x = extra_of(b, &rec);
        struct msg_ev_plan_step_started m;
        struct bt_error err;
        encode(b, &rec, &x);
        assert_ok(
            msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_plan_step_started, &m, &err),
            err);
        assert_true(str_is(m.agent_id, agents[i].id));
        assert_true(str_is(m.agent_name, agents[i].name));
    }
    b->card.name = STR_LIT("");
    const struct record rec = {.type = REC_STEP_STARTED, .step = 1, .attempt = 1, .agent = 1};
    const struct record_extra x = extra_of(b, &rec);
    struct msg_ev_plan_step_started m;
    struct bt_error err;
    encode(b, &rec, &x);
    assert_ok(msg_read_doc(&b->arena, doc_from_buf(&b->body), MSG_ev_plan_step_started, &m, &err),
              err);
    assert_true(str_is(m.agent_name, "sql-agent"));
}

static void a_record_that_does_not_fit_its_plan_is_no_row(void **state)
{
    struct bench *b = *state;
    struct record_extra x;
    struct bt_error err;
    char want[64];

    make_plan(b);
    for (int t = 0; t < REC_COUNT; t++) {
        struct record rec = {.type = (enum record_type)t, .step = 3, .wall = 1};
        const bool of_plan = record_about(rec.type) == ABOUT_PLAN;
        enum bt_code code;
        x = extra_of(b, &rec);
        code = record_encode(&rec, &x, b->reg, &b->body, &b->topic, &err);
        if (code != BT_OK) { /* a step is asked for, and the plan has three */
            (void)snprintf(want, sizeof want, "record %d does not fit its plan", t);
            assert_int_equal(code, BT_INTERNAL);
            assert_string_equal(err.msg, want);
            rec.step = 2;
            assert_ok(record_encode(&rec, &x, b->reg, &b->body, &b->topic, &err), err);
        }
        x.plan = NULL;
        code = record_encode(&rec, &x, b->reg, &b->body, &b->topic, &err);
        assert_int_equal(code, of_plan ? BT_INTERNAL : BT_OK);
        if (of_plan) {
            assert_string_equal(err.msg, "a record about a plan, without it");
        }
    }
    struct record rec = {.type = REC_HANDOFF, .step = 1};
    REC(&rec, handoff)->kind = HANDOFF_KIND_COUNT;
    x = extra_of(b, &rec);
    assert_int_equal(record_encode(&rec, &x, b->reg, &b->body, &b->topic, &err), BT_INTERNAL);
}

/* What is wrong with a row says its number and its type. */
static void a_row_that_cannot_be_read_says_which_it_is(void **state)
{
    struct bench *b = *state;
    const struct record rec = {.type = REC_STEP_STARTED, .step = 1, .attempt = 1};
    const struct record_extra x = extra_of(b, &rec);
    struct journal_row row;
    struct record got;
    struct bt_error err;

    make_plan(b);
    encode(b, &rec, &(struct record_extra){.seq = 77, .plan = &b->p.plan, .plan_id = id_of(9)});
    (void)x;
    row = row_of(b, &rec);
    row.type = STR_LIT("from_the_future");
    assert_int_equal(record_decode(&row, &b->p.plan, id_of(9), 1, 1, &b->arena, &got, &err),
                     BT_PROTOCOL);
    assert_string_equal(err.msg, "row of seq 77 (from_the_future): no record about a plan");
    row = row_of(b, &rec);
    row.seq = 76;
    assert_int_equal(record_decode(&row, &b->p.plan, id_of(9), 1, 1, &b->arena, &got, &err),
                     BT_PROTOCOL);
    assert_string_equal(err.msg, "row of seq 76 (plan_step_started): does not fit its plan");
    row.body_len = 3;
    assert_int_equal(record_decode(&row, &b->p.plan, id_of(9), 1, 1, &b->arena, &got, &err),
                     BT_PROTOCOL);
    assert_non_null(strstr(err.msg, "row of seq 76 (plan_step_started): "));
    assert_null(strstr(err.msg, "does not fit"));
}

static void a_topic_that_has_no_room_is_an_error(void **state)
{
    struct bench *b = *state;
    const struct record rec = {.type = REC_AGENT_UP, .wall = 1};
    const struct record_extra x = extra_of(b, &rec);
    struct buf topic;
    struct bt_error err;

    buf_init(&topic, strlen("agent/files/agent_up"));
    assert_ok(record_encode(&rec, &x, NULL, &b->body, &topic, &err), err);
    buf_done(&topic);
    buf_init(&topic, strlen("agent/files/agent_up") - 1);
    assert_int_equal(record_encode(&rec, &x, NULL, &b->body, &topic, &err), BT_LIMIT);
    buf_done(&topic);
}

/* Each record whole, or none: a review without its id could never be decided. */
static void without_memory_there_is_no_row_in_part(void **state)
{
    struct bench *b = *state;
    struct buf whole;

    make_plan(b);
    b->p.steps[1].rules->policy.timeout_ms = 1500;
    buf_init(&whole, LIMIT_EVENT_BYTES);
    for (int t = 0; t < REC_COUNT; t++) {
        struct record rec = {.type = (enum record_type)t,
                             .step = 1,
                             .attempt = 1,
                             .wall = 1,
                             .text = STR_LIT("Step execution timeout")};
        struct record_extra x;
        bool failed = true;
        if (rec.type == REC_STEP_COMPLETED) {
            REC(&rec, step_completed)->error_class = CLASS_TIMEOUT;
            REC(&rec, step_completed)->status = STEP_FAILED;
        } else if (rec.type == REC_STEP_WAITING) {
            REC(&rec, waiting)->serial = 3;
        } else if (rec.type == REC_PLAN_COMPLETED) {
            REC(&rec, plan_completed)->failure = PLAN_FAILURE_STEP;
        }
        x = extra_of(b, &rec);
        encode(b, &rec, &x);
        buf_clear(&whole);
        buf_add(&whole, b->body.at, b->body.len);
        for (long n = 1; failed; n++) {
            struct buf body;
            struct buf topic;
            enum bt_code code;
            buf_init(&body, LIMIT_EVENT_BYTES);
            buf_init(&topic, 1024);
            memory_begin(n);
            code = record_encode(&rec, &x, b->reg, &body, &topic, NULL);
            if (code == BT_OK) {
                assert_int_equal(body.len, whole.len);
                assert_memory_equal(body.at, whole.at, whole.len);
            }
            buf_done(&body);
            buf_done(&topic);
            failed = memory_end();
            assert_int_equal(code, failed ? BT_NOMEM : BT_OK);
            assert_true(n < 100);
        }
    }
    buf_done(&whole);
}

static void a_text_that_cannot_be_repaired_says_so(void **state)
{
    struct bench *b = *state;
    const struct record rec = {.type = REC_STEP_RETRY, .attempt = 1, .text = {"a\xff", 2}};
    struct record_extra x;
    unsigned unreadable = 0;
    bool failed = true;

    make_plan(b);
    x = extra_of(b, &rec);
    for (long n = 1; failed; n++) {
        struct buf body;
        struct buf topic;
        enum bt_code code;
        buf_init(&body, LIMIT_EVENT_BYTES);
        buf_init(&topic, 1024);
        memory_begin(n);
        code = record_encode(&rec, &x, b->reg, &body, &topic, NULL);
        if (code == BT_OK && memmem(body.at, body.len, "(unreadable)", 12) != NULL) {
            unreadable++;
        } else {
            assert_true(code == BT_NOMEM || memmem(body.at, body.len, "a?", 2) != NULL);
        }
        buf_done(&body);
        buf_done(&topic);
        failed = memory_end();
        assert_true(n < 100);
    }
    assert_int_equal(unreadable, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_decision_of_an_older_journal_has_its_attempt_in_its_id),
        TEST(a_review_id_is_one_of_the_plan_and_of_the_step),
        TEST(a_step_that_failed_its_plan_is_found_by_its_id_alone),
        TEST(a_row_without_a_phase_is_an_execution),
        TEST(agents_of_steps_are_agents_of_the_plan),
        TEST(who_has_a_step_is_named_as_on_its_card),
        TEST(a_record_that_does_not_fit_its_plan_is_no_row),
        TEST(a_row_that_cannot_be_read_says_which_it_is),
        TEST(a_topic_that_has_no_room_is_an_error),
        TEST(without_memory_there_is_no_row_in_part),
        TEST(a_text_that_cannot_be_repaired_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
