/* What a card may have, and that it is a copy. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "agents/sdk/card.h"
#include "agents/sdk/reply.h"

enum { TAGS_MAX = 32, EXAMPLES_MAX = 16 };

static void nothing(struct bt_step *step, void *self)
{
    (void)self;
    bt_step_reply_text(step, "ran");
}

static enum bt_code named(const char *id, struct bt_error *err)
{
    const struct bt_agent_def def = {.agent_id = id};
    struct card card;
    const enum bt_code code = card_init(&card, &def, err);

    assert_int_equal(card.msg.agent_id.len, code == BT_OK && id != NULL ? strlen(id) : 0);
    card_done(&card);
    return code;
}

static void an_id_has_1_to_64_letters_digits_and_marks(void **state)
{
    static const char *const good[] = {"a", "Z", "0", "9", "_", "a.b", "a-b", "zA9_.-"};
    static const char *const bad[] = {"", ".a", "-a", "a b", "a/b", "a:b", "\xC3\xA4", "a@", "a["};
    char longest[LIMIT_ID_BYTES + 2];
    struct bt_error err;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(named(good[i], &err), BT_OK);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(named(bad[i], &err), BT_INVALID);
        assert_non_null(strstr(err.msg, "expected 1 to 64 of [A-Za-z0-9_.-]"));
    }
    memset(longest, 'a', sizeof longest);
    longest[LIMIT_ID_BYTES + 1] = 0;
    assert_int_equal(named(longest, &err), BT_INVALID);
    longest[LIMIT_ID_BYTES] = 0;
    assert_int_equal(named(longest, &err), BT_OK);
    assert_int_equal(named(NULL, &err), BT_OK); /* it may come later */
}

static void a_card_needs_an_id_and_a_skill(void **state)
{
    const struct bt_skill skill = {.id = "s", .run = nothing};
    struct card card;
    struct bt_error err;

    (void)state;
    assert_int_equal(card_init(&card, &(struct bt_agent_def){.agent_id = NULL}, &err), BT_OK);
    assert_int_equal(card_check_complete(&card, &err), BT_INVALID);
    assert_string_equal(err.msg, "the agent has no id; give --agent-id ID");
    assert_int_equal(card_set_id(&card, NULL, &err), BT_INVALID);
    assert_int_equal(card_set_id(&card, "a", &err), BT_OK);
    assert_int_equal(card_check_complete(&card, &err), BT_INVALID);
    assert_string_equal(err.msg, "the agent 'a' has no skills");
    assert_int_equal(card_add(&card, &skill, &err), BT_OK);
    assert_int_equal(card_check_complete(&card, &err), BT_OK);
    assert_int_equal(card_add(&card, &skill, &err), BT_CONFLICT);
    card_done(&card);
    card_done(&card); /* and again */
}

static void a_card_has_64_skills_and_no_more(void **state)
{
    struct card card;
    struct bt_error err;
    char id[16];

    (void)state;
    assert_int_equal(card_init(&card, &(struct bt_agent_def){.agent_id = "a"}, &err), BT_OK);
    for (int i = 0; i <= LIMIT_SKILLS; i++) {
        (void)snprintf(id, sizeof id, "s%d", i);
        assert_int_equal(card_add(&card, &(struct bt_skill){.id = id, .run = nothing}, &err),
                         i < LIMIT_SKILLS ? BT_OK : BT_LIMIT);
    }
    assert_string_equal(err.msg, "skill 's64': an agent has at most 64 skills");
    assert_non_null(card_find(&card, "s63"));
    assert_null(card_find(&card, "s64"));
    assert_null(card_find(&card, "")); /* which one? */
    card_done(&card);
}

/* Tags or examples, so many. */
static enum bt_code listed(size_t tags, size_t examples, struct bt_error *err)
{
    const char *list[TAGS_MAX + 2] = {NULL};
    const char *other[EXAMPLES_MAX + 2] = {NULL};
    struct arena arena = {0};
    struct msg_card view;
    struct card card;
    enum bt_code code;

    for (size_t i = 0; i < tags; i++) {
        list[i] = "tag";
    }
    for (size_t i = 0; i < examples; i++) {
        other[i] = "example";
    }
    assert_int_equal(card_init(&card, &(struct bt_agent_def){.agent_id = "a"}, err), BT_OK);
    code = card_add(
        &card, &(struct bt_skill){.id = "s", .run = nothing, .tags = list, .examples = other}, err);
    if (code == BT_OK) {
        assert_int_equal(card_view(&card, &arena, &view, err), BT_OK);
        assert_int_equal(view.skills[0].tags_n, tags);
        assert_int_equal(view.skills[0].examples_n, examples);
        arena_done(&arena);
    } else {
        assert_int_equal(card.skills_n, 0);
    }
    card_done(&card);
    return code;
}

static void a_skill_has_32_tags_and_16_examples_at_most(void **state)
{
    struct bt_error err;

    (void)state;
    assert_int_equal(listed(0, 0, &err), BT_OK);
    assert_int_equal(listed(TAGS_MAX, EXAMPLES_MAX, &err), BT_OK);
    assert_int_equal(listed(TAGS_MAX + 1, 0, &err), BT_LIMIT);
    assert_string_equal(err.msg, "skill 's': 33 entries in a list of tags or examples; at most 32");
    assert_int_equal(listed(0, EXAMPLES_MAX + 1, &err), BT_LIMIT);
}

/* What the program frees afterwards does not change the card. */
static void a_card_is_a_copy_with_all_that_was_said(void **state)
{
    char id[] = "s";
    char tag[] = "one";
    char example[] = "say x";
    char name[] = "Name";
    char text[] = "Does";
    const char *tags[] = {BT_TAG_QUICK, tag, "two", NULL};
    const char *examples[] = {example, NULL};
    const struct bt_agent_def def = {.agent_id = "a",
                                     .name = "A",
                                     .icon = "i",
                                     .color = "c",
                                     .description = "d",
                                     .version = "7"};
    struct bt_skill skill = {.id = id,
                             .name = name,
                             .description = text,
                             .tags = tags,
                             .examples = examples,
                             .input_schema = "{\"type\":\"object\"}",
                             .output_schema = "{\"type\":\"string\"}",
                             .max_ms = 70,
                             .run = nothing};
    struct arena arena = {0};
    struct msg_card view;
    struct card card;
    struct bt_error err;

    (void)state;
    assert_int_equal(card_init(&card, &def, &err), BT_OK);
    assert_int_equal(card_add(&card, &skill, &err), BT_OK);
    id[0] = tag[0] = example[0] = name[0] = text[0] = '!';
    skill = (struct bt_skill){.id = "t", .run = nothing, .effects = "unsafe"};
    assert_int_equal(card_add(&card, &skill, &err), BT_OK);
    assert_int_equal(card_view(&card, &arena, &view, &err), BT_OK);
    assert_true(str_is(view.agent_id, "a") && str_is(view.name, "A") && str_is(view.icon, "i") &&
                str_is(view.color, "c") && str_is(view.description, "d") &&
                str_is(view.version, "7"));
    assert_int_equal(view.skills_n, 2);
    assert_true(str_is(view.skills[0].id, "s") && str_is(view.skills[0].name, "Name") &&
                str_is(view.skills[0].description, "Does") &&
                str_is(view.skills[0].effects, "idempotent"));
    assert_int_equal(view.skills[0].max_ms, 70);
    assert_int_equal(view.skills[0].tags_n, 2); /* that it is quick is the library's alone */
    assert_true(str_is(view.skills[0].tags[0], "one") && str_is(view.skills[0].tags[1], "two"));
    assert_int_equal(view.skills[0].examples_n, 1);
    assert_true(str_is(view.skills[0].examples[0], "say x"));
    assert_true(
        str_is(doc_string(doc_get(view.skills[0].input_schema, STR_LIT("type"))), "object"));
    assert_true(
        str_is(doc_string(doc_get(view.skills[0].output_schema, STR_LIT("type"))), "string"));
    assert_true(str_is(view.skills[1].effects, "unsafe"));
    assert_int_equal(view.skills[1].tags_n, 0);
    assert_null(view.skills[1].input_schema.ptr);
    assert_true(card.skills[0].quick);
    assert_false(card.skills[1].quick);
    assert_non_null(card.skills[0].input_compiled);
    assert_null(card.skills[1].input_compiled); /* any value fits */
    arena_done(&arena);
    card_done(&card);
}

static void effects_have_three_words(void **state)
{
    static const char *const good[] = {"none", "idempotent", "unsafe"};
    struct card card;
    struct bt_error err;

    (void)state;
    assert_int_equal(card_init(&card, &(struct bt_agent_def){.agent_id = "a"}, &err), BT_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(
            card_add(&card, &(struct bt_skill){.id = good[i], .run = nothing, .effects = good[i]},
                     &err),
            BT_OK);
        assert_string_equal(card.skills[i].skill.effects, good[i]);
    }
    assert_int_equal(
        card_add(&card, &(struct bt_skill){.id = "x", .run = nothing, .effects = "NONE"}, &err),
        BT_INVALID);
    card_done(&card);
}

/* ---- replies ---- */

static void a_reply_accepts_nothing_and_is_freed_once(void **state)
{
    struct reply r = {.outcome = REPLY_NONE};

    (void)state;
    reply_done(NULL);
    reply_done(&r);
    reply_init(&r);
    buf_add_cstr(&r.text, "text");
    assert_true(reply_bytes(&r) >= 4);
    reply_done(&r);
    reply_done(&r);
    assert_int_equal(reply_bytes(&r), 0);
}

/* Each of its parts counts: 64 results are kept within 16 MiB. */
static void the_bytes_of_a_reply_are_those_of_all_its_parts(void **state)
{
    struct reply r;
    size_t before = 0;

    (void)state;
    reply_init(&r);
    struct buf *const parts[] = {&r.text, &r.data, &r.details, &r.state, &r.schema, &r.calls};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        buf_add_cstr(parts[i], "part");
        assert_int_equal(reply_bytes(&r), before + parts[i]->cap);
        before += parts[i]->cap;
    }
    r.message = arena_str(&r.arena, STR_LIT("message"));
    assert_true(reply_bytes(&r) > before);
    reply_done(&r);
}

static void each_code_has_its_class(void **state)
{
    (void)state;
    assert_int_equal(reply_class_of(BT_INVALID), CLASS_VALIDATION_ERROR);
    assert_int_equal(reply_class_of(BT_UNAUTHORIZED), CLASS_PERMISSION_DENIED);
    assert_int_equal(reply_class_of(BT_NOT_FOUND), CLASS_RESOURCE_NOT_FOUND);
    assert_int_equal(reply_class_of(BT_BUSY), CLASS_SERVICE_UNAVAILABLE);
    assert_int_equal(reply_class_of(BT_TIMEOUT), CLASS_TIMEOUT);
    assert_int_equal(reply_class_of(BT_CANCELLED), CLASS_CANCELLED);
    assert_int_equal(reply_class_of(BT_HISTORY_CHANGED), CLASS_RESOURCE_NOT_FOUND);
    assert_int_equal(reply_class_of((enum bt_code)BT_CODE_COUNT), CLASS_UNKNOWN);
}

static struct msg_step_result seen(const struct reply *r)
{
    struct msg_step_result m = {.has = 0};

    reply_view(r, &m);
    return m;
}

static void a_failure_drops_the_reply_before_it_and_keeps_the_details(void **state)
{
    struct reply r;
    struct msg_step_result m;

    (void)state;
    reply_init(&r);
    r.outcome = REPLY_COMPLETED;
    r.has_text = r.truncated = true;
    r.artifacts_n = 1;
    r.retry_after_ms = 5;
    buf_add_cstr(&r.text, "text");
    doc_put_bool(&r.data, true);
    doc_put_map(&r.details, 0);
    doc_put_map(&r.state, 0);
    reply_fail(&r, BT_TIMEOUT, CLASS_TIMEOUT, true, "too slow");
    m = seen(&r);
    assert_true(str_is(m.outcome, "failed"));
    assert_true(str_is(m.failure.code, "TIMEOUT") && str_is(m.failure.class_, "TIMEOUT"));
    assert_true(str_is(m.failure.message, "too slow"));
    assert_true(m.failure.retryable && msg_has(&m.failure, error, retryable));
    assert_false(msg_has(&m.failure, error, retry_after_ms));
    assert_int_equal(m.failure.details.len, 1);
    assert_false(msg_has(&m, step_result, result));
    assert_true(msg_has(&m, step_result, failure));
    assert_true(!r.has_text && !r.truncated && r.artifacts_n == 0);
    assert_int_equal(r.text.len + r.data.len + r.state.len, 0);
    r.retry_after_ms = 7;
    m = seen(&r);
    assert_int_equal(m.failure.retry_after_ms, 7);
    assert_true(msg_has(&m.failure, error, retry_after_ms));
    reply_done(&r);
}

static void a_message_has_4096_bytes_at_most(void **state)
{
    char text[4096 + 2];
    struct reply r;

    (void)state;
    reply_init(&r);
    memset(text, 'x', sizeof text);
    text[4097] = 0;
    reply_fail(&r, BT_INTERNAL, CLASS_UNKNOWN, false, text);
    assert_int_equal(r.message.len, 4096);
    text[4096] = 0;
    reply_fail(&r, BT_INTERNAL, CLASS_UNKNOWN, false, text);
    assert_int_equal(r.message.len, 4096);
    text[4095] = 0;
    reply_fail(&r, BT_INTERNAL, CLASS_UNKNOWN, false, text);
    assert_int_equal(r.message.len, 4095);
    reply_done(&r);
}

static void a_result_of_3_mib_is_taken_and_one_byte_more_is_not(void **state)
{
    struct msg_step_result m;
    struct reply r;

    (void)state;
    for (size_t more = 0; more < 2; more++) {
        reply_init(&r);
        r.outcome = REPLY_COMPLETED;
        r.has_text = true;
        for (size_t i = 0; i < LIMIT_RESULT_BYTES / 1024 - 1; i++) {
            buf_add(&r.text, (char[1024]){0}, 1024);
        }
        r.artifacts_n = 1; /* counts with its names and 64 bytes */
        r.artifacts[0] = (struct msg_artifact){.name = STR_LIT("name"),
                                               .media_type = STR_LIT("text/x"),
                                               .uri = STR_LIT("file:///x"),
                                               .data = {(const uint8_t *)"\xc0", 1}};
        buf_add(&r.data, (char[1024]){0}, 1024 - 64 - 4 - 6 - 9 - 1 + more);
        reply_finish(&r, false, false);
        m = seen(&r);
        assert_true(str_is(m.outcome, more == 0 ? "completed" : "failed"));
        reply_done(&r);
    }
    reply_init(&r);
    r.outcome = REPLY_COMPLETED;
    r.text.bad = BT_LIMIT; /* over the cap of its buffer */
    reply_finish(&r, false, false);
    assert_non_null(strstr(r.message.ptr, "result_too_large: 3145729 or more bytes, at most "
                                          "3145728"));
    assert_int_equal(r.code, BT_LIMIT);
    reply_done(&r);
}

static void what_a_handler_leaves_out_is_a_failure_with_its_cause(void **state)
{
    static const struct {
        enum bt_code bad[3]; /* text, data, schema */
        enum reply_outcome outcome;
        bool cancelled, timed_out;
        enum bt_code code;
        bool retryable;
    } cases[] = {
        {{BT_OK, BT_OK, BT_OK}, REPLY_NONE, true, true, BT_TIMEOUT, true},
        {{BT_OK, BT_OK, BT_OK}, REPLY_NONE, true, false, BT_CANCELLED, false},
        {{BT_OK, BT_OK, BT_OK}, REPLY_NONE, false, false, BT_INTERNAL, false},
        {{BT_NOMEM, BT_OK, BT_OK}, REPLY_COMPLETED, false, false, BT_NOMEM, true},
        {{BT_OK, BT_NOMEM, BT_OK}, REPLY_COMPLETED, false, false, BT_NOMEM, true},
        {{BT_OK, BT_OK, BT_NOMEM}, REPLY_NEEDS_INPUT, false, false, BT_NOMEM, true},
        {{BT_OK, BT_LIMIT, BT_OK}, REPLY_COMPLETED, false, false, BT_LIMIT, false},
        {{BT_OK, BT_OK, BT_LIMIT}, REPLY_NEEDS_INPUT, false, false, BT_LIMIT, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct reply r;
        reply_init(&r);
        r.outcome = cases[i].outcome;
        r.text.bad = cases[i].bad[0];
        r.data.bad = cases[i].bad[1];
        r.schema.bad = cases[i].bad[2];
        reply_finish(&r, cases[i].cancelled, cases[i].timed_out);
        assert_int_equal(r.outcome, REPLY_FAILED);
        assert_int_equal(r.code, cases[i].code);
        assert_int_equal(r.retryable, cases[i].retryable);
        reply_done(&r);
    }
}

static void a_result_has_the_parts_that_were_given(void **state)
{
    struct msg_step_result m;
    struct reply r;

    (void)state;
    reply_init(&r);
    r.outcome = REPLY_COMPLETED;
    m = seen(&r);
    assert_true(msg_has(&m, step_result, result));
    assert_false(msg_has(&m.result, result, text));
    assert_false(msg_has(&m.result, result, truncated));
    assert_null(m.result.data.ptr);
    assert_null(m.state.ptr);
    assert_null(m.result.details.ptr);
    assert_int_equal(m.result.artifacts_n, 0);
    r.has_text = true; /* an empty text is one */
    m = seen(&r);
    assert_true(msg_has(&m.result, result, text));
    assert_int_equal(m.result.text.len, 0);
    buf_add_cstr(&r.text, "t");
    doc_put_bool(&r.data, true);
    doc_put_map(&r.state, 0);
    doc_put_map(&r.details, 0);
    r.truncated = true;
    r.artifacts_n = 1;
    m = seen(&r);
    assert_true(str_is(m.result.text, "t"));
    assert_int_equal(m.result.data.len, 1);
    assert_int_equal(m.state.len, 1);
    assert_int_equal(m.result.details.len, 1);
    assert_true(m.result.truncated && msg_has(&m.result, result, truncated));
    assert_int_equal(m.result.artifacts_n, 1);
    reply_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_has_1_to_64_letters_digits_and_marks),
        cmocka_unit_test(a_card_needs_an_id_and_a_skill),
        cmocka_unit_test(a_card_has_64_skills_and_no_more),
        cmocka_unit_test(a_skill_has_32_tags_and_16_examples_at_most),
        cmocka_unit_test(a_card_is_a_copy_with_all_that_was_said),
        cmocka_unit_test(effects_have_three_words),
        cmocka_unit_test(a_reply_accepts_nothing_and_is_freed_once),
        cmocka_unit_test(the_bytes_of_a_reply_are_those_of_all_its_parts),
        cmocka_unit_test(each_code_has_its_class),
        cmocka_unit_test(a_failure_drops_the_reply_before_it_and_keeps_the_details),
        cmocka_unit_test(a_message_has_4096_bytes_at_most),
        cmocka_unit_test(a_result_of_3_mib_is_taken_and_one_byte_more_is_not),
        cmocka_unit_test(what_a_handler_leaves_out_is_a_failure_with_its_cause),
        cmocka_unit_test(a_result_has_the_parts_that_were_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
