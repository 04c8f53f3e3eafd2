#include "agents/sdk/runtime.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"

enum { INBOX = 4 * SHELL_REQUESTS };

/* ---- rows ---- */

static void run_slot(void *self, uint32_t slot)
{
    struct shell *sh = self;

    step_run(sh->slots[slot].step);
}

static void notify_progress(struct bt_step *step, void *self)
{
    struct shell_slot *slot = self;

    (void)step;
    pool_mark(slot->shell->pool, POOL_PROGRESS, (uint32_t)(slot - slot->shell->slots));
}

static void start_slot(struct shell *sh, uint32_t ix)
{
    struct shell_slot *slot = &sh->slots[ix];

    *slot = (struct shell_slot){.shell = sh,
                                .step = sh->arriving,
                                .msg = sh->arriving_msg,
                                .progress = {.percent = -1.0},
                                .started_ns = clock_mono_ns()};
    sh->arriving = NULL;
    sh->arriving_msg = NULL;
    slot->step->notify = notify_progress;
    slot->step->shell = slot;
    sh->stats.requests++;
    log_debug("step.started", "key=%s attempt=%u skill=%s", slot->step->key,
              bt_step_attempt(slot->step), slot->step->skill);
    pool_submit(sh->pool, ix);
}

static void finish_slot(struct shell *sh, uint32_t ix)
{
    struct shell_slot *slot = &sh->slots[ix];

    step_take_reply(slot->step, &slot->reply);
    sh->stats.processing_ns += clock_mono_ns() - slot->started_ns;
    if (slot->reply.outcome == REPLY_FAILED) {
        sh->stats.errors++;
        (void)snprintf(sh->stats.last_error, sizeof sh->stats.last_error, "%.*s",
                       slot->reply.message.len > 500 ? 500 : (int)slot->reply.message.len,
                       slot->reply.message.ptr);
        log_info("step.failed", "key=%s %s: %.*s", slot->step->key, err_class_name(slot->reply.cls),
                 STR_ARG(slot->reply.message));
    }
    step_free(slot->step);
    link_msg_free(slot->msg);
    slot->step = NULL;
    slot->msg = NULL;
    shell_feed(sh, (struct agent_state_event){.type = AGENT_STATE_FINISHED,
                                              .slot = ix,
                                              .bytes = reply_bytes(&slot->reply)});
}

static void release_slot(struct shell *sh, uint32_t ix)
{
    reply_done(&sh->slots[ix].reply);
}

static void on_pool(struct shell *sh)
{
    uint32_t slot;

    pool_drain(sh->pool);
    while ((slot = pool_take(sh->pool, POOL_PROGRESS)) != AGENT_STATE_NO_SLOT) {
        if (sh->slots[slot].step != NULL &&
            step_take_progress(sh->slots[slot].step, &sh->slots[slot].progress)) {
            shell_feed(sh, (struct agent_state_event){.type = AGENT_STATE_PROGRESS, .slot = slot});
        }
    }
    while ((slot = pool_take(sh->pool, POOL_FINISHED)) != AGENT_STATE_NO_SLOT) {
        finish_slot(sh, slot);
    }
}

/* ---- actions ---- */

static void say(const struct shell *sh, const struct agent_state_action *a)
{
    if (a->slot != AGENT_STATE_NO_SLOT) {
        const struct agent_state_slot *r = &sh->agent_state.slots[a->slot];
        log_warn("agent.session", "key=%.*s %s", (int)r->key_len, r->key, a->text);
    } else {
        log_warn("agent.session", "state=%.*s %s", STR_ARG(buf_str(&sh->state_dir)), a->text);
    }
}

static void refuse(struct shell *sh, const struct agent_state_action *a)
{
    enum err_class cls =
        a->code == BT_BUSY || a->code == BT_UNAVAILABLE ? CLASS_SERVICE_UNAVAILABLE : CLASS_NONE;
    struct bt_error err;

    (void)err_set(&err, a->code, "%s", a->text);
    shell_refuse(sh, a->request, &err, cls);
}

static void perform(struct shell *sh, const struct agent_state_action *a)
{
    switch (a->type) {
    case DO_DIAL:
        shell_dial(sh);
        break;
    case DO_REGISTER:
    case DO_HEARTBEAT:
    case DO_RESULT:
    case DO_PROGRESS:
    case DO_DRAIN:
    case DO_DEREGISTER:
        shell_ask(sh, a);
        break;
    case DO_RUN:
        start_slot(sh, a->slot);
        break;
    case DO_CANCEL:
        atomic_store(&sh->slots[a->slot].step->cancelled, true);
        break;
    case DO_FORGET:
        release_slot(sh, a->slot);
        break;
    case DO_ANSWER_OK:
        shell_answer(sh, a->request, MSG_empty, NULL);
        break;
    case DO_ANSWER_RESULT:
        shell_answer_result(sh, a->request, a->slot);
        break;
    case DO_ANSWER_STATE:
        shell_answer_state(sh, a->request, a->slot);
        break;
    case DO_REFUSE:
        refuse(sh, a);
        break;
    case DO_SAY:
        say(sh, a);
        break;
    case DO_EXIT:
        sh->ended = true;
        sh->status = a->status;
        break;
    }
}

/* An action may fail at once and feed again (a request that could not be sent): its actions come
 * after these. */
void shell_feed(struct shell *sh, struct agent_state_event ev)
{
    struct agent_state_actions mine = {.n = 0};

    ev.now = clock_mono_ms();
    agent_state_handle(&sh->agent_state, &ev, &mine);
    for (uint32_t i = 0; i < mine.n && !sh->ended; i++) {
        perform(sh, &mine.at[i]);
    }
    if (sh->feed_up) {
        sh->feed_up = false;
        shell_feed(sh, (struct agent_state_event){.type = AGENT_STATE_UP});
    }
}

/* ---- the loop ---- */

static void on_signal(struct shell *sh)
{
    struct signalfd_siginfo info;

    while (read(sh->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        log_info("agent.stop", "signal=%u; %s", info.ssi_signo,
                 sh->agent_state.stopped ? "stopping at once" : "finishing what runs");
        shell_feed(sh, (struct agent_state_event){.type = AGENT_STATE_STOP});
    }
}

static void on_link(struct shell *sh)
{
    struct link_event ev;

    while (!sh->ended && link_next(sh->link, &ev)) {
        if (ev.type == LINK_REQUEST) {
            shell_on_request(sh, &ev);
        } else {
            shell_on_control(sh, &ev);
        }
    }
}

static int wait_ms(const struct shell *sh)
{
    msec at = agent_state_deadline(&sh->agent_state);
    msec now = clock_mono_ms();

    if (at == MSEC_NEVER) {
        return -1;
    }
    return at <= now ? 0 : at - now > 60000 ? 60000 : (int)(at - now);
}

static void loop(struct shell *sh)
{
    struct pollfd fds[] = {{.fd = link_fd(sh->link), .events = POLLIN},
                           {.fd = pool_fd(sh->pool), .events = POLLIN},
                           {.fd = sh->signals, .events = POLLIN}};

    shell_feed(sh, (struct agent_state_event){.type = AGENT_STATE_START});
    while (!sh->ended) {
        int n = poll(fds, 3, wait_ms(sh));
        if (n > 0 && fds[1].revents != 0) {
            on_pool(sh);
        }
        if (n > 0 && fds[0].revents != 0) {
            on_link(sh);
        }
        if (n > 0 && fds[2].revents != 0) {
            on_signal(sh);
        }
        if (!sh->ended && agent_state_deadline(&sh->agent_state) <= clock_mono_ms()) {
            shell_feed(sh, (struct agent_state_event){.type = AGENT_STATE_TICK});
        }
    }
}

/* ---- the beginning ---- */

static enum bt_code take_signals(struct shell *sh, struct bt_error *err)
{
    sigset_t all;
    sigset_t ours;

    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGSEGV);
    (void)sigdelset(&all, SIGBUS);
    (void)sigdelset(&all, SIGFPE);
    (void)sigdelset(&all, SIGILL);
    (void)sigdelset(&all, SIGABRT);
    (void)sigemptyset(&ours);
    (void)sigaddset(&ours, SIGTERM);
    (void)sigaddset(&ours, SIGINT);
    if (pthread_sigmask(SIG_BLOCK, &all, NULL) != 0) {
        return err_errno(err, errno, "blocking signals");
    }
    (void)signal(SIGPIPE, SIG_IGN);
    sh->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    return sh->signals < 0 ? err_errno(err, errno, "signalfd") : BT_OK;
}

static enum bt_code make_session_key(struct shell *sh, struct bt_error *err)
{
    uint8_t bytes[32];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        return err_errno(err, errno, "getrandom");
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        (void)snprintf(sh->session_key + 2 * i, 3, "%02x", bytes[i]);
    }
    return BT_OK;
}

static enum bt_code open_sockets(struct shell *sh, struct bt_error *err)
{
    struct link_limits limits = {.recv_max = LIMIT_STEP_BYTES};
    uint32_t contexts = sh->agent_state.capacity + 1 + SHELL_SPARE_CONTEXTS;
    enum bt_code code = link_new(INBOX, &sh->link, err);

    if (code == BT_OK && !sh->opt->dial_in) {
        code = link_server_open(sh->link, sh->opt->listen,
                                contexts > SHELL_REQUESTS ? SHELL_REQUESTS : contexts, &limits,
                                NULL, &sh->server, err);
        if (code != BT_OK) {
            (void)err_wrap(err, "listening on %s", sh->opt->listen);
        }
    }
    return code;
}

enum bt_code shell_run(const struct options *opt, const struct card *card, void *self,
                       void (*done)(void *self), uint32_t capacity, int *ret_status,
                       struct bt_error *err)
{
    struct shell *sh = calloc(1, sizeof *sh);
    enum bt_code code;

    if (sh == NULL) {
        return err_set(err, BT_NOMEM, "out of memory");
    }
    sh->opt = opt;
    sh->card = card;
    sh->self = self;
    sh->done = done;
    buf_init(&sh->out, LIMIT_STEP_BYTES);
    buf_init(&sh->state_dir, 8192);
    agent_state_init(&sh->agent_state, capacity);
    uuid_format(opt->instance_id, sh->instance_id);
    clock_iso(clock_wall_ms(), sh->stats.started);
    code = state_dir_find(opt->state, &sh->state_dir, err);
    if (code == BT_OK) {
        code = make_session_key(sh, err);
    }
    if (code == BT_OK) {
        code = take_signals(sh, err); /* before any thread: they inherit the mask */
    }
    if (code == BT_OK) {
        code = pool_start(capacity, run_slot, sh, &sh->pool, err);
    }
    if (code == BT_OK) {
        code = open_sockets(sh, err);
    }
    if (code == BT_OK) {
        loop(sh);
        *ret_status = sh->status;
        if (sh->done != NULL && sh->agent_state.running == 0) {
            sh->done(sh->self);
        }
    }
    return code; /* the shell is not freed: foreign threads still hold parts of it until _exit */
}
