#include "tests/explore/world.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "tests/unit/core/plan_text.h"

static void grow(struct commands *c)
{
    c->cap = c->cap == 0 ? 64 : 2 * c->cap;
    c->at = realloc(c->at, c->cap * sizeof *c->at);
    ASSERT(c->at != NULL);
}

static struct uuid id_of(uint32_t body)
{
    return (struct uuid){.b = {[15] = (uint8_t)(body + 1)}};
}

struct world *world_new(const char *text, const struct budget *budget)
{
    struct world *w = calloc(1, sizeof *w);
    ASSERT(w != NULL);
    w->text = text;
    w->config = (struct core_config){.runs_max = 1,
                                     .registry = {.agents = 1,
                                                  .instances = WORLD_INSTANCES,
                                                  .lease_ms = 40,
                                                  .suspect_ms = 20,
                                                  .epoch_base = 0},
                                     .agent_wait_ms = 60,
                                     .unknown_wait_ms = 50,
                                     .cancel_grace_ms = 10,
                                     .seed = 7};
    w->core = core_init(calloc(1, core_size(&w->config)), &w->config);
    w->plan = plan_text_new(text, w->core->registry);
    ASSERT(w->plan->n_steps <= WORLD_STEPS);
    w->block = calloc(1, core_run_size(w->plan));
    w->shadow = run_init(calloc(1, run_size(w->plan->n_steps)), w->plan);
    w->out.grow = grow;
    w->at.left = *budget;
    const struct core_event submit = {
        .type = CORE_SUBMIT, .plan = w->plan, .block = w->block, .now = w->at.now};
    core_handle(w->core, &submit, &w->out);
    w->at.handle = core_newest_run(w->core);
    const char *why = "";
    const bool fine = world_take(w, &why);
    ASSERT(fine);
    return w;
}

void world_free(struct world *w)
{
    plan_text_free(w->plan);
    free(w->block);
    free(w->shadow);
    free(w->core);
    free(w->out.at);
    free(w);
}

/* ---- leaving and entering states ---- */

struct part {
    void *at;
    size_t bytes;
};

/* All that changes, but for the core's text buffer, which means nothing between two events. */
static uint32_t parts_of(const struct world *w, struct part ret[5])
{
    unsigned char *core = (unsigned char *)w->core;
    ret[0] = (struct part){core, offsetof(struct core, text)};
    ret[1] = (struct part){core + sizeof(struct core), core_size(&w->config) - sizeof(struct core)};
    ret[2] = (struct part){w->block, core_run_size(w->plan)};
    ret[3] = (struct part){w->shadow, run_size(w->plan->n_steps)};
    ret[4] = (struct part){(void *)(uintptr_t)&w->at, sizeof w->at};
    return 5;
}

void world_save(const struct world *w, unsigned char *snapshot)
{
    struct part parts[5];
    const uint32_t n = parts_of(w, parts);
    for (uint32_t i = 0; i < n; i++) {
        memcpy(snapshot, parts[i].at, parts[i].bytes);
        snapshot += parts[i].bytes;
    }
}

void world_load(struct world *w, const unsigned char *snapshot)
{
    struct part parts[5];
    const uint32_t n = parts_of(w, parts);
    for (uint32_t i = 0; i < n; i++) {
        memcpy(parts[i].at, snapshot, parts[i].bytes);
        snapshot += parts[i].bytes;
    }
}

/* ---- letting it happen ---- */

/* The request that was out on a lane that is no more: its loss is still to be reported. */
static void leave_request(struct body *b)
{
    if (b->now.out) {
        b->old = b->now;
        b->now.out = false;
    }
}

static void restart(struct world *w)
{
    struct core_config config = w->core->config;
    config.registry.epoch_base += 100;
    w->core = core_init(w->core, &config);
    (void)registry_agent_add(w->core->registry, w->plan->steps[0].agent_id, w->at.now);
    memset(w->at.bodies, 0, sizeof w->at.bodies);
    memcpy(w->block, w->shadow, run_size(w->plan->n_steps));
    const struct core_event ev = {
        .type = CORE_RECOVER, .plan = w->plan, .block = w->block, .now = w->at.now};
    core_handle(w->core, &ev, &w->out);
    w->at.handle = core_newest_run(w->core);
}

static void tick(struct world *w, bool silent)
{
    const msec due = core_deadline(w->core);
    w->at.now = due > w->at.now ? due : w->at.now;
    for (uint32_t i = 0; !silent && i < WORLD_INSTANCES; i++) {
        if (w->at.bodies[i].epoch != 0) {
            const struct core_event seen = {.type = CORE_SEEN,
                                            .now = w->at.now,
                                            .slot = registry_instance(w->core->registry, id_of(i)),
                                            .epoch = w->at.bodies[i].epoch};
            core_handle(w->core, &seen, &w->out);
        }
    }
    const struct core_event ev = {.type = CORE_TICK, .now = w->at.now};
    core_handle(w->core, &ev, &w->out);
}

/* The plain translations. The shell's own book-keeping follows in world_do. */
static struct core_event translate(const struct world *w, const struct world_event *ev)
{
    const struct body *b = &w->at.bodies[ev->body];
    const struct request *req = ev->kind == WORLD_LOST_OLD ? &b->old : &b->now;
    struct core_event out = {.now = w->at.now,
                             .run = w->at.handle,
                             .step = ev->step,
                             .attempt = ev->attempt,
                             .slot = registry_instance(w->core->registry, id_of(ev->body)),
                             .epoch = b->epoch,
                             .lane = LANE_NONE};
    switch (ev->kind) {
    case WORLD_RESULT:
        out.type = CORE_RESULT;
        out.lane = req->lane;
        out.outcome = ev->variant;
        out.error_class = ev->variant == STEP_OUTCOME_FAILED ? CLASS_UNKNOWN : CLASS_NONE;
        break;
    case WORLD_LOST:
    case WORLD_LOST_OLD:
        out.type = CORE_LOST;
        out.slot = req->slot;
        out.epoch = req->epoch;
        out.lane = req->lane;
        out.sent = ev->kind == WORLD_LOST_OLD || ev->variant == 1;
        break;
    case WORLD_STRAY:
        out.type = CORE_RESULT;
        break;
    case WORLD_STATE:
        out.type = CORE_STATE;
        out.running = ev->variant == 1;
        break;
    case WORLD_REGISTER:
        out.type = CORE_REGISTER;
        out.instance = id_of(ev->body);
        out.capacity = 1;
        break;
    case WORLD_LANE_UP:
    case WORLD_CONTROL_UP:
        out.type = CORE_LANE_UP;
        out.lane = ev->kind == WORLD_LANE_UP ? 0 : REGISTRY_CONTROL_LANE;
        break;
    case WORLD_GONE:
        out.type = CORE_GONE;
        break;
    case WORLD_CANCEL:
        out.type = CORE_CANCEL;
        break;
    case WORLD_DECIDE:
        out.type = CORE_DECIDE;
        out.decision = ev->variant;
        break;
    case WORLD_TICK:
    case WORLD_SILENT_TICK:
    case WORLD_RESTART:
    case WORLD_KIND_COUNT:
        break;
    }
    return out;
}

/* What the event itself changes in the shell, before the core's commands do. */
static void keep_books(struct world *w, const struct world_event *ev)
{
    struct body *b = &w->at.bodies[ev->body];
    struct budget *left = &w->at.left;
    switch (ev->kind) {
    case WORLD_RESULT:
        b->now.out = false;
        left->waits -= ev->variant == STEP_OUTCOME_NEEDS_APPROVAL ? 1 : 0;
        break;
    case WORLD_LOST:
        b->now.out = false;
        left->losses--;
        if (ev->variant == 0) {
            w->at.told[ev->step].executions--; /* it never left */
        }
        break;
    case WORLD_LOST_OLD:
        b->old.out = false;
        break;
    case WORLD_STRAY:
        left->strays--;
        break;
    case WORLD_REGISTER:
        left->registrations -= b->epoch != 0 ? 1 : 0;
        leave_request(b);
        b->lane = false;
        b->control = false;
        break;
    case WORLD_LANE_UP:
        b->lane = true;
        break;
    case WORLD_CONTROL_UP:
        b->control = true;
        break;
    case WORLD_GONE:
        left->registrations--;
        leave_request(b);
        b->epoch = 0;
        b->lane = false;
        b->control = false;
        break;
    case WORLD_CANCEL:
        left->cancel = false;
        break;
    case WORLD_SILENT_TICK:
        left->silences--;
        break;
    case WORLD_RESTART:
        left->restarts--;
        break;
    case WORLD_STATE:
    case WORLD_DECIDE:
    case WORLD_TICK:
    case WORLD_KIND_COUNT:
        break;
    }
}

bool world_do(struct world *w, const struct world_event *ev, const char **ret_why)
{
    const struct core_event translated = translate(w, ev);
    w->seen[ev->kind]++;
    w->doing = *ev;
    w->out.n = 0;
    keep_books(w, ev);
    if (ev->kind == WORLD_RESTART) {
        restart(w);
    } else if (ev->kind == WORLD_TICK || ev->kind == WORLD_SILENT_TICK) {
        tick(w, ev->kind == WORLD_SILENT_TICK);
    } else {
        core_handle(w->core, &translated, &w->out);
    }
    /* Who does not know the key has not run it, if it is the one that had it. */
    const struct run_step *before = &w->shadow->steps[ev->step];
    if (ev->kind == WORLD_STATE && ev->variant == 0 && w->out.n > 0 &&
        w->out.at[0].type == CMD_RECORD && before->status == STEP_UNKNOWN &&
        w->at.told[ev->step].executions > 0) {
        w->at.told[ev->step].executions--;
    }
    return world_take(w, ret_why);
}
