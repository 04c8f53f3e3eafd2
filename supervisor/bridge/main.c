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

enum { EXIT_FAILED = 1, EXIT_WRONG_USE = 2, EXIT_REFUSED = 3 };

/* Before libnats starts threads, which then leave these signals alone. */
static int open_signals(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(int argc, char **argv)
{
    const char *format = getenv("BATON_LOG_FORMAT");
    struct options opt = {0};
    struct bt_error err;
    enum bt_code code = BT_OK;

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
    code = opt.status ? bridge_status(&opt, stdout, &err) : bridge_run(&opt, open_signals(), &err);
    if (code == BT_OK) {
        return 0;
    }
    (void)fprintf(stderr, "baton-bridge-nats: %s\n", err.msg);
    return code == BT_CONFLICT ? EXIT_REFUSED : EXIT_FAILED;
}
