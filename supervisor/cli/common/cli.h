/*
 * The command line `baton`: what every verb has. The verb that runs, the values of its options, the
 * exit codes, and errors on stderr. Data goes to stdout, everything else to stderr. One thread.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>

#include "baton/client.h"
#include "protocol/base/msec.h"

struct cJSON;

struct cJSON;

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
    CLI_PARTIAL = 8, /* the plan ended, and not all of it was done */
    CLI_TIMEOUT = 124,
    CLI_INTERRUPTED = 130
};

struct cli_option {
    const char *name; /* NULL ends the list */
    const char *arg;  /* "FILE"; NULL = a flag; "TEXT..." = may be repeated */
    const char *help;
};

enum {
    CLI_OPTIONS_MAX = 24,
    CLI_GLOBALS_MAX = 16,
    CLI_REPEATS_MAX = 128,
    CLI_IDS_MAX = 1000,
    CLI_EXAMPLES_MAX = 3,
    CLI_EXITS_MAX = 8
};

/* A command line as it is typed in a shell, and what it does. */
struct cli_example {
    const char *command;
    const char *what;
};

struct cli;

/* A row of the table of verbs (usage/): help, completion and the man pages come from it. */
struct cli_verb {
    const char *name;  /* NULL ends the list */
    const char *args;  /* "[GOAL]"; NULL = none */
    const char *brief; /* one line */
    /* More, for its --help; may be NULL. A line is a paragraph; one that begins with a space is
     * printed as it stands. */
    const char *text;
    const struct cli_option *options; /* NULL = only the global ones */
    const char *forms; /* more choices of --output, "dot|svg"; the verb reads them; may be NULL */
    struct cli_example examples[CLI_EXAMPLES_MAX]; /* at least one */
    /* The exit codes besides those of every verb: CLI_OK, CLI_INTERNAL, CLI_USAGE. */
    unsigned char exits[CLI_EXITS_MAX];
    int args_min, args_max; /* -1 = any number */
    /* Why it works only on the daemon's own host, "it starts a daemon"; NULL = it works from any.
     */
    const char *local;
    bool paged;      /* a pager shows its text on a terminal, unless it follows something */
    bool into_steps; /* PLAN_ID/STEP_ID is the child plan that does the step */
    enum cli_exit (*run)(struct cli *cli);
};

/* One value of an option that may be repeated. */
struct cli_repeat {
    int option; /* its index in verb->options */
    const char *value;
};

struct cli {
    const struct cli_verb *verb;
    const char *values[CLI_OPTIONS_MAX]; /* by index in verb->options; "" for a flag that is set */
    const char *global[CLI_GLOBALS_MAX]; /* by index in cli_global_options */
    struct cli_repeat repeats[CLI_REPEATS_MAX]; /* in the order of the command line */
    int n_repeats;
    int argc; /* the arguments after the options */
    char **argv;
    bool json;
    bool color;
    struct bt_client *client; /* NULL until cli_connect */
    uint32_t call_ms;         /* what a request may take; 0 = 10 s. --timeout shortens it */
    char *ids[CLI_IDS_MAX];   /* in the place of short names; owned */
    int n_ids;
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
/* The same, and days without end: "90d". Prints the error and returns false. */
bool cli_age(const char *text, const char *what, uint64_t *ret_ms);
/* How long before `now` ("5m"), or a time ("14:30" of today, "2026-01-31 14:30"; with Z in UTC,
 * else local); both in milliseconds since 1970. Prints the error and returns false. */
bool cli_moment(const char *text, const char *what, msec now, msec *ret);
/* Whether the text is UTF-8. Prints the error and returns false. */
bool cli_is_text(const char *text, const char *what);
/* A number >= 0. Prints the error and returns false. */
bool cli_number(const char *text, const char *what, uint64_t *ret);

/* ---- errors.c ---- */

/*
 * "baton: ..." and a newline on stderr; control characters are replaced. With --json the error is
 * kept, and cli_errors_end prints it on stdout: {code, message, ...} as on the wire. A second one
 * is a second line of the message. An error after the data of the verb goes to stderr, too.
 */
void cli_error(const char *fmt, ...) BT_PRINTF(1, 2);
/* The same with what to do, after "; ": the member `hint`. */
void cli_error_hint(const char *hint, const char *fmt, ...) BT_PRINTF(2, 3);
/* Text on stderr without the name and the newline. With --json, after an error: its hint. */
void cli_note(const char *fmt, ...) BT_PRINTF(1, 2);
/* Prints the error and returns its exit code. */
enum cli_exit cli_fail(const struct bt_error *err);
/* Keeps the error of an answer as it is, with --json. Takes it. */
void cli_error_keep(struct cJSON *error);
/* Errors are about one of several plans, and name it; borrowed. NULL = about the only one. */
void cli_errors_about(const char *plan_id);
/* Whose errors they are: advice to start a daemon has the options that belong to it. Borrowed;
 * NULL = not known. */
void cli_errors_of(const struct cli *cli);
/* Errors are kept for stdout, in the form of --output. */
void cli_errors_as_json(bool on);
/* Prints what is kept: on stdout when the verb failed and has printed no data, else on stderr.
 * `code` names an error without a code of its own. */
void cli_errors_end(enum cli_exit code);
/* Whether an error is kept. */
bool cli_has_error(void);
enum cli_exit cli_exit_of(enum bt_code code);
/* The exit code of a plan's status ("completed", "planned", "failed", "cancelled", "waiting") and
 * outcome
 * ("success", "partial", "failed"; "" = none yet). */
enum cli_exit cli_exit_of_plan(const char *status, const char *outcome);
/* Prints that the plan is partial, for CLI_PARTIAL. Returns the code, or CLI_OK instead of
 * CLI_PARTIAL with --allow-partial. */
enum cli_exit cli_report_partial(const struct cli *cli, enum cli_exit code, const char *plan_id);
#endif
