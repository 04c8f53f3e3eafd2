/* Which Landlock rules an agent gets, on kernels of each version: a fake one takes the calls. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/spawn/apart.h"
#include "tests/support/cmocka.h"

enum { RULES_MAX = 80, READS = 1 | 4 | 8, WRITES = 0x7fff & ~(1 << 6 | 1 << 11) };

static struct {
    long abi; /* < 0: there is no Landlock */
    size_t attr_bytes;
    uint64_t fs, net, scoped;
    struct {
        char path[128]; /* "" = a port */
        uint64_t access, port;
    } rules[RULES_MAX];
    size_t rules_n, fail_at; /* from 1; 0 = none */
    bool is_full;            /* it makes no ruleset */
} kernel;

static char root[64], state[96];
static int state_fd;

long __wrap_syscall(long number, ...);

static long add_rule(int type, const uint8_t *rule)
{
    char link[64];
    int fd;

    if (kernel.rules_n + 1 == kernel.fail_at) {
        errno = E2BIG;
        return -1;
    }
    assert_true(kernel.rules_n < RULES_MAX);
    memcpy(&kernel.rules[kernel.rules_n].access, rule, 8);
    if (type == 2) {
        memcpy(&kernel.rules[kernel.rules_n].port, rule + 8, 8);
    } else {
        memcpy(&fd, rule + 8, 4);
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        assert_true(readlink(link, kernel.rules[kernel.rules_n].path, 127) > 0);
    }
    kernel.rules_n++;
    return 0;
}

long __wrap_syscall(long number, ...)
{
    va_list args;
    long ret = -1;

    va_start(args, number);
    errno = ENOSYS;
    if (number == SYS_landlock_create_ruleset) {
        const uint64_t *attr = va_arg(args, const uint64_t *);
        const size_t n = va_arg(args, size_t);
        if (attr == NULL) {
            ret = kernel.abi;
        } else if (kernel.is_full) {
            errno = EMFILE;
        } else {
            kernel.attr_bytes = n;
            kernel.fs = attr[0];
            kernel.net = n > 8 ? attr[1] : 0;
            kernel.scoped = n > 16 ? attr[2] : 0;
            ret = open("/dev/null", O_RDONLY | O_CLOEXEC);
        }
    } else if (number == SYS_landlock_add_rule) {
        (void)va_arg(args, int);
        const int type = va_arg(args, int);
        ret = add_rule(type, va_arg(args, const uint8_t *));
    }
    va_end(args);
    return ret;
}

static int arrange(void **unused)
{
    (void)unused;
    (void)snprintf(root, sizeof root, "/tmp/baton-apart-XXXXXX");
    assert_non_null(mkdtemp(root));
    (void)snprintf(state, sizeof state, "%s/state", root);
    assert_int_equal(mkdir(state, 0700), 0);
    state_fd = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(state_fd >= 0);
    memset(&kernel, 0, sizeof kernel);
    kernel.abi = 7;
    return 0;
}

static const char *in_root(const char *name)
{
    static char paths[8][160];
    static int next;
    char *path = paths[next++ % 8];

    (void)snprintf(path, 160, "%s/%s", root, name);
    return path;
}

static void make_file(const char *name)
{
    const int fd = open(in_root(name), O_CREAT | O_WRONLY | O_CLOEXEC, 0700);

    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
}

static int clean(void **unused)
{
    static const char *const names[] = {"state/token", "a/prog", "b/link", "file",
                                        "state/in",    "a",      "b",      "state"};

    (void)unused;
    assert_int_equal(close(state_fd), 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)(unlink(in_root(names[i])) == 0 || rmdir(in_root(names[i])) == 0);
    }
    return rmdir(root);
}

static char why[APART_WHY_BYTES];

static bool makes(bool paths, bool network, const char *const *list, const char *program)
{
    struct apart a = {.paths = paths, .network = network, .ruleset = -1};

    kernel.rules_n = 0;
    const bool made = apart_make_ruleset(&a, list, program, "/nowhere:/bin", state_fd, why);

    if (a.ruleset >= 0) {
        assert_int_equal(close(a.ruleset), 0);
    }
    return made;
}

static const char *const nothing[] = {NULL};

/* The rights of the path; 0: it has no rule. */
static uint64_t rights_of(const char *path)
{
    for (size_t i = 0; i < kernel.rules_n; i++) {
        if (strcmp(kernel.rules[i].path, path) == 0) {
            return kernel.rules[i].access;
        }
    }
    return 0;
}

static void a_kernel_that_is_too_old_is_said_and_nothing_is_weaker(void **unused)
{
    (void)unused;
    kernel.abi = -1;
    assert_false(makes(true, false, nothing, "sh"));
    assert_string_equal(why, "paths: this kernel has no Landlock of version 3 (Function not "
                             "implemented)");
    kernel.abi = 2;
    assert_false(makes(true, false, nothing, "sh"));
    assert_string_equal(why, "paths: this kernel has no Landlock of version 3 (it is older)");
    kernel.abi = 3;
    assert_false(makes(false, true, nothing, "sh"));
    assert_string_equal(why, "network: this kernel has no Landlock of version 4 (it is older)");
    assert_int_equal(kernel.rules_n, 0);
    assert_true(makes(true, false, nothing, "sh"));
    kernel.abi = 4;
    assert_true(makes(false, true, nothing, "sh"));
}

static void each_version_is_asked_for_what_it_has(void **unused)
{
    static const struct {
        long abi;
        size_t bytes;
        uint64_t fs, scoped;
    } versions[] = {{3, 8, 0x7fff, 0},
                    {4, 16, 0x7fff, 0},
                    {5, 16, 0xffff, 0},
                    {6, 24, 0xffff, 3},
                    {7, 24, 0xffff, 3}};

    (void)unused;
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        kernel.abi = versions[i].abi;
        assert_true(makes(true, versions[i].abi > 3, nothing, "sh"));
        assert_int_equal(kernel.attr_bytes, versions[i].bytes);
        assert_int_equal(kernel.fs, versions[i].fs);
        assert_int_equal(kernel.net, versions[i].abi > 3 ? 2 : 0);
        assert_int_equal(kernel.scoped, versions[i].scoped);
    }
    assert_true(makes(false, true, nothing, "sh")); /* the network alone */
    assert_int_equal(kernel.fs, 0);
    assert_int_equal(kernel.rules_n, 0);
}

static void paths_have_the_rights_of_their_entry(void **unused)
{
    char read_dir[170], write_dir[170], read_file[170], write_file[170];
    const char *const list[] = {"paths=",   read_dir, write_dir,        read_file,
                                write_file, "port=7", "memory=1048576", NULL};

    (void)unused;
    assert_int_equal(mkdir(in_root("a"), 0700), 0);
    assert_int_equal(mkdir(in_root("b"), 0700), 0);
    make_file("file");
    make_file("a/prog");
    (void)snprintf(read_dir, sizeof read_dir, "read=%s", in_root("a"));
    (void)snprintf(write_dir, sizeof write_dir, "write=%s", in_root("b"));
    (void)snprintf(read_file, sizeof read_file, "read=%s", in_root("file"));
    (void)snprintf(write_file, sizeof write_file, "write=%s", in_root("a/prog"));
    assert_true(makes(true, false, list, "sh"));
    assert_int_equal(rights_of(in_root("a")), READS);
    assert_int_equal(rights_of(in_root("b")), WRITES);
    assert_int_equal(rights_of(in_root("file")), 1 | 4);                 /* no directory */
    assert_int_equal(rights_of(in_root("a/prog")), 1 | 2 | 4 | 1 << 14); /* but of writing */
    assert_int_equal(rights_of("/usr"), READS);
    assert_int_equal(rights_of("/etc/passwd"), 1 | 4);
    assert_int_equal(rights_of("/dev/null"), 2 | 4 | 1 << 14);
    assert_int_equal(rights_of("/proc"), 0);
    assert_int_equal(rights_of("/"), 0);
    assert_int_equal(rights_of(root), 0);
    for (size_t i = 0; i < kernel.rules_n; i++) {
        assert_int_equal(kernel.rules[i].port, 0); /* the network is free */
    }
}

static void a_program_has_its_directory_and_that_of_its_file(void **unused)
{
    (void)unused;
    assert_int_equal(mkdir(in_root("a"), 0700), 0);
    assert_int_equal(mkdir(in_root("b"), 0700), 0);
    make_file("a/prog");
    assert_int_equal(symlink(in_root("a/prog"), in_root("b/link")), 0);
    assert_true(makes(true, false, nothing, in_root("b/link")));
    assert_int_equal(rights_of(in_root("a")), READS);
    assert_int_equal(rights_of(in_root("b")), READS);
    assert_true(makes(true, false, nothing, in_root("a/prog"))); /* by its own path */
    assert_int_equal(rights_of(in_root("a")), READS);
    assert_int_equal(rights_of(in_root("b")), 0);
    assert_true(makes(true, false, nothing, in_root("a/nobody"))); /* exec will say it */
    assert_int_equal(rights_of(in_root("a")), 0);
    assert_true(makes(true, false, nothing, "a/prog")); /* of a directory that is not known yet */
    assert_int_equal(rights_of(in_root("a")), 0);
}

/* Rights add up: who may read above the state directory may read in it. */
static void no_path_may_have_to_do_with_the_state_directory(void **unused)
{
    static const char *const bad[] = {"state", "state/token", "state/in", ".", "..", "b/link"};
    char entry[200];
    const char *const list[] = {"paths=", entry, NULL};

    (void)unused;
    assert_int_equal(mkdir(in_root("a"), 0700), 0);
    assert_int_equal(mkdir(in_root("b"), 0700), 0);
    assert_int_equal(mkdir(in_root("state/in"), 0700), 0);
    assert_int_equal(symlink(state, in_root("b/link")), 0);
    make_file("state/token");
    make_file("file");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        for (int write = 0; write < 2; write++) {
            (void)snprintf(entry, sizeof entry, "%s=%s", write ? "write" : "read", in_root(bad[i]));
            assert_false(apart_spares_state(list, state_fd, why));
            assert_non_null(strstr(why, "has to do with the state directory"));
            why[0] = 0;
            assert_false(makes(true, false, list, "sh"));
            assert_non_null(strstr(why, "has to do with the state directory"));
        }
    }
    (void)snprintf(entry, sizeof entry, "read=%s", in_root("a"));
    assert_true(apart_spares_state(list, state_fd, why));
    (void)snprintf(entry, sizeof entry, "read=%s", in_root("file"));
    assert_true(apart_spares_state(list, state_fd, why));
    (void)snprintf(entry, sizeof entry, "read=%s", in_root("missing"));
    assert_true(apart_spares_state(list, state_fd, why)); /* it may come */
    assert_false(makes(true, false, list, "sh"));
    assert_non_null(strstr(why, ": No such file or directory"));
    (void)snprintf(entry, sizeof entry, "other=%s", state);
    assert_true(apart_spares_state(list, state_fd, why));
}

static void a_kernel_that_makes_no_ruleset_is_said(void **unused)
{
    (void)unused;
    kernel.is_full = true;
    assert_false(makes(true, false, nothing, "sh"));
    assert_string_equal(why, "paths: landlock: Too many open files");
    assert_false(makes(false, true, nothing, "sh"));
    assert_string_equal(why, "network: landlock: Too many open files");
}

/* What lies in the root is of no directory but that: all of it would be open. */
static void a_program_in_the_root_is_refused(void **unused)
{
    (void)unused;
    assert_false(makes(true, false, nothing, "/tmp"));
    assert_string_equal(why, "paths: / has to do with the state directory");
}

static void a_rule_that_the_kernel_refuses_ends_it(void **unused)
{
    static const char *const list[] = {"port=4711", "port=65535", NULL};

    (void)unused;
    assert_true(makes(false, true, list, "sh"));
    assert_int_equal(kernel.rules_n, 2);
    assert_int_equal(kernel.rules[0].access, 2);
    assert_int_equal(kernel.rules[0].port, 4711);
    assert_int_equal(kernel.rules[1].port, 65535);
    kernel.fail_at = 2;
    assert_false(makes(false, true, list, "sh"));
    assert_string_equal(why, "network: Argument list too long");
    kernel.fail_at = 1;
    assert_false(makes(true, false, list, "sh"));
    assert_non_null(strstr(why, ": Argument list too long"));
}

static void an_agent_reads_its_own_process(void **unused)
{
    char own[64];

    (void)unused;
    (void)snprintf(own, sizeof own, "/proc/%ld", (long)getpid());
    assert_true(apart_allow_own_proc(7));
    assert_int_equal(rights_of(own), READS);
    kernel.fail_at = 2;
    assert_false(apart_allow_own_proc(7));
}

#define RULE(f) cmocka_unit_test_setup_teardown(f, arrange, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(a_kernel_that_is_too_old_is_said_and_nothing_is_weaker),
        RULE(each_version_is_asked_for_what_it_has),
        RULE(paths_have_the_rights_of_their_entry),
        RULE(a_program_has_its_directory_and_that_of_its_file),
        RULE(no_path_may_have_to_do_with_the_state_directory),
        RULE(a_kernel_that_makes_no_ruleset_is_said),
        RULE(a_program_in_the_root_is_refused),
        RULE(a_rule_that_the_kernel_refuses_ends_it),
        RULE(an_agent_reads_its_own_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
