/* credential add, list, show, rotate, revoke: files of the state directory, without a daemon. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"
#include "protocol/client/credential.h"
#include "protocol/client/state.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/cli/view/table.h"

#define GRACE_MS 86400000u

enum { PATH_BYTES = 4096 };

static const char *status_of(const struct credential *c, msec wall)
{
    if (c->revoked != 0) {
        return "revoked";
    }
    return credential_is_valid(c, wall) ? "valid" : "expired";
}

static void add_time(cJSON *row, const char *name, msec at)
{
    char iso[CLOCK_ISO_LEN + 1];

    if (at != 0) {
        clock_iso(at, iso);
        (void)cJSON_AddStringToObject(row, name, iso);
    }
}

/* Everything but the keys. */
static cJSON *describe(const struct credential *c, const char *file)
{
    cJSON *row = cJSON_CreateObject();
    cJSON *agents = cJSON_AddArrayToObject(row, "agents");

    (void)cJSON_AddStringToObject(row, "id", c->who.id);
    (void)cJSON_AddStringToObject(row, "role", role_name(c->who.role));
    (void)cJSON_AddStringToObject(row, "status", status_of(c, clock_wall_ms()));
    for (uint32_t i = 0; i < c->who.agents_n; i++) {
        (void)cJSON_AddItemToArray(agents, cJSON_CreateString(c->who.agents[i]));
    }
    add_time(row, "created", c->created);
    add_time(row, "expires", c->expires);
    add_time(row, "revoked", c->revoked);
    add_time(row, "previousKeyUntil", c->previous_until);
    if (file != NULL) {
        (void)cJSON_AddStringToObject(row, "file", file);
    }
    return row;
}

static void join_agents(const struct credential *c, char *ret, size_t cap)
{
    size_t n = 0;

    ret[0] = 0;
    for (uint32_t i = 0; i < c->who.agents_n && n < cap; i++) {
        n += (size_t)snprintf(ret + n, cap - n, "%s%s", i > 0 ? " " : "", c->who.agents[i]);
    }
}

static void show_one(const struct cli *cli, const struct credential *c, const char *file)
{
    cJSON *row = describe(c, file);

    if (cli->json) {
        cli_print_json(row);
    } else {
        const cJSON *member;
        cJSON_ArrayForEach(member, row)
        {
            char agents[IDENTITY_AGENTS_MAX * (LIMIT_ID_BYTES + 2)];
            join_agents(c, agents, sizeof agents);
            (void)printf("%-17s %s\n", member->string,
                         cJSON_IsArray(member) ? (agents[0] == 0 ? "-" : agents)
                                               : member->valuestring);
        }
    }
    cJSON_Delete(row);
}

/* ---- the actions ---- */

struct action {
    struct cli *cli;
    const char *dir; /* the state directory */
    const char *id;  /* NULL for list */
};

static bool read_agents(const struct cli *cli, struct identity *who)
{
    const char *glob;

    while ((glob = cli_nth_value(cli, "agents", (int)who->agents_n)) != NULL) {
        const size_t n = strlen(glob);
        if (n == 0 || n > LIMIT_ID_BYTES || who->agents_n == IDENTITY_AGENTS_MAX ||
            !cli_is_text(glob, "--agents")) {
            cli_error("--agents: expected at most %d globs of 1 to %d bytes, as 'calc*'",
                      IDENTITY_AGENTS_MAX, LIMIT_ID_BYTES);
            return false;
        }
        memcpy(who->agents[who->agents_n++], glob, n);
    }
    if ((who->agents_n > 0) != (who->role == ROLE_AGENT)) {
        cli_error(who->agents_n > 0
                      ? "--agents: only for --role agent"
                      : "--role agent wants --agents GLOB: the agents that it may be");
        return false;
    }
    return true;
}

/* A time from now on; 0 without the option. */
static bool read_until(const struct cli *cli, const char *option, msec *ret)
{
    const char *text = cli_value(cli, option);
    uint64_t ms = 0;
    char name[24];

    *ret = 0;
    if (text == NULL) {
        return true;
    }
    (void)snprintf(name, sizeof name, "--%s", option);
    if (!cli_age(text, name, &ms)) {
        return false;
    }
    if (ms == 0) {
        cli_error("--%s: expected more than 0", option);
        return false;
    }
    *ret = clock_wall_ms() + ms;
    return true;
}

/* Prints the error when there is none. */
static enum cli_exit load(const struct action *a, struct credential *ret)
{
    struct bt_error err;
    const enum bt_code code = credential_load(a->dir, a->id, ret, &err);

    if (code == BT_NOT_FOUND) {
        cli_error_hint("see: baton credential list", "there is no credential '%s'", a->id);
        return CLI_NOT_FOUND;
    }
    return code == BT_OK ? CLI_OK : cli_fail(&err);
}

/* Stores it, and writes the copy that the client gets. */
static enum cli_exit store(const struct action *a, const struct credential *c, bool replace)
{
    const char *file = cli_value(a->cli, "file");
    struct bt_error err;

    if (!replace && file != NULL && credential_write(file, c, false, &err) != BT_OK) {
        return cli_fail(&err); /* before anything is valid */
    }
    if (credential_store(a->dir, c, replace, &err) != BT_OK) {
        return cli_fail(&err);
    }
    if (replace && file != NULL && credential_write(file, c, true, &err) != BT_OK) {
        return cli_fail(&err);
    }
    char own[PATH_BYTES];
    (void)snprintf(own, sizeof own, "%s/credentials/%s", a->dir, c->who.id);
    show_one(a->cli, c, file != NULL ? file : own);
    return CLI_OK;
}

static enum cli_exit add(const struct action *a)
{
    const char *role = cli_value(a->cli, "role");
    struct credential c = {.created = clock_wall_ms()};
    struct credential other;
    struct bt_error err;
    enum cli_exit code;

    if (!credential_id_ok(str_from(a->id), &err)) {
        return cli_fail(&err);
    }
    if (role == NULL) {
        cli_error(
            "credential add: --role is missing: observer, submitter, reviewer, agent or admin");
        return CLI_USAGE;
    }
    if (!role_parse(str_from(role), &c.who.role)) {
        static const char *const roles[] = {"observer", "submitter", "reviewer",
                                            "agent",    "admin",     NULL};
        return cli_unknown_word("--role", role, roles);
    }
    if (!read_agents(a->cli, &c.who) || !read_until(a->cli, "expires", &c.expires)) {
        return CLI_USAGE;
    }
    memcpy(c.who.id, a->id, strlen(a->id));
    if (credential_load(a->dir, a->id, &other, &err) != BT_NOT_FOUND) {
        cli_error("the credential %s is there already; a new key: baton credential rotate %s",
                  a->id, a->id);
        return CLI_USAGE;
    }
    if (state_dir_make(a->dir, &err) != BT_OK || credential_new_key(&c, &err) != BT_OK) {
        return cli_fail(&err);
    }
    code = store(a, &c, false);
    explicit_bzero(&c, sizeof c);
    return code;
}

static enum cli_exit rotate(const struct action *a)
{
    struct credential c;
    struct bt_error err;
    msec until;
    enum cli_exit code;

    if (!read_until(a->cli, "grace", &until)) {
        return CLI_USAGE;
    }
    code = load(a, &c);
    if (code != CLI_OK) {
        return code;
    }
    if (c.revoked != 0) {
        cli_error("the credential %s is revoked, which is for good; add another one", a->id);
        return CLI_USAGE;
    }
    if (credential_rotate(&c, until != 0 ? until : clock_wall_ms() + GRACE_MS, &err) != BT_OK) {
        return cli_fail(&err);
    }
    code = store(a, &c, true);
    explicit_bzero(&c, sizeof c);
    return code;
}

static enum cli_exit revoke(const struct action *a)
{
    struct credential c;
    struct bt_error err;
    const enum cli_exit code = load(a, &c);

    if (code != CLI_OK) {
        return code;
    }
    c.revoked = c.revoked != 0 ? c.revoked : clock_wall_ms();
    c.previous_until = 0;
    if (credential_store(a->dir, &c, true, &err) != BT_OK) {
        return cli_fail(&err);
    }
    show_one(a->cli, &c, NULL);
    return CLI_OK;
}

static enum cli_exit show(const struct action *a)
{
    struct credential c;
    const enum cli_exit code = load(a, &c);

    if (code == CLI_OK) {
        show_one(a->cli, &c, NULL);
    }
    return code;
}

/* ---- list ---- */

struct listing {
    struct table *table;
    cJSON *rows;
};

static void list_one(void *self, const char *name, const struct credential *c,
                     const struct bt_error *why)
{
    struct listing *l = self;
    cJSON *row = c != NULL ? describe(c, NULL) : cJSON_CreateObject();
    char agents[IDENTITY_AGENTS_MAX * (LIMIT_ID_BYTES + 2)] = "";

    if (c == NULL) {
        (void)cJSON_AddStringToObject(row, "id", name);
        (void)cJSON_AddStringToObject(row, "status", "refused");
        (void)cJSON_AddStringToObject(row, "reason", why->msg);
    } else {
        join_agents(c, agents, sizeof agents);
    }
    table_cell(l->table, "%s", json_text(row, "id", ""));
    table_cell(l->table, "%s", json_text(row, "role", ""));
    table_cell(l->table, "%s", json_text(row, "status", ""));
    table_cell(l->table, "%s", agents);
    table_cell(l->table, "%s", json_text(row, "expires", ""));
    table_cell(l->table, "%s", json_text(row, "reason", ""));
    (void)cJSON_AddItemToArray(l->rows, row);
}

static enum cli_exit list(const struct action *a)
{
    static const char *const heads[] = {"ID",      "ROLE",   "STATUS", "AGENTS",
                                        "EXPIRES", "REASON", NULL};
    struct listing l = {.table = table_new(heads), .rows = cJSON_CreateArray()};
    struct bt_error err;

    if (credential_each(a->dir, list_one, &l, &err) != BT_OK) {
        table_free(l.table);
        cJSON_Delete(l.rows);
        return cli_fail(&err);
    }
    if (a->cli->json) {
        cli_print_json(l.rows);
        table_free(l.table);
    } else if (cJSON_GetArraySize(l.rows) == 0) {
        cli_note("no credentials; the token of the state directory opens everything\n");
        table_free(l.table);
    } else {
        table_show(l.table);
    }
    cJSON_Delete(l.rows);
    return CLI_OK;
}

enum cli_exit verb_credential(struct cli *cli)
{
    static const struct {
        const char *name;
        bool wants_id;
        enum cli_exit (*run)(const struct action *a);
    } actions[] = {{"add", true, add},
                   {"list", false, list},
                   {"show", true, show},
                   {"rotate", true, rotate},
                   {"revoke", true, revoke}};
    const struct action a = {
        .cli = cli, .dir = cli_state_dir(cli), .id = cli->argc > 1 ? cli->argv[1] : NULL};

    const char *names[sizeof actions / sizeof actions[0] + 1] = {NULL};

    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        names[i] = actions[i].name;
        if (strcmp(cli->argv[0], actions[i].name) != 0) {
            continue;
        }
        if (actions[i].wants_id != (a.id != NULL)) {
            cli_error_hint("see: baton credential --help",
                           a.id == NULL ? "credential %s: which ID?" : "credential %s takes no ID",
                           actions[i].name);
            return CLI_USAGE;
        }
        return a.dir == NULL ? CLI_INTERNAL : actions[i].run(&a);
    }
    return cli_unknown_word("credential", cli->argv[0], names);
}
