/* The world's beginning and end, and the ways in and out of its states. */
#include "tests/explore/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "tests/unit/core/plan/plan_text.h"

static void grow(struct commands *c)
{
    c->cap = c->cap == 0 ? 64 : 2 * c->cap;
    c->at = realloc(c->at, c->cap * sizeof *c->at);
    ASSERT(c->at != NULL);
}

static void *need(size_t bytes)
{
    void *p = calloc(1, bytes);
    ASSERT(p != NULL);
    return p;
}

struct uuid world_id(uint32_t body)
{
    return (struct uuid){.b = {[15] = (uint8_t)(body + 1)}};
}

uint32_t world_body_of(const struct uuid *id)
{
    return id->b[15] - 1u;
}

const struct plan *world_plan(const struct world *w)
{
    return w->plans[w->at.plan];
}

static bool is_spawned(const struct world *w, uint32_t body)
{
    const char letter = w->scenario->bodies[body];
    return letter >= 'A' && letter <= 'Z';
}

static struct str agent_name(const struct world *w, uint32_t body, char name[1])
{
    name[0] = w->scenario->bodies[body];
    name[0] = (char)(is_spawned(w, body) ? name[0] - 'A' + 'a' : name[0]);
    return (struct str){name, 1};
}

uint32_t world_agent(const struct world *w, uint32_t body)
{
    char name[1];
    return registry_agent(w->core->registry, agent_name(w, body, name));
}

/* One length for most waits, so that fewer orders of deadlines differ without need. */
static struct core_config config_of(const struct scenario *s)
{
    const bool silence = s->left.silences > 0 || s->fine;
    return (struct core_config){.runs_max = 1,
                                .keys = 1,
                                .registry = {.agents = 6,
                                             .instances = WORLD_BODIES,
                                             .lease_ms = silence ? 60 : 100000000,
                                             .suspect_ms = silence ? 30 : 50000000,
                                             .breaker_failures = s->breakers,
                                             .breaker_cooldown_ms = 30,
                                             .breaker_cooldown_max_ms = 60,
                                             .breaker_probe_ms = 30},
                                .agent_wait_ms = 60,
                                .unknown_wait_ms = 30,
                                .last_word_ms = 10,
                                .cancel_grace_ms = 30,
                                .sessions = 1,
                                .in_flight = s->in_flight,
                                .in_flight_agent = s->in_flight_agent,
                                .in_flight_session = s->in_flight_session,
                                .seed = 7};
}

static size_t block_size(const struct plan *like)
{
    struct plan largest = *like;
    largest.n_steps = WORLD_STEPS;
    largest.agents.n += WORLD_STEPS;
    return core_run_size(&largest);
}

static void add_agents(struct world *w)
{
    char name[1];
    for (uint32_t i = 0; w->scenario->bodies[i] != '\0'; i++) {
        ASSERT(i < WORLD_BODIES);
        (void)registry_agent_configure(w->core->registry, agent_name(w, i, name), w->at.now);
    }
    registry_absence_set(w->core->registry, MSEC_NEVER); /* no ticks in between for it */
}

static _Noreturn void broken_at_once(const struct world *w, const char *why)
{
    (void)fprintf(stderr, "broken at once: %s\nplan: %s\n", why, w->scenario->plan);
    abort();
}

static void submit(struct world *w)
{
    struct core_reuse reuse[4];
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->plans[0]->n_steps; i++) {
        if ((w->scenario->reuse & 1u << i) != 0) {
            reuse[n++] = (struct core_reuse){.step = i, .result = {.id = 1, .len = 1}};
        }
        if ((w->scenario->doubts & 1u << i) != 0) {
            reuse[n++] = (struct core_reuse){.step = i, .doubt = true};
        }
    }
    const struct core_event ev = {CORE_EV_INIT(SUBMIT, submit, .plan = w->plans[0],
                                               .block = w->blocks[0], .reuse = reuse, .n_reuse = n),
                                  .now = w->at.now, .wall = world_wall(w)};
    const char *why = "";
    w->doing = (struct world_event){.kind = WORLD_KIND_COUNT};
    w->out.n = 0;
    core_handle(w->core, &ev, &w->out);
    w->at.handle = core_newest_run(w->core);
    if (!world_take(w, &why)) {
        broken_at_once(w, why);
    }
}

struct world *world_new(const struct scenario *scenario, struct coverage *seen)
{
    struct world *w = need(sizeof *w);
    w->scenario = scenario;
    w->seen = seen;
    w->config = config_of(scenario);
    w->core = core_init(need(core_size(&w->config)), &w->config);
    struct plan *plan = plan_text_new(scenario->plan, w->core->registry);
    ASSERT(plan->n_steps <= 4);
    w->plans[w->n_plans++] = plan;
    if (scenario->made != NULL) {
        w->plans[w->n_plans++] = plan_text_new(scenario->made, w->core->registry);
    }
    add_agents(w);
    w->blocks[0] = need(block_size(plan));
    w->blocks[1] = need(block_size(plan));
    w->spare = need(block_size(plan));
    w->shadow = run_init(need(block_size(plan)), plan);
    w->before = need(block_size(plan));
    w->out.grow = grow;
    w->at.left = scenario->left;
    w->at.revision = 1;
    w->at.last_agent = WORLD_SUPERVISOR;
    w->at.job.may_plan = true;
    w->at.job.step = STEP_NONE;
    for (uint32_t i = 0; i < WORLD_STEPS; i++) {
        w->at.told[i].agent = WORLD_NOBODY;
    }
    submit(w);
    for (uint32_t i = 0; !scenario->fine && scenario->bodies[i] != '\0'; i++) {
        const char *why = "";
        if (!world_do(w, &(struct world_event){.kind = WORLD_UP, .body = (uint8_t)i}, &why)) {
            broken_at_once(w, why);
        }
    }
    return w;
}

void world_free(struct world *w)
{
    plan_text_free((struct plan *)(uintptr_t)w->plans[0]);
    if (w->scenario->made != NULL) {
        plan_text_free((struct plan *)(uintptr_t)w->plans[1]);
    }
    world_plans_free(w);
    free(w->blocks[0]);
    free(w->blocks[1]);
    free(w->spare);
    free(w->shadow);
    free(w->before);
    free(w->core);
    free(w->out.at);
    free(w);
}

/* ---- leaving and entering states ---- */

struct part {
    void *at;
    size_t bytes;
};

/* All that changes, but for the core's text buffer, which means nothing between two events, and
 * the replayed run, which is the live one byte for byte. */
static uint32_t parts_of(const struct world *w, struct part ret[3])
{
    unsigned char *core = (unsigned char *)w->core;
    ret[0] = (struct part){core, offsetof(struct core, text)};
    ret[1] = (struct part){core + sizeof(struct core), core_size(&w->config) - sizeof(struct core)};
    ret[2] = (struct part){w->blocks[w->at.block], core_run_size(world_plan(w))};
    return 3;
}

size_t world_size(const struct world *w)
{
    return sizeof w->at + core_size(&w->config) + block_size(w->plans[0]);
}

void world_save(const struct world *w, unsigned char *snapshot)
{
    struct part parts[3];
    const uint32_t n = parts_of(w, parts);
    memcpy(snapshot, &w->at, sizeof w->at);
    snapshot += sizeof w->at;
    for (uint32_t i = 0; i < n; i++) {
        memcpy(snapshot, parts[i].at, parts[i].bytes);
        snapshot += parts[i].bytes;
    }
}

void world_load(struct world *w, const unsigned char *snapshot)
{
    struct part parts[3];
    memcpy(&w->at, snapshot, sizeof w->at);
    snapshot += sizeof w->at;
    const uint32_t n = parts_of(w, parts);
    for (uint32_t i = 0; i < n; i++) {
        memcpy(parts[i].at, snapshot, parts[i].bytes);
        snapshot += parts[i].bytes;
    }
    memcpy(w->shadow, w->blocks[w->at.block], run_size(world_plan(w)));
}

/* ---- letting it happen ---- */

static void handle(struct world *w, const struct core_event *ev)
{
    struct core_event at = *ev;
    at.wall = world_wall(w);
    core_handle(w->core, &at, &w->out);
}

static void restart(struct world *w)
{
    struct core_config config = w->core->config;
    char names[6][1];
    const uint32_t n = registry_agents(w->core->registry);
    for (uint32_t i = 0; i < n; i++) {
        names[i][0] = registry_agent_view(w->core->registry, i).id.ptr[0];
    }
    config.registry.epoch_base += 100;
    memset(w->core, 0, core_size(&config));
    w->core = core_init(w->core, &config);
    for (uint32_t i = 0; i < n; i++) {
        (void)registry_agent_configure(w->core->registry, (struct str){names[i], 1}, w->at.now);
    }
    registry_absence_set(w->core->registry, MSEC_NEVER);
    for (uint32_t i = 0; i < WORLD_BODIES; i++) {
        w->at.bodies[i] = (struct body){.process = w->at.bodies[i].process};
    }
    memcpy(w->blocks[w->at.block], w->shadow, run_bytes(w->shadow));
    handle(w, &(struct core_event){CORE_EV_INIT(RECOVER, recover, .plan = world_plan(w),
                                                .block = w->blocks[w->at.block]),
                                   .now = w->at.now});
    w->at.handle = core_newest_run(w->core);
}

static void tick(struct world *w, bool silent)
{
    const msec before = w->at.now;
    const msec due = core_deadline(w->core);
    w->at.now = due > w->at.now ? due : w->at.now;
    for (uint32_t i = 0; !silent && i < WORLD_BODIES; i++) {
        if (w->at.bodies[i].epoch != 0) {
            handle(w,
                   &(struct core_event){.type = CORE_SEEN,
                                        .now = w->at.now,
                                        .slot = registry_instance(w->core->registry, world_id(i)),
                                        .epoch = w->at.bodies[i].epoch});
        }
    }
    if (silent && w->doing.variant == 1) { /* the supervisor itself stood still */
        handle(w,
               &(struct core_event){CORE_EV_INIT(STALLED, stalled, .delay_ms = w->at.now - before),
                                    .now = w->at.now});
    }
    handle(w, &(struct core_event){.type = CORE_TICK, .now = w->at.now});
}

static void come_up(struct world *w, uint32_t body, struct core_event ev)
{
    struct body *b = &w->at.bodies[body];
    ev.type = CORE_REGISTER;
    handle(w, &ev);
    if (b->epoch != 0 && w->doing.variant == 1) {
        return; /* it was refused */
    }
    ev.slot = registry_instance(w->core->registry, world_id(body));
    struct instance_view view = {0};
    const bool there = registry_instance_view(w->core->registry, ev.slot, &view);
    ASSERT(there);
    ev.type = CORE_LANE_UP;
    ev.epoch = b->epoch = view.epoch;
    ev.lane = REGISTRY_CONTROL_LANE;
    handle(w, &ev);
    ev.lane = 0;
    handle(w, &ev);
}

/* ---- reading the event ---- */

void world_bring(struct world *w, struct flat_event *out, uint32_t plan)
{
    w->coming = w->plans[plan];
    w->coming_at = plan;
    out->plan = w->coming;
    out->block = w->blocks[1 - w->at.block];
    out->result = (struct blob_ref){.id = 900, .len = 9};
}

static void say_revision(struct world *w, struct flat_event *out, enum world_change change)
{
    const uint32_t plan = world_change(w, change, out->step);
    ASSERT(plan != UINT32_MAX);
    world_bring(w, out, plan);
}

static void say_class(struct flat_event *out, enum err_class cls)
{
    out->outcome = STEP_OUTCOME_FAILED;
    out->error_class = cls;
    out->text = STR_LIT("it did not work");
}

static void say_agent(const struct world *w, struct flat_event *out, enum world_answer answer)
{
    const struct plan_agents *agents = &world_plan(w)->agents;
    const uint32_t at = (uint32_t)answer - ANSWER_HAND_X;
    out->outcome = STEP_OUTCOME_HANDOFF;
    out->agent = answer == ANSWER_HAND_FORBIDDEN || at >= agents->n ? AGENT_NONE : agents->at[at];
}

static void say(struct world *w, struct flat_event *out, enum world_answer answer)
{
    out->outcome = STEP_OUTCOME_COMPLETED;
    out->usage.input_tokens = w->scenario->spends;
    switch (answer) {
    case ANSWER_OK:
        out->passed = out->phase == PHASE_GATE || out->phase == PHASE_VERIFY;
        if (out->phase == PHASE_REPLAN) {
            say_revision(w, out, CHANGE_FRESH);
        }
        break;
    case ANSWER_FAIL:
        say_class(out, CLASS_UNKNOWN);
        break;
    case ANSWER_NO:
        if (out->phase <= PHASE_SEARCH) {
            say_class(out, CLASS_VALIDATION_ERROR);
        }
        break;
    case ANSWER_AGAIN:
        say_class(out, CLASS_UNKNOWN);
        out->retryable_given = out->retryable = true;
        break;
    case ANSWER_RATE_LIMITED:
        say_class(out, CLASS_RATE_LIMITED);
        break;
    case ANSWER_SERVICE:
        say_class(out, CLASS_SERVICE_UNAVAILABLE);
        break;
    case ANSWER_NOT_FOUND:
        say_class(out, CLASS_RESOURCE_NOT_FOUND);
        break;
    case ANSWER_TOOL:
        say_class(out, CLASS_TOOL_NOT_FOUND);
        break;
    case ANSWER_UNVERIFIED:
        say_class(out, CLASS_VERIFICATION_FAILED);
        break;
    case ANSWER_INPUT:
        out->outcome = STEP_OUTCOME_NEEDS_INPUT;
        break;
    case ANSWER_APPROVAL:
        out->outcome = STEP_OUTCOME_NEEDS_APPROVAL;
        break;
    case ANSWER_CALLS:
        out->outcome = STEP_OUTCOME_CALLS;
        out->expect = 1;
        out->result = (struct blob_ref){.id = 8, .len = 1};
        break;
    case ANSWER_HAND_X:
    case ANSWER_HAND_Y:
    case ANSWER_HAND_Z:
    case ANSWER_HAND_FORBIDDEN:
        say_agent(w, out, answer);
        break;
    case ANSWER_PLAN_KEEP:
        say_revision(w, out, CHANGE_KEEP);
        break;
    case ANSWER_PLAN_MISFIT:
        say_revision(w, out, CHANGE_MISFIT);
        break;
    case ANSWER_PLAN_STRANGER:
        say_revision(w, out, CHANGE_STRANGER);
        break;
    case ANSWER_PLAN_REPEAT:
        say_revision(w, out, CHANGE_REPEAT);
        break;
    case ANSWER_PLAN_INVALID:
        say_class(out, CLASS_VALIDATION_ERROR);
        out->invalid = true;
        break;
    case ANSWER_COUNT:
        break;
    }
}

static void answer_on(struct flat_event *out, const struct request *req, enum core_event_type type)
{
    out->type = type;
    out->slot = req->slot;
    out->epoch = req->epoch;
    out->lane = req->lane;
    out->attempt = req->attempt;
    out->phase = req->phase;
    out->step = req->step;
}

static void say_modify(const struct world *w, struct flat_event *out, const struct world_event *ev,
                       const uint32_t *step)
{
    /* Uncharged ones must be refused: against an old revision, or of a step that is over. */
    const bool is_stale = !ev->charged && !step_is_final(w->shadow->steps[ev->step].status);
    out->type = CORE_MODIFY;
    out->modify = ev->variant;
    out->steps = step;
    out->n_steps = 1;
    out->expect = core_revision(w->core, w->at.handle) + (is_stale ? 1 : 0);
}

static const enum core_event_type plain[WORLD_KIND_COUNT] = {
    [WORLD_STRAY] = CORE_RESULT,        [WORLD_STATE] = CORE_STATE,
    [WORLD_REGISTER] = CORE_REGISTER,   [WORLD_NOT_LISTED] = CORE_NOT_LISTED,
    [WORLD_UP] = CORE_REGISTER,         [WORLD_LANE_UP] = CORE_LANE_UP,
    [WORLD_CONTROL_UP] = CORE_LANE_UP,  [WORLD_GONE] = CORE_GONE,
    [WORLD_DRAIN] = CORE_DRAIN,         [WORLD_PROGRESS] = CORE_PROGRESS,
    [WORLD_PROBED] = CORE_PROBED,       [WORLD_CANCEL] = CORE_CANCEL,
    [WORLD_CONDITION] = CORE_CONDITION, [WORLD_PAUSE] = CORE_PAUSE,
    [WORLD_RESUME] = CORE_RESUME,       [WORLD_DECIDE] = CORE_DECIDE,
    [WORLD_SIGNOFF] = CORE_DECIDE,      [WORLD_CHILD] = CORE_CHILD,
};

static struct flat_event translate(struct world *w, const struct world_event *ev,
                                   const uint32_t *step)
{
    const struct body *b = &w->at.bodies[ev->body];
    struct flat_event out = {.type = plain[ev->kind],
                             .now = w->at.now,
                             .run = w->at.handle,
                             .step = ev->step,
                             .attempt = ev->attempt,
                             .phase = ev->phase,
                             .agent = world_agent(w, ev->body),
                             .slot = registry_instance(w->core->registry, world_id(ev->body)),
                             .epoch = b->epoch,
                             .lane = LANE_NONE,
                             .decision = ev->variant,
                             .running = ev->variant == STATE_RUNNING,
                             .never = ev->variant == STATE_NEVER,
                             .ok = ev->variant == 1};
    switch ((unsigned)ev->kind) {
    case WORLD_RESULT:
        answer_on(&out, &b->now, CORE_RESULT);
        say(w, &out, ev->variant);
        break;
    case WORLD_LOST:
    case WORLD_LOST_OLD:
        answer_on(&out, ev->kind == WORLD_LOST ? &b->now : &b->old, CORE_LOST);
        out.sent = ev->kind == WORLD_LOST_OLD || ev->variant == 1;
        break;
    case WORLD_BUSY:
        answer_on(&out, &b->now, CORE_BUSY);
        break;
    case WORLD_RESULT_OLD:
        answer_on(&out, &b->old, CORE_RESULT);
        say(w, &out, ev->variant);
        break;
    case WORLD_STRAY:
        say(w, &out, ev->variant);
        break;
    case WORLD_REGISTER:
    case WORLD_UP:
        out.instance = world_id(ev->body);
        out.capacity = 1;
        out.spawned = is_spawned(w, ev->body);
        out.process.b[0] = (uint8_t)(1 + b->process + ev->variant);
        out.process.b[15] = (uint8_t)(1 + ev->body);
        break;
    case WORLD_LANE_UP:
        out.lane = 0;
        break;
    case WORLD_CONTROL_UP:
        out.lane = REGISTRY_CONTROL_LANE;
        break;
    case WORLD_SIGNOFF:
        out.step = STEP_NONE;
        break;
    case WORLD_MODIFY:
        say_modify(w, &out, ev, step);
        break;
    case WORLD_CHILD:
        out.n = ev->variant;
        out.attempt = ev->attempt & 255u;
        out.expect = ev->attempt >> 8;
        out.error_class = CLASS_UNKNOWN;
        break;
    case WORLD_CONDITION:
        out.invalid = ev->variant == CONDITION_FAILED;
        break;
    case WORLD_SIGNAL:
    case WORLD_CALLED:
    case WORLD_CLOCK:
        world_wait_translate(w, ev, &out);
        break;
    case WORLD_REVISE:
        out.type = CORE_REVISE;
        out.modify = ev->variant == CHANGE_REPLACE ? MODIFY_REPLACE : MODIFY_INSERT;
        say_revision(w, &out, ev->variant);
        break;
    default:
        world_job_translate(w, ev, &out);
        break;
    }
    return out;
}

/* The request that was out on a lane that is no more: its loss is still to be reported. */
static void leave(struct body *b)
{
    if (b->now.out) {
        b->old = b->now;
        b->now.out = false;
    }
    b->lane = b->control = b->leaving = b->probed = false;
}

/* What the event itself changes in the shell, before the core's commands do. */
static void keep_books(struct world *w, const struct world_event *ev)
{
    struct body *b = &w->at.bodies[ev->body];
    struct told *told = &w->at.told[ev->step];
    uint8_t *counter = ev->charged ? world_counter(&w->at.left, ev) : NULL;
    if (counter != NULL) {
        ASSERT(*counter > 0 && w->at.left.faults > 0);
        --*counter;
        --w->at.left.faults;
    }
    w->about = ev->kind == WORLD_LOST_OLD || ev->kind == WORLD_RESULT_OLD ? b->old : b->now;
    switch ((unsigned)ev->kind) {
    case WORLD_RESULT:
    case WORLD_LOST:
    case WORLD_BUSY:
        b->now.out = false;
        if (ev->kind != WORLD_RESULT && ev->variant == 0 && ev->phase <= PHASE_SEARCH) {
            told->executions--; /* it never left, or was refused */
            told->out = told->attempts == ev->attempt ? 0 : told->out;
        }
        break;
    case WORLD_LOST_OLD:
    case WORLD_RESULT_OLD:
        b->old.out = false;
        break;
    case WORLD_REGISTER:
    case WORLD_UP:
        if (ev->variant == 1 && b->epoch != 0) {
            break; /* it is refused */
        }
        b->process = (uint8_t)(b->process + ev->variant);
        leave(b);
        b->lane = b->control = ev->kind == WORLD_UP;
        break;
    case WORLD_LANE_UP:
        b->lane = true;
        break;
    case WORLD_CONTROL_UP:
        b->control = true;
        break;
    case WORLD_GONE:
        leave(b);
        b->epoch = 0;
        break;
    case WORLD_DRAIN:
        b->leaving = true;
        break;
    case WORLD_PROBED:
        b->probed = false;
        break;
    case WORLD_RESTART:
        w->at.job.out = false; /* it is asked for again */
        for (uint32_t i = 0; i < WORLD_STEPS; i++) {
            w->at.told[i].wanted = 0;
            w->at.told[i].calls = 0;
        }
        break;
    default:
        break;
    }
}

static bool its_process(const struct world *w, const struct world_event *ev)
{
    const struct told *told = &w->at.told[ev->step];
    return told->body == ev->body + 1 && told->process == w->at.bodies[ev->body].process &&
           !told->ran;
}

bool world_do(struct world *w, const struct world_event *ev, const char **ret_why)
{
    const uint32_t step = ev->step;
    const enum step_status before = w->shadow->steps[step].status;
    w->seen->kinds[ev->kind]++;
    w->doing = *ev;
    w->coming = NULL;
    w->out.n = 0;
    const struct flat_event flat = translate(w, ev, &step);
    const struct core_event translated = event_of_flat(&flat);
    keep_books(w, ev);
    if (ev->kind == WORLD_RESTART) {
        restart(w);
    } else if (ev->kind == WORLD_TICK || ev->kind == WORLD_SILENT_TICK) {
        tick(w, ev->kind == WORLD_SILENT_TICK);
    } else if (ev->kind == WORLD_UP) {
        come_up(w, ev->body, translated);
    } else {
        handle(w, &translated);
    }
    /* Who does not know the key has not run it, if it is the very process that had it. */
    if (ev->kind == WORLD_STATE && ev->variant == STATE_NEVER && w->out.n > 0 &&
        w->out.at[0].type == CMD_RECORD && before == STEP_UNKNOWN && its_process(w, ev) &&
        w->at.told[step].executions > 0) {
        w->at.told[step].executions--;
    }
    const bool right = world_take(w, ret_why);
    if (ev->kind == WORLD_CHILD && w->at.told[step].child != 0 &&
        ev->attempt == world_child_of(&w->at.told[step])) {
        w->at.told[step].child = 0; /* it has ended */
    }
    if (ev->kind == WORLD_CONDITION && w->at.told[step].wanted == ev->attempt) {
        w->at.told[step].wanted = 0; /* it was said */
    }
    return right;
}
