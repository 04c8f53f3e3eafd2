/*
 * Files of results over the wire, in parts that are repeated until they are answered. The calls
 * block: they wait through broken lines and busy daemons as long as something moves, and half a
 * minute when nothing does.
 */
#ifndef CLIENT_TRANSFER_H
#define CLIENT_TRANSFER_H

#include "baton/client.h"
#include "protocol/base/buf.h"
#include "protocol/base/err.h"

/* The strings are borrowed for a call. */
struct transfer_file {
    struct str instance_id, key; /* of the attempt that asks; "" = a client does */
    uint64_t attempt;
    struct str uri;  /* to get */
    struct str name; /* to put */
    uint64_t bytes;
    struct str sha256;
    bool (*stop)(const void *self); /* asked now and then; may be NULL */
    const void *self;
};

/* Appends to fd what it does not have yet, compares the checksum, and seeks to the beginning.
 * BT_INVALID: length or checksum differ, and fd is empty. BT_CANCELLED: stopped; the next call goes
 * on. */
BT_MUST_CHECK enum bt_code transfer_get(struct bt_client *c, const struct transfer_file *f, int fd,
                                        struct bt_error *err);
/* Sends the file. *ret_uri: where it is. */
BT_MUST_CHECK enum bt_code transfer_put(struct bt_client *c, const struct transfer_file *f, int fd,
                                        struct buf *ret_uri, struct bt_error *err);
#endif
