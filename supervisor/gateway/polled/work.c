/* Attempts of an agent over HTTP: from the daemon's request to the daemon's receipt. */
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/gateway/polled/polled_internal.h"

struct work *work_find(struct instance *in, struct str key, uint64_t attempt)
{
    struct work *found = NULL;

    for (struct work *w = in->works; w != NULL; w = w->next) {
        if (str_is(key, w->key) && (attempt == 0 || w->attempt == attempt) &&
            (found == NULL || w->attempt > found->attempt)) {
            found = w;
        }
    }
    return found;
}

struct work *work_add(struct instance *in, struct str key, uint32_t attempt, uint64_t epoch)
{
    struct work *w =
        in->works_n < WORKS_MAX && key.len <= LIMIT_KEY_BYTES ? calloc(1, sizeof *w) : NULL;
    struct work **at = &in->works;

    if (w == NULL) {
        return NULL;
    }
    *w = (struct work){.of = in, .attempt = attempt, .epoch = epoch, .since = in->of->now};
    memcpy(w->key, key.ptr, key.len);
    buf_init(&w->step, LIMIT_STEP_BYTES);
    buf_init(&w->result, LIMIT_STEP_BYTES);
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = w;
    in->works_n++;
    return w;
}

bool work_keep(struct work *w, struct buf *to, const void *bytes, size_t n)
{
    struct polled *p = w->of->of;

    work_drop(w, to);
    if (p->bytes + n > POLLED_BYTES_MAX) {
        return false;
    }
    buf_add(to, bytes, n);
    if (buf_check(to, NULL) != BT_OK) {
        return false;
    }
    p->bytes += n;
    return true;
}

void work_drop(struct work *w, struct buf *from)
{
    w->of->of->bytes -= from->len;
    buf_done(from);
}

void work_remove(struct work *w)
{
    struct instance *in = w->of;

    for (struct work **at = &in->works; *at != NULL; at = &(*at)->next) {
        if (*at == w) {
            *at = w->next;
            break;
        }
    }
    if (w->call != NULL) {
        call_abandon(w->call);
    }
    if (w->http != NULL) {
        w->http->own = NULL;
    }
    work_drop(w, &w->step);
    work_drop(w, &w->result);
    in->works_n--;
    free(w);
}

bool work_result(const struct work *w, struct arena *arena, struct msg_step_result *ret)
{
    return w->result.len > 0 &&
           msg_read_doc(arena, doc_from_buf(&w->result), MSG_step_result, ret, NULL) == BT_OK;
}

void work_fail(struct work *w, enum err_class cls, const char *message)
{
    struct msg_step_result m = {.instance_id = str_from(w->of->id),
                                .key = str_from(w->key),
                                .attempt = w->attempt,
                                .epoch = w->epoch,
                                .outcome = STR_LIT("failed"),
                                .failure = {.code = str_from(bt_code_name(BT_CANCELLED)),
                                            .class_ = str_from(err_class_name(cls)),
                                            .message = str_from(message)}};
    const struct msg_part part = {MSG_step_result, &m};
    struct buf fields;

    msg_set(&m, step_result, failure);
    buf_init(&fields, LIMIT_EVENT_BYTES);
    if (msg_write(&fields, WIRE_MSGPACK, &part, 1, NULL) == BT_OK &&
        work_keep(w, &w->result, fields.at, fields.len)) {
        w->state = WORK_ENDED;
        lane_answer_result(w);
    } else {
        lane_refuse(w, BT_CANCELLED, message);
    }
    buf_done(&fields);
}

/* ---- the daemon's receipt ---- */

static bool passes(enum bt_code code)
{
    return code == BT_UNAVAILABLE || code == BT_TIMEOUT || code == BT_BUSY ||
           code == BT_NOT_FOUND || code == BT_CONFLICT;
}

static void on_receipt(void *self, const struct reply *reply)
{
    struct work *w = self;
    struct http *h = w->http;

    w->call = NULL;
    if (!reply->ok && passes(reply->problem.code)) {
        if (reply->problem.code == BT_NOT_FOUND || reply->problem.code == BT_CONFLICT) {
            w->of->registered = false; /* it registers again; then this result is sent again */
            w->of->due = 0;
        }
        return;
    }
    if (h != NULL && reply->ok) {
        const struct doc accepted = doc_get(reply->body, STR_LIT("accepted"));
        const bool counts = accepted.ptr != NULL && doc_head(accepted).b;
        answer_result(h, counts || (w->over_lane && !w->cancelled),
                      doc_string(doc_get(reply->body, STR_LIT("reason"))));
    } else if (h != NULL) {
        http_problem(h, &reply->problem);
    }
    work_remove(w);
    if (h != NULL) {
        http_ready(h);
    }
}

void work_deliver(struct work *w)
{
    struct call_spec spec = {.type = MSG_step_result,
                             .answer = MSG_step_result_ok,
                             .fields = doc_from_buf(&w->result),
                             .reads = true, /* it counts once, however often it comes */
                             .within_ms = DELIVER_MS,
                             .done = on_receipt,
                             .self = w};
    struct bt_error err;

    if (w->lane != NULL) {
        w->over_lane = true;
        lane_answer_result(w);
    }
    if (w->call == NULL && w->of->registered) { /* polled_run sends it again when it fails */
        (void)!caller_call(w->of->caller, &spec, w->of->of->now, &w->call, &err);
    }
}

/* ---- what the agent has ---- */

static bool is_listed(const struct work *w, const struct msg_inflight *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (str_is(list[i].key, w->key) &&
            (list[i].attempt == 0 || list[i].attempt == w->attempt)) {
            return true;
        }
    }
    return false;
}

void works_compare(struct instance *in, const struct msg_inflight *list, uint32_t n)
{
    struct work *next;

    in->returned = false;
    for (struct work *w = in->works; w != NULL; w = next) {
        next = w->next;
        if (w->state != WORK_OUT || is_listed(w, list, n)) {
            continue;
        }
        if (w->cancelled && w->lane != NULL) {
            work_fail(w, CLASS_CANCELLED, "the attempt was cancelled, and the agent has left it");
            work_remove(w);
        } else if (w->step.len > 0 && !w->cancelled) {
            w->state = WORK_QUEUED;
        } else {
            w->state = WORK_LOST;
            w->since = in->of->now;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        struct work *w = work_find(in, list[i].key, list[i].attempt);
        if (w == NULL && list[i].attempt > 0) {
            w = work_add(in, list[i].key, (uint32_t)list[i].attempt, in->epoch);
        }
        if (w != NULL && (w->state == WORK_QUEUED || w->state == WORK_LOST)) {
            w->state = WORK_OUT;
        }
    }
}

void work_cancel(struct work *w, struct str reason, uint64_t grace_ms)
{
    if (w->state == WORK_OUT && !w->cancelled) {
        w->cancelled = true;
        w->grace_ms = grace_ms;
        (void)snprintf(w->reason, sizeof w->reason, "%.*s", STR_ARG(reason));
        polls_give(w->of);
    }
}
