#include "protocol/client/credential.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/client/state_file_internal.h"
#include "protocol/wire/doc.h"

enum { FILE_BYTES = 8192, PATH_BYTES = 4096, FILES_MAX = 4096 };

/* ---- what a credential is ---- */

bool credential_id_ok(struct str id, struct bt_error *err)
{
    bool ok = id.len > 0 && id.len <= LIMIT_ID_BYTES && !str_is(id, identity_local()->id);

    for (size_t i = 0; i < id.len && ok; i++) {
        const char c = id.ptr[i];
        const bool word =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        ok = word || (i > 0 && (c == '.' || c == '_' || c == '-'));
    }
    if (!ok) {
        (void)err_set(err, BT_INVALID,
                      "id '%.*s': expected 1 to %d of A-Z, a-z, 0-9, '.', '_' and '-', the first "
                      "a letter or digit, and not \"local\"",
                      (int)(id.len < LIMIT_ID_BYTES ? id.len : LIMIT_ID_BYTES), id.ptr,
                      LIMIT_ID_BYTES);
    }
    return ok;
}

bool credential_is_valid(const struct credential *c, msec wall)
{
    return c->revoked == 0 && (c->expires == 0 || wall < c->expires);
}

enum bt_code credential_new_key(struct credential *c, struct bt_error *err)
{
    return auth_random(c->key, sizeof c->key) ? BT_OK
                                              : err_errno(err, errno, "no random bytes for a key");
}

enum bt_code credential_rotate(struct credential *c, msec until, struct bt_error *err)
{
    memcpy(c->previous, c->key, sizeof c->previous);
    c->previous_until = until;
    return credential_new_key(c, err);
}

/* ---- the file ---- */

static bool read_key(struct doc value, uint8_t *ret)
{
    return auth_unhex(doc_string(value), ret, AUTH_KEY_BYTES);
}

static bool read_time(struct doc value, msec *ret)
{
    const struct doc_head head = doc_head(value);

    *ret = head.u;
    return head.kind == DOC_UINT && head.u <= INT64_MAX;
}

static bool read_globs(struct doc value, char ret[][LIMIT_ID_BYTES + 1], uint32_t max,
                       uint32_t *ret_n)
{
    const struct doc_head head = doc_head(value);

    if (head.kind != DOC_ARRAY || head.n > max) {
        return false;
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str glob = doc_string(doc_at(value, i));
        if (glob.len == 0 || glob.len > LIMIT_ID_BYTES) {
            return false;
        }
        memcpy(ret[i], glob.ptr, glob.len);
    }
    *ret_n = head.n;
    return true;
}

static bool read_quotas(struct doc value, uint64_t ret[QUOTA_COUNT])
{
    struct doc_cursor at = doc_cursor(value);
    struct doc_head head;

    if (!doc_next(&at, &head) || head.kind != DOC_MAP) {
        return false;
    }
    for (uint32_t i = head.n; i > 0; i--) {
        const struct str name = doc_string(doc_skip(&at));
        const struct doc_head number = doc_head(doc_skip(&at));
        enum quota quota;
        if (!quota_parse(name, &quota) || number.kind != DOC_UINT || number.u > INT64_MAX) {
            return false;
        }
        ret[quota] = number.u;
    }
    return true;
}

enum member {
    M_ID,
    M_ROLE,
    M_KEY,
    M_AGENTS,
    M_CREATED,
    M_EXPIRES,
    M_REVOKED,
    M_PREV,
    M_UNTIL,
    M_SEES,
    M_QUOTAS,
    M_N
};
static const char *const members[M_N] = {[M_ID] = "id",
                                         [M_ROLE] = "role",
                                         [M_KEY] = "key",
                                         [M_AGENTS] = "agents",
                                         [M_CREATED] = "createdMs",
                                         [M_EXPIRES] = "expiresMs",
                                         [M_REVOKED] = "revokedMs",
                                         [M_PREV] = "previousKey",
                                         [M_UNTIL] = "previousUntilMs",
                                         [M_SEES] = "sees",
                                         [M_QUOTAS] = "quotas"};

static bool read_member(struct credential *c, enum member which, struct doc value)
{
    const struct str text = doc_string(value);

    switch (which) {
    case M_ID:
        if (!credential_id_ok(text, NULL)) {
            return false;
        }
        memcpy(c->who.id, text.ptr, text.len);
        return true;
    case M_ROLE:
        return role_parse(text, &c->who.role);
    case M_KEY:
        return read_key(value, c->key);
    case M_AGENTS:
        return read_globs(value, c->who.agents, IDENTITY_AGENTS_MAX, &c->who.agents_n);
    case M_CREATED:
        return read_time(value, &c->created);
    case M_EXPIRES:
        return read_time(value, &c->expires);
    case M_REVOKED:
        return read_time(value, &c->revoked);
    case M_PREV:
        return read_key(value, c->previous);
    case M_UNTIL:
        return read_time(value, &c->previous_until);
    case M_SEES:
        return read_globs(value, c->who.sees, IDENTITY_SEES_MAX, &c->who.sees_n);
    case M_QUOTAS:
        return read_quotas(value, c->who.quotas);
    case M_N:
    default:
        return false;
    }
}

static enum bt_code read_members(struct doc map, struct credential *c, struct bt_error *err)
{
    struct doc_cursor at = doc_cursor(map);
    struct doc_head head;
    unsigned seen = 0;

    if (!doc_next(&at, &head) || head.kind != DOC_MAP) {
        return err_set(err, BT_INVALID, "expected a JSON object");
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str name = doc_string(doc_skip(&at));
        const struct doc value = doc_skip(&at);
        int m = 0;
        while (m < M_N && !str_is(name, members[m])) {
            m++;
        }
        if (m == M_N || !read_member(c, (enum member)m, value)) {
            return err_set(err, BT_INVALID, m == M_N ? "%.*s: no such member" : "%.*s: is damaged",
                           (int)(name.len < 64 ? name.len : 64), name.ptr);
        }
        seen |= 1u << m;
    }
    for (int m = M_ID; m <= M_CREATED; m++) {
        if (m != M_AGENTS && (seen & 1u << m) == 0) {
            return err_set(err, BT_INVALID, "%s is missing", members[m]);
        }
    }
    if ((c->previous_until != 0) != ((seen & 1u << M_PREV) != 0)) {
        return err_set(err, BT_INVALID, "previousKey and previousUntilMs belong together");
    }
    return BT_OK;
}

enum bt_code credential_parse(struct str json, struct credential *ret, struct bt_error *err)
{
    struct credential found = {.created = 0};
    struct buf packed;
    enum bt_code code;

    for (int i = 0; i < QUOTA_COUNT; i++) {
        found.who.quotas[i] = QUOTA_BY_ROLE;
    }
    buf_init(&packed, json_doc_capacity(FILE_BYTES));
    code = json_to_doc(json, NULL, &packed, err);
    if (code == BT_OK) {
        code = read_members(doc_from_buf(&packed), &found, err);
    }
    if (code == BT_OK) {
        *ret = found;
    }
    if (packed.at != NULL) {
        explicit_bzero(packed.at, packed.len);
    }
    explicit_bzero(&found, sizeof found);
    buf_done(&packed);
    return code;
}

static void put_hex(struct buf *out, const char *name, const uint8_t *key)
{
    char hex[2 * AUTH_KEY_BYTES + 1];

    auth_hex(key, AUTH_KEY_BYTES, hex);
    doc_put_cstr(out, name);
    doc_put_cstr(out, hex);
    explicit_bzero(hex, sizeof hex);
}

static void put_time(struct buf *out, const char *name, msec at)
{
    if (at != 0) {
        doc_put_cstr(out, name);
        doc_put_u64(out, at);
    }
}

static void put_globs(struct buf *out, const char *name, const char globs[][LIMIT_ID_BYTES + 1],
                      uint32_t n)
{
    doc_put_cstr(out, name);
    doc_put_array(out, n);
    for (uint32_t i = 0; i < n; i++) {
        doc_put_cstr(out, globs[i]);
    }
}

static uint32_t quotas_set(const struct identity *who)
{
    uint32_t n = 0;

    for (int i = 0; i < QUOTA_COUNT; i++) {
        n += who->quotas[i] != QUOTA_BY_ROLE;
    }
    return n;
}

static void put_more(struct buf *out, const struct identity *who)
{
    if (who->sees_n > 0) {
        put_globs(out, members[M_SEES], who->sees, who->sees_n);
    }
    if (quotas_set(who) > 0) {
        doc_put_cstr(out, members[M_QUOTAS]);
        doc_put_map(out, quotas_set(who));
        for (int i = 0; i < QUOTA_COUNT; i++) {
            if (who->quotas[i] != QUOTA_BY_ROLE) {
                doc_put_cstr(out, quota_name((enum quota)i));
                doc_put_u64(out, who->quotas[i]);
            }
        }
    }
}

static enum bt_code format(const struct credential *c, struct buf *json, struct bt_error *err)
{
    struct buf packed;
    enum bt_code code;

    buf_init(&packed, FILE_BYTES);
    doc_put_map(&packed, 5u + (c->expires != 0 ? 1u : 0u) + (c->revoked != 0 ? 1u : 0u) +
                             (c->previous_until != 0 ? 2u : 0u) + (c->who.sees_n > 0 ? 1u : 0u) +
                             (quotas_set(&c->who) > 0 ? 1u : 0u));
    doc_put_cstr(&packed, members[M_ID]);
    doc_put_cstr(&packed, c->who.id);
    doc_put_cstr(&packed, members[M_ROLE]);
    doc_put_cstr(&packed, role_name(c->who.role));
    put_hex(&packed, members[M_KEY], c->key);
    put_globs(&packed, members[M_AGENTS], c->who.agents, c->who.agents_n);
    doc_put_cstr(&packed, members[M_CREATED]);
    doc_put_u64(&packed, c->created);
    put_time(&packed, members[M_EXPIRES], c->expires);
    put_time(&packed, members[M_REVOKED], c->revoked);
    if (c->previous_until != 0) {
        put_hex(&packed, members[M_PREV], c->previous);
        put_time(&packed, members[M_UNTIL], c->previous_until);
    }
    put_more(&packed, &c->who);
    code = buf_check(&packed, err);
    if (code == BT_OK) {
        code = doc_to_json(doc_from_buf(&packed), true, json, err);
    }
    buf_add_byte(json, '\n');
    if (packed.at != NULL) {
        explicit_bzero(packed.at, packed.len);
    }
    buf_done(&packed);
    return code == BT_OK ? buf_check(json, err) : code;
}

/* ---- files ---- */

/* "a/b" = "a" and "b"; "b" = "." and "b". */
static bool split(const char *file, char dir[PATH_BYTES], const char **ret_name)
{
    const char *slash = strrchr(file, '/');
    const size_t n = slash == NULL ? 1 : (size_t)(slash - file) + (slash == file);

    if (n >= PATH_BYTES) {
        return false;
    }
    (void)snprintf(dir, PATH_BYTES, "%.*s", (int)n, slash == NULL ? "." : file);
    *ret_name = slash == NULL ? file : slash + 1;
    return **ret_name != 0;
}

static enum bt_code read_at(const char *dir, const char *name, struct credential *ret,
                            struct bt_error *err)
{
    struct buf text;
    enum bt_code code;

    buf_init(&text, FILE_BYTES);
    code = state_file_read(dir, name, FILE_OWN, &text, err);
    if (code == BT_OK && credential_parse(buf_str(&text), ret, err) != BT_OK) {
        code = err_wrap(err, "%s/%s", dir, name);
    }
    if (text.at != NULL) {
        explicit_bzero(text.at, text.len);
    }
    buf_done(&text);
    return code;
}

static enum bt_code write_at(const char *dir, const char *name, const struct credential *c,
                             bool replace, struct bt_error *err)
{
    struct buf json;
    enum bt_code code;

    buf_init(&json, FILE_BYTES);
    code = format(c, &json, err);
    if (code == BT_OK) {
        code =
            state_file_write(dir, name, buf_str(&json), replace ? FILE_REPLACE : FILE_CREATE, err);
    }
    if (json.at != NULL) {
        explicit_bzero(json.at, json.len);
    }
    buf_done(&json);
    return code;
}

enum bt_code credential_read(const char *file, struct credential *ret, struct bt_error *err)
{
    char dir[PATH_BYTES];
    const char *name;

    return split(file, dir, &name) ? read_at(dir, name, ret, err)
                                   : err_set(err, BT_INVALID, "%.100s: is no file", file);
}

enum bt_code credential_write(const char *file, const struct credential *c, bool replace,
                              struct bt_error *err)
{
    struct credential copy = *c;
    char dir[PATH_BYTES];
    const char *name;
    enum bt_code code;

    copy.previous_until = 0;
    copy.revoked = 0;
    code = split(file, dir, &name) ? write_at(dir, name, &copy, replace, err)
                                   : err_set(err, BT_INVALID, "%.100s: is no file", file);
    explicit_bzero(&copy, sizeof copy);
    return code;
}

static bool directory(const char *state_dir, char ret[PATH_BYTES])
{
    return snprintf(ret, PATH_BYTES, "%s/%s", state_dir, CREDENTIALS_DIR) < PATH_BYTES;
}

enum bt_code credential_load(const char *state_dir, const char *id, struct credential *ret,
                             struct bt_error *err)
{
    struct credential found;
    char dir[PATH_BYTES];
    enum bt_code code;

    if (!credential_id_ok(str_from(id), err)) {
        return BT_INVALID;
    }
    code = directory(state_dir, dir) ? read_at(dir, id, &found, err)
                                     : err_set(err, BT_LIMIT, "the path is too long");
    if (code == BT_OK && strcmp(found.who.id, id) != 0) {
        code = err_set(err, BT_INVALID, "%s/%s: has the id %s; a file is named as its id", dir, id,
                       found.who.id);
    }
    if (code == BT_OK) {
        *ret = found;
    }
    explicit_bzero(&found, sizeof found);
    return code;
}

/* The directory itself says who may put credentials there. */
static enum bt_code check_directory(const char *dir, struct bt_error *err)
{
    struct stat st;

    if (lstat(dir, &st) != 0) {
        return err_errno(err, errno, "%s", dir);
    }
    if (!S_ISDIR(st.st_mode)) {
        return err_set(err, BT_INVALID, "%s: is not a directory", dir);
    }
    if (st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
        return err_set(err, BT_UNAUTHORIZED,
                       "%s: must belong to you (user %u), and to nobody else; run chmod 700 %s",
                       dir, (unsigned)geteuid(), dir);
    }
    return BT_OK;
}

enum bt_code credential_store(const char *state_dir, const struct credential *c, bool replace,
                              struct bt_error *err)
{
    char dir[PATH_BYTES];

    if (!directory(state_dir, dir)) {
        return err_set(err, BT_LIMIT, "the path is too long");
    }
    if (mkdir(dir, 0700) != 0 && errno != EEXIST) {
        return err_errno(err, errno, "%s: cannot be created", dir);
    }
    if (check_directory(dir, err) != BT_OK) {
        return err->code;
    }
    return write_at(dir, c->who.id, c, replace, err);
}

static int is_visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

enum bt_code credential_each(const char *state_dir,
                             void (*fn)(void *self, const char *name, const struct credential *c,
                                        const struct bt_error *why),
                             void *self, struct bt_error *err)
{
    struct dirent **names = NULL;
    struct credential c;
    struct bt_error why;
    char dir[PATH_BYTES];
    enum bt_code code = directory(state_dir, dir) ? check_directory(dir, err)
                                                  : err_set(err, BT_LIMIT, "the path is too long");
    int n;

    if (code != BT_OK) {
        return code == BT_NOT_FOUND ? BT_OK : code;
    }
    n = scandir(dir, &names, is_visible, alphasort);
    if (n < 0) {
        return err_errno(err, errno, "%s", dir);
    }
    for (int i = 0; i < n; i++) {
        if (i < FILES_MAX) {
            const bool ok = credential_load(state_dir, names[i]->d_name, &c, &why) == BT_OK;
            fn(self, names[i]->d_name, ok ? &c : NULL, ok ? NULL : &why);
        }
        free(names[i]);
    }
    free(names);
    explicit_bzero(&c, sizeof c);
    return n > FILES_MAX ? err_set(err, BT_LIMIT, "%s: has more than %d files", dir, FILES_MAX)
                         : BT_OK;
}
