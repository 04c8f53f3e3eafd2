#include "protocol/auth/seal.h"

enum { SID_AT = 4, N_AT = 20, N_BYTES = 8, MAC_AT = 28 };

static const uint8_t magic[SID_AT] = {0xC1, 'B', 'T', 1};

bool seal_is_sealed(struct str bytes)
{
    return bytes.len > 0 && (uint8_t)bytes.ptr[0] == magic[0];
}

bool seal_read(struct str bytes, struct seal *ret, struct str *ret_body)
{
    if (bytes.len < SEAL_HEADER_BYTES || memcmp(bytes.ptr, magic, sizeof magic) != 0) {
        return false;
    }
    memcpy(ret->sid, bytes.ptr + SID_AT, AUTH_SID_BYTES);
    ret->n = 0;
    for (int i = 0; i < N_BYTES; i++) {
        ret->n = ret->n << 8 | (uint8_t)bytes.ptr[N_AT + i];
    }
    *ret_body = (struct str){bytes.ptr + SEAL_HEADER_BYTES, bytes.len - SEAL_HEADER_BYTES};
    return ret->n != 0;
}

/* at: a header whose sid and n are written, and the body after it. */
static bool mac_of(const struct auth_mac_key *key, enum seal_direction direction, const uint8_t *at,
                   size_t len, uint8_t *ret)
{
    const char way = (char)direction;
    const struct str parts[] = {
        {&way, 1},
        {(const char *)at + SID_AT, AUTH_SID_BYTES + N_BYTES},
        {(const char *)at + SEAL_HEADER_BYTES, len},
    };

    return auth_mac(key, parts, sizeof parts / sizeof parts[0], ret);
}

bool seal_check(const struct auth_mac_key *key, enum seal_direction direction, struct str bytes)
{
    const uint8_t *at = (const uint8_t *)bytes.ptr;
    uint8_t mac[AUTH_KEY_BYTES];

    return mac_of(key, direction, at, bytes.len - SEAL_HEADER_BYTES, mac) &&
           auth_equal(mac, at + MAC_AT, sizeof mac);
}

bool seal_write(const struct auth_mac_key *key, enum seal_direction direction,
                const struct seal *seal, uint8_t *at, size_t len)
{
    memcpy(at, magic, sizeof magic);
    memcpy(at + SID_AT, seal->sid, AUTH_SID_BYTES);
    for (int i = 0; i < N_BYTES; i++) {
        at[N_AT + i] = (uint8_t)(seal->n >> (56 - 8 * i));
    }
    return mac_of(key, direction, at, len, at + MAC_AT);
}
