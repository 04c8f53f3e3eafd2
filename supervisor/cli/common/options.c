/* The global options, and the values of options. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/utf8.h"
#include "supervisor/cli/common/cli.h"

const struct cli_option cli_global_options[] = {
    {"state", "DIR", "state directory (else BATON_STATE, else ~/.local/state/baton)"},
    {"json", NULL, "machine-readable output on stdout"},
    {"no-color", NULL, "no colours (also: NO_COLOR, or stderr is no terminal)"},
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
    const char *v = find_value(cli->verb->options, cli->values, name);
    return v != NULL ? v : find_value(cli_global_options, cli->global, name);
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

bool cli_duration(const char *text, const char *what, uint32_t *ret_ms)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"", 1000}, {"s", 1000}, {"ms", 1}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    char *end = NULL;
    double n = strtod(text, &end);

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (isdigit((unsigned char)text[0]) && strcmp(end, units[i].unit) == 0 &&
            n * units[i].ms <= 4e9 && n * units[i].ms >= 1) {
            *ret_ms = (uint32_t)(n * units[i].ms);
            return true;
        }
    }
    cli_error("%s: expected a time such as 500ms, 30s, 5m, 2h or 1d, got '%s'", what, text);
    return false;
}
