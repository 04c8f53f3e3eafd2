/* The header lines of one request, for struct web_request. One owner. */
#ifndef WEB_LINES_H
#define WEB_LINES_H

#include "protocol/base/arena.h"
#include "protocol/base/err.h"

enum { WEB_LINES_MAX = 80 };

struct web_lines {
    struct arena texts;
    const char *plain[WEB_LINES_MAX + 1]; /* "Name: value", NULL-terminated */
    const char *secret[2];                /* the same, at most one */
    size_t n;
    enum bt_code bad; /* the first failure: BT_NOMEM or BT_LIMIT */
};

/* A zeroed struct has none, and is ready for use. Nothing is added for an empty value. */
void web_lines_add(struct web_lines *l, struct str name, struct str value);
/* "Authorization: Bearer KEY"; nothing when it is NULL. */
void web_lines_bearer(struct web_lines *l, const char *key);
/* Once, after all were added: BT_NOMEM, or BT_LIMIT for more than WEB_LINES_MAX. */
BT_MUST_CHECK enum bt_code web_lines_check(const struct web_lines *l, struct bt_error *err);
void web_lines_done(struct web_lines *l);
#endif
