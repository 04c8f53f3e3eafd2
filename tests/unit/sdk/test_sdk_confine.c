/* Paths below roots, by the kernel and by the walk without it; and the closed state directory. */
#include "tests/support/cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agents/sdk/confine.h"
#include "agents/sdk/guard.h"
#include "tests/support/tree.h"

enum { PATH = 700 };

static char tree[64];
static bool own_mounts;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

/* openat2 fails so many times with this error. */
static int openat2_fails, openat2_errno, openat2_calls;

long __wrap_syscall(long number, ...)
{
    long a[4];
    va_list args;

    va_start(args, number);
    for (size_t i = 0; i < 4; i++) {
        a[i] = va_arg(args, long);
    }
    va_end(args);
    if (number == SYS_openat2) {
        openat2_calls++;
        if (openat2_fails > 0) {
            openat2_fails--;
            errno = openat2_errno;
            return -1;
        }
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3]);
}

static const char *at(const char *name)
{
    static char path[16][PATH];
    static unsigned n;

    n = (n + 1) % 16;
    (void)snprintf(path[n], sizeof path[n], "%s/%s", tree, name);
    return path[n];
}

static void put(const char *name)
{
    const int fd = open(at(name), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
}

static void dir(const char *name)
{
    assert_int_equal(mkdir(at(name), 0700), 0);
}

static int make(void **state)
{
    (void)state;
    own_mounts =
        unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    (void)snprintf(tree, sizeof tree, "/tmp/baton-confine-XXXXXX");
    assert_non_null(mkdtemp(tree));
    dir("one");
    dir("one/sub");
    dir("one-more");
    dir("two");
    dir("state");
    dir("state/sub");
    put("one/file");
    put("one/sub/deep");
    put("one-more/file");
    put("two/second");
    put("state/token");
    put("state/sub/deep");
    assert_int_equal(setenv("BATON_STATE", at("state"), 1), 0);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    (void)unsetenv("BATON_STATE");
    return tree_drop(tree);
}

/* One root, or `one` and `two`. */
static struct confine roots(bool both, bool walk)
{
    struct confine c = {.n = 0};
    struct bt_error err;

    assert_int_equal(confine_add(&c, at("one"), &err), BT_OK);
    if (both) {
        assert_int_equal(confine_add(&c, at("two"), &err), BT_OK);
    }
    c.walk = c.walk || walk;
    return c;
}

static char why[BT_ERROR_MSG_MAX];

static enum bt_code opens(const struct confine *c, const char *path, enum confine_kind kind)
{
    struct bt_error err = {.msg = ""};
    struct stat st;
    int fd = -1;
    const enum bt_code code = confine_open(c, str_from(path), kind, &fd, &st, &err);

    if (code == BT_OK) {
        struct stat own;
        assert_int_equal(fstat(fd, &own), 0);
        assert_true(own.st_ino == st.st_ino);
        assert_int_equal(kind == CONFINE_FILE ? S_ISREG(own.st_mode) : S_ISDIR(own.st_mode), 1);
        assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        assert_int_equal(fcntl(fd, F_GETFL) & O_PATH, 0); /* it can be read */
        assert_int_equal(close(fd), 0);
    } else {
        assert_int_equal(fd, -1);
    }
    (void)snprintf(why, sizeof why, "%s", err.msg);
    return code;
}

/* What is opened, or refused, by both ways alike. */
static void both_ways(const char *path, enum confine_kind kind, enum bt_code want,
                      const char *words)
{
    for (int walk = 0; walk < 2; walk++) {
        struct confine c = roots(true, walk == 1);
        const enum bt_code code = opens(&c, path, kind);
        if (code != want || strstr(why, words) == NULL) {
            fail_msg("%s%s: %s, '%s'", path, walk == 1 ? " (walk)" : "", bt_code_name(code), why);
        }
        confine_done(&c);
    }
}

static void a_path_is_found_below_the_roots_in_their_order(void **state)
{
    (void)state;
    both_ways("file", CONFINE_FILE, BT_OK, "");
    both_ways("sub/deep", CONFINE_FILE, BT_OK, "");
    both_ways("./sub//deep", CONFINE_FILE, BT_OK, "");
    both_ways("second", CONFINE_FILE, BT_OK, ""); /* of the second root */
    both_ways("sub", CONFINE_DIR, BT_OK, "");
    both_ways("sub/", CONFINE_DIR, BT_OK, "");
    both_ways(".", CONFINE_DIR, BT_OK, "");
    both_ways(at("one"), CONFINE_DIR, BT_OK, "");
    both_ways(at("one/"), CONFINE_DIR, BT_OK, "");
    both_ways(at("one/file"), CONFINE_FILE, BT_OK, "");
    both_ways(at("two/second"), CONFINE_FILE, BT_OK, "");
    both_ways("none", CONFINE_FILE, BT_NOT_FOUND, "there is no such file");
    both_ways("none/file", CONFINE_FILE, BT_NOT_FOUND, "there is no such file");
    both_ways("file/x", CONFINE_FILE, BT_NOT_FOUND, "there is no such file");
    both_ways("sub", CONFINE_FILE, BT_INVALID, "is a directory; expected a regular file");
    both_ways("file", CONFINE_DIR, BT_INVALID, "is a regular file; expected a directory");
}

/* What the first root has is not looked for in the second. */
static void a_refusal_of_the_first_root_is_the_answer(void **state)
{
    (void)state;
    assert_int_equal(symlink("/etc/passwd", at("one/second")), 0);
    both_ways("second", CONFINE_FILE, BT_UNAUTHORIZED, "leads out of its root");
    assert_int_equal(unlink(at("one/second")), 0);
}

static void nothing_leads_out_of_a_root(void **state)
{
    char roots_named[PATH];

    (void)state;
    (void)snprintf(roots_named, sizeof roots_named, "allowed is what lies below: %s, %s", at("one"),
                   at("two"));
    both_ways("../one-more/file", CONFINE_FILE, BT_UNAUTHORIZED, "leads out of its root");
    both_ways("sub/../../one-more/file", CONFINE_FILE, BT_UNAUTHORIZED, "leads out of its root");
    both_ways(at("one-more/file"), CONFINE_FILE, BT_UNAUTHORIZED, roots_named);
    both_ways(at(""), CONFINE_DIR, BT_UNAUTHORIZED, roots_named);
    both_ways("/", CONFINE_DIR, BT_UNAUTHORIZED, roots_named);
    assert_int_equal(symlink("../one-more", at("one/link")), 0);
    both_ways("link/file", CONFINE_FILE, BT_UNAUTHORIZED, "leads out of its root");
    both_ways("link", CONFINE_DIR, BT_UNAUTHORIZED, "leads out of its root");
    assert_int_equal(unlink(at("one/link")), 0);
}

static void the_kernel_follows_a_link_that_stays_and_the_walk_follows_none(void **state)
{
    struct confine c = roots(false, false);

    (void)state;
    assert_int_equal(symlink("sub", at("one/link")), 0);
    assert_int_equal(symlink("loop", at("one/loop")), 0);
    assert_int_equal(opens(&c, "link/deep", CONFINE_FILE), c.walk ? BT_UNAUTHORIZED : BT_OK);
    assert_int_equal(opens(&c, "loop", CONFINE_FILE), BT_UNAUTHORIZED);
    c.walk = true;
    assert_int_equal(opens(&c, "link/deep", CONFINE_FILE), BT_UNAUTHORIZED);
    assert_int_equal(opens(&c, "link", CONFINE_DIR), BT_UNAUTHORIZED);
    assert_int_equal(opens(&c, "loop", CONFINE_FILE), BT_UNAUTHORIZED);
    confine_done(&c);
    assert_int_equal(unlink(at("one/link")), 0);
    assert_int_equal(unlink(at("one/loop")), 0);
}

/* Whether the walk is needed in a process for which openat2 fails so; 0 = it does not fail. */
static bool needs_walk(int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {.len = 4, .filter = code};
    const pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        const int root = open(tree, O_PATH | O_DIRECTORY);
        if (error != 0 && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)) {
            _exit(2);
        }
        errno = ENOSYS; /* of another call */
        _exit(confine_needs_walk(root) ? 1 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 1;
}

static void an_old_kernel_and_a_sandbox_need_the_walk(void **state)
{
    (void)state;
    assert_true(needs_walk(ENOSYS));
    assert_true(needs_walk(EPERM));
    assert_false(needs_walk(EACCES)); /* of this path */
    assert_false(needs_walk(0));
    assert_false(confine_needs_walk(-1));
}

/* A rename meanwhile, or a signal: it is asked again. */
static void an_open_that_raced_is_tried_eight_times(void **state)
{
    static const int again[] = {EAGAIN, EINTR};
    struct confine c = roots(false, false);

    (void)state;
    if (c.walk) {
        confine_done(&c);
        print_message("SKIPPED: there is no openat2\n");
        skip();
    }
    for (size_t i = 0; i < sizeof again / sizeof again[0]; i++) {
        openat2_errno = again[i];
        openat2_fails = 7;
        openat2_calls = 0;
        assert_int_equal(opens(&c, "file", CONFINE_FILE), BT_OK);
        assert_int_equal(openat2_calls, 8 + 1); /* it is opened twice */
        openat2_fails = 8;
        openat2_calls = 0;
        assert_int_not_equal(opens(&c, "file", CONFINE_FILE), BT_OK);
        assert_int_equal(openat2_calls, 8);
        assert_int_equal(openat2_fails, 0);
    }
    openat2_errno = EACCES; /* is an answer */
    openat2_fails = 1;
    openat2_calls = 0;
    assert_int_equal(opens(&c, "file", CONFINE_FILE), BT_UNAUTHORIZED);
    assert_int_equal(openat2_calls, 1);
    confine_done(&c);
}

static void a_long_name_is_no_name(void **state)
{
    char name[CONFINE_NAME_MAX + 2];
    char below[CONFINE_NAME_MAX + 8];

    (void)state;
    memset(name, 'n', sizeof name);
    name[CONFINE_NAME_MAX] = 0;
    both_ways(name, CONFINE_FILE, BT_NOT_FOUND, "there is no such file");
    (void)snprintf(below, sizeof below, "%s/x", name);
    both_ways(below, CONFINE_FILE, BT_NOT_FOUND, "there is no such file");
    name[CONFINE_NAME_MAX] = 'n';
    name[CONFINE_NAME_MAX + 1] = 0;
    both_ways(name, CONFINE_FILE, BT_INVALID, "a name in it is too long");
    (void)snprintf(below, sizeof below, "%s/x", name);
    both_ways(below, CONFINE_FILE, BT_INVALID, "a name in it is too long");
}

static void a_path_has_no_control_character_and_4095_bytes_at_most(void **state)
{
    static char path[CONFINE_PATH_MAX + 2];
    struct confine c = roots(false, false);

    (void)state;
    assert_int_equal(opens(&c, "a\x1f", CONFINE_FILE), BT_INVALID);
    assert_int_equal(opens(&c, "a\x7f", CONFINE_FILE), BT_INVALID);
    assert_int_equal(opens(&c, "a ", CONFINE_FILE), BT_NOT_FOUND);
    assert_int_equal(opens(&c, "a\x7e", CONFINE_FILE), BT_NOT_FOUND);
    assert_int_equal(opens(&c, "\xC3\xA4", CONFINE_FILE), BT_NOT_FOUND);
    memset(path, '/', sizeof path - 1);
    memcpy(path, ".", 1);
    path[CONFINE_PATH_MAX] = 0;
    assert_int_equal(opens(&c, path, CONFINE_DIR), BT_OK);
    path[CONFINE_PATH_MAX] = '/';
    assert_int_equal(opens(&c, path, CONFINE_DIR), BT_INVALID);
    confine_done(&c);
}

static void without_roots_nothing_is_there(void **state)
{
    struct confine c = {.n = 0};
    char name[CONFINE_NAME_MAX + 1];
    struct bt_error err;
    int fd = -1;

    (void)state;
    assert_int_equal(opens(&c, "file", CONFINE_FILE), BT_UNAUTHORIZED);
    assert_non_null(strstr(why, "(nothing)"));
    assert_int_equal(opens(&c, "/etc/passwd", CONFINE_FILE), BT_UNAUTHORIZED);
    assert_int_equal(confine_open_parent(&c, STR_LIT("file"), false, &fd, name, &err),
                     BT_UNAUTHORIZED);
    assert_non_null(strstr(err.msg, "cannot be written"));
}

static void the_root_of_the_system_may_be_a_root(void **state)
{
    struct confine c = {.n = 0};
    struct bt_error err;

    (void)state;
    assert_int_equal(confine_add(&c, "/", &err), BT_OK);
    assert_int_equal(opens(&c, at("one/file"), CONFINE_FILE), BT_OK);
    assert_int_equal(opens(&c, "/", CONFINE_DIR), BT_OK);
    assert_int_equal(opens(&c, "..", CONFINE_DIR), BT_UNAUTHORIZED);
    assert_non_null(strstr(why, "lies below: /"));
    confine_done(&c);
}

static void a_root_within_a_root_is_its_own_in_any_order(void **state)
{
    static const char *const order[][2] = {{"one", "one/sub"}, {"one/sub", "one"}};
    struct bt_error err;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct confine c = {.n = 0};
        assert_int_equal(confine_add(&c, at(order[i][0]), &err), BT_OK);
        assert_int_equal(confine_add(&c, at(order[i][1]), &err), BT_OK);
        assert_int_equal(opens(&c, at("one/sub/../file"), CONFINE_FILE), BT_UNAUTHORIZED);
        assert_int_equal(opens(&c, at("one/sub/deep"), CONFINE_FILE), BT_OK);
        assert_int_equal(opens(&c, at("one/file"), CONFINE_FILE), BT_OK);
        confine_done(&c);
    }
}

static enum bt_code adds(const char *json, struct bt_error *err)
{
    struct confine c = {.n = 0};
    struct buf doc;
    enum bt_code code;

    buf_init(&doc, 65536);
    assert_int_equal(json_to_doc(str_from(json), NULL, &doc, err), BT_OK);
    code = confine_add_all(&c, doc_from_buf(&doc), "roots", err);
    assert_int_equal(c.n, code == BT_OK ? doc_head(doc_from_buf(&doc)).n : c.n);
    buf_done(&doc);
    confine_done(&c);
    return code;
}

static void a_setting_lists_directories_and_the_wrong_one_is_named(void **state)
{
    struct confine c = {.n = 0};
    struct bt_error err = {.msg = ""};
    char json[PATH];

    (void)state;
    assert_int_equal(confine_add_all(&c, (struct doc){NULL, 0}, "roots", &err), BT_OK);
    assert_int_equal(c.n, 0);
    (void)snprintf(json, sizeof json, "[\"%s\",\"%s\"]", at("one"), at("two"));
    assert_int_equal(adds(json, &err), BT_OK);
    assert_int_equal(adds("{}", &err), BT_INVALID);
    assert_string_equal(err.msg, "roots: expected a list of absolute directories");
    (void)snprintf(json, sizeof json, "[\"%s\",7]", at("one"));
    assert_int_equal(adds(json, &err), BT_INVALID);
    assert_string_equal(err.msg, "roots[1]: expected an absolute directory");
    assert_int_equal(adds("[\"tmp\"]", &err), BT_INVALID);
    assert_string_equal(err.msg, "roots[0]: 'tmp': expected an absolute path");
    (void)snprintf(json, sizeof json, "[\"%s\"]", at("one/file"));
    assert_int_not_equal(adds(json, &err), BT_OK);
}

/* ---- files that will be written ---- */

static void makes(bool walk)
{
    struct confine c = roots(true, walk);
    char name[CONFINE_NAME_MAX + 1];
    struct bt_error err;
    struct stat made;
    struct stat got;
    int fd = -1;

    assert_int_equal(confine_open_parent(&c, STR_LIT("new/dir/file"), false, &fd, name, &err),
                     BT_NOT_FOUND);
    assert_int_equal(confine_open_parent(&c, STR_LIT("new/dir/file"), true, &fd, name, &err),
                     BT_OK);
    assert_string_equal(name, "file");
    assert_int_equal(stat(at("one/new/dir"), &made), 0);
    assert_int_equal(fstat(fd, &got), 0);
    assert_true(made.st_ino == got.st_ino);
    assert_int_equal(close(fd), 0);
    assert_int_equal(confine_open_parent(&c, str_from(at("two/x/file")), true, &fd, name, &err),
                     BT_OK);
    assert_int_equal(close(fd), 0);
    assert_int_equal(confine_open_parent(&c, STR_LIT("new/../file"), true, &fd, name, &err),
                     BT_UNAUTHORIZED);
    assert_int_equal(confine_open_parent(&c, STR_LIT("file/x"), true, &fd, name, &err),
                     BT_NOT_FOUND); /* a file is no directory */
    assert_int_equal(confine_open_parent(&c, str_from(at("one-more/x")), true, &fd, name, &err),
                     BT_UNAUTHORIZED);
    assert_non_null(strstr(err.msg, "is outside"));
    assert_int_equal(confine_open_parent(&c, str_from(at("one")), true, &fd, name, &err),
                     BT_UNAUTHORIZED); /* the root itself */
    confine_done(&c);
    assert_int_equal(rmdir(at("one/new/dir")), 0);
    assert_int_equal(rmdir(at("one/new")), 0);
    assert_int_equal(rmdir(at("two/x")), 0);
}

static void missing_directories_are_made_where_that_is_asked(void **state)
{
    (void)state;
    makes(false);
    makes(true);
}

/* ---- the state directory ---- */

static void the_state_directory_is_closed_through_a_root_above_it(void **state)
{
    struct confine c = {.n = 0};
    char name[CONFINE_NAME_MAX + 1];
    struct bt_error err;
    int fd = -1;

    (void)state;
    assert_int_equal(confine_add(&c, tree, &err), BT_OK);
    assert_int_equal(opens(&c, "state/token", CONFINE_FILE), BT_UNAUTHORIZED);
    assert_non_null(strstr(why, "closed to agents"));
    assert_int_equal(opens(&c, "state", CONFINE_DIR), BT_UNAUTHORIZED);
    assert_int_equal(opens(&c, "one/file", CONFINE_FILE), BT_OK);
    for (int mkdirs = 0; mkdirs < 2; mkdirs++) {
        assert_int_equal(
            confine_open_parent(&c, STR_LIT("state/new"), mkdirs == 1, &fd, name, &err),
            BT_UNAUTHORIZED);
        assert_non_null(strstr(err.msg, "closed to agents"));
        assert_int_equal(
            confine_open_parent(&c, STR_LIT("state/sub/new"), mkdirs == 1, &fd, name, &err),
            BT_UNAUTHORIZED);
    }
    assert_int_equal(confine_open_parent(&c, STR_LIT("state/made/x"), true, &fd, name, &err),
                     BT_UNAUTHORIZED);
    assert_int_equal(access(at("state/made"), F_OK), -1);
    confine_done(&c);
}

static bool is_state(const char *name, int flags)
{
    const int fd = open(at(name), flags | O_CLOEXEC);
    bool yes;

    assert_true(fd >= 0);
    yes = guard_is_state(fd);
    assert_int_equal(close(fd), 0);
    return yes;
}

static void what_lies_in_the_state_directory_is_known_by_its_place(void **state)
{
    (void)state;
    assert_true(is_state("state", O_PATH));
    assert_true(is_state("state", O_RDONLY));
    assert_true(is_state("state/sub", O_PATH));
    assert_true(is_state("state/token", O_RDONLY));
    assert_true(is_state("state/sub/deep", O_RDONLY));
    assert_false(is_state("one", O_PATH));
    assert_false(is_state("one/file", O_RDONLY));
    assert_false(is_state("", O_PATH)); /* above it */
    assert_false(is_state("/", O_PATH));
}

static void a_second_name_outside_is_closed_too(void **state)
{
    (void)state;
    assert_int_equal(link(at("state/token"), at("one/linked")), 0);
    assert_int_equal(link(at("state/sub/deep"), at("one/linked-deep")), 0);
    assert_int_equal(link(at("one/file"), at("one/twice")), 0);
    assert_true(is_state("one/linked", O_RDONLY));
    assert_true(is_state("one/linked-deep", O_RDONLY));
    assert_false(is_state("one/twice", O_RDONLY)); /* no name of it is there */
    assert_int_equal(unlink(at("one/linked")), 0);
    assert_int_equal(unlink(at("one/linked-deep")), 0);
    assert_int_equal(unlink(at("one/twice")), 0);
}

/* What is too deep to be searched may hold the file. */
static void sixteen_levels_are_searched_and_what_is_below_counts_as_closed(void **state)
{
    enum { LEVELS = 16 };
    char name[PATH] = "state";

    (void)state;
    assert_int_equal(link(at("one/file"), at("one/twice")), 0);
    for (int i = 1; i < LEVELS; i++) {
        strncat(name, "/d", sizeof name - strlen(name) - 1);
        dir(name);
    }
    assert_false(is_state("one/twice", O_RDONLY));
    strncat(name, "/d", sizeof name - strlen(name) - 1);
    dir(name);
    assert_true(is_state("one/twice", O_RDONLY));
    assert_false(is_state("two/second", O_RDONLY)); /* it has one name: it is not there */
    strncat(name, "/file", sizeof name - strlen(name) - 1);
    put(name);
    assert_true(is_state(name, O_RDONLY)); /* by its directory */
    assert_int_equal(unlink(at(name)), 0);
    *strrchr(name, '/') = 0;
    for (int i = LEVELS; i > 0; i--) {
        assert_int_equal(rmdir(at(name)), 0);
        *strrchr(name, '/') = 0;
    }
    assert_int_equal(unlink(at("one/twice")), 0);
}

static void only_the_state_directory_itself_is_its_root(void **state)
{
    static const struct {
        const char *name;
        bool yes;
    } cases[] = {{"state", true}, {"state/sub", false}, {"one", false}, {"", false}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int fd = open(at(cases[i].name), O_PATH | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(guard_is_state_root(fd), cases[i].yes);
        assert_int_equal(close(fd), 0);
    }
    assert_false(guard_is_state_root(-1));
}

static bool is_linked(const char *name)
{
    const int except = open(at("state/sub"), O_PATH | O_CLOEXEC);
    const int fd = open(at(name), O_RDONLY | O_CLOEXEC);
    bool yes;

    assert_true(except >= 0 && fd >= 0);
    yes = guard_is_linked(fd, except);
    assert_int_equal(close(fd), 0);
    assert_int_equal(close(except), 0);
    return yes;
}

static void a_name_in_the_state_directory_counts_but_for_one_subdirectory(void **state)
{
    (void)state;
    assert_false(is_linked("state/token")); /* it has one name */
    assert_false(is_linked("state/sub/deep"));
    assert_int_equal(link(at("state/sub/deep"), at("one/linked")), 0);
    assert_false(is_linked("one/linked"));
    assert_int_equal(link(at("state/sub/deep"), at("state/other")), 0);
    assert_true(is_linked("one/linked"));
    assert_true(is_linked("state/sub/deep"));
    assert_int_equal(unlink(at("state/other")), 0);
    assert_int_equal(unlink(at("one/linked")), 0);
    assert_int_equal(setenv("BATON_STATE", at("none"), 1), 0);
    assert_false(is_linked("state/token"));
    assert_int_equal(setenv("BATON_STATE", at("state"), 1), 0);
}

/* A bind mount shows the directory, or a part of it, at another place. */
static void a_mount_of_it_or_of_a_part_is_closed(void **state)
{
    static const struct {
        const char *from, *to;
        bool yes;
    } cases[] = {{"state", "one/m-whole", true},
                 {"state/sub", "one/m-part", true},
                 {"", "one/m-above", false},
                 {"two", "one/m-other", false}};

    (void)state;
    if (!own_mounts) {
        print_message("SKIPPED: a bind mount needs root\n");
        return;
    }
    put("one/m-file");
    assert_int_equal(mount(at("state/token"), at("one/m-file"), NULL, MS_BIND, NULL), 0);
    assert_true(is_state("one/m-file", O_RDONLY));
    assert_true(is_linked("one/m-file"));
    assert_int_equal(umount(at("one/m-file")), 0);
    assert_int_equal(unlink(at("one/m-file")), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dir(cases[i].to);
        assert_int_equal(mount(at(cases[i].from), at(cases[i].to), NULL, MS_BIND, NULL), 0);
        assert_int_equal(is_state(cases[i].to, O_PATH), cases[i].yes);
        assert_int_equal(umount(at(cases[i].to)), 0);
        assert_int_equal(rmdir(at(cases[i].to)), 0);
    }
}

static void without_a_state_directory_nothing_is_closed(void **state)
{
    (void)state;
    assert_int_equal(setenv("BATON_STATE", at("none"), 1), 0);
    assert_false(is_state("state/token", O_RDONLY));
    assert_false(is_state("state", O_PATH));
    assert_int_equal(setenv("BATON_STATE", at("state"), 1), 0);
    assert_true(is_state("state/token", O_RDONLY));
}

static unsigned descriptors(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 256; fd++) {
        n += fcntl(fd, F_GETFD) >= 0;
    }
    return n;
}

/* Each refusal and each look gives its descriptors back. */
static void no_look_leaves_a_descriptor_open(void **state)
{
    const unsigned before = descriptors();

    (void)state;
    a_path_is_found_below_the_roots_in_their_order(state);
    nothing_leads_out_of_a_root(state);
    the_kernel_follows_a_link_that_stays_and_the_walk_follows_none(state);
    a_long_name_is_no_name(state);
    the_state_directory_is_closed_through_a_root_above_it(state);
    what_lies_in_the_state_directory_is_known_by_its_place(state);
    missing_directories_are_made_where_that_is_asked(state);
    a_second_name_outside_is_closed_too(state);
    sixteen_levels_are_searched_and_what_is_below_counts_as_closed(state);
    only_the_state_directory_itself_is_its_root(state);
    a_name_in_the_state_directory_counts_but_for_one_subdirectory(state);
    a_mount_of_it_or_of_a_part_is_closed(state);
    a_setting_lists_directories_and_the_wrong_one_is_named(state);
    assert_int_equal(descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_found_below_the_roots_in_their_order),
        cmocka_unit_test(a_refusal_of_the_first_root_is_the_answer),
        cmocka_unit_test(nothing_leads_out_of_a_root),
        cmocka_unit_test(the_kernel_follows_a_link_that_stays_and_the_walk_follows_none),
        cmocka_unit_test(an_old_kernel_and_a_sandbox_need_the_walk),
        cmocka_unit_test(an_open_that_raced_is_tried_eight_times),
        cmocka_unit_test(a_long_name_is_no_name),
        cmocka_unit_test(a_path_has_no_control_character_and_4095_bytes_at_most),
        cmocka_unit_test(without_roots_nothing_is_there),
        cmocka_unit_test(the_root_of_the_system_may_be_a_root),
        cmocka_unit_test(a_root_within_a_root_is_its_own_in_any_order),
        cmocka_unit_test(a_setting_lists_directories_and_the_wrong_one_is_named),
        cmocka_unit_test(missing_directories_are_made_where_that_is_asked),
        cmocka_unit_test(the_state_directory_is_closed_through_a_root_above_it),
        cmocka_unit_test(what_lies_in_the_state_directory_is_known_by_its_place),
        cmocka_unit_test(a_second_name_outside_is_closed_too),
        cmocka_unit_test(sixteen_levels_are_searched_and_what_is_below_counts_as_closed),
        cmocka_unit_test(only_the_state_directory_itself_is_its_root),
        cmocka_unit_test(a_name_in_the_state_directory_counts_but_for_one_subdirectory),
        cmocka_unit_test(a_mount_of_it_or_of_a_part_is_closed),
        cmocka_unit_test(without_a_state_directory_nothing_is_closed),
        cmocka_unit_test(no_look_leaves_a_descriptor_open),
    };

    return cmocka_run_group_tests(tests, make, drop);
}
