#include "supervisor/bus/story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "registry/registry.h"
#include "supervisor/bus/control.h"

void story_done(struct story *s)
{
    free(s->handoffs);
    arena_done(&s->arena);
    *s = (struct story){0};
}

static struct str keep(struct story *s, struct str text)
{
    return text.len == 0 ? (struct str){"", 0} : arena_str(&s->arena, text);
}

static struct str iso(struct story *s, msec wall)
{
    char text[CLOCK_ISO_LEN + 1];

    if (wall == 0) {
        return (struct str){"", 0};
    }
    clock_iso(wall, text);
    return keep(s, str_from(text));
}

static struct msg_step_view *step_of(struct story *s, uint64_t ix)
{
    return ix < s->view.steps_n ? &s->view.steps[ix] : NULL;
}

static void on_started(struct story *s, struct msg_step_view *v, struct str timestamp)
{
    v->status = STR_LIT("in_progress");
    v->started_at = keep(s, timestamp);
    v->attempts = 1;
    s->view.current_step_index = v->step_index;
}

static enum bt_code on_completed(struct story *s, struct arena *scratch, struct doc body,
                                 struct str timestamp, struct bt_error *err)
{
    struct msg_ev_plan_step_completed ev;
    struct msg_step_view *v;
    enum bt_code code = msg_read_doc(scratch, body, MSG_ev_plan_step_completed, &ev, err);

    v = code == BT_OK ? step_of(s, ev.step_index) : NULL;
    if (v == NULL) {
        return code;
    }
    v->status = keep(s, ev.status);
    v->reason = keep(s, ev.reason);
    v->completed_at = keep(s, timestamp);
    v->attempts = ev.attempts;
    v->duration_ms = ev.duration_ms;
    v->error = keep(s, ev.error);
    v->error_class = keep(s, ev.error_class);
    v->result = keep(s, ev.result);
    v->result_len = ev.result_len;
    s->results[ev.step_index] = (struct blob_ref){ev.result_ref, ev.result_len};
    s->view.counts.completed += str_is(ev.status, "completed");
    s->view.counts.failed += str_is(ev.status, "failed");
    s->view.counts.skipped += str_is(ev.status, "skipped");
    s->view.counts.cancelled += str_is(ev.status, "cancelled");
    return BT_OK;
}

static enum bt_code on_handoff(struct story *s, struct arena *scratch, struct doc body,
                               struct str timestamp, struct bt_error *err)
{
    struct msg_ev_agent_handoff ev;
    struct msg_handoff_record *h;
    enum bt_code code = msg_read_doc(scratch, body, MSG_ev_agent_handoff, &ev, err);

    if (code != BT_OK) {
        return code;
    }
    if (s->handoffs_n == s->handoffs_cap) {
        uint32_t cap = s->handoffs_cap == 0 ? 16 : s->handoffs_cap * 2;
        struct msg_handoff_record *at = realloc(s->handoffs, cap * sizeof *at);
        if (at == NULL) {
            return err_set(err, BT_NOMEM, "out of memory for a story");
        }
        s->handoffs = at;
        s->handoffs_cap = cap;
    }
    h = &s->handoffs[s->handoffs_n++];
    *h = (struct msg_handoff_record){.handoff_id = keep(s, ev.handoff_id),
                                     .from_agent_id = keep(s, ev.from_agent.agent_id),
                                     .to_agent_id = keep(s, ev.to_agent.agent_id),
                                     .reason = keep(s, ev.reason),
                                     .explanation = keep(s, ev.explanation),
                                     .plan_step_id = keep(s, ev.plan_step_id),
                                     .timestamp = keep(s, timestamp)};
    return BT_OK;
}

static enum bt_code on_end(struct story *s, struct arena *scratch, struct doc body,
                           struct str timestamp, struct bt_error *err)
{
    struct msg_ev_plan_completed ev;
    enum bt_code code = msg_read_doc(scratch, body, MSG_ev_plan_completed, &ev, err);

    if (code != BT_OK) {
        return code;
    }
    s->ended = true;
    s->view.status = keep(s, ev.status);
    s->view.outcome = keep(s, ev.outcome);
    s->view.completed_at = keep(s, timestamp);
    s->view.failure_reason = keep(s, ev.failure_reason);
    s->view.summary = keep(s, ev.summary);
    s->view.usage = ev.usage;
    s->summary = (struct blob_ref){ev.summary_ref, ev.summary_len};
    for (uint32_t i = 0; i < s->view.steps_n; i++) {
        struct msg_step_view *v = &s->view.steps[i];
        if (str_is(v->status, "pending")) {
            v->status = STR_LIT("cancelled");
            s->view.counts.cancelled++;
        }
    }
    return BT_OK;
}

static enum bt_code tell(struct story *s, struct arena *scratch, const struct journal_row *row,
                         struct bt_error *err)
{
    struct doc body = {row->body, row->body_len};
    enum record_type type = record_type_from_wire(row->type);
    struct msg_step_view *v = step_of(s, doc_head(doc_get(body, STR_LIT("stepIndex"))).u);
    struct str timestamp = iso(s, row->wall);

    s->last_seq = row->seq;
    s->view.plan_seq = row->plan_seq;
    if (type == REC_STEP_STARTED && v != NULL) {
        on_started(s, v, timestamp);
    } else if (type == REC_STEP_RETRY && v != NULL) {
        v->attempts = doc_head(doc_get(body, STR_LIT("attempt"))).u + 1;
        v->error = keep(s, doc_string(doc_get(body, STR_LIT("error"))));
    } else if (type == REC_STEP_WAITING && v != NULL) {
        v->status = STR_LIT("waiting");
        v->reason = keep(s, doc_string(doc_get(body, STR_LIT("kind"))));
    } else if (type == REC_REVIEW_DECIDED && v != NULL) {
        v->status = STR_LIT("in_progress");
        v->reason = (struct str){"", 0};
    } else if (type == REC_STEP_COMPLETED) {
        return on_completed(s, scratch, body, timestamp, err);
    } else if (type == REC_HANDOFF) {
        return on_handoff(s, scratch, body, timestamp, err);
    } else if (type == REC_PLAN_COMPLETED) {
        return on_end(s, scratch, body, timestamp, err);
    }
    return BT_OK;
}

struct teller {
    struct story *story;
    struct arena scratch;
    enum bt_code code;
    struct bt_error *err;
};

static bool tell_row(const struct journal_row *row, void *self)
{
    struct teller *t = self;
    t->code = tell(t->story, &t->scratch, row, t->err);
    arena_reset(&t->scratch);
    return t->code == BT_OK;
}

/* The steps as planned, before anything happened. */
static enum bt_code lay_out(struct bus *b, struct story *s, struct bt_error *err)
{
    const struct plan *plan = s->plan;

    s->view.steps = arena_alloc(&s->arena, (plan->n_steps + 1) * sizeof *s->view.steps);
    s->results = arena_alloc(&s->arena, (plan->n_steps + 1) * sizeof *s->results);
    if (s->view.steps == NULL || s->results == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a story");
    }
    s->view.steps_n = plan->n_steps;
    s->view.counts.total = plan->n_steps;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const struct plan_step *p = &plan->steps[i];
        struct msg_step_view *v = &s->view.steps[i];
        uint32_t agent = registry_agent(b->registry, p->agent_id);
        const struct msg_card *card =
            agent == REGISTRY_NONE ? NULL : registry_agent_view(b->registry, agent).card;
        v->step_id = p->step_id;
        v->step_index = i;
        v->agent_id = p->agent_id;
        v->agent_name = card != NULL && card->name.len > 0 ? card->name : p->agent_id;
        v->agent_icon = card != NULL ? card->icon : (struct str){"", 0};
        v->agent_color = card != NULL ? card->color : (struct str){"", 0};
        v->skill = p->skill;
        v->task = p->task;
        v->status = STR_LIT("pending");
        v->depends_on = arena_alloc(&s->arena, (p->deps_n + 1) * sizeof *v->depends_on);
        for (uint32_t d = 0; v->depends_on != NULL && d < p->deps_n; d++) {
            v->depends_on[v->depends_on_n++] = plan->steps[plan->deps[p->deps_at + d]].step_id;
        }
    }
    return BT_OK;
}

static enum bt_code open_story(struct bus *b, const struct journal_plan *row, struct story *s,
                               struct bt_error *err)
{
    char id[UUID_TEXT_LEN + 1];
    struct doc doc = doc_copy(&s->arena, (struct doc){row->doc, row->doc_len});

    uuid_format(row->plan_id, id);
    s->view.plan_id = keep(s, str_from(id));
    s->view.session_id = keep(s, row->session_id);
    s->view.query = keep(s, row->goal);
    s->view.status = keep(s, row->status);
    s->view.revision = 1;
    s->view.created_at = iso(s, row->created_wall);
    if (doc.ptr == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a story");
    }
    return plan_read_again(doc, &b->opt.defaults, b->registry, &s->arena, &s->plan, err);
}

/*
 * A plan whose end is not among the rows has not ended, whatever its run or the open batch say:
 * they are ahead of the commit within a turn, and "completed" without a result would be half a
 * truth.
 */
static struct str open_status(struct bus *b, struct str plan_id)
{
    const struct bus_plan *p = bus_plan_by_id(b, plan_id);
    enum plan_status live = p != NULL ? core_block_run(p->block)->status : PLAN_RUNNING;

    return str_from(plan_status_name(plan_is_final(live) ? PLAN_RUNNING : live));
}

enum bt_code story_read(struct bus *b, struct str plan_id, struct story *ret, struct bt_error *err)
{
    struct teller t = {.story = ret, .err = err};
    struct journal_plan row;
    uint64_t ix;
    char status[24];
    enum bt_code code;

    *ret = (struct story){0};
    code = control_plan_row(b, plan_id, &row, err);
    if (code != BT_OK) {
        return code;
    }
    ix = row.ix;
    (void)snprintf(status, sizeof status, "%.*s", STR_ARG(row.status));
    code = open_story(b, &row, ret, err);
    if (code == BT_OK) {
        code = lay_out(b, ret, err);
    }
    if (code == BT_OK) {
        code = journal_events(b->journal, 0, ix, UINT32_MAX, tell_row, &t, err);
        code = code == BT_OK ? t.code : code;
    }
    if (code == BT_OK && !ret->ended && strcmp(status, "quarantined") != 0) {
        ret->view.status = open_status(b, plan_id);
    }
    ret->view.last_seq = ret->last_seq;
    arena_done(&t.scratch);
    return code;
}
