/* What a word of a command line can be: choices, and what the daemon or the disk has. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <cjson/cJSON.h>

#include "baton/vocabulary.h"
#include "supervisor/cli/common/call.h"
#include "supervisor/cli/common/ids.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/recipes.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/usage/usage.h"

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
                 {"FILE", offer_files},        {"DIR", offer_dirs}};
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
