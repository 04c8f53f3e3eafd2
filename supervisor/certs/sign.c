/* Keys and signatures. mbed TLS 2.28 writes neither alternative names nor extended usages by
 * itself: their DER is made here, from its end to its beginning, as its functions do. */
#include <arpa/inet.h>
#include <mbedtls/asn1write.h>
#include <mbedtls/ecp.h>
#include <mbedtls/oid.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "supervisor/certs/certs_internal.h"

enum { DER_MAX = 8192, NAME_TEXT_MAX = 128, NAME_PARTS = 512 };

enum bt_code certs_make_key(struct authority *a, mbedtls_pk_context *ret, struct bt_error *err)
{
    int rv = mbedtls_pk_setup(ret, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY));

    if (rv == 0) {
        rv = mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(*ret),
                                 mbedtls_ctr_drbg_random, &a->random);
    }
    return rv == 0 ? BT_OK : certs_error(err, BT_INTERNAL, rv, "a key cannot be made");
}

/* Puts the bytes before *at, with length and tag; the number of bytes, or an error of mbed TLS. */
static int put(unsigned char **at, unsigned char *start, int tag, const void *bytes, size_t len)
{
    int rv = mbedtls_asn1_write_raw_buffer(at, start, bytes, len);
    int n = rv;

    rv = rv < 0 ? rv : mbedtls_asn1_write_len(at, start, len);
    n += rv;
    rv = rv < 0 ? rv : mbedtls_asn1_write_tag(at, start, (unsigned char)tag);
    return rv < 0 ? rv : n + rv;
}

static int add_sequence(mbedtls_x509write_cert *out, const char *oid, size_t oid_len,
                        unsigned char *start, unsigned char *at, unsigned char *end)
{
    const size_t len = (size_t)(end - at);
    int rv = mbedtls_asn1_write_len(&at, start, len);

    rv = rv < 0
             ? rv
             : mbedtls_asn1_write_tag(&at, start, MBEDTLS_ASN1_CONSTRUCTED | MBEDTLS_ASN1_SEQUENCE);
    return rv < 0
               ? rv
               : mbedtls_x509write_crt_set_extension(out, oid, oid_len, 0, at, (size_t)(end - at));
}

/* mbed TLS 2.28 compares a dialed address with names only, others with addresses: an address is
 * both. */
static int add_hosts(mbedtls_x509write_cert *out, const struct cert *want)
{
    unsigned char der[DER_MAX];
    unsigned char *at = der + sizeof der;
    int rv = 0;

    if (want->hosts_n == 0) {
        return 0;
    }
    for (uint32_t i = want->hosts_n; i > 0 && rv >= 0; i--) {
        const char *host = want->hosts[i - 1];
        unsigned char bytes[sizeof(struct in6_addr)];
        const size_t len = inet_pton(AF_INET, host, bytes) == 1    ? 4
                           : inet_pton(AF_INET6, host, bytes) == 1 ? 16
                                                                   : 0;
        if (len > 0) {
            rv = put(&at, der, MBEDTLS_ASN1_CONTEXT_SPECIFIC | MBEDTLS_X509_SAN_IP_ADDRESS, bytes,
                     len);
        }
        rv = rv < 0 ? rv
                    : put(&at, der, MBEDTLS_ASN1_CONTEXT_SPECIFIC | MBEDTLS_X509_SAN_DNS_NAME, host,
                          strlen(host));
    }
    return rv < 0 ? rv
                  : add_sequence(out, MBEDTLS_OID_SUBJECT_ALT_NAME,
                                 MBEDTLS_OID_SIZE(MBEDTLS_OID_SUBJECT_ALT_NAME), der, at,
                                 der + sizeof der);
}

static int add_uses(mbedtls_x509write_cert *out, const struct cert *want)
{
    unsigned char der[64];
    unsigned char *at = der + sizeof der;
    int rv = 0;

    if (want->client) {
        rv = put(&at, der, MBEDTLS_ASN1_OID, MBEDTLS_OID_CLIENT_AUTH,
                 MBEDTLS_OID_SIZE(MBEDTLS_OID_CLIENT_AUTH));
    }
    if (rv >= 0 && want->server) {
        rv = put(&at, der, MBEDTLS_ASN1_OID, MBEDTLS_OID_SERVER_AUTH,
                 MBEDTLS_OID_SIZE(MBEDTLS_OID_SERVER_AUTH));
    }
    return rv < 0 ? rv
                  : add_sequence(out, MBEDTLS_OID_EXTENDED_KEY_USAGE,
                                 MBEDTLS_OID_SIZE(MBEDTLS_OID_EXTENDED_KEY_USAGE), der, at,
                                 der + sizeof der);
}

static int set_times(mbedtls_x509write_cert *out, const struct cert *want)
{
    const time_t at[2] = {(time_t)(want->from / 1000), (time_t)(want->until / 1000)};
    char text[2][32];
    struct tm tm;

    for (int i = 0; i < 2; i++) { /* mbed TLS refuses a year of more than four digits */
        (void)gmtime_r(&at[i], &tm);
        (void)strftime(text[i], sizeof text[i], "%Y%m%d%H%M%S", &tm);
    }
    return mbedtls_x509write_crt_set_validity(out, text[0], text[1]);
}

static int set_names(mbedtls_x509write_cert *out, const struct authority *a,
                     const struct cert *want)
{
    char subject[NAME_TEXT_MAX];
    char issuer[NAME_PARTS];
    int rv;

    (void)snprintf(subject, sizeof subject, "CN=%s,O=Baton", want->name);
    rv = mbedtls_x509write_crt_set_subject_name(out, subject);
    if (rv != 0 || want->ca) {
        return rv != 0 ? rv : mbedtls_x509write_crt_set_issuer_name(out, subject);
    }
    rv = mbedtls_x509_dn_gets(issuer, sizeof issuer, &a->cert.subject);
    return rv < 0 ? rv : mbedtls_x509write_crt_set_issuer_name(out, issuer);
}

static int fill(mbedtls_x509write_cert *out, struct authority *a, const struct cert *want,
                mbedtls_mpi *serial, mbedtls_pk_context *key)
{
    int rv = mbedtls_mpi_read_string(serial, 16, want->serial);

    mbedtls_x509write_crt_set_version(out, MBEDTLS_X509_CRT_VERSION_3);
    mbedtls_x509write_crt_set_md_alg(out, MBEDTLS_MD_SHA256);
    mbedtls_x509write_crt_set_subject_key(out, key);
    mbedtls_x509write_crt_set_issuer_key(out, &a->key);
    rv = rv != 0 ? rv : mbedtls_x509write_crt_set_serial(out, serial);
    rv = rv != 0 ? rv : set_names(out, a, want);
    rv = rv != 0 ? rv : set_times(out, want);
    rv = rv != 0 ? rv
                 : mbedtls_x509write_crt_set_basic_constraints(out, want->ca, want->ca ? 0 : -1);
    rv = rv != 0 ? rv : mbedtls_x509write_crt_set_subject_key_identifier(out);
    rv = rv != 0 ? rv : mbedtls_x509write_crt_set_authority_key_identifier(out);
    rv = rv != 0 ? rv
                 : mbedtls_x509write_crt_set_key_usage(
                       out, want->ca ? MBEDTLS_X509_KU_KEY_CERT_SIGN | MBEDTLS_X509_KU_CRL_SIGN
                                     : MBEDTLS_X509_KU_DIGITAL_SIGNATURE);
    if (rv == 0 && !want->ca) {
        rv = add_uses(out, want);
        rv = rv != 0 ? rv : add_hosts(out, want);
    }
    return rv;
}

enum bt_code certs_sign(struct authority *a, const struct cert *want, mbedtls_pk_context *key,
                        bool key_too, unsigned char ret[CERTS_PEM_MAX], struct bt_error *err)
{
    mbedtls_x509write_cert out;
    mbedtls_mpi serial;
    size_t len = 0;
    int rv;

    mbedtls_x509write_crt_init(&out);
    mbedtls_mpi_init(&serial);
    rv = fill(&out, a, want, &serial, key);
    if (rv == 0) {
        rv = mbedtls_x509write_crt_pem(&out, ret, CERTS_PEM_MAX, mbedtls_ctr_drbg_random,
                                       &a->random);
    }
    if (rv == 0 && key_too) {
        len = strlen((char *)ret);
        rv = mbedtls_pk_write_key_pem(key, ret + len, CERTS_PEM_MAX - len);
    }
    mbedtls_x509write_crt_free(&out);
    mbedtls_mpi_free(&serial);
    return rv == 0 ? BT_OK : certs_error(err, BT_INTERNAL, rv, "a certificate cannot be made");
}
