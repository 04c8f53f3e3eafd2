/* One turn of the daemon, and its death. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "tests/sim/sim.h"

/* ---- telling ---- */

void sim_say(struct sim *s, const char *fmt, ...)
{
    va_list args;
    if (!s->trace) {
        return;
    }
    va_start(args, fmt);
    (void)printf("[%6" PRIu64 "] ", s->now);
    (void)vprintf(fmt, args);
    (void)printf("\n");
    va_end(args);
}

void sim_fail(struct sim *s, const char *why, uint32_t plan, uint32_t step)
{
    if (!s->failed) {
        (void)fprintf(stderr,
                      "broken at %" PRIu64 " ms: %s (plan %u, step %u)\n"
                      "again: test_sim --seed %" PRIu64 " --trace\n",
                      s->now, why, (unsigned)plan, (unsigned)step, s->seed);
    }
    s->failed = true;
}

static void say_command(struct sim *s, const struct core_cmd *cmd)
{
    static const char *const names[] = {
        [CMD_RECORD] = "record",     [CMD_DISPATCH] = "dispatch",     [CMD_CANCEL_STEP] = "cancel",
        [CMD_QUERY] = "query",       [CMD_REGISTERED] = "registered", [CMD_CLOSE] = "close",
        [CMD_RUN_DONE] = "run done", [CMD_REJECT] = "reject",
    };
    _Static_assert(sizeof names / sizeof names[0] == CORE_CMD_TYPE_COUNT, "all");
    sim_say(s, "    %s %s run=%" PRIx64 " step=%d attempt=%u slot=%d epoch=%" PRIu64 " lane=%d",
            names[cmd->type],
            cmd->type == CMD_RECORD   ? record_wire_type(cmd->rec.type)
            : cmd->type == CMD_REJECT ? core_reject_text(cmd->reject)
                                      : "",
            cmd->run, (int)cmd->step, (unsigned)cmd->attempt, (int)cmd->slot, cmd->epoch,
            (int)cmd->lane);
}

/* ---- a turn of the daemon ---- */

static void keep(struct sim_plan *p, const struct record *rec)
{
    if (p->n_journal == p->cap_journal) {
        p->cap_journal = p->cap_journal == 0 ? 64 : 2 * p->cap_journal;
        p->journal = realloc(p->journal, p->cap_journal * sizeof *p->journal);
        ASSERT(p->journal != NULL);
    }
    p->journal[p->n_journal] = *rec;
    p->journal[p->n_journal].text = (struct str){0};
    p->n_journal++;
}

/* The commit: records reach the journal. */
static void commit(struct sim *s)
{
    for (uint32_t i = 0; i < s->out.n && !s->failed; i++) {
        const struct core_cmd *cmd = &s->out.at[i];
        say_command(s, cmd);
        sim_mix(s, (uint64_t)cmd->type << 56 | (uint64_t)cmd->step << 24 | cmd->attempt);
        sim_mix(s, s->now ^ cmd->epoch << 32);
        sometimes.rejects[cmd->reject]++;
        if (cmd->type == CMD_RECORD && cmd->rec.run != 0) {
            struct sim_plan *p = sim_plan_of(s, cmd->rec.run);
            sim_check_record(s, &cmd->rec);
            if (p != NULL) {
                keep(p, &cmd->rec);
            }
        }
    }
}

void sim_turn(struct sim *s, struct core_event ev, struct uuid sender)
{
    static const char *const names[] = {
        [CORE_SUBMIT] = "submit",       [CORE_RECOVER] = "recover",
        [CORE_CANCEL] = "cancel",       [CORE_PAUSE] = "pause",
        [CORE_RESUME] = "resume",       [CORE_MODIFY] = "modify",
        [CORE_REVISE] = "revise",       [CORE_REGISTER] = "register",
        [CORE_SEEN] = "seen",           [CORE_LANE_UP] = "lane up",
        [CORE_LANE_DOWN] = "lane down", [CORE_GONE] = "gone",
        [CORE_DRAIN] = "drain",         [CORE_RESULT] = "result",
        [CORE_LOST] = "lost",           [CORE_LANE_FREE] = "lane free",
        [CORE_STATE] = "state",         [CORE_PROGRESS] = "progress",
        [CORE_DECIDE] = "decide",       [CORE_PROBED] = "probed",
        [CORE_RESTARTED] = "restart",   [CORE_TICK] = "tick"};
    _Static_assert(sizeof names / sizeof names[0] == CORE_EVENT_TYPE_COUNT, "all");
    ev.now = s->now;
    ev.wall = s->now;
    sim_say(s, "%s run=%" PRIx64 " step=%u attempt=%u slot=%d epoch=%" PRIu64 " lane=%d",
            names[ev.type], ev.run, (unsigned)ev.step, (unsigned)ev.attempt, (int)ev.slot, ev.epoch,
            (int)ev.lane);
    s->turn = &ev;
    s->sender = sender;
    s->out.n = 0;
    s->turns++;
    sometimes.turns++;
    core_handle(s->core, &ev, &s->out);
    if (!s->recovering && sim_fault(s, FAULT_BEFORE_COMMIT)) {
        sim_restart(s);
        return;
    }
    if (ev.type == CORE_SUBMIT || ev.type == CORE_RECOVER) {
        for (uint32_t i = 0; i < s->n_plans; i++) {
            if (s->plans[i].block == ev.block && core_newest_run(s->core) != 0) {
                s->plans[i].handle = core_newest_run(s->core);
                s->plans[i].submitted = true;
            }
        }
    }
    commit(s);
    if (!s->recovering && sim_fault(s, FAULT_AFTER_COMMIT)) {
        sim_restart(s);
        return;
    }
    for (uint32_t i = 0; i < s->out.n && !s->failed; i++) {
        sim_perform(s, &s->out.at[i]);
    }
    if (!s->failed && !s->recovering && (s->turns < 400 || s->turns % 16 == 0)) {
        sim_check_turn(s);
    }
}

/* A new daemon: it knows its journal and nobody, and everybody finds out sooner or later. */
void sim_restart(struct sim *s)
{
    sim_say(s, "---- the daemon is dead; a new one starts");
    s->life++;
    s->recovering = true;
    s->config.registry.epoch_base += 100000;
    memset(s->core, 0, core_size(&s->config));
    s->core = core_init(s->core, &s->config);
    for (uint32_t i = 0; i < s->n_agents; i++) {
        const char name[2] = {(char)('a' + i), '\0'};
        (void)registry_agent_add(s->core->registry, str_from(name), s->now);
    }
    for (uint32_t i = 0; i < s->n_bodies; i++) {
        struct body *b = &s->bodies[i];
        b->epoch = 0;
        for (uint32_t k = 0; k < SIM_CAPACITY_MAX; k++) {
            b->lanes[k].token = 0;
        }
    }
    for (uint32_t i = 0; i < s->n_plans; i++) {
        s->plans[i].handle = 0; /* of the daemon before */
    }
    for (uint32_t i = 0; i < s->n_plans && !s->failed; i++) {
        struct sim_plan *p = &s->plans[i];
        if (!p->submitted || p->over) {
            continue;
        }
        struct run *run = run_init(core_block_run(p->block), p->plan);
        for (uint32_t k = 0; k < p->n_journal; k++) {
            const bool fits = run_apply(run, p->plan, &p->journal[k]);
            ASSERT(fits);
        }
        if (memcmp(run, p->shadow, run_size(p->plan->n_steps)) != 0) {
            sim_fail(s, "recovery gives another state", i, STEP_NONE);
        }
        sim_turn(s, (struct core_event){.type = CORE_RECOVER, .plan = p->plan, .block = p->block},
                 (struct uuid){{0}});
        for (uint32_t k = 0; k < p->plan->n_steps && !p->over; k++) {
            if (p->shadow->steps[k].status == STEP_WAITING) { /* it is still on somebody's list */
                sim_after(s, sim_range(s, 10, 1500),
                          (struct sim_event){.kind = SIM_CORE,
                                             .life = s->life,
                                             .core = {.type = CORE_DECIDE,
                                                      .run = p->handle,
                                                      .step = k,
                                                      .attempt = p->shadow->steps[k].attempt,
                                                      .lane = LANE_NONE}});
            }
        }
    }
    s->recovering = false;
}
