/*
 * S4: 10,000 waiting plans, each kind in a daemon of its own: waiting for an approval that an agent
 * requests, for one before the step begins, for a sign-off of the plan, paused plans, and sign-offs
 * of plans no two of which are the same. Memory
 * per plan: the growth of the daemon divided by the plans; and the growth by the second half of
 * them, which leaves out what fills only once (the journal's cache). Then the time that a plan
 * needs to resume and end after an agent's approval.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench.h"

enum { CLIENTS = 4, WAITING_MS = 120000, DECISIONS = 50, POLL_MS = 1000, MEBI = 1024 * 1024 };

enum kind { KIND_ASKED, KIND_BEFORE_STEP, KIND_SIGNOFF, KIND_PAUSED, KIND_DIFFERENT, KIND_COUNT };
static const char *const kind_names[] = {"asked", "before_step", "signoff", "paused", "different"};

/* The event, and the text in its JSON, that mark one more waiting plan. */
static const char *const kind_events[] = {"plan_step_waiting", "plan_step_waiting", "plan_paused",
                                          "plan_paused", "plan_paused"};
static const char *const kind_marks[] = {"\"reviewId\":\"", "\"reviewId\":\"", "\"signoff\"",
                                         "\"requested\"", "\"signoff\""};

struct work {
    atomic_long left;
    const char *plan;
    bool pause;
    bool different; /* each with a task and a goal of its own */
};

static atomic_long submitted;

static void *submitter(void *arg)
{
    struct work *work = arg;
    struct bt_client *c = bench_client();
    char id[BT_ID_LEN + 1];
    char fields[64];
    struct bt_error err;

    while (atomic_fetch_sub(&work->left, 1) > 0) {
        const long serial = atomic_fetch_add(&submitted, 1);
        char plan[400];
        (void)snprintf(plan, sizeof plan,
                       "{\"goal\":\"The report of customer %ld.\",\"policy\":{\"signoff\":true},"
                       "\"steps\":[{\"stepId\":\"s0\",\"agentId\":\"echo\",\"skill\":\"echo\","
                       "\"task\":\"Write the report of customer %ld.\"}]}",
                       serial, serial);
        bench_submit(c, work->different ? plan : work->plan, id);
        if (work->pause) {
            (void)snprintf(fields, sizeof fields, "{\"planId\":\"%s\"}", id);
            bench_check(bt_client_call(c, "plan.pause", fields, NULL, &err), "plan.pause", &err);
        }
    }
    bt_client_close(c);
    return NULL;
}

/* Takes events until n plans wait; keeps the last reviews. */
static void until_waiting(struct bt_watch *w, enum kind kind, long n, char reviews[DECISIONS][200])
{
    uint64_t start = bench_now_ns();
    struct bt_error err;
    struct bt_event ev;
    long seen = 0;

    while (seen < n) {
        enum bt_code code = bt_watch_next(w, POLL_MS, &ev, &err);
        const char *at;
        if (code == BT_OK && strcmp(ev.type, kind_events[kind]) == 0) {
            at = strstr(ev.json, kind_marks[kind]);
            if (kind == KIND_ASKED &&
                (at == NULL || sscanf(at + 12, "%199[^\"]", reviews[seen % DECISIONS]) != 1)) {
                bench_die("an event without a reviewId: %s", ev.json);
            }
            seen += at != NULL;
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

static char *plan_of(enum kind kind)
{
    switch (kind) {
    case KIND_ASKED:
        return bench_plan_approval();
    case KIND_BEFORE_STEP:
    case KIND_PAUSED: /* before its first step, or it would end too soon */
        return bench_plan_waiting("\"requiresApproval\":true");
    case KIND_SIGNOFF:
    case KIND_DIFFERENT: /* of the same shape */
        return bench_plan_waiting("\"signoff\":true");
    case KIND_COUNT:
        break;
    }
    return NULL;
}

static void submit_all(enum kind kind, long n, struct bt_watch *w, char reviews[DECISIONS][200])
{
    char *plan = plan_of(kind);
    struct work work = {
        .plan = plan, .pause = kind == KIND_PAUSED, .different = kind == KIND_DIFFERENT};
    pthread_t threads[CLIENTS];

    atomic_init(&work.left, n);
    for (int i = 0; i < CLIENTS; i++) {
        if (pthread_create(&threads[i], NULL, submitter, &work) != 0) {
            bench_die("no thread for a client");
        }
    }
    until_waiting(w, kind, n, reviews);
    for (int i = 0; i < CLIENTS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    free(plan);
}

/* Memory of waiting plans of one kind. */
struct weight {
    double submit_us;
    double all, further; /* bytes per plan: over all, over the second half */
    uint64_t empty, rss;
};

static struct weight weigh(const struct bench_options *opt, enum kind kind, long n,
                           struct bench_samples *resumed)
{
    static char reviews[DECISIONS][200];
    struct bench_setup setup = {
        .durability = opt->durability, .instances = 1, .capacity = 64, .state = kind_names[kind]};
    struct weight m = {0};
    struct bt_client *c;
    struct bt_watch *w;
    uint64_t start, half;

    (void)bench_daemon_start(&setup);
    c = bench_client();
    bench_wait_agents(c, &setup);
    w = bench_watch(c);
    m.empty = bench_daemon_rss();
    start = bench_now_ns();
    submit_all(kind, n / 2, w, reviews);
    half = bench_daemon_rss();
    submit_all(kind, n - n / 2, w, reviews);
    m.submit_us = (double)(bench_now_ns() - start) / 1e3 / (double)n;
    m.rss = bench_daemon_rss();
    m.all = ((double)m.rss - (double)m.empty) / (double)n;
    m.further = ((double)m.rss - (double)half) / (double)(n - n / 2);
    for (long i = 0; kind == KIND_ASKED && i < DECISIONS && i < n / 2; i++) {
        bench_add(resumed, resume(c, w, reviews[i]));
    }
    bt_watch_close(w);
    bt_client_close(c);
    bench_daemon_stop();
    bench_say("%s: %.0f bytes per plan, each further one %.0f; daemon %.1f MiB", kind_names[kind],
              m.all, m.further, (double)m.rss / MEBI);
    return m;
}

static void waiting(const struct bench_options *opt)
{
    struct bench_result r = {.scenario = opt->scenario,
                             .durability = opt->durability,
                             .n = opt->n > 0 ? opt->n : 10000,
                             .goal = 2048};
    struct bench_samples samples = {0};
    struct weight m[KIND_COUNT];
    char more[1024];
    int at = 0;

    r.before = bench_reference(opt);
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        m[kind] = weigh(opt, (enum kind)kind, r.n, &samples);
        at += snprintf(more + at, sizeof more - (size_t)at,
                       "\"%s\":{\"bytes_per_plan\":%.0f,\"bytes_per_further_plan\":%.0f},",
                       kind_names[kind], m[kind].all, m[kind].further);
        r.figure = m[kind].all > r.figure ? m[kind].all : r.figure;
        r.rss = m[kind].rss > r.rss ? m[kind].rss : r.rss;
    }
    r.after = bench_reference(opt);
    r.per_step_us = m[KIND_ASKED].submit_us;
    r.p50 = bench_percentile(&samples, 0.5);
    r.p99 = bench_percentile(&samples, 0.99);
    r.steps_per_s = 1e6 / r.per_step_us;
    (void)snprintf(more + at, sizeof more - (size_t)at,
                   "\"rss_before\":%llu,\"rss_mib\":%.1f,\"rss_goal_mib\":64,"
                   "\"resume_p50_us\":%.0f,\"resume_p99_us\":%.0f",
                   (unsigned long long)m[KIND_ASKED].empty, (double)r.rss / MEBI, r.p50, r.p99);
    r.more = more;
    bench_print(&r);
}

int main(int argc, char **argv)
{
    static const struct bench_scenario scenarios[] = {{"S4", waiting}};

    return bench_main(argc, argv, scenarios, 1);
}
