/* What a review showed when it was decided, and what was decided. */
#include "supervisor/api/shown.h"

#include "supervisor/engine/access.h"
#include "supervisor/engine/row_body.h"

/* Of a stored review, beside its parameters: results of earlier steps. */
enum { SHOWN_TEXT = 64 * 1024, SHOWN_DATA = 64 * 1024, SHOWN_UPSTREAM = 64 };

enum bt_code review_shown(struct engine *engine, const struct open_plan *p, uint32_t step,
                          struct blob_ref *ret, struct bt_error *err)
{
    struct arena arena = {.chunks = NULL};
    struct review_room room = {.engine = engine,
                               .arena = &arena,
                               .whole = true,
                               .values = 1,
                               .upstream = SHOWN_UPSTREAM,
                               .text = SHOWN_TEXT,
                               .data = SHOWN_DATA};
    struct msg_review_get_ok shown;
    struct buf bytes;
    enum bt_code code = BT_OK;

    buf_init(&bytes, LIMIT_STEP_BYTES);
    review_view_make(&room, p, step, &shown.review);
    if (msg_write(&bytes, WIRE_MSGPACK, &(struct msg_part){MSG_review_get_ok, &shown}, 1, err) ==
        BT_OK) { /* else it is too large to keep: the decision stands without it */
        ret->len = bytes.len;
        code = journal_blob_add(engine_journal(engine), bytes.at, bytes.len, &ret->id, err);
    }
    buf_done(&bytes);
    arena_done(&arena);
    return code;
}

/* ---- reading it ---- */

struct search {
    struct review_room *room;
    struct str review_id;
    struct msg_review_view *ret;
    struct blob_ref shown, edit;
    bool asked, decided;
};

static struct str keep(struct search *s, struct str text)
{
    return arena_str(s->room->arena, text);
}

/* The row that opened the review. */
static void take_asked(struct search *s, const struct journal_row *row)
{
    const struct doc body = {row->body, row->body_len};
    const struct str reason = row_text(body, "reason");
    struct msg_review_view *v = s->ret;

    s->asked = true;
    *v = (struct msg_review_view){
        .review_id = s->review_id,
        .plan_id = keep(s, row_text(body, "planId")),
        .step_id = keep(s, row_text(body, "stepId")),
        .kind = keep(s, row_text(body, "kind")),
        .prompt = keep(s, row_text(body, "prompt")),
        .revision = row_number(body, "revision"),
    };
    if (v->kind.len == 0) {
        v->kind = str_from(review_kind_name(
            pause_reason_from_name(reason) == PAUSE_PLANNING ? REVIEW_PLANNING : REVIEW_PLAN));
    }
    if (v->step_id.len > 0) {
        v->step_index = row_number(body, "stepIndex");
        msg_set(v, review_view, step_index);
    }
}

static void take_decision(struct search *s, struct doc body)
{
    const struct doc by = doc_get(body, STR_LIT("by"));
    struct msg_review_view *v = s->ret;

    s->decided = true;
    s->shown =
        (struct blob_ref){.id = row_number(body, "shownRef"), .len = row_number(body, "shownLen")};
    s->edit =
        (struct blob_ref){.id = row_number(body, "editRef"), .len = row_number(body, "editLen")};
    v->decision = keep(s, row_text(body, "decision"));
    v->comment = keep(s, row_text(body, "comment"));
    v->decided_at = keep(s, row_text(body, "timestamp"));
    if (by.ptr != NULL) {
        v->by = (struct msg_decided_by){.user = keep(s, row_text(by, "user")),
                                        .host = keep(s, row_text(by, "host")),
                                        .via = keep(s, row_text(by, "via")),
                                        .address = keep(s, row_text(by, "address")),
                                        .id = keep(s, row_text(by, "id"))};
        msg_set(v, review_view, by);
    }
}

static bool take_row(const struct journal_row *row, void *self)
{
    struct search *s = self;
    const struct doc body = {row->body, row->body_len};

    if (!str_eq(row_text(body, "reviewId"), s->review_id)) {
        return true;
    }
    if (str_is(row->type, record_wire_type(REC_REVIEW_DECIDED))) {
        take_decision(s, body);
        return false;
    }
    if (str_is(row->type, record_wire_type(REC_REVIEW_VOIDED))) {
        s->ret->decision = STR_LIT("void");
        s->ret->decided_at = keep(s, row_text(body, "timestamp"));
        return false;
    }
    take_asked(s, row);
    review_view_row(s->room->arena, s->ret, 1, row);
    return true;
}

/* What was on the screen in place of what the rows know. */
static void take_shown(struct search *s)
{
    const struct msg_review_view row = *s->ret;
    struct msg_review_get_ok shown;
    struct doc doc;

    if (engine_result_doc(s->room->engine, s->shown, &doc, NULL) != BT_OK ||
        msg_read_doc(s->room->arena, doc_copy(s->room->arena, doc), MSG_review_get_ok, &shown,
                     NULL) != BT_OK) {
        return;
    }
    *s->ret = shown.review;
    s->ret->asked_at = row.asked_at;
    s->ret->schema = row.schema;
    s->ret->decision = row.decision;
    s->ret->comment = row.comment;
    s->ret->decided_at = row.decided_at;
    if (msg_has(&row, review_view, by)) {
        s->ret->by = row.by;
        msg_set(s->ret, review_view, by);
    }
}

bool review_past(struct review_room *room, const struct review_id *id, struct str review_id,
                 struct msg_review_view *ret)
{
    struct search s = {.room = room, .review_id = review_id, .ret = ret};
    struct journal_plan row;
    struct doc edit;

    if (id->serial == 0 ||
        journal_plan_by_id(engine_journal(room->engine), id->plan_id, &row, NULL) != BT_OK ||
        !access_sees(engine_who(room->engine), row.owner) ||
        journal_events(engine_journal(room->engine), 0, row.ix, UINT32_MAX, take_row, &s, NULL) !=
            BT_OK ||
        !s.asked) {
        return false;
    }
    if (s.shown.id != 0) {
        take_shown(&s);
    } else if (ret->error.len == 0) {
        ret->error = s.decided ? STR_LIT("the values that it showed were not kept")
                               : STR_LIT("nobody decided it: the plan has gone on without");
    }
    if (s.edit.id != 0 && !str_is(ret->kind, review_kind_name(REVIEW_PLANNING)) &&
        engine_result_doc(room->engine, s.edit, &edit, NULL) == BT_OK) {
        ret->edit = doc_copy(room->arena, edit);
    }
    return true;
}
