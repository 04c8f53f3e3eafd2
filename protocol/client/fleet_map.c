#include "protocol/client/fleet_map.h"

#include <fcntl.h>
#include <unistd.h>

enum { MAP_BYTES = 128 * 1024 };

static bool read_file(int fd, struct buf *out)
{
    char part[4096];
    ssize_t n;

    while ((n = read(fd, part, sizeof part)) > 0) {
        buf_add(out, part, (size_t)n);
    }
    return n == 0 && buf_check(out, NULL) == BT_OK;
}

bool fleet_map_read(const char *path, struct buf *ret_map)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct buf json;
    bool ok;

    buf_init(ret_map, json_doc_capacity(MAP_BYTES));
    buf_init(&json, MAP_BYTES);
    ok = read_file(fd, &json) && json_to_doc(buf_str(&json), NULL, ret_map, NULL) == BT_OK;
    (void)close(fd); /* of no file neither does anything */
    buf_done(&json);
    if (!ok) {
        buf_clear(ret_map);
    }
    return ok;
}

static uint64_t number_at(struct doc map, const char *key)
{
    const struct doc d = map.ptr != NULL ? doc_get(map, str_from(key)) : map;
    const struct doc_head head = d.ptr != NULL ? doc_head(d) : (struct doc_head){.kind = DOC_NIL};

    return head.kind == DOC_UINT ? head.u : 0;
}

static struct str text_at(struct doc map, const char *key)
{
    const struct doc d = doc_get(map, str_from(key));
    const struct str s = d.ptr != NULL ? doc_string(d) : (struct str){NULL, 0};

    return s.ptr != NULL ? s : (struct str){"", 0};
}

uint64_t fleet_map_version(struct doc map)
{
    return number_at(map, "version");
}

static struct doc shard_in(struct doc map, uint32_t shard)
{
    const struct doc list =
        map.ptr != NULL ? doc_get(map, STR_LIT("shards")) : (struct doc){NULL, 0};

    for (uint32_t i = 0; i < SHARDS_MAX && list.ptr != NULL; i++) {
        const struct doc one = doc_at(list, i);
        if (one.ptr == NULL || number_at(one, "shard") == shard) {
            return one;
        }
    }
    return (struct doc){NULL, 0};
}

bool fleet_map_shard(struct doc map, uint32_t shard, struct fleet_place *ret)
{
    static const struct str none = {"", 0};
    const struct doc one = shard_in(map, shard);
    struct doc here;

    *ret = (struct fleet_place){.control = none, .events = none, .remote = none, .node = none};
    if (one.ptr == NULL) {
        return false;
    }
    here = doc_get(one, STR_LIT("here"));
    *ret = (struct fleet_place){.epoch = number_at(one, "epoch"),
                                .control = text_at(one, "control"),
                                .events = text_at(one, "events"),
                                .remote = text_at(one, "remote"),
                                .node = text_at(one, "node"),
                                .here = here.ptr != NULL && doc_head(here).kind == DOC_BOOL &&
                                        doc_head(here).b};
    return true;
}
