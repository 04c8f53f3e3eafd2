/* What an agent is kept from, by its entries; and the filter of system calls, run by a small
 * machine of classic BPF (linux/filter.h) instead of the kernel. */
#include "tests/support/cmocka.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/spawn/apart.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0u
#endif

static struct apart apart;
static char why[APART_WHY_BYTES];

static int done(void **state)
{
    (void)state;
    apart_done(&apart);
    return 0;
}

static bool parses(const char *one, const char *two)
{
    const char *const list[] = {one, two, NULL};

    apart_done(&apart);
    return apart_parse(&apart, list, why);
}

static void each_entry_has_its_meaning(void **state)
{
    (void)state;
    assert_true(parses(NULL, NULL));
    assert_false(apart.user || apart.paths || apart.network || apart.seccomp);
    assert_int_equal(apart.memory + apart.processes + apart.cpu, 0);
    assert_int_equal(apart.ruleset, -1);
    assert_true(parses("paths=", NULL));
    assert_true(apart.paths && !apart.network && !apart.seccomp && !apart.user);
    assert_true(parses("network=none", NULL));
    assert_true(apart.network && !apart.paths && !apart.seccomp);
    assert_true(parses("seccomp=default", NULL));
    assert_true(apart.seccomp && !apart.paths && !apart.network);
    assert_true(parses("memory=1048576", "processes=7"));
    assert_int_equal(apart.memory, 1048576);
    assert_int_equal(apart.processes, 7);
    assert_true(parses("cpu=150", "memory=2"));
    assert_int_equal(apart.cpu, 150);
    assert_int_equal(apart.memory, 2);
    assert_true(parses("read=/x", "write=/y"));
    assert_true(parses("port=7117", NULL));
    assert_false(apart.paths || apart.network);
}

static void what_is_not_known_is_named(void **state)
{
    static const char *const bad[] = {
        "other=1", "paths",   "pathsx=1",  "network=some", "network=",          "seccomp=strict",
        "user=1",  "user=1:", "user=1:2x", "user=x:2",     "user=1:4294967295", ""};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char want[128];
        if (strcmp(bad[i], "user=1:") == 0) {
            continue; /* no number is 0: of root's group, see below */
        }
        if (parses(bad[i], NULL)) {
            fail_msg("taken: %s", bad[i]);
        }
        (void)snprintf(want, sizeof want, "'%s' is not known to this version", bad[i]);
        assert_string_equal(why, want);
    }
    assert_false(parses("paths=", "other=1"));
}

static void a_user_has_a_group_and_only_root_takes_another_one(void **state)
{
    char own[64];

    (void)state;
    (void)snprintf(own, sizeof own, "user=%u:17", (unsigned)geteuid());
    assert_true(parses(own, NULL));
    assert_true(apart.user);
    assert_int_equal(apart.uid, geteuid());
    assert_int_equal(apart.gid, 17);
    assert_int_equal(parses("user=12345:17", NULL), geteuid() == 0);
}

/* ---- the filter ---- */

/* What the program answers to a call; the jumps and the sums of linux/filter.h that it uses. */
static uint32_t asks(uint32_t arch, uint32_t nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
    const struct seccomp_data data = {.nr = (int)nr, .arch = arch, .args = {a0, a1, a2, 0, 0, 0}};
    uint32_t word = 0;

    for (size_t pc = 0; pc < apart.filter_n; pc++) {
        const struct sock_filter *f = &apart.filter[pc];
        bool yes;
        switch (f->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(f->k + sizeof word <= sizeof data);
            memcpy(&word, (const char *)&data + f->k, sizeof word);
            continue;
        case BPF_ALU | BPF_AND | BPF_K:
            word &= f->k;
            continue;
        case BPF_RET | BPF_K:
            return f->k;
        case BPF_JMP | BPF_JEQ | BPF_K:
            yes = word == f->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            yes = word >= f->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            yes = (word & f->k) != 0;
            break;
        default:
            fail_msg("instruction %zu: 0x%x", pc, f->code);
            return 0;
        }
        pc += yes ? f->jt : f->jf;
    }
    fail_msg("it has no end");
    return 0;
}

static uint32_t call(long nr, uint64_t a0, uint64_t a1, uint64_t a2)
{
    return asks(ARCH, (uint32_t)nr, a0, a1, a2);
}

enum { ALLOW = SECCOMP_RET_ALLOW, NO = SECCOMP_RET_ERRNO | EPERM };
#define NO_SUCH_CALL (SECCOMP_RET_ERRNO | (uint32_t)ENOSYS)

static bool makes(const char *one, const char *two)
{
    return ARCH != 0 && parses(one, two) && apart_make_filter(&apart);
}

static void every_filter_ends_who_calls_another_kernel(void **state)
{
    (void)state;
    if (ARCH == 0) {
        skip();
    }
    for (int i = 0; i < 2; i++) {
        assert_true(makes(i == 0 ? "seccomp=default" : "network=none", NULL));
        assert_int_equal(asks(ARCH ^ 1u, SYS_read, 0, 0, 0), SECCOMP_RET_KILL_PROCESS);
        assert_int_equal(asks(ARCH, 0x40000000u, 0, 0, 0), NO_SUCH_CALL); /* x32 */
        assert_int_equal(asks(ARCH, 0x40000000u + SYS_read, 0, 0, 0), NO_SUCH_CALL);
        assert_int_equal(asks(ARCH, 0x3fffffffu, 0, 0, 0), ALLOW);
        assert_int_equal(call(SYS_read, 0, 0, 0), ALLOW);
        assert_int_equal(call(SYS_io_uring_setup, 0, 0, 0), NO);
        assert_int_equal(call(SYS_io_uring_enter, 0, 0, 0), NO);
        assert_int_equal(call(SYS_io_uring_register, 0, 0, 0), NO);
        assert_true(apart.filter_n <= APART_FILTER_MAX);
    }
}

static void ways_around_the_limits_are_denied(void **state)
{
    static const long denied[] = {
        SYS_ptrace, SYS_process_vm_readv, SYS_kcmp,    SYS_pidfd_getfd,     SYS_bpf,
        SYS_mount,  SYS_umount2,          SYS_unshare, SYS_setns,           SYS_keyctl,
        SYS_reboot, SYS_vhangup,          SYS_syslog,  SYS_perf_event_open, SYS_open_by_handle_at};
    static const long allowed[] = {SYS_openat, SYS_write,  SYS_mmap, SYS_execve,
                                   SYS_exit,   SYS_socket, SYS_kill, SYS_futex};

    (void)state;
    if (ARCH == 0) {
        skip();
    }
    assert_true(makes("seccomp=default", NULL));
    for (size_t i = 0; i < sizeof denied / sizeof denied[0]; i++) {
        assert_int_equal(call(denied[i], 0, 0, 0), NO);
    }
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        assert_int_equal(call(allowed[i], 0, 0, 0), ALLOW);
    }
    assert_true(makes("network=none", NULL)); /* that is not its matter */
    assert_int_equal(call(SYS_ptrace, 0, 0, 0), ALLOW);
    assert_int_equal(call(SYS_clone, CLONE_NEWUSER, 0, 0), ALLOW);
}

static void no_process_gets_namespaces(void **state)
{
    static const uint64_t flags[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                     CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};

    (void)state;
    if (ARCH == 0) {
        skip();
    }
    assert_true(makes("seccomp=default", NULL));
    assert_int_equal(call(SYS_clone3, 0, 0, 0), NO_SUCH_CALL);
    assert_int_equal(call(SYS_clone, 0, 0, 0), ALLOW);
    assert_int_equal(call(SYS_clone, CLONE_VM | CLONE_THREAD | SIGCHLD, 0, 0), ALLOW);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        assert_int_equal(call(SYS_clone, flags[i], 0, 0), NO);
        assert_int_equal(call(SYS_clone, flags[i] | CLONE_VM, 0, 0), NO);
    }
    assert_int_equal(call(SYS_fork, 0, 0, 0), ALLOW);
}

static void of_the_network_there_is_tcp_and_one_question(void **state)
{
    static const struct {
        uint64_t domain, type, protocol;
        uint32_t answer;
    } cases[] = {
        {AF_INET, SOCK_STREAM, 0, ALLOW},
        {AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP, ALLOW},
        {AF_INET6, SOCK_STREAM, IPPROTO_TCP, ALLOW},
        {AF_INET6, SOCK_STREAM, 0, ALLOW},
        {AF_INET, SOCK_STREAM, 262, NO}, /* MPTCP */
        {AF_INET, SOCK_STREAM, 132, NO}, /* SCTP */
        {AF_INET, SOCK_DGRAM, 0, NO},
        {AF_INET6, SOCK_DGRAM, 0, NO},
        {AF_INET, SOCK_RAW, 0, NO},
        {AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0, NO},
        {AF_UNIX, SOCK_STREAM, 0, NO},
        {AF_PACKET, SOCK_RAW, 0, NO},
        {AF_NETLINK, SOCK_DGRAM, NETLINK_SOCK_DIAG, ALLOW},
        {AF_NETLINK, SOCK_DGRAM, NETLINK_ROUTE, NO},
        {AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT, NO},
    };

    (void)state;
    if (ARCH == 0) {
        skip();
    }
    for (int both = 0; both < 2; both++) {
        assert_true(makes("network=none", both == 1 ? "seccomp=default" : NULL));
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            assert_int_equal(call(SYS_socket, cases[i].domain, cases[i].type, cases[i].protocol),
                             cases[i].answer);
        }
        assert_int_equal(call(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0), ALLOW);
        assert_int_equal(call(SYS_connect, 0, 0, 0), ALLOW);
        assert_int_equal(call(SYS_ptrace, 0, 0, 0), both == 1 ? NO : ALLOW);
    }
    assert_true(makes("seccomp=default", NULL));
    assert_int_equal(call(SYS_socket, AF_UNIX, SOCK_DGRAM, 0), ALLOW);
}

static void what_is_prepared_is_what_was_asked_for(void **state)
{
    static const char *const nothing[] = {"memory=5", NULL};
    static const char *const filter[] = {"seccomp=default", NULL};
    static const char *const wrong[] = {"other=1", NULL};

    (void)state;
    if (ARCH == 0) {
        skip();
    }
    assert_true(apart_prepare(&apart, nothing, "x", NULL, -1, why));
    assert_true(apart.filter == NULL && apart.ruleset == -1);
    apart_done(&apart);
    assert_true(apart_prepare(&apart, filter, "x", NULL, -1, why));
    assert_true(apart.filter != NULL && apart.filter_n > 0 && apart.ruleset == -1);
    apart_done(&apart);
    assert_null(apart.filter);
    assert_false(apart_prepare(&apart, wrong, "x", NULL, -1, why));
    assert_true(apart_available(NULL, "/tmp", why));
    assert_true(apart_available(filter, "/tmp", why));
    assert_false(apart_available(wrong, "/tmp", why));
}

/* Where there is no cgroup that this process may divide. */
static void a_limit_that_cannot_be_set_is_named(void **state)
{
    static const struct {
        const char *entry, *key;
    } cases[] = {{"memory=1048576", "limits.memoryBytes: "},
                 {"processes=7", "limits.processes: "},
                 {"cpu=50", "limits.cpuPercent: "}};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const char *const list[] = {cases[i].entry, NULL};
        if (!apart_available(list, "/tmp", why)) {
            assert_int_equal(strncmp(why, cases[i].key, strlen(cases[i].key)), 0);
        }
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, done)
    const struct CMUnitTest tests[] = {
        T(each_entry_has_its_meaning),
        T(what_is_not_known_is_named),
        T(a_user_has_a_group_and_only_root_takes_another_one),
        T(every_filter_ends_who_calls_another_kernel),
        T(ways_around_the_limits_are_denied),
        T(no_process_gets_namespaces),
        T(of_the_network_there_is_tcp_and_one_question),
        T(what_is_prepared_is_what_was_asked_for),
        T(a_limit_that_cannot_be_set_is_named),
    };
#undef T

    apart.ruleset = -1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
