/*
 * Steps with children: `forEach`, `repeat`, `plan`. What is done for one item or round is read as a
 * plan of its own, by the rules of this one, and its problems are reported for the step.
 */
#include <stdio.h>

#include "protocol/base/map.h"
#include "supervisor/core/plan/template.h"
#include "supervisor/plan/child_read_internal.h"
#include "supervisor/plan/flow/child.h"
#include "supervisor/plan/flow/condition.h"
#include "supervisor/plan/flow/switch.h"
#include "supervisor/plan/recipe.h"

enum { BODY_BYTES = LIMIT_CONTROL_BYTES * 2 };

/* Members of the step that are about the step itself, and not about its items or rounds. */
static bool is_outer(uint8_t field)
{
    switch (field) {
    case STEP_ID:
    case STEP_DEPS:
    case STEP_RUN_IF:
    case STEP_WHEN:
    case STEP_AFTER_ANY_END:
    case STEP_REVISION:
    case STEP_SUPERSEDED:
    case STEP_STATUS:
    case STEP_FOR_EACH:
    case STEP_AS:
    case STEP_MAX_ITEMS:
    case STEP_ITEM_FAILURE:
    case STEP_CONCURRENCY:
    case STEP_GROUP:
    case STEP_REPEAT:
    case STEP_PLAN:
    case STEP_CHILD:
    case STEP_ITEM:
    case STEP_INDEX:
    case COM_ON_FAILURE:
    case COM_CRITICAL:
        return true;
    default:
        return false;
    }
}

bool plan_child_is(const struct step_reader *s)
{
    return s->values[STEP_FOR_EACH].ptr != NULL || s->values[STEP_REPEAT].ptr != NULL ||
           s->values[STEP_PLAN].ptr != NULL || s->values[STEP_CHILD].ptr != NULL;
}

static bool is_sub(const struct step_reader *s)
{
    return s->values[STEP_PLAN].ptr != NULL;
}

void plan_child_outer(struct step_reader *s)
{
    s->step->type = STEP_TYPE_PLAN;
    if (s->r->canonical) {
        return;
    }
    for (uint8_t i = 0; i < STEP_FIELD_COUNT; i++) {
        const bool kept = is_sub(s) || i == STEP_TASK || is_outer(i);
        s->inner[i] = s->values[i];
        s->values[i] = kept ? s->values[i] : (struct doc){NULL, 0};
    }
}

void plan_child_policy(struct step_reader *s)
{
    struct plan_step *step = s->step;
    struct step_policy *p = &step->rules->policy;
    step->agent = AGENT_NONE;
    p->effects = EFFECTS_IDEMPOTENT;
    if (s->r->canonical) {
        return;
    }
    if (!is_sub(s) || s->values[COM_RETRIES].ptr == NULL) {
        p->max_retries = 0; /* the steps of the child have theirs */
    }
    if (!is_sub(s) || s->values[STEP_TIMEOUT].ptr == NULL) {
        p->timeout_ms = 0;
    }
    if (!is_sub(s) || s->values[COM_STEP_LIMIT].ptr == NULL) {
        p->limit_ms = 0;
    }
    p->idle_ms = p->queue_timeout_ms = p->agent_wait_ms = 0;
    if (s->values[COM_ESTIMATE].ptr == NULL) {
        p->estimate_tokens = p->estimate_micros = 0;
    }
    if (s->values[COM_APPROVAL].ptr == NULL) {
        p->requires_approval = false;
    }
    if (s->values[COM_GATE].ptr == NULL) {
        step->rules->gate_with = step->rules->gate_skill = (struct str){NULL, 0};
        step->rules->gate_agent = AGENT_NONE;
    }
    if (s->values[COM_VERIFY_WITH].ptr == NULL) {
        step->rules->verify_with = step->rules->verify_skill = (struct str){NULL, 0};
        step->rules->verify_agent = AGENT_NONE;
    }
    s->r->plan->n_alternatives -= step->alternatives_n;
    s->r->fallbacks.len -= step->alternatives_n * sizeof(struct str);
    step->alternatives_n = 0;
    s->gate_given = true; /* the plan's gate is for the steps of the child */
}

/* ---- the body ---- */

/* A problem of the body, as one of the step. */
static void report_inner(struct step_reader *s, const struct problems *inner)
{
    for (uint32_t i = 0; i < inner->n; i++) {
        const struct problem *p = &inner->at[i];
        const bool same = str_eq(str_from(p->step_id), s->step->step_id);
        const bool named = p->step_id[0] != '\0' && !same;
        if (same && s->inner[STEP_GROUP].ptr == NULL && p->category == PROBLEM_UNSUPPORTED) {
            continue; /* the step itself was read, too */
        }
        location_report(&s->at, p->category, p->warning, p->field, "%s%s%s%s",
                        named ? "in step \"" : "", named ? p->step_id : "", named ? "\": " : "",
                        p->message);
    }
    s->r->problems->total += inner->total > inner->n ? inner->total - inner->n : 0;
}

/* {steps: [...]}: the list as given, or the step itself without what is about the outer step. */
static void put_body(struct step_reader *s, struct doc source, struct buf *out)
{
    struct doc_cursor c = doc_cursor(source);
    struct doc_head head;
    uint32_t n = 0;
    doc_put_map(out, 1);
    doc_put_cstr(out, "steps");
    if (s->inner[STEP_GROUP].ptr != NULL) {
        doc_put_doc(out, s->inner[STEP_GROUP]);
        return;
    }
    for (int pass = 0; pass < 2; pass++) {
        c = doc_cursor(source);
        (void)doc_next(&c, &head);
        for (uint32_t i = 0; i < head.n; i++) {
            const struct doc key = doc_skip(&c);
            const struct doc value = doc_skip(&c);
            if (is_outer(plan_step_field(doc_string(key)))) {
                continue;
            }
            n += pass == 0 ? 1 : 0;
            if (pass == 1) {
                doc_put_doc(out, key);
                doc_put_doc(out, value);
            }
        }
        if (pass == 0) {
            doc_put_array(out, 1);
            doc_put_map(out, n + 2);
            doc_put_cstr(out, "stepId");
            doc_put_str(out, s->step->step_id);
            doc_put_cstr(out, "onFailure");
            doc_put_cstr(out, "abort");
        }
    }
}

void plan_body_policy(const struct step_reader *s, struct plan_policy *ret)
{
    *ret = *s->r->policy;
    ret->about = (struct plan_about){0};
    ret->step.on_failure = ON_FAILURE_ABORT;
    ret->step.on_verify = /* nothing inside is replanned */
        ret->step.on_verify == ON_FAILURE_REPLAN ? ON_FAILURE_RETRY : ret->step.on_verify;
    ret->signoff = false;
    ret->plan_timeout_ms = 0;
    ret->budget_tokens = ret->budget_micros = 0;
    ret->synthesis = (struct synthesis_choice){0};
    ret->synthesis_given = ret->concurrency_given = false; /* nobody said it of the body */
    ret->job = (struct plan_job){.kind = JOB_NONE};
}

/* Each step comes after the one before it: in a child with items the plan is no chain. */
static enum bt_code unchain(struct plan_reader *r, uint32_t concurrency)
{
    struct plan *p = r->plan;
    if (p->chain) {
        p->deps = arena_alloc(r->arena, (p->n_steps + 1) * sizeof p->deps[0]);
        p->dependents = arena_alloc(r->arena, (p->n_steps + 1) * sizeof p->dependents[0]);
        if (p->deps == NULL || p->dependents == NULL) {
            return reader_nomem(r);
        }
        p->n_edges = 0;
        for (uint32_t i = 0; i < p->n_steps; i++) {
            struct plan_step *step = &p->steps[i];
            step->deps_at = p->n_edges;
            step->deps_n = i > 0 ? 1 : 0;
            if (i > 0) {
                p->deps[p->n_edges++] = i - 1;
            }
            step->rules->policy.scope =
                step->rules->policy.scope == SCOPE_ALL && !r->policy->scope_given
                    ? SCOPE_DEPS
                    : step->rules->policy.scope;
        }
        if (!r->policy->scope_given) {
            r->policy->step.scope = SCOPE_DEPS;
        }
    }
    p->chain = false;
    p->max_concurrency = r->policy->max_concurrency = concurrency;
    return BT_OK;
}

static void check_step(struct step_reader *s, const struct child_body *body, struct plan_step *step)
{
    const enum on_failure policy = step->rules->policy.on_failure;
    if (body->items && step->step_id.len > LIMIT_ID_BYTES - CHILD_INDEX_BYTES) {
        location_report(&s->at, PROBLEM_LIMIT, false, "stepId",
                        "\"%.*s\" is too long for a step inside forEach: its index follows it, so "
                        "at most %u bytes",
                        STR_ARG(step->step_id), (unsigned)(LIMIT_ID_BYTES - CHILD_INDEX_BYTES));
    }
    if (policy == ON_FAILURE_REPLAN || step->rules->policy.on_verify == ON_FAILURE_REPLAN) {
        location_report(&s->at, PROBLEM_UNSUPPORTED, false,
                        policy == ON_FAILURE_REPLAN ? "onFailure" : "onVerificationFailure",
                        "replan: not of a step inside; set onFailure on the step around it");
    }
    if (body->goes_on && policy == ON_FAILURE_RETRY) {
        location_report(&s->at, PROBLEM_UNSUPPORTED, false, "onFailure",
                        "retry: with onItemFailure continue give maxRetries and retryOn instead");
    }
    step->rules->policy.on_failure =
        body->goes_on && policy == ON_FAILURE_ABORT ? ON_FAILURE_CONTINUE : policy;
}

void plan_body_agents(struct step_reader *s, const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->agents.n; i++) {
        const struct str id = plan->agents.ids[i];
        plan_agent_check_permitted(s->r, &s->at, id);
        if (s->r->granted_only) {
            (void)plan_agent_check_granted(s->r, &s->at, "agentId", id);
        }
        buf_add(&s->r->below, &id, sizeof id);
    }
}

void plan_reader_inside(const struct step_reader *s, struct doc document, struct inner_reader *ret)
{
    ret->problems = (struct problems){.at = ret->found, .cap = INNER_PROBLEMS_MAX};
    ret->request = (struct plan_request){.plan = document,
                                         .defaults = s->r->request->defaults,
                                         .registry = s->r->registry,
                                         .lenient = s->r->reported.unknown.lenient};
    ret->why = (struct bt_error){.code = BT_OK};
    ret->r = (struct plan_reader){.request = &ret->request,
                                  .registry = s->r->registry,
                                  .arena = s->r->arena,
                                  .problems = &ret->problems,
                                  .err = &ret->why,
                                  .base = &ret->policy,
                                  .depth = s->r->depth + 1,
                                  .n_words = s->r->n_words,
                                  .outer = true};
    memcpy(ret->r.words, s->r->words, sizeof ret->r.words);
    plan_body_policy(s, &ret->policy);
}

/* Reads the body and appends its canonical document. */
static enum bt_code read_body(struct step_reader *s, struct doc document, struct child_body *body,
                              struct buf *out)
{
    struct inner_reader in;
    struct plan_reader *r = &in.r;
    enum bt_code code;
    plan_reader_inside(s, document, &in);
    for (uint32_t i = 0; i < body->n_words && r->n_words < CHILD_WORDS_MAX; i++) {
        r->words[r->n_words] = body->words[i]; /* item is there once, however deep */
        r->n_words += !plan_child_has_word(r, body->words[i]);
    }
    code = plan_reader_body(r);
    if (code == BT_OK && body->items) {
        code = unchain(r, body->concurrency);
        plan_link(r->plan);
    }
    for (uint32_t i = 0; code == BT_OK && i < r->plan->n_steps; i++) {
        check_step(s, body, &r->plan->steps[i]);
    }
    if (code == BT_OK) {
        plan_body_agents(s, r->plan);
        code = plan_write(r->plan, out, s->r->err);
    }
    report_inner(s, &in.problems);
    plan_reader_done(r);
    return code == BT_INVALID ? BT_OK : code == BT_NOMEM ? reader_nomem(s->r) : code;
}

/* ---- the three kinds ---- */

static void put_number(struct buf *out, const char *name, uint64_t v)
{
    doc_put_cstr(out, name);
    doc_put_u64(out, v);
}

static void put_text(struct buf *out, const char *name, struct str v)
{
    doc_put_cstr(out, name);
    doc_put_str(out, v.len > 0 ? v : (struct str){"", 0});
}

/* What a group cannot have, because each of its steps has its own. */
static void check_group(struct step_reader *s)
{
    for (uint8_t i = 0; i < STEP_FIELD_COUNT; i++) {
        if (s->inner[i].ptr != NULL && i != STEP_TASK && !is_outer(i)) {
            location_report(&s->at, PROBLEM_INVALID_FIELD, false, plan_step_field_name(i),
                            "belongs to the steps inside: this step has steps of its own");
        }
    }
}

/* Reports what would be right when the value is no map. */
static bool is_map(struct step_reader *s, const char *field, uint8_t value, const char *example)
{
    char got[64];
    if (doc_head(s->values[value]).kind == DOC_MAP) {
        return true;
    }
    value_describe(s->values[value], got, sizeof got);
    location_report(&s->at, PROBLEM_INVALID_FIELD, false, field, "expected %s, got %s", example,
                    got);
    return false;
}

/* A list, or a text that is one template. */
static void check_list(struct step_reader *s, struct doc list)
{
    struct str words[CHILD_WORDS_MAX + 1] = {STR_LIT("results")};
    const struct str text = doc_string(list);
    struct template_ref t;
    size_t from = 0;
    uint32_t word;
    char got[64];
    memcpy(words + 1, s->r->words, s->r->n_words * sizeof words[0]);
    const bool only = text.ptr != NULL &&
                      template_next_in(words, s->r->n_words + 1, text, &from, &t, &word) &&
                      t.kind == TEMPLATE_OK && t.at == 0 && t.len == text.len;
    if (!only && doc_head(list).kind != DOC_ARRAY) {
        value_describe(list, got, sizeof got);
        location_report(&s->at, PROBLEM_INVALID_FIELD, false, "forEach",
                        "expected a list, or one template whose value is a list "
                        "(\"{{results.<stepId>.<path>}}\"), got %s",
                        got);
    }
}

static enum bt_code read_map(struct step_reader *s, struct doc source, struct buf *out)
{
    static const char *const ends[] = {"fail", "continue"};
    struct child_body body = {.items = true,
                              .words = {STR_LIT("item"), STR_LIT("index")},
                              .n_words = 2,
                              .concurrency = s->r->policy->max_concurrency};
    uint64_t most = CHILD_ITEMS;
    uint64_t concurrency = body.concurrency;
    uint32_t end = 0;
    struct str as = {"", 0};
    bool oom = false;
    struct buf steps;
    (void)value_u64(&s->at, "maxItems", s->values[STEP_MAX_ITEMS], 1, CHILD_ITEMS_MAX, &most);
    (void)value_u64(&s->at, "maxConcurrency", s->values[STEP_CONCURRENCY], 1, LIMIT_STEPS,
                    &concurrency);
    (void)value_choice(&s->at, "onItemFailure", s->values[STEP_ITEM_FAILURE], ends, 2, &end);
    const bool named = value_id(&s->at, "as", s->values[STEP_AS], s->r->arena, &as, &oom);
    check_list(s, s->values[STEP_FOR_EACH]);
    body.goes_on = end == 1;
    body.concurrency = (uint32_t)concurrency;
    if (named) {
        plan_child_check_word(s, "as", as);
        body.words[body.n_words++] = as;
    }
    buf_init(&steps, BODY_BYTES);
    put_body(s, source, &steps);
    doc_put_map(out, 6);
    put_text(out, "kind", STR_LIT("forEach"));
    doc_put_cstr(out, "list");
    doc_put_doc(out, s->values[STEP_FOR_EACH]);
    put_text(out, "as", as);
    put_number(out, "maxItems", most);
    put_text(out, "onItemFailure", str_from(ends[end]));
    doc_put_cstr(out, "body");
    const enum bt_code code = oom || steps.bad != BT_OK
                                  ? reader_nomem(s->r)
                                  : read_body(s, doc_from_buf(&steps), &body, out);
    buf_done(&steps);
    return code;
}

enum { REPEAT_UNTIL, REPEAT_WHILE, REPEAT_MAX, REPEAT_DELAY, REPEAT_ON_MAX, REPEAT_FIELD_COUNT };

static const struct field_name repeat_names[] = {
#define FIELDS_REPEAT
#include "supervisor/plan/field_names.def"
};

static struct doc read_condition(const struct location *at, const struct doc *values,
                                 bool *ret_while)
{
    const bool both = values[REPEAT_UNTIL].ptr != NULL && values[REPEAT_WHILE].ptr != NULL;
    const bool is_while = values[REPEAT_UNTIL].ptr == NULL;
    const struct doc condition = values[is_while ? REPEAT_WHILE : REPEAT_UNTIL];
    struct bt_error why = {.code = BT_OK};
    *ret_while = is_while;
    if (condition.ptr == NULL || both) {
        location_report(at, PROBLEM_INVALID_FIELD, false, "until",
                        both ? "is given with while; give one of them"
                             : "is missing; give until or while, a condition over the last round");
        return (struct doc){NULL, 0};
    }
    if (condition_check(condition, NULL, NULL, &why) != BT_OK) {
        location_report(at, why.code == BT_LIMIT ? PROBLEM_LIMIT : PROBLEM_INVALID_FIELD, false,
                        is_while ? "while" : "until", "%s", why.msg);
    }
    return condition;
}

static enum bt_code read_loop(struct step_reader *s, struct doc source, struct buf *out)
{
    static const char *const ends[] = {"fail", "accept"};
    struct child_body body = {.words = {STR_LIT("iteration"), STR_LIT("previous")}, .n_words = 2};
    struct doc values[REPEAT_FIELD_COUNT] = {{NULL, 0}};
    struct fields_reported reported = {{0}};
    const struct field_table table = {repeat_names, sizeof repeat_names / sizeof repeat_names[0],
                                      &reported, &s->r->reported.unknown};
    char prefix[96];
    const struct location at = location_below(&s->at, "repeat", prefix);
    uint64_t most = 0;
    uint64_t delay = 0;
    uint32_t end = 0;
    bool is_while = false;
    struct buf steps;
    if (!is_map(s, "repeat", STEP_REPEAT,
                "{until: {\"results.<stepId>.<path>\": {\"gt\": 3}}, max: 20, delayMs: 1000}")) {
        return BT_OK;
    }
    fields_read(&table, s->values[STEP_REPEAT], &at, values);
    if (values[REPEAT_MAX].ptr == NULL) {
        location_report(&at, PROBLEM_INVALID_FIELD, false, "max",
                        "is missing; a loop needs the most rounds that it may have");
    }
    (void)value_u64(&at, "max", values[REPEAT_MAX], 1, CHILD_ROUNDS_MAX, &most);
    (void)value_u64(&at, "delayMs", values[REPEAT_DELAY], 0, POLICY_MS_MAX, &delay);
    (void)value_choice(&at, "onMax", values[REPEAT_ON_MAX], ends, 2, &end);
    const struct doc condition = read_condition(&at, values, &is_while);
    buf_init(&steps, BODY_BYTES);
    put_body(s, source, &steps);
    doc_put_map(out, 6);
    put_text(out, "kind", STR_LIT("repeat"));
    doc_put_cstr(out, is_while ? "while" : "until");
    doc_put_doc(out, condition);
    put_number(out, "max", most);
    put_number(out, "delayMs", delay);
    put_text(out, "onMax", str_from(ends[end]));
    doc_put_cstr(out, "body");
    const enum bt_code code =
        steps.bad != BT_OK ? reader_nomem(s->r) : read_body(s, doc_from_buf(&steps), &body, out);
    buf_done(&steps);
    return code;
}

enum { SUB_DOCUMENT, SUB_RECIPE, SUB_INPUTS, SUB_FIELD_COUNT };

static const struct field_name sub_names[] = {
#define FIELDS_SUBPLAN
#include "supervisor/plan/field_names.def"
};

/* The plan is checked now, a recipe as far as its inputs are not known yet. */
static enum bt_code check_document(struct step_reader *s, struct doc document)
{
    struct problem found[INNER_PROBLEMS_MAX];
    struct problems inner = {.at = found, .cap = INNER_PROBLEMS_MAX};
    struct bt_error why = {.code = BT_OK};
    struct plan *plan = NULL;
    enum bt_code code;
    if (recipe_is(document)) {
        code = recipe_check(document, s->r->registry, &inner, &why);
    } else {
        const struct plan_request request = {.plan = document,
                                             .defaults = s->r->request->defaults,
                                             .registry = s->r->registry,
                                             .lenient = s->r->reported.unknown.lenient,
                                             .depth = s->r->depth + 1};
        code = plan_read_request(&request, s->r->arena, &plan, &inner, NULL, &why);
    }
    if (code == BT_OK && plan != NULL) {
        plan_body_agents(s, plan);
    }
    report_inner(s, &inner);
    if (code == BT_INVALID && inner.errors == 0) {
        location_report(&s->at, PROBLEM_INVALID_FIELD, false, "plan", "%s", why.msg);
    }
    return code == BT_NOMEM ? reader_nomem(s->r) : BT_OK;
}

static enum bt_code read_sub(struct step_reader *s, struct buf *out)
{
    struct doc values[SUB_FIELD_COUNT] = {{NULL, 0}};
    struct fields_reported reported = {{0}};
    const struct field_table table = {sub_names, sizeof sub_names / sizeof sub_names[0], &reported,
                                      &s->r->reported.unknown};
    char prefix[96];
    const struct location at = location_below(&s->at, "plan", prefix);
    if (!is_map(s, "plan", STEP_PLAN, "{recipe: NAME, inputs: {...}} or {document: {...}}")) {
        return BT_OK;
    }
    fields_read(&table, s->values[STEP_PLAN], &at, values);
    if (values[SUB_DOCUMENT].ptr == NULL) {
        location_report(&at, PROBLEM_INVALID_FIELD, false,
                        values[SUB_RECIPE].ptr != NULL ? "recipe" : "document",
                        values[SUB_RECIPE].ptr != NULL
                            ? "the supervisor has no recipes; baton puts the recipe's document "
                              "here, any other client gives it as document"
                            : "is missing; give the plan or recipe that the step runs");
        return BT_OK;
    }
    if (!value_map(&at, "document", values[SUB_DOCUMENT]) ||
        (values[SUB_INPUTS].ptr != NULL && !value_map(&at, "inputs", values[SUB_INPUTS]))) {
        return BT_OK;
    }
    if (values[SUB_INPUTS].ptr != NULL && !recipe_is(values[SUB_DOCUMENT])) {
        location_report(&at, PROBLEM_INVALID_FIELD, false, "inputs",
                        "the document is no recipe: it has no inputs to fill in");
    }
    doc_put_map(out, values[SUB_INPUTS].ptr != NULL ? 3 : 2);
    put_text(out, "kind", STR_LIT("plan"));
    doc_put_cstr(out, "document");
    doc_put_doc(out, values[SUB_DOCUMENT]);
    if (values[SUB_INPUTS].ptr != NULL) {
        doc_put_cstr(out, "inputs");
        doc_put_doc(out, values[SUB_INPUTS]);
    }
    return check_document(s, values[SUB_DOCUMENT]);
}

static void check_kinds(struct step_reader *s)
{
    const int n = (s->values[STEP_FOR_EACH].ptr != NULL) + (s->values[STEP_REPEAT].ptr != NULL) +
                  (s->values[STEP_PLAN].ptr != NULL);
    if (n > 1) {
        location_report(&s->at, PROBLEM_INVALID_FIELD, false, "forEach",
                        "forEach, repeat and plan do not go together; put the inner one into a "
                        "step of steps");
    }
    if (s->values[STEP_FOR_EACH].ptr == NULL) {
        static const uint8_t only[] = {STEP_AS, STEP_MAX_ITEMS, STEP_ITEM_FAILURE,
                                       STEP_CONCURRENCY};
        for (size_t i = 0; i < sizeof only; i++) {
            if (s->values[only[i]].ptr != NULL) {
                location_report(&s->at, PROBLEM_INVALID_FIELD, false, plan_step_field_name(only[i]),
                                "belongs to a step with forEach");
            }
        }
    }
    if (s->values[STEP_GROUP].ptr != NULL && !is_sub(s)) {
        check_group(s);
    }
}

enum bt_code plan_child_read(struct step_reader *s, struct doc source)
{
    struct buf child;
    enum bt_code code = BT_OK;
    if (s->r->canonical) {
        s->step->rules->child = s->values[STEP_CHILD];
        s->step->rules->loop = child_loop(s->step->rules->child);
        return BT_OK;
    }
    check_kinds(s);
    if (s->r->depth >= CHILD_DEPTH_MAX) {
        location_report(&s->at, PROBLEM_LIMIT, false, "forEach",
                        "forEach, repeat and plan are nested more than %d deep",
                        (int)CHILD_DEPTH_MAX);
        return BT_OK;
    }
    buf_init(&child, LIMIT_STEP_BYTES);
    code = s->values[STEP_FOR_EACH].ptr != NULL ? read_map(s, source, &child)
           : s->values[STEP_REPEAT].ptr != NULL ? read_loop(s, source, &child)
                                                : read_sub(s, &child);
    code = code == BT_OK ? buf_check(&child, s->r->err) : code;
    if (code == BT_OK && s->r->problems->errors == 0) {
        s->step->rules->child = doc_copy(s->r->arena, doc_from_buf(&child));
        code = s->step->rules->child.ptr == NULL ? reader_nomem(s->r) : BT_OK;
        s->step->rules->loop = child_loop(s->step->rules->child);
    }
    buf_done(&child);
    return code;
}
