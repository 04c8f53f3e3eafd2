#include "supervisor/planner/keyword.h"

#include <stdio.h>

#include "protocol/base/buf.h"
#include "protocol/base/utf8.h"
#include "protocol/limits.h"
#include "protocol/wire/msg.h"
#include "supervisor/planner/clauses.h"
#include "supervisor/planner/fill.h"
#include "supervisor/planner/rank.h"

enum { HITS_MAX = 8, MATCHES_MAX = 6, WHY_MAX = 700, ID_STEM = 48 };

struct drafter {
    const struct planner_request *request;
    struct arena *arena;
    struct planner_result *result;
    struct rank *rank;
    struct bt_error *err;
    struct str clauses[CLAUSES_MAX];
    uint32_t n_clauses;
    struct str previous; /* id of the step planned last */
    struct buf steps;    /* msgpack of the steps, one after the other */
    struct buf params;   /* of the step being made */
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
static enum bt_code keep(struct drafter *d, struct buf *text, struct str *ret)
{
    const size_t n = utf8_cut((const char *)text->at, text->len, WHY_MAX);
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
    return keep(d, &why, ret);
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

static enum bt_code add_step(struct drafter *d, struct str clause, const struct rank_hit *hit,
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
    if (route->step_id.ptr == NULL || route->agent_id.ptr == NULL || route->skill.ptr == NULL) {
        return nomem(d);
    }
    d->result->n_routes++;
    doc_put_map(&d->steps, n_params > 0 ? 5 : 4);
    doc_put_cstr(&d->steps, "stepId");
    doc_put_str(&d->steps, route->step_id);
    doc_put_cstr(&d->steps, "agentId");
    doc_put_str(&d->steps, route->agent_id);
    doc_put_cstr(&d->steps, "skill");
    doc_put_str(&d->steps, route->skill);
    doc_put_cstr(&d->steps, "task");
    doc_put_str(&d->steps, clause);
    if (n_params > 0) {
        doc_put_cstr(&d->steps, "parameters");
        buf_add_str(&d->steps, buf_str(&d->params));
    }
    d->previous = route->step_id;
    return buf_check(&d->steps, d->err);
}

/* ---- a clause that cannot ---- */

static enum bt_code add_unrouted(struct drafter *d, struct str clause, const struct rank_hit *hits,
                                 uint32_t n, const struct buf *passed)
{
    struct planner_unrouted *u = &d->result->unrouted[d->result->n_unrouted++];
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
    u->clause = arena_str(d->arena, clause);
    return u->clause.ptr == NULL ? nomem(d) : keep(d, &why, &u->why);
}

/* ---- all ---- */

/* The best skill that is about the clause and can get its required parameters. */
static enum bt_code plan_clause(struct drafter *d, uint32_t ix)
{
    struct rank_hit hits[HITS_MAX];
    const struct fill fill = {d->clauses[ix], d->previous};
    const uint32_t n = rank_clause(d->rank, ix, hits, HITS_MAX);
    struct buf passed; /* skills that fit but lack a parameter */
    struct str why;
    enum bt_code code;
    buf_init(&passed, WHY_MAX);
    for (uint32_t i = 0; i < n && hits[i].routable; i++) {
        struct str missing;
        buf_clear(&d->params);
        const uint32_t params =
            fill_parameters(&fill, skill_of(d, &hits[i])->input_schema, &d->params, &missing);
        if (missing.ptr == NULL) {
            code = buf_check(&d->params, d->err);
            code = code == BT_OK ? explain(d, ix, hits, n, i, &passed, &why) : code;
            code = code == BT_OK ? add_step(d, d->clauses[ix], &hits[i], why, params) : code;
            buf_done(&passed);
            return code;
        }
        buf_add_cstr(&passed, "; ");
        put_name(&passed, d, &hits[i]);
        buf_printf(&passed, " needs \"%.*s\", which the words do not give",
                   (int)(missing.len < 64 ? missing.len : 64), missing.ptr);
    }
    code = add_unrouted(d, d->clauses[ix], hits, n, &passed);
    buf_done(&passed);
    return code;
}

static enum bt_code finish(struct drafter *d)
{
    struct planner_result *r = d->result;
    struct buf plan;
    if (r->n_unrouted > 0 && (!d->request->allow_unrouted || r->n_routes == 0)) {
        const struct planner_unrouted *u = &r->unrouted[0];
        return err_set(
            d->err, BT_INVALID, "no agent can do \"%.*s\": %.*s (%u of %u parts of the goal)",
            (int)utf8_cut(u->clause.ptr, u->clause.len, 120), u->clause.ptr,
            (int)utf8_cut(u->why.ptr, u->why.len, 240), u->why.ptr, r->n_unrouted, d->n_clauses);
    }
    buf_init(&plan, LIMIT_CONTROL_BYTES);
    doc_put_map(&plan, 1);
    doc_put_cstr(&plan, "steps");
    doc_put_array(&plan, r->n_routes);
    buf_add_str(&plan, buf_str(&d->steps));
    enum bt_code code = buf_check(&plan, d->err);
    if (code == BT_OK) {
        r->plan = doc_copy(d->arena, doc_from_buf(&plan));
        code = r->plan.ptr == NULL ? nomem(d) : BT_OK;
    }
    buf_done(&plan);
    return code;
}

static enum bt_code draft(struct drafter *d)
{
    enum bt_code code =
        rank_new(d->request->registry, d->clauses, d->n_clauses, d->arena, &d->rank, d->err);
    d->result->routes = arena_alloc(d->arena, CLAUSES_MAX * sizeof d->result->routes[0]);
    d->result->unrouted = arena_alloc(d->arena, CLAUSES_MAX * sizeof d->result->unrouted[0]);
    if (code == BT_OK && (d->result->routes == NULL || d->result->unrouted == NULL)) {
        code = nomem(d);
    }
    for (uint32_t i = 0; i < d->n_clauses && code == BT_OK; i++) {
        code = plan_clause(d, i);
    }
    return code == BT_OK ? finish(d) : code;
}

static enum bt_code keyword_plan(void *self, const struct planner_request *request,
                                 struct arena *arena, struct planner_result *ret,
                                 struct bt_error *err)
{
    (void)self;
    struct drafter d = {.request = request, .arena = arena, .result = ret, .err = err};
    *ret = (struct planner_result){.n_routes = 0};
    d.n_clauses = clauses_split(request->goal, d.clauses);
    if (d.n_clauses == 0) {
        return err_set(err, BT_INVALID, "the goal is empty; say what is to be done");
    }
    if (d.n_clauses > CLAUSES_MAX) {
        return err_set(err, BT_LIMIT, "the goal has more than %d parts; give a plan instead",
                       CLAUSES_MAX);
    }
    buf_init(&d.steps, LIMIT_CONTROL_BYTES);
    buf_init(&d.params, LIMIT_CONTROL_BYTES / 4);
    const enum bt_code code = draft(&d);
    buf_done(&d.steps);
    buf_done(&d.params);
    return code;
}

const struct planner_ops keyword_planner = {.name = "keyword", .plan = keyword_plan};
