/* Calls over the standard streams of a process: a line a message, in any order. */
#include "agents/mcp/stdio_internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"

enum { READ_BYTES = 65536, WRITE_MS = 10000, WAKE_MS = 50 };

static const struct json_limits limits = {MCP_MESSAGE_MAX, 64, 4 * 1000 * 1000};

/* ---- writing ---- */

static enum bt_code write_line(struct mcp_process *p, const char *line, size_t len,
                               struct bt_error *err)
{
    const msec until = clock_mono_ms() + WRITE_MS;
    size_t at = 0;
    enum bt_code code = BT_OK;

    (void)pthread_mutex_lock(&p->write_lock);
    while (code == BT_OK && at <= len) {
        struct pollfd fd = {.fd = p->in, .events = POLLOUT};
        const char *from = at < len ? line + at : "\n";
        const ssize_t n = write(p->in, from, at < len ? len - at : 1);
        if (n > 0) {
            at += (size_t)n;
        } else if (errno != EAGAIN && errno != EINTR) {
            code = err_set(err, BT_UNAVAILABLE, "the server does not read any more");
        } else if (clock_mono_ms() >= until) {
            code = err_set(err, BT_TIMEOUT, "the server has not read for %d s", WRITE_MS / 1000);
        } else {
            (void)poll(&fd, 1, WAKE_MS);
        }
    }
    (void)pthread_mutex_unlock(&p->write_lock);
    return code;
}

enum bt_code stdio_note(struct mcp_server *s, const char *line, size_t len, struct bt_error *err)
{
    return write_line(s->process, line, len, err);
}

/* ---- reading: a thread ---- */

static struct mcp_call *find(struct mcp_process *p, uint64_t id)
{
    for (struct mcp_call *c = p->waiting; c != NULL; c = c->next) {
        if (c->id == id) {
            return c;
        }
    }
    return NULL;
}

/* The call that a note or a request of the server is about: progress has our token; a question has
 * nothing, so it belongs to the only call there is, or to the oldest. */
static struct mcp_call *about(struct mcp_process *p, const struct mcp_message *m)
{
    const struct doc token = doc_get(m->body, STR_LIT("progressToken"));
    struct mcp_call *c = p->waiting;

    if (token.ptr != NULL) {
        return doc_head(token).kind == DOC_UINT ? find(p, doc_head(token).u) : NULL;
    }
    while (c != NULL && c->next != NULL) {
        c = c->next; /* new ones are put in front */
    }
    return c;
}

/* Whose answer it was is not known. */
static void lose_line(struct mcp_process *p)
{
    (void)pthread_mutex_lock(&p->lock);
    for (struct mcp_call *c = p->waiting; c != NULL; c = c->next) {
        mcp_call_lose(c);
    }
    (void)pthread_cond_broadcast(&p->answered);
    (void)pthread_mutex_unlock(&p->lock);
}

static void take_line(struct mcp_process *p, struct str line)
{
    struct mcp_message m;
    struct mcp_call *c;
    struct buf doc;
    struct buf reply;
    enum bt_code code;

    buf_init(&doc, json_doc_capacity(MCP_MESSAGE_MAX));
    buf_init(&reply, MCP_MESSAGE_MAX);
    code = json_to_doc(line, &limits, &doc, NULL);
    if (code == BT_OK) {
        m = mcp_message_read(doc_from_buf(&doc));
        (void)pthread_mutex_lock(&p->lock);
        c = m.kind == MCP_RESULT || m.kind == MCP_ERROR ? find(p, m.id_u64) : about(p, &m);
        if (mcp_call_take(p->server, c, doc_from_buf(&doc), &reply)) {
            (void)pthread_cond_broadcast(&p->answered);
        }
        (void)pthread_mutex_unlock(&p->lock);
        if (reply.len > 0) {
            (void)write_line(p, buf_cstr(&reply), reply.len, NULL);
        }
    } else if (code == BT_NOMEM) {
        lose_line(p);
    } else if (line.len > 0) {
        log_warn("mcp.no_message", "a line of %zu bytes is no JSON", line.len);
    }
    buf_done(&doc);
    buf_done(&reply);
}

static void *read_all(void *self)
{
    struct mcp_process *p = self;
    char *bytes = malloc(READ_BYTES);
    struct buf line;
    ssize_t n = 1;

    buf_init(&line, MCP_MESSAGE_MAX);
    while (bytes != NULL && n > 0 && line.bad != BT_LIMIT) {
        n = read(p->out, bytes, READ_BYTES);
        if (n < 0 && errno == EINTR) {
            n = 1;
            continue;
        }
        for (ssize_t i = 0; i < n && line.bad != BT_LIMIT; i++) {
            if (bytes[i] == '\n') {
                if (line.bad == BT_OK) {
                    take_line(p, str_trimmed(buf_str(&line)));
                } else {
                    lose_line(p);
                }
                buf_clear(&line);
            } else {
                buf_add_byte(&line, (uint8_t)bytes[i]);
            }
        }
    }
    if (line.bad == BT_LIMIT) {
        log_err("mcp.too_large", "a line of the server has more than %d bytes", MCP_MESSAGE_MAX);
    }
    buf_done(&line);
    free(bytes);
    (void)pthread_mutex_lock(&p->lock);
    p->alive = false;
    (void)pthread_cond_broadcast(&p->answered);
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- the process ---- */

/* It blocks all signals: it may be older than the agent's own thread for them, and one that is
 * delivered here would end the process without a drain. */
static bool start_reader(struct mcp_process *p)
{
    sigset_t all;
    sigset_t before;
    int failed;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&p->reader, NULL, read_all, p);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0;
}

enum bt_code stdio_start(struct mcp_server *s, struct bt_error *err)
{
    struct mcp_process *p = calloc(1, sizeof *p);
    pthread_condattr_t attr;
    enum bt_code code = p == NULL ? err_set(err, BT_NOMEM, "out of memory for a process")
                                  : process_spawn(s->settings, &p->pid, &p->in, &p->out, err);

    if (code != BT_OK) {
        free(p);
        return code;
    }
    p->server = s;
    p->alive = true;
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_mutex_init(&p->write_lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&p->answered, &attr);
    (void)pthread_condattr_destroy(&attr);
    if (!start_reader(p)) {
        process_end(p->pid, &p->in);
        (void)close(p->out);
        free(p);
        return err_set(err, BT_NOMEM, "no thread for the server's output");
    }
    s->process = p;
    return BT_OK;
}

void stdio_stop(struct mcp_server *s)
{
    struct mcp_process *p = s->process;

    if (p == NULL) {
        return;
    }
    process_end(p->pid, &p->in); /* its output ends with it, and so does the reader */
    (void)pthread_join(p->reader, NULL);
    (void)close(p->out);
    (void)pthread_cond_destroy(&p->answered);
    (void)pthread_mutex_destroy(&p->lock);
    (void)pthread_mutex_destroy(&p->write_lock);
    free(p);
    s->process = NULL;
}

bool stdio_is_alive(const struct mcp_server *s)
{
    struct mcp_process *p = s->process;
    bool alive = false;

    if (p != NULL) {
        (void)pthread_mutex_lock(&p->lock);
        alive = p->alive;
        (void)pthread_mutex_unlock(&p->lock);
    }
    return alive;
}

/* ---- a call ---- */

static void cancel(struct mcp_process *p, const struct mcp_call *c)
{
    struct buf params;
    struct buf line;

    buf_init(&params, 256);
    buf_init(&line, 512);
    doc_put_map(&params, 1);
    doc_put_cstr(&params, "requestId");
    doc_put_u64(&params, c->id);
    if (mcp_message_write(0, "notifications/cancelled", doc_from_buf(&params), &line, NULL) ==
        BT_OK) {
        (void)write_line(p, buf_cstr(&line), line.len, NULL);
    }
    buf_done(&params);
    buf_done(&line);
}

static enum bt_code wait_for(struct mcp_process *p, struct mcp_call *c, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    while (code == BT_OK && !c->done) {
        const msec now = clock_mono_ms();
        const msec wake = now + WAKE_MS;
        const struct timespec until = {.tv_sec = (time_t)(wake / 1000),
                                       .tv_nsec = (long)(wake % 1000) * 1000000};
        if (!p->alive) {
            code = err_set(err, BT_UNAVAILABLE, "the server's process ended");
        } else if (now >= c->deadline) {
            code = err_set(err, BT_TIMEOUT, "no answer within %llu ms",
                           (unsigned long long)c->timeout_ms);
        } else if (c->step != NULL && bt_step_cancelled(c->step)) {
            code = err_set(err, BT_CANCELLED, "stopped on request");
        } else {
            (void)pthread_cond_timedwait(&p->answered, &p->lock, &until);
        }
    }
    return code;
}

static void leave(struct mcp_process *p, const struct mcp_call *c)
{
    struct mcp_call **at = &p->waiting;

    while (*at != NULL && *at != c) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = c->next;
    }
}

enum bt_code stdio_call(struct mcp_server *s, struct mcp_call *c, struct bt_error *err)
{
    struct mcp_process *p = s->process;
    struct buf line;
    enum bt_code code;

    buf_init(&line, MCP_MESSAGE_MAX);
    code = mcp_call_line(s, c, &line, err);
    if (code != BT_OK) {
        buf_done(&line);
        return code;
    }
    (void)pthread_mutex_lock(&p->lock);
    c->next = p->waiting;
    p->waiting = c;
    (void)pthread_mutex_unlock(&p->lock);
    c->sent = true;
    code = write_line(p, buf_cstr(&line), line.len, err);
    (void)pthread_mutex_lock(&p->lock);
    if (code == BT_OK) {
        code = wait_for(p, c, err);
    }
    leave(p, c);
    (void)pthread_mutex_unlock(&p->lock);
    if (code == BT_TIMEOUT || code == BT_CANCELLED || c->lost) {
        cancel(p, c);
    }
    buf_done(&line);
    return code;
}
