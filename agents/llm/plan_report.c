#include "agents/llm/plan_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/buf.h"
#include "protocol/base/share.h"
#include "protocol/base/utf8.h"
#include "protocol/wire/doc.h"

enum { TASK_MAX = 600, ERROR_MAX = 2000, STEP_OVERHEAD = 160, NAMED_MAX = 20, NAME_SHOWN = 64 };

static cJSON *get(const cJSON *map, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(map, name);
}

static bool is(const cJSON *item, const char *text)
{
    return cJSON_IsString(item) && strcmp(item->valuestring, text) == 0;
}

/* The text of a value: a string as it is, anything else as JSON; NULL when there is none. */
static char *text_of(const cJSON *value)
{
    if (value == NULL || cJSON_IsNull(value)) {
        return NULL;
    }
    return cJSON_IsString(value) ? strdup(value->valuestring) : cjson_print(value, false, NULL);
}

/* Replaces the member by the beginning of the text; false when out of memory. */
static bool cut(cJSON *step, const char *name, const char *text, size_t max)
{
    size_t n = utf8_cut(text, strlen(text), max);
    char *begin = strndup(text, n);
    cJSON *item = begin == NULL ? NULL : cJSON_CreateString(begin);
    bool ok = item != NULL && cJSON_ReplaceItemInObjectCaseSensitive(step, name, item);

    free(begin);
    if (!ok) {
        cJSON_Delete(item);
        return false;
    }
    if (!cJSON_IsTrue(get(step, "truncated"))) {
        cJSON_DeleteItemFromObjectCaseSensitive(step, "truncated");
        ok = cJSON_AddTrueToObject(step, "truncated") != NULL;
    }
    return ok;
}

static bool cut_long(cJSON *step, const char *name, size_t max)
{
    const cJSON *item = get(step, name);
    char *text = text_of(item);
    bool ok = (text != NULL) == (item != NULL && !cJSON_IsNull(item));

    if (ok && text != NULL && strlen(text) > max) {
        ok = cut(step, name, text, max);
    }
    cJSON_free(text);
    return ok;
}

static void count(const cJSON *step, struct plan_report_counts *c)
{
    c->all++;
    c->completed += is(get(step, "status"), "completed");
    c->failed += is(get(step, "status"), "failed");
}

/* Cuts all members but results to fixed sizes; *ret_used is their total. */
static bool shorten(cJSON *steps, size_t *lens, struct plan_report_counts *counts, size_t *ret_used)
{
    cJSON *step = NULL;
    size_t i = 0;

    *ret_used = 0;
    cJSON_ArrayForEach(step, steps)
    {
        char *result = text_of(get(step, "result"));
        lens[i++] = result == NULL ? 0 : strlen(result);
        cJSON_free(result);
        count(step, counts);
        if (!cut_long(step, "task", TASK_MAX) || !cut_long(step, "error", ERROR_MAX)) {
            return false;
        }
        const cJSON *task = get(step, "task");
        *ret_used += STEP_OVERHEAD;
        *ret_used += cJSON_IsString(task) ? strlen(task->valuestring) : 0;
        *ret_used += get(step, "error") != NULL ? ERROR_MAX : 0;
    }
    return true;
}

char *plan_report_steps(cJSON *steps, size_t room, struct plan_report_counts *ret)
{
    size_t n = (size_t)cJSON_GetArraySize(steps);
    size_t *lens = calloc(n + 1, sizeof *lens);
    cJSON *step = NULL;
    struct buf out;
    char *all = NULL;
    size_t used = 0;
    size_t share;
    bool ok;

    *ret = (struct plan_report_counts){0};
    ok = lens != NULL && shorten(steps, lens, ret, &used);
    share = ok ? share_fair(lens, n, room > used ? room - used : 0) : 0;
    buf_init(&out, SIZE_MAX / 4);
    cJSON_ArrayForEach(step, steps)
    {
        char *line;
        ok = ok && cut_long(step, "result", share);
        line = ok ? cjson_print(step, false, NULL) : NULL;
        ok = line != NULL;
        buf_add_cstr(&out, ok ? line : "");
        buf_add_byte(&out, '\n');
        cJSON_free(line);
    }
    buf_add_byte(&out, 0);
    if (ok && out.bad == BT_OK) {
        size_t len = 0;
        all = (char *)buf_take(&out, &len);
    }
    buf_done(&out);
    free(lens);
    return all;
}

/* Adds a name to a sentence of this program: without characters that Markdown or a terminal
 * interprets. */
static void add_name(struct buf *out, const char *name)
{
    size_t n = utf8_cut(name, strlen(name), NAME_SHOWN);

    for (size_t i = 0; i < n; i++) {
        char c = name[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     (uint8_t)c >= 0x80 || strchr(" .-_", c) != NULL;
        buf_add_byte(out, (uint8_t)(plain ? c : '?'));
    }
}

static void add_agents(struct buf *out, const cJSON *agents)
{
    int n = cJSON_GetArraySize(agents);
    const cJSON *agent = NULL;
    int i = 0;

    cJSON_ArrayForEach(agent, agents)
    {
        const cJSON *id = cJSON_IsObject(agent) ? get(agent, "agentId") : agent;
        if (i == NAMED_MAX) {
            buf_printf(out, " and %d more", n - i);
            return;
        }
        buf_add_cstr(out, i++ == 0 ? " across " : ", ");
        add_name(out, cJSON_IsString(id) ? id->valuestring : "?");
    }
}

/* The agents of the steps, each once, in the order of the steps; NULL = out of memory. */
static cJSON *agents_of(const cJSON *steps)
{
    cJSON *list = cJSON_CreateArray();
    const cJSON *step = NULL;

    cJSON_ArrayForEach(step, steps)
    {
        const cJSON *id = get(step, "agentId");
        const cJSON *had = NULL;
        bool known = !cJSON_IsString(id) || id->valuestring[0] == 0;
        cJSON_ArrayForEach(had, list)
        {
            known = known || strcmp(had->valuestring, id->valuestring) == 0;
        }
        if (!known) {
            (void)cJSON_AddItemToArray(list, cJSON_CreateString(id->valuestring));
        }
    }
    return list;
}

void plan_report_last_line(const cJSON *plan, char *ret, size_t room)
{
    const cJSON *ms = get(plan, "durationMs");
    bool completed = is(get(plan, "status"), "completed");
    cJSON *named = get(plan, "agents") != NULL ? NULL : agents_of(get(plan, "steps"));
    struct buf out;

    buf_init(&out, 4096);
    buf_printf(&out, "*Plan %s",
               completed                           ? "completed"
               : is(get(plan, "status"), "failed") ? "failed"
                                                   : "ended");
    if (cJSON_IsNumber(ms) && ms->valuedouble >= 0) {
        buf_printf(&out, " %s %.1f seconds", completed ? "in" : "after", ms->valuedouble / 1000);
    }
    add_agents(&out, named != NULL ? named : get(plan, "agents"));
    buf_add_cstr(&out, ".*");
    (void)snprintf(ret, room, "%s", buf_cstr(&out));
    buf_done(&out);
    cJSON_Delete(named);
}
