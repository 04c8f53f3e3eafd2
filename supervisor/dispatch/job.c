#include "supervisor/dispatch/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "protocol/base/log.h"
#include "supervisor/dispatch/dispatch_internal.h"

enum { ROUNDS_MAX = 100000 };

/* ---- what the cycle brings ---- */

enum note_type { NOTE_JOB_ORDER, NOTE_JOB_STOP, NOTE_JOB_TEXT, NOTE_JOB_END };

struct job_note {
    enum note_type type;
    uint64_t run; /* ORDER: of the plan; STOP, TEXT, END: of the job */
    struct job_ask ask;
    struct job_end end;
};

static struct job_note *add_note(struct engine *engine, enum note_type type, uint64_t run)
{
    struct dispatch *d = dispatch_of(engine);

    if (d->notes_n == d->notes_cap) {
        const uint32_t cap = d->notes_cap == 0 ? 16 : d->notes_cap * 2;
        struct job_note *at = realloc(d->notes, cap * sizeof *at);
        ASSERT(at != NULL); /* a plan would wait for ever: crash, replay */
        d->notes = at;
        d->notes_cap = cap;
    }
    d->notes[d->notes_n] = (struct job_note){.type = type, .run = run};
    return &d->notes[d->notes_n++];
}

void job_on_command(struct engine *engine, const struct core_cmd *cmd)
{
    struct open_plan *p = open_plan_of_run(engine, cmd->run);
    struct job_note *n;

    if (cmd->type == CMD_JOB) {
        n = add_note(engine, NOTE_JOB_ORDER, cmd->run);
        n->ask.kind = cmd->job;
        n->ask.attempt = cmd->attempt;
        n->end.text = engine_cycle_text(engine, cmd->text);
    } else if (p != NULL && p->asked != 0) {
        (void)add_note(engine, NOTE_JOB_STOP, p->asked);
        open_plan_await_job(engine, p, 0);
    }
}

/* Whether the agent declares its earlier texts void. */
static bool is_anew(struct doc data)
{
    const struct doc anew = data.ptr != NULL && doc_head(data).kind == DOC_MAP
                                ? doc_get(data, STR_LIT("anew"))
                                : (struct doc){NULL, 0};
    return anew.ptr != NULL && doc_head(anew).kind == DOC_BOOL && doc_head(anew).b;
}

void job_on_record(struct engine *engine, const struct open_plan *p, const struct record *rec)
{
    const struct run *run = core_block_run(p->block);
    const struct run_step *step = &run->steps[0];
    struct job_note *n;

    if (rec->type == REC_STEP_PROGRESS && p->job->kind == JOB_SYNTHESIS && rec->text.len > 0) {
        n = add_note(engine, NOTE_JOB_TEXT, rec->run);
        n->end.text = engine_cycle_text(engine, rec->text);
        n->end.ok = p->job->text_attempt == 0 ||
                    (p->job->text_attempt == rec->attempt && !is_anew(REC(rec, progress)->data));
        p->job->text_attempt = rec->attempt;
    } else if (rec->type == REC_PLAN_COMPLETED) {
        n = add_note(engine, NOTE_JOB_END, rec->run);
        n->end.ok =
            REC(rec, plan_completed)->status == PLAN_COMPLETED && step->status == STEP_COMPLETED;
        n->end.result = step->result;
        n->end.usage = run->usage;
        n->end.error_class = step->error_class;
        n->end.text = engine_cycle_text(engine, rec->text);
    }
}

/* ---- orders ---- */

static struct str task_of(enum job_kind kind)
{
    return kind == JOB_PLANNING ? STR_LIT("Make a plan for the goal.")
                                : STR_LIT("Write the answer out of the results of all steps.");
}

static enum bt_code start_for(struct engine *engine, struct open_plan *p, const struct job_note *n,
                              struct bt_error *err)
{
    const struct plan *plan = p->plan;
    const bool planning = n->ask.kind == JOB_PLANNING;
    struct job_ask ask = {.kind = n->ask.kind,
                          .attempt = n->ask.attempt,
                          .of = str_from(p->id),
                          .session_id = plan->session_id,
                          .agent_id = planning ? plan->planning.agent_id : plan->synthesis.agent_id,
                          .skill = planning ? plan->planning.skill : plan->synthesis.skill,
                          .task = task_of(n->ask.kind),
                          .timeout_ms =
                              planning ? plan->planning.timeout_ms : plan->synthesis.timeout_ms};
    uint64_t run = 0;
    enum bt_code code;

    if (ask.skill.len == 0) {
        ask.skill = planning ? STR_LIT("plan") : STR_LIT("synthesize");
    }
    core_budget_left(engine_core(engine), p->run, STEP_NONE, &ask.tokens, &ask.micros);
    code = job_start(engine, &ask, &run, err);
    open_plan_await_job(engine, p, code == BT_OK ? run : 0);
    return code;
}

static void take_order(struct engine *engine, const struct job_note *n)
{
    struct open_plan *p = open_plan_of_run(engine, n->run);
    const struct job e = {.kind = n->ask.kind, .attempt = n->ask.attempt};
    struct bt_error err;

    if (p == NULL || core_run(engine_core(engine), p->run, NULL) == NULL || p->asked != 0) {
        return; /* it has ended meanwhile; or the job goes on after a restart */
    }
    if (start_for(engine, p, n, &err) != BT_OK && !engine_has_failed(engine)) {
        const struct job_end end = {.error_class = CLASS_SERVICE_UNAVAILABLE};
        job_failed(engine, open_plan_of_run(engine, n->run), &e, &end, str_from(err.msg), 0);
    }
}

/* ---- ends ---- */

static void take_end(struct engine *engine, const struct job_note *n)
{
    const struct open_plan *done = open_plan_of_run(engine, n->run);
    struct job e;
    struct open_plan *p;

    if (done == NULL || done->job == NULL) {
        return;
    }
    e = *done->job; /* the plan that is one may go */
    if (e.kind == JOB_CONVERSE || e.kind == JOB_SUMMARY) {
        dispatch_of(engine)->session_job_over(engine, &e, &n->end);
        return;
    }
    p = open_plan_by_id(engine, str_from(e.of));
    if (p == NULL || p->asked != n->run) {
        log_debug("job.late", "job=%s of=%s", job_kind_name(e.kind), e.of);
        return;
    }
    open_plan_await_job(engine, p, 0);
    e.attempt = core_block_run(p->block)->asked;
    if (e.kind == JOB_PLANNING) {
        job_planned(engine, p, &e, &n->end);
        p = open_plan_by_id(engine, str_from(e.of));
        if (p == NULL || core_block_run(p->block)->job != JOB_PLANNING) {
            engine_result_forget(engine, n->end.result); /* the plan's document is what counts */
        }
    } else {
        job_answered(engine, p, &e, &n->end);
    }
}

static void take_text(struct engine *engine, const struct job_note *n)
{
    const struct open_plan *writing = open_plan_of_run(engine, n->run);
    const struct open_plan *p =
        writing != NULL ? open_plan_by_id(engine, str_from(writing->job->of)) : NULL;
    struct core_event ev = {CORE_EV_INIT(JOB_TEXT, job_text, .restarts = !n->end.ok),
                            .text = n->end.text};
    struct bt_error err;

    if (p != NULL && p->asked == n->run) {
        ev.run = p->run;
        if (engine_feed(engine, &ev, NULL, &err) != BT_OK) {
            engine_fail(engine, &err);
        }
    }
}

static void take_stop(struct engine *engine, const struct job_note *n)
{
    job_stop(engine, n->run);
}

bool jobs_cycle(struct engine *engine)
{
    static void (*const takes[])(struct engine *, const struct job_note *) = {
        [NOTE_JOB_ORDER] = take_order,
        [NOTE_JOB_STOP] = take_stop,
        [NOTE_JOB_TEXT] = take_text,
        [NOTE_JOB_END] = take_end,
    };

    struct dispatch *d = dispatch_of(engine);
    const bool any = d->notes_n > 0;

    for (uint32_t i = 0; i < d->notes_n && !engine_has_failed(engine); i++) {
        const struct job_note n = d->notes[i]; /* more may come, and the list may move */
        ASSERT(i < ROUNDS_MAX);
        (void)engine_applies(engine, n.run);
        takes[n.type](engine, &n);
    }
    (void)engine_applies(engine, 0);
    d->notes_n = 0;
    return any;
}

bool job_bring(struct engine *engine, const struct open_plan *p, enum core_event_type type,
               struct new_revision *revision, struct blob_ref document, struct str text,
               const struct usage *usage)
{
    enum core_reject reject = REJECT_NONE;
    struct core_event ev = {.type = type, .run = p->run, .text = text};
    struct bt_error err;

    *CORE_EV(&ev, planned) = (struct core_ev_planned){
        .next = {.plan = revision->plan, .block = revision->block, .document = document},
        .usage = *usage};

    if (engine_revise(engine, &ev, revision, &reject, &err) != BT_OK) {
        engine_fail(engine, &err);
    }
    return reject == REJECT_NONE;
}

void job_failed(struct engine *engine, const struct open_plan *p, const struct job *e,
                const struct job_end *end, struct str why, uint64_t problems)
{
    struct core_event ev = {CORE_EV_INIT(JOB_FAILED, job_failed, .job = e->kind,
                                         .invalid = problems > 0, .n = problems,
                                         .result = end->result, .usage = end->usage),
                            .attempt = e->attempt, .text = why};
    struct bt_error err;

    if (p != NULL) {
        ev.run = p->run;
        if (engine_feed(engine, &ev, NULL, &err) != BT_OK) {
            engine_fail(engine, &err);
        }
    }
}

void jobs_find(struct engine *engine)
{
    for (struct open_plan *e = NULL; (e = open_plan_next(engine, e)) != NULL;) {
        struct open_plan *p = e->job != NULL ? open_plan_by_id(engine, str_from(e->job->of)) : NULL;
        const struct run *run = p != NULL ? core_block_run(p->block) : NULL;
        if (e->job == NULL || e->job->kind > JOB_SYNTHESIS) {
            continue;
        }
        if (run != NULL && run->job == (uint8_t)e->job->kind) {
            open_plan_await_job(engine, p, e->run);
            e->job->text_attempt = run->texts > 0 ? core_block_run(e->block)->steps[0].attempt : 0;
        } else {
            job_stop(engine, e->run); /* a cut journal lost who waited for it */
        }
    }
}
