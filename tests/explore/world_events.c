/* What can happen next in a state. */
#include <stdio.h>

#include "protocol/base/assert.h"
#include "tests/explore/world.h"

uint8_t *world_counter(struct budget *left, const struct world_event *ev)
{
    switch ((unsigned)ev->kind) {
    case WORLD_SILENT_TICK:
        return &left->silences;
    case WORLD_RESULT:
        if (ev->variant == ANSWER_INPUT || ev->variant == ANSWER_APPROVAL ||
            ev->variant == ANSWER_CALLS) {
            return &left->asks;
        }
        return ev->variant >= ANSWER_HAND_X && ev->variant <= ANSWER_HAND_FORBIDDEN
                   ? &left->handoffs
                   : NULL;
    case WORLD_LOST:
        return ev->variant == 1 ? &left->losses : &left->unsent;
    case WORLD_BUSY:
        return &left->busies;
    case WORLD_RESULT_OLD:
    case WORLD_STRAY:
    case WORLD_STATE:
    case WORLD_JOB_LATE:
        return &left->strays;
    case WORLD_REGISTER:
    case WORLD_UP:
        return ev->variant == 1 ? &left->gones : &left->registrations;
    case WORLD_GONE:
        return &left->gones;
    case WORLD_DRAIN:
        return &left->drains;
    case WORLD_PROGRESS:
    case WORLD_TEXT:
        return &left->progress;
    case WORLD_CANCEL:
        return &left->cancels;
    case WORLD_PAUSE:
        return &left->pauses;
    case WORLD_MODIFY:
        return &left->modifies;
    case WORLD_REVISE:
        return &left->revisions;
    case WORLD_RESTART:
        return &left->restarts;
    case WORLD_SIGNAL:
        return &left->signals;
    case WORLD_CLOCK:
        return &left->clocks;
    default:
        return NULL;
    }
}

struct events {
    const struct world *world;
    struct world_event *at;
    uint32_t n;
};

static void add(struct events *e, struct world_event ev)
{
    ASSERT(e->n < WORLD_EVENTS_MAX);
    ev.charged = false;
    e->at[e->n++] = ev;
}

/* As far as the budget goes. */
static void charge(struct events *e, struct world_event ev)
{
    struct budget left = e->world->at.left;
    const uint8_t *counter = world_counter(&left, &ev);
    ASSERT(counter != NULL);
    if (*counter > 0 && left.faults > 0) {
        add(e, ev);
        e->at[e->n - 1].charged = true;
    }
}

/* ---- instances ---- */

static void answers(struct events *e, uint32_t i)
{
    const struct request *req = &e->world->at.bodies[i].now;
    const uint32_t says = e->world->scenario->answers;
    const bool room = e->world->shadow->n_steps < WORLD_STEPS;
    uint32_t set = says | SAYS(OK) | ((says & SAYS(OK)) != 0 ? 0 : SAYS(FAIL));
    const uint32_t plans =
        SAYS(PLAN_KEEP) | SAYS(PLAN_MISFIT) | SAYS(PLAN_STRANGER) | SAYS(PLAN_REPEAT);
    if (req->phase == PHASE_REPLAN) {
        set = (room ? SAYS(OK) | (says & plans) : 0) | SAYS(FAIL) | (says & SAYS(PLAN_INVALID));
    } else if (req->phase == PHASE_GATE || req->phase == PHASE_VERIFY) {
        set = SAYS(OK) | SAYS(FAIL) | SAYS(NO);
    } else if (req->phase == PHASE_SEARCH) {
        set = SAYS(OK) | SAYS(FAIL) | (says & SAYS(NOT_FOUND));
    } else {
        set &= ~(plans | SAYS(PLAN_INVALID));
    }
    for (uint32_t a = 0; a < ANSWER_COUNT; a++) {
        const struct world_event ev = {WORLD_RESULT, (uint8_t)i,   req->step, req->phase,
                                       (uint8_t)a,   req->attempt, false};
        struct budget none = {0};
        if ((set & 1u << a) != 0 && world_counter(&none, &ev) != NULL) {
            charge(e, ev);
        } else if ((set & 1u << a) != 0) {
            add(e, ev);
        }
    }
}

static void requests(struct events *e, uint32_t i)
{
    const struct body *b = &e->world->at.bodies[i];
    const struct request *req = &b->now;
    struct world_event ev = {.body = (uint8_t)i};
    if (b->old.out) {
        ev.kind = WORLD_LOST_OLD;
        ev.step = b->old.step;
        ev.attempt = b->old.attempt;
        ev.phase = b->old.phase;
        add(e, ev);
        ev.kind = WORLD_RESULT_OLD;
        if (ev.phase != PHASE_REPLAN) {
            charge(e, ev);
        }
    }
    if (!req->out) {
        return;
    }
    answers(e, i);
    ev =
        (struct world_event){WORLD_LOST, (uint8_t)i, req->step, req->phase, 0, req->attempt, false};
    charge(e, ev);
    ev.variant = 1;
    charge(e, ev);
    ev.kind = WORLD_BUSY;
    ev.variant = 0;
    charge(e, ev);
    ev.kind = WORLD_PROGRESS;
    if (req->phase == PHASE_EXECUTE && e->world->at.told[req->step].sign < e->world->at.now) {
        charge(e, ev);
    }
}

static void instance(struct events *e, uint32_t i)
{
    const struct body *b = &e->world->at.bodies[i];
    const bool fine = e->world->scenario->fine;
    struct world_event ev = {.kind = fine ? WORLD_REGISTER : WORLD_UP, .body = (uint8_t)i};
    if (b->epoch == 0) {
        add(e, ev);
        ev.variant = 1; /* its process ended meanwhile */
        charge(e, ev);
        return;
    }
    charge(e, ev);
    ev.variant = 1; /* is refused: another process has the name */
    if (e->world->at.left.registrations > 0) {
        add(e, ev);
    }
    ev.variant = 0;
    ev.kind = WORLD_LANE_UP;
    if (!b->lane) {
        add(e, ev);
    }
    ev.kind = WORLD_CONTROL_UP;
    if (!b->control) {
        add(e, ev);
    }
    ev.kind = WORLD_GONE;
    if (b->leaving) {
        add(e, ev);
    } else {
        charge(e, ev);
        ev.kind = WORLD_DRAIN;
        charge(e, ev);
    }
    ev.kind = WORLD_PROBED;
    for (uint8_t ok = 0; b->probed && ok <= 1; ok++) {
        ev.variant = ok;
        add(e, ev);
    }
}

/* What an instance says about a step without being asked over a lane. */
static void words(struct events *e, uint32_t s, uint32_t i)
{
    const struct situation *at = &e->world->at;
    const struct run_step *state = &e->world->shadow->steps[s];
    const struct told *told = &at->told[s];
    const bool its = told->body == i + 1;
    struct world_event ev = {.body = (uint8_t)i,
                             .step = (uint8_t)s,
                             .attempt = state->attempt,
                             .phase = state->phase <= PHASE_SEARCH ? state->phase : 0};
    if (at->bodies[i].epoch == 0) {
        return;
    }
    const bool adopted = told->adopted && state->status == STEP_IN_PROGRESS;
    const bool asked = (state->status == STEP_UNKNOWN || (adopted && its)) && at->bodies[i].control;
    const bool unsafe = world_plan(e->world)->steps[s].rules->policy.effects == EFFECTS_UNSAFE;
    for (uint8_t v = STATE_NEVER; asked && v <= (its && unsafe ? STATE_FORGOTTEN : STATE_RUNNING);
         v++) {
        ev.kind = WORLD_STATE;
        ev.variant = v;
        if (its) {
            add(e, ev);
        } else {
            charge(e, ev);
        }
    }
    ev.kind = WORLD_NOT_LISTED;
    if (its && adopted) {
        add(e, ev);
    }
    ev.kind = WORLD_STRAY;
    const bool done = its && (asked || adopted);
    for (uint8_t v = ANSWER_OK; done && v <= ANSWER_FAIL; v++) {
        ev.variant = v;
        add(e, ev);
    }
    ev.variant = ANSWER_OK;
    for (uint16_t attempt = 1; attempt <= 2; attempt++) {
        ev.attempt = attempt;
        charge(e, ev);
    }
    if (state->status == STEP_CHECKING) {
        ev.attempt = state->ask;
        ev.phase = state->phase;
        ev.variant = state->phase == PHASE_REPLAN ? ANSWER_PLAN_INVALID : ANSWER_OK;
        charge(e, ev);
    }
}

/* ---- the engine ---- */

/* Also late: the plan may be on hold, changed or cancelled by now. */
static void verdicts(struct events *e, uint32_t s)
{
    const struct told *told = &e->world->at.told[s];
    struct world_event ev = {.kind = WORLD_CONDITION, .step = (uint8_t)s, .attempt = told->wanted};
    if (told->wanted == 0) {
        return;
    }
    for (uint8_t v = 0; v < CONDITION_VERDICT_COUNT; v++) {
        ev.variant = v;
        add(e, ev);
    }
    ev.attempt--;
    if (ev.attempt > 0) {
        add(e, ev); /* is refused: from before a revision */
    }
}

/* Also late: of a child that was told to stop, or of an earlier round. */
static void children(struct events *e, uint32_t s)
{
    const struct told *told = &e->world->at.told[s];
    struct world_event ev = {
        .kind = WORLD_CHILD, .step = (uint8_t)s, .attempt = world_child_of(told)};
    if (told->child_attempt == 0) {
        return;
    }
    for (uint8_t v = CHILD_COMPLETED; v < CHILD_OUTCOME_COUNT && told->child != 0; v++) {
        ev.variant = v;
        add(e, ev);
    }
    ev.variant = CHILD_COMPLETED;
    if (told->child == 0) {
        add(e, ev); /* is refused */
    } else if (told->child_round > 0) {
        ev.attempt = (uint16_t)(ev.attempt - 256);
        add(e, ev); /* is refused, too */
    }
}

/* ---- people ---- */

static void decisions(struct events *e, uint32_t s)
{
    const struct run_step *state = &e->world->shadow->steps[s];
    struct world_event ev = {.kind = WORLD_DECIDE, .step = (uint8_t)s};
    if (state->status != STEP_WAITING) {
        return;
    }
    ev.attempt = (uint16_t)(state->review_serial - 1);
    add(e, ev); /* is refused: about a review before this one */
    ev.attempt = (uint16_t)state->review_serial;
    for (uint8_t d = 0; d < DECISION_COUNT; d++) {
        ev.variant = d;
        if (d != DECISION_APPROVE || e->world->at.told[s].approvals < 2) {
            add(e, ev);
        }
    }
}

static void changes(struct events *e, uint32_t s)
{
    const struct plan *plan = world_plan(e->world);
    const struct run *run = e->world->shadow;
    const enum step_status status = run->steps[s].status;
    struct world_event ev = {.step = (uint8_t)s};
    if (e->world->at.left.modifies > 0 && step_is_final(status)) {
        ev.kind = WORLD_MODIFY;
        ev.variant = MODIFY_SKIP_STEPS;
        add(e, ev);
    } else if (e->world->at.left.modifies > 0) {
        ev.kind = WORLD_MODIFY;
        for (uint8_t kind = 0; kind < MODIFY_KIND_COUNT; kind++) {
            ev.variant = kind;
            if (kind != MODIFY_INSERT && kind != MODIFY_REPLACE &&
                (kind != MODIFY_CONVERSATION_ONLY || s == 0)) {
                charge(e, ev);
            }
        }
        ev.variant = MODIFY_SKIP_STEPS; /* uncharged: against a revision that is not in force */
        add(e, ev);
    }
    if (e->world->at.left.revisions == 0 || run->n_steps == WORLD_STEPS ||
        plan->steps[s].superseded) {
        return;
    }
    ev.kind = WORLD_REVISE;
    ev.variant = CHANGE_BEFORE;
    if (run_step_is_active(status)) {
        add(e, ev); /* is refused: it has begun */
    } else if (!step_is_final(status) && run->replanning == 0) {
        charge(e, ev);
    }
    ev.variant = CHANGE_REPLACE;
    if (run->replanning == 0) {
        charge(e, ev);
    } else {
        add(e, ev); /* is refused: the replanner's comes first */
    }
    ev.variant = CHANGE_FREE;
    if (s == 0 && run->replanning == 0) {
        charge(e, ev);
    }
}

static void plan_events(struct events *e)
{
    const struct situation *at = &e->world->at;
    struct world_event ev = {.kind = WORLD_CANCEL};
    if (at->paused & (1u << PAUSE_SIGNOFF | 1u << PAUSE_PLANNING)) {
        ev.kind = WORLD_SIGNOFF;
        ev.attempt = (uint16_t)(e->world->shadow->plan_review - 1);
        add(e, ev); /* is refused: about a review before this one */
        ev.attempt = (uint16_t)e->world->shadow->plan_review;
        add(e, ev);
        ev.variant = DECISION_REJECT;
        add(e, ev);
    }
    ev = (struct world_event){.kind = WORLD_RESUME};
    if (at->paused & 1u << PAUSE_REQUESTED) {
        add(e, ev);
    } else {
        ev.kind = WORLD_PAUSE;
        charge(e, ev);
    }
    ev.kind = WORLD_CANCEL;
    charge(e, ev);
    ev.kind = WORLD_RESTART;
    charge(e, ev);
}

static void jobs(struct events *e)
{
    struct world_event said[64];
    const uint32_t n = world_job_events(e->world, said);
    for (uint32_t i = 0; i < n; i++) {
        struct budget none = {0};
        if (world_counter(&none, &said[i]) != NULL) {
            charge(e, said[i]);
        } else {
            add(e, said[i]);
        }
    }
}

static void waits(struct events *e)
{
    struct world_event said[32];
    const uint32_t n = world_wait_events(e->world, said);
    for (uint32_t i = 0; i < n; i++) {
        const bool charged = said[i].charged;
        said[i].charged = false;
        if (charged) {
            charge(e, said[i]);
        } else {
            add(e, said[i]);
        }
    }
}

/* ---- all ---- */

/* About a review before the open one: refused. */
static bool is_stale(const struct world *w, const struct world_event *ev)
{
    const struct run *run = w->shadow;
    return (ev->kind == WORLD_DECIDE && ev->attempt != run->steps[ev->step].review_serial) ||
           (ev->kind == WORLD_SIGNOFF && ev->attempt != run->plan_review);
}

/* What would happen in a world in which all goes well comes first; 99: what never does there. */
static uint32_t rank(const struct world *w, const struct world_event *ev)
{
    if (ev->charged || is_stale(w, ev)) {
        return 99;
    }
    switch ((unsigned)ev->kind) {
    case WORLD_RESULT:
    case WORLD_STRAY:
        return ev->variant == ANSWER_OK ? 1 : ev->variant == ANSWER_FAIL ? 9 : 99;
    case WORLD_CONDITION:
        return ev->variant == CONDITION_TRUE && ev->attempt == w->at.told[ev->step].wanted ? 1 : 99;
    case WORLD_CALLED:
        return 1;
    case WORLD_SIGNAL:
        return 6;
    case WORLD_CHILD:
        return ev->variant == CHILD_COMPLETED && world_child_ends(w, ev) ? 1 : 99;
    case WORLD_LOST_OLD:
        return 2;
    case WORLD_GONE:
        return 3;
    case WORLD_UP:
    case WORLD_REGISTER:
        return w->at.bodies[ev->body].epoch == 0 ? 4 : 99;
    case WORLD_LANE_UP:
    case WORLD_CONTROL_UP:
        return 4;
    case WORLD_RESUME:
        return 5;
    case WORLD_SIGNOFF:
        return ev->variant == DECISION_APPROVE ? 5 : 99;
    case WORLD_PLANNED:
        return ev->variant == 1 ? 1 : 99;
    case WORLD_ANSWERED:
        return 1;
    case WORLD_COMPENSATED:
        return ev->variant == 0 ? 1 : 9;
    case WORLD_JOB_FAILED:
        return 9;
    case WORLD_PROBED:
        return ev->variant == 1 ? 5 : 99;
    case WORLD_DECIDE:
        return ev->variant == DECISION_APPROVE ? 6 : ev->variant == DECISION_SKIP ? 7 : 99;
    case WORLD_STATE:
        return ev->variant == STATE_NEVER ? 8 : 99;
    case WORLD_TICK:
        return w->scenario->alone ? 0 : 10;
    default:
        return 99;
    }
}

static void put_first(const struct world *w, struct world_event *events, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++) {
        best = rank(w, &events[i]) < rank(w, &events[best]) ? i : best;
    }
    if (n > 0) {
        const struct world_event first = events[best];
        events[best] = events[0];
        events[0] = first;
    }
}

uint32_t world_events(const struct world *w, struct world_event *ret)
{
    struct events e = {.world = w, .at = ret};
    if (w->at.over) {
        return 0;
    }
    const bool registry = w->config.registry.lease_ms < 1000 || w->scenario->breakers > 0;
    if (heap_min(&w->core->due) != MSEC_NEVER ||
        (registry && core_deadline(w->core) != MSEC_NEVER)) {
        add(&e, (struct world_event){.kind = WORLD_TICK});
        charge(&e, (struct world_event){.kind = WORLD_SILENT_TICK});
        if (w->config.registry.lease_ms < 1000) {
            charge(&e, (struct world_event){.kind = WORLD_SILENT_TICK, .variant = 1});
        }
    }
    for (uint32_t i = 0; w->scenario->bodies[i] != '\0'; i++) {
        requests(&e, i);
        instance(&e, i);
    }
    for (uint32_t s = 0; s < w->shadow->n_steps; s++) {
        decisions(&e, s);
        verdicts(&e, s);
        children(&e, s);
        changes(&e, s);
        for (uint32_t i = 0; w->scenario->bodies[i] != '\0'; i++) {
            words(&e, s, i);
        }
    }
    plan_events(&e);
    jobs(&e);
    waits(&e);
    put_first(w, ret, e.n);
    return e.n;
}

void world_event_text(const struct world *w, const struct world_event *ev, char *buf, size_t size)
{
    static const char *const names[] = {
        [WORLD_TICK] = "tick",
        [WORLD_SILENT_TICK] = "silent tick",
        [WORLD_RESULT] = "result",
        [WORLD_LOST] = "lost",
        [WORLD_BUSY] = "busy",
        [WORLD_LOST_OLD] = "lost old",
        [WORLD_STRAY] = "stray result",
        [WORLD_RESULT_OLD] = "old result",
        [WORLD_STATE] = "state",
        [WORLD_NOT_LISTED] = "not listed",
        [WORLD_REGISTER] = "register",
        [WORLD_LANE_UP] = "lane up",
        [WORLD_CONTROL_UP] = "control up",
        [WORLD_UP] = "up",
        [WORLD_GONE] = "gone",
        [WORLD_DRAIN] = "drain",
        [WORLD_PROGRESS] = "progress",
        [WORLD_PROBED] = "probed",
        [WORLD_CONDITION] = "condition",
        [WORLD_CHILD] = "child",
        [WORLD_SIGNAL] = "signal",
        [WORLD_CALLED] = "kept signal",
        [WORLD_CLOCK] = "clock",
        [WORLD_CANCEL] = "cancel",
        [WORLD_PAUSE] = "pause",
        [WORLD_RESUME] = "resume",
        [WORLD_DECIDE] = "decide",
        [WORLD_SIGNOFF] = "sign off",
        [WORLD_MODIFY] = "modify",
        [WORLD_REVISE] = "revise",
        [WORLD_PLANNED] = "planned",
        [WORLD_BRING] = "bring a plan",
        [WORLD_JOB_FAILED] = "errand failed",
        [WORLD_TEXT] = "text",
        [WORLD_ANSWERED] = "answered",
        [WORLD_RECTIFY] = "rectify",
        [WORLD_JOB_LATE] = "late errand",
        [WORLD_COMPENSATED] = "compensated",
        [WORLD_RESTART] = "restart",
    };
    static const char *const said[ANSWER_COUNT] = {"ok",
                                                   "fail",
                                                   "no",
                                                   "again",
                                                   "rate limited",
                                                   "service",
                                                   "not found",
                                                   "tool",
                                                   "unverified",
                                                   "input",
                                                   "approval",
                                                   "calls",
                                                   "hand to x",
                                                   "hand to y",
                                                   "hand to z",
                                                   "hand to a stranger",
                                                   "plan that keeps",
                                                   "plan that does not fit",
                                                   "invalid plan",
                                                   "plan with a stranger",
                                                   "plan that repeats"};
    _Static_assert(sizeof names / sizeof names[0] == WORLD_KIND_COUNT, "all");
    const char *detail = "";
    if (ev->kind == WORLD_RESULT || ev->kind == WORLD_STRAY || ev->kind == WORLD_RESULT_OLD) {
        detail = said[ev->variant];
    } else if (ev->kind == WORLD_DECIDE || ev->kind == WORLD_SIGNOFF) {
        detail = review_decision_name(ev->variant);
    } else if (ev->kind == WORLD_MODIFY) {
        detail = modify_kind_name(ev->variant);
    }
    (void)snprintf(buf, size, "[%llu] %s %s instance=%u step=%u %s=%u variant=%u",
                   (unsigned long long)w->at.now, names[ev->kind], detail, ev->body + 1u, ev->step,
                   step_phase_name(ev->phase), ev->attempt, ev->variant);
}
