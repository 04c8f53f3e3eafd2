#include "supervisor/query/cost_jobs.h"

#include <stdlib.h>

#include "supervisor/engine/row_body.h"

enum { LOOKS_MAX = 20000 };

struct found {
    const struct cost_jobs_of *ask;
    struct uuid *ids;
    uint32_t n, room, looks;
    bool more, no_memory;
};

static bool find(const struct journal_plan *row, void *self)
{
    struct found *f = self;

    if (row->ix <= f->ask->after_ix || row->created_wall < f->ask->since_wall) {
        return false; /* all that follow are older */
    }
    if (f->looks++ == LOOKS_MAX) {
        f->more = true;
        return false;
    }
    if (row->created_wall > f->ask->until_wall) {
        return true;
    }
    if (f->n == f->room) {
        const uint32_t room = f->room == 0 ? 64 : 2 * f->room;
        struct uuid *ids = realloc(f->ids, room * sizeof *ids);
        if (ids == NULL) {
            f->no_memory = true;
            return false;
        }
        f->ids = ids;
        f->room = room;
    }
    f->ids[f->n++] = row->plan_id;
    return true;
}

static bool take_usage(const struct journal_row *row, void *self)
{
    struct usage *usage = self;

    const enum record_type type = record_type_from_wire(row->type);
    const struct usage u = row_usage((struct doc){row->body, row->body_len}, "usage");

    if (type == REC_PLAN_COMPLETED) {
        *usage = u;
    } else if (type == REC_RESULT_REJECTED) { /* before the end it is in the end's sum */
        usage_add(usage, &u);
    }
    return true;
}

/* Of one that is out its run knows, of one that has ended its rows. */
static enum bt_code usage_of(struct engine *engine, struct uuid id, uint64_t ix, struct usage *ret,
                             struct bt_error *err)
{
    char text[UUID_TEXT_LEN + 1];
    const struct open_plan *p;
    const struct run *run;

    uuid_format(id, text);
    p = open_plan_by_id(engine, str_from(text));
    run = p != NULL ? core_block_run(p->block) : NULL;
    *ret = (struct usage){0};
    if (run != NULL && !plan_is_final(run->status)) {
        *ret = run->usage;
        return BT_OK;
    }
    return journal_replay(engine_journal(engine), ix, take_usage, ret, err);
}

static enum bt_code report_job(struct engine *engine, struct uuid id, cost_job_fn fn, void *self,
                               struct bt_error *err)
{
    struct journal_plan row;
    struct job *e;
    struct usage usage;
    bool ok;
    enum bt_code code = journal_plan_by_id(engine_journal(engine), id, &row, err);

    if (code != BT_OK) {
        return code;
    }
    e = job_of_document((struct doc){row.doc, row.doc_len}, &ok);
    if (!ok) {
        return err_set(err, BT_NOMEM, "out of memory for a job");
    }
    code = usage_of(engine, id, row.ix, &usage, err);
    if (code == BT_OK && e != NULL) {
        fn(e->kind, str_from(e->of), &usage, self);
    }
    free(e);
    return code;
}

enum bt_code cost_jobs(struct engine *engine, const struct cost_jobs_of *ask, cost_job_fn fn,
                       void *self, bool *ret_more, struct bt_error *err)
{
    struct found f = {.ask = ask};
    enum bt_code code =
        journal_jobs(engine_journal(engine), ask->session_id, 0, UINT32_MAX, find, &f, err);

    if (code == BT_OK && f.no_memory) {
        code = err_set(err, BT_NOMEM, "out of memory for a list of jobs");
    }
    for (uint32_t i = 0; i < f.n && code == BT_OK; i++) {
        code = report_job(engine, f.ids[i], fn, self, err);
    }
    *ret_more = f.more;
    free(f.ids);
    return code;
}
