/* Shared by the files of libbaton. */
#ifndef CLIENT_CLIENT_INTERNAL_H
#define CLIENT_CLIENT_INTERNAL_H

#include "baton/client.h"
#include "protocol/client/credential.h"
#include "protocol/client/exchange.h"
#include "protocol/client/state.h"
#include "protocol/link/link.h"
#include "protocol/wire/msg.h"

/* A restarting daemon is waited for. One that is silent for this long counts as gone. */
enum { CLIENT_GONE_MS = 15000 };

/* Limits for the JSON of any answer. It is longer than the msgpack that it came as, which had its
 * own caps. */
extern const struct json_limits client_json_limits;

struct client_remote;

struct bt_client {
    struct link *link;
    struct link_lane *lane; /* NULL = dial before the next request */
    bool lane_fell;         /* its connection ended: it is not used again */
    struct state_endpoints at;
    struct bt_watch *watch; /* NULL = none is open */
    uint32_t timeout_ms;
    uint64_t requests; /* each has an id of its own, which its answer repeats */
    char dir[4096];
    char token[STATE_TOKEN_LEN + 1]; /* "" with a credential: it is not even read */
    struct exchange credential;
    struct client_remote *remote; /* a daemon on another host; NULL = by the state directory */
    char via[64];                 /* bt_client_via; "" = the library */
    /* a fleet of several shards (shards.c) */
    struct client_shards *shards;   /* NULL: nothing is known of others */
    char pinned[STATE_URL_MAX + 1]; /* of the client of one shard: it stays there; "" = none */
};

/* The addresses of a daemon that may be dialed; its token, and whom the link may talk to. */
BT_MUST_CHECK enum bt_code client_find_daemon(struct bt_client *c, struct state_endpoints *ret,
                                              struct bt_error *err);
/* The id of the next request. */
enum { CLIENT_ID_BYTES = 24 };
struct str client_next_id(struct bt_client *c, char ret[CLIENT_ID_BYTES]);
/* Sends one body as it is and waits for one answer, which the caller frees with link_msg_free. */
BT_MUST_CHECK enum bt_code client_send(struct bt_client *c, const struct buf *request,
                                       uint32_t timeout_ms, struct link_msg **ret,
                                       struct bt_error *err);
/* The same, sealed when the client has a credential. *ret_body is in *ret, and it answers this
 * request. */
BT_MUST_CHECK enum bt_code client_exchange_here(struct bt_client *c, const struct buf *request,
                                                uint32_t timeout_ms, struct link_msg **ret,
                                                struct str *ret_body, struct bt_error *err);
/* The same, with the shard of the fleet that the request is for: follows MOVED, waits while nobody
 * leads it, and remembers where it is. */
BT_MUST_CHECK enum bt_code client_exchange(struct bt_client *c, const struct buf *request,
                                           uint32_t timeout_ms, struct link_msg **ret,
                                           struct str *ret_body, struct bt_error *err);
/* Takes the credential that BATON_CREDENTIAL names, if it does. */
BT_MUST_CHECK enum bt_code client_find_credential(struct bt_client *c, struct bt_error *err);
BT_MUST_CHECK enum bt_code client_call_for(struct bt_client *c, const char *type,
                                           const char *fields_json, uint32_t timeout_ms,
                                           char **ret_json, struct bt_error *err);
/* remote.c: a daemon on another host. client_remote_dial reads its secret, and dials unless there
 * is a lane. */
BT_MUST_CHECK enum bt_code client_remote_dial(struct bt_client *c, struct bt_error *err);
void client_remote_free(struct bt_client *c);
/* Of several addresses: whether the one that is dialed has had its time; takes the next one. */
bool client_remote_is_late(const struct bt_client *c);
void client_remote_next(struct bt_client *c);
bool client_remote_several(const struct bt_client *c);
/* How many other addresses there are to ask whether another node leads: 0 when they were asked a
 * moment ago, and none did. */
uint32_t client_remote_others(const struct bt_client *c);
void client_remote_none_leads(struct bt_client *c);
/* client.c: the next address, over another lane. */
void client_leave(struct bt_client *c);
/* Why it may be that nothing answers. */
extern const char client_remote_silence[];
BT_MUST_CHECK enum bt_code client_remote_like(const struct bt_client *from, const char *url,
                                              struct bt_client *to, struct bt_error *err);
/* shards.c */
/* What the client knows of other shards is asked again. */
void client_shards_forget(struct bt_client *c);
/* How many shards the fleet has; 1 without a fleet, or with a daemon that knows none. */
BT_MUST_CHECK enum bt_code client_shards_count(struct bt_client *c, uint32_t *ret,
                                               struct bt_error *err);
/* The client of one shard, asked again for its address; it belongs to c. BT_UNAVAILABLE: nobody
 * leads it now. */
BT_MUST_CHECK enum bt_code client_shard(struct bt_client *c, uint32_t shard, struct bt_client **ret,
                                        struct bt_error *err);
/* Whether such a request may be for all shards; then its fields decide. */
bool client_may_be_for_all(const char *type);
/* Whether the request is for all shards of the fleet, and they are more than one; then
 * client_merge asks all. */
BT_MUST_CHECK enum bt_code client_is_for_all(struct bt_client *c, const char *type,
                                             struct doc fields, uint32_t *ret_shards,
                                             struct bt_error *err);
/* merge.c: one answer from those of all shards. */
BT_MUST_CHECK enum bt_code client_merge(struct bt_client *c, uint32_t shards, const char *type,
                                        struct doc fields, uint32_t timeout_ms, char **ret_json,
                                        struct bt_error *err);
/* client.c: the same without a look at other shards. */
BT_MUST_CHECK enum bt_code client_call_here(struct bt_client *c, const char *type,
                                            const char *fields_json, uint32_t timeout_ms,
                                            char **ret_json, struct bt_error *err);
/* client.c: sends a request with these fields (a map, or nothing) and gives the answer as it came,
 * which lies in *ret; the caller frees that with link_msg_free, also when it is not NULL after a
 * failure. */
BT_MUST_CHECK enum bt_code client_ask(struct bt_client *c, const char *type, struct doc fields,
                                      uint32_t timeout_ms, struct link_msg **ret,
                                      struct str *ret_body, struct bt_error *err);
/* plans.c: the fields of plan.submit as a map; appends. */
BT_MUST_CHECK enum bt_code client_put_submit(const struct bt_submit *s, const char *key,
                                             struct buf *out, struct bt_error *err);
/* Connects within that time. BT_UNAVAILABLE: it could not. */
BT_MUST_CHECK enum bt_code client_reach(struct bt_client *c, uint32_t ms, struct bt_error *err);
/* client.c: a client that has not dialed yet. */
BT_MUST_CHECK enum bt_code client_new(struct bt_client **ret, struct bt_error *err);
/* Appends {user, host, via}. */
void client_put_by(const struct bt_client *c, struct buf *out);
/* Waits until that moment, and keeps what the connection says meanwhile. */
void client_pause(struct bt_client *c, msec until);
#endif
