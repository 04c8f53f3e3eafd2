/* A step, or a question about one, goes out: its assignment is made and sent on its lane. */
#include <stdio.h>
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/dispatch/assignment.h"
#include "supervisor/dispatch/dispatch_internal.h"
#include "supervisor/dispatch/trunk.h"

/* The step could not go out for a reason of its own (a template without a value, a context too
 * large). */
static void fail_step(struct engine *engine, const struct core_cmd *cmd, enum err_class cls,
                      const struct bt_error *why)
{
    const struct lane_instance *in = lanes_instance(engine, cmd->slot, cmd->epoch);
    struct core_event ev = {CORE_EV_INIT(RESULT, result, .outcome = STEP_OUTCOME_FAILED,
                                         .error_class = cls, .retryable_given = true),
                            .run = cmd->run,
                            .step = cmd->step,
                            .phase = cmd->phase,
                            .attempt = cmd->attempt,
                            .slot = cmd->slot,
                            .epoch = cmd->epoch,
                            .lane = cmd->lane,
                            .text = str_from(why->msg)};

    if (in != NULL) {
        (void)uuid_parse(str_from(in->id), &ev.instance);
    }
    engine_later(engine, &ev);
}

static void not_sent(struct engine *engine, const struct core_cmd *cmd)
{
    struct core_event ev = {CORE_EV_INIT(LOST, lost, .sent = false),
                            .run = cmd->run,
                            .step = cmd->step,
                            .phase = cmd->phase,
                            .attempt = cmd->attempt,
                            .slot = cmd->slot,
                            .epoch = cmd->epoch,
                            .lane = cmd->lane};
    engine_later(engine, &ev);
}

static bool send_step(struct engine *engine, struct lane *lane, struct assignment *q,
                      const struct core_cmd *cmd, struct bt_error *err)
{
    struct dispatch *d = dispatch_of(engine);
    char id[21]; /* not the key, which may be longer than an id */
    enum bt_code code;

    (void)snprintf(id, sizeof id, "%llu", (unsigned long long)d->sent + 1);
    buf_clear(&d->message);
    code = msg_request(&d->message, lane->instance->form, str_from(id), (struct str){NULL, 0},
                       MSG_step_execute, &q->m, err);
    if (code != BT_OK) {
        fail_step(engine, cmd, CLASS_VALIDATION_ERROR, err);
        return true;
    }
    lane->paid = false;
    lane->item = (struct control_item){
        .run = cmd->run, .step = cmd->step, .phase = cmd->phase, .attempt = cmd->attempt};
    memcpy(lane->item.key, q->key, sizeof q->key);
    code = lane->instance->trunk != NULL
               ? trunk_add(engine, lane, buf_str(&d->message), err)
               : link_lane_send(lane->link, d->message.at, d->message.len, err);
    if (code != BT_OK) {
        return false;
    }
    lane->state = LANE_BUSY;
    lane->cancelled = false;
    d->sent++;
    d->cards[lane->instance->agent].requests++;
    return true;
}

/* Whether what was decided still holds: the cycle may have gone on since. */
static bool is_still_due(const struct run *run, const struct core_cmd *cmd)
{
    const struct run_step *row = &run->steps[cmd->step];

    if (cmd->phase > PHASE_SEARCH) {
        return row->status == STEP_CHECKING && row->phase == cmd->phase && row->ask == cmd->attempt;
    }
    return row->status == STEP_IN_PROGRESS && row->attempt == cmd->attempt;
}

void dispatch_step(struct engine *engine, const struct core_cmd *cmd)
{
    struct lane_instance *in = lanes_instance(engine, cmd->slot, cmd->epoch);
    struct open_plan *p = open_plan_of_run(engine, cmd->run);
    struct lane *lane = in != NULL && cmd->lane < in->capacity ? &in->lanes[cmd->lane] : NULL;
    struct assignment q;
    struct bt_error err;

    if (p == NULL || !is_still_due(core_block_run(p->block), cmd) || lane == NULL ||
        lane->state != LANE_READY) {
        not_sent(engine, cmd);
        return;
    }
    assignment_init(&q, engine, p, cmd);
    if (assignment_make(&q, in, cmd->attempt, &err) != BT_OK) {
        fail_step(engine, cmd, q.error_class, &err);
    } else if (!send_step(engine, lane, &q, cmd, &err)) {
        log_debug("step.not_sent", "key=%s %s", q.key, err.msg);
        not_sent(engine, cmd);
    }
    assignment_done(&q);
}
