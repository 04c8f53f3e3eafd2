/* The death of a daemon and the start of the next one. It knows only its journal; agents find out
 * later. */
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "tests/sim/sim.h"

void sim_die(struct sim *s, msec down)
{
    sim_say(s, "---- the daemon is dead");
    s->life++;
    s->n_batch = 0;
    s->out.n = 0;
    s->performing = false;
    s->down = true;
    for (uint32_t i = 0; i < s->n_bodies; i++) {
        struct body *b = &s->bodies[i];
        b->epoch = 0;
        for (uint32_t k = 0; k < SIM_CAPACITY_MAX; k++) {
            b->lanes[k].token = 0;
        }
    }
    for (uint32_t i = 0; i < s->n_plans; i++) {
        struct sim_plan *p = &s->plans[i];
        p->handle = 0; /* of the previous daemon */
        p->asking.out = false;
        p->nest.asked = p->nest.told_stop = p->nest.told_pause = p->nest.reported = false;
        memset(p->waits, 0, sizeof p->waits);
        memset(p->overtaken, 0, sizeof p->overtaken);
    }
    for (uint32_t i = 0; i < s->n_sent; i++) {
        s->sent[i].back = true;
    }
    sim_after(s, down, (struct sim_event){.kind = SIM_BOOT});
}

struct run *sim_replay(struct sim *s, const struct sim_plan *p)
{
    const uint32_t ix = (uint32_t)(p - s->plans);
    uint32_t revision = 0;
    struct run *run = run_init(sim_need(1, core_run_size(p->revisions[0])), p->revisions[0]);
    for (uint32_t k = 0; k < p->n_journal; k++) {
        const struct record *rec = &p->journal[k];
        bool fits = true;
        if (record_revises(rec)) {
            const struct plan *from = p->revisions[revision];
            const struct plan *to = p->revisions[++revision];
            struct run *next = run_revise(sim_need(1, core_run_size(to)), to, run, from, rec);
            fits = next != NULL;
            free(run);
            run = next;
        } else {
            fits = run_apply(run, p->revisions[revision], rec);
        }
        if (!fits) {
            sim_fail(s, "the journal does not replay", ix, rec->step);
            return run;
        }
    }
    if (run->n_steps != p->shadow->n_steps || memcmp(run, p->shadow, run_bytes(run)) != 0) {
        sim_fail(s, "the journal gives another state", ix, STEP_NONE);
    }
    return run;
}

static void recover(struct sim *s, struct sim_plan *p)
{
    sim_withdraw(p);
    free(p->block);
    p->block = sim_replay(s, p);
    p->n_signals = 0;
    for (uint32_t k = 0; k < p->n_journal; k++) {
        sim_signals_record(p, &p->journal[k]);
    }
    if (!p->submitted || p->over || s->failed) {
        return;
    }
    sim_turn(s,
             (struct core_event){
                 CORE_EV_INIT(RECOVER, recover, .plan = sim_plan_now(p), .block = p->block)},
             (struct uuid){{0}});
}

void sim_boot(struct sim *s)
{
    sim_say(s, "---- a new daemon starts");
    s->down = false;
    s->recovering = true;
    s->config.registry.epoch_base += 100000;
    memset(s->core, 0, core_size(&s->config));
    s->core = core_init(s->core, &s->config);
    for (uint32_t i = 0; i < s->n_agents; i++) {
        (void)registry_agent_configure(s->core->registry, sim_agent_names[i], s->now);
    }
    sim_keys_apply(s);
    for (uint32_t i = 0; i < s->n_plans && !s->failed; i++) {
        recover(s, &s->plans[i]);
    }
    s->recovering = false;
    if (!s->failed) {
        sim_nest_booted(s);
        sim_check_turn(s);
    }
}
