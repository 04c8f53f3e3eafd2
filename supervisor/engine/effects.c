/* What a cycle wants done is kept until its rows are durable, then done in order. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/assert.h"
#include "protocol/base/failpoint.h"
#include "protocol/base/log.h"
#include "supervisor/auth/sessions.h"
#include "supervisor/engine/access.h"
#include "supervisor/engine/engine_internal.h"
#include "supervisor/engine/request.h"

struct effect *engine_effect(struct engine *engine, enum effect_type type)
{
    if (engine->effects_n == engine->effects_cap) {
        uint32_t cap = engine->effects_cap == 0 ? 256 : engine->effects_cap * 2;
        struct effect *at = realloc(engine->effects, cap * sizeof *at);
        ASSERT(at != NULL); /* a decision that cannot be carried out: crash, replay */
        engine->effects = at;
        engine->effects_cap = cap;
    }
    engine->effects[engine->effects_n] = (struct effect){.type = type, .at = engine->out.len};
    return &engine->effects[engine->effects_n++];
}

struct str engine_cycle_text(struct engine *engine, struct str text)
{
    return text.len == 0 ? (struct str){"", 0} : arena_str(&engine->cycle, text);
}

void engine_cycle_events(const struct engine *engine, bool (*fn)(struct doc body, void *self),
                         void *self)
{
    for (uint32_t i = 0; i < engine->effects_n; i++) {
        const struct effect *e = &engine->effects[i];
        if (e->type == EFFECT_PUBLISH && !fn((struct doc){engine->out.at + e->at, e->len}, self)) {
            return;
        }
    }
}

/* Steps and answers first: agents and clients work on while the events are published. */
static void perform_actions(struct engine *engine)
{
    for (uint32_t i = 0; i < engine->effects_n; i++) {
        struct effect e = engine->effects[i]; /* performing may make the array grow */
        if (e.type == EFFECT_COMMAND) {
            const struct open_plan *p = open_plan_of_run(engine, e.cmd.run);
            (void)engine_applies(engine, e.cmd.run);
            FAILPOINT_OF("perform", p != NULL ? p->plan_id : (struct uuid){{0}});
            if (e.cmd.type == CMD_RUN_DONE) {
                engine->stats.plans_done++;
                open_plan_remove(engine, e.cmd.run);
            } else {
                engine->hooks.perform(engine, &e.cmd);
            }
        } else if (e.type == EFFECT_ANSWER) {
            engine_send_answer(engine, e.request, engine->out.at + e.at, e.len);
        }
        (void)engine_applies(engine, 0);
    }
}

static void publish_events(struct engine *engine)
{
    for (uint32_t i = 0; i < engine->effects_n; i++) {
        const struct effect *e = &engine->effects[i];
        if (e->type == EFFECT_PUBLISH && engine->pub != NULL) {
            engine->stats.published++;
            link_publish(engine->pub,
                         (struct str){(const char *)engine->out.at + e->topic_at, e->topic_len},
                         engine->out.at + e->at, e->len);
        }
    }
}

void engine_perform(struct engine *engine)
{
    perform_actions(engine);
    engine->hooks.performed(engine);
    publish_events(engine);
    engine->effects_n = 0;
    buf_clear(&engine->out);
    if (engine->out.cap > 8u * 1024 * 1024) {
        buf_done(&engine->out);
    }
    arena_reset(&engine->cycle);
}

static struct buf *answer_buf(struct engine *engine, const struct request *rq)
{
    return rq->into != NULL ? rq->into : &engine->out;
}

/* Room for the header of a sealed answer. Returns where the answer begins. */
static size_t answer_begin(struct engine *engine, const struct request *rq)
{
    static const uint8_t room[SEAL_HEADER_BYTES] = {0};
    const size_t at = answer_buf(engine, rq)->len;

    ASSERT(rq->into == NULL || rq->seal.n == 0); /* the whole is sealed, no part of it */
    if (rq->seal.n != 0) {
        buf_add(&engine->out, room, sizeof room);
        ASSERT(engine->out.bad == BT_OK); /* no memory for the header of an answer */
    }
    return at;
}

/* The session has ended since the request came: its peer may not read the answer. */
static void answer_to_nobody(struct engine *engine, const struct request *rq, size_t at)
{
    struct bt_error why;

    (void)err_set(&why, BT_UNAUTHORIZED, "the session has ended; begin again with auth.begin");
    buf_truncate(&engine->out, at);
    if (msg_answer_error(&engine->out, rq->reader.form, rq->env.id, &why, CLASS_NONE, 0,
                         (struct doc){NULL, 0}) != BT_OK) {
        engine->out.bad = BT_OK;
        buf_truncate(&engine->out, at);
    }
}

static void answer_end(struct engine *engine, struct request *rq, size_t at)
{
    struct effect *e;

    if (rq->into != NULL) {
        rq->answered = true;
        return;
    }
    if (rq->seal.n != 0 && engine->out.len - at >= SEAL_HEADER_BYTES &&
        !sessions_seal(engine->opt.sessions, &rq->seal, engine->out.at + at,
                       engine->out.len - at - SEAL_HEADER_BYTES)) {
        answer_to_nobody(engine, rq, at);
    }
    rq->answered = true;
    e = engine_effect(engine, EFFECT_ANSWER);
    e->request = rq->handle;
    e->at = at;
    e->len = engine->out.len - at;
}

enum bt_code request_try_answer(struct engine *engine, struct request *rq, enum msg_type type,
                                const void *body, struct bt_error *err)
{
    struct buf *out = answer_buf(engine, rq);
    size_t at = answer_begin(engine, rq);
    enum bt_code code;

    ASSERT(!rq->answered && type == rq->answer);
    code = msg_answer(out, rq->reader.form, rq->env.id, type, body, err);
    if (code == BT_OK && out->len - at > LIMIT_STEP_BYTES) {
        code = err_set(err, BT_LIMIT, "the answer would be larger than %u bytes; ask for less",
                       LIMIT_STEP_BYTES);
    }
    if (code != BT_OK) {
        out->bad = BT_OK;
        buf_truncate(out, at);
        return code;
    }
    answer_end(engine, rq, at);
    return BT_OK;
}

void request_answer(struct engine *engine, struct request *rq, enum msg_type type, const void *body)
{
    struct bt_error err;

    if (request_try_answer(engine, rq, type, body, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    }
}

static enum bt_code put_error(struct engine *engine, const struct request *rq, size_t at,
                              const struct bt_error *why, enum err_class cls,
                              uint64_t retry_after_ms, struct doc details)
{
    struct buf *out = answer_buf(engine, rq);
    const enum bt_code code =
        msg_answer_error(out, rq->reader.form, rq->env.id, why, cls, retry_after_ms, details);

    if (code != BT_OK) {
        out->bad = BT_OK;
        buf_truncate(out, at + (rq->seal.n != 0 ? SEAL_HEADER_BYTES : 0));
    }
    return code;
}

void request_refuse(struct engine *engine, struct request *rq, const struct bt_error *why,
                    enum err_class cls, uint64_t retry_after_ms, struct doc details)
{
    size_t at = answer_begin(engine, rq);
    enum bt_code code;

    ASSERT(!rq->answered);
    rq->refused = why->code;
    if (why->code == BT_UNAUTHORIZED) {
        access_note(engine, rq->who != NULL ? AUDIT_REFUSED : AUDIT_HANDSHAKE, rq->who,
                    rq->env.type, (struct str){"", 0}, why->code, str_from(why->msg));
    }
    engine->stats.refused_busy += why->code == BT_BUSY;
    if (retry_after_ms == 0) {
        retry_after_ms = err_code_wait_ms(why->code);
    }
    if (put_error(engine, rq, at, why, cls, retry_after_ms, details) != BT_OK) {
        /* Nobody can read half an answer. A shorter one, or none: the daemon starts again. A part
         * has as much room as the whole leaves it. */
        code = put_error(engine, rq, at, why, cls, retry_after_ms, (struct doc){NULL, 0});
        if (rq->into == NULL) {
            log_err("bus.refuse", "without details, for want of memory: %s", why->msg);
        }
        ASSERT(code == BT_OK);
    }
    answer_end(engine, rq, at);
}

void request_refuse_text(struct engine *engine, struct request *rq, enum bt_code code,
                         const char *fmt, ...)
{
    struct bt_error why = {.code = code};
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(why.msg, sizeof why.msg, fmt, args);
    va_end(args);
    request_refuse(engine, rq, &why, CLASS_NONE, 0, (struct doc){NULL, 0});
}
