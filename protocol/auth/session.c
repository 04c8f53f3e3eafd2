#include "protocol/auth/session.h"

enum bt_code auth_session_begin(struct auth_session *s, char ret_nonce_c[2 * AUTH_NONCE_BYTES + 1],
                                struct bt_error *err)
{
    *s = (struct auth_session){.open = false};
    if (!auth_random(s->handshake.nonce_c, sizeof s->handshake.nonce_c)) {
        return err_set(err, BT_INTERNAL, "no random bytes for a handshake");
    }
    auth_hex(s->handshake.nonce_c, sizeof s->handshake.nonce_c, ret_nonce_c);
    return BT_OK;
}

enum bt_code auth_session_finish(struct auth_session *s, const uint8_t key[AUTH_KEY_BYTES],
                                 const struct auth_begun *begun, struct bt_error *err)
{
    uint8_t want[AUTH_KEY_BYTES];
    uint8_t proof[AUTH_KEY_BYTES];
    uint8_t previous[AUTH_KEY_BYTES];
    const bool two = begun->previous_proof.len > 0;
    bool ok;

    if (!auth_unhex(begun->sid, s->handshake.sid, sizeof s->handshake.sid) ||
        !auth_unhex(begun->nonce_s, s->handshake.nonce_s, sizeof s->handshake.nonce_s) ||
        !auth_unhex(begun->proof, proof, sizeof proof) ||
        (two && !auth_unhex(begun->previous_proof, previous, sizeof previous))) {
        return err_set(err, BT_PROTOCOL, "the answer to auth.begin is damaged");
    }
    ok =
        handshake_proof(key, &s->handshake, want) && handshake_mac_key(key, &s->handshake, &s->key);
    if (!ok) {
        return err_set(err, BT_NOMEM, "out of memory for a handshake");
    }
    ok = auth_equal(proof, want, sizeof want);
    ok = ok || (two && auth_equal(previous, want, sizeof want));
    if (!ok) {
        explicit_bzero(&s->key, sizeof s->key);
        return err_set(err, BT_UNAUTHORIZED,
                       "it does not have the key of the credential: that is unknown there, revoked "
                       "or expired, or this is another program");
    }
    s->open = true;
    s->n = 0;
    return BT_OK;
}

enum bt_code auth_session_seal(struct auth_session *s, struct str body, struct buf *out,
                               struct bt_error *err)
{
    static const uint8_t room[SEAL_HEADER_BYTES] = {0};
    const size_t at = out->len;
    struct seal seal = {.n = ++s->n};

    memcpy(seal.sid, s->handshake.sid, sizeof seal.sid);
    buf_add(out, room, sizeof room);
    buf_add_str(out, body);
    if (buf_check(out, err) != BT_OK) {
        return err == NULL ? BT_NOMEM : err->code;
    }
    return seal_write(&s->key, SEAL_REQUEST, &seal, out->at + at, body.len)
               ? BT_OK
               : err_set(err, BT_NOMEM, "out of memory for a request");
}

bool auth_session_open(const struct auth_session *s, struct str bytes, struct str *ret_body)
{
    struct seal seal;

    return s->open && seal_read(bytes, &seal, ret_body) && seal.n == s->n &&
           memcmp(seal.sid, s->handshake.sid, sizeof seal.sid) == 0 &&
           seal_check(&s->key, SEAL_ANSWER, bytes);
}
