/* Errors and notes on stderr, and the exit codes that belong to them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/text.h"

/* The text may contain strings of agents and plans. */
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

enum cli_exit cli_exit_of_plan(const char *status)
{
    return strcmp(status, "completed") == 0   ? CLI_OK
           : strcmp(status, "cancelled") == 0 ? CLI_CANCELLED
           : strcmp(status, "waiting") == 0   ? CLI_NEEDS_HUMAN
                                              : CLI_FAILED;
}

enum cli_exit cli_fail(const struct bt_error *err)
{
    cli_error("%s", err->msg);
    return cli_exit_of(err->code);
}
