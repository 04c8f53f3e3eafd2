/* Names, paths and URIs of artifacts. */
#include <stdio.h>
#include <string.h>

#include "protocol/artifact/artifact.h"

static const char SCHEME[] = "file://";

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

bool artifact_name_ok(struct str name)
{
    if (name.len == 0 || name.len > ARTIFACT_NAME_MAX || name.ptr[0] == '.') {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        if (!is_name_byte(name.ptr[i])) {
            return false;
        }
    }
    return true;
}

enum bt_code artifact_file_name(struct str step_id, uint64_t revision, uint64_t attempt,
                                struct str name, char ret[ARTIFACT_FILE_MAX + 1],
                                struct bt_error *err)
{
    int n;

    if (!artifact_name_ok(name)) {
        return err_set(err, BT_INVALID,
                       "artifact '%.*s': expected a name of 1 to %d bytes of [A-Za-z0-9_.-], not "
                       "beginning with a dot",
                       name.len > 80 ? 80 : (int)name.len, name.ptr == NULL ? "" : name.ptr,
                       ARTIFACT_NAME_MAX);
    }
    n = snprintf(ret, ARTIFACT_FILE_MAX + 1, "%.*s@%llu.%llu@%.*s", STR_ARG(step_id),
                 (unsigned long long)revision, (unsigned long long)attempt, STR_ARG(name));
    return n <= ARTIFACT_FILE_MAX
               ? BT_OK
               : err_set(err, BT_LIMIT, "artifact '%.*s': the name of its file is too long",
                         STR_ARG(name));
}

/* ---- URIs ---- */

/* RFC 3986: what a path holds as it is. */
static bool is_path_byte(char c)
{
    return is_name_byte(c) || c == '/' || c == '@' || c == '~';
}

static void add_encoded(struct buf *out, const char *text)
{
    for (; *text != 0; text++) {
        if (is_path_byte(*text)) {
            buf_add_byte(out, (uint8_t)*text);
        } else {
            buf_printf(out, "%%%02X", (unsigned char)*text);
        }
    }
}

void artifact_uri(const char *dir, const char *file, struct buf *out)
{
    buf_add_cstr(out, SCHEME);
    add_encoded(out, dir);
    buf_add_byte(out, '/');
    add_encoded(out, file);
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

bool artifact_uri_path(struct str uri, char ret[ARTIFACT_PATH_MAX + 1])
{
    const size_t skip = sizeof SCHEME - 1;
    size_t n = 0;

    if (uri.len <= skip || memcmp(uri.ptr, SCHEME, skip) != 0 || uri.ptr[skip] != '/') {
        return false;
    }
    for (size_t i = skip; i < uri.len; i++) {
        char c = uri.ptr[i];
        if (c == '%') {
            const int high = i + 2 < uri.len ? hex(uri.ptr[i + 1]) : -1;
            const int low = high >= 0 ? hex(uri.ptr[i + 2]) : -1;
            if (low < 0) {
                return false;
            }
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (c == 0 || n == ARTIFACT_PATH_MAX) {
            return false;
        }
        ret[n++] = c;
    }
    ret[n] = 0;
    return true;
}

/* What follows "ROOT/" in the path; NULL when it is not below root. */
static const char *rest_below(const char *root, const char *path)
{
    const size_t n = strlen(root);

    return strncmp(path, root, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

bool artifact_is_below(const char *root, struct str uri)
{
    char path[ARTIFACT_PATH_MAX + 1];

    return artifact_uri_path(uri, path) && rest_below(root, path) != NULL;
}

static bool is_file_name(const char *name)
{
    const size_t n = strlen(name);

    /* "@" separates step, attempt and name; the step of an item is "each[0]"; a leading dot is a
     * file of ours. */
    for (size_t i = 0; i < n; i++) {
        if (!is_name_byte(name[i]) && strchr("@[]", name[i]) == NULL) {
            return false;
        }
    }
    return n > 0 && n <= ARTIFACT_FILE_MAX && name[0] != '.';
}

enum bt_code artifact_locate(const char *root, struct str uri, struct artifact_place *ret,
                             struct bt_error *err)
{
    char path[ARTIFACT_PATH_MAX + 1];
    char plan[UUID_TEXT_LEN + 1];
    struct uuid id;
    const char *rest = artifact_uri_path(uri, path) ? rest_below(root, path) : NULL;
    const char *slash = rest == NULL ? NULL : strchr(rest, '/');

    if (slash != NULL && slash - rest == UUID_TEXT_LEN &&
        uuid_parse((struct str){rest, UUID_TEXT_LEN}, &id) && is_file_name(slash + 1)) {
        uuid_format(id, plan);
        if (memcmp(plan, rest, UUID_TEXT_LEN) == 0) {
            memcpy(ret->plan, plan, sizeof plan);
            memcpy(ret->file, slash + 1, strlen(slash + 1) + 1);
            return BT_OK;
        }
    }
    return err_set(err, BT_UNAUTHORIZED,
                   "'%.*s': is no artifact of a plan; expected the uri of a result's artifact",
                   uri.len > 200 ? 200 : (int)uri.len, uri.ptr == NULL ? "" : uri.ptr);
}

bool artifact_was(struct str uri, struct artifact_place *ret)
{
    static const char dir[] = "/" ARTIFACT_DIR;
    char path[ARTIFACT_PATH_MAX + 1];
    char *slash;

    if (!artifact_uri_path(uri, path)) {
        return false;
    }
    for (int i = 0; i < 2; i++) { /* FILE, then PLAN */
        slash = strrchr(path, '/');
        if (slash == NULL) {
            return false;
        }
        *slash = 0;
    }
    return strlen(path) >= sizeof dir - 1 &&
           strcmp(path + strlen(path) - (sizeof dir - 1), dir) == 0 &&
           artifact_locate(path, uri, ret, NULL) == BT_OK;
}
