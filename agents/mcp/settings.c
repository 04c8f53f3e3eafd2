#include "agents/mcp/settings.h"

#include <stdlib.h>

#include "agents/sdk/settings/settings.h"
#include "agents/web/settings.h"
#include "agents/web/url.h"
#include "protocol/base/glob.h"

enum { SETTINGS_BYTES = 1024 * 1024, TIMEOUT_MS = 60000, TIMEOUT_MAX_MS = 24 * 60 * 60 * 1000 };

static enum bt_code no_memory(struct bt_error *err)
{
    return err_set(err, BT_NOMEM, "out of memory for the settings");
}

static enum bt_code read_command(struct mcp_settings *s, struct doc map, struct bt_error *err)
{
    enum bt_code code = field_list(&s->arena, map, "command", 256, &s->command, err);

    if (code == BT_OK && s->command != NULL && (s->command[0] == NULL || s->command[0][0] == 0)) {
        code = err_set(err, BT_INVALID, "command: expected a list: the program and its arguments");
    }
    if (code == BT_OK) {
        code = field_env(&s->arena, map, &s->env, err);
    }
    if (code == BT_OK) {
        code = field_list(&s->arena, map, "passEnv", FIELD_ENV_MAX, &s->pass_env, err);
    }
    return code == BT_OK ? field_text(&s->arena, map, "cwd", false, &s->cwd, err) : code;
}

static enum bt_code read_url(struct mcp_settings *s, struct doc map, struct bt_error *err)
{
    const char *own[] = {NULL, NULL};
    enum bt_code code = field_text(&s->arena, map, "url", false, &s->url, err);

    if (code == BT_OK) {
        code = field_bool(map, "allowHttp", &s->policy.allow_http, err);
    }
    if (code == BT_OK && s->url != NULL) {
        code = url_check(str_from(s->url), s->policy.allow_http, err);
        code = code == BT_OK ? code : err_wrap(err, "url");
    }
    own[0] = s->url;
    if (code == BT_OK) {
        code = web_read_policy(&s->arena, map, own, &s->policy, err);
    }
    if (code == BT_OK) {
        code = field_texts(&s->arena, map, "headers", MCP_LIST_MAX, &s->headers, err);
    }
    if (code == BT_OK && doc_get(map, STR_LIT("bearer")).ptr != NULL) {
        code = web_read_secret(&s->secrets, &s->arena, map, "bearer", &s->bearer, err);
    }
    if (code == BT_OK && (s->url == NULL) == (s->command == NULL)) {
        code = err_set(err, BT_INVALID,
                       "give one of command (a server over stdio) and url (over HTTP)");
    }
    return code;
}

static enum bt_code read_rest(struct mcp_settings *s, struct doc map, struct bt_error *err)
{
    enum bt_code code = field_list(&s->arena, map, "tools", MCP_LIST_MAX, &s->tools, err);

    s->timeout_ms = TIMEOUT_MS;
    code = code == BT_OK ? field_effects(&s->arena, map, MCP_LIST_MAX, &s->effects, err) : code;
    return code == BT_OK ? field_number(map, "timeoutMs", 1, TIMEOUT_MAX_MS, &s->timeout_ms, err)
                         : code;
}

static enum bt_code read_all(void *self, struct doc map, struct bt_error *err)
{
    struct mcp_settings *s = self;
    static const char *const known[] = {"agentId", "command",    "env",          "passEnv",
                                        "cwd",     "url",        "headers",      "bearer",
                                        "tools",   "allowHosts", "allowPrivate", "caFile",
                                        "effects", "allowHttp",  "timeoutMs"};
    enum bt_code code = settings_check_names(map, known, sizeof known / sizeof known[0], err);

    if (code == BT_OK) {
        code = field_text(&s->arena, map, "agentId", false, &s->agent_id, err);
    }
    if (code == BT_OK) {
        code = read_command(s, map, err);
    }
    if (code == BT_OK) {
        code = read_url(s, map, err);
    }
    return code == BT_OK ? read_rest(s, map, err) : code;
}

enum bt_code mcp_settings_read(const char *json, struct mcp_settings **ret, struct bt_error *err)
{
    struct mcp_settings *s = calloc(1, sizeof *s);
    enum bt_code code;

    if (s == NULL) {
        return no_memory(err);
    }
    s->policy.secrets = &s->secrets;
    code = settings_parse(json, SETTINGS_BYTES, read_all, s, err);
    if (code != BT_OK) {
        mcp_settings_free(s);
        return code;
    }
    *ret = s;
    return BT_OK;
}

void mcp_settings_free(struct mcp_settings *s)
{
    if (s != NULL) {
        secrets_done(&s->secrets);
        arena_done(&s->arena);
        free(s);
    }
}

bool mcp_settings_want(const struct mcp_settings *s, struct str tool)
{
    for (size_t i = 0; s->tools != NULL && s->tools[i] != NULL; i++) {
        if (glob_fits(str_from(s->tools[i]), tool)) {
            return true;
        }
    }
    return s->tools == NULL;
}
