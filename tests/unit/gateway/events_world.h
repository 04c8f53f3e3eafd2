/* Events over HTTP without a server and a daemon: the connection and the answers of the daemon are
 * in the hands of a test. Of one test program. */
#ifndef TESTS_GATEWAY_EVENTS_WORLD_H
#define TESTS_GATEWAY_EVENTS_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/gateway/merged.h"
#include "supervisor/gateway/translate.h"
#include "tests/support/cmocka.h"
#include "tests/support/gateway/http_rig.h"

enum { BYTES = 1 << 20, NOW = 100000 };

#define SSE "text/event-stream"

/* ---- the connection ---- */

static ssize_t (*take)(void *self, uint64_t pos, char *to, size_t max);
static void *taker;
static bool asleep;

struct MHD_Response *MHD_create_response_from_callback(uint64_t size, size_t block,
                                                       MHD_ContentReaderCallback cb, void *self,
                                                       MHD_ContentReaderFreeCallback done)
{
    (void)size;
    (void)block;
    (void)done;
    take = cb;
    taker = self;
    return NULL;
}

void MHD_suspend_connection(struct MHD_Connection *c)
{
    (void)c;
    asleep = true;
}

void MHD_resume_connection(struct MHD_Connection *c)
{
    (void)c;
    assert_true(asleep);
    asleep = false;
}

/* ---- what is no part of this test ---- */

static void *slots[2];

void **caller_slot(struct caller *c, uint32_t shard)
{
    (void)c;
    return &slots[shard];
}

static uint32_t shards = 1;

uint32_t upstream_shards(const struct upstream *u)
{
    (void)u;
    return shards;
}

void http_ask(struct http *h)
{
    h->state = HTTP_WAITS;
}

/* ---- a request ---- */

static inline void over(void)
{
    stream_free(rig.h.stream);
    rig.h.stream = NULL;
    rig_end();
}

static inline void request(const char *target, const char *accept)
{
    struct bt_error err;
    uint32_t allowed;

    over();
    rig_begin("");
    asleep = false;
    take = NULL;
    rig.h.caller = (struct caller *)&rig;
    rig.h.heads.accept = accept;
    assert_int_equal(uri_parse(str_from(target), &rig.h.uri, &err), BT_OK);
    rig.h.route = route_find(&rig.h.uri, HTTP_GET, &rig.h.params, &allowed);
    assert_non_null(rig.h.route);
}

static inline void events(const char *target, const char *accept)
{
    request(target, accept);
    stream_begin(&rig.h);
}

static inline int begin(void **state)
{
    (void)state;
    rig.s.now = NOW;
    rig_begin("");
    return 0;
}

static inline int end(void **state)
{
    (void)state;
    over();
    assert_null(rig.s.streams);
    assert_null(slots[0]);
    return 0;
}

static inline void run(msec ms)
{
    rig.s.now += ms;
    streams_run(&rig.s, rig.s.now);
}

/* The answer has begun. */
static inline void began(const char *type)
{
    assert_int_equal(rig.h.state, HTTP_READY);
    assert_int_equal(rig.h.status, 200);
    assert_string_equal(rig.h.type, type);
    (void)stream_response(rig.h.stream);
    rig.h.state = HTTP_ANSWERED;
}

/* What its client gets now; ends: the stream is over then. */
static inline void expect_taken(const char *expected, bool ends)
{
    static char text[BYTES];
    char whole[4096];
    size_t n = 0;
    ssize_t got;

    (void)snprintf(whole, sizeof whole, "%s", expected);
    for (char *c = whole; *c != 0; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    assert_false(asleep);
    while ((got = take(taker, n, text + n, sizeof text - n)) > 0) {
        n += (size_t)got;
    }
    text[n] = 0;
    assert_string_equal(text, whole);
    assert_int_equal(got, ends ? MHD_CONTENT_READER_END_OF_STREAM : 0);
    assert_true(asleep == !ends);
}

static inline void expect_asked(const char *fields)
{
    char text[512];

    (void)snprintf(text, sizeof text, "%s", fields);
    for (char *c = text; *c != 0; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    assert_string_equal(rig.fields, text);
    assert_int_equal(rig.spec.type, MSG_events_read);
    assert_true(rig.spec.reads);
}

#define E(n, type) "{'seq':" #n ",'type':'" type "','planId':'P'}"
#define PAGE(list, next, last) "{'events':[" list "],'nextSeq':" #next ",'lastSeq':" #last "}"
#define LINE(n, type) "id: " #n "\nevent: " type "\ndata: " E(n, type) "\n\n"
#define LIVE(n) "{'fromSeq':" #n ",'limit':1000,'waitMs':20000}"

/* ---- nothing is translated ---- */

const struct stream_view translation_view = {NULL, NULL, NULL};

/* What a translator was asked for; the test gives one, or NULL: it refuses. */
static char words_asked[64];
static uint32_t words_types;
static uint64_t words_after;
static void *words_given;

struct translation *translation_new(struct http *h, struct str vocabulary, const struct str *types,
                                    uint32_t n, const struct event_place *after)
{
    (void)snprintf(words_asked, sizeof words_asked, "%.*s", STR_ARG(vocabulary));
    (void)types;
    words_types = n;
    words_after = after->seq;
    if (words_given != NULL) {
        return words_given;
    }
    http_refuse(h, BT_INVALID, 400, "vocabulary", "not in this test");
    return NULL;
}

void translation_free(void *t)
{
    (void)t;
}

void translation_attach(struct http *h, struct str plan_id)
{
    (void)h;
    (void)plan_id;
}
#endif
