/*
 * Delivers every event once, in order, without gaps. `expected` is the next sequence number that
 * the caller has not had. Each read with events.read brings all that is new, and waits in the
 * daemon while nothing is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/client/client_internal.h"
#include "protocol/client/page.h"

enum {
    PAGE_LIMIT = 500,
    WAIT_MAX_MS = 10000,     /* of one read: less than what counts as gone */
    ANSWER_MS = 1000,        /* beyond it, for the answer of a busy daemon */
    ANSWER_REMOTE_MS = 5000, /* over a bad line */
    PAUSE_MS = 200           /* after a read that failed, or found no place to wait in */
};

struct bt_watch {
    struct bt_client *client;
    char plan_id[BT_ID_LEN + 1]; /* "" = all */
    uint64_t expected;
    msec last_contact; /* when the daemon last answered */
    msec read_at;      /* no read before */
    uint64_t filled;
    struct client_page page; /* the answer that is being delivered */
    struct buf json;
    char type[72];
    char event_plan[BT_ID_LEN + 1];
};

enum bt_code bt_watch_open(struct bt_client *c, const char *plan_id, uint64_t after,
                           struct bt_watch **ret, struct bt_error *err)
{
    struct bt_watch *w;
    char about[BT_ID_LEN + 32];
    struct buf doc;
    char *json = NULL;
    enum bt_code code;

    if (c->watch != NULL) {
        return err_set(err, BT_CONFLICT, "a client has at most one watch at a time");
    }
    (void)snprintf(about, sizeof about, "{\"planId\":\"%.*s\"}", BT_ID_LEN,
                   plan_id != NULL ? plan_id : ""); /* of a fleet the shard that has it */
    code = bt_client_call(c, "supervisor.info", plan_id != NULL ? about : NULL, &json, err);
    if (code != BT_OK) {
        bt_free(json);
        return code;
    }
    w = calloc(1, sizeof *w);
    buf_init(&doc, LIMIT_CONTROL_BYTES);
    if (w == NULL) {
        code = err_set(err, BT_NOMEM, "out of memory for a watch");
    } else {
        code = json_to_doc(str_from(json), NULL, &doc, err);
    }
    if (code == BT_OK) {
        w->client = c;
        w->expected = after == UINT64_MAX
                          ? doc_head(doc_get(doc_from_buf(&doc), STR_LIT("lastSeq"))).u + 1
                          : after + 1;
        w->last_contact = clock_mono_ms();
        (void)snprintf(w->plan_id, sizeof w->plan_id, "%s", plan_id != NULL ? plan_id : "");
        buf_init(&w->json, 8 * (size_t)LIMIT_EVENT_BYTES);
        c->watch = w;
        *ret = w;
    } else {
        free(w);
    }
    bt_free(json);
    buf_done(&doc);
    return code;
}

void bt_watch_close(struct bt_watch *w)
{
    if (w == NULL) {
        return;
    }
    client_page_done(&w->page);
    w->client->watch = NULL;
    buf_done(&w->json);
    free(w);
}

uint64_t bt_watch_filled(const struct bt_watch *w)
{
    return w->filled;
}

/* Reads a page of events from `expected` on. */
static enum bt_code read_page(struct bt_watch *w, uint32_t wait_ms, uint32_t timeout_ms,
                              struct bt_error *err)
{
    struct msg_events_read query = {.from_seq = w->expected,
                                    .limit = PAGE_LIMIT,
                                    .plan_id = str_from(w->plan_id),
                                    .wait_ms = wait_ms};
    const enum bt_code code = client_page_read(w->client, &query, timeout_ms, &w->page, err);

    if (code == BT_OK) {
        w->last_contact = clock_mono_ms();
    }
    return code;
}

static enum bt_code deliver(struct bt_watch *w, struct doc body, struct bt_event *ret,
                            struct bt_error *err)
{
    struct str type = doc_string(doc_get(body, STR_LIT("type")));
    struct str plan = doc_string(doc_get(body, STR_LIT("planId")));
    enum bt_code code;

    buf_clear(&w->json);
    code = doc_to_json(body, false, &w->json, err);
    (void)snprintf(w->type, sizeof w->type, "%.*s", STR_ARG(type));
    (void)snprintf(w->event_plan, sizeof w->event_plan, "%.*s", STR_ARG(plan));
    *ret = (struct bt_event){.seq = doc_head(doc_get(body, STR_LIT("seq"))).u,
                             .type = w->type,
                             .plan_id = w->event_plan,
                             .json = buf_cstr(&w->json)};
    return code;
}

/* Returns the next event of the page; false at its end. */
static bool next_of_page(struct bt_watch *w, struct doc *ret)
{
    while (client_page_next(&w->page, ret)) {
        const uint64_t seq = doc_head(doc_get(*ret, STR_LIT("seq"))).u;
        if (seq >= w->expected) {
            w->expected = seq + 1;
            w->filled++;
            return true;
        }
    }
    w->expected = w->page.next_seq > w->expected ? w->page.next_seq : w->expected;
    client_page_done(&w->page);
    return false;
}

/*
 * Reads what is new, or waits for it. Returns BT_OK also when the daemon is away for a moment; the
 * watch tries again soon. Returns BT_UNAVAILABLE when it has been silent for CLIENT_GONE_MS.
 */
static enum bt_code read_new(struct bt_watch *w, msec now, msec deadline, struct bt_error *err)
{
    const msec left = deadline > now ? deadline - now : 0;
    const uint32_t wait = left > WAIT_MAX_MS ? WAIT_MAX_MS : (uint32_t)left;
    const uint32_t answer = w->client->remote != NULL ? ANSWER_REMOTE_MS : ANSWER_MS;
    const enum bt_code code = read_page(w, wait, wait + answer, err);

    if (code == BT_OK && wait > 0 && w->page.left == 0 && clock_mono_ms() - now < wait / 2) {
        w->read_at = now + PAUSE_MS; /* no place was free to wait in */
    }
    if (code != BT_UNAVAILABLE && code != BT_TIMEOUT) {
        return code;
    }
    if (clock_mono_ms() - w->last_contact > CLIENT_GONE_MS) {
        return err_set(err, BT_UNAVAILABLE, "the daemon of %s has not been heard of for %d s",
                       w->client->dir, CLIENT_GONE_MS / 1000);
    }
    w->read_at = clock_mono_ms() + PAUSE_MS;
    return BT_OK;
}

enum bt_code bt_watch_next(struct bt_watch *w, uint32_t timeout_ms, struct bt_event *ret,
                           struct bt_error *err)
{
    const msec deadline = clock_mono_ms() + timeout_ms;
    bool asked = false; /* a call without time looks once */

    for (;;) {
        const msec now = clock_mono_ms();
        struct doc body;
        if (next_of_page(w, &body)) {
            return deliver(w, body, ret, err);
        }
        if (now >= deadline && asked) {
            return err_set(err, BT_TIMEOUT, "no event within %u ms", timeout_ms);
        }
        if (w->read_at > now) {
            client_pause(w->client, w->read_at < deadline ? w->read_at : deadline);
            asked = asked || w->read_at > deadline;
            continue;
        }
        const enum bt_code code = read_new(w, now, deadline, err);
        asked = true;
        if (code != BT_OK) {
            return code;
        }
    }
}
