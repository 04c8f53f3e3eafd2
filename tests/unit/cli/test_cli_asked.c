/*
 * What command lines ask of a daemon, and what they print of its answers, in asked.txt; what they
 * do with files, programs and the machine, in places.txt (test_cli_places). BATON_WRITE=1 writes
 * what follows a command line anew: read the difference.
 *
 *     ## What the command lines that follow are about. They have an empty directory.
 *     f plan.json {...}       a file, before the command line; "\n" ends a line of it
 *     x bin/batond #!/bin/sh\n...  a program; the command is bin/baton
 *     d some/folder           a folder
 *     m 600 plan.json         its mode; "s TO NAME" is a link
 *     $ status P --json       the command line
 *     l 2                     the lock of the state directory is held at the next two looks
 *     w write 1 ENOSPC        the first call of write fails (0: each); "none": as if it were done
 *     v NAME=VALUE            a variable of its environment; "v NAME=": it is not set
 *     r plan.json             a file that is shown afterwards; of a folder, what is in it
 *     i yes                   a line of its standard input
 *     t 80x24 012             a terminal of this size, and which streams are it
 *     < plan.get {...}        an answer; the last one of a type is given again
 *     < plan.get ! {...}      a refusal: its error object
 *     e {...}                 an event of a watch; "e ! {...}": its error object; what else
 *                             happens while it waits: see asked_world.h
 *     > plan.get {...}        what it asks
 *     | text                  standard output
 *     ! text                  standard error
 *     : text                  what its terminal got; then what "r" shows
 *     = 0                     the exit code
 *
 * The time is 2026-01-02T03:04:05Z, and passes while the command waits. The directory is DIR,
 * in what is given, too. A limit of requests, and a wait, is told when it is another one than
 * before.
 */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "baton/client.h"
#include "protocol/base/buf.h"
#include "protocol/base/clock.h"
#include "protocol/base/uuid.h"
#include "protocol/client/credential.h"
#include "supervisor/cli/entry.h"
#include "tests/support/golden.h"
#include "tests/support/tree.h"
#include "tests/unit/cli/asked_rig.h"
#include "tests/unit/cli/asked_world.h"

enum {
    LINES_MAX = 400,
    CALL_MS = 10000,
    WORDS_MAX = 64,
    OUT_MAX = 1 << 20,
    SHOWN_MAX = 8,
    COPIES_MAX = 512,
    NOW_S = 1767323045
};

static char dir[64];
static const char *given[LINES_MAX]; /* the lines "< ..." and "e ..." of the case */
static bool used[LINES_MAX];
static int given_n;
static const char *shown[SHOWN_MAX]; /* the lines "r ..." */
static int shown_n;
static char *copies[COPIES_MAX]; /* lines with the directory in them */
static int copies_n;
static FILE *asked;
static struct bt_client *const the_client = (struct bt_client *)(void *)&given_n;

/* ---- libbaton ---- */

#define WRAPPED(type, name, ...)                                                                   \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

const char *asked_answer(const char *type)
{
    const size_t n = strlen(type);
    const char *last = NULL;

    for (int i = 0; i < given_n; i++) {
        if (given[i][0] == '<' && strncmp(given[i] + 2, type, n) == 0 && given[i][2 + n] == ' ') {
            last = given[i] + 3 + n;
            if (!used[i]) {
                used[i] = true;
                return last;
            }
        }
    }
    return last;
}

static enum bt_code refuse(const cJSON *error, struct bt_error *err)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(error, "code"));
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(error, "message"));
    enum bt_code code = BT_OK;

    for (int i = 1; i < 100 && code == BT_OK && name != NULL; i++) {
        code = strcmp(bt_code_name((enum bt_code)i), name) == 0 ? (enum bt_code)i : BT_OK;
    }
    err->code = code == BT_OK ? BT_INTERNAL : code;
    (void)snprintf(err->msg, sizeof err->msg, "%s", text != NULL ? text : "(no message)");
    return err->code;
}

static enum bt_code reply(const char *text, const char *type, char **ret_json, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (ret_json != NULL) {
        *ret_json = NULL;
    }
    if (text == NULL) {
        err->code = BT_UNAVAILABLE;
        (void)snprintf(err->msg, sizeof err->msg, "asked.txt has no answer to %s", type);
        return BT_UNAVAILABLE;
    }
    if (text[0] == '!') {
        cJSON *error = cJSON_Parse(text + 2);
        code = refuse(error, err);
        cJSON_Delete(error);
        text += 2;
    }
    if (ret_json != NULL) {
        *ret_json = strdup(text);
    }
    return code;
}

enum bt_code asked_reply(const char *type, char **ret_json, struct bt_error *err)
{
    return reply(asked_answer(type), type, ret_json, err);
}

/* Without an answer of this type all is well. */
static enum bt_code reply_if_any(const char *type, struct bt_error *err)
{
    const char *text = asked_answer(type);

    return text == NULL ? BT_OK : reply(text, type, NULL, err);
}

void asked_say(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)fprintf(asked, "> ");
    (void)vfprintf(asked, fmt, args);
    (void)fprintf(asked, "\n");
    va_end(args);
}

WRAPPED(enum bt_code, bt_client_open, const char *state_dir, struct bt_client **ret,
        struct bt_error *err)
{
    (void)state_dir;
    *ret = the_client;
    return reply_if_any("open", err);
}

WRAPPED(enum bt_code, bt_client_connect, const struct bt_connection *to, struct bt_client **ret,
        struct bt_error *err)
{
    (void)fprintf(asked, "> connect %s %s %s %s\n", to->url, to->credential, to->ca, to->cert);
    *ret = the_client;
    return reply_if_any("open", err);
}

WRAPPED(void, bt_client_close, struct bt_client *c)
{
    (void)c;
}

WRAPPED(void, bt_client_timeout, struct bt_client *c, uint32_t timeout_ms)
{
    static uint32_t last_ms = CALL_MS;

    (void)c;
    if (timeout_ms != last_ms) {
        (void)fprintf(asked, "> timeout %u\n", timeout_ms);
        last_ms = timeout_ms;
    }
}

WRAPPED(void, bt_client_via, struct bt_client *c, const char *via)
{
    (void)c, (void)via;
}

WRAPPED(enum bt_code, bt_client_call, struct bt_client *c, const char *type, const char *fields,
        char **ret_json, struct bt_error *err)
{
    (void)c;
    (void)fprintf(asked, "> %s %s\n", type, fields != NULL ? fields : "");
    return asked_reply(type, ret_json, err);
}

WRAPPED(enum bt_code, bt_submit, struct bt_client *c, const struct bt_submit *s,
        char ret_plan_id[BT_ID_LEN + 1], char **ret_json, struct bt_error *err)
{
    const struct {
        const char *name, *text;
    } fields[] = {{"goal", s->goal},
                  {"plan", s->plan_json},
                  {"session", s->session_id},
                  {"planner", s->planner},
                  {"key", s->client_key},
                  {"policy", s->policy_json},
                  {"constraints", s->constraints_json}};
    char *json = NULL;
    enum bt_code code;
    cJSON *tree;
    const char *id;

    (void)c;
    (void)fprintf(asked, "> submit%s%s", s->dry_run ? " dry" : "", s->lenient ? " lenient" : "");
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (fields[i].text != NULL) {
            (void)fprintf(asked, " %s=%s", fields[i].name, fields[i].text);
        }
    }
    (void)fprintf(asked, "\n");
    code = asked_reply("submit", &json, err);
    tree = cJSON_Parse(json != NULL ? json : "");
    id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "planId"));
    (void)snprintf(ret_plan_id, BT_ID_LEN + 1, "%s", id != NULL ? id : "");
    cJSON_Delete(tree);
    if (ret_json != NULL) {
        *ret_json = json;
    } else {
        free(json);
    }
    return code;
}

WRAPPED(enum bt_code, bt_submit_many, struct bt_client *c, const struct bt_submit *plans, size_t n,
        struct bt_submitted *results, struct bt_error *err)
{
    enum bt_code first = BT_OK;

    for (size_t i = 0; i < n; i++) {
        struct bt_submitted *r = &results[i];
        *r = (struct bt_submitted){.json = NULL};
        r->err.code = __wrap_bt_submit(c, &plans[i], r->plan_id, &r->json, &r->err);
        if (first == BT_OK && r->err.code != BT_OK) {
            first = r->err.code;
            *err = r->err;
        }
    }
    return first;
}

WRAPPED(enum bt_code, bt_cancel, struct bt_client *c, const char *plan_id, const char *reason,
        struct bt_error *err)
{
    (void)c;
    (void)fprintf(asked, "> cancel %s %s\n", plan_id, reason != NULL ? reason : "");
    return reply_if_any("cancel", err);
}

WRAPPED(enum bt_code, bt_client_artifact, struct bt_client *c, const char *uri, uint64_t bytes,
        const char *sha256, int fd, struct bt_error *err)
{
    const char *text = asked_answer("artifact");

    (void)c;
    (void)fprintf(asked, "> artifact %s %llu %s\n", uri, (unsigned long long)bytes, sha256);
    if (text == NULL || text[0] == '!') {
        return asked_reply("artifact", NULL, err);
    }
    return write(fd, text, strlen(text)) > 0 && lseek(fd, 0, SEEK_SET) == 0 ? BT_OK : BT_IO;
}

WRAPPED(enum bt_code, bt_client_shards, struct bt_client *c, uint32_t *ret, struct bt_error *err)
{
    const char *text = asked_answer("shards");

    (void)c;
    *ret = text != NULL ? (uint32_t)strtoul(text, NULL, 10) : 1;
    return text != NULL && text[0] == '!' ? asked_reply("shards", NULL, err) : BT_OK;
}

/* ---- its watch ---- */

static uint64_t seen;

/* The next line "e ..." that was not taken; -1 = there is none. */
static int next_line(void)
{
    for (int i = 0; i < given_n; i++) {
        if (given[i][0] == 'e' && !used[i]) {
            return i;
        }
    }
    return -1;
}

static const char *next_happening(void)
{
    const int i = next_line();

    if (i < 0 || given[i][2] == '{' || given[i][2] == '!') {
        return NULL;
    }
    used[i] = true;
    return given[i] + 2;
}

WRAPPED(enum bt_code, bt_watch_open, struct bt_client *c, const char *plan_id, uint64_t after,
        struct bt_watch **ret, struct bt_error *err)
{
    (void)c;
    (void)fprintf(asked, "> watch %s after %lld\n", plan_id != NULL ? plan_id : "all",
                  (long long)after);
    *ret = (struct bt_watch *)(void *)&seen;
    return reply_if_any("watch", err);
}

WRAPPED(enum bt_code, bt_watch_open_after, struct bt_client *c, const char *vector,
        struct bt_watch **ret, struct bt_error *err)
{
    (void)c;
    (void)fprintf(asked, "> watch all after %s\n", vector);
    *ret = (struct bt_watch *)(void *)&seen;
    return reply_if_any("watch", err);
}

WRAPPED(bool, bt_watch_is_current, const struct bt_watch *w)
{
    (void)w;
    return next_line() < 0;
}

WRAPPED(void, bt_watch_cursor, const struct bt_watch *w, char *ret, size_t cap)
{
    (void)w;
    (void)snprintf(ret, cap, "S0=%llu", (unsigned long long)seen);
}

WRAPPED(enum bt_code, bt_watch_next, struct bt_watch *w, uint32_t timeout_ms, struct bt_event *ret,
        struct bt_error *err)
{
    static cJSON *event;
    const int i = next_line();

    (void)w;
    cJSON_Delete(event);
    event = NULL;
    if (i < 0 && timeout_ms > 0) {
        err->code = BT_UNAVAILABLE;
        (void)snprintf(err->msg, sizeof err->msg, "the daemon has been silent for 15 s");
        return BT_UNAVAILABLE;
    }
    if (i < 0 || (given[i][2] != '{' && (given[i][2] != '!' || timeout_ms == 0))) {
        if (timeout_ms > 0) {
            world_wait(timeout_ms);
        }
        err->code = BT_TIMEOUT;
        (void)snprintf(err->msg, sizeof err->msg, "no event");
        return BT_TIMEOUT;
    }
    used[i] = true;
    if (given[i][2] == '!') {
        event = cJSON_Parse(given[i] + 4);
        return refuse(event, err);
    }
    event = cJSON_Parse(given[i] + 2);
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, "type"));
    const char *plan = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, "planId"));
    const cJSON *seq = cJSON_GetObjectItemCaseSensitive(event, "seq");
    seen = seq != NULL ? (uint64_t)seq->valuedouble : seen + 1;
    *ret =
        (struct bt_event){seen, type != NULL ? type : "", plan != NULL ? plan : "", given[i] + 2};
    return BT_OK;
}

WRAPPED(void, bt_watch_close, struct bt_watch *w)
{
    (void)w;
}

WRAPPED(msec, clock_wall_ms, void)
{
    return (msec)NOW_S * 1000 + world_ms() - WORLD_START_MS;
}

/* The keys of credentials do not stay in memory. */
static int wiped;

static void tell_wiped(void)
{
    (void)fprintf(asked, "> %d credentials are wiped\n", wiped);
}

WRAPPED(void, explicit_bzero, void *at, size_t n)
{
    memset(at, 0, n);
    if (n == sizeof(struct credential) && wiped++ == 0) {
        (void)atexit(tell_wiped);
    }
}

/* Keys that the command line makes count up. */
WRAPPED(struct uuid, uuid_new, void)
{
    static uint8_t n;
    struct uuid id = {{0}};

    id.b[15] = ++n;
    return id;
}

/* ---- a command line in a process of its own ---- */

/* Words, with '...' around those that have blanks. */
static int split(char *line, char **words)
{
    int n = 0;

    words[n++] = (char *)(uintptr_t) "baton";
    for (char *at = line; *at != 0 && n < WORDS_MAX - 1;) {
        const bool quoted = *at == '\'';
        char *end;
        at += quoted;
        end = strchr(at, quoted ? '\'' : ' ');
        words[n++] = at;
        if (end == NULL) {
            break;
        }
        *end = 0;
        at = end + 1;
        while (*at == ' ') {
            at++;
        }
    }
    words[n] = NULL;
    return n;
}

static int open_in(const char *name, int flags)
{
    char path[256];
    int fd;

    (void)snprintf(path, sizeof path, "%s.%s", dir, name);
    fd = open(path, flags | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    return fd;
}

static void run_child(char *line)
{
    static const char *const env[][2] = {
        {"TZ", "UTC"},     {"LC_ALL", "C.UTF-8"}, {"COLUMNS", "100"},  {"TERM", "dumb"},
        {"NO_COLOR", "1"}, {"BATON_PAGER", ""},   {"PATH", "/nowhere"}};
    char *words[WORDS_MAX];
    const int n = split(line, words);

    (void)umask(022);
    (void)alarm(30); /* a command that waits for what does not come */
    (void)clearenv();
    for (size_t i = 0; i < sizeof env / sizeof env[0]; i++) {
        (void)setenv(env[i][0], env[i][1], 1);
    }
    (void)setenv("HOME", dir, 1);
    (void)setenv("BATON_STATE", dir, 1);
    if (chdir(dir) != 0 || dup2(open_in("in", O_RDONLY), 0) < 0 ||
        dup2(open_in("out", O_WRONLY | O_CREAT | O_TRUNC), 1) < 0 ||
        dup2(open_in("err", O_WRONLY | O_CREAT | O_TRUNC), 2) < 0) {
        _exit(99);
    }
    world_terminal_take();
    asked = fdopen(open_in("asked", O_WRONLY | O_CREAT | O_TRUNC), "w");
    assert_int_equal(setvbuf(asked, NULL, _IOLBF, 0), 0); /* it may become another program */
    rig_begin(dir);
    world_begin(asked, next_happening, next_line() >= 0);
    exit(cli_entry(n, words));
}

/* Appends the file's lines, each after `lead`; the directory is DIR. */
static void tell_file(const char *path, const char *lead, struct buf *out)
{
    static char text[OUT_MAX];
    FILE *f = fopen(path, "re");
    size_t n;

    assert_non_null(f);
    n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    assert_int_equal(fclose(f), 0);
    for (const char *at = text; *at != 0;) {
        const size_t len = strcspn(at, "\n");
        buf_add_cstr(out,
                     lead[0] != 0 || at[0] == '>' ? lead : "> "); /* a request of several lines */
        for (size_t i = 0; i < len;) {
            const bool is_dir = strncmp(at + i, dir, strlen(dir)) == 0;
            if (is_dir) {
                buf_add_cstr(out, "DIR");
            } else {
                buf_add_byte(out, (uint8_t)at[i]);
            }
            i += is_dir ? strlen(dir) : 1;
        }
        buf_add_cstr(out, at[len] == 0 ? "\\\n" : "\n"); /* a last line without its end */
        at += len + (at[len] != 0);
    }
}

static void tell(const char *name, const char *lead, struct buf *out)
{
    char path[256];

    (void)snprintf(path, sizeof path, "%s.%s", dir, name);
    tell_file(path, lead, out);
    (void)unlink(path);
}

static void show(const char *name, struct buf *out);

/* A line of a folder. */
static void show_one(const char *name, struct buf *out)
{
    struct stat st;
    char path[1024];

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(lstat(path, &st), 0);
    if (S_ISDIR(st.st_mode)) {
        buf_printf(out, ": %03o %s/\n", (unsigned)st.st_mode & 0777, name);
        show(name, out);
    } else {
        buf_printf(out, ": %03o %s%s, %lld bytes\n", (unsigned)st.st_mode & 0777, name,
                   S_ISLNK(st.st_mode) ? ", a link" : "", (long long)st.st_size);
    }
}

/* What is at the path: the text of a file, the modes, sizes and names of what is in a folder. */
static void show(const char *name, struct buf *out)
{
    struct dirent **list;
    struct stat st;
    char path[512];
    int n;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    if (lstat(path, &st) != 0) {
        buf_printf(out, ": %s is not there\n", name);
    } else if (S_ISDIR(st.st_mode)) {
        n = scandir(path, &list, NULL, alphasort);
        for (int i = 0; i < n; i++) {
            char inner[768];
            (void)snprintf(inner, sizeof inner, "%s/%s", name, list[i]->d_name);
            if (strcmp(list[i]->d_name, ".") != 0 && strcmp(list[i]->d_name, "..") != 0) {
                show_one(inner, out);
            }
            free(list[i]);
        }
        free(list);
    } else {
        tell_file(path, ": ", out);
    }
}

/* The line with the directory in the place of DIR; of the case. */
static char *with_dir(const char *line)
{
    char *copy = calloc(1, strlen(line) * 8 + 1);
    char *to = copy;

    assert_non_null(copy);
    assert_true(copies_n < COPIES_MAX);
    while (*line != 0) {
        const bool here = strncmp(line, "DIR", 3) == 0 && (to == copy || !isalnum(to[-1]));
        const size_t n = here ? strlen(dir) : 1;
        memcpy(to, here ? dir : line, n);
        to += n;
        line += here ? 3 : 1;
    }
    copies[copies_n++] = copy;
    return copy;
}

static void run_line(const char *line, struct buf *out)
{
    char *copy = strdup(line);
    int status = 0;
    struct buf terminal;
    const pid_t pid = fork();

    assert_non_null(copy);
    assert_true(pid >= 0);
    if (pid == 0) {
        run_child(copy);
    }
    free(copy);
    buf_init(&terminal, OUT_MAX);
    world_terminal_read(&terminal);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    tell("asked", "", out);
    tell("out", "| ", out);
    tell("err", "! ", out);
    buf_add(out, terminal.at, terminal.len);
    buf_done(&terminal);
    for (int i = 0; i < shown_n; i++) {
        show(shown[i], out);
    }
    while (copies_n > 0) {
        free(copies[--copies_n]);
    }
    buf_printf(out, "= %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status));
    memset(used, 0, sizeof used);
    given_n = 0;
    shown_n = 0;
    rig_forget();
}

static void write_in(const char *path, const char *mode, const char *text)
{
    FILE *f = fopen(path, mode);

    assert_non_null(f);
    assert_true(fprintf(f, "%s\n", text) > 0);
    assert_int_equal(fclose(f), 0);
}

/* The folders that a file is in. */
static void make_dirs(char *path)
{
    for (char *at = path + strlen(dir) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = 0;
        (void)mkdir(path, 0700);
        *at = '/';
    }
}

static void take_file(const char *line, mode_t mode)
{
    const size_t n = strcspn(line, " ");
    char *text = strdup(line + n + (line[n] != 0));
    char path[512];
    char *at;

    assert_non_null(text);
    (void)snprintf(path, sizeof path, "%s/%.*s", dir, (int)n, line);
    make_dirs(path);
    while ((at = strstr(text, "\\n")) != NULL) {
        *at = '\n';
        memmove(at + 1, at + 2, strlen(at + 2) + 1);
    }
    write_in(path, "we", text);
    assert_int_equal(chmod(path, mode), 0);
    free(text);
}

/* A line about a file, before a command line. */
static void take_place(const char *line)
{
    char path[512];
    char *rest;

    if (line[0] == 'f') {
        take_file(line + 2, 0600);
    } else if (line[0] == 'x') {
        take_file(line + 2, 0700);
    } else if (line[0] == 'd') {
        (void)snprintf(path, sizeof path, "%s/%s/", dir, line + 2);
        make_dirs(path);
    } else if (line[0] == 'm') {
        const mode_t mode = (mode_t)strtoul(line + 2, &rest, 8);
        (void)snprintf(path, sizeof path, "%s/%s", dir, rest + 1);
        assert_int_equal(chmod(path, mode), 0);
    } else if (line[0] == 's') {
        char to[256];
        (void)snprintf(to, sizeof to, "%.*s", (int)strcspn(line + 2, " "), line + 2);
        (void)snprintf(path, sizeof path, "%s/%s", dir, line + 3 + strlen(to));
        assert_int_equal(symlink(to, path), 0);
    }
}

/* A line about a case, after its command line. */
static void take_part(const char *line, const char *in)
{
    if (line[0] == 'i') {
        write_in(in, "ae", line + 2);
    } else if (line[0] == 't') {
        world_terminal_open(line + 2);
    } else if (line[0] == 'r') {
        assert_true(shown_n < SHOWN_MAX);
        shown[shown_n++] = line + 2;
    } else if (line[0] == '<' || line[0] == 'e') {
        assert_true(given_n < LINES_MAX);
        given[given_n++] = line;
    } else if (line[0] != 0) {
        rig_take(line);
    }
}

static void run_cases(const char *file)
{
    char *was = golden_read(file);
    char *text = strdup(was);
    char *command = NULL;
    char in[80];
    struct buf out;
    char *end;

    assert_non_null(text);
    buf_init(&out, GOLDEN_MAX);
    (void)snprintf(dir, sizeof dir, "/tmp/baton-asked-XXXXXX");
    assert_non_null(mkdtemp(dir));
    (void)snprintf(in, sizeof in, "%s.in", dir);
    write_in(in, "we", "");
    assert_int_equal(truncate(in, 0), 0);
    for (char *line = text; line != NULL && *line != 0; line = end) {
        bool of_case;
        end = strchr(line, '\n');
        if (end != NULL) {
            *end++ = 0;
        }
        if (line[0] != 0 && strchr(">|!=:", line[0]) != NULL) {
            continue;
        }
        of_case = line[0] != 0 && strchr("<eirlwvt", line[0]) != NULL;
        if (command != NULL && !of_case) {
            run_line(command, &out);
            command = NULL;
            assert_int_equal(truncate(in, 0), 0);
        }
        buf_printf(&out, "%s\n", line);
        if (line[0] == '#') {
            assert_int_equal(tree_drop(dir), 0);
            assert_int_equal(mkdir(dir, 0700), 0);
        } else if (line[0] == '$') {
            command = with_dir(line) + 2;
        } else if (of_case) {
            take_part(with_dir(line), in);
        } else if (line[0] != 0 && line[1] == ' ') {
            take_place(with_dir(line));
        }
    }
    if (command != NULL) {
        run_line(command, &out);
    }
    assert_int_equal(tree_drop(dir), 0);
    assert_int_equal(unlink(in), 0);
    golden_keep(file, was, buf_cstr(&out));
    buf_done(&out);
    free(text);
    free(was);
}

static void each_command_line_asks_prints_and_leaves_what_it_did(void **state)
{
    (void)state;
    run_cases(CASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_command_line_asks_prints_and_leaves_what_it_did),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
