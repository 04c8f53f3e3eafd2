/* Errors and notes on stderr, and the exit codes that belong to them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/deadline.h"
#include "supervisor/cli/common/form.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/started.h"
#include "supervisor/cli/common/text.h"

enum { TEXT_MAX = 8192, HINT_BYTES_MAX = 65536, HINT_MAX = 8192 };

static struct {
    bool as_json;
    cJSON *error;          /* NULL = none is kept */
    const char *plan_id;   /* one of several that errors are about; NULL = there is one only */
    const struct cli *cli; /* the command line; NULL = not read yet */
} errors;

/* Advice to start a daemon is a whole command: ret gets the options that belong after it. */
static const char *after_up(const char *text, char ret[STARTED_MAX])
{
    static const char up[] = "with: baton up";
    const size_t n = strlen(text);

    ret[0] = 0;
    if (errors.cli != NULL && n >= sizeof up - 1 && strcmp(text + n - (sizeof up - 1), up) == 0) {
        started_options(errors.cli, ret);
        cli_scrub(ret);
    }
    return ret;
}

/* The text may contain strings of agents and plans. */
static BT_PRINTF(3, 0) void format(char *text, size_t cap, const char *fmt, va_list args)
{
    (void)vsnprintf(text, cap, fmt, args);
    cli_scrub(text);
}

/* Sets a member to text, or adds a line to it. */
static void add_line(cJSON *object, const char *name, const char *text)
{
    const char *before = json_text(object, name, NULL);
    struct buf lines;

    buf_init(&lines, HINT_BYTES_MAX);
    buf_printf(&lines, "%s%s%s", before != NULL ? before : "", before != NULL ? "\n" : "", text);
    cJSON_DeleteItemFromObjectCaseSensitive(object, name);
    (void)cJSON_AddStringToObject(object, name, buf_cstr(&lines));
    buf_done(&lines);
}

static bool keeps(void)
{
    return errors.as_json && !cli_has_printed();
}

static void report(const char *text, const char *hint)
{
    char more[STARTED_MAX];

    if (!keeps()) {
        (void)fflush(stdout); /* what was printed before stands before it, also in a file */
        const bool named = errors.plan_id == NULL || strstr(text, errors.plan_id) != NULL;
        (void)fprintf(stderr, "baton: %s%s%s%s%s%s\n", named ? "" : errors.plan_id,
                      named ? "" : ": ", text, hint[0] != 0 ? "; " : "", hint,
                      after_up(hint[0] != 0 ? hint : text, more));
        return;
    }
    if (errors.error == NULL) {
        errors.error = cli_fields("code", ""); /* cli_errors_end knows it */
    }
    add_line(errors.error, "message", text);
    if (hint[0] != 0) {
        add_line(errors.error, "hint", hint);
    }
}

void cli_error(const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list args;

    va_start(args, fmt);
    format(text, sizeof text, fmt, args);
    va_end(args);
    report(text, "");
}

void cli_error_hint(const char *hint, const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list args;

    va_start(args, fmt);
    format(text, sizeof text, fmt, args);
    va_end(args);
    report(text, hint);
}

void cli_note(const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list args;
    size_t n;

    va_start(args, fmt);
    format(text, sizeof text, fmt, args);
    va_end(args);
    if (errors.error == NULL || !keeps()) {
        (void)fflush(stdout);
        (void)fputs(text, stderr);
        return;
    }
    n = strlen(text);
    text[n > 0 && text[n - 1] == '\n' ? n - 1 : n] = 0;
    add_line(errors.error, "hint", text + strspn(text, " "));
}

void cli_error_keep(cJSON *error)
{
    cJSON_Delete(errors.error);
    errors.error = error;
}

void cli_errors_about(const char *plan_id)
{
    errors.plan_id = plan_id;
}

void cli_errors_of(const struct cli *cli)
{
    errors.cli = cli;
}

void cli_errors_as_json(bool on)
{
    errors.as_json = on;
}

bool cli_has_error(void)
{
    return errors.error != NULL;
}

/* Names an error that has no code yet; NULL is allowed. */
static void set_code(cJSON *error, const char *name)
{
    if (error != NULL && json_text(error, "code", "")[0] == 0) {
        (void)cJSON_ReplaceItemInObjectCaseSensitive(error, "code", cJSON_CreateString(name));
    }
}

/* As on the wire; those of plans have names of their own. */
static const char *code_name(enum cli_exit code)
{
    switch (code) {
    case CLI_USAGE:
        return bt_code_name(BT_INVALID);
    case CLI_FAILED:
        return "FAILED";
    case CLI_NEEDS_HUMAN:
        return "NEEDS_HUMAN";
    case CLI_CANCELLED:
        return bt_code_name(BT_CANCELLED);
    case CLI_UNREACHABLE:
        return bt_code_name(BT_UNAVAILABLE);
    case CLI_NOT_FOUND:
        return bt_code_name(BT_NOT_FOUND);
    case CLI_PARTIAL:
        return "PARTIAL";
    case CLI_TIMEOUT:
        return bt_code_name(BT_TIMEOUT);
    case CLI_INTERRUPTED:
        return "INTERRUPTED";
    case CLI_OK:
    case CLI_INTERNAL:
    default:
        return bt_code_name(BT_INTERNAL);
    }
}

/* What to do stands at the end of libbaton's messages; programs find it as the hint. */
static void split_hint(cJSON *error)
{
    static const char *const begins[] = {
        "; start one with: ", "; start it again with: ", "; see: "};
    char *message = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(error, "message"));
    char more[STARTED_MAX];
    char hint[STARTED_MAX + HINT_MAX];

    for (size_t i = 0; message != NULL && i < sizeof begins / sizeof begins[0]; i++) {
        char *at = strstr(message, begins[i]);
        if (at != NULL && strchr(at, '\n') == NULL && json_text(error, "hint", NULL) == NULL) {
            (void)snprintf(hint, sizeof hint, "%.*s%s", HINT_MAX - 1, at + 2,
                           after_up(at + 2, more));
            (void)cJSON_AddStringToObject(error, "hint", hint);
            *at = 0;
        }
    }
}

void cli_errors_end(enum cli_exit code)
{
    cJSON *error = errors.error;

    errors.error = NULL;
    if (error == NULL) {
        return;
    }
    if (code == CLI_OK || cli_has_printed()) {
        (void)fprintf(stderr, "baton: %s\n", json_text(error, "message", ""));
    } else {
        if (code == CLI_TIMEOUT) { /* the verb's own time is over, whatever it was waiting for */
            (void)cJSON_ReplaceItemInObjectCaseSensitive(error, "code", cJSON_CreateString(""));
        }
        set_code(error, code_name(code));
        if (errors.plan_id != NULL) {
            (void)cJSON_AddStringToObject(error, "planId", errors.plan_id);
        }
        split_hint(error);
        cli_print_json(error);
    }
    cJSON_Delete(error);
}

enum cli_exit cli_exit_of(enum bt_code code)
{
    if (code == BT_UNAVAILABLE && deadline_is_over()) {
        return CLI_TIMEOUT; /* wherever the daemon hangs */
    }
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
    case BT_HISTORY_CHANGED:
        return CLI_NOT_FOUND;
    case BT_TIMEOUT:
        return CLI_TIMEOUT;
    default:
        return CLI_INTERNAL;
    }
}

enum cli_exit cli_exit_of_plan(const char *status, const char *outcome)
{
    if (strcmp(status, "completed") == 0 && strcmp(outcome, "partial") == 0) {
        return CLI_PARTIAL;
    }
    return strcmp(status, "completed") == 0   ? CLI_OK
           : strcmp(status, "planned") == 0   ? CLI_OK
           : strcmp(status, "cancelled") == 0 ? CLI_CANCELLED
           : strcmp(status, "waiting") == 0   ? CLI_NEEDS_HUMAN
                                              : CLI_FAILED;
}

enum cli_exit cli_report_partial(const struct cli *cli, enum cli_exit code, const char *plan_id)
{
    if (code != CLI_PARTIAL) {
        return code;
    }
    cli_error("plan %s is partial: its answer ends with what was not done", plan_id);
    return cli_flag(cli, "allow-partial") ? CLI_OK : code;
}

enum cli_exit cli_fail(const struct bt_error *err)
{
    cli_error("%s", err->msg);
    set_code(errors.error, bt_code_name(err->code));
    return cli_exit_of(err->code);
}
