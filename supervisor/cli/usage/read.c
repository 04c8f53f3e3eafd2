/* Reads a command line: global options, the verb, its options and arguments. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "protocol/base/buf.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/usage/usage.h"

enum {
    VERB_BASE = 256, /* values of getopt_long: above every letter */
    GLOBAL_BASE = 512,
    ALL_MAX = CLI_OPTIONS_MAX + CLI_GLOBALS_MAX + 1, /* and --version */
    VERBS_MAX = 128,
    HINT_MAX = 192
};

static int count_options(const struct cli_option *o)
{
    int n = 0;
    while (o != NULL && o[n].name != NULL) {
        n++;
    }
    return n;
}

/* "did you mean '--limit'? see: baton status --help"; verb NULL or "" = of Baton. */
static const char *hint(const char *word, const char *const *names, const char *dashes,
                        const struct cli_verb *verb, char *text, size_t cap)
{
    const char *near = names != NULL ? cli_did_you_mean(word, names) : NULL;

    (void)snprintf(text, cap, "%s%s%s%ssee: baton %s%s%s", near != NULL ? "did you mean '" : "",
                   near != NULL ? dashes : "", near != NULL ? near : "", near != NULL ? "'? " : "",
                   verb != NULL ? verb->name : "", verb != NULL ? " " : "",
                   verb != NULL || dashes[0] != 0 ? "--help" : "help");
    return text;
}

void usage_report_unknown(const char *name)
{
    const struct cli_verb *v = NULL;
    const char *names[VERBS_MAX + 1] = {NULL};
    char text[HINT_MAX];

    if (usage_foreign_hint(name) != NULL) {
        cli_error_hint(usage_foreign_hint(name), "unknown verb '%s'", name);
        return;
    }
    for (int n = 0; (v = usage_next(v)) != NULL && n < VERBS_MAX; n++) {
        names[n] = v->name;
    }
    cli_error_hint(hint(name, names, "", NULL, text, sizeof text), "unknown verb '%s'", name);
}

/* A verb that has the option; NULL = none. */
static const struct cli_verb *verb_with(const char *option)
{
    const struct cli_verb *v = NULL;

    while ((v = usage_next(v)) != NULL) {
        for (int i = 0; i < count_options(v->options); i++) {
            if (strcmp(v->options[i].name, option) == 0) {
                return v;
            }
        }
    }
    return NULL;
}

/* verb NULL: the option stands before the verb. */
static void report_bad_option(const struct cli_verb *verb, const char *given)
{
    const struct cli_option *own = verb != NULL ? verb->options : NULL;
    const char *names[ALL_MAX + 1] = {NULL};
    const char *own_hint;
    char text[HINT_MAX];
    char word[64];
    int n = 0;

    for (int i = 0; i < count_options(own); i++) {
        names[n++] = own[i].name;
    }
    for (int i = 0; i < count_options(cli_global_options); i++) {
        names[n++] = cli_global_options[i].name;
    }
    given += strspn(given, "-") == 1 ? 0 : strspn(given, "-");
    (void)snprintf(word, sizeof word, "%.*s", (int)strcspn(given, "="), given);
    if (verb == NULL && verb_with(word) != NULL) {
        (void)snprintf(text, sizeof text, "it comes after it: baton %s --%s", verb_with(word)->name,
                       word);
        cli_error_hint(text, "option '--%s' belongs to a verb", word);
        return;
    }
    own_hint = usage_foreign_option(verb != NULL ? verb->name : NULL, word);
    cli_error_hint(own_hint != NULL ? own_hint : hint(word, names, "--", verb, text, sizeof text),
                   "%s%sbad option '%s%s'", verb != NULL ? verb->name : "",
                   verb != NULL ? ": " : "", word[0] == '-' ? "" : "--", word);
}

/* letters has room for the letters of ALL_MAX options. */
static void add_letter(char *letters, char letter, bool has_value)
{
    const size_t n = strlen(letters);

    if (letter != 0) {
        letters[n] = letter;
        letters[n + 1] = has_value ? ':' : 0;
        letters[n + 2] = 0;
    }
}

/* The options of getopt_long, and the letters that stand for them. */
static void fill_options(struct option *out, char *letters, const struct cli_option *from, int base)
{
    for (int i = 0; from != NULL && from[i].name != NULL; i++) {
        const bool has_value = from[i].arg != NULL;
        out[i] = (struct option){from[i].name, has_value ? required_argument : no_argument, NULL,
                                 base + i};
        add_letter(letters, usage_letter_of(from[i].name), has_value);
    }
}

/* The value of getopt_long for what it returned: a letter stands for its long option. */
static int long_option(const struct option *options, int opt)
{
    for (int i = 0; opt < VERB_BASE && options[i].name != NULL; i++) {
        if (usage_letter_of(options[i].name) == opt) {
            return options[i].val;
        }
    }
    return opt;
}

/* Prints the error and returns false. */
static bool take_value(struct cli *cli, int option, const char *value)
{
    const char *arg = cli->verb->options[option].arg;

    cli->values[option] = value != NULL ? value : "";
    if (arg == NULL || strstr(arg, "...") == NULL) {
        return true;
    }
    if (cli->n_repeats == CLI_REPEATS_MAX) {
        cli_error("%s: --%s and its like at most %d times", cli->verb->name,
                  cli->verb->options[option].name, CLI_REPEATS_MAX);
        return false;
    }
    cli->repeats[cli->n_repeats++] = (struct cli_repeat){option, cli->values[option]};
    return true;
}

static void report_no_value(const struct cli_verb *verb, const char *option)
{
    char text[HINT_MAX];

    cli_error_hint(hint("", NULL, "--", verb, text, sizeof text), "%s%s%s needs a value",
                   verb != NULL ? verb->name : "", verb != NULL ? ": " : "", option);
}

/* A text may be empty; a path, a name, a number or a choice may not. Prints the error. */
static bool check_value(const struct cli_verb *verb, const struct cli_option *o, const char *value)
{
    if (o->arg == NULL || value[0] != 0 || strncmp(o->arg, "TEXT", 4) == 0) {
        return true;
    }
    cli_error_hint("a variable without a value?", "%s%s--%s: expected %.*s, got ''",
                   verb != NULL ? verb->name : "", verb != NULL ? ": " : "", o->name,
                   (int)strcspn(o->arg, "."), o->arg);
    return false;
}

/* Takes one answer of getopt_long. Prints the error and returns false. */
static bool take_option(struct cli *cli, int opt, char **argv)
{
    const struct cli_option *o = opt >= GLOBAL_BASE ? &cli_global_options[opt - GLOBAL_BASE]
                                 : opt >= VERB_BASE ? &cli->verb->options[opt - VERB_BASE]
                                                    : NULL;

    if (o != NULL && !check_value(cli->verb, o, optarg != NULL ? optarg : "")) {
        return false;
    }
    if (opt >= GLOBAL_BASE) {
        cli->global[opt - GLOBAL_BASE] = optarg != NULL ? optarg : "";
        return true;
    }
    if (opt >= VERB_BASE) {
        return take_value(cli, opt - VERB_BASE, optarg);
    }
    if (opt == ':') {
        report_no_value(cli->verb, argv[optind - 1]);
    } else {
        const char flag[3] = {'-', (char)optopt, 0};
        report_bad_option(cli->verb, optopt > 0 && optopt < VERB_BASE ? flag : argv[optind - 1]);
    }
    return false;
}

/* Reads options up to the verb (verb NULL), or all those after it. Prints the error and returns
 * false. */
static bool read_options(struct cli *cli, int argc, char **argv)
{
    const struct cli_option *own = cli->verb != NULL ? cli->verb->options : NULL;
    struct option options[ALL_MAX + 1] = {{0}};
    char letters[2 * ALL_MAX + 3] = "+:"; /* options end at the verb */
    int opt;

    if (cli->verb != NULL) {
        (void)snprintf(letters, sizeof letters, ":");
    }
    fill_options(options, letters, own, VERB_BASE);
    fill_options(options + count_options(own), letters, cli_global_options, GLOBAL_BASE);
    opterr = 0;
    optind = 0; /* glibc: begin anew */
    while ((opt = getopt_long(argc, argv, letters, options, NULL)) != -1) {
        if (!take_option(cli, long_option(options, opt), argv)) {
            return false;
        }
    }
    return true;
}

bool usage_read(struct cli *cli, int argc, char **argv)
{
    int first;

    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        cli->verb = usage_find("version");
        return true;
    }
    if (!read_options(cli, argc, argv)) {
        return false;
    }
    first = optind;
    if (first == argc) {
        return true;
    }
    cli->verb = usage_find(argv[first]);
    if (cli->verb == NULL) {
        usage_report_unknown(argv[first]);
        return false;
    }
    if (!read_options(cli, argc - first, argv + first)) {
        return false;
    }
    cli->argc = argc - first - optind;
    cli->argv = argv + first + optind;
    return true;
}

bool usage_check_arguments(const struct cli *cli)
{
    const struct cli_verb *v = cli->verb;
    char text[HINT_MAX];

    if (cli->argc >= v->args_min && (v->args_max < 0 || cli->argc <= v->args_max)) {
        return true;
    }
    (void)hint("", NULL, "--", v, text, sizeof text);
    if (v->args_max == 0) {
        cli_error_hint(text, "%s takes no arguments, got '%s'", v->name, cli->argv[0]);
    } else {
        cli_error_hint(text, "usage: baton %s %s", v->name, v->args);
    }
    return false;
}

/* The form of --output, or of an abbreviation or letter of it; -1 = none. */
static int form_of(const char *arg, const char *next)
{
    const char *value = strncmp(arg, "--output=", 9) == 0           ? arg + 9
                        : strncmp(arg, "-o", 2) == 0 && arg[2] != 0 ? arg + 2
                        : next != NULL && (strcmp(arg, "-o") == 0 || strcmp(arg, "--output") == 0)
                            ? next
                            : NULL;

    return strcmp(arg, "--json") == 0 ? CLI_JSON : value != NULL ? cli_form_find(value) : -1;
}

enum cli_form usage_wanted_form(int argc, char **argv)
{
    int form = CLI_TABLE;

    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const int found = form_of(argv[i], argv[i + 1]);
        form = found >= 0 ? found : form;
    }
    return (enum cli_form)form;
}

/* Whether the name is one of the choices "a|b". */
static bool is_choice(const char *choices, const char *name)
{
    const size_t n = strlen(name);

    for (const char *at = choices; at != NULL; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, name, n) == 0 && (at[n] == '|' || at[n] == 0)) {
            return true;
        }
    }
    return false;
}

/* The forms of the verb "a|b" stand before those of every verb: "expected a, b, json, ...". */
static void report_form(const char *more, const char *name)
{
    struct buf forms;

    buf_init(&forms, 256);
    for (; more != NULL && *more != 0; more++) {
        buf_add_cstr(&forms, *more == '|' ? ", " : (char[]){*more, 0});
    }
    cli_error("--output: expected %s%s%s, got '%s'", buf_cstr(&forms), more != NULL ? ", " : "",
              cli_form_names, name);
    buf_done(&forms);
}

bool usage_read_form(const struct cli *cli, enum cli_form *ret)
{
    const char *name = cli_value(cli, "output");
    const char *more = cli->verb != NULL ? cli->verb->forms : NULL;
    const int form = name == NULL ? -1 : is_choice(more, name) ? CLI_TABLE : cli_form_find(name);

    *ret = cli_flag(cli, "json") ? CLI_JSON : CLI_TABLE;
    if (name != NULL && form < 0) {
        report_form(more, name);
        return false;
    }
    if (name != NULL && cli_flag(cli, "json") && form != CLI_JSON) {
        cli_error("--json and --output %s exclude each other", name);
        return false;
    }
    *ret = form >= 0 ? (enum cli_form)form : *ret;
    return true;
}
