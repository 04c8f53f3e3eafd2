/* Templates with one first word, put in. Shared by expand ("results") and recipe ("inputs").
 * Private to this folder. */
#ifndef PLAN_SUBST_INTERNAL_H
#define PLAN_SUBST_INTERNAL_H

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"
#include "supervisor/core/plan/template.h"

struct subst {
    struct str word;
    /* The value of a well-formed template; must be one complete value. */
    enum bt_code (*lookup)(const struct template_ref *t, struct doc *ret, void *self,
                           struct bt_error *err);
    void *self;
    struct str own; /* templates of this first word are the document's own: a value that brings
                       one is refused; {NULL, 0} = none are */
};

/* Appends the text with templates rendered. */
BT_MUST_CHECK enum bt_code subst_text(const struct subst *s, struct str text, struct buf *out,
                                      struct bt_error *err);
/* Appends the document; a string that is one template becomes the value. Iterative; keys are left
 * alone. */
BT_MUST_CHECK enum bt_code subst_doc(const struct subst *s, struct doc doc, struct buf *out,
                                     struct bt_error *err);
#endif
