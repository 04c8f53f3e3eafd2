/*
 * Agents that have left are forgotten. An agent stays known while it has an instance, the
 * configuration names it, an operator took it out of service, or an open plan names it. Without any
 * of these it is known for agent_wait_ms more: a plan that comes meanwhile waits for it.
 *
 * Nothing is journaled: registrations and open plans fill a new registry after a restart.
 */
#include <string.h>

#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/core_internal.h"

enum { SET_WORDS = (LIMIT_AGENTS + 63) / 64 };

/* A set of agents. */
struct agent_set {
    uint64_t bits[SET_WORDS];
};

static void set_add(struct agent_set *set, uint32_t agent)
{
    if (agent < LIMIT_AGENTS) { /* else AGENT_NONE or AGENT_SUPERVISOR */
        set->bits[agent / 64] |= UINT64_C(1) << agent % 64;
    }
}

static bool set_has(const struct agent_set *set, uint32_t agent)
{
    return (set->bits[agent / 64] >> agent % 64 & 1) != 0;
}

static void add_agents_of(struct agent_set *set, const struct core_run *entry)
{
    const struct plan *plan = entry->plan;
    for (uint32_t i = 0; i < plan->agents.n; i++) {
        set_add(set, plan->agents.at[i]);
    }
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        set_add(set, plan->steps[i].agent);
        set_add(set, plan->steps[i].rules->gate_agent);
        set_add(set, plan->steps[i].rules->verify_agent);
        set_add(set, entry->run->steps[i].agent);
    }
    set_add(set, entry->run->last_agent);
    set_add(set, plan->replan.agent_id.len > 0 ? plan->replan.agent : AGENT_NONE);
    set_add(set, plan->search_with.len > 0 ? plan->search_agent : AGENT_NONE);
    set_add(set, plan->planning.agent_id.len > 0 ? plan->planning.agent : AGENT_NONE);
    set_add(set, plan->synthesis.agent_id.len > 0 ? plan->synthesis.agent : AGENT_NONE);
}

static void needed_by_plans(const struct core *c, struct agent_set *ret)
{
    memset(ret, 0, sizeof *ret);
    for (uint32_t i = 0; i < c->runs_made && !MUTANT(NEEDED_FORGOTTEN); i++) {
        if (c->runs[i].run != NULL) {
            add_agents_of(ret, &c->runs[i]);
        }
    }
}

/* One with a rate is named by the configuration. */
static bool has_left(const struct core *c, uint32_t agent, const struct agent_view *view)
{
    return view->id.len > 0 && view->instances == 0 && !view->configured && view->enabled &&
           c->agents[agent].rate.rate.n == 0;
}

void core_forget_agents(struct core *c)
{
    const msec wait = c->config.agent_wait_ms;
    struct agent_set needed;
    msec next = MSEC_NEVER;
    if (msec_add(registry_absence(c->registry), wait) > c->now) {
        return;
    }
    needed_by_plans(c, &needed);
    for (uint32_t i = 0; i < registry_agents(c->registry); i++) {
        const struct agent_view view = registry_agent_view(c->registry, i);
        if (!has_left(c, i, &view) || set_has(&needed, i) || MUTANT(LEFT_REMEMBERED)) {
            continue; /* the end of the last plan that names it comes back to it */
        }
        if (msec_add(view.absent_since, wait) <= c->now) {
            registry_agent_forget(c->registry, i);
        } else {
            next = view.absent_since < next ? view.absent_since : next;
        }
    }
    registry_absence_set(c->registry, next);
}

void core_agents_released(struct core *c, const struct core_run *entry)
{
    struct agent_set of = {{0}};
    add_agents_of(&of, entry);
    for (uint32_t i = 0; i < registry_agents(c->registry); i++) {
        if (of.bits[i / 64] == 0) {
            i |= 63; /* none of a word: a plan has few of many agents */
            continue;
        }
        const struct agent_view view = set_has(&of, i) ? registry_agent_view(c->registry, i)
                                                       : (struct agent_view){.id.len = 0};
        if (has_left(c, i, &view) && view.absent_since < registry_absence(c->registry)) {
            registry_absence_set(c->registry, view.absent_since);
        }
    }
}

void core_agent_forget(struct core *c, uint32_t agent)
{
    const struct agent_view view = registry_agent_view(c->registry, agent);
    struct agent_set needed;
    needed_by_plans(c, &needed);
    if (has_left(c, agent, &view) && !set_has(&needed, agent)) {
        registry_agent_forget(c->registry, agent);
    }
}

bool core_agent_room(struct core *c)
{
    struct agent_set needed;
    uint32_t oldest = REGISTRY_NONE;
    msec since = MSEC_NEVER;
    needed_by_plans(c, &needed);
    for (uint32_t i = 0; i < registry_agents(c->registry); i++) {
        const struct agent_view view = registry_agent_view(c->registry, i);
        if (has_left(c, i, &view) && !set_has(&needed, i) && view.absent_since < since) {
            since = view.absent_since;
            oldest = i;
        }
    }
    if (oldest != REGISTRY_NONE) {
        registry_agent_forget(c->registry, oldest);
    }
    return oldest != REGISTRY_NONE;
}
