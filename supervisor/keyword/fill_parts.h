/* Shared by fill.c, fill_find.c and fill_left.c. */
#ifndef PLANNER_FILL_PARTS_H
#define PLANNER_FILL_PARTS_H

#include "supervisor/keyword/fill.h"

/* The next token of that kind at or behind *at, which moves behind it. */
bool fill_token(struct str clause, bool (*is)(struct str), size_t *at, struct str *ret);
/* The next text in quotes at or behind *from, which moves behind it. */
bool fill_quoted(struct str clause, size_t *from, struct str *ret);
/* The first number outside quotes: what is quoted is for somebody else. */
bool fill_number(struct str clause, struct str *ret);
uint64_t fill_number_of(struct str digits);
/* The value of the property's enum whose words stand in the clause. */
bool fill_choice(struct doc property, struct str clause, struct doc *ret);
#endif
