#include "agents/web/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char mark[] = "[redacted]";

void secrets_done(struct secrets *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        explicit_bzero(s->at[i], strlen(s->at[i]));
        free(s->at[i]);
    }
    *s = (struct secrets){0};
}

/* ---- loading ---- */

/* Whether a header may contain it. */
static bool is_key(struct str key)
{
    if (key.len == 0 || key.len > SECRET_BYTES_MAX) {
        return false;
    }
    for (size_t i = 0; i < key.len; i++) {
        if (key.ptr[i] <= ' ' || key.ptr[i] >= 0x7f) {
            return false;
        }
    }
    return true;
}

static enum bt_code no_key(const char *where, struct bt_error *err)
{
    return err_set(err, BT_INVALID,
                   "%s: expected a key of 1 to %d printable characters without spaces", where,
                   SECRET_BYTES_MAX);
}

static enum bt_code keep(struct secrets *s, struct str key, const char *where, const char **ret,
                         struct bt_error *err)
{
    key = str_trimmed(key);
    if (!is_key(key)) {
        return no_key(where, err);
    }
    for (uint32_t i = 0; i < s->n; i++) {
        if (str_is(key, s->at[i])) {
            *ret = s->at[i];
            return BT_OK;
        }
    }
    if (s->n == SECRETS_MAX) {
        return err_set(err, BT_LIMIT, "%s: at most %d keys", where, SECRETS_MAX);
    }
    s->at[s->n] = strndup(key.ptr, key.len);
    if (s->at[s->n] == NULL) {
        return err_set(err, BT_NOMEM, "%s: out of memory", where);
    }
    *ret = s->at[s->n++];
    return BT_OK;
}

enum { WHERE_MAX = 160 };

static enum bt_code check_env(const char *name, const char *value, char where[WHERE_MAX],
                              struct bt_error *err)
{
    (void)snprintf(where, WHERE_MAX, "the environment variable %s", name);
    return value == NULL || value[0] == 0 ? err_set(err, BT_NOT_FOUND, "%s is not set", where)
                                          : BT_OK;
}

static const char *(*asked_first)(void *of, const char *name);
static void *asked_of;

void secrets_ask_first(const char *(*find)(void *of, const char *name), void *of)
{
    asked_first = find;
    asked_of = of;
}

static enum bt_code from_env(struct secrets *s, const char *name, const char **ret,
                             struct bt_error *err)
{
    char where[WHERE_MAX];
    const char *given = asked_first != NULL ? asked_first(asked_of, name) : NULL;
    const char *value = given != NULL ? given : getenv(name);
    enum bt_code code = check_env(name, value, where, err);

    return code == BT_OK ? keep(s, str_from(value), where, ret, err) : code;
}

static enum bt_code check_file(int fd, const char *path, mode_t forbidden, struct bt_error *err)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return err_errno(err, errno, "%s", path);
    }
    if (!S_ISREG(st.st_mode)) {
        return err_set(err, BT_INVALID, "%s: expected a regular file", path);
    }
    if ((st.st_mode & forbidden) != 0) {
        return err_set(err, BT_INVALID, "%s: others may read this key; chmod 600 it", path);
    }
    if (st.st_uid != geteuid() && st.st_uid != 0) {
        return err_set(err, BT_INVALID, "%s: the key belongs to another user", path);
    }
    return BT_OK;
}

/* s NULL: only checks. */
static enum bt_code from_file(struct secrets *s, const char *path, mode_t forbidden,
                              const char **ret, struct bt_error *err)
{
    char bytes[SECRET_BYTES_MAX + 8];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    enum bt_code code;
    ssize_t n = 0;

    if (fd < 0) {
        return err_errno(err, errno, "%s", path);
    }
    code = check_file(fd, path, forbidden, err);
    if (code == BT_OK && s != NULL) {
        n = read(fd, bytes, sizeof bytes);
        code = n < 0 ? err_errno(err, errno, "%s", path)
                     : keep(s, (struct str){bytes, (size_t)n}, path, ret, err);
        explicit_bzero(bytes, sizeof bytes);
    }
    (void)close(fd);
    return code;
}

/* systemd grants the service's user access by an ACL, whose mask appears as the group's bits. */
enum { KEY_FORBIDDEN = 077, CREDENTIAL_FORBIDDEN = 037, CREDENTIAL_PATH_MAX = 1024 };

static enum bt_code credential_path(const char *dir, const char *name,
                                    char path[CREDENTIAL_PATH_MAX], struct bt_error *err)
{
    int n;

    if (dir == NULL || dir[0] != '/') {
        return err_set(err, BT_NOT_FOUND,
                       "credential %s: CREDENTIALS_DIRECTORY is not set; pass it on to the agent",
                       name);
    }
    if (strchr(name, '/') != NULL || name[0] == '.') {
        return err_set(err, BT_INVALID, "credential %s: expected a name, not a path", name);
    }
    n = snprintf(path, CREDENTIAL_PATH_MAX, "%s/%s", dir, name);
    if (n < 0 || n >= CREDENTIAL_PATH_MAX) {
        return err_set(err, BT_LIMIT, "credential %.100s: its path is too long", name);
    }
    return BT_OK;
}

static enum bt_code from_credential(struct secrets *s, const char *dir, const char *name,
                                    const char **ret, struct bt_error *err)
{
    char path[CREDENTIAL_PATH_MAX];
    enum bt_code code = credential_path(dir, name, path, err);

    return code == BT_OK ? from_file(s, path, CREDENTIAL_FORBIDDEN, ret, err) : code;
}

enum bt_code secrets_load(struct secrets *s, enum secret_source source, const char *name,
                          const char **ret, struct bt_error *err)
{
    const struct rlimit none = {0, 0};

    if (source != SECRET_NONE) {
        (void)setrlimit(RLIMIT_CORE, &none);
    }
    switch (source) {
    case SECRET_ENV:
        return from_env(s, name, ret, err);
    case SECRET_FILE:
        return from_file(s, name, KEY_FORBIDDEN, ret, err);
    case SECRET_CREDENTIAL:
        return from_credential(s, getenv("CREDENTIALS_DIRECTORY"), name, ret, err);
    case SECRET_NONE:
        break;
    }
    *ret = NULL;
    return BT_OK;
}

/* ---- keys of a process that starts later ---- */

static const char *seen_value(const struct secret_view *seen, const char *name)
{
    const size_t len = strlen(name);

    for (size_t i = 0; seen->env != NULL && seen->env[i] != NULL; i++) {
        const char *entry = seen->env[i];
        if (strncmp(entry, name, len) == 0 && entry[len] == '=') {
            return entry + len + 1;
        }
        if (strcmp(entry, name) == 0 && getenv(name) != NULL) {
            return getenv(name);
        }
    }
    return NULL;
}

static enum bt_code probe_env(const struct secret_view *seen, const char *name,
                              struct bt_error *err)
{
    char where[WHERE_MAX];
    const char *value = seen_value(seen, name);
    enum bt_code code = check_env(name, value, where, err);

    return code != BT_OK || is_key(str_trimmed(str_from(value))) ? code : no_key(where, err);
}

static enum bt_code probe_file(const struct secret_view *seen, const char *name,
                               struct bt_error *err)
{
    char path[PATH_MAX];
    const bool absolute = name[0] == '/' || seen->cwd == NULL;
    const int n =
        snprintf(path, sizeof path, "%s%s%s", absolute ? "" : seen->cwd, absolute ? "" : "/", name);

    if (n < 0 || (size_t)n >= sizeof path) {
        return err_set(err, BT_LIMIT, "%.100s: the path is too long", name);
    }
    return from_file(NULL, path, KEY_FORBIDDEN, NULL, err);
}

enum bt_code secret_probe(const struct secret_view *seen, enum secret_source source,
                          const char *name, struct bt_error *err)
{
    switch (source) {
    case SECRET_ENV:
        return probe_env(seen, name, err);
    case SECRET_FILE:
        return probe_file(seen, name, err);
    case SECRET_CREDENTIAL:
        return from_credential(NULL, seen_value(seen, "CREDENTIALS_DIRECTORY"), name, NULL, err);
    case SECRET_NONE:
        break;
    }
    return BT_OK;
}

void secrets_forget_env(const char *name)
{
    char *value = getenv(name);

    if (value != NULL) {
        explicit_bzero(value, strlen(value)); /* this memory is what /proc/PID/environ shows */
        (void)unsetenv(name);
    }
}

/* ---- redacting ---- */

static bool in_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (unsigned char)c >= 0x80;
}

/* The number of bytes at `at` that are this key, escaped slashes included; 0 = none. Half of the
 * key is enough, because people and servers quote keys without their end; at the end of the text
 * SECRET_PLAIN_BYTES are enough, because texts are cut. before: the byte before the text; ret_cut:
 * what follows the text decides. */
static size_t match(struct str text, size_t at, char before, const char *key, bool *ret_cut)
{
    const size_t len = strlen(key);
    const bool is_short = len < SECRET_PLAIN_BYTES;
    const size_t half = (len + 1) / 2 > SECRET_PLAIN_BYTES ? (len + 1) / 2 : SECRET_PLAIN_BYTES;
    size_t i = at;
    size_t k = 0;
    size_t matched = at;

    *ret_cut = false;
    if (is_short && in_word(at > 0 ? text.ptr[at - 1] : before)) {
        return 0;
    }
    while (key[k] != 0) {
        if (i < text.len && text.ptr[i] == '\\' && key[k] != '\\') {
            i++;
        }
        if (i == text.len) {
            *ret_cut = true;
            return k >= SECRET_PLAIN_BYTES ? i - at : 0;
        }
        if (text.ptr[i] != key[k]) {
            return k >= half ? matched - at : 0;
        }
        matched = ++i;
        k++;
    }
    *ret_cut = is_short && i == text.len;
    return is_short && i < text.len && in_word(text.ptr[i]) ? 0 : i - at;
}

/* ret_cut: the text ends within a key. */
static size_t match_any(const struct secrets *s, struct str text, size_t at, char before,
                        bool *ret_cut)
{
    size_t best = 0;

    *ret_cut = false;
    for (uint32_t i = 0; i < s->n; i++) {
        bool cut;
        size_t n = match(text, at, before, s->at[i], &cut);
        best = n > best ? n : best;
        *ret_cut = *ret_cut || cut;
    }
    return best;
}

bool secrets_contained(const struct secrets *s, struct str text)
{
    size_t at = 0;
    bool cut;

    while (at < text.len && match_any(s, text, at, ' ', &cut) == 0) {
        at++;
    }
    return at < text.len;
}

size_t secrets_redact_stream(const struct secrets *s, struct str text, char before, bool last,
                             struct buf *out)
{
    size_t at = s->n == 0 ? text.len : 0;
    size_t kept = 0;

    while (at < text.len) {
        bool cut;
        size_t n = match_any(s, text, at, before, &cut);
        if (cut && !last) {
            break;
        }
        if (n > 0) {
            buf_add(out, text.ptr + kept, at - kept);
            buf_add_cstr(out, mark);
            kept = at + n;
        }
        at += n > 0 ? n : 1;
    }
    buf_add(out, text.ptr + kept, at - kept);
    return at;
}

void secrets_redact(const struct secrets *s, struct buf *text)
{
    struct buf out;

    if (text->bad != BT_OK || !secrets_contained(s, buf_str(text))) {
        return;
    }
    buf_init(&out, text->max + text->len * 2);
    (void)secrets_redact_stream(s, buf_str(text), ' ', true, &out);
    buf_clear(text);
    if (out.bad != BT_OK) {
        buf_fail(text, out.bad); /* no text is better than a key */
    } else {
        text->max = text->max > out.len ? text->max : out.len;
        buf_add(text, out.at, out.len);
    }
    buf_done(&out);
}

void secrets_redact_error(const struct secrets *s, struct bt_error *err)
{
    struct buf text;
    size_t n;

    if (err == NULL || !secrets_contained(s, str_from(err->msg))) {
        return;
    }
    buf_init(&text, sizeof err->msg * 4);
    buf_add_cstr(&text, err->msg);
    secrets_redact(s, &text);
    n = text.len < sizeof err->msg - 1 ? text.len : sizeof err->msg - 1;
    if (text.bad == BT_OK) {
        memcpy(err->msg, text.at, n);
        err->msg[n] = 0;
    } else {
        (void)memcpy(err->msg, mark, sizeof mark);
    }
    buf_done(&text);
}
