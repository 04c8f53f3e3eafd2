/* tools/call: a request of the wire, or a plan that is followed. */
#include <stdio.h>

#include "supervisor/gateway/mcp/mcp_internal.h"
#include "supervisor/gateway/telemetry/telemetry.h"

/* ---- results ---- */

void mcp_put_text(struct buf *out, struct str text)
{
    json_key(out, "content");
    json_open(out, '[');
    json_open(out, '{');
    json_key(out, "type");
    json_cstr(out, "text");
    json_key(out, "text");
    json_str(out, text);
    json_close(out, '}');
    json_close(out, ']');
}

void mcp_put_problem(struct buf *out, const struct problem *p)
{
    struct buf text;

    buf_init(&text, 64 * 1024);
    buf_add_cstr(&text, bt_code_name(p->code));
    buf_add_cstr(&text, ": ");
    (void)buf_add_repaired(&text, p->message);
    mcp_put_text(out, buf_str(&text));
    json_key(out, "isError");
    json_bool(out, true);
    buf_done(&text);
}

static void on_tool(void *self, const struct reply *reply)
{
    struct mcp *m = self;
    struct buf *out = &m->h->out;
    struct buf text;

    m->h->call = NULL;
    mcp_begin(m, out);
    if (!reply->ok) {
        mcp_put_problem(out, &reply->problem);
    } else {
        buf_init(&text, LIMIT_STEP_BYTES * 4);
        if (str_is(doc_string(mcp_param(m, "name")), "start_plan")) {
            telemetry_note_plan(m->h, reply->body, mcp_param(m, "_meta"));
        }
        if (answer_body(reply->body, &text) == BT_OK) {
            mcp_put_text(out, buf_str(&text));
            json_key(out, "structuredContent");
            json_raw(out, buf_cstr(&text));
        }
        buf_done(&text);
    }
    mcp_end(out);
    mcp_answer(m);
}

/* ---- a plan ---- */

static void on_submitted(void *self, const struct reply *reply)
{
    struct mcp *m = self;

    m->h->call = NULL;
    if (!reply->ok) {
        mcp_begin(m, &m->h->out);
        mcp_put_problem(&m->h->out, &reply->problem);
        mcp_end(&m->h->out);
        mcp_answer(m);
        return;
    }
    telemetry_note_plan(m->h, reply->body, mcp_param(m, "_meta"));
    mcp_follow(m, doc_string(doc_get(reply->body, STR_LIT("planId"))), 1);
}

static void submit_step(struct mcp *m)
{
    const struct doc arguments = mcp_param(m, "arguments");
    struct buf fields;

    buf_init(&fields, LIMIT_CONTROL_BYTES);
    doc_put_map(&fields, 1);
    doc_put_cstr(&fields, "plan");
    doc_put_map(&fields, 1);
    doc_put_cstr(&fields, "steps");
    doc_put_array(&fields, 1);
    doc_put_map(&fields, 5);
    doc_put_cstr(&fields, "stepId");
    doc_put_cstr(&fields, "call");
    doc_put_cstr(&fields, "agentId");
    doc_put_cstr(&fields, m->step_agent);
    doc_put_cstr(&fields, "skill");
    doc_put_cstr(&fields, m->step_skill);
    doc_put_cstr(&fields, "task");
    doc_put_cstr(&fields, m->step_skill);
    doc_put_cstr(&fields, "parameters");
    if (arguments.ptr != NULL) {
        doc_put_doc(&fields, arguments);
    } else {
        doc_put_map(&fields, 0);
    }
    if (buf_check(&fields, NULL) != BT_OK) {
        mcp_refuse(m, RPC_PARAMS, "the arguments have too many bytes: at most 1048576");
    } else {
        mcp_ask(m, MSG_plan_submit, MSG_plan_submit_ok, false, doc_from_buf(&fields), on_submitted);
    }
    buf_done(&fields);
}

static bool copy_id(char to[65], struct str id)
{
    if (id.len > 64) {
        return false;
    }
    memcpy(to, id.ptr, id.len);
    to[id.len] = 0;
    return true;
}

/* Finds whose skill the tool is. */
static void on_agents(void *self, const struct reply *reply)
{
    struct mcp *m = self;
    const struct str name = doc_string(mcp_param(m, "name"));
    const struct doc agents = doc_get(reply->body, STR_LIT("agents"));
    const uint32_t agents_n = agents.ptr == NULL ? 0 : doc_head(agents).n;

    m->h->call = NULL;
    for (uint32_t i = 0; reply->ok && i < agents_n; i++) {
        const struct doc card = doc_get(doc_at(agents, i), STR_LIT("card"));
        const struct str agent = doc_string(doc_get(card, STR_LIT("agentId")));
        const struct doc skills = doc_get(card, STR_LIT("skills"));
        const uint32_t n = skills.ptr == NULL ? 0 : doc_head(skills).n;
        for (uint32_t k = 0; k < n; k++) {
            const struct str skill = doc_string(doc_get(doc_at(skills, k), STR_LIT("id")));
            if (mcp_is_skill(name, agent, skill) && copy_id(m->step_agent, agent) &&
                copy_id(m->step_skill, skill)) {
                submit_step(m);
                return;
            }
        }
    }
    mcp_refuse(m, RPC_PARAMS,
               reply->ok ? "there is no such tool; tools/list has those that are"
                         : "the daemon does not answer; try again");
}

static void find_skill(struct mcp *m)
{
    struct buf fields;

    buf_init(&fields, 16);
    doc_put_map(&fields, 0);
    mcp_ask(m, MSG_agents_list, MSG_agents_list_ok, true, doc_from_buf(&fields), on_agents);
    buf_done(&fields);
}

/* ---- a person has answered: the plan goes on ---- */

static void on_decided(void *self, const struct reply *reply)
{
    struct mcp *m = self;
    const struct str state = doc_string(mcp_param(m, "requestState"));
    const char *colon = memchr(state.ptr, ':', state.len);
    uint64_t seq = 1;

    m->h->call = NULL;
    if (!reply->ok && reply->problem.code != BT_CONFLICT) { /* CONFLICT: somebody was quicker */
        mcp_begin(m, &m->h->out);
        mcp_put_problem(&m->h->out, &reply->problem);
        mcp_end(&m->h->out);
        mcp_answer(m);
        return;
    }
    (void)fields_number((struct str){colon + 1, (size_t)(state.ptr + state.len - colon) - 1},
                        INT64_MAX - 1, &seq);
    mcp_follow(m, (struct str){state.ptr, (size_t)(colon - state.ptr)}, seq);
}

/* False: it is no such retry. */
static bool go_on(struct mcp *m)
{
    const struct str state = doc_string(mcp_param(m, "requestState"));
    struct doc_cursor at = doc_cursor(mcp_param(m, "inputResponses"));
    struct doc_head head, key;

    if (state.len == 0 || memchr(state.ptr, ':', state.len) == NULL || !doc_next(&at, &head) ||
        head.kind != DOC_MAP || head.n == 0 || !doc_next(&at, &key)) {
        return false;
    }
    mcp_take_decision(m, key.str, doc_skip(&at), on_decided);
    if (m->h->state != HTTP_WAITS) { /* nothing was decided: it waits on */
        const struct reply none = {.ok = true};
        http_wait(m->h);
        on_decided(m, &none);
    }
    return true;
}

void mcp_call_tool(struct mcp *m)
{
    const struct str name = doc_string(mcp_param(m, "name"));
    const struct mcp_tool *tool = mcp_tool_find(name);
    const struct doc arguments = mcp_param(m, "arguments");
    struct fields_from from = {.uri = &m->h->uri, .params = &m->h->params};
    char field[FIELD_NAME_MAX + 1];
    struct bt_error err;
    struct buf json;
    struct buf fields;

    if (go_on(m)) {
        return;
    }
    if (tool == NULL) {
        if (!mcp_run_recipe(m, on_submitted)) {
            find_skill(m);
        }
        return;
    }
    for (uint32_t i = 0; i < routes_n && from.route == NULL; i++) {
        from.route = strcmp(routes[i].name, tool->route) == 0 ? &routes[i] : NULL;
    }
    buf_init(&json, LIMIT_STEP_BYTES);
    buf_init(&fields, LIMIT_STEP_BYTES);
    if (arguments.ptr != NULL && doc_to_json(arguments, false, &json, &err) == BT_OK) {
        from.body = buf_str(&json);
    }
    if (fields_gather(&from, &fields, field, &err) != BT_OK) {
        mcp_begin(m, &m->h->out);
        mcp_put_problem(&m->h->out,
                        &(struct problem){.code = err.code, .message = str_from(err.msg)});
        mcp_end(&m->h->out);
        mcp_answer(m);
    } else {
        mcp_ask(m, from.route->request, from.route->answer, from.route->method == HTTP_GET,
                doc_from_buf(&fields), tool->runs ? on_submitted : on_tool);
    }
    buf_done(&json);
    buf_done(&fields);
}
