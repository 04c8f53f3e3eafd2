/* Requests that make, check, cancel and decide plans. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/log.h"
#include "protocol/base/utf8.h"
#include "supervisor/bus/bus.h"
#include "supervisor/journal/record_codec.h"
#include "supervisor/planner/planner.h"

enum { PROBLEMS_MAX = 200 };

/* A goal or a document on its way to a plan; everything lives in the plan's arena until it is bound
 * to its run. */
struct draft {
    struct bus_plan plan;
    struct planner_result planned;
    struct problems problems;
    struct buf normalised;
    struct msg_plan_problem *problem_views;
    struct msg_plan_route *route_views;
};

struct wish {
    struct str goal, session_id, planner;
    struct doc plan, policy;
};

static enum bt_code draft_init(struct draft *d, struct bt_error *err)
{
    *d = (struct draft){0};
    buf_init(&d->normalised, LIMIT_STEP_BYTES);
    d->problems.at = calloc(PROBLEMS_MAX, sizeof *d->problems.at);
    d->problems.cap = PROBLEMS_MAX;
    return d->problems.at == NULL ? err_set(err, BT_NOMEM, "out of memory for a plan") : BT_OK;
}

static void draft_done(struct draft *d)
{
    free(d->problems.at);
    buf_done(&d->normalised);
    bus_plan_done(&d->plan);
}

static enum bt_code plan_goal(struct bus *b, const struct wish *w, struct draft *d,
                              struct bt_error *err)
{
    struct planner_request request = {.goal = w->goal, .registry = b->registry};
    struct str name = w->planner.len > 0 ? w->planner : str_from(b->opt.planner);
    struct planner planner;
    enum bt_code code = planner_find(name, &planner, err);

    return code == BT_OK ? planner_plan(&planner, &request, &d->plan.arena, &d->planned, err)
                         : code;
}

static enum bt_code make_draft(struct bus *b, const struct wish *w, struct draft *d,
                               struct bt_error *err)
{
    struct plan_request request = {.plan = w->plan,
                                   .policy = w->policy,
                                   .defaults = &b->opt.defaults,
                                   .registry = b->registry,
                                   .goal = w->goal,
                                   .session_id = w->session_id};
    enum bt_code code;

    if ((w->goal.len > 0) == (w->plan.ptr != NULL) && w->goal.len == 0) {
        return err_set(err, BT_INVALID, "No plan to execute: expected a goal or a plan");
    }
    if (w->plan.ptr == NULL) {
        code = plan_goal(b, w, d, err);
        if (code != BT_OK) {
            return code;
        }
        request.plan = d->planned.plan;
        request.planner = w->planner.len > 0 ? w->planner : str_from(b->opt.planner);
    }
    return plan_read_request(&request, &d->plan.arena, &d->plan.plan, &d->problems, &d->normalised,
                             err);
}

static uint32_t view_problems(struct draft *d)
{
    d->problem_views = arena_alloc(&d->plan.arena, (d->problems.n + d->planned.n_unrouted + 1) *
                                                       sizeof *d->problem_views);
    if (d->problem_views == NULL) {
        return 0;
    }
    for (uint32_t i = 0; i < d->problems.n; i++) {
        const struct problem *p = &d->problems.at[i];
        d->problem_views[i] = (struct msg_plan_problem){
            .severity = p->warning ? STR_LIT("warning") : STR_LIT("error"),
            .category = str_from(problem_category_name(p->category)),
            .step_id = str_from(p->step_id),
            .field = str_from(p->field),
            .message = str_from(p->message)};
    }
    for (uint32_t i = 0; i < d->planned.n_unrouted; i++) {
        const struct planner_unrouted *u = &d->planned.unrouted[i];
        struct buf text;
        buf_init(&text, 1000);
        buf_printf(&text, "no agent can do \"%.*s\"; %.*s",
                   (int)utf8_cut(u->clause.ptr, u->clause.len, 400), u->clause.ptr,
                   (int)utf8_cut(u->why.ptr, u->why.len, 500), u->why.ptr);
        d->problem_views[d->problems.n + i] =
            (struct msg_plan_problem){.severity = STR_LIT("error"),
                                      .category = STR_LIT("unroutable"),
                                      .message = arena_str(&d->plan.arena, buf_str(&text))};
        buf_done(&text);
    }
    return d->problems.n + d->planned.n_unrouted;
}

static uint32_t view_routes(struct draft *d)
{
    d->route_views =
        arena_alloc(&d->plan.arena, (d->planned.n_routes + 1) * sizeof *d->route_views);
    for (uint32_t i = 0; d->route_views != NULL && i < d->planned.n_routes; i++) {
        const struct planner_route *r = &d->planned.routes[i];
        d->route_views[i] = (struct msg_plan_route){.step_id = r->step_id,
                                                    .agent_id = r->agent_id,
                                                    .skill = r->skill,
                                                    .score = r->score,
                                                    .why = r->why};
    }
    return d->route_views != NULL ? d->planned.n_routes : 0;
}

/* The refusal of a plan carries every problem in error.details {problems: [...]}. */
static void refuse_plan(struct bus *b, struct request *rq, struct draft *d,
                        const struct bt_error *why)
{
    struct msg_plan_lint_ok view = {.valid = false};
    struct msg_part part = {MSG_plan_lint_ok, &view};
    struct buf details;

    buf_init(&details, LIMIT_CONTROL_BYTES / 4);
    view.problems_n = view_problems(d);
    view.problems = d->problem_views;
    if (view.problems_n == 0 || msg_write(&details, WIRE_MSGPACK, &part, 1, NULL) != BT_OK) {
        buf_clear(&details);
    }
    bus_refuse(b, rq, why, CLASS_VALIDATION_ERROR, 0,
               details.len > 0 ? doc_from_buf(&details) : (struct doc){NULL, 0});
    buf_done(&details);
}

/* True when the request was answered from an earlier submission with the same key. */
static bool answer_repeated(struct bus *b, struct request *rq, const struct msg_plan_submit *m,
                            uint64_t body_hash)
{
    struct msg_plan_submit_ok ok = {.existing = true};
    struct journal_plan row;
    char id[UUID_TEXT_LEN + 1];
    struct bt_error err;
    enum bt_code code;

    if (m->client_key.len == 0) {
        return false;
    }
    code = journal_plan_by_key(b->journal, m->client_key, &row, &err);
    if (code == BT_NOT_FOUND) {
        return false;
    }
    uuid_format(row.plan_id, id);
    if (code != BT_OK) {
        bus_refuse(b, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else if (row.body_hash != body_hash) {
        bus_refuse_text(b, rq, BT_CONFLICT, "clientKey '%.*s' was used for another plan (%s)",
                        STR_ARG(m->client_key), id);
    } else {
        ok.plan_id = str_from(id);
        ok.seq = journal_last_seq(b->journal);
        bus_answer(b, rq, MSG_plan_submit_ok, &ok);
    }
    return true;
}

static uint64_t hash_body(const struct msg_plan_submit *m)
{
    uint64_t h = str_hash(m->goal);

    h = h * 31 + str_hash((struct str){(const char *)m->plan.ptr, m->plan.len});
    h = h * 31 + str_hash((struct str){(const char *)m->policy.ptr, m->policy.len});
    h = h * 31 + str_hash(m->planner);
    return (h * 31 + str_hash(m->session_id)) >> 1; /* SQLite's integers are signed */
}

static enum bt_code start_plan(struct bus *b, const struct msg_plan_submit *m, uint64_t body_hash,
                               struct draft *d, struct bt_error *err)
{
    struct plan *plan = d->plan.plan;
    struct core_event ev = {.type = CORE_SUBMIT, .plan = plan};
    enum core_reject reject = REJECT_NONE;
    struct journal_plan row = {.client_key = m->client_key,
                               .body_hash = body_hash,
                               .session_id = plan->session_id,
                               .goal = plan->goal,
                               .doc = d->normalised.at,
                               .doc_len = d->normalised.len,
                               .created_wall = b->wall,
                               .status = STR_LIT("running")};
    enum bt_code code;

    plan->plan_id = row.plan_id = uuid_new();
    d->plan.block = bus_plan_block(plan);
    ev.block = d->plan.block;
    if (ev.block == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a plan of %u steps", plan->n_steps);
    }
    code = journal_plan_add(b->journal, &row, &d->plan.ix, err);
    if (code != BT_OK) {
        if (code != BT_CONFLICT) {
            bus_fail(b, err);
        }
        return code;
    }
    b->pending = &d->plan;
    code = bus_feed(b, &ev, &reject, NULL, err);
    b->pending = NULL;
    if (code == BT_OK && reject != REJECT_NONE) {
        /* The row of the plan is in the batch but no run is: this must not be committed. */
        code = err_set(err, BT_INTERNAL, "the core refused a plan that had a place: %s",
                       core_reject_text(reject));
    }
    if (code != BT_OK) {
        bus_fail(b, err);
    }
    return code;
}

static bool may_submit(struct bus *b, struct request *rq)
{
    if (b->draining) {
        bus_refuse_text(b, rq, BT_UNAVAILABLE, "the supervisor is stopping and takes no new plans");
    } else if (journal_storage_low(b->journal)) {
        bus_refuse_text(b, rq, BT_UNAVAILABLE,
                        "storage_unavailable: the disk of %s is full; running plans go on",
                        b->opt.state_dir);
    } else if (core_runs_open(b->core) >= b->opt.plans_max) {
        bus_refuse_text(b, rq, BT_BUSY, "%u plans are open, the limit; try again later",
                        b->opt.plans_max);
    } else {
        return true;
    }
    return false;
}

void on_plan_submit(struct bus *b, struct request *rq)
{
    struct msg_plan_submit_ok ok = {0};
    struct msg_plan_submit m;
    struct draft d;
    struct bt_error err;
    char id[UUID_TEXT_LEN + 1];
    uint64_t body_hash;

    if (msg_read(&rq->reader, MSG_plan_submit, &m, &err) != BT_OK) {
        bus_refuse(b, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    body_hash = hash_body(&m);
    if (answer_repeated(b, rq, &m, body_hash) || !may_submit(b, rq)) {
        return;
    }
    struct wish w = {m.goal, m.session_id, m.planner, m.plan, m.policy};
    if (draft_init(&d, &err) != BT_OK || make_draft(b, &w, &d, &err) != BT_OK) {
        refuse_plan(b, rq, &d, &err);
    } else {
        /* Views live in the plan's arena, which moves with it. */
        ok.problems_n = view_problems(&d);
        ok.problems = d.problem_views;
        ok.routes_n = view_routes(&d);
        ok.routes = d.route_views;
        if (start_plan(b, &m, body_hash, &d, &err) != BT_OK) {
            if (!b->failed) {
                bus_refuse(b, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
            }
        } else {
            struct bus_plan *p = bus_plan_of(b, core_newest_run(b->core));
            uuid_format(p->plan->plan_id, id);
            ok.plan_id = str_from(id);
            ok.seq = journal_last_seq(b->journal);
            if (bus_try_answer(b, rq, MSG_plan_submit_ok, &ok, &err) != BT_OK) {
                ok.problems_n = ok.routes_n =
                    0; /* it was accepted: no remark of ours may turn that into a refusal */
                bus_answer(b, rq, MSG_plan_submit_ok, &ok);
            }
        }
    }
    draft_done(&d);
}

void on_plan_lint(struct bus *b, struct request *rq)
{
    struct msg_plan_lint_ok ok = {0};
    struct msg_plan_lint m;
    struct draft d;
    struct bt_error err;

    if (msg_read(&rq->reader, MSG_plan_lint, &m, &err) != BT_OK) {
        bus_refuse(b, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    struct wish w = {m.goal, {"", 0}, m.planner, m.plan, m.policy};
    ok.valid = draft_init(&d, &err) == BT_OK && make_draft(b, &w, &d, &err) == BT_OK;
    if (!ok.valid && d.problems.errors == 0 && d.planned.n_unrouted == 0) {
        bus_refuse(b, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
    } else {
        ok.problems_n = view_problems(&d);
        ok.problems = d.problem_views;
        ok.routes_n = view_routes(&d);
        ok.routes = d.route_views;
        ok.plan = ok.valid ? doc_from_buf(&d.normalised) : (struct doc){NULL, 0};
        msg_set(&ok, plan_lint_ok, valid);
        bus_answer(b, rq, MSG_plan_lint_ok, &ok);
    }
    draft_done(&d);
}

void on_plan_cancel(struct bus *b, struct request *rq)
{
    struct msg_plan_cancel_ok ok = {.status = STR_LIT("cancelled")};
    struct core_event ev = {.type = CORE_CANCEL};
    struct journal_plan row;
    struct msg_plan_cancel m;
    struct bus_plan *p;
    struct uuid id;
    struct bt_error err;

    if (msg_read(&rq->reader, MSG_plan_cancel, &m, &err) != BT_OK) {
        bus_refuse(b, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    ok.plan_id = m.plan_id;
    p = bus_plan_by_id(b, m.plan_id);
    if (p != NULL && !plan_is_final(core_block_run(p->block)->status)) {
        ev.run = p->run;
        ev.text = m.reason;
        if (bus_feed(b, &ev, NULL, NULL, &err) != BT_OK) {
            bus_fail(b, &err);
            return;
        }
        bus_answer(b, rq, MSG_plan_cancel_ok, &ok);
        return;
    }
    if (!uuid_parse(m.plan_id, &id) || journal_plan_by_id(b->journal, id, &row, &err) != BT_OK) {
        bus_refuse_text(b, rq, BT_NOT_FOUND, "no plan has the id '%.*s'", STR_ARG(m.plan_id));
    } else if (str_is(row.status, "cancelled")) {
        bus_answer(b, rq, MSG_plan_cancel_ok, &ok); /* cancelling twice is cancelling once */
    } else {
        bus_refuse_text(b, rq, BT_CONFLICT, "the plan has ended (%.*s)", STR_ARG(row.status));
    }
}
