/* Every open plan of the journal is rebuilt from its rows alone and goes on; suspects come last. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/failpoint.h"
#include "protocol/base/log.h"
#include "protocol/base/trace.h"
#include "supervisor/engine/engine_internal.h"
#include "supervisor/engine/revision.h"
#include "supervisor/engine/row_body.h"
#include "supervisor/events/record_codec.h"
#include "supervisor/plan/pack.h"

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
    v->plan.plan_id = row->plan_id;
    v->plan.plan = plan_pack(plan, &engine->shelf);
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

/* One of its own needs no memory. */
static void read_trace(struct rebuilt *v, const struct journal_row *row)
{
    struct trace trace = {.span = 0};
    struct trace own;

    (void)trace_read(row_text((struct doc){row->body, row->body_len}, "traceparent"), &trace);
    trace_of_plan(v->plan.plan_id, &own);
    if (trace.span == 0 || memcmp(trace.id, own.id, sizeof own.id) == 0) {
        return;
    }
    open_plan_more_change(&v->plan)->origin.trace = trace;
}

static bool replay_row(const struct journal_row *row, void *self)
{
    struct rebuilt *v = self;
    struct record rec;

    if (plan_is_final(v->run->status)) {
        return false; /* what came after its end changes nothing */
    }
    v->code = record_decode(row, v->plan.plan, v->plan.plan_id, v->engine->now, v->engine->wall,
                            &v->scratch, &rec, v->err);
    if (v->code == BT_OK && record_revises(&rec)) {
        v->code = revise(v, &rec);
    } else if (v->code == BT_OK && !run_apply(v->run, v->plan.plan, &rec)) {
        v->code = err_set(v->err, BT_PROTOCOL, "row %llu (%.*s) does not fit the plan's state",
                          (unsigned long long)row->seq, STR_ARG(row->type));
    }
    if (v->code == BT_OK) {
        open_plan_keep(&v->plan, &rec, v->plan.plan);
        if (rec.type == REC_PLAN_GENERATED) {
            read_trace(v, row);
        }
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
    if (!open_plan_own(&v->plan, row->owner)) {
        return err_set(v->err, BT_NOMEM, "out of memory for a plan");
    }
    v->run = run_init(core_block_run(v->plan.block), v->plan.plan);
    code = journal_replay(v->engine->journal, row->ix, replay_row, v, v->err);
    return code == BT_OK ? v->code : code;
}

enum bt_code open_plan_rebuild(struct engine *engine, const struct journal_plan *row,
                               struct open_plan *ret, struct bt_error *err)
{
    struct rebuilt v = {.engine = engine, .err = err};
    const struct uuid id = row->plan_id;
    const enum bt_code code = rebuild(&v, row);

    *ret = v.plan;
    ret->session = SESSION_SLOT_NONE;
    uuid_format(id, ret->id);
    arena_done(&v.reading);
    arena_done(&v.scratch);
    return code;
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
    struct uuid *suspects; /* left for later; oldest first */
    uint32_t suspects_n, suspects_cap;
    enum bt_code code;
    struct bt_error *err;
};

static void rebuilt_done(struct rebuilt *v)
{
    arena_done(&v->reading);
    arena_done(&v->scratch);
}

static void recover_rebuilt(struct recovery *all, struct rebuilt *v)
{
    const bool job = v->plan.job != NULL;
    const uint64_t ix = v->plan.ix;
    struct core_event ev = {.type = CORE_RECOVER};
    enum core_reject reject;
    struct bt_error why;

    if (rates_take(all->engine, v->plan.plan, &why) != BT_OK) {
        log_err("plan.not_recovered", "ix=%llu %s", (unsigned long long)ix, why.msg);
        return;
    }
    CORE_EV(&ev, recover)->plan = v->plan.plan;
    CORE_EV(&ev, recover)->block = v->plan.block;
    all->code = engine_submit(all->engine, &ev, &v->plan, (struct doc){NULL, 0}, &reject, all->err);
    if (reject != REJECT_NONE) {
        /* More plans are open than limits.maxOpenPlans allows now. It stays in the journal. */
        rates_drop(all->engine, v->plan.plan);
        log_err("plan.not_recovered", "ix=%llu no room: raise limits.maxOpenPlans and start again",
                (unsigned long long)ix);
    } else if (!job) {
        all->n++;
    }
}

static void recover_plan(struct recovery *all, const struct journal_plan *row)
{
    struct bt_error why = {.code = BT_OK};
    struct rebuilt v = {.engine = all->engine, .err = &why};

    (void)FAILPOINT("recover");
    FAILPOINT_OF("recover", row->plan_id);
    if (rebuild(&v, row) == BT_OK) {
        recover_rebuilt(all, &v);
    } else {
        all->code = quarantine(all->engine, row, why.msg, all->err);
    }
    open_plan_done(&v.plan);
    rebuilt_done(&v);
}

/* Whose fault a crash in the plan of this row is. */
static struct uuid suspect_of_row(const struct journal_plan *row)
{
    bool ok;
    struct job *job =
        row->job.len > 0 ? job_of_document((struct doc){row->doc, row->doc_len}, &ok) : NULL;
    const struct uuid suspect = suspect_of(row->plan_id, job);

    free(job);
    return suspect;
}

static bool put_off(struct recovery *all, struct uuid plan_id)
{
    if (all->suspects_n == all->suspects_cap) {
        const uint32_t cap = all->suspects_cap == 0 ? 16 : all->suspects_cap * 2;
        struct uuid *at = realloc(all->suspects, cap * sizeof *at);
        if (at == NULL) {
            all->code = err_set(all->err, BT_NOMEM, "out of memory for the list of suspects");
            return false;
        }
        all->suspects = at;
        all->suspects_cap = cap;
    }
    all->suspects[all->suspects_n++] = plan_id;
    return true;
}

/* A row of the journal: recovers its plan, or leaves a suspect for later. */
static bool take_row(const struct journal_plan *row, void *self)
{
    struct recovery *all = self;
    struct engine *engine = all->engine;
    uint32_t faults;

    engine->mark.recovering = row->plan_id;
    engine->mark.recovering = suspect_of_row(row);
    faults = faults_count(&engine->faults, engine->mark.recovering);
    if (faults >= FAULTS_LIMIT) {
        all->code =
            quarantine(engine, row, "the daemon crashed three times over this plan", all->err);
    } else if (faults > 0) {
        (void)put_off(all, row->plan_id);
    } else {
        recover_plan(all, row);
    }
    engine->mark.recovering = (struct uuid){{0}};
    if (all->code == BT_OK) { /* many plans may take longer than a lease */
        all->code = journal_hold(engine->journal, all->err);
    }
    return all->code == BT_OK;
}

/* After all others, whose rows are durable by then, and one by one: what a suspect does to the
 * daemon, it does to itself alone (G23). */
static void recover_suspects(struct recovery *all)
{
    for (uint32_t i = 0; i < all->suspects_n && all->code == BT_OK; i++) {
        struct engine *engine = all->engine;
        struct journal_plan row;

        all->code = journal_commit(engine->journal, all->err);
        if (all->code == BT_OK) {
            all->code = journal_plan_by_id(engine->journal, all->suspects[i], &row, all->err);
        }
        if (all->code == BT_OK) {
            log_warn("plan.suspect", "ix=%llu the daemon crashed over it; it is recovered last",
                     (unsigned long long)row.ix);
            engine->mark.recovering = suspect_of_row(&row);
            recover_plan(all, &row);
            engine->mark.recovering = (struct uuid){{0}};
        }
    }
}

/* What is open may be a suspect again. A plan that has ended cannot. */
static bool is_open_plan(struct uuid plan_id, void *self)
{
    const struct engine *engine = self;
    struct journal_plan row;

    return journal_plan_by_id(engine->journal, plan_id, &row, NULL) == BT_OK && row.ended_wall == 0;
}

/* Only when the quarantine is durable: the faults are why. */
static enum bt_code forget_faults(struct engine *engine, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (engine->faults.n > 0) {
        code = journal_commit(engine->journal, err);
    }
    if (code == BT_OK) {
        faults_keep(&engine->faults, is_open_plan, engine);
    }
    return code;
}

enum bt_code engine_recover(struct engine *engine, uint64_t *ret_n, struct bt_error *err)
{
    struct recovery all = {.engine = engine, .err = err};
    enum bt_code code = rates_recover(engine, err);

    if (code != BT_OK) {
        *ret_n = 0;
        return code;
    }
    code = journal_plans_open(engine->journal, take_row, &all, err);

    if (code == BT_OK && all.code == BT_OK) {
        recover_suspects(&all);
    }
    free(all.suspects);
    *ret_n = all.n;
    if (code == BT_OK && all.code == BT_OK) {
        code = engine_record_quarantined(engine, err);
    }
    if (code == BT_OK && all.code == BT_OK) {
        code = forget_faults(engine, err);
    }
    if (code == BT_OK && all.code == BT_OK) {
        code = rates_recovered(engine, err);
    }
    if (code == BT_OK && all.code == BT_OK) {
        engine->hooks.jobs_recovered(engine);
        engine_children_recovered(engine);
        code = engine->hooks.turns_recovered(engine, err);
    }
    return code == BT_OK ? all.code : code;
}
