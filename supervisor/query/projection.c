#include "supervisor/query/projection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "registry/registry.h"
#include "supervisor/engine/request.h"

enum { NOT_WHOLE_MAX = 1000 /* as messages.def has it */ };

void projection_done(struct projection *s)
{
    free(s->handoffs);
    arena_done(&s->arena);
    *s = (struct projection){0};
}

struct replay {
    struct projection *projection;
    struct arena scratch;
    projection_row_fn also;
    void *self;
    enum bt_code code;
    struct bt_error *err;
};

static bool apply_row(const struct journal_row *row, void *self)
{
    struct replay *t = self;

    t->code = projection_apply(t->projection, &t->scratch, row, t->err);
    arena_reset(&t->scratch);
    if (t->code == BT_OK && t->also != NULL && !t->also(t->projection, row, t->self)) {
        t->code = err_set(t->err, BT_NOMEM, "out of memory for a story");
    }
    return t->code == BT_OK;
}

/* ---- the steps as planned ---- */

/* The agent of the step: the plan's, unless a row names another. */
static void name_agent(struct engine *engine, const struct plan_step *p, struct msg_step_view *v)
{
    const struct msg_card *card;
    uint32_t agent;

    v->agent_id = v->agent_id.len > 0 ? v->agent_id : p->agent_id;
    agent = registry_agent(engine_registry(engine), v->agent_id);
    card = agent == REGISTRY_NONE ? NULL : registry_agent_view(engine_registry(engine), agent).card;
    v->agent_name = card != NULL && card->name.len > 0 ? card->name : v->agent_id;
    if (card != NULL) {
        v->agent_icon = card->icon;
        v->agent_color = card->color;
    }
}

static void lay_out_step(struct engine *engine, struct projection *s, uint32_t i)
{
    const struct plan_step *p = &s->plan->steps[i];
    struct msg_step_view *v = &s->view.steps[i];

    v->step_id = p->step_id;
    v->step_index = i;
    v->skill = p->skill;
    v->task = s->steps[i].task.len > 0 ? s->steps[i].task : p->task;
    v->type = str_from(step_type_name(p->type));
    v->revision = p->revision;
    v->superseded = p->superseded;
    v->status = v->status.len > 0 ? v->status : STR_LIT("pending");
    v->depends_on = arena_alloc(&s->arena, (p->deps_n + 1) * sizeof *v->depends_on);
    for (uint32_t d = 0; v->depends_on != NULL && d < p->deps_n; d++) {
        v->depends_on[v->depends_on_n++] = s->plan->steps[s->plan->deps[p->deps_at + d]].step_id;
    }
    name_agent(engine, p, v);
}

/* A dry run that is over: its steps were never to begin. */
static bool is_planned(const struct projection *s)
{
    return s->ended && s->plan->dry_run && !str_is(s->view.status, "failed") &&
           !str_is(s->view.status, "quarantined") && !str_is(s->view.status, "cancelled");
}

static bool is_final(struct str status)
{
    return str_is(status, "completed") || str_is(status, "failed") || str_is(status, "skipped") ||
           str_is(status, "cancelled");
}

static void count_step(struct projection *s, struct msg_step_view *v)
{
    struct msg_plan_counts *n = &s->view.counts;

    if (v->superseded) {
        n->superseded++;
        return;
    }
    if (s->ended && !is_planned(s) && !is_final(v->status)) {
        /* It never began, or was under way in a plan that was put in quarantine: the end of the
         * plan ends it, too. */
        v->status = STR_LIT("cancelled");
    }
    n->total++;
    n->completed += str_is(v->status, "completed");
    n->failed += str_is(v->status, "failed");
    n->skipped += str_is(v->status, "skipped");
    n->cancelled += str_is(v->status, "cancelled");
}

static bool gave_part(const struct msg_step_view *v)
{
    return v->truncated && !v->superseded;
}

static bool read_part(const struct msg_step_view *v)
{
    return v->context_truncated && !v->superseded;
}

/* The ids of the steps that are meant: at most NOT_WHOLE_MAX in *ret, *ret_n of them. *ret_total is
 * 0 when these are all. False: out of memory. */
static bool list_steps(struct projection *s, bool (*is_meant)(const struct msg_step_view *v),
                       struct str **ret, uint32_t *ret_n, uint64_t *ret_total)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->view.steps_n; i++) {
        n += is_meant(&s->view.steps[i]) ? 1u : 0u;
    }
    *ret_total = n > NOT_WHOLE_MAX ? n : 0;
    *ret = n == 0 ? NULL : arena_alloc(&s->arena, n * sizeof(struct str));
    for (uint32_t i = 0; *ret != NULL && *ret_n < NOT_WHOLE_MAX && i < s->view.steps_n; i++) {
        if (is_meant(&s->view.steps[i])) {
            (*ret)[(*ret_n)++] = s->view.steps[i].step_id;
        }
    }
    return n == 0 || *ret != NULL;
}

/* The steps that gave or read something that is not whole. False: out of memory. */
static bool list_not_whole(struct projection *s)
{
    struct msg_plan_view *v = &s->view;

    return list_steps(s, gave_part, &v->truncated_steps, &v->truncated_steps_n,
                      &v->truncated_steps_total) &&
           list_steps(s, read_part, &v->context_truncated_steps, &v->context_truncated_steps_n,
                      &v->context_truncated_steps_total);
}

static enum bt_code lay_out(struct engine *engine, struct projection *s, struct bt_error *err)
{
    if (!projection_make_room(s, s->plan->n_steps)) {
        return err_set(err, BT_NOMEM, "out of memory for a story");
    }
    s->view.steps_n = s->plan->n_steps;
    for (uint32_t i = 0; i < s->view.steps_n; i++) {
        lay_out_step(engine, s, i);
        count_step(s, &s->view.steps[i]);
    }
    return list_not_whole(s) ? BT_OK : err_set(err, BT_NOMEM, "out of memory for a story");
}

/* The newest revision's document: a blob, or that of the plan's row. */
static enum bt_code load_plan(struct engine *engine, struct projection *s, struct bt_error *err)
{
    struct buf bytes;
    enum bt_code code = BT_OK;

    if (s->revised.id != 0) {
        buf_init(&bytes, LIMIT_STEP_BYTES);
        code = journal_blob_get(engine_journal(engine), s->revised.id, &bytes, err);
        if (code == BT_OK) {
            s->document = doc_copy(&s->arena, doc_from_buf(&bytes));
        }
        buf_done(&bytes);
    }
    if (code == BT_OK && s->document.ptr == NULL) {
        code = err_set(err, BT_NOMEM, "out of memory for a story");
    }
    return code != BT_OK ? code
                         : plan_read_canonical(s->document, &engine_options(engine)->defaults,
                                               engine_registry(engine), &s->arena, &s->plan, err);
}

/* ---- the plan ---- */

/*
 * A plan whose end is not among the rows has not ended, whatever its run or the open batch intent:
 * they are ahead of the commit within a cycle, and "completed" without a result would be half a
 * truth.
 */
static struct str open_status(struct engine *engine, struct str plan_id)
{
    const struct open_plan *p = open_plan_by_id(engine, plan_id);
    enum plan_status live = p != NULL ? core_block_run(p->block)->status : PLAN_RUNNING;

    return str_from(plan_status_name(plan_is_final(live) ? PLAN_RUNNING : live));
}

/* The trace is the plan: its id as 32 hexadecimal digits, as in traceparent. */
static struct str trace_id(struct projection *s, struct uuid id)
{
    char text[2 * sizeof id.b + 1];

    for (size_t i = 0; i < sizeof id.b; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", id.b[i]);
    }
    return projection_keep(s, str_from(text));
}

static void open_projection(const struct journal_plan *row, struct projection *s)
{
    char id[UUID_TEXT_LEN + 1];

    uuid_format(row->plan_id, id);
    s->document = doc_copy(&s->arena, (struct doc){row->doc, row->doc_len});
    s->created = s->updated = row->created_wall;
    s->view.plan_id = projection_keep(s, str_from(id));
    s->view.session_id = projection_keep(s, row->session_id);
    s->view.query = projection_keep(s, row->goal);
    s->view.status = projection_keep(s, row->status);
    s->view.revision = 1;
    s->view.created_at = projection_iso(s, row->created_wall);
    s->view.trace_id = trace_id(s, row->plan_id);
}

/* Its last event calls it failed. Without that event, too, the plan is over: the event cannot be
 * added when the plan's rows are damaged. */
static void end_quarantined(struct projection *s, msec since, struct str note)
{
    if (!s->ended) {
        s->ended = true;
        s->ended_at = since;
        s->paused = 0;
        s->view.cancelling = false;
        s->view.outcome = STR_LIT("failed");
        s->view.completed_at = projection_iso(s, since);
        s->view.failure_reason = s->failure_text = note;
    }
    s->view.status = STR_LIT("quarantined");
}

enum bt_code projection_read_also(struct engine *engine, struct str plan_id, struct projection *ret,
                                  projection_row_fn also, void *self, struct bt_error *err)
{
    struct replay t = {.projection = ret, .also = also, .self = self, .err = err};
    struct journal_plan row;
    uint64_t ix;
    struct uuid id;
    msec quarantined; /* since then; 0 = it is not */
    struct str note;
    enum bt_code code;

    *ret = (struct projection){0};
    code = request_plan_row(engine, plan_id, &row, err);
    if (code != BT_OK) {
        return code;
    }
    ix = row.ix;
    id = row.plan_id;
    open_projection(&row, ret);
    quarantined = str_is(row.status, "quarantined") ? row.ended_wall : 0;
    note = projection_keep(ret, row.note);
    code = journal_replay(engine_journal(engine), ix, apply_row, &t, err);
    code = code == BT_OK ? t.code : code;
    if (quarantined != 0) {
        end_quarantined(ret, quarantined, note);
    }
    if (code == BT_OK) {
        code = load_plan(engine, ret, err);
    }
    if (code == BT_OK) {
        ret->plan->plan_id = id;
        ret->plan->revision =
            ret->view.revision > 0 ? (uint32_t)ret->view.revision : ret->plan->revision;
        code = lay_out(engine, ret, err);
    }
    if (code == BT_OK && !ret->ended) {
        ret->view.status = open_status(engine, plan_id);
    }
    if (code == BT_OK) {
        ret->view.dry_run = ret->plan->dry_run;
        ret->view.status = is_planned(ret) ? STR_LIT("planned") : ret->view.status;
        ret->view.updated_at = projection_iso(ret, ret->updated);
    }
    ret->view.last_seq = ret->last_seq;
    arena_done(&t.scratch);
    return code;
}

enum bt_code projection_read(struct engine *engine, struct str plan_id, struct projection *ret,
                             struct bt_error *err)
{
    return projection_read_also(engine, plan_id, ret, NULL, NULL, err);
}
