/* The tools: a table, and one for each skill of an agent. */
#include <stdio.h>

#include "supervisor/gateway/mcp/mcp_internal.h"

enum { TOOL_NAME_MAX = 64 };

#define READS "{\"readOnlyHint\":true}"
#define PLAN_ID "\"planId\":{\"type\":\"string\",\"description\":\"Id of a plan.\"}"
#define GOAL                                                                                       \
    "\"goal\":{\"type\":\"string\",\"description\":\"What is to be reached, in words; a planner "  \
    "makes the steps.\"}"
#define PLAN                                                                                       \
    "\"plan\":{\"type\":\"object\",\"description\":\"A plan document instead of a goal: steps "    \
    "with stepId, agentId, skill, task, parameters, dependsOn.\"}"

static const struct mcp_tool tools[] = {
    {"run_plan", "Run a goal or plan",
     "Runs a goal in words, or a plan document, and returns the result when it is over.",
     "{\"type\":\"object\",\"properties\":{" GOAL "," PLAN
     ",\"sessionId\":{\"type\":\"string\"},\"clientKey\":{\"type\":\"string\",\"description\":"
     "\"The same key again is the same plan.\"},\"policy\":{\"type\":\"object\"}}}",
     "{\"readOnlyHint\":false,\"openWorldHint\":true}", "plan_submit", true},
    {"start_plan", "Start a plan",
     "Submits a goal or a plan document and returns its planId at once; get_plan has its state.",
     "{\"type\":\"object\",\"properties\":{" GOAL "," PLAN
     ",\"sessionId\":{\"type\":\"string\"},\"clientKey\":{\"type\":\"string\"},\"policy\":{"
     "\"type\":\"object\"}}}",
     "{\"readOnlyHint\":false,\"openWorldHint\":true}", "plan_submit", false},
    {"check_plan", "Check a plan",
     "Checks a plan document without running it: problems and advice.",
     "{\"type\":\"object\",\"properties\":{" PLAN "},\"required\":[\"plan\"]}", READS, "plan_lint",
     false},
    {"get_plan", "State of a plan", "Returns a plan with its steps and their states.",
     "{\"type\":\"object\",\"properties\":{" PLAN_ID
     ",\"steps\":{\"type\":\"boolean\",\"description\":\"false: without steps\"}},\"required\":["
     "\"planId\"]}",
     READS, "plan_get", false},
    {"get_result", "Result of a plan", "Returns the result of a plan, or of one of its steps.",
     "{\"type\":\"object\",\"properties\":{" PLAN_ID
     ",\"stepId\":{\"type\":\"string\"}},\"required\":[\"planId\"]}",
     READS, "plan_result", false},
    {"list_plans", "Plans", "Lists plans, newest first.",
     "{\"type\":\"object\",\"properties\":{\"status\":{\"type\":\"string\"},\"sessionId\":{"
     "\"type\":\"string\"},\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100},"
     "\"cursor\":{\"type\":\"string\"}}}",
     READS, "plan_list", false},
    {"cancel_plan", "Cancel a plan", "Cancels a plan; its running steps are stopped.",
     "{\"type\":\"object\",\"properties\":{" PLAN_ID
     ",\"reason\":{\"type\":\"string\"}},\"required\":[\"planId\"]}",
     "{\"readOnlyHint\":false,\"destructiveHint\":true,\"idempotentHint\":true}", "plan_cancel",
     false},
    {"list_reviews", "Open reviews", "Lists what waits for the decision of a person.",
     "{\"type\":\"object\",\"properties\":{" PLAN_ID "}}", READS, "review_list", false},
    {"decide_review", "Decide a review",
     "Decides a review in the name of the person who uses this client.",
     "{\"type\":\"object\",\"properties\":{\"reviewId\":{\"type\":\"string\"},\"decision\":{"
     "\"enum\":[\"approve\",\"reject\",\"skip\"]},\"comment\":{\"type\":\"string\"},\"edit\":{"
     "\"type\":\"object\",\"description\":\"approve: new parameters, or the data that is asked "
     "for\"}},\"required\":[\"reviewId\",\"decision\"]}",
     "{\"readOnlyHint\":false}", "review_decide", false},
    {"list_agents", "Agents", "Lists the agents with their skills, states and instances.",
     "{\"type\":\"object\",\"properties\":{}}", READS, "agents_list", false},
};

const struct mcp_tool *mcp_tool_find(struct str name)
{
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++) {
        if (str_is(name, tools[i].name)) {
            return &tools[i];
        }
    }
    return NULL;
}

/* "AGENT__SKILL"; other characters than letters, digits, - and _ become _. */
static void skill_name(struct str agent, struct str skill, char ret[TOOL_NAME_MAX + 1])
{
    int n = snprintf(ret, TOOL_NAME_MAX + 1, "%.*s__%.*s", (int)agent.len, agent.ptr,
                     (int)skill.len, skill.ptr);

    n = n > TOOL_NAME_MAX ? TOOL_NAME_MAX : n;
    for (int i = 0; i < n; i++) {
        const char c = ret[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_')) {
            ret[i] = '_';
        }
    }
}

bool mcp_is_skill(struct str tool, struct str agent, struct str skill)
{
    char name[TOOL_NAME_MAX + 1];

    skill_name(agent, skill, name);
    return str_is(tool, name);
}

static void put_tool(struct buf *out, const struct mcp_tool *t)
{
    json_open(out, '{');
    json_key(out, "name");
    json_cstr(out, t->name);
    json_key(out, "title");
    json_cstr(out, t->title);
    json_key(out, "description");
    json_cstr(out, t->description);
    json_key(out, "inputSchema");
    json_raw(out, t->schema);
    json_key(out, "annotations");
    json_raw(out, t->annotations);
    json_close(out, '}');
}

static void put_skill(struct buf *out, struct str agent, struct doc skill)
{
    const struct str id = doc_string(doc_get(skill, STR_LIT("id")));
    const struct str title = doc_string(doc_get(skill, STR_LIT("name")));
    const struct str about = doc_string(doc_get(skill, STR_LIT("description")));
    const struct str effects = doc_string(doc_get(skill, STR_LIT("effects")));
    const struct doc schema = doc_get(skill, STR_LIT("inputSchema"));
    const bool is_object = str_is(doc_string(doc_get(schema, STR_LIT("type"))), "object");
    char name[TOOL_NAME_MAX + 1];

    skill_name(agent, id, name);
    json_open(out, '{');
    json_key(out, "name");
    json_cstr(out, name);
    json_member(out, "title", title);
    json_member(out, "description", about);
    json_key(out, "inputSchema");
    if (is_object) {
        json_doc(out, schema);
    } else {
        json_raw(out, "{\"type\":\"object\"}");
    }
    json_key(out, "annotations");
    json_open(out, '{');
    json_key(out, "readOnlyHint");
    json_bool(out, str_is(effects, "none"));
    json_key(out, "idempotentHint");
    json_bool(out, str_is(effects, "none") || str_is(effects, "idempotent"));
    json_close(out, '}');
    json_close(out, '}');
}

static void on_agents(void *self, const struct reply *reply)
{
    struct mcp *m = self;
    struct buf *out = &m->h->out;
    const struct doc agents = doc_get(reply->body, STR_LIT("agents"));
    const struct doc_head head = agents.ptr == NULL ? (struct doc_head){0} : doc_head(agents);

    m->h->call = NULL;
    if (!reply->ok) {
        http_problem(m->h, &reply->problem);
        http_ready(m->h);
        return;
    }
    mcp_begin(m, out);
    json_key(out, "tools");
    json_open(out, '[');
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++) {
        put_tool(out, &tools[i]);
    }
    mcp_put_recipes(m, out);
    for (uint32_t i = 0; i < head.n; i++) {
        const struct doc card = doc_get(doc_at(agents, i), STR_LIT("card"));
        const struct str agent = doc_string(doc_get(card, STR_LIT("agentId")));
        const struct doc skills = doc_get(card, STR_LIT("skills"));
        const uint32_t n = skills.ptr == NULL ? 0 : doc_head(skills).n;
        for (uint32_t k = 0; k < n; k++) {
            put_skill(out, agent, doc_at(skills, k));
        }
    }
    json_close(out, ']');
    mcp_no_cache(m, out);
    mcp_end(out);
    mcp_answer(m);
}

void mcp_list_tools(struct mcp *m)
{
    struct buf fields;

    buf_init(&fields, 16);
    doc_put_map(&fields, 0);
    mcp_ask(m, MSG_agents_list, MSG_agents_list_ok, true, doc_from_buf(&fields), on_agents);
    buf_done(&fields);
}
