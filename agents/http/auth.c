/* Secret headers, and tokens of OAuth2 (RFC 6749, 4.4: client credentials). */
#include <string.h>

#include "agents/http/call.h"
#include "agents/sdk/documents/pointer.h"
#include "agents/web/url.h"
#include "protocol/base/clock.h"

enum {
    TOKEN_ANSWER_MAX = 64 * 1024,
    TOKEN_MS = 10000,
    EARLY_S = 60,
    LIFE_S = 300,
    LIFE_MAX_S = 86400
};

static void wipe(struct buf *b)
{
    if (b->at != NULL) {
        explicit_bzero(b->at, b->cap);
    }
    buf_done(b);
}

/* A text of bytes is base64 in JSON, between quotes. */
static void add_basic(struct buf *out, const char *user, const char *secret)
{
    struct buf pair;
    struct buf doc;
    struct buf json;

    buf_init(&pair, 2 * SECRET_BYTES_MAX);
    buf_init(&doc, 2 * SECRET_BYTES_MAX);
    buf_init(&json, 4 * SECRET_BYTES_MAX);
    buf_printf(&pair, "%s:%s", user, secret);
    doc_put_bin(&doc, pair.at, pair.len);
    if (doc_to_json(doc_from_buf(&doc), false, &json, NULL) == BT_OK && json.len > 2) {
        buf_printf(out, "Authorization: Basic %.*s", (int)json.len - 2, buf_cstr(&json) + 1);
    }
    wipe(&pair);
    wipe(&doc);
    wipe(&json);
}

static void add_form(struct buf *out, const char *name, const char *value)
{
    if (value != NULL) {
        buf_printf(out, "%s%s=", out->len > 0 ? "&" : "", name);
        url_escape(out, str_from(value));
    }
}

static bool is_cancelled(void *self)
{
    return bt_step_cancelled(self);
}

static enum bt_code read_token(struct http_settings *s, struct web_response *r, msec now,
                               struct bt_error *err)
{
    struct buf bytes;
    struct str token;
    struct doc_head expires = {.kind = DOC_NIL};
    uint64_t life = LIFE_S;
    enum bt_code code;

    buf_init(&bytes, json_doc_capacity(TOKEN_ANSWER_MAX));
    code = json_to_doc(buf_str(&r->body), NULL, &bytes, err);
    token = code == BT_OK ? doc_string(doc_get(doc_from_buf(&bytes), STR_LIT("access_token")))
                          : (struct str){0};
    if (code == BT_OK && (token.len == 0 || token.len >= sizeof s->token)) {
        code = err_set(err, BT_INVALID, "the answer has no access_token of at most %d bytes",
                       HTTP_TOKEN_MAX - 1);
    }
    for (size_t i = 0; code == BT_OK && i < token.len; i++) {
        if (token.ptr[i] <= ' ' || token.ptr[i] > '~') {
            code = err_set(err, BT_INVALID, "the access_token has characters that no header takes");
        }
    }
    if (code == BT_OK) {
        struct doc d = doc_get(doc_from_buf(&bytes), STR_LIT("expires_in"));
        expires = d.ptr == NULL ? expires : doc_head(d);
        if (expires.kind == DOC_UINT) {
            life = expires.u > LIFE_MAX_S ? LIFE_MAX_S : expires.u;
        }
        memcpy(s->token, token.ptr, token.len);
        s->token[token.len] = 0;
        /* It is asked for again a little early, so that none ends on its way. */
        s->token_until = now + 1000 * (life > 2 * EARLY_S ? life - EARLY_S : life / 2);
    }
    wipe(&bytes);
    return code;
}

static enum bt_code ask_for_token(struct http_call *c, struct bt_error *err)
{
    struct http_settings *s = c->s;
    const struct http_auth *auth = &s->auth;
    const msec now = clock_mono_ms();
    const char *const headers[] = {"Content-Type: application/x-www-form-urlencoded",
                                   "Accept: application/json", NULL};
    const char *secret_headers[2] = {NULL, NULL};
    struct web_response r = {0};
    struct buf form;
    struct buf basic;
    enum bt_code code;

    buf_init(&form, 4 * SECRET_BYTES_MAX);
    buf_init(&basic, 4 * SECRET_BYTES_MAX);
    add_form(&form, "grant_type", "client_credentials");
    add_form(&form, "scope", auth->scope);
    add_form(&form, "audience", auth->audience);
    add_form(&form, "client_id", auth->in_body ? auth->user : NULL);
    add_form(&form, "client_secret", auth->in_body ? auth->secret : NULL);
    add_basic(&basic, auth->user, auth->secret);
    secret_headers[0] = auth->in_body ? NULL : buf_cstr(&basic);
    const struct web_request request = {.method = "POST",
                                        .url = auth->token_url,
                                        .headers = headers,
                                        .secret_headers = secret_headers,
                                        .body = buf_str(&form),
                                        .timeout_ms = c->deadline > now + TOKEN_MS ? TOKEN_MS
                                                      : c->deadline > now ? c->deadline - now
                                                                          : 1,
                                        .max_bytes = TOKEN_ANSWER_MAX,
                                        .cancelled = is_cancelled,
                                        .self = c->step};
    code = web_call(&s->policy, &request, &r, err);
    if (code == BT_OK && r.status != 200) {
        code = err_set(err, r.status >= 500 || r.status == 429 ? BT_UNAVAILABLE : BT_UNAUTHORIZED,
                       "status %ld", r.status);
    }
    if (code == BT_OK) {
        code = read_token(s, &r, now, err);
    }
    wipe(&form);
    wipe(&basic);
    wipe(&r.body);
    web_response_done(&r);
    return code == BT_OK ? BT_OK : err_wrap(err, "no token from %s", auth->token_url);
}

static enum bt_code add_token(struct http_call *c, bool anew, struct buf *out, struct bt_error *err)
{
    struct http_settings *s = c->s;
    enum bt_code code = BT_OK;

    (void)pthread_mutex_lock(&s->token_lock);
    if (anew || s->token[0] == 0 || clock_mono_ms() >= s->token_until) {
        s->token[0] = 0;
        code = ask_for_token(c, err);
    }
    if (code == BT_OK) {
        buf_printf(out, "Authorization: Bearer %s", s->token);
    }
    (void)pthread_mutex_unlock(&s->token_lock);
    return code;
}

enum bt_code http_auth_headers(struct http_call *c, struct arena *a, bool anew, const char *ret[2],
                               struct bt_error *err)
{
    const struct http_auth *auth = &c->s->auth;
    struct buf line;
    enum bt_code code = BT_OK;

    ret[0] = NULL;
    ret[1] = NULL;
    buf_init(&line, HTTP_TOKEN_MAX + 4 * SECRET_BYTES_MAX);
    switch (auth->kind) {
    case HTTP_AUTH_NONE:
        break;
    case HTTP_AUTH_BEARER:
        buf_printf(&line, "Authorization: Bearer %s", auth->secret);
        break;
    case HTTP_AUTH_BASIC:
        add_basic(&line, auth->user, auth->secret);
        break;
    case HTTP_AUTH_HEADER:
        buf_printf(&line, "%s: %s%s", auth->header, auth->prefix != NULL ? auth->prefix : "",
                   auth->secret);
        break;
    case HTTP_AUTH_OAUTH2:
        code = add_token(c, anew, &line, err);
        break;
    }
    if (code == BT_OK && line.len > 0) {
        ret[0] = arena_str(a, buf_str(&line)).ptr;
        code = ret[0] == NULL ? err_set(err, BT_NOMEM, "out of memory for a request") : BT_OK;
    }
    wipe(&line);
    return code;
}

void http_redact(struct http_settings *s, struct buf *text)
{
    struct secrets own = {.n = 0};

    secrets_redact(&s->secrets, text);
    (void)pthread_mutex_lock(&s->token_lock);
    if (s->token[0] != 0) {
        own.at[own.n++] = s->token;
        secrets_redact(&own, text);
    }
    (void)pthread_mutex_unlock(&s->token_lock);
}
