/*
 * The audit: who was refused, who decided, who administered; one JSON line each in
 * STATE/audit/audit.jsonl (0600, the directory 0700). A line is on the disk before the answer to
 * the request leaves. Files are rotated, and the oldest removed: `baton audit` reads all of them,
 * also without a daemon. One thread.
 *
 *     {"at": "2026-11-23T21:44:00.123Z", "topic": "system/audit", "kind": "decision",
 *      "type": "review.decide", "by": "ann", "role": "reviewer", "peer": "127.0.0.1:4711",
 *      "about": "PLAN/step/r1", "outcome": "OK", "text": "approve"}
 */
#ifndef AUDIT_AUDIT_H
#define AUDIT_AUDIT_H

#include "protocol/base/err.h"
#include "protocol/base/msec.h"
#include "protocol/base/str.h"

enum {
    /* A file that is larger is rotated; so many rotated ones are kept, none older than this. */
    AUDIT_FILE_BYTES = 4 * 1024 * 1024,
    AUDIT_FILES = 16,
    AUDIT_KEEP_DAYS = 90,
    /* Refusals: at once, and a second from then on. What is more is counted, and the count
     * written: strangers must not fill the disk. */
    AUDIT_REFUSALS = 50,
    AUDIT_REFUSALS_PER_S = 2
};

enum audit_kind {
    AUDIT_HANDSHAKE,  /* a sender that did not prove itself */
    AUDIT_REFUSED,    /* its role, or its globs, do not allow it */
    AUDIT_DECISION,   /* of a review */
    AUDIT_ADMIN,      /* a request that needs the role admin, or changes what is another's */
    AUDIT_CREDENTIAL, /* credentials were read again */
    AUDIT_KIND_COUNT
};

struct audit_entry {
    enum audit_kind kind;
    struct str type;     /* of the request */
    struct str by, role; /* the credential */
    struct str peer;
    struct str about;    /* the plan, review, session, agent or file */
    const char *outcome; /* OK, or the code of the refusal */
    struct str text;
};

struct audit;

/* Makes the directory. A file that ends in the middle of a line gets a line end. */
BT_MUST_CHECK enum bt_code audit_open(const char *state_dir, msec wall, struct audit **ret,
                                      struct bt_error *err);
void audit_close(struct audit *a);
/* Adds a line. Invalid UTF-8 is repaired, long texts are cut. a may be NULL. A disk that is full
 * costs the line, not the request: what was lost is counted, and logged. */
void audit_add(struct audit *a, msec now, msec wall, const struct audit_entry *e);
/* Before the answers of a cycle leave: the lines are on the disk. */
void audit_sync(struct audit *a, msec now, msec wall);

const char *audit_kind_name(enum audit_kind kind);
#endif
