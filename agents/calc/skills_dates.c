#include <math.h>

#include <cjson/cJSON.h>

#include "agents/calc/calc.h"
#include "agents/calc/dates.h"
#include "agents/sdk/input.h"
#include "protocol/base/clock.h"

void calc_now(struct bt_step *step, void *self)
{
    msec now = clock_wall_ms();
    struct date d = {.seconds = (int64_t)(now / 1000), .has_time = true};
    char stamp[CLOCK_ISO_LEN + 1];
    char text[DATE_TEXT];
    cJSON *data = cJSON_CreateObject();

    (void)self;
    clock_iso(now, stamp);
    date_format(d, text);
    text[10] = 0;
    (void)cJSON_AddStringToObject(data, "timestamp", stamp);
    (void)cJSON_AddNumberToObject(data, "tsMs", (double)now);
    (void)cJSON_AddStringToObject(data, "date", text);
    (void)cJSON_AddStringToObject(data, "weekday", date_weekday(d));
    input_reply(step, data, stamp);
}

static enum bt_code read_date(struct bt_step *step, const char *parameter, struct date *ret,
                              struct bt_error *err)
{
    const char *text = bt_step_param_string(step, parameter, NULL);

    if (text == NULL || strcmp(text, "now") == 0) {
        *ret = (struct date){.seconds = (int64_t)(clock_wall_ms() / 1000), .has_time = true};
        return BT_OK;
    }
    return date_parse(text, ret, err) == BT_OK ? BT_OK : err_wrap(err, "%s", parameter);
}

static enum bt_code shift(struct bt_step *step, struct date *d, struct bt_error *err)
{
    double amount = bt_step_param_number(step, "amount", 0.0);

    if (floor(amount) != amount || fabs(amount) > 1e15) {
        return err_set(err, BT_INVALID, "amount: expected a whole number");
    }
    return date_add(*d, (int64_t)amount, bt_step_param_string(step, "unit", "days"), d, err);
}

/* Describes date (plus amount unit), and the distance to `until`. */
void calc_date(struct bt_step *step, void *self)
{
    char text[DATE_TEXT] = "";
    struct date d = {0};
    struct date until = {0};
    double distance = 0.0;
    const char *unit = bt_step_param_string(step, "unit", "days");
    struct bt_error err;
    cJSON *data;
    enum bt_code code = read_date(step, "date", &d, &err);

    (void)self;
    if (code == BT_OK && bt_step_has_param(step, "amount")) {
        code = shift(step, &d, &err);
    }
    if (code == BT_OK && bt_step_has_param(step, "until")) {
        code = read_date(step, "until", &until, &err);
        if (code == BT_OK) {
            code = date_diff(d, until, unit, &distance, &err);
        }
    }
    if (code != BT_OK) {
        bt_step_fail_error(step, &err);
        return;
    }
    date_format(d, text);
    data = cJSON_CreateObject();
    (void)cJSON_AddStringToObject(data, "date", text);
    (void)cJSON_AddStringToObject(data, "weekday", date_weekday(d));
    if (bt_step_has_param(step, "until")) {
        (void)cJSON_AddNumberToObject(data, "distance", distance);
        (void)cJSON_AddStringToObject(data, "unit", unit);
    }
    input_reply(step, data, text);
}
