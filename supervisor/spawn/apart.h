/*
 * What the operator keeps an agent process from, given as a list of texts (config makes it):
 *   user=UID:GID          its user; no supplementary groups
 *   paths=                only the paths that follow, and what programs need (Landlock)
 *   read=PATH write=PATH  a directory or file; write includes reading
 *   network=none          TCP connections only to one port (Landlock), no other sockets (seccomp)
 *   port=N                that port: the supervisor's
 *   seccomp=default       no system calls that serve attacks more than agents
 *   memory=BYTES processes=N cpu=PERCENT     limits of its cgroup
 * What is wanted and not available is an error with the reason: nothing is weaker in silence.
 */
#ifndef SPAWN_APART_H
#define SPAWN_APART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sock_filter;

enum { APART_WHY_BYTES = 112, APART_FILTER_MAX = 224 };

struct apart {
    bool user;
    bool paths;
    bool network;
    bool seccomp;
    uid_t uid;
    gid_t gid;
    uint64_t memory;
    uint64_t processes;
    uint64_t cpu; /* hundredths of a processor */
    int ruleset;  /* -1 = none */
    struct sock_filter *filter;
    unsigned short filter_n;
};

/* Before the fork. False, and why, when it is not available here. program: argv[0]; path: the
 * agent's PATH. The caller calls apart_done in any case. */
bool apart_prepare(struct apart *a, const char *const *list, const char *program, const char *path,
                   int state_dir, char why[APART_WHY_BYTES]);
/* In the child, async-signal-safe. False: errno, and *ret_what failed. apart_user comes first, and
 * clears the parent death signal. */
bool apart_user(const struct apart *a, const char **ret_what);
bool apart_enter(const struct apart *a, int ruleset, const char **ret_what);
void apart_done(struct apart *a);
/* Whether this process could set an agent apart so, before there is one: its user, the kernel's
 * features, limits in its own cgroup, and no path that has to do with the state directory (which
 * need not exist). list may be NULL. False, and why, beginning with the key ("limits.processes:
 * ..."). Paths that are missing are no reason: they may come. Nothing that it makes stays. */
bool apart_available(const char *const *list, const char *state_dir, char why[APART_WHY_BYTES]);
/* False: the list is not understood, or this process may not become that user. */
bool apart_parse(struct apart *a, const char *const *list, char why[APART_WHY_BYTES]);
/* apart_filter.c: fills a->filter. False when this processor is not known. */
bool apart_make_filter(struct apart *a);
/* apart_paths.c: makes a->ruleset. */
bool apart_make_ruleset(struct apart *a, const char *const *list, const char *program,
                        const char *path, int state_dir, char why[APART_WHY_BYTES]);
/* Whether the kernel has the Landlock that paths and network need. */
bool apart_has_landlock(const struct apart *a, char why[APART_WHY_BYTES]);
/* Whether no path of the list that exists has to do with the state directory. */
bool apart_spares_state(const char *const *list, int state_dir, char why[APART_WHY_BYTES]);
/* In the child: /proc/PID of this process, not those of others. */
bool apart_allow_own_proc(int ruleset);
#endif
