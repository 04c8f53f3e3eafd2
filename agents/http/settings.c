#include "agents/http/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "agents/sdk/settings/settings.h"
#include "agents/web/settings.h"
#include "agents/web/url.h"
#include "protocol/limits.h"

enum {
    SETTINGS_BYTES = 1024 * 1024,
    SPEC_BYTES = 16 * 1024 * 1024,
    SPEC_DEPTH = 64,
    SPEC_NODES = 4 * 1000 * 1000,
    TIMEOUT_MS = 30000,
    TIMEOUT_MAX_MS = 60 * 60 * 1000,
    BODY_MAX = 64 * 1024 * 1024
};

static enum bt_code no_memory(struct bt_error *err)
{
    return err_set(err, BT_NOMEM, "out of memory for the settings");
}

static enum bt_code read_header_auth(struct http_settings *s, struct doc map, struct bt_error *err)
{
    static const char *const known[] = {"name", "value", "prefix"};
    enum bt_code code = settings_check_names(map, known, 3, err);

    s->auth.kind = HTTP_AUTH_HEADER;
    if (code == BT_OK) {
        code = field_text(&s->arena, map, "name", true, &s->auth.header, err);
    }
    if (code == BT_OK) {
        code = field_text(&s->arena, map, "prefix", false, &s->auth.prefix, err);
    }
    return code == BT_OK
               ? web_read_secret(&s->secrets, &s->arena, map, "value", &s->auth.secret, err)
               : code;
}

static enum bt_code read_oauth2(struct http_settings *s, struct doc map, struct bt_error *err)
{
    static const char *const known[] = {"tokenUrl", "clientId", "clientSecret",
                                        "scope",    "audience", "inBody"};
    enum bt_code code = settings_check_names(map, known, sizeof known / sizeof known[0], err);

    s->auth.kind = HTTP_AUTH_OAUTH2;
    if (code == BT_OK) {
        code = field_text(&s->arena, map, "tokenUrl", true, &s->auth.token_url, err);
    }
    if (code == BT_OK) {
        code = url_check(str_from(s->auth.token_url), s->policy.allow_http, err);
        code = code == BT_OK ? code : err_wrap(err, "tokenUrl");
    }
    if (code == BT_OK) {
        code = field_text(&s->arena, map, "clientId", true, &s->auth.user, err);
    }
    if (code == BT_OK) {
        code = field_text(&s->arena, map, "scope", false, &s->auth.scope, err);
    }
    if (code == BT_OK) {
        code = field_text(&s->arena, map, "audience", false, &s->auth.audience, err);
    }
    if (code == BT_OK) {
        code = field_bool(map, "inBody", &s->auth.in_body, err);
    }
    return code == BT_OK
               ? web_read_secret(&s->secrets, &s->arena, map, "clientSecret", &s->auth.secret, err)
               : code;
}

static enum bt_code read_basic(struct http_settings *s, struct doc map, struct bt_error *err)
{
    static const char *const known[] = {"user", "password"};
    enum bt_code code = settings_check_names(map, known, 2, err);

    s->auth.kind = HTTP_AUTH_BASIC;
    if (code == BT_OK) {
        code = field_text(&s->arena, map, "user", true, &s->auth.user, err);
    }
    return code == BT_OK
               ? web_read_secret(&s->secrets, &s->arena, map, "password", &s->auth.secret, err)
               : code;
}

static enum bt_code read_auth(struct http_settings *s, struct doc map, struct bt_error *err)
{
    static const char *const known[] = {"bearer", "basic", "header", "oauth2"};
    enum bt_code code;

    if (map.ptr == NULL) {
        return BT_OK;
    }
    code = settings_check_names(map, known, 4, err);
    if (code == BT_OK && doc_head(map).n != 1) {
        code = err_set(err, BT_INVALID, "expected one of bearer, basic, header, oauth2");
    }
    for (size_t i = 0; i < 4 && code == BT_OK; i++) {
        struct doc part = doc_get(map, str_from(known[i]));
        if (part.ptr == NULL) {
            continue;
        }
        if (i == 0) {
            s->auth.kind = HTTP_AUTH_BEARER;
            code = web_read_secret(&s->secrets, &s->arena, map, "bearer", &s->auth.secret, err);
            break;
        }
        code = i == 1   ? read_basic(s, part, err)
               : i == 2 ? read_header_auth(s, part, err)
                        : read_oauth2(s, part, err);
        code = code == BT_OK ? code : err_wrap(err, "%s", known[i]);
    }
    return code == BT_OK ? BT_OK : err_wrap(err, "auth");
}

static enum bt_code read_base(struct http_settings *s, struct doc map, struct bt_error *err)
{
    enum bt_code code = field_bool(map, "allowHttp", &s->policy.allow_http, err);
    const char *url = NULL;

    if (code == BT_OK) {
        code = field_text(&s->arena, map, "baseUrl", true, &url, err);
    }
    if (code == BT_OK) {
        struct str text = str_from(url);
        code = url_check(text, s->policy.allow_http, err);
        code = code == BT_OK ? code : err_wrap(err, "baseUrl");
        while (text.len > 0 && text.ptr[text.len - 1] == '/') {
            text.len--;
        }
        s->base_url = arena_str(&s->arena, text).ptr;
        code = code == BT_OK && s->base_url == NULL ? no_memory(err) : code;
    }
    return code;
}

/* ---- limits, headers ---- */

static enum bt_code read_rate(struct http_settings *s, struct doc map, struct bt_error *err)
{
    static const char *const known[] = {"n", "perMs"};
    uint64_t n = 0;
    enum bt_code code;

    if (map.ptr == NULL) {
        return BT_OK;
    }
    code = settings_check_names(map, known, 2, err);
    s->rate.per_ms = 1000;
    if (code == BT_OK) {
        code = field_number(map, "n", 1, HTTP_RATE_MAX, &n, err);
    }
    if (code == BT_OK) {
        code = field_number(map, "perMs", 1, TIMEOUT_MAX_MS, &s->rate.per_ms, err);
    }
    if (code == BT_OK && n == 0) {
        code = err_set(err, BT_INVALID, "n: is missing; requests within perMs (1000 by default)");
    }
    if (code != BT_OK) {
        return err_wrap(err, "rate");
    }
    s->rate.at = arena_alloc(&s->arena, n * sizeof *s->rate.at);
    s->rate.n = (uint32_t)n;
    return s->rate.at == NULL ? no_memory(err) : BT_OK;
}

static enum bt_code read_headers(struct http_settings *s, struct doc map, struct bt_error *err)
{
    struct doc d = doc_get(map, STR_LIT("headers"));
    struct doc_cursor c = doc_cursor(d);
    struct doc_head head = {.n = 0};

    if (d.ptr == NULL) {
        return BT_OK;
    }
    if (!doc_next(&c, &head) || head.kind != DOC_MAP || head.n > HTTP_HEADERS_MAX) {
        return err_set(err, BT_INVALID, "headers: expected an object of at most %d texts",
                       HTTP_HEADERS_MAX);
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str name = doc_string(doc_skip(&c));
        const struct doc value = doc_skip(&c);
        if (doc_head(value).kind != DOC_STR) {
            return err_set(err, BT_INVALID, "headers.%.*s: expected a text", STR_ARG(name));
        }
        if (http_header_check(name, doc_string(value), err) != BT_OK) {
            return err_wrap(err, "headers");
        }
    }
    s->headers = doc_copy(&s->arena, d);
    return s->headers.ptr == NULL ? no_memory(err) : BT_OK;
}

static enum bt_code read_limits(struct http_settings *s, struct doc map, struct bt_error *err)
{
    uint64_t bytes = LIMIT_RESULT_BYTES * 4;
    uint64_t retries = 2;
    enum bt_code code = field_number(map, "timeoutMs", 1, TIMEOUT_MAX_MS, &s->timeout_ms, err);

    if (code == BT_OK) {
        code = field_number(map, "maxBytes", 1, BODY_MAX, &bytes, err);
    }
    if (code == BT_OK) {
        code = field_number(map, "retries", 0, HTTP_RETRIES_MAX, &retries, err);
    }
    s->max_bytes = (size_t)bytes;
    s->retries = (uint32_t)retries;
    if (code == BT_OK) {
        code = read_rate(s, doc_get(map, STR_LIT("rate")), err);
    }
    return code == BT_OK ? read_headers(s, map, err) : code;
}

/* ---- actions ---- */

static enum bt_code read_actions(struct http_settings *s, struct doc map, struct bt_error *err)
{
    struct doc list = doc_get(map, STR_LIT("actions"));
    const uint32_t n = list.ptr == NULL ? 0 : doc_head(list).n;

    if (list.ptr != NULL && (doc_head(list).kind != DOC_ARRAY || n > LIMIT_SKILLS)) {
        return err_set(err, BT_INVALID, "actions: expected a list of at most %d actions",
                       LIMIT_SKILLS);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (http_action_read(&s->arena, doc_at(list, i), &s->actions[i], err) != BT_OK) {
            return err_wrap(err, "actions[%u]", i);
        }
        s->n++;
    }
    return BT_OK;
}

static enum bt_code read_file(const char *path, struct buf *out, struct bt_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = -1;

    if (fd < 0) {
        return err_set(err, BT_INVALID, "'%.200s': %s", path, strerror(errno));
    }
    do {
        uint8_t *room = buf_reserve(out, 65536);
        n = room == NULL ? -1 : read(fd, room, 65536);
        out->len += n > 0 ? (size_t)n : 0;
    } while (n > 0);
    (void)close(fd);
    return n == 0 ? BT_OK
                  : err_set(err, BT_INVALID, "'%.200s': cannot be read, or has more than %d bytes",
                            path, SPEC_BYTES);
}

static enum bt_code read_openapi(struct http_settings *s, struct doc map, struct bt_error *err)
{
    static const char *const known[] = {"file", "operations"};
    static const struct json_limits limits = {SPEC_BYTES, SPEC_DEPTH, SPEC_NODES};
    const char *const *globs = NULL;
    const char *path = NULL;
    struct buf json;
    struct buf doc;
    enum bt_code code;

    if (map.ptr == NULL) {
        return BT_OK;
    }
    buf_init(&json, SPEC_BYTES);
    buf_init(&doc, json_doc_capacity(SPEC_BYTES));
    code = settings_check_names(map, known, 2, err);
    if (code == BT_OK) {
        code = field_text(&s->arena, map, "file", true, &path, err);
    }
    if (code == BT_OK) {
        code = field_list(&s->arena, map, "operations", HTTP_LIST_MAX, &globs, err);
    }
    if (code == BT_OK) {
        code = read_file(path, &json, err);
    }
    if (code == BT_OK) {
        code = json_to_doc(buf_str(&json), &limits, &doc, err);
        code = code == BT_OK ? code : err_wrap(err, "%s (as JSON)", path);
    }
    if (code == BT_OK) {
        code = http_openapi_add(s, doc_from_buf(&doc), globs, err);
    }
    buf_done(&json);
    buf_done(&doc);
    return code == BT_OK ? BT_OK : err_wrap(err, "openapi");
}

static enum bt_code read_all(void *self, struct doc map, struct bt_error *err)
{
    struct http_settings *s = self;
    static const char *const known[] = {
        "agentId", "baseUrl", "headers",   "auth",     "allowHosts", "allowPrivate", "allowHttp",
        "caFile",  "rate",    "timeoutMs", "maxBytes", "retries",    "actions",      "openapi"};
    enum bt_code code = settings_check_names(map, known, sizeof known / sizeof known[0], err);

    if (code == BT_OK) {
        code = field_text(&s->arena, map, "agentId", false, &s->agent_id, err);
    }
    if (code == BT_OK) {
        code = read_base(s, map, err);
    }
    if (code == BT_OK) {
        code = read_limits(s, map, err);
    }
    if (code == BT_OK) {
        code = read_auth(s, doc_get(map, STR_LIT("auth")), err);
    }
    if (code == BT_OK) {
        const char *const own[] = {s->base_url, s->auth.token_url, NULL};
        code = web_read_policy(&s->arena, map, own, &s->policy, err);
    }
    if (code == BT_OK) {
        s->actions = arena_alloc(&s->arena, LIMIT_SKILLS * sizeof *s->actions);
        code = s->actions == NULL ? no_memory(err) : read_actions(s, map, err);
    }
    if (code == BT_OK) {
        code = read_openapi(s, doc_get(map, STR_LIT("openapi")), err);
    }
    if (code == BT_OK && s->n == 0) {
        code = err_set(err, BT_INVALID, "give actions, or openapi with a file that has operations");
    }
    return code;
}

enum bt_code http_settings_read(const char *json, struct http_settings **ret, struct bt_error *err)
{
    struct http_settings *s = calloc(1, sizeof *s);
    enum bt_code code;

    if (s == NULL) {
        return no_memory(err);
    }
    s->timeout_ms = TIMEOUT_MS;
    s->policy.secrets = &s->secrets;
    (void)pthread_mutex_init(&s->rate.lock, NULL);
    (void)pthread_mutex_init(&s->token_lock, NULL);
    code = settings_parse(json, SETTINGS_BYTES, read_all, s, err);
    if (code != BT_OK) {
        http_settings_free(s);
        return code;
    }
    *ret = s;
    return BT_OK;
}

void http_settings_free(struct http_settings *s)
{
    if (s != NULL) {
        explicit_bzero(s->token, sizeof s->token);
        secrets_done(&s->secrets);
        (void)pthread_mutex_destroy(&s->rate.lock);
        (void)pthread_mutex_destroy(&s->token_lock);
        arena_done(&s->arena);
        free(s);
    }
}

const struct http_action *http_settings_find(const struct http_settings *s, const char *id)
{
    if (id[0] == 0) {
        return s->n == 1 ? &s->actions[0] : NULL;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        if (strcmp(s->actions[i].id, id) == 0) {
            return &s->actions[i];
        }
    }
    return NULL;
}
