#include "tests/unit/core/plan_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 64, EDGES_MAX = 256, TEXT_MAX = 2048 };

/* A plan and all that it borrows. */
struct owned {
    struct plan plan;
    char *names;
    struct str ids[LIMIT_PLAN_AGENTS];
    uint32_t agents[LIMIT_PLAN_AGENTS];
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
    p->revision = 1;
    p->agents = (struct plan_agents){.ids = o->ids, .at = o->agents};
    p->steps = need(n_steps, sizeof *p->steps);
    p->deps = need(n_edges, sizeof *p->deps);
    p->dependents = need(n_edges, sizeof *p->dependents);
    p->n_steps = n_steps;
    p->max_concurrency = 5;
    for (uint32_t i = 0; i < n_steps; i++) {
        char *name = o->names + 16 * (size_t)i;
        (void)snprintf(name, 16, "s%u", (unsigned)i);
        p->steps[i] = (struct plan_step){
            .step_id = str_from(name),
            .revision = 1,
            .agent_id = str_from(agent_id),
            .agent = agent,
            .policy = {.backoff = {.kind = BACKOFF_FIXED, .initial_ms = 100, .max_ms = 30000}}};
    }
    return p;
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

static void plan_word(struct plan *p, const char *w)
{
    bool is = false;
    uint32_t n = number_of(w, "max", &is);
    if (is) {
        p->max_concurrency = n;
        return;
    }
    n = number_of(w, "timeout", &is);
    if (is) {
        p->timeout_ms = n;
    } else if (strcmp(w, "par") == 0) {
        p->chain = false;
    } else if (*w != '\0') {
        bad("unknown word of the plan", w);
    }
}

static bool step_number(struct step_policy *p, const char *w)
{
    bool is = false;
    uint32_t n = number_of(w, "retries", &is);
    if (is) {
        p->max_retries = n;
        return true;
    }
    n = number_of(w, "timeout", &is);
    if (is) {
        p->timeout_ms = n;
        return true;
    }
    n = number_of(w, "backoff", &is);
    if (is) {
        p->backoff.initial_ms = n;
        return true;
    }
    n = number_of(w, "linear", &is);
    if (is) {
        p->backoff.kind = BACKOFF_LINEAR;
        p->backoff.initial_ms = n;
        return true;
    }
    n = number_of(w, "jitter", &is);
    p->backoff.jitter_permille = is ? n : p->backoff.jitter_permille;
    return is;
}

static void step_word(struct step_policy *p, const char *w)
{
    if (*w == '\0' || step_number(p, w)) {
        return;
    }
    if (strcmp(w, "skip") == 0) {
        p->on_failure = ON_FAILURE_SKIP;
    } else if (strcmp(w, "continue") == 0) {
        p->on_failure = ON_FAILURE_CONTINUE;
    } else if (strcmp(w, "unsafe") == 0) {
        p->effects = EFFECTS_UNSAFE;
    } else if (strcmp(w, "idempotent") == 0) {
        p->effects = EFFECTS_IDEMPOTENT;
    } else if (strcmp(w, "always") == 0) {
        p->run_if_always = true;
    } else {
        bad("unknown word of a step", w);
    }
}

static void words(char *text, void (*take)(void *, const char *), void *self)
{
    char stop = ' ';
    while (*text != '\0') {
        take(self, word(&text, " ", &stop));
    }
}

static void take_plan_word(void *self, const char *w)
{
    plan_word(self, w);
}

static void take_step_word(void *self, const char *w)
{
    step_word(self, w);
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
        words(options, take_step_word, &step->policy);
    }
    char *deps = strchr(text, '<');
    if (deps != NULL) {
        *deps++ = '\0';
    }
    char stop = '\0';
    char *name = word(&text, "@", &stop);
    step->step_id = str_from(name);
    step->agent_id = stop == '@' ? str_from(word(&text, " ", &stop)) : STR_LIT("x");
    step->agent = registry_agent_add(registry, step->agent_id, 0);
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
        words(head, take_plan_word, p);
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
