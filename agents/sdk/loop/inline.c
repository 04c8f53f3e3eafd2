/* Steps of quick skills: they run on the thread that has the loop, between two looks at what came.
 */
#include <inttypes.h>

#include "agents/sdk/runtime.h"
#include "protocol/base/assert.h"
#include "protocol/base/log.h"

enum { CYCLE_NS = 5 * 1000 * 1000 }; /* then the loop looks at what came */

static struct quick *guard_of(struct runtime *rt, uint32_t slot)
{
    return &rt->quick.guards[rt->slots[slot].step->card_skill - rt->card->skills];
}

bool runtime_quick_put(struct runtime *rt, uint32_t slot)
{
    struct runtime_quick *q = &rt->quick;

    if (!rt->own_loop && (!rt->slots[slot].step->card_skill->quick ||
                          !quick_may_run(guard_of(rt, slot), clock_mono_ms()))) {
        return false;
    }
    ASSERT(q->n < AGENT_STATE_SLOTS);
    q->waiting[(q->at + q->n) % AGENT_STATE_SLOTS] = slot;
    q->n++;
    return true;
}

static void note(struct runtime *rt, uint32_t slot, uint64_t ns)
{
    struct quick *guard = guard_of(rt, slot);

    const msec now = clock_mono_ms();
    const bool silent = !quick_may_run(guard, now); /* only in a loop of the program's own */

    if (!quick_took(guard, ns, now) || silent) {
        return;
    }
    if (rt->own_loop) {
        log_warn("agent.slow",
                 "skill=%s has kept the program's loop for %" PRIu64 " us; heartbeats waited",
                 rt->slots[slot].step->skill, ns / 1000);
    } else {
        log_warn("agent.quick",
                 "skill=%s is not quick: %" PRIu64 " us on the loop; it runs on the workers for "
                 "%" PRIu64 " s",
                 rt->slots[slot].step->skill, ns / 1000, guard->pause_ms / 1000);
    }
}

/* There is no other thread: it runs here, however long it takes. */
static void run_own(struct runtime *rt, uint32_t slot, uint64_t begun, uint64_t *ret_now)
{
    struct bt_step *step = rt->slots[slot].step;

    step_run(step);
    *ret_now = clock_mono_ns();
    note(rt, slot, *ret_now - begun);
    if (!step->later) {
        runtime_finish(rt, slot);
    }
}

/* False: the loop was taken over meanwhile. */
static bool run_one(struct runtime *rt, uint32_t slot, uint64_t begun, uint64_t *ret_now)
{
    struct pool *pool = rt->pool;
    struct watch *watch = rt->quick.watch;
    struct bt_step *step = rt->slots[slot].step;
    const uint64_t run = quick_may_run(guard_of(rt, slot), begun / 1000000)
                             ? watch_begin(watch, begun)
                             : 0; /* demoted after it came */

    *ret_now = begun;
    if (run == 0) {
        pool_submit(pool, slot);
        return true;
    }
    step_run(step);
    if (!watch_end(watch, run)) {
        pool_notify(pool, POOL_FINISHED, slot);
        return false;
    }
    *ret_now = clock_mono_ns();
    note(rt, slot, *ret_now - begun);
    runtime_finish(rt, slot);
    return true;
}

bool runtime_quick_run(struct runtime *rt)
{
    struct runtime_quick *q = &rt->quick;
    const uint64_t begun = q->n > 0 ? clock_mono_ns() : 0;
    uint64_t now = begun;

    while (q->n > 0 && !rt->ended && now - begun < CYCLE_NS) {
        const uint32_t slot = q->waiting[q->at];

        q->at = (q->at + 1) % AGENT_STATE_SLOTS;
        q->n--;
        q->running = slot;
        if (rt->own_loop) {
            run_own(rt, slot, now, &now);
        } else if (!run_one(rt, slot, now, &now)) {
            return false;
        }
    }
    pool_wake(rt->pool);
    return true;
}

void runtime_quick_taken(struct runtime *rt)
{
    note(rt, rt->quick.running, WATCH_NS);
}

/* ---- in a loop of the program's own ---- */

void runtime_later_tell(struct runtime *rt)
{
    for (uint32_t i = 0; i < AGENT_STATE_SLOTS; i++) {
        if (rt->slots[i].step != NULL) {
            step_tell_cancelled(rt->slots[i].step);
        }
    }
}

msec runtime_later_deadline(const struct runtime *rt)
{
    msec at = MSEC_NEVER;

    for (uint32_t i = 0; i < AGENT_STATE_SLOTS; i++) {
        const struct bt_step *step = rt->slots[i].step;
        if (step != NULL && step->later && !step->told && step->deadline < at) {
            at = step->deadline;
        }
    }
    return at;
}
