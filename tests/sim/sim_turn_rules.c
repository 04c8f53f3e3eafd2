/* Rules about a turn as a whole: which executions are cancelled, queried and killed, and that
 * nothing happens before its time. */
#include "protocol/base/assert.h"
#include "tests/sim/sim.h"

void sim_rules_begin(struct sim *s)
{
    s->n_must_tell = 0;
    s->queries = 0;
    s->kills = 0;
    s->closed = false;
    s->rejected = false;
}

/* ---- cancels ---- */

static bool about_it(const struct core_event *ev, const struct sim_plan *p, const struct sent *x)
{
    return (ev->type == CORE_RESULT || ev->type == CORE_LOST || ev->type == CORE_BUSY ||
            ev->type == CORE_STATE) &&
           ev->run == p->handle && ev->step == x->step && ev->attempt == x->serial &&
           (ev->phase == x->phase || (ev->phase <= PHASE_SEARCH && x->phase <= PHASE_SEARCH));
}

/* True when the record takes the step away from its agent. Called before it is applied. */
static bool takes_away(const struct record *rec)
{
    return rec->type == REC_STEP_COMPLETED || rec->type == REC_STEP_RETRY ||
           rec->type == REC_FALLBACK_USED || rec->type == REC_STEP_WAITING ||
           rec->type == REC_REPLAN_STARTED || rec->type == REC_STEP_CHECKING ||
           rec->type == REC_GATE_ERROR;
}

static void may_have_to_tell(struct sim *s, struct sim_plan *p, const struct record *rec)
{
    const struct plan *plan = sim_plan_now(p);
    if (rec->step >= plan->n_steps || !takes_away(rec) || p->told[rec->step].sent == UINT32_MAX ||
        s->n_must_tell == SIM_MUST_TELL_MAX) {
        return;
    }
    const uint32_t at = p->told[rec->step].sent;
    const struct sent *x = &s->sent[at];
    if (sim_is_out(s, x) && !about_it(&s->turn->ev, p, x) &&
        registry_is_current(s->core->registry, x->slot, x->epoch)) {
        s->must_tell[s->n_must_tell++] = at;
    }
}

static void told_to_stop(struct sim *s, const struct core_cmd *cmd)
{
    const struct sim_plan *p = sim_plan_of(s, cmd->run);
    if (p == NULL || cmd->step >= sim_plan_now(p)->n_steps) {
        sim_fail(s, "what nobody knows is told to stop", 0, cmd->step);
        return;
    }
    for (uint32_t i = p->told[cmd->step].sent; i != UINT32_MAX; i = s->sent[i].prev) {
        struct sent *x = &s->sent[i];
        x->told = x->told || (x->serial == cmd->attempt && x->phase == cmd->phase);
    }
}

/* ---- nothing before its time ---- */

static msec last_sign(const struct sim *s, const struct sim_plan *p, uint32_t step)
{
    const struct told *told = &p->told[step];
    const msec sent = told->sent == UINT32_MAX ? 0 : s->sent[told->sent].at;
    return sent > told->sign ? sent : told->sign;
}

static void check_timeout(struct sim *s, const struct sim_plan *p, const struct record *rec)
{
    const struct run_step *was = &p->shadow->steps[rec->step];
    const struct step_policy *policy = &sim_plan_now(p)->steps[rec->step].rules->policy;
    const msec now = s->turn->ev.now;
    const bool silent = policy->idle_ms > 0 && now - last_sign(s, p, rec->step) >= policy->idle_ms;
    const uint32_t at = p->told[rec->step].sent;
    const bool out =
        at != UINT32_MAX && sim_is_out(s, &s->sent[at]); /* otherwise it is queued again */
    SIM_RULE(!out || was->deadline <= now || silent, "timed out before its time");
}

static void check_time(struct sim *s, const struct sim_plan *p, const struct record *rec)
{
    const struct run_step *was = &p->shadow->steps[rec->step];
    const msec now = s->turn->ev.now;
    const struct flat_record flat = flat_record(rec);
    const bool tick = s->turn->ev.type == CORE_TICK;
    const bool fails = rec->type == REC_STEP_RETRY || rec->type == REC_FALLBACK_USED ||
                       rec->type == REC_STEP_WAITING ||
                       (rec->type == REC_STEP_COMPLETED && flat.status == STEP_FAILED);
    if (rec->type == REC_STEP_ASSIGNED && was->status == STEP_BACKOFF) {
        SIM_RULE(now >= was->deadline, "the next attempt came before its backoff was over");
    }
    if (rec->type == REC_STEP_PROGRESS) {
        p->told[rec->step].sign = now;
    }
    if (tick && was->status == STEP_IN_PROGRESS && fails && flat.error_class == CLASS_TIMEOUT) {
        check_timeout(s, p, rec);
    }
    if (tick && was->status == STEP_UNKNOWN && fails && flat.error_class == CLASS_REPLY_LOST) {
        SIM_RULE(was->deadline <= now, "an unknown outcome was given up before its time");
    }
    if (tick && rec->type == REC_REVIEW_DECIDED) {
        SIM_RULE(was->deadline <= now && REC(rec, decided)->decision == DECISION_REJECT,
                 "denied before its time");
    }
}

/* ---- commands ---- */

/* Only a process that does nothing else is ended, when its plan is called off. */
static void check_kill(struct sim *s, const struct core_cmd *cmd)
{
    uint32_t others = 0;
    uint32_t called_off = 0;
    for (uint32_t i = s->first_out; i < s->n_sent; i++) {
        const struct sent *x = &s->sent[i];
        if (x->slot == cmd->slot && x->epoch == cmd->epoch && sim_is_out(s, x)) {
            const bool off = s->plans[x->plan].shadow->cancelling;
            others += off ? 0 : 1;
            called_off += off ? 1 : 0;
        }
    }
    if (others > 0 || called_off > 1) {
        sim_fail(s, "killed a process that does something else, too", 0, STEP_NONE);
    }
}

void sim_rules_command(struct sim *s, const struct core_cmd *cmd)
{
    if (cmd->type == CMD_RECORD && cmd->rec.run != 0) {
        struct sim_plan *p = sim_plan_of(s, cmd->rec.run);
        if (p != NULL && !p->over) {
            may_have_to_tell(s, p, &cmd->rec);
            sim_full_record(s, &cmd->rec);
            if (cmd->rec.step < sim_plan_now(p)->n_steps) {
                check_time(s, p, &cmd->rec);
            }
        }
    } else if (cmd->type == CMD_CANCEL_STEP) {
        told_to_stop(s, cmd);
    } else if (cmd->type == CMD_KILL) {
        check_kill(s, cmd);
    }
    s->kills += cmd->type == CMD_KILL ? 1 : 0;
    s->kills -= cmd->type == CMD_RECORD && flat_record(&cmd->rec).stop == STOP_KILLED ? 1 : 0;
    s->queries += cmd->type == CMD_QUERY ? 1 : 0;
    s->closed = s->closed || cmd->type == CMD_CLOSE;
    s->rejected = s->rejected || cmd->type == CMD_REJECT;
}

/* ---- the end of a turn ---- */

/* A returning instance is queried about its executions; a lost one leaves nothing open. */
static void check_unknown(struct sim *s)
{
    const struct core_event *ev = &s->turn->ev;
    uint32_t unknown = 0;
    for (uint32_t i = 0; i < s->n_plans; i++) {
        const struct sim_plan *p = &s->plans[i];
        const struct core_run *row = p->over ? NULL : core_find_run(s->core, p->handle);
        for (uint32_t k = 0; row != NULL && k < row->run->n_steps; k++) {
            unknown += row->sched[k].list == LIST_UNKNOWN &&
                               uuid_eq(row->run->steps[k].instance, sim_instance(s->turn->sender))
                           ? 1
                           : 0;
        }
    }
    if (ev->type == CORE_GONE && s->closed && unknown > 0) {
        sim_fail(s, "an instance is gone and what it had is not given up", 0, STEP_NONE);
    }
    if (ev->type == CORE_LANE_UP && !s->rejected && ev->lane == REGISTRY_CONTROL_LANE &&
        s->queries < unknown) {
        sim_fail(s, "an instance is back and is not asked", 0, STEP_NONE);
    }
}

void sim_rules_end(struct sim *s)
{
    const enum core_event_type type = s->turn->ev.type;
    for (uint32_t i = 0; i < s->n_must_tell; i++) {
        const struct sent *x = &s->sent[s->must_tell[i]];
        if (!x->told) {
            sim_fail(s, "a request was given up and who has it was not told", x->plan, x->step);
        }
    }
    if (s->kills != 0) {
        sim_fail(s, "what was killed and what is said to be killed differ", 0, STEP_NONE);
    }
    if ((type == CORE_GONE || type == CORE_LANE_UP) && s->n_batch == 1) {
        check_unknown(s);
    }
    if (!s->failed) {
        sim_check_nest_turn(s);
    }
}
