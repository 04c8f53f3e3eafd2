/*
 * Errors of both public libraries.
 *
 * A function that can fail returns `enum bt_code` (BT_OK is 0) and takes a `struct bt_error *`
 * last. The error lives on the caller's stack and may be NULL. It is never allocated, so reporting
 * an error cannot fail. The code decides what the caller can do. The sentence names what was wrong,
 * where, and what would be right.
 */
#ifndef BATON_ERROR_H
#define BATON_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define BT_MUST_CHECK __attribute__((warn_unused_result))
#define BT_API __attribute__((visibility("default")))
#else
#define BT_PRINTF(fmt, args)
#define BT_MUST_CHECK
#define BT_API
#endif

/* From protocol/errors.def; spelled out here so that the installed header needs no other file. */
enum bt_code {
    BT_OK = 0,
    BT_INVALID,      /* the request is wrong; the message says what would be right; do not retry */
    BT_UNAUTHORIZED, /* token or session key missing or wrong */
    BT_NOT_FOUND,    /* no such plan, step, agent, blob */
    BT_CONFLICT,     /* same key with another body, stale revision, already final */
    BT_LIMIT,        /* a configured cap was hit: size, depth, count */
    BT_BUSY,         /* try again later, see retryAfterMs */
    BT_TIMEOUT,      /* no answer in time; the outcome is unknown */
    BT_UNAVAILABLE,  /* the daemon, an agent or the storage cannot be reached */
    BT_GONE,         /* it existed, and has ended */
    BT_CANCELLED,    /* stopped on request */
    BT_PROTOCOL,     /* the peer sent something that the protocol forbids */
    BT_NOMEM,        /* out of memory */
    BT_IO,           /* the operating system returned an error; its text is in the message */
    BT_INTERNAL,     /* a defect in Baton */
    BT_MOVED,        /* another shard of the fleet has it */
    BT_HISTORY_CHANGED, /* events that were read are not in the journal any more: read again */
    BT_CODE_COUNT
};

enum { BT_ERROR_MSG_MAX = 512 };

struct bt_error {
    enum bt_code code;
    char msg[BT_ERROR_MSG_MAX];
};

/* Returns the wire name of a code ("NOT_FOUND"); never NULL; valid for ever. Thread-safe. */
BT_API const char *bt_code_name(enum bt_code code);

#ifdef __cplusplus
}
#endif
#endif
