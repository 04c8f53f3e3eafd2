/*
 * The jobs that a plan asks of agents: its steps (planning) and its answer (synthesis). Also plans
 * that are such jobs themselves.
 */
#include "protocol/base/utf8.h"
#include "supervisor/plan/writer_internal.h"

static const struct str synthesize = {"synthesize", 10};
static const struct str plan_skill = {"plan", 4};

enum { REPAIRS_MAX = 10 };

/* ---- the policy ---- */

bool synthesis_choice_named(struct str name, struct synthesis_choice *io)
{
    static const char prefix[] = "agent:";
    const size_t n = sizeof prefix - 1;
    struct str agent_id = {NULL, 0};
    struct str skill = {NULL, 0};
    if (str_is(name, "llm")) {
        agent_id = STR_LIT(PLAN_ORCHESTRATOR);
    } else if (str_is(name, "agent")) {
        skill = synthesize;
    } else if (name.len > n && memcmp(name.ptr, prefix, n) == 0) {
        agent_id = (struct str){name.ptr + n, name.len - n};
    } else if (!str_is(name, "concat")) {
        return false;
    }
    io->agent_id = agent_id;
    io->skill = skill;
    return true;
}

enum { SYN_STRATEGY, SYN_AGENT, SYN_SKILL, SYN_TIMEOUT, SYN_RETRIES, SYN_COUNT };
static const struct field_name synthesis_names[] = {
#define FIELDS_SYNTHESIS
#include "supervisor/plan/field_names.def"
};

static void read_strategy(const struct location *at, const char *field, struct doc v,
                          struct plan_policy *io)
{
    char got[64];
    if (synthesis_choice_named(doc_string(v), &io->synthesis)) {
        io->synthesis_given = true;
        return;
    }
    value_describe(v, got, sizeof got);
    location_report(at, PROBLEM_INVALID_FIELD, false, field,
                    "expected \"concat\", \"llm\", \"agent\" or \"agent:<id>\", got %s", got);
}

static void read_synthesis_map(const struct location *at, struct doc v,
                               struct policy_reported *reported, struct plan_policy *io)
{
    char prefix[96];
    const struct location in = location_below(at, "synthesis", prefix);
    struct doc values[SYN_COUNT] = {{NULL, 0}};
    const struct field_table table = {synthesis_names,
                                      sizeof synthesis_names / sizeof synthesis_names[0],
                                      &reported->synthesis, &reported->unknown};
    struct str agent_id = {NULL, 0};
    struct str skill = {NULL, 0};
    uint64_t retries;
    fields_read(&table, v, &in, values);
    if (values[SYN_STRATEGY].ptr != NULL) {
        read_strategy(&in, "strategy", values[SYN_STRATEGY], io);
    }
    const bool named = value_string(&in, "agentId", values[SYN_AGENT], &agent_id);
    const bool skilled = value_string(&in, "skill", values[SYN_SKILL], &skill);
    if ((named || skilled) && str_is(doc_string(values[SYN_STRATEGY]), "concat")) {
        location_report(&in, PROBLEM_INVALID_FIELD, false, "strategy",
                        "\"concat\" asks no agent; leave agentId and skill out, or give \"agent\"");
    } else if (named || skilled) {
        io->synthesis.agent_id = named ? agent_id : io->synthesis.agent_id;
        io->synthesis.skill = skill;
        io->synthesis_given = true;
    }
    policy_timeout(&in, "timeoutMs", values[SYN_TIMEOUT], &io->synthesis.timeout_ms);
    if (value_u64(&in, "maxRetries", values[SYN_RETRIES], 0, SYNTHESIS_RETRIES_MAX, &retries)) {
        io->synthesis.max_retries = (uint32_t)retries;
    }
}

void policy_phases(const struct location *at, struct doc timeout, struct doc on_invalid,
                   struct doc synthesis, struct policy_reported *reported, struct plan_policy *io)
{
    static const char *const names[] = {"fail", "synthesize", "interrupt"};
    uint32_t choice;
    _Static_assert(sizeof names / sizeof names[0] == ON_INVALID_COUNT, "each");
    policy_timeout(at, "plannerTimeoutMs", timeout, &io->planner_timeout_ms);
    if (value_choice(at, "onInvalidPlan", on_invalid, names, ON_INVALID_COUNT, &choice)) {
        io->on_invalid = (enum on_invalid)choice;
    }
    if (synthesis.ptr == NULL) {
        return;
    }
    const struct doc_head head = doc_head(synthesis);
    if (head.kind == DOC_MAP) {
        read_synthesis_map(at, synthesis, reported, io);
    } else if (head.kind == DOC_BOOL && !head.b) {
        (void)synthesis_choice_named(STR_LIT("concat"), &io->synthesis);
        io->synthesis_given = true;
    } else {
        read_strategy(at, "synthesis", synthesis, io);
    }
}

/* ---- members of canonical documents ---- */

static void read_job(struct doc v, struct plan_job *ret)
{
    const struct str kind = doc_string(doc_get(v, STR_LIT("kind")));
    *ret = (struct plan_job){.kind = JOB_NONE};
    for (uint32_t i = JOB_NONE + 1; i < JOB_COMPENSATION; i++) {
        if (str_is(kind, job_kind_name((enum job_kind)i))) {
            *ret = (struct plan_job){.kind = (enum job_kind)i,
                                     .of = doc_string(doc_get(v, STR_LIT("of"))),
                                     .turn = doc_string(doc_get(v, STR_LIT("turn")))};
        }
    }
}

void plan_job_of(struct doc document, struct plan_job *ret)
{
    read_job(doc_get(document, STR_LIT("errand")), ret);
}

static void read_planning(struct plan_reader *r, struct doc planning)
{
    struct planning_policy *p = &r->plan->planning;
    const struct location at = {.problems = r->problems, .prefix = "planning"};
    uint64_t repairs = 0;
    p->pending = true;
    (void)value_string(&at, "agentId", doc_get(planning, STR_LIT("agentId")), &p->agent_id);
    (void)value_string(&at, "skill", doc_get(planning, STR_LIT("skill")), &p->skill);
    (void)value_u64(&at, "repairs", doc_get(planning, STR_LIT("repairs")), 0, REPAIRS_MAX,
                    &repairs);
    p->repairs = (uint32_t)repairs;
}

void plan_phases_read(struct plan_reader *r, struct doc planning, struct doc job,
                      struct doc dry_run)
{
    const struct location at = {.problems = r->problems, .prefix = ""};
    struct plan *p = r->plan;
    p->dry_run = r->request->dry_run;
    p->planning.agent = p->synthesis.agent = AGENT_NONE;
    const struct doc_head head =
        dry_run.ptr == NULL ? (struct doc_head){.kind = DOC_NIL} : doc_head(dry_run);
    const bool dry = head.kind == DOC_BOOL && head.b;
    if (r->canonical || r->pending.ptr != NULL) {
        p->dry_run = p->dry_run || dry;
    } else if (dry && !p->dry_run) {
        location_report(&at, PROBLEM_STYLE, true, "dryRun",
                        "is ignored: who submits the plan says whether it is to run");
    }
    if (r->canonical && planning.ptr != NULL) {
        read_planning(r, planning);
    } else if (r->planner != NULL) {
        p->planning = (struct planning_policy){
            .pending = true, .agent = AGENT_NONE, .repairs = r->planner->repairs};
    }
    if (job.ptr != NULL && !r->canonical && !r->request->own) {
        location_report(&at, PROBLEM_STYLE, true, "errand",
                        "is ignored: only the supervisor makes errands");
    } else if (job.ptr != NULL) {
        read_job(job, &r->policy->job);
        p->job = r->policy->job.kind;
    }
}

/* ---- planner and synthesizer ---- */

static bool is_known(const struct plan_reader *r, const struct agent_ref *ref)
{
    if (ref->agent_id.len == 0) {
        return plan_agent_with_skill(r, ref->skill) != REGISTRY_NONE;
    }
    return r->registry != NULL && registry_agent(r->registry, ref->agent_id) != REGISTRY_NONE &&
           plan_agent_has_skill(r, ref->agent_id, ref->skill);
}

/* Reports "llm" without a configured model. The general message would only name its agent. */
static bool reports_missing_model(struct plan_reader *r, const struct location *at,
                                  const char *field, const struct agent_ref *ref)
{
    if (!str_is(ref->agent_id, PLAN_ORCHESTRATOR) || r->canonical || r->registry == NULL ||
        registry_agent(r->registry, ref->agent_id) != REGISTRY_NONE) {
        return false;
    }
    location_report(at, PROBLEM_MISSING_AGENT, false, field,
                    "\"llm\" needs the agent \"" PLAN_ORCHESTRATOR
                    "\", which the setting llm of the configuration starts");
    return true;
}

/* The id of the agent, valid as long as the plan. Empty after a problem was reported. */
static enum bt_code ask(struct plan_reader *r, const struct location *at, const char *field,
                        const struct agent_ref *ref, struct str *ret_id)
{
    *ret_id = (struct str){NULL, 0};
    if (reports_missing_model(r, at, field, ref)) {
        return BT_OK;
    }
    const enum bt_code code = plan_agent_resolve(r, at, field, ref, ret_id);
    if (code != BT_OK || ret_id->len == 0) {
        return code;
    }
    *ret_id = arena_str(r->arena, *ret_id);
    return ret_id->ptr == NULL ? reader_nomem(r) : BT_OK;
}

static enum bt_code keep_skill(struct plan_reader *r, struct str skill, struct str *ret)
{
    *ret = skill.len == 0 ? (struct str){NULL, 0} : arena_str(r->arena, skill);
    return skill.len > 0 && ret->ptr == NULL ? reader_nomem(r) : BT_OK;
}

static enum bt_code find_synthesizer(struct plan_reader *r)
{
    const struct location at = {.problems = r->problems, .prefix = "policy"};
    const struct synthesis_choice *choice = &r->policy->synthesis;
    struct synthesis_policy *s = &r->plan->synthesis;
    const struct agent_ref ref = {.agent_id = choice->agent_id,
                                  .skill = choice->skill.len > 0 ? choice->skill : synthesize};
    *s = (struct synthesis_policy){.agent = AGENT_NONE};
    if ((choice->agent_id.len == 0 && choice->skill.len == 0) || r->plan->job != JOB_NONE ||
        (!r->policy->synthesis_given && !r->canonical && !is_known(r, &ref))) {
        return BT_OK;
    }
    enum bt_code code = ask(r, &at, "synthesis", &ref, &s->agent_id);
    if (code != BT_OK || s->agent_id.len == 0) {
        return code;
    }
    s->timeout_ms = choice->timeout_ms;
    s->max_retries = choice->max_retries;
    return keep_skill(r, choice->skill, &s->skill);
}

static enum bt_code find_planner(struct plan_reader *r)
{
    const struct location at = {.problems = r->problems, .prefix = ""};
    struct planning_policy *p = &r->plan->planning;
    if (r->planner == NULL) {
        return BT_OK;
    }
    const struct agent_ref ref = {.agent_id = r->planner->agent_id,
                                  .skill =
                                      r->planner->skill.len > 0 ? r->planner->skill : plan_skill};
    if (r->plan->goal.len == 0) {
        location_report(&at, PROBLEM_EMPTY_PLAN, false, "goal",
                        "is missing; describe in words what is to be done");
    }
    if (p->repairs > REPAIRS_MAX) {
        location_report(&at, PROBLEM_INVALID_FIELD, false, "planner", "more than %d repairs",
                        REPAIRS_MAX);
    }
    r->asks_planner = true;
    const enum bt_code code = ask(r, &at, "planner", &ref, &p->agent_id);
    r->asks_planner = false;
    return code == BT_OK ? keep_skill(r, r->planner->skill, &p->skill) : code;
}

/* onInvalidPlan synthesize needs a synthesizer: concat has no results to join. */
static void check_answer_alone(struct plan_reader *r)
{
    const struct location at = {.problems = r->problems, .prefix = "policy"};
    if (r->planner != NULL && !r->canonical && r->plan->synthesis.agent_id.len == 0 &&
        r->plan->planning.on_invalid == ON_INVALID_SYNTHESIZE) {
        location_report(&at, PROBLEM_STYLE, true, "onInvalidPlan",
                        "\"synthesize\" acts as \"fail\", because nobody is asked for the answer; "
                        "give \"synthesis\" as well: \"llm\" or an agent");
    }
}

enum bt_code plan_phases_resolve(struct plan_reader *r)
{
    r->plan->planning.timeout_ms = r->policy->planner_timeout_ms;
    r->plan->planning.on_invalid = r->policy->on_invalid;
    enum bt_code code = find_planner(r);
    code = code == BT_OK ? find_synthesizer(r) : code;
    check_answer_alone(r);
    return code;
}

/* ---- writing ---- */

static void put_planning(struct writer *w, const struct planning_policy *p)
{
    struct writer in = {.out = w->out};
    put_key(w, "planning");
    doc_put_map(w->out, p->skill.len > 0 ? 3 : 2);
    put_str(&in, "agentId", p->agent_id);
    if (p->skill.len > 0) {
        put_str(&in, "skill", p->skill);
    }
    put_u64(&in, "repairs", p->repairs);
}

static void put_job(struct writer *w, const struct plan_job *e)
{
    struct writer in = {.out = w->out};
    put_key(w, "errand");
    doc_put_map(w->out, e->turn.len > 0 ? 3 : 2);
    put_name(&in, "kind", job_kind_name(e->kind));
    put_str(&in, "of", e->of);
    if (e->turn.len > 0) {
        put_str(&in, "turn", e->turn);
    }
}

void plan_write_phases(struct writer *w, const struct plan *plan)
{
    if (plan->planning.pending) {
        put_planning(w, &plan->planning);
    }
    if (plan->job != JOB_NONE) {
        put_job(w, &plan->policy->job);
    }
    if (plan->dry_run) {
        put_bool(w, "dryRun", true);
    }
}

void plan_write_phases_policy(struct writer *w, const struct plan *plan)
{
    const struct synthesis_policy *s = &plan->synthesis;
    struct writer in = {.out = w->out};
    put_u64(w, "plannerTimeoutMs", plan->planning.timeout_ms);
    put_name(w, "onInvalidPlan", on_invalid_name(plan->planning.on_invalid));
    put_key(w, "synthesis");
    if (s->agent_id.len == 0) {
        doc_put_cstr(w->out, "concat");
        return;
    }
    doc_put_map(w->out, s->skill.len > 0 ? 4 : 3);
    put_str(&in, "agentId", s->agent_id);
    if (s->skill.len > 0) {
        put_str(&in, "skill", s->skill);
    }
    put_u64(&in, "timeoutMs", s->timeout_ms);
    put_u64(&in, "maxRetries", s->max_retries);
}
