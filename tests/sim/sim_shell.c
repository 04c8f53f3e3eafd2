/* The fake shell: performs the core's commands after they are in the journal. */
#include "protocol/base/assert.h"
#include "tests/sim/sim.h"

struct sim_plan *sim_plan_of(struct sim *s, uint64_t handle)
{
    for (uint32_t i = 0; i < s->n_plans; i++) {
        if (s->plans[i].handle == handle && handle != 0) {
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
    sim_after(
        s, sim_range(s, 0, 15),
        (struct sim_event){.kind = SIM_CORE,
                           .life = s->life,
                           .core = {CORE_EV_INIT(LOST, lost, .sent = sent), .run = cmd->run,
                                    .step = cmd->step, .attempt = cmd->attempt, .phase = cmd->phase,
                                    .slot = cmd->slot, .epoch = cmd->epoch, .lane = cmd->lane}});
}

static void dispatch(struct sim *s, const struct core_cmd *cmd)
{
    struct body *b = sim_body_of(s, cmd->slot, cmd->epoch);
    const struct sim_plan *p = sim_plan_of(s, cmd->run);
    if (b == NULL || sim_fault(s, FAULT_UNSENT)) {
        report_lost(s, cmd, b, false); /* it died before the command */
        return;
    }
    if (p == NULL || cmd->lane >= b->capacity || b->lanes[cmd->lane].token != 0) {
        sim_fail(s, "dispatched over a lane that is in use or not there", 0, cmd->step);
        return;
    }
    if (sim_fault(s, FAULT_REQUEST_LOST)) {
        report_lost(s, cmd, b, true);
        return;
    }
    b->lanes[cmd->lane] = (struct request){.token = ++s->tokens,
                                           .plan = (uint32_t)(p - s->plans),
                                           .step = cmd->step,
                                           .attempt = cmd->attempt,
                                           .phase = cmd->phase,
                                           .epoch = cmd->epoch};
    const msec delay = sim_fault(s, FAULT_DELAY) ? sim_range(s, 10, 300) : sim_range(s, 0, 5);
    sim_after(s, delay,
              (struct sim_event){.kind = SIM_ARRIVE,
                                 .body = (uint32_t)(b - s->bodies),
                                 .lane = cmd->lane,
                                 .token = b->lanes[cmd->lane].token,
                                 .process = b->id});
}

/* Most agents stop when cancelled; the lane still gets an answer. */
static void cancel_step(struct sim *s, const struct core_cmd *cmd)
{
    const struct body *b = sim_body_of(s, cmd->slot, cmd->epoch);
    const struct sim_plan *p = sim_plan_of(s, cmd->run);
    const bool off = p != NULL && p->shadow->cancelling && s->now < s->quiet;
    if (b != NULL && (sim_fault(s, FAULT_CRASH) || (off && sim_chance(s, 100)))) {
        sim_crash(s, (uint32_t)(b - s->bodies), true); /* the cancel crashes it */
        return;
    }
    if (b == NULL || !sim_chance(s, 700)) {
        return;
    }
    for (uint32_t i = 0; i < s->n_execs; i++) {
        struct exec *x = &s->execs[i];
        if (!x->done && uuid_eq(x->process, b->id) && x->step == cmd->step &&
            x->phase == cmd->phase && x->attempt == cmd->attempt &&
            s->plans[x->plan].handle == cmd->run) {
            struct core_ev_result *answer = CORE_EV(&x->answer, result);
            answer->outcome = STEP_OUTCOME_FAILED;
            answer->error_class = CLASS_CANCELLED;
            answer->retryable_given = false;
            answer->result = (struct blob_ref){0};
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
    while (ix < s->n_bodies && !uuid_eq(sim_instance(s->bodies[ix].id), s->turn->ev.instance)) {
        ix++;
    }
    if (ix == s->n_bodies || !s->bodies[ix].alive) {
        return; /* it died while the turn waited for its commit */
    }
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

static void ask(struct sim *s, const struct core_cmd *cmd, enum sim_kind kind,
                enum core_event_type type)
{
    const struct body *b = sim_body_of(s, cmd->slot, cmd->epoch);
    const struct sim_plan *p = sim_plan_of(s, cmd->run);
    if (b == NULL || (p == NULL && kind == SIM_QUERY)) {
        return;
    }
    sim_after(s, sim_range(s, 0, 10),
              (struct sim_event){.kind = kind,
                                 .body = (uint32_t)(b - s->bodies),
                                 .plan = p == NULL ? 0 : (uint32_t)(p - s->plans),
                                 .process = b->id,
                                 .core = {.type = type,
                                          .run = cmd->run,
                                          .step = cmd->step,
                                          .attempt = cmd->attempt,
                                          .phase = cmd->phase,
                                          .slot = cmd->slot,
                                          .epoch = cmd->epoch,
                                          .lane = LANE_NONE}});
}

/* The engine evaluates a condition: now and then it cannot, and the plan changes meanwhile. */
static void judge(struct sim *s, const struct core_cmd *cmd)
{
    const enum condition_verdict verdict = sim_chance(s, 100)   ? CONDITION_FAILED
                                           : sim_chance(s, 600) ? CONDITION_TRUE
                                                                : CONDITION_FALSE;
    sim_to_core(s, sim_chance(s, 500) ? 0 : sim_range(s, 0, 40),
                (struct core_event){CORE_EV_INIT(CONDITION, condition, .verdict = verdict),
                                    .run = cmd->run, .step = cmd->step, .attempt = cmd->attempt,
                                    .lane = LANE_NONE, .text = STR_LIT("results.a.n is 7")},
                (struct uuid){{0}});
}

/* A child plan that is none of the simulation: it takes a while, reports now and then, and is asked
 * for again after a restart. */
static void raise_child(struct sim *s, const struct core_cmd *cmd)
{
    const enum child_outcome end = sim_chance(s, 200)   ? CHILD_FAILED
                                   : sim_chance(s, 400) ? CHILD_AGAIN
                                                        : CHILD_COMPLETED;
    struct core_event ev = {CORE_EV_INIT(CHILD, child, .outcome = CHILD_PROGRESS,
                                         .round = cmd->round, .error_class = CLASS_UNKNOWN,
                                         .percent = 50),
                            .run = cmd->run,
                            .step = cmd->step,
                            .attempt = cmd->attempt,
                            .lane = LANE_NONE,
                            .text = STR_LIT("an item failed")};
    if (sim_chance(s, 300)) {
        sim_to_core(s, sim_range(s, 0, 50), ev, (struct uuid){{0}});
    }
    CORE_EV(&ev, child)->outcome = end;
    CORE_EV(&ev, child)->result = (struct blob_ref){.id = SIM_RESULT_OTHER + 1, .len = 1};
    CORE_EV(&ev, child)->usage.input_tokens = sim_range(s, 0, 5);
    sim_to_core(s, sim_range(s, 0, 400), ev, (struct uuid){{0}});
}

/* The plan that undoes it ends at some time, perhaps not well; some reports come twice. */
static void undo(struct sim *s, const struct core_cmd *cmd)
{
    const bool ok = !sim_chance(s, 250);
    const struct core_event ev = {CORE_EV_INIT(COMPENSATED, compensated, .ok = ok, .done = 1,
                                               .failed = ok ? 0 : 1,
                                               .usage = {.input_tokens = sim_range(s, 0, 4)}),
                                  .run = cmd->run, .step = STEP_NONE, .lane = LANE_NONE,
                                  .text = STR_LIT("the bank is closed")};
    for (uint32_t i = sim_chance(s, 200) ? 2 : 1; i > 0; i--) {
        sim_to_core(s, sim_range(s, 0, 600), ev, (struct uuid){{0}});
    }
}

/* It ends within its own grace. */
static void stop_child(struct sim *s, const struct core_cmd *cmd)
{
    sim_to_core(
        s, sim_range(s, 0, 60),
        (struct core_event){CORE_EV_INIT(CHILD, child, .outcome = CHILD_FAILED, .round = cmd->round,
                                         .error_class = CLASS_CANCELLED),
                            .run = cmd->run, .step = cmd->step, .attempt = cmd->attempt,
                            .lane = LANE_NONE, .text = STR_LIT("Cancelled")},
        (struct uuid){{0}});
}

static void kill(struct sim *s, struct body *b)
{
    if (b == NULL) {
        return; /* it is gone already */
    }
    if (!b->spawned) {
        sim_fail(s, "killed a process that is not ours", 0, STEP_NONE);
        return;
    }
    sim_crash(s, (uint32_t)(b - s->bodies), true);
}

void sim_perform(struct sim *s, const struct core_cmd *cmd)
{
    struct body *b = sim_body_of(s, cmd->slot, cmd->epoch);
    switch (cmd->type) {
    case CMD_DISPATCH:
        dispatch(s, cmd);
        break;
    case CMD_CANCEL_STEP:
        cancel_step(s, cmd);
        break;
    case CMD_QUERY:
        ask(s, cmd, SIM_QUERY, CORE_STATE);
        break;
    case CMD_PROBE:
        ask(s, cmd, SIM_PROBE, CORE_PROBED);
        break;
    case CMD_CONDITION:
        judge(s, cmd);
        break;
    case CMD_CHILD:
        if (!sim_nest_command(s, cmd)) {
            raise_child(s, cmd);
        }
        break;
    case CMD_CHILD_STOP:
        if (!sim_nest_command(s, cmd)) {
            stop_child(s, cmd);
        }
        break;
    case CMD_CHILD_PAUSE:
    case CMD_CHILD_RESUME:
        (void)sim_nest_command(s, cmd);
        break;
    case CMD_SIGNAL:
        sim_to_core(s, sim_chance(s, 500) ? 0 : sim_range(s, 0, 40),
                    (struct core_event){
                        .type = CORE_SIGNAL, .run = cmd->run, .step = cmd->step, .lane = LANE_NONE},
                    (struct uuid){{0}});
        break;
    case CMD_REGISTERED:
        registered(s, cmd);
        break;
    case CMD_CLOSE:
        if (b != NULL) {
            sim_drop_lanes(s, b);
            b->epoch = 0; /* its next heartbeat is refused: it registers again */
        }
        break;
    case CMD_KILL:
        kill(s, b);
        break;
    case CMD_COMPENSATE:
        undo(s, cmd);
        break;
    case CMD_JOB:
    case CMD_JOB_STOP:
        sim_job_order(s, cmd);
        break;
    case CMD_RECORD:
        sim_nest_record(s, &cmd->rec);
        break;
    case CMD_REVISED:
    case CMD_RUN_DONE:
    case CMD_REJECT:
    case CORE_CMD_TYPE_COUNT:
        break;
    }
}
