#include "supervisor/gateway/webhook/sign.h"

#include <inttypes.h>
#include <mbedtls/md.h>
#include <string.h>

#include "protocol/wire/base64.h"
#include "protocol/wire/doc.h"

static bool take(struct sign_secrets *s, struct str word)
{
    static const char prefix[] = "whsec_";
    const size_t skip = sizeof prefix - 1;
    struct buf bytes;
    bool ok;

    if (s->n == SIGN_SECRETS_MAX || word.len <= skip || memcmp(word.ptr, prefix, skip) != 0) {
        return false;
    }
    buf_init(&bytes, SIGN_TEXT_MAX);
    ok = json_read_base64((struct str){word.ptr + skip, word.len - skip}, &bytes, NULL) == BT_OK &&
         bytes.len >= SIGN_SECRET_MIN && bytes.len <= SIGN_SECRET_MAX;
    if (ok) {
        memcpy(s->at[s->n], bytes.at, bytes.len);
        s->len[s->n++] = bytes.len;
    }
    if (bytes.at != NULL) {
        explicit_bzero(bytes.at, bytes.cap);
    }
    buf_done(&bytes);
    return ok;
}

enum bt_code sign_read(struct str text, struct sign_secrets *ret, struct bt_error *err)
{
    bool ok = true;

    *ret = (struct sign_secrets){.n = 0};
    text = str_trimmed(text);
    while (ok && text.len > 0) {
        size_t n = 0;
        while (n < text.len && !str_is_space(text.ptr[n])) {
            n++;
        }
        ok = take(ret, (struct str){text.ptr, n});
        text = str_trimmed((struct str){text.ptr + n, text.len - n});
    }
    if (ok && ret->n > 0) {
        return BT_OK;
    }
    sign_forget(ret);
    return err_set(err, BT_INVALID,
                   "expected one secret, or two with a line or space between, each whsec_ and the "
                   "base64 of %d to %d bytes",
                   SIGN_SECRET_MIN, SIGN_SECRET_MAX);
}

enum bt_code sign_put(const struct sign_secrets *s, struct str id, uint64_t time_s, struct str body,
                      struct buf *out, struct bt_error *err)
{
    const mbedtls_md_info_t *sha = mbedtls_md_info_from_type(MBEDTLS_MD_SHA256);
    struct buf text;
    int bad = sha == NULL;

    buf_init(&text, body.len + id.len + 64);
    buf_add_str(&text, id);
    buf_printf(&text, ".%" PRIu64 ".", time_s);
    buf_add_str(&text, body);
    bad |= buf_check(&text, err) != BT_OK;
    for (uint32_t i = 0; !bad && i < s->n; i++) {
        uint8_t mac[32];
        bad |= mbedtls_md_hmac(sha, s->at[i], s->len[i], text.at, text.len, mac);
        buf_add_cstr(out, i > 0 ? " v1," : "v1,");
        json_put_base64(out, (struct str){(const char *)mac, sizeof mac});
    }
    buf_done(&text);
    return bad ? err_set(err, BT_INTERNAL, "the event cannot be signed") : buf_check(out, err);
}

void sign_forget(struct sign_secrets *s)
{
    explicit_bzero(s, sizeof *s);
}
