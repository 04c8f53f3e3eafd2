#include "agents/sdk/settings/fields.h"

#include <stdio.h>

enum { FIELD_BYTES = 64 * 1024 };

static enum bt_code no_memory(struct bt_error *err)
{
    return err_set(err, BT_NOMEM, "out of memory for the settings");
}

enum bt_code field_text(struct arena *a, struct doc map, const char *member, bool needed,
                        const char **ret, struct bt_error *err)
{
    struct doc d = doc_get(map, str_from(member));

    *ret = NULL;
    if (d.ptr == NULL && !needed) {
        return BT_OK;
    }
    if (d.ptr == NULL || doc_head(d).kind != DOC_STR || doc_string(d).len == 0) {
        return err_set(err, BT_INVALID, "%s: expected a text", member);
    }
    *ret = arena_str(a, doc_string(d)).ptr;
    return *ret == NULL ? no_memory(err) : BT_OK;
}

/* Reads a list of texts, NULL-terminated; *ret stays NULL when the member is missing. */
enum bt_code field_list(struct arena *a, struct doc map, const char *member, uint32_t max,
                        const char *const **ret, struct bt_error *err)
{
    struct doc d = doc_get(map, str_from(member));
    const char **list;
    uint32_t n;

    *ret = NULL;
    if (d.ptr == NULL) {
        return BT_OK;
    }
    if (doc_head(d).kind != DOC_ARRAY || doc_head(d).n > max) {
        return err_set(err, BT_INVALID, "%s: expected a list of at most %u texts", member, max);
    }
    n = doc_head(d).n;
    list = arena_alloc(a, (n + 1u) * sizeof *list);
    for (uint32_t i = 0; i < n && list != NULL; i++) {
        struct doc item = doc_at(d, i);
        if (doc_head(item).kind != DOC_STR) {
            return err_set(err, BT_INVALID, "%s[%u]: expected a text", member, i);
        }
        list[i] = arena_str(a, doc_string(item)).ptr;
        list = list[i] == NULL ? NULL : list;
    }
    *ret = list;
    return list == NULL ? no_memory(err) : BT_OK;
}

enum bt_code field_choice(struct doc map, const char *member, const char *const *names, unsigned n,
                          unsigned *ret, struct bt_error *err)
{
    struct doc d = doc_get(map, str_from(member));
    char list[256];

    if (d.ptr == NULL) {
        return BT_OK;
    }
    for (unsigned i = 0; i < n; i++) {
        if (doc_head(d).kind == DOC_STR && str_is(doc_string(d), names[i])) {
            *ret = i;
            return BT_OK;
        }
    }
    (void)snprintf(list, sizeof list, "%s", names[0]);
    for (unsigned i = 1; i < n; i++) {
        const size_t used = strlen(list);
        (void)snprintf(list + used, sizeof list - used, ", %s", names[i]);
    }
    return err_set(err, BT_INVALID, "%s: expected one of %s", member, list);
}

/* ---- the environment ---- */

static enum bt_code env_name_ok(struct str name, struct bt_error *err)
{
    bool ok = name.len > 0 && memchr(name.ptr, '=', name.len) == NULL;
    bool ours =
        (name.len >= 6 && memcmp(name.ptr, "BATON_", 6) == 0) || str_is(name, "TRACEPARENT");

    return ok && !ours ? BT_OK
                       : err_set(err, BT_INVALID,
                                 "env: '%.*s' is not a variable name, or the agent sets it itself",
                                 STR_ARG(name));
}

enum bt_code field_env(struct arena *a, struct doc map, const char *const **ret,
                       struct bt_error *err)
{
    struct doc d = doc_get(map, STR_LIT("env"));
    struct doc_cursor c = doc_cursor(d);
    struct doc_head h;
    const char **list;

    *ret = NULL;
    if (d.ptr == NULL) {
        return BT_OK;
    }
    if (!doc_next(&c, &h) || h.kind != DOC_MAP || h.n > FIELD_ENV_MAX) {
        return err_set(err, BT_INVALID, "env: expected an object of at most %d texts",
                       FIELD_ENV_MAX);
    }
    list = arena_alloc(a, (h.n + 1u) * sizeof *list);
    for (uint32_t i = 0; i < h.n && list != NULL; i++) {
        struct str name = doc_string(doc_skip(&c));
        struct doc value = doc_skip(&c);
        struct buf pair;
        if (env_name_ok(name, err) != BT_OK) {
            return BT_INVALID;
        }
        if (doc_head(value).kind != DOC_STR) {
            return err_set(err, BT_INVALID, "env.%.*s: expected a text", STR_ARG(name));
        }
        buf_init(&pair, FIELD_BYTES);
        buf_add_str(&pair, name);
        buf_add_byte(&pair, '=');
        buf_add_str(&pair, doc_string(value));
        list[i] = buf_check(&pair, NULL) == BT_OK ? arena_str(a, buf_str(&pair)).ptr : NULL;
        list = list[i] == NULL ? NULL : list;
        buf_done(&pair);
    }
    *ret = list;
    return list == NULL ? no_memory(err) : BT_OK;
}
