/*
 * The next revision of a plan that runs: what a person inserts or replaces, or what a replanner
 * answers, woven into the steps that are there.
 *
 * Old entries keep their indexes; those that the new plan does without are marked as superseded;
 * new entries stand behind them. Rows that have begun or are over keep their dependencies. A chain
 * becomes a graph whose steps wait only for the end of those before them (afterAnyEnd), whatever
 * became of them: the same order.
 *
 *   insert   {steps, afterStepId and/or beforeStepId}
 *     after    the first new steps depend on that step; steps that only wait for its end (a
 * chain's) wait for the last new ones, too, other dependents do not: name them in beforeStepId
 *     before   that step depends on the last new ones, too; the first new ones on what it depends
 * on neither  at the end of a chain; in a graph, where their own dependsOn says replace  {stepId,
 * steps}: what depended on the old step depends on the last new ones, the first new ones on what it
 * depended on replan   {steps, reuse: [stepId]}: everything but the completed steps in `reuse` is
 * superseded. New steps may depend on each other and on the reused ones
 *
 *   again    {steps}: the entries marked in the request, all of them over, are superseded by these
 * steps, which say what they depend on; all others stay. Only granted agents
 *
 * "First" and "last" new ones: those that depend on no other new one, and that no other depends on.
 * Without any dependsOn the new steps follow each other; those of a replan then follow all reused
 * ones. Ids of superseded steps may be used again, for new work (C32). Documents are read as
 * leniently as plans; `policy` in them is ignored: the plan keeps its own.
 */
#ifndef PLAN_REVISE_H
#define PLAN_REVISE_H

#include "supervisor/core/run/run.h"
#include "supervisor/plan/read.h"

enum plan_revise_kind { REVISE_INSERT, REVISE_REPLACE, REVISE_REPLAN, REVISE_RERUN };

struct plan_revise_request {
    enum plan_revise_kind kind;
    struct doc change; /* as above, or a list of the steps alone */
    /* Win over afterStepId, beforeStepId and stepId of the document when not empty. */
    struct str after, before, step;
    const struct plan *plan;         /* one that plan_read*, or plan_revise made */
    const struct run *run;           /* its run: what has begun, what is over */
    const struct registry *registry; /* NULL = agents are not checked */
    uint32_t revision;               /* of the new plan: run->revision + 1 */
    const uint8_t *rerun;            /* RERUN: per row of the plan, 1 = superseded */
};

/*
 * Composes and checks. The new plan and all its strings live in the arena; it is what
 * plan_read_canonical makes of the canonical document, which is appended to *document; plan_id and
 * session are those of the old plan. The owner calls plan_resolve on it: an insertion or a
 * replacement may name agents that are new to the plan, a replan only those granted to it.
 * BT_INVALID: problems say why; steps in them count from the first row of the plan. BT_NOMEM,
 * BT_LIMIT otherwise.
 */
BT_MUST_CHECK enum bt_code plan_revise(const struct plan_revise_request *request,
                                       struct arena *arena, struct plan **ret,
                                       struct problems *problems, struct buf *document,
                                       struct bt_error *err);
#endif
