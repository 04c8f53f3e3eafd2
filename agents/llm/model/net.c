/* The net thread: takes calls from a list, runs them, wakes their callers. */
#include "agents/llm/model/net.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "agents/llm/model/net_call.h"
#include "protocol/base/clock.h"

enum { WAIT_MAX_MS = 1000, STOP_POLL_MS = 25 };

struct net {
    CURLM *multi;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t finished_cond; /* signalled when a call has finished */
    struct net_call *pending;     /* not yet with curl; guarded by lock */
    struct net_call *running;     /* used by the thread only */
    uint32_t calls;               /* guarded by lock */
    bool closing;                 /* guarded by lock */
};

/* ---- the thread ---- */

static void finish(struct net *n, struct net_call *c, CURLcode result)
{
    (void)curl_multi_remove_handle(n->multi, c->easy);
    for (struct net_call **at = &n->running; *at != NULL; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            break;
        }
    }
    c->result = result;
    (void)pthread_mutex_lock(&n->lock);
    c->finished = true;
    (void)pthread_cond_broadcast(&n->finished_cond);
    (void)pthread_mutex_unlock(&n->lock); /* the caller may free c from here on */
}

static bool take_pending(struct net *n)
{
    struct net_call *list;
    bool closing;

    (void)pthread_mutex_lock(&n->lock);
    list = n->pending;
    n->pending = NULL;
    closing = n->closing;
    (void)pthread_mutex_unlock(&n->lock);
    while (list != NULL) {
        struct net_call *c = list;
        list = c->next;
        c->next = n->running;
        n->running = c;
        if (curl_multi_add_handle(n->multi, c->easy) != CURLM_OK) {
            finish(n, c, CURLE_OUT_OF_MEMORY);
        }
    }
    return closing;
}

/* Ends calls that are silent, late or stopped. Returns the time until the next such end. */
static msec end_overdue(struct net *n, bool closing)
{
    msec now = clock_mono_ms();
    msec next = msec_add(now, WAIT_MAX_MS);
    struct net_call *following;

    for (struct net_call *c = n->running; c != NULL; c = following) {
        msec silent = msec_add(c->last_byte_at, c->spec->idle_ms);
        bool stop;
        following = c->next;
        (void)pthread_mutex_lock(&n->lock);
        stop = c->stop || closing;
        (void)pthread_mutex_unlock(&n->lock);
        if (stop || now >= silent || now >= c->spec->deadline) {
            c->end_reason = stop ? NET_STOPPED : now >= c->spec->deadline ? NET_LATE : NET_IDLE;
            finish(n, c, CURLE_ABORTED_BY_CALLBACK);
            continue;
        }
        next = silent < next ? silent : next;
        next = c->spec->deadline < next ? c->spec->deadline : next;
    }
    return next - now;
}

static void collect(struct net *n)
{
    CURLMsg *m;
    int left = 0;

    while ((m = curl_multi_info_read(n->multi, &left)) != NULL) {
        struct net_call *c = NULL;
        CURLcode result = m->data.result;
        if (m->msg == CURLMSG_DONE &&
            curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&c) == CURLE_OK) {
            finish(n, c, result);
        }
    }
}

static void *run(void *self)
{
    struct net *n = self;
    bool closing = false;

    while (!closing || n->running != NULL) {
        int active = 0;
        msec wait;
        closing = take_pending(n);
        (void)curl_multi_perform(n->multi, &active);
        collect(n);
        wait = end_overdue(n, closing);
        if (!closing) {
            (void)curl_multi_poll(n->multi, NULL, 0, (int)wait, NULL);
        }
    }
    return NULL;
}

/* ---- life ---- */

static enum bt_code start_thread(struct net *n, struct bt_error *err)
{
    sigset_t all;
    sigset_t before;
    int failed;

    /* The thread blocks all signals; the program's own threads handle them. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&n->thread, NULL, run, n);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0 ? BT_OK : err_errno(err, failed, "a thread for calls to models");
}

enum bt_code net_new(struct net **ret, struct bt_error *err)
{
    struct net *n = calloc(1, sizeof *n);
    pthread_condattr_t attr;
    enum bt_code code;

    if (n == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(n);
        return err_set(err, BT_NOMEM, "out of memory for calls to models");
    }
    (void)pthread_mutex_init(&n->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&n->finished_cond, &attr);
    (void)pthread_condattr_destroy(&attr);
    n->multi = curl_multi_init();
    code = n->multi == NULL ? err_set(err, BT_NOMEM, "out of memory for calls to models")
                            : start_thread(n, err);
    if (code != BT_OK) {
        (void)curl_multi_cleanup(n->multi);
        (void)pthread_cond_destroy(&n->finished_cond);
        (void)pthread_mutex_destroy(&n->lock);
        free(n);
        return code;
    }
    *ret = n;
    return BT_OK;
}

void net_free(struct net *n)
{
    if (n == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&n->lock);
    n->closing = true;
    (void)pthread_mutex_unlock(&n->lock);
    (void)curl_multi_wakeup(n->multi);
    (void)pthread_join(n->thread, NULL);
    (void)curl_multi_cleanup(n->multi);
    (void)pthread_cond_destroy(&n->finished_cond);
    (void)pthread_mutex_destroy(&n->lock);
    curl_global_cleanup();
    free(n);
}

/* ---- the caller ---- */

static void wait_a_little(struct net *n)
{
    uint64_t at = clock_mono_ns() + (uint64_t)STOP_POLL_MS * 1000000u;
    struct timespec until = {.tv_sec = (time_t)(at / 1000000000u),
                             .tv_nsec = (long)(at % 1000000000u)};

    (void)pthread_cond_timedwait(&n->finished_cond, &n->lock, &until);
}

/* Waits until the thread has released the call, whose memory is on the caller's stack. */
static void wait_finished(struct net *n, struct net_call *c)
{
    bool stop = false;

    (void)pthread_mutex_lock(&n->lock);
    while (!c->finished) {
        if (c->spec->stop == NULL || stop) {
            (void)pthread_cond_wait(&n->finished_cond, &n->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&n->lock);
        stop = c->spec->stop(c->spec->stop_self);
        (void)pthread_mutex_lock(&n->lock);
        if (stop) {
            c->stop = true;
            (void)curl_multi_wakeup(n->multi);
        } else if (!c->finished) {
            wait_a_little(n);
        }
    }
    n->calls--;
    (void)pthread_mutex_unlock(&n->lock);
}

enum bt_code net_post(struct net *n, const struct net_spec *spec, struct net_answer *ret,
                      struct bt_error *err)
{
    struct net_call c;
    enum bt_code code = net_call_init(&c, spec, ret, err);

    if (code != BT_OK) {
        return code;
    }
    (void)pthread_mutex_lock(&n->lock);
    if (n->calls >= NET_CALLS_MAX) {
        (void)pthread_mutex_unlock(&n->lock);
        net_call_done(&c);
        return err_set(err, BT_LIMIT, "%d calls to models are under way", NET_CALLS_MAX);
    }
    n->calls++;
    c.next = n->pending;
    n->pending = &c;
    (void)pthread_mutex_unlock(&n->lock);
    (void)curl_multi_wakeup(n->multi);
    wait_finished(n, &c);
    code = net_call_verdict(&c, err);
    net_call_done(&c);
    return code;
}
