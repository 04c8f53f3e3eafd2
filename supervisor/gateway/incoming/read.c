/* The file of incoming hooks. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/config/yaml.h"
#include "supervisor/gateway/incoming/incoming_internal.h"

enum { FILE_BYTES = 1024 * 1024, PATH_BYTES = 4096 };

enum bt_code incoming_read_file(const char *path, struct buf *ret_doc, struct bt_error *err)
{
    struct cJSON *tree = NULL;
    struct buf text;
    uint8_t *room;
    enum bt_code code;
    FILE *f = fopen(path, "re");

    if (f == NULL) {
        return err_errno(err, errno, "cannot read %s", path);
    }
    buf_init(&text, FILE_BYTES + 1);
    room = buf_reserve(&text, FILE_BYTES + 1);
    text.len = room == NULL ? 0 : fread(room, 1, FILE_BYTES + 1, f);
    (void)fclose(f);
    code = text.len > FILE_BYTES ? err_set(err, BT_LIMIT, "%s: has more than 1 MiB", path)
                                 : yaml_read(buf_str(&text), path, &tree, NULL, err);
    if (code == BT_OK) {
        code = cjson_to_doc(tree, ret_doc, err);
    }
    cJSON_Delete(tree);
    buf_done(&text);
    return code;
}

static const char *const no_memory = "out of memory";

const char *const incoming_schemes[] = {"token", "hmac", "standard"};

static const char *const texts[] = {"plan",       "scheme",    "header",
                                    "secretFile", "secretEnv", "idempotency"};

/* Each member is one that a hook has, and the texts are texts: a hook with a name that is spelt
 * wrong would do without it. */
static enum bt_code check_members(struct doc d, const char *path, const char *hook,
                                  struct bt_error *err)
{
    struct doc_cursor at = doc_cursor(d);
    struct doc_head head;
    size_t i;

    (void)doc_next(&at, &head);
    for (uint32_t n = head.kind == DOC_MAP ? head.n : 0; n > 0; n--) {
        const struct str name = doc_string(doc_skip(&at));
        const struct str text = doc_string(doc_skip(&at));
        for (i = 0; i < sizeof texts / sizeof texts[0] && !str_is(name, texts[i]); i++) {
        }
        if (i < sizeof texts / sizeof texts[0]
                ? text.len == 0 || memchr(text.ptr, 0, text.len) != NULL
                : !str_is(name, "inputs")) {
            return err_set(err, BT_INVALID,
                           "%s: %s: %.*s: expected plan, scheme, header, secretFile, secretEnv, "
                           "idempotency, each with a text, or inputs",
                           path, hook, STR_ARG(name));
        }
    }
    return BT_OK;
}

/* A copy of the text of a member, for the life of the process; NULL when it is not there. False:
 * out of memory. */
static bool take_text(struct doc d, const char *name, const char **ret)
{
    const struct str s = doc_string(doc_get(d, str_from(name)));

    *ret = s.len == 0 ? NULL : strndup(s.ptr, s.len);
    return s.len == 0 || *ret != NULL;
}

/* Puts the text of a member, "" when it is not there. False: it does not fit, or is no text of C.
 */
static bool put_text(struct doc d, const char *name, char *to, size_t cap)
{
    const struct str s = doc_string(doc_get(d, str_from(name)));

    (void)snprintf(to, cap, "%.*s", s.ptr == NULL ? 0 : (int)s.len, s.ptr == NULL ? "" : s.ptr);
    return strlen(to) == s.len;
}

static const char *take_secret(struct incoming_hook *k, struct doc d)
{
    char *file = k->secret.secret_file;
    char *env = k->secret.secret_env;

    return put_text(d, "secretFile", file, sizeof k->secret.secret_file) &&
                   put_text(d, "secretEnv", env, sizeof k->secret.secret_env) &&
                   (file[0] == 0) != (env[0] == 0) && (file[0] == 0 || file[0] == '/')
               ? NULL
               : "expected secretFile, an absolute path, or secretEnv, where the secret is";
}

static const char *take_scheme(struct incoming_hook *k, struct doc d)
{
    static const char *const headers[] = {"Authorization", "X-Hub-Signature-256",
                                          "webhook-signature"};
    const struct str scheme = doc_string(doc_get(d, STR_LIT("scheme")));

    for (int i = 0; i < INCOMING_SCHEMES; i++) {
        if (str_is(scheme, incoming_schemes[i])) {
            k->scheme = (enum incoming_scheme)i;
            if (!take_text(d, "header", &k->header)) {
                return no_memory;
            }
            if (i == INCOMING_STANDARD && k->header != NULL) {
                return "header: the scheme standard has its own, webhook-signature";
            }
            k->header = k->header == NULL ? headers[i] : k->header;
            return NULL;
        }
    }
    return "scheme: expected token, hmac or standard";
}

static const char *take_inputs(struct incoming_hook *k, struct doc d)
{
    struct doc_cursor at;
    struct doc_head head;

    k->inputs = doc_get(d, STR_LIT("inputs"));
    if (k->inputs.ptr == NULL) {
        return NULL;
    }
    at = doc_cursor(k->inputs);
    (void)doc_next(&at, &head);
    if (head.kind != DOC_MAP || head.n > INCOMING_INPUTS_MAX) {
        return "inputs: expected an object of at most 32 names, each with a JSON pointer";
    }
    for (uint32_t i = 0; i < head.n; i++) {
        struct str pointer;
        (void)doc_skip(&at);
        pointer = doc_string(doc_skip(&at));
        if (pointer.ptr == NULL || pointer.len > INCOMING_POINTER_MAX || !pointer_ok(pointer)) {
            return "inputs: expected JSON pointers, as /repository/full_name";
        }
    }
    return NULL;
}

static const char *take_key(struct incoming_hook *k, struct doc d)
{
    const char *key;

    if (!take_text(d, "idempotency", &key)) {
        return no_memory;
    }
    if (key != NULL && key[0] == '/') {
        k->key_pointer = key;
    } else {
        k->key_header = key;
    }
    return key == NULL || pointer_ok(str_from(key)) || key[0] != '/'
               ? NULL
               : "idempotency: expected the name of a header, or a JSON pointer";
}

static enum bt_code take_recipe(struct incoming_hook *k, struct doc d, const char *path,
                                struct bt_error *err)
{
    const struct str plan = doc_string(doc_get(d, STR_LIT("plan")));
    const char *slash = strrchr(path, '/');
    const int dir = slash == NULL ? 0 : (int)(slash - path + 1);
    char file[PATH_BYTES];

    if (plan.len == 0 || plan.len > 1000) {
        return err_set(err, BT_INVALID, "%s: %s: plan: expected the file of a recipe", path,
                       k->name);
    }
    (void)snprintf(file, sizeof file, "%.*s%.*s", plan.ptr[0] == '/' ? 0 : dir, path, (int)plan.len,
                   plan.ptr);
    buf_init(&k->recipe, json_doc_capacity(FILE_BYTES));
    return incoming_read_file(file, &k->recipe, err);
}

static enum bt_code take_hook(struct incoming *in, struct str name, struct doc d, const char *path,
                              struct bt_error *err)
{
    struct incoming_hook *k = &in->hooks[in->n];
    enum bt_code code;
    const char *wrong;

    if (in->n == INCOMING_MAX || !hook_name_ok(name)) {
        return err_set(err, BT_INVALID,
                       "%s: expected at most %d hooks, each with a name of 1 to 64 of a-z 0-9 _ -",
                       path, INCOMING_MAX);
    }
    k->name = strndup(name.ptr, name.len);
    if (k->name == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for hooks");
    }
    in->n++;
    code = check_members(d, path, k->name, err);
    if (code != BT_OK) {
        return code;
    }
    wrong = take_secret(k, d);
    wrong = wrong == NULL ? take_scheme(k, d) : wrong;
    wrong = wrong == NULL ? take_inputs(k, d) : wrong;
    wrong = wrong == NULL ? take_key(k, d) : wrong;
    return wrong == NULL ? take_recipe(k, d, path, err)
                         : err_set(err, BT_INVALID, "%s: %s: %s", path, k->name, wrong);
}

enum bt_code incoming_new(const char *path, struct incoming **ret, struct bt_error *err)
{
    struct incoming *in = calloc(1, sizeof *in);
    struct doc_head head;
    struct doc_cursor at;
    enum bt_code code;

    *ret = in;
    if (in == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for hooks");
    }
    in->dirty = true;
    buf_init(&in->file, json_doc_capacity(FILE_BYTES));
    code = incoming_read_file(path, &in->file, err);
    if (code != BT_OK) {
        return code;
    }
    at = doc_cursor(doc_from_buf(&in->file));
    (void)doc_next(&at, &head);
    if (head.kind != DOC_MAP) {
        return err_set(err, BT_INVALID, "%s: expected an object of hooks by their names", path);
    }
    for (uint32_t i = 0; code == BT_OK && i < head.n; i++) {
        const struct str name = doc_string(doc_skip(&at));
        code = take_hook(in, name, doc_skip(&at), path, err);
    }
    return code;
}

struct incoming_hook *incoming_find(struct incoming *in, struct str name)
{
    for (uint32_t i = 0; in != NULL && i < in->n; i++) {
        if (str_is(name, in->hooks[i].name)) {
            return &in->hooks[i];
        }
    }
    return NULL;
}
