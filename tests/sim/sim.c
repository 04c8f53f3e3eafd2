/*
 * usage: test_sim [--seed N] [--seeds A-B] [--minutes N] [--trace] [--without FAULT,...]
 *                 [--plans N] [--steps N] [--quiet MS] [--children N] [--no-shrink] [--counts]
 * Without arguments: runs the seeds of CI, and fails when a fault or state never occurred.
 * --minutes: runs seeds counted from the clock for that many minutes (nightly).
 *
 * A child process runs the seeds, so that a crash of the core is a failing seed like any other. The
 * parent runs such a seed again with fewer faults, plans and steps while it still fails, and prints
 * the smallest one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/assert.h"
#include "protocol/base/clock.h"
#include "tests/sim/sim.h"

enum { SEEDS_OF_CI = 10000, TWICE_EVERY = 16, SHRINK_TRIES = 200 };

struct order {
    uint64_t first, last;
    msec until; /* 0 = all of them */
    struct shrink shrink;
    bool trace, no_shrink, ci, counts;
};

/* The child writes this to its parent before it ends. */
struct told_by_child {
    struct sometimes sometimes;
    struct day day;
};

static struct told_by_child *shared;

/* ---- a child ---- */

static bool live_seed(const struct order *o, uint64_t seed)
{
    sometimes->seed = seed;
    shared->day = (struct day){.why = "the core died"};
    const struct day day = sim_day(seed, &o->shrink, o->trace);
    shared->day = day;
    if (day.fine && seed % TWICE_EVERY == 0 && sim_day(seed, &o->shrink, false).hash != day.hash) {
        shared->day.fine = false;
        (void)snprintf(shared->day.why, sizeof shared->day.why, "two different runs");
    }
    return shared->day.fine;
}

static void child(const struct order *o)
{
    if (o->trace) { /* a trace ends where the seed fails */
        (void)setvbuf(stdout, NULL, _IOLBF, 0);
    }
    for (uint64_t seed = o->first; seed <= o->last; seed++) {
        if (!live_seed(o, seed)) {
            (void)fflush(stdout);
            _exit(1);
        }
        if (o->until != 0 && clock_mono_ms() >= o->until) {
            break;
        }
    }
    (void)fflush(stdout);
    _exit(0);
}

/* True when all went well. */
static bool run(const struct order *o, bool quiet)
{
    int status = 0;
    (void)fflush(stdout);
    (void)fflush(stderr);
    const pid_t pid = fork();
    ASSERT(pid >= 0);
    if (pid == 0) {
        if (quiet && freopen("/dev/null", "w", stderr) == NULL) {
            _exit(2);
        }
        child(o);
    }
    const pid_t got = waitpid(pid, &status, 0);
    ASSERT(got == pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- a failure ---- */

static bool still_fails(const struct order *o, uint64_t *turns, uint32_t *tries)
{
    if (*tries == 0) {
        return false;
    }
    --*tries;
    const bool fails = !run(o, true);
    const bool shorter = fails && (shared->day.turns == 0 || shared->day.turns <= *turns);
    *turns = shorter && shared->day.turns > 0 ? shared->day.turns : *turns;
    return shorter;
}

static bool halve(struct order *o, uint32_t *what, uint32_t from, uint64_t *turns, uint32_t *tries)
{
    bool any = false;
    for (uint32_t n = from; n > 0; n /= 2) {
        const uint32_t before = *what;
        if (before != 0 && n >= before) {
            continue;
        }
        *what = n;
        if (still_fails(o, turns, tries)) {
            any = true;
        } else {
            *what = before;
        }
    }
    return any;
}

/* Greedy: removes each part that the failure does not need, unless the run gets longer. */
static void shrink(struct order *o)
{
    uint64_t turns = shared->day.turns > 0 ? shared->day.turns : UINT64_MAX;
    uint32_t tries = SHRINK_TRIES;
    bool better = true;
    while (better && tries > 0) {
        better = false;
        for (int f = 0; f < FAULT_COUNT; f++) {
            const uint64_t before = o->shrink.without;
            o->shrink.without |= UINT64_C(1) << f;
            if (o->shrink.without != before && still_fails(o, &turns, &tries)) {
                better = true;
            } else {
                o->shrink.without = before;
            }
        }
        better = halve(o, &o->shrink.plans, SIM_PLANS_MAX / 2, &turns, &tries) || better;
        better = halve(o, &o->shrink.steps, SIM_STEPS_MAX / 2, &turns, &tries) || better;
        better = halve(o, &o->shrink.quiet, SIM_QUIET_MAX_MS / 2, &turns, &tries) || better;
        better = halve(o, &o->shrink.children, SIM_CHILDREN_MAX / 2, &turns, &tries) || better;
    }
}

static void tell_how(const struct order *o)
{
    bool any = false;
    (void)printf("again: test_sim --seed %" PRIu64 " --trace --no-shrink", o->first);
    for (int f = 0; f < FAULT_COUNT; f++) {
        if ((o->shrink.without & UINT64_C(1) << f) != 0) {
            (void)printf("%s%s", any ? "," : " --without ", sim_fault_name((enum fault)f));
            any = true;
        }
    }
    if (o->shrink.plans > 0) {
        (void)printf(" --plans %u", (unsigned)o->shrink.plans);
    }
    if (o->shrink.steps > 0) {
        (void)printf(" --steps %u", (unsigned)o->shrink.steps);
    }
    if (o->shrink.quiet > 0) {
        (void)printf(" --quiet %u", (unsigned)o->shrink.quiet);
    }
    if (o->shrink.children > 0) {
        (void)printf(" --children %u", (unsigned)o->shrink.children);
    }
    (void)printf("\n");
}

static void tell_failure(const struct order *all)
{
    struct order one = *all;
    one.first = one.last = sometimes->seed;
    one.until = 0;
    (void)printf("seed %" PRIu64 " is broken after %" PRIu64 " turns at %" PRIu64 " ms: %s\n",
                 one.first, shared->day.turns, shared->day.at, shared->day.why);
    if (!all->no_shrink) {
        shrink(&one);
        one.trace = true;
        (void)printf("the shortest day found, as far as it breaks:\n");
        (void)run(&one, false);
    }
    tell_how(&one);
}

/* ---- the command line ---- */

static const char *option(int argc, char **argv, const char *name)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], name) == 0) {
            return argv[i + 1];
        }
    }
    return NULL;
}

static bool flag(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static uint32_t number(int argc, char **argv, const char *name)
{
    const char *v = option(argc, argv, name);
    return v == NULL ? 0 : (uint32_t)strtoul(v, NULL, 10);
}

static uint64_t faults_named(const char *list)
{
    uint64_t set = 0;
    for (int f = 0; list != NULL && f < FAULT_COUNT; f++) {
        const size_t len = strlen(sim_fault_name((enum fault)f));
        for (const char *at = list; at != NULL; at = strchr(at, ',')) {
            at += *at == ',' ? 1 : 0;
            if (strncmp(at, sim_fault_name((enum fault)f), len) == 0 &&
                (at[len] == ',' || at[len] == '\0')) {
                set |= UINT64_C(1) << f;
            }
        }
    }
    return set;
}

static struct order read_order(int argc, char **argv)
{
    struct order o = {.first = 1, .last = SEEDS_OF_CI, .ci = argc == 1};
    const char *seed = option(argc, argv, "--seed");
    const char *seeds = option(argc, argv, "--seeds");
    const uint32_t minutes = number(argc, argv, "--minutes");
    if (seed != NULL) {
        o.first = o.last = strtoull(seed, NULL, 10);
    } else if (seeds != NULL) {
        const char *dash = strchr(seeds, '-');
        o.first = dash == NULL ? 1 : strtoull(seeds, NULL, 10);
        o.last = strtoull(dash == NULL ? seeds : dash + 1, NULL, 10);
    } else if (minutes > 0) {
        o.first = clock_wall_ms() * 1000;
        o.last = UINT64_MAX - 1;
        o.until = clock_mono_ms() + minutes * (msec)60000;
    }
    o.shrink = (struct shrink){.without = faults_named(option(argc, argv, "--without")),
                               .plans = number(argc, argv, "--plans"),
                               .steps = number(argc, argv, "--steps"),
                               .quiet = number(argc, argv, "--quiet"),
                               .children = number(argc, argv, "--children")};
    o.counts = flag(argc, argv, "--counts");
    o.trace = flag(argc, argv, "--trace");
    o.no_shrink = flag(argc, argv, "--no-shrink");
    return o;
}

int main(int argc, char **argv)
{
    const struct order o = read_order(argc, argv);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT(shared != MAP_FAILED);
    sometimes = &shared->sometimes;
    const msec from = clock_mono_ms();
    if (!run(&o, false)) {
        tell_failure(&o);
        return 1;
    }
    sim_print_sometimes();
    (void)printf("%" PRIu64 " ms; first seed %" PRIu64 "\n", clock_mono_ms() - from, o.first);
    return (o.ci || o.counts) && sim_check_sometimes(o.counts) > 0 ? 1 : 0;
}
