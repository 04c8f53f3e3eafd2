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
/* What query keeps between reads, for the engine's hooks. */
struct projections *api_projections(const struct api *api);

/* ---- hooks of the engine ---- */
void api_on_request(struct engine *engine, uint64_t handle, struct str bytes);
/* The same while the journal waits for its server: answered now, and most are refused. */
void api_on_request_meanwhile(struct engine *engine, uint64_t handle, struct str bytes);
/* Once in a cycle, after its input: handles what was put off, as far as the time goes. */
void api_take_turns(struct engine *engine);
/* Something waits for its turn: the next cycle begins at once. */
bool api_is_behind(const struct api *api);
/* Answers parked reads that have something now (`committed`: rows were written), or whose time is
 * over. */
void api_after_commit(struct engine *engine, bool committed);

/* ---- for the daemon ---- */
/* The instances that have registered since the last call: their processes are ready. Valid until
 * the next cycle. */
const struct uuid *api_take_registered(struct api *api, uint32_t *ret_n);
/* supervisor.drain was asked for. */
bool api_stop_asked(const struct api *api);
/* Its graceMs; `otherwise` when it gave none. */
msec api_stop_grace(const struct api *api, msec otherwise);

/* ---- between the handlers ---- */
/* The document of a revision of the plan, in the arena. BT_NOT_FOUND: no such plan or revision. */
BT_MUST_CHECK enum bt_code request_document(struct engine *engine, struct str plan_id,
                                            uint64_t revision, struct arena *arena, struct doc *ret,
                                            struct bt_error *err);
/* What plan.get has beyond the rows; of an open plan also what the steps from..to-1 wait for. */
struct projection;
BT_MUST_CHECK bool request_fill_view(struct engine *engine, struct projection *s, uint32_t from,
                                     uint32_t to);
/* Why a plan cannot be paused, resumed or changed now, when the core rejects with NOT_WAITING;
 * otherwise: when there is no better reason. */
const char *request_why_not(const struct open_plan *p, const char *otherwise);
/* The live instance that a request speaks for; NULL after refusing. */
struct lane_instance *request_instance(struct engine *engine, struct request *rq,
                                       struct str instance_id, uint64_t epoch);
/* Lists show who is there, who belongs there (the configuration names it, or an operator took it
 * out of service), and who is waited for. */
bool agent_is_shown(const struct engine *engine, uint32_t agent);
/* The kinds of plan.modify that bring new steps. Answers. */
void api_revise(struct engine *engine, struct request *rq, struct open_plan *p,
                const struct msg_plan_modify *m, enum modify_kind kind, uint32_t expect);

/* The handlers, one per REQUEST of messages.def. Each answers rq once: at once, or later when it
 * parks rq. */
typedef void request_fn(struct engine *engine, struct request *rq);
#define REQUEST(name, handler, answer, role, sentence) request_fn handler;
#include "protocol/messages.def"
#endif
