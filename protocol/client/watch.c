/*
 * Delivers every event once, in order, without gaps. `expected` is the next sequence number that
 * the caller has not had. Each read with events.read brings all that is new, and waits in the
 * daemon while nothing is. Of several shards each is looked at in turn, and the oldest event comes
 * first: an order for people, because clocks differ.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/base/shard.h"
#include "protocol/client/client_internal.h"
#include "protocol/client/page.h"

enum {
    PAGE_LIMIT = 500,
    WAIT_MAX_MS = 10000,     /* of one read: less than what counts as gone */
    ANSWER_MS = 1000,        /* beyond it, for the answer of a busy daemon */
    ANSWER_REMOTE_MS = 5000, /* over a bad line */
    SEEDS_MS = 2000,         /* both, of several nodes: one that is cut off does not answer */
    LOOK_MS = 100,           /* between two looks at a shard that had nothing */
    PAUSE_MS = 200           /* after a read that failed, or found no place to wait in */
};

struct bt_watch {
    struct bt_client *client;
    /* a fleet of several shards: one watch each, merged by time */
    struct bt_watch *parts[SHARDS_MAX];
    uint32_t parts_n;
    /* such a part */
    bool is_part;
    uint32_t shard;
    bool has; /* `head` waits to be returned */
    struct bt_event head;
    char head_id[BT_ID_LEN + 1]; /* its eventId */
    uint64_t at_ms;              /* of the head */
    bool heard;                  /* the shard has answered since it was opened */
    uint64_t begins;             /* the events up to here the caller has had */
    char begins_id[BT_ID_LEN + 1];
    char plan_id[BT_ID_LEN + 1]; /* "" = all */
    uint64_t expected;
    char last_id[BT_ID_LEN + 1]; /* the eventId of the event before `expected`; "" = not known */
    msec last_contact;           /* when the daemon last answered */
    msec read_at;                /* no read before */
    uint64_t filled;
    struct client_page page; /* the answer that is being delivered */
    struct buf json;
    char type[72];
    char event_plan[BT_ID_LEN + 1];
};

static enum bt_code open_one(struct bt_client *c, const char *plan_id, uint64_t after,
                             struct bt_watch **ret, struct bt_error *err)
{
    struct bt_watch *w;
    char about[BT_ID_LEN + 32];
    struct buf doc;
    char *json = NULL;
    enum bt_code code;

    (void)snprintf(about, sizeof about, "{\"planId\":\"%.*s\"}", BT_ID_LEN,
                   plan_id != NULL ? plan_id : ""); /* of a fleet the shard that has it */
    code = bt_client_call(c, "supervisor.info", plan_id != NULL ? about : NULL, &json, err);
    if (code != BT_OK) {
        bt_free(json);
        return code;
    }
    w = calloc(1, sizeof *w);
    buf_init(&doc, LIMIT_CONTROL_BYTES);
    if (w == NULL) {
        code = err_set(err, BT_NOMEM, "out of memory for a watch");
    } else {
        code = json_to_doc(str_from(json), NULL, &doc, err);
    }
    if (code == BT_OK) {
        w->client = c;
        w->expected = after == UINT64_MAX
                          ? doc_head(doc_get(doc_from_buf(&doc), STR_LIT("lastSeq"))).u + 1
                          : after + 1;
        w->last_contact = clock_mono_ms();
        (void)snprintf(w->plan_id, sizeof w->plan_id, "%s", plan_id != NULL ? plan_id : "");
        buf_init(&w->json, 8 * (size_t)LIMIT_EVENT_BYTES);
        c->watch = w;
        *ret = w;
    } else {
        free(w);
    }
    bt_free(json);
    buf_done(&doc);
    return code;
}

static void set_id(char to[BT_ID_LEN + 1], struct str id)
{
    (void)snprintf(to, BT_ID_LEN + 1, "%.*s", id.ptr != NULL ? (int)id.len : 0,
                   id.ptr != NULL ? id.ptr : "");
}

/* What a vector says of a shard: 0 when it does not name it. Its eventId, when it has one, is in
 * ret_id. */
static uint64_t after_of(const char *vector, uint32_t shard, char ret_id[BT_ID_LEN + 1])
{
    char *end = NULL;
    uint64_t after;
    char mark[16];
    const size_t len = (size_t)snprintf(mark, sizeof mark, "S%u=", shard);

    for (const char *at = vector; at != NULL && *at != 0;
         at = strchr(at, ';') != NULL ? strchr(at, ';') + 1 : NULL) {
        if (strncmp(at, mark, len) == 0) {
            after = strtoull(at + len, &end, 10);
            if (*end == ':') {
                set_id(ret_id, (struct str){end + 1, strcspn(end + 1, ";")});
            }
            return after;
        }
    }
    return 0;
}

/* Where the events of the shard end now. */
static enum bt_code last_of(struct bt_client *c, uint32_t shard, uint64_t *ret,
                            struct bt_error *err)
{
    struct bt_client *at = NULL;
    char *json = NULL;
    struct buf doc;
    enum bt_code code = client_shard(c, shard, &at, err);

    if (code == BT_OK) {
        code = client_call_here(at, "supervisor.info", NULL, c->timeout_ms, &json, err);
    }
    buf_init(&doc, LIMIT_CONTROL_BYTES);
    if (code == BT_OK) {
        code = json_to_doc(str_from(json), NULL, &doc, err);
    }
    if (code == BT_OK) {
        *ret = doc_head(doc_get(doc_from_buf(&doc), STR_LIT("lastSeq"))).u;
    }
    buf_done(&doc);
    bt_free(json);
    return code;
}

static enum bt_code add_part(struct bt_watch *w, uint32_t shard, uint64_t after, const char *id,
                             struct bt_error *err)
{
    struct bt_watch *part = calloc(1, sizeof *part);
    enum bt_code code = BT_OK;

    if (part == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a watch");
    }
    w->parts[w->parts_n++] = part;
    part->client = w->client;
    part->is_part = true;
    part->shard = shard;
    part->last_contact = clock_mono_ms();
    buf_init(&part->json, 8 * (size_t)LIMIT_EVENT_BYTES);
    if (after == UINT64_MAX) {
        code = last_of(w->client, shard, &after, err);
    }
    part->begins = after;
    set_id(part->begins_id, str_from(id));
    set_id(part->last_id, str_from(id));
    part->expected = after + 1;
    return code;
}

/* All shards: new events only, or those after the vector. */
static enum bt_code open_all(struct bt_client *c, uint32_t shards, bool only_new,
                             const char *vector, struct bt_watch **ret, struct bt_error *err)
{
    struct bt_watch *w = calloc(1, sizeof *w);
    enum bt_code code = BT_OK;

    if (w == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a watch");
    }
    w->client = c;
    c->watch = w;
    for (uint32_t i = 0; i < shards && code == BT_OK; i++) {
        char id[BT_ID_LEN + 1] = "";
        const uint64_t after = only_new ? UINT64_MAX : after_of(vector, i, id);
        code = add_part(w, i, after, id, err);
    }
    if (code != BT_OK) {
        bt_watch_close(w);
        return code;
    }
    *ret = w;
    return BT_OK;
}

enum bt_code bt_watch_open(struct bt_client *c, const char *plan_id, uint64_t after,
                           struct bt_watch **ret, struct bt_error *err)
{
    uint32_t shards = 1;
    enum bt_code code = BT_OK;

    if (c->watch != NULL) {
        return err_set(err, BT_CONFLICT, "a client has at most one watch at a time");
    }
    if (plan_id == NULL) {
        code = client_shards_count(c, &shards, err);
    }
    if (code != BT_OK || shards == 1) {
        return code != BT_OK ? code : open_one(c, plan_id, after, ret, err);
    }
    if (after != 0 && after != UINT64_MAX) {
        return err_set(err, BT_INVALID,
                       "this fleet has %u shards, each with its own numbers: give a vector, "
                       "S0=12;S1=40",
                       shards);
    }
    return open_all(c, shards, after == UINT64_MAX, "", ret, err);
}

/* One place, "S3=40" or "S3=40:EVENTID". Its end; NULL: it is none. */
static const char *place_end(const char *at, unsigned long *ret_shard)
{
    char *end = NULL;
    struct uuid id;
    size_t len;

    if (at[0] != 'S' || at[1] < '0' || at[1] > '9') {
        return NULL;
    }
    *ret_shard = strtoul(at + 1, &end, 10);
    if (end[0] != '=' || end[1] < '0' || end[1] > '9') {
        return NULL;
    }
    (void)strtoull(end + 1, &end, 10);
    if (*end != ':') {
        return end;
    }
    len = strcspn(end + 1, ";");
    return uuid_parse((struct str){end + 1, len}, &id) ? end + 1 + len : NULL;
}

/* What is no place would be read as the beginning. */
static enum bt_code check_vector(const char *vector, uint32_t shards, struct bt_error *err)
{
    unsigned long shard = 0;

    for (const char *at = vector;; at++) {
        at = place_end(at, &shard);
        if (at == NULL || (*at != 0 && *at != ';')) {
            return err_set(err, BT_INVALID,
                           "'%.200s': expected the numbers of shards, S0=12;S1=40, each perhaps "
                           "with its eventId, S0=12:ID",
                           vector);
        }
        if (shard >= shards) {
            return err_set(err, BT_INVALID,
                           "'%.200s': names shard %lu, and the last one is shard %u", vector, shard,
                           shards - 1);
        }
        if (*at == 0) {
            return BT_OK;
        }
    }
}

enum bt_code bt_watch_open_after(struct bt_client *c, const char *vector, struct bt_watch **ret,
                                 struct bt_error *err)
{
    uint32_t shards;
    enum bt_code code;

    if (c->watch != NULL) {
        return err_set(err, BT_CONFLICT, "a client has at most one watch at a time");
    }
    code = client_shards_count(c, &shards, err);
    code = code == BT_OK ? check_vector(vector, shards, err) : code;
    if (code == BT_OK && shards == 1) {
        char id[BT_ID_LEN + 1] = "";
        const uint64_t after = after_of(vector, 0, id);
        code = open_one(c, NULL, after, ret, err);
        if (code == BT_OK) {
            set_id((*ret)->last_id, str_from(id));
        }
        return code;
    }
    return code == BT_OK ? open_all(c, shards, false, vector, ret, err) : code;
}

static void free_one(struct bt_watch *w)
{
    client_page_done(&w->page);
    buf_done(&w->json);
    free(w);
}

void bt_watch_close(struct bt_watch *w)
{
    if (w == NULL) {
        return;
    }
    for (uint32_t i = 0; i < w->parts_n; i++) {
        free_one(w->parts[i]);
    }
    w->client->watch = NULL;
    free_one(w);
}

uint64_t bt_watch_filled(const struct bt_watch *w)
{
    uint64_t n = w->filled;

    for (uint32_t i = 0; i < w->parts_n; i++) {
        n += w->parts[i]->filled;
    }
    return n;
}

bool bt_watch_is_current(const struct bt_watch *w)
{
    bool heard = w->parts_n == 0 ? w->heard && w->page.left == 0 : true;

    for (uint32_t i = 0; i < w->parts_n; i++) {
        heard = heard && w->parts[i]->heard && !w->parts[i]->has && w->parts[i]->page.left == 0;
    }
    return heard;
}

static size_t put_place(char *ret, size_t cap, size_t n, uint32_t shard, uint64_t seq,
                        const char *id)
{
    const int more = snprintf(ret + n, cap - n, "%sS%u=%llu%s%s", n > 0 ? ";" : "", shard,
                              (unsigned long long)seq, id[0] != 0 ? ":" : "", id);

    return n + (size_t)more < cap ? n + (size_t)more : cap;
}

/* Without ids when they do not fit: a number or an id that was cut would be another one. */
void bt_watch_cursor(const struct bt_watch *w, char *ret, size_t cap)
{
    bool ids = true;
    size_t n;

    do {
        n = 0;
        ret[0] = 0;
        if (w->parts_n == 0) {
            n = put_place(ret, cap, 0, 0, w->expected - 1, ids ? w->last_id : "");
        }
        for (uint32_t i = 0; i < w->parts_n && n < cap; i++) {
            const struct bt_watch *part = w->parts[i];
            n = put_place(ret, cap, n, i, part->begins, ids ? part->begins_id : "");
        }
        ids = !ids;
    } while (n == cap && !ids);
}

/* Reads a page of events from `expected` on. */
static enum bt_code read_page(struct bt_watch *w, uint32_t wait_ms, uint32_t timeout_ms,
                              struct bt_error *err)
{
    struct msg_events_read query = {.from_seq = w->expected,
                                    .limit = PAGE_LIMIT,
                                    .plan_id = str_from(w->plan_id),
                                    .wait_ms = wait_ms,
                                    .after_event_id = str_from(w->last_id)};
    struct bt_client *at = w->client;
    enum bt_code code = w->is_part ? client_shard(w->client, w->shard, &at, err) : BT_OK;

    if (code == BT_OK) {
        code = client_page_read(at, &query, timeout_ms, &w->page, err);
    }
    if (code == BT_OK) {
        w->heard = true;
        w->last_contact = clock_mono_ms();
    }
    if (code == BT_HISTORY_CHANGED) { /* said once; the next read goes on from there */
        w->expected = w->page.next_seq > 0 ? w->page.next_seq : 1;
        w->begins = w->expected - 1;
        w->last_id[0] = w->begins_id[0] = 0;
    }
    return code;
}

static enum bt_code deliver(struct bt_watch *w, struct doc body, struct bt_event *ret,
                            struct bt_error *err)
{
    struct str type = doc_string(doc_get(body, STR_LIT("type")));
    struct str plan = doc_string(doc_get(body, STR_LIT("planId")));
    enum bt_code code;

    buf_clear(&w->json);
    code = doc_to_json(body, false, &w->json, err);
    if (w->is_part && code == BT_OK && w->json.len > 1) { /* a number is one of its shard */
        char more[32];
        (void)snprintf(more, sizeof more, ",\"shard\":%u}", w->shard);
        buf_truncate(&w->json, w->json.len - 1);
        buf_add_cstr(&w->json, more);
    }
    w->at_ms = doc_head(doc_get(body, STR_LIT("tsMs"))).u;
    set_id(w->head_id, doc_string(doc_get(body, STR_LIT("eventId"))));
    (void)snprintf(w->type, sizeof w->type, "%.*s", STR_ARG(type));
    (void)snprintf(w->event_plan, sizeof w->event_plan, "%.*s", STR_ARG(plan));
    *ret = (struct bt_event){.seq = doc_head(doc_get(body, STR_LIT("seq"))).u,
                             .type = w->type,
                             .plan_id = w->event_plan,
                             .json = buf_cstr(&w->json)};
    return code;
}

/* Returns the next event of the page; false at its end. */
static bool next_of_page(struct bt_watch *w, struct doc *ret)
{
    while (client_page_next(&w->page, ret)) {
        const uint64_t seq = doc_head(doc_get(*ret, STR_LIT("seq"))).u;
        if (seq >= w->expected) {
            w->expected = seq + 1;
            set_id(w->last_id, doc_string(doc_get(*ret, STR_LIT("eventId"))));
            w->filled++;
            return true;
        }
    }
    if (w->page.next_seq >= w->expected && w->page.next_seq > 0) {
        w->expected = w->page.next_seq;
        set_id(w->last_id, w->page.last_event_id);
    }
    client_page_done(&w->page);
    return false;
}

/*
 * Reads what is new, or waits for it. Returns BT_OK also when the daemon is away for a moment; the
 * watch tries again soon. Returns BT_UNAVAILABLE when it has been silent for CLIENT_GONE_MS.
 */
static enum bt_code read_new(struct bt_watch *w, msec now, msec deadline, struct bt_error *err)
{
    const msec left = deadline > now ? deadline - now : 0;
    const bool several = client_remote_several(w->client);
    const uint32_t most = several ? SEEDS_MS : WAIT_MAX_MS;
    const uint32_t wait = left > most ? most : (uint32_t)left;
    const uint32_t answer = several                     ? SEEDS_MS
                            : w->client->remote != NULL ? ANSWER_REMOTE_MS
                                                        : ANSWER_MS;
    const enum bt_code code = read_page(w, wait, wait + answer, err);

    if (code == BT_OK && wait > 0 && w->page.left == 0 && clock_mono_ms() - now < wait / 2) {
        w->read_at = now + PAUSE_MS; /* no place was free to wait in */
    }
    if (code != BT_UNAVAILABLE && code != BT_TIMEOUT) {
        return code;
    }
    if (clock_mono_ms() - w->last_contact > CLIENT_GONE_MS) {
        return err_set(err, BT_UNAVAILABLE, "the daemon of %s has not been heard of for %d s",
                       w->client->dir, CLIENT_GONE_MS / 1000);
    }
    w->read_at = clock_mono_ms() + PAUSE_MS;
    return BT_OK;
}

static enum bt_code next_of_one(struct bt_watch *w, uint32_t timeout_ms, struct bt_event *ret,
                                struct bt_error *err)
{
    const msec deadline = clock_mono_ms() + timeout_ms;
    bool asked = false; /* a call without time looks once */

    for (;;) {
        const msec now = clock_mono_ms();
        struct doc body;
        if (next_of_page(w, &body)) {
            return deliver(w, body, ret, err);
        }
        if (now >= deadline && asked) {
            return err_set(err, BT_TIMEOUT, "no event within %u ms", timeout_ms);
        }
        if (w->read_at > now) {
            client_pause(w->client, w->read_at < deadline ? w->read_at : deadline);
            asked = asked || w->read_at > deadline;
            continue;
        }
        const enum bt_code code = read_new(w, now, deadline, err);
        asked = true;
        if (code != BT_OK) {
            return code;
        }
    }
}

/* A fleet may have grown: all that a new shard has is new. */
static enum bt_code find_new_parts(struct bt_watch *w, struct bt_error *err)
{
    uint32_t shards = 0;
    enum bt_code code = client_shards_count(w->client, &shards, err);

    for (uint32_t i = w->parts_n; i < shards && code == BT_OK; i++) {
        code = add_part(w, i, 0, "", err);
    }
    return code;
}

/* Looks at each part that has no event in hand, and is due. */
static enum bt_code fill_parts(struct bt_watch *w, bool *ret_any, struct bt_error *err)
{
    enum bt_code code = find_new_parts(w, err);

    *ret_any = false;
    for (uint32_t i = 0; i < w->parts_n && code == BT_OK; i++) {
        struct bt_watch *part = w->parts[i];
        if (!part->has && (part->page.left > 0 || part->read_at <= clock_mono_ms())) {
            code = next_of_one(part, 0, &part->head, err);
            part->has = code == BT_OK;
            if (code == BT_TIMEOUT) {
                part->read_at = clock_mono_ms() + LOOK_MS;
                code = BT_OK;
            }
        }
        *ret_any = *ret_any || part->has;
    }
    return code;
}

/* The oldest of what the parts have. */
static enum bt_code next_of_all(struct bt_watch *w, uint32_t timeout_ms, struct bt_event *ret,
                                struct bt_error *err)
{
    const msec deadline = clock_mono_ms() + timeout_ms;
    struct bt_watch *first = NULL;
    enum bt_code code;
    bool any;

    for (;;) {
        code = fill_parts(w, &any, err);
        if (code != BT_OK) {
            return code;
        }
        if (any) {
            break;
        }
        if (clock_mono_ms() >= deadline) {
            return err_set(err, BT_TIMEOUT, "no event within %u ms", timeout_ms);
        }
        client_pause(w->client, clock_mono_ms() + LOOK_MS / 4);
    }
    for (uint32_t i = 0; i < w->parts_n; i++) {
        struct bt_watch *part = w->parts[i];
        if (part->has && (first == NULL || part->at_ms < first->at_ms)) {
            first = part;
        }
    }
    first->has = false;
    first->begins = first->head.seq;
    (void)snprintf(first->begins_id, sizeof first->begins_id, "%s", first->head_id);
    *ret = first->head;
    return BT_OK;
}

enum bt_code bt_watch_next(struct bt_watch *w, uint32_t timeout_ms, struct bt_event *ret,
                           struct bt_error *err)
{
    return w->parts_n > 0 ? next_of_all(w, timeout_ms, ret, err)
                          : next_of_one(w, timeout_ms, ret, err);
}
