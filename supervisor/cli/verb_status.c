/* status, result, cancel, reviews, decide: one plan, or the list of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/cli.h"
#include "supervisor/cli/tree.h"

static cJSON *fields_for(const char *name, const char *value)
{
    cJSON *fields = cJSON_CreateObject();

    if (value != NULL) {
        (void)cJSON_AddStringToObject(fields, name, value);
    }
    return fields;
}

static enum cli_exit show_plan(struct cli *cli, const char *id)
{
    cJSON *view = NULL;
    enum cli_exit code = cli_call(cli, "plan.get", fields_for("planId", id), &view);

    if (code == CLI_OK && cli->json) {
        cli_print_json(view);
    } else if (code == CLI_OK) {
        const char *status = json_text(view, "status", "");
        const char *why = json_text(view, "failureReason", NULL);
        (void)printf("%s %s %s%s%s\n", cli_mark(status), json_text(view, "planId", ""), status,
                     json_text(view, "outcome", NULL) != NULL ? ", outcome " : "",
                     json_text(view, "outcome", ""));
        if (json_text(view, "query", NULL) != NULL) {
            (void)printf("  %s\n", json_text(view, "query", ""));
        }
        tree_print(cli, view);
        if (why != NULL) {
            (void)printf("  %s\n", why);
        }
    }
    cJSON_Delete(view);
    return code;
}

enum cli_exit verb_status(struct cli *cli)
{
    const char *limit = cli_value(cli, "limit");
    cJSON *fields;
    cJSON *answer = NULL;
    const cJSON *p;
    uint64_t n = 20;
    enum cli_exit code;

    if (cli->argc == 1) {
        return show_plan(cli, cli->argv[0]);
    }
    if (limit != NULL && !cli_number(limit, "--limit", &n)) {
        return CLI_USAGE;
    }
    fields = cJSON_CreateObject();
    (void)cJSON_AddNumberToObject(fields, "limit", (double)(n > 100 ? 100 : n));
    if (cli_value(cli, "status") != NULL) {
        (void)cJSON_AddStringToObject(fields, "status", cli_value(cli, "status"));
    }
    if (cli_value(cli, "session") != NULL) {
        (void)cJSON_AddStringToObject(fields, "sessionId", cli_value(cli, "session"));
    }
    code = cli_call(cli, "plan.list", fields, &answer);
    if (code == CLI_OK && cli->json) {
        cli_print_json(cJSON_GetObjectItemCaseSensitive(answer, "plans"));
    } else if (code == CLI_OK) {
        cJSON_ArrayForEach(p, cJSON_GetObjectItemCaseSensitive(answer, "plans"))
        {
            const char *status = json_text(p, "status", "");
            (void)printf("%s %s  %-10s %s  %.60s\n", cli_mark(status), json_text(p, "planId", ""),
                         status, json_text(p, "createdAt", ""), json_text(p, "query", ""));
        }
    }
    cJSON_Delete(answer);
    return code;
}

static enum cli_exit exit_of_result(const char *status)
{
    return strcmp(status, "completed") == 0 || strcmp(status, "skipped") == 0    ? CLI_OK
           : strcmp(status, "failed") == 0 || strcmp(status, "quarantined") == 0 ? CLI_FAILED
           : strcmp(status, "cancelled") == 0                                    ? CLI_CANCELLED
           : strcmp(status, "waiting") == 0                                      ? CLI_NEEDS_HUMAN
                                                                                 : CLI_TIMEOUT;
}

enum cli_exit verb_result(struct cli *cli)
{
    cJSON *fields = fields_for("planId", cli->argv[0]);
    cJSON *answer = NULL;
    enum cli_exit code;

    if (cli->argc == 2) {
        (void)cJSON_AddStringToObject(fields, "stepId", cli->argv[1]);
    }
    code = cli_call(cli, "plan.result", fields, &answer);
    if (code == CLI_OK && cli->json) {
        cli_print_json(answer);
    } else if (code == CLI_OK && cli->argc == 2 &&
               cJSON_GetObjectItemCaseSensitive(answer, "result") == NULL) {
        cli_say("step %s is %s and has no result%s%s", cli->argv[1],
                json_text(answer, "status", ""),
                json_text(answer, "failureReason", "")[0] != 0 ? ": " : "",
                json_text(answer, "failureReason", ""));
    } else if (code == CLI_OK && cli->argc == 2) {
        const cJSON *result = cJSON_GetObjectItemCaseSensitive(answer, "result");
        const char *text = json_text(result, "text", NULL);
        if (text != NULL) {
            cli_print_safe(text);
            (void)fputc('\n', stdout);
        } else {
            cli_print_json(cJSON_GetObjectItemCaseSensitive(result, "data"));
        }
    } else if (code == CLI_OK) {
        cli_print_safe(json_text(answer, "aggregatedResult", ""));
        (void)fputc('\n', stdout);
    }
    if (code == CLI_OK) {
        code = exit_of_result(json_text(answer, "status", ""));
    }
    if (code != CLI_OK && answer != NULL && cli->argc == 1) {
        cli_say("%s", json_text(answer, "failureReason",
                                code == CLI_TIMEOUT ? "the plan has not ended yet"
                                                    : json_text(answer, "status", "")));
    }
    cJSON_Delete(answer);
    return code;
}

enum cli_exit verb_cancel(struct cli *cli)
{
    cJSON *fields = fields_for("planId", cli->argv[0]);
    cJSON *answer = NULL;
    enum cli_exit code;

    if (cli_value(cli, "reason") != NULL) {
        (void)cJSON_AddStringToObject(fields, "reason", cli_value(cli, "reason"));
    }
    code = cli_call(cli, "plan.cancel", fields, &answer);
    if (code == CLI_OK && cli->json) {
        cli_print_json(answer);
    } else if (code == CLI_OK) {
        (void)printf("%s %s\n", json_text(answer, "planId", ""), json_text(answer, "status", ""));
    }
    cJSON_Delete(answer);
    return code;
}

enum cli_exit verb_reviews(struct cli *cli)
{
    cJSON *answer = NULL;
    enum cli_exit code = cli_call(cli, "review.list", NULL, &answer);
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(answer, "reviews");
    const cJSON *r;

    if (code == CLI_OK && cli->json) {
        cli_print_json(list);
    } else if (code == CLI_OK) {
        cJSON_ArrayForEach(r, list)
        {
            (void)printf("? %s  %s  %s\n", json_text(r, "reviewId", ""), json_text(r, "kind", ""),
                         json_text(r, "prompt", ""));
        }
    }
    cJSON_Delete(answer);
    return code;
}

enum cli_exit verb_decide(struct cli *cli)
{
    cJSON *fields = fields_for("reviewId", cli->argv[0]);
    cJSON *answer = NULL;
    enum cli_exit code;

    (void)cJSON_AddStringToObject(fields, "decision", cli->argv[1]);
    if (cli_value(cli, "comment") != NULL) {
        (void)cJSON_AddStringToObject(fields, "comment", cli_value(cli, "comment"));
    }
    code = cli_call(cli, "review.decide", fields, &answer);
    cJSON_Delete(answer);
    return code;
}
