/* SHA-256 by Nettle, which uses the processor's instructions for it: each row of the journal and
 * each file goes through here. */
#include <nettle/sha2.h>
#include <stdlib.h>
#include <strings.h>

#include "protocol/artifact/artifact.h"

struct artifact_digest {
    struct sha256_ctx context;
};

struct artifact_digest *artifact_digest_new(void)
{
    struct artifact_digest *d = malloc(sizeof *d);

    if (d != NULL) {
        sha256_init(&d->context);
    }
    return d;
}

void artifact_digest_add(struct artifact_digest *d, const void *bytes, size_t len)
{
    sha256_update(&d->context, len, bytes);
}

void artifact_digest_end(struct artifact_digest *d, char ret[ARTIFACT_SHA256_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t sum[SHA256_DIGEST_SIZE];

    sha256_digest(&d->context, sizeof sum, sum);
    for (size_t i = 0; i < sizeof sum; i++) {
        ret[2 * i] = digits[sum[i] >> 4];
        ret[2 * i + 1] = digits[sum[i] & 15];
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
    free(d);
}
