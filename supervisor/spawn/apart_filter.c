/* The filter of system calls: a table, and a program of classic BPF made from it. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "supervisor/spawn/apart.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

enum { X32_BIT = 0x40000000, TYPE_MASK = 0xf };

/* Ways around the other limits: to other processes, to the kernel, to other namespaces. */
static const int denied[] = {
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_pidfd_getfd,
    SYS_process_madvise,
    SYS_kexec_load,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_unshare,
    SYS_setns,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_open_by_handle_at,
    SYS_swapon,
    SYS_swapoff,
    SYS_reboot,
    SYS_acct,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_quotactl,
    SYS_syslog,
    SYS_fanotify_init,
    SYS_vhangup,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#ifdef SYS_iopl
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
#endif
};

/* io_uring opens sockets and files past a filter of system calls. */
static const int rings[] = {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register};

static void put(struct apart *a, struct sock_filter one)
{
    if (a->filter_n < APART_FILTER_MAX) {
        a->filter[a->filter_n] = one;
    }
    a->filter_n++;
}

static void load(struct apart *a, size_t offset)
{
    put(a, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void answer(struct apart *a, uint32_t what)
{
    put(a, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what));
}

/* The next instruction only when the loaded word compares so. */
static void when(struct apart *a, uint16_t how, uint32_t value)
{
    put(a, (struct sock_filter)BPF_JUMP(BPF_JMP | how | BPF_K, value, 0, 1));
}

static void unless_equal(struct apart *a, uint32_t value)
{
    put(a, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0));
}

#define ARGUMENT(n) (offsetof(struct seccomp_data, args) + (n) * sizeof(uint64_t))
#define DENY (SECCOMP_RET_ERRNO | EPERM)

static void deny(struct apart *a, const int *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        when(a, BPF_JEQ, (uint32_t)list[i]);
        answer(a, DENY);
    }
}

/* clone3's flags lie in memory that a filter cannot read; libc then uses clone. */
static void deny_namespaces(struct apart *a)
{
    const uint32_t flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                           CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

    when(a, BPF_JEQ, SYS_clone3);
    answer(a, SECCOMP_RET_ERRNO | ENOSYS);
    put(a, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4));
    load(a, ARGUMENT(0));
    when(a, BPF_JSET, flags);
    answer(a, DENY);
    answer(a, SECCOMP_RET_ALLOW);
}

/* Only TCP, and the question whose a connection is (protocol/link/peer_uid.c). MPTCP is a protocol
 * of its own, which Landlock does not see. */
static void deny_sockets(struct apart *a)
{
    put(a, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 17));
    load(a, ARGUMENT(0));
    put(a, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 4));
    load(a, ARGUMENT(2));
    unless_equal(a, NETLINK_SOCK_DIAG);
    answer(a, DENY);
    answer(a, SECCOMP_RET_ALLOW);
    put(a, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 2, 0));
    unless_equal(a, AF_INET6);
    answer(a, DENY);
    load(a, ARGUMENT(1));
    put(a, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, TYPE_MASK));
    unless_equal(a, SOCK_STREAM);
    answer(a, DENY);
    load(a, ARGUMENT(2));
    put(a, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0));
    unless_equal(a, IPPROTO_TCP);
    answer(a, DENY);
}

bool apart_make_filter(struct apart *a)
{
#ifdef ARCH
    a->filter = calloc(APART_FILTER_MAX, sizeof *a->filter);
    if (a->filter == NULL) {
        return false;
    }
    load(a, offsetof(struct seccomp_data, arch));
    unless_equal(a, ARCH);
    answer(a, SECCOMP_RET_KILL_PROCESS);
    load(a, offsetof(struct seccomp_data, nr));
    when(a, BPF_JGE, X32_BIT);
    answer(a, SECCOMP_RET_ERRNO | ENOSYS);
    deny(a, rings, sizeof rings / sizeof rings[0]);
    if (a->seccomp) {
        deny(a, denied, sizeof denied / sizeof denied[0]);
        deny_namespaces(a);
    }
    if (a->network) {
        deny_sockets(a);
    }
    answer(a, SECCOMP_RET_ALLOW);
    return a->filter_n <= APART_FILTER_MAX;
#else
    (void)a;
    return false;
#endif
}
