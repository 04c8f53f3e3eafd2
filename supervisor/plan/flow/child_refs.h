/* References of a step's children, and of what undoes it, to steps outside. */
#ifndef PLAN_FLOW_CHILD_REFS_H
#define PLAN_FLOW_CHILD_REFS_H

#include "protocol/base/err.h"
#include "protocol/wire/doc.h"

/* Gets each in turn: a template "{{results.a.b}}", or a reference of a condition ("results.a.b",
 * "steps.a"). False: no more, please. */
typedef bool child_on_ref(void *self, struct str text, bool reference);
/*
 * Visits what the step's children refer to outside: in the list, the inputs, the condition and the
 * body, but no step of the body itself. own: the step's id, which in its condition is the last
 * round. Linear in the bytes. BT_NOMEM.
 */
BT_MUST_CHECK enum bt_code child_references(struct doc child, struct str own, child_on_ref *on_ref,
                                            void *self, struct bt_error *err);
/* The same for `compensate` of a step: own is its id, whose result the step has then. */
BT_MUST_CHECK enum bt_code compensate_references(struct doc compensate, struct str own,
                                                 child_on_ref *on_ref, void *self,
                                                 struct bt_error *err);
#endif
