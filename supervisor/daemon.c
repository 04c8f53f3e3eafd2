#include "supervisor/daemon_internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "protocol/base/assert.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/client/state.h"
#include "supervisor/audit/audit.h"
#include "supervisor/dispatch/dispatch.h"
#include "supervisor/due.h"
#include "supervisor/engine/row_body.h"
#include "supervisor/events/record_codec.h"
#include "supervisor/notify.h"
#include "supervisor/processes.h"
#include "supervisor/reload.h"
#include "supervisor/signals.h"
#include "supervisor/standby.h"

enum {
    CANARY_PERIOD_MS = 1000,
    INPUT_MS = 50, /* then the cycle has taken enough: what came is answered first */
    INPUT_BYTES = 8 * 1024 * 1024,
    FULL_AGAIN_MS = 5000 /* after a commit that had no room, before the next may be tried */
};

/* In this order: signals before any thread, the lock before the spawner, the spawner before nng. */
static enum bt_code open_all(struct daemon *d, struct bt_error *err)
{
    const char *dir = d->opt->engine.state_dir;
    const struct journal_options journal = {.durability = d->opt->engine.durability,
                                            .ballast_bytes = d->opt->ballast_bytes,
                                            .lease_ms = d->opt->fleet.lease_ms,
                                            .node = d->opt->fleet.node,
                                            .shard = d->opt->fleet.shard,
                                            .shards =
                                                d->opt->fleet.shards > 0 ? d->opt->fleet.shards : 1,
                                            .config = d->opt->fleet.config,
                                            .blobs_of = row_blobs};
    const char *node_dir = d->opt->fleet.node_dir;
    const struct spawn_options spawn = {.state_dir = node_dir != NULL ? node_dir : dir,
                                        .shards = d->opt->fleet.shards};
    struct standby_options standby = {.state_dir = dir,
                                      .fleet_url = d->opt->fleet.url,
                                      .journal = &journal,
                                      .shards = d->opt->fleet.shards,
                                      .signals = -1};
    enum bt_code code = signals_open(&standby.signals, err);
    const int signals = standby.signals;

    if (code == BT_OK) {
        code = standby_open(&standby, &d->journal, &d->stopped, err);
    }
    if (d->stopped) {
        return code;
    }
    keeper_init(&d->keeper, node_dir);
    if (code == BT_OK && node_dir != NULL) {
        code = spawn_new(&spawn, &d->spawn, err); /* perhaps another shard has the agents */
    } else if (code == BT_OK) {
        code = spawn_begin(&spawn, &d->spawn, err); /* it gets ready beside what follows */
    }
    if (code == BT_OK) {
        code = link_new(d->opt->inbox, &d->link, err);
    }
    if (code == BT_OK) {
        if (d->opt->engine.remote_url == NULL || d->opt->engine.remote_url[0] == 0) {
            link_one_task_thread();
        }
        link_trust(d->link, d->opt->allow_uids, d->opt->n_allow_uids);
        link_trust_followers(d->link, d->opt->n_followers);
    }
    if (code == BT_OK) {
        code = daemon_open_rooms(d, err);
    }
    if (code == BT_OK) {
        code = link_canary_start(CANARY_PERIOD_MS, err);
    }
    if (code == BT_OK) {
        d->watch[WATCH_LINK] = (struct pollfd){.fd = link_fd(d->link), .events = POLLIN};
        d->watch[WATCH_SPAWN] = (struct pollfd){.fd = spawn_fd(d->spawn), .events = POLLIN};
        d->watch[WATCH_SIGNAL] = (struct pollfd){.fd = signals, .events = POLLIN};
        d->watch[WATCH_CREDENTIALS] =
            (struct pollfd){.fd = auth_store_fd(d->engine_options.credentials), .events = POLLIN};
    }
    return code;
}

/* What the journal holds goes on, and supervisor_started is published. */
static enum bt_code recover(struct daemon *d, struct bt_error *err)
{
    uint64_t n = 0;
    enum bt_code code = engine_recover(d->engine, &n, err);

    d->recovered = true;
    code = code == BT_OK ? schedules_load(d->schedules, err) : code;
    code = code == BT_OK ? reload_schedules(d->engine, d->schedules, d->opt->config, err) : code;
    if (code == BT_OK) {
        code = engine_system_record(d->engine, REC_SUPERVISOR_STARTED,
                                    str_from(journal_note(d->journal)), n, err);
    }
    if (journal_note(d->journal)[0] != 0) {
        log_warn("supervisor.differs", "%s", journal_note(d->journal));
    }
    if (code == BT_OK) {
        log_info("supervisor.recovered", "plans=%llu", (unsigned long long)n);
    }
    return code;
}

/* A recovery writes: on a full disk it waits, and the daemon gives what can be read. */
static bool may_recover(struct daemon *d)
{
    return !d->recovered && engine_now(d->engine) >= d->recover_at &&
           journal_room(d->journal) != JOURNAL_FULL;
}

/* The agents of the configuration, which a daemon that cannot register them must not start. */
static enum bt_code start_children(struct daemon *d, struct bt_error *err)
{
    bool taken;
    enum bt_code code = BT_OK;

    if (!keeper_take(&d->keeper, clock_mono_ms(), &taken)) {
        return BT_OK;
    }
    if (taken) {
        code = spawn_awake(d->spawn, err);
        code = code == BT_OK ? spawn_greet(&d->spawn, err) : code;
    }
    code = code == BT_OK ? processes_start(&d->processes, err) : code;
    if (code == BT_OK && taken) {
        processes_adopted(&d->processes);
    }
    return code;
}

/* The shard that had the agents of this node may have ended. Not called while plans wait for their
 * recovery: the engine is on hold then. */
static void keep_agents(struct daemon *d)
{
    struct bt_error err;

    if (!keeper_has(&d->keeper) && !d->stop.asked && start_children(d, &err) != BT_OK) {
        log_err("agents.kept", "%s", err.msg);
        _exit(EXIT_FAILURE_TO_START); /* its node starts it again; another one takes the lock */
    }
}

static void recover_late(struct daemon *d)
{
    struct bt_error err;

    if (!may_recover(d)) {
        return;
    }
    engine_hold(d->engine, false);
    if (recover(d, &err) != BT_OK || start_children(d, &err) != BT_OK) {
        engine_fail(d->engine, &err);
    }
}

/* The first cycle. */
static enum bt_code first_cycle(struct daemon *d, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    engine_begin(d->engine, clock_mono_ms(), clock_wall_ms());
    roster_introduce(d->roster);
    processes_hold_back(&d->processes);
    if (may_recover(d)) {
        code = recover(d, err);
    } else {
        log_err("supervisor.full",
                "state=%s the disk is full: what was open waits until there is room",
                d->opt->engine.state_dir);
        engine_hold(d->engine, true);
    }
    if (code == BT_OK) {
        code = engine_end(d->engine, err);
    }
    if (code == BT_OK) {
        log_info("supervisor.started",
                 "state=%s control=%s events=%s remote=%s plans=%u durability=%s",
                 d->opt->engine.state_dir, engine_control_url(d->engine),
                 engine_events_url(d->engine)[0] != 0 ? engine_events_url(d->engine) : "none",
                 engine_remote_url(d->engine)[0] != 0 ? engine_remote_url(d->engine) : "none",
                 engine_plans_open(d->engine),
                 d->opt->engine.durability == DURABILITY_REPLICATED ? "replicated"
                 : d->opt->engine.durability == DURABILITY_POWER    ? "power"
                                                                    : "process");
    }
    return code;
}

static enum bt_code announce(struct daemon *d, struct bt_error *err)
{
    struct state_endpoints e = {
        .instance = d->instance, .pid = (uint64_t)getpid(), .pid_namespace = state_pid_namespace()};
    enum bt_code code;

    (void)snprintf(e.control, sizeof e.control, "%s", engine_control_url(d->engine));
    (void)snprintf(e.events, sizeof e.events, "%s", engine_events_url(d->engine));
    (void)snprintf(e.version, sizeof e.version, "%s", BATON_VERSION);
    code = state_endpoints_write(d->opt->engine.state_dir, &e, err);
    if (code == BT_OK && d->recovered) {
        code = start_children(d, err);
    }
    if (code == BT_OK) {
        if (d->opt->ready_fd >= 0) {
            (void)!write(d->opt->ready_fd, "ready\n", 6);
            (void)close(d->opt->ready_fd);
        }
        notify_service_manager("READY=1\nSTATUS=serving");
    }
    return code;
}

static void begin_stop(struct daemon *d, const char *why, msec grace_ms)
{
    struct bt_error err;

    if (!stop_ask(&d->stop, grace_ms, engine_now(d->engine))) {
        return;
    }
    log_info("supervisor.stopping", "reason=\"%s\" grace_ms=%llu", why,
             (unsigned long long)grace_ms);
    notify_service_manager("STOPPING=1\nSTATUS=draining");
    engine_drain(d->engine);
    for (uint32_t i = 0; i < registry_instances(engine_registry(d->engine)); i++) {
        struct instance_view view;
        struct core_event drain = {
            .type = CORE_DRAIN, .slot = i, .text = STR_LIT("the supervisor is stopping")};
        if (registry_instance_view(engine_registry(d->engine), i, &view)) {
            drain.epoch = view.epoch;
            engine_tell(d->engine, &drain);
        }
    }
    if (engine_system_record(d->engine, REC_SUPERVISOR_STOPPING, str_from(why), 0, &err) != BT_OK) {
        engine_fail(d->engine, &err);
    }
    spawn_stop_all(d->spawn, grace_ms, engine_now(d->engine));
}

static void signal_cycle(struct daemon *d)
{
    const msec grace = roster_config(d->roster)->policy.shutdown_grace_ms;
    struct signalfd_siginfo info;

    if (d->reload_told) {
        d->reload_told = false;
        reload_on_signal(d->engine);
    }
    while (read(d->watch[WATCH_SIGNAL].fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGHUP) {
            reload_on_signal(d->engine);
        } else if (d->stop.asked) {
            d->stop.at_once = true;
        } else {
            begin_stop(d, info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM", grace);
        }
    }
    if (api_stop_asked(d->api)) {
        begin_stop(d, "supervisor.drain", api_stop_grace(d->api, grace));
    }
    if (d->processes.escalated[0] != 0 && !d->stop.asked) {
        d->escalated = true;
        begin_stop(d, d->processes.escalated, grace);
    }
}

/* The journal waits for its server, in whatever call of it. A stop is not waited for: what is under
 * way is read again by the next daemon. */
static bool meanwhile(void *self)
{
    struct daemon *d = self;
    struct signalfd_siginfo info;

    while (d->told == 0 &&
           read(d->watch[WATCH_SIGNAL].fd, &info, sizeof info) == (ssize_t)sizeof info) {
        d->reload_told = d->reload_told || info.ssi_signo == SIGHUP;
        d->told = info.ssi_signo == SIGHUP ? 0 : (int)info.ssi_signo;
    }
    engine_meanwhile(d->engine);
    return d->told == 0;
}

static bool is_over(const struct daemon *d)
{
    return stop_is_over(&d->stop, !spawn_is_idle(d->spawn), processes_outstanding(&d->processes),
                        engine_now(d->engine));
}

static void excuse_silence(struct daemon *d)
{
    const msec excused =
        silence_excuse(&d->silence, engine_now(d->engine), engine_is_stalled(d->engine));
    struct core_event ev = {CORE_EV_INIT(STALLED, stalled, .delay_ms = excused)};

    if (excused == 0) {
        return;
    }
    engine_tell(d->engine, &ev);
    dispatch_excuse(d->engine, excused);
}

/* What the link has, as far as one cycle takes it; then the requests whose turn it is. */
static void take_input(struct daemon *d)
{
    const msec until = clock_mono_ms() + INPUT_MS;
    struct link_event ev;
    size_t bytes = 0;

    d->silence.unread = true;
    for (int n = 0; n < ENGINE_CYCLE_EVENTS && bytes < INPUT_BYTES && !engine_is_full(d->engine);
         n++) {
        if (!link_next(d->link, &ev)) {
            d->silence.unread = false;
            break;
        }
        bytes += ev.msg != NULL ? link_msg_bytes(ev.msg).len : 0;
        engine_on_link(d->engine, &ev);
        if (clock_mono_ms() >= until) {
            break;
        }
    }
    api_take_turns(d->engine);
}

/* A failover of the journal's server lost history: once for each. True: the cycle's commit says it.
 */
static bool tell_rewound(struct daemon *d, struct bt_error *err)
{
    struct record_extra x = {.seq = 0};
    struct journal_rewound was;

    if (!journal_rewound(d->journal, &was)) {
        return false;
    }
    const struct record rec = {
        REC_INIT(JOURNAL_REWOUND, rewound, .kept_seq = was.kept_seq, .lost_seq = was.lost_seq),
        .now = engine_now(d->engine), .wall = engine_wall(d->engine),
        .text = STR_LIT("a failover of PostgreSQL lost events that were acknowledged; their "
                        "numbers are used again")};
    log_err("journal.rewound", "kept_seq=%llu lost_seq=%llu an event says it",
            (unsigned long long)was.kept_seq, (unsigned long long)was.lost_seq);
    if (engine_write_record(d->engine, &rec, &x, err) != BT_OK) {
        engine_fail(d->engine, err);
    }
    return true;
}

static enum bt_code cycle(struct daemon *d, struct bt_error *err)
{
    const uint64_t began = clock_thread_ns();
    const struct uuid *registered;
    uint32_t n_registered;
    enum bt_code code;
    bool rewound;

    engine_begin(d->engine, clock_mono_ms(), clock_wall_ms());
    if (!engine_keep(d->engine)) { /* nothing is begun by who may not lead any more */
        return engine_end(d->engine, err);
    }
    auth_store_refresh(d->engine_options.credentials,
                       (struct session_time){engine_now(d->engine), engine_wall(d->engine)}, false);
    processes_credentials(&d->processes, d->engine_options.credentials);
    recover_late(d);
    excuse_silence(d);
    take_input(d);
    if (!engine_is_stalled(d->engine) || d->stop.asked) { /* ends of processes are rows */
        keep_agents(d);
        processes_cycle(&d->processes, d->watch[WATCH_SPAWN].revents != 0);
        roster_cycle(d->roster);
    }
    signal_cycle(d);
    schedules_cycle(d->schedules);
    audit_sync(d->engine_options.audit, engine_now(d->engine), engine_wall(d->engine));
    rewound = tell_rewound(d, err);
    code = engine_end(d->engine, err);
    if (code == BT_OK && rewound && journal_rewound_told(d->journal, err) != BT_OK) {
        log_warn("journal.rewound", "it may be told again: %s", err->msg);
    }
    if (code == BT_OK) {
        sweep_cycle(d->sweep);
        code = retention_cycle(d->retention, engine_now(d->engine), engine_wall(d->engine), err);
    }
    registered = api_take_registered(d->api, &n_registered);
    for (uint32_t i = 0; i < n_registered; i++) {
        char id[UUID_TEXT_LEN + 1];
        uuid_format(registered[i], id);
        (void)spawn_registered(d->spawn, str_from(id), engine_now(d->engine));
    }
    engine_cycle_took(d->engine, (clock_thread_ns() - began) / 1000);
    return code;
}

static void wait_for_work(struct daemon *d)
{
    const msec now = clock_mono_ms();
    const bool stalled = engine_is_stalled(d->engine);
    const bool looks = !stalled && !d->stop.asked;
    const msec deadlines[] = {engine_deadline(d->engine),
                              stalled ? MSEC_NEVER : spawn_deadline(d->spawn),
                              stalled ? MSEC_NEVER : roster_deadline(d->roster),
                              looks ? d->keeper.look_at : MSEC_NEVER,
                              schedules_deadline(d->schedules, now, clock_wall_ms()),
                              sweep_deadline(d->sweep),
                              retention_deadline(d->retention)};
    const msec timeout =
        api_is_behind(d->api)
            ? 0
            : due_wait(deadlines, sizeof deadlines / sizeof deadlines[0], now, d->stop.asked);

    for (int i = 0; i < WATCH_COUNT; i++) {
        d->watch[i].revents = 0;
    }
    d->watch[WATCH_SPAWN].fd = stalled && !d->stop.asked ? -1 : spawn_fd(d->spawn);
    d->silence.waited_from = now;
    d->silence.wait_ms = timeout;
    (void)poll(d->watch, WATCH_COUNT, (int)timeout);
}

static void replace(struct daemon *d, const char *why, char **argv)
{
    journal_close(d->journal);
    (void)setenv(DAEMON_REPLACED, why, 1);
    (void)execv("/proc/self/exe", argv);
    _exit(EXIT_JOURNAL_DEAD);
}

/*
 * nng's reaper has wedged (a known defect of 1.5.2): no pipe of this process will ever be cleaned
 * up again. With thousands of pipes to close, or without a processor for its threads, it is late.
 */
static void replace_when_wedged(struct daemon *d, char **argv)
{
    const msec now = engine_now(d->engine);
    struct waits waits;

    switch (wedge_look(&d->wedge, now, link_canary_age())) {
    case WEDGE_NONE:
        return;
    case WEDGE_BEGINS:
        waits_read(&d->waits);
        log_warn("supervisor.wedged", "the transport does not answer");
        return;
    case WEDGE_LOOK:
    default:
        break;
    }
    waits_read(&waits);
    if (waits.reaper_ran_ns != d->waits.reaper_ran_ns) {
        wedge_moves(&d->wedge, now);
        d->waits = waits;
    } else if (wedge_is_sure(&d->wedge, now, waits_between(&d->waits, &waits))) {
        log_err("supervisor.wedged",
                "the transport is stuck; replacing the daemon, the journal goes on");
        replace(d, "1", argv);
    }
}

static int finish(struct daemon *d)
{
    struct bt_error err;

    if (state_endpoints_remove(d->opt->engine.state_dir, d->instance, &err) != BT_OK) {
        log_warn("supervisor.stop", "%s", err.msg);
    }
    if (journal_room(d->journal) == JOURNAL_FULL) {
        log_warn("supervisor.stop", "the disk is full");
    }
    DEBUG_ASSERT(!journal_dirty(d->journal)); /* each cycle commits what it wrote */
    spawn_close(d->spawn);
    journal_while_waiting(d->journal, NULL, NULL);
    journal_close(d->journal);
    log_info("supervisor.stopped", "plans_open=%u", core_runs_open(engine_core(d->engine)));
    return d->escalated ? EXIT_ESCALATED : EXIT_STOPPED;
}

int daemon_run(const struct daemon_options *opt, char **argv)
{
    struct daemon *d = calloc(1, sizeof *d);
    struct bt_error err = {.code = BT_NOMEM, .msg = "out of memory"};
    enum bt_code code = BT_NOMEM;

    if (d != NULL) {
        d->opt = opt;
        d->engine_options = opt->engine;
        d->recover_at = opt->was_full ? clock_mono_ms() + FULL_AGAIN_MS : 0;
        d->instance = d->engine_options.instance = uuid_new();
        code = open_all(d, &err);
    }
    if (code == BT_OK && d->stopped) {
        log_info("supervisor.stopped", "it was a standby");
        return EXIT_STOPPED;
    }
    if (code == BT_OK) {
        journal_while_waiting(d->journal, meanwhile, d);
        code = first_cycle(d, &err);
    }
    if (code == BT_OK && d->keeper.dir == NULL) {
        code = spawn_greet(&d->spawn, &err);
    }
    if (code == BT_OK) {
        code = announce(d, &err);
    }
    if (code != BT_OK) {
        log_err("supervisor.start", "%s", err.msg);
        if (code == BT_IO && opt->fleet.url[0] != 0) {
            return EXIT_JOURNAL_DEAD; /* as it is at any other time */
        }
        return code == BT_CONFLICT && d->journal == NULL ? EXIT_LOCKED : EXIT_FAILURE_TO_START;
    }
    while (!is_over(d)) {
        wait_for_work(d);
        if (cycle(d, &err) != BT_OK) {
            if (err.code == BT_UNAVAILABLE) {
                /* Nothing of the batch is stored, but the core has decided: its state is read
                 * again, and waits for room. */
                log_err("supervisor.full", "%s; the daemon replaces itself", err.msg);
                replace(d, DAEMON_REPLACED_FULL, argv);
            }
            /* The outcome of the last commit is unknown: only the journal has it, so stop and be
             * started again. */
            log_err("supervisor.journal",
                    "%s; stopping: what the last commit did is read again at the next start",
                    err.msg);
            return EXIT_JOURNAL_DEAD;
        }
        replace_when_wedged(d, argv);
    }
    return finish(d);
}
