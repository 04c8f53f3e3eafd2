/*
 * Schemas for servers that accept only a subset of JSON Schema (Anthropic's structured output):
 * objects must be closed; bounds of numbers, texts and lists are rejected. The answer is checked
 * against the whole schema here. Pure except for the heap.
 */
#ifndef LLM_SCHEMA_SUBSET_H
#define LLM_SCHEMA_SUBSET_H

#include <stdbool.h>

struct cJSON;

/* A copy with only what such a server accepts; the caller frees. NULL when there is none: an object
 * in it is open, it is too deep, it has too many optional members, or out of memory. */
struct cJSON *schema_subset(const struct cJSON *schema);
bool schema_subset_can(const struct cJSON *schema);
#endif
