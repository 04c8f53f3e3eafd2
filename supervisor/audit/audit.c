#include "supervisor/audit/audit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/buf.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/base/utf8.h"
#include "protocol/wire/doc.h"
#include "protocol/wire/json_tame.h"

enum { PATH_BYTES = 4200, LINE_BYTES = 16384, TEXT_MAX = 512, DAY_MS = 86400000 };

struct audit {
    char dir[PATH_BYTES];
    int fd; /* -1 = could not be opened; tried again with the next line */
    uint64_t bytes;
    bool dirty;
    msec filled_at; /* of the allowance */
    uint64_t allowed_milli, suppressed, lost;
};

static const char *const kinds[AUDIT_KIND_COUNT] = {[AUDIT_HANDSHAKE] = "handshake",
                                                    [AUDIT_REFUSED] = "refused",
                                                    [AUDIT_DECISION] = "decision",
                                                    [AUDIT_ADMIN] = "admin",
                                                    [AUDIT_CREDENTIAL] = "credential"};

const char *audit_kind_name(enum audit_kind kind)
{
    return (unsigned)kind < AUDIT_KIND_COUNT ? kinds[kind] : "unknown";
}

/* ---- files ---- */

static bool path_of(const struct audit *a, const char *name, char ret[PATH_BYTES])
{
    return snprintf(ret, PATH_BYTES, "%s/%s", a->dir, name) < PATH_BYTES;
}

/* A line that a crash cut off must not swallow the next one. */
static void end_line(struct audit *a)
{
    char last = '\n';

    if (a->bytes > 0 && pread(a->fd, &last, 1, (off_t)a->bytes - 1) == 1 && last != '\n' &&
        write(a->fd, "\n", 1) == 1) {
        a->bytes++;
    }
}

static enum bt_code open_file(struct audit *a, struct bt_error *err)
{
    char path[PATH_BYTES];
    struct stat st;

    a->fd = path_of(a, "audit.jsonl", path)
                ? open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)
                : -1;
    if (a->fd < 0 || fstat(a->fd, &st) != 0) {
        return err_set(err, BT_IO, "cannot open %.400s/audit.jsonl: %s", a->dir, strerror(errno));
    }
    a->bytes = (uint64_t)st.st_size;
    end_line(a);
    return BT_OK;
}

/* audit-MILLISECONDS.jsonl; 0 = it is another file. */
static msec rotated_at(const char *name)
{
    char *end = NULL;
    const msec wall = strncmp(name, "audit-", 6) == 0 ? strtoull(name + 6, &end, 10) : 0;

    return end != NULL && strcmp(end, ".jsonl") == 0 ? wall : 0;
}

/* Names have 13 digits, so their order is that of time. */
static int newest_first(const struct dirent **x, const struct dirent **y)
{
    return strcmp((*y)->d_name, (*x)->d_name);
}

static void remove_old(const struct audit *a, msec wall)
{
    struct dirent **names = NULL;
    char path[PATH_BYTES];
    const int n = scandir(a->dir, &names, NULL, newest_first);
    int kept = 0;

    for (int i = 0; i < n; i++) {
        const msec at = rotated_at(names[i]->d_name);
        if (at != 0 && (++kept > AUDIT_FILES || at + (msec)AUDIT_KEEP_DAYS * DAY_MS < wall) &&
            path_of(a, names[i]->d_name, path)) {
            (void)unlink(path);
        }
        free(names[i]);
    }
    free(names);
}

static void rotate(struct audit *a, msec wall)
{
    char from[PATH_BYTES];
    char to[PATH_BYTES];
    char name[64];
    struct bt_error err;

    (void)snprintf(name, sizeof name, "audit-%013llu.jsonl", (unsigned long long)wall);
    if (!path_of(a, "audit.jsonl", from) || !path_of(a, name, to) || rename(from, to) != 0) {
        return; /* it grows on; the next line tries again */
    }
    (void)fdatasync(a->fd);
    (void)close(a->fd);
    a->fd = -1;
    remove_old(a, wall);
    if (open_file(a, &err) != BT_OK) {
        log_err("audit.file", "%s", err.msg);
    }
}

enum bt_code audit_open(const char *state_dir, msec wall, struct audit **ret, struct bt_error *err)
{
    struct audit *a = calloc(1, sizeof *a);
    enum bt_code code = BT_OK;

    if (a == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the audit");
    }
    a->fd = -1;
    a->allowed_milli = (uint64_t)AUDIT_REFUSALS * 1000;
    if (snprintf(a->dir, sizeof a->dir, "%s/audit", state_dir) >= (int)sizeof a->dir) {
        code = err_set(err, BT_INVALID, "the path of the state directory is too long");
    } else if (mkdir(a->dir, 0700) != 0 && errno != EEXIST) {
        code = err_set(err, BT_IO, "cannot make %.400s: %s", a->dir, strerror(errno));
    }
    if (code == BT_OK) {
        remove_old(a, wall);
        code = open_file(a, err);
    }
    if (code != BT_OK) {
        audit_close(a);
        a = NULL;
    }
    *ret = a;
    return code;
}

void audit_close(struct audit *a)
{
    if (a != NULL && a->fd >= 0) {
        (void)fdatasync(a->fd);
        (void)close(a->fd);
    }
    free(a);
}

/* ---- lines ---- */

static void put(struct buf *out, const char *name, struct str value)
{
    char text[TEXT_MAX + 1];
    struct buf clean;

    value.len = value.len > TEXT_MAX ? TEXT_MAX : value.len;
    buf_init(&clean, (size_t)TEXT_MAX * 4);
    if (value.len > 0) {
        (void)buf_add_repaired(&clean, value);
    }
    (void)snprintf(text, sizeof text, "%.*s", (int)utf8_cut(buf_cstr(&clean), clean.len, TEXT_MAX),
                   buf_cstr(&clean));
    doc_put_cstr(out, name);
    doc_put_cstr(out, text);
    buf_done(&clean);
}

/* One write: a line is there whole, or cut off by a crash. */
static void write_line(struct audit *a, msec wall, const struct buf *doc)
{
    struct bt_error err;
    enum bt_code code;
    struct buf line;

    if (a->fd >= 0 && a->bytes > AUDIT_FILE_BYTES) {
        rotate(a, wall);
    }
    if (a->fd < 0) {
        (void)!open_file(a, &err);
    }
    buf_init(&line, 2 * LINE_BYTES); /* with escapes */
    code = buf_check(doc, &err);
    code = code == BT_OK ? doc_to_json(doc_from_buf(doc), false, &line, &err) : code;
    json_tame(&line, 0);
    buf_add_byte(&line, '\n');
    if (a->fd < 0 || code != BT_OK || buf_check(&line, &err) != BT_OK) {
        a->lost++;
    } else {
        if (write(a->fd, line.at, line.len) == (ssize_t)line.len) {
            a->bytes += line.len;
            a->dirty = true;
        } else {
            log_err("audit.file", "a line is lost: %s", strerror(errno));
            a->lost++;
        }
    }
    buf_done(&line);
}

static void put_head(struct buf *doc, uint32_t members, msec wall, const char *kind)
{
    char at[CLOCK_ISO_LEN + 1];

    clock_iso(wall, at);
    doc_put_map(doc, members);
    put(doc, "at", str_from(at));
    put(doc, "topic", STR_LIT("system/audit"));
    put(doc, "kind", str_from(kind));
}

static void fill(struct audit *a, msec now)
{
    const uint64_t more = (now - a->filled_at) * AUDIT_REFUSALS_PER_S;
    const uint64_t most = (uint64_t)AUDIT_REFUSALS * 1000;

    a->allowed_milli = a->allowed_milli + more > most ? most : a->allowed_milli + more;
    a->filled_at = now;
}

/* How many refusals have no line. Takes one of the allowance itself. */
static void write_suppressed(struct audit *a, msec wall)
{
    struct buf doc;

    if (a->suppressed + a->lost == 0 || a->allowed_milli < 1000) {
        return;
    }
    a->allowed_milli -= 1000;
    buf_init(&doc, LINE_BYTES);
    put_head(&doc, 5, wall, "suppressed");
    doc_put_cstr(&doc, "refusals");
    doc_put_u64(&doc, a->suppressed);
    doc_put_cstr(&doc, "lost");
    doc_put_u64(&doc, a->lost);
    a->suppressed = a->lost = 0;
    write_line(a, wall, &doc);
    buf_done(&doc);
}

void audit_add(struct audit *a, msec now, msec wall, const struct audit_entry *e)
{
    const bool bounded = e->kind == AUDIT_HANDSHAKE || e->kind == AUDIT_REFUSED;
    struct buf doc;

    if (a == NULL) {
        return;
    }
    fill(a, now);
    if (bounded && a->allowed_milli < 1000) {
        a->suppressed++;
        return;
    }
    a->allowed_milli -= bounded ? 1000 : 0;
    buf_init(&doc, LINE_BYTES);
    put_head(&doc, 10, wall, audit_kind_name(e->kind));
    put(&doc, "type", e->type);
    put(&doc, "by", e->by);
    put(&doc, "role", e->role);
    put(&doc, "peer", e->peer);
    put(&doc, "about", e->about);
    put(&doc, "outcome", str_from(e->outcome));
    put(&doc, "text", e->text);
    write_line(a, wall, &doc);
    buf_done(&doc);
}

void audit_sync(struct audit *a, msec now, msec wall)
{
    if (a == NULL) {
        return;
    }
    if (a->suppressed + a->lost > 0) {
        fill(a, now);
        write_suppressed(a, wall);
    }
    if (a->dirty && a->fd >= 0 && fdatasync(a->fd) != 0) {
        log_err("audit.file", "%s", strerror(errno));
    }
    a->dirty = false;
}
