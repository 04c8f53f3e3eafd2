/* What can happen next in a state. */
#include <stdio.h>

#include "protocol/base/assert.h"
#include "tests/explore/world.h"

struct events {
    struct world_event *at;
    uint32_t n;
};

static void add(struct events *e, enum world_kind kind, uint32_t body, uint32_t step,
                uint32_t attempt, uint32_t variant)
{
    ASSERT(e->n < WORLD_EVENTS_MAX);
    e->at[e->n++] = (struct world_event){kind, (uint8_t)body, (uint8_t)step, (uint8_t)attempt,
                                         (uint8_t)variant};
}

static void body_events(const struct world *w, uint32_t i, struct events *e)
{
    const struct situation *at = &w->at;
    const struct body *b = &at->bodies[i];
    if (b->old.out) {
        add(e, WORLD_LOST_OLD, i, b->old.step, b->old.attempt, 0);
    }
    if (b->epoch == 0 || at->left.registrations > 0) {
        add(e, WORLD_REGISTER, i, 0, 0, 0);
    }
    if (b->epoch == 0) {
        return;
    }
    if (!b->lane) {
        add(e, WORLD_LANE_UP, i, 0, 0, 0);
    }
    if (!b->control) {
        add(e, WORLD_CONTROL_UP, i, 0, 0, 0);
    }
    if (at->left.registrations > 0) {
        add(e, WORLD_GONE, i, 0, 0, 0);
    }
    if (b->now.out) {
        add(e, WORLD_RESULT, i, b->now.step, b->now.attempt, STEP_OUTCOME_COMPLETED);
        add(e, WORLD_RESULT, i, b->now.step, b->now.attempt, STEP_OUTCOME_FAILED);
        if (at->left.waits > 0) {
            add(e, WORLD_RESULT, i, b->now.step, b->now.attempt, STEP_OUTCOME_NEEDS_APPROVAL);
        }
        if (at->left.losses > 0) {
            add(e, WORLD_LOST, i, b->now.step, b->now.attempt, 0);
            add(e, WORLD_LOST, i, b->now.step, b->now.attempt, 1);
        }
    }
}

static void step_events(const struct world *w, uint32_t s, struct events *e)
{
    const struct situation *at = &w->at;
    const struct run_step *state = &w->shadow->steps[s];
    if (state->status == STEP_WAITING) {
        if (state->attempt < 2) {
            add(e, WORLD_DECIDE, 0, s, state->attempt, DECISION_APPROVE);
        }
        add(e, WORLD_DECIDE, 0, s, state->attempt, DECISION_REJECT);
    }
    for (uint32_t i = 0; i < WORLD_INSTANCES; i++) {
        if (at->bodies[i].epoch == 0) {
            continue;
        }
        if (state->status == STEP_UNKNOWN) {
            add(e, WORLD_STATE, i, s, state->attempt, 0);
            add(e, WORLD_STATE, i, s, state->attempt, 1);
        }
        for (uint32_t attempt = 1; at->left.strays > 0 && attempt <= 2; attempt++) {
            add(e, WORLD_STRAY, i, s, attempt, 0);
        }
    }
}

uint32_t world_events(const struct world *w, struct world_event *ret)
{
    struct events e = {.at = ret};
    if (w->at.over) {
        return 0;
    }
    if (core_deadline(w->core) != MSEC_NEVER) {
        add(&e, WORLD_TICK, 0, 0, 0, 0);
        if (w->at.left.silences > 0) {
            add(&e, WORLD_SILENT_TICK, 0, 0, 0, 0);
        }
    }
    for (uint32_t i = 0; i < WORLD_INSTANCES; i++) {
        body_events(w, i, &e);
    }
    for (uint32_t s = 0; s < w->plan->n_steps; s++) {
        step_events(w, s, &e);
    }
    if (w->at.left.cancel) {
        add(&e, WORLD_CANCEL, 0, 0, 0, 0);
    }
    if (w->at.left.restarts > 0) {
        add(&e, WORLD_RESTART, 0, 0, 0, 0);
    }
    return e.n;
}

void world_event_text(const struct world *w, const struct world_event *ev, char *buf, size_t size)
{
    static const char *const names[] = {
        [WORLD_TICK] = "tick",         [WORLD_SILENT_TICK] = "silent tick",
        [WORLD_RESULT] = "result",     [WORLD_LOST] = "lost",
        [WORLD_LOST_OLD] = "lost old", [WORLD_STRAY] = "stray result",
        [WORLD_STATE] = "state",       [WORLD_REGISTER] = "register",
        [WORLD_LANE_UP] = "lane up",   [WORLD_CONTROL_UP] = "control up",
        [WORLD_GONE] = "gone",         [WORLD_CANCEL] = "cancel",
        [WORLD_DECIDE] = "decide",     [WORLD_RESTART] = "restart",
    };
    _Static_assert(sizeof names / sizeof names[0] == WORLD_KIND_COUNT, "all");
    (void)snprintf(buf, size, "[%llu] %s instance=%u step=%u attempt=%u variant=%u",
                   (unsigned long long)w->at.now, names[ev->kind], ev->body + 1u, ev->step,
                   ev->attempt, ev->variant);
}
