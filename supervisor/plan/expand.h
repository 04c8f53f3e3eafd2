/*
 * Replaces templates (core/plan/template.h) by results, just before a step is sent. A template that
 * cannot be resolved is BT_INVALID with the template and the step; no template reaches an agent.
 *
 * A step's result is a map {text?, data?, artifacts?}. {{results.x}} is its data, or its text when
 * there is no data. {{results.x.a.b}} is a path into the data (map keys and array indexes). When
 * the data has no such member, the path is tried from the result itself: {{results.x.text}},
 * {{results.x.data}}, {{results.x.artifacts.0.uri}}.
 * {{results.x.artifact}} is the uri of the first artifact, {{results.x.artifact.name}} a member of
 * it, and {{results.x.artifact.path}} the path of its `file:` uri.
 */
#ifndef PLAN_EXPAND_H
#define PLAN_EXPAND_H

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"

/*
 * Returns the result of a completed step, valid until the next call. BT_NOT_FOUND or BT_INVALID:
 * there is no such step or it has no result. Any other code ends the expansion. A reference is
 * tried with its longest possible step id first: "fetch.rows", then "fetch".
 */
typedef enum bt_code (*expand_resolver)(struct str step_id, struct doc *ret, void *self,
                                        struct bt_error *err);

/* Words of a child plan, beside results: {{item.name}}, {{iteration}}. */
struct expand_scope {
    const struct str *words;
    uint32_t n;
    /* The whole value of a word, valid until the next call. */
    enum bt_code (*value)(struct str word, struct doc *ret, void *self, struct bt_error *err);
};

/* What {{results.x.<path>}} is of the result of x, without artifacts; .ptr NULL: nothing. */
struct doc expand_pick(struct doc result, struct str path);

/* scope: NULL = only results. Appends the text with every template replaced: a string as it is,
 * another value as compact JSON.
 */
BT_MUST_CHECK enum bt_code expand_text(struct str text, expand_resolver resolver,
                                       const struct expand_scope *scope, void *self,
                                       struct buf *out, struct bt_error *err);
/*
 * Appends the document. A string that is exactly one template becomes the value with its type; in a
 * longer string templates are replaced by text. Map keys are not expanded. BT_INVALID when the
 * outcome is nested too deeply.
 */
BT_MUST_CHECK enum bt_code expand_params(struct doc params, expand_resolver resolver,
                                         const struct expand_scope *scope, void *self,
                                         struct buf *out, struct bt_error *err);
#endif
