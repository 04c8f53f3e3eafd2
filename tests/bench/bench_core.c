/*
 * The cost of the core alone: nanoseconds per event and per step of chains and fans of 10 to 10,000
 * steps, of 10,000 plans that wait, and of changes to a plan of 10,000 steps. Without sockets,
 * journal and other processes, a cost that grows with the size of the plan is visible. One line of
 * JSON per case. "flat" compares the largest with n = 100, where a plan's fixed cost is spread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "supervisor/core/sched/core.h"
#include "tests/unit/core/plan/plan_text.h"

enum { LANES = 64, OPEN_PLANS = 10000, STEPS_MAX = 10000, ROUNDS = 5, STEPS_PER_ROUND = 50000 };

struct out {
    uint64_t run;
    uint32_t step, attempt, slot, lane;
    uint64_t epoch;
};

struct bench {
    struct core *core;
    struct commands commands;
    struct out *out; /* dispatched and not answered: a ring */
    uint32_t out_at, out_n;
    uint64_t run;    /* the newest */
    bool over;       /* a run has ended in the last event */
    uint64_t events; /* since the clock was set */
    uint64_t set_ns;
};

/* Processor time: other programs do not count. */
static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *need(size_t n, size_t size)
{
    void *at = calloc(n, size);

    if (at == NULL) {
        (void)fputs("bench_core: out of memory\n", stderr);
        exit(1);
    }
    return at;
}

static void grow(struct commands *c)
{
    c->cap = c->cap == 0 ? 64 : 2 * c->cap;
    c->at = realloc(c->at, c->cap * sizeof *c->at);
    if (c->at == NULL) {
        exit(1);
    }
}

static _Noreturn void stop(const char *why)
{
    (void)fprintf(stderr, "bench_core: %s\n", why);
    exit(1);
}

/* ---- one event */

static void take(struct bench *b, const struct core_cmd *cmd)
{
    if (cmd->type == CMD_DISPATCH) {
        if (b->out_n == LANES) {
            stop("more steps are out than there are lanes");
        }
        b->out[(b->out_at + b->out_n++) % LANES] =
            (struct out){cmd->run, cmd->step, cmd->attempt, cmd->slot, cmd->lane, cmd->epoch};
    } else if (cmd->type == CMD_REJECT) {
        stop(core_reject_text(cmd->reject));
    }
    b->over = b->over || cmd->type == CMD_RUN_DONE;
}

static void feed(struct bench *b, struct core_event ev)
{
    ev.now = 1000;
    ev.wall = 1000000;
    b->commands.n = 0;
    b->over = false;
    core_handle(b->core, &ev, &b->commands);
    b->events++;
    for (uint32_t i = 0; i < b->commands.n; i++) {
        take(b, &b->commands.at[i]);
    }
}

static void answer(struct bench *b)
{
    const struct out o = b->out[b->out_at];

    b->out_at = (b->out_at + 1) % LANES;
    b->out_n--;
    feed(b, (struct core_event){CORE_EV_INIT(RESULT, result, .outcome = STEP_OUTCOME_COMPLETED,
                                             .result = {.id = 1 + o.step, .len = 3}),
                                .run = o.run, .step = o.step, .attempt = o.attempt, .slot = o.slot,
                                .epoch = o.epoch, .lane = o.lane});
}

static void set_clock(struct bench *b)
{
    b->events = 0;
    b->set_ns = now_ns();
}

static double spent(const struct bench *b)
{
    return (double)(now_ns() - b->set_ns);
}

static struct bench *bench_new(uint32_t lanes)
{
    const struct core_config config = {
        .runs_max = OPEN_PLANS + 10,
        .registry = {.agents = 16, .instances = 16, .lease_ms = 3000, .suspect_ms = 1500},
        .agent_wait_ms = 10000,
        .unknown_wait_ms = 5000,
        .cancel_grace_ms = 1000};
    struct bench *b = need(1, sizeof *b);
    uint32_t agent;
    uint32_t slot;
    uint64_t epoch;

    b->core = core_init(need(1, core_size(&config)), &config);
    b->out = need(LANES, sizeof *b->out);
    b->commands.grow = grow;
    agent = registry_agent_add(core_registry(b->core), STR_LIT("x"), 0);
    feed(b, (struct core_event){
                CORE_EV_INIT(REGISTER, registration, .agent = agent, .capacity = LANES, .pid = 7),
                .instance = {.b = {1}}});
    slot = b->commands.at[b->commands.n - 1].slot;
    epoch = b->commands.at[b->commands.n - 1].epoch;
    for (uint32_t i = 0; i < lanes; i++) {
        feed(b, (struct core_event){.type = CORE_LANE_UP, .slot = slot, .epoch = epoch, .lane = i});
    }
    return b;
}

static void bench_free(struct bench *b)
{
    free(b->core);
    free(b->commands.at);
    free(b->out);
    free(b);
}

/* ---- plans */

static struct plan *finished(struct plan *p)
{
    plan_link(p);
    if (!plan_agents_collect(p)) {
        stop("too many agents");
    }
    p->max_concurrency = LANES;
    return p;
}

static void depend(struct plan *p, uint32_t step, uint32_t on)
{
    struct plan_step *s = &p->steps[step];

    s->deps_at = s->deps_n == 0 ? p->n_edges : s->deps_at;
    s->deps_n++;
    p->deps[p->n_edges++] = on;
}

static struct plan *chain(uint32_t n)
{
    struct plan *p = plan_text_blank(n, n, 0, "x");

    for (uint32_t i = 1; i < n; i++) {
        depend(p, i, i - 1);
    }
    return finished(p);
}

/* One root, n - 2 parallel steps, one join. */
static struct plan *fan(uint32_t n)
{
    struct plan *p = plan_text_blank(n, 2 * n, 0, "x");

    for (uint32_t i = 1; i + 1 < n; i++) {
        depend(p, i, 0);
    }
    for (uint32_t i = 1; i + 1 < n; i++) {
        depend(p, n - 1, i);
    }
    return finished(p);
}

static struct plan *wide(uint32_t n)
{
    return finished(plan_text_blank(n, 1, 0, "x"));
}

static void *submit(struct bench *b, const struct plan *p)
{
    void *block = need(1, core_run_size(p));

    feed(b, (struct core_event){CORE_EV_INIT(SUBMIT, submit, .plan = p, .block = block)});
    b->run = core_newest_run(b->core);
    return block;
}

/* ---- cases */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return x < y ? -1 : x > y;
}

struct cost {
    double per_event, per_step;
};

/* Runs the plan from submission to end in rounds; returns their medians. */
static struct cost run_shape(struct bench *b, const struct plan *p)
{
    const uint32_t times = STEPS_PER_ROUND / p->n_steps;
    double events[ROUNDS], steps[ROUNDS];

    for (uint32_t round = 0; round < ROUNDS; round++) {
        set_clock(b);
        for (uint32_t i = 0; i < times; i++) {
            void *block = submit(b, p);
            while (!b->over) {
                answer(b);
            }
            free(block);
        }
        events[round] = spent(b) / (double)b->events;
        steps[round] = spent(b) / ((double)times * p->n_steps);
    }
    qsort(events, ROUNDS, sizeof events[0], by_size);
    qsort(steps, ROUNDS, sizeof steps[0], by_size);
    return (struct cost){events[ROUNDS / 2], steps[ROUNDS / 2]};
}

static void sizes(const char *name, struct plan *(*make)(uint32_t n))
{
    static const uint32_t all[] = {10, 100, 1000, STEPS_MAX};
    struct bench *b = bench_new(LANES);
    double at_100 = 0;

    for (uint32_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct plan *p = make(all[i]);
        const struct cost c = run_shape(b, p);
        at_100 = all[i] == 100 ? c.per_step : at_100;
        (void)printf("{\"case\":\"%s\",\"n\":%u,\"ns_per_event\":%.0f,\"ns_per_step\":%.0f,"
                     "\"block_bytes_per_step\":%.0f",
                     name, all[i], c.per_event, c.per_step, (double)core_run_size(p) / all[i]);
        if (all[i] == STEPS_MAX) {
            (void)printf(",\"flat\":%.2f", c.per_step / at_100);
        }
        (void)puts("}");
        plan_text_free(p);
    }
    bench_free(b);
}

static void print(const char *name, uint32_t n, const char *unit, double ns)
{
    (void)printf("{\"case\":\"%s\",\"n\":%u,\"%s\":%.0f}\n", name, n, unit, ns);
}

/* 10,000 plans wait for a person; the cost of a step of another plan, and of a decision. */
static void beside_waiting_plans(void)
{
    struct bench *b = bench_new(LANES);
    void **blocks = need(OPEN_PLANS, sizeof *blocks);
    uint64_t *runs = need(OPEN_PLANS, sizeof *runs);
    struct plan *busy = chain(1000);
    struct plan *p = wide(1);

    p->steps[0].rules->policy.requires_approval = true;
    p->steps[0].rules->policy.approval_timeout_ms = 3600000;
    print("chain, no plan beside it", 1000, "ns_per_step", run_shape(b, busy).per_step);
    set_clock(b);
    for (uint32_t i = 0; i < OPEN_PLANS; i++) {
        blocks[i] = submit(b, p);
        runs[i] = b->run;
    }
    print("submit a plan that waits", OPEN_PLANS, "ns_per_plan", spent(b) / OPEN_PLANS);
    print("chain beside waiting plans", OPEN_PLANS, "ns_per_step", run_shape(b, busy).per_step);
    set_clock(b);
    for (uint32_t i = 0; i < 1000; i++) {
        feed(b, (struct core_event){.type = CORE_TICK});
    }
    print("tick beside waiting plans", OPEN_PLANS, "ns_per_event", spent(b) / 1000);
    set_clock(b);
    for (uint32_t i = 0; i < OPEN_PLANS; i++) {
        feed(b, (struct core_event){
                    CORE_EV_INIT(DECIDE, decide, .decision = DECISION_APPROVE), .run = runs[i],
                    .attempt = core_run(b->core, runs[i], NULL)->steps[0].review_serial});
        while (b->out_n > 0) {
            answer(b);
        }
        free(blocks[i]);
    }
    print("decide, run and end", OPEN_PLANS, "ns_per_plan", spent(b) / OPEN_PLANS);
    free(blocks);
    free(runs);
    plan_text_free(p);
    plan_text_free(busy);
    bench_free(b);
}

/* 10,000 plans of one step wait for an agent without a lane; then it gets one. */
static void queued_plans(void)
{
    struct bench *b = bench_new(1);
    void **blocks = need(OPEN_PLANS, sizeof *blocks);
    struct plan *p = wide(1);

    set_clock(b);
    for (uint32_t i = 0; i < OPEN_PLANS; i++) {
        blocks[i] = submit(b, p);
    }
    print("submit a plan that queues", OPEN_PLANS, "ns_per_plan", spent(b) / OPEN_PLANS);
    set_clock(b);
    while (b->out_n > 0) {
        answer(b);
    }
    print("run the queue down over one lane", OPEN_PLANS, "ns_per_step", spent(b) / OPEN_PLANS);
    for (uint32_t i = 0; i < OPEN_PLANS; i++) {
        free(blocks[i]);
    }
    free(blocks);
    plan_text_free(p);
    bench_free(b);
}

/* ---- changes of a plan of n steps, each one event */

static double one(struct bench *b, struct core_event ev)
{
    ev.run = b->run;
    set_clock(b);
    feed(b, ev);
    return spent(b);
}

static void change_chain(uint32_t n)
{
    struct bench *b = bench_new(LANES);
    struct plan *p = chain(n);
    struct plan *next = chain(n + 1);
    void *block = submit(b, p);
    void *revised = need(1, core_run_size(next));

    next->revision = 2;
    next->steps[n].revision = 2;
    print("revise: a step behind a chain", n, "ns_per_step",
          one(b, (struct core_event){CORE_EV_INIT(
                     REVISE, revise, .kind = MODIFY_INSERT,
                     .next = {.plan = next, .block = revised, .document = {.id = 1, .len = 1}})}) /
              n);
    print("skip_to_step: the last of a chain", n, "ns_per_step",
          one(b, (struct core_event){CORE_EV_INIT(MODIFY, modify, .kind = MODIFY_SKIP_TO_STEP),
                                     .step = n}) /
              n);
    free(block);
    free(revised);
    plan_text_free(p);
    plan_text_free(next);
    bench_free(b);
}

/* All are queued at once except 64 that are outstanding. */
static void change_wide(uint32_t n)
{
    struct bench *b = bench_new(LANES);
    struct plan *p = wide(n);
    void *block;

    p->max_concurrency = n;
    set_clock(b);
    block = submit(b, p);
    print("submit, all queued", n, "ns_per_step", spent(b) / n);
    print("pause, all queued", n, "ns_per_step",
          one(b, (struct core_event){.type = CORE_PAUSE}) / n);
    print("resume", n, "ns_per_step", one(b, (struct core_event){.type = CORE_RESUME}) / n);
    print("cancel", n, "ns_per_step", one(b, (struct core_event){.type = CORE_CANCEL}) / n);
    free(block);
    plan_text_free(p);
    bench_free(b);
}

/* The root fails: all its dependents are skipped. */
static void fail_fan(uint32_t n)
{
    struct bench *b = bench_new(LANES);
    struct plan *p = fan(n);
    void *block;

    p->steps[0].rules->policy.on_failure = ON_FAILURE_CONTINUE;
    block = submit(b, p);
    set_clock(b);
    feed(b, (struct core_event){CORE_EV_INIT(RESULT, result, .outcome = STEP_OUTCOME_FAILED,
                                             .error_class = CLASS_VALIDATION_ERROR),
                                .run = b->run, .attempt = 1, .slot = b->out[0].slot,
                                .epoch = b->out[0].epoch, .lane = b->out[0].lane,
                                .text = STR_LIT("no")});
    print("skip all that depends on the root", n, "ns_per_step", spent(b) / n);
    free(block);
    plan_text_free(p);
    bench_free(b);
}

int main(void)
{
    static const uint32_t n[] = {100, 1000, STEPS_MAX};

    sizes("chain", chain);
    sizes("fan", fan);
    beside_waiting_plans();
    queued_plans();
    for (uint32_t i = 0; i < sizeof n / sizeof n[0]; i++) {
        change_chain(n[i]);
        change_wide(n[i]);
        fail_fan(n[i]);
    }
    return 0;
}
