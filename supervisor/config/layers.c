/* The sources of settings: two files, the environment, the command line. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/suggest.h"
#include "protocol/client/state.h"
#include "protocol/jsonschema/schema.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"
#include "supervisor/config/embedded.h"
#include "supervisor/config/loader.h"

static const char *const SYSTEM_FILE = "/etc/baton/baton.yaml";
enum { PROBLEMS_MAX = 64, PATH_BYTES = 4096, PART_BYTES = 8192 };

static enum bt_code read_fd(int fd, struct buf *out)
{
    for (;;) {
        uint8_t part[PART_BYTES];
        ssize_t n = read(fd, part, sizeof part);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n == 0 ? buf_check(out, NULL) : BT_IO;
        }
        buf_add(out, part, (size_t)n);
        if (buf_check(out, NULL) != BT_OK) {
            return buf_check(out, NULL);
        }
    }
}

/* The file names programs that the daemon runs. One that nobody named may have been put there by
 * somebody else. */
static void check_mode(struct loader *l, struct layer *layer, const struct stat *st, bool named)
{
    if (!named && st->st_uid != geteuid() && st->st_uid != 0) {
        config_problem(
            l, layer->file,
            "belongs to user %lu, and it names programs to run; when that is right, name "
            "it: --config %s",
            (unsigned long)st->st_uid, layer->file);
    }
    layer->shared = (st->st_mode & 077) != 0;
    if ((st->st_mode & 002) != 0) {
        config_problem(
            l, layer->file,
            "everybody may write to this file, and it names programs to run; run chmod o-w %s",
            layer->file);
    }
}

/* BT_NOT_FOUND is left to the caller; any other error is a problem of the file. */
static enum bt_code read_bytes(struct loader *l, struct layer *layer, bool named, struct buf *out)
{
    struct stat st;
    enum bt_code code = BT_OK;
    int fd = open(layer->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        return BT_NOT_FOUND;
    }
    if (fd < 0 || fstat(fd, &st) != 0) {
        config_problem(l, layer->file, "cannot be read: %s", strerror(errno));
        code = BT_IO;
    } else if (!S_ISREG(st.st_mode)) {
        config_problem(l, layer->file, "is not a regular file");
        code = BT_INVALID;
    } else {
        check_mode(l, layer, &st, named);
        code = read_fd(fd, out);
        if (code == BT_IO || code == BT_LIMIT) {
            config_problem(l, layer->file, "cannot be read: %s",
                           code == BT_IO ? strerror(errno) : "larger than 1024 KiB");
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return code;
}

/* An empty file is valid: it sets nothing. */
static enum bt_code empty_is_object(struct loader *l, struct layer *layer)
{
    if (cJSON_IsNull(layer->tree)) {
        cJSON_Delete(layer->tree);
        yaml_marks_free(layer->marks);
        layer->marks = NULL;
        layer->tree = cJSON_CreateObject();
    }
    return layer->tree != NULL ? BT_OK : config_no_memory(l);
}

/* named: by the user, so it must exist. */
static enum bt_code read_file(struct loader *l, enum layer_kind kind, bool named)
{
    struct layer *layer = &l->layers[kind];
    struct bt_error why = {0};
    struct buf text;
    enum bt_code code;

    buf_init(&text, (size_t)LIMIT_CONTROL_BYTES + 1);
    code = read_bytes(l, layer, named, &text);
    if (code == BT_NOT_FOUND && named) {
        config_problem(l, layer->file, "there is no such file");
    }
    if (code == BT_OK) {
        code = yaml_read(buf_str(&text), layer->file, &layer->tree, &layer->marks, &why);
        if (code == BT_OK) {
            code = empty_is_object(l, layer);
        } else if (code != BT_NOMEM) {
            config_problem(l, NULL, "%s", why.msg);
        }
    }
    buf_done(&text);
    return code == BT_NOMEM ? config_no_memory(l) : BT_OK;
}

enum bt_code layers_read_tree(struct loader *l, const char *file, cJSON **ret)
{
    struct layer layer = {.file = file};
    struct bt_error why = {0};
    struct buf text;
    enum bt_code code;

    *ret = NULL;
    buf_init(&text, (size_t)LIMIT_CONTROL_BYTES + 1);
    code = read_bytes(l, &layer, true, &text);
    if (code == BT_NOT_FOUND) {
        config_problem(l, file, "there is no such file");
    }
    if (code == BT_OK) {
        code = yaml_read(buf_str(&text), file, ret, &layer.marks, &why);
        if (code != BT_OK && code != BT_NOMEM) {
            config_problem(l, NULL, "%s", why.msg);
        }
    }
    yaml_marks_free(layer.marks);
    buf_done(&text);
    return code == BT_NOMEM ? config_no_memory(l) : BT_OK;
}

/* baton.yaml beside the state directory of a project; "" when there is none. BT_NOMEM. */
static enum bt_code project_file(const char *state_flag, char *ret, size_t cap)
{
    static const char dir[] = "/" STATE_PROJECT_DIR;
    struct buf path;
    enum bt_code code;

    ret[0] = '\0';
    buf_init(&path, PATH_BYTES);
    code = state_dir_find(state_flag, &path, NULL);
    if (code == BT_OK && path.len >= sizeof dir &&
        strcmp(buf_cstr(&path) + path.len - (sizeof dir - 1), dir) == 0) {
        buf_truncate(&path, path.len - (sizeof dir - 1));
        buf_add_cstr(&path, "/baton.yaml");
        code = buf_check(&path, NULL);
        if (code == BT_OK && (access(buf_cstr(&path), F_OK) != 0 ||
                              snprintf(ret, cap, "%s", buf_cstr(&path)) >= (int)cap)) {
            ret[0] = '\0';
        }
    }
    buf_done(&path);
    return code == BT_NOMEM ? BT_NOMEM : BT_OK;
}

/* The path of the user's file; "" when there is none. BT_NOMEM. */
static enum bt_code user_file(const char *state_flag, char *ret, size_t cap)
{
    const char *xdg = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    const bool has_xdg = xdg != NULL && xdg[0] == '/';
    enum bt_code code = project_file(state_flag, ret, cap);

    if (code == BT_OK && ret[0] == '\0' && (has_xdg || (home != NULL && home[0] == '/')) &&
        snprintf(ret, cap, "%s%s/baton/baton.yaml", has_xdg ? xdg : home,
                 has_xdg ? "" : "/.config") >= (int)cap) {
        ret[0] = '\0';
    }
    return code;
}

bool config_user_file(const char *state_flag, char *ret, size_t cap)
{
    return user_file(state_flag, ret, cap) == BT_OK && ret[0] != '\0';
}

/* The file that was named, else the user's; without a home directory there is none. */
static enum bt_code name_file(struct loader *l, struct layer *layer)
{
    char path[PATH_BYTES] = "";

    layer->file = l->request->file;
    if (layer->file == NULL && user_file(l->request->state_dir, path, sizeof path) != BT_OK) {
        return config_no_memory(l);
    }
    if (path[0] != '\0') {
        layer->file = config_store_text(l->store, path);
        return layer->file != NULL ? BT_OK : config_no_memory(l);
    }
    return BT_OK;
}

static enum bt_code put_text(struct loader *l, enum layer_kind kind, const struct setting *s,
                             const char *origin, const char *text)
{
    struct layer *layer = &l->layers[kind];
    const char *why = "";
    cJSON *value = NULL;
    enum bt_code code = setting_parse(s, text, &value, &why);

    if (code == BT_INVALID) {
        config_problem(l, origin, "%.60s: %s", text, why);
        return BT_OK;
    }
    if (code == BT_OK && layer->tree == NULL) {
        layer->tree = cJSON_CreateObject();
    }
    if (code != BT_OK || layer->tree == NULL) {
        cJSON_Delete(value);
        return config_no_memory(l);
    }
    return setting_put(layer->tree, s->key, value) == BT_OK ? BT_OK : config_no_memory(l);
}

static enum bt_code read_env(struct loader *l)
{
    enum bt_code code = BT_OK;
    uint32_t n;
    const struct setting *table = settings_table(&n);

    for (uint32_t i = 0; code == BT_OK && i < n; i++) {
        char name[SETTING_ENV_MAX];
        char origin[SETTING_ENV_MAX + 8];
        const char *text;
        setting_env_name(&table[i], name);
        (void)snprintf(origin, sizeof origin, "env %s", name);
        text = getenv(name);
        if (text != NULL && text[0] != '\0') {
            code = put_text(l, LAYER_ENV, &table[i], origin, text);
        }
    }
    return code;
}

static enum bt_code read_flags(struct loader *l)
{
    enum bt_code code = BT_OK;
    uint32_t n;
    const struct setting *table = settings_table(&n);

    for (uint32_t f = 0; code == BT_OK && f < l->request->n_flags; f++) {
        const struct config_flag *flag = &l->request->flags[f];
        struct suggest near = suggest_start(str_from(flag->key));
        uint32_t i = 0;
        for (; i < n && strcmp(table[i].key, flag->key) != 0; i++) {
            suggest_offer(&near, str_from(table[i].key));
        }
        if (i < n) {
            code = put_text(l, LAYER_FLAGS, &table[i], "flag", flag->value);
        } else if (near.best.ptr != NULL) {
            config_problem(l, "flag", "there is no setting %.60s; did you mean %.*s?", flag->key,
                           STR_ARG(near.best));
        } else {
            config_problem(l, "flag", "there is no setting %.60s; baton config show lists them",
                           flag->key);
        }
    }
    return code;
}

void layer_origin(const struct loader *l, enum layer_kind kind, const char *key,
                  char ret[ORIGIN_MAX])
{
    char pointer[ORIGIN_MAX];
    struct yaml_place place = {1, 1};

    if (kind == LAYER_FLAGS) {
        (void)snprintf(ret, ORIGIN_MAX, "flag");
        return;
    }
    if (kind == LAYER_ENV) {
        struct setting s = {.key = key};
        char name[SETTING_ENV_MAX];
        setting_env_name(&s, name);
        (void)snprintf(ret, ORIGIN_MAX, "env %s", name);
        return;
    }
    (void)snprintf(pointer, sizeof pointer, "%s%s", key[0] == '\0' ? "" : "/", key);
    for (char *at = pointer; *at != '\0'; at++) {
        if (*at == '.') {
            *at = '/';
        }
    }
    if (l->layers[kind].marks != NULL) {
        place = yaml_place(l->layers[kind].marks, pointer);
    }
    (void)snprintf(ret, ORIGIN_MAX, "%.280s:%u:%u", l->layers[kind].file, place.line, place.column);
}

void layer_key_plain(char *key)
{
    char *to = key;

    for (const char *at = key; *at != '\0'; at++) {
        const bool escaped = at[0] == '~' && (at[1] == '0' || at[1] == '1');
        at += escaped;
        *to++ = !escaped ? *at : *at == '1' ? '/' : '~';
    }
    *to = '\0';
}

/* Writes "/policy/maxRetries" as "policy.maxRetries". */
static void dotted_key(const char *pointer, char ret[ORIGIN_MAX])
{
    size_t n = 0;

    for (pointer += *pointer == '/'; *pointer != '\0' && n + 1 < ORIGIN_MAX; pointer++) {
        ret[n++] = *pointer;
        if (*pointer == '/') {
            ret[n - 1] = '.';
        }
    }
    ret[n] = '\0';
}

static enum bt_code check_layer(struct loader *l, const struct schema *s, enum layer_kind kind)
{
    struct schema_problem *found = calloc(PROBLEMS_MAX, sizeof *found);
    struct bt_error why = {0};
    uint32_t n = 0;
    enum bt_code code;

    if (found == NULL) {
        return config_no_memory(l);
    }
    code = schema_check(s, l->layers[kind].tree, found, PROBLEMS_MAX, &n, &why);
    for (uint32_t i = 0; i < n; i++) {
        char origin[ORIGIN_MAX];
        char path[ORIGIN_MAX];
        dotted_key(found[i].path, path);
        layer_origin(l, kind, path, origin);
        layer_key_plain(path);
        config_problem(l, origin, "%s%s%s", path, path[0] == '\0' ? "" : ": ", found[i].message);
    }
    if (code == BT_LIMIT) {
        config_problem(l, l->layers[kind].file, "%s", why.msg);
    }
    free(found);
    return code == BT_NOMEM ? config_no_memory(l) : BT_OK;
}

static enum bt_code check_layers(struct loader *l)
{
    struct str text = {(const char *)config_schema_json, config_schema_json_len};
    struct schema *s = NULL;
    cJSON *tree = NULL;
    enum bt_code code = json_parse(text, &tree, l->err);

    if (code == BT_OK) {
        code = schema_compile(tree, &s, l->err);
    }
    for (int kind = 0; code == BT_OK && kind < LAYER_COUNT; kind++) {
        if (l->layers[kind].tree != NULL) {
            code = check_layer(l, s, (enum layer_kind)kind);
        }
    }
    schema_free(s);
    cJSON_Delete(tree);
    return code;
}

enum bt_code layers_read(struct loader *l)
{
    const struct config_request *r = l->request;
    enum bt_code code;

    l->layers[LAYER_SYSTEM_FILE].file = r->system_file != NULL ? r->system_file : SYSTEM_FILE;
    code = name_file(l, &l->layers[LAYER_USER_FILE]);
    if (code == BT_OK) {
        code = read_file(l, LAYER_SYSTEM_FILE, false);
    }
    if (code == BT_OK && l->layers[LAYER_USER_FILE].file != NULL) {
        code = read_file(l, LAYER_USER_FILE, r->file != NULL);
    }
    if (code == BT_OK) {
        code = read_env(l);
    }
    if (code == BT_OK) {
        code = read_flags(l);
    }
    return code == BT_OK ? check_layers(l) : code;
}

void layers_done(struct loader *l)
{
    for (int i = 0; i < LAYER_COUNT; i++) {
        l->store->trees[i] = l->layers[i].tree;
        yaml_marks_free(l->layers[i].marks);
    }
}

const cJSON *layers_find(const struct loader *l, const char *key, enum layer_kind *ret_layer)
{
    for (int i = 0; i < LAYER_COUNT; i++) {
        const cJSON *v = setting_find(l->layers[i].tree, key);
        if (v != NULL) {
            *ret_layer = (enum layer_kind)i;
            return v;
        }
    }
    *ret_layer = LAYER_COUNT;
    return NULL;
}

void setting_origin(const struct loader *l, const char *key, char ret[ORIGIN_MAX])
{
    enum layer_kind layer;

    if (layers_find(l, key, &layer) == NULL) {
        (void)snprintf(ret, ORIGIN_MAX, "default");
    } else {
        layer_origin(l, layer, key, ret);
    }
}
