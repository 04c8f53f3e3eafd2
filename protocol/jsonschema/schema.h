/*
 * JSON Schema, a draft-7 subset (README lists what is supported and what is refused), bounded in
 * time, memory and depth, for hostile schemas and hostile instances. The one constraint language of
 * Baton: parameters, results, configuration, plans.
 *
 * Compile once, check many. Not a full validator by intent: an unsupported keyword that would
 * change the verdict is an error at compile time, never silently ignored; annotations (title,
 * description, default, examples, $comment, format) are ignored.
 */
#ifndef JSONSCHEMA_SCHEMA_H
#define JSONSCHEMA_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/err.h"

struct cJSON;
struct schema;

/* Compiles a schema tree (copied: the tree may be freed after). BT_INVALID names the JSON pointer
 * of what is wrong or unsupported ("#/properties/a/pattern: ..."). BT_LIMIT over the caps (64 KiB
 * of schema, depth 32, 4096 nodes). */
BT_MUST_CHECK enum bt_code schema_compile(const struct cJSON *tree, struct schema **ret,
                                          struct bt_error *err);
void schema_free(struct schema *s);

struct schema_problem {
    char path[192];    /* JSON pointer into the instance, "" for the root */
    char message[320]; /* "expected a string, got 7"; "is missing"; ... */
};

/*
 * Checks an instance and reports up to max problems (most useful first: document order). Returns
 * BT_OK when valid, BT_INVALID with *ret_n >= 1 problems otherwise, BT_LIMIT when the work budget
 * (100,000 checks, and 8 more for each value of the instance) ran out.
 */
BT_MUST_CHECK enum bt_code schema_check(const struct schema *s, const struct cJSON *instance,
                                        struct schema_problem *problems, uint32_t max,
                                        uint32_t *ret_n, struct bt_error *err);
#endif
