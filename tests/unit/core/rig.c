#include "tests/unit/core/rig.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/core/plan_text.h"

enum { PLANS_MAX = 16, RECORDS_MAX = 4096, TRACE_MAX = 64 * 1024, INSTANCES_MAX = 32 };

struct rig_plan {
    struct plan *plan;
    void *block;
    struct run *shadow; /* replayed from the records alone */
    uint64_t handle;    /* 0 = over */
    struct record *records;
    uint32_t n_records;
};

/* Where a step's latest attempt went. */
struct sent {
    uint32_t slot, lane, attempt;
    uint64_t epoch;
};

struct rig {
    struct core_config config;
    struct core *core;
    void *core_mem;
    msec now;
    struct rig_plan plans[PLANS_MAX];
    uint32_t n_plans;
    struct sent sent[PLANS_MAX][64];
    struct commands out;
    struct core_cmd *cmds;
    char trace[TRACE_MAX];
    size_t trace_len;
    uint64_t epoch_of[INSTANCES_MAX];
    uint32_t slot_of[INSTANCES_MAX];
};

static _Noreturn void stop(const struct rig *r, const char *what, const char *more)
{
    (void)fprintf(stderr, "rig: %s: %s\ntrace so far:\n%s", what, more, r->trace);
    abort();
}

static void grow(struct commands *c)
{
    c->cap = c->cap == 0 ? 64 : 2 * c->cap;
    c->at = realloc(c->at, c->cap * sizeof *c->at);
    if (c->at == NULL) {
        abort();
    }
}

struct core_config rig_config(void)
{
    return (struct core_config){.runs_max = PLANS_MAX,
                                .registry = {.agents = 16,
                                             .instances = INSTANCES_MAX,
                                             .lease_ms = 3000,
                                             .suspect_ms = 1500,
                                             .epoch_base = 0},
                                .agent_wait_ms = 10000,
                                .unknown_wait_ms = 5000,
                                .cancel_grace_ms = 1000,
                                .seed = 1};
}

struct rig *rig_new_with(const struct core_config *config)
{
    struct rig *r = calloc(1, sizeof *r);
    if (r == NULL) {
        abort();
    }
    r->config = *config;
    r->core_mem = calloc(1, core_size(config));
    r->core = core_init(r->core_mem, config);
    r->out.grow = grow;
    return r;
}

struct rig *rig_new(void)
{
    const struct core_config config = rig_config();
    return rig_new_with(&config);
}

void rig_free(struct rig *r)
{
    if (r == NULL) {
        return;
    }
    for (uint32_t i = 0; i < r->n_plans; i++) {
        plan_text_free(r->plans[i].plan);
        free(r->plans[i].block);
        free(r->plans[i].shadow);
        free(r->plans[i].records);
    }
    free(r->out.at);
    free(r->core_mem);
    free(r);
}

struct core *rig_core(struct rig *r)
{
    return r->core;
}

msec rig_now(const struct rig *r)
{
    return r->now;
}

/* ---- names ---- */

static struct rig_plan *plan_of(const struct rig *r, uint64_t handle)
{
    for (uint32_t i = 0; i < r->n_plans; i++) {
        if (r->plans[i].handle == handle && handle != 0) {
            return (struct rig_plan *)(uintptr_t)&r->plans[i];
        }
    }
    return NULL;
}

static const struct rig_plan *find_step(const struct rig *r, const char *name, uint32_t *ret_step)
{
    for (uint32_t i = 0; i < r->n_plans; i++) {
        *ret_step = plan_step_find(r->plans[i].plan, str_from(name));
        if (*ret_step != UINT32_MAX) {
            return &r->plans[i];
        }
    }
    stop(r, "no such step", name);
}

static struct uuid instance_id(uint8_t n)
{
    return (struct uuid){.b = {[15] = n}};
}

static const char *agent_name(const struct rig *r, uint32_t agent, char *buf, size_t size)
{
    if (agent == AGENT_SUPERVISOR) {
        return "supervisor";
    }
    const struct str id = registry_agent_view(core_registry(r->core), agent).id;
    (void)snprintf(buf, size, "%.*s", STR_ARG(id));
    return buf;
}

/* ---- the trace ---- */

static void say(struct rig *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct rig *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(r->trace + r->trace_len, TRACE_MAX - r->trace_len, fmt, args);
    va_end(args);
    r->trace_len += (size_t)n;
    if (r->trace_len >= TRACE_MAX) {
        abort();
    }
}

static void say_text(struct rig *r, struct str text)
{
    if (text.len > 0) {
        say(r, ": %.*s", STR_ARG(text));
    }
}

static void say_plan_end(struct rig *r, const struct record *rec)
{
    say(r, "plan %s/%s", plan_status_name(rec->plan_status), plan_outcome_name(rec->outcome));
    if (rec->failure != PLAN_FAILURE_NONE) {
        say(r, " %s", plan_failure_name(rec->failure));
    }
    say_text(r, rec->text);
}

static void say_step_end(struct rig *r, const struct record *rec)
{
    say(r, " %s", step_status_name(rec->status));
    if (rec->reason != REASON_NONE) {
        say(r, " %s", step_reason_name(rec->reason));
    }
    if (rec->error_class != CLASS_NONE) {
        say(r, " %s", err_class_name(rec->error_class));
    }
    say_text(r, rec->text);
}

static void say_step_record(struct rig *r, const struct record *rec)
{
    char name[65];
    const enum record_type t = rec->type;
    if (t == REC_STEP_STARTED || t == REC_STEP_ASSIGNED) {
        say(r, " %s i%u", t == REC_STEP_STARTED ? "started" : "assigned", rec->instance.b[15]);
    } else if (t == REC_HANDOFF) {
        say(r, " handoff from %s", agent_name(r, rec->from_agent, name, sizeof name));
    } else if (t == REC_STEP_RETRY) {
        say(r, " retry +%" PRIu64 " %s", rec->delay_ms, err_class_name(rec->error_class));
        say_text(r, rec->text);
    } else if (t == REC_STEP_WAITING) {
        say(r, " waiting %s", review_kind_name(rec->review));
        say_text(r, rec->text);
    } else if (t == REC_REVIEW_DECIDED) {
        say(r, " decided %s", review_decision_name(rec->decision));
        say_text(r, rec->text);
    } else if (t == REC_STEP_UNKNOWN) {
        say(r, " unknown +%" PRIu64, rec->delay_ms);
    } else if (t == REC_STEP_PROGRESS) {
        say(r, " progress");
    } else {
        say_step_end(r, rec);
    }
}

static void say_record(struct rig *r, const struct record *rec)
{
    char name[65];
    if (record_about(rec->type) == ABOUT_AGENT) {
        say(r, "%s %s i%u", record_wire_type(rec->type),
            agent_name(r, rec->agent, name, sizeof name), rec->instance.b[15]);
        say_text(r, rec->text);
    } else if (rec->type == REC_PLAN_COMPLETED) {
        say_plan_end(r, rec);
    } else if (rec->step == STEP_NONE) {
        say(r, "%s", record_wire_type(rec->type));
        say_text(r, rec->text);
    } else {
        const struct rig_plan *p = plan_of(r, rec->run);
        say(r, "%.*s#%u", STR_ARG(p->plan->steps[rec->step].step_id), (unsigned)rec->attempt);
        say_step_record(r, rec);
    }
}

static void say_command(struct rig *r, const struct core_cmd *cmd)
{
    struct instance_view v = {0};
    const struct rig_plan *p = plan_of(r, cmd->run);
    const struct str step = p != NULL && cmd->step < p->plan->n_steps
                                ? p->plan->steps[cmd->step].step_id
                                : STR_LIT("?");
    (void)registry_instance_view(core_registry(r->core), cmd->slot, &v);
    say(r, "[%" PRIu64 "] ", r->now);
    switch (cmd->type) {
    case CMD_RECORD:
        say_record(r, &cmd->rec);
        break;
    case CMD_DISPATCH:
        say(r, "dispatch %.*s#%u i%u/%u", STR_ARG(step), (unsigned)cmd->attempt, v.id.b[15],
            (unsigned)cmd->lane);
        break;
    case CMD_CANCEL_STEP:
        say(r, "cancel %.*s#%u i%u", STR_ARG(step), (unsigned)cmd->attempt, v.id.b[15]);
        break;
    case CMD_QUERY:
        say(r, "query %.*s#%u i%u", STR_ARG(step), (unsigned)cmd->attempt, v.id.b[15]);
        break;
    case CMD_REGISTERED:
        say(r, "registered i%u epoch=%" PRIu64, v.id.b[15], cmd->epoch);
        break;
    case CMD_CLOSE:
        say(r, "close epoch=%" PRIu64, cmd->epoch);
        break;
    case CMD_RUN_DONE:
        say(r, "run done");
        break;
    case CMD_KILL:
        say(r, "kill i%u", v.id.b[15]);
        break;
    case CMD_PROBE:
        say(r, "probe i%u", v.id.b[15]);
        break;
    case CMD_REVISED:
        say(r, "revised");
        break;
    case CMD_REJECT:
        say(r, "reject: %s", core_reject_text(cmd->reject));
        break;
    case CORE_CMD_TYPE_COUNT:
        break;
    }
    say(r, "\n");
}

void rig_forget(struct rig *r)
{
    r->trace_len = 0;
    r->trace[0] = '\0';
}

void rig_trace_is(struct rig *r, const char *expected, const char *file, int line)
{
    if (strcmp(r->trace, expected) != 0) {
        (void)fprintf(stderr, "%s:%d: another trace\n--- expected\n%s--- is\n%s---\n", file, line,
                      expected, r->trace);
        abort();
    }
    rig_forget(r);
}

/* ---- events ---- */

static void keep_record(struct rig *r, const struct record *rec)
{
    struct rig_plan *p = plan_of(r, rec->run);
    if (p == NULL) {
        stop(r, "a record of no plan", record_wire_type(rec->type));
    }
    if (p->n_records == RECORDS_MAX || !run_apply(p->shadow, p->plan, rec)) {
        stop(r, "a record does not fit", record_wire_type(rec->type));
    }
    p->records[p->n_records] = *rec;
    p->records[p->n_records].text = (struct str){0};
    p->n_records++;
}

static void take_command(struct rig *r, const struct core_cmd *cmd)
{
    struct rig_plan *p = plan_of(r, cmd->run);
    if (cmd->type == CMD_RECORD && cmd->run != 0) {
        keep_record(r, &cmd->rec);
    }
    say_command(r, cmd);
    if (cmd->type == CMD_DISPATCH) {
        r->sent[p - r->plans][cmd->step] =
            (struct sent){cmd->slot, cmd->lane, cmd->attempt, cmd->epoch};
    }
    if (cmd->type == CMD_REGISTERED) {
        struct instance_view v;
        (void)registry_instance_view(core_registry(r->core), cmd->slot, &v);
        r->epoch_of[v.id.b[15]] = cmd->epoch;
        r->slot_of[v.id.b[15]] = cmd->slot;
    }
    if (cmd->type == CMD_RUN_DONE) {
        p->handle = 0;
    }
}

static void check(struct rig *r)
{
    const char *why = "";
    if (!core_invariant(r->core, &why)) {
        stop(r, "invariant", why);
    }
    for (uint32_t i = 0; i < r->n_plans; i++) {
        const struct rig_plan *p = &r->plans[i];
        const struct run *live = core_block_run(p->block);
        if (memcmp(live, p->shadow, run_size(live->n_steps)) != 0) {
            stop(r, "replay", "the replayed run differs from the live one");
        }
        if (!run_invariant(live, p->plan, &why)) {
            stop(r, "invariant of the run", why);
        }
    }
}

void rig_event(struct rig *r, struct core_event ev)
{
    ev.now = r->now;
    ev.wall = 1000000 + r->now;
    r->out.n = 0;
    core_handle(r->core, &ev, &r->out);
    if (ev.type == CORE_SUBMIT || ev.type == CORE_RECOVER) {
        for (uint32_t i = 0; i < r->n_plans; i++) {
            if (r->plans[i].block == ev.block) {
                r->plans[i].handle = core_newest_run(r->core);
            }
        }
    }
    for (uint32_t i = 0; i < r->out.n; i++) {
        take_command(r, &r->out.at[i]);
    }
    check(r);
}

uint64_t rig_submit(struct rig *r, const char *text)
{
    if (r->n_plans == PLANS_MAX) {
        stop(r, "too many plans", text);
    }
    struct rig_plan *p = &r->plans[r->n_plans++];
    p->plan = plan_text_new(text, core_registry(r->core));
    p->block = calloc(1, core_run_size(p->plan));
    p->shadow = run_init(calloc(1, run_size(p->plan->n_steps)), p->plan);
    p->records = calloc(RECORDS_MAX, sizeof *p->records);
    (void)run_init(p->block, p->plan);
    rig_event(r, (struct core_event){.type = CORE_SUBMIT, .plan = p->plan, .block = p->block});
    return core_newest_run(r->core);
}

const struct run *rig_run(const struct rig *r, uint64_t handle)
{
    return core_run(r->core, handle, NULL);
}

const struct plan *rig_plan(const struct rig *r, uint64_t handle)
{
    return plan_of(r, handle)->plan;
}

void rig_register(struct rig *r, const char *agent, uint8_t instance, uint32_t capacity)
{
    rig_event(r, (struct core_event){
                     .type = CORE_REGISTER,
                     .agent = registry_agent_add(core_registry(r->core), str_from(agent), r->now),
                     .instance = instance_id(instance),
                     .capacity = capacity,
                     .pid = 100u + instance});
}

void rig_lane(struct rig *r, uint8_t instance, uint32_t lane, bool up)
{
    rig_event(r, (struct core_event){.type = up ? CORE_LANE_UP : CORE_LANE_DOWN,
                                     .slot = r->slot_of[instance],
                                     .epoch = r->epoch_of[instance],
                                     .lane = lane});
}

void rig_up(struct rig *r, const char *agent, uint8_t instance, uint32_t capacity)
{
    rig_register(r, agent, instance, capacity);
    rig_lane(r, instance, REGISTRY_CONTROL_LANE, true);
    for (uint32_t i = 0; i < capacity; i++) {
        rig_lane(r, instance, i, true);
    }
}

void rig_instance(struct rig *r, enum core_event_type type, uint8_t instance, const char *text)
{
    rig_event(r, (struct core_event){.type = type,
                                     .slot = r->slot_of[instance],
                                     .epoch = r->epoch_of[instance],
                                     .lane = LANE_NONE,
                                     .text = str_from(text)});
}

struct core_event rig_about(const struct rig *r, enum core_event_type type, const char *step)
{
    uint32_t ix;
    const struct rig_plan *p = find_step(r, step, &ix);
    const struct sent *sent = &r->sent[p - r->plans][ix];
    return (struct core_event){.type = type,
                               .run = p->handle,
                               .step = ix,
                               .attempt = sent->attempt,
                               .slot = sent->slot,
                               .epoch = sent->epoch,
                               .lane = sent->lane};
}

void rig_ok(struct rig *r, const char *step)
{
    struct core_event ev = rig_about(r, CORE_RESULT, step);
    ev.outcome = STEP_OUTCOME_COMPLETED;
    ev.result = (struct blob_ref){.id = 100 + ev.step, .len = 3};
    ev.usage = (struct usage){.input_tokens = 10, .output_tokens = 1};
    rig_event(r, ev);
}

void rig_fail(struct rig *r, const char *step, enum err_class c, const char *text)
{
    struct core_event ev = rig_about(r, CORE_RESULT, step);
    ev.outcome = STEP_OUTCOME_FAILED;
    ev.error_class = c;
    ev.text = str_from(text);
    rig_event(r, ev);
}

void rig_needs(struct rig *r, const char *step, enum step_outcome outcome, const char *prompt)
{
    struct core_event ev = rig_about(r, CORE_RESULT, step);
    ev.outcome = outcome;
    ev.text = str_from(prompt);
    rig_event(r, ev);
}

void rig_lost(struct rig *r, const char *step, bool sent)
{
    struct core_event ev = rig_about(r, CORE_LOST, step);
    ev.sent = sent;
    rig_event(r, ev);
}

void rig_state(struct rig *r, const char *step, bool running)
{
    uint32_t ix;
    const struct rig_plan *p = find_step(r, step, &ix);
    const uint8_t instance = core_run(r->core, p->handle, NULL)->steps[ix].instance.b[15];
    struct core_event ev = rig_about(r, CORE_STATE, step);
    ev.slot = r->slot_of[instance];
    ev.epoch = r->epoch_of[instance];
    ev.lane = LANE_NONE;
    ev.running = running;
    rig_event(r, ev);
}

void rig_decide(struct rig *r, const char *step, enum review_decision d, const char *comment)
{
    struct core_event ev = rig_about(r, CORE_DECIDE, step);
    ev.decision = d;
    ev.text = str_from(comment);
    ev.lane = LANE_NONE;
    rig_event(r, ev);
}

void rig_cancel(struct rig *r, uint64_t handle, const char *why)
{
    rig_event(r, (struct core_event){.type = CORE_CANCEL, .run = handle, .text = str_from(why)});
}

/* ---- time ---- */

static void heard_from_all(struct rig *r)
{
    const uint32_t n = registry_instances(core_registry(r->core));
    for (uint32_t slot = 0; slot < n; slot++) {
        struct instance_view v;
        if (registry_instance_view(core_registry(r->core), slot, &v)) {
            rig_event(r, (struct core_event){.type = CORE_SEEN, .slot = slot, .epoch = v.epoch});
        }
    }
}

static void pass(struct rig *r, msec until, bool silent)
{
    for (;;) {
        const msec due = core_deadline(r->core);
        const msec beat = silent ? MSEC_NEVER : (r->now / 1000 + 1) * 1000;
        const msec next = due < beat ? due : beat;
        if (next > until) {
            break;
        }
        r->now = next > r->now ? next : r->now;
        if (next == beat) {
            heard_from_all(r);
        }
        if (core_deadline(r->core) <= r->now) {
            rig_event(r, (struct core_event){.type = CORE_TICK});
        }
    }
    r->now = until;
}

void rig_until(struct rig *r, msec now)
{
    pass(r, now, false);
}

void rig_silence_until(struct rig *r, msec now)
{
    pass(r, now, true);
}

void rig_restart(struct rig *r, msec down)
{
    r->now += down;
    r->config.registry.epoch_base += 1000;
    memset(r->core_mem, 0, core_size(&r->config));
    r->core = core_init(r->core_mem, &r->config);
    for (uint32_t i = 0; i < r->n_plans; i++) {
        struct rig_plan *p = &r->plans[i];
        if (p->handle == 0) {
            continue;
        }
        for (uint32_t s = 0; s < p->plan->n_steps; s++) {
            p->plan->steps[s].agent =
                registry_agent_add(core_registry(r->core), p->plan->steps[s].agent_id, r->now);
        }
        struct run *run = run_init(core_block_run(p->block), p->plan);
        for (uint32_t k = 0; k < p->n_records; k++) {
            if (!run_apply(run, p->plan, &p->records[k])) {
                stop(r, "replay", "a kept record does not fit");
            }
        }
        rig_event(r, (struct core_event){.type = CORE_RECOVER, .plan = p->plan, .block = p->block});
    }
}

enum step_status rig_status(const struct rig *r, const char *step)
{
    uint32_t ix;
    const struct rig_plan *p = find_step(r, step, &ix);
    return core_block_run(p->block)->steps[ix].status;
}
