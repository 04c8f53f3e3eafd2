/*
 * What is wrong with a plan: all problems at once (F07). Works on the plan as read, before
 * plan_link, with dependencies still as names, so that it can name what is missing. Pure: the
 * caller gives all memory. Schema mismatches of parameters are found by planner/plan_schema, which
 * appends to the same list.
 */
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
    PROBLEM_STYLE, /* warnings, as those that follow: F08, of planner/plan_lint only */
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

/* Caller's memory; beyond cap problems are only counted. */
struct problems {
    struct problem *at;
    uint32_t cap;
    uint32_t n;     /* stored */
    uint32_t total; /* found */
    uint32_t errors;
};

/*
 * Adds one problem; its message is the parts one after the other, cut at a whole character, control
 * characters replaced. When the list is full, an error takes the place of a warning. step NULL =
 * the plan. Edges use planner/problem_add.h, which formats with printf.
 */
void problem_put(struct problems *p, enum problem_category c, bool warning,
                 const struct plan_step *step, uint32_t ix, const char *field,
                 const struct str *parts, uint32_t n_parts);

/* A text of a step that may hold templates, besides its task: the strings of its parameters, found
 * by the edge. */
struct plan_text {
    uint32_t step;
    struct str text;
    const char *field; /* "parameters.sql"; lives as long as the input */
};

struct plan_check_input {
    const struct plan *plan;
    /* Names of dependencies as read: dep_names[step->deps_at .. +deps_n]. "id" is the step of that
     * name that is not superseded, "id@3" the superseded one of revision 3. One without .ptr is
     * known already: its index stands in ret_deps. */
    const struct str *dep_names;
    const struct registry
        *registry;                 /* NULL = do not check agents (offline `plan check`, recovery) */
    const struct plan_text *texts; /* grouped by step, steps ascending */
    uint32_t n_texts;
    bool again;     /* a plan that was checked once: only ids, dependencies and cycles */
    uint32_t first; /* rows before it came with earlier revisions: their agents and the lengths of
                       their tasks are not checked again, */
    const uint8_t
        *settled;       /* where it is not 0, the step will not run (again): neither is its agent
                           checked, nor its task, nor its templates. NULL = none is settled */
    uint32_t *scratch;  /* plan_check_scratch() numbers */
    uint32_t *ret_deps; /* n_edges: resolved indexes, ascending in each step (only valid when there
                           were no errors) */
};

size_t plan_check_scratch(const struct plan *p);

/*
 * Empty plan; duplicate or malformed ids; dependencies that are missing, doubled or on itself;
 * cycles with their path
 * ("a -> b -> a", read "a depends on b"); agent unknown ("Unknown agent: x; known: ..."); skill
 * that the agent does not have; templates (core/template.h) in task and texts that are malformed,
 * name an unknown step or one that does not come before (not a dependency, direct or not; in a
 * chain: not earlier); a task that is too long; a task length outside 15-200 (warning). Agents
 * without a card (configured, not yet registered) are known, their skills are not. Superseded rows
 * keep their names, their place and their dependencies; nothing else about them is checked, and no
 * template of another row can mean them.
 *
 * No recursion. O(steps + edges + texts), but for templates that name an indirect dependency:
 * finding those is bounded by a budget of visited edges, beyond which the step is told to name the
 * dependency directly.
 */
void plan_check(const struct plan_check_input *in, struct problems *out);

/* Whether the text at `ref` ("fetch.rows.0" or a step called "fetch.rows") names a step of the
 * plan: the longest match wins. Returns its index, or UINT32_MAX; *ret_path is what is left
 * ("rows.0"). For edges: linear in the steps. */
uint32_t plan_check_ref(const struct plan *p, struct str ref, struct str *ret_path);
#endif
