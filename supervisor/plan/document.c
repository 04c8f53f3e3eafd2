/*
 * The top level of a document: {steps}, {tasks}, {workflow}, {phases: [{tasks}]}, {plan: {steps}},
 * or a list of steps (C02, F03). Switches become conditions of their steps.
 */
#include "supervisor/plan/flow/switch.h"
#include "supervisor/plan/reader_internal.h"

enum {
    PLAN_STEPS,
    PLAN_PHASES,
    PLAN_NESTED,
    PLAN_GOAL,
    PLAN_SESSION,
    PLAN_PLANNER,
    PLAN_POLICY,
    PLAN_INPUTS,
    PLAN_GRANTS,
    PLAN_REVISION,
    PLAN_REUSE,
    PLAN_AFTER,
    PLAN_BEFORE,
    PLAN_STEP,
    PLAN_DESCRIPTION,
    PLAN_REASONING,
    PLAN_TOTAL_TIME,
    PLAN_CRITERIA,
    PLAN_CONSTRAINTS,
    PLAN_TOKENS,
    PLAN_N_STEPS,
    PLAN_PLANNING,
    PLAN_JOB,
    PLAN_DRY_RUN,
    PLAN_CHILD,
    PLAN_FIELD_COUNT
};

static const struct field_name plan_names[] = {
#define FIELDS_DOCUMENT
#include "supervisor/plan/field_names.def"
};

enum { PHASE_STEPS, PHASE_DEPS, PHASE_FIELD_COUNT };

static const struct field_name phase_names[] = {
#define FIELDS_PHASE
#include "supervisor/plan/field_names.def"
};

#define TABLE(names, reported, r)                                                                  \
    {                                                                                              \
        (names), sizeof(names) / sizeof(names)[0], &(r)->reported, &(r)->said_unknown              \
    }

static struct location top(const struct plan_reader *r)
{
    return (struct location){.problems = r->problems, .prefix = ""};
}

/* ---- steps ---- */

static bool over_limit(struct plan_reader *r, uint32_t n)
{
    const struct location at = top(r);
    if (n <= LIMIT_STEPS) {
        return false;
    }
    location_report(&at, PROBLEM_LIMIT, false, "steps", "%u steps are more than the %u of one plan",
                    n, (unsigned)LIMIT_STEPS);
    return true;
}

/* The steps of a list, one after the other. */
struct taking {
    struct plan_reader *r;
    struct doc deps; /* of the phase */
    struct doc item; /* of a child plan with items */
    uint32_t index;
    uint32_t n;
};

static bool take_step(void *self, struct doc step)
{
    struct taking *t = self;
    if (t->r->item_of != NULL && t->n < LIMIT_STEPS) {
        t->r->item_of[t->n] = t->item;
        t->r->index_of[t->n] = t->index;
    }
    if (over_limit(t->r, t->r->first + t->n + 1)) {
        return false;
    }
    if (t->r->phase_deps != NULL) {
        t->r->phase_deps[t->n] = t->deps;
    }
    t->r->steps[t->n++] = step;
    return true;
}

static void report_switch(void *self, bool limit, const char *text)
{
    const struct taking *t = self;
    const struct location at = top(t->r);
    location_report(&at, limit ? PROBLEM_LIMIT : PROBLEM_INVALID_FIELD, false, "switch", "%s",
                    text);
}

/* Takes the elements of the list as steps, and those of its switches. */
static enum bt_code take_elements(struct taking *t, struct doc list)
{
    const struct switch_reader reader = {.self = t, .step = take_step, .problem = report_switch};
    return switch_flatten(list, t->r->arena, &reader, t->r->err);
}

/* Room for the steps of the list: as many as it has, unless switches bring more. */
static uint32_t room_for(struct doc list, uint32_t n)
{
    struct doc_cursor c = doc_cursor(list);
    struct doc_head head;
    bool branches = false;
    (void)doc_next(&c, &head);
    for (uint32_t i = 0; i < n && !branches; i++) {
        branches = switch_is(doc_skip(&c));
    }
    return branches ? LIMIT_STEPS : n;
}

/* The steps of a map's child: the list once for each item. */
static enum bt_code take_items(struct plan_reader *r, struct doc list)
{
    const uint32_t each = doc_head(list).n;
    struct taking t = {.r = r};
    struct doc_cursor items = doc_cursor(r->items);
    struct doc_head head;
    enum bt_code code = BT_OK;
    (void)doc_next(&items, &head);
    if (each > 0 && head.n > LIMIT_STEPS / each) {
        (void)over_limit(r, LIMIT_STEPS + 1);
        return BT_OK;
    }
    const size_t n = (size_t)each * head.n + 1;
    r->steps = arena_alloc(&r->scratch, n * sizeof r->steps[0]);
    r->item_of = arena_alloc(&r->scratch, n * sizeof r->item_of[0]);
    r->index_of = arena_alloc(&r->scratch, n * sizeof r->index_of[0]);
    if (r->steps == NULL || r->item_of == NULL || r->index_of == NULL) {
        return reader_nomem(r);
    }
    for (t.index = 0; t.index < head.n && code == BT_OK; t.index++) {
        t.item = doc_skip(&items);
        code = take_elements(&t, list);
    }
    r->plan->n_steps = r->first + t.n;
    return code;
}

static enum bt_code take_list(struct plan_reader *r, struct doc list)
{
    if (r->items.ptr != NULL) {
        return take_items(r, list);
    }
    struct taking t = {.r = r};
    const struct doc_head head = doc_head(list);
    if (over_limit(r, r->first + head.n)) {
        return BT_OK;
    }
    r->steps = arena_alloc(&r->scratch, (room_for(list, head.n) + 1) * sizeof r->steps[0]);
    if (r->steps == NULL) {
        return reader_nomem(r);
    }
    const enum bt_code code = take_elements(&t, list);
    r->plan->n_steps = r->first + t.n;
    return code;
}

/* Phases (S003): their steps as one list; each also depends on what its phase depends on. */
static enum bt_code take_phases(struct plan_reader *r, struct doc phases)
{
    const uint32_t n_phases = doc_head(phases).n;
    struct fields_reported reported = {{0}};
    struct taking t = {.r = r};
    enum bt_code code = BT_OK;
    const struct field_table table = {phase_names, sizeof phase_names / sizeof phase_names[0],
                                      &reported, &r->reported.unknown};
    if (over_limit(r, r->first + n_phases)) {
        return BT_OK;
    }
    r->steps = arena_alloc(&r->scratch, (LIMIT_STEPS + 1) * sizeof r->steps[0]);
    r->phase_deps = arena_alloc(&r->scratch, (LIMIT_STEPS + 1) * sizeof r->phase_deps[0]);
    if (r->steps == NULL || r->phase_deps == NULL) {
        return reader_nomem(r);
    }
    struct doc_cursor c = doc_cursor(phases);
    struct doc_head head;
    (void)doc_next(&c, &head);
    for (uint32_t i = 0; i < n_phases && code == BT_OK; i++) {
        const struct location at = {.problems = r->problems, .prefix = "phases"};
        struct doc values[PHASE_FIELD_COUNT] = {{NULL, 0}};
        const struct doc phase = doc_skip(&c);
        fields_read(&table, phase, &at, values);
        if (values[PHASE_STEPS].ptr == NULL || doc_head(values[PHASE_STEPS]).kind != DOC_ARRAY) {
            location_report(&at, PROBLEM_INVALID_FIELD, false, "steps",
                            "phase %u has no list of steps", i + 1);
            continue;
        }
        if (over_limit(r, r->first + t.n + doc_head(values[PHASE_STEPS]).n)) {
            return BT_OK;
        }
        t.deps = values[PHASE_DEPS];
        code = take_elements(&t, values[PHASE_STEPS]);
        r->any_deps = r->any_deps || values[PHASE_DEPS].ptr != NULL;
    }
    r->plan->n_steps = r->first + t.n;
    return code;
}

static enum bt_code take_steps(struct plan_reader *r, const struct doc *values)
{
    const struct location at = top(r);
    const bool phases = values[PLAN_STEPS].ptr == NULL && values[PLAN_PHASES].ptr != NULL;
    const struct doc list = phases ? values[PLAN_PHASES] : values[PLAN_STEPS];
    char got[64];
    if (list.ptr == NULL) {
        return BT_OK; /* plan_check reports the empty plan */
    }
    if (doc_head(list).kind != DOC_ARRAY) {
        value_describe(list, got, sizeof got);
        location_report(&at, PROBLEM_INVALID_FIELD, false, phases ? "phases" : "steps",
                        "expected a list of steps, got %s", got);
        return BT_OK;
    }
    return phases ? take_phases(r, list) : take_list(r, list);
}

/* ---- other members ---- */

/* A value of the request wins over the document's. */
static void take_text(struct plan_reader *r, const char *field, struct doc v, struct str given,
                      size_t cap, struct str *ret)
{
    const struct location at = top(r);
    struct str text = {NULL, 0};
    (void)value_string(&at, field, v, &text);
    text = given.len > 0 ? given : text;
    if (text.len > cap) {
        location_report(&at, PROBLEM_LIMIT, false, field, "%zu bytes, at most %zu", text.len, cap);
        return;
    }
    *ret = text;
}

/* A member that has no effect here: an error, so that nobody relies on it. */
static void report_idle(struct plan_reader *r, const char *field, const char *why)
{
    const struct location at = top(r);
    const bool warning = r->reported.unknown.lenient;
    if (!r->canonical) {
        location_report(&at, warning ? PROBLEM_STYLE : PROBLEM_INVALID_FIELD, warning, field,
                        "%s%s", warning ? "is ignored: " : "has no effect: ", why);
    }
}

/* Members of a change, and the revision of a canonical document. */
static void read_change(struct plan_reader *r, const struct doc *values)
{
    const struct location at = top(r);
    uint64_t revision;
    if (r->canonical) {
        if (value_u64(&at, "revision", values[PLAN_REVISION], 1, LIMIT_REVISIONS, &revision)) {
            r->plan->revision = (uint32_t)revision;
        }
    } else if (r->change != NULL) {
        r->change->reuse = values[PLAN_REUSE];
        (void)value_string(&at, "afterStepId", values[PLAN_AFTER], &r->change->after);
        (void)value_string(&at, "beforeStepId", values[PLAN_BEFORE], &r->change->before);
        (void)value_string(&at, "stepId", values[PLAN_STEP], &r->change->step);
    } else {
        for (uint8_t i = PLAN_REUSE; i <= PLAN_STEP; i++) {
            static const char *const names[] = {"reuse", "afterStepId", "beforeStepId", "stepId"};
            if (values[i].ptr != NULL) {
                report_idle(r, names[i - PLAN_REUSE], "it belongs to a change of a plan");
            }
        }
    }
}

static struct str either(struct str given, struct doc reported)
{
    return given.len > 0 ? given : doc_string(reported);
}

static void read_texts(struct plan_reader *r, const struct doc *values, const struct doc *pending)
{
    const struct plan_request *request = r->request;
    take_text(r, "goal", values[PLAN_GOAL], either(request->goal, pending[PLAN_GOAL]),
              LIMIT_TASK_BYTES, &r->plan->goal);
    take_text(r, "sessionId", values[PLAN_SESSION],
              either(request->session_id, pending[PLAN_SESSION]), LIMIT_ID_BYTES,
              &r->plan->session_id);
    take_text(r, "planner", values[PLAN_PLANNER], either(request->planner, pending[PLAN_PLANNER]),
              LIMIT_ID_BYTES + 16, &r->plan->planner);
}

static void read_own_words(struct plan_reader *r, const struct doc *values)
{
    const struct about_fields f = {.description = values[PLAN_DESCRIPTION],
                                   .reasoning = values[PLAN_REASONING],
                                   .total_time = values[PLAN_TOTAL_TIME],
                                   .success_criteria = values[PLAN_CRITERIA],
                                   .constraints = values[PLAN_CONSTRAINTS],
                                   .tokens = values[PLAN_TOKENS],
                                   .steps = values[PLAN_N_STEPS]};
    plan_about_read(r, &f);
}

/* Reads the request's pending plan, when the document is the answer of its planner. */
static void read_pending(struct plan_reader *r, struct doc *ret)
{
    const struct location at = top(r);
    struct fields_reported reported = {{0}};
    const struct field_table table = {plan_names, sizeof plan_names / sizeof plan_names[0],
                                      &reported, &r->reported.unknown};
    if (r->pending.ptr == NULL) {
        return;
    }
    fields_read(&table, r->pending, &at, ret);
    plan_policy_read(ret[PLAN_POLICY], r->problems, &r->reported, r->policy);
    /* A canonical document has every number; that does not mean that somebody chose it. */
    r->policy->concurrency_given = false;
    r->policy->synthesis_given = false;
}

/* The members of a whole plan. A change keeps the plan's own policy, goal and so on. */
static void read_about(struct plan_reader *r, const struct doc *values)
{
    struct doc pending[PLAN_FIELD_COUNT] = {{NULL, 0}};
    if (r->change != NULL || r->untrusted) {
        if (values[PLAN_POLICY].ptr != NULL) {
            report_idle(r, "policy", "the plan keeps its policy; set the fields in the steps");
        }
    }
    if (r->change != NULL) {
        return;
    }
    read_pending(r, pending);
    const struct doc *base = r->pending.ptr != NULL ? pending : values;
    r->grants = base[PLAN_GRANTS];
    read_texts(r, values, pending);
    if (!r->untrusted) {
        plan_policy_read(values[PLAN_POLICY], r->problems, &r->reported, r->policy);
    }
    read_own_words(r, values);
    if (r->pending.ptr != NULL) {
        const struct about_fields first = {.constraints = pending[PLAN_CONSTRAINTS]};
        plan_about_read(r, &first);
    }
    plan_phases_read(r, base[PLAN_PLANNING], base[PLAN_JOB], base[PLAN_DRY_RUN]);
}

/* The steps come from one place. */
static void check_one_source(struct plan_reader *r, const struct doc *values)
{
    if (values[PLAN_STEPS].ptr != NULL && values[PLAN_PHASES].ptr != NULL) {
        report_idle(r, "phases", "the plan has steps, too; give one of them");
    }
    if (values[PLAN_NESTED].ptr != NULL &&
        (values[PLAN_STEPS].ptr != NULL || values[PLAN_PHASES].ptr != NULL)) {
        report_idle(r, "plan", "the steps are given beside it");
    }
}

static enum bt_code read_map(struct plan_reader *r, struct doc doc)
{
    const struct location at = top(r);
    struct doc values[PLAN_FIELD_COUNT] = {{NULL, 0}};
    const struct field_table table = {plan_names, sizeof plan_names / sizeof plan_names[0],
                                      &r->reported_plan, &r->reported.unknown, &plan_policy_names};
    fields_read(&table, doc, &at, values);
    check_one_source(r, values);
    if (values[PLAN_STEPS].ptr == NULL && values[PLAN_PHASES].ptr == NULL &&
        values[PLAN_NESTED].ptr != NULL) {
        const struct doc inner = values[PLAN_NESTED];
        if (doc_head(inner).kind == DOC_ARRAY) {
            values[PLAN_STEPS] = inner;
        } else {
            location_report(&at, PROBLEM_STYLE, true, "plan", "the plan is read from inside it");
            fields_read(&table, inner, &at, values);
        }
    }
    if (values[PLAN_INPUTS].ptr != NULL) {
        location_report(&at, PROBLEM_INVALID_FIELD, false, "inputs",
                        "this is a recipe; fill in its inputs to make it a plan");
    }
    if (r->canonical && values[PLAN_CHILD].ptr != NULL) {
        child_of_read(values[PLAN_CHILD], &r->plan->child, &r->items);
    }
    read_change(r, values);
    read_about(r, values);
    return take_steps(r, values);
}

enum bt_code plan_document_find(struct plan_reader *r, struct doc doc)
{
    const struct location at = top(r);
    const struct doc none[PLAN_FIELD_COUNT] = {{NULL, 0}};
    enum bt_code code = BT_OK;
    char got[64];
    switch (doc_head(doc).kind) {
    case DOC_MAP:
        code = read_map(r, doc);
        break;
    case DOC_ARRAY:
        location_report(&at, PROBLEM_STYLE, true, "steps", "the list is read as the plan's steps");
        read_about(r, none);
        code = take_list(r, doc);
        break;
    case DOC_NIL:
    case DOC_BOOL:
    case DOC_INT:
    case DOC_UINT:
    case DOC_FLOAT:
    case DOC_STR:
    case DOC_BIN:
        value_describe(doc, got, sizeof got);
        location_report(&at, PROBLEM_INVALID_FIELD, false, "plan",
                        "expected a map with \"steps\", got %s", got);
        break;
    }
    if (code != BT_OK || r->change != NULL) {
        return code;
    }
    /* The plan borrows names from the policy, and the request ends before it. */
    struct doc policy = r->request->policy;
    if (policy.ptr != NULL) {
        policy = doc_copy(r->arena, policy);
        if (policy.ptr == NULL) {
            return reader_nomem(r);
        }
    }
    plan_policy_read(policy, r->problems, &r->reported, r->policy);
    return plan_about_constrain(r, r->request->constraints, r->request->n_constraints);
}
