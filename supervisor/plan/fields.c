#include "supervisor/plan/fields_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "protocol/base/assert.h"
#include "protocol/base/suggest.h"
#include "protocol/base/utf8.h"

void location_report(const struct location *at, enum problem_category c, bool warning,
                     const char *field, const char *fmt, ...)
{
    char path[96];
    char text[640];
    va_list args;
    (void)snprintf(path, sizeof path, "%s%s%s", at->prefix, at->prefix[0] == '\0' ? "" : ".",
                   field);
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const struct str part = {text, utf8_cut(text, strlen(text), sizeof text - 4)};
    problem_put(at->problems, c, warning, at->step, at->ix, path, &part, 1);
}

/* ---- members ---- */

static void unknown_name(const struct field_table *t, struct str key, const struct location *at)
{
    if (++*t->unknown > FIELD_UNKNOWN_MAX) {
        return;
    }
    struct suggest near = suggest_start(key);
    for (uint32_t i = 0; i < t->n; i++) {
        if (i == 0 || t->names[i].field != t->names[i - 1].field) {
            suggest_offer(&near, str_from(t->names[i].name));
        }
    }
    char name[80];
    const size_t shown = utf8_cut(key.ptr, key.len, 64);
    (void)snprintf(name, sizeof name, "%.*s", (int)shown, key.ptr);
    if (near.best.ptr != NULL) {
        location_report(at, PROBLEM_STYLE, true, name,
                        "is not a field that is known here and is ignored; did you mean \"%.*s\"?",
                        STR_ARG(near.best));
    } else {
        location_report(at, PROBLEM_STYLE, true, name,
                        "is not a field that is known here and is ignored");
    }
}

static uint32_t entry_of(const struct field_table *t, struct str key)
{
    for (uint32_t i = 0; i < t->n; i++) {
        if (str_is(key, t->names[i].name)) {
            return i;
        }
    }
    return UINT32_MAX;
}

const char *field_canonical(const struct field_table *t, uint8_t field)
{
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->names[i].field == field) {
            return t->names[i].name;
        }
    }
    return "";
}

static void report_alias(const struct field_table *t, uint32_t entry, const struct location *at)
{
    const char *canonical = field_canonical(t, t->names[entry].field);
    uint64_t *reported = &t->reported->entries[entry / 64];
    if (canonical != t->names[entry].name && (*reported >> entry % 64 & 1) == 0) {
        *reported |= UINT64_C(1) << entry % 64;
        location_report(at, PROBLEM_STYLE, true, t->names[entry].name, "is read as \"%s\"",
                        canonical);
    }
}

void fields_read(const struct field_table *t, struct doc map, const struct location *at,
                 struct doc *values)
{
    uint8_t rank[FIELD_NAMES_MAX];
    ASSERT(t->n <= FIELD_NAMES_MAX);
    memset(rank, 0xff, sizeof rank);
    struct doc_cursor c = doc_cursor(map);
    struct doc_head head;
    if (!doc_next(&c, &head) || head.kind != DOC_MAP) {
        return;
    }
    for (uint32_t i = 0; i < head.n; i++) {
        struct doc_head key;
        const bool named = doc_next(&c, &key) && key.kind == DOC_STR;
        const struct doc value = doc_skip(&c);
        if (value.ptr == NULL || !named) {
            return; /* damaged: mp_validate rejects such a document */
        }
        if (doc_head(value).kind == DOC_NIL) {
            continue;
        }
        const uint32_t entry = entry_of(t, key.str);
        if (entry == UINT32_MAX) {
            unknown_name(t, key.str, at);
            continue;
        }
        const uint8_t field = t->names[entry].field;
        if (field == FIELD_IGNORED) {
            continue;
        }
        if (rank[field] != 0xff) {
            const uint32_t kept = entry < rank[field] ? entry : rank[field];
            const uint32_t lost = entry < rank[field] ? rank[field] : entry;
            location_report(at, PROBLEM_STYLE, true, t->names[lost].name,
                            "is ignored: \"%s\" is the same field and is given, too",
                            t->names[kept].name);
        }
        if (entry < rank[field]) {
            rank[field] = (uint8_t)entry;
            values[field] = value;
            report_alias(t, entry, at);
        }
    }
}

/* ---- values ---- */

void value_describe(struct doc v, char *ret, size_t cap)
{
    const struct doc_head h = doc_head(v);
    switch (h.kind) {
    case DOC_NIL:
        (void)snprintf(ret, cap, "null");
        break;
    case DOC_BOOL:
        (void)snprintf(ret, cap, "%s", h.b ? "true" : "false");
        break;
    case DOC_INT:
        (void)snprintf(ret, cap, "%" PRId64, h.i);
        break;
    case DOC_UINT:
        (void)snprintf(ret, cap, "%" PRIu64, h.u);
        break;
    case DOC_FLOAT:
        (void)snprintf(ret, cap, "%g", h.f);
        break;
    case DOC_STR:
        (void)snprintf(ret, cap, "\"%.*s\"", (int)utf8_cut(h.str.ptr, h.str.len, 40), h.str.ptr);
        break;
    case DOC_BIN:
        (void)snprintf(ret, cap, "binary bytes");
        break;
    case DOC_ARRAY:
        (void)snprintf(ret, cap, "a list");
        break;
    case DOC_MAP:
        (void)snprintf(ret, cap, "a map");
        break;
    }
}

static bool wrong(const struct location *at, const char *field, struct doc v, const char *expected)
{
    char got[64];
    value_describe(v, got, sizeof got);
    location_report(at, at->warn_only ? PROBLEM_STYLE : PROBLEM_INVALID_FIELD, at->warn_only, field,
                    at->warn_only ? "is ignored: expected %s, got %s" : "expected %s, got %s",
                    expected, got);
    return false;
}

bool value_string(const struct location *at, const char *field, struct doc v, struct str *ret)
{
    if (v.ptr == NULL) {
        return false;
    }
    const struct doc_head h = doc_head(v);
    if (h.kind != DOC_STR) {
        return wrong(at, field, v, "a string");
    }
    *ret = h.str;
    return true;
}

bool value_id(const struct location *at, const char *field, struct doc v, struct arena *arena,
              struct str *ret, bool *oom)
{
    if (v.ptr == NULL) {
        return false;
    }
    const struct doc_head h = doc_head(v);
    char text[32];
    if (h.kind == DOC_STR) {
        *ret = h.str;
        return true;
    }
    if (h.kind == DOC_UINT) {
        (void)snprintf(text, sizeof text, "%" PRIu64, h.u);
    } else if (h.kind == DOC_INT) {
        (void)snprintf(text, sizeof text, "%" PRId64, h.i);
    } else {
        return wrong(at, field, v, "a string");
    }
    const struct str copy = arena_str(arena, str_from(text));
    *oom = *oom || copy.ptr == NULL;
    *ret = copy;
    return copy.ptr != NULL;
}

bool value_u64(const struct location *at, const char *field, struct doc v, uint64_t min,
               uint64_t max, uint64_t *ret)
{
    if (v.ptr == NULL) {
        return false;
    }
    const struct doc_head h = doc_head(v);
    const bool whole =
        h.kind == DOC_FLOAT && h.f >= 0 && h.f <= 9007199254740992.0 && floor(h.f) == h.f;
    const uint64_t n = whole ? (uint64_t)h.f : h.u;
    if ((h.kind != DOC_UINT && !whole) || n < min || n > max) {
        char expected[96];
        (void)snprintf(expected, sizeof expected, "a whole number from %" PRIu64 " to %" PRIu64,
                       min, max);
        return wrong(at, field, v, expected);
    }
    *ret = n;
    return true;
}

bool value_permille(const struct location *at, const char *field, struct doc v, double min,
                    double max, uint32_t *ret)
{
    if (v.ptr == NULL) {
        return false;
    }
    const struct doc_head h = doc_head(v);
    const double n = h.kind == DOC_FLOAT ? h.f : (double)h.u;
    /* Written so that NaN is rejected. */
    if ((h.kind != DOC_FLOAT && h.kind != DOC_UINT) || !(n >= min && n <= max)) {
        char expected[96];
        (void)snprintf(expected, sizeof expected, "a number from %g to %g", min, max);
        return wrong(at, field, v, expected);
    }
    *ret = (uint32_t)(n * 1000.0 + 0.5);
    return true;
}

bool value_bool(const struct location *at, const char *field, struct doc v, bool *ret)
{
    if (v.ptr == NULL) {
        return false;
    }
    const struct doc_head h = doc_head(v);
    if (h.kind != DOC_BOOL) {
        return wrong(at, field, v, "true or false");
    }
    *ret = h.b;
    return true;
}

bool value_map(const struct location *at, const char *field, struct doc v)
{
    if (v.ptr == NULL) {
        return false;
    }
    return doc_head(v).kind == DOC_MAP || wrong(at, field, v, "a map");
}

bool value_choice(const struct location *at, const char *field, struct doc v,
                  const char *const *names, uint32_t n, uint32_t *ret)
{
    if (v.ptr == NULL) {
        return false;
    }
    const struct str s = doc_string(v);
    char expected[192] = "one of";
    for (uint32_t i = 0; i < n; i++) {
        if (s.ptr != NULL && str_is(s, names[i])) {
            *ret = i;
            return true;
        }
        const size_t used = strlen(expected);
        (void)snprintf(expected + used, sizeof expected - used, "%s %s", i == 0 ? "" : ",",
                       names[i]);
    }
    return wrong(at, field, v, expected);
}
