#include "supervisor/query/history.h"

#include <string.h>

#include "protocol/base/trace.h"
#include "protocol/base/utf8.h"
#include "supervisor/engine/row_body.h"
#include "supervisor/journal/journal.h"

/* Lengths of M053. */
enum { OUTPUT_MAX = 500, DIAGNOSIS_MAX = 300 };

/* Room for one row more in a list of the arena: the old list stays allocated, which at most doubles
 * what is used. NULL when out of memory. */
static void *grown(struct projection *s, void *at, uint32_t n, uint32_t *cap, size_t size)
{
    uint32_t more = *cap == 0 ? 8 : *cap * 2;
    void *to;

    if (n < *cap) {
        return at;
    }
    to = arena_alloc(&s->arena, more * size);
    if (to != NULL && n > 0) {
        memcpy(to, at, n * size);
    }
    *cap = to != NULL ? more : *cap;
    return to;
}

struct str history_cut(struct projection *s, struct str text, size_t max)
{
    text.len = text.len == 0 ? 0 : utf8_cut(text.ptr, text.len, max);
    return projection_keep(s, text);
}

static uint64_t tokens_of(struct usage u)
{
    return u.input_tokens > INT64_MAX - u.output_tokens ? INT64_MAX
                                                        : u.input_tokens + u.output_tokens;
}

/* ---- phases ---- */

static bool begin_phase(struct projection *s, struct history *h, const char *name, msec wall)
{
    struct msg_phase_record *at;

    if (h->phases_n == HISTORY_PHASES) {
        h->truncated = true;
        return true;
    }
    at = grown(s, h->phases, h->phases_n, &h->phases_cap, sizeof *at);
    if (at == NULL) {
        return false;
    }
    h->phases = at;
    h->phase_since = wall;
    if (strcmp(name, "execution") == 0) {
        h->executing = h->phases_n;
    }
    at[h->phases_n++] =
        (struct msg_phase_record){.phase = str_from(name), .start_time = projection_iso(s, wall)};
    return true;
}

static void end_phase(struct projection *s, struct history *h, msec wall, bool success,
                      struct str details)
{
    struct msg_phase_record *p = h->phases_n > 0 ? &h->phases[h->phases_n - 1] : NULL;

    if (p != NULL && p->end_time.len == 0) {
        p->end_time = projection_iso(s, wall);
        p->duration_ms = wall > h->phase_since ? wall - h->phase_since : 0;
        p->success = success;
        p->details = history_cut(s, details, 2048);
        msg_set(p, phase_record, success);
        msg_set(p, phase_record, duration_ms);
    }
}

/* What is spent while a replan is asked belongs to the work, but for the replan's own. */
static void spend(struct history *h, uint32_t phase, struct usage u)
{
    if (phase < h->phases_n) {
        h->phases[phase].tokens += tokens_of(u);
    }
}

/* ---- the lists ---- */

/* False: the row names nobody. */
static bool by_of(struct projection *s, struct doc body, struct msg_decided_by *ret)
{
    const struct doc by = doc_get(body, STR_LIT("by"));

    *ret = (struct msg_decided_by){.has = 0};
    if (by.ptr != NULL) {
        ret->user = projection_keep(s, row_text(by, "user"));
        ret->host = projection_keep(s, row_text(by, "host"));
        ret->via = projection_keep(s, row_text(by, "via"));
        ret->address = projection_keep(s, row_text(by, "address"));
        ret->id = projection_keep(s, row_text(by, "id"));
    }
    return by.ptr != NULL;
}

static bool add_revision(struct projection *s, struct history *h, struct msg_revision_record r,
                         struct doc body)
{
    struct msg_revision_record *at;

    if (h->revisions_n == HISTORY_REVISIONS) {
        h->truncated = true;
        return true;
    }
    at = grown(s, h->revisions, h->revisions_n, &h->revisions_cap, sizeof *at);
    if (at == NULL) {
        return false;
    }
    h->revisions = at;
    r.plan_ref = row_number(body, "planRef");
    r.plan_len = row_number(body, "planLen");
    if (by_of(s, body, &r.by)) {
        msg_set(&r, revision_record, by);
    }
    at[h->revisions_n++] = r;
    return true;
}

static bool add_replan(struct projection *s, struct history *h, struct doc body, msec wall)
{
    struct msg_replan_record *at;
    uint64_t step = row_number(body, "stepIndex");
    uint64_t number = row_number(body, "totalReplans");

    if (h->replans_n == HISTORY_REPLANS) {
        h->truncated = true;
        return true;
    }
    at = grown(s, h->replans, h->replans_n, &h->replans_cap, sizeof *at);
    if (at == NULL) {
        return false;
    }
    h->replans = at;
    at[h->replans_n] = (struct msg_replan_record){
        .attempt = number != 0 ? number : h->replans_n + 1u,
        .step_id = projection_keep(s, row_text(body, "stepId")),
        .timestamp = projection_iso(s, wall),
        .diagnosis = history_cut(s, row_text(body, "diagnosis"), DIAGNOSIS_MAX),
        .output = history_cut(s, s->view.steps[step].error, OUTPUT_MAX),
    };
    h->replan_steps[h->replans_n++] = (uint32_t)step;
    return true;
}

static bool add_review(struct projection *s, struct history *h, struct doc body, struct str kind,
                       msec wall)
{
    struct msg_review_record *at;

    if (h->reviews_n == HISTORY_REVIEWS) {
        h->truncated = true;
        return true;
    }
    at = grown(s, h->reviews, h->reviews_n, &h->reviews_cap, sizeof *at);
    if (at == NULL) {
        return false;
    }
    h->reviews = at;
    at[h->reviews_n++] =
        (struct msg_review_record){.review_id = projection_keep(s, row_text(body, "reviewId")),
                                   .step_id = projection_keep(s, row_text(body, "stepId")),
                                   .kind = projection_keep(s, kind),
                                   .prompt = projection_keep(s, row_text(body, "prompt")),
                                   .asked_at = projection_iso(s, wall)};
    return true;
}

/* The review that a decision is about. One that an older version opened has another form of id: it
 * is the last one of the step that is not decided. */
static struct msg_review_record *asked(const struct history *h, struct doc body)
{
    struct msg_review_record *open = NULL;

    for (uint32_t i = h->reviews_n; i > 0; i--) {
        struct msg_review_record *r = &h->reviews[i - 1];
        if (str_eq(r->review_id, row_text(body, "reviewId"))) {
            return r;
        }
        if (open == NULL && r->decision.len == 0 && str_eq(r->step_id, row_text(body, "stepId"))) {
            open = r;
        }
    }
    return open;
}

static void decided(struct projection *s, struct history *h, struct doc body, msec wall)
{
    struct msg_review_record *r = asked(h, body);

    if (r != NULL) {
        r->decision = projection_keep(s, row_text(body, "decision"));
        r->comment = projection_keep(s, row_text(body, "comment"));
        r->decided_at = projection_iso(s, wall);
        if (by_of(s, body, &r->by)) {
            msg_set(r, review_record, by);
        }
    }
}

/* What somebody ordered about the plan as a whole. */
static bool add_order(struct projection *s, struct history *h, const char *kind, const char *why,
                      struct doc body, msec wall)
{
    struct msg_order_record *at;

    if (h->orders_n == HISTORY_ORDERS) {
        h->truncated = true;
        return true;
    }
    at = grown(s, h->orders, h->orders_n, &h->orders_cap, sizeof *at);
    if (at == NULL) {
        return false;
    }
    h->orders = at;
    at = &at[h->orders_n++];
    *at = (struct msg_order_record){.kind = str_from(kind),
                                    .timestamp = projection_iso(s, wall),
                                    .reason = history_cut(s, row_text(body, why), 512)};
    if (by_of(s, body, &at->by)) {
        msg_set(at, order_record, by);
    }
    return true;
}

/* ---- rows ---- */

static bool on_replanned(struct projection *s, struct history *h, struct doc body, msec wall)
{
    bool ok = row_bool(body, "ok");
    struct str reason = row_text(body, "reason");

    if (h->replans_n > 0) {
        struct msg_replan_record *r = &h->replans[h->replans_n - 1];
        r->ok = ok;
        r->new_task_count = row_number(body, "newSteps");
        r->revision = row_number(body, "revision");
        msg_set(r, replan_record, ok);
    }
    if (h->phases_n > 0) {
        spend(h, h->phases_n - 1, row_usage(body, "usage"));
    }
    end_phase(s, h, wall, ok, reason);
    if (ok && !add_revision(s, h,
                            (struct msg_revision_record){.revision = row_number(body, "revision"),
                                                         .kind = STR_LIT("replan"),
                                                         .reasoning = history_cut(s, reason, 2048),
                                                         .timestamp = projection_iso(s, wall),
                                                         .steps = row_number(body, "newSteps")},
                            body)) {
        return false;
    }
    return begin_phase(s, h, "execution", wall);
}

static bool on_modified(struct projection *s, struct history *h, struct doc body, msec wall)
{
    return add_revision(
        s, h,
        (struct msg_revision_record){.revision = row_number(body, "revision"),
                                     .kind = projection_keep(s, row_text(body, "kind")),
                                     .reasoning = projection_keep(s, row_text(body, "reasoning")),
                                     .timestamp = projection_iso(s, wall),
                                     .steps = row_number(body, "newSteps")},
        body);
}

static bool on_planning(struct projection *s, struct history *h, struct doc body, msec wall)
{
    (void)body;
    return begin_phase(s, h, "planning", wall);
}

static bool on_planning_spent(struct projection *s, struct history *h, struct doc body, msec wall)
{
    (void)s;
    (void)wall;
    spend(h, h->phases_n > 0 ? h->phases_n - 1 : 0, row_usage(body, "usage"));
    return true;
}

static bool on_planning_failed(struct projection *s, struct history *h, struct doc body, msec wall)
{
    (void)on_planning_spent(s, h, body, wall);
    end_phase(s, h, wall, false, row_text(body, "reason"));
    return true;
}

static bool on_synthesis(struct projection *s, struct history *h, struct doc body, msec wall)
{
    end_phase(s, h, wall, str_is(row_text(body, "status"), "completed"),
              row_text(body, "failureReason"));
    return begin_phase(s, h, "synthesis", wall);
}

static bool on_synthesised(struct projection *s, struct history *h, struct doc body, msec wall)
{
    (void)on_planning_spent(s, h, body, wall);
    end_phase(s, h, wall, row_bool(body, "ok"), row_text(body, "reason"));
    return true;
}

static bool on_undoing(struct projection *s, struct history *h, struct doc body, msec wall)
{
    end_phase(s, h, wall, false, row_text(body, "failureReason"));
    return begin_phase(s, h, "compensation", wall);
}

static bool on_undone(struct projection *s, struct history *h, struct doc body, msec wall)
{
    (void)on_planning_spent(s, h, body, wall);
    end_phase(s, h, wall, str_is(row_text(body, "status"), compensation_name(true)),
              row_text(body, "reason"));
    return true;
}

static bool on_rectified(struct projection *s, struct history *h, struct doc body, msec wall)
{
    (void)on_synthesised(s, h, body, wall);
    return add_revision(s, h,
                        (struct msg_revision_record){
                            .revision = row_number(body, "revision"),
                            .kind = STR_LIT("synthesis_retry"),
                            .reasoning = history_cut(s, row_text(body, "reason"), 2048),
                            .timestamp = projection_iso(s, wall),
                            .steps = row_number(body, "newSteps")},
                        body) &&
           begin_phase(s, h, "execution", wall);
}

static bool on_generated(struct projection *s, struct history *h, struct doc body, msec wall)
{
    struct str planner = row_text(body, "planner");
    const bool asked = h->phases_n > 0; /* PLANNING_STARTED was its beginning */
    struct trace trace;

    if ((!asked && !begin_phase(s, h, "planning", s->created)) ||
        !add_revision(s, h,
                      (struct msg_revision_record){.revision = 1,
                                                   .kind = STR_LIT("submitted"),
                                                   .timestamp = projection_iso(s, s->created),
                                                   .steps = row_number(body, "estimatedSteps")},
                      body)) {
        return false;
    }
    if (trace_read(row_text(body, "traceparent"), &trace)) {
        s->view.trace_id = projection_keep(
            s, (struct str){row_text(body, "traceparent").ptr + 3, 2 * TRACE_BYTES});
    }
    spend(h, h->phases_n - 1, row_usage(body, "usage"));
    end_phase(s, h, wall, true, planner);
    return true;
}

static bool on_started(struct projection *s, struct history *h, struct doc body, msec wall)
{
    (void)body;
    return begin_phase(s, h, "execution", wall);
}

static bool on_replan(struct projection *s, struct history *h, struct doc body, msec wall)
{
    spend(h, h->executing, row_usage(body, "usage"));
    end_phase(s, h, wall, false, row_text(body, "diagnosis"));
    return add_replan(s, h, body, wall) && begin_phase(s, h, "replanning", wall);
}

static bool on_waiting(struct projection *s, struct history *h, struct doc body, msec wall)
{
    spend(h, h->executing, row_usage(body, "usage"));
    return add_review(s, h, body, row_text(body, "kind"), wall);
}

static bool on_paused(struct projection *s, struct history *h, struct doc body, msec wall)
{
    const enum pause_reason reason = pause_reason_from_name(row_text(body, "reason"));
    const enum review_kind kind = reason == PAUSE_PLANNING ? REVIEW_PLANNING : REVIEW_PLAN;

    if (reason == PAUSE_REQUESTED) {
        return add_order(s, h, "pause", "comment", body, wall);
    }
    return (reason != PAUSE_SIGNOFF && reason != PAUSE_PLANNING) ||
           add_review(s, h, body, str_from(review_kind_name(kind)), wall);
}

static bool on_resumed(struct projection *s, struct history *h, struct doc body, msec wall)
{
    return pause_reason_from_name(row_text(body, "reason")) != PAUSE_REQUESTED ||
           add_order(s, h, "resume", "comment", body, wall);
}

static bool on_cancelling(struct projection *s, struct history *h, struct doc body, msec wall)
{
    return add_order(s, h, "cancel", "reason", body, wall);
}

static bool on_decided(struct projection *s, struct history *h, struct doc body, msec wall)
{
    decided(s, h, body, wall);
    return true;
}

static bool on_voided(struct projection *s, struct history *h, struct doc body, msec wall)
{
    struct msg_review_record *r = asked(h, body);

    if (r != NULL) {
        r->decision = STR_LIT("void");
        r->decided_at = projection_iso(s, wall);
    }
    return true;
}

static bool on_completed(struct projection *s, struct history *h, struct doc body, msec wall)
{
    end_phase(s, h, wall, str_is(row_text(body, "status"), "completed"),
              row_text(body, "failureReason"));
    return true;
}

bool history_row(struct projection *s, const struct journal_row *row, void *history)
{
    static bool (*const rows[REC_COUNT])(struct projection *, struct history *, struct doc,
                                         msec) = {
        [REC_PLAN_GENERATED] = on_generated,
        [REC_PLAN_STARTED] = on_started,
        [REC_REPLAN_STARTED] = on_replan,
        [REC_REPLAN_FINISHED] = on_replanned,
        [REC_PLAN_MODIFIED] = on_modified,
        [REC_STEP_WAITING] = on_waiting,
        [REC_PLAN_PAUSED] = on_paused,
        [REC_PLAN_RESUMED] = on_resumed,
        [REC_PLAN_CANCELLING] = on_cancelling,
        [REC_REVIEW_DECIDED] = on_decided,
        [REC_REVIEW_VOIDED] = on_voided,
        [REC_PLAN_COMPLETED] = on_completed,
        [REC_PLANNING_STARTED] = on_planning,
        [REC_PLANNING_RETRY] = on_planning_spent,
        [REC_PLANNING_FAILED] = on_planning_failed,
        [REC_SYNTHESIS_STARTED] = on_synthesis,
        [REC_SYNTHESIS_FINISHED] = on_synthesised,
        [REC_SYNTHESIS_RETRY] = on_rectified,
        [REC_COMPENSATION_STARTED] = on_undoing,
        [REC_COMPENSATION_FINISHED] = on_undone,
    };
    struct history *h = history;
    const struct doc body = {row->body, row->body_len};
    enum record_type type = record_type_from_wire(row->type);

    if (type < REC_COUNT && rows[type] != NULL) {
        return rows[type](s, h, body, row->wall);
    }
    spend(h, h->executing, row_usage(body, "usage"));
    return true;
}
