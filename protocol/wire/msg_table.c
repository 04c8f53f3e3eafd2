#include "protocol/wire/msg_table.h"

#include <stdio.h>

#define NEED_REQ true
#define NEED_OPT false
#define TEXT(lit)                                                                                  \
    {                                                                                              \
        (lit), sizeof(lit) - 1                                                                     \
    }

/* ---- one array of fields per message; the last entry only makes an empty message legal C ---- */
#define MSG(m, w) static const struct msg_field fields_##m[] = {
#define STR(m, c, w, cap, need)                                                                    \
    {TEXT(w), FIELD_STR, NEED_##need, offsetof(struct msg_##m, c), 0, (cap), 0, MSG_TYPE_COUNT},
#define U64(m, c, w, top, need)                                                                    \
    {TEXT(w), FIELD_U64, NEED_##need, offsetof(struct msg_##m, c), 0, (top), 0, MSG_TYPE_COUNT},
#define I64(m, c, w, need)                                                                         \
    {TEXT(w), FIELD_I64, NEED_##need, offsetof(struct msg_##m, c), 0, 0, 0, MSG_TYPE_COUNT},
#define F64(m, c, w, need)                                                                         \
    {TEXT(w), FIELD_F64, NEED_##need, offsetof(struct msg_##m, c), 0, 0, 0, MSG_TYPE_COUNT},
#define BOOL(m, c, w, need)                                                                        \
    {TEXT(w), FIELD_BOOL, NEED_##need, offsetof(struct msg_##m, c), 0, 0, 0, MSG_TYPE_COUNT},
#define DOC(m, c, w, cap, need)                                                                    \
    {TEXT(w), FIELD_DOC, NEED_##need, offsetof(struct msg_##m, c), 0, (cap), 0, MSG_TYPE_COUNT},
#define SUB(m, c, w, sub, need)                                                                    \
    {TEXT(w), FIELD_SUB, NEED_##need, offsetof(struct msg_##m, c), 0, 0, 0, MSG_##sub},
#define LIST(m, c, w, sub, most, need)                                                             \
    {                                                                                              \
        TEXT(w),                                                                                   \
        FIELD_LIST,                                                                                \
        NEED_##need,                                                                               \
        offsetof(struct msg_##m, c),                                                               \
        offsetof(struct msg_##m, c##_n),                                                           \
        0,                                                                                         \
        (most),                                                                                    \
        MSG_##sub},
#define STRS(m, c, w, cap, most, need)                                                             \
    {TEXT(w),                                                                                      \
     FIELD_STRS,                                                                                   \
     NEED_##need,                                                                                  \
     offsetof(struct msg_##m, c),                                                                  \
     offsetof(struct msg_##m, c##_n),                                                              \
     (cap),                                                                                        \
     (most),                                                                                       \
     MSG_TYPE_COUNT},
#define END(m)                                                                                     \
    {                                                                                              \
        .part = MSG_TYPE_COUNT                                                                     \
    }                                                                                              \
    }                                                                                              \
    ;                                                                                              \
    _Static_assert((int)HAS_##m##_COUNT <= 64, "`has` has 64 bits");
#include "protocol/messages.def"

const struct msg_desc msg_table[MSG_TYPE_COUNT] = {
#define MSG(m, w) [MSG_##m] = {#m, w, fields_##m, HAS_##m##_COUNT, sizeof(struct msg_##m)},
#include "protocol/messages.def"
};

const char *msg_wire_type(enum msg_type type)
{
    return (unsigned)type < MSG_TYPE_COUNT ? msg_table[type].wire : "";
}

enum msg_type msg_type_from_wire(struct str wire_type)
{
    for (unsigned i = 0; wire_type.len > 0 && i < MSG_TYPE_COUNT; i++) {
        if (str_is(wire_type, msg_table[i].wire)) {
            return (enum msg_type)i;
        }
    }
    return MSG_TYPE_COUNT;
}

const char *msg_path_text(const struct msg_path *path, char ret[MSG_PATH_MAX])
{
    const struct msg_path *chain[16];
    size_t n = 0;
    size_t len = 0;

    ret[0] = 0;
    for (; path != NULL && n < sizeof chain / sizeof chain[0]; path = path->up) {
        chain[n++] = path;
    }
    while (n-- > 0 && len < MSG_PATH_MAX) {
        const struct msg_path *p = chain[n];
        int wrote = p->name.ptr != NULL
                        ? snprintf(ret + len, MSG_PATH_MAX - len, "%s%.*s", len > 0 ? "." : "",
                                   STR_ARG(p->name))
                        : snprintf(ret + len, MSG_PATH_MAX - len, "[%u]", (unsigned)p->index);
        len += wrote > 0 ? (size_t)wrote : 0;
    }
    return ret;
}
