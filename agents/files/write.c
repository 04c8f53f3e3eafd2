/*
 * write: replaces a whole file atomically. Writes a new file in the same directory, calls fsync,
 * and renames it to the name. A reader sees the old file or the new one, and a repetition changes
 * nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "agents/files/files.h"
#include "agents/sdk/input.h"

enum { TEMP_NAME_MAX = 64, TEMP_TRIES = 16 };

static enum bt_code write_all(int fd, struct str text, struct bt_error *err)
{
    size_t done = 0;

    while (done < text.len) {
        ssize_t n = write(fd, text.ptr + done, text.len - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return err_errno(err, errno, "writing");
        }
        done += (size_t)n;
    }
    return fsync(fd) < 0 ? err_errno(err, errno, "fsync") : BT_OK;
}

/* A name that no other writer uses: the process id and a counter; O_EXCL decides. */
static int make_temp(int dir, char name[TEMP_NAME_MAX])
{
    static atomic_uint count;
    int fd = -1;

    for (int i = 0; i < TEMP_TRIES && fd < 0; i++) {
        (void)snprintf(name, TEMP_NAME_MAX, ".baton-%ld-%u.tmp", (long)getpid(),
                       atomic_fetch_add(&count, 1));
        fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) {
            break;
        }
    }
    return fd;
}

/* A file under that name may be replaced (its mode is kept). A link is replaced, never followed. */
static enum bt_code check_target(int dir, const char *name, bool *ret_there, mode_t *ret_mode,
                                 struct bt_error *err)
{
    struct stat st;

    *ret_there = false;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return errno == ENOENT ? BT_OK : err_errno(err, errno, "'%.200s'", name);
    }
    if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) {
        return err_set(err, BT_INVALID, "there is something by that name that is no file");
    }
    *ret_there = S_ISREG(st.st_mode);
    *ret_mode = st.st_mode & 0777; /* new contents get no setuid or setgid bit */
    return BT_OK;
}

static enum bt_code replace(int dir, const char *name, struct str text, struct bt_error *err)
{
    char temp[TEMP_NAME_MAX];
    bool there;
    mode_t mode = 0;
    int fd = -1;
    enum bt_code code = check_target(dir, name, &there, &mode, err);

    if (code != BT_OK) {
        return code;
    }
    fd = make_temp(dir, temp);
    if (fd < 0) {
        return errno == EACCES || errno == EPERM || errno == EROFS
                   ? err_set(err, BT_UNAUTHORIZED, "the system does not permit it: %s",
                             strerror(errno))
                   : err_errno(err, errno, "making a file");
    }
    code = write_all(fd, text, err);
    if (code == BT_OK && there && fchmod(fd, mode) < 0) {
        code = err_errno(err, errno, "keeping the file's mode");
    }
    (void)close(fd);
    if (code == BT_OK && renameat(dir, temp, dir, name) < 0) {
        code = err_errno(err, errno, "renaming");
    }
    if (code != BT_OK) {
        (void)unlinkat(dir, temp, 0);
        return code;
    }
    return fsync(dir) < 0 ? err_errno(err, errno, "fsync of the directory") : BT_OK;
}

/* The bytes to write: text, else data as JSON, else the result of the step before. */
static enum bt_code content(struct bt_step *step, struct buf *out, struct bt_error *err)
{
    struct str given = files_param(step, "text");
    struct doc data = step->req.parameters.ptr == NULL
                          ? (struct doc){NULL, 0}
                          : doc_get(step->req.parameters, STR_LIT("data"));
    const char *text;

    if (given.ptr != NULL) {
        buf_add_str(out, given);
        return buf_check(out, err);
    }
    if (data.ptr != NULL) {
        enum bt_code code = doc_to_json(data, true, out, err);
        buf_add_byte(out, '\n');
        return code == BT_OK ? buf_check(out, err) : code;
    }
    text = input_text(step, "text");
    if (text == NULL) {
        return err_set(err, BT_INVALID, "give text or data, or let a step before this one make it");
    }
    buf_add_cstr(out, text);
    return buf_check(out, err);
}

static void reply(struct bt_step *step, struct str path, const struct buf *written)
{
    struct buf data;
    struct buf text;

    buf_init(&data, LIMIT_CONTROL_BYTES);
    buf_init(&text, LIMIT_CONTROL_BYTES);
    doc_put_map(&data, 2);
    files_put_text(&data, "path", path);
    files_put_count(&data, "bytes", written->len);
    buf_printf(&text, "Wrote %zu bytes to ", written->len);
    buf_add_str(&text, path);
    files_reply(step, &data, &text);
    buf_done(&data);
    buf_done(&text);
}

void files_write(struct bt_step *step, void *self)
{
    const struct files *f = self;
    struct str path = files_param(step, "path");
    char name[CONFINE_NAME_MAX + 1];
    struct buf bytes;
    struct bt_error err;
    int dir = -1;
    enum bt_code code;

    buf_init(&bytes, LIMIT_STEP_BYTES * 2);
    code = content(step, &bytes, &err);
    if (code == BT_OK) {
        code = confine_open_parent(&f->write, path, bt_step_param_bool(step, "mkdirs", false), &dir,
                                   name, &err);
    }
    if (code == BT_OK) {
        code = replace(dir, name, buf_str(&bytes), &err);
        if (code != BT_OK) {
            (void)err_wrap(&err, "'%.*s'", path.len > 200 ? 200 : (int)path.len, path.ptr);
        }
        (void)close(dir);
    }
    if (code == BT_OK) {
        reply(step, path, &bytes);
    } else {
        bt_step_fail_error(step, &err);
    }
    buf_done(&bytes);
}
