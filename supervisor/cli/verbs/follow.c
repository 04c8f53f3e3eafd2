#include "supervisor/cli/verbs/follow.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/submit.h"
#include "supervisor/cli/view/answer.h"
#include "supervisor/cli/view/event_line.h"
#include "supervisor/cli/view/tree.h"

enum { SLICE_MS = 250, LINE_BYTES_MAX = 65536 };

struct following {
    struct cli *cli;
    const struct follow *f;
    struct bt_watch *watch;
    struct tree *tree;
    uint64_t history;      /* events up to this one happened before: they are shown, not acted on */
    const char *needs;     /* the open review of the whole plan: signoff, planning; NULL = none */
    struct answer answer;  /* the answer while it is written */
    bool streams;          /* the answer is printed while it is written */
    bool planned_by_agent; /* an agent makes the plan */
};

/* The reviews of a whole plan. */
static const char *const plan_reviews[] = {"signoff", "planning"};

static volatile sig_atomic_t interrupts;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupts = interrupts + 1;
}

void follow_catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};

    (void)sigaction(SIGINT, &action, NULL);
}

void follow_print_step(const struct cli *cli, const cJSON *answer, const char *step_id)
{
    const cJSON *result = cJSON_GetObjectItemCaseSensitive(answer, "result");
    const char *text = json_text(result, "text", NULL);
    const char *why = json_text(answer, "failureReason", "");

    if (cli->json) {
        cli_print_json(answer);
    } else if (result == NULL) {
        cli_error("step %s is %s and has no result%s%s", step_id, json_text(answer, "status", ""),
                  why[0] != 0 ? ": " : "", why);
    } else if (text != NULL) {
        cli_print_safe(text);
        (void)fputc('\n', stdout);
    } else {
        cli_print_json(cJSON_GetObjectItemCaseSensitive(result, "data"));
    }
}

/* Prints one step's result; CLI_OK also without one. */
static enum cli_exit print_step(struct cli *cli, const struct follow *f)
{
    cJSON *fields = cli_fields("planId", f->plan_id);
    cJSON *answer = NULL;
    enum cli_exit code;

    (void)cJSON_AddStringToObject(fields, "stepId", f->result_step);
    code = cli_call(cli, "plan.result", fields, &answer);
    if (code == CLI_OK) {
        follow_print_step(cli, answer, f->result_step);
    }
    cJSON_Delete(answer);
    return code;
}

static enum cli_exit print_result(struct cli *cli, const struct follow *f, struct answer *shown_yet)
{
    cJSON *answer = NULL;
    enum cli_exit shown = CLI_OK;
    enum cli_exit code = cli_call(cli, "plan.result", cli_fields("planId", f->plan_id), &answer);

    if (code == CLI_OK) {
        const char *why = json_text(answer, "failureReason", NULL);
        code = cli_exit_of_plan(json_text(answer, "status", ""));
        if (f->result_step != NULL) {
            answer_break(shown_yet);
            shown = print_step(cli, f);
        } else if (cli->json) {
            cli_print_json(answer);
        } else {
            answer_whole(shown_yet, json_text(answer, "aggregatedResult", ""));
        }
        if (why != NULL) {
            cli_error("%s", why);
        }
    }
    cJSON_Delete(answer);
    return code == CLI_OK ? shown : code;
}

/* The first Ctrl-C leaves the plan running, the second cancels it. */
static enum cli_exit interrupted(struct cli *cli, const char *plan_id)
{
    struct bt_error err;

    if (interrupts < 2) {
        msec until = clock_mono_ms() + 1000;
        (void)fprintf(
            stderr,
            "\nplan %s goes on; follow it with: baton status %s (Ctrl-C again now cancels it)\n",
            plan_id, plan_id);
        while (interrupts < 2 && clock_mono_ms() < until) {
            struct timespec nap = {.tv_nsec = 50000000};
            (void)nanosleep(&nap, NULL);
        }
    }
    if (interrupts >= 2) {
        if (bt_cancel(cli->client, plan_id, "interrupted", &err) != BT_OK) {
            return cli_fail(&err);
        }
        (void)fprintf(stderr, "plan %s is being cancelled\n", plan_id);
    }
    return CLI_INTERRUPTED;
}

/* A revision has new steps. The view may be newer than the events, which follow. */
static void refresh_steps(struct following *g)
{
    cJSON *view = NULL;

    if (cli_plan_view(g->cli, g->f->plan_id, &view) == CLI_OK && !tree_refresh(g->tree, view)) {
        cli_error("out of memory: the new steps are not shown");
    }
    cJSON_Delete(view);
}

/* Events about the whole plan get a line. */
static void note_event(struct following *g, const char *type, const cJSON *event)
{
    const char *title = event_title(event);
    struct buf line;

    if (title == NULL) {
        return;
    }
    answer_break(&g->answer);
    buf_init(&line, LINE_BYTES_MAX);
    event_line(event, &line);
    if (strcmp(type, "plan_paused") == 0 &&
        strcmp(json_text(event, "reason", ""), "requested") == 0) {
        buf_printf(&line, "; go on with: baton resume %s", g->f->plan_id);
    }
    tree_note(g->tree, "  %s: %s", title, buf_cstr(&line));
    buf_done(&line);
}

/* Prints a piece of the answer below the tree. */
static void print_piece(struct following *g, const cJSON *event)
{
    if (g->streams) {
        tree_settle(g->tree);
        answer_piece(&g->answer, (uint64_t)json_number(event, "index"),
                     json_text(event, "text", ""));
    }
}

/* The plan that an agent made. */
static void note_plan(struct following *g, const cJSON *event)
{
    const char *about = json_text(event, "description", "");
    double n = json_number(event, "estimatedSteps");

    if (g->planned_by_agent) {
        tree_note(g->tree, "  planned: %.0f step%s by %s%s%s", n, n == 1 ? "" : "s",
                  json_text(event, "planner", "an agent"), about[0] != 0 ? ": " : "", about);
    }
}

/* Whether the event adds steps that are not drawn. */
static bool brings_steps(const struct following *g, const char *type, const cJSON *event)
{
    return (strcmp(type, "plan_generated") == 0 && tree_size(g->tree) == 0) ||
           ((strcmp(type, "plan_modified") == 0 || strcmp(type, "replan_finished") == 0 ||
             strcmp(type, "synthesis_retry") == 0) &&
            json_number(event, "newSteps") > 0);
}

static void on_event(struct following *g, const char *type, const cJSON *event)
{
    const char *reason = json_text(event, "reason", "");

    if (strcmp(type, "text_delta") == 0) {
        print_piece(g, event);
        return;
    }
    note_event(g, type, event);
    if (strcmp(type, "planning_started") == 0) {
        g->planned_by_agent = true;
    } else if (strcmp(type, "plan_generated") == 0) {
        note_plan(g, event);
    }
    if (brings_steps(g, type, event)) {
        refresh_steps(g);
    }
    for (size_t i = 0; i < sizeof plan_reviews / sizeof plan_reviews[0]; i++) {
        if (strcmp(reason, plan_reviews[i]) == 0 && strcmp(type, "plan_paused") == 0) {
            g->needs = plan_reviews[i];
        } else if (strcmp(reason, plan_reviews[i]) == 0 && strcmp(type, "plan_resumed") == 0) {
            g->needs = NULL;
        }
    }
    tree_event(g->tree, event);
}

static enum cli_exit needs_human(const struct following *g)
{
    const char *id = g->f->plan_id;

    if (g->needs != NULL && strcmp(g->needs, "planning") == 0) {
        cli_error(
            "there is no plan yet: baton approve %s plans again, baton approve %s --plan FILE "
            "takes yours, baton reject %s ends it",
            id, id, id);
    } else {
        cli_error(
            "the plan needs your approval: see `baton reviews`, then baton approve %s (or reject)",
            id);
    }
    return CLI_NEEDS_HUMAN;
}

/* Handles events until the plan has ended. */
static enum cli_exit follow(struct following *g)
{
    const struct follow *f = g->f;
    msec deadline = f->timeout_ms == 0 ? MSEC_NEVER : clock_mono_ms() + f->timeout_ms;

    for (;;) {
        struct bt_event ev;
        struct bt_error err;
        enum bt_code got = bt_watch_next(g->watch, SLICE_MS, &ev, &err);
        uint64_t seq;
        cJSON *event;
        bool ended;
        if (interrupts > 0) {
            answer_break(&g->answer);
            return interrupted(g->cli, f->plan_id);
        }
        if (clock_mono_ms() >= deadline) {
            answer_break(&g->answer);
            cli_error("plan %s has not ended within the timeout; it continues", f->plan_id);
            return CLI_TIMEOUT;
        }
        if (got == BT_TIMEOUT) {
            continue;
        }
        if (got != BT_OK) {
            return cli_fail(&err);
        }
        seq = ev.seq;
        ended = strcmp(ev.type, "plan_completed") == 0;
        event = cJSON_Parse(ev.json);
        on_event(g, json_text(event, "type", ""), event);
        cJSON_Delete(event);
        if (ended) {
            return CLI_OK;
        }
        if ((tree_waiting(g->tree) || g->needs != NULL) && seq >= g->history &&
            deadline == MSEC_NEVER) {
            return needs_human(g);
        }
    }
}

enum cli_exit follow_plan(struct cli *cli, const struct follow *f)
{
    struct following g = {.cli = cli,
                          .f = f,
                          .streams = !cli->json && !f->dry && f->result_step == NULL &&
                                     isatty(STDOUT_FILENO) == 1};
    cJSON *view = NULL;
    struct bt_error err;
    enum cli_exit code = cli_plan_view(cli, f->plan_id, &view);

    if (code != CLI_OK) {
        return code;
    }
    answer_init(&g.answer);
    g.history = (uint64_t)json_number(view, "lastSeq");
    g.tree = tree_new(cli, view, f->quiet);
    if (g.tree == NULL) {
        cli_error("out of memory");
        code = CLI_INTERNAL;
    } else if (bt_watch_open(cli->client, f->plan_id, 0, &g.watch, &err) != BT_OK) {
        code = cli_fail(&err);
    } else {
        code = follow(&g);
    }
    bt_watch_close(g.watch);
    if (code == CLI_OK && f->dry) {
        code = cli_show_document(cli, f->plan_id, f->issues);
    } else if (code == CLI_OK) {
        code = print_result(cli, f, &g.answer);
    }
    answer_done(&g.answer);
    tree_free(g.tree);
    cJSON_Delete(view);
    return code;
}
