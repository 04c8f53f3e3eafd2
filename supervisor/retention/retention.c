#include "supervisor/retention/retention_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/log.h"
#include "protocol/limits.h"
#include "supervisor/plan/flow/inside.h"

enum {
    SLICE_SWEEP = 300, /* rows and blobs that one slice removes: some ms */
    SLICE_ROWS = 200,
    SLICE_SESSIONS = 8,
    SLICE_BYTES = 4, /* plans that go before the size is looked at again */
    PASS_MAX_MS = 3600 * 1000,
    PASS_MIN_MS = 1,
    BYTES_EVERY_MS = 10 * 1000,
    READ_PAUSE_MS = 60 * 1000, /* until a plan whose files are read is looked at again */
    FULL_PAUSE_MS = 10 * 1000  /* after a slice that a full disk has refused */
};

enum bt_code retention_new(const struct retention_options *opt, const struct retention_hooks *hooks,
                           struct journal *journal, struct retention **ret, struct bt_error *err)
{
    struct retention *r = calloc(1, sizeof *r);

    if (r == NULL) {
        return err_set(err, BT_NOMEM, "out of memory");
    }
    r->opt = *opt;
    r->hooks = *hooks;
    r->journal = journal;
    r->pending = true; /* what the last daemon did not come to */
    r->next_wall = MSEC_NEVER;
    *ret = r;
    return BT_OK;
}

msec retention_gone_age(msec completed_ms, msec failed_ms)
{
    const msec longest = completed_ms > failed_ms ? completed_ms : failed_ms;

    return longest == 0 || longest > RETENTION_GONE_MS ? longest : RETENTION_GONE_MS;
}

void retention_free(struct retention *r)
{
    if (r != NULL) {
        retention_search_done(&r->search);
    }
    free(r);
}

static bool keeps_all(const struct retention *r)
{
    return r->opt.completed_ms == 0 && r->opt.failed_ms == 0 && r->opt.sessions_ms == 0 &&
           r->opt.events_ms == 0 && r->opt.max_bytes == 0;
}

static msec delete_deadline(const struct retention *r)
{
    if (r->pending) {
        return r->due < PASS_MIN_MS ? 0 : r->due;
    }
    return keeps_all(r) ? MSEC_NEVER : r->due;
}

msec retention_deadline(const struct retention *r)
{
    return r->copy.running ? 0 : delete_deadline(r);
}

void retention_wake(struct retention *r)
{
    r->pending = true;
    r->due = 0;
}

static bool is_completed(struct str status)
{
    return str_is(status, "completed") || str_is(status, "planned");
}

static struct ended head_of(const struct journal_plan *p)
{
    return (struct ended){.ix = p->ix,
                          .id = p->plan_id,
                          .created = p->created_wall,
                          .ended = p->ended_wall,
                          .ok = is_completed(p->status),
                          .job = p->job.len > 0,
                          .importing = str_is(p->status, JOURNAL_IMPORTING)};
}

/* ---- one plan ---- */

static enum bt_code delete_plan(struct retention *r, const struct ended *p, struct str why,
                                msec wall, uint32_t *ret_jobs, struct bt_error *err)
{
    enum bt_code code = retention_delete_jobs(r, p, why, wall, ret_jobs, err);

    code = code == BT_OK ? journal_plan_delete(r->journal, p->ix, why, wall, err) : code;
    if (code == BT_OK) {
        char id[UUID_TEXT_LEN + 1];
        uuid_format(p->id, id);
        log_info("plan.deleted", "plan=%s reason=\"%.*s\"", id, STR_ARG(why));
        r->hooks.deleted(r->hooks.self, p->id);
        r->pending = true;
    }
    return code;
}

static bool is_read(const struct retention *r, const struct ended *p)
{
    return r->hooks.is_read != NULL && r->hooks.is_read(r->hooks.self, p->id, p->ix);
}

enum bt_code retention_delete(struct retention *r, const struct journal_plan *p, struct str why,
                              msec wall, uint32_t *ret_jobs, struct bt_error *err)
{
    const struct ended e = head_of(p);

    if (p->ended_wall == 0) {
        return err_set(err, BT_CONFLICT, "the plan has not ended; cancel it first");
    }
    if (r->hooks.is_open(r->hooks.self, p->plan_id)) {
        return err_set(err, BT_BUSY, "the plan's last attempts are not over yet");
    }
    if (is_read(r, &e)) {
        return err_set(err, BT_BUSY, "a retry or fork of the plan that goes on reads its files");
    }
    return delete_plan(r, &e, why, wall, ret_jobs, err);
}

/* ---- a pass ---- */

static bool take_ended(const struct journal_plan *p, void *self)
{
    struct retention *r = self;

    r->list[r->n++] = head_of(p);
    return r->n < SLICE_PLANS;
}

static enum bt_code next_ended(struct retention *r, struct bt_error *err)
{
    r->n = 0;
    return journal_plans_ended(r->journal, r->at_wall, r->at_ix, SLICE_PLANS, take_ended, r, err);
}

static msec age_of(const struct retention *r, bool ok)
{
    return ok ? r->opt.completed_ms : r->opt.failed_ms;
}

/* The age at which the first plans go; 0 = none go. */
static msec least_age(const struct retention *r)
{
    const msec a = r->opt.completed_ms;
    const msec b = r->opt.failed_ms;

    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* A job goes with its plan, and by itself when it has none. What cannot be read now stays. */
static bool goes_with_plan(struct retention *r, const struct ended *p)
{
    struct journal_plan row;
    struct uuid of;
    enum bt_code code = BT_NOT_FOUND;

    if (p->job) {
        code = journal_plan_by_id(r->journal, p->id, &row, NULL);
    }
    if (code != BT_OK) {
        return code != BT_NOT_FOUND;
    }
    return uuid_parse(plan_around_of((struct doc){row.doc, row.doc_len}), &of) &&
           journal_plan_by_id(r->journal, of, &row, NULL) != BT_NOT_FOUND;
}

static void next_by(struct retention *r, msec wall)
{
    r->next_wall = wall < r->next_wall ? wall : r->next_wall;
}

/* The next slice begins with this plan. */
static void again_from(struct retention *r, const struct ended *p)
{
    r->at_wall = p->ended;
    r->at_ix = p->ix - 1;
}

/* *ret_done: all that are left are younger. */
static enum bt_code slice_ages(struct retention *r, msec wall, bool *ret_done, struct bt_error *err)
{
    const msec least = least_age(r);
    enum bt_code code = least == 0 ? BT_OK : next_ended(r, err);

    *ret_done = least == 0 || r->n < SLICE_PLANS;
    for (uint32_t i = 0; least != 0 && i < r->n && code == BT_OK; i++) {
        const struct ended *p = &r->list[i];
        const msec age = age_of(r, p->ok);
        uint32_t jobs;
        if (msec_add(p->ended, least) > wall) {
            next_by(r, msec_add(p->ended, least));
            *ret_done = true;
            break;
        }
        r->at_wall = p->ended;
        r->at_ix = p->ix;
        if (age == 0 || p->importing || r->hooks.is_open(r->hooks.self, p->id) ||
            goes_with_plan(r, p)) {
            continue;
        }
        if (msec_add(p->ended, age) > wall) {
            next_by(r, msec_add(p->ended, age));
            continue;
        }
        if (is_read(r, p)) {
            next_by(r, msec_add(wall, READ_PAUSE_MS));
            continue;
        }
        code = delete_plan(r, p,
                           p->ok ? STR_LIT("retention.completedMs") : STR_LIT("retention.failedMs"),
                           wall, &jobs, err);
        if (code == BT_BUSY && retention_is_under_way(r, p->ix)) {
            again_from(r, p);
            *ret_done = false;
            return BT_OK;
        }
        code = code == BT_NOT_FOUND || code == BT_BUSY ? BT_OK : code;
    }
    return code;
}

struct session_list {
    struct {
        char text[LIMIT_ID_BYTES + 1];
    } ids[SLICE_SESSIONS];
    uint32_t n;
};

static bool take_session(const struct journal_session *s, void *self)
{
    struct session_list *l = self;

    if (s->session_id.len < sizeof l->ids[0].text) {
        memcpy(l->ids[l->n].text, s->session_id.ptr, s->session_id.len);
        l->ids[l->n++].text[s->session_id.len] = 0;
    }
    return l->n < SLICE_SESSIONS;
}

static enum bt_code slice_sessions(struct retention *r, msec wall, bool *ret_done,
                                   struct bt_error *err)
{
    struct session_list l = {.n = 0};
    enum bt_code code = BT_OK;

    *ret_done = true;
    if (r->opt.sessions_ms == 0 || wall < r->opt.sessions_ms) {
        return BT_OK;
    }
    code = journal_sessions_idle(r->journal, wall - r->opt.sessions_ms + 1, SLICE_SESSIONS,
                                 take_session, &l, err);
    for (uint32_t i = 0; i < l.n && code == BT_OK; i++) {
        bool more;
        code = journal_session_delete(r->journal, str_from(l.ids[i].text), SLICE_ROWS, &more, err);
        if (code == BT_CONFLICT) { /* a message waits for its answer */
            code = BT_OK;
            continue;
        }
        *ret_done = false;
        r->pending = true;
    }
    return code;
}

static enum bt_code slice_events(struct retention *r, msec wall, bool *ret_done,
                                 struct bt_error *err)
{
    uint32_t n = 0;
    enum bt_code code = BT_OK;

    *ret_done = true;
    if (r->opt.events_ms == 0 || wall < r->opt.events_ms) {
        return BT_OK;
    }
    code = journal_rows_delete(r->journal, wall - r->opt.events_ms + 1, SLICE_ROWS, &n, err);
    *ret_done = n < SLICE_ROWS;
    return code == BT_OK && *ret_done
               ? journal_agents_drop(r->journal, wall - r->opt.events_ms + 1, err)
               : code;
}

/* What is left of plans that were deleted long ago. */
static enum bt_code slice_gone(struct retention *r, msec wall, bool *ret_done, struct bt_error *err)
{
    uint32_t n = 0;
    enum bt_code code = BT_OK;

    *ret_done = true;
    if (r->opt.gone_ms == 0 || wall < r->opt.gone_ms) {
        return BT_OK;
    }
    code = journal_gone_expire(r->journal, wall - r->opt.gone_ms + 1, SLICE_ROWS, &n, err);
    *ret_done = n < SLICE_ROWS;
    return code;
}

/* Results that came too late are named by no row. Only those that are a pass old, because a
 * result's row may still come. */
static enum bt_code slice_unused(struct retention *r, bool *ret_done, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (r->unused_at < r->unused_to) {
        code = journal_blobs_unused(r->journal, &r->unused_at, r->unused_to, SLICE_ROWS, err);
    }
    *ret_done = r->unused_at >= r->unused_to;
    return code;
}

static enum bt_code slice_bytes(struct retention *r, msec wall, bool *ret_done,
                                struct bt_error *err)
{
    struct journal_size size;
    uint32_t deleted = 0;
    enum bt_code code = BT_OK;

    *ret_done = true;
    if (r->opt.max_bytes == 0) {
        return BT_OK;
    }
    code = journal_size(r->journal, &size, err);
    if (code != BT_OK || size.used <= r->opt.max_bytes) {
        r->too_big = false;
        return code;
    }
    code = next_ended(r, err);
    for (uint32_t i = 0; i < r->n && deleted < SLICE_BYTES && code == BT_OK; i++) {
        uint32_t jobs;
        r->at_wall = r->list[i].ended;
        r->at_ix = r->list[i].ix;
        if (r->list[i].importing || r->hooks.is_open(r->hooks.self, r->list[i].id) ||
            goes_with_plan(r, &r->list[i]) || is_read(r, &r->list[i])) {
            continue;
        }
        code = delete_plan(r, &r->list[i], STR_LIT("retention.maxBytes"), wall, &jobs, err);
        deleted += code == BT_OK;
        if (code == BT_BUSY && retention_is_under_way(r, r->list[i].ix)) {
            again_from(r, &r->list[i]);
            *ret_done = false;
            return BT_OK;
        }
        code = code == BT_NOT_FOUND || code == BT_BUSY ? BT_OK : code;
    }
    *ret_done = r->n == 0;
    if (r->n == 0 && !r->too_big) {
        r->too_big = true;
        log_warn("retention.too_big", "used=%" PRIu64 " and no ended plan is left", size.used);
    }
    return code;
}

static void begin_pass(struct retention *r, msec now)
{
    r->phase = PHASE_AGES;
    r->next_wall = MSEC_NEVER;
    r->at_wall = 0;
    r->at_ix = 0;
    if (now >= r->unused_due) {
        r->unused_to = r->unused_next;
        r->unused_next = journal_last_blob(r->journal);
        r->unused_due = now + PASS_MAX_MS;
    }
}

static void end_pass(struct retention *r, msec now, msec wall)
{
    const msec least = least_age(r);
    msec wait = PASS_MAX_MS;

    if (least != 0 && least < wait) {
        wait = least; /* what ends now goes then */
    }
    if (r->next_wall <= wall) { /* it came of age while the pass was under way */
        wait = PASS_MIN_MS;
    } else if (r->next_wall != MSEC_NEVER && r->next_wall - wall < wait) {
        wait = r->next_wall - wall;
    }
    if (r->opt.sessions_ms != 0 && r->opt.sessions_ms < wait) {
        wait = r->opt.sessions_ms;
    }
    if (r->opt.max_bytes != 0 && wait > BYTES_EVERY_MS) {
        wait = BYTES_EVERY_MS;
    }
    r->phase = PHASE_IDLE;
    r->due = now + (wait < PASS_MIN_MS ? PASS_MIN_MS : wait);
}

/* One slice of the phase; the next phase after its last one. */
static enum bt_code slice(struct retention *r, msec now, msec wall, struct bt_error *err)
{
    bool done = false;
    enum bt_code code = BT_OK;

    if (r->phase == PHASE_IDLE) {
        begin_pass(r, now);
    }
    switch (r->phase) {
    case PHASE_AGES:
        code = slice_ages(r, wall, &done, err);
        break;
    case PHASE_SESSIONS:
        code = slice_sessions(r, wall, &done, err);
        break;
    case PHASE_EVENTS:
        code = slice_events(r, wall, &done, err);
        break;
    case PHASE_GONE:
        code = slice_gone(r, wall, &done, err);
        break;
    case PHASE_UNUSED:
        code = slice_unused(r, &done, err);
        r->at_wall = r->at_ix = 0;
        break;
    case PHASE_BYTES:
    case PHASE_IDLE:
    default:
        code = slice_bytes(r, wall, &done, err);
        break;
    }
    if (code == BT_OK && done) {
        if (r->phase == PHASE_BYTES) {
            end_pass(r, now, wall);
        } else {
            r->phase++;
        }
    }
    return code;
}

/* What the last daemon did not finish to import. */
static enum bt_code drop_imports(struct retention *r, msec wall, struct bt_error *err)
{
    uint64_t left[SLICE_PLANS];
    uint32_t n = 0;
    enum bt_code code = journal_imports(r->journal, left, SLICE_PLANS, &n, err);

    for (uint32_t i = 0; i < n && code == BT_OK; i++) {
        code = journal_plan_delete(r->journal, left[i], STR_LIT("an import that was not finished"),
                                   wall, err);
        r->pending = true;
    }
    r->started = code == BT_OK;
    return code;
}

enum bt_code retention_cycle(struct retention *r, msec now, msec wall, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (r->copy.running) {
        retention_copy_slice(r);
    }
    if (delete_deadline(r) > now) {
        return BT_OK;
    }
    if (journal_room(r->journal) == JOURNAL_FULL) { /* what is left is for decisions */
        r->due = now + FULL_PAUSE_MS;
        return BT_OK;
    }
    if (!r->started) {
        code = drop_imports(r, wall, err);
    } else if (r->pending) {
        r->due = 0;
        code = journal_sweep(r->journal, SLICE_SWEEP, &r->pending, err);
    } else {
        code = slice(r, now, wall, err);
    }
    if (code == BT_OK && journal_dirty(r->journal)) {
        code = journal_commit(r->journal, err);
    }
    if (code == BT_UNAVAILABLE) {
        log_warn("retention.waits", "%s", err->msg);
        r->pending = true;
        r->due = now + FULL_PAUSE_MS;
        r->phase = PHASE_IDLE;
        code = BT_OK;
    }
    return code;
}
