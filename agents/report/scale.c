#include "agents/report/scale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "protocol/zone/civil.h"

/* 1, 2 or 5 times a power of ten, at least `least`. */
static double round_step(double least)
{
    const double power = pow(10.0, floor(log10(least)));
    const double part = least / power;

    return power * (part <= 1.0 ? 1.0 : part <= 2.0 ? 2.0 : part <= 5.0 ? 5.0 : 10.0);
}

void scale_number_text(double v, char ret[SCALE_TEXT])
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}};
    const double size = fabs(v);

    if (size >= 1e15 || (size > 0.0 && size < 1e-4)) {
        (void)snprintf(ret, SCALE_TEXT, "%.4g", v);
        return;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (size >= units[i].unit) {
            (void)snprintf(ret, SCALE_TEXT, "%.6g%s", v / units[i].unit, units[i].name);
            return;
        }
    }
    if (size >= 1000.0 && floor(v) == v) {
        (void)snprintf(ret, SCALE_TEXT, "%s%d,%03d", v < 0.0 ? "-" : "", (int)(size / 1000.0),
                       (int)fmod(size, 1000.0));
        return;
    }
    (void)snprintf(ret, SCALE_TEXT, "%.6g", v == 0.0 ? 0.0 : v);
}

static void number_ticks(struct scale *s, double step)
{
    const double first = ceil(s->min / step - 1e-9);

    s->n = 0;
    for (int i = 0; i < SCALE_TICKS_MAX; i++) {
        const double v = (first + i) * step;
        if (v > s->max + step * 1e-9) {
            break;
        }
        s->at[s->n] = v;
        scale_number_text(fabs(v) < step * 1e-9 ? 0.0 : v, s->text[s->n]);
        s->n++;
    }
}

/* Both ends apart, and neither beyond what doubles hold. */
static void widen(double *min, double *max)
{
    *min = fmax(*min, -1e300);
    *max = fmin(*max, 1e300);
    if (!(*max - *min > fabs(*max) * 1e-12)) {
        const double by = *max == 0.0 ? 1.0 : fabs(*max) * 0.1;
        *min -= by;
        *max += by;
    }
}

void scale_numbers(double min, double max, int wanted, struct scale *ret)
{
    double step;

    widen(&min, &max);
    step = round_step((max - min) / wanted);
    *ret = (struct scale){.min = floor(min / step + 1e-9) * step,
                          .max = ceil(max / step - 1e-9) * step};
    number_ticks(ret, step);
}

void scale_numbers_within(double min, double max, int wanted, struct scale *ret)
{
    widen(&min, &max);
    *ret = (struct scale){.min = min, .max = max};
    number_ticks(ret, round_step((max - min) / wanted));
}

double scale_place(const struct scale *s, double v, double from, double to)
{
    return from + (v - s->min) / (s->max - s->min) * (to - from);
}

/* ---- times ---- */

static void clock_text(int64_t seconds, char ret[SCALE_TEXT])
{
    const int64_t day = civil_day_of(seconds);
    const int rest = (int)(seconds - day * SECONDS_A_DAY);

    (void)snprintf(ret, SCALE_TEXT, rest % 60 == 0 ? "%02d:%02d" : "%02d:%02d:%02d", rest / 3600,
                   rest / 60 % 60, rest % 60);
}

static void day_text(int64_t seconds, const char *form, char ret[SCALE_TEXT])
{
    const struct civil c = civil_of_days(civil_day_of(seconds));

    if (strcmp(form, "year") == 0) {
        (void)snprintf(ret, SCALE_TEXT, "%04d", (int)c.year);
    } else if (strcmp(form, "month") == 0) {
        (void)snprintf(ret, SCALE_TEXT, "%04d-%02u", (int)c.year, c.month);
    } else {
        (void)snprintf(ret, SCALE_TEXT, "%04d-%02u-%02u", (int)c.year, c.month, c.day);
    }
}

void scale_time_text(double seconds, char ret[SCALE_TEXT])
{
    const int64_t at = (int64_t)floor(seconds);

    day_text(at, "day", ret);
    if (at % SECONDS_A_DAY != 0) {
        char clock[SCALE_TEXT];
        clock_text(at, clock);
        (void)snprintf(ret + 10, SCALE_TEXT - 10, " %.20s", clock);
    }
}

/* Steps of months: the first of a month whose number fits. */
static void month_ticks(struct scale *s, int64_t months)
{
    const struct civil from = civil_of_days(civil_day_of((int64_t)floor(s->min)));
    int64_t at = from.year * 12 + from.month - 1;

    at -= at % months;
    for (int i = 0; i < SCALE_TICKS_MAX * 2 && s->n < SCALE_TICKS_MAX; i++, at += months) {
        const double v = (double)(civil_days(at / 12, (uint32_t)(at % 12 + 1), 1) * SECONDS_A_DAY);
        if (v > s->max) {
            break;
        }
        if (v >= s->min) {
            s->at[s->n] = v;
            day_text((int64_t)v, months % 12 == 0 ? "year" : "month", s->text[s->n]);
            s->n++;
        }
    }
}

/* Steps of seconds or days; the day stands where it changes. */
static void second_ticks(struct scale *s, double step)
{
    const double monday = step == 604800.0 ? 4.0 * SECONDS_A_DAY : 0.0; /* 1970 began a Thursday */
    int64_t last_day = INT64_MIN;

    for (double v = ceil((s->min - monday) / step) * step + monday;
         v <= s->max && s->n < SCALE_TICKS_MAX; v += step) {
        const int64_t at = (int64_t)v;
        const int64_t day = civil_day_of(at);
        if (step >= SECONDS_A_DAY || day != last_day) {
            scale_time_text((double)at, s->text[s->n]);
        } else {
            clock_text(at, s->text[s->n]);
        }
        last_day = day;
        s->at[s->n++] = v;
    }
}

void scale_times(double min, double max, int wanted, struct scale *ret)
{
    static const double seconds[] = {1,     2,     5,     10,    15,     30,     60,
                                     120,   300,   600,   900,   1800,   3600,   7200,
                                     10800, 21600, 43200, 86400, 172800, 345600, 604800};
    static const int64_t months[] = {1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 12000};
    double step;
    size_t i = 0;

    if (!(max > min)) {
        min -= SECONDS_A_DAY;
        max += SECONDS_A_DAY;
    }
    *ret = (struct scale){.min = min, .max = max, .time = true};
    step = (max - min) / wanted;
    if (step <= 604800.0) {
        while (seconds[i] < step && i + 1 < sizeof seconds / sizeof seconds[0]) {
            i++;
        }
        second_ticks(ret, seconds[i]);
    } else {
        while ((double)months[i] * 30.4 * SECONDS_A_DAY < step &&
               i + 1 < sizeof months / sizeof months[0]) {
            i++;
        }
        month_ticks(ret, months[i]);
    }
}
