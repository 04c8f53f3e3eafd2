/* A review as lines, as tables, as a diff. */
#include "supervisor/cli/view/review.h"

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/utf8.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/terminal.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/view/line_diff.h"
#include "supervisor/cli/view/table.h"

enum { STEPS_SHOWN = 20, COLUMNS_MAX = 16 };

static const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* Lines after the first one stand below the value. */
static void indent(struct buf *out, const struct buf *value)
{
    const struct str s = buf_str(value);
    size_t from = 0;

    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '\n') {
            buf_add(out, s.ptr + from, i + 1 - from);
            buf_add_cstr(out, i + 1 < s.len ? "               " : "");
            from = i + 1;
        }
    }
    buf_add(out, s.ptr + from, s.len - from);
    buf_add_byte(out, '\n');
}

static void put_line(struct buf *out, const char *name, const char *text, size_t cut)
{
    const size_t len = strlen(text);
    const size_t keep = cut == 0 || len <= cut ? len : utf8_cut(text, len, cut);
    struct buf value;

    if (len == 0) {
        return;
    }
    buf_init(&value, 16 * len + 256);
    review_safe(text, keep, cut == 0, &value);
    if (keep < len) {
        buf_printf(&value, "… %zu more bytes", len - keep);
    }
    buf_printf(out, "    %-10s ", name);
    indent(out, &value);
    buf_done(&value);
}

static void put_member(struct buf *out, const char *name, const cJSON *value, size_t cut)
{
    struct buf text;

    if (value == NULL) {
        return;
    }
    buf_init(&text, SIZE_MAX / 2);
    review_value(value, cut, &text);
    buf_printf(out, "    %-10s ", name);
    indent(out, &text);
    buf_done(&text);
}

/* "a, b" of a list of texts. */
static void put_names(struct buf *out, const cJSON *names)
{
    const cJSON *n;
    bool first = true;

    cJSON_ArrayForEach(n, names)
    {
        buf_add_cstr(out, first ? "" : ", ");
        if (cJSON_IsString(n)) {
            review_safe(n->valuestring, strlen(n->valuestring), false, out);
        }
        first = false;
    }
}

static void put_agent(const cJSON *r, struct buf *out)
{
    const char *agent = json_text(r, "agentId", "");
    const cJSON *others = get(r, "fallbackAgents");

    if (agent[0] == 0) {
        return;
    }
    buf_add_cstr(out, "    agent      ");
    review_safe(agent, strlen(agent), false, out);
    if (json_text(r, "skill", "")[0] != 0) {
        buf_add_cstr(out, ", skill ");
        review_safe(json_text(r, "skill", ""), strlen(json_text(r, "skill", "")), false, out);
    }
    if (cJSON_GetArraySize(others) > 0) {
        buf_add_cstr(out, "; if it fails: ");
        put_names(out, others);
    }
    buf_add_byte(out, '\n');
}

static void put_upstream(const cJSON *r, size_t cut, struct buf *out)
{
    const cJSON *u;

    cJSON_ArrayForEach(u, get(r, "upstreamResults"))
    {
        char name[80];
        (void)snprintf(name, sizeof name, "from %s:", json_text(u, "stepId", ""));
        put_line(out, name, json_text(u, "result", ""), cut);
        if (cJSON_IsTrue(get(u, "truncated"))) {
            buf_printf(out, "    %-10s … of %.0f bytes; all of it: baton result %s --step ", "",
                       json_number(u, "resultLen"), json_text(r, "planId", ""));
            review_safe(json_text(u, "stepId", ""), strlen(json_text(u, "stepId", "")), false, out);
            buf_add_byte(out, '\n');
        }
    }
}

/* ---- a plan ---- */

static void put_step(const cJSON *s, int n, size_t cut, struct buf *out)
{
    const char *type = json_text(s, "type", "");

    buf_printf(out, "    %2d. ", n);
    review_safe(json_text(s, "stepId", ""), strlen(json_text(s, "stepId", "")), false, out);
    if (type[0] != 0) {
        buf_printf(out, " (%s)", type);
    }
    if (json_text(s, "status", "")[0] != 0) {
        buf_printf(out, " (%s)", json_text(s, "status", ""));
    }
    if (cJSON_GetArraySize(get(s, "dependsOn")) > 0) {
        buf_add_cstr(out, " after ");
        put_names(out, get(s, "dependsOn"));
    }
    buf_add_byte(out, '\n');
    put_agent(s, out);
    put_line(out, "effects", json_text(s, "effects", ""), cut);
    put_line(out, "task", json_text(s, "task", ""), cut);
    put_member(out, "parameters", get(s, "parameters"), cut);
    put_line(out, "gate", json_text(s, "gate", ""), cut);
    put_line(out, "verified by", json_text(s, "verifyWith", ""), cut);
    if (cJSON_IsTrue(get(s, "requiresApproval"))) {
        put_line(out, "approval", "you are asked again before it begins", 0);
    }
}

static void put_plan(const cJSON *r, size_t cut, struct buf *out)
{
    const int all = (int)json_number(r, "stepCount");
    const cJSON *budget = get(r, "budget");
    const cJSON *s;
    char amount[32];
    int n = 0;

    if (json_number(r, "revision") > 0) {
        buf_printf(out, "    revision   %.0f, %d step%s\n", json_number(r, "revision"), all,
                   all == 1 ? "" : "s");
    }
    if (json_number(r, "signedOffRevision") > 0) {
        buf_printf(out,
                   "    changed    since revision %.0f, which was signed off: baton review show %s "
                   "--as diff\n",
                   json_number(r, "signedOffRevision"), json_text(r, "reviewId", ""));
    }
    if (json_number(budget, "tokens") > 0) {
        buf_printf(out, "    budget     %.0f tokens\n", json_number(budget, "tokens"));
    }
    if (json_number(budget, "costMicros") > 0) {
        cli_format_micros(json_number(budget, "costMicros"), amount, sizeof amount);
        buf_printf(out, "    budget     %s\n", amount);
    }
    if (json_number(r, "timeoutMs") > 0) {
        cli_format_ms(json_number(r, "timeoutMs"), amount, sizeof amount);
        buf_printf(out, "    time       %s\n", amount);
    }
    cJSON_ArrayForEach(s, get(r, "steps"))
    {
        if (cut == 0 || n < STEPS_SHOWN) {
            put_step(s, ++n, cut, out);
        }
    }
    if (get(r, "steps") != NULL && n < all) {
        buf_printf(out, "    … %d more step%s\n", all - n, all - n == 1 ? "" : "s");
    }
}

/* ---- a review ---- */

/* What an approval does where it is more than a yes to what is shown. */
static void put_decisions(const char *kind, struct buf *out)
{
    static const struct {
        const char *kind, *text;
    } all[] = {
        {"input", "with --edit JSON that fits, or --comment TEXT: the next attempt gets it"},
        {"human_review", "with --comment TEXT or --edit JSON: that is the answer"},
        {"failure", "one more attempt; skip: go on without it; reject: the plan fails"},
        {"unknown_outcome",
         "does it AGAIN; skip: it was done, or is not needed; reject: the step fails"},
        {"planning", "plans again; with --plan FILE: runs that plan; reject: ends it"},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i].kind, kind) == 0) {
            put_line(out, "approve", all[i].text, 0);
        }
    }
}

/* " by anna@desk via cli from ... at ...: comment" */
static void put_actor(const cJSON *r, struct buf *out)
{
    const cJSON *by = get(r, "by");
    char when[CLI_TIME_MAX];
    const struct {
        const char *before, *text;
    } parts[] = {{" by ", json_text(by, "user", "")},
                 {"@", json_text(by, "host", "")},
                 {" via ", json_text(by, "via", "")},
                 {" from ", json_text(by, "address", "")},
                 {" at ", cli_time(json_text(r, "decidedAt", ""), when)},
                 {": ", json_text(r, "comment", "")}};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].text[0] != 0) {
            buf_add_cstr(out, parts[i].before);
            review_safe(parts[i].text, strlen(parts[i].text), false, out);
        }
    }
}

/* Of a review that was decided. */
static void put_decision(const cJSON *r, size_t cut, struct buf *out)
{
    const char *decision = json_text(r, "decision", "");

    if (decision[0] == 0) {
        return;
    }
    put_member(out, "given", get(r, "edit"), cut);
    buf_printf(out, "    %-10s %s", "decided", decision);
    put_actor(r, out);
    buf_add_byte(out, '\n');
}

void review_text(const cJSON *r, size_t cut, struct buf *out)
{
    const char *step = json_text(r, "stepId", NULL);
    char when[CLI_TIME_MAX];

    buf_printf(out, "? %s  %s  ", json_text(r, "reviewId", ""), json_text(r, "kind", ""));
    buf_add_cstr(out, step != NULL ? "step " : "the whole plan");
    review_safe(step != NULL ? step : "", step != NULL ? strlen(step) : 0, false, out);
    buf_add_byte(out, '\n');
    put_line(out, "asks", json_text(r, "prompt", ""), cut);
    put_line(out, "error", json_text(r, "error", ""), cut);
    if (strcmp(json_text(r, "task", ""), json_text(r, "prompt", "")) != 0) {
        put_line(out, "task", json_text(r, "task", ""), cut);
    }
    put_agent(r, out);
    put_line(out, "effects", json_text(r, "effects", ""), cut);
    put_member(out, "parameters", get(r, "parameters"), cut);
    if (json_number(r, "parametersLen") > 0) {
        buf_printf(out, "    parameters … %.0f bytes\n", json_number(r, "parametersLen"));
    }
    put_line(out, "feedback", json_text(r, "feedback", ""), cut);
    put_member(out, "wants", get(r, "schema"), cut);
    put_plan(r, cut, out);
    put_upstream(r, cut, out);
    put_decision(r, cut, out);
    if (json_text(r, "decision", "")[0] == 0) {
        put_line(out, "denied at", cli_time(json_text(r, "until", ""), when), cut);
        put_decisions(json_text(r, "kind", ""), out);
    }
}

void review_decision(const cJSON *r, struct buf *out)
{
    const char *decision = json_text(r, "decision", "");

    buf_printf(out, "%s %s  %s  %s",
               strcmp(decision, "approve") == 0 ? cli_mark("completed") : cli_mark("cancelled"),
               json_text(r, "reviewId", ""), json_text(r, "kind", ""), decision);
    put_actor(r, out);
    buf_add_byte(out, '\n');
}

/* ---- tables ---- */

static bool is_table(const cJSON *v)
{
    const cJSON *row;

    cJSON_ArrayForEach(row, v)
    {
        if (!cJSON_IsObject(row)) {
            return false;
        }
    }
    return cJSON_IsArray(v) && cJSON_GetArraySize(v) > 0;
}

/* The names of the members of all rows, in the order in which they come. */
static int heads_of(const cJSON *rows, const char *heads[COLUMNS_MAX + 1], int *ret_more)
{
    const cJSON *row;
    const cJSON *v;
    int n = 0;

    *ret_more = 0;
    cJSON_ArrayForEach(row, rows)
    {
        cJSON_ArrayForEach(v, row)
        {
            int i = 0;
            while (i < n && strcmp(heads[i], v->string) != 0) {
                i++;
            }
            if (i == n && n < COLUMNS_MAX) {
                heads[n++] = v->string;
            } else if (i == n) {
                (*ret_more)++;
            }
        }
    }
    heads[n] = NULL;
    return n;
}

static void put_cell(struct table *t, const cJSON *v)
{
    struct buf text;

    buf_init(&text, SIZE_MAX / 2);
    if (cJSON_IsString(v)) {
        review_safe(v->valuestring, strlen(v->valuestring), false, &text);
    } else if (v != NULL) {
        review_value(v, REVIEW_CUT, &text);
    }
    table_cell(t, "%s", buf_cstr(&text));
    buf_done(&text);
}

static void put_table(const char *name, const cJSON *rows, struct buf *out)
{
    const char *heads[COLUMNS_MAX + 1];
    int more;
    const int n = heads_of(rows, heads, &more);
    struct table *t = table_new(heads);
    const cJSON *row;

    cJSON_ArrayForEach(row, rows)
    {
        for (int i = 0; i < n && t != NULL; i++) {
            put_cell(t, get(row, heads[i]));
        }
    }
    review_safe(name, strlen(name), false, out);
    buf_printf(out, ": %d row%s\n", cJSON_GetArraySize(rows),
               cJSON_GetArraySize(rows) == 1 ? "" : "s");
    if (t != NULL) {
        table_write(t, 0, 0, out);
    }
    if (more > 0) {
        buf_printf(out, "… values of more than %d columns are left out; --as json has them\n",
                   COLUMNS_MAX);
    }
    table_free(t);
}

/* The lists in a value: itself, or its members. */
static bool put_tables(const char *name, const cJSON *v, struct buf *out)
{
    const cJSON *members = cJSON_IsObject(v) ? v : NULL;
    const cJSON *member;
    bool any = false;

    if (is_table(v)) {
        put_table(name, v, out);
        return true;
    }
    cJSON_ArrayForEach(member, members)
    {
        if (is_table(member)) {
            put_table(member->string, member, out);
            any = true;
        }
    }
    return any;
}

bool review_tables(const cJSON *r, struct buf *out)
{
    const cJSON *u;
    bool any = put_tables("steps", get(r, "steps"), out);

    any = put_tables("parameters", get(r, "parameters"), out) || any;
    cJSON_ArrayForEach(u, get(r, "upstreamResults"))
    {
        any = put_tables(json_text(u, "stepId", ""), get(u, "data"), out) || any;
    }
    return any;
}

/* ---- diff ---- */

static void put_side(const cJSON *v, struct buf *out)
{
    if (cJSON_IsString(v)) {
        review_safe(v->valuestring, strlen(v->valuestring), true, out);
    } else {
        review_value(v, 0, out);
    }
}

static bool put_diff(const char *name, const cJSON *v, struct buf *out)
{
    const cJSON *before = get(v, "before");
    const cJSON *after = get(v, "after");
    struct buf a;
    struct buf b;

    if (before == NULL || after == NULL) {
        return false;
    }
    buf_init(&a, SIZE_MAX / 2);
    buf_init(&b, SIZE_MAX / 2);
    put_side(before, &a);
    put_side(after, &b);
    buf_add_cstr(out, "--- before (");
    review_safe(name, strlen(name), false, out);
    buf_add_cstr(out, ")\n+++ after\n");
    line_diff(buf_str(&a), buf_str(&b), out);
    buf_done(&a);
    buf_done(&b);
    return true;
}

bool review_diff(const cJSON *r, struct buf *out)
{
    const cJSON *u;
    bool any = put_diff("parameters", get(r, "parameters"), out);

    cJSON_ArrayForEach(u, get(r, "upstreamResults"))
    {
        any = put_diff(json_text(u, "stepId", ""), get(u, "data"), out) || any;
    }
    return any;
}

bool review_asks_more(const char *kind)
{
    static const char *const kinds[] = {"input", "human_review", "failure", "unknown_outcome"};
    bool more = false;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        more = more || strcmp(kinds[i], kind) == 0;
    }
    return more;
}
