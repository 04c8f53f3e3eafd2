#include "supervisor/cli/verbs/submit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/limits.h"
#include "protocol/wire/doc.h"
#include "supervisor/cli/common/agents.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/form.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/problems.h"
#include "supervisor/cli/common/recipes.h"
#include "supervisor/cli/verbs/document.h"

static const char *const on_invalid[] = {"fail", "synthesize", "interrupt", NULL};

/* A value for policy.synthesis: a word, agent:ID, or an object. Prints the error and returns NULL.
 */
static cJSON *read_synthesis(const char *text)
{
    cJSON *tree;

    if (strncmp(text, "agent:", 6) == 0 && text[6] != 0) {
        return cli_fields("agentId", text + 6);
    }
    if (strcmp(text, "concat") == 0 || strcmp(text, "llm") == 0 || strcmp(text, "agent") == 0) {
        return cJSON_CreateString(text);
    }
    tree = cJSON_ParseWithOpts(text, NULL, true);
    if (!cJSON_IsObject(tree)) {
        cli_error("--synthesis: expected concat, llm, agent, agent:AGENT_ID or a JSON object, got "
                  "'%.200s'",
                  text);
        cJSON_Delete(tree);
        return NULL;
    }
    return tree;
}

/* Adds the options that are parts of the policy. Prints the error and returns false. */
static bool add_policy(const struct cli *cli, cJSON *policy)
{
    const char *synthesis = cli_value(cli, "synthesis");
    const char *invalid = cli_value(cli, "on-invalid-plan");
    cJSON *tree = NULL;
    int i = 0;

    if (synthesis != NULL) {
        tree = read_synthesis(synthesis);
        if (tree == NULL) {
            return false;
        }
        cJSON_DeleteItemFromObjectCaseSensitive(policy, "synthesis");
        (void)cJSON_AddItemToObject(policy, "synthesis", tree);
    }
    if (invalid != NULL) {
        while (on_invalid[i] != NULL && strcmp(on_invalid[i], invalid) != 0) {
            i++;
        }
        if (on_invalid[i] == NULL) {
            cli_error("--on-invalid-plan: expected fail, synthesize or interrupt, got '%s'",
                      invalid);
            return false;
        }
        cJSON_DeleteItemFromObjectCaseSensitive(policy, "onInvalidPlan");
        (void)cJSON_AddStringToObject(policy, "onInvalidPlan", invalid);
    }
    return true;
}

/* *ret = the policy as JSON, to be freed with cJSON_free; NULL without one. Prints the error and
 * returns false. */
static bool read_policy(const struct cli *cli, char **ret)
{
    const char *given = cli_value(cli, "policy");
    struct bt_error err;
    cJSON *policy;
    bool ok;

    *ret = NULL;
    if (given == NULL && cli_value(cli, "synthesis") == NULL &&
        cli_value(cli, "on-invalid-plan") == NULL && !cli_flag(cli, "wait-for-agents")) {
        return true;
    }
    policy = given != NULL ? cJSON_ParseWithOpts(given, NULL, true) : cJSON_CreateObject();
    if (!cJSON_IsObject(policy)) {
        cli_error("--policy: expected a JSON object, got '%.200s'", given != NULL ? given : "");
        cJSON_Delete(policy);
        return false;
    }
    if (cli_flag(cli, "wait-for-agents")) {
        cJSON_DeleteItemFromObjectCaseSensitive(policy, "waitForAgents");
        (void)cJSON_AddTrueToObject(policy, "waitForAgents");
    }
    ok = add_policy(cli, policy);
    if (ok) {
        *ret = cjson_print(policy, false, &err);
        ok = *ret != NULL;
        if (!ok) {
            cli_error("--policy: %s", err.msg);
        }
    }
    cJSON_Delete(policy);
    return ok;
}

/* The constraints as a JSON list, to be freed with cJSON_free; NULL without any. */
static char *read_constraints(const struct cli *cli)
{
    cJSON *list = cJSON_CreateArray();
    char *text = NULL;
    const char *value;

    for (int i = 0; (value = cli_nth_value(cli, "constraint", i)) != NULL; i++) {
        (void)cJSON_AddItemToArray(list, cJSON_CreateString(value));
    }
    if (cJSON_GetArraySize(list) > 0) {
        text = cJSON_PrintUnformatted(list);
    }
    cJSON_Delete(list);
    return text;
}

void cli_drop_own_remarks(cJSON *problems)
{
    cJSON *next;

    for (cJSON *p = problems != NULL ? problems->child : NULL; p != NULL; p = next) {
        next = p->next;
        if (strcmp(json_text(p, "category", ""), "style") == 0 &&
            strcmp(json_text(p, "field", ""), "task") == 0) {
            cJSON_Delete(cJSON_DetachItemViaPointer(problems, p));
        }
    }
}

void cli_print_routes(const struct cli *cli, const cJSON *routes)
{
    const bool scores = cli_flag(cli, "verbose");
    const cJSON *r;

    cJSON_ArrayForEach(r, routes)
    {
        cli_note("  %s → %s%s%s%s%s\n", json_text(r, "stepId", ""), json_text(r, "agentId", ""),
                 json_text(r, "skill", NULL) != NULL ? "." : "", json_text(r, "skill", ""),
                 scores ? ": " : "", scores ? json_text(r, "why", "") : "");
    }
}

static void print_warnings(const cJSON *problems)
{
    const cJSON *p;

    cJSON_ArrayForEach(p, problems)
    {
        cli_print_problem(p, "warning");
    }
}

/* Lists all agents that the plan needs, when one is missing. */
static void print_needed_agents(const char *plan_json)
{
    cJSON *plan = json_tree(plan_json);
    cJSON *agents = recipe_agents(plan);
    char *names = recipe_agents_text(agents);

    if (names != NULL) {
        cli_note("  it needs the agents %s; baton agents lists the registered ones\n", names);
    }
    free(names);
    cJSON_Delete(agents);
    cJSON_Delete(plan);
}

enum cli_exit cli_submit(struct cli *cli, const struct submitting *what,
                         char ret_plan_id[BT_ID_LEN + 1])
{
    struct bt_submit s = {.goal = what->goal,
                          .plan_json = what->plan,
                          .dry_run = what->dry,
                          .lenient = cli_flag(cli, "lenient"),
                          .session_id = cli_value(cli, "session"),
                          .planner = cli_value(cli, "planner"),
                          .client_key = cli_value(cli, "key")};
    char *policy = NULL;
    char *constraints = NULL;
    char *json = NULL;
    struct bt_error err;
    enum cli_exit code;

    if (!read_policy(cli, &policy)) {
        return CLI_USAGE;
    }
    constraints = read_constraints(cli);
    s.policy_json = policy;
    s.constraints_json = constraints;
    code = cli_connect(cli);
    if (code == CLI_OK && bt_submit(cli->client, &s, ret_plan_id, &json, &err) != BT_OK) {
        code = cli_rejected(cli, &err, json);
        if (what->plan != NULL && cli_has_problem(json, "missing_agent")) {
            print_needed_agents(what->plan);
        }
        if (cli_has_problem(json, "unroutable")) {
            cli_note_if_no_agents(cli->client);
        }
    } else if (code == CLI_OK) {
        cJSON *answer = json_tree(json);
        if (!what->quiet) {
            (void)fprintf(stderr, "plan %s%s\n", ret_plan_id,
                          cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "continued"))
                              ? " goes on: it is open in the session"
                              : "");
            cli_print_routes(cli, cJSON_GetObjectItemCaseSensitive(answer, "routes"));
        }
        if (what->goal != NULL) {
            cli_drop_own_remarks(cJSON_GetObjectItemCaseSensitive(answer, "problems"));
        }
        /* warnings are printed even when quiet */
        print_warnings(cJSON_GetObjectItemCaseSensitive(answer, "problems"));
        if (what->ret_issues != NULL) {
            *what->ret_issues = cJSON_DetachItemFromObjectCaseSensitive(answer, "problems");
        }
        cJSON_Delete(answer);
    }
    bt_free(json);
    cJSON_free(policy);
    cJSON_free(constraints);
    return code;
}

/* ---- --plans: a plan in each line ---- */

/* Lines that wait to be submitted. */
struct lines {
    struct cli *cli;
    struct bt_submit plans[LIMIT_PLANS_AT_ONCE];
    struct bt_submitted results[LIMIT_PLANS_AT_ONCE];
    char *texts[LIMIT_PLANS_AT_ONCE];
    char *keys[LIMIT_PLANS_AT_ONCE];
    uint64_t numbers[LIMIT_PLANS_AT_ONCE]; /* from 1 on */
    size_t n;
    int fd;             /* where lines come from */
    int error;          /* of reading it: an errno, or 0 */
    enum cli_exit code; /* of the first error */
    bool silent;        /* nobody answers: what comes after is not sent */
};

static void print_error(const struct lines *l, const char *place, uint64_t number,
                        const struct bt_error *err, const char *before)
{
    cJSON *line;
    cJSON *error;
    char text[sizeof err->msg + 80];

    (void)snprintf(text, sizeof text, "%s%s", before, err->msg);
    if (!l->cli->json) {
        cli_error("%s %llu%s: %s", place[0] == 'f' ? "lines" : "line", (unsigned long long)number,
                  place[0] == 'f' ? " and after" : "", text);
        return;
    }
    line = cJSON_CreateObject();
    error = cli_fields("code", bt_code_name(err->code));
    (void)cJSON_AddNumberToObject(line, place, (double)number);
    (void)cJSON_AddStringToObject(error, "message", text);
    (void)cJSON_AddItemToObject(line, "error", error);
    cli_list_item();
    cli_print_json(line);
    cJSON_Delete(line);
}

/* Whether it is not known what became of the plan. */
static bool is_open(const struct bt_submitted *r)
{
    return r->json == NULL && (r->err.code == BT_UNAVAILABLE || r->err.code == BT_TIMEOUT);
}

static void print_line(struct lines *l, size_t i)
{
    const struct bt_submitted *r = &l->results[i];
    cJSON *answer = r->err.code == BT_OK && r->json != NULL ? json_tree(r->json) : NULL;
    cJSON *remarks = cJSON_DetachItemFromObjectCaseSensitive(answer, "problems");
    cJSON *line;

    if (r->err.code != BT_OK && l->code == CLI_OK) {
        l->code = cli_exit_of(r->err.code);
    }
    if (r->err.code != BT_OK) {
        print_error(l, "line", l->numbers[i], &r->err,
                    is_open(r) ? "it may have been taken: " : "");
    } else if (!l->cli->json) {
        (void)printf("%s\n", r->plan_id);
        if (cJSON_GetArraySize(remarks) > 0) {
            cli_note("line %llu: plan %s\n", (unsigned long long)l->numbers[i], r->plan_id);
            print_warnings(remarks);
        }
    } else {
        line = cJSON_CreateObject();
        (void)cJSON_AddNumberToObject(line, "line", (double)l->numbers[i]);
        (void)cJSON_AddStringToObject(line, "planId", r->plan_id);
        if (cJSON_GetArraySize(remarks) > 0) {
            (void)cJSON_AddItemToObject(line, "problems", remarks);
            remarks = NULL;
        }
        cli_list_item();
        cli_print_json(line);
        cJSON_Delete(line);
    }
    cJSON_Delete(remarks);
    cJSON_Delete(answer);
}

static void submit_waiting(struct lines *l)
{
    struct bt_error err;

    if (l->n == 0) {
        return;
    }
    (void)!bt_submit_many(l->cli->client, l->plans, l->n, l->results, &err); /* see results */
    for (size_t i = 0; i < l->n; i++) {
        const enum bt_code code = l->results[i].err.code;
        l->silent = code == BT_UNAVAILABLE || code == BT_TIMEOUT; /* the last one */
        print_line(l, i);
        bt_free(l->results[i].json);
        free(l->texts[i]);
        free(l->keys[i]);
    }
    (void)fflush(stdout);
    l->n = 0;
}

/* Reads more of the lines. What waits is submitted first when there is nothing to read yet. */
static ssize_t read_more(void *ctx, char *buf, size_t n)
{
    struct lines *l = ctx;
    struct pollfd more = {.fd = l->fd, .events = POLLIN};
    ssize_t got;

    if (poll(&more, 1, 0) == 0) {
        submit_waiting(l);
    }
    do {
        got = read(l->fd, buf, n);
    } while (got < 0 && errno == EINTR);
    l->error = got < 0 ? errno : 0;
    return got;
}

static void add_line(struct lines *l, const char *text, uint64_t number, const char *policy)
{
    const char *key = cli_value(l->cli, "key");
    char *own = NULL;
    char *copy = strdup(text);

    if (copy == NULL ||
        (key != NULL && asprintf(&own, "%s-%llu", key, (unsigned long long)number) < 0)) {
        cli_error("line %llu: out of memory", (unsigned long long)number);
        l->code = CLI_INTERNAL;
        free(copy);
        return;
    }
    l->plans[l->n] = (struct bt_submit){.plan_json = l->texts[l->n] = copy,
                                        .client_key = l->keys[l->n] = own,
                                        .policy_json = policy,
                                        .lenient = cli_flag(l->cli, "lenient")};
    l->numbers[l->n++] = number;
    if (l->n == LIMIT_PLANS_AT_ONCE) {
        submit_waiting(l);
    }
}

/* Lines that nobody was there for. Of a pipe more may come. */
static void print_unsent(const struct lines *l, FILE *f, uint64_t number)
{
    struct bt_error err;
    struct stat st;

    if (feof(f) || (fstat(l->fd, &st) == 0 && S_ISREG(st.st_mode) && fgetc(f) == EOF)) {
        return;
    }
    (void)err_set(&err, BT_UNAVAILABLE, "not sent: nobody answers");
    print_error(l, "fromLine", number, &err, "");
}

static enum cli_exit submit_lines(struct cli *cli, const char *path, int fd, const char *policy)
{
    struct lines *l = calloc(1, sizeof *l);
    FILE *f = l != NULL ? fopencookie(l, "r", (cookie_io_functions_t){.read = read_more}) : NULL;
    char *text = NULL;
    uint64_t number;
    size_t cap = 0;
    ssize_t len;
    enum cli_exit code;

    if (f == NULL) {
        cli_error("out of memory for plans");
        free(l);
        return CLI_INTERNAL;
    }
    l->cli = cli;
    l->fd = fd;
    if (cli->json) {
        cli_list_begin();
    }
    for (number = 1; !l->silent && (len = getline(&text, &cap, f)) >= 0; number++) {
        if (strlen(text) < (size_t)len) {
            cli_error("line %llu: a zero byte, which JSON has not", (unsigned long long)number);
            l->code = l->code == CLI_OK ? CLI_USAGE : l->code;
        } else if (strspn(text, " \t\r\n") < (size_t)len) {
            add_line(l, text, number, policy);
        }
    }
    submit_waiting(l);
    if (l->silent) {
        print_unsent(l, f, number);
    }
    if (l->error != 0) {
        cli_error("%s: it cannot be read to its end: %s", path, strerror(l->error));
        l->code = l->code == CLI_OK ? CLI_INTERNAL : l->code;
    }
    if (cli->json) {
        cli_list_end();
    }
    code = l->code;
    (void)fclose(f);
    free(text);
    free(l);
    return code;
}

enum cli_exit cli_submit_lines(struct cli *cli, const char *path)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    const int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    char *policy = NULL;
    enum cli_exit code;

    if (fd < 0) {
        cli_error("%s: %s", path, strerror(errno));
        return CLI_USAGE;
    }
    code = read_policy(cli, &policy) ? cli_connect(cli) : CLI_USAGE;
    if (code == CLI_OK) {
        code = submit_lines(cli, path, fd, policy);
    }
    if (!is_stdin) {
        (void)close(fd);
    }
    cJSON_free(policy);
    return code;
}

/* The agent of each step, for a plan of an agent, which has no routes. */
static void print_step_agents(const cJSON *view)
{
    const cJSON *s;

    cJSON_ArrayForEach(s, cJSON_GetObjectItemCaseSensitive(view, "steps"))
    {
        cli_note("  %s → %s%s%s: %s\n", json_text(s, "stepId", ""), json_text(s, "agentId", ""),
                 json_text(s, "skill", "")[0] != 0 ? "." : "", json_text(s, "skill", ""),
                 json_text(s, "task", ""));
    }
}

void cli_make_submittable(cJSON *document)
{
    cJSON_DeleteItemFromObjectCaseSensitive(document, "dryRun");
    cJSON_DeleteItemFromObjectCaseSensitive(document, "planner");
}

/* With --json: the form of a lint, with the plan's description. */
static void print_shape(const cJSON *view, cJSON *document, const cJSON *issues, bool valid)
{
    cJSON *shape = cJSON_CreateObject();
    cJSON *about = cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(view, "about"), true);

    (void)cJSON_AddBoolToObject(shape, "valid", valid);
    (void)cJSON_AddStringToObject(shape, "planId", json_text(view, "planId", ""));
    (void)cJSON_AddStringToObject(shape, "status", json_text(view, "status", ""));
    if (json_text(view, "failureReason", NULL) != NULL) {
        (void)cJSON_AddStringToObject(shape, "failureReason", json_text(view, "failureReason", ""));
    }
    if (about != NULL) {
        (void)cJSON_AddItemToObject(shape, "about", about);
    }
    if (document != NULL) {
        (void)cJSON_AddItemToObject(shape, "plan", document);
    }
    (void)cJSON_AddItemToObject(
        shape, "issues", issues != NULL ? cJSON_Duplicate(issues, true) : cJSON_CreateArray());
    cli_print_json(shape);
    cJSON_Delete(shape);
}

enum cli_exit cli_show_document(struct cli *cli, const char *plan_id, const cJSON *issues)
{
    cJSON *fields = cli_fields("planId", plan_id);
    cJSON *view = NULL;
    cJSON *document;
    enum cli_exit code;
    bool valid;

    (void)cJSON_AddTrueToObject(fields, "document");
    code = cli_call(cli, "plan.get", fields, &view);
    if (code != CLI_OK) {
        return code;
    }
    code = cli_exit_of_plan(json_text(view, "status", ""), json_text(view, "outcome", ""));
    document = cJSON_DetachItemFromObjectCaseSensitive(view, "document");
    cli_make_submittable(document);
    valid = code == CLI_OK && document != NULL;
    if (cli->json) {
        print_shape(view, document, issues, valid);
        document = NULL;
    } else if (valid) {
        print_step_agents(view);
        code = cli_print_document(cli, document);
    }
    if (code == CLI_OK && !valid) {
        cli_error("plan %s has no document", plan_id);
        code = CLI_INTERNAL;
    } else if (!valid) {
        cli_error("%s", json_text(view, "failureReason", "no plan was made"));
    }
    cJSON_Delete(document);
    cJSON_Delete(view);
    return code;
}
