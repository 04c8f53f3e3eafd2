/*
 * The settings of the http agent: an API and an allow-list of actions, each of them a skill. Hosts,
 * methods, paths and headers are fixed; a step only fills in values.
 */
#ifndef HTTP_SETTINGS_H
#define HTTP_SETTINGS_H

#include <pthread.h>

#include "agents/sdk/settings/fields.h"
#include "agents/web/web.h"
#include "baton/agent.h"
#include "protocol/base/arena.h"

enum {
    HTTP_LIST_MAX = 64,
    HTTP_HEADERS_MAX = 32,
    HTTP_PAGES_MAX = 1000,
    HTTP_ITEMS_MAX = 100000,
    HTTP_RETRIES_MAX = 10,
    HTTP_RATE_MAX = 1000,
    HTTP_TOKEN_MAX = 8192,
    HTTP_PATH_MAX = 4096
};

enum http_auth_kind {
    HTTP_AUTH_NONE,
    HTTP_AUTH_BEARER,
    HTTP_AUTH_BASIC,
    HTTP_AUTH_HEADER,
    HTTP_AUTH_OAUTH2
};

struct http_auth {
    enum http_auth_kind kind;
    const char *secret;    /* borrowed from the secrets: token, password, client secret */
    const char *user;      /* basic; of oauth2 the client's id */
    const char *header;    /* HTTP_AUTH_HEADER: its name */
    const char *prefix;    /* "" = none: before the value of the header */
    const char *token_url; /* oauth2, the rest, too; NULL = not given */
    const char *scope;
    const char *audience;
    bool in_body; /* the client's id and secret go in the form instead of a header */
};

enum http_pages_kind {
    HTTP_PAGES_NONE,
    HTTP_PAGES_LINK,   /* the header Link, rel=next (RFC 8288) */
    HTTP_PAGES_NEXT,   /* an address in the body, at `from` */
    HTTP_PAGES_CURSOR, /* a text in the body, at `from`, goes into the query as `param` */
    HTTP_PAGES_NUMBER, /* `param` counts pages, from `first`, until one is empty */
    HTTP_PAGES_OFFSET  /* `param` counts items, from `first`, until a page is empty */
};

struct http_pages {
    enum http_pages_kind kind;
    const char *items; /* JSON pointer to the list of a page; "" = the whole body */
    const char *from;
    const char *param;
    uint64_t first;
    uint32_t max; /* pages */
};

enum http_output { HTTP_OUT_AUTO, HTTP_OUT_JSON, HTTP_OUT_TEXT, HTTP_OUT_ARTIFACT, HTTP_OUT_COUNT };

struct http_action {
    const char *id;
    const char *name;
    const char *description;
    const char *const *tags;
    const char *const *examples;
    const char *input_schema; /* JSON */
    const char *effects;
    const char *method;
    const char *path; /* template, from "/" */
    struct doc query; /* maps of templates; .ptr NULL = none */
    struct doc headers;
    struct doc form;
    struct doc body; /* any value whose texts are templates */
    enum http_output output;
    const char *result;    /* JSON pointer; NULL = the whole body */
    struct doc result_map; /* name → JSON pointer, instead of `result` */
    struct doc fields;     /* name → JSON pointer: what is kept of the result, or of each item */
    struct http_pages pages;
    const char *key_header; /* gets the idempotency key; NULL = none */
    uint64_t timeout_ms;    /* 0 = that of all */
};

/* The last times of requests, so that no more than n begin within per_ms. */
struct http_rate {
    pthread_mutex_t lock;
    uint32_t n; /* 0 = no limit */
    uint64_t per_ms;
    msec *at; /* n of them, a ring */
    uint32_t next;
};

struct http_settings {
    struct arena arena;
    struct secrets secrets;
    const char *agent_id; /* NULL = not given */
    const char *base_url; /* without a slash at its end */
    struct doc headers;   /* of every request: name → text */
    struct http_auth auth;
    struct web_policy policy;
    uint64_t timeout_ms;
    size_t max_bytes;
    uint32_t retries;
    struct http_rate rate;
    pthread_mutex_t token_lock; /* guards the token of oauth2 */
    char token[HTTP_TOKEN_MAX];
    msec token_until;
    struct http_action *actions;
    uint32_t n;
};

/* Reads the settings' JSON, and the OpenAPI file that they name. BT_INVALID names the member and
 * what would be right. Secrets are loaded by secrets_load. The caller frees. */
BT_MUST_CHECK enum bt_code http_settings_read(const char *json, struct http_settings **ret,
                                              struct bt_error *err);
/* Wipes secrets. Accepts NULL. */
void http_settings_free(struct http_settings *s);
/* The action of that id; the only one when the id is empty; NULL when there is none. */
const struct http_action *http_settings_find(const struct http_settings *s, const char *id);

/* BT_INVALID for a name that is no token (RFC 9110, 5.6.2) or that the client sets itself (Host,
 * Content-Length ...), and for a value with control characters. */
BT_MUST_CHECK enum bt_code http_header_check(struct str name, struct str value,
                                             struct bt_error *err);

/* ---- parts of the reader ---- */

/* One entry of `actions`. */
BT_MUST_CHECK enum bt_code http_action_read(struct arena *a, struct doc map,
                                            struct http_action *ret, struct bt_error *err);
/* The skill's schema of an action whose settings have none: a parameter for each placeholder, and
 * `limit` when it has pages. */
BT_MUST_CHECK enum bt_code http_action_schema(struct arena *a, struct http_action *action,
                                              struct bt_error *err);
/* GET and HEAD: none. PUT and DELETE: idempotent. Others: unsafe. */
const char *http_effects_of(const char *method);
BT_MUST_CHECK enum bt_code http_pages_read(struct arena *a, struct doc map, struct http_pages *ret,
                                           struct bt_error *err);
/* Whether the action replaces the name itself, anywhere in its templates. */
bool http_action_uses(const struct http_action *action, const char *name);
/* Adds the operations of an OpenAPI 3 document to the actions: those whose operationId or "METHOD
 * /path" fits one of the globs (NULL = all). BT_LIMIT over LIMIT_SKILLS. */
BT_MUST_CHECK enum bt_code http_openapi_add(struct http_settings *s, struct doc spec,
                                            const char *const *globs, struct bt_error *err);
#endif
