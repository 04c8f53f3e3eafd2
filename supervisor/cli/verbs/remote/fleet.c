/* fleet: the journal that several daemons share: make its tables, and see who leads. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/problems.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/config/config.h"
#include "supervisor/journal/owner.h"

enum { NOTES_BYTES = 1024 * 1024, VERSION_MIN = 15, DECIMAL = 10, MISSING_MAX = 3, LINE_MAX = 400 };

struct fleet_view {
    const struct config_fleet *config;
    struct journal_owner now;
    char missing[MISSING_MAX][LINE_MAX];
    uint32_t missing_n;
};

static void add_missing(struct fleet_view *v, const char *text)
{
    if (v->missing_n < MISSING_MAX) {
        (void)snprintf(v->missing[v->missing_n++], LINE_MAX, "%s", text);
    }
}

static bool is_replicated(const struct fleet_view *v)
{
    return v->now.standbys[0] != 0;
}

/* What a daemon with this configuration would miss. */
static void find_missing(struct fleet_view *v)
{
    if (strtol(v->now.server, NULL, DECIMAL) < VERSION_MIN) {
        add_missing(v, "PostgreSQL 15 or newer");
    }
    if (v->now.format == 0) {
        add_missing(v, "the tables: run baton fleet init");
    } else if (v->now.format > v->now.format_known) {
        add_missing(v, "a newer Baton: the tables are of one");
    }
    if (!is_replicated(v) && v->config->durability == DURABILITY_REPLICATED) {
        add_missing(v, "a synchronous standby of PostgreSQL (synchronous_standby_names), or "
                       "fleet.durability: power");
    }
}

static void show_json(const struct fleet_view *v)
{
    cJSON *o = cli_fields("leader", v->now.node);
    cJSON *missing = cJSON_CreateArray();

    (void)cJSON_AddBoolToObject(o, "connected", v->now.connected);
    (void)cJSON_AddNumberToObject(o, "epoch", (double)v->now.epoch);
    (void)cJSON_AddNumberToObject(o, "lastSeq", (double)v->now.seq);
    (void)cJSON_AddNumberToObject(o, "leaseLeftMs", (double)v->now.lease_left_ms);
    (void)cJSON_AddNumberToObject(o, "format", v->now.format);
    (void)cJSON_AddNumberToObject(o, "formatKnown", v->now.format_known);
    (void)cJSON_AddStringToObject(o, "server", v->now.server);
    (void)cJSON_AddStringToObject(o, "synchronousStandbyNames", v->now.standbys);
    for (uint32_t i = 0; i < v->missing_n; i++) {
        (void)cJSON_AddItemToArray(missing, cJSON_CreateString(v->missing[i]));
    }
    (void)cJSON_AddItemToObject(o, "missing", missing);
    cli_print_json(o);
    cJSON_Delete(o);
}

static void show_leader(const struct journal_owner *now)
{
    if (now->epoch == 0) {
        (void)printf("leader      none yet\n");
        return;
    }
    (void)printf("leader      %s, epoch %" PRIu64 "%s\n", now->node, now->epoch,
                 now->connected ? "" : ", not connected");
    if (now->lease_left_ms > 0) {
        (void)printf("lease       %.1f s left\n", (double)now->lease_left_ms / 1000);
    } else {
        (void)printf("lease       over: a standby that is there takes the journal\n");
    }
    (void)printf("position    event %" PRIu64 "\n", now->seq);
}

static void show(const struct fleet_view *v)
{
    if (v->now.format > 0) {
        show_leader(&v->now);
        (void)printf("tables      format %d, this Baton knows formats up to %d\n", v->now.format,
                     v->now.format_known);
    }
    (void)printf("server      PostgreSQL %s\n", v->now.server);
    if (is_replicated(v)) {
        (void)printf("durability  replicated: each commit waits for %s\n", v->now.standbys);
    } else {
        (void)printf("durability  power: on the disk of one server\n");
    }
    for (uint32_t i = 0; i < v->missing_n; i++) {
        (void)printf("missing     %s\n", v->missing[i]);
    }
}

static enum cli_exit look(struct cli *cli, const struct config_fleet *config, bool init)
{
    struct fleet_view v = {.config = config};
    struct journal_look *l = NULL;
    struct bt_error err;
    enum bt_code code = journal_look_open(config->url, (uint32_t)config->lease_ms, &l, &err);

    if (code == BT_OK && init) {
        code = journal_look_init(l, &err);
    }
    code = code == BT_OK ? journal_look(l, &v.now, &err) : code;
    journal_look_close(l);
    if (code != BT_OK) {
        return cli_fail(&err);
    }
    find_missing(&v);
    if (cli->json) {
        show_json(&v);
    } else {
        show(&v);
    }
    return v.missing_n > 0 ? CLI_FAILED : CLI_OK;
}

enum cli_exit verb_fleet(struct cli *cli)
{
    static const char *const words[] = {"init", "status", NULL};
    const struct config_flag flag = {"fleet.url", cli->argc > 1 ? cli->argv[1] : ""};
    struct config_request request = {.state_dir = cli_value(cli, "state"),
                                     .file = cli_value(cli, "config"),
                                     .flags = &flag,
                                     .n_flags = cli->argc > 1 ? 1 : 0,
                                     .check_only = true};
    const bool init = strcmp(cli->argv[0], "init") == 0;
    struct config *config = NULL;
    struct bt_error err;
    enum cli_exit code;
    struct buf notes;

    if (!init && strcmp(cli->argv[0], "status") != 0) {
        return cli_unknown_word("fleet", cli->argv[0], words);
    }
    buf_init(&notes, NOTES_BYTES);
    if (config_load(&request, &config, &notes, &err) != BT_OK) {
        cli_print_notes(buf_cstr(&notes), &err);
        code = cli_fail(&err);
    } else if (config->fleet.url[0] == 0) {
        cli_error_hint("give postgresql://HOST/DATABASE, or set fleet.url",
                       "fleet %s: there is no fleet in the configuration", cli->argv[0]);
        code = CLI_USAGE;
    } else {
        code = look(cli, &config->fleet, init);
    }
    config_free(config);
    buf_done(&notes);
    return code;
}
