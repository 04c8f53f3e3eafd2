/*
 * Which addresses a call may reach: public ones, and of the private ones those that are listed.
 * Pure. A name proves nothing: the address is checked when the socket is made, after each lookup.
 */
#ifndef WEB_ADDRESS_H
#define WEB_ADDRESS_H

#include <stdbool.h>

#include "protocol/base/err.h"

struct sockaddr;

/* BT_INVALID when the text is no "127.0.0.1", "127.0.0.0/8", "::1" or "fd00::/8". */
BT_MUST_CHECK enum bt_code address_block_check(const char *text, struct bt_error *err);
/*
 * Whether the address is public, or lies in one of the listed blocks (NULL-terminated, checked; or
 * NULL). Private: loopback, RFC 1918, shared (RFC 6598), link-local, unique local (RFC 4193),
 * NAT64 and 6to4 forms of these, and documentation ranges. Never allowed: the unspecified address,
 * multicast, broadcast, and whatever is neither IPv4 nor IPv6.
 */
bool address_allowed(const struct sockaddr *addr, const char *const *blocks);
#endif
