/*
 * Lines into the journal. A plan is stored from its first blob or row on, with the status
 * "importing" and its end; its last line gives it its own status. So nothing of it is taken for a
 * plan that runs, and what a crash leaves is found by the next start (retention).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/wire/mp_validate.h"
#include "supervisor/core/run/record.h"
#include "supervisor/transfer/transfer_internal.h"

enum { TEXT_MAX = 64 * 1024, BLOBS_STEP = 1024 };

static const struct str DROPPED = {"an import that was not finished", 31};

struct transfer {
    bool active, is_session, is_schedule;
    struct session_import session;
    struct schedule_import schedule;
    char completed[LIMIT_ID_BYTES + 1]; /* the schedule of the last import */
    struct journal_plan plan;           /* its strings are in `texts` */
    struct buf texts, doc;
    uint64_t doc_bytes;
    uint64_t ix; /* 0 = not stored yet */
    uint64_t *blobs;
    uint32_t blobs_n, blobs_cap;
    struct buf blob; /* under way */
    uint64_t blob_bytes;
    bool in_blob;
    uint64_t plan_seq;
    uint64_t lines; /* taken of it */
    msec last;      /* when its last lines came */
    uint64_t next;  /* hash of the first line that waits and comes next; 0 = none waits */
    msec next_at;   /* when it asked last */
    bool failed_write;
};

enum bt_code transfer_new(struct transfer **ret, struct bt_error *err)
{
    struct transfer *t = calloc(1, sizeof *t);

    if (t == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for imports");
    }
    buf_init(&t->texts, TEXT_MAX);
    buf_init(&t->doc, DOC_MAX);
    buf_init(&t->blob, BLOB_MAX);
    *ret = t;
    return BT_OK;
}

static void forget(struct transfer *t)
{
    buf_done(&t->texts);
    buf_done(&t->doc);
    buf_done(&t->blob);
    buf_done(&t->session.summary);
    import_schedule_done(&t->schedule);
    t->active = t->in_blob = t->is_schedule = false;
    t->ix = 0;
    t->plan_seq = t->lines = 0;
    t->blobs_n = 0;
}

void transfer_free(struct transfer *t)
{
    if (t != NULL) {
        forget(t);
        free(t->blobs);
        free(t);
    }
}

/* A write's failure is the batch's. */
static enum bt_code written(struct transfer *t, enum bt_code code)
{
    t->failed_write = t->failed_write || (code != BT_OK && code != BT_CONFLICT && code != BT_BUSY &&
                                          code != BT_NOT_FOUND && code != BT_INVALID);
    return code;
}

/* ---- the head ---- */

static bool read_hash(struct str text, uint64_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < text.len; i++) {
        const char *digits = "0123456789abcdef";
        const char *at = text.ptr[i] == 0 ? NULL : strchr(digits, text.ptr[i]);
        if (at == NULL) {
            return false;
        }
        *ret = *ret << 4 | (uint64_t)(at - digits);
    }
    return text.len == 16;
}

static bool is_end_status(struct str s)
{
    return str_is(s, "completed") || str_is(s, "planned") || str_is(s, "failed") ||
           str_is(s, "cancelled") || str_is(s, "quarantined");
}

/* The texts of the line live as long as the import. */
static enum bt_code keep_texts(struct transfer *t, struct doc line, struct bt_error *err)
{
    static const char *const keys[] = {"sessionId", "clientKey", "query", "status",
                                       "note",      "job",       "owner"};
    struct str *const to[] = {&t->plan.session_id, &t->plan.client_key, &t->plan.goal,
                              &t->plan.status,     &t->plan.note,       &t->plan.job,
                              &t->plan.owner};
    size_t at = 0;

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        *to[i] = line_get_text(line, keys[i]);
        buf_add_str(&t->texts, *to[i]);
    }
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && t->texts.bad == BT_OK; i++) {
        to[i]->ptr = (const char *)t->texts.at + at;
        at += to[i]->len;
    }
    return buf_check(&t->texts, err);
}

static enum bt_code read_head(struct transfer *t, struct doc line, struct bt_error *err)
{
    enum bt_code code;

    t->plan = (struct journal_plan){.created_wall = line_get_number(line, "createdMs"),
                                    .ended_wall = line_get_number(line, "endedMs")};
    t->doc_bytes = line_get_number(line, "documentBytes");
    if (!line_get_uuid(line, "planId", &t->plan.plan_id) || uuid_is_nil(t->plan.plan_id)) {
        return err_set(err, BT_INVALID, "planId: expected the id of a plan");
    }
    if (!read_hash(line_get_text(line, "bodyHash"), &t->plan.body_hash)) {
        return err_set(err, BT_INVALID, "bodyHash: expected 16 hexadecimal digits");
    }
    if (t->plan.ended_wall == 0 || t->plan.ended_wall > INT64_MAX ||
        !is_end_status(line_get_text(line, "status"))) {
        return err_set(err, BT_INVALID, "the plan has not ended: only ended plans are imported");
    }
    if (t->doc_bytes == 0 || t->doc_bytes > DOC_MAX || t->plan.created_wall > INT64_MAX) {
        return err_set(err, BT_INVALID, "documentBytes: expected 1 to %d", DOC_MAX);
    }
    code = keep_texts(t, line, err);
    if (code == BT_OK && (t->plan.session_id.len > LIMIT_ID_BYTES || t->plan.job.len > 16 ||
                          t->plan.owner.len > LIMIT_ID_BYTES)) {
        code = err_set(err, BT_INVALID, "sessionId or job is too long");
    }
    return code;
}

/* Whether the id is free: what an unfinished import or a deletion has left of it goes first. */
static enum bt_code make_way(struct transfer *t, struct journal *journal, msec wall,
                             enum transfer_result *ret, struct bt_error *err)
{
    struct journal_plan old;
    enum bt_code code = journal_plan_by_id(journal, t->plan.plan_id, &old, err);

    if (code == BT_OK && !str_is(old.status, JOURNAL_IMPORTING)) {
        *ret = TRANSFER_EXISTS;
        return BT_OK;
    }
    if (code == BT_OK) {
        *ret = TRANSFER_WAIT;
        return written(t, journal_plan_delete(journal, old.ix, DROPPED, wall, err));
    }
    if (code != BT_NOT_FOUND) {
        return code;
    }
    code = written(t, journal_gone_forget(journal, t->plan.plan_id, err));
    if (code == BT_BUSY) {
        *ret = TRANSFER_WAIT;
    }
    return code == BT_BUSY || code == BT_NOT_FOUND ? BT_OK : code;
}

/* The plan's record, as soon as its document is whole. */
static enum bt_code store_plan(struct transfer *t, struct journal *journal, struct bt_error *err)
{
    struct journal_plan p = t->plan;
    enum bt_code code = BT_OK;

    if (t->ix != 0) {
        return BT_OK;
    }
    if (t->doc.len != t->doc_bytes) {
        return err_set(err, BT_INVALID, "the plan's document has %zu bytes, expected %" PRIu64,
                       t->doc.len, t->doc_bytes);
    }
    code = mp_validate(t->doc.at, t->doc.len, NULL, err);
    if (code != BT_OK) {
        return code;
    }
    p.status = STR_LIT(JOURNAL_IMPORTING);
    p.note = (struct str){"", 0};
    p.doc = t->doc.at;
    p.doc_len = t->doc.len;
    code = written(t, journal_plan_add(journal, &p, &t->ix, err));
    buf_done(&t->doc);
    return code;
}

/* ---- results and rows ---- */

static enum bt_code add_blob(struct transfer *t, struct journal *journal, struct bt_error *err)
{
    enum bt_code code;

    if (t->blobs_n == t->blobs_cap) {
        uint64_t *more = realloc(t->blobs, ((size_t)t->blobs_cap + BLOBS_STEP) * sizeof *more);
        if (more == NULL) {
            return err_set(err, BT_NOMEM, "out of memory for an import");
        }
        t->blobs = more;
        t->blobs_cap += BLOBS_STEP;
    }
    code =
        written(t, journal_blob_add(journal, t->blob.at, t->blob.len, &t->blobs[t->blobs_n], err));
    t->blobs_n += code == BT_OK ? 1 : 0;
    t->in_blob = false;
    buf_clear(&t->blob);
    return code;
}

static enum bt_code take_blob(struct transfer *t, struct journal *journal, struct doc line,
                              struct bt_error *err)
{
    enum bt_code code = store_plan(t, journal, err);

    if (code == BT_OK && !t->in_blob) {
        t->in_blob = true;
        t->blob_bytes = line_get_number(line, "bytes");
        buf_clear(&t->blob);
    }
    if (code == BT_OK && (line_get_number(line, "n") != (uint64_t)t->blobs_n + 1 ||
                          line_get_number(line, "bytes") != t->blob_bytes)) {
        code = err_set(err, BT_INVALID, "n: expected result %u", t->blobs_n + 1);
    }
    if (code == BT_OK) {
        code = line_get_bytes(line, "data", &t->blob, err);
    }
    if (code == BT_OK && t->blob.len > t->blob_bytes) {
        code = err_set(err, BT_INVALID, "data: more bytes than the result has");
    }
    return code == BT_OK && t->blob.len == t->blob_bytes ? add_blob(t, journal, err) : code;
}

/* The body as it was, from `event` or `data`; borrows from line or from bytes. */
static enum bt_code read_body(struct doc line, struct buf *bytes, struct doc *ret,
                              struct bt_error *err)
{
    enum bt_code code = BT_OK;

    *ret = doc_get(line, STR_LIT("event"));
    if (ret->ptr == NULL) {
        code = line_get_bytes(line, "data", bytes, err);
        if (code == BT_OK) {
            code = mp_validate(bytes->at, bytes->len, NULL, err);
        }
        *ret = doc_from_buf(bytes);
    }
    return code;
}

/* What every reader of rows relies on. */
static enum bt_code check_row(const struct transfer *t, const struct journal_row *row,
                              struct doc body, struct bt_error *err)
{
    struct uuid id;

    if (record_type_from_wire(row->type) == REC_COUNT) {
        return err_set(err, BT_INVALID, "type: \"%.*s\" is not known here; use a newer program",
                       row->type.len > 64 ? 64 : (int)row->type.len, row->type.ptr);
    }
    if (!row->is_public) {
        return BT_OK;
    }
    if (row->plan_seq != t->plan_seq + 1) {
        return err_set(err, BT_INVALID, "planSeq: expected %" PRIu64, t->plan_seq + 1);
    }
    if (!str_eq(line_get_text(body, "type"), row->type) || !line_get_uuid(body, "planId", &id) ||
        !uuid_eq(id, t->plan.plan_id) || line_get_number(body, "planSeq") != row->plan_seq) {
        return err_set(err, BT_INVALID, "event: not one of this plan, or of another type");
    }
    return BT_OK;
}

static enum bt_code put_row(struct transfer *t, struct journal *journal, struct journal_row *row,
                            struct doc body, struct bt_error *err)
{
    uint64_t refs[JOURNAL_ROW_BLOBS];
    struct buf whole;
    enum bt_code code;

    buf_init(&whole, LINE_MAX);
    row->seq = row->is_public ? journal_next_seq(journal) : 0;
    code = body_from_line(body, row->seq, t->blobs, t->blobs_n, &whole, refs, &row->blobs_n, err);
    if (code == BT_OK) {
        row->plan_ix = t->ix;
        row->blobs = refs;
        row->body = whole.at;
        row->body_len = whole.len;
        code = written(t, journal_append(journal, row, err));
    }
    if (code == BT_OK && row->is_public) {
        t->plan_seq = row->plan_seq;
    }
    buf_done(&whole);
    return code;
}

static enum bt_code take_row(struct transfer *t, struct journal *journal, struct doc line,
                             struct bt_error *err)
{
    struct journal_row row = {.plan_seq = line_get_number(line, "planSeq"),
                              .type = line_get_text(line, "type"),
                              .topic = line_get_text(line, "topic"),
                              .wall = line_get_number(line, "tsMs")};
    struct buf bytes;
    struct doc body;
    enum bt_code code = store_plan(t, journal, err);

    buf_init(&bytes, LINE_MAX);
    row.is_public = row.plan_seq > 0;
    if (code == BT_OK && (t->in_blob || row.wall > INT64_MAX)) {
        code = err_set(err, BT_INVALID, "expected the rest of result %u", t->blobs_n + 1);
    }
    if (code == BT_OK) {
        code = read_body(line, &bytes, &body, err);
    }
    if (code == BT_OK) {
        code = check_row(t, &row, body, err);
    }
    if (code == BT_OK) {
        code = put_row(t, journal, &row, body, err);
    }
    buf_done(&bytes);
    return code;
}

static enum bt_code take_end(struct transfer *t, struct journal *journal, struct doc line,
                             struct bt_error *err)
{
    struct uuid id;
    enum bt_code code = store_plan(t, journal, err);

    if (code == BT_OK &&
        (t->in_blob || !line_get_uuid(line, "planId", &id) || !uuid_eq(id, t->plan.plan_id))) {
        code = err_set(err, BT_INVALID, "planId: not the end of this plan");
    }
    if (code == BT_OK) {
        code = written(t, journal_plan_state(journal, t->ix, t->plan.status, t->plan.ended_wall,
                                             t->plan.note, err));
    }
    return code;
}

static enum bt_code plan_line(struct transfer *t, struct journal *journal, struct doc line,
                              enum transfer_result *ret, struct bt_error *err)
{
    const struct str kind = line_get_text(line, "kind");

    if (str_is(kind, "document") && t->ix == 0) {
        return line_get_bytes(line, "data", &t->doc, err);
    }
    if (str_is(kind, "blob")) {
        return take_blob(t, journal, line, err);
    }
    if (str_is(kind, "row")) {
        return take_row(t, journal, line, err);
    }
    if (str_is(kind, "end")) {
        *ret = TRANSFER_DONE;
        return take_end(t, journal, line, err);
    }
    return err_set(err, BT_INVALID, "kind: \"%.*s\" is no line of a plan",
                   kind.len > 32 ? 32 : (int)kind.len, kind.ptr);
}

/* ---- lines ---- */

static enum bt_code first_line(struct transfer *t, struct journal *journal, struct doc line,
                               msec wall, enum transfer_result *ret, struct bt_error *err)
{
    bool exists = false;
    enum bt_code code;

    forget(t);
    t->is_session = str_is(line_get_text(line, "kind"), "session");
    t->is_schedule = str_is(line_get_text(line, "kind"), "schedule");
    t->active = true;
    if (t->is_session) {
        return import_session_begin(&t->session, journal, line, err);
    }
    if (t->is_schedule) {
        code = import_schedule_begin(&t->schedule, journal, line, &exists, err);
        *ret = exists ? TRANSFER_EXISTS : *ret;
        return code;
    }
    code = read_head(t, line, err);
    return code == BT_OK ? make_way(t, journal, wall, ret, err) : code;
}

/* last: no line follows it. */
static enum bt_code one_line(struct transfer *t, struct journal *journal, struct str text,
                             bool last, msec wall, enum transfer_result *ret, struct bt_error *err)
{
    const struct json_limits limits = {
        .bytes = LINE_MAX, .depth = LIMIT_DEPTH, .nodes = LIMIT_NODES};
    struct buf bytes;
    struct doc line;
    struct str kind;
    enum bt_code code;

    buf_init(&bytes, json_doc_capacity(LINE_MAX));
    code = json_to_doc(text, &limits, &bytes, err);
    line = doc_from_buf(&bytes);
    kind = code == BT_OK ? line_get_text(line, "kind") : (struct str){"", 0};
    if (code == BT_OK && !t->active && !str_is(kind, "plan") && !str_is(kind, "session") &&
        !str_is(kind, "schedule")) {
        code = err_set(err, BT_INVALID,
                       "kind: expected the first line of a plan, session or schedule");
    } else if (code == BT_OK && !last && str_is(kind, "end")) {
        code = err_set(err, BT_INVALID, "lines after the end"); /* so the end is not taken */
    } else if (code == BT_OK && !t->active) {
        code = first_line(t, journal, line, wall, ret, err);
    } else if (code == BT_OK && t->is_session) {
        code = import_session_line(&t->session, journal, line, ret, &t->failed_write, err);
    } else if (code == BT_OK && t->is_schedule) {
        code = import_schedule_line(&t->schedule, journal, line, wall, ret, &t->failed_write, err);
    } else if (code == BT_OK) {
        code = plan_line(t, journal, line, ret, err);
    }
    t->lines++;
    buf_done(&bytes);
    return code;
}

/* Whether what was stored of it is here: a batch may have been lost, or it was deleted. */
static bool is_here(const struct transfer *t, struct journal *journal)
{
    struct journal_plan p;

    return t->is_session || t->is_schedule || t->ix == 0 ||
           (journal_plan_by_id(journal, t->plan.plan_id, &p, NULL) == BT_OK && p.ix == t->ix &&
            str_is(p.status, JOURNAL_IMPORTING));
}

/* What was stored of the plan goes again. */
static void undo(struct transfer *t, struct journal *journal, msec wall)
{
    struct bt_error why;

    if (t->active && !t->is_session && !t->is_schedule && t->ix != 0 && !t->failed_write &&
        is_here(t, journal)) {
        (void)written(t, journal_plan_delete(journal, t->ix, DROPPED, wall, &why));
    }
    forget(t);
}

static size_t line_len(const char *at, size_t len)
{
    const char *end = memchr(at, '\n', len);

    return end == NULL ? len : (size_t)(end - at);
}

/* Whether the first line must wait for an import that goes on, or for one that waits longer. */
static bool must_wait(struct transfer *t, struct str line, msec now)
{
    const uint64_t hash = str_hash(line) | 1;
    const bool goes_on = t->active && now - t->last < TRANSFER_SILENCE_MS;
    const bool others_turn = t->next != 0 && t->next != hash && now - t->next_at < TRANSFER_TURN_MS;

    if (!others_turn) {
        t->next = goes_on ? hash : 0;
        t->next_at = now;
    }
    return goes_on || others_turn;
}

/* Whether lines that are not the first ones are of the import under way. */
static bool is_of_this(const struct transfer *t, const struct transfer_lines *lines)
{
    const bool is_plan = !t->is_session && !t->is_schedule;
    struct uuid id;

    return t->active && lines->before == t->lines &&
           (lines->plan_id.len == 0 ||
            (is_plan && uuid_parse(lines->plan_id, &id) && uuid_eq(id, t->plan.plan_id))) &&
           (lines->session.len == 0 || (t->is_session && str_is(lines->session, t->session.id))) &&
           (lines->name.len == 0 || (t->is_schedule && str_is(lines->name, t->schedule.name)));
}

static enum bt_code take_lines(struct transfer *t, struct journal *journal, struct str lines,
                               msec wall, enum transfer_result *ret, struct bt_error *err)
{
    size_t at = 0;
    enum bt_code code = BT_OK;

    while (code == BT_OK && at < lines.len && *ret == TRANSFER_MORE) {
        const size_t n = line_len(lines.ptr + at, lines.len - at);
        const bool last = at + n + 1 >= lines.len;
        code = one_line(t, journal, (struct str){lines.ptr + at, n}, last, wall, ret, err);
        at += n + 1;
    }
    return code;
}

enum bt_code transfer_import(struct transfer *t, struct journal *journal,
                             const struct transfer_lines *lines, enum transfer_result *ret,
                             bool *ret_failed_write, struct bt_error *err)
{
    const struct str first = {lines->text.ptr, line_len(lines->text.ptr, lines->text.len)};
    enum bt_code code;

    *ret = TRANSFER_MORE;
    t->completed[0] = 0;
    *ret_failed_write = t->failed_write = false;
    if (lines->before == 0 && must_wait(t, first, lines->now)) {
        *ret = TRANSFER_WAIT;
        return BT_OK;
    }
    if (lines->before == 0) {
        undo(t, journal, lines->wall); /* the other one was given up */
    } else if (!is_of_this(t, lines) || !is_here(t, journal)) {
        if (t->active && !is_here(t, journal)) {
            forget(t); /* nobody can go on with it */
        }
        return err_set(err, BT_CONFLICT, "no such import goes on here; begin again");
    }
    t->last = lines->now;
    code = take_lines(t, journal, lines->text, lines->wall, ret, err);
    if (code != BT_OK) {
        undo(t, journal, lines->wall);
    } else if (*ret != TRANSFER_MORE) {
        if (*ret == TRANSFER_DONE && t->is_schedule) {
            memcpy(t->completed, t->schedule.name, sizeof t->completed);
        }
        forget(t);
    }
    *ret_failed_write = t->failed_write;
    return code;
}

const char *transfer_schedule(const struct transfer *t)
{
    return t->completed;
}
