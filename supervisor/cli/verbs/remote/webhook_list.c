/* webhook list: the files of STATE/webhooks, of all shards of a fleet. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/client/fleet_map.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/remote/webhook.h"
#include "supervisor/cli/view/table.h"

enum { WHY_BYTES = 512 };

static const char *status_of(const cJSON *at)
{
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(at, "parked"))) {
        return "parked";
    }
    return json_number(at, "tries") > 0 ? "failing" : "ok";
}

static int badness(const cJSON *at)
{
    return strcmp(status_of(at), "parked") == 0 ? 2 : json_number(at, "tries") > 0;
}

/* How far it is in a shard; NULL: not known. Shard 0 has NAME.at, the others NAME.SN.at. */
static cJSON *place_in(const struct order *o, const char *name, uint32_t shard, const cJSON *spec)
{
    char ending[16] = ".at";
    cJSON *at;

    if (shard > 0) {
        (void)snprintf(ending, sizeof ending, ".S%u.at", shard);
    }
    at = webhook_file(o, name, ending);
    if (at != NULL && json_number(at, "made") != json_number(spec, "made")) {
        cJSON_Delete(at);
        at = NULL;
    }
    return at;
}

/* Of a fleet of several shards: the place in each. What stands for all of them is that of the shard
 * that is worst off. */
static void list_shards(const struct order *o, const char *name, cJSON *row, cJSON **io_at,
                        struct buf *vector)
{
    cJSON *shards = cJSON_AddArrayToObject(row, "shards");
    cJSON *missing = cJSON_AddArrayToObject(row, "missingShards");

    for (uint32_t i = 0; i < o->shards; i++) {
        cJSON *at = i == 0 ? *io_at : place_in(o, name, i, row);
        cJSON *one = at != NULL ? cJSON_CreateObject() : NULL;
        if (at == NULL) {
            (void)cJSON_AddItemToArray(missing, cJSON_CreateNumber(i));
            continue;
        }
        (void)cJSON_AddNumberToObject(one, "shard", i);
        (void)cJSON_AddStringToObject(one, "status", status_of(at));
        (void)cJSON_AddNumberToObject(one, "seq", json_number(at, "seq"));
        (void)cJSON_AddItemToArray(shards, one);
        buf_printf(vector, "%sS%u=%.0f", vector->len > 0 ? ";" : "", i, json_number(at, "seq"));
        if (i > 0 && badness(at) > badness(*io_at)) {
            cJSON_Delete(*io_at);
            *io_at = at;
        } else if (i > 0) {
            cJSON_Delete(at);
        }
    }
}

/* Why the gateway would not take the file of the secret; "" when it would, or there is none. */
static void look_at_secret(const cJSON *spec, char *ret, size_t cap)
{
    const char *path = json_text(spec, "secretFile", "");
    const int fd =
        path[0] != 0 ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : INT_MIN;
    struct stat st;

    ret[0] = 0;
    if (fd == INT_MIN) {
        return;
    }
    if (fd < 0 || fstat(fd, &st) != 0) {
        (void)snprintf(ret, cap, "%.300s: %s", path, strerror(errno));
    } else if ((st.st_mode & 077) != 0) {
        (void)snprintf(ret, cap, "%.300s: others may read it; chmod 600 it", path);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

static void list_one(const struct order *o, const char *name, struct table *table, cJSON *rows)
{
    cJSON *row = webhook_file(o, name, ".json");
    const bool broken = row == NULL;
    char secret[WHY_BYTES];
    const char *why;
    struct buf vector;
    cJSON *at;
    double seq;

    buf_init(&vector, 4096);
    if (broken) {
        row = cJSON_CreateObject();
    }
    look_at_secret(row, secret, sizeof secret);
    at = place_in(o, name, 0, row);
    seq = at != NULL ? json_number(at, "seq") : json_number(row, "fromSeq") - 1;
    if (o->shards > 1) {
        list_shards(o, name, row, &at, &vector);
    }
    cJSON_DeleteItemFromObjectCaseSensitive(row, "made");
    cJSON_DeleteItemFromObjectCaseSensitive(row, "resend");
    cJSON_DeleteItemFromObjectCaseSensitive(row, "test");
    (void)cJSON_AddStringToObject(row, "name", name);
    why = secret[0] != 0 ? secret : json_text(at, "why", "");
    (void)cJSON_AddStringToObject(row, "status",
                                  broken || secret[0] != 0 ? "unreadable" : status_of(at));
    if (o->shards == 1) {
        (void)cJSON_AddNumberToObject(row, "seq", seq);
    }
    (void)cJSON_AddNumberToObject(row, "tries", json_number(at, "tries"));
    if (why[0] != 0) {
        (void)cJSON_AddStringToObject(row, "reason", why);
    }
    table_cell(table, "%s", name);
    table_cell(table, "%s", json_text(row, "status", ""));
    if (o->shards > 1) {
        table_cell(table, "%s", buf_cstr(&vector));
    } else {
        table_cell(table, "%.0f", seq);
    }
    table_cell(table, "%s", json_text(row, "url", "its file cannot be read"));
    table_cell(table, "%s", json_text(row, "reason", ""));
    cJSON_Delete(at);
    buf_done(&vector);
    (void)cJSON_AddItemToArray(rows, row);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static uint32_t count_shards(const char *state)
{
    char path[PATH_MAX];
    struct fleet_place at;
    struct buf map;
    uint32_t n = 0;

    (void)snprintf(path, sizeof path, "%s/" FLEET_MAP_FILE, state);
    if (fleet_map_read(path, &map)) {
        while (n < SHARDS_MAX && fleet_map_shard(doc_from_buf(&map), n, &at)) {
            n++;
        }
    }
    buf_done(&map);
    return n > 1 ? n : 1;
}

enum cli_exit webhook_list(struct order *o)
{
    static const char *const heads[] = {"WEBHOOK", "STATUS", ">SENT", "URL", "REASON", NULL};
    struct table *table = table_new(heads);
    cJSON *rows = cJSON_CreateArray();
    struct dirent **entries = NULL;
    char dir[PATH_MAX];
    int n;

    o->shards = count_shards(o->state);
    (void)snprintf(dir, sizeof dir, "%s/webhooks", o->state);
    n = scandir(dir, &entries, NULL, by_name);
    for (int i = 0; i < n; i++) {
        char *name = entries[i]->d_name;
        const size_t len = strlen(name);
        if (len > 5 && strcmp(name + len - 5, ".json") == 0) {
            name[len - 5] = 0;
            if (webhook_name_ok(name)) {
                list_one(o, name, table, rows);
            }
        }
        free(entries[i]);
    }
    free(entries);
    if (o->cli->json) {
        cli_print_json(rows);
        table_free(table);
    } else if (cJSON_GetArraySize(rows) == 0) {
        cli_note("There are no webhooks.\n");
        table_free(table);
    } else {
        table_show(table);
    }
    cJSON_Delete(rows);
    return CLI_OK;
}
