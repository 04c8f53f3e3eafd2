/*
 * A goal or a document on its way to a plan: made, looked at, started or dropped. Used by the
 * requests that make plans (plan.submit, plan.lint, plan.retry, plan.fork).
 */
#ifndef ENGINE_SUBMISSION_H
#define ENGINE_SUBMISSION_H

#include "supervisor/engine/engine.h"
#include "supervisor/engine/open_plan.h"
#include "supervisor/engine/request.h"
#include "supervisor/keyword/planner.h"

/* Remarks about the plan, and the plan as it was read, live in the arena; what runs is a copy
 * of its own. */
struct submission {
    struct arena arena;
    struct plan *made;
    struct open_plan plan;
    struct planner_result planned;
    struct problems problems;
    struct buf normalised;
    struct msg_plan_problem *problem_views;
    struct msg_plan_route *route_views;
};

/* The client's request. */
struct submit_request {
    struct str goal, session_id, planner;
    struct doc plan, policy;
    const struct str *constraints;
    uint32_t n_constraints;
    bool dry_run;
    bool lenient;                 /* unknown fields of the document are warnings */
    bool own;                     /* the document is the supervisor's: a job */
    const struct child_of *child; /* it is the child plan of a step; NULL = it is none */
    const uint8_t *settled;       /* per step of `plan`: its result is known; NULL = none */
    uint32_t n_settled;
};

/* What is known of the new plan beside its document. */
struct submission_start {
    struct str client_key;
    bool whole_key; /* it is the supervisor's own: no client's identity is part of it */
    uint64_t body_hash;
    struct str job;     /* its kind; empty = a plan */
    struct str owner;   /* of a job: the owner of what it is for */
    struct uuid parent; /* of a retry or a fork the plan that it came from, of a child plan that of
                           its step; nil = none */
    struct trace trace; /* that the plan belongs to; span 0 = one of its own */
    const struct core_reuse *reuse;
    uint32_t n_reuse;
    bool reuse_items; /* items of maps that the parent's child plans have done are not done again */
};

/* submission_done in every case. */
BT_MUST_CHECK enum bt_code submission_init(struct submission *d, struct bt_error *err);
void submission_done(struct submission *d);
/* Plans the goal, or takes the document, and checks it. On failure d->problems lists the problems.
 */
BT_MUST_CHECK enum bt_code submission_make(struct engine *engine, const struct submit_request *w,
                                           struct submission *d, struct bt_error *err);
/* Whether an agent, not the supervisor, makes the plan of a goal for this planner. */
bool submission_is_asked(struct engine *engine, struct str planner);
/* Fill d->problem_views and d->route_views; how many. */
uint32_t submission_problems(struct submission *d);
uint32_t submission_routes(struct submission *d);
/* Whether it is only wrong for want of agents or skills. */
bool submission_lacks_only_agents(const struct submission *d);
/* The same, and they may come soon: agents that were started by hand need a moment to register
 * again with a daemon that was started again. */
bool submission_waits_for_agents(const struct engine *engine, const struct submission *d);
/* Refuses with every problem in error.details {problems: [...]}. */
void submission_refuse(struct engine *engine, struct request *rq, struct submission *d,
                       const struct bt_error *why);
/* The same for a new plan; BT_UNAVAILABLE while only agents are missing that may still register
 * with a daemon that was started again. */
void submission_refuse_new(struct engine *engine, struct request *rq, struct submission *d,
                           const struct bt_error *why);
/* Whether a plan may begin now: BT_UNAVAILABLE, BT_BUSY. */
BT_MUST_CHECK enum bt_code submission_room(struct engine *engine, struct bt_error *err);
/* Whether a job may begin: BT_BUSY. One that no plan waits for leaves the plans theirs. */
BT_MUST_CHECK enum bt_code submission_job_room(struct engine *engine, bool of_plan,
                                               struct bt_error *err);
/* submission_room; false after refusing. */
bool submission_may_start(struct engine *engine, struct request *rq);
/*
 * Row and run. The plan belongs to the engine afterwards; ret_id is its id. BT_CONFLICT: the
 * clientKey is taken. BT_LIMIT: too many agents. A failure of the journal is the engine's, too
 * (engine->failed).
 */
BT_MUST_CHECK enum bt_code submission_start(struct engine *engine,
                                            const struct submission_start *how,
                                            struct submission *d, char ret_id[UUID_TEXT_LEN + 1],
                                            struct bt_error *err);
/* KEY_REPEATED: an earlier request with this key and body made the plan *ret_id. KEY_REFUSED: the
 * key belongs to another body, or could not be looked up; the request was answered. */
enum key_use { KEY_NEW, KEY_REPEATED, KEY_REFUSED };
enum key_use submission_key_use(struct engine *engine, struct request *rq, struct str client_key,
                                uint64_t body_hash, char ret_id[UUID_TEXT_LEN + 1]);
#endif
