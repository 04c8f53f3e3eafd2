/*
 * The input of a skill: its parameter, or, when the plan has no value for it, the result of the
 * newest dependency. For the agents of this tree; other agents use <baton/agent.h>.
 */
#ifndef SDK_INPUT_H
#define SDK_INPUT_H

#include "agents/sdk/step.h"
#include "agents/sdk/table.h"

struct cJSON;

/* A parameter as text: a string without quotes, anything else as JSON. When it is missing, the
 * newest dependency's text. NULL when there is neither. Valid until the handler returns. */
const char *input_text(struct bt_step *step, const char *path);
/* A parameter as a tree. When it is missing, the newest dependency's data; a text that is JSON is
 * parsed, and an integer beyond 2^53 becomes a text of its digits. *ret stays NULL when there is
 * neither. The caller frees. */
BT_MUST_CHECK enum bt_code input_tree(struct bt_step *step, const char *path, struct cJSON **ret,
                                      struct bt_error *err);
/* The rows of input_tree as a table with types: those of the parameter `types`, else those of the
 * source, else found. The caller frees with table_done. */
BT_MUST_CHECK enum bt_code input_table(struct bt_step *step, const char *path, struct table *ret,
                                       struct bt_error *err);
/* Gives a table its types in the same way. */
BT_MUST_CHECK enum bt_code input_types(struct bt_step *step, struct table *t, struct bt_error *err);
/* All parameters as a tree; an empty object when there are none. The caller frees. */
BT_MUST_CHECK enum bt_code input_parameters(struct bt_step *step, struct cJSON **ret,
                                            struct bt_error *err);
/* Something of the result is missing for want of memory: this thread's next input_reply fails the
 * step, and another attempt follows. Whatever cJSON has no memory for counts by itself. */
void input_lost(void);
/* BT_NOMEM once after that, for replies that are made without input_reply. */
BT_MUST_CHECK enum bt_code input_check_lost(struct bt_error *err);
/* Adds the item (takes it) to an object, or to a list without a name. False: it is lost. */
bool input_add(struct cJSON *to, const char *name, struct cJSON *item);
/* Replies with a tree (takes it) and, when not NULL, a text. Fails the step when it cannot. */
void input_reply(struct bt_step *step, struct cJSON *data, const char *text);
/* The same with a buffer, which may be one that had no memory or no room. */
void input_reply_buf(struct bt_step *step, struct cJSON *data, struct buf *text);
#endif
