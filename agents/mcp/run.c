#include "agents/mcp/run.h"

#include <stdio.h>
#include <stdlib.h>

#include "agents/mcp/content.h"
#include "agents/sdk/step.h"

enum { ROUNDS_MAX = 5, PROMPT_MAX = 1000, NEED_BYTES = 64 * 1024 };

#define LEGACY_KEY "answer"

static const struct mcp_tool *find_tool(const struct mcp_agent *agent, const char *skill)
{
    for (uint32_t i = 0; i < agent->n_tools; i++) {
        if (strcmp(agent->tools[i].skill, skill) == 0) {
            return &agent->tools[i];
        }
    }
    return NULL;
}

/* ---- the state that a modern server wants back ---- */

/* False: there is no memory for it. */
static bool keep_state(struct mcp_agent *agent, const char *key, struct str text)
{
    char *copy = strndup(text.ptr, text.len);
    struct mcp_state *s;

    (void)pthread_mutex_lock(&agent->lock);
    s = &agent->states[agent->next_state];
    agent->next_state = (agent->next_state + 1) % MCP_STATES_MAX;
    free(s->text);
    s->text = copy;
    (void)snprintf(s->key, sizeof s->key, "%s", key);
    (void)pthread_mutex_unlock(&agent->lock);
    return copy != NULL;
}

/* The newest state of the step; the caller frees. */
static char *take_state(struct mcp_agent *agent, const char *key)
{
    char *text = NULL;

    (void)pthread_mutex_lock(&agent->lock);
    for (uint32_t i = 0; i < MCP_STATES_MAX; i++) {
        struct mcp_state *s = &agent->states[i];
        if (s->text != NULL && strcmp(s->key, key) == 0) {
            free(text);
            text = s->text;
            s->text = NULL;
        }
    }
    (void)pthread_mutex_unlock(&agent->lock);
    return text;
}

/* ---- questions of the server ---- */

/* The schema of what a person gives: {mcp_answers: {KEY: the requested schema}}, each KEY needed.
 */
static void put_need_head(struct buf *out)
{
    buf_printf(out,
               "{\"type\":\"object\",\"required\":[\"%s\"],\"properties\":{\"%s\":{\"type\":"
               "\"object\",\"properties\":{",
               MCP_ANSWERS, MCP_ANSWERS);
}

static bool put_question(struct doc params, struct str key, struct buf *prompt, struct buf *schema,
                         struct buf *required, bool first)
{
    const struct doc wanted = doc_get(params, STR_LIT("requestedSchema"));
    const struct str text = doc_string(doc_get(params, STR_LIT("message")));
    struct buf name;
    enum bt_code code;

    buf_init(&name, NEED_BYTES);
    doc_put_str(&name, key);
    buf_printf(prompt, "%s%.*s", first ? "" : "\n", (int)text.len, text.len > 0 ? text.ptr : "");
    buf_add_cstr(schema, first ? "" : ",");
    buf_add_cstr(required, first ? "" : ",");
    code = buf_check(&name, NULL);
    code = code == BT_OK ? doc_to_json(doc_from_buf(&name), false, schema, NULL) : code;
    code = code == BT_OK ? doc_to_json(doc_from_buf(&name), false, required, NULL) : code;
    buf_fail(schema, code);
    buf_add_byte(schema, ':');
    if (wanted.ptr == NULL || doc_to_json(wanted, false, schema, NULL) != BT_OK) {
        buf_add_cstr(schema, "{}");
    }
    buf_done(&name);
    return schema->bad == BT_OK;
}

static void need(struct bt_step *step, struct buf *prompt, struct buf *schema, struct buf *required)
{
    const char *list = buf_cstr(required);

    buf_fail(schema, required->bad);
    buf_printf(schema, "},\"required\":[%s]}}}", list);
    if (schema->bad == BT_NOMEM || prompt->bad == BT_NOMEM) {
        step_lose(step, "the server's question");
        return;
    }
    bt_step_need_input(step, schema->bad == BT_OK ? buf_cstr(schema) : NULL, "%.*s",
                       prompt->len > PROMPT_MAX ? PROMPT_MAX : (int)prompt->len, buf_cstr(prompt));
}

/* Legacy: the question came while the tool ran, and was answered with "cancel". */
static void ask_legacy(struct bt_step *step, const struct mcp_call *c)
{
    struct buf prompt;
    struct buf schema;
    struct buf required;

    buf_init(&prompt, NEED_BYTES);
    buf_init(&schema, NEED_BYTES);
    buf_init(&required, NEED_BYTES);
    put_need_head(&schema);
    (void)put_question(doc_from_buf(&c->question), STR_LIT(LEGACY_KEY), &prompt, &schema, &required,
                       true);
    need(step, &prompt, &schema, &required);
    buf_done(&prompt);
    buf_done(&schema);
    buf_done(&required);
}

/* Modern: the result is a map of questions. False: one of them is not for a person. */
static bool ask_modern(struct bt_step *step, struct doc requests)
{
    struct doc_cursor c = doc_cursor(requests);
    struct doc_head head;
    struct buf prompt;
    struct buf schema;
    struct buf required;
    bool fits = true;

    buf_init(&prompt, NEED_BYTES);
    buf_init(&schema, NEED_BYTES);
    buf_init(&required, NEED_BYTES);
    put_need_head(&schema);
    (void)doc_next(&c, &head);
    for (uint32_t i = 0; i < head.n && fits; i++) {
        const struct str key = doc_string(doc_skip(&c));
        const struct doc request = doc_skip(&c);
        fits = str_is(doc_string(doc_get(request, STR_LIT("method"))), "elicitation/create");
        (void)put_question(doc_get(request, STR_LIT("params")), key, &prompt, &schema, &required,
                           i == 0);
    }
    if (fits) {
        need(step, &prompt, &schema, &required);
    } else {
        bt_step_fail(step, "TOOL_NOT_FOUND", false,
                     "the server asks for a model or for folders, which this agent does not give");
    }
    buf_done(&prompt);
    buf_done(&schema);
    buf_done(&required);
    return fits;
}

/* ---- the call ---- */

/* {KEY: {action: accept, content}} of what a person gave. */
static void put_responses(struct buf *out, struct doc answers)
{
    struct doc_cursor c = doc_cursor(answers);
    struct doc_head head;

    (void)doc_next(&c, &head);
    doc_put_cstr(out, "inputResponses");
    doc_put_map(out, head.n);
    for (uint32_t i = 0; i < head.n; i++) {
        doc_put_doc(out, doc_skip(&c));
        doc_put_map(out, 2);
        doc_put_cstr(out, "action");
        doc_put_cstr(out, "accept");
        doc_put_cstr(out, "content");
        doc_put_doc(out, doc_skip(&c));
    }
}

/* The parameters without the answers. */
static void put_arguments(struct buf *out, struct doc params)
{
    const bool answered = doc_get(params, STR_LIT(MCP_ANSWERS)).ptr != NULL;
    struct doc_cursor c = doc_cursor(params);
    struct doc_head head = {.n = 0};

    if (params.ptr != NULL) {
        (void)doc_next(&c, &head);
    }
    doc_put_map(out, head.n - answered);
    for (uint32_t i = 0; i < head.n; i++) {
        const struct doc key = doc_skip(&c);
        const struct doc value = doc_skip(&c);
        if (!str_is(doc_string(key), MCP_ANSWERS)) {
            doc_put_doc(out, key);
            doc_put_doc(out, value);
        }
    }
}

static void fail(struct bt_step *step, const struct mcp_call *c, bool repeatable,
                 const struct bt_error *err)
{
    const bool again = repeatable || !c->sent;
    const char *note = again ? "" : "; whether it took effect is not known";

    switch ((int)err->code) {
    case BT_CANCELLED:
        bt_step_fail(step, "CANCELLED", false, "%s%s", err->msg, note);
        return;
    case BT_TIMEOUT:
        bt_step_fail(step, "TIMEOUT", again, "%s%s", err->msg, note);
        return;
    case BT_NOMEM:
    case BT_UNAVAILABLE:
        bt_step_fail(step, "SERVICE_UNAVAILABLE", again, "%s%s", err->msg, note);
        return;
    case BT_UNAUTHORIZED:
        bt_step_fail(step, "PERMISSION_DENIED", false, "%s", err->msg);
        return;
    default:
        bt_step_fail(step, strstr(err->msg, "-32602") != NULL ? "VALIDATION_ERROR" : "UNKNOWN",
                     false, "%s", err->msg);
        return;
    }
}

/* What the result asks for. 0: nothing, it is the end. 1: the same again with *io_state. -1: the
 * step has its reply. */
static int read_required(struct mcp_agent *agent, struct bt_step *step, struct doc result,
                         char **io_state)
{
    const struct doc requests = doc_get(result, STR_LIT("inputRequests"));
    const struct str state = doc_string(doc_get(result, STR_LIT("requestState")));

    if (!str_is(doc_string(doc_get(result, STR_LIT("resultType"))), "input_required")) {
        return 0;
    }
    if (requests.ptr != NULL && doc_head(requests).kind == DOC_MAP && doc_head(requests).n > 0) {
        if (ask_modern(step, requests) && state.ptr != NULL &&
            !keep_state(agent, bt_step_key(step), state)) {
            step_lose(step, "the server's state");
        }
        return -1;
    }
    free(*io_state);
    *io_state = state.ptr != NULL ? strndup(state.ptr, state.len) : NULL;
    if (state.ptr != NULL && *io_state == NULL) {
        step_lose(step, "the server's state");
        return -1;
    }
    return 1;
}

/* One round. 1: another one. -1: the step has its reply. */
static int call_once(struct mcp_agent *agent, struct bt_step *step, const struct mcp_tool *tool,
                     char **io_state)
{
    const struct doc params = step->req.parameters;
    const struct doc answers = params.ptr == NULL ? params : doc_get(params, STR_LIT(MCP_ANSWERS));
    const bool answered = answers.ptr != NULL && doc_head(answers).kind == DOC_MAP;
    const uint64_t left = bt_step_time_left_ms(step);
    const uint64_t timeout = agent->settings->timeout_ms;
    struct mcp_message m;
    struct mcp_call c;
    struct bt_error err;
    int next = -1;

    mcp_call_init(&c, "tools/call", left < timeout ? left : timeout);
    c.name = tool->tool;
    c.step = step;
    c.n_members = 2;
    doc_put_cstr(&c.members, "name");
    doc_put_cstr(&c.members, tool->tool);
    doc_put_cstr(&c.members, "arguments");
    put_arguments(&c.members, params);
    if (agent->server.modern && answered) {
        put_responses(&c.members, answers);
        c.n_members++;
    } else if (answered) {
        c.reply = doc_get(answers, STR_LIT(LEGACY_KEY));
    }
    if (*io_state != NULL) {
        doc_put_cstr(&c.members, "requestState");
        doc_put_cstr(&c.members, *io_state);
        c.n_members++;
    }
    if (mcp_server_call(&agent->server, &c, &m, &err) != BT_OK) {
        fail(step, &c, !tool->unsafe, &err);
    } else if (c.question.len > 0) {
        ask_legacy(step, &c);
    } else {
        next = read_required(agent, step, m.body, io_state);
        if (next == 0) {
            mcp_content_reply(step, m.body, !tool->unsafe);
            next = -1;
        }
    }
    mcp_call_done(&c);
    return next;
}

static void call_tool(struct mcp_agent *agent, struct bt_step *step, const struct mcp_tool *tool)
{
    char *state = take_state(agent, bt_step_key(step));
    int next = 1;

    for (int round = 0; next == 1 && round < ROUNDS_MAX; round++) {
        next = call_once(agent, step, tool, &state);
    }
    if (next == 1) {
        bt_step_fail(step, "UNKNOWN", false, "the server asked for %d more rounds and did not end",
                     ROUNDS_MAX);
    }
    free(state);
}

/* ---- resources ---- */

static void use_resources(struct mcp_agent *agent, struct bt_step *step, bool read)
{
    struct mcp_message m;
    struct mcp_call c;
    struct bt_error err;
    const char *uri = bt_step_param_string(step, "uri", "");
    const char *cursor = bt_step_param_string(step, "cursor", "");

    mcp_call_init(&c, read ? "resources/read" : "resources/list", agent->settings->timeout_ms);
    c.step = step;
    c.name = read ? uri : NULL;
    if (read || cursor[0] != 0) {
        doc_put_cstr(&c.members, read ? "uri" : "cursor");
        doc_put_cstr(&c.members, read ? uri : cursor);
        c.n_members = 1;
    }
    if (mcp_server_call(&agent->server, &c, &m, &err) != BT_OK) {
        fail(step, &c, true, &err);
    } else if (read) {
        mcp_content_resource(step, m.body);
    } else {
        mcp_content_data(step, m.body);
    }
    mcp_call_done(&c);
}

void mcp_run(struct bt_step *step, void *self)
{
    struct mcp_agent *agent = self;
    const char *skill = bt_step_skill(step);
    const struct mcp_tool *tool = find_tool(agent, skill);

    if (strcmp(skill, MCP_SKILL_RESOURCES) == 0 || strcmp(skill, MCP_SKILL_READ) == 0) {
        use_resources(agent, step, strcmp(skill, MCP_SKILL_READ) == 0);
    } else if (tool != NULL) {
        call_tool(agent, step, tool);
    } else {
        bt_step_fail(step, "TOOL_NOT_FOUND", false, "the server has no tool '%s'", skill);
    }
}
