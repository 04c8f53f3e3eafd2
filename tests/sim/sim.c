/*
 * usage: test_sim [--seeds N] [--first SEED] [--seed SEED [--trace]]
 * Without arguments: the seeds of CI, and a failure when something that can happen never did.
 */
#include "tests/sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"

enum { SEEDS_OF_CI = 10000, TWICE_EVERY = 16 };

static void submit(struct sim *s, uint32_t ix)
{
    struct sim_plan *p = &s->plans[ix];
    sim_turn(s, (struct core_event){.type = CORE_SUBMIT, .plan = p->plan, .block = p->block},
             (struct uuid){{0}});
    if (!p->submitted) { /* busy, or the daemon died before it could say yes */
        sim_after(s, 200, (struct sim_event){.kind = SIM_SUBMIT, .plan = ix});
    }
}

/* ---- one seed ---- */

static void draw_faults(struct sim *s)
{
    static const uint32_t most[FAULT_COUNT] = {
        [FAULT_BEFORE_COMMIT] = 4, [FAULT_AFTER_COMMIT] = 4, [FAULT_RESTART] = 100,
        [FAULT_CANCEL] = 30,       [FAULT_HANG] = 60,        [FAULT_ABSENT] = 500,
    };
    for (int f = 0; f < FAULT_COUNT; f++) {
        const bool in = sim_chance(s, 400);
        s->rate[f] = in ? sim_range(s, 1, most[f] > 0 ? most[f] : 200) : 0;
    }
}

static void set_up(struct sim *s)
{
    s->random = s->seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    s->hash = 1;
    s->out.grow = NULL;
    s->quiet = sim_range(s, 500, SIM_QUIET_MAX_MS);
    draw_faults(s);
    s->n_agents = sim_range(s, 1, SIM_AGENTS_MAX);
    s->n_plans = sim_range(s, 1, sim_chance(s, 200) ? SIM_PLANS_MAX : 2);
    s->config = (struct core_config){.runs_max = sim_chance(s, 200) ? 1 : SIM_PLANS_MAX,
                                     .registry = {.agents = SIM_AGENTS_MAX,
                                                  .instances = 2 * SIM_BODIES_MAX,
                                                  .lease_ms = 1000,
                                                  .suspect_ms = 600,
                                                  .epoch_base = 0},
                                     .agent_wait_ms = 2000,
                                     .unknown_wait_ms = 1500,
                                     .cancel_grace_ms = 100,
                                     .seed = s->seed};
    s->core = calloc(1, core_size(&s->config));
    ASSERT(s->core != NULL);
    s->core = core_init(s->core, &s->config);
    for (uint32_t i = 0; i < s->n_agents; i++) {
        const char name[2] = {(char)('a' + i), '\0'};
        (void)registry_agent_add(s->core->registry, str_from(name), 0);
    }
    for (uint32_t i = 0; i < s->n_plans; i++) {
        sim_make_plan(s, &s->plans[i]);
        sim_after(s, i == 0 ? 0 : sim_range(s, 0, (uint32_t)s->quiet),
                  (struct sim_event){.kind = SIM_SUBMIT, .plan = i});
    }
    s->n_bodies = sim_range(s, s->n_agents, SIM_BODIES_MAX);
    for (uint32_t i = 0; i < s->n_bodies; i++) {
        s->bodies[i] =
            (struct body){.agent = i % s->n_agents, .capacity = sim_range(s, 1, SIM_CAPACITY_MAX)};
        sim_after(s, sim_fault(s, FAULT_ABSENT) ? sim_range(s, 1000, 5000) : 0,
                  (struct sim_event){.kind = SIM_BIRTH, .body = i});
    }
    sim_after(s, 50, (struct sim_event){.kind = SIM_CHAOS});
}

static void tear_down(struct sim *s)
{
    for (uint32_t i = 0; i < s->n_plans; i++) {
        sim_free_plan(&s->plans[i]);
    }
    free(s->core);
    free(s->execs);
    free(s->queue);
    free(s->out.at);
}

static bool all_over(const struct sim *s)
{
    uint32_t over = 0;
    for (uint32_t i = 0; i < s->n_plans; i++) {
        over += s->plans[i].over ? 1 : 0;
    }
    return over == s->n_plans;
}

/* G8: once the faults stop, everything ends within this. Generous: the worst step's attempts, one
 * after the other. */
static msec bound_of(const struct sim *s)
{
    msec bound = s->quiet + 60000;
    for (uint32_t i = 0; i < s->n_plans; i++) {
        bound += s->plans[i].plan->n_steps * (msec)10000;
    }
    return bound;
}

static void let_happen(struct sim *s, const struct sim_event *ev)
{
    if (ev->kind == SIM_CORE) {
        if (ev->life == s->life) {
            sim_turn(s, ev->core, ev->process);
        }
    } else if (ev->kind == SIM_SUBMIT) {
        submit(s, ev->plan);
    } else if (ev->kind == SIM_CHAOS) {
        if (s->now < s->quiet) {
            sim_chaos(s);
            sim_after(s, sim_range(s, 5, 60), (struct sim_event){.kind = SIM_CHAOS});
        } else { /* instances that were to stop for good do so now */
            for (uint32_t i = 0; i < s->n_bodies; i++) {
                if (s->bodies[i].draining && s->bodies[i].alive) {
                    sim_crash(s, i, true);
                }
            }
        }
    } else {
        sim_step_agents(s, ev);
    }
}

static void grow(struct commands *c)
{
    c->cap = c->cap == 0 ? 64 : 2 * c->cap;
    c->at = realloc(c->at, c->cap * sizeof *c->at);
    ASSERT(c->at != NULL);
}

static void live(struct sim *s)
{
    const msec bound = bound_of(s);
    while (!s->failed && !all_over(s)) {
        const msec due = core_deadline(s->core);
        const msec next = s->n_queue > 0 ? s->queue[0].at : MSEC_NEVER;
        s->now = due < next ? (due > s->now ? due : s->now) : next;
        if (s->now > bound) {
            sim_fail(s, "a plan did not end in bounded time after the faults stopped", 0, 0);
        } else if (due < next) {
            sim_turn(s, (struct core_event){.type = CORE_TICK, .lane = LANE_NONE},
                     (struct uuid){{0}});
        } else {
            const struct sim_event ev = sim_next(s);
            let_happen(s, &ev);
        }
    }
    if (!s->failed) {
        sim_check_end(s);
    }
}

static bool run_seed(uint64_t seed, bool trace, uint64_t *ret_hash)
{
    struct sim *s = calloc(1, sizeof *s);
    ASSERT(s != NULL);
    s->seed = seed;
    s->trace = trace;
    set_up(s);
    s->out.grow = grow;
    live(s);
    sometimes.plans += s->n_plans;
    *ret_hash = s->hash;
    const bool fine = !s->failed;
    tear_down(s);
    free(s);
    return fine;
}

static uint64_t number(int argc, char **argv, const char *name, uint64_t otherwise)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], name) == 0) {
            return strtoull(argv[i + 1], NULL, 10);
        }
    }
    return otherwise;
}

int main(int argc, char **argv)
{
    const uint64_t one = number(argc, argv, "--seed", UINT64_MAX);
    const uint64_t first = number(argc, argv, "--first", one == UINT64_MAX ? 1 : one);
    const uint64_t n = number(argc, argv, "--seeds", one == UINT64_MAX ? SEEDS_OF_CI : 1);
    const bool trace = argc > 1 && strcmp(argv[argc - 1], "--trace") == 0;
    for (uint64_t seed = first; seed < first + n; seed++) {
        uint64_t hash = 0;
        uint64_t again = 0;
        if (!run_seed(seed, trace, &hash)) {
            return 1;
        }
        if (seed % TWICE_EVERY == 0 && (!run_seed(seed, false, &again) || again != hash)) {
            (void)fprintf(stderr, "seed %" PRIu64 " gives two different runs\n", seed);
            return 1;
        }
    }
    (void)printf("%" PRIu64 " seeds, %" PRIu64 " plans, %" PRIu64 " turns, %" PRIu64
                 " executions\n",
                 n, sometimes.plans, sometimes.turns, sometimes.executions);
    return argc == 1 && sim_check_sometimes() > 0 ? 1 : 0;
}
