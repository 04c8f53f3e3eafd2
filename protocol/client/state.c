#include "protocol/client/state.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/client/state_file_internal.h"
#include "protocol/wire/doc.h"

enum {
    TOKEN_BYTES = STATE_TOKEN_LEN / 2,
    PATH_BYTES = 4000,
    FILE_BYTES = 4096,
    UNMAPPED_UID = 65534
};

static const char *const TOKEN_FILE = "token";
static const char *const PROCESSES_FILE = "processes.key";
static const char *const ENDPOINTS_FILE = "endpoints.json";
/* What endpoints.json becomes on a full disk. */
static const char *const SPARE_FILE = "endpoints.spare";

static const char *env_value(const char *name)
{
    const char *value = getenv(name);
    return value == NULL || value[0] == '\0' ? NULL : value;
}

/* An absolute path stays right after a chdir and in children with another working directory. */
static void add_absolute(struct buf *out, const char *path)
{
    if (path[0] != '/') {
        char cwd[PATH_BYTES];
        buf_add_cstr(out, getcwd(cwd, sizeof cwd) == NULL ? "." : cwd);
        buf_add_byte(out, '/');
    }
    buf_add_cstr(out, path);
    while (out->len > 1 && out->at[out->len - 1] == '/') {
        buf_truncate(out, out->len - 1);
    }
}

/* `baton init` makes it. A checkout or another user cannot: it must be this user's, and no one
 * else's. */
static bool project_is_here(void)
{
    struct stat st;

    return lstat(STATE_PROJECT_DIR, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & 077) == 0;
}

enum bt_code state_dir_find(const char *flag, struct buf *ret_path, struct bt_error *err)
{
    const char *xdg = env_value("XDG_STATE_HOME");

    buf_clear(ret_path);
    if (flag != NULL && flag[0] != '\0') {
        add_absolute(ret_path, flag);
    } else if (env_value("BATON_STATE") != NULL) {
        add_absolute(ret_path, env_value("BATON_STATE"));
    } else if (project_is_here()) {
        add_absolute(ret_path, STATE_PROJECT_DIR);
    } else if (xdg != NULL &&
               xdg[0] == '/') { /* by the XDG specification relative paths are ignored */
        add_absolute(ret_path, xdg);
        buf_add_cstr(ret_path, "/baton");
    } else if (env_value("HOME") != NULL) {
        add_absolute(ret_path, env_value("HOME"));
        buf_add_cstr(ret_path, "/.local/state/baton");
    } else {
        return err_set(err, BT_NOT_FOUND,
                       "no state directory: give --state DIR, or set BATON_STATE or HOME");
    }
    if (buf_check(ret_path, NULL) == BT_OK && ret_path->len > PATH_BYTES) {
        return err_set(err, BT_LIMIT, "the path of the state directory is longer than %d bytes",
                       PATH_BYTES);
    }
    return buf_check(ret_path, err);
}

/* Where user ids are mapped (a container), the owner of what is outside looks like this user. */
static bool is_unmapped(uid_t uid)
{
    char line[64] = "";
    const char *last;
    FILE *f = uid == UNMAPPED_UID ? fopen("/proc/self/uid_map", "re") : NULL;

    if (f == NULL) {
        return false;
    }
    (void)!fgets(line, sizeof line, f);
    (void)fclose(f);
    line[strcspn(line, "\n")] = 0;
    last = strrchr(line, ' '); /* "0 1000 1": from, to, how many */
    return last != NULL && strtoul(last, NULL, 10) < UINT32_MAX;
}

/* Who may rename what is in a directory above the state directory can put another one in its place
 * at any moment. */
static enum bt_code check_above(const char *dir, struct bt_error *err)
{
    char path[PATH_BYTES + 1];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s", dir);
    for (char *slash = strrchr(path, '/'); slash != NULL; slash = strrchr(path, '/')) {
        slash[slash == path ? 1 : 0] = 0;
        if (stat(path, &st) != 0) {
            return err_errno(err, errno, "%s", path);
        }
        if (st.st_uid != geteuid() && st.st_uid != 0 && !is_unmapped(st.st_uid)) {
            return err_set(
                err, BT_UNAUTHORIZED,
                "%s: belongs to user %u, who could put another directory in the place of "
                "%s; choose a state directory whose parents are yours or root's",
                path, (unsigned)st.st_uid, dir);
        }
        if ((st.st_mode & (S_IWOTH | S_ISVTX)) == S_IWOTH) {
            return err_set(err, BT_UNAUTHORIZED,
                           "%s: everybody may write to it, and put another directory in the place "
                           "of %s; run chmod o-w %s",
                           path, dir, path);
        }
        if (slash == path) {
            break;
        }
    }
    return BT_OK;
}

/* As it is written, and as it is without links. */
static enum bt_code check_parents(const char *dir, struct bt_error *err)
{
    char *real = realpath(dir, NULL);
    enum bt_code code = real == NULL ? err_errno(err, errno, "%s", dir) : check_above(dir, err);

    code = code == BT_OK ? check_above(real, err) : code;
    free(real);
    return code;
}

static enum bt_code make_parents(const char *dir, struct bt_error *err)
{
    char path[PATH_BYTES + 1];
    size_t len = strlen(dir);

    if (len > PATH_BYTES) {
        return err_set(err, BT_LIMIT, "%.60s...: a path is at most %d bytes", dir, PATH_BYTES);
    }
    for (size_t i = 1; i <= len; i++) {
        if (i < len && dir[i] != '/') {
            continue;
        }
        memcpy(path, dir, i);
        path[i] = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST && errno != EISDIR) {
            return err_errno(err, errno, "%s: cannot be created", path);
        }
    }
    return BT_OK;
}

enum bt_code state_dir_make(const char *dir, struct bt_error *err)
{
    struct stat st;
    enum bt_code code = make_parents(dir, err);

    if (code != BT_OK) {
        return code;
    }
    if (stat(dir, &st) != 0) {
        return err_errno(err, errno, "%s", dir);
    }
    if (!S_ISDIR(st.st_mode)) {
        return err_set(err, BT_INVALID, "%s: is not a directory", dir);
    }
    if (st.st_uid != geteuid()) {
        return err_set(err, BT_UNAUTHORIZED, "%s: belongs to user %u, not to you (%u)", dir,
                       (unsigned)st.st_uid, (unsigned)geteuid());
    }
    if ((st.st_mode & 022) != 0) {
        return err_set(err, BT_UNAUTHORIZED, "%s: others may write to it; run chmod 700 %s", dir,
                       dir);
    }
    return check_parents(dir, err);
}

static bool is_hex(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if ((s.ptr[i] < '0' || s.ptr[i] > '9') && (s.ptr[i] < 'a' || s.ptr[i] > 'f')) {
            return false;
        }
    }
    return true;
}

enum bt_code state_token_read(const char *dir, char ret[STATE_TOKEN_LEN + 1], struct bt_error *err)
{
    uint32_t owner;

    return state_token_read_of(dir, ret, &owner, err);
}

static enum bt_code read_secret(const char *dir, const char *name, char ret[STATE_TOKEN_LEN + 1],
                                uint32_t *ret_owner, struct bt_error *err)
{
    struct buf text;
    struct str token;
    enum bt_code code;

    buf_init(&text, FILE_BYTES);
    code = state_file_read_of(dir, name, FILE_PRIVATE, &text, ret_owner, err);
    token = buf_str(&text);
    if (code == BT_OK && token.len == STATE_TOKEN_LEN + 1 && token.ptr[STATE_TOKEN_LEN] == '\n') {
        token.len--;
    }
    if (code == BT_OK && (token.len != STATE_TOKEN_LEN || !is_hex(token))) {
        code = err_set(
            err, BT_INVALID,
            "%s/%s: is damaged, it should hold %d hexadecimal digits; remove it and restart batond",
            dir, name, STATE_TOKEN_LEN);
    }
    if (code == BT_OK) {
        memcpy(ret, token.ptr, STATE_TOKEN_LEN);
        ret[STATE_TOKEN_LEN] = '\0';
    }
    buf_done(&text);
    return code;
}

enum bt_code state_token_read_of(const char *dir, char ret[STATE_TOKEN_LEN + 1],
                                 uint32_t *ret_owner, struct bt_error *err)
{
    return read_secret(dir, TOKEN_FILE, ret, ret_owner, err);
}

static enum bt_code make_secret(const char *dir, const char *name, char ret[STATE_TOKEN_LEN + 1],
                                struct bt_error *err)
{
    uint8_t secret[TOKEN_BYTES];
    char text[STATE_TOKEN_LEN + 2];
    uint32_t owner;
    enum bt_code code = read_secret(dir, name, ret, &owner, err);

    if (code != BT_NOT_FOUND) {
        return code;
    }
    if (getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret) {
        return err_errno(err, errno, "no random bytes for %s/%s", dir, name);
    }
    for (size_t i = 0; i < sizeof secret; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", secret[i]);
    }
    text[STATE_TOKEN_LEN] = '\n';
    code = state_file_write(dir, name, (struct str){text, STATE_TOKEN_LEN + 1}, FILE_CREATE, err);
    if (code == BT_CONFLICT) { /* another process was faster, so its secret counts */
        code = BT_OK;
    }
    return code == BT_OK ? read_secret(dir, name, ret, &owner, err) : code;
}

enum bt_code state_token_make(const char *dir, char ret[STATE_TOKEN_LEN + 1], struct bt_error *err)
{
    return make_secret(dir, TOKEN_FILE, ret, err);
}

enum bt_code state_processes_make(const char *dir, char ret[STATE_TOKEN_LEN + 1],
                                  struct bt_error *err)
{
    return make_secret(dir, PROCESSES_FILE, ret, err);
}

static void put_field(struct buf *out, const char *name, const char *value)
{
    doc_put_cstr(out, name);
    doc_put_cstr(out, value);
}

enum bt_code state_endpoints_write(const char *dir, const struct state_endpoints *e,
                                   struct bt_error *err)
{
    char instance[UUID_TEXT_LEN + 1];
    struct bt_error why;
    struct buf packed;
    struct buf json;
    enum bt_code code;

    buf_init(&packed, FILE_BYTES);
    buf_init(&json, FILE_BYTES);
    uuid_format(e->instance, instance);
    doc_put_map(&packed, 6);
    put_field(&packed, "control", e->control);
    put_field(&packed, "events", e->events);
    put_field(&packed, "version", e->version);
    put_field(&packed, "instance", instance);
    doc_put_cstr(&packed, "pid");
    doc_put_u64(&packed, e->pid);
    doc_put_cstr(&packed, "pidNamespace");
    doc_put_u64(&packed, e->pid_namespace);
    code = buf_check(&packed, err);
    if (code == BT_OK) {
        code = doc_to_json(doc_from_buf(&packed), true, &json, err);
    }
    if (code == BT_OK) {
        buf_add_byte(&json, '\n');
        code = buf_check(&json, err);
    }
    if (code == BT_OK) {
        code = state_file_write(dir, ENDPOINTS_FILE, buf_str(&json), FILE_REPLACE, &why);
        if (code != BT_OK &&
            state_file_use_spare(dir, SPARE_FILE, ENDPOINTS_FILE, buf_str(&json), NULL) == BT_OK) {
            code = BT_OK;
        }
        if (code != BT_OK && err != NULL) {
            *err = why;
        }
        state_file_spare(dir, SPARE_FILE);
    }
    buf_done(&packed);
    buf_done(&json);
    return code;
}

static bool read_text(struct doc map, const char *name, char *ret, size_t max)
{
    struct str text = doc_string(doc_get(map, str_from(name)));

    if (text.ptr == NULL || text.len == 0 || text.len > max ||
        memchr(text.ptr, 0, text.len) != NULL) {
        return false;
    }
    memcpy(ret, text.ptr, text.len);
    ret[text.len] = '\0';
    return true;
}

static bool read_endpoints(struct doc map, struct state_endpoints *ret)
{
    struct doc pid = doc_get(map, STR_LIT("pid"));
    struct doc space = doc_get(map, STR_LIT("pidNamespace"));

    if (!read_text(map, "control", ret->control, STATE_URL_MAX) ||
        !(doc_string(doc_get(map, STR_LIT("events"))).len == 0 ||
          read_text(map, "events", ret->events, STATE_URL_MAX)) ||
        !read_text(map, "version", ret->version, STATE_VERSION_MAX) ||
        !uuid_parse(doc_string(doc_get(map, STR_LIT("instance"))), &ret->instance) ||
        pid.ptr == NULL || doc_head(pid).kind != DOC_UINT) {
        return false;
    }
    ret->pid = doc_head(pid).u;
    ret->pid_namespace =
        space.ptr != NULL && doc_head(space).kind == DOC_UINT ? doc_head(space).u : 0;
    return true;
}

enum bt_code state_endpoints_read(const char *dir, struct state_endpoints *ret,
                                  struct bt_error *err)
{
    struct state_endpoints found = {.pid = 0};
    struct buf json;
    struct buf packed;
    uint32_t owner;
    enum bt_code code;

    buf_init(&json, FILE_BYTES);
    buf_init(&packed, FILE_BYTES);
    code = state_file_read_of(dir, ENDPOINTS_FILE, FILE_ANY, &json, &owner, err);
    if (code == BT_OK) {
        code = json_to_doc(buf_str(&json), NULL, &packed, err);
        if (code == BT_OK && !read_endpoints(doc_from_buf(&packed), &found)) {
            code = err_set(err, BT_INVALID, "expected control, version, instance and pid");
        }
        if (code != BT_OK) {
            code = err_wrap(err, "%s/%s", dir, ENDPOINTS_FILE);
        }
    }
    if (code == BT_OK) {
        found.owner = owner;
        *ret = found;
    }
    buf_done(&json);
    buf_done(&packed);
    return code;
}

enum bt_code state_endpoints_remove(const char *dir, struct uuid instance, struct bt_error *err)
{
    char path[PATH_BYTES + 64];
    char spare[PATH_BYTES + 64];
    struct state_endpoints found;
    enum bt_code code = state_endpoints_read(dir, &found, err);

    if (code == BT_NOT_FOUND || (code == BT_OK && !uuid_eq(found.instance, instance))) {
        return BT_OK;
    }
    if (code != BT_OK) {
        return code;
    }
    (void)snprintf(path, sizeof path, "%s/%s", dir, ENDPOINTS_FILE);
    (void)snprintf(spare, sizeof spare, "%s/%s", dir, SPARE_FILE);
    if (access(spare, F_OK) != 0 && rename(path, spare) == 0) {
        return BT_OK;
    }
    return unlink(path) == 0 || errno == ENOENT
               ? BT_OK
               : err_errno(err, errno, "%s: cannot be removed", path);
}

/* ---- which process it names, and whose processes may be told the token ---- */

uint32_t state_trusted(uint32_t token_owner, uint32_t ret[STATE_TRUSTED_MAX])
{
    const char *at = getenv("BATON_ALLOW_UIDS");
    uint32_t n = 1;

    ret[0] = token_owner;
    while (at != NULL && *at != 0 && n < STATE_TRUSTED_MAX) {
        char *end = NULL;
        const unsigned long long uid = strtoull(at, &end, 10);
        if (*at >= '0' && *at <= '9' && uid < UINT32_MAX && (*end == 0 || *end == ',')) {
            ret[n++] = (uint32_t)uid;
        }
        at = strchr(at, ',');
        at += at != NULL ? 1 : 0;
    }
    return n;
}

uint64_t state_pid_namespace(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* Dead, but its parent has not taken notice: its sockets are closed. */
static bool is_zombie(uint64_t pid)
{
    char path[64];
    char line[512] = "";
    const char *name_end;
    FILE *f;

    (void)snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
    f = fopen(path, "re");
    if (f != NULL) {
        line[fread(line, 1, sizeof line - 1, f)] = 0;
        (void)fclose(f);
    }
    name_end = strrchr(line, ')');
    return name_end != NULL &&
           (strncmp(name_end, ") Z", 3) == 0 || strncmp(name_end, ") X", 3) == 0);
}

bool state_daemon_ended(const struct state_endpoints *at)
{
    if (at->pid == 0 || at->pid > INT_MAX ||
        (at->pid_namespace != 0 && at->pid_namespace != state_pid_namespace())) {
        return false;
    }
    return (kill((pid_t)at->pid, 0) != 0 && errno == ESRCH) || is_zombie(at->pid);
}
