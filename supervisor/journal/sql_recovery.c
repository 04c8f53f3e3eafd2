/* Finds the plans that had not ended when the daemon starts, on SQLite (G22, G23). */
#include <inttypes.h>
#include <stdlib.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "supervisor/journal/sql.h"

enum { DOC_TEXT_MAX = 8 * 1024 * 1024, NOTE_MAX = 300, AHEAD = 16 /* plans */ };

struct open_plan {
    uint64_t ix;
    bool damaged;
};

struct open_plans {
    struct open_plan *at;
    size_t n;
    size_t cap;
};

static enum bt_code open_put(struct open_plans *o, uint64_t ix, bool damaged, struct bt_error *err)
{
    if (o->n == o->cap) {
        size_t cap = o->cap == 0 ? 64 : o->cap * 2;
        struct open_plan *grown = realloc(o->at, cap * sizeof *grown);
        if (grown == NULL) {
            return err_set(err, BT_NOMEM, "out of memory for the list of open plans");
        }
        o->at = grown;
        o->cap = cap;
    }
    o->at[o->n++] = (struct open_plan){ix, damaged};
    return BT_OK;
}

/* Whether the number was deleted: *ret_to = the end of its range. When a range is damaged, a number
 * without a record was. */
static enum bt_code deleted_range(struct sql_journal *s, uint64_t ix, uint64_t *ret_to,
                                  struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_PLAN_THERE];
    enum bt_code code = sql_gap_end(s, GAP_PLAN, ix, ret_to, err);

    if (s->gaps_damaged && *ret_to == 0 && (code == BT_OK || code == BT_IO)) {
        stmt_bind_i64(st, 1, (int64_t)ix);
        *ret_to = stmt_step(st) == STMT_DONE ? ix : 0;
        stmt_reset(st);
        code = BT_OK;
    }
    return code;
}

/* Reads one plan at a time, when a scan has met a damaged page. */
static enum bt_code collect_one_by_one(struct sql_journal *s, uint64_t from, struct open_plans *o,
                                       struct bt_error *err)
{
    enum bt_code code = BT_OK;

    for (uint64_t ix = from; ix <= s->now.plans && code == BT_OK; ix++) {
        struct plan_state state;
        enum bt_code one;
        uint64_t deleted_to = 0;
        code = deleted_range(s, ix, &deleted_to, err);
        if (code != BT_OK || deleted_to != 0) {
            ix = deleted_to;
            continue;
        }
        one = sql_state_get(s, ix, &state, err);
        if (one == BT_NOMEM) {
            code = one;
        } else if (one != BT_OK || state.ended == 0) {
            code = open_put(o, ix, one != BT_OK, err);
        }
        sql_state_done(s);
    }
    return code;
}

/* What lies between *io_next and `to` and was not deleted is damaged. */
static enum bt_code collect_missing(struct sql_journal *s, uint64_t *io_next, uint64_t to,
                                    struct open_plans *o, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    while (*io_next < to && code == BT_OK) {
        uint64_t deleted_to = 0;
        code = deleted_range(s, *io_next, &deleted_to, err);
        if (code == BT_OK && deleted_to == 0) {
            code = open_put(o, (*io_next)++, true, err);
        } else {
            *io_next = deleted_to + 1;
        }
    }
    return code;
}

/* Plan numbers have no gaps but those of deletions: a missing one is damage too. */
static enum bt_code collect(struct sql_journal *s, struct open_plans *o, struct bt_error *err)
{
    struct stmt *st = &s->stmt[SQL_STATE_SCAN];
    uint64_t next = 1;
    enum bt_code code = BT_OK;
    int rc;

    while (code == BT_OK && (rc = stmt_step(st)) == STMT_ROW) {
        uint64_t ix = sql_col_u64(st, 0);
        struct plan_state state;
        bool bad;
        if (ix < next || ix > s->now.plans) {
            break;
        }
        code = collect_missing(s, &next, ix, o, err);
        bad = sql_state_read(st, 1, ix, &state, err) != BT_OK;
        if (code == BT_OK && (bad || state.ended == 0)) {
            code = open_put(o, ix, bad, err);
        }
        next = ix + 1;
    }
    stmt_reset(st);
    return code == BT_OK ? collect_one_by_one(s, next, o, err) : code;
}

enum bt_code sql_quarantine(struct journal *j, uint64_t ix, struct str why, struct bt_error *err)
{
    struct plan_state state = {
        .status = STR_LIT("quarantined"),
        .ended = clock_wall_ms(),
        .note = {why.ptr, why.len < NOTE_MAX ? why.len : NOTE_MAX},
    };
    return sql_state_put(sql_of(j), ix, &state, err);
}

static enum bt_code quarantine_plan(struct sql_journal *s, uint64_t ix, const char *why,
                                    struct bt_error *err)
{
    enum bt_code code;

    log_err("journal.plan_quarantined", "number=%" PRIu64 " why=\"%s\"", ix, why);
    code = sql_quarantine(&s->base, ix, str_from(why), err);
    s->base.dirty = s->base.dirty || code == BT_OK;
    return code;
}

/* The plans from `from` on, when it is time to read more of them ahead. */
static void look_ahead(struct sql_journal *s, const struct open_plans *o, size_t from)
{
    uint64_t ix[AHEAD];
    size_t n = 0;

    if (s->engine->ahead == NULL || from % AHEAD != 0) {
        return;
    }
    for (size_t i = from; i < o->n && i < from + AHEAD; i++) {
        if (!o->at[i].damaged) {
            ix[n++] = o->at[i].ix;
        }
    }
    s->engine->ahead(s, ix, n);
}

enum bt_code sql_plans_open(struct journal *j, journal_plan_fn fn, void *self, struct bt_error *err)
{
    struct sql_journal *s = sql_of(j);
    struct open_plans o = {0};
    struct buf text;
    enum bt_code code;

    buf_init(&text, DOC_TEXT_MAX);
    code = collect(s, &o, err);
    for (size_t i = 0; i < o.n && code == BT_OK; i++) {
        struct journal_plan p;
        enum bt_code one;
        struct bt_error why;
        look_ahead(s, &o, i);
        if (o.at[i].damaged) {
            code = quarantine_plan(s, o.at[i].ix, "the state of the plan is damaged", err);
            continue;
        }
        one = sql_plan_load(s, o.at[i].ix, true, &text, &p, &why);
        if (one == BT_NOMEM || (one != BT_OK && j->dead)) { /* not read is not damaged */
            code = err_set(err, one, "%s", why.msg);
        } else if (one != BT_OK) {
            code = quarantine_plan(s, o.at[i].ix, why.msg, err);
        } else if (p.ended_wall == 0 && !fn(&p, self)) {
            break;
        }
    }
    if (s->engine->ahead != NULL) {
        s->engine->ahead(s, NULL, 0);
    }
    free(o.at);
    buf_done(&text);
    return code;
}
