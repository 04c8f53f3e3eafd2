/* Random documents and random messages, by walking the descriptor table. */
#ifndef UNIT_WIRE_GENERATE_H
#define UNIT_WIRE_GENERATE_H

#include "protocol/wire/msg_table.h"
#include "tests/support/random.h"

/* Appends one value that the validator accepts, nested at most depth deep. loose: heads may be
 * longer than needed. json: no bin, so that the value has an exact JSON form. */
struct generate_options {
    uint32_t depth;
    bool loose;
    bool json;
};
void generate_doc(struct rng *rng, struct generate_options how, struct buf *out);

enum generate_fields { FIELDS_ALL, FIELDS_REQUIRED, FIELDS_RANDOM };
/* Fills the struct msg_<type> at ret_body within every cap; strings, docs and lists live in the
 * arena. */
void generate_msg(struct rng *rng, struct arena *arena, enum msg_type type,
                  enum generate_fields fields, void *ret_body);
/* Whether two structs are equal; bits of `has` count too. */
bool generate_equal(enum msg_type type, const void *a, const void *b);
#endif
