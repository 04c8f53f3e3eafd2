/*
 * Conditions of steps (`when`): data that is checked when the plan is read and evaluated when the
 * step is ready. Both are bounded.
 *
 *   condition = {reference: tests | value, ..., "all": [condition, ...], "any": [...],
 *                "not": condition}      all members must hold; a value alone means eq
 *   reference = results.<stepId>[.<path>] | steps.<stepId>.status | inputs.<name> | state.<path>
 *             | item[.<path>] | index | iteration | previous[.<path>]
 *   tests     = {eq, ne, in, gt, gte, lt, lte, exists, matches, schema}   all must hold
 *
 * A recipe writes the value of an input beside its tests (`value`). What is null or missing does
 * not exist; every test but `exists` fails on it.
 */
#ifndef PLAN_CONDITION_H
#define PLAN_CONDITION_H

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"

enum {
    CONDITION_TESTS_MAX = 64,        /* in one condition */
    CONDITION_DEPTH_MAX = 6,         /* all, any and not in each other; a switch adds two */
    CONDITION_IN_MAX = 256,          /* values of `in` */
    CONDITION_BYTES_MAX = 16 * 1024, /* of one condition */
    CONDITION_TESTED_MAX = 1000      /* bytes of what an evaluation says about its values */
};

enum condition_kind {
    CONDITION_RESULT,
    CONDITION_STATUS,
    CONDITION_INPUT,
    CONDITION_STATE,
    CONDITION_SCOPE /* item, index, iteration, previous: inside forEach and repeat */
};
struct condition_ref {
    enum condition_kind kind;
    struct str text; /* "results.fetch.rows.0" */
    struct str name; /* "fetch.rows.0"; of a status the step's id */
};

/* False when the text is no reference. */
bool condition_ref_read(struct str text, struct condition_ref *ret);

/* Checks a condition. BT_INVALID, BT_LIMIT: err has the place and what would be right
 * ("results.a.n: gt: expected a number or a text, got true"). on_ref (may be NULL) gets each
 * reference in turn. */
typedef void condition_on_ref(void *self, const struct condition_ref *ref);
BT_MUST_CHECK enum bt_code condition_check(struct doc when, condition_on_ref *on_ref, void *self,
                                           struct bt_error *err);

/* Returns the value of a result, a status or the state; .ptr NULL: there is none. Valid until the
 * next call. */
typedef enum bt_code condition_value(void *self, const struct condition_ref *ref, struct doc *ret,
                                     struct bt_error *err);
/*
 * Evaluates a condition that was checked, from its first member on, no further than needed. tested
 * gets what was tested with its values, at most CONDITION_TESTED_MAX bytes, for people. BT_INVALID:
 * a test does not fit its value, so there is no verdict.
 */
BT_MUST_CHECK enum bt_code condition_evaluate(struct doc when, condition_value *value, void *self,
                                              bool *ret, struct buf *tested, struct bt_error *err);
#endif
