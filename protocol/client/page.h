/* One answer of events.read, as it came: for programs that need the events as documents, and what
 * was deleted between them. One thread, that of the client. */
#ifndef CLIENT_PAGE_H
#define CLIENT_PAGE_H

#include "baton/client.h"
#include "protocol/link/link.h"
#include "protocol/wire/msg.h"

/* Zeroed = empty. */
struct client_page {
    struct link_msg *msg; /* NULL = empty */
    struct msg_reader reader;
    struct doc_cursor cursor;
    uint32_t left; /* events that client_page_next has not returned */
    uint64_t next_seq, last_seq;
    struct str last_event_id; /* of the event before next_seq; lives as long as the page */
    const struct msg_seq_range *deleted; /* lives as long as the page */
    uint32_t deleted_n;
};

/* Asks, and waits for the answer at most timeout_ms. Drops what the page had; it is empty after a
 * failure. BT_HISTORY_CHANGED: next_seq is the number to read again from. */
BT_MUST_CHECK enum bt_code client_page_read(struct bt_client *c,
                                            const struct msg_events_read *query,
                                            uint32_t timeout_ms, struct client_page *page,
                                            struct bt_error *err);
/* The same of one shard of a fleet, wherever that is led now. BT_UNAVAILABLE also: nobody leads it.
 */
BT_MUST_CHECK enum bt_code client_page_of_shard(struct bt_client *c, uint32_t shard,
                                                const struct msg_events_read *query,
                                                uint32_t timeout_ms, struct client_page *page,
                                                struct bt_error *err);
/* The next event, which lives as long as the page; false at its end. */
bool client_page_next(struct client_page *page, struct doc *ret);
void client_page_done(struct client_page *page);
#endif
