#include "supervisor/gateway/private.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

/* Loopback, private, link-local, shared (RFC 6598), unspecified, multicast and reserved networks,
 * and those of IPv6 that carry an address of IPv4 in another form (RFC 6052, 3056, 4380). */
static const char closed[] =
    "0.0.0.0/8,10.0.0.0/8,100.64.0.0/10,127.0.0.0/8,169.254.0.0/16,172.16.0.0/12,"
    "192.0.0.0/24,192.168.0.0/16,198.18.0.0/15,224.0.0.0/3";
static const char closed6[] = "::/96,64:ff9b::/32,2001::/32,2002::/16,fc00::/7,fe80::/9,ff00::/8";

static bool read_one(struct str text, struct private_net *ret)
{
    char name[64];
    char *slash;
    char *end = NULL;
    unsigned long bits = 0;
    bool v4;

    if (text.len == 0 || text.len >= sizeof name) {
        return false;
    }
    memcpy(name, text.ptr, text.len);
    name[text.len] = 0;
    slash = strchr(name, '/');
    if (slash != NULL) {
        *slash = 0;
        bits = strtoul(slash + 1, &end, 10);
        if (slash[1] < '0' || slash[1] > '9' || *end != 0 || bits > 128) {
            return false;
        }
    }
    *ret = (struct private_net){.at = {[10] = 0xff, [11] = 0xff}};
    v4 = inet_pton(AF_INET, name, ret->at + 12) == 1;
    if (!v4 && inet_pton(AF_INET6, name, ret->at) != 1) {
        return false;
    }
    if (v4 && bits > 32) {
        return false;
    }
    ret->bits = slash == NULL ? 128 : (uint32_t)bits + (v4 ? 96 : 0);
    return true;
}

enum bt_code private_read(struct str text, struct private_list *ret, struct bt_error *err)
{
    while (text.len > 0) {
        const char *comma = memchr(text.ptr, ',', text.len);
        const size_t len = comma == NULL ? text.len : (size_t)(comma - text.ptr);
        const struct str one = str_trimmed((struct str){text.ptr, len});
        struct private_net net;
        if (!read_one(one, &net)) {
            return err_set(err, BT_INVALID,
                           "expected addresses or networks with commas between, as "
                           "127.0.0.1,10.1.0.0/16,fd00::/8, got '%.60s'",
                           one.len == 0 ? "" : text.ptr);
        }
        if (ret->n == PRIVATE_LISTED_MAX) {
            return err_set(err, BT_LIMIT, "at most %d addresses or networks", PRIVATE_LISTED_MAX);
        }
        ret->nets[ret->n++] = net;
        text.ptr += len + (comma != NULL);
        text.len -= len + (comma != NULL);
    }
    return BT_OK;
}

static bool is_in(const struct private_list *l, const uint8_t *at)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const struct private_net *net = &l->nets[i];
        const uint32_t whole = net->bits / 8;
        const uint8_t mask = (uint8_t)(0xff00u >> (net->bits % 8));
        if (memcmp(at, net->at, whole) == 0 &&
            (whole == 16 || ((at[whole] ^ net->at[whole]) & mask) == 0)) {
            return true;
        }
    }
    return false;
}

static bool is_closed(const uint8_t *at)
{
    struct private_list v4 = {.n = 0};
    struct private_list v6 = {.n = 0};

    return private_read(STR_LIT(closed), &v4, NULL) != BT_OK || is_in(&v4, at) ||
           private_read(STR_LIT(closed6), &v6, NULL) != BT_OK || is_in(&v6, at);
}

bool private_allows(const struct private_list *listed, const struct sockaddr *addr)
{
    uint8_t at[16] = {[10] = 0xff, [11] = 0xff};

    if (addr->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, addr, sizeof in);
        memcpy(at + 12, &in.sin_addr, 4);
    } else if (addr->sa_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, addr, sizeof in);
        memcpy(at, &in.sin6_addr, 16);
    } else {
        return false;
    }
    return is_in(listed, at) || !is_closed(at);
}
