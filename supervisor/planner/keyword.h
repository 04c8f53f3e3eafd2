/*
 * The embedded planner: no network, no model. Splits the goal into clauses (clauses.h), routes each
 * to the skill that its words are about (rank.h), fills the parameters that the skill's annotations
 * ask for (fill.h), and chains the steps, so that each sees the results before it. Says for each
 * step why, and for each clause that no agent can do what came nearest; a goal with such a clause
 * is refused unless the request allows leaving it out. Deterministic: the same goal and registry
 * give the same plan.
 */
#ifndef PLANNER_KEYWORD_H
#define PLANNER_KEYWORD_H

#include "supervisor/planner/planner.h"

extern const struct planner_ops keyword_planner;
#endif
