/* For tests: the times of lines of cron. Reads lines "ZONE|FROM|TO|CRON" (seconds since 1970) and
 * writes for each its times after FROM and up to TO, or "error FAULT FIELD AT". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/zone/zones.h"
#include "supervisor/schedule/rules/next.h"

enum { LINE_MAX_BYTES = 1024 };

static void times(const struct zone *zone, struct str line, msec from, msec to)
{
    struct schedule_rule rule = {.kind = SCHEDULE_CRON, .end_ms = MSEC_NEVER};
    struct cron_problem why;
    msec at = from;

    if (!cron_parse(line, &rule.cron, &why)) {
        (void)printf("error %d %d %u\n", (int)why.fault, (int)why.field, why.at);
        return;
    }
    while (schedule_next(&rule, zone, at, &at) && at <= to) {
        (void)printf("%" PRIu64 " ", at / 1000);
    }
    (void)printf("\n");
}

int main(void)
{
    char text[LINE_MAX_BYTES];
    struct zones *zones;
    struct bt_error err;

    if (zones_new(&zones, &err) != BT_OK) {
        return 1;
    }
    while (fgets(text, sizeof text, stdin) != NULL) {
        char *rest = text;
        const char *part[3];
        uint16_t id;
        for (int i = 0; i < 3; i++) {
            char *bar = strchr(rest, '|');
            if (bar == NULL) {
                return 1;
            }
            *bar = 0;
            part[i] = rest;
            rest = bar + 1;
        }
        rest[strcspn(rest, "\n")] = 0;
        if (zones_find(zones, str_from(part[0]), &id, &err) != BT_OK) {
            (void)printf("%s\n", err.msg);
            continue;
        }
        times(zones_at(zones, id), str_from(rest), strtoull(part[1], NULL, 10) * 1000,
              strtoull(part[2], NULL, 10) * 1000);
    }
    zones_free(zones);
    return 0;
}
