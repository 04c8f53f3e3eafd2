/*
 * Incoming hooks: POST /hooks/NAME with a secret or signature starts the recipe that the
 * configuration names, with inputs from the body. The file is read when the gateway starts. One
 * thread.
 */
#ifndef GATEWAY_INCOMING_INCOMING_H
#define GATEWAY_INCOMING_INCOMING_H

#include "protocol/base/err.h"
#include "protocol/base/msec.h"
#include "protocol/base/str.h"
#include "protocol/wire/doc.h"

enum {
    INCOMING_MAX = 64,
    INCOMING_INPUTS_MAX = 32,
    INCOMING_FAILURES_MAX = 10, /* of one hook, in */
    INCOMING_FAILURES_MS = 10000,
    INCOMING_AGE_S = 300 /* how old a signature of Standard Webhooks may be, or how early */
};

struct http;
struct incoming;

/* Reads the file, YAML or JSON, and the recipes that it names. Lives as long as the process. */
BT_MUST_CHECK enum bt_code incoming_new(const char *path, struct incoming **ret,
                                        struct bt_error *err);
/* Writes STATE/hooks.json, which hook.list reads, when something has changed. in may be NULL. */
void incoming_run(struct incoming *in, const char *state_dir, msec now);
/* Removes the file of a gateway that had hooks. */
void incoming_show_none(const char *state_dir);
/* When incoming_run is due. */
msec incoming_deadline(const struct incoming *in);
/* POST /hooks/NAME. */
void incoming_serve(struct http *h);

/* Appends what a YAML or JSON file of at most 1 MiB has. BT_LIMIT: it has more. */
BT_MUST_CHECK enum bt_code incoming_read_file(const char *path, struct buf *ret_doc,
                                              struct bt_error *err);

/* ---- fill.c: recipes (plan/recipe.h), for those who cannot include it beside http.h ---- */

bool incoming_is_recipe(struct doc d);
/* values may be absent. BT_INVALID: they do not fit. */
BT_MUST_CHECK enum bt_code incoming_fill_recipe(struct doc recipe, struct doc values,
                                                struct buf *out, struct bt_error *err);

/* ---- pointer.c ---- */

/* The value that a JSON pointer (RFC 6901) names; .ptr NULL: there is none. "" is the whole. */
struct doc pointer_find(struct doc d, struct str pointer);
/* Whether it is one: "" or parts that each begin with a slash, ~ only as ~0 and ~1. */
bool pointer_ok(struct str pointer);
#endif
