/* fleet: the journal that several daemons share: make its tables, see who leads, and move shards.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "protocol/base/shard.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/problems.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/config/config.h"
#include "supervisor/journal/owner.h"

enum { NOTES_BYTES = 1024 * 1024, VERSION_MIN = 15, DECIMAL = 10, MISSING_MAX = 3, LINE_MAX = 400 };
enum { NODES_MAX = 64, WARNINGS_MAX = 8 };

struct fleet_view {
    const struct config_fleet *config;
    struct journal_owner now;
    char missing[MISSING_MAX][LINE_MAX];
    char warnings[WARNINGS_MAX][LINE_MAX];
    uint32_t missing_n, warnings_n;
    /* of several shards */
    struct journal_shard shards[SHARDS_MAX];
    struct journal_node nodes[NODES_MAX];
    uint32_t shards_n, nodes_n;
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

static BT_PRINTF(2, 3) void warn(struct fleet_view *v, const char *fmt, ...)
{
    va_list args;

    if (v->warnings_n < WARNINGS_MAX) {
        va_start(args, fmt);
        (void)vsnprintf(v->warnings[v->warnings_n++], LINE_MAX, fmt, args);
        va_end(args);
    }
}

/* What is no obstacle, and should not stay so. */
static void find_warnings(struct fleet_view *v)
{
    const struct journal_node *first = NULL;

    for (uint32_t i = 0; i < v->nodes_n; i++) {
        const struct journal_node *n = &v->nodes[i];
        if (!n->alive) {
            continue;
        }
        if (n->knows < v->now.format) {
            warn(v, "%s is of an older program, which opens no shard of format %d: upgrade it",
                 n->node, v->now.format);
        }
        if (n->config[0] != 0 && first == NULL) {
            first = n;
        } else if (n->config[0] != 0 && strcmp(n->config, first->config) != 0) {
            warn(v, "%s has another configuration than %s: see baton config show on both", n->node,
                 first->node);
        }
    }
    if (v->now.format > 0 && v->now.format < v->now.tables) {
        warn(v,
             "programs of format %d may still lead; when all hosts have this version: baton "
             "fleet finalize",
             v->now.format);
    }
}

static uint32_t led_by(const struct fleet_view *v, const char *node)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < v->shards_n; i++) {
        n += v->shards[i].led && strcmp(v->shards[i].node, node) == 0;
    }
    return n;
}

static const char *state_of(const struct journal_node *n)
{
    return !n->alive ? "gone" : n->draining ? "drains" : "alive";
}

/* What a fleet of one shard and one of several have both. */
static void add_common(const struct fleet_view *v, cJSON *o)
{
    cJSON *nodes = cJSON_AddArrayToObject(o, "nodes");
    cJSON *missing = cJSON_AddArrayToObject(o, "missing");
    cJSON *warnings = cJSON_AddArrayToObject(o, "warnings");

    for (uint32_t i = 0; i < v->nodes_n; i++) {
        cJSON *one = cli_fields("node", v->nodes[i].node);
        (void)cJSON_AddStringToObject(one, "state", state_of(&v->nodes[i]));
        (void)cJSON_AddNumberToObject(one, "leads", led_by(v, v->nodes[i].node));
        (void)cJSON_AddStringToObject(one, "version", v->nodes[i].version);
        (void)cJSON_AddNumberToObject(one, "formatKnown", v->nodes[i].knows);
        (void)cJSON_AddStringToObject(one, "config", v->nodes[i].config);
        (void)cJSON_AddItemToArray(nodes, one);
    }
    for (uint32_t i = 0; i < v->missing_n; i++) {
        (void)cJSON_AddItemToArray(missing, cJSON_CreateString(v->missing[i]));
    }
    for (uint32_t i = 0; i < v->warnings_n; i++) {
        (void)cJSON_AddItemToArray(warnings, cJSON_CreateString(v->warnings[i]));
    }
    (void)cJSON_AddNumberToObject(o, "format", v->now.format);
    (void)cJSON_AddNumberToObject(o, "formatKnown", v->now.format_known);
    (void)cJSON_AddStringToObject(o, "server", v->now.server);
    (void)cJSON_AddStringToObject(o, "synchronousStandbyNames", v->now.standbys);
}

static void show_json_shards(const struct fleet_view *v)
{
    cJSON *o = cJSON_CreateObject();
    cJSON *shards = cJSON_AddArrayToObject(o, "shards");

    for (uint32_t i = 0; i < v->shards_n; i++) {
        cJSON *one = cli_fields("leader", v->shards[i].led ? v->shards[i].node : "");
        (void)cJSON_AddNumberToObject(one, "shard", v->shards[i].shard);
        (void)cJSON_AddNumberToObject(one, "epoch", (double)v->shards[i].epoch);
        (void)cJSON_AddNumberToObject(one, "lastSeq", (double)v->shards[i].seq);
        (void)cJSON_AddNumberToObject(one, "leaseLeftMs", (double)v->shards[i].lease_left_ms);
        if (v->shards[i].moves_to[0] != 0 &&
            (!v->shards[i].led || strcmp(v->shards[i].moves_to, v->shards[i].node) != 0)) {
            (void)cJSON_AddStringToObject(one, "movesTo", v->shards[i].moves_to);
        }
        (void)cJSON_AddItemToArray(shards, one);
    }
    add_common(v, o);
    cli_print_json(o);
    cJSON_Delete(o);
}

static void show_shards(const struct fleet_view *v)
{
    for (uint32_t i = 0; i < v->shards_n; i++) {
        const struct journal_shard *s = &v->shards[i];
        if (s->epoch == 0) {
            (void)printf("shard %-6u nobody yet\n", s->shard);
        } else if (s->led) {
            (void)printf("shard %-6u %s, epoch %" PRIu64 ", event %" PRIu64 ", %.1f s left\n",
                         s->shard, s->node, s->epoch, s->seq, (double)s->lease_left_ms / 1000);
        } else {
            (void)printf("shard %-6u nobody, was led by %s, epoch %" PRIu64 ", event %" PRIu64
                         "%s%s\n",
                         s->shard, s->node, s->epoch, s->seq,
                         s->moves_to[0] != 0 ? ", moves to " : "", s->moves_to);
        }
    }
}

static void show_nodes(const struct fleet_view *v)
{
    for (uint32_t i = 0; i < v->nodes_n; i++) {
        const struct journal_node *n = &v->nodes[i];
        (void)printf("node        %s: %s", n->node, state_of(n));
        if (v->shards_n > 1) {
            (void)printf(", leads %u", led_by(v, n->node));
        }
        (void)printf("%s%s\n", n->version[0] != 0 ? ", version " : "", n->version);
    }
}

static void show_json(const struct fleet_view *v)
{
    cJSON *o;

    if (v->shards_n > 1) {
        show_json_shards(v);
        return;
    }
    o = cli_fields("leader", v->now.node);
    (void)cJSON_AddBoolToObject(o, "connected", v->now.connected);
    (void)cJSON_AddNumberToObject(o, "epoch", (double)v->now.epoch);
    (void)cJSON_AddNumberToObject(o, "lastSeq", (double)v->now.seq);
    (void)cJSON_AddNumberToObject(o, "leaseLeftMs", (double)v->now.lease_left_ms);
    add_common(v, o);
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
        if (v->shards_n > 1) {
            show_shards(v);
        } else {
            show_leader(&v->now);
        }
        show_nodes(v);
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
    for (uint32_t i = 0; i < v->warnings_n; i++) {
        (void)printf("warning     %s\n", v->warnings[i]);
    }
}

/* ---- what it does ---- */

/* The words after the verb, and where the address is among them. */
enum word { INIT, STATUS, MOVE, DRAIN, GROW, FINALIZE, WORDS };
static const char *const words[] = {"init", "status", "move", "drain", "grow", "finalize", NULL};
static const int url_at[] = {
    [INIT] = 1, [STATUS] = 1, [MOVE] = 3, [DRAIN] = 2, [GROW] = 1, [FINALIZE] = 1};

static enum bt_code read_number(const char *text, const char *what, unsigned long min,
                                unsigned long max, uint32_t *ret, struct bt_error *err)
{
    char *end = NULL;
    const unsigned long n = text != NULL ? strtoul(text, &end, DECIMAL) : 0;

    if (text == NULL || text[0] < '0' || text[0] > '9' || *end != 0 || n < min || n > max) {
        return err_set(err, BT_INVALID, "%s: expected a number from %lu to %lu, got '%.40s'", what,
                       min, max, text != NULL ? text : "");
    }
    *ret = (uint32_t)n;
    return BT_OK;
}

static enum bt_code act(struct cli *cli, enum word word, struct journal_look *l,
                        struct bt_error *err)
{
    const char *shards = cli_value(cli, "shards");
    uint32_t n = 0;
    enum bt_code code = BT_OK;

    switch (word) {
    case INIT:
        code = shards == NULL ? BT_OK : read_number(shards, "--shards", 1, SHARDS_MAX, &n, err);
        return code == BT_OK ? journal_look_init(l, n, err) : code;
    case MOVE:
        code = read_number(cli->argv[1], "fleet move", 0, SHARDS_MAX - 1, &n, err);
        return code == BT_OK ? journal_look_move(l, n, cli->argv[2], err) : code;
    case DRAIN:
        return journal_look_drain(l, cli->argv[1], true, err);
    case GROW:
        code = read_number(shards, "fleet grow --shards", 2, SHARDS_MAX, &n, err);
        return code == BT_OK ? journal_look_grow(l, n, err) : code;
    case FINALIZE:
        return journal_look_finalize(l, err);
    case STATUS:
    case WORDS:
    default:
        return BT_OK;
    }
}

static enum cli_exit look(struct cli *cli, const struct config_fleet *config, enum word word)
{
    struct fleet_view v = {.config = config};
    struct journal_look *l = NULL;
    struct bt_error err;
    enum bt_code code = journal_look_open(config->url, (uint32_t)config->lease_ms, 0, &l, &err);

    code = code == BT_OK ? journal_look(l, &v.now, &err) : code;
    if (code == BT_OK && v.now.shards < 2 && (word == MOVE || word == DRAIN)) {
        code = err_set(&err, BT_INVALID,
                       "this fleet has one shard: who leads it ends, and a standby takes it");
    }
    code = code == BT_OK ? act(cli, word, l, &err) : code;
    code = code == BT_OK && word != STATUS ? journal_look(l, &v.now, &err) : code;
    if (code == BT_OK && v.now.shards > 1) {
        code = journal_look_shards(l, v.shards, SHARDS_MAX, &v.shards_n, &err);
    }
    if (code == BT_OK && v.now.tables > 0 && v.now.tables == v.now.format_known) {
        code = journal_look_nodes(l, v.nodes, NODES_MAX, &v.nodes_n, &err);
    }
    journal_look_close(l);
    if (code == BT_OK) {
        find_missing(&v);
        find_warnings(&v);
        if (cli->json) {
            show_json(&v);
        } else {
            show(&v);
        }
    }
    for (uint32_t i = 0; i < v.nodes_n; i++) {
        free(v.nodes[i].places);
    }
    return code != BT_OK ? cli_fail(&err) : v.missing_n > 0 ? CLI_FAILED : CLI_OK;
}

enum cli_exit verb_fleet(struct cli *cli)
{
    struct config_flag flag = {"fleet.url", ""};
    struct config_request request = {.state_dir = cli_value(cli, "state"),
                                     .file = cli_value(cli, "config"),
                                     .flags = &flag,
                                     .check_only = true};
    struct config *config = NULL;
    enum word word = INIT;
    struct bt_error err;
    enum cli_exit code;
    struct buf notes;

    while (word < WORDS && strcmp(cli->argv[0], words[word]) != 0) {
        word++;
    }
    if (word == WORDS) {
        return cli_unknown_word("fleet", cli->argv[0], words);
    }
    if (cli->argc < url_at[word] || cli->argc > url_at[word] + 1) {
        cli_error_hint("baton fleet move SHARD NODE [URL], baton fleet drain NODE [URL]",
                       "fleet %s: expected %d arguments, and perhaps the address", words[word],
                       url_at[word] - 1);
        return CLI_USAGE;
    }
    if (cli->argc > url_at[word]) {
        flag.value = cli->argv[url_at[word]];
        request.n_flags = 1;
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
        code = look(cli, &config->fleet, word);
    }
    config_free(config);
    buf_done(&notes);
    return code;
}
