/* Ids, dependencies, agents, lengths. Cycles: plan_cycle.c; templates: plan_template.c. */
#include "supervisor/core/plan/plan_check.h"

#include "protocol/wire/msg.h"
#include "registry/card.h"
#include "supervisor/core/plan/plan_check_internal.h"
#include "supervisor/core/plan/template.h"

/* ---- step ids ---- */

/* Whether the entry in the table is the one that is meant: with revision 0 the one in use. */
static bool is_meant(const struct plan_checker *k, uint32_t place, struct str id, uint32_t revision)
{
    const struct plan_step *s = &k->plan->steps[k->table[place]];
    return str_eq(s->step_id, id) &&
           (revision == 0 ? !s->superseded : s->superseded && s->revision == revision);
}

/* The entry's place in the table, or the free one for it. */
static uint32_t *id_place(const struct plan_checker *k, struct str id, uint32_t revision)
{
    uint32_t at = (uint32_t)(str_hash(id) % k->table_n);
    while (k->table[at] != UINT32_MAX && !is_meant(k, at, id, revision)) {
        at = at + 1 == k->table_n ? 0 : at + 1;
    }
    return &k->table[at];
}

uint32_t plan_check_find(const struct plan_checker *k, struct str id)
{
    return *id_place(k, id, 0);
}

/* "id@3": an id never contains '@'. */
static uint32_t find_superseded(const struct plan_checker *k, struct str name)
{
    const char *at = name.len == 0 ? NULL : memchr(name.ptr, '@', name.len);
    uint32_t revision = 0;
    if (at == NULL || name.ptr + name.len - at > 6) {
        return UINT32_MAX;
    }
    for (const char *c = at + 1; c < name.ptr + name.len; c++) {
        if (*c < '0' || *c > '9') {
            return UINT32_MAX;
        }
        revision = revision * 10 + (uint32_t)(*c - '0');
    }
    return revision == 0 ? UINT32_MAX
                         : *id_place(k, (struct str){name.ptr, (size_t)(at - name.ptr)}, revision);
}

/* "check[3]", of the steps of items, which no author can write. */
static bool is_of_item(const struct plan_checker *k, const struct plan_step *step)
{
    const char *open = memchr(step->step_id.ptr, '[', step->step_id.len);
    return k->in->again && step->item.ptr != NULL && open != NULL &&
           card_id_ok((struct str){step->step_id.ptr, (size_t)(open - step->step_id.ptr)});
}

static void check_id(struct plan_checker *k, uint32_t s)
{
    const struct plan_step *step = &k->plan->steps[s];
    char number[2][21];
    if (step->step_id.len > LIMIT_ID_BYTES) {
        CHECK_PUT(k, PROBLEM_LIMIT, s, "stepId", plan_check_number(number[0], step->step_id.len),
                  STR_LIT(" bytes, at most 64"));
    } else if (!card_id_ok(step->step_id) && !is_of_item(k, step)) {
        CHECK_PUT(k, PROBLEM_INVALID_FIELD, s, "stepId", STR_LIT("\""), step->step_id,
                  STR_LIT("\" is no step id; it needs 1 to 64 of A-Z a-z 0-9 _ . -"));
    }
    uint32_t *place = id_place(k, step->step_id, step->superseded ? step->revision : 0);
    if (*place == UINT32_MAX) {
        *place = s;
        return;
    }
    CHECK_PUT(k, PROBLEM_DUPLICATE_ID, s, "stepId", STR_LIT("steps "),
              plan_check_number(number[0], *place + 1u), STR_LIT(" and "),
              plan_check_number(number[1], s + 1u), STR_LIT(" are both called \""), step->step_id,
              STR_LIT("\"; each step needs its own id"));
}

static void check_ids(struct plan_checker *k)
{
    for (uint32_t i = 0; i < k->table_n; i++) {
        k->table[i] = UINT32_MAX;
    }
    for (uint32_t s = 0; s < k->plan->n_steps; s++) {
        check_id(k, s);
    }
}

/* ---- dependencies ---- */

/* "; did you mean "x"?" as three parts of a message; empty ones when there is no guess. */
#define MEANT(near)                                                                                \
    (near).len > 0 ? STR_LIT("; did you mean \"") : STR_LIT(""), (near),                           \
        (near).len > 0 ? STR_LIT("\"?") : STR_LIT("")

static void check_dep(struct plan_checker *k, uint32_t s, uint32_t e)
{
    struct str name = k->in->dep_names[e];
    uint32_t dep = k->in->ret_deps[e];
    if (name.ptr != NULL) {
        dep = plan_check_find(k, name);
        dep = dep == UINT32_MAX ? find_superseded(k, name) : dep;
    } else {
        name = k->plan->steps[dep].step_id;
    }
    k->in->ret_deps[e] = dep;
    if (dep == UINT32_MAX) {
        const struct str near = plan_guess_step(k, s, name);
        CHECK_PUT(k, PROBLEM_MISSING_DEPENDENCY, s, "dependsOn", STR_LIT("depends on \""), name,
                  STR_LIT("\", which is no step of this plan"), MEANT(near));
    } else if (dep == s) {
        CHECK_PUT(k, PROBLEM_CYCLE_DETECTED, s, "dependsOn", STR_LIT("depends on itself: "), name,
                  STR_LIT(" -> "), name);
        k->in->ret_deps[e] = UINT32_MAX;
    } else if (k->mark[dep] == s + 1) {
        CHECK_PUT(k, PROBLEM_INVALID_FIELD, s, "dependsOn", STR_LIT("depends on \""), name,
                  STR_LIT("\" twice; name it once"));
        k->in->ret_deps[e] = UINT32_MAX;
    } else {
        k->mark[dep] = s + 1;
    }
}

static void check_deps(struct plan_checker *k)
{
    memset(k->mark, 0, k->plan->n_steps * sizeof k->mark[0]);
    for (uint32_t s = 0; s < k->plan->n_steps; s++) {
        const struct plan_step *step = &k->plan->steps[s];
        for (uint32_t e = step->deps_at; e < step->deps_at + step->deps_n; e++) {
            check_dep(k, s, e);
        }
    }
    memset(k->mark, 0, k->plan->n_steps * sizeof k->mark[0]);
}

/* ---- agents and skills ---- */

enum { NAMES_SHOWN = 8, PARTS_MAX = 2 * NAMES_SHOWN + 12 };

/* Another agent that has the skill; empty when none has it. */
static struct str agent_with(const struct registry *r, struct str skill)
{
    for (uint32_t a = registry_agent_expected(r, 0); a != REGISTRY_NONE;
         a = registry_agent_expected(r, a + 1)) {
        const struct agent_view agent = registry_agent_view(r, a);
        if (agent.card != NULL && card_skill(agent.card, skill) != UINT32_MAX) {
            return agent.id;
        }
    }
    return STR_LIT("");
}

/* Appends "; did you mean "x"?"; nothing when there is no guess. */
static uint32_t put_guess(struct str *parts, uint32_t n, struct str near)
{
    const struct str meant[] = {MEANT(near)};
    for (uint32_t i = 0; near.len > 0 && i < 3; i++) {
        parts[n++] = meant[i];
    }
    return n;
}

static void put_unknown_agent(struct plan_checker *k, uint32_t s)
{
    const struct registry *r = k->in->registry;
    struct str parts[PARTS_MAX];
    uint32_t n = 0;
    uint32_t named = 0;
    const struct str near = plan_guess_agent(k, k->plan->steps[s].agent_id);
    const bool late = k->in->late_agents && card_id_ok(k->plan->steps[s].agent_id);
    parts[n++] = STR_LIT("Unknown agent: ");
    parts[n++] = k->plan->steps[s].agent_id;
    n = put_guess(parts, n, near);
    for (uint32_t a = registry_agent_expected(r, 0); a != REGISTRY_NONE && named <= NAMES_SHOWN;
         a = registry_agent_expected(r, a + 1)) {
        parts[n++] = named > 0      ? STR_LIT(", ")
                     : near.len > 0 ? STR_LIT(" known: ")
                                    : STR_LIT("; known: ");
        parts[n++] = named == NAMES_SHOWN ? STR_LIT("...") : registry_agent_view(r, a).id;
        named++;
    }
    if (named == 0) {
        parts[n++] = STR_LIT("; no agent is known");
    }
    if (late) {
        parts[n++] = STR_LIT("; the step waits until it is there");
    }
    problem_put(k->out, PROBLEM_MISSING_AGENT, late, &k->plan->steps[s], s, "agentId", parts, n);
}

static void put_missing_skill(struct plan_checker *k, uint32_t s, const struct msg_card *card)
{
    const struct str skill = k->plan->steps[s].skill;
    const struct str other = agent_with(k->in->registry, skill);
    bool guessed = false;
    struct str parts[PARTS_MAX];
    uint32_t n = 0;
    parts[n++] = STR_LIT("agent \"");
    parts[n++] = k->plan->steps[s].agent_id;
    parts[n++] = STR_LIT("\" has no skill \"");
    parts[n++] = skill;
    parts[n++] = STR_LIT("\"");
    if (other.len > 0) {
        parts[n++] = STR_LIT("; agent \"");
        parts[n++] = other;
        parts[n++] = STR_LIT("\" has it");
    } else {
        const struct str near = plan_guess_skill(k, card, skill);
        n = put_guess(parts, n, near);
        guessed = near.len > 0;
    }
    parts[n] = card->skills_n == 0 ? STR_LIT("; it has none")
               : guessed           ? STR_LIT(" it has: ")
                                   : STR_LIT("; it has: ");
    n++;
    for (uint32_t i = 0; i < card->skills_n && i < NAMES_SHOWN; i++) {
        if (i > 0) {
            parts[n++] = STR_LIT(", ");
        }
        parts[n++] = card->skills[i].id;
    }
    if (card->skills_n > NAMES_SHOWN) {
        parts[n++] = STR_LIT(", ...");
    }
    problem_put(k->out, PROBLEM_MISSING_SKILL, false, &k->plan->steps[s], s, "skill", parts, n);
}

/* True: the name is longer than any that is registered. */
static bool check_length(struct plan_checker *k, uint32_t s, const char *field, struct str name)
{
    char number[21];
    if (name.len <= LIMIT_ID_BYTES) {
        return false;
    }
    CHECK_PUT(k, PROBLEM_LIMIT, s, field, plan_check_number(number, name.len),
              STR_LIT(" bytes, at most 64"));
    return true;
}

static void check_agent(struct plan_checker *k, uint32_t s)
{
    const struct plan_step *step = &k->plan->steps[s];
    if (!plan_step_has_agent(step) || check_length(k, s, "agentId", step->agent_id) ||
        check_length(k, s, "skill", step->skill)) {
        return;
    }
    if (step->agent_id.len == 0) {
        if (step->skill.len == 0) {
            CHECK_PUT(k, PROBLEM_MISSING_AGENT, s, "agentId",
                      STR_LIT("names no agent and no skill; give agentId, or a skill that a "
                              "registered agent has"));
        } else if (k->in->registry != NULL) {
            const struct str near = plan_guess_skill(k, NULL, step->skill);
            CHECK_PUT(k, PROBLEM_MISSING_SKILL, s, "skill",
                      STR_LIT("no registered agent has the skill \""), step->skill, STR_LIT("\""),
                      MEANT(near));
        }
        return;
    }
    if (k->in->registry == NULL) {
        return;
    }
    const uint32_t agent = k->in->late_agents
                               ? registry_agent(k->in->registry, step->agent_id)
                               : registry_agent_seen(k->in->registry, step->agent_id);
    if (agent == REGISTRY_NONE) {
        put_unknown_agent(k, s);
        return;
    }
    const struct msg_card *card = registry_agent_view(k->in->registry, agent).card;
    if (step->skill.len != 0 && card != NULL && card_skill(card, step->skill) == UINT32_MAX) {
        put_missing_skill(k, s, card);
    }
}

/* ---- lengths ---- */

static void check_task(struct plan_checker *k, uint32_t s)
{
    enum { SHORT_TASK = 15, LONG_TASK = 200 }; /* characters; rule S004 */
    const struct plan_step *step = &k->plan->steps[s];
    if (step->task.len > LIMIT_TASK_BYTES) {
        char length[21], cap[21];
        CHECK_PUT(k, PROBLEM_LIMIT, s, "task", STR_LIT("the task has "),
                  plan_check_number(length, step->task.len), STR_LIT(" bytes, at most "),
                  plan_check_number(cap, LIMIT_TASK_BYTES));
        return;
    }
    if (step->type == STEP_TYPE_PLAN || step->task.len == 0 || str_eq(step->task, step->skill)) {
        return; /* missing, which is reported; or made from the skill, and not the author's */
    }
    size_t characters = 0;
    for (size_t i = 0; i < step->task.len; i++) {
        characters += ((unsigned char)step->task.ptr[i] & 0xc0) != 0x80;
    }
    if (characters < SHORT_TASK || characters > LONG_TASK) {
        char number[21];
        const struct str parts[] = {
            STR_LIT("the task has "), plan_check_number(number, characters),
            STR_LIT(" characters; 15 to 200 tell an agent what to do without burying it")};
        problem_put(k->out, PROBLEM_STYLE, true, step, s, "task", parts, 3);
    }
}

/* ---- all ---- */

size_t plan_check_scratch(const struct plan *p)
{
    return 7 * (size_t)p->n_steps + p->n_edges + 16;
}

static struct plan_checker checker_of(struct plan_check_input *in, struct problems *out)
{
    const uint32_t n = in->plan->n_steps;
    struct plan_checker k = {.in = in, .plan = in->plan, .out = out, .table_n = 3 * n + 8};
    k.table = in->scratch;
    k.mark = k.table + k.table_n;
    k.list = k.mark + n;
    k.open = k.list + n;
    k.rev_at = k.open + n;
    k.rev = k.rev_at + n + 1;
    return k;
}

void plan_check(struct plan_check_input *in, struct problems *out)
{
    in->n_missing = 0;
    if (in->plan->n_steps == 0) {
        const struct str parts[] = {STR_LIT("the plan has no steps; give at least one")};
        problem_put(out, PROBLEM_EMPTY_PLAN, false, NULL, 0, "steps", parts, 1);
        return;
    }
    struct plan_checker k = checker_of(in, out);
    check_ids(&k);
    check_deps(&k);
    plan_check_cycles(&k);
    if (in->again) {
        return;
    }
    for (uint32_t s = in->first; s < k.plan->n_steps; s++) {
        if (in->settled == NULL || in->settled[s] == 0) {
            check_agent(&k, s);
            check_task(&k, s);
        }
    }
    plan_check_templates(&k);
}

uint32_t plan_check_ref(const struct plan *p, struct str ref, struct str *ret_path)
{
    struct str id = {NULL, 0};
    while (template_split(ref, &id, ret_path)) {
        const uint32_t s = plan_step_find(p, id);
        if (s != UINT32_MAX) {
            return s;
        }
    }
    return UINT32_MAX;
}
