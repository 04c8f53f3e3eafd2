/*
 * What batond does with its command line, its environment and its configuration, in entry_told.txt.
 * BATON_WRITE=1 writes what follows a command line anew: read the difference.
 *
 *     ## What the command line is about. It has an empty directory.
 *     f policy: {}            a line of DIR/baton.yaml; DIR in it is the directory
 *     e NAME=VALUE            of the environment
 *     w fail FUNCTION         this one says that it cannot
 *     w files SOFT HARD       how many files may be open
 *     w shards N              of the fleet
 *     w stop                  while they are counted
 *     w shared                others may read the file whose lines follow
 *     $ --state DIR/state     the command line
 *     > call                  what it calls, in this order
 *     L warn supervisor.start text
 *     | text                  standard output
 *     ! text                  standard error
 *     = 0                     the exit code
 */
#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/buf.h"
#include "protocol/base/hide.h"
#include "protocol/base/log.h"
#include "protocol/client/state.h"
#include "supervisor/children.h"
#include "supervisor/entry.h"
#include "supervisor/journal/owner.h"
#include "supervisor/node/node.h"
#include "supervisor/spawn/spawner.h"
#include "tests/support/golden.h"
#include "tests/support/tree.h"

enum { WORDS_MAX = 32, TEXT_MAX = 1 << 16 };

static char dir[64];
static const char *fails = "";
static struct rlimit files = {1024, 524288};
static unsigned shards = 1;
static bool stop, shared;
static FILE *told;

#define WRAPPED(type, name, ...)                                                                   \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

static bool must_fail(const char *name)
{
    return strcmp(fails, name) == 0;
}

static enum bt_code answer(const char *name, struct bt_error *err)
{
    return must_fail(name) ? err_set(err, BT_IO, "%s cannot", name) : BT_OK;
}

static void sink(enum log_level level, const char *event, const char *text, void *self)
{
    static const char *const names[] = {"err", "warn", "info", "debug"};

    (void)self;
    (void)fprintf(told, "L %s %s %s\n", names[level], event, text);
}

void __real_log_setup(enum log_level max_level, log_sink to, void *self);
WRAPPED(void, log_setup, enum log_level max_level, log_sink to, void *self)
{
    assert_true(to == NULL && self == NULL);
    (void)fprintf(told, "> log_setup %d\n", (int)max_level);
    __real_log_setup(max_level, sink, NULL);
}

WRAPPED(void, log_use_journal_prefix, bool on)
{
    (void)fprintf(told, "> log_use_journal_prefix %d\n", on);
}

WRAPPED(void, hide_process, void)
{
    (void)fprintf(told, "> hide_process\n");
}

WRAPPED(int, spawner_main, int argc, char **argv)
{
    (void)fprintf(told, "> spawner_main %d %s\n", argc, argv[argc - 1]);
    return 42;
}

int __real_getrlimit(int what, struct rlimit *ret);
WRAPPED(int, getrlimit, int what, struct rlimit *ret)
{
    assert_int_equal(what, RLIMIT_NOFILE);
    *ret = files;
    return must_fail("getrlimit") ? -1 : 0;
}

WRAPPED(int, setrlimit, int what, const struct rlimit *to)
{
    assert_int_equal(what, RLIMIT_NOFILE);
    (void)fprintf(told, "> setrlimit %lu %lu\n", to->rlim_cur, to->rlim_max);
    return must_fail("setrlimit") ? -1 : 0;
}

WRAPPED(int, mallopt, int what, int value)
{
    (void)fprintf(told, "> mallopt %s %d\n",
                  what == M_MMAP_THRESHOLD   ? "M_MMAP_THRESHOLD"
                  : what == M_ARENA_MAX      ? "M_ARENA_MAX"
                  : what == M_TRIM_THRESHOLD ? "M_TRIM_THRESHOLD"
                                             : "?",
                  value);
    return 1;
}

WRAPPED(enum bt_code, state_dir_make, const char *at, struct bt_error *err)
{
    (void)fprintf(told, "> state_dir_make %s\n", at);
    return answer("state_dir_make", err);
}

WRAPPED(enum bt_code, state_token_make, const char *at, char ret[STATE_TOKEN_LEN + 1],
        struct bt_error *err)
{
    (void)fprintf(told, "> state_token_make %s\n", at);
    (void)snprintf(ret, STATE_TOKEN_LEN + 1, "a token");
    return answer("state_token_make", err);
}

WRAPPED(enum bt_code, node_count_shards, const char *url, uint32_t lease_ms, uint32_t *ret,
        bool *ret_stop, struct bt_error *err)
{
    (void)fprintf(told, "> node_count_shards %s %u\n", url, lease_ms);
    *ret = shards;
    *ret_stop = stop;
    return answer("node_count_shards", err);
}

WRAPPED(int, node_run, const struct node_options *o, char **argv)
{
    assert_int_equal(strlen(o->config), CONFIG_HASH_LEN);
    (void)fprintf(told,
                  "> node_run state=%s fleet=%s remote=%s name=%s lease_ms=%u gateway=%s shards=%u "
                  "ready_fd=%d %s\n",
                  o->state_dir, o->fleet_url, o->remote, o->name, o->lease_ms,
                  o->gateway != NULL ? strrchr(o->gateway[0], '/') + 1 : "none", o->shards,
                  o->ready_fd, argv[1]);
    return 43;
}

enum bt_code __real_children_of_config(const struct config *c, struct daemon_options *opt,
                                       struct bt_error *err);
WRAPPED(enum bt_code, children_of_config, const struct config *c, struct daemon_options *opt,
        struct bt_error *err)
{
    return must_fail("children_of_config") ? answer("children_of_config", err)
                                           : __real_children_of_config(c, opt, err);
}

WRAPPED(int, daemon_run, const struct daemon_options *o, char **argv)
{
    const struct config_request *request = o->reload->request;

    assert_ptr_equal(o->reload->live, o->reload->started);
    (void)fprintf(told,
                  "> daemon_run state=%s token=%.*s artifacts=%s shard=%u/%u gateway=%s "
                  "ready_fd=%d%s %s\n",
                  o->engine.state_dir, STR_ARG(o->engine.token),
                  o->artifacts.root != NULL ? o->artifacts.root : "none", o->fleet.shard,
                  o->fleet.shards, o->config->gateway.command != NULL ? "yes" : "none", o->ready_fd,
                  o->was_full ? " full" : "", argv[1]);
    (void)fprintf(told, ">   reloads %s%s", request->file != NULL ? request->file : "its own file",
                  request->can_set_apart != NULL ? " apart" : "");
    for (uint32_t i = 0; i < request->n_flags; i++) {
        (void)fprintf(told, " %s=%s", request->flags[i].key, request->flags[i].value);
    }
    (void)fprintf(told, "%s\n", getenv(DAEMON_REPLACED) != NULL ? " replaced" : "");
    return 44;
}

/* ---- a command line in a process of its own ---- */

static int open_in(const char *name, int flags)
{
    char path[256];
    int fd;

    (void)snprintf(path, sizeof path, "%s.%s", dir, name);
    fd = open(path, flags | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    return fd;
}

/* Words; DIR is the directory. */
static int split(char *line, char **words)
{
    static char names[WORDS_MAX][1024];
    int n = 0;

    words[n++] = (char *)(uintptr_t) "batond";
    for (char *at = line, *end; *at != 0 && n < WORDS_MAX - 1; at = end) {
        const bool is_dir = strncmp(at, "DIR", 3) == 0;
        end = at + strcspn(at, " ");
        end += *end != 0 ? (*end = 0, 1) : 0;
        (void)snprintf(names[n], sizeof names[n], "%s%s", is_dir ? dir : "", at + (is_dir ? 3 : 0));
        words[n] = names[n];
        n++;
    }
    words[n] = NULL;
    return n;
}

static void run_child(char *line)
{
    char *words[WORDS_MAX];
    const int n = split(line, words);

    (void)alarm(30);
    (void)setenv("HOME", dir, 1);
    (void)setenv("BATON_BIN", "/bin", 1);
    if (chdir(dir) != 0 || dup2(open_in("out", O_WRONLY | O_CREAT | O_TRUNC), 1) < 0 ||
        dup2(open_in("err", O_WRONLY | O_CREAT | O_TRUNC), 2) < 0) {
        _exit(99);
    }
    if (dup2(1, 9) != 9) { /* a descriptor for --ready-fd */
        _exit(99);
    }
    told = fdopen(open_in("told", O_WRONLY | O_CREAT | O_TRUNC), "w");
    __real_log_setup(LOG_INFO, sink, NULL);
    const int code = batond_entry(n, words);
    (void)fflush(NULL);
    _exit(code);
}

/* Appends the file's lines, each after `lead`; the directory is DIR. */
static void tell(const char *name, const char *lead, struct buf *out)
{
    static char text[TEXT_MAX];
    char path[256];
    FILE *f;
    size_t n;

    (void)snprintf(path, sizeof path, "%s.%s", dir, name);
    f = fopen(path, "re");
    assert_non_null(f);
    n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    assert_int_equal(fclose(f), 0);
    (void)unlink(path);
    for (const char *at = text; *at != 0;) {
        const size_t len = strcspn(at, "\n");
        buf_add_cstr(out, lead);
        for (size_t i = 0; i < len;) {
            const bool is_dir = strncmp(at + i, dir, strlen(dir)) == 0;
            if (is_dir) {
                buf_add_cstr(out, "DIR");
            } else {
                buf_add_byte(out, (uint8_t)at[i]);
            }
            i += is_dir ? strlen(dir) : 1;
        }
        buf_add_cstr(out, "\n");
        at += len + (at[len] != 0);
    }
}

static void run_line(const char *line, struct buf *out)
{
    char copy[2048];
    int status = 0;
    pid_t pid;

    (void)snprintf(copy, sizeof copy, "%s", line);
    (void)fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        run_child(copy);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    tell("told", "", out);
    tell("out", "| ", out);
    tell("err", "! ", out);
    if (!WIFEXITED(status)) {
        fail_msg("%s: ended by signal %d", line, WTERMSIG(status));
    }
    buf_printf(out, "= %d\n", WEXITSTATUS(status));
}

static void add_line(const char *text)
{
    FILE *f;
    char path[256];

    (void)snprintf(path, sizeof path, "%s/baton.yaml", dir);
    f = fopen(path, "ae");
    assert_non_null(f);
    for (const char *at; (at = strstr(text, "DIR")) != NULL; text = at + 3) {
        assert_true(fprintf(f, "%.*s%s", (int)(at - text), text, dir) > 0);
    }
    assert_true(fprintf(f, "%s\n", text) > 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, shared ? 0644 : 0600), 0);
}

static void set_world(const char *text)
{
    static char name[64];

    if (sscanf(text, "fail %63s", name) == 1) {
        fails = name;
    } else if (strcmp(text, "stop") == 0) {
        stop = true;
    } else if (strcmp(text, "shared") == 0) {
        shared = true;
    } else if (sscanf(text, "shards %u", &shards) != 1) {
        assert_int_equal(sscanf(text, "files %lu %lu", &files.rlim_cur, &files.rlim_max), 2);
    }
}

static void begin_case(void)
{
    if (dir[0] != 0) {
        assert_int_equal(tree_drop(dir), 0);
    }
    (void)snprintf(dir, sizeof dir, "/tmp/baton-entry-XXXXXX");
    assert_non_null(mkdtemp(dir));
    (void)clearenv();
    fails = "";
    files = (struct rlimit){1024, 524288};
    shards = 1;
    stop = shared = false;
}

static void test_a_command_line_is_one_kind_of_process_or_says_why_not(void **state)
{
    char *was;
    const char *write = getenv("BATON_WRITE");
    char *text;
    struct buf out;

    (void)state;
    was = golden_read(TOLD);
    text = strdup(was);
    assert_non_null(text);
    buf_init(&out, GOLDEN_MAX);
    for (char *line = text, *end; *line != 0; line = end) {
        end = line + strcspn(line, "\n");
        end += *end != 0 ? (*end = 0, 1) : 0;
        if (strchr("#few$", line[0]) == NULL && line[0] != 0) {
            continue;
        }
        buf_printf(&out, "%s\n", line);
        if (line[0] == '#') {
            begin_case();
        } else if (line[0] == 'f') {
            add_line(line + 2);
        } else if (line[0] == 'e') {
            assert_int_equal(putenv(line + 2), 0);
        } else if (line[0] == 'w') {
            set_world(line + 2);
        } else if (line[0] == '$') {
            run_line(line[1] != 0 ? line + 2 : "", &out);
        }
    }
    assert_int_equal(tree_drop(dir), 0);
    (void)clearenv();
    if (write != NULL) {
        (void)setenv("BATON_WRITE", "1", 1);
    }
    assert_int_equal(buf_check(&out, NULL), BT_OK);
    golden_keep(TOLD, was, buf_cstr(&out));
    buf_done(&out);
    free(text);
    free(was);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_command_line_is_one_kind_of_process_or_says_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
