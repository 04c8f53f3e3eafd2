#include "supervisor/cli/view/tree_node.h"

#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/terminal.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/picture/look.h"
#include "supervisor/cli/view/children.h"
#include "supervisor/cli/view/review.h"

#define RESULTS "results."
enum { BAR_CELLS = 10, LINE_BYTES = 1024, TASK_MIN = 12, TASK_BYTES = 48 };

/* "text", or "text (error)". */
static void put_note(struct tree_node *node, const char *text, const char *error)
{
    char both[2 * NODE_NOTE_MAX];

    (void)snprintf(both, sizeof both, "%s%s%s%s", text, error != NULL ? " (" : "",
                   error != NULL ? error : "", error != NULL ? ")" : "");
    cli_cut_line(node->note, sizeof node->note, both);
}

/* "errors.rowCount is 6" of "results.errors.rowCount is 6": on 80 columns each counts. */
static void add_tested(struct buf *out, const char *tested)
{
    while (*tested != 0) {
        tested += strncmp(tested, RESULTS, strlen(RESULTS)) == 0 ? strlen(RESULTS) : 0;
        const char *next = strstr(tested, "; ");
        const size_t n = next != NULL ? (size_t)(next - tested) + 2 : strlen(tested);
        buf_add(out, tested, n);
        tested += n;
    }
}

/* tested: what its condition tested; NULL = it has none, or its steps before were skipped by
 * theirs.
 */
static void put_skipped(struct tree_node *node, const char *reason, const char *tested)
{
    struct buf text;

    if (strcmp(reason, "condition") != 0) {
        put_note(node, reason, NULL);
        return;
    }
    buf_init(&text, LINE_BYTES * 4);
    buf_add_cstr(&text, tested != NULL ? "skipped, as " : "skipped by a condition");
    add_tested(&text, tested != NULL ? tested : "");
    put_note(node, buf_cstr(&text), NULL);
    buf_done(&text);
}

/* "2 of 3, 1 failed" before what the note says: its time, or why it failed. */
static void put_children(struct tree_node *node)
{
    char both[2 * NODE_NOTE_MAX];

    if (node->children[0] != 0) {
        (void)snprintf(both, sizeof both, "%s%s%s", node->children,
                       node->note[0] == 0                       ? ""
                       : strcmp(node->status, "completed") == 0 ? ", "
                                                                : "; ",
                       node->note);
        cli_cut_line(node->note, sizeof node->note, both);
    }
}

/* The note after a step, from a view or from its plan_step_completed. */
static void fill_note(struct tree_node *node, const cJSON *step)
{
    const char *wait = json_text(children_wait(step), "text", NULL);
    const char *stop = json_text(step, "stop", NULL);
    const char *error = json_text(step, "error", NULL);
    char ms[24];

    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(step, "superseded"))) {
        put_note(node, "a later revision does without it",
                 strcmp(node->status, "failed") == 0 ? error : NULL);
    } else if (wait != NULL) {
        char local[2 * NODE_NOTE_MAX];
        cli_times_in(local, sizeof local, wait);
        put_note(node, local, error);
    } else if (error != NULL) {
        const char *hint = json_text(step, "hint", "");
        char text[2 * NODE_NOTE_MAX];
        (void)snprintf(text, sizeof text, "%s%s%s", error, hint[0] != 0 ? "; " : "", hint);
        put_note(node, text, NULL);
    } else if (json_number(step, "durationMs") > 0 || strcmp(node->status, "completed") == 0) {
        cli_format_ms(json_number(step, "durationMs"), ms, sizeof ms);
        (void)snprintf(node->note, sizeof node->note, "%s", ms);
    }
    if (strcmp(json_text(step, "reason", ""), "already_completed") == 0) {
        (void)snprintf(node->note, sizeof node->note, "taken over from before");
    } else if (node->note[0] == 0 && strcmp(node->status, "skipped") == 0) {
        put_skipped(node, json_text(step, "reason", ""), json_text(step, "condition", NULL));
    }
    if (wait == NULL && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(step, "outcomeUnknown")) &&
        strlen(node->note) + 40 < NODE_NOTE_MAX) {
        (void)strncat(node->note, " (may have been done)", NODE_NOTE_MAX - 1 - strlen(node->note));
    }
    if (stop != NULL && strcmp(stop, "fenced") == 0 && strlen(node->note) + 40 < NODE_NOTE_MAX) {
        (void)strncat(node->note, " (may still run; its result will not count)",
                      NODE_NOTE_MAX - 1 - strlen(node->note));
    }
}

static void fill_children(struct tree_node *node, const cJSON *step)
{
    const cJSON *children = cJSON_GetObjectItemCaseSensitive(step, "children");

    if (children == NULL) {
        return; /* of an event: what is known stays */
    }
    cli_one_line(node->kind, sizeof node->kind, json_text(children, "kind", ""));
    children_words(node->kind, children, node->children, sizeof node->children);
    if (strcmp(node->status, "in_progress") == 0) {
        node->percent = children_percent(node->kind, children);
    }
}

void tree_node_fill(struct tree_node *node, const cJSON *step)
{
    cli_one_line(node->step_id, sizeof node->step_id, json_text(step, "stepId", ""));
    cli_one_line(node->agent, sizeof node->agent, json_text(step, "agentId", node->agent));
    if (cJSON_HasObjectItem(step, "task")) {
        children_task(node->task, sizeof node->task, json_text(step, "task", ""));
    }
    cli_one_line(node->status, sizeof node->status, json_text(step, "status", "pending"));
    node->attempt = json_number(step, "attempts") > node->attempt
                        ? (int)json_number(step, "attempts")
                        : node->attempt;
    if (children_turns(step) > 0) {
        node->turns = children_turns(step);
    }
    node->percent = -1;
    node->note[0] = 0;
    fill_children(node, step);
    fill_note(node, step);
    put_children(node);
}

/* What the child plan of the step has done; false when an agent does the step. */
static bool update_children(struct tree_node *node, const cJSON *ev)
{
    const cJSON *data = cJSON_GetObjectItemCaseSensitive(ev, "data");

    if (node->kind[0] == 0 || data == NULL) {
        return false;
    }
    children_words(node->kind, data, node->children, sizeof node->children);
    node->percent = children_percent(node->kind, data);
    (void)snprintf(node->note, sizeof node->note, "%s", node->children);
    return true;
}

/* A round of `repeat` is over, and the next one begins later. */
static void update_round(struct tree_node *node, const cJSON *ev)
{
    const char *tested = json_text(ev, "condition", "");
    const bool pauses = json_number(ev, "delayMs") > 0;
    struct buf text;
    char ms[24];

    cli_format_ms(json_number(ev, "delayMs"), ms, sizeof ms);
    buf_init(&text, LINE_BYTES * 4);
    buf_printf(&text, "round %.0f is over%s%s%s", json_number(ev, "rounds"),
               pauses ? ", again in " : "", pauses ? ms : "", tested[0] != 0 ? ": " : "");
    add_tested(&text, tested);
    put_note(node, buf_cstr(&text), NULL);
    buf_done(&text);
}

/* The question that is open about the step, as its note. */
static bool update_asked(struct tree_node *node, const char *type, const cJSON *ev)
{
    char text[1024];
    char ms[24];

    if (strcmp(type, "plan_step_retry") == 0) {
        cli_format_ms(json_number(ev, "delayMs"), ms, sizeof ms);
        (void)snprintf(text, sizeof text, "attempt %.0f failed, again in %s%s: %s",
                       json_number(ev, "attempt"), ms,
                       json_text(ev, "askedBy", NULL) != NULL ? " as the agent asked" : "",
                       json_text(ev, "error", ""));
    } else if (strcmp(type, "quality_gate_started") == 0) {
        (void)snprintf(text, sizeof text, "gate: %s is asked",
                       json_text(ev, "agentId", "an agent"));
    } else if (strcmp(type, "plan_step_verification_failed") == 0) {
        (void)snprintf(text, sizeof text, "not verified: %s", json_text(ev, "diagnosis", ""));
    } else if (strcmp(type, "calls_started") == 0) {
        (void)snprintf(node->kind, sizeof node->kind, "calls");
        node->turns = (int)json_number(ev, "turn");
        (void)snprintf(text, sizeof text, "turn %.0f: %.0f call%s", json_number(ev, "turn"),
                       json_number(ev, "calls"), json_number(ev, "calls") == 1 ? "" : "s");
    } else if (strcmp(type, "calls_finished") == 0) {
        node->percent = -1;
        (void)snprintf(text, sizeof text, "turn %.0f is over", json_number(ev, "turn"));
    } else if (strcmp(type, "fallback_used") == 0) {
        cli_one_line(node->agent, sizeof node->agent, json_text(ev, "agentId", node->agent));
        (void)snprintf(text, sizeof text, "fallback: %s", json_text(ev, "action", ""));
    } else if (strcmp(type, "replan_started") == 0) {
        (void)snprintf(text, sizeof text, "replanning: %s", json_text(ev, "diagnosis", ""));
    } else if (strcmp(type, "agent_handoff") == 0) {
        const char *to =
            json_text(cJSON_GetObjectItemCaseSensitive(ev, "toAgent"), "agentId", node->agent);
        if (strcmp(json_text(ev, "reason", ""), "plan_step") == 0) {
            return false;
        }
        cli_one_line(node->agent, sizeof node->agent, to);
        (void)snprintf(text, sizeof text, "handed to %s", to);
    } else {
        return false;
    }
    cli_cut_line(node->note, sizeof node->note, text);
    return true;
}

/* Applies an event to its step; false when nothing visible changes. */
bool tree_node_update(struct tree_node *node, const char *type, const cJSON *ev)
{
    if (strcmp(type, "plan_step_started") == 0 || strcmp(type, "review_decided") == 0) {
        (void)snprintf(node->status, sizeof node->status, "in_progress");
        if (cJSON_HasObjectItem(ev, "task")) {
            children_task(node->task, sizeof node->task, json_text(ev, "task", ""));
        }
        node->note[0] = 0;
        node->percent = -1;
        node->attempt =
            json_number(ev, "attempt") > 0 ? (int)json_number(ev, "attempt") : node->attempt;
    } else if (strcmp(type, "plan_step_completed") == 0) {
        tree_node_fill(node, ev);
    } else if (strcmp(type, "plan_step_waiting") == 0) {
        (void)snprintf(node->status, sizeof node->status, "waiting");
        (void)snprintf(node->note, sizeof node->note,
                       review_asks_more(json_text(ev, "kind", ""))
                           ? "needs your decision: baton review show %.160s"
                           : "needs your approval: baton approve %.160s",
                       json_text(ev, "reviewId", ""));
    } else if (strcmp(type, "plan_step_round") == 0) {
        update_round(node, ev);
    } else if (strcmp(type, "plan_step_progress") == 0) {
        if (update_children(node, ev)) {
            return true;
        }
        const cJSON *percent = cJSON_GetObjectItemCaseSensitive(ev, "percent");
        node->percent = cJSON_IsNumber(percent) ? percent->valuedouble : node->percent;
        cli_cut_line(node->note, sizeof node->note, json_text(ev, "text", ""));
    } else if (!update_asked(node, type, ev)) {
        return false;
    }
    cli_one_line(node->note, sizeof node->note, node->note);
    return true;
}

void tree_put_cut(struct buf *out, const char *text, int columns)
{
    if (columns > 0) {
        look_fit(text, columns, false, false, out);
    } else {
        buf_add_cstr(out, text);
    }
}

/* "[████░░░░░░]  40 %  " */
static void put_bar(struct buf *out, double percent)
{
    const double shown = percent > 100 ? 100 : percent;

    buf_add_byte(out, '[');
    for (int i = 0; i < BAR_CELLS; i++) {
        buf_add_cstr(out, shown >= (i + 1) * 100.0 / BAR_CELLS ? "█" : "░");
    }
    buf_printf(out, "] %3.0f %%  ", shown);
}

/* How much of the task is printed on a line that has no room for all: the note is worth more.
 * `used` = the columns before the task, `after` = those after it. */
static int task_columns(int columns, int used, int after)
{
    const int room = columns - used - after;

    return room > TASK_MIN ? room : TASK_MIN;
}

void tree_node_line(const struct cli *cli, const struct tree_node *node, bool color, int columns,
                    struct buf *out)
{
    const bool runs = strcmp(node->status, "in_progress") == 0;
    const int tries = node->attempt - node->turns;
    char task[TASK_BYTES];
    struct buf rest;
    struct buf after;

    buf_init(&rest, (size_t)LINE_BYTES * 4);
    buf_printf(&rest, " %-14s %-8s ", node->step_id,
               node->agent[0] == 0 && node->kind[0] != 0 ? node->kind : node->agent);
    if (runs && node->percent >= 0) {
        put_bar(&rest, node->percent);
    }
    buf_init(&after, (size_t)LINE_BYTES * 4);
    if (!runs && node->turns > 0 && node->children[0] == 0) {
        buf_printf(&after, "  (%d turn%s)", node->turns, node->turns == 1 ? "" : "s");
    }
    if (tries > 1) {
        buf_printf(&after, "  (%s%d%s)", runs ? "attempt " : "", tries, runs ? "" : " attempts");
    }
    if (node->note[0] != 0) {
        buf_printf(&after, "  — %s", node->note);
    }
    if (columns == 0) {
        cli_cut_line(task, sizeof task, node->task);
        buf_add_cstr(&rest, task);
    } else {
        tree_put_cut(&rest, node->task,
                     task_columns(columns, 1 + look_columns(buf_cstr(&rest)),
                                  look_columns(buf_cstr(&after))));
    }
    buf_add_cstr(&rest, buf_cstr(&after));
    buf_done(&after);
    buf_printf(out, "%s%s%s", color ? cli_color(cli, node->status) : "", cli_mark(node->status),
               color ? cli_color_off(cli) : "");
    tree_put_cut(out, buf_cstr(&rest), columns > 1 ? columns - 1 : 0);
    buf_done(&rest);
}
