/*
 * Signatures of Standard Webhooks (https://www.standardwebhooks.com): HMAC-SHA-256 over id, time
 * and body, with one secret or two while one takes the place of the other. One thread.
 */
#ifndef GATEWAY_WEBHOOK_SIGN_H
#define GATEWAY_WEBHOOK_SIGN_H

#include "protocol/base/buf.h"

enum { SIGN_SECRETS_MAX = 2, SIGN_SECRET_MIN = 24, SIGN_SECRET_MAX = 64, SIGN_TEXT_MAX = 1024 };

struct sign_secrets {
    uint8_t at[SIGN_SECRETS_MAX][SIGN_SECRET_MAX];
    size_t len[SIGN_SECRETS_MAX];
    uint32_t n;
};

/* Reads one or two secrets with white space between: "whsec_" and base64 of 24 to 64 bytes. The
 * error names no part of the text. */
BT_MUST_CHECK enum bt_code sign_read(struct str text, struct sign_secrets *ret,
                                     struct bt_error *err);
/* Appends "v1,BASE64", once for each secret, a space between. */
BT_MUST_CHECK enum bt_code sign_put(const struct sign_secrets *s, struct str id, uint64_t time_s,
                                    struct str body, struct buf *out, struct bt_error *err);
void sign_forget(struct sign_secrets *s);
#endif
