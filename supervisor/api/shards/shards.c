#include "supervisor/api/shards/shards.h"

#include <stdio.h>
#include <string.h>

#include "protocol/base/shard.h"
#include "protocol/client/fleet_map.h"
#include "protocol/wire/shard_route.h"
#include "supervisor/api/api.h"
#include "supervisor/engine/access.h"

enum { DETAILS_BYTES = 1024, KEY_BYTES = 1024 };

/* The map as the node last wrote it. An empty document: there is none. */
static struct doc read_map(const struct engine *engine, struct buf *packed)
{
    const char *path = engine_options(engine)->fleet_map;

    return fleet_map_read(path != NULL ? path : "", packed) ? doc_from_buf(packed)
                                                            : (struct doc){NULL, 0};
}

static uint64_t number_at(struct doc map, const char *key)
{
    const struct doc d = doc_get(map, str_from(key));
    const struct doc_head head = d.ptr != NULL ? doc_head(d) : (struct doc_head){.kind = DOC_NIL};

    return head.kind == DOC_UINT ? head.u : 0;
}

/* Where who asks reaches the shard: a client of this host by the address that only this host has,
 * when the shard is here. */
static struct str address_of(const struct request *rq, const struct fleet_place *at)
{
    return at->remote.len > 0 && (engine_is_remote(rq->handle) || !at->here) ? at->remote
                                                                             : at->control;
}

static void refuse_moved(struct engine *engine, struct request *rq, uint32_t shard)
{
    struct bt_error err;
    struct fleet_place at;
    struct buf packed;
    struct buf details;
    struct doc map;
    struct str control;

    buf_init(&details, DETAILS_BYTES);
    map = read_map(engine, &packed);
    (void)fleet_map_shard(map, shard, &at);
    control = address_of(rq, &at);
    (void)err_set(&err, BT_MOVED, "shard %u has it, at %.*s; this is shard %u", shard,
                  control.len > 0 ? (int)control.len : 14,
                  control.len > 0 ? control.ptr : "no address now", engine_options(engine)->shard);
    doc_put_map(&details, 3);
    doc_put_cstr(&details, "shard");
    doc_put_u64(&details, shard);
    doc_put_cstr(&details, "control");
    doc_put_str(&details, control);
    doc_put_cstr(&details, "mapVersion");
    doc_put_u64(&details, fleet_map_version(map));
    request_refuse(engine, rq, &err, CLASS_NONE, 0, doc_from_buf(&details));
    buf_done(&details);
    buf_done(&packed);
}

/* Whether the key lives in that shard: as it was sent, or as it is stored for a sender who has
 * names of its own. */
static enum bt_code lives_at(struct engine *engine, const struct request *rq, uint32_t shard,
                             enum shard_key kind, struct str key, bool *ret, struct bt_error *err)
{
    static const enum journal_key kinds[] = {[SHARD_KEY_SESSION] = JOURNAL_KEY_SESSION,
                                             [SHARD_KEY_RUNNING] = JOURNAL_KEY_RUNNING,
                                             [SHARD_KEY_CLIENT] = JOURNAL_KEY_CLIENT,
                                             [SHARD_KEY_NAME] = JOURNAL_KEY_NAME};
    struct journal *journal = engine_journal(engine);
    char own[ACCESS_NAME_MAX + 1];
    struct buf stored;
    enum bt_code code;

    buf_init(&stored, KEY_BYTES);
    if (kind == SHARD_KEY_CLIENT) {
        access_client_key(rq->who, key, &stored);
    } else if (kind != SHARD_KEY_RUNNING) {
        access_own_name(rq->who, key, own);
        buf_add_cstr(&stored, own);
    }
    code = journal_key_is_at(journal, shard, kinds[kind], key, ret, err);
    if (code == BT_OK && !*ret && stored.len > 0 && !str_eq(buf_str(&stored), key)) {
        code = journal_key_is_at(journal, shard, kinds[kind], buf_str(&stored), ret, err);
    }
    buf_done(&stored);
    return code;
}

/* Of a fleet that has grown: a key of before may live where an older number of shards says. */
static enum bt_code find_older(struct engine *engine, const struct request *rq, int *io_shard,
                               struct bt_error *err)
{
    const uint32_t *maps;
    const uint32_t n = journal_maps(engine_journal(engine), &maps);
    enum shard_key kind;
    enum bt_code code = BT_OK;
    bool found = false;
    struct str key;

    if (n == 0) {
        return BT_OK;
    }
    key = shard_key_of_request(rq->env.type, (struct doc){rq->reader.body, rq->reader.len}, &kind);
    for (uint32_t i = 0; i < n && key.len > 0 && code == BT_OK && !found; i++) {
        const uint32_t older = shard_of_key(key, maps[i]);
        if ((int)older != *io_shard) {
            code = lives_at(engine, rq, older, kind, key, &found, err);
            *io_shard = found ? (int)older : *io_shard;
        }
    }
    return code;
}

/* Of a fleet that grew from one shard: a plan that came to it by an import may have an id of
 * elsewhere. It is where it was. */
static enum bt_code find_stray(struct engine *engine, const struct request *rq, int *io_shard,
                               struct bt_error *err)
{
    struct journal *journal = engine_journal(engine);
    enum bt_code code;
    bool found = false;
    struct uuid id;

    if (!journal_has_strays(journal) ||
        !shard_id_of_request(rq->env.type, (struct doc){rq->reader.body, rq->reader.len}, &id) ||
        shard_of_id(id) == 0) {
        return BT_OK;
    }
    code = journal_key_is_at(journal, 0, JOURNAL_KEY_PLAN,
                             (struct str){(const char *)id.b, sizeof id.b}, &found, err);
    *io_shard = found ? 0 : *io_shard;
    return code;
}

/* A plan is found by the shard that its id names, so it can live nowhere else. */
static bool may_import(struct engine *engine, struct request *rq)
{
    const uint32_t shards = engine_options(engine)->shards;
    const struct doc body = {rq->reader.body, rq->reader.len};
    const struct str lines = doc_string(doc_get(body, STR_LIT("lines")));
    const struct str plan = doc_string(doc_get(body, STR_LIT("planId")));
    const char *end = lines.ptr != NULL ? memchr(lines.ptr, '\n', lines.len) : NULL;
    const size_t first = end != NULL ? (size_t)(end - lines.ptr) : lines.len;
    enum shard_key kind;
    struct str of = plan;
    struct uuid id;

    if (plan.len == 0) {
        of = shard_key_of_request(rq->env.type, body, &kind);
    }
    if (of.len == 0) {
        request_refuse_text(engine, rq, BT_INVALID,
                            "planId, sessionId or name: a fleet of several shards needs one of "
                            "them, that of the lines");
        return false;
    }
    if (plan.len > 0 && lines.ptr != NULL && number_at(body, "before") == 0 &&
        memmem(lines.ptr, first, of.ptr, of.len) == NULL) {
        request_refuse_text(engine, rq, BT_INVALID, "lines: the first one is not of \"%.*s\"",
                            STR_ARG(of));
        return false;
    }
    if (plan.len > 0 && uuid_parse(plan, &id) && shard_of_id(id) >= shards) {
        request_refuse_text(engine, rq, BT_INVALID,
                            "planId: the id of plan %.*s names shard %u, and this fleet has %u: "
                            "plans of a daemon without a fleet, or of a larger fleet, cannot live "
                            "here",
                            STR_ARG(plan), shard_of_id(id), shards);
        return false;
    }
    return true;
}

bool shards_have(struct engine *engine, struct request *rq)
{
    const struct engine_options *opt = engine_options(engine);
    struct bt_error err;
    enum bt_code code;
    int shard;

    if (opt->shards < 2) {
        return true;
    }
    if (str_is(rq->env.type, "journal.import") && !may_import(engine, rq)) {
        return false;
    }
    shard =
        shard_of_request(rq->env.type, (struct doc){rq->reader.body, rq->reader.len}, opt->shards);
    code = find_stray(engine, rq, &shard, &err);
    code = code == BT_OK && shard >= 0 ? find_older(engine, rq, &shard, &err) : code;
    if (code != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
        return false;
    }
    if (shard < 0 || (uint32_t)shard == opt->shard) {
        return true;
    }
    refuse_moved(engine, rq, (uint32_t)shard);
    return false;
}

/* Of one daemon: itself. */
static void describe_one(struct engine *engine, const struct request *rq,
                         struct msg_fleet_shard *ret)
{
    *ret = (struct msg_fleet_shard){.epoch = journal_boot(engine_journal(engine)),
                                    .control = str_from(engine_is_remote(rq->handle)
                                                            ? engine_remote_url(engine)
                                                            : engine_control_url(engine)),
                                    .events = str_from(engine_events_url(engine))};
}

void on_fleet_map(struct engine *engine, struct request *rq)
{
    const uint32_t shards = engine_options(engine)->shards;
    struct msg_fleet_shard list[SHARDS_MAX];
    struct msg_fleet_map_ok ok = {
        .version = 1, .shard = engine_options(engine)->shard, .shards = list, .shards_n = 1};
    struct msg_fleet_map m;
    struct buf packed;

    if (!request_read(engine, rq, MSG_fleet_map, &m)) {
        return;
    }
    if (shards < 2) {
        describe_one(engine, rq, &list[0]);
        request_answer(engine, rq, MSG_fleet_map_ok, &ok);
        return;
    }
    const struct doc map = read_map(engine, &packed);
    ok.version = fleet_map_version(map);
    ok.shards_n = shards;
    for (uint32_t i = 0; i < shards; i++) {
        struct fleet_place at;
        (void)fleet_map_shard(map, i, &at);
        list[i] = (struct msg_fleet_shard){.shard = i,
                                           .epoch = at.epoch,
                                           .control = address_of(rq, &at),
                                           .events = at.events,
                                           .node = at.node};
    }
    request_answer(engine, rq, MSG_fleet_map_ok, &ok);
    buf_done(&packed);
}
