/* What the core asks of stored data: conditions of steps, and signals that came early. It is
 * answered in the cycle that asks, before its commit. */
#ifndef ENGINE_CONDITIONS_H
#define ENGINE_CONDITIONS_H

#include "supervisor/core/sched/core.h"

struct engine;

/* A condition that the core wants evaluated (CMD_CONDITION), or a signal that it wants to have
 * (CMD_SIGNAL). */
struct condition_asked {
    uint64_t run;
    uint32_t step, revision;
    bool signal; /* CMD_SIGNAL: it asks for a signal that was kept */
};

/* Keeps it until engine_conditions_answer. */
void engine_condition_asked(struct engine *engine, const struct core_cmd *cmd);
/* Evaluates what was asked for, and feeds the verdicts, with what follows from them. What is more
 * than one cycle takes is left for the next. */
void engine_conditions_answer(struct engine *engine);
bool engine_conditions_wait(const struct engine *engine);
void engine_conditions_done(struct engine *engine);
#endif
