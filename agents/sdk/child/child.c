#include "agents/sdk/child/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agents/sdk/child/spawn.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"

enum {
    SLICE_MS = 25, /* the longest delay before a cancel is noticed */
    CHUNK = 65536,
    AFTER_KILL_MS = 5000, /* a process in an uninterruptible sleep: reply without it */
    WATCHED = 4
};

struct run {
    const struct child_spec *spec;
    struct child_result *ret;
    struct spawn at;
    size_t written;
    bool exited;
    bool ending; /* SIGTERM or SIGKILL was sent; ret->end is the reason */
    bool killed;
    msec next; /* when ending: the time of the next signal, or of giving up */
    char line[CHILD_LINE_MAX + 1];
    size_t line_len;
};

/* ---- the three pipes ---- */

static void write_input(struct run *r)
{
    while (r->at.in >= 0 && r->written < r->spec->input_len) {
        ssize_t n = write(r->at.in, r->spec->input + r->written, r->spec->input_len - r->written);
        if (n >= 0) {
            r->written += (size_t)n;
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR) {
            break; /* EPIPE: a program need not read all of its input */
        }
    }
    spawn_close(&r->at.in);
}

/* Drops whole lines at the beginning until the new one fits. */
static void keep_line(struct child_result *ret, const char *line, size_t n)
{
    while (ret->tail_len + n + 1 > CHILD_TAIL_MAX) {
        const char *end = memchr(ret->tail, '\n', ret->tail_len);
        const size_t drop = (size_t)(end - ret->tail) + 1;
        memmove(ret->tail, ret->tail + drop, ret->tail_len - drop);
        ret->tail_len -= drop;
        ret->tail_cut = true;
    }
    memcpy(ret->tail + ret->tail_len, line, n);
    ret->tail_len += n;
    ret->tail[ret->tail_len++] = '\n';
    ret->tail[ret->tail_len] = 0;
}

static void end_line(struct run *r)
{
    size_t n = r->line_len;

    while (n > 0 && (r->line[n - 1] == '\r' || r->line[n - 1] == ' ')) {
        n--;
    }
    r->line[n] = 0;
    if (n > 0 && (r->spec->line == NULL || r->spec->line(r->line, r->spec->self))) {
        memcpy(r->ret->last_line, r->line, n + 1);
        keep_line(r->ret, r->line, n);
    }
    r->line_len = 0;
}

static void take_errors(struct run *r, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            end_line(r);
        } else if (r->line_len < CHILD_LINE_MAX) {
            r->line[r->line_len++] = bytes[i] == 0 ? '?' : bytes[i];
        }
    }
}

static void begin_end(struct run *r, enum child_end why, int signal, msec now, msec grace_ms)
{
    if (!r->ending) {
        r->ret->end = why;
        r->ret->exited = r->exited;
    }
    r->ending = true;
    r->killed = r->killed || signal == SIGKILL;
    r->next = msec_add(now, grace_ms);
    (void)kill(-r->at.pid, signal);
}

static void take_output(struct run *r, const char *bytes, size_t n)
{
    if (r->ending) {
        /* the result is a failure; reading on only keeps the pipe from blocking the program */
        return;
    }
    if (r->spec->output != NULL) {
        if (!r->spec->output(bytes, n, r->spec->self)) {
            begin_end(r, CHILD_REFUSED, SIGKILL, clock_mono_ms(), AFTER_KILL_MS);
        }
        return;
    }
    buf_add(&r->ret->out, bytes, n);
    if (r->ret->out.bad != BT_OK) {
        begin_end(r, CHILD_TOO_LARGE, SIGKILL, clock_mono_ms(), AFTER_KILL_MS);
    }
}

/* Reads one chunk, so that endless output cannot keep the loop from checking the deadline. */
static void read_pipe(struct run *r, int *fd, void (*take)(struct run *, const char *, size_t))
{
    char chunk[CHUNK];
    ssize_t n = *fd < 0 ? 0 : read(*fd, chunk, sizeof chunk);

    if (n > 0) {
        take(r, chunk, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        spawn_close(fd);
    }
}

/* ---- time ---- */

static void check_deadline(struct run *r)
{
    msec now = clock_mono_ms();

    if (!r->ending) {
        if (now >= r->spec->deadline) {
            begin_end(r, CHILD_TIMEOUT, SIGTERM, now, r->spec->grace_ms);
        } else if (r->spec->stop != NULL && r->spec->stop(r->spec->self)) {
            begin_end(r, CHILD_STOPPED, SIGTERM, now, r->spec->grace_ms);
        }
    } else if (!r->killed && now >= r->next) {
        begin_end(r, r->ret->end, SIGKILL, now, AFTER_KILL_MS);
    }
}

static int wait_ms(const struct run *r)
{
    msec now = clock_mono_ms();
    msec until = r->ending ? r->next : r->spec->deadline;

    return until <= now ? 0 : until - now < SLICE_MS ? (int)(until - now) : SLICE_MS;
}

/* After SIGKILL: the program has ended, or the wait for it is over. Otherwise: it has ended and
 * both pipes are closed. */
static bool has_ended(const struct run *r)
{
    bool pipes_closed = r->at.out < 0 && r->at.err < 0;

    if (r->killed) {
        return r->exited || clock_mono_ms() >= r->next;
    }
    return r->exited && pipes_closed;
}

static void poll_until_ended(struct run *r)
{
    while (!has_ended(r)) {
        struct pollfd fds[WATCHED] = {
            {.fd = r->at.in, .events = POLLOUT},
            {.fd = r->at.out, .events = POLLIN},
            {.fd = r->at.err, .events = POLLIN},
            {.fd = r->exited ? -1 : r->at.pidfd, .events = POLLIN},
        };
        if (poll(fds, WATCHED, wait_ms(r)) > 0) {
            if (fds[0].revents != 0) {
                write_input(r);
            }
            if (fds[1].revents != 0) {
                read_pipe(r, &r->at.out, take_output);
            }
            if (fds[2].revents != 0) {
                read_pipe(r, &r->at.err, take_errors);
            }
            r->exited = r->exited || fds[3].revents != 0;
        }
        check_deadline(r);
    }
    end_line(r);
}

/* ---- the run ---- */

/* Kills what is left of the process group, then reaps the program, which releases the group's
 * id. */
static void reap(struct run *r)
{
    int status = 0;

    (void)kill(-r->at.pid, SIGKILL);
    if (!r->exited) {
        log_err("exec.stuck", "pid=%d program=%.200s", (int)r->at.pid, r->spec->path);
        return;
    }
    while (waitpid(r->at.pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (r->ending) {
        return;
    }
    if (WIFSIGNALED(status)) {
        r->ret->end = CHILD_SIGNALLED;
        r->ret->signal = WTERMSIG(status);
    } else {
        r->ret->end = CHILD_EXITED;
        r->ret->exit_code = WEXITSTATUS(status);
    }
}

/* A write to a pipe without a reader must fail with EPIPE, not end the agent. */
static void block_sigpipe(sigset_t *ret_before)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &set, ret_before);
}

static void restore_sigpipe(const sigset_t *before)
{
    const struct timespec now = {0};
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGPIPE);
    if (!sigismember(before, SIGPIPE)) {
        (void)sigtimedwait(&set, NULL, &now);
    }
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

enum bt_code child_run(const struct child_spec *spec, struct child_result *ret,
                       struct bt_error *err)
{
    struct run r = {.spec = spec, .ret = ret};
    const msec begun = clock_mono_ms();
    sigset_t before;
    enum bt_code code;

    *ret = (struct child_result){0};
    buf_init(&ret->out, spec->output_max);
    code = spawn_start(spec, &r.at, err);
    if (code != BT_OK) {
        return code;
    }
    block_sigpipe(&before);
    write_input(&r);
    poll_until_ended(&r);
    reap(&r);
    ret->duration_ms = clock_mono_ms() - begun;
    spawn_close(&r.at.in);
    spawn_close(&r.at.out);
    spawn_close(&r.at.err);
    spawn_close(&r.at.pidfd);
    restore_sigpipe(&before);
    if (ret->out.bad == BT_NOMEM) {
        return err_set(err, BT_NOMEM, "out of memory for the output of %.200s", spec->path);
    }
    return BT_OK;
}

void child_result_done(struct child_result *r)
{
    buf_done(&r->out);
}
