/*
 * What models wrap their answers in, taken off; and what is asked of the form of an answer. Pure
 * but for the heap. Linear in the bytes.
 */
#ifndef LLM_ANSWER_PARSER_H
#define LLM_ANSWER_PARSER_H

#include "protocol/base/buf.h"
#include "protocol/base/err.h"

struct cJSON;
struct schema;

/* The text without a byte order mark, without <think>...</think> (also when one of the two tags is
 * missing), without spaces around it. Points into the text. */
struct str answer_parser_clean(struct str text);

/*
 * The one JSON object (or array) in a text: the whole of it, in a fence, or with prose around it.
 * BT_INVALID with a sentence for the model: none, more than one, cut off. The caller frees with
 * cJSON_Delete.
 */
BT_MUST_CHECK enum bt_code answer_parser_json(struct str text, struct cJSON **ret,
                                              struct bt_error *err);

/*
 * answer_parser_json, and the value fits the schema, at once or when it is read leniently
 * (lenient.h) by the tree that the schema was compiled from (NULL: not). An answer shaped like the
 * call of a tool
 * ({"name", "arguments": {...}}) is unwrapped when what is inside fits. BT_INVALID says what does
 * not fit.
 */
BT_MUST_CHECK enum bt_code answer_parser_fit(struct str text, const struct schema *schema,
                                             const struct cJSON *tree, struct cJSON **ret,
                                             struct bt_error *err);

/* Whether a schema obeys the subset of "strict": every object closed, every property required. */
bool answer_parser_is_strict(const struct cJSON *schema);
/* Whether the name stands in a schema's list of names, such as `required` or `type`. */
bool answer_parser_lists(const struct cJSON *list, const char *name);
#endif
