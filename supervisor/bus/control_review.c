/* What waits for a person: listed, and decided. */
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "supervisor/bus/control.h"
#include "supervisor/bus/row_body.h"
#include "supervisor/journal/record_codec.h"

/* Of one answer. Results of the steps before are looked up for one plan only. */
enum { REVIEWS_MAX = 1000, UPSTREAM_MAX = 64, UPSTREAM_ALL = 256, PARAMETERS_MAX = 65536 };

struct review_page {
    struct bus *b;
    struct arena arena;
    struct msg_review_list_ok ok;
    uint32_t limit;
    uint32_t upstream; /* previews that may still be looked up */
};

static struct str until_text(struct review_page *page, msec deadline)
{
    char text[CLOCK_ISO_LEN + 1];
    const struct bus *b = page->b;

    if (deadline == MSEC_NEVER) {
        return (struct str){"", 0};
    }
    clock_iso(deadline > b->now ? b->wall + (deadline - b->now) : b->wall, text);
    return arena_str(&page->arena, str_from(text));
}

/* M063: what the steps before it found. */
static void add_upstream(struct review_page *page, const struct bus_plan *p,
                         const struct plan_step *s, struct msg_review_view *v)
{
    const struct run *run = core_block_run(p->block);
    const uint32_t n = s->deps_n < UPSTREAM_MAX ? s->deps_n : UPSTREAM_MAX;
    struct buf text;

    v->depends_on = arena_alloc(&page->arena, (s->deps_n + 1) * sizeof *v->depends_on);
    v->upstream = arena_alloc(&page->arena, (n + 1) * sizeof *v->upstream);
    buf_init(&text, LIMIT_RESULT_BYTES);
    for (uint32_t i = 0; v->depends_on != NULL && v->upstream != NULL && i < s->deps_n; i++) {
        uint32_t dep = p->plan->deps[s->deps_at + i];
        bool cut;
        v->depends_on[v->depends_on_n++] = p->plan->steps[dep].step_id;
        if (i >= n || page->upstream == 0 || run->steps[dep].result.id == 0) {
            continue;
        }
        page->upstream--;
        buf_clear(&text);
        if (bus_result_text(page->b, run->steps[dep].result, LIMIT_PREVIEW_BYTES, &text, &cut,
                            NULL) == BT_OK) {
            v->upstream[v->upstream_n++] =
                (struct msg_upstream_result){.step_id = p->plan->steps[dep].step_id,
                                             .result = arena_str(&page->arena, buf_str(&text))};
        }
    }
    buf_done(&text);
}

static struct msg_review_view *next_view(struct review_page *page, const struct bus_plan *p,
                                         struct str step_id, uint32_t attempt)
{
    struct msg_review_view *v;
    struct buf id;

    if (page->ok.reviews_n == page->limit) {
        page->ok.truncated = true;
        return NULL;
    }
    v = &page->ok.reviews[page->ok.reviews_n++];
    buf_init(&id, 256);
    review_id_format(p->plan->plan_id, step_id, attempt, &id);
    v->review_id = arena_str(&page->arena, buf_str(&id));
    v->plan_id = str_from(p->id);
    buf_done(&id);
    return v;
}

static void add_step(struct review_page *page, const struct bus_plan *p, uint32_t i)
{
    const struct plan_step *s = &p->plan->steps[i];
    const struct run_step *row = &core_block_run(p->block)->steps[i];
    struct msg_review_view *v = next_view(page, p, s->step_id, row->attempt);

    if (v == NULL) {
        return;
    }
    v->step_id = s->step_id;
    v->step_index = i;
    v->attempt = row->attempt;
    v->kind = str_from(review_kind_name((enum review_kind)row->review));
    v->prompt = bus_plan_prompt(p, i);
    v->prompt = v->prompt.len > 0 ? v->prompt : s->task;
    v->agent_id = row->agent < registry_agents(page->b->registry)
                      ? registry_agent_view(page->b->registry, row->agent).id
                      : s->agent_id;
    v->task = s->task;
    v->until = until_text(page, row->deadline);
    if (s->parameters.len <= PARAMETERS_MAX) {
        v->parameters = s->parameters;
    }
    if (page->upstream > 0) {
        add_upstream(page, p, s, v);
    }
    msg_set(v, review_view, step_index);
    msg_set(v, review_view, attempt);
}

static void add_plan(struct review_page *page, const struct bus_plan *p)
{
    const struct run *run = core_block_run(p->block);

    if ((run->paused & 1u << PAUSE_SIGNOFF) != 0) {
        struct msg_review_view *v = next_view(page, p, (struct str){"", 0}, 0);
        if (v != NULL) {
            v->kind = str_from(review_kind_name(REVIEW_PLAN));
            v->prompt = p->plan->goal;
        }
    }
    for (uint32_t i = 0; run->waiting > 0 && i < run->n_steps && !page->ok.truncated; i++) {
        if (run->steps[i].status == STEP_WAITING) {
            add_step(page, p, i);
        }
    }
}

/* What only the rows know: since when it waits, and in what form the agent wants its answer. */
static bool add_asked(const struct journal_row *row, void *self)
{
    struct review_page *page = self;
    const struct doc body = {row->body, row->body_len};
    char text[CLOCK_ISO_LEN + 1];

    if (!str_is(row->type, record_wire_type(REC_STEP_WAITING)) &&
        !str_is(row->type, record_wire_type(REC_PLAN_PAUSED))) {
        return true;
    }
    for (uint32_t i = 0; i < page->ok.reviews_n; i++) {
        struct msg_review_view *v = &page->ok.reviews[i];
        if (str_eq(v->review_id, row_text(body, "reviewId"))) {
            struct doc schema = doc_get(body, STR_LIT("schema"));
            clock_iso(row->wall, text);
            v->asked_at = arena_str(&page->arena, str_from(text));
            v->schema = schema.ptr != NULL ? doc_copy(&page->arena, schema) : schema;
            break;
        }
    }
    return true;
}

/* Rows are read as committed: what began to wait in this very turn has none yet, and comes into the
 * list with the next one. Nobody can have heard of it before. */
static void leave_out_unwritten(struct review_page *page)
{
    struct msg_review_list_ok *ok = &page->ok;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < ok->reviews_n; i++) {
        if (ok->reviews[i].asked_at.len > 0) {
            ok->reviews[kept++] = ok->reviews[i];
        }
    }
    ok->reviews_n = kept;
}

/* As many as fit; the details go first. */
static void answer_page(struct review_page *page, struct request *rq)
{
    struct msg_review_list_ok *ok = &page->ok;
    struct bt_error err;
    bool bare = false;

    while (bus_try_answer(page->b, rq, MSG_review_list_ok, ok, &err) != BT_OK) {
        if (ok->reviews_n <= 1 && bare) {
            bus_refuse(page->b, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
            return;
        }
        for (uint32_t i = 0; !bare && i < ok->reviews_n; i++) {
            ok->reviews[i].parameters = (struct doc){NULL, 0};
            ok->reviews[i].upstream_n = 0;
        }
        if (bare) {
            ok->reviews_n /= 2;
            ok->truncated = true;
        }
        bare = true;
    }
}

void on_review_list(struct bus *b, struct request *rq)
{
    struct review_page page = {.b = b};
    struct msg_review_list m;
    const struct bus_plan *p;
    struct bt_error err;

    if (!control_read(b, rq, MSG_review_list, &m)) {
        return;
    }
    page.limit = m.limit == 0 || m.limit > REVIEWS_MAX ? REVIEWS_MAX : (uint32_t)m.limit;
    page.upstream = m.plan_id.len > 0 ? UPSTREAM_ALL : 0;
    page.ok.reviews = arena_alloc(&page.arena, page.limit * sizeof *page.ok.reviews);
    if (page.ok.reviews == NULL) {
        bus_refuse_text(b, rq, BT_NOMEM, "out of memory for a list");
        return;
    }
    for (uint32_t i = 0; m.plan_id.len == 0 && i < b->opt.plans_max && !page.ok.truncated; i++) {
        if (b->plans[i].run != 0) {
            add_plan(&page, &b->plans[i]);
        }
    }
    p = bus_plan_by_id(b, m.plan_id);
    if (p != NULL) {
        add_plan(&page, p);
        if (page.ok.reviews_n > 0 &&
            journal_events(b->journal, 0, p->ix, UINT32_MAX, add_asked, &page, &err) != BT_OK) {
            log_err("review.list", "plan=%s %s", p->id, err.msg); /* the list is true without */
        } else if (journal_dirty(b->journal)) {
            leave_out_unwritten(&page);
        }
    }
    answer_page(&page, rq);
    arena_done(&page.arena);
}

/* ---- review.decide ---- */

/* A person's words complete a human_review: they are its result. */
static void put_result(const struct msg_review_decide *m, struct buf *out)
{
    struct str text = m->edit.ptr != NULL && m->comment.len == 0 ? doc_string(m->edit) : m->comment;
    bool data = m->edit.ptr != NULL && (m->comment.len > 0 || text.ptr == NULL);

    doc_put_map(out, (text.len > 0 ? 1u : 0u) + (data ? 1u : 0u));
    if (text.len > 0) {
        doc_put_cstr(out, "text");
        doc_put_str(out, text);
    }
    if (data) {
        doc_put_cstr(out, "data");
        doc_put_doc(out, m->edit);
    }
}

static enum bt_code check_edit(const struct msg_review_decide *m, const struct core_event *ev,
                               enum review_kind kind, struct bt_error *err)
{
    if (m->edit.ptr == NULL) {
        return BT_OK;
    }
    if (ev->decision != DECISION_APPROVE) {
        return err_set(err, BT_INVALID, "edit: goes with decision approve only");
    }
    if (ev->step == STEP_NONE) {
        return err_set(err, BT_INVALID, "edit: a sign-off has nothing to edit");
    }
    if (kind != REVIEW_INPUT && kind != REVIEW_STEP && doc_head(m->edit).kind != DOC_MAP) {
        return err_set(err, BT_INVALID,
                       "edit: expected the new parameters of the step, an object with names");
    }
    return BT_OK;
}

/* What the person gave, stored in the commit of the decision. */
static enum bt_code store_edit(struct bus *b, const struct msg_review_decide *m,
                               enum review_kind kind, struct core_event *ev, struct bt_error *err)
{
    bool words = kind == REVIEW_STEP && ev->decision == DECISION_APPROVE && m->comment.len > 0;
    struct buf bytes;
    enum bt_code code;

    if (m->edit.ptr == NULL && !words) {
        return BT_OK;
    }
    buf_init(&bytes, LIMIT_STEP_BYTES);
    if (kind == REVIEW_STEP) {
        put_result(m, &bytes);
    } else {
        buf_add(&bytes, m->edit.ptr, m->edit.len);
    }
    code = buf_check(&bytes, err);
    if (code == BT_OK) {
        ev->result.len = bytes.len;
        code = journal_blob_add(b->journal, bytes.at, bytes.len, &ev->result.id, err);
    }
    buf_done(&bytes);
    return code;
}

/* The plan and step of a review; NULL after refusing. */
static struct bus_plan *find_review(struct bus *b, struct request *rq, struct str review_id,
                                    struct core_event *ev)
{
    char plan_text[UUID_TEXT_LEN + 1];
    struct bus_plan *p = NULL;
    struct uuid plan_id;
    struct str step_id = {"", 0};

    if (review_id_parse(review_id, &plan_id, &step_id, &ev->attempt)) {
        uuid_format(plan_id, plan_text);
        p = bus_plan_by_id(b, str_from(plan_text));
    }
    ev->step = p != NULL && step_id.len > 0 ? plan_step_find(p->plan, step_id) : STEP_NONE;
    if (p == NULL || (step_id.len > 0 && ev->step == STEP_NONE)) {
        bus_refuse_text(b, rq, BT_NOT_FOUND, "no open review has the id '%.*s'",
                        STR_ARG(review_id));
        return NULL;
    }
    return p;
}

/* Whether the core would take the decision: only then is an edit worth a row of the journal. */
static bool is_awaited(const struct bus_plan *p, const struct core_event *ev)
{
    const struct run *run = core_block_run(p->block);

    return ev->step != STEP_NONE && ev->step < run->n_steps &&
           run->steps[ev->step].status == STEP_WAITING &&
           run->steps[ev->step].attempt == ev->attempt && !run->cancelling;
}

static void decide(struct bus *b, struct request *rq, struct bus_plan *p,
                   const struct msg_review_decide *m, struct core_event *ev)
{
    bool awaited = is_awaited(p, ev);
    enum review_kind kind =
        awaited ? (enum review_kind)core_block_run(p->block)->steps[ev->step].review : REVIEW_PLAN;
    struct bt_error err;

    if (ev->step == STEP_NONE && ev->decision == DECISION_SKIP) {
        bus_refuse_text(b, rq, BT_INVALID,
                        "decision: a sign-off is approved or rejected, it cannot be skipped");
        return;
    }
    if ((awaited || ev->step == STEP_NONE) && check_edit(m, ev, kind, &err) != BT_OK) {
        bus_refuse(b, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    if (awaited && store_edit(b, m, kind, ev, &err) != BT_OK) {
        bus_fail(b, &err);
        return;
    }
    if (control_feed(b, rq, p, ev, NULL)) {
        bus_answer(b, rq, MSG_empty, NULL);
    }
}

void on_review_decide(struct bus *b, struct request *rq)
{
    struct core_event ev = {.type = CORE_DECIDE};
    struct msg_review_decide m;
    struct bus_plan *p;

    if (!control_read(b, rq, MSG_review_decide, &m)) {
        return;
    }
    ev.decision = review_decision_from_name(m.decision);
    if (ev.decision == DECISION_COUNT) {
        bus_refuse_text(b, rq, BT_INVALID, "decision: expected approve, reject or skip, got '%.*s'",
                        STR_ARG(m.decision));
        return;
    }
    p = find_review(b, rq, m.review_id, &ev);
    if (p != NULL) {
        ev.text = m.comment;
        decide(b, rq, p, &m, &ev);
    }
}
