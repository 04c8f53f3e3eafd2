/* Agents' messages about their steps on the control socket: progress, and late results. */
#include "supervisor/api/api.h"
#include "supervisor/dispatch/keys.h"
#include "supervisor/dispatch/result_form.h"
#include "supervisor/dispatch/results.h"

void on_step_progress(struct engine *engine, struct request *rq)
{
    struct core_event ev = {.type = CORE_PROGRESS, .lane = LANE_NONE};
    enum core_reject reject;
    struct msg_step_progress m;
    struct lane_instance *in;
    struct bt_error err;

    if (msg_read(&rq->reader, MSG_step_progress, &m, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    in = request_instance(engine, rq, m.instance_id, m.epoch);
    if (in == NULL) {
        return;
    }
    if (!key_find(engine, in, m.key, &ev.run, &ev.step, &ev.phase)) {
        request_refuse_text(engine, rq, BT_NOT_FOUND, "no open step has the key '%.*s'",
                            STR_ARG(m.key));
        return;
    }
    ev.attempt = (uint32_t)m.attempt;
    ev.slot = in->slot;
    ev.epoch = in->epoch;
    (void)uuid_parse(m.instance_id, &ev.instance);
    ev.text = m.text;
    *CORE_EV(&ev, progress) =
        (struct core_ev_progress){.n = m.n, .percent = m.percent, .data = m.data};
    if (engine_feed(engine, &ev, &reject, &err) != BT_OK) {
        engine_fail(engine, &err);
    } else if (reject != REJECT_NONE && reject != REJECT_TOO_MUCH) {
        request_refuse_text(engine, rq, BT_CONFLICT, "%s", core_reject_text(reject));
    } else {
        request_answer(engine, rq, MSG_empty, NULL);
    }
}

/*
 * The instance that delivers a result. An agent may have registered again since it was asked: its
 * result names the epoch that the request had. It counts when the very process that has the attempt
 * is the one that is registered now.
 */
static struct lane_instance *deliverer(struct engine *engine, struct request *rq,
                                       const struct msg_step_result *m, struct core_event *ev,
                                       bool *ret_known)
{
    struct uuid id;
    struct instance_view now;
    const uint32_t slot = uuid_parse(m->instance_id, &id)
                              ? registry_instance(engine_registry(engine), id)
                              : REGISTRY_NONE;
    struct lane_instance *in = NULL;

    if (slot != REGISTRY_NONE && registry_instance_view(engine_registry(engine), slot, &now) &&
        m->epoch < now.epoch && !uuid_is_nil(now.process)) {
        in = lanes_instance(engine, slot, now.epoch);
        in = in != NULL && (rq->who->role == ROLE_ADMIN || str_is(str_from(rq->who->id), in->by))
                 ? in
                 : NULL;
        *ret_known = in != NULL && key_find(engine, in, m->key, &ev->run, &ev->step, &ev->phase);
        const struct run *run = *ret_known ? core_run(engine_core(engine), ev->run, NULL) : NULL;
        if (in != NULL && (run == NULL || uuid_eq(run->steps[ev->step].process, now.process))) {
            return in;
        }
    }
    in = request_instance(engine, rq, m->instance_id, m->epoch);
    *ret_known = in != NULL && key_find(engine, in, m->key, &ev->run, &ev->step, &ev->phase);
    return in;
}

void on_step_result(struct engine *engine, struct request *rq)
{
    struct core_event ev = {.lane = LANE_NONE};
    struct msg_step_result_ok ok = {0};
    struct msg_step_result m;
    struct lane_instance *in;
    struct bt_error err;
    bool known = false;

    if (result_form_normalise(&rq->reader, &err) != BT_OK ||
        msg_read(&rq->reader, MSG_step_result, &m, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_VALIDATION_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    in = deliverer(engine, rq, &m, &ev, &known);
    if (in == NULL) {
        return;
    }
    ok.reason = STR_LIT("no open step has this key: the plan has ended or never was");
    if (known) {
        enum core_reject reject;
        ev.slot = in->slot;
        ev.epoch = in->epoch;
        (void)uuid_parse(m.instance_id, &ev.instance);
        reject = results_take(engine, &m, ev.run, ev.step, &ev);
        ok.accepted = reject == REJECT_NONE;
        ok.reason = ok.accepted ? (struct str){"", 0} : str_from(core_reject_text(reject));
    }
    msg_set(&ok, step_result_ok, accepted);
    request_answer(engine, rq, MSG_step_result_ok, &ok);
}
