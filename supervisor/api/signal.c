/* plan.signal: a signal for a step that waits, or will wait, for it. */
#include <inttypes.h>
#include <stdio.h>

#include "protocol/base/assert.h"
#include "protocol/base/log.h"
#include "supervisor/api/api.h"
#include "supervisor/dispatch/input_check.h"
#include "supervisor/engine/access.h"
#include "supervisor/engine/conditions.h"
#include "supervisor/engine/row_body.h"

static uint64_t digest_of(const struct msg_plan_signal *m)
{
    uint64_t h = str_hash(m->name);

    h = (h * 31 + str_hash((struct str){(const char *)m->data.ptr, m->data.len})) >> 1;
    return h == 0 ? 1 : h;
}

/* ---- a clientKey that came before ---- */

struct past_signal {
    struct str key;
    char plan[UUID_TEXT_LEN + 1];
    uint64_t serial, digest;
    bool found;
    char step[LIMIT_ID_BYTES + 1]; /* that took it; empty: none has */
};

/* False: found, with the step that took it. */
static bool take(struct past_signal *past, struct doc body)
{
    if (past->found) {
        if (str_is(row_text(body, "type"), record_wire_type(REC_STEP_COMPLETED)) &&
            row_number(body, "signal") == past->serial) {
            (void)snprintf(past->step, sizeof past->step, "%.*s",
                           STR_ARG(row_text(body, "stepId")));
        }
        return past->step[0] == 0;
    }
    if (!str_is(row_text(body, "type"), record_wire_type(REC_SIGNAL_RECEIVED)) ||
        !str_eq(row_text(body, "clientKey"), past->key)) {
        return true;
    }
    past->serial = row_number(body, "signal");
    past->digest = row_number(body, "digest");
    past->found = true;
    return true;
}

static bool take_row(const struct journal_row *row, void *self)
{
    return take(self, (struct doc){row->body, row->body_len});
}

/* The events of a cycle are those of all plans. */
static bool take_event(struct doc body, void *self)
{
    struct past_signal *past = self;

    return !str_is(row_text(body, "planId"), past->plan) || take(past, body);
}

/* The signal of a plan that has ended. */
static void find_past(struct engine *engine, struct str plan_id, struct past_signal *past)
{
    struct journal_plan row;
    struct bt_error err;

    if (past->key.len == 0 || request_plan_row(engine, plan_id, &row, &err) != BT_OK ||
        !access_changes(engine_who(engine), row.owner)) {
        return; /* the request is refused for it */
    }
    uuid_format(row.plan_id, past->plan);
    if (journal_events(engine_journal(engine), 0, row.ix, UINT32_MAX, take_row, past, &err) !=
        BT_OK) {
        log_err("plan.signal", "plan=%.*s %s", STR_ARG(plan_id), err.msg);
    }
    if (past->step[0] == 0) {
        engine_cycle_events(engine, take_event, past); /* what this cycle adds to the journal */
    }
}

/* The step that took a signal of an open plan; none. */
static struct str taker_of(const struct plan *plan, const struct signal_known *known)
{
    return known->taker != STEP_NONE ? plan->steps[known->taker].step_id : (struct str){NULL, 0};
}

static void answer(struct engine *engine, struct request *rq, const struct msg_plan_signal *m,
                   uint64_t serial, struct str taker, bool repeated)
{
    const struct msg_plan_signal_ok ok = {
        .plan_id = m->plan_id, .signal = serial, .step_id = taker, .repeated = repeated};

    request_answer(engine, rq, MSG_plan_signal_ok, &ok);
}

/* True: answered. */
static bool answer_repeated(struct engine *engine, struct request *rq,
                            const struct msg_plan_signal *m, uint64_t serial, uint64_t digest,
                            struct str taker)
{
    if (digest != digest_of(m)) {
        request_refuse_text(engine, rq, BT_CONFLICT,
                            "clientKey: '%.*s' was used for another signal of this plan (number "
                            "%" PRIu64 "); another name or other data need another key",
                            STR_ARG(m->client_key), serial);
    } else {
        answer(engine, rq, m, serial, taker, true);
    }
    return true;
}

static bool answered_before(struct engine *engine, struct request *rq,
                            const struct msg_plan_signal *m)
{
    const struct open_plan *p = open_plan_by_id(engine, m->plan_id);
    struct past_signal past = {.key = m->client_key};
    const struct signal_known *known;

    if (p != NULL && access_changes(engine_who(engine), open_plan_owner(p))) {
        known = signals_by_key(&open_plan_more(p)->signals, m->client_key);
        return known != NULL && answer_repeated(engine, rq, m, known->serial, known->digest,
                                                taker_of(p->plan, known));
    }
    find_past(engine, m->plan_id, &past);
    return past.found && answer_repeated(engine, rq, m, past.serial, past.digest,
                                         str_from(past.step[0] != 0 ? past.step : NULL));
}

/* ---- the name and the data ---- */

static bool waits_for_signals(const struct plan_step *s)
{
    return s->wait != NULL && s->wait->what == WAIT_FOR_SIGNAL && !s->superseded;
}

/* The first step of the plan that waits for the name; NULL when none ever does. */
static const struct plan_step *waiting_step(const struct plan *plan, struct str name)
{
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        if (waits_for_signals(&plan->steps[i]) && str_eq(plan->steps[i].wait->signal, name)) {
            return &plan->steps[i];
        }
    }
    return NULL;
}

/* A name that no step has is a mistake in most cases, and would be kept for nobody. */
static void refuse_name(struct engine *engine, struct request *rq, const struct open_plan *p,
                        struct str name)
{
    enum { NAMES_SHOWN = 8 };
    uint32_t n = 0;
    struct buf names;

    buf_init(&names, 1024);
    for (uint32_t i = 0; i < p->plan->n_steps; i++) {
        const struct plan_step *s = &p->plan->steps[i];
        if (!waits_for_signals(s) || waiting_step(p->plan, s->wait->signal) != s) {
            continue; /* each name once */
        }
        if (n < NAMES_SHOWN) {
            buf_printf(&names, "%s%.*s", n > 0 ? ", " : "", STR_ARG(s->wait->signal));
        }
        n++;
    }
    if (p->plan->planning.pending) {
        request_refuse_text(engine, rq, BT_CONFLICT,
                            "the plan is still being made: no step of it waits for a signal yet");
    } else if (n == 0) {
        request_refuse_text(engine, rq, BT_NOT_FOUND, "no step of the plan waits for a signal");
    } else {
        request_refuse_text(engine, rq, BT_NOT_FOUND,
                            "name: no step of the plan waits for the signal '%.*s'; they wait for "
                            "%s%s",
                            STR_ARG(name), buf_cstr(&names), n > NAMES_SHOWN ? ", ..." : "");
    }
    buf_done(&names);
}

/* The data as the result of the step that takes it: a text, or data. */
static enum bt_code store(struct engine *engine, struct doc data, struct blob_ref *ret,
                          struct bt_error *err)
{
    const struct str text = data.ptr != NULL ? doc_string(data) : (struct str){NULL, 0};
    struct buf bytes;
    enum bt_code code;

    if (data.ptr == NULL) {
        return BT_OK;
    }
    buf_init(&bytes, LIMIT_RESULT_BYTES);
    doc_put_map(&bytes, 1);
    if (text.ptr != NULL) {
        doc_put_cstr(&bytes, "text");
        doc_put_str(&bytes, text);
    } else {
        doc_put_cstr(&bytes, "data");
        doc_put_doc(&bytes, data);
    }
    ret->text_len = (uint32_t)text.len;
    code = buf_check(&bytes, err);
    code = code == BT_OK ? engine_result_store(engine, &bytes, ret, err) : code;
    buf_done(&bytes);
    return code;
}

/* Whether the core takes it: only then is its data worth a row of the journal. */
static bool has_room(const struct run *run)
{
    return !run->cancelling && run->job == JOB_NONE &&
           (run->kept < LIMIT_SIGNALS_KEPT || run->sleeping > 0);
}

static void signal_plan(struct engine *engine, struct request *rq, struct open_plan *p,
                        const struct msg_plan_signal *m)
{
    const struct plan_step *step = waiting_step(p->plan, m->name);
    struct core_event ev = {
        CORE_EV_INIT(SIGNAL, signal, .digest = digest_of(m), .key = m->client_key),
        .step = STEP_NONE, .text = m->name};
    const struct signal_known *known;
    struct bt_error err;

    if (step == NULL) {
        refuse_name(engine, rq, p, m->name);
        return;
    }
    if (dispatch_signal_check(step->wait, m->data, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    if (core_block_run(p->block)->signals >= LIMIT_SIGNALS) {
        request_refuse_text(engine, rq, BT_LIMIT,
                            "the plan has had %d signals, as many as one plan may have",
                            LIMIT_SIGNALS);
        return;
    }
    if (has_room(core_block_run(p->block)) &&
        store(engine, m->data, &CORE_EV(&ev, signal)->result, &err) != BT_OK) {
        engine_fail(engine, &err);
        return;
    }
    if (request_feed(engine, rq, p, &ev, NULL)) {
        engine_conditions_answer(engine); /* who takes it may be decided there */
        p = open_plan_of_run(engine, ev.run);
        ASSERT(p != NULL); /* it stays until the commit */
        const struct signals *all = &open_plan_more(p)->signals;
        ASSERT(all->n > 0);
        known = &all->at[all->n - 1];
        answer(engine, rq, m, known->serial, taker_of(p->plan, known), false);
    }
}

void on_plan_signal(struct engine *engine, struct request *rq)
{
    struct msg_plan_signal m;
    struct open_plan *p;

    if (!request_read(engine, rq, MSG_plan_signal, &m) || answered_before(engine, rq, &m)) {
        return;
    }
    p = request_open_plan(engine, rq, m.plan_id);
    if (p != NULL) {
        signal_plan(engine, rq, p, &m);
    }
}
