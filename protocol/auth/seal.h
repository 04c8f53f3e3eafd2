/*
 * A sealed body: a header of 60 bytes, then the body. The header is checked before anything of the
 * body is read. It is no msgpack and no JSON, because both never begin with 0xC1.
 *
 *     0   4  C1 42 54 01     magic and version
 *     4  16  sid             the session, of auth.begin
 *    20   8  n               big-endian; rises with each request of the session
 *    28  32  MAC             HMAC-SHA-256(session key, direction | sid | n | body)
 *
 * Direction is "Q" in a request and "A" in its answer, which has the same sid and n.
 */
#ifndef AUTH_SEAL_H
#define AUTH_SEAL_H

#include "protocol/auth/mac.h"
#include "protocol/base/buf.h"

enum { SEAL_HEADER_BYTES = 60 };

enum seal_direction { SEAL_REQUEST = 'Q', SEAL_ANSWER = 'A' };

struct seal {
    uint8_t sid[AUTH_SID_BYTES];
    uint64_t n; /* 0 = not sealed: the first request of a session has 1 */
};

/* Whether the bytes claim to be sealed: their first one says so. */
bool seal_is_sealed(struct str bytes);
/* Reads the header; nothing is proved yet. False: too short, another version, or n is 0. */
bool seal_read(struct str bytes, struct seal *ret, struct str *ret_body);
/* Whether the MAC of these bytes, which seal_read took, is right. */
bool seal_check(const struct auth_mac_key *key, enum seal_direction direction, struct str bytes);

/* A header is to be written over SEAL_HEADER_BYTES at `at`, in front of `len` bytes of body. */
BT_MUST_CHECK bool seal_write(const struct auth_mac_key *key, enum seal_direction direction,
                              const struct seal *seal, uint8_t *at, size_t len);
#endif
