/*
 * The list of certificates that are revoked before their end (RFC 5280, version 1). mbed TLS 2.28
 * reads such lists and writes none: the DER is made here, from its end to its beginning.
 */
#include <mbedtls/asn1write.h>
#include <mbedtls/oid.h>
#include <mbedtls/pem.h>
#include <mbedtls/sha256.h>
#include <mbedtls/x509_crl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/certs/certs_internal.h"

enum {
    ENTRY_BYTES = 48, /* a serial and a time, with their tags */
    LIST_BYTES = 2048,
    SIGNATURE_BYTES = MBEDTLS_PK_SIGNATURE_MAX_SIZE,
    YEAR_OF_LONG_TIMES = 2050
};

#define SEQUENCE (MBEDTLS_ASN1_CONSTRUCTED | MBEDTLS_ASN1_SEQUENCE)

struct entry {
    char serial[CERTS_SERIAL_LEN + 1];
    msec at;
};

struct list {
    struct entry *at;
    uint32_t n;
};

/* ---- what is on the list ---- */

static msec time_of(const mbedtls_x509_time *t)
{
    struct tm tm = {.tm_year = t->year - 1900,
                    .tm_mon = t->mon - 1,
                    .tm_mday = t->day,
                    .tm_hour = t->hour,
                    .tm_min = t->min,
                    .tm_sec = t->sec};

    return (msec)timegm(&tm) * 1000;
}

static bool has(const struct list *l, const char *serial)
{
    for (uint32_t i = 0; i < l->n; i++) {
        if (strcmp(l->at[i].serial, serial) == 0) {
            return true;
        }
    }
    return false;
}

static enum bt_code add(struct list *l, const char *serial, msec at, struct bt_error *err)
{
    struct entry *more;

    if (l->n == CERTS_REVOKED_MAX) {
        return err_set(err, BT_LIMIT,
                       "%d certificates are revoked, the limit: make another authority",
                       CERTS_REVOKED_MAX);
    }
    more = realloc(l->at, (l->n + 1) * sizeof *more);
    if (more == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a list of certificates");
    }
    l->at = more;
    (void)snprintf(more[l->n].serial, sizeof more[l->n].serial, "%s", serial);
    more[l->n++].at = at;
    return BT_OK;
}

static enum bt_code read_entries(const mbedtls_x509_crl *crl, struct list *ret,
                                 struct bt_error *err)
{
    enum bt_code code = BT_OK;

    for (const mbedtls_x509_crl_entry *e = &crl->entry;
         e != NULL && e->raw.len > 0 && code == BT_OK; e = e->next) {
        char serial[CERTS_SERIAL_LEN + 1] = "";
        for (size_t i = 0; i < e->serial.len && i < CERTS_SERIAL_LEN / 2; i++) {
            (void)snprintf(serial + 2 * i, 3, "%02x", e->serial.p[i]);
        }
        code = add(ret, serial, time_of(&e->revocation_date), err);
    }
    return code;
}

/* DIR/crl.pem; without it nothing is revoked. */
static enum bt_code read_list(const char *dir, struct list *ret, struct bt_error *err)
{
    char path[CERTS_PATH_MAX];
    mbedtls_x509_crl crl;
    enum bt_code code = certs_path(dir, "crl.pem", path, err);
    int rv;

    if (code != BT_OK || access(path, F_OK) != 0) {
        return code;
    }
    mbedtls_x509_crl_init(&crl);
    rv = mbedtls_x509_crl_parse_file(&crl, path);
    if (rv != 0) {
        (void)certs_error(err, BT_INVALID, rv, "is no list of revoked certificates");
        code = err_wrap(err, "%s", path);
    } else {
        code = read_entries(&crl, ret, err);
    }
    mbedtls_x509_crl_free(&crl);
    return code;
}

/* ---- DER ---- */

/* Where the next bytes go, in front of what is there; rv < 0: an error of mbed TLS. */
struct der {
    unsigned char *start, *at;
    int rv;
};

static void put(struct der *d, int tag, const void *bytes, size_t len)
{
    if (d->rv >= 0) {
        d->rv = mbedtls_asn1_write_raw_buffer(&d->at, d->start, bytes, len);
    }
    if (d->rv >= 0) {
        d->rv = mbedtls_asn1_write_len(&d->at, d->start, len);
    }
    if (d->rv >= 0) {
        d->rv = mbedtls_asn1_write_tag(&d->at, d->start, (unsigned char)tag);
    }
}

/* Everything from here to `end` is one sequence. */
static void close_sequence(struct der *d, const unsigned char *end)
{
    if (d->rv >= 0) {
        d->rv = mbedtls_asn1_write_len(&d->at, d->start, (size_t)(end - d->at));
    }
    if (d->rv >= 0) {
        d->rv = mbedtls_asn1_write_tag(&d->at, d->start, SEQUENCE);
    }
}

static void put_algorithm(struct der *d)
{
    if (d->rv >= 0) {
        d->rv =
            mbedtls_asn1_write_algorithm_identifier(&d->at, d->start, MBEDTLS_OID_ECDSA_SHA256,
                                                    MBEDTLS_OID_SIZE(MBEDTLS_OID_ECDSA_SHA256), 0);
    }
}

static void put_time(struct der *d, msec at)
{
    const time_t seconds = (time_t)(at / 1000);
    const char *from;
    char text[20] = "";
    struct tm tm;
    bool is_short;

    if (gmtime_r(&seconds, &tm) == NULL) {
        d->rv = MBEDTLS_ERR_X509_INVALID_DATE;
        return;
    }
    is_short = tm.tm_year + 1900 < YEAR_OF_LONG_TIMES; /* without the century */
    (void)strftime(text, sizeof text, "%Y%m%d%H%M%SZ", &tm);
    from = is_short ? text + 2 : text;
    put(d, is_short ? MBEDTLS_ASN1_UTC_TIME : MBEDTLS_ASN1_GENERALIZED_TIME, from, strlen(from));
}

static void put_entries(struct der *d, const struct list *l)
{
    const unsigned char *end = d->at;

    for (uint32_t i = l->n; i > 0; i--) {
        const struct entry *e = &l->at[i - 1];
        const unsigned char *of = d->at;
        unsigned char serial[CERTS_SERIAL_LEN / 2];
        for (size_t k = 0; k < sizeof serial; k++) {
            const char digits[3] = {e->serial[2 * k], e->serial[2 * k + 1], 0};
            serial[k] = (unsigned char)strtoul(digits, NULL, 16);
        }
        put_time(d, e->at);
        put(d, MBEDTLS_ASN1_INTEGER, serial, sizeof serial);
        close_sequence(d, of);
    }
    close_sequence(d, end);
}

/* The list itself, which is signed. It is valid as long as its authority. */
static void put_body(struct der *d, const struct authority *a, const struct list *l, msec now)
{
    const unsigned char *end = d->at;
    struct cert ca;

    certs_view(&a->cert, &ca);
    put_entries(d, l);
    put_time(d, ca.until);
    put_time(d, now);
    if (d->rv >= 0) {
        d->rv = mbedtls_asn1_write_raw_buffer(&d->at, d->start, a->cert.subject_raw.p,
                                              a->cert.subject_raw.len);
    }
    put_algorithm(d);
    close_sequence(d, end);
}

static int sign(struct authority *a, const struct der *body, size_t len,
                unsigned char ret[SIGNATURE_BYTES], size_t *ret_len)
{
    unsigned char hash[32];
    const int rv = mbedtls_sha256_ret(body->at, len, hash, 0);

    return rv != 0 ? rv
                   : mbedtls_pk_sign(&a->key, MBEDTLS_MD_SHA256, hash, 0, ret, ret_len,
                                     mbedtls_ctr_drbg_random, &a->random);
}

/* In `bytes`, which has `cap`, from *ret_at to its end. 0, or an error of mbed TLS. */
static int make(struct authority *a, const struct list *l, msec now, unsigned char *bytes,
                size_t cap, unsigned char **ret_at)
{
    unsigned char signature[SIGNATURE_BYTES];
    size_t signature_len = 0;
    struct der body = {bytes, bytes + cap / 2, 0};
    struct der d = {bytes + cap / 2, bytes + cap, 0};
    size_t len;

    put_body(&body, a, l, now);
    len = (size_t)(bytes + cap / 2 - body.at);
    d.rv = body.rv < 0 ? body.rv : sign(a, &body, len, signature, &signature_len);
    if (d.rv >= 0) {
        d.rv = mbedtls_asn1_write_bitstring(&d.at, d.start, signature, 8 * signature_len);
    }
    put_algorithm(&d);
    if (d.rv >= 0) {
        d.rv = mbedtls_asn1_write_raw_buffer(&d.at, d.start, body.at, len);
    }
    close_sequence(&d, bytes + cap);
    *ret_at = d.at;
    return d.rv < 0 ? d.rv : 0;
}

/* ---- revoke ---- */

/* The list as PEM; freed with free(). */
static enum bt_code make_pem(struct authority *a, const struct list *l, msec now, char **ret,
                             struct bt_error *err)
{
    const size_t cap = 2 * (LIST_BYTES + (size_t)l->n * ENTRY_BYTES);
    unsigned char *der = malloc(cap);
    unsigned char *at = NULL;
    char *pem = malloc(2 * cap);
    size_t len = 0;
    int rv = MBEDTLS_ERR_X509_ALLOC_FAILED;

    if (der != NULL && pem != NULL) {
        rv = make(a, l, now, der, cap, &at);
    }
    if (rv == 0) {
        rv =
            mbedtls_pem_write_buffer("-----BEGIN X509 CRL-----\n", "-----END X509 CRL-----\n", at,
                                     (size_t)(der + cap - at), (unsigned char *)pem, 2 * cap, &len);
    }
    free(der);
    if (rv != 0) {
        free(pem);
        return certs_error(err, BT_INTERNAL, rv, "the list of revoked certificates cannot be made");
    }
    *ret = pem;
    return BT_OK;
}

static bool is_same(const char *a, const char *b)
{
    struct stat x;
    struct stat y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* TO/ca.pem: the authority, and the list after it. */
static enum bt_code give_list(const struct authority *a, const char *dir, const char *to,
                              const char *pem, struct bt_error *err)
{
    const size_t n = strlen((const char *)a->cert_pem);
    char *both = malloc(n + strlen(pem) + 1);
    char path[CERTS_PATH_MAX];
    char own[CERTS_PATH_MAX];
    enum bt_code code = certs_path(to, "ca.pem", path, err);

    if (both == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for %s", to);
    }
    code = code == BT_OK ? certs_path(dir, "ca.pem", own, err) : code;
    if (code == BT_OK && access(path, F_OK) != 0) {
        code = err_set(err, BT_NOT_FOUND,
                       "%s does not exist: --to is the directory of the `ca` of the daemon that is "
                       "to refuse it. It is on the list of the authority",
                       path);
    }
    code = code == BT_OK ? certs_check_authority(a, path, err) : code;
    if (code == BT_OK && is_same(path, own)) {
        code = err_set(err, BT_CONFLICT,
                       "%s is the authority's own: let the daemon have a copy of it, and name its "
                       "directory with --to",
                       path);
    }
    if (code == BT_OK) {
        memcpy(both, a->cert_pem, n);
        memcpy(both + n, pem, strlen(pem) + 1);
        code = certs_file_write(path, both, strlen(both), 0644, true, err);
    }
    free(both);
    return code;
}

/* Whether the name or serial means this certificate. */
static bool is_meant(const struct cert *c, const char *which)
{
    return !c->ca && (strcmp(c->name, which) == 0 || strcmp(c->serial, which) == 0);
}

static enum bt_code add_meant(const char *dir, const char *which, msec now, struct list *l,
                              uint32_t *ret_n, struct bt_error *err)
{
    struct cert *all = NULL;
    uint32_t n = 0;
    bool found = false;
    enum bt_code code = certs_list(dir, &all, &n, err);

    *ret_n = 0;
    for (uint32_t i = 0; i < n && code == BT_OK; i++) {
        if (is_meant(&all[i], which)) {
            found = true;
            if (!has(l, all[i].serial)) {
                code = add(l, all[i].serial, now, err);
                (*ret_n)++;
            }
        }
    }
    free(all);
    return code == BT_OK && !found
               ? err_set(err, BT_NOT_FOUND,
                         "%s has issued no certificate '%.80s'; see: baton certs show", dir, which)
               : code;
}

enum bt_code certs_revoke(const char *dir, const char *which, const char *to, msec now,
                          uint32_t *ret_n, struct bt_error *err)
{
    struct authority *a = NULL;
    struct list l = {NULL, 0};
    char path[CERTS_PATH_MAX];
    char *pem = NULL;
    enum bt_code code = certs_authority_load(dir, &a, err);

    code = code == BT_OK ? read_list(dir, &l, err) : code;
    code = code == BT_OK ? add_meant(dir, which, now, &l, ret_n, err) : code;
    code = code == BT_OK ? make_pem(a, &l, now, &pem, err) : code;
    code = code == BT_OK ? certs_path(dir, "crl.pem", path, err) : code;
    code = code == BT_OK ? certs_file_write(path, pem, strlen(pem), 0644, true, err) : code;
    code = code == BT_OK ? give_list(a, dir, to, pem, err) : code;
    free(pem);
    free(l.at);
    certs_authority_free(a);
    return code;
}

enum bt_code certs_mark_revoked(const char *dir, struct cert *all, uint32_t n, struct bt_error *err)
{
    struct list l = {NULL, 0};
    const enum bt_code code = read_list(dir, &l, err);

    for (uint32_t i = 0; i < n && code == BT_OK; i++) {
        all[i].revoked = has(&l, all[i].serial);
    }
    free(l.at);
    return code;
}
