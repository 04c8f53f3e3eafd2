/* The daemon's connection: orders in, reports out. Unsent reports are flags of the children, so no
 * queue can grow. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "supervisor/spawn/spawner_internal.h"

enum { PACKETS_PER_CYCLE = 64 };

static void free_gone_children(struct spawner *s)
{
    for (uint32_t i = 0; i < s->children_n; i++) {
        struct child *child = &s->children[i];

        child->pending_reports = 0;
        if (child->state == CHILD_GONE) {
            child->state = CHILD_FREE;
        }
    }
}

void conn_close(struct spawner *s, msec now)
{
    if (s->conn < 0) {
        return;
    }
    (void)close(s->conn);
    s->conn = -1;
    s->hello_pending = false;
    s->orphan_due = msec_add(now, s->orphan_grace_ms);
    free_gone_children(s);
    log_info("spawner.alone", "graceMs=%llu", (unsigned long long)s->orphan_grace_ms);
}

void conn_accept(struct spawner *s)
{
    struct ucred peer = {0};
    socklen_t len = sizeof peer;
    int fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        return;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 ||
        (peer.uid != geteuid() && peer.uid != 0)) {
        log_warn("spawner.refused", "uid=%u", (unsigned)peer.uid);
        (void)close(fd);
        return;
    }
    s->conn = fd;
    s->orphan_due = MSEC_NEVER;
    s->hello_pending = true;
    free_gone_children(s);
    for (uint32_t i = 0; i < s->children_n; i++) {
        if (child_is_alive(&s->children[i])) {
            s->children[i].pending_reports = REPORT_CHILD;
        }
    }
}

/* Adds the variable by which an agent knows that it was spawned, and a spawner finds what a killed
 * one left. */
static void add_spawned_variable(struct spawner *s, struct packet *order)
{
    static char handover[] = "BATON_HANDOVER=" HANDOVER_TEXT;
    size_t n = 0;

    while (order->env[n] != NULL) {
        n++;
    }
    order->env[n++] = s->mark;
    if (s->hide[0] != 0) {
        order->env[n++] = s->hide;
    }
    if (order->handover[0] != NULL) {
        order->env[n++] = handover;
    }
    order->env[n] = NULL;
}

static void handle_order(struct spawner *s, size_t len, msec now)
{
    struct packet *p = &s->packet;
    struct bt_error err;

    if (s->in[0] == PACKET_SHUTDOWN) {
        spawner_end(s, now);
        return;
    }
    if (packet_decode(s->in, len, p, &err) != BT_OK) {
        log_err("spawner.bad_order", "reason=\"%s\"", err.msg);
        conn_close(s, now);
        return;
    }
    if (p->type == PACKET_START && !s->ending) {
        add_spawned_variable(s, p);
        children_start(s, p);
    } else if (p->type == PACKET_SIGNAL) {
        children_signal(s, p->instance, p->status);
    } else if (p->type == PACKET_REGISTERED) {
        children_registered(s, p->instance);
    } else if (p->type == PACKET_KILL_TREE) {
        children_kill(s, p->instance, now);
    }
}

void conn_read(struct spawner *s, msec now)
{
    for (unsigned i = 0; i < PACKETS_PER_CYCLE && s->conn >= 0; i++) {
        ssize_t n = recv(s->conn, s->in, sizeof s->in, MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (n <= 0) {
            conn_close(s, now);
            return;
        }
        handle_order(s, (size_t)n, now);
    }
}

/* False: not now (the socket is full), or never (it is closed, which the next read shows). */
static bool send_packet(struct spawner *s, const struct packet *p)
{
    buf_clear(&s->out);
    packet_encode(p, &s->out);
    return buf_check(&s->out, NULL) == BT_OK &&
           send(s->conn, s->out.at, s->out.len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)s->out.len;
}

static bool send_hello(struct spawner *s)
{
    struct packet hello = {.type = PACKET_HELLO, .pid = getpid(), .text = PACKET_VERSION};

    for (uint32_t i = 0; i < s->children_n; i++) {
        hello.count += (s->children[i].pending_reports & REPORT_CHILD) != 0;
    }
    return send_packet(s, &hello);
}

static bool send_reports(struct spawner *s, struct child *child)
{
    struct packet p = {.pid = child->pid,
                       .status = child->status,
                       .hash = child->hash,
                       .instance = child->instance,
                       .name = child->name,
                       .text = child->failure};
    static const struct {
        unsigned flag;
        enum packet_type type;
    } facts[] = {{REPORT_CHILD, PACKET_CHILD},
                 {REPORT_STARTED, PACKET_STARTED},
                 {REPORT_END, PACKET_EXITED}};

    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        if ((child->pending_reports & facts[i].flag) == 0) {
            continue;
        }
        p.type = facts[i].type;
        if (p.type == PACKET_EXITED && child->failure[0] != 0) {
            p.type = PACKET_START_FAILED;
        } else if (p.type == PACKET_EXITED && child->reached != NULL) {
            p.text = child->reached;
        }
        if (!send_packet(s, &p)) {
            return false;
        }
        child->pending_reports &= ~facts[i].flag;
    }
    if (child->state == CHILD_GONE) {
        child->state = CHILD_FREE;
    }
    return true;
}

void conn_send_pending(struct spawner *s)
{
    if (s->conn < 0) {
        free_gone_children(s);
        return;
    }
    if (s->hello_pending && !send_hello(s)) {
        return;
    }
    s->hello_pending = false;
    /* The children of HELLO come first: the daemon counts them before it accepts other packets. */
    for (uint32_t i = 0; i < s->children_n; i++) {
        if ((s->children[i].pending_reports & REPORT_CHILD) != 0 &&
            !send_reports(s, &s->children[i])) {
            return;
        }
    }
    for (uint32_t i = 0; i < s->children_n; i++) {
        if (s->children[i].pending_reports != 0 && !send_reports(s, &s->children[i])) {
            return;
        }
    }
}

bool conn_has_pending(const struct spawner *s)
{
    bool received = s->hello_pending;

    for (uint32_t i = 0; i < s->children_n && !received; i++) {
        received = s->children[i].pending_reports != 0;
    }
    return received;
}
