/* Timestamps of the wire: RFC 3339, read. clock_iso writes them. Pure. */
#ifndef BASE_DATE_H
#define BASE_DATE_H

#include <stdbool.h>

#include "protocol/base/msec.h"
#include "protocol/base/str.h"

/* "2026-11-24T18:00:00Z", "2026-11-24T19:00:00.250+01:00": milliseconds since 1970 UTC, from 1970
 * to 9999. A date needs its offset: nobody else knows what it means. Digits of a second after the
 * third are dropped; second 60 is the one after 59. False: it is no such date. */
bool date_read(struct str text, msec *ret);
#endif
