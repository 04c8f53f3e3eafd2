/* What servers without strict schemas omit, or write as null. */
#include "tests/support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "agents/llm/model/answer_parser.h"
#include "agents/llm/model/null_rules.h"
#include "protocol/jsonschema/schema.h"
#include "protocol/wire/doc.h"

static cJSON *parse(const char *json)
{
    cJSON *tree = NULL;

    assert_int_equal(json_parse(str_from(json), &tree, NULL), BT_OK);
    return tree;
}

static const char whole[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"a\",\"n\",\"l\"],"
    "\"properties\":{\"a\":{\"type\":\"string\"},\"n\":{\"type\":[\"integer\",\"null\"]},"
    "\"l\":{\"type\":[\"array\",\"null\"],\"items\":{\"type\":\"object\",\"required\":[\"x\"],"
    "\"properties\":{\"x\":{\"type\":[\"string\",\"null\"]},\"y\":{\"type\":\"object\"}}}},"
    "\"o\":{\"type\":\"string\"},\"p\":{\"enum\":[1,null]}}}";

/* ours NULL: it does not fit. */
static void expect(const char *said, const char *ours)
{
    cJSON *tree = parse(whole);
    struct schema *schema = NULL;
    cJSON *value = NULL;
    struct bt_error err = {0};
    char *text;
    enum bt_code code;

    assert_int_equal(schema_compile(tree, &schema, NULL), BT_OK);
    code = answer_parser_fit(str_from(said), schema, tree, &value, &err);
    text = value == NULL ? NULL : cJSON_PrintUnformatted(value);
    if (code != (ours == NULL ? BT_INVALID : BT_OK) ||
        (text != NULL && ours != NULL && strcmp(text, ours) != 0)) {
        fail_msg("%s: %s %s", said, text != NULL ? text : "none", err.msg);
    }
    cJSON_free(text);
    cJSON_Delete(value);
    schema_free(schema);
    cJSON_Delete(tree);
}

static void what_may_be_null_may_be_missing(void **state)
{
    (void)state;
    expect("{\"a\":\"x\"}", "{\"a\":\"x\",\"n\":null,\"l\":null}");
    expect("{\"a\":\"x\",\"n\":1,\"l\":[{}]}", "{\"a\":\"x\",\"n\":1,\"l\":[{\"x\":null}]}");
    expect("{\"name\":\"f\",\"arguments\":{\"a\":\"x\"}}", "{\"a\":\"x\",\"n\":null,\"l\":null}");
    expect("{\"n\":1,\"l\":null}", NULL);
    expect("{\"a\":null}", NULL);
    expect("{\"a\":\"x\",\"z\":1}", NULL);
}

static void what_may_be_missing_may_be_null(void **state)
{
    (void)state;
    expect("{\"a\":\"x\",\"o\":null,\"l\":[{\"x\":\"1\",\"y\":null}]}",
           "{\"a\":\"x\",\"l\":[{\"x\":\"1\"}],\"n\":null}");
    expect("{\"a\":\"x\",\"p\":null}", "{\"a\":\"x\",\"p\":null,\"n\":null,\"l\":null}");
    expect("{\"a\":\"x\",\"p\":2}", NULL);
}

static void what_fits_is_not_touched(void **state)
{
    (void)state;
    expect("{\"l\":null,\"n\":null,\"a\":\"x\"}", "{\"l\":null,\"n\":null,\"a\":\"x\"}");
}

static void a_reader_may_require_less_than_was_asked_for(void **state)
{
    static const char *const optional[] = {"n", "q", "a", NULL};
    cJSON *tree = parse(whole);
    cJSON *less = null_rules_schema(tree, optional);
    char *required = cJSON_PrintUnformatted(cJSON_GetObjectItem(less, "required"));

    (void)state;
    assert_string_equal(required, "[\"l\"]");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "required")), 3);
    cJSON_free(required);
    cJSON_Delete(less);
    cJSON_Delete(tree);
    tree = parse("{\"type\":\"object\"}");
    less = null_rules_schema(tree, optional);
    assert_non_null(less);
    cJSON_Delete(less);
    cJSON_Delete(tree);
}

/* At most so many members are looked at, however long the answer is. */
static void the_first_50000_members_are_repaired(void **state)
{
    cJSON *schema = parse("{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"x\"],"
                          "\"properties\":{\"x\":{\"type\":[\"string\",\"null\"]}}}}");
    cJSON *list = cJSON_CreateArray();
    const cJSON *item = NULL;
    int repaired = 0;

    (void)state;
    for (int i = 0; i < 50001; i++) {
        assert_true(cJSON_AddItemToArray(list, cJSON_CreateObject()));
    }
    assert_true(null_rules_apply(list, schema));
    cJSON_ArrayForEach(item, list)
    {
        repaired += item->child != NULL ? 1 : 0;
    }
    assert_int_equal(repaired, 50000);
    cJSON_Delete(list);
    cJSON_Delete(schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_50000_members_are_repaired),
        cmocka_unit_test(what_may_be_null_may_be_missing),
        cmocka_unit_test(what_may_be_missing_may_be_null),
        cmocka_unit_test(what_fits_is_not_touched),
        cmocka_unit_test(a_reader_may_require_less_than_was_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
