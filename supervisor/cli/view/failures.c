#include "supervisor/cli/view/failures.h"

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"

enum { LINE_BYTES_MAX = 4096 + 512 }; /* an error and a hint */

/* Whether `why` is the sentence about this step. */
static bool is_named(const char *why, double number)
{
    char begin[40];

    (void)snprintf(begin, sizeof begin, "Step %.0f failed:", number);
    return strncmp(why, begin, strlen(begin)) == 0;
}

void failures_each(const cJSON *view, const char *why, failures_line *line, void *self)
{
    const cJSON *s;

    cJSON_ArrayForEach(s, cJSON_GetObjectItemCaseSensitive(view, "steps"))
    {
        const double number = json_number(s, "stepIndex") + 1;
        const char *hint = json_text(s, "hint", "");
        char text[LINE_BYTES_MAX];
        if (strcmp(json_text(s, "status", ""), "failed") != 0 || is_named(why, number) ||
            cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(s, "superseded"))) {
            continue;
        }
        (void)snprintf(text, sizeof text, "step %.0f (%s) failed: %s%s%s", number,
                       json_text(s, "stepId", ""), json_text(s, "error", "it gave no reason"),
                       hint[0] != 0 ? "; " : "", hint);
        cli_one_line(text, sizeof text, text);
        line(self, text);
    }
}
