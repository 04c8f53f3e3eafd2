/* A journal, an authority and a fleet that say what the lines "<" of a case say. Without such a
 * line the real ones are asked. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"
#include "supervisor/certs/certs.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/journal/journal.h"
#include "supervisor/journal/owner.h"
#include "supervisor/spawn/apart.h"
#include "tests/support/cmocka.h"
#include "tests/unit/cli/asked_rig.h"

#define FAKE(type, name, ...)                                                                      \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

/* What it says, as a tree, to be freed. */
static enum bt_code reply(const char *type, cJSON **ret, struct bt_error *err)
{
    char *text = NULL;
    const enum bt_code code = asked_reply(type, &text, err);

    *ret = code == BT_OK ? json_tree(text) : NULL;
    assert_true(code != BT_OK || *ret != NULL);
    free(text);
    return code;
}

/* BT_OK, or the refusal of this type. */
static enum bt_code agree(const char *type, struct bt_error *err)
{
    return asked_answer(type) == NULL ? BT_OK : asked_reply(type, NULL, err);
}

/* "code" and "message" beside what an answer has. */
static enum bt_code ending(const cJSON *said, struct bt_error *err)
{
    const char *name = json_text(said, "code", "");

    for (int i = 1; i < 100; i++) {
        if (strcmp(bt_code_name((enum bt_code)i), name) == 0) {
            return err_set(err, (enum bt_code)i, "%s", json_text(said, "message", ""));
        }
    }
    return BT_OK;
}

static const cJSON *get(const cJSON *o, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(o, name);
}

static void put(char *to, size_t cap, const cJSON *from, const char *name)
{
    (void)snprintf(to, cap, "%s", json_text(from, name, ""));
}

/* ---- the journal ---- */

FAKE(enum bt_code, journal_backup_stopped, const char *dir, const char *path, struct bt_error *err)
{
    if (asked_answer("backup") == NULL) {
        return __real_journal_backup_stopped(dir, path, err);
    }
    asked_say("backup of %s to %s", dir, path);
    return asked_reply("backup", NULL, err);
}

FAKE(enum bt_code, journal_restore, const char *dir, const char *path, bool replace,
     struct bt_error *err)
{
    if (asked_answer("restore") == NULL) {
        return __real_journal_restore(dir, path, replace, err);
    }
    asked_say("restore %s from %s%s", dir, path, replace ? ", replacing" : "");
    return asked_reply("restore", NULL, err);
}

typedef uint32_t (*blobs_of_fn)(const void *body, size_t len, uint64_t *ret, uint32_t max);
typedef void (*see_fn)(const void *bytes, size_t len, void *self);

/* {report, results: [...]} */
FAKE(enum bt_code, journal_verify, const char *path, blobs_of_fn blobs_of, see_fn see, void *self,
     struct buf *report, struct bt_error *err)
{
    cJSON *said = NULL;
    const cJSON *r;
    enum bt_code code;

    if (asked_answer("verify") == NULL) {
        return __real_journal_verify(path, blobs_of, see, self, report, err);
    }
    asked_say("verify %s", path);
    code = reply("verify", &said, err);
    cJSON_ArrayForEach(r, get(said, "results"))
    {
        char *text = cJSON_PrintUnformatted(r);
        struct buf doc;
        buf_init(&doc, LIMIT_CONTROL_BYTES);
        assert_int_equal(json_to_doc(str_from(text), NULL, &doc, err), BT_OK);
        see(doc.at, doc.len, self);
        buf_done(&doc);
        free(text);
    }
    buf_add_cstr(report, json_text(said, "report", ""));
    code = code == BT_OK ? ending(said, err) : code;
    cJSON_Delete(said);
    return code;
}

FAKE(enum bt_code, journal_inspect, const char *dir, journal_progress_fn fn, void *self,
     struct buf *report, struct bt_error *err)
{
    const struct journal_scrub half = {.checked = 1, .total = 2};
    const struct journal_scrub whole = {.checked = 1, .total = 2, .done = true};
    cJSON *said = NULL;
    enum bt_code code;

    if (asked_answer("inspect") == NULL) {
        return __real_journal_inspect(dir, fn, self, report, err);
    }
    asked_say("inspect %s", dir);
    code = reply("inspect", &said, err);
    fn(&half, self);
    fn(&whole, self);
    buf_add_cstr(report, json_text(said, "report", ""));
    code = code == BT_OK ? ending(said, err) : code;
    cJSON_Delete(said);
    return code;
}

/* ---- what this machine has ---- */

FAKE(bool, apart_available, const char *const *list, const char *state_dir,
     char why[APART_WHY_BYTES])
{
    const char *text = asked_answer("apart");

    if (text == NULL || list == NULL) {
        return __real_apart_available(list, state_dir, why);
    }
    (void)snprintf(why, APART_WHY_BYTES, "%s", text);
    return text[0] == 0;
}

/* ---- the authority ---- */

static void read_cert(const cJSON *from, struct cert *ret)
{
    const cJSON *h;

    *ret = (struct cert){.ca = cJSON_IsTrue(get(from, "ca")),
                         .server = cJSON_IsTrue(get(from, "server")),
                         .client = cJSON_IsTrue(get(from, "client")),
                         .from = (msec)json_number(from, "from"),
                         .until = (msec)json_number(from, "until")};
    put(ret->name, sizeof ret->name, from, "name");
    put(ret->serial, sizeof ret->serial, from, "serial");
    cJSON_ArrayForEach(h, get(from, "hosts"))
    {
        (void)snprintf(ret->hosts[ret->hosts_n++], CERTS_HOST_MAX + 1, "%s", h->valuestring);
    }
}

static enum bt_code made(const char *type, struct cert *ret, struct bt_error *err)
{
    cJSON *said = NULL;
    const enum bt_code code = reply(type, &said, err);

    read_cert(said, ret);
    cJSON_Delete(said);
    return code;
}

FAKE(enum bt_code, certs_init, const char *dir, const char *name, uint32_t days, msec now,
     struct cert *ret, struct bt_error *err)
{
    asked_say("certs_init %s %s %u %" PRIu64, dir, name, days, (uint64_t)now);
    return made("certs_init", ret, err);
}

static void say_ask(const char *what, const char *dir, const struct certs_ask *ask)
{
    struct buf hosts;

    buf_init(&hosts, 65536);
    for (uint32_t i = 0; i < ask->hosts_n; i++) {
        buf_printf(&hosts, " %s", ask->hosts[i]);
    }
    asked_say("%s %s %s%s%s, %u days, to %s:%s", what, dir, ask->name,
              ask->server ? ", server" : "", ask->client ? ", client" : "", ask->days, ask->to,
              buf_cstr(&hosts));
    buf_done(&hosts);
}

FAKE(enum bt_code, certs_issue, const char *dir, const struct certs_ask *ask, msec now,
     struct cert *ret, struct bt_error *err)
{
    (void)now;
    say_ask("certs_issue", dir, ask);
    return made("certs_issue", ret, err);
}

FAKE(enum bt_code, certs_renew, const char *dir, const struct certs_ask *ask, msec now,
     struct cert *ret, struct bt_error *err)
{
    (void)now;
    say_ask("certs_renew", dir, ask);
    return made("certs_renew", ret, err);
}

FAKE(enum bt_code, certs_revoke, const char *dir, const char *which, const char *to, msec now,
     uint32_t *ret_n, struct bt_error *err)
{
    const char *n = asked_answer("certs_revoke");

    (void)now;
    asked_say("certs_revoke %s %s %s", dir, which, to);
    *ret_n = n != NULL ? (uint32_t)strtoul(n, NULL, 10) : 0;
    return n != NULL && n[0] == '!' ? asked_reply("certs_revoke", NULL, err) : BT_OK;
}

FAKE(enum bt_code, certs_list, const char *dir, struct cert **ret, uint32_t *ret_n,
     struct bt_error *err)
{
    cJSON *said = NULL;
    const enum bt_code code = reply("certs_list", &said, err);
    const cJSON *c;

    asked_say("certs_list %s", dir);
    *ret_n = 0;
    *ret = NULL;
    if (code == BT_OK) {
        *ret = calloc((size_t)cJSON_GetArraySize(said) + 1, sizeof **ret);
        cJSON_ArrayForEach(c, said)
        {
            read_cert(c, &(*ret)[(*ret_n)++]);
        }
    }
    cJSON_Delete(said);
    return code;
}

/* Those whose serial is among the words. */
FAKE(enum bt_code, certs_mark_revoked, const char *dir, struct cert *all, uint32_t n,
     struct bt_error *err)
{
    const char *text = asked_answer("revoked");

    (void)dir;
    for (uint32_t i = 0; i < n; i++) {
        all[i].revoked = text != NULL && strstr(text, all[i].serial) != NULL;
    }
    return text != NULL && text[0] == '!' ? asked_reply("revoked", NULL, err) : BT_OK;
}

/* ---- the fleet ---- */

FAKE(enum bt_code, journal_look_open, const char *url, uint32_t lease_ms, uint32_t shard,
     struct journal_look **ret, struct bt_error *err)
{
    asked_say("look at %s, lease %u ms, shard %u", url, lease_ms, shard);
    *ret = NULL;
    return agree("look_open", err);
}

FAKE(void, journal_look_close, struct journal_look *l)
{
    (void)l;
    asked_say("look no more");
}

FAKE(enum bt_code, journal_look, struct journal_look *l, struct journal_owner *ret,
     struct bt_error *err)
{
    cJSON *o = NULL;
    const enum bt_code code = reply("look", &o, err);

    (void)l;
    asked_say("look");
    *ret = (struct journal_owner){.shards = (uint32_t)json_number(o, "shards"),
                                  .epoch = (uint64_t)json_number(o, "epoch"),
                                  .seq = (uint64_t)json_number(o, "seq"),
                                  .lease_left_ms = (int64_t)json_number(o, "left"),
                                  .connected = cJSON_IsTrue(get(o, "connected")),
                                  .format = (int)json_number(o, "format"),
                                  .format_known = (int)json_number(o, "known"),
                                  .tables = (int)json_number(o, "tables")};
    put(ret->node, sizeof ret->node, o, "node");
    put(ret->server, sizeof ret->server, o, "server");
    put(ret->standbys, sizeof ret->standbys, o, "standbys");
    cJSON_Delete(o);
    return code;
}

FAKE(enum bt_code, journal_look_shards, struct journal_look *l, struct journal_shard *ret,
     uint32_t max, uint32_t *ret_n, struct bt_error *err)
{
    cJSON *said = NULL;
    const enum bt_code code = reply("look_shards", &said, err);
    const cJSON *o;

    (void)l;
    asked_say("look at shards");
    *ret_n = 0;
    cJSON_ArrayForEach(o, said)
    {
        struct journal_shard *s = &ret[*ret_n];
        assert_true(*ret_n < max);
        *s = (struct journal_shard){.shard = (*ret_n)++,
                                    .epoch = (uint64_t)json_number(o, "epoch"),
                                    .seq = (uint64_t)json_number(o, "seq"),
                                    .lease_left_ms = (int64_t)json_number(o, "left"),
                                    .led = cJSON_IsTrue(get(o, "led"))};
        put(s->node, sizeof s->node, o, "node");
        put(s->moves_to, sizeof s->moves_to, o, "to");
    }
    cJSON_Delete(said);
    return code;
}

FAKE(enum bt_code, journal_look_nodes, struct journal_look *l, struct journal_node *ret,
     uint32_t max, uint32_t *ret_n, struct bt_error *err)
{
    cJSON *said = NULL;
    const enum bt_code code = reply("look_nodes", &said, err);
    const cJSON *o;

    (void)l;
    asked_say("look at nodes");
    *ret_n = 0;
    cJSON_ArrayForEach(o, said)
    {
        struct journal_node *n = &ret[*ret_n];
        assert_true((*ret_n)++ < max);
        *n = (struct journal_node){.alive = cJSON_IsTrue(get(o, "alive")),
                                   .draining = cJSON_IsTrue(get(o, "draining")),
                                   .places = strdup("{}"),
                                   .knows = (int)json_number(o, "knows")};
        put(n->node, sizeof n->node, o, "node");
        put(n->version, sizeof n->version, o, "version");
        put(n->config, sizeof n->config, o, "config");
    }
    cJSON_Delete(said);
    return code;
}

FAKE(enum bt_code, journal_look_init, struct journal_look *l, uint32_t shards, struct bt_error *err)
{
    (void)l;
    asked_say("init %u", shards);
    return agree("look_change", err);
}

FAKE(enum bt_code, journal_look_move, struct journal_look *l, uint32_t shard, const char *node,
     struct bt_error *err)
{
    (void)l;
    asked_say("move %u to %s", shard, node);
    return agree("look_change", err);
}

FAKE(enum bt_code, journal_look_drain, struct journal_look *l, const char *node, bool drain,
     struct bt_error *err)
{
    (void)l;
    asked_say("drain %s %d", node, drain);
    return agree("look_change", err);
}

FAKE(enum bt_code, journal_look_grow, struct journal_look *l, uint32_t shards, struct bt_error *err)
{
    (void)l;
    asked_say("grow to %u", shards);
    return agree("look_change", err);
}

FAKE(enum bt_code, journal_look_finalize, struct journal_look *l, struct bt_error *err)
{
    (void)l;
    asked_say("finalize");
    return agree("look_change", err);
}
