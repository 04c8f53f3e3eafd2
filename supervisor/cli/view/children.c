#include "supervisor/cli/view/children.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"

#define RESULTS "results."
enum { TASK_BYTES_MAX = 65536 };

static bool is_loop(const char *kind)
{
    return strcmp(kind, "repeat") == 0;
}

/* Of a view from 1 on; of progress from 0 on. */
static double round_of(const cJSON *children)
{
    return cJSON_HasObjectItem(children, "rounds") ? json_number(children, "rounds")
                                                   : json_number(children, "round") + 1;
}

void children_words(const char *kind, const struct cJSON *children, char *ret, size_t cap)
{
    const double steps = json_number(children, "steps");
    const double items = json_number(children, "items");
    const bool by_item = strcmp(kind, "forEach") == 0 && items == steps;
    char before[48] = "";
    char failed[32] = "";

    ret[0] = 0;
    if (json_text(children, "planId", "")[0] == 0) {
        return;
    }
    if (is_loop(kind)) {
        const double n = round_of(children);
        (void)snprintf(before, sizeof before, "%.0f round%s", n, n == 1 ? "" : "s");
    } else if (strcmp(kind, "calls") == 0) {
        const double n = json_number(children, "rounds");
        if (n > 0) { /* progress does not have it */
            (void)snprintf(before, sizeof before, "%.0f turn%s", n, n == 1 ? "" : "s");
        }
    } else if (strcmp(kind, "forEach") == 0 && !by_item) {
        (void)snprintf(before, sizeof before, "%.0f item%s", items, items == 1 ? "" : "s");
    }
    if (json_number(children, "failed") > 0) {
        (void)snprintf(failed, sizeof failed, ", %.0f failed", json_number(children, "failed"));
    }
    if (is_loop(kind) && steps <= 1) {
        (void)snprintf(ret, cap, "%s", before);
    } else {
        (void)snprintf(ret, cap, "%s%s%.0f of %.0f%s%s", before, before[0] != 0 ? ", " : "",
                       json_number(children, "over"), steps, by_item ? "" : " steps", failed);
    }
}

double children_percent(const char *kind, const struct cJSON *children)
{
    const double steps = json_number(children, "steps");

    return is_loop(kind) || steps == 0 ? -1 : json_number(children, "over") * 100 / steps;
}

int children_turns(const struct cJSON *step)
{
    const cJSON *children = cJSON_GetObjectItemCaseSensitive(step, "children");

    return strcmp(json_text(children, "kind", ""), "calls") == 0
               ? (int)json_number(children, "rounds")
               : 0;
}

const struct cJSON *children_wait(const struct cJSON *step)
{
    const cJSON *wait = cJSON_GetObjectItemCaseSensitive(step, "waiting");

    return strcmp(json_text(wait, "kind", ""), "child") == 0 ? NULL : wait;
}

void children_task(char *to, size_t cap, const char *task)
{
    struct buf text;
    const char *open;

    buf_init(&text, TASK_BYTES_MAX);
    while ((open = strstr(task, "{{")) != NULL) {
        const char *name = open + 2 + strspn(open + 2, " ");
        const char *end = strstr(name, "}}");
        size_t n;
        if (end == NULL) {
            break;
        }
        name += strncmp(name, RESULTS, strlen(RESULTS)) == 0 ? strlen(RESULTS) : 0;
        n = (size_t)(end - name);
        while (n > 0 && name[n - 1] == ' ') {
            n--;
        }
        buf_add(&text, task, (size_t)(open - task));
        buf_printf(&text, "<%.*s>", (int)n, name);
        task = end + 2;
    }
    buf_add_cstr(&text, task);
    cli_cut_line(to, cap, buf_cstr(&text));
    buf_done(&text);
}
