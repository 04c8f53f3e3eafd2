/*
 * Bundles (protocol/wire/bundle.h): several steps in one request, several results in one answer.
 * A request is kept until there are results; they answer the oldest, whichever steps it brought.
 * When all pipes of the supervisor would be kept, the oldest is answered without results, so that
 * it has one for new steps.
 */
#include <stdlib.h>
#include <string.h>

#include "agents/sdk/runtime.h"
#include "protocol/base/log.h"

static void answer_oldest(struct runtime *rt, size_t *ret_taken)
{
    struct runtime_trunk *t = &rt->trunk;

    *ret_taken = bundle_take(&t->frame, BUNDLE_ITEMS_MAX, buf_str(&t->answers));
    (void)link_answer(t->kept[0].server, t->kept[0].handle, t->frame.at, t->frame.len);
    t->kept_n--;
    memmove(t->kept, t->kept + 1, t->kept_n * sizeof t->kept[0]);
}

static void keep(struct runtime *rt, const struct link_event *ev)
{
    struct runtime_trunk *t = &rt->trunk;
    size_t taken;

    if (t->kept_n == BUNDLE_PIPES) {
        answer_oldest(rt, &taken);
        bundle_drop(&t->answers, taken);
    }
    t->kept[t->kept_n++] = (struct runtime_kept){.server = ev->server,
                                                 .handle = ev->request,
                                                 .pipe = link_msg_pipe(ev->msg),
                                                 .epoch = rt->agent_state.epoch};
}

/* A request that is kept is answered with the results of any step: only the supervisor's is. It
 * proves itself, because this agent asks for that, before it sends anything else. */
static enum bt_code open_bundle(struct runtime *rt, const struct link_msg *msg,
                                struct bundle_reader *ret, struct bt_error *err)
{
    return runtime_pipe_is_proved(rt, link_msg_pipe(msg))
               ? bundle_open(ret, link_msg_bytes(msg), err)
               : err_set(err, BT_UNAUTHORIZED, "its sender has not proved to be the supervisor");
}

void runtime_on_bundle(struct runtime *rt, struct link_event *ev)
{
    const uint32_t pipe = link_msg_pipe(ev->msg);
    struct bundle_reader r;
    struct bt_error err;
    struct str body;
    uint64_t tag;

    if (open_bundle(rt, ev->msg, &r, &err) != BT_OK) {
        log_warn("agent.bundle", "a bundle was refused: %s", err.msg);
        (void)link_answer(ev->server, ev->request, "", 0);
        link_msg_free(ev->msg);
        return;
    }
    keep(rt, ev);
    while (bundle_next(&r, &tag, &body)) {
        const struct runtime_request rq = {
            .open = true, .bundled = true, .tag = tag, .server = ev->server, .pipe = pipe};
        uint8_t *copy = malloc(body.len + 1); /* the step lives longer than the bundle */
        if (copy == NULL) {
            runtime_trunk_answer(rt, &rq, (struct str){NULL, 0});
            continue;
        }
        memcpy(copy, body.ptr, body.len);
        runtime_on_body(rt, &rq, (struct runtime_bytes){.copy = copy, .len = body.len});
    }
    link_msg_free(ev->msg);
}

void runtime_trunk_answer(struct runtime *rt, const struct runtime_request *rq, struct str body)
{
    struct buf *answers = &rt->trunk.answers;
    const size_t before = answers->len;

    bundle_put(answers, rq->tag, body);
    if (answers->bad != BT_OK) {
        log_err("agent.answer", "out of memory for an answer; the supervisor asks for it again");
        answers->bad = BT_OK;
        buf_truncate(answers, before);
    }
}

/* Requests of connections that have ended. */
static void forget_dead(struct runtime_trunk *t)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->kept_n; i++) {
        if (link_pipe_is_open(t->kept[i].pipe)) {
            t->kept[n++] = t->kept[i];
        } else {
            (void)link_answer(t->kept[i].server, t->kept[i].handle, "", 0); /* frees its place */
        }
    }
    t->kept_n = n;
}

void runtime_trunk_flush(struct runtime *rt)
{
    struct runtime_trunk *t = &rt->trunk;
    size_t taken;

    if (t->kept_n == 0) {
        return;
    }
    if (t->answers.len > 0) {
        forget_dead(t);
    }
    while (t->kept_n > 0 && t->answers.len > 0) {
        answer_oldest(rt, &taken);
        bundle_drop(&t->answers, taken);
    }
    while (t->kept_n >= t->pipes) {
        answer_oldest(rt, &taken);
    }
}

void runtime_trunk_registered(struct runtime *rt, uint64_t pipes, uint64_t epoch)
{
    struct runtime_trunk *t = &rt->trunk;
    uint32_t n = 0;

    t->pipes = pipes >= 1 && pipes < BUNDLE_PIPES ? (uint32_t)pipes : BUNDLE_PIPES;
    for (uint32_t i = 0; i < t->kept_n; i++) {
        if (t->kept[i].epoch < epoch) {
            bundle_begin(&t->frame);
            (void)link_answer(t->kept[i].server, t->kept[i].handle, t->frame.at, t->frame.len);
        } else {
            t->kept[n++] = t->kept[i]; /* a pipe may be faster than the answer to agent.register */
        }
    }
    t->kept_n = n;
    if (n == 0) {
        buf_clear(&t->answers); /* of requests before: the supervisor asks for them */
    }
}

void runtime_trunk_drop(struct runtime *rt, const struct link_server *server)
{
    struct runtime_trunk *t = &rt->trunk;
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->kept_n; i++) {
        if (t->kept[i].server != server) {
            t->kept[n++] = t->kept[i];
        }
    }
    t->kept_n = n;
}
