#include "supervisor/dispatch/trunk.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/dispatch/dispatch_internal.h"
#include "supervisor/dispatch/lanes_internal.h"
#include "supervisor/dispatch/result_form.h"
#include "supervisor/dispatch/results.h"

_Static_assert(LIMIT_CAPACITY <= 64, "a set of credits is one word");

static uint64_t bit(const struct lane *credit)
{
    return 1ull << credit->ix;
}

/* No other step has it, of this incarnation or another, but for one 2^24 steps ago. The credit is
 * its last byte. The epoch is mixed (Knuth's multiplicative hash): it counts in either half. */
static uint64_t next_tag(struct trunk *t, const struct lane *credit)
{
    const uint64_t mixed = t->instance->epoch * 0x9E3779B97F4A7C15u >> 32;

    t->sent++;
    return mixed << 32 | (uint64_t)(t->sent & 0xFFFFFF) << 8 | credit->ix;
}

static struct lane *credit_of(struct lane_instance *in, uint64_t tag)
{
    const uint32_t ix = (uint32_t)(tag & 0xFF);

    return ix < in->capacity && in->lanes[ix].tag == tag ? &in->lanes[ix] : NULL;
}

static uint64_t busy(const struct trunk *t)
{
    uint64_t set = 0;

    for (uint32_t i = 0; i < t->instance->capacity; i++) {
        set |= t->instance->lanes[i].state == LANE_BUSY ? bit(&t->instance->lanes[i]) : 0;
    }
    return set;
}

uint32_t trunk_bundle(uint64_t bundle, uint64_t capacity)
{
    return bundle > 1 && capacity >= BUNDLE_PIPES ? (uint32_t)bundle : 0;
}

/* Something may still be answered: a step that is out, or one that was given up as LOST. */
static bool awaits(const struct trunk *t)
{
    bool any = false;

    for (uint32_t i = 0; i < t->instance->capacity; i++) {
        any = any || t->instance->lanes[i].tag != 0;
    }
    return any;
}

enum bt_code trunk_new(struct lane_instance *in, struct bt_error *err)
{
    struct trunk *t = calloc(1, sizeof *t);

    if (t == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the pipes of an instance");
    }
    t->instance = in;
    buf_init(&t->queue, LIMIT_CAPACITY * (size_t)(BUNDLE_ITEM_BYTES + LIMIT_STEP_BYTES));
    for (uint32_t i = 0; i < in->capacity; i++) {
        in->lanes[i].instance = in;
        in->lanes[i].ix = i;
    }
    in->trunk = t;
    return BT_OK;
}

void trunk_free(struct engine *engine, struct lane_instance *in)
{
    struct trunk **at = &dispatch_of(engine)->trunks_due;
    struct trunk *t = in->trunk;

    while (t->due && *at != t) {
        at = &(*at)->next;
    }
    if (t->due) {
        *at = t->next;
    }
    buf_done(&t->queue);
    free(t);
    in->trunk = NULL;
}

static void make_due(struct engine *engine, struct trunk *t)
{
    struct dispatch *d = dispatch_of(engine);

    if (!t->due) {
        t->due = true;
        t->next = d->trunks_due;
        d->trunks_due = t;
    }
}

/* ---- out ---- */

enum bt_code trunk_add(struct engine *engine, struct lane *credit, struct str body,
                       struct bt_error *err)
{
    struct trunk *t = credit->instance->trunk;
    const uint64_t tag = next_tag(t, credit);
    const size_t before = t->queue.len;

    bundle_put(&t->queue, tag, body);
    if (buf_check(&t->queue, err) != BT_OK) {
        t->queue.bad = BT_OK;
        buf_truncate(&t->queue, before);
        return err->code;
    }
    credit->tag = tag;
    t->queued |= bit(credit);
    for (uint32_t i = 0; i < BUNDLE_PIPES; i++) {
        t->carries[i] &= ~bit(credit); /* a step before it, which was given up */
    }
    make_due(engine, t);
    return BT_OK;
}

/* The credits of the first n bytes of the queue. */
static uint64_t credits_in(const struct trunk *t, size_t n)
{
    struct bundle_reader r = bundle_items((struct str){(const char *)t->queue.at, n});
    uint64_t set = 0;
    struct str body;
    uint64_t tag;

    while (bundle_next(&r, &tag, &body)) {
        set |= 1ull << (tag & 0xFF);
    }
    return set;
}

/* False: the pipe has gone, and the link will say so; what waits goes on waiting. */
static bool send_bundle(struct engine *engine, struct trunk *t, struct lane *pipe)
{
    struct buf *out = &dispatch_of(engine)->message;
    struct bt_error err;
    const size_t taken = bundle_take(out, t->instance->bundle, buf_str(&t->queue));
    const uint64_t credits = credits_in(t, taken);

    if (buf_check(out, &err) != BT_OK ||
        link_lane_send(pipe->link, out->at, out->len, &err) != BT_OK) {
        log_debug("trunk.send", "instance=%s pipe=%u %s", t->instance->id, pipe->ix, err.msg);
        return false;
    }
    pipe->state = LANE_BUSY;
    t->out++;
    t->carries[pipe->ix] = credits;
    t->queued &= ~credits;
    t->spare += credits != 0 && t->spare < BUNDLE_PIPES;
    bundle_drop(&t->queue, taken);
    return true;
}

static void flush(struct engine *engine, struct trunk *t)
{
    for (uint32_t i = 0; i < BUNDLE_PIPES; i++) {
        struct lane *pipe = &t->pipes[i];
        if (t->queued == 0 && (t->out > 0 || !awaits(t))) {
            return;
        }
        if (pipe->state == LANE_READY) {
            (void)send_bundle(engine, t, pipe);
        }
    }
}

void trunks_flush(struct engine *engine)
{
    struct dispatch *d = dispatch_of(engine);

    while (d->trunks_due != NULL) {
        struct trunk *t = d->trunks_due;
        d->trunks_due = t->next;
        t->due = false;
        flush(engine, t);
    }
}

/* ---- in ---- */

/* The result of an attempt that was LOST on this credit, and comes all the same. */
static void take_late(struct engine *engine, struct lane *credit, struct msg_reader *r)
{
    const struct control_item *item = &credit->item;
    struct core_event ev = {
        .slot = credit->instance->slot, .epoch = credit->instance->epoch, .lane = LANE_NONE};
    struct msg_step_result m;
    struct bt_error err;

    ev.phase = item->phase;
    (void)uuid_parse(str_from(credit->instance->id), &ev.instance);
    if (msg_read_answer(r, MSG_step_result, &m, NULL, &err) == BT_OK && str_is(m.key, item->key) &&
        m.attempt == item->attempt) {
        (void)results_take(engine, &m, item->run, item->step, &ev);
    }
}

static void fail_unreadable(struct engine *engine, struct lane *credit, const struct bt_error *why)
{
    log_warn("lane.garbage", "instance=%s lane=%u %s", credit->instance->id, credit->ix, why->msg);
    lanes_fail_unreadable(engine, credit, why);
    credit->state = LANE_READY;
    lanes_feed_lane(engine, credit, CORE_LANE_UP);
}

static void take(struct engine *engine, struct lane *credit, struct str body)
{
    struct msg_reader r = {0};
    struct bt_error err;
    const bool readable =
        msg_reader_init(&r, body.ptr, body.len, LIMIT_STEP_BYTES, &err) == BT_OK &&
        result_form_normalise(&r, &err) == BT_OK;

    credit->tag = 0; /* it is answered once */
    (void)engine_applies(engine, credit->item.run);
    if (credit->state == LANE_BUSY && readable) {
        lanes_work_answered(engine, credit, &r);
    } else if (credit->state == LANE_BUSY) {
        fail_unreadable(engine, credit, &err);
    } else if (readable) {
        take_late(engine, credit, &r);
    }
    msg_reader_done(&r);
    (void)engine_applies(engine, 0);
}

void trunk_answered(struct engine *engine, struct lane *pipe, struct str bytes)
{
    struct lane_instance *in = pipe->instance;
    struct trunk *t = in->trunk;
    struct bundle_reader r;
    struct bt_error err;
    struct str body;
    uint64_t tag;
    enum bt_code code = bundle_open(&r, bytes, &err);

    if (code == BT_OK && r.left == 0 && t->spare == 0) {
        code = err_set(&err, BT_PROTOCOL, "bundle: an empty answer to a request without steps");
    }
    make_due(engine, t);
    if (code != BT_OK) {
        lanes_unreadable(engine, pipe, &err);
        return;
    }
    t->spare -= r.left == 0;
    pipe->state = LANE_READY;
    t->out--;
    in->unreadable[0] = 0;
    while (bundle_next(&r, &tag, &body)) {
        struct lane *credit = credit_of(in, tag);
        if (credit == NULL) {
            log_warn("step.result.foreign", "instance=%s tag=%llx is of no step that is out",
                     in->id, (unsigned long long)tag);
        } else {
            take(engine, credit, body);
        }
    }
}

/* ---- pipes come and go ---- */

void trunk_up(struct engine *engine, struct lane *pipe)
{
    struct lane_instance *in = pipe->instance;
    struct trunk *t = in->trunk;

    t->up++;
    make_due(engine, t);
    for (uint32_t i = 0; t->up == 1 && i < in->capacity; i++) {
        in->lanes[i].state = LANE_READY;
        lanes_feed_lane(engine, &in->lanes[i], CORE_LANE_UP);
    }
}

static void lose_attempt(struct engine *engine, struct lane *credit, bool sent)
{
    struct core_event ev = lanes_lost(credit, sent);

    credit->cancelled = false;
    credit->tag = sent ? credit->tag : 0; /* nothing answers what never left */
    lanes_feed(engine, &ev);
}

/* Credits go down before attempts are lost, so that the core does not choose them again; with a
 * pipe that is left they come back at once. */
static void lose(struct engine *engine, struct trunk *t, uint64_t lost, uint64_t unsent)
{
    struct lane_instance *in = t->instance;
    const bool all = t->up == 0;

    for (uint32_t i = 0; i < in->capacity; i++) {
        struct lane *credit = &in->lanes[i];
        if ((all && credit->state != LANE_CONNECTING) || (lost & bit(credit)) != 0) {
            lanes_feed_lane(engine, credit, CORE_LANE_DOWN);
            credit->state = LANE_CONNECTING;
        }
    }
    for (uint32_t i = 0; i < in->capacity; i++) {
        if ((lost & bit(&in->lanes[i])) != 0) {
            lose_attempt(engine, &in->lanes[i], (unsent & bit(&in->lanes[i])) == 0);
        }
    }
    for (uint32_t i = 0; !all && i < in->capacity; i++) {
        if ((lost & bit(&in->lanes[i])) != 0) {
            in->lanes[i].state = LANE_READY;
            lanes_feed_lane(engine, &in->lanes[i], CORE_LANE_UP);
        }
    }
}

void trunk_lost(struct engine *engine, struct lane *pipe, bool sent)
{
    struct trunk *t = pipe->instance->trunk;
    const bool asked = pipe->state == LANE_BUSY;
    uint64_t unsent = t->queued;
    uint64_t lost = 0;

    if (pipe->state != LANE_READY && !asked) {
        pipe->state = LANE_CONNECTING;
        return;
    }
    pipe->state = LANE_CONNECTING;
    t->up--;
    t->out -= asked;
    if (asked && sent) {
        lost = busy(t) & ~t->queued;
    } else if (asked) {
        lost = t->carries[pipe->ix] & busy(t);
        unsent |= t->carries[pipe->ix];
    }
    if (t->up == 0) {
        lost |= busy(t);
        t->queued = 0;
        bundle_drop(&t->queue, t->queue.len);
    }
    lose(engine, t, lost, unsent);
    make_due(engine, t);
}
