/* batond: arguments, configuration, wiring. */
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "protocol/artifact/artifact.h"
#include "protocol/base/hide.h"
#include "protocol/base/log.h"
#include "protocol/base/shard.h"
#include "protocol/base/utf8.h"
#include "protocol/client/state.h"
#include "supervisor/children.h"
#include "supervisor/config/config.h"
#include "supervisor/daemon.h"
#include "supervisor/journal/owner.h"
#include "supervisor/node/node.h"
#include "supervisor/reload.h"
#include "supervisor/spawn/apart.h"
#include "supervisor/spawn/spawner.h"

enum { BALLAST_BYTES = 16 * 1024 * 1024, FLAGS_MAX = 8, NOTES_MAX = 1024 * 1024 };
/* A uri of plan and file, each byte as %XX, stays below its cap. */
enum { ARTIFACT_ROOT_MAX = 512, FILES_FEW = 1024, HEAP_SPARE = 2 * 1024 * 1024 };

static const char usage[] =
    "usage: batond [options]\n"
    "The Baton supervisor. Usually started by `baton up` or a service manager; runs in the "
    "foreground.\n\n"
    "  --state DIR             state directory (journal, token, endpoints, logs)\n"
    "  --config FILE           configuration, instead of the user's file\n"
    "  --listen-control URL    where clients and agents ask, e.g. tcp://127.0.0.1:0\n"
    "  --listen-events URL     where events are published\n"
    "  --durability power|process\n"
    "  --fleet URL             journal on PostgreSQL that several daemons share: one leads, the\n"
    "                          others wait; postgresql://HOST/DATABASE, without a password\n"
    "  --planner NAME          planner of goals\n"
    "  --log-level LEVEL       err, warn, info or debug\n"
    "  --ready-fd N            write \"ready\" to this descriptor when requests are served\n"
    "  --shard N/SHARDS        of a fleet with several shards; its node gives it\n"
    "  --help, --version\n\n"
    "Exit codes: 0 stopped on request; 1 could not start; 2 wrong arguments or configuration;\n"
    "3 another daemon uses the state directory; 70 a group of agents gave up that may not;\n"
    "75 the journal failed, or another daemon leads: start again.\n";

enum {
    OPT_CONTROL = 256,
    OPT_EVENTS,
    OPT_DURABILITY,
    OPT_FLEET,
    OPT_PLANNER,
    OPT_LOG,
    OPT_READY,
    OPT_SHARD
};

static const struct option options[] = {{"state", required_argument, NULL, 's'},
                                        {"config", required_argument, NULL, 'c'},
                                        {"listen-control", required_argument, NULL, OPT_CONTROL},
                                        {"listen-events", required_argument, NULL, OPT_EVENTS},
                                        {"durability", required_argument, NULL, OPT_DURABILITY},
                                        {"fleet", required_argument, NULL, OPT_FLEET},
                                        {"planner", required_argument, NULL, OPT_PLANNER},
                                        {"log-level", required_argument, NULL, OPT_LOG},
                                        {"ready-fd", required_argument, NULL, OPT_READY},
                                        {"shard", required_argument, NULL, OPT_SHARD},
                                        {"help", no_argument, NULL, 'h'},
                                        {"version", no_argument, NULL, 'V'},
                                        {NULL, 0, NULL, 0}};

struct arguments {
    struct config_request request;
    struct config_flag flags[FLAGS_MAX];
    int ready_fd;
    bool was_full;          /* see daemon.h */
    uint32_t shard, shards; /* shards 0: not the process of a shard */
};

static void add_flag(struct arguments *a, const char *key, const char *value)
{
    if (a->request.n_flags < FLAGS_MAX) {
        a->flags[a->request.n_flags++] = (struct config_flag){key, value};
    }
}

/* An open descriptor that is ours to write to and close; agents do not inherit it. -1 when it is
 * none. */
static int descriptor(const char *text)
{
    char *end = NULL;
    long n = strtol(text, &end, 10);

    return *text != 0 && *end == 0 && n > 2 && n < 1000000 &&
                   fcntl((int)n, F_SETFD, FD_CLOEXEC) == 0
               ? (int)n
               : -1;
}

/* N/SHARDS, as a node gives it to the process of a shard. */
static bool read_shard(const char *text, struct arguments *a)
{
    char *end = NULL;
    const unsigned long shard = strtoul(text, &end, 10);
    const unsigned long shards = *end == '/' ? strtoul(end + 1, &end, 10) : 0;

    a->shard = (uint32_t)shard;
    a->shards = (uint32_t)shards;
    return *end == 0 && shards <= SHARDS_MAX && shard < shards;
}

/* Exit code to leave with, or -1 to go on. */
static int parse(int argc, char **argv, struct arguments *a)
{
    int opt;

    while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (opt == 's') {
            a->request.state_dir = optarg;
        } else if (opt == 'c') {
            a->request.file = optarg;
        } else if (opt == OPT_CONTROL) {
            add_flag(a, "listen.control", optarg);
        } else if (opt == OPT_EVENTS) {
            add_flag(a, "listen.events", optarg);
        } else if (opt == OPT_DURABILITY) {
            add_flag(a, "durability", optarg);
        } else if (opt == OPT_FLEET) {
            add_flag(a, "fleet.url", optarg);
        } else if (opt == OPT_PLANNER) {
            add_flag(a, "planner", optarg);
        } else if (opt == OPT_LOG) {
            add_flag(a, "log.level", optarg);
        } else if (opt == OPT_READY) {
            a->ready_fd = descriptor(optarg);
            if (a->ready_fd < 0 && getenv(DAEMON_REPLACED) == NULL) {
                (void)fprintf(stderr,
                              "batond: --ready-fd: expected the number of an open descriptor above "
                              "2, got '%s'\n",
                              optarg);
                return EXIT_USAGE;
            }
        } else if (opt == OPT_SHARD) {
            if (!read_shard(optarg, a)) {
                (void)fprintf(stderr, "batond: --shard: expected N/SHARDS, got '%s'\n", optarg);
                return EXIT_USAGE;
            }
        } else if (opt == 'h' || opt == 'V') {
            (void)fputs(opt == 'h' ? usage : "batond " BATON_VERSION "\n", stdout);
            return EXIT_STOPPED;
        } else {
            (void)fputs("try: batond --help\n", stderr);
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        (void)fprintf(stderr, "batond: unexpected argument '%s'; try: batond --help\n",
                      argv[optind]);
        return EXIT_USAGE;
    }
    return -1;
}

/* The directory of the files of results, in *path; NULL when no uri could name it. */
static const char *artifact_root(const struct config *c, struct buf *path)
{
    size_t n = strlen(c->state_dir);

    while (n > 1 && c->state_dir[n - 1] == '/') {
        n--;
    }
    buf_add(path, c->state_dir, n);
    buf_add_cstr(path, "/" ARTIFACT_DIR);
    if (path->bad == BT_OK && utf8_valid((const char *)path->at, path->len)) {
        return buf_cstr(path);
    }
    log_warn("artifacts.off",
             "agents cannot write artifacts: the path of the state directory is not UTF-8, or has "
             "more than %d bytes",
             ARTIFACT_ROOT_MAX);
    return NULL;
}

/* What differs between the shards of a node: where they listen. */
struct shard_places {
    char control[STATE_URL_MAX + 1], events[STATE_URL_MAX + 1], remote[STATE_URL_MAX + 1];
    char map[PATH_MAX], node_dir[PATH_MAX];
    char node[JOURNAL_NODE_MAX + 1];
    char hash[CONFIG_HASH_LEN + 1];
    struct config config;
};

static void name_node(const struct config *c, char ret[JOURNAL_NODE_MAX + 1])
{
    (void)snprintf(ret, JOURNAL_NODE_MAX + 1, "%s", c->fleet.node);
    if (ret[0] == 0 && gethostname(ret, JOURNAL_NODE_MAX) != 0) {
        (void)snprintf(ret, JOURNAL_NODE_MAX + 1, "unknown");
    }
}

/* The state directory of a shard is STATE/shards/N of its node. */
static void apply_shard(const struct arguments *a, const struct config *c, struct shard_places *p,
                        struct daemon_options *opt)
{
    const uint32_t lanes = c->remote.lane_last - (uint32_t)c->remote.lane_first + 1;
    const uint16_t each = (uint16_t)(lanes / (a->shards == 0 ? 1 : a->shards));
    char *cut;

    config_hash(c, p->hash);
    opt->fleet.config = p->hash;
    opt->engine.shards = c->fleet.url[0] == 0 ? 0 : 1;
    if (a->shards < 2) {
        return;
    }
    node_url(c->listen_control, a->shard, p->control, sizeof p->control);
    node_url(c->listen_events, a->shard, p->events, sizeof p->events);
    node_url(c->remote.url, a->shard, p->remote, sizeof p->remote);
    name_node(c, p->node);
    (void)snprintf(p->node_dir, sizeof p->node_dir, "%s", c->state_dir);
    for (int i = 0; i < 2 && (cut = strrchr(p->node_dir, '/')) != NULL; i++) {
        *cut = 0;
    }
    (void)snprintf(p->map, sizeof p->map, "%.4000s/fleet.json", p->node_dir);
    opt->engine.control_url = p->control;
    opt->engine.events_url = p->events;
    opt->engine.remote_url = p->remote;
    if (c->remote.lane_first != 0) {
        opt->engine.lane_first = (uint16_t)(c->remote.lane_first + a->shard * each);
        opt->engine.lane_last = (uint16_t)(opt->engine.lane_first + each - 1);
    }
    opt->engine.shard = a->shard;
    opt->engine.shards = a->shards;
    opt->engine.fleet_map = p->map;
    opt->fleet.shard = a->shard;
    opt->fleet.shards = a->shards;
    opt->fleet.node = p->node;
    opt->fleet.node_dir = p->node_dir;
}

/* With several shards the node starts the gateway, once. */
static const struct config *config_for(const struct arguments *a, const struct config *c,
                                       struct shard_places *p)
{
    if (a->shards < 2) {
        return c;
    }
    p->config = *c;
    p->config.gateway.command = NULL;
    return &p->config;
}

static int run(const struct config_request *request, const struct config *c, const char *artifacts,
               const char *token, const struct arguments *a, char **argv)
{
    struct reload reload = {.request = request, .started = c, .live = c};
    struct daemon_options opt = {
        .engine = {.token = str_from(token),
                   .auth_required = c->auth == CONFIG_AUTH_REQUIRED,
                   .state_dir = c->state_dir,
                   .artifact_root = artifacts,
                   .artifact_max_bytes = c->artifacts.max_bytes,
                   .control_url = c->listen_control,
                   .events_url = c->listen_events,
                   .remote_url = c->remote.url,
                   .remote_cert = c->remote.cert,
                   .remote_ca = c->remote.ca,
                   .lane_first = c->remote.lane_first,
                   .lane_last = c->remote.lane_last,
                   .durability = c->fleet.url[0] != 0 ? c->fleet.durability : c->durability,
                   .defaults = reload_defaults(&c->policy),
                   .planner = c->planner,
                   .heartbeat_ms = c->policy.heartbeat_ms,
                   .lease_ms = c->policy.lease_ms,
                   .agent_wait_ms = c->policy.agent_wait_ms,
                   .cancel_grace_ms = c->policy.cancel_grace_ms,
                   .plans_max = c->limits.max_open_plans,
                   .agents_max = c->limits.max_agents,
                   .instances_max = c->limits.max_instances,
                   .in_flight = c->limits.in_flight,
                   .in_flight_agent = c->limits.in_flight_agent,
                   .in_flight_session = c->limits.in_flight_session,
                   .breaker_failures = c->policy.breaker.failures,
                   .breaker_cooldown_ms = c->policy.breaker.cooldown_ms,
                   .breaker_cooldown_max_ms = c->policy.breaker.cooldown_max_ms,
                   .result_max = c->limits.max_result_bytes},
        .fleet = {c->fleet.url, c->fleet.node, (uint32_t)c->fleet.lease_ms},
        .artifacts = {.root = artifacts,
                      .keep_ms = c->artifacts.keep_ms,
                      .max_bytes = c->artifacts.max_bytes},
        .retention = {.completed_ms = c->retention.completed_ms,
                      .failed_ms = c->retention.failed_ms,
                      .sessions_ms = c->retention.sessions_ms,
                      .events_ms = c->retention.events_ms,
                      .gone_ms =
                          retention_gone_age(c->retention.completed_ms, c->retention.failed_ms),
                      .max_bytes = c->retention.max_bytes},
        .inbox = c->limits.inbox,
        .ballast_bytes = BALLAST_BYTES,
        .was_full = a->was_full,
        .ready_fd = a->ready_fd,
        .reload = &reload,
    };
    struct shard_places places;
    struct bt_error err;

    apply_shard(a, c, &places, &opt);
    if (children_of_config(config_for(a, c, &places), &opt, &err) != BT_OK) {
        log_err("supervisor.start", "%s", err.msg);
        return EXIT_FAILURE_TO_START;
    }
    return daemon_run(&opt, argv);
}

/* What a node of several shards cannot do yet, or NULL. */
static const char *not_with_shards(const struct config *c)
{
    const char *colon = strrchr(c->remote.url, ':');

    if (c->remote.url[0] != 0 && (colon == NULL || strcmp(colon, ":0") == 0)) {
        return "listen.remote: with several shards it needs a port; shard N has the port that is N "
               "higher";
    }
    return NULL;
}

/* A fleet of several shards needs a node. *ret: the exit code, or -1 to go on as a daemon. */
static int run_node(const struct config *c, const struct arguments *a, char **argv)
{
    const uint32_t lease = (uint32_t)c->fleet.lease_ms;
    struct node_options opt = {.state_dir = c->state_dir,
                               .fleet_url = c->fleet.url,
                               .remote = c->remote.url,
                               .lease_ms = lease,
                               .gateway = c->gateway.command,
                               .shards = 1,
                               .ready_fd = a->ready_fd};
    char name[JOURNAL_NODE_MAX + 1];
    char hash[CONFIG_HASH_LEN + 1];
    struct bt_error err;
    bool stop = false;

    if (a->shards > 0 && c->fleet.url[0] == 0) {
        (void)fprintf(stderr, "batond: --shard: there is no fleet: give --fleet URL\n");
        return EXIT_USAGE;
    }
    if (c->fleet.url[0] == 0 || a->shards > 0) {
        return -1;
    }
    if (node_count_shards(c->fleet.url, lease, &opt.shards, &stop, &err) != BT_OK) {
        log_err("supervisor.start", "%s", err.msg);
        return EXIT_FAILURE_TO_START;
    }
    if (stop) {
        return EXIT_STOPPED;
    }
    if (opt.shards == 1) {
        return -1;
    }
    if (not_with_shards(c) != NULL) {
        (void)fprintf(stderr, "batond: %s\n", not_with_shards(c));
        return EXIT_USAGE;
    }
    name_node(c, name);
    config_hash(c, hash);
    opt.name = name;
    opt.config = hash;
    return node_run(&opt, argv);
}

/* Each connection and each lane is a descriptor; the soft limit of 1024 is for programs that call
 * select(). */
static void raise_open_files(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0) {
        return;
    }
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_max < FILES_FEW) {
        log_warn("supervisor.start", "at most %llu files may be open: few connections and lanes",
                 (unsigned long long)files.rlim_max);
    }
}

/* Frames are allocated by nng's threads and freed by ours. glibc would keep what it once gave them:
 * a flood that is over would still hold its memory. What a cycle or two need stays: to return it
 * and to ask for it again took 3 per cent of the loop. */
static void return_memory(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, 256 * 1024);
    (void)mallopt(M_ARENA_MAX, 4);
    (void)mallopt(M_TRIM_THRESHOLD, HEAP_SPARE);
}

int main(int argc, char **argv)
{
    struct arguments a = {.ready_fd = -1};
    struct config *config = NULL;
    char token[STATE_TOKEN_LEN + 1];
    struct bt_error err;
    struct buf notes;
    struct buf root;
    int exit_code;

    if (argc > 1 && strcmp(argv[1], "--spawner") == 0) {
        return spawner_main(argc, argv);
    }
    hide_process();
    exit_code = parse(argc, argv, &a);
    if (exit_code >= 0) {
        return exit_code;
    }
    if (getenv(DAEMON_REPLACED) != NULL) {
        a.ready_fd = -1;
        a.was_full = strcmp(getenv(DAEMON_REPLACED), DAEMON_REPLACED_FULL) == 0;
        (void)unsetenv(DAEMON_REPLACED);
    }
    a.request.flags = a.flags;
    a.request.can_set_apart = apart_available;
    buf_init(&notes, NOTES_MAX);
    exit_code = config_load(&a.request, &config, &notes, &err) == BT_OK ? -1 : EXIT_USAGE;
    (void)fputs(buf_cstr(&notes), stderr);
    if (exit_code >=
        0) { /* the notes have every problem; an error of another kind is only in err */
        (void)fprintf(stderr, "batond: %s\n",
                      notes.len > 0 ? "not started: the configuration is refused" : err.msg);
    }
    buf_done(&notes);
    if (exit_code >= 0) {
        return exit_code;
    }
    log_setup(config->log.level, NULL, NULL);
    log_use_journal_prefix(config->log.format == CONFIG_LOG_JOURNAL);
    raise_open_files();
    return_memory();
    if (state_dir_make(config->state_dir, &err) != BT_OK ||
        state_token_make(config->state_dir, token, &err) != BT_OK) {
        log_err("supervisor.start", "%s", err.msg);
        (void)fflush(NULL);
        _exit(EXIT_FAILURE_TO_START);
    }
    exit_code = run_node(config, &a, argv);
    if (exit_code >= 0) {
        (void)fflush(NULL);
        _exit(exit_code);
    }
    buf_init(&root, ARTIFACT_ROOT_MAX);
    exit_code = run(&a.request, config, artifact_root(config, &root), token, &a, argv);
    (void)fflush(NULL);
    _exit(exit_code); /* sockets are never closed under traffic: the process just ends */
}
