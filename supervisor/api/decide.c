/* What a person decides about a step, or about a plan as a whole. */
#include "supervisor/api/decided.h"
#include "supervisor/dispatch/input_check.h"
#include "supervisor/dispatch/revise.h"
#include "supervisor/engine/submission.h"
#include "supervisor/events/record_codec.h"

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
    if (CORE_EV(ev, decide)->decision != DECISION_APPROVE) {
        return err_set(err, BT_INVALID, "edit: goes with decision approve only");
    }
    if (kind == REVIEW_PLANNING) {
        return BT_OK;
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
static enum bt_code store_edit(struct engine *engine, const struct msg_review_decide *m,
                               enum review_kind kind, struct core_event *ev, struct bt_error *err)
{
    struct core_ev_decide *decided = CORE_EV(ev, decide);
    bool words = kind == REVIEW_STEP && decided->decision == DECISION_APPROVE && m->comment.len > 0;
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
        decided->result.len = bytes.len;
        code =
            journal_blob_add(engine_journal(engine), bytes.at, bytes.len, &decided->result.id, err);
    }
    buf_done(&bytes);
    return code;
}

/* Whether the core would take the decision: only then is an edit worth a row of the journal. */
static bool is_awaited(const struct open_plan *p, const struct core_event *ev)
{
    const struct run *run = core_block_run(p->block);

    return ev->step != STEP_NONE && run->steps[ev->step].status == STEP_WAITING && !run->cancelling;
}

/* A person gives the plan that no planner could make. */
static void decide_planning(struct engine *engine, struct request *rq, struct open_plan *p,
                            const struct msg_review_decide *m, struct core_event *ev)
{
    struct submission d;
    struct new_revision revision = {0};
    struct core_new_plan *next = &CORE_EV(ev, decide)->next;
    struct bt_error err;
    enum bt_code code = submission_init(&d, &err);

    if (code == BT_OK && m->edit.ptr != NULL) {
        code =
            revise_planned(engine, p, m->edit, true, &d.problems, &revision, &next->document, &err);
        next->plan = revision.plan;
        next->block = revision.block;
    }
    if (code != BT_OK && !engine_has_failed(engine)) {
        submission_refuse(engine, rq, &d, &err);
    } else if (code == BT_OK) {
        if (request_revise(engine, rq, p, ev, &revision, NULL)) {
            request_answer(engine, rq, MSG_empty, NULL);
        }
    }
    new_revision_done(&revision);
    submission_done(&d);
}

static void decide(struct engine *engine, struct request *rq, struct open_plan *p,
                   const struct msg_review_decide *m, struct core_event *ev)
{
    bool awaited = is_awaited(p, ev);
    enum review_kind kind = awaited
                                ? (enum review_kind)core_block_run(p->block)->steps[ev->step].review
                                : open_plan_review(p);
    struct bt_error err;

    if (ev->step == STEP_NONE && CORE_EV(ev, decide)->decision == DECISION_SKIP) {
        request_refuse_text(engine, rq, BT_INVALID,
                            "decision: a sign-off is approved or rejected, it cannot be skipped");
        return;
    }
    if ((awaited || ev->step == STEP_NONE) && check_edit(m, ev, kind, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    if (ev->step == STEP_NONE && kind == REVIEW_PLANNING) {
        decide_planning(engine, rq, p, m, ev);
        return;
    }
    if (awaited && kind == REVIEW_INPUT && CORE_EV(ev, decide)->decision == DECISION_APPROVE &&
        dispatch_input_check(engine, p, ev->step, m->edit, m->comment, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    if (awaited && store_edit(engine, m, kind, ev, &err) != BT_OK) {
        engine_fail(engine, &err);
        return;
    }
    if (request_feed(engine, rq, p, ev, NULL)) {
        request_answer(engine, rq, MSG_empty, NULL);
    }
}

/* The review is not open. The same decision as before has the same answer; any other one is
 * refused, with the name of what is open. */
static void decide_late(struct engine *engine, struct request *rq, const struct open_plan *p,
                        const struct msg_review_decide *m, const struct review_id *id)
{
    struct past_decision past = {.found = false};
    struct arena arena = {.chunks = NULL};
    struct journal_plan row;
    struct buf open;

    buf_init(&open, 512);
    if (p != NULL) {
        review_name_open(p, id->step_id, &open);
    }
    if (id->serial != 0 &&
        journal_plan_by_id(engine_journal(engine), id->plan_id, &row, NULL) == BT_OK) {
        past_decision_find(engine, row.ix, id, &arena, &past);
    }
    if (past_decision_is(&past, m)) {
        request_answer(engine, rq, MSG_empty, NULL);
    } else if (past.is_void) {
        request_refuse_text(engine, rq, BT_CONFLICT,
                            "the review '%.*s' is void: the plan was changed at %.*s, before "
                            "anybody decided%s",
                            STR_ARG(m->review_id), STR_ARG(past.at), buf_cstr(&open));
    } else if (past.found) {
        request_refuse_text(engine, rq, BT_CONFLICT,
                            "the review '%.*s' was decided at %.*s (%.*s)%s%.*s%s",
                            STR_ARG(m->review_id), STR_ARG(past.at), STR_ARG(past.decision),
                            past.by.len > 0 ? " by " : "", STR_ARG(past.by), buf_cstr(&open));
    } else {
        request_refuse_text(engine, rq, BT_NOT_FOUND, "no open review has the id '%.*s'%s",
                            STR_ARG(m->review_id), buf_cstr(&open));
    }
    buf_done(&open);
    arena_done(&arena);
}

void on_review_decide(struct engine *engine, struct request *rq)
{
    struct core_event ev = {.type = CORE_DECIDE};
    struct review_id id = {.serial = 0};
    struct msg_review_decide m;
    struct open_plan *p;

    if (!request_read(engine, rq, MSG_review_decide, &m)) {
        return;
    }
    CORE_EV(&ev, decide)->decision = review_decision_from_name(m.decision);
    if (CORE_EV(&ev, decide)->decision == DECISION_COUNT) {
        request_refuse_text(engine, rq, BT_INVALID,
                            "decision: expected approve, reject or skip, got '%.*s'",
                            STR_ARG(m.decision));
        return;
    }
    p = review_plan_of(engine, m.review_id, &id);
    if (p != NULL && review_find_open(p, &id, &ev.step)) {
        ev.attempt = id.serial;
        ev.text = m.comment;
        CORE_EV(&ev, decide)->digest = decision_digest(&m);
        CORE_EV(&ev, decide)->by = (struct actor){
            m.by.user, m.by.host, m.by.via, engine_request_peer(engine), str_from(rq->who->id)};
        decide(engine, rq, p, &m, &ev);
    } else {
        decide_late(engine, rq, p, &m, &id);
    }
}
