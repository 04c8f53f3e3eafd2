/* agent serve: a command becomes an agent, in the foreground: baton-agent-exec with one skill. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/wire/doc.h"
#include "supervisor/cli/common/program.h"
#include "supervisor/cli/common/remote.h"
#include "supervisor/cli/verbs/verbs.h"

enum { PROGRAM_BYTES = 4096, ARGS_MAX = 24 };

/* baton-agent-exec is in the same folder. */
static bool find_program(char ret[PROGRAM_BYTES])
{
    static const char name[] = "baton-agent-exec";
    const ssize_t n = readlink("/proc/self/exe", ret, PROGRAM_BYTES - sizeof name - 1);
    char *slash;

    if (n <= 0) {
        return false;
    }
    ret[n] = 0;
    slash = strrchr(ret, '/');
    (void)snprintf(slash + 1, PROGRAM_BYTES - (size_t)(slash + 1 - ret), "%s", name);
    return access(ret, X_OK) == 0;
}

/* The settings of baton-agent-exec, which checks them. */
static char *settings_of(const struct cli *cli, struct bt_error *err)
{
    static const struct {
        const char *option, *member, *otherwise;
    } parts[] = {{"description", "description", NULL},
                 {"effects", "effects", "unsafe"}, /* nobody said that it may run twice */
                 {"stdin", "stdin", "text"},
                 {"result", "output", "text"}};
    cJSON *settings = cJSON_CreateObject();
    cJSON *command = cJSON_CreateObject();
    cJSON *argv = cJSON_AddArrayToObject(command, "argv");
    char text[512];
    char *json;

    (void)cJSON_AddItemToArray(cJSON_AddArrayToObject(settings, "commands"), command);
    (void)cJSON_AddStringToObject(command, "id", cli_value(cli, "skill"));
    for (int i = 1; i < cli->argc; i++) {
        (void)cJSON_AddItemToArray(argv, cJSON_CreateString(cli->argv[i]));
    }
    (void)snprintf(text, sizeof text, "Runs the program %.400s.", cli->argv[1]);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *given = cli_value(cli, parts[i].option);
        const char *value = given != NULL                ? given
                            : parts[i].otherwise != NULL ? parts[i].otherwise
                                                         : text;
        (void)cJSON_AddStringToObject(command, parts[i].member, value);
    }
    json = cjson_print(settings, false, err);
    cJSON_Delete(settings);
    return json;
}

static int add(char **args, int n, const char *name, const char *value)
{
    if (value != NULL) { /* execv changes none of them */
        args[n++] = (char *)(uintptr_t)name;
        args[n++] = (char *)(uintptr_t)value;
    }
    return n;
}

static void fill(const struct cli *cli, const struct bt_connection *to, char **args)
{
    const char *id = cli_value(cli, "id");
    int n = 0;

    args[n++] = (char *)(uintptr_t) "baton-agent-exec";
    n = add(args, n, "--agent-id", id != NULL ? id : cli_value(cli, "skill"));
    n = add(args, n, "--capacity", cli_value(cli, "capacity"));
    n = add(args, n, "--state", to->url == NULL ? cli_value(cli, "state") : NULL);
    n = add(args, n, "--connect", to->url);
    n = add(args, n, "--credential", to->credential);
    n = add(args, n, "--ca", to->url != NULL ? to->ca : NULL);
    n = add(args, n, "--cert", to->url != NULL ? to->cert : NULL);
    if (cli_flag(cli, "dry-run")) {
        args[n++] = (char *)(uintptr_t) "--card";
    }
    args[n] = NULL;
}

static enum cli_exit serve(struct cli *cli)
{
    char program[PROGRAM_BYTES];
    char *args[ARGS_MAX + 1];
    struct bt_connection to;
    struct bt_error err;
    char *settings;

    if (cli_connection(cli, &to, &err) != BT_OK) {
        return cli_fail(&err);
    }
    if (!find_program(program)) {
        cli_error("baton-agent-exec was not found beside this program (%s)", program);
        return CLI_INTERNAL;
    }
    settings = settings_of(cli, &err);
    if (settings == NULL) {
        return cli_fail(&err);
    }
    if (setenv("BATON_SETTINGS", settings, 1) == 0) {
        fill(cli, &to, args);
        (void)signal(SIGPIPE, SIG_DFL);
        (void)execv(program, args);
    }
    cli_error("%s: %s", program, strerror(errno));
    cJSON_free(settings);
    return CLI_INTERNAL;
}

enum cli_exit verb_agent(struct cli *cli)
{
    if (strcmp(cli->argv[0], "serve") != 0 || cli->argc < 2 || cli_value(cli, "skill") == NULL) {
        cli_error("usage: baton agent serve --skill NAME -- COMMAND [ARGUMENT]...");
        return CLI_USAGE;
    }
    if (strchr(cli->argv[1], '{') == NULL && !cli_program_is_there(cli->argv[1])) {
        cli_error("agent: '%s' is no program: no such file, or it may not be executed",
                  cli->argv[1]);
        return CLI_USAGE;
    }
    return serve(cli);
}
