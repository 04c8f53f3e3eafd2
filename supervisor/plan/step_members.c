/* Members of a step that are maps of their own: what it waits for, and what undoes it. */
#include <stdio.h>

#include "protocol/base/clock.h"
#include "protocol/base/date.h"
#include "protocol/base/map.h"
#include "supervisor/plan/child_read_internal.h"
#include "supervisor/plan/flow/tools.h"

enum { WAIT_FOR_MS, WAIT_UNTIL, WAIT_SIGNAL_NAME, WAIT_SCHEMA, WAIT_TIMEOUT_MS, WAIT_FIELDS };
static const struct field_name wait_names[] = {
#define FIELDS_WAIT
#include "supervisor/plan/field_names.def"
};

static void report(const struct location *at, const char *field, const char *text)
{
    location_report(at, PROBLEM_INVALID_FIELD, false, field, "%s", text);
}

static void read_date(const struct location *at, struct doc value, struct plan_wait *w)
{
    struct str text;
    if (value_string(at, "until", value, &text) && !date_read(text, &w->until)) {
        location_report(at, PROBLEM_INVALID_FIELD, false, "until",
                        "expected a date with its offset, such as 2027-01-31T18:00:00Z, got "
                        "\"%.*s\"",
                        (int)(text.len < 64 ? text.len : 64), text.ptr);
    }
}

static void read_signal(const struct location *at, const struct doc *values, struct plan_wait *w)
{
    (void)value_string(at, "signal", values[WAIT_SIGNAL_NAME], &w->signal);
    if (values[WAIT_SIGNAL_NAME].ptr != NULL && w->signal.len == 0) {
        report(at, "signal", "is empty; give the name that plan.signal will have");
    } else if (w->signal.len > LIMIT_ID_BYTES) {
        location_report(at, PROBLEM_LIMIT, false, "signal", "%zu bytes, at most %d", w->signal.len,
                        LIMIT_ID_BYTES);
    }
    if (doc_head(values[WAIT_SCHEMA]).kind == DOC_BOOL ||
        value_map(at, "schema", values[WAIT_SCHEMA])) {
        w->schema = values[WAIT_SCHEMA];
    }
    (void)value_u64(at, "timeoutMs", values[WAIT_TIMEOUT_MS], 0, WAIT_MS_MAX, &w->ms);
}

/* Exactly one of the three. */
static void read_wait(const struct location *at, const struct doc *values, struct plan_wait *w)
{
    const struct doc ms = values[WAIT_FOR_MS];
    const struct doc date = values[WAIT_UNTIL];
    const struct doc signal = values[WAIT_SIGNAL_NAME];
    const int n = (ms.ptr != NULL) + (date.ptr != NULL) + (signal.ptr != NULL);
    if (n != 1) {
        report(at, "forMs",
               n == 0 ? "is missing, and so are until and signal; give one of them"
                      : "and until and signal exclude each other; give one of them");
        return;
    }
    w->what = ms.ptr != NULL ? WAIT_FOR_TIME : date.ptr != NULL ? WAIT_FOR_DATE : WAIT_FOR_SIGNAL;
    if (w->what != WAIT_FOR_SIGNAL &&
        (values[WAIT_SCHEMA].ptr != NULL || values[WAIT_TIMEOUT_MS].ptr != NULL)) {
        report(at, values[WAIT_SCHEMA].ptr != NULL ? "schema" : "timeoutMs",
               "goes with signal only");
    }
    if (w->what == WAIT_FOR_TIME) {
        (void)value_u64(at, "forMs", ms, 0, WAIT_MS_MAX, &w->ms);
    } else if (w->what == WAIT_FOR_DATE) {
        read_date(at, date, w);
    } else {
        read_signal(at, values, w);
    }
}

enum bt_code plan_step_wait(struct step_reader *s)
{
    const struct doc value = s->values[STEP_WAIT];
    const struct field_table table = {wait_names, sizeof wait_names / sizeof wait_names[0],
                                      &s->r->reported.wait, &s->r->reported.unknown};
    struct doc values[WAIT_FIELDS] = {{NULL, 0}};
    struct plan_wait *w;
    char prefix[96];
    char got[64];
    if (s->step->type != STEP_TYPE_WAIT) {
        return BT_OK;
    }
    w = arena_alloc(s->r->arena, sizeof *w);
    if (w == NULL) {
        return reader_nomem(s->r);
    }
    *w = (struct plan_wait){.what = WAIT_FOR_TIME};
    s->step->wait = w;
    if (value.ptr == NULL) {
        report(&s->at, "wait", "is missing; give {forMs}, {until} or {signal}");
    } else if (doc_head(value).kind != DOC_MAP) {
        value_describe(value, got, sizeof got);
        location_report(&s->at, PROBLEM_INVALID_FIELD, false, "wait",
                        "expected {forMs: 60000}, {until: 2027-01-31T18:00:00Z} or {signal: NAME}, "
                        "got %s",
                        got);
    } else {
        const struct location in = location_below(&s->at, "wait", prefix);
        fields_read(&table, value, &in, values);
        read_wait(&in, values, w);
    }
    return BT_OK;
}

struct str plan_wait_text(const struct plan_wait *w, char *mem, size_t size)
{
    char date[CLOCK_ISO_LEN + 1];
    switch (w->what) {
    case WAIT_FOR_TIME:
        (void)snprintf(mem, size, "Wait for %llu ms", (unsigned long long)w->ms);
        break;
    case WAIT_FOR_DATE:
        clock_iso(w->until, date);
        (void)snprintf(mem, size, "Wait until %s", date);
        break;
    case WAIT_FOR_SIGNAL:
    case WAIT_FOR_COUNT:
        (void)snprintf(mem, size, "Wait for the signal %.*s", STR_ARG(w->signal));
        break;
    }
    return str_from(mem);
}

/* ---- the signals of a plan ---- */

static bool same_schema(const struct plan_wait *a, const struct plan_wait *b)
{
    return str_eq((struct str){(const char *)a->schema.ptr, a->schema.len},
                  (struct str){(const char *)b->schema.ptr, b->schema.len});
}

static bool is_for_signal(const struct plan_step *s)
{
    return s->wait != NULL && s->wait->what == WAIT_FOR_SIGNAL && !s->superseded;
}

/* Which step takes a signal is known only when it came, so all of its name have one schema. */
enum bt_code plan_waits_check(struct plan_reader *r)
{
    struct map names = {0};
    enum bt_code code = BT_OK;
    for (uint32_t i = 0; i < r->plan->n_steps && code == BT_OK; i++) {
        const struct plan_step *s = &r->plan->steps[i];
        const uint32_t first = is_for_signal(s) ? map_get(&names, s->wait->signal) : MAP_NONE;
        const struct location at = {.problems = r->problems, .step = s, .ix = i, .prefix = "wait"};
        if (!is_for_signal(s)) {
            continue;
        }
        if (first == MAP_NONE) {
            code = map_put(&names, s->wait->signal, i);
        } else if (i >= r->first && !same_schema(s->wait, r->plan->steps[first].wait)) {
            location_report(&at, PROBLEM_INVALID_FIELD, false, "schema",
                            "is not that of the step %.*s, which waits for the same signal; use "
                            "one schema, or two names",
                            STR_ARG(r->plan->steps[first].step_id));
        }
    }
    map_done(&names);
    return code == BT_OK ? BT_OK : reader_nomem(r);
}

/* ---- compensate ---- */

/*
 * The work of an agent that undoes the step. It is read as the body of a step with one step in it,
 * by the rules of this plan, and kept with every number written, so that a plan of its own can be
 * made of it when it is needed (engine/undo.c).
 */
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

/* {steps: [{stepId, agentId?, ...}]}. Without an agent it is the step's own, if that has the skill.
 */
static void put_body(struct step_reader *s, const struct location *at, struct doc value,
                     struct buf *out)
{
    struct doc_cursor c = doc_cursor(value);
    struct doc_head head;
    struct buf members;
    uint32_t n = 1;
    bool agent = false;
    struct str skill = {NULL, 0};
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
        agent = agent || field == STEP_AGENT;
        skill = field == STEP_SKILL ? doc_string(of) : skill;
        doc_put_str(&members, key);
        doc_put_doc(&members, of);
        n++;
    }
    if (!agent && s->step->agent_id.len > 0 &&
        (skill.len == 0 || plan_agent_has_skill(s->r, s->step->agent_id, skill))) {
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
    const enum on_failure policy = step->rules->policy.on_failure;
    if (policy != ON_FAILURE_ASK && policy != ON_FAILURE_CONTINUE) {
        location_report(at, PROBLEM_UNSUPPORTED, false, "onFailure",
                        "%s: of a compensation expected ask (a person decides) or continue (it "
                        "counts as failed)",
                        on_failure_name(policy));
    }
    if (step->rules->policy.on_verify == ON_FAILURE_REPLAN) {
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
    struct inner_reader in;
    enum bt_code code;
    plan_reader_inside(s, document, &in);
    in.policy.step.on_failure = ON_FAILURE_ASK; /* without it a failure would be seen by nobody */
    in.policy.step.scope = SCOPE_NONE;
    in.policy.scope_given = true;
    in.policy.undo = UNDO_ON_FAILURE;
    code = plan_reader_body(&in.r);
    if (code == BT_OK) {
        check_end(at, &in.r.plan->steps[0]);
        plan_body_agents(s, in.r.plan);
        code = plan_write_compensation(in.r.plan, out, s->r->err);
    }
    report_inner(at, &in.problems, s->r->problems);
    plan_reader_done(&in.r);
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
        s->step->rules->compensate = value;
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
        code =
            body.bad != BT_OK ? reader_nomem(s->r) : read_body(s, &at, doc_from_buf(&body), &made);
        code = code == BT_OK ? buf_check(&made, s->r->err) : code;
        if (code == BT_OK && s->r->problems->errors == errors) {
            s->step->rules->compensate = doc_copy(s->r->arena, doc_from_buf(&made));
            code = s->step->rules->compensate.ptr == NULL ? reader_nomem(s->r) : BT_OK;
        }
        buf_done(&made);
        buf_done(&body);
    }
    if (s->step->rules->compensate.ptr != NULL && s->r->policy->undo == UNDO_NEVER &&
        !s->r->canonical) {
        location_report(&s->at, PROBLEM_STYLE, true, "compensate",
                        "never runs: policy.compensate of the plan is false");
    }
    s->step->undoes = s->step->rules->compensate.ptr != NULL || names_it(s->step->rules->child);
    return code;
}

/* ---- tools ---- */

static void check_entry(struct step_reader *s, struct doc entry, uint32_t i)
{
    static const char *const right =
        "expected \"agent\", \"agent/skill\", or {tool: \"agent/skill\", "
        "approval: true}";
    const enum doc_kind kind = doc_head(entry).kind;
    struct str agent;
    struct str skill;
    bool approval;
    char field[32];

    (void)snprintf(field, sizeof field, "tools[%u]", i);
    if (kind != DOC_STR && kind != DOC_MAP) {
        location_report(&s->at, PROBLEM_INVALID_FIELD, false, field, "%s", right);
        return;
    }
    const struct doc wish = doc_get(entry, STR_LIT("approval"));
    const struct str tool = plan_tool_entry(entry, &approval);
    const uint32_t known =
        (doc_get(entry, STR_LIT("tool")).ptr != NULL ? 1u : 0) + (wish.ptr != NULL ? 1u : 0);
    if (!plan_tool_split(tool, &agent, &skill) ||
        (kind == DOC_MAP &&
         (doc_head(entry).n != known || (wish.ptr != NULL && doc_head(wish).kind != DOC_BOOL)))) {
        location_report(&s->at, PROBLEM_INVALID_FIELD, false, field, "%s", right);
    } else if (plan_agent_check_known(s->r, &s->at, field, agent)) {
        plan_agent_check_permitted(s->r, &s->at, agent);
        buf_add(&s->r->below, &agent, sizeof agent); /* the plan may use it */
        if (skill.len > 0 && !plan_agent_has_skill(s->r, agent, skill)) {
            location_report(&s->at, PROBLEM_MISSING_SKILL, false, field,
                            "agent %.*s has no skill \"%.*s\"", STR_ARG(agent), STR_ARG(skill));
        }
    }
}

void plan_step_tools(struct step_reader *s)
{
    const struct doc value = s->values[STEP_TOOLS];
    struct doc_cursor c = doc_cursor(value);
    struct doc_head head;

    if (value.ptr == NULL || s->r->canonical) {
        s->step->rules->tools = value;
        return;
    }
    if (!doc_next(&c, &head) || head.kind != DOC_ARRAY) {
        location_report(&s->at, PROBLEM_INVALID_FIELD, false, "tools", "expected a list");
    } else if (head.n > LIMIT_SKILLS) {
        location_report(&s->at, PROBLEM_LIMIT, false, "tools", "%u entries, at most %d", head.n,
                        LIMIT_SKILLS);
    } else if (s->step->type != STEP_TYPE_TASK) {
        location_report(&s->at, PROBLEM_INVALID_FIELD, false, "tools",
                        "are for the work of an agent; leave them out");
    } else {
        for (uint32_t i = 0; i < head.n; i++) {
            check_entry(s, doc_skip(&c), i);
        }
        s->step->rules->tools = value;
    }
}
