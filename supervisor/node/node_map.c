/* What a node knows of the fleet, written down for its shards and clients; and what it gives away.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "protocol/wire/doc.h"
#include "supervisor/node/node_internal.h"

enum { MAP_BYTES = 128 * 1024 };

void node_shard_dir(const struct node *n, uint32_t shard, char ret[NODE_PATH_MAX])
{
    (void)snprintf(ret, NODE_PATH_MAX, "%.4000s/shards/%" PRIu32, n->opt->state_dir, shard);
}

static void put(struct buf *out, const char *key, const char *value)
{
    doc_put_cstr(out, key);
    doc_put_cstr(out, value);
}

static void put_number(struct buf *out, const char *key, uint64_t value)
{
    doc_put_cstr(out, key);
    doc_put_u64(out, value);
}

void node_find_places(struct node *n)
{
    char dir[NODE_PATH_MAX];
    char remote[STATE_URL_MAX + 1];
    struct state_endpoints at;
    struct buf items;
    struct buf list;
    uint32_t items_n = 0;

    buf_init(&items, MAP_BYTES);
    buf_init(&list, MAP_BYTES);
    for (uint32_t i = 0; i < n->all; i++) {
        node_shard_dir(n, i, dir);
        if (n->children[i].pid == 0 || state_endpoints_read(dir, &at, NULL) != BT_OK ||
            at.pid != (uint64_t)n->children[i].pid) {
            continue;
        }
        node_url(n->opt->remote, i, remote, sizeof remote);
        doc_put_map(&items, 4);
        put_number(&items, "shard", i);
        put(&items, "control", at.control);
        put(&items, "events", at.events);
        put(&items, "remote", remote);
        items_n++;
    }
    doc_put_array(&list, items_n);
    buf_add(&list, items.at, items.len);
    buf_clear(&n->places);
    if (buf_check(&list, NULL) != BT_OK ||
        doc_to_json(doc_from_buf(&list), false, &n->places, NULL) != BT_OK) {
        buf_clear(&n->places);
    }
    buf_done(&items);
    buf_done(&list);
}

static struct str text_at(struct doc map, const char *key)
{
    const struct str s = doc_string(doc_get(map, str_from(key)));

    return s.ptr != NULL ? s : (struct str){"", 0};
}

/* Where the node said that the shard listens. */
static struct doc place_of(struct doc places, uint32_t shard)
{
    for (uint32_t i = 0; places.ptr != NULL && i < SHARDS_MAX; i++) {
        const struct doc one = doc_at(places, i);
        const struct doc number =
            one.ptr != NULL ? doc_get(one, STR_LIT("shard")) : (struct doc){NULL, 0};
        if (one.ptr == NULL) {
            break;
        }
        if (number.ptr != NULL && doc_head(number).kind == DOC_UINT &&
            doc_head(number).u == shard) {
            return one;
        }
    }
    return (struct doc){NULL, 0};
}

static const struct journal_node *node_named(const struct node *n, const char *name)
{
    for (uint32_t i = 0; i < n->nodes_n; i++) {
        if (strcmp(n->nodes[i].node, name) == 0) {
            return &n->nodes[i];
        }
    }
    return NULL;
}

/* One shard of the map. True: it is led, and where is known. */
static bool put_shard(struct node *n, const struct journal_shard *s, struct buf *out,
                      struct str *ret_seed)
{
    static const struct str none = {"", 0};
    const bool here = strcmp(s->node, n->opt->name) == 0;
    const struct journal_node *leader = node_named(n, s->node);
    const char *text = here ? buf_cstr(&n->places) : leader != NULL ? leader->places : NULL;
    struct buf packed;
    struct doc place = {NULL, 0};
    struct str control;

    buf_init(&packed, json_doc_capacity(MAP_BYTES));
    if (s->led && text != NULL && text[0] != 0 &&
        json_to_doc(str_from(text), NULL, &packed, NULL) == BT_OK) {
        place = place_of(doc_from_buf(&packed), s->shard);
    }
    control = place.ptr != NULL ? text_at(place, "control") : none;
    doc_put_map(out, 7);
    put_number(out, "shard", s->shard);
    put_number(out, "epoch", s->epoch);
    put(out, "node", s->node);
    doc_put_cstr(out, "control");
    doc_put_str(out, control);
    doc_put_cstr(out, "remote");
    doc_put_str(out, place.ptr != NULL ? text_at(place, "remote") : none);
    doc_put_cstr(out, "events");
    doc_put_str(out, place.ptr != NULL ? text_at(place, "events") : none);
    doc_put_cstr(out, "here");
    doc_put_bool(out, here);
    /* a client of this host reaches what has no other address */
    if (control.len > 0 && (here || text_at(place, "remote").len == 0) &&
        (ret_seed->len == 0 || here)) {
        (void)snprintf(n->seed, sizeof n->seed, "%.*s", STR_ARG(control));
        *ret_seed = here ? STR_LIT("here") : STR_LIT("there");
    }
    buf_done(&packed);
    return control.len > 0;
}

static void write_file(const struct node *n, struct str bytes)
{
    char path[NODE_PATH_MAX + 32];
    char fresh[NODE_PATH_MAX + 32];
    int fd;
    bool ok;

    (void)snprintf(path, sizeof path, "%s/fleet.json", n->opt->state_dir);
    (void)snprintf(fresh, sizeof fresh, "%s/fleet.json.new", n->opt->state_dir);
    fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    ok = fd >= 0 && write(fd, bytes.ptr, bytes.len) == (ssize_t)bytes.len;
    if (fd >= 0) {
        ok = close(fd) == 0 && ok;
    }
    if (!ok || rename(fresh, path) != 0) {
        log_warn("node.map", "%s cannot be written: requests for other shards are refused", path);
    }
}

static void write_endpoints(const struct node *n)
{
    struct state_endpoints e = {
        .instance = n->instance, .pid = (uint64_t)getpid(), .pid_namespace = state_pid_namespace()};
    struct bt_error err;

    (void)snprintf(e.control, sizeof e.control, "%s", n->seed);
    (void)snprintf(e.version, sizeof e.version, "%s", BATON_VERSION);
    if (n->seed[0] != 0 && state_endpoints_write(n->opt->state_dir, &e, &err) != BT_OK) {
        log_warn("node.endpoints", "%s", err.msg);
    }
}

bool node_write_map(struct node *n)
{
    const char *const before = n->seed[0] != 0 ? n->seed : "";
    char old_seed[STATE_URL_MAX + 1];
    struct str seed = {NULL, 0};
    struct buf map;
    struct buf json;
    uint64_t version = 0;
    bool all = n->shards_n == n->all;

    (void)snprintf(old_seed, sizeof old_seed, "%s", before);
    buf_init(&map, MAP_BYTES);
    buf_init(&json, MAP_BYTES);
    for (uint32_t i = 0; i < n->shards_n; i++) {
        version += n->shards[i].epoch;
    }
    doc_put_map(&map, 2);
    put_number(&map, "version", version);
    doc_put_cstr(&map, "shards");
    doc_put_array(&map, n->shards_n);
    for (uint32_t i = 0; i < n->shards_n; i++) {
        const bool ok = put_shard(n, &n->shards[i], &map, &seed);
        all = all && ok;
    }
    if (buf_check(&map, NULL) == BT_OK &&
        doc_to_json(doc_from_buf(&map), false, &json, NULL) == BT_OK &&
        (json.len != n->written.len || memcmp(json.at, n->written.at, json.len) != 0)) {
        write_file(n, buf_str(&json));
        buf_clear(&n->written);
        buf_add(&n->written, json.at, json.len);
    }
    if (seed.len > 0 && strcmp(old_seed, n->seed) != 0) {
        write_endpoints(n);
    }
    buf_done(&map);
    buf_done(&json);
    return all;
}
