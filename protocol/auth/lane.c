#include "protocol/auth/lane.h"

static void put_number(uint64_t n, char *ret)
{
    for (int i = 0; i < 8; i++) {
        ret[i] = (char)(uint8_t)(n >> (56 - 8 * i));
    }
}

bool lane_proof_make(struct str session_key, enum lane_side side, const struct lane_proof *p,
                     uint8_t ret[AUTH_KEY_BYTES])
{
    static const uint8_t zeros[AUTH_KEY_BYTES] = {0};
    const char who = (char)side;
    char numbers[16];
    const struct str parts[] = {
        {&who, 1},
        {(const char *)p->nonce_s, sizeof p->nonce_s},
        {(const char *)p->nonce_a, sizeof p->nonce_a},
        {numbers, sizeof numbers},
    };
    uint8_t key[AUTH_KEY_BYTES];
    bool ok;

    put_number(p->lane, numbers);
    put_number(p->epoch, numbers + 8);
    ok = auth_hmac(zeros, &session_key, 1, key) &&
         auth_hmac(key, parts, sizeof parts / sizeof parts[0], ret);
    explicit_bzero(key, sizeof key);
    return ok;
}

bool lane_proof_check(struct str session_key, enum lane_side side, const struct lane_proof *p,
                      struct str proof)
{
    uint8_t want[AUTH_KEY_BYTES];
    uint8_t got[AUTH_KEY_BYTES];

    return auth_unhex(proof, got, sizeof got) && lane_proof_make(session_key, side, p, want) &&
           auth_equal(want, got, sizeof got);
}
