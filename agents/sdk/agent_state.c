/* The control lane: dial, register, renew the lease, report, drain. */
#include "agents/sdk/agent_state_internal.h"
#include "protocol/base/assert.h"

enum { BACKOFF_MIN_MS = 10, CALL_MIN_MS = 1000, CALL_MAX_MS = 30000 };
enum { LOOK_PART = 8, LOOK_MIN_MS = 2, LOOK_MAX_MS = 100 };

void agent_state_emit(struct agent_state_actions *out, struct agent_state_action action)
{
    ASSERT(out->n < AGENT_STATE_ACTIONS);
    out->at[out->n++] = action;
}

void agent_state_log(struct agent_state_actions *out, uint32_t slot, const char *text)
{
    agent_state_emit(out, (struct agent_state_action){.type = DO_LOG, .slot = slot, .text = text});
}

void agent_state_init(struct agent_state *s, uint32_t capacity)
{
    ASSERT(capacity >= 1 && capacity <= LIMIT_CAPACITY);
    *s = (struct agent_state){.capacity = capacity,
                              .lease_ms = AGENT_STATE_REGISTER_MS,
                              .call_deadline = MSEC_NEVER,
                              .dial_deadline = MSEC_NEVER,
                              .dial_at = MSEC_NEVER,
                              .register_at = 0,
                              .heartbeat_at = MSEC_NEVER,
                              .backoff_ms = BACKOFF_MIN_MS};
    for (uint32_t i = 0; i < AGENT_STATE_SLOTS; i++) {
        s->slots[i].request = AGENT_STATE_NO_REQUEST;
    }
}

static uint32_t next_backoff(struct agent_state *s)
{
    uint32_t now = s->backoff_ms;

    s->backoff_ms = now * 2 > AGENT_STATE_BACKOFF_MAX_MS ? AGENT_STATE_BACKOFF_MAX_MS : now * 2;
    return now;
}

/* The supervisor is unreachable, or its state is unknown: dial again. */
static void reconnect(struct agent_state *s, msec now, struct agent_state_actions *out)
{
    if (s->registered) {
        agent_state_mark_undelivered_since(s, s->contact_at);
    }
    s->up = false;
    s->registered = false;
    s->call = CALL_NONE;
    s->call_deadline = MSEC_NEVER;
    s->dial_deadline = MSEC_NEVER;
    s->heartbeat_at = MSEC_NEVER;
    s->dial_at = msec_add(now, next_backoff(s));
    if (now >= s->log_at) {
        agent_state_log(out, AGENT_STATE_NO_SLOT, "cannot reach the supervisor; trying again");
        s->log_at = msec_add(now, AGENT_STATE_LOG_MS);
    }
}

static void dial(struct agent_state *s, msec now, struct agent_state_actions *out)
{
    s->dial_at = MSEC_NEVER;
    s->dial_deadline = msec_add(now, AGENT_STATE_DIAL_MS);
    agent_state_emit(out, (struct agent_state_action){.type = DO_DIAL});
}

static void call(struct agent_state *s, enum agent_state_call what, uint32_t slot, msec now,
                 struct agent_state_actions *out)
{
    static const enum agent_state_action_type actions[] = {
        [CALL_REGISTER] = DO_REGISTER, [CALL_HEARTBEAT] = DO_HEARTBEAT,
        [CALL_RESULT] = DO_RESULT,     [CALL_PROGRESS] = DO_PROGRESS,
        [CALL_DRAIN] = DO_DRAIN,       [CALL_DEREGISTER] = DO_DEREGISTER,
    };
    msec limit = s->lease_ms;

    limit = limit < CALL_MIN_MS ? CALL_MIN_MS : limit;
    limit = limit > CALL_MAX_MS ? CALL_MAX_MS : limit;
    limit = what == CALL_REGISTER ? AGENT_STATE_REGISTER_MS : limit;
    s->call = what;
    s->call_slot = slot;
    s->call_sent_at = now;
    s->call_deadline = msec_add(now, limit);
    agent_state_emit(out, (struct agent_state_action){.type = actions[what], .slot = slot});
}

static void end(struct agent_state *s, int status, struct agent_state_actions *out)
{
    s->ended = true;
    agent_state_emit(out, (struct agent_state_action){.type = DO_EXIT, .status = status});
}

/* Whether a draining agent has waited long enough for a result that is not taken. */
static bool has_waited(const struct agent_state *s, msec now)
{
    return now >= msec_add(s->drain_since, AGENT_STATE_OFFLINE_MS);
}

/* Deregisters or ends a draining agent that has nothing left to do. True when it did. */
static bool finish_drain(struct agent_state *s, msec now, struct agent_state_actions *out)
{
    bool results_wait = agent_state_undelivered(s) != AGENT_STATE_NO_SLOT;

    if (!s->draining || s->running > 0) {
        return false;
    }
    if (s->registered) {
        results_wait = results_wait && !has_waited(s, now);
        if (results_wait || now < s->linger_until) {
            return false;
        }
        call(s, CALL_DEREGISTER, AGENT_STATE_NO_SLOT, now, out);
        return true;
    }
    if (!results_wait || has_waited(s, now)) {
        end(s, 0, out);
        return true;
    }
    return false;
}

/* Sends the next control request by priority: lease, drain, results, progress, deregistration. */
static void start_next_call(struct agent_state *s, msec now, struct agent_state_actions *out)
{
    uint32_t slot;

    if (s->ended || s->call != CALL_NONE) {
        return;
    }
    if (!s->registered) {
        if (!finish_drain(s, now, out) && s->up && now >= s->register_at) {
            call(s, CALL_REGISTER, AGENT_STATE_NO_SLOT, now, out);
        }
        return;
    }
    if (now >= s->heartbeat_at) {
        s->heartbeat_at = msec_add(now, s->heartbeat_ms);
        call(s, CALL_HEARTBEAT, AGENT_STATE_NO_SLOT, now, out);
        return;
    }
    if (s->draining && !s->drain_sent) {
        s->drain_sent = true;
        call(s, CALL_DRAIN, AGENT_STATE_NO_SLOT, now, out);
        return;
    }
    slot = agent_state_undelivered(s);
    if (slot != AGENT_STATE_NO_SLOT && now >= s->result_at) {
        call(s, CALL_RESULT, slot, now, out);
        return;
    }
    slot = agent_state_with_progress(s);
    if (slot != AGENT_STATE_NO_SLOT && now >= s->progress_at) {
        s->progress_at = msec_add(now, AGENT_STATE_PROGRESS_MS);
        s->slots[slot].progress = false;
        s->progress_slot = slot;
        call(s, CALL_PROGRESS, slot, now, out);
        return;
    }
    (void)finish_drain(s, now, out);
}

/* ---- events of the control lane ---- */

static void answered(struct agent_state *s)
{
    s->contact_at = s->call_sent_at;
    s->call = CALL_NONE;
    s->call_deadline = MSEC_NEVER;
}

static void on_registered(struct agent_state *s, const struct agent_state_event *ev)
{
    answered(s);
    s->registered = true;
    s->epoch = ev->epoch;
    s->lease_ms = ev->lease_ms;
    s->heartbeat_ms = ev->heartbeat_ms > 0 ? ev->heartbeat_ms : 1000;
    s->heartbeat_at = msec_add(ev->now, s->heartbeat_ms);
    s->backoff_ms = BACKOFF_MIN_MS;
    s->log_at = 0;
    s->drain_sent = false;
}

static void on_heartbeat_ok(struct agent_state *s, const struct agent_state_event *ev,
                            struct agent_state_actions *out)
{
    answered(s);
    s->lease_ms = ev->lease_ms > 0 ? ev->lease_ms : s->lease_ms;
    for (uint32_t i = 0; i < ev->n && i < AGENT_STATE_ORDERS; i++) {
        struct agent_state_event order = {.type = AGENT_STATE_CANCEL,
                                          .now = ev->now,
                                          .request = AGENT_STATE_NO_REQUEST,
                                          .key = ev->orders[i].key,
                                          .attempt = ev->orders[i].attempt,
                                          .grace_ms = ev->orders[i].grace_ms};
        agent_state_on_cancel(s, &order, out);
    }
    if (ev->drain && !s->draining) {
        s->draining = true;
        s->drain_sent = true;
        s->drain_since = ev->now;
    }
}

static void register_refused(struct agent_state *s, const struct agent_state_event *ev,
                             struct agent_state_actions *out)
{
    if (ev->code == BT_UNAUTHORIZED || ev->code == BT_INVALID || ev->code == BT_PROTOCOL) {
        end(s, 2, out); /* a second request would be rejected too */
    } else {
        s->register_at = msec_add(ev->now, next_backoff(s));
    }
}

static bool means_register_again(enum bt_code code)
{
    return code == BT_NOT_FOUND || code == BT_CONFLICT || code == BT_GONE ||
           code == BT_UNAUTHORIZED;
}

/* The daemon may take the same result later: its disk is full, or it has too much to do. */
static bool may_pass(enum bt_code code)
{
    return code == BT_UNAVAILABLE || code == BT_BUSY || code == BT_TIMEOUT;
}

static void on_refused(struct agent_state *s, const struct agent_state_event *ev,
                       struct agent_state_actions *out)
{
    enum agent_state_call was = s->call;

    answered(s);
    if (was == CALL_REGISTER) {
        register_refused(s, ev, out);
    } else if (was == CALL_DEREGISTER) {
        end(s, 0, out);
    } else if (was == CALL_PROGRESS) {
        return; /* the step has ended at the supervisor; the heartbeat shows whether ours has */
    } else if (means_register_again(ev->code)) {
        s->registered = false;
        s->register_at = msec_add(ev->now, next_backoff(s));
    } else if (was == CALL_RESULT && may_pass(ev->code)) {
        s->result_at = msec_add(ev->now, AGENT_STATE_RESULT_AGAIN_MS);
    } else if (was == CALL_RESULT) {
        s->slots[s->call_slot].undelivered =
            false; /* a second request would be rejected too; step.query can still read it */
        agent_state_log(out, s->call_slot, "the supervisor refused a late result");
    }
}

static void on_lost(struct agent_state *s, msec now, struct agent_state_actions *out)
{
    if (s->call == CALL_DEREGISTER) {
        end(s, 0, out);
    } else if (s->up || s->call != CALL_NONE) {
        reconnect(s, now, out);
    }
}

static void on_result_ok(struct agent_state *s)
{
    if (s->call == CALL_RESULT && s->slots[s->call_slot].state == SLOT_DONE) {
        s->slots[s->call_slot].undelivered = false;
    }
    answered(s);
}

static void on_stop(struct agent_state *s, const struct agent_state_event *ev,
                    struct agent_state_actions *out)
{
    if (s->stopped) {
        end(s, s->running > 0 ? 1 : 0, out);
        return;
    }
    s->stopped = true;
    if (!s->draining) {
        s->draining = true;
        s->drain_since = ev->now;
    }
}

static void on_hello(struct agent_state *s, const struct agent_state_event *ev,
                     struct agent_state_actions *out)
{
    if (agent_state_epoch_ok(s, ev->epoch)) {
        agent_state_emit(out,
                         (struct agent_state_action){.type = DO_ANSWER_OK, .request = ev->request});
    } else {
        agent_state_emit(out, (struct agent_state_action){
                                  .type = DO_REFUSE,
                                  .request = ev->request,
                                  .code = BT_CONFLICT,
                                  .text = "epoch: not the current one of this instance"});
    }
}

static void on_tick(struct agent_state *s, msec now, struct agent_state_actions *out)
{
    agent_state_tick_slots(s, now, out);
    if (s->call != CALL_NONE && now >= s->call_deadline) {
        on_lost(s, now, out);
    }
    if (!s->up && s->dial_deadline <= now) {
        reconnect(s, now, out);
    }
    if (!s->ended && s->dial_at <= now) {
        dial(s, now, out);
    }
}

static void on_up(struct agent_state *s)
{
    s->up = true;
    s->dial_deadline = MSEC_NEVER;
    s->dial_at = MSEC_NEVER;
    s->register_at = 0;
}

static void route(struct agent_state *s, const struct agent_state_event *ev,
                  struct agent_state_actions *out)
{
    switch (ev->type) {
    case AGENT_STATE_START:
        dial(s, ev->now, out);
        break;
    case AGENT_STATE_TICK:
        on_tick(s, ev->now, out);
        break;
    case AGENT_STATE_UP:
        on_up(s);
        break;
    case AGENT_STATE_DOWN:
    case AGENT_STATE_LOST:
        on_lost(s, ev->now, out);
        break;
    case AGENT_STATE_REGISTERED:
        on_registered(s, ev);
        break;
    case AGENT_STATE_HEARTBEAT_OK:
        on_heartbeat_ok(s, ev, out);
        break;
    case AGENT_STATE_RESULT_OK:
        on_result_ok(s);
        break;
    case AGENT_STATE_CALL_OK:
        if (s->call == CALL_DEREGISTER) {
            end(s, 0, out);
        }
        answered(s);
        break;
    case AGENT_STATE_REFUSED:
        on_refused(s, ev, out);
        break;
    case AGENT_STATE_HELLO:
        on_hello(s, ev, out);
        break;
    case AGENT_STATE_EXECUTE:
        agent_state_on_execute(s, ev, out);
        break;
    case AGENT_STATE_CANCEL:
        agent_state_on_cancel(s, ev, out);
        break;
    case AGENT_STATE_QUERY:
        agent_state_on_query(s, ev, out);
        break;
    case AGENT_STATE_FINISHED:
        agent_state_on_finished(s, ev, out);
        break;
    case AGENT_STATE_PROGRESS:
        s->slots[ev->slot].progress = s->slots[ev->slot].state == SLOT_RUNNING;
        break;
    case AGENT_STATE_STOP:
        on_stop(s, ev, out);
        break;
    }
}

void agent_state_handle(struct agent_state *s, const struct agent_state_event *ev,
                        struct agent_state_actions *out)
{
    if (s->ended) {
        return;
    }
    route(s, ev, out);
    start_next_call(s, ev->now, out);
}

static msec sooner(msec a, msec b)
{
    return a < b ? a : b;
}

msec agent_state_deadline(const struct agent_state *s)
{
    msec at = agent_state_slots_deadline(s);

    if (s->ended) {
        return MSEC_NEVER;
    }
    at = sooner(at, s->call_deadline);
    at = sooner(at, s->up ? MSEC_NEVER : sooner(s->dial_deadline, s->dial_at));
    if (s->call == CALL_NONE && s->up && !s->registered) {
        at = sooner(at, s->register_at);
    }
    if (s->call == CALL_NONE && s->registered) {
        at = sooner(at, s->heartbeat_at);
        at = agent_state_undelivered(s) != AGENT_STATE_NO_SLOT ? sooner(at, s->result_at) : at;
        at = agent_state_with_progress(s) != AGENT_STATE_NO_SLOT ? sooner(at, s->progress_at) : at;
        if (s->draining && s->running == 0) {
            at = sooner(at, agent_state_undelivered(s) == AGENT_STATE_NO_SLOT
                                ? s->linger_until
                                : msec_add(s->drain_since, AGENT_STATE_OFFLINE_MS));
        }
    }
    if (s->draining && s->running == 0 && !s->registered) {
        at = sooner(at, msec_add(s->drain_since, AGENT_STATE_OFFLINE_MS));
    }
    return at;
}

msec agent_state_look_wait(msec away)
{
    const msec part = away / LOOK_PART;

    return part < LOOK_MIN_MS ? LOOK_MIN_MS : part > LOOK_MAX_MS ? LOOK_MAX_MS : part;
}
