/*
 * libbaton: submits plans to a Baton supervisor, waits for them, and reads their events, live and
 * past.
 *
 * One thread at a time uses a client. A function blocks at most for its timeout. Times are in
 * milliseconds. JSON texts returned through char ** belong to the caller, who frees them with
 * bt_free(). Errors: BT_UNAVAILABLE when the daemon cannot be reached. BT_TIMEOUT when it did not
 * answer in time; the outcome is then unknown, so submit again with the same client_key. Else the
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
 * Connects through a state directory, which has endpoints.json and token. state_dir NULL =
 * BATON_STATE, else ./.baton when it is a directory of this user with mode 0700, else
 * $XDG_STATE_HOME/baton, else ~/.local/state/baton. The client reads both files again when the
 * daemon has moved. The caller frees *ret with bt_client_close.
 */
BT_API BT_MUST_CHECK enum bt_code bt_client_open(const char *state_dir, struct bt_client **ret,
                                                 struct bt_error *err);
/* A daemon on another host: everything is needed. The strings are borrowed for the call. */
struct bt_connection {
    /* tls+tcp://HOST:PORT, `listen.remote` of the daemon; of a fleet those of all, separated by
     * commas, at most 8: the next one is tried when one does not answer */
    const char *url;
    const char *credential; /* the file of a credential, readable by its owner only */
    const char *ca;         /* the authority that signed the daemon's certificate */
    const char *cert;       /* this side's certificate and key in one file, likewise private */
};

/* Connects to a daemon on another host. Dials in the first call; until then only files are checked.
 * Events are read by requests that wait, not received. The caller frees *ret with
 * bt_client_close. */
BT_API BT_MUST_CHECK enum bt_code bt_client_connect(const struct bt_connection *to,
                                                    struct bt_client **ret, struct bt_error *err);
/*
 * Proves each request by the credential in the file (`baton credential add`), and sends no token.
 * BATON_CREDENTIAL=FILE does the same when a client is opened. BT_UNAUTHORIZED: the file belongs to
 * another user, others may read it, or the credential has expired; BT_INVALID: it is damaged. Since
 * the daemon proves itself as well, a request returns BT_UNAUTHORIZED when another program has its
 * address.
 */
BT_API BT_MUST_CHECK enum bt_code bt_client_credential(struct bt_client *c, const char *file,
                                                       struct bt_error *err);
/* Accepts NULL. */
BT_API void bt_client_close(struct bt_client *c);
/* Sets the timeout of all further requests; 0 = the default of 10,000. */
BT_API void bt_client_timeout(struct bt_client *c, uint32_t timeout_ms);
/* Names the program in `by` of review.decide and session.say, beside user and host ("baton
 * approve"); NULL or "" = the library. */
BT_API void bt_client_via(struct bt_client *c, const char *via);
BT_API void bt_free(void *p);

/*
 * Sends any request of the protocol: its type ("plan.list") and its fields as a JSON object (NULL =
 * none). *ret_json is the answer's object. After an error answer it is the error object {code,
 * class, message, details, ...}, else NULL. ret_json may be NULL.
 */
BT_API BT_MUST_CHECK enum bt_code bt_client_call(struct bt_client *c, const char *type,
                                                 const char *fields_json, char **ret_json,
                                                 struct bt_error *err);

struct bt_submit {
    const char *goal;        /* a goal for the planner, or */
    const char *plan_json;   /* a plan */
    const char *session_id;  /* may be NULL */
    const char *planner;     /* NULL = the daemon's */
    const char *client_key;  /* same key = same plan; NULL = the library makes one, and repeats with
                                it after a timeout */
    const char *policy_json; /* may be NULL */
    const char *constraints_json; /* a list of strings for the planner; may be NULL */
    bool dry_run;                 /* make and check the plan, execute nothing */
    bool lenient;                 /* unknown fields of the plan are warnings, if they can be */
};

enum { BT_ID_LEN = 36 };

/* Submits a plan. On success *ret_json (when not NULL) is the whole answer. BT_INVALID: the plan
 * has problems, and *ret_json holds {problems: [...]}. BT_TIMEOUT and BT_UNAVAILABLE are repeated
 * with the same key, three attempts in all. */
BT_API BT_MUST_CHECK enum bt_code bt_submit(struct bt_client *c, const struct bt_submit *s,
                                            char ret_plan_id[BT_ID_LEN + 1], char **ret_json,
                                            struct bt_error *err);

/* What became of one plan of several. */
struct bt_submitted {
    struct bt_error err;         /* err.code is BT_OK: it was accepted */
    char plan_id[BT_ID_LEN + 1]; /* "" when it was not */
    char *json; /* as of bt_submit, for bt_free; NULL = nobody answered about this plan */
};

/*
 * Submits n plans, each accepted or refused by itself, in requests of up to 64 plans and 1 MiB:
 * cheaper than one by one. results: n of them, filled in always; free each json. Returns BT_OK when
 * all were accepted, else the error of the first that was not, with its place in the list from 1
 * on. Plans are submitted in order, those of different shards of a fleet in any. A plan without
 * client_key gets one; what BT_TIMEOUT and BT_UNAVAILABLE leave open is repeated as by bt_submit,
 * three attempts in all; after those the plans that would go to the same place are not sent. A
 * daemon that knows no such request gets them one by one.
 */
BT_API BT_MUST_CHECK enum bt_code bt_submit_many(struct bt_client *c, const struct bt_submit *plans,
                                                 size_t n, struct bt_submitted *results,
                                                 struct bt_error *err);
/* Waits until the plan has ended. *ret_json is the answer of plan.result. timeout_ms 0 = for ever.
 * BT_TIMEOUT: the plan continues. */
BT_API BT_MUST_CHECK enum bt_code bt_wait(struct bt_client *c, const char *plan_id,
                                          uint32_t timeout_ms, char **ret_json,
                                          struct bt_error *err);
BT_API BT_MUST_CHECK enum bt_code bt_cancel(struct bt_client *c, const char *plan_id,
                                            const char *reason, struct bt_error *err);

/*
 * Gets an artifact of a plan from the daemon, wherever that is: uri, bytes and sha256 as
 * plan.result lists them. Appends to the file fd what it does not have yet, so a transfer that
 * broke goes on; then it is at its beginning. Waits through a broken line for half a minute,
 * whatever the timeout is. BT_GONE: the daemon does not keep it any more. BT_INVALID: length or
 * checksum differ; the file is then empty.
 */
BT_API BT_MUST_CHECK enum bt_code bt_client_artifact(struct bt_client *c, const char *uri,
                                                     uint64_t bytes, const char *sha256, int fd,
                                                     struct bt_error *err);

/* One event as a JSON object; valid until the next call on the watch. */
struct bt_event {
    uint64_t seq;
    const char *type;
    const char *plan_id; /* "" for agent and system events */
    const char *json;    /* of a fleet of several shards with `shard`: seq is a number of it */
};

struct bt_watch;

/*
 * Delivers every event with seq > after (UINT64_MAX = only new ones) once, in order, without gaps.
 * They are read with events.read, which waits in the daemon for the next one. plan_id NULL = all
 * plans. A client has one watch at a time (BT_CONFLICT). Close it with bt_watch_close before
 * the client.
 */
BT_API BT_MUST_CHECK enum bt_code bt_watch_open(struct bt_client *c, const char *plan_id,
                                                uint64_t after, struct bt_watch **ret,
                                                struct bt_error *err);
/* The same for all plans, after a vector: the last number of each shard of a fleet, "S0=12;S3=40",
 * best with the eventId of that event, "S0=12:ID;S3=40:ID", as bt_watch_cursor gives it; one daemon
 * is S0. A shard that it does not name begins at its first event; what is no vector of this fleet
 * is BT_INVALID. bt_watch_open without plan_id merges the shards by time, and takes only 0 and
 * UINT64_MAX there. */
BT_API BT_MUST_CHECK enum bt_code bt_watch_open_after(struct bt_client *c, const char *vector,
                                                      struct bt_watch **ret, struct bt_error *err);
/* Whether each shard has answered, and all that they had was returned. */
BT_API bool bt_watch_is_current(const struct bt_watch *w);
/* The vector of what was returned so far; 4096 bytes are enough. Without the eventIds when they do
 * not fit. */
BT_API void bt_watch_cursor(const struct bt_watch *w, char *ret, size_t cap);
/* How many shards the fleet has: 1 without one. */
BT_API BT_MUST_CHECK enum bt_code bt_client_shards(struct bt_client *c, uint32_t *ret,
                                                   struct bt_error *err);
/* Returns the next event. BT_TIMEOUT when none came within timeout_ms. BT_UNAVAILABLE when the
 * daemon has been silent for 15 s. BT_HISTORY_CHANGED, once, when events that were returned are not
 * in the journal any more, because a failover lost them: err says from which number the next call
 * goes on; what was learned from events after it does not count. */
BT_API BT_MUST_CHECK enum bt_code bt_watch_next(struct bt_watch *w, uint32_t timeout_ms,
                                                struct bt_event *ret, struct bt_error *err);
/* Returns how many events the watch has delivered. */
BT_API uint64_t bt_watch_filled(const struct bt_watch *w);
BT_API void bt_watch_close(struct bt_watch *w);

BT_API const char *bt_version(void);

#ifdef __cplusplus
}
#endif
#endif
