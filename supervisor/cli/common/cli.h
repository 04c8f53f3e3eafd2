/*
 * The command line `baton`: what every verb has. The verb that runs, the values of its options, the
 * exit codes, and errors on stderr. Data goes to stdout, everything else to stderr. One thread.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>

#include "baton/client.h"

/* The contract of the exit codes; `baton --help` prints them. */
enum cli_exit {
    CLI_OK = 0,
    CLI_INTERNAL = 1,
    CLI_USAGE = 2,  /* usage or invalid input */
    CLI_FAILED = 3, /* the plan failed */
    CLI_NEEDS_HUMAN = 4,
    CLI_CANCELLED = 5,
    CLI_UNREACHABLE = 6,
    CLI_NOT_FOUND = 7,
    CLI_TIMEOUT = 124,
    CLI_INTERRUPTED = 130
};

struct cli_option {
    const char *name; /* NULL ends the list */
    const char *arg;  /* "FILE"; NULL = a flag; "TEXT..." = may be repeated */
    const char *help;
};

struct cli;

struct cli_verb {
    const char *name;  /* NULL ends the list */
    const char *args;  /* "[GOAL]" */
    const char *brief; /* one line */
    const char *text;  /* more, for its --help; may be NULL */
    const struct cli_option *options;
    int args_min, args_max; /* -1 = any number */
    enum cli_exit (*run)(struct cli *cli);
};

enum { CLI_OPTIONS_MAX = 24, CLI_REPEATS_MAX = 128 };

/* One value of an option that may be repeated. */
struct cli_repeat {
    int option; /* its index in verb->options */
    const char *value;
};

struct cli {
    const struct cli_verb *verb;
    const char *values[CLI_OPTIONS_MAX]; /* by index in verb->options; "" for a flag that is set */
    const char *global[8];               /* by index in cli_global_options */
    struct cli_repeat repeats[CLI_REPEATS_MAX]; /* in the order of the command line */
    int n_repeats;
    int argc; /* the arguments after the options */
    char **argv;
    bool json;
    bool color;
    struct bt_client *client; /* NULL until cli_connect */
};

/* ---- options.c ---- */

/* The options of every verb. */
extern const struct cli_option cli_global_options[];

/* The value of an option of the verb or a global one, borrowed; NULL when it was not given. */
const char *cli_value(const struct cli *cli, const char *name);
bool cli_flag(const struct cli *cli, const char *name);
/* The n-th value (from 0 on) of an option that may be repeated; NULL after the last one. */
const char *cli_nth_value(const struct cli *cli, const char *name, int n);
/* "90", "90s", "5m", "2h", "1d" or "250ms" in milliseconds. Prints the error and returns false. */
bool cli_duration(const char *text, const char *what, uint32_t *ret_ms);
/* Whether the text is UTF-8. Prints the error and returns false. */
bool cli_is_text(const char *text, const char *what);
/* A number >= 0. Prints the error and returns false. */
bool cli_number(const char *text, const char *what, uint64_t *ret);

/* ---- errors.c ---- */

/* "baton: ..." and a newline on stderr; control characters are replaced. */
void cli_error(const char *fmt, ...) BT_PRINTF(1, 2);
/* The same without the name and the newline. */
void cli_note(const char *fmt, ...) BT_PRINTF(1, 2);
/* Prints the error and returns its exit code. */
enum cli_exit cli_fail(const struct bt_error *err);
enum cli_exit cli_exit_of(enum bt_code code);
/* The exit code of a plan's status ("completed", "failed", "cancelled", "waiting"). */
enum cli_exit cli_exit_of_plan(const char *status);
#endif
