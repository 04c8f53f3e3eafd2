/*
 * How long plan.fork and plan.retry of a large plan keep the daemon's loop: its rooms in one
 * process over a SQLite journal in the given directory. All steps but the last have a result, which
 * both requests reuse. The figure is the longest cycle of each.
 *
 *     bench_fork DIR STEPS [TIMES]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/buf.h"
#include "protocol/base/clock.h"
#include "tests/support/house/house.h"

enum { AT_A_TIME = 16, STEPS_MIN = 2, STEPS_MAX = 10000, TIMES_MAX = 50 };

static uint64_t longest_ns, processor_ns;

static void on_act(bool act)
{
    static uint64_t began, thread;

    if (act) {
        began = clock_mono_ns();
        thread = clock_thread_ns();
    } else if (clock_mono_ns() - began > longest_ns) {
        longest_ns = clock_mono_ns() - began;
        processor_ns = clock_thread_ns() - thread;
    }
}

static const char *submit(struct house *h, unsigned long steps)
{
    struct buf plan;
    const char *id;

    buf_init(&plan, (size_t)8 << 20);
    for (unsigned long i = 0; i < steps; i++) {
        buf_printf(&plan, "%s{'stepId':'s%lu','agentId':'calc','skill':'do','task':'Read it.'%s}",
                   i > 0 ? "," : "", i, i + 1 == steps ? ",'dependsOn':['s0']" : "");
    }
    id = house_submit(h, "'plan':{'goal':'Many steps.','policy':{'maxRetries':0},'steps':[%.*s]}",
                      (int)plan.len, (const char *)plan.at);
    buf_done(&plan);
    return id;
}

static void measure(struct house *h, const char *type, const char *fields, unsigned times)
{
    const char *again;

    for (unsigned i = 0; i < times; i++) {
        longest_ns = 0;
        again = house_ok(h, type, "%s", fields);
        (void)printf("%s of %s results: longest cycle %.1f ms, processor %.1f ms\n", type,
                     house_get(h, again, "reused"), (double)longest_ns / 1e6,
                     (double)processor_ns / 1e6);
        (void)house_ok(h, "plan.cancel", "'planId':'%s'", house_get(h, again, "planId"));
    }
}

int main(int argc, char **argv)
{
    const unsigned long steps = argc >= 3 ? strtoul(argv[2], NULL, 10) : 0;
    const unsigned long times = argc == 4 ? strtoul(argv[3], NULL, 10) : 3;
    unsigned long left = steps;
    struct house *h;
    const char *id;

    if (argc > 4 || steps < STEPS_MIN || steps > STEPS_MAX || times == 0 || times > TIMES_MAX) {
        (void)fprintf(stderr, "usage: bench_fork DIR STEPS [TIMES] (%d to %d steps)\n", STEPS_MIN,
                      STEPS_MAX);
        return 2;
    }
    h = house_open_in(argv[1]);
    if (h->dead) {
        (void)fprintf(stderr, "bench_fork: %s\n", h->why.msg);
        return 1;
    }
    fake_link_forget_frames(h->link);
    (void)house_join(h, "calc", AT_A_TIME);
    id = submit(h, steps);
    for (; left > 1 && house_work(h, "calc", NULL) != NULL; left--) {
        house_done(h, "calc", "'result':{'text':'The sum of what was read so far is 5050.'}");
    }
    house_failed(h, "calc", "PERMISSION_DENIED", false);
    house_rooms_act = on_act;
    measure(h, "plan.fork", house_text(h, "'planId':'%s','fromStep':'s%lu'", id, steps - 1),
            (unsigned)times);
    measure(h, "plan.retry", house_text(h, "'planId':'%s'", id), (unsigned)times);
    house_rooms_act = NULL;
    house_close(h);
    return 0;
}
