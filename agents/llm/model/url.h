/* Which base URLs are taken. Pure. What a name resolves to is looked at again when it is dialled
 * (net.c). */
#ifndef LLM_URL_H
#define LLM_URL_H

#include "protocol/base/err.h"
#include "protocol/base/str.h"

struct sockaddr;

/* https://host[:port][/path], or http:// to this machine (any_http: to anybody). No user, no query,
 * no fragment, no control characters. BT_INVALID says what would be right. */
BT_MUST_CHECK enum bt_code url_check(struct str url, bool any_http, struct bt_error *err);
bool url_is_https(struct str url);
/* Whether the host is localhost, 127.0.0.0/8 or ::1. */
bool url_is_loopback(struct str url);

/* host[:port] of a checked URL: what may be told of it; a path may hold a secret. */
struct str url_authority(struct str url);

/* An address that a name resolved to. loopback_only: this machine; always refused: link-local
 * (where clouds keep credentials), multicast, the unspecified address. */
bool url_address_allowed(const struct sockaddr *addr, bool loopback_only);
#endif
