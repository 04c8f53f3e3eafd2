/*
 * What the command line accepts: the table of verbs, how a command line is read, help. The table is
 * the one source of help, completion and the man pages (`baton help --json` prints it). One thread.
 */
#ifndef CLI_USAGE_H
#define CLI_USAGE_H

#include "protocol/base/str.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/form.h"

/* Verbs that people use for one purpose. */
struct usage_group {
    const char *title; /* NULL ends the list */
    const struct cli_verb *verbs;
};

/* Every verb, in the order of the help. */
extern const struct usage_group usage_groups[];

/*
 * A short option. An option has the letter of its long name in every verb, so one letter has one
 * meaning: that of its rows here. No verb has two options of one letter.
 */
struct usage_letter {
    char letter;
    const char *option;  /* the long name; NULL ends the list */
    const char *meaning; /* for the page of the letters */
};

extern const struct usage_letter usage_letters[];

struct usage_exit {
    enum cli_exit code;
    const char *meaning; /* NULL ends the list */
};

/* Every exit code, in ascending order. */
extern const struct usage_exit usage_exits[];
const char *usage_exit_meaning(enum cli_exit code);

/* ---- groups.c ---- */

/* The letter of an option by its long name; 0 = none. */
char usage_letter_of(const char *option);
/* The row of a verb; NULL when there is none. */
const struct cli_verb *usage_find(const char *name);
/* The verb after v in the order of the help, the first one for NULL; NULL after the last one. */
const struct cli_verb *usage_next(const struct cli_verb *v);

/* ---- foreign.c ---- */

/* What people type who know other tools. */
struct usage_foreign {
    const char *word; /* NULL ends the list */
    const char *hint;
};

extern const struct usage_foreign usage_foreign[];
/* What does the same as that verb of another tool; NULL = it is none. */
const char *usage_foreign_hint(const char *word);
/* The same for an option that the verb does not have: "-d", "format"; verb NULL = before the verb.
 */
const char *usage_foreign_option(const char *verb, const char *word);

/* ---- read.c ---- */

/*
 * Reads a command line into *cli: global options, the verb, its options and arguments. Without a
 * verb cli->verb is NULL. The arguments of argv are permuted. Prints the error and returns false.
 */
bool usage_read(struct cli *cli, int argc, char **argv);
/* Whether the number of arguments fits the verb. Prints the error and returns false. */
bool usage_check_arguments(const struct cli *cli);
/* The form that a command line asks for, which may be wrong otherwise: that of its errors. */
enum cli_form usage_wanted_form(int argc, char **argv);
/* The form of --output and --json. Prints the error and returns false. */
bool usage_read_form(const struct cli *cli, enum cli_form *ret);
/* Prints that there is no verb of that name, and the one that was meant. */
void usage_report_unknown(const char *name);

/* ---- arguments.c ---- */

typedef void (*usage_word_fn)(struct str word, void *self);
/* Passes each word of the row that the argument at place i of argc can be: a kind such as PLAN_ID,
 * choices such as a|b. argv has the arguments before it. */
void usage_words_at(const struct cli_verb *v, int i, int argc, char *const *argv, usage_word_fn fn,
                    void *self);
/*
 * Puts ids in the place of short names (common/ids.h): of arguments PLAN_ID, REVIEW_ID and
 * SESSION_ID, and of options SESSION_ID. Asks the daemon only about short names. Prints the error.
 */
enum cli_exit usage_resolve_ids(struct cli *cli);
void usage_free_ids(struct cli *cli);

/* ---- help.c ---- */

/* Whether the verb can end with the code. */
bool usage_has_exit(const struct cli_verb *v, enum cli_exit code);
/* Prints the list of verbs (v NULL), or the help of one; with --json the rows of the table. */
void usage_show(struct cli *cli, const struct cli_verb *v);

enum cli_exit verb_help(struct cli *cli);
enum cli_exit verb_version(struct cli *cli);

/* ---- candidates.c ---- */

struct usage_asking {
    struct cli *cli;
    const char *prefix; /* what is typed of the word */
    const char *lead;   /* "--output=" before it; "" = nothing */
    char *const *args;  /* the arguments before it */
    int n_args;
};

/* Prints one candidate when it begins with the prefix, and a tab with its meaning. */
void usage_offer(const struct usage_asking *a, const char *word, const char *meaning);
/* Prints what a word of the table (PLAN_ID, FILE, a|b) can be. Files are ":files" or ":dirs": the
 * shell lists them. Asks the daemon where it must, and prints nothing without an answer. */
void usage_offer_kind(struct str word, void *asking);

/* ---- completion.c ---- */

enum cli_exit verb_completion(struct cli *cli);

/* ---- the rows of the groups: rows_*.c ---- */

extern const struct cli_verb daemon_verbs[];
extern const struct cli_verb run_verbs[];
extern const struct cli_verb schedule_verbs[];
extern const struct cli_verb watch_verbs[];
extern const struct cli_verb decide_verbs[];
extern const struct cli_verb change_verbs[];
extern const struct cli_verb storage_verbs[];
extern const struct cli_verb remote_verbs[];
extern const struct cli_verb help_verbs[];
#endif
