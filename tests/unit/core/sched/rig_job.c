/* What comes of a plan's jobs, and journals that lost their end. */
#include <stdlib.h>

#include "tests/unit/core/plan/plan_text.h"
#include "tests/unit/core/sched/rig_internal.h"

static struct core_event about_plan(const struct rig *r, enum core_event_type type, uint64_t handle)
{
    const struct run *run = core_run(r->core, handle, NULL);
    return (struct core_event){.type = type,
                               .run = handle,
                               .step = STEP_NONE,
                               .lane = LANE_NONE,
                               .attempt = run == NULL ? 1 : run->asked};
}

void rig_planned(struct rig *r, uint64_t handle, const char *text, uint64_t tokens)
{
    struct core_event ev = about_plan(r, CORE_PLANNED, handle);
    CORE_EV(&ev, planned)->usage.input_tokens = tokens;
    rig_offer(r, handle, ev, text, core_revision(r->core, handle));
}

void rig_job_failed(struct rig *r, uint64_t handle, bool invalid, const char *why, uint64_t tokens)
{
    struct core_event ev = about_plan(r, CORE_JOB_FAILED, handle);
    const struct run *run = core_run(r->core, handle, NULL);
    *CORE_EV(&ev, job_failed) =
        (struct core_ev_job_failed){.job = run == NULL ? JOB_PLANNING : run->job,
                                    .invalid = invalid,
                                    .n = invalid ? 2 : 0,
                                    .usage = {.input_tokens = tokens}};
    ev.text = str_from(why);
    rig_event(r, ev);
}

void rig_answer_text(struct rig *r, uint64_t handle, const char *text)
{
    struct core_event ev = about_plan(r, CORE_JOB_TEXT, handle);
    ev.text = str_from(text);
    rig_event(r, ev);
}

void rig_answered(struct rig *r, uint64_t handle, uint64_t result, uint64_t tokens)
{
    struct core_event ev = about_plan(r, CORE_SYNTHESIZED, handle);
    *CORE_EV(&ev, synthesized) = (struct core_ev_synthesized){.result = {.id = result, .len = 5},
                                                              .usage = {.input_tokens = tokens}};
    rig_event(r, ev);
}

void rig_compensated(struct rig *r, uint64_t handle, bool ok, const char *text)
{
    struct core_event ev = about_plan(r, CORE_COMPENSATED, handle);
    *CORE_EV(&ev, compensated) = (struct core_ev_compensated){
        .ok = ok, .done = 2, .failed = ok ? 0 : 1, .usage = {.input_tokens = 7}};
    ev.text = str_from(text);
    rig_event(r, ev);
}

void rig_rectify(struct rig *r, uint64_t handle, const char *text)
{
    struct core_event ev = about_plan(r, CORE_RECTIFY, handle);
    ev.text = STR_LIT("once more");
    CORE_EV(&ev, planned)->usage.input_tokens = 1;
    rig_revise(r, handle, ev, text);
}

void rig_decide_plan(struct rig *r, uint64_t handle, enum review_decision d, const char *plan)
{
    struct core_event ev = about_plan(r, CORE_DECIDE, handle);
    const struct run *run = core_run(r->core, handle, NULL);
    ev.attempt = run != NULL ? run->plan_review : 0;
    CORE_EV(&ev, decide)->decision = d;
    if (plan == NULL) {
        rig_event(r, ev);
    } else {
        rig_offer(r, handle, ev, plan, core_revision(r->core, handle));
    }
}

const struct run *rig_nth(const struct rig *r, uint32_t n)
{
    return core_block_run(r->plans[n].block);
}

uint32_t rig_records(const struct rig *r, uint32_t n)
{
    return r->plans[n].n_records;
}

uint64_t rig_cut(struct rig *r, uint32_t n, uint32_t keep)
{
    struct rig_plan *p = &r->plans[n];
    const uint32_t now = rig_revision_in_force(p, keep);
    while (p->n_revisions > now + 1) {
        plan_text_free(p->revisions[--p->n_revisions]);
    }
    p->plan = p->revisions[now];
    p->n_records = keep;
    free(p->shadow);
    p->shadow = rig_replay(r, p, keep);
    free(p->block);
    p->block = rig_replay(r, p, keep);
    p->handle = 1; /* it is open again */
    rig_restart(r, 0);
    return p->handle;
}
