/* What must hold in the core between two events. For tests and debug builds: looks at everything.
 */
#include "supervisor/core/core_internal.h"

#define CHECK(cond, why)                                                                           \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            *ret_why = (why);                                                                      \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

/* Every member says that it is in this list and the links fit together. */
static bool list_holds(const struct core *c, const struct list *list, enum list_kind kind,
                       const char **ret_why)
{
    uint64_t prev = REF_NONE;
    uint32_t n = 0;
    for (uint64_t ref = list->head; ref != REF_NONE;) {
        uint32_t step;
        const struct core_run *row = core_deref(c, ref, &step);
        const struct soft_step *soft = &row->soft[step];
        CHECK(soft->list == kind, "a step in another list than it says");
        CHECK(soft->prev == prev, "a list's links do not fit");
        CHECK(n < list->n, "a list is longer than it says");
        n++;
        prev = ref;
        ref = soft->next;
    }
    CHECK(list->tail == prev && n == list->n, "a list's end or length");
    return true;
}

static bool list_fits(const struct core_run *row, uint32_t step, const char **ret_why)
{
    const enum step_status status = row->run->steps[step].status;
    const enum list_kind list = row->soft[step].list;
    CHECK(list != LIST_LOST, "a lost attempt was left unresolved");
    CHECK(!step_is_final(status) || list == LIST_NONE, "a step that ended is still in a list");
    CHECK(status != STEP_PENDING || list == LIST_NONE, "a pending step is in a list");
    CHECK(status != STEP_READY || list == LIST_READY || list == LIST_QUEUE,
          "a ready step waits for nothing");
    CHECK(status != STEP_IN_PROGRESS || list == LIST_HELD || list == LIST_QUEUE,
          "an attempt that nobody has");
    CHECK(status != STEP_UNKNOWN || list == LIST_UNKNOWN || list == LIST_QUEUE,
          "an unknown outcome that nobody waits for");
    CHECK(status != STEP_BACKOFF || list == LIST_NONE || list == LIST_QUEUE,
          "between attempts, but in a list");
    CHECK(status != STEP_WAITING || list == LIST_NONE, "waits for a person and in a list");
    return true;
}

static bool due_fits(const struct core_run *row, uint32_t step, const char **ret_why)
{
    const struct run_step *state = &row->run->steps[step];
    const msec due = row->due.keys[step];
    switch ((enum list_kind)row->soft[step].list) {
    case LIST_QUEUE:
        CHECK(due != MSEC_NEVER, "a queued step that nothing wakes");
        break;
    case LIST_HELD:
    case LIST_UNKNOWN:
        CHECK(due == state->deadline, "due at another time than the deadline");
        break;
    case LIST_NONE:
        CHECK(due == (state->status == STEP_BACKOFF ? state->deadline : MSEC_NEVER),
              "due without a reason, or a retry that nothing wakes");
        break;
    case LIST_READY:
    case LIST_LOST:
    case LIST_KIND_COUNT:
        CHECK(due == MSEC_NEVER, "a step that waits for its turn is due");
        break;
    }
    return true;
}

static bool run_holds(const struct core *c, const struct core_run *row, const char **ret_why)
{
    const struct run *run = row->run;
    uint32_t queued = 0;
    uint32_t doomed = 0;
    if (!run_invariant(run, row->plan, ret_why) ||
        !list_holds(c, &row->ready, LIST_READY, ret_why)) {
        return false;
    }
    CHECK(!plan_is_final(run->status), "a plan that ended is still open");
    CHECK(run->open > 0, "all steps are over and the plan is not");
    for (uint32_t i = 0; i < run->n_steps; i++) {
        if (!list_fits(row, i, ret_why) || !due_fits(row, i, ret_why)) {
            return false;
        }
        queued += row->soft[i].list == LIST_QUEUE && run->steps[i].status == STEP_READY ? 1 : 0;
        doomed += run_step_is_doomed(run, row->plan, i) ? 1 : 0;
    }
    CHECK(doomed == 0, "a step can never start and was not skipped");
    CHECK(queued == row->queued, "count of queued steps");
    CHECK(run->active + queued <= run_concurrency(row->plan), "max_concurrency");
    CHECK(row->ready.n == 0 || run->active + queued == run_concurrency(row->plan),
          "a ready step is held back without a reason");
    CHECK(run->active + queued > 0, "nothing is under way and nothing can begin");
    CHECK(heap_ok(&row->due, run->n_steps), "the heap of the steps");
    const msec steps = heap_min(&row->due);
    CHECK(c->due.keys[row - c->runs] == (steps < run->deadline ? steps : run->deadline),
          "the run is due at another time than its steps");
    return true;
}

static bool lists_hold(const struct core *c, const char **ret_why)
{
    uint32_t listed = c->unknown.n;
    uint32_t expected = 0;
    if (!list_holds(c, &c->unknown, LIST_UNKNOWN, ret_why)) {
        return false;
    }
    for (uint32_t i = 0; i < registry_agents(c->registry); i++) {
        const struct list *queue = &c->agents[i].queue;
        if (!list_holds(c, queue, LIST_QUEUE, ret_why)) {
            return false;
        }
        CHECK(queue->n == 0 || registry_select(c->registry, i) == REGISTRY_NONE,
              "a step waits although a lane is free");
        CHECK(!c->agents[i].dirty, "an agent was left dirty");
        listed += queue->n;
    }
    for (uint32_t i = 0; i < registry_instances(c->registry); i++) {
        struct instance_view view;
        const struct list *held = &c->instances[i].held;
        if (!list_holds(c, held, LIST_HELD, ret_why)) {
            return false;
        }
        CHECK(held->n == 0 || registry_instance_view(c->registry, i, &view),
              "attempts with an instance that is gone");
        for (uint64_t ref = held->head; ref != REF_NONE;) {
            uint32_t step;
            const struct core_run *row = core_deref(c, ref, &step);
            CHECK(uuid_eq(row->run->steps[step].instance, view.id), "held by another instance");
            ref = row->soft[step].next;
        }
        listed += held->n;
    }
    for (uint32_t i = 0; i < c->config.runs_max; i++) {
        const struct core_run *row = &c->runs[i];
        for (uint32_t s = 0; row->run != NULL && s < row->run->n_steps; s++) {
            const enum list_kind kind = row->soft[s].list;
            expected += kind != LIST_NONE && kind != LIST_READY ? 1 : 0;
            CHECK(kind != LIST_NONE || row->soft[s].prev == REF_NONE, "a link without a list");
            CHECK(core_deref(c, core_ref(c, row, s), &(uint32_t){0}) == row,
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
    for (uint32_t i = 0; i < c->config.runs_max; i++) {
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
    CHECK(heap_ok(&c->due, c->config.runs_max), "the heap of the runs");
    return lists_hold(c, ret_why);
}
#undef CHECK
