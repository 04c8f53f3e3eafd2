#include "supervisor/cli/view/event_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/terminal.h"
#include "supervisor/cli/common/text.h"

enum { TEXT_MAX = 400, NAME_MAX_LEN = 40 };

/* The templates; messages.def describes their form. */
static const struct {
    const char *type;
    const char *title;
    const char *line;
} lines[] = {
#define EVENT_LINE(type, title, line) {type, title, line},
#include "protocol/messages.def"
};

const char *const *event_types(void)
{
    static const char *const types[] = {
#define EVENT_LINE(type, title, line) type,
#include "protocol/messages.def"
        NULL};
    return types;
}

static const cJSON *member(const cJSON *event, const char *path)
{
    const char *dot = strchr(path, '.');
    char first[NAME_MAX_LEN + 1];

    if (dot == NULL) {
        return cJSON_GetObjectItemCaseSensitive(event, path);
    }
    (void)snprintf(first, sizeof first, "%.*s", (int)(dot - path), path);
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(event, first),
                                            dot + 1);
}

static void put_text(struct buf *out, const char *text)
{
    char line[TEXT_MAX];

    cli_one_line(line, sizeof line, text);
    buf_add_cstr(out, line);
    buf_add_cstr(out, strlen(text) >= sizeof line ? "…" : "");
}

static void put_list(struct buf *out, const cJSON *list)
{
    const cJSON *v;
    bool first = true;

    cJSON_ArrayForEach(v, list)
    {
        buf_add_cstr(out, first ? "" : ", ");
        put_text(out, cJSON_IsString(v) ? v->valuestring : json_text(v, "stepId", "?"));
        first = false;
    }
}

/* As json_tree has it. */
static bool is_number(const cJSON *v)
{
    return cJSON_IsNumber(v) || cJSON_IsRaw(v);
}

static double number_of(const cJSON *v)
{
    return cJSON_IsRaw(v) ? strtod(v->valuestring, NULL) : cJSON_IsNumber(v) ? v->valuedouble : 0;
}

static void put_value(struct buf *out, const cJSON *v, const char *form)
{
    char ms[24];
    char when[CLI_TIME_MAX];

    if (strcmp(form, "ms") == 0) {
        cli_format_ms(number_of(v), ms, sizeof ms);
        buf_add_cstr(out, ms);
    } else if (strcmp(form, "yes") == 0 || strcmp(form, "no") == 0) {
        return;
    } else if (cJSON_IsString(v)) {
        put_text(out, cli_time(v->valuestring, when));
    } else if (cJSON_IsNumber(v)) {
        buf_printf(out, "%.0f", v->valuedouble);
    } else if (cJSON_IsRaw(v)) { /* an integer over 2^53 */
        buf_add_cstr(out, v->valuestring);
    } else {
        put_list(out, v);
    }
}

static bool has(const cJSON *v, const char *form)
{
    bool yes = cJSON_IsTrue(v) || number_of(v) != 0;

    if (strcmp(form, "yes") == 0 || strcmp(form, "no") == 0) {
        return yes == (form[0] == 'y');
    }
    if (strcmp(form, "ms") == 0) {
        return yes;
    }
    if (strcmp(form, "again") == 0) {
        return number_of(v) >= 2;
    }
    return (cJSON_IsString(v) && v->valuestring[0] != 0) || is_number(v) ||
           (cJSON_IsArray(v) && cJSON_GetArraySize(v) > 0);
}

/* Writes the template up to `end`. out NULL: only returns whether all members are present. */
static bool expand(const cJSON *event, const char *from, const char *end, struct buf *out)
{
    bool whole = true;

    for (const char *p = from; p < end; p++) {
        char name[NAME_MAX_LEN + 1];
        const char *close;
        char *form;
        if (*p == '[') {
            close = strchr(p, ']');
            if (out != NULL && expand(event, p + 1, close, NULL)) {
                (void)expand(event, p + 1, close, out);
            }
            p = close;
            continue;
        }
        if (*p != '{') {
            if (out != NULL) {
                buf_add_byte(out, (uint8_t)*p);
            }
            continue;
        }
        close = strchr(p, '}');
        (void)snprintf(name, sizeof name, "%.*s", (int)(close - p - 1), p + 1);
        form = strchr(name, ':');
        if (form != NULL) {
            *form++ = 0;
        }
        whole = whole && has(member(event, name), form != NULL ? form : "");
        if (out != NULL) {
            put_value(out, member(event, name), form != NULL ? form : "");
        }
        p = close;
    }
    return whole;
}

/* An event type of a newer daemon: its plain members, without those that every event has. */
static void put_unknown(const cJSON *event, struct buf *out)
{
    static const char *const common[] = {"seq",    "planSeq",   "eventId", "type",
                                         "planId", "sessionId", "tsMs",    "timestamp"};
    size_t start = out->len;
    const cJSON *v;

    cJSON_ArrayForEach(v, event)
    {
        bool skip = !cJSON_IsString(v) && !is_number(v);
        for (size_t i = 0; i < sizeof common / sizeof common[0]; i++) {
            skip = skip || strcmp(v->string, common[i]) == 0;
        }
        if (!skip) {
            buf_add_cstr(out, out->len > start ? " " : "");
            put_text(out, v->string);
            buf_add_byte(out, '=');
            put_value(out, v, "");
        }
    }
}

void event_line(const cJSON *event, struct buf *out)
{
    const char *type = json_text(event, "type", "");

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (strcmp(lines[i].type, type) == 0) {
            (void)expand(event, lines[i].line, lines[i].line + strlen(lines[i].line), out);
            return;
        }
    }
    put_unknown(event, out);
}

const char *event_title(const cJSON *event)
{
    const char *type = json_text(event, "type", "");

    /* The plan hands each step to its agent: only other handoffs get a line. */
    if (strcmp(type, "agent_handoff") == 0 &&
        strcmp(json_text(event, "reason", ""), "plan_step") == 0) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (strcmp(lines[i].type, type) == 0) {
            return lines[i].title;
        }
    }
    return NULL;
}
