/* One request and its answer, without redirects: what call.c and call_setup.c share. */
#ifndef WEB_CALL_INTERNAL_H
#define WEB_CALL_INTERNAL_H

#include <curl/curl.h>

#include "agents/web/web.h"

enum web_end { WEB_RUNNING, WEB_TOO_MUCH, WEB_LONG_HEADERS, WEB_IDLE, WEB_STOPPED, WEB_REFUSED };

struct exchange {
    const struct web_policy *policy;
    const struct web_request *request;
    struct web_response *response;
    const char *url;
    const char *method;
    bool with_body;
    bool with_secrets;
    msec deadline;
    CURL *easy;
    struct curl_slist *headers;
    msec last_byte;
    size_t taken;
    enum web_end end;
    char reason[CURL_ERROR_SIZE];
};

/* A handle with all options. BT_NOMEM. The caller frees with exchange_done, also after a failure.
 */
BT_MUST_CHECK enum bt_code exchange_setup(struct exchange *x, struct bt_error *err);
void exchange_done(struct exchange *x);
#endif
