/* The room's state, and the commands of the core that are about agents. */
#include "supervisor/dispatch/dispatch.h"

#include <stdlib.h>

#include "protocol/base/assert.h"
#include "protocol/base/log.h"
#include "supervisor/dispatch/dispatch_internal.h"

enum bt_code dispatch_new(const struct engine_options *opt, struct link *link,
                          const struct process_hooks *processes, session_job_fn *session_job_over,
                          struct dispatch **ret, struct bt_error *err)
{
    struct dispatch *d = calloc(1, sizeof *d);

    *ret = d;
    if (d != NULL) {
        d->link = link;
        d->processes = *processes;
        d->session_job_over = session_job_over;
        d->instances_max = opt->instances_max;
        d->instances = calloc(opt->instances_max, sizeof(struct lane_instance *));
        d->cards = calloc(opt->agents_max, sizeof *d->cards);
        buf_init(&d->message, LIMIT_STEP_BYTES);
    }
    return d != NULL && d->instances != NULL && d->cards != NULL
               ? BT_OK
               : err_set(err, BT_NOMEM, "out of memory for %u agents", opt->agents_max);
}

struct dispatch *dispatch_of(const struct engine *engine)
{
    return engine_hooks(engine)->dispatch;
}

const struct process_hooks *dispatch_processes(const struct engine *engine)
{
    return &dispatch_of(engine)->processes;
}

uint64_t dispatch_sent(const struct engine *engine)
{
    return dispatch_of(engine)->sent;
}

void dispatch_excuse(struct engine *engine, msec ms)
{
    const struct dispatch *d = dispatch_of(engine);
    const msec now = engine_now(engine);

    for (uint32_t i = 0; i < d->instances_max; i++) {
        if (d->instances[i] != NULL) {
            d->instances[i]->opened +=
                ms < now - d->instances[i]->opened ? ms : now - d->instances[i]->opened;
        }
    }
}

static void kill_process(struct engine *engine, const struct core_cmd *cmd)
{
    const struct process_hooks *processes = dispatch_processes(engine);
    const struct lane_instance *in = lanes_instance(engine, cmd->slot, cmd->epoch);

    if (in != NULL && processes->kill != NULL) {
        log_warn("agent.kill", "instance=%s its work did not stop when it was told to", in->id);
        processes->kill(processes->of, str_from(in->id));
    }
}

/* Its process, if it is ours, must register again: it may hang. */
static void note_lost(struct engine *engine, const struct core_cmd *cmd)
{
    const struct process_hooks *processes = dispatch_processes(engine);
    const struct lane_instance *in = lanes_instance(engine, cmd->slot, cmd->epoch);
    struct uuid id;

    if (in != NULL && processes->lost != NULL && uuid_parse(str_from(in->id), &id) &&
        registry_instance(engine_registry(engine), id) == REGISTRY_NONE) {
        processes->lost(processes->of, str_from(in->id));
    }
}

void dispatch_perform(struct engine *engine, const struct core_cmd *cmd)
{
    switch (cmd->type) {
    case CMD_DISPATCH:
        dispatch_step(engine, cmd);
        break;
    case CMD_CANCEL_STEP:
        lanes_control(engine, cmd, CONTROL_CANCEL);
        break;
    case CMD_QUERY:
        lanes_control(engine, cmd, CONTROL_QUERY);
        break;
    case CMD_CLOSE:
        note_lost(engine, cmd);
        lanes_close(engine, cmd->slot, cmd->epoch);
        break;
    case CMD_PROBE:
        lanes_probe(engine, cmd);
        break;
    case CMD_KILL:
        kill_process(engine, cmd);
        break;
    case CMD_RUN_DONE:
    case CMD_JOB:
    case CMD_JOB_STOP:
    case CMD_REVISED:
    case CMD_RECORD:
    case CMD_SIGNAL:
    case CMD_CONDITION:
    case CMD_CHILD:
    case CMD_CHILD_STOP:
    case CMD_CHILD_PAUSE:
    case CMD_CHILD_RESUME:
    case CMD_COMPENSATE:
    case CMD_REGISTERED:
    case CMD_REJECT:
    case CORE_CMD_TYPE_COUNT:
    default:
        ASSERT(false);
    }
}

void dispatch_on_attempt_over(struct engine *engine, const struct record *rec)
{
    if (rec->agent < registry_agents(engine_registry(engine))) {
        agent_stats_record(&agent_card_of(engine, rec->agent)->agent_stats, rec);
    }
}
