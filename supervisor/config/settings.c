#include "supervisor/config/settings.h"

#include <math.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/limits.h"
#include "supervisor/config/yaml_text.h"

#define NAMES(name, count, ...)                                                                    \
    const char *const name[] = {__VA_ARGS__, NULL};                                                \
    _Static_assert(sizeof name / sizeof name[0] == (count) + 1, "a name for each value")

static NAMES(durability_names, DURABILITY_REPLICATED + 1, [DURABILITY_POWER] = "power",
             [DURABILITY_PROCESS] = "process", [DURABILITY_REPLICATED] = "replicated");
static NAMES(auth_names,
             CONFIG_AUTH_COUNT, [CONFIG_AUTH_TOKEN] = "token", [CONFIG_AUTH_REQUIRED] = "required");
static NAMES(backoff_names, BACKOFF_COUNT, [BACKOFF_LINEAR] = "linear",
             [BACKOFF_EXPONENTIAL] = "exponential", [BACKOFF_FIXED] = "fixed");
static NAMES(on_invalid_names, ON_INVALID_COUNT, [ON_INVALID_FAIL] = "fail",
             [ON_INVALID_SYNTHESIZE] = "synthesize", [ON_INVALID_INTERRUPT] = "interrupt");
static NAMES(on_failure_names,
             ON_FAILURE_COUNT, [ON_FAILURE_ABORT] = "abort", [ON_FAILURE_SKIP] = "skip",
             [ON_FAILURE_CONTINUE] = "continue", [ON_FAILURE_RETRY] = "retry",
             [ON_FAILURE_REPLAN] = "replan", [ON_FAILURE_ASK] = "ask");
static NAMES(log_level_names, LOG_LEVEL_COUNT, [LOG_ERR] = "err", [LOG_WARN] = "warn",
             [LOG_INFO] = "info", [LOG_DEBUG] = "debug");
static NAMES(log_format_names,
             CONFIG_LOG_FORMAT_COUNT, [CONFIG_LOG_TEXT] = "text", [CONFIG_LOG_JOURNAL] = "journal");
NAMES(setting_restart_names, POLICY_RESTART_COUNT, [POLICY_PERMANENT] = "permanent",
      [POLICY_TRANSIENT] = "transient", [POLICY_TEMPORARY] = "temporary");
NAMES(setting_strategy_names, GROUP_STRATEGY_COUNT, [GROUP_ONE_FOR_ONE] = "one_for_one",
      [GROUP_ONE_FOR_ALL] = "one_for_all", [GROUP_REST_FOR_ONE] = "rest_for_one");
#undef NAMES

/* setting_store writes CHOICE members as uint32_t. */
_Static_assert(sizeof(enum durability) == sizeof(uint32_t) &&
                   sizeof(enum config_auth) == sizeof(uint32_t) &&
                   sizeof(enum backoff_kind) == sizeof(uint32_t) &&
                   sizeof(enum on_failure) == sizeof(uint32_t) &&
                   sizeof(enum on_invalid) == sizeof(uint32_t) &&
                   sizeof(enum log_level) == sizeof(uint32_t) &&
                   sizeof(enum config_log_format) == sizeof(uint32_t),
               "enums are 32 bits wide");

static const struct setting table[] = {
#define TEXT(key, member, text) {SETTING_TEXT, key, offsetof(struct config, member), NULL, text, 0},
#define CHOICE(key, member, names, text)                                                           \
    {SETTING_CHOICE, key, offsetof(struct config, member), names, text, 0},
#define NUMBER(key, member, number)                                                                \
    {SETTING_NUMBER, key, offsetof(struct config, member), NULL, NULL, number},
#define TIME(key, member, number)                                                                  \
    {SETTING_TIME, key, offsetof(struct config, member), NULL, NULL, number},
#define WIDE(key, member, number)                                                                  \
    {SETTING_WIDE, key, offsetof(struct config, member), NULL, NULL, number},
#define PERMILLE(key, member, number)                                                              \
    {SETTING_PERMILLE, key, offsetof(struct config, member), NULL, NULL, number},
#include "supervisor/config/settings.def"
#undef TEXT
#undef CHOICE
#undef NUMBER
#undef TIME
#undef WIDE
#undef PERMILLE
};

const struct setting *settings_table(uint32_t *ret_n)
{
    *ret_n = sizeof table / sizeof table[0];
    return table;
}

void setting_env_name(const struct setting *s, char ret[SETTING_ENV_MAX])
{
    size_t n = 0;

    memcpy(ret, "BATON_", 6);
    n = 6;
    for (const char *at = s->key; *at != '\0' && n + 2 < SETTING_ENV_MAX; at++) {
        if (*at == '.') {
            ret[n++] = '_';
        } else if (*at >= 'a' && *at <= 'z') {
            ret[n++] = (char)(*at - 'a' + 'A');
        } else {
            ret[n++] = '_'; /* a new word: keys are camelCase */
            ret[n++] = *at;
        }
    }
    ret[n] = '\0';
}

/* Copies the first part of a dotted key; returns the rest after the dot, or NULL. */
static const char *split(const char *key, char part[SETTING_ENV_MAX])
{
    size_t n = strcspn(key, ".");

    n = n < SETTING_ENV_MAX ? n : SETTING_ENV_MAX - 1;
    memcpy(part, key, n);
    part[n] = '\0';
    return key[n] == '.' ? key + n + 1 : NULL;
}

cJSON *setting_find(const cJSON *tree, const char *key)
{
    char part[SETTING_ENV_MAX];
    cJSON *found = NULL;

    while (key != NULL) {
        if (!cJSON_IsObject(tree)) {
            return NULL;
        }
        key = split(key, part);
        found = cJSON_GetObjectItemCaseSensitive(tree, part);
        tree = found;
    }
    return found;
}

enum bt_code setting_put(cJSON *tree, const char *key, cJSON *value)
{
    char part[SETTING_ENV_MAX];
    const char *rest = split(key, part);

    while (rest != NULL) {
        cJSON *next = cJSON_GetObjectItemCaseSensitive(tree, part);
        if (next == NULL) {
            next = cJSON_AddObjectToObject(tree, part);
        }
        if (next == NULL) {
            cJSON_Delete(value);
            return BT_NOMEM;
        }
        tree = next;
        rest = split(rest, part);
    }
    cJSON_DeleteItemFromObjectCaseSensitive(tree, part); /* the last flag wins */
    if (!cJSON_AddItemToObject(tree, part, value)) {
        cJSON_Delete(value);
        return BT_NOMEM;
    }
    return BT_OK;
}

enum bt_code setting_parse(const struct setting *s, const char *text, cJSON **ret,
                           const char **ret_why)
{
    bool plain = s->kind != SETTING_TEXT && s->kind != SETTING_CHOICE;

    return yaml_scalar(text, plain, ret, ret_why);
}

uint32_t setting_choice(const char *const *names, const char *text, uint32_t fallback)
{
    for (uint32_t i = 0; names[i] != NULL; i++) {
        if (text != NULL && strcmp(names[i], text) == 0) {
            return i;
        }
    }
    return fallback;
}

#define WIDE_MAX 9007199254740991.0 /* 2^53 - 1: a double holds every whole number up to it */

static double number_or_default(const struct setting *s, const cJSON *v)
{
    const double max = s->kind == SETTING_WIDE ? WIDE_MAX : (double)UINT32_MAX;

    return cJSON_IsNumber(v) && v->valuedouble >= 0 && v->valuedouble <= max ? v->valuedouble
                                                                             : s->number;
}

void setting_store(const struct setting *s, const cJSON *v, struct config *c)
{
    void *at = (char *)c + s->offset;
    const char *text = cJSON_IsString(v) ? v->valuestring : s->text;
    double number = number_or_default(s, v);
    uint32_t small = s->kind == SETTING_WIDE ? 0 : (uint32_t)number;
    uint64_t wide = (uint64_t)number;

    switch (s->kind) {
    case SETTING_TEXT:
        memcpy(at, &text, sizeof text);
        break;
    case SETTING_CHOICE:
        small = setting_choice(s->names, text, setting_choice(s->names, s->text, 0));
        memcpy(at, &small, sizeof small);
        break;
    case SETTING_NUMBER:
        memcpy(at, &small, sizeof small);
        break;
    case SETTING_TIME:
    case SETTING_WIDE:
        memcpy(at, &wide, sizeof wide);
        break;
    case SETTING_PERMILLE:
        small = number <= 1000000 ? (uint32_t)lround(number * 1000) : (uint32_t)(s->number * 1000);
        memcpy(at, &small, sizeof small);
        break;
    }
}
