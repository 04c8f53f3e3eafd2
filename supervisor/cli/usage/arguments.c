/* What an argument is, by the words of its verb's row: PLAN_ID, FILE, a choice. Short names of
 * plans and sessions become ids. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/cli/common/ids.h"
#include "supervisor/cli/usage/usage.h"

/* The n bytes without the marks of what is optional or repeated. */
static struct str bare(const char *word, size_t n)
{
    struct str s = {word, n};

    while (s.len > 0 && s.ptr[0] == '[') {
        s = (struct str){s.ptr + 1, s.len - 1};
    }
    while (s.len > 0 && (s.ptr[s.len - 1] == ']' || s.ptr[s.len - 1] == '.')) {
        s.len--;
    }
    return s;
}

static bool is_literal(struct str word)
{
    return word.len > 0 && word.ptr[0] >= 'a' && word.ptr[0] <= 'z';
}

/* Whether one of the choices a|b is the text. */
static bool has_choice(struct str words, const char *text)
{
    const char *at = words.ptr;
    const char *end = words.ptr + words.len;

    while (at < end) {
        const char *bar = memchr(at, '|', (size_t)(end - at));
        const size_t n = (size_t)((bar != NULL ? bar : end) - at);
        if (n == strlen(text) && memcmp(at, text, n) == 0) {
            return true;
        }
        at += n + 1;
    }
    return false;
}

/* How many arguments a way to call the verb takes at most. */
static int places(const char *way, const char *end)
{
    int n = 0;

    for (; way < end && *way != '-'; n++) {
        const size_t len = strcspn(way, " ");
        if (len >= 3 && memmem(way, len, "...", 3) != NULL) {
            return INT_MAX;
        }
        way += len + (way[len] == ' ');
    }
    return n;
}

/*
 * The word for the argument at place i in one way to call the verb, which ends at `end`. Empty when
 * there is none, or when the words before it are others than in argv.
 */
static struct str word_at(const char *way, const char *end, int i, char *const *argv)
{
    struct str word = {"", 0};

    for (int k = 0; way < end; k++) {
        const size_t n = strcspn(way, " ");
        word = bare(way, n);
        if (word.len == 0 || word.ptr[0] == '-') {
            return (struct str){"", 0}; /* an option: what follows is its */
        }
        if (k == i || memmem(way, n, "...", 3) != NULL) {
            return word;
        }
        if (is_literal(word) && !has_choice(word, argv[k])) {
            return (struct str){"", 0};
        }
        way += n + 1;
    }
    return (struct str){"", 0};
}

void usage_words_at(const struct cli_verb *v, int i, int argc, char *const *argv, usage_word_fn fn,
                    void *self)
{
    const char *way = v->args;

    while (way != NULL && *way != 0) {
        const char *bar = strstr(way, " | ");
        const char *end = bar != NULL ? bar : way + strlen(way);
        const struct str word =
            places(way, end) >= argc ? word_at(way, end, i, argv) : (struct str){"", 0};
        if (word.len > 0) {
            fn(word, self);
        }
        way = bar != NULL ? bar + 3 : end;
    }
}

struct wanted {
    bool plan, session, step, agent, file;
    bool text;       /* it may be empty */
    struct str word; /* the first that is no choice; empty = none */
};

static void want(struct str word, void *self)
{
    struct wanted *w = self;

    w->plan = w->plan || has_choice(word, "PLAN_ID") || has_choice(word, "REVIEW_ID");
    w->session = w->session || has_choice(word, "SESSION_ID");
    w->step = w->step || has_choice(word, "STEP_ID");
    w->agent = w->agent || has_choice(word, "AGENT_ID");
    w->file = w->file || has_choice(word, "FILE");
    w->text =
        w->text || has_choice(word, "GOAL") || has_choice(word, "WORD") || has_choice(word, "VERB");
    w->word = w->word.len > 0 || is_literal(word) ? w->word : word;
}

/* "", or "/STEP" of an empty plan. */
static bool is_empty_id(const struct wanted *w, const char *text)
{
    return text[0] == 0 ? w->plan || w->session || w->step || w->agent
                        : text[0] == '/' && w->plan && !w->file;
}

/* Replaces the short name of a plan or a session. Prints the error. */
static enum cli_exit resolve(struct cli *cli, const struct wanted *w, const char **text)
{
    char id[CLI_ID_MAX];
    char child[CLI_ID_MAX];
    char *copy;
    enum cli_exit code = CLI_OK;

    if (is_empty_id(w, *text)) {
        cli_error_hint(w->agent     ? "see: baton agents"
                       : w->session ? "`last` is the newest session"
                       : w->step    ? "see: baton status PLAN_ID"
                                    : "`last` is the newest plan",
                       "the id is empty; a variable without a value?");
        return CLI_USAGE;
    }
    if ((!w->plan && !w->session) || (w->step && !cli_names_plan(*text)) ||
        strlen(*text) >= sizeof id) {
        return CLI_OK;
    }
    code = w->plan ? cli_plan_id(cli, *text, id) : cli_session_id(cli, *text, id);
    if (code == CLI_OK && w->plan && cli->verb->into_steps && cli_names_plan(id) &&
        strchr(id, '/') != NULL) {
        code = cli_child_id(cli, id, child);
        (void)snprintf(id, sizeof id, "%s", child);
    }
    if (code != CLI_OK || strcmp(id, *text) == 0) {
        return code;
    }
    copy = strdup(id);
    if (copy == NULL || cli->n_ids == CLI_IDS_MAX) {
        free(copy);
        cli_error("%s", copy == NULL ? "out of memory" : "too many short ids");
        return CLI_INTERNAL;
    }
    cli->ids[cli->n_ids++] = copy;
    *text = copy;
    return CLI_OK;
}

enum cli_exit usage_resolve_ids(struct cli *cli)
{
    const struct cli_option *o = cli->verb->options;
    enum cli_exit code = CLI_OK;

    for (int i = 0; i < cli->argc && code == CLI_OK; i++) {
        struct wanted w = {0};
        const char *text = cli->argv[i];
        usage_words_at(cli->verb, i, cli->argc, cli->argv, want, &w);
        code = resolve(cli, &w, &text);
        if (code == CLI_OK && text[0] == 0 && w.word.len > 0 && !w.text) {
            cli_error_hint("a variable without a value?", "%s: expected %.*s, got ''",
                           cli->verb->name, STR_ARG(w.word));
            code = CLI_USAGE;
        }
        if (text != cli->argv[i]) {
            cli->argv[i] = cli->ids[cli->n_ids - 1];
        }
    }
    if (cli_flag(cli, "new")) { /* names a session that is not there yet */
        return code;
    }
    for (int i = 0; o != NULL && o[i].name != NULL && code == CLI_OK; i++) {
        const struct wanted w = {.session =
                                     o[i].arg != NULL && strcmp(o[i].arg, "SESSION_ID") == 0};
        if (cli->values[i] != NULL) {
            code = resolve(cli, &w, &cli->values[i]);
        }
    }
    return code;
}

void usage_free_ids(struct cli *cli)
{
    while (cli->n_ids > 0) {
        free(cli->ids[--cli->n_ids]);
    }
}
