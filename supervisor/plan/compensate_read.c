/*
 * Steps with `compensate`: the work of an agent that undoes them. It is read as the body of a step
 * with one step in it, by the rules of this plan, and kept with every number written, so that a
 * plan of its own can be made of it when it is needed (engine/undo.c).
 */
#include <stdio.h>

#include "supervisor/plan/child_read_internal.h"

enum { PROBLEMS_MAX = 20 };

/* No step of a plan is called so: a template of `compensate` never means it. */
#define OWN_ID STR_LIT("compensate.of.this.step")

static bool may_have(uint8_t field)
{
    switch (field) {
    case STEP_AGENT:
    case STEP_SKILL:
    case STEP_TASK:
    case STEP_PARAMETERS:
    case STEP_VERIFY:
    case STEP_SIGNATURE:
    case STEP_TIMEOUT:
    case STEP_EFFECTS:
    case FIELD_IGNORED: /* reported as unknown, or ignored, when it is read */
        return true;
    case COM_GATE:
        return false;
    default:
        return field < COM_COUNT;
    }
}

/* {steps: [{stepId, agentId?, ...}]}. Without an agent and a skill it is the step's own agent. */
static void put_body(struct step_reader *s, const struct location *at, struct doc value,
                     struct buf *out)
{
    struct doc_cursor c = doc_cursor(value);
    struct doc_head head;
    struct buf members;
    uint32_t n = 1;
    bool agent = false;
    (void)doc_next(&c, &head);
    buf_init(&members, LIMIT_CONTROL_BYTES * 2);
    doc_put_cstr(&members, "stepId");
    doc_put_str(&members, OWN_ID);
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str key = doc_string(doc_skip(&c));
        const struct doc of = doc_skip(&c);
        const uint8_t field = plan_step_field(key);
        if (!may_have(field)) {
            location_report(at, PROBLEM_INVALID_FIELD, false, plan_step_field_name(field),
                            "has no meaning here; a compensation is the work of an agent: "
                            "agentId, skill, task, parameters, and the rules for its attempts");
            continue;
        }
        agent = agent || field == STEP_AGENT || field == STEP_SKILL;
        doc_put_str(&members, key);
        doc_put_doc(&members, of);
        n++;
    }
    if (!agent && s->step->agent_id.len > 0) {
        doc_put_cstr(&members, "agentId");
        doc_put_str(&members, s->step->agent_id);
        n++;
    }
    doc_put_map(out, 1);
    doc_put_cstr(out, "steps");
    doc_put_array(out, 1);
    doc_put_map(out, n);
    buf_add_str(out, buf_str(&members));
    out->bad = out->bad != BT_OK ? out->bad : members.bad;
    buf_done(&members);
}

static void check_end(const struct location *at, const struct plan_step *step)
{
    const enum on_failure policy = step->policy.on_failure;
    if (policy != ON_FAILURE_ASK && policy != ON_FAILURE_CONTINUE) {
        location_report(at, PROBLEM_UNSUPPORTED, false, "onFailure",
                        "%s: of a compensation expected ask (a person decides) or continue (it "
                        "counts as failed)",
                        on_failure_name(policy));
    }
    if (step->policy.on_verify == ON_FAILURE_REPLAN) {
        location_report(at, PROBLEM_UNSUPPORTED, false, "onVerificationFailure",
                        "replan: a compensation cannot be replanned");
    }
}

static void report_inner(const struct location *at, const struct problems *inner,
                         struct problems *all)
{
    for (uint32_t i = 0; i < inner->n; i++) {
        const struct problem *p = &inner->at[i];
        location_report(at, p->category, p->warning, p->field, "%s", p->message);
    }
    all->total += inner->total > inner->n ? inner->total - inner->n : 0;
}

static enum bt_code read_body(struct step_reader *s, const struct location *at, struct doc document,
                              struct buf *out)
{
    struct problem found[PROBLEMS_MAX];
    struct problems inner = {.at = found, .cap = PROBLEMS_MAX};
    struct plan_request request = {.plan = document,
                                   .defaults = s->r->request->defaults,
                                   .registry = s->r->registry,
                                   .lenient = s->r->reported.unknown.lenient};
    struct plan_policy policy;
    struct bt_error why = {.code = BT_OK};
    struct plan_reader r = {.request = &request,
                            .registry = s->r->registry,
                            .arena = s->r->arena,
                            .problems = &inner,
                            .err = &why,
                            .base = &policy,
                            .depth = s->r->depth + 1,
                            .n_words = s->r->n_words,
                            .outer = true};
    memcpy(r.words, s->r->words, sizeof r.words);
    plan_body_policy(s, &policy);
    policy.step.on_failure = ON_FAILURE_ASK; /* without it a failure would be seen by nobody */
    policy.step.scope = SCOPE_NONE;
    policy.scope_given = true;
    policy.undo = UNDO_ON_FAILURE;
    enum bt_code code = plan_reader_body(&r);
    if (code == BT_OK) {
        check_end(at, &r.plan->steps[0]);
        plan_body_agents(s, r.plan);
        code = plan_write_compensation(r.plan, out, s->r->err);
    }
    report_inner(at, &inner, s->r->problems);
    plan_reader_done(&r);
    return code == BT_INVALID ? BT_OK : code == BT_NOMEM ? reader_nomem(s->r) : code;
}

/* Whether the value has a member, or a text, "compensate" anywhere. */
static bool names_it(struct doc value)
{
    struct doc_cursor c = doc_cursor(value);
    struct doc_head head;
    while (value.ptr != NULL && doc_next(&c, &head)) {
        if (head.kind == DOC_STR && str_is(head.str, "compensate")) {
            return true;
        }
    }
    return false;
}

enum bt_code plan_step_compensate(struct step_reader *s)
{
    const struct doc value = s->values[STEP_COMPENSATE];
    char prefix[96];
    enum bt_code code = BT_OK;
    if (value.ptr != NULL && s->r->canonical) {
        s->step->compensate = value;
    } else if (value.ptr != NULL && s->step->type == STEP_TYPE_WAIT) {
        location_report(&s->at, PROBLEM_INVALID_FIELD, false, "compensate",
                        "a step that only waits does nothing that could be undone; leave it out");
    } else if (value_map(&s->at, "compensate", value)) {
        const struct location at = location_below(&s->at, "compensate", prefix);
        const uint32_t errors = s->r->problems->errors;
        struct buf body;
        struct buf made;
        buf_init(&body, LIMIT_CONTROL_BYTES * 2);
        buf_init(&made, LIMIT_STEP_BYTES);
        put_body(s, &at, value, &body);
        code = body.bad != BT_OK ? reader_nomem(s->r)
                                 : read_body(s, &at, doc_from_buf(&body), &made);
        code = code == BT_OK ? buf_check(&made, s->r->err) : code;
        if (code == BT_OK && s->r->problems->errors == errors) {
            s->step->compensate = doc_copy(s->r->arena, doc_from_buf(&made));
            code = s->step->compensate.ptr == NULL ? reader_nomem(s->r) : BT_OK;
        }
        buf_done(&made);
        buf_done(&body);
    }
    s->step->undoes = s->step->compensate.ptr != NULL || names_it(s->step->child);
    return code;
}
