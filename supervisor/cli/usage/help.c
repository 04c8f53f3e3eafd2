/* help, version: the table as text for people, and as JSON for programs. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/usage/usage.h"

enum { WIDTH = 80, OPTION_COLUMN = 28, HELP_BYTES_MAX = 1 << 20 };

/* Appends words, broken into lines of WIDTH columns; the first begins at column `at`, the others at
 * column `indent`. */
static void add_wrapped(struct buf *out, const char *text, int at, int indent)
{
    while (*text != 0) {
        const int n = (int)strcspn(text, " ");
        if (at > indent && at + 1 + n > WIDTH) {
            buf_printf(out, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            buf_add_byte(out, ' ');
            at++;
        }
        buf_add(out, text, (size_t)n);
        at += n;
        text += n + (text[n] == ' ');
    }
    buf_add_byte(out, '\n');
}

/* Paragraphs, one a line; a line that begins with a space stays as it is. */
static void add_text(struct buf *out, const char *text)
{
    while (*text != 0) {
        char line[2048];
        const size_t n = strcspn(text, "\n");
        (void)snprintf(line, sizeof line, "%.*s", (int)n, text);
        if (line[0] == ' ') {
            buf_printf(out, "%s\n", line);
        } else {
            add_wrapped(out, line, 0, 0);
        }
        text += n + (text[n] == '\n');
    }
}

static void add_options(struct buf *out, const struct cli_option *o)
{
    for (int i = 0; o != NULL && o[i].name != NULL; i++) {
        const char letter = usage_letter_of(o[i].name);
        char left[64];
        int n = snprintf(left, sizeof left, "  %c%c%s--%s%s%s", letter != 0 ? '-' : ' ',
                         letter != 0 ? letter : ' ', letter != 0 ? ", " : "  ", o[i].name,
                         o[i].arg != NULL ? " " : "", o[i].arg != NULL ? o[i].arg : "");
        buf_add_cstr(out, left);
        if (n > OPTION_COLUMN - 2) {
            buf_add_byte(out, '\n');
            n = 0;
        }
        buf_printf(out, "%*s", OPTION_COLUMN - n, "");
        add_wrapped(out, o[i].help, OPTION_COLUMN, OPTION_COLUMN);
    }
}

static void add_examples(struct buf *out, const struct cli_verb *v)
{
    for (int i = 0; i < CLI_EXAMPLES_MAX && v->examples[i].command != NULL; i++) {
        buf_printf(out, "  %s\n      %s\n", v->examples[i].command, v->examples[i].what);
    }
}

bool usage_has_exit(const struct cli_verb *v, enum cli_exit code)
{
    return code == CLI_OK || code == CLI_INTERNAL || code == CLI_USAGE ||
           memchr(v->exits, (int)code, sizeof v->exits) != NULL;
}

/* v NULL = all of them. */
static void add_exits(struct buf *out, const struct cli_verb *v)
{
    for (const struct usage_exit *e = usage_exits; e->meaning != NULL; e++) {
        if (v == NULL || usage_has_exit(v, e->code)) {
            buf_printf(out, "  %3d  %s\n", (int)e->code, e->meaning);
        }
    }
}

static void add_verb_help(struct buf *out, const struct cli_verb *v)
{
    buf_printf(out, "usage: baton %s%s%s [options]\n\n", v->name, v->args != NULL ? " " : "",
               v->args != NULL ? v->args : "");
    add_wrapped(out, v->brief, 0, 0);
    if (v->text != NULL) {
        buf_add_byte(out, '\n');
        add_text(out, v->text);
    }
    buf_add_cstr(out, "\nExamples:\n");
    add_examples(out, v);
    if (v->options != NULL) {
        buf_add_cstr(out, "\nOptions:\n");
        add_options(out, v->options);
    }
    buf_add_cstr(out, "\nOptions of every verb:\n");
    add_options(out, cli_global_options);
    if (v->forms != NULL) {
        buf_printf(out, "  Here --output takes %s, too.\n", v->forms);
    }
    buf_add_cstr(out, "\nExit codes:\n");
    add_exits(out, v);
}

static void add_help(struct buf *out)
{
    buf_add_cstr(out, "usage: baton [options] VERB [arguments] [options]\n\nA multi-agent "
                      "supervisor: plans, agents, handoffs, events.\n");
    for (const struct usage_group *g = usage_groups; g->title != NULL; g++) {
        buf_printf(out, "\n%s:\n", g->title);
        for (const struct cli_verb *v = g->verbs; v->name != NULL; v++) {
            buf_printf(out, "  %-12s ", v->name);
            add_wrapped(out, v->brief, 15, 15);
        }
    }
    buf_add_cstr(out, "\nOptions of every verb, before or after it:\n");
    add_options(out, cli_global_options);
    buf_add_cstr(out, "\nExit codes:\n");
    add_exits(out, NULL);
    buf_add_cstr(out, "\n`baton help VERB` says more.\n");
}

/* ---- the table as JSON ---- */

static void add_string(cJSON *object, const char *name, const char *text)
{
    if (text != NULL) {
        (void)cJSON_AddStringToObject(object, name, text);
    }
}

static cJSON *options_json(const struct cli_option *o)
{
    cJSON *list = cJSON_CreateArray();

    for (int i = 0; o != NULL && o[i].name != NULL; i++) {
        const char letter[2] = {usage_letter_of(o[i].name), 0};
        cJSON *row = cJSON_CreateObject();
        add_string(row, "name", o[i].name);
        add_string(row, "letter", letter[0] != 0 ? letter : NULL);
        add_string(row, "argument", o[i].arg);
        add_string(row, "help", o[i].help);
        (void)cJSON_AddItemToArray(list, row);
    }
    return list;
}

/* v NULL = all of them. */
static cJSON *exits_json(const struct cli_verb *v)
{
    cJSON *list = cJSON_CreateArray();

    for (const struct usage_exit *e = usage_exits; e->meaning != NULL; e++) {
        if (v == NULL || usage_has_exit(v, e->code)) {
            cJSON *row = cJSON_CreateObject();
            (void)cJSON_AddNumberToObject(row, "code", e->code);
            add_string(row, "meaning", e->meaning);
            (void)cJSON_AddItemToArray(list, row);
        }
    }
    return list;
}

static cJSON *verb_json(const struct cli_verb *v)
{
    cJSON *row = cJSON_CreateObject();
    cJSON *examples = cJSON_CreateArray();

    for (int i = 0; i < CLI_EXAMPLES_MAX && v->examples[i].command != NULL; i++) {
        cJSON *example = cJSON_CreateObject();
        add_string(example, "command", v->examples[i].command);
        add_string(example, "what", v->examples[i].what);
        (void)cJSON_AddItemToArray(examples, example);
    }
    add_string(row, "name", v->name);
    add_string(row, "arguments", v->args);
    add_string(row, "summary", v->brief);
    add_string(row, "description", v->text);
    (void)cJSON_AddItemToObject(row, "examples", examples);
    (void)cJSON_AddItemToObject(row, "options", options_json(v->options));
    add_string(row, "forms", v->forms);
    (void)cJSON_AddItemToObject(row, "exits", exits_json(v));
    return row;
}

static cJSON *table_json(void)
{
    cJSON *table = cJSON_CreateObject();
    cJSON *groups = cJSON_AddArrayToObject(table, "groups");

    for (const struct usage_group *g = usage_groups; g->title != NULL; g++) {
        cJSON *group = cJSON_CreateObject();
        cJSON *verbs = cJSON_CreateArray();
        for (const struct cli_verb *v = g->verbs; v->name != NULL; v++) {
            (void)cJSON_AddItemToArray(verbs, verb_json(v));
        }
        add_string(group, "title", g->title);
        (void)cJSON_AddItemToObject(group, "verbs", verbs);
        (void)cJSON_AddItemToArray(groups, group);
    }
    (void)cJSON_AddItemToObject(table, "options", options_json(cli_global_options));
    (void)cJSON_AddItemToObject(table, "exits", exits_json(NULL));
    return table;
}

void usage_show(struct cli *cli, const struct cli_verb *v)
{
    cJSON *table;
    struct buf out;

    if (cli->json) {
        table = v != NULL ? verb_json(v) : table_json();
        cli_print_json(table);
        cJSON_Delete(table);
        return;
    }
    buf_init(&out, HELP_BYTES_MAX);
    if (v != NULL) {
        add_verb_help(&out, v);
    } else {
        add_help(&out);
    }
    (void)fputs(buf_cstr(&out), stdout);
    buf_done(&out);
}

enum cli_exit verb_help(struct cli *cli)
{
    const struct cli_verb *v = cli->argc == 1 ? usage_find(cli->argv[0]) : NULL;

    if (cli->argc == 1 && v == NULL) {
        usage_report_unknown(cli->argv[0]);
        return CLI_USAGE;
    }
    usage_show(cli, v);
    return CLI_OK;
}

enum cli_exit verb_version(struct cli *cli)
{
    cJSON *answer;

    if (cli->json) {
        answer = cli_fields("version", bt_version());
        cli_print_json(answer);
        cJSON_Delete(answer);
    } else {
        (void)printf("baton %s\n", bt_version());
    }
    return CLI_OK;
}
