/* certs: the authority, and what it issues. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "protocol/base/clock.h"
#include "supervisor/certs/certs.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/cli/view/table.h"

static const char *use_of(const struct cert *c)
{
    return c->ca                    ? "authority"
           : c->server && c->client ? "server, client"
           : c->server              ? "server"
           : c->client              ? "client"
                                    : "-";
}

static const char *state_of(const struct cert *c, msec now)
{
    return c->revoked       ? "revoked"
           : now < c->from  ? "not yet valid"
           : now > c->until ? "expired"
                            : "valid";
}

static cJSON *json_of(const struct cert *c, msec now)
{
    cJSON *o = cli_fields("name", c->name);
    cJSON *hosts = cJSON_AddArrayToObject(o, "hosts");
    char iso[CLOCK_ISO_LEN + 1];

    (void)cJSON_AddStringToObject(o, "serial", c->serial);
    (void)cJSON_AddStringToObject(o, "use", use_of(c));
    for (uint32_t i = 0; i < c->hosts_n; i++) {
        (void)cJSON_AddItemToArray(hosts, cJSON_CreateString(c->hosts[i]));
    }
    clock_iso(c->from, iso);
    (void)cJSON_AddStringToObject(o, "from", iso);
    clock_iso(c->until, iso);
    (void)cJSON_AddStringToObject(o, "until", iso);
    (void)cJSON_AddStringToObject(o, "state", state_of(c, now));
    return o;
}

static void print_list(struct cli *cli, const struct cert *all, uint32_t n)
{
    static const char *const heads[] = {"NAME", "USE", "HOSTS", "UNTIL", "STATE", "SERIAL", NULL};
    const msec now = clock_wall_ms();
    cJSON *list = cli->json ? cJSON_CreateArray() : NULL;
    struct table *t = cli->json ? NULL : table_new(heads);

    for (uint32_t i = 0; i < n; i++) {
        const struct cert *c = &all[i];
        char iso[CLOCK_ISO_LEN + 1];
        struct buf hosts;
        buf_init(&hosts, CERTS_HOSTS_MAX * (CERTS_HOST_MAX + 2));
        for (uint32_t h = 0; h < c->hosts_n; h++) {
            buf_printf(&hosts, "%s%s", h > 0 ? " " : "", c->hosts[h]);
        }
        clock_iso(c->until, iso);
        if (list != NULL) {
            (void)cJSON_AddItemToArray(list, json_of(c, now));
        } else {
            table_cell(t, "%s", c->name);
            table_cell(t, "%s", use_of(c));
            table_cell(t, "%s", buf_cstr(&hosts));
            table_cell(t, "%.10s", iso);
            table_cell(t, "%s", state_of(c, now));
            table_cell(t, "%s", c->serial);
        }
        buf_done(&hosts);
    }
    if (list != NULL) {
        cli_print_json(list);
        cJSON_Delete(list);
    } else {
        table_show(t);
    }
}

/* A file's name is printed, so that the next command can be written by copying it. */
static void print_made(struct cli *cli, const struct cert *c, const char *dir, const char *file)
{
    if (cli->json) {
        cJSON *o = json_of(c, clock_wall_ms());
        (void)cJSON_AddStringToObject(o, "dir", dir);
        (void)cJSON_AddStringToObject(o, "file", file);
        cli_print_json(o);
        cJSON_Delete(o);
    } else {
        (void)printf("%s/%s\n", dir, file);
    }
}

static enum cli_exit show(struct cli *cli, const char *dir, const char *name)
{
    struct cert *all = NULL;
    struct bt_error err;
    uint32_t kept = 0;
    uint32_t n = 0;

    if (certs_list(dir, &all, &n, &err) != BT_OK) {
        return cli_fail(&err);
    }
    if (certs_mark_revoked(dir, all, n, &err) != BT_OK) {
        free(all);
        return cli_fail(&err);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (name == NULL || strcmp(all[i].name, name) == 0) {
            all[kept++] = all[i];
        }
    }
    if (kept == 0) {
        cli_error_hint("see: baton certs show", "no certificate '%s'", name);
    } else {
        print_list(cli, all, kept);
    }
    free(all);
    return kept == 0 ? CLI_NOT_FOUND : CLI_OK;
}

static enum cli_exit issue(struct cli *cli, const char *dir, const char *name, uint32_t days,
                           bool again)
{
    const char *hosts[CERTS_HOSTS_MAX + 1];
    struct certs_ask ask = {.name = name,
                            .hosts = hosts,
                            .server = cli_flag(cli, "server"),
                            .client = cli_flag(cli, "client"),
                            .days = days,
                            .to = cli_value(cli, "to")};
    struct bt_error err;
    struct cert made;
    char file[CERTS_NAME_MAX + 8];

    for (const char *host; ask.hosts_n <= CERTS_HOSTS_MAX &&
                           (host = cli_nth_value(cli, "host", (int)ask.hosts_n)) != NULL;) {
        hosts[ask.hosts_n++] = host;
    }
    if (again && (ask.server || ask.client || ask.hosts_n > 0)) {
        cli_error("certs renew: the hosts and uses stay; for others issue another certificate");
        return CLI_USAGE;
    }
    ask.to = ask.to == NULL ? "." : ask.to;
    if ((again ? certs_renew : certs_issue)(dir, &ask, clock_wall_ms(), &made, &err) != BT_OK) {
        return cli_fail(&err);
    }
    (void)snprintf(file, sizeof file, "%s.pem", name);
    print_made(cli, &made, ask.to, file);
    return CLI_OK;
}

static enum cli_exit revoke(struct cli *cli, const char *dir, const char *which)
{
    const char *to = cli_value(cli, "to");
    struct bt_error err;
    uint32_t n = 0;

    to = to == NULL ? "." : to;
    if (certs_revoke(dir, which, to, clock_wall_ms(), &n, &err) != BT_OK) {
        return cli_fail(&err);
    }
    if (cli->json) {
        cJSON *o = cli_fields("certificate", which);
        (void)cJSON_AddNumberToObject(o, "revoked", n);
        (void)cJSON_AddStringToObject(o, "dir", to);
        (void)cJSON_AddStringToObject(o, "file", "ca.pem");
        cli_print_json(o);
        cJSON_Delete(o);
        return CLI_OK;
    }
    if (n == 0) {
        (void)printf("%s was revoked before; %s/ca.pem has the list\n", which, to);
    } else {
        (void)printf(
            "%s is revoked: %u certificate%s. The daemon that reads %s/ca.pem refuses it on "
            "new ports for agents at once, elsewhere from its next start on\n",
            which, n, n == 1 ? "" : "s", to);
    }
    return CLI_OK;
}

static enum cli_exit init(struct cli *cli, const char *dir, const char *name, uint32_t days)
{
    struct bt_error err;
    struct cert made;

    if (certs_init(dir, name, days, clock_wall_ms(), &made, &err) != BT_OK) {
        return cli_fail(&err);
    }
    print_made(cli, &made, dir, "ca.pem");
    return CLI_OK;
}

/* --dir, or `certs` in the state directory. NULL on an error. */
static const char *directory(struct cli *cli, char ret[CERTS_PATH_MAX])
{
    const char *dir = cli_value(cli, "dir");
    const char *state = dir == NULL ? cli_state_dir(cli) : NULL;

    if (dir == NULL && state != NULL) {
        (void)snprintf(ret, CERTS_PATH_MAX, "%s/certs", state);
        dir = ret;
    }
    return dir;
}

enum cli_exit verb_certs(struct cli *cli)
{
    static const char *const words[] = {"init", "issue", "renew", "revoke", "show", NULL};
    const char *what = cli->argv[0];
    const char *name = cli->argc > 1 ? cli->argv[1] : NULL;
    char path[CERTS_PATH_MAX];
    const char *dir = directory(cli, path);
    uint64_t days = 0;

    if (dir == NULL ||
        (cli_value(cli, "days") != NULL && !cli_number(cli_value(cli, "days"), "--days", &days))) {
        return CLI_USAGE;
    }
    if (cli_value(cli, "days") != NULL && (days < 1 || days > CERTS_DAYS_MAX)) {
        cli_error("--days: expected 1 to %d", CERTS_DAYS_MAX);
        return CLI_USAGE;
    }
    if (strcmp(what, "init") == 0) {
        return init(cli, dir, name, (uint32_t)days);
    }
    if (strcmp(what, "show") == 0) {
        return show(cli, dir, name);
    }
    if (strcmp(what, "issue") != 0 && strcmp(what, "renew") != 0 && strcmp(what, "revoke") != 0) {
        return cli_unknown_word("certs", what, words);
    }
    if (name == NULL) {
        cli_error_hint("see: baton certs --help", "certs %s: which NAME?", what);
        return CLI_USAGE;
    }
    if (strcmp(what, "revoke") == 0) {
        return revoke(cli, dir, name);
    }
    return issue(cli, dir, name, (uint32_t)days, strcmp(what, "renew") == 0);
}
