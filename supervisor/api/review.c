/* What waits for a person: listed, and one of it in full. */
#include <stdlib.h>
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/api/shown.h"
#include "supervisor/engine/access.h"

/* Of one answer. Results of the steps before are read for one plan only. */
enum {
    REVIEWS_MAX = 1000,
    PARENTS_MAX = 16, /* more than plans may be in each other */
    VALUES_MAX = 256, /* steps whose values are made; each may read results */
    UPSTREAM_ALL = 256,
    ERRORS_ALL = 256, /* plans whose rows are read for why there is no plan, when all are listed */
    /* review.get: beside the parameters; half of what a body may have, in bytes and in values */
    WHOLE_TEXT = 1024 * 1024,
    WHOLE_DATA = LIMIT_NODES / 2
};

struct review_page {
    struct review_room room;
    struct arena arena;
    struct msg_review_list_ok ok;
    uint32_t limit;
};

static void add_view(struct review_page *page, const struct open_plan *p, uint32_t step)
{
    if (page->ok.reviews_n == page->limit) {
        page->ok.truncated = true;
        return;
    }
    review_view_make(&page->room, p, step, &page->ok.reviews[page->ok.reviews_n++]);
}

static void add_plan(struct review_page *page, const struct open_plan *p)
{
    const struct run *run = core_block_run(p->block);

    if ((run->paused & (1u << PAUSE_SIGNOFF | 1u << PAUSE_PLANNING)) != 0) {
        add_view(page, p, STEP_NONE);
    }
    for (uint32_t i = 0; run->waiting > 0 && i < run->n_steps && !page->ok.truncated; i++) {
        if (run->steps[i].status == STEP_WAITING) {
            add_view(page, p, i);
        }
    }
}

/* What only the rows know: since when it waits, in what form the agent wants its answer, and why
 * there is no plan. */
static bool add_asked(const struct journal_row *row, void *self)
{
    struct review_page *page = self;

    review_view_row(&page->arena, page->ok.reviews, page->ok.reviews_n, row);
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

    while (request_try_answer(page->room.engine, rq, MSG_review_list_ok, ok, &err) != BT_OK) {
        if (ok->reviews_n <= 1 && bare) {
            request_refuse(page->room.engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
            return;
        }
        for (uint32_t i = 0; !bare && i < ok->reviews_n; i++) {
            struct msg_review_view *v = &ok->reviews[i];
            v->parameters_len = v->parameters.ptr != NULL ? v->parameters.len : v->parameters_len;
            v->parameters = (struct doc){NULL, 0};
            v->upstream_n = 0;
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

    if (journal_events(engine_journal(page->room.engine), 0, p->ix, UINT32_MAX, add_asked, page,
                       &err) != BT_OK) {
        log_err("review.list", "plan=%s %s", p->id, err.msg); /* the list is true without */
        return false;
    }
    return true;
}

static void add_all(struct review_page *page)
{
    const struct open_plan *p = NULL;
    uint32_t rows = ERRORS_ALL;

    while (!page->ok.truncated && (p = open_plan_next(page->room.engine, p)) != NULL) {
        if (!access_sees(engine_who(page->room.engine), open_plan_owner(p))) {
            continue;
        }
        add_plan(page, p);
        if ((core_block_run(p->block)->paused & 1u << PAUSE_PLANNING) != 0 && rows > 0) {
            rows--;
            (void)add_rows(page, p); /* few: it has no steps */
        }
    }
}

/* The plan that does a step of `of`, and `p` itself or around it; NULL: `p` is not inside `of`. */
static const struct open_plan *child_around(struct engine *engine, const struct open_plan *p,
                                            const struct open_plan *of)
{
    for (uint32_t depth = 0; p != NULL && depth <= PARENTS_MAX; depth++) {
        const struct open_plan *child = p;
        if (p->plan->child.kind == CHILD_OF_NONE) {
            return NULL;
        }
        p = open_plan_by_id(engine, p->plan->child.of);
        if (p == of) {
            return child;
        }
    }
    return NULL;
}

/* Counts what the plan waits for; the first is that of its first step. */
static void count_reviews(const struct open_plan *p, struct review_inside *io)
{
    const struct run *run = core_block_run(p->block);
    const bool signoff = (run->paused & 1u << PAUSE_SIGNOFF) != 0;
    uint32_t step = STEP_NONE;

    for (uint32_t i = 0; !signoff && io->plan == NULL && i < run->n_steps; i++) {
        step = step == STEP_NONE && run->steps[i].status == STEP_WAITING ? i : step;
    }
    if (io->plan == NULL) {
        io->plan = p;
        io->step = step;
    }
    io->n += run->waiting + (signoff ? 1 : 0);
}

const struct review_inside *reviews_inside(struct engine *engine, const struct open_plan *of,
                                           struct arena *arena)
{
    const uint32_t n = core_block_run(of->block)->n_steps;
    struct review_inside *ret = NULL;

    for (const struct open_plan *p = NULL; (p = open_plan_next(engine, p)) != NULL;) {
        const struct run *run = core_block_run(p->block);
        const struct open_plan *child =
            p != of && (run->waiting > 0 || (run->paused & 1u << PAUSE_SIGNOFF) != 0)
                ? child_around(engine, p, of)
                : NULL;
        const struct child_of *at = child == NULL ? NULL : &child->plan->child;
        const uint32_t ix = at == NULL || at->kind == CHILD_OF_UNDO ? n : at->step;
        if (child == NULL || ix > n) {
            continue;
        }
        ret = ret != NULL ? ret : arena_alloc(arena, (n + 1u) * sizeof *ret);
        if (ret == NULL) {
            return NULL;
        }
        count_reviews(p, &ret[ix]);
    }
    return ret;
}

/* What the child plans of a plan wait for is what it waits for. */
static void add_inside(struct review_page *page, const struct open_plan *of)
{
    struct engine *engine = page->room.engine;
    const struct open_plan *p = NULL;

    while (!page->ok.truncated && (p = open_plan_next(engine, p)) != NULL) {
        if (child_around(engine, p, of) != NULL &&
            access_sees(engine_who(engine), open_plan_owner(p))) {
            add_plan(page, p);
        }
    }
}

static bool page_init(struct review_page *page, struct engine *engine, struct request *rq,
                      uint32_t limit)
{
    page->room =
        (struct review_room){.engine = engine, .arena = &page->arena, .values = VALUES_MAX};
    page->limit = limit;
    page->ok.reviews = arena_alloc(&page->arena, limit * sizeof *page->ok.reviews);
    if (page->ok.reviews == NULL) {
        request_refuse_text(engine, rq, BT_NOMEM, "out of memory for a list");
    }
    return page->ok.reviews != NULL;
}

void on_review_list(struct engine *engine, struct request *rq)
{
    struct review_page page = {.limit = 0};
    struct msg_review_list m;
    const struct open_plan *p;

    if (!request_read(engine, rq, MSG_review_list, &m) ||
        !page_init(&page, engine, rq,
                   m.limit == 0 || m.limit > REVIEWS_MAX ? REVIEWS_MAX : (uint32_t)m.limit)) {
        return;
    }
    page.room.upstream = m.plan_id.len > 0 ? UPSTREAM_ALL : 0;
    if (m.plan_id.len == 0) {
        add_all(&page);
    }
    p = open_plan_by_id(engine, m.plan_id);
    if (p != NULL && access_sees(engine_who(engine), open_plan_owner(p))) {
        add_plan(&page, p);
        if ((page.ok.reviews_n == 0 || add_rows(&page, p)) &&
            journal_dirty(engine_journal(engine))) {
            leave_out_unwritten(&page);
        }
        add_inside(&page, p);
    }
    answer_page(&page, rq);
    arena_done(&page.arena);
}

void on_review_get(struct engine *engine, struct request *rq)
{
    struct review_page page = {.limit = 0};
    struct msg_review_get m;
    const struct open_plan *p;
    struct review_id id;
    uint32_t step;
    struct buf open;

    if (!request_read(engine, rq, MSG_review_get, &m) || !page_init(&page, engine, rq, 1)) {
        return;
    }
    page.room.whole = true;
    page.room.upstream = UPSTREAM_ALL;
    page.room.text = WHOLE_TEXT;
    page.room.data = WHOLE_DATA;
    p = review_plan_of(engine, m.review_id, &id);
    if (p != NULL && review_find_open(p, &id, &step)) {
        add_view(&page, p, step);
        (void)add_rows(&page, p);
        request_answer(engine, rq, MSG_review_get_ok,
                       &(struct msg_review_get_ok){.review = page.ok.reviews[0]});
    } else if (review_past(&page.room, &id, m.review_id, &page.ok.reviews[0])) {
        request_answer(engine, rq, MSG_review_get_ok,
                       &(struct msg_review_get_ok){.review = page.ok.reviews[0]});
    } else {
        buf_init(&open, 512);
        if (p != NULL) {
            review_name_open(p, id.step_id, &open);
        }
        request_refuse_text(engine, rq, BT_NOT_FOUND, "no review has the id '%.*s'%s",
                            STR_ARG(m.review_id), buf_cstr(&open));
        buf_done(&open);
    }
    arena_done(&page.arena);
}
