/* A plan as a task: as it is now, when it is over, or each change. */
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/gateway/a2a/a2a_internal.h"
#include "supervisor/gateway/stream.h"

/* The self of a view. */
struct run {
    struct a2a *a;
    bool waits; /* for a person */
    struct buf prompt;
};

static void begin_event(const struct a2a *a, struct buf *out)
{
    if (a->way == A2A_STREAM) {
        buf_add_cstr(out, "data: ");
    }
    a2a_begin(a, out);
}

static void end_event(const struct a2a *a, struct buf *out)
{
    a2a_end(a, out);
    if (a->way == A2A_STREAM) {
        buf_add_cstr(out, "\n\n");
    }
}

static void put_change(struct stream *st, enum a2a_state s, struct str says)
{
    const struct run *r = stream_self(st);
    struct buf *out = stream_out(st);

    if (r->a->way == A2A_STREAM) {
        begin_event(r->a, out);
        a2a_put_status(r->a, s, says, out);
        end_event(r->a, out);
    }
}

enum a2a_state a2a_event_state(struct doc event, struct buf *says)
{
    const struct str type = doc_string(doc_get(event, STR_LIT("type")));
    const struct str text = doc_string(doc_get(event, STR_LIT("text")));
    const struct str prompt = doc_string(doc_get(event, STR_LIT("prompt")));
    const bool starts = str_is(type, "plan_step_started");

    if (str_is(type, "plan_step_waiting") ||
        (str_is(type, "plan_paused") && doc_get(event, STR_LIT("reviewId")).ptr != NULL)) {
        buf_add_str(says, prompt.len > 0 ? prompt : STR_LIT("approve, reject or skip?"));
        return A2A_INPUT_REQUIRED;
    }
    if (!starts && !str_is(type, "plan_step_progress") && !str_is(type, "plan_step_completed")) {
        return A2A_STATES;
    }
    buf_add_str(says, doc_string(doc_get(event, STR_LIT("stepId"))));
    buf_add_cstr(says, starts ? " started" : text.len > 0 ? ": " : " is over");
    buf_add_str(says, text);
    return A2A_WORKING;
}

static void on_event(struct stream *st, struct doc event)
{
    struct run *r = stream_self(st);
    enum a2a_state state;
    struct buf says;

    buf_init(&says, 16 * 1024);
    state = a2a_event_state(event, &says);
    if (state == A2A_INPUT_REQUIRED) {
        r->waits = true;
        buf_add_str(&r->prompt, buf_str(&says));
        stream_stop(st);
    } else if (state == A2A_WORKING) {
        put_change(st, A2A_WORKING, buf_str(&says));
    }
    buf_done(&says);
}

static void put_last(struct buf *out, const struct a2a *a, enum a2a_state s, struct str says,
                     struct doc answer)
{
    if (a->way != A2A_STREAM) {
        begin_event(a, out);
        a2a_put_task(a, s, says, answer, out);
        end_event(a, out);
        return;
    }
    begin_event(a, out);
    if (a2a_put_artifact(a, answer, out)) {
        end_event(a, out);
        begin_event(a, out);
    }
    a2a_put_status(a, s, says, out);
    end_event(a, out);
}

static void on_result(void *self, const struct reply *reply)
{
    struct stream *st = self;
    const struct run *r = stream_self(st);
    struct buf *out = stream_out(st);

    stream_called(st);
    if (!reply->ok) {
        buf_add_cstr(out, r->a->way != A2A_STREAM ? ""
                          : r->a->rest            ? "event: error\ndata: "
                                                  : "data: ");
        a2a_put_error(r->a, A2A_INTERNAL, reply->problem.message, out);
        buf_add_cstr(out, r->a->way == A2A_STREAM ? "\n\n" : "");
    } else {
        put_last(out, r->a, a2a_state_of(doc_string(doc_get(reply->body, STR_LIT("status")))),
                 doc_string(doc_get(reply->body, STR_LIT("failureReason"))), reply->body);
    }
    stream_finish(st);
}

void a2a_put_fields(struct buf *fields, const char *plan)
{
    doc_put_map(fields, 2);
    doc_put_cstr(fields, "planId");
    doc_put_cstr(fields, plan);
    doc_put_cstr(fields, "steps");
    doc_put_bool(fields, false);
}

static void on_over(struct stream *st)
{
    const struct run *r = stream_self(st);
    struct call_spec spec = {.type = MSG_plan_result,
                             .answer = MSG_plan_result_ok,
                             .reads = true,
                             .done = on_result,
                             .self = st};
    struct buf fields;

    if (r->waits) {
        put_last(stream_out(st), r->a, A2A_INPUT_REQUIRED, buf_str(&r->prompt),
                 (struct doc){.ptr = NULL});
        stream_finish(st);
        return;
    }
    buf_init(&fields, 256);
    a2a_put_fields(&fields, r->a->plan);
    spec.fields = doc_from_buf(&fields);
    if (!stream_call(st, &spec)) {
        stream_finish(st);
    }
    buf_done(&fields);
}

static void on_gone(struct stream *st, bool finished)
{
    struct run *r = stream_self(st);

    (void)finished; /* the task goes on without its reader */
    buf_done(&r->prompt);
    free(r);
}

static const struct stream_view view = {on_event, on_over, on_gone};

/* ---- as it is ---- */

static void on_answer(void *self, const struct reply *reply)
{
    struct a2a *a = self;
    struct buf *out = &a->h->out;

    a->h->call = NULL;
    if (!reply->ok) {
        a2a_refuse_problem(a, &reply->problem);
        return;
    }
    if (a->way == A2A_STREAM) { /* it is over: one event */
        a->h->type = "text/event-stream";
        a->wrapped = true;
    }
    begin_event(a, out);
    a2a_put_task(a, a2a_state_of(doc_string(doc_get(reply->body, STR_LIT("status")))),
                 doc_string(doc_get(reply->body, STR_LIT("failureReason"))), reply->body, out);
    end_event(a, out);
    a2a_answer(a);
}

static void follow(struct a2a *a, uint64_t from_seq)
{
    struct run *r = calloc(1, sizeof *r);
    struct buf first;

    if (r == NULL) {
        a2a_refuse(a, A2A_INTERNAL, "out of memory for a task");
        return;
    }
    r->a = a;
    buf_init(&r->prompt, 16 * 1024);
    buf_init(&first, 16 * 1024);
    if (a->way == A2A_STREAM) {
        a->wrapped = true;
        begin_event(a, &first);
        a2a_put_task(a, A2A_WORKING, (struct str){NULL, 0}, (struct doc){.ptr = NULL}, &first);
        end_event(a, &first);
    }
    a->when[0] = 0; /* what comes is now */
    stream_attach(a->h, (struct str){a->plan, strlen(a->plan)}, from_seq, &view, r,
                  a->way != A2A_STREAM);
    if (a->h->stream != NULL) {
        buf_add(stream_out(a->h->stream), first.at, first.len);
    }
    buf_done(&first);
}

enum a2a_state a2a_take_view(struct a2a *a, struct doc plan)
{
    const struct str session = doc_string(doc_get(plan, STR_LIT("sessionId")));
    struct str when = doc_string(doc_get(plan, STR_LIT("updatedAt")));

    when = when.len > 0 ? when : doc_string(doc_get(plan, STR_LIT("completedAt")));
    when = when.len > 0 ? when : doc_string(doc_get(plan, STR_LIT("createdAt")));
    (void)snprintf(a->context, sizeof a->context, "%.*s",
                   (int)(session.len > 0 ? session.len : strlen(a->plan)),
                   session.len > 0 ? session.ptr : a->plan);
    (void)snprintf(a->when, sizeof a->when, "%.*s", (int)when.len, when.len > 0 ? when.ptr : "");
    return a2a_state_of(doc_string(doc_get(plan, STR_LIT("status"))));
}

static void on_plan(void *self, const struct reply *reply)
{
    struct a2a *a = self;
    struct buf *out = &a->h->out;
    struct buf fields;
    enum a2a_state state;

    a->h->call = NULL;
    if (!reply->ok) {
        a2a_refuse_problem(a, &reply->problem);
        return;
    }
    state = a2a_take_view(a, reply->body);
    if (a2a_is_over(state)) {
        buf_init(&fields, 256);
        a2a_put_fields(&fields, a->plan);
        a2a_ask(a, MSG_plan_result, MSG_plan_result_ok, true, &fields, on_answer);
        buf_done(&fields);
    } else if (a->way == A2A_NOW || state == A2A_INPUT_REQUIRED) {
        if (a->way == A2A_STREAM) {
            a->h->type = "text/event-stream";
            a->wrapped = true;
        }
        begin_event(a, out);
        a2a_put_task(a, state, (struct str){NULL, 0}, (struct doc){.ptr = NULL}, out);
        end_event(a, out);
        a2a_answer(a);
    } else {
        follow(a, doc_head(doc_get(reply->body, STR_LIT("lastSeq"))).u + 1);
    }
}

void a2a_show(struct a2a *a)
{
    struct buf fields;

    buf_init(&fields, 256);
    a2a_put_fields(&fields, a->plan);
    a2a_ask(a, MSG_plan_get, MSG_plan_view, true, &fields, on_plan);
    buf_done(&fields);
}
