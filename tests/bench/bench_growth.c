/*
 * Growth, as curves: the cost of a step and the daemon's memory beside many open plans (S13), with
 * a long journal (S14), with many instances of an agent (S15), and with many agents of one instance
 * each (S16). Each point is measured by fans of 1,000 steps, S16 by plans that spread their steps
 * over 50 agents each, so that all of them work; `n` is the largest point. The curves stop there or
 * at the scenario's own end. The agents of S16 are not the daemon's: bench_crowd_agents has many of
 * them in one process.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/bench.h"

enum {
    FAN_WIDTH = 1000,
    FAN_STEPS = FAN_WIDTH + 2,
    FANS = 5, /* of one point */
    CLIENTS = 4,
    POINTS_MAX = 8,
    MORE_MAX = 2048,
    MEBI = 1024 * 1024,
    CROWD_PROCESS = 250, /* agents of one process: a file or more for each of their lanes */
    CROWD_PROCESSES = 64,
    CROWD_PLAN = 50, /* agents of one plan */
    CROWD_WAIT_S = 180,
    IDLE_S = 3
};

/* What is measured at one point. */
struct point {
    long at;
    double per_step_us, daemon_us, rss_mib;
    double idle_us; /* S16: of the daemon's processor in a second without work */
};

struct curve {
    struct point at[POINTS_MAX];
    int n;
};

static void run_fan(struct bt_client *c, struct bt_watch *w, const char *plan)
{
    char id[BT_ID_LEN + 1];

    bench_submit(c, plan, id);
    bench_until_done(w, id);
}

/* A few fans; the mean of their steps. */
static void measure(struct bt_client *c, uint32_t concurrency, long at, const char *what,
                    struct curve *io)
{
    char *plan = bench_plan_fan(FAN_WIDTH, concurrency);
    struct bt_watch *w = bench_watch(c);
    struct point *p = &io->at[io->n++];
    struct bench_cpu cpu;
    uint64_t start;

    run_fan(c, w, plan);
    cpu = bench_cpu_used();
    start = bench_now_ns();
    for (int i = 0; i < FANS; i++) {
        run_fan(c, w, plan);
    }
    *p = (struct point){.at = at,
                        .per_step_us = (double)(bench_now_ns() - start) / 1e3 / (FANS * FAN_STEPS),
                        .daemon_us = (bench_cpu_used().daemon - cpu.daemon) / (FANS * FAN_STEPS),
                        .rss_mib = (double)bench_daemon_rss() / MEBI};
    bench_say("%ld %s: %.1f us a step, %.1f of the daemon's processor; daemon %.1f MiB", at, what,
              p->per_step_us, p->daemon_us, p->rss_mib);
    bt_watch_close(w);
    free(plan);
}

static void print(const struct bench_options *opt, const struct curve *curve,
                  struct bench_ref before, const char *more)
{
    const struct point *last = &curve->at[curve->n - 1];
    struct bench_result r = {.scenario = opt->scenario,
                             .durability = opt->durability,
                             .n = last->at,
                             .before = before,
                             .per_step_us = last->per_step_us,
                             .figure = last->daemon_us / curve->at[0].daemon_us,
                             .goal = 1.2};
    char text[MORE_MAX];
    int len = snprintf(text, sizeof text, "%s\"curve\":[", more);

    for (int i = 0; i < curve->n && len < (int)sizeof text; i++) {
        len += snprintf(text + len, sizeof text - (size_t)len,
                        "%s{\"at\":%ld,\"per_step_us\":%.1f,\"daemon_us\":%.1f,\"rss_mib\":%.1f,"
                        "\"idle_us\":%.0f}",
                        i > 0 ? "," : "", curve->at[i].at, curve->at[i].per_step_us,
                        curve->at[i].daemon_us, curve->at[i].rss_mib, curve->at[i].idle_us);
    }
    if (len < (int)sizeof text) {
        (void)snprintf(text + len, sizeof text - (size_t)len, "]");
    }
    r.after = bench_reference(opt);
    r.steps_per_s = 1e6 / r.per_step_us;
    r.rss = (uint64_t)(last->rss_mib * MEBI);
    r.more = text;
    bench_print(&r);
}

/* ---- S13: plans that wait for a sign-off */

struct crowd {
    atomic_long left;
    const char *plan;
};

static void *submitter(void *arg)
{
    struct crowd *crowd = arg;
    struct bt_client *c = bench_client();
    char id[BT_ID_LEN + 1];

    while (atomic_fetch_sub(&crowd->left, 1) > 0) {
        bench_submit(c, crowd->plan, id);
    }
    bt_client_close(c);
    return NULL;
}

static void submit_waiting(long n)
{
    char *plan = bench_plan_waiting("\"signoff\":true");
    struct crowd crowd = {.plan = plan};
    pthread_t threads[CLIENTS];

    atomic_init(&crowd.left, n);
    for (int i = 0; i < CLIENTS; i++) {
        if (pthread_create(&threads[i], NULL, submitter, &crowd) != 0) {
            bench_die("no thread for a client");
        }
    }
    for (int i = 0; i < CLIENTS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    free(plan);
}

static void open_plans(const struct bench_options *opt)
{
    static const long POINTS[] = {0, 1000, 10000, 20000, 50000, 100000};
    const long most = opt->n > 0 ? opt->n : 100000;
    struct bench_setup setup = {
        .durability = opt->durability, .instances = 1, .capacity = 64, .open_plans = most + 10};
    struct bench_ref before = bench_reference(opt);
    struct curve curve = {.n = 0};
    struct bt_client *c;
    double started;
    long open = 0;
    char more[128];

    (void)bench_daemon_start(&setup);
    c = bench_client();
    bench_wait_agents(c, &setup);
    for (size_t i = 0; i < sizeof POINTS / sizeof POINTS[0] && POINTS[i] <= most; i++) {
        submit_waiting(POINTS[i] - open);
        open = POINTS[i];
        measure(c, 64, open, "open plans", &curve);
    }
    bt_client_close(c);
    bench_daemon_kill();
    started = bench_daemon_start(&setup);
    bench_say("recovery of %ld open plans: %.0f ms; daemon %.1f MiB", open, started,
              (double)bench_daemon_rss() / MEBI);
    (void)snprintf(more, sizeof more, "\"recovery_ms\":%.0f,\"recovered_mib\":%.1f,", started,
                   (double)bench_daemon_rss() / MEBI);
    bench_daemon_stop();
    print(opt, &curve, before, more);
}

/* ---- S14: a journal of many steps */

static void journal(const struct bench_options *opt)
{
    static const long POINTS[] = {10000, 30000, 100000, 300000, 1000000};
    const long most = opt->n > 0 ? opt->n : 1000000;
    struct bench_setup setup = {.durability = opt->durability, .instances = 1, .capacity = 64};
    struct bench_ref before = bench_reference(opt);
    struct curve curve = {.n = 0};
    char *plan = bench_plan_fan(FAN_WIDTH, 64);
    struct bt_client *c;
    struct bt_watch *w;
    double started;
    long steps = 0;
    char more[160];

    (void)bench_daemon_start(&setup);
    c = bench_client();
    bench_wait_agents(c, &setup);
    for (size_t i = 0; i < sizeof POINTS / sizeof POINTS[0] && POINTS[i] <= most; i++) {
        w = bench_watch(c);
        for (; steps < POINTS[i]; steps += FAN_STEPS) {
            run_fan(c, w, plan);
        }
        bt_watch_close(w);
        measure(c, 64, POINTS[i], "steps in the journal", &curve);
        steps += (FANS + 1L) * FAN_STEPS;
    }
    bt_client_close(c);
    bench_daemon_stop();
    started = bench_daemon_start(&setup);
    bench_say("start with the journal of %ld steps, %.0f MiB: %.0f ms", steps,
              (double)bench_journal_bytes() / MEBI, started);
    (void)snprintf(more, sizeof more,
                   "\"start_ms\":%.0f,\"journal_mib\":%.0f,\"journal_bytes_per_step\":%.0f,",
                   started, (double)bench_journal_bytes() / MEBI,
                   (double)bench_journal_bytes() / (double)steps);
    bench_daemon_stop();
    print(opt, &curve, before, more);
    free(plan);
}

/* ---- S15: instances */

static void instances(const struct bench_options *opt)
{
    static const long POINTS[] = {1, 4, 16, 64};
    const long most = opt->n > 0 ? opt->n : 64; /* of one agent */
    struct bench_ref before = bench_reference(opt);
    struct curve curve = {.n = 0};

    for (size_t i = 0; i < sizeof POINTS / sizeof POINTS[0] && POINTS[i] <= most; i++) {
        struct bench_setup setup = {.durability = opt->durability,
                                    .instances = POINTS[i],
                                    .capacity = opt->capacity > 0 ? opt->capacity : 64};
        struct bt_client *c;
        uint64_t start = bench_now_ns();

        (void)bench_daemon_start(&setup);
        c = bench_client();
        bench_wait_agents(c, &setup);
        bench_say("%ld instances are there after %.1f s", POINTS[i],
                  (double)(bench_now_ns() - start) / 1e9);
        measure(c, FAN_WIDTH, POINTS[i], "instances", &curve);
        bt_client_close(c);
        bench_daemon_stop();
    }
    print(opt, &curve, before, "");
}

/* ---- S16: agents of one instance each, in processes of their own */

static pid_t crowd_pids[CROWD_PROCESSES];
static size_t crowd_n;

static void crowd_start(long first, long n, long capacity)
{
    for (long at = first; at < first + n; at += CROWD_PROCESS) {
        char program[4096], state[512], from[24], count[24], places[24];
        char *argv[] = {program, state, from, count, places, NULL};
        const long left = first + n - at;

        if (crowd_n == CROWD_PROCESSES) {
            bench_die("at most %d agents", CROWD_PROCESSES * CROWD_PROCESS);
        }
        bench_program("bench_crowd_agents", program, sizeof program);
        (void)snprintf(state, sizeof state, "%s", bench_state());
        (void)snprintf(from, sizeof from, "%ld", at);
        (void)snprintf(count, sizeof count, "%ld", left < CROWD_PROCESS ? left : CROWD_PROCESS);
        (void)snprintf(places, sizeof places, "%ld", capacity);
        crowd_pids[crowd_n++] = bench_spawn(argv, -1, -1);
    }
}

static void crowd_stop(void)
{
    for (size_t i = 0; i < crowd_n; i++) {
        (void)kill(crowd_pids[i], SIGKILL);
        (void)waitpid(crowd_pids[i], NULL, 0);
    }
    crowd_n = 0;
}

static void crowd_wait(struct bt_client *c, long n)
{
    const uint64_t start = bench_now_ns();
    const struct timespec pause = {.tv_nsec = 50000000};
    long there = 0;

    while (there < n) {
        char *json = NULL;
        struct bt_error err;

        bench_check(bt_client_call(c, "agents.list", NULL, &json, &err), "agents.list", &err);
        there = 0;
        for (const char *at = json; (at = strstr(at, "\"instanceId\"")) != NULL; at++) {
            there++;
        }
        bt_free(json);
        if (bench_now_ns() - start > CROWD_WAIT_S * 1000000000ull) {
            bench_die("only %ld of %ld agents after %d s; see %s/log", there, n, CROWD_WAIT_S,
                      bench_dir());
        }
        (void)nanosleep(&pause, NULL);
    }
}

/* Plans of 1,000 steps, until each agent has had some. */
static void crowd_measure(struct bt_client *c, struct bt_watch *w, long n, struct point *p)
{
    struct bench_cpu cpu = bench_cpu_used();
    uint64_t start = bench_now_ns();
    long steps = 0;

    for (long at = 0; at < n || steps < FANS * FAN_WIDTH; at += CROWD_PLAN) {
        const uint32_t agents = (uint32_t)(n < CROWD_PLAN ? n : CROWD_PLAN);
        char *plan = bench_plan_spread(FAN_WIDTH, FAN_WIDTH,
                                       (uint32_t)(n > agents ? at % (n - agents + 1) : 0), agents);
        run_fan(c, w, plan);
        free(plan);
        steps += FAN_WIDTH;
    }
    p->per_step_us = (double)(bench_now_ns() - start) / 1e3 / (double)steps;
    p->daemon_us = (bench_cpu_used().daemon - cpu.daemon) / (double)steps;
    p->rss_mib = (double)bench_daemon_rss() / MEBI;
}

static void crowd(const struct bench_options *opt)
{
    static const long POINTS[] = {10, 100, 1000, 2500, 10000};
    const long most = opt->n > 0 ? opt->n : 1000;
    const long capacity = opt->capacity > 0 ? opt->capacity : 64;
    struct bench_setup setup = {.durability = opt->durability, .agents_max = most + 24};
    struct bench_ref before = bench_reference(opt);
    struct curve curve = {.n = 0};
    struct bt_client *c;
    struct bt_watch *w;
    const struct timespec idle = {.tv_sec = IDLE_S};
    long there = 0;

    (void)bench_daemon_start(&setup);
    atexit(crowd_stop);
    c = bench_client();
    for (size_t i = 0; i < sizeof POINTS / sizeof POINTS[0] && POINTS[i] <= most; i++) {
        struct point *p = &curve.at[curve.n++];
        struct bench_cpu cpu;
        uint64_t start = bench_now_ns();

        p->at = POINTS[i];
        w = bench_watch(c);
        crowd_start(there, POINTS[i] - there, capacity);
        crowd_wait(c, POINTS[i]);
        there = POINTS[i];
        bench_say("%ld agents are there after %.1f s", there,
                  (double)(bench_now_ns() - start) / 1e9);
        crowd_measure(c, w, there, p);
        bt_watch_close(w);
        cpu = bench_cpu_used();
        (void)nanosleep(&idle, NULL);
        p->idle_us = (bench_cpu_used().daemon - cpu.daemon) / IDLE_S;
        bench_say(
            "%ld agents of capacity %ld: %.1f us a step, %.1f of the daemon's processor; daemon "
            "%.1f MiB; idle %.0f us of processor a second",
            there, capacity, p->per_step_us, p->daemon_us, p->rss_mib, p->idle_us);
    }
    bt_client_close(c);
    crowd_stop();
    bench_daemon_stop();
    print(opt, &curve, before, "");
}

int main(int argc, char **argv)
{
    static const struct bench_scenario scenarios[] = {
        {"S13", open_plans}, {"S14", journal}, {"S15", instances}, {"S16", crowd}};

    return bench_main(argc, argv, scenarios, 4);
}
