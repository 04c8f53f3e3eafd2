/*
 * The messages of protocol/messages.def as structs, with one reader and one writer for all of them.
 *
 * A body is one msgpack map, or the same as a JSON object (first byte '{'). Reading: validate
 * msgpack or convert JSON to it, then fill a struct from the table of fields. Writing: msgpack from
 * the table, then JSON from the msgpack if asked.
 *
 * Strings and docs of a struct that was read are borrowed. They point into the reader and live as
 * long as it. Pure but for allocation in the reader's arena and buf. Thread-safe on different
 * objects.
 */
#ifndef WIRE_MSG_H
#define WIRE_MSG_H

#include "protocol/base/arena.h"
#include "protocol/base/buf.h"
#include "protocol/base/err.h"
#include "protocol/base/str.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

enum wire_form { WIRE_MSGPACK, WIRE_JSON };

enum msg_type {
#define MSG(m, wire) MSG_##m,
#include "protocol/messages.def"
    MSG_TYPE_COUNT
};

/* struct msg_<name>. `has` has bit (1 << HAS_<name>_<field>) for each field that was present. The
 * writer omits an OPT field that is zero, empty, false or NULL unless its bit in `has` is set. It
 * always writes REQ fields. */
#define MSG(m, wire)                                                                               \
    struct msg_##m {                                                                               \
        uint64_t has;
#define STR(m, c, w, cap, need) struct str c;
#define U64(m, c, w, max, need) uint64_t c;
#define I64(m, c, w, need) int64_t c;
#define F64(m, c, w, need) double c;
#define BOOL(m, c, w, need) bool c;
#define DOC(m, c, w, cap, need) struct doc c;
#define SUB(m, c, w, part, need) struct msg_##part c;
#define LIST(m, c, w, part, max, need)                                                             \
    struct msg_##part *c;                                                                          \
    uint32_t c##_n;
#define STRS(m, c, w, cap, max, need)                                                              \
    struct str *c;                                                                                 \
    uint32_t c##_n;
#define END(m)                                                                                     \
    }                                                                                              \
    ;
#include "protocol/messages.def"

/* HAS_<msg>_<field> is the index of the field in its message. */
#define MSG(m, wire) enum {
#define STR(m, c, w, cap, need) HAS_##m##_##c,
#define U64(m, c, w, max, need) HAS_##m##_##c,
#define I64(m, c, w, need) HAS_##m##_##c,
#define F64(m, c, w, need) HAS_##m##_##c,
#define BOOL(m, c, w, need) HAS_##m##_##c,
#define DOC(m, c, w, cap, need) HAS_##m##_##c,
#define SUB(m, c, w, part, need) HAS_##m##_##c,
#define LIST(m, c, w, part, max, need) HAS_##m##_##c,
#define STRS(m, c, w, cap, max, need) HAS_##m##_##c,
#define END(m)                                                                                     \
    HAS_##m##_COUNT                                                                                \
    }                                                                                              \
    ;
#include "protocol/messages.def"

#define msg_has(body, m, field) (((body)->has >> HAS_##m##_##field & 1u) != 0)
#define msg_set(body, m, field) ((body)->has |= UINT64_C(1) << HAS_##m##_##field)

/* Returns the wire type of a message ("step.execute"); "" for a part. */
const char *msg_wire_type(enum msg_type type);
/* Returns MSG_TYPE_COUNT for an unknown name. Parts have no name. */
enum msg_type msg_type_from_wire(struct str wire_type);

/* ---- reading ---- */

struct msg_reader {
    enum wire_form form; /* of the request; answer in the same form */
    const uint8_t *body; /* one msgpack map, validated */
    size_t len;
    struct arena arena;   /* lists of decoded structs */
    struct buf converted; /* the msgpack of a JSON body */
};

/*
 * Validates the bytes of one body, which are borrowed until msg_reader_done. Returns BT_LIMIT over
 * max_bytes, else BT_INVALID with the position and what would be right. ret->form is set on failure
 * too, so that the error can be sent in the form of the request. The struct may be reused after
 * msg_reader_done.
 */
BT_MUST_CHECK enum bt_code msg_reader_init(struct msg_reader *ret, const void *bytes, size_t len,
                                           size_t max_bytes, struct bt_error *err);
void msg_reader_done(struct msg_reader *r);

/*
 * Reads the reader's map (msg_read) or one doc (msg_read_doc) as message `type` into *ret_body, a
 * struct msg_<type>, which is zeroed first. Unknown fields are skipped. A missing field or one of
 * the wrong type is BT_INVALID with its path ("card.skills[2].id: expected a string, got 7"). A
 * string or list over its cap is BT_LIMIT. null for an OPT field is the same as no field. An
 * integer field accepts a whole float up to 2^53, because many languages send 1.0.
 */
BT_MUST_CHECK enum bt_code msg_read(struct msg_reader *r, enum msg_type type, void *ret_body,
                                    struct bt_error *err);
BT_MUST_CHECK enum bt_code msg_read_doc(struct arena *arena, struct doc doc, enum msg_type type,
                                        void *ret_body, struct bt_error *err);

/*
 * What stands in the first `look` bytes of a body, before anything is read: which turn a request
 * takes, and from whom it is, costs no more than that. Borrowed bytes, unchecked: a string may not
 * be UTF-8, and the reader may refuse the body. Empty = not there, or not a plain string.
 */
struct msg_peek {
    enum wire_form form;
    struct str type, token, id, plan_id;
    bool whole; /* the map ends within them */
};
struct msg_peek msg_peek(const void *bytes, size_t len, size_t look);

/* ---- writing: several structs become one map (envelope + body, event + payload) ---- */

struct msg_part {
    enum msg_type type;
    const void *body;
};

/*
 * Appends one map with the fields of all parts, in order. Returns BT_LIMIT when a string is over
 * its cap or out is full. Returns BT_INVALID when a string is not UTF-8, a number is out of range
 * or a doc is not one whole value. On failure out is unchanged. The content of docs is not checked:
 * pass validated docs or ones made with doc_put_*.
 */
BT_MUST_CHECK enum bt_code msg_write(struct buf *out, enum wire_form form,
                                     const struct msg_part *parts, uint32_t n,
                                     struct bt_error *err);

/* Writes an ok answer: {v, type, id, ok: true, ...body}. body may be NULL with MSG_empty. */
BT_MUST_CHECK enum bt_code msg_answer(struct buf *out, enum wire_form form, struct str id,
                                      enum msg_type type, const void *body, struct bt_error *err);
/* Writes an error answer: {v, type: "error", id, ok: false, error: {...}}. cls may be CLASS_NONE
 * and retry_after_ms 0. `retryable` is that of the class; without a class it is true for BUSY,
 * UNAVAILABLE and TIMEOUT. In the message '?' replaces bytes that are not UTF-8. */
BT_MUST_CHECK enum bt_code msg_answer_error(struct buf *out, enum wire_form form, struct str id,
                                            const struct bt_error *why, enum err_class cls,
                                            uint64_t retry_after_ms, struct doc details);
/* Writes a request: {v: 1, type, id, token, ...body}. An empty token is omitted. */
BT_MUST_CHECK enum bt_code msg_request(struct buf *out, enum wire_form form, struct str id,
                                       struct str token, enum msg_type type, const void *body,
                                       struct bt_error *err);
/*
 * Reads an answer (v 1, the type of `type`). ok: true gives BT_OK and *ret_body. ok: false gives
 * the peer's code and message in *err, and its class in *ret_class when that is not NULL.
 * BT_PROTOCOL when the answer is neither, or its body is not the message.
 */
BT_MUST_CHECK enum bt_code msg_read_answer(struct msg_reader *r, enum msg_type type, void *ret_body,
                                           enum err_class *ret_class, struct bt_error *err);
#endif
