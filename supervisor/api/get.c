/* plan.get: the projection of a plan, and of an open one where it stands and what it waits for. */
#include <stdio.h>

#include "supervisor/api/api.h"
#include "supervisor/api/review_view.h"
#include "supervisor/engine/children.h"
#include "supervisor/engine/row_body.h"
#include "supervisor/events/record_codec.h"
#include "supervisor/plan/about.h"
#include "supervisor/query/projection.h"
#include "supervisor/query/waits.h"

enum {
    DETAILS_BYTES = LIMIT_CONTROL_BYTES / 8, /* of the failed steps of one answer */
    PATH_MAX = 200, /* of one answer; the rest of a longer critical path is where it began */
    NAMES_SHOWN = 8,
    STEPS_SHOWN = 2000 /* of one answer: writing it holds up the others */
};

/* A point of the core's time as text; "" for never. */
static struct str until_text(struct engine *engine, struct projection *s, msec until)
{
    if (until == MSEC_NEVER || until == 0) {
        return (struct str){"", 0};
    }
    return projection_iso(s, until > engine_now(engine)
                                 ? engine_wall(engine) + (until - engine_now(engine))
                                 : engine_wall(engine));
}

static struct str agent_id(struct engine *engine, uint32_t agent)
{
    return agent < registry_agents(engine_registry(engine))
               ? registry_agent_view(engine_registry(engine), agent).id
               : (struct str){"", 0};
}

/* reviewId: of what the step waits for, or of the plan's sign-off. */
static struct str review_id(const struct open_plan *p, struct projection *s, uint32_t step,
                            const struct step_wait *w)
{
    const struct run *run = core_block_run(p->block);
    struct str made;
    struct buf id;

    buf_init(&id, 256);
    if (w->review == REVIEW_PLAN) {
        review_id_format(p->plan_id, (struct str){NULL, 0}, run->plan_review, &id);
    } else {
        review_id_format(p->plan_id, p->plan->steps[step].step_id, run->steps[step].review_serial,
                         &id);
    }
    made = projection_keep(s, buf_str(&id));
    buf_done(&id);
    return made;
}

/* Worked out once for all the steps of an answer: how the agents stand, what waits inside. */
struct standing {
    const struct review_inside *inside;
    struct wait_agent *at; /* by agent; NULL = not yet, or out of memory */
    struct str there;      /* names_there */
};

static void count_instances(struct engine *engine, struct wait_agent *at, uint32_t n)
{
    for (uint32_t slot = 0; slot < registry_instances(engine_registry(engine)); slot++) {
        struct instance_view v;
        if (registry_instance_view(engine_registry(engine), slot, &v) && v.agent < n) {
            struct wait_agent *a = &at[v.agent];
            a->draining = (a->instances == 0 || a->draining) && v.draining;
            a->instances++;
            a->lanes += v.capacity;
            a->lanes_up += v.lanes_up;
            a->busy += v.outstanding;
        }
    }
}

static const struct wait_agent *standing_of(struct engine *engine, struct standing *all,
                                            struct arena *arena, uint32_t agent)
{
    const uint32_t n = registry_agents(engine_registry(engine));

    if (all->at == NULL) {
        all->at = arena_alloc(arena, (n + 1) * sizeof *all->at);
        if (all->at == NULL) {
            return NULL;
        }
        count_instances(engine, all->at, n);
        for (uint32_t i = 0; i < n; i++) {
            const struct agent_view v = registry_agent_view(engine_registry(engine), i);
            all->at[i].enabled = v.enabled;
            all->at[i].failure = v.failure;
        }
    }
    return agent < n ? &all->at[agent] : NULL;
}

/* The agents that are there: a plan could name one of them instead. */
static struct str names_there(struct engine *engine, struct projection *s,
                              struct standing *standing)
{
    const struct registry *r = engine_registry(engine);
    uint32_t named = 0;
    struct buf names;

    if (standing->there.len > 0) {
        return standing->there;
    }
    buf_init(&names, (NAMES_SHOWN + 1) * (LIMIT_ID_BYTES + 2));
    for (uint32_t i = 0; i < registry_agents(r) && named <= NAMES_SHOWN; i++) {
        const struct agent_view v = registry_agent_view(r, i);
        if (v.instances > 0 && v.enabled) {
            buf_add_cstr(&names, named > 0 ? ", " : "");
            buf_add_str(&names, named == NAMES_SHOWN ? STR_LIT("...") : v.id);
            named++;
        }
    }
    standing->there = projection_keep(s, buf_str(&names));
    buf_done(&names);
    return standing->there;
}

/* Nothing of a plan begins before its sign-off, whatever else its steps wait for. */
static struct step_wait wait_of(struct engine *engine, const struct open_plan *p, uint32_t step)
{
    struct step_wait w = core_step_wait(engine_core(engine), p->run, step);
    const struct run *run = core_block_run(p->block);
    const bool signoff = (run->paused & 1u << PAUSE_SIGNOFF) != 0;
    const bool ready = run->steps[step].status == STEP_READY;

    if (signoff && ((w.kind == WAIT_NOTHING && ready) || w.kind == WAIT_PAUSED)) {
        w = (struct step_wait){.kind = WAIT_PERSON, .review = REVIEW_PLAN, .until = MSEC_NEVER};
    }
    return w;
}

/* A step that a plan of its own does waits for what that plan waits for: ret_names gets the review.
 */
static struct step_wait wait_inside(struct engine *engine, struct projection *s,
                                    const struct review_inside *inside, struct wait_names *io_names)
{
    struct step_wait w = {.kind = WAIT_PERSON, .review = REVIEW_PLAN, .until = MSEC_NEVER};

    if (inside->step != STEP_NONE) {
        w = core_step_wait(engine_core(engine), inside->plan->run, inside->step);
    }
    io_names->review_id = review_id(inside->plan, s, inside->step, &w);
    io_names->until = until_text(engine, s, w.until);
    io_names->more = inside->n - 1;
    return w;
}

static void fill_wait(struct engine *engine, const struct open_plan *p, struct projection *s,
                      uint32_t step, struct standing *standing)
{
    struct step_wait w = wait_of(engine, p, step);
    struct msg_step_waiting *to = &s->view.steps[step].waiting;
    struct wait_names names = {.until = until_text(engine, s, w.until),
                               .is_loop = step < p->plan->n_steps &&
                                          p->plan->steps[step].rules->loop.max > 0};
    struct buf text;

    if (w.kind == WAIT_CHILD && standing->inside != NULL && standing->inside[step].plan != NULL) {
        w = wait_inside(engine, s, &standing->inside[step], &names);
    } else if (w.kind == WAIT_NOTHING) {
        return;
    } else if (w.kind == WAIT_DEPENDENCY && w.step < p->plan->n_steps) {
        names.step_id = p->plan->steps[w.step].step_id;
    } else if (w.kind == WAIT_PERSON) {
        names.review_id = review_id(p, s, step, &w);
    } else if (w.kind == WAIT_KEY) {
        const struct open_plan *holder = open_plan_of_run(engine, w.holder);
        names.holder = holder != NULL ? projection_keep(s, str_from(holder->id)) : names.holder;
    } else if (w.kind == WAIT_SIGNAL) {
        names.signal = p->plan->steps[step].wait->signal;
    } else {
        names.agent_id = agent_id(engine, w.agent);
        names.agent = w.kind == WAIT_LANE || w.kind == WAIT_AGENT
                          ? standing_of(engine, standing, &s->arena, w.agent)
                          : NULL;
        names.there = w.kind == WAIT_AGENT ? names_there(engine, s, standing) : names.there;
    }
    buf_init(&text, 2048);
    wait_sentence(&w, &names, &text);
    *to = (struct msg_step_waiting){.kind = str_from(wait_kind_name(w.kind)),
                                    .text = projection_keep(s, buf_str(&text)),
                                    .agent_id = names.agent_id,
                                    .step_id = projection_keep(s, names.step_id),
                                    .review_id = names.review_id,
                                    .until = names.until,
                                    .signal = names.signal,
                                    .key = projection_keep(s, w.key)};
    msg_set(&s->view.steps[step], step_view, waiting);
    buf_done(&text);
}

/* What only the run knows of an open step: the rows may be a cycle behind it. */
static void fill_live_step(struct engine *engine, const struct open_plan *p, struct projection *s,
                           uint32_t i, struct standing *standing)
{
    const struct run_step *row = &core_block_run(p->block)->steps[i];
    struct msg_step_view *v = &s->view.steps[i];

    if (step_is_final((enum step_status)row->status)) {
        return;
    }
    if (row->status != STEP_PENDING && row->status != STEP_READY) {
        v->phase = str_from(step_phase_name((enum step_phase)row->phase));
    }
    fill_wait(engine, p, s, i, standing);
}

static void fill_paused(struct projection *s, uint32_t paused)
{
    s->view.paused = arena_alloc(&s->arena, PAUSE_REASON_COUNT * sizeof *s->view.paused);
    for (uint32_t r = 0; s->view.paused != NULL && r < PAUSE_REASON_COUNT; r++) {
        if ((paused & 1u << r) != 0) {
            s->view.paused[s->view.paused_n++] = str_from(pause_reason_name((enum pause_reason)r));
        }
    }
}

/* M111: what was spent on planning, on the work, and on planning again. */
static void fill_usage(struct projection *s, struct usage total, struct usage replanning)
{
    struct usage work = usage_less(usage_less(total, s->planning), replanning);

    work = usage_less(work, s->synthesis);
    s->view.usage_synthesis = usage_view(&s->synthesis);

    s->view.usage = usage_view(&total);
    s->view.usage_planning = usage_view(&s->planning);
    s->view.usage_execution = usage_view(&work);
    s->view.usage_replanning = usage_view(&replanning);
}

static void fill_path(struct engine *engine, struct projection *s)
{
    uint64_t *ms = arena_alloc(&s->arena, (s->view.steps_n + 1) * sizeof *ms);
    uint32_t path[PATH_MAX];
    uint32_t n;

    s->view.critical_path = arena_alloc(&s->arena, PATH_MAX * sizeof *s->view.critical_path);
    if (ms == NULL || s->view.critical_path == NULL) {
        return; /* the answer is true without it */
    }
    for (uint32_t i = 0; i < s->view.steps_n; i++) {
        const struct projection_step *x = &s->steps[i];
        ms[i] = s->view.steps[i].duration_ms;
        if (x->began != 0 && x->ended == 0 && engine_wall(engine) > x->began) {
            ms[i] = engine_wall(engine) - x->began;
        }
    }
    n = critical_path(s->plan, ms, &s->arena, path, PATH_MAX);
    for (uint32_t i = 0; n != UINT32_MAX && i < n; i++) {
        s->view.critical_path[s->view.critical_path_n++] = s->plan->steps[path[i]].step_id;
    }
}

static void fill_position(struct projection *s)
{
    char text[48];

    if (s->started == 0) {
        return;
    }
    (void)snprintf(text, sizeof text, "Step %llu of %u",
                   (unsigned long long)s->view.current_step_index + 1, s->view.steps_n);
    s->view.position = projection_keep(s, str_from(text));
}

/* from: the first step that is asked for; those before it need no words. */
static void fill_live(struct engine *engine, const struct open_plan *p, struct projection *s,
                      uint32_t from, uint32_t to)
{
    const struct run *run = core_block_run(p->block);
    struct standing standing = {.inside = reviews_inside(engine, p, &s->arena)};

    if (standing.inside != NULL && standing.inside[run->n_steps].plan != NULL) {
        struct wait_names names = {.more = 0};
        (void)wait_inside(engine, s, &standing.inside[run->n_steps], &names);
        s->view.compensation.review_id = names.review_id;
    }
    s->view.revision = run->revision;
    s->view.cancelling = run->cancelling != 0;
    s->view.fallbacks = run->fallbacks;
    s->view.replans = run->replans;
    s->view.signals_kept = run->kept;
    s->view.duration_ms =
        s->started != 0 && engine_wall(engine) > s->started ? engine_wall(engine) - s->started : 0;
    fill_paused(s, run->paused);
    fill_usage(s, run->usage, run_phases(run)->replanning);
    for (uint32_t i = from; i < to && i < run->n_steps && i < p->plan->n_steps; i++) {
        fill_live_step(engine, p, s, i, &standing);
    }
}

/* A list of texts out of a document. */
static struct str *texts_of(struct projection *s, struct doc list, uint32_t *ret_n)
{
    struct doc_cursor c = doc_cursor(list);
    struct doc_head head = {.n = 0};
    struct str *at;

    *ret_n = 0;
    if (list.ptr == NULL || !doc_next(&c, &head) || head.kind != DOC_ARRAY) {
        return NULL;
    }
    at = arena_alloc(&s->arena, (head.n + 1) * sizeof *at);
    for (uint32_t i = 0; at != NULL && i < head.n; i++) {
        at[(*ret_n)++] = doc_string(doc_skip(&c));
    }
    return at;
}

/* Members of the plan's document; for a job, those of its plan or session. */
static void fill_about(struct projection *s)
{
    struct msg_plan_about *a = &s->view.about;
    const struct plan_about about = s->about;
    const struct plan_job job = s->job;
    struct buf criteria;

    buf_init(&criteria, LIMIT_STEP_BYTES);
    plan_about_join(about.success_criteria, 8000, &criteria);
    *a = (struct msg_plan_about){.description = about.description,
                                 .success_criteria = projection_keep(s, buf_str(&criteria)),
                                 .estimated_tokens = about.tokens,
                                 .estimated_steps = about.steps,
                                 .estimated_total_time = about.total_time,
                                 .reasoning = about.reasoning,
                                 .planner = s->plan->planner,
                                 .job = str_from(job_kind_name(job.kind)),
                                 .job_of = job.of};
    a->constraints = texts_of(s, about.constraints, &a->constraints_n);
    msg_set(&s->view, plan_view, about);
    buf_done(&criteria);
}

static void fill_phase(struct projection *s)
{
    if (s->ended) {
        return;
    }
    s->view.phase = s->phase != JOB_NONE ? str_from(job_kind_name(s->phase))
                    : s->started != 0    ? STR_LIT("execution")
                                         : STR_LIT("planning");
}

/* How the failed steps failed, as far as there is room. One that cannot be read is missing, too:
 * with its stepId plan.result says why. */
static void fill_details(struct engine *engine, struct projection *s, uint32_t from, uint32_t to)
{
    size_t room = DETAILS_BYTES;

    for (uint32_t i = from; i < to && i < s->view.steps_n; i++) {
        const struct blob_ref ref = s->steps[i].details;
        struct msg_step_view *v = &s->view.steps[i];
        struct doc details = {NULL, 0};
        if (ref.id == 0) {
            continue;
        }
        if (ref.len <= room && engine_result_doc(engine, ref, &details, NULL) == BT_OK) {
            v->details = doc_copy(&s->arena, details);
        }
        v->details_truncated = v->details.ptr == NULL;
        room -= v->details.len;
    }
}

/* The state that agents left. One that cannot be read is missing. */
static void fill_state(struct engine *engine, struct projection *s)
{
    struct doc state = {NULL, 0};

    if (s->state.id != 0 && engine_result_doc(engine, s->state, &state, NULL) == BT_OK) {
        s->view.state = doc_copy(&s->arena, state);
    }
}

/* The plan that undoes this one. */
static void fill_compensation(struct engine *engine, struct projection *s)
{
    char id[UUID_TEXT_LEN + 1];

    if (s->view.compensation.status.len > 0 && engine_undo_plan(engine, s->view.plan_id, id)) {
        s->view.compensation.plan_id = projection_keep(s, str_from(id));
    }
}

bool request_fill_view(struct engine *engine, struct projection *s, uint32_t from, uint32_t to)
{
    const struct open_plan *p = open_plan_by_id(engine, s->view.plan_id);

    fill_path(engine, s);
    if (to > from && !projection_own_steps(engine, s, from, to)) {
        return false;
    }

    s->view.budget = (struct msg_budget){.tokens = s->plan->budget_tokens,
                                         .cost_micros = s->plan->budget_micros};
    if (s->plan->budget_tokens > 0 || s->plan->budget_micros > 0) {
        msg_set(&s->view, plan_view, budget);
    }
    fill_about(s);
    fill_phase(s);
    fill_position(s);
    fill_details(engine, s, from, to);
    fill_state(engine, s);
    fill_compensation(engine, s);
    if (p != NULL && !s->ended) {
        fill_live(engine, p, s, from, to);
    } else {
        fill_paused(s, s->paused);
        fill_usage(s, s->total, s->replanning);
    }
    return true;
}

/* Fewer steps when these do not fit: a plan of 10,000 steps is read in a few requests. */
static void answer_view(struct engine *engine, struct request *rq, struct msg_plan_view *v,
                        uint32_t from)
{
    struct bt_error err;

    if (v->document.len > LIMIT_CONTROL_BYTES) {
        request_refuse_text(
            engine, rq, BT_LIMIT,
            "the document has %zu bytes; read it with blob.get: plan.history has planRef",
            v->document.len);
        return;
    }

    v->steps += from;
    v->steps_n -= from;
    while (request_try_answer(engine, rq, MSG_plan_view, v, &err) != BT_OK) {
        if (v->steps_n == 0) {
            request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
            return;
        }
        v->steps_n /= 2;
        v->steps_truncated = true;
    }
}

/* The projection as it was asked for. */
static void answer_get(struct engine *engine, struct request *rq, const struct msg_plan_get *m,
                       struct projection *s)
{
    const bool steps = !msg_has(m, plan_get, steps) || m->steps;
    const uint32_t all = s->view.steps_n;
    const uint32_t from = m->from_step < all ? (uint32_t)m->from_step : all;
    const uint32_t to = !steps ? from : all - from > STEPS_SHOWN ? from + STEPS_SHOWN : all;
    struct bt_error err;

    if (!request_fill_view(engine, s, from, to)) {
        request_refuse_text(engine, rq, BT_NOMEM, "out of memory for the steps of a plan");
        return;
    }
    s->view.steps_n = to;
    s->view.steps_truncated = steps && to < all;
    if (m->document) {
        s->view.document = s->document;
    }
    if (m->document && msg_has(m, plan_get, revision) &&
        request_document(engine, m->plan_id, m->revision, &s->arena, &s->view.document, &err) !=
            BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else {
        answer_view(engine, rq, &s->view, from);
    }
}

void on_plan_get(struct engine *engine, struct request *rq)
{
    struct msg_plan_get m;
    struct projection s;
    struct bt_error err;

    if (!request_read(engine, rq, MSG_plan_get, &m)) {
        return;
    }
    if (projection_read(engine, m.plan_id, &s, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else {
        answer_get(engine, rq, &m, &s);
    }
    projection_done(&s);
}

/* ---- plan.get with document: the plan itself ---- */

/* Of the newest revision up to that one; none = as it was submitted. */
static struct blob_ref document_at(const struct projection *s, uint64_t revision)
{
    struct blob_ref found = {.id = 0};

    for (uint32_t i = 0; i < s->revisions_n && s->revisions[i].revision <= revision; i++) {
        found = s->revisions[i].document;
    }
    return found;
}

static enum bt_code load_document(struct engine *engine, struct str plan_id, struct blob_ref ref,
                                  struct arena *arena, struct doc *ret, struct bt_error *err)
{
    struct journal_plan row;
    struct buf bytes;
    enum bt_code code;

    buf_init(&bytes, LIMIT_STEP_BYTES);
    if (ref.id != 0) {
        code = journal_blob_get(engine_journal(engine), ref.id, &bytes, err);
        *ret = code == BT_OK ? doc_copy(arena, doc_from_buf(&bytes)) : *ret;
    } else {
        code = request_plan_document(engine, plan_id, &row, err);
        *ret = code == BT_OK ? doc_copy(arena, (struct doc){row.doc, row.doc_len}) : *ret;
    }
    buf_done(&bytes);
    return code == BT_OK && ret->ptr == NULL ? err_set(err, BT_NOMEM, "out of memory for a plan")
                                             : code;
}

enum bt_code request_document(struct engine *engine, struct str plan_id, uint64_t revision,
                              struct arena *arena, struct doc *ret, struct bt_error *err)
{
    struct projection s;
    enum bt_code code = projection_read(engine, plan_id, &s, err);

    *ret = (struct doc){NULL, 0};
    if (code == BT_OK && (revision == 0 || revision > s.view.revision)) {
        code = err_set(err, BT_NOT_FOUND, "the plan has no revision %llu; its newest is %llu",
                       (unsigned long long)revision, (unsigned long long)s.view.revision);
    }
    if (code == BT_OK) {
        code = load_document(engine, plan_id, document_at(&s, revision), arena, ret, err);
    }
    projection_done(&s);
    return code;
}
