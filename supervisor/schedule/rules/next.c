#include "supervisor/schedule/rules/next.h"

#include "supervisor/core/mutant.h"

enum { MINUTE = 60 };

static const int64_t LAST_SECOND = 253402300799; /* 9999-12-31T23:59:59Z */

/* The clock goes by real time: from one change of the offset to the next. */
static bool next_real(const struct cron *c, const struct zone *z, int64_t from, int64_t *ret)
{
    while (from <= LAST_SECOND) {
        const int32_t offset = zone_offset(z, from);
        int64_t change = 0;
        int64_t local;
        const bool more = zone_next_change(z, from, &change);
        if (!cron_next_local(c, from + offset, &local)) {
            return false;
        }
        if (!more || local - offset < change) {
            *ret = local - offset;
            return true;
        }
        from = change;
    }
    return false;
}

/* The clock on the wall: the first matching minute that it shows, or should have shown. */
static bool next_shown(const struct cron *c, const struct zone *z, int64_t after, int64_t *ret)
{
    int64_t local = after + zone_offset(z, after);

    while (cron_next_local(c, local, &local)) {
        *ret = zone_of_local(z, local);
        if (*ret > after) {
            return true;
        }
        local += MINUTE;
    }
    return false;
}

static bool next_cron(const struct cron *c, const struct zone *z, msec after, msec *ret)
{
    const int64_t seconds = (int64_t)(after / 1000);
    int64_t at = 0;

    if (after / 1000 >= (msec)LAST_SECOND ||
        !(cron_is_hourly(c) || MUTANT(DOUBLED_HOUR_TWICE) ? next_real(c, z, seconds + 1, &at)
                                                          : next_shown(c, z, seconds, &at)) ||
        at > LAST_SECOND) {
        return false;
    }
    *ret = (msec)at * 1000;
    return true;
}

bool schedule_next(const struct schedule_rule *rule, const struct zone *zone, msec after, msec *ret)
{
    bool found = false;

    switch (rule->kind) {
    case SCHEDULE_CRON:
        found = next_cron(&rule->cron, zone, after, ret);
        break;
    case SCHEDULE_EVERY:
        *ret = (after / rule->every_ms + 1) * rule->every_ms;
        found = *ret / 1000 <= (msec)LAST_SECOND;
        break;
    case SCHEDULE_AT:
        *ret = rule->at_ms;
        found = rule->at_ms > after;
        break;
    }
    return found && *ret <= rule->end_ms;
}

msec schedule_jitter(uint64_t seed, msec at, msec jitter_ms)
{
    uint64_t x = seed + at * UINT64_C(0x9E3779B97F4A7C15); /* splitmix64 */

    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (x ^ (x >> 31)) % (jitter_ms + 1);
}
