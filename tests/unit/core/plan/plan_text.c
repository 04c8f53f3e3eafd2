#include "tests/unit/core/plan/plan_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALTERNATIVES_MAX = 64, STEPS_MAX = 64, EDGES_MAX = 256, TEXT_MAX = 2048, KEYS_MAX = 8 };

/* A plan and all that it borrows. */
struct owned {
    struct plan plan;
    char *names;
    struct str ids[LIMIT_PLAN_AGENTS];
    uint32_t agents[LIMIT_PLAN_AGENTS];
    uint32_t alternatives[ALTERNATIVES_MAX];
    struct plan_wait *waits;  /* one a step */
    struct step_rules *rules; /* likewise */
    struct str key_names[KEYS_MAX];
    uint32_t keys[KEYS_MAX];
};

static _Noreturn void bad(const char *what, const char *where)
{
    (void)fprintf(stderr, "plan text: %s at '%s'\n", what, where);
    abort();
}

static void *need(size_t n, size_t size)
{
    void *p = calloc(n > 0 ? n : 1, size);
    if (p == NULL) {
        bad("out of memory", "");
    }
    return p;
}

struct plan *plan_text_blank(uint32_t n_steps, uint32_t n_edges, uint32_t agent,
                             const char *agent_id)
{
    struct owned *o = need(1, sizeof *o);
    struct plan *p = &o->plan;
    o->names = need(n_steps, 16);
    o->waits = need(n_steps, sizeof *o->waits);
    o->rules = need(n_steps, sizeof *o->rules);
    p->revision = 1;
    p->agents = (struct plan_agents){.ids = o->ids, .at = o->agents};
    p->keys = (struct plan_keys){.names = o->key_names, .at = o->keys};
    p->steps = need(n_steps, sizeof *p->steps);
    p->deps = need(n_edges, sizeof *p->deps);
    p->dependents = need(n_edges, sizeof *p->dependents);
    p->n_steps = n_steps;
    p->max_concurrency = 5;
    p->max_handoffs = 5;
    p->max_pause_ms = PLAN_MAX_PAUSE_MS;
    p->replan = (struct replan_policy){.max_step = 3, .max_total = 5};
    p->alternatives = o->alternatives;
    for (uint32_t i = 0; i < n_steps; i++) {
        char *name = o->names + 16 * (size_t)i;
        (void)snprintf(name, 16, "s%u", (unsigned)i);
        p->steps[i] = (struct plan_step){.step_id = str_from(name),
                                         .revision = 1,
                                         .agent_id = str_from(agent_id),
                                         .agent = agent,
                                         .rules = &o->rules[i]};
        o->rules[i].policy = (struct step_policy){
            .on_verify = ON_FAILURE_RETRY,
            .backoff = {.kind = BACKOFF_FIXED, .initial_ms = 100, .max_ms = 30000}};
    }
    return p;
}

struct plan_wait *plan_text_wait(struct plan *plan, uint32_t step)
{
    return &((struct owned *)plan)->waits[step];
}

void plan_text_free(struct plan *plan)
{
    if (plan == NULL) {
        return;
    }
    struct owned *o = (struct owned *)plan;
    free(plan->steps);
    free(plan->deps);
    free(plan->dependents);
    free(o->names);
    free(o->waits);
    free(o->rules);
    free(o);
}

/* ---- reading ---- */

/* The next word made of none of the stop characters; moves *at behind it. */
static char *word(char **at, const char *stop, char *ret_stop)
{
    char *s = *at + strspn(*at, " ");
    char *end = s + strcspn(s, stop);
    *ret_stop = *end;
    *at = *end == '\0' ? end : end + 1;
    *end = '\0';
    for (char *back = end; back > s && back[-1] == ' '; back--) {
        back[-1] = '\0';
    }
    return s;
}

static uint32_t number_of(const char *w, const char *name, bool *ret_is)
{
    const size_t n = strlen(name);
    *ret_is = strncmp(w, name, n) == 0 && w[n] == '=';
    return *ret_is ? (uint32_t)strtoul(w + n + 1, NULL, 10) : 0;
}

/* "name=text": the text, or NULL. */
static const char *text_of(const char *w, const char *name)
{
    const size_t n = strlen(name);
    return strncmp(w, name, n) == 0 && w[n] == '=' ? w + n + 1 : NULL;
}

struct reading {
    struct plan *plan;
    struct plan_step *step;
    struct registry *registry;
};

static struct str agent_word(const struct reading *r, const char *name, uint32_t *ret)
{
    *ret = registry_agent_add(r->registry, str_from(name), 0);
    return str_from(name);
}

/* Puts the agent into the plan's; returns its place. */
static uint32_t grant(const struct reading *r, const char *name)
{
    struct plan_agents *a = &r->plan->agents;
    uint32_t agent;
    const struct str id = agent_word(r, name, &agent);
    const uint32_t at = plan_agent_find(r->plan, agent);
    if (at != UINT32_MAX) {
        return at;
    }
    a->ids[a->n] = id;
    a->at[a->n] = agent;
    return a->n++;
}

static bool plan_number(struct plan *p, const char *w)
{
    const struct {
        const char *name;
        uint32_t *u32;
        uint64_t *u64;
    } numbers[] = {
        {"max", &p->max_concurrency, NULL},
        {"prio", &p->priority, NULL},
        {"timeout", NULL, &p->timeout_ms},
        {"signtime", NULL, &p->signoff_timeout_ms},
        {"fallbacks", &p->max_fallbacks, NULL},
        {"handoffs", &p->max_handoffs, NULL},
        {"maxpause", NULL, &p->max_pause_ms},
        {"replans", &p->replan.max_total, NULL},
        {"perstep", &p->replan.max_step, NULL},
        {"cooldown", NULL, &p->replan.cooldown_ms},
        {"replantime", NULL, &p->replan.timeout_ms},
        {"budget", NULL, &p->budget_tokens},
        {"replanbudget", NULL, &p->replan.budget_tokens},
        {"cost", NULL, &p->budget_micros},
        {"session", &p->session, NULL},
        {"repairs", &p->planning.repairs, NULL},
        {"plantime", NULL, &p->planning.timeout_ms},
        {"answertime", NULL, &p->synthesis.timeout_ms},
        {"rectify", &p->synthesis.max_retries, NULL},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        bool is = false;
        const uint32_t n = number_of(w, numbers[i].name, &is);
        if (is && numbers[i].u32 != NULL) {
            *numbers[i].u32 = n;
        } else if (is) {
            *numbers[i].u64 = n;
        }
        if (is) {
            return true;
        }
    }
    return false;
}

/* The place of the key, plus 1. A plan's own is the first, and is shared with no step. */
static uint32_t key_word(struct plan *p, const char *number)
{
    struct plan_keys *k = &p->keys;
    const uint32_t key = (uint32_t)strtoul(number, NULL, 10);
    for (uint32_t i = p->keyed ? 1 : 0; i < k->n; i++) {
        if (k->at[i] == key) {
            return i + 1;
        }
    }
    if (k->n == KEYS_MAX) {
        bad("too many keys", number);
    }
    k->names[k->n] = str_from(number);
    k->at[k->n] = key;
    return ++k->n;
}

/* What the plan as a whole asks for. */
static bool job_word(const struct reading *r, const char *w)
{
    struct plan *p = r->plan;
    if (text_of(w, "planner") != NULL) {
        p->planning.pending = true;
        p->planning.agent_id = agent_word(r, text_of(w, "planner"), &p->planning.agent);
    } else if (text_of(w, "answer") != NULL) {
        p->synthesis.agent_id = agent_word(r, text_of(w, "answer"), &p->synthesis.agent);
    } else if (text_of(w, "oninvalid") != NULL) {
        while (strcmp(text_of(w, "oninvalid"), on_invalid_name(p->planning.on_invalid)) != 0) {
            p->planning.on_invalid++;
        }
    } else {
        return false;
    }
    return true;
}

static void plan_word(const struct reading *r, const char *w)
{
    struct plan *p = r->plan;
    if (*w == '\0' || plan_number(p, w) || job_word(r, w)) {
        return;
    }
    if (text_of(w, "replan") != NULL) {
        p->replan.agent_id = agent_word(r, text_of(w, "replan"), &p->replan.agent);
    } else if (text_of(w, "search") != NULL) {
        p->search_with = agent_word(r, text_of(w, "search"), &p->search_agent);
    } else if (text_of(w, "grant") != NULL) {
        (void)grant(r, text_of(w, "grant"));
    } else if (text_of(w, "key") != NULL) {
        (void)key_word(p, text_of(w, "key"));
        p->keyed = true;
    } else if (strcmp(w, "keyskip") == 0) {
        p->overlap = KEY_SKIP;
    } else if (strcmp(w, "keycancel") == 0) {
        p->overlap = KEY_CANCEL;
    } else if (strcmp(w, "par") == 0) {
        p->chain = false;
    } else if (strcmp(w, "signoff") == 0) {
        p->signoff = true;
    } else if (strcmp(w, "handback") == 0) {
        p->handback = true;
    } else if (strcmp(w, "dry") == 0) {
        p->dry_run = true;
    } else if (strcmp(w, "errand") == 0) {
        p->job = JOB_SYNTHESIS;
    } else if (strcmp(w, "undoalways") == 0) {
        p->undo = UNDO_ALWAYS;
    } else if (strcmp(w, "undonever") == 0) {
        p->undo = UNDO_NEVER;
    } else if (strcmp(w, "undoing") == 0) {
        p->child.kind = CHILD_OF_UNDO;
    } else if (strcmp(w, "inner") == 0) {
        p->child.kind = CHILD_OF_SUB;
    } else {
        bad("unknown word of the plan", w);
    }
}

static bool step_number(struct step_policy *p, struct loop_policy *loop, const char *w)
{
    const struct {
        const char *name;
        uint32_t *u32;
        uint64_t *u64;
    } numbers[] = {
        {"retries", &p->max_retries, NULL},
        {"jitter", &p->backoff.jitter_permille, NULL},
        {"timeout", NULL, &p->timeout_ms},
        {"backoff", NULL, &p->backoff.initial_ms},
        {"linear", NULL, &p->backoff.initial_ms},
        {"idle", NULL, &p->idle_ms},
        {"queue", NULL, &p->queue_timeout_ms},
        {"agentwait", NULL, &p->agent_wait_ms},
        {"limit", NULL, &p->limit_ms},
        {"approval", NULL, &p->approval_timeout_ms},
        {"check", NULL, &p->check_timeout_ms},
        {"est", NULL, &p->estimate_tokens},
        {"estcost", NULL, &p->estimate_micros},
        {"rounds", &loop->max, NULL},
        {"pause", NULL, &loop->delay_ms},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        bool is = false;
        const uint32_t n = number_of(w, numbers[i].name, &is);
        if (is && numbers[i].u32 != NULL) {
            *numbers[i].u32 = n;
        } else if (is) {
            *numbers[i].u64 = n;
        }
        if (is) {
            p->backoff.kind =
                strcmp(numbers[i].name, "linear") == 0 ? BACKOFF_LINEAR : p->backoff.kind;
            return true;
        }
    }
    return false;
}

static bool policy_word(const char *w, enum on_failure *on_failure)
{
    for (int i = 0; i < ON_FAILURE_COUNT; i++) {
        if (strcmp(w, on_failure_name((enum on_failure)i)) == 0) {
            *on_failure = (enum on_failure)i;
            return true;
        }
    }
    return false;
}

static bool step_flag(struct plan_step *s, const char *w)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {
        {"approve", &s->rules->policy.requires_approval},
        {"closed", &s->rules->policy.gate_closed},
        {"open", &s->rules->policy.verify_open},
        {"gone", &s->superseded},
        {"anyend", &s->after_any_end},
    };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (strcmp(w, flags[i].name) == 0) {
            *flags[i].flag = true;
            return true;
        }
    }
    return false;
}

/* The core does not look into it. */
static const uint8_t condition[] = {0x80};

static bool wait_word(const struct reading *r, const char *w)
{
    struct plan_step *s = r->step;
    struct plan_wait *wait = plan_text_wait(r->plan, (uint32_t)(s - r->plan->steps));
    bool is_time = false;
    bool is_date = false;
    bool is_patience = false;
    const uint32_t ms = number_of(w, "sleep", &is_time);
    const uint32_t until = number_of(w, "date", &is_date);
    const uint32_t patience = number_of(w, "patience", &is_patience);
    if (is_patience) {
        wait->ms = patience;
        return true;
    }
    if (is_time || is_date) {
        *wait = (struct plan_wait){
            .what = is_time ? WAIT_FOR_TIME : WAIT_FOR_DATE, .ms = ms, .until = until};
    } else if (text_of(w, "signal") != NULL) {
        *wait =
            (struct plan_wait){.what = WAIT_FOR_SIGNAL, .signal = str_from(text_of(w, "signal"))};
    } else {
        return false;
    }
    s->type = STEP_TYPE_WAIT;
    s->wait = wait;
    s->agent = AGENT_NONE;
    s->agent_id = STR_LIT("");
    return true;
}

static void step_word(const struct reading *r, const char *w)
{
    struct plan_step *s = r->step;
    struct step_policy *p = &s->rules->policy;
    if (*w == '\0' || policy_word(w, &p->on_failure) || step_number(p, &s->rules->loop, w) ||
        step_flag(s, w) || wait_word(r, w)) {
        return;
    }
    if (text_of(w, "onverify") != NULL) {
        if (!policy_word(text_of(w, "onverify"), &p->on_verify)) {
            bad("no policy", w);
        }
    } else if (text_of(w, "key") != NULL) {
        s->key = key_word(r->plan, text_of(w, "key"));
    } else if (text_of(w, "gate") != NULL) {
        s->rules->gate_with = agent_word(r, text_of(w, "gate"), &s->rules->gate_agent);
    } else if (text_of(w, "verify") != NULL) {
        s->rules->verify_with = agent_word(r, text_of(w, "verify"), &s->rules->verify_agent);
    } else if (text_of(w, "alt") != NULL) {
        if (s->alternatives_n == 0) {
            s->alternatives_at = r->plan->n_alternatives;
        }
        r->plan->alternatives[r->plan->n_alternatives++] = grant(r, text_of(w, "alt"));
        s->alternatives_n++;
    } else if (text_of(w, "noretry") != NULL) {
        const char *name = text_of(w, "noretry");
        p->no_retry |= 1u << err_class_from_name(name, strlen(name));
    } else if (text_of(w, "retryon") != NULL) {
        const char *name = text_of(w, "retryon");
        p->retry_on |= 1u << err_class_from_name(name, strlen(name));
    } else if (strcmp(w, "review") == 0) {
        s->type = STEP_TYPE_REVIEW;
        s->agent = AGENT_NONE;
    } else if (strcmp(w, "child") == 0) {
        s->type = STEP_TYPE_PLAN;
        s->agent = AGENT_NONE;
    } else if (strcmp(w, "undo") == 0) {
        s->rules->compensate = (struct doc){condition, sizeof condition};
        s->undoes = true;
    } else if (strcmp(w, "undoes") == 0) {
        s->undoes = true;
    } else if (strcmp(w, "accept") == 0) {
        s->rules->loop.accept = 1;
    } else if (strcmp(w, "always") == 0) {
        p->run_if = RUN_IF_ALWAYS;
    } else if (strcmp(w, "cleanup") == 0) {
        p->run_if = RUN_IF_FAILURE;
    } else if (strcmp(w, "when") == 0) {
        s->rules->when = (struct doc){condition, sizeof condition};
    } else if (strcmp(w, "unsafe") == 0) {
        p->effects = EFFECTS_UNSAFE;
    } else if (strcmp(w, "idempotent") == 0) {
        p->effects = EFFECTS_IDEMPOTENT;
    } else {
        bad("unknown word of a step", w);
    }
}

static void words(const struct reading *r, char *text,
                  void (*take)(const struct reading *, const char *))
{
    char stop = ' ';
    while (*text != '\0') {
        take(r, word(&text, " ", &stop));
    }
}

/* NAME[@agent][<dep,dep][(words)] */
static void read_step(struct plan *p, char *text, struct registry *registry)
{
    struct plan_step *step = &p->steps[p->n_steps];
    char *options = strchr(text, '(');
    if (options != NULL) {
        char *end = strchr(options, ')');
        if (end == NULL) {
            bad("no ')'", text);
        }
        *options++ = '\0';
        *end = '\0';
    }
    char *deps = strchr(text, '<');
    if (deps != NULL) {
        *deps++ = '\0';
    }
    char stop = '\0';
    char *name = word(&text, "@", &stop);
    step->step_id = str_from(name);
    step->task = step->step_id;
    step->agent_id = stop == '@' ? str_from(word(&text, " ", &stop)) : STR_LIT("x");
    step->agent = registry_agent_add(registry, step->agent_id, 0);
    if (options != NULL) {
        words(&(struct reading){p, step, registry}, options, step_word);
    }
    step->deps_at = p->n_edges;
    while (deps != NULL && *deps != '\0') {
        const char *dep = word(&deps, ",", &stop);
        const uint32_t ix = plan_step_find(p, str_from(dep));
        if (ix == UINT32_MAX) {
            bad("dependency on a step that does not come before", dep);
        }
        p->deps[p->n_edges++] = ix;
        step->deps_n++;
    }
    p->n_steps++;
}

struct plan *plan_text_new(const char *text, struct registry *registry)
{
    struct plan *p = plan_text_blank(STEPS_MAX, EDGES_MAX, 0, "x");
    struct owned *o = (struct owned *)p;
    free(o->names);
    o->names = need(1, TEXT_MAX);
    if (strlen(text) >= TEXT_MAX) {
        bad("too long", text);
    }
    memcpy(o->names, text, strlen(text) + 1);
    char *at = o->names;
    p->n_steps = 0;
    p->chain = strchr(text, '<') == NULL;
    p->max_concurrency = p->chain ? 1 : 5;
    if (strchr(at, ':') != NULL) {
        char stop = '\0';
        char *head = word(&at, ":", &stop);
        if (p->chain && strstr(head, "par") != NULL) {
            p->max_concurrency = 5;
        }
        words(&(struct reading){p, NULL, registry}, head, plan_word);
    }
    while (*at != '\0') {
        char stop = '\0';
        char *step = word(&at, ";", &stop);
        if (p->n_steps == STEPS_MAX) {
            bad("too many steps", step);
        }
        read_step(p, step, registry);
    }
    plan_link(p);
    if (!plan_agents_collect(p)) {
        bad("too many agents", text);
    }
    return p;
}
