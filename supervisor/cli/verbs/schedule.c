/* schedule: plans that begin by the clock. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/plan_file.h"
#include "supervisor/cli/common/problems.h"
#include "supervisor/cli/common/recipes.h"
#include "supervisor/cli/common/terminal.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/verbs.h"
#include "supervisor/cli/view/table.h"

enum { NEXT_DEFAULT = 5, NEXT_MAX = 1000, PAGE = 500, RULE_SHOWN = 40, REASON_SHOWN = 60 };

static const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* ---- put ---- */

/* Adds a duration of an option in milliseconds. Prints the error and returns false. */
static bool add_duration(const struct cli *cli, const char *option, cJSON *fields, const char *name)
{
    const char *given = cli_value(cli, option);
    char what[32];
    uint64_t ms = 0;

    (void)snprintf(what, sizeof what, "--%s", option);
    if (given == NULL) {
        return true;
    }
    if (!cli_age(given, what, &ms)) {
        return false;
    }
    (void)cJSON_AddNumberToObject(fields, name, (double)ms);
    return true;
}

/* Adds the inputs of a recipe, unfilled: the daemon fills them in at each time. */
static bool add_inputs(const struct cli *cli, const cJSON *recipe, cJSON *fields)
{
    const char *given = cli_value(cli, "inputs");
    cJSON *values = given != NULL ? json_tree(given) : cJSON_CreateObject();

    if (!cJSON_IsObject(values)) {
        cli_error("--inputs: expected a JSON object, got '%.200s'", given != NULL ? given : "");
        cJSON_Delete(values);
        return false;
    }
    if (!cli_read_pairs(cli, "input", get(recipe, "inputs"), values)) {
        cJSON_Delete(values);
        return false;
    }
    if (cJSON_GetArraySize(values) > 0) {
        (void)cJSON_AddItemToObject(fields, "inputs", values);
    } else {
        cJSON_Delete(values);
    }
    return true;
}

/* What the plans are made of: a file, a recipe, or a goal. */
static bool add_document(const struct cli *cli, cJSON *fields)
{
    const char *file = cli_value(cli, "plan");
    const char *recipe = cli_value(cli, "recipe");
    const char *goal = cli_value(cli, "goal");
    char path[RECIPE_PATH_MAX];
    cJSON *tree;

    if ((file != NULL) + (recipe != NULL) + (goal != NULL) != 1) {
        cli_error_hint("see: baton schedule --help",
                       "put: expected one of --plan FILE, --recipe RECIPE and --goal TEXT, got %s",
                       file == NULL && recipe == NULL && goal == NULL ? "none" : "more");
        return false;
    }
    if (goal != NULL) {
        (void)cJSON_AddStringToObject(fields, "goal", goal);
        return true;
    }
    if (!recipes_find(file != NULL ? file : recipe, path)) {
        return false;
    }
    tree = cli_read_tree(path);
    if (!cJSON_IsObject(tree)) {
        if (tree != NULL) {
            cli_error("%s: expected a plan or a recipe", path);
        }
        cJSON_Delete(tree);
        return false;
    }
    (void)cJSON_AddItemToObject(fields, "plan", tree);
    return add_inputs(cli, tree, fields);
}

static bool add_rule(const struct cli *cli, cJSON *fields)
{
    static const char *const rules[] = {"cron", "every", "at"};
    const char *max = cli_value(cli, "max-failures");
    uint64_t n = 0;
    int given = 0;

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        given += cli_value(cli, rules[i]) != NULL;
    }
    if (given != 1) {
        cli_error_hint("see: baton schedule --help",
                       "put: expected one of --cron LINE, --every TIME and --at MOMENT, got %s",
                       given == 0 ? "none" : "more");
        return false;
    }
    cli_add_value(cli, "cron", fields, "cron");
    cli_add_value(cli, "at", fields, "at");
    cli_add_value(cli, "tz", fields, "tz");
    cli_add_value(cli, "overlap", fields, "overlap");
    cli_add_value(cli, "end", fields, "endAt");
    cli_add_value(cli, "planner", fields, "planner");
    cli_add_value(cli, "key", fields, "clientKey");
    if (max != NULL && !cli_number(max, "--max-failures", &n)) {
        return false;
    }
    if (max != NULL) {
        (void)cJSON_AddNumberToObject(fields, "maxFailures", (double)n);
    }
    return add_duration(cli, "every", fields, "everyMs") &&
           add_duration(cli, "catch-up", fields, "catchUpMs") &&
           add_duration(cli, "jitter", fields, "jitterMs");
}

static void print_put(const struct cli *cli, const cJSON *answer)
{
    const cJSON *p;
    const cJSON *next = cJSON_GetArrayItem(get(answer, "next"), 0);
    const char *status = json_text(answer, "status", "");

    cJSON_ArrayForEach(p, get(answer, "problems"))
    {
        cli_print_problem(p, "warning");
    }
    if (cli->json) {
        cli_print_json(answer);
        return;
    }
    (void)printf("schedule %s %s, %s%s%s\n", json_text(answer, "name", ""),
                 cJSON_IsTrue(get(answer, "existing"))   ? "is as it was"
                 : cJSON_IsTrue(get(answer, "replaced")) ? "is replaced"
                                                         : "is made",
                 status, next != NULL ? ": next " : "", next != NULL ? next->valuestring : "");
    if (strcmp(status, "paused") == 0) {
        cli_note("it is paused: baton schedule resume %s\n", json_text(answer, "name", ""));
    }
}

static enum cli_exit put(struct cli *cli, const char *name)
{
    cJSON *fields = cli_fields("name", name);
    char *text = NULL;
    char *json = NULL;
    cJSON *answer = NULL;
    struct bt_error err;
    enum cli_exit code;

    if (!add_rule(cli, fields) || !add_document(cli, fields)) {
        cJSON_Delete(fields);
        return CLI_USAGE;
    }
    code = cli_connect(cli);
    text = cJSON_PrintUnformatted(fields);
    if (code == CLI_OK && bt_client_call(cli->client, "schedule.put", text, &json, &err) != BT_OK) {
        code = cli_rejected(cli, &err, json);
    } else if (code == CLI_OK) {
        answer = json_tree(json);
        print_put(cli, answer);
    }
    cJSON_Delete(answer);
    bt_free(json);
    cJSON_free(text);
    cJSON_Delete(fields);
    return code;
}

/* ---- what is there ---- */

static void write_rule(char *ret, size_t size, const cJSON *s)
{
    const double every = json_number(s, "everyMs");

    if (json_text(s, "cron", "")[0] != 0) {
        (void)snprintf(ret, size, "%s", json_text(s, "cron", ""));
    } else if (every > 0) {
        (void)snprintf(ret, size, "every %.10g s", every / 1000);
    } else {
        (void)snprintf(ret, size, "at %s", json_text(s, "at", ""));
    }
}

static void print_list(const cJSON *schedules)
{
    static const char *const heads[] = {"schedule", "status",   "rule",      "zone",   "next",
                                        ">fired",   ">skipped", ">failures", "reason", NULL};
    struct table *t = table_new(heads);
    const cJSON *s;

    cJSON_ArrayForEach(s, schedules)
    {
        char rule[RULE_SHOWN];
        char reason[REASON_SHOWN];
        const cJSON *next = cJSON_GetArrayItem(get(s, "next"), 0);
        const bool active = strcmp(json_text(s, "status", ""), "active") == 0;
        write_rule(rule, sizeof rule, s);
        cli_cut_line(reason, sizeof reason, json_text(s, "reason", ""));
        table_cell(t, "%s", json_text(s, "name", ""));
        table_cell(t, "%s", json_text(s, "status", ""));
        table_cell(t, "%s", rule);
        table_cell(t, "%s", json_text(s, "tz", ""));
        table_cell(t, "%s", active && next != NULL ? next->valuestring : "");
        table_cell(t, "%.0f", json_number(s, "fired"));
        table_cell(t, "%.0f", json_number(s, "skipped"));
        table_cell(t, "%.0f", json_number(s, "failures"));
        table_cell(t, "%s", reason);
    }
    table_show(t);
}

/* What the configuration declares and the daemon did not put. */
static void print_refused(const cJSON *answer)
{
    const cJSON *r;

    cJSON_ArrayForEach(r, get(answer, "refused"))
    {
        cli_note("refused: schedule %s of the configuration: %s\n", json_text(r, "name", ""),
                 json_text(r, "error", ""));
    }
}

/* All pages. */
static enum cli_exit read_list(struct cli *cli, cJSON *ret)
{
    double cursor = 0;
    enum cli_exit code;

    do {
        cJSON *fields = cJSON_CreateObject();
        cJSON *answer = NULL;
        cJSON *s;
        (void)cJSON_AddNumberToObject(fields, "cursor", cursor);
        (void)cJSON_AddNumberToObject(fields, "limit", PAGE);
        code = cli_call(cli, "schedule.list", fields, &answer);
        while (code == CLI_OK &&
               (s = cJSON_DetachItemFromArray(cJSON_GetObjectItemCaseSensitive(answer, "schedules"),
                                              0)) != NULL) {
            (void)cJSON_AddItemToArray(ret, s);
        }
        cursor = code == CLI_OK ? json_number(answer, "cursor") : 0;
        print_refused(answer);
        cJSON_Delete(answer);
    } while (cursor > 0);
    return code;
}

static enum cli_exit list(struct cli *cli)
{
    cJSON *all = cJSON_CreateArray();
    const enum cli_exit code = read_list(cli, all);

    if (code == CLI_OK && cli->json) {
        cli_print_json(all);
    } else if (code == CLI_OK && cJSON_GetArraySize(all) == 0) {
        cli_note("no schedules yet: baton schedule put makes one\n");
    } else if (code == CLI_OK) {
        print_list(all);
    }
    cJSON_Delete(all);
    return code;
}

static void print_field(const char *name, const char *text)
{
    if (text[0] != 0) {
        (void)printf("%-14s%s\n", name, text);
    }
}

static void print_seconds(const char *name, double ms)
{
    if (ms > 0) {
        (void)printf("%-14s%.10g s\n", name, ms / 1000);
    }
}

static void print_one(const cJSON *s)
{
    char rule[RULE_SHOWN * 8];
    const cJSON *next;
    bool first = true;

    write_rule(rule, sizeof rule, s);
    (void)printf("%s  %s%s%s\n", json_text(s, "name", ""), json_text(s, "status", ""),
                 json_text(s, "reason", "")[0] != 0 ? ": " : "", json_line(s, "reason", ""));
    print_field("rule", rule);
    print_field("zone", json_text(s, "tz", ""));
    print_field("overlap", json_text(s, "overlap", ""));
    print_seconds("catch-up", json_number(s, "catchUpMs"));
    print_seconds("jitter", json_number(s, "jitterMs"));
    print_field("end", json_text(s, "endAt", ""));
    if (json_number(s, "maxFailures") > 0) {
        (void)printf("%-14s%.0f of at most %.0f in a row\n", "failures", json_number(s, "failures"),
                     json_number(s, "maxFailures"));
    }
    (void)printf("%-14s%.0f fired, %.0f skipped, %.0f open\n", "plans", json_number(s, "fired"),
                 json_number(s, "skipped"), json_number(s, "openPlans"));
    print_field("last", json_text(s, "lastTime", ""));
    print_field("last plan", json_text(s, "lastPlanId", ""));
    if (json_text(s, "backfillTo", "")[0] != 0) {
        (void)printf("%-14s%s to %s\n", "backfill", json_text(s, "backfillFrom", ""),
                     json_text(s, "backfillTo", ""));
    }
    print_field("owner", json_text(s, "owner", ""));
    cJSON_ArrayForEach(next, get(s, "next"))
    {
        print_field(first ? "next" : "", next->valuestring);
        first = false;
    }
}

static enum cli_exit ask_one(struct cli *cli, const char *name, uint64_t next, cJSON **ret)
{
    cJSON *fields = cli_fields("name", name);

    (void)cJSON_AddNumberToObject(fields, "next", (double)next);
    if (cli_flag(cli, "document")) {
        (void)cJSON_AddTrueToObject(fields, "document");
    }
    return cli_call(cli, "schedule.get", fields, ret);
}

static enum cli_exit show(struct cli *cli, const char *name)
{
    cJSON *answer = NULL;
    const enum cli_exit code = ask_one(cli, name, NEXT_DEFAULT, &answer);
    cJSON *s = cJSON_GetObjectItemCaseSensitive(answer, "schedule");

    if (code == CLI_OK && (cli->json || cli_flag(cli, "document"))) {
        cli_print_json(s);
    } else if (code == CLI_OK) {
        print_one(s);
    }
    cJSON_Delete(answer);
    return code;
}

static enum cli_exit next(struct cli *cli, const char *name)
{
    uint64_t n = NEXT_DEFAULT;
    cJSON *answer = NULL;
    const cJSON *times;
    const cJSON *t;
    enum cli_exit code;

    if (cli->argc > 2 && !cli_number(cli->argv[2], "N", &n)) {
        return CLI_USAGE;
    }
    if (n > NEXT_MAX) {
        cli_error("N: at most %d times are shown", NEXT_MAX);
        return CLI_USAGE;
    }
    code = ask_one(cli, name, n, &answer);
    times = get(get(answer, "schedule"), "next");
    if (code == CLI_OK && cli->json) {
        cJSON *shown = times != NULL ? cJSON_Duplicate(times, true) : cJSON_CreateArray();
        cli_print_json(shown);
        cJSON_Delete(shown);
    } else if (code == CLI_OK) {
        cJSON_ArrayForEach(t, times)
        {
            (void)puts(t->valuestring);
        }
    }
    cJSON_Delete(answer);
    return code;
}

/* ---- orders ---- */

static void print_order(const char *verb, const cJSON *answer)
{
    const char *name = json_text(answer, "name", "");

    if (strcmp(verb, "trigger") == 0) {
        (void)puts(json_text(answer, "planId", ""));
    } else if (strcmp(verb, "delete") == 0) {
        (void)printf("schedule %s is deleted", name);
        (void)printf(json_number(answer, "openPlans") > 0 ? "; %.0f open plans go on\n" : "\n",
                     json_number(answer, "openPlans"));
    } else if (strcmp(verb, "backfill") == 0) {
        (void)printf("schedule %s makes the plans of %.0f times, %s to %s\n", name,
                     json_number(answer, "times"), json_text(answer, "first", ""),
                     json_text(answer, "last", ""));
    } else {
        (void)printf("schedule %s is %s%s%s\n", name, json_text(answer, "status", ""),
                     json_text(answer, "next", "")[0] != 0 ? ": next " : "",
                     json_text(answer, "next", ""));
    }
}

static enum cli_exit order(struct cli *cli, const char *verb, const char *name)
{
    cJSON *fields = cli_fields("name", name);
    cJSON *answer = NULL;
    char type[32];
    enum cli_exit code;

    (void)snprintf(type, sizeof type, "schedule.%s", verb);
    if (strcmp(verb, "pause") == 0) {
        cli_add_value(cli, "reason", fields, "reason");
    } else if (strcmp(verb, "trigger") == 0) {
        cli_add_value(cli, "key", fields, "clientKey");
    } else if (strcmp(verb, "backfill") == 0) {
        (void)cJSON_AddStringToObject(fields, "from", cli->argv[2]);
        (void)cJSON_AddStringToObject(fields, "to", cli->argv[3]);
    }
    code = cli_call(cli, type, fields, &answer);
    if (code == CLI_OK && cli->json) {
        cli_print_json(answer);
    } else if (code == CLI_OK) {
        print_order(verb, answer);
    }
    cJSON_Delete(answer);
    return code;
}

static bool is_order(const char *verb)
{
    static const char *const verbs[] = {"pause", "resume", "trigger", "backfill", "delete"};

    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verb, verbs[i]) == 0) {
            return true;
        }
    }
    return false;
}

enum cli_exit verb_schedule(struct cli *cli)
{
    static const char *const words[] = {"put",    "get",     "list",     "next",   "pause",
                                        "resume", "trigger", "backfill", "delete", NULL};
    const char *verb = cli->argv[0];
    const char *name = cli->argc > 1 ? cli->argv[1] : NULL;
    const int most = strcmp(verb, "backfill") == 0 ? 4 : strcmp(verb, "next") == 0 ? 3 : 2;

    if (strcmp(verb, "list") == 0 && cli->argc == 1) {
        return list(cli);
    }
    if (strcmp(verb, "list") != 0 && strcmp(verb, "put") != 0 && strcmp(verb, "get") != 0 &&
        strcmp(verb, "next") != 0 && !is_order(verb)) {
        return cli_unknown_word("schedule", verb, words);
    }
    if (strcmp(verb, "put") == 0 && cli->argc > 2 && cli_value(cli, "cron") != NULL) {
        cli_error_hint("a line of five fields stands in quotes: --cron '0 3 * * *'",
                       "put: expected the name of one schedule, got '%.100s', too", cli->argv[2]);
        return CLI_USAGE;
    }
    if (name == NULL || cli->argc > most || strcmp(verb, "list") == 0 ||
        (most == 4 && cli->argc != 4)) {
        cli_error_hint("see: baton schedule --help", "%s: expected %s", verb,
                       strcmp(verb, "list") == 0 ? "no further argument"
                       : most == 4               ? "the name of a schedule, FROM and TO"
                       : most == 3               ? "the name of a schedule, and perhaps a number"
                                                 : "the name of one schedule");
        return CLI_USAGE;
    }
    return strcmp(verb, "put") == 0    ? put(cli, name)
           : strcmp(verb, "get") == 0  ? show(cli, name)
           : strcmp(verb, "next") == 0 ? next(cli, name)
                                       : order(cli, verb, name);
}
