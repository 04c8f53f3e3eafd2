#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/suggest.h"
#include "protocol/base/utf8.h"
#include "protocol/client/state.h"
#include "supervisor/cli/common/cli.h"

/* What agents and plans say may be in it. */
static BT_PRINTF(1, 0) void vnote(const char *fmt, va_list args)
{
    char text[8192];

    (void)vsnprintf(text, sizeof text, fmt, args);
    cli_scrub(text);
    (void)fputs(text, stderr);
}

void cli_error(const char *fmt, ...)
{
    va_list args;

    (void)fputs("baton: ", stderr);
    va_start(args, fmt);
    vnote(fmt, args);
    va_end(args);
    (void)fputc('\n', stderr);
}

void cli_note(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vnote(fmt, args);
    va_end(args);
}

enum cli_exit cli_exit_of(enum bt_code code)
{
    switch ((int)code) {
    case BT_OK:
        return CLI_OK;
    case BT_INVALID:
    case BT_CONFLICT:
    case BT_LIMIT:
        return CLI_USAGE;
    case BT_CANCELLED:
        return CLI_CANCELLED;
    case BT_UNAVAILABLE:
    case BT_UNAUTHORIZED:
    case BT_BUSY:
        return CLI_UNREACHABLE;
    case BT_NOT_FOUND:
    case BT_GONE:
        return CLI_NOT_FOUND;
    case BT_TIMEOUT:
        return CLI_TIMEOUT;
    default:
        return CLI_INTERNAL;
    }
}

enum cli_exit cli_fail(const struct bt_error *err)
{
    cli_error("%s", err->msg);
    return cli_exit_of(err->code);
}

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

const char *cli_state_dir(const struct cli *cli)
{
    static struct buf path;
    struct bt_error err;

    if (path.len == 0) {
        buf_init(&path, 4096);
        if (state_dir_find(cli_value(cli, "state"), &path, &err) != BT_OK) {
            cli_error("%s", err.msg);
            return NULL;
        }
    }
    return buf_cstr(&path);
}

enum cli_exit cli_connect(struct cli *cli)
{
    struct bt_error err;

    if (cli->client == NULL &&
        bt_client_open(cli_value(cli, "state"), &cli->client, &err) != BT_OK) {
        (void)cli_fail(&err);
        return err.code == BT_NOT_FOUND || err.code == BT_UNAUTHORIZED ? CLI_UNREACHABLE
                                                                       : cli_exit_of(err.code);
    }
    return CLI_OK;
}

void cli_print_json(const struct cJSON *value)
{
    char *text = cJSON_PrintUnformatted(value);

    if (text != NULL) {
        (void)puts(text);
    }
    cJSON_free(text);
}

const char *json_text(const struct cJSON *object, const char *name, const char *fallback)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(v) ? v->valuestring : fallback;
}

double json_number(const struct cJSON *object, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(v) ? v->valuedouble : 0;
}

enum cli_exit cli_call(struct cli *cli, const char *type, struct cJSON *fields, struct cJSON **ret)
{
    char *text = fields != NULL ? cJSON_PrintUnformatted(fields) : NULL;
    char *json = NULL;
    struct bt_error err;
    enum cli_exit code = cli_connect(cli);

    *ret = NULL;
    if (code == CLI_OK) {
        enum bt_code called = bt_client_call(cli->client, type, text, &json, &err);
        code = CLI_OK;
        if (called != BT_OK) {
            code = cli_refused(cli, &err, json);
        } else {
            *ret = cJSON_Parse(json);
            if (!cli->json && strcmp(type, "plan.result") !=
                                  0) { /* results are data: a file gets their very bytes */
                cli_scrub_tree(*ret);
            }
            if (*ret == NULL) {
                cli_error("the daemon's answer could not be read");
                code = CLI_INTERNAL;
            }
        }
    }
    cJSON_Delete(fields);
    cJSON_free(text);
    bt_free(json);
    return code;
}

const char *cli_did_you_mean(const char *word, const char *const *candidates)
{
    struct suggest near = suggest_start(str_from(word));

    for (; *candidates != NULL; candidates++) {
        suggest_offer(&near, str_from(*candidates));
    }
    return near.best.ptr; /* one of the candidates, so terminated */
}
