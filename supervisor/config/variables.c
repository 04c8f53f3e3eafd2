/* The variables of an agent's entry: ${BATON_BIN} and ${CONFIG_DIR}. */
#include <stdlib.h>
#include <unistd.h>

#include "supervisor/config/loader.h"

enum { EXPANDED_MAX = 2 * 1024 * 1024, PROGRAM_BYTES = 4096 };

#define TOO_LONG "has more than 2 MiB when its variables are replaced"

static const char BIN[] = "${BATON_BIN}";
static const char FILE_DIR[] = "${CONFIG_DIR}";

/* Cuts the last part of an absolute path. */
static void cut_name(char *path)
{
    char *slash = strrchr(path, '/');

    slash[slash == path] = '\0';
}

/* The directory of the running program; "." when the system does not report it. */
const char *config_bin_dir(struct loader *l)
{
    char path[PROGRAM_BYTES];
    ssize_t n;

    if (l->request->bin_dir != NULL) {
        return l->request->bin_dir;
    }
    n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) {
        return ".";
    }
    path[n] = '\0';
    cut_name(path);
    return config_store_text(l->store, path);
}

/* The directory of the layer's file, without links; "" when the layer is no file. NULL = no memory.
 */
static const char *file_dir(struct loader *l, enum layer_kind layer)
{
    const char *file = l->layers[layer].file;
    char *path = file != NULL ? realpath(file, NULL) : NULL;
    const char *kept = "";

    if (path != NULL) {
        cut_name(path);
        kept = config_store_text(l->store, path);
    }
    free(path);
    return kept;
}

const char *config_expand(struct loader *l, enum layer_kind layer, const char *text,
                          const char **ret_why)
{
    const char *const bin = config_bin_dir(l);
    const char *const dir = file_dir(l, layer);
    const char *result = NULL;
    struct buf out;

    buf_init(&out, EXPANDED_MAX);
    while (*text != '\0' && *ret_why == NULL && bin != NULL && dir != NULL) {
        const char *next = strstr(text, "${");
        const size_t n = next == NULL ? strlen(text) : (size_t)(next - text);
        buf_add(&out, text, n);
        text += n;
        if (next == NULL) {
            continue;
        }
        if (strncmp(next, BIN, sizeof BIN - 1) == 0) {
            buf_add_cstr(&out, bin);
            text += sizeof BIN - 1;
        } else if (strncmp(next, FILE_DIR, sizeof FILE_DIR - 1) == 0) {
            buf_add_cstr(&out, dir);
            text += sizeof FILE_DIR - 1;
            *ret_why = dir[0] == '\0' ? "${CONFIG_DIR} is the directory of a file, and this stands "
                                        "in none; write the path"
                                      : NULL;
        } else {
            *ret_why = "only ${BATON_BIN}, the directory of the running program, and "
                       "${CONFIG_DIR}, that of this file, are replaced here";
        }
    }
    if (*ret_why == NULL && out.bad == BT_LIMIT) {
        *ret_why = TOO_LONG;
    }
    if (*ret_why == NULL && bin != NULL && dir != NULL && buf_check(&out, NULL) == BT_OK) {
        result = config_store_text(l->store, buf_cstr(&out));
    }
    buf_done(&out);
    return result;
}

/* The value as it stands inside a JSON string. NULL = no memory. */
static const char *quoted_inside(struct loader *l, const char *value)
{
    cJSON *text = cJSON_CreateString(value);
    const char *json = text != NULL ? config_store_json(l->store, text) : NULL;
    char *inside = NULL;

    cJSON_Delete(text);
    if (json != NULL) {
        const size_t n = strlen(json) - 2;
        inside = arena_alloc(&l->store->arena, n + 1);
        if (inside != NULL) {
            memcpy(inside, json + 1, n);
            inside[n] = '\0';
        }
    }
    return inside;
}

/* Adds `json` to `out`, with the name replaced by the value. */
static void replace(struct buf *out, const char *json, const char *name, const char *value)
{
    const char *next;

    while ((next = strstr(json, name)) != NULL) {
        buf_add(out, json, (size_t)(next - json));
        buf_add_cstr(out, value);
        json = next + strlen(name);
    }
    buf_add_cstr(out, json);
}

const char *config_expand_json(struct loader *l, enum layer_kind layer, const cJSON *v)
{
    const char *json = config_store_json(l->store, v);
    const char *const bin = config_bin_dir(l);
    const char *const dir = file_dir(l, layer);
    const char *values[] = {bin != NULL ? quoted_inside(l, bin) : NULL,
                            dir != NULL ? quoted_inside(l, dir) : NULL};
    static const char *const names[] = {BIN, FILE_DIR};
    struct buf out;

    for (int i = 0; i < 2 && json != NULL; i++) {
        const char *kept = NULL;
        buf_init(&out, EXPANDED_MAX);
        if (values[i] != NULL && values[i][0] != '\0') {
            replace(&out, json, names[i], values[i]);
            if (out.bad == BT_LIMIT) {
                config_problem(l, l->layers[layer].file, "agents: settings: " TOO_LONG);
                kept = "{}";
            } else {
                kept = buf_check(&out, NULL) == BT_OK ? config_store_text(l->store, buf_cstr(&out))
                                                      : NULL;
            }
        } else {
            kept = values[i] != NULL ? json : NULL;
        }
        buf_done(&out);
        json = kept;
    }
    return json;
}
