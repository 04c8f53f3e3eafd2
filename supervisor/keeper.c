#include "supervisor/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "protocol/base/uuid.h"
#include "protocol/limits.h"

enum {
    LOOK_MS = 250,
    PATH_BYTES = 4096 + 32,
    LINE_BYTES = UUID_TEXT_LEN + LIMIT_ID_BYTES + 2,
    LIST_BYTES = 2 * LIMIT_INSTANCES * LINE_BYTES
};

void keeper_init(struct keeper *k, const char *dir)
{
    *k = (struct keeper){.dir = dir, .lock = -1, .look_at = dir == NULL ? MSEC_NEVER : 0};
}

bool keeper_has(const struct keeper *k)
{
    return k->dir == NULL || k->lock >= 0;
}

static void path_of(const struct keeper *k, const char *name, char ret[PATH_BYTES])
{
    (void)snprintf(ret, PATH_BYTES, "%.4000s/%s", k->dir, name);
}

bool keeper_take(struct keeper *k, msec now, bool *ret_new)
{
    char path[PATH_BYTES];
    int fd;

    *ret_new = false;
    if (keeper_has(k) || now < k->look_at) {
        return keeper_has(k);
    }
    k->look_at = msec_add(now, LOOK_MS);
    path_of(k, "agents.lock", path);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        log_err("agents.lock", "%s: %s", path, strerror(errno));
        return false;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        (void)close(fd);
        return false;
    }
    k->lock = fd;
    k->look_at = MSEC_NEVER;
    *ret_new = true;
    log_info("agents.kept", "this shard starts the agents of the node, for all of its shards");
    return true;
}

/* ---- the list ---- */

static bool put(int fd, struct str bytes)
{
    return fd >= 0 && write(fd, bytes.ptr, bytes.len) == (ssize_t)bytes.len;
}

void keeper_add(const struct keeper *k, struct str instance_id, struct str agent_id)
{
    char path[PATH_BYTES];
    char line[LINE_BYTES + 1];
    int fd;

    if (k->dir == NULL || instance_id.len == 0) { /* no process yet: only its size is looked at */
        return;
    }
    path_of(k, "agents.list", path);
    (void)snprintf(line, sizeof line, "%.*s %.*s\n", STR_ARG(instance_id), STR_ARG(agent_id));
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (!put(fd, str_from(line))) {
        log_err("agents.list", "%s: %s; the process can only prove itself to this shard", path,
                strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

void keeper_write(const struct keeper *k, struct str lines)
{
    char path[PATH_BYTES];
    char fresh[PATH_BYTES];
    int fd;
    bool ok;

    if (k->dir == NULL) {
        return;
    }
    path_of(k, "agents.list", path);
    path_of(k, "agents.list.new", fresh);
    fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    ok = put(fd, lines);
    if (fd >= 0) {
        ok = close(fd) == 0 && ok;
    }
    if (!ok || rename(fresh, path) != 0) {
        log_err("agents.list", "%s: %s", path, strerror(errno));
    }
}

static size_t lines_of(const char *text)
{
    size_t n = 0;

    while ((text = strchr(text, '\n')) != NULL) {
        text++;
        n++;
    }
    return n;
}

static uint32_t parse(const char *text, const struct process_keys *keys, struct credential *at,
                      size_t max)
{
    char instance[UUID_TEXT_LEN + 1];
    char agent[LIMIT_ID_BYTES + 1];
    uint32_t n = 0;
    int used;

    _Static_assert(UUID_TEXT_LEN == 36 && LIMIT_ID_BYTES == 64, "the widths below");
    while (n < max && sscanf(text, "%36s %64s%n", instance, agent, &used) == 2) {
        text += used;
        n += process_credential(keys, str_from(instance), str_from(agent), &at[n]);
    }
    return n;
}

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

bool keeper_read(struct keeper *k, const struct process_keys *keys, struct credential **ret,
                 uint32_t *ret_n)
{
    char path[PATH_BYTES];
    struct stat now;
    char *text;
    ssize_t got;
    int fd;

    path_of(k, "agents.list", path);
    if (stat(path, &now) != 0 || same(&now, &k->seen) || now.st_size > LIST_BYTES) {
        return false;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    text = malloc((size_t)now.st_size + 1);
    got = fd >= 0 && text != NULL ? read(fd, text, (size_t)now.st_size) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    *ret = NULL;
    if (got >= 0) {
        text[got] = 0;
        *ret = calloc(lines_of(text) + 1, sizeof **ret);
    }
    if (*ret != NULL) {
        k->seen = now;
        *ret_n = parse(text, keys, *ret, lines_of(text));
    }
    free(text);
    return *ret != NULL;
}
