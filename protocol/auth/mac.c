#include "protocol/auth/mac.h"

#include <errno.h>
#include <mbedtls/hkdf.h>
#include <mbedtls/md.h>
#include <sys/random.h>

static bool hmac(mbedtls_md_context_t *md, const uint8_t *key, const struct str *parts, size_t n,
                 uint8_t *ret)
{
    if (mbedtls_md_setup(md, mbedtls_md_info_from_type(MBEDTLS_MD_SHA256), 1) != 0 ||
        mbedtls_md_hmac_starts(md, key, AUTH_KEY_BYTES) != 0) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (mbedtls_md_hmac_update(md, (const uint8_t *)parts[i].ptr, parts[i].len) != 0) {
            return false;
        }
    }
    return mbedtls_md_hmac_finish(md, ret) == 0;
}

bool auth_hmac(const uint8_t key[AUTH_KEY_BYTES], const struct str *parts, size_t n,
               uint8_t ret[AUTH_KEY_BYTES])
{
    mbedtls_md_context_t md;
    bool ok;

    memset(ret, 0, AUTH_KEY_BYTES);
    mbedtls_md_init(&md);
    ok = hmac(&md, key, parts, n, ret);
    mbedtls_md_free(&md);
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
