/* A Treiber stack (IBM RJ 5118, 1986). The consumer takes the whole stack, which excludes ABA, and
 * reverses it to FIFO. */
#include <errno.h>
#include <unistd.h>

#include "protocol/base/assert.h"
#include "protocol/link/link_internal.h"

static void wake(int fd)
{
    const uint64_t one = 1;
    ssize_t n = 0;
    do {
        n = write(fd, &one, sizeof one);
    } while (n < 0 && errno == EINTR);
    /* EAGAIN would mean 2^64 - 2 unread wake-ups; the fd is readable then. */
    ASSERT(n == (ssize_t)sizeof one || errno == EAGAIN);
}

void inbox_push(struct inbox *in, struct inbox_node *n)
{
    if (atomic_exchange(&n->queued, true)) {
        return; /* it is already queued; the owner will read the newest state */
    }
    const int fd = in->fd;
    struct inbox_node *head = atomic_load(&in->head);
    do {
        n->next = head;
    } while (!atomic_compare_exchange_weak(&in->head, &head, n));
    if (head == NULL) {
        wake(fd);
    }
}

static bool take_all(struct inbox *in)
{
    struct inbox_node *n = atomic_exchange(&in->head, NULL);
    while (n != NULL) {
        struct inbox_node *next = n->next;
        n->next = in->taken;
        in->taken = n;
        n = next;
    }
    return in->taken != NULL;
}

struct inbox_node *inbox_take(struct inbox *in)
{
    if (in->taken == NULL && !take_all(in)) {
        uint64_t count = 0;
        const ssize_t got = read(in->fd, &count, sizeof count);
        /* This read may have consumed the wake-up of a push in between: write it again. */
        if (!take_all(in)) {
            return NULL;
        }
        if (got > 0) {
            wake(in->fd);
        }
    }
    struct inbox_node *n = in->taken;
    in->taken = n->next;
    n->next = NULL;
    /* Clear the flag before reading the state: any later change queues the node again. */
    (void)atomic_exchange(&n->queued, false);
    return n;
}
