/*
 * The core's own rows and the functions its files share. Outside this folder only the tests include
 * it.
 *
 * A step is named by a ref, run slot << 32 | step. At any time it is in at most one of five lists:
 * the ready list of its run (waits for a place in the concurrency), the queue of its agent (waits
 * for a lane), what an instance holds (in progress), the unknown ones, or, within one event only,
 * the lost ones that are being resolved.
 */
#ifndef CORE_CORE_INTERNAL_H
#define CORE_CORE_INTERNAL_H

#include "supervisor/core/core.h"
#include "supervisor/core/heap.h"
#include "supervisor/core/run_internal.h"

#define REF_NONE UINT64_MAX

enum {
    CORE_TEXT_BYTES = 16 * 1024, /* texts made while one event is handled; see core_text.c */
    CORE_REASON_BYTES = 256,     /* what of an instance's last words goes into an error */
    CORE_PROGRESS_PER_SECOND = 10,
    CORE_UNSENT_MAX =
        8, /* times in a row that one attempt may fail to leave before it counts as failed */
    CORE_RETRY_AFTER_MAX_MS = 3600 * 1000, /* an agent may ask for a pause, not for ever */
};

enum list_kind {
    LIST_NONE,
    LIST_READY,
    LIST_QUEUE,
    LIST_HELD,
    LIST_UNKNOWN,
    LIST_LOST,
    LIST_KIND_COUNT
};

struct list {
    uint64_t head, tail;
    uint32_t n;
};

/* Of a step; rebuilt on RECOVER. */
struct soft_step {
    uint64_t prev, next;
    msec since;    /* in a queue: when it came; in progress: start of the second that progress is
                      counted in */
    uint32_t slot; /* of the instance that has or had the attempt; REGISTRY_NONE = not seen by this
                      daemon */
    uint16_t progress; /* records in that second */
    uint8_t list;      /* enum list_kind */
    uint8_t unsent;    /* times in a row that the attempt did not leave */
};

struct core_run {
    struct run *run; /* NULL = the slot is free */
    const struct plan *plan;
    struct soft_step *soft;
    uint32_t *work;  /* n_steps: the steps whose dependents are still to be told */
    struct heap due; /* of the steps: what each waits for in time */
    struct list ready;
    uint32_t queued; /* steps in agents' queues that have not begun: they have a place in the
                        concurrency */
    uint32_t generation;
    uint32_t next_free;
};

struct core_agent {
    struct list queue;
    bool dirty; /* something may start: looked at before the event is over */
};

struct core_instance {
    struct list held;
    bool told_up;
};

struct core {
    struct core_config config;
    msec now;
    msec wall;
    uint64_t random;
    struct commands *out; /* of the event being handled */
    struct registry *registry;
    struct core_run *runs;
    struct core_agent *agents;
    struct core_instance *instances;
    struct heap due; /* of the runs: the earliest of their steps' and their own deadline */
    struct list unknown;
    struct list lost;
    uint32_t *dirty;
    uint32_t n_dirty;
    uint32_t free_run;
    uint32_t open;
    uint64_t newest;
    uint32_t text_used;
    uint32_t text_agent; /* whose absence the last text of this event speaks of */
    struct str text_absent;
    char text[CORE_TEXT_BYTES];
};

/* Why an attempt, or a step that never got one, failed. */
struct failure {
    enum err_class error_class;
    struct str text;
    enum step_reason reason;
    bool retryable;
    bool blind; /* nobody knows whether it ran: an unsafe step asks a person instead of running
                   again */
    bool tell;  /* the instance may still work on it: tell it to stop */
    msec retry_after_ms;
    struct usage usage;
};

struct plan_end {
    enum plan_status status;
    enum plan_outcome outcome;
    enum plan_failure failure;
    enum step_reason reason; /* of the steps that are still under way */
    uint32_t step;
    struct str text;
};

typedef void core_handler(struct core *c, const struct core_event *ev);

/* ---- core.c ---- */
struct core_cmd *core_emit(struct core *c, enum core_cmd_type type);
/* Fills in run, now and wall, applies the record to the run (NULL: about an agent), and emits it.
 */
void core_record(struct core *c, struct core_run *row, struct record rec);
void core_reject(struct core *c, const struct core_event *ev, enum core_reject why);
struct core_run *core_find_run(const struct core *c, uint64_t handle);
uint64_t core_handle_of(const struct core *c, const struct core_run *row);
uint64_t core_ref(const struct core *c, const struct core_run *row, uint32_t step);

/* ---- core_text.c ---- */
/* The parts joined in memory that lives until the next event; `instead` when there is no room left.
 */
struct str core_text(struct core *c, const struct str *parts, uint32_t n, struct str instead);
struct str core_text_crashed(struct core *c, struct str reason);
struct str core_text_timeout(struct core *c, msec timeout_ms);
struct str core_text_absent(struct core *c, uint32_t agent, struct str agent_id);

/* ---- core_queue.c ---- */
void core_list_init(struct list *list);
void core_link(struct core *c, struct core_run *row, uint32_t step, enum list_kind kind,
               bool front);
/* Takes the step out of its list, if it is in one, and out of the heap. */
void core_unlink(struct core *c, struct core_run *row, uint32_t step);
struct list *core_list(struct core *c, struct core_run *row, uint32_t step, enum list_kind kind);
struct core_run *core_deref(const struct core *c, uint64_t ref, uint32_t *ret_step);
void core_due(struct core *c, struct core_run *row, uint32_t step, msec when);
/* The run's key in the core's heap follows its steps and its own deadline. */
void core_rearm(struct core *c, struct core_run *row);
/* To the agent's queue: at its end, or (a request that never left) in front. */
void core_enqueue(struct core *c, struct core_run *row, uint32_t step, bool front);
/* Moves ready steps to their agents' queues as far as max_concurrency goes. */
void core_admit(struct core *c, struct core_run *row);
void core_mark_dirty(struct core *c, uint32_t agent);
/* Gives free lanes to queued steps; at the end of every event. */
void core_start_queued(struct core *c);

/* ---- core_end.c ---- */
void core_attempt_failed(struct core *c, struct core_run *row, uint32_t step,
                         const struct failure *f);
/* No further attempt: on_failure decides. The run may be over after it. */
void core_give_up(struct core *c, struct core_run *row, uint32_t step, const struct failure *f);
void core_step_waits(struct core *c, struct core_run *row, uint32_t step, enum review_kind kind,
                     const struct failure *why, struct doc data);
/* A step ended with rec; tells dependents, starts what became possible, ends the plan after the
 * last step. */
void core_step_over(struct core *c, struct core_run *row, struct record rec);
void core_plan_over(struct core *c, struct core_run *row, const struct plan_end *end);
/* The end that follows from the steps alone, when all are over. */
void core_plan_over_naturally(struct core *c, struct core_run *row);
/* Skips what can never start because `step` failed, and lists what became ready. */
void core_settle(struct core *c, struct core_run *row, uint32_t step);
void core_plan_timeout(struct core *c, struct core_run *row);

/* ---- core_results.c ---- */
core_handler core_on_result, core_on_progress, core_on_decide, core_on_lane_free;
/* Finds the attempt that the event speaks of and checks that it comes from who has it; else emits
 * the rejection. */
struct core_run *core_attempt(struct core *c, const struct core_event *ev);
/* Frees the lane that the event came over, if it still belongs to that incarnation. */
void core_lane_answered(struct core *c, const struct core_event *ev);

/* ---- core_lost.c ---- */
core_handler core_on_lost, core_on_state;
/* The reply will not come by itself: asks, and waits for unknown_wait_ms. */
void core_step_unknown(struct core *c, struct core_run *row, uint32_t step);
/* Asks the instance of every unknown attempt that it may have. */
void core_query_instance(struct core *c, uint32_t slot);
/* All that the incarnation in this slot holds becomes unknown: it may come back. */
void core_instance_lost(struct core *c, uint32_t slot);
/* All that this instance holds or held is resolved: it will never come back. */
void core_instance_gone(struct core *c, uint32_t slot, struct uuid instance, struct str reason);
/* An attempt whose outcome stays unknown. */
void core_resolve_unknown(struct core *c, struct core_run *row, uint32_t step,
                          enum err_class error_class, struct str text);

/* ---- core_submit.c ---- */
core_handler core_on_submit, core_on_recover, core_on_cancel;
void core_release_run(struct core *c, struct core_run *row);

/* ---- core_registry.c ---- */
core_handler core_on_register, core_on_seen, core_on_lane_up, core_on_lane_down, core_on_gone,
    core_on_drain, core_on_restarted;
void core_expire_instances(struct core *c);
/* Whatever came from this incarnation shows that it lives. */
void core_alive(struct core *c, const struct core_event *ev);

/* ---- core_modify.c ---- */
core_handler core_on_pause, core_on_resume, core_on_modify, core_on_revise;

/* ---- core_breaker.c ---- */
core_handler core_on_probed;
/* What the end of an attempt, or of a question, says about who had it; CLASS_NONE: it did what it
 * should. Called once per attempt that was out, whether the incarnation is still there or not (slot
 * REGISTRY_NONE: not seen by this daemon, says nothing). */
void core_breaker_result(struct core *c, uint32_t slot, uint64_t epoch, enum err_class cls);
/* Asks who is due to be asked. */
void core_breaker_tick(struct core *c);

/* ---- core_tick.c ---- */
core_handler core_on_tick;
#endif
