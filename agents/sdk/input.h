/*
 * What a specialist works on: the parameter that says so, or, when a planner filled none in, what
 * the step before it made. For the specialists of this tree; other agents use <baton/agent.h>.
 */
#ifndef SDK_INPUT_H
#define SDK_INPUT_H

#include "agents/sdk/step.h"

struct cJSON;

/* A parameter as text: a string bare, anything else as JSON; when it is missing the newest
 * dependency's text. NULL when there is neither. Valid until the handler returns. */
const char *input_text(struct bt_step *step, const char *path);
/* A parameter as tree; when it is missing the newest dependency's data (a text that is JSON is read
 * as such). *ret stays NULL when there is neither. The caller frees. BT_INVALID when it cannot be a
 * tree. */
BT_MUST_CHECK enum bt_code input_tree(struct bt_step *step, const char *path, struct cJSON **ret,
                                      struct bt_error *err);
/* All parameters as a tree; an empty object when there are none. The caller frees. */
BT_MUST_CHECK enum bt_code input_parameters(struct bt_step *step, struct cJSON **ret,
                                            struct bt_error *err);
/* Answers with a tree (takes it) and, when not NULL, a text. Fails the step when it cannot. */
void input_reply(struct bt_step *step, struct cJSON *data, const char *text);
#endif
