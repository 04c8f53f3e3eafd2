/* The plan check: returns all problems of a plan at once (F07). It works on the plan as read,
 * before plan_link. Dependencies are still names, so messages can name the missing ones. Pure: the
 * caller gives all memory. plan/plan_schema checks parameters against schemas and appends to the
 * same list. */
#ifndef CORE_PLAN_CHECK_H
#define CORE_PLAN_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "registry/registry.h"
#include "supervisor/core/plan/plan.h"

enum problem_category {
    PROBLEM_EMPTY_PLAN,
    PROBLEM_DUPLICATE_ID,
    PROBLEM_MISSING_DEPENDENCY,
    PROBLEM_CYCLE_DETECTED,
    PROBLEM_MISSING_AGENT,
    PROBLEM_MISSING_SKILL,
    PROBLEM_INVALID_PARAMS,
    PROBLEM_BAD_TEMPLATE,
    PROBLEM_LIMIT,
    PROBLEM_INVALID_FIELD,
    PROBLEM_UNKNOWN_FIELD,
    PROBLEM_UNSUPPORTED,
    PROBLEM_STYLE, /* this and the next are warnings of plan/plan_lint only (F08) */
    PROBLEM_MISSING_GATE,
    PROBLEM_PARALLEL_EXPLOSION,
    PROBLEM_OPTIMISM_BIAS,
    PROBLEM_ORPHAN_TASK,
    PROBLEM_DISCONNECTED_FLOW,
    PROBLEM_CATEGORY_COUNT
};
const char *problem_category_name(enum problem_category c); /* "cycle_detected" */

struct problem {
    enum problem_category category;
    bool warning;
    uint32_t step; /* UINT32_MAX = the plan */
    char step_id[LIMIT_ID_BYTES + 1];
    char field[96];
    char message[512];
};

/* Caller's memory. Problems beyond cap are only counted. */
struct problems {
    struct problem *at;
    uint32_t cap;
    uint32_t n;     /* stored */
    uint32_t total; /* found */
    uint32_t errors;
};

/* Adds one problem. Its message is the parts joined, without control characters; what is cut ends
 * with "…". In a full list an error replaces a warning. step NULL = the plan. */
void problem_put(struct problems *p, enum problem_category c, bool warning,
                 const struct plan_step *step, uint32_t ix, const char *field,
                 const struct str *parts, uint32_t n_parts);

/* A text of a step that may contain templates, besides its task: a string of its parameters. The
 * caller finds them. */
struct plan_text {
    uint32_t step;
    struct str text;
    const char *field; /* "parameters.sql"; lives as long as the input */
    bool reference;    /* no templates: it is a reference itself, of a condition: "results.a.b" or
                          "steps.a" */
};

/* A step names another one that does not come before it. */
struct plan_missing {
    uint32_t step, dep;
};

struct plan_check_input {
    const struct plan *plan;
    /* Names of dependencies as read: dep_names[step->deps_at .. +deps_n]. "id" is the step of that
     * name that is not superseded; "id@3" is the superseded one of revision 3. One without .ptr is
     * resolved: its index is in ret_deps. */
    const struct str *dep_names;
    const struct registry
        *registry; /* NULL = agents are not checked (offline `plan check`, recovery) */
    const struct plan_text *texts; /* grouped by step, steps ascending */
    uint32_t n_texts;
    bool late_agents; /* an agent that the registry does not know is a warning */
    bool again;       /* the plan was checked before: only ids, dependencies and cycles */
    uint32_t first;   /* entries before it came with earlier revisions: their agents and lengths of
                         tasks are not checked */
    /* The steps of a child plan: what names no step of them is checked outside, and templates may
     * begin with these words. */
    bool outer;
    const struct str *words;
    uint32_t n_words;
    const uint8_t *settled; /* not 0: the step will not run again, so its agent, task and templates
                               are not checked; NULL = check all */
    uint32_t *scratch;      /* plan_check_scratch() numbers */
    /* In a graph, what references lack as dependencies, in the order of the steps, each once. With
     * missing_max 0, or over it, they are errors. */
    struct plan_missing *missing;
    uint32_t missing_max, n_missing;
    uint32_t *
        ret_deps; /* n_edges: resolved indexes, ascending in each step; valid only without errors */
};

size_t plan_check_scratch(const struct plan *p);

/*
 * Checks the whole plan:
 *   - it is not empty; ids are well formed and unique
 *   - dependencies exist, are not repeated and not on the step itself; cycles are reported with
 *     their path ("a -> b -> a", read "a depends on b")
 *   - agents are known ("Unknown agent: x; known: ...") and have the skill. An agent without a card
 *     (configured, not yet registered) is known; its skills are not
 *   - templates (template.h) in task and texts are well formed and name a step that comes before:
 *     a direct or indirect dependency, or in a chain an earlier step
 *   - tasks are not too long; a length outside 15-200 is a warning
 *
 * Superseded steps keep their names, places and dependencies. Nothing else of them is checked, and
 * no template of another step can mean them. No recursion. O(steps + edges + texts), except for
 * templates that name an indirect dependency: a budget of visited edges bounds that search. Beyond
 * it the message asks to name the dependency directly.
 */
void plan_check(struct plan_check_input *in, struct problems *out);

/* Whether the text at `ref` ("fetch.rows.0" or a step called "fetch.rows") names a step of the
 * plan; the longest match wins. Returns the step's index or UINT32_MAX. *ret_path is the rest
 * ("rows.0"). Linear in the steps. */
uint32_t plan_check_ref(const struct plan *p, struct str ref, struct str *ret_path);
#endif
