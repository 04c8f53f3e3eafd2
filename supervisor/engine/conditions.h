/* Conditions of steps: evaluated over stored results in the cycle that asks, before its commit. */
#ifndef ENGINE_CONDITIONS_H
#define ENGINE_CONDITIONS_H

#include "supervisor/core/sched/core.h"

struct engine;

/* A condition that the core wants evaluated, as CMD_CONDITION names it. */
struct condition_asked {
    uint64_t run;
    uint32_t step, revision;
};

/* Keeps it until engine_conditions_answer. */
void engine_condition_asked(struct engine *engine, const struct core_cmd *cmd);
/* Evaluates what was asked for, and feeds the verdicts, with what follows from them. What is more
 * than one cycle takes is left for the next. */
void engine_conditions_answer(struct engine *engine);
bool engine_conditions_wait(const struct engine *engine);
void engine_conditions_done(struct engine *engine);
#endif
