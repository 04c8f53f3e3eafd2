/*
 * The embedded planner: no network, no model. Finds the things to do of a goal and their order
 * (order.h), routes each to the skill that its words are about (rank.h), and fills the parameters
 * that the skill's annotations ask for (fill.h). Steps one after the other are a chain, so that
 * each sees the results before it; where the words set things side by side, the plan is a graph.
 * Says for each step why, for each clause that no agent can do what came nearest, and for each that
 * says more than a plan from words can (unsaid.h) what would be right; a goal with such a clause is
 * refused unless the request allows leaving it out. Deterministic: the same goal and registry
 * give the same plan.
 */
#ifndef PLANNER_KEYWORD_H
#define PLANNER_KEYWORD_H

#include "supervisor/keyword/planner.h"

extern const struct planner_ops keyword_planner;
#endif
