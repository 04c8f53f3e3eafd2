#include "supervisor/cli/view/tree.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cjson/cJSON.h>

enum { LIVE_STEPS_MAX = 40, TASK_COLUMNS = 44, NOTE_MAX = 256 };

struct node {
    char step_id[65];
    char agent[65];
    char task[TASK_COLUMNS + 4];
    char status[16];
    char note[NOTE_MAX];
};

struct tree {
    const struct cli *cli;
    struct node *nodes;
    int n;
    int drawn; /* lines of the tree that are on the terminal */
    bool live; /* redrawn in place */
    bool quiet;
};

/* The note after a step, from a view or from its plan_step_completed. */
static void fill_note(struct node *node, const cJSON *step)
{
    const char *wait = json_text(cJSON_GetObjectItemCaseSensitive(step, "waiting"), "text", NULL);
    const char *stop = json_text(step, "stop", NULL);
    char ms[24];

    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(step, "superseded"))) {
        (void)snprintf(node->note, sizeof node->note, "a later revision does without it");
    } else if (json_text(step, "error", NULL) != NULL) {
        cli_cut_line(node->note, sizeof node->note, json_text(step, "error", ""));
    } else if (wait != NULL) {
        cli_cut_line(node->note, sizeof node->note, wait);
    } else if (json_number(step, "durationMs") > 0 || strcmp(node->status, "completed") == 0) {
        cli_format_ms(json_number(step, "durationMs"), ms, sizeof ms);
        (void)snprintf(node->note, sizeof node->note, "%s%s", ms,
                       json_number(step, "attempts") > 1 ? ", more than one attempt" : "");
    }
    if (strcmp(json_text(step, "reason", ""), "already_completed") == 0) {
        (void)snprintf(node->note, sizeof node->note, "taken over from before");
    } else if (node->note[0] == 0 && strcmp(node->status, "skipped") == 0) {
        cli_cut_line(node->note, sizeof node->note, json_text(step, "reason", ""));
    }
    if (stop != NULL && strcmp(stop, "fenced") == 0 && strlen(node->note) + 40 < NOTE_MAX) {
        (void)strncat(node->note, " (may still run; its result will not count)",
                      NOTE_MAX - 1 - strlen(node->note));
    }
}

static void fill(struct node *node, const cJSON *step)
{
    cli_one_line(node->step_id, sizeof node->step_id, json_text(step, "stepId", ""));
    cli_one_line(node->agent, sizeof node->agent, json_text(step, "agentId", node->agent));
    cli_cut_line(node->task, sizeof node->task, json_text(step, "task", node->task));
    cli_one_line(node->status, sizeof node->status, json_text(step, "status", "pending"));
    node->note[0] = 0;
    fill_note(node, step);
}

static void print_node(const struct cli *cli, const struct node *node, FILE *to, bool color)
{
    (void)fprintf(to, "%s%s%s %-14s %-8s %s%s%s\n", color ? cli_color(cli, node->status) : "",
                  cli_mark(node->status), color ? cli_color_off(cli) : "", node->step_id,
                  node->agent, node->task, node->note[0] != 0 ? "  — " : "", node->note);
}

struct tree *tree_new(const struct cli *cli, const struct cJSON *plan_view, bool quiet)
{
    struct tree *t = calloc(1, sizeof *t);

    if (t == NULL) {
        return NULL;
    }
    t->cli = cli;
    t->quiet = quiet;
    if (!tree_refresh(t, plan_view)) {
        free(t);
        return NULL;
    }
    return t;
}

/* Whether the steps can be redrawn in place. */
static bool can_be_live(const struct tree *t)
{
    const char *term = getenv("TERM");
    struct winsize size;

    return !t->quiet && isatty(STDERR_FILENO) == 1 && (term == NULL || strcmp(term, "dumb") != 0) &&
           t->n <= LIVE_STEPS_MAX && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 &&
           size.ws_row > t->n + 2;
}

bool tree_refresh(struct tree *t, const struct cJSON *plan_view)
{
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(plan_view, "steps");
    struct node *nodes = calloc((size_t)cJSON_GetArraySize(steps) + 1, sizeof *nodes);
    const cJSON *step;
    int n = 0;

    if (nodes == NULL) {
        return false;
    }
    cJSON_ArrayForEach(step, steps)
    {
        fill(&nodes[n++], step);
    }
    free(t->nodes);
    t->nodes = nodes;
    t->n = n;
    t->live = can_be_live(t);
    t->drawn = t->live ? t->drawn : 0;
    return true;
}

void tree_free(struct tree *t)
{
    if (t != NULL) {
        free(t->nodes);
        free(t);
    }
}

bool tree_waiting(const struct tree *t)
{
    for (int i = 0; i < t->n; i++) {
        if (strcmp(t->nodes[i].status, "waiting") == 0) {
            return true;
        }
    }
    return false;
}

void tree_settle(struct tree *t)
{
    t->drawn = 0;
}

int tree_size(const struct tree *t)
{
    return t->n;
}

static void redraw(struct tree *t)
{
    if (t->drawn > 0) {
        (void)fprintf(stderr, "\033[%dA", t->drawn);
    }
    for (int i = 0; i < t->n; i++) {
        (void)fputs("\033[2K", stderr);
        print_node(t->cli, &t->nodes[i], stderr, true);
    }
    t->drawn = t->n;
    (void)fflush(stderr);
}

void tree_note(struct tree *t, const char *fmt, ...)
{
    char text[1024];
    char line[1024];
    va_list args;

    if (t->quiet) {
        return;
    }
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    cli_one_line(line, sizeof line, text);
    if (t->live && t->drawn > 0) {
        (void)fprintf(stderr, "\033[%dA\033[J", t->drawn);
    }
    (void)fprintf(stderr, "%s\n", line);
    if (t->live && t->drawn > 0) {
        t->drawn = 0;
        redraw(t);
    }
}

/* The question that is open about the step, as its note. */
static bool update_asked(struct node *node, const char *type, const cJSON *ev)
{
    char ms[24];

    if (strcmp(type, "plan_step_retry") == 0) {
        cli_format_ms(json_number(ev, "delayMs"), ms, sizeof ms);
        (void)snprintf(node->note, sizeof node->note, "attempt %.0f failed, again in %s: %.80s",
                       json_number(ev, "attempt"), ms, json_text(ev, "error", ""));
    } else if (strcmp(type, "quality_gate_started") == 0) {
        (void)snprintf(node->note, sizeof node->note, "gate: %.64s is asked",
                       json_text(ev, "agentId", "an agent"));
    } else if (strcmp(type, "plan_step_verification_failed") == 0) {
        (void)snprintf(node->note, sizeof node->note, "not verified: %.120s",
                       json_text(ev, "diagnosis", ""));
    } else if (strcmp(type, "fallback_used") == 0) {
        cli_one_line(node->agent, sizeof node->agent, json_text(ev, "agentId", node->agent));
        (void)snprintf(node->note, sizeof node->note, "fallback: %.100s",
                       json_text(ev, "action", ""));
    } else if (strcmp(type, "replan_started") == 0) {
        (void)snprintf(node->note, sizeof node->note, "replanning: %.120s",
                       json_text(ev, "diagnosis", ""));
    } else if (strcmp(type, "agent_handoff") == 0) {
        const char *to =
            json_text(cJSON_GetObjectItemCaseSensitive(ev, "toAgent"), "agentId", node->agent);
        if (strcmp(json_text(ev, "reason", ""), "plan_step") == 0) {
            return false;
        }
        cli_one_line(node->agent, sizeof node->agent, to);
        (void)snprintf(node->note, sizeof node->note, "handed to %.64s", to);
    } else {
        return false;
    }
    return true;
}

/* Applies an event to its step; false when nothing visible changes. */
static bool update(struct node *node, const char *type, const cJSON *ev)
{
    if (strcmp(type, "plan_step_started") == 0 || strcmp(type, "review_decided") == 0) {
        (void)snprintf(node->status, sizeof node->status, "in_progress");
        node->note[0] = 0;
    } else if (strcmp(type, "plan_step_completed") == 0) {
        fill(node, ev);
    } else if (strcmp(type, "plan_step_waiting") == 0) {
        (void)snprintf(node->status, sizeof node->status, "waiting");
        (void)snprintf(node->note, sizeof node->note, "needs your approval: baton approve %.160s",
                       json_text(ev, "reviewId", ""));
    } else if (strcmp(type, "plan_step_progress") == 0) {
        cli_cut_line(node->note, sizeof node->note, json_text(ev, "text", ""));
    } else if (!update_asked(node, type, ev)) {
        return false;
    }
    cli_one_line(node->note, sizeof node->note, node->note);
    return true;
}

void tree_event(struct tree *t, const struct cJSON *event)
{
    const cJSON *index = cJSON_GetObjectItemCaseSensitive(event, "stepIndex");
    const char *type = json_text(event, "type", "");
    struct node *node;

    if (!cJSON_IsNumber(index) || index->valuedouble < 0 || index->valuedouble >= t->n) {
        return;
    }
    node = &t->nodes[(int)index->valuedouble];
    if (!update(node, type, event) || t->quiet) {
        return;
    }
    if (t->live) {
        redraw(t);
    } else if (strcmp(type, "plan_step_progress") != 0) {
        print_node(t->cli, node, stderr, true);
    }
}

void tree_print(const struct cli *cli, const struct cJSON *plan_view)
{
    const cJSON *step;

    cJSON_ArrayForEach(step, cJSON_GetObjectItemCaseSensitive(plan_view, "steps"))
    {
        struct node node = {{0}};
        fill(&node, step);
        print_node(cli, &node, stdout, isatty(STDOUT_FILENO) == 1);
    }
}
