#include "supervisor/api/hooks/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/replace.h"

enum { PATH_BYTES = 4400 };

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

enum bt_code hook_names_read(const char *state_dir, struct hook_names *ret, struct bt_error *err)
{
    char path[PATH_BYTES];
    const struct dirent *entry;
    enum bt_code code = BT_OK;
    DIR *dir;

    ret->n = 0;
    (void)snprintf(path, sizeof path, "%s/webhooks", state_dir);
    dir = opendir(path);
    if (dir == NULL) {
        return errno == ENOENT ? BT_OK : err_errno(err, errno, "cannot read %s", path);
    }
    while (code == BT_OK && (entry = readdir(dir)) != NULL) {
        const size_t n = strlen(entry->d_name);
        if (n <= 5 || strcmp(entry->d_name + n - 5, ".json") != 0 ||
            !hook_name_ok((struct str){entry->d_name, n - 5})) {
            continue;
        }
        if (ret->n == HOOK_NAMES_MAX) {
            code = err_set(err, BT_LIMIT, "%s: has more than %d webhooks", path, HOOK_NAMES_MAX);
        } else {
            (void)snprintf(ret->at[ret->n++], sizeof ret->at[0], "%.*s", (int)(n - 5),
                           entry->d_name);
        }
    }
    (void)closedir(dir);
    qsort(ret->at, ret->n, sizeof ret->at[0], by_name);
    return code;
}

static enum bt_code read_text(const char *path, struct buf *out, struct bt_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    uint8_t *room = buf_reserve(out, HOOK_FILE_MAX + 1);
    struct stat st;
    ssize_t n = -1;

    if (fd < 0) {
        return errno == ENOENT ? err_set(err, BT_NOT_FOUND, "there is no %s", path)
                               : err_errno(err, errno, "cannot read %s", path);
    }
    if (room != NULL && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        n = read(fd, room, HOOK_FILE_MAX + 1);
    }
    (void)close(fd);
    if (n < 0) {
        return err_set(err, BT_INVALID, "%s: expected a file that can be read", path);
    }
    if (n > HOOK_FILE_MAX) {
        return err_set(err, BT_LIMIT, "%s: has more than %d bytes", path, HOOK_FILE_MAX);
    }
    out->len += (size_t)n;
    return BT_OK;
}

enum bt_code hook_file_read(const char *state_dir, const char *path, struct buf *out,
                            struct bt_error *err)
{
    char full[PATH_BYTES];
    struct buf text;
    const size_t from = out->len;
    enum bt_code code;

    (void)snprintf(full, sizeof full, "%s/%s", state_dir, path);
    buf_init(&text, HOOK_FILE_MAX + 1);
    code = read_text(full, &text, err);
    if (code == BT_OK &&
        (json_to_doc(buf_str(&text), NULL, out, NULL) != BT_OK ||
         doc_head((struct doc){out->at + from, out->len - from}).kind != DOC_MAP)) {
        code = err_set(err, BT_INVALID, "%s: expected an object of JSON", full);
    }
    buf_done(&text);
    return code;
}

enum bt_code hook_file_order(const char *state_dir, const char *hook, struct doc spec,
                             const char *name, struct doc value, struct bt_error *err)
{
    const bool is_new = doc_get(spec, str_from(name)).ptr == NULL;
    struct doc_cursor at = doc_cursor(spec);
    struct doc_head head = {.kind = DOC_NIL};
    char path[PATH_BYTES];
    struct buf next, text;
    enum bt_code code;

    (void)snprintf(path, sizeof path, "%s/webhooks/%s.json", state_dir, hook);
    buf_init(&next, json_doc_capacity(HOOK_FILE_MAX));
    buf_init(&text, HOOK_FILE_MAX);
    (void)doc_next(&at, &head);
    doc_put_map(&next, head.n + is_new);
    for (uint32_t i = 0; i < head.n; i++) {
        const struct doc key = doc_skip(&at);
        const struct doc old = doc_skip(&at);
        doc_put_doc(&next, key);
        doc_put_doc(&next, str_is(doc_string(key), name) ? value : old);
    }
    if (is_new) {
        doc_put_cstr(&next, name);
        doc_put_doc(&next, value);
    }
    code = buf_check(&next, err);
    code = code == BT_OK ? doc_to_json(doc_from_buf(&next), true, &text, err) : code;
    code = code == BT_OK ? buf_check(&text, err) : code;
    code = code == BT_OK ? file_replace(path, text.at, text.len, err) : code;
    buf_done(&text);
    buf_done(&next);
    return code;
}
