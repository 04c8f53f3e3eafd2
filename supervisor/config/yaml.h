/*
 * Reads YAML text into a cJSON tree, with the line and column of every value: for the configuration
 * and for plan files. Strict and bounded, because plan files come from models and from strangers.
 * Reads JSON text as well.
 *
 * Scalars follow the core schema of YAML 1.2 (10.3.2): null ~ true false, numbers, else text. So
 * `yes`, `no`, `on` and `off` are text. Rejected with line and column: bad UTF-8, duplicate keys,
 * keys that are not text, anchors and aliases, tags, several documents, tabs as indentation,
 * nesting over 16 levels, more than 200,000 values or 1 MiB, numbers that are not finite, integers
 * from 2^53 on (cJSON has only doubles), and numbers such as 0777, which YAML 1.1 read differently.
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
 * name begins the messages ("plan.yaml:3:5: ..."). An empty text gives a null. The caller frees the
 * tree with cJSON_Delete and the marks with yaml_marks_free. Marks are valid as long as the tree;
 * ret_marks may be NULL.
 */
BT_MUST_CHECK enum bt_code yaml_read(struct str text, const char *name, struct cJSON **ret_tree,
                                     struct yaml_marks **ret_marks, struct bt_error *err);
/* The same for documents that others publish, which nest deeper: up to YAML_DEPTH_MAX levels. */
enum { YAML_DEPTH_MAX = 64 };
BT_MUST_CHECK enum bt_code yaml_read_deep(struct str text, const char *name,
                                          struct cJSON **ret_tree, struct bt_error *err);
void yaml_marks_free(struct yaml_marks *marks);

/*
 * The place of the value of a JSON pointer ("/agents/0/command"): of its key when it is a member of
 * an object. A pointer beyond the tree (a missing member, a cut path) gives the last value on its
 * way.
 */
struct yaml_place yaml_place(const struct yaml_marks *marks, const char *pointer);
#endif
