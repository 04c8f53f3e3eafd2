/*
 * plan.cost (M111): what plans cost, by phase. Of a plan that has ended its last event has them, of
 * an open one its run, and of what was asked for it the rows of its jobs, which can say more:
 * no plan waits for a job that is cancelled. What sessions ask is in no plan, only in the sum.
 * Estimates are the plan's own and those of its steps.
 */
#include <stdlib.h>

#include "protocol/base/clock.h"
#include "protocol/base/utf8.h"
#include "supervisor/api/api_internal.h"
#include "supervisor/engine/access.h"
#include "supervisor/engine/row_body.h"
#include "supervisor/plan/about.h"
#include "supervisor/query/cost_jobs.h"

enum { PLANS_MAX = 1000, TASK_MAX = 200, LOOKS_MAX = 20000, LOOKS_PER_SLICE = 32 /* at least */ };

struct costs {
    struct engine *engine;
    struct arena arena;
    struct msg_cost_record *plans;
    uint32_t n, limit, looks, at; /* at: the plan being read */
    struct usage *asked;          /* of the jobs of each plan: planning, synthesis */
    struct usage conversation;
    struct uuid *ids; /* of the plans: their documents are read afterwards */
    uint64_t *ixs;
    msec since, ended; /* ended: of the plan read last; 0 = it has not */
    bool late;         /* rows follow its end */
    bool more;
    bool no_memory;
    /* It goes on over cycles: the list, then each plan, then the jobs. */
    struct str plan_id, session_id; /* of the request, in the arena */
    bool listed, jobs_begun;
    uint32_t filled;
    uint64_t before_ix, until_ns;
    uint32_t in_slice;
    bool stopped; /* the slice is over */
    struct cost_jobs jobs;
};

static uint64_t tokens_of(const struct msg_usage *u)
{
    return u->input_tokens > INT64_MAX - u->output_tokens ? INT64_MAX
                                                          : u->input_tokens + u->output_tokens;
}

static void put_phases(struct msg_cost_record *c, struct usage total, struct usage planning,
                       struct usage replanning, struct usage synthesis)
{
    const struct usage work =
        usage_less(usage_less(usage_less(total, planning), replanning), synthesis);

    c->total = usage_view(&total);
    c->planning = usage_view(&planning);
    c->replanning = usage_view(&replanning);
    c->synthesis = usage_view(&synthesis);
    c->execution = usage_view(&work);
}

static void put_sums(struct msg_cost_record *c)
{
    c->planning_tokens = tokens_of(&c->planning);
    c->execution_tokens = tokens_of(&c->execution);
    c->replanning_tokens = tokens_of(&c->replanning);
    c->synthesis_tokens = tokens_of(&c->synthesis);
    c->conversation_tokens = tokens_of(&c->conversation);
    c->total_cost = (double)c->total.cost_micros / 1e6;
    msg_set(c, cost_record, total_cost);
    msg_set(c, cost_record, total);
}

/* ---- one plan ---- */

/* Agents' own figures are untrusted: sums saturate at the largest integer. */
static void add_number(uint64_t *to, uint64_t more)
{
    *to = more > INT64_MAX - *to ? INT64_MAX : *to + more;
}

static void add_usage(struct msg_usage *to, const struct msg_usage *more)
{
    add_number(&to->input_tokens, more->input_tokens);
    add_number(&to->output_tokens, more->output_tokens);
    add_number(&to->cached_tokens, more->cached_tokens);
    add_number(&to->cost_micros, more->cost_micros);
}

/* After its end a plan has rows only of what was called off, and came nevertheless. */
static bool take_end(const struct journal_row *row, void *self)
{
    struct costs *all = self;
    struct msg_cost_record *c = &all->plans[all->at];
    const struct doc body = {row->body, row->body_len};
    const enum record_type type = record_type_from_wire(row->type);

    if (type == REC_RESULT_REJECTED && all->ended == 0) {
        all->late = true; /* or of before the end: its sum has that */
    } else if (type == REC_RESULT_REJECTED) {
        const struct usage u = row_usage(body, "usage");
        const struct msg_usage more = usage_view(&u);
        add_usage(&c->execution, &more);
        add_usage(&c->total, &more);
    } else if (type == REC_PLAN_COMPLETED) {
        put_phases(c, row_usage(body, "usage"), row_usage(body, "usagePlanning"),
                   row_usage(body, "usageReplanning"), row_usage(body, "usageSynthesis"));
        all->ended = row->wall;
    }
    return true;
}

static uint64_t estimate_of(struct doc steps, const char *member)
{
    struct doc_cursor c = doc_cursor(steps);
    struct doc_head head = {.n = 0};
    uint64_t sum = 0;

    if (steps.ptr == NULL || !doc_next(&c, &head) || head.kind != DOC_ARRAY) {
        return 0;
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const uint64_t one = row_number(doc_get(doc_skip(&c), STR_LIT("estimate")), member);
        sum = one > INT64_MAX - sum ? INT64_MAX : sum + one;
    }
    return sum;
}

/* A plan that an agent made has its document beside its row; its first revision is what was
 * estimated. */
struct made {
    uint64_t ref;
};

static bool find_made(const struct journal_row *row, void *self)
{
    struct made *made = self;
    const struct doc body = {row->body, row->body_len};

    if (record_type_from_wire(row->type) != REC_PLAN_GENERATED) {
        return true;
    }
    made->ref = row_number(body, "planRef");
    return false;
}

static enum bt_code put_estimates(struct engine *engine, struct uuid id, struct msg_cost_record *c,
                                  struct bt_error *err)
{
    struct journal_plan row;
    struct plan_about about;
    struct made made = {0};
    struct doc document;
    struct buf bytes;
    uint64_t steps;
    enum bt_code code = journal_plan_by_id(engine_journal(engine), id, &row, err);

    if (code != BT_OK) {
        return code == BT_NOT_FOUND ? BT_OK : code; /* deleted since it was listed */
    }
    buf_init(&bytes, LIMIT_STEP_BYTES);
    document = (struct doc){row.doc, row.doc_len};
    if (doc_get(document, STR_LIT("planning")).ptr != NULL) {
        code = journal_events(engine_journal(engine), 0, row.ix, 64, find_made, &made, err);
        if (code == BT_OK && made.ref != 0) {
            code = journal_blob_get(engine_journal(engine), made.ref, &bytes, err);
            document = doc_from_buf(&bytes);
        }
    }
    if (code == BT_OK) {
        plan_about_of(document, &about);
        steps = estimate_of(doc_get(document, STR_LIT("steps")), "tokens");
        c->estimated_tokens = about.tokens > 0 ? about.tokens : steps;
        c->estimated_cost_micros = estimate_of(doc_get(document, STR_LIT("steps")), "costMicros");
    }
    buf_done(&bytes);
    return code;
}

static enum bt_code fill(struct costs *all, uint32_t i, struct bt_error *err)
{
    struct msg_cost_record *c = &all->plans[i];
    const struct open_plan *p = open_plan_by_id(all->engine, c->plan_id);
    const struct run *run = p != NULL ? core_block_run(p->block) : NULL;
    enum bt_code code = BT_OK;

    all->at = i;
    all->ended = 0;
    all->late = false;
    if (run != NULL && !plan_is_final(run->status)) {
        put_phases(c, run->usage, run->planning_usage, run_phases(run)->replanning,
                   run_phases(run)->synthesis);
        c->status = str_from(plan_status_name(run->status));
    } else {
        code =
            journal_last_row(engine_journal(all->engine), all->ixs[i], false, take_end, all, err);
        if (code == BT_OK && all->late) {
            code = journal_replay(engine_journal(all->engine), all->ixs[i], take_end, all, err);
        }
    }
    return code == BT_OK ? put_estimates(all->engine, all->ids[i], c, err) : code;
}

/* ---- what was asked for plans and in sessions ---- */

enum { OF_PLANNING, OF_SYNTHESIS, OF_COUNT };

static void count_job(enum job_kind kind, struct str of, const struct usage *usage, void *self)
{
    struct costs *all = self;
    uint32_t i = 0;

    if (kind != JOB_PLANNING && kind != JOB_SYNTHESIS) {
        if (!access_sees_session(all->engine, of)) {
            return;
        }
        usage_add(&all->conversation, usage);
        return;
    }
    while (i < all->n && !str_eq(all->plans[i].plan_id, of)) {
        i++;
    }
    if (i < all->n) {
        usage_add(&all->asked[OF_COUNT * i + (kind == JOB_PLANNING ? OF_PLANNING : OF_SYNTHESIS)],
                  usage);
    }
}

/* What the plan has not counted of its jobs. */
static void put_asked(struct msg_cost_record *c, struct msg_usage *phase, const struct usage *asked)
{
    const struct usage counted = {phase->input_tokens, phase->output_tokens, phase->cached_tokens,
                                  phase->cost_micros};
    const struct usage less = usage_less(*asked, counted);
    const struct msg_usage more = usage_view(&less);

    add_usage(phase, &more);
    add_usage(&c->total, &more);
}

static void begin_jobs(struct costs *all)
{
    all->jobs.ask = (struct cost_jobs_of){
        .session_id = all->session_id, .since_wall = all->since, .until_wall = INT64_MAX};
    if (all->plan_id.len > 0 && all->ended != 0) {
        all->jobs.ask.until_wall = all->ended;
    }
    if (all->n > 0 && (all->more || all->plan_id.len > 0)) {
        all->jobs.ask.after_ix = all->ixs[all->n - 1];
    }
    all->jobs_begun = true;
}

static void put_jobs(struct costs *all)
{
    all->more = all->more || all->jobs.more;
    for (uint32_t i = 0; i < all->n; i++) {
        struct msg_cost_record *c = &all->plans[i];
        put_asked(c, &c->planning, &all->asked[OF_COUNT * i + OF_PLANNING]);
        put_asked(c, &c->synthesis, &all->asked[OF_COUNT * i + OF_SYNTHESIS]);
        put_sums(c);
    }
    if (all->plan_id.len > 0) {
        all->conversation = (struct usage){0};
    }
}

/* ---- all ---- */

static bool add(const struct journal_plan *row, void *self)
{
    struct costs *all = self;
    struct msg_cost_record *c;
    char text[UUID_TEXT_LEN + 1];
    char iso[CLOCK_ISO_LEN + 1];
    struct str task = row->goal;

    if (row->created_wall < all->since) {
        return false; /* newest first: all that follow are older */
    }
    if (all->n == all->limit || all->looks == LOOKS_MAX) {
        all->more = true;
        return false;
    }
    if (++all->in_slice % LOOKS_PER_SLICE == 0 && clock_mono_ns() > all->until_ns) {
        all->stopped = true; /* this one is looked at again */
        return false;
    }
    all->looks++;
    all->before_ix = row->ix;
    if (!access_sees(engine_who(all->engine), row->owner)) {
        return true;
    }
    c = &all->plans[all->n];
    *c = (struct msg_cost_record){.has = 0};
    uuid_format(row->plan_id, text);
    clock_iso(row->created_wall, iso);
    task.len = task.len == 0 ? 0 : utf8_cut_words(task.ptr, task.len, TASK_MAX);
    c->plan_id = arena_str(&all->arena, str_from(text));
    c->task = task.len > 0 ? arena_str(&all->arena, task) : (struct str){"", 0};
    c->status = arena_str(&all->arena, row->status);
    c->created_at = arena_str(&all->arena, str_from(iso));
    all->ids[all->n] = row->plan_id;
    all->ixs[all->n++] = row->ix;
    all->no_memory = all->no_memory || c->plan_id.ptr == NULL || c->status.ptr == NULL;
    return !all->no_memory;
}

static void sum_up(const struct costs *all, struct msg_cost_record *to)
{
    for (uint32_t i = 0; i < all->n; i++) {
        const struct msg_cost_record *c = &all->plans[i];
        add_usage(&to->planning, &c->planning);
        add_usage(&to->execution, &c->execution);
        add_usage(&to->replanning, &c->replanning);
        add_usage(&to->synthesis, &c->synthesis);
        add_usage(&to->total, &c->total);
        add_number(&to->estimated_tokens, c->estimated_tokens);
        add_number(&to->estimated_cost_micros, c->estimated_cost_micros);
    }
    to->conversation = usage_view(&all->conversation);
    add_usage(&to->total, &to->conversation);
    put_sums(to);
}

static enum bt_code list(struct costs *all, struct bt_error *err)
{
    struct journal_plan row;
    enum bt_code code;

    if (all->plan_id.len > 0) {
        code = request_plan_row(all->engine, all->plan_id, &row, err);
        all->since = 0;
        if (code == BT_OK) {
            (void)add(&row, all);
        }
    } else {
        code = journal_plans(engine_journal(all->engine), (struct str){"", 0}, all->session_id,
                             all->before_ix, UINT32_MAX, add, all, err);
    }
    if (code == BT_OK && all->no_memory) {
        code = err_set(err, BT_NOMEM, "out of memory for a list of costs");
    }
    all->listed = !all->stopped;
    return code;
}

/* What a slice has time for, at least one piece. *ret_done: all is there. */
static enum bt_code collect(struct costs *all, uint64_t until_ns, bool *ret_done,
                            struct bt_error *err)
{
    enum bt_code code = BT_OK;

    *ret_done = false;
    all->until_ns = until_ns;
    all->in_slice = 0;
    all->stopped = false;
    if (!all->listed) {
        code = list(all, err);
    }
    while (code == BT_OK && !all->stopped && all->filled < all->n) {
        code = fill(all, all->filled++, err);
        all->stopped = clock_mono_ns() > until_ns;
    }
    if (code != BT_OK || all->stopped) {
        return code;
    }
    if (!all->jobs_begun) {
        begin_jobs(all);
    }
    code = cost_jobs_go_on(all->engine, &all->jobs, count_job, all, until_ns, ret_done, err);
    if (code == BT_OK && *ret_done) {
        put_jobs(all);
    }
    return code;
}

static bool go_on(struct engine *engine, struct request *rq, void *self, uint64_t until_ns)
{
    struct msg_plan_cost_ok ok = {.has = 0};
    struct costs *all = self;
    struct bt_error err;
    bool done;

    if (collect(all, until_ns, &done, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
        return true;
    }
    if (done) {
        sum_up(all, &ok.total);
        ok.plans = all->plans;
        ok.plans_n = all->n;
        ok.truncated = all->more;
        msg_set(&ok, plan_cost_ok, total);
        request_answer(engine, rq, MSG_plan_cost_ok, &ok);
    }
    return done;
}

static void costs_done(void *self)
{
    struct costs *all = self;

    cost_jobs_done(&all->jobs);
    arena_done(&all->arena);
    free(all);
}

/* NULL when out of memory. */
static struct costs *costs_new(struct engine *engine, const struct msg_plan_cost *m)
{
    struct costs *all = calloc(1, sizeof *all);

    if (all == NULL) {
        return NULL;
    }
    all->engine = engine;
    all->limit = m->limit == 0 || m->limit > PLANS_MAX ? PLANS_MAX : (uint32_t)m->limit;
    all->since = m->since_ms;
    all->plan_id = arena_str(&all->arena, m->plan_id);
    all->session_id = arena_str(&all->arena, m->session_id);
    all->plans = arena_alloc(&all->arena, all->limit * sizeof *all->plans);
    all->ids = arena_alloc(&all->arena, all->limit * sizeof *all->ids);
    all->ixs = arena_alloc(&all->arena, all->limit * sizeof *all->ixs);
    all->asked = arena_alloc(&all->arena, OF_COUNT * all->limit * sizeof *all->asked);
    if (all->plans == NULL || all->asked == NULL || all->ids == NULL || all->ixs == NULL ||
        all->plan_id.ptr == NULL || all->session_id.ptr == NULL) {
        costs_done(all);
        return NULL;
    }
    return all;
}

void on_plan_cost(struct engine *engine, struct request *rq)
{
    struct costs *all;
    struct msg_plan_cost m;

    if (!request_read(engine, rq, MSG_plan_cost, &m) ||
        !access_name_session(engine, rq, &m.session_id)) {
        return;
    }
    all = costs_new(engine, &m);
    if (all == NULL) {
        request_refuse_text(engine, rq, BT_NOMEM, "out of memory for a list of costs");
        return;
    }
    api_read_on(
        engine, rq,
        &(struct long_read){.state = all, .turn = TURN_SCAN, .go_on = go_on, .done = costs_done});
}
