/*
 * Puts results into templates (core/template.h) just before a step is sent. Strict: what cannot be
 * resolved is BT_INVALID, naming the template and the step; nothing is ever left as
 * "{{results.x}}".
 *
 * A step's result is a map {text?, data?, artifacts?}. {{results.x}} is its data, or its text when
 * there is no data.
 * {{results.x.a.b}} is a path into the data (map keys and array indexes); when the data has no such
 * member, the path is tried from the result itself, so that {{results.x.text}}, {{results.x.data}}
 * and {{results.x.artifacts.0.uri}} can be named.
 */
#ifndef PLAN_EXPAND_H
#define PLAN_EXPAND_H

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"

/*
 * Gives the result of a completed step, valid until the next call. BT_NOT_FOUND or BT_INVALID:
 * there is no such step or it has no result (a reference is tried with the longest step id first:
 * "fetch.rows", then "fetch"); any other code stops the expansion.
 */
typedef enum bt_code (*expand_resolver)(struct str step_id, struct doc *ret, void *self,
                                        struct bt_error *err);

/* Appends the text with every template rendered: a string bare, anything else as compact JSON. */
BT_MUST_CHECK enum bt_code expand_text(struct str text, expand_resolver resolver, void *self,
                                       struct buf *out, struct bt_error *err);
/*
 * Appends the document. A string that is exactly one template becomes the value itself, with its
 * type; in a longer string templates are rendered as text. Map keys are left alone. BT_INVALID when
 * the outcome is nested too deeply.
 */
BT_MUST_CHECK enum bt_code expand_params(struct doc params, expand_resolver resolver, void *self,
                                         struct buf *out, struct bt_error *err);
#endif
