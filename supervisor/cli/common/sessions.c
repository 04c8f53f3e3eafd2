/* The error for a session that does not exist. */
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/sessions.h"
#include "supervisor/cli/common/text.h"

enum { SESSIONS_MAX = 1000 };

void cli_report_no_session(struct cli *cli, const char *id, const char *more)
{
    cJSON *fields = cJSON_CreateObject();
    cJSON *answer = NULL;
    const char **names = NULL;
    const char *near = NULL;
    const cJSON *s;
    int n = 0;

    (void)cJSON_AddNumberToObject(fields, "limit", SESSIONS_MAX);
    if (cli_call(cli, "session.list", fields, &answer) == CLI_OK) {
        const cJSON *sessions = cJSON_GetObjectItemCaseSensitive(answer, "sessions");
        names = calloc((size_t)cJSON_GetArraySize(sessions) + 1, sizeof *names);
        cJSON_ArrayForEach(s, sessions)
        {
            if (names != NULL) {
                names[n++] = json_text(s, "sessionId", "");
            }
        }
        near = names != NULL ? cli_did_you_mean(id, names) : NULL;
    }
    cli_error("there is no session '%s'%s%s%sbaton sessions lists them%s", id,
              near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
              near != NULL ? "'? " : "; ", more);
    free(names);
    cJSON_Delete(answer);
}
