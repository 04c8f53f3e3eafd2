/* The rules for base URLs. Pure. A name's address is checked again when net_call.c connects to
 * it. */
#ifndef WEB_URL_H
#define WEB_URL_H

#include "protocol/base/buf.h"
#include "protocol/base/err.h"
#include "protocol/base/str.h"

struct sockaddr;

/* https://host[:port][/path], or http:// to this machine (any_http: to any host). No user, query,
 * fragment or control characters. BT_INVALID names what would be right. */
BT_MUST_CHECK enum bt_code url_check(struct str url, bool any_http, struct bt_error *err);
bool url_is_https(struct str url);
/* Whether the host is localhost, 127.0.0.0/8 or ::1. */
bool url_is_loopback(struct str url);

/* host[:port] of a checked URL, the part that logs may show; a path may contain a secret. */
struct str url_authority(struct str url);

/* Whether a resolved address is allowed. loopback_only: this machine only. Always rejected:
 * link-local (metadata services of clouds), multicast, the unspecified address. */
bool url_address_allowed(const struct sockaddr *addr, bool loopback_only);
/* Appends a text in percent-encoding: all but unreserved characters (RFC 3986, 2.3). */
void url_escape(struct buf *out, struct str text);
#endif
