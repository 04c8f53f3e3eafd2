/*
 * Parameters of a step that was planned from words. A skill says in its inputSchema, by an
 * annotation of a property, what of the clause belongs there:
 *
 *   "x-baton-fill":
 *     "path"             the first path in the clause (words.h); a list property gets them all
 *     "url"              the first http(s) address
 *     "number"           the first number
 *     "numbers"          all numbers, two at least
 *     "expression"       the first arithmetic expression (expression.h)
 *     "quoted"           the first text in quotes
 *     "clause"           the clause
 *     "choice"           the value of the property's enum whose words stand in the clause, most of
 *                        them first; "x-baton-words": {"install": "installed installation"} adds
 *                        words to a value
 *     "previous"         the result of the step before: the template {{results.<step>}}
 *     "previous.<path>"  a member of it
 *     "path or previous" the first that there is; any of the above may be joined so
 *
 * A required property that says nothing, and is the only required one, is "quoted".
 *
 * What cannot be filled is left out, and the schema's default holds; the name and description of
 * such a property explain no word of the clause (rank.h), nor do choices that were not made. A
 * skill is not used for the clause when its required parameters cannot be filled, when it has
 * properties that take what work is done to (all but choice and number) and none of them can be, or
 * when the clause has a value that no parameter takes. A skill without an inputSchema works from
 * the words alone. Annotations are hints of the skill's author about words; they grant nothing.
 */
#ifndef PLANNER_FILL_H
#define PLANNER_FILL_H

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"

struct fill {
    struct str clause;
    const struct str *previous; /* ids of the steps that it follows: several give a list, or their
                                   texts one behind the other where a string is wanted */
    uint32_t n_previous;
    const struct str *earlier; /* the clauses before it: what they name is known */
    uint32_t n_earlier;
};

enum {
    FILL_TAKEN_MAX = 40,
    FILL_CHOSEN_MAX = 16,
    FILL_PROPERTIES_MAX = 32 /* of a schema: they come from agents */
};

/* What of the clause went into the parameters. */
struct fill_taken {
    struct str at[FILL_TAKEN_MAX]; /* parts of the clause */
    uint32_t n;
    bool previous;                      /* results of steps before */
    bool whole;                         /* the whole clause, or the skill works from its words */
    uint32_t filled;                    /* properties, as bits in their order */
    struct str chosen[FILL_CHOSEN_MAX]; /* values of choices, and the words added to them */
    uint32_t n_chosen;
};

/*
 * Appends the parameters as a map and returns their number; *ret_missing = the first property that
 * could not be filled and has to be, or {NULL, 0}.
 */
uint32_t fill_parameters(const struct fill *f, struct doc input_schema, struct buf *out,
                         struct fill_taken *taken, struct str *ret_missing);
/*
 * Whether the clause has a value that, where it stands, is in none of these parameters: a text in
 * quotes, a number, arithmetic, a path or an address. An earlier clause may give the same text,
 * path or address; the same clause may name a path or an address twice. A step with them would do
 * less than was said, or something else.
 */
bool fill_leaves_out(const struct fill *f, const struct fill_taken *taken, struct str *ret_thing);
#endif
