/* The events of a webhook: pages of them, and the next one that is wanted. */
#include <inttypes.h>
#include <stdio.h>

#include "protocol/base/log.h"
#include "supervisor/gateway/a2a/a2a.h"
#include "supervisor/gateway/webhook/webhook_internal.h"

enum {
    READ_MS = 5000, /* how soon events are looked for that the reader of events missed */
    PAGE = 64
};

void hook_drop_page(struct hook *h)
{
    h->left = 0;
    h->event.ptr = NULL;
    h->page_next = 0;
    h->read_again = 0;
    h->read_once = false;
    h->serial++;
    if (h->call != NULL) {
        call_abandon(h->call);
        h->call = NULL;
    }
}

/* The last event that it may want. */
static uint64_t last_of(const struct hook *h)
{
    return hook_is_push(&h->spec) ? h->last : h->of->last[h->shard];
}

void hook_passed(struct hook *h, uint64_t seq, struct str event_id)
{
    struct hook_progress *p = &h->state.at;

    hook_taken(p, seq);
    (void)snprintf(p->id, sizeof p->id, "%.*s",
                   h->fleet && event_id.ptr != NULL ? (int)event_id.len : 0,
                   event_id.ptr == NULL ? "" : event_id.ptr);
    h->dirty = true;
}

static uint64_t number_in(struct doc details, const char *name)
{
    const struct doc d =
        details.ptr != NULL ? doc_get(details, str_from(name)) : (struct doc){NULL, 0};

    return d.ptr != NULL && doc_head(d).kind == DOC_UINT ? doc_head(d).u : 0;
}

/* A failover lost events that were sent. Those that have their numbers now are others. */
static void go_back(struct hook *h, struct doc details)
{
    const uint64_t from = number_in(details, "fromSeq");
    const uint64_t to = from > 0 ? from : 1;

    log_warn("gateway.webhook",
             "%s: event %" PRIu64
             " was sent, and a failover lost it; it goes on with event %" PRIu64,
             h->name, h->state.at.seq, to);
    hook_passed(h, to - 1, (struct str){NULL, 0});
    h->of->last[h->shard] = number_in(details, "lastSeq");
    h->read_again = 0;
    h->known = 0;
}

static void on_page(void *self, const struct reply *reply)
{
    struct hook *h = self;
    const struct doc events = doc_get(reply->body, STR_LIT("events"));
    struct doc_head head = {.kind = DOC_NIL};
    struct str id;
    uint64_t last;

    h->call = NULL;
    h->read_again = h->of->now + (reply->ok ? READ_MS : HOOK_AGAIN_MS);
    if (!reply->ok) {
        h->read_once = false;
        if (reply->problem.code == BT_HISTORY_CHANGED) {
            go_back(h, reply->problem.details);
        }
        if (hook_is_push(&h->spec) &&
            (reply->problem.code == BT_NOT_FOUND || reply->problem.code == BT_GONE)) {
            push_end(h, "its plan was deleted");
        }
        return;
    }
    buf_clear(&h->page);
    buf_add(&h->page, events.ptr, events.ptr == NULL ? 0 : events.len);
    if (buf_check(&h->page, NULL) != BT_OK) {
        log_warn("gateway.webhook", "%s: out of memory for events", h->name);
        h->read_once = false;
        return;
    }
    h->at = doc_cursor(doc_from_buf(&h->page));
    h->left = doc_next(&h->at, &head) && head.kind == DOC_ARRAY ? head.n : 0;
    h->page_next = doc_head(doc_get(reply->body, STR_LIT("nextSeq"))).u;
    h->fleet = doc_get(reply->body, STR_LIT("leader")).ptr != NULL;
    id = doc_string(doc_get(reply->body, STR_LIT("lastEventId")));
    (void)snprintf(h->page_id, sizeof h->page_id, "%.*s", id.ptr != NULL ? (int)id.len : 0,
                   id.ptr != NULL ? id.ptr : "");
    h->known = h->page_next > h->state.at.seq + 1 ? 0 : h->known;
    last = doc_head(doc_get(reply->body, STR_LIT("lastSeq"))).u;
    if (h->state.at.seq > last) { /* a journal of before was put in its place */
        if (h->state.at.seq != HOOK_FROM_NOW) {
            log_warn("gateway.webhook",
                     "%s: the journal ends at event %" PRIu64 " and event %" PRIu64
                     " was sent; it goes on with the next one",
                     h->name, last, h->state.at.seq);
        }
        h->page_next = 0;
        hook_passed(h, last, (struct str){NULL, 0});
    }
    if (!hook_is_push(&h->spec) && last > h->of->last[h->shard]) {
        h->of->last[h->shard] = last;
    }
}

void hook_read_page(struct hook *h)
{
    struct webhooks *w = h->of;
    struct caller *caller = watch_caller(w->watch, w->now);
    struct call_spec spec = {.type = MSG_events_read,
                             .answer = MSG_events_read_ok,
                             .reads = true,
                             .done = on_page,
                             .self = h};
    struct bt_error err;
    struct buf fields;

    h->read_again = w->now + HOOK_AGAIN_MS;
    h->known = last_of(h);
    if (caller == NULL) {
        return;
    }
    buf_init(&fields, 256);
    doc_put_map(&fields, 2u + hook_is_push(&h->spec) + (h->state.at.id[0] != 0));
    if (h->state.at.id[0] != 0) {
        doc_put_cstr(&fields, "afterEventId");
        doc_put_cstr(&fields, h->state.at.id);
    }
    if (hook_is_push(&h->spec)) {
        doc_put_cstr(&fields, "planId");
        doc_put_cstr(&fields, h->spec.plan);
    }
    doc_put_cstr(&fields, "fromSeq");
    doc_put_u64(&fields, h->state.at.seq + 1);
    doc_put_cstr(&fields, "limit");
    doc_put_u64(&fields, PAGE);
    spec.fields = doc_from_buf(&fields);
    spec.to_shard = hook_is_push(&h->spec) ? 0 : h->shard + 1;
    h->read_once = caller_call(caller, &spec, w->now, &h->call, &err) == BT_OK;
    buf_done(&fields);
}

bool hook_next(struct hook *h)
{
    while (h->event.ptr == NULL && h->left > 0) {
        const struct doc event = doc_skip(&h->at);
        const struct doc seq = doc_get(event, STR_LIT("seq"));
        const uint64_t n = seq.ptr == NULL ? 0 : doc_head(seq).u;
        h->left--;
        if (n <= h->state.at.seq) {
            continue;
        }
        if (hook_is_push(&h->spec)
                ? a2a_push_wants(event)
                : hook_wants(&h->spec, doc_string(doc_get(event, STR_LIT("type"))))) {
            h->event = event;
            h->event_seq = n;
        } else {
            hook_passed(h, n, doc_string(doc_get(event, STR_LIT("eventId"))));
        }
    }
    if (h->event.ptr != NULL) {
        return true;
    }
    if (h->page_next > h->state.at.seq + 1) { /* what was deleted with its plan */
        hook_passed(h, h->page_next - 1, str_from(h->page_id));
    }
    h->page_next = 0;
    return false;
}

bool hook_has_more(const struct hook *h)
{
    const uint64_t last = last_of(h);

    return h->read_once && h->state.at.seq < last && h->known < last;
}
