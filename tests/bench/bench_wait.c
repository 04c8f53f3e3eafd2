/* S4: 10,000 plans that wait for a person: what each costs in memory, and how long one takes to go
 * on and end. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench.h"

enum { CLIENTS = 4, WAITING_MS = 120000, DECISIONS = 50, POLL_MS = 1000, MEBI = 1024 * 1024 };

struct work {
    atomic_long left;
    const char *plan;
};

static void *submitter(void *arg)
{
    struct work *work = arg;
    struct bt_client *c = bench_client();
    char id[BT_ID_LEN + 1];

    while (atomic_fetch_sub(&work->left, 1) > 0) {
        bench_submit(c, work->plan, id);
    }
    return NULL;
}

/* Takes events until n plans wait; keeps the reviews of the last ones. */
static void until_waiting(struct bt_watch *w, long n, char reviews[DECISIONS][200])
{
    uint64_t start = bench_now_ns();
    struct bt_error err;
    struct bt_event ev;
    long seen = 0;

    while (seen < n) {
        enum bt_code code = bt_watch_next(w, POLL_MS, &ev, &err);
        const char *at;
        if (code == BT_OK && strcmp(ev.type, "plan_step_waiting") == 0) {
            at = strstr(ev.json, "\"reviewId\":\"");
            if (at == NULL || sscanf(at + 12, "%199[^\"]", reviews[seen % DECISIONS]) != 1) {
                bench_die("an event without a reviewId: %s", ev.json);
            }
            seen++;
        } else if (code != BT_OK && code != BT_TIMEOUT) {
            bench_die("watch: %s", err.msg);
        } else if (bench_now_ns() - start > WAITING_MS * 1000000ull) {
            bench_die("only %ld of %ld plans wait after %d ms", seen, n, WAITING_MS);
        }
    }
}

/* Decides one review; microseconds until its plan has completed. */
static double resume(struct bt_client *c, struct bt_watch *w, const char *review)
{
    char plan_id[BT_ID_LEN + 1];
    char fields[320];
    struct bt_error err;
    uint64_t start = bench_now_ns();

    (void)snprintf(plan_id, sizeof plan_id, "%.*s", BT_ID_LEN, review);
    (void)snprintf(fields, sizeof fields, "{\"reviewId\":\"%s\",\"decision\":\"approve\"}", review);
    bench_check(bt_client_call(c, "review.decide", fields, NULL, &err), "review.decide", &err);
    bench_until_done(w, plan_id);
    return (double)(bench_now_ns() - start) / 1e3;
}

static void submit_all(long n, struct bt_watch *w, char reviews[DECISIONS][200])
{
    char *plan = bench_plan_approval();
    struct work work = {.plan = plan};
    pthread_t threads[CLIENTS];

    atomic_init(&work.left, n);
    for (int i = 0; i < CLIENTS; i++) {
        if (pthread_create(&threads[i], NULL, submitter, &work) != 0) {
            bench_die("no thread for a client");
        }
    }
    until_waiting(w, n, reviews);
    for (int i = 0; i < CLIENTS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    free(plan);
}

static void waiting(const struct bench_options *opt)
{
    static char reviews[DECISIONS][200];
    struct bench_setup setup = {.durability = opt->durability, .instances = 1, .capacity = 64};
    struct bench_result r = {.scenario = opt->scenario,
                             .durability = opt->durability,
                             .n = opt->n > 0 ? opt->n : 10000,
                             .goal = 2048};
    struct bench_samples samples = {0};
    uint64_t empty, start;
    struct bt_client *c;
    struct bt_watch *w;
    char more[256];

    r.before = bench_reference(opt);
    (void)bench_daemon_start(&setup);
    c = bench_client();
    bench_wait_agents(c, &setup);
    w = bench_watch(c);
    empty = bench_daemon_rss();
    start = bench_now_ns();
    submit_all(r.n, w, reviews);
    r.per_step_us = (double)(bench_now_ns() - start) / 1e3 / (double)r.n;
    r.rss = bench_daemon_rss();
    for (long i = 0; i < DECISIONS && i < r.n; i++) {
        bench_add(&samples, resume(c, w, reviews[i]));
    }
    bench_daemon_stop();
    r.after = bench_reference(opt);
    r.figure = ((double)r.rss - (double)empty) / (double)r.n;
    r.p50 = bench_percentile(&samples, 0.5);
    r.p99 = bench_percentile(&samples, 0.99);
    r.steps_per_s = 1e6 / r.per_step_us;
    (void)snprintf(
        more, sizeof more,
        "\"bytes_per_plan\":%.0f,\"rss_before\":%llu,\"rss_mib\":%.1f,\"rss_goal_mib\":64,"
        "\"resume_p50_us\":%.0f,\"resume_p99_us\":%.0f",
        r.figure, (unsigned long long)empty, (double)r.rss / MEBI, r.p50, r.p99);
    r.more = more;
    bench_print(&r);
}

int main(int argc, char **argv)
{
    static const struct bench_scenario scenarios[] = {{"S4", waiting}};

    return bench_main(argc, argv, scenarios, 1);
}
