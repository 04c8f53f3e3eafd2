/*
 * What is wrong with a plan: all problems at once (F07). Works on the plan as read, before plan_link, with
 * dependencies still as names, so that it can name what is missing. Pure: the caller gives all memory.
 * Schema mismatches of parameters are found by planner/plan_schema, which appends to the same list.
 */
#ifndef CORE_PLAN_CHECK_H
#define CORE_PLAN_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "registry/registry.h"
#include "supervisor/core/plan.h"

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
    PROBLEM_STYLE, /* warning */
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

/* Caller's memory; beyond cap problems are only counted. */
struct problems {
    struct problem *at;
    uint32_t cap;
    uint32_t n;     /* stored */
    uint32_t total; /* found */
    uint32_t errors;
};

/* Formats with %s and %u only (no libc): use problem_add from edges, which may use full printf. Declared in
 * planner/problem_add.h. The core uses problem_put with parts. */
void problem_put(struct problems *p, enum problem_category c, bool warning, const struct plan_step *step, uint32_t ix,
                 const char *field, const struct str *parts, uint32_t n_parts);

/* Names of dependencies per step as read: names[step->deps_at .. +deps_n]. */
struct plan_check_input {
    const struct plan *plan;
    const struct str *dep_names;
    const struct registry *registry; /* NULL = do not check agents (offline `plan check`) */
    uint32_t *scratch;               /* 4 * n_steps + n_edges + 16 numbers (a hash table and a work list) */
    uint32_t *ret_deps;              /* n_edges: resolved indexes (only valid when there were no errors) */
};
/*
 * Empty plan; duplicate or malformed ids; dependencies that are missing, doubled or on itself; cycles with their path
 * ("a -> b -> a"); agent unknown ("Unknown agent: x; known: ..."); skill that the agent does not have; templates
 * {{results.<stepId>[.path]}} in task and parameters that are malformed, name an unknown step or one that does not
 * come before (not a dependency, direct or not; in a chain: not earlier); task length outside 15-200 (warning).
 * No recursion; O(steps + edges) but for the ancestry of templates, which is bounded by the edges per template.
 */
void plan_check(const struct plan_check_input *in, struct problems *out);
#endif
