#include "protocol/wire/msg.h"

#include "protocol/limits.h"
#include "protocol/wire/mp_validate.h"
#include "tests/support/cmocka.h"
#include "tests/unit/wire/generate.h"

enum { BODY_MAX = 2048 };

_Static_assert(sizeof(struct msg_agent_view) < BODY_MAX, "room for any struct");

/* Room for any message; the union gives it the alignment of all. */
union body {
    struct msg_agent_view widest;
    uint8_t bytes[BODY_MAX];
};

static enum wire_form answer_parser_of(int round)
{
    return round % 2 == 0 ? WIRE_MSGPACK : WIRE_JSON;
}

/* Writes, reads, compares, writes again: the bytes must be the same. */
static void assert_survives(enum msg_type type, const union body *body, enum wire_form form)
{
    struct msg_part part = {type, body};
    struct bt_error err = {.code = BT_OK};
    struct msg_reader reader;
    union body back;
    struct buf out;
    struct buf again;

    buf_init(&out, 1 << 22);
    buf_init(&again, 1 << 22);
    if (msg_write(&out, form, &part, 1, &err) != BT_OK ||
        msg_reader_init(&reader, out.at, out.len, 1 << 22, &err) != BT_OK) {
        fail_msg("%s: %s", msg_table[type].name, err.msg);
    }
    assert_int_equal(reader.form, form);
    if (msg_read(&reader, type, &back, &err) != BT_OK) {
        fail_msg("%s: %s", msg_table[type].name, err.msg);
    }
    assert_true(generate_equal(type, body, &back));
    part.body = &back;
    assert_int_equal(msg_write(&again, form, &part, 1, &err), BT_OK);
    assert_int_equal(again.len, out.len);
    assert_memory_equal(again.at, out.at, out.len);
    msg_reader_done(&reader);
    buf_done(&out);
    buf_done(&again);
}

static void every_message_survives_both_forms(void **state)
{
    struct rng rng = rng_seeded("messages");
    union body body;

    (void)state;
    for (unsigned type = 0; type < MSG_TYPE_COUNT; type++) {
        assert_true(msg_table[type].size <= sizeof body);
        for (int round = 0; round < 40; round++) {
            struct arena arena = {0};
            enum generate_fields fields = round < 2   ? FIELDS_ALL
                                          : round < 4 ? FIELDS_REQUIRED
                                                      : FIELDS_RANDOM;
            generate_msg(&rng, &arena, (enum msg_type)type, fields, &body);
            assert_survives((enum msg_type)type, &body, answer_parser_of(round));
            arena_done(&arena);
        }
    }
}

/* Removes each required field in turn; the error names it. */
static void a_missing_required_field_is_refused_by_name(void **state)
{
    struct rng rng = rng_seeded("missing");

    (void)state;
    for (unsigned type = 0; type < MSG_TYPE_COUNT; type++) {
        const struct msg_desc *desc = &msg_table[type];
        for (uint32_t i = 0; i < desc->n; i++) {
            struct bt_error err = {.code = BT_OK};
            struct arena arena = {0};
            union body body;
            struct buf full;
            struct buf cut;
            struct doc_cursor c;
            struct doc_head map;

            buf_init(&full, 1 << 20);
            buf_init(&cut, 1 << 20);
            generate_msg(&rng, &arena, (enum msg_type)type, FIELDS_ALL, &body);
            assert_int_equal(msg_write(&full, WIRE_MSGPACK,
                                       &(struct msg_part){(enum msg_type)type, &body}, 1, &err),
                             BT_OK);
            c = doc_cursor(doc_from_buf(&full));
            assert_true(doc_next(&c, &map));
            doc_put_map(&cut, map.n - 1);
            for (uint32_t f = 0; f < map.n; f++) {
                struct doc key = doc_skip(&c);
                struct doc value = doc_skip(&c);
                if (!str_eq(doc_string(key), desc->fields[i].name)) {
                    doc_put_doc(&cut, key);
                    doc_put_doc(&cut, value);
                }
            }
            assert_int_equal(
                msg_read_doc(&arena, doc_from_buf(&cut), (enum msg_type)type, &body, &err),
                desc->fields[i].required ? BT_INVALID : BT_OK);
            if (desc->fields[i].required) {
                char expected[128];
                (void)snprintf(expected, sizeof expected, "%.*s: missing; expected",
                               STR_ARG(desc->fields[i].name));
                assert_memory_equal(err.msg, expected, strlen(expected));
            }
            arena_done(&arena);
            buf_done(&full);
            buf_done(&cut);
        }
    }
}

static enum bt_code read_json(const char *json, enum msg_type type, union body *ret,
                              struct bt_error *err)
{
    struct msg_reader reader;
    enum bt_code code = msg_reader_init(&reader, json, strlen(json), LIMIT_CONTROL_BYTES, err);

    if (code == BT_OK) {
        code = msg_read(&reader, type, ret, err);
        msg_reader_done(&reader);
    }
    return code;
}

static void assert_reads_as(const char *json, enum msg_type type, enum bt_code code,
                            const char *says)
{
    struct bt_error err = {.code = BT_OK};
    union body body;

    if (read_json(json, type, &body, &err) != code ||
        (says != NULL && strcmp(err.msg, says) != 0)) {
        fail_msg("%s: got %s '%s'", json, bt_code_name(err.code), err.msg);
    }
}

static void mistyped_fields_are_named_with_their_path(void **state)
{
    const char *card =
        "{\"card\":{\"agentId\":\"a\",\"skills\":[{\"id\":\"x\"},{\"id\":\"y\"},{\"id\":7}]}}";

    (void)state;
    assert_reads_as(card, MSG_agent_register, BT_INVALID,
                    "card.skills[2].id: expected a string, got 7");
    assert_reads_as("{\"agentId\":\"a\",\"skills\":{}}", MSG_card, BT_INVALID,
                    "skills: expected a list, got a map of 0");
    assert_reads_as("{\"agentId\":\"a\",\"skills\":[[1]]}", MSG_card, BT_INVALID,
                    "skills[0]: expected a map, got a list of 1");
    assert_reads_as("{\"agentId\":\"a\",\"skills\":[{\"id\":\"s\",\"tags\":[\"t\",null]}]}",
                    MSG_card, BT_INVALID, "skills[0].tags[1]: expected a string, got null");
    assert_reads_as("{\"agentId\":\"a\",\"skills\":[{}]}", MSG_card, BT_INVALID,
                    "skills[0].id: missing; expected a string");
    assert_reads_as("{\"key\":\"k\",\"attempt\":-1,\"epoch\":1}", MSG_step_progress, BT_INVALID,
                    "attempt: expected an integer from 0 to 1000, got -1");
    assert_reads_as("{\"key\":\"k\",\"attempt\":1001,\"epoch\":1}", MSG_step_progress, BT_INVALID,
                    "attempt: expected an integer from 0 to 1000, got 1001");
    assert_reads_as("{\"key\":\"k\",\"attempt\":1,\"epoch\":\"1\"}", MSG_step_progress, BT_INVALID,
                    "epoch: expected an integer from 0 on, got '1'");
    assert_reads_as("{\"key\":\"k\",\"attempt\":1,\"epoch\":1,\"percent\":true}", MSG_step_progress,
                    BT_INVALID, "percent: expected a number, got true");
    assert_reads_as("{\"accepted\":1}", MSG_step_result_ok, BT_INVALID,
                    "accepted: expected true or false, got 1");
    assert_reads_as("{\"agentId\":null}", MSG_card, BT_INVALID,
                    "agentId: expected a string, got null");
}

static void what_is_over_its_cap_is_a_limit(void **state)
{
    char json[1400];

    (void)state;
    (void)snprintf(json, sizeof json, "{\"agentId\":\"%065d\"}", 0);
    assert_reads_as(json, MSG_card, BT_LIMIT, "agentId: 65 bytes, at most 64");
    (void)snprintf(json, sizeof json, "{\"agentId\":\"%064d\"}", 0);
    assert_reads_as(json, MSG_card, BT_OK, NULL);
    (void)snprintf(
        json, sizeof json, "{\"epoch\":1,\"leaseMs\":1,\"heartbeatMs\":1,\"lanes\":[%s]}",
        "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\","
        "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\","
        "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\","
        "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\"");
    assert_reads_as(json, MSG_agent_registered_ok, BT_LIMIT, "lanes: 66 elements, at most 65");
    (void)snprintf(json, sizeof json,
                   "{\"key\":\"k\",\"attempt\":1,\"epoch\":1,\"data\":\"%0300d\"}", 0);
    assert_reads_as(json, MSG_step_progress, BT_OK, NULL);
    (void)snprintf(json, sizeof json,
                   "{\"key\":\"k\",\"attempt\":1,\"epoch\":1,\"data\":\"%01022d\"}", 0);
    assert_reads_as(json, MSG_step_progress, BT_LIMIT, "data: 1025 bytes, at most 1024");
}

/* ---- caps ---- */

/* The value of a field with n bytes, elements, or that number. */
static void put_edge(const struct msg_field *f, uint64_t n, struct doc element, struct buf *out)
{
    struct buf text;

    if (f->kind == FIELD_U64) {
        doc_put_u64(out, n);
        return;
    }
    if (f->kind == FIELD_LIST || f->kind == FIELD_STRS) {
        doc_put_array(out, (uint32_t)n);
        for (uint64_t i = 0; i < n; i++) {
            if (f->kind == FIELD_LIST) {
                doc_put_doc(out, element);
            } else {
                doc_put_cstr(out, "e");
            }
        }
        return;
    }
    buf_init(&text, n + 1);
    for (uint64_t i = 0; i < n; i++) {
        buf_add_byte(&text, 'x');
    }
    doc_put_str(out, buf_str(&text));
    buf_done(&text);
}

/* Reads the message with another value in the place of the field's. */
static enum bt_code read_with(enum msg_type type, struct doc full, const struct msg_field *f,
                              uint64_t n, struct doc element, struct bt_error *err)
{
    struct arena arena = {0};
    struct doc_cursor c = doc_cursor(full);
    struct doc_head map;
    union body body;
    struct buf edge;
    enum bt_code code;

    buf_init(&edge, 64 << 20);
    assert_true(doc_next(&c, &map));
    doc_put_map(&edge, map.n);
    for (uint32_t i = 0; i < map.n; i++) {
        const struct doc key = doc_skip(&c);
        const struct doc value = doc_skip(&c);
        doc_put_doc(&edge, key);
        if (!str_eq(doc_string(key), f->name)) {
            doc_put_doc(&edge, value);
        } else {
            put_edge(f, n, element, &edge);
        }
    }
    assert_int_equal(edge.bad, BT_OK);
    code = msg_read_doc(&arena, doc_from_buf(&edge), type, &body, err);
    arena_done(&arena);
    buf_done(&edge);
    return code;
}

/* A message with all fields, as bytes. */
static struct doc write_one(struct rng *rng, enum msg_type type, struct buf *out)
{
    struct arena arena = {0};
    union body body;

    generate_msg(rng, &arena, type, FIELDS_ALL, &body);
    assert_int_equal(msg_write(out, WIRE_MSGPACK, &(struct msg_part){type, &body}, 1, NULL), BT_OK);
    arena_done(&arena);
    return doc_from_buf(out);
}

static void assert_ends_at(struct rng *rng, enum msg_type type, const struct msg_field *f,
                           uint64_t max)
{
    struct doc element = {NULL, 0};
    struct bt_error err = {.code = BT_OK};
    char expected[200];
    struct buf part;
    struct buf full;

    buf_init(&part, 1 << 22);
    buf_init(&full, 1 << 22);
    if (f->kind == FIELD_LIST) {
        element = write_one(rng, f->part, &part);
    }
    (void)write_one(rng, type, &full);
    if (read_with(type, doc_from_buf(&full), f, max, element, &err) != BT_OK) {
        fail_msg("%s at its cap: %s", msg_table[type].name, err.msg);
    }
    assert_int_equal(read_with(type, doc_from_buf(&full), f, max + 1, element, &err),
                     f->kind == FIELD_U64 ? BT_INVALID : BT_LIMIT);
    if (f->kind == FIELD_U64) {
        (void)snprintf(expected, sizeof expected, "%.*s: expected an integer from 0 to",
                       STR_ARG(f->name));
    } else {
        (void)snprintf(expected, sizeof expected, "%.*s: %llu %s, at most %llu", STR_ARG(f->name),
                       (unsigned long long)max + 1, f->kind == FIELD_STR ? "bytes" : "elements",
                       (unsigned long long)max);
    }
    assert_memory_equal(err.msg, expected, strlen(expected));
    buf_done(&full);
    buf_done(&part);
}

/* Neither a field without a bound, nor one that takes more memory than a test should. */
static bool has_edge(const struct msg_field *f, uint64_t *ret_max)
{
    *ret_max = f->kind == FIELD_LIST || f->kind == FIELD_STRS ? f->list_max : f->max;
    return f->kind == FIELD_U64    ? f->max < UINT64_MAX
           : f->kind == FIELD_LIST ? f->list_max <= 1024
                                   : f->kind == FIELD_STR || f->kind == FIELD_STRS;
}

/* B9: of every field of every message, N is accepted and N + 1 refused with both numbers. */
static void every_field_ends_exactly_at_its_cap(void **state)
{
    struct rng rng = rng_seeded("caps");
    uint32_t tried = 0;

    (void)state;
    for (unsigned type = 0; type < MSG_TYPE_COUNT; type++) {
        const struct msg_desc *desc = &msg_table[type];
        for (uint32_t i = 0; i < desc->n; i++) {
            uint64_t max;
            if (has_edge(&desc->fields[i], &max)) {
                assert_ends_at(&rng, (enum msg_type)type, &desc->fields[i], max);
                tried++;
            }
        }
    }
    assert_true(tried > 500);
}

static void a_whole_float_is_an_integer_and_any_number_a_float(void **state)
{
    struct bt_error err = {.code = BT_OK};
    union body body;
    const struct msg_step_progress *p = (const void *)&body;

    (void)state;
    assert_int_equal(
        read_json("{\"key\":\"k\",\"attempt\":2.0,\"epoch\":9007199254740992.0,\"percent\":50}",
                  MSG_step_progress, &body, &err),
        BT_OK);
    assert_int_equal(p->attempt, 2);
    assert_true(p->epoch == 9007199254740992u);
    assert_true(p->percent == 50.0);
    assert_reads_as("{\"key\":\"k\",\"attempt\":2.5,\"epoch\":1}", MSG_step_progress, BT_INVALID,
                    "attempt: expected an integer from 0 to 1000, got 2.5");
    assert_reads_as("{\"key\":\"k\",\"attempt\":1,\"epoch\":1e300}", MSG_step_progress, BT_INVALID,
                    NULL);
    assert_reads_as("{\"key\":\"k\",\"attempt\":-1.0,\"epoch\":1}", MSG_step_progress, BT_INVALID,
                    "attempt: expected an integer from 0 to 1000, got -1");
}

static void unknown_fields_are_skipped_and_null_is_absent(void **state)
{
    struct bt_error err = {.code = BT_OK};
    union body body;
    const struct msg_step_result *r = (const void *)&body;

    (void)state;
    assert_int_equal(
        read_json(
            "{\"future\":{\"a\":[1,{\"key\":\"no\"}]},\"key\":\"k\",\"attempt\":1,\"epoch\":3,"
            "\"result\":null,\"usage\":{\"later\":1},\"outcome\":\"completed\",\"instanceId\":null,"
            "\"need\":null}",
            MSG_step_result, &body, &err),
        BT_OK);
    assert_int_equal(r->epoch, 3);
    assert_false(msg_has(r, step_result, result));
    assert_false(msg_has(r, step_result, instance_id));
    assert_false(msg_has(r, step_result, need));
    assert_true(msg_has(r, step_result, usage));
    assert_null(r->result.data.ptr);
}

static void optional_fields_without_value_are_left_out_unless_set(void **state)
{
    struct msg_plan_get body = {.plan_id = STR_LIT("p")};
    struct msg_part part = {MSG_plan_get, &body};
    struct buf out;

    (void)state;
    buf_init(&out, 1000);
    assert_int_equal(msg_write(&out, WIRE_JSON, &part, 1, NULL), BT_OK);
    assert_string_equal(buf_cstr(&out), "{\"planId\":\"p\"}");
    msg_set(&body, plan_get, steps);
    buf_clear(&out);
    assert_int_equal(msg_write(&out, WIRE_JSON, &part, 1, NULL), BT_OK);
    assert_string_equal(buf_cstr(&out), "{\"planId\":\"p\",\"steps\":false}");
    buf_done(&out);
}

static void assert_not_written(enum msg_type type, const void *body, enum bt_code code,
                               const char *says)
{
    struct bt_error err = {.code = BT_OK};
    struct msg_part part = {type, body};
    struct buf out;

    buf_init(&out, 1000);
    buf_add_cstr(&out, "kept");
    for (int form = 0; form < 2; form++) {
        assert_int_equal(msg_write(&out, answer_parser_of(form), &part, 1, &err), code);
        assert_string_equal(err.msg, says);
        assert_string_equal(buf_cstr(&out), "kept");
    }
    buf_done(&out);
}

static void what_a_peer_would_refuse_is_not_written(void **state)
{
    char wide[66] = {0};
    struct msg_skill skills[2] = {{.id = STR_LIT("ok")}, {.id = {wide, 65}}};
    struct msg_card card = {.agent_id = STR_LIT("a"), .skills = skills, .skills_n = 2};
    struct msg_agent_stats_ok stats = {.last_error = STR_LIT("cut \xC3")};
    struct msg_step_progress progress = {.key = STR_LIT("k"), .attempt = 1001};

    (void)state;
    memset(wide, 'x', 65);
    assert_not_written(MSG_card, &card, BT_LIMIT, "skills[1].id: 65 bytes, at most 64");
    card.skills_n = 65;
    assert_not_written(MSG_card, &card, BT_LIMIT, "skills: 65 elements, at most 64");
    assert_not_written(MSG_agent_stats_ok, &stats, BT_INVALID,
                       "last_error: must be UTF-8 without zero bytes");
    stats.last_error = STR_LIT("a\0b");
    assert_not_written(MSG_agent_stats_ok, &stats, BT_INVALID,
                       "last_error: must be UTF-8 without zero bytes");
    assert_not_written(MSG_step_progress, &progress, BT_INVALID,
                       "attempt: expected an integer from 0 to 1000, got 1001");
    progress.attempt = 1;
    progress.percent = 1e308 * 10;
    assert_not_written(MSG_step_progress, &progress, BT_INVALID,
                       "percent: must be a finite number");
    progress.percent = 0;
    progress.data = (struct doc){(const uint8_t *)"\x92\x01", 2};
    assert_not_written(MSG_step_progress, &progress, BT_INVALID,
                       "data: must be one whole msgpack value");
    progress.data = (struct doc){(const uint8_t *)"\x01\x02", 2};
    assert_not_written(MSG_step_progress, &progress, BT_INVALID,
                       "data: must be one whole msgpack value");
}

static void a_full_buffer_is_a_limit_in_both_forms(void **state)
{
    struct msg_plan_get body = {.plan_id = STR_LIT("0123456789012345678901234567890123456789")};
    struct msg_part part = {MSG_plan_get, &body};
    struct buf out;

    (void)state;
    buf_init(&out, 20);
    for (int form = 0; form < 2; form++) {
        assert_int_equal(msg_write(&out, answer_parser_of(form), &part, 1, NULL), BT_LIMIT);
        buf_clear(&out);
    }
    buf_done(&out);
}

/* Parts of one map must not share a name, or the peer's validator rejects it. */
static void the_names_of_parts_that_travel_together_are_disjoint(void **state)
{
    (void)state;
    for (unsigned t = 0; t < MSG_TYPE_COUNT; t++) {
        const struct msg_desc *desc = &msg_table[t];
        bool is_event = strncmp(desc->name, "ev_", 3) == 0;
        const struct msg_desc *with = &msg_table[is_event ? MSG_event : MSG_envelope];
        if (desc->wire[0] == 0 || t == MSG_heartbeat) { /* a heartbeat travels alone */
            continue;
        }
        for (uint32_t i = 0; i < desc->n; i++) {
            for (uint32_t j = 0; j < with->n; j++) {
                if (str_eq(desc->fields[i].name, with->fields[j].name)) {
                    fail_msg("%s and %s both have %.*s", desc->name, with->name,
                             STR_ARG(with->fields[j].name));
                }
            }
        }
    }
}

static void every_sent_message_is_found_by_its_wire_type_and_parts_never(void **state)
{
    (void)state;
    for (unsigned t = 0; t < MSG_TYPE_COUNT; t++) {
        if (msg_table[t].wire[0] != 0) {
            assert_int_equal(msg_type_from_wire(str_from(msg_table[t].wire)), t);
        }
        for (uint32_t i = 0; i < msg_table[t].n; i++) {
            for (uint32_t j = 0; j < i; j++) {
                assert_false(str_eq(msg_table[t].fields[i].name, msg_table[t].fields[j].name));
            }
        }
    }
    assert_int_equal(msg_type_from_wire(STR_LIT("")), MSG_TYPE_COUNT);
    assert_int_equal(msg_type_from_wire(STR_LIT("skill")), MSG_TYPE_COUNT);
    assert_int_equal(msg_type_from_wire(STR_LIT("step.execut")), MSG_TYPE_COUNT);
    assert_string_equal(msg_wire_type(MSG_step_execute), "step.execute");
    assert_string_equal(msg_wire_type(MSG_TYPE_COUNT), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_survives_both_forms),
        cmocka_unit_test(a_missing_required_field_is_refused_by_name),
        cmocka_unit_test(mistyped_fields_are_named_with_their_path),
        cmocka_unit_test(what_is_over_its_cap_is_a_limit),
        cmocka_unit_test(every_field_ends_exactly_at_its_cap),
        cmocka_unit_test(a_whole_float_is_an_integer_and_any_number_a_float),
        cmocka_unit_test(unknown_fields_are_skipped_and_null_is_absent),
        cmocka_unit_test(optional_fields_without_value_are_left_out_unless_set),
        cmocka_unit_test(what_a_peer_would_refuse_is_not_written),
        cmocka_unit_test(a_full_buffer_is_a_limit_in_both_forms),
        cmocka_unit_test(the_names_of_parts_that_travel_together_are_disjoint),
        cmocka_unit_test(every_sent_message_is_found_by_its_wire_type_and_parts_never),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
