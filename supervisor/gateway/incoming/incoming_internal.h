/* Shared by read.c (the file), serve.c (requests) and shown.c (what is shown of both). */
#ifndef GATEWAY_INCOMING_INTERNAL_H
#define GATEWAY_INCOMING_INTERNAL_H

#include "supervisor/gateway/incoming/incoming.h"
#include "supervisor/gateway/webhook/store.h"

enum incoming_scheme { INCOMING_TOKEN, INCOMING_HMAC, INCOMING_STANDARD, INCOMING_SCHEMES };
extern const char *const incoming_schemes[]; /* their names */
enum { INCOMING_SECRET_MIN = 16, INCOMING_POINTER_MAX = 512 };

struct incoming_hook {
    const char *name;
    enum incoming_scheme scheme;
    struct hook_spec secret; /* where the secret is */
    const char *header;      /* that has the token or the signature */
    struct buf recipe;
    struct doc inputs;       /* {name: pointer}; absent = none */
    const char *key_header;  /* where the key is by which the same request is known; NULL = none */
    const char *key_pointer; /* the same, in the body */
    uint32_t failures;
    msec since;
    /* since this program started */
    uint64_t started, refused;
    msec last_wall; /* the last request; 0 = none came */
    unsigned last_status;
    char last_plan[65];
};

struct incoming {
    struct buf file; /* the docs point into it */
    struct incoming_hook hooks[INCOMING_MAX];
    uint32_t n;
    bool dirty;
    msec written;
};

struct incoming_hook *incoming_find(struct incoming *in, struct str name);
/* shown.c: a request of this hook is answered. plan: that it started; empty = none. */
void incoming_note(struct incoming *in, struct incoming_hook *k, unsigned status, struct str plan);
/* fill.c: appends the plan document of the recipe with the inputs that the body has. A plan that is
 * no recipe stays as it is. */
BT_MUST_CHECK enum bt_code incoming_fill(const struct incoming_hook *k, struct doc body,
                                         struct buf *out, struct bt_error *err);
#endif
