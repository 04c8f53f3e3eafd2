/* Random histories of the restart policy against invariants of the processes that it commands. */
#include <stdbool.h>

#include "supervisor/spawn/policy.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"

struct fixture {
    struct policy_child child;
    struct policy_commands out;
    msec now;
};

static void send(struct fixture *f, enum policy_event_type type)
{
    policy_handle(&f->child, &(struct policy_event){.type = type, .now = f->now}, &f->out);
}

/* The world as the policy commands it: at most one process, orders only to an existing one, bounded
 * spawns without a manual start. */
struct world {
    bool process;
    msec spawn_at[4096];
    uint32_t spawns;
};

static void obey(struct world *w, const struct fixture *f)
{
    for (uint32_t i = 0; i < f->out.n; i++) {
        switch (f->out.at[i]) {
        case POLICY_SPAWN:
            assert_false(w->process);
            w->process = true;
            w->spawn_at[w->spawns++ % 4096] = f->now;
            break;
        case POLICY_TERM:
        case POLICY_KILL:
        case POLICY_CAME_UP:
        case POLICY_RESTARTED:
            assert_true(w->process);
            break;
        case POLICY_GAVE_UP:
            assert_false(w->process);
            assert_int_equal(f->child.state, POLICY_FAILED);
            break;
        case POLICY_CRASHED:
            assert_int_equal(f->child.state, POLICY_HELD);
            break;
        case POLICY_ENDED:
            assert_int_equal(f->child.state, POLICY_STOPPED);
            break;
        case POLICY_COMMAND_COUNT:
            fail();
        }
    }
    assert_true(w->process == policy_is_live(&f->child));
    assert_true((policy_deadline(&f->child) == MSEC_NEVER) ==
                (f->child.state == POLICY_STOPPED || f->child.state == POLICY_UP ||
                 f->child.state == POLICY_FAILED));
}

/* No window of period_ms holds more than intensity + 1 automatic spawns: crashes in it are below
 * intensity. */
static void check_intensity(const struct world *w, const struct fixture *f, bool by_hand)
{
    uint32_t k = f->child.set.intensity + 1;

    if (!by_hand && w->spawns > k) {
        msec first = w->spawn_at[(w->spawns - 1 - k) % 4096];
        msec last = w->spawn_at[(w->spawns - 1) % 4096];
        assert_true(last - first >= f->child.set.period_ms);
    }
}

static void random_step(struct fixture *f, struct world *w, struct rng *rng, bool by_hand)
{
    enum policy_event_type type = (enum policy_event_type)(rng_below(rng, POLICY_EVENT_COUNT));
    struct policy_event ev = {.type = type, .clean = rng_below(rng, 2) == 0};

    f->now += rng_below(rng, 3) == 0 ? rng_below(rng, 4000) : 0;
    ev.now = f->now;
    if (!by_hand && (type == POLICY_ON_START || type == POLICY_ON_STOP)) {
        return;
    }
    if (type == POLICY_ON_ADOPTED ||
        ((type == POLICY_ON_EXITED || type == POLICY_ON_SPAWNED || type == POLICY_ON_REGISTERED) &&
         !w->process)) {
        return; /* the caller passes only events of the current instance */
    }
    if (type == POLICY_ON_EXITED) {
        w->process = false;
    }
    policy_handle(&f->child, &ev, &f->out);
    obey(w, f);
}

static void history(struct rng *rng, bool by_hand)
{
    struct world w = {0};
    struct policy_settings set = policy_defaults();
    struct fixture f = {.now = 5};

    set.restart = (enum policy_restart)(rng_below(rng, POLICY_RESTART_COUNT));
    set.intensity = 1 + rng_below(rng, 6);
    policy_init(&f.child, &set);
    send(&f, POLICY_ON_START);
    obey(&w, &f);
    for (int i = 0; i < 2000; i++) {
        random_step(&f, &w, rng, by_hand);
        check_intensity(&w, &f, by_hand);
    }
    /* Whatever happened, a stop leads to rest: exit answers TERM or KILL. */
    send(&f, POLICY_ON_STOP);
    if (w.process) {
        w.process = false;
        send(&f, POLICY_ON_EXITED);
    }
    assert_true(f.child.state == POLICY_STOPPED || f.child.state == POLICY_FAILED);
}

static void random_histories_keep_the_invariants(void **state)
{
    struct rng rng = rng_seeded("spawn policy");

    (void)state;
    for (int i = 0; i < 300; i++) {
        history(&rng, i % 2 == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_histories_keep_the_invariants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
