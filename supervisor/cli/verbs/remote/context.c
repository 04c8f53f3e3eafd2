/* context: names for daemons on other hosts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "protocol/client/seeds.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/remote.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/cli/view/table.h"

static const char *const files[] = {"credential", "ca", "cert"};
enum { FILES = sizeof files / sizeof files[0], NAMES_MAX = 64 };

static cJSON *contexts_in(cJSON *tree)
{
    cJSON *all = cJSON_GetObjectItemCaseSensitive(tree, "contexts");

    return all != NULL ? all : cJSON_AddObjectToObject(tree, "contexts");
}

static enum cli_exit write_back(const cJSON *tree)
{
    struct bt_error err;

    return contexts_write(tree, &err) == BT_OK ? CLI_OK : cli_fail(&err);
}

static bool is_in_use(const cJSON *tree, const char *name)
{
    return strcmp(json_text(tree, "current", CLI_CONTEXT_LOCAL), name) == 0;
}

static void use(cJSON *tree, const char *name)
{
    cJSON_DeleteItemFromObjectCaseSensitive(tree, "current");
    if (strcmp(name, CLI_CONTEXT_LOCAL) != 0) {
        (void)cJSON_AddStringToObject(tree, "current", name);
    }
}

/* The files of the command line with their whole paths: the next call may be in another directory.
 * NULL on an error. */
static cJSON *read_context(const struct cli *cli)
{
    const char *url = cli_value(cli, "connect");
    cJSON *c = cli_fields("connect", url);
    struct bt_error err;
    uint32_t n;

    if (url == NULL || seeds_check(url, &n, &err) != BT_OK) {
        cli_error("context add: --connect: %s",
                  url != NULL ? err.msg : "expected tls+tcp://HOST:PORT");
        cJSON_Delete(c);
        return NULL;
    }
    for (size_t i = 0; i < FILES; i++) {
        const char *path = cli_value(cli, files[i]);
        char *whole = path == NULL ? NULL : realpath(path, NULL);
        if (whole == NULL) {
            cli_error("context add: --%s%s%s: %s", files[i], path != NULL ? " " : "",
                      path != NULL ? path : "", path != NULL ? strerror(errno) : "which FILE?");
            cJSON_Delete(c);
            return NULL;
        }
        (void)cJSON_AddStringToObject(c, files[i], whole);
        free(whole);
    }
    return c;
}

static enum cli_exit add(struct cli *cli, cJSON *tree, const char *name)
{
    cJSON *all = contexts_in(tree);
    cJSON *c;

    if (!contexts_name_ok(name)) {
        cli_error("NAME '%s': expected at most %d letters, digits, '.', '_' and '-', not '%s'",
                  name, CLI_CONTEXT_MAX, CLI_CONTEXT_LOCAL);
        return CLI_USAGE;
    }
    if (cJSON_GetObjectItemCaseSensitive(all, name) != NULL) {
        cli_error_hint("remove it first: baton context remove", "context '%s' exists already",
                       name);
        return CLI_USAGE;
    }
    c = read_context(cli);
    if (c == NULL) {
        return CLI_USAGE;
    }
    (void)cJSON_AddItemToObject(all, name, c);
    return write_back(tree);
}

static cJSON *json_of(const cJSON *tree, const cJSON *c)
{
    cJSON *o = cli_fields("name", c != NULL ? c->string : CLI_CONTEXT_LOCAL);

    (void)cJSON_AddStringToObject(o, "connect", json_text(c, "connect", ""));
    for (size_t i = 0; c != NULL && i < FILES; i++) {
        (void)cJSON_AddStringToObject(o, files[i], json_text(c, files[i], ""));
    }
    (void)cJSON_AddBoolToObject(o, "inUse",
                                is_in_use(tree, c != NULL ? c->string : CLI_CONTEXT_LOCAL));
    return o;
}

static void add_row(struct table *t, const cJSON *tree, const cJSON *c)
{
    const char *name = c != NULL ? c->string : CLI_CONTEXT_LOCAL;

    table_cell(t, "%s", is_in_use(tree, name) ? "*" : "");
    table_cell(t, "%s", name);
    table_cell(t, "%s", c != NULL ? json_text(c, "connect", "") : "the state directory");
}

static enum cli_exit list(struct cli *cli, cJSON *tree)
{
    static const char *const heads[] = {"IN USE", "NAME", "DAEMON", NULL};
    struct table *t = cli->json ? NULL : table_new(heads);
    cJSON *out = cli->json ? cJSON_CreateArray() : NULL;
    const cJSON *c;

    if (t != NULL) {
        add_row(t, tree, NULL);
    } else {
        (void)cJSON_AddItemToArray(out, json_of(tree, NULL));
    }
    cJSON_ArrayForEach(c, contexts_in(tree))
    {
        if (t != NULL) {
            add_row(t, tree, c);
        } else {
            (void)cJSON_AddItemToArray(out, json_of(tree, c));
        }
    }
    if (t != NULL) {
        table_show(t);
    } else {
        cli_print_json(out);
        cJSON_Delete(out);
    }
    return CLI_OK;
}

static enum cli_exit show(struct cli *cli, cJSON *tree, const char *name)
{
    const cJSON *c = cJSON_GetObjectItemCaseSensitive(contexts_in(tree), name);
    cJSON *o = json_of(tree, c);

    if (cli->json) {
        cli_print_json(o);
    } else if (c == NULL) {
        (void)printf("the daemon of the state directory on this host\n");
    } else {
        (void)printf("--connect %s", json_text(c, "connect", ""));
        for (size_t i = 0; i < FILES; i++) {
            (void)printf(" --%s %s", files[i], json_text(c, files[i], ""));
        }
        (void)printf("\n");
    }
    cJSON_Delete(o);
    return CLI_OK;
}

static enum cli_exit change(cJSON *tree, const char *name, bool remove)
{
    if (remove) {
        cJSON_DeleteItemFromObjectCaseSensitive(contexts_in(tree), name);
    }
    if (!remove || is_in_use(tree, name)) {
        use(tree, remove ? CLI_CONTEXT_LOCAL : name);
    }
    return write_back(tree);
}

/* The name that is spelt most alike; NULL = none. */
static const char *near_context(cJSON *tree, const char *name)
{
    const char *names[NAMES_MAX + 1] = {NULL};
    const cJSON *c;
    int n = 0;

    cJSON_ArrayForEach(c, contexts_in(tree))
    {
        if (n < NAMES_MAX) {
            names[n++] = c->string;
        }
    }
    return cli_did_you_mean(name, names);
}

static enum cli_exit run(struct cli *cli, cJSON *tree, const char *what, const char *name)
{
    static const char *const words[] = {"add", "list", "use", "show", "remove", NULL};
    const bool is_local = name != NULL && strcmp(name, CLI_CONTEXT_LOCAL) == 0;

    if (strcmp(what, "list") == 0) {
        if (name != NULL) {
            cli_error_hint("see: baton context --help", "context list takes no NAME, got '%s'",
                           name);
            return CLI_USAGE;
        }
        return list(cli, tree);
    }
    if (strcmp(what, "add") != 0 && strcmp(what, "use") != 0 && strcmp(what, "show") != 0 &&
        strcmp(what, "remove") != 0) {
        return cli_unknown_word("context", what, words);
    }
    if (name == NULL && strcmp(what, "show") == 0) {
        return show(cli, tree, json_text(tree, "current", CLI_CONTEXT_LOCAL));
    }
    if (name == NULL) {
        cli_error_hint("see: baton context --help", "context %s: which NAME?", what);
        return CLI_USAGE;
    }
    if (strcmp(what, "add") == 0) {
        return add(cli, tree, name);
    }
    if (cJSON_GetObjectItemCaseSensitive(contexts_in(tree), name) == NULL &&
        (!is_local || strcmp(what, "remove") == 0)) {
        const char *near = near_context(tree, name);
        cli_error_hint("see: baton context list", "there is no context '%s'%s%s%s", name,
                       near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                       near != NULL ? "'?" : "");
        return CLI_NOT_FOUND;
    }
    return strcmp(what, "show") == 0 ? show(cli, tree, name)
                                     : change(tree, name, strcmp(what, "remove") == 0);
}

enum cli_exit verb_context(struct cli *cli)
{
    struct cJSON *tree = NULL;
    struct bt_error err;
    enum cli_exit code;

    if (contexts_read(&tree, &err) != BT_OK) {
        return cli_fail(&err);
    }
    code = run(cli, tree, cli->argv[0], cli->argc > 1 ? cli->argv[1] : NULL);
    cJSON_Delete(tree);
    return code;
}
