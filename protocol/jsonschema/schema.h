/*
 * JSON Schema, a draft-7 subset (README.md lists what is supported and what is rejected). Time,
 * memory and depth are bounded, because schemas and instances may be hostile. Baton uses it for all
 * constraints: parameters, results, configuration, plans.
 *
 * Compile once, check often. A compiled schema never changes, so threads may share it. An
 * unsupported keyword that would change a verdict is an error at compile time and is never ignored.
 * Annotations (title, description, default, examples, $comment, format) are ignored.
 */
#ifndef JSONSCHEMA_SCHEMA_H
#define JSONSCHEMA_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/err.h"

struct cJSON;
struct schema;

/* Compiles a copy of the tree; the caller keeps its own and frees *ret with schema_free. BT_INVALID
 * names the JSON pointer of the error ("#/properties/a/pattern: ..."). BT_LIMIT over the caps: 64
 * KiB, 32 levels, 4096 values. */
BT_MUST_CHECK enum bt_code schema_compile(const struct cJSON *tree, struct schema **ret,
                                          struct bt_error *err);
/* The same for a schema that a person wrote: a name that is neither a keyword nor an annotation nor
 * begins with "x-" is an error, with a guess. */
BT_MUST_CHECK enum bt_code schema_compile_exact(const struct cJSON *tree, struct schema **ret,
                                                struct bt_error *err);
void schema_free(struct schema *s);

struct schema_problem {
    char path[192];    /* JSON pointer into the instance, "" for the root */
    char message[320]; /* "expected a string, got 7"; "is missing"; ... */
};

/*
 * Checks an instance and writes up to max problems: a value's own first, then those of its members
 * in document order. Returns BT_OK when valid, else BT_INVALID with *ret_n problems; with max 0
 * only err names the first one. Returns BT_LIMIT when the work budget ran out: 100,000 units, and 4
 * more for each value of the instance.
 */
BT_MUST_CHECK enum bt_code schema_check(const struct schema *s, const struct cJSON *instance,
                                        struct schema_problem *problems, uint32_t max,
                                        uint32_t *ret_n, struct bt_error *err);
#endif
