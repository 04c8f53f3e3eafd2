#include "supervisor/cli/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/utf8.h"

enum { LIVE_STEPS_MAX = 40, TASK_COLUMNS = 44, NOTE_MAX = 160 };

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
    int drawn; /* lines on the terminal now */
    int waiting;
    bool live; /* redraw in place */
    bool quiet;
};

/* One line, no control characters, cut at a whole character. */
static void one_line(char *to, size_t cap, const char *from)
{
    size_t n = utf8_cut(from, strlen(from), cap - 1);

    memcpy(to, from, n);
    to[n] = 0;
    cli_scrub(to);
    for (char *p = to; *p != 0; p++) {
        *p = *p == '\n' || *p == '\t' ? ' ' : *p;
    }
}

static void fill(struct node *node, const cJSON *step)
{
    char ms[24];

    one_line(node->step_id, sizeof node->step_id, json_text(step, "stepId", ""));
    one_line(node->agent, sizeof node->agent, json_text(step, "agentId", ""));
    one_line(node->task, sizeof node->task, json_text(step, "task", ""));
    one_line(node->status, sizeof node->status, json_text(step, "status", "pending"));
    if (json_text(step, "error", NULL) != NULL) {
        one_line(node->note, sizeof node->note, json_text(step, "error", ""));
    } else if (json_number(step, "durationMs") > 0 || strcmp(node->status, "completed") == 0) {
        cli_format_ms(json_number(step, "durationMs"), ms, sizeof ms);
        (void)snprintf(node->note, sizeof node->note, "%s%s", ms,
                       json_number(step, "attempts") > 1 ? ", more than one attempt" : "");
    }
}

static void print_node(const struct cli *cli, const struct node *node, FILE *to, bool color)
{
    (void)fprintf(to, "%s%s%s %-14s %-8s %s%s%s\n", color ? cli_color(cli, node->status) : "",
                  cli_mark(node->status), color ? cli_color_off(cli) : "", node->step_id,
                  node->agent, node->task, node->note[0] != 0 ? "  — " : "", node->note);
}

struct tree *tree_new(const struct cli *cli, const struct cJSON *plan_view, bool quiet)
{
    const cJSON *steps = cJSON_GetObjectItemCaseSensitive(plan_view, "steps");
    struct tree *t = calloc(1, sizeof *t);
    const char *term = getenv("TERM");
    const cJSON *step;
    struct winsize size;

    if (t == NULL) {
        return NULL;
    }
    t->cli = cli;
    t->quiet = quiet;
    t->nodes = calloc((size_t)cJSON_GetArraySize(steps) + 1, sizeof *t->nodes);
    if (t->nodes == NULL) {
        free(t);
        return NULL;
    }
    cJSON_ArrayForEach(step, steps)
    {
        fill(&t->nodes[t->n], step);
        t->waiting += strcmp(t->nodes[t->n].status, "waiting") ==
                      0; /* it may be so far already: the events count from there */
        t->n++;
    }
    t->live = !quiet && isatty(STDERR_FILENO) == 1 && (term == NULL || strcmp(term, "dumb") != 0) &&
              t->n <= LIVE_STEPS_MAX && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 &&
              size.ws_row > t->n + 2;
    return t;
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
    return t->waiting > 0;
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

/* What an event says about its step; false when it changes nothing that is shown. */
static bool update(struct tree *t, struct node *node, const char *type, const cJSON *ev)
{
    char ms[24];

    if (strcmp(type, "plan_step_started") == 0 || strcmp(type, "review_decided") == 0) {
        t->waiting -= strcmp(node->status, "waiting") == 0;
        (void)snprintf(node->status, sizeof node->status, "in_progress");
        node->note[0] = 0;
    } else if (strcmp(type, "plan_step_completed") == 0) {
        t->waiting -= strcmp(node->status, "waiting") == 0;
        fill(node, ev);
        if (json_text(ev, "task", NULL) == NULL && strcmp(node->status, "skipped") == 0) {
            one_line(node->note, sizeof node->note, json_text(ev, "reason", ""));
        }
    } else if (strcmp(type, "plan_step_retry") == 0) {
        cli_format_ms(json_number(ev, "delayMs"), ms, sizeof ms);
        (void)snprintf(node->note, sizeof node->note, "attempt %.0f failed, again in %s: %.80s",
                       json_number(ev, "attempt"), ms, json_text(ev, "error", ""));
    } else if (strcmp(type, "plan_step_waiting") == 0) {
        t->waiting++;
        (void)snprintf(node->status, sizeof node->status, "waiting");
        (void)snprintf(node->note, sizeof node->note,
                       "waits for a decision: baton decide %.100s approve|reject",
                       json_text(ev, "reviewId", ""));
    } else if (strcmp(type, "plan_step_progress") == 0) {
        one_line(node->note, sizeof node->note, json_text(ev, "text", ""));
    } else {
        return false;
    }
    cli_scrub(node->note);
    return true;
}

void tree_event(struct tree *t, const struct cJSON *event)
{
    const cJSON *index = cJSON_GetObjectItemCaseSensitive(event, "stepIndex");
    const char *type = json_text(event, "type", "");
    char task[sizeof t->nodes->task];
    char agent[sizeof t->nodes->agent];
    struct node *node;

    if (!cJSON_IsNumber(index) || index->valuedouble < 0 || index->valuedouble >= t->n) {
        return;
    }
    node = &t->nodes[(int)index->valuedouble];
    memcpy(task, node->task, sizeof task);
    memcpy(agent, node->agent, sizeof agent);
    if (!update(t, node, type, event)) {
        return;
    }
    memcpy(node->task, task, sizeof task);
    memcpy(node->agent, agent, sizeof agent);
    if (t->quiet) {
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
