/*
 * Steps of type wait. They take no place within max_concurrency, no agent and no lane: a sleeping
 * step is a deadline, or nothing but its status.
 *
 * A time is measured by the monotonic clock; what the supervisor was down counts (replay re-bases
 * it). A date is a matter of the wall clock: it is armed as a delay, and armed again when the clock
 * was set or the machine slept. It never comes early, and late by CLOCK_JUMP_MS at most.
 *
 * Signals are counted here. Those that came early are kept by the owner, which knows their names
 * and data; CMD_SIGNAL asks it for the oldest that fits.
 */
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/core_internal.h"

enum { CLOCK_JUMP_MS = 1000 };

/* ---- the wall clock ---- */

/* How far two offsets are apart; each is a difference that may have wrapped. */
static msec apart(msec a, msec b)
{
    return a - b < b - a ? a - b : b - a;
}

bool core_clock_jumped(const struct core *c, msec now, msec wall)
{
    return c->dated.n > 0 && apart(wall - now, c->clock_offset) >= CLOCK_JUMP_MS &&
           !MUTANT(CLOCK_NOT_FOLLOWED);
}

static void arm_date(struct core *c, struct core_run *entry, uint32_t step)
{
    const msec until = entry->plan->steps[step].wait->until;
    core_set_due(c, entry, step, until > c->wall ? msec_add(c->now, until - c->wall) : c->now);
}

void core_follow_clock(struct core *c)
{
    if (c->dated.n > 0 && !core_clock_jumped(c, c->now, c->wall)) {
        return;
    }
    c->clock_offset = c->wall - c->now;
    for (uint64_t ref = c->dated.head; ref != REF_NONE;) {
        uint32_t step;
        struct core_run *entry = core_deref(c, ref, &step);
        arm_date(c, entry, step);
        ref = entry->sched[step].next;
    }
}

/* ---- sleeping ---- */

/* Asks for the oldest signal that is kept and fits. */
static void call(struct core *c, struct core_run *entry, uint32_t step)
{
    struct core_cmd *cmd = core_emit(c, CMD_SIGNAL);
    cmd->run = core_handle_of(c, entry);
    cmd->step = step;
}

void core_sleep_on(struct core *c, struct core_run *entry, uint32_t step)
{
    const struct plan_wait *wait = entry->plan->steps[step].wait;
    if (wait->what == WAIT_FOR_DATE) {
        core_link(c, entry, step, LIST_DATED, false);
        arm_date(c, entry, step);
        return;
    }
    if (wait->what == WAIT_FOR_TIME || !MUTANT(SIGNAL_WITHOUT_END)) {
        core_set_due(c, entry, step, entry->run->steps[step].deadline);
    }
    if (wait->what == WAIT_FOR_SIGNAL && entry->run->kept > 0 && !MUTANT(EARLY_SIGNAL_LOST)) {
        call(c, entry, step);
    }
}

static void wake(struct core *c, struct core_run *entry, uint32_t step, uint32_t signal,
                 struct blob_ref result)
{
    core_step_ended(
        c, entry,
        (struct record){REC_INIT(STEP_COMPLETED, step_completed, .status = STEP_COMPLETED,
                                 .signal = signal, .result = result),
                        .step = step});
}

void core_sleep(struct core *c, struct core_run *entry, uint32_t step)
{
    const struct plan_wait *wait = entry->plan->steps[step].wait;
    core_unlink(c, entry, step);
    core_record(c, entry,
                (struct record){REC_INIT(WAIT_STARTED, timed, .delay_ms = wait->ms), .step = step});
    core_sleep_on(c, entry, step); /* a wait that is over is due: the tick of this cycle ends it */
}

void core_slept(struct core *c, struct core_run *entry, uint32_t step)
{
    const struct plan_wait *wait = entry->plan->steps[step].wait;
    if (wait->what == WAIT_FOR_DATE && wait->until > c->wall && !MUTANT(DATE_BY_DELAY)) {
        arm_date(c, entry, step);
        return;
    }
    if (wait->what != WAIT_FOR_SIGNAL) {
        wake(c, entry, step, 0, (struct blob_ref){0});
        return;
    }
    const struct failure f = {.error_class = CLASS_TIMEOUT,
                              .text = core_text_ms(c, "No signal within ", wait->ms, "ms")};
    core_set_due(c, entry, step, MSEC_NEVER);
    core_give_up(c, entry, step, &f);
}

/* ---- signals ---- */

static bool waits_for(const struct core_run *entry, uint32_t step, struct str name)
{
    const struct plan_wait *wait = entry->plan->steps[step].wait;
    return entry->run->steps[step].status == STEP_SLEEPING && wait->what == WAIT_FOR_SIGNAL &&
           str_eq(wait->signal, name);
}

/* The first step that waits for it; STEP_NONE = none does. */
static uint32_t taker_of(const struct core_run *entry, struct str name)
{
    for (uint32_t i = 0; entry->run->sleeping > 0 && i < entry->run->n_steps; i++) {
        if (waits_for(entry, i, name)) {
            return i;
        }
    }
    return STEP_NONE;
}

static enum core_reject check(const struct core_run *entry, const struct core_event *ev,
                              uint32_t taker)
{
    if (entry == NULL) {
        return REJECT_UNKNOWN_RUN;
    }
    if (entry->run->cancelling) {
        return REJECT_CANCELLING;
    }
    if (entry->run->job != JOB_NONE) {
        return REJECT_JOB;
    }
    if (CORE_EV(ev, signal)->serial != 0) { /* it was kept, and asked for */
        return taker == STEP_NONE || entry->run->kept == 0 ? REJECT_NOT_WAITING : REJECT_NONE;
    }
    if (entry->run->signals >= LIMIT_SIGNALS) {
        return REJECT_TOO_MUCH;
    }
    return taker == STEP_NONE && entry->run->kept >= LIMIT_SIGNALS_KEPT &&
                   !MUTANT(SIGNALS_UNLIMITED)
               ? REJECT_SIGNALS
               : REJECT_NONE;
}

void core_on_signal(struct core *c, const struct core_event *ev)
{
    struct core_run *entry = core_find_run(c, ev->run);
    const struct core_ev_signal *signal = CORE_EV(ev, signal);
    const bool kept = signal->serial != 0;
    uint32_t taker = STEP_NONE;
    if (entry != NULL && kept) {
        taker = ev->step < entry->run->n_steps && waits_for(entry, ev->step, ev->text) ? ev->step
                                                                                       : STEP_NONE;
    } else if (entry != NULL) {
        taker = taker_of(entry, ev->text);
    }
    const enum core_reject why = check(entry, ev, taker);
    if (why != REJECT_NONE) {
        core_reject(c, ev, why);
        return;
    }
    const uint32_t serial = kept ? signal->serial : entry->run->signals + 1;
    if (!kept) {
        core_record(c, entry,
                    (struct record){REC_INIT(SIGNAL_RECEIVED, signal, .serial = serial,
                                             .digest = signal->digest, .key = signal->key,
                                             .result = signal->result),
                                    .step = STEP_NONE, .text = ev->text});
    }
    if (taker == STEP_NONE) {
        return;
    }
    /* One that is kept may have the name, and comes first. */
    const uint32_t others = entry->run->kept - (kept ? 0 : 1);
    if (!kept && others > 0 && others < LIMIT_SIGNALS_KEPT && !MUTANT(SIGNAL_OVERTAKES)) {
        call(c, entry, taker);
        return;
    }
    wake(c, entry, taker, serial, signal->result);
}
