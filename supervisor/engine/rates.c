#include "supervisor/engine/rates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/engine/engine_internal.h"

#define NO_SLOT UINT32_MAX
/* The longest window that a configuration may have; older starts are deleted. */
#define WINDOW_MAX_MS (7ull * 24 * 3600 * 1000)

/* ---- rules ---- */

static const struct engine_rule *rule_of(const struct rates *r, struct str name, bool of_key)
{
    for (uint32_t i = 0; i < r->n_rules; i++) {
        if (r->rules[i].of_key == of_key && str_eq(str_from(r->rules[i].name), name)) {
            return &r->rules[i];
        }
    }
    return NULL;
}

/* Memory for the rule's starts; the ring of before is the core's until it has the new one. */
static bool new_ring(const struct engine_rule *rule, struct rate_ring *ret)
{
    *ret = (struct rate_ring){.n = rule == NULL ? 0 : rule->n};
    ret->starts = ret->n > 0 ? calloc(ret->n, sizeof *ret->starts) : NULL;
    return ret->n == 0 || ret->starts != NULL;
}

static struct core_rate core_rate_of(const struct engine_rule *rule)
{
    return rule == NULL ? (struct core_rate){0} : (struct core_rate){rule->n, rule->per_ms};
}

static void replace(struct rate_ring *io, const struct rate_ring *with)
{
    free(io->starts);
    const uint32_t place = with->n > 0 ? io->place % with->n : 0;
    *io = *with;
    io->place = place;
}

static bool set_agent(struct engine *engine, struct str id)
{
    struct rates *r = &engine->rates;
    const struct engine_rule *rule = rule_of(r, id, false);
    const uint32_t agent = registry_agent_configure(engine->registry, id, engine->now);
    struct rate_ring ring;

    if (agent == REGISTRY_NONE) {
        log_warn("rates.agent", "agent=%.*s no room: raise limits.maxAgents", STR_ARG(id));
        return true;
    }
    if (!new_ring(rule, &ring)) {
        return false;
    }
    core_agent_rate(engine->core, agent, core_rate_of(rule), ring.starts);
    replace(&r->agents[agent], &ring);
    return true;
}

static struct str key_name(const struct key_slot *slot)
{
    enum { KIND = sizeof "plan/" - 1 };
    return (struct str){slot->name + KIND, slot->len - KIND};
}

static bool set_key(struct engine *engine, uint32_t at)
{
    struct key_slot *slot = &engine->rates.keys[at];
    const struct engine_rule *rule = rule_of(&engine->rates, key_name(slot), true);
    struct rate_ring ring;

    if (!new_ring(rule, &ring)) {
        return false;
    }
    core_key_rule(engine->core, at, rule == NULL ? 1 : rule->max, core_rate_of(rule), ring.starts);
    replace(&slot->ring, &ring);
    return true;
}

/* ---- slots of keys ---- */

static bool in_use(const struct rates *r, uint32_t at)
{
    return r->keys[at].len > 0;
}

static void free_slot(struct engine *engine, uint32_t at)
{
    struct rates *r = &engine->rates;
    struct key_slot *slot = &r->keys[at];

    core_key_rule(engine->core, at, 1, (struct core_rate){0}, NULL);
    free(slot->ring.starts);
    (void)map_remove(&r->by_name, (struct str){slot->name, slot->len});
    *slot = (struct key_slot){.next_free = r->free};
    r->free = at;
}

/* Numbers of keys that only a rate kept. */
static void sweep(struct engine *engine)
{
    struct rates *r = &engine->rates;

    for (uint32_t i = 0; i < r->used; i++) {
        if (in_use(r, i) && r->keys[i].plans == 0 && core_key_is_idle(engine->core, i)) {
            free_slot(engine, i);
        }
    }
}

static uint32_t next_slot(struct engine *engine)
{
    struct rates *r = &engine->rates;

    if (r->free == NO_SLOT && r->used == LIMIT_KEYS) {
        sweep(engine);
    }
    if (r->free != NO_SLOT) {
        const uint32_t at = r->free;
        r->free = r->keys[at].next_free;
        return at;
    }
    return r->used < LIMIT_KEYS ? r->used++ : NO_SLOT;
}

/* The slot of plan/NAME or step/NAME, made when there is none; NO_SLOT: no room. */
static uint32_t slot_of(struct engine *engine, struct str whole)
{
    struct rates *r = &engine->rates;
    uint32_t at = map_get(&r->by_name, whole);
    struct key_slot *slot;

    if (at != MAP_NONE || whole.len >= RATE_NAME_MAX) {
        return at != MAP_NONE ? at : NO_SLOT;
    }
    at = next_slot(engine);
    if (at == NO_SLOT) {
        return NO_SLOT;
    }
    slot = &r->keys[at];
    *slot = (struct key_slot){.len = (uint32_t)whole.len};
    memcpy(slot->name, whole.ptr, whole.len);
    if (map_put(&r->by_name, (struct str){slot->name, slot->len}, at) != BT_OK ||
        !set_key(engine, at)) {
        free_slot(engine, at);
        return NO_SLOT;
    }
    return at;
}

/* ---- plans ---- */

static bool around_has(struct engine *engine, const struct plan *plan)
{
    const struct open_plan *p;
    uint32_t depth = 0;

    for (const struct plan *at = plan; at->child.kind != CHILD_OF_NONE && depth < 64; depth++) {
        p = open_plan_by_id(engine, at->child.of);
        if (p == NULL) {
            return false;
        }
        at = p->plan;
        if (at->keyed && str_eq(at->keys.names[0], plan->keys.names[0])) {
            return true;
        }
    }
    return false;
}

enum bt_code rates_take(struct engine *engine, struct plan *plan, struct bt_error *err)
{
    for (uint32_t i = 0; i < plan->keys.n; i++) {
        char whole[RATE_NAME_MAX];
        const bool own = i == 0 && plan->keyed;

        plan->keys.at[i] = KEY_NONE;
        if (own && around_has(engine, plan)) {
            continue;
        }
        (void)snprintf(whole, sizeof whole, "%s/%.*s", own ? "plan" : "step",
                       STR_ARG(plan->keys.names[i]));
        plan->keys.at[i] = slot_of(engine, str_from(whole));
        if (plan->keys.at[i] == NO_SLOT) {
            plan->keys.at[i] = KEY_NONE;
            rates_drop(engine, plan);
            return err_set(err, BT_BUSY,
                           "%u concurrencyKeys are in use, as many as may be; try again when some "
                           "plans have ended",
                           (unsigned)LIMIT_KEYS);
        }
        engine->rates.keys[plan->keys.at[i]].plans++;
    }
    return BT_OK;
}

void rates_drop(struct engine *engine, const struct plan *plan)
{
    struct rates *r = &engine->rates;

    for (uint32_t i = 0; i < plan->keys.n; i++) {
        const uint32_t at = plan->keys.at[i];
        if (at == KEY_NONE) {
            continue;
        }
        plan->keys.at[i] = KEY_NONE;
        r->keys[at].plans--;
        if (r->keys[at].plans == 0 && core_key_is_idle(engine->core, at)) {
            free_slot(engine, at);
        }
    }
}

/* ---- starts ---- */

static enum bt_code note(struct engine *engine, const char *kind, struct str name,
                         struct rate_ring *ring, struct bt_error *err)
{
    char whole[RATE_NAME_MAX];
    const uint32_t place = ring->place;

    if (ring->n == 0) {
        return BT_OK;
    }
    ring->place = (place + 1) % ring->n;
    (void)snprintf(whole, sizeof whole, "%s/%.*s", kind, STR_ARG(name));
    return journal_start_put(engine->journal, str_from(whole), place, engine->wall, err);
}

enum bt_code rates_dispatched(struct engine *engine, const struct core_cmd *cmd,
                              struct bt_error *err)
{
    const struct open_plan *p = open_plan_of_run(engine, cmd->run);
    struct instance_view to;
    enum bt_code code = BT_OK;
    uint32_t key;

    if (registry_instance_view(engine->registry, cmd->slot, &to)) {
        code = note(engine, "agent", registry_agent_view(engine->registry, to.agent).id,
                    &engine->rates.agents[to.agent], err);
    }
    if (code != BT_OK || p == NULL || cmd->phase > PHASE_SEARCH) {
        return code;
    }
    key = p->plan->steps[cmd->step].key;
    return key == 0 || p->plan->keys.at[key - 1] == KEY_NONE
               ? BT_OK
               : note(engine, "step", p->plan->keys.names[key - 1],
                      &engine->rates.keys[p->plan->keys.at[key - 1]].ring, err);
}

enum bt_code rates_plan_started(struct engine *engine, const struct plan *plan,
                                struct bt_error *err)
{
    return !plan->keyed || plan->keys.at[0] == KEY_NONE
               ? BT_OK
               : note(engine, "plan", plan->keys.names[0],
                      &engine->rates.keys[plan->keys.at[0]].ring, err);
}

struct reading {
    struct engine *engine;
    uint32_t lost;
};

static void take_start(struct str name, uint32_t place, uint64_t wall, void *self)
{
    static const char AGENT[] = "agent/";
    struct reading *reading = self;
    struct engine *engine = reading->engine;
    struct rates *r = &engine->rates;
    const uint64_t age = wall < engine->wall ? engine->wall - wall : 0;
    const msec when = age < engine->now ? engine->now - age : 0;
    const bool agent = name.len >= sizeof AGENT && memcmp(name.ptr, AGENT, sizeof AGENT - 1) == 0;
    const size_t kind = agent ? sizeof AGENT - 1 : sizeof "plan/" - 1;
    const struct str id = {name.ptr + kind, name.len > kind ? name.len - kind : 0};
    const struct engine_rule *rule = id.len > 0 ? rule_of(r, id, !agent) : NULL;
    struct rate_ring *ring;
    uint32_t at;

    if (rule == NULL || rule->n == 0 || age >= rule->per_ms) {
        return; /* no rate counts it any more */
    }
    at = agent ? registry_agent(engine->registry, id) : slot_of(engine, name);
    if (at == (agent ? REGISTRY_NONE : NO_SLOT)) {
        reading->lost++;
        return;
    }
    ring = agent ? &r->agents[at] : &r->keys[at].ring;
    ring->place = (place + 1) % rule->n;
    if (agent) {
        core_agent_started(engine->core, at, when);
    } else {
        core_key_was_started(engine->core, at, when);
    }
}

static uint64_t oldest(const struct engine *engine)
{
    return engine->wall > WINDOW_MAX_MS ? engine->wall - WINDOW_MAX_MS : 0;
}

enum bt_code rates_recovered(struct engine *engine, struct bt_error *err)
{
    return journal_starts_drop(engine->journal, oldest(engine), err);
}

enum bt_code rates_recover(struct engine *engine, struct bt_error *err)
{
    struct reading reading = {.engine = engine};
    const enum bt_code code =
        journal_starts(engine->journal, oldest(engine), take_start, &reading, err);

    if (reading.lost > 0) {
        log_warn("rates.lost", "starts=%u there is no room for their keys", reading.lost);
    }
    return code;
}

/* ---- the whole ---- */

enum bt_code rates_set(struct engine *engine, const struct engine_rule *rules, uint32_t n_rules,
                       struct bt_error *err)
{
    struct rates *r = &engine->rates;
    const struct engine_rule *old = r->rules;
    const uint32_t n_old = r->n_rules;
    bool ok = true;

    r->rules = rules;
    r->n_rules = n_rules;
    for (uint32_t i = 0; ok && i < n_old; i++) {
        ok = old[i].of_key || set_agent(engine, str_from(old[i].name)); /* it may have none now */
    }
    for (uint32_t i = 0; ok && i < n_rules; i++) {
        ok = rules[i].of_key || set_agent(engine, str_from(rules[i].name));
    }
    for (uint32_t i = 0; ok && i < r->used; i++) {
        ok = !in_use(r, i) || set_key(engine, i);
    }
    return ok ? BT_OK : err_set(err, BT_NOMEM, "out of memory for %u rules", n_rules);
}

enum bt_code rates_init(struct engine *engine, struct bt_error *err)
{
    struct rates *r = &engine->rates;

    *r = (struct rates){.free = NO_SLOT, .agents_max = engine->opt.agents_max};
    r->keys = calloc(LIMIT_KEYS, sizeof *r->keys);
    r->agents = calloc(r->agents_max, sizeof *r->agents);
    if (r->keys == NULL || r->agents == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for %u keys", (unsigned)LIMIT_KEYS);
    }
    return rates_set(engine, engine->opt.rules, engine->opt.n_rules, err);
}

void rates_done(struct rates *r)
{
    for (uint32_t i = 0; r->keys != NULL && i < r->used; i++) {
        free(r->keys[i].ring.starts);
    }
    for (uint32_t i = 0; r->agents != NULL && i < r->agents_max; i++) {
        free(r->agents[i].starts);
    }
    free(r->keys);
    free(r->agents);
    map_done(&r->by_name);
    *r = (struct rates){0};
}
