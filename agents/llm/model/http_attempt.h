/* One HTTP request to one model, and what its answer is worth. Private to the client. */
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
    struct buf refused;    /* the body of an answer that is no 2xx */
    struct buf recorded;   /* all bytes, while recording */
    struct buf model_text; /* all texts of the model in them, joined: a key may come in pieces */
    struct buf body;       /* the request */
    const struct llm_request *subscriber; /* who wants the text as it comes; or NULL */
    pthread_mutex_t lock; /* guards text_filter: the net's thread fills it, the asker empties it */
    struct text_filter text_filter;
    bool emitted; /* pieces were */
    bool recording_on;
    bool retryable;         /* when it failed: another try may help, as far as one can see here */
    size_t trailing;        /* bytes that came after the answer was whole */
    enum bt_code read_code; /* the first trouble with what came */
    struct bt_error read_err;
};

/* Makes the request, and waits. BT_OK: answer.text is the model's, cleaned and redacted. Else why
 * not, as a sentence without secrets; codes: BT_INVALID (the request, or a refusal: see
 * answer.finish), BT_UNAUTHORIZED, BT_NOT_FOUND, BT_BUSY, BT_UNAVAILABLE, BT_TIMEOUT, BT_PROTOCOL
 * (not understood, or empty), BT_LIMIT (cut off, too large), BT_CANCELLED, BT_NOMEM. recording may
 * be NULL. */
BT_MUST_CHECK enum bt_code http_attempt_run(struct attempt *a, const struct llm_config *config,
                                            const struct llm_provider *p,
                                            const struct dialect_request *ask, struct net *net,
                                            struct recording *recording, struct bt_error *err);
void http_attempt_done(struct attempt *a);
#endif
