#include <stdlib.h>
#include <string.h>

#include "agents/rag/rag.h"
#include "agents/sdk/settings/fields.h"
#include "agents/sdk/settings/settings.h"
#include "agents/web/settings.h"
#include "agents/web/url.h"
#include "protocol/wire/doc.h"

enum { SETTINGS_BYTES = 64 * 1024, INCLUDE_MAX = 64 };

static const char *const INCLUDE[] = {"*.md", "*.txt", "*.rst", "*.adoc", "*.html", "*.csv", NULL};

static enum bt_code read_folder(struct rag *r, struct doc map, struct bt_error *err)
{
    const char *folder = NULL;
    const char *database = NULL;
    enum bt_code code = field_text(&r->arena, map, "folder", true, &folder, err);

    if (code == BT_OK && confine_add(&r->folder, folder, err) != BT_OK) {
        code = err_wrap(err, "folder");
    }
    code = code == BT_OK ? field_text(&r->arena, map, "database", true, &database, err) : code;
    code = code == BT_OK ? store_check_path(database, r->database, err) : code;
    return code == BT_OK ? field_list(&r->arena, map, "include", INCLUDE_MAX, &r->include, err)
                         : code;
}

static enum bt_code read_embeddings(struct rag *r, struct doc map, struct bt_error *err)
{
    static const char *const known[] = {"baseUrl",      "model",  "key",      "allowHosts",
                                        "allowPrivate", "caFile", "allowHttp"};
    struct rag_embeddings *e = &r->embeddings;
    const char *base = NULL;
    struct buf url;
    enum bt_code code;

    if (map.ptr == NULL) {
        return BT_OK;
    }
    code = settings_check_names(map, known, sizeof known / sizeof known[0], err);
    code = code == BT_OK ? field_text(&r->arena, map, "baseUrl", true, &base, err) : code;
    code = code == BT_OK ? field_text(&r->arena, map, "model", true, &e->model, err) : code;
    code = code == BT_OK ? field_bool(map, "allowHttp", &e->policy.allow_http, err) : code;
    if (code == BT_OK && url_check(str_from(base), e->policy.allow_http, err) != BT_OK) {
        code = err_wrap(err, "baseUrl");
    }
    if (code == BT_OK && doc_get(map, STR_LIT("key")).ptr != NULL) {
        code = web_read_secret(&e->secrets, &r->arena, map, "key", &e->key, err);
    }
    if (code == BT_OK) {
        const char *const own[] = {base, NULL};
        code = web_read_policy(&r->arena, map, own, &e->policy, err);
    }
    if (code == BT_OK) {
        buf_init(&url, WEB_URL_MAX);
        buf_printf(&url, "%s%sembeddings", base, base[strlen(base) - 1] == '/' ? "" : "/");
        e->url = arena_str(&r->arena, buf_str(&url)).ptr;
        code = buf_check(&url, err);
        buf_done(&url);
    }
    return code;
}

static enum bt_code read_all(void *self, struct doc map, struct bt_error *err)
{
    struct rag *r = self;
    static const char *const known[] = {"folder",       "database", "include",   "maxFiles",
                                        "maxFileBytes", "maxBytes", "embeddings"};
    enum bt_code code = settings_check_names(map, known, sizeof known / sizeof known[0], err);

    code = code == BT_OK ? read_folder(r, map, err) : code;
    code = code == BT_OK ? field_number(map, "maxFiles", 1, 1000000, &r->max_files, err) : code;
    code = code == BT_OK
               ? field_number(map, "maxFileBytes", 1, 64 * 1024 * 1024, &r->max_file_bytes, err)
               : code;
    code = code == BT_OK ? field_number(map, "maxBytes", 1024 * 1024, INT64_MAX, &r->max_bytes, err)
                         : code;
    if (code == BT_OK && read_embeddings(r, doc_get(map, STR_LIT("embeddings")), err) != BT_OK) {
        code = err_wrap(err, "embeddings");
    }
    return code;
}

enum bt_code rag_new(const char *settings_json, struct rag **ret, struct bt_error *err)
{
    struct rag *r = calloc(1, sizeof *r);
    enum bt_code code;

    if (r == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the settings");
    }
    r->max_files = 20000;
    r->max_file_bytes = 4 * 1024 * 1024;
    r->max_bytes = 2ull * 1024 * 1024 * 1024;
    r->embeddings.policy.secrets = &r->embeddings.secrets;
    code = settings_parse(settings_json, SETTINGS_BYTES, read_all, r, err);
    r->include = r->include != NULL ? r->include : INCLUDE;
    if (code != BT_OK) {
        rag_free(r);
        return code;
    }
    *ret = r;
    return BT_OK;
}

void rag_free(struct rag *r)
{
    if (r != NULL) {
        confine_done(&r->folder);
        secrets_done(&r->embeddings.secrets);
        arena_done(&r->arena);
        free(r);
    }
}
