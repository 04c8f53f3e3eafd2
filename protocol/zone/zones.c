#include "protocol/zone/zones.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "protocol/base/suggest.h"

enum { ZONES_MAX = 1024, PATH_TEXT = 512, LISTED_MAX = 4096, DEPTH_MAX = 3 };

static const char DEFAULT_DIR[] = "/usr/share/zoneinfo";

struct entry {
    char name[ZONE_NAME_MAX + 1];
    struct zone zone;
    ino_t inode;
    struct timespec changed;
};

struct zones {
    struct entry *at[ZONES_MAX];
    uint16_t n;
    char dir[PATH_TEXT / 2];
    struct zone_change room[ZONE_CHANGES_MAX]; /* of the file that is being read */
    char bytes[ZONE_BYTES_MAX + 1];
};

/* ---- one file ---- */

/* Names as tzdata has them: no path that leads elsewhere. */
static bool is_name(struct str name)
{
    if (name.len == 0 || name.len > ZONE_NAME_MAX || name.ptr[0] == '/') {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '/' || c == '_' || c == '-' || c == '+')) {
            return false;
        }
    }
    return true;
}

static enum bt_code read_bytes(struct zones *z, const char *path, size_t *ret_len, struct stat *st,
                               struct bt_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    enum bt_code code = BT_OK;
    size_t len = 0;
    ssize_t n = 1;

    if (fd < 0) {
        return err_errno(err, errno, "%s", path);
    }
    if (fstat(fd, st) != 0 || !S_ISREG(st->st_mode)) {
        code = err_set(err, BT_NOT_FOUND, "%s is no file", path);
    }
    while (code == BT_OK && n > 0 && len < sizeof z->bytes) {
        n = read(fd, z->bytes + len, sizeof z->bytes - len);
        len += n > 0 ? (size_t)n : 0;
    }
    if (n < 0) {
        code = err_errno(err, errno, "%s", path);
    }
    (void)close(fd);
    *ret_len = len;
    return code;
}

static enum bt_code load(struct zones *z, struct entry *e, struct bt_error *err)
{
    char path[PATH_TEXT];
    struct zone_change *kept;
    struct zone zone;
    struct stat st;
    size_t len = 0;
    enum bt_code code;

    (void)snprintf(path, sizeof path, "%s/%s", z->dir, e->name);
    code = read_bytes(z, path, &len, &st, err);
    if (code != BT_OK) {
        return code;
    }
    if (!zone_read((struct str){z->bytes, len}, z->room, ZONE_CHANGES_MAX, &zone)) {
        return err_set(err, BT_IO, "%s is no file of a time zone (TZif, version 2 or later)", path);
    }
    kept = malloc((zone.n_changes + 1) * sizeof *kept);
    if (kept == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the time zone %s", e->name);
    }
    memcpy(kept, z->room, zone.n_changes * sizeof *kept);
    free(e->zone.changes);
    zone.changes = kept;
    e->zone = zone;
    e->inode = st.st_ino;
    e->changed = st.st_mtim;
    return BT_OK;
}

/* ---- a name that is none ---- */

struct guess {
    struct suggest near;
    struct str word;
    char best[ZONE_NAME_MAX + 1];
    char ends[ZONE_NAME_MAX + 1]; /* Europe/Berlin for "berlin" */
    uint32_t listed;
};

static bool same_letters(struct str a, struct str b)
{
    size_t i = 0;

    while (a.len == b.len && i < a.len && (a.ptr[i] | 0x20) == (b.ptr[i] | 0x20)) {
        i++;
    }
    return a.len == b.len && i == a.len;
}

static void offer(struct guess *g, const char *name)
{
    const struct str whole = str_from(name);
    const char *slash = strrchr(name, '/');
    struct str best;

    if (slash != NULL && g->ends[0] == 0 && same_letters(str_from(slash + 1), g->word)) {
        (void)snprintf(g->ends, sizeof g->ends, "%s", name);
    }
    if (same_letters(whole, g->word)) {
        (void)snprintf(g->ends, sizeof g->ends, "%s", name);
    }
    suggest_offer(&g->near, whole);
    best = g->near.best;
    if (best.ptr == name) { /* the suggestion borrows; the name does not stay */
        (void)snprintf(g->best, sizeof g->best, "%s", name);
        g->near.best = str_from(g->best);
    }
}

static void list(struct guess *g, const char *dir, const char *below, int depth)
{
    char path[PATH_TEXT];
    char name[PATH_TEXT];
    const struct dirent *e;
    DIR *d;

    (void)snprintf(path, sizeof path, "%.200s/%.200s", dir, below);
    d = depth < DEPTH_MAX ? opendir(path) : NULL;
    while (d != NULL && g->listed < LISTED_MAX && (e = readdir(d)) != NULL) {
        if (!is_name(str_from(e->d_name)) || strcmp(e->d_name, "posix") == 0 ||
            strcmp(e->d_name, "right") == 0) {
            continue;
        }
        (void)snprintf(name, sizeof name, "%.200s%s%.200s", below, below[0] != 0 ? "/" : "",
                       e->d_name);
        if (e->d_type == DT_DIR) {
            list(g, dir, name, depth + 1);
        } else if (strlen(name) <= ZONE_NAME_MAX) {
            g->listed++;
            offer(g, name);
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
}

static enum bt_code no_such_zone(const struct zones *z, struct str name, struct bt_error *err)
{
    struct guess g = {.word = name, .near = suggest_start(name)};
    const int shown = name.len > ZONE_NAME_MAX ? ZONE_NAME_MAX : (int)name.len;
    const char *best;

    list(&g, z->dir, "", 0);
    best = g.ends[0] != 0 ? g.ends : g.best;
    if (g.listed == 0) {
        return err_set(err, BT_NOT_FOUND,
                       "'%.*s' cannot be looked up, because %s has no time zones: install the "
                       "package tzdata, or use UTC",
                       shown, name.ptr, z->dir);
    }
    if (best[0] != 0) {
        return err_set(err, BT_NOT_FOUND, "'%.*s' is no time zone: did you mean %s?", shown,
                       name.ptr, best);
    }
    return err_set(err, BT_NOT_FOUND,
                   "'%.*s' is no time zone: use a name of tzdata, such as UTC or Europe/Berlin",
                   shown, name.ptr);
}

/* ---- all of them ---- */

enum bt_code zones_new(struct zones **ret, struct bt_error *err)
{
    const char *dir = getenv("TZDIR");
    struct zones *z = calloc(1, sizeof *z);

    *ret = z;
    if (z == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for time zones");
    }
    (void)snprintf(z->dir, sizeof z->dir, "%s",
                   dir != NULL && dir[0] == '/' && strlen(dir) < sizeof z->dir ? dir : DEFAULT_DIR);
    return BT_OK;
}

void zones_free(struct zones *z)
{
    for (uint16_t i = 0; z != NULL && i < z->n; i++) {
        free(z->at[i]->zone.changes);
        free(z->at[i]);
    }
    free(z);
}

enum bt_code zones_find(struct zones *z, struct str name, uint16_t *ret_id, struct bt_error *err)
{
    struct entry *e;
    enum bt_code code;

    *ret_id = 0;
    if (name.len == 0 || str_is(name, "UTC")) {
        return BT_OK;
    }
    for (uint16_t i = 0; i < z->n; i++) {
        if (str_is(name, z->at[i]->name)) {
            *ret_id = (uint16_t)(i + 1);
            return BT_OK;
        }
    }
    if (!is_name(name)) {
        return no_such_zone(z, name, err);
    }
    e = z->n < ZONES_MAX ? calloc(1, sizeof *e) : NULL;
    if (e == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for time zones");
    }
    (void)snprintf(e->name, sizeof e->name, "%.*s", STR_ARG(name));
    code = load(z, e, err);
    if (code != BT_OK) {
        free(e);
        return code == BT_NOT_FOUND ? no_such_zone(z, name, err) : code;
    }
    z->at[z->n++] = e;
    *ret_id = z->n;
    return BT_OK;
}

const struct zone *zones_at(const struct zones *z, uint16_t id)
{
    return id == 0 ? &ZONE_UTC : &z->at[id - 1]->zone;
}

const char *zones_name(const struct zones *z, uint16_t id)
{
    return id == 0 ? "UTC" : z->at[id - 1]->name;
}

bool zones_refresh(struct zones *z)
{
    bool changed = false;

    for (uint16_t i = 0; i < z->n; i++) {
        struct entry *e = z->at[i];
        char path[PATH_TEXT];
        struct bt_error err;
        struct stat st;
        (void)snprintf(path, sizeof path, "%s/%s", z->dir, e->name);
        if (stat(path, &st) != 0 ||
            (st.st_ino == e->inode && st.st_mtim.tv_sec == e->changed.tv_sec &&
             st.st_mtim.tv_nsec == e->changed.tv_nsec)) {
            continue; /* one that is gone stays as it was read */
        }
        if (load(z, e, &err) == BT_OK) {
            log_info("zone.file", "zone=%s was read again, from a new tzdata", e->name);
            changed = true;
        } else {
            log_warn("zone.file", "%s; the time zone stays as it was", err.msg);
        }
    }
    return changed;
}
