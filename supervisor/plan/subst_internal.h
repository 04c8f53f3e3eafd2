/*
 * Replaces templates with one first word: "results" (expand) or "inputs" (recipe). Private to this
 * folder.
 */
#ifndef PLAN_SUBST_INTERNAL_H
#define PLAN_SUBST_INTERNAL_H

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"
#include "supervisor/core/plan/template.h"

struct subst {
    struct str word;
    /* Returns the value of a well-formed template: one complete value. */
    enum bt_code (*lookup)(const struct template_ref *t, struct doc *ret, void *self,
                           struct bt_error *err);
    void *self;
    /* More first words, and the value of a template with the nth of them; often none. */
    const struct str *more;
    uint32_t n_more;
    enum bt_code (*lookup_more)(const struct template_ref *t, uint32_t word, struct doc *ret,
                                void *self, struct bt_error *err);
    struct str own; /* templates with this first word belong to the document: a value that contains
                       one is rejected; {NULL, 0} = no check */
};

/* Appends the text with templates replaced. BT_INVALID, BT_NOMEM, BT_LIMIT. */
BT_MUST_CHECK enum bt_code subst_text(const struct subst *s, struct str text, struct buf *out,
                                      struct bt_error *err);
/*
 * Appends the document; a string that is exactly one template becomes the value. Keys stay as they
 * are. Iterative. Errors as subst_text.
 */
BT_MUST_CHECK enum bt_code subst_doc(const struct subst *s, struct doc doc, struct buf *out,
                                     struct bt_error *err);
#endif
