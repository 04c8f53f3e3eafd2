/* The children: start, signal, reap, and the sweep that kills all of a tree. */
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

bool child_is_alive(const struct child *child)
{
    return child->state == CHILD_STARTING || child->state == CHILD_RUNNING;
}

static struct child *find(struct spawner *s, const char *instance)
{
    for (uint32_t i = 0; i < s->children_n; i++) {
        if (child_is_alive(&s->children[i]) && strcmp(s->children[i].instance, instance) == 0) {
            return &s->children[i];
        }
    }
    return NULL;
}

static struct child *free_slot(struct spawner *s)
{
    for (uint32_t i = 0; i < s->children_n; i++) {
        if (s->children[i].state == CHILD_FREE) {
            return &s->children[i];
        }
    }
    return s->children_n < CHILDREN_MAX ? &s->children[s->children_n++] : NULL;
}

static void forget_handover(struct child *child)
{
    if (child->handover >= 0) {
        (void)close(child->handover);
        child->handover = -1;
    }
}

void children_registered(struct spawner *s, const char *instance)
{
    for (uint32_t i = 0; i < s->children_n; i++) {
        struct child *child = &s->children[i];
        if (child_is_alive(child) && child->handover >= 0 &&
            strcmp(child->instance, instance) == 0) {
            if (ftruncate(child->handover, 0) != 0) {
                log_warn("spawner.handover", "child=%s %s", child->name, strerror(errno));
            }
            forget_handover(child);
        }
    }
}

static void mark_gone(struct spawner *s, struct child *child)
{
    if (child->exec_pipe >= 0) {
        (void)close(child->exec_pipe);
        child->exec_pipe = -1;
    }
    forget_handover(child);
    child->reached = cgroup_reached(&s->cgroup, child->instance);
    cgroup_remove(&s->cgroup, child->instance);
    child->state = CHILD_GONE;
    child->pending_reports |= REPORT_END;
}

/* The name becomes a file name. The daemon has checked it, but a slash here would write
 * anywhere. */
static bool names_are_valid(const struct packet *order)
{
    return strlen(order->name) < CHILD_NAME_BYTES && order->name[0] != 0 && order->name[0] != '.' &&
           strchr(order->name, '/') == NULL && strlen(order->instance) == UUID_TEXT_LEN &&
           strchr(order->instance, '/') == NULL && order->argv[0] != NULL;
}

void children_start(struct spawner *s, struct packet *order)
{
    struct child *child = names_are_valid(order) ? free_slot(s) : NULL;

    if (child == NULL) {
        log_err("spawner.refused", "child=%s reason=\"no slot free, or an invalid name\"",
                order->name);
        return;
    }
    *child = (struct child){
        .state = CHILD_STARTING, .hash = order->hash, .exec_pipe = -1, .handover = -1};
    child->sweep_until = MSEC_NEVER;
    child->empty_passes = 1;
    child->log_bytes = order->log_bytes != 0 ? order->log_bytes : LOG_MAX_BYTES;
    child->log_files = order->log_files < LOG_FILES_MAX ? order->log_files : LOG_FILES_MAX;
    (void)snprintf(child->name, sizeof child->name, "%s", order->name);
    (void)snprintf(child->instance, sizeof child->instance, "%s", order->instance);
    if (!spawner_fork(s, child, order)) {
        mark_gone(s, child);
    }
}

void children_exec_done(struct child *child)
{
    struct exec_failure failure = {0};
    ssize_t n = read(child->exec_pipe, &failure, sizeof failure);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    (void)close(child->exec_pipe);
    child->exec_pipe = -1;
    if (n == (ssize_t)sizeof failure) {
        failure.what[sizeof failure.what - 1] = 0;
        (void)snprintf(child->failure, sizeof child->failure, "%s failed: %s", failure.what,
                       strerror(failure.errnum));
    } else {
        child->pending_reports |= REPORT_STARTED;
    }
    child->state = CHILD_RUNNING; /* also after a failure, until it is reaped */
}

void children_signal(struct spawner *s, const char *instance, int signal)
{
    struct child *child = find(s, instance);

    /* Not reaped, so the pid cannot belong to another process. */
    if (child != NULL && !child->reaped && signal > 0 && signal < NSIG) {
        (void)kill(child->pid, signal);
    }
}

static void sweep_from(struct child *child, msec now)
{
    if (!child->sweeping) {
        child->sweeping = true;
        child->sweep_due = now;
    }
}

void children_kill(struct spawner *s, const char *instance, msec now)
{
    struct child *child = find(s, instance);

    if (child != NULL) {
        sweep_from(child, now);
    }
}

void children_kill_all(struct spawner *s, msec now)
{
    for (uint32_t i = 0; i < s->children_n; i++) {
        if (child_is_alive(&s->children[i])) {
            sweep_from(&s->children[i], now);
        }
    }
}

void children_reap(struct spawner *s, msec now)
{
    int status = 0;
    pid_t pid;

    /* Orphaned descendants become children of the spawner, the subreaper: they are reaped and not
     * reported. */
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (uint32_t i = 0; i < s->children_n; i++) {
            struct child *child = &s->children[i];

            if (child_is_alive(child) && !child->reaped && child->pid == pid) {
                if (child->exec_pipe >= 0) {
                    children_exec_done(child);
                }
                child->reaped = true;
                child->status = status;
                child->sweep_until = msec_add(now, SWEEP_LIMIT_MS);
                child->sweeping = true;
                child->sweep_due = now;
            }
        }
    }
}

/*
 * Marks the processes of this agent: the descendants of its main process, its session, and every
 * descendant of the spawner with its instance id in the environment (after a double fork with
 * setsid).
 */
static void mark_tree(struct spawner *s, const struct child *child)
{
    char variable[ENTRY_BYTES];
    pid_t self = getpid();

    (void)snprintf(variable, sizeof variable, "BATON_INSTANCE_ID=%s", child->instance);
    proc_clear_marks(&s->procs);
    proc_mark_descendants(&s->procs, self);
    for (size_t i = 0; i < s->procs.n; i++) {
        struct proc_entry *entry = &s->procs.entries[i];
        /* The environment of an exiting process cannot be read, so it is included; it is gone in a
         * moment. */
        bool ours = entry->pid == child->pid || entry->session == child->pid || entry->exiting;

        entry->marked =
            entry->marked && !entry->zombie && (ours || proc_has_env(entry->pid, variable));
    }
    proc_mark_descendants(&s->procs, -1);
}

/* Returns how many were alive. */
static uint32_t kill_marked(struct spawner *s)
{
    uint32_t n = 0;

    for (size_t i = 0; i < s->procs.n; i++) {
        const struct proc_entry *entry = &s->procs.entries[i];

        if (entry->marked && !entry->zombie && entry->pid != getpid()) {
            n++;
            (void)proc_signal(entry, SIGKILL);
        }
    }
    return n;
}

static void sweep_one(struct spawner *s, struct child *child, msec now)
{
    uint32_t left;

    mark_tree(s, child);
    left = kill_marked(s);
    (void)cgroup_kill(&s->cgroup, child->instance);
    if (left == 0 && cgroup_has_process(&s->cgroup, child->instance)) {
        left = 1;
    }
    child->sweep_due = msec_add(now, SWEEP_EVERY_MS);
    if (left != 0) {
        child->empty_passes =
            2; /* a process that forks and exits all the time can miss a single pass */
    } else if (child->empty_passes > 0) {
        child->empty_passes--;
    }
    if (child->reaped && (child->empty_passes == 0 || now >= child->sweep_until)) {
        if (left != 0) {
            log_err("spawner.unkillable", "child=%s processes=%u", child->name, left);
        }
        mark_gone(s, child);
    }
}

void children_sweep(struct spawner *s, msec now)
{
    bool listed = false;

    for (uint32_t i = 0; i < s->children_n; i++) {
        struct child *child = &s->children[i];

        if (!child_is_alive(child) || !child->sweeping || child->sweep_due > now) {
            continue;
        }
        if (!listed && proc_read(&s->procs, NULL) != BT_OK) {
            return; /* out of memory or descriptors: the next cycle tries again */
        }
        listed = true;
        sweep_one(s, child, now);
    }
}

void children_sweep_leftovers(struct spawner *s)
{
    msec until = msec_add(clock_mono_ms(), LEFTOVERS_LIMIT_MS);
    uint32_t left;

    do {
        if (proc_read(&s->procs, NULL) != BT_OK) {
            return;
        }
        proc_clear_marks(&s->procs);
        proc_mark_ancestors(&s->procs, getpid());
        for (size_t i = 0; i < s->procs.n; i++) {
            struct proc_entry *entry = &s->procs.entries[i];

            entry->marked = !entry->marked && !entry->zombie && proc_has_env(entry->pid, s->mark);
        }
        left = kill_marked(s);
        if (left != 0) {
            log_warn("spawner.leftovers", "killed=%u", left);
            (void)poll(NULL, 0, SWEEP_EVERY_MS);
        }
    } while (left != 0 && clock_mono_ms() < until);
}
