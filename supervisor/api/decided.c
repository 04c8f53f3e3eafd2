/* What was decided about a review: for a decision that comes again, and for one that comes late. */
#include "supervisor/api/decided.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "supervisor/engine/access.h"
#include "supervisor/engine/row_body.h"

struct search {
    struct str review_id;
    struct arena *arena;
    struct past_decision *ret;
};

static struct str name_of(struct arena *arena, struct doc by)
{
    const struct str user = row_text(by, "user");
    const struct str id = row_text(by, "id");
    const struct str via =
        id.len > 0 && !str_is(id, identity_local()->id) ? id : row_text(by, "via");
    struct str name;
    struct buf text;

    if (user.len == 0 || str_eq(via, id)) {
        return arena_str(arena, via);
    }
    buf_init(&text, 256);
    buf_printf(&text, "%.*s@%.*s", STR_ARG(user), STR_ARG(row_text(by, "host")));
    name = arena_str(arena, buf_str(&text));
    buf_done(&text);
    return name;
}

/* False: found. */
static bool take(struct search *s, struct doc body)
{
    struct past_decision *ret = s->ret;

    const bool is_void = str_is(row_text(body, "type"), record_wire_type(REC_REVIEW_VOIDED));

    if ((!is_void && !str_is(row_text(body, "type"), record_wire_type(REC_REVIEW_DECIDED))) ||
        !str_eq(row_text(body, "reviewId"), s->review_id)) {
        return true;
    }
    *ret = (struct past_decision){.found = true,
                                  .is_void = is_void,
                                  .decision = arena_str(s->arena, row_text(body, "decision")),
                                  .comment = arena_str(s->arena, row_text(body, "comment")),
                                  .at = arena_str(s->arena, row_text(body, "timestamp")),
                                  .by = name_of(s->arena, doc_get(body, STR_LIT("by"))),
                                  .edited = row_number(body, "editRef") != 0,
                                  .digest = row_number(body, "digest")};
    return false;
}

static bool take_row(const struct journal_row *row, void *self)
{
    return take(self, (struct doc){row->body, row->body_len});
}

static bool take_event(struct doc body, void *self)
{
    return take(self, body);
}

void past_decision_find(struct engine *engine, uint64_t plan_ix, const struct review_id *id,
                        struct arena *arena, struct past_decision *ret)
{
    struct search s = {.arena = arena, .ret = ret};
    struct bt_error err;
    struct buf text;

    buf_init(&text, 256);
    review_id_format(id->plan_id, id->step_id, id->serial, &text);
    s.review_id = buf_str(&text);
    *ret = (struct past_decision){.found = false};
    engine_cycle_events(engine, take_event, &s);
    if (!ret->found && journal_events(engine_journal(engine), 0, plan_ix, UINT32_MAX, take_row, &s,
                                      &err) != BT_OK) {
        log_err("review.decide", "review=%.*s %s", STR_ARG(s.review_id), err.msg);
    }
    buf_done(&text);
}

uint64_t decision_digest(const struct msg_review_decide *m)
{
    uint64_t h = str_hash(m->decision);

    h = h * 31 + str_hash(m->comment);
    h = (h * 31 + str_hash((struct str){(const char *)m->edit.ptr, m->edit.len})) >> 1;
    return h == 0 ? 1 : h;
}

bool past_decision_is(const struct past_decision *past, const struct msg_review_decide *m)
{
    if (!past->found || past->is_void) {
        return false;
    }
    if (past->digest != 0) {
        return past->digest == decision_digest(m);
    }
    /* In words, or of a journal without digests. */
    return str_eq(past->decision, m->decision) && str_eq(past->comment, m->comment) &&
           !past->edited && m->edit.ptr == NULL;
}

/* ---- what is open ---- */

static bool is_waiting(const struct run *run, uint32_t step)
{
    return step == STEP_NONE ? (run->paused & (1u << PAUSE_SIGNOFF | 1u << PAUSE_PLANNING)) != 0
                             : run->steps[step].status == STEP_WAITING;
}

struct open_plan *review_plan_of(struct engine *engine, struct str review_id, struct review_id *ret)
{
    char plan_id[UUID_TEXT_LEN + 1];
    struct open_plan *p;

    if (!review_id_parse(review_id, ret)) {
        *ret = (struct review_id){.serial = 0};
        return NULL;
    }
    uuid_format(ret->plan_id, plan_id);
    p = open_plan_by_id(engine, str_from(plan_id));
    return p != NULL && access_sees(engine_who(engine), open_plan_owner(p)) ? p : NULL;
}

bool review_find_open(const struct open_plan *p, const struct review_id *id, uint32_t *ret_step)
{
    const struct run *run = core_block_run(p->block);

    *ret_step = STEP_NONE;
    if (id->serial == 0 || id->step_id.len == 0) {
        return id->serial != 0 && is_waiting(run, STEP_NONE) && run->plan_review == id->serial;
    }
    for (uint32_t i = 0; run->waiting > 0 && i < run->n_steps; i++) {
        if (is_waiting(run, i) && run->steps[i].review_serial == id->serial &&
            str_eq(p->plan->steps[i].step_id, id->step_id)) {
            *ret_step = i;
            return true;
        }
    }
    return false;
}

void review_name_open(const struct open_plan *p, struct str step_id, struct buf *out)
{
    const struct run *run = core_block_run(p->block);
    uint32_t found = UINT32_MAX;
    uint32_t open = 0;

    if (is_waiting(run, STEP_NONE)) {
        open++;
    }
    for (uint32_t i = 0; run->waiting > 0 && i < run->n_steps; i++) {
        if (is_waiting(run, i)) {
            const bool same = str_eq(p->plan->steps[i].step_id, step_id);
            found = found == UINT32_MAX || same ? i : found;
            open++;
        }
    }
    if (open == 0) {
        return;
    }
    buf_add_cstr(out, "; open: ");
    if (is_waiting(run, STEP_NONE)) {
        review_id_format(p->plan_id, (struct str){NULL, 0}, run->plan_review, out);
    } else {
        review_id_format(p->plan_id, p->plan->steps[found].step_id, run->steps[found].review_serial,
                         out);
    }
    if (open > 1) {
        buf_printf(out, " and %u more", open - 1);
    }
}
