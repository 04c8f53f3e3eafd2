/* Shared by webhook.c (turns), scan.c (files), pages.c (events), send.c (requests) and push.c (what
 * push notifications of A2A have beside them). */
#ifndef GATEWAY_WEBHOOK_WEBHOOK_INTERNAL_H
#define GATEWAY_WEBHOOK_WEBHOOK_INTERNAL_H

#include <sys/types.h>
#include <time.h>

#include "protocol/base/shard.h"
#include "supervisor/gateway/webhook/store.h"
#include "supervisor/gateway/webhook/webhook.h"

enum {
    HOOKS_PLACES = HOOKS_MAX * SHARDS_MAX, /* a queue for each shard */
    HOOK_PLACES = HOOKS_PLACES + PUSHES_MAX,
    HOOK_AGAIN_MS = 500,
    HOOK_PAGE_BYTES = 1024 * 1024
};

/* Its events are those after the last one when it is first asked for. */
#define HOOK_FROM_NOW ((uint64_t)INT64_MAX - 1)

struct hook {
    struct webhooks *of;
    char name[HOOK_NAME_MAX + 1];
    uint32_t shard; /* whose events it sends; a push knows it by its plan */
    struct hook_spec spec;
    struct hook_state state;
    struct timespec changed; /* the file, when it was read */
    ino_t inode;
    bool seen, gone;
    /* the events that were read, and those of them that are left */
    struct buf page;
    struct doc_cursor at;
    uint32_t left;
    uint64_t page_next;
    char page_id[UUID_TEXT_LEN + 1]; /* the eventId of the event before page_next */
    bool fleet;                      /* numbers may be used again: eventIds are compared */
    uint64_t known;   /* the last event of all when the page was asked for; 0 = there may be more */
    struct doc event; /* the one that is to be sent; .ptr NULL = none */
    uint64_t event_seq;
    struct call *call;
    msec read_again;
    bool read_once;
    bool out, out_test; /* a request */
    uint32_t serial, out_serial;
    bool dirty;
    msec written, post_again;
    uint64_t delivered, failed; /* requests since this program started */
    /* a push notification */
    uint64_t last;     /* the number of the last event of its plan that came */
    struct buf answer; /* plan.result, when its plan is over; empty = not asked for */
};

struct webhooks {
    const char *dir, *url;
    struct watch *watch;
    struct egress *out;
    struct hook *hooks[HOOK_PLACES]; /* pushes have the places after HOOKS_PLACES */
    msec scanned, now;
    uint64_t last[SHARDS_MAX]; /* the number of the last event that came */
    bool watches;
    uint32_t reserved;                        /* places of pushes that messages on their way keep */
    uint64_t pushes_delivered, pushes_failed; /* of those that are gone */
};

/* ---- scan.c ---- */

/* Looks at the files now. */
void webhooks_scan(struct webhooks *w);
/* Writes how far it is. */
void hook_save(struct hook *h);

/* ---- pages.c ---- */

/* Forgets the events that were read. */
void hook_drop_page(struct hook *h);
/* Asks for the page after the last event that was taken. */
void hook_read_page(struct hook *h);
/* The next event that is wanted, in h->event. False: there is none now. */
bool hook_next(struct hook *h);
/* The event is behind it. */
void hook_passed(struct hook *h, uint64_t seq, struct str event_id);
/* Whether there are events that were not read. */
bool hook_has_more(const struct hook *h);

/* ---- send.c ---- */

void hook_send(struct hook *h, struct doc event);
void hook_send_test(struct hook *h);

/* ---- push.c ---- */

/* Asks for the result of the plan once. False: it is there, or the event needs none. */
bool push_asks(struct hook *h);
void push_put_body(const struct hook *h, struct buf *out);
/* Its files go; the queue ends. */
void push_end(struct hook *h, const char *why);
#endif
