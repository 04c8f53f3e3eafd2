/* What waits for a person: listed. */
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "supervisor/api/api.h"
#include "supervisor/engine/row_body.h"
#include "supervisor/events/record_codec.h"

/* Of one answer. Results of the steps before are looked up for one plan only. */
enum {
    REVIEWS_MAX = 1000,
    UPSTREAM_MAX = 64,
    UPSTREAM_ALL = 256,
    ERRORS_ALL = 256, /* plans whose rows are read for why there is no plan, when all are listed */
    PARAMETERS_MAX = 65536
};

struct review_page {
    struct engine *engine;
    struct arena arena;
    struct msg_review_list_ok ok;
    uint32_t limit;
    uint32_t upstream; /* previews that may still be looked up */
};

static struct str until_text(struct review_page *page, msec deadline)
{
    char text[CLOCK_ISO_LEN + 1];
    const struct engine *engine = page->engine;

    if (deadline == MSEC_NEVER) {
        return (struct str){"", 0};
    }
    clock_iso(deadline > engine_now(engine) ? engine_wall(engine) + (deadline - engine_now(engine))
                                            : engine_wall(engine),
              text);
    return arena_str(&page->arena, str_from(text));
}

/* M063: what the steps before it found. */
static void add_upstream(struct review_page *page, const struct open_plan *p,
                         const struct plan_step *s, struct msg_review_view *v)
{
    const struct run *run = core_block_run(p->block);
    const uint32_t n = s->deps_n < UPSTREAM_MAX ? s->deps_n : UPSTREAM_MAX;
    struct buf text;

    v->depends_on = arena_alloc(&page->arena, (s->deps_n + 1) * sizeof *v->depends_on);
    v->upstream = arena_alloc(&page->arena, (n + 1) * sizeof *v->upstream);
    buf_init(&text, LIMIT_RESULT_BYTES);
    for (uint32_t i = 0; v->depends_on != NULL && v->upstream != NULL && i < s->deps_n; i++) {
        uint32_t dep = p->plan->deps[s->deps_at + i];
        bool cut;
        v->depends_on[v->depends_on_n++] = p->plan->steps[dep].step_id;
        if (i >= n || page->upstream == 0 || run->steps[dep].result.id == 0) {
            continue;
        }
        page->upstream--;
        buf_clear(&text);
        if (engine_result_text(page->engine, run->steps[dep].result, LIMIT_PREVIEW_BYTES, &text,
                               &cut, NULL) == BT_OK) {
            v->upstream[v->upstream_n++] =
                (struct msg_upstream_result){.step_id = p->plan->steps[dep].step_id,
                                             .result = arena_str(&page->arena, buf_str(&text))};
        }
    }
    buf_done(&text);
}

static struct msg_review_view *next_view(struct review_page *page, const struct open_plan *p,
                                         struct str step_id, uint32_t attempt)
{
    struct msg_review_view *v;
    struct buf id;

    if (page->ok.reviews_n == page->limit) {
        page->ok.truncated = true;
        return NULL;
    }
    v = &page->ok.reviews[page->ok.reviews_n++];
    buf_init(&id, 256);
    review_id_format(p->plan->plan_id, step_id, attempt, &id);
    v->review_id = arena_str(&page->arena, buf_str(&id));
    v->plan_id = str_from(p->id);
    buf_done(&id);
    return v;
}

static void add_step(struct review_page *page, const struct open_plan *p, uint32_t i)
{
    const struct plan_step *s = &p->plan->steps[i];
    const struct run_step *row = &core_block_run(p->block)->steps[i];
    struct msg_review_view *v = next_view(page, p, s->step_id, row->attempt);

    if (v == NULL) {
        return;
    }
    v->step_id = s->step_id;
    v->step_index = i;
    v->attempt = row->attempt;
    v->kind = str_from(review_kind_name((enum review_kind)row->review));
    v->prompt = open_plan_prompt(p, i);
    v->prompt = v->prompt.len > 0 ? v->prompt : s->task;
    v->agent_id = row->agent < registry_agents(engine_registry(page->engine))
                      ? registry_agent_view(engine_registry(page->engine), row->agent).id
                      : s->agent_id;
    v->task = s->task;
    v->until = until_text(page, row->deadline);
    if (s->parameters.len <= PARAMETERS_MAX) {
        v->parameters = s->parameters;
    }
    if (page->upstream > 0) {
        add_upstream(page, p, s, v);
    }
    msg_set(v, review_view, step_index);
    msg_set(v, review_view, attempt);
}

static void add_plan(struct review_page *page, const struct open_plan *p)
{
    const struct run *run = core_block_run(p->block);

    if ((run->paused & (1u << PAUSE_SIGNOFF | 1u << PAUSE_PLANNING)) != 0) {
        struct msg_review_view *v = next_view(page, p, (struct str){"", 0}, 0);
        if (v != NULL) {
            v->kind = str_from(review_kind_name(open_plan_review(p)));
            v->prompt = p->plan->goal;
            v->until = until_text(page, run->deadline);
        }
    }
    for (uint32_t i = 0; run->waiting > 0 && i < run->n_steps && !page->ok.truncated; i++) {
        if (run->steps[i].status == STEP_WAITING) {
            add_step(page, p, i);
        }
    }
}

/* What only the rows know: since when it waits, in what form the agent wants its answer, and why
 * there is no plan. */
static bool add_asked(const struct journal_row *row, void *self)
{
    struct review_page *page = self;
    const struct doc body = {row->body, row->body_len};
    char text[CLOCK_ISO_LEN + 1];

    if (!str_is(row->type, record_wire_type(REC_STEP_WAITING)) &&
        !str_is(row->type, record_wire_type(REC_PLAN_PAUSED))) {
        return true;
    }
    for (uint32_t i = 0; i < page->ok.reviews_n; i++) {
        struct msg_review_view *v = &page->ok.reviews[i];
        if (str_eq(v->review_id, row_text(body, "reviewId"))) {
            struct doc schema = doc_get(body, STR_LIT("schema"));
            clock_iso(row->wall, text);
            v->asked_at = arena_str(&page->arena, str_from(text));
            if (str_is(v->kind, review_kind_name(REVIEW_PLANNING))) {
                v->error = arena_str(&page->arena, row_text(body, "comment"));
            }
            v->schema = schema.ptr != NULL ? doc_copy(&page->arena, schema) : schema;
            break;
        }
    }
    return true;
}

/* Rows are read as committed: what began to wait in this very turn has none yet, and comes into the
 * list with the next one. No client can know it before. */
static void leave_out_unwritten(struct review_page *page)
{
    struct msg_review_list_ok *ok = &page->ok;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < ok->reviews_n; i++) {
        if (ok->reviews[i].asked_at.len > 0) {
            ok->reviews[kept++] = ok->reviews[i];
        }
    }
    ok->reviews_n = kept;
}

/* As many as fit; the details go first. */
static void answer_page(struct review_page *page, struct request *rq)
{
    struct msg_review_list_ok *ok = &page->ok;
    struct bt_error err;
    bool bare = false;

    while (request_try_answer(page->engine, rq, MSG_review_list_ok, ok, &err) != BT_OK) {
        if (ok->reviews_n <= 1 && bare) {
            request_refuse(page->engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
            return;
        }
        for (uint32_t i = 0; !bare && i < ok->reviews_n; i++) {
            ok->reviews[i].parameters = (struct doc){NULL, 0};
            ok->reviews[i].upstream_n = 0;
        }
        if (bare) {
            ok->reviews_n /= 2;
            ok->truncated = true;
        }
        bare = true;
    }
}

static bool add_rows(struct review_page *page, const struct open_plan *p)
{
    struct bt_error err;

    if (journal_events(engine_journal(page->engine), 0, p->ix, UINT32_MAX, add_asked, page, &err) !=
        BT_OK) {
        log_err("review.list", "plan=%s %s", p->id, err.msg); /* the list is true without */
        return false;
    }
    return true;
}

static void add_all(struct review_page *page)
{
    const struct open_plan *p = NULL;
    uint32_t rows = ERRORS_ALL;

    while (!page->ok.truncated && (p = open_plan_next(page->engine, p)) != NULL) {
        add_plan(page, p);
        if ((core_block_run(p->block)->paused & 1u << PAUSE_PLANNING) != 0 && rows > 0) {
            rows--;
            (void)add_rows(page, p); /* few: it has no steps */
        }
    }
}

void on_review_list(struct engine *engine, struct request *rq)
{
    struct review_page page = {.engine = engine};
    struct msg_review_list m;
    const struct open_plan *p;

    if (!request_read(engine, rq, MSG_review_list, &m)) {
        return;
    }
    page.limit = m.limit == 0 || m.limit > REVIEWS_MAX ? REVIEWS_MAX : (uint32_t)m.limit;
    page.upstream = m.plan_id.len > 0 ? UPSTREAM_ALL : 0;
    page.ok.reviews = arena_alloc(&page.arena, page.limit * sizeof *page.ok.reviews);
    if (page.ok.reviews == NULL) {
        request_refuse_text(engine, rq, BT_NOMEM, "out of memory for a list");
        return;
    }
    if (m.plan_id.len == 0) {
        add_all(&page);
    }
    p = open_plan_by_id(engine, m.plan_id);
    if (p != NULL) {
        add_plan(&page, p);
        if ((page.ok.reviews_n == 0 || add_rows(&page, p)) &&
            journal_dirty(engine_journal(engine))) {
            leave_out_unwritten(&page);
        }
    }
    answer_page(&page, rq);
    arena_done(&page.arena);
}
