/*
 * What the skills of the sql agent reply, kept in sql_told.txt: a rule in words, what is asked, and
 * the whole reply. BATON_WRITE=1 writes what follows anew: read the difference against the rule.
 *
 *     ## A rule. No database is there, and the settings are those of an agent that may write.
 *     > settings {members}       beside databaseDir
 *     > file NAME text           below ROOT, the roots of the settings; "\n" ends a line
 *     > SKILL {parameters}
 *     > step SKILL {step}        the whole step
 *     > with SKILL {parameters}  and the file that the last reply names, as ITS
 *     > key N SKILL {parameters} the step of that key; else it has none that counts
 *
 * "<x*64>" stands for so many x, in what is asked and in what is told. A file of a reply is told
 * after it; what is long, by its beginning, its length, its checksum and its end.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/artifact/artifact.h"
#include "tests/support/golden.h"
#include "tests/unit/agents/sql_world.h"

enum { LONG = 900, SHOWN = 200, SAME_MIN = 24 };

#define PLAN "00000000-0000-7000-8000-000000000000" /* of a step that is made from JSON */

static char root[64];
static char files[160]; /* of the plan */
static struct sql_settings *settings;
static struct buf out;
static struct buf given; /* the artifacts of the last reply, as a step is given them */
static char uri[400];

static void empty(const char *path)
{
    struct dirent **names = NULL;
    const int n = scandir(path, &names, NULL, alphasort);
    char name[600];

    for (int i = 0; i < n; i++) {
        (void)snprintf(name, sizeof name, "%s/%s", path, names[i]->d_name);
        (void)remove(name); /* "." and ".." stay */
        free(names[i]);
    }
    free((void *)names);
}

static int set_up(void **state)
{
    (void)snprintf(root, sizeof root, "/tmp/baton-told-sql-XXXXXX");
    buf_init(&out, GOLDEN_MAX);
    buf_init(&given, GOLDEN_MAX);
    if (mkdtemp(root) == NULL || sql_set_up(state) != 0) {
        return -1;
    }
    (void)snprintf(files, sizeof files, "%s/" PLAN, root);
    return 0;
}

static int tear_down(void **state)
{
    sql_settings_free(settings);
    buf_done(&out);
    buf_done(&given);
    empty(files);
    (void)rmdir(files);
    empty(root);
    return rmdir(root) == 0 ? sql_tear_down(state) : -1;
}

/* ---- what is told ---- */

/* The text on one line, with paths that are new each time, and what is the same many times, made
 * short. */
static void shorten(const char *text, size_t n, struct buf *to)
{
    static char dir[64];

    (void)snprintf(dir, sizeof dir, "%s", sql_dir());
    for (size_t i = 0; i < n;) {
        size_t same = 1;
        while (i + same < n && text[i + same] == text[i]) {
            same++;
        }
        if (strncmp(text + i, root, strlen(root)) == 0) {
            buf_add_cstr(to, "ROOT");
            i += strlen(root);
        } else if (strncmp(text + i, dir, strlen(dir)) == 0) {
            buf_add_cstr(to, "DIR");
            i += strlen(dir);
        } else if (text[i] == '\n') {
            buf_add_cstr(to, "\\n");
            i++;
        } else if (same >= SAME_MIN) {
            buf_printf(to, "<%c*%zu>", text[i], same);
            i += same;
        } else {
            buf_add_byte(to, (uint8_t)text[i++]);
        }
    }
}

static void tell(const char *text, size_t n)
{
    struct artifact_digest *d = artifact_digest_new();
    char sum[ARTIFACT_SHA256_LEN + 1];
    struct buf line;

    buf_init(&line, GOLDEN_MAX);
    shorten(text, n, &line);
    artifact_digest_add(d, line.at, line.len);
    artifact_digest_end(d, sum);
    artifact_digest_free(d);
    if (line.len > LONG) {
        buf_printf(&out, "  %.*s ...\n  ... %zu bytes, %.16s\n  ... %s\n", SHOWN, buf_cstr(&line),
                   n, sum, buf_cstr(&line) + line.len - SHOWN);
    } else {
        buf_printf(&out, "  %s\n", buf_cstr(&line));
    }
    buf_done(&line);
}

/* The file of a reply, which is remembered as a later step is given it. */
static void tell_files(const struct msg_artifact *a, uint32_t n)
{
    static char text[4 * 1024 * 1024];
    char path[ARTIFACT_PATH_MAX + 1];

    buf_clear(&given);
    for (uint32_t i = 0; i < n; i++) {
        FILE *f;
        size_t len;
        (void)snprintf(uri, sizeof uri, "%.*s", STR_ARG(a[i].uri));
        buf_printf(&given,
                   "%s{\"name\":\"%.*s\",\"mediaType\":\"%.*s\",\"uri\":\"%s\",\"bytes\":%llu,"
                   "\"sha256\":\"%.*s\"}",
                   i == 0 ? "" : ",", STR_ARG(a[i].name), STR_ARG(a[i].media_type), uri,
                   (unsigned long long)a[i].bytes, STR_ARG(a[i].sha256));
        assert_true(artifact_uri_path(a[i].uri, path));
        f = fopen(path, "re");
        assert_non_null(f);
        len = fread(text, 1, sizeof text, f);
        assert_int_equal(fclose(f), 0);
        buf_printf(&out, "  in %.*s:\n", STR_ARG(a[i].name));
        tell(text, len);
    }
}

/* ---- what is asked ---- */

static const char *key; /* of the next step; NULL = none */

static void run(const char *skill, size_t skill_n, const char *json)
{
    size_t n = 0;
    const struct bt_skill *skills = sql_skills(&n);
    const char *reply = NULL;

    for (size_t i = 0; i < n; i++) {
        if (strlen(skills[i].id) == skill_n && memcmp(skills[i].id, skill, skill_n) == 0) {
            struct bt_step *step = steps_make(skills[i].id, json);
            step->plan_id = key != NULL ? "019ab000-0000-7000-8000-000000000001" : step->plan_id;
            step->key = key != NULL ? key : step->key;
            reply = steps_run(step, skills[i].run, settings);
        }
    }
    if (reply == NULL) {
        fail_msg("no skill: %s", skill);
        return;
    }
    tell(strstr(reply, "\"outcome\""), strlen(strstr(reply, "\"outcome\"")));
    if (steps_last()->reply.artifacts_n > 0) {
        tell_files(steps_last()->reply.artifacts, steps_last()->reply.artifacts_n);
    }
}

/* parameters: an object. with: and the file of the last reply. */
static void ask(const char *skill, size_t skill_n, const char *parameters, bool with)
{
    const char *its = with ? strstr(parameters, "ITS") : NULL;
    struct buf step;

    assert_true(!with || its != NULL);
    buf_init(&step, GOLDEN_MAX);
    buf_printf(&step, "{\"artifactDir\":\"%s\",\"parameters\":%.*s%s%s", files,
               its == NULL ? (int)strlen(parameters) : (int)(its - parameters), parameters,
               its == NULL ? "" : uri, its == NULL ? "" : its + 3);
    if (with) {
        buf_printf(&step, ",\"artifacts\":[%s]", buf_cstr(&given));
    }
    buf_add_cstr(&step, "}");
    if (!with) {
        empty(files);
    }
    run(skill, skill_n, buf_cstr(&step));
    buf_done(&step);
}

static void set(const char *members)
{
    static const struct {
        const char *name, *value;
    } usual[] = {{"readOnly", "false"}, {"busyTimeoutMs", "0"}};
    struct buf json;
    struct bt_error err;

    sql_settings_free(settings);
    settings = NULL;
    buf_init(&json, GOLDEN_MAX);
    buf_add_cstr(&json, "{");
    if (strstr(members, "databaseDir") == NULL) {
        buf_printf(&json, "\"databaseDir\":\"%s\",", sql_dir());
    }
    for (size_t i = 0; i < 2; i++) {
        if (strstr(members, usual[i].name) == NULL) {
            buf_printf(&json, "\"%s\":%s%s", usual[i].name, usual[i].value,
                       i == 0 || strcmp(members, "{}") != 0 ? "," : "");
        }
    }
    buf_add_cstr(&json, members + 1);
    if (sql_settings_read(buf_cstr(&json), &settings, &err) != BT_OK) {
        buf_printf(&out, "  %s\n", bt_code_name(err.code));
        tell(err.msg, strlen(err.msg));
        set("{}");
    }
    buf_done(&json);
}

static void write_file(const char *words)
{
    const size_t n = strcspn(words, " ");
    char path[600];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%.*s", root, (int)n, words);
    f = fopen(path, "we");
    assert_non_null(f);
    for (const char *c = words + n + (words[n] == ' '); *c != 0; c++) {
        const bool escaped = c[0] == '\\' && (c[1] == 'n' || c[1] == 'r' || c[1] == 'x');
        if (escaped && c[1] == 'x') {
            const char hex[] = {c[2], c[3], 0};
            (void)fputc((int)strtol(hex, NULL, 16), f);
            c += 2;
        } else {
            (void)fputc(!escaped ? *c : c[1] == 'n' ? '\n' : '\r', f);
        }
        c += escaped;
    }
    assert_int_equal(fclose(f), 0);
}

/* "ROOT" and "<x*64>" in a line. */
static void expand(const char *line, struct buf *to)
{
    for (; *line != 0; line++) {
        char *end = NULL;
        const long n =
            line[0] == '<' && line[1] != 0 && line[2] == '*' ? strtol(line + 3, &end, 10) : 0;
        if (n > 0 && *end == '>') {
            for (long i = 0; i < n; i++) {
                buf_add_byte(to, (uint8_t)line[1]);
            }
            line = end;
        } else if (strncmp(line, "ROOT", 4) == 0) {
            buf_add_cstr(to, root);
            line += 3;
        } else {
            buf_add_byte(to, (uint8_t)*line);
        }
    }
}

static void obey(const char *line)
{
    static const char *const ways[] = {"settings", "file", "step", "with", "key"};
    const size_t n = strcspn(line, " ");
    const char *rest = line + n + (line[n] == ' ');
    struct buf words;
    size_t way = 0;

    while (way < 5 && (strlen(ways[way]) != n || memcmp(ways[way], line, n) != 0)) {
        way++;
    }
    buf_init(&words, 2 * GOLDEN_MAX);
    expand(rest, &words);
    rest = buf_cstr(&words);
    if (way == 0) {
        set(rest);
    } else if (way == 1) {
        write_file(rest);
    } else if (way < 5) {
        static const char *const keys[] = {"k0", "k1", "k2"};
        const char *skill = way == 4 ? rest + 2 : rest;
        const size_t skill_n = strcspn(skill, " ");
        key = way == 4 ? keys[rest[0] - '0'] : NULL;
        if (way == 2) {
            run(skill, skill_n, skill + skill_n + 1);
        } else {
            ask(skill, skill_n, skill + skill_n + 1, way == 3);
        }
        key = NULL;
    } else {
        ask(line, n, rest, false);
    }
    buf_done(&words);
}

static void each_reply_is_told_as_it_was(void **state)
{
    char *kept = golden_read(TOLD);
    char *copy = strdup(kept);

    (void)state;
    assert_non_null(copy);
    for (char *line = copy, *end; line != NULL; line = end) {
        end = strchr(line, '\n');
        if (end != NULL) {
            *end++ = 0;
        }
        if (line[0] == '#') {
            buf_printf(&out, "%s%s\n", out.len > 0 ? "\n" : "", line);
            empty(sql_dir());
            empty(root);
            set("{}");
        } else if (strncmp(line, "> ", 2) == 0) {
            buf_printf(&out, "%s\n", line);
            obey(line + 2);
        }
    }
    golden_keep(TOLD, kept, buf_cstr(&out));
    free(copy);
    free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_reply_is_told_as_it_was)};

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
