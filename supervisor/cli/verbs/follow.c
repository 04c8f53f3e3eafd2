#include "supervisor/cli/verbs/follow.h"
#include "supervisor/cli/verbs/artifact.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/deadline.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/submit.h"
#include "supervisor/cli/view/answer.h"
#include "supervisor/cli/view/event_line.h"
#include "supervisor/cli/view/failures.h"
#include "supervisor/cli/view/leaves.h"
#include "supervisor/cli/view/tree.h"

enum {
    SLICE_MS = 250,
    LINE_BYTES_MAX = 65536,
    LOOK_MS = 1000,      /* so often: what do the steps wait for? */
    LOOK_CALL_MS = 1000, /* of that question: an interrupt waits for it */
    LOOK_STEPS_MAX = 200 /* of a larger plan the daemon would read too much each time */
};

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
    msec look_at;          /* when to look at what the steps wait for */
    bool inside;           /* a call, or another plan inside, waits for a person */
    bool inside_said;
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

/* How the newest failed attempt of a step came about, on stderr: `exitCode: 3, durationMs: 12`,
 * then the end of what the program wrote to stderr. */
static void print_details(const cJSON *details)
{
    const char *lines = json_text(details, "stderr", "");
    const cJSON *d;
    struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    cJSON_ArrayForEach(d, details)
    {
        char *value = strcmp(d->string, "stderr") == 0 ? NULL : cJSON_PrintUnformatted(d);
        if (value != NULL) {
            buf_printf(&text, "%s%s: %s", text.len > 0 ? ", " : "  ", d->string, value);
        }
        cJSON_free(value);
    }
    buf_add_cstr(&text, text.len > 0 ? "\n" : "");
    buf_add_cstr(&text, lines[0] != 0 ? "  stderr:\n" : "");
    while (*lines != 0) {
        const size_t n = strcspn(lines, "\n");
        buf_printf(&text, "    %.*s\n", (int)n, lines);
        lines += n + (lines[n] != 0);
    }
    if (buf_cstr(&text)[0] != 0) {
        cli_scrub((char *)text.at);
        (void)fputs(buf_cstr(&text), stderr);
    }
    buf_done(&text);
}

void follow_print_step(const struct cli *cli, const cJSON *answer, const char *step_id)
{
    const cJSON *result = cJSON_GetObjectItemCaseSensitive(answer, "result");
    const char *text = json_text(result, "text", NULL);
    const char *status = json_text(answer, "status", "");
    const char *why = json_text(answer, "failureReason", "");

    if (cli->json) {
        cli_print_json(answer);
    } else if (result == NULL && strcmp(status, "failed") == 0) {
        cli_error("step %s failed%s%s", step_id, why[0] != 0 ? ": " : "", why);
        print_details(cJSON_GetObjectItemCaseSensitive(answer, "details"));
    } else if (result == NULL) {
        cli_error("step %s is %s and has no result%s%s", step_id, status, why[0] != 0 ? ": " : "",
                  why);
        print_details(cJSON_GetObjectItemCaseSensitive(answer, "details"));
    } else if (text != NULL) {
        cli_print_lines(text);
    } else if (cJSON_HasObjectItem(result, "data")) {
        cli_print_json(cJSON_GetObjectItemCaseSensitive(result, "data"));
    }
    if (!cli->json) {
        cli_print_artifacts(cli, answer);
    }
}

static void note_failure(void *self, const char *text)
{
    (void)self;
    cli_note("  %s\n", text);
}

void follow_print_failures(struct cli *cli, const char *plan_id, const char *why)
{
    cJSON *view = NULL;

    if (cli_plan_view(cli, plan_id, &view) == CLI_OK) {
        failures_each(view, why, note_failure, NULL);
    }
    cJSON_Delete(view);
}

/* Whether the reason of a plan's end is the failure of this step, which is printed. */
static bool repeats(const cJSON *step, const char *why)
{
    const char *own = json_text(step, "failureReason", "");
    const size_t n = strlen(own);
    const size_t len = strlen(why);

    return n > 0 && len >= n && strcmp(why + len - n, own) == 0;
}

/* Prints one step's result; CLI_OK also without one. *io_why: why the plan failed; NULL when that
 * is printed here. */
static enum cli_exit print_step(struct cli *cli, const struct follow *f, const char **io_why)
{
    cJSON *fields = cli_fields("planId", f->plan_id);
    cJSON *answer = NULL;
    enum cli_exit code;

    (void)cJSON_AddStringToObject(fields, "stepId", f->result_step);
    code = cli_call(cli, "plan.result", fields, &answer);
    if (code == CLI_OK) {
        follow_print_step(cli, answer, f->result_step);
        if (!cli->json && *io_why != NULL && repeats(answer, *io_why)) {
            *io_why = NULL;
        }
    }
    cJSON_Delete(answer);
    return code;
}

static enum cli_exit print_result(struct cli *cli, const struct follow *f, struct answer *shown_yet)
{
    cJSON *answer = NULL;
    enum cli_exit shown = CLI_OK;
    enum cli_exit code = cli_plan_result(cli, f->plan_id, &answer);

    if (code == CLI_OK) {
        const char *why = json_text(answer, "failureReason", NULL);
        code = cli_exit_of_plan(json_text(answer, "status", ""), json_text(answer, "outcome", ""));
        if (f->result_step != NULL) {
            answer_break(shown_yet);
            shown = print_step(cli, f, &why);
        } else if (cli->json) {
            cli_print_json(answer);
        } else {
            char *leaves = cli_flag(cli, "all") ? NULL : cli_leaf_answer(cli, f->plan_id, answer);
            answer_whole(shown_yet,
                         leaves != NULL ? leaves : json_text(answer, "aggregatedResult", ""));
            free(leaves);
        }
        if (why != NULL) {
            cli_error("%s", why);
            follow_print_failures(cli, f->plan_id, why);
        }
        cli_report_not_whole(answer);
        code = cli_report_partial(cli, code, f->plan_id);
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
    if (strcmp(type, "review_voided") == 0 ||
        (strcmp(type, "review_decided") == 0 && json_text(event, "stepId", NULL) == NULL)) {
        g->needs = NULL;
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
    char review[CLI_REVIEW_ID];
    struct buf open;
    const char *id = g->f->plan_id;

    buf_init(&open, SIZE_MAX / 2);
    if (cli_reviews_open(g->cli, id, review, &open) == 1) {
        id = review;
    }
    (void)fputs(buf_cstr(&open), stderr);
    buf_done(&open);
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

/* Whether a step that does not wait itself has a plan inside that waits for a person. */
static bool has_inside(const cJSON *plan_view)
{
    const cJSON *step;

    cJSON_ArrayForEach(step, cJSON_GetObjectItemCaseSensitive(plan_view, "steps"))
    {
        const cJSON *wait = cJSON_GetObjectItemCaseSensitive(step, "waiting");
        if (strcmp(json_text(wait, "kind", ""), "person") == 0 &&
            strcmp(json_text(step, "status", ""), "in_progress") == 0) {
            return true;
        }
    }
    return false;
}

/* Of a large plan, whose view is too much each time, and of one that is not drawn. */
static void look_at_reviews(struct following *g)
{
    char review[CLI_REVIEW_ID];
    struct buf open;

    buf_init(&open, SIZE_MAX / 2);
    g->inside = cli_reviews_open(g->cli, g->f->plan_id, review, &open) > 0;
    buf_done(&open);
}

static void look_at_view(struct following *g)
{
    cJSON *view = NULL;
    char *json = NULL;
    char fields[96];
    struct bt_error err;

    (void)snprintf(fields, sizeof fields, "{\"planId\":\"%s\"}", g->f->plan_id);
    if (bt_client_call(g->cli->client, "plan.get", fields, &json, &err) == BT_OK) {
        view = json_tree(json);
        cli_scrub_tree(view);
        tree_waits(g->tree, view);
        g->inside = has_inside(view);
    }
    cJSON_Delete(view);
    bt_free(json);
}

/* An open circuit, and what a plan inside waits for, are no events of the plan: the daemon is asked
 * when there is none. */
static void look_at_waits(struct following *g)
{
    if (clock_mono_ms() < g->look_at) {
        return;
    }
    bt_client_timeout(g->cli->client, deadline_left(LOOK_CALL_MS));
    if (g->f->quiet || tree_size(g->tree) > LOOK_STEPS_MAX) {
        look_at_reviews(g);
    } else {
        look_at_view(g);
    }
    cli_limit_call(g->cli);
    g->look_at = clock_mono_ms() + LOOK_MS;
}

/* With a deadline the command goes on: it says once what is waited for. */
static void say_inside(struct following *g)
{
    char review[CLI_REVIEW_ID];
    struct buf open;

    if (g->inside == g->inside_said) {
        return;
    }
    g->inside_said = g->inside;
    buf_init(&open, SIZE_MAX / 2);
    if (g->inside && cli_reviews_open(g->cli, g->f->plan_id, review, &open) > 0) {
        tree_settle(g->tree);
        (void)fputs(buf_cstr(&open), stderr);
        cli_note("the plan waits for your approval: baton approve %s (or reject)\n", review);
    }
    buf_done(&open);
}

/* Handles events until the plan has ended. */
static enum cli_exit follow(struct following *g)
{
    const struct follow *f = g->f;
    g->look_at = clock_mono_ms() + LOOK_MS;
    for (;;) {
        struct bt_event ev;
        struct bt_error err;
        enum bt_code got = bt_watch_next(g->watch, deadline_left(SLICE_MS), &ev, &err);
        uint64_t seq;
        cJSON *event;
        bool ended;
        if (interrupts > 0) {
            answer_break(&g->answer);
            return interrupted(g->cli, f->plan_id);
        }
        if (deadline_is_over()) {
            answer_break(&g->answer);
            cli_error("plan %s has not ended within the timeout; it continues", f->plan_id);
            return CLI_TIMEOUT;
        }
        look_at_waits(g);
        if (g->inside && deadline_at() == MSEC_NEVER) {
            tree_flush(g->tree);
            return needs_human(g);
        }
        say_inside(g);
        if (got == BT_TIMEOUT) {
            tree_flush(g->tree);
            continue;
        }
        if (got != BT_OK) {
            return cli_fail(&err);
        }
        seq = ev.seq;
        ended = strcmp(ev.type, "plan_completed") == 0;
        event = json_tree(ev.json);
        on_event(g, json_text(event, "type", ""), event);
        cJSON_Delete(event);
        if (ended) {
            tree_end(g->tree);
            return CLI_OK;
        }
        if ((tree_waiting(g->tree) || g->needs != NULL) && seq >= g->history &&
            deadline_at() == MSEC_NEVER) {
            tree_flush(g->tree);
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
