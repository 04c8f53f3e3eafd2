#include "protocol/auth/mac.h"

#include <errno.h>
#include <mbedtls/hkdf.h>
#include <mbedtls/md.h>
#include <nettle/sha2.h>
#include <sys/random.h>

enum { BLOCK_BYTES = 64, INNER_PAD = 0x36, OUTER_PAD = 0x5c };

/* The state after the key's block. A context would be three times as large, and have a buffer. */
static void pad(const uint8_t *key, uint8_t with, uint32_t ret[8])
{
    uint8_t block[BLOCK_BYTES];
    struct sha256_ctx sha;

    memset(block, with, sizeof block);
    for (size_t i = 0; i < AUTH_KEY_BYTES; i++) {
        block[i] ^= key[i];
    }
    sha256_init(&sha);
    sha256_update(&sha, sizeof block, block);
    memcpy(ret, sha.state, sizeof sha.state);
    explicit_bzero(&sha, sizeof sha);
    explicit_bzero(block, sizeof block);
}

bool auth_mac_key_make(const uint8_t key[AUTH_KEY_BYTES], struct auth_mac_key *ret)
{
    pad(key, INNER_PAD, ret->inner);
    pad(key, OUTER_PAD, ret->outer);
    return true;
}

/* SHA-256 goes on after that block. */
static void resume(struct sha256_ctx *sha, const uint32_t state[8])
{
    sha256_init(sha);
    memcpy(sha->state, state, sizeof sha->state);
    sha->count = 1; /* blocks */
}

bool auth_mac(const struct auth_mac_key *key, const struct str *parts, size_t n,
              uint8_t ret[AUTH_KEY_BYTES])
{
    struct sha256_ctx sha;

    resume(&sha, key->inner);
    for (size_t i = 0; i < n; i++) {
        sha256_update(&sha, parts[i].len, (const uint8_t *)parts[i].ptr);
    }
    sha256_digest(&sha, AUTH_KEY_BYTES, ret);
    resume(&sha, key->outer);
    sha256_update(&sha, AUTH_KEY_BYTES, ret);
    sha256_digest(&sha, AUTH_KEY_BYTES, ret);
    explicit_bzero(&sha, sizeof sha);
    return true;
}

bool auth_hmac(const uint8_t key[AUTH_KEY_BYTES], const struct str *parts, size_t n,
               uint8_t ret[AUTH_KEY_BYTES])
{
    struct auth_mac_key made;
    bool ok;

    memset(ret, 0, AUTH_KEY_BYTES);
    ok = auth_mac_key_make(key, &made) && auth_mac(&made, parts, n, ret);
    explicit_bzero(&made, sizeof made);
    return ok;
}

bool auth_hkdf(const uint8_t key[AUTH_KEY_BYTES], struct str salt, struct str info,
               uint8_t ret[AUTH_KEY_BYTES])
{
    return mbedtls_hkdf(mbedtls_md_info_from_type(MBEDTLS_MD_SHA256), (const uint8_t *)salt.ptr,
                        salt.len, key, AUTH_KEY_BYTES, (const uint8_t *)info.ptr, info.len, ret,
                        AUTH_KEY_BYTES) == 0;
}

bool auth_random(uint8_t *ret, size_t n)
{
    ssize_t got;

    do {
        got = getrandom(ret, n, 0);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)n;
}

bool auth_equal(const uint8_t *a, const uint8_t *b, size_t n)
{
    volatile unsigned diff = 0;

    for (size_t i = 0; i < n; i++) {
        diff |= (unsigned)a[i] ^ (unsigned)b[i];
    }
    return diff == 0;
}

void auth_hex(const uint8_t *bytes, size_t n, char *ret)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        ret[2 * i] = digits[bytes[i] >> 4];
        ret[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret[2 * n] = 0;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool auth_unhex(struct str hex, uint8_t *ret, size_t n)
{
    if (hex.len != 2 * n) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        const int high = digit(hex.ptr[2 * i]);
        const int low = digit(hex.ptr[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        ret[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}
