/*
 * The requests of clients and agents: one handler each, routed by the table in api.c. A handler
 * reads the body, refuses with a sentence, feeds the core or reads the journal, and answers.
 */
#ifndef API_API_H
#define API_API_H

#include "supervisor/engine/request.h"

struct api;

BT_MUST_CHECK enum bt_code api_new(struct api **ret, struct bt_error *err);
struct api *api_of(const struct engine *engine);

/* ---- hooks of the engine ---- */
void api_on_request(struct engine *engine, uint64_t handle, struct str bytes);
/* Answers parked reads that have something now (`committed`: rows were written), or whose time is
 * over. */
void api_after_commit(struct engine *engine, bool committed);

/* ---- for the daemon ---- */
/* The instances that have registered since the last call: their processes are ready. Valid until
 * the next cycle. */
const struct uuid *api_take_registered(struct api *api, uint32_t *ret_n);
/* supervisor.drain was asked for. */
bool api_stop_asked(const struct api *api);

/* ---- between the handlers ---- */
typedef void (*request_fn)(struct engine *engine, struct request *rq);
/* The document of a revision of the plan, in the arena. BT_NOT_FOUND: no such plan or revision. */
BT_MUST_CHECK enum bt_code request_document(struct engine *engine, struct str plan_id,
                                            uint64_t revision, struct arena *arena, struct doc *ret,
                                            struct bt_error *err);
/* Why a plan cannot be paused, resumed or changed now, when the core rejects with NOT_WAITING;
 * otherwise: when there is no better reason. */
const char *request_why_not(const struct open_plan *p, const char *otherwise);
/* The live instance that a request speaks for; NULL after refusing. */
struct lane_instance *request_instance(struct engine *engine, struct request *rq,
                                       struct str instance_id, uint64_t epoch);
/* The kinds of plan.modify that bring new steps. Answers. */
void api_revise(struct engine *engine, struct request *rq, struct open_plan *p,
                const struct msg_plan_modify *m, enum modify_kind kind, uint32_t expect);

void on_agent_register(struct engine *engine, struct request *rq);
void on_agent_heartbeat(struct engine *engine, struct request *rq);
void on_agent_drain(struct engine *engine, struct request *rq);
void on_agent_deregister(struct engine *engine, struct request *rq);
void on_step_progress(struct engine *engine, struct request *rq);
void on_step_result(struct engine *engine, struct request *rq);
void on_plan_submit(struct engine *engine, struct request *rq);
void on_plan_lint(struct engine *engine, struct request *rq);
void on_plan_cancel(struct engine *engine, struct request *rq);
void on_plan_pause(struct engine *engine, struct request *rq);
void on_plan_resume(struct engine *engine, struct request *rq);
void on_plan_modify(struct engine *engine, struct request *rq);
void on_plan_retry(struct engine *engine, struct request *rq);
void on_plan_fork(struct engine *engine, struct request *rq);
void on_plan_get(struct engine *engine, struct request *rq);
void on_plan_list(struct engine *engine, struct request *rq);
void on_plan_result(struct engine *engine, struct request *rq);
void on_plan_history(struct engine *engine, struct request *rq);
void on_plan_stats(struct engine *engine, struct request *rq);
void on_plan_cost(struct engine *engine, struct request *rq);
void on_review_list(struct engine *engine, struct request *rq);
void on_review_decide(struct engine *engine, struct request *rq);
void on_events_read(struct engine *engine, struct request *rq);
void on_blob_get(struct engine *engine, struct request *rq);
void on_agents_list(struct engine *engine, struct request *rq);
void on_agents_get(struct engine *engine, struct request *rq);
void on_agents_drain(struct engine *engine, struct request *rq);
void on_agents_enable(struct engine *engine, struct request *rq);
void on_session_say(struct engine *engine, struct request *rq);
void on_session_get(struct engine *engine, struct request *rq);
void on_session_list(struct engine *engine, struct request *rq);
void on_supervisor_info(struct engine *engine, struct request *rq);
void on_supervisor_stats(struct engine *engine, struct request *rq);
void on_supervisor_drain(struct engine *engine, struct request *rq);
#endif
