/* Times as people write them: RFC 3339, in a time zone. Pure but for the sentences. */
#ifndef ZONE_STAMP_H
#define ZONE_STAMP_H

#include "protocol/base/err.h"
#include "protocol/base/msec.h"
#include "protocol/zone/zone.h"

enum { STAMP_MAX = 40 };

/* "2026-11-30", "2026-11-30T03:00", "2026-11-30T03:00:30.5+01:00", "...Z"; a space for the T.
 * Without an offset it is the clock of the zone: see zone_of_local. From 1970 to 9999. BT_INVALID.
 */
BT_MUST_CHECK enum bt_code stamp_read(struct str text, const struct zone *zone, msec *ret,
                                      struct bt_error *err);
/* "2026-11-30T03:00:00+01:00", with milliseconds when there are any; UTC ends with Z. */
void stamp_write(const struct zone *zone, msec at, char ret[STAMP_MAX]);
#endif
