/*
 * The command line `baton`: one table of verbs, one file per group. A client of libbaton like any
 * other; knows the wire only through it. Data goes to stdout, everything else to stderr.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>

#include "baton/client.h"

struct cJSON;
struct problems;

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
    const char *arg;  /* "FILE"; NULL = a flag; "TEXT..." = may be given again and again */
    const char *help;
};

struct cli;

struct cli_verb {
    const char *name;
    const char *args;  /* "[GOAL]" */
    const char *brief; /* one line */
    const char *text;  /* more, for its --help; may be NULL */
    const struct cli_option *options;
    int args_min, args_max; /* -1 = any number */
    enum cli_exit (*run)(struct cli *cli);
};

enum { CLI_OPTIONS_MAX = 24, CLI_REPEATS_MAX = 128 };

/* One value of an option that may be given again and again. */
struct cli_repeat {
    int option; /* its place in verb->options */
    const char *value;
};

struct cli {
    const struct cli_verb *verb;
    const char
        *values[CLI_OPTIONS_MAX]; /* by position in verb->options; "" for a flag that was given */
    const char *global[8];        /* the same for the global options */
    struct cli_repeat repeats[CLI_REPEATS_MAX]; /* as they were given */
    int n_repeats;
    int argc; /* what is left behind the options */
    char **argv;
    bool json;
    bool color;
    struct bt_client *client; /* NULL until cli_connect */
};

/* Every verb, in the order of the help; ends with name NULL. */
extern const struct cli_verb cli_verbs[];
extern const struct cli_option cli_global_options[];

/* The value of an option of the verb or a global one; NULL when it was not given. */
const char *cli_value(const struct cli *cli, const char *name);
bool cli_flag(const struct cli *cli, const char *name);
/* The n-th value (from 0 on) of an option of the verb that may be given again; NULL behind the
 * last. */
const char *cli_nth_value(const struct cli *cli, const char *name, int n);
/* "90", "90s", "5m", "2h", "1d" or "250ms" as milliseconds; false after saying what is wrong. */
bool cli_duration(const char *text, const char *what, uint32_t *ret_ms);
/* Whether it is UTF-8; false after saying from where on it is not. */
bool cli_is_text(const char *text, const char *what);
/* A number >= 0; false after saying what is wrong. */
bool cli_number(const char *text, const char *what, uint64_t *ret);

/* Connects (once). CLI_OK, or the exit code after saying what is wrong. */
enum cli_exit cli_connect(struct cli *cli);
/* "baton: ..." and a newline on stderr, safe for a terminal. */
void cli_error(const char *fmt, ...) BT_PRINTF(1, 2);
/* The same without the name and the newline. */
void cli_note(const char *fmt, ...) BT_PRINTF(1, 2);
/* Says the error and returns the exit code that belongs to it. */
enum cli_exit cli_fail(const struct bt_error *err);
enum cli_exit cli_exit_of(enum bt_code code);
/* Says a refusal once and returns its exit code: as the list of problems, when it carries one (the
 * message only names the first), else as its message. With --json it goes to stdout, too. */
enum cli_exit cli_refused(struct cli *cli, const struct bt_error *err, const char *error_json);
/* Whether the refusal has a problem of the category. */
bool cli_has_problem(const char *error_json, const char *category);
/* Each of a list of problems, as the daemon gives it, on stderr. */
void cli_print_problems(const struct cJSON *problems);
/* The same of what was checked here; with --json {valid, problems} goes to stdout. */
void cli_print_found(struct cli *cli, const struct problems *found, bool valid);
/* A request whose answer is parsed; the caller frees *ret with cJSON_Delete. Says what went wrong.
 */
enum cli_exit cli_call(struct cli *cli, const char *type, struct cJSON *fields, struct cJSON **ret);
/* {name: value}; value NULL = {}. */
struct cJSON *cli_fields(const char *name, const char *value);
/* Adds the value of the option under `name`, when it was given. */
void cli_add_value(const struct cli *cli, const char *option, struct cJSON *fields,
                   const char *name);
/* The answer of plan.get with all the steps, however many pages it takes; free with cJSON_Delete.
 * Says what went wrong. */
enum cli_exit cli_plan_view(struct cli *cli, const char *plan_id, struct cJSON **ret);
/* The place of a step in a plan view: its id, of several revisions the one that counts, or its
 * number from 1 on. -1 after saying what is wrong. */
int cli_step_index(const struct cJSON *plan_view, const char *step);
/* Prints a JSON value on stdout, one line. */
void cli_print_json(const struct cJSON *value);

/* Members of a JSON object, with a fallback. */
const char *json_text(const struct cJSON *object, const char *name, const char *fallback);
double json_number(const struct cJSON *object, const char *name);

/* The state directory that this call is about; valid for ever. NULL after saying what is wrong. */
const char *cli_state_dir(const struct cli *cli);
/* The nearest of the candidates when it is near enough to be what was meant, else NULL. Ends with
 * NULL. */
const char *cli_did_you_mean(const char *word, const char *const *candidates);

/* Text of others on stdout: on a terminal without control characters, so that a result cannot move
 * the cursor. */
void cli_print_safe(const char *text);
/* Replaces control characters (C0 but newline and tab, C1) and those that turn the direction of
 * text, in place. */
void cli_scrub(char *text);
/* The same in every string of a tree. */
void cli_scrub_tree(struct cJSON *tree);
/* Colours: "" unless cli->color. */
const char *cli_color(const struct cli *cli, const char *status);
const char *cli_color_off(const struct cli *cli);
const char *cli_mark(const char *status);
/* "1.2 s", "350 ms" */
void cli_format_ms(double ms, char *ret, size_t cap);
/* Millionths of the currency: "1.50", "0.000012" */
void cli_format_micros(double micros, char *ret, size_t cap);
/* Copies as one line without control characters, cut at a whole character; `to` may be `from`. */
void cli_one_line(char *to, size_t cap, const char *from);
/* The same with "…" at the end of what was cut; cap > 4. */
void cli_cut_line(char *to, size_t cap, const char *from);

/* A whole file ("-" = stdin) of at most max bytes; free with free(). NULL after saying what is
 * wrong. */
char *cli_read_file(const char *path, size_t max, size_t *ret_len);
/* A plan file, YAML or JSON, as JSON text (free with cJSON_free()); a recipe is filled in from the
 * options inputs and input. NULL after saying what is wrong, with line and column. */
char *cli_read_plan(const struct cli *cli, const char *path);
/* The same of a recipe: a file, or the name of one in the folders of `baton recipes`. */
char *cli_read_recipe(const struct cli *cli, const char *name);
/* Any file, YAML or JSON; free with cJSON_Delete. NULL after saying what is wrong. */
struct cJSON *cli_read_tree(const char *path);
/* What was given as FILE|JSON: the file of that name, - = stdin, else JSON. NULL after saying what
 * is wrong. */
struct cJSON *cli_read_value(const char *text, const char *what);

/* What is different between two plans, each a file, a plan's id, or PLAN_ID@REVISION. */
enum cli_exit cli_plan_diff(struct cli *cli, const char *a, const char *b);

/* Says what to do to have agents; the second one only when the daemon has none. */
void cli_note_no_agents(void);
void cli_look_for_agents(struct bt_client *client);
/* There is no session of that id: says so, which one may be meant, and `more`. */
void cli_no_session(struct cli *cli, const char *id, const char *more);
/* How a plan's status ends its command. */
enum cli_exit cli_exit_of_plan(const char *status);
enum cli_exit verb_up(struct cli *cli);
enum cli_exit verb_down(struct cli *cli);
enum cli_exit verb_run(struct cli *cli);
enum cli_exit verb_plan(struct cli *cli);
enum cli_exit verb_status(struct cli *cli);
enum cli_exit verb_events(struct cli *cli);
enum cli_exit verb_agents(struct cli *cli);
enum cli_exit verb_result(struct cli *cli);
enum cli_exit verb_cancel(struct cli *cli);
enum cli_exit verb_reviews(struct cli *cli);
enum cli_exit verb_decide(struct cli *cli);
enum cli_exit verb_approve(struct cli *cli);
enum cli_exit verb_reject(struct cli *cli);
enum cli_exit verb_pause(struct cli *cli);
enum cli_exit verb_resume(struct cli *cli);
enum cli_exit verb_skip(struct cli *cli);
enum cli_exit verb_modify(struct cli *cli);
enum cli_exit verb_retry(struct cli *cli);
enum cli_exit verb_fork(struct cli *cli);
enum cli_exit verb_lint(struct cli *cli);
enum cli_exit verb_history(struct cli *cli);
enum cli_exit verb_stats(struct cli *cli);
enum cli_exit verb_top(struct cli *cli);
enum cli_exit verb_info(struct cli *cli);
enum cli_exit verb_config(struct cli *cli);
enum cli_exit verb_doctor(struct cli *cli);
enum cli_exit verb_completion(struct cli *cli);
enum cli_exit verb_cost(struct cli *cli);
enum cli_exit verb_recipes(struct cli *cli);
enum cli_exit verb_chat(struct cli *cli);
enum cli_exit verb_sessions(struct cli *cli);
#endif
