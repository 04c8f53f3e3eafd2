/*
 * What servers that do not hold a model to its schema make of it: a member that may be null is
 * left out, one that may be left out is null. Neither changes what was meant. Pure.
 */
#ifndef LLM_NULL_RULES_H
#define LLM_NULL_RULES_H

#include <stdbool.h>

struct cJSON;

/* Puts null for what is required, may be null and is missing; takes out what is null, may not be
 * and is not required. At any depth that the schema says something of, for the first
 * 50,000 members of the answer: the rest stays as it came. False: out of memory. */
bool null_rules_apply(struct cJSON *value, const struct cJSON *schema);

/* A copy of the schema that does not require these members (NULL-terminated) of the whole. NULL =
 * out of memory; the caller frees with cJSON_Delete. */
struct cJSON *null_rules_schema(const struct cJSON *schema, const char *const *optional);
#endif
