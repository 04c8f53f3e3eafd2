/* batond: configuration, wiring. */
#include "supervisor/entry.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "protocol/base/hide.h"
#include "protocol/base/log.h"
#include "protocol/client/state.h"
#include "supervisor/arguments.h"
#include "supervisor/children.h"
#include "supervisor/config/config.h"
#include "supervisor/daemon.h"
#include "supervisor/journal/owner.h"
#include "supervisor/node/node.h"
#include "supervisor/options.h"
#include "supervisor/reload.h"
#include "supervisor/spawn/apart.h"
#include "supervisor/spawn/spawner.h"

enum { NOTES_MAX = 1024 * 1024, FILES_FEW = 1024, HEAP_SPARE = 2 * 1024 * 1024 };

static int run(const struct config *c, const struct arguments *a, const char *token, char **argv)
{
    struct reload reload = {.request = &a->request, .started = c, .live = c};
    struct daemon_options opt;
    struct shard_places places;
    struct bt_error err;
    struct buf root;

    buf_init(&root, OPTIONS_ARTIFACT_BYTES);
    options_of(c, a, options_artifact_root(c, &root), token, &reload, &places, &opt);
    if (children_of_config(options_config(a, c, &places), &opt, &err) != BT_OK) {
        log_err("supervisor.start", "%s", err.msg);
        return EXIT_FAILURE_TO_START;
    }
    return daemon_run(&opt, argv);
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
    if (options_not_with_shards(c) != NULL) {
        (void)fprintf(stderr, "batond: %s\n", options_not_with_shards(c));
        return EXIT_USAGE;
    }
    options_node(c, name);
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

/* NULL: what is wrong with it was said. */
static struct config *load(const struct arguments *a)
{
    struct config *config = NULL;
    struct bt_error err;
    struct buf notes;
    enum bt_code code;

    buf_init(&notes, NOTES_MAX);
    code = config_load(&a->request, &config, &notes, &err);
    (void)fputs(buf_cstr(&notes), stderr);
    if (code != BT_OK) { /* the notes have every problem; an error of another kind is only in err */
        (void)fprintf(stderr, "batond: %s\n",
                      notes.len > 0 ? "not started: the configuration is refused" : err.msg);
    }
    buf_done(&notes);
    return config;
}

int batond_entry(int argc, char **argv)
{
    struct arguments a = {.ready_fd = -1};
    const struct config *config;
    char token[STATE_TOKEN_LEN + 1];
    struct bt_error err;
    int exit_code;

    if (argc > 1 && strcmp(argv[1], "--spawner") == 0) {
        return spawner_main(argc, argv);
    }
    hide_process();
    exit_code = arguments_parse(argc, argv, &a);
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
    config = load(&a);
    if (config == NULL) {
        return EXIT_USAGE;
    }
    log_setup(config->log.level, NULL, NULL);
    log_use_journal_prefix(config->log.format == CONFIG_LOG_JOURNAL);
    raise_open_files();
    return_memory();
    if (state_dir_make(config->state_dir, &err) != BT_OK ||
        state_token_make(config->state_dir, token, &err) != BT_OK) {
        log_err("supervisor.start", "%s", err.msg);
        return EXIT_FAILURE_TO_START;
    }
    exit_code = run_node(config, &a, argv);
    return exit_code >= 0 ? exit_code : run(config, &a, token, argv);
}
