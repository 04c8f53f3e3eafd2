#include "supervisor/query/cost_jobs.h"

#include <stdlib.h>

#include "protocol/base/clock.h"
#include "supervisor/engine/row_body.h"

enum { LOOKS_MAX = 20000, LOOKS_PER_SLICE = 32 /* at least */ };

static bool find(const struct journal_plan *row, void *self)
{
    struct cost_jobs *c = self;

    if (row->ix <= c->ask.after_ix || row->created_wall < c->ask.since_wall) {
        return false; /* all that follow are older */
    }
    if (c->looks == LOOKS_MAX) {
        c->more = true;
        return false;
    }
    if (++c->in_slice % LOOKS_PER_SLICE == 0 && clock_mono_ns() > c->until_ns) {
        c->stopped = true; /* this one is looked at again */
        return false;
    }
    c->looks++;
    c->before_ix = row->ix;
    if (row->created_wall > c->ask.until_wall) {
        return true;
    }
    if (c->n == c->room) {
        const uint32_t room = c->room == 0 ? 64 : 2 * c->room;
        struct uuid *ids = realloc(c->ids, room * sizeof *ids);
        if (ids == NULL) {
            c->no_memory = true;
            return false;
        }
        c->ids = ids;
        c->room = room;
    }
    c->ids[c->n++] = row->plan_id;
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
        return code == BT_NOT_FOUND ? BT_OK : code; /* deleted since it was found */
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

enum bt_code cost_jobs_go_on(struct engine *engine, struct cost_jobs *c, cost_job_fn fn, void *self,
                             uint64_t until_ns, bool *ret_done, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    c->until_ns = until_ns;
    c->in_slice = 0;
    c->stopped = false;
    if (!c->found) {
        code = journal_jobs(engine_journal(engine), c->ask.session_id, c->before_ix, UINT32_MAX,
                            find, c, err);
        c->found = !c->stopped;
    }
    if (code == BT_OK && c->no_memory) {
        code = err_set(err, BT_NOMEM, "out of memory for a list of jobs");
    }
    while (code == BT_OK && c->found && c->at < c->n && !c->stopped) {
        code = report_job(engine, c->ids[c->at++], fn, self, err);
        c->stopped = clock_mono_ns() > until_ns;
    }
    *ret_done = c->found && c->at == c->n;
    return code;
}

void cost_jobs_done(struct cost_jobs *c)
{
    free(c->ids);
    c->ids = NULL;
}
