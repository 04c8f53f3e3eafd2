#include "supervisor/keyword/keyword_parts.h"

#include "protocol/base/buf.h"
#include "protocol/base/utf8.h"
#include "protocol/limits.h"
#include "supervisor/keyword/abilities.h"

enum { ABILITIES_MAX = 4096 };

enum bt_code keyword_nomem(struct drafter *d)
{
    return err_set(d->err, BT_NOMEM, "out of memory for a plan");
}

enum bt_code keyword_keep(struct drafter *d, struct buf *text, size_t cap, struct str *ret)
{
    const size_t n = utf8_cut((const char *)text->at, text->len, cap);
    *ret = arena_str(d->arena, (struct str){n == 0 ? "" : (const char *)text->at, n});
    buf_done(text);
    return ret->ptr == NULL ? keyword_nomem(d) : BT_OK;
}

/* ---- the plan ---- */

/* Whether each step follows the one before, and that alone: then the plan is a chain. */
static bool is_chain(const struct drafter *d)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < d->order.n; i++) {
        if (d->ids[i].len > 0) {
            if (d->after[i] != last) {
                return false;
            }
            last = UINT64_C(1) << i;
        }
    }
    return true;
}

static void put_deps(struct drafter *d, uint32_t ix, struct buf *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < ix; i++) {
        n += (d->after[ix] >> i & 1) != 0;
    }
    doc_put_cstr(out, "dependsOn");
    doc_put_array(out, n);
    for (uint32_t i = 0; i < ix; i++) {
        if ((d->after[ix] >> i & 1) != 0) {
            doc_put_str(out, d->ids[i]);
        }
    }
}

static void put_steps(struct drafter *d, struct buf *out)
{
    const bool chain = is_chain(d);
    uint32_t n = 0;
    doc_put_array(out, d->result->n_routes);
    for (uint32_t i = 0; i < d->order.n; i++) {
        const bool params = d->params[i].ptr != NULL;
        if (d->ids[i].len == 0) {
            continue;
        }
        const struct planner_route *route = &d->result->routes[n++];
        doc_put_map(out, 4u + params + !chain);
        doc_put_cstr(out, "stepId");
        doc_put_str(out, route->step_id);
        doc_put_cstr(out, "agentId");
        doc_put_str(out, route->agent_id);
        doc_put_cstr(out, "skill");
        doc_put_str(out, route->skill);
        doc_put_cstr(out, "task");
        doc_put_str(out, d->order.at[i].text);
        if (!chain) {
            put_deps(d, i, out);
        }
        if (params) {
            doc_put_cstr(out, "parameters");
            doc_put_doc(out, d->params[i]);
        }
    }
}

/* Names the first part that is in the way, how many there are, and what the agents can do. */
static enum bt_code refuse(struct drafter *d)
{
    const struct planner_result *r = d->result;
    const struct planner_unrouted *u = &r->unrouted[0];
    struct buf can;
    buf_init(&can, ABILITIES_MAX);
    if (!u->unsaid) {
        abilities_put_short(d->request->registry, 200, &can);
    }
    const enum bt_code code =
        err_set(d->err, BT_INVALID, "%s \"%.*s\": %.*s (%u of %u parts of the goal)%s%s",
                u->unsaid ? "words cannot plan" : "no agent can do",
                (int)utf8_cut(u->clause.ptr, u->clause.len, 100), u->clause.ptr,
                (int)utf8_cut(u->why.ptr, u->why.len, 200), u->why.ptr, r->n_unrouted, d->order.n,
                can.len > 0 ? "; agents can do: " : "", buf_cstr(&can));
    buf_done(&can);
    return code;
}

static enum bt_code keep_abilities(struct drafter *d)
{
    bool missing = false;
    struct buf out;
    for (uint32_t i = 0; i < d->result->n_unrouted; i++) {
        missing = missing || !d->result->unrouted[i].unsaid;
    }
    buf_init(&out, 2 * LIMIT_CONTROL_BYTES);
    if (missing) {
        abilities_put(d->request->registry, ABILITIES_MAX, &out);
    }
    return keyword_keep(d, &out, ABILITIES_MAX, &d->result->abilities);
}

static enum bt_code finish(struct drafter *d)
{
    struct planner_result *r = d->result;
    struct buf out;
    enum bt_code code = BT_OK;
    if (r->n_unrouted > 0) {
        code = keep_abilities(d);
        if (code != BT_OK || !d->request->allow_unrouted || r->n_routes == 0) {
            return code == BT_OK ? refuse(d) : code;
        }
    }
    buf_init(&out, LIMIT_CONTROL_BYTES);
    doc_put_map(&out, 1);
    doc_put_cstr(&out, "steps");
    put_steps(d, &out);
    code = buf_check(&out, d->err);
    if (code == BT_OK) {
        r->plan = doc_copy(d->arena, doc_from_buf(&out));
        code = r->plan.ptr == NULL ? keyword_nomem(d) : BT_OK;
    }
    buf_done(&out);
    return code;
}

static enum bt_code draft(struct drafter *d)
{
    const uint32_t n = d->order.n;
    for (uint32_t i = 0; i < n; i++) {
        d->texts[i] = d->order.at[i].text;
    }
    enum bt_code code = rank_new(d->request->registry, d->texts, n, d->arena, &d->rank, d->err);
    d->result->routes = arena_alloc(d->arena, CLAUSES_MAX * sizeof d->result->routes[0]);
    d->result->unrouted = arena_alloc(d->arena, CLAUSES_MAX * sizeof d->result->unrouted[0]);
    if (code == BT_OK && (d->result->routes == NULL || d->result->unrouted == NULL)) {
        code = keyword_nomem(d);
    }
    for (uint32_t i = 0; i < n && code == BT_OK; i++) {
        code = keyword_route(d, i);
    }
    return code == BT_OK ? finish(d) : code;
}

static enum bt_code keyword_plan(void *self, const struct planner_request *request,
                                 struct arena *arena, struct planner_result *ret,
                                 struct bt_error *err)
{
    (void)self;
    struct drafter *d = arena_alloc(arena, sizeof *d);
    struct verbs verbs;
    *ret = (struct planner_result){.n_routes = 0};
    if (request->goal.len == 0) {
        return err_set(err, BT_INVALID, "the goal is empty; say what is to be done");
    }
    if (request->goal.len > LIMIT_TASK_BYTES) {
        return err_set(err, BT_LIMIT, "the goal is longer than %u bytes; give a plan instead",
                       (unsigned)LIMIT_TASK_BYTES);
    }
    if (d == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a plan");
    }
    *d = (struct drafter){.request = request, .arena = arena, .result = ret, .err = err};
    buf_init(&d->filled, LIMIT_CONTROL_BYTES / 4);
    enum bt_code code = verbs_init(&verbs, request->registry, arena, err);
    code = code == BT_OK ? order_make(request->goal, &verbs, arena, &d->order, err) : code;
    verbs_done(&verbs);
    if (code == BT_OK && d->order.n == 0) {
        code = err_set(err, BT_INVALID, "the goal is empty; say what is to be done");
    }
    code = code == BT_OK ? draft(d) : code;
    buf_done(&d->filled);
    return code;
}

const struct planner_ops keyword_planner = {.name = "keyword", .plan = keyword_plan};
