/*
 * libbaton: submit plans to a Baton supervisor, wait for them, watch the bus, read the story again.
 *
 * A client is used by one thread at a time. Functions block at most for their timeout. Times are
 * milliseconds. JSON texts returned through char ** belong to the caller: free them with bt_free().
 * Errors: BT_UNAVAILABLE when the daemon cannot be reached, BT_TIMEOUT when it did not answer in
 * time (the outcome is then unknown: submit again with the same client_key), otherwise the
 * supervisor's own code and sentence.
 */
#ifndef BATON_CLIENT_H
#define BATON_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "baton/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bt_client;

/*
 * Connects through a state directory: its endpoints.json and token. state_dir NULL = BATON_STATE,
 * else $XDG_STATE_HOME/baton, else ~/.local/state/baton. Reads them again by itself when the daemon
 * has moved.
 */
BT_API BT_MUST_CHECK enum bt_code bt_client_open(const char *state_dir, struct bt_client **ret,
                                                 struct bt_error *err);
/* Accepts NULL. */
BT_API void bt_client_close(struct bt_client *c);
/* For every request that follows; default 10,000. */
BT_API void bt_client_timeout(struct bt_client *c, uint32_t timeout_ms);
BT_API void bt_free(void *p);

/*
 * Any request of the protocol: type ("plan.list"), the fields as a JSON object (NULL = none);
 * *ret_json is the answer's object. On a refusal *ret_json (when not NULL) is the error object
 * {code, class, message, details, ...}, else NULL.
 */
BT_API BT_MUST_CHECK enum bt_code bt_client_call(struct bt_client *c, const char *type,
                                                 const char *fields_json, char **ret_json,
                                                 struct bt_error *err);

struct bt_submit {
    const char *goal;        /* a goal for the planner, or */
    const char *plan_json;   /* a plan */
    const char *session_id;  /* may be NULL */
    const char *planner;     /* NULL = the daemon's */
    const char *client_key;  /* same key = same plan; NULL = the library makes one and repeats with
                                it after a timeout */
    const char *policy_json; /* may be NULL */
    const char *constraints_json; /* a list of strings for who makes the plan; may be NULL */
    bool dry_run;                 /* make and check the plan, run nothing */
};

enum { BT_ID_LEN = 36 };

/* BT_INVALID: the plan has problems; *ret_json (when not NULL) then holds {problems: [...]}, else
 * the whole answer. */
BT_API BT_MUST_CHECK enum bt_code bt_submit(struct bt_client *c, const struct bt_submit *s,
                                            char ret_plan_id[BT_ID_LEN + 1], char **ret_json,
                                            struct bt_error *err);
/* Waits until the plan is final: *ret_json = the answer of plan.result. timeout_ms 0 = for ever. */
BT_API BT_MUST_CHECK enum bt_code bt_wait(struct bt_client *c, const char *plan_id,
                                          uint32_t timeout_ms, char **ret_json,
                                          struct bt_error *err);
BT_API BT_MUST_CHECK enum bt_code bt_cancel(struct bt_client *c, const char *plan_id,
                                            const char *reason, struct bt_error *err);

/* One event, as its JSON object; valid until the next call on the watch. */
struct bt_event {
    uint64_t seq;
    const char *type;
    const char *plan_id; /* "" for agent and system events */
    const char *json;
};

struct bt_watch;

/*
 * Every event with seq > after (UINT64_MAX = only new ones), each once, in order, without gaps:
 * replayed by events.read, then live from the bus; what the bus drops is read again. plan_id NULL =
 * all plans.
 */
BT_API BT_MUST_CHECK enum bt_code bt_watch_open(struct bt_client *c, const char *plan_id,
                                                uint64_t after, struct bt_watch **ret,
                                                struct bt_error *err);
/* Next event; BT_TIMEOUT when none came within timeout_ms. */
BT_API BT_MUST_CHECK enum bt_code bt_watch_next(struct bt_watch *w, uint32_t timeout_ms,
                                                struct bt_event *ret, struct bt_error *err);
/* How many events were filled in by replay because the bus had dropped them. */
BT_API uint64_t bt_watch_filled(const struct bt_watch *w);
BT_API void bt_watch_close(struct bt_watch *w);

BT_API const char *bt_version(void);

#ifdef __cplusplus
}
#endif
#endif
