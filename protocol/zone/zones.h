/*
 * The time zones that a process uses, read once each from the files of tzdata (TZDIR, or
 * /usr/share/zoneinfo). UTC needs no file. Zones are never freed: tzdata has 600.
 */
#ifndef ZONE_ZONES_H
#define ZONE_ZONES_H

#include "protocol/base/err.h"
#include "protocol/zone/zone.h"

enum { ZONE_NAME_MAX = 64 };

struct zones;

BT_MUST_CHECK enum bt_code zones_new(struct zones **ret, struct bt_error *err);
void zones_free(struct zones *z);
/* "" and "UTC" are UTC. *ret_id finds it again. BT_NOT_FOUND: no such zone; the sentence has the
 * nearest name. BT_IO: its file cannot be read. BT_NOMEM. */
BT_MUST_CHECK enum bt_code zones_find(struct zones *z, struct str name, uint16_t *ret_id,
                                      struct bt_error *err);
/* Valid until zones_refresh or zones_free. */
const struct zone *zones_at(const struct zones *z, uint16_t id);
const char *zones_name(const struct zones *z, uint16_t id);
/* Reads again what a new tzdata has changed. True: something is new. */
bool zones_refresh(struct zones *z);
#endif
