#include "agents/sdk/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "protocol/base/assert.h"

enum { WORDS = (AGENT_STATE_SLOTS + 63) / 64, WORKER_STACK = 1024 * 1024 };

struct pool {
    pthread_mutex_t lock; /* guards queue, at, n, idle */
    pthread_cond_t more;
    uint32_t queue[AGENT_STATE_SLOTS];
    uint32_t at, n;
    uint32_t idle;                         /* workers that wait */
    uint32_t submitted[AGENT_STATE_SLOTS]; /* of the loop: not in the queue yet */
    uint32_t submitted_n;
    atomic_bool woken; /* the loop has not drained since it was */
    _Atomic uint64_t marks[POOL_EVENT_COUNT][WORDS];
    int fd;
    void (*run_slot)(void *self, uint32_t slot);
    void *self;
};

static void *work(void *arg)
{
    struct pool *p = arg;

    for (;;) {
        uint32_t slot;
        bool more;
        (void)pthread_mutex_lock(&p->lock);
        p->idle++;
        while (p->n == 0) {
            (void)pthread_cond_wait(&p->more, &p->lock);
        }
        p->idle--;
        slot = p->queue[p->at];
        p->at = (p->at + 1) % AGENT_STATE_SLOTS;
        p->n--;
        more = p->n > 0 && p->idle > 0;
        (void)pthread_mutex_unlock(&p->lock);
        if (more) {
            (void)pthread_cond_signal(&p->more); /* each wakes the next, while there is work */
        }
        p->run_slot(p->self, slot);
        pool_notify(p, POOL_FINISHED, slot);
    }
    return NULL;
}

static enum bt_code start_workers(struct pool *p, uint32_t n, struct bt_error *err)
{
    pthread_attr_t attr;
    int rc = pthread_attr_init(&attr);

    if (rc == 0) {
        rc = pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    }
    if (rc == 0) {
        rc = pthread_attr_setstacksize(&attr, WORKER_STACK);
    }
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        pthread_t thread;
        rc = pthread_create(&thread, &attr, work, p);
    }
    (void)pthread_attr_destroy(&attr);
    return rc == 0 ? BT_OK : err_errno(err, rc, "starting %u worker threads", n);
}

enum bt_code pool_start(uint32_t n, void (*run_slot)(void *self, uint32_t slot), void *self,
                        struct pool **ret, struct bt_error *err)
{
    struct pool *p = calloc(1, sizeof *p);
    enum bt_code code;

    if (p == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the workers");
    }
    p->run_slot = run_slot;
    p->self = self;
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->more, NULL);
    p->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    code = p->fd < 0 ? err_errno(err, errno, "eventfd") : start_workers(p, n, err);
    if (code != BT_OK) {
        /* Workers that did start wait on p until the process exits, which the caller does now. */
        return code;
    }
    *ret = p;
    return BT_OK;
}

int pool_fd(const struct pool *p)
{
    return p->fd;
}

void pool_submit(struct pool *p, uint32_t slot)
{
    ASSERT(p->submitted_n < AGENT_STATE_SLOTS);
    p->submitted[p->submitted_n++] = slot;
}

void pool_wake(struct pool *p)
{
    if (p->submitted_n == 0) {
        return;
    }
    (void)pthread_mutex_lock(&p->lock);
    for (uint32_t i = 0; i < p->submitted_n; i++) {
        ASSERT(p->n < AGENT_STATE_SLOTS);
        p->queue[(p->at + p->n) % AGENT_STATE_SLOTS] = p->submitted[i];
        p->n++;
    }
    p->submitted_n = 0;
    (void)pthread_mutex_unlock(&p->lock);
    (void)pthread_cond_signal(&p->more);
}

void pool_notify(struct pool *p, enum pool_event what, uint32_t slot)
{
    const uint64_t one = 1;

    (void)atomic_fetch_or(&p->marks[what][slot / 64], 1ull << (slot % 64));
    if (!atomic_exchange(&p->woken, true)) {
        (void)!write(p->fd, &one, sizeof one);
    }
}

uint32_t pool_take(struct pool *p, enum pool_event what)
{
    for (uint32_t word = 0; word < WORDS; word++) {
        uint64_t bits = atomic_load(&p->marks[what][word]);
        if (bits != 0) {
            uint32_t bit = (uint32_t)__builtin_ctzll(bits);
            (void)atomic_fetch_and(&p->marks[what][word], ~(1ull << bit));
            return word * 64 + bit;
        }
    }
    return AGENT_STATE_NO_SLOT;
}

void pool_drain(struct pool *p)
{
    uint64_t count;

    (void)!read(p->fd, &count, sizeof count);
    (void)atomic_exchange(&p->woken, false); /* before the notifications are taken */
}
