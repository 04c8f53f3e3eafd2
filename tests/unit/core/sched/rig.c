/* Events for a core on a bench. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/core/plan/plan_text.h"
#include "tests/unit/core/sched/event_plan.h"
#include "tests/unit/core/sched/rig_internal.h"

_Noreturn void rig_stop(const struct rig *r, const char *what, const char *more)
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
                                .keys = RIG_KEYS,
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
        for (uint32_t k = 0; k < r->plans[i].n_revisions; k++) {
            plan_text_free(r->plans[i].revisions[k]);
        }
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

struct rig_plan *rig_plan_of(const struct rig *r, uint64_t handle)
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
    rig_stop(r, "no such step", name);
}

static struct uuid instance_id(uint8_t n)
{
    return (struct uuid){.b = {[15] = n}};
}

/* ---- events ---- */

uint32_t rig_revision_in_force(const struct rig_plan *p, uint32_t k)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k; i++) {
        n += record_revises(&p->records[i]) ? 1 : 0;
    }
    return n;
}

/* The run after the record that brings the next revision; the one before is freed. */
static struct run *revised(struct rig *r, struct run *run, const struct rig_plan *p, uint32_t now,
                           const struct record *rec)
{
    const struct plan *to = now + 1 < p->n_revisions ? p->revisions[now + 1] : NULL;
    if (to == NULL) {
        rig_stop(r, "a revision that nobody made", record_wire_type(rec->type));
    }
    struct run *next = run_revise(calloc(1, core_run_size(to)), to, run, p->revisions[now], rec);
    if (next == NULL) {
        rig_stop(r, "a revision does not fit", record_wire_type(rec->type));
    }
    free(run);
    return next;
}

static void keep_record(struct rig *r, const struct record *rec)
{
    struct rig_plan *p = rig_plan_of(r, rec->run);
    if (p == NULL) {
        rig_stop(r, "a record of no plan", record_wire_type(rec->type));
    }
    if (p->n_records == RECORDS_MAX) {
        rig_stop(r, "too many records", record_wire_type(rec->type));
    }
    if (record_revises(rec)) {
        const uint32_t now = rig_revision_in_force(p, p->n_records);
        p->shadow = revised(r, p->shadow, p, now, rec);
    } else if (!run_apply(p->shadow, p->revisions[rig_revision_in_force(p, p->n_records)], rec)) {
        rig_stop(r, "a record does not fit", record_wire_type(rec->type));
    }
    p->records[p->n_records] = *rec;
    p->records[p->n_records].text = (struct str){0};
    if ((rec->type == REC_SYNTHESIS_STARTED || rec->type == REC_COMPENSATION_STARTED ||
         rec->type == REC_FALLBACK_USED) &&
        rec->text.len > 0) {
        if (rec->text.len > TEXTS_MAX - p->texts_n) {
            rig_stop(r, "too many texts", record_wire_type(rec->type));
        }
        memcpy(p->texts + p->texts_n, rec->text.ptr, rec->text.len);
        p->records[p->n_records].text = (struct str){p->texts + p->texts_n, rec->text.len};
        p->texts_n += rec->text.len;
    }
    p->n_records++;
}

/* ---- keys and rates ---- */

static void note_start(struct rig *r, struct rig_rate *of)
{
    if (of->n == RIG_STARTS) {
        rig_stop(r, "too many starts", "");
    }
    of->starts[of->n++] = r->now;
}

/* As the owner of a core does it: what has a rate is written down, for the next core. */
static void note_dispatch(struct rig *r, const struct rig_plan *p, const struct core_cmd *cmd)
{
    struct instance_view to;
    const uint32_t key = p->plan->steps[cmd->step].key;
    if (registry_instance_view(core_registry(r->core), cmd->slot, &to)) {
        note_start(r, &r->agent_rates[to.agent]);
    }
    if (key != 0 && cmd->phase <= PHASE_SEARCH) {
        note_start(r, &r->keys[p->plan->keys.at[key - 1]]);
    }
}

static void apply_rates(struct rig *r)
{
    for (uint32_t i = 0; i < RIG_KEYS; i++) {
        if (r->keys[i].given) {
            core_key_rule(r->core, i, r->keys[i].max, r->keys[i].rate, r->keys[i].ring);
        }
    }
    for (uint32_t i = 0; i < 16; i++) {
        if (r->agent_rates[i].given) {
            core_agent_rate(r->core, i, r->agent_rates[i].rate, r->agent_rates[i].ring);
        }
    }
}

static void report_starts(struct rig *r)
{
    for (uint32_t i = 0; i < RIG_KEYS; i++) {
        for (uint32_t k = 0; k < r->keys[i].n; k++) {
            core_key_was_started(r->core, i, r->keys[i].starts[k]);
        }
    }
    for (uint32_t i = 0; i < 16; i++) {
        for (uint32_t k = 0; k < r->agent_rates[i].n; k++) {
            core_agent_started(r->core, i, r->agent_rates[i].starts[k]);
        }
    }
}

void rig_key(struct rig *r, uint32_t key, uint32_t max, uint32_t n, msec per_ms)
{
    r->keys[key].given = true;
    r->keys[key].max = max;
    r->keys[key].rate = (struct core_rate){n, per_ms};
    apply_rates(r);
}

void rig_rate(struct rig *r, const char *agent, uint32_t n, msec per_ms)
{
    const uint32_t at = registry_agent_add(core_registry(r->core), str_from(agent), r->now);
    r->agent_rates[at].given = true;
    r->agent_rates[at].rate = (struct core_rate){n, per_ms};
    apply_rates(r);
}

static void take_command(struct rig *r, const struct core_cmd *cmd)
{
    struct rig_plan *p = rig_plan_of(r, cmd->run);
    if (cmd->type == CMD_RECORD && cmd->run != 0) {
        keep_record(r, &cmd->rec);
    }
    rig_say_command(r, cmd);
    if (cmd->type == CMD_RECORD && cmd->rec.type == REC_PLAN_STARTED && p->plan->keyed) {
        note_start(r, &r->keys[p->plan->keys.at[0]]);
    }
    if (cmd->type == CMD_DISPATCH) {
        note_dispatch(r, p, cmd);
        r->sent[p - r->plans][cmd->step] =
            (struct sent){cmd->slot, cmd->lane, cmd->attempt, cmd->phase, cmd->epoch};
    }
    if (cmd->type == CMD_REGISTERED) {
        struct instance_view v;
        (void)registry_instance_view(core_registry(r->core), cmd->slot, &v);
        r->epoch_of[v.id.b[15]] = cmd->epoch;
        r->slot_of[v.id.b[15]] = cmd->slot;
    }
    if (cmd->type == CMD_REVISED) {
        free(p->old_block);
        p->old_block = NULL;
    }
    if (cmd->type == CMD_RUN_DONE) {
        p->handle = 0;
    }
}

static void check(struct rig *r)
{
    const char *why = "";
    if (!core_invariant(r->core, &why)) {
        rig_stop(r, "invariant", why);
    }
    for (uint32_t i = 0; i < r->n_plans; i++) {
        const struct rig_plan *p = &r->plans[i];
        const bool refused = p->old_block != NULL; /* the revision was not taken over */
        const struct run *live = core_block_run(refused ? p->old_block : p->block);
        const struct plan *plan = p->revisions[p->n_revisions - (refused ? 2 : 1)];
        if (memcmp(live, p->shadow, run_bytes(live)) != 0) {
            rig_stop(r, "replay", "the replayed run differs from the live one");
        }
        if (!run_invariant(live, plan, &why)) {
            rig_stop(r, "invariant of the run", why);
        }
    }
}

void rig_event(struct rig *r, struct core_event ev)
{
    ev.now = r->now;
    ev.wall = 1000000 + r->now + r->clock;
    r->out.n = 0;
    core_handle(r->core, &ev, &r->out);
    if (ev.type == CORE_SUBMIT || ev.type == CORE_RECOVER) {
        for (uint32_t i = 0; i < r->n_plans; i++) {
            if (r->plans[i].block == event_block(&ev)) {
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
    return rig_submit_after(r, text, NULL, 0);
}

uint64_t rig_submit_after(struct rig *r, const char *text, const struct core_reuse *reuse,
                          uint32_t n)
{
    if (r->n_plans == PLANS_MAX) {
        rig_stop(r, "too many plans", text);
    }
    struct rig_plan *p = &r->plans[r->n_plans++];
    p->plan = plan_text_new(text, core_registry(r->core));
    p->revisions[p->n_revisions++] = p->plan;
    p->block = calloc(1, core_run_size(p->plan));
    p->shadow = run_init(calloc(1, run_size(p->plan)), p->plan);
    p->records = calloc(RECORDS_MAX, sizeof *p->records);
    (void)run_init(p->block, p->plan);
    rig_event(r,
              (struct core_event){CORE_EV_INIT(SUBMIT, submit, .plan = p->plan, .block = p->block,
                                               .reuse = reuse, .n_reuse = n)});
    return core_newest_run(r->core);
}

const struct run *rig_run(const struct rig *r, uint64_t handle)
{
    return core_run(r->core, handle, NULL);
}

const struct plan *rig_plan(const struct rig *r, uint64_t handle)
{
    return rig_plan_of(r, handle)->plan;
}

void rig_register(struct rig *r, const char *agent, uint8_t instance, uint32_t capacity)
{
    rig_register_as(r, agent, instance, capacity, 1);
}

void rig_register_as(struct rig *r, const char *agent, uint8_t instance, uint32_t capacity,
                     uint8_t process)
{
    struct uuid id = {{0}};
    id.b[0] = process;
    id.b[15] = process > 0 ? instance : 0;
    rig_event(r, (struct core_event){
                     CORE_EV_INIT(REGISTER, registration,
                                  .agent = registry_agent_add(core_registry(r->core),
                                                              str_from(agent), r->now),
                                  .capacity = capacity, .pid = 100u + instance, .process = id),
                     .instance = instance_id(instance)});
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
                               .phase = sent->phase,
                               .slot = sent->slot,
                               .epoch = sent->epoch,
                               .lane = sent->lane};
}

void rig_ok(struct rig *r, const char *step)
{
    struct core_event ev = rig_about(r, CORE_RESULT, step);
    CORE_EV(&ev, result)->outcome = STEP_OUTCOME_COMPLETED;
    CORE_EV(&ev, result)->result = (struct blob_ref){.id = 100 + ev.step, .len = 3};
    CORE_EV(&ev, result)->usage = (struct usage){.input_tokens = 10, .output_tokens = 1};
    rig_event(r, ev);
}

void rig_fail(struct rig *r, const char *step, enum err_class c, const char *text)
{
    struct core_event ev = rig_about(r, CORE_RESULT, step);
    CORE_EV(&ev, result)->outcome = STEP_OUTCOME_FAILED;
    CORE_EV(&ev, result)->error_class = c;
    ev.text = str_from(text);
    rig_event(r, ev);
}

void rig_needs(struct rig *r, const char *step, enum step_outcome outcome, const char *prompt)
{
    struct core_event ev = rig_about(r, CORE_RESULT, step);
    CORE_EV(&ev, result)->outcome = outcome;
    ev.text = str_from(prompt);
    rig_event(r, ev);
}

void rig_calls(struct rig *r, const char *step, uint32_t n)
{
    struct core_event ev = rig_about(r, CORE_RESULT, step);
    CORE_EV(&ev, result)->outcome = STEP_OUTCOME_CALLS;
    CORE_EV(&ev, result)->calls = n;
    CORE_EV(&ev, result)->result = (struct blob_ref){.id = 8, .len = 1};
    CORE_EV(&ev, result)->usage = (struct usage){.input_tokens = 3};
    rig_event(r, ev);
}

void rig_lost(struct rig *r, const char *step, bool sent)
{
    struct core_event ev = rig_about(r, CORE_LOST, step);
    CORE_EV(&ev, lost)->sent = sent;
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
    *CORE_EV(&ev, state) = (struct core_ev_state){.running = running, .never = !running};
    rig_event(r, ev);
}

void rig_decide(struct rig *r, const char *step, enum review_decision d, const char *comment)
{
    uint32_t ix;
    const struct rig_plan *p = find_step(r, step, &ix);
    struct core_event ev = rig_about(r, CORE_DECIDE, step);
    ev.attempt = core_block_run(p->block)->steps[ix].review_serial;
    CORE_EV(&ev, decide)->decision = d;
    ev.text = str_from(comment);
    ev.lane = LANE_NONE;
    rig_event(r, ev);
}

void rig_verdict(struct rig *r, const char *step, bool passed, const char *text)
{
    struct core_event ev = rig_about(r, CORE_RESULT, step);
    CORE_EV(&ev, result)->outcome = STEP_OUTCOME_COMPLETED;
    CORE_EV(&ev, result)->passed = passed;
    ev.text = str_from(text);
    CORE_EV(&ev, result)->usage = (struct usage){.input_tokens = 5};
    rig_event(r, ev);
}

void rig_condition(struct rig *r, const char *step, enum condition_verdict verdict,
                   const char *tested)
{
    uint32_t ix;
    const struct rig_plan *p = find_step(r, step, &ix);
    const struct run *run = core_block_run(p->block);
    rig_event(r, (struct core_event){CORE_EV_INIT(CONDITION, condition, .verdict = verdict),
                                     .run = p->handle, .step = ix, .attempt = run->revision,
                                     .text = str_from(tested)});
}

void rig_child(struct rig *r, const char *step, enum child_outcome outcome, const char *text)
{
    uint32_t ix;
    const struct rig_plan *p = find_step(r, step, &ix);
    const struct run_step *s = &core_block_run(p->block)->steps[ix];
    rig_event(r, (struct core_event){
                     CORE_EV_INIT(CHILD, child, .outcome = outcome, .round = s->round,
                                  .error_class = CLASS_UNKNOWN, .result = {.id = 7, .len = 1},
                                  .percent = 50, .usage = {.input_tokens = 10}),
                     .run = p->handle, .step = ix, .attempt = s->attempt, .text = str_from(text)});
}

void rig_signal(struct rig *r, uint64_t handle, const char *name, uint64_t result)
{
    rig_event(r,
              (struct core_event){CORE_EV_INIT(SIGNAL, signal, .result = {.id = result, .len = 1}),
                                  .run = handle, .step = STEP_NONE, .text = str_from(name)});
}

void rig_kept_signal(struct rig *r, const char *step, const char *name, uint32_t serial,
                     uint64_t result)
{
    uint32_t ix;
    const struct rig_plan *p = find_step(r, step, &ix);
    rig_event(r, (struct core_event){CORE_EV_INIT(SIGNAL, signal, .serial = serial,
                                                  .result = {.id = result, .len = 1}),
                                     .run = p->handle, .step = ix, .text = str_from(name)});
}

void rig_clock(struct rig *r, int64_t offset_ms)
{
    r->clock = (uint64_t)offset_ms;
    if (core_clock_jumped(r->core, r->now, 1000000 + r->now + r->clock)) {
        rig_event(r, (struct core_event){.type = CORE_TICK});
    }
}

void rig_handoff(struct rig *r, const char *step, const char *to, const char *why)
{
    struct core_event ev = rig_about(r, CORE_RESULT, step);
    CORE_EV(&ev, result)->outcome = STEP_OUTCOME_HANDOFF;
    CORE_EV(&ev, result)->agent = registry_agent(core_registry(r->core), str_from(to));
    ev.text = str_from(why);
    rig_event(r, ev);
}

void rig_plan_event(struct rig *r, enum core_event_type type, uint64_t handle, const char *why)
{
    rig_event(r, (struct core_event){.type = type,
                                     .run = handle,
                                     .step = STEP_NONE,
                                     .lane = LANE_NONE,
                                     .text = str_from(why)});
}

void rig_modify(struct rig *r, uint64_t handle, enum modify_kind kind, uint32_t step,
                uint32_t expect)
{
    rig_event(r, (struct core_event){CORE_EV_INIT(MODIFY, modify, .kind = kind, .steps = &step,
                                                  .n_steps = 1, .expect = expect),
                                     .run = handle, .step = step, .lane = LANE_NONE,
                                     .text = STR_LIT("because")});
}

void rig_offer(struct rig *r, uint64_t handle, struct core_event ev, const char *text,
               uint32_t revision)
{
    struct rig_plan *p = rig_plan_of(r, handle);
    if (p == NULL || p->n_revisions == REVISIONS_MAX) {
        rig_stop(r, "no plan to revise", text);
    }
    struct plan *plan = plan_text_new(text, core_registry(r->core));
    plan->revision = revision;
    void *old = p->block;
    p->old_block = old;
    p->plan = plan;
    p->revisions[p->n_revisions++] = plan;
    p->block = calloc(1, core_run_size(plan));
    ev.run = handle;
    *event_plan(&ev) = (struct core_new_plan){
        .plan = plan, .block = p->block, .document = {.id = 900 + plan->revision, .len = 9}};
    rig_event(r, ev);
    if (p->old_block != NULL) {
        free(p->block);
        p->block = old;
        p->old_block = NULL;
        plan_text_free(p->revisions[--p->n_revisions]);
        p->plan = p->revisions[p->n_revisions - 1];
    }
}

void rig_revise(struct rig *r, uint64_t handle, struct core_event ev, const char *text)
{
    rig_offer(r, handle, ev, text, core_revision(r->core, handle) + 1);
}

void rig_insert(struct rig *r, uint64_t handle, const char *text)
{
    rig_revise(
        r, handle,
        (struct core_event){CORE_EV_INIT(REVISE, revise, .kind = MODIFY_INSERT), .lane = LANE_NONE},
        text);
}

void rig_replan(struct rig *r, const char *step, const char *text)
{
    struct core_event ev = rig_about(r, CORE_RESULT, step);
    CORE_EV(&ev, result)->outcome = STEP_OUTCOME_COMPLETED;
    rig_revise(r, ev.run, ev, text);
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

struct run *rig_replay(struct rig *r, const struct rig_plan *p, uint32_t n)
{
    struct run *run = run_init(calloc(1, core_run_size(p->revisions[0])), p->revisions[0]);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t now = rig_revision_in_force(p, k);
        if (record_revises(&p->records[k])) {
            run = revised(r, run, p, now, &p->records[k]);
        } else if (!run_apply(run, p->revisions[now], &p->records[k])) {
            rig_stop(r, "replay", "a kept record does not fit");
        }
    }
    return run;
}

void rig_restart(struct rig *r, msec down)
{
    r->now += down;
    r->config.registry.epoch_base += 1000;
    char names[64][65];
    const uint32_t n = registry_agents(core_registry(r->core));
    for (uint32_t i = 0; i < n && i < 64; i++) {
        const struct str id = registry_agent_view(core_registry(r->core), i).id;
        (void)snprintf(names[i], sizeof names[i], "%.*s", STR_ARG(id));
        if (id.len == 0) { /* plans keep their indexes: the place of a forgotten agent stays */
            (void)snprintf(names[i], sizeof names[i], "free-%u", i);
        }
    }
    memset(r->core_mem, 0, core_size(&r->config));
    r->core = core_init(r->core_mem, &r->config);
    for (uint32_t i = 0; i < n && i < 64; i++) {
        (void)registry_agent_add(core_registry(r->core), str_from(names[i]), r->now);
    }
    apply_rates(r);
    report_starts(r);
    for (uint32_t i = 0; i < r->n_plans; i++) {
        struct rig_plan *p = &r->plans[i];
        if (p->handle == 0) {
            continue;
        }
        free(p->block);
        p->block = rig_replay(r, p, p->n_records);
        rig_event(r, (struct core_event){
                         CORE_EV_INIT(RECOVER, recover, .plan = p->plan, .block = p->block)});
    }
}

enum step_status rig_status(const struct rig *r, const char *step)
{
    uint32_t ix;
    const struct rig_plan *p = find_step(r, step, &ix);
    return core_block_run(p->block)->steps[ix].status;
}
