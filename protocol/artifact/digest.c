/* SHA-256 by mbed TLS, which every program links already because nng does. */
#include <mbedtls/sha256.h>
#include <mbedtls/version.h>
#include <stdlib.h>
#include <strings.h>

#include "protocol/artifact/artifact.h"

/* Version 3 has the names without the suffix. */
#if MBEDTLS_VERSION_MAJOR < 3
#define mbedtls_sha256_starts mbedtls_sha256_starts_ret
#define mbedtls_sha256_update mbedtls_sha256_update_ret
#define mbedtls_sha256_finish mbedtls_sha256_finish_ret
#endif

struct artifact_digest {
    mbedtls_sha256_context context;
    bool bad; /* a hardware engine failed: the sum then equals none */
};

struct artifact_digest *artifact_digest_new(void)
{
    struct artifact_digest *d = malloc(sizeof *d);

    if (d != NULL) {
        mbedtls_sha256_init(&d->context);
        d->bad = mbedtls_sha256_starts(&d->context, 0) != 0;
    }
    return d;
}

void artifact_digest_add(struct artifact_digest *d, const void *bytes, size_t len)
{
    d->bad = mbedtls_sha256_update(&d->context, bytes, len) != 0 || d->bad;
}

void artifact_digest_end(struct artifact_digest *d, char ret[ARTIFACT_SHA256_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char sum[ARTIFACT_SHA256_LEN / 2] = {0};

    d->bad = mbedtls_sha256_finish(&d->context, sum) != 0 || d->bad;
    for (size_t i = 0; i < sizeof sum; i++) {
        ret[2 * i] = d->bad ? '-' : digits[sum[i] >> 4];
        ret[2 * i + 1] = d->bad ? '-' : digits[sum[i] & 15];
    }
    ret[ARTIFACT_SHA256_LEN] = 0;
}

bool artifact_digest_is(struct artifact_digest *d, struct str expected,
                        char ret[ARTIFACT_SHA256_LEN + 1])
{
    artifact_digest_end(d, ret);
    return expected.len == ARTIFACT_SHA256_LEN && strncasecmp(ret, expected.ptr, expected.len) == 0;
}

void artifact_digest_free(struct artifact_digest *d)
{
    if (d != NULL) {
        mbedtls_sha256_free(&d->context);
        free(d);
    }
}
