/*
 * A small certificate authority in a directory, for the TLS of daemons, clients and agents on other
 * hosts: ECDSA P-256, X.509 v3, TLS 1.2. No daemon is needed. One thread.
 *
 *   DIR/ca.pem           the authority's certificate: every host may have it
 *   DIR/ca.key           its key (0600): whoever has it can issue certificates
 *   DIR/issued/SERIAL    what was issued: certificates without keys
 *   DIR/crl.pem          the list of those that are revoked, when there are any
 */
#ifndef CERTS_CERTS_H
#define CERTS_CERTS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/err.h"
#include "protocol/base/msec.h"

enum {
    CERTS_NAME_MAX = 63,
    CERTS_HOST_MAX = 253,
    CERTS_HOSTS_MAX = 16,
    CERTS_SERIAL_LEN = 16,
    CERTS_REVOKED_MAX = 1000,
    CERTS_PATH_MAX = 4096,
    CERTS_DAYS_MAX = 36500,
    CERTS_CA_DAYS = 3650,
    CERTS_LEAF_DAYS = 365,
    CERTS_BACKDATED_MS = 5 * 60 * 1000 /* clocks of hosts differ */
};

/* A certificate, as it was read or made. */
struct cert {
    char name[CERTS_NAME_MAX + 1];
    char serial[CERTS_SERIAL_LEN + 1]; /* lower-case hex */
    char hosts[CERTS_HOSTS_MAX][CERTS_HOST_MAX + 1];
    uint32_t hosts_n;
    bool ca, server, client;
    bool revoked;     /* certs_mark_revoked */
    msec from, until; /* wall clock; valid at both */
};

struct certs_ask {
    const char *name; /* letters, digits, ".", "_" and "-" */
    const char *const *hosts;
    uint32_t hosts_n;
    bool server, client; /* at least one; a server needs a host */
    uint32_t days;       /* 0 = CERTS_LEAF_DAYS; never longer than the authority */
    const char *to;      /* the directory of NAME.pem and ca.pem */
};

/* Makes the directory (0700), the authority's key and its certificate. name NULL = "Baton CA" and
 * six random digits; days 0 = CERTS_CA_DAYS. BT_CONFLICT: there is one already. */
BT_MUST_CHECK enum bt_code certs_init(const char *dir, const char *name, uint32_t days, msec now,
                                      struct cert *ret, struct bt_error *err);
/*
 * Issues a certificate: TO/NAME.pem (0600, certificate and key) and TO/ca.pem. BT_NOT_FOUND: no
 * authority. BT_UNAUTHORIZED: others may read its key. BT_CONFLICT: TO/NAME.pem exists, or
 * TO/ca.pem is of another authority.
 */
BT_MUST_CHECK enum bt_code certs_issue(const char *dir, const struct certs_ask *ask, msec now,
                                       struct cert *ret, struct bt_error *err);
/* Issues the newest certificate of ask->name again, for the same hosts and uses, with another key
 * and serial, and replaces TO/NAME.pem at once. Of `ask`, hosts and uses are not read. */
BT_MUST_CHECK enum bt_code certs_renew(const char *dir, const struct certs_ask *ask, msec now,
                                       struct cert *ret, struct bt_error *err);
/*
 * Revokes the certificate with this serial, or all with this name: they go on the list DIR/crl.pem,
 * and that list behind the authority in TO/ca.pem, where a daemon reads both. *ret_n: how many were
 * not on it before. BT_NOT_FOUND: no such certificate, or no TO/ca.pem. BT_CONFLICT: TO/ca.pem is
 * of another authority, or the authority's own file. BT_LIMIT: CERTS_REVOKED_MAX.
 */
BT_MUST_CHECK enum bt_code certs_revoke(const char *dir, const char *which, const char *to,
                                        msec now, uint32_t *ret_n, struct bt_error *err);
/* Sets `revoked` of those that are on the list. */
BT_MUST_CHECK enum bt_code certs_mark_revoked(const char *dir, struct cert *all, uint32_t n,
                                              struct bt_error *err);
/* The authority, then every certificate that it issued, oldest first; *ret is freed with free(). */
BT_MUST_CHECK enum bt_code certs_list(const char *dir, struct cert **ret, uint32_t *ret_n,
                                      struct bt_error *err);
/* The first certificate of a PEM file. */
BT_MUST_CHECK enum bt_code certs_read(const char *path, struct cert *ret, struct bt_error *err);
#endif
