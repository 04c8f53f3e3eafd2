/* A key is base32 (RFC 4648, without padding) of a prefix, 32 bytes, and their CRC-16 (XMODEM), low
 * byte first. A seed has a prefix of two bytes: 18 << 3, and the prefix of its public key in the
 * next eight bits.
 * https://docs.nats.io/running-a-nats-service/configuration/securing_nats/auth_intro/nkey_auth */
#include "supervisor/bridge/nkey.h"

#include <nettle/eddsa.h>
#include <stdint.h>
#include <string.h>

enum { SEED = 18 << 3, USER = 20 << 3, SEED_BYTES = 36, PUBLIC_BYTES = 35, KEY_BYTES = 32 };

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

static uint16_t crc16(const uint8_t *at, uint32_t n)
{
    uint16_t crc = 0;

    for (uint32_t i = 0; i < n; i++) {
        crc = (uint16_t)(crc ^ (at[i] << 8));
        for (int bit = 0; bit < 8; bit++) {
            crc = (uint16_t)((crc & 0x8000) != 0 ? (crc << 1) ^ 0x1021 : crc << 1);
        }
    }
    return crc;
}

static bool decode(const char *text, uint8_t ret[SEED_BYTES])
{
    uint32_t bits = 0;
    uint32_t held = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < NKEY_SEED_LEN; i++) {
        const char *digit = text[i] != 0 ? strchr(alphabet, text[i]) : NULL;
        if (digit == NULL) {
            return false;
        }
        held = held << 5 | (uint32_t)(digit - alphabet);
        bits += 5;
        if (bits >= 8 && n < SEED_BYTES) {
            bits -= 8;
            ret[n++] = (uint8_t)(held >> bits);
        }
    }
    return text[NKEY_SEED_LEN] == 0;
}

static void encode(const uint8_t bytes[PUBLIC_BYTES], char ret[NKEY_PUBLIC_LEN + 1])
{
    uint32_t bits = 0;
    uint32_t held = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < PUBLIC_BYTES; i++) {
        held = held << 8 | bytes[i];
        for (bits += 8; bits >= 5; bits -= 5) {
            ret[n++] = alphabet[held >> (bits - 5) & 31];
        }
    }
    ret[n] = 0;
}

bool nkey_public(const char *seed, char ret[NKEY_PUBLIC_LEN + 1])
{
    uint8_t raw[SEED_BYTES];
    uint8_t key[PUBLIC_BYTES];
    uint16_t crc;
    bool ok = decode(seed, raw) && (raw[0] & 0xf8) == SEED &&
              ((raw[0] & 7) << 5 | raw[1] >> 3) == USER &&
              crc16(raw, SEED_BYTES - 2) == (raw[SEED_BYTES - 2] | raw[SEED_BYTES - 1] << 8);

    if (ok) {
        key[0] = USER;
        ed25519_sha512_public_key(key + 1, raw + 2);
        crc = crc16(key, 1 + KEY_BYTES);
        key[1 + KEY_BYTES] = (uint8_t)crc;
        key[2 + KEY_BYTES] = (uint8_t)(crc >> 8);
        encode(key, ret);
    }
    explicit_bzero(raw, sizeof raw);
    return ok;
}
