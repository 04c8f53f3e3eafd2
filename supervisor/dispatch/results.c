/*
 * Results: over a lane, from a query, or late by step.result. What was asked decides how an answer
 * is read: a result, a verdict, a plan. The core decides whether it still counts.
 */
#include "supervisor/dispatch/results.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/wire/mp_validate.h"
#include "registry/card.h"
#include "supervisor/dispatch/artifacts.h"
#include "supervisor/dispatch/calls.h"
#include "supervisor/dispatch/cards.h"
#include "supervisor/dispatch/classify.h"
#include "supervisor/dispatch/lanes.h"
#include "supervisor/dispatch/verdict.h"
#include "supervisor/engine/plan_state.h"

enum {
    SCHEMA_MAX = 1024,  /* of the input that an agent wants: it travels in an event */
    DETAILS_MAX = 65536 /* of a failed attempt */
};

/* Its instance is known and could not be reached in time, so nobody waits for it any more. */
static bool is_brought_late(const struct run_step *row, const struct core_event *ev)
{
    return ev->attempt == row->attempt && !uuid_is_nil(ev->instance) &&
           uuid_eq(ev->instance, row->instance) &&
           (row->status == STEP_BACKOFF || row->review == REVIEW_UNKNOWN_OUTCOME ||
            row->review == REVIEW_FAILURE);
}

/*
 * Whether the core could accept this: only then is it worth a row of the journal. A result of an
 * earlier attempt counts over the lane that it was asked on, and so does the answer to a question.
 */
static bool is_awaited(struct engine *engine, const struct core_event *ev)
{
    const struct run *r = core_run(engine_core(engine), ev->run, NULL);
    const struct run_step *row;

    if (r == NULL || ev->step >= r->n_steps) {
        return false;
    }
    row = &r->steps[ev->step];
    if (ev->phase > PHASE_SEARCH) {
        return row->status == STEP_CHECKING && row->phase == ev->phase && row->ask == ev->attempt &&
               ev->lane != LANE_NONE;
    }
    if (row->status == STEP_IN_PROGRESS || row->status == STEP_UNKNOWN) {
        if (ev->attempt == row->attempt) {
            return uuid_is_nil(ev->instance) || uuid_eq(ev->instance, row->instance);
        }
    } else if (row->status != STEP_BACKOFF && row->status != STEP_WAITING) {
        return false;
    }
    return ev->lane != LANE_NONE ? ev->attempt <= row->attempt : is_brought_late(row, ev);
}

/* ---- failures ---- */

static void classify_failure(const struct msg_step_result *m, struct core_event *ev)
{
    const struct msg_error *f = &m->failure;

    CORE_EV(ev, result)->outcome = STEP_OUTCOME_FAILED;
    CORE_EV(ev, result)->error_class = err_class_from_name(f->class_.ptr, f->class_.len);
    if (f->class_.len == 0 || CORE_EV(ev, result)->error_class == CLASS_NONE) {
        CORE_EV(ev, result)->error_class = classify_error(f->code, f->message);
    }
    CORE_EV(ev, result)->retryable_given = msg_has(f, error, retryable);
    CORE_EV(ev, result)->retryable = f->retryable;
    CORE_EV(ev, result)->retry_after_ms = f->retry_after_ms;
    ev->text = f->message; /* for an empty one the core has a sentence (M021) */
}

void result_invalid(struct core_event *ev, struct str why)
{
    CORE_EV(ev, result)->outcome = STEP_OUTCOME_FAILED;
    CORE_EV(ev, result)->error_class = CLASS_PROTOCOL_ERROR;
    CORE_EV(ev, result)->retryable_given = true;
    CORE_EV(ev, result)->retryable = false;
    ev->text = why;
}

/* How a failed attempt came about, for plan.get and plan.result. In an answer the details stand
 * four levels down. */
static enum bt_code store_details(struct engine *engine, struct doc details, struct core_event *ev,
                                  struct bt_error *err)
{
    static const struct mp_limits limits = {.depth = LIMIT_DEPTH - 5, .nodes = LIMIT_NODES};
    struct buf bytes;
    enum bt_code code = BT_OK;

    if (details.ptr == NULL) {
        return BT_OK;
    }
    buf_init(&bytes, DETAILS_MAX);
    doc_put_doc(&bytes, details);
    if (bytes.bad == BT_LIMIT || mp_validate(details.ptr, details.len, &limits, NULL) != BT_OK) {
        buf_clear(&bytes);
        doc_put_map(&bytes, 1);
        doc_put_cstr(&bytes, "leftOut");
        doc_put_cstr(&bytes, "the agent's details are over 64 KiB, or nested over 11 levels deep");
    }
    code = buf_check(&bytes, err);
    if (code == BT_OK) {
        code = engine_result_store(engine, &bytes, &CORE_EV(ev, result)->result, err);
    }
    buf_done(&bytes);
    return code;
}

/* ---- a step's own result ---- */

static bool is_empty_result(const struct msg_result *r)
{
    return r->text.len == 0 && r->data.ptr == NULL && r->artifacts_n == 0;
}

static size_t text_head(size_t len)
{
    return len < 32 ? 1 : len < 256 ? 2 : len < 65536 ? 3 : 5;
}

/* Bytes of the values of text, data and artifacts in a document of that length: what the cap
 * counts. A name has one byte as its head. */
static size_t result_bytes(const struct msg_result *r, size_t doc_len)
{
    const size_t text = sizeof "text" + text_head(r->text.len);
    size_t head = 1;

    head += r->text.len > 0 || msg_has(r, result, text) ? text : 0;
    head += r->data.ptr != NULL ? sizeof "data" : 0;
    head += r->artifacts_n > 0 ? sizeof "artifacts" : 0;
    head += msg_has(r, result, state) ? sizeof "state" + r->state.len : 0;
    head += r->truncated ? sizeof "truncated" + 1 : 0;
    return doc_len - head;
}

/* The patch for the plan's state is kept with the result. */
static bool take_state(struct engine *engine, const struct msg_step_result *m,
                       struct core_event *ev, struct msg_result *io, struct buf *text)
{
    const struct open_plan *p = open_plan_of_run(engine, ev->run);
    struct bt_error err;

    io->state = m->state.ptr != NULL ? m->state : io->state;
    if (io->state.ptr == NULL || p == NULL) {
        return true;
    }
    if (plan_state_check(engine, p, io->state, &err) == BT_OK) {
        msg_set(io, result, state);
        return true;
    }
    buf_clear(text);
    buf_add_cstr(text, err.msg);
    result_invalid(ev, buf_str(text));
    return false;
}

/* The result as it is kept: {text?, data?, artifacts?, state?}. */
static enum bt_code store(struct engine *engine, const struct msg_result *result,
                          struct core_event *ev, struct buf *text, struct bt_error *err)
{
    /* In a context the result stands four levels down; that body, too, may not be deeper than
     * LIMIT_DEPTH. */
    static const struct mp_limits nesting = {.depth = LIMIT_DEPTH - 4, .nodes = LIMIT_NODES};
    const size_t max = engine_options(engine)->result_max;
    struct msg_part part = {MSG_result, result};
    struct buf doc;
    enum bt_code code;

    buf_init(&doc, LIMIT_STEP_BYTES);
    code = msg_write(&doc, WIRE_MSGPACK, &part, 1, err);
    if (code != BT_OK && code != BT_NOMEM) {
        /* The same values may be longer in our form than in the peer's. That is the result's fault,
         * not the journal's. */
        result_invalid(ev, STR_LIT("result_unreadable: the result cannot be kept; use "
                                   "artifact: true where the skill has it, or ask for less"));
        code = BT_OK;
    } else if (code == BT_OK && mp_validate(doc.at, doc.len, &nesting, NULL) != BT_OK) {
        result_invalid(ev, STR_LIT("result_too_deep: a result may be nested 11 levels deep, so "
                                   "that later steps can be given it"));
    } else if (code == BT_OK && result_bytes(result, doc.len) > max) {
        buf_printf(text,
                   "result_too_large: %zu bytes, at most %zu (limits.maxResultBytes); use "
                   "artifact: true where the skill has it, or ask for less",
                   result_bytes(result, doc.len), max);
        result_invalid(ev, buf_str(text));
    } else if (code == BT_OK && (!is_empty_result(result) || result->state.ptr != NULL)) {
        /* An empty one is neither injected nor part of the answer: no blob, or one of length 0. */
        struct blob_ref *ref = &CORE_EV(ev, result)->result;
        code = engine_result_store(engine, &doc, ref, err);
        if (code == BT_OK) {
            uint64_t n = 0;
            code = result_text_length(doc_from_buf(&doc), &n, err);
            ref->text_len = (uint32_t)n;
        }
        ref->len = is_empty_result(result) ? 0 : ref->len;
        ref->truncated = result->truncated;
    }
    buf_done(&doc);
    return code;
}

/* The output schema of the skill that was asked, as far as it is known which one that was. */
static bool fits_output(struct engine *engine, const struct msg_step_result *m,
                        const struct core_event *ev, const struct plan_step *s,
                        struct buf *diagnosis)
{
    const struct lane_instance *in = lanes_instance(engine, ev->slot, ev->epoch);
    struct agent_card *card = in != NULL ? agent_card_of(engine, in->agent) : NULL;
    struct str name = ev->phase == PHASE_SEARCH ? STR_LIT("search") : s->skill;
    uint32_t skill;

    if (card == NULL) {
        return true;
    }
    skill = card_skill(&card->card, name);
    if (skill == UINT32_MAX && card->card.skills_n == 1) {
        skill = 0;
    }
    return skill == UINT32_MAX ||
           verify_output(&card->outputs, &card->card, card->hash, skill, &m->result, diagnosis);
}

/* A result that does not fit the skill's output schema or the step's `verify` is a failed attempt;
 * the text of it lies in *diagnosis. */
static bool passes_verification(struct engine *engine, const struct msg_step_result *m,
                                struct core_event *ev, struct buf *diagnosis)
{
    const struct open_plan *p = open_plan_of_run(engine, ev->run);
    const struct plan_step *s = p != NULL ? &p->plan->steps[ev->step] : NULL;

    if (s == NULL || (fits_output(engine, m, ev, s, diagnosis) &&
                      (s->rules->verify.ptr == NULL ||
                       verify_result(s->rules->verify, &m->result, diagnosis)))) {
        return true;
    }
    CORE_EV(ev, result)->outcome = STEP_OUTCOME_FAILED;
    CORE_EV(ev, result)->error_class = CLASS_VERIFICATION_FAILED;
    ev->text = buf_str(diagnosis);
    return false;
}

static void take_handoff(struct engine *engine, const struct msg_step_result *m,
                         struct core_event *ev)
{
    if (!msg_has(m, step_result, handoff)) {
        result_invalid(ev, STR_LIT("outcome handoff without `handoff`: {toAgentId, reason}"));
        return;
    }
    CORE_EV(ev, result)->outcome = STEP_OUTCOME_HANDOFF;
    CORE_EV(ev, result)->agent = registry_agent(engine_registry(engine), m->handoff.to_agent_id);
    ev->text = m->handoff.reason;
}

static enum bt_code take_attempt(struct engine *engine, const struct msg_step_result *m,
                                 struct core_event *ev, struct buf *text, struct bt_error *err)
{
    if (str_is(m->outcome, "completed")) {
        if (!msg_has(m, step_result, result)) {
            result_invalid(ev, STR_LIT("outcome completed without a result"));
            return BT_OK;
        }
        if (!artifacts_fit(engine, open_plan_of_run(engine, ev->run), &m->result, text)) {
            result_invalid(ev, buf_str(text));
            return BT_OK;
        }
        if (!passes_verification(engine, m, ev, text)) {
            return BT_OK;
        }
        struct msg_result result = m->result;
        if (!take_state(engine, m, ev, &result, text)) {
            return BT_OK;
        }
        CORE_EV(ev, result)->outcome = STEP_OUTCOME_COMPLETED;
        return store(engine, &result, ev, text, err);
    }
    if (str_is(m->outcome, "failed")) {
        classify_failure(m, ev);
        return store_details(engine, m->failure.details, ev, err);
    }
    if (str_is(m->outcome, "needs_input") || str_is(m->outcome, "needs_approval")) {
        CORE_EV(ev, result)->outcome = str_is(m->outcome, "needs_input")
                                           ? STEP_OUTCOME_NEEDS_INPUT
                                           : STEP_OUTCOME_NEEDS_APPROVAL;
        ev->text = m->need.prompt;
        CORE_EV(ev, result)->data =
            m->need.schema.len <= SCHEMA_MAX ? m->need.schema : (struct doc){NULL, 0};
    } else if (str_is(m->outcome, "handoff")) {
        take_handoff(engine, m, ev);
    } else if (str_is(m->outcome, "calls")) {
        return calls_take(engine, m, ev, text, err);
    } else {
        result_invalid(ev, STR_LIT("unknown outcome; expected completed, failed, needs_input, "
                                   "needs_approval, handoff or calls"));
    }
    return BT_OK;
}

/* ---- answers to questions ---- */

static void take_verdict(const struct msg_step_result *m, struct core_event *ev, struct buf *text,
                         struct buf *missing)
{
    enum verdict v = verdict_read(&m->result, text, missing);

    if (v == VERDICT_UNREADABLE) {
        result_invalid(ev, buf_str(text));
        return;
    }
    CORE_EV(ev, result)->outcome = STEP_OUTCOME_COMPLETED;
    CORE_EV(ev, result)->passed = v == VERDICT_YES;
    ev->text = buf_str(text);
    CORE_EV(ev, result)->data = missing->len > 0 ? doc_from_buf(missing) : (struct doc){NULL, 0};
}

/* What the answer needs until the core has taken it. */
struct answer {
    struct buf text;    /* diagnosis, verdict, problems of a plan */
    struct buf missing; /* of a gate */
    struct new_revision revision;
};

static enum bt_code take_answer(struct engine *engine, const struct msg_step_result *m,
                                struct core_event *ev, struct answer *a, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (str_is(m->outcome, "failed")) {
        classify_failure(m, ev);
    } else if (!str_is(m->outcome, "completed")) {
        result_invalid(ev, STR_LIT("a question is answered with outcome completed or failed"));
    } else if (ev->phase == PHASE_REPLAN) {
        code = replan_take(engine, m, ev, &a->revision, &a->text, err);
    } else {
        take_verdict(m, ev, &a->text, &a->missing);
    }
    return code;
}

static void count_error(struct engine *engine, const struct core_event *ev)
{
    const struct lane_instance *in = lanes_instance(engine, ev->slot, ev->epoch);

    if (in != NULL && CORE_EV(ev, result)->outcome == STEP_OUTCOME_FAILED) {
        agent_card_of(engine, in->agent)->errors++;
    }
}

/* M111: the cost of tokens of an agent that does not report it. */
static uint64_t price_of(const struct engine *engine, const struct lane_instance *in,
                         const struct usage *u)
{
    const struct token_price *price = NULL;
    struct str id;
    double micros;

    if (in == NULL || engine_options(engine)->n_prices == 0) {
        return 0;
    }
    id = registry_agent_view(engine_registry(engine), in->agent).id;
    for (uint32_t i = 0; i < engine_options(engine)->n_prices; i++) {
        const struct token_price *p = &engine_options(engine)->prices[i];
        if (str_is(id, p->agent_id)) {
            price = p;
            break;
        }
        price = strcmp(p->agent_id, "*") == 0 && price == NULL ? p : price;
    }
    if (price == NULL) {
        return 0;
    }
    const uint64_t cached = u->cached_tokens < u->input_tokens ? u->cached_tokens : u->input_tokens;
    micros = (double)(u->input_tokens - cached) * price->input + (double)cached * price->cached +
             (double)u->output_tokens * price->output;
    return micros >= (double)INT64_MAX ? INT64_MAX : (uint64_t)(micros + 0.999999);
}

static bool is_nothing(const struct usage *u)
{
    return (u->input_tokens | u->output_tokens | u->cached_tokens | u->cost_micros) == 0;
}

/* The lane on which the same attempt is still to be answered; NULL = none. */
static struct lane *lane_of(struct lane_instance *in, const struct msg_step_result *m)
{
    for (uint32_t i = 0; in != NULL && i < in->capacity; i++) {
        struct lane *lane = &in->lanes[i];
        if (lane->state == LANE_BUSY && str_is(m->key, lane->item.key) &&
            lane->item.attempt == m->attempt) {
            return lane;
        }
    }
    return NULL;
}

/* Whether the answer over this lane has come another way before. One that comes another way marks
 * the lane, as long as the plan is there to count it. */
static bool is_paid(struct engine *engine, const struct msg_step_result *m,
                    const struct core_event *ev)
{
    struct lane_instance *in = lanes_instance(engine, ev->slot, ev->epoch);
    const bool over_lane = ev->lane != LANE_NONE;
    struct lane *lane = !over_lane                              ? lane_of(in, m)
                        : in != NULL && ev->lane < in->capacity ? &in->lanes[ev->lane]
                                                                : NULL;
    const bool paid = over_lane && lane != NULL && lane->paid;

    if (lane != NULL) {
        lane->paid = !over_lane && core_run(engine_core(engine), ev->run, NULL) != NULL;
    }
    return paid;
}

/* The plan ended while the work went on, which costs nevertheless. Over a lane it is told once; the
 * key begins with the plan's id. */
static enum bt_code count_late(struct engine *engine, const struct msg_step_result *m,
                               const struct core_event *ev, bool paid, struct bt_error *err)
{
    const struct lane_instance *in = lanes_instance(engine, ev->slot, ev->epoch);
    struct record rec = {REC_INIT(RESULT_REJECTED, assigned, .phase = ev->phase),
                         .attempt = ev->attempt, .agent = in != NULL ? in->agent : AGENT_NONE,
                         .usage = CORE_EV(ev, result)->usage,
                         .text = STR_LIT("the plan has ended")};
    struct uuid plan;

    if (ev->lane == LANE_NONE || in == NULL || paid || is_nothing(&rec.usage) ||
        m->key.len < UUID_TEXT_LEN || !uuid_parse((struct str){m->key.ptr, UUID_TEXT_LEN}, &plan)) {
        return BT_OK;
    }
    return engine_record_late(engine, plan, &rec, err);
}

enum core_reject results_take(struct engine *engine, const struct msg_step_result *m, uint64_t run,
                              uint32_t step, struct core_event *ev)
{
    const uint64_t before = engine_applies(engine, run);
    enum core_reject reject = REJECT_NONE;
    struct answer a = {0};
    struct bt_error err;
    enum bt_code code = BT_OK;
    bool paid;

    buf_init(&a.text, LIMIT_RESULT_BYTES);
    buf_init(&a.missing, LIMIT_EVENT_BYTES * 4);
    ev->type = CORE_RESULT;
    ev->run = run;
    ev->step = step;
    ev->attempt = (uint32_t)m->attempt;
    paid = is_paid(engine, m, ev);
    CORE_EV(ev, result)->usage = (struct usage){m->usage.input_tokens, m->usage.output_tokens,
                                                m->usage.cached_tokens, m->usage.cost_micros};
    if (!msg_has(&m->usage, usage, cost_micros)) {
        CORE_EV(ev, result)->usage.cost_micros = price_of(
            engine, lanes_instance(engine, ev->slot, ev->epoch), &CORE_EV(ev, result)->usage);
    }
    if (!is_awaited(engine, ev)) {
        /* stale: the core rejects it with the reason, and frees the lane */
        CORE_EV(ev, result)->outcome = STEP_OUTCOME_FAILED;
    } else {
        code = ev->phase <= PHASE_SEARCH ? take_attempt(engine, m, ev, &a.text, &err)
                                         : take_answer(engine, m, ev, &a, &err);
        count_error(engine, ev);
    }
    if (code == BT_OK) {
        code = engine_revise(engine, ev, &a.revision, &reject, &err);
    }
    if (code == BT_OK && reject == REJECT_UNKNOWN_RUN) {
        code = count_late(engine, m, ev, paid, &err);
    }
    if (code != BT_OK) {
        engine_fail(engine, &err);
    }
    new_revision_done(&a.revision);
    buf_done(&a.text);
    buf_done(&a.missing);
    (void)engine_applies(engine, before);
    return reject;
}
