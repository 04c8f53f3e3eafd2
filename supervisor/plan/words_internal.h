/* Words that no reading ignores, not even a lenient one. Private to this folder. */
#ifndef PLAN_WORDS_INTERNAL_H
#define PLAN_WORDS_INTERNAL_H

#include <stdbool.h>

#include "protocol/base/str.h"

/* Why there is no such control flow ("if", "forEach", "wait", ...) and what there is; NULL = no
 * such word. */
const char *word_refusal(struct str name);

/* The n-th field (from 0 on) of a plan or of a part of it that other systems call so, perhaps with
 * a value ("onFailure: skip"); NULL = no more. */
const char *word_synonym(struct str name, uint32_t n);

/* Where that is said which other systems say in this field of a step; NULL = no such field. */
const char *word_elsewhere(struct str name);

/* Whether the name is about what people rely on: approvals, budgets, checks, gates, effects,
 * limits; also when it is misspelt. */
bool word_is_relied_on(struct str name);
#endif
