/* Changes of a running plan by people (M064): pause, resume, skip, cancel steps, revise. */
#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/core_internal.h"

/* A plan that has not begun can be held back from its concurrency key. */
static bool waits_for_key(const struct core_run *entry, const struct core_event *ev)
{
    return (ev->type == CORE_PAUSE || ev->type == CORE_RESUME) &&
           (entry->run->paused & 1u << PAUSE_KEY) != 0;
}

/* The run, if it can be changed; otherwise the rejection is emitted. A paused plan can be resumed
 * during its synthesis: its steps may be retried. */
static struct core_run *open_run(struct core *c, const struct core_event *ev)
{
    struct core_run *entry = core_find_run(c, ev->run);
    enum core_reject why = REJECT_NONE;
    if (entry == NULL) {
        why = REJECT_UNKNOWN_RUN;
    } else if (entry->run->job == JOB_COMPENSATION) {
        why = REJECT_UNDOING;
    } else if (entry->run->cancelling) {
        why = REJECT_CANCELLING;
    } else if (entry->run->job != JOB_NONE && !MUTANT(CHANGED_AT_JOB) &&
               !(entry->run->job == JOB_SYNTHESIS && ev->type == CORE_RESUME)) {
        why = REJECT_JOB;
    } else if (entry->run->status == PLAN_PENDING && !waits_for_key(entry, ev) &&
               !MUTANT(CHANGED_AT_JOB)) {
        why = REJECT_NOT_WAITING; /* it waits for its sign-off */
    }
    if (why != REJECT_NONE) {
        core_reject(c, ev, why);
        return NULL;
    }
    return entry;
}

void core_on_pause(struct core *c, const struct core_event *ev)
{
    struct core_run *entry = open_run(c, ev);
    if (entry == NULL) {
        return;
    }
    if ((entry->run->paused & 1u << PAUSE_REQUESTED) != 0) {
        core_reject(c, ev, REJECT_PAUSED);
        return;
    }
    core_record(c, entry,
                (struct record){REC_INIT(PLAN_PAUSED, pause, .reason = PAUSE_REQUESTED),
                                .step = STEP_NONE, .text = ev->text});
    core_key_pause(c, entry);
    core_park(c, entry);
    core_children_tell(c, entry, CMD_CHILD_PAUSE);
}

void core_on_resume(struct core *c, const struct core_event *ev)
{
    struct core_run *entry = open_run(c, ev);
    if (entry == NULL) {
        return;
    }
    if ((entry->run->paused & 1u << PAUSE_REQUESTED) == 0) {
        core_reject(c, ev, REJECT_NOT_WAITING);
        return;
    }
    core_record(c, entry,
                (struct record){REC_INIT(PLAN_RESUMED, pause, .reason = PAUSE_REQUESTED),
                                .step = STEP_NONE, .text = ev->text});
    core_key_resume(c, entry);
    if (entry->run->status == PLAN_PENDING) {
        return; /* it has not begun, and waits for its key again */
    }
    core_children_tell(c, entry, CMD_CHILD_RESUME);
    core_unpark(
        c, entry); /* also the question to the replanner, for which the other steps keep waiting */
    core_advance(c, entry);
}

/* ---- skipping ---- */

static bool is_open(const struct core_run *entry, uint32_t step)
{
    return !step_is_final(entry->run->steps[step].status);
}

/* Whether the run still has the revision that the client knew. */
static bool is_expected(const struct core_run *entry, uint32_t revision)
{
    return revision == 0 || revision == entry->run->revision || MUTANT(EXPECT_IGNORED);
}

static enum core_reject check_modify(const struct core_event *ev, const struct core_run *entry)
{
    const struct core_ev_modify *change = CORE_EV(ev, modify);
    if (!is_expected(entry, change->expect)) {
        return REJECT_REVISION;
    }
    if (entry->run->revision >= LIMIT_REVISIONS) {
        return REJECT_TOO_MUCH;
    }
    switch (change->kind) {
    case MODIFY_CONVERSATION_ONLY:
        return REJECT_NONE;
    case MODIFY_SKIP_TO_STEP:
        return ev->step >= entry->run->n_steps ? REJECT_NO_STEP
               : !is_open(entry, ev->step)     ? REJECT_FINAL
                                               : REJECT_NONE;
    case MODIFY_SKIP_STEPS:
    case MODIFY_CANCEL_STEP:
        for (uint32_t i = 0; i < change->n_steps; i++) {
            if (change->steps[i] >= entry->run->n_steps) {
                return REJECT_NO_STEP;
            }
            if (!is_open(entry, change->steps[i]) && !MUTANT(TERMINAL_OVERWRITTEN)) {
                return REJECT_FINAL;
            }
        }
        return change->n_steps == 0 ? REJECT_NO_STEP : REJECT_NONE;
    case MODIFY_INSERT:
    case MODIFY_REPLACE:
    case MODIFY_KIND_COUNT:
        break;
    }
    return REJECT_NOT_WAITING;
}

/* Ends one step for a person. If an instance has it, it gets a cancel request and its result is
 * rejected. */
static void end_by_person(struct core *c, struct core_run *entry, uint32_t step, bool cancel,
                          struct str why)
{
    const bool out = core_is_out(entry, step);
    const struct holder who = core_holder(c, entry, step);
    if (!is_open(entry, step) && !MUTANT(TERMINAL_OVERWRITTEN)) {
        return;
    }
    core_end_step(c, entry,
                  (struct record){REC_INIT(STEP_COMPLETED, step_completed,
                                           .status = cancel ? STEP_CANCELLED : STEP_SKIPPED,
                                           .reason = cancel ? REASON_USER_CANCEL : REASON_USER_SKIP,
                                           .error_class = cancel ? CLASS_CANCELLED : CLASS_NONE,
                                           .stop = out ? STOP_FENCED : STOP_NONE),
                                  .step = step, .text = why});
    if (out) {
        core_emit_cancel(c, entry, step, &who, why);
    }
}

void core_on_modify(struct core *c, const struct core_event *ev)
{
    struct core_run *entry = open_run(c, ev);
    if (entry == NULL) {
        return;
    }
    const enum core_reject why = check_modify(ev, entry);
    if (why != REJECT_NONE) {
        core_reject(c, ev, why);
        return;
    }
    const struct core_ev_modify *change = CORE_EV(ev, modify);
    const bool skip_to = change->kind == MODIFY_SKIP_TO_STEP;
    core_record(c, entry,
                (struct record){REC_INIT(PLAN_MODIFIED, revision, .modify = change->kind,
                                         .revision = entry->run->revision + 1),
                                .step = skip_to ? ev->step : STEP_NONE, .text = ev->text});
    if (change->kind == MODIFY_CONVERSATION_ONLY) {
        return;
    }
    const bool cancel = change->kind == MODIFY_CANCEL_STEP;
    const uint32_t n = skip_to ? ev->step : change->n_steps;
    c->quiet = true;
    for (uint32_t i = 0; i < n; i++) {
        end_by_person(c, entry, skip_to ? i : change->steps[i], cancel, ev->text);
    }
    for (uint32_t i = 0; i < n; i++) {
        core_settle(c, entry, skip_to ? i : change->steps[i]);
    }
    core_emit_waiting(c, entry);
    core_advance(c, entry);
}

/* ---- a new plan ---- */

void core_on_revise(struct core *c, const struct core_event *ev)
{
    struct core_run *entry = open_run(c, ev);
    if (entry == NULL) {
        return;
    }
    const struct core_ev_revise *change = CORE_EV(ev, revise);
    enum core_reject why = REJECT_NONE;
    if (!is_expected(entry, change->expect)) {
        why = REJECT_REVISION;
    } else if (change->kind != MODIFY_INSERT && change->kind != MODIFY_REPLACE) {
        why = REJECT_NOT_WAITING;
    } else if (entry->run->replanning > 0 || change->next.document.id == 0) {
        why = REJECT_NOT_WAITING; /* the replanner's revision comes first */
    } else if (!core_revise(
                   c, entry, &change->next,
                   (struct record){REC_INIT(PLAN_MODIFIED, revision, .modify = change->kind),
                                   .step = STEP_NONE, .text = ev->text})) {
        why = REJECT_BEGUN;
    }
    if (why != REJECT_NONE) {
        core_reject(c, ev, why);
    }
}

uint32_t core_revision(const struct core *c, uint64_t handle)
{
    const struct core_run *entry = core_find_run(c, handle);
    return entry == NULL ? 0 : entry->run->revision;
}
