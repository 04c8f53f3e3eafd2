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

typedef bool (*put_fn)(struct str key, struct doc value, struct buf *out, struct bt_error *err);

/* Appends the members of a map but those of the list; what `put` takes over is its own to write. */
static enum bt_code put_members(struct doc map, const char *const *without, size_t n_without,
                                put_fn put, uint32_t *io_n, struct buf *out, struct bt_error *err)
{
    struct doc_cursor c = doc_cursor(map);
    struct doc_head head;
    struct doc_head key;

    if (!doc_next(&c, &head) || head.kind != DOC_MAP) {
        return err_set(err, BT_PROTOCOL, "the plan's document is damaged");
    }
    for (uint32_t i = 0; i < head.n && doc_next(&c, &key); i++) {
        struct doc value = doc_skip(&c);
        if (is_listed(key.str, without, n_without)) {
            continue;
        }
        doc_put_str(out, key.str);
        if (!put(key.str, value, out, err)) {
            doc_put_doc(out, value);
        }
        *io_n += 1;
    }
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

static void put_steps(struct doc document, bool is_body, struct buf *out, struct bt_error *err);

static void put_member(struct doc map, const char *key, uint32_t *io_n, struct buf *out)
{
    const struct doc value = doc_get(map, str_from(key));
    const struct doc_head head =
        value.ptr != NULL ? doc_head(value) : (struct doc_head){.kind = DOC_NIL};

    if (value.ptr != NULL && (head.kind != DOC_STR || head.str.len > 0)) {
        doc_put_cstr(out, key);
        doc_put_doc(out, value);
        *io_n += 1;
    }
}

/* What a step with a child was submitted with: a document has what was made of it. */
static void put_child(struct doc child, uint32_t *io_n, struct buf *out, struct bt_error *err)
{
    static const char *const loop[] = {"until", "while", "max", "delayMs", "onMax"};
    static const char *const sub[] = {"document", "inputs"};
    const struct str kind = doc_string(doc_get(child, STR_LIT("kind")));
    const struct doc body = doc_get(child, STR_LIT("body"));
    const bool is_loop = str_is(kind, "repeat");
    struct buf inner;
    uint32_t n = 0;

    if (str_is(kind, "forEach")) {
        doc_put_cstr(out, "forEach");
        doc_put_doc(out, doc_get(child, STR_LIT("list")));
        *io_n += 1;
        put_member(child, "as", io_n, out);
        put_member(child, "maxItems", io_n, out);
        put_member(child, "onItemFailure", io_n, out);
        put_member(doc_get(body, STR_LIT("policy")), "maxConcurrency", io_n, out);
    } else {
        buf_init(&inner, LIMIT_STEP_BYTES);
        for (size_t i = 0; i < (is_loop ? sizeof loop : sizeof sub) / sizeof loop[0]; i++) {
            put_member(child, is_loop ? loop[i] : sub[i], &n, &inner);
        }
        doc_put_cstr(out, is_loop ? "repeat" : "plan");
        doc_put_map(out, n);
        buf_add_str(out, buf_str(&inner));
        out->bad = out->bad != BT_OK ? out->bad : inner.bad;
        buf_done(&inner);
        *io_n += 1;
    }
    if (body.ptr != NULL) {
        doc_put_cstr(out, "steps");
        put_steps(body, true, out, err);
        *io_n += 1;
    }
}

/* A document leaves out what is as in the plan's policy; without it a sub-plan has another. */
static void put_as_policy(struct doc step, struct doc policy, uint32_t *io_n, struct buf *out)
{
    static const char *const keys[] = {"maxRetries", "stepLimitMs", "estimate", "requiresApproval"};
    const struct doc timeout = doc_get(policy, STR_LIT("stepTimeoutMs"));

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (doc_get(step, str_from(keys[i])).ptr == NULL) {
            put_member(policy, keys[i], io_n, out);
        }
    }
    if (doc_get(step, STR_LIT("timeoutMs")).ptr == NULL && timeout.ptr != NULL) {
        doc_put_cstr(out, "timeoutMs");
        doc_put_doc(out, timeout);
        *io_n += 1;
    }
}

/* What a step that its steps or rounds do has of its own; the other members were made. */
static void put_parent(struct doc step, uint32_t *io_n, struct buf *out)
{
    static const char *const own[] = {"stepId", "task",        "runIf",
                                      "when",   "afterAnyEnd", "onFailure"};
    const struct doc deps = doc_get(step, STR_LIT("dependsOn"));

    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        put_member(step, own[i], io_n, out);
    }
    if (deps.ptr != NULL) {
        doc_put_cstr(out, "dependsOn");
        put_deps(deps, out);
        *io_n += 1;
    }
}

static enum bt_code put_step(struct doc step, struct doc policy, bool is_body, struct buf *out,
                             struct bt_error *err)
{
    static const char *const without[] = {"revision", "superseded", "child"};
    const struct doc child = doc_get(step, STR_LIT("child"));
    const bool is_sub = str_is(doc_string(doc_get(child, STR_LIT("kind"))), "plan");
    struct buf members;
    uint32_t n = 0;
    enum bt_code code = BT_OK;

    buf_init(&members, LIMIT_STEP_BYTES);
    if (child.ptr == NULL || is_sub) {
        code = put_members(step, without, 3, put_step_member, &n, &members, err);
    } else {
        put_parent(step, &n, &members);
    }
    if (is_sub) {
        put_as_policy(step, policy, &n, &members);
    }
    if (is_body && doc_get(step, STR_LIT("contextScope")).ptr == NULL && child.ptr == NULL) {
        put_member(policy, "contextScope", &n, &members); /* the plan's is another */
    }
    if (child.ptr != NULL) {
        put_child(child, &n, &members, err);
    }
    doc_put_map(out, n);
    buf_add_str(out, buf_str(&members));
    out->bad = out->bad != BT_OK ? out->bad : members.bad;
    buf_done(&members);
    return code;
}

/* The steps of a plan's document, or of the body of a step. */
static void put_steps(struct doc document, bool is_body, struct buf *out, struct bt_error *err)
{
    const struct doc policy = doc_get(document, STR_LIT("policy"));
    struct doc_cursor c = doc_cursor(doc_get(document, STR_LIT("steps")));
    struct doc_head head;
    struct buf steps;
    uint32_t n = 0;

    if (!doc_next(&c, &head) || head.kind != DOC_ARRAY) {
        doc_put_array(out, 0);
        return;
    }
    buf_init(&steps, LIMIT_STEP_BYTES);
    for (uint32_t i = 0; i < head.n; i++) {
        const struct doc step = doc_skip(&c);
        if (!is_true(step, "superseded")) {
            n++;
            const enum bt_code code = put_step(step, policy, is_body, &steps, err);
            out->bad = out->bad != BT_OK ? out->bad : code;
        }
    }
    doc_put_array(out, n);
    buf_add(out, steps.at, steps.len);
    out->bad = out->bad != BT_OK ? out->bad : steps.bad;
    buf_done(&steps);
}

static bool put_nothing(struct str key, struct doc value, struct buf *out, struct bt_error *err)
{
    (void)key;
    (void)value;
    (void)out;
    (void)err;
    return false;
}

enum bt_code rerun_document(struct doc canonical, struct buf *out, struct bt_error *err)
{
    static const char *const without[] = {"revision", "grants", "steps"};
    const bool has_steps = doc_get(canonical, STR_LIT("steps")).ptr != NULL;
    struct buf members;
    uint32_t n = 0;
    enum bt_code code;

    buf_init(&members, LIMIT_STEP_BYTES);
    code = put_members(canonical, without, 3, put_nothing, &n, &members, err);
    if (has_steps) {
        doc_put_cstr(&members, "steps");
        put_steps(canonical, false, &members, err);
    }
    doc_put_map(out, n + has_steps);
    buf_add_str(out, buf_str(&members));
    out->bad = out->bad != BT_OK ? out->bad : members.bad;
    buf_done(&members);
    return code == BT_OK ? buf_check(out, err) : code;
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
        if (row->reuse || row->doubt) {
            reuse[(*ret_n)++] =
                (struct core_reuse){.step = sorted[i], .doubt = !row->reuse, .result = row->result};
        }
    }
    return reuse;
}
