#include "protocol/auth/mac.h"

#include <errno.h>
#include <mbedtls/hkdf.h>
#include <mbedtls/md.h>
#include <mbedtls/sha256.h>
#include <sys/random.h>

enum { BLOCK_BYTES = 64, INNER_PAD = 0x36, OUTER_PAD = 0x5c };

/* The state after the key's block. A context would be three times as large, and have a buffer. */
static bool pad(mbedtls_sha256_context *sha, const uint8_t *key, uint8_t with, uint32_t ret[8])
{
    uint8_t block[BLOCK_BYTES];
    bool ok;

    memset(block, with, sizeof block);
    for (size_t i = 0; i < AUTH_KEY_BYTES; i++) {
        block[i] ^= key[i];
    }
    ok = mbedtls_sha256_starts_ret(sha, 0) == 0 &&
         mbedtls_sha256_update_ret(sha, block, sizeof block) == 0;
    memcpy(ret, sha->state, sizeof sha->state);
    explicit_bzero(block, sizeof block);
    return ok;
}

bool auth_mac_key_make(const uint8_t key[AUTH_KEY_BYTES], struct auth_mac_key *ret)
{
    mbedtls_sha256_context sha;
    bool ok;

    mbedtls_sha256_init(&sha);
    ok = pad(&sha, key, INNER_PAD, ret->inner) && pad(&sha, key, OUTER_PAD, ret->outer);
    mbedtls_sha256_free(&sha);
    return ok;
}

/* SHA-256 goes on after that block. */
static bool resume(mbedtls_sha256_context *sha, const uint32_t state[8])
{
    if (mbedtls_sha256_starts_ret(sha, 0) != 0) {
        return false;
    }
    memcpy(sha->state, state, sizeof sha->state);
    sha->total[0] = BLOCK_BYTES;
    return true;
}

static bool mac(mbedtls_sha256_context *sha, const struct auth_mac_key *key,
                const struct str *parts, size_t n, uint8_t *ret)
{
    if (!resume(sha, key->inner)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (mbedtls_sha256_update_ret(sha, (const uint8_t *)parts[i].ptr, parts[i].len) != 0) {
            return false;
        }
    }
    return mbedtls_sha256_finish_ret(sha, ret) == 0 && resume(sha, key->outer) &&
           mbedtls_sha256_update_ret(sha, ret, AUTH_KEY_BYTES) == 0 &&
           mbedtls_sha256_finish_ret(sha, ret) == 0;
}

bool auth_mac(const struct auth_mac_key *key, const struct str *parts, size_t n,
              uint8_t ret[AUTH_KEY_BYTES])
{
    mbedtls_sha256_context sha;
    bool ok;

    mbedtls_sha256_init(&sha);
    ok = mac(&sha, key, parts, n, ret);
    mbedtls_sha256_free(&sha);
    if (!ok) {
        memset(ret, 0, AUTH_KEY_BYTES);
    }
    return ok;
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
