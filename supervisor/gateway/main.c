/* baton-gateway: the HTTP API of the daemon. One loop: the daemon's answers, then HTTP. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/hide.h"
#include "protocol/base/log.h"
#include "protocol/client/state.h"
#include "supervisor/gateway/address.h"
#include "supervisor/gateway/egress.h"
#include "supervisor/gateway/incoming/incoming.h"
#include "supervisor/gateway/login.h"
#include "supervisor/gateway/mcp/stdio.h"
#include "supervisor/gateway/openapi.h"
#include "supervisor/gateway/polled/polled.h"
#include "supervisor/gateway/server.h"
#include "supervisor/gateway/telemetry/telemetry.h"
#include "supervisor/gateway/watch.h"
#include "supervisor/gateway/webhook/webhook.h"

enum { EXIT_WRONG_USE = 2 };

struct program {
    struct options opt;
    char state[4096];
    int signals;
    struct login login;
    struct upstream *up;
    struct watch *watch;
    struct egress *egress;
    struct egress *to_hooks;
    struct webhooks *hooks;
    struct incoming *incoming;
    struct polled *polled;
    char url[512]; /* as people reach it */
    struct telemetry telemetry;
    struct server *server;
};

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

/* What the addresses beside the requests use. */
static enum bt_code start_parts(struct program *p, struct bt_error *err)
{
    struct telemetry *t = &p->telemetry;
    enum bt_code code = watch_new(p->up, p->state, &p->watch, err);

    if (code == BT_OK) {
        code = egress_new(NULL, &p->egress, err);
    }
    if (code == BT_OK) {
        code = egress_new(&p->opt.hooks, &p->to_hooks, err);
    }
    if (code == BT_OK) {
        code = polled_new(p->up, p->opt.lease_ms, &p->polled, err);
    }
    if (code == BT_OK && p->opt.incoming != NULL) {
        code = incoming_new(p->opt.incoming, &p->incoming, err);
    } else if (code == BT_OK) {
        incoming_show_none(p->state);
    }
    if (code == BT_OK) {
        code = webhooks_new(p->state, p->url, p->watch, p->to_hooks, &p->hooks, err);
    }
    if (code != BT_OK) {
        return code;
    }
    t->watch = p->watch;
    t->state_dir = p->state;
    if (p->opt.otlp[0] != 0) {
        t->traces = traces_new(p->egress, p->opt.otlp);
        if (t->traces == NULL) {
            return err_set(err, BT_NOMEM, "out of memory for traces");
        }
        watch_add(p->watch, traces_event, t->traces);
    }
    return BT_OK;
}

static enum bt_code start_server(struct program *p, uint16_t port, struct bt_error *err)
{
    const struct parts parts = {.watch = p->watch,
                                .telemetry = &p->telemetry,
                                .login = &p->login,
                                .incoming = p->incoming,
                                .polled = p->polled,
                                .hooks = p->hooks};

    return server_new(&p->opt, port, p->up, &parts, &p->server, err);
}

static enum bt_code find_state(struct program *p, struct bt_error *err)
{
    struct buf dir;
    enum bt_code code;

    buf_init(&dir, sizeof p->state - 1);
    code = state_dir_find(p->opt.state, &dir, err);
    if (code == BT_OK) {
        (void)snprintf(p->state, sizeof p->state, "%s", buf_cstr(&dir));
    }
    buf_done(&dir);
    return code;
}

static enum bt_code start(struct program *p, struct bt_error *err)
{
    uint16_t port = p->opt.port;
    enum bt_code code = find_state(p, err);

    code = code == BT_OK ? upstream_new(p->state, &p->up, err) : code;
    code = code == BT_OK ? login_open(p->state, &p->login, err) : code;
    code = code == BT_OK ? start_parts(p, err) : code;
    if (code == BT_OK && port == 0) { /* those who know the address find it again */
        port = address_last_port(p->state);
    }
    if (code == BT_OK) {
        code = start_server(p, port, err);
    }
    if (code == BT_UNAVAILABLE && p->opt.port == 0 && port != 0) {
        code = start_server(p, 0, err);
    }
    if (code == BT_OK) {
        address_url(&p->opt, server_port(p->server), p->url, sizeof p->url);
    }
    return code == BT_OK ? address_write(p->state, &p->opt, server_port(p->server), err) : code;
}

static int timeout_of(struct program *p, msec now)
{
    const msec due[] = {server_deadline(p->server, now),
                        watch_deadline(p->watch),
                        egress_deadline(p->egress),
                        egress_deadline(p->to_hooks),
                        webhooks_deadline(p->hooks, now),
                        polled_deadline(p->polled),
                        incoming_deadline(p->incoming),
                        p->telemetry.traces != NULL ? traces_deadline(p->telemetry.traces)
                                                    : MSEC_NEVER};
    msec wait = upstream_deadline(p->up);

    for (size_t i = 0; i < sizeof due / sizeof due[0]; i++) {
        const msec left = due[i] <= now ? 0 : due[i] - now;
        wait = left < wait ? left : wait;
    }
    return (int)wait;
}

static void run(struct program *p)
{
    struct pollfd fds[] = {{.fd = p->signals, .events = POLLIN},
                           {.fd = upstream_fd(p->up), .events = POLLIN},
                           {.fd = server_fd(p->server), .events = POLLIN},
                           {.fd = egress_fd(p->egress), .events = POLLIN},
                           {.fd = egress_fd(p->to_hooks), .events = POLLIN}};

    while ((fds[0].revents & POLLIN) == 0) {
        msec now = clock_mono_ms();
        if (poll(fds, sizeof fds / sizeof fds[0], timeout_of(p, now)) < 0 && errno != EINTR) {
            log_err("gateway.poll", "errno=%d", errno);
            return;
        }
        now = clock_mono_ms();
        server_begin(p->server, now);
        upstream_run(p->up, now);
        watch_run(p->watch, now);
        egress_run(p->egress, now);
        egress_run(p->to_hooks, now);
        webhooks_run(p->hooks, now);
        polled_run(p->polled, now);
        incoming_run(p->incoming, p->state, now);
        if (p->telemetry.traces != NULL) {
            traces_run(p->telemetry.traces, now);
        }
        server_run(p->server, now);
    }
}

int main(int argc, char **argv)
{
    static struct program p;
    struct bt_error err;
    struct buf document;

    hide_process(); /* it has the token, and the keys of those who log in */
    if (options_parse(argc, argv, &p.opt, &err) != BT_OK) {
        (void)fprintf(stderr, "baton-gateway: %s\n", err.msg);
        return EXIT_WRONG_USE;
    }
    if (p.opt.help || p.opt.version) {
        if (p.opt.help) {
            options_help(stdout);
        } else {
            (void)printf("baton-gateway %s\n", BATON_VERSION);
        }
        return 0;
    }
    if (p.opt.openapi) {
        buf_init(&document, 8 * 1024 * 1024);
        if (openapi_write(&document, &err) != BT_OK) {
            (void)fprintf(stderr, "baton-gateway: %s\n", err.msg);
            return 1;
        }
        (void)fwrite(document.at, 1, document.len, stdout);
        (void)putchar('\n');
        buf_done(&document);
        return 0;
    }
    log_setup(LOG_INFO, NULL, NULL);
    if (p.opt.mcp) {
        if (find_state(&p, &err) == BT_OK && mcp_stdio(p.state, &err) == BT_OK) {
            return 0;
        }
        (void)fprintf(stderr, "baton-gateway: %s\n", err.msg);
        return 1;
    }
    p.signals = open_signals();
    if (start(&p, &err) != BT_OK) {
        (void)fprintf(stderr, "baton-gateway: %s\n", err.msg);
        return 1;
    }
    run(&p);
    webhooks_flush(p.hooks);
    address_remove(p.state);
    _exit(0); /* sockets of nng are not closed under traffic (N1) */
}
