/* baton: finds the verb, reads its options, runs it. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"

enum { OPTION_BASE = 256, GLOBAL_BASE = 512 };

static int count_options(const struct cli_option *o)
{
    int n = 0;
    while (o != NULL && o[n].name != NULL) {
        n++;
    }
    return n;
}

static void print_options(const struct cli_option *o)
{
    for (int i = 0; o != NULL && o[i].name != NULL; i++) {
        char left[48];
        (void)snprintf(left, sizeof left, "--%s%s%s", o[i].name, o[i].arg != NULL ? " " : "",
                       o[i].arg != NULL ? o[i].arg : "");
        (void)printf("  %-26s %s\n", left, o[i].help);
    }
}

static void print_verb_help(const struct cli_verb *v)
{
    (void)printf("usage: baton %s%s%s [options]\n\n%s\n", v->name, v->args[0] != 0 ? " " : "",
                 v->args, v->brief);
    if (v->text != NULL) {
        (void)printf("\n%s", v->text);
    }
    (void)printf("\nOptions:\n");
    print_options(v->options);
    print_options(cli_global_options);
}

static void print_help(void)
{
    (void)printf("usage: baton VERB [arguments] [options]\n\nA multi-agent supervisor: plans, "
                 "agents, handoffs, events.\n\nVerbs:\n");
    for (const struct cli_verb *v = cli_verbs; v->name != NULL; v++) {
        (void)printf("  %-12s %s\n", v->name, v->brief);
    }
    (void)printf("\nOptions of every verb:\n");
    print_options(cli_global_options);
    (void)printf("\nExit codes: 0 plan succeeded (or done); 1 internal or I/O; 2 usage or invalid "
                 "input; 3 plan failed;\n"
                 "4 needs a human; 5 cancelled; 6 daemon unreachable; 7 not found; 124 timeout; "
                 "130 interrupted.\n"
                 "`baton VERB --help` says more.\n");
}

static const struct cli_verb *find_verb(const char *name)
{
    const char *names[64];
    const char *near;
    int n = 0;

    for (const struct cli_verb *v = cli_verbs; v->name != NULL && n < 63; v++) {
        if (strcmp(v->name, name) == 0) {
            return v;
        }
        names[n++] = v->name;
    }
    names[n] = NULL;
    near = cli_did_you_mean(name, names);
    cli_error("unknown verb '%s'%s%s%s; see: baton --help", name,
              near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
              near != NULL ? "'?" : "");
    return NULL;
}

static void unknown_option(const struct cli_verb *verb, const char *given)
{
    const char *names[CLI_OPTIONS_MAX + 10];
    const char *near;
    char word[64];
    int n = 0;

    for (int i = 0; i < count_options(verb->options); i++) {
        names[n++] = verb->options[i].name;
    }
    for (int i = 0; i < count_options(cli_global_options); i++) {
        names[n++] = cli_global_options[i].name;
    }
    names[n] = NULL;
    (void)snprintf(word, sizeof word, "%.*s",
                   (int)strcspn(given + (strncmp(given, "--", 2) == 0 ? 2 : 0), "="),
                   given + (strncmp(given, "--", 2) == 0 ? 2 : 0));
    near = cli_did_you_mean(word, names);
    cli_error("%s: bad option '%s'%s%s%s; see: baton %s --help", verb->name, given,
              near != NULL ? "; did you mean '--" : "", near != NULL ? near : "",
              near != NULL ? "'?" : "", verb->name);
}

static void fill_options(struct option *out, const struct cli_option *from, int base)
{
    for (int i = 0; from != NULL && from[i].name != NULL; i++) {
        out[i] = (struct option){
            from[i].name, from[i].arg != NULL ? required_argument : no_argument, NULL, base + i};
    }
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

/* Prints the error and returns false. */
static bool read_options(struct cli *cli, int argc, char **argv)
{
    struct option options[CLI_OPTIONS_MAX + 10] = {{0}};
    int opt;

    fill_options(options, cli->verb->options, OPTION_BASE);
    fill_options(options + count_options(cli->verb->options), cli_global_options, GLOBAL_BASE);
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (opt >= GLOBAL_BASE) {
            cli->global[opt - GLOBAL_BASE] = optarg != NULL ? optarg : "";
        } else if (opt >= OPTION_BASE) {
            if (!take_value(cli, opt - OPTION_BASE, optarg)) {
                return false;
            }
        } else if (opt == ':') {
            cli_error("%s: %s needs a value; see: baton %s --help", cli->verb->name,
                      argv[optind - 1], cli->verb->name);
            return false;
        } else {
            char flag[3] = {'-', (char)optopt, 0};
            bool is_short = optopt > 0 && optopt < OPTION_BASE;
            unknown_option(cli->verb, is_short ? flag : argv[optind - 1]);
            return false;
        }
    }
    cli->argc = argc - optind;
    cli->argv = argv + optind;
    return true;
}

static bool wants_color(const struct cli *cli)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    return !cli_flag(cli, "no-color") && (no_color == NULL || no_color[0] == 0) &&
           isatty(STDERR_FILENO) && (term == NULL || strcmp(term, "dumb") != 0);
}

static enum cli_exit run_verb(struct cli *cli, int argc, char **argv)
{
    enum cli_exit code;

    if (!read_options(cli, argc, argv)) {
        return CLI_USAGE;
    }
    if (cli_flag(cli, "help")) {
        print_verb_help(cli->verb);
        return CLI_OK;
    }
    cli->json = cli_flag(cli, "json");
    cli->color = wants_color(cli);
    if (cli->argc < cli->verb->args_min ||
        (cli->verb->args_max >= 0 && cli->argc > cli->verb->args_max)) {
        cli_error("usage: baton %s %s; see: baton %s --help", cli->verb->name, cli->verb->args,
                  cli->verb->name);
        return CLI_USAGE;
    }
    code = cli->verb->run(cli);
    if (fflush(stdout) != 0 && code == CLI_OK) {
        code = CLI_INTERNAL;
    }
    return code;
}

int main(int argc, char **argv)
{
    struct cli cli = {0};
    enum cli_exit code;

    (void)signal(SIGPIPE, SIG_IGN);
    log_setup(LOG_ERR, NULL, NULL);
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help();
        return argc < 2 ? CLI_USAGE : CLI_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        (void)printf("baton %s\n", bt_version());
        return CLI_OK;
    }
    cli.verb = find_verb(argv[1]);
    code = cli.verb == NULL ? CLI_USAGE : run_verb(&cli, argc - 1, argv + 1);
    bt_client_close(cli.client);
    return (int)code;
}
