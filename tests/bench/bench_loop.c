/*
 * What the daemon's own code does for a step, in one thread without sockets: plans of three steps,
 * each with the result of the one before, through api, engine, core, dispatch, a SQLite journal in
 * the given directory, and the reading of their events. Under callgrind it is a count of
 * instructions, which depends on the code and not on the machine's mood (instructions.sh).
 *
 *     bench_loop DIR PLANS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/house/house.h"

enum { AT_A_TIME = 16, PLANS_MAX = 10000 };

static const char plan[] =
    "'plan':{'goal':'Three steps.','steps':["
    "{'stepId':'a','agentId':'calc','skill':'do','task':'Read the first of the numbers.'},"
    "{'stepId':'b','agentId':'calc','skill':'do','task':'Add to {{results.a}}.','dependsOn':['a']},"
    "{'stepId':'c','agentId':'calc','skill':'do','task':'Say {{results.b}}.','dependsOn':['b']}]}";

/* Reads the events as a watch does. Returns the next number. */
static uint64_t follow(struct house *h, uint64_t from)
{
    const char *page =
        house_ok(h, "events.read", "'fromSeq':%llu,'limit':500", (unsigned long long)from);

    return strtoull(house_get(h, page, "nextSeq"), NULL, 10);
}

static void run(struct house *h, unsigned n, uint64_t *seq)
{
    for (unsigned i = 0; i < n; i++) {
        (void)house_submit(h, "%s", plan);
    }
    while (house_work(h, "calc", NULL) != NULL) {
        house_done(h, "calc", "'result':{'text':'The sum of what was read so far is 5050.'}");
    }
    *seq = follow(h, *seq);
}

int main(int argc, char **argv)
{
    const unsigned long plans = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    struct house *h;
    uint64_t seq = 1;

    if (plans == 0 || plans > PLANS_MAX) {
        (void)fprintf(stderr, "usage: bench_loop DIR PLANS (1 to %d)\n", PLANS_MAX);
        return 2;
    }
    h = house_open_in(argv[1]);
    if (h->dead) {
        (void)fprintf(stderr, "bench_loop: %s\n", h->why.msg);
        return 1;
    }
    (void)house_join(h, "calc", AT_A_TIME);
    for (unsigned long left = plans; left > 0;) {
        const unsigned n = left < AT_A_TIME ? (unsigned)left : AT_A_TIME;
        run(h, n, &seq);
        left -= n;
    }
    if (house_seen(h, "plan_completed") != plans) {
        (void)fprintf(stderr, "bench_loop: %u of %lu plans completed\n",
                      house_seen(h, "plan_completed"), plans);
        return 1;
    }
    house_close(h);
    return 0;
}
