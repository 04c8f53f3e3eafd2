#include "supervisor/arguments.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/shard.h"
#include "supervisor/daemon.h"

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
    const long n = strtol(text, &end, 10);

    return *text != 0 && *end == 0 && n > 2 && (int)n == n &&
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

int arguments_parse(int argc, char **argv, struct arguments *a)
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
