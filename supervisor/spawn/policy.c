#include "supervisor/spawn/policy.h"

#include <stddef.h>

#include "protocol/base/assert.h"

/* A lost KILL would leave a child STOPPING for ever; a second one is harmless. */
enum { KILL_AGAIN_MS = 1000 };

#define TO(state) (1u << POLICY_##state)

/* All transitions: the name of each state and the states that may follow. */
static const struct {
    const char *name;
    unsigned next;
} states[] = {
    [POLICY_STOPPED] = {"stopped", TO(STARTING)},
    [POLICY_STARTING] = {"starting",
                         TO(UP) | TO(BACKOFF) | TO(STOPPING) | TO(STOPPED) | TO(FAILED) | TO(HELD)},
    [POLICY_UP] = {"up",
                   TO(STARTING) | TO(BACKOFF) | TO(STOPPING) | TO(STOPPED) | TO(FAILED) | TO(HELD)},
    [POLICY_BACKOFF] = {"backoff", TO(STARTING) | TO(STOPPED)},
    [POLICY_STOPPING] = {"stopping",
                         TO(STOPPED) | TO(STARTING) | TO(BACKOFF) | TO(FAILED) | TO(HELD)},
    [POLICY_FAILED] = {"failed", TO(STARTING)},
    [POLICY_HELD] = {"held", TO(STARTING) | TO(STOPPED)},
};
_Static_assert(sizeof states / sizeof states[0] == POLICY_STATE_COUNT, "a row per state");

#undef TO

static void move(struct policy_child *child, enum policy_state to, msec due)
{
    ASSERT((states[child->state].next & (1u << to)) != 0);
    child->state = to;
    child->due = due;
}

static void emit(struct policy_commands *out, enum policy_command command)
{
    ASSERT(out->n < POLICY_COMMANDS_MAX);
    out->at[out->n++] = command;
}

static void spawn(struct policy_child *child, msec now, struct policy_commands *out)
{
    move(child, POLICY_STARTING, msec_add(now, child->set.start_deadline_ms));
    child->spawns++;
    child->lost = false;
    emit(out, POLICY_SPAWN);
}

/* splitmix64: 64 bits of which each depends on all of the input. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

msec policy_backoff(msec min, msec max, uint32_t streak, uint32_t jitter_permille, uint64_t seed,
                    uint64_t turn)
{
    msec wait = min;

    for (uint32_t i = 1; i < streak && wait < max; i++) {
        wait = msec_add(wait, wait);
    }
    wait = wait < max ? wait : max;
    const msec share = wait / 1000 * jitter_permille + wait % 1000 * jitter_permille / 1000;
    return share == 0 ? wait : wait - mix(seed ^ mix(turn)) % (share + 1);
}

static msec backoff_ms(const struct policy_child *child)
{
    const struct policy_settings *set = &child->set;

    return policy_backoff(set->backoff_min_ms, set->backoff_max_ms, child->streak,
                          set->jitter_permille, set->seed, child->spawns);
}

bool policy_note_crash(msec *ring, uint32_t *crashes, uint32_t intensity, msec period_ms, msec now)
{
    ring[*crashes % intensity] = now;
    (*crashes)++;
    return *crashes >= intensity && now - ring[*crashes % intensity] < period_ms;
}

static bool too_often(struct policy_child *child, msec now)
{
    return policy_note_crash(child->crash_at, &child->crashes, child->set.intensity,
                             child->set.period_ms, now);
}

static void crashed(struct policy_child *child, msec now, struct policy_commands *out)
{
    if (child->set.restart == POLICY_TEMPORARY) {
        move(child, POLICY_STOPPED, MSEC_NEVER);
        emit(out, POLICY_ENDED);
        return;
    }
    if (child->set.grouped) {
        move(child, POLICY_HELD, MSEC_NEVER);
        emit(out, POLICY_CRASHED);
        return;
    }
    child->streak++;
    if (too_often(child, now)) {
        move(child, POLICY_FAILED, MSEC_NEVER);
        emit(out, POLICY_GAVE_UP);
    } else {
        move(child, POLICY_BACKOFF, msec_add(now, backoff_ms(child)));
    }
}

/* Forgets the crashes before a time in UP that was long enough. */
static void forgive(struct policy_child *child, msec now)
{
    if (child->state == POLICY_UP && now >= msec_add(child->up_since, child->set.stable_ms)) {
        child->streak = 0;
    }
}

static void ended(struct policy_child *child, const struct policy_event *ev,
                  struct policy_commands *out)
{
    forgive(child, ev->now);
    if (child->set.restart == POLICY_TRANSIENT && ev->clean) {
        move(child, POLICY_STOPPED, MSEC_NEVER);
        emit(out, POLICY_ENDED);
    } else {
        /* A permanent child that exits with 0 counts too: a loop of clean exits costs as much as a
         * crash loop. */
        crashed(child, ev->now, out);
    }
}

static void kill_tree(struct policy_child *child, msec now, struct policy_commands *out)
{
    if (child->state == POLICY_STOPPING) {
        child->due = msec_add(now, KILL_AGAIN_MS);
        child->drains = false;
    } else {
        move(child, POLICY_STOPPING, msec_add(now, KILL_AGAIN_MS));
        child->then = POLICY_THEN_CRASH;
    }
    emit(out, POLICY_KILL);
}

static void do_start(struct policy_child *child, const struct policy_event *ev,
                     struct policy_commands *out)
{
    if (child->state == POLICY_FAILED || child->state == POLICY_STOPPED) {
        child->crashes = 0;
        child->streak = 0;
    }
    spawn(child, ev->now, out);
}

static void do_adopt(struct policy_child *child, const struct policy_event *ev,
                     struct policy_commands *out)
{
    (void)out;
    move(child, POLICY_STARTING, msec_add(ev->now, child->set.start_deadline_ms));
    child->spawns++;
}

static void do_note_spawned(struct policy_child *child, const struct policy_event *ev,
                            struct policy_commands *out)
{
    (void)ev;
    if (child->spawns > 1) {
        emit(out, POLICY_RESTARTED);
    }
}

static void do_up(struct policy_child *child, const struct policy_event *ev,
                  struct policy_commands *out)
{
    move(child, POLICY_UP, MSEC_NEVER);
    child->up_since = ev->now;
    emit(out, POLICY_CAME_UP);
}

static void do_lost(struct policy_child *child, const struct policy_event *ev,
                    struct policy_commands *out)
{
    (void)out;
    forgive(child, ev->now);
    move(child, POLICY_STARTING, msec_add(ev->now, ev->grace_ms));
    child->lost = true;
}

static void do_stop(struct policy_child *child, const struct policy_event *ev,
                    struct policy_commands *out)
{
    msec grace = ev->grace_ms != 0 ? ev->grace_ms : child->set.grace_ms;

    move(child, POLICY_STOPPING, msec_add(ev->now, grace));
    child->then = POLICY_THEN_REST;
    child->drains = false;
    emit(out, POLICY_TERM);
}

static void do_drain(struct policy_child *child, const struct policy_event *ev,
                     struct policy_commands *out)
{
    (void)out;
    move(child, POLICY_STOPPING, msec_add(ev->now, ev->grace_ms));
    child->then = POLICY_THEN_REST;
    child->drains = true;
}

/* It had its time to end its work: now it is told to end. */
static void drained(struct policy_child *child, msec now, msec grace, struct policy_commands *out)
{
    child->drains = false;
    child->due = msec_add(now, grace != 0 ? grace : child->set.grace_ms);
    emit(out, POLICY_TERM);
}

/* Already stopping: only the meaning of the end changes, and a shorter grace applies. */
static void do_stop_for_good(struct policy_child *child, const struct policy_event *ev,
                             struct policy_commands *out)
{
    msec due = ev->grace_ms != 0 ? msec_add(ev->now, ev->grace_ms) : MSEC_NEVER;

    child->then = POLICY_THEN_REST;
    if (child->drains) {
        drained(child, ev->now, ev->grace_ms, out);
    } else if (due < child->due) {
        child->due = due;
    }
}

static void do_start_after(struct policy_child *child, const struct policy_event *ev,
                           struct policy_commands *out)
{
    (void)ev;
    (void)out;
    child->then = POLICY_THEN_START;
}

static void do_rest(struct policy_child *child, const struct policy_event *ev,
                    struct policy_commands *out)
{
    (void)ev;
    (void)out;
    move(child, POLICY_STOPPED, MSEC_NEVER);
}

static void do_kill(struct policy_child *child, const struct policy_event *ev,
                    struct policy_commands *out)
{
    kill_tree(child, ev->now, out);
}

static void do_after_stop(struct policy_child *child, const struct policy_event *ev,
                          struct policy_commands *out)
{
    switch (child->then) {
    case POLICY_THEN_REST:
        move(child, POLICY_STOPPED, MSEC_NEVER);
        break;
    case POLICY_THEN_START:
        child->crashes = 0;
        child->streak = 0;
        spawn(child, ev->now, out);
        break;
    case POLICY_THEN_CRASH:
        crashed(child, ev->now, out);
        break;
    }
}

static void do_start_when_due(struct policy_child *child, const struct policy_event *ev,
                              struct policy_commands *out)
{
    if (ev->now >= child->due) {
        spawn(child, ev->now, out);
    }
}

/* STARTING: too late to register. STOPPING: the time to drain, or the grace is over. */
static void do_kill_when_due(struct policy_child *child, const struct policy_event *ev,
                             struct policy_commands *out)
{
    if (ev->now < child->due) {
        return;
    }
    if (child->state == POLICY_STOPPING && child->drains) {
        drained(child, ev->now, 0, out);
    } else {
        kill_tree(child, ev->now, out);
    }
}

typedef void (*action)(struct policy_child *child, const struct policy_event *ev,
                       struct policy_commands *out);

/* Events that are not listed change nothing. */
static const action actions[POLICY_STATE_COUNT][POLICY_EVENT_COUNT] = {
    [POLICY_STOPPED] = {[POLICY_ON_START] = do_start, [POLICY_ON_ADOPTED] = do_adopt},
    [POLICY_STARTING] = {[POLICY_ON_SPAWNED] = do_note_spawned,
                         [POLICY_ON_REGISTERED] = do_up,
                         [POLICY_ON_EXITED] = ended,
                         [POLICY_ON_DRAIN] = do_drain,
                         [POLICY_ON_STOP] = do_stop,
                         [POLICY_ON_KILL] = do_kill,
                         [POLICY_ON_TICK] = do_kill_when_due},
    [POLICY_UP] = {[POLICY_ON_SPAWNED] = do_note_spawned,
                   [POLICY_ON_EXITED] = ended,
                   [POLICY_ON_LOST] = do_lost,
                   [POLICY_ON_DRAIN] = do_drain,
                   [POLICY_ON_STOP] = do_stop,
                   [POLICY_ON_KILL] = do_kill},
    [POLICY_BACKOFF] = {[POLICY_ON_START] = do_start,
                        [POLICY_ON_DRAIN] = do_rest,
                        [POLICY_ON_STOP] = do_rest,
                        [POLICY_ON_TICK] = do_start_when_due},
    [POLICY_STOPPING] = {[POLICY_ON_START] = do_start_after,
                         [POLICY_ON_EXITED] = do_after_stop,
                         [POLICY_ON_STOP] = do_stop_for_good,
                         [POLICY_ON_KILL] = do_kill,
                         [POLICY_ON_TICK] = do_kill_when_due},
    [POLICY_FAILED] = {[POLICY_ON_START] = do_start},
    [POLICY_HELD] =
        {[POLICY_ON_START] = do_start, [POLICY_ON_DRAIN] = do_rest, [POLICY_ON_STOP] = do_rest},
};

void policy_handle(struct policy_child *child, const struct policy_event *ev,
                   struct policy_commands *out)
{
    action act;

    ASSERT(child->state < POLICY_STATE_COUNT && ev->type < POLICY_EVENT_COUNT);
    *out = (struct policy_commands){0};
    act = actions[child->state][ev->type];
    if (act != NULL) {
        act(child, ev, out);
    }
}

msec policy_deadline(const struct policy_child *child)
{
    return child->due;
}

bool policy_is_live(const struct policy_child *child)
{
    return child->state == POLICY_STARTING || child->state == POLICY_UP ||
           child->state == POLICY_STOPPING;
}

const char *policy_state_name(enum policy_state state)
{
    return state < POLICY_STATE_COUNT ? states[state].name : "?";
}

struct policy_settings policy_defaults(void)
{
    return (struct policy_settings){
        .restart = POLICY_PERMANENT,
        .intensity = 5,
        .period_ms = 30000,
        .backoff_min_ms = 100,
        .backoff_max_ms = 5000,
        .stable_ms = 30000,
        .grace_ms = 5000,
        .start_deadline_ms = 10000,
    };
}

void policy_change(struct policy_child *child, const struct policy_settings *set)
{
    const bool grouped = child->set.grouped;
    const uint32_t intensity = child->set.intensity;

    child->set = *set;
    child->set.grouped = grouped;
    if (child->set.intensity < 1) {
        child->set.intensity = 1;
    }
    if (child->set.intensity > POLICY_INTENSITY_MAX) {
        child->set.intensity = POLICY_INTENSITY_MAX;
    }
    if (child->set.backoff_min_ms < 1) {
        child->set.backoff_min_ms = 1;
    }
    if (child->set.backoff_max_ms < child->set.backoff_min_ms) {
        child->set.backoff_max_ms = child->set.backoff_min_ms;
    }
    if (child->set.intensity != intensity) {
        child->crashes = 0; /* the ring has another length */
    }
}

void policy_init(struct policy_child *child, const struct policy_settings *set)
{
    *child = (struct policy_child){.state = POLICY_STOPPED, .due = MSEC_NEVER};
    child->set.grouped = set->grouped;
    policy_change(child, set);
}
