#include "protocol/client/seeds.h"

#include <stdio.h>
#include <string.h>

static const char SCHEME[] = "tls+tcp://";

static enum bt_code check_one(const char *url, size_t len, struct bt_error *err)
{
    const size_t scheme = sizeof SCHEME - 1;

    if (len <= scheme || len > STATE_URL_MAX || strncmp(url, SCHEME, scheme) != 0 ||
        memchr(url + scheme, ':', len - scheme) == NULL) {
        return err_set(err, BT_INVALID,
                       "'%.*s': expected tls+tcp://HOST:PORT, or several, separated by commas",
                       (int)(len < 80 ? len : 80), url);
    }
    return BT_OK;
}

enum bt_code seeds_check(const char *list, uint32_t *ret_n, struct bt_error *err)
{
    enum bt_code code = BT_OK;
    uint32_t n = 0;

    for (const char *at = list; code == BT_OK; n++) {
        const size_t len = strcspn(at, ",");
        code = n < SEEDS_MAX ? check_one(at, len, err)
                             : err_set(err, BT_LIMIT, "at most %d addresses are tried", SEEDS_MAX);
        if (at[len] == 0) {
            n++;
            break;
        }
        at += len + 1;
    }
    *ret_n = n;
    return code;
}

void seeds_get(const char *list, uint32_t number, char ret[STATE_URL_MAX + 1])
{
    const char *at = list;

    for (uint32_t i = 0; i < number && strchr(at, ',') != NULL; i++) {
        at = strchr(at, ',') + 1;
    }
    (void)snprintf(ret, STATE_URL_MAX + 1, "%.*s", (int)strcspn(at, ","), at);
}

uint32_t seeds_patience(uint32_t in_vain, uint32_t n)
{
    const uint32_t rounds = in_vain / n;

    return (uint32_t)SEED_MS << (rounds < SEED_DOUBLINGS ? rounds : SEED_DOUBLINGS);
}
