#include "agents/sdk/settings/fields.h"

#include <stdio.h>

#include "protocol/base/glob.h"
#include "protocol/limits.h"

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
        return err_set(err, BT_INVALID,
                       d.ptr == NULL ? "%s: is missing; expected a text" : "%s: expected a text",
                       member);
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

enum bt_code field_bool(struct doc map, const char *member, bool *io, struct bt_error *err)
{
    struct doc d = doc_get(map, str_from(member));

    if (d.ptr != NULL && doc_head(d).kind != DOC_BOOL) {
        return err_set(err, BT_INVALID, "%s: expected true or false", member);
    }
    *io = d.ptr == NULL ? *io : doc_head(d).b;
    return BT_OK;
}

enum bt_code field_number(struct doc map, const char *member, uint64_t min, uint64_t max,
                          uint64_t *io, struct bt_error *err)
{
    const struct doc d = doc_get(map, str_from(member));

    if (d.ptr == NULL) {
        return BT_OK;
    }
    if (doc_head(d).kind != DOC_UINT || doc_head(d).u < min || doc_head(d).u > max) {
        return err_set(err, BT_INVALID, "%s: expected a number from %llu to %llu", member,
                       (unsigned long long)min, (unsigned long long)max);
    }
    *io = doc_head(d).u;
    return BT_OK;
}

enum bt_code field_texts(struct arena *a, struct doc map, const char *member, uint32_t max,
                         struct doc *ret, struct bt_error *err)
{
    const struct doc d = doc_get(map, str_from(member));
    struct doc_cursor c = doc_cursor(d);
    struct doc_head head;

    *ret = (struct doc){NULL, 0};
    if (d.ptr == NULL) {
        return BT_OK;
    }
    if (!doc_next(&c, &head) || head.kind != DOC_MAP || head.n > max) {
        return err_set(err, BT_INVALID, "%s: expected an object of at most %u texts", member, max);
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str name = doc_string(doc_skip(&c));
        if (doc_head(doc_skip(&c)).kind != DOC_STR) {
            return err_set(err, BT_INVALID, "%s.%.*s: expected a text", member, STR_ARG(name));
        }
    }
    *ret = doc_copy(a, d);
    return ret->ptr == NULL ? no_memory(err) : BT_OK;
}

/* ---- effects and ids of skills ---- */

static const char *known_effect(struct str value)
{
    static const char *const known[] = {"none", "idempotent", "unsafe"};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (str_is(value, known[i])) {
            return known[i];
        }
    }
    return NULL;
}

enum bt_code field_effects(struct arena *a, struct doc map, uint32_t max, struct doc *ret,
                           struct bt_error *err)
{
    const enum bt_code code = field_texts(a, map, "effects", max, ret, err);
    struct doc_cursor c = doc_cursor(*ret);
    struct doc_head head = {.n = 0};

    if (code == BT_OK && ret->ptr != NULL) {
        (void)doc_next(&c, &head);
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str glob = doc_string(doc_skip(&c));
        if (known_effect(doc_string(doc_skip(&c))) == NULL) {
            return err_set(err, BT_INVALID,
                           "effects.%.*s: expected one of none, idempotent, unsafe", STR_ARG(glob));
        }
    }
    return code;
}

const char *field_effect(struct doc effects, struct str name, const char *fallback)
{
    struct doc_cursor c = doc_cursor(effects);
    struct doc_head head = {.n = 0};

    if (effects.ptr != NULL) {
        (void)doc_next(&c, &head);
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str glob = doc_string(doc_skip(&c));
        const char *effect = known_effect(doc_string(doc_skip(&c)));
        if (effect != NULL && glob_fits(glob, name)) {
            return effect;
        }
    }
    return fallback;
}

const char *field_skill_id(struct arena *a, struct str name)
{
    char id[LIMIT_ID_BYTES + 1];
    size_t n = 0;

    for (size_t i = 0; i < name.len && n < LIMIT_ID_BYTES; i++) {
        const char c = name.ptr[i];
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '_' || (n > 0 && (c == '-' || c == '.'));
        id[n++] = plain ? c : '_';
    }
    return arena_str(a, (struct str){id, n}).ptr;
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
