/* The memory block and its agents. */
#include "registry/registry.h"

#include "protocol/base/assert.h"
#include "protocol/base/utf8.h"
#include "registry/card.h"
#include "registry/registry_internal.h"

const char *health_name(enum health h)
{
    static const char *const names[] = {
        [HEALTH_DEAD] = "dead",
        [HEALTH_HEALTHY] = "healthy",
        [HEALTH_SUSPECT] = "suspect",
    };
    _Static_assert(sizeof names / sizeof names[0] == HEALTH_COUNT, "a name for every health");
    ASSERT((unsigned)h < HEALTH_COUNT);
    return names[h];
}

/* ---- the block ---- */

/* A power of two, at least twice n, so that probes stay short. */
static uint32_t table_size(uint32_t n)
{
    uint32_t size = 4;
    while (size < 2 * n) {
        size *= 2;
    }
    return size;
}

struct layout {
    size_t agents, instances, breakers, agent_table, instance_table, total;
};

static size_t aligned(size_t n)
{
    const size_t to = sizeof(uint64_t) * 2;
    return (n + to - 1) / to * to;
}

static struct layout layout_of(const struct registry_limits *lim)
{
    struct layout l;
    l.agents = aligned(sizeof(struct registry));
    l.instances = aligned(l.agents + lim->agents * sizeof(struct agent_entry));
    l.breakers = aligned(l.instances + lim->instances * sizeof(struct instance_entry));
    l.agent_table =
        aligned(l.breakers + (lim->instances + lim->agents) * sizeof(struct breaker_entry));
    l.instance_table = aligned(l.agent_table + table_size(lim->agents) * sizeof(uint32_t));
    l.total = aligned(l.instance_table + table_size(lim->instances) * sizeof(uint32_t));
    return l;
}

size_t registry_size(const struct registry_limits *lim)
{
    return layout_of(lim).total;
}

struct registry *registry_init(void *mem, const struct registry_limits *lim)
{
    ASSERT(lim->agents >= 1 && lim->agents <= LIMIT_AGENTS);
    ASSERT(lim->instances >= 1 && lim->instances <= LIMIT_INSTANCES);
    ASSERT(lim->suspect_ms > 0 && lim->suspect_ms < lim->lease_ms);
    const struct layout l = layout_of(lim);
    memset(mem, 0, l.total);
    struct registry *r = mem;
    r->lim = *lim;
    r->lease_ms = lim->lease_ms;
    r->suspect_ms = lim->suspect_ms;
    r->epoch = lim->epoch_base;
    r->absence = MSEC_NEVER;
    r->ended_first = r->ended_last = REGISTRY_NONE;
    r->agent_mask = table_size(lim->agents) - 1;
    r->instance_mask = table_size(lim->instances) - 1;
    r->agents_at = (uint32_t)l.agents;
    r->instances_at = (uint32_t)l.instances;
    r->breakers_at = (uint32_t)l.breakers;
    r->agent_table_at = (uint32_t)l.agent_table;
    r->instance_table_at = (uint32_t)l.instance_table;
    for (uint32_t h = 0; h < HEALTH_COUNT; h++) {
        r->oldest[h] = r->newest[h] = REGISTRY_NONE;
    }
    for (uint32_t i = 0; i <= r->agent_mask; i++) {
        registry_agent_table(r)[i] = REGISTRY_NONE;
    }
    for (uint32_t i = 0; i <= r->instance_mask; i++) {
        registry_instance_table(r)[i] = REGISTRY_NONE;
    }
    registry_breakers_init(r);
    return r;
}

uint32_t registry_count_bits(uint64_t v)
{
    uint32_t n = 0;
    for (; v != 0; v &= v - 1) {
        n++;
    }
    return n;
}

/* ---- agents ---- */

static struct str agent_id(const struct agent_entry *entry)
{
    return (struct str){entry->id, entry->id_len};
}

static uint32_t agent_home(const struct registry *r, struct str id)
{
    return (uint32_t)str_hash(id) & r->agent_mask;
}

/* Returns the index in the table of the id, or of the free place for it. */
static uint32_t agent_place(const struct registry *r, struct str id)
{
    const uint32_t *table = registry_agent_table(r);
    uint32_t at = agent_home(r, id);
    while (table[at] != REGISTRY_NONE &&
           !str_eq(agent_id(&registry_agent_entries(r)[table[at]]), id)) {
        at = (at + 1) & r->agent_mask;
    }
    return at;
}

/* Backward-shift deletion, as for the ids of instances. */
static void remove_agent_id(struct registry *r, struct str id)
{
    uint32_t *table = registry_agent_table(r);
    uint32_t hole = agent_place(r, id);
    for (uint32_t at = (hole + 1) & r->agent_mask; table[at] != REGISTRY_NONE;
         at = (at + 1) & r->agent_mask) {
        const uint32_t home = agent_home(r, agent_id(&registry_agent_entries(r)[table[at]]));
        if (((at - home) & r->agent_mask) >= ((at - hole) & r->agent_mask)) {
            table[hole] = table[at];
            hole = at;
        }
    }
    table[hole] = REGISTRY_NONE;
}

uint32_t registry_agent(const struct registry *r, struct str id)
{
    return registry_agent_table(r)[agent_place(r, id)];
}

/* The lowest, so that the same history gives the same indexes. REGISTRY_NONE when there is none. */
static uint32_t free_agent(struct registry *r)
{
    if (r->n_known == r->n_agents) {
        return r->n_agents < r->lim.agents ? r->n_agents++ : REGISTRY_NONE;
    }
    uint32_t agent = 0;
    while (registry_agent_entries(r)[agent].id_len > 0) {
        agent++;
    }
    return agent;
}

uint32_t registry_agent_add(struct registry *r, struct str id, msec now)
{
    const uint32_t place = agent_place(r, id);
    uint32_t agent = registry_agent_table(r)[place];
    if (agent != REGISTRY_NONE || id.len == 0 || id.len > LIMIT_ID_BYTES) {
        return agent;
    }
    agent = free_agent(r);
    if (agent == REGISTRY_NONE) {
        return REGISTRY_NONE;
    }
    struct agent_entry *entry = &registry_agent_entries(r)[agent];
    *entry = (struct agent_entry){.first = REGISTRY_NONE,
                                  .id_len = (uint32_t)id.len,
                                  .generation = entry->generation + 1,
                                  .enabled = true,
                                  .absent_since = registry_advance_time(r, now)};
    entry->unreached_since = entry->absent_since;
    memcpy(entry->id, id.ptr, id.len);
    registry_agent_table(r)[place] = agent;
    r->n_known++;
    registry_note_absence(r);
    return agent;
}

void registry_agent_forget(struct registry *r, uint32_t agent)
{
    ASSERT(agent < r->n_agents);
    struct agent_entry *entry = &registry_agent_entries(r)[agent];
    ASSERT(entry->id_len > 0 && entry->instances == 0);
    registry_breaker_forget_agent(r, agent);
    remove_agent_id(r, agent_id(entry));
    *entry = (struct agent_entry){
        .first = REGISTRY_NONE, .generation = entry->generation, .absent_since = r->now};
    r->n_known--;
}

msec registry_absence(const struct registry *r)
{
    return r->absence;
}

void registry_absence_set(struct registry *r, msec since)
{
    r->absence = since;
}

uint32_t registry_agent_configure(struct registry *r, struct str id, msec now)
{
    const msec absence = r->absence;
    const uint32_t agent = registry_agent_add(r, id, now);
    if (agent != REGISTRY_NONE) {
        registry_agent_entries(r)[agent].configured = true;
        registry_agent_entries(r)[agent].seen = true;
        r->absence = absence; /* nobody waits for it to be forgotten */
    }
    return agent;
}

void registry_agent_unconfigure(struct registry *r, struct str id)
{
    const uint32_t agent = registry_agent(r, id);
    if (agent == REGISTRY_NONE) {
        return;
    }
    struct agent_entry *entry = &registry_agent_entries(r)[agent];
    entry->configured = false;
    entry->failure_len = 0;
    if (entry->instances == 0) {
        registry_note_absence(r);
        r->absence = r->absence < entry->absent_since ? r->absence : entry->absent_since;
    }
}

uint32_t registry_agents(const struct registry *r)
{
    return r->n_agents;
}

uint32_t registry_agents_known(const struct registry *r)
{
    return r->n_known;
}

uint32_t registry_agent_generation(const struct registry *r, uint32_t agent)
{
    ASSERT(agent < r->n_agents);
    return registry_agent_entries(r)[agent].generation;
}

struct agent_view registry_agent_view(const struct registry *r, uint32_t agent)
{
    ASSERT(agent < r->n_agents);
    const struct agent_entry *entry = &registry_agent_entries(r)[agent];
    return (struct agent_view){
        .id = agent_id(entry),
        .card = entry->card,
        .instances = entry->instances,
        .configured = entry->configured,
        .seen = entry->seen,
        .expected = entry->instances > 0 || (entry->configured && entry->failure_len == 0),
        .enabled = entry->enabled,
        .absent_since = entry->absent_since,
        .unreached_since = entry->reached > 0 ? MSEC_NEVER : entry->unreached_since,
        .failure = {entry->failure, entry->failure_len},
        .breaker = registry_breaker_agent_view(r, agent)};
}

uint32_t registry_agent_expected(const struct registry *r, uint32_t from)
{
    while (from < r->n_agents && !registry_agent_view(r, from).expected) {
        from++;
    }
    return from < r->n_agents ? from : REGISTRY_NONE;
}

void registry_agent_card(struct registry *r, uint32_t agent, const struct msg_card *card)
{
    ASSERT(agent < r->n_agents);
    registry_agent_entries(r)[agent].card = card;
    registry_agent_entries(r)[agent].seen = true;
}

void registry_agent_recall(struct registry *r, uint32_t agent, const struct msg_card *card)
{
    ASSERT(agent < r->n_agents);
    registry_agent_entries(r)[agent].card = card;
}

uint32_t registry_agent_seen(const struct registry *r, struct str id)
{
    const uint32_t agent = registry_agent(r, id);
    return agent != REGISTRY_NONE && registry_agent_entries(r)[agent].seen ? agent : REGISTRY_NONE;
}

void registry_agent_failed(struct registry *r, uint32_t agent, struct str why)
{
    ASSERT(agent < r->n_agents);
    struct agent_entry *entry = &registry_agent_entries(r)[agent];
    const size_t n = why.len > 0 ? utf8_cut(why.ptr, why.len, REGISTRY_FAILURE_BYTES) : 0;
    memset(entry->failure, 0, sizeof entry->failure); /* callers may compare blocks byte for byte */
    if (n > 0) {
        memcpy(entry->failure, why.ptr, n);
    }
    entry->failure_len = (uint32_t)n;
}

void registry_agent_enable(struct registry *r, uint32_t agent, bool enabled)
{
    ASSERT(agent < r->n_agents);
    registry_agent_entries(r)[agent].enabled = enabled;
    if (enabled) {
        registry_breaker_reset_agent(r, agent);
    }
}
