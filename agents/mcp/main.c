#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "agents/mcp/run.h"
#include "agents/sdk/secret.h"
#include "protocol/base/log.h"

enum { LIST_PAGES_MAX = 50, LIST_MS = 30000 };

/* The skills of an agent are fixed once it has registered: it ends, and the supervisor starts it
 * again, which reads the new list. */
static void list_changed(void)
{
    if (getenv("BATON_SPAWNED") != NULL) {
        log_info("mcp.changed", "the server's list of tools changed; the agent starts again");
        (void)kill(getpid(), SIGTERM);
    } else {
        log_warn("mcp.changed", "the server's list of tools changed; start the agent again");
    }
}

static enum bt_code add_tool(struct bt_agent_init *init, struct mcp_agent *agent, struct doc tool,
                             struct bt_error *err)
{
    struct bt_skill skill;
    enum bt_code code;

    if (agent->n_tools == LIMIT_SKILLS - 2) {
        return err_set(err, BT_LIMIT,
                       "the server has more than %d tools; choose some: tools: [\"get_*\"]",
                       LIMIT_SKILLS - 2);
    }
    code = mcp_skill_make(agent->settings, &agent->arena, tool, &skill,
                          &agent->tools[agent->n_tools], err);
    skill.run = mcp_run;
    if (code == BT_OK) {
        code = bt_agent_add_skill(init, &skill, err);
    }
    agent->n_tools += code == BT_OK;
    return code;
}

static enum bt_code add_tools(struct bt_agent_init *init, struct mcp_agent *agent, struct doc list,
                              struct bt_error *err)
{
    struct doc_cursor c = doc_cursor(list);
    struct doc_head head = {.n = 0};
    enum bt_code code = BT_OK;

    if (list.ptr == NULL || !doc_next(&c, &head) || head.kind != DOC_ARRAY) {
        return err_set(err, BT_PROTOCOL, "tools/list: the answer has no list of tools");
    }
    for (uint32_t i = 0; i < head.n && code == BT_OK; i++) {
        const struct doc tool = doc_skip(&c);
        if (mcp_settings_want(agent->settings, doc_string(doc_get(tool, STR_LIT("name"))))) {
            code = add_tool(init, agent, tool, err);
        }
    }
    return code;
}

static enum bt_code list_tools(struct bt_agent_init *init, struct mcp_agent *agent,
                               struct bt_error *err)
{
    char cursor[1024] = "";
    enum bt_code code = BT_OK;

    for (int page = 0; code == BT_OK && (page == 0 || cursor[0] != 0); page++) {
        struct mcp_message m;
        struct mcp_call c;
        struct str next;
        mcp_call_init(&c, "tools/list", LIST_MS);
        if (cursor[0] != 0) {
            doc_put_cstr(&c.members, "cursor");
            doc_put_cstr(&c.members, cursor);
            c.n_members = 1;
        }
        code = mcp_server_call(&agent->server, &c, &m, err);
        if (code == BT_OK) {
            code = add_tools(init, agent, doc_get(m.body, STR_LIT("tools")), err);
        }
        next = code == BT_OK ? doc_string(doc_get(m.body, STR_LIT("nextCursor"))) : (struct str){0};
        if (next.len >= sizeof cursor || page == LIST_PAGES_MAX) {
            code = err_set(err, BT_PROTOCOL, "tools/list: the pages do not end");
        } else {
            (void)memcpy(cursor, next.len > 0 ? next.ptr : "", next.len);
            cursor[next.len] = 0;
        }
        mcp_call_done(&c);
    }
    return code;
}

/* A server without resources answers an error. */
static enum bt_code add_resources(struct bt_agent_init *init, struct mcp_agent *agent,
                                  struct bt_error *err)
{
    const struct bt_skill list = {
        .id = MCP_SKILL_RESOURCES,
        .description = "Lists the resources of the server.",
        .input_schema = "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
                        "\"cursor\":{\"type\":\"string\"}}}",
        .effects = "none",
        .run = mcp_run};
    const struct bt_skill read = {
        .id = MCP_SKILL_READ,
        .description = "Reads a resource of the server by its URI.",
        .input_schema =
            "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"uri\"],"
            "\"properties\":{\"uri\":{\"type\":\"string\",\"minLength\":1}}}",
        .effects = "none",
        .run = mcp_run};
    struct mcp_message m;
    struct mcp_call c;
    enum bt_code code;

    mcp_call_init(&c, "resources/list", LIST_MS);
    code = mcp_server_call(&agent->server, &c, &m, NULL);
    mcp_call_done(&c);
    if (code != BT_OK) {
        return BT_OK;
    }
    code = bt_agent_add_skill(init, &list, err);
    return code == BT_OK ? bt_agent_add_skill(init, &read, err) : code;
}

static void agent_free(struct mcp_agent *agent)
{
    for (uint32_t i = 0; i < MCP_STATES_MAX; i++) {
        free(agent->states[i].text);
    }
    (void)pthread_mutex_destroy(&agent->lock);
    arena_done(&agent->arena);
    mcp_settings_free(agent->settings);
    free(agent);
}

static enum bt_code start(struct bt_agent_init *in, struct mcp_agent *agent, struct bt_error *err)
{
    enum bt_code code = mcp_server_start(&agent->server, agent->settings, err);

    if (code != BT_OK) {
        return code;
    }
    code = list_tools(in, agent, err);
    if (code == BT_OK) {
        code = add_resources(in, agent, err);
    }
    if (code == BT_OK && agent->n_tools == 0) {
        code = err_set(err, BT_INVALID, "the server has no tool that fits tools");
    }
    agent->server.changed = list_changed;
    if (code != BT_OK) {
        mcp_server_stop(&agent->server);
    }
    return code;
}

static enum bt_code init(struct bt_agent_init *in, void **ret_self, struct bt_error *err)
{
    struct mcp_agent *agent = calloc(1, sizeof *agent);
    enum bt_code code = agent == NULL ? err_set(err, BT_NOMEM, "out of memory") : web_start(err);

    if (code != BT_OK) {
        free(agent);
        return code;
    }
    (void)pthread_mutex_init(&agent->lock, NULL);
    secrets_ask_first(agent_find_secret, in);
    code = mcp_settings_read(bt_agent_settings_json(in), &agent->settings, err);
    secrets_ask_first(NULL, NULL);
    if (code == BT_OK && agent->settings->agent_id != NULL) {
        code = bt_agent_set_id(in, agent->settings->agent_id, err);
    }
    if (code == BT_OK) {
        code = start(in, agent, err);
    }
    if (code != BT_OK) {
        agent_free(agent);
        return code;
    }
    *ret_self = agent;
    return BT_OK;
}

static void done(void *self)
{
    struct mcp_agent *agent = self;

    mcp_server_stop(&agent->server);
    agent_free(agent);
}

int main(int argc, char **argv)
{
    const struct bt_agent_def def = {
        .agent_id = "mcp",
        .name = "MCP server",
        .icon = "plug",
        .color = "#6c5ce7",
        .description = "Makes the tools of an MCP server skills.",
        .version = BATON_VERSION,
        .capacity = 4,
        .init = init,
        .done = done,
    };

    (void)signal(SIGPIPE, SIG_IGN); /* a server that ended is an error of write */
    return bt_agent_main(&def, argc, argv);
}
