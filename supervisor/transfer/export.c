/* Plans as lines: the head, the document, the results, the rows, the end; one plan after another,
 * those that ended first first. A slice goes on where its cursor says. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/plan/flow/inside.h"
#include "supervisor/transfer/transfer_internal.h"

enum { LOOKS = 2000, JOB_LATE_MS = 60000, IDS_STEP = 4096, ROWS_SLICE = 400 };

enum stage {
    STAGE_DOC,
    STAGE_BLOBS,
    STAGE_ROWS,
    STAGE_NEXT,
    STAGE_SESSIONS,
    STAGE_SCHEDULES,
    STAGE_END
};

struct export
{
    struct journal *journal;
    const struct transfer_hooks *hooks;
    const struct transfer_want *want;
    struct buf *lines;
    /* where it is */
    msec wall; /* the plan under way, or the last one that was given (STAGE_NEXT) */
    uint64_t ix;
    enum stage stage;
    uint64_t at, sub; /* byte of the document; blob and its byte; position and planSeq */
    struct session_place session;
    struct schedule_place schedule;
    /* the plan under way */
    struct uuid id;
    msec created, ended;
    char of[UUID_TEXT_LEN + 1]; /* want->one: the plan whose jobs are looked for */
    uint64_t *ids;
    uint32_t ids_n;
    uint32_t rows; /* in this slice */
    struct bt_error row_err;
    enum bt_code row_code;
};

static bool is_full(const struct export *x)
{
    return x->lines->len >= TRANSFER_SLICE_BYTES;
}

/* ---- cursor ---- */

static bool read_cursor(struct export *x, const char *cursor)
{
    unsigned long long n[5];
    int used = 0;

    if (cursor[0] == 'p') {
        if (sscanf(cursor, "p.%20llu.%20llu.%20llu.%20llu.%20llu%n", &n[0], &n[1], &n[2], &n[3],
                   &n[4], &used) != 5 ||
            cursor[used] != 0 || n[0] > INT64_MAX || n[1] > INT64_MAX || n[2] > STAGE_NEXT ||
            n[3] >= INT64_MAX) {
            return false;
        }
        x->wall = n[0];
        x->ix = n[1];
        x->stage = (enum stage)n[2];
        x->at = n[3];
        x->sub = n[4];
        return true;
    }
    if (cursor[0] == 'c') {
        if (sscanf(cursor, "c.%20llu.%20llu.%20llu%n", &n[0], &n[1], &n[2], &used) != 3 ||
            cursor[used] != 0 || n[0] >= INT64_MAX || n[1] > DOC_MAX || n[2] > 1 ||
            (n[0] == 0 && n[2] == 0)) {
            return false;
        }
        x->stage = STAGE_SCHEDULES;
        x->schedule = (struct schedule_place){.ix = n[0], .at = n[1], .whole = n[2] != 0};
        return true;
    }
    if (sscanf(cursor, "s.%20llu.%20llu.%n", &n[0], &n[1], &used) != 2 || used == 0 ||
        strlen(cursor + used) > LIMIT_ID_BYTES || n[0] > INT64_MAX) {
        return false;
    }
    x->stage = STAGE_SESSIONS;
    x->session.updated = n[0];
    x->session.n = n[1];
    memcpy(x->session.id, cursor + used, strlen(cursor + used) + 1);
    return true;
}

static void write_cursor(const struct export *x, char ret[TRANSFER_CURSOR_MAX])
{
    ret[0] = 0;
    if (x->stage == STAGE_SESSIONS) {
        (void)snprintf(ret, TRANSFER_CURSOR_MAX, "s.%" PRIu64 ".%" PRIu64 ".%s", x->session.updated,
                       x->session.n, x->session.id);
    } else if (x->stage == STAGE_SCHEDULES) {
        (void)snprintf(ret, TRANSFER_CURSOR_MAX, "c.%" PRIu64 ".%" PRIu64 ".%d", x->schedule.ix,
                       x->schedule.at, x->schedule.whole ? 1 : 0);
    } else if (x->stage != STAGE_END) {
        (void)snprintf(ret, TRANSFER_CURSOR_MAX,
                       "p.%" PRIu64 ".%" PRIu64 ".%d.%" PRIu64 ".%" PRIu64, x->wall, x->ix,
                       (int)x->stage, x->at, x->sub);
    }
}

/* ---- the next plan ---- */

struct look {
    struct export *x;
    uint32_t looks;
    bool found, over;
};

static bool is_wanted(const struct export *x, const struct journal_plan *p)
{
    if (str_is(p->status, JOURNAL_IMPORTING) || x->hooks->is_open(x->hooks->self, p->plan_id)) {
        return false;
    }
    return !x->want->one || (p->job.len > 0 && p->ix != x->want->ix);
}

static bool look_at(const struct journal_plan *p, void *self)
{
    struct look *l = self;

    if (l->x->want->one && p->ended_wall > msec_add(l->x->ended, JOB_LATE_MS)) {
        l->over = true;
        return false;
    }
    l->looks++;
    l->x->wall = p->ended_wall;
    l->x->ix = p->ix;
    l->x->id = p->plan_id;
    l->found = is_wanted(l->x, p);
    return !l->found;
}

static bool document(void *self, struct uuid plan_id, struct doc *ret)
{
    const struct export *x = self;
    struct journal_plan row;

    if (journal_plan_by_id(x->journal, plan_id, &row, NULL) != BT_OK) {
        return false;
    }
    *ret = (struct doc){row.doc, row.doc_len};
    return true;
}

static bool is_main(void *self, struct str plan_id)
{
    return str_is(plan_id, ((const struct export *)self)->of);
}

static enum bt_code find_next(struct export *x, struct bt_error *err)
{
    struct look l = {.x = x};
    const struct inside in = {x, document, is_main};
    const uint64_t before = x->ix;
    const msec wall = x->wall;
    enum bt_code code;

    x->at = x->sub = 0;
    if (x->want->one && (x->want->alone || x->created == 0)) {
        x->stage = STAGE_END;
        return BT_OK;
    }
    code = journal_plans_ended(x->journal, x->wall, x->ix, LOOKS, look_at, &l, err);
    if (code != BT_OK) {
        return code;
    }
    if (l.found && (!x->want->one || plan_is_inside(x->id, &in))) {
        x->stage = STAGE_DOC;
    } else if (!l.found && (l.over || (x->ix == before && x->wall == wall) || l.looks < LOOKS)) {
        x->stage = x->want->one ? STAGE_END : STAGE_SESSIONS;
        x->session = (struct session_place){.n = UINT64_MAX};
    }
    return BT_OK;
}

/* ---- one plan ---- */

static enum bt_code put_head(struct export *x, const struct journal_plan *p, struct bt_error *err)
{
    struct line l;
    char hash[17];

    (void)snprintf(hash, sizeof hash, "%016" PRIx64, p->body_hash);
    line_begin(&l, "plan");
    line_uuid(&l, "planId", p->plan_id);
    line_text(&l, "sessionId", p->session_id);
    line_text(&l, "clientKey", p->client_key);
    line_text(&l, "bodyHash", str_from(hash));
    line_text(&l, "query", p->goal);
    line_text(&l, "job", p->job);
    line_text(&l, "owner", p->owner);
    line_number(&l, "createdMs", p->created_wall);
    line_text(&l, "status", p->status);
    line_number(&l, "endedMs", p->ended_wall);
    line_text(&l, "note", p->note);
    line_number(&l, "documentBytes", p->doc_len);
    return line_end(&l, x->lines, err);
}

static enum bt_code put_part(struct export *x, const char *kind, uint64_t n, const uint8_t *bytes,
                             size_t len, size_t whole, struct bt_error *err)
{
    struct line l;

    line_begin(&l, kind);
    line_number(&l, "n", n);
    line_number(&l, "bytes", whole);
    line_bytes(&l, "data", bytes, len);
    return line_end(&l, x->lines, err);
}

static enum bt_code put_doc(struct export *x, const struct journal_plan *p, struct bt_error *err)
{
    enum bt_code code = x->at == 0 ? put_head(x, p, err) : BT_OK;

    while (code == BT_OK && x->at < p->doc_len && !is_full(x)) {
        const size_t left = p->doc_len - x->at;
        const size_t n = left < PART_BYTES ? left : PART_BYTES;
        code = put_part(x, "document", 0, (const uint8_t *)p->doc + x->at, n, 0, err);
        x->at += n;
    }
    if (code == BT_OK && x->at >= p->doc_len) {
        x->stage = STAGE_BLOBS;
        x->at = x->sub = 0;
    }
    return code;
}

static enum bt_code load_ids(struct export *x, struct bt_error *err)
{
    uint32_t n = IDS_STEP;
    enum bt_code code = BT_OK;

    x->ids_n = 0;
    while (code == BT_OK && n == IDS_STEP) {
        uint64_t *more = realloc(x->ids, ((size_t)x->ids_n + IDS_STEP) * sizeof *more);
        if (more == NULL) {
            return err_set(err, BT_NOMEM, "out of memory for an export");
        }
        x->ids = more;
        code = journal_plan_blobs(x->journal, x->ix, x->ids_n == 0 ? 0 : x->ids[x->ids_n - 1],
                                  x->ids + x->ids_n, IDS_STEP, &n, err);
        x->ids_n += code == BT_OK ? n : 0;
    }
    return code;
}

/* A blob that is empty has one line, too. */
static enum bt_code put_blob(struct export *x, struct bt_error *err)
{
    struct buf bytes;
    enum bt_code code;

    buf_init(&bytes, BLOB_MAX);
    code = journal_blob_get(x->journal, x->ids[x->at], &bytes, err);
    do {
        const size_t left = bytes.len - (x->sub < bytes.len ? x->sub : bytes.len);
        const size_t n = left < PART_BYTES ? left : PART_BYTES;
        if (code == BT_OK) {
            code =
                put_part(x, "blob", x->at + 1, n > 0 ? bytes.at + x->sub : NULL, n, bytes.len, err);
        }
        x->sub += n;
    } while (code == BT_OK && x->sub < bytes.len && !is_full(x));
    if (code == BT_OK && x->sub >= bytes.len) {
        x->at++;
        x->sub = 0;
    }
    buf_done(&bytes);
    return code;
}

static enum bt_code put_blobs(struct export *x, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    while (code == BT_OK && x->at < x->ids_n && !is_full(x)) {
        code = put_blob(x, err);
    }
    if (code == BT_OK && x->at >= x->ids_n) {
        x->stage = STAGE_ROWS;
        x->at = x->sub = 0;
    }
    return code;
}

/* As JSON that is read back to the same bytes, else as the bytes. */
static void put_body(struct line *l, struct str body)
{
    const struct json_limits limits = {
        .bytes = LINE_MAX, .depth = LIMIT_DEPTH - 1, .nodes = LIMIT_NODES};
    const struct doc doc = {(const uint8_t *)body.ptr, body.len};
    struct buf text;
    struct buf back;

    buf_init(&text, LINE_MAX);
    buf_init(&back, LINE_MAX);
    if (doc_to_json(doc, false, &text, NULL) == BT_OK &&
        json_to_doc(buf_str(&text), &limits, &back, NULL) == BT_OK && back.len == body.len &&
        memcmp(back.at, body.ptr, body.len) == 0) {
        line_doc(l, "event", doc);
    } else {
        line_bytes(l, "data", body.ptr, body.len);
    }
    buf_done(&text);
    buf_done(&back);
}

static bool put_row(const struct journal_row *row, void *self)
{
    struct export *x = self;
    struct buf body;
    struct line l;

    buf_init(&body, LINE_MAX);
    x->row_code =
        body_to_line((struct str){row->body, row->body_len}, x->ids, x->ids_n, &body, &x->row_err);
    if (x->row_code == BT_OK) {
        line_begin(&l, "row");
        line_number(&l, "planSeq", row->is_public ? row->plan_seq : 0);
        line_text(&l, "type", row->type);
        line_text(&l, "topic", row->topic);
        line_number(&l, "tsMs", row->wall);
        put_body(&l, buf_str(&body));
        x->row_code = line_end(&l, x->lines, &x->row_err);
    }
    buf_done(&body);
    return x->row_code == BT_OK && ++x->rows < ROWS_SLICE && !is_full(x);
}

static enum bt_code put_end(struct export *x, const char *damage, struct bt_error *err)
{
    struct line l;

    line_begin(&l, damage == NULL ? "end" : "damaged");
    line_uuid(&l, "planId", x->id);
    if (damage != NULL) {
        line_text(&l, "why", str_from(damage));
    }
    x->stage = STAGE_NEXT;
    x->at = x->sub = 0;
    if (x->want->one && x->ix == x->want->ix) { /* its jobs follow */
        x->wall = x->created > 0 ? x->created - 1 : 0;
        x->ix = INT64_MAX;
    }
    return line_end(&l, x->lines, err);
}

static enum bt_code put_rows(struct export *x, struct bt_error *err)
{
    struct journal_place place = {.pos = x->at, .plan_seq = x->sub};
    enum bt_code code = BT_OK;

    x->row_code = BT_OK;
    code = journal_replay_on(x->journal, x->ix, &place, put_row, x, err);
    if (code == BT_OK && x->row_code != BT_OK) {
        code = err_set(err, x->row_code, "%s", x->row_err.msg);
    }
    x->at = place.pos;
    x->sub = place.plan_seq;
    if (code == BT_OK && !is_full(x) && x->rows < ROWS_SLICE) {
        code = put_end(x, NULL, err);
    }
    return code;
}

/* The plan of the cursor; it may have gone since. */
static enum bt_code put_plan(struct export *x, struct bt_error *err)
{
    struct journal_plan p;
    enum bt_code code = journal_plan_by_id(x->journal, x->id, &p, err);

    if (code == BT_NOT_FOUND || (code == BT_OK && p.ix != x->ix)) {
        return err_set(err, BT_CONFLICT, "a plan was deleted while it was exported; begin again");
    }
    if (code == BT_OK && x->stage == STAGE_DOC) {
        code = put_doc(x, &p, err);
    }
    if (code == BT_OK && (x->stage == STAGE_BLOBS || x->stage == STAGE_ROWS)) {
        code = load_ids(x, err);
    }
    if (code == BT_OK && x->stage == STAGE_BLOBS) {
        code = put_blobs(x, err);
    }
    if (code == BT_OK && x->stage == STAGE_ROWS && !is_full(x)) {
        code = put_rows(x, err);
    }
    return code;
}

/* ---- all ---- */

static bool find_by_ix(const struct journal_plan *p, void *self)
{
    struct export *x = self;

    x->id = p->plan_id;
    return false;
}

/* The plan that the cursor names, by its end and number. */
static enum bt_code resume(struct export *x, struct bt_error *err)
{
    if (x->stage > STAGE_ROWS) {
        return BT_OK;
    }
    return journal_plans_ended(x->journal, x->wall, x->ix > 0 ? x->ix - 1 : 0, 1, find_by_ix, x,
                               err);
}

/* The plan that is asked for; it may be a job. */
static enum bt_code note_main(struct export *x, struct bt_error *err)
{
    struct journal_plan p;
    const enum bt_code code = journal_plan_by_id(x->journal, x->want->id, &p, err);

    if (code == BT_OK) {
        x->created = p.created_wall;
        x->ended = p.ended_wall;
        x->id = p.plan_id;
        uuid_format(p.plan_id, x->of);
    }
    return code;
}

static enum bt_code begin(struct export *x, const char *cursor, struct bt_error *err)
{
    const enum bt_code code = x->want->one ? note_main(x, err) : BT_OK;

    if (code != BT_OK || cursor[0] != 0) {
        return code != BT_OK            ? code
               : read_cursor(x, cursor) ? resume(x, err)
                                        : err_set(err, BT_INVALID,
                                                  "cursor: expected the cursor "
                                                  "of an earlier answer");
    }
    if (x->want->one) {
        x->wall = x->ended;
        x->ix = x->want->ix;
        x->stage = STAGE_DOC;
        return BT_OK;
    }
    x->wall = x->want->since > 0 ? x->want->since - 1 : 0;
    x->ix = x->want->since > 0 ? INT64_MAX : 0;
    x->stage = STAGE_NEXT;
    return BT_OK;
}

static enum bt_code slice(struct export *x, struct bt_error *err)
{
    bool done = false;
    enum bt_code code;

    switch (x->stage) {
    case STAGE_NEXT:
        return find_next(x, err);
    case STAGE_SESSIONS:
        code = export_sessions(x->journal, x->want->since, &x->session, x->lines, &done, err);
        x->stage = done ? STAGE_SCHEDULES : STAGE_SESSIONS;
        x->schedule = (struct schedule_place){.whole = true};
        return code;
    case STAGE_SCHEDULES:
        code = export_schedules(x->journal, &x->schedule, x->lines, &done, err);
        x->stage = done ? STAGE_END : STAGE_SCHEDULES;
        return code;
    case STAGE_DOC:
    case STAGE_BLOBS:
    case STAGE_ROWS:
    case STAGE_END:
    default:
        code = put_plan(x, err);
        /* What can be read of the others is not lost with it. */
        if (code == BT_IO && journal_committed_seq(x->journal) > 0) {
            return put_end(x, err->msg, err);
        }
        return code;
    }
}

enum bt_code transfer_export(struct journal *journal, const struct transfer_hooks *hooks,
                             const struct transfer_want *want, char cursor[TRANSFER_CURSOR_MAX],
                             struct buf *lines, struct bt_error *err)
{
    struct export x = {.journal = journal, .hooks = hooks, .want = want, .lines = lines};
    enum bt_code code = begin(&x, cursor, err);

    for (int i = 0;
         i < 50 && code == BT_OK && x.stage != STAGE_END && !is_full(&x) && x.rows < ROWS_SLICE;
         i++) {
        code = slice(&x, err);
    }
    if (code == BT_OK) {
        write_cursor(&x, cursor);
    }
    free(x.ids);
    return code;
}
