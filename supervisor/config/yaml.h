/*
 * YAML text to a cJSON tree, with the line and column of every value: for the configuration and for
 * plan files. Strict and bounded, because plan files come from models and strangers. JSON text is
 * read as well.
 *
 * Scalars follow the core schema of YAML 1.2: null ~ true false, numbers, else text: `yes`, `no`,
 * `on` and `off` are text. Refused with line and column: bad UTF-8, duplicate keys, keys that are
 * not text, anchors and aliases, tags, several documents, tabs as indentation, nesting over 16
 * levels, more than 200,000 values or 1 MiB, numbers that are not finite, integers from 2^53 on
 * (cJSON has doubles only) and numbers such as 0777 that YAML 1.1 read otherwise.
 */
#ifndef CONFIG_YAML_H
#define CONFIG_YAML_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/base/err.h"
#include "protocol/base/str.h"

struct cJSON;
struct yaml_marks;

struct yaml_place {
    uint32_t line; /* from 1 */
    uint32_t column;
};

/*
 * name is the start of messages ("plan.yaml:3:5: ..."). An empty text gives a null. The caller
 * frees the tree with cJSON_Delete and the marks with yaml_marks_free; marks are valid as long as
 * the tree and may be NULL if not wanted.
 */
BT_MUST_CHECK enum bt_code yaml_read(struct str text, const char *name, struct cJSON **ret_tree,
                                     struct yaml_marks **ret_marks, struct bt_error *err);
void yaml_marks_free(struct yaml_marks *marks);

/*
 * Where the value stands to which a JSON pointer leads ("/agents/0/command"): its key if it is a
 * member of an object. A pointer that leads further than the tree goes (a missing member, a cut
 * path) gives the last value on its way.
 */
struct yaml_place yaml_place(const struct yaml_marks *marks, const char *pointer);
#endif
