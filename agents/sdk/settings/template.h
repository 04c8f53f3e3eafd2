/*
 * Argument templates: "{name}" is a parameter (a dotted path), "{{" is a brace. A value stays
 * within its one argument whatever it contains: no /bin/sh is involved.
 */
#ifndef SDK_TEMPLATE_H
#define SDK_TEMPLATE_H

#include "baton/agent.h"
#include "protocol/base/buf.h"

/* A piece of a template: literal bytes, or the name of a parameter. */
struct template_piece {
    struct str text;
    bool is_name;
};

/* Reads the next piece from *at. False at the end. BT_INVALID (in *ret_code) when a brace is
 * neither "{name}" nor "{{". */
bool template_next(const char **at, struct template_piece *ret, enum bt_code *ret_code,
                   struct bt_error *err);
/* Fills the template from the step's parameters and appends it. BT_INVALID names a missing
 * parameter. */
BT_MUST_CHECK enum bt_code template_fill(const char *text, struct bt_step *step, struct buf *out,
                                         struct bt_error *err);
#endif
