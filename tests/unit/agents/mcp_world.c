#include "tests/unit/agents/mcp_world.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct mcp_agent *agent;
static bool connected;
static char script_path[] = "/tmp/baton-mcp-XXXXXX";
static char log_path[64];

void mcp_drop(void)
{
    if (agent == NULL) {
        return;
    }
    if (connected) {
        mcp_server_stop(&agent->server);
    }
    for (uint32_t i = 0; i < MCP_STATES_MAX; i++) {
        free(agent->states[i].text);
    }
    (void)pthread_mutex_destroy(&agent->lock);
    arena_done(&agent->arena);
    mcp_settings_free(agent->settings);
    free(agent);
    agent = NULL;
    connected = false;
}

struct mcp_agent *mcp_use(const char *members)
{
    char json[8192];
    struct bt_error err;

    mcp_drop();
    agent = calloc(1, sizeof *agent);
    assert_non_null(agent);
    agent->arena.max = 1024 * 1024;
    (void)pthread_mutex_init(&agent->lock, NULL);
    (void)snprintf(json, sizeof json, "{%s}", members);
    if (mcp_settings_read(service_text(json), &agent->settings, &err) != BT_OK) {
        fail_msg("%s: %s", json, err.msg);
    }
    agent->tools[0] = (struct mcp_tool){.skill = "work", .tool = "do work", .unsafe = true};
    agent->tools[1] = (struct mcp_tool){.skill = "read", .tool = "read"};
    agent->n_tools = 2;
    return agent;
}

enum bt_code mcp_connect(struct bt_error *err)
{
    const enum bt_code code = mcp_server_start(&agent->server, agent->settings, err);

    connected = code == BT_OK;
    return code;
}

static void connects(void)
{
    struct bt_error err = {.msg = ""};

    if (mcp_connect(&err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
}

void mcp_next(const char *message)
{
    service_next(200, "Content-Type: application/json\r\n", service_text(message));
}

void mcp_http(bool modern, const char *members)
{
    char all[2048];

    service_forget();
    (void)snprintf(all, sizeof all, "'url':'$/mcp','allowPrivate':['127.0.0.1']%s", members);
    (void)mcp_use(all);
    mcp_next(modern ? MCP_IS_MODERN : MCP_IS_LEGACY);
    if (!modern) {
        service_next(200, "Mcp-Session-Id: s1\r\n", service_text(MCP_HELLO));
        service_next(202, "", "");
    }
    connects();
    service_forget();
}

void mcp_stdio(bool modern, const char *script, const char *members)
{
    /* q: a line that is not kept. r: one that is. s: writes a line with '"' for "~", and the id of
     * the last request for "@". */
    static const char begin[] = "i() { read -r l || exit 0; id=${l#*'\"id\":'}; id=${id%%,*}; }\n"
                                "q() { i; }\n"
                                "r() { i; printf '%s\\n' \"$l\" >>\"$0.log\"; }\n"
                                "s() { printf '%s\\n' \"$1\" | sed \"s/~/\\\"/g; s/@/$id/g\"; }\n"
                                "q; s '{~id~:@,";
    char all[1024];
    FILE *f = fopen(script_path, "we");

    assert_non_null(f);
    assert_true(fputs(begin, f) >= 0);
    assert_true(fputs(modern ? "~result~:{~supportedVersions~:[~" MCP_MODERN "~]}}'\n"
                             : "~error~:{~code~:-32601}}'\nq; s '{~id~:@,~result~:{}}'; q\n",
                      f) >= 0);
    assert_true(fprintf(f, "%s\n", script) > 0);
    assert_int_equal(fclose(f), 0);
    (void)unlink(log_path);
    (void)snprintf(all, sizeof all, "'command':['/bin/sh','%s']%s", script_path, members);
    (void)mcp_use(all);
    connects();
}

struct mcp_agent *mcp_used(void)
{
    return agent;
}

void mcp_lose(void)
{
    (void)unlink(script_path);
}

const char *mcp_heard(void)
{
    static char text[65536];
    FILE *f = fopen(log_path, "re");
    size_t n = 0;

    if (f != NULL) {
        n = fread(text, 1, sizeof text - 1, f);
        (void)fclose(f);
    }
    text[n] = 0;
    return text;
}

const char *mcp_do(const char *skill, const char *parameters)
{
    struct buf json;
    struct bt_step *step;

    buf_init(&json, 1024 * 1024);
    buf_printf(&json, "{\"task\":\"t\",\"parameters\":%s}", service_text(parameters));
    step = steps_make(skill, buf_cstr(&json));
    buf_done(&json);
    return steps_run(step, mcp_run, agent);
}

void mcp_says(const char *reply, const char *part)
{
    steps_expect(reply, service_text(part));
}

int mcp_start(void **state)
{
    struct bt_error err;
    const int fd = mkstemp(script_path);

    (void)signal(SIGPIPE, SIG_IGN);
    (void)close(fd);
    (void)snprintf(log_path, sizeof log_path, "%s.log", script_path);
    return fd < 0 || web_start(&err) != BT_OK ? -1 : service_start(state);
}

int mcp_stop(void **state)
{
    mcp_drop();
    steps_forget();
    (void)unlink(log_path);
    (void)unlink(script_path);
    return service_stop(state);
}

int mcp_begin(void **state)
{
    (void)state;
    mcp_drop();
    service_forget();
    return 0;
}
