#include "supervisor/gateway/fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/suggest.h"
#include "protocol/base/utf8.h"
#include "protocol/wire/msg_table.h"

enum { TEXT_SHOWN = 40 };

struct gathering {
    const struct fields_from *from;
    const struct msg_desc *desc;
    struct buf pairs;
    uint32_t n;
    const char *place[64]; /* where a field came from, by its index; NULL = it did not yet */
    char *field;
    struct bt_error *err;
};

static void name_field(struct gathering *g, struct str name)
{
    (void)snprintf(g->field, FIELD_NAME_MAX + 1, "%.*s",
                   (int)utf8_cut(name.ptr, name.len, FIELD_NAME_MAX), name.ptr);
}

static int shown(struct str s)
{
    return (int)utf8_cut(s.ptr, s.len, TEXT_SHOWN);
}

static enum bt_code refuse_unknown(struct gathering *g, struct str name, const char *place)
{
    struct suggest near = suggest_start(name);

    for (uint32_t i = 0; i < g->desc->n; i++) {
        suggest_offer(&near, g->desc->fields[i].name);
    }
    if (near.best.ptr != NULL) {
        return err_set(g->err, BT_INVALID, "%.*s (%s): there is no such field; did you mean %.*s?",
                       shown(name), name.ptr, place, STR_ARG(near.best));
    }
    return err_set(g->err, BT_INVALID,
                   "%.*s (%s): %s has no such field; /v1/openapi.json lists them", shown(name),
                   name.ptr, place, g->desc->wire);
}

/* The index of a field that may come from `place`. */
static enum bt_code take(struct gathering *g, struct str name, const char *place, bool again_ok,
                         uint32_t *ret)
{
    name_field(g, name);
    for (uint32_t i = 0; i < g->desc->n; i++) {
        if (!str_eq(g->desc->fields[i].name, name)) {
            continue;
        }
        if (g->place[i] != NULL && !(again_ok && g->place[i] == place)) {
            return err_set(g->err, BT_INVALID, "%.*s stands in the %s and in the %s: give it once",
                           STR_ARG(name), g->place[i], place);
        }
        g->place[i] = place;
        *ret = i;
        return BT_OK;
    }
    return refuse_unknown(g, name, place);
}

bool fields_number(struct str text, uint64_t max, uint64_t *ret)
{
    uint64_t v = 0;

    for (size_t i = 0; i < text.len; i++) {
        const uint64_t digit = (uint64_t)(text.ptr[i] - '0');
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || v > (UINT64_MAX - digit) / 10) {
            return false;
        }
        v = v * 10 + digit;
    }
    *ret = v;
    return text.len > 0 && text.len <= 20 && v <= max;
}

/* A text of the path, the query or a header, by the type of its field. */
static enum bt_code put_text(struct gathering *g, const struct msg_field *f, struct str text)
{
    uint64_t v;

    doc_put_str(&g->pairs, f->name);
    g->n++;
    switch (f->kind) {
    case FIELD_STR:
        doc_put_str(&g->pairs, text);
        return BT_OK;
    case FIELD_BOOL:
        doc_put_bool(&g->pairs, str_is(text, "true"));
        return str_is(text, "true") || str_is(text, "false")
                   ? BT_OK
                   : err_set(g->err, BT_INVALID, "%.*s: expected true or false, got '%.*s'",
                             STR_ARG(f->name), shown(text), text.ptr);
    case FIELD_U64:
        if (!fields_number(text, f->max, &v)) {
            return err_set(g->err, BT_INVALID,
                           "%.*s: expected a number up to %" PRIu64 ", got '%.*s'",
                           STR_ARG(f->name), f->max, shown(text), text.ptr);
        }
        doc_put_u64(&g->pairs, v);
        return BT_OK;
    case FIELD_I64:
    case FIELD_F64:
    case FIELD_DOC:
    case FIELD_SUB:
    case FIELD_LIST:
    case FIELD_STRS:
    case FIELD_KIND_COUNT:
        break;
    }
    return err_set(g->err, BT_INVALID, "%.*s is no single text: give it in the JSON body",
                   STR_ARG(f->name));
}

/* A list of the query: its name once for each element. */
static void put_list(struct gathering *g, const struct msg_field *f)
{
    const struct uri *uri = g->from->uri;
    uint32_t n = 0;

    for (uint32_t i = 0; i < uri->params_n; i++) {
        n += str_eq(uri->params[i].name, f->name);
    }
    doc_put_str(&g->pairs, f->name);
    doc_put_array(&g->pairs, n);
    for (uint32_t i = 0; i < uri->params_n; i++) {
        if (str_eq(uri->params[i].name, f->name)) {
            doc_put_str(&g->pairs, uri->params[i].value);
        }
    }
    g->n++;
}

static enum bt_code from_texts(struct gathering *g)
{
    const struct fields_from *from = g->from;
    enum bt_code code = BT_OK;
    uint32_t ix;

    for (uint32_t i = 0; code == BT_OK && i < from->params->n; i++) {
        code = take(g, from->params->at[i].name, "path", false, &ix);
        if (code == BT_OK) {
            code = put_text(g, &g->desc->fields[ix], from->params->at[i].value);
        }
    }
    for (uint32_t i = 0; code == BT_OK && i < from->uri->params_n; i++) {
        const struct uri_param *p = &from->uri->params[i];
        const struct msg_field *f = route_field(from->route, p->name);
        const bool list = f != NULL && f->kind == FIELD_STRS;
        const bool first = !list || g->place[f - g->desc->fields] == NULL;
        code = take(g, p->name, "query", list, &ix);
        if (code == BT_OK && list && first) {
            put_list(g, f);
        } else if (code == BT_OK && !list) {
            code = put_text(g, &g->desc->fields[ix], p->value);
        }
    }
    return code;
}

/* "3" with its quotation marks: the ETag of a plan is its revision. */
static struct str revision_of(struct str etag)
{
    return etag.len > 2 && etag.ptr[0] == '"' && etag.ptr[etag.len - 1] == '"'
               ? (struct str){etag.ptr + 1, etag.len - 2}
               : (struct str){NULL, 0};
}

static enum bt_code from_headers(struct gathering *g)
{
    const struct {
        struct str value;
        const char *header, *field;
    } headers[] = {{g->from->idempotency_key, "header Idempotency-Key", "clientKey"},
                   {g->from->if_match, "header If-Match", "expectRevision"}};
    enum bt_code code = BT_OK;

    for (size_t i = 0; code == BT_OK && i < sizeof headers / sizeof headers[0]; i++) {
        struct str value = headers[i].value;
        uint32_t ix;
        if (value.len == 0) {
            continue;
        }
        if (route_field(g->from->route, str_from(headers[i].field)) == NULL) {
            return err_set(g->err, BT_INVALID, "the %s has no meaning for %s: leave it out",
                           headers[i].header, g->desc->wire);
        }
        if (i == 1) {
            value = revision_of(value);
        }
        code = value.len == 0 ? err_set(g->err, BT_INVALID,
                                        "the header If-Match: expected one ETag of the plan, which "
                                        "is its revision in quotation marks, as \"3\"")
                              : take(g, str_from(headers[i].field), headers[i].header, false, &ix);
        if (code == BT_OK) {
            code = put_text(g, &g->desc->fields[ix], value);
        }
    }
    return code;
}

static enum bt_code from_body(struct gathering *g)
{
    struct doc_head head = {.kind = DOC_MAP};
    struct doc_cursor at;
    struct buf body;
    enum bt_code code;

    if (g->from->body.len == 0) {
        return BT_OK;
    }
    g->field[0] = 0;
    buf_init(&body, json_doc_capacity(g->from->body.len));
    code = json_to_doc(g->from->body, NULL, &body, g->err);
    if (code != BT_OK) {
        code = err_wrap(g->err, "the body");
    }
    at = doc_cursor(doc_from_buf(&body));
    if (code == BT_OK && (!doc_next(&at, &head) || head.kind != DOC_MAP)) {
        code = err_set(g->err, BT_INVALID, "the body: expected a JSON object with the fields");
    }
    for (uint32_t i = 0; code == BT_OK && i < head.n; i++) {
        struct doc_head key;
        uint32_t ix;
        (void)doc_next(&at, &key);
        code = take(g, key.str, "body", false, &ix);
        if (code == BT_OK) {
            doc_put_str(&g->pairs, key.str);
            doc_put_doc(&g->pairs, doc_skip(&at));
            g->n++;
        }
    }
    buf_done(&body);
    return code;
}

/* Fields that came from nowhere, and have a value all the same. */
static void fill(struct gathering *g)
{
    struct doc_cursor at = doc_cursor(g->from->filled);
    struct doc_head head = {.n = 0};

    if (g->from->filled.ptr == NULL || !doc_next(&at, &head)) {
        return;
    }
    for (uint32_t i = 0; i < head.n; i++) {
        struct doc_head key;
        (void)doc_next(&at, &key);
        const struct doc value = doc_skip(&at);
        const struct msg_field *f = route_field(g->from->route, key.str);
        if (f != NULL && g->place[f - g->desc->fields] == NULL) {
            doc_put_str(&g->pairs, key.str);
            doc_put_doc(&g->pairs, value);
            g->n++;
        }
    }
}

/* Types, caps and what is missing, by the reader that the daemon has, too. */
static enum bt_code check(struct gathering *g, struct doc map)
{
    struct arena arena = {.max = 0};
    void *body = calloc(1, g->desc->size + 1);
    enum bt_code code = body == NULL
                            ? err_set(g->err, BT_NOMEM, "out of memory for a request")
                            : msg_read_doc(&arena, map, g->from->route->request, body, g->err);

    arena_done(&arena);
    free(body);
    if (code == BT_INVALID || code == BT_LIMIT) { /* the sentence begins with the path */
        name_field(g, (struct str){g->err->msg, strcspn(g->err->msg, ":.[ ")});
        if (route_field(g->from->route, str_from(g->field)) == NULL) {
            g->field[0] = 0;
        }
    }
    return code;
}

enum bt_code fields_gather(const struct fields_from *from, struct buf *out,
                           char ret_field[FIELD_NAME_MAX + 1], struct bt_error *err)
{
    struct gathering g = {
        .from = from, .desc = &msg_table[from->route->request], .field = ret_field, .err = err};
    const size_t before = out->len;
    enum bt_code code;

    buf_init(&g.pairs, LIMIT_STEP_BYTES);
    code = from_texts(&g);
    if (code == BT_OK) {
        code = from_headers(&g);
    }
    if (code == BT_OK) {
        code = from_body(&g);
    }
    if (code == BT_OK) {
        ret_field[0] = 0;
        fill(&g);
        doc_put_map(out, g.n);
        buf_add(out, g.pairs.at, g.pairs.len);
        code = buf_check(&g.pairs, err);
        code = code == BT_OK ? buf_check(out, err) : code;
    }
    if (code == BT_OK) {
        code = check(&g, (struct doc){out->at + before, out->len - before});
    }
    buf_done(&g.pairs);
    return code;
}
