/* Reads one step of a document into an entry of the plan. */
#include <stdio.h>

#include "protocol/wire/msg.h"
#include "registry/card.h"
#include "supervisor/core/plan/template.h"
#include "supervisor/plan/child_read_internal.h"
#include "supervisor/plan/flow/child.h"
#include "supervisor/plan/flow/child_refs.h"
#include "supervisor/plan/flow/condition.h"

/* The first entry of a field is its canonical name; the rest are the aliases of C02 and F03. */
static const struct field_name step_names[] = {
#define FIELDS_STEP
#define FIELDS_COMMON
#include "supervisor/plan/field_names.def"
};
_Static_assert(sizeof step_names / sizeof step_names[0] <= FIELD_NAMES_MAX, "a bit per name");

/* ---- names ---- */

/* The name of the step of one item: "check[3]". In the arena, or .ptr NULL: out of memory. */
static struct str of_item(struct step_reader *s, struct arena *arena, struct str id)
{
    char text[LIMIT_ID_BYTES + 16];
    (void)snprintf(text, sizeof text, "%.*s[%u]", (int)(id.len < LIMIT_ID_BYTES ? id.len : 64),
                   id.ptr, s->r->index_of[s->ix - s->r->first]);
    return arena_str(arena, str_from(text));
}

static enum bt_code read_id(struct step_reader *s)
{
    bool oom = false;
    char text[32];
    if (s->values[STEP_ID].ptr != NULL) {
        (void)value_id(&s->at, "stepId", s->values[STEP_ID], s->r->arena, &s->step->step_id, &oom);
    }
    if (s->step->step_id.ptr == NULL && !oom) {
        (void)snprintf(text, sizeof text, "step-%u", s->ix + 1);
        s->step->step_id = arena_str(s->r->arena, str_from(text));
        oom = s->step->step_id.ptr == NULL;
    }
    if (s->r->item_of != NULL && !oom) {
        s->step->step_id = of_item(s, s->r->arena, s->step->step_id);
        s->step->item = s->r->item_of[s->ix - s->r->first];
        s->step->index = s->r->index_of[s->ix - s->r->first];
        oom = s->step->step_id.ptr == NULL;
    }
    return oom ? reader_nomem(s->r) : BT_OK;
}

/* A copy of a registry string that lives as long as the plan. */
static enum bt_code keep(struct step_reader *s, struct str text, struct str *ret)
{
    *ret = arena_str(s->r->arena, text);
    return ret->ptr == NULL ? reader_nomem(s->r) : BT_OK;
}

/* The card of the step's agent; NULL when it is not known. */
static const struct msg_card *card_of(const struct step_reader *s)
{
    const struct registry *reg = s->r->registry;
    const uint32_t agent = reg == NULL ? REGISTRY_NONE : registry_agent(reg, s->step->agent_id);
    return agent == REGISTRY_NONE ? NULL : registry_agent_view(reg, agent).card;
}

/* A review is done by a person, a wait by the supervisor. */
static bool names_nobody(struct step_reader *s)
{
    if (plan_step_has_agent(s->step)) {
        return false;
    }
    s->step->agent = AGENT_NONE;
    if (s->values[STEP_AGENT].ptr != NULL || s->values[STEP_SKILL].ptr != NULL) {
        location_report(&s->at, PROBLEM_STYLE, true, "agentId",
                        s->step->type == STEP_TYPE_WAIT
                            ? "is ignored: a step that waits needs no agent"
                        : s->step->type == STEP_TYPE_PLAN
                            ? "is ignored: the steps of the plan inside name their agents"
                            : "is ignored: a person does a human_review");
    }
    return true;
}

static bool is_settled(const struct step_reader *s)
{
    const uint8_t *settled = plan_reader_settled_steps(s->r);
    return settled != NULL && settled[s->ix] != 0;
}

static enum bt_code read_agent(struct step_reader *s)
{
    const struct registry *reg = s->r->registry;
    enum bt_code code = BT_OK;
    if (names_nobody(s)) {
        return BT_OK;
    }
    (void)value_string(&s->at, "agentId", s->values[STEP_AGENT], &s->step->agent_id);
    (void)value_string(&s->at, "skill", s->values[STEP_SKILL], &s->step->skill);
    s->by_skill = s->step->agent_id.len == 0 && s->step->skill.len != 0;
    if (s->by_skill && reg != NULL && !s->r->canonical) {
        const uint32_t agent = plan_agent_with_skill(s->r, s->step->skill);
        if (agent != REGISTRY_NONE) {
            code = keep(s, registry_agent_view(reg, agent).id, &s->step->agent_id);
        }
    }
    if (code == BT_OK && !is_settled(s)) {
        plan_agent_check_permitted(s->r, &s->at, s->step->agent_id);
    }
    s->step->agent = reg == NULL ? REGISTRY_NONE : registry_agent(reg, s->step->agent_id);
    return code;
}

static bool is_blank(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] > ' ') {
            return false;
        }
    }
    return true;
}

/* Whether the step may omit the task: a skill with its parameters says it all. Agents forget it. */
static bool may_omit_task(const struct step_reader *s)
{
    return s->step->skill.len > 0 && (s->values[STEP_PARAMETERS].ptr != NULL ||
                                      s->r->reported.unknown.lenient || s->r->canonical);
}

/* Without a task it is the skill's name. */
static enum bt_code read_task(struct step_reader *s)
{
    const struct msg_card *card = card_of(s);
    if (value_string(&s->at, "task", s->values[STEP_TASK], &s->step->task)) {
        if (is_blank(s->step->task) && !s->r->canonical) {
            location_report(&s->at, PROBLEM_INVALID_FIELD, false, "task", "is empty");
        }
        return BT_OK;
    }
    if (s->values[STEP_TASK].ptr != NULL) {
        return BT_OK;
    }
    if (s->step->type == STEP_TYPE_PLAN) {
        return keep(s,
                    s->values[STEP_FOR_EACH].ptr != NULL ? STR_LIT("Does its steps for each item")
                    : s->values[STEP_REPEAT].ptr != NULL
                        ? STR_LIT("Does its steps until they are done")
                        : STR_LIT("Runs a plan of its own"),
                    &s->step->task);
    }
    if (s->step->wait != NULL) {
        char text[128];
        return keep(s, plan_wait_text(s->step->wait, text, sizeof text), &s->step->task);
    }
    if (!may_omit_task(s) && s->values[STEP_GROUP].ptr == NULL) { /* which is reported */
        location_report(
            &s->at, PROBLEM_INVALID_FIELD, false, "task",
            s->step->type == STEP_TYPE_REVIEW ? "is missing; say what the person is to decide"
            : s->step->skill.len > 0
                ? "is missing; say what the agent is to do, or give the skill's parameters"
                : "is missing; say what the agent is to do");
        return BT_OK;
    }
    const uint32_t skill = card == NULL ? UINT32_MAX : card_skill(card, s->step->skill);
    const bool named = skill != UINT32_MAX && card->skills[skill].name.len > 0;
    return keep(s, named ? card->skills[skill].name : s->step->skill, &s->step->task);
}

/* ---- dependencies ---- */

static enum bt_code add_dep(struct step_reader *s, struct doc name)
{
    struct str id;
    bool oom = false;
    if (s->r->plan->n_edges == LIMIT_EDGES) {
        return BT_LIMIT;
    }
    if (value_id(&s->at, "dependsOn", name, &s->r->scratch, &id, &oom)) {
        if (s->r->item_of != NULL) {
            id = of_item(s, &s->r->scratch, id);
            oom = id.ptr == NULL;
        }
        buf_add(&s->r->dep_names, &id, sizeof id);
        s->r->plan->n_edges++;
        s->step->deps_n++;
    }
    return oom ? reader_nomem(s->r) : buf_check(&s->r->dep_names, s->r->err);
}

static enum bt_code add_deps(struct step_reader *s, struct doc deps)
{
    struct doc_cursor c = doc_cursor(deps);
    struct doc_head head;
    enum bt_code code = BT_OK;
    if (deps.ptr == NULL || !doc_next(&c, &head)) {
        return BT_OK;
    }
    s->r->any_deps = true;
    if (head.kind != DOC_ARRAY) {
        return add_dep(s, deps); /* one id without a list */
    }
    for (uint32_t i = 0; i < head.n && code == BT_OK; i++) {
        code = add_dep(s, doc_skip(&c));
    }
    return code;
}

static enum bt_code read_deps(struct step_reader *s)
{
    s->step->deps_at = s->r->plan->n_edges;
    enum bt_code code = add_deps(s, s->values[STEP_DEPS]);
    if (code == BT_OK && s->r->phase_deps != NULL) {
        code = add_deps(s, s->r->phase_deps[s->ix - s->r->first]);
    }
    if (code == BT_LIMIT && s->r->plan->n_edges == LIMIT_EDGES) {
        location_report(&s->at, PROBLEM_LIMIT, false, "dependsOn",
                        "%u or more dependencies of the plan, at most %u", LIMIT_EDGES + 1U,
                        (unsigned)LIMIT_EDGES);
        return BT_OK;
    }
    return code;
}

/* ---- references of the condition ---- */

struct found_refs {
    struct plan_reader *r;
    uint32_t ix;
    const char *field; /* that has them */
};

static void add_reference(void *self, const struct condition_ref *ref)
{
    struct found_refs *f = self;
    const bool status = ref->kind == CONDITION_STATUS;
    const struct plan_text entry = {
        .step = f->ix,
        .text = status ? (struct str){ref->text.ptr, ref->text.len - strlen(".status")} : ref->text,
        .field = "when",
        .reference = true};
    if (ref->kind == CONDITION_RESULT || status) {
        buf_add(&f->r->texts, &entry, sizeof entry);
    }
}

/* ---- templates of the parameters ---- */

static enum bt_code add_text(struct plan_reader *r, uint32_t ix, struct str text, struct str key)
{
    char field[64];
    struct plan_text entry = {.step = ix, .text = text};
    (void)snprintf(field, sizeof field, "parameters.%.*s", (int)(key.len < 40 ? key.len : 40),
                   key.ptr);
    entry.field = arena_str(&r->scratch, str_from(field)).ptr;
    if (entry.field == NULL) {
        return reader_nomem(r);
    }
    buf_add(&r->texts, &entry, sizeof entry);
    return buf_check(&r->texts, r->err);
}

/* Adds every string with a template. Map keys are checked, too, though they are never expanded. */
static enum bt_code find_texts(struct plan_reader *r, uint32_t ix, struct doc value, struct str key)
{
    struct doc_cursor c = doc_cursor(value);
    struct doc_head head;
    struct template_ref t;
    enum bt_code code = BT_OK;
    while (code == BT_OK && doc_next(&c, &head)) {
        size_t from = 0;
        if (head.kind == DOC_STR && template_next(head.str, &from, &t)) {
            code = add_text(r, ix, head.str, key);
        }
    }
    return code;
}

static bool add_outer(void *self, struct str text, bool reference)
{
    struct found_refs *f = self;
    const struct plan_text entry = {
        .step = f->ix, .text = text, .field = f->field, .reference = reference};
    buf_add(&f->r->texts, &entry, sizeof entry);
    return f->r->texts.bad == BT_OK;
}

enum bt_code plan_child_texts(struct plan_reader *r, uint32_t ix)
{
    const struct plan_step *step = &r->plan->steps[ix];
    struct child_step how = {.kind = CHILD_OF_NONE};
    (void)child_step_read(step->rules->child, &how);
    struct found_refs f = {.r = r, .ix = ix, .field = child_kind_name(how.kind)};
    enum bt_code code = child_references(step->rules->child, step->step_id, add_outer, &f, r->err);
    f.field = "compensate";
    code = code == BT_OK ? compensate_references(step->rules->compensate, step->step_id, add_outer,
                                                 &f, r->err)
                         : code;
    return code == BT_OK ? buf_check(&r->texts, r->err) : code;
}

static enum bt_code find_references(struct plan_reader *r, uint32_t ix)
{
    struct found_refs f = {.r = r, .ix = ix};
    struct bt_error unused;
    if (r->plan->steps[ix].rules->when.ptr != NULL) {
        (void)!condition_check(r->plan->steps[ix].rules->when, add_reference, &f, &unused);
    }
    return buf_check(&r->texts, r->err);
}

enum bt_code plan_step_texts(struct plan_reader *r, uint32_t ix)
{
    const struct doc parameters = r->plan->steps[ix].parameters;
    struct doc_cursor c = doc_cursor(parameters);
    struct doc_head head;
    struct doc_head key;
    enum bt_code code = BT_OK;
    if (parameters.ptr != NULL && doc_next(&c, &head)) {
        for (uint32_t i = 0; i < head.n && code == BT_OK && doc_next(&c, &key); i++) {
            code = find_texts(r, ix, doc_skip(&c), key.str);
        }
    }
    code = code == BT_OK ? find_references(r, ix) : code;
    const bool more = r->plan->steps[ix].rules->child.ptr != NULL ||
                      r->plan->steps[ix].rules->compensate.ptr != NULL;
    return code == BT_OK && more ? plan_child_texts(r, ix) : code;
}

static enum bt_code read_parameters(struct step_reader *s)
{
    if (value_map(&s->at, "parameters", s->values[STEP_PARAMETERS])) {
        s->step->parameters = s->values[STEP_PARAMETERS];
    }
    if (!s->r->canonical && !plan_child_is(s) && s->r->plan->child.kind != CHILD_OF_CALLS) {
        plan_child_check_templates(s);
    }
    return s->r->canonical ? BT_OK : plan_step_texts(s->r, s->ix);
}

/* ---- the condition ---- */

/* item, index, iteration and previous are known inside forEach and repeat only. */
static void check_scope(void *self, const struct condition_ref *ref)
{
    struct step_reader *s = self;
    if (ref->kind == CONDITION_SCOPE && !s->r->canonical && !plan_child_has_word(s->r, ref->text)) {
        location_report(&s->at, PROBLEM_BAD_TEMPLATE, false, "when",
                        "%.*s: item and index are known inside forEach, iteration and previous "
                        "inside repeat",
                        STR_ARG(ref->text));
    }
}

static enum bt_code read_when(struct step_reader *s)
{
    const struct doc when = s->values[STEP_WHEN];
    struct bt_error why = {.code = BT_OK};
    if (when.ptr == NULL) {
        return BT_OK;
    }
    const enum bt_code code = condition_check(when, check_scope, s, &why);
    if (code != BT_OK) {
        location_report(&s->at, code == BT_LIMIT ? PROBLEM_LIMIT : PROBLEM_INVALID_FIELD, false,
                        "when", "%s", why.msg);
        return code == BT_NOMEM ? reader_nomem(s->r) : BT_OK;
    }
    s->step->rules->when = when;
    return BT_OK;
}

/* ---- type and revision ---- */

/* F04: aliases of other systems. */
static void read_type(struct step_reader *s)
{
    static const char *const names[] = {
        "task",      "human_review", "synthesis_gate", "review", "approval", "gate",
        "synthesis", "compress",     "summarize",      "direct", "wait"};
    static const enum step_type types[] = {
        STEP_TYPE_TASK,      STEP_TYPE_REVIEW,    STEP_TYPE_SYNTHESIS, STEP_TYPE_REVIEW,
        STEP_TYPE_REVIEW,    STEP_TYPE_SYNTHESIS, STEP_TYPE_SYNTHESIS, STEP_TYPE_SYNTHESIS,
        STEP_TYPE_SYNTHESIS, STEP_TYPE_TASK,      STEP_TYPE_WAIT};
    uint32_t choice = 0;
    s->step->type = s->values[STEP_WAIT].ptr != NULL ? STEP_TYPE_WAIT : STEP_TYPE_TASK;
    _Static_assert(sizeof names / sizeof names[0] == sizeof types / sizeof types[0], "pairs");
    if (!value_choice(&s->at, "type", s->values[STEP_TYPE], names, sizeof names / sizeof names[0],
                      &choice)) {
        return;
    }
    if (s->step->type == STEP_TYPE_WAIT && types[choice] != STEP_TYPE_WAIT) {
        location_report(&s->at, PROBLEM_INVALID_FIELD, false, "type",
                        "is \"%s\", but the step has wait; leave one of them out", names[choice]);
        return;
    }
    s->step->type = types[choice];
    if (choice >= 3 && types[choice] != STEP_TYPE_WAIT) {
        location_report(&s->at, PROBLEM_STYLE, true, "type", "\"%s\" is read as \"%s\"",
                        names[choice], step_type_name(types[choice]));
    }
}

/* The state of a run in another system: only of one that has not begun. */
static void read_status(struct step_reader *s)
{
    const struct doc status = s->values[STEP_STATUS];
    const bool warning = s->r->reported.unknown.lenient;
    char got[64];
    if (status.ptr == NULL || s->r->canonical || str_is(doc_string(status), "pending")) {
        return;
    }
    value_describe(status, got, sizeof got);
    location_report(&s->at, warning ? PROBLEM_STYLE : PROBLEM_INVALID_FIELD, warning, "status",
                    "is %s, but every step of a new plan is pending; leave it out (baton retry "
                    "keeps what has completed)",
                    got);
}

/* Members of a canonical document. */
static void read_history(struct step_reader *s)
{
    uint64_t revision = 1;
    bool superseded = false;
    (void)value_u64(&s->at, "revision", s->values[STEP_REVISION], 1, LIMIT_REVISIONS, &revision);
    s->step->revision = s->r->canonical ? (uint32_t)revision : s->r->plan->revision;
    (void)value_bool(&s->at, "superseded", s->values[STEP_SUPERSEDED], &superseded);
    s->step->superseded = superseded && s->r->canonical;
    read_status(s);
    if (superseded && !s->r->canonical) {
        location_report(&s->at, PROBLEM_INVALID_FIELD, false, "superseded",
                        "a superseded step cannot be done; leave it out");
    }
    s->step->after_any_end = s->r->after_any_end;
    (void)value_bool(&s->at, "afterAnyEnd", s->values[STEP_AFTER_ANY_END], &s->step->after_any_end);
}

/* ---- entry points ---- */

/* Reads the id first, so that problems of the other fields can name the step. */
static void peek_id(struct step_reader *s, struct doc doc)
{
    for (uint32_t i = 0; step_names[i].field == STEP_ID && s->step->step_id.ptr == NULL; i++) {
        s->step->step_id = doc_string(doc_get(doc, str_from(step_names[i].name)));
    }
}

static bool find_fields(struct step_reader *s)
{
    const struct field_table table = {step_names, sizeof step_names / sizeof step_names[0],
                                      &s->r->reported_step, &s->r->reported.unknown};
    const struct doc doc = s->r->steps[s->ix - s->r->first];
    const enum doc_kind kind = doc_head(doc).kind;
    char got[64];
    if (kind == DOC_MAP) {
        peek_id(s, doc);
        fields_read(&table, doc, &s->at, s->values);
        s->step->step_id = (struct str){NULL, 0};
        return true;
    }
    if (kind == DOC_STR) { /* a step that is only a task */
        s->values[STEP_TASK] = doc;
        return true;
    }
    value_describe(doc, got, sizeof got);
    location_report(&s->at, PROBLEM_INVALID_FIELD, false, "steps",
                    "step %u: expected a map or a task in words, got %s", s->ix + 1, got);
    return false;
}

uint8_t plan_step_field(struct str name)
{
    for (size_t i = 0; i < sizeof step_names / sizeof step_names[0]; i++) {
        if (str_is(name, step_names[i].name)) {
            return step_names[i].field;
        }
    }
    return FIELD_IGNORED;
}

const char *plan_step_field_name(uint8_t field)
{
    for (size_t i = 0; i < sizeof step_names / sizeof step_names[0]; i++) {
        if (step_names[i].field == field) {
            return step_names[i].name;
        }
    }
    return "";
}

/* Whether templates can name it. */
static bool is_word(struct str word)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    bool all = true;
    for (size_t i = 0; i < word.len; i++) {
        all = all && word.ptr[i] != 0 && strchr(letters, word.ptr[i]) != NULL;
    }
    return all && word.len >= 1 && word.len <= CHILD_WORD_BYTES;
}

void plan_child_check_word(struct step_reader *s, const char *field, struct str word)
{
    static const char *const taken[] = {"results", "inputs",    "item",     "index",
                                        "state",   "iteration", "previous", "steps"};
    if (!is_word(word)) {
        location_report(&s->at, PROBLEM_INVALID_FIELD, false, field,
                        "expected 1 to %d letters, digits, \"_\" and \"-\", got \"%.*s\"",
                        (int)CHILD_WORD_BYTES, STR_ARG(word));
        return;
    }
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        if (str_is(word, taken[i])) {
            location_report(&s->at, PROBLEM_INVALID_FIELD, false, field,
                            "\"%s\" has a meaning of its own in templates; choose another name",
                            taken[i]);
        }
    }
    if (plan_child_has_word(s->r, word)) {
        location_report(&s->at, PROBLEM_INVALID_FIELD, false, field,
                        "\"%.*s\" is taken outside; choose another name", STR_ARG(word));
    }
}

/* What belongs to a step with children only. */
static void check_lonely(struct step_reader *s)
{
    static const uint8_t only[] = {STEP_AS, STEP_MAX_ITEMS, STEP_ITEM_FAILURE, STEP_CONCURRENCY,
                                   STEP_GROUP};
    for (size_t i = 0; i < sizeof only && !s->r->canonical; i++) {
        if (s->values[only[i]].ptr != NULL) {
            location_report(&s->at, PROBLEM_INVALID_FIELD, false, plan_step_field_name(only[i]),
                            only[i] == STEP_GROUP ? "belongs to a step with forEach or repeat"
                                                  : "belongs to a step with forEach");
        }
    }
}

/* Of a stored child plan that was changed. */
static void read_item(struct step_reader *s)
{
    uint64_t index = 0;
    if (s->r->canonical && s->r->item_of == NULL && s->values[STEP_ITEM].ptr != NULL) {
        (void)value_u64(&s->at, "index", s->values[STEP_INDEX], 0, UINT32_MAX, &index);
        s->step->item = s->values[STEP_ITEM];
        s->step->index = (uint32_t)index;
    }
}

enum bt_code plan_step_read(struct plan_reader *r, uint32_t ix)
{
    struct step_reader s = {.r = r, .step = &r->plan->steps[ix], .ix = ix};
    s.at = (struct location){.problems = r->problems, .step = s.step, .ix = ix, .prefix = ""};
    const bool readable = find_fields(&s);
    enum bt_code code = read_id(&s);
    s.step->deps_at = r->plan->n_edges;
    s.step->agent = s.step->rules->gate_agent = s.step->rules->verify_agent = AGENT_NONE;
    if (code != BT_OK || !readable) {
        return code;
    }
    const bool child = plan_child_is(&s);
    if (child) {
        plan_child_outer(&s);
    } else {
        read_type(&s);
        check_lonely(&s);
    }
    read_history(&s);
    read_item(&s);
    code = plan_step_wait(&s);
    code = code == BT_OK ? read_agent(&s) : code;
    code = code == BT_OK ? read_task(&s) : code;
    code = code == BT_OK && !child ? plan_skill_choose(r, s.step, &s.at) : code;
    code = code == BT_OK ? plan_step_policy(&s) : code;
    if (child) {
        plan_child_policy(&s);
        code = code == BT_OK ? plan_child_read(&s, r->steps[ix - r->first]) : code;
    }
    code = code == BT_OK ? plan_step_compensate(&s) : code;
    plan_step_tools(&s);
    r->gate_given[ix - r->first] = s.gate_given;
    code = code == BT_OK ? read_deps(&s) : code;
    code = code == BT_OK ? read_when(&s) : code;
    return code == BT_OK ? read_parameters(&s) : code;
}
