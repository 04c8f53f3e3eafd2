/* The table of settings: keys, environment variables, and the members of struct config. */
#ifndef CONFIG_SETTINGS_H
#define CONFIG_SETTINGS_H

#include <stddef.h>

#include "supervisor/config/config.h"

enum setting_kind {
    SETTING_TEXT,
    SETTING_CHOICE,
    SETTING_NUMBER,
    SETTING_TIME,
    SETTING_WIDE,
    SETTING_PERMILLE
};

struct setting {
    enum setting_kind kind;
    const char *key;
    size_t offset;            /* in struct config */
    const char *const *names; /* CHOICE: NULL-terminated, in the order of the enum */
    const char *text;         /* default of TEXT and CHOICE */
    double number;            /* default of the others */
};

enum { SETTING_ENV_MAX = 64 };

const struct setting *settings_table(uint32_t *ret_n);
void setting_env_name(const struct setting *s, char ret[SETTING_ENV_MAX]);
/* The member of the tree under the dotted key, or NULL. */
struct cJSON *setting_find(const struct cJSON *tree, const char *key);
/* Stores the value (takes it, also on failure) under the dotted key; makes objects on the way. */
BT_MUST_CHECK enum bt_code setting_put(struct cJSON *tree, const char *key, struct cJSON *value);
/* Parses a value of the environment or a flag: as text for a text setting, else as YAML. */
BT_MUST_CHECK enum bt_code setting_parse(const struct setting *s, const char *text,
                                         struct cJSON **ret, const char **ret_why);
/* Stores the value, or the default when v is NULL or has a wrong type or range (the schema has
 * reported that). Text is borrowed. */
void setting_store(const struct setting *s, const struct cJSON *v, struct config *c);

/* The index of text in a NULL-terminated list, or fallback. */
uint32_t setting_choice(const char *const *names, const char *text, uint32_t fallback);
extern const char *const setting_restart_names[];
extern const char *const setting_strategy_names[];
#endif
