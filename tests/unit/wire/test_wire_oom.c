/* The i-th allocation fails, for every i: BT_NOMEM or a right answer. ASan reports leaks. */
#include <cjson/cJSON.h>
#include <stdlib.h>

#include "protocol/wire/msg.h"
#include "tests/support/memory.h"

/* Runs the scenario with the i-th allocation failing until it succeeds; returns the number of
 * failures. */
static long fail_each(enum bt_code (*scenario)(struct bt_error *err))
{
    for (long i = 0; i < 1000; i++) {
        struct bt_error err = {.code = BT_OK};
        enum bt_code code;
        memory_left = i;
        code = scenario(&err);
        memory_left = -1;
        if (code == BT_OK) {
            return i;
        }
        assert_int_equal(code, BT_NOMEM);
        assert_int_equal(err.code, BT_NOMEM);
        assert_true(strlen(err.msg) > 0);
    }
    fail_msg("it never succeeds");
    return -1;
}

static const char question[] =
    "{\"card\":{\"agentId\":\"a\",\"name\":\"n\",\"skills\":[{\"id\":\"s\",\"tags\":[\"t\",\"u\"],"
    "\"examples\":[\"e\"],\"inputSchema\":{\"type\":\"object\"}},{\"id\":\"s2\",\"tags\":[\"v\"]}]}"
    ","
    "\"instanceId\":\"i\",\"capacity\":1,\"sessionKey\":\"k\",\"protocol\":[1]}";

static enum bt_code decode(struct bt_error *err)
{
    struct msg_agent_register body;
    struct msg_reader r;
    enum bt_code code = msg_reader_init(&r, question, strlen(question), 100000, err);

    if (code == BT_OK) {
        code = msg_read(&r, MSG_agent_register, &body, err);
    }
    if (code == BT_OK) {
        assert_int_equal(body.card.skills_n, 2);
        assert_true(str_is(body.card.skills[1].tags[0], "v"));
    }
    msg_reader_done(&r);
    return code;
}

static enum bt_code encode(struct bt_error *err)
{
    char text[5000];
    struct msg_skill skills[2] = {{.id = STR_LIT("s"), .description = {text, 2000}},
                                  {.id = STR_LIT("s2")}};
    struct msg_agent_register body = {.card = {.agent_id = STR_LIT("a"),
                                               .description = {text, 4000},
                                               .skills = skills,
                                               .skills_n = 2},
                                      .instance_id = STR_LIT("i")};
    enum bt_code code = BT_OK;

    memset(text, 'x', sizeof text);
    for (int form = 0; code == BT_OK && form < 2; form++) {
        struct buf out;
        buf_init(&out, 100000);
        code = msg_request(&out, form == 0 ? WIRE_MSGPACK : WIRE_JSON, STR_LIT("1"), STR_LIT("t"),
                           MSG_agent_register, &body, err);
        assert_true(code == BT_OK || out.len == 0);
        buf_done(&out);
    }
    return code;
}

static enum bt_code tree_and_back(struct bt_error *err)
{
    struct cJSON *tree = NULL;
    struct buf doc;
    enum bt_code code;

    buf_init(&doc, 100000);
    code = json_parse(str_from(question), &tree, err);
    if (code == BT_OK) {
        code = cjson_to_doc(tree, &doc, err);
    }
    cJSON_Delete(tree);
    buf_done(&doc);
    return code;
}

static void decoding_survives_every_failed_allocation(void **state)
{
    (void)state;
    assert_true(fail_each(decode) >= 4);
}

static void encoding_survives_every_failed_allocation(void **state)
{
    (void)state;
    assert_true(fail_each(encode) >= 10);
}

/* cJSON calls malloc inside its own library, so its hooks get the failing one. */
static void trees_survive_every_failed_allocation(void **state)
{
    cJSON_Hooks hooks = {malloc, free};

    (void)state;
    memory_for_good = true;
    cJSON_InitHooks(&hooks);
    assert_true(fail_each(tree_and_back) >= 40);
    cJSON_InitHooks(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoding_survives_every_failed_allocation),
        cmocka_unit_test(encoding_survives_every_failed_allocation),
        cmocka_unit_test(trees_survive_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
