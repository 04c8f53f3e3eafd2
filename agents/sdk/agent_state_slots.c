/* Executions: what runs, what is kept, and who is answered. */
#include "agents/sdk/agent_state_internal.h"
#include "protocol/base/assert.h"

static bool row_is(const struct agent_state_row *row, struct str key)
{
    return row->state != ROW_FREE && row->key_len == key.len &&
           memcmp(row->key, key.ptr, key.len) == 0;
}

uint32_t agent_state_find(const struct agent_state *s, struct str key, uint32_t attempt)
{
    uint32_t found = AGENT_STATE_NO_ROW;

    for (uint32_t i = 0; i < AGENT_STATE_ROWS; i++) {
        const struct agent_state_row *row = &s->rows[i];
        if (row_is(row, key) && (attempt == 0 || row->attempt == attempt) &&
            (found == AGENT_STATE_NO_ROW || row->attempt > s->rows[found].attempt)) {
            found = i;
        }
    }
    return found;
}

static void forget(struct agent_state *s, uint32_t ix, struct agent_state_actions *out)
{
    struct agent_state_row *row = &s->rows[ix];

    ASSERT(row->state == ROW_DONE && s->kept > 0);
    s->kept--;
    s->kept_bytes -= row->bytes;
    *row = (struct agent_state_row){.request = AGENT_STATE_NO_REQUEST};
    agent_state_emit(out, (struct agent_state_action){.type = DO_FORGET, .row = ix});
}

/* What the supervisor already has goes first, then the oldest. */
static uint32_t oldest_kept(const struct agent_state *s, uint32_t spare)
{
    uint32_t found = AGENT_STATE_NO_ROW;

    for (uint32_t i = 0; i < AGENT_STATE_ROWS; i++) {
        const struct agent_state_row *row = &s->rows[i];
        const struct agent_state_row *best = found == AGENT_STATE_NO_ROW ? NULL : &s->rows[found];
        if (row->state == ROW_DONE && i != spare &&
            (best == NULL || (best->undelivered && !row->undelivered) ||
             (best->undelivered == row->undelivered && row->touched < best->touched))) {
            found = i;
        }
    }
    return found;
}

static void make_room(struct agent_state *s, uint32_t spare, struct agent_state_actions *out)
{
    while (s->kept > AGENT_STATE_KEPT || s->kept_bytes > AGENT_STATE_KEPT_BYTES) {
        uint32_t ix = oldest_kept(s, spare);
        if (ix == AGENT_STATE_NO_ROW) {
            break; /* the newest result is kept however large it is */
        }
        if (s->rows[ix].undelivered) {
            agent_state_say(out, ix, "an undelivered result was dropped: too many are kept");
        }
        forget(s, ix, out);
    }
}

bool agent_state_epoch_ok(struct agent_state *s, uint64_t epoch)
{
    /* The lanes may be faster than the answer to agent.register. The session key proved who asks.
     */
    if (s->ask == ASK_REGISTER && epoch > s->epoch) {
        s->epoch = epoch;
    }
    return epoch != 0 && epoch == s->epoch;
}

/* Once more what we have: the newest request is the one whose asker still listens. */
static void join(struct agent_state *s, uint32_t ix, const struct agent_state_event *ev,
                 struct agent_state_actions *out)
{
    struct agent_state_row *row = &s->rows[ix];

    row->epoch = ev->epoch;
    if (row->state == ROW_DONE) {
        row->touched = ev->now;
        row->undelivered = false;
        agent_state_emit(out, (struct agent_state_action){
                                  .type = DO_ANSWER_RESULT, .request = ev->request, .row = ix});
        return;
    }
    if (row->request != AGENT_STATE_NO_REQUEST) {
        agent_state_emit(out, (struct agent_state_action){
                                  .type = DO_REFUSE,
                                  .request = row->request,
                                  .code = BT_CONFLICT,
                                  .text = "a newer request of the same attempt gets the answer"});
    }
    row->request = ev->request;
}

static uint32_t take_free_row(struct agent_state *s, struct str key,
                              struct agent_state_actions *out)
{
    uint32_t found = AGENT_STATE_NO_ROW;

    for (uint32_t i = 0; i < AGENT_STATE_ROWS; i++) {
        if (row_is(&s->rows[i], key) && s->rows[i].state == ROW_DONE) {
            forget(s, i,
                   out); /* another attempt was asked for: the supervisor has settled this one */
        }
        if (found == AGENT_STATE_NO_ROW && s->rows[i].state == ROW_FREE) {
            found = i;
        }
    }
    ASSERT(found != AGENT_STATE_NO_ROW); /* at most capacity run and SESSION_KEPT are kept */
    return found;
}

static void refuse(uint64_t request, enum bt_code code, const char *text,
                   struct agent_state_actions *out)
{
    agent_state_emit(out, (struct agent_state_action){
                              .type = DO_REFUSE, .request = request, .code = code, .text = text});
}

void agent_state_on_execute(struct agent_state *s, const struct agent_state_event *ev,
                            struct agent_state_actions *out)
{
    uint32_t ix;

    if (!agent_state_epoch_ok(s, ev->epoch)) {
        refuse(ev->request, BT_CONFLICT, "epoch: not the current one of this instance", out);
        return;
    }
    if (ev->key.len == 0 || ev->key.len > LIMIT_KEY_BYTES || ev->attempt == 0) {
        refuse(ev->request, BT_INVALID,
               "key and attempt: expected an idempotency key and an attempt from 1", out);
        return;
    }
    ix = agent_state_find(s, ev->key, ev->attempt);
    if (ix != AGENT_STATE_NO_ROW) {
        join(s, ix, ev, out);
        return;
    }
    if (s->draining) {
        refuse(ev->request, BT_UNAVAILABLE, "the agent is draining and takes no new steps", out);
        return;
    }
    if (s->running >= s->capacity) {
        refuse(ev->request, BT_BUSY, "all workers of this instance are busy", out);
        return;
    }
    ix = take_free_row(s, ev->key, out);
    s->rows[ix] = (struct agent_state_row){.state = ROW_RUNNING,
                                           .key_len = (uint32_t)ev->key.len,
                                           .attempt = ev->attempt,
                                           .epoch = ev->epoch,
                                           .request = ev->request,
                                           .cancel_at = MSEC_NEVER};
    memcpy(s->rows[ix].key, ev->key.ptr, ev->key.len);
    s->running++;
    agent_state_emit(
        out, (struct agent_state_action){.type = DO_RUN, .request = ev->request, .row = ix});
}

void agent_state_on_cancel(struct agent_state *s, const struct agent_state_event *ev,
                           struct agent_state_actions *out)
{
    uint32_t newest = agent_state_find(s, ev->key, 0);

    for (uint32_t i = 0; i < AGENT_STATE_ROWS; i++) {
        struct agent_state_row *row = &s->rows[i];
        msec at = msec_add(ev->now, ev->grace_ms);
        if (row->state != ROW_RUNNING || !row_is(row, ev->key)) {
            continue;
        }
        if (!row->cancelled) {
            agent_state_emit(out, (struct agent_state_action){.type = DO_CANCEL, .row = i});
            row->cancel_at = at;
        }
        row->cancelled = true;
        row->cancel_at = !row->overdue && at < row->cancel_at ? at : row->cancel_at;
    }
    if (ev->request != AGENT_STATE_NO_REQUEST) {
        agent_state_emit(out, (struct agent_state_action){
                                  .type = DO_ANSWER_STATE, .request = ev->request, .row = newest});
    }
}

void agent_state_on_query(struct agent_state *s, const struct agent_state_event *ev,
                          struct agent_state_actions *out)
{
    uint32_t ix = agent_state_find(s, ev->key, ev->attempt);

    if (ix != AGENT_STATE_NO_ROW && s->rows[ix].state == ROW_DONE) {
        s->rows[ix].touched = ev->now;
        s->rows[ix].undelivered =
            false; /* it travels with this answer; a lost one is asked for again */
    }
    agent_state_emit(out, (struct agent_state_action){
                              .type = DO_ANSWER_STATE, .request = ev->request, .row = ix});
}

void agent_state_on_finished(struct agent_state *s, const struct agent_state_event *ev,
                             struct agent_state_actions *out)
{
    struct agent_state_row *row = &s->rows[ev->row];

    ASSERT(ev->row < AGENT_STATE_ROWS && row->state == ROW_RUNNING);
    row->state = ROW_DONE;
    row->touched = ev->now;
    row->bytes = ev->bytes;
    row->progress = false;
    row->undelivered = !s->registered || row->epoch != s->epoch;
    s->running--;
    s->kept++;
    s->kept_bytes += ev->bytes;
    s->quiet_at = msec_add(ev->now, AGENT_STATE_QUIET_MS);
    if (row->request != AGENT_STATE_NO_REQUEST) {
        /* Answered even when its asker is probably gone: a lane is always answered. */
        agent_state_emit(out, (struct agent_state_action){.type = DO_ANSWER_RESULT,
                                                          .request = row->request,
                                                          .row = ev->row});
        row->request = AGENT_STATE_NO_REQUEST;
    }
    make_room(s, ev->row, out);
}

void agent_state_tick_rows(struct agent_state *s, msec now, struct agent_state_actions *out)
{
    for (uint32_t i = 0; i < AGENT_STATE_ROWS; i++) {
        struct agent_state_row *row = &s->rows[i];
        if (row->state == ROW_RUNNING && row->cancelled && !row->overdue && row->cancel_at <= now) {
            row->overdue = true;
            agent_state_say(out, i, "the handler ignores the cancel; its worker stays taken");
        }
        if (row->state == ROW_DONE && !row->undelivered &&
            msec_add(row->touched, AGENT_STATE_KEEP_MS) <= now) {
            forget(s, i, out);
        }
    }
}

msec agent_state_rows_deadline(const struct agent_state *s)
{
    msec at = MSEC_NEVER;

    for (uint32_t i = 0; i < AGENT_STATE_ROWS; i++) {
        const struct agent_state_row *row = &s->rows[i];
        msec due = MSEC_NEVER;
        if (row->state == ROW_RUNNING && row->cancelled && !row->overdue) {
            due = row->cancel_at;
        } else if (row->state == ROW_DONE && !row->undelivered) {
            due = msec_add(row->touched, AGENT_STATE_KEEP_MS);
        }
        at = due < at ? due : at;
    }
    return at;
}

uint32_t agent_state_undelivered(const struct agent_state *s)
{
    uint32_t found = AGENT_STATE_NO_ROW;

    for (uint32_t i = 0; i < AGENT_STATE_ROWS; i++) {
        if (s->rows[i].state == ROW_DONE && s->rows[i].undelivered &&
            (found == AGENT_STATE_NO_ROW || s->rows[i].touched < s->rows[found].touched)) {
            found = i;
        }
    }
    return found;
}

uint32_t agent_state_with_progress(const struct agent_state *s)
{
    for (uint32_t i = 1; i <= AGENT_STATE_ROWS; i++) {
        uint32_t ix = (s->progress_row + i) % AGENT_STATE_ROWS;
        if (s->rows[ix].state == ROW_RUNNING && s->rows[ix].progress) {
            return ix;
        }
    }
    return AGENT_STATE_NO_ROW;
}

void agent_state_doubt_since(struct agent_state *s, msec at)
{
    for (uint32_t i = 0; i < AGENT_STATE_ROWS; i++) {
        struct agent_state_row *row = &s->rows[i];
        if (row->state == ROW_DONE && row->touched >= at) {
            row->undelivered =
                true; /* told twice is harmless: the supervisor knows attempts and epochs */
        }
    }
}
