/* One schema, one instance, both as JSON text with ' for ", and the outcome. */
#ifndef TESTS_SCHEMA_TEST_H
#define TESTS_SCHEMA_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "protocol/jsonschema/schema.h"

enum { PROBLEMS = 8 };

struct outcome {
    enum bt_code code;
    bool compiled;
    uint32_t n;
    struct schema_problem problems[PROBLEMS];
    struct bt_error err;
};

static inline cJSON *tree_of(const char *text)
{
    char *copy = strdup(text);
    cJSON *tree;

    assert_non_null(copy);
    for (char *at = copy; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    tree = cJSON_Parse(copy);
    if (tree == NULL) {
        fail_msg("not JSON: %s", copy);
    }
    free(copy);
    return tree;
}

static inline struct outcome outcome_of_trees(const cJSON *schema, const cJSON *instance)
{
    struct outcome o = {0};
    struct schema *s = NULL;

    o.code = schema_compile(schema, &s, &o.err);
    if (o.code == BT_OK) {
        o.compiled = true;
        o.code = schema_check(s, instance, o.problems, PROBLEMS, &o.n, &o.err);
    }
    schema_free(s);
    return o;
}

static inline struct outcome outcome_of(const char *schema, const char *instance)
{
    cJSON *s = tree_of(schema);
    cJSON *i = tree_of(instance);
    struct outcome o = outcome_of_trees(s, i);

    cJSON_Delete(s);
    cJSON_Delete(i);
    return o;
}

static inline void expect_valid(const char *schema, const char *instance)
{
    struct outcome o = outcome_of(schema, instance);
    if (o.code != BT_OK) {
        fail_msg("%s against %s: %s %s", instance, schema, bt_code_name(o.code), o.err.msg);
    }
}

/* "path: message; path: message", or the error of the schema. */
static inline void expect_said(const char *schema, const char *instance, const char *said)
{
    struct outcome o = outcome_of(schema, instance);
    char all[4096] = "";
    size_t used = 0;

    for (uint32_t i = 0; i < o.n; i++) {
        int n = snprintf(all + used, sizeof all - used, "%s%s: %s", i == 0 ? "" : "; ",
                         o.problems[i].path, o.problems[i].message);
        used += n < 0 ? 0 : (size_t)n;
    }
    assert_string_equal(o.compiled && o.code == BT_INVALID ? all : o.err.msg, said);
}
#endif
