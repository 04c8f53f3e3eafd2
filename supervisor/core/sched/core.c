/* The frame of the core: its memory, core_handle and the queries. */
#include "supervisor/core/sched/core.h"

#include <stdalign.h>
#include <stddef.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/sched/core_internal.h"

static size_t rounded(size_t bytes)
{
    const size_t to = alignof(max_align_t);
    return (bytes + to - 1) / to * to;
}

/* The parts of the block, one after the other; with `mem` NULL they are only counted. */
struct layout {
    unsigned char *mem;
    size_t used;
};

static void *part(struct layout *l, size_t rows, size_t row_bytes)
{
    const size_t at = l->used;
    l->used = rounded(at + rows * row_bytes);
    return l->mem == NULL ? NULL : l->mem + at;
}

static uint32_t sessions_of(const struct core_config *config)
{
    return config->sessions > 0 ? config->sessions : 1;
}

static uint32_t opens_of(const struct core_config *config)
{
    return config->registry.agents + config->keys;
}

static void turns_init(struct turns *t)
{
    for (uint32_t i = 0; i <= PLAN_PRIORITY_MAX; i++) {
        core_list_init(&t->of[i]);
    }
}

static void *lay_out(struct layout *l, const struct core_config *config, struct core *c,
                     uint32_t **ret_items, uint32_t **ret_pos, msec **ret_keys)
{
    c->runs = part(l, config->runs_max, sizeof *c->runs);
    c->agents = part(l, config->registry.agents, sizeof *c->agents);
    c->instances = part(l, config->registry.instances, sizeof *c->instances);
    c->sessions = part(l, sessions_of(config), sizeof *c->sessions);
    c->woken = part(l, config->runs_max, sizeof *c->woken);
    c->keys = part(l, config->keys, sizeof *c->keys);
    c->opens.items = part(l, opens_of(config), sizeof *c->opens.items);
    c->opens.pos = part(l, opens_of(config), sizeof *c->opens.pos);
    c->opens.keys = part(l, opens_of(config), sizeof *c->opens.keys);
    *ret_items = part(l, config->runs_max, sizeof **ret_items);
    *ret_pos = part(l, config->runs_max, sizeof **ret_pos);
    *ret_keys = part(l, config->runs_max, sizeof **ret_keys);
    return part(l, registry_size(&config->registry), 1);
}

size_t core_size(const struct core_config *config)
{
    struct layout l = {.used = rounded(sizeof(struct core))};
    struct core unused;
    uint32_t *items;
    uint32_t *pos;
    msec *keys;
    lay_out(&l, config, &unused, &items, &pos, &keys);
    return l.used;
}

struct core *core_init(void *mem, const struct core_config *config)
{
    ASSERT(config->runs_max > 0 && config->registry.agents > 0 && config->registry.instances > 0);
    struct core *c = mem;
    struct layout l = {.mem = mem, .used = rounded(sizeof(struct core))};
    uint32_t *items;
    uint32_t *pos;
    msec *keys;
    void *registry = lay_out(&l, config, c, &items, &pos, &keys);
    c->config = *config;
    c->config.sessions = sessions_of(config);
    c->random = config->seed;
    c->registry = registry_init(registry, &config->registry);
    heap_init(&c->due, items, pos, keys, 0);
    c->free_run = UINT32_MAX;
    core_list_init(&c->unknown);
    core_list_init(&c->lost);
    core_list_init(&c->dated);
    c->dirty = c->woken_sessions = c->woken_keys =
        (struct core_fifo){.head = UINT32_MAX, .tail = UINT32_MAX};
    heap_init(&c->opens, c->opens.items, c->opens.pos, c->opens.keys, opens_of(config));
    for (uint32_t i = 0; i < config->keys; i++) {
        turns_init(&c->keys[i].runs);
        turns_init(&c->keys[i].steps);
        core_list_init(&c->keys[i].holders);
        c->keys[i].max = 1;
    }
    for (uint32_t i = 0; i < config->registry.agents; i++) {
        turns_init(&c->agents[i].ring);
    }
    for (uint32_t i = 0; i < config->registry.instances; i++) {
        core_list_init(&c->instances[i].held);
    }
    return c;
}

struct registry *core_registry(struct core *c)
{
    return c->registry;
}

/* ---- handles ---- */

uint64_t core_handle_of(const struct core *c, const struct core_run *entry)
{
    return (uint64_t)entry->generation << 32 | (uint64_t)(entry - c->runs);
}

uint64_t core_ref(const struct core *c, const struct core_run *entry, uint32_t step)
{
    return (uint64_t)(entry - c->runs) << 32 | step;
}

struct core_run *core_find_run(const struct core *c, uint64_t handle)
{
    const uint32_t slot = (uint32_t)handle;
    if (slot >= c->runs_made || c->runs[slot].run == NULL ||
        c->runs[slot].generation != handle >> 32) {
        return NULL;
    }
    return &c->runs[slot];
}

/* ---- what goes out ---- */

struct core_cmd *core_emit(struct core *c, enum core_cmd_type type)
{
    struct commands *out = c->out;
    ASSERT(out != NULL);
    if (out->n == out->cap) {
        out->grow(out);
        ASSERT(out->n < out->cap);
    }
    struct core_cmd *cmd = &out->at[out->n++];
    *cmd = (struct core_cmd){.type = type,
                             .step = STEP_NONE,
                             .slot = REGISTRY_NONE,
                             .lane = LANE_NONE,
                             .rec = {.step = STEP_NONE}};
    return cmd;
}

static void emit_record(struct core *c, const struct record *rec)
{
    struct core_cmd *cmd = core_emit(c, CMD_RECORD);
    cmd->run = rec->run;
    cmd->step = rec->step;
    cmd->attempt = rec->attempt;
    cmd->rec = *rec;
}

/* C05: when everything open in a plan waits for people, the plan is paused; it is resumed when one
 * of them decides. */
static void emit_waiting_change(struct core *c, struct core_run *entry)
{
    if (c->quiet) {
        return;
    }
    const struct run *run = entry->run;
    const bool paused = (run->paused & 1u << PAUSE_REVIEW) != 0;
    const bool other = (run->paused & ~(1u << PAUSE_REVIEW)) != 0;
    const bool waits = run->status == PLAN_WAITING && !other;
    if (plan_is_final(run->status) || run->cancelling || run->open == 0 || other ||
        paused == waits) {
        return;
    }
    struct record rec = {.type = waits ? REC_PLAN_PAUSED : REC_PLAN_RESUMED, .step = STEP_NONE};
    REC(&rec, pause)->reason = PAUSE_REVIEW;
    core_record(c, entry, rec);
}

/* Before a record that changes the work: an open sign-off is about the revision before. */
static void void_signoff(struct core *c, struct core_run *entry, const struct record *rec)
{
    const struct run *run = entry->run;
    const bool skips =
        rec->type == REC_PLAN_MODIFIED && REC(rec, revision)->modify != MODIFY_CONVERSATION_ONLY;
    if ((run->paused & 1u << PAUSE_SIGNOFF) == 0 || !(skips || record_revises(rec)) ||
        MUTANT(VOID_UNTOLD)) {
        return;
    }
    const bool quiet = c->quiet;
    c->quiet = true; /* whether the plan waits is decided after the change */
    core_record(c, entry,
                (struct record){REC_INIT(REVIEW_VOIDED, pause, .reason = PAUSE_SIGNOFF,
                                         .serial = run->plan_review, .revision = run->revision),
                                .step = STEP_NONE});
    c->quiet = quiet;
}

void core_record(struct core *c, struct core_run *entry, struct record rec)
{
    rec.now = c->now;
    rec.wall = c->wall;
    if (entry != NULL) {
        rec.run = c->at = core_handle_of(c, entry);
        void_signoff(c, entry, &rec);
        const bool fits = run_apply(entry->run, entry->plan, &rec);
        ASSERT(fits);
    }
    emit_record(c, &rec);
    if (entry != NULL) {
        emit_waiting_change(c, entry);
    }
}

void core_emit_waiting(struct core *c, struct core_run *entry)
{
    c->quiet = false;
    emit_waiting_change(c, entry);
}

void core_record_revision(struct core *c, struct core_run *entry, struct record rec,
                          const struct core_new_plan *next)
{
    rec.now = c->now;
    rec.wall = c->wall;
    rec.run = core_handle_of(c, entry);
    void_signoff(c, entry, &rec);
    struct run *run =
        run_revise(core_block_run(next->block), next->plan, entry->run, entry->plan, &rec);
    ASSERT(run != NULL);
    if (entry->plan->planning.pending) {
        core_entry_init(entry, run, next->plan); /* the plan had no steps before */
    } else {
        core_entry_move(entry, run, next->plan);
    }
    core_rearm(c, entry);
    emit_record(c, &rec);
    emit_waiting_change(c, entry);
}

void core_reject(struct core *c, const struct core_event *ev, enum core_reject why)
{
    struct core_cmd *cmd = core_emit(c, CMD_REJECT);
    cmd->run = ev->run;
    cmd->step = ev->step;
    cmd->attempt = ev->attempt;
    cmd->slot = ev->slot;
    cmd->epoch = ev->epoch;
    cmd->lane = ev->lane;
    cmd->reject = why;
}

const char *core_reject_text(enum core_reject r)
{
    static const char *const texts[] = {
        [REJECT_NONE] = "accepted",
        [REJECT_TOO_MANY_RUNS] = "too many plans are open; try again when some have ended",
        [REJECT_UNKNOWN_RUN] = "no open plan has this handle",
        [REJECT_FINAL] = "it has ended",
        [REJECT_STALE_ATTEMPT] = "this attempt is not the current one",
        [REJECT_STALE_REVIEW] = "another review is open by now",
        [REJECT_STALE_EPOCH] = "this incarnation of the instance was replaced or is gone",
        [REJECT_FOREIGN] = "it belongs to another instance or agent",
        [REJECT_PROCESS] =
            ("instanceId: another process is registered under it; a new process makes "
             "up a new instanceId and a new sessionKey"),
        [REJECT_NOT_WAITING] = "nothing waits for this",
        [REJECT_TOO_MANY_INSTANCES] = "too many instances are registered",
        [REJECT_TOO_MUCH] = "too often",
        [REJECT_REVISION] = "the plan has been changed since; look at it again",
        [REJECT_BEGUN] = "a step that has begun cannot be changed",
        [REJECT_CANCELLING] = "the plan is being cancelled",
        [REJECT_UNDOING] =
            ("the plan has ended, and what it did is being undone; to stop that, cancel the plan "
             "that undoes it"),
        [REJECT_PAUSED] = "it is paused already",
        [REJECT_NO_STEP] = "the plan has no such step",
        [REJECT_SIGNALS] = "64 signals are kept already, and no step waits for this one now",
        [REJECT_JOB] = "the plan is still being made, or its answer is being written",
    };
    _Static_assert(sizeof texts / sizeof texts[0] == CORE_REJECT_COUNT, "a text per rejection");
    ASSERT((unsigned)r < CORE_REJECT_COUNT);
    return texts[r];
}

/* ---- the way in ---- */

static core_handler *const handlers[] = {
    [CORE_SUBMIT] = core_on_submit,
    [CORE_RECOVER] = core_on_recover,
    [CORE_CANCEL] = core_on_cancel,
    [CORE_REGISTER] = core_on_register,
    [CORE_SEEN] = core_on_seen,
    [CORE_LANE_UP] = core_on_lane_up,
    [CORE_LANE_DOWN] = core_on_lane_down,
    [CORE_GONE] = core_on_gone,
    [CORE_DRAIN] = core_on_drain,
    [CORE_RESULT] = core_on_result,
    [CORE_LOST] = core_on_lost,
    [CORE_BUSY] = core_on_busy,
    [CORE_LANE_FREE] = core_on_lane_free,
    [CORE_STATE] = core_on_state,
    [CORE_NOT_LISTED] = core_on_not_listed,
    [CORE_PROGRESS] = core_on_progress,
    [CORE_DECIDE] = core_on_decide,
    [CORE_RESTARTED] = core_on_restarted,
    [CORE_GAVE_UP] = core_on_gave_up,
    [CORE_TICK] = core_on_tick,
    [CORE_STALLED] = core_on_stalled,
    [CORE_PAUSE] = core_on_pause,
    [CORE_RESUME] = core_on_resume,
    [CORE_MODIFY] = core_on_modify,
    [CORE_REVISE] = core_on_revise,
    [CORE_PROBED] = core_on_probed,
    [CORE_CONDITION] = core_on_condition,
    [CORE_CHILD] = core_on_child,
    [CORE_SIGNAL] = core_on_signal,
    [CORE_PLANNED] = core_on_planned,
    [CORE_JOB_FAILED] = core_on_job_failed,
    [CORE_RECTIFY] = core_on_rectify,
    [CORE_JOB_TEXT] = core_on_job_text,
    [CORE_SYNTHESIZED] = core_on_synthesized,
    [CORE_COMPENSATED] = core_on_compensated,
};
_Static_assert(sizeof handlers / sizeof handlers[0] == CORE_EVENT_TYPE_COUNT, "one per event");

void core_handle(struct core *c, const struct core_event *ev, struct commands *out)
{
    ASSERT((unsigned)ev->type < CORE_EVENT_TYPE_COUNT);
    ASSERT(c->out == NULL);
    c->out = out;
    c->now = ev->now > c->now ? ev->now : c->now; /* time never runs backwards in the core */
    c->wall = ev->wall;
    core_follow_clock(c);
    c->at = ev->run;
    c->text_used = 0;
    c->text_agent = REGISTRY_NONE;
    c->recovering = ev->type == CORE_RECOVER;
    handlers[ev->type](c, ev);
    core_start_queued(c);
    if (ev->type == CORE_TICK) {
        core_forget_agents(c); /* at the end: no list of the core names an agent without work */
    }
    ASSERT(c->lost.n == 0 && !c->quiet);
    c->out = NULL;
}

void core_retune(struct core *c, const struct core_tuning *to)
{
    if (MUTANT(RETUNE_IGNORED)) {
        return;
    }
    c->config.agent_wait_ms = to->agent_wait_ms;
    c->config.unknown_wait_ms = to->unknown_wait_ms;
    c->config.cancel_grace_ms = to->cancel_grace_ms;
    registry_lease_set(c->registry, to->lease_ms, to->suspect_ms);
}

msec core_deadline(const struct core *c)
{
    const msec runs = heap_min(&c->due);
    const msec registry = registry_deadline(c->registry);
    const msec left = msec_add(registry_absence(c->registry), c->config.agent_wait_ms);
    const msec opens = c->woken_keys.head != UINT32_MAX ? c->now : heap_min(&c->opens);
    msec due = runs < registry ? runs : registry;
    due = opens < due ? opens : due;
    return due < left ? due : left;
}

/* ---- asking ---- */

uint64_t core_newest_run(const struct core *c)
{
    return c->newest;
}

uint64_t core_at(const struct core *c)
{
    return c->at;
}

uint32_t core_runs_open(const struct core *c)
{
    return c->open;
}

const struct run *core_run(const struct core *c, uint64_t handle, const struct plan **ret_plan)
{
    const struct core_run *entry = core_find_run(c, handle);
    if (entry == NULL) {
        return NULL;
    }
    if (ret_plan != NULL) {
        *ret_plan = entry->plan;
    }
    return entry->run;
}

uint32_t core_adopted(const struct core *c, uint32_t slot, struct core_adopted *ret, uint32_t max)
{
    uint32_t n = 0;
    uint64_t ref = slot < c->config.registry.instances ? c->instances[slot].held.head : REF_NONE;
    while (ref != REF_NONE && n < max) {
        uint32_t step;
        const struct core_run *entry = core_deref(c, ref, &step);
        const struct run_step *state = &entry->run->steps[step];
        if (entry->sched[step].adopted) {
            ret[n++] = (struct core_adopted){.run = core_handle_of(c, entry),
                                             .step = step,
                                             .attempt = state->attempt,
                                             .phase = state->phase};
        }
        ref = entry->sched[step].next;
    }
    return n;
}

uint32_t core_agent_queued(const struct core *c, uint32_t agent)
{
    return agent < c->config.registry.agents ? c->agents[agent].queued : 0;
}
