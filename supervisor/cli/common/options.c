/* The global options, and the values of options. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "protocol/base/utf8.h"
#include "supervisor/cli/common/cli.h"

const struct cli_option cli_global_options[] = {
    {"state", "DIR", "state directory (else BATON_STATE, ./.baton, ~/.local/state/baton)"},
    {"context", "CONTEXT", "a daemon on another host (else BATON_CONTEXT; see: baton context)"},
    {"connect", "URL",
     "the same without a context: tls+tcp://HOST:PORT, of a fleet several with commas, and the "
     "next three"},
    {"credential", "FILE", "proves who you are (else BATON_CREDENTIAL)"},
    {"ca", "FILE", "the authority that signed its certificate"},
    {"cert", "FILE", "your certificate and key"},
    {"output", "json|jsonl|table|yaml", "form of the data on stdout (table)"},
    {"json", NULL, "the same as --output json"},
    {"timeout", "TIME", "end after this time with exit code 124; plans go on"},
    {"quiet", NULL, "no progress on stderr; warnings and errors stay"},
    {"no-color", NULL, "no colours (also: NO_COLOR, or stderr is no terminal)"},
    {"no-pager", NULL, "no pager on a terminal (else $BATON_PAGER, $PAGER, less)"},
    {"help", NULL, "this text"},
    {NULL, NULL, NULL},
};

static const char *find_value(const struct cli_option *o, const char *const *values,
                              const char *name)
{
    for (int i = 0; o != NULL && o[i].name != NULL; i++) {
        if (strcmp(o[i].name, name) == 0) {
            return values[i];
        }
    }
    return NULL;
}

const char *cli_value(const struct cli *cli, const char *name)
{
    const struct cli_option *own = cli->verb != NULL ? cli->verb->options : NULL;
    const char *v = find_value(own, cli->values, name);

    return v != NULL ? v : find_value(cli_global_options, cli->global, name);
}

/* "30d" may be longer than other durations are. */
bool cli_age(const char *text, const char *what, uint64_t *ret_ms)
{
    enum { DAYS_MAX = 36500 };
    char *end = NULL;
    const unsigned long days = strtoul(text, &end, 10);
    uint32_t ms = 0;

    if (end != text && strcmp(end, "d") == 0 && text[0] != '-' && days <= DAYS_MAX) {
        *ret_ms = days * UINT64_C(86400000);
        return true;
    }
    if (end != text && *end == 0) {
        cli_error("%s: expected an age with a unit such as 30d, 12h or 90m, got '%s'", what, text);
        return false;
    }
    if (!cli_duration(text, what, &ms)) {
        return false;
    }
    *ret_ms = ms;
    return true;
}

bool cli_flag(const struct cli *cli, const char *name)
{
    return cli_value(cli, name) != NULL;
}

const char *cli_nth_value(const struct cli *cli, const char *name, int n)
{
    for (int i = 0; i < cli->n_repeats; i++) {
        const struct cli_repeat *r = &cli->repeats[i];
        if (strcmp(cli->verb->options[r->option].name, name) == 0 && n-- == 0) {
            return r->value;
        }
    }
    return NULL;
}

bool cli_is_text(const char *text, const char *what)
{
    size_t n = strlen(text);

    if (utf8_valid(text, n)) {
        return true;
    }
    cli_error("%s is not UTF-8 text, from its byte %zu on", what, utf8_prefix(text, n) + 1);
    return false;
}

bool cli_number(const char *text, const char *what, uint64_t *ret)
{
    char *end = NULL;

    errno = 0;
    *ret = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)text[0]) || *end != 0 || errno != 0) {
        cli_error("%s: expected a whole number, got '%s'", what, text);
        return false;
    }
    return true;
}

/* "90", "90s", "250ms" and so on, in milliseconds; negative when it is no duration. */
static double duration_ms(const char *text)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"", 1000}, {"s", 1000}, {"ms", 1}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    char *end = NULL;
    const double n = strtod(text, &end);

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (isdigit((unsigned char)text[0]) && strcmp(end, units[i].unit) == 0) {
            return n * units[i].ms;
        }
    }
    return -1;
}

bool cli_duration(const char *text, const char *what, uint32_t *ret_ms)
{
    const double ms = duration_ms(text);

    if (ms >= 1 && ms <= 4e9) {
        *ret_ms = (uint32_t)ms;
        return true;
    }
    cli_error("%s: expected a time such as 500ms, 30s, 5m, 2h or 1d, got '%s'", what, text);
    return false;
}

/* The end of the text of a time of day: seconds or less than a second may be missing. */
static const char *skip_fraction(const char *text)
{
    return text != NULL && text[0] == '.' && isdigit((unsigned char)text[1])
               ? text + 1 + strspn(text + 1, "0123456789")
               : text;
}

/* The time of local fields: what is that far from UTC at this time. */
static time_t local_time(struct tm *fields)
{
    const time_t as_utc = timegm(fields);
    time_t t = as_utc;
    struct tm tm;

    for (int i = 0; i < 2; i++) { /* twice: the distance may change near it */
        (void)localtime_r(&t, &tm);
        t = as_utc - tm.tm_gmtoff;
    }
    return t;
}

bool cli_moment(const char *text, const char *what, msec now, msec *ret)
{
    static const char *const forms[] = {
        "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d",
        "%H:%M:%S",          "%H:%M"};
    const double ms = duration_ms(text);
    const time_t today = (time_t)(now / 1000);

    if (ms >= 0) {
        *ret = ms < (double)now ? now - (msec)ms : 0;
        return true;
    }
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct tm tm;
        const char *end;
        time_t t;
        (void)localtime_r(&today, &tm);
        tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
        end = skip_fraction(strptime(text, forms[i], &tm));
        if (end == NULL || (end[0] != 0 && strcmp(end, "Z") != 0)) {
            continue;
        }
        t = end[0] == 'Z' ? timegm(&tm) : local_time(&tm);
        if (t >= 0) {
            *ret = (msec)t * 1000;
            return true;
        }
    }
    cli_error("%s: expected how long ago, such as 30s, 5m or 2h, or a time such as 14:30, "
              "2026-01-31, '2026-01-31 14:30' or 2026-01-31T13:30:00Z, got '%s'",
              what, text);
    return false;
}
