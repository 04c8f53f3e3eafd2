/* The invariants of the core between two events. For tests and debug builds; cost O(everything). */
#include "supervisor/core/sched/fair.h"

#define CHECK(cond, why)                                                                           \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            *ret_why = (why);                                                                      \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

static bool list_fits(const struct core_run *entry, uint32_t step, const char **ret_why)
{
    const enum step_status status = entry->run->steps[step].status;
    const enum list_kind list = entry->sched[step].list;
    const bool waits =
        list == LIST_QUEUE || list == LIST_BUDGET || list == LIST_PARKED || list == LIST_KEY;
    CHECK(list != LIST_LOST, "a lost attempt was left unresolved");
    CHECK(!step_is_final(status) || list == LIST_NONE, "a step that ended is still in a list");
    CHECK(status != STEP_PENDING || list == LIST_NONE, "a pending step is in a list");
    CHECK(status != STEP_READY || list == LIST_READY || list == LIST_QUEUE || list == LIST_BUDGET ||
              list == LIST_CONDITION || list == LIST_KEY || entry->run->status == PLAN_PENDING ||
              entry->run->cancelling /* these never begin */,
          "a ready step waits for nothing");
    const bool child =
        entry->plan->steps[step].type == STEP_TYPE_PLAN || run_step_calls(&entry->run->steps[step]);
    CHECK(status != STEP_IN_PROGRESS || list == (child ? LIST_CHILD : LIST_HELD) ||
              (waits && !child),
          "an attempt without an instance");
    CHECK(list != LIST_CHILD || status == STEP_IN_PROGRESS, "a child plan of no attempt");
    CHECK(status != STEP_UNKNOWN || list == LIST_UNKNOWN || waits,
          "an unknown outcome outside its list");
    CHECK(status != STEP_BACKOFF || list == LIST_NONE || waits, "between attempts, but in a list");
    CHECK(status != STEP_CHECKING || list == LIST_NONE || list == LIST_HELD || waits,
          "a question in a list of attempts");
    CHECK((list == LIST_DATED) ==
              (status == STEP_SLEEPING && entry->plan->steps[step].wait->what == WAIT_FOR_DATE),
          "a step that waits for a date, or none, in the list of dates");
    CHECK(status != STEP_SLEEPING || list == LIST_NONE || list == LIST_DATED,
          "a step that waits for a time or a signal in a list of attempts");
    CHECK(status != STEP_WAITING || list == LIST_NONE, "waits for a person and in a list");
    return true;
}

static bool due_fits(const struct core *c, const struct core_run *entry, uint32_t step,
                     const char **ret_why)
{
    const struct run_step *state = &entry->run->steps[step];
    const msec due = core_entry_heap(entry).keys[step];
    const bool hopeless =
        entry->sched[step].list == LIST_QUEUE && core_agent_unavailable(c, entry, step);
    switch ((enum list_kind)entry->sched[step].list) {
    case LIST_QUEUE:
        CHECK(due != MSEC_NEVER, "a queued step that nothing wakes");
        CHECK(!hopeless || due <= c->now, "it waits for an agent that gave up and is not there");
        CHECK(state->status != STEP_CHECKING || state->deadline == MSEC_NEVER ||
                  due == state->deadline || hopeless,
              "a question is due at another time than its deadline");
        CHECK(state->status == STEP_CHECKING || due <= core_wait_end(entry, step),
              "a queued step may wait longer than its limit");
        break;
    case LIST_BUDGET:
        CHECK(due == core_wait_end(entry, step),
              "a step that waits for the budget is due at another time than its limit");
        break;
    case LIST_KEY:
        CHECK(due == core_wait_end(entry, step),
              "a step that waits for its key is due at another time than its limit");
        break;
    case LIST_PARKED:
        CHECK(due == core_parked_due(entry, step), "a parked step is due without a reason");
        break;
    case LIST_HELD: /* a question whose time was renewed keeps its earlier key in the heap */
        CHECK(state->status == STEP_CHECKING ? due <= state->deadline
                                             : due == core_held_due(c, entry, step),
              "due at another time than deadline or silence");
        break;
    case LIST_CHILD:
        CHECK(due == (entry->run->cancelling ? MSEC_NEVER : state->deadline),
              "a child plan is due at another time than its step");
        break;
    case LIST_UNKNOWN:
        CHECK(due == state->deadline, "due at another time than the deadline");
        break;
    case LIST_NONE:
        CHECK(state->status == STEP_CHECKING
                  ? due <= state->deadline /* the cooldown before a replan */
                  : due == (state->status == STEP_BACKOFF || state->status == STEP_WAITING ||
                                    state->status == STEP_SLEEPING
                                ? state->deadline
                                : MSEC_NEVER),
              "due without a reason, or a retry that nothing wakes");
        break;
    case LIST_DATED:
        CHECK(due != MSEC_NEVER, "a step that waits for a date and that nothing wakes");
        break;
    case LIST_READY:
    case LIST_CONDITION:
    case LIST_LOST:
    case LIST_KIND_COUNT:
        CHECK(due == MSEC_NEVER, "a step that waits for its turn is due");
        break;
    }
    return true;
}

static bool run_holds(const struct core *c, const struct core_run *entry, const char **ret_why)
{
    const struct run *run = entry->run;
    const uint32_t queued = entry->queued;
    uint32_t doomed = 0;
    if (!run_invariant(run, entry->plan, ret_why) || !core_run_queues_hold(c, entry, ret_why)) {
        return false;
    }
    CHECK(!plan_is_final(run->status), "a plan that ended is still open");
    CHECK(run->open > 0 || run->job != JOB_NONE ||
              run->status == PLAN_PENDING /* it waits for its sign-off */,
          "all steps are over and the plan is not");
    for (uint32_t i = 0; i < run->n_steps; i++) {
        if (!list_fits(entry, i, ret_why) || !due_fits(c, entry, i, ret_why)) {
            return false;
        }
        doomed += run_step_doom(run, entry->plan, i) != REASON_NONE ? 1 : 0;
    }
    CHECK(run->status != PLAN_PENDING || run->job != JOB_NONE || run->paused != 0,
          "a plan that has not begun waits for nothing");
    CHECK(doomed == 0 || run->cancelling || run->status == PLAN_PENDING,
          "a step can never start and was not skipped");
    CHECK(run_places(run) + queued <= run_concurrency(entry->plan), "max_concurrency");
    CHECK(entry->ready.n == 0 || core_on_hold(entry) ||
              (run_places(run) + queued == run_concurrency(entry->plan) &&
               !core_needs_no_place(entry, entry->ready.head)),
          "a ready step is held back without a reason");
    CHECK(core_on_hold(entry) || run->active + queued + entry->conditions.n > 0,
          "nothing is under way and nothing can begin");
    const struct heap due = core_entry_heap(entry);
    CHECK(heap_ok(&due, run->n_steps), "the heap of the steps");
    CHECK(c->due.keys[entry - c->runs] == core_entry_due(c, entry),
          "the run is due at another time than its steps");
    CHECK(run->status == PLAN_PENDING || run->job != JOB_NONE || run->cancelling ||
              run->open == 0 || !run_needs_signoff(run, entry->plan) ||
              (run->paused & 1u << PAUSE_SIGNOFF) != 0,
          "a plan goes on that nobody signed off");
    return true;
}

static bool lists_hold(const struct core *c, const char **ret_why)
{
    uint32_t listed = c->unknown.n + c->dated.n;
    uint32_t expected = 0;
    if (!core_list_holds(c, &c->unknown, LIST_UNKNOWN, ret_why) ||
        !core_list_holds(c, &c->dated, LIST_DATED, ret_why)) {
        return false;
    }
    for (uint32_t i = 0; i < registry_instances(c->registry); i++) {
        struct instance_view view;
        const struct list *held = &c->instances[i].held;
        if (!core_list_holds(c, held, LIST_HELD, ret_why)) {
            return false;
        }
        CHECK(held->n == 0 || registry_instance_view(c->registry, i, &view),
              "attempts with an instance that is gone");
        for (uint64_t ref = held->head; ref != REF_NONE;) {
            uint32_t step;
            const struct core_run *entry = core_deref(c, ref, &step);
            CHECK(entry->run->steps[step].status == STEP_CHECKING ||
                      uuid_eq(entry->run->steps[step].instance, view.id),
                  "held by another instance");
            CHECK(entry->sched[step].slot == i, "held by another slot");
            ref = entry->sched[step].next;
        }
        listed += held->n;
    }
    for (uint32_t i = 0; i < c->runs_made; i++) {
        const struct core_run *entry = &c->runs[i];
        for (uint32_t s = 0; entry->run != NULL && s < entry->run->n_steps; s++) {
            const enum list_kind kind = entry->sched[s].list;
            expected += kind == LIST_HELD || kind == LIST_UNKNOWN || kind == LIST_DATED ? 1 : 0;
            CHECK(kind != LIST_NONE || entry->sched[s].prev == REF_NONE, "a link without a list");
            CHECK(core_deref(c, core_ref(c, entry, s), &(uint32_t){0}) == entry,
                  "a ref leads elsewhere");
        }
    }
    CHECK(listed == expected, "a step is in a list that does not know it");
    return true;
}

bool core_invariant(const struct core *c, const char **ret_why)
{
    uint32_t open = 0;
    CHECK(c->lost.n == 0, "lost attempts were left unresolved");
    for (uint32_t i = 0; i < c->runs_made; i++) {
        if (c->runs[i].run == NULL) {
            CHECK(c->due.keys[i] == MSEC_NEVER, "a free slot is due");
            continue;
        }
        open++;
        if (!run_holds(c, &c->runs[i], ret_why)) {
            return false;
        }
    }
    CHECK(open == c->open, "count of open runs");
    CHECK(heap_ok(&c->due, c->runs_made), "the heap of the runs");
    return lists_hold(c, ret_why) && core_queues_hold(c, ret_why) && core_keys_hold(c, ret_why);
}
#undef CHECK
