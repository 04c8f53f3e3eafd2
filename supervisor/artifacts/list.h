/* The files that the results of a plan name, for clients. */
#ifndef ARTIFACTS_LIST_H
#define ARTIFACTS_LIST_H

#include "supervisor/query/projection.h"

enum { ARTIFACTS_LISTED = 1000 }; /* of one answer; the results of the steps have the rest */

/*
 * The artifacts of the steps [from, to) of the projection, in *ret; kept in its arena. A plan
 * without a directory of files costs one look at the file system. *ret_cut: there are more.
 */
BT_MUST_CHECK enum bt_code artifacts_list(struct engine *engine, struct projection *p,
                                          uint32_t from, uint32_t to,
                                          struct msg_plan_artifact **ret, uint32_t *ret_n,
                                          bool *ret_cut, struct bt_error *err);
#endif
