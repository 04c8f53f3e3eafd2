/* What the handshake is made of: HMAC-SHA-256, HKDF, random bytes. Any thread. */
#ifndef AUTH_MAC_H
#define AUTH_MAC_H

#include <stdint.h>

#include "protocol/base/err.h"
#include "protocol/base/str.h"

enum { AUTH_KEY_BYTES = 32, AUTH_NONCE_BYTES = 32, AUTH_SID_BYTES = 16 };

/* A key that many messages are sealed with: SHA-256 after its first block, inner and outer. As
 * secret as the key. */
struct auth_mac_key {
    uint32_t inner[8], outer[8];
};

BT_MUST_CHECK bool auth_mac_key_make(const uint8_t key[AUTH_KEY_BYTES], struct auth_mac_key *ret);
/* HMAC-SHA-256 (RFC 2104) of the parts, one after the other. False: it failed; ret is zero. */
BT_MUST_CHECK bool auth_mac(const struct auth_mac_key *key, const struct str *parts, size_t n,
                            uint8_t ret[AUTH_KEY_BYTES]);
/* The same, of a key that is used once. */
BT_MUST_CHECK bool auth_hmac(const uint8_t key[AUTH_KEY_BYTES], const struct str *parts, size_t n,
                             uint8_t ret[AUTH_KEY_BYTES]);
/* HKDF-SHA-256 (RFC 5869), 32 bytes. */
BT_MUST_CHECK bool auth_hkdf(const uint8_t key[AUTH_KEY_BYTES], struct str salt, struct str info,
                             uint8_t ret[AUTH_KEY_BYTES]);
BT_MUST_CHECK bool auth_random(uint8_t *ret, size_t n);
/* Takes the same time wherever the first difference is. */
bool auth_equal(const uint8_t *a, const uint8_t *b, size_t n);

/* 2 * n lower-case digits and a zero byte. */
void auth_hex(const uint8_t *bytes, size_t n, char *ret);
/* False: not exactly 2 * n hexadecimal digits of lower case. */
bool auth_unhex(struct str hex, uint8_t *ret, size_t n);
#endif
