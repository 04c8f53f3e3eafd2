/*
 * One step of the http agent while it runs: its requests and what they came to. Everything here
 * belongs to the worker thread of the step; only the rate and the token of the settings are shared.
 */
#ifndef HTTP_CALL_H
#define HTTP_CALL_H

#include "agents/http/settings.h"

struct http_call {
    struct http_settings *s;
    const struct http_action *action;
    struct bt_step *step;
    struct doc params;
    msec began;
    msec deadline;
    const char *const *headers; /* NULL-terminated */
    struct buf body;
    struct web_response response;
    struct bt_artifact *artifact; /* takes the body; NULL = the response has it */
    struct bt_error artifact_error;
    uint32_t requests;
    uint32_t items; /* of all pages */
};

/* Waits for the next place within the rate. False when the step was cancelled or its time ends
 * before. */
bool http_rate_wait(struct http_rate *rate, struct bt_step *step, msec deadline);
/* Sleeps in pieces; false as above. */
bool http_pause(struct bt_step *step, msec until, msec deadline);
/*
 * The secret headers of a request into ret (2 of them, NULL-terminated), in the arena. OAuth2 asks
 * for a token first when there is none that is valid; anew drops the one that a service rejected.
 */
BT_MUST_CHECK enum bt_code http_auth_headers(struct http_call *c, struct arena *a, bool anew,
                                             const char *ret[2], struct bt_error *err);
/* Replaces the secrets in a text that a service sent. */
void http_redact(struct http_settings *s, struct buf *text);
/* Sends the request, again when that is harmless and may help. True: the response has a status
 * below 300. False: the step has failed with a reason. */
bool http_send(struct http_call *c, const char *url);
/* All pages of a list, from the first address; replies. */
void http_walk(struct http_call *c, const char *url);
/* Fails the step: for an answer with a status from 300, and for a request without an answer. */
void http_fail_status(struct http_call *c, uint64_t retry_after_ms);
void http_fail_call(struct http_call *c, const struct bt_error *err);
/* Whether the request may be sent again although it may have had its effects. */
bool http_is_repeatable(const struct http_call *c);
/* The body as a document. Fails the step when it is no JSON. */
bool http_read_json(struct http_call *c, struct buf *ret);
/* The handler of every skill. */
void http_run(struct bt_step *step, void *self);
#endif
