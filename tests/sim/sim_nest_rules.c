/* Rules about parents and children, from the records of both and the commands in between. */
#include <string.h>

#include "tests/sim/sim.h"

static bool is_nothing(const struct usage *u)
{
    return memcmp(u, &(struct usage){0}, sizeof *u) == 0;
}

/* The child that the turn's event speaks of; NULL: it speaks of none of the plans. */
static struct sim_plan *child_of_turn(struct sim *s, const struct sim_plan *p,
                                      const struct record *rec)
{
    const struct core_event *ev = &s->turn->ev;
    if (ev->type != CORE_CHILD || ev->step != rec->step || sim_plan_of(s, ev->run) != p ||
        CORE_EV(ev, child)->outcome == CHILD_PROGRESS) {
        return NULL;
    }
    return sim_nest_of(s, &(struct core_cmd){.run = ev->run,
                                             .step = ev->step,
                                             .attempt = ev->attempt,
                                             .round = CORE_EV(ev, child)->round});
}

/* A step takes the end of its child once it has ended, and what it answered. */
static void check_end(struct sim *s, struct sim_plan *p, const struct record *rec,
                      const struct sim_plan *c)
{
    const bool takes =
        rec->type == REC_STEP_ROUND || rec->type == REC_STEP_TURN ||
        (rec->type == REC_STEP_COMPLETED && REC(rec, step_completed)->status == STEP_COMPLETED);
    SIM_RULE(c->over, "the end of a child plan that goes on");
    SIM_RULE(!takes || flat_record(rec).result.id == sim_nest_result(c),
             "another answer than the one of the child plan, or its items in another order");
}

static void check_paid(struct sim *s, struct sim_plan *p, const struct record *rec,
                       struct sim_plan *c)
{
    if (is_nothing(&rec->usage)) {
        return;
    }
    SIM_RULE(memcmp(&rec->usage, &c->spent, sizeof c->spent) == 0,
             "another usage than that of the child plan");
    SIM_RULE(!c->nest.paid, "the usage of a child plan counts twice");
    c->nest.paid = true;
    sometimes->nest_cases[rec->type == REC_RESULT_REJECTED ? NEST_PAID_LATE : NEST_PAID]++;
}

void sim_check_nest_record(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    struct sim_plan *c = child_of_turn(s, p, rec);
    if (c != NULL && rec->type != REC_PLAN_COMPLETED) {
        check_end(s, p, rec, c);
        if (!s->failed) {
            check_paid(s, p, rec, c);
        }
    }
    if (rec->type == REC_STEP_CHILD || rec->type == REC_STEP_CALLS) {
        const uint32_t round = rec->type == REC_STEP_CHILD ? REC(rec, child)->round : 0;
        SIM_RULE(sim_nest_of(s, &(struct core_cmd){.run = rec->run,
                                                   .step = rec->step,
                                                   .attempt = rec->attempt,
                                                   .round = round}) == NULL,
                 "a second child plan for the same attempt and round");
    }
}

void sim_check_nest_command(struct sim *s, const struct core_cmd *cmd)
{
    struct sim_plan *p = sim_plan_of(s, cmd->run);
    const struct record *rec = &(struct record){.step = cmd->step};
    if (p == NULL || cmd->step >= p->shadow->n_steps) {
        sim_fail(s, "a command about a child plan of nothing", 0, cmd->step);
        return;
    }
    struct sim_plan *c = sim_nest_of(s, cmd);
    if (cmd->type == CMD_CHILD) {
        const struct run_step *step = &p->shadow->steps[cmd->step];
        SIM_RULE(!p->over && step->status == STEP_IN_PROGRESS && step->attempt == cmd->attempt &&
                     step->round == cmd->round,
                 "asks for a child plan that no attempt and no round waits for");
        SIM_RULE(c == NULL || !c->nest.asked || c->nest.kind == CHILD_OF_CALLS,
                 "asks for a child plan twice");
    }
    if (c == NULL) {
        return;
    }
    c->nest.asked = c->nest.asked || cmd->type == CMD_CHILD;
    c->nest.told_stop = c->nest.told_stop || cmd->type == CMD_CHILD_STOP;
    c->nest.told_pause =
        cmd->type == CMD_CHILD_PAUSE || (c->nest.told_pause && cmd->type != CMD_CHILD_RESUME);
}

void sim_check_nests(struct sim *s)
{
    for (uint32_t i = 0; i < s->n_plans; i++) {
        const struct sim_plan *c = &s->plans[i];
        const struct sim_plan *p = &s->plans[c->nest.parent];
        const struct record *rec = &(struct record){.step = c->nest.step};
        if (c->nest.kind == CHILD_OF_NONE || c->over || c->nest.told_stop) {
            continue;
        }
        SIM_RULE(sim_nest_is_awaited(s, c), "a child plan goes on that nobody waits for");
        SIM_RULE(!p->shadow->cancelling, "a child plan goes on whose parent is cancelled");
        SIM_RULE(c->nest.told_pause == ((p->shadow->paused & 1u << PAUSE_REQUESTED) != 0),
                 "a child plan does not hear of a pause, or of its end");
        SIM_RULE(c->nest.asked || (c->nest.kind == CHILD_OF_CALLS && c->nest.told_pause),
                 "nobody asks for a child plan after a restart");
    }
}

void sim_check_nest_turn(struct sim *s)
{
    const struct core_event *ev = &s->turn->ev;
    const struct sim_plan *p = ev->type == CORE_CHILD ? sim_plan_of(s, ev->run) : NULL;
    const struct record *rec = &(struct record){.step = ev->step};
    const struct sim_plan *c = p == NULL ? NULL : child_of_turn(s, p, rec);
    if (c == NULL || p->over) {
        return; /* what a plan is told after its end, nobody pays for */
    }
    SIM_RULE(c->nest.paid || is_nothing(&c->spent), "nobody pays for a child plan");
}
