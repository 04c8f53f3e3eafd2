/*
 * One thread per process for calls that may block: closing sockets, probing ipc listeners, the
 * canary. When nng wedges (N1), a close never returns, this thread stops, and the canary's age
 * grows.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "protocol/base/clock.h"
#include "protocol/link/link_internal.h"

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t wake;  /* the tasks changed */
    pthread_cond_t ended; /* a counter was decremented */
    struct helper_task *tasks;
    struct helper_task *batch; /* due, not yet run */
    bool started;
} helper = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void lock(void)
{
    (void)pthread_mutex_lock(&helper.mutex);
}

static void unlock(void)
{
    (void)pthread_mutex_unlock(&helper.mutex);
}

static struct timespec timespec_of(msec at)
{
    return (struct timespec){.tv_sec = (time_t)(at / 1000),
                             .tv_nsec = (long)(at % 1000) * 1000000L};
}

/* Moves the due tasks to the batch and returns when the next of the others is due, in one pass. */
static msec collect_due(msec now)
{
    msec next = MSEC_NEVER;
    struct helper_task **j = &helper.tasks;
    while (*j != NULL) {
        struct helper_task *task = *j;
        if (task->due <= now) {
            *j = task->next;
            task->next = helper.batch;
            helper.batch = task;
        } else {
            next = task->due < next ? task->due : next;
            j = &task->next;
        }
    }
    return next;
}

static void run_batch(void)
{
    while (helper.batch != NULL) {
        struct helper_task *task = helper.batch;
        helper.batch = task->next;
        unlock();
        const msec again = task->run(task);
        lock();
        if (again != MSEC_NEVER) {
            task->due = again;
            task->next = helper.tasks;
            helper.tasks = task;
        }
    }
}

static void *helper_main(void *unused)
{
    (void)unused;
    lock();
    for (;;) {
        const msec next = collect_due(clock_mono_ms());
        if (helper.batch != NULL) {
            run_batch();
        } else if (next == MSEC_NEVER) {
            (void)pthread_cond_wait(&helper.wake, &helper.mutex);
        } else {
            const struct timespec until = timespec_of(next);
            (void)pthread_cond_timedwait(&helper.wake, &helper.mutex, &until);
        }
    }
    return NULL;
}

/* The thread blocks every signal, because signals belong to the owner's signalfd. */
static int start_thread(void)
{
    sigset_t all;
    sigset_t before;
    pthread_t thread;
    pthread_condattr_t attr;
    (void)sigfillset(&all);
    int rv = pthread_condattr_init(&attr);
    if (rv != 0) {
        return rv;
    }
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&helper.wake, &attr);
    (void)pthread_cond_init(&helper.ended, &attr);
    (void)pthread_condattr_destroy(&attr);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    rv = pthread_create(&thread, NULL, helper_main, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rv == 0) {
        (void)pthread_detach(thread);
    }
    return rv;
}

enum bt_code helper_start(struct bt_error *err)
{
    int rv = 0;
    lock();
    if (!helper.started) {
        rv = start_thread();
        helper.started = rv == 0;
    }
    unlock();
    if (rv != 0) {
        return err_errno(err, rv, "the helper thread of the link room cannot start");
    }
    return BT_OK;
}

void helper_submit(struct helper_task *task, msec due)
{
    lock();
    task->due = due;
    task->next = helper.tasks;
    helper.tasks = task;
    (void)pthread_cond_signal(&helper.wake);
    unlock();
}

static bool remove_from(struct helper_task **list, const struct helper_task *task)
{
    for (struct helper_task **j = list; *j != NULL; j = &(*j)->next) {
        if (*j == task) {
            *j = task->next;
            return true;
        }
    }
    return false;
}

void helper_cancel(struct helper_task *task)
{
    lock();
    if (!remove_from(&helper.tasks, task)) {
        (void)remove_from(&helper.batch, task);
    }
    unlock();
}

void helper_counter_add(uint32_t *counter, int by)
{
    lock();
    *counter = (uint32_t)((int64_t)*counter + by);
    (void)pthread_cond_broadcast(&helper.ended);
    unlock();
}

bool helper_wait_zero(const uint32_t *counter, msec timeout_ms)
{
    const struct timespec until = timespec_of(msec_add(clock_mono_ms(), timeout_ms));
    int rv = 0;
    lock();
    while (*counter != 0 && rv != ETIMEDOUT) {
        rv = pthread_cond_timedwait(&helper.ended, &helper.mutex, &until);
    }
    const bool zero = *counter == 0;
    unlock();
    return zero;
}
