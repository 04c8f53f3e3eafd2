/* Child plans: when one may be asked for, stopped, and end its step. */
#include "tests/explore/world.h"

uint16_t world_child_of(const struct told *told)
{
    return (uint16_t)(told->child_attempt | told->child_round << 8);
}

bool world_child_ends(const struct world *w, const struct world_event *ev)
{
    const struct told *told = &w->at.told[ev->step];
    return ev->kind == WORLD_CHILD && told->child != 0 && ev->attempt == world_child_of(told);
}

bool world_child_out(const struct world *w)
{
    bool out = false;
    for (uint32_t i = 0; i < w->shadow->n_steps; i++) {
        out |= w->at.told[i].child != 0;
    }
    return out;
}

bool world_take_child_command(struct world *w, const struct core_cmd *cmd, const char **ret_why)
{
    struct told *told = &w->at.told[cmd->step];
    const struct run_step *state = &w->shadow->steps[cmd->step];
    const uint16_t of = (uint16_t)(cmd->attempt | cmd->round << 8);
    if (cmd->type == CMD_CHILD) {
        RULE(state->status == STEP_IN_PROGRESS && state->attempt == cmd->attempt &&
                 state->round == cmd->round,
             "a child plan for no attempt");
        RULE(world_plan(w)->steps[cmd->step].type == STEP_TYPE_PLAN ||
                 (told->turned == cmd->attempt && (w->at.paused & 1u << PAUSE_REQUESTED) == 0),
             "calls while the plan is paused, or none");
        told->child = 1;
        told->child_attempt = (uint8_t)cmd->attempt;
        told->child_round = (uint8_t)cmd->round;
        return true;
    }
    RULE(told->child != 0 && of == world_child_of(told), "told a child plan that is not there");
    if (cmd->type == CMD_CHILD_STOP) {
        told->child = w->at.cancelling && !w->at.over ? 2 : 0;
    }
    return true;
}

bool world_take_child(struct world *w, const struct record *rec, const char **ret_why)
{
    struct told *told = &w->at.told[rec->step];
    const struct plan_step *about = &world_plan(w)->steps[rec->step];
    RULE(about->type == STEP_TYPE_PLAN && !about->superseded, "a child plan for another step");
    RULE(w->at.replanning == 0 && !w->at.cancelling, "a child plan while the plan is on hold");
    RULE((w->at.paused & ~(1u << PAUSE_REVIEW)) == 0, "a child plan while the plan is paused");
    RULE(!about->rules->policy.requires_approval || told->approved, "begun without its approval");
    RULE(rec->attempt == told->attempts + (told->rounded != 0 ? 0u : 1u),
         "attempts are not numbered one by one");
    RULE(REC(rec, child)->round == 0 || REC(rec, child)->round < about->rules->loop.max,
         "a round beyond the last");
    told->attempts = (uint8_t)rec->attempt;
    told->clock = told->rounded != 0 ? told->clock : w->at.now;
    told->rounded = 0;
    RULE(told->attempts <= 1 + about->rules->policy.max_retries + told->granted,
         "more attempts than retries and permissions");
    told->begun = told->begun == 0 ? w->at.now + 1 : told->begun;
    return true;
}

bool world_take_round(struct world *w, const struct record *rec, const char **ret_why)
{
    struct told *told = &w->at.told[rec->step];
    const struct loop_policy *loop = &world_plan(w)->steps[rec->step].rules->loop;
    RULE(world_child_ends(w, &w->doing) && w->doing.step == rec->step &&
             w->doing.variant == CHILD_AGAIN,
         "a round that nobody asked for");
    RULE(REC(rec, round)->n == told->child_round + 1u && REC(rec, round)->n < loop->max,
         "a round too many");
    RULE(REC(rec, round)->delay_ms == loop->delay_ms, "another pause than the loop's");
    told->rounded = 1;
    return true;
}

bool world_take_turn(struct world *w, const struct record *rec, const char **ret_why)
{
    struct told *told = &w->at.told[rec->step];
    const struct rec_turn *turn = REC(rec, turn);
    RULE(w->doing.step == rec->step && rec->attempt == told->attempts, "a turn of another attempt");
    if (rec->type == REC_STEP_TURN) {
        RULE(world_child_ends(w, &w->doing) && w->doing.variant == CHILD_COMPLETED &&
                 told->turned == rec->attempt && turn->n == told->turns,
             "the end of no turn");
        told->granted++;
        told->child = 0;
        return true;
    }
    RULE(w->doing.variant == ANSWER_CALLS && told->turned != rec->attempt, "nobody calls");
    RULE(turn->n == told->turns + 1u && turn->calls > 0 && !w->at.cancelling, "a turn too many");
    told->turns = (uint8_t)turn->n;
    told->allowed++; /* the agent wants to be asked again */
    told->turned = (uint8_t)rec->attempt;
    told->finished = (uint8_t)rec->attempt; /* results of earlier attempts count no more */
    told->out = 0;
    told->child = 1;
    told->child_attempt = (uint8_t)rec->attempt;
    told->child_round = 0;
    return true;
}

bool world_child_completes(const struct world *w, const struct record *rec, const char **ret_why)
{
    const struct plan_step *about = &world_plan(w)->steps[rec->step];
    const struct told *told = &w->at.told[rec->step];
    const bool last = told->child_round + 1u == about->rules->loop.max;
    RULE(world_child_ends(w, &w->doing) && w->doing.step == rec->step,
         "completed by no child plan");
    RULE(w->doing.variant == CHILD_COMPLETED ||
             (w->doing.variant == CHILD_AGAIN && about->rules->loop.accept != 0 && last),
         "completed before the loop was done");
    RULE(rec->type == REC_STEP_CHECKING || about->rules->verify_with.len == 0 || w->at.cancelling,
         "completed without being verified");
    return true;
}
