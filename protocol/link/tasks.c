/*
 * nng runs completions on two threads for each processor. Each that follows from another wakes one
 * more of them, and all fight for one lock (N30). Ours only change a word and push a node, so one
 * thread is enough. nng 1.5.2 cannot be told so at run time: all threads but one are given a
 * completion that rests.
 */
#include <nng/nng.h>

#include <pthread.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/link/link_internal.h"

enum { THREADS_MAX = 16 /* NNG_MAX_TASKQ_THREADS */, LOOK_MS = 1000 };

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t over;
    bool rests;      /* the completions that have begun stay */
    atomic_bool ran; /* a completion that came after them */
    atomic_bool begun;
    struct helper_task look;
    nng_aio *aios[THREADS_MAX];
    nng_aio *probe;
} tasks = {.mutex = PTHREAD_MUTEX_INITIALIZER, .over = PTHREAD_COND_INITIALIZER};

static void rest(void *unused)
{
    (void)unused;
    (void)pthread_mutex_lock(&tasks.mutex);
    while (tasks.rests) {
        (void)pthread_cond_wait(&tasks.over, &tasks.mutex);
    }
    (void)pthread_mutex_unlock(&tasks.mutex);
}

static void note(void *unused)
{
    (void)unused;
    atomic_store(&tasks.ran, true);
}

/* This nng has fewer threads than its source says: none is left, so all go on. */
static msec look(struct helper_task *unused)
{
    (void)unused;
    if (!atomic_load(&tasks.ran)) {
        log_warn("link.tasks", "nng has other threads than expected; all of them run completions");
        (void)pthread_mutex_lock(&tasks.mutex);
        tasks.rests = false;
        (void)pthread_cond_broadcast(&tasks.over);
        (void)pthread_mutex_unlock(&tasks.mutex);
    }
    return MSEC_NEVER;
}

/* The next free thread runs `completion`, after those before it. */
static void give(nng_aio **aio, void (*completion)(void *))
{
    if ((*aio != NULL || nng_aio_alloc(aio, completion, NULL) == 0) && nng_aio_begin(*aio)) {
        nng_aio_finish(*aio, 0);
    }
}

void tasks_rest(uint32_t n, msec look_ms)
{
    (void)pthread_mutex_lock(&tasks.mutex);
    tasks.rests = true;
    (void)pthread_mutex_unlock(&tasks.mutex);
    atomic_store(&tasks.ran, false);
    for (uint32_t i = 0; i < n && i < THREADS_MAX; i++) {
        give(&tasks.aios[i], rest);
    }
    give(&tasks.probe, note);
    tasks.look.run = look;
    helper_submit(&tasks.look, clock_mono_ms() + look_ms);
}

void link_one_task_thread(void)
{
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN); /* as nng counts them (taskq.c) */
    struct bt_error err;

    if (atomic_exchange(&tasks.begun, true) || cpus < 1) {
        return;
    }
    if (helper_start(&err) != BT_OK) {
        log_warn("link.tasks", "%s", err.msg);
        return;
    }
    tasks_rest((uint32_t)(cpus * 2 < THREADS_MAX ? cpus * 2 : THREADS_MAX) - 1, LOOK_MS);
}
