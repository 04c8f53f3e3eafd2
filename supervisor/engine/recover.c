/* Every open plan of the journal is rebuilt from its rows alone and goes on. */
#include <stdlib.h>

#include "protocol/base/log.h"
#include "supervisor/engine/engine_internal.h"
#include "supervisor/engine/revision.h"
#include "supervisor/events/record_codec.h"
#include "supervisor/plan/pack.h"

enum { RECOVERIES_MAX = 3 };

struct rebuilt {
    struct engine *engine;
    struct open_plan plan;
    struct run *run;
    struct arena reading; /* the plan before it is packed */
    struct arena scratch;
    enum bt_code code;
    struct bt_error *err;
};

/* The plan of the row, packed, with an empty block. */
static enum bt_code read_plan(struct rebuilt *v, const struct journal_plan *row)
{
    struct engine *engine = v->engine;
    struct doc doc = doc_copy(&v->reading, (struct doc){row->doc, row->doc_len});
    struct plan *plan = NULL;
    enum bt_code code = doc.ptr == NULL
                            ? err_set(v->err, BT_NOMEM, "out of memory for a plan")
                            : plan_read_canonical(doc, &engine->opt.defaults, engine->registry,
                                                  &v->reading, &plan, v->err);

    if (code == BT_OK) {
        code = plan_resolve(plan, engine->registry, engine->now, v->err);
    }
    if (code != BT_OK) {
        return code;
    }
    plan->plan_id = row->plan_id;
    v->plan.plan = plan_pack(plan);
    v->plan.block = open_plan_block(plan);
    return v->plan.plan != NULL && v->plan.block != NULL
               ? BT_OK
               : err_set(v->err, BT_NOMEM, "out of memory for a plan of %u steps", plan->n_steps);
}

/* The record brings the plan's next revision: the run goes on in a block of its size. */
static enum bt_code revise(struct rebuilt *v, const struct record *rec)
{
    struct new_revision next;
    struct run *run = NULL;
    enum bt_code code =
        revision_read(v->engine, &v->plan, REC(rec, revision)->result, &next, v->err);

    if (code == BT_OK) {
        run = run_revise(core_block_run(next.block), next.plan, v->run, v->plan.plan, rec);
        code = run == NULL
                   ? err_set(v->err, BT_PROTOCOL, "revision %u does not fit the plan's state",
                             REC(rec, revision)->revision)
                   : BT_OK;
    }
    if (code == BT_OK) {
        open_plan_revise(&v->plan, &next);
        v->run = run;
    }
    new_revision_done(&next);
    return code;
}

static bool replay_row(const struct journal_row *row, void *self)
{
    struct rebuilt *v = self;
    struct record rec;

    v->code = record_decode(row, v->plan.plan, v->engine->now, v->engine->wall, &v->scratch, &rec,
                            v->err);
    if (v->code == BT_OK && record_revises(&rec)) {
        v->code = revise(v, &rec);
    } else if (v->code == BT_OK && !run_apply(v->run, v->plan.plan, &rec)) {
        v->code = err_set(v->err, BT_PROTOCOL, "row %llu (%.*s) does not fit the plan's state",
                          (unsigned long long)row->seq, STR_ARG(row->type));
    }
    if (v->code == BT_OK) {
        open_plan_keep(&v->plan, &rec, v->plan.plan);
    }
    if (row->is_public) {
        v->plan.plan_seq = row->plan_seq;
    }
    arena_reset(&v->scratch);
    return v->code == BT_OK;
}

static enum bt_code rebuild(struct rebuilt *v, const struct journal_plan *row)
{
    enum bt_code code = read_plan(v, row);

    if (code != BT_OK) {
        return code;
    }
    bool ok;

    v->plan.job = job_of_document((struct doc){row->doc, row->doc_len}, &ok);
    if (!ok) {
        return err_set(v->err, BT_NOMEM, "out of memory for a job");
    }
    v->plan.ix = row->ix;
    v->plan.recovered = true;
    v->run = run_init(core_block_run(v->plan.block), v->plan.plan);
    code = journal_replay(v->engine->journal, row->ix, replay_row, v, v->err);
    return code == BT_OK ? v->code : code;
}

static enum bt_code quarantine(struct engine *engine, const struct journal_plan *row,
                               const char *why, struct bt_error *err)
{
    char id[UUID_TEXT_LEN + 1];

    uuid_format(row->plan_id, id);
    log_err("plan.quarantined", "plan=%s why=\"%s\"", id, why);
    return journal_quarantine(engine->journal, row->ix, str_from(why), err);
}

struct recovery {
    struct engine *engine;
    uint64_t n;
    enum bt_code code;
    struct bt_error *err;
};

static void rebuilt_done(struct rebuilt *v)
{
    arena_done(&v->reading);
    arena_done(&v->scratch);
}

static bool recover_plan(const struct journal_plan *row, void *self)
{
    struct recovery *all = self;
    struct bt_error why = {.code = BT_OK};
    struct rebuilt v = {.engine = all->engine, .err = &why};
    struct core_event ev = {.type = CORE_RECOVER};
    enum core_reject reject;
    bool job;

    if (row->recoveries > RECOVERIES_MAX) {
        all->code =
            quarantine(all->engine, row,
                       "the daemon has crashed three times while this plan was open", all->err);
        return all->code == BT_OK;
    }
    if (rebuild(&v, row) != BT_OK) {
        open_plan_done(&v.plan);
        rebuilt_done(&v);
        all->code = quarantine(all->engine, row, why.msg, all->err);
        return all->code == BT_OK;
    }
    job = v.plan.job != NULL;
    CORE_EV(&ev, recover)->plan = v.plan.plan;
    CORE_EV(&ev, recover)->block = v.plan.block;
    all->code = engine_submit(all->engine, &ev, &v.plan, (struct doc){NULL, 0}, &reject, all->err);
    if (reject != REJECT_NONE) {
        /* More plans are open than limits.maxOpenPlans allows now. It stays in the journal. */
        log_err("plan.not_recovered", "ix=%llu no room: raise limits.maxOpenPlans and start again",
                (unsigned long long)row->ix);
    } else if (!job) {
        all->n++;
    }
    open_plan_done(&v.plan);
    rebuilt_done(&v);
    return all->code == BT_OK;
}

/* Nothing of it goes on by itself: a person or its planner has the next word. */
static bool is_idle(const struct run *run)
{
    return run->job == JOB_NONE && run->active == run->waiting &&
           (run->ready == 0 || run->paused != 0 || run->status == PLAN_PENDING);
}

/* What does nothing cannot be what ends the daemon, once it has been rebuilt (G23): plans that wait
 * for people must not be lost because something else ends it again and again. */
static enum bt_code forgive_idle(struct engine *engine, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    for (uint32_t i = 0; i < engine->runs_max && code == BT_OK; i++) {
        struct open_plan *p = &engine->plans[i];
        if (p->plan != NULL && p->recovered && is_idle(core_block_run(p->block))) {
            p->recovered = false;
            code = journal_recovered(engine->journal, p->ix, err);
        }
    }
    return code;
}

enum bt_code engine_recover(struct engine *engine, uint64_t *ret_n, struct bt_error *err)
{
    struct recovery all = {.engine = engine, .err = err};
    enum bt_code code = journal_plans_open(engine->journal, recover_plan, &all, err);

    *ret_n = all.n;
    if (code == BT_OK && all.code == BT_OK) {
        engine->hooks.jobs_recovered(engine);
        code = engine->hooks.turns_recovered(engine, err);
    }
    if (code == BT_OK && all.code == BT_OK) {
        code = forgive_idle(engine, err);
    }
    return code == BT_OK ? all.code : code;
}
