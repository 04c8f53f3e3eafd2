/* timeline: when the steps of a plan waited and ran. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/arena.h"
#include "protocol/base/clock.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/cli/view/screen.h"
#include "supervisor/cli/view/spans.h"

enum { PAGE = 1000, TITLE_MAX = 512 };

/* The types that change what is drawn; not the progress and the text of a step. */
static const char *const plan_types[] = {"planning_started",
                                         "planning_failed",
                                         "plan_generated",
                                         "plan_started",
                                         "plan_paused",
                                         "plan_resumed",
                                         "plan_modified",
                                         "plan_step_started",
                                         "plan_step_retry",
                                         "plan_step_round",
                                         "calls_started",
                                         "calls_finished",
                                         "wait_started",
                                         "plan_step_waiting",
                                         "plan_step_completed",
                                         "review_decided",
                                         "quality_gate_started",
                                         "quality_gate_passed",
                                         "quality_gate_failed",
                                         "quality_gate_error",
                                         "fallback_used",
                                         "replan_started",
                                         "replan_finished",
                                         "synthesis_started",
                                         "synthesis_retry",
                                         "synthesis_finished",
                                         "compensation_started",
                                         "compensation_finished",
                                         "plan_completed",
                                         "review_voided",
                                         NULL};
static const char *const daemon_types[] = {"supervisor_started", NULL};

/*
 * Appends the events of the types from `from` to `to`, both included; plan_id NULL = of no plan.
 */
static enum cli_exit read_events(struct cli *cli, const char *plan_id, const char *const *types,
                                 double from, double to, cJSON *list)
{
    enum cli_exit code = CLI_OK;

    while (code == CLI_OK && from <= to) {
        cJSON *fields = cli_fields("planId", plan_id);
        cJSON *names = cJSON_AddArrayToObject(fields, "types");
        cJSON *page = NULL;
        cJSON *events;
        double next;
        for (int i = 0; types[i] != NULL; i++) {
            (void)cJSON_AddItemToArray(names, cJSON_CreateString(types[i]));
        }
        (void)cJSON_AddNumberToObject(fields, "fromSeq", from);
        (void)cJSON_AddNumberToObject(fields, "limit", PAGE);
        code = cli_call(cli, "events.read", fields, &page);
        events = cJSON_GetObjectItemCaseSensitive(page, "events");
        while (cJSON_GetArraySize(events) > 0) {
            (void)cJSON_AddItemToArray(list, cJSON_DetachItemFromArray(events, 0));
        }
        next = json_number(page, "nextSeq");
        cJSON_Delete(page);
        if (code == CLI_OK && next <= from) {
            break;
        }
        from = next;
    }
    return code;
}

/* Gives both lists to the spans in the order of their numbers. */
static void merge(struct spans *s, const cJSON *plan, const cJSON *starts)
{
    const cJSON *a = plan->child;
    const cJSON *b = starts->child;

    while (a != NULL || b != NULL) {
        const bool first =
            b == NULL || (a != NULL && json_number(a, "seq") < json_number(b, "seq"));
        const cJSON **next = first ? &a : &b;
        spans_event(s, *next);
        *next = (*next)->next;
    }
}

static void print_json(const char *plan_id, const struct timeline *t)
{
    cJSON *json = cli_fields("planId", plan_id);
    cJSON *rows = cJSON_AddArrayToObject(json, "rows");

    (void)cJSON_AddNumberToObject(json, "lengthMs", t->length_ms);
    for (uint32_t i = 0; i < t->n_rows; i++) {
        cJSON *row = cli_fields("name", t->rows[i].name);
        (void)cJSON_AddArrayToObject(row, "spans");
        (void)cJSON_AddItemToArray(rows, row);
    }
    for (uint32_t i = 0; i < t->n_spans; i++) {
        const struct timeline_span *s = &t->spans[i];
        cJSON *span = cli_fields("kind", timeline_kind_name(s->kind));
        (void)cJSON_AddNumberToObject(span, "fromMs", s->from);
        (void)cJSON_AddNumberToObject(span, "toMs", s->to);
        (void)cJSON_AddItemToArray(
            cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(rows, (int)s->row), "spans"), span);
    }
    cli_print_json(json);
    cJSON_Delete(json);
}

static enum cli_exit draw(struct cli *cli, const char *form, const cJSON *view, struct timeline *t)
{
    const struct look look = screen_look(cli);
    struct arena arena = {0};
    char title[TITLE_MAX];
    char ms[24];
    struct buf out;
    struct bt_error err;
    enum bt_code code;
    enum cli_exit exit_code = CLI_OK;

    cli_format_ms(t->length_ms, ms, sizeof ms);
    (void)snprintf(title, sizeof title, "%s %s, %s%s%s", json_text(view, "planId", ""),
                   json_text(view, "status", ""), ms,
                   json_text(view, "query", "")[0] != 0 ? ": " : "", json_text(view, "query", ""));
    t->title = title;
    buf_init(&out, SCREEN_BYTES_MAX);
    code = strcmp(form, "svg") == 0 ? timeline_svg(t, &out, &err)
                                    : timeline_text(t, &look, &arena, &out, &err);
    if (code == BT_OK) {
        screen_write(&out);
    } else {
        exit_code = cli_fail(&err);
    }
    buf_done(&out);
    arena_done(&arena);
    return exit_code;
}

static enum cli_exit show(struct cli *cli, const char *form, const cJSON *view, const cJSON *events,
                          const cJSON *starts)
{
    bool chain = false;
    struct spans *s;
    struct timeline *t = NULL;
    enum cli_exit code = cli_plan_chain(cli, view, &chain);

    if (code != CLI_OK) {
        return code;
    }
    s = spans_new(view, chain);
    if (s != NULL) {
        merge(s, events, starts);
        t = spans_end(s, (double)clock_wall_ms());
    }
    if (t == NULL) {
        cli_error("out of memory");
        code = CLI_INTERNAL;
    } else if (cli->json) {
        print_json(json_text(view, "planId", ""), t);
    } else {
        code = draw(cli, form, view, t);
    }
    spans_free(s);
    return code;
}

enum cli_exit verb_timeline(struct cli *cli)
{
    static const char *const forms[] = {"text", "svg", NULL};
    const char *form = screen_form(cli, forms);
    cJSON *view = NULL;
    cJSON *events = cJSON_CreateArray();
    cJSON *starts = cJSON_CreateArray();
    enum cli_exit code = cli_plan_view(cli, cli->argv[0], &view);

    if (code == CLI_OK) {
        const double last = json_number(view, "lastSeq");
        code = read_events(cli, json_text(view, "planId", ""), plan_types, 1, last, events);
        if (code == CLI_OK && events != NULL && events->child != NULL) {
            code = read_events(cli, NULL, daemon_types, json_number(events->child, "seq"), last,
                               starts);
        }
    }
    if (code == CLI_OK && (events == NULL || starts == NULL)) {
        cli_error("out of memory");
        code = CLI_INTERNAL;
    }
    if (code == CLI_OK) {
        code = show(cli, form, view, events, starts);
    }
    cJSON_Delete(events);
    cJSON_Delete(starts);
    cJSON_Delete(view);
    return code;
}
