#include "agents/web/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An IPv4 address stands as ::ffff:a.b.c.d, so that there is one comparison. */
struct block {
    uint8_t at[16];
    unsigned bits;
};

enum { V4_OFFSET_BITS = 96, TEXT_MAX = 64 };

static const char *const private_blocks[] = {
    "127.0.0.0/8",    "10.0.0.0/8",   "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10",
    "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24",  "198.18.0.0/15",  "198.51.100.0/24",
    "203.0.113.0/24", "::1/128",      "fc00::/7",      "fe80::/10",      "64:ff9b::/96",
    "64:ff9b:1::/48", "2002::/16",    "2001:db8::/32", "fec0::/10",      "::/96",
};
static const char *const never[] = {"0.0.0.0/8", "::/128", "ff00::/8", "224.0.0.0/4",
                                    "240.0.0.0/4"};

static bool block_read(const char *text, struct block *ret)
{
    const char *slash = strchr(text, '/');
    size_t n = slash == NULL ? strlen(text) : (size_t)(slash - text);
    char address[TEXT_MAX];
    char *end = NULL;
    unsigned long bits = 128;
    bool v4;

    if (n >= sizeof address) {
        return false;
    }
    memcpy(address, text, n);
    address[n] = 0;
    *ret = (struct block){.at = {[10] = 0xff, [11] = 0xff}};
    v4 = inet_pton(AF_INET, address, ret->at + 12) == 1;
    if (!v4 && inet_pton(AF_INET6, address, ret->at) != 1) {
        return false;
    }
    if (slash != NULL) {
        bits = strtoul(slash + 1, &end, 10);
        if (slash[1] < '0' || slash[1] > '9' || *end != 0 || bits > (v4 ? 32 : 128)) {
            return false;
        }
        bits += v4 ? V4_OFFSET_BITS : 0;
    }
    ret->bits = (unsigned)bits;
    return true;
}

static bool block_has(const struct block *b, const uint8_t at[16])
{
    unsigned whole = b->bits / 8;
    unsigned rest = b->bits % 8;
    uint8_t mask = (uint8_t)(0xff00u >> rest);

    return memcmp(b->at, at, whole) == 0 && (rest == 0 || ((b->at[whole] ^ at[whole]) & mask) == 0);
}

static bool listed(const uint8_t at[16], const char *const *blocks, size_t n)
{
    struct block b;

    for (size_t i = 0; i < n; i++) {
        if (block_read(blocks[i], &b) && block_has(&b, at)) {
            return true;
        }
    }
    return false;
}

enum bt_code address_block_check(const char *text, struct bt_error *err)
{
    struct block b;

    return block_read(text, &b)
               ? BT_OK
               : err_set(err, BT_INVALID,
                         "'%.80s': expected an address or a block, as 127.0.0.1 or fd00::/8", text);
}

bool address_allowed(const struct sockaddr *addr, const char *const *blocks)
{
    uint8_t at[16] = {[10] = 0xff, [11] = 0xff};
    size_t n = 0;

    if (addr->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, addr, sizeof in);
        memcpy(at + 12, &in.sin_addr, 4);
    } else if (addr->sa_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, addr, sizeof in);
        memcpy(at, &in.sin6_addr, sizeof at);
    } else {
        return false;
    }
    while (blocks != NULL && blocks[n] != NULL) {
        n++;
    }
    if (listed(at, never, sizeof never / sizeof never[0])) {
        return false;
    }
    return listed(at, blocks, n) ||
           !listed(at, private_blocks, sizeof private_blocks / sizeof private_blocks[0]);
}
