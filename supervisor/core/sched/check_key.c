/* The invariants of concurrency keys between two events. Everything is counted again. */
#include "supervisor/core/sched/fair.h"

#define CHECK(cond, why)                                                                           \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            *ret_why = (why);                                                                      \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

struct tally {
    uint32_t held, runs, steps;
};

static bool count(const struct core *c, const struct core_key *key, struct tally *ret,
                  const char **ret_why)
{
    for (uint32_t i = 0; i < c->config.runs_max; i++) {
        const struct core_run *entry = &c->runs[i];
        if (entry->run == NULL || entry->plan->keys.n == 0) {
            continue;
        }
        const bool own = core_key_of_run(c, entry) == key;
        const bool begun = entry->run->status != PLAN_PENDING;
        const bool waits = (entry->run->paused & 1u << PAUSE_KEY) != 0;
        CHECK(!own || (entry->key_list == KEY_LIST_HOLDS) == begun,
              "a plan that has begun without its key, or has one too early");
        CHECK(!own || !waits || (entry->key_list == KEY_LIST_WAITS) ==
                                    ((entry->run->paused & 1u << PAUSE_REQUESTED) == 0),
              "a plan that nobody gives its key, or one on hold that could get it");
        ret->held += own && begun ? 1 : 0;
        ret->runs += own && entry->key_list == KEY_LIST_WAITS ? 1 : 0;
        for (uint32_t s = 0; s < entry->run->n_steps; s++) {
            const struct run_step *state = &entry->run->steps[s];
            const bool of = core_key_of_step(c, entry, s) == key;
            CHECK(!of || entry->sched[s].keyed ==
                             (state->attempt > 0 && run_step_is_active(state->status)),
                  "a step with an attempt has no key, or one without has it");
            ret->held += of && entry->sched[s].keyed ? 1 : 0;
            ret->steps += of && entry->sched[s].list == LIST_KEY ? 1 : 0;
        }
    }
    return true;
}

static bool key_holds(const struct core *c, uint32_t at, const char **ret_why)
{
    const struct core_key *key = &c->keys[at];
    const msec armed = c->opens.keys[c->config.registry.agents + at];
    const bool place = key->max == 0 || key->held < key->max;
    struct tally n = {0};
    if (!count(c, key, &n, ret_why)) {
        return false;
    }
    CHECK(n.held == key->held, "count of those that have a key");
    CHECK(n.runs == key->runs.n && n.steps == key->steps.n, "count of those that wait for a key");
    CHECK(key->fresh || (key->runs.n == 0 && key->steps.n == 0) || !place ||
              armed != MSEC_NEVER,
          "somebody waits for a key that is free");
    CHECK(!key->fresh || c->recovering || c->text_used > CORE_TEXT_BYTES / 2,
          "a key was left fresh");
    return true;
}

bool core_keys_hold(const struct core *c, const char **ret_why)
{
    for (uint32_t i = 0; i < c->config.keys; i++) {
        if (!key_holds(c, i, ret_why)) {
            return false;
        }
    }
    CHECK(heap_ok(&c->opens, c->config.registry.agents + c->config.keys), "the heap of the rates");
    return true;
}
#undef CHECK
