/*
 * Concurrency keys and rates.
 *
 * A plan has its key from its start until its end, a step from its first attempt until it is over,
 * also between attempts: both follow from records, so a restart loses none. Who finds no place
 * waits in turn, by priority and time (core_turn). A place that becomes free tells the next one to
 * go on. A step still needs a lane then; when it finds the place taken, it waits at the front
 * again.
 *
 * A rate remembers its last starts. What was started before a restart, the owner reports.
 */
#include <stddef.h>

#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/fair.h"

enum {
    CORE_AGE_MS = 30000, /* of waiting are worth one priority */
    /* Steps that were told to go on and found no lane are not waited for any longer than this. */
    WOKEN_MS = 1000,
    WAKE_AT_ONCE = 64
};

/* ---- windows ---- */

/* The start number `i` of those in the ring, from the oldest. */
static msec start_at(const struct core_window *w, uint32_t i)
{
    const uint32_t first = w->used < w->rate.n ? 0 : w->next;
    return w->starts[(first + i) % w->rate.n];
}

static msec end_of(const struct core_window *w, msec start)
{
    return msec_add(start, w->rate.per_ms - (MUTANT(RATE_EARLY) && w->rate.per_ms > 0 ? 1 : 0));
}

void window_set(struct core_window *w, struct core_rate rate, msec *starts)
{
    const struct core_window before = *w;
    const uint32_t n = before.used < rate.n ? before.used : rate.n;
    *w = (struct core_window){.rate = rate, .starts = rate.n > 0 ? starts : NULL};
    for (uint32_t i = 0; i < n; i++) {
        window_add(w, start_at(&before, before.used - n + i));
    }
}

void window_add(struct core_window *w, msec now)
{
    if (w->rate.n == 0) {
        return;
    }
    w->starts[w->next] = now;
    w->next = (w->next + 1) % w->rate.n;
    w->used += w->used < w->rate.n ? 1 : 0;
}

msec window_opens(const struct core_window *w)
{
    return w->rate.n == 0 || w->used < w->rate.n ? 0 : end_of(w, start_at(w, 0));
}

bool window_is_open(const struct core_window *w, msec now)
{
    return window_opens(w) <= now;
}

uint32_t window_room(const struct core_window *w, msec now, uint32_t most)
{
    if (w->rate.n == 0) {
        return most;
    }
    uint32_t room = w->rate.n - w->used;
    for (uint32_t i = 0; i < w->used && room < most && end_of(w, start_at(w, i)) <= now; i++) {
        room++;
    }
    return room < most ? room : most;
}

bool window_is_over(const struct core_window *w, msec now)
{
    return w->used == 0 || end_of(w, start_at(w, w->used - 1)) <= now;
}

/* ---- turns ---- */

uint32_t core_priority(const struct core_run *entry)
{
    const uint32_t p = entry->plan->priority;
    return MUTANT(PRIORITY_IGNORED) ? 0 : p <= PLAN_PRIORITY_MAX ? p : PLAN_PRIORITY_MAX;
}

msec core_turn(msec since, uint32_t priority)
{
    const msec age = MUTANT(PRIORITY_STARVES) ? MSEC_NEVER / 16 : CORE_AGE_MS;
    return msec_add(since, (PLAN_PRIORITY_MAX - priority) * age);
}

/* ---- keys ---- */

static struct core_key *key_at(const struct core *c, const struct plan *plan, uint32_t at)
{
    const uint32_t key = at < plan->keys.n ? plan->keys.at[at] : KEY_NONE;
    ASSERT(key == KEY_NONE || key < c->config.keys);
    return key == KEY_NONE ? NULL : &c->keys[key];
}

struct core_key *core_key_of_run(const struct core *c, const struct core_run *entry)
{
    const struct plan *plan = entry->plan;
    const bool works = plan->job == JOB_NONE && !plan->planning.pending; /* it has steps */
    return plan->keyed && works ? key_at(c, plan, 0) : NULL;
}

struct core_key *core_key_of_step(const struct core *c, const struct core_run *entry, uint32_t step)
{
    const uint32_t key = entry->plan->steps[step].key;
    return key == 0 ? NULL : key_at(c, entry->plan, key - 1);
}

static uint32_t number_of(const struct core *c, const struct core_key *key)
{
    return (uint32_t)(key - c->keys);
}

/* Somebody may go on: looked at before this event is over. */
static void freshen(struct core *c, struct core_key *key)
{
    if (key->fresh || (key->runs.n == 0 && key->steps.n == 0)) {
        return;
    }
    key->fresh = true;
    key->next_woken = UINT32_MAX;
    if (c->woken_keys.head == UINT32_MAX) {
        c->woken_keys.head = number_of(c, key);
    } else {
        c->keys[c->woken_keys.tail].next_woken = number_of(c, key);
    }
    c->woken_keys.tail = number_of(c, key);
}

static bool has_place(const struct core_key *key, uint32_t more)
{
    return key->max == 0 || key->held + more < key->max || MUTANT(KEY_SHARED);
}

/* When its rate lets somebody start, it is looked at again. */
static void arm(struct core *c, const struct core_key *key, msec when)
{
    heap_set(&c->opens, c->config.registry.agents + number_of(c, key), when);
}

bool core_key_is_idle(const struct core *c, uint32_t key)
{
    const struct core_key *k = &c->keys[key];
    return k->held == 0 && k->runs.n == 0 && k->steps.n == 0 && window_is_over(&k->rate, c->now);
}

void core_key_rule(struct core *c, uint32_t key, uint32_t max, struct core_rate rate, msec *starts)
{
    ASSERT(key < c->config.keys);
    c->keys[key].max = max;
    window_set(&c->keys[key].rate, rate, starts);
    freshen(c, &c->keys[key]);
}

void core_key_was_started(struct core *c, uint32_t key, msec when)
{
    ASSERT(key < c->config.keys);
    window_add(&c->keys[key].rate, when);
}

/* ---- rates of agents ---- */

void core_agent_rate(struct core *c, uint32_t agent, struct core_rate rate, msec *starts)
{
    ASSERT(agent < c->config.registry.agents);
    window_set(&c->agents[agent].rate, rate, starts);
    if (c->agents[agent].ring.n > 0) {
        heap_set(&c->opens, agent, c->now); /* outside an event: the next tick looks at it */
    }
}

void core_agent_started(struct core *c, uint32_t agent, msec when)
{
    ASSERT(agent < c->config.registry.agents);
    window_add(&c->agents[agent].rate, when);
}

bool core_agent_rate_allows(struct core *c, uint32_t agent)
{
    const struct core_window *rate = &c->agents[agent].rate;
    if (window_is_open(rate, c->now)) {
        return true;
    }
    heap_set(&c->opens, agent, window_opens(rate));
    return false;
}

void core_rates_open(struct core *c)
{
    while (heap_min(&c->opens) <= c->now) {
        const uint32_t at = heap_top(&c->opens);
        heap_set(&c->opens, at, MSEC_NEVER);
        if (at < c->config.registry.agents) {
            core_mark_dirty(c, at);
        } else {
            struct core_key *key = &c->keys[at - c->config.registry.agents];
            key->woken = 0;
            freshen(c, key);
        }
    }
}

/* ---- steps ---- */

bool core_key_allows(const struct core *c, const struct core_run *entry, uint32_t step)
{
    const struct sched_step *sched = &entry->sched[step];
    const struct core_key *key = core_key_of_step(c, entry, step);
    const bool woken = (sched->holds & HOLDS_TURN) != 0;
    if (key == NULL || entry->run->steps[step].status == STEP_CHECKING) {
        return true;
    }
    return (sched->keyed || has_place(key, 0)) && window_is_open(&key->rate, c->now) &&
           (woken || sched->keyed || key->steps.n == 0 /* else it waits after the others */);
}

void core_key_wait(struct core *c, struct core_run *entry, uint32_t step)
{
    struct sched_step *sched = &entry->sched[step];
    struct core_key *key = core_key_of_step(c, entry, step);
    const bool again = (sched->holds & HOLDS_TURN) != 0;
    core_unlink(c, entry, step);
    sched->last_sign = again ? sched->last_sign : c->now;
    core_link(c, entry, step, LIST_KEY, again || sched->keyed);
    core_set_due(c, entry, step, core_wait_end(entry, step));
    if (!window_is_open(&key->rate, c->now)) {
        arm(c, key, window_opens(&key->rate));
    } else {
        freshen(c, key);
    }
}

void core_key_turn_over(struct core *c, struct core_run *entry, uint32_t step)
{
    struct core_key *key = core_key_of_step(c, entry, step);
    key->woken -= key->woken > 0 ? 1 : 0;
    freshen(c, key);
}

void core_key_started(struct core *c, struct core_run *entry, uint32_t step, uint32_t agent)
{
    struct core_key *key = core_key_of_step(c, entry, step);
    window_add(&c->agents[agent].rate, c->now);
    if (key == NULL || entry->run->steps[step].status == STEP_CHECKING) {
        return;
    }
    window_add(&key->rate, c->now);
    key->held += entry->sched[step].keyed ? 0 : 1;
    entry->sched[step].keyed = true;
}

void core_key_step_over(struct core *c, struct core_run *entry, uint32_t step)
{
    struct core_key *key = core_key_of_step(c, entry, step);
    if (!entry->sched[step].keyed) {
        return;
    }
    ASSERT(key != NULL && key->held > 0);
    entry->sched[step].keyed = false;
    key->held--;
    freshen(c, key);
}

void core_key_recover_step(struct core *c, struct core_run *entry, uint32_t step)
{
    const struct run_step *state = &entry->run->steps[step];
    struct core_key *key = core_key_of_step(c, entry, step);
    if (key == NULL || state->attempt == 0 || !run_step_is_active(state->status) ||
        MUTANT(KEY_FORGOTTEN)) {
        return;
    }
    entry->sched[step].keyed = true;
    key->held++;
}

/* Those that have the key already and wait for its rate stand at the front of their list. */
static uint64_t next_step(const struct core *c, const struct core_key *key)
{
    uint64_t best = REF_NONE;
    msec earliest = MSEC_NEVER;
    for (uint32_t p = PLAN_PRIORITY_MAX + 1; key->steps.n > 0 && p > 0; p--) {
        const uint64_t ref = key->steps.of[p - 1].head;
        uint32_t step;
        const struct core_run *entry = ref == REF_NONE ? NULL : core_deref(c, ref, &step);
        if (entry == NULL) {
            continue;
        }
        const bool keyed = entry->sched[step].keyed;
        const msec turn = keyed ? 0 : core_turn(entry->sched[step].last_sign, p - 1);
        if (turn < earliest) {
            earliest = turn;
            best = ref;
        }
    }
    return best;
}

static void wake_steps(struct core *c, struct core_key *key)
{
    while (key->steps.n > 0 && key->woken < WAKE_AT_ONCE &&
           key->woken < window_room(&key->rate, c->now, WAKE_AT_ONCE)) {
        uint32_t step;
        struct core_run *entry = core_deref(c, next_step(c, key), &step);
        if (!entry->sched[step].keyed && !has_place(key, key->woken)) {
            break;
        }
        const msec since = entry->sched[step].last_sign;
        core_unlink(c, entry, step);
        core_enqueue(c, entry, step, true);
        entry->sched[step].last_sign = since;
        if (entry->sched[step].list == LIST_QUEUE) {
            entry->sched[step].holds |= HOLDS_TURN;
            key->woken++;
        }
    }
    if (key->steps.n == 0) {
        return;
    }
    if (!window_is_open(&key->rate, c->now)) {
        arm(c, key, window_opens(&key->rate));
    } else if (key->woken > 0) {
        arm(c, key, msec_add(c->now, WOKEN_MS));
    }
}

/* ---- plans ---- */

static struct core_run *run_at(const struct core *c, uint64_t slot)
{
    ASSERT(slot < c->config.runs_max && c->runs[slot].run != NULL);
    return &c->runs[slot];
}

static struct list *run_list(struct core_key *key, const struct core_run *entry)
{
    return entry->key_list == KEY_LIST_HOLDS ? &key->holders : &key->runs.of[core_priority(entry)];
}

static void list_put(struct core *c, struct core_run *entry, enum key_list kind, bool front)
{
    struct core_key *key = core_key_of_run(c, entry);
    ASSERT(entry->key_list == KEY_LIST_NONE);
    entry->key_list = (uint8_t)kind;
    struct list *list = run_list(key, entry);
    const uint64_t slot = (uint64_t)(entry - c->runs);
    entry->key_prev = front ? REF_NONE : list->tail;
    entry->key_next = front ? list->head : REF_NONE;
    *(entry->key_prev != REF_NONE ? &run_at(c, entry->key_prev)->key_next : &list->head) = slot;
    *(entry->key_next != REF_NONE ? &run_at(c, entry->key_next)->key_prev : &list->tail) = slot;
    list->n++;
    key->runs.n += kind == KEY_LIST_WAITS ? 1 : 0;
    key->held += kind == KEY_LIST_HOLDS ? 1 : 0;
}

static void list_take(struct core *c, struct core_run *entry)
{
    struct core_key *key = core_key_of_run(c, entry);
    struct list *list = run_list(key, entry);
    *(entry->key_prev != REF_NONE ? &run_at(c, entry->key_prev)->key_next : &list->head) =
        entry->key_next;
    *(entry->key_next != REF_NONE ? &run_at(c, entry->key_next)->key_prev : &list->tail) =
        entry->key_prev;
    list->n--;
    key->runs.n -= entry->key_list == KEY_LIST_WAITS ? 1 : 0;
    key->held -= entry->key_list == KEY_LIST_HOLDS ? 1 : 0;
    entry->key_prev = entry->key_next = REF_NONE;
    entry->key_list = KEY_LIST_NONE;
}

static void take_key(struct core *c, struct core_run *entry)
{
    window_add(&core_key_of_run(c, entry)->rate, c->now);
    list_put(c, entry, KEY_LIST_HOLDS, false);
}

static uint64_t next_run(const struct core *c, const struct core_key *key)
{
    uint64_t best = REF_NONE;
    msec earliest = MSEC_NEVER;
    for (uint32_t p = PLAN_PRIORITY_MAX + 1; key->runs.n > 0 && p > 0; p--) {
        const uint64_t slot = key->runs.of[p - 1].head;
        const msec turn =
            slot == REF_NONE ? MSEC_NEVER : core_turn(run_at(c, slot)->key_since, p - 1);
        if (turn < earliest) {
            earliest = turn;
            best = slot;
        }
    }
    return best;
}

static void wait_for_key(struct core *c, struct core_run *entry)
{
    struct core_key *key = core_key_of_run(c, entry);
    entry->key_since = c->now;
    list_put(c, entry, KEY_LIST_WAITS, false);
    freshen(c, key);
}

/* It ends without being told: whoever cancels it has done so, or its failure is being undone, which
 * nothing cuts short. */
static bool ends_by_itself(const struct core_run *entry)
{
    return entry->run->cancelling || entry->run->job == JOB_COMPENSATION;
}

/* The newest plan wins: all that wait end, and the oldest ones that have the key as well. */
static void cancel_older(struct core *c, struct core_key *key, struct str name)
{
    const struct str why = core_text_pair(c, "A newer plan has the concurrencyKey ", name);
    uint32_t staying = 0;
    for (uint64_t slot; (slot = next_run(c, key)) != REF_NONE;) {
        core_cancel_run(c, run_at(c, slot), why); /* it has not begun: it ends at once */
    }
    for (uint64_t slot = key->holders.head; slot != REF_NONE; slot = run_at(c, slot)->key_next) {
        staying += ends_by_itself(run_at(c, slot)) ? 0 : 1;
    }
    for (uint64_t slot = key->holders.head; slot != REF_NONE && key->max > 0;) {
        struct core_run *entry = run_at(c, slot);
        slot = entry->key_next;
        if (staying >= key->max && !ends_by_itself(entry)) {
            staying--;
            core_cancel_run(c, entry, why);
        }
    }
}

bool core_key_enter(struct core *c, struct core_run *entry)
{
    struct core_key *key = core_key_of_run(c, entry);
    if (key == NULL) {
        return true;
    }
    const struct str name = entry->plan->keys.names[0];
    if (entry->plan->overlap == KEY_CANCEL) {
        cancel_older(c, key, name);
    }
    if (!c->recovering && key->runs.n == 0 && has_place(key, 0) &&
        window_is_open(&key->rate, c->now)) {
        take_key(c, entry);
        return true;
    }
    if (entry->plan->overlap == KEY_SKIP && !c->recovering && !MUTANT(SKIP_WAITS)) {
        core_plan_cancelled(
            c, entry,
            core_text_pair(c, "overlap is skip, and no place is free of the concurrencyKey ",
                           name));
        return false;
    }
    core_record(c, entry,
                (struct record){REC_INIT(PLAN_PAUSED, pause, .reason = PAUSE_KEY),
                                .step = STEP_NONE, .text = name});
    wait_for_key(c, entry);
    core_rearm(c, entry); /* the time of its review, if there was one, is over */
    return false;
}

void core_key_recover(struct core *c, struct core_run *entry)
{
    if (core_key_of_run(c, entry) == NULL) {
        return;
    }
    if (entry->run->status != PLAN_PENDING) {
        if (!MUTANT(KEY_FORGOTTEN)) {
            list_put(c, entry, KEY_LIST_HOLDS, false);
        }
    } else if ((entry->run->paused & 1u << PAUSE_REQUESTED) == 0) {
        wait_for_key(c, entry);
    }
}

void core_key_leave(struct core *c, struct core_run *entry)
{
    if (entry->key_list != KEY_LIST_NONE) {
        list_take(c, entry);
        freshen(c, core_key_of_run(c, entry));
    }
}

void core_key_pause(struct core *c, struct core_run *entry)
{
    if (entry->key_list == KEY_LIST_WAITS) {
        list_take(c, entry);
    }
}

void core_key_resume(struct core *c, struct core_run *entry)
{
    if ((entry->run->paused & 1u << PAUSE_KEY) != 0 && entry->key_list == KEY_LIST_NONE) {
        wait_for_key(c, entry);
    }
}

static void wake_runs(struct core *c, struct core_key *key)
{
    while (key->runs.n > 0 && has_place(key, 0) && window_is_open(&key->rate, c->now)) {
        struct core_run *entry = run_at(c, next_run(c, key));
        list_take(c, entry);
        core_record(c, entry,
                    (struct record){REC_INIT(PLAN_RESUMED, pause, .reason = PAUSE_KEY),
                                    .step = STEP_NONE, .text = entry->plan->keys.names[0]});
        take_key(c, entry);
        core_started(c, entry);
    }
    if (key->runs.n > 0 && !window_is_open(&key->rate, c->now)) {
        arm(c, key, window_opens(&key->rate));
    }
}

void core_keys_wake(struct core *c)
{
    while (c->woken_keys.head != UINT32_MAX && !c->recovering &&
           c->text_used <= CORE_TEXT_BYTES / 2) {
        struct core_key *key = &c->keys[c->woken_keys.head];
        c->woken_keys.head = key->next_woken;
        key->fresh = false;
        wake_steps(c, key);
        wake_runs(c, key);
    }
}
