/*
 * Credentials: who a client or agent is, and the key that proves it. One file each,
 * STATE/credentials/ID (0600, the directory 0700), which a client may also have as a copy
 * elsewhere. JSON, read strictly:
 *
 *     {"id": "ci", "role": "agent", "key": "64 hexadecimal digits", "agents": ["calc*"],
 *      "createdMs": 1790000000000, "expiresMs": 0, "revokedMs": 0,
 *      "previousKey": "64 hexadecimal digits", "previousUntilMs": 1790000000000,
 *      "sees": ["ann"], "quotas": {"plans": 10, "requests": 600}}
 *
 * Times are milliseconds since 1970. agents and the members from expiresMs on may be missing. sees
 * is for submitters; quotas are those of identity.h, 0 = none.
 */
#ifndef CLIENT_CREDENTIAL_H
#define CLIENT_CREDENTIAL_H

#include "protocol/auth/identity.h"
#include "protocol/auth/mac.h"
#include "protocol/base/buf.h"
#include "protocol/base/msec.h"

#define CREDENTIALS_DIR "credentials"

struct credential {
    struct identity who;
    uint8_t key[AUTH_KEY_BYTES];
    uint8_t previous[AUTH_KEY_BYTES]; /* valid before previous_until; see credential_rotate */
    msec created, expires, revoked, previous_until; /* wall time; 0 = none */
};

/* 1 to 64 of A-Z a-z 0-9 . _ -, the first a letter or digit, and not "local". */
bool credential_id_ok(struct str id, struct bt_error *err);
/* Neither revoked nor expired. */
bool credential_is_valid(const struct credential *c, msec wall);

BT_MUST_CHECK enum bt_code credential_parse(struct str json, struct credential *ret,
                                            struct bt_error *err);
/* BT_UNAUTHORIZED: the file belongs to another user, or others may read it. BT_INVALID: it is
 * damaged. BT_NOT_FOUND. */
BT_MUST_CHECK enum bt_code credential_read(const char *file, struct credential *ret,
                                           struct bt_error *err);
/* Writes a copy, which has neither the previous key nor a revocation. BT_CONFLICT: the file exists,
 * and `replace` is false. */
BT_MUST_CHECK enum bt_code credential_write(const char *file, const struct credential *c,
                                            bool replace, struct bt_error *err);

/* The same in a state directory, by id; the file must have that id inside. */
BT_MUST_CHECK enum bt_code credential_load(const char *state_dir, const char *id,
                                           struct credential *ret, struct bt_error *err);
/* Whole, with the previous key and a revocation. Makes the directory. BT_CONFLICT as above. */
BT_MUST_CHECK enum bt_code credential_store(const char *state_dir, const struct credential *c,
                                            bool replace, struct bt_error *err);
/* Calls fn for each file of the state directory in alphabetical order: its name, and its credential
 * or (NULL) what is wrong with it. No directory = none. */
BT_MUST_CHECK enum bt_code credential_each(const char *state_dir,
                                           void (*fn)(void *self, const char *name,
                                                      const struct credential *c,
                                                      const struct bt_error *why),
                                           void *self, struct bt_error *err);

/* A new key. */
BT_MUST_CHECK enum bt_code credential_new_key(struct credential *c, struct bt_error *err);
/* The same; the old one stays valid until `until`. */
BT_MUST_CHECK enum bt_code credential_rotate(struct credential *c, msec until,
                                             struct bt_error *err);
#endif
