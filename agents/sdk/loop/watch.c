#include "agents/sdk/loop/watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "protocol/base/clock.h"

enum { WATCHER_STACK = 1024 * 1024, SECOND_NS = 1000 * 1000 * 1000 };

struct watch {
    int timer;
    atomic_bool watched;      /* a thread is in watch_stay */
    atomic_bool armed;        /* the timer runs, or the watcher has not looked since it ended */
    _Atomic uint64_t running; /* the number of the run; 0 = the leader is in no handler */
    _Atomic uint64_t since;   /* clock_mono_ns at its begin */
    uint64_t runs;            /* of the leader */
    void (*lead)(void *self);
    void *self;
};

static void arm(struct watch *w, uint64_t ns)
{
    const struct itimerspec at = {
        .it_value = {.tv_sec = (time_t)(ns / SECOND_NS), .tv_nsec = (long)(ns % SECOND_NS)}};

    (void)timerfd_settime(w->timer, 0, &at, NULL);
}

uint64_t watch_begin(struct watch *w, uint64_t now)
{
    if (!atomic_load(&w->watched)) {
        return 0;
    }
    w->runs++;
    atomic_store(&w->since, now);
    atomic_store(&w->running, w->runs);
    if (!atomic_exchange(&w->armed, true)) {
        arm(w, WATCH_NS);
    }
    return w->runs;
}

bool watch_end(struct watch *w, uint64_t run)
{
    return atomic_compare_exchange_strong(&w->running, &run, 0);
}

/* The timer has ended. True: the loop is the caller's. */
static bool takes(struct watch *w)
{
    uint64_t run, since, lasted;

    atomic_store(&w->armed, false); /* before it looks: a run that begins now arms it again */
    run = atomic_load(&w->running);
    if (run == 0) {
        return false;
    }
    since = atomic_load(&w->since); /* of this run, or of a later one that has just begun */
    lasted = clock_mono_ns();
    lasted = lasted > since ? lasted - since : 0;
    if (lasted >= WATCH_NS) {
        if (atomic_compare_exchange_strong(&w->running, &run, 0)) {
            return true;
        }
        lasted = 0; /* it has ended; the next one may have begun */
    }
    if (!atomic_exchange(&w->armed, true)) {
        arm(w, WATCH_NS - lasted);
    }
    return false;
}

void watch_stay(struct watch *w)
{
    uint64_t count;

    atomic_store(&w->watched, true);
    do {
        (void)!read(w->timer, &count, sizeof count);
    } while (!takes(w));
    atomic_store(&w->watched, false);
}

static void *watcher(void *arg)
{
    struct watch *w = arg;

    watch_stay(w);
    w->lead(w->self);
    return NULL;
}

enum bt_code watch_start(void (*lead)(void *self), void *self, struct watch **ret,
                         struct bt_error *err)
{
    struct watch *w = calloc(1, sizeof *w);
    pthread_attr_t attr;
    pthread_t thread;
    int rc;

    if (w == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the watching thread");
    }
    w->lead = lead;
    w->self = self;
    w->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    if (w->timer < 0) {
        free(w);
        return err_errno(err, errno, "timerfd_create");
    }
    rc = pthread_attr_init(&attr);
    if (rc == 0) {
        (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        (void)pthread_attr_setstacksize(&attr, WATCHER_STACK);
        rc = pthread_create(&thread, &attr, watcher, w);
        (void)pthread_attr_destroy(&attr);
    }
    if (rc != 0) {
        (void)close(w->timer);
        free(w);
        return err_errno(err, rc, "starting the watching thread");
    }
    *ret = w;
    return BT_OK;
}
