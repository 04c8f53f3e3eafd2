#include "agents/llm/model/retry.h"

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads "12" or "12.5" in thousandths, capped; false for anything else. */
static bool read_decimal(struct str s, uint64_t *ret_thousandths)
{
    uint64_t v = 0;
    uint64_t scale = 100;
    size_t i = 0;

    if (s.len == 0 || !digit(s.ptr[0])) {
        return false;
    }
    for (; i < s.len && digit(s.ptr[i]); i++) {
        v = v * 10 + (uint64_t)(s.ptr[i] - '0');
        v = v > 1000000000000u ? 1000000000000u : v;
    }
    v *= 1000;
    if (i < s.len && s.ptr[i] == '.') {
        for (i++; i < s.len && digit(s.ptr[i]); i++) {
            v += (uint64_t)(s.ptr[i] - '0') * scale;
            scale /= 10;
        }
    }
    *ret_thousandths = v;
    return i == s.len;
}

static bool read_number(struct str s, size_t at, size_t n, uint32_t *ret)
{
    uint32_t v = 0;

    for (size_t i = at; i < at + n; i++) {
        if (!digit(s.ptr[i])) {
            return false;
        }
        v = v * 10 + (uint32_t)(s.ptr[i] - '0');
    }
    *ret = v;
    return true;
}

/* Days since 1970-01-01: https://howardhinnant.github.io/date_algorithms.html */
static int64_t days_of(int64_t y, uint32_t m, uint32_t d)
{
    int64_t era;
    int64_t year_of_era;
    int64_t day_of_year;

    y -= m <= 2;
    era = y / 400;
    year_of_era = y - era * 400;
    day_of_year = (153 * ((int64_t)m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719468;
}

/* Reads "Sun, 06 Nov 1994 08:49:37 GMT" (IMF-fixdate), the form that RFC 9110 requires of
 * senders. */
static bool read_date(struct str s, msec *ret_wall)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    uint32_t day = 0;
    uint32_t month = 1;
    uint32_t year = 0;
    uint32_t h = 0;
    uint32_t m = 0;
    uint32_t sec = 0;
    int64_t days;

    if (s.len != 29 || memcmp(s.ptr + 25, " GMT", 4) != 0 || !read_number(s, 5, 2, &day) ||
        !read_number(s, 12, 4, &year) || !read_number(s, 17, 2, &h) || !read_number(s, 20, 2, &m) ||
        !read_number(s, 23, 2, &sec)) {
        return false;
    }
    while (month <= 12 && memcmp(months + (size_t)(month - 1) * 3, s.ptr + 8, 3) != 0) {
        month++;
    }
    if (month > 12 || year < 1970 || day < 1 || day > 31 || h > 23 || m > 59 || sec > 60) {
        return false;
    }
    days = days_of(year, month, day);
    *ret_wall = ((((uint64_t)days * 24 + h) * 60 + m) * 60 + sec) * 1000;
    return true;
}

static msec capped(uint64_t ms)
{
    return ms > RETRY_AFTER_MAX_MS ? RETRY_AFTER_MAX_MS : ms;
}

msec retry_after_read(struct str header, msec wall_now)
{
    uint64_t thousandths = 0;
    msec wall = 0;

    if (read_decimal(header, &thousandths)) {
        return capped(thousandths);
    }
    if (read_date(header, &wall)) {
        return wall <= wall_now ? 0 : capped(wall - wall_now);
    }
    return MSEC_NEVER;
}

msec retry_after_ms_read(struct str header)
{
    uint64_t thousandths = 0;

    return read_decimal(header, &thousandths) ? capped(thousandths / 1000) : MSEC_NEVER;
}

bool retry_status(long status)
{
    return status == 0 || status == 408 || status == 409 || status == 429 ||
           (status >= 500 && status <= 599);
}

/* Full jitter: a random delay from 0 to the exponential step.
 * https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/ */
static msec jitter(const struct retry_case *c)
{
    uint32_t doublings = c->attempt > 16 ? 16 : c->attempt - 1;
    msec most = c->base_ms << doublings;

    most = most > c->max_wait_ms ? c->max_wait_ms : most;
    return c->random_bits % (most + 1);
}

struct retry_verdict retry_decide(const struct retry_case *c)
{
    struct retry_verdict v = {.again = c->should < 0 ? retry_status(c->status) : c->should == 1};

    if (c->attempt >= c->attempts) {
        v.again = false;
    }
    v.wait_ms = c->after == MSEC_NEVER ? jitter(c) : c->after;
    if (v.wait_ms > c->max_wait_ms || msec_add(c->now, v.wait_ms) >= c->deadline) {
        v.again = false;
    }
    return v;
}
