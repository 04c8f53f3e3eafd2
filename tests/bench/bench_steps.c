/* S1 chain, S2 fan-out, S3 many plans, S5 growth: the cost of a step. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench.h"

enum {
    CHAIN_STEPS = 100,
    FAN_WIDTH = 1000,
    SMALL_STEPS = 5,
    AT_A_TIME = 64,
    AT_ONCE = 16,
    WATCH_MS = 10000, /* a busy machine */
    WAIT_MS = 300000,
    CLIENTS_MAX = 64
};

/* The use since `before`, per step. */
static struct bench_cpu cpu_since(struct bench_cpu before, double steps)
{
    struct bench_cpu now = bench_cpu_used();

    return (struct bench_cpu){.daemon = (now.daemon - before.daemon) / steps,
                              .agents = (now.agents - before.agents) / steps,
                              .client = (now.client - before.client) / steps};
}

static struct bench_setup setup_of(const struct bench_options *opt, long instances, long capacity)
{
    return (struct bench_setup){.durability = opt->durability,
                                .fleet = opt->fleet,
                                .at = opt->at,
                                .instances = opt->instances > 0 ? opt->instances : instances,
                                .capacity = opt->capacity > 0 ? opt->capacity : capacity};
}

static bool is_power(const struct bench_options *opt)
{
    return strcmp(opt->durability, "power") == 0;
}

/* Submits one plan and waits for its end, by the watch or, without one, by bt_wait; microseconds.
 */
static double run_plan(struct bt_client *c, struct bt_watch *w, const char *plan)
{
    char id[BT_ID_LEN + 1];
    uint64_t start = bench_now_ns();

    bench_submit(c, plan, id);
    if (w != NULL) {
        bench_until_done(w, id);
    } else {
        struct bt_error err;
        char *json = NULL;
        enum bt_code code = bt_wait(c, id, WAIT_MS, &json, &err);
        bench_check(code, "wait", &err);
        bt_free(json);
    }
    return (double)(bench_now_ns() - start) / 1e3;
}

/* n plans, one after another; the duration of each, divided by its steps, into samples. */
static void run_plans(struct bt_client *c, bool wait, const char *plan, long n, long steps,
                      struct bench_samples *samples)
{
    struct bt_watch *w = wait ? NULL : bench_watch(c);

    (void)run_plan(c, w, plan);
    for (long i = 0; i < n; i++) {
        bench_add(samples, run_plan(c, w, plan) / (double)steps);
    }
    bt_watch_close(w);
}

static void one_shape(const struct bench_options *opt, struct bench_setup setup, char *plan, long n,
                      long steps, struct bench_result *r)
{
    struct bench_samples samples = {0};
    struct bench_cpu cpu;
    struct bt_client *c;

    r->before = bench_reference(opt);
    (void)bench_daemon_start(&setup);
    c = bench_client();
    bench_wait_agents(c, &setup);
    cpu = bench_cpu_used();
    run_plans(c, opt->wait, plan, n, steps, &samples);
    r->cpu = cpu_since(cpu, (double)((n + 1) * steps));
    r->rss = bench_daemon_rss();
    bench_daemon_stop();
    r->after = bench_reference(opt);
    r->scenario = opt->scenario;
    r->durability = opt->durability;
    r->n = n;
    r->per_step_us = bench_mean(&samples);
    r->p50 = bench_percentile(&samples, 0.5);
    r->p99 = bench_percentile(&samples, 0.99);
    r->steps_per_s = 1e6 / r->per_step_us;
    bench_print(r);
    free(samples.at);
    free(plan);
}

static void chain(const struct bench_options *opt)
{
    struct bench_result r = {.against = is_power(opt) ? AGAINST_FLOOR : AGAINST_H1,
                             .goal = is_power(opt) ? 1.5 : 2.0};

    one_shape(opt, setup_of(opt, 1, 1), bench_plan_steps(CHAIN_STEPS, true, 1),
              opt->n > 0 ? opt->n : 30, CHAIN_STEPS, &r);
}

static void fan(const struct bench_options *opt)
{
    struct bench_result r = {.against = AGAINST_H64, .goal = is_power(opt) ? 5 : 4};

    one_shape(opt, setup_of(opt, 1, 64), bench_plan_fan(FAN_WIDTH, AT_A_TIME),
              opt->n > 0 ? opt->n : 20, FAN_WIDTH + 2, &r);
}

/* ---- S3 */

struct crowd {
    sem_t places; /* plans that may be open */
    atomic_long left;
    const char *plan;
    long at_once; /* plans that one call submits, as far as there are places */
};

static void *submitter(void *arg)
{
    struct crowd *crowd = arg;
    struct bt_client *c = bench_client();

    while (atomic_fetch_sub(&crowd->left, 1) > 0) {
        long n = 1;
        while (sem_wait(&crowd->places) != 0) {
        }
        while (n < crowd->at_once && sem_trywait(&crowd->places) == 0) {
            if (atomic_fetch_sub(&crowd->left, 1) <= 0) {
                break; /* nobody needs that place any more */
            }
            n++;
        }
        bench_submit_many(c, crowd->plan, n);
    }
    return NULL; /* its client ends with the process */
}

/* Takes events until n plans have ended; releases a place and adds the duration for each. */
static void count_ends(struct bt_watch *w, struct crowd *crowd, long n,
                       struct bench_samples *samples)
{
    struct bt_error err;
    struct bt_event ev;

    while (n > 0) {
        enum bt_code code = bt_watch_next(w, WATCH_MS, &ev, &err);
        const char *at;
        if (code == BT_TIMEOUT) {
            bench_die("no event for %d ms, %ld plans are open", WATCH_MS, n);
        }
        bench_check(code, "watch", &err);
        if (bench_is_success(&ev)) {
            at = strstr(ev.json, "\"durationMs\":");
            bench_add(samples, at != NULL ? strtod(at + 13, NULL) * 1e3 / SMALL_STEPS : 0);
            (void)sem_post(&crowd->places);
            n--;
        }
    }
}

static double run_crowd(struct bt_watch *w, const struct bench_options *opt, long clients, long n,
                        const char *plan, struct bench_samples *samples)
{
    struct crowd crowd = {.plan = plan, .at_once = opt->at_once > 0 ? opt->at_once : AT_ONCE};
    pthread_t threads[CLIENTS_MAX];
    uint64_t start = bench_now_ns();

    (void)sem_init(&crowd.places, 0, AT_A_TIME);
    atomic_init(&crowd.left, n);
    for (long i = 0; i < clients; i++) {
        if (pthread_create(&threads[i], NULL, submitter, &crowd) != 0) {
            bench_die("no thread for a client");
        }
    }
    count_ends(w, &crowd, n, samples);
    start = bench_now_ns() - start;
    for (long i = 0; i < clients; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return (double)start / 1e3;
}

static void many(const struct bench_options *opt)
{
    struct bench_result r = {.scenario = opt->scenario,
                             .durability = opt->durability,
                             .n = opt->n > 0 ? opt->n : 3000,
                             .against = AGAINST_H64,
                             .goal = is_power(opt) ? 8 : 5};
    struct bench_setup setup = setup_of(opt, 1, 64);
    long clients = opt->clients > 0 && opt->clients <= CLIENTS_MAX ? opt->clients : 4;
    char *plan = bench_plan_steps(SMALL_STEPS, true, 1);
    struct bench_samples samples = {0};
    struct bt_client *c;
    struct bt_watch *w;
    struct bench_cpu cpu;
    double turns;
    double us;
    char more[256];

    r.before = bench_reference(opt);
    (void)bench_daemon_start(&setup);
    c = bench_client();
    if (opt->at != NULL) {
        bench_submit_here(c);
    }
    bench_wait_agents(c, &setup);
    w = bench_watch(c);
    (void)run_crowd(w, opt, clients, r.n / 10 + 1, plan, &samples);
    samples.n = 0;
    cpu = bench_cpu_used();
    us = run_crowd(w, opt, clients, r.n, plan, &samples);
    r.cpu = cpu_since(cpu, (double)(r.n * SMALL_STEPS));
    turns = bench_ask(c, "supervisor.stats", "commits");
    (void)snprintf(more, sizeof more, "\"clients\":%ld,\"filled\":%llu,\"records_per_commit\":%.1f",
                   clients, (unsigned long long)bt_watch_filled(w),
                   bench_ask(c, "supervisor.stats", "records") / turns);
    r.rss = bench_daemon_rss();
    bench_daemon_stop();
    r.after = bench_reference(opt);
    r.per_step_us = us / (double)(r.n * SMALL_STEPS);
    r.p50 = bench_percentile(&samples, 0.5);
    r.p99 = bench_percentile(&samples, 0.99);
    r.steps_per_s = 1e6 / r.per_step_us;
    r.more = more;
    bench_print(&r);
    free(samples.at);
    free(plan);
}

/* ---- S5 */

enum shape { SHAPE_WIDE, SHAPE_CHAIN, SHAPE_FAN, SHAPE_COUNT };
static const char *const shape_names[] = {"independent", "chain", "fan"};
static const uint32_t sizes[] = {10, 100, 1000, 10000};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

struct growth {
    double per_step_us[SIZES];
    double cpu_us[SIZES]; /* the daemon's, per step */
    double bytes_per_step;
};

static char *plan_of(enum shape shape, uint32_t n)
{
    return shape == SHAPE_FAN
               ? bench_plan_fan(n - 2, AT_A_TIME)
               : bench_plan_steps(n, shape == SHAPE_CHAIN, shape == SHAPE_CHAIN ? 1 : AT_A_TIME);
}

static struct growth grow(struct bt_client *c, bool wait, enum shape shape)
{
    static const long times[] = {400, 40, 5, 3};
    struct growth g = {0};

    for (int i = 0; i < SIZES; i++) {
        char *plan = plan_of(shape, sizes[i]);
        struct bench_samples samples = {0};
        const double steps = (double)sizes[i] * (double)(times[i] + 1);
        uint64_t bytes = bench_journal_bytes();
        struct bench_cpu cpu = bench_cpu_used();
        run_plans(c, wait, plan, times[i], sizes[i], &samples);
        g.per_step_us[i] = bench_percentile(&samples, 0.5);
        g.cpu_us[i] = cpu_since(cpu, steps).daemon;
        g.bytes_per_step = (double)(bench_journal_bytes() - bytes) / steps;
        bench_say("%s, %u steps: %.1f us per step, %.1f of the daemon's processor, %.0f bytes",
                  shape_names[shape], sizes[i], g.per_step_us[i], g.cpu_us[i], g.bytes_per_step);
        free(samples.at);
        free(plan);
    }
    return g;
}

static void growth(const struct bench_options *opt)
{
    struct bench_setup setup = setup_of(opt, 1, 64);
    struct bench_result r = {
        .scenario = opt->scenario, .durability = opt->durability, .n = 1, .goal = 1.2};
    struct growth g[SHAPE_COUNT];
    struct bt_client *c;
    char more[1024];
    int at = 0;

    r.before = bench_reference(opt);
    (void)bench_daemon_start(&setup);
    c = bench_client();
    bench_wait_agents(c, &setup);
    for (int shape = 0; shape < SHAPE_COUNT; shape++) {
        const double *us = g[shape].per_step_us;
        const double *cpu = g[shape].cpu_us;
        double grown;
        g[shape] = grow(c, opt->wait, (enum shape)shape);
        grown = us[SIZES - 1] / us[0];
        r.figure = grown > r.figure ? grown : r.figure;
        at += snprintf(more + at, sizeof more - (size_t)at,
                       "\"%s_us\":[%.1f,%.1f,%.1f,%.1f],\"%s_10000_by_10\":%.2f,"
                       "\"%s_cpu_10000_by_10\":%.2f,\"%s_cpu_us\":[%.1f,%.1f,%.1f,%.1f],",
                       shape_names[shape], us[0], us[1], us[2], us[3], shape_names[shape], grown,
                       shape_names[shape], cpu[3] / cpu[0], shape_names[shape], cpu[0], cpu[1],
                       cpu[2], cpu[3]);
    }
    r.rss = bench_daemon_rss();
    bench_daemon_stop();
    r.after = bench_reference(opt);
    r.per_step_us = r.p50 = r.p99 = g[SHAPE_CHAIN].per_step_us[SIZES - 1];
    r.steps_per_s = 1e6 / r.per_step_us;
    (void)snprintf(more + at, sizeof more - (size_t)at, "\"journal_bytes_per_step\":%.0f",
                   g[SHAPE_CHAIN].bytes_per_step);
    r.more = more;
    bench_print(&r);
}

int main(int argc, char **argv)
{
    static const struct bench_scenario scenarios[] = {
        {"S1", chain}, {"S2", fan}, {"S3", many}, {"S5", growth}};

    return bench_main(argc, argv, scenarios, sizeof scenarios / sizeof scenarios[0]);
}
