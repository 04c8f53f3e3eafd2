/* The fake shell: does what the core commands. */
#include "protocol/base/assert.h"
#include "tests/sim/sim.h"

struct sim_plan *sim_plan_of(struct sim *s, uint64_t handle)
{
    for (uint32_t i = 0; i < s->n_plans; i++) {
        if (s->plans[i].submitted && !s->plans[i].over && s->plans[i].handle == handle) {
            return &s->plans[i];
        }
    }
    return NULL;
}

struct body *sim_body_of(struct sim *s, uint32_t slot, uint64_t epoch)
{
    for (uint32_t i = 0; i < s->n_bodies; i++) {
        if (s->bodies[i].epoch == epoch && epoch != 0 && s->bodies[i].slot == slot) {
            return &s->bodies[i];
        }
    }
    return NULL;
}

static void report_lost(struct sim *s, const struct core_cmd *cmd, struct body *b, bool sent)
{
    if (b != NULL) {
        b->lanes[cmd->lane].token = 0;
    }
    sim_after(s, sim_range(s, 0, 15),
              (struct sim_event){.kind = SIM_CORE,
                                 .life = s->life,
                                 .core = {.type = CORE_LOST,
                                          .run = cmd->run,
                                          .step = cmd->step,
                                          .attempt = cmd->attempt,
                                          .slot = cmd->slot,
                                          .epoch = cmd->epoch,
                                          .lane = cmd->lane,
                                          .sent = sent}});
}

static void dispatch(struct sim *s, const struct core_cmd *cmd)
{
    sim_check_dispatch(s, cmd);
    struct body *b = sim_body_of(s, cmd->slot, cmd->epoch);
    if (b == NULL || sim_fault(s, FAULT_UNSENT)) {
        report_lost(s, cmd, b, false); /* it died before we got to it */
        return;
    }
    if (b->lanes[cmd->lane].token != 0) {
        sim_fail(s, "dispatched over a lane that is in use", 0, cmd->step);
        return;
    }
    if (sim_fault(s, FAULT_REQUEST_LOST)) {
        report_lost(s, cmd, b, true);
        return;
    }
    const struct sim_plan *p = sim_plan_of(s, cmd->run);
    b->lanes[cmd->lane] = (struct request){.token = ++s->tokens,
                                           .plan = (uint32_t)(p - s->plans),
                                           .step = cmd->step,
                                           .attempt = cmd->attempt,
                                           .epoch = cmd->epoch};
    sim_after(s, sim_range(s, 0, 5),
              (struct sim_event){.kind = SIM_ARRIVE,
                                 .body = (uint32_t)(b - s->bodies),
                                 .lane = cmd->lane,
                                 .token = b->lanes[cmd->lane].token,
                                 .process = b->id});
}

/* Most agents stop when told; the lane is answered all the same. */
static void cancel_step(struct sim *s, const struct core_cmd *cmd)
{
    const struct body *b = sim_body_of(s, cmd->slot, cmd->epoch);
    if (b == NULL || !sim_chance(s, 700)) {
        return;
    }
    for (uint32_t i = 0; i < s->n_execs; i++) {
        struct exec *x = &s->execs[i];
        if (!x->done && uuid_eq(x->process, b->id) && x->step == cmd->step &&
            x->attempt == cmd->attempt && s->plans[x->plan].handle == cmd->run) {
            x->answer.outcome = STEP_OUTCOME_FAILED;
            x->answer.error_class = CLASS_CANCELLED;
            x->answer.retryable_given = false;
            sim_after(s, sim_range(s, 0, 10),
                      (struct sim_event){.kind = SIM_REPLY,
                                         .body = (uint32_t)(b - s->bodies),
                                         .exec = i,
                                         .process = b->id});
        }
    }
}

static void registered(struct sim *s, const struct core_cmd *cmd)
{
    uint32_t ix = 0;
    while (ix < s->n_bodies && !uuid_eq(s->bodies[ix].id, s->turn->instance)) {
        ix++;
    }
    ASSERT(ix < s->n_bodies);
    struct body *b = &s->bodies[ix];
    b->slot = cmd->slot;
    b->epoch = cmd->epoch;
    for (uint32_t i = 0; i <= b->capacity; i++) {
        sim_after(
            s, sim_range(s, 0, 20),
            (struct sim_event){.kind = SIM_LANE_UP,
                               .body = ix,
                               .process = b->id,
                               .core = {.type = CORE_LANE_UP,
                                        .slot = cmd->slot,
                                        .epoch = cmd->epoch,
                                        .lane = i == b->capacity ? REGISTRY_CONTROL_LANE : i}});
    }
}

static void ask(struct sim *s, const struct core_cmd *cmd)
{
    const struct body *b = sim_body_of(s, cmd->slot, cmd->epoch);
    const struct sim_plan *p = sim_plan_of(s, cmd->run);
    if (b == NULL || p == NULL) {
        return;
    }
    sim_after(s, sim_range(s, 0, 10),
              (struct sim_event){.kind = SIM_QUERY,
                                 .body = (uint32_t)(b - s->bodies),
                                 .plan = (uint32_t)(p - s->plans),
                                 .process = b->id,
                                 .core = {.type = CORE_STATE,
                                          .run = cmd->run,
                                          .step = cmd->step,
                                          .attempt = cmd->attempt,
                                          .slot = cmd->slot,
                                          .epoch = cmd->epoch,
                                          .lane = LANE_NONE}});
}

static void decide_later(struct sim *s, const struct record *rec)
{
    const struct core_event ev = {.type = CORE_DECIDE,
                                  .run = rec->run,
                                  .step = rec->step,
                                  .attempt = rec->attempt,
                                  .lane = LANE_NONE,
                                  .decision =
                                      sim_chance(s, 700) ? DECISION_APPROVE : DECISION_REJECT};
    const struct sim_event event = {.kind = SIM_CORE, .life = s->life, .core = ev};
    sim_after(s, sim_range(s, 10, 1500), event);
    if (sim_chance(s, 100)) {
        sim_after(s, sim_range(s, 10, 1500), event); /* two people */
    }
}

void sim_perform(struct sim *s, const struct core_cmd *cmd)
{
    struct body *b = sim_body_of(s, cmd->slot, cmd->epoch);
    switch (cmd->type) {
    case CMD_RECORD:
        if (cmd->rec.type == REC_STEP_WAITING) {
            decide_later(s, &cmd->rec);
        }
        break;
    case CMD_DISPATCH:
        dispatch(s, cmd);
        break;
    case CMD_CANCEL_STEP:
        cancel_step(s, cmd);
        break;
    case CMD_QUERY:
        ask(s, cmd);
        break;
    case CMD_REGISTERED:
        registered(s, cmd);
        break;
    case CMD_CLOSE:
        if (b != NULL && b->epoch == cmd->epoch) {
            sim_drop_lanes(s, b);
            b->epoch = 0; /* its next heartbeat is refused: it registers again */
        }
        break;
    case CMD_KILL:
    case CMD_PROBE:
    case CMD_REVISED:
    case CMD_RUN_DONE:
    case CMD_REJECT:
    case CORE_CMD_TYPE_COUNT:
        break;
    }
}
