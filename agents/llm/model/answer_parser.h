/*
 * Extracts an answer from its wrappings, and checks it against a schema. Pure except for the heap.
 * Linear in the bytes.
 */
#ifndef LLM_ANSWER_PARSER_H
#define LLM_ANSWER_PARSER_H

#include "protocol/base/buf.h"
#include "protocol/base/err.h"

struct cJSON;
struct schema;

/* The text without a byte order mark, without <think>...</think> (also when one of the two tags is
 * missing), and without spaces around it. Points into the text. */
struct str answer_parser_clean(struct str text);

/*
 * The one JSON object (or array) in a text: all of it, in a fence, or within prose. BT_INVALID with
 * a sentence for the model: none, more than one, cut off. The caller frees with cJSON_Delete.
 */
BT_MUST_CHECK enum bt_code answer_parser_json(struct str text, struct cJSON **ret,
                                              struct bt_error *err);

/*
 * answer_parser_json, and the value must fit the schema, as it is or after null_rules.h. `tree` is
 * the source of the compiled schema; NULL = no null rules. An answer like a tool call ({"name",
 * "arguments": {...}}) is unwrapped when its arguments fit. BT_INVALID describes what does not fit.
 */
BT_MUST_CHECK enum bt_code answer_parser_fit(struct str text, const struct schema *schema,
                                             const struct cJSON *tree, struct cJSON **ret,
                                             struct bt_error *err);

/* Whether a schema is in the "strict" subset: every object closed, every property required. */
bool answer_parser_is_strict(const struct cJSON *schema);
/* Whether the name is in a schema's list of names, such as `required` or `type`. */
bool answer_parser_lists(const struct cJSON *list, const char *name);
#endif
