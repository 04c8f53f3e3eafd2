/* One record of the core becomes one row of the journal and, when public, one published frame. */
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/auth/sessions.h"
#include "supervisor/engine/engine_internal.h"
#include "supervisor/engine/plan_state.h"
#include "supervisor/engine/row_body.h"
#include "supervisor/engine/step_context.h"
#include "supervisor/events/record_codec.h"
#include "supervisor/plan/about.h"

/* The answer as a stored result. What an agent gave beside its text is kept. */
static enum bt_code store_answer(struct engine *engine, struct doc given, struct str text,
                                 struct blob_ref *ret, struct bt_error *err)
{
    static const char *const beside[] = {"data", "artifacts"};
    struct doc kept[2];
    uint32_t n = 1;
    struct buf doc;
    enum bt_code code;

    for (size_t i = 0; i < 2; i++) {
        kept[i] = doc_get(given, str_from(beside[i]));
        n += kept[i].ptr != NULL ? 1u : 0u;
    }
    buf_init(&doc, LIMIT_STEP_BYTES);
    doc_put_map(&doc, n);
    doc_put_cstr(&doc, "text");
    doc_put_str(&doc, text);
    for (size_t i = 0; i < 2; i++) {
        if (kept[i].ptr != NULL) {
            doc_put_cstr(&doc, beside[i]);
            doc_put_doc(&doc, kept[i]);
        }
    }
    code = buf_check(&doc, err);
    if (code == BT_OK) {
        ret->len = doc.len;
        code = journal_blob_add(engine->journal, doc.at, doc.len, &ret->id, err);
    }
    buf_done(&doc);
    return code;
}

/* The text that answers for the whole plan (M080), stored as a blob in the same commit as
 * plan_completed. An agent's whole answer is stored already. */
static enum bt_code aggregate(struct engine *engine, const struct open_plan *p,
                              const struct record *rec, struct record_extra *x, struct buf *text,
                              size_t *ret_end, struct bt_error *err)
{
    const struct blob_ref result = REC(rec, plan_completed)->result;
    struct doc given = {NULL, 0};
    enum bt_code code = aggregate_text(engine, p, rec, &x->readers, text, ret_end, err);

    x->preview = buf_str(text);
    if (code == BT_OK && result.id != 0 && *ret_end == 0) {
        x->summary = result;
        return BT_OK;
    }
    if (code == BT_OK && result.id != 0) {
        code = engine_result_doc(engine, result, &given, err);
    }
    if (code != BT_OK) {
        /* A damaged result costs this plan its summary, not the daemon its life. */
        log_err("plan.aggregate", "plan=%s %s", p->id, err->msg);
        buf_clear(text);
        buf_printf(text, "The results could not be put together: %s", err->msg);
        *ret_end = 0;
        given = (struct doc){NULL, 0};
        x->preview = buf_str(text);
    }
    return store_answer(engine, given, buf_str(text), &x->summary, err);
}

/* What agents and the daemon itself do is known again after a start: on a disk that fills up these
 * rows are left out, and a registration needs no room. */
static bool is_left_out(const struct engine *engine, const struct record *rec)
{
    const enum record_about about = record_about(rec->type);

    return engine->storage_low && (about == ABOUT_AGENT || about == ABOUT_SYSTEM);
}

static enum bt_code append(struct engine *engine, const struct record *rec,
                           const struct record_extra *x, uint64_t plan_ix, struct bt_error *err)
{
    struct journal_row row = {.seq = x->seq,
                              .is_public = record_row_is_public(rec, x->plan),
                              .plan_ix = plan_ix,
                              .plan_seq = x->plan_seq,
                              .type = str_from(record_wire_type(rec->type)),
                              .wall = rec->wall};
    enum bt_code code = record_encode(rec, x, engine->registry, &engine->row, &engine->topic, err);
    uint64_t blobs[JOURNAL_ROW_BLOBS];
    struct effect *e;

    if (code != BT_OK || is_left_out(engine, rec)) {
        return code;
    }
    row.topic = buf_str(&engine->topic);
    row.body = engine->row.at;
    row.body_len = engine->row.len;
    row.blobs = blobs;
    row.blobs_n = doc_refs(row.body, row.body_len, blobs, JOURNAL_ROW_BLOBS);
    code = journal_append(engine->journal, &row, err);
    engine->stats.records++;
    if (code != BT_OK || !row.is_public) {
        return code;
    }
    e = engine_effect(engine, EFFECT_PUBLISH);
    e->at = engine->out.len;
    e->len = engine->row.len;
    buf_add(&engine->out, engine->row.at, engine->row.len);
    e->topic_at = engine->out.len;
    e->topic_len = engine->topic.len;
    buf_add(&engine->out, engine->topic.at, engine->topic.len);
    return buf_check(&engine->out, err);
}

/* Agents are named by the registry; records about one carry its index. */
static void name_agent(struct engine *engine, const struct record *rec, struct record_extra *x)
{
    struct agent_view view = registry_agent_view(engine->registry, rec->agent);

    x->agent_id = view.id;
    x->agent_name = view.card != NULL && view.card->name.len > 0 ? view.card->name : view.id;
    x->version = view.card != NULL ? view.card->version : (struct str){"", 0};
}

static enum bt_code end_of_plan(struct engine *engine, const struct open_plan *p,
                                const struct record *rec, struct record_extra *x, struct buf *text,
                                size_t *ret_end, struct arena *about, struct bt_error *err)
{
    const struct rec_plan_completed *end = REC(rec, plan_completed);
    enum bt_code code = BT_OK;

    if (!step_notes_readers(&p->notes, about, &x->readers)) {
        return err_set(err, BT_NOMEM, "out of memory for the end of a plan");
    }
    if (p->job == NULL) {
        code = aggregate(engine, p, rec, x, text, ret_end, err);
    }
    if (code == BT_OK) {
        const bool planned = p->plan->dry_run && end->status == PLAN_COMPLETED;
        code = journal_plan_status(
            engine->journal, p->ix,
            planned ? STR_LIT("planned") : str_from(plan_status_name(end->status)), rec->wall, err);
    }
    return code;
}

/* For supervisor.stats. */
static void count(struct engine *engine, const struct record *rec)
{
    engine->stats.steps_retried += rec->type == REC_STEP_RETRY;
    engine->stats.fallbacks += rec->type == REC_FALLBACK_USED;
    engine->stats.replans += rec->type == REC_REPLAN_STARTED;
}

/* How a result begins, for its event. None is no reason to lose the result, let alone to stop. */
static void preview(struct engine *engine, struct blob_ref result, struct buf *text)
{
    bool cut;

    if (engine_result_text(engine, result, LIMIT_PREVIEW_BYTES, text, &cut, NULL) != BT_OK) {
        buf_clear(text);
    }
}

/* The document that the record makes a plan of: the feed has it in hand. Of a plan whose first rows
 * are lost it is read; .ptr NULL: it cannot be had. */
static struct doc document_of(struct engine *engine, const struct open_plan *p,
                              const struct record_source *from)
{
    struct journal_plan row;

    if (from->document.ptr != NULL) {
        return from->document;
    }
    return journal_plan_by_id(engine->journal, p->plan_id, &row, NULL) == BT_OK
               ? (struct doc){row.doc, row.doc_len}
               : (struct doc){NULL, 0};
}

/* How the plan's document describes the plan; without it the record is complete, too. */
static void describe_plan(struct doc document, struct record_extra *x, struct arena *arena)
{
    struct plan_about about;
    struct buf text;

    plan_about_of(document, &about);
    x->description = arena_str(arena, about.description);
    x->estimated_tokens = about.tokens;
    buf_init(&text, LIMIT_STEP_BYTES);
    plan_about_join(about.success_criteria, 1024, &text);
    x->success_criteria = arena_str(arena, buf_str(&text));
    buf_done(&text);
}

/* What the step's agent will not see of the results before it. A damaged result is the step's to
 * fail with. */
static void add_context(struct engine *engine, struct open_plan *p, const struct record *rec,
                        struct record_extra *x, struct arena *arena)
{
    struct step_context context;
    struct bt_error err;

    if (step_context_choose(engine, p->plan, x->run, rec->step, arena, &context, &err) != BT_OK) {
        return;
    }
    x->context = context.picks;
    x->context_n = context.choice.n;
    x->context_left_out = context.choice.omitted;
    if (!uuid_is_nil(REC(rec, assigned)->instance)) {
        step_notes_context(&p->notes, rec->step, record_context_truncated(x));
    }
}

/* What the edge adds to a record about a plan. */
static enum bt_code add_plan(struct engine *engine, struct open_plan *p, const struct record *rec,
                             const struct record_source *from, struct record_extra *x,
                             struct buf *text, size_t *ret_end, struct arena *about,
                             struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (rec->type == REC_HANDOFF) {
        x->handoff_id = uuid_new();
        x->task = open_plan_step_task(engine, p, rec->step, text);
    } else if (rec->type == REC_STEP_STARTED && p->job == NULL) {
        x->task = open_plan_step_task(engine, p, rec->step, text);
        add_context(engine, p, rec, x, about);
    } else if (rec->type == REC_STEP_ASSIGNED && p->job == NULL) {
        add_context(engine, p, rec, x, about);
    } else if (rec->type == REC_STEP_COMPLETED && REC(rec, step_completed)->result.id != 0) {
        preview(engine, REC(rec, step_completed)->result, text);
        x->preview = buf_str(text);
        if (p->job == NULL && REC(rec, step_completed)->status == STEP_COMPLETED) {
            code = plan_state_apply(engine, p, REC(rec, step_completed)->result, &x->state, err);
        }
    } else if (rec->type == REC_PLAN_GENERATED && p->job == NULL) {
        describe_plan(document_of(engine, p, from), x, about);
    } else if (rec->type == REC_PLAN_COMPLETED) {
        code = end_of_plan(engine, p, rec, x, text, ret_end, about, err);
    }
    count(engine, rec);
    return code;
}

enum bt_code engine_record(struct engine *engine, const struct record *rec,
                           const struct record_source *from, struct buf *text, size_t *ret_end,
                           struct bt_error *err)
{
    struct record_extra x = {.event_id = uuid_new(), .by = str_from(engine->by)};
    struct open_plan *p = open_plan_of_run(engine, rec->run);
    const bool is_public = record_row_is_public(rec, p != NULL ? p->plan : NULL);
    struct arena about = {.chunks = NULL};
    enum bt_code code = BT_OK;

    *ret_end = 0;
    x.seq = is_public ? journal_next_seq(engine->journal) : journal_last_seq(engine->journal);
    if (record_about(rec->type) == ABOUT_AGENT) {
        name_agent(engine, rec, &x);
    } else if (p != NULL) {
        x.plan = p->plan;
        x.plan_id = p->plan_id;
        x.run = core_block_run(p->block);
        if (p->more != NULL) {
            x.parent = p->more->origin.parent;
            x.trace = p->more->origin.trace;
        }
        if (record_revises(rec) && from->revision != NULL) {
            x.revised = from->revision->plan;
            x.run = core_block_run(from->revision->block);
        }
        x.plan_seq = is_public ? ++p->plan_seq : 0;
        x.details = rec->step == from->step ? from->details : (struct blob_ref){0};
        open_plan_keep(p, rec, x.revised);
        code = add_plan(engine, p, rec, from, &x, text, ret_end, &about, err);
    }
    if (code == BT_OK) {
        code = append(engine, rec, &x, p != NULL ? p->ix : 0, err);
    }
    if (is_public && p != NULL && p->owner != NULL && engine->opt.sessions != NULL) {
        sessions_count_event(engine->opt.sessions, str_from(p->owner), engine->now);
    }
    if (code == BT_OK && (rec->type == REC_AGENT_REGISTERED || rec->type == REC_AGENT_DOWN) &&
        engine->hooks.agent_remember != NULL) {
        code = engine->hooks.agent_remember(engine, rec->agent, err);
    }
    arena_done(&about);
    return code;
}

enum bt_code engine_write_record(struct engine *engine, const struct record *rec,
                                 struct record_extra *x, struct bt_error *err)
{
    x->seq = journal_next_seq(engine->journal);
    x->event_id = uuid_new();
    return append(engine, rec, x, 0, err);
}

enum bt_code engine_record_late(struct engine *engine, struct uuid plan_id, struct record *rec,
                                struct bt_error *err)
{
    const struct plan plan = {.n_steps = 0};
    struct record_extra x = {
        .seq = journal_last_seq(engine->journal), .plan = &plan, .plan_id = plan_id};
    struct journal_plan row;
    struct bt_error why;

    if (journal_plan_by_id(engine->journal, plan_id, &row, &why) != BT_OK) {
        log_warn("step.result.late", "its usage is lost: %s", why.msg);
        return BT_OK;
    }
    rec->type = REC_RESULT_REJECTED;
    rec->step = STEP_NONE; /* the plan is not at hand, and has no step that could change */
    rec->now = engine->now;
    rec->wall = engine->wall;
    return append(engine, rec, &x, row.ix, err);
}

enum bt_code engine_system_record(struct engine *engine, enum record_type type, struct str reason,
                                  uint64_t recovered, struct bt_error *err)
{
    struct record rec = {.type = type, .now = engine->now, .wall = engine->wall, .text = reason};
    struct record_extra x = {.seq = journal_next_seq(engine->journal),
                             .event_id = uuid_new(),
                             .version = STR_LIT(BATON_VERSION),
                             .plans_recovered = recovered};

    return append(engine, &rec, &x, 0, err);
}

/* ---- plans in quarantine: no run records their end ---- */

struct ended_plan {
    uint64_t ix;
    struct uuid id;
    msec created, ended;
    struct str session, note;
    struct ended_plan *next;
};

struct ended_plans {
    struct arena arena;
    struct ended_plan *first;
    bool no_memory;
};

static bool keep_ended(const struct journal_plan *row, void *self)
{
    struct ended_plans *all = self;
    struct ended_plan *p = arena_alloc(&all->arena, sizeof *p);

    if (p == NULL) {
        all->no_memory = true;
        return false;
    }
    *p = (struct ended_plan){.ix = row->ix,
                             .id = row->plan_id,
                             .created = row->created_wall,
                             .ended = row->ended_wall,
                             .session = arena_str(&all->arena, row->session_id),
                             .note = arena_str(&all->arena, row->note),
                             .next = all->first};
    all->first = p; /* the newest is listed first: the oldest ends first */
    return true;
}

struct last_event {
    uint64_t plan_seq;
    bool is_end;
};

static bool see_last(const struct journal_row *row, void *self)
{
    *(struct last_event *)self = (struct last_event){
        .plan_seq = row->plan_seq,
        .is_end = record_type_from_wire(row->type) == REC_PLAN_COMPLETED,
    };
    return false;
}

/* What it has used: each row tells it once. Damaged rows end the sum. */
static bool sum_usage(const struct journal_row *row, void *self)
{
    const struct usage u = row_usage((struct doc){row->body, row->body_len}, "usage");

    usage_add(self, &u);
    return true;
}

static enum bt_code record_end(struct engine *engine, const struct ended_plan *p,
                               struct bt_error *err)
{
    const struct plan plan = {.session_id = p->session};
    struct record rec = {REC_INIT(PLAN_COMPLETED, plan_completed, .status = PLAN_FAILED,
                                  .outcome = OUTCOME_FAILED, .failure = PLAN_FAILURE_QUARANTINED,
                                  .duration_ms = p->ended > p->created ? p->ended - p->created : 0),
                         .step = STEP_NONE, .now = engine->now, .wall = engine->wall};
    struct run sums = {.n_steps = 0};
    struct record_extra x = {.event_id = uuid_new(), .plan = &plan, .plan_id = p->id, .run = &sums};
    struct last_event last = {0};
    struct bt_error why;
    struct buf text;
    enum bt_code code;

    if (journal_last_row(engine->journal, p->ix, true, see_last, &last, &why) != BT_OK) {
        log_err("plan.quarantined", "ix=%llu its end cannot be added to its events: %s",
                (unsigned long long)p->ix, why.msg);
        return BT_OK;
    }
    if (last.is_end) {
        return BT_OK;
    }
    if (journal_replay(engine->journal, p->ix, sum_usage, &sums.usage, &why) != BT_OK) {
        log_warn("plan.quarantined", "ix=%llu what it has used is not all known: %s",
                 (unsigned long long)p->ix, why.msg);
    }
    buf_init(&text, LIMIT_EVENT_BYTES);
    buf_printf(&text, "Quarantined: %.*s", STR_ARG(p->note));
    rec.text = buf_str(&text);
    x.seq = journal_next_seq(engine->journal);
    x.plan_seq = last.plan_seq + 1;
    code = append(engine, &rec, &x, p->ix, err);
    buf_done(&text);
    return code;
}

enum bt_code engine_record_quarantined(struct engine *engine, struct bt_error *err)
{
    struct ended_plans all = {.first = NULL};
    enum bt_code code = journal_plans(engine->journal, STR_LIT("quarantined"), STR_LIT(""), 0,
                                      UINT32_MAX, keep_ended, &all, err);

    if (code == BT_OK && all.no_memory) {
        code = err_set(err, BT_NOMEM, "out of memory for the plans in quarantine");
    }
    for (const struct ended_plan *p = all.first; p != NULL && code == BT_OK; p = p->next) {
        code = record_end(engine, p, err);
    }
    arena_done(&all.arena);
    return code;
}
