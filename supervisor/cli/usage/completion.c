/* completion: the scripts of the shells, and the words that they ask for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/cli/usage/usage.h"

enum { CALL_MS = 400, ARGS_MAX = 256, OPTION_MAX = 64 };

/* The command line as far as it is typed. */
struct typed {
    const struct cli_verb *verb;      /* NULL = none yet */
    const struct cli_option *pending; /* the option whose value is next; NULL = none */
    const char *state, *context;
    char *args[ARGS_MAX];
    int n_args;
    bool only_args; /* after -- */
};

static const struct cli_option *find(const struct cli_option *o, const char *name, size_t n,
                                     char letter)
{
    for (; o != NULL && o->name != NULL; o++) {
        if (letter != 0 ? usage_letter_of(o->name) == letter
                        : strlen(o->name) == n && strncmp(o->name, name, n) == 0) {
            return o;
        }
    }
    return NULL;
}

/* The option of a word: of --name, --name=value, or of the last letter of -abc. */
static const struct cli_option *option_of(const struct typed *t, const char *word)
{
    const bool is_long = strncmp(word, "--", 2) == 0;
    const char *name = word + 2;
    const size_t n = is_long ? strcspn(name, "=") : 0;
    const char letter = (char)(is_long ? 0 : word[strlen(word) - 1]);
    const struct cli_option *own = t->verb != NULL ? find(t->verb->options, name, n, letter) : NULL;

    return own != NULL ? own : find(cli_global_options, name, n, letter);
}

static void take_value(struct typed *t, const struct cli_option *o, const char *value)
{
    if (strcmp(o->name, "state") == 0) {
        t->state = value;
    } else if (strcmp(o->name, "context") == 0) {
        t->context = value;
    }
}

/* Takes a word before the one that is completed. False when nothing can follow it. */
static bool take(struct typed *t, char *word)
{
    const char *value = strchr(word, '=');
    const struct cli_option *o;

    if (t->pending != NULL) {
        if (strcmp(word, "=") != 0) { /* bash: a word of its own */
            take_value(t, t->pending, word);
            t->pending = NULL;
        }
    } else if (!t->only_args && strcmp(word, "--") == 0) {
        t->only_args = true;
    } else if (!t->only_args && word[0] == '-' && word[1] != 0) {
        o = option_of(t, word);
        if (o != NULL && o->arg != NULL && value != NULL) {
            take_value(t, o, value + 1);
        } else if (o != NULL && o->arg != NULL) {
            t->pending = o;
        }
    } else if (t->verb == NULL) {
        t->verb = usage_find(word);
        return t->verb != NULL;
    } else if (t->n_args < ARGS_MAX) {
        t->args[t->n_args++] = word;
    }
    return true;
}

static void offer_options(const struct usage_asking *a, const struct cli_option *o)
{
    for (; o != NULL && o->name != NULL; o++) {
        char word[OPTION_MAX];
        (void)snprintf(word, sizeof word, "--%s", o->name);
        usage_offer(a, word, o->help);
    }
}

static void offer_value(struct usage_asking *a, const struct cli_option *o,
                        const struct cli_verb *verb)
{
    if (verb != NULL && verb->forms != NULL && strcmp(o->name, "output") == 0) {
        usage_offer_kind(str_from(verb->forms), a);
    }
    usage_offer_kind((struct str){o->arg, strcspn(o->arg, ".")}, a);
}

/* Prints what the word can be. */
static void offer(const struct typed *t, struct usage_asking *a, const char *word)
{
    char lead[OPTION_MAX];
    const char *value = strchr(word, '=');
    const struct cli_option *o;

    if (t->pending != NULL) {
        a->prefix = strcmp(word, "=") == 0 ? "" : word;
        offer_value(a, t->pending, t->verb);
    } else if (!t->only_args && word[0] == '-' && value != NULL) {
        o = option_of(t, word);
        (void)snprintf(lead, sizeof lead, "%.*s", (int)(value + 1 - word), word);
        a->prefix = value + 1;
        a->lead = lead;
        if (o != NULL && o->arg != NULL) {
            offer_value(a, o, t->verb);
        }
        a->lead = "";
    } else if (!t->only_args && word[0] == '-') {
        offer_options(a, t->verb != NULL ? t->verb->options : NULL);
        offer_options(a, cli_global_options);
    } else if (t->verb == NULL) {
        usage_offer_kind(STR_LIT("VERB"), a);
    } else {
        usage_words_at(t->verb, t->n_args, t->n_args + 1, t->args, usage_offer_kind, a);
    }
}

static void set_global(struct cli *cli, const char *name, const char *value)
{
    for (int i = 0; cli_global_options[i].name != NULL; i++) {
        if (strcmp(cli_global_options[i].name, name) == 0 && value != NULL) {
            cli->global[i] = value;
        }
    }
}

/* The words of the command line, the last one as far as it is typed. */
static void offer_words(struct cli *cli, char **words, int n)
{
    struct typed t = {0};
    struct usage_asking a = {.cli = cli, .lead = "", .args = t.args};
    bool possible = true;

    if (freopen("/dev/null", "w", stderr) == NULL) { /* nothing is for people */
        return;
    }
    cli->json = false;
    cli->call_ms = CALL_MS;
    for (int i = 0; i + 1 < n && possible; i++) {
        possible = take(&t, words[i]);
    }
    if (!possible) {
        return;
    }
    set_global(cli, "state", t.state);
    set_global(cli, "context", t.context);
    a.n_args = t.n_args;
    a.prefix = n > 0 ? words[n - 1] : "";
    offer(&t, &a, a.prefix);
}

static const char bash_script[] =
    "_baton() {\n"
    "    local line cur=${COMP_WORDS[COMP_CWORD]}\n"
    "    [ \"$cur\" = = ] && cur=\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        case $line in\n"
    "        :files | :dirs)\n"
    "            compopt -o filenames 2>/dev/null\n"
    "            while IFS= read -r line; do\n"
    "                COMPREPLY+=(\"$line\")\n"
    "            done < <(compgen \"$([ \"$line\" = :dirs ] && echo -d || echo -f)\" -- \"$cur\")\n"
    "            ;;\n"
    "        *) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
    "        esac\n"
    "    done < <(\"${COMP_WORDS[0]/#\\~/$HOME}\" completion words -- \\\n"
    "        \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _baton baton\n";

static const char zsh_script[] =
    "#compdef baton\n"
    "_baton() {\n"
    "    local line tab=$'\\t'\n"
    "    local -a lines described\n"
    "    lines=(\"${(@f)$(${(Q)words[1]} completion words -- \"${(@Q)words[2,CURRENT]}\" "
    "2>/dev/null)}\")\n"
    "    for line in $lines; do\n"
    "        case $line in\n"
    "        :files) _files ;;\n"
    "        :dirs) _files -/ ;;\n"
    "        *) described+=(\"${${line%%$tab*}//:/\\\\:}:${line#*$tab}\") ;;\n"
    "        esac\n"
    "    done\n"
    "    (( $#described )) && _describe -V baton described\n"
    "}\n"
    "if [ \"$funcstack[1]\" = _baton ]; then\n"
    "    _baton \"$@\"\n"
    "else\n"
    "    compdef _baton baton\n"
    "fi\n";

static const char fish_script[] =
    "function __baton_words\n"
    "    set -l words (commandline -opc)\n"
    "    $words[1] completion words -- $words[2..-1] (commandline -ct) 2>/dev/null\n"
    "end\n"
    "complete -c baton -f -a '(__baton_words | string match -v -r \"^:\")'\n"
    "complete -c baton -n '__baton_words | string match -q -r \"^:\"' -F\n";

enum cli_exit verb_completion(struct cli *cli)
{
    const char *shell = cli->argv[0];

    if (strcmp(shell, "words") == 0) {
        offer_words(cli, cli->argv + 1, cli->argc - 1);
        return CLI_OK;
    }
    if (cli->argc > 1) {
        cli_error("completion: expected one shell, got '%s', too", cli->argv[1]);
        return CLI_USAGE;
    }
    if (strcmp(shell, "bash") == 0) {
        (void)fputs(bash_script, stdout);
    } else if (strcmp(shell, "zsh") == 0) {
        (void)fputs(zsh_script, stdout);
    } else if (strcmp(shell, "fish") == 0) {
        (void)fputs(fish_script, stdout);
    } else {
        cli_error("completion: expected bash, zsh or fish, got '%s'", shell);
        return CLI_USAGE;
    }
    return CLI_OK;
}
