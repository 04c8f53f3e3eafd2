/* Shared by the files of this room. */
#ifndef CERTS_CERTS_INTERNAL_H
#define CERTS_CERTS_INTERNAL_H

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/pk.h>
#include <mbedtls/x509_crt.h>
#include <sys/types.h>

#include "supervisor/certs/certs.h"

enum { CERTS_PEM_MAX = 8192 };

/* An authority, or one to be, with random numbers for keys, signatures and serials. */
struct authority {
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context random;
    mbedtls_pk_context key;
    mbedtls_x509_crt cert;
    unsigned char cert_pem[CERTS_PEM_MAX];
};

/* ---- certs.c ---- */

/* *ret is freed with certs_authority_free, also after an error. */
BT_MUST_CHECK enum bt_code certs_authority_load(const char *dir, struct authority **ret,
                                                struct bt_error *err);
void certs_authority_free(struct authority *a);
/* BT_CONFLICT: the file does not begin with the certificate of the authority. BT_NOT_FOUND. */
BT_MUST_CHECK enum bt_code certs_check_authority(const struct authority *a, const char *path,
                                                 struct bt_error *err);

/* ---- files.c ---- */

/* Writes path through a temporary file and syncs it. replace false: BT_CONFLICT when it exists. */
BT_MUST_CHECK enum bt_code certs_file_write(const char *path, const void *bytes, size_t len,
                                            mode_t mode, bool replace, struct bt_error *err);
/* The text of a file with its terminating zero. is_key: BT_UNAUTHORIZED when others may read it. */
BT_MUST_CHECK enum bt_code certs_file_read(const char *path, bool is_key,
                                           unsigned char ret[CERTS_PEM_MAX], struct bt_error *err);
BT_MUST_CHECK enum bt_code certs_path(const char *dir, const char *name, char ret[CERTS_PATH_MAX],
                                      struct bt_error *err);

/* ---- view.c ---- */

/* "mbed TLS: ..." */
enum bt_code certs_error(struct bt_error *err, enum bt_code code, int rv, const char *what);
void certs_view(const mbedtls_x509_crt *crt, struct cert *ret);

/* ---- sign.c ---- */

/* Signs what `want` describes, with the authority's key; ca NULL: its own certificate. Appends the
 * private key after the certificate when key_too. */
BT_MUST_CHECK enum bt_code certs_sign(struct authority *a, const struct cert *want,
                                      mbedtls_pk_context *key, bool key_too,
                                      unsigned char ret[CERTS_PEM_MAX], struct bt_error *err);
BT_MUST_CHECK enum bt_code certs_make_key(struct authority *a, mbedtls_pk_context *ret,
                                          struct bt_error *err);
#endif
