/* Finds or starts a spawner, queues orders, and ends. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/limits.h"
#include "supervisor/spawn/spawn_internal.h"

enum {
    ORPHAN_GRACE_MS = 4000,
    HELLO_MS = 4000, /* a new spawner may first kill what an earlier one left */
    OPEN_MS = 12000, /* in total: an old spawner may take some time to end */
    CLOSE_MS = 5000,
    PATH_BYTES = 4096
};

enum hello { HELLO_TAKEN, HELLO_LEAVING, HELLO_FOREIGN, HELLO_SILENT, HELLO_NO_MEMORY };

/* Receives the next packet into s->received; HELLO_TAKEN when there is one. */
static enum hello next_packet(struct spawn *s, msec until)
{
    size_t len = 0;
    enum link_io io;

    if (!spawn_link_wait(&s->link, until)) {
        return HELLO_SILENT;
    }
    io = spawn_link_receive(&s->link, s->in, sizeof s->in, &len);
    if (io == LINK_BROKEN) {
        return HELLO_LEAVING;
    }
    if (io == LINK_LATER) {
        return HELLO_SILENT;
    }
    return packet_decode(s->in, len, &s->received, NULL) == BT_OK ? HELLO_TAKEN : HELLO_FOREIGN;
}

static void add_found(struct spawn *s)
{
    struct found *f = &s->found[s->found_n++];

    *f = (struct found){.pid = s->received.pid, .hash = s->received.hash};
    (void)snprintf(f->name, sizeof f->name, "%s", s->received.name);
    (void)snprintf(f->instance_id, sizeof f->instance_id, "%s", s->received.instance);
}

static enum hello shake_hands(struct spawn *s, msec until)
{
    enum hello hello = next_packet(s, until);
    uint32_t n = s->received.count;

    if (hello != HELLO_TAKEN) {
        return hello;
    }
    if (s->received.type != PACKET_HELLO || strcmp(s->received.text, PACKET_VERSION) != 0 ||
        n > 2 * LIMIT_PROCESSES) {
        return HELLO_FOREIGN;
    }
    spawn_link_set_pid(&s->link, s->received.pid);
    free(s->found);
    s->found_n = 0;
    s->found = calloc(n + 1, sizeof *s->found);
    if (s->found == NULL) {
        return HELLO_NO_MEMORY;
    }
    while (s->found_n < n && hello == HELLO_TAKEN) {
        hello = next_packet(s, until);
        if (hello == HELLO_TAKEN && s->received.type != PACKET_CHILD) {
            hello = HELLO_FOREIGN;
        } else if (hello == HELLO_TAKEN) {
            add_found(s);
        }
    }
    return hello;
}

/* True when it has ended in time. */
static bool end_spawner(struct spawn *s, msec until)
{
    enum hello last = HELLO_TAKEN;

    (void)spawn_send_order(s, PACKET_SHUTDOWN, "", 0);
    while ((last == HELLO_TAKEN || last == HELLO_FOREIGN) && clock_mono_ms() < until) {
        last = next_packet(s, until);
    }
    spawn_link_disconnect(&s->link);
    return last == HELLO_LEAVING;
}

/* Connects, or starts a spawner first. */
static enum bt_code connect_or_start(struct spawn *s, struct bt_error *err)
{
    enum bt_code code;

    if (spawn_link_connect(&s->link)) {
        return BT_OK;
    }
    if (s->fresh) {
        return err_set(err, BT_UNAVAILABLE,
                       "the spawner (this program, started again with --spawner) ended at once");
    }
    s->fresh = true;
    s->started_at = clock_mono_ms();
    code = spawn_link_start(&s->link, err);
    /* It listens already. If it has ended again, the greeting finds that out. */
    (void)(code == BT_OK && spawn_link_connect(&s->link));
    return code;
}

/* One try to exchange HELLO. *ret_done: no further try is needed. */
static enum bt_code try_greet(struct spawn *s, bool *ret_done, msec until, struct bt_error *err)
{
    msec hello_until = msec_add(clock_mono_ms(), HELLO_MS);
    enum bt_code code = BT_OK;

    if (s->link.sock < 0) {
        return connect_or_start(s, err);
    }
    switch (shake_hands(s, hello_until < until ? hello_until : until)) {
    case HELLO_TAKEN:
        *ret_done = true;
        break;
    case HELLO_LEAVING:
        spawn_link_disconnect(&s->link);
        spawn_link_reap(&s->link, true);
        break;
    case HELLO_FOREIGN:
        log_warn("spawn.foreign_spawner", "dir=%s action=end", s->link.state_path);
        if (!end_spawner(s, until)) {
            code = err_set(err, BT_TIMEOUT, "%s: a spawner of another version does not end",
                           s->link.state_path);
        }
        break;
    case HELLO_SILENT:
        code = err_set(err, BT_TIMEOUT,
                       "%s: a spawner is there but does not answer; end its process and try again",
                       s->link.state_path);
        break;
    case HELLO_NO_MEMORY:
        code = err_set(err, BT_NOMEM, "no memory for the list of agent processes");
        break;
    }
    return code;
}

enum bt_code spawn_new(const struct spawn_options *opt, struct spawn **ret_spawn,
                       struct bt_error *err)
{
    struct spawn *s = calloc(1, sizeof *s);
    enum bt_code code;

    if (s == NULL) {
        return err_set(err, BT_NOMEM, "no memory for process supervision");
    }
    buf_init(&s->out, PACKET_BYTES);
    s->shards = opt->shards;
    s->retry_due = MSEC_NEVER;
    s->children = calloc(LIMIT_PROCESSES + 1, sizeof(struct child *));
    if (s->children == NULL) {
        buf_done(&s->out);
        free(s);
        return err_set(err, BT_NOMEM, "no memory for process supervision");
    }
    code = spawn_link_open(&s->link, opt->state_dir,
                           opt->orphan_grace_ms != 0 ? opt->orphan_grace_ms : ORPHAN_GRACE_MS,
                           opt->no_cgroup, err);
    if (code == BT_OK && opt->path_first != NULL) {
        s->path_first =
            arena_str(&s->arena, (struct str){opt->path_first, strlen(opt->path_first)}).ptr;
        code = s->path_first != NULL ? BT_OK : err_set(err, BT_NOMEM, "no memory for a path");
    }
    if (code != BT_OK) {
        spawn_abandon(s);
        return code;
    }
    *ret_spawn = s;
    return BT_OK;
}

enum bt_code spawn_awake(struct spawn *s, struct bt_error *err)
{
    return connect_or_start(s, err);
}

enum bt_code spawn_begin(const struct spawn_options *opt, struct spawn **ret_spawn,
                         struct bt_error *err)
{
    struct spawn *s = NULL;
    enum bt_code code = spawn_new(opt, &s, err);

    code = code == BT_OK ? spawn_awake(s, err) : code;
    if (code != BT_OK) {
        spawn_abandon(s);
        return code;
    }
    *ret_spawn = s;
    return BT_OK;
}

enum bt_code spawn_greet(struct spawn **io_spawn, struct bt_error *err)
{
    struct spawn *s = *io_spawn;
    const msec until = msec_add(clock_mono_ms(), OPEN_MS);
    bool done = false;
    enum bt_code code = BT_OK;

    while (code == BT_OK && !done) {
        code = clock_mono_ms() < until
                   ? try_greet(s, &done, until, err)
                   : err_set(err, BT_TIMEOUT, "%s: no spawner was ready within %d ms",
                             s->link.state_path, OPEN_MS);
    }
    if (code != BT_OK) {
        spawn_abandon(s);
        *io_spawn = NULL;
        return code;
    }
    log_info("spawn.open", "spawner=%d adopted=%s children=%u", (int)s->link.pid,
             s->fresh ? "no" : "yes", s->found_n);
    return BT_OK;
}

int spawn_fd(const struct spawn *s)
{
    return s->link.epoll;
}

bool spawn_registered(struct spawn *s, struct str instance_id, msec now)
{
    struct child *c = spawn_find_instance(s, instance_id);

    if (c != NULL && c->pid == 0) {
        /* the STARTED packet is still unread; read it first to keep the events in order */
        spawn_handle(s, now);
        c = spawn_find_instance(s, instance_id);
    }
    if (c == NULL) {
        return false;
    }
    (void)spawn_send_order(s, PACKET_REGISTERED, c->instance_id, 0); /* else it stays readable */
    spawn_apply(s, c, &(struct policy_event){.type = POLICY_ON_REGISTERED, .now = now});
    spawn_flush(s); /* the next one of its group may start */
    return true;
}

bool spawn_owns(const struct spawn *s, struct str instance_id)
{
    return spawn_find_instance(s, instance_id) != NULL;
}

bool spawn_kill_instance(struct spawn *s, struct str instance_id, const char *why, msec now)
{
    struct child *c = spawn_find_instance(s, instance_id);

    if (c == NULL) {
        return false;
    }
    c->kill_reason = why;
    spawn_apply(s, c, &(struct policy_event){.type = POLICY_ON_KILL, .now = now});
    spawn_flush(s);
    return true;
}

void spawn_lost(struct spawn *s, struct str instance_id, msec wait_ms, msec now)
{
    struct child *c = spawn_find_instance(s, instance_id);

    if (c != NULL) {
        spawn_apply(
            s, c, &(struct policy_event){.type = POLICY_ON_LOST, .now = now, .grace_ms = wait_ms});
    }
}

static enum bt_code order(struct spawn *s, struct str name, const struct policy_event *ev,
                          struct bt_error *err)
{
    const msec now = ev->now;
    const bool stops = ev->type != POLICY_ON_START;
    const size_t ix = spawn_index(s, name);
    struct child *c = ix < s->children_n ? s->children[ix] : NULL;

    if (c == NULL) {
        return err_set(err, BT_NOT_FOUND, "no agent process is called '%.*s'", STR_ARG(name));
    }
    c->parked = stops;
    if (c->group != NULL && stops) {
        group_park(c->group->members, c->ix);
    } else if (c->group != NULL) {
        group_start(&c->group->group, c->group->members, c->group->n, c->ix);
        spawn_group_run(s, c->group, now); /* when its turn has come */
    }
    if (c->group == NULL || stops) {
        spawn_apply(s, c, ev);
    }
    spawn_flush(s);
    return BT_OK;
}

enum bt_code spawn_start_child(struct spawn *s, struct str name, msec now, struct bt_error *err)
{
    return order(s, name, &(struct policy_event){.type = POLICY_ON_START, .now = now}, err);
}

enum bt_code spawn_stop_child(struct spawn *s, struct str name, msec now, struct bt_error *err)
{
    return order(s, name, &(struct policy_event){.type = POLICY_ON_STOP, .now = now}, err);
}

enum bt_code spawn_drain_child(struct spawn *s, struct str name, msec drain_ms, msec now,
                               struct bt_error *err)
{
    return order(s, name,
                 &(struct policy_event){.type = POLICY_ON_DRAIN, .now = now, .grace_ms = drain_ms},
                 err);
}

void spawn_stop_all(struct spawn *s, msec grace_ms, msec now)
{
    s->stopping = true;
    for (size_t i = 0; i < s->children_n; i++) {
        if (s->children[i]->group == NULL) {
            spawn_apply(
                s, s->children[i],
                &(struct policy_event){.type = POLICY_ON_STOP, .now = now, .grace_ms = grace_ms});
        }
    }
    for (size_t i = 0; i < s->groups_n; i++) {
        group_stop(&s->groups[i]->group, grace_ms != 0 ? msec_add(now, grace_ms) : MSEC_NEVER);
        spawn_group_run(s, s->groups[i], now);
    }
    spawn_flush(s);
}

bool spawn_is_idle(const struct spawn *s)
{
    bool idle = true;

    for (size_t i = 0; i < s->children_n && idle; i++) {
        idle = !policy_is_live(&s->children[i]->policy);
    }
    return idle;
}

size_t spawn_count(const struct spawn *s)
{
    return s->children_n;
}

size_t spawn_index(const struct spawn *s, struct str name)
{
    size_t i = 0;

    while (i < s->children_n && !str_is(name, s->children[i]->name)) {
        i++;
    }
    return i;
}

void spawn_describe(const struct spawn *s, size_t ix, struct spawn_info *ret_info)
{
    const struct child *c = s->children[ix];
    const bool group_failed = c->group != NULL && c->group->group.state == GROUP_GAVE_UP;

    *ret_info = (struct spawn_info){
        .name = c->name,
        .agent_id = c->agent_id,
        .group = c->group != NULL ? c->group->name : NULL,
        .stale = c->stale,
        .parked = c->parked,
        .instance_id = c->instance_id,
        .pid = c->pid,
        .state = group_failed && !policy_is_live(&c->policy) ? POLICY_FAILED : c->policy.state,
        .restarts = c->policy.spawns > 0 ? c->policy.spawns - 1 : 0,
        .reason = c->reason,
        .last_line = c->last_line};
    spawn_log_path(s, c->name, ret_info->log, sizeof ret_info->log);
}

pid_t spawn_spawner_pid(const struct spawn *s)
{
    return s->link.pid;
}

void spawn_abandon(struct spawn *s)
{
    if (s == NULL) {
        return;
    }
    spawn_link_done(&s->link);
    spawn_link_reap(&s->link, false);
    for (size_t i = 0; i < s->children_n; i++) {
        child_free(s->children[i]);
    }
    spawn_groups_free(s);
    free(s->children);
    free(s->found);
    free(s->events);
    buf_done(&s->out);
    arena_done(&s->arena);
    free(s);
}

void spawn_close(struct spawn *s)
{
    if (s == NULL) {
        return;
    }
    if (s->link.sock >= 0 && !end_spawner(s, msec_add(clock_mono_ms(), CLOSE_MS))) {
        log_err("spawn.close", "reason=\"the spawner did not end in %d ms\" action=kill", CLOSE_MS);
    }
    if (s->link.child > 0) {
        /* an unreaped child, so the pid cannot belong to another process */
        (void)kill(s->link.child, SIGKILL);
        spawn_link_reap(&s->link, true);
    }
    spawn_abandon(s);
}
