/* retry, fork: a new plan that reuses the completed results of an ended one. */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/uuid.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/plan_file.h"
#include "supervisor/cli/verbs/follow.h"
#include "supervisor/cli/verbs/verbs.h"

static enum cli_exit again(struct cli *cli, const char *type, cJSON *fields, struct follow *f)
{
    char plan_id[BT_ID_LEN + 1] = "";
    char key[UUID_TEXT_LEN + 1];
    cJSON *answer = NULL;
    enum cli_exit code;
    bool wait = cli_flag(cli, "wait");

    uuid_format(uuid_new(), key); /* a repeated request makes no second plan */
    (void)cJSON_AddStringToObject(fields, "clientKey",
                                  cli_value(cli, "key") != NULL ? cli_value(cli, "key") : key);
    cli_add_value(cli, "session", fields, "sessionId");
    if (wait) {
        follow_catch_interrupts();
    }
    code = cli_call(cli, type, fields, &answer);
    if (code == CLI_OK) {
        (void)snprintf(plan_id, sizeof plan_id, "%s", json_text(answer, "planId", ""));
        if (!f->quiet) {
            double reused = json_number(answer, "reused");
            cli_note("plan %s from %s, %.0f result%s taken over\n", plan_id,
                     json_text(answer, "parentPlanId", ""), reused, reused == 1 ? "" : "s");
        }
        if (!wait && cli->json) {
            cli_print_json(answer);
        } else if (!wait) {
            (void)printf("%s\n", plan_id);
        }
    }
    cJSON_Delete(answer);
    f->plan_id = plan_id;
    return code == CLI_OK && wait ? follow_plan(cli, f) : code;
}

enum cli_exit verb_retry(struct cli *cli)
{
    struct follow f = {.quiet = cli_flag(cli, "quiet")};
    cJSON *fields = cli_fields("planId", cli->argv[0]);

    cli_add_value(cli, "from", fields, "fromStep");
    return again(cli, "plan.retry", fields, &f);
}

enum cli_exit verb_fork(struct cli *cli)
{
    struct follow f = {.quiet = cli_flag(cli, "quiet")};
    cJSON *fields;
    cJSON *policy = NULL;

    if (cli_value(cli, "from") == NULL) {
        cli_error("fork: expected --from STEP: that step and all that depend on it run again");
        return CLI_USAGE;
    }
    if (cli_value(cli, "policy") != NULL) {
        policy = cli_read_value(cli_value(cli, "policy"), "--policy");
        if (policy == NULL) {
            return CLI_USAGE;
        }
    }
    fields = cli_fields("planId", cli->argv[0]);
    cli_add_value(cli, "from", fields, "fromStep");
    if (policy != NULL) {
        (void)cJSON_AddItemToObject(fields, "policy", policy);
    }
    return again(cli, "plan.fork", fields, &f);
}
