/* What a word of a command line can be: choices, and what the daemon or the disk has. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <cjson/cJSON.h>

#include "baton/vocabulary.h"
#include "protocol/client/credential.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/copy.h"
#include "supervisor/cli/common/ids.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/plan_file.h"
#include "supervisor/cli/common/recipes.h"
#include "supervisor/cli/common/remote.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/usage/usage.h"
#include "supervisor/cli/view/event_line.h"

enum { LIST_MAX = 100, MEANING_MAX = 120, WORD_MAX = 256, LINE_MAX_BYTES = 512 };

static const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

void usage_offer(const struct usage_asking *a, const char *word, const char *meaning)
{
    char text[MEANING_MAX];

    if (strncasecmp(word, a->prefix, strlen(a->prefix)) != 0 || strpbrk(word, "\t\n") != NULL) {
        return;
    }
    cli_cut_line(text, sizeof text, meaning);
    (void)printf("%s%s\t%s\n", a->lead, word, text);
}

/* The answer to a request; NULL = there is none. */
static cJSON *ask(const struct usage_asking *a, const char *type, cJSON *fields)
{
    cJSON *answer = NULL;

    (void)cli_call(a->cli, type, fields, &answer);
    return answer;
}

static void offer_plans(const struct usage_asking *a)
{
    cJSON *fields = cJSON_CreateObject();
    const bool is_id =
        a->prefix[0] != 0 && strspn(a->prefix, "0123456789abcdefABCDEF-") == strlen(a->prefix);
    cJSON *answer;
    const cJSON *p;

    (void)cJSON_AddNumberToObject(fields, "limit", LIST_MAX);
    if (is_id) {
        (void)cJSON_AddStringToObject(fields, "idPrefix", a->prefix);
    }
    answer = ask(a, "plan.list", fields);
    if (cJSON_GetArraySize(get(answer, "plans")) > 0) {
        usage_offer(a, "last", "the newest plan");
    }
    cJSON_ArrayForEach(p, get(answer, "plans"))
    {
        char meaning[MEANING_MAX];
        (void)snprintf(meaning, sizeof meaning, "%s  %s", json_text(p, "status", ""),
                       json_text(p, "query", ""));
        usage_offer(a, json_text(p, "planId", ""), meaning);
    }
    cJSON_Delete(answer);
}

/* Each element of the answer's list by its member `id`, which may stand in its card. Takes the
 * answer. */
static void offer_each(const struct usage_asking *a, cJSON *answer, const cJSON *list,
                       const char *id, const char *meaning)
{
    const cJSON *v;

    cJSON_ArrayForEach(v, list)
    {
        const cJSON *named = cJSON_HasObjectItem(v, id) ? v : get(v, "card");
        usage_offer(a, json_text(named, id, ""), json_text(v, meaning, ""));
    }
    cJSON_Delete(answer);
}

static void offer_reviews(const struct usage_asking *a)
{
    cJSON *answer = ask(a, "review.list", NULL);

    offer_each(a, answer, get(answer, "reviews"), "reviewId", "prompt");
}

static void offer_sessions(const struct usage_asking *a)
{
    cJSON *answer = ask(a, "session.list", NULL);

    offer_each(a, answer, get(answer, "sessions"), "sessionId", "updatedAt");
}

static void offer_schedules(const struct usage_asking *a)
{
    cJSON *answer = ask(a, "schedule.list", NULL);

    offer_each(a, answer, get(answer, "schedules"), "name", "status");
}

/* The zones of tzdata, which lists them with a country, a place and a name. */
static void offer_zones(const struct usage_asking *a)
{
    FILE *f = fopen("/usr/share/zoneinfo/zone1970.tab", "re");
    char line[LINE_MAX_BYTES];
    char name[WORD_MAX];

    usage_offer(a, "UTC", "");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        const char *at = strchr(line, '\t');
        at = line[0] != '#' && at != NULL ? strchr(at + 1, '\t') : NULL;
        if (at != NULL) {
            (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 1, "\t\n"), at + 1);
            usage_offer(a, name, "");
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
}

static void offer_agents(const struct usage_asking *a)
{
    cJSON *answer = ask(a, "agents.list", NULL);

    offer_each(a, answer, get(answer, "agents"), "agentId", "state");
}

/* Of the agent before it: AGENT_ID SKILL, or try AGENT_ID SKILL. */
static void offer_skills(const struct usage_asking *a)
{
    cJSON *answer;

    if (a->n_args > 0) {
        answer = ask(a, "agents.get", cli_fields("agentId", a->args[a->n_args - 1]));
        offer_each(a, answer, get(get(answer, "card"), "skills"), "id", "description");
    }
}

/* Of the plan that is the first argument. */
static void offer_steps(const struct usage_asking *a)
{
    char plan[CLI_ID_MAX];
    cJSON *answer;

    if (a->n_args > 0 && cli_plan_id(a->cli, a->args[0], plan) == CLI_OK) {
        answer = ask(a, "plan.get", cli_fields("planId", plan));
        offer_each(a, answer, get(answer, "steps"), "stepId", "task");
    }
}

/* The files of the folders of recipes, without their endings: each is a name. */
static void offer_recipes(const struct usage_asking *a)
{
    char dirs[RECIPE_DIRS_MAX][RECIPE_PATH_MAX];
    const int n_dirs = recipes_dirs(dirs);

    for (int i = 0; i < n_dirs; i++) {
        int n = 0;
        char **files = recipes_list(dirs[i], &n);
        for (int k = 0; files != NULL && k < n; k++) {
            const char *slash = strrchr(files[k], '/');
            char name[WORD_MAX];
            (void)snprintf(name, sizeof name, "%s", slash != NULL ? slash + 1 : files[k]);
            name[strcspn(name, ".")] = 0;
            usage_offer(a, name, files[k]);
        }
        recipes_free_list(files, n);
    }
    (void)puts(":files");
}

/* The signals that a step of a plan document waits for. */
static void offer_signals_in(const struct usage_asking *a, const cJSON *node)
{
    const cJSON *child;

    cJSON_ArrayForEach(child, node)
    {
        const char *name = json_text(child, "signal", "");
        if (child->string != NULL && strcmp(child->string, "wait") == 0 && name[0] != 0) {
            usage_offer(a, name, "");
        }
        offer_signals_in(a, child);
    }
}

/* The first argument is a plan: the signals that its steps wait for now; when none does, all that
 * its document names. */
static void offer_signals(const struct usage_asking *a)
{
    char plan[CLI_ID_MAX];
    cJSON *fields;
    cJSON *answer;
    const cJSON *step;
    bool waits = false;

    if (a->n_args == 0 || cli_plan_id(a->cli, a->args[0], plan) != CLI_OK) {
        return;
    }
    fields = cli_fields("planId", plan);
    (void)cJSON_AddTrueToObject(fields, "document");
    answer = ask(a, "plan.get", fields);
    cJSON_ArrayForEach(step, get(answer, "steps"))
    {
        const char *name = json_text(get(step, "waiting"), "signal", "");
        if (name[0] != 0) {
            usage_offer(a, name, json_text(step, "stepId", ""));
            waits = true;
        }
    }
    if (!waits) {
        offer_signals_in(a, get(get(answer, "document"), "steps"));
    }
    cJSON_Delete(answer);
}

static void offer_contexts(const struct usage_asking *a)
{
    struct cJSON *tree = NULL;
    struct bt_error err;
    const cJSON *c;

    if (contexts_read(&tree, &err) != BT_OK) {
        return;
    }
    usage_offer(a, CLI_CONTEXT_LOCAL, "the daemon of this host");
    cJSON_ArrayForEach(c, get(tree, "contexts"))
    {
        usage_offer(a, c->string, json_text(c, "connect", ""));
    }
    cJSON_Delete(tree);
}

static void offer_credential(void *asking, const char *name, const struct credential *c,
                             const struct bt_error *why)
{
    usage_offer(asking, name, c != NULL ? role_name(c->who.role) : why->msg);
}

static void offer_credentials(const struct usage_asking *a)
{
    struct usage_asking asking = *a;
    const char *state = cli_state_dir(a->cli);
    struct bt_error err;

    if (state != NULL) {
        (void)(credential_each(state, offer_credential, &asking, &err) == BT_OK);
    }
}

static void offer_examples(const struct usage_asking *a)
{
    struct copy_list names = {.n = 0};
    char root[RECIPE_PATH_MAX];

    if (recipes_examples_dir(root) && recipes_examples(root, &names)) {
        for (size_t i = 0; i < names.n; i++) {
            char path[RECIPE_PATH_MAX + WORD_MAX];
            (void)snprintf(path, sizeof path, "%s/%s/plan.yaml", root, names.at[i].path);
            cJSON *plan = cli_read_tree(path);
            usage_offer(a, names.at[i].path, json_text(plan, "description", ""));
            cJSON_Delete(plan);
        }
    }
    copy_list_free(&names);
}

static void offer_event_types(const struct usage_asking *a)
{
    for (const char *const *type = event_types(); *type != NULL; type++) {
        usage_offer(a, *type, "");
    }
}

static void offer_verbs(const struct usage_asking *a)
{
    const struct cli_verb *v = NULL;

    while ((v = usage_next(v)) != NULL) {
        usage_offer(a, v->name, v->brief);
    }
}

static void offer_vocabularies(const struct usage_asking *a)
{
    for (const char *const *name = bt_vocabulary_names(); *name != NULL; name++) {
        usage_offer(a, *name, "");
    }
}

static void offer_files(const struct usage_asking *a)
{
    (void)(a->lead[0] == 0 && puts(":files"));
}

static void offer_dirs(const struct usage_asking *a)
{
    (void)(a->lead[0] == 0 && puts(":dirs"));
}

/* Each choice of a|b, and of a word that stands for itself. */
static void offer_choices(const struct usage_asking *a, struct str choices)
{
    while (choices.len > 0) {
        const char *bar = memchr(choices.ptr, '|', choices.len);
        const size_t n = bar != NULL ? (size_t)(bar - choices.ptr) : choices.len;
        char word[WORD_MAX];
        (void)snprintf(word, sizeof word, "%.*s", (int)n, choices.ptr);
        usage_offer(a, word, "");
        choices.ptr += n + (bar != NULL);
        choices.len -= n + (bar != NULL);
    }
}

static void offer_text(const struct usage_asking *a, const char *choices)
{
    offer_choices(a, str_from(choices));
}

static void offer_planners(const struct usage_asking *a)
{
    offer_text(a, "keyword|llm|agent");
}

/* The files STATE/webhooks/NAME.json. */
static void offer_webhooks(const struct usage_asking *a)
{
    const char *state = cli_state_dir(a->cli);
    const struct dirent *entry;
    char path[PATH_MAX];
    DIR *dir;

    (void)snprintf(path, sizeof path, "%s/webhooks", state == NULL ? "" : state);
    dir = opendir(path);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const size_t n = strlen(entry->d_name);
        if (n > 5 && strcmp(entry->d_name + n - 5, ".json") == 0) {
            (void)snprintf(path, sizeof path, "%.*s", (int)(n - 5), entry->d_name);
            usage_offer(a, path, "");
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

static void offer_statuses(const struct usage_asking *a)
{
    offer_text(a, "pending|running|waiting|completed|failed|cancelled|planned");
}

void usage_offer_kind(struct str word, void *asking)
{
    static const struct {
        const char *kind;
        void (*offer)(const struct usage_asking *a);
    } kinds[] = {{"PLAN_ID", offer_plans},     {"PLAN", offer_plans},
                 {"REVIEW_ID", offer_reviews}, {"SESSION_ID", offer_sessions},
                 {"SESSION", offer_sessions},  {"SCHEDULE", offer_schedules},
                 {"ZONE", offer_zones},        {"AGENT_ID", offer_agents},
                 {"SKILL", offer_skills},      {"STEP_ID", offer_steps},
                 {"STEP", offer_steps},        {"RECIPE", offer_recipes},
                 {"VERB", offer_verbs},        {"VOCABULARY", offer_vocabularies},
                 {"PLANNER", offer_planners},  {"STATUS", offer_statuses},
                 {"FILE", offer_files},        {"DIR", offer_dirs},
                 {"SIGNAL", offer_signals},    {"CONTEXT", offer_contexts},
                 {"EXAMPLE", offer_examples},  {"CREDENTIAL", offer_credentials},
                 {"WEBHOOK", offer_webhooks},  {"TYPE[,TYPE]", offer_event_types}};
    const struct usage_asking *a = asking;
    const char *at = word.ptr;
    const char *end = word.ptr + word.len;

    if (word.len > 0 && word.ptr[0] >= 'a' && word.ptr[0] <= 'z') {
        offer_choices(a, word);
        return;
    }
    while (at < end) {
        const char *bar = memchr(at, '|', (size_t)(end - at));
        const size_t n = (size_t)((bar != NULL ? bar : end) - at);
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
            if (strlen(kinds[i].kind) == n && memcmp(kinds[i].kind, at, n) == 0) {
                kinds[i].offer(a);
            }
        }
        at += n + 1;
    }
}
