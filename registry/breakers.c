/* The breakers of all instances and agents: their inputs, deadlines and probes. */
#include "protocol/base/assert.h"
#include "registry/registry_internal.h"

/* ---- entries and lists ---- */

static bool is_on(const struct registry *r)
{
    return r->lim.breaker_failures > 0;
}

static uint32_t of_agent(const struct registry *r, uint32_t agent)
{
    return r->lim.instances + agent;
}

static struct breaker_entry *entry_of(const struct registry *r, uint32_t ix)
{
    return &registry_breaker_entries(r)[ix];
}

/* An agent opens after twice as many failures: many instances may fail once each before one of them
 * fails often. */
static struct breaker_limits limits_of(const struct registry *r, uint32_t ix)
{
    const uint32_t n = r->lim.breaker_failures;
    return (struct breaker_limits){.failures = ix < r->lim.instances ? n : 2 * n,
                                   .cooldown_ms = r->lim.breaker_cooldown_ms,
                                   .cooldown_max_ms = r->lim.breaker_cooldown_max_ms,
                                   .probe_ms = r->lim.breaker_probe_ms};
}

void registry_breakers_init(struct registry *r)
{
    for (uint32_t i = 0; i < BREAKER_LISTS; i++) {
        r->breaker_first[i] = r->breaker_last[i] = REGISTRY_NONE;
    }
    for (uint32_t i = 0; i < r->lim.instances + r->lim.agents; i++) {
        *entry_of(r, i) = (struct breaker_entry){.b = breaker_closed(), .list = REGISTRY_NONE};
    }
    if (is_on(r)) {
        const struct breaker_limits lim = limits_of(r, 0);
        ASSERT(lim.failures <= UINT32_MAX / 2 && lim.cooldown_ms >= 1 && lim.probe_ms >= 1);
        ASSERT(lim.cooldown_ms <= lim.cooldown_max_ms &&
               breaker_cooldown(&lim, BREAKER_LEVELS - 1) == lim.cooldown_max_ms);
    }
}

static void unlink_entry(struct registry *r, uint32_t ix)
{
    struct breaker_entry *entry = entry_of(r, ix);
    if (entry->list == REGISTRY_NONE) {
        return;
    }
    if (entry->prev != REGISTRY_NONE) {
        entry_of(r, entry->prev)->next = entry->next;
    } else {
        r->breaker_first[entry->list] = entry->next;
    }
    if (entry->next != REGISTRY_NONE) {
        entry_of(r, entry->next)->prev = entry->prev;
    } else {
        r->breaker_last[entry->list] = entry->prev;
    }
    entry->list = REGISTRY_NONE;
}

/* All entries of a list have the same duration, so its order is the order of the deadlines. */
static void link_entry(struct registry *r, uint32_t ix)
{
    struct breaker_entry *entry = entry_of(r, ix);
    if (entry->b.state != BREAKER_OPEN && entry->b.state != BREAKER_PROBING) {
        return;
    }
    entry->list = entry->b.state == BREAKER_OPEN ? entry->b.level : (uint32_t)BREAKER_PROBES;
    entry->prev = r->breaker_last[entry->list];
    entry->next = REGISTRY_NONE;
    if (entry->prev != REGISTRY_NONE) {
        entry_of(r, entry->prev)->next = ix;
    } else {
        r->breaker_first[entry->list] = ix;
    }
    r->breaker_last[entry->list] = ix;
}

/* Keeps the agent's count of instances that are not CLOSED. */
static void count_not_closed(struct registry *r, uint32_t ix, enum breaker_state from,
                             enum breaker_state to)
{
    if (ix < r->lim.instances) {
        struct agent_entry *owner =
            &registry_agent_entries(r)[registry_instance_entries(r)[ix].agent];
        owner->n_not_closed += to != BREAKER_CLOSED ? 1 : 0;
        owner->n_not_closed -= from != BREAKER_CLOSED ? 1 : 0;
    }
}

/* Applies an input to the breaker of an instance or agent. Returns true when more work may start
 * there than before. */
static bool apply_input(struct registry *r, uint32_t ix, enum breaker_input in)
{
    if (!is_on(r)) {
        return false;
    }
    struct breaker_entry *entry = entry_of(r, ix);
    const enum breaker_state from = entry->b.state;
    const struct breaker_limits lim = limits_of(r, ix);
    const bool changed = breaker_move(&entry->b, &lim, in, r->now);
    if (changed || in == BREAKER_IN_POSTPONED) {
        unlink_entry(r, ix);
        link_entry(r, ix);
    }
    if (changed) {
        count_not_closed(r, ix, from, entry->b.state);
        r->breakers_opened += from == BREAKER_CLOSED ? 1 : 0;
    }
    return changed && breaker_allows_work(&entry->b);
}

static void close_entry(struct registry *r, uint32_t ix)
{
    struct breaker_entry *entry = entry_of(r, ix);
    unlink_entry(r, ix);
    count_not_closed(r, ix, entry->b.state, BREAKER_CLOSED);
    entry->b = breaker_closed();
}

/* ---- queries ---- */

bool registry_breaker_allows(const struct registry *r, uint32_t slot)
{
    return breaker_allows_work(&entry_of(r, slot)->b);
}

bool registry_breaker_allows_agent(const struct registry *r, uint32_t agent)
{
    return breaker_allows_work(&entry_of(r, of_agent(r, agent))->b);
}

static struct breaker_view view_of(const struct breaker *b)
{
    return (struct breaker_view){.state = b->state,
                                 .failures = b->failures,
                                 .retry_at = b->state == BREAKER_OPEN ? b->until : MSEC_NEVER};
}

struct breaker_view registry_breaker_view(const struct registry *r, uint32_t slot)
{
    return view_of(&entry_of(r, slot)->b);
}

struct breaker_view registry_breaker_agent_view(const struct registry *r, uint32_t agent)
{
    const struct instance_entry *entries = registry_instance_entries(r);
    const struct agent_entry *owner = &registry_agent_entries(r)[agent];
    struct breaker_view view = view_of(&entry_of(r, of_agent(r, agent))->b);
    if (view.state != BREAKER_CLOSED || owner->n_not_closed < owner->instances) {
        return view;
    }
    for (uint32_t slot = owner->first; slot != REGISTRY_NONE; slot = entries[slot].agent_next) {
        const struct breaker_view one = registry_breaker_view(r, slot);
        view.state = one.state > view.state ? one.state : view.state;
        view.retry_at = one.retry_at < view.retry_at ? one.retry_at : view.retry_at;
    }
    view.retry_at = view.state == BREAKER_OPEN ? view.retry_at : MSEC_NEVER;
    return view;
}

uint64_t registry_breakers_opened(const struct registry *r)
{
    return r->breakers_opened;
}

/* ---- attempts ---- */

static void taken(struct registry *r, uint32_t ix, uint32_t slot, uint32_t lane)
{
    struct breaker_entry *entry = entry_of(r, ix);
    if (entry->b.state == BREAKER_HALF_OPEN) {
        entry->trial_slot = slot;
        entry->trial_lane = lane;
        (void)apply_input(r, ix, BREAKER_IN_TAKEN);
    }
}

void registry_breaker_taken(struct registry *r, uint32_t slot, uint32_t lane)
{
    taken(r, slot, slot, lane);
    taken(r, of_agent(r, registry_instance_entries(r)[slot].agent), slot, lane);
}

/* The trial's lane is free. Its result may be reported before or after. */
static void released(struct registry *r, uint32_t ix, uint32_t slot, uint32_t lane)
{
    const struct breaker_entry *entry = entry_of(r, ix);
    if (entry->b.state == BREAKER_TRIAL && entry->trial_slot == slot && entry->trial_lane == lane) {
        (void)apply_input(r, ix, BREAKER_IN_UNDECIDED);
    }
}

void registry_breaker_released(struct registry *r, uint32_t slot, uint32_t lane)
{
    released(r, slot, slot, lane);
    released(r, of_agent(r, registry_instance_entries(r)[slot].agent), slot, lane);
}

void registry_breaker_end_incarnation(struct registry *r, uint32_t slot)
{
    struct instance_entry *entry = &registry_instance_entries(r)[slot];
    const uint32_t ix = of_agent(r, entry->agent);
    const struct breaker_entry *agent = entry_of(r, ix);
    entry->previous = (struct previous_incarnation){.epoch = entry->epoch, .agent = entry->agent};
    close_entry(r, slot);
    if (agent->b.state == BREAKER_TRIAL && agent->trial_slot == slot) {
        (void)apply_input(r, ix, BREAKER_IN_UNDECIDED);
    } else if (agent->b.state == BREAKER_PROBING && agent->probe_slot == slot) {
        (void)apply_input(r, ix, BREAKER_IN_PROBE_FAILED);
    }
}

void registry_breaker_reset_agent(struct registry *r, uint32_t agent)
{
    const struct instance_entry *entries = registry_instance_entries(r);
    close_entry(r, of_agent(r, agent));
    for (uint32_t slot = registry_agent_entries(r)[agent].first; slot != REGISTRY_NONE;
         slot = entries[slot].agent_next) {
        close_entry(r, slot);
    }
}

void registry_breaker_forget_agent(struct registry *r, uint32_t agent)
{
    registry_breaker_reset_agent(r, agent);
    for (uint32_t slot = 0; slot < r->n_slots; slot++) {
        struct previous_incarnation *previous = &registry_instance_entries(r)[slot].previous;
        if (previous->agent == agent) {
            *previous = (struct previous_incarnation){.epoch = 0};
        }
    }
}

/* A broken pipe or process ends all attempts on it. Returns true when that failure was counted
 * already. */
static bool already_counted(struct registry *r, uint32_t slot, enum err_class cls)
{
    struct instance_entry *entry = &registry_instance_entries(r)[slot];
    if (cls != CLASS_REPLY_LOST && cls != CLASS_AGENT_CRASHED) {
        return false;
    }
    const bool counted = entry->connection_lost_at == r->now;
    entry->connection_lost_at = r->now;
    return counted;
}

uint32_t registry_breaker_result(struct registry *r, uint32_t slot, uint64_t epoch,
                                 enum err_class cls, msec now)
{
    const enum breaker_verdict verdict = breaker_verdict(cls);
    registry_advance_time(r, now);
    if (slot >= r->n_slots || verdict == BREAKER_VERDICT_IGNORED) {
        return REGISTRY_NONE;
    }
    struct instance_entry *entry = &registry_instance_entries(r)[slot];
    const enum breaker_input in =
        verdict == BREAKER_VERDICT_SUCCESS ? BREAKER_IN_SUCCESS : BREAKER_IN_FAILURE;
    uint32_t agent = entry->agent;
    bool allows_more = false;
    if (registry_is_current(r, slot, epoch)) {
        if (already_counted(r, slot, cls)) {
            return REGISTRY_NONE;
        }
        allows_more = apply_input(r, slot, in);
    } else if (epoch == 0 || entry->previous.epoch != epoch ||
               (in == BREAKER_IN_FAILURE && entry->previous.failed)) {
        return REGISTRY_NONE;
    } else {
        agent = entry->previous.agent;
        entry->previous.failed = entry->previous.failed || in == BREAKER_IN_FAILURE;
    }
    allows_more = apply_input(r, of_agent(r, agent), in) || allows_more;
    return allows_more ? agent : REGISTRY_NONE;
}

/* ---- time and probes ---- */

/* Returns the entry that is due first; at the same time, the one of the first list. */
static uint32_t first_due(const struct registry *r, msec *ret_when)
{
    uint32_t best = REGISTRY_NONE;
    *ret_when = MSEC_NEVER;
    for (uint32_t i = 0; i < BREAKER_LISTS; i++) {
        const uint32_t ix = r->breaker_first[i];
        if (ix != REGISTRY_NONE && entry_of(r, ix)->b.until < *ret_when) {
            *ret_when = entry_of(r, ix)->b.until;
            best = ix;
        }
    }
    return best;
}

msec registry_breaker_deadline(const struct registry *r)
{
    msec when;
    (void)first_due(r, &when);
    return when;
}

static bool can_be_probed(const struct instance_entry *entry)
{
    return entry->health == HEALTH_HEALTHY && entry->control_up;
}

/* Returns the instance to ping for an agent: one whose own breaker allows work. Others are not
 * pinged early, because that would make their own cooldown useless. */
static uint32_t probe_target(const struct registry *r, uint32_t agent)
{
    const struct instance_entry *entries = registry_instance_entries(r);
    uint32_t best = REGISTRY_NONE;
    for (uint32_t slot = registry_agent_entries(r)[agent].first; slot != REGISTRY_NONE;
         slot = entries[slot].agent_next) {
        if (can_be_probed(&entries[slot]) && !entries[slot].draining &&
            registry_breaker_allows(r, slot) && slot < best) {
            best = slot;
        }
    }
    return best;
}

uint32_t registry_breaker_due(struct registry *r, msec now)
{
    now = registry_advance_time(r, now);
    for (;;) {
        msec when;
        const uint32_t ix = first_due(r, &when);
        if (ix == REGISTRY_NONE || when > now) {
            return REGISTRY_NONE;
        }
        struct breaker_entry *entry = entry_of(r, ix);
        if (entry->b.state == BREAKER_PROBING) {
            (void)apply_input(r, ix, BREAKER_IN_DUE);
            continue;
        }
        uint32_t probed = ix;
        if (ix >= r->lim.instances) {
            probed = probe_target(r, ix - r->lim.instances);
        } else if (!can_be_probed(&registry_instance_entries(r)[ix])) {
            probed = REGISTRY_NONE;
        }
        if (probed == REGISTRY_NONE) {
            (void)apply_input(r, ix, BREAKER_IN_POSTPONED);
            continue;
        }
        entry->probe_slot = probed;
        (void)apply_input(r, ix, BREAKER_IN_DUE);
        return probed;
    }
}

uint32_t registry_breaker_probed(struct registry *r, uint32_t slot, bool ok, msec now)
{
    registry_advance_time(r, now);
    ASSERT(registry_is_live(r, slot));
    const enum breaker_input in = ok ? BREAKER_IN_PROBE_OK : BREAKER_IN_PROBE_FAILED;
    const uint32_t agent = registry_instance_entries(r)[slot].agent;
    bool allows_more = apply_input(r, slot, in);
    if (entry_of(r, of_agent(r, agent))->probe_slot == slot) {
        allows_more = apply_input(r, of_agent(r, agent), in) || allows_more;
    }
    return allows_more ? agent : REGISTRY_NONE;
}
