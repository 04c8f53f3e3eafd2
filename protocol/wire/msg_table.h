/* The messages of protocol/messages.def as data, for the codecs, the generated tables and the
 * tests. */
#ifndef WIRE_MSG_TABLE_H
#define WIRE_MSG_TABLE_H

#include "protocol/wire/msg.h"

enum field_kind {
    FIELD_STR,
    FIELD_U64,
    FIELD_I64,
    FIELD_F64,
    FIELD_BOOL,
    FIELD_DOC,
    FIELD_SUB,
    FIELD_LIST,
    FIELD_STRS,
    FIELD_KIND_COUNT
};

struct msg_field {
    struct str name; /* on the wire */
    enum field_kind kind;
    bool required;
    size_t at;          /* offset in the struct */
    size_t n_at;        /* LIST, STRS: offset of the count */
    uint64_t max;       /* STR, DOC, STRS: bytes; U64: the largest value */
    uint32_t list_max;  /* LIST, STRS: elements */
    enum msg_type part; /* SUB, LIST */
};

struct msg_desc {
    const char *name; /* of the struct, without msg_ */
    const char *wire; /* "" for a part */
    const struct msg_field *fields;
    uint32_t n;
    size_t size; /* of the struct */
};

extern const struct msg_desc msg_table[MSG_TYPE_COUNT];

/* The path of a value in a body, for errors: a chain on the C stack from the field up to the body.
 */
struct msg_path {
    const struct msg_path *up;
    struct str name; /* {NULL, 0} for an element of a list */
    uint32_t index;
};

enum { MSG_PATH_MAX = 160 };
/* Writes "card.skills[2].id" into ret, cut when longer. Returns ret. */
const char *msg_path_text(const struct msg_path *path, char ret[MSG_PATH_MAX]);

static inline bool msg_bit(uint64_t has, uint32_t ix)
{
    return (has >> ix & 1u) != 0;
}
#endif
