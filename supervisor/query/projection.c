/* How a plan's steps look once its rows are applied. */
#include "supervisor/query/projection.h"

#include <stdlib.h>
#include <string.h>

#include "registry/registry.h"
#include "supervisor/engine/request.h"
#include "supervisor/plan/flow/child.h"

enum { NOT_WHOLE_MAX = 1000 /* as messages.def has it */ };

void projection_free(struct projection *s)
{
    free(s->handoffs);
    free(s->revisions);
    arena_done(&s->arena);
    *s = (struct projection){0};
}

/* ---- the steps as planned ---- */

/* The card of the agent as it is now. */
static void name_agent(struct engine *engine, struct msg_step_view *v)
{
    const uint32_t agent = registry_agent(engine_registry(engine), v->agent_id);
    const struct msg_card *card =
        agent == REGISTRY_NONE ? NULL : registry_agent_view(engine_registry(engine), agent).card;

    v->agent_name = card != NULL && card->name.len > 0 ? card->name : v->agent_id;
    if (card != NULL) {
        v->agent_icon = card->icon;
        v->agent_color = card->color;
    }
}

bool projection_own_steps(struct engine *engine, struct projection *s, uint32_t from, uint32_t to)
{
    /* Those of other answers are never touched: they cost no memory. */
    struct msg_step_view *own = arena_room(&s->arena, (s->view.steps_n + 1) * sizeof *own);

    if (own == NULL) {
        return false;
    }
    for (uint32_t i = from; i < to; i++) {
        own[i] = s->view.steps[i];
        name_agent(engine, &own[i]);
    }
    s->view.steps = own;
    return true;
}

/* Only the supervisor writes the progress of such a step. */
static void lay_out_children(struct projection *s, uint32_t i)
{
    const struct projection_children *c = &s->steps[i].children;
    struct msg_step_view *v = &s->view.steps[i];
    struct child_step how;

    if (s->plan->steps[i].type != STEP_TYPE_PLAN && s->steps[i].turns > 0) {
        how = (struct child_step){.kind = CHILD_OF_CALLS};
    } else if (!child_step_read(s->plan->steps[i].rules->child, &how)) {
        return;
    }
    v->children = (struct msg_step_children){.kind = str_from(child_kind_name(how.kind)),
                                             .plan_id = str_from(c->plan_id)};
    if (c->plan_id[0] != 0) {
        v->children.rounds = how.kind == CHILD_OF_LOOP    ? c->round + 1u
                             : how.kind == CHILD_OF_CALLS ? s->steps[i].turns
                                                          : 0;
        v->children.items = c->items;
        v->children.steps = c->steps;
        v->children.over = c->over;
        v->children.completed = c->completed;
        v->children.failed = c->failed;
    }
    msg_set(v, step_view, children);
}

static void lay_out_step(struct projection *s, uint32_t i, struct arena *arena)
{
    const struct plan_step *p = &s->plan->steps[i];
    struct msg_step_view *v = &s->view.steps[i];

    v->step_id = p->step_id;
    v->step_index = i;
    v->agent_id = v->agent_id.len > 0 ? v->agent_id : p->agent_id;
    v->skill = p->skill;
    v->task = s->steps[i].task.len > 0 ? s->steps[i].task : p->task;
    v->type = str_from(step_type_name(p->type));
    v->when = p->rules->when;
    v->compensate = p->rules->compensate;
    v->run_if = p->rules->policy.run_if == RUN_IF_SUCCESS
                    ? (struct str){"", 0}
                    : str_from(run_if_name(p->rules->policy.run_if));
    v->revision = p->revision;
    v->superseded = p->superseded;
    v->status = v->status.len > 0 ? v->status : STR_LIT("pending");
    lay_out_children(s, i);
    v->depends_on = p->deps_n == 0 ? NULL : arena_alloc(arena, p->deps_n * sizeof *v->depends_on);
    for (uint32_t d = 0; v->depends_on != NULL && d < p->deps_n; d++) {
        v->depends_on[v->depends_on_n++] = s->plan->steps[s->plan->deps[p->deps_at + d]].step_id;
    }
}

bool projection_is_planned(const struct projection *s)
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
    if (s->ended && !projection_is_planned(s) && !is_final(v->status)) {
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
static bool list_steps(struct projection *s, struct arena *arena,
                       bool (*is_meant)(const struct msg_step_view *v), struct str **ret,
                       uint32_t *ret_n, uint64_t *ret_total)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->view.steps_n; i++) {
        n += is_meant(&s->view.steps[i]) ? 1u : 0u;
    }
    *ret_total = n > NOT_WHOLE_MAX ? n : 0;
    *ret = n == 0 ? NULL : arena_alloc(arena, n * sizeof(struct str));
    for (uint32_t i = 0; *ret != NULL && *ret_n < NOT_WHOLE_MAX && i < s->view.steps_n; i++) {
        if (is_meant(&s->view.steps[i])) {
            (*ret)[(*ret_n)++] = s->view.steps[i].step_id;
        }
    }
    return n == 0 || *ret != NULL;
}

/* The steps that gave or read something that is not whole. False: out of memory. */
static bool list_not_whole(struct projection *s, struct arena *arena)
{
    struct msg_plan_view *v = &s->view;

    return list_steps(s, arena, gave_part, &v->truncated_steps, &v->truncated_steps_n,
                      &v->truncated_steps_total) &&
           list_steps(s, arena, read_part, &v->context_truncated_steps,
                      &v->context_truncated_steps_n, &v->context_truncated_steps_total);
}

enum bt_code projection_lay_out(struct projection *s, const struct projection *rows,
                                struct arena *arena, struct bt_error *err)
{
    const uint32_t n = s->plan->n_steps;
    const uint32_t told = rows->steps_cap < n ? rows->steps_cap : n;

    s->view.steps = arena_alloc(arena, (n + 1) * sizeof *s->view.steps);
    s->steps = arena_alloc(arena, (n + 1) * sizeof *s->steps);
    if (s->view.steps == NULL || s->steps == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a story");
    }
    if (told > 0) {
        memcpy(s->view.steps, rows->view.steps, told * sizeof *s->view.steps);
        memcpy(s->steps, rows->steps, told * sizeof *s->steps);
    }
    s->view.steps_n = n;
    for (uint32_t i = 0; i < n; i++) {
        lay_out_step(s, i, arena);
        count_step(s, &s->view.steps[i]);
    }
    return list_not_whole(s, arena) ? BT_OK : err_set(err, BT_NOMEM, "out of memory for a story");
}

enum bt_code projection_load_plan(struct engine *engine, struct projection *s, struct doc submitted,
                                  struct arena *arena, struct bt_error *err)
{
    struct buf bytes;
    enum bt_code code = BT_OK;

    s->document = (struct doc){NULL, 0};
    if (s->revised.id != 0) {
        buf_init(&bytes, LIMIT_STEP_BYTES);
        code = journal_blob_get(engine_journal(engine), s->revised.id, &bytes, err);
        if (code == BT_OK) {
            s->document = doc_copy(arena, doc_from_buf(&bytes));
        }
        buf_done(&bytes);
    } else {
        s->document = doc_copy(arena, submitted);
    }
    if (code == BT_OK && s->document.ptr == NULL) {
        code = err_set(err, BT_NOMEM, "out of memory for a story");
    }
    if (code == BT_OK) {
        plan_about_of(s->document, &s->about);
        plan_job_of(s->document, &s->job);
        code = plan_read_canonical(s->document, &engine_options(engine)->defaults,
                                   engine_registry(engine), arena, &s->plan, err);
    }
    return code;
}
