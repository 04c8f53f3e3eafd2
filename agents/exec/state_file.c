#include "agents/exec/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents/sdk/step.h"
#include "protocol/base/buf.h"
#include "protocol/base/log.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

bool state_file_make(char ret_path[PATH_MAX])
{
    const char *dir = getenv("TMPDIR");
    int fd = -1;

    dir = dir != NULL && dir[0] == '/' ? dir : "/tmp";
    if (snprintf(ret_path, PATH_MAX, "%s/baton-state-XXXXXX", dir) < PATH_MAX) {
        fd = mkostemp(ret_path, O_CLOEXEC);
    }
    if (fd < 0) {
        log_warn("exec.state", "no file for " STATE_FILE_ENV " in %.200s: errno %d", dir, errno);
        ret_path[0] = 0;
        return false;
    }
    (void)close(fd);
    return true;
}

void state_file_remove(const char *path)
{
    (void)unlink(path);
}

/* "" and a file that is gone are empty. The program may have put another file in its place: neither
 * a link is followed nor a pipe waited for. Reads one byte more than is allowed. */
static enum bt_code read_patch(const char *path, struct buf *bytes, struct bt_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    enum bt_code code = BT_OK;
    struct stat st;
    ssize_t n = 1;

    if (fd < 0) {
        return errno == ENOENT ? BT_OK : err_errno(err, errno, "reading it");
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        code = err_set(err, BT_INVALID, "expected a regular file");
    }
    while (code == BT_OK && n > 0) {
        char block[8192];
        n = read(fd, block, sizeof block);
        if (n < 0) {
            code = err_errno(err, errno, "reading it");
        } else {
            buf_add(bytes, block, (size_t)n);
            code = bytes->len > LIMIT_STATE_BYTES
                       ? err_set(err, BT_LIMIT, "a patch has at most %d bytes", LIMIT_STATE_BYTES)
                       : buf_check(bytes, err);
        }
    }
    (void)close(fd);
    return code;
}

static enum bt_code check_patch(struct str json, struct bt_error *err)
{
    struct buf doc;
    enum bt_code code;

    buf_init(&doc, json_doc_capacity(LIMIT_STATE_BYTES));
    code = json_to_doc(json, NULL, &doc, err);
    if (code == BT_OK && doc_head(doc_from_buf(&doc)).kind != DOC_MAP) {
        code = err_set(err, BT_INVALID, "expected a JSON object, as in {\"count\": 3}");
    }
    buf_done(&doc);
    return code;
}

bool state_file_reply(struct bt_step *step, const char *id, const char *path)
{
    struct buf bytes;
    struct bt_error err;
    enum bt_code code;

    buf_init(&bytes, LIMIT_STATE_BYTES + 8192);
    code = read_patch(path, &bytes, &err);
    if (code == BT_OK && bytes.len > 0) {
        code = check_patch(buf_str(&bytes), &err);
    }
    if (code == BT_NOMEM) {
        step_lose(step, "the change of the plan's state");
    } else if (code != BT_OK) {
        bt_step_fail(step, "VALIDATION_ERROR", false,
                     "%s: the file that " STATE_FILE_ENV " names: %s", id, err.msg);
    } else if (bytes.len > 0) {
        bt_step_reply_state_json(step, (const char *)bytes.at, bytes.len);
    }
    buf_done(&bytes);
    return code == BT_OK;
}
