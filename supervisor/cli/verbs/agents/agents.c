/* agents, info: the agents and the daemon. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"
#include "protocol/wire/doc.h"
#include "supervisor/cli/common/agents.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/deadline.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/terminal.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/verbs/agents/gateway.h"
#include "supervisor/cli/verbs/agents/kinds.h"
#include "supervisor/cli/verbs/agents/order.h"
#include "supervisor/cli/verbs/agents/skill.h"
#include "supervisor/cli/verbs/verbs.h"

enum { WAIT_MS = 60000, REQUEST_MS = 50, POLL_MS = 50, FIELDS_MAX = 32, AGENTS_GUESSED = 64 };
enum { TYPE_SHOWN = 200, LINE_SHOWN = 2048 };

/* "circuit open, tried again in 12s"; empty when it is closed. */
static void describe_circuit(const cJSON *of, char *text, size_t cap)
{
    const cJSON *breaker = cJSON_GetObjectItemCaseSensitive(of, "breaker");
    const char *state = json_text(breaker, "state", "closed");
    char ms[24];

    text[0] = 0;
    if (strcmp(state, "open") == 0) {
        cli_format_ms(json_number(breaker, "retryInMs"), ms, sizeof ms);
        (void)snprintf(text, cap, "circuit open, tried again in %s", ms);
    } else if (strcmp(state, "closed") != 0) {
        (void)snprintf(text, cap, "circuit half open, being tried again");
    }
}

static void print_agent(struct cli *cli, const cJSON *a)
{
    const cJSON *card = cJSON_GetObjectItemCaseSensitive(a, "card");
    const cJSON *instances = cJSON_GetObjectItemCaseSensitive(a, "instances");
    const char *state = json_text(a, "state", "");
    char circuit[64];
    double busy = 0;
    double capacity = 0;
    char skills[256] = "";
    const cJSON *v;

    (void)cli;
    describe_circuit(a, circuit, sizeof circuit);
    cJSON_ArrayForEach(v, instances)
    {
        busy += json_number(v, "outstanding");
        capacity += json_number(v, "capacity");
    }
    cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(card, "skills"))
    {
        if (strlen(skills) < sizeof skills - 70) {
            (void)snprintf(skills + strlen(skills), sizeof skills - strlen(skills), "%s%s",
                           skills[0] != 0 ? ", " : "", json_text(v, "id", ""));
        }
    }
    (void)printf("%s %-12s %-9s %-8s %d instance%s  %.0f/%.0f busy  %.0f queued  %s%sskills: %s\n",
                 cli_mark(state), json_text(card, "agentId", ""), state,
                 json_line(card, "version", ""), cJSON_GetArraySize(instances),
                 cJSON_GetArraySize(instances) == 1 ? " " : "s", busy, capacity,
                 json_number(a, "queued"), circuit, circuit[0] != 0 ? "  " : "", skills);
    if (strcmp(state, "down") == 0) {
        char why[AGENT_REASON_MAX];
        agent_down_reason(a, why, sizeof why);
        (void)printf("%s%s%s", why[0] != 0 ? "    down" : "", why, why[0] != 0 ? "\n" : "");
    }
}

/* "calc#1  up  pid 4711  2 restarts  group g  drains  old configuration; killed by signal 9" */
static void print_process(const cJSON *p)
{
    const char *group = json_text(p, "group", "");
    const char *doing = json_text(p, "doing", "");
    const char *reason = json_line(p, "reason", "");
    const double restarts = json_number(p, "restarts");

    (void)printf("  process  %-14s %-9s", json_text(p, "name", ""), json_text(p, "state", ""));
    if (json_number(p, "pid") > 0) {
        (void)printf("  pid %.0f", json_number(p, "pid"));
    }
    if (restarts > 0) {
        (void)printf("  %.0f restart%s", restarts, restarts == 1 ? "" : "s");
    }
    (void)printf("%s%s%s%s%s%s%s\n", group[0] != 0 ? "  group " : "", group,
                 doing[0] != 0 ? "  " : "", doing,
                 cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(p, "stale"))
                     ? "  with an earlier configuration"
                     : "",
                 reason[0] != 0 ? "  the one before: " : "", reason);
}

static void print_card(struct cli *cli, const cJSON *a)
{
    const cJSON *card = cJSON_GetObjectItemCaseSensitive(a, "card");
    const cJSON *v;

    print_agent(cli, a);
    (void)printf("  %s\n", json_line(card, "description", ""));
    cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(card, "skills"))
    {
        (void)printf("  skill %-16s %s\n", json_text(v, "id", ""), json_line(v, "description", ""));
    }
    cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(a, "processes"))
    {
        print_process(v);
    }
    cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(a, "instances"))
    {
        char circuit[64];
        describe_circuit(v, circuit, sizeof circuit);
        (void)printf("  instance %s  %s  pid %.0f  %.0f/%.0f busy  seen %.0f ms ago  %s%s%s\n",
                     json_text(v, "instanceId", ""), json_text(v, "health", ""),
                     json_number(v, "pid"), json_number(v, "outstanding"),
                     json_number(v, "capacity"), json_number(v, "lastSeenMs"),
                     json_text(v, "endpoint", ""), circuit[0] != 0 ? "  " : "", circuit);
    }
}

static enum cli_exit one_agent(struct cli *cli, const char *id)
{
    cJSON *fields = cJSON_CreateObject();
    cJSON *answer = NULL;
    enum cli_exit code;

    (void)cJSON_AddStringToObject(fields, "agentId", id);
    code = cli_call(cli, "agents.get", fields, &answer);
    if (code == CLI_OK && cli->json) {
        cli_print_json(answer);
    } else if (code == CLI_OK) {
        print_card(cli, answer);
    }
    cJSON_Delete(answer);
    return code;
}

/* Whether an agent of agents.list is up: 1; 0 = not yet; -1 = the daemon does not start it again,
 * with the error printed. */
static int is_ready(const cJSON *list, const char *id)
{
    const cJSON *a;

    cJSON_ArrayForEach(a, list)
    {
        char why[AGENT_REASON_MAX];
        if (strcmp(json_text(cJSON_GetObjectItemCaseSensitive(a, "card"), "agentId", ""), id) !=
            0) {
            continue;
        }
        if (strcmp(json_text(a, "state", ""), "up") == 0) {
            return 1;
        }
        if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(a, "gaveUp"))) {
            agent_down_reason(a, why, sizeof why);
            cli_error("agent %s is down%s", id, why);
            return -1;
        }
    }
    return 0;
}

/* The agent of the list that the id may mean, as "; did you mean 'calc'?"; "" = there is none. */
static void guess_agent(const cJSON *list, const char *id, char *ret, size_t cap)
{
    const char *names[AGENTS_GUESSED + 1];
    const char *near;
    const cJSON *a;
    bool is_known = false;
    int n = 0;

    cJSON_ArrayForEach(a, list)
    {
        const char *known = json_text(cJSON_GetObjectItemCaseSensitive(a, "card"), "agentId", "");
        is_known = is_known || strcmp(known, id) == 0;
        if (n < AGENTS_GUESSED) {
            names[n++] = known;
        }
    }
    names[n] = NULL;
    near = is_known ? NULL : cli_did_you_mean(id, names);
    (void)snprintf(ret, cap, "%s%s%s", near != NULL ? "; did you mean '" : "",
                   near != NULL ? near : "", near != NULL ? "'?" : "");
}

/* Waits until the agent is up; the daemon need not know it yet. */
static enum cli_exit await_agent(struct cli *cli, const char *id)
{
    const msec until = deadline_or(WAIT_MS);

    for (;;) {
        char guess[96];
        cJSON *answer = NULL;
        const enum cli_exit code = cli_call(cli, "agents.list", NULL, &answer);
        const int ready = is_ready(cJSON_GetObjectItemCaseSensitive(answer, "agents"), id);
        guess_agent(cJSON_GetObjectItemCaseSensitive(answer, "agents"), id, guess, sizeof guess);
        cJSON_Delete(answer);
        if (code != CLI_OK || ready != 0) {
            return code == CLI_OK && ready < 0 ? CLI_INTERNAL : code;
        }
        if (clock_mono_ms() + POLL_MS + REQUEST_MS >= until) { /* no time for another request */
            cli_error_hint("see: baton agents", "agent %s is not up within the timeout%s", id,
                           guess);
            return CLI_TIMEOUT;
        }
        (void)poll(NULL, 0, POLL_MS);
    }
}

/* "integer", "integer or text"; the values of an enum; "any value" when the schema does not say. */
static void describe_type(const cJSON *schema, char *ret, size_t cap)
{
    const cJSON *choices = cJSON_GetObjectItemCaseSensitive(schema, "enum");
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(schema, "type");
    const cJSON *list = choices != NULL ? choices : type;
    const cJSON *v;

    ret[0] = 0;
    cJSON_ArrayForEach(v, list)
    {
        const size_t used = strlen(ret);
        char *text = cJSON_IsString(v) ? NULL : cJSON_PrintUnformatted(v);
        (void)snprintf(ret + used, cap - used, "%s%s", used > 0 ? " or " : "",
                       cJSON_IsString(v) ? v->valuestring
                       : text != NULL    ? text
                                         : "");
        cJSON_free(text);
    }
    if (ret[0] == 0) {
        (void)snprintf(ret, cap, "%s", cJSON_IsString(type) ? type->valuestring : "any value");
    }
}

static bool is_required(const cJSON *schema, const char *name)
{
    const cJSON *v;

    cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(schema, "required"))
    {
        if (cJSON_IsString(v) && strcmp(v->valuestring, name) == 0) {
            return true;
        }
    }
    return false;
}

static void print_skill(const cJSON *skill)
{
    const cJSON *schema = cJSON_GetObjectItemCaseSensitive(skill, "inputSchema");
    const cJSON *properties = cJSON_GetObjectItemCaseSensitive(schema, "properties");
    const cJSON *p;
    char line[LINE_SHOWN];

    cli_one_line(line, sizeof line, json_text(skill, "description", ""));
    (void)printf("%s  effects %s\n  %s\n", json_text(skill, "id", ""),
                 json_text(skill, "effects", "idempotent"), line);
    cJSON_ArrayForEach(p, properties)
    {
        const cJSON *fallback = cJSON_GetObjectItemCaseSensitive(p, "default");
        char *text = fallback != NULL ? cJSON_PrintUnformatted(fallback) : NULL;
        char type[TYPE_SHOWN];
        describe_type(p, type, sizeof type);
        cli_one_line(line, sizeof line, json_text(p, "description", ""));
        (void)printf("  %-16s %s%s%s%s%s%s\n", p->string, type,
                     is_required(schema, p->string) ? ", required" : "",
                     text != NULL ? ", default " : "", text != NULL ? text : "",
                     line[0] != 0 ? ": " : "", line);
        cJSON_free(text);
    }
    if (cJSON_GetArraySize(properties) == 0) {
        (void)printf("  its parameters are not described\n");
    }
}

/* Prints one skill of an agent. */
static enum cli_exit one_skill(struct cli *cli, const char *agent, const char *id)
{
    const cJSON *found = NULL;
    cJSON *answer = NULL;
    const enum cli_exit code = skill_find(cli, agent, id, &answer, &found);

    if (code == CLI_NOT_FOUND && answer == NULL) {
        cli_note("to take an agent out of service, and back: baton agents drain|enable "
                 "AGENT_ID\n");
    } else if (code == CLI_OK && cli->json) {
        cli_print_json(found);
    } else if (code == CLI_OK) {
        print_skill(found);
    }
    cJSON_Delete(answer);
    return code;
}

static enum cli_exit usage_of_try(void)
{
    cli_error("usage: baton agents try AGENT_ID [SKILL] --param NAME=VALUE ... --task TEXT");
    return CLI_USAGE;
}

static enum cli_exit list_agents(struct cli *cli, cJSON **ret)
{
    cJSON *fields = NULL;

    if (cli_flag(cli, "remembered")) {
        fields = cJSON_CreateObject();
        (void)cJSON_AddTrueToObject(fields, "remembered");
    }
    return cli_call(cli, "agents.list", fields, ret);
}

enum cli_exit verb_agents(struct cli *cli)
{
    cJSON *answer = NULL;
    enum cli_exit code;
    const cJSON *list;
    const cJSON *a;

    if (cli_flag(cli, "wait") && cli->argc != 1) {
        cli_error("usage: baton agents --wait AGENT_ID");
        return CLI_USAGE;
    }
    if (cli->argc > 0 && strcmp(cli->argv[0], "add") == 0) {
        return agents_add(cli);
    }
    if (cli->argc > 1 && strcmp(cli->argv[0], "try") == 0) {
        return agents_try(cli, cli->argv[1], cli->argc > 2 ? cli->argv[2] : NULL);
    }
    if (cli->argc > 2 && agents_is_order(cli->argv[0])) {
        cli_error("agents %s: expected one AGENT_ID, got '%s', too", cli->argv[0], cli->argv[2]);
        return CLI_USAGE;
    }
    if (cli_value(cli, "param") != NULL || cli_value(cli, "task") != NULL || cli->argc > 2) {
        return usage_of_try();
    }
    if (cli->argc == 2) {
        return agents_is_order(cli->argv[0]) ? agents_order(cli)
                                             : one_skill(cli, cli->argv[0], cli->argv[1]);
    }
    if (cli_value(cli, "process") != NULL || cli_flag(cli, "now") ||
        cli_value(cli, "version-of") != NULL) {
        cli_error("usage: baton agents start|stop|restart AGENT_ID [--process NAME] [--now]");
        return CLI_USAGE;
    }
    if (cli->argc == 1) {
        code = cli_flag(cli, "wait") ? await_agent(cli, cli->argv[0]) : CLI_OK;
        return code != CLI_OK ? code : one_agent(cli, cli->argv[0]);
    }
    code = list_agents(cli, &answer);
    list = cJSON_GetObjectItemCaseSensitive(answer, "agents");
    if (code == CLI_OK && cli->json) {
        cli_print_json(list);
    } else if (code == CLI_OK && cJSON_GetArraySize(list) == 0 && cli_flag(cli, "remembered")) {
        cli_note("no agent is remembered that is not there\n");
    } else if (code == CLI_OK && cJSON_GetArraySize(list) == 0) {
        cli_note_no_agents();
    } else if (code == CLI_OK) {
        cJSON_ArrayForEach(a, list)
        {
            print_agent(cli, a);
        }
    }
    cJSON_Delete(answer);
    return code;
}

/* What has another name for people than in the answer. */
static const struct {
    const char *name, *member;
} short_names[] = {{"address", "control"}, {"state", "stateDir"}};

static void print_value(const cJSON *v)
{
    if (cJSON_IsString(v)) {
        (void)puts(v->valuestring);
    } else if (cJSON_IsNumber(v)) {
        (void)printf("%.0f\n", v->valuedouble);
    } else {
        cli_print_json(v);
    }
}

/* The bare value of one field, for scripts. */
static enum cli_exit print_field(const cJSON *info, const char *name)
{
    const char *names[FIELDS_MAX + 1];
    const char *member = name;
    const char *near;
    const cJSON *v;
    int n = 0;

    for (size_t i = 0; i < sizeof short_names / sizeof short_names[0]; i++) {
        member = strcmp(short_names[i].name, name) == 0 ? short_names[i].member : member;
        names[n++] = short_names[i].name;
    }
    v = cJSON_GetObjectItemCaseSensitive(info, member);
    if (v != NULL) {
        print_value(v);
        return CLI_OK;
    }
    cJSON_ArrayForEach(v, info)
    {
        if (n < FIELDS_MAX) {
            names[n++] = v->string;
        }
    }
    names[n] = NULL;
    near = cli_did_you_mean(name, names);
    cli_error_hint(
        near != NULL ? "" : "see: baton info --json", "info: there is no field '%s'%s%s%s", name,
        near != NULL ? "; did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "");
    return CLI_USAGE;
}

/* Adds the paths of the files that belong to the state directory. */
static void add_paths(cJSON *info)
{
    static const struct {
        const char *name, *file;
    } files[] = {{"token", "token"}, {"endpoints", "endpoints.json"}, {"log", "batond.log"}};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", json_text(info, "stateDir", ""), files[i].file);
        (void)cJSON_AddStringToObject(info, files[i].name, path);
    }
}

/* Adds the address of baton-gateway when it runs in this state directory. */
static void add_http(cJSON *info)
{
    char url[512];

    if (gateway_url(json_text(info, "stateDir", ""), url, sizeof url)) {
        (void)cJSON_AddStringToObject(info, "http", url);
    }
}

static void print_info(const cJSON *info)
{
    char when[CLI_TIME_MAX];

    (void)printf("version     %s (nng %s, SQLite %s)\n", json_text(info, "version", ""),
                 json_text(info, "nng", ""), json_text(info, "sqlite", ""));
    (void)printf("pid         %.0f, up since %s\n", json_number(info, "pid"),
                 cli_time(json_text(info, "startedAt", ""), when));
    (void)printf("control     %s\nevents      %s\nstate       %s\ntoken       %s\nlog         %s\n",
                 json_text(info, "control", ""), json_text(info, "events", ""),
                 json_text(info, "stateDir", ""), json_text(info, "token", ""),
                 json_text(info, "log", ""));
    if (json_text(info, "http", "")[0] != 0) {
        (void)printf("http        %s\n", json_text(info, "http", ""));
    }
    (void)printf("durability  %s: %s\n", json_text(info, "durability", ""),
                 json_text(info, "durabilityMeans", ""));
    if (json_text(info, "storage", "")[0] != 0) {
        (void)printf("storage     %s\n", json_text(info, "storage", ""));
    }
    (void)printf("plans open  %.0f\nlast seq    %.0f\n", json_number(info, "plansOpen"),
                 json_number(info, "lastSeq"));
}

enum cli_exit verb_info(struct cli *cli)
{
    const char *field = cli_value(cli, "field");
    cJSON *answer = NULL;
    enum cli_exit code = cli_call(cli, "supervisor.info", NULL, &answer);

    if (code == CLI_OK) {
        add_paths(answer);
        add_http(answer);
    }
    if (code == CLI_OK && field != NULL) {
        code = print_field(answer, field);
    } else if (code == CLI_OK && cli->json) {
        cli_print_json(answer);
    } else if (code == CLI_OK) {
        print_info(answer);
    }
    cJSON_Delete(answer);
    return code;
}
