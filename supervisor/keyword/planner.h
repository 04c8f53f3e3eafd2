/*
 * The planner port: from a goal in words to a plan document. Whatever made the document, it goes
 * through plan_read. Made here, at once: keyword (no network, below). Made by an agent, later: a
 * plan that is submitted as pending (plan_read_pending) and an errand of the daemon. Plans and
 * recipes from files are not goals: see recipe.h.
 */
#ifndef PLANNER_PLANNER_H
#define PLANNER_PLANNER_H

#include "protocol/base/arena.h"
#include "protocol/wire/doc.h"
#include "registry/registry.h"
#include "supervisor/plan/read.h"

struct planner_request {
    struct str goal; /* valid UTF-8 */
    const struct registry *registry;
    bool allow_unrouted; /* leave out clauses that no agent can do, instead of refusing the goal */
};

/* Why a step went to its agent. */
struct planner_route {
    struct str step_id;
    struct str agent_id;
    struct str skill;
    double score;
    struct str why; /* for people: the words that matched with their weights, and the runner-up */
};

/* A part of the goal that no agent can do, or that says more than a plan from words can. */
struct planner_unrouted {
    struct str clause;
    struct str why; /* the nearest candidates, or that there are no agents; which words say it, and
                       what would be right */
    bool unsaid;    /* a condition, a loop, a time: no agent could */
};

/* Everything lives in the arena. */
struct planner_result {
    struct doc plan;
    struct planner_route *routes;
    uint32_t n_routes;
    struct planner_unrouted *unrouted;
    uint32_t n_unrouted;
    struct str abilities; /* "files: read (Read a file), list (...); sql: ..."; only when an agent
                             is missing for something */
};

struct planner_ops {
    const char *name;
    /* BT_INVALID: the goal cannot be planned; *ret still says what is unrouted, and the routes
     * found. */
    enum bt_code (*plan)(void *self, const struct planner_request *request, struct arena *arena,
                         struct planner_result *ret, struct bt_error *err);
};

struct planner {
    const struct planner_ops *ops;
    void *self;
};

/* Who is meant by a planner's name. */
struct planner_choice {
    bool asks_agent;           /* else it is embedded: planner_find */
    struct plan_pending agent; /* whom it asks; borrows of the name */
};

/*
 * "" and "keyword": embedded; "llm": the agent "orchestrator"; "agent": the first agent with the
 * skill plan; "agent:<id>": that one. Whether the agent is there is for plan_read_pending to say.
 * BT_INVALID for "file" and for an id that none can have; BT_NOT_FOUND names the planners.
 */
BT_MUST_CHECK enum bt_code planner_choose(struct str name, struct planner_choice *ret,
                                          struct bt_error *err);

/* An embedded planner. BT_INVALID: the name means an agent, and asking one takes a daemon;
 * BT_NOT_FOUND names the planners that there are. An empty name is "keyword". */
BT_MUST_CHECK enum bt_code planner_find(struct str name, struct planner *ret, struct bt_error *err);
BT_MUST_CHECK enum bt_code planner_plan(const struct planner *p,
                                        const struct planner_request *request, struct arena *arena,
                                        struct planner_result *ret, struct bt_error *err);
#endif
