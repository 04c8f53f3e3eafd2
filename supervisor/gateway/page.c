/* The dashboard: its files, and the log-in of its pages. */
#include <stdio.h>

#include "protocol/base/clock.h"
#include "protocol/wire/msg_table.h"
#include "supervisor/gateway/assets.h"
#include "supervisor/gateway/http.h"

/* Scripts and styles of ours alone, no inline code, no other page around it; and text cannot become
 * markup by mistake (Trusted Types). */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

static const struct asset *asset_find(const struct uri *uri)
{
    struct str name = STR_LIT("index.html");

    if (uri->segments_n == 3) {
        if (!str_is(uri->segments[1], assets_version)) {
            return NULL;
        }
        name = uri->segments[2];
    }
    for (size_t i = 0; i < assets_n; i++) {
        if (str_is(name, assets[i].name)) {
            return &assets[i];
        }
    }
    return NULL;
}

static void cookie_name(const struct http *h, char *ret, size_t n)
{
    (void)snprintf(ret, n, "%sbaton-%u", h->s->opt->tls != NULL ? "__Host-" : "", h->s->port);
}

bool page_bearer(struct http *h)
{
    char name[32];
    struct str cookie;

    if (h->heads.cookie == NULL || h->heads.page == NULL) {
        return false;
    }
    cookie_name(h, name, sizeof name);
    cookie = login_cookie_find(str_from(h->heads.cookie), name);
    return login_unseal(h->s->parts.login, str_from(h->heads.page), cookie, clock_wall_ms(),
                        &h->bearer);
}

static void put_cookie(struct http *h, const char *value, unsigned seconds)
{
    char name[32];

    cookie_name(h, name, sizeof name);
    buf_clear(&h->cookie);
    buf_printf(&h->cookie, "%s=%s; Path=/; Max-Age=%u; HttpOnly; SameSite=Strict%s", name, value,
               seconds, h->s->opt->tls != NULL ? "; Secure" : "");
}

/* {page, until, info}, and the cookie: the daemon took what the person logged in with. */
static void answer_login(struct http *h, struct doc info)
{
    const msec until = clock_wall_ms() + LOGIN_MS;
    char half[2 * LOGIN_HALF_BYTES + 1];
    struct buf cookie;
    struct buf map;

    buf_init(&cookie, LOGIN_COOKIE_MAX + 1);
    buf_init(&map, 64 * 1024);
    if (!login_seal(h->s->parts.login, buf_str(&h->bearer), until, half, &cookie)) {
        http_refuse(h, BT_INTERNAL, 0, "bearer", "it cannot be sealed");
    } else {
        put_cookie(h, buf_cstr(&cookie), LOGIN_MS / 1000);
        doc_put_map(&map, 3);
        doc_put_cstr(&map, "page");
        doc_put_cstr(&map, half);
        doc_put_cstr(&map, "until");
        doc_put_u64(&map, (uint64_t)until);
        doc_put_cstr(&map, "info");
        doc_put_doc(&map, info);
        h->status = 200;
        h->type = "application/json";
        h->state = HTTP_READY;
        if (buf_check(&map, NULL) != BT_OK ||
            doc_to_json(doc_from_buf(&map), false, &h->out, NULL) != BT_OK) {
            http_refuse(h, BT_NOMEM, 503, "", "out of memory for the answer");
        }
    }
    explicit_bzero(half, sizeof half);
    buf_done(&cookie);
    buf_done(&map);
}

static void login_take(void *http, const struct reply *reply)
{
    struct http *h = http;

    h->call = NULL;
    if (!reply->ok) {
        http_problem(h, &reply->problem);
    } else {
        answer_login(h, reply->body);
    }
    http_ready(h);
}

/* The bearer of {"bearer": "..."}; empty: the body is something else. */
static void read_body(struct http *h)
{
    struct buf doc;
    struct doc value;
    struct str text;

    buf_init(&doc, 8192);
    if (json_to_doc(buf_str(&h->body), NULL, &doc, NULL) == BT_OK) {
        value = doc_get(doc_from_buf(&doc), STR_LIT("bearer"));
        text = value.ptr == NULL ? (struct str){"", 0} : str_trimmed(doc_string(value));
        buf_add_str(&h->bearer, text.len <= LOGIN_BEARER_MAX ? text : (struct str){"", 0});
    }
    if (doc.at != NULL) {
        explicit_bzero(doc.at, doc.len);
    }
    buf_done(&doc);
}

static void log_in(struct http *h)
{
    static const uint8_t none[] = {0x80}; /* msgpack: an empty map */
    const struct call_spec spec = {.type = MSG_supervisor_info,
                                   .answer = MSG_supervisor_info_ok,
                                   .fields = {none, sizeof none},
                                   .reads = true,
                                   .done = login_take,
                                   .self = h};
    struct bt_error err;

    if (h->heads.origin == NULL) {
        http_refuse(h, BT_UNAUTHORIZED, 403, "Origin",
                    "a log-in is of a page: expected the header Origin; programs send "
                    "Authorization with each request instead");
        return;
    }
    read_body(h);
    if (h->bearer.len == 0) {
        http_refuse(h, BT_INVALID, 400, "bearer",
                    "expected {\"bearer\": TEXT}: the text of the file `token` of the state "
                    "directory, or ID:KEY of a credential");
    } else if (http_take_bearer(h, "bearer")) {
        if (caller_call(h->caller, &spec, h->s->now, &h->call, &err) == BT_OK) {
            http_wait(h);
        } else {
            http_refuse(h, err.code, 0, "", err.msg);
        }
    }
}

void page_serve_file(struct http *h)
{
    const struct asset *asset = asset_find(&h->uri);

    if (asset == NULL) {
        http_refuse(h, BT_NOT_FOUND, 404, "",
                    "the dashboard has no such file; another build has other addresses: load the "
                    "page again");
        return;
    }
    h->status = 200;
    h->type = asset->type;
    h->policy = policy;
    h->keep = h->uri.segments_n > 0;
    buf_add(&h->out, asset->bytes, asset->len);
    h->state = HTTP_READY;
}

void page_serve_session(struct http *h)
{
    if (h->method == HTTP_DELETE) {
        put_cookie(h, "", 0);
        h->status = 204;
        h->type = NULL;
        h->state = HTTP_READY;
    } else {
        log_in(h);
    }
}
