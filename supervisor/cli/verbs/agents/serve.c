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
#include "supervisor/cli/verbs/agents/kinds.h"
#include "supervisor/cli/verbs/verbs.h"

enum { PROGRAM_BYTES = 4096, ARGS_MAX = 24 };

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
    cJSON *tree;
    char *settings;

    if (cli_connection(cli, &to, &err) != BT_OK) {
        return cli_fail(&err);
    }
    if (!kinds_find_program("baton-agent-exec", program, sizeof program)) {
        return CLI_INTERNAL;
    }
    tree = kinds_exec_settings(cli, cli_value(cli, "skill"), 1);
    settings = cjson_print(tree, false, &err);
    cJSON_Delete(tree);
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
