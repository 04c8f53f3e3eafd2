/*
 * A fleet of several shards: one client for each, made when it is needed. The client that was
 * opened is the seed: whichever shard it finds says MOVED for what another one has, and answers
 * fleet.map.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/shard.h"
#include "protocol/client/client_internal.h"
#include "protocol/client/seeds.h"
#include "protocol/wire/shard_route.h"

enum {
    HOPS_MAX = 3,
    REACH_MS = 700,         /* to a shard; then its address is asked again */
    AGAIN_MS = 100,         /* while nobody leads it */
    MOVED_BYTES_MAX = 4096, /* of an answer that says so */
    COUNT_MS = 5000,        /* before the number of shards is asked again */
    AWAY_BYTES_MAX = 2048,  /* of an answer that says that the storage is away */
    MAP_MS = 5000
};

struct client_shards {
    uint32_t n; /* 0 = not asked yet */
    msec asked_at;
    struct bt_client *of[SHARDS_MAX];
};

void client_shards_forget(struct bt_client *c)
{
    struct client_shards *s = c->shards;

    if (s == NULL) {
        return;
    }
    for (uint32_t i = 0; i < SHARDS_MAX; i++) {
        bt_client_close(s->of[i]);
    }
    free(s);
    c->shards = NULL;
}

static void drop(struct bt_client *c, uint32_t shard)
{
    bt_client_close(c->shards->of[shard]);
    c->shards->of[shard] = NULL;
}

static enum bt_code know(struct bt_client *c, struct bt_error *err)
{
    if (c->shards == NULL) {
        c->shards = calloc(1, sizeof *c->shards);
    }
    return c->shards != NULL ? BT_OK : err_set(err, BT_NOMEM, "out of memory for a fleet");
}

/* As this client, but at one address. */
static enum bt_code clone(const struct bt_client *c, const char *url, struct bt_client **ret,
                          struct bt_error *err)
{
    struct bt_client *to = NULL;
    enum bt_code code = client_new(&to, err);

    if (code == BT_OK) {
        to->timeout_ms = c->timeout_ms;
        (void)snprintf(to->dir, sizeof to->dir, "%s", c->dir);
        (void)snprintf(to->via, sizeof to->via, "%s", c->via);
        (void)snprintf(to->pinned, sizeof to->pinned, "%s", url);
        (void)snprintf(to->token, sizeof to->token, "%s", c->token);
        if (c->credential.id[0] != 0) {
            exchange_set(&to->credential, c->credential.id, c->credential.key);
        }
    }
    if (code == BT_OK && c->remote != NULL) {
        code = client_remote_like(c, url, to, err);
    } else if (code == BT_OK && strncmp(url, "tls+", 4) == 0) {
        code = err_set(err, BT_UNAVAILABLE,
                       "it is on another host, at %s: connect with --connect, a credential and a "
                       "certificate",
                       url);
    }
    if (code != BT_OK) {
        bt_client_close(to);
        to = NULL;
    }
    *ret = to;
    return code;
}

/* The client of the shard at that address. */
static enum bt_code take(struct bt_client *c, uint32_t shard, const char *url,
                         struct bt_client **ret, struct bt_error *err)
{
    enum bt_code code = know(c, err);

    if (code != BT_OK) {
        return code;
    }
    if (c->shards->of[shard] != NULL && strcmp(c->shards->of[shard]->pinned, url) != 0) {
        drop(c, shard);
    }
    if (c->shards->of[shard] == NULL) {
        code = clone(c, url, &c->shards->of[shard], err);
    }
    *ret = c->shards->of[shard];
    return code;
}

/* ---- one request ---- */

/* Whether the answer is MOVED, and where to. */
static bool is_moved(struct str bytes, uint32_t *ret_shard, char ret_url[STATE_URL_MAX + 1])
{
    struct msg_reader r = {0};
    struct doc error = {NULL, 0};
    struct doc shard = {NULL, 0};
    bool moved = false;

    if (bytes.len > MOVED_BYTES_MAX || memmem(bytes.ptr, bytes.len, "MOVED", 5) == NULL) {
        return false;
    }
    if (msg_reader_init(&r, bytes.ptr, bytes.len, MOVED_BYTES_MAX, NULL) == BT_OK) {
        error = doc_get((struct doc){r.body, r.len}, STR_LIT("error"));
        shard = error.ptr != NULL ? doc_path(error, STR_LIT("details.shard")) : error;
    }
    if (shard.ptr != NULL && str_is(doc_string(doc_get(error, STR_LIT("code"))), "MOVED") &&
        doc_head(shard).kind == DOC_UINT && doc_head(shard).u < SHARDS_MAX) {
        const struct str url = doc_string(doc_path(error, STR_LIT("details.control")));
        *ret_shard = (uint32_t)doc_head(shard).u;
        (void)snprintf(ret_url, STATE_URL_MAX + 1, "%.*s", url.ptr != NULL ? (int)url.len : 0,
                       url.ptr != NULL ? url.ptr : "");
        moved = true;
    }
    msg_reader_done(&r);
    return moved;
}

/* The shard of the request, as far as this client knows it; NULL: the seed is asked. */
static struct bt_client *known_for(struct bt_client *c, const struct buf *request,
                                   uint32_t *ret_shard)
{
    const struct doc body = doc_from_buf(request);
    int shard;

    if (c->shards == NULL || c->shards->n < 2) {
        return NULL;
    }
    shard = shard_of_request(doc_string(doc_get(body, STR_LIT("type"))), body, c->shards->n);
    if (shard < 0 || shard >= SHARDS_MAX) {
        return NULL;
    }
    *ret_shard = (uint32_t)shard;
    return c->shards->of[shard];
}

static uint32_t left_of(msec deadline)
{
    const msec now = clock_mono_ms();

    return now >= deadline ? 1 : (uint32_t)(deadline - now);
}

/* Its leader has lost its server: where it is is asked anew, like where nobody answers. */
static void forget_shard(struct bt_client *c, uint32_t shard, bool answered)
{
    if (!answered || client_remote_others(c) > 0) {
        drop(c, shard);
    }
}

/* Whether the answer is that the leader has lost its server: another node may lead. */
static bool is_away(struct str bytes)
{
    struct msg_reader r = {0};
    struct doc storage = {NULL, 0};
    bool away = false;

    if (bytes.len > AWAY_BYTES_MAX || memmem(bytes.ptr, bytes.len, "storage", 7) == NULL) {
        return false;
    }
    if (msg_reader_init(&r, bytes.ptr, bytes.len, AWAY_BYTES_MAX, NULL) == BT_OK) {
        const struct doc error = doc_get((struct doc){r.body, r.len}, STR_LIT("error"));
        storage = error.ptr != NULL ? doc_path(error, STR_LIT("details.storage")) : error;
        away = storage.ptr != NULL && str_is(doc_string(storage), "away");
    }
    msg_reader_done(&r);
    return away;
}

static enum bt_code exchange(struct bt_client *c, const struct buf *request, msec deadline,
                             struct link_msg **ret, struct str *ret_body, struct bt_error *err)
{
    char url[STATE_URL_MAX + 1] = "";
    uint32_t shard = 0;
    struct bt_client *x = known_for(c, request, &shard);

    for (uint32_t hops = 0; hops <= HOPS_MAX;) {
        const bool elsewhere = x != NULL;
        enum bt_code code = BT_OK;

        if (elsewhere) {
            code =
                client_reach(x, left_of(deadline) < REACH_MS ? left_of(deadline) : REACH_MS, err);
        }
        if (code != BT_OK) { /* nothing was sent: where is it now? */
            drop(c, shard);
            x = NULL;
            hops = 0; /* the map was old; only a shard that answers can send it in circles */
            if (clock_mono_ms() >= deadline) {
                return code;
            }
            client_pause(c, clock_mono_ms() + AGAIN_MS);
            continue;
        }
        code =
            client_exchange_here(elsewhere ? x : c, request, left_of(deadline), ret, ret_body, err);
        if (code != BT_OK || !is_moved(*ret_body, &shard, url)) {
            if (elsewhere && (code != BT_OK || is_away(*ret_body))) {
                forget_shard(c, shard, code == BT_OK);
            }
            return code;
        }
        link_msg_free(*ret);
        *ret = NULL;
        x = NULL;
        if (url[0] == 0 && clock_mono_ms() + AGAIN_MS >= deadline) { /* no time for another look */
            return err_set(err, BT_UNAVAILABLE, "nobody leads shard %u now", shard);
        }
        if (url[0] == 0) {
            client_pause(c, clock_mono_ms() + AGAIN_MS);
            continue;
        }
        hops++;
        code = take(c, shard, url, &x, err);
        if (code != BT_OK) {
            return code;
        }
    }
    return err_set(err, BT_UNAVAILABLE, "shard %u moved %d times during one request", shard,
                   HOPS_MAX);
}

/* Nothing was begun where the storage is away, so the request may go to another node. When none
 * leads, the first answer stands. */
enum bt_code client_exchange(struct bt_client *c, const struct buf *request, uint32_t timeout_ms,
                             struct link_msg **ret, struct str *ret_body, struct bt_error *err)
{
    const msec deadline = clock_mono_ms() + timeout_ms;
    struct link_msg *first = NULL;
    struct str first_body = {NULL, 0};
    uint32_t others = 0;
    enum bt_code code = exchange(c, request, deadline, ret, ret_body, err);

    if (code != BT_OK || !is_away(*ret_body)) {
        return code;
    }
    others = client_remote_others(c);
    for (uint32_t i = 0; i < others && clock_mono_ms() < deadline; i++) {
        struct link_msg *next = NULL;
        struct str next_body;
        client_leave(c);
        if (client_reach(c, SEED_MS - 1, NULL) != BT_OK) {
            continue;
        }
        first = *ret;
        first_body = *ret_body;
        code = exchange(c, request, deadline, &next, &next_body, err);
        if (code == BT_OK && !is_away(next_body)) {
            link_msg_free(first);
            *ret = next;
            *ret_body = next_body;
            return BT_OK;
        }
        if (next != NULL) {
            link_msg_free(next);
        }
        *ret = first;
        *ret_body = first_body;
    }
    if (others > 0) {
        client_leave(c); /* to where it was */
        client_remote_none_leads(c);
    }
    return BT_OK;
}

/* ---- the map ---- */

/* Asks for it. *ret: the answer as a document. */
static enum bt_code ask_map(struct bt_client *c, struct buf *ret, struct bt_error *err)
{
    char *json = NULL;
    enum bt_code code = client_call_here(
        c, "fleet.map", NULL, c->timeout_ms < MAP_MS ? c->timeout_ms : MAP_MS, &json, err);

    if (code == BT_OK) {
        code = json_to_doc(str_from(json), NULL, ret, err);
    }
    bt_free(json);
    return code;
}

static struct doc shard_at(struct doc map, uint32_t i)
{
    const struct doc list = doc_get(map, STR_LIT("shards"));

    return list.ptr != NULL ? doc_at(list, i) : (struct doc){NULL, 0};
}

enum bt_code client_shards_count(struct bt_client *c, uint32_t *ret, struct bt_error *err)
{
    char path[sizeof c->dir + 16];
    struct buf map;
    enum bt_code code = BT_OK;

    *ret = 1;
    if (c->shards != NULL && c->shards->n > 0) { /* it may have grown; one shard does not grow */
        *ret = c->shards->n;
        if (*ret == 1 || clock_mono_ms() - c->shards->asked_at < COUNT_MS) {
            return BT_OK;
        }
    }
    (void)snprintf(path, sizeof path, "%s/fleet.json", c->dir);
    if (c->remote == NULL && access(path, F_OK) != 0) {
        return BT_OK; /* one daemon, as nearly always: no question for it */
    }
    buf_init(&map, json_doc_capacity(client_json_limits.bytes));
    code = ask_map(c, &map, err);
    if (code == BT_OK || code == BT_INVALID) { /* an older daemon knows no such request */
        uint32_t n = 0;
        while (code == BT_OK && n < SHARDS_MAX && shard_at(doc_from_buf(&map), n).ptr != NULL) {
            n++;
        }
        *ret = n == 0 ? 1 : n;
        code = know(c, err);
    }
    if (code == BT_OK) {
        c->shards->n = *ret;
        c->shards->asked_at = clock_mono_ms();
    }
    buf_done(&map);
    return c->shards != NULL && c->shards->n > 0 ? BT_OK : code; /* what was known stays */
}

enum bt_code bt_client_shards(struct bt_client *c, uint32_t *ret, struct bt_error *err)
{
    return client_shards_count(c, ret, err);
}

enum bt_code client_shard(struct bt_client *c, uint32_t shard, struct bt_client **ret,
                          struct bt_error *err)
{
    char url[STATE_URL_MAX + 1] = "";
    struct buf map;
    struct str control;
    enum bt_code code;

    *ret = c->shards != NULL ? c->shards->of[shard] : NULL;
    if (*ret != NULL && client_reach(*ret, REACH_MS, err) == BT_OK) {
        return BT_OK;
    }
    buf_init(&map, json_doc_capacity(client_json_limits.bytes));
    code = ask_map(c, &map, err);
    if (code == BT_OK) {
        const struct doc one = shard_at(doc_from_buf(&map), shard);
        control =
            one.ptr != NULL ? doc_string(doc_get(one, STR_LIT("control"))) : (struct str){NULL, 0};
        (void)snprintf(url, sizeof url, "%.*s", control.ptr != NULL ? (int)control.len : 0,
                       control.ptr != NULL ? control.ptr : "");
    }
    buf_done(&map);
    if (code == BT_OK && url[0] == 0) {
        code = err_set(err, BT_UNAVAILABLE, "nobody leads shard %u now", shard);
    }
    if (code == BT_OK) {
        code = take(c, shard, url, ret, err);
    }
    if (code == BT_OK) {
        code = client_reach(*ret, REACH_MS, err);
        if (code != BT_OK) {
            drop(c, shard);
        }
    }
    return code;
}

bool client_may_be_for_all(const char *type)
{
    static const uint8_t none[] = {0x80}; /* msgpack: {} */

    return shard_of_request(str_from(type), (struct doc){none, sizeof none}, SHARDS_MAX) ==
           SHARD_ALL;
}

enum bt_code client_is_for_all(struct bt_client *c, const char *type, struct doc fields,
                               uint32_t *ret_shards, struct bt_error *err)
{
    *ret_shards = 1;
    return shard_of_request(str_from(type), fields, SHARDS_MAX) == SHARD_ALL
               ? client_shards_count(c, ret_shards, err)
               : BT_OK;
}
