/*
 * Projections that are kept between reads. A read applies only the rows that came since the last
 * one, and may go on over several cycles. What was laid out is the same until a row comes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "supervisor/engine/access.h"
#include "supervisor/engine/request.h"
#include "supervisor/engine/schedule_key.h"
#include "supervisor/query/history.h"

enum {
    KEPT_MAX = 64,
    KEPT_ENDED = 8,                /* of the plans that have ended */
    KEPT_BYTES = 64 * 1024 * 1024, /* of all; a plan of 10,000 steps takes some 20 MiB */
    ROWS_PER_LOOK = 16,            /* between two looks at the clock */
    LARGE_STEPS = 1000             /* laying out more takes milliseconds */
};

struct kept_projection {
    struct uuid id;
    uint64_t plan_ix;
    struct journal_place place;
    struct projection rows; /* what they left, without the plan's document */
    struct history history;
    struct arena scratch;    /* of one row; empty between reads */
    struct arena plan_arena; /* laid.document and laid.plan */
    struct arena laid_arena;
    struct projection laid;
    uint64_t plan_of; /* the blob that laid.plan was made of; 0: the plan's row */
    uint64_t laid_at; /* the position up to which `laid` has the rows; 0 = not made */
    uint64_t used;    /* when it was read last; a count */
    uint32_t users;
    bool alone; /* in no cache: ends with its user */
};

struct projections {
    struct kept_projection *at[KEPT_MAX];
    uint32_t n;
    uint64_t uses;
};

enum bt_code projections_new(struct projections **ret, struct bt_error *err)
{
    *ret = calloc(1, sizeof **ret);
    return *ret != NULL ? BT_OK : err_set(err, BT_NOMEM, "out of memory for stories");
}

static void kept_free(struct kept_projection *k)
{
    projection_free(&k->rows);
    arena_done(&k->plan_arena);
    arena_done(&k->laid_arena);
    free(k);
}

void projections_free(struct projections *all)
{
    for (uint32_t i = 0; all != NULL && i < all->n; i++) {
        kept_free(all->at[i]);
    }
    free(all);
}

static struct projections *projections_of(const struct engine *engine)
{
    return engine_hooks(engine)->projections;
}

/* ---- which ones are kept ---- */

static size_t bytes_of(const struct kept_projection *k)
{
    return k->rows.arena.total + k->plan_arena.total + k->laid_arena.total;
}

static void drop(struct projections *all, const struct kept_projection *k)
{
    for (uint32_t i = 0; all != NULL && i < all->n; i++) {
        if (all->at[i] == k) {
            kept_free(all->at[i]);
            all->at[i] = all->at[--all->n];
            return;
        }
    }
}

/* The one that was not used for longest; NULL when all are in use. */
static struct kept_projection *oldest(const struct projections *all, bool ended_only)
{
    struct kept_projection *found = NULL;

    for (uint32_t i = 0; i < all->n; i++) {
        struct kept_projection *k = all->at[i];
        if (k->users == 0 && (k->rows.ended || !ended_only) &&
            (found == NULL || k->used < found->used)) {
            found = k;
        }
    }
    return found;
}

static void make_room(struct projections *all)
{
    size_t bytes = 0;
    uint32_t ended = 0;

    for (uint32_t i = 0; i < all->n; i++) {
        bytes += bytes_of(all->at[i]);
        ended += all->at[i]->rows.ended;
    }
    while (all->n >= KEPT_MAX || bytes > KEPT_BYTES || ended > KEPT_ENDED) {
        struct kept_projection *k =
            oldest(all, ended > KEPT_ENDED && all->n < KEPT_MAX && bytes <= KEPT_BYTES);
        if (k == NULL) {
            return;
        }
        bytes -= bytes_of(k);
        ended -= k->rows.ended;
        drop(all, k);
    }
}

static struct kept_projection *find(const struct projections *all, struct uuid id)
{
    for (uint32_t i = 0; all != NULL && i < all->n; i++) {
        if (uuid_eq(all->at[i]->id, id)) {
            return all->at[i];
        }
    }
    return NULL;
}

/* The trace is the plan: its id as 32 hexadecimal digits, as in traceparent. */
static struct str trace_id(struct projection *s, struct uuid id)
{
    char text[2 * sizeof id.b + 1];

    for (size_t i = 0; i < sizeof id.b; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", id.b[i]);
    }
    return projection_keep(s, str_from(text));
}

static void open_projection(const struct journal_plan *row, struct projection *s)
{
    char id[UUID_TEXT_LEN + 1];

    uuid_format(row->plan_id, id);
    s->created = s->updated = row->created_wall;
    s->view.plan_id = projection_keep(s, str_from(id));
    s->view.session_id = projection_keep(s, row->session_id);
    s->view.query = projection_keep(s, row->goal);
    s->view.revision = 1;
    s->view.created_at = projection_iso(s, row->created_wall);
    s->view.trace_id = trace_id(s, row->plan_id);
}

/* NULL when out of memory. */
static struct kept_projection *take(struct projections *all, const struct journal_plan *row)
{
    struct kept_projection *k = find(all, row->plan_id);

    if (k == NULL) {
        k = calloc(1, sizeof *k);
        if (k == NULL) {
            return NULL;
        }
        k->id = row->plan_id;
        k->plan_ix = row->ix;
        k->history.executing = UINT32_MAX;
        open_projection(row, &k->rows);
        if (all != NULL) {
            make_room(all);
        }
        k->alone = all == NULL || all->n == KEPT_MAX;
        if (!k->alone) {
            all->at[all->n++] = k;
        }
    }
    k->used = all != NULL ? ++all->uses : 0;
    return k;
}

static void release(struct projections *all, struct kept_projection *k, bool sound)
{
    if (k->users > 0) {
        return;
    }
    if (k->alone) {
        kept_free(k);
    } else if (!sound) {
        drop(all, k);
    } else if (bytes_of(k) > KEPT_BYTES / 2) {
        make_room(all);
    }
}

/* ---- reading on ---- */

struct replay {
    struct kept_projection *k;
    uint64_t until_ns;
    uint32_t n;
    bool stopped;
    enum bt_code code;
    struct bt_error *err;
};

static bool apply_row(const struct journal_row *row, void *self)
{
    struct replay *t = self;

    t->code = projection_apply(&t->k->rows, &t->k->scratch, row, t->err);
    arena_reset(&t->k->scratch);
    if (t->code == BT_OK && !history_row(&t->k->rows, row, &t->k->history)) {
        t->code = err_set(t->err, BT_NOMEM, "out of memory for a story");
    }
    t->stopped = t->code == BT_OK && ++t->n % ROWS_PER_LOOK == 0 && clock_mono_ns() > t->until_ns;
    return t->code == BT_OK && !t->stopped;
}

/* Rows are not applied while somebody looks: a cycle reads the same from its beginning to its end.
 */
static enum bt_code read_on(struct engine *engine, struct kept_projection *k, uint64_t until_ns,
                            uint32_t *ret_n, bool *ret_all, struct bt_error *err)
{
    struct replay t = {.k = k, .until_ns = until_ns, .err = err};
    enum bt_code code = BT_OK;

    if (k->users == 0) {
        code = journal_replay_on(engine_journal(engine), k->plan_ix, &k->place, apply_row, &t, err);
    }
    if (code == BT_IO) {
        /* What is before the damage is given; how the plan ended is known elsewhere. */
        if (k->rows.view.damaged.len == 0) {
            k->rows.view.damaged = projection_keep(&k->rows, str_from(err->msg));
        }
        code = BT_OK;
    }
    arena_done(&k->scratch);
    *ret_n = t.n;
    *ret_all = !t.stopped;
    return code == BT_OK ? t.code : code;
}

/* The plan of the newest revision; the document that was submitted is read for the first one. */
static enum bt_code load_plan(struct engine *engine, struct kept_projection *k,
                              struct bt_error *err)
{
    struct projection *s = &k->laid;
    struct journal_plan row = {.doc = NULL};
    enum bt_code code =
        s->revised.id != 0 ? BT_OK : journal_plan_by_id(engine_journal(engine), k->id, &row, err);

    s->plan = NULL;
    arena_done(&k->plan_arena);
    return code != BT_OK ? code
                         : projection_load_plan(engine, s, (struct doc){row.doc, row.doc_len},
                                                &k->plan_arena, err);
}

static enum bt_code lay_out(struct engine *engine, struct kept_projection *k, struct bt_error *err)
{
    struct projection *s = &k->laid;
    const struct projection before = *s;
    enum bt_code code = BT_OK;

    if (k->laid_at == k->place.pos && before.plan != NULL) {
        return BT_OK;
    }
    *s = k->rows;
    s->arena = (struct arena){0};
    s->plan = before.plan;
    s->document = before.document;
    s->about = before.about;
    s->job = before.job;
    arena_reset(&k->laid_arena);
    if (before.plan == NULL || k->plan_of != k->rows.revised.id) {
        code = load_plan(engine, k, err);
        k->plan_of = k->rows.revised.id;
    }
    if (code == BT_OK) {
        s->plan->revision = s->view.revision > 0 ? (uint32_t)s->view.revision : s->plan->revision;
        code = projection_lay_out(s, &k->rows, &k->laid_arena, err);
    }
    s->view.last_seq = s->last_seq;
    k->laid_at = k->place.pos;
    return code;
}

/*
 * A plan whose end is not among the rows has not ended, whatever its run or the open batch intent:
 * they are ahead of the commit within a cycle, and "completed" without a result would be half a
 * truth.
 */
static struct str open_status(struct engine *engine, struct str plan_id)
{
    const struct open_plan *p = open_plan_by_id(engine, plan_id);
    enum plan_status live = p != NULL ? core_block_run(p->block)->status : PLAN_RUNNING;

    return str_from(plan_status_name(plan_is_final(live) ? PLAN_RUNNING : live));
}

/* Its last event calls it failed. Without that event, too, the plan is over: the event cannot be
 * added when the plan's rows are damaged. */
static void end_quarantined(struct projection *s, const struct journal_plan *row)
{
    if (!s->ended) {
        s->ended = true;
        s->ended_at = row->ended_wall;
        s->paused = 0;
        s->view.cancelling = false;
        s->view.outcome = STR_LIT("failed");
        s->view.completed_at = projection_iso(s, row->ended_wall);
        s->view.failure_reason = s->failure_text = projection_keep(s, row->note);
    }
    s->view.status = STR_LIT("quarantined");
}

static void hand_out(struct engine *engine, struct kept_projection *k,
                     const struct journal_plan *row, struct projection *ret)
{
    struct str schedule;
    struct str time;

    *ret = k->laid;
    ret->kept = k;
    k->users++;
    ret->view.damaged = k->rows.view.damaged;
    if (str_is(row->status, "quarantined")) {
        end_quarantined(ret, row);
    } else if (!ret->ended && row->ended_wall != 0 && ret->view.damaged.len > 0) {
        ret->view.status = projection_keep(ret, row->status);
    } else if (!ret->ended) {
        ret->view.status = open_status(engine, ret->view.plan_id);
    }
    ret->view.dry_run = ret->plan->dry_run;
    ret->view.owner = projection_keep(ret, access_owner_shown(row->owner));
    if (schedule_of_key(row->client_key, &schedule, &time)) {
        ret->view.schedule = projection_keep(ret, schedule);
        ret->view.scheduled_for = projection_keep(ret, time);
    }
    ret->view.status = projection_is_planned(ret) ? STR_LIT("planned") : ret->view.status;
    ret->view.updated_at = projection_iso(ret, ret->updated);
}

enum bt_code projection_read(struct engine *engine, struct str plan_id, struct projection *ret,
                             struct bt_error *err)
{
    struct projections *all = projections_of(engine);
    struct kept_projection *k;
    struct journal_plan row;
    uint32_t n;
    bool whole;
    enum bt_code code = request_plan_row(engine, plan_id, &row, err);

    *ret = (struct projection){0};
    if (code != BT_OK) {
        return code;
    }
    k = take(all, &row);
    if (k == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a story");
    }
    code = read_on(engine, k, UINT64_MAX, &n, &whole, err);
    if (code == BT_OK) {
        code = lay_out(engine, k, err);
    }
    if (code == BT_OK) {
        code = request_plan_row(engine, plan_id, &row, err); /* its texts are as old as a look-up */
    }
    if (code == BT_OK) {
        hand_out(engine, k, &row, ret);
        ret->owner = all;
    } else {
        release(all, k, false);
    }
    return code;
}

void projection_done(struct projection *s)
{
    if (s->kept != NULL) {
        s->kept->users--;
        release(s->owner, s->kept, true);
    }
    arena_done(&s->arena);
    *s = (struct projection){0};
}

const struct history *projection_history(const struct projection *s)
{
    return &s->kept->history;
}

/* Laying out takes a slice of its own when rows were read in this one. */
static enum bt_code prepare(struct engine *engine, struct str plan_id, uint64_t until_ns,
                            bool *ret_ready, bool *ret_long, struct bt_error *err)
{
    struct projections *all = projections_of(engine);
    struct kept_projection *k;
    struct journal_plan row;
    uint32_t n = 0;
    bool whole = false;
    enum bt_code code = request_plan_row(engine, plan_id, &row, err);

    if (code != BT_OK) {
        return code;
    }
    k = take(all, &row);
    if (k == NULL) {
        return BT_NOMEM;
    }
    code = read_on(engine, k, until_ns, &n, &whole, err);
    if (code == BT_OK && whole && n < ROWS_PER_LOOK) {
        const bool is_laid = k->laid.plan != NULL && k->laid_at == k->place.pos;
        code = lay_out(engine, k, err);
        *ret_long = code == BT_OK && !is_laid && k->laid.view.steps_n > LARGE_STEPS;
        *ret_ready = true;
    }
    release(all, k, code == BT_OK);
    return code;
}

void projection_prepare(struct engine *engine, struct str plan_id, uint64_t budget_us,
                        bool *ret_ready, bool *ret_long)
{
    struct bt_error err;

    *ret_long = false;
    *ret_ready = projections_of(engine) == NULL;
    if (!*ret_ready && prepare(engine, plan_id, clock_mono_ns() + budget_us * 1000, ret_ready,
                               ret_long, &err) != BT_OK) {
        *ret_ready = true;
    }
}
