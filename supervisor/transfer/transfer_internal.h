/* The lines: maps of msgpack, printed as JSON. For this room only. */
#ifndef TRANSFER_INTERNAL_H
#define TRANSFER_INTERNAL_H

#include "protocol/limits.h"
#include "protocol/wire/doc.h"
#include "supervisor/transfer/transfer.h"

enum {
    PART_BYTES = 96 * 1024, /* of a document or a blob in one line; a multiple of 3 for base64 */
    /* Of a line when it is read: base64 and escaped texts are longer. */
    LINE_MAX = 400 * 1024,
    BLOB_MAX = 32 * 1024 * 1024,
    DOC_MAX = 8 * 1024 * 1024
};

/* A line under way: its members are counted. */
struct line {
    struct buf members;
    uint32_t n;
};
void line_begin(struct line *l, const char *kind);
/* Zeros, empty texts and empty bytes are left out. */
void line_text(struct line *l, const char *key, struct str v);
void line_number(struct line *l, const char *key, uint64_t v);
void line_bytes(struct line *l, const char *key, const void *bytes, size_t len);
void line_uuid(struct line *l, const char *key, struct uuid v);
void line_doc(struct line *l, const char *key, struct doc v);
/* Appends the line with its line feed and frees it. */
BT_MUST_CHECK enum bt_code line_end(struct line *l, struct buf *out, struct bt_error *err);

/* Members of a line that is read; zero or empty when it has none. */
struct str line_get_text(struct doc line, const char *key);
uint64_t line_get_number(struct doc line, const char *key);
bool line_get_uuid(struct doc line, const char *key, struct uuid *ret);
/* Appends the bytes of a base64 text. BT_INVALID: it is none. */
BT_MUST_CHECK enum bt_code line_get_bytes(struct doc line, const char *key, struct buf *out,
                                          struct bt_error *err);

/* ---- bodies of rows: a map, with `seq` first when the row is an event ---- */
/* The body without its seq, and with the places of blobs (1, 2, ...) in `ids` instead of their ids.
 * BT_IO: it is no such body. */
BT_MUST_CHECK enum bt_code body_to_line(struct str body, const uint64_t *ids, uint32_t n,
                                        struct buf *out, struct bt_error *err);
/* The way back; seq 0 = the row is no event. Writes the ids that it names. */
BT_MUST_CHECK enum bt_code body_from_line(struct doc body, uint64_t seq, const uint64_t *ids,
                                          uint32_t n, struct buf *out,
                                          uint64_t refs[JOURNAL_ROW_BLOBS], uint32_t *ret_refs,
                                          struct bt_error *err);

/* ---- sessions ---- */
struct session_place {
    msec updated;
    uint64_t n; /* messages that were given; UINT64_MAX = all of it */
    char id[LIMIT_ID_BYTES + 1];
};
/* The next lines of sessions; *ret_done: that was all. */
BT_MUST_CHECK enum bt_code export_sessions(struct journal *journal, msec since,
                                           struct session_place *place, struct buf *lines,
                                           bool *ret_done, struct bt_error *err);
/* A session that is taken. */
struct session_import {
    char id[LIMIT_ID_BYTES + 1];
    char owner[LIMIT_ID_BYTES + 1];
    struct journal_session head; /* without strings */
    struct buf summary;
    uint64_t here; /* messages that are here already */
    uint64_t next;
};
/* Its first line, and each of the others. *ret is set by its end: TRANSFER_EXISTS when all of it
 * was here. *ret_failed_write as in transfer_import. */
BT_MUST_CHECK enum bt_code import_session_begin(struct session_import *s, struct journal *journal,
                                                struct doc line, struct bt_error *err);
BT_MUST_CHECK enum bt_code import_session_line(struct session_import *s, struct journal *journal,
                                               struct doc line, enum transfer_result *ret,
                                               bool *ret_failed_write, struct bt_error *err);

/* ---- schedules ---- */
struct schedule_place {
    uint64_t ix; /* the schedule under way, or the last one that was given */
    uint64_t at; /* bytes of its document that were given */
    bool whole;
};
/* The next lines of schedules; *ret_done: that was all. */
BT_MUST_CHECK enum bt_code export_schedules(struct journal *journal, struct schedule_place *place,
                                            struct buf *lines, bool *ret_done,
                                            struct bt_error *err);

struct schedule_import {
    char name[LIMIT_ID_BYTES + 1];
    char owner[LIMIT_ID_BYTES + 1];
    msec created;
    uint64_t body_hash, bytes;
    struct buf rule, doc;
};
BT_MUST_CHECK enum bt_code import_schedule_begin(struct schedule_import *s, struct journal *journal,
                                                 struct doc line, bool *ret_exists,
                                                 struct bt_error *err);
BT_MUST_CHECK enum bt_code import_schedule_line(struct schedule_import *s, struct journal *journal,
                                                struct doc line, msec wall,
                                                enum transfer_result *ret, bool *ret_failed_write,
                                                struct bt_error *err);
void import_schedule_done(struct schedule_import *s);
#endif
