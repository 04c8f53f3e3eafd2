#include "supervisor/schedule/cron_text.h"

#include <stdio.h>

enum { SHOWN = 40 };

static const char *names_of(enum cron_field field)
{
    return field == CRON_MONTH ? ", or jan to dec" : field == CRON_WEEKDAY ? ", or sun to sat" : "";
}

static enum bt_code of_field(struct str line, const struct cron_problem *why, const char *what,
                             struct bt_error *err)
{
    const int len = why->len > SHOWN ? SHOWN : (int)why->len;

    return err_set(err, BT_INVALID, "cron: field %d (%s), at character %u: '%.*s' %s",
                   (int)why->field + 1, cron_field_name(why->field), why->at + 1, len,
                   line.ptr + why->at, what);
}

enum bt_code cron_error(struct str line, const struct cron_problem *why, struct bt_error *err)
{
    const int len = line.len > SHOWN * 2 ? SHOWN * 2 : (int)line.len;
    char text[160];

    switch (why->fault) {
    case CRON_COUNT:
        return err_set(err, BT_INVALID,
                       "cron: '%.*s' has %u field%s: expected five (minute, hour, day of the "
                       "month, month, day of the week), such as '0 3 * * *'%s",
                       len, line.ptr, why->fields, why->fields == 1 ? "" : "s",
                       why->fields == 6 ? "; seconds are no field" : "");
    case CRON_MACRO:
        return err_set(err, BT_INVALID,
                       "cron: '%.*s' is not known: expected @yearly, @monthly, @weekly, @daily or "
                       "@hourly, or five fields",
                       (int)(why->len > SHOWN ? SHOWN : why->len), line.ptr + why->at);
    case CRON_REBOOT:
        return err_set(err, BT_INVALID,
                       "cron: @reboot is no time: expected @daily, or five fields");
    case CRON_NEVER:
        return err_set(err, BT_INVALID,
                       "cron: '%.*s' names a day that no year has: expected a day that the month "
                       "has",
                       len, line.ptr);
    case CRON_RANGE:
    case CRON_WORD:
        (void)snprintf(text, sizeof text, "does not fit: expected %u to %u%s",
                       cron_field_min(why->field), cron_field_max(why->field),
                       names_of(why->field));
        return of_field(line, why, text, err);
    case CRON_BACKWARDS:
        return of_field(line, why, "ends before it begins: expected the smaller number first", err);
    case CRON_STEP:
        (void)snprintf(text, sizeof text, "is no step: expected 1 to %u after the slash",
                       cron_field_max(why->field));
        return of_field(line, why, text, err);
    case CRON_STEP_ALONE:
        (void)snprintf(text, sizeof text, "has a step but no range: expected */N, or FIRST-%u/N",
                       cron_field_max(why->field));
        return of_field(line, why, text, err);
    case CRON_EMPTY:
        return of_field(line, why, "is empty: expected a number on both sides of a comma or dash",
                        err);
    case CRON_QUARTZ:
        return of_field(line, why,
                        "is not of cron's five fields (? L W # are those of other programs): "
                        "expected a number, or *",
                        err);
    case CRON_OK:
    default:
        return err_set(err, BT_INVALID, "cron: '%.*s' cannot be read", len, line.ptr);
    }
}
