/*
 * From a goal in words to a plan document. The keyword planner is embedded: no network, no model,
 * the same plan for the same goal and registry. All other planners are agents: a daemon submits a
 * pending plan (plan_read_pending). Whatever made a document, plan_read checks it.
 */
#ifndef KEYWORD_PLANNER_H
#define KEYWORD_PLANNER_H

#include "protocol/base/arena.h"
#include "registry/registry.h"
#include "supervisor/plan/read.h"

/* Which planner a name means. */
struct planner_choice {
    bool asks_agent;           /* else it is the keyword planner */
    struct plan_pending agent; /* borrows of the name */
};

/* "" and "keyword": the keyword planner; "llm": the agent "orchestrator"; "agent": the first agent
 * with the skill plan; "agent:<id>": that one. Whether it exists is not checked. BT_INVALID:
 * "file", or an impossible id; BT_NOT_FOUND lists the planners. */
BT_MUST_CHECK enum bt_code planner_choose(struct str name, struct planner_choice *ret,
                                          struct bt_error *err);

struct planner_request {
    struct str goal; /* valid UTF-8 */
    const struct registry *registry;
    struct doc permitted; /* policy.agents: globs of agents; absent = all */
    bool late_agents;     /* policy.waitForAgents: those that are remembered count, too */
    bool allow_unrouted;  /* leave out what no agent can do, instead of refusing the goal */
};

/* Why a step has its agent. */
struct planner_route {
    struct str step_id, agent_id, skill;
    double score;   /* BM25 */
    struct str why; /* for people: matching words with their weights, confidence, runner-up */
};

/* Everything lives in the arena. */
struct planner_result {
    struct doc plan;
    struct planner_route *routes;
    uint32_t n_routes;
    /* Of each part of the goal that no agent can do, or that a plan from words cannot express, two
     * lines: what cannot be done and why; "Nearest: " and three skills. */
    struct str *unrouted;
    uint32_t n_unrouted;
};

/* Plans with the keyword planner. BT_INVALID: the goal is refused, with the first text of
 * *ret as its message; *ret has all of them, and the routes found. BT_LIMIT: the goal is too long.
 */
BT_MUST_CHECK enum bt_code planner_plan(const struct planner_request *request, struct arena *arena,
                                        struct planner_result *ret, struct bt_error *err);
#endif
