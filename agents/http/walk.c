/* Lists that come in pages. */
#include <stdio.h>
#include <stdlib.h>

#include "agents/http/call.h"
#include "agents/http/result.h"
#include "agents/sdk/documents/pointer.h"
#include "agents/sdk/step.h"
#include "agents/sdk/whole.h"
#include "agents/web/url.h"
#include "protocol/limits.h"

enum { LINK_MAX = 16384 };

struct walk {
    struct http_call *c;
    char url[WEB_URL_MAX];   /* of the page */
    char first[WEB_URL_MAX]; /* without the parameter that counts */
    struct buf items;
    uint32_t n;
    uint64_t limit;
    uint64_t count; /* of PAGES_NUMBER and PAGES_OFFSET */
    bool cut;
};

static void fail(struct walk *w, const char *why)
{
    bt_step_fail(w->c->step, "VALIDATION_ERROR", false, "%s %s: page %u: %s", w->c->action->method,
                 w->c->action->path, w->c->requests, why);
}

/* The address of rel="next" in a Link header (RFC 8288); false when there is none. */
static bool next_link(const struct web_response *r, char ret[WEB_URL_MAX])
{
    char link[LINK_MAX];

    web_response_header(r, "link", link, sizeof link);
    for (const char *at = strchr(link, '<'); at != NULL; at = strchr(at + 1, '<')) {
        const char *end = strchr(at, '>');
        const char *stop = end == NULL ? NULL : strchr(end, '<');
        const char *rel = end == NULL ? NULL : strstr(end, "rel=");
        if (rel == NULL || (size_t)(end - at) > WEB_URL_MAX) {
            return false;
        }
        if ((stop == NULL || rel < stop) &&
            (strncmp(rel, "rel=\"next\"", 10) == 0 || strncmp(rel, "rel=next", 8) == 0)) {
            (void)snprintf(ret, WEB_URL_MAX, "%.*s", (int)(end - at - 1), at + 1);
            return true;
        }
    }
    return false;
}

/* The first address with one more parameter. */
static bool with_param(struct walk *w, const char *value, size_t len)
{
    struct buf url;
    bool fits;

    buf_init(&url, WEB_URL_MAX - 1);
    buf_printf(&url, "%s%c", w->first, strchr(w->first, '?') != NULL ? '&' : '?');
    url_escape(&url, str_from(w->c->action->pages.param));
    buf_add_byte(&url, '=');
    url_escape(&url, (struct str){value, len});
    fits = url.bad == BT_OK;
    if (fits) {
        (void)snprintf(w->url, sizeof w->url, "%s", buf_cstr(&url));
    }
    buf_done(&url);
    return fits;
}

static bool with_count(struct walk *w)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)w->count);
    return with_param(w, text, strlen(text));
}

/* Takes the items of a page; *ret_n is how many it had. False: the step has failed. */
static bool take_items(struct walk *w, struct doc body, uint32_t *ret_n)
{
    const struct http_action *action = w->c->action;
    struct doc list = pointer_get(body, action->pages.items);
    struct doc_cursor c = doc_cursor(list);
    struct doc_head head;

    if (list.ptr == NULL || !doc_next(&c, &head) || head.kind != DOC_ARRAY) {
        fail(w, "no list at pages.items of its answer");
        return false;
    }
    *ret_n = head.n;
    for (uint32_t i = 0; i < head.n && !w->cut; i++) {
        if (w->n == w->limit) {
            w->cut = true;
        } else if (w->n == HTTP_ITEMS_MAX) {
            fail(w, "more than 100000 items; narrow the query, or give the parameter limit");
            return false;
        } else {
            result_item(action, doc_skip(&c), &w->items);
            w->n++;
        }
    }
    if (w->items.bad != BT_OK) {
        fail(w, "the items have more than 3 MiB; keep less of each with fields, or give the "
                "parameter limit");
        return false;
    }
    return true;
}

/* Where the next page is. 1: in w->url. 0: there is none. -1: the step has failed. */
static int find_next(struct walk *w, struct doc body, uint32_t n)
{
    const struct http_pages *pages = &w->c->action->pages;
    struct doc value = {0};
    char reference[WEB_URL_MAX];
    char before[WEB_URL_MAX];
    struct bt_error err;
    bool fits = true;

    (void)memcpy(before, w->url, sizeof before);
    if (pages->kind == HTTP_PAGES_NUMBER || pages->kind == HTTP_PAGES_OFFSET) {
        w->count += pages->kind == HTTP_PAGES_NUMBER ? 1 : n;
        fits = n > 0 && with_count(w);
        return fits ? 1 : 0;
    }
    if (pages->kind == HTTP_PAGES_LINK) {
        if (!next_link(&w->c->response, reference)) {
            return 0;
        }
    } else {
        struct buf text;
        value = pointer_get(body, pages->from);
        if (value.ptr == NULL || doc_head(value).kind == DOC_NIL ||
            (doc_head(value).kind == DOC_STR && doc_string(value).len == 0) ||
            doc_head(value).kind == DOC_BOOL) {
            return 0;
        }
        buf_init(&text, WEB_URL_MAX - 1);
        fits = doc_to_text(value, &text, NULL) == BT_OK;
        (void)snprintf(reference, sizeof reference, "%s", buf_cstr(&text));
        buf_done(&text);
    }
    if (pages->kind == HTTP_PAGES_CURSOR) {
        fits = fits && with_param(w, reference, strlen(reference));
    } else if (fits && web_resolve(w->c->response.url, reference, w->url, &err) != BT_OK) {
        fail(w, err.msg);
        return -1;
    }
    if (!fits) {
        fail(w, "the place of the next page is too long for an address");
        return -1;
    }
    if (strcmp(before, w->url) == 0) {
        fail(w, "the next page is the same page again");
        return -1;
    }
    return 1;
}

static void reply(struct walk *w)
{
    struct http_call *c = w->c;
    struct buf all;
    struct buf json;
    struct buf text;
    struct bt_error err;
    enum bt_code code;

    buf_init(&all, LIMIT_STEP_BYTES);
    buf_init(&json, LIMIT_STEP_BYTES);
    buf_init(&text, WEB_URL_MAX);
    doc_put_array(&all, w->n);
    buf_add(&all, w->items.at, w->items.len);
    code = doc_to_json(doc_from_buf(&all), false, &json, &err);
    if (code != BT_OK) {
        bt_step_fail_error(c->step, &err);
    } else {
        bt_step_reply_json(c->step, buf_cstr(&json), json.len);
        if (w->cut) {
            buf_printf(&text, "%u items", w->n);
            whole_mark(c->step, &text, "there are more than the %llu of the parameter limit",
                       (unsigned long long)w->limit);
            bt_step_reply_bytes(c->step, buf_cstr(&text), text.len);
        }
    }
    buf_done(&all);
    buf_done(&json);
    buf_done(&text);
}

/* One page. 1: another one follows. 0: that was all. -1: the step has failed. */
static int turn_page(struct walk *w)
{
    struct buf bytes;
    uint32_t n = 0;
    int next = -1;

    if (!http_send(w->c, w->url)) {
        return -1;
    }
    buf_init(&bytes, json_doc_capacity(w->c->s->max_bytes));
    if (http_read_json(w->c, &bytes) && take_items(w, doc_from_buf(&bytes), &n)) {
        next = w->cut ? 0 : find_next(w, doc_from_buf(&bytes), n);
        /* A page that fills the limit is not cut when nothing follows it. */
        if (next == 1 && w->n == w->limit && w->c->action->pages.kind != HTTP_PAGES_NUMBER &&
            w->c->action->pages.kind != HTTP_PAGES_OFFSET) {
            w->cut = true;
            next = 0;
        }
    }
    buf_done(&bytes);
    return next;
}

void http_walk(struct http_call *c, const char *url)
{
    struct walk *w = calloc(1, sizeof *w);
    const double limit = bt_step_param_number(c->step, "limit", 0);
    int next = 1;

    if (w == NULL) {
        bt_step_fail(c->step, "UNKNOWN", true, "out of memory for the pages");
        return;
    }
    w->c = c;
    w->limit = !http_action_uses(c->action, "limit") && limit >= 1 ? (uint64_t)limit : UINT64_MAX;
    w->count = c->action->pages.first;
    buf_init(&w->items, LIMIT_RESULT_BYTES);
    (void)snprintf(w->first, sizeof w->first, "%s", url);
    (void)snprintf(w->url, sizeof w->url, "%s", url);
    if ((c->action->pages.kind == HTTP_PAGES_NUMBER ||
         c->action->pages.kind == HTTP_PAGES_OFFSET) &&
        !with_count(w)) {
        fail(w, "the address is too long");
        next = -1;
    }
    for (uint32_t page = 1; next == 1; page++) {
        next = turn_page(w);
        if (next == 1 && page >= c->action->pages.max) {
            fail(w, "pages.max is reached and more follow; raise it, narrow the query, or give the "
                    "parameter limit");
            next = -1;
        }
        if (next == 1) {
            char text[64];
            (void)snprintf(text, sizeof text, "page %u, %u items", page, w->n);
            bt_step_progress(c->step, -1, text);
        }
    }
    c->items = w->n;
    if (next == 0) {
        reply(w);
    }
    buf_done(&w->items);
    free(w);
}
