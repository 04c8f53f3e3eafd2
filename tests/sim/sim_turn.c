/*
 * The turns of the daemon. A turn is handled at once, in memory. Its records reach the journal when
 * it is flushed, alone or together with the next ones; only then it is checked and performed. What
 * was not flushed when the daemon dies never happened.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "tests/sim/sim.h"

/* ---- trace ---- */

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
        (void)snprintf(s->why, sizeof s->why, "%s (plan %u, step %d)", why, (unsigned)plan,
                       (int)step);
        sim_say(s, "BROKEN: %s", s->why);
    }
    s->failed = true;
}

static void say_record(struct sim *s, const struct record *record)
{
    const struct flat_record all = flat_record(record);
    const struct flat_record *rec = &all;
    const struct sim_plan *p = sim_plan_of(s, rec->run);
    sim_say(s,
            "    %s plan=%d step=%d attempt=%u status=%s reason=%s class=%s review=%d decision=%d "
            "phase=%d delay=%" PRIu64 " agent=%d%s%.*s",
            record_wire_type(rec->type), p == NULL ? -1 : (int)(p - s->plans), (int)rec->step,
            (unsigned)rec->attempt, step_status_state_name(rec->status),
            step_reason_name(rec->reason), err_class_name(rec->error_class), (int)rec->review,
            (int)rec->decision, (int)rec->phase, rec->delay_ms, (int)rec->agent,
            rec->text.len > 0 ? ": " : "", STR_ARG(rec->text));
}

static void say_command(struct sim *s, const struct core_cmd *cmd)
{
    static const char *const names[] = {
        [CMD_RECORD] = "record",
        [CMD_DISPATCH] = "dispatch",
        [CMD_CANCEL_STEP] = "cancel",
        [CMD_KILL] = "kill",
        [CMD_PROBE] = "probe",
        [CMD_REVISED] = "revised",
        [CMD_QUERY] = "query",
        [CMD_REGISTERED] = "registered",
        [CMD_CLOSE] = "close",
        [CMD_REJECT] = "reject",
        [CMD_RUN_DONE] = "run done",
        [CMD_JOB] = "errand",
        [CMD_JOB_STOP] = "stop errand",
        [CMD_CONDITION] = "condition",
        [CMD_CHILD] = "child",
        [CMD_CHILD_STOP] = "stop child",
        [CMD_CHILD_PAUSE] = "pause child",
        [CMD_CHILD_RESUME] = "resume child",
        [CMD_SIGNAL] = "signal",
        [CMD_COMPENSATE] = "compensate",
    };
    _Static_assert(sizeof names / sizeof names[0] == CORE_CMD_TYPE_COUNT, "all");
    if (cmd->type == CMD_RECORD) {
        say_record(s, &cmd->rec);
        return;
    }
    sim_say(s,
            "    %s %s run=%" PRIx64 " step=%d attempt=%u phase=%d slot=%d epoch=%" PRIu64
            " lane=%d",
            names[cmd->type], cmd->type == CMD_REJECT ? core_reject_text(cmd->reject) : "",
            cmd->run, (int)cmd->step, (unsigned)cmd->attempt, (int)cmd->phase, (int)cmd->slot,
            cmd->epoch, (int)cmd->lane);
}

static void say_event(struct sim *s, const struct core_event *ev)
{
    static const char *const names[] = {[CORE_SUBMIT] = "submit",
                                        [CORE_RECOVER] = "recover",
                                        [CORE_CANCEL] = "cancel",
                                        [CORE_PAUSE] = "pause",
                                        [CORE_RESUME] = "resume",
                                        [CORE_MODIFY] = "modify",
                                        [CORE_REVISE] = "revise",
                                        [CORE_REGISTER] = "register",
                                        [CORE_SEEN] = "seen",
                                        [CORE_LANE_UP] = "lane up",
                                        [CORE_LANE_DOWN] = "lane down",
                                        [CORE_GONE] = "gone",
                                        [CORE_DRAIN] = "drain",
                                        [CORE_RESULT] = "result",
                                        [CORE_LOST] = "lost",
                                        [CORE_LANE_FREE] = "lane free",
                                        [CORE_STATE] = "state",
                                        [CORE_PROGRESS] = "progress",
                                        [CORE_DECIDE] = "decide",
                                        [CORE_PROBED] = "probed",
                                        [CORE_RESTARTED] = "restart",
                                        [CORE_TICK] = "tick",
                                        [CORE_PLANNED] = "planned",
                                        [CORE_JOB_FAILED] = "errand failed",
                                        [CORE_JOB_TEXT] = "text",
                                        [CORE_SYNTHESIZED] = "answered",
                                        [CORE_RECTIFY] = "rectify",
                                        [CORE_GAVE_UP] = "gave up",
                                        [CORE_CONDITION] = "verdict",
                                        [CORE_CHILD] = "child",
                                        [CORE_SIGNAL] = "signal",
                                        [CORE_COMPENSATED] = "compensated",
                                        [CORE_BUSY] = "busy",
                                        [CORE_STALLED] = "stalled",
                                        [CORE_NOT_LISTED] = "not listed"};
    _Static_assert(sizeof names / sizeof names[0] == CORE_EVENT_TYPE_COUNT, "all");
    const struct core_ev_result nothing = {.outcome = STEP_OUTCOME_COMPLETED};
    const struct core_ev_result *result = ev->type == CORE_RESULT ? CORE_EV(ev, result) : &nothing;
    if (ev->type == CORE_SEEN) {
        return; /* they are too many */
    }
    sim_say(s,
            "%s run=%" PRIx64 " step=%d attempt=%u phase=%d outcome=%d class=%s slot=%d "
            "epoch=%" PRIu64 " lane=%d to=%d",
            names[ev->type], ev->run, (int)ev->step, (unsigned)ev->attempt, (int)ev->phase,
            (int)result->outcome, err_class_name(result->error_class), (int)ev->slot, ev->epoch,
            (int)ev->lane, (int)result->agent);
}

/* ---- the commit ---- */

enum { LATE_COMMIT_MAX_MS = 12000 };

static void keep(struct sim_plan *p, const struct record *rec)
{
    p->journal = sim_room(p->journal, p->n_journal, &p->cap_journal, sizeof *p->journal);
    p->journal[p->n_journal] = *rec;
    p->journal[p->n_journal].text = (struct str){0};
    if ((rec->type == REC_SYNTHESIS_STARTED || rec->type == REC_COMPENSATION_STARTED ||
         rec->type == REC_FALLBACK_USED) &&
        rec->text.len > 0) {
        const size_t n = rec->text.len < RUN_END_TEXT ? rec->text.len : RUN_END_TEXT;
        ASSERT(p->n_sentences < SIM_SENTENCES_MAX);
        memcpy(p->sentences[p->n_sentences], rec->text.ptr, n);
        p->journal[p->n_journal].text = (struct str){p->sentences[p->n_sentences++], n};
    }
    p->n_journal++;
}

static void commit_record(struct sim *s, const struct record *rec)
{
    struct sim_plan *p = rec->run == 0 ? NULL : sim_plan_of(s, rec->run);
    sometimes->records[rec->type]++;
    const struct flat_record flat = flat_record(rec);
    sim_mix(s, (uint64_t)rec->type << 48 ^ rec->run ^ flat.delay_ms << 20 ^ rec->text.len);
    sim_mix(s, (uint64_t)flat.status << 40 ^ flat.result.id ^ (uint64_t)flat.error_class << 56);
    if (rec->run == 0) {
        return;
    }
    struct record back;
    if (p == NULL || p->over) {
        sim_fail(s, "a record of a plan that is over or unknown", 0, rec->step);
    } else if (sim_through_journal(s, p, rec, &back)) {
        sim_check_record(s, rec, &back);
        keep(p, &back);
    }
}

/* The core returned the memory of an earlier revision. */
static void revised(struct sim *s, const struct core_cmd *cmd)
{
    struct sim_plan *p = sim_plan_of(s, cmd->run);
    if (p == NULL || p->offer == NULL || p->n_revisions < 2) {
        sim_fail(s, "a revision that nobody offered", 0, STEP_NONE);
        return;
    }
    free(p->block);
    p->block = p->offer;
    p->offer = NULL;
}

static void commit_command(struct sim *s, const struct core_cmd *cmd)
{
    say_command(s, cmd);
    sim_mix(s, (uint64_t)cmd->type << 56 | (uint64_t)cmd->step << 24 | cmd->attempt);
    sim_mix(s, s->now ^ cmd->epoch << 32);
    sometimes->commands[cmd->type]++;
    sometimes->rejects[cmd->reject]++;
    if (cmd->type == CMD_RECORD) {
        commit_record(s, &cmd->rec);
    } else if (cmd->type == CMD_DISPATCH) {
        sim_check_dispatch(s, cmd);
    } else if (cmd->type == CMD_JOB || cmd->type == CMD_JOB_STOP) {
        sim_check_job(s, cmd);
    } else if (cmd->type >= CMD_CHILD && cmd->type <= CMD_CHILD_RESUME) {
        sim_check_nest_command(s, cmd);
    } else if (cmd->type == CMD_COMPENSATE) {
        sim_check_undo(s, cmd);
    } else if (cmd->type == CMD_CLOSE) {
        sim_limits_closed(s, cmd->slot, cmd->epoch);
    } else if (cmd->type == CMD_REVISED) {
        revised(s, cmd);
    } else if (cmd->type == CMD_REGISTERED) {
        s->incarnations = sim_room(s->incarnations, s->n_incarnations, &s->cap_incarnations,
                                   sizeof *s->incarnations);
        s->incarnations[s->n_incarnations++] = (struct incarnation){
            s->turn->ev.instance, cmd->slot, CORE_EV(&s->turn->ev, registration)->agent,
            cmd->epoch,           0,         0};
    }
}

void sim_flush(struct sim *s)
{
    if (s->n_batch == 0 || s->performing || s->failed) {
        return;
    }
    s->performing = true;
    if (!s->recovering && (sim_fault(s, FAULT_BEFORE_COMMIT) || sim_fault(s, FAULT_DISK_FULL))) {
        sim_die(s, sim_chance(s, 300) ? sim_range(s, 50, 1500) : 0);
        return;
    }
    const uint32_t n = s->n_batch;
    for (uint32_t t = 0; t < n && !s->failed; t++) {
        s->turn = &s->batch[t];
        say_event(s, &s->turn->ev);
        sim_limits_event(s, &s->turn->ev);
        sim_full_event(s, &s->turn->ev);
        sim_rules_begin(s);
        for (uint32_t i = s->turn->from; i < s->turn->to && !s->failed; i++) {
            sim_rules_command(s, &s->out.at[i]);
            commit_command(s, &s->out.at[i]);
        }
        if (!s->failed) {
            sim_rules_end(s);
        }
    }
    if (!s->failed && !s->recovering && sim_fault(s, FAULT_AFTER_COMMIT)) {
        sim_die(s, 0);
        return;
    }
    const msec away = !s->failed && !s->recovering && sim_fault(s, FAULT_LATE_COMMIT)
                          ? sim_range(s, 20, LATE_COMMIT_MAX_MS)
                          : 0;
    s->now += away; /* the journal's server is away: nothing is handled, nobody is heard */
    for (uint32_t t = 0; t < n && !s->failed; t++) {
        s->turn = &s->batch[t];
        for (uint32_t i = s->turn->from; i < s->turn->to && !s->failed; i++) {
            sim_perform(s, &s->out.at[i]);
        }
    }
    s->n_batch = 0;
    s->out.n = 0;
    s->performing = false;
    if (!s->failed && !s->recovering) {
        sim_check_turn(s);
    }
    if (away > 0) {
        sim_turn(s, (struct core_event){CORE_EV_INIT(STALLED, stalled, .delay_ms = away)},
                 (struct uuid){{0}});
    }
}

/* ---- a turn ---- */

static void count_at_once(struct sim *s)
{
    s->at_once = s->now == s->last ? s->at_once + 1 : 0;
    s->last = s->now;
    if (s->at_once > SIM_TURNS_AT_ONCE) {
        sim_fail(s, "turns without end in one millisecond", 0, STEP_NONE);
    }
}

static void remember_handle(struct sim *s, const void *block)
{
    for (uint32_t i = 0; i < s->n_plans; i++) {
        if (s->plans[i].block == block && core_newest_run(s->core) != 0) {
            s->plans[i].handle = core_newest_run(s->core);
        }
    }
}

static bool starts_a_plan(const struct sim *s, const struct turn *t)
{
    for (uint32_t i = t->from; i < t->to; i++) {
        const struct core_cmd *cmd = &s->out.at[i];
        if (cmd->type == CMD_RECORD && cmd->rec.type == REC_PLAN_STARTED) {
            return true;
        }
    }
    return false;
}

void sim_turn(struct sim *s, struct core_event ev, struct uuid sender)
{
    if (s->down || s->failed) {
        return; /* no daemon receives it */
    }
    if (ev.type == CORE_SIGNAL && ev.step != STEP_NONE && !sim_signals_bring(s, &ev)) {
        return; /* another step took it meanwhile */
    }
    ev.now = s->now;
    ev.wall = s->now;
    s->turns++;
    sometimes->turns++;
    sometimes->events[ev.type]++;
    count_at_once(s);
    struct turn *t = &s->batch[s->n_batch++];
    *t = (struct turn){.ev = ev, .sender = sender, .from = s->out.n};
    core_handle(s->core, &t->ev, &s->out);
    t->to = s->out.n;
    const struct core_new_plan *next = event_plan(&ev);
    for (uint32_t i = t->from; i < t->to; i++) {
        const struct core_cmd *cmd = &s->out.at[i];
        struct sim_plan *p = cmd->type == CMD_RECORD ? sim_plan_of(s, cmd->rec.run) : NULL;
        if (p != NULL) {
            sim_signals_record(p, &cmd->rec);
        }
        sometimes->refused +=
            next != NULL && next->plan != NULL && s->out.at[i].reject == REJECT_BEGUN ? 1 : 0;
    }
    if (ev.type == CORE_SUBMIT || ev.type == CORE_RECOVER) {
        remember_handle(s, event_block(&ev));
    }
    /* The next tick handles entries whose texts had no room, and those that came at the end of this
     * turn: to a queue without time to wait for an agent, or with a plan that got its key. */
    const bool all = s->core->text_used <= CORE_TEXT_BYTES / 2 && s->config.agent_wait_ms > 0 &&
                     !starts_a_plan(s, t);
    if (ev.type == CORE_TICK && all && core_deadline(s->core) <= s->now) {
        sim_fail(s, "something is still due after a tick", 0, STEP_NONE);
    }
    if (s->n_batch >= s->batch_max || s->recovering || event_block(&ev) != NULL) {
        sim_flush(s);
    }
}
