#include "supervisor/plan/flow/switch.h"

#include <stdio.h>

#include "protocol/limits.h"
#include "supervisor/plan/flow/condition_internal.h"

/* One condition that the steps of a branch have from their switches. */
struct term {
    struct doc condition;
    bool negated; /* of a branch before */
};

enum { TERMS_MAX = CONDITION_TESTS_MAX };

struct flattening {
    const struct switch_reader *reader;
    struct arena *arena;
    struct bt_error *err;
    struct term terms[TERMS_MAX];
    uint32_t n;
    uint32_t switches; /* read so far */
    bool over;         /* the reader wants no more */
};

bool switch_is(struct doc entry)
{
    if (doc_head(entry).kind != DOC_MAP) {
        return false;
    }
    const struct doc branches = doc_get(entry, STR_LIT("switch"));
    return branches.ptr != NULL && doc_head(branches).kind != DOC_NIL;
}

static void report(struct flattening *f, uint32_t branch, bool limit, const char *text)
{
    char line[400];
    char number[24] = "";
    if (f->switches > 1) {
        (void)snprintf(number, sizeof number, "number %u, ", f->switches);
    }
    (void)snprintf(line, sizeof line, "%sbranch %u: %s", number, branch + 1, text);
    f->reader->problem(f->reader->self, limit, line);
}

/* ---- a step of a branch ---- */

static void put_term(struct buf *out, const struct term *t)
{
    if (t->negated) {
        doc_put_map(out, 1);
        doc_put_cstr(out, "not");
    }
    doc_put_doc(out, t->condition);
}

/* All conditions of the step: those of its switches, and its own (.ptr NULL: none). */
static void put_condition(struct flattening *f, struct doc own, struct buf *out)
{
    const uint32_t n = f->n + (own.ptr != NULL ? 1 : 0);
    if (n > 1) {
        doc_put_map(out, 1);
        doc_put_cstr(out, "all");
        doc_put_array(out, n);
    }
    for (uint32_t i = 0; i < f->n; i++) {
        put_term(out, &f->terms[i]);
    }
    if (own.ptr != NULL) {
        doc_put_doc(out, own);
    }
}

/* The step's own condition, under the name that wins; .ptr NULL: it has none. */
static struct doc own_condition(struct doc step)
{
    static const char *const names[] = {"when", "if", "condition", "onlyIf"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct doc value = doc_get(step, str_from(names[i]));
        if (value.ptr != NULL && doc_head(value).kind != DOC_NIL) {
            return value;
        }
    }
    return (struct doc){NULL, 0};
}

/* The members of the step but its conditions. Returns their number; out may be NULL. */
static uint32_t put_members(struct doc step, struct buf *out)
{
    struct members m = members_of(step);
    struct str key;
    struct doc value;
    uint32_t n = 0;
    while (member_next(&m, &key, &value)) {
        if (condition_is_member(key)) {
            continue;
        }
        n++;
        if (out != NULL) {
            doc_put_str(out, key);
            doc_put_doc(out, value);
        }
    }
    return n;
}

static void put_step(struct flattening *f, struct doc step, struct buf *out)
{
    const struct doc own = own_condition(step);
    if (doc_head(step).kind == DOC_STR) { /* a step that is only a task */
        doc_put_map(out, 2);
        doc_put_cstr(out, "task");
        doc_put_doc(out, step);
    } else {
        doc_put_map(out, put_members(step, NULL) + 1);
        (void)put_members(step, out);
    }
    doc_put_cstr(out, "when");
    put_condition(f, own, out);
}

static enum bt_code give_step(struct flattening *f, struct doc step)
{
    const enum doc_kind kind = doc_head(step).kind;
    struct buf out;
    if (f->n == 0 || (kind != DOC_MAP && kind != DOC_STR)) {
        f->over = !f->reader->step(f->reader->self, step);
        return BT_OK;
    }
    buf_init(&out, LIMIT_CONTROL_BYTES);
    put_step(f, step, &out);
    const enum bt_code code = buf_check(&out, f->err);
    const struct doc made = doc_copy(f->arena, doc_from_buf(&out));
    buf_done(&out);
    if (code != BT_OK || made.ptr == NULL) {
        return err_set(f->err, BT_NOMEM, "out of memory for the steps of a switch");
    }
    f->over = !f->reader->step(f->reader->self, made);
    return BT_OK;
}

/* ---- branches ---- */

struct branch {
    struct doc when, otherwise, steps;
};

/* What other systems call a member of a branch; NULL when they do not. */
static const char *meant_by(struct str key)
{
    static const char *const names[][2] = {
        {"if", "when"},    {"case", "when"},          {"condition", "when"},
        {"on", "when"},    {"default", "else: true"}, {"otherwise", "else: true"},
        {"then", "steps"}, {"do", "steps"},           {"step", "steps"},
        {"run", "steps"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (str_is(key, names[i][0])) {
            return names[i][1];
        }
    }
    return NULL;
}

static bool read_members(struct flattening *f, uint32_t ix, struct doc doc, struct branch *ret)
{
    struct members m = members_of(doc);
    struct str key;
    struct doc value;
    char text[160];
    *ret = (struct branch){{NULL, 0}, {NULL, 0}, {NULL, 0}};
    if (doc_head(doc).kind != DOC_MAP) {
        report(f, ix, false, "expected {when, steps} or {else: true, steps}");
        return false;
    }
    while (member_next(&m, &key, &value)) {
        if (str_is(key, "when")) {
            ret->when = value;
        } else if (str_is(key, "else")) {
            ret->otherwise = value;
        } else if (str_is(key, "steps")) {
            ret->steps = value;
        } else {
            const char *meant = meant_by(key);
            (void)snprintf(text, sizeof text,
                           "unknown field `%.*s`; a branch has when (or else) and steps%s%s%s",
                           (int)(key.len < 60 ? key.len : 60), key.ptr == NULL ? "" : key.ptr,
                           meant != NULL ? "; did you mean `" : "", meant != NULL ? meant : "",
                           meant != NULL ? "`?" : "");
            report(f, ix, false, text);
            return false;
        }
    }
    return true;
}

/* Whether the branch can be read; reports what is wrong with it. */
static bool check_branch(struct flattening *f, uint32_t ix, bool last, const struct branch *b)
{
    struct bt_error why = {.code = BT_OK};
    const struct doc_head otherwise = doc_head(b->otherwise);
    char text[340];
    if ((b->when.ptr != NULL) == (b->otherwise.ptr != NULL)) {
        report(f, ix, false, "has either `when` or `else: true`");
        return false;
    }
    if (b->steps.ptr == NULL || doc_head(b->steps).kind != DOC_ARRAY || doc_head(b->steps).n == 0) {
        report(f, ix, false, "has no list of steps");
        return false;
    }
    if (b->otherwise.ptr != NULL) {
        if (otherwise.kind != DOC_BOOL || !otherwise.b) {
            report(f, ix, false, "else: expected true");
            return false;
        }
        if (!last) {
            report(f, ix, false, "`else` is the last branch");
        }
        return last;
    }
    const enum bt_code code = condition_check(b->when, NULL, NULL, &why);
    if (code != BT_OK) {
        (void)snprintf(text, sizeof text, "when: %s", why.msg);
        report(f, ix, code == BT_LIMIT, text);
    }
    return code == BT_OK;
}

/* The depth of a document is bounded. */
static enum bt_code flatten(struct flattening *f, struct doc list);

static enum bt_code give_branch(struct flattening *f, uint32_t ix, const struct branch *b)
{
    if (b->when.ptr == NULL) {
        return flatten(f, b->steps);
    }
    if (f->n == TERMS_MAX) {
        report(f, ix, true, "its switches have more than 64 conditions");
        return BT_OK;
    }
    f->terms[f->n] = (struct term){.condition = b->when};
    f->n++;
    const enum bt_code code = flatten(f, b->steps);
    f->terms[f->n - 1].negated = true; /* the branches behind it */
    return code;
}

static enum bt_code give_switch(struct flattening *f, struct doc entry)
{
    const struct doc list = doc_get(entry, STR_LIT("switch"));
    const struct doc_head head = doc_head(list);
    const uint32_t outer = f->n;
    enum bt_code code = BT_OK;
    f->switches++;
    if (doc_head(entry).n > 1) {
        f->reader->problem(f->reader->self, false,
                           "stands alone; the other fields of its entry belong to the steps");
        return BT_OK;
    }
    if (head.kind != DOC_ARRAY || head.n == 0) {
        f->reader->problem(f->reader->self, false, "expected a list of {when, steps}");
        return BT_OK;
    }
    if (head.n > SWITCH_BRANCHES_MAX) {
        f->reader->problem(f->reader->self, true, "has more than 64 branches");
        return BT_OK;
    }
    for (uint32_t i = 0; i < head.n && code == BT_OK && !f->over; i++) {
        struct branch b;
        if (read_members(f, i, doc_at(list, i), &b) && check_branch(f, i, i + 1 == head.n, &b)) {
            code = give_branch(f, i, &b);
        }
    }
    f->n = outer;
    return code;
}

static enum bt_code flatten(struct flattening *f, struct doc list)
{
    struct doc_cursor c = doc_cursor(list);
    struct doc_head head;
    enum bt_code code = BT_OK;
    if (!doc_next(&c, &head) || head.kind != DOC_ARRAY) {
        return BT_OK;
    }
    for (uint32_t i = 0; i < head.n && code == BT_OK && !f->over; i++) {
        const struct doc entry = doc_skip(&c);
        code = switch_is(entry) ? give_switch(f, entry) : give_step(f, entry);
    }
    return code;
}

enum bt_code switch_flatten(struct doc list, struct arena *arena,
                            const struct switch_reader *reader, struct bt_error *err)
{
    struct flattening f = {.reader = reader, .arena = arena, .err = err};
    return flatten(&f, list);
}
