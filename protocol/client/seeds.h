/* The addresses of the daemons of a fleet: URLs separated by commas. One of them leads, and only
 * that one listens. */
#ifndef CLIENT_SEEDS_H
#define CLIENT_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/err.h"
#include "protocol/client/state.h"

enum {
    SEEDS_MAX = 8,
    SEEDS_TEXT_MAX = SEEDS_MAX * (STATE_URL_MAX + 1),
    SEED_MS = 700,     /* without a connection; then the next one is dialed */
    SEED_DOUBLINGS = 4 /* of that time, one each time round: the line may be slow */
};

/* Each must be tls+tcp://HOST:PORT. BT_INVALID names the one that is not. */
BT_MUST_CHECK enum bt_code seeds_check(const char *list, uint32_t *ret_n, struct bt_error *err);
/* The one with this number, counted from 0, of a list that was checked. */
void seeds_get(const char *list, uint32_t number, char ret[STATE_URL_MAX + 1]);
/* How long to wait for a connection to one of n, when so many dials were in vain, ms. */
uint32_t seeds_patience(uint32_t in_vain, uint32_t n);
#endif
