/* The places of values in a YAML text. Shared by yaml*.c; yaml.h has the public part. */
#ifndef CONFIG_YAML_MARKS_H
#define CONFIG_YAML_MARKS_H

#include "supervisor/config/yaml.h"

/* NULL when out of memory. */
struct yaml_marks *yaml_marks_new(void);
/* BT_LIMIT over LIMIT_NODES. */
BT_MUST_CHECK enum bt_code yaml_marks_add(struct yaml_marks *m, const struct cJSON *item,
                                          struct yaml_place place);
/* Call it once, when the tree is complete. */
void yaml_marks_seal(struct yaml_marks *m, struct cJSON *tree);
#endif
