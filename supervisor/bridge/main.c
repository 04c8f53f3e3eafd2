/* baton-bridge-nats: the daemon's events in a stream of NATS JetStream. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "protocol/base/hide.h"
#include "protocol/base/log.h"
#include "supervisor/bridge/bridge.h"
#include "supervisor/bridge/fleet.h"

enum { EXIT_FAILED = 1, EXIT_WRONG_USE = 2, EXIT_REFUSED = 3 };

/* Before libnats starts threads, which then leave these signals alone. */
static int open_signals(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)sigdelset(&set, SIGCHLD);
    (void)signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static enum bt_code say_status(const struct options *o, uint32_t shards, struct bt_error *err)
{
    struct options one = *o;
    enum bt_code code = BT_OK;

    if (o->shards > 0 || shards == 1) {
        return bridge_status(o, stdout, err);
    }
    one.shards = shards;
    for (uint32_t i = 0; i < shards && code == BT_OK; i++) {
        one.shard = i;
        code = bridge_status(&one, stdout, err);
    }
    return code;
}

/* *ret_exit: of the processes of a fleet. */
static enum bt_code run(const struct options *o, char **argv, int *ret_exit, struct bt_error *err)
{
    const int stop_fd = open_signals();
    uint32_t shards = o->shards;
    enum bt_code code = shards > 0 ? BT_OK : bridge_shards(o, stop_fd, &shards, err);

    if (code != BT_OK || shards == 0) {
        return code;
    }
    if (o->status) {
        return say_status(o, shards, err);
    }
    if (o->shards > 0 || shards == 1) {
        return bridge_run(o, stop_fd, err);
    }
    if (o->after_given) {
        return err_set(err, BT_INVALID,
                       "--after: a number is of one shard, and this fleet has %u: add --shard "
                       "N/%u, once for each stream that was emptied",
                       (unsigned)shards, (unsigned)shards);
    }
    *ret_exit = fleet_run(o, argv, shards, stop_fd);
    return BT_OK;
}

int main(int argc, char **argv)
{
    const char *format = getenv("BATON_LOG_FORMAT");
    struct options opt = {0};
    struct bt_error err;
    int exit_code = 0;
    enum bt_code code;

    hide_process(); /* it has the token, and what it proves itself with */
    if (options_parse(argc, argv, &opt, &err) != BT_OK) {
        (void)fprintf(stderr, "baton-bridge-nats: %s\n", err.msg);
        return EXIT_WRONG_USE;
    }
    if (opt.help) {
        options_help(stdout);
        return 0;
    }
    if (opt.version) {
        (void)printf("baton-bridge-nats %s\n", BATON_VERSION);
        return 0;
    }
    log_setup(LOG_INFO, NULL, NULL);
    log_use_journal_prefix(format != NULL && strcmp(format, "journal") == 0);
    code = run(&opt, argv, &exit_code, &err);
    if (code != BT_OK) {
        (void)fprintf(stderr, "baton-bridge-nats: %s\n", err.msg);
        exit_code = code == BT_CONFLICT ? EXIT_REFUSED : EXIT_FAILED;
    }
    (void)fflush(NULL);
    _exit(exit_code); /* nng may still be closing what it had (N1) */
}
