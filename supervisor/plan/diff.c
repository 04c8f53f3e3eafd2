#include "supervisor/plan/diff.h"

#include <stdio.h>

#include "protocol/base/map.h"
#include "protocol/base/utf8.h"
#include "protocol/limits.h"
#include "supervisor/plan/recipe_internal.h"

/* Maps are compared member by member down to this depth: policy.replan.budget.tokens. */
enum { DEPTH_MAX = 4, PATH_MAX_BYTES = 200 };
/* Of the text form, in bytes. */
enum { VALUE_SHOWN = 120, NAMES_SHOWN = 64, TASK_SHOWN = 100 };

/* The steps of one document that are not superseded. */
struct side {
    struct doc *steps;
    struct doc *deps; /* a list of ids: as written, or as a chain implies; absent for none */
    uint32_t n;
    bool chain;
    struct map by_id;
};

struct differ {
    struct arena *arena;
    struct bt_error *err;
    struct buf found; /* struct plan_difference */
    uint32_t left_out;
    bool oom;
};

static bool is_true(struct doc v)
{
    return v.ptr != NULL && doc_head(v).kind == DOC_BOOL && doc_head(v).b;
}

static struct str id_of(struct doc step)
{
    const struct str id = doc_string(doc_get(step, STR_LIT("stepId")));
    return id.ptr == NULL ? (struct str){"", 0} : id;
}

/* ---- the sides ---- */

/* A list of one id, in the arena. */
static struct doc list_of_one(struct differ *d, struct str id)
{
    struct buf out;
    buf_init(&out, LIMIT_CONTROL_BYTES);
    doc_put_array(&out, 1);
    doc_put_str(&out, id);
    const struct doc list =
        out.bad == BT_OK ? doc_copy(d->arena, doc_from_buf(&out)) : (struct doc){NULL, 0};
    d->oom = d->oom || list.ptr == NULL;
    buf_done(&out);
    return list;
}

static void read_deps(struct differ *d, struct side *s)
{
    s->chain = true;
    for (uint32_t i = 0; i < s->n; i++) {
        s->deps[i] = doc_get(s->steps[i], STR_LIT("dependsOn"));
        s->chain = s->chain && s->deps[i].ptr == NULL;
    }
    for (uint32_t i = 1; i < s->n && s->chain; i++) {
        s->deps[i] = list_of_one(d, id_of(s->steps[i - 1]));
    }
}

static enum bt_code read_side(struct differ *d, struct doc document, const char *which,
                              struct side *ret)
{
    const struct doc steps = doc_get(document, STR_LIT("steps"));
    struct doc_cursor c = doc_cursor(steps);
    struct doc_head head;
    if (steps.ptr == NULL || !doc_next(&c, &head) || head.kind != DOC_ARRAY) {
        return err_set(d->err, BT_INVALID, "the plan %s is no map with a list of \"steps\"", which);
    }
    ret->steps = arena_alloc(d->arena, (head.n + 1) * sizeof ret->steps[0]);
    ret->deps = arena_alloc(d->arena, (head.n + 1) * sizeof ret->deps[0]);
    if (ret->steps == NULL || ret->deps == NULL) {
        return err_set(d->err, BT_NOMEM, "out of memory for comparing plans");
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct doc step = doc_skip(&c);
        const bool gone = is_true(doc_get(step, STR_LIT("superseded")));
        if (gone || map_get(&ret->by_id, id_of(step)) != MAP_NONE) {
            continue;
        }
        if (map_put(&ret->by_id, id_of(step), ret->n) != BT_OK) {
            return err_set(d->err, BT_NOMEM, "out of memory for comparing plans");
        }
        ret->steps[ret->n++] = step;
    }
    read_deps(d, ret);
    return BT_OK;
}

/* ---- differences ---- */

static void add(struct differ *d, enum plan_change_kind kind, struct str step_id, const char *path,
                struct doc before, struct doc after)
{
    struct plan_difference one = {
        .kind = kind, .step_id = step_id, .before = before, .after = after};
    if (d->found.len / sizeof one >= PLAN_DIFF_MAX) {
        d->left_out++;
        return;
    }
    one.field = arena_str(d->arena, str_from(path));
    d->oom = d->oom || one.field.ptr == NULL;
    buf_add(&d->found, &one, sizeof one);
}

static bool same_bytes(struct doc a, struct doc b)
{
    return a.len == b.len && (a.ptr == NULL) == (b.ptr == NULL) &&
           (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* 2 and 2.0 are equal: JSON does not distinguish them. */
static bool same_number(struct doc a, struct doc b)
{
    const struct doc_head nothing = {.kind = DOC_NIL};
    const struct doc_head x = a.ptr == NULL ? nothing : doc_head(a);
    const struct doc_head y = b.ptr == NULL ? nothing : doc_head(b);
    const double whole = (double)(x.kind == DOC_UINT ? x.u : y.u);
    const double other = x.kind == DOC_UINT ? y.f : x.f;
    return ((x.kind == DOC_UINT && y.kind == DOC_FLOAT) ||
            (x.kind == DOC_FLOAT && y.kind == DOC_UINT)) &&
           whole >= other && whole <= other;
}

static bool is_map(struct doc v)
{
    return v.ptr != NULL && doc_head(v).kind == DOC_MAP;
}

static void compare(struct differ *d, struct str step_id, const char *path, struct doc before,
                    struct doc after, int depth);

/* Compares the members of two maps, those of `before` first. `ignored` are compared elsewhere. */
static void compare_maps(struct differ *d, struct str step_id, const char *prefix,
                         struct doc before, struct doc after, const char *const *ignored, int depth)
{
    for (int side = 0; side < 2; side++) {
        struct pairs members = pairs_of(side == 0 ? before : after);
        struct str key;
        struct doc value;
        while (next_pair(&members, &key, &value)) {
            char path[PATH_MAX_BYTES];
            bool known = side == 1 && doc_get(before, key).ptr != NULL;
            for (const char *const *q = ignored; q != NULL && *q != NULL && !known; q++) {
                known = str_is(key, *q);
            }
            if (known) {
                continue;
            }
            (void)snprintf(path, sizeof path, "%s%s%.*s", prefix, prefix[0] == '\0' ? "" : ".",
                           (int)(key.len < 80 ? key.len : 80), key.ptr);
            compare(d, step_id, path, side == 0 ? value : (struct doc){NULL, 0},
                    side == 0 ? doc_get(after, key) : value, depth);
        }
    }
}

static void compare(struct differ *d, struct str step_id, const char *path, struct doc before,
                    struct doc after, int depth)
{
    if (same_bytes(before, after) || same_number(before, after)) {
        return;
    }
    if (is_map(before) && is_map(after) && depth < DEPTH_MAX) {
        compare_maps(d, step_id, path, before, after, NULL, depth + 1);
        return;
    }
    add(d, PLAN_CHANGE_CHANGED, step_id, path, before, after);
}

static bool listed(struct doc list, struct str name)
{
    struct doc_cursor c = doc_cursor(list);
    struct doc_head head;
    if (list.ptr == NULL || !doc_next(&c, &head) || head.kind != DOC_ARRAY) {
        return false;
    }
    for (uint32_t i = 0; i < head.n; i++) {
        if (str_eq(doc_string(doc_skip(&c)), name)) {
            return true;
        }
    }
    return false;
}

/* Whether b has each name of a. */
static bool all_listed(struct doc a, struct doc b)
{
    struct doc_cursor c = doc_cursor(a);
    struct doc_head head;
    if (a.ptr == NULL || !doc_next(&c, &head) || head.kind != DOC_ARRAY) {
        return a.ptr == NULL || same_bytes(a, b);
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str name = doc_string(doc_skip(&c));
        if (name.ptr == NULL || !listed(b, name)) {
            return false;
        }
    }
    return true;
}

static uint32_t length(struct doc list)
{
    return list.ptr != NULL && doc_head(list).kind == DOC_ARRAY ? doc_head(list).n : 0;
}

static void compare_lists(struct differ *d, struct str step_id, const char *field,
                          struct doc before, struct doc after)
{
    const bool small =
        length(before) <= PLAN_DIFF_NAMES_MAX && length(after) <= PLAN_DIFF_NAMES_MAX;
    if (small ? !all_listed(before, after) || !all_listed(after, before)
              : !same_bytes(before, after)) {
        add(d, PLAN_CHANGE_CHANGED, step_id, field, before, after);
    }
}

/* The steps of a chain wait for any end, without the field. */
static bool any_end(const struct side *s, uint32_t ix)
{
    return (s->chain && ix > 0) || is_true(doc_get(s->steps[ix], STR_LIT("afterAnyEnd")));
}

static void compare_steps(struct differ *d, const struct side *a, uint32_t i, const struct side *b,
                          uint32_t k)
{
    static const char *const ignored[] = {"stepId",   "dependsOn",   "superseded",
                                          "revision", "afterAnyEnd", NULL};
    static const uint8_t yes[] = {0xc3};
    static const uint8_t no[] = {0xc2};
    const struct str id = id_of(a->steps[i]);
    compare_maps(d, id, "", a->steps[i], b->steps[k], ignored, 1);
    compare_lists(d, id, "dependsOn", a->deps[i], b->deps[k]);
    const bool was = any_end(a, i);
    const bool is = any_end(b, k);
    /* Only where both steps have dependencies: the first step of a chain has none. */
    if (was != is && a->deps[i].ptr != NULL && b->deps[k].ptr != NULL) {
        add(d, PLAN_CHANGE_CHANGED, id, "afterAnyEnd", (struct doc){was ? yes : no, 1},
            (struct doc){is ? yes : no, 1});
    }
}

static void compare_all(struct differ *d, struct doc before, struct doc after, struct side *a,
                        struct side *b)
{
    static const char *const ignored[] = {"steps", "grants", "revision", NULL};
    const struct str none = {"", 0};
    const struct doc nothing = {NULL, 0};
    compare_maps(d, none, "", before, after, ignored, 1);
    compare_lists(d, none, "grants", doc_get(before, STR_LIT("grants")),
                  doc_get(after, STR_LIT("grants")));
    for (uint32_t i = 0; i < a->n; i++) {
        if (map_get(&b->by_id, id_of(a->steps[i])) == MAP_NONE) {
            add(d, PLAN_CHANGE_REMOVED, id_of(a->steps[i]), "", a->steps[i], nothing);
        }
    }
    for (uint32_t i = 0; i < a->n; i++) {
        const uint32_t k = map_get(&b->by_id, id_of(a->steps[i]));
        if (k != MAP_NONE) {
            compare_steps(d, a, i, b, k);
        }
    }
    for (uint32_t k = 0; k < b->n; k++) {
        if (map_get(&a->by_id, id_of(b->steps[k])) == MAP_NONE) {
            add(d, PLAN_CHANGE_ADDED, id_of(b->steps[k]), "", nothing, b->steps[k]);
        }
    }
}

enum bt_code plan_diff(struct doc before, struct doc after, struct arena *arena,
                       struct plan_diff *ret, struct bt_error *err)
{
    struct differ d = {.arena = arena, .err = err};
    struct side a = {.n = 0};
    struct side b = {.n = 0};
    struct plan_difference *kept = NULL;
    buf_init(&d.found, PLAN_DIFF_MAX * sizeof *kept);
    enum bt_code code = read_side(&d, before, "before", &a);
    code = code == BT_OK ? read_side(&d, after, "after", &b) : code;
    if (code == BT_OK) {
        compare_all(&d, before, after, &a, &b);
        kept = arena_alloc(arena, d.found.len + sizeof *kept);
        if (d.oom || d.found.bad != BT_OK || kept == NULL) {
            code = err_set(err, BT_NOMEM, "out of memory for comparing plans");
        }
    }
    if (code == BT_OK) {
        if (d.found.len > 0) {
            memcpy(kept, d.found.at, d.found.len);
        }
        *ret = (struct plan_diff){
            .at = kept, .n = (uint32_t)(d.found.len / sizeof *kept), .left_out = d.left_out};
    }
    map_done(&a.by_id);
    map_done(&b.by_id);
    buf_done(&d.found);
    return code;
}

/* ---- text ---- */

static void put_clean(struct buf *out, struct str text, size_t cap)
{
    const size_t n = utf8_cut_words(text.ptr, text.len, cap);
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        buf_add_byte(out, c < 0x20 || c == 0x7f ? ' ' : c);
    }
    if (n < text.len) {
        buf_add_cstr(out, "...");
    }
}

/* As JSON, which contains no control characters. */
static void put_value(struct buf *out, struct doc v)
{
    struct buf json;
    if (v.ptr == NULL) {
        buf_add_cstr(out, "nothing");
        return;
    }
    buf_init(&json, 2 * LIMIT_CONTROL_BYTES);
    if (doc_to_json(v, false, &json, NULL) == BT_OK) {
        put_clean(out, buf_str(&json), VALUE_SHOWN);
    } else {
        out->bad = out->bad != BT_OK ? out->bad : json.bad;
        buf_add_cstr(out, "a value");
    }
    buf_done(&json);
}

static bool is_list(struct doc v)
{
    return v.ptr == NULL || (doc_head(v).kind == DOC_ARRAY && doc_head(v).n <= PLAN_DIFF_NAMES_MAX);
}

/* Appends " + name" for the names of `list` that `other` lacks; at most NAMES_SHOWN. */
static void put_names(struct buf *out, const char *mark, struct doc list, struct doc other)
{
    struct doc_cursor c = doc_cursor(list);
    struct doc_head head;
    const uint32_t n = list.ptr != NULL && doc_next(&c, &head) ? head.n : 0;
    uint32_t shown = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct str name = doc_string(doc_skip(&c));
        if (name.ptr == NULL || listed(other, name)) {
            continue;
        }
        if (shown++ == NAMES_SHOWN) {
            buf_printf(out, " %s ...", mark);
            return;
        }
        buf_printf(out, " %s ", mark);
        put_clean(out, name, LIMIT_ID_BYTES + 16);
    }
}

static struct str member(struct doc step, const char *key)
{
    const struct str text = doc_string(doc_get(step, str_from(key)));
    return text.ptr == NULL ? (struct str){"", 0} : text;
}

/* "step report (files.render): render the report" */
static void put_step(struct buf *out, struct str id, struct doc step)
{
    const struct str agent = member(step, "agentId");
    const struct str skill = member(step, "skill");
    const struct str type = member(step, "type");
    buf_add_cstr(out, "step ");
    put_clean(out, id, LIMIT_ID_BYTES);
    if (agent.len + type.len > 0) {
        buf_add_cstr(out, " (");
        put_clean(out, agent.len > 0 ? agent : type, LIMIT_ID_BYTES);
        if (skill.len > 0) {
            buf_add_cstr(out, ".");
            put_clean(out, skill, LIMIT_ID_BYTES);
        }
        buf_add_cstr(out, ")");
    }
    if (member(step, "task").len > 0) {
        buf_add_cstr(out, ": ");
        put_clean(out, member(step, "task"), TASK_SHOWN);
    }
}

static void put_change(struct buf *out, const struct plan_difference *c)
{
    const bool names = str_is(c->field, "dependsOn") || str_is(c->field, "grants");
    if (c->step_id.len > 0) {
        buf_add_cstr(out, "step ");
        put_clean(out, c->step_id, LIMIT_ID_BYTES);
        buf_add_cstr(out, ": ");
    }
    put_clean(out, c->field, 200);
    buf_add_cstr(out, ":");
    if (names && is_list(c->before) && is_list(c->after)) {
        put_names(out, "+", c->after, c->before);
        put_names(out, "-", c->before, c->after);
        return;
    }
    buf_add_cstr(out, " ");
    put_value(out, c->before);
    buf_add_cstr(out, " -> ");
    put_value(out, c->after);
}

void plan_diff_text(const struct plan_diff *diff, struct buf *out)
{
    for (uint32_t i = 0; i < diff->n; i++) {
        const struct plan_difference *c = &diff->at[i];
        switch (c->kind) {
        case PLAN_CHANGE_ADDED:
            buf_add_cstr(out, "+ ");
            put_step(out, c->step_id, c->after);
            break;
        case PLAN_CHANGE_REMOVED:
            buf_add_cstr(out, "- ");
            put_step(out, c->step_id, c->before);
            break;
        case PLAN_CHANGE_CHANGED:
            buf_add_cstr(out, "~ ");
            put_change(out, c);
            break;
        }
        buf_add_cstr(out, "\n");
    }
    if (diff->left_out > 0) {
        buf_printf(out, "and %u more\n", diff->left_out);
    }
}

/* ---- document ---- */

void plan_diff_doc(const struct plan_diff *diff, struct buf *out)
{
    static const char *const kinds[] = {"added", "removed", "changed"};
    doc_put_array(out, diff->n);
    for (uint32_t i = 0; i < diff->n; i++) {
        const struct plan_difference *c = &diff->at[i];
        doc_put_map(out, 1u + (c->step_id.len > 0) + (c->field.len > 0) + (c->before.ptr != NULL) +
                             (c->after.ptr != NULL));
        doc_put_cstr(out, "change");
        doc_put_cstr(out, kinds[c->kind]);
        if (c->step_id.len > 0) {
            doc_put_cstr(out, "stepId");
            doc_put_str(out, c->step_id);
        }
        if (c->field.len > 0) {
            doc_put_cstr(out, "field");
            doc_put_str(out, c->field);
        }
        if (c->before.ptr != NULL) {
            doc_put_cstr(out, "before");
            doc_put_doc(out, c->before);
        }
        if (c->after.ptr != NULL) {
            doc_put_cstr(out, "after");
            doc_put_doc(out, c->after);
        }
    }
}
