#include "supervisor/api/rerun.h"

#include <string.h>

static uint32_t dependents(const struct plan *plan, uint32_t step)
{
    return plan->chain ? step + 1 < plan->n_steps : plan->steps[step].dependents_n;
}

static uint32_t dependent(const struct plan *plan, uint32_t step, uint32_t i)
{
    return plan->chain ? step + 1 : plan->dependents[plan->steps[step].dependents_at + i];
}

bool rerun_mark(const struct plan *plan, uint32_t from, struct arena *arena, bool *marks)
{
    uint32_t *todo = arena_alloc(arena, plan->n_steps * sizeof *todo);
    uint32_t n = 0;

    if (todo == NULL) {
        return false;
    }
    marks[from] = true;
    todo[n++] = from;
    for (uint32_t at = 0; at < n; at++) {
        for (uint32_t i = 0; i < dependents(plan, todo[at]); i++) {
            uint32_t next = dependent(plan, todo[at], i);
            if (!marks[next]) {
                marks[next] = true;
                todo[n++] = next;
            }
        }
    }
    return true;
}

/* ---- the document ---- */

static bool is_listed(struct str key, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (str_is(key, names[i])) {
            return true;
        }
    }
    return false;
}

/* "fetch@2" is a step that a revision did without: ids have no '@'. */
static void put_deps(struct doc deps, struct buf *out)
{
    struct doc_cursor c = doc_cursor(deps);
    struct doc_head head;
    struct doc_head name;
    uint32_t n = 0;

    for (int pass = 0; pass < 2; pass++) {
        c = doc_cursor(deps);
        if (!doc_next(&c, &head) || head.kind != DOC_ARRAY) {
            doc_put_array(out, 0);
            return;
        }
        if (pass == 1) {
            doc_put_array(out, n);
        }
        for (uint32_t i = 0; i < head.n && doc_next(&c, &name); i++) {
            if (name.kind == DOC_STR && memchr(name.str.ptr, '@', name.str.len) == NULL) {
                n += pass == 0;
                if (pass == 1) {
                    doc_put_str(out, name.str);
                }
            }
        }
    }
}

static bool is_true(struct doc map, const char *key)
{
    struct doc v = doc_get(map, str_from(key));

    return v.ptr != NULL && doc_head(v).kind == DOC_BOOL && doc_head(v).b;
}

/* The members of a map but those of the list; what `put` takes over is its own to write. */
static enum bt_code copy_map(struct doc map, const char *const *without, size_t n_without,
                             bool (*put)(struct str key, struct doc value, struct buf *out,
                                         struct bt_error *err),
                             struct buf *out, struct bt_error *err)
{
    struct doc_cursor c = doc_cursor(map);
    struct doc_head head;
    struct doc_head key;
    struct buf members;
    uint32_t n = 0;

    if (!doc_next(&c, &head) || head.kind != DOC_MAP) {
        return err_set(err, BT_PROTOCOL, "the plan's document is damaged");
    }
    buf_init(&members, LIMIT_STEP_BYTES);
    for (uint32_t i = 0; i < head.n && doc_next(&c, &key); i++) {
        struct doc value = doc_skip(&c);
        if (is_listed(key.str, without, n_without)) {
            continue;
        }
        doc_put_str(&members, key.str);
        if (!put(key.str, value, &members, err)) {
            doc_put_doc(&members, value);
        }
        n++;
    }
    doc_put_map(out, n);
    buf_add(out, members.at, members.len);
    if (members.bad != BT_OK && out->bad == BT_OK) {
        out->bad = members.bad;
    }
    buf_done(&members);
    return buf_check(out, err);
}

static bool put_step_member(struct str key, struct doc value, struct buf *out, struct bt_error *err)
{
    (void)err;
    if (!str_is(key, "dependsOn")) {
        return false;
    }
    put_deps(value, out);
    return true;
}

static bool put_plan_member(struct str key, struct doc value, struct buf *out, struct bt_error *err)
{
    static const char *const without[] = {"revision", "superseded"};
    struct doc_cursor c = doc_cursor(value);
    struct doc_head head;
    struct buf steps;
    uint32_t n = 0;

    if (!str_is(key, "steps") || !doc_next(&c, &head) || head.kind != DOC_ARRAY) {
        return false;
    }
    buf_init(&steps, LIMIT_STEP_BYTES);
    for (uint32_t i = 0; i < head.n; i++) {
        struct doc step = doc_skip(&c);
        if (!is_true(step, "superseded")) {
            n++;
            if (copy_map(step, without, 2, put_step_member, &steps, err) != BT_OK) {
                out->bad = out->bad != BT_OK ? out->bad : BT_PROTOCOL;
            }
        }
    }
    doc_put_array(out, n);
    buf_add(out, steps.at, steps.len);
    buf_done(&steps);
    return true;
}

enum bt_code rerun_document(struct doc canonical, struct buf *out, struct bt_error *err)
{
    static const char *const without[] = {"revision", "grants"};

    return copy_map(canonical, without, 2, put_plan_member, out, err);
}

/* ---- what is reused ---- */

/* New index of each old row; the number of rows that go over. */
static uint32_t number(const struct rerun_row *rows, uint32_t n, uint32_t *ret)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < n; i++) {
        ret[i] = rows[i].superseded ? UINT32_MAX : kept++;
    }
    return kept;
}

/* The steps in an order in which dependencies come first. */
static uint32_t order(const struct plan *plan, uint32_t *open, uint32_t *ret)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < plan->n_steps; i++) {
        open[i] = plan->chain ? i > 0 : plan->steps[i].deps_n;
        if (open[i] == 0) {
            ret[n++] = i;
        }
    }
    for (uint32_t at = 0; at < n; at++) {
        for (uint32_t i = 0; i < dependents(plan, ret[at]); i++) {
            uint32_t next = dependent(plan, ret[at], i);
            if (--open[next] == 0) {
                ret[n++] = next;
            }
        }
    }
    return n;
}

const uint8_t *rerun_settled(const struct rerun_row *rows, uint32_t n, struct arena *arena,
                             uint32_t *ret_n)
{
    uint8_t *settled = arena_alloc(arena, n + 1);
    uint32_t kept = 0;

    for (uint32_t i = 0; settled != NULL && i < n; i++) {
        if (!rows[i].superseded) {
            settled[kept++] = rows[i].reuse ? 1 : 0;
        }
    }
    *ret_n = kept;
    return settled;
}

struct core_reuse *rerun_reuse(const struct plan *to, const struct rerun_row *rows, uint32_t n,
                               struct arena *arena, uint32_t *ret_n)
{
    uint32_t *index = arena_alloc(arena, (n + 1) * sizeof *index);
    uint32_t *from = arena_alloc(arena, (to->n_steps + 1) * sizeof *from);
    uint32_t *open = arena_alloc(arena, (to->n_steps + 1) * sizeof *open);
    uint32_t *sorted = arena_alloc(arena, (to->n_steps + 1) * sizeof *sorted);
    struct core_reuse *reuse = arena_alloc(arena, (to->n_steps + 1) * sizeof *reuse);
    uint32_t steps;

    *ret_n = 0;
    if (index == NULL || from == NULL || open == NULL || sorted == NULL || reuse == NULL ||
        number(rows, n, index) != to->n_steps) {
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (index[i] != UINT32_MAX) {
            from[index[i]] = i;
        }
    }
    steps = order(to, open, sorted);
    for (uint32_t i = 0; i < steps; i++) {
        const struct rerun_row *row = &rows[from[sorted[i]]];
        if (row->reuse) {
            reuse[(*ret_n)++] = (struct core_reuse){.step = sorted[i], .result = row->result};
        }
    }
    return reuse;
}
