/*
 * The next revision of a running plan: steps that a person inserts or replaces, or the answer of a
 * replanner.
 *
 * Old entries keep their indexes. Entries that the new plan does without are marked as superseded;
 * new entries come after them. Entries that have begun or are over keep their dependencies. A chain
 * becomes a graph whose steps wait only for the end of those before them (afterAnyEnd): the same
 * order.
 *
 * - insert {steps, afterStepId, beforeStepId}. After: the first new steps depend on that step;
 * steps that wait only for its end (those of a chain) also wait for the last new ones, other
 * dependents do not. Before: that step also depends on the last new ones, the first new ones on its
 * dependencies. Neither: at the end of a chain; in a graph by the new steps' own dependsOn.
 * - replace {stepId, steps}. What depended on the old step depends on the last new ones, the first
 * new ones on what it depended on.
 * - replan {steps, reuse: [stepId]}. Completed steps stay; everything else is superseded. A new
 * step whose id, agent, skill, task and parameters equal a completed one's is that one; with other
 * content it takes the id, unless `reuse` names it. One that repeats a completed unsafe step needs
 * an approval. New steps may depend on each other and on the completed ones.
 * - rerun {steps}. The entries marked in the request, all of them over, are superseded by these
 * steps, which name their dependencies. All others stay. Only granted agents.
 *
 * "First" and "last" new steps are those that depend on no other new one, and that no other new one
 * depends on. Without any dependsOn the new steps follow each other; those of a replan follow all
 * completed ones. Ids of superseded steps may be used again, for new work (C32). A `policy` in the
 * document is ignored: the plan keeps its own.
 */
#ifndef PLAN_REVISE_H
#define PLAN_REVISE_H

#include "supervisor/core/run/run.h"
#include "supervisor/plan/read.h"

enum plan_revise_kind { REVISE_INSERT, REVISE_REPLACE, REVISE_REPLAN, REVISE_RERUN };

struct plan_revise_request {
    enum plan_revise_kind kind;
    struct doc change; /* as above, or a list of steps */
    /* These win over afterStepId, beforeStepId and stepId of the document when not empty. */
    struct str after, before, step;
    const struct plan *plan;         /* made by plan_read* or plan_revise */
    const struct run *run;           /* its run: which steps have begun or are over */
    const struct registry *registry; /* NULL = agents are not checked */
    uint32_t revision;               /* of the new plan: run->revision + 1 */
    const uint8_t *rerun;            /* RERUN: per entry of the plan, 1 = superseded */
};

/*
 * Makes and checks the revision. The new plan and all its strings are allocated in the arena. It
 * equals what plan_read_canonical makes of the canonical document, which is appended to *document.
 * plan_id and session are those of the old plan. The owner calls plan_resolve on it: an insertion
 * or replacement may name new agents, a replan only granted ones. BT_INVALID: see problems, whose
 * steps count from the first entry of the plan. BT_NOMEM, BT_LIMIT.
 */
BT_MUST_CHECK enum bt_code plan_revise(const struct plan_revise_request *request,
                                       struct arena *arena, struct plan **ret,
                                       struct problems *problems, struct buf *document,
                                       struct bt_error *err);
#endif
