/*
 * Plans for tests, written as one line:
 *
 *   "A; B<A; C<A; D<B,C"                       a DAG on agent x
 *   "A; B@y; C"                                 no dependency anywhere: a chain; B is y's
 *   "par max=2 timeout=500: A; B; C"            words before the colon are the plan's
 *   "A(retries=2 skip unsafe timeout=100); B<A(always)"
 *
 * Plan words: par (no chain), max=N, timeout=MS, signoff signtime=MS, handback, handoffs=N,
 * maxpause=MS, fallbacks=N, replan=AGENT replans=N perstep=N cooldown=MS replantime=MS,
 * search=AGENT, grant=AGENT, budget=N replanbudget=N cost=N, session=N, planner=AGENT (no steps
 * yet) repairs=N plantime=MS oninvalid=fail|synthesize|interrupt, answer=AGENT answertime=MS
 * rectify=N, dry, job (of another plan), undoalways, undonever, inner (a child plan), undoing (the
 * child plan that undoes its parent), prio=N, key=NUMBER (of the core's keys, before all steps)
 * keyskip keycancel. Step words: key=NUMBER, retries=N, timeout=MS, idle=MS, queue=MS,
 * limit=MS, approval=MS, check=MS, backoff=MS (fixed), linear=MS, jitter=PERMILLE, skip, continue,
 * retry, replan, ask (else abort), onverify=<the same> (else retry), noretry=CLASS, retryon=CLASS,
 * approve, sleep=MS, date=WALL_MS, signal=NAME patience=MS (steps that wait), review
 * (human_review), gate=AGENT [closed], verify=AGENT [open], alt=AGENT, est=N, estcost=N, unsafe,
 * idempotent, always, gone (superseded), anyend (as in a chain), undo (it has
 * compensate), undoes (a child plan of it has). Defaults: no retries, no timeouts,
 * fixed backoff of 100 ms, no fallbacks, 5 at a time in a DAG and 1 in a chain.
 */
#ifndef TESTS_PLAN_TEXT_H
#define TESTS_PLAN_TEXT_H

#include "registry/registry.h"
#include "supervisor/core/plan/plan.h"

/* Adds the plan's agents to the registry. Aborts with a message on a text it cannot read. */
struct plan *plan_text_new(const char *text, struct registry *registry);
/* An empty plan with room, for tests that make their own steps. Steps have the defaults above and
 * agent `agent`. */
struct plan *plan_text_blank(uint32_t n_steps, uint32_t n_edges, uint32_t agent,
                             const char *agent_id);
/* The memory of what a step waits for, as long as the plan lives. */
struct plan_wait *plan_text_wait(struct plan *plan, uint32_t step);
void plan_text_free(struct plan *plan);
#endif
