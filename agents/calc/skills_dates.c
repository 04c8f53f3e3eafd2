/* The skill date: the calendar of a time zone. */
#include <math.h>

#include <cjson/cJSON.h>

#include "agents/calc/calc.h"
#include "agents/calc/dates.h"
#include "agents/calc/durations.h"
#include "agents/sdk/input.h"

/* What a day, a week, a month or a year is added to: the clock of the zone. The moment that it then
 * shows; other units are of real time. */
static enum bt_code add(struct moment *m, const struct zone *zone, int64_t amount, const char *unit,
                        struct bt_error *err)
{
    const bool calendar = date_unit_is_calendar(unit);
    const int32_t offset = calendar ? zone_offset(zone, m->seconds) : 0;
    struct date d = {.seconds = m->seconds + offset, .has_time = m->has_time};
    const enum bt_code code = date_add(d, amount, unit, &d, err);

    if (code != BT_OK) {
        return code;
    }
    if (calendar) {
        *m = moment_of_local(zone, d.seconds);
    } else {
        m->seconds = d.seconds;
    }
    m->has_time = d.has_time;
    return BT_OK;
}

static enum bt_code add_duration(struct moment *m, const struct zone *zone, const char *text,
                                 struct bt_error *err)
{
    struct duration d;
    enum bt_code code = duration_read(str_from(text), &d, err);

    if (code != BT_OK) {
        return err_wrap(err, "duration");
    }
    if (d.millis % 1000 != 0) {
        return err_set(err, BT_INVALID, "duration: a date is exact to seconds, not milliseconds");
    }
    code = d.months != 0 ? add(m, zone, d.months, "months", err) : BT_OK;
    code = code == BT_OK && d.days != 0 ? add(m, zone, d.days, "days", err) : code;
    return code == BT_OK && d.millis != 0 ? add(m, zone, d.millis / 1000, "seconds", err) : code;
}

static enum bt_code shift(struct bt_step *step, struct moment *m, const struct zone *zone,
                          struct bt_error *err)
{
    const double amount = bt_step_param_number(step, "amount", 0.0);
    const char *duration = bt_step_param_string(step, "duration", NULL);
    enum bt_code code = BT_OK;

    if (floor(amount) != amount || fabs(amount) > 1e15) {
        return err_set(err, BT_INVALID, "amount: expected a whole number");
    }
    if (bt_step_has_param(step, "amount")) {
        code = add(m, zone, (int64_t)amount, bt_step_param_string(step, "unit", "days"), err);
    }
    return code == BT_OK && duration != NULL ? add_duration(m, zone, duration, err) : code;
}

/* Days and weeks are those of the calendar: a day of 23 hours counts as one. */
static enum bt_code distance(struct moment a, struct moment b, const struct zone *zone,
                             const char *unit, double *ret, struct bt_error *err)
{
    const bool calendar = date_unit_is_calendar(unit);
    const int64_t from = a.seconds + (calendar ? zone_offset(zone, a.seconds) : 0);
    const int64_t to = b.seconds + (calendar ? zone_offset(zone, b.seconds) : 0);

    return date_diff((struct date){.seconds = from}, (struct date){.seconds = to}, unit, ret, err);
}

static void describe(struct moment m, const struct zone *zone, char ret[MOMENT_TEXT],
                     const char **ret_weekday)
{
    m.millis = 0;
    moment_format_local(&m, zone, ret);
    if (!m.has_time) {
        ret[10] = 0;
    }
    *ret_weekday = date_weekday((struct date){.seconds = m.seconds + zone_offset(zone, m.seconds)});
}

static enum bt_code reckon(struct bt_step *step, struct zones *zones, cJSON *data,
                           char text[MOMENT_TEXT], struct bt_error *err)
{
    const char *unit = bt_step_param_string(step, "unit", "days");
    const struct zone *zone = &ZONE_UTC;
    const char *name;
    const char *weekday;
    struct moment m;
    struct moment until;
    double away = 0.0;
    enum bt_code code = calc_zone(step, zones, &zone, &name, err);

    code = code == BT_OK ? calc_moment(step, "date", zone, &m, err) : code;
    code = code == BT_OK ? shift(step, &m, zone, err) : code;
    if (code != BT_OK) {
        return code;
    }
    if (bt_step_has_param(step, "until")) {
        code = calc_moment(step, "until", zone, &until, err);
        code = code == BT_OK ? distance(m, until, zone, unit, &away, err) : code;
        if (code != BT_OK) {
            return code;
        }
    }
    describe(m, zone, text, &weekday);
    (void)cJSON_AddStringToObject(data, "date", text);
    (void)cJSON_AddStringToObject(data, "weekday", weekday);
    if (zone != &ZONE_UTC) {
        (void)cJSON_AddStringToObject(data, "zone", name);
    }
    if (bt_step_has_param(step, "until")) {
        (void)cJSON_AddNumberToObject(data, "distance", away);
        (void)cJSON_AddStringToObject(data, "unit", unit);
    }
    return BT_OK;
}

/* Describes date (plus amount unit, plus duration), and the distance to `until`. */
void calc_date(struct bt_step *step, void *self)
{
    char text[MOMENT_TEXT] = "";
    cJSON *data = cJSON_CreateObject();
    struct zones *zones;
    struct bt_error err;
    enum bt_code code = zones_new(&zones, &err);

    (void)self;
    code = code == BT_OK ? reckon(step, zones, data, text, &err) : code;
    if (code == BT_OK) {
        input_reply(step, data, text);
    } else {
        cJSON_Delete(data);
        bt_step_fail_error(step, &err);
    }
    zones_free(zones);
}
