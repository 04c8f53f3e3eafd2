#include "agents/llm/model/config.h"

#include <math.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/llm/model/config_internal.h"
#include "agents/llm/model/dialect.h"
#include "agents/llm/model/rules.h"
#include "agents/web/url.h"
#include "protocol/base/arena.h"

enum { TIMEOUT_MS = 120000, CONNECT_MS = 10000, IDLE_MS = 60000, BYTES = 8 * 1024 * 1024 };

static const char *text(const cJSON *map, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(map, name);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

static double number(const cJSON *map, const char *name, double fallback)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(map, name);
    return cJSON_IsNumber(item) ? item->valuedouble : fallback;
}

static bool flag(const cJSON *map, const char *name, bool fallback)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(map, name);
    return cJSON_IsBool(item) ? cJSON_IsTrue(item) : fallback;
}

/* ---- headers ---- */

static bool header_name(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
    return n > 0 && s[n] == 0;
}

static bool header_value(const char *s)
{
    for (; *s != 0; s++) {
        if ((unsigned char)*s < ' ' || *s == 0x7f) {
            return false;
        }
    }
    return true;
}

/* Settings are shown to people; a header that authorises must come from a key source. */
static bool is_secret_header(const char *name)
{
    static const char *const words[] = {"authorization", "key", "token", "cookie", "secret"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasestr(name, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static enum bt_code read_headers(struct llm_config *c, struct llm_provider *p, const cJSON *map,
                                 struct bt_error *err)
{
    const cJSON *item = NULL;
    uint32_t n = 0;
    struct buf line;

    c->member = "headers";
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(map, "headers"))
    {
        if (!header_name(item->string) || !header_value(item->valuestring)) {
            return err_set(err, BT_INVALID, "headers: '%.40s' is no header", item->string);
        }
        if (is_secret_header(item->string)) {
            return err_set(err, BT_INVALID,
                           "headers: '%.40s' may carry a secret; use keyFile and keyHeader",
                           item->string);
        }
        buf_init(&line, 2048);
        buf_printf(&line, "%s: %s", item->string, item->valuestring);
        p->headers[n++] = arena_str(c->arena, buf_str(&line)).ptr;
        buf_done(&line);
        if (p->headers[n - 1] == NULL) {
            return err_set(err, BT_NOMEM, "out of memory for headers");
        }
    }
    if (p->dialect == LLM_ANTHROPIC) {
        p->headers[n] = "anthropic-version: 2023-06-01";
    }
    c->member = "keyHeader";
    p->key_header = text(map, "keyHeader");
    if (p->key_header != NULL && !header_name(p->key_header)) {
        return err_set(err, BT_INVALID, "keyHeader: '%.40s' is no header", p->key_header);
    }
    return BT_OK;
}

/* ---- a provider ---- */

enum bt_code llm_key_find(const cJSON *map, struct key_source *ret, struct bt_error *err)
{
    static const struct key_source sources[] = {{"keyEnv", SECRET_ENV, NULL},
                                                {"keyFile", SECRET_FILE, NULL},
                                                {"keyCredential", SECRET_CREDENTIAL, NULL}};
    uint32_t given = 0;

    *ret = (struct key_source){.source = SECRET_NONE};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        const char *name = text(map, sources[i].member);
        if (name != NULL) {
            *ret = (struct key_source){sources[i].member, sources[i].source, name};
            given++;
        }
    }
    return given <= 1 ? BT_OK
                      : err_set(err, BT_INVALID, "expected one of keyEnv, keyFile, keyCredential");
}

static enum bt_code read_key(struct llm_config *c, struct llm_provider *p, const cJSON *map,
                             struct bt_error *err)
{
    struct key_source from;
    enum bt_code code = llm_key_find(map, &from, err);

    c->member = from.member;
    if (code == BT_OK && from.name != NULL && c->replay == NULL && !c->rules_only) {
        code = secrets_load(&c->secrets, from.source, from.name, &p->key, err);
        return code == BT_OK ? BT_OK : err_wrap(err, "%s", from.member);
    }
    return code;
}

static void read_numbers(struct llm_provider *p, const cJSON *map)
{
    const cJSON *breaker = cJSON_GetObjectItemCaseSensitive(map, "breaker");
    const cJSON *price = cJSON_GetObjectItemCaseSensitive(map, "price");

    p->timeout_ms = (msec)number(map, "timeoutMs", TIMEOUT_MS);
    p->connect_ms = (msec)number(map, "connectTimeoutMs", CONNECT_MS);
    p->idle_ms = (msec)number(map, "idleTimeoutMs", IDLE_MS);
    p->max_bytes = (size_t)number(map, "maxBytes", BYTES);
    p->attempts = (uint32_t)number(map, "attempts", 3);
    p->backoff_ms = (msec)number(map, "backoffMs", 500);
    p->max_wait_ms = (msec)number(map, "maxWaitMs", 20000);
    p->breaker_failures = (uint32_t)number(breaker, "failures", 5);
    p->breaker_ms = (msec)number(breaker, "cooldownMs", 30000);
    p->priced = price != NULL;
    p->price.input = number(price, "input", 0);
    p->price.output = number(price, "output", 0);
    p->price.cached = number(price, "cached", p->price.input);
}

static enum bt_code read_url(struct llm_config *c, struct llm_provider *p, const cJSON *map,
                             struct bt_error *err)
{
    struct buf url;
    struct str base = str_from(text(map, "baseUrl"));
    enum bt_code code;

    c->member = "baseUrl";
    while (base.len > 0 && base.ptr[base.len - 1] == '/') {
        base.len--;
    }
    code = url_check(base, p->allow_http || p->unix_socket != NULL, err);
    if (code != BT_OK) {
        return err_wrap(err, "baseUrl");
    }
    if (p->proxy != NULL && !p->allow_http && !url_is_https(base)) {
        c->member = "proxy";
        return err_set(err, BT_INVALID, "proxy: http through a proxy needs allowHttp: true");
    }
    buf_init(&url, 4096);
    buf_add_str(&url, base);
    buf_add_cstr(&url, dialect_path(p->dialect));
    p->url = arena_str(c->arena, buf_str(&url)).ptr;
    buf_done(&url);
    return p->url == NULL ? err_set(err, BT_NOMEM, "out of memory for a URL") : BT_OK;
}

enum bt_code llm_provider_read(struct llm_config *c, const cJSON *map, struct bt_error *err)
{
    static const char *const output_modes[] = {"schema", "object", "text"};
    struct llm_provider *p = &c->providers[c->n];
    const char *output_mode = text(map, "structured");
    enum bt_code code;

    p->dialect = dialect_from_name(str_from(text(map, "api")));
    p->model = text(map, "model");
    p->id = text(map, "id") != NULL ? text(map, "id") : p->model;
    p->extra = cJSON_GetObjectItemCaseSensitive(map, "body");
    p->stream = flag(map, "stream", true);
    p->allow_http = flag(map, "allowHttp", false);
    p->ca_file = text(map, "caFile");
    p->proxy = text(map, "proxy");
    p->unix_socket = text(map, "unixSocket");
    for (unsigned i = 0; output_mode != NULL && i < LLM_OUTPUT_MODE_COUNT; i++) {
        p->output_mode =
            strcmp(output_mode, output_modes[i]) == 0 ? (enum llm_output_mode)i : p->output_mode;
    }
    read_numbers(p, map);
    code = read_url(c, p, map, err);
    if (code == BT_OK) {
        code = read_headers(c, p, map, err);
    }
    return code == BT_OK ? read_key(c, p, map, err) : code;
}

/* Two providers may share a variable, so all variables are wiped at the end. */
static void forget_variables(const cJSON *list)
{
    const cJSON *map = NULL;

    cJSON_ArrayForEach(map, list)
    {
        if (text(map, "keyEnv") != NULL) {
            secrets_forget_env(text(map, "keyEnv"));
        }
    }
}

enum bt_code llm_config_make(cJSON *tree, struct llm_config **ret, struct bt_error *err)
{
    struct llm_config *c = calloc(1, sizeof *c);

    if (c == NULL || (c->arena = calloc(1, sizeof *c->arena)) == NULL) {
        free(c);
        return err_set(err, BT_NOMEM, "out of memory for the providers");
    }
    c->tree = tree;
    c->record = text(tree, "record");
    c->replay = text(tree, "replay");
    *ret = c;
    return BT_OK;
}

enum bt_code llm_one_recording(const struct llm_config *c, struct bt_error *err)
{
    return c->record == NULL || c->replay == NULL
               ? BT_OK
               : err_set(err, BT_INVALID, "expected record or replay, not both");
}

enum bt_code llm_config_read(cJSON *tree, struct llm_config **ret, struct bt_error *err)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(tree, "providers");
    struct llm_config *c = NULL;
    const cJSON *map = NULL;
    enum bt_code code = llm_config_make(tree, &c, err);

    if (code != BT_OK) {
        cJSON_Delete(tree);
        return code;
    }
    code = llm_rules_require(LLM_RULES_CLIENT, tree, err);
    if (code == BT_OK) {
        cJSON_ArrayForEach(map, list)
        {
            code = llm_provider_read(c, map, err);
            if (code != BT_OK) {
                code = err_wrap(err, "providers[%u]", c->n);
                break;
            }
            c->n++;
        }
        forget_variables(list);
    }
    if (code == BT_OK) {
        code = llm_one_recording(c, err);
    }
    if (code != BT_OK) {
        secrets_redact_error(&c->secrets, err);
        llm_config_free(c);
        return code;
    }
    *ret = c;
    return BT_OK;
}

void llm_config_free(struct llm_config *c)
{
    if (c != NULL) {
        secrets_done(&c->secrets);
        arena_done(c->arena);
        free(c->arena);
        cJSON_Delete(c->tree);
        free(c);
    }
}

uint64_t llm_cost(const struct llm_provider *p, const struct llm_usage *usage)
{
    uint64_t cached = usage->cached < usage->input ? usage->cached : usage->input;
    double micros = (double)(usage->input - cached) * p->price.input +
                    (double)cached * p->price.cached + (double)usage->output * p->price.output;

    return (uint64_t)ceil(micros);
}
