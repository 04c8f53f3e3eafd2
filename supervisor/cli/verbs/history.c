/* history, stats: what happened to a plan, and what it took. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/ids.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/terminal.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/cli/view/table.h"

enum { LINE_MAX_LEN = 512 };

/* A line of the timeline: the lists of the answer are sorted by time. */
struct timeline_entry {
    const char *when;
    size_t order;
    const char *kind;
    char text[LINE_MAX_LEN];
};

struct timeline {
    struct timeline_entry *at;
    size_t n, cap;
};

static const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static BT_PRINTF(4, 5) void add_entry(struct timeline *s, const char *when, const char *kind,
                                      const char *fmt, ...)
{
    char text[2 * LINE_MAX_LEN];
    va_list args;

    if (s->n == s->cap || when[0] == 0) {
        return;
    }
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    cli_one_line(s->at[s->n].text, sizeof s->at[s->n].text, text);
    s->at[s->n].when = when;
    s->at[s->n].order = s->n;
    s->at[s->n].kind = kind;
    s->n++;
}

static int by_time(const void *a, const void *b)
{
    const struct timeline_entry *x = a;
    const struct timeline_entry *y = b;
    int c = strcmp(x->when, y->when);

    return c != 0 ? c : (x->order > y->order) - (x->order < y->order);
}

static void add_phases(struct timeline *s, const cJSON *list)
{
    const cJSON *p;

    cJSON_ArrayForEach(p, list)
    {
        char ms[24] = "not over";
        bool over = get(p, "endTime") != NULL;
        if (over) {
            cli_format_ms(json_number(p, "durationMs"), ms, sizeof ms);
        }
        add_entry(s, json_text(p, "startTime", ""), "phase", "%s: %s%s, %.0f tokens%s%s",
                  json_text(p, "phase", ""), ms,
                  !over                             ? ""
                  : cJSON_IsTrue(get(p, "success")) ? ", succeeded"
                                                    : ", failed",
                  json_number(p, "tokens"), json_text(p, "details", "")[0] != 0 ? ": " : "",
                  json_text(p, "details", ""));
    }
}

/* ", credential ann"; nothing for the token. */
static const char *credential_of(const cJSON *by, char *text, size_t cap)
{
    const char *id = json_text(by, "id", "local");

    text[0] = 0;
    if (strcmp(id, "local") != 0) {
        (void)snprintf(text, cap, ", credential %s", id);
    }
    return text;
}

static void add_orders(struct timeline *s, const cJSON *list)
{
    const cJSON *o;

    cJSON_ArrayForEach(o, list)
    {
        const char *reason = json_text(o, "reason", "");
        char id[96];
        add_entry(s, json_text(o, "timestamp", ""), "order", "%s%s%s%s", json_text(o, "kind", ""),
                  credential_of(get(o, "by"), id, sizeof id), reason[0] != 0 ? ": " : "", reason);
    }
}

static void add_revisions(struct timeline *s, const cJSON *list)
{
    const cJSON *r;

    cJSON_ArrayForEach(r, list)
    {
        char id[96];
        add_entry(s, json_text(r, "timestamp", ""), "revision", "%.0f by %s, %.0f steps%s%s%s",
                  json_number(r, "revision"), json_text(r, "kind", ""), json_number(r, "steps"),
                  credential_of(get(r, "by"), id, sizeof id),
                  json_text(r, "reasoning", "")[0] != 0 ? ": " : "", json_text(r, "reasoning", ""));
    }
}

static void add_replans(struct timeline *s, const cJSON *list)
{
    const cJSON *r;

    cJSON_ArrayForEach(r, list)
    {
        bool ok = cJSON_IsTrue(get(r, "ok"));
        add_entry(s, json_text(r, "timestamp", ""), "replan", "%.0f of step %s, %s%s%s%s%s",
                  json_number(r, "attempt"), json_text(r, "stepId", ""),
                  ok ? "a new plan" : "no new plan",
                  json_text(r, "approach", "")[0] != 0 ? ", " : "", json_text(r, "approach", ""),
                  json_text(r, "diagnosis", "")[0] != 0 ? ": " : "", json_text(r, "diagnosis", ""));
    }
}

static void add_handoffs(struct timeline *s, const cJSON *list)
{
    const cJSON *h;

    cJSON_ArrayForEach(h, list)
    {
        add_entry(s, json_text(h, "timestamp", ""), "handoff", "%s → %s for %s (%s): %s",
                  json_text(h, "fromAgentId", ""), json_text(h, "toAgentId", ""),
                  json_text(h, "planStepId", ""), json_text(h, "reason", ""),
                  json_text(h, "explanation", ""));
    }
}

static void add_reviews(struct timeline *s, const cJSON *list)
{
    const cJSON *r;

    cJSON_ArrayForEach(r, list)
    {
        const char *step = json_text(r, "stepId", "the plan");
        const char *prompt = json_text(r, "prompt", "");
        const char *comment = json_text(r, "comment", "");
        const cJSON *by = get(r, "by");
        const char *user = json_text(by, "user", "");
        const char *host = user[0] != 0 ? json_text(by, "host", "") : "";
        const char *via = json_text(by, "via", "");
        char id[96];
        add_entry(s, json_text(r, "askedAt", ""), "review", "%s (%s) asked%s%s", step,
                  json_text(r, "kind", ""), prompt[0] != 0 ? ": " : "", prompt);
        add_entry(s, json_text(r, "decidedAt", ""), "review", "%s: %s%s%s%s%s%s%s%s%s%s", step,
                  json_text(r, "decision", ""), user[0] != 0 ? " by " : "", user,
                  host[0] != 0 ? "@" : "", host, via[0] != 0 ? " via " : "", via,
                  credential_of(by, id, sizeof id), comment[0] != 0 ? ": " : "", comment);
    }
}

static void print_head(const cJSON *h)
{
    char ms[24];
    char task[LINE_MAX_LEN];

    cli_format_ms(json_number(h, "totalDurationMs"), ms, sizeof ms);
    cli_one_line(task, sizeof task, json_text(h, "task", ""));
    (void)printf("%s %s %s%s%s\n", cli_mark(json_text(h, "status", "")), json_text(h, "planId", ""),
                 json_text(h, "status", ""), get(h, "outcome") != NULL ? ", outcome " : "",
                 json_text(h, "outcome", ""));
    if (task[0] != 0) {
        (void)printf("  %s\n", task);
    }
    (void)printf("  %s, %.0f execution%s, %.0f tokens\n", ms, json_number(h, "executionAttempts"),
                 json_number(h, "executionAttempts") == 1 ? "" : "s",
                 json_number(h, "totalTokens"));
    if (get(h, "parentPlanId") != NULL) {
        (void)printf("  from plan %s\n", json_text(h, "parentPlanId", ""));
    }
    if (get(h, "traceId") != NULL) {
        (void)printf("  trace %s\n", json_text(h, "traceId", ""));
    }
}

static enum cli_exit print_history(const cJSON *h)
{
    static const char *const lists[] = {"phases",   "revisions", "replans",
                                        "handoffs", "reviews",   "orders"};
    struct timeline s = {.cap = 1};

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        s.cap += 2 * (size_t)cJSON_GetArraySize(get(h, lists[i]));
    }
    s.at = calloc(s.cap, sizeof *s.at);
    if (s.at == NULL) {
        cli_error("out of memory");
        return CLI_INTERNAL;
    }
    add_phases(&s, get(h, "phases"));
    add_revisions(&s, get(h, "revisions"));
    add_replans(&s, get(h, "replans"));
    add_handoffs(&s, get(h, "handoffs"));
    add_reviews(&s, get(h, "reviews"));
    add_orders(&s, get(h, "orders"));
    qsort(s.at, s.n, sizeof *s.at, by_time);
    print_head(h);
    for (size_t i = 0; i < s.n; i++) {
        char when[CLI_TIME_MAX];
        (void)printf("%s %-8s %s\n", cli_time(s.at[i].when, when), s.at[i].kind, s.at[i].text);
    }
    if (cJSON_IsTrue(get(h, "truncated"))) {
        cli_note("  the answer was cut: see baton events %s\n", json_text(h, "planId", ""));
    }
    free(s.at);
    return CLI_OK;
}

static enum cli_exit show_history(struct cli *cli, const char *id)
{
    cJSON *answer = NULL;
    enum cli_exit code = cli_call(cli, "plan.history", cli_fields("planId", id), &answer);

    if (code == CLI_OK && cli->json) {
        cli_print_json(answer);
    } else if (code == CLI_OK) {
        code = print_history(answer);
    }
    cJSON_Delete(answer);
    return code;
}

enum cli_exit verb_history(struct cli *cli)
{
    return cli_each(cli, show_history);
}

static void cell_ms(struct table *t, const cJSON *object, const char *name)
{
    char ms[24] = "";

    if (get(object, name) != NULL) {
        cli_format_ms(json_number(object, name), ms, sizeof ms);
    }
    table_cell(t, "%s", ms);
}

/* "spent of estimated"; empty when both are 0. */
static void cell_against(struct table *t, const cJSON *object, const char *spent,
                         const char *estimated, bool micros)
{
    double is = json_number(object, spent);
    double was = json_number(object, estimated);
    char text[2][32] = {"", ""};

    if (is == 0 && was == 0) {
        table_cell(t, "%s", "");
        return;
    }
    if (micros) {
        cli_format_micros(is, text[0], sizeof text[0]);
        cli_format_micros(was, text[1], sizeof text[1]);
    } else {
        (void)snprintf(text[0], sizeof text[0], "%.0f", is);
        (void)snprintf(text[1], sizeof text[1], "%.0f", was);
    }
    table_cell(t, "%s%s%s", text[0], was > 0 ? " of " : "", was > 0 ? text[1] : "");
}

static void print_step_stats(const cJSON *steps)
{
    static const char *const heads[] = {"step",  "status",  "agent", ">tries", ">queued",
                                        ">took", ">tokens", ">cost", "error",  NULL};
    struct table *t = table_new(heads);
    const cJSON *s;

    cJSON_ArrayForEach(s, steps)
    {
        table_cell(t, "%s", json_text(s, "stepId", ""));
        table_cell(t, "%s", json_text(s, "status", ""));
        table_cell(t, "%s", json_text(s, "agentId", ""));
        table_cell(t, "%.0f", json_number(s, "attempts"));
        cell_ms(t, s, "queueMs");
        cell_ms(t, s, "runMs");
        cell_against(t, s, "tokens", "estimatedTokens", false);
        cell_against(t, s, "costMicros", "estimatedCostMicros", true);
        table_cell(t, "%s", json_text(s, "errorClass", ""));
    }
    table_show(t);
}

static void print_agent_stats(const cJSON *agents)
{
    static const char *const heads[] = {"agent",    ">steps", ">errors", ">rate",
                                        ">average", ">max",   ">tokens", NULL};
    struct table *t = table_new(heads);
    const cJSON *a;

    cJSON_ArrayForEach(a, agents)
    {
        table_cell(t, "%s", json_text(a, "agentId", ""));
        table_cell(t, "%.0f", json_number(a, "steps"));
        table_cell(t, "%.0f", json_number(a, "errors"));
        table_cell(t, "%.0f %%", 100 * json_number(a, "errorRate"));
        cell_ms(t, a, "averageMs");
        cell_ms(t, a, "maxMs");
        table_cell(t, "%.0f", json_number(a, "tokens"));
    }
    table_show(t);
}

static void print_stats(const cJSON *s)
{
    const cJSON *usage = get(s, "usage");
    char ms[24];
    char cost[32];

    cli_format_ms(json_number(s, "durationMs"), ms, sizeof ms);
    cli_format_micros(json_number(usage, "costMicros"), cost, sizeof cost);
    (void)printf("%s %s %s in %s\n", cli_mark(json_text(s, "status", "")),
                 json_text(s, "planId", ""), json_text(s, "status", ""), ms);
    (void)printf("  %.0f dependenc%s, depth %.0f, parallelism %.2f%s%s\n",
                 json_number(s, "dependencies"), json_number(s, "dependencies") == 1 ? "y" : "ies",
                 json_number(s, "depth"), json_number(s, "parallelism"),
                 get(s, "bottleneckStepId") != NULL ? ", bottleneck " : "",
                 json_text(s, "bottleneckStepId", ""));
    (void)printf("  %.0f tokens (%.0f estimated), cost %s\n\n",
                 json_number(usage, "inputTokens") + json_number(usage, "outputTokens"),
                 json_number(s, "estimatedTokens"), cost);
    print_step_stats(get(s, "steps"));
    (void)fputc('\n', stdout);
    print_agent_stats(get(s, "agents"));
}

static enum cli_exit show_stats(struct cli *cli, const char *id)
{
    cJSON *answer = NULL;
    enum cli_exit code = cli_call(cli, "plan.stats", cli_fields("planId", id), &answer);

    if (code == CLI_OK && cli->json) {
        cli_print_json(answer);
    } else if (code == CLI_OK) {
        print_stats(answer);
    }
    cJSON_Delete(answer);
    return code;
}

enum cli_exit verb_stats(struct cli *cli)
{
    return cli_each(cli, show_stats);
}
