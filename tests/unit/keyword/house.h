/* The bundled agents (cards.json, which cards.sh prints) and agents whose skills have no
 * inputSchema. */
#ifndef TEST_KEYWORD_HOUSE_H
#define TEST_KEYWORD_HOUSE_H

#include "tests/unit/plan/fixture.h"

#include <stdio.h>

#include "supervisor/keyword/planner.h"

static inline void add_bundled(struct bench *b)
{
    static char card[65536];
    FILE *f = fopen(CARDS, "r");
    uint32_t n = 0;
    assert_non_null(f);
    for (; fgets(card, sizeof card, f) != NULL; n++) {
        for (char *c = card; *c != '\0'; c++) {
            *c = *c == '\'' ? '`' : *c; /* which the fixture takes for a quote */
        }
        add_agent(b, card);
    }
    assert_int_equal(n, 5);
    (void)fclose(f);
}

static inline void add_without_schemas(struct bench *b)
{
    add_agent(b, "{'agentId':'incidents','skills':[{'id':'find_incidents','name':'Find incidents',"
                 "'description':'Finds incidents in the monitoring system.'}]}");
    add_agent(b, "{'agentId':'tickets','skills':[{'id':'create_ticket','name':'Create a ticket',"
                 "'description':'Creates tickets for the operators.'}]}");
    add_agent(b, "{'agentId':'customers','skills':[{'id':'get_customers','name':'Get customers',"
                 "'description':'Gets all customers from the store.'}]}");
}

static inline enum bt_code plan(struct bench *b, const char *goal, bool allow_unrouted,
                                struct planner_result *ret)
{
    const struct planner_request request = {
        .goal = str_from(goal), .registry = b->registry, .allow_unrouted = allow_unrouted};
    return planner_plan(&request, &b->arena, ret, &b->err);
}

/* "agent.skill {parameters}" of each step: ", " between those of a chain, "; " else, with the
 * steps that they follow: "(1,2)". */
static inline const char *outcome(struct bench *b, const struct planner_result *r)
{
    const struct doc steps = doc_get(r->plan, STR_LIT("steps"));
    struct buf out;
    buf_init(&out, 100000);
    for (uint32_t i = 0; i < r->n_routes; i++) {
        const struct doc step = doc_at(steps, i);
        const struct doc params = doc_get(step, STR_LIT("parameters"));
        const struct doc deps = doc_get(step, STR_LIT("dependsOn"));
        buf_add_cstr(&out, i == 0 ? "" : deps.ptr == NULL ? ", " : "; ");
        buf_printf(&out, "%.*s.%.*s %s", STR_ARG(r->routes[i].agent_id),
                   STR_ARG(r->routes[i].skill), params.ptr == NULL ? "-" : json_of(b, params));
        for (uint32_t k = 0; doc_at(deps, k).ptr != NULL; k++) {
            const struct str id = doc_string(doc_at(deps, k));
            uint32_t n = 0;
            while (!str_eq(r->routes[n].step_id, id)) {
                n++;
            }
            buf_printf(&out, "%s%u", k == 0 ? " (" : ",", n + 1);
        }
        buf_add_cstr(&out, doc_head(deps).n > 0 && deps.ptr != NULL ? ")" : "");
    }
    const struct str text = arena_str(&b->arena, buf_str(&out));
    buf_done(&out);
    return text.ptr;
}
#endif
