/* What the daemon calls: told, and failing when a case wants it; and what a case has in its hands.
 */
#include "tests/unit/daemon/daemon_rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/client/state.h"
#include "supervisor/audit/audit.h"
#include "supervisor/auth/store.h"
#include "supervisor/conversation/conversation.h"
#include "supervisor/dispatch/dispatch.h"
#include "supervisor/engine/suspect.h"
#include "supervisor/notify.h"
#include "supervisor/roster_internal.h"
#include "supervisor/signals.h"
#include "supervisor/standby.h"

/* True: it goes on; otherwise the call fails. */
static bool begins(const char *name, bool tells, struct bt_error *err)
{
    const struct daemon_case *is = dw.is;
    bool fails = false;

    if (is == NULL) {
        return true;
    }
    if (is->fails != NULL && strcmp(is->fails, name) == 0) {
        const int at = is->fails_at > 0 ? is->fails_at : 1;
        dw.calls++;
        fails = dw.calls == at || (is->all_fail && dw.calls > at);
    }
    if (fails && dw.waits == 0) {
        daemon_forget(); /* what was before it is told elsewhere */
    }
    if (tells || dw.is->cycles || fails) {
        daemon_note("  %s%s", name, fails ? " FAILS" : "");
    }
    if (fails && err != NULL) {
        (void)err_set(err, is->with != BT_OK ? is->with : BT_INTERNAL, "%s has failed", name);
    }
    return !fails;
}

#define WRAPPED(type, name, params)                                                                \
    type __real_##name params;                                                                     \
    type __wrap_##name params;                                                                     \
    type __wrap_##name params
/* May fail; told in any case, or with the calls of cycles. */
#define STEP(tells, name, params, args)                                                            \
    WRAPPED(enum bt_code, name, params)                                                            \
    {                                                                                              \
        return begins(#name, tells, err) ? __real_##name args : err->code;                         \
    }
#define CALL(tells, name, params, args)                                                            \
    WRAPPED(void, name, params)                                                                    \
    {                                                                                              \
        (void)begins(#name, tells, NULL);                                                          \
        __real_##name args;                                                                        \
    }

STEP(true, audit_open, (const char *dir, msec wall, struct audit **ret, struct bt_error *err),
     (dir, wall, ret, err))
STEP(true, sessions_new, (struct sessions * *ret, struct bt_error *err), (ret, err))
STEP(true, engine_new,
     (const struct engine_options *opt, struct journal *j, struct link *l, struct engine **ret,
      struct bt_error *err),
     (opt, j, l, ret, err))
STEP(true, processes_open, (struct processes * p, struct bt_error *err), (p, err))
STEP(true, dispatch_new,
     (const struct engine_options *opt, struct link *l, const struct process_hooks *p,
      session_job_fn *over, struct dispatch **ret, struct bt_error *err),
     (opt, l, p, over, ret, err))
STEP(true, api_new, (struct api * *ret, struct bt_error *err), (ret, err))
STEP(true, schedules_new, (struct engine * e, struct schedules **ret, struct bt_error *err),
     (e, ret, err))
STEP(true, engine_recover, (struct engine * e, uint64_t *ret_n, struct bt_error *err),
     (e, ret_n, err))
STEP(true, schedules_load, (struct schedules * s, struct bt_error *err), (s, err))
STEP(true, reload_schedules,
     (const struct engine *e, struct schedules *s, const struct config *c, struct bt_error *err),
     (e, s, c, err))
STEP(true, spawn_awake, (struct spawn * s, struct bt_error *err), (s, err))
STEP(true, processes_start, (struct processes * p, struct bt_error *err), (p, err))
STEP(true, journal_rewound_told, (struct journal * j, struct bt_error *err), (j, err))
STEP(false, engine_end, (struct engine * e, struct bt_error *err), (e, err))
STEP(false, retention_cycle, (struct retention * r, msec now, msec wall, struct bt_error *err),
     (r, now, wall, err))

CALL(true, suspect_watch, (struct engine * e), (e))
CALL(true, engine_watch_sessions, (struct engine * e), (e))
CALL(false, roster_introduce, (struct roster * r), (r))
CALL(false, processes_hold_back, (struct processes * p), (p))
CALL(true, processes_adopted, (struct processes * p), (p))
CALL(true, engine_drain, (struct engine * e), (e))
CALL(true, reload_on_signal, (struct engine * e), (e))
CALL(true, engine_meanwhile, (struct engine * e), (e))
CALL(true, journal_close, (struct journal * j), (j))
CALL(false, roster_cycle, (struct roster * r), (r))
CALL(false, schedules_cycle, (struct schedules * s), (s))
CALL(false, sweep_cycle, (struct sweep * s), (s))
CALL(false, processes_credentials, (struct processes * p, struct auth_store *s), (p, s))

WRAPPED(enum bt_code, signals_open, (int *ret, struct bt_error *err))
{
    const enum bt_code code =
        begins("signals_open", true, err) ? __real_signals_open(ret, err) : err->code;
    dw.signals_fd = code == BT_OK ? *ret : -1;
    return code;
}

WRAPPED(int, signalfd, (int fd, const sigset_t *mask, int flags))
{
    MUST(fd == -1 && flags == (SFD_CLOEXEC | SFD_NONBLOCK));
    if (!begins("signalfd", false, NULL)) {
        errno = EMFILE;
        return -1;
    }
    return __real_signalfd(fd, mask, flags);
}

WRAPPED(enum bt_code, standby_open,
        (const struct standby_options *o, struct journal **ret, bool *ret_stop,
         struct bt_error *err))
{
    const struct journal_options *j = o->journal;
    struct journal_options mine = *j;

    daemon_note("  standby_open fleet=%s shards=%u signals=%s durability=%d ballast=%llu "
                "lease_ms=%u node=%s shard=%u/%u config=%s blobs=%s",
                o->fleet_url, o->shards, o->signals == dw.signals_fd ? "yes" : "others",
                (int)j->durability, (unsigned long long)j->ballast_bytes, j->lease_ms, j->node,
                j->shard, j->shards, j->config != NULL ? "yes" : "none",
                j->blobs_of != NULL ? "yes" : "none");
    *ret = NULL;
    *ret_stop = dw.standby_stops;
    if (dw.standby_stops || !begins("standby_open", false, err)) {
        return dw.standby_stops ? BT_OK : err->code;
    }
    mine.durability = DURABILITY_PROCESS;
    mine.ballast_bytes = 0;
    return journal_open_sqlite(o->state_dir, &mine, ret, err);
}

static void tell_spawner(const char *name, const struct spawn_options *o)
{
    daemon_note("  %s %s shards=%u", name, strcmp(o->state_dir, rig.dir) == 0 ? "DIR" : "elsewhere",
                o->shards);
}

WRAPPED(enum bt_code, spawn_new,
        (const struct spawn_options *o, struct spawn **ret, struct bt_error *err))
{
    tell_spawner("spawn_new", o);
    return begins("spawn_new", false, err) ? __real_spawn_new(o, ret, err) : err->code;
}

WRAPPED(enum bt_code, spawn_begin,
        (const struct spawn_options *o, struct spawn **ret, struct bt_error *err))
{
    tell_spawner("spawn_begin", o);
    return begins("spawn_begin", false, err) ? __real_spawn_begin(o, ret, err) : err->code;
}

WRAPPED(enum bt_code, spawn_greet, (struct spawn * *io, struct bt_error *err))
{
    static const struct packet hello = {.type = PACKET_HELLO, .pid = 4711, .text = PACKET_VERSION};

    if (!begins("spawn_greet", true, err)) {
        return err->code;
    }
    rig.s = *io;
    if (rig.conn < 0) {
        rig_accept();
        rig_send(&hello);
    }
    return __real_spawn_greet(io, err);
}

/* The spawner ends. */
WRAPPED(void, spawn_close, (struct spawn * s))
{
    daemon_note("  spawn_close");
    if (rig.conn >= 0) {
        daemon_orders();
        (void)close(rig.conn);
        rig.conn = -1;
    }
    __real_spawn_close(s);
}

WRAPPED(enum bt_code, link_new, (uint32_t inbox, struct link **ret, struct bt_error *err))
{
    enum bt_code code;

    daemon_note("  link_new %u", inbox);
    code = begins("link_new", false, err) ? __real_link_new(inbox, ret, err) : err->code;
    if (code == BT_OK) {
        fake_link_wakes(*ret);
    }
    return code;
}

WRAPPED(void, link_one_task_thread, (void))
{
    daemon_note("  link_one_task_thread");
}

WRAPPED(void, link_trust, (struct link * l, const uint32_t *uids, uint32_t n))
{
    daemon_note("  link_trust %u %u", n, n > 0 ? uids[n - 1] : 0);
    __real_link_trust(l, uids, n);
}

WRAPPED(void, link_trust_followers, (struct link * l, uint32_t n))
{
    (void)l;
    daemon_note("  link_trust_followers %u", n);
}

WRAPPED(enum bt_code, daemon_open_rooms, (struct daemon * d, struct bt_error *err))
{
    dw.d = d;
    return __real_daemon_open_rooms(d, err);
}

WRAPPED(enum bt_code, auth_store_new,
        (const char *dir, struct sessions *s, struct audit *a, struct session_time time,
         struct auth_store **ret, struct bt_error *err))
{
    enum bt_code code;

    daemon_note("  auth_store_new %s", strcmp(dir, rig.dir) == 0 ? "DIR" : "elsewhere");
    MUST(time.now == dw.now && time.wall == clock_wall_ms());
    code = begins("auth_store_new", false, err) ? __real_auth_store_new(dir, s, a, time, ret, err)
                                                : err->code;
    dw.credentials_fd = code == BT_OK ? auth_store_fd(*ret) : -1;
    return code;
}

WRAPPED(enum bt_code, roster_new,
        (struct engine * e, struct spawn *s, const struct config *c, struct roster **ret,
         struct bt_error *err))
{
    MUST(e == dw.d->engine && s == dw.d->spawn && c == dw.d->opt->config);
    return begins("roster_new", true, err) ? __real_roster_new(e, s, c, ret, err) : err->code;
}

WRAPPED(enum bt_code, sweep_new,
        (const struct sweep_options *o, struct engine *e, struct sweep **ret, struct bt_error *err))
{
    MUST(o == &dw.d->opt->artifacts);
    return begins("sweep_new", true, err) ? __real_sweep_new(o, e, ret, err) : err->code;
}

WRAPPED(enum bt_code, retention_new,
        (const struct retention_options *o, const struct retention_hooks *h, struct journal *j,
         struct retention **ret, struct bt_error *err))
{
    MUST(o == &dw.d->opt->retention);
    dw.retention = *h;
    return begins("retention_new", true, err) ? __real_retention_new(o, h, j, ret, err) : err->code;
}

WRAPPED(enum bt_code, link_canary_start, (msec period_ms, struct bt_error *err))
{
    daemon_note("  link_canary_start %llu", (unsigned long long)period_ms);
    return begins("link_canary_start", false, err) ? __real_link_canary_start(period_ms, err)
                                                   : err->code;
}

WRAPPED(enum bt_code, engine_system_record,
        (struct engine * e, enum record_type type, struct str text, uint64_t n,
         struct bt_error *err))
{
    daemon_note("  engine_system_record %s n=%llu text=%.*s",
                type == REC_SUPERVISOR_STARTED    ? "started"
                : type == REC_SUPERVISOR_STOPPING ? "stopping"
                                                  : "?",
                (unsigned long long)n, STR_ARG(text));
    return begins("engine_system_record", false, err)
               ? __real_engine_system_record(e, type, text, n, err)
               : err->code;
}

WRAPPED(enum bt_code, engine_write_record,
        (struct engine * e, const struct record *rec, struct record_extra *x, struct bt_error *err))
{
    if (rec->type == REC_JOURNAL_REWOUND) {
        MUST(rec->now == engine_now(e) && rec->wall == engine_wall(e));
        daemon_note("  engine_write_record rewound kept=%llu lost=%llu %.*s",
                    (unsigned long long)REC(rec, rewound)->kept_seq,
                    (unsigned long long)REC(rec, rewound)->lost_seq, STR_ARG(rec->text));
    }
    return begins("engine_write_record", false, err) ? __real_engine_write_record(e, rec, x, err)
                                                     : err->code;
}

WRAPPED(enum bt_code, state_endpoints_write,
        (const char *dir, const struct state_endpoints *e, struct bt_error *err))
{
    static const struct uuid none;

    MUST(strcmp(dir, dw.d->opt->engine.state_dir) == 0);
    daemon_note("  state_endpoints_write control=%s events=%s version=%s pid=%s namespace=%s "
                "instance=%s",
                e->control, e->events, strcmp(e->version, BATON_VERSION) == 0 ? "ours" : e->version,
                e->pid == (uint64_t)getpid() ? "ours" : "another",
                e->pid_namespace == state_pid_namespace() ? "ours" : "another",
                memcmp(&e->instance, &none, sizeof none) == 0 ? "none"
                : memcmp(&e->instance, &engine_options(dw.d->engine)->instance, sizeof none) == 0
                    ? "the engine's"
                    : "another");
    return begins("state_endpoints_write", false, err) ? __real_state_endpoints_write(dir, e, err)
                                                       : err->code;
}

WRAPPED(enum bt_code, state_endpoints_remove,
        (const char *dir, struct uuid instance, struct bt_error *err))
{
    if (!begins("state_endpoints_remove", true, err)) {
        return err->code;
    }
    MUST(strcmp(dir, dw.d->opt->engine.state_dir) == 0);
    MUST(memcmp(&instance, &engine_options(dw.d->engine)->instance, sizeof instance) == 0);
    return __real_state_endpoints_remove(dir, instance, err);
}

WRAPPED(void, engine_hold, (struct engine * e, bool hold))
{
    daemon_note("  engine_hold %d", hold);
    __real_engine_hold(e, hold);
}

WRAPPED(void, engine_begin, (struct engine * e, msec now, msec wall))
{
    MUST(now == dw.now && wall == clock_wall_ms());
    dw.events = 0;
    (void)begins("engine_begin", false, NULL);
    __real_engine_begin(e, now, wall);
}

WRAPPED(bool, engine_keep, (struct engine * e))
{
    (void)begins("engine_keep", false, NULL);
    return dw.other_owner ? false : __real_engine_keep(e);
}

WRAPPED(void, engine_tell, (struct engine * e, struct core_event *ev))
{
    struct instance_view view;

    if (ev->type == CORE_DRAIN) {
        MUST(registry_instance_view(engine_registry(e), ev->slot, &view));
        daemon_note("  engine_tell drain slot=%u %s %.*s", ev->slot,
                    ev->epoch == view.epoch ? "of its epoch" : "of another epoch",
                    STR_ARG(ev->text));
    } else if (ev->type == CORE_STALLED) {
        daemon_note("  engine_tell stalled %llu",
                    (unsigned long long)CORE_EV(ev, stalled)->delay_ms);
    }
    __real_engine_tell(e, ev);
}

WRAPPED(void, dispatch_excuse, (struct engine * e, msec ms))
{
    daemon_note("  dispatch_excuse %llu", (unsigned long long)ms);
    __real_dispatch_excuse(e, ms);
}

WRAPPED(void, engine_on_link, (struct engine * e, struct link_event *ev))
{
    dw.events++;
    dw.now += dw.event_ms;
    __real_engine_on_link(e, ev);
}

WRAPPED(void, api_take_turns, (struct engine * e))
{
    if (dw.events > 0 || dw.is->cycles) {
        daemon_note("  api_take_turns after %u events%s", dw.events,
                    dw.d->silence.unread ? ", and there are more" : "");
    }
    __real_api_take_turns(e);
}

WRAPPED(void, auth_store_refresh, (struct auth_store * s, struct session_time time, bool at_once))
{
    MUST(time.now == engine_now(dw.d->engine) && time.wall == engine_wall(dw.d->engine));
    (void)begins(at_once ? "auth_store_refresh at once" : "auth_store_refresh", false, NULL);
    __real_auth_store_refresh(s, time, at_once);
}

WRAPPED(void, processes_cycle, (struct processes * p, bool readable))
{
    (void)begins(readable ? "processes_cycle readable" : "processes_cycle", false, NULL);
    __real_processes_cycle(p, readable);
}

WRAPPED(void, audit_sync, (struct audit * a, msec now, msec wall))
{
    MUST(now == engine_now(dw.d->engine) && wall == engine_wall(dw.d->engine));
    (void)begins("audit_sync", false, NULL);
    __real_audit_sync(a, now, wall);
}

WRAPPED(void, engine_cycle_took, (struct engine * e, uint64_t us))
{
    if (dw.is->cycles) {
        daemon_note("  engine_cycle_took %llu", (unsigned long long)us);
    }
    __real_engine_cycle_took(e, us);
}

WRAPPED(bool, spawn_registered, (struct spawn * s, struct str instance, msec now))
{
    if (dw.d != NULL && s == dw.d->spawn) {
        MUST(now == engine_now(dw.d->engine));
        daemon_note("  spawn_registered %s",
                    str_is(instance, dw.instance) ? "the last one" : "another");
    }
    return __real_spawn_registered(s, instance, now);
}

WRAPPED(void, spawn_stop_all, (struct spawn * s, msec grace_ms, msec now))
{
    MUST(now == engine_now(dw.d->engine));
    daemon_note("  spawn_stop_all %llu", (unsigned long long)grace_ms);
    __real_spawn_stop_all(s, grace_ms, now);
}

WRAPPED(void, sweep_plan_ended, (struct sweep * s, struct uuid plan_id))
{
    (void)begins("sweep_plan_ended", true, NULL);
    __real_sweep_plan_ended(s, plan_id);
}

WRAPPED(bool, sweep_is_read, (const struct sweep *s, struct uuid plan_id, uint64_t ix))
{
    daemon_note("  sweep_is_read %llu", (unsigned long long)ix);
    return __real_sweep_is_read(s, plan_id, ix);
}

STEP(true, schedules_plan_ended,
     (struct schedules * s, struct str plan_id, enum plan_status status, struct bt_error *err),
     (s, plan_id, status, err))
STEP(true, conversation_plan_ended,
     (struct engine * e, const struct open_plan *p, const struct record *rec, struct str summary,
      size_t not_done, struct bt_error *err),
     (e, p, rec, summary, not_done, err))

WRAPPED(void, journal_while_waiting, (struct journal * j, journal_wait_fn fn, void *self))
{
    daemon_note("  journal_while_waiting %s", fn != NULL ? "something" : "nothing");
    dw.meanwhile = fn;
    dw.meanwhile_self = self;
    __real_journal_while_waiting(j, fn, self);
}

WRAPPED(void, notify_service_manager, (const char *state))
{
    daemon_note("  notify_service_manager %.*s %s", (int)strcspn(state, "\n"), state,
                strchr(state, '\n') + 1);
}

/* ---- what a test has in its hands ---- */

WRAPPED(enum journal_room, journal_room, (struct journal * j))
{
    return dw.room >= 0 ? (enum journal_room)dw.room : __real_journal_room(j);
}

WRAPPED(const char *, journal_note, (const struct journal *j))
{
    return dw.foreign ? "it is the journal of another configuration" : __real_journal_note(j);
}

WRAPPED(bool, journal_rewound, (const struct journal *j, struct journal_rewound *ret))
{
    *ret = dw.rewound;
    return dw.rewound.lost_seq > 0 || __real_journal_rewound(j, ret);
}

WRAPPED(bool, engine_is_stalled, (struct engine * e))
{
    return dw.stalled || __real_engine_is_stalled(e);
}

WRAPPED(bool, engine_is_full, (const struct engine *e))
{
    return dw.full || __real_engine_is_full(e);
}

WRAPPED(bool, api_is_behind, (const struct api *a))
{
    return dw.behind || __real_api_is_behind(a);
}

#define DUE(i, name, params, args)                                                                 \
    WRAPPED(msec, name, params)                                                                    \
    {                                                                                              \
        return dw.due[i] > 0 ? dw.due[i] : __real_##name args;                                     \
    }
DUE(0, engine_deadline, (const struct engine *e), (e))
DUE(1, spawn_deadline, (const struct spawn *s), (s))
DUE(2, roster_deadline, (const struct roster *r), (r))
DUE(4, sweep_deadline, (const struct sweep *s), (s))
DUE(5, retention_deadline, (const struct retention *r), (r))

WRAPPED(msec, schedules_deadline, (const struct schedules *s, msec mono, msec wall))
{
    MUST(mono == dw.now && wall == clock_wall_ms());
    return dw.due[3] > 0 ? dw.due[3] : __real_schedules_deadline(s, mono, wall);
}

WRAPPED(msec, link_canary_age, (void))
{
    return dw.canary_age;
}

WRAPPED(void, waits_read, (struct waits * ret))
{
    daemon_note("  waits_read");
    *ret = (struct waits){.reaper_ran_ns = dw.reaper_ns, .n = 1};
    ret->at[0] = (struct thread_wait){1, dw.waited_ms * 1000000};
}

WRAPPED(msec, clock_mono_ms, (void))
{
    return dw.now;
}

WRAPPED(msec, clock_wall_ms, (void))
{
    return 1700000000000 + dw.now;
}

WRAPPED(uint64_t, clock_thread_ns, (void))
{
    static uint64_t at;

    return at += 3000000;
}

WRAPPED(void *, calloc, (size_t n, size_t size))
{
    const bool is_daemon = dw.is != NULL && size == sizeof(struct daemon);
    const bool is_roster = dw.is != NULL && size == sizeof(struct roster);

    if ((is_daemon && !begins("calloc of the daemon", false, NULL)) ||
        (is_roster && !begins("calloc of the roster", false, NULL))) {
        return NULL;
    }
    return __real_calloc(n, size);
}

WRAPPED(int, execv, (const char *path, char *const *argv))
{
    daemon_note("  execv %s %s BATON_REPLACED=%s", path, argv[1], getenv(DAEMON_REPLACED));
    return -1;
}

WRAPPED(void, _exit, (int code))
{
    daemon_note("= _exit %d", code);
    _Exit(0);
}

static void sink(enum log_level level, const char *event, const char *text, void *self)
{
    static const char *const names[] = {"err", "warn", "info", "debug"};

    (void)self;
    daemon_note("L %s %s %s", names[level], event, text);
}

WRAPPED(void, log_setup, (enum log_level level, log_sink to, void *self))
{
    __real_log_setup(level, dw.is != NULL ? sink : to, self);
}

/* Of this program and its libraries: nobody pulls a plug here. */
#define SHOWN __attribute__((visibility("default")))
SHOWN int fsync(int fd)
{
    (void)fd;
    return 0;
}

SHOWN int fdatasync(int fd)
{
    (void)fd;
    return 0;
}
