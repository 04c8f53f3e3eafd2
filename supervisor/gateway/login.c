#include "supervisor/gateway/login.h"

#include <errno.h>
#include <fcntl.h>
#include <mbedtls/gcm.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/replace.h"

enum { NONCE_BYTES = 12, TIME_BYTES = 8, TAG_BYTES = 16 };

static enum bt_code make_key(const char *path, struct login *ret, struct bt_error *err)
{
    if (!auth_random(ret->key, sizeof ret->key)) {
        return err_set(err, BT_IO, "the system has no random bytes");
    }
    return file_replace(path, ret->key, sizeof ret->key, err);
}

enum bt_code login_open(const char *state_dir, struct login *ret, struct bt_error *err)
{
    char path[4160];
    struct stat st;
    ssize_t n;
    int fd;

    (void)snprintf(path, sizeof path, "%s/%s", state_dir, LOGIN_FILE);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return errno == ENOENT ? make_key(path, ret, err)
                               : err_errno(err, errno, "cannot read %s", path);
    }
    n = fstat(fd, &st) == 0 && (st.st_mode & 077) == 0 ? read(fd, ret->key, sizeof ret->key) : -1;
    (void)close(fd);
    return n == (ssize_t)sizeof ret->key
               ? BT_OK
               : err_set(err, BT_INVALID,
                         "%s: expected 32 bytes that only its owner may read; delete it and start "
                         "again: then everybody logs in again",
                         path);
}

static bool begin(mbedtls_gcm_context *gcm, const struct login *l, const uint8_t *half)
{
    const struct str salt = {(const char *)half, LOGIN_HALF_BYTES};
    uint8_t key[AUTH_KEY_BYTES];
    bool ok = auth_hkdf(l->key, salt, STR_LIT("baton page log-in"), key);

    mbedtls_gcm_init(gcm);
    ok = ok && mbedtls_gcm_setkey(gcm, MBEDTLS_CIPHER_ID_AES, key, 256) == 0;
    explicit_bzero(key, sizeof key);
    return ok;
}

static void put_time(uint8_t *at, uint64_t ms)
{
    for (int i = 0; i < TIME_BYTES; i++) {
        at[i] = (uint8_t)(ms >> (56 - 8 * i));
    }
}

static uint64_t get_time(const uint8_t *at)
{
    uint64_t ms = 0;

    for (int i = 0; i < TIME_BYTES; i++) {
        ms = ms << 8 | at[i];
    }
    return ms;
}

bool login_seal(const struct login *l, struct str bearer, msec until,
                char ret_half[2 * LOGIN_HALF_BYTES + 1], struct buf *ret_cookie)
{
    uint8_t half[LOGIN_HALF_BYTES];
    uint8_t plain[TIME_BYTES + LOGIN_BEARER_MAX];
    uint8_t sealed[NONCE_BYTES + sizeof plain + TAG_BYTES];
    char hex[2 * sizeof sealed + 1];
    const size_t n = TIME_BYTES + bearer.len;
    mbedtls_gcm_context gcm;
    bool ok;

    if (bearer.len > LOGIN_BEARER_MAX || !auth_random(half, sizeof half) ||
        !auth_random(sealed, NONCE_BYTES)) {
        return false;
    }
    put_time(plain, (uint64_t)until);
    memcpy(plain + TIME_BYTES, bearer.ptr, bearer.len);
    ok =
        begin(&gcm, l, half) &&
        mbedtls_gcm_crypt_and_tag(&gcm, MBEDTLS_GCM_ENCRYPT, n, sealed, NONCE_BYTES, NULL, 0, plain,
                                  sealed + NONCE_BYTES, TAG_BYTES, sealed + NONCE_BYTES + n) == 0;
    mbedtls_gcm_free(&gcm);
    explicit_bzero(plain, sizeof plain);
    if (ok) {
        auth_hex(half, sizeof half, ret_half);
        auth_hex(sealed, NONCE_BYTES + n + TAG_BYTES, hex);
        buf_add_cstr(ret_cookie, hex);
    }
    return ok;
}

bool login_unseal(const struct login *l, struct str half, struct str cookie, msec now,
                  struct buf *ret_bearer)
{
    uint8_t key[LOGIN_HALF_BYTES];
    uint8_t sealed[LOGIN_COOKIE_MAX / 2];
    uint8_t plain[TIME_BYTES + LOGIN_BEARER_MAX];
    const size_t n = cookie.len / 2;
    const size_t over = NONCE_BYTES + TAG_BYTES;
    mbedtls_gcm_context gcm;
    bool ok = n > over + TIME_BYTES && cookie.len <= LOGIN_COOKIE_MAX &&
              auth_unhex(half, key, sizeof key) && auth_unhex(cookie, sealed, n);

    if (!ok) {
        return false;
    }
    ok = begin(&gcm, l, key) &&
         mbedtls_gcm_auth_decrypt(&gcm, n - over, sealed, NONCE_BYTES, NULL, 0,
                                  sealed + n - TAG_BYTES, TAG_BYTES, sealed + NONCE_BYTES,
                                  plain) == 0 &&
         get_time(plain) > (uint64_t)now;
    mbedtls_gcm_free(&gcm);
    if (ok) {
        buf_add(ret_bearer, plain + TIME_BYTES, n - over - TIME_BYTES);
    }
    explicit_bzero(plain, sizeof plain);
    return ok;
}

struct str login_cookie_find(struct str header, const char *name)
{
    const size_t n = strlen(name);

    while (header.len > 0) {
        const char *semicolon = memchr(header.ptr, ';', header.len);
        const size_t len = semicolon == NULL ? header.len : (size_t)(semicolon - header.ptr);
        const struct str one = str_trimmed((struct str){header.ptr, len});
        if (one.len > n && memcmp(one.ptr, name, n) == 0 && one.ptr[n] == '=') {
            return (struct str){one.ptr + n + 1, one.len - n - 1};
        }
        header.ptr += len + (semicolon != NULL);
        header.len -= len + (semicolon != NULL);
    }
    return (struct str){"", 0};
}
