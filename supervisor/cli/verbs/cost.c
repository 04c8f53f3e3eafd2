/* cost: tokens and money by phase, compared with the estimates. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/plans.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/cli/view/table.h"

enum { AMOUNT_MAX = 32, TASK_MAX = 80 };

/* The last phase is one of sessions, the others are phases of plans. */
static const char *const phases[] = {"planning", "execution", "replanning", "synthesis",
                                     "conversation"};
enum { PHASES_MAX = sizeof phases / sizeof phases[0], PLAN_PHASES_MAX = PHASES_MAX - 1 };

static const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static double tokens_of(const cJSON *usage)
{
    return json_number(usage, "inputTokens") + json_number(usage, "outputTokens");
}

static void cell_count(struct table *t, double n)
{
    if (n != 0) {
        table_cell(t, "%.0f", n);
    } else {
        table_cell(t, "%s", "");
    }
}

static void cell_money(struct table *t, double micros)
{
    char text[AMOUNT_MAX];

    cli_format_micros(micros, text, sizeof text);
    table_cell(t, "%s", micros != 0 ? text : "");
}

static void row_phase(struct table *t, const char *name, const cJSON *usage)
{
    table_cell(t, "%s", name);
    cell_count(t, json_number(usage, "inputTokens"));
    cell_count(t, json_number(usage, "cachedTokens"));
    cell_count(t, json_number(usage, "outputTokens"));
    table_cell(t, "%.0f", tokens_of(usage));
    cell_money(t, json_number(usage, "costMicros"));
}

/* Nothing without an estimate. */
static void print_against(const char *what, double was, double estimate, bool money)
{
    char text[AMOUNT_MAX];

    if (estimate <= 0) {
        return;
    }
    if (money) {
        cli_format_micros(estimate, text, sizeof text);
    } else {
        (void)snprintf(text, sizeof text, "%.0f", estimate);
    }
    (void)printf("estimated %s %s: %.0f %% of that were used\n", what, text, 100 * was / estimate);
}

static void print_total(const cJSON *total)
{
    static const char *const heads[] = {"phase",   ">input", ">cached", ">output",
                                        ">tokens", ">cost",  NULL};
    const cJSON *all = get(total, "total");
    struct table *t = table_new(heads);

    for (size_t i = 0; i < PHASES_MAX; i++) {
        if (get(total, phases[i]) != NULL) {
            row_phase(t, phases[i], get(total, phases[i]));
        }
    }
    row_phase(t, "total", all);
    table_show(t);
    print_against("tokens", tokens_of(all), json_number(total, "estimatedTokens"), false);
    print_against("cost", json_number(all, "costMicros"), json_number(total, "estimatedCostMicros"),
                  true);
}

/* One row per plan, one column per phase. */
static void print_plans(const cJSON *plans)
{
    static const char *const heads[] = {"plan",        "",           ">planning", ">execution",
                                        ">replanning", ">synthesis", ">tokens",   ">estimated",
                                        ">cost",       "goal",       NULL};
    struct table *t = table_new(heads);
    char task[TASK_MAX];
    const cJSON *p;

    cJSON_ArrayForEach(p, plans)
    {
        table_cell(t, "%s", json_text(p, "planId", ""));
        table_cell(t, "%s", cli_mark(json_text(p, "status", "")));
        for (size_t i = 0; i < PLAN_PHASES_MAX; i++) {
            cell_count(t, tokens_of(get(p, phases[i])));
        }
        table_cell(t, "%.0f", tokens_of(get(p, "total")));
        cell_count(t, json_number(p, "estimatedTokens"));
        cell_money(t, json_number(get(p, "total"), "costMicros"));
        cli_cut_line(task, sizeof task, json_text(p, "task", ""));
        table_cell(t, "%s", task);
    }
    table_show(t);
}

static void add_zero(cJSON *object, const char *name)
{
    if (get(object, name) == NULL) {
        (void)cJSON_AddNumberToObject(object, name, 0);
    }
}

/* Adds zeros: the wire omits them. phases_n: a plan has no phase conversation. */
static void fill_record(cJSON *record, size_t phases_n)
{
    static const char *const members[] = {"inputTokens", "outputTokens", "cachedTokens",
                                          "costMicros"};
    char name[AMOUNT_MAX];

    for (size_t i = 0; i <= phases_n; i++) {
        const char *phase = i < phases_n ? phases[i] : "total";
        cJSON *usage = cJSON_GetObjectItemCaseSensitive(record, phase);
        if (usage == NULL) {
            usage = cJSON_AddObjectToObject(record, phase);
        }
        for (size_t k = 0; k < sizeof members / sizeof members[0]; k++) {
            add_zero(usage, members[k]);
        }
        if (i < phases_n) {
            (void)snprintf(name, sizeof name, "%sTokens", phase);
            add_zero(record, name);
        }
    }
    add_zero(record, "totalCost");
}

static void print_whole(cJSON *answer)
{
    cJSON *plans = cJSON_GetObjectItemCaseSensitive(answer, "plans");
    cJSON *p;

    if (plans == NULL) {
        plans = cJSON_AddArrayToObject(answer, "plans");
    }
    cJSON_ArrayForEach(p, plans)
    {
        fill_record(p, PLAN_PHASES_MAX);
    }
    fill_record(cJSON_GetObjectItemCaseSensitive(answer, "total"), PHASES_MAX);
    cli_print_json(answer);
}

static void print_cost(const cJSON *answer, bool one)
{
    const cJSON *plans = get(answer, "plans");
    int n = cJSON_GetArraySize(plans);

    if (one && n == 1) {
        const cJSON *p = plans->child;
        char task[TASK_MAX];
        cli_one_line(task, sizeof task, json_text(p, "task", ""));
        (void)printf("%s %s %s  %s\n", cli_mark(json_text(p, "status", "")),
                     json_text(p, "planId", ""), json_text(p, "status", ""), task);
    } else {
        print_plans(plans);
        (void)printf("%s%d plan%s\n", n > 0 ? "\n" : "", n, n == 1 ? "" : "s");
    }
    print_total(get(answer, "total"));
    if (cJSON_IsTrue(get(answer, "truncated"))) {
        cli_note("there are more plans; the total is of these\n");
    }
}

enum cli_exit verb_cost(struct cli *cli)
{
    const char *since = cli_value(cli, "since");
    const char *limit = cli_value(cli, "limit");
    const char *plan = cli->argc == 1 ? cli->argv[0] : NULL;
    cJSON *fields;
    cJSON *answer = NULL;
    uint32_t ms = 0;
    uint64_t n = 0;
    enum cli_exit code;

    if (plan != NULL && (since != NULL || cli_value(cli, "session") != NULL)) {
        cli_error("cost: a plan's id excludes --session and --since");
        return CLI_USAGE;
    }
    if ((since != NULL && !cli_duration(since, "--since", &ms)) ||
        (limit != NULL && !cli_number(limit, "--limit", &n))) {
        return CLI_USAGE;
    }
    fields = cli_fields("planId", plan);
    cli_add_value(cli, "session", fields, "sessionId");
    if (since != NULL || (plan == NULL && cli_value(cli, "session") == NULL)) {
        msec back = since != NULL ? ms : 24 * 3600 * (msec)1000;
        (void)cJSON_AddNumberToObject(fields, "sinceMs", (double)(clock_wall_ms() - back));
    }
    if (limit != NULL) {
        (void)cJSON_AddNumberToObject(fields, "limit", (double)(n > 1000 ? 1000 : n));
    }
    code = cli_call(cli, "plan.cost", fields, &answer);
    if (code == CLI_OK && plan == NULL && cJSON_GetArraySize(get(answer, "plans")) == 0) {
        code = cli_check_filters(cli);
    }
    if (code == CLI_OK && cli->json) {
        print_whole(answer);
    } else if (code == CLI_OK) {
        print_cost(answer, plan != NULL);
    }
    cJSON_Delete(answer);
    return code;
}
