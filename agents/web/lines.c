#include "agents/web/lines.h"

#include <string.h>

static const char *line_of(struct web_lines *l, struct str name, struct str between,
                           struct str value)
{
    char *at = arena_room(&l->texts, name.len + between.len + value.len + 1);

    if (at == NULL) {
        l->bad = l->bad == BT_OK ? BT_NOMEM : l->bad;
        return NULL;
    }
    memcpy(at, name.ptr, name.len);
    memcpy(at + name.len, between.ptr, between.len);
    memcpy(at + name.len + between.len, value.ptr, value.len);
    at[name.len + between.len + value.len] = 0;
    return at;
}

void web_lines_add(struct web_lines *l, struct str name, struct str value)
{
    if (value.len == 0) {
        return;
    }
    if (l->n == WEB_LINES_MAX) {
        l->bad = l->bad == BT_OK ? BT_LIMIT : l->bad;
        return;
    }
    l->plain[l->n] = line_of(l, name, STR_LIT(": "), value);
    l->n += l->plain[l->n] != NULL ? 1 : 0;
}

void web_lines_bearer(struct web_lines *l, const char *key)
{
    if (key != NULL) {
        l->secret[0] = line_of(l, STR_LIT("Authorization"), STR_LIT(": Bearer "), str_from(key));
    }
}

enum bt_code web_lines_check(const struct web_lines *l, struct bt_error *err)
{
    if (l->bad == BT_NOMEM) {
        return err_set(err, BT_NOMEM, "out of memory for the headers of a request");
    }
    return l->bad == BT_OK
               ? BT_OK
               : err_set(err, BT_LIMIT, "a request has at most %d headers", WEB_LINES_MAX);
}

void web_lines_done(struct web_lines *l)
{
    arena_done(&l->texts);
    *l = (struct web_lines){.n = 0};
}
