/*
 * A document: any value, held as the bytes of one complete, validated msgpack value. Parameters,
 * results and schemas are sent and stored as docs, byte for byte. Code builds a tree only where it
 * looks inside. All functions are pure but for memory, and thread-safe on different objects.
 */
#ifndef WIRE_DOC_H
#define WIRE_DOC_H

#include "protocol/base/arena.h"
#include "protocol/base/buf.h"
#include "protocol/base/err.h"
#include "protocol/base/str.h"

struct cJSON;

struct doc {
    const uint8_t *ptr; /* NULL = absent */
    size_t len;
};

enum doc_kind {
    DOC_NIL,
    DOC_BOOL,
    DOC_INT,
    DOC_UINT,
    DOC_FLOAT,
    DOC_STR,
    DOC_BIN,
    DOC_ARRAY,
    DOC_MAP
};

/* The head of a value: for STR and BIN the bytes, for ARRAY and MAP the number of elements or
 * pairs. */
struct doc_head {
    enum doc_kind kind;
    bool b;
    int64_t i;  /* DOC_INT: negative numbers only */
    uint64_t u; /* DOC_UINT: all numbers >= 0 */
    double f;
    struct str str;
    uint32_t n;
};

/* Walks validated bytes. It checks nothing but the end. */
struct doc_cursor {
    const uint8_t *at;
    const uint8_t *end;
};

struct doc_cursor doc_cursor(struct doc d);
/* Reads one head and moves after it: into an array or map, to its first element. Returns false at
 * the end. */
bool doc_next(struct doc_cursor *c, struct doc_head *ret);
/* Moves over one whole value and returns it; .ptr NULL at the end. */
struct doc doc_skip(struct doc_cursor *c);
struct doc_head doc_head(struct doc d);
/* Moves over a key of a map, which has no children, and returns it; .ptr NULL when it is no text.
 */
struct str doc_key(struct doc_cursor *c);

/* Returns the member of a map; .ptr NULL when d is no map or has no such key. */
struct doc doc_get(struct doc d, struct str key);
/* Returns the element of an array; .ptr NULL when there is none. */
struct doc doc_at(struct doc d, uint32_t ix);
/* Follows "a.b.0.c" (map keys and array indexes); .ptr NULL when a part does not exist. */
struct doc doc_path(struct doc d, struct str path);
/* The numbers over 0 of the members whose names end with Ref, at most max; returns how many. In a
 * row of the journal they are the ids of blobs. */
uint32_t doc_refs(const void *map, size_t len, uint64_t *ret, uint32_t max);
/* Returns the text of a string value, else {NULL, 0}. */
struct str doc_string(struct doc d);

/*
 * Whether both are the same value: numbers by value, maps in any order of their keys. Absent equals
 * absent. Maps of more than 256 members with different orders count as different.
 */
bool doc_eq(struct doc a, struct doc b);

/* ---- JSON ---- */

struct json_limits {
    size_t bytes;
    uint32_t depth;
    uint32_t nodes;
};

/*
 * Converts JSON to msgpack and appends it to out. The reader is stricter than RFC 8259. It rejects
 * bad UTF-8, a BOM, \u0000, lone surrogates, duplicate keys, leading zeros, integers that do not
 * fit into 64 bits, numbers that are not finite, trailing bytes, and text over a limit. The error
 * names line and column (from 1) and what would be right. limits NULL = those of protocol/limits.h.
 * On failure out is unchanged.
 */
BT_MUST_CHECK enum bt_code json_to_doc(struct str json, const struct json_limits *limits,
                                       struct buf *out, struct bt_error *err);
/* The most bytes that json_to_doc makes of so much JSON: "1.5," is four bytes of JSON and nine of
 * msgpack. */
static inline size_t json_doc_capacity(size_t json_len)
{
    return json_len > SIZE_MAX / 4 ? SIZE_MAX : json_len * 3 + 1024;
}
/* Appends the value as compact JSON, or with an indent of two spaces (pretty). bin becomes base64
 * text. */
BT_MUST_CHECK enum bt_code doc_to_json(struct doc d, bool pretty, struct buf *out,
                                       struct bt_error *err);
/* RFC 4648, section 4, with padding. */
void json_put_base64(struct buf *out, struct str bytes);
/* Appends text for people: a string without quotes, any other value as compact JSON. */
BT_MUST_CHECK enum bt_code doc_to_text(struct doc d, struct buf *out, struct bt_error *err);

/* Builds a tree for code that needs one (schemas, configuration). An integer over 2^53 is
 * BT_INVALID, because cJSON has only doubles. The caller frees *ret with cJSON_Delete. */
BT_MUST_CHECK enum bt_code doc_to_cjson(struct doc d, struct cJSON **ret, struct bt_error *err);
/* The same, but an integer over 2^53 becomes a text of its digits. For tables, where a text of
 * digits is an integer again. */
BT_MUST_CHECK enum bt_code doc_to_cjson_digits(struct doc d, struct cJSON **ret,
                                               struct bt_error *err);
/* Appends the tree as msgpack. Whole numbers become integers. On failure out is unchanged. */
BT_MUST_CHECK enum bt_code cjson_to_doc(const struct cJSON *tree, struct buf *out,
                                        struct bt_error *err);
/* Appends the tree as JSON. Unlike cJSON's own printer it keeps every digit of a number: that one
 * rounds to 15 digits. An item of the type cJSON_Raw must be an integer. On failure out is
 * unchanged. */
BT_MUST_CHECK enum bt_code cjson_to_json(const struct cJSON *tree, struct buf *out,
                                         struct bt_error *err);
/* The same as a new text, on one line or laid out as by cJSON_Print (pretty). The caller frees it
 * with cJSON_free. NULL: the reason is in err, which may be NULL. */
char *cjson_print(const struct cJSON *tree, bool pretty, struct bt_error *err);
/* json_to_doc and doc_to_cjson in one call, for files and tests. */
BT_MUST_CHECK enum bt_code json_parse(struct str json, struct cJSON **ret, struct bt_error *err);
/* The same for answers of the daemon, of any size: an integer over 2^53 becomes an item of the type
 * cJSON_Raw, its digits, which cjson_print and cJSON's printers write as they are. */
BT_MUST_CHECK enum bt_code json_parse_exact(struct str json, struct cJSON **ret,
                                            struct bt_error *err);

/* ---- writing values one by one (over msgpack-c's packer); a failure stays in out ---- */
void doc_put_nil(struct buf *out);
void doc_put_bool(struct buf *out, bool v);
void doc_put_u64(struct buf *out, uint64_t v);
void doc_put_i64(struct buf *out, int64_t v);
void doc_put_f64(struct buf *out, double v);
void doc_put_str(struct buf *out, struct str v);
void doc_put_str_head(struct buf *out, size_t n); /* the caller appends n bytes of UTF-8 */
void doc_put_cstr(struct buf *out, const char *v);
void doc_put_bin(struct buf *out, const void *bytes, size_t n);
void doc_put_array(struct buf *out, uint32_t n);
void doc_put_map(struct buf *out, uint32_t n);
void doc_put_doc(struct buf *out, struct doc d); /* an absent doc becomes nil */

/* Returns a copy in the arena; .ptr NULL when out of memory. */
struct doc doc_copy(struct arena *a, struct doc d);
struct doc doc_from_buf(const struct buf *b);
#endif
