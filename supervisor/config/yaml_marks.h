/* Which value stood where. Private to the YAML reader; yaml.h has the public half. */
#ifndef CONFIG_YAML_MARKS_H
#define CONFIG_YAML_MARKS_H

#include "supervisor/config/yaml.h"

/* NULL when out of memory. */
struct yaml_marks *yaml_marks_new(void);
/* BT_LIMIT over LIMIT_NODES. */
BT_MUST_CHECK enum bt_code yaml_marks_add(struct yaml_marks *m, const struct cJSON *item,
                                          struct yaml_place place);
/* To be called once, when the tree is complete. */
void yaml_marks_seal(struct yaml_marks *m, struct cJSON *tree);
#endif
