/* The rules that every path must keep, and when two states count as one. */
#include <string.h>

#include "protocol/base/assert.h"
#include "tests/explore/world.h"

#define RULE(cond, why)                                                                            \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            *ret_why = (why);                                                                      \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

/* ---- commands ---- */

static bool take_step_record(struct world *w, const struct record *rec, const char **ret_why)
{
    struct told *told = &w->at.told[rec->step];
    RULE(told->completed == 0, "a record about a step that has ended");
    if (rec->type == REC_STEP_STARTED) {
        RULE(told->started++ == 0, "a step started twice");
        told->attempts++;
        const struct plan_step *step = &w->plan->steps[rec->step];
        for (uint32_t i = 0; i < run_deps(w->plan, rec->step); i++) {
            const uint32_t dep = run_dep(w->plan, rec->step, i);
            RULE(w->at.told[dep].completed == 1, "started before a dependency was over");
            const struct run_step *d = &w->shadow->steps[dep];
            const bool bad = d->status == STEP_FAILED || d->status == STEP_CANCELLED ||
                             (d->status == STEP_SKIPPED && d->reason == REASON_DEPENDENCY_FAILED);
            RULE(!bad || w->plan->chain || step->policy.run_if_always,
                 "started although a dependency failed");
        }
    } else if (rec->type == REC_STEP_ASSIGNED) {
        RULE(told->started == 1, "assigned before it started");
        if (rec->attempt > told->attempts) {
            told->attempts++;
        }
    } else if (rec->type == REC_REVIEW_DECIDED) {
        if (rec->decision == DECISION_APPROVE) {
            told->granted++;
        }
    } else if (rec->type == REC_STEP_COMPLETED) {
        const struct run_step *state = &w->shadow->steps[rec->step];
        RULE(rec->status != STEP_COMPLETED ||
                 (w->doing.attempt == state->attempt && w->doing.body + 1 == state->instance.b[15]),
             "completed by who does not have the current attempt");
        told->completed = 1;
    } else {
        RULE(told->started == 1, "a record about a step that has not started");
    }
    return true;
}

static bool take_record(struct world *w, const struct record *rec, const char **ret_why)
{
    if (record_about(rec->type) != ABOUT_PLAN) {
        return true;
    }
    RULE(!w->at.over, "a record of the plan after its end");
    if (rec->step < w->plan->n_steps && rec->type != REC_PLAN_COMPLETED) {
        const enum step_status from = w->shadow->steps[rec->step].status;
        if (!take_step_record(w, rec, ret_why)) {
            return false;
        }
        RULE(run_apply(w->shadow, w->plan, rec), "a record does not fit on replay");
        w->moves[from][w->shadow->steps[rec->step].status]++;
        return true;
    }
    RULE(run_apply(w->shadow, w->plan, rec), "a record of the plan does not fit on replay");
    if (rec->type == REC_PLAN_COMPLETED) {
        w->at.over = true;
        for (uint32_t i = 0; i < w->plan->n_steps; i++) {
            const struct told *told = &w->at.told[i];
            RULE(told->started == 0 || told->completed == 1, "a step started and never ended");
        }
    }
    return true;
}

static bool take_dispatch(struct world *w, const struct core_cmd *cmd, uint32_t nth,
                          const char **ret_why)
{
    struct instance_view view;
    struct told *told = &w->at.told[cmd->step];
    RULE(registry_instance_view(w->core->registry, cmd->slot, &view), "dispatched to nobody");
    struct body *b = &w->at.bodies[view.id.b[15] - 1];
    RULE(b->epoch == cmd->epoch && b->lane, "dispatched to a lane that is not up");
    RULE(!b->now.out, "dispatched over a lane that is in use");
    RULE(nth > 0 && w->out.at[nth - 1].type == CMD_RECORD &&
             w->out.at[nth - 1].rec.step == cmd->step,
         "dispatched without a record before it");
    const bool is_unsafe = w->plan->steps[cmd->step].policy.effects == EFFECTS_UNSAFE;
    RULE(!is_unsafe || told->executions <= told->granted,
         "an unsafe step runs again without a decision");
    RULE(told->completed == 0, "dispatched after it ended");
    told->executions++;
    RULE(told->executions <= told->attempts, "more executions than journaled attempts");
    b->now = (struct request){true, cmd->slot, cmd->lane, cmd->step, cmd->attempt, cmd->epoch};
    return true;
}

static bool take_command(struct world *w, const struct core_cmd *cmd, uint32_t nth,
                         const char **ret_why)
{
    struct instance_view view;
    if (cmd->type == CMD_RECORD) {
        return take_record(w, &cmd->rec, ret_why);
    }
    if (cmd->type == CMD_DISPATCH) {
        return take_dispatch(w, cmd, nth, ret_why);
    }
    if (cmd->type == CMD_REGISTERED &&
        registry_instance_view(w->core->registry, cmd->slot, &view)) {
        w->at.bodies[view.id.b[15] - 1].epoch = cmd->epoch;
    }
    if (cmd->type == CMD_CLOSE) {
        for (uint32_t i = 0; i < WORLD_INSTANCES; i++) {
            struct body *b = &w->at.bodies[i];
            if (b->epoch == cmd->epoch) { /* its lease is over */
                b->old = b->now.out ? b->now : b->old;
                b->epoch = 0;
                b->lane = false;
                b->control = false;
                b->now.out = false;
            }
        }
    }
    return true;
}

static bool steps_moved_well(struct world *w, const char **ret_why)
{
    for (uint32_t i = 0; i < w->plan->n_steps; i++) {
        struct told *told = &w->at.told[i];
        const struct run_step *state = &w->shadow->steps[i];
        RULE(!step_is_final(told->status) || told->status == state->status,
             "a final status changed");
        told->status = state->status;
    }
    return true;
}

/* Who is back is asked for all that it may have; of who is gone for good nothing is awaited any
 * more. */
static bool unknown_is_pursued(const struct world *w, const char **ret_why)
{
    uint32_t unknown = 0;
    uint32_t queries = 0;
    for (uint32_t i = 0; i < w->plan->n_steps; i++) {
        const struct run_step *state = &w->shadow->steps[i];
        unknown += state->status == STEP_UNKNOWN && state->instance.b[15] == w->doing.body + 1;
    }
    for (uint32_t i = 0; i < w->out.n; i++) {
        queries += w->out.at[i].type == CMD_QUERY;
    }
    RULE(w->doing.kind != WORLD_CONTROL_UP || queries == unknown,
         "an unknown outcome was not asked for");
    RULE(w->doing.kind != WORLD_GONE || unknown == 0, "the word of a dead instance is awaited");
    return true;
}

bool world_take(struct world *w, const char **ret_why)
{
    bool records = false;
    bool rejected = false;
    const uint64_t before = run_hash(w->shadow);
    for (uint32_t i = 0; i < w->out.n; i++) {
        records = records || (w->out.at[i].type == CMD_RECORD && w->out.at[i].rec.run != 0);
        rejected = rejected || w->out.at[i].type == CMD_REJECT;
        if (!take_command(w, &w->out.at[i], i, ret_why)) {
            return false;
        }
    }
    const struct run *live = core_block_run(w->block);
    RULE(memcmp(live, w->shadow, run_size(w->plan->n_steps)) == 0,
         "the replayed run differs from the live one");
    RULE(!rejected || records || before == run_hash(w->shadow), "a rejection changed the run");
    RULE(w->at.over == (core_run(w->core, w->at.handle, NULL) == NULL),
         "the core and the records disagree about the end");
    RULE(w->at.over || core_deadline(w->core) != MSEC_NEVER || w->shadow->waiting > 0,
         "nothing will ever happen to this plan");
    return steps_moved_well(w, ret_why) && unknown_is_pursued(w, ret_why) &&
           run_invariant(w->shadow, w->plan, ret_why) && core_invariant(w->core, ret_why);
}

/* ---- equality ---- */

struct digest {
    uint64_t h;
};

static void mix(struct digest *d, uint64_t v)
{
    d->h ^= v;
    d->h *= UINT64_C(0x9E3779B97F4A7C15);
    d->h ^= d->h >> 29;
}

/* Times count from now on; never and long ago are themselves. */
static void mix_time(struct digest *d, const struct world *w, msec t)
{
    mix(d, t == MSEC_NEVER ? MSEC_NEVER : t - w->at.now);
}

static void mix_list(struct digest *d, const struct world *w, const struct list *list)
{
    for (uint64_t ref = list->head; ref != REF_NONE;) {
        uint32_t step;
        const struct core_run *row = core_deref(w->core, ref, &step);
        mix(d, step + 1);
        ref = row->soft[step].next;
    }
    mix(d, 0);
}

/* An epoch decides only by whose it is: current, or an old one. */
static uint64_t epoch_rank(const struct world *w, uint64_t epoch)
{
    uint64_t rank = 0;
    for (uint32_t i = 0; i < WORLD_INSTANCES; i++) {
        rank = rank * 4 + (epoch > w->at.bodies[i].epoch ? 2 : epoch == w->at.bodies[i].epoch);
    }
    return rank;
}

static void mix_step(struct digest *d, const struct world *w, const struct core_run *row,
                     uint32_t i)
{
    const struct run_step *s = &w->shadow->steps[i];
    const struct told *told = &w->at.told[i];
    mix(d, (uint64_t)s->status << 32 | (uint64_t)s->reason << 24 | (uint64_t)s->error_class << 16 |
               (uint64_t)s->review << 8 | s->granted);
    mix(d, (uint64_t)s->attempt << 32 | s->last_dep);
    mix(d, s->instance.b[15] | epoch_rank(w, s->epoch) << 8);
    /* A queued step's deadline is over and only its wait for an agent counts. */
    mix_time(d, w, s->deadline < w->at.now ? w->at.now : s->deadline);
    mix(d, (uint64_t)told->executions << 16 | (uint64_t)told->attempts << 8 | told->granted);
    if (row != NULL) {
        const struct soft_step *soft = &row->soft[i];
        mix(d, (uint64_t)soft->list << 40 | (uint64_t)soft->unsent << 32 | soft->slot);
        mix_time(d, w, row->due.keys[i]);
        if (soft->list == LIST_QUEUE) {
            const msec age = w->at.now - soft->since;
            mix(d, age < w->config.agent_wait_ms ? age : w->config.agent_wait_ms);
        }
    }
}

static void mix_request(struct digest *d, const struct world *w, const struct request *req)
{
    mix(d, req->out);
    if (req->out) {
        mix(d, (uint64_t)req->slot << 48 | (uint64_t)req->step << 32 |
                   (uint64_t)req->attempt << 16 | req->lane);
        mix(d, epoch_rank(w, req->epoch));
    }
}

static void mix_body(struct digest *d, const struct world *w, uint32_t i)
{
    const struct body *b = &w->at.bodies[i];
    struct instance_view v = {0};
    const uint32_t slot =
        registry_instance(w->core->registry, (struct uuid){.b = {[15] = (uint8_t)(i + 1)}});
    mix(d, slot);
    mix(d, epoch_rank(w, b->epoch));
    mix_request(d, w, &b->now);
    mix_request(d, w, &b->old);
    if (slot != REGISTRY_NONE && registry_instance_view(w->core->registry, slot, &v)) {
        mix(d, (uint64_t)v.lanes_up << 32 | (uint64_t)v.outstanding << 16 |
                   (uint64_t)v.control_up << 8 | (uint64_t)v.health);
        mix_time(d, w, v.last_seen);
        mix_list(d, w, &w->core->instances[slot].held);
    }
}

uint64_t world_hash(const struct world *w)
{
    struct digest d = {.h = 1};
    const struct core_run *row = core_find_run(w->core, w->at.handle);
    const struct budget *left = &w->at.left;
    mix(&d, w->shadow->status);
    mix(&d, w->shadow->outcome);
    mix(&d, w->shadow->last_agent);
    mix_time(&d, w, w->shadow->deadline);
    for (uint32_t i = 0; i < w->plan->n_steps; i++) {
        mix_step(&d, w, row, i);
    }
    if (row != NULL) {
        mix_list(&d, w, &row->ready);
        mix_list(&d, w, &row->queues[0].steps); /* one run, one agent: its ring is this queue */
    }
    mix_list(&d, w, &w->core->unknown);
    for (uint32_t i = 0; i < WORLD_INSTANCES; i++) {
        mix_body(&d, w, i);
    }
    const struct agent_view agent = registry_agent_view(w->core->registry, 0);
    if (agent.instances == 0) {
        const msec gone = w->at.now - agent.absent_since;
        mix(&d, gone < w->config.agent_wait_ms ? gone : w->config.agent_wait_ms);
    }
    mix(&d, (uint64_t)left->registrations << 40 | (uint64_t)left->restarts << 32 |
                (uint64_t)left->losses << 24 | (uint64_t)left->strays << 16 |
                (uint64_t)left->silences << 8 | (uint64_t)left->waits << 1 | left->cancel);
    return d.h;
}
