/* One HTTP request to one model, and the classification of its outcome. Used by provider_call.c. */
#ifndef LLM_HTTP_ATTEMPT_H
#define LLM_HTTP_ATTEMPT_H

#include <pthread.h>

#include "agents/llm/model/config.h"
#include "agents/llm/model/dialect.h"
#include "agents/llm/model/net.h"
#include "agents/llm/model/recording.h"
#include "agents/llm/model/stream.h"
#include "agents/llm/model/text_filter.h"

enum { ATTEMPT_ERROR_BODY = 64 * 1024 };

struct attempt {
    const struct llm_provider *provider;
    struct dialect_answer answer;
    struct stream stream;
    struct net_answer http;
    struct buf refused;    /* the body of a response that is not 2xx */
    struct buf recorded;   /* all bytes, while recording */
    struct buf model_text; /* all texts of the model, joined: a key may be split over chunks */
    struct buf body;       /* of the request */
    const struct llm_request *subscriber; /* receives the text as it arrives; or NULL */
    pthread_mutex_t lock; /* guards text_filter: the net thread fills it, the caller empties it */
    struct text_filter text_filter;
    bool emitted; /* the subscriber has received pieces */
    bool recording_on;
    bool retryable;         /* of a failure: a retry may help, as far as this request shows */
    size_t trailing;        /* bytes after the complete answer */
    enum bt_code read_code; /* the first error in reading the response */
    struct bt_error read_err;
};

/* Makes the request and waits. BT_OK: answer.text is the model's text, cleaned and redacted.
 * Otherwise an error without secrets: BT_INVALID (the request, or a refusal: see answer.finish),
 * BT_UNAUTHORIZED, BT_NOT_FOUND, BT_BUSY, BT_UNAVAILABLE, BT_TIMEOUT, BT_PROTOCOL (unreadable, or
 * empty), BT_LIMIT (cut off, too large), BT_CANCELLED, BT_NOMEM. recording may be NULL. */
BT_MUST_CHECK enum bt_code http_attempt_run(struct attempt *a, const struct llm_config *config,
                                            const struct llm_provider *p,
                                            const struct dialect_request *ask, struct net *net,
                                            struct recording *recording, struct bt_error *err);
void http_attempt_done(struct attempt *a);
#endif
