/*
 * Files of results (protocol/artifact). A step is given the files of the results that its templates
 * and its context hold, and no others: an agent opens nothing else. A new result may name files of
 * its own plan only, and they must be there with the length that it gives.
 */
#ifndef DISPATCH_ARTIFACTS_H
#define DISPATCH_ARTIFACTS_H

#include "supervisor/dispatch/assignment.h"

/* The directory for the files of the plan goes with the assignment. */
void artifacts_put_dir(struct assignment *q);
/* Adds the files of a stored result to what the step is given. The result may move afterwards.
 * BT_LIMIT over LIMIT_ARTIFACTS. */
BT_MUST_CHECK enum bt_code artifacts_give(struct assignment *q, struct doc result,
                                          struct bt_error *err);
/* Whether what the instance was asked, as it would be asked now, names the file. */
bool artifacts_are_given(struct engine *engine, const struct lane_instance *in,
                         const struct core_cmd *asked, struct str uri);
/* False: the result cannot be accepted; the sentence is in *why. */
bool artifacts_fit(struct engine *engine, const struct open_plan *p, const struct msg_result *r,
                   struct buf *why);
#endif
