#include "protocol/auth/handshake.h"

bool handshake_proof(const uint8_t key[AUTH_KEY_BYTES], const struct handshake *h,
                     uint8_t ret[AUTH_KEY_BYTES])
{
    const struct str parts[] = {
        STR_LIT("S"),
        {(const char *)h->nonce_c, sizeof h->nonce_c},
        {(const char *)h->nonce_s, sizeof h->nonce_s},
        {(const char *)h->sid, sizeof h->sid},
    };

    return auth_hmac(key, parts, sizeof parts / sizeof parts[0], ret);
}

bool handshake_session_key(const uint8_t key[AUTH_KEY_BYTES], const struct handshake *h,
                           uint8_t ret[AUTH_KEY_BYTES])
{
    static const char label[] = "baton session 1";
    char salt[2 * AUTH_NONCE_BYTES];
    char info[sizeof label - 1 + AUTH_SID_BYTES];

    memcpy(salt, h->nonce_c, AUTH_NONCE_BYTES);
    memcpy(salt + AUTH_NONCE_BYTES, h->nonce_s, AUTH_NONCE_BYTES);
    memcpy(info, label, sizeof label - 1);
    memcpy(info + sizeof label - 1, h->sid, AUTH_SID_BYTES);
    return auth_hkdf(key, (struct str){salt, sizeof salt}, (struct str){info, sizeof info}, ret);
}

bool handshake_mac_key(const uint8_t key[AUTH_KEY_BYTES], const struct handshake *h,
                       struct auth_mac_key *ret)
{
    uint8_t session_key[AUTH_KEY_BYTES];
    const bool ok =
        handshake_session_key(key, h, session_key) && auth_mac_key_make(session_key, ret);

    explicit_bzero(session_key, sizeof session_key);
    return ok;
}
