#include "supervisor/plan/fields_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "protocol/base/assert.h"
#include "protocol/base/suggest.h"
#include "protocol/base/utf8.h"
#include "supervisor/plan/problem_add.h"
#include "supervisor/plan/words_internal.h"

void location_report(const struct location *at, enum problem_category c, bool warning,
                     const char *field, const char *fmt, ...)
{
    char path[256]; /* problem_put cuts it, with a mark */
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

void field_report_unknown(const struct location *at, struct fields_unknown *unknown,
                          const char *what, struct str name, struct str best,
                          const char *about_best)
{
    char field[80];
    const char *elsewhere =
        best.len == 0 && strcmp(what, "field") == 0 ? word_elsewhere(name) : NULL;
    const bool warning =
        unknown->lenient && !word_is_relied_on(name) && !word_is_relied_on(best) &&
        !word_is_relied_on(str_from(at->prefix)); /* nor in a gate, a verifier or a budget */
    if (warning && unknown->found > FIELD_UNKNOWN_MAX) {
        return;
    }
    (void)snprintf(field, sizeof field, "%.*s%s", PROBLEM_NAME(name));
    location_report(at, PROBLEM_UNKNOWN_FIELD, warning, field,
                    "unknown %s `%.*s%s`%s%s%.*s%s%s%s%s%s", what, PROBLEM_NAME(name),
                    warning ? " is ignored" : "", best.len > 0 ? "; did you mean `" : "",
                    STR_ARG(best), best.len > 0 ? "`" : "", about_best, best.len > 0 ? "?" : "",
                    elsewhere != NULL ? "; " : "", elsewhere != NULL ? elsewhere : "");
}

bool field_unknown_counts(const struct location *at, struct fields_unknown *unknown)
{
    if (unknown->silent) {
        return false;
    }
    unknown->found++;
    if (unknown->lenient && unknown->found == FIELD_UNKNOWN_LENIENT_MAX + 1) {
        location_report(at, PROBLEM_LIMIT, false, "", "the plan has more than %d unknown fields",
                        FIELD_UNKNOWN_LENIENT_MAX);
    }
    return unknown->found <=
           (unknown->lenient ? FIELD_UNKNOWN_LENIENT_MAX : (uint32_t)FIELD_UNKNOWN_MAX);
}

/* The parts of a proper name that people write alone: "timeout" of timeoutMs, "retries" of
 * maxRetries. */
static void offer_parts(struct suggest *near, struct str name)
{
    static const char *const ends[] = {"Ms", "Bytes", "Id", "With", "On"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const size_t n = strlen(ends[i]);
        if (name.len > n + 2 && memcmp(name.ptr + name.len - n, ends[i], n) == 0) {
            suggest_offer(near, (struct str){name.ptr, name.len - n});
        }
    }
    if (name.len > 5 && memcmp(name.ptr, "max", 3) == 0) {
        suggest_offer(near, (struct str){name.ptr + 3, name.len - 3});
    }
}

/* The proper name that is meant; empty when none is near enough. Proper names win over their parts,
 * and those over other names. */
static struct str guess(const struct field_table *t, struct str key)
{
    struct suggest near = suggest_start(key);
    struct str found = {"", 0};
    for (int pass = 0; pass < 3; pass++) {
        for (uint32_t i = 0; i < t->n; i++) {
            const struct field_name *n = &t->names[i];
            const uint32_t before = near.distance;
            if (n->field == FIELD_IGNORED || (n->how == FIELD_PROPER) == (pass == 2)) {
                continue;
            }
            if (pass == 1) {
                offer_parts(&near, str_from(n->name));
            } else {
                suggest_offer(&near, str_from(n->name));
            }
            if (near.distance < before) {
                found = str_from(field_canonical(t, n->field));
            }
        }
    }
    return found;
}

/* "policy.maxRetries" for a name that stands one level too high; else empty. */
static struct str belongs_below(const struct field_table *t, struct str key, char *mem, size_t cap)
{
    for (uint32_t i = 0; t->below != NULL && i < t->below->n; i++) {
        if (str_is(key, t->below->at[i].name)) {
            (void)snprintf(mem, cap, "%s.%s", t->below->in, t->below->at[i].name);
            return str_from(mem);
        }
    }
    return (struct str){"", 0};
}

/* The field of this table that other systems call so, perhaps with a value; empty when none is. */
static struct str synonym(const struct field_table *t, struct str key)
{
    const char *meant;
    for (uint32_t k = 0; (meant = word_synonym(key, k)) != NULL; k++) {
        const struct str field = {meant, strcspn(meant, ":")};
        for (uint32_t i = 0; i < t->n; i++) {
            if (str_eq(str_from(t->names[i].name), field)) {
                return str_from(meant);
            }
        }
    }
    return (struct str){"", 0};
}

static void unknown_name(const struct field_table *t, struct str key, const struct location *at)
{
    char name[80];
    if (!field_unknown_counts(at, t->unknown)) {
        return;
    }
    /* forMs is meant in a wait, whatever `for` is in a plan */
    const struct str own = synonym(t, key);
    const char *why = own.len > 0 ? NULL : word_refusal(key);
    if (why == NULL) {
        struct str best = belongs_below(t, key, name, sizeof name);
        best = best.len > 0 ? best : own;
        best = best.len > 0 || word_elsewhere(key) != NULL ? best : guess(t, key);
        field_report_unknown(at, t->unknown, "field", key, best, "");
        return;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)utf8_cut(key.ptr, key.len, 64), key.ptr);
    location_report(at, PROBLEM_UNSUPPORTED, false, name, "`%s` is not supported: %s", name, why);
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
    if (t->names[entry].how == FIELD_ALIAS && (*reported >> entry % 64 & 1) == 0) {
        *reported |= UINT64_C(1) << entry % 64;
        location_report(at, PROBLEM_STYLE, true, t->names[entry].name, "is read as \"%s\"",
                        canonical);
    }
}

static bool same(struct doc a, struct doc b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

/* One field under two names. Where people rely on it, two values are no choice of the reader. */
static void report_twice(const struct field_table *t, uint32_t kept, uint32_t lost, bool same,
                         const struct location *at)
{
    const char *proper = field_canonical(t, t->names[kept].field);
    if (!same && !t->unknown->silent && word_is_relied_on(str_from(proper))) {
        location_report(at, PROBLEM_INVALID_FIELD, false, t->names[lost].name,
                        "is the same field as \"%s\" and has another value; give one of them",
                        t->names[kept].name);
    } else {
        location_report(at, PROBLEM_STYLE, true, t->names[lost].name,
                        "is ignored: \"%s\" is the same field and is given, too",
                        t->names[kept].name);
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
            report_twice(t, kept, kept == entry ? rank[field] : entry, same(value, values[field]),
                         at);
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

/* ---- problems ---- */

void problem_add(struct problems *p, enum problem_category c, bool warning,
                 const struct plan_step *step, uint32_t ix, const char *field, const char *fmt, ...)
{
    char text[640];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const struct str part = str_from(text);
    problem_put(p, c, warning, step, ix, field, &part, 1);
}

/* The message of an unknown name has the name: its place is the map that it is in. */
static struct str place_of(const struct problem *p)
{
    struct str field = str_from(p->field);
    if (p->category == PROBLEM_UNKNOWN_FIELD || p->category == PROBLEM_UNSUPPORTED) {
        while (field.len > 0 && field.ptr[field.len - 1] != '.') {
            field.len--;
        }
        field.len -= field.len > 0;
    }
    return field;
}

void problem_text(const struct problem *p, char *ret, size_t cap)
{
    const struct str field = place_of(p);
    char step[96] = "";
    if (p->step != UINT32_MAX) {
        const bool named = p->step_id[0] != '\0';
        (void)snprintf(step, sizeof step, "step %u%s%s%s: ", p->step + 1, named ? " (" : "",
                       p->step_id, named ? ")" : "");
    }
    (void)snprintf(ret, cap, "%s%.*s%s%s", step, STR_ARG(field), field.len > 0 ? ": " : "",
                   p->message);
    ret[utf8_cut(ret, strlen(ret), cap - 1)] = '\0';
}
