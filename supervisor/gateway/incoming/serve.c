/* Requests of others that start recipes. */
#include <inttypes.h>
#include <mbedtls/md.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "protocol/auth/mac.h"
#include "protocol/base/clock.h"
#include "supervisor/gateway/http.h"
#include "supervisor/gateway/incoming/incoming_internal.h"
#include "supervisor/gateway/json.h"
#include "supervisor/gateway/telemetry/telemetry.h"
#include "supervisor/gateway/watch.h"
#include "supervisor/gateway/webhook/sign.h"

enum { SHA_BYTES = 32, KEY_MAX = 1024 };

static struct str header(const struct http *h, const char *name)
{
    return str_from(MHD_lookup_connection_value(h->mhd, MHD_HEADER_KIND, name));
}

static bool hmac(struct str key, struct str text, uint8_t ret[SHA_BYTES])
{
    return mbedtls_md_hmac(mbedtls_md_info_from_type(MBEDTLS_MD_SHA256), (const uint8_t *)key.ptr,
                           key.len, (const uint8_t *)text.ptr, text.len, ret) == 0;
}

/* Equal in a time that tells nothing of where they differ, or how long the
 * secret is. */
static bool same(struct str a, struct str b)
{
    static const struct str fixed = {"compare", 7};
    uint8_t x[SHA_BYTES];
    uint8_t y[SHA_BYTES];

    return hmac(fixed, a, x) && hmac(fixed, b, y) && auth_equal(x, y, sizeof x);
}

static bool fits_token(const struct incoming_hook *k, struct http *h, struct str secret)
{
    static const char bearer[] = "Bearer ";
    struct str given = header(h, k->header);

    if (strcasecmp(k->header, "Authorization") == 0) {
        if (given.len < sizeof bearer || strncasecmp(given.ptr, bearer, sizeof bearer - 1) != 0) {
            return false;
        }
        given = (struct str){given.ptr + sizeof bearer - 1, given.len - (sizeof bearer - 1)};
    }
    return given.len > 0 && same(given, secret);
}

static bool fits_hmac(const struct incoming_hook *k, struct http *h, struct str secret)
{
    static const char prefix[] = "sha256=";
    struct str given = header(h, k->header);
    uint8_t expected[SHA_BYTES];
    uint8_t mac[SHA_BYTES];

    if (given.len > sizeof prefix - 1 && memcmp(given.ptr, prefix, sizeof prefix - 1) == 0) {
        given = (struct str){given.ptr + sizeof prefix - 1, given.len - (sizeof prefix - 1)};
    }
    return auth_unhex(given, mac, sizeof mac) && hmac(secret, buf_str(&h->body), expected) &&
           auth_equal(mac, expected, sizeof mac);
}

static bool fits_standard(struct http *h, const struct sign_secrets *all)
{
    const struct str id = header(h, "webhook-id");
    const struct str given = header(h, "webhook-signature");
    const uint64_t now = clock_wall_ms() / 1000;
    uint64_t at = 0;
    bool fits = false;

    if (id.len == 0 || id.len > KEY_MAX || given.len > KEY_MAX ||
        !fields_number(header(h, "webhook-timestamp"), UINT32_MAX, &at) ||
        at + INCOMING_AGE_S < now || at > now + INCOMING_AGE_S) {
        return false;
    }
    for (uint32_t i = 0; i < all->n; i++) {
        struct sign_secrets one = {.n = 1};
        struct buf mac;
        memcpy(one.at[0], all->at[i], all->len[i]);
        one.len[0] = all->len[i];
        buf_init(&mac, 128);
        if (sign_put(&one, id, at, buf_str(&h->body), &mac, NULL) == BT_OK) {
            for (size_t from = 0; from + mac.len <= given.len; from++) {
                const bool begins = from == 0 || given.ptr[from - 1] == ' ';
                fits = fits ||
                       (begins && auth_equal((const uint8_t *)given.ptr + from, mac.at, mac.len));
            }
        }
        buf_done(&mac);
        sign_forget(&one);
    }
    return fits;
}

/* One secret, or two with a line or space between, while one takes the place of
 * the other. */
static bool fits_any(const struct incoming_hook *k, struct http *h, struct str text)
{
    bool fits = false;

    text = str_trimmed(text);
    while (text.len > 0) {
        size_t n = 0;
        while (n < text.len && !str_is_space(text.ptr[n])) {
            n++;
        }
        if (n >= INCOMING_SECRET_MIN) {
            const struct str secret = {text.ptr, n};
            fits |=
                k->scheme == INCOMING_TOKEN ? fits_token(k, h, secret) : fits_hmac(k, h, secret);
        }
        text = str_trimmed((struct str){text.ptr + n, text.len - n});
    }
    return fits;
}

/* Counts a request that proved nothing. What is genuine is not counted and
 * never waits, so that nobody can lock its sender out; secrets are too long to
 * be guessed at any speed. */
static void refuse(struct incoming_hook *k, struct http *h)
{
    struct problem p = {.code = BT_BUSY, .status = 429};

    if (h->s->now - k->since >= INCOMING_FAILURES_MS) {
        k->since = h->s->now;
        k->failures = 0;
    }
    if (k->failures < INCOMING_FAILURES_MAX) {
        k->failures++;
        http_refuse(h, BT_UNAUTHORIZED, 401, k->header,
                    "the secret or signature is not that of this hook");
        return;
    }
    p.message = STR_LIT("too many requests of this hook proved nothing; come back later");
    p.retry_after_ms = k->since + INCOMING_FAILURES_MS - h->s->now;
    http_problem(h, &p);
}

/* False after refusing. */
static bool is_genuine(struct incoming_hook *k, struct http *h)
{
    struct sign_secrets secrets;
    char text[SIGN_TEXT_MAX];
    struct bt_error err;
    bool fits;

    if (hook_secret_read(&k->secret, text, sizeof text, &err) != BT_OK) {
        http_refuse(h, BT_UNAVAILABLE, 503, "", "the secret of this hook cannot be read here");
        return false;
    }
    if (k->scheme == INCOMING_STANDARD) {
        fits = sign_read(str_from(text), &secrets, &err) == BT_OK && fits_standard(h, &secrets);
        sign_forget(&secrets);
    } else {
        fits = fits_any(k, h, str_from(text));
    }
    explicit_bzero(text, sizeof text);
    if (!fits) {
        refuse(k, h);
    }
    return fits;
}

/* ---- the plan ---- */

static struct incoming_hook *hook_of(struct http *h)
{
    return incoming_find(h->s->parts.incoming,
                         h->params.n > 0 ? h->params.at[0].value : (struct str){NULL, 0});
}

static void on_submitted(void *self, const struct reply *reply)
{
    struct http *h = self;
    struct incoming_hook *k = hook_of(h);

    h->call = NULL;
    if (!reply->ok) {
        http_problem(h, &reply->problem);
        incoming_note(h->s->parts.incoming, k, h->status, (struct str){NULL, 0});
        http_ready(h);
        return;
    }
    incoming_note(h->s->parts.incoming, k, 202,
                  doc_string(doc_get(reply->body, STR_LIT("planId"))));
    telemetry_note_plan(h, reply->body, (struct doc){.ptr = NULL});
    h->status = 202;
    h->type = "application/json";
    h->state = HTTP_READY;
    json_open(&h->out, '{');
    json_member(&h->out, "planId", doc_string(doc_get(reply->body, STR_LIT("planId"))));
    json_close(&h->out, '}');
    http_ready(h);
}

/* "hook:NAME:" and a digest of the key. False after refusing; "" = there is
 * none. */
static bool put_key(const struct incoming_hook *k, struct http *h, struct doc body, char ret[128])
{
    const struct doc at = k->key_pointer == NULL ? (struct doc){.ptr = NULL}
                                                 : pointer_find(body, str_from(k->key_pointer));
    struct str key = k->key_header != NULL ? header(h, k->key_header) : (struct str){NULL, 0};
    uint8_t digest[SHA_BYTES];
    char hex[2 * SHA_BYTES + 1];

    ret[0] = 0;
    if (k->key_header == NULL && k->key_pointer == NULL) {
        return true;
    }
    if (at.ptr != NULL) {
        key = (struct str){(const char *)at.ptr, at.len};
    }
    if (key.len == 0 || key.len > KEY_MAX || !hmac(STR_LIT("hook"), key, digest)) {
        http_refuse(h, BT_INVALID, 400, k->key_header != NULL ? k->key_header : k->key_pointer,
                    "the key of this request is missing, or has more than 1024 bytes");
        return false;
    }
    auth_hex(digest, sizeof digest, hex);
    (void)snprintf(ret, 128, "hook:%.64s:%.40s", k->name, hex);
    return true;
}

static void submit(struct http *h, struct doc plan, const char *key)
{
    struct caller *caller = watch_caller(h->s->parts.watch, h->s->now);
    struct call_spec spec = {.type = MSG_plan_submit,
                             .answer = MSG_plan_submit_ok,
                             .traceparent = str_from(h->heads.traceparent),
                             .done = on_submitted,
                             .self = h};
    struct bt_error err;
    struct buf fields;

    if (caller == NULL) {
        http_refuse(h, BT_UNAVAILABLE, 503, "", "the gateway has no token of its daemon now");
        return;
    }
    h->caller = caller_keep(caller);
    buf_init(&fields, LIMIT_CONTROL_BYTES);
    doc_put_map(&fields, 1u + (key[0] != 0));
    doc_put_cstr(&fields, "plan");
    doc_put_doc(&fields, plan);
    if (key[0] != 0) {
        doc_put_cstr(&fields, "clientKey");
        doc_put_cstr(&fields, key);
    }
    spec.fields = doc_from_buf(&fields);
    if (buf_check(&fields, &err) != BT_OK ||
        caller_call(h->caller, &spec, h->s->now, &h->call, &err) != BT_OK) {
        http_refuse(h, err.code, 0, "", err.msg);
    } else {
        http_wait(h);
    }
    buf_done(&fields);
}

static void fill_and_submit(const struct incoming_hook *k, struct http *h, struct doc body)
{
    struct bt_error err;
    struct buf plan;
    char key[128];

    if (!put_key(k, h, body, key)) {
        return;
    }
    buf_init(&plan, LIMIT_CONTROL_BYTES);
    if (incoming_fill(k, body, &plan, &err) != BT_OK) {
        http_refuse(h, err.code, 0, "", err.msg);
    } else {
        submit(h, doc_from_buf(&plan), key);
    }
    buf_done(&plan);
}

static void serve(struct incoming_hook *k, struct http *h)
{
    struct bt_error err;
    struct buf body;

    if (!is_genuine(k, h)) {
        return;
    }
    buf_init(&body, json_doc_capacity(h->body.len));
    if (json_to_doc(h->body.len > 0 ? buf_str(&h->body) : STR_LIT("{}"), NULL, &body, &err) !=
        BT_OK) {
        http_refuse(h, BT_INVALID, 400, "", err.msg);
    } else {
        fill_and_submit(k, h, doc_from_buf(&body));
    }
    buf_done(&body);
}

void incoming_serve(struct http *h)
{
    struct incoming_hook *k = hook_of(h);

    if (k == NULL) {
        http_refuse(h, BT_NOT_FOUND, 404, "", "there is no hook of this name");
        return;
    }
    serve(k, h);
    if (h->state != HTTP_WAITS) {
        incoming_note(h->s->parts.incoming, k, h->status, (struct str){NULL, 0});
    }
}
