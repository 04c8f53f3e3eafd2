/* Executions: running ones, kept results, and the request that each of them answers. */
#include "agents/sdk/agent_state_internal.h"
#include "protocol/base/assert.h"

static bool slot_is(const struct agent_state_slot *slot, struct str key)
{
    return slot->state != SLOT_FREE && slot->key_len == key.len &&
           memcmp(slot->key, key.ptr, key.len) == 0;
}

uint32_t agent_state_find(const struct agent_state *s, struct str key, uint32_t attempt)
{
    uint32_t found = AGENT_STATE_NO_SLOT;

    for (uint32_t i = 0; i < AGENT_STATE_SLOTS; i++) {
        const struct agent_state_slot *slot = &s->slots[i];
        if (slot_is(slot, key) && (attempt == 0 || slot->attempt == attempt) &&
            (found == AGENT_STATE_NO_SLOT || slot->attempt > s->slots[found].attempt)) {
            found = i;
        }
    }
    return found;
}

/* ---- what was forgotten: a Bloom filter ---- */

static uint64_t mixed(uint64_t v)
{
    v = (v ^ v >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    v = (v ^ v >> 27) * UINT64_C(0x94D049BB133111EB);
    return v ^ v >> 31;
}

/* Sets the bits of the attempt, or tells whether all of them are set. */
static bool forgotten_bits(struct agent_state *s, struct str key, uint32_t attempt, bool set)
{
    const uint64_t h = mixed(str_hash(key) + attempt * UINT64_C(0x9E3779B97F4A7C15));
    bool all = true;

    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t bit = (uint32_t)(h + i * (h >> 32 | 1)) % AGENT_STATE_FORGOTTEN;
        const uint64_t mask = UINT64_C(1) << bit % 64;
        all = all && (s->forgotten[bit / 64] & mask) != 0;
        s->forgotten[bit / 64] |= set ? mask : 0;
    }
    return all;
}

/* attempt 0: any. */
static bool was_forgotten(struct agent_state *s, struct str key, uint32_t attempt)
{
    bool found = attempt > 0 && forgotten_bits(s, key, attempt, false);

    for (uint32_t i = 1; attempt == 0 && i <= LIMIT_ATTEMPTS && !found; i++) {
        found = forgotten_bits(s, key, i, false);
    }
    return found;
}

static void release(struct agent_state *s, uint32_t ix, struct agent_state_actions *out)
{
    struct agent_state_slot *slot = &s->slots[ix];

    ASSERT(slot->state == SLOT_DONE && s->kept > 0);
    s->kept--;
    s->kept_bytes -= slot->bytes;
    (void)forgotten_bits(s, (struct str){slot->key, slot->key_len}, slot->attempt, true);
    *slot = (struct agent_state_slot){.request = AGENT_STATE_NO_REQUEST};
    agent_state_emit(out, (struct agent_state_action){.type = DO_RELEASE, .slot = ix});
}

/* Results that the supervisor has come first, then the oldest. */
static uint32_t oldest_kept(const struct agent_state *s, uint32_t spare)
{
    uint32_t found = AGENT_STATE_NO_SLOT;

    for (uint32_t i = 0; i < AGENT_STATE_SLOTS; i++) {
        const struct agent_state_slot *slot = &s->slots[i];
        const struct agent_state_slot *best =
            found == AGENT_STATE_NO_SLOT ? NULL : &s->slots[found];
        if (slot->state == SLOT_DONE && i != spare &&
            (best == NULL || (best->undelivered && !slot->undelivered) ||
             (best->undelivered == slot->undelivered && slot->touched < best->touched))) {
            found = i;
        }
    }
    return found;
}

static void make_room(struct agent_state *s, uint32_t spare, struct agent_state_actions *out)
{
    while (s->kept > AGENT_STATE_KEPT || s->kept_bytes > AGENT_STATE_KEPT_BYTES) {
        uint32_t ix = oldest_kept(s, spare);
        if (ix == AGENT_STATE_NO_SLOT) {
            break; /* the newest result is kept whatever its size */
        }
        if (s->slots[ix].undelivered) {
            agent_state_log(out, ix, "an undelivered result was dropped: too many are kept");
        }
        release(s, ix, out);
    }
}

bool agent_state_epoch_ok(struct agent_state *s, uint64_t epoch)
{
    /* A lane may be faster than the answer to agent.register. The session key has authenticated the
     * sender. */
    if (s->call == CALL_REGISTER && epoch > s->epoch) {
        s->epoch = epoch;
    }
    return epoch != 0 && epoch == s->epoch;
}

/* A repeated request: the kept result, or the newest request becomes the one that gets the
 * answer. */
static void join(struct agent_state *s, uint32_t ix, const struct agent_state_event *ev,
                 struct agent_state_actions *out)
{
    struct agent_state_slot *slot = &s->slots[ix];

    slot->epoch = ev->epoch;
    if (slot->state == SLOT_DONE) {
        slot->touched = ev->now;
        slot->undelivered = false;
        agent_state_emit(out, (struct agent_state_action){
                                  .type = DO_ANSWER_RESULT, .request = ev->request, .slot = ix});
        return;
    }
    if (slot->request != AGENT_STATE_NO_REQUEST) {
        agent_state_emit(out, (struct agent_state_action){
                                  .type = DO_REFUSE,
                                  .request = slot->request,
                                  .code = BT_CONFLICT,
                                  .text = "a newer request of the same attempt gets the answer"});
    }
    slot->request = ev->request;
}

static uint32_t take_free_slot(struct agent_state *s, struct str key,
                               struct agent_state_actions *out)
{
    uint32_t found = AGENT_STATE_NO_SLOT;

    for (uint32_t i = 0; i < AGENT_STATE_SLOTS; i++) {
        if (slot_is(&s->slots[i], key) && s->slots[i].state == SLOT_DONE) {
            release(s, i,
                    /* a new attempt was requested: the supervisor needs this result no more */
                    out);
        }
        if (found == AGENT_STATE_NO_SLOT && s->slots[i].state == SLOT_FREE) {
            found = i;
        }
    }
    ASSERT(found != AGENT_STATE_NO_SLOT); /* at most capacity run and AGENT_STATE_KEPT are kept */
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
    if (ix != AGENT_STATE_NO_SLOT) {
        join(s, ix, ev, out);
        return;
    }
    if (s->draining) {
        refuse(ev->request, BT_BUSY, "the agent is draining and takes no new steps", out);
        return;
    }
    if (s->running >= s->capacity || ev->full) {
        refuse(ev->request, BT_BUSY, "all places of this instance are taken", out);
        return;
    }
    ix = take_free_slot(s, ev->key, out);
    s->slots[ix] = (struct agent_state_slot){.state = SLOT_RUNNING,
                                             .key_len = (uint32_t)ev->key.len,
                                             .attempt = ev->attempt,
                                             .epoch = ev->epoch,
                                             .request = ev->request,
                                             .cancel_at = MSEC_NEVER};
    memcpy(s->slots[ix].key, ev->key.ptr, ev->key.len);
    s->running++;
    agent_state_emit(
        out, (struct agent_state_action){.type = DO_RUN, .request = ev->request, .slot = ix});
}

static void answer_state(struct agent_state *s, const struct agent_state_event *ev, uint32_t slot,
                         struct agent_state_actions *out)
{
    agent_state_emit(
        out, (struct agent_state_action){.type = DO_ANSWER_STATE,
                                         .request = ev->request,
                                         .slot = slot,
                                         .forgotten = slot == AGENT_STATE_NO_SLOT &&
                                                      was_forgotten(s, ev->key, ev->attempt)});
}

void agent_state_on_cancel(struct agent_state *s, const struct agent_state_event *ev,
                           struct agent_state_actions *out)
{
    uint32_t newest = agent_state_find(s, ev->key, ev->attempt);

    for (uint32_t i = 0; i < AGENT_STATE_SLOTS; i++) {
        struct agent_state_slot *slot = &s->slots[i];
        msec at = msec_add(ev->now, ev->grace_ms);
        if (slot->state != SLOT_RUNNING || !slot_is(slot, ev->key) ||
            (ev->attempt != 0 && slot->attempt != ev->attempt)) {
            continue;
        }
        if (!slot->cancelled) {
            agent_state_emit(out, (struct agent_state_action){.type = DO_CANCEL, .slot = i});
        }
        slot->cancelled = true;
        slot->cancel_at = !slot->overdue && at < slot->cancel_at ? at : slot->cancel_at;
    }
    if (ev->request != AGENT_STATE_NO_REQUEST) {
        answer_state(s, ev, newest, out);
    }
}

void agent_state_on_query(struct agent_state *s, const struct agent_state_event *ev,
                          struct agent_state_actions *out)
{
    uint32_t ix = agent_state_find(s, ev->key, ev->attempt);

    if (ix != AGENT_STATE_NO_SLOT && s->slots[ix].state == SLOT_DONE) {
        s->slots[ix].touched = ev->now;
        s->slots[ix].undelivered =
            false; /* this answer carries it; if the answer is lost, the supervisor queries again */
    }
    answer_state(s, ev, ix, out);
}

void agent_state_on_finished(struct agent_state *s, const struct agent_state_event *ev,
                             struct agent_state_actions *out)
{
    struct agent_state_slot *slot = &s->slots[ev->slot];

    ASSERT(ev->slot < AGENT_STATE_SLOTS && slot->state == SLOT_RUNNING);
    slot->state = SLOT_DONE;
    slot->touched = ev->now;
    slot->bytes = ev->bytes;
    slot->progress = false;
    slot->undelivered = !s->registered || slot->epoch != s->epoch;
    s->running--;
    s->kept++;
    s->kept_bytes += ev->bytes;
    s->linger_until = msec_add(ev->now, AGENT_STATE_LINGER_MS);
    if (slot->request != AGENT_STATE_NO_REQUEST) {
        /* Answered even when the sender is probably gone: every request on a lane gets an
         * answer. */
        agent_state_emit(out, (struct agent_state_action){.type = DO_ANSWER_RESULT,
                                                          .request = slot->request,
                                                          .slot = ev->slot});
        slot->request = AGENT_STATE_NO_REQUEST;
    }
    make_room(s, ev->slot, out);
}

void agent_state_tick_slots(struct agent_state *s, msec now, struct agent_state_actions *out)
{
    for (uint32_t i = 0; i < AGENT_STATE_SLOTS; i++) {
        struct agent_state_slot *slot = &s->slots[i];
        if (slot->state == SLOT_RUNNING && slot->cancelled && !slot->overdue &&
            slot->cancel_at <= now) {
            slot->overdue = true;
            agent_state_log(out, i, "the handler ignores the cancel; its worker stays busy");
        }
        if (slot->state == SLOT_DONE && !slot->undelivered &&
            msec_add(slot->touched, AGENT_STATE_KEEP_MS) <= now) {
            release(s, i, out);
        }
    }
}

msec agent_state_slots_deadline(const struct agent_state *s)
{
    msec at = MSEC_NEVER;

    for (uint32_t i = 0; i < AGENT_STATE_SLOTS; i++) {
        const struct agent_state_slot *slot = &s->slots[i];
        msec due = MSEC_NEVER;
        if (slot->state == SLOT_RUNNING && slot->cancelled && !slot->overdue) {
            due = slot->cancel_at;
        } else if (slot->state == SLOT_DONE && !slot->undelivered) {
            due = msec_add(slot->touched, AGENT_STATE_KEEP_MS);
        }
        at = due < at ? due : at;
    }
    return at;
}

uint32_t agent_state_undelivered(const struct agent_state *s)
{
    uint32_t found = AGENT_STATE_NO_SLOT;

    for (uint32_t i = 0; i < AGENT_STATE_SLOTS; i++) {
        if (s->slots[i].state == SLOT_DONE && s->slots[i].undelivered &&
            (found == AGENT_STATE_NO_SLOT || s->slots[i].touched < s->slots[found].touched)) {
            found = i;
        }
    }
    return found;
}

uint32_t agent_state_with_progress(const struct agent_state *s)
{
    for (uint32_t i = 1; i <= AGENT_STATE_SLOTS; i++) {
        uint32_t ix = (s->progress_slot + i) % AGENT_STATE_SLOTS;
        if (s->slots[ix].state == SLOT_RUNNING && s->slots[ix].progress) {
            return ix;
        }
    }
    return AGENT_STATE_NO_SLOT;
}

void agent_state_mark_undelivered_since(struct agent_state *s, msec at)
{
    for (uint32_t i = 0; i < AGENT_STATE_SLOTS; i++) {
        struct agent_state_slot *slot = &s->slots[i];
        if (slot->state == SLOT_DONE && slot->touched >= at) {
            slot->undelivered =
                /* a second delivery is harmless: the supervisor compares attempts and epochs */
                true;
        }
    }
}
