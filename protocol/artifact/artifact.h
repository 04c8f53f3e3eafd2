/*
 * Artifacts: results by reference. An artifact is a file ROOT/PLAN/FILE, where ROOT is the
 * directory `artifacts` of the state directory and PLAN the id of the plan. On the wire it is a
 * `file:` URI with its length and SHA-256.
 *
 * A writer gathers bytes under a name that no URI can have. artifact_commit calls fsync and renames
 * the file, so a name that can be read belongs to a whole file at every moment. A reader checks
 * length and checksum before it returns a descriptor.
 *
 * Nothing outside of ROOT/PLAN is opened: a URI has exactly one plan and one name below ROOT, and
 * no link is followed. The functions keep no state; a writer belongs to one thread.
 */
#ifndef ARTIFACT_ARTIFACT_H
#define ARTIFACT_ARTIFACT_H

#include <stdint.h>

#include "protocol/base/buf.h"
#include "protocol/base/err.h"
#include "protocol/base/uuid.h"

enum {
    ARTIFACT_NAME_MAX = 100, /* with step, revision and attempt it fits in a file name */
    ARTIFACT_FILE_MAX = 255,
    ARTIFACT_PATH_MAX = 2048, /* of ROOT/PLAN/FILE: a URI has at most three times as many bytes */
    ARTIFACT_SHA256_LEN = 64
};

/* Below the state directory. */
#define ARTIFACT_DIR "artifacts"
/* In the directory of a plan that has ended: nothing is written there any more. */
#define ARTIFACT_ENDED ".ended"

/* ---- names ---- */
struct artifact_place {
    char plan[UUID_TEXT_LEN + 1];
    char file[ARTIFACT_FILE_MAX + 1];
};

/* 1 to ARTIFACT_NAME_MAX of [A-Za-z0-9_.-], not beginning with a dot. */
bool artifact_name_ok(struct str name);
/* "STEP@REVISION.ATTEMPT@NAME": an attempt never writes to a file of another one. */
BT_MUST_CHECK enum bt_code artifact_file_name(struct str step_id, uint64_t revision,
                                              uint64_t attempt, struct str name,
                                              char ret[ARTIFACT_FILE_MAX + 1],
                                              struct bt_error *err);
/* Appends "file://" and the path; bytes that a URI cannot have become %XX. */
void artifact_uri(const char *dir, const char *file, struct buf *out);
/* The path of a `file:` URI, %XX decoded. False: it is none, or its path is too long. */
bool artifact_uri_path(struct str uri, char ret[ARTIFACT_PATH_MAX + 1]);
/* Whether the URI is a path below root, whatever follows there. */
bool artifact_is_below(const char *root, struct str uri);
/* Where the URI is below root. BT_UNAUTHORIZED: it is no ROOT/PLAN/FILE. */
BT_MUST_CHECK enum bt_code artifact_locate(const char *root, struct str uri,
                                           struct artifact_place *ret, struct bt_error *err);

/* As artifact_locate, for any root whose last name is ARTIFACT_DIR: where the file was when the
 * state directory was another one. */
bool artifact_was(struct str uri, struct artifact_place *ret);

/* ---- SHA-256 ---- */
struct artifact_digest;
/* NULL when out of memory. */
struct artifact_digest *artifact_digest_new(void);
void artifact_digest_add(struct artifact_digest *d, const void *bytes, size_t len);
/* Lower-case hexadecimal. The digest cannot be used again. */
void artifact_digest_end(struct artifact_digest *d, char ret[ARTIFACT_SHA256_LEN + 1]);
/* The same, and whether it is the expected one, whose letters may be of either case. */
bool artifact_digest_is(struct artifact_digest *d, struct str expected,
                        char ret[ARTIFACT_SHA256_LEN + 1]);
/* Accepts NULL. */
void artifact_digest_free(struct artifact_digest *d);

/* ---- writing ---- */
struct artifact_writer;

/*
 * Starts a file in `dir`, ROOT/PLAN, which it creates (0700); ROOT must exist. BT_GONE: the plan
 * has ended. BT_UNAUTHORIZED: the directory is a link, or belongs to another user.
 */
BT_MUST_CHECK enum bt_code artifact_create(const char *dir, const char *file,
                                           struct artifact_writer **ret, struct bt_error *err);
/* After a failure only artifact_abort is allowed. */
BT_MUST_CHECK enum bt_code artifact_write(struct artifact_writer *w, const void *bytes, size_t len,
                                          struct bt_error *err);
/* Makes the file durable and gives it its name. Frees the writer, also on failure; then nothing is
 * left of the file. */
BT_MUST_CHECK enum bt_code artifact_commit(struct artifact_writer *w, uint64_t *ret_bytes,
                                           char ret_sha256[ARTIFACT_SHA256_LEN + 1],
                                           struct bt_error *err);
/* All the bytes, at the position of fd. */
BT_MUST_CHECK enum bt_code artifact_write_all(int fd, const void *bytes, size_t len,
                                              struct bt_error *err);
/* A file without a name on this host, in TMPDIR, else /var/tmp: for what goes elsewhere, or came
 * from there. -1: errno says why. */
int artifact_spool_fd(void);
/* Starts such a file, which artifact_unspool ends. */
BT_MUST_CHECK enum bt_code artifact_spool(struct artifact_writer **ret, struct bt_error *err);
/* Its descriptor, length and checksum. Frees the writer, also on failure. */
BT_MUST_CHECK enum bt_code artifact_unspool(struct artifact_writer *w, int *ret_fd,
                                            uint64_t *ret_bytes,
                                            char ret_sha256[ARTIFACT_SHA256_LEN + 1],
                                            struct bt_error *err);
/* Removes the file. Accepts NULL. */
void artifact_abort(struct artifact_writer *w);

/* ---- reading ---- */
/* Whether the plan has a directory of files. */
bool artifact_plan_has_files(const char *root, struct str plan_id);
/* What the result says about the file. */
struct artifact_claim {
    uint64_t bytes;
    struct str sha256;
};

/* The length of the file; never follows a link. BT_GONE: it is missing. BT_INVALID: it is no file.
 */
BT_MUST_CHECK enum bt_code artifact_stat(const char *root, const struct artifact_place *at,
                                         uint64_t *ret_bytes, struct bt_error *err);
/*
 * Opens the file at its beginning after its length and its checksum were compared. stop (may be
 * NULL) is asked now and then. BT_GONE: the file is missing. BT_INVALID: length or checksum differ.
 * BT_UNAUTHORIZED: a link, or no file. BT_CANCELLED: stopped.
 */
BT_MUST_CHECK enum bt_code artifact_open(const char *root, const struct artifact_place *at,
                                         const struct artifact_claim *claim,
                                         bool (*stop)(const void *self), const void *self,
                                         int *ret_fd, struct bt_error *err);
/*
 * At most cap bytes from offset on, unchecked: who has all of them compares the checksum. *ret_n is
 * 0 at the end of the file, and *ret_total its length. Errors as those of artifact_stat.
 */
BT_MUST_CHECK enum bt_code artifact_read_at(const char *root, const struct artifact_place *at,
                                            uint64_t offset, void *ret, size_t cap, size_t *ret_n,
                                            uint64_t *ret_total, struct bt_error *err);

/* ---- writing in parts ---- */
/*
 * A file that arrives in pieces: over connections that break, and over restarts of who receives it.
 * It gathers under a hidden name that its own name decides, so whoever opens it again goes on where
 * it ended; at the beginning when the disk did not keep what was there. One piece costs bounded
 * time: artifact_part_commit works through what was not hashed yet, and the bytes go to the disk
 * every few MiB.
 */
struct artifact_part;

/* dir: ROOT/PLAN. Errors as those of artifact_create. The caller ends it with artifact_part_close,
 * which keeps the bytes. */
BT_MUST_CHECK enum bt_code artifact_part_open(const char *dir, const char *file,
                                              struct artifact_part **ret, struct bt_error *err);
/* How many bytes are there. */
uint64_t artifact_part_bytes(const struct artifact_part *p);
/* Appends all of it or nothing. BT_UNAVAILABLE: the disk is full, or would be. BT_GONE: the plan
 * has ended. */
BT_MUST_CHECK enum bt_code artifact_part_add(struct artifact_part *p, const void *bytes, size_t len,
                                             struct bt_error *err);
/* Gives the file its name, when it has the checksum. *ret_done false: a part of the file was
 * hashed; call again. BT_INVALID: another checksum; nothing is left of the file. */
BT_MUST_CHECK enum bt_code artifact_part_commit(struct artifact_part *p, struct str sha256,
                                                bool *ret_done, struct bt_error *err);
/* Accepts NULL. */
void artifact_part_close(struct artifact_part *p);
#endif
