/*
 * Child plans as the shell has them: a command looks for the child with its key, which is that of
 * its step, attempt and round, and makes it once. Between parent and child pass a cancel, a pause,
 * a resume, progress and the end; all of it takes a while, and is lost with the daemon. A restart
 * asks again for children that are awaited, and cancels the others.
 */
#include "tests/sim/sim.h"

/* ---- who it is ---- */

static struct sim_plan *find(struct sim *s, uint32_t parent, const struct core_cmd *cmd)
{
    for (uint32_t i = 0; i < s->n_plans; i++) {
        const struct nest *n = &s->plans[i].nest;
        if (n->kind != CHILD_OF_NONE && n->parent == parent && n->step == cmd->step &&
            n->attempt == cmd->attempt && n->round == cmd->round) {
            return &s->plans[i];
        }
    }
    return NULL;
}

struct sim_plan *sim_nest_of(struct sim *s, const struct core_cmd *cmd)
{
    const struct sim_plan *p = sim_plan_of(s, cmd->run);
    return p == NULL ? NULL : find(s, (uint32_t)(p - s->plans), cmd);
}

bool sim_nest_is_awaited(const struct sim *s, const struct sim_plan *c)
{
    const struct nest *n = &c->nest;
    const struct sim_plan *p = &s->plans[n->parent];
    const struct run_step *step = &p->shadow->steps[n->step];
    const bool child = sim_plan_now(p)->steps[n->step].type == STEP_TYPE_PLAN;
    return !p->over && step->status == STEP_IN_PROGRESS && (child || run_step_calls(step)) &&
           step->attempt == n->attempt && step->round == n->round;
}

static bool is_paused(const struct sim_plan *p)
{
    return (p->shadow->paused & 1u << PAUSE_REQUESTED) != 0;
}

static void send(struct sim *s, const struct sim_plan *c, enum nest_news news, msec delay)
{
    sim_after(
        s, delay,
        (struct sim_event){
            .kind = SIM_NEST, .life = s->life, .plan = (uint32_t)(c - s->plans), .lane = news});
}

static void report(struct sim *s, struct sim_plan *c)
{
    if (!c->nest.reported) {
        c->nest.reported = true;
        send(s, c, NEST_END, sim_range(s, 0, 30));
    }
}

/* ---- it is made ---- */

/* A loop has rounds; a map has a list, whose document is there. */
static enum child_kind kind_of(const struct plan_step *step)
{
    return step->type != STEP_TYPE_PLAN     ? CHILD_OF_CALLS
           : step->rules->loop.max > 0      ? CHILD_OF_LOOP
           : step->rules->child.ptr != NULL ? CHILD_OF_MAP
                                            : CHILD_OF_SUB;
}

/* By its key, because a restart asks again: what the shell answered itself it will answer again. */
static bool is_simulated(const struct sim *s, uint32_t parent, const struct core_cmd *cmd)
{
    uint64_t z = s->seed ^ (uint64_t)parent << 48 ^ (uint64_t)cmd->step << 32 ^
                 (uint64_t)cmd->attempt << 16 ^ cmd->round;
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (z ^ z >> 31) % 1000 < s->rate[FAULT_NEST];
}

static void too_deep(struct sim *s, const struct core_cmd *cmd)
{
    sometimes->nest_cases[NEST_TOO_DEEP]++;
    sim_to_core(
        s, 0,
        (struct core_event){CORE_EV_INIT(CHILD, child, .outcome = CHILD_FAILED, .round = cmd->round,
                                         .error_class = CLASS_VALIDATION_ERROR),
                            .run = cmd->run, .step = cmd->step, .attempt = cmd->attempt,
                            .lane = LANE_NONE, .text = STR_LIT("nested too deep")},
        (struct uuid){{0}});
}

static bool make_child(struct sim *s, const struct core_cmd *cmd)
{
    struct sim_plan *p = sim_plan_of(s, cmd->run);
    if (p == NULL || !is_simulated(s, (uint32_t)(p - s->plans), cmd)) {
        return false;
    }
    if (p->nest.depth + 1 == NEST_DEPTHS) {
        too_deep(s, cmd);
        return true;
    }
    if (s->n_plans == SIM_ALL_PLANS || s->n_children == s->children_max) {
        return false;
    }
    struct sim_plan *c = &s->plans[s->n_plans++];
    s->n_children++;
    c->nest = (struct nest){.kind = kind_of(&sim_plan_now(p)->steps[cmd->step]),
                            .parent = (uint32_t)(p - s->plans),
                            .step = cmd->step,
                            .attempt = cmd->attempt,
                            .round = cmd->round,
                            .depth = p->nest.depth + 1,
                            .again = sim_chance(s, 500),
                            .asked = true,
                            .told_pause = is_paused(p)};
    c->nest.called = c->nest.kind == CHILD_OF_CALLS || p->nest.called;
    sometimes->faults[FAULT_NEST]++;
    sim_make_child(s, c);
    sim_after(s, sim_range(s, 0, 40),
              (struct sim_event){.kind = SIM_SUBMIT, .plan = (uint32_t)(c - s->plans)});
    return true;
}

/* Nobody waits for it before it has begun. */
static void unmake(struct sim *s, struct sim_plan *c)
{
    c->over = true;
    sometimes->nest_cases[NEST_UNMADE]++;
    report(s, c);
}

/* Children that wait for children of their own never hold all the places: each depth has one
 * more. */
static bool has_room(const struct sim *s, const struct sim_plan *c)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < s->n_plans; i++) {
        const struct sim_plan *of = &s->plans[i];
        open += of->nest.kind != CHILD_OF_NONE && of->submitted && !of->over ? 1 : 0;
    }
    return open < s->child_places + c->nest.depth - 1;
}

bool sim_nest_may_begin(struct sim *s, struct sim_plan *c)
{
    if (s->failed || c->over) {
        return false;
    }
    if (!sim_nest_is_awaited(s, c) || s->plans[c->nest.parent].shadow->cancelling) {
        unmake(s, c);
        return false;
    }
    if (!has_room(s, c)) {
        sometimes->nest_cases[NEST_WITHOUT_ROOM]++;
        sim_after(s, 50, (struct sim_event){.kind = SIM_SUBMIT, .plan = (uint32_t)(c - s->plans)});
        return false;
    }
    return true;
}

void sim_nest_begun(struct sim *s, const struct sim_plan *c)
{
    if (is_paused(&s->plans[c->nest.parent])) {
        send(s, c, NEST_PAUSE, 0);
    }
}

/* ---- commands ---- */

static void asked_again(struct sim *s, struct sim_plan *c)
{
    if (c->over) {
        sometimes->nest_cases[NEST_SAID_AGAIN] += c->nest.reported ? 0 : 1;
        report(s, c);
    } else {
        sometimes->nest_cases[NEST_MADE_AGAIN]++;
    }
}

bool sim_nest_command(struct sim *s, const struct core_cmd *cmd)
{
    struct sim_plan *c = sim_nest_of(s, cmd);
    if (c == NULL) {
        return cmd->type == CMD_CHILD && make_child(s, cmd);
    }
    if (cmd->type == CMD_CHILD) {
        asked_again(s, c);
    } else {
        c->nest.told_stop =
            c->nest.told_stop || cmd->type == CMD_CHILD_STOP; /* made in this turn */
        send(s, c,
             cmd->type == CMD_CHILD_STOP    ? NEST_STOP
             : cmd->type == CMD_CHILD_PAUSE ? NEST_PAUSE
                                            : NEST_RESUME,
             sim_range(s, 0, 20));
    }
    return true;
}

void sim_nest_record(struct sim *s, const struct record *rec)
{
    struct sim_plan *c = rec->run == 0 ? NULL : sim_plan_of(s, rec->run);
    if (c == NULL || c->nest.kind == CHILD_OF_NONE) {
        return;
    }
    if (rec->type == REC_PLAN_COMPLETED) {
        report(s, c);
    } else if (rec->type == REC_STEP_COMPLETED && sim_chance(s, 200)) {
        send(s, c, NEST_PROGRESS, sim_range(s, 0, 30));
    }
}

void sim_nest_booted(struct sim *s)
{
    for (uint32_t i = 0; i < s->n_plans; i++) {
        struct sim_plan *c = &s->plans[i];
        const struct sim_plan *p = &s->plans[c->nest.parent];
        if (c->nest.kind == CHILD_OF_NONE || c->over) {
            continue;
        }
        c->nest.told_pause = is_paused(p);
        if (!sim_nest_is_awaited(s, c) || p->shadow->cancelling) {
            c->nest.told_stop = true;
            sometimes->nest_cases[NEST_ORPHANED]++;
            send(s, c, NEST_STOP, 0);
        } else if (is_paused(p) && !is_paused(c)) {
            send(s, c, NEST_PAUSE, 0);
        }
    }
}

/* ---- what arrives ---- */

uint64_t sim_nest_result(const struct sim_plan *c)
{
    const struct plan *plan = sim_plan_now(c);
    uint64_t mix = 1;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const struct run_step *step = &c->shadow->steps[i];
        if (c->nest.kind == CHILD_OF_MAP) {
            mix = mix * UINT64_C(1099511628211) + (step->result.id ^ (uint64_t)step->status << 50);
        } else if (step->status == STEP_COMPLETED && !plan->steps[i].superseded) {
            mix = step->result.id;
        }
    }
    return SIM_RESULT_OTHER + mix % SIM_RESULT_OTHER;
}

static enum err_class class_of(const struct sim_plan *c)
{
    if (!c->submitted || c->shadow->status == PLAN_CANCELLED) {
        return CLASS_CANCELLED;
    }
    if (c->nest.ends == PLAN_FAILURE_TIMEOUT || c->nest.ends == PLAN_FAILURE_BUDGET) {
        return c->nest.ends == PLAN_FAILURE_TIMEOUT ? CLASS_TIMEOUT : CLASS_BUDGET_EXCEEDED;
    }
    for (uint32_t i = 0; i < c->shadow->n_steps; i++) {
        const struct run_step *step = &c->shadow->steps[i];
        if (step->status == STEP_FAILED && step->error_class != CLASS_NONE) {
            return (enum err_class)step->error_class;
        }
    }
    return CLASS_UNKNOWN;
}

static enum child_outcome outcome_of(const struct sim_plan *c)
{
    const bool ends_the_step =
        c->nest.ends == PLAN_FAILURE_TIMEOUT || c->nest.ends == PLAN_FAILURE_BUDGET;
    if (!c->submitted) {
        return CHILD_FAILED;
    }
    if (c->nest.kind == CHILD_OF_CALLS && !ends_the_step) {
        return CHILD_COMPLETED; /* how each call ended is for its agent to see */
    }
    return c->shadow->status != PLAN_COMPLETED              ? CHILD_FAILED
           : c->nest.kind == CHILD_OF_LOOP && c->nest.again ? CHILD_AGAIN
                                                            : CHILD_COMPLETED;
}

static void tell_parent(struct sim *s, const struct sim_plan *c, bool end)
{
    const struct nest *n = &c->nest;
    const struct sim_plan *p = &s->plans[n->parent];
    struct core_event ev = {
        CORE_EV_INIT(CHILD, child, .outcome = CHILD_PROGRESS, .round = n->round, .percent = 50),
        .run = p->handle,
        .step = n->step,
        .attempt = n->attempt,
        .lane = LANE_NONE,
        .text = STR_LIT("step x: it did not work")};
    struct core_ev_child *child = CORE_EV(&ev, child);
    if (p->over || p->handle == 0) {
        return;
    }
    if (end) {
        child->outcome = outcome_of(c);
        child->error_class = class_of(c);
        child->result = (struct blob_ref){.id = sim_nest_result(c), .len = 1};
        child->usage = c->spent;
    }
    sim_turn(s, ev, (struct uuid){{0}});
}

static void tell_child(struct sim *s, struct sim_plan *c, enum nest_news news)
{
    static const struct {
        enum core_event_type type;
        enum nest_case count;
    } as[] = {[NEST_STOP] = {CORE_CANCEL, NEST_STOPPED},
              [NEST_PAUSE] = {CORE_PAUSE, NEST_PAUSED},
              [NEST_RESUME] = {CORE_RESUME, NEST_RESUMED}};
    sim_flush(s);
    if (s->down || s->failed || c->over) {
        return;
    }
    if (!c->submitted) {
        if (news == NEST_STOP) {
            unmake(s, c);
        }
        return;
    }
    sometimes->nest_cases[as[news].count]++;
    sim_turn(s,
             (struct core_event){.type = as[news].type,
                                 .run = c->handle,
                                 .step = STEP_NONE,
                                 .lane = LANE_NONE,
                                 .text = STR_LIT("its parent says so")},
             (struct uuid){{0}});
}

void sim_nest_happens(struct sim *s, const struct sim_event *ev)
{
    struct sim_plan *c = &s->plans[ev->plan];
    if (ev->life != s->life) {
        return;
    }
    if (ev->lane == NEST_END || ev->lane == NEST_PROGRESS) {
        tell_parent(s, c, ev->lane == NEST_END);
    } else {
        tell_child(s, c, (enum nest_news)ev->lane);
    }
}
