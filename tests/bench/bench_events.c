/*
 * S6: the bus. Latency from commit to subscriber, and the rate at which 1, 10 and 100 subscribers
 * receive every event.
 *
 * Latency: an event has wall-clock milliseconds only, which is too coarse. We measure from outside:
 * the answer to plan.submit and the event plan_generated leave the daemon in the same cycle, after
 * the same commit, the answer first. Arrival of the event minus arrival of the answer is therefore
 * the extra time of the event. The answer itself takes less than a raw round trip, so the extra
 * time plus h1 is an upper bound of commit-to-subscriber, and is compared with the goal. Both
 * stamps are CLOCK_MONOTONIC of this process. p50 and p99 of the line are from the call of
 * plan.submit to the event: request, check of the plan, commit and publication.
 *
 * Rate: plans of 200 steps run while the subscribers count sequence numbers; the rate is events per
 * second delivered to every one of them without a gap. The daemon's production
 * of events bounds it, so the raw PUB rate of the same run is printed, too, and replayed pages
 * (gaps that libbaton filled) are counted.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/link/link.h"
#include "protocol/wire/doc.h"
#include "tests/bench/bench.h"

enum {
    LATENCY_PLANS = 300,
    RATE_PLANS = 20,
    RATE_STEPS = 200,
    SUBSCRIBERS_MAX = 100,
    WAIT_MS = 50,
    RATE_MS = 30000
};
enum { FRAME_MAX = 8192, INBOX = 65536 };

/* ---- subscribers on a thread of their own, directly on the link: nothing is replayed, so gaps
 * count */

struct subscriber {
    uint64_t first, last, gaps;
};

struct listener {
    struct link *link;
    struct subscriber subs[SUBSCRIBERS_MAX];
    int n;
    atomic_int up;
    atomic_ullong wanted;  /* the sequence number to wait for; 0 = not known yet */
    atomic_int there;      /* subscribers that have received it */
    atomic_ullong heard;   /* newest number that subscriber 0 has received */
    uint64_t generated_ns; /* last arrival of plan_generated; read after the semaphore */
    sem_t generated;
    atomic_bool stop;
    pthread_t thread;
};

static void take_frame(struct listener *l, struct subscriber *s, struct link_msg *msg)
{
    struct str topic, body;
    struct doc doc;
    uint64_t seq;

    if (!link_frame_split(link_msg_bytes(msg), &topic, &body) ||
        str_is(topic, "system/heartbeat")) {
        return;
    }
    doc = (struct doc){(const uint8_t *)body.ptr, body.len};
    seq = doc_head(doc_get(doc, STR_LIT("seq"))).u;
    s->gaps += s->last != 0 && seq != s->last + 1 ? seq - s->last - 1 : 0;
    s->first = s->first == 0 ? seq : s->first;
    s->last = seq;
    if (s == &l->subs[0]) {
        atomic_store(&l->heard, seq);
        if (str_is(doc_string(doc_get(doc, STR_LIT("type"))), "plan_generated")) {
            l->generated_ns = bench_now_ns();
            (void)sem_post(&l->generated);
        }
    }
}

static void count_those_there(struct listener *l)
{
    uint64_t wanted = atomic_load(&l->wanted);
    int there = 0;

    for (int i = 0; i < l->n && wanted != 0; i++) {
        there += l->subs[i].last >= wanted;
    }
    atomic_store(&l->there, there);
}

static void *listen_on(void *arg)
{
    struct listener *l = arg;
    struct link_event ev;

    while (!atomic_load(&l->stop)) {
        (void)link_wait(l->link, WAIT_MS);
        while (link_next(l->link, &ev)) {
            if (ev.type == LINK_SUB_UP) {
                atomic_fetch_add(&l->up, 1);
            } else if (ev.type == LINK_FRAME) {
                take_frame(l, ev.owner, ev.msg);
            }
            if (ev.msg != NULL) {
                link_msg_free(ev.msg);
            }
        }
        count_those_there(l);
    }
    return NULL;
}

static void until(const char *what, atomic_int *counter, int n)
{
    uint64_t start = bench_now_ns();
    struct timespec nap = {.tv_nsec = 200000};

    while (atomic_load(counter) < n) {
        if (bench_now_ns() - start > RATE_MS * 1000000ull) {
            bench_die("%s: only %d of %d", what, atomic_load(counter), n);
        }
        (void)nanosleep(&nap, NULL);
    }
}

/* The address of the bus, from supervisor.info. */
static void events_url(struct bt_client *c, char *ret, size_t cap)
{
    struct bt_error err;
    char *json = NULL;
    const char *at;
    const char *end;

    bench_check(bt_client_call(c, "supervisor.info", NULL, &json, &err), "supervisor.info", &err);
    at = strstr(json, "\"events\":\"");
    end = at != NULL ? strchr(at + 10, '"') : NULL;
    if (end == NULL) {
        bench_die("no address of events in %s", json);
    }
    (void)snprintf(ret, cap, "%.*s", (int)(end - at - 10), at + 10);
    bt_free(json);
}

static struct listener *listener_start(struct bt_client *c, int n)
{
    struct listener *l = calloc(1, sizeof *l);
    struct link_limits limits = {.recv_max = FRAME_MAX};
    struct timespec settle = {.tv_nsec = 50000000};
    char url[300];
    struct bt_error err;

    if (l == NULL) {
        bench_die("out of memory for subscribers");
    }
    l->n = n;
    (void)sem_init(&l->generated, 0, 0);
    events_url(c, url, sizeof url);
    bench_check(link_new(INBOX, &l->link, &err), "link", &err);
    for (int i = 0; i < n; i++) {
        struct link_sub *sub;
        bench_check(link_sub_dial(l->link, url, NULL, 0, &limits, &l->subs[i], &sub, &err),
                    "subscribe", &err);
    }
    if (pthread_create(&l->thread, NULL, listen_on, l) != 0) {
        bench_die("no thread for subscribers");
    }
    until("subscribers are up", &l->up, n);
    (void)nanosleep(&settle, NULL); /* the daemon's side of each pipe */
    return l;
}

/* Its link stays open: sockets are not closed under traffic. */
static void listener_stop(struct listener *l)
{
    atomic_store(&l->stop, true);
    (void)pthread_join(l->thread, NULL);
}

/* ---- latency */

static void latency(struct bt_client *c, struct bench_samples *whole, struct bench_samples *behind)
{
    struct listener *l = listener_start(c, 1);
    char *plan = bench_plan_steps(1, false, 1);

    for (int i = 0; i < LATENCY_PLANS; i++) {
        char id[BT_ID_LEN + 1];
        uint64_t start, answered, came;
        char *json = NULL;
        struct bt_error err;
        struct timespec limit;
        (void)clock_gettime(CLOCK_MONOTONIC, &limit);
        limit.tv_sec += RATE_MS / 1000;
        start = bench_now_ns();
        bench_submit(c, plan, id);
        answered = bench_now_ns();
        if (sem_clockwait(&l->generated, CLOCK_MONOTONIC, &limit) != 0) {
            bench_die("the event of plan %s never came", id);
        }
        came = l->generated_ns;
        bench_add(whole, (double)(came - start) / 1e3);
        bench_add(behind, came > answered ? (double)(came - answered) / 1e3 : 0);
        bench_check(bt_wait(c, id, RATE_MS, &json, &err), "a plan of one step", &err);
        bt_free(json);
    }
    free(plan);
    listener_stop(l);
}

/* ---- rate */

struct rate {
    double per_second; /* events per second that every subscriber received */
    double lost;       /* share of all deliveries */
};

static struct rate rate(struct bt_client *c, int subscribers)
{
    struct listener *l = listener_start(c, subscribers);
    char *plan = bench_plan_steps(RATE_STEPS, false, 64);
    uint64_t first = (uint64_t)bench_ask(c, "supervisor.info", "lastSeq");
    uint64_t start = bench_now_ns();
    uint64_t last;
    double gaps = 0;
    struct rate r;

    for (int i = 0; i < RATE_PLANS; i += 2) {
        char a[BT_ID_LEN + 1], b[BT_ID_LEN + 1];
        char *json = NULL;
        struct bt_error err;
        bench_submit(c, plan, a);
        bench_submit(c, plan, b);
        bench_check(bt_wait(c, b, RATE_MS, &json, &err), "a plan", &err);
        bt_free(json);
        bench_check(bt_wait(c, a, RATE_MS, &json, &err), "a plan", &err);
        bt_free(json);
    }
    last = (uint64_t)bench_ask(c, "supervisor.info", "lastSeq");
    atomic_store(&l->wanted, last);
    until("subscribers have the last event", &l->there, subscribers);
    r.per_second = (double)(last - first) / ((double)(bench_now_ns() - start) / 1e9);
    listener_stop(l);
    for (int i = 0; i < subscribers; i++) {
        gaps += (double)l->subs[i].gaps;
    }
    r.lost = gaps / ((double)(last - first) * subscribers);
    bench_say("%d subscribers: %.0f events per second to each, %.4f lost", subscribers,
              r.per_second, r.lost);
    free(plan);
    return r;
}

static void events(const struct bench_options *opt)
{
    struct bench_setup setup = {.durability = opt->durability, .instances = 1, .capacity = 64};
    struct bench_result r = {
        .scenario = opt->scenario, .durability = opt->durability, .n = LATENCY_PLANS, .goal = 2000};
    struct bench_samples whole = {0}, behind = {0};
    struct rate one, ten, hundred;
    struct bt_client *c;
    double raw, best;
    char more[512];

    r.before = bench_reference(opt);
    (void)bench_daemon_start(&setup);
    c = bench_client();
    bench_wait_agents(c, &setup);
    latency(c, &whole, &behind);
    one = rate(c, 1);
    ten = rate(c, 10);
    hundred = rate(c, 100);
    r.rss = bench_daemon_rss();
    bench_daemon_stop();
    r.after = bench_reference(opt);
    /* The rate counts deliveries: one frame to ten subscribers is ten sends. */
    best = one.per_second;
    best = 10 * ten.per_second > best ? 10 * ten.per_second : best;
    best = 100 * hundred.per_second > best ? 100 * hundred.per_second : best;
    raw = r.before.pub_rate > r.after.pub_rate ? r.before.pub_rate : r.after.pub_rate;
    r.per_step_us = bench_mean(&whole);
    r.p50 = bench_percentile(&whole, 0.5);
    r.p99 = bench_percentile(&whole, 0.99);
    r.figure = bench_percentile(&behind, 0.99) +
               (r.before.h1_us < r.after.h1_us ? r.after.h1_us : r.before.h1_us);
    (void)snprintf(more, sizeof more,
                   "\"behind_answer_p50_us\":%.0f,\"behind_answer_p99_us\":%.0f,\"events_per_s\":[%"
                   ".0f,%.0f,%.0f],"
                   "\"deliveries_per_s\":[%.0f,%.0f,%.0f],\"lost\":[%.4f,%.4f,%.4f],\"raw_pub_per_"
                   "s\":%.0f,\"of_raw_pub\":%.3f,\"of_raw_"
                   "pub_goal\":0.5",
                   bench_percentile(&behind, 0.5), bench_percentile(&behind, 0.99), one.per_second,
                   ten.per_second, hundred.per_second, one.per_second, 10 * ten.per_second,
                   100 * hundred.per_second, one.lost, ten.lost, hundred.lost, raw, best / raw);
    r.more = more;
    bench_print(&r);
}

int main(int argc, char **argv)
{
    static const struct bench_scenario scenarios[] = {{"S6", events}};

    return bench_main(argc, argv, scenarios, 1);
}
