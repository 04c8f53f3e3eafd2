/*
 * Repairs answers of servers that do not enforce a schema: such models omit members that may be
 * null, and write null for members that are optional. The repair does not change the meaning. Pure.
 */
#ifndef LLM_NULL_RULES_H
#define LLM_NULL_RULES_H

#include <stdbool.h>

struct cJSON;

/* Adds null for a member that is required, nullable and missing. Removes null from a member that is
 * neither nullable nor required. At any depth that the schema describes, for the first 50,000
 * members; the rest is unchanged. False: out of memory. */
bool null_rules_apply(struct cJSON *value, const struct cJSON *schema);

/* A copy of the schema that does not require these top-level members (NULL-terminated). NULL = out
 * of memory; the caller frees with cJSON_Delete. */
struct cJSON *null_rules_schema(const struct cJSON *schema, const char *const *optional);
#endif
