/* Schemas for servers that accept only a subset of JSON Schema. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "agents/llm/model/schema_subset.h"

static cJSON *parse(const char *json)
{
    cJSON *tree = cJSON_Parse(json);

    if (tree == NULL) {
        fail_msg("%s", json);
    }
    return tree;
}

/* NULL = there is none. */
static void expect(const char *json, const char *expected)
{
    cJSON *tree = parse(json);
    cJSON *narrow = schema_subset(tree);
    char *text = narrow == NULL ? NULL : cJSON_PrintUnformatted(narrow);

    assert_int_equal(schema_subset_can(tree), expected != NULL);
    if (text == NULL || expected == NULL ? text != expected : strcmp(text, expected) != 0) {
        fail_msg("%s: %s", json, text != NULL ? text : "none");
    }
    cJSON_free(text);
    cJSON_Delete(narrow);
    cJSON_Delete(tree);
}

static void bounds_are_left_out_and_objects_are_closed(void **state)
{
    (void)state;
    expect("{\"type\":\"object\",\"required\":[\"n\"],\"properties\":{\"n\":{\"type\":\"integer\","
           "\"minimum\":0,\"maximum\":9,\"description\":\"how many\"},\"s\":{\"type\":\"string\","
           "\"minLength\":1,\"maxLength\":9,\"pattern\":\"x\",\"format\":\"odd\"},\"l\":{\"type\":"
           "\"array\",\"minItems\":2,\"maxItems\":3,\"items\":{\"enum\":[1,\"a\",null]}},\"m\":{"
           "\"type\":\"array\",\"minItems\":1,\"items\":{\"type\":[\"string\",\"null\"]}}}}",
           "{\"type\":\"object\",\"required\":[\"n\"],\"additionalProperties\":false,"
           "\"properties\":{\"n\":{\"type\":\"integer\",\"description\":\"how many\"},\"s\":{"
           "\"type\":\"string\"},\"l\":{\"type\":\"array\",\"items\":{\"enum\":[1,\"a\",null]}},"
           "\"m\":{\"type\":\"array\",\"minItems\":1,\"items\":{\"type\":[\"string\",\"null\"]}}}"
           "}");
    expect("{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"a\":{\"oneOf\":["
           "{\"type\":\"null\"},{\"$ref\":\"#/$defs/x\"}]}},\"$defs\":{\"x\":{\"type\":\"number\","
           "\"multipleOf\":2}}}",
           "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"a\":{\"anyOf\":["
           "{\"type\":\"null\"},{\"$ref\":\"#/$defs/x\"}]}},\"$defs\":{\"x\":{\"type\":\"number\"}"
           "}}");
    /* A member may have the name of a keyword. */
    expect("{\"type\":\"object\",\"properties\":{\"minimum\":{\"type\":\"number\",\"minimum\":1}}}",
           "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{\"minimum\":{"
           "\"type\":\"number\"}}}");
}

static void what_is_open_or_too_much_is_not_narrowed(void **state)
{
    char many[4096] = "{\"type\":\"object\",\"properties\":{";
    char deep[1024] = "";

    (void)state;
    expect("{\"type\":\"object\"}", NULL);
    expect("{\"type\":[\"object\",\"null\"]}", NULL);
    expect("{\"type\":\"object\",\"properties\":{}}", NULL);
    expect("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\"}}}", NULL);
    expect("{\"type\":\"object\",\"additionalProperties\":true,\"properties\":{\"a\":{}}}", NULL);
    expect("{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}", NULL);
    expect("{\"type\":\"object\",\"patternProperties\":{},\"properties\":{\"a\":{}}}", NULL);
    expect("{\"type\":\"array\",\"items\":[{\"type\":\"string\"}]}", NULL);
    expect("{\"type\":\"array\",\"items\":true}", NULL);
    for (unsigned i = 0; i < 25; i++) {
        (void)snprintf(many + strlen(many), sizeof many - strlen(many),
                       "%s\"m%u\":{\"type\":\"string\"}", i > 0 ? "," : "", i);
    }
    (void)strncat(many, "}}", sizeof many - strlen(many) - 1);
    expect(many, NULL);
    for (unsigned i = 0; i < 20; i++) {
        (void)strncat(deep, "{\"items\":", sizeof deep - strlen(deep) - 1);
    }
    (void)strncat(deep, "{}", sizeof deep - strlen(deep) - 1);
    for (unsigned i = 0; i < 20; i++) {
        (void)strncat(deep, "}", sizeof deep - strlen(deep) - 1);
    }
    expect(deep, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_left_out_and_objects_are_closed),
        cmocka_unit_test(what_is_open_or_too_much_is_not_narrowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
