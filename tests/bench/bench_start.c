/* S7 start and recovery, S8 kill -9 in the middle of a plan. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/bench.h"

enum {
    EVENTS = 100000,
    OPEN_PLANS = 1000,
    STARTS = 5,
    FAN_WIDTH = 1000,
    CRASH_STEPS = 100,
    CRASH_AT = 50,
    CRASH_RUNS = 5,
    LINES_MAX = 4096,
    LINE_MAX = 200,
    NAP_NS = 500000
};

static double median_start(const struct bench_setup *setup)
{
    struct bench_samples s = {0};
    double ms;

    for (int i = 0; i < STARTS; i++) {
        bench_add(&s, bench_daemon_start(setup));
        bench_daemon_stop();
    }
    ms = bench_percentile(&s, 0.5);
    free(s.at);
    return ms;
}

/* Runs wide plans until the journal has that many events; returns its number of events. */
static double fill_journal(const struct bench_setup *setup, double events)
{
    char *plan = bench_plan_fan(FAN_WIDTH, 64);
    struct bt_client *c;
    double seq = 0;

    (void)bench_daemon_start(setup);
    c = bench_client();
    bench_wait_agents(c, setup);
    while (seq < events) {
        struct bt_watch *w = bench_watch(c);
        char id[BT_ID_LEN + 1];
        bench_submit(c, plan, id);
        bench_until_done(w, id);
        bt_watch_close(w);
        seq = bench_ask(c, "supervisor.info", "lastSeq");
    }
    bench_daemon_stop();
    free(plan);
    return seq;
}

/* Plans stay open because their agent is configured but never registers. Killed with all of them
 * open. */
static void leave_open_plans(const struct bench_setup *setup, int n)
{
    char *plan = bench_plan_steps(10, true, 1);
    struct bt_client *c;
    char id[BT_ID_LEN + 1];

    (void)bench_daemon_start(setup);
    c = bench_client();
    for (int i = 0; i < n; i++) {
        bench_submit(c, plan, id);
    }
    if (bench_ask(c, "supervisor.stats", "plansOpen") < n) {
        bench_die("not all plans are open");
    }
    bench_daemon_kill();
    free(plan);
}

static void start(const struct bench_options *opt)
{
    struct bench_setup alone = {.durability = opt->durability};
    struct bench_setup echo = {.durability = opt->durability, .instances = 1, .capacity = 64};
    struct bench_result r = {
        .scenario = opt->scenario, .durability = opt->durability, .n = STARTS, .goal = 500};
    struct bench_setup absent = {
        .durability = opt->durability, .instances = 1, .capacity = 1, .command = "/bin/cat"};
    double empty, full, recovery, events;
    char more[400];

    r.before = bench_reference(opt);
    empty = median_start(&alone);
    events = fill_journal(&echo, opt->n > 0 ? (double)opt->n : EVENTS);
    full = median_start(&alone);
    r.rss = 0;
    leave_open_plans(&absent, OPEN_PLANS);
    recovery = bench_daemon_start(&absent);
    r.rss = bench_daemon_rss();
    bench_daemon_stop();
    r.after = bench_reference(opt);
    r.figure = full;
    (void)snprintf(more, sizeof more,
                   "\"empty_ms\":%.1f,\"empty_goal_ms\":50,\"full_ms\":%.1f,\"full_goal_ms\":500,"
                   "\"events\":%.0f,"
                   "\"recovery_ms\":%.1f,\"recovered_plans\":%d,\"journal_mib\":%.1f",
                   empty, full, events, recovery, OPEN_PLANS,
                   (double)bench_journal_bytes() / 1048576);
    r.more = more;
    bench_print(&r);
}

/* ---- S8 */

static long lines_of(const char *path, char (*ret)[LINE_MAX])
{
    FILE *f = fopen(path, "re");
    long n = 0;

    while (f != NULL && n < LINES_MAX && fgets(ret[n], LINE_MAX, f) != NULL) {
        n++;
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return n;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Executions beyond the first of each step. */
static long repeated(const char *path)
{
    static char lines[LINES_MAX][LINE_MAX];
    long n = lines_of(path, lines);
    long twice = 0;

    qsort(lines, (size_t)n, sizeof lines[0], by_text);
    for (long i = 1; i < n; i++) {
        twice += strcmp(lines[i], lines[i - 1]) == 0;
    }
    return twice;
}

struct crash {
    double ready_ms, done_ms; /* from the kill */
    long twice;
};

static struct crash crash_once(struct bt_client *c, const struct bench_setup *setup,
                               const char *plan)
{
    static char lines[LINES_MAX][LINE_MAX];
    struct timespec t = {.tv_nsec = NAP_NS};
    struct crash crash = {0};
    char id[BT_ID_LEN + 1];
    struct bt_error err;
    char *json = NULL;
    uint64_t killed;

    (void)remove(setup->log);
    bench_submit(c, plan, id);
    while (lines_of(setup->log, lines) < CRASH_AT) {
        (void)nanosleep(&t, NULL);
    }
    killed = bench_now_ns();
    bench_daemon_kill();
    (void)bench_daemon_start(setup);
    crash.ready_ms = (double)(bench_now_ns() - killed) / 1e6;
    bench_check(bt_wait(c, id, 30000, &json, &err), "the plan after the crash", &err);
    crash.done_ms = (double)(bench_now_ns() - killed) / 1e6;
    if (json == NULL || strstr(json, "\"outcome\":\"success\"") == NULL) {
        bench_die("the plan did not succeed after the crash: %.600s", json != NULL ? json : "");
    }
    bt_free(json);
    crash.twice = repeated(setup->log);
    return crash;
}

static void crash(const struct bench_options *opt)
{
    struct bench_result r = {.scenario = opt->scenario,
                             .durability = opt->durability,
                             .n = opt->n > 0 ? opt->n : CRASH_RUNS,
                             .goal = 1000};
    struct bench_samples ready = {0}, done = {0};
    char *plan = bench_plan_sleepy(CRASH_STEPS, 2);
    struct bench_setup setup = {.durability = opt->durability, .instances = 1, .capacity = 1};
    long twice = 0, worst = 0;
    char log[512], more[300];

    (void)snprintf(log, sizeof log, "%s/executions", bench_dir());
    setup.log = log;
    r.before = bench_reference(opt);
    for (long i = 0; i < r.n; i++) {
        struct crash one;
        struct bt_client *c;
        (void)bench_daemon_start(&setup);
        c = bench_client();
        bench_wait_agents(c, &setup);
        one = crash_once(c, &setup, plan);
        bench_add(&ready, one.ready_ms);
        bench_add(&done, one.done_ms);
        twice += one.twice;
        worst = one.twice > worst ? one.twice : worst;
        bench_say("killed after %d steps: ready after %.0f ms, done after %.0f ms, run twice: %ld",
                  CRASH_AT, one.ready_ms, one.done_ms, one.twice);
        r.rss = bench_daemon_rss();
        bench_daemon_stop();
    }
    r.after = bench_reference(opt);
    r.figure = bench_percentile(&done, 0.5);
    (void)snprintf(more, sizeof more,
                   "\"ready_ms\":%.0f,\"done_ms\":%.0f,\"done_max_ms\":%.0f,\"run_twice\":%ld,"
                   "\"run_twice_worst\":%ld",
                   bench_percentile(&ready, 0.5), r.figure, bench_percentile(&done, 1), twice,
                   worst);
    r.more = more;
    bench_print(&r);
    free(plan);
    free(ready.at);
    free(done.at);
}

int main(int argc, char **argv)
{
    static const struct bench_scenario scenarios[] = {{"S7", start}, {"S8", crash}};

    return bench_main(argc, argv, scenarios, 2);
}
