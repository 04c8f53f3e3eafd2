#include "tests/unit/core/run/flat_record.h"

static void to_flat_1(const struct record *rec, struct flat_record *flat)
{
    switch ((unsigned)record_member(rec->type)) {
    case RECORD_assigned:
        flat->instance = REC(rec, assigned)->instance;
        flat->process = REC(rec, assigned)->process;
        flat->epoch = REC(rec, assigned)->epoch;
        flat->phase = REC(rec, assigned)->phase;
        flat->delay_ms = REC(rec, assigned)->delay_ms;
        break;
    case RECORD_timed:
        flat->delay_ms = REC(rec, timed)->delay_ms;
        break;
    case RECORD_planning_retry:
        flat->n = REC(rec, planning_retry)->n;
        flat->result = REC(rec, planning_retry)->result;
        break;
    case RECORD_planning_failed:
        flat->failure = REC(rec, planning_failed)->failure;
        break;
    case RECORD_revision:
        flat->revision = REC(rec, revision)->revision;
        flat->result = REC(rec, revision)->result;
        flat->modify = REC(rec, revision)->modify;
        flat->ok = REC(rec, revision)->ok;
        break;
    case RECORD_handoff:
        flat->handoff = REC(rec, handoff)->kind;
        flat->from_agent = REC(rec, handoff)->from_agent;
        break;
    case RECORD_progress:
        flat->n = REC(rec, progress)->n;
        flat->percent = REC(rec, progress)->percent;
        flat->data = REC(rec, progress)->data;
        break;
    case RECORD_retry:
        flat->error_class = REC(rec, retry)->error_class;
        flat->delay_ms = REC(rec, retry)->delay_ms;
        flat->asked = REC(rec, retry)->asked;
        break;
    case RECORD_waiting:
        flat->review = REC(rec, waiting)->review;
        flat->error_class = REC(rec, waiting)->error_class;
        flat->delay_ms = REC(rec, waiting)->delay_ms;
        flat->data = REC(rec, waiting)->data;
        flat->serial = REC(rec, waiting)->serial;
        break;
    case RECORD_decided:
        flat->review = REC(rec, decided)->review;
        flat->decision = REC(rec, decided)->decision;
        flat->serial = REC(rec, decided)->serial;
        flat->revision = REC(rec, decided)->revision;
        flat->n = REC(rec, decided)->digest << 1;
        flat->result = REC(rec, decided)->result;
        break;
    case RECORD_gate:
        flat->data = REC(rec, gate)->data;
        break;
    case RECORD_fallback:
        flat->fallback = REC(rec, fallback)->action;
        flat->error_class = REC(rec, fallback)->error_class;
        flat->delay_ms = REC(rec, fallback)->delay_ms;
        flat->asked = REC(rec, fallback)->asked;
        break;
    default:
        break;
    }
}

static void to_flat_2(const struct record *rec, struct flat_record *flat)
{
    switch ((unsigned)record_member(rec->type)) {
    case RECORD_replan_started:
        flat->error_class = REC(rec, replan_started)->error_class;
        flat->revision = REC(rec, replan_started)->revision;
        flat->n = REC(rec, replan_started)->n;
        flat->delay_ms = REC(rec, replan_started)->delay_ms;
        break;
    case RECORD_step_completed:
        flat->status = REC(rec, step_completed)->status;
        flat->reason = REC(rec, step_completed)->reason;
        flat->error_class = REC(rec, step_completed)->error_class;
        flat->stop = REC(rec, step_completed)->stop;
        flat->doubt = REC(rec, step_completed)->doubt;
        flat->result = REC(rec, step_completed)->result;
        flat->serial = REC(rec, step_completed)->signal;
        flat->duration_ms = REC(rec, step_completed)->duration_ms;
        flat->instance = REC(rec, step_completed)->instance;
        flat->epoch = REC(rec, step_completed)->epoch;
        break;
    case RECORD_pause:
        flat->pause = REC(rec, pause)->reason;
        flat->delay_ms = REC(rec, pause)->delay_ms;
        flat->serial = REC(rec, pause)->serial;
        flat->revision = REC(rec, pause)->revision;
        break;
    case RECORD_synthesis_started:
        flat->plan_status = REC(rec, synthesis_started)->status;
        flat->outcome = REC(rec, synthesis_started)->outcome;
        flat->failure = REC(rec, synthesis_started)->failure;
        flat->delay_ms = REC(rec, synthesis_started)->delay_ms;
        break;
    case RECORD_text_delta:
        flat->n = REC(rec, text_delta)->n;
        break;
    case RECORD_synthesis_finished:
        flat->ok = REC(rec, synthesis_finished)->ok;
        flat->result = REC(rec, synthesis_finished)->result;
        break;
    case RECORD_plan_completed:
        flat->plan_status = REC(rec, plan_completed)->status;
        flat->outcome = REC(rec, plan_completed)->outcome;
        flat->failure = REC(rec, plan_completed)->failure;
        flat->duration_ms = REC(rec, plan_completed)->duration_ms;
        flat->result = REC(rec, plan_completed)->result;
        break;
    case RECORD_agent:
        flat->instance = REC(rec, agent)->instance;
        flat->epoch = REC(rec, agent)->epoch;
        flat->capacity = REC(rec, agent)->capacity;
        flat->pid = REC(rec, agent)->pid;
        break;
    case RECORD_turn_end:
        flat->duration_ms = REC(rec, turn_end)->duration_ms;
        break;
    case RECORD_supervisor:
        flat->pid = REC(rec, supervisor)->pid;
        break;
    case RECORD_child:
        flat->n = REC(rec, child)->round;
        break;
    case RECORD_compensated:
        flat->ok = REC(rec, compensated)->ok;
        flat->n = REC(rec, compensated)->done;
        flat->serial = REC(rec, compensated)->failed;
        break;
    case RECORD_round:
        flat->n = REC(rec, round)->n;
        flat->result = REC(rec, round)->result;
        flat->delay_ms = REC(rec, round)->delay_ms;
        break;
    case RECORD_turn:
        flat->n = REC(rec, turn)->n;
        flat->serial = REC(rec, turn)->calls;
        flat->result = REC(rec, turn)->result;
        break;
    case RECORD_damaged: /* is in no trace */
    case RECORD_rewound:
        break;
    case RECORD_condition:
        flat->ok = !REC(rec, condition)->failed;
        break;
    case RECORD_signal:
        flat->serial = REC(rec, signal)->serial;
        flat->result = REC(rec, signal)->result;
        break;
    case RECORD_checking:
        flat->phase = REC(rec, checking)->phase;
        flat->result = REC(rec, checking)->result;
        flat->delay_ms = REC(rec, checking)->delay_ms;
        break;
    default:
        break;
    }
}

struct flat_record flat_record(const struct record *rec)
{
    struct flat_record flat = {.type = rec->type,
                               .run = rec->run,
                               .now = rec->now,
                               .wall = rec->wall,
                               .step = rec->step,
                               .attempt = rec->attempt,
                               .agent = rec->agent,
                               .usage = rec->usage,
                               .text = rec->text};
    to_flat_1(rec, &flat);
    to_flat_2(rec, &flat);
    return flat;
}

static void from_flat_1(const struct flat_record *flat, struct record *rec)
{
    switch ((unsigned)record_member(rec->type)) {
    case RECORD_assigned:
        *REC(rec, assigned) = (struct rec_assigned){.instance = flat->instance,
                                                    .process = flat->process,
                                                    .epoch = flat->epoch,
                                                    .phase = flat->phase,
                                                    .delay_ms = flat->delay_ms};
        break;
    case RECORD_timed:
        *REC(rec, timed) = (struct rec_timed){.delay_ms = flat->delay_ms};
        break;
    case RECORD_planning_retry:
        *REC(rec, planning_retry) =
            (struct rec_planning_retry){.n = flat->n, .result = flat->result};
        break;
    case RECORD_planning_failed:
        *REC(rec, planning_failed) = (struct rec_planning_failed){.failure = flat->failure};
        break;
    case RECORD_revision:
        *REC(rec, revision) = (struct rec_revision){.revision = flat->revision,
                                                    .result = flat->result,
                                                    .modify = flat->modify,
                                                    .ok = flat->ok};
        break;
    case RECORD_handoff:
        *REC(rec, handoff) =
            (struct rec_handoff){.kind = flat->handoff, .from_agent = flat->from_agent};
        break;
    case RECORD_progress:
        *REC(rec, progress) =
            (struct rec_progress){.n = flat->n, .percent = flat->percent, .data = flat->data};
        break;
    case RECORD_retry:
        *REC(rec, retry) = (struct rec_retry){
            .error_class = flat->error_class, .delay_ms = flat->delay_ms, .asked = flat->asked};
        break;
    case RECORD_waiting:
        *REC(rec, waiting) = (struct rec_waiting){.review = flat->review,
                                                  .error_class = flat->error_class,
                                                  .delay_ms = flat->delay_ms,
                                                  .data = flat->data,
                                                  .serial = flat->serial};
        break;
    case RECORD_decided:
        *REC(rec, decided) = (struct rec_decided){.review = flat->review,
                                                  .decision = flat->decision,
                                                  .serial = flat->serial,
                                                  .revision = flat->revision,
                                                  .digest = flat->n >> 1,
                                                  .result = flat->result};
        break;
    case RECORD_gate:
        *REC(rec, gate) = (struct rec_gate){.data = flat->data};
        break;
    case RECORD_fallback:
        *REC(rec, fallback) = (struct rec_fallback){.action = flat->fallback,
                                                    .error_class = flat->error_class,
                                                    .delay_ms = flat->delay_ms,
                                                    .asked = flat->asked};
        break;
    default:
        break;
    }
}

static void from_flat_2(const struct flat_record *flat, struct record *rec)
{
    switch ((unsigned)record_member(rec->type)) {
    case RECORD_replan_started:
        *REC(rec, replan_started) = (struct rec_replan_started){.error_class = flat->error_class,
                                                                .revision = flat->revision,
                                                                .n = flat->n,
                                                                .delay_ms = flat->delay_ms};
        break;
    case RECORD_step_completed:
        *REC(rec, step_completed) = (struct rec_step_completed){.status = flat->status,
                                                                .reason = flat->reason,
                                                                .error_class = flat->error_class,
                                                                .stop = flat->stop,
                                                                .doubt = flat->doubt,
                                                                .signal = flat->serial,
                                                                .result = flat->result,
                                                                .duration_ms = flat->duration_ms,
                                                                .instance = flat->instance,
                                                                .epoch = flat->epoch};
        break;
    case RECORD_pause:
        *REC(rec, pause) = (struct rec_pause){.reason = flat->pause,
                                              .delay_ms = flat->delay_ms,
                                              .serial = flat->serial,
                                              .revision = flat->revision};
        break;
    case RECORD_synthesis_started:
        *REC(rec, synthesis_started) = (struct rec_synthesis_started){.status = flat->plan_status,
                                                                      .outcome = flat->outcome,
                                                                      .failure = flat->failure,
                                                                      .delay_ms = flat->delay_ms};
        break;
    case RECORD_text_delta:
        *REC(rec, text_delta) = (struct rec_text_delta){.n = flat->n};
        break;
    case RECORD_synthesis_finished:
        *REC(rec, synthesis_finished) =
            (struct rec_synthesis_finished){.ok = flat->ok, .result = flat->result};
        break;
    case RECORD_plan_completed:
        *REC(rec, plan_completed) = (struct rec_plan_completed){.status = flat->plan_status,
                                                                .outcome = flat->outcome,
                                                                .failure = flat->failure,
                                                                .duration_ms = flat->duration_ms,
                                                                .result = flat->result};
        break;
    case RECORD_agent:
        *REC(rec, agent) = (struct rec_agent){.instance = flat->instance,
                                              .epoch = flat->epoch,
                                              .capacity = flat->capacity,
                                              .pid = flat->pid};
        break;
    case RECORD_turn_end:
        *REC(rec, turn_end) = (struct rec_turn_end){.duration_ms = flat->duration_ms};
        break;
    case RECORD_supervisor:
        *REC(rec, supervisor) = (struct rec_supervisor){.pid = flat->pid};
        break;
    case RECORD_child:
        REC(rec, child)->round = (uint32_t)flat->n;
        break;
    case RECORD_compensated:
        *REC(rec, compensated) = (struct rec_compensated){
            .ok = flat->ok, .done = (uint32_t)flat->n, .failed = flat->serial};
        break;
    case RECORD_turn:
        *REC(rec, turn) = (struct rec_turn){
            .n = (uint32_t)flat->n, .calls = flat->serial, .result = flat->result};
        break;
    case RECORD_round:
        *REC(rec, round) = (struct rec_round){
            .n = (uint32_t)flat->n, .result = flat->result, .delay_ms = flat->delay_ms};
        break;
    case RECORD_damaged:
    case RECORD_rewound:
        break;
    case RECORD_condition:
        REC(rec, condition)->failed = !flat->ok;
        break;
    case RECORD_signal:
        *REC(rec, signal) = (struct rec_signal){.serial = flat->serial, .result = flat->result};
        break;
    case RECORD_checking:
        *REC(rec, checking) = (struct rec_checking){
            .phase = flat->phase, .result = flat->result, .delay_ms = flat->delay_ms};
        break;
    default:
        break;
    }
}

struct record record_of_flat(const struct flat_record *flat)
{
    struct record rec = {.type = flat->type,
                         .run = flat->run,
                         .now = flat->now,
                         .wall = flat->wall,
                         .step = flat->step,
                         .attempt = flat->attempt,
                         .agent = flat->agent,
                         .usage = flat->usage,
                         .text = flat->text};
    from_flat_1(flat, &rec);
    from_flat_2(flat, &rec);
    return rec;
}
