#include "supervisor/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/client/state.h"
#include "supervisor/notify.h"
#include "supervisor/processes.h"

enum {
    CANARY_PERIOD_MS = 1000,
    CANARY_LATE_MS = 3000,
    CANARY_DEAD_MS = 4000,
    WAIT_MAX_MS = 1000,
    SETTLED_MS = 60000,
    FAREWELL_MS = 50,
    FAREWELL_WAIT_MS = 20
};
enum { WATCH_LINK, WATCH_SPAWN, WATCH_SIGNAL, WATCH_COUNT };

struct supervisor {
    const struct supervisor_options *opt;
    struct engine engine;
    struct journal *journal;
    struct link *link;
    struct spawn *spawn;
    struct processes processes;
    struct pollfd watch[WATCH_COUNT];
    struct uuid instance; /* of this start */
    msec stop_deadline;   /* MSEC_NEVER = not stopping */
    msec stop_begun;
    bool stop_now;     /* a second signal */
    msec wedged_since; /* the canary has been late since then; 0 = it is not */
    bool settled;      /* up long enough to count as having survived its recoveries */
};

static enum bt_code block_signals(int *ret_fd, struct bt_error *err)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)sigdelset(&set, SIGPIPE);
    *ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *ret_fd >= 0 ? BT_OK : err_errno(err, errno, "signalfd");
}

/* In this order: signals before any thread, the lock before the spawner, the spawner before nng. */
static enum bt_code open_all(struct supervisor *s, struct bt_error *err)
{
    const struct engine_options *engine = &s->opt->engine;
    struct journal_options journal = {.durability = engine->durability,
                                      .ballast_bytes = s->opt->ballast_bytes};
    struct spawn_options spawn = {.state_dir = engine->state_dir};
    int signals = -1;
    enum bt_code code = block_signals(&signals, err);

    if (code == BT_OK) {
        code = journal_open_sqlite(engine->state_dir, &journal, &s->journal, err);
    }
    if (code == BT_OK) {
        code = spawn_open(&spawn, &s->spawn, err);
    }
    if (code == BT_OK) {
        code = link_new(s->opt->inbox, &s->link, err);
    }
    if (code == BT_OK) {
        code = engine_init(&s->engine, engine, s->journal, s->link, err);
    }
    if (code == BT_OK) {
        s->processes = (struct processes){.engine = &s->engine,
                                          .spawn = s->spawn,
                                          .held_back = s->opt->held_back,
                                          .n_held_back = s->opt->n_held_back};
        s->engine.processes = processes_for_engine(&s->processes);
        code = link_canary_start(CANARY_PERIOD_MS, err);
    }
    if (code == BT_OK) {
        s->watch[WATCH_LINK] = (struct pollfd){.fd = link_fd(s->link), .events = POLLIN};
        s->watch[WATCH_SPAWN] = (struct pollfd){.fd = spawn_fd(s->spawn), .events = POLLIN};
        s->watch[WATCH_SIGNAL] = (struct pollfd){.fd = signals, .events = POLLIN};
    }
    return code;
}

/* The first turn: what the journal holds goes on, and the world is told that we are here. */
static enum bt_code first_cycle(struct supervisor *s, struct bt_error *err)
{
    uint64_t recovered = 0;
    enum bt_code code;

    engine_begin(&s->engine, clock_mono_ms(), clock_wall_ms());
    for (size_t i = 0; i < s->opt->n_agent_ids; i++) {
        (void)registry_agent_add(s->engine.registry, str_from(s->opt->agent_ids[i]), s->engine.now);
    }
    processes_hold_back(&s->processes);
    code = engine_recover(&s->engine, &recovered, err);
    if (code == BT_OK) {
        code =
            engine_system_record(&s->engine, REC_SUPERVISOR_STARTED, STR_LIT(""), recovered, err);
    }
    if (code == BT_OK) {
        code = engine_end(&s->engine, err);
    }
    if (code == BT_OK) {
        log_info("supervisor.started", "state=%s control=%s events=%s plans=%llu durability=%s",
                 s->opt->engine.state_dir, link_server_url(s->engine.server),
                 link_pub_url(s->engine.pub), (unsigned long long)recovered,
                 s->opt->engine.durability == DURABILITY_POWER ? "power" : "process");
    }
    return code;
}

static enum bt_code announce(struct supervisor *s, struct bt_error *err)
{
    struct state_endpoints e = {.instance = s->instance, .pid = (uint64_t)getpid()};
    enum bt_code code;

    (void)snprintf(e.control, sizeof e.control, "%s", link_server_url(s->engine.server));
    (void)snprintf(e.events, sizeof e.events, "%s", link_pub_url(s->engine.pub));
    (void)snprintf(e.version, sizeof e.version, "%s", BATON_VERSION);
    code = state_endpoints_write(s->opt->engine.state_dir, &e, err);
    if (code == BT_OK) {
        code = spawn_set_children(s->spawn, s->opt->specs, s->opt->n_specs, clock_mono_ms(), err);
    }
    if (code == BT_OK) {
        if (s->opt->ready_fd >= 0) {
            (void)!write(s->opt->ready_fd, "ready\n", 6);
            (void)close(s->opt->ready_fd);
        }
        notify_service_manager("READY=1\nSTATUS=serving");
    }
    return code;
}

static void begin_stop(struct supervisor *s, const char *why)
{
    struct bt_error err;

    log_info("supervisor.stopping", "reason=\"%s\" grace_ms=%llu", why,
             (unsigned long long)s->opt->shutdown_grace_ms);
    notify_service_manager("STOPPING=1\nSTATUS=draining");
    s->engine.draining = true;
    s->stop_begun = s->engine.now;
    s->stop_deadline = s->engine.now + s->opt->shutdown_grace_ms;
    for (uint32_t i = 0; i < registry_instances(s->engine.registry); i++) {
        struct instance_view view;
        struct core_event drain = {
            .type = CORE_DRAIN, .slot = i, .text = STR_LIT("the supervisor is stopping")};
        if (!registry_instance_view(s->engine.registry, i, &view)) {
            continue;
        }
        drain.epoch = view.epoch;
        if (engine_feed(&s->engine, &drain, NULL, NULL, &err) != BT_OK) {
            engine_fail(&s->engine, &err);
        }
    }
    if (engine_system_record(&s->engine, REC_SUPERVISOR_STOPPING, str_from(why), 0, &err) !=
        BT_OK) {
        engine_fail(&s->engine, &err);
    }
    spawn_stop_all(s->spawn, s->opt->shutdown_grace_ms, s->engine.now);
}

static void signal_cycle(struct supervisor *s)
{
    struct signalfd_siginfo info;

    while (read(s->watch[WATCH_SIGNAL].fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGHUP) {
            log_info("supervisor.hup", "configuration is read at start only");
        } else if (s->stop_deadline != MSEC_NEVER) {
            s->stop_now = true;
        } else {
            begin_stop(s, info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
        }
    }
    if (s->engine.stop_asked && s->stop_deadline == MSEC_NEVER) {
        begin_stop(s, "supervisor.drain");
    }
}

static uint32_t outstanding(const struct supervisor *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < registry_instances(s->engine.registry); i++) {
        struct instance_view view;
        n += registry_instance_view(s->engine.registry, i, &view) ? view.outstanding : 0;
    }
    return n;
}

static bool is_over(const struct supervisor *s)
{
    if (s->stop_deadline == MSEC_NEVER) {
        return false;
    }
    if (!s->stop_now && s->engine.now - s->stop_begun < FAREWELL_MS) {
        return false; /* the answer to supervisor.drain and the last events are still on their way
                         out of the transport */
    }
    return s->stop_now ||
           (spawn_is_idle(s->spawn) && (outstanding(s) == 0 || s->engine.now >= s->stop_deadline));
}

/* Restarts that were clean, or that we lived long after, do not count towards a plan's quarantine.
 */
static void settle(struct supervisor *s)
{
    struct bt_error err;

    if (!s->settled && s->engine.now - s->engine.started_mono > SETTLED_MS) {
        s->settled = true;
        if (journal_recovered(s->journal, 0, &err) != BT_OK) {
            engine_fail(&s->engine, &err);
        }
    }
}

static enum bt_code turn(struct supervisor *s, struct bt_error *err)
{
    struct link_event ev;
    enum bt_code code;

    engine_begin(&s->engine, clock_mono_ms(), clock_wall_ms());
    for (int n = 0;
         n < ENGINE_CYCLE_EVENTS && !engine_is_full(&s->engine) && link_next(s->link, &ev); n++) {
        engine_on_link(&s->engine, &ev);
    }
    processes_cycle(&s->processes,
                    (s->watch[WATCH_SPAWN].revents & (POLLIN | POLLHUP | POLLERR)) != 0);
    signal_cycle(s);
    settle(s);
    code = engine_end(&s->engine, err);
    for (uint32_t i = 0; i < s->engine.registered_n; i++) {
        char id[UUID_TEXT_LEN + 1];
        uuid_format(s->engine.registered[i], id);
        (void)spawn_registered(s->spawn, str_from(id), s->engine.now);
    }
    return code;
}

static void wait_for_work(struct supervisor *s)
{
    msec now = clock_mono_ms();
    msec due = engine_deadline(&s->engine);
    msec timeout;

    due = spawn_deadline(s->spawn) < due ? spawn_deadline(s->spawn) : due;
    timeout = due <= now ? 0 : due - now;
    timeout = timeout > WAIT_MAX_MS ? WAIT_MAX_MS : timeout;
    timeout =
        s->stop_deadline != MSEC_NEVER && timeout > FAREWELL_WAIT_MS ? FAREWELL_WAIT_MS : timeout;
    for (int i = 0; i < WATCH_COUNT; i++) {
        s->watch[i].revents = 0;
    }
    (void)poll(s->watch, WATCH_COUNT, (int)timeout);
}

/*
 * nng's reaper has wedged (a known defect of 1.5.2): no pipe of this process will ever be cleaned
 * up again. Seen late for some time, not once: after a stop of the whole process the canary is
 * late, too, but sings again at once.
 */
static void replace_when_wedged(struct supervisor *s, char **argv)
{
    if (link_canary_age() < CANARY_LATE_MS) {
        s->wedged_since = 0;
    } else if (s->wedged_since == 0) {
        s->wedged_since = s->engine.now;
        log_warn("supervisor.wedged", "the transport does not answer");
    } else if (s->engine.now - s->wedged_since > CANARY_DEAD_MS) {
        log_err("supervisor.wedged",
                "the transport is stuck; replacing the daemon, the journal goes on");
        journal_close(s->journal);
        (void)setenv(SUPERVISOR_REPLACED, "1", 1);
        (void)execv("/proc/self/exe", argv);
        _exit(EXIT_JOURNAL_DEAD);
    }
}

static int finish(struct supervisor *s)
{
    struct bt_error err;

    if (state_endpoints_remove(s->opt->engine.state_dir, s->instance, &err) != BT_OK) {
        log_warn("supervisor.stop", "%s", err.msg);
    }
    if (journal_recovered(s->journal, 0, &err) != BT_OK ||
        (journal_dirty(s->journal) && journal_commit(s->journal, &err) != BT_OK)) {
        log_warn("supervisor.stop", "%s", err.msg);
    }
    spawn_close(s->spawn);
    journal_close(s->journal);
    log_info("supervisor.stopped", "plans_open=%u", core_runs_open(s->engine.core));
    return EXIT_STOPPED;
}

int supervisor_run(const struct supervisor_options *opt, char **argv)
{
    struct supervisor *s = calloc(1, sizeof *s);
    struct bt_error err = {.code = BT_NOMEM, .msg = "out of memory"};
    enum bt_code code = BT_NOMEM;

    if (s != NULL) {
        s->opt = opt;
        s->stop_deadline = MSEC_NEVER;
        s->instance = uuid_new();
        code = open_all(s, &err);
    }
    if (code == BT_OK) {
        code = first_cycle(s, &err);
    }
    if (code == BT_OK) {
        code = announce(s, &err);
    }
    if (code != BT_OK) {
        log_err("supervisor.start", "%s", err.msg);
        return code == BT_CONFLICT && s->journal == NULL ? EXIT_LOCKED : EXIT_FAILURE_TO_START;
    }
    while (!is_over(s)) {
        wait_for_work(s);
        if (turn(s, &err) != BT_OK) {
            /* What the last commit did is unknown: only the journal can tell, so stop and be
             * started again. */
            log_err("supervisor.journal",
                    "%s; stopping: what the last commit did is read again at the next start",
                    err.msg);
            return EXIT_JOURNAL_DEAD;
        }
        replace_when_wedged(s, argv);
    }
    return finish(s);
}
