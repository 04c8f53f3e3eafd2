/* What came of an event, in readable lines. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/core/run/flat_record.h"
#include "tests/unit/core/sched/rig_internal.h"

static const char *agent_name(const struct rig *r, uint32_t agent, char *buf, size_t size)
{
    if (agent == AGENT_SUPERVISOR) {
        return "supervisor";
    }
    const struct str id = registry_agent_view(core_registry(r->core), agent).id;
    (void)snprintf(buf, size, "%.*s", STR_ARG(id));
    return buf;
}

static void say(struct rig *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct rig *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(r->trace + r->trace_len, TRACE_MAX - r->trace_len, fmt, args);
    va_end(args);
    r->trace_len += (size_t)n;
    if (r->trace_len >= TRACE_MAX) {
        abort();
    }
}

static void say_text(struct rig *r, struct str text)
{
    if (text.len > 0) {
        say(r, ": %.*s", STR_ARG(text));
    }
}

static void say_plan_end(struct rig *r, const struct flat_record *rec)
{
    say(r, "plan %s/%s", plan_status_name(rec->plan_status), plan_outcome_name(rec->outcome));
    if (rec->failure != PLAN_FAILURE_NONE) {
        say(r, " %s", plan_failure_name(rec->failure));
    }
    if (rec->result.id != 0) {
        say(r, " result=%" PRIu64, rec->result.id);
    }
    say_text(r, rec->text);
}

/* Planning and synthesis; false = another record. */
static bool say_job(struct rig *r, const struct flat_record *rec)
{
    char name[65];
    if (rec->type == REC_COMPENSATION_STARTED) {
        say(r, "compensation_started, ");
        say_plan_end(r, rec);
        return true;
    }
    if (rec->type == REC_COMPENSATION_FINISHED) {
        say(r, "%s %u/%u", compensation_name(rec->ok), (unsigned)rec->n, (unsigned)rec->serial);
        say_text(r, rec->text);
        return true;
    }
    const bool starts = rec->type == REC_PLANNING_STARTED || rec->type == REC_SYNTHESIS_STARTED;
    if (starts) {
        say(r, "%s by %s +%" PRIu64, record_wire_type(rec->type),
            agent_name(r, rec->agent, name, sizeof name), rec->delay_ms);
    }
    if (rec->type == REC_SYNTHESIS_STARTED) {
        say(r, ", ");
        say_plan_end(r, rec);
    } else if (rec->type == REC_PLANNING_RETRY) {
        say(r, "planning_retry after %u: %" PRIu64 " wrong", (unsigned)rec->attempt, rec->n);
    } else if (rec->type == REC_PLANNING_FAILED) {
        say(r, "%s after %u", plan_failure_name(rec->failure), (unsigned)rec->attempt);
    } else if (rec->type == REC_TEXT_DELTA) {
        say(r, "text %" PRIu64, rec->n);
    } else if (rec->type == REC_SYNTHESIS_RETRY) {
        say(r, "synthesis_retry revision=%u", (unsigned)rec->revision);
    } else if (rec->type == REC_SYNTHESIS_FINISHED) {
        say(r, "synthesis_finished %s", rec->ok ? "ok" : "without");
    } else if (!starts) {
        return false;
    }
    if (rec->type != REC_SYNTHESIS_STARTED) {
        say_text(r, rec->text);
    }
    return true;
}

static void say_step_end(struct rig *r, const struct flat_record *rec)
{
    say(r, " %s", step_status_name(rec->status));
    if (rec->reason != REASON_NONE) {
        say(r, " %s", step_reason_name(rec->reason));
    }
    if (rec->error_class != CLASS_NONE) {
        say(r, " %s", err_class_name(rec->error_class));
    }
    if (rec->stop != STOP_NONE) {
        say(r, " (%s)", step_stop_name(rec->stop));
    }
    if (rec->doubt) {
        say(r, " (may be done)");
    }
    say_text(r, rec->text);
}

static void say_handoff(struct rig *r, const struct flat_record *rec)
{
    char name[65];
    say(r, " handoff from %s", agent_name(r, rec->from_agent, name, sizeof name));
    if (rec->handoff != HANDOFF_PLAN_STEP) {
        say(r, " to %s %s", agent_name(r, rec->agent, name, sizeof name),
            handoff_kind_name(rec->handoff));
        say_text(r, rec->text);
    }
}

/* Gates, verifications, fallbacks, replans; false = another record. */
static bool say_asked(struct rig *r, const struct flat_record *rec)
{
    char name[65];
    const enum record_type t = rec->type;
    const char *agent = t == REC_STEP_CHECKING || t == REC_GATE_STARTED
                            ? agent_name(r, rec->agent, name, sizeof name)
                            : "";
    if (t == REC_STEP_CHECKING) {
        say(r, " checking %s by %s", step_phase_name(rec->phase), agent);
    } else if (t == REC_VERIFICATION_FAILED) {
        say(r, " verification failed");
    } else if (t == REC_GATE_STARTED) {
        say(r, " gate started by %s", agent);
    } else if (t == REC_GATE_PASSED) {
        say(r, " gate passed");
    } else if (t == REC_GATE_FAILED) {
        say(r, " gate failed");
    } else if (t == REC_GATE_ERROR) {
        say(r, " gate error");
    } else if (t == REC_FALLBACK_USED) {
        say(r, " fallback %s +%" PRIu64 " %s", fallback_action_name(rec->fallback), rec->delay_ms,
            err_class_name(rec->error_class));
    } else if (t == REC_REPLAN_STARTED) {
        say(r, " replan %" PRIu64 " +%" PRIu64, rec->n, rec->delay_ms);
    } else if (t == REC_REPLAN_FINISHED) {
        say(r, " replan %s revision=%u", rec->ok ? "done" : "failed", (unsigned)rec->revision);
    } else if (t == REC_STEP_CONDITION) {
        say(r, " condition %s", rec->ok ? "true" : "failed");
    } else if (t == REC_STEP_CHILD) {
        say(r, " child %" PRIu64, rec->n);
    } else if (t == REC_STEP_ROUND) {
        say(r, " round %" PRIu64 " +%" PRIu64, rec->n, rec->delay_ms);
    } else if (t == REC_STEP_CALLS) {
        say(r, " turn %" PRIu64 ": %u calls", rec->n, rec->serial);
    } else if (t == REC_STEP_TURN) {
        say(r, " turn %" PRIu64 " over", rec->n);
    } else if (t == REC_WAIT_STARTED) {
        say(r, " sleeps +%" PRIu64, rec->delay_ms);
    } else if (t == REC_RESULT_REJECTED) {
        say(r, " result rejected");
    } else {
        return false;
    }
    say_text(r, rec->text);
    return true;
}

static void say_step_record(struct rig *r, const struct flat_record *rec)
{
    const enum record_type t = rec->type;
    if (say_asked(r, rec)) {
        return;
    }
    if (t == REC_STEP_STARTED || t == REC_STEP_ASSIGNED) {
        say(r, " %s", t == REC_STEP_STARTED ? "started" : "assigned");
        if (!uuid_is_nil(rec->instance)) {
            say(r, " i%u", rec->instance.b[15]);
        }
        if (rec->phase != PHASE_EXECUTE) {
            say(r, " %s", step_phase_name(rec->phase));
        }
    } else if (t == REC_HANDOFF) {
        say_handoff(r, rec);
    } else if (t == REC_STEP_RETRY) {
        say(r, " retry +%" PRIu64 " %s", rec->delay_ms, err_class_name(rec->error_class));
        say_text(r, rec->text);
    } else if (t == REC_STEP_WAITING) {
        say(r, " waiting %s", review_kind_name(rec->review));
        say_text(r, rec->text);
    } else if (t == REC_REVIEW_DECIDED) {
        say(r, " decided %s", review_decision_name(rec->decision));
        say_text(r, rec->text);
    } else if (t == REC_STEP_UNKNOWN) {
        say(r, " unknown +%" PRIu64, rec->delay_ms);
    } else if (t == REC_STEP_PROGRESS) {
        say(r, " progress");
    } else if (t == REC_STEP_DOUBTED) {
        say(r, " doubted");
    } else {
        say_step_end(r, rec);
    }
}

static void say_record(struct rig *r, const struct record *record)
{
    const struct flat_record all = flat_record(record);
    const struct flat_record *rec = &all;
    char name[65];
    if (say_job(r, rec)) {
        return;
    }
    if (record_about(rec->type) == ABOUT_AGENT) {
        say(r, "%s %s i%u", record_wire_type(rec->type),
            agent_name(r, rec->agent, name, sizeof name), rec->instance.b[15]);
        say_text(r, rec->text);
    } else if (rec->type == REC_PLAN_COMPLETED) {
        say_plan_end(r, rec);
    } else if (rec->type == REC_PLAN_PAUSED || rec->type == REC_PLAN_RESUMED) {
        say(r, "%s %s", record_wire_type(rec->type), pause_reason_name(rec->pause));
        say_text(r, rec->text);
    } else if (rec->type == REC_REVIEW_VOIDED) {
        say(r, "review_voided revision=%u", (unsigned)rec->revision);
    } else if (rec->type == REC_PLAN_MODIFIED) {
        say(r, "plan_modified %s revision=%u", modify_kind_name(rec->modify),
            (unsigned)rec->revision);
        say_text(r, rec->text);
    } else if (rec->type == REC_SIGNAL_RECEIVED) {
        say(r, "signal_received %u", (unsigned)rec->serial);
        say_text(r, rec->text);
    } else if (rec->step == STEP_NONE) {
        say(r, "%s", record_wire_type(rec->type));
        if (rec->type == REC_REVIEW_DECIDED) {
            say(r, " %s", review_decision_name(rec->decision));
        }
        say_text(r, rec->text);
    } else {
        const struct rig_plan *p = rig_plan_of(r, rec->run);
        say(r, "%.*s#%u", STR_ARG(p->plan->steps[rec->step].step_id), (unsigned)rec->attempt);
        say_step_record(r, rec);
    }
}

void rig_say_command(struct rig *r, const struct core_cmd *cmd)
{
    struct instance_view v = {0};
    const struct rig_plan *p = rig_plan_of(r, cmd->run);
    const struct str step = p != NULL && cmd->step < p->plan->n_steps
                                ? p->plan->steps[cmd->step].step_id
                                : STR_LIT("?");
    (void)registry_instance_view(core_registry(r->core), cmd->slot, &v);
    say(r, "[%" PRIu64 "] ", r->now);
    switch (cmd->type) {
    case CMD_RECORD:
        say_record(r, &cmd->rec);
        break;
    case CMD_DISPATCH:
        say(r, "dispatch ");
        if (cmd->phase != PHASE_EXECUTE) {
            say(r, "%s ", step_phase_name(cmd->phase));
        }
        say(r, "%.*s#%u i%u/%u", STR_ARG(step), (unsigned)cmd->attempt, v.id.b[15],
            (unsigned)cmd->lane);
        break;
    case CMD_CANCEL_STEP:
        say(r, "cancel %.*s#%u i%u", STR_ARG(step), (unsigned)cmd->attempt, v.id.b[15]);
        break;
    case CMD_QUERY:
        say(r, "query %.*s#%u i%u", STR_ARG(step), (unsigned)cmd->attempt, v.id.b[15]);
        break;
    case CMD_CONDITION:
        say(r, "condition %.*s#%u", STR_ARG(step), (unsigned)cmd->attempt);
        break;
    case CMD_CHILD:
    case CMD_CHILD_STOP:
    case CMD_CHILD_PAUSE:
    case CMD_CHILD_RESUME:
        say(r, "%schild %.*s#%u/%u",
            cmd->type == CMD_CHILD_STOP     ? "stop "
            : cmd->type == CMD_CHILD_PAUSE  ? "pause "
            : cmd->type == CMD_CHILD_RESUME ? "resume "
                                            : "",
            STR_ARG(step), (unsigned)cmd->attempt, (unsigned)cmd->round);
        break;
    case CMD_COMPENSATE:
        say(r, "compensate");
        break;
    case CMD_SIGNAL:
        say(r, "signal for %.*s", STR_ARG(step));
        break;
    case CMD_REGISTERED:
        say(r, "registered i%u epoch=%" PRIu64, v.id.b[15], cmd->epoch);
        break;
    case CMD_CLOSE:
        say(r, "close epoch=%" PRIu64, cmd->epoch);
        break;
    case CMD_RUN_DONE:
        say(r, "run done");
        break;
    case CMD_KILL:
        say(r, "kill i%u", v.id.b[15]);
        break;
    case CMD_PROBE:
        say(r, "probe i%u", v.id.b[15]);
        break;
    case CMD_JOB:
        say(r, "errand %s#%u", job_kind_name(cmd->job), (unsigned)cmd->attempt);
        say_text(r, cmd->text);
        break;
    case CMD_JOB_STOP:
        say(r, "stop errand %s", job_kind_name(cmd->job));
        break;
    case CMD_REVISED:
        say(r, "revised");
        break;
    case CMD_REJECT:
        say(r, "reject: %s", core_reject_text(cmd->reject));
        break;
    case CORE_CMD_TYPE_COUNT:
        break;
    }
    say(r, "\n");
}

void rig_forget(struct rig *r)
{
    r->trace_len = 0;
    r->trace[0] = '\0';
}

void rig_trace_is(struct rig *r, const char *expected, const char *file, int line)
{
    if (strcmp(r->trace, expected) != 0) {
        (void)fprintf(stderr, "%s:%d: another trace\n--- expected\n%s--- is\n%s---\n", file, line,
                      expected, r->trace);
        abort();
    }
    rig_forget(r);
}
