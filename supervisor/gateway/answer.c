/* An answer of the daemon as one of HTTP: the body without the envelope, and what of it are
 * headers. */
#include <inttypes.h>
#include <stdio.h>

#include "protocol/wire/msg_table.h"
#include "supervisor/gateway/json.h"
#include "supervisor/gateway/server_internal.h"
#include "supervisor/gateway/telemetry/telemetry.h"
#include "supervisor/gateway/translate.h"

static bool is_envelope(struct str name)
{
    return str_is(name, "v") || str_is(name, "type") || str_is(name, "id") || str_is(name, "ok");
}

/* The fields without those of the envelope, as JSON. */
enum bt_code answer_body(struct doc whole, struct buf *out)
{
    struct doc_cursor at = doc_cursor(whole);
    struct doc_head head;
    struct buf pairs;
    struct buf map;
    uint32_t n = 0;
    enum bt_code code;
    size_t from;

    buf_init(&pairs, LIMIT_STEP_BYTES);
    buf_init(&map, LIMIT_STEP_BYTES + 16);
    (void)doc_next(&at, &head);
    for (uint32_t i = 0; i < head.n; i++) {
        struct doc_cursor pair = at;
        struct doc_head key;
        const struct doc name = doc_skip(&at);
        const struct doc value = doc_skip(&at);
        (void)doc_next(&pair, &key);
        if (!is_envelope(key.str)) {
            doc_put_doc(&pairs, name);
            doc_put_doc(&pairs, value);
            n++;
        }
    }
    doc_put_map(&map, n);
    buf_add(&map, pairs.at, pairs.len);
    code = buf_check(&pairs, NULL);
    code = code == BT_OK ? buf_check(&map, NULL) : code;
    from = out->len;
    code = code == BT_OK ? doc_to_json(doc_from_buf(&map), false, out, NULL) : code;
    if (code == BT_OK) {
        json_tame(out, from);
        code = buf_check(out, NULL);
    }
    buf_done(&pairs);
    buf_done(&map);
    return code;
}

void answer_encode(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            strchr("-._~", c) != NULL) {
            buf_add_byte(out, (uint8_t)c);
        } else {
            buf_printf(out, "%%%02X", (unsigned char)c);
        }
    }
}

static void add_param(struct buf *out, struct str name, struct str value)
{
    buf_add_byte(out, memchr(out->at, '?', out->len) == NULL ? '?' : '&');
    answer_encode(out, name);
    buf_add_byte(out, '=');
    answer_encode(out, value);
}

/* The same address with the cursor of the next page. */
static void write_link(struct http *h, struct doc body)
{
    const struct doc cursor = doc_get(body, STR_LIT("cursor"));
    const struct doc_head head =
        cursor.ptr == NULL ? (struct doc_head){.kind = DOC_NIL} : doc_head(cursor);
    char number[24];

    if (h->route->method != HTTP_GET || head.kind == DOC_NIL ||
        route_field(h->route, STR_LIT("cursor")) == NULL) {
        return;
    }
    (void)snprintf(number, sizeof number, "%" PRIu64, head.u);
    buf_add_cstr(&h->link, "<");
    for (uint32_t i = 0; i < h->uri.segments_n; i++) {
        buf_add_byte(&h->link, '/');
        answer_encode(&h->link, h->uri.segments[i]);
    }
    for (uint32_t i = 0; i < h->uri.params_n; i++) {
        if (!str_is(h->uri.params[i].name, "cursor")) {
            add_param(&h->link, h->uri.params[i].name, h->uri.params[i].value);
        }
    }
    add_param(&h->link, STR_LIT("cursor"), head.kind == DOC_STR ? head.str : str_from(number));
    buf_add_cstr(&h->link, ">; rel=\"next\"");
}

/* An answer that may say `existing` made something, unless it says so. */
static void note_made(struct http *h, struct doc body)
{
    const struct msg_desc *desc = &msg_table[h->route->answer];
    const struct str plan = doc_string(doc_get(body, STR_LIT("planId")));
    const struct doc existing = doc_get(body, STR_LIT("existing"));
    const struct doc replaced = doc_get(body, STR_LIT("replaced"));
    bool makes = false;

    for (uint32_t i = 0; i < desc->n; i++) {
        makes = makes || str_is(desc->fields[i].name, "existing");
    }
    if (!makes) {
        return;
    }
    if ((existing.ptr == NULL || !doc_head(existing).b) &&
        (replaced.ptr == NULL || !doc_head(replaced).b)) {
        h->status = 201;
    }
    if (plan.len > 0) {
        telemetry_note_plan(h, body, (struct doc){.ptr = NULL});
        buf_add_cstr(&h->location, "/v1/plans/");
        answer_encode(&h->location, plan);
    }
}

/* The revision, for If-Match. */
static void note_etag(struct http *h, struct doc body)
{
    const struct doc revision = doc_get(body, STR_LIT("revision"));

    if (revision.ptr != NULL && doc_head(revision).kind == DOC_UINT) {
        (void)snprintf(h->etag, sizeof h->etag, "\"%" PRIu64 "\"", doc_head(revision).u);
    }
}

/* The daemon's word for a stale expectRevision: what If-Match gave did not fit. */
static bool is_stale(const struct http *h, const struct problem *p)
{
    static const char stale[] = "expectRevision";

    return h->heads.if_match != NULL && p->code == BT_CONFLICT &&
           p->message.len >= sizeof stale - 1 &&
           memcmp(p->message.ptr, stale, sizeof stale - 1) == 0;
}

void answer_take(void *http, const struct reply *reply)
{
    struct http *h = http;

    h->call = NULL;
    if (!reply->ok) {
        struct problem p = reply->problem;
        p.status = is_stale(h, &p) ? 412 : p.status;
        http_problem(h, &p);
    } else if (route_is_task(h->route)) {
        note_made(h, reply->body);
        translation_attach(h, doc_string(doc_get(reply->body, STR_LIT("planId"))));
        return;
    } else {
        h->status = 200;
        h->type = "application/json";
        h->state = HTTP_READY;
        note_etag(h, reply->body);
        note_made(h, reply->body);
        write_link(h, reply->body);
        if (answer_body(reply->body, &h->out) != BT_OK) {
            http_refuse(h, BT_NOMEM, 503, "", "out of memory for the answer");
        }
    }
    http_ready(h);
}
