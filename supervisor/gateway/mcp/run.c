/* A plan that a tool runs: progress while it runs, questions to the person, the result at the end.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/gateway/mcp/mcp_internal.h"
#include "supervisor/gateway/stream.h"

struct run {
    struct mcp *m;
    uint64_t progress;
    bool quiet, cancelled, asks;
    uint64_t asked_seq;
    struct buf questions; /* modern: members of inputRequests */
};

/* ---- messages of the stream ---- */

static void begin_message(const struct run *r, struct buf *out)
{
    if (!r->quiet) {
        buf_add_cstr(out, "event: message\ndata: ");
    }
}

static void end_message(const struct run *r, struct buf *out)
{
    buf_add_cstr(out, r->quiet ? "" : "\n\n");
}

static struct str text(struct doc d, const char *name)
{
    return doc_string(doc_get(d, str_from(name)));
}

static void put_progress(struct stream *st, struct doc event, const char *what)
{
    struct run *r = stream_self(st);
    const struct doc token = doc_get(mcp_param(r->m, "_meta"), STR_LIT("progressToken"));
    struct buf *out = stream_out(st);
    const struct str own = text(event, "stepId");
    const struct str step = own.len > 0 ? own : text(event, "planStepId");
    const struct str more = text(event, "text");
    struct buf words;

    if (r->quiet || token.ptr == NULL) {
        return;
    }
    buf_init(&words, 8192);
    buf_printf(&words, "%.*s%s%s", (int)step.len, step.len > 0 ? step.ptr : "",
               step.len > 0 ? ": " : "", what);
    if (more.len > 0) {
        buf_add_cstr(&words, ": ");
        buf_add_str(&words, more);
    }
    begin_message(r, out);
    json_raw(out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{");
    json_key(out, "progressToken");
    json_doc(out, token);
    json_key(out, "progress");
    json_u64(out, ++r->progress);
    json_key(out, "message");
    json_str(out, buf_str(&words));
    buf_add_cstr(out, "}}");
    end_message(r, out);
    buf_done(&words);
}

/* ---- questions: the id of one is its kind and review ---- */

static void put_form(struct buf *out, struct doc event, bool is_input)
{
    const struct doc schema = doc_get(event, STR_LIT("schema"));
    const struct str prompt = text(event, "prompt");

    json_open(out, '{');
    json_key(out, "mode");
    json_cstr(out, "form");
    json_key(out, "message");
    json_str(out, prompt.len > 0 ? prompt : STR_LIT("A step of the plan waits for a decision."));
    json_key(out, "requestedSchema");
    if (is_input) {
        json_doc(out, schema);
    } else {
        json_raw(out, "{\"type\":\"object\",\"properties\":{\"decision\":{\"type\":\"string\","
                      "\"title\":\"Decision\",\"enum\":[\"approve\",\"reject\",\"skip\"]},"
                      "\"comment\":{\"type\":\"string\",\"title\":\"Comment\"}},\"required\":["
                      "\"decision\"]}");
    }
    json_close(out, '}');
}

static void ask_person(struct stream *st, struct doc event)
{
    struct run *r = stream_self(st);
    const bool is_input = str_is(doc_string(doc_path(event, STR_LIT("schema.type"))), "object");
    const struct str review = text(event, "reviewId");
    struct buf *out = r->m->modern ? &r->questions : stream_out(st);
    char id[200];

    put_progress(st, event, "waits for a person");
    if (!r->m->elicits || (r->quiet && !r->m->modern)) {
        return;
    }
    (void)snprintf(id, sizeof id, "%c:%.*s", is_input ? 'i' : 'a', (int)review.len, review.ptr);
    if (r->m->modern) {
        json_key(out, id);
        json_raw(out, "{\"method\":\"elicitation/create\",\"params\":");
        put_form(out, event, is_input);
        json_close(out, '}');
        r->asks = true;
        r->asked_seq = doc_head(doc_get(event, STR_LIT("seq"))).u;
        stream_stop(st);
        return;
    }
    begin_message(r, out);
    json_raw(out, "{\"jsonrpc\":\"2.0\",\"method\":\"elicitation/create\"");
    json_key(out, "id");
    json_cstr(out, id);
    json_key(out, "params");
    put_form(out, event, is_input);
    json_close(out, '}');
    end_message(r, out);
}

void mcp_take_decision(struct mcp *m, struct str id, struct doc response, call_done *done)
{
    const struct str action = text(response, "action");
    const struct doc content = doc_get(response, STR_LIT("content"));
    const bool accepts = str_is(action, "accept");
    const struct str comment = text(content, "comment");
    struct str decision = text(content, "decision");
    struct buf fields;
    bool is_input;

    if (id.len <= 2 || id.ptr[1] != ':' || !(accepts || str_is(action, "decline"))) {
        return; /* cancel: it waits on */
    }
    is_input = id.ptr[0] == 'i';
    decision = !accepts ? STR_LIT("reject") : is_input ? STR_LIT("approve") : decision;
    buf_init(&fields, LIMIT_CONTROL_BYTES);
    doc_put_map(&fields, 2u + (accepts && is_input) + (!is_input && comment.len > 0));
    doc_put_cstr(&fields, "reviewId");
    doc_put_str(&fields, (struct str){id.ptr + 2, id.len - 2});
    doc_put_cstr(&fields, "decision");
    doc_put_str(&fields, decision);
    if (accepts && is_input) {
        doc_put_cstr(&fields, "edit");
        doc_put_doc(&fields, content);
    }
    if (!is_input && comment.len > 0) {
        doc_put_cstr(&fields, "comment");
        doc_put_str(&fields, comment);
    }
    mcp_ask(m, MSG_review_decide, MSG_empty, false, doc_from_buf(&fields), done);
    buf_done(&fields);
}

/* ---- the view ---- */

static void on_event(struct stream *st, struct doc event)
{
    static const struct {
        const char *type, *words;
    } told[] = {{"plan_generated", "the plan is made"},     {"plan_step_started", "started"},
                {"plan_step_progress", "goes on"},          {"plan_step_retry", "is tried again"},
                {"agent_handoff", "goes to another agent"}, {"review_decided", "was decided"},
                {"plan_step_completed", "is over"}};
    const struct str type = text(event, "type");

    if (str_is(type, "plan_step_waiting")) {
        ask_person(st, event);
    }
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        if (str_is(type, told[i].type)) {
            put_progress(st, event, told[i].words);
        }
    }
}

static void put_structured(struct buf *out, struct doc body, struct doc result)
{
    static const char *const names[] = {"planId", "status", "outcome"};

    json_key(out, "structuredContent");
    json_open(out, '{');
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        json_member(out, names[i], text(body, names[i]));
    }
    if (result.ptr != NULL) {
        json_key(out, "result");
        json_doc(out, result);
    }
    json_close(out, '}');
}

static void put_result(struct buf *out, struct doc body)
{
    const struct str status = text(body, "status");
    const struct doc result = doc_get(body, STR_LIT("result"));
    const struct str whole = text(body, "aggregatedResult");
    const struct str why = text(body, "failureReason");
    const struct str of_step = text(result, "text");
    struct str words = result.ptr != NULL ? of_step : whole;

    words = words.len == 0 && why.len > 0 ? why : words;
    words = words.len == 0 ? status : words;
    mcp_put_text(out, words);
    put_structured(out, body, doc_get(result, STR_LIT("data")));
    if (!str_is(status, "completed")) {
        json_key(out, "isError");
        json_bool(out, true);
    }
}

static void on_result(void *self, const struct reply *reply)
{
    struct stream *st = self;
    const struct run *r = stream_self(st);
    struct buf *out = stream_out(st);

    stream_called(st);
    begin_message(r, out);
    mcp_begin(r->m, out);
    if (reply->ok) {
        put_result(out, reply->body);
    } else {
        mcp_put_problem(out, &reply->problem);
    }
    mcp_end(out);
    end_message(r, out);
    stream_finish(st);
}

/* The plan waits for a person: the client asks, and calls again with the answer. */
static void finish_with_questions(struct stream *st)
{
    struct run *r = stream_self(st);
    struct buf *out = stream_out(st);
    const struct str plan = stream_plan(st);
    char state[96];

    (void)snprintf(state, sizeof state, "%.*s:%" PRIu64, (int)plan.len, plan.ptr, r->asked_seq + 1);
    begin_message(r, out);
    json_raw(out, "{\"jsonrpc\":\"2.0\"");
    json_key(out, "id");
    json_doc(out, r->m->id);
    json_key(out, "result");
    json_raw(out, "{\"resultType\":\"input_required\",\"inputRequests\":{");
    buf_add(out, r->questions.at, r->questions.len);
    json_close(out, '}');
    json_key(out, "requestState");
    json_cstr(out, state);
    buf_add_cstr(out, "}}");
    end_message(r, out);
    stream_finish(st);
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

    if (r->asks || r->cancelled) {
        if (r->asks) {
            finish_with_questions(st);
        } else {
            stream_finish(st);
        }
        return;
    }
    buf_init(&fields, 1024);
    doc_put_map(&fields, 2u + (r->m->step_skill[0] != 0));
    doc_put_cstr(&fields, "planId");
    doc_put_str(&fields, stream_plan(st));
    doc_put_cstr(&fields, "steps");
    doc_put_bool(&fields, false);
    if (r->m->step_skill[0] != 0) {
        doc_put_cstr(&fields, "stepId");
        doc_put_cstr(&fields, "call");
    }
    spec.fields = doc_from_buf(&fields);
    if (!stream_call(st, &spec)) {
        stream_finish(st);
    }
    buf_done(&fields);
}

/* ---- cancel ---- */

static void on_cancelled(void *self, const struct reply *reply)
{
    (void)self;
    (void)reply;
}

static void cancel_plan(struct stream *st)
{
    struct http *h = stream_http(st);
    struct call_spec spec = {
        .type = MSG_plan_cancel, .answer = MSG_plan_cancel_ok, .done = on_cancelled};
    struct call *call;
    struct bt_error err;
    struct buf fields;

    buf_init(&fields, 1024);
    doc_put_map(&fields, 2);
    doc_put_cstr(&fields, "planId");
    doc_put_str(&fields, stream_plan(st));
    doc_put_cstr(&fields, "reason");
    doc_put_cstr(&fields, "the client of MCP cancelled its request");
    spec.fields = doc_from_buf(&fields);
    (void)!caller_call(h->caller, &spec, h->s->now, &call, &err);
    buf_done(&fields);
}

static void on_gone(struct stream *st, bool finished)
{
    struct run *r = stream_self(st);

    /* a modern client that closes its request has cancelled it */
    if (!finished && r->m->modern && !r->cancelled && stream_plan(st).len > 0) {
        cancel_plan(st);
    }
    buf_done(&r->questions);
    free(r);
}

static const struct stream_view view = {on_event, on_over, on_gone};

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

void mcp_cancel(const struct mcp *m, struct doc request_id)
{
    struct http *h = m->h;

    for (struct stream *st = stream_next(h->s, NULL); st != NULL; st = stream_next(h->s, st)) {
        struct run *r = stream_view_of(st) == &view ? stream_self(st) : NULL;
        if (r != NULL && stream_http(st)->caller == h->caller && doc_eq(r->m->id, request_id) &&
            same_text(stream_http(st)->heads.mcp_session, h->heads.mcp_session)) {
            r->cancelled = true;
            cancel_plan(st);
            stream_stop(st);
        }
    }
}

void mcp_follow(struct mcp *m, struct str plan_id, uint64_t from_seq)
{
    struct run *r = calloc(1, sizeof *r);
    const char *accept = m->h->heads.accept;

    if (r == NULL) {
        mcp_refuse(m, RPC_INTERNAL, "out of memory for a plan");
        return;
    }
    r->m = m;
    r->quiet = accept == NULL || (strcasestr(accept, "text/event-stream") == NULL &&
                                  strcasestr(accept, "*/*") == NULL);
    buf_init(&r->questions, LIMIT_CONTROL_BYTES);
    stream_attach(m->h, plan_id, from_seq, &view, r, r->quiet);
}
