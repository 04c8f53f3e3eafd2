/*
 * Detects a wedged nng. The helper thread opens, connects and closes a pair of inproc sockets.
 * Closing needs nng's only reaper thread. When that is wedged (N1), the close never returns and the
 * age grows.
 */
#include <nng/nng.h>

#include <nng/protocol/pair1/pair.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/link/link_internal.h"

static struct {
    struct helper_task task;
    msec period;
    atomic_bool started;
    _Atomic msec healthy; /* the end of the last successful round */
} canary;

static int canary_round(void)
{
    static const char url[] = "inproc://baton-canary";
    nng_socket a = NNG_SOCKET_INITIALIZER;
    nng_socket b = NNG_SOCKET_INITIALIZER;
    int rv = nng_pair1_open(&a);
    rv = rv != 0 ? rv : nng_pair1_open(&b);
    rv = rv != 0 ? rv : nng_listen(a, url, NULL, 0);
    rv = rv != 0 ? rv : nng_dial(b, url, NULL, 0);
    (void)nng_close(b);
    (void)nng_close(a);
    return rv;
}

static msec canary_run(struct helper_task *task)
{
    (void)task;
    const int rv = canary_round();
    const msec now = clock_mono_ms();
    if (rv == 0) {
        atomic_store(&canary.healthy, now);
    } else {
        log_warn("link.canary", "error=\"%s\"", nng_strerror(rv));
    }
    return now + canary.period;
}

enum bt_code link_canary_start(msec period_ms, struct bt_error *err)
{
    const enum bt_code code = helper_start(err);
    if (code != BT_OK || atomic_exchange(&canary.started, true)) {
        return code;
    }
    canary.period = period_ms;
    canary.task.run = canary_run;
    atomic_store(&canary.healthy, clock_mono_ms());
    helper_submit(&canary.task, 0);
    return BT_OK;
}

msec link_canary_age(void)
{
    const msec healthy = atomic_load(&canary.healthy);
    return atomic_load(&canary.started) ? clock_mono_ms() - healthy : 0;
}
