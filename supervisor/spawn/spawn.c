#include "supervisor/spawn/spawn.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "protocol/base/clock.h"
#include "protocol/base/failpoint.h"
#include "protocol/base/log.h"
#include "protocol/limits.h"
#include "supervisor/spawn/log_tail.h"
#include "supervisor/spawn/spawn_internal.h"

enum {
    PACKETS_PER_CYCLE = 256,
    EVENTS_ROOM = 4,
    EVENTS_PER_CHILD = 8,
    EVENTS_SPARE = 64,
    RETRY_MS = 1000
};

static const char *const event_names[] = {
    [SPAWN_STARTED] = "started",
    [SPAWN_RESTARTED] = "restarted",
    [SPAWN_ADOPTED] = "adopted",
    [SPAWN_UP] = "up",
    [SPAWN_EXITED] = "exited",
    [SPAWN_GAVE_UP] = "gave up",
    [SPAWN_GROUP_GAVE_UP] = "group gave up",
};
_Static_assert(sizeof event_names / sizeof event_names[0] == SPAWN_EVENT_COUNT, "a name per event");

const char *spawn_event_name(enum spawn_event_type type)
{
    return type < SPAWN_EVENT_COUNT ? event_names[type] : "?";
}

static struct spawn_event *push_event(struct spawn *s)
{
    if (s->events_n == s->events_cap) {
        log_err("spawn.event_lost", "reason=\"the queue of %zu was not drained\"", s->events_cap);
        s->events_at = (s->events_at + 1) % s->events_cap;
        s->events_n--;
    }
    return &s->events[(s->events_at + s->events_n++) % s->events_cap];
}

static bool events_have_room(const struct spawn *s)
{
    return s->events_n + EVENTS_ROOM <= s->events_cap;
}

static uint32_t restarts_of(const struct child *c)
{
    return c->policy.spawns > 0 ? c->policy.spawns - 1 : 0;
}

void spawn_emit(struct spawn *s, const struct child *c, enum spawn_event_type type,
                const char *reason)
{
    struct spawn_event *ev = push_event(s);

    *ev = (struct spawn_event){.type = type, .pid = c->pid, .restarts = restarts_of(c)};
    (void)snprintf(ev->name, sizeof ev->name, "%s", c->name);
    (void)snprintf(ev->agent_id, sizeof ev->agent_id, "%s", c->agent_id);
    (void)snprintf(ev->instance_id, sizeof ev->instance_id, "%s", c->instance_id);
    (void)snprintf(ev->reason, sizeof ev->reason, "%s", reason);
}

enum bt_code spawn_events_room(struct spawn *s, struct bt_error *err)
{
    const size_t want = (s->children_n + 1) * EVENTS_PER_CHILD + EVENTS_SPARE;
    struct spawn_event *more;

    if (want <= s->events_cap) {
        return BT_OK;
    }
    more = calloc(2 * want, sizeof *more);
    if (more == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the events of agent processes");
    }
    for (size_t i = 0; i < s->events_n; i++) {
        more[i] = s->events[(s->events_at + i) % s->events_cap];
    }
    free(s->events);
    s->events = more;
    s->events_cap = 2 * want;
    s->events_at = 0;
    return BT_OK;
}

bool spawn_next_event(struct spawn *s, struct spawn_event *ret_event)
{
    if (s->events_n == 0) {
        return false;
    }
    *ret_event = s->events[s->events_at];
    s->events_at = (s->events_at + 1) % s->events_cap;
    s->events_n--;
    return true;
}

static void emit_gave_up(struct spawn *s, const struct child *c)
{
    char reason[SPAWN_REASON_MAX + 64];

    (void)snprintf(reason, sizeof reason, "%u crashes within %" PRIu64 " ms; the last: %s",
                   c->policy.set.intensity, c->policy.set.period_ms, c->reason);
    spawn_emit(s, c, SPAWN_GAVE_UP, reason);
}

/* True when the child has ended without a process: its START was not sent yet. */
static bool queue_stop(struct child *c, unsigned order)
{
    if ((c->send & SEND_START) != 0) {
        c->send = 0;
        return true;
    }
    c->send |= order;
    return false;
}

static void ended(struct spawn *s, struct child *c, bool clean, msec now);

void spawn_apply(struct spawn *s, struct child *c, const struct policy_event *ev)
{
    struct policy_commands out;
    bool never_started = false;

    policy_handle(&c->policy, ev, &out);
    for (uint32_t i = 0; i < out.n; i++) {
        switch (out.at[i]) {
        case POLICY_SPAWN:
            c->stale = false;
            child_new_instance(c);
            s->changes++;
            break;
        case POLICY_TERM:
            never_started = queue_stop(c, SEND_TERM);
            break;
        case POLICY_KILL:
            never_started = queue_stop(c, SEND_KILL);
            break;
        case POLICY_CAME_UP:
            spawn_emit(s, c, SPAWN_UP, "");
            spawn_group_note(s, c, out.at[i], ev->now);
            break;
        case POLICY_CRASHED:
        case POLICY_ENDED:
            spawn_group_note(s, c, out.at[i], ev->now);
            break;
        case POLICY_RESTARTED:
            spawn_emit(s, c, SPAWN_RESTARTED, c->reason);
            break;
        case POLICY_GAVE_UP:
            emit_gave_up(s, c);
            break;
        case POLICY_COMMAND_COUNT:
            break;
        }
    }
    if (never_started) {
        (void)snprintf(c->reason, sizeof c->reason, "not started");
        ended(s, c, false, ev->now);
    }
    if (c->group != NULL) {
        spawn_group_run(s, c->group, ev->now);
    }
}

/* c->reason is already set. */
static void ended(struct spawn *s, struct child *c, bool clean, msec now)
{
    bool asked = c->policy.state == POLICY_STOPPING && c->policy.then != POLICY_THEN_CRASH;
    struct policy_event ev = {.type = POLICY_ON_EXITED, .now = now, .clean = clean};

    spawn_emit(s, c, SPAWN_EXITED, c->reason);
    s->events[(s->events_at + s->events_n - 1) % s->events_cap].expected =
        asked || (clean && c->policy.set.restart != POLICY_PERMANENT);
    c->instance_id[0] = 0;
    s->changes++;
    c->pid = 0;
    c->send = 0;
    c->kill_reason = NULL;
    spawn_apply(s, c, &ev);
}

static void describe_end(const struct spawn *s, struct child *c, const struct packet *p)
{
    char how[SPAWN_REASON_MAX];
    char log[SPAWN_LOG_MAX];
    const bool limited = p->type == PACKET_EXITED && p->text[0] != 0;

    spawn_log_path(s, c->name, log, sizeof log);
    c->last_line[0] = 0;
    if (p->type == PACKET_EXITED) {
        log_tail(log, c->log_from, c->last_line, sizeof c->last_line);
    }

    if (p->type == PACKET_START_FAILED) {
        (void)snprintf(how, sizeof how, "%s", p->text);
    } else if (WIFSIGNALED(p->status)) {
        (void)snprintf(how, sizeof how, "killed by signal %d", WTERMSIG(p->status));
    } else {
        (void)snprintf(how, sizeof how, "exit code %d", WEXITSTATUS(p->status));
    }
    (void)snprintf(c->reason, sizeof c->reason, "%s%s%s%s%s",
                   c->kill_reason != NULL ? c->kill_reason : "", c->kill_reason != NULL ? ": " : "",
                   how, limited ? "; it had reached its " : "", limited ? p->text : "");
}

struct child *spawn_find_instance(const struct spawn *s, struct str instance_id)
{
    for (size_t i = 0; i < s->children_n; i++) {
        if (instance_id.len != 0 && str_is(instance_id, s->children[i]->instance_id)) {
            return s->children[i];
        }
    }
    return NULL;
}

static void take(struct spawn *s, const struct packet *p, msec now)
{
    struct child *c;

    if (p->type == PACKET_HELLO) {
        spawn_link_set_pid(&s->link, p->pid);
        return;
    }
    c = spawn_find_instance(s, str_from(p->instance));
    if (c == NULL) {
        return; /* a child that was not adopted, or a report that a later event has overtaken */
    }
    if (p->type == PACKET_STARTED) {
        c->pid = p->pid;
        if (c->policy.spawns <= 1) {
            spawn_emit(s, c, SPAWN_STARTED, "");
        }
        spawn_apply(s, c, &(struct policy_event){.type = POLICY_ON_SPAWNED, .now = now});
    } else if (p->type == PACKET_EXITED || p->type == PACKET_START_FAILED) {
        describe_end(s, c, p);
        ended(s, c, p->type == PACKET_EXITED && WIFEXITED(p->status) && WEXITSTATUS(p->status) == 0,
              now);
    }
}

bool spawn_send_order(struct spawn *s, enum packet_type type, const char *instance, int status)
{
    struct packet *p = &s->order;

    *p = (struct packet){.type = type, .instance = instance, .status = status};
    buf_clear(&s->out);
    packet_encode(p, &s->out);
    if (FAILPOINT("spawn") == FAILPOINT_ERROR) {
        return false;
    }
    return buf_check(&s->out, NULL) == BT_OK && spawn_link_send(&s->link, &s->out) == LINK_DONE;
}

void spawn_log_path(const struct spawn *s, const char *name, char *ret, size_t cap)
{
    (void)snprintf(ret, cap, "%s/log/%s.log", s->link.state_path, name);
}

static bool send_start(struct spawn *s, struct child *c)
{
    char log[SPAWN_LOG_MAX];
    bool sent;

    spawn_log_path(s, c->name, log, sizeof log);
    c->log_from = log_tail_begin(log);
    child_fill_start(s, c, &s->order);
    buf_clear(&s->out);
    packet_encode(&s->order, &s->out);
    child_wipe(c);
    sent = buf_check(&s->out, NULL) == BT_OK && spawn_link_send(&s->link, &s->out) == LINK_DONE;
    if (s->out.at != NULL) {
        explicit_bzero(s->out.at, s->out.len);
    }
    return sent;
}

uint32_t spawn_changes(const struct spawn *s)
{
    return s->changes;
}

static bool flush_one(struct spawn *s, struct child *c)
{
    if ((c->send & SEND_START) != 0) {
        if (!send_start(s, c)) {
            return false;
        }
        c->send &= ~(unsigned)SEND_START;
    }
    if ((c->send & SEND_TERM) != 0) {
        if (!spawn_send_order(s, PACKET_SIGNAL, c->instance_id, SIGTERM)) {
            return false;
        }
        c->send &= ~(unsigned)SEND_TERM;
    }
    if ((c->send & SEND_KILL) != 0) {
        if (!spawn_send_order(s, PACKET_KILL_TREE, c->instance_id, 0)) {
            return false;
        }
        c->send &= ~(unsigned)SEND_KILL;
    }
    return true;
}

void spawn_flush(struct spawn *s)
{
    for (size_t i = 0; i < s->children_n && s->link.sock >= 0; i++) {
        if (s->children[i]->send != 0 && !flush_one(s, s->children[i])) {
            return;
        }
    }
}

static void start_spawner(struct spawn *s, msec now)
{
    struct bt_error err;

    s->retry_due = MSEC_NEVER;
    s->started_at = now;
    if (spawn_link_start(&s->link, &err) != BT_OK) {
        log_err("spawn.spawner_failed", "reason=\"%s\"", err.msg);
        s->retry_due = msec_add(now, RETRY_MS);
    } else if (!spawn_link_connect(&s->link)) {
        log_err("spawn.spawner_failed", "reason=\"it cannot be reached\"");
        s->retry_due = msec_add(now, RETRY_MS);
    }
}

/* The spawner's direct children died with it (PDEATHSIG). The next spawner kills their descendants
 * when it starts. */
static void spawner_lost(struct spawn *s, msec now)
{
    log_err("spawn.spawner_lost", "pid=%d action=replace", (int)s->link.pid);
    spawn_link_disconnect(&s->link);
    if (s->link.child > 0) {
        (void)kill(s->link.child,
                   SIGKILL); /* for one that sent an invalid packet; otherwise it is dead already */
    }
    spawn_link_reap(&s->link, true);
    s->blameless = true;
    for (size_t i = 0; i < s->children_n; i++) {
        struct child *c = s->children[i];

        if (policy_is_live(&c->policy) && (c->send & SEND_START) == 0) {
            (void)snprintf(c->reason, sizeof c->reason, "the spawner ended");
            c->last_line[0] = 0;
            ended(s, c, false, now);
        }
    }
    s->blameless = false;
    if (now < msec_add(s->started_at, RETRY_MS)) {
        /* it ended at once: waits, so that spawners do not restart in a tight loop */
        s->retry_due = msec_add(now, RETRY_MS);
    } else {
        start_spawner(s, now);
    }
}

void spawn_handle(struct spawn *s, msec now)
{
    struct bt_error err;
    size_t len = 0;

    for (unsigned i = 0; i < PACKETS_PER_CYCLE && s->link.sock >= 0; i++) {
        enum link_io io;

        if (s->children_set && !events_have_room(s)) {
            break;
        }
        io = spawn_link_receive(&s->link, s->in, sizeof s->in, &len);
        if (io == LINK_LATER) {
            break;
        }
        if (io == LINK_DONE && packet_decode(s->in, len, &s->received, &err) == BT_OK) {
            take(s, &s->received, now);
        } else {
            spawner_lost(s, now);
        }
    }
    spawn_sweep_removed(s);
    spawn_flush(s);
}

void spawn_tick(struct spawn *s, msec now)
{
    if (now >= s->retry_due) {
        spawn_link_reap(&s->link, false);
        start_spawner(s, now);
    }
    for (size_t i = 0; i < s->children_n && events_have_room(s); i++) {
        struct child *c = s->children[i];

        if (policy_deadline(&c->policy) > now) {
            continue;
        }
        if (c->policy.state == POLICY_STARTING) {
            c->kill_reason = c->policy.lost ? "hung: its lease is over, and it did not come back"
                                            : "did not register in time";
        } else if (c->policy.state == POLICY_STOPPING && c->kill_reason == NULL) {
            c->kill_reason = "did not stop in time";
        }
        spawn_apply(s, c, &(struct policy_event){.type = POLICY_ON_TICK, .now = now});
    }
    for (size_t i = 0; i < s->groups_n && events_have_room(s); i++) {
        spawn_group_run(s, s->groups[i], now);
    }
    spawn_sweep_removed(s);
    spawn_flush(s);
}

msec spawn_deadline(const struct spawn *s)
{
    msec due = s->retry_due;

    for (size_t i = 0; i < s->children_n; i++) {
        msec at = policy_deadline(&s->children[i]->policy);

        due = at < due ? at : due;
    }
    for (size_t i = 0; i < s->groups_n; i++) {
        const struct spawn_group *g = s->groups[i];
        msec at = group_deadline(&g->group, g->members, g->n);

        due = at < due ? at : due;
    }
    return due;
}
