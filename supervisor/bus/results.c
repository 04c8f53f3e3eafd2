/* Results in: from a lane, from a query, or late by step.result. The core decides whether one still
 * counts. */
#include <stdlib.h>

#include "protocol/base/log.h"
#include "protocol/base/utf8.h"
#include "protocol/wire/guard.h"
#include "supervisor/bus/bus.h"
#include "supervisor/bus/verify.h"

/* Whether the core could accept a result of this attempt: only then is it worth a row of the
 * journal. */
static bool is_awaited(struct bus *b, uint64_t run, uint32_t step, uint32_t attempt)
{
    const struct run *r = core_run(b->core, run, NULL);

    return r != NULL && step < r->n_steps && r->steps[step].attempt == attempt &&
           (r->steps[step].status == STEP_IN_PROGRESS || r->steps[step].status == STEP_UNKNOWN);
}

static void classify_failure(const struct msg_step_result *m, struct core_event *ev)
{
    const struct msg_error *f = &m->failure;

    ev->outcome = STEP_OUTCOME_FAILED;
    ev->error_class =
        f->class_.len > 0 ? err_class_from_name(f->class_.ptr, f->class_.len) : CLASS_UNKNOWN;
    ev->retryable_given = msg_has(f, error, retryable);
    ev->retryable = f->retryable;
    ev->retry_after_ms = f->retry_after_ms;
    ev->text =
        f->message.len > 0 ? f->message : STR_LIT("the agent reported a failure without a message");
}

static void invalid(struct core_event *ev, struct str why)
{
    ev->outcome = STEP_OUTCOME_FAILED;
    ev->error_class = CLASS_PROTOCOL_ERROR;
    ev->retryable_given = true;
    ev->retryable = false;
    ev->text = why;
}

static bool is_empty_result(const struct msg_result *r)
{
    return r->text.len == 0 && r->data.ptr == NULL && r->artifacts_n == 0;
}

/* The result as it is kept: {text?, data?, artifacts?}. */
static enum bt_code store(struct bus *b, const struct msg_step_result *m, struct core_event *ev,
                          struct buf *preview, struct bt_error *err)
{
    /* In a context the result stands four levels down; that body, too, may not be deeper than
     * LIMIT_DEPTH. */
    static const struct guard_limits nesting = {.depth = LIMIT_DEPTH - 4, .nodes = LIMIT_NODES};
    struct msg_part part = {MSG_result, &m->result};
    struct buf doc;
    bool cut;
    enum bt_code code;

    buf_init(&doc, LIMIT_STEP_BYTES);
    code = msg_write(&doc, WIRE_MSGPACK, &part, 1, err);
    if (code != BT_OK && code != BT_NOMEM) {
        /* The same values may be longer in our form than in the peer's. That is the result's fault,
         * not the journal's. */
        invalid(ev, STR_LIT("result_unreadable: the result cannot be kept; write it to a file and "
                            "return its path"));
        buf_done(&doc);
        return BT_OK;
    }
    if (code == BT_OK && guard_check(doc.at, doc.len, &nesting, NULL) != BT_OK) {
        invalid(ev, STR_LIT("result_too_deep: a result may be nested 11 levels deep, so that later "
                            "steps can be given it"));
        buf_done(&doc);
        return BT_OK;
    }
    if (code == BT_OK && doc.len > b->opt.result_max) {
        invalid(ev,
                STR_LIT("result_too_large: more than limits.maxResultBytes; write it to a file and "
                        "return its path"));
        buf_done(&doc);
        return BT_OK;
    }
    if (code == BT_OK && is_empty_result(&m->result)) {
        buf_done(&doc);
        return BT_OK; /* neither injected nor part of the answer: no blob */
    }
    if (code == BT_OK) {
        code = journal_blob_add(b->journal, doc.at, doc.len, &ev->result.id, err);
    }
    if (code == BT_OK) {
        ev->result.len = doc.len;
        blob_cache_put(&b->cache, ev->result.id, doc.at, doc.len);
        if (bus_result_text(b, ev->result, LIMIT_PREVIEW_BYTES, preview, &cut, NULL) != BT_OK) {
            buf_clear(preview); /* no preview is no reason to lose a result, let alone to stop */
        }
    }
    buf_done(&doc);
    return code;
}

/* A result that does not fit the step's `verify` is a failed attempt; the text of it lies in
 * *diagnosis. */
static bool passes_verification(struct bus *b, const struct msg_step_result *m,
                                struct core_event *ev, struct buf *diagnosis)
{
    const struct bus_plan *p = bus_plan_of(b, ev->run);
    struct doc schema = p != NULL ? p->plan->steps[ev->step].verify : (struct doc){NULL, 0};

    if (schema.ptr == NULL || verify_result(schema, &m->result, diagnosis)) {
        return true;
    }
    ev->outcome = STEP_OUTCOME_FAILED;
    ev->error_class = CLASS_VERIFICATION_FAILED;
    ev->text = buf_str(diagnosis);
    return false;
}

static enum bt_code fill_in(struct bus *b, const struct msg_step_result *m, struct core_event *ev,
                            struct buf *preview, struct bt_error *err)
{
    ev->usage = (struct usage){m->usage.input_tokens, m->usage.output_tokens,
                               m->usage.cached_tokens, m->usage.cost_micros};
    if (str_is(m->outcome, "completed")) {
        if (!msg_has(m, step_result, result)) {
            invalid(ev, STR_LIT("outcome completed without a result"));
            return BT_OK;
        }
        if (!passes_verification(b, m, ev, preview)) {
            return BT_OK;
        }
        ev->outcome = STEP_OUTCOME_COMPLETED;
        return store(b, m, ev, preview, err);
    }
    if (str_is(m->outcome, "failed")) {
        classify_failure(m, ev);
    } else if (str_is(m->outcome, "needs_input") || str_is(m->outcome, "needs_approval")) {
        ev->outcome = str_is(m->outcome, "needs_input") ? STEP_OUTCOME_NEEDS_INPUT
                                                        : STEP_OUTCOME_NEEDS_APPROVAL;
        ev->text = m->need.prompt;
    } else if (str_is(m->outcome, "handoff")) {
        invalid(ev, STR_LIT("outcome 'handoff' is not supported by this version"));
    } else {
        invalid(
            ev,
            STR_LIT("unknown outcome; expected completed, failed, needs_input or needs_approval"));
    }
    return BT_OK;
}

enum core_reject bus_take_result(struct bus *b, const struct msg_step_result *m, uint64_t run,
                                 uint32_t step, struct core_event *ev)
{
    enum core_reject reject = REJECT_NONE;
    struct bt_error err;
    struct buf preview;
    enum bt_code code = BT_OK;

    buf_init(&preview, LIMIT_RESULT_BYTES);
    ev->type = CORE_RESULT;
    ev->run = run;
    ev->step = step;
    ev->attempt = (uint32_t)m->attempt;
    if (is_awaited(b, run, step, ev->attempt)) {
        code = fill_in(b, m, ev, &preview, &err);
    } else {
        ev->outcome = STEP_OUTCOME_FAILED; /* stale: the core says how, and frees the lane */
    }
    if (code == BT_OK && ev->outcome == STEP_OUTCOME_FAILED &&
        lanes_instance(b, ev->slot, ev->epoch) != NULL) {
        b->cards[lanes_instance(b, ev->slot, ev->epoch)->agent].errors++;
    }
    if (code == BT_OK) {
        b->preview =
            ev->outcome == STEP_OUTCOME_COMPLETED ? buf_str(&preview) : (struct str){NULL, 0};
        code = bus_feed(b, ev, &reject, NULL, &err);
        b->preview = (struct str){NULL, 0};
    }
    if (code != BT_OK) {
        bus_fail(b, &err);
    }
    buf_done(&preview);
    return reject;
}
