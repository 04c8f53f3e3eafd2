/*
 * baton_man DIR DATE: writes the pages baton.1 and baton-VERB.1 from the table of verbs, at build
 * time. The format is mdoc(7). DATE is as mdoc wants it: "November 23, 2026".
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/cli/usage/usage.h"

enum { LINE = 76 }; /* mdoc(7) wants lines of at most 80 bytes */

/* Text of a line: a backslash is an escape for the formatter. */
static void put_text(FILE *f, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\\') {
            (void)fputs("\\e", f);
        } else {
            (void)fputc(text[i], f);
        }
    }
}

/* One line of text; a point or an apostrophe at its start would be a request. */
static void put_line(FILE *f, const char *text, size_t n)
{
    if (n > 0 && (text[0] == '.' || text[0] == '\'')) {
        (void)fputs("\\&", f);
    }
    put_text(f, text, n);
    (void)fputc('\n', f);
}

/* Words of a macro line: some short words and signs are macros or delimiters there. */
static void put_words(FILE *f, const char *words)
{
    while (*words != 0) {
        const size_t n = strcspn(words, " ");
        (void)fputs(" \\&", f);
        put_text(f, words, n);
        if (n > 0 && strchr(".,:;()[]?!|", words[n - 1]) != NULL) {
            (void)fputs("\\&", f);
        }
        words += n + (words[n] == ' ');
    }
}

/* Sentences begin on new lines, as mdoc(7) recommends, and long ones are broken. */
static void put_paragraph(FILE *f, const char *text, size_t n)
{
    size_t from = 0;
    size_t space = 0; /* the last place where the line may end; 0 = none yet */

    for (size_t i = 0; i < n; i++) {
        if (text[i] != ' ') {
            continue;
        }
        if (i - from > LINE && space > from) {
            put_line(f, text + from, space - from);
            from = space + 1;
        }
        space = i;
        if (text[i - 1] == '.') {
            put_line(f, text + from, i - from);
            from = i + 1;
        }
    }
    if (n - from > LINE && space > from) {
        put_line(f, text + from, space - from);
        from = space + 1;
    }
    put_line(f, text + from, n - from);
}

/* A line is a paragraph; lines that begin with a space are shown as they are. */
static void put_prose(FILE *f, const char *text)
{
    bool literal = false;

    for (size_t n = 0; *text != 0; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        if ((text[0] == ' ') != literal) {
            literal = !literal;
            (void)fputs(literal ? ".Bd -literal -offset indent\n" : ".Ed\n", f);
        }
        if (literal) {
            put_line(f, text + strspn(text, " "), n - strspn(text, " "));
        } else if (n > 0) {
            (void)fputs(".Pp\n", f);
            put_paragraph(f, text, n);
        }
    }
    (void)fputs(literal ? ".Ed\n" : "", f);
}

static void put_options(FILE *f, const struct cli_option *o)
{
    (void)fputs(".Bl -tag -width Ds\n", f);
    for (; o->name != NULL; o++) {
        const char letter = usage_letter_of(o->name);
        (void)fputs(".It", f);
        if (letter != 0) {
            (void)fprintf(f, " Fl %c ,", letter);
        }
        (void)fprintf(f, " Fl -%s", o->name);
        if (o->arg != NULL) {
            (void)fputs(" Ar", f);
            put_words(f, o->arg);
        }
        (void)fputc('\n', f);
        put_paragraph(f, o->help, strlen(o->help));
    }
    (void)fputs(".El\n", f);
}

/* v NULL = every code. */
static void put_exits(FILE *f, const struct cli_verb *v)
{
    (void)fputs(".Sh EXIT STATUS\n.Bl -tag -width 130\n", f);
    for (const struct usage_exit *e = usage_exits; e->meaning != NULL; e++) {
        if (v == NULL || usage_has_exit(v, e->code)) {
            (void)fprintf(f, ".It %d\n", (int)e->code);
            put_line(f, e->meaning, strlen(e->meaning));
        }
    }
    (void)fputs(".El\n", f);
}

static void put_head(FILE *f, const char *date, const char *title, const char *name,
                     const char *brief)
{
    (void)fprintf(f, ".Dd %s\n.Dt %s 1\n.Os\n.Sh NAME\n.Nm %s\n.Nd", date, title, name);
    put_words(f, brief);
    (void)fputc('\n', f);
}

static void put_verb(FILE *f, const struct cli_verb *v, const char *date)
{
    char title[64] = "BATON-";
    char name[64];

    for (size_t i = 0; v->name[i] != 0 && i < sizeof title - 7; i++) {
        title[6 + i] =
            (char)(v->name[i] >= 'a' && v->name[i] <= 'z' ? v->name[i] - 32 : v->name[i]);
        title[7 + i] = 0;
    }
    (void)snprintf(name, sizeof name, "baton-%s", v->name);
    put_head(f, date, title, name, v->brief);
    (void)fprintf(f, ".Sh SYNOPSIS\n.Nm baton\n.Op Ar options\n.Cm %s\n", v->name);
    if (v->args != NULL) {
        (void)fputs(".Ar", f);
        put_words(f, v->args);
        (void)fputc('\n', f);
    }
    (void)fputs(".Op Ar options\n.Sh DESCRIPTION\n", f);
    (void)fprintf(f, "%c", v->brief[0] - (v->brief[0] >= 'a' && v->brief[0] <= 'z' ? 32 : 0));
    put_text(f, v->brief + 1, strlen(v->brief + 1));
    (void)fputs(".\n", f);
    if (v->text != NULL) {
        put_prose(f, v->text);
    }
    if (v->options != NULL) {
        (void)fputs(".Pp\nThe options are:\n", f);
        put_options(f, v->options);
    }
    (void)fputs(".Pp\nThe options of every verb are in\n.Xr baton 1 .\n", f);
    put_exits(f, v);
    (void)fputs(".Sh EXAMPLES\n", f);
    for (int i = 0; i < CLI_EXAMPLES_MAX && v->examples[i].command != NULL; i++) {
        const char *what = v->examples[i].what;
        (void)fprintf(f, "%s%c", i > 0 ? ".Pp\n" : "",
                      what[0] - (what[0] >= 'a' && what[0] <= 'z' ? 32 : 0));
        put_text(f, what + 1, strlen(what + 1));
        (void)fputs(":\n.Dl", f);
        put_words(f, v->examples[i].command);
        (void)fputc('\n', f);
    }
    (void)fputs(".Sh SEE ALSO\n.Xr baton 1 ,\n.Xr baton-plan 5\n", f);
}

static void put_verbs(FILE *f)
{
    for (const struct usage_group *g = usage_groups; g->title != NULL; g++) {
        (void)fputs(".Ss", f);
        put_words(f, g->title);
        (void)fputs("\n.Bl -tag -width completion\n", f);
        for (const struct cli_verb *v = g->verbs; v->name != NULL; v++) {
            (void)fprintf(f, ".It Xr baton-%s 1\n", v->name);
            put_line(f, v->brief, strlen(v->brief));
        }
        (void)fputs(".El\n", f);
    }
}

static void put_baton(FILE *f, const char *date)
{
    static const char *const about[] = {
        ".Sh SYNOPSIS\n.Nm\n.Op Ar options\n.Ar VERB\n.Op Ar arguments\n.Op Ar options\n"
        ".Sh DESCRIPTION\n.Nm\n"
        "turns goals into plans whose steps are done by agents,\neach a process of its own.\n"
        "It asks the daemon\n.Xr batond 8 ,\nwhich\n.Ic baton up\nstarts.\n"
        "A verb says what to do; each has a page of its own.\n",
        ".Ss Times and ages\n.Ar TIME\nis a number with a unit:\n"
        ".Li 500ms , 30s , 5m , 2h\nor\n.Li 1d ;\na number alone is seconds.\n"
        ".Ar AGE\nalways has its unit.\n"
        ".Sh ENVIRONMENT\n.Bl -tag -width BATON_STATE\n"
        ".It Ev BATON_STATE\nThe state directory, when\n.Fl -state\nis missing.\n"
        ".It Ev BATON_CONTEXT\nThe context, when\n.Fl -context\nis missing; see\n"
        ".Xr baton-context 1 .\n"
        ".It Ev BATON_CREDENTIAL\nThe credential file, when\n.Fl -credential\nis missing; see\n"
        ".Xr baton-credential 1 .\n"
        ".It Ev BATON_PAGER , PAGER\nThe pager of long texts on a terminal; none when it is empty "
        "or\n.Cm cat .\n"
        ".It Ev NO_COLOR\nNo colours when it is set and not empty.\n"
        ".It Ev TZ\nThe time zone of times on a terminal.\n.El\n"
        ".Sh FILES\n.Bl -tag -width Ds\n"
        ".It Pa ~/.local/state/baton\nThe state directory: the journal, the file\n.Pa token\n"
        "with the key to everything, the file\n.Pa endpoints.json\n"
        "with the addresses of the running daemon, and logs.\n"
        ".It Pa ~/.config/baton/baton.yaml , /etc/baton/baton.yaml\n"
        "The configuration; see\n.Xr baton.yaml 5 .\n.El\n",
        ".Sh EXAMPLES\nStart the daemon and its agents, run a goal, see what happened:\n"
        ".Bd -literal -offset indent\nbaton up\nbaton run 'compute 6 * 7'\nbaton history last\n"
        "baton down\n.Ed\n"
        ".Sh SEE ALSO\n.Xr baton-plan 5 ,\n.Xr baton.yaml 5 ,\n.Xr baton-events 7 ,\n"
        ".Xr baton-messages 7 ,\n.Xr baton-protocol 7 ,\n.Xr batond 8\n"};

    put_head(f, date, "BATON", "baton", "a multi-agent supervisor");
    (void)fputs(about[0], f);
    put_verbs(f);
    (void)fputs(".Ss Options of every verb\nThey stand before the verb or after it.\n", f);
    put_options(f, cli_global_options);
    (void)fputs(about[1], f);
    put_exits(f, NULL);
    (void)fputs(about[2], f);
}

static FILE *open_page(const char *dir, const char *verb)
{
    char path[4096];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/baton%s%s.1", dir, verb[0] != 0 ? "-" : "", verb);
    f = fopen(path, "w");
    if (f == NULL) {
        (void)fprintf(stderr, "baton_man: %s: %s\n", path, strerror(errno));
    }
    return f;
}

static bool close_page(FILE *f)
{
    const bool failed = ferror(f) != 0;
    if (fclose(f) != 0 || failed) {
        (void)fprintf(stderr, "baton_man: a page could not be written\n");
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    FILE *f;

    if (argc != 3) {
        (void)fprintf(stderr, "usage: baton_man DIR DATE\n");
        return 2;
    }
    f = open_page(argv[1], "");
    if (f == NULL) {
        return 1;
    }
    put_baton(f, argv[2]);
    if (!close_page(f)) {
        return 1;
    }
    for (const struct cli_verb *v = usage_next(NULL); v != NULL; v = usage_next(v)) {
        f = open_page(argv[1], v->name);
        if (f == NULL) {
            return 1;
        }
        put_verb(f, v, argv[2]);
        if (!close_page(f)) {
            return 1;
        }
    }
    return 0;
}
