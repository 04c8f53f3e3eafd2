/* run: submit, follow, print the result, exit with what became of the plan. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"
#include "supervisor/cli/cli.h"
#include "supervisor/cli/tree.h"

enum { SLICE_MS = 250 };

static volatile sig_atomic_t interrupts;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupts = interrupts + 1;
}

static enum cli_exit exit_of_status(const char *status)
{
    return strcmp(status, "completed") == 0   ? CLI_OK
           : strcmp(status, "cancelled") == 0 ? CLI_CANCELLED
           : strcmp(status, "waiting") == 0   ? CLI_NEEDS_HUMAN
                                              : CLI_FAILED;
}

static void say_routes(const cJSON *answer)
{
    const cJSON *r;

    cJSON_ArrayForEach(r, cJSON_GetObjectItemCaseSensitive(answer, "routes"))
    {
        cli_note("  %s → %s%s%s: %s\n", json_text(r, "stepId", ""), json_text(r, "agentId", ""),
                 json_text(r, "skill", NULL) != NULL ? "." : "", json_text(r, "skill", ""),
                 json_text(r, "why", ""));
    }
}

static void say_warnings(const cJSON *answer)
{
    const cJSON *p;

    cJSON_ArrayForEach(p, cJSON_GetObjectItemCaseSensitive(answer, "problems"))
    {
        cli_note("  warning: %s%s%s\n", json_text(p, "stepId", ""),
                 json_text(p, "stepId", "")[0] != 0 ? ": " : "", json_text(p, "message", ""));
    }
}

static enum cli_exit submit(struct cli *cli, char plan_id[BT_ID_LEN + 1])
{
    struct bt_submit s = {.goal = cli->argc > 0 ? cli->argv[0] : NULL,
                          .session_id = cli_value(cli, "session"),
                          .planner = cli_value(cli, "planner"),
                          .client_key = cli_value(cli, "key"),
                          .policy_json = cli_value(cli, "policy")};
    const char *file = cli_value(cli, "plan");
    char *plan = NULL;
    char *json = NULL;
    struct bt_error err;
    enum cli_exit code;

    if ((s.goal == NULL) == (file == NULL)) {
        cli_say("run: expected either a goal or --plan FILE; see: baton run --help");
        return CLI_USAGE;
    }
    if (file == NULL && cli_value(cli, "inputs") != NULL) {
        cli_say("run: --inputs goes with --plan; a goal has none");
        return CLI_USAGE;
    }
    if (file != NULL) {
        plan = cli_read_plan(cli, file);
        if (plan == NULL) {
            return CLI_USAGE;
        }
        s.plan_json = plan;
    }
    code = cli_connect(cli);
    if (code == CLI_OK && bt_submit(cli->client, &s, plan_id, &json, &err) != BT_OK) {
        code = cli_fail(&err);
        cli_print_problems(cli, json);
    } else if (code == CLI_OK && !cli_flag(cli, "quiet")) {
        cJSON *answer = cJSON_Parse(json);
        (void)fprintf(stderr, "plan %s\n", plan_id);
        say_routes(answer);
        say_warnings(answer);
        cJSON_Delete(answer);
    }
    bt_free(json);
    cJSON_free(plan);
    return code;
}

static enum cli_exit print_result(struct cli *cli, const char *plan_id)
{
    cJSON *fields = cJSON_CreateObject();
    cJSON *answer = NULL;
    enum cli_exit code;

    (void)cJSON_AddStringToObject(fields, "planId", plan_id);
    code = cli_call(cli, "plan.result", fields, &answer);
    if (code == CLI_OK) {
        const char *why = json_text(answer, "failureReason", NULL);
        code = exit_of_status(json_text(answer, "status", ""));
        if (cli->json) {
            cli_print_json(answer);
        } else {
            cli_print_safe(json_text(answer, "aggregatedResult", ""));
            (void)fputc('\n', stdout);
        }
        if (why != NULL) {
            cli_say("%s", why);
        }
    }
    cJSON_Delete(answer);
    return code;
}

/* Ctrl-C once: leave the plan running. Twice: cancel it. */
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
        (void)fprintf(stderr, "plan %s cancelled\n", plan_id);
    }
    return CLI_INTERRUPTED;
}

/* Follows the events until the plan has ended. */
static enum cli_exit follow(struct cli *cli, const char *plan_id, struct bt_watch *watch,
                            struct tree *tree, uint32_t timeout_ms)
{
    msec deadline = timeout_ms == 0 ? MSEC_NEVER : clock_mono_ms() + timeout_ms;

    for (;;) {
        struct bt_event ev;
        struct bt_error err;
        enum bt_code got = bt_watch_next(watch, SLICE_MS, &ev, &err);
        cJSON *event;
        if (interrupts > 0) {
            return interrupted(cli, plan_id);
        }
        if (clock_mono_ms() >= deadline) {
            cli_say("plan %s has not ended within the timeout; it goes on", plan_id);
            return CLI_TIMEOUT;
        }
        if (got == BT_TIMEOUT) {
            continue;
        }
        if (got != BT_OK) {
            return cli_fail(&err);
        }
        event = cJSON_Parse(ev.json);
        tree_event(tree, event);
        cJSON_Delete(event);
        if (strcmp(ev.type, "plan_completed") == 0) {
            return CLI_OK;
        }
        if (strcmp(ev.type, "plan_step_waiting") == 0 && tree_waiting(tree) &&
            deadline == MSEC_NEVER) {
            cli_say("the plan waits for a decision: see `baton reviews`, then `baton decide`; the "
                    "plan goes on then");
            return CLI_NEEDS_HUMAN;
        }
    }
}

enum cli_exit verb_run(struct cli *cli)
{
    const char *timeout = cli_value(cli, "timeout");
    struct sigaction action = {.sa_handler = on_interrupt};
    char plan_id[BT_ID_LEN + 1] = "";
    struct bt_watch *watch = NULL;
    struct tree *tree = NULL;
    cJSON *fields = NULL;
    cJSON *view = NULL;
    struct bt_error err;
    uint32_t timeout_ms = 0;
    enum cli_exit code;

    if (timeout != NULL && !cli_duration(timeout, "--timeout", &timeout_ms)) {
        return CLI_USAGE;
    }
    /* From here on an interrupt is answered with what became of the plan. */
    (void)sigaction(SIGINT, &action, NULL);
    code = submit(cli, plan_id);
    if (code != CLI_OK) {
        return code;
    }
    if (cli_flag(cli, "detach")) {
        (void)printf(cli->json ? "{\"planId\":\"%s\"}\n" : "%s\n", plan_id);
        return CLI_OK;
    }
    fields = cJSON_CreateObject();
    (void)cJSON_AddStringToObject(fields, "planId", plan_id);
    code = cli_call(cli, "plan.get", fields, &view);
    if (code == CLI_OK) {
        tree = tree_new(cli, view, cli_flag(cli, "quiet"));
        if (bt_watch_open(cli->client, plan_id, 0, &watch, &err) != BT_OK) {
            code = cli_fail(&err);
        } else if (tree != NULL) {
            code = follow(cli, plan_id, watch, tree, timeout_ms);
        }
    }
    bt_watch_close(watch);
    if (code == CLI_OK) {
        code = print_result(cli, plan_id);
    }
    tree_free(tree);
    cJSON_Delete(view);
    return code;
}
