/*
 * The order in which requests are handled, from their first bytes: those of agents as they come, so
 * that no lease is lost to a flood of clients, but for bytes of files; then short requests, large
 * ones, and long reads, which go on over cycles. Each turn has its time in a cycle, and at least
 * one request when it waits: nobody starves.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/base/utf8.h"
#include "supervisor/api/api_internal.h"
#include "supervisor/auth/sessions.h"
#include "supervisor/engine/access.h"
#include "supervisor/query/projection.h"

enum {
    PEEK_BYTES = 4096, /* a request that is longer has to name its type and token in these */
    SOON_MS = 30,
    LARGE_MS = 10,
    READ_US = 5000,
    /* The others would have no context left; BUSY is answered at once. */
    LARGE_WAITING = 64,
    READS_WAITING = 96,
    SCANS_WAITING = 48,
    AWAY_MS = 5000 /* the lease of a daemon of a fleet, and the time of another one to lead */
};

static const uint32_t waiting_max[TURN_COUNT] = {[TURN_SOON] = ENGINE_CONTEXTS,
                                                 [TURN_LARGE] = LARGE_WAITING,
                                                 [TURN_READ] = READS_WAITING,
                                                 [TURN_SCAN] = SCANS_WAITING};

/* What reads many rows; of_plan: all of them of one plan, in its projection. The others scan: one
 * that takes long must not hold up those of a plan. */
static const struct {
    enum msg_type type;
    bool of_plan;
} long_reads[] = {
    {MSG_plan_get, true},        {MSG_plan_result, true},    {MSG_plan_history, true},
    {MSG_plan_stats, true},      {MSG_plan_retry, true},     {MSG_plan_fork, true},
    {MSG_plan_list, false},      {MSG_plan_cost, false},     {MSG_events_read, false},
    {MSG_journal_export, false}, {MSG_blob_get, false},      {MSG_session_get, false},
    {MSG_session_list, false},   {MSG_artifact_read, false}, {MSG_artifact_fetch, false},
};

static bool is_long_read(enum msg_type type, bool *ret_plan)
{
    for (size_t i = 0; i < sizeof long_reads / sizeof long_reads[0]; i++) {
        if (long_reads[i].type == type) {
            *ret_plan = long_reads[i].of_plan;
            return true;
        }
    }
    return false;
}

static enum turn turn_of(const struct msg_peek *peek, size_t len, bool *ret_plan)
{
    const enum msg_type type = msg_type_from_wire(peek->type);

    *ret_plan = false;
    if (type == MSG_artifact_store || type == MSG_plans_submit) { /* many, however short they are */
        return TURN_LARGE;
    }
    if (api_role_of(type) == ROLE_AGENT && type != MSG_artifact_fetch) {
        return TURN_NOW;
    }
    if (is_long_read(type, ret_plan)) {
        return *ret_plan ? TURN_READ : TURN_SCAN;
    }
    return len > PEEK_BYTES ? TURN_LARGE : TURN_SOON;
}

/* ---- what is refused before it is read ---- */

static struct request request_of(uint64_t handle, size_t len, const struct msg_peek *peek,
                                 const struct seal *seal)
{
    struct request rq = {
        .handle = handle, .bytes = len, .reader = {.form = peek->form}, .seal = *seal};

    rq.env.token = peek->token;
    if (peek->id.len <= 64 && utf8_valid(peek->id.ptr, peek->id.len)) {
        rq.env.id = peek->id;
    }
    return rq;
}

/* From the first bytes: the sender has proved who he is. A later check names the defect. */
static bool is_known(struct engine *engine, const struct msg_peek *peek, const struct seal *seal)
{
    return seal->n != 0 || api_token_proves(engine, peek->token);
}

/* A long body of a stranger, and one that is larger than any but an agent's result. True: it was
 * refused. */
static bool refused(struct engine *engine, uint64_t handle, size_t len, const struct msg_peek *peek,
                    const struct seal *seal)
{
    const bool known = is_known(engine, peek, seal);
    struct request rq = request_of(handle, len, peek, seal);

    if (len <= PEEK_BYTES) {
        return false; /* the reader costs little, and names the defect */
    }
    if (!known && (peek->token.len > 0 || peek->whole)) {
        api_refuse_token(engine, &rq);
        return true;
    }
    if (len > LIMIT_CONTROL_BYTES && !(known && str_is(peek->type, "step.result"))) {
        api_refuse_size(engine, &rq);
        return true;
    }
    return false;
}

/* Whether the sender may see the plan, so that its rows are read before its turn: none are for a
 * stranger, for another submitter or for an agent. */
static bool sees_plan(struct engine *engine, const struct seal *seal, struct str token,
                      struct str plan_id)
{
    const struct identity *who = identity_local();
    struct journal_plan row;
    struct bt_error err;
    struct uuid id;

    if (seal->n != 0) {
        who = sessions_who(engine_options(engine)->sessions, seal, engine_wall(engine));
    } else if (!api_token_proves(engine, token)) {
        return false;
    }
    if (who == NULL || access_sees_all(who)) {
        return who != NULL;
    }
    return who->role == ROLE_SUBMITTER && uuid_parse(plan_id, &id) &&
           journal_plan_by_id(engine_journal(engine), id, &row, &err) == BT_OK &&
           access_sees(who, row.owner);
}

/* ---- the turns ---- */

static void put_off(struct engine *engine, uint64_t handle, enum turn turn, struct str plan_id)
{
    struct put_off_queue *q = &api_of(engine)->turns[turn];
    struct put_off *p = &q->at[(q->first + q->n++) % ENGINE_CONTEXTS];

    *p = (struct put_off){.handle = handle, .msg = engine_put_off(engine)};
    if (plan_id.len == UUID_TEXT_LEN) {
        memcpy(p->plan_id, plan_id.ptr, plan_id.len);
    }
}

void api_on_request(struct engine *engine, uint64_t handle, struct str bytes)
{
    struct seal seal = {.n = 0};
    struct str body = bytes;
    struct msg_peek peek;
    enum turn turn;
    bool of_plan;

    if (seal_is_sealed(bytes) && !api_open_sealed(engine, handle, bytes, &seal, &body)) {
        return;
    }
    peek = msg_peek(body.ptr, body.len, PEEK_BYTES);
    turn = turn_of(&peek, body.len, &of_plan);
    if (refused(engine, handle, body.len, &peek, &seal)) {
        return;
    }
    if (seal.n != 0) {
        struct request rq = request_of(handle, body.len, &peek, &seal);
        if (!api_within_quotas(engine, &rq, bytes.len)) {
            return;
        }
    }
    if (turn == TURN_NOW) {
        api_handle(engine, handle, bytes);
    } else if (api_of(engine)->turns[turn].n >= waiting_max[turn]) {
        struct request rq = request_of(handle, body.len, &peek, &seal);
        request_refuse_text(engine, &rq, BT_BUSY, "%u requests of this kind wait already",
                            waiting_max[turn]);
    } else {
        of_plan = of_plan && sees_plan(engine, &seal, peek.token, peek.plan_id);
        put_off(engine, handle, turn, of_plan ? peek.plan_id : (struct str){NULL, 0});
    }
}

/* An agent that knows several daemons looks for the next one when it hears nothing for a lease: one
 * may lead by now. */
static bool is_let_go(struct engine *engine, uint64_t handle, enum msg_type type)
{
    return api_role_of(type) == ROLE_AGENT && engine_is_remote(handle) &&
           engine_away_ms(engine) > AWAY_MS && engine_answer_later(engine);
}

/* It is opened when it is taken up: its number is valid once. Only a session that has proved itself
 * may leave requests here. */
static bool is_sealed_let_go(struct engine *engine, uint64_t handle, struct str bytes)
{
    struct sessions *sessions = engine_options(engine)->sessions;
    struct seal seal = {.n = 0};
    struct str body;

    return sessions != NULL && seal_read(bytes, &seal, &body) &&
           sessions_who(sessions, &seal, engine_wall(engine)) != NULL &&
           is_let_go(engine, handle,
                     msg_type_from_wire(msg_peek(body.ptr, body.len, PEEK_BYTES).type));
}

/* `storage` tells a client that knows other nodes to ask whether one of them leads. */
static void refuse_away(struct engine *engine, struct request *rq)
{
    struct buf details;
    struct bt_error err;

    (void)err_set(&err, BT_UNAVAILABLE,
                  "storage_unavailable: the journal's server does not answer; nothing was begun, "
                  "ask again");
    buf_init(&details, LIMIT_ID_BYTES);
    doc_put_map(&details, 1);
    doc_put_cstr(&details, "storage");
    doc_put_cstr(&details, "away");
    request_refuse(engine, rq, &err, CLASS_NONE, 0, doc_from_buf(&details));
    buf_done(&details);
}

void api_on_request_meanwhile(struct engine *engine, uint64_t handle, struct str bytes)
{
    struct seal seal = {.n = 0};
    struct str body = bytes;
    struct msg_peek peek;
    struct request rq;
    enum msg_type type;

    if (seal_is_sealed(bytes) && (is_sealed_let_go(engine, handle, bytes) ||
                                  !api_open_sealed(engine, handle, bytes, &seal, &body))) {
        return;
    }
    peek = msg_peek(body.ptr, body.len, PEEK_BYTES);
    type = msg_type_from_wire(peek.type);
    if (type == MSG_supervisor_info || type == MSG_auth_begin) {
        api_handle(engine, handle, bytes);
        return;
    }
    rq = request_of(handle, body.len, &peek, &seal);
    if (!is_known(engine, &peek, &seal)) {
        api_refuse_token(engine, &rq);
        return;
    }
    if (seal.n == 0 && is_let_go(engine, handle, type)) {
        return;
    }
    refuse_away(engine, &rq);
}

static void take_up(struct engine *engine, struct put_off_queue *q)
{
    const struct put_off p = q->at[q->first];

    q->first = (q->first + 1) % ENGINE_CONTEXTS;
    q->n--;
    engine_take_up(engine, p.msg, p.handle, api_handle);
}

/* ---- reads that go on over cycles ---- */

struct asker asker_of(const struct request *rq)
{
    struct asker a = {.request = rq->handle,
                      .form = rq->reader.form,
                      .who = *rq->who,
                      .seal = rq->seal,
                      .answer = rq->answer};

    (void)snprintf(a.id, sizeof a.id, "%.*s", STR_ARG(rq->env.id));
    return a;
}

struct request asker_request(const struct asker *a)
{
    return (struct request){.handle = a->request,
                            .who = &a->who,
                            .seal = a->seal,
                            .reader = {.form = a->form},
                            .env = {.id = str_from(a->id)},
                            .answer = a->answer};
}

void api_read_on(struct engine *engine, struct request *rq, const struct long_read *read)
{
    struct long_read *going = &api_of(engine)->going_on[read->turn];

    if (going->asker.request != 0) { /* its turn was that of another kind: see msg_peek */
        read->done(read->state);
        request_refuse_text(engine, rq, BT_BUSY,
                            "another request of this kind is under way; a request names its type "
                            "within its first %d bytes, without escapes, and waits for its turn",
                            PEEK_BYTES);
        return;
    }
    if (read->go_on(engine, rq, read->state, clock_mono_ns() + READ_US * UINT64_C(1000))) {
        read->done(read->state);
        return;
    }
    *going = *read;
    going->asker = asker_of(rq);
}

/* False: it goes on in the next cycle. */
static bool read_on(struct engine *engine, struct long_read *going, uint64_t until_ns)
{
    struct request rq = asker_request(&going->asker);
    bool done;

    if (going->asker.request == 0) {
        return true;
    }
    engine_act_for(engine, &going->asker.who);
    done = going->go_on(engine, &rq, going->state, until_ns);
    engine_act_for(engine, NULL);
    if (done) {
        going->done(going->state);
        going->asker.request = 0;
    }
    return done;
}

/* Short requests, and large ones: what is under way first. */
static void take_short(struct engine *engine, enum turn turn, uint64_t until_ns)
{
    struct put_off_queue *q = &api_of(engine)->turns[turn];
    struct long_read *going = &api_of(engine)->going_on[turn];

    if (engine_is_full(engine) || !read_on(engine, going, until_ns)) {
        return;
    }
    do {
        if (q->n == 0 || engine_is_full(engine) || going->asker.request != 0) {
            return;
        }
        take_up(engine, q);
    } while (clock_mono_ns() < until_ns);
}

/* What is under way, else the first one: its projection is read on until it is whole; then it is
 * answered: in the next cycle when a large plan was laid out in this one. Once only: rows of an
 * open plan may come in every cycle. */
static void take_reads(struct engine *engine, uint64_t until_ns)
{
    struct put_off_queue *q = &api_of(engine)->turns[TURN_READ];
    struct long_read *going = &api_of(engine)->going_on[TURN_READ];

    if (engine_is_full(engine) || !read_on(engine, going, until_ns)) {
        return;
    }
    do {
        struct put_off *p = &q->at[q->first];
        bool ready = true;
        bool was_long = false;
        if (q->n == 0 || engine_is_full(engine) || going->asker.request != 0) {
            return;
        }
        if (p->plan_id[0] != 0) {
            projection_prepare(engine, str_from(p->plan_id), READ_US, &ready, &was_long);
        }
        if (ready && was_long && !p->is_prepared) {
            p->is_prepared = true;
            return;
        }
        if (ready) {
            take_up(engine, q);
        }
    } while (clock_mono_ns() < until_ns);
}

/* The one that is under way, then the next ones. */
static void take_scans(struct engine *engine, uint64_t until_ns)
{
    struct put_off_queue *q = &api_of(engine)->turns[TURN_SCAN];
    struct long_read *going = &api_of(engine)->going_on[TURN_SCAN];

    if (engine_is_full(engine) || !read_on(engine, going, until_ns)) {
        return;
    }
    while (q->n > 0 && !engine_is_full(engine) && clock_mono_ns() < until_ns &&
           going->asker.request == 0) {
        take_up(engine, q);
    }
}

void api_take_turns(struct engine *engine)
{
    const uint64_t ms = 1000000;

    arriving_tidy(api_of(engine)->arriving, engine_now(engine));
    take_short(engine, TURN_SOON, clock_mono_ns() + SOON_MS * ms);
    take_short(engine, TURN_LARGE, clock_mono_ns() + LARGE_MS * ms);
    take_reads(engine, clock_mono_ns() + READ_US * UINT64_C(1000));
    take_scans(engine, clock_mono_ns() + READ_US * UINT64_C(1000));
}

bool api_is_behind(const struct api *api)
{
    uint32_t n = 0;

    for (int i = 0; i < TURN_COUNT; i++) {
        n += api->turns[i].n + (api->going_on[i].asker.request != 0);
    }
    return n > 0;
}
