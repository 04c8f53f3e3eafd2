/*
 * Suspects (G23): the plan whose input the daemon is applying is marked in memory. When the daemon
 * crashes by a signal of its own, the handler adds a fault of that plan to STATE/faults, and the
 * next start recovers it last. Whatever comes from outside is no fault of a plan: SIGKILL, a
 * signal that somebody sent, a power cut, an exit. A mark costs one store; nothing is written but
 * in a crash.
 */
#ifndef ENGINE_SUSPECT_H
#define ENGINE_SUSPECT_H

#include "supervisor/engine/engine.h"
#include "supervisor/journal/faults.h"

/* What is being applied, beside what the core itself is at. */
struct suspect_mark {
    bool in_core;
    uint64_t run;           /* 0 = of none */
    struct uuid recovering; /* without a run yet; nil = none */
};

/* Who is blamed for a crash in the plan of this row: a job that a plan asked for is that plan's. */
struct job;
struct uuid suspect_of(struct uuid plan_id, const struct job *job);
/* Reads STATE/faults, and writes to it when this thread crashes from now on. Once in a process,
 * after the spawner was forked. Without the file crashes are not counted; the log says so. */
void suspect_watch(struct engine *engine);
#endif
