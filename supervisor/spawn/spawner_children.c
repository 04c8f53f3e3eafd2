/* The rows of children: start, signal, reap, and the sweep that leaves nothing of a tree. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "supervisor/spawn/spawner_internal.h"

enum { LEFTOVERS_LIMIT_MS = 2000, ENTRY_BYTES = 4096 + 32 };

bool kid_is_alive(const struct kid *kid)
{
    return kid->state == KID_STARTING || kid->state == KID_RUNNING;
}

static struct kid *find(struct spawner *s, const char *instance)
{
    for (uint32_t i = 0; i < s->kids_n; i++) {
        if (kid_is_alive(&s->kids[i]) && strcmp(s->kids[i].instance, instance) == 0) {
            return &s->kids[i];
        }
    }
    return NULL;
}

static struct kid *free_row(struct spawner *s)
{
    for (uint32_t i = 0; i < s->kids_n; i++) {
        if (s->kids[i].state == KID_FREE) {
            return &s->kids[i];
        }
    }
    return s->kids_n < KIDS_MAX ? &s->kids[s->kids_n++] : NULL;
}

static void gone(struct spawner *s, struct kid *kid)
{
    if (kid->exec_pipe >= 0) {
        (void)close(kid->exec_pipe);
        kid->exec_pipe = -1;
    }
    cgroup_remove(&s->cgroup, kid->instance);
    kid->state = KID_GONE;
    kid->tell |= TELL_END;
}

/* A name becomes a file name; the daemon checked it, but a slash here would write anywhere. */
static bool names_are_sane(const struct packet *order)
{
    return strlen(order->name) < KID_NAME_BYTES && order->name[0] != 0 && order->name[0] != '.' &&
           strchr(order->name, '/') == NULL && strlen(order->instance) == UUID_TEXT_LEN &&
           strchr(order->instance, '/') == NULL && order->argv[0] != NULL;
}

void kids_start(struct spawner *s, struct packet *order)
{
    struct kid *kid = names_are_sane(order) ? free_row(s) : NULL;

    if (kid == NULL) {
        log_err("spawner.refused", "child=%s reason=\"no row free, or a bad name\"", order->name);
        return;
    }
    *kid = (struct kid){.state = KID_STARTING, .hash = order->hash, .exec_pipe = -1};
    kid->sweep_until = MSEC_NEVER;
    kid->looks = 1;
    (void)snprintf(kid->name, sizeof kid->name, "%s", order->name);
    (void)snprintf(kid->instance, sizeof kid->instance, "%s", order->instance);
    if (!spawner_fork(s, kid, order)) {
        gone(s, kid);
    }
}

void kids_exec_done(struct kid *kid)
{
    struct exec_failure failure = {0};
    ssize_t n = read(kid->exec_pipe, &failure, sizeof failure);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    (void)close(kid->exec_pipe);
    kid->exec_pipe = -1;
    if (n == (ssize_t)sizeof failure) {
        failure.what[sizeof failure.what - 1] = 0;
        (void)snprintf(kid->failure, sizeof kid->failure, "%s failed: %s", failure.what,
                       strerror(failure.errnum));
    } else {
        kid->tell |= TELL_STARTED;
    }
    kid->state = KID_RUNNING; /* also a failed one, until it is reaped */
}

void kids_signal(struct spawner *s, const char *instance, int signal)
{
    struct kid *kid = find(s, instance);

    /* Not reaped, so the pid cannot be anybody else's. */
    if (kid != NULL && !kid->reaped && signal > 0 && signal < NSIG) {
        (void)kill(kid->pid, signal);
    }
}

static void sweep_from(struct kid *kid, msec now)
{
    if (!kid->sweeping) {
        kid->sweeping = true;
        kid->sweep_due = now;
    }
}

void kids_kill(struct spawner *s, const char *instance, msec now)
{
    struct kid *kid = find(s, instance);

    if (kid != NULL) {
        sweep_from(kid, now);
    }
}

void kids_kill_all(struct spawner *s, msec now)
{
    for (uint32_t i = 0; i < s->kids_n; i++) {
        if (kid_is_alive(&s->kids[i])) {
            sweep_from(&s->kids[i], now);
        }
    }
}

void kids_reap(struct spawner *s, msec now)
{
    int status = 0;
    pid_t pid;

    /* Everything below us ends up here, as we are the subreaper: strays are simply reaped. */
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (uint32_t i = 0; i < s->kids_n; i++) {
            struct kid *kid = &s->kids[i];

            if (kid_is_alive(kid) && !kid->reaped && kid->pid == pid) {
                if (kid->exec_pipe >= 0) {
                    kids_exec_done(kid);
                }
                kid->reaped = true;
                kid->status = status;
                kid->sweep_until = msec_add(now, SWEEP_LIMIT_MS);
                kid->sweeping = true;
                kid->sweep_due = now;
            }
        }
    }
}

/*
 * Marks what belongs to this agent: the children of its children, its session, and, among our own
 * descendants, whoever carries its instance id in the environment (a double fork with setsid lands
 * there).
 */
static void mark_tree(struct spawner *s, const struct kid *kid)
{
    char entry[ENTRY_BYTES];
    pid_t self = getpid();

    (void)snprintf(entry, sizeof entry, "BATON_INSTANCE_ID=%s", kid->instance);
    proc_clear_marks(&s->procs);
    proc_mark_descendants(&s->procs, self);
    for (size_t i = 0; i < s->procs.n; i++) {
        struct proc_row *row = &s->procs.rows[i];
        /* An exiting one might be ours; it is gone in a moment, and waiting for it harms nobody. */
        bool ours = row->pid == kid->pid || row->session == kid->pid || row->exiting;

        row->marked = row->marked && !row->zombie && (ours || proc_has_env(row->pid, entry));
    }
    proc_mark_descendants(&s->procs, -1);
}

/* How many still lived. */
static uint32_t kill_marked(struct spawner *s)
{
    uint32_t n = 0;

    for (size_t i = 0; i < s->procs.n; i++) {
        const struct proc_row *row = &s->procs.rows[i];

        if (row->marked && !row->zombie && row->pid != getpid()) {
            n++;
            (void)proc_signal(row, SIGKILL);
        }
    }
    return n;
}

static void sweep_one(struct spawner *s, struct kid *kid, msec now)
{
    uint32_t left;

    mark_tree(s, kid);
    left = kill_marked(s);
    (void)cgroup_kill(&s->cgroup, kid->instance);
    if (left == 0 && cgroup_has_process(&s->cgroup, kid->instance)) {
        left = 1;
    }
    kid->sweep_due = msec_add(now, SWEEP_EVERY_MS);
    if (left != 0) {
        kid->looks = 2; /* one that forks and ends all the time can hide from a single look */
    } else if (kid->looks > 0) {
        kid->looks--;
    }
    if (kid->reaped && (kid->looks == 0 || now >= kid->sweep_until)) {
        if (left != 0) {
            log_err("spawner.unkillable", "child=%s processes=%u", kid->name, left);
        }
        gone(s, kid);
    }
}

void kids_sweep(struct spawner *s, msec now)
{
    bool fresh = false;

    for (uint32_t i = 0; i < s->kids_n; i++) {
        struct kid *kid = &s->kids[i];

        if (!kid_is_alive(kid) || !kid->sweeping || kid->sweep_due > now) {
            continue;
        }
        if (!fresh && proc_read(&s->procs, NULL) != BT_OK) {
            return; /* out of memory or files: the next round tries again */
        }
        fresh = true;
        sweep_one(s, kid, now);
    }
}

void kids_sweep_leftovers(struct spawner *s)
{
    msec until = msec_add(clock_mono_ms(), LEFTOVERS_LIMIT_MS);
    char entry[ENTRY_BYTES];
    uint32_t left;

    (void)snprintf(entry, sizeof entry, "BATON_STATE=%s", s->state_path);
    do {
        if (proc_read(&s->procs, NULL) != BT_OK) {
            return;
        }
        proc_clear_marks(&s->procs);
        proc_mark_ancestors(&s->procs, getpid());
        for (size_t i = 0; i < s->procs.n; i++) {
            struct proc_row *row = &s->procs.rows[i];

            row->marked = !row->marked && !row->zombie && proc_has_env(row->pid, entry) &&
                          proc_has_env(row->pid, "BATON_SPAWNED=1");
        }
        left = kill_marked(s);
        if (left != 0) {
            log_warn("spawner.leftovers", "killed=%u", left);
            (void)poll(NULL, 0, SWEEP_EVERY_MS);
        }
    } while (left != 0 && clock_mono_ms() < until);
}
