/* Requests of clients and agents: checked, routed, answered once each. */
#include "supervisor/api/api.h"

#include <stdlib.h>

#include "supervisor/api/api_internal.h"
#include "supervisor/api/shards/shards.h"
#include "supervisor/engine/access.h"
#include "supervisor/query/projection.h"

static const struct {
    enum msg_type type, answer;
    request_fn *handle;
    enum role role;
} routes[] = {
#define REQUEST(name, handler, answer, role, sentence)                                             \
    {MSG_##name, MSG_##answer, handler, ROLE_##role},
#include "protocol/messages.def"
};

/* The requests that change nothing, and those that a full disk must not stop. */
static bool is_possible_without_room(enum msg_type type)
{
    static const enum msg_type without[] = {
        MSG_auth_begin,       MSG_agent_heartbeat,   MSG_plan_lint,        MSG_plan_get,
        MSG_plan_list,        MSG_plan_result,       MSG_plan_history,     MSG_plan_stats,
        MSG_plan_cost,        MSG_session_get,       MSG_session_list,     MSG_review_list,
        MSG_review_get,       MSG_events_read,       MSG_blob_get,         MSG_agents_list,
        MSG_agents_get,       MSG_supervisor_info,   MSG_fleet_map,        MSG_supervisor_stats,
        MSG_supervisor_drain, MSG_supervisor_reload, MSG_supervisor_scrub, MSG_journal_backup,
        MSG_journal_export,   MSG_artifact_read,     MSG_artifact_fetch,   MSG_webhook_list,
        MSG_hook_list,
    };

    for (size_t i = 0; i < sizeof without / sizeof without[0]; i++) {
        if (without[i] == type) {
            return true;
        }
    }
    return false;
}

/* Takes the same time wherever the first difference is. */
bool api_token_ok(struct str have, struct str want)
{
    unsigned diff = (unsigned)(have.len ^ want.len);

    for (size_t i = 0; i < want.len; i++) {
        diff |= (unsigned)(uint8_t)want.ptr[i] ^ (i < have.len ? (uint8_t)have.ptr[i] : 0u);
    }
    return diff == 0 && want.len > 0;
}

enum role api_role_of(enum msg_type type)
{
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (routes[i].type == type) {
            return routes[i].role;
        }
    }
    return ROLE_COUNT;
}

bool api_token_proves(const struct engine *engine, struct str token)
{
    const struct engine_options *opt = engine_options(engine);

    return !opt->auth_required && api_token_ok(token, opt->token);
}

/* The handler of the request; NULL when there is none of its type. Notes the type of its answer. */
static request_fn *route(struct request *rq)
{
    enum msg_type type = msg_type_from_wire(rq->env.type);

    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (routes[i].type == type) {
            rq->answer = routes[i].answer;
            return routes[i].handle;
        }
    }
    return NULL;
}

/* `sender` in the details: it is not what is asked for that is refused, but who asks. */
void api_refuse_token(struct engine *engine, struct request *rq)
{
    struct buf details;
    struct bt_error err;

    api_failed(engine);
    if (engine_options(engine)->auth_required) {
        (void)err_set(&err, BT_UNAUTHORIZED,
                      "this daemon wants a credential (auth: required): begin a session with "
                      "auth.begin; the command line has --credential FILE");
    } else {
        (void)err_set(&err, BT_UNAUTHORIZED, "%s; it is in the file `token` of the state directory",
                      rq->env.token.len == 0 ? "token is missing" : "token is wrong");
    }
    buf_init(&details, 64);
    doc_put_map(&details, 1);
    doc_put_cstr(&details, "sender");
    doc_put_cstr(&details, "token");
    request_refuse(engine, rq, &err, CLASS_NONE, 0, doc_from_buf(&details));
    buf_done(&details);
}

void api_refuse_size(struct engine *engine, struct request *rq)
{
    request_refuse_text(engine, rq, BT_LIMIT,
                        "a request is at most %u bytes (a late step.result %u), got %zu",
                        LIMIT_CONTROL_BYTES, LIMIT_STEP_BYTES, rq->bytes);
}

/* The sender: of its session, of the token, or of a handshake, nobody yet. False: refused. */
static bool find_sender(struct engine *engine, struct request *rq)
{
    if (rq->who == NULL && api_token_proves(engine, rq->env.token)) {
        rq->who = identity_local();
    } else if (rq->who == NULL && str_is(rq->env.type, "auth.begin")) {
        rq->who = identity_nobody();
    } else if (rq->who == NULL) {
        api_refuse_token(engine, rq);
    }
    return rq->who != NULL;
}

/* Decisions and what admins do are noted; a check of the journal, and the question how far a copy
 * is, do nothing. */
static void note(struct engine *engine, const struct request *rq, enum role need)
{
    static const char *const names[] = {"reviewId", "planId", "sessionId", "agentId", "file"};
    const struct doc body = {rq->reader.body, rq->reader.len};
    struct str about = {"", 0};

    if ((need != ROLE_REVIEWER && need != ROLE_ADMIN) || rq->refused == BT_UNAUTHORIZED ||
        str_is(rq->env.type, "supervisor.scrub")) {
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0] && about.len == 0; i++) {
        about = doc_string(doc_get(body, str_from(names[i])));
    }
    if (about.len > 0 || !str_is(rq->env.type, "journal.backup")) {
        access_note(engine, need == ROLE_REVIEWER ? AUDIT_DECISION : AUDIT_ADMIN, rq->who,
                    rq->env.type, about, rq->refused,
                    doc_string(doc_get(body, STR_LIT("decision"))));
    }
}

static void check_and_route(struct engine *engine, struct request *rq)
{
    struct bt_error err;
    request_fn *handle;
    enum role need;

    if (msg_read(&rq->reader, MSG_envelope, &rq->env, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_PROTOCOL_ERROR, 0, (struct doc){NULL, 0});
        return;
    }
    if (rq->env.v != 1) {
        request_refuse_text(engine, rq, BT_INVALID,
                            "protocol version %llu is not supported; supported: 1",
                            (unsigned long long)rq->env.v);
        return;
    }
    if (!find_sender(engine, rq)) {
        return;
    }
    if (rq->bytes > LIMIT_CONTROL_BYTES && !str_is(rq->env.type, "step.result")) {
        api_refuse_size(engine, rq);
        return;
    }
    handle = route(rq);
    if (handle == NULL) {
        request_refuse_text(engine, rq, BT_INVALID, "unknown request type '%.*s'",
                            STR_ARG(rq->env.type));
        return;
    }
    need = api_role_of(msg_type_from_wire(rq->env.type));
    if (!access_role_does(rq->who->role, need)) {
        access_refuse_role(engine, rq, need);
        return;
    }
    if (engine_is_stalled(engine) && !is_possible_without_room(msg_type_from_wire(rq->env.type))) {
        (void)engine_room_error(engine, true, &err);
        request_refuse(engine, rq, &err, CLASS_NONE, engine_room_wait_ms(), (struct doc){NULL, 0});
        return;
    }
    if (!shards_have(engine, rq)) {
        return;
    }
    engine_act_for(engine, rq->who);
    if (need == ROLE_AGENT) {
        engine_act_by(engine, (struct str){"", 0}); /* agents report, they do not order */
    }
    handle(engine, rq);
    note(engine, rq, need);
    engine_act_for(engine, NULL);
}

void api_handle(struct engine *engine, uint64_t handle, struct str bytes)
{
    struct request rq = {.handle = handle, .bytes = bytes.len};
    struct str body = bytes;
    struct bt_error err;

    if (seal_is_sealed(bytes) && !api_reopen_sealed(engine, &rq, bytes, &body)) {
        return;
    }
    rq.bytes = body.len;
    if (msg_reader_init(&rq.reader, body.ptr, body.len, LIMIT_STEP_BYTES, &err) != BT_OK) {
        request_refuse(engine, &rq, &err, CLASS_PROTOCOL_ERROR, 0, (struct doc){NULL, 0});
    } else {
        check_and_route(engine, &rq);
    }
    msg_reader_done(&rq.reader);
}

/* ---- the room's state ---- */

enum bt_code api_new(struct api **ret, struct bt_error *err)
{
    enum bt_code code;

    *ret = calloc(1, sizeof **ret);
    if (*ret == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for parked reads");
    }
    code = projections_new(&(*ret)->projections, err);
    code = code == BT_OK ? transfer_new(&(*ret)->transfer, err) : code;
    return code == BT_OK ? arriving_new(&(*ret)->arriving, err) : code;
}

struct projections *api_projections(const struct api *api)
{
    return api->projections;
}

struct api *api_of(const struct engine *engine)
{
    return engine_hooks(engine)->api;
}

const struct uuid *api_take_registered(struct api *api, uint32_t *ret_n)
{
    *ret_n = api->registered_n;
    api->registered_n = 0;
    return api->registered;
}

bool api_stop_asked(const struct api *api)
{
    return api->stop_asked;
}

msec api_stop_grace(const struct api *api, msec otherwise)
{
    return api->stop_grace_ms == MSEC_NEVER ? otherwise : api->stop_grace_ms;
}
