/* credential add, list, show, grant, withdraw, quota, rotate, revoke: files of the state directory,
 * without a daemon. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Those that were set; by role is by default. */
static void describe_quotas(const struct credential *c, cJSON *row)
{
    cJSON *quotas = cJSON_AddObjectToObject(row, "quotas");

    for (int i = 0; i < QUOTA_COUNT; i++) {
        if (c->who.quotas[i] != QUOTA_BY_ROLE) {
            (void)cJSON_AddNumberToObject(quotas, quota_name((enum quota)i),
                                          (double)c->who.quotas[i]);
        }
    }
}

/* "plans 10, requests none a minute" */
static void join_quotas(const struct credential *c, char *ret, size_t cap)
{
    size_t n = 0;

    ret[0] = 0;
    for (int i = 0; i < QUOTA_COUNT && n < cap; i++) {
        char number[24] = "none";
        if (c->who.quotas[i] == QUOTA_BY_ROLE) {
            continue;
        }
        if (c->who.quotas[i] > 0) {
            (void)snprintf(number, sizeof number, "%llu", (unsigned long long)c->who.quotas[i]);
        }
        n += (size_t)snprintf(ret + n, cap - n, "%s%s %s%s", n > 0 ? ", " : "",
                              quota_name((enum quota)i), number,
                              i >= QUOTA_REQUESTS ? " a minute" : "");
    }
    if (c->who.quotas[QUOTA_PLANS] == QUOTA_BY_ROLE &&
        identity_quota(&c->who, QUOTA_PLANS, 4) > 0 && n < cap) {
        n += (size_t)snprintf(ret + n, cap - n, "%splans: a quarter of limits.maxOpenPlans",
                              n > 0 ? ", " : "");
    }
    if (n == 0) {
        (void)snprintf(ret, cap, "-");
    }
}

/* Everything but the keys. */
static cJSON *describe(const struct credential *c, const char *file)
{
    cJSON *row = cJSON_CreateObject();
    cJSON *agents = cJSON_AddArrayToObject(row, "agents");
    cJSON *sees = cJSON_AddArrayToObject(row, "sees");

    (void)cJSON_AddStringToObject(row, "id", c->who.id);
    (void)cJSON_AddStringToObject(row, "role", role_name(c->who.role));
    (void)cJSON_AddStringToObject(row, "status", status_of(c, clock_wall_ms()));
    for (uint32_t i = 0; i < c->who.agents_n; i++) {
        (void)cJSON_AddItemToArray(agents, cJSON_CreateString(c->who.agents[i]));
    }
    for (uint32_t i = 0; i < c->who.sees_n; i++) {
        (void)cJSON_AddItemToArray(sees, cJSON_CreateString(c->who.sees[i]));
    }
    describe_quotas(c, row);
    add_time(row, "created", c->created);
    add_time(row, "expires", c->expires);
    add_time(row, "revoked", c->revoked);
    add_time(row, "previousKeyUntil", c->previous_until);
    if (file != NULL) {
        (void)cJSON_AddStringToObject(row, "file", file);
    }
    return row;
}

static void join(const char globs[][LIMIT_ID_BYTES + 1], uint32_t globs_n, char *ret, size_t cap)
{
    size_t n = 0;

    ret[0] = 0;
    for (uint32_t i = 0; i < globs_n && n < cap; i++) {
        n += (size_t)snprintf(ret + n, cap - n, "%s%s", i > 0 ? " " : "", globs[i]);
    }
}

static void print_member(const struct credential *c, const cJSON *member)
{
    char text[IDENTITY_AGENTS_MAX * (LIMIT_ID_BYTES + 2)] = "";

    if (strcmp(member->string, "agents") == 0) {
        join(c->who.agents, c->who.agents_n, text, sizeof text);
    } else if (strcmp(member->string, "sees") == 0) {
        join(c->who.sees, c->who.sees_n, text, sizeof text);
    } else if (cJSON_IsObject(member)) {
        join_quotas(c, text, sizeof text);
    } else {
        (void)snprintf(text, sizeof text, "%s", member->valuestring);
    }
    (void)printf("%-17s %s\n", member->string, text[0] != 0 ? text : "-");
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
            print_member(c, member);
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

/* What comes after the id; NULL behind the last one. */
static const char *argument(const struct action *a, int ix)
{
    return ix + 2 < a->cli->argc ? a->cli->argv[ix + 2] : NULL;
}

/* Whether the id of an agent may fit. */
static bool may_fit(const char *glob)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-*?";
    const size_t n = strlen(glob);

    return n > 0 && n <= LIMIT_ID_BYTES && strspn(glob, allowed) == n;
}

static bool read_agents(const struct cli *cli, struct identity *who)
{
    const char *glob;

    while ((glob = cli_nth_value(cli, "agents", (int)who->agents_n)) != NULL) {
        const size_t n = strlen(glob);
        if (!may_fit(glob) || who->agents_n == IDENTITY_AGENTS_MAX) {
            cli_error(
                "--agents: expected at most %d globs of agents' ids (A-Z, a-z, 0-9, '.', '_', "
                "'-'), each of 1 to %d bytes, as 'calc*', got '%s'",
                IDENTITY_AGENTS_MAX, LIMIT_ID_BYTES, glob);
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

/* Reads the credential that is to be changed; CLI_OK, or after the error. */
static enum cli_exit load_valid(const struct action *a, struct credential *ret)
{
    const enum cli_exit code = load(a, ret);

    if (code == CLI_OK && ret->revoked != 0) {
        cli_error("the credential %s is revoked, which is for good; add another one", a->id);
        return CLI_USAGE;
    }
    return code;
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
    struct credential c = {
        .created = clock_wall_ms(),
        .who.quotas = {QUOTA_BY_ROLE, QUOTA_BY_ROLE, QUOTA_BY_ROLE, QUOTA_BY_ROLE, QUOTA_BY_ROLE}};
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
    code = load_valid(a, &c);
    if (code != CLI_OK) {
        return code;
    }
    if (credential_rotate(&c, until != 0 ? until : clock_wall_ms() + GRACE_MS, &err) != BT_OK) {
        return cli_fail(&err);
    }
    code = store(a, &c, true);
    explicit_bzero(&c, sizeof c);
    return code;
}

static enum cli_exit store_changed(const struct action *a, struct credential *c)
{
    struct bt_error err;

    if (credential_store(a->dir, c, true, &err) != BT_OK) {
        return cli_fail(&err);
    }
    show_one(a->cli, c, NULL);
    explicit_bzero(c, sizeof *c);
    return CLI_OK;
}

static int place_of(const struct credential *c, const char *glob)
{
    for (uint32_t i = 0; i < c->who.sees_n; i++) {
        if (strcmp(c->who.sees[i], glob) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* It may be added later. */
static void warn_of_unknown(const struct action *a, const char *glob)
{
    struct credential other;
    struct bt_error err;

    if (strpbrk(glob, "*?") == NULL && strcmp(glob, "local") != 0 &&
        credential_load(a->dir, glob, &other, &err) == BT_NOT_FOUND) {
        cli_note("baton: warning: there is no credential '%s' yet\n", glob);
    }
    explicit_bzero(&other, sizeof other);
}

static enum cli_exit grant(const struct action *a)
{
    struct credential c;
    const char *glob;
    enum cli_exit code = load_valid(a, &c);

    if (code != CLI_OK) {
        return code;
    }
    if (c.who.role != ROLE_SUBMITTER || argument(a, 0) == NULL) {
        cli_error(argument(a, 0) == NULL ? "usage: baton credential grant ID OTHER..."
                                         : "grant: for submitters; the role %s decides itself what "
                                           "it sees",
                  role_name(c.who.role));
        return CLI_USAGE;
    }
    for (int i = 0; (glob = argument(a, i)) != NULL; i++) {
        if (!may_fit(glob) || strchr("._-", glob[0]) != NULL ||
            (place_of(&c, glob) < 0 && c.who.sees_n == IDENTITY_SEES_MAX)) {
            cli_error("grant: expected at most %d ids of credentials (A-Z, a-z, 0-9, '.', '_', "
                      "'-'), or globs as 'ci-*', of 1 to %d bytes; local is the token; got '%s'",
                      IDENTITY_SEES_MAX, LIMIT_ID_BYTES, glob);
            return CLI_USAGE;
        }
        warn_of_unknown(a, glob);
        if (place_of(&c, glob) < 0) {
            memcpy(c.who.sees[c.who.sees_n++], glob, strlen(glob) + 1);
        }
    }
    return store_changed(a, &c);
}

static enum cli_exit withdraw(const struct action *a)
{
    struct credential c;
    const char *glob;
    enum cli_exit code = load_valid(a, &c);

    if (code != CLI_OK) {
        return code;
    }
    if (argument(a, 0) == NULL) {
        cli_error("usage: baton credential withdraw ID OTHER...");
        return CLI_USAGE;
    }
    for (int i = 0; (glob = argument(a, i)) != NULL; i++) {
        const int at = place_of(&c, glob);
        if (at < 0) {
            cli_error("%s was not granted to %s; see: baton credential show %s", glob, a->id,
                      a->id);
            return CLI_NOT_FOUND;
        }
        memmove(c.who.sees[at], c.who.sees[at + 1],
                (c.who.sees_n - (uint32_t)at - 1) * sizeof c.who.sees[0]);
        memset(c.who.sees[--c.who.sees_n], 0, sizeof c.who.sees[0]);
    }
    return store_changed(a, &c);
}

/* NAME=N, NAME=none, NAME=default */
static bool read_quota(const char *text, struct identity *who)
{
    const char *equals = strchr(text, '=');
    const struct str name = {text, equals == NULL ? 0 : (size_t)(equals - text)};
    enum quota quota;
    char *end = NULL;
    unsigned long long n;

    if (equals == NULL || !quota_parse(name, &quota)) {
        return false;
    }
    if (strcmp(equals + 1, "none") == 0 || strcmp(equals + 1, "default") == 0) {
        who->quotas[quota] = equals[1] == 'n' ? 0 : QUOTA_BY_ROLE;
        return true;
    }
    errno = 0;
    n = strtoull(equals + 1, &end, 10);
    if (errno != 0 || equals[1] < '0' || equals[1] > '9' || *end != 0 || n == 0 || n > INT64_MAX) {
        return false;
    }
    who->quotas[quota] = n;
    return true;
}

static enum cli_exit set_quotas(const struct action *a)
{
    struct credential c;
    const char *text;
    enum cli_exit code = load_valid(a, &c);

    if (code != CLI_OK) {
        return code;
    }
    for (int i = 0; i == 0 || argument(a, i) != NULL; i++) {
        text = argument(a, i);
        if (text == NULL || !cli_is_text(text, "quota") || !read_quota(text, &c.who)) {
            cli_error("quota: expected NAME=N, NAME=none or NAME=default; names are connections, "
                      "plans (open), requests, bytes and events (a minute)");
            return CLI_USAGE;
        }
    }
    return store_changed(a, &c);
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
    explicit_bzero(&c, sizeof c);
    return CLI_OK;
}

static enum cli_exit show(const struct action *a)
{
    struct credential c;
    const enum cli_exit code = load(a, &c);

    if (code == CLI_OK) {
        show_one(a->cli, &c, NULL);
        explicit_bzero(&c, sizeof c);
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
    char sees[sizeof agents] = "";
    char quotas[256] = "";

    if (c == NULL) {
        (void)cJSON_AddStringToObject(row, "id", name);
        (void)cJSON_AddStringToObject(row, "status", "refused");
        (void)cJSON_AddStringToObject(row, "reason", why->msg);
    } else {
        join(c->who.agents, c->who.agents_n, agents, sizeof agents);
        join(c->who.sees, c->who.sees_n, sees, sizeof sees);
        join_quotas(c, quotas, sizeof quotas);
    }
    table_cell(l->table, "%s", json_text(row, "id", ""));
    table_cell(l->table, "%s", json_text(row, "role", ""));
    table_cell(l->table, "%s", json_text(row, "status", ""));
    table_cell(l->table, "%s", agents);
    table_cell(l->table, "%s", sees);
    table_cell(l->table, "%s", quotas);
    table_cell(l->table, "%s", json_text(row, "expires", ""));
    table_cell(l->table, "%s", json_text(row, "reason", ""));
    (void)cJSON_AddItemToArray(l->rows, row);
}

static enum cli_exit list(const struct action *a)
{
    static const char *const heads[] = {"ID",     "ROLE",    "STATUS", "AGENTS", "SEES",
                                        "QUOTAS", "EXPIRES", "REASON", NULL};
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
    } actions[] = {{"add", true, add},           {"list", false, list},
                   {"show", true, show},         {"grant", true, grant},
                   {"withdraw", true, withdraw}, {"quota", true, set_quotas},
                   {"rotate", true, rotate},     {"revoke", true, revoke}};
    const struct action a = {
        .cli = cli, .dir = cli_state_dir(cli), .id = cli->argc > 1 ? cli->argv[1] : NULL};

    const char *names[sizeof actions / sizeof actions[0] + 1] = {NULL};

    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        const bool more =
            actions[i].run == grant || actions[i].run == withdraw || actions[i].run == set_quotas;
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
        if (!more && cli->argc > 2) {
            cli_error_hint("see: baton credential --help",
                           "credential %s: unexpected argument '%s'", actions[i].name,
                           cli->argv[2]);
            return CLI_USAGE;
        }
        return a.dir == NULL ? CLI_INTERNAL : actions[i].run(&a);
    }
    return cli_unknown_word("credential", cli->argv[0], names);
}
