#include "agents/sdk/runtime.h"
#include "agents/sdk/shards/shards.h"

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

enum { INBOX = 4 * RUNTIME_REQUESTS, PEERS_MAX = 4 * RUNTIME_REQUESTS, UNFINISHED_MS = 60000 };

/* ---- slots ---- */

static void run_slot(void *self, uint32_t slot)
{
    struct runtime *rt = self;

    step_run(rt->slots[slot].step);
}

static void notify_progress(struct bt_step *step, void *self)
{
    struct runtime_slot *slot = self;

    (void)step;
    pool_notify(slot->runtime->pool, POOL_PROGRESS, (uint32_t)(slot - slot->runtime->slots));
}

static void notify_finished(struct bt_step *step, void *self)
{
    struct runtime_slot *slot = self;

    (void)step;
    pool_notify(slot->runtime->pool, POOL_FINISHED, (uint32_t)(slot - slot->runtime->slots));
}

static void start_slot(struct runtime *rt, uint32_t ix)
{
    struct runtime_slot *slot = &rt->slots[ix];

    *slot = (struct runtime_slot){.runtime = rt,
                                  .step = rt->arriving,
                                  .bytes = rt->arriving_bytes,
                                  .progress = {.percent = -1.0},
                                  .started_ns = clock_mono_ns()};
    rt->arriving = NULL;
    rt->arriving_bytes = (struct runtime_bytes){0};
    slot->step->notify = notify_progress;
    slot->step->finished = rt->own_loop ? notify_finished : NULL;
    slot->step->runtime = slot;
    slot->step->files = rt->opt->connect != NULL ? &runtime_files : NULL;
    rt->stats.requests++;
    log_debug("step.started", "key=%s attempt=%u skill=%s", slot->step->key,
              bt_step_attempt(slot->step), slot->step->skill);
    if (!runtime_quick_put(rt, ix)) {
        pool_submit(rt->pool, ix);
    }
}

void runtime_finish(struct runtime *rt, uint32_t ix)
{
    struct runtime_slot *slot = &rt->slots[ix];

    step_take_reply(slot->step, &slot->reply);
    shards_place_put();
    rt->stats.processing_ns += clock_mono_ns() - slot->started_ns;
    if (slot->reply.outcome == REPLY_FAILED) {
        rt->stats.errors++;
        (void)snprintf(rt->stats.last_error, sizeof rt->stats.last_error, "%.*s",
                       slot->reply.message.len > 500 ? 500 : (int)slot->reply.message.len,
                       slot->reply.message.ptr);
        log_info("step.failed", "key=%s %s: %.*s", slot->step->key, err_class_name(slot->reply.cls),
                 STR_ARG(slot->reply.message));
    }
    step_free(slot->step);
    runtime_bytes_free(&slot->bytes);
    slot->step = NULL;
    runtime_feed(rt, (struct agent_state_event){.type = AGENT_STATE_FINISHED,
                                                .slot = ix,
                                                .bytes = reply_bytes(&slot->reply)});
}

static void release_slot(struct runtime *rt, uint32_t ix)
{
    reply_done(&rt->slots[ix].reply);
}

static void on_pool(struct runtime *rt)
{
    uint32_t slot;

    pool_drain(rt->pool);
    while ((slot = pool_take(rt->pool, POOL_PROGRESS)) != AGENT_STATE_NO_SLOT) {
        if (rt->slots[slot].step != NULL &&
            step_take_progress(rt->slots[slot].step, &rt->slots[slot].progress)) {
            runtime_feed(rt,
                         (struct agent_state_event){.type = AGENT_STATE_PROGRESS, .slot = slot});
        }
    }
    while ((slot = pool_take(rt->pool, POOL_FINISHED)) != AGENT_STATE_NO_SLOT) {
        runtime_finish(rt, slot);
    }
}

/* ---- actions ---- */

static void write_log(const struct runtime *rt, const struct agent_state_action *a)
{
    if (a->slot != AGENT_STATE_NO_SLOT) {
        const struct agent_state_slot *r = &rt->agent_state.slots[a->slot];
        log_warn("agent.session", "key=%.*s %s", (int)r->key_len, r->key, a->text);
    } else {
        log_warn("agent.session", "state=%.*s %s", STR_ARG(buf_str(&rt->state_dir)), a->text);
    }
}

static void refuse(struct runtime *rt, const struct agent_state_action *a)
{
    enum err_class cls =
        a->code == BT_BUSY || a->code == BT_UNAVAILABLE ? CLASS_SERVICE_UNAVAILABLE : CLASS_NONE;
    struct bt_error err;

    (void)err_set(&err, a->code, "%s", a->text);
    runtime_refuse(rt, a->request, &err, cls);
}

static void perform(struct runtime *rt, const struct agent_state_action *a)
{
    switch (a->type) {
    case DO_DIAL:
        runtime_dial(rt);
        break;
    case DO_REGISTER:
    case DO_HEARTBEAT:
    case DO_RESULT:
    case DO_PROGRESS:
    case DO_DRAIN:
    case DO_DEREGISTER:
        runtime_call(rt, a);
        break;
    case DO_RUN:
        start_slot(rt, a->slot);
        break;
    case DO_CANCEL:
        atomic_store(&rt->slots[a->slot].step->cancelled, true);
        break;
    case DO_RELEASE:
        release_slot(rt, a->slot);
        break;
    case DO_ANSWER_OK:
        runtime_answer(rt, a->request, MSG_lane_hello_ok,
                       &(struct msg_lane_hello_ok){.process_id = str_from(rt->process_id)});
        break;
    case DO_ANSWER_RESULT:
        runtime_answer_result(rt, a->request, a->slot);
        break;
    case DO_ANSWER_STATE:
        runtime_answer_state(rt, a);
        break;
    case DO_REFUSE:
        refuse(rt, a);
        break;
    case DO_LOG:
        write_log(rt, a);
        break;
    case DO_EXIT:
        rt->ended = true;
        rt->status = a->status;
        break;
    }
}

/* An action may fail at once and feed another event (a request that could not be sent). The actions
 * of that event come after these. */
void runtime_feed(struct runtime *rt, struct agent_state_event ev)
{
    struct agent_state_actions mine = {.n = 0};

    ev.now = clock_mono_ms();
    agent_state_handle(&rt->agent_state, &ev, &mine);
    for (uint32_t i = 0; i < mine.n && !rt->ended; i++) {
        perform(rt, &mine.at[i]);
    }
    if (rt->feed_up) {
        rt->feed_up = false;
        runtime_feed(rt, (struct agent_state_event){.type = AGENT_STATE_UP});
    }
}

/* ---- the loop ---- */

static void on_signal(struct runtime *rt)
{
    struct signalfd_siginfo info;

    while (read(rt->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        log_info("agent.stop", "signal=%u; %s", info.ssi_signo,
                 rt->agent_state.stopped ? "stopping at once" : "finishing what runs");
        runtime_feed(rt, (struct agent_state_event){.type = AGENT_STATE_STOP});
    }
}

static void on_link(struct runtime *rt)
{
    struct link_event ev;

    while (!rt->ended && link_next(rt->link, &ev)) {
        if (ev.type == LINK_REQUEST) {
            runtime_on_request(rt, &ev);
        } else {
            runtime_on_control(rt, &ev);
        }
    }
}

int runtime_wait_ms(const struct runtime *rt)
{
    msec at = agent_state_deadline(&rt->agent_state);
    msec later = rt->own_loop ? runtime_later_deadline(rt) : MSEC_NEVER;
    msec now = clock_mono_ms();

    at = rt->look_at < at ? rt->look_at : at;
    at = later < at ? later : at;
    if (rt->quick.n > 0) {
        return 0;
    }
    if (at == MSEC_NEVER) {
        return -1;
    }
    return at <= now ? 0 : at - now > 60000 ? 60000 : (int)(at - now);
}

bool runtime_cycle(struct runtime *rt, int wait_ms)
{
    struct pollfd fds[] = {{.fd = link_fd(rt->link), .events = POLLIN},
                           {.fd = pool_fd(rt->pool), .events = POLLIN},
                           {.fd = rt->signals, .events = POLLIN}};
    int n = poll(fds, 3, wait_ms);

    if (n > 0 && fds[1].revents != 0) {
        on_pool(rt);
    }
    if (n > 0 && fds[0].revents != 0) {
        on_link(rt);
    }
    if (n > 0 && fds[2].revents != 0) {
        on_signal(rt);
    }
    if (!rt->ended && agent_state_deadline(&rt->agent_state) <= clock_mono_ms()) {
        runtime_feed(rt, (struct agent_state_event){.type = AGENT_STATE_TICK});
    }
    if (!rt->ended && rt->look_at <= clock_mono_ms()) {
        runtime_dial(rt);
    }
    pool_wake(rt->pool); /* the workers run beside the handlers of this thread */
    if (!runtime_quick_run(rt)) {
        return false;
    }
    if (rt->own_loop) {
        runtime_later_tell(rt);
    }
    runtime_trunk_flush(rt);
    return true;
}

_Noreturn void runtime_leave(struct runtime *rt)
{
    if (rt->done != NULL && rt->agent_state.running == 0) {
        rt->done(rt->self);
    }
    (void)fflush(NULL);
    _exit(rt->status); /* nng's threads may be running: destructors must not run beside them */
}

/* The loop of whichever thread has it. */
_Noreturn void runtime_run(struct runtime *rt)
{
    for (;;) {
        if (rt->ended) {
            runtime_leave(rt);
        }
        if (!runtime_cycle(rt, runtime_wait_ms(rt))) {
            watch_stay(rt->quick.watch);
            runtime_quick_taken(rt);
        }
    }
}

static void lead(void *self)
{
    runtime_quick_taken(self);
    runtime_run(self);
}

static enum bt_code start_watch(struct runtime *rt, struct bt_error *err)
{
    bool quick = false;

    for (uint32_t i = 0; i < rt->card->skills_n; i++) {
        quick = quick || rt->card->skills[i].quick;
    }
    return quick && !rt->own_loop ? watch_start(lead, rt, &rt->quick.watch, err) : BT_OK;
}

/* ---- start ---- */

/* Before any thread starts: threads inherit the mask. */
static enum bt_code take_signals(struct runtime *rt, sigset_t *ret_before, struct bt_error *err)
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
    if (pthread_sigmask(SIG_BLOCK, &all, ret_before) != 0) {
        return err_errno(err, errno, "blocking signals");
    }
    (void)signal(SIGPIPE, SIG_IGN);
    rt->signals = -1;
    if (rt->own_loop) {
        return BT_OK; /* they are the program's */
    }
    rt->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    return rt->signals < 0 ? err_errno(err, errno, "signalfd") : BT_OK;
}

static enum bt_code make_session_key(struct runtime *rt, struct bt_error *err)
{
    uint8_t bytes[32];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) {
        return err_errno(err, errno, "getrandom");
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        (void)snprintf(rt->session_key + 2 * i, 3, "%02x", bytes[i]);
    }
    return BT_OK;
}

static enum bt_code open_sockets(struct runtime *rt, struct bt_error *err)
{
    /* Only the supervisor dials, capacity + 1 times; what others hold is bounded. */
    struct link_limits limits = {.recv_max = BUNDLE_BYTES_MAX,
                                 .peers = {.peers = PEERS_MAX,
                                           .unfinished_bytes = PEERS_MAX * (size_t)LIMIT_STEP_BYTES,
                                           .unfinished_ms = UNFINISHED_MS}};
    uint32_t contexts = rt->agent_state.capacity + 1 + RUNTIME_SPARE_CONTEXTS;
    enum bt_code code = link_new(INBOX, &rt->link, err);

    if (code == BT_OK && !rt->own_loop) {
        link_one_task_thread(); /* the process is the agent's */
    }
    if (code == BT_OK && !rt->opt->dial_in) {
        code = link_server_open(rt->link, rt->opt->listen,
                                contexts > RUNTIME_REQUESTS ? RUNTIME_REQUESTS : contexts, &limits,
                                NULL, &rt->server, err);
        if (code != BT_OK) {
            (void)err_wrap(err, "listening on %s", rt->opt->listen);
        }
    }
    return code;
}

static enum bt_code start(struct runtime *rt, struct bt_error *err)
{
    sigset_t before;
    enum bt_code code =
        rt->opt->connect != NULL ? BT_OK : state_dir_find(rt->opt->state, &rt->state_dir, err);

    if (code == BT_OK) {
        code = runtime_credential(rt, err);
    }
    if (code == BT_OK) {
        code = make_session_key(rt, err);
    }
    if (code == BT_OK) {
        code = take_signals(rt, &before, err);
    }
    if (code != BT_OK) {
        return code;
    }
    code = pool_start(rt->own_loop ? 0 : rt->agent_state.capacity, run_slot, rt, &rt->pool, err);
    if (code == BT_OK) {
        code = open_sockets(rt, err);
    }
    if (code == BT_OK) {
        code = start_watch(rt, err);
    }
    if (rt->own_loop) {
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return code;
}

enum bt_code runtime_new(const struct runtime_how *how, struct runtime **ret, struct bt_error *err)
{
    struct runtime *rt = calloc(1, sizeof *rt);
    enum bt_code code;

    if (rt == NULL) {
        return err_set(err, BT_NOMEM, "out of memory");
    }
    rt->opt = how->opt;
    rt->card = how->card;
    rt->self = how->self;
    rt->done = how->done;
    rt->own_loop = how->own_loop;
    rt->look_at = MSEC_NEVER;
    buf_init(&rt->request, LIMIT_STEP_BYTES);
    buf_init(&rt->out, LIMIT_STEP_BYTES);
    buf_init(&rt->trunk.frame, BUNDLE_BYTES_MAX);
    buf_init(&rt->trunk.answers, RUNTIME_REQUESTS * (size_t)(BUNDLE_ITEM_BYTES + LIMIT_STEP_BYTES));
    rt->trunk.pipes = BUNDLE_PIPES;
    buf_init(&rt->state_dir, 8192);
    buf_init(&rt->sealed, SEAL_HEADER_BYTES + LIMIT_STEP_BYTES);
    agent_state_init(&rt->agent_state, how->capacity);
    uuid_format(how->opt->instance_id, rt->instance_id);
    uuid_format(uuid_new(), rt->process_id);
    clock_iso(clock_wall_ms(), rt->stats.started);
    code = start(rt, err);
    if (code == BT_OK) {
        runtime_feed(rt, (struct agent_state_event){.type = AGENT_STATE_START});
        *ret = rt;
    }
    return code;
}
