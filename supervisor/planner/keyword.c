#include "supervisor/planner/keyword.h"

#include <stdio.h>

#include "protocol/base/buf.h"
#include "protocol/base/utf8.h"
#include "protocol/limits.h"
#include "protocol/wire/msg.h"
#include "supervisor/planner/abilities.h"
#include "supervisor/planner/fill.h"
#include "supervisor/planner/order.h"
#include "supervisor/planner/rank.h"

enum { HITS_MAX = 8, MATCHES_MAX = 6, WHY_MAX = 700, ID_STEM = 48, ABILITIES_MAX = 4096 };

struct drafter {
    const struct planner_request *request;
    struct arena *arena;
    struct planner_result *result;
    struct rank *rank;
    struct bt_error *err;
    struct order order;
    /* Per clause: */
    struct str texts[CLAUSES_MAX];
    struct str ids[CLAUSES_MAX];    /* of its step; empty when nobody can do it */
    uint64_t after[CLAUSES_MAX];    /* as order says, through clauses that nobody can do */
    struct doc params[CLAUSES_MAX]; /* absent for none */
    struct buf filled;              /* parameters while they are made */
};

static enum bt_code nomem(struct drafter *d)
{
    return err_set(d->err, BT_NOMEM, "out of memory for a plan");
}

static const struct msg_card *card_of(const struct drafter *d, const struct rank_hit *hit)
{
    return registry_agent_view(d->request->registry, hit->agent).card;
}

static const struct msg_skill *skill_of(const struct drafter *d, const struct rank_hit *hit)
{
    return &card_of(d, hit)->skills[hit->skill];
}

static void put_name(struct buf *why, const struct drafter *d, const struct rank_hit *hit)
{
    buf_printf(why, "%.*s/%.*s", STR_ARG(registry_agent_view(d->request->registry, hit->agent).id),
               STR_ARG(skill_of(d, hit)->id));
}

/* Into the arena, cut at a character. */
static enum bt_code keep(struct drafter *d, struct buf *text, size_t cap, struct str *ret)
{
    const size_t n = utf8_cut((const char *)text->at, text->len, cap);
    *ret = arena_str(d->arena, (struct str){n == 0 ? "" : (const char *)text->at, n});
    buf_done(text);
    return ret->ptr == NULL ? nomem(d) : BT_OK;
}

/* ---- a clause that can be done ---- */

/* "read 2.31, log 0.80; runner-up sql/query 1.20; files/grep needs \"pattern\"" */
static enum bt_code explain(struct drafter *d, uint32_t clause, const struct rank_hit *hits,
                            uint32_t n, uint32_t chosen, const struct buf *passed, struct str *ret)
{
    struct rank_match matches[MATCHES_MAX];
    struct buf why;
    const uint32_t m = rank_explain(d->rank, clause, &hits[chosen], matches, MATCHES_MAX);
    buf_init(&why, 4 * WHY_MAX);
    for (uint32_t i = 0; i < m; i++) {
        buf_printf(&why, "%s%.*s %.2f", i == 0 ? "" : ", ", STR_ARG(matches[i].word),
                   matches[i].weight);
    }
    if (chosen + 1 < n) {
        buf_add_cstr(&why, "; runner-up ");
        put_name(&why, d, &hits[chosen + 1]);
        buf_printf(&why, " %.2f", hits[chosen + 1].score);
    }
    buf_add_str(&why, buf_str(passed));
    return keep(d, &why, WHY_MAX, ret);
}

/* "count_by_day-2": told apart by the number, no dots (they would look like a path in a template).
 */
static struct str step_id(struct drafter *d, const struct msg_skill *skill)
{
    char text[LIMIT_ID_BYTES + 1];
    (void)snprintf(text, sizeof text, "%.*s-%u",
                   (int)(skill->id.len < ID_STEM ? skill->id.len : ID_STEM), skill->id.ptr,
                   d->result->n_routes + 1);
    for (char *c = text; *c != '\0'; c++) {
        *c = *c == '.' ? '-' : *c;
    }
    return arena_str(d->arena, str_from(text));
}

static enum bt_code add_step(struct drafter *d, uint32_t ix, const struct rank_hit *hit,
                             struct str why, uint32_t n_params)
{
    const struct msg_skill *skill = skill_of(d, hit);
    struct planner_route *route = &d->result->routes[d->result->n_routes];
    *route = (struct planner_route){
        .step_id = step_id(d, skill),
        .agent_id = arena_str(d->arena, registry_agent_view(d->request->registry, hit->agent).id),
        .skill = arena_str(d->arena, skill->id),
        .score = hit->score,
        .why = why};
    if (n_params > 0) {
        d->params[ix] = doc_copy(d->arena, doc_from_buf(&d->filled));
    }
    if (route->step_id.ptr == NULL || route->agent_id.ptr == NULL || route->skill.ptr == NULL ||
        (n_params > 0 && d->params[ix].ptr == NULL)) {
        return nomem(d);
    }
    d->result->n_routes++;
    d->ids[ix] = route->step_id;
    return BT_OK;
}

/* ---- a clause that cannot ---- */

static enum bt_code add_unrouted(struct drafter *d, uint32_t ix, struct buf *why)
{
    struct planner_unrouted *u = &d->result->unrouted[d->result->n_unrouted++];
    u->unsaid = d->order.at[ix].unsaid != UNSAID_NOTHING;
    u->clause = arena_str(d->arena, d->order.at[ix].text);
    const enum bt_code code = keep(d, why, WHY_MAX, &u->why);
    return u->clause.ptr == NULL ? nomem(d) : code;
}

static enum bt_code nobody_can(struct drafter *d, uint32_t ix, const struct rank_hit *hits,
                               uint32_t n, const struct buf *passed)
{
    struct buf why;
    buf_init(&why, 4 * WHY_MAX);
    if (rank_skills(d->rank) == 0) {
        buf_add_cstr(&why, "no agent with skills is registered");
    } else if (n == 0) {
        buf_add_cstr(&why, "no skill of any agent has one of its words");
    } else {
        buf_add_cstr(&why, "the nearest: ");
    }
    for (uint32_t i = 0; i < n && i < 3; i++) {
        buf_add_cstr(&why, i == 0 ? "" : ", ");
        put_name(&why, d, &hits[i]);
        buf_printf(&why, " %.2f", hits[i].score);
    }
    buf_add_str(&why, buf_str(passed));
    return add_unrouted(d, ix, &why);
}

static enum bt_code words_cannot(struct drafter *d, uint32_t ix)
{
    const struct clause *c = &d->order.at[ix];
    struct buf why;
    buf_init(&why, 4 * WHY_MAX);
    buf_printf(&why, "\"%.*s\" %s", STR_ARG(c->unsaid_words), unsaid_text(c->unsaid));
    return add_unrouted(d, ix, &why);
}

/* ---- one clause ---- */

/* The steps that it follows, with those of clauses in between that nobody can do. */
static uint32_t find_previous(struct drafter *d, uint32_t ix, struct str ret[CLAUSES_MAX])
{
    uint64_t after = d->order.at[ix].after;
    uint32_t n = 0;
    for (uint32_t i = ix; i > 0; i--) {
        const uint64_t one = UINT64_C(1) << (i - 1);
        if ((after & one) != 0 && d->ids[i - 1].len == 0) {
            after = (after & ~one) | d->after[i - 1];
        }
    }
    for (uint32_t i = 0; i < ix; i++) {
        if ((after >> i & 1) != 0) {
            ret[n++] = d->ids[i];
        }
    }
    d->after[ix] = after;
    return n;
}

static void put_passed(struct buf *out, struct str what, bool left)
{
    buf_printf(out, " %s \"%.*s\"%s", left ? "leaves out" : "needs",
               (int)utf8_cut(what.ptr, what.len, 64), what.ptr,
               left ? ": give it a part of its own" : ", which the words do not give");
}

/* The best skill that is about the clause and can get its required parameters. */
static enum bt_code route(struct drafter *d, uint32_t ix, const struct fill *fill)
{
    struct rank_hit hits[HITS_MAX];
    const uint32_t n = rank_clause(d->rank, ix, hits, HITS_MAX);
    struct buf passed; /* skills that fit but lack a parameter */
    struct str why;
    enum bt_code code;
    buf_init(&passed, WHY_MAX);
    for (uint32_t i = 0; i < n && hits[i].routable; i++) {
        struct str missing;
        bool left;
        buf_clear(&d->filled);
        const uint32_t params =
            fill_parameters(fill, skill_of(d, &hits[i])->input_schema, &d->filled, &missing);
        left = missing.ptr == NULL && params > 0 && fill_leaves_out(fill, &d->filled, &missing);
        if (missing.ptr == NULL) {
            code = buf_check(&d->filled, d->err);
            code = code == BT_OK ? explain(d, ix, hits, n, i, &passed, &why) : code;
            code = code == BT_OK ? add_step(d, ix, &hits[i], why, params) : code;
            buf_done(&passed);
            return code;
        }
        buf_add_cstr(&passed, "; ");
        put_name(&passed, d, &hits[i]);
        put_passed(&passed, missing, left);
    }
    code = nobody_can(d, ix, hits, n, &passed);
    buf_done(&passed);
    return code;
}

static enum bt_code plan_clause(struct drafter *d, uint32_t ix)
{
    struct str previous[CLAUSES_MAX];
    const uint32_t n = find_previous(d, ix, previous);
    const struct fill fill = {d->order.at[ix].text, previous, n, d->texts, ix};
    return d->order.at[ix].unsaid != UNSAID_NOTHING ? words_cannot(d, ix) : route(d, ix, &fill);
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
    return keep(d, &out, ABILITIES_MAX, &d->result->abilities);
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
        code = r->plan.ptr == NULL ? nomem(d) : BT_OK;
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
        code = nomem(d);
    }
    for (uint32_t i = 0; i < n && code == BT_OK; i++) {
        code = plan_clause(d, i);
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
