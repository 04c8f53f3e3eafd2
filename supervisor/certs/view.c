/* Reading certificates. */
#include <mbedtls/error.h>
#include <mbedtls/oid.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "supervisor/certs/certs_internal.h"

enum bt_code certs_error(struct bt_error *err, enum bt_code code, int rv, const char *what)
{
    char text[128] = "";

    mbedtls_strerror(rv, text, sizeof text);
    return err_set(err, code, "%s: %s", what, text);
}

static msec wall_of(const mbedtls_x509_time *t)
{
    struct tm tm = {.tm_year = t->year - 1900,
                    .tm_mon = t->mon - 1,
                    .tm_mday = t->day,
                    .tm_hour = t->hour,
                    .tm_min = t->min,
                    .tm_sec = t->sec};
    const time_t at = timegm(&tm);

    return at < 0 ? 0 : (msec)at * 1000;
}

static void copy(char *to, size_t cap, const unsigned char *from, size_t len)
{
    (void)snprintf(to, cap, "%.*s", (int)len, (const char *)from);
    for (char *at = to; *at != 0; at++) { /* it may be anybody's certificate */
        *at = *at < ' ' || *at > '~' ? '?' : *at;
    }
}

static void view_hosts(const mbedtls_x509_crt *crt, struct cert *ret)
{
    const mbedtls_x509_sequence *at = &crt->subject_alt_names;

    for (; at != NULL && ret->hosts_n < CERTS_HOSTS_MAX; at = at->next) {
        if (at->buf.p != NULL && (at->buf.tag & 0x1f) == MBEDTLS_X509_SAN_DNS_NAME) {
            copy(ret->hosts[ret->hosts_n++], sizeof ret->hosts[0], at->buf.p, at->buf.len);
        }
    }
}

static bool is_for(const mbedtls_x509_crt *crt, const char *oid, size_t len)
{
    return (crt->ext_types & MBEDTLS_X509_EXT_EXTENDED_KEY_USAGE) != 0 &&
           mbedtls_x509_crt_check_extended_key_usage(crt, oid, len) == 0;
}

void certs_view(const mbedtls_x509_crt *crt, struct cert *ret)
{
    *ret = (struct cert){.ca = crt->ca_istrue != 0,
                         .from = wall_of(&crt->valid_from),
                         .until = wall_of(&crt->valid_to)};
    for (const mbedtls_x509_name *at = &crt->subject; at != NULL; at = at->next) {
        if (MBEDTLS_OID_CMP(MBEDTLS_OID_AT_CN, &at->oid) == 0) {
            copy(ret->name, sizeof ret->name, at->val.p, at->val.len);
        }
    }
    for (size_t i = 0; i < crt->serial.len && i < CERTS_SERIAL_LEN / 2; i++) {
        (void)snprintf(ret->serial + 2 * i, 3, "%02x", crt->serial.p[i]);
    }
    ret->server = is_for(crt, MBEDTLS_OID_SERVER_AUTH, MBEDTLS_OID_SIZE(MBEDTLS_OID_SERVER_AUTH));
    ret->client = is_for(crt, MBEDTLS_OID_CLIENT_AUTH, MBEDTLS_OID_SIZE(MBEDTLS_OID_CLIENT_AUTH));
    view_hosts(crt, ret);
}

enum bt_code certs_read(const char *path, struct cert *ret, struct bt_error *err)
{
    unsigned char pem[CERTS_PEM_MAX];
    mbedtls_x509_crt crt;
    enum bt_code code = certs_file_read(path, false, pem, err);
    int rv;

    if (code != BT_OK) {
        return code;
    }
    mbedtls_x509_crt_init(&crt);
    rv = mbedtls_x509_crt_parse(&crt, pem, strlen((char *)pem) + 1);
    if (rv == 0) {
        certs_view(&crt, ret);
    } else {
        code = certs_error(err, BT_INVALID, rv, path);
    }
    mbedtls_x509_crt_free(&crt);
    mbedtls_platform_zeroize(pem, sizeof pem);
    return code;
}
