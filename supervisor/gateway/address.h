/* STATE/gateway.json (0600): where this program listens, for other programs and the next start. */
#ifndef GATEWAY_ADDRESS_H
#define GATEWAY_ADDRESS_H

#include "supervisor/gateway/options.h"

#define ADDRESS_FILE "gateway.json"

/* The address of this gateway as people reach it, without a slash at its end. */
void address_url(const struct options *opt, uint16_t port, char *ret, size_t cap);
/* {"url": "http://127.0.0.1:40123", "pid": 4711, "version": "0.3.0"}, atomically. */
BT_MUST_CHECK enum bt_code address_write(const char *state_dir, const struct options *opt,
                                         uint16_t port, struct bt_error *err);
/* The port of the last time; 0 = none. */
uint16_t address_last_port(const char *state_dir);
/* When it is still ours. The port stays known. */
void address_remove(const char *state_dir);
#endif
