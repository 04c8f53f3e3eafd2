/* agents.start, agents.stop, agents.restart: what operators want of agent processes. */
#include "supervisor/api/api_internal.h"
#include "supervisor/dispatch/dispatch.h"

static void order(struct engine *engine, struct request *rq, const struct process_order *o)
{
    const struct process_hooks *processes = dispatch_processes(engine);
    struct msg_agents_order_ok ok = {.processes_n = 0};
    struct str names[PROCESS_NAMES_MAX];
    struct process_names found;
    struct bt_error err;

    if (processes->order == NULL) {
        request_refuse_text(engine, rq, BT_UNAVAILABLE, "this supervisor starts no processes");
        return;
    }
    if (processes->order(processes->of, o, &found, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
        return;
    }
    for (uint32_t i = 0; i < found.n; i++) {
        names[i] = str_from(found.at[i]);
    }
    ok.processes = names;
    ok.processes_n = found.n;
    request_answer(engine, rq, MSG_agents_order_ok, &ok);
}

void on_agents_start(struct engine *engine, struct request *rq)
{
    struct msg_agents_start m;

    if (request_read(engine, rq, MSG_agents_start, &m)) {
        order(engine, rq,
              &(struct process_order){
                  .verb = PROCESS_START, .agent_id = m.agent_id, .process = m.process});
    }
}

void on_agents_stop(struct engine *engine, struct request *rq)
{
    struct msg_agents_stop m;

    if (request_read(engine, rq, MSG_agents_stop, &m)) {
        order(engine, rq,
              &(struct process_order){.verb = PROCESS_STOP,
                                      .agent_id = m.agent_id,
                                      .process = m.process,
                                      .at_once = m.now});
    }
}

void on_agents_restart(struct engine *engine, struct request *rq)
{
    struct msg_agents_restart m;

    if (request_read(engine, rq, MSG_agents_restart, &m)) {
        order(engine, rq,
              &(struct process_order){.verb = PROCESS_RESTART,
                                      .agent_id = m.agent_id,
                                      .process = m.process,
                                      .at_once = m.now});
    }
}
