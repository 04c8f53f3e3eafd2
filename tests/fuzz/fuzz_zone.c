/* Hostile files of time zones, and lines of cron over them: every answer is within its bounds, and
 * times rise. */
#include <stdlib.h>

#include "protocol/zone/stamp.h"
#include "supervisor/schedule/cron_text.h"
#include "supervisor/schedule/rules/next.h"

enum { TIMES = 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void ask_times(const struct zone *zone, const struct schedule_rule *rule, msec from)
{
    msec at = from;
    msec next = 0;

    for (int i = 0; i < TIMES && schedule_next(rule, zone, at, &next); i++) {
        char text[STAMP_MAX];
        require(next > at);
        stamp_write(zone, next, text);
        at = next;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct zone_change room[ZONE_CHANGES_MAX];
    struct schedule_rule rule = {.kind = SCHEDULE_CRON, .end_ms = MSEC_NEVER};
    const struct str bytes = {(const char *)data, size};
    struct cron_problem why;
    struct bt_error err;
    struct zone zone;
    msec at = 0;

    if (!cron_parse(bytes, &rule.cron, &why)) {
        require(why.at + why.len <= size || why.fault == CRON_NEVER);
        (void)cron_error(bytes, &why, &err);
        require(cron_parse(STR_LIT("*/30 1-3 * * *"), &rule.cron, &why));
    }
    if (stamp_read(bytes, &ZONE_UTC, &at, &err) != BT_OK) {
        at = size >= 6 ? (msec)data[size - 1] << 32 | (msec)data[size - 2] << 24 : 0;
    }
    if (!zone_read(bytes, room, ZONE_CHANGES_MAX, &zone)) {
        zone = ZONE_UTC;
    }
    for (uint32_t i = 0; i < zone.n_changes; i++) {
        require(zone_offset(&zone, zone.changes[i].at) == zone.changes[i].offset ||
                i + 1 == zone.n_changes);
    }
    ask_times(&zone, &rule, at);
    return 0;
}
