/*
 * Addresses that requests to hooks may not reach: those of this machine and of private networks,
 * unless they are listed. Asked for the address that is connected to, so a name that changes its
 * address gets around nothing. Pure.
 */
#ifndef GATEWAY_PRIVATE_H
#define GATEWAY_PRIVATE_H

#include <sys/socket.h>

#include "protocol/base/err.h"
#include "protocol/base/str.h"

enum { PRIVATE_LISTED_MAX = 16 };

struct private_net {
    uint8_t at[16]; /* IPv4 as ::ffff:a.b.c.d */
    uint32_t bits;
};

struct private_list {
    struct private_net nets[PRIVATE_LISTED_MAX];
    uint32_t n;
};

/* Adds "127.0.0.1", "fd00::/8" of a text with commas between. BT_INVALID: a sentence
 * with the part that is none. BT_LIMIT: more than PRIVATE_LISTED_MAX. */
BT_MUST_CHECK enum bt_code private_read(struct str text, struct private_list *ret,
                                        struct bt_error *err);
/* Whether a request may go there. An address of another family may not. */
bool private_allows(const struct private_list *listed, const struct sockaddr *addr);
#endif
