/* The skills about moments: now, time, duration. Time zones are read for each step, so that a new
 * tzdata counts at once and steps share nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/calc/calc.h"
#include "agents/calc/dates.h"
#include "agents/calc/durations.h"
#include "agents/sdk/input.h"
#include "protocol/base/clock.h"
#include "protocol/zone/civil.h"

enum { ZONES_LISTED_MAX = 64 };

/* A name that is no time zone is a wrong value of the step: no other agent can find it. */
static enum bt_code find_zone(struct zones *zones, struct str name, const char *parameter,
                              uint16_t *ret_id, struct bt_error *err)
{
    const enum bt_code code = zones_find(zones, name, ret_id, err);

    if (code == BT_OK) {
        return BT_OK;
    }
    err->code = code == BT_NOT_FOUND ? BT_INVALID : code;
    return err_wrap(err, "%s", parameter);
}

enum bt_code calc_zone(struct bt_step *step, struct zones *zones, const struct zone **ret,
                       const char **ret_name, struct bt_error *err)
{
    const char *name = bt_step_param_string(step, "zone", "UTC");
    uint16_t id;

    const enum bt_code code = find_zone(zones, str_from(name), "zone", &id, err);

    if (code != BT_OK) {
        return code;
    }
    *ret = zones_at(zones, id);
    *ret_name = zones_name(zones, id);
    return BT_OK;
}

enum bt_code calc_moment(struct bt_step *step, const char *parameter, const struct zone *zone,
                         struct moment *ret, struct bt_error *err)
{
    const char *text = bt_step_param_string(step, parameter, NULL);

    if (text == NULL && bt_step_has_param(step, parameter)) {
        text = bt_step_params_json(step, parameter); /* a number */
    }
    return moment_read(str_from(text == NULL ? "now" : text), zone, clock_wall_ms(), ret, err) ==
                   BT_OK
               ? BT_OK
               : err_wrap(err, "%s", parameter);
}

/* How the clock and the calendar of the zone show the moment. */
static void add_local(cJSON *data, const struct moment *m, const struct zone *zone,
                      const char *name)
{
    const int32_t offset = zone_offset(zone, m->seconds);
    const int64_t day = civil_day_of(m->seconds + offset);
    const struct civil date = civil_of_days(day);
    const struct cell_date cell = {
        .year = (int)date.year, .month = (int)date.month, .day = (int)date.day};
    char text[MOMENT_TEXT];
    char week[DATE_BUCKET] = "";

    moment_format_local(m, zone, text);
    (void)cJSON_AddStringToObject(data, "zone", name);
    (void)cJSON_AddStringToObject(data, "local", text);
    text[19] = 0;
    (void)cJSON_AddStringToObject(data, "time", text + 11);
    text[10] = 0;
    (void)cJSON_AddStringToObject(data, "date", text);
    moment_format_offset(offset, text);
    (void)cJSON_AddStringToObject(data, "offset", text);
    (void)cJSON_AddStringToObject(data, "weekday",
                                  date_weekday((struct date){.seconds = day * SECONDS_A_DAY}));
    (void)date_bucket(&cell, "week", week);
    (void)cJSON_AddStringToObject(data, "week", week);
    (void)cJSON_AddNumberToObject(data, "dayOfYear",
                                  (double)(day - civil_days(date.year, 1, 1) + 1));
}

static cJSON *moment_data(const struct moment *m, const struct zone *zone, const char *name)
{
    cJSON *data = cJSON_CreateObject();
    char text[MOMENT_TEXT];

    moment_format_utc(m, text);
    (void)cJSON_AddStringToObject(data, "timestamp", text);
    (void)cJSON_AddNumberToObject(data, "tsMs", (double)m->seconds * 1000.0 + m->millis);
    add_local(data, m, zone, name);
    return data;
}

static void reply_moment(struct bt_step *step, cJSON *data, const struct zone *zone)
{
    const char *text = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(data, zone == &ZONE_UTC ? "timestamp" : "local"));
    char line[MOMENT_TEXT];

    (void)snprintf(line, sizeof line, "%s", text == NULL ? "" : text);
    input_reply(step, data, line);
}

void calc_now(struct bt_step *step, void *self)
{
    const msec now = clock_wall_ms();
    const struct moment m = {
        .seconds = (int64_t)(now / 1000), .millis = (uint32_t)(now % 1000), .has_time = true};
    const struct zone *zone = &ZONE_UTC;
    const char *name = "UTC";
    struct zones *zones;
    struct bt_error err;
    enum bt_code code = zones_new(&zones, &err);

    (void)self;
    code = code == BT_OK ? calc_zone(step, zones, &zone, &name, &err) : code;
    if (code == BT_OK) {
        reply_moment(step, moment_data(&m, zone, name), zone);
    } else {
        bt_step_fail_error(step, &err);
    }
    zones_free(zones);
}

/* ---- time ---- */

/* Adds a row for each zone of the list, and its line of the text. */
static enum bt_code add_rows(cJSON *data, const cJSON *names, const struct moment *m,
                             struct zones *zones, struct buf *text, struct bt_error *err)
{
    static const char *const columns[] = {"zone", "local", "offset", "weekday"};
    cJSON *rows = cJSON_AddArrayToObject(data, "rows");
    const cJSON *name;
    enum bt_code code;

    (void)input_add(data, "columns", cJSON_CreateStringArray(columns, 4));
    cJSON_ArrayForEach(name, names)
    {
        cJSON *one = cJSON_CreateObject();
        cJSON *row = cJSON_CreateArray();
        uint16_t id;
        code = find_zone(zones, str_from(cJSON_IsString(name) ? name->valuestring : "?"), "to", &id,
                         err);
        if (code != BT_OK) {
            cJSON_Delete(one);
            cJSON_Delete(row);
            return code;
        }
        add_local(one, m, zones_at(zones, id), zones_name(zones, id));
        for (int i = 0; i < 4; i++) {
            (void)input_add(row, NULL, cJSON_DetachItemFromObject(one, columns[i]));
        }
        buf_printf(text, "%s %s\n", cJSON_GetStringValue(cJSON_GetArrayItem(row, 1)),
                   zones_name(zones, id));
        (void)input_add(rows, NULL, row);
        cJSON_Delete(one);
    }
    return BT_OK;
}

static enum bt_code convert(struct bt_step *step, struct zones *zones, cJSON **ret,
                            struct buf *text, struct bt_error *err)
{
    const struct zone *zone = &ZONE_UTC;
    const char *name = "UTC";
    struct moment m;
    cJSON *parameters = NULL;
    const cJSON *to;
    enum bt_code code = calc_zone(step, zones, &zone, &name, err);

    code = code == BT_OK ? calc_moment(step, "time", zone, &m, err) : code;
    code = code == BT_OK ? input_parameters(step, &parameters, err) : code;
    if (code != BT_OK) {
        return code;
    }
    to = cJSON_GetObjectItemCaseSensitive(parameters, "to");
    if (cJSON_IsString(to)) {
        uint16_t id;
        code = find_zone(zones, str_from(to->valuestring), "to", &id, err);
        if (code == BT_OK) {
            zone = zones_at(zones, id);
            name = zones_name(zones, id);
        }
    }
    *ret = code == BT_OK ? moment_data(&m, zone, name) : NULL;
    if (code == BT_OK && m.skipped) {
        (void)cJSON_AddTrueToObject(*ret, "skipped");
    }
    if (code == BT_OK && m.repeated) {
        (void)cJSON_AddTrueToObject(*ret, "repeated");
    }
    if (code == BT_OK && cJSON_GetArraySize(to) > ZONES_LISTED_MAX) {
        code = err_set(err, BT_LIMIT, "to: more than %d time zones", ZONES_LISTED_MAX);
    } else if (code == BT_OK && cJSON_IsArray(to)) {
        code = add_rows(*ret, to, &m, zones, text, err);
    } else if (code == BT_OK) {
        buf_printf(text, "%s",
                   cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(*ret, "local")));
    }
    cJSON_Delete(parameters);
    return code;
}

void calc_time(struct bt_step *step, void *self)
{
    struct zones *zones;
    struct bt_error err;
    struct buf text;
    cJSON *data = NULL;
    enum bt_code code = zones_new(&zones, &err);

    (void)self;
    buf_init(&text, (size_t)ZONES_LISTED_MAX * 128);
    code = code == BT_OK ? convert(step, zones, &data, &text, &err) : code;
    if (code == BT_OK) {
        input_reply_buf(step, data, &text);
    } else {
        cJSON_Delete(data);
        bt_step_fail_error(step, &err);
    }
    buf_done(&text);
    zones_free(zones);
}

/* ---- duration ---- */

static enum bt_code between(struct bt_step *step, int64_t *ret_millis, struct bt_error *err)
{
    const struct zone *zone = &ZONE_UTC;
    const char *name;
    struct moment from;
    struct moment until;
    struct zones *zones;
    enum bt_code code = zones_new(&zones, err);

    code = code == BT_OK ? calc_zone(step, zones, &zone, &name, err) : code;
    code = code == BT_OK ? calc_moment(step, "from", zone, &from, err) : code;
    code = code == BT_OK ? calc_moment(step, "until", zone, &until, err) : code;
    if (code == BT_OK) {
        *ret_millis = (until.seconds - from.seconds) * 1000 + until.millis - from.millis;
    }
    zones_free(zones);
    return code;
}

static enum bt_code measure(struct bt_step *step, int64_t *ret_millis, struct bt_error *err)
{
    const char *text = bt_step_param_string(step, "value", NULL);
    const double seconds = bt_step_param_number(step, "value", NAN);
    struct duration d;

    if (bt_step_has_param(step, "from") || bt_step_has_param(step, "until")) {
        return between(step, ret_millis, err);
    }
    if (text == NULL && fabs(seconds) <= 1e11) {
        *ret_millis = (int64_t)llround(seconds * 1000.0);
        return BT_OK;
    }
    text = text == NULL ? input_text(step, "value") : text;
    if (text == NULL) {
        return err_set(err, BT_INVALID,
                       "give value, such as PT1H30M or 90 minutes, or from and "
                       "until");
    }
    if (duration_read(str_from(text), &d, err) != BT_OK) {
        return err_wrap(err, "value");
    }
    if (!duration_millis(&d, ret_millis)) {
        return err_set(err, BT_INVALID,
                       "value: months and years have no fixed length: add them to a date by the "
                       "skill date, or give from and until");
    }
    return BT_OK;
}

void calc_duration(struct bt_step *step, void *self)
{
    char iso[DURATION_TEXT];
    char words[DURATION_TEXT];
    int64_t millis = 0;
    struct bt_error err;
    cJSON *data;

    (void)self;
    if (measure(step, &millis, &err) != BT_OK) {
        bt_step_fail_error(step, &err);
        return;
    }
    duration_format_iso(millis, iso);
    duration_format_words(millis, words);
    data = cJSON_CreateObject();
    (void)cJSON_AddStringToObject(data, "iso", iso);
    (void)cJSON_AddNumberToObject(data, "ms", (double)millis);
    (void)cJSON_AddNumberToObject(data, "seconds", (double)millis / 1e3);
    (void)cJSON_AddNumberToObject(data, "minutes", (double)millis / 6e4);
    (void)cJSON_AddNumberToObject(data, "hours", (double)millis / 3.6e6);
    (void)cJSON_AddNumberToObject(data, "days", (double)millis / 8.64e7);
    input_reply(step, data, words);
}
