/* What a turn wants done is kept until its rows are durable, then done in order. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/assert.h"
#include "protocol/base/log.h"
#include "supervisor/engine/engine.h"

/* For who comes again: long enough that a crowd of clients is no load. */
enum { RETRY_AFTER_MS = 500 };

struct effect *bus_effect(struct bus *b, enum effect_type type)
{
    if (b->effects_n == b->effects_cap) {
        uint32_t cap = b->effects_cap == 0 ? 256 : b->effects_cap * 2;
        struct effect *at = realloc(b->effects, cap * sizeof *at);
        ASSERT(at != NULL); /* a decision that cannot be carried out: crash, replay */
        b->effects = at;
        b->effects_cap = cap;
    }
    b->effects[b->effects_n] = (struct effect){.type = type, .at = b->out.len};
    return &b->effects[b->effects_n++];
}

struct str bus_turn_text(struct bus *b, struct str text)
{
    return text.len == 0 ? (struct str){"", 0} : arena_str(&b->turn, text);
}

static void kill_process(struct bus *b, const struct core_cmd *cmd)
{
    const struct lane_instance *in = lanes_instance(b, cmd->slot, cmd->epoch);

    if (in != NULL && b->processes.kill != NULL) {
        log_warn("agent.kill", "instance=%s its work did not stop when it was told to", in->id);
        b->processes.kill(b->processes.of, str_from(in->id));
    }
}

static void perform_command(struct bus *b, const struct core_cmd *cmd)
{
    switch (cmd->type) {
    case CMD_DISPATCH:
        dispatch_step(b, cmd);
        break;
    case CMD_CANCEL_STEP:
        lanes_control(b, cmd, CONTROL_CANCEL);
        break;
    case CMD_QUERY:
        lanes_control(b, cmd, CONTROL_QUERY);
        break;
    case CMD_CLOSE:
        lanes_close(b, cmd->slot, cmd->epoch);
        break;
    case CMD_RUN_DONE:
        b->stats.plans_done++;
        open_plan_remove(b, cmd->run);
        break;
    case CMD_PROBE:
        lanes_probe(b, cmd);
        break;
    case CMD_KILL:
        kill_process(b, cmd);
        break;
    case CMD_JOB:
    case CMD_JOB_STOP:
    case CMD_REVISED:
    case CMD_RECORD:
    case CMD_REGISTERED:
    case CMD_REJECT:
    case CORE_CMD_TYPE_COUNT:
    default:
        ASSERT(false);
    }
}

/* Steps and answers first: agents and clients work on while the events are published. */
static void perform_actions(struct bus *b)
{
    for (uint32_t i = 0; i < b->effects_n; i++) {
        struct effect e = b->effects[i]; /* performing may make the array grow */
        if (e.type == EFFECT_COMMAND) {
            perform_command(b, &e.cmd);
        } else if (e.type == EFFECT_ANSWER) {
            (void)link_answer(b->server, e.request, b->out.at + e.at, e.len);
        }
    }
}

static void publish_events(struct bus *b)
{
    for (uint32_t i = 0; i < b->effects_n; i++) {
        const struct effect *e = &b->effects[i];
        if (e->type == EFFECT_PUBLISH) {
            b->stats.published++;
            link_publish(b->pub, (struct str){(const char *)b->out.at + e->topic_at, e->topic_len},
                         b->out.at + e->at, e->len);
        }
    }
}

void bus_perform(struct bus *b)
{
    perform_actions(b);
    publish_events(b);
    b->effects_n = 0;
    buf_clear(&b->out);
    if (b->out.cap > 8u * 1024 * 1024) {
        buf_done(&b->out);
    }
    arena_reset(&b->turn);
}

enum bt_code request_try_answer(struct bus *b, struct request *rq, enum msg_type type,
                                const void *body, struct bt_error *err)
{
    size_t at = b->out.len;
    struct effect *e;
    enum bt_code code;

    ASSERT(!rq->answered);
    code = msg_answer(&b->out, rq->reader.form, rq->env.id, type, body, err);
    if (code == BT_OK && b->out.len - at > LIMIT_STEP_BYTES) {
        code = err_set(err, BT_LIMIT, "the answer would be larger than %u bytes; ask for less",
                       LIMIT_STEP_BYTES);
    }
    if (code != BT_OK) {
        b->out.bad = BT_OK;
        buf_truncate(&b->out, at);
        return code;
    }
    rq->answered = true;
    e = bus_effect(b, EFFECT_ANSWER);
    e->request = rq->handle;
    e->at = at;
    e->len = b->out.len - at;
    return BT_OK;
}

void request_answer(struct bus *b, struct request *rq, enum msg_type type, const void *body)
{
    struct bt_error err;

    if (request_try_answer(b, rq, type, body, &err) != BT_OK) {
        request_refuse(b, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    }
}

void request_refuse(struct bus *b, struct request *rq, const struct bt_error *why,
                    enum err_class cls, uint64_t retry_after_ms, struct doc details)
{
    size_t at = b->out.len;
    struct effect *e;

    ASSERT(!rq->answered);
    rq->answered = true;
    b->stats.refused_busy += why->code == BT_BUSY;
    if (retry_after_ms == 0 && (why->code == BT_BUSY || why->code == BT_UNAVAILABLE)) {
        retry_after_ms = RETRY_AFTER_MS;
    }
    if (msg_refuse(&b->out, rq->reader.form, rq->env.id, why, cls, retry_after_ms, details) !=
        BT_OK) {
        b->out.bad = BT_OK;
        buf_truncate(&b->out, at);
        log_err("bus.refuse", "the refusal of a request could not be written: %s", why->msg);
    }
    e = bus_effect(b, EFFECT_ANSWER);
    e->request = rq->handle;
    e->at = at;
    e->len = b->out.len - at;
}

void request_refuse_text(struct bus *b, struct request *rq, enum bt_code code, const char *fmt, ...)
{
    struct bt_error why = {.code = code};
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(why.msg, sizeof why.msg, fmt, args);
    va_end(args);
    request_refuse(b, rq, &why, CLASS_NONE, 0, (struct doc){NULL, 0});
}
