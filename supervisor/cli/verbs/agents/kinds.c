#include "supervisor/cli/verbs/agents/kinds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/str.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/plan_file.h"
#include "supervisor/cli/common/program.h"
#include "supervisor/config/yaml.h"

enum { TARGET = 3, DOCUMENT_BYTES = 16 * 1024 * 1024, URL_BYTES = 2048 };

bool kinds_find_program(const char *name, char *ret, size_t cap)
{
    if (!cli_program_beside(name, ret, cap) || access(ret, X_OK) != 0) {
        cli_error("%s was not found beside this program (%s)", name, ret);
        return false;
    }
    return true;
}

/* The command line, whose program the daemon starts in a folder of its own: a path from here
 * becomes one from the root. Links stay, because some programs look at their own path. */
static void add_command(const struct cli *cli, int first, cJSON *list)
{
    const char *program = cli->argv[first];
    char path[4096];

    if (program[0] != '/' && strchr(program, '/') != NULL && strchr(program, '{') == NULL &&
        getcwd(path, sizeof path) != NULL && strlen(path) + strlen(program) + 2 <= sizeof path) {
        const size_t at = strlen(path);
        (void)snprintf(path + at, sizeof path - at, "/%s", program);
        program = path;
    }
    (void)cJSON_AddItemToArray(list, cJSON_CreateString(program));
    for (int i = first + 1; i < cli->argc; i++) {
        (void)cJSON_AddItemToArray(list, cJSON_CreateString(cli->argv[i]));
    }
}

cJSON *kinds_exec_settings(const struct cli *cli, const char *skill, int first)
{
    static const struct {
        const char *option, *member, *otherwise;
    } parts[] = {{"description", "description", NULL},
                 {"effects", "effects", "unsafe"}, /* nobody said that it may run twice */
                 {"stdin", "stdin", "text"},
                 {"result", "output", "text"}};
    cJSON *settings = cJSON_CreateObject();
    cJSON *command = cJSON_CreateObject();
    char text[512];

    (void)cJSON_AddItemToArray(cJSON_AddArrayToObject(settings, "commands"), command);
    (void)cJSON_AddStringToObject(command, "id", skill);
    add_command(cli, first, cJSON_AddArrayToObject(command, "argv"));
    (void)snprintf(text, sizeof text, "Runs the program %.400s.", cli->argv[first]);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *given = cli_value(cli, parts[i].option);
        const char *value = given != NULL                ? given
                            : parts[i].otherwise != NULL ? parts[i].otherwise
                                                         : text;
        (void)cJSON_AddStringToObject(command, parts[i].member, value);
    }
    return settings;
}

static bool is_url(const char *text)
{
    return strncmp(text, "https://", 8) == 0 || strncmp(text, "http://", 7) == 0;
}

/* The values of an option that may be repeated, as a list; none: no member. */
static void add_list(const struct cli *cli, const char *option, cJSON *to, const char *member)
{
    cJSON *list = cJSON_GetObjectItemCaseSensitive(to, member);

    for (int i = 0; cli_nth_value(cli, option, i) != NULL; i++) {
        if (list == NULL) {
            list = cJSON_AddArrayToObject(to, member);
        }
        (void)cJSON_AddItemToArray(list, cJSON_CreateString(cli_nth_value(cli, option, i)));
    }
}

/* An address of this machine is private; whoever types it wants it called. */
static void allow_this_machine(const char *url, cJSON *settings)
{
    static const struct {
        const char *host, *address;
    } here[] = {{"127.0.0.1", "127.0.0.1"}, {"[::1]", "::1"}, {"localhost", "127.0.0.1"}};
    const char *host = strstr(url, "://") + 3;

    for (size_t i = 0; i < sizeof here / sizeof here[0]; i++) {
        const size_t n = strlen(here[i].host);
        if (strncmp(host, here[i].host, n) == 0 && strchr(":/", host[n]) != NULL) {
            (void)cJSON_AddItemToArray(cJSON_AddArrayToObject(settings, "allowPrivate"),
                                       cJSON_CreateString(here[i].address));
        }
    }
}

/* What every agent that calls a URL may have. */
static void add_web(const struct cli *cli, const char *url, cJSON *bearer_in, cJSON *settings)
{
    const char *name = cli_value(cli, "bearer-env");

    allow_this_machine(url, settings);
    add_list(cli, "allow-private", settings, "allowPrivate");
    if (name != NULL) {
        (void)cJSON_AddStringToObject(cJSON_AddObjectToObject(bearer_in, "bearer"), "env", name);
    }
}

static bool needs(const struct cli *cli, bool is_there, const char *kind, const char *what)
{
    (void)cli;
    if (!is_there) {
        cli_error("usage: baton agents add %s AGENT_ID %s", kind, what);
    }
    return is_there;
}

static bool program_is_there(const char *program)
{
    if (strchr(program, '{') == NULL && !cli_program_is_there(program)) {
        cli_error("'%s' is no program: no such file, or it may not be executed", program);
        return false;
    }
    return true;
}

static enum cli_exit read_exec(struct cli *cli, struct new_agent *ret)
{
    const char *skill = cli_value(cli, "skill");

    if (!needs(cli, cli->argc > TARGET, "exec", "[--skill NAME] -- COMMAND [ARGUMENT]...") ||
        !program_is_there(cli->argv[TARGET])) {
        return CLI_USAGE;
    }
    ret->settings = kinds_exec_settings(cli, skill != NULL ? skill : ret->id, TARGET);
    return CLI_OK;
}

/* "GET /issues/{key}?fields={fields}": method, path, query. */
static bool add_request(const char *text, cJSON *action)
{
    char copy[URL_BYTES];
    char *path;
    char *query;
    cJSON *pairs;

    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy ||
        (path = strchr(copy, ' ')) == NULL || path[1] != '/') {
        cli_error("--request '%.100s': expected METHOD /PATH, such as 'GET /issues/{key}'", text);
        return false;
    }
    *path++ = 0;
    (void)cJSON_AddStringToObject(action, "method", copy);
    query = strchr(path, '?');
    if (query == NULL) {
        (void)cJSON_AddStringToObject(action, "path", path);
        return true;
    }
    *query++ = 0;
    (void)cJSON_AddStringToObject(action, "path", path);
    pairs = cJSON_AddObjectToObject(action, "query");
    for (char *next = query; next != NULL;) {
        char *pair = strsep(&next, "&");
        char *value = strchr(pair, '=');
        if (value == NULL) {
            cli_error("--request '%.100s': expected NAME=VALUE after ?, got '%.60s'", text, pair);
            return false;
        }
        *value++ = 0;
        (void)cJSON_AddStringToObject(pairs, pair, value);
    }
    return true;
}

static enum cli_exit read_http(struct cli *cli, struct new_agent *ret)
{
    const char *request = cli_value(cli, "request");
    const char *skill = cli_value(cli, "skill");
    const char *about = cli_value(cli, "description");
    const char *body = cli_value(cli, "body");
    cJSON *action;
    char text[512];

    if (!needs(cli, cli->argc == TARGET + 1 && is_url(cli->argv[TARGET]) && request != NULL, "http",
               "URL --request 'GET /PATH/{name}' [--skill NAME]")) {
        return CLI_USAGE;
    }
    ret->settings = cJSON_CreateObject();
    (void)cJSON_AddStringToObject(ret->settings, "baseUrl", cli->argv[TARGET]);
    add_web(cli, cli->argv[TARGET],
            cli_value(cli, "bearer-env") != NULL ? cJSON_AddObjectToObject(ret->settings, "auth")
                                                 : NULL,
            ret->settings);
    action = cJSON_CreateObject();
    (void)cJSON_AddItemToArray(cJSON_AddArrayToObject(ret->settings, "actions"), action);
    (void)snprintf(text, sizeof text, "%.200s of %.200s", request, cli->argv[TARGET]);
    (void)cJSON_AddStringToObject(action, "id", skill != NULL ? skill : ret->id);
    (void)cJSON_AddStringToObject(action, "description", about != NULL ? about : text);
    cli_add_value(cli, "effects", action, "effects");
    if (!add_request(request, action)) {
        return CLI_USAGE;
    }
    if (body != NULL) {
        cJSON *value = cli_read_value(body, "--body");
        if (value == NULL) {
            return CLI_USAGE;
        }
        (void)cJSON_AddItemToObject(action, "body", value);
    }
    return CLI_OK;
}

/* The document; *ret_yaml: it is YAML, and agents read JSON. Prints the error. */
static cJSON *read_document(const char *path, bool *ret_yaml)
{
    struct bt_error err;
    size_t len = 0;
    char *text = cli_read_file(path, DOCUMENT_BYTES, &len);
    cJSON *tree = NULL;
    const size_t start = text == NULL ? 0 : strspn(text, " \t\r\n");

    *ret_yaml = text != NULL && text[start] != '{';
    if (text != NULL && !*ret_yaml) {
        tree = cJSON_ParseWithLength(text, len);
        if (tree == NULL) {
            cli_error("%s: expected JSON, as it begins with {", path);
        }
    } else if (text != NULL &&
               yaml_read_deep((struct str){text, len}, path, &tree, &err) != BT_OK) {
        (void)cli_fail(&err);
        tree = NULL;
    }
    free(text);
    return tree;
}

static const char *server_of(const cJSON *document)
{
    const cJSON *servers = cJSON_GetObjectItemCaseSensitive(document, "servers");
    const char *url = json_text(cJSON_GetArrayItem(servers, 0), "url", "");

    return is_url(url) && strchr(url, '{') == NULL ? url : NULL;
}

static enum cli_exit read_openapi(struct cli *cli, struct new_agent *ret)
{
    const char *base = cli_value(cli, "base-url");
    cJSON *document = NULL;
    bool is_yaml = false;
    cJSON *openapi;
    char *path;

    if (!needs(cli, cli->argc == TARGET + 1, "openapi",
               "FILE [--base-url URL] [--only OPERATION...]")) {
        return CLI_USAGE;
    }
    path = realpath(cli->argv[TARGET], NULL);
    document = path != NULL ? read_document(path, &is_yaml) : NULL;
    if (path == NULL) {
        cli_error("%s: %s", cli->argv[TARGET], strerror(errno));
    }
    base = base != NULL || document == NULL ? base : server_of(document);
    if (document != NULL && (base == NULL || !is_url(base))) {
        cli_error("%s names no server with a whole URL; give --base-url https://HOST/PATH",
                  cli->argv[TARGET]);
    }
    if (document != NULL && base != NULL && is_url(base)) {
        ret->settings = cJSON_CreateObject();
        (void)cJSON_AddStringToObject(ret->settings, "baseUrl", base);
        add_web(cli, base,
                cli_value(cli, "bearer-env") != NULL
                    ? cJSON_AddObjectToObject(ret->settings, "auth")
                    : NULL,
                ret->settings);
        openapi = cJSON_AddObjectToObject(ret->settings, "openapi");
        (void)cJSON_AddStringToObject(openapi, "file", path);
        add_list(cli, "only", openapi, "operations");
    }
    free(path);
    if (is_yaml && ret->settings != NULL) {
        ret->document = document;
    } else {
        cJSON_Delete(document);
    }
    return ret->settings != NULL ? CLI_OK : CLI_USAGE;
}

/* The tools of a server, or the skills of an agent. */
static void add_choice(const struct cli *cli, const char *member, cJSON *settings)
{
    const char *effects = cli_value(cli, "effects");

    add_list(cli, "only", settings, member);
    if (effects != NULL) {
        (void)cJSON_AddStringToObject(cJSON_AddObjectToObject(settings, "effects"), "*", effects);
    }
}

static enum cli_exit read_mcp(struct cli *cli, struct new_agent *ret)
{
    const bool by_url = cli->argc == TARGET + 1 && is_url(cli->argv[TARGET]);

    if (!needs(cli, cli->argc > TARGET, "mcp", "URL | -- COMMAND [ARGUMENT]...") ||
        (!by_url && !program_is_there(cli->argv[TARGET]))) {
        return CLI_USAGE;
    }
    ret->settings = cJSON_CreateObject();
    if (by_url) {
        (void)cJSON_AddStringToObject(ret->settings, "url", cli->argv[TARGET]);
        add_web(cli, cli->argv[TARGET], ret->settings, ret->settings);
    } else {
        add_command(cli, TARGET, cJSON_AddArrayToObject(ret->settings, "command"));
    }
    add_choice(cli, "tools", ret->settings);
    return CLI_OK;
}

static enum cli_exit read_a2a(struct cli *cli, struct new_agent *ret)
{
    if (!needs(cli, cli->argc == TARGET + 1 && is_url(cli->argv[TARGET]), "a2a", "URL")) {
        return CLI_USAGE;
    }
    ret->settings = cJSON_CreateObject();
    (void)cJSON_AddStringToObject(ret->settings, "url", cli->argv[TARGET]);
    add_web(cli, cli->argv[TARGET], ret->settings, ret->settings);
    add_choice(cli, "skills", ret->settings);
    return CLI_OK;
}

enum cli_exit kinds_read(struct cli *cli, struct new_agent *ret)
{
    static const struct {
        const char *name, *program;
        enum cli_exit (*read)(struct cli *cli, struct new_agent *ret);
    } kinds[] = {{"exec", "baton-agent-exec", read_exec},
                 {"http", "baton-agent-http", read_http},
                 {"openapi", "baton-agent-http", read_openapi},
                 {"mcp", "baton-agent-mcp", read_mcp},
                 {"a2a", "baton-agent-a2a", read_a2a}};

    for (size_t i = 0; cli->argc > 2 && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(cli->argv[1], kinds[i].name) == 0) {
            *ret = (struct new_agent){
                .kind = kinds[i].name, .id = cli->argv[2], .program = kinds[i].program};
            return kinds[i].read(cli, ret);
        }
    }
    cli_error("usage: baton agents add exec|http|openapi|mcp|a2a AGENT_ID URL | FILE | -- "
              "COMMAND...");
    return CLI_USAGE;
}
