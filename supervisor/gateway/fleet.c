#include "supervisor/gateway/fleet.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "protocol/wire/doc.h"

enum { MAP_BYTES = 128 * 1024 };

static struct doc shard_at(struct doc map, uint32_t i)
{
    const struct doc list = doc_get(map, STR_LIT("shards"));

    return list.ptr != NULL ? doc_at(list, i) : (struct doc){NULL, 0};
}

static void take(struct fleet *f, struct doc map)
{
    uint32_t n = 0;

    for (; n < SHARDS_MAX && shard_at(map, n).ptr != NULL; n++) {
        const struct doc one = shard_at(map, n);
        const struct str control = doc_string(doc_get(one, STR_LIT("control")));
        const struct doc here = doc_get(one, STR_LIT("here"));
        const bool is_here =
            here.ptr != NULL && doc_head(here).kind == DOC_BOOL && doc_head(here).b;
        f->at[n].elsewhere = !is_here && doc_string(doc_get(one, STR_LIT("remote"))).len > 0;
        (void)snprintf(f->at[n].control, sizeof f->at[n].control, "%.*s",
                       f->at[n].elsewhere || control.ptr == NULL ? 0 : (int)control.len,
                       control.ptr == NULL ? "" : control.ptr);
    }
    f->shards = n > 1 ? n : 1;
}

void fleet_read(const char *state_dir, struct fleet *f)
{
    char path[4096 + 16];
    struct buf text;
    struct buf map;
    ssize_t n;
    int fd;

    f->shards = f->shards > 0 ? f->shards : 1;
    (void)snprintf(path, sizeof path, "%.4096s/fleet.json", state_dir);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return;
    }
    buf_init(&text, MAP_BYTES);
    buf_init(&map, json_doc_capacity(MAP_BYTES));
    for (char part[4096]; (n = read(fd, part, sizeof part)) > 0;) {
        buf_add(&text, part, (size_t)n);
    }
    (void)close(fd);
    if (n == 0 && buf_check(&text, NULL) == BT_OK &&
        json_to_doc(buf_str(&text), NULL, &map, NULL) == BT_OK) {
        take(f, doc_from_buf(&map));
    }
    buf_done(&text);
    buf_done(&map);
}

uint32_t fleet_any(const struct fleet *f)
{
    for (uint32_t i = 0; i < f->shards; i++) {
        if (f->at[i].control[0] != 0) {
            return i;
        }
    }
    return 0;
}
