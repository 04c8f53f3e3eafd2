/* Rules that combine schemas. The verdict of an aborted check does not count, whatever they make of
 * it. */
#include "protocol/jsonschema/check_internal.h"

bool rule_all_of(struct checker *c, const struct rule *r, const struct check_target *a)
{
    bool ok = true;

    for (uint32_t i = 0; i < r->u.list.n && (ok || !check_is_done(c, a->problems)); i++) {
        ok = node_check(c, r->u.list.at[i], a) && ok;
    }
    return ok;
}

static uint32_t path_depth(const char *path)
{
    uint32_t n = 0;

    for (; *path != '\0'; path++) {
        n += *path == '/';
    }
    return n;
}

/* When all alternatives fail, the one whose problem lies deepest is most likely the one meant. */
struct best_match {
    struct schema_problem problem;
    bool any;
};

/* Checks each alternative once and keeps its first problem, so nesting does not double the work. */
static bool try_alternative(struct checker *c, uint32_t node, const struct check_target *a,
                            struct best_match *best)
{
    struct schema_problem why = {{0}, {0}};
    struct problem_list own = {.at = &why, .max = 1};
    struct check_target one = {
        .item = a->item, .path = a->path, .problems = a->problems == NULL ? NULL : &own};

    if (node_check(c, node, &one)) {
        return true;
    }
    if (own.n == 1 && (!best->any || path_depth(why.path) > path_depth(best->problem.path))) {
        best->problem = why;
        best->any = true;
    }
    return false;
}

/* Reports the problem of the best match, with its own path. */
static bool report_no_match(const struct check_target *a, uint32_t n, const struct best_match *best)
{
    if (a->problems == NULL || !best->any) {
        return check_report(a, "matches none of the %u forms allowed here", n);
    }
    return check_report(a, "matches none of the %u forms allowed here; the nearest: %.120s%s%.150s",
                        n, best->problem.path, best->problem.path[0] == '\0' ? "" : " ",
                        best->problem.message);
}

bool rule_any_of(struct checker *c, const struct rule *r, const struct check_target *a)
{
    struct best_match best = {.any = false};

    for (uint32_t i = 0; i < r->u.list.n; i++) {
        if (try_alternative(c, r->u.list.at[i], a, &best)) {
            return true;
        }
    }
    return report_no_match(a, r->u.list.n, &best);
}

bool rule_one_of(struct checker *c, const struct rule *r, const struct check_target *a)
{
    struct best_match best = {.any = false};
    uint32_t matched = 0;

    for (uint32_t i = 0; i < r->u.list.n && matched < 2; i++) {
        matched += try_alternative(c, r->u.list.at[i], a, &best);
    }
    if (matched == 0) {
        return report_no_match(a, r->u.list.n, &best);
    }
    return matched == 1 ||
           check_report(a,
                        "matches more than one of the %u forms allowed here, must match "
                        "exactly one",
                        r->u.list.n);
}

bool rule_not(struct checker *c, const struct rule *r, const struct check_target *a)
{
    struct check_target silent = {.item = a->item, .path = a->path};

    return !node_check(c, r->u.node, &silent) || check_report(a, "is what \"not\" forbids here");
}

bool rule_if(struct checker *c, const struct rule *r, const struct check_target *a)
{
    struct check_target silent = {.item = a->item, .path = a->path};
    bool yes = node_check(c, r->u.conditional.if_node, &silent);
    uint32_t next = yes ? r->u.conditional.then_node : r->u.conditional.else_node;

    return next == NODE_NONE || node_check(c, next, a);
}
