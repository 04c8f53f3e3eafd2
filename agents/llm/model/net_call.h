/* One transfer, as the net thread sees it. Used by net*.c. */
#ifndef LLM_NET_CALL_H
#define LLM_NET_CALL_H

#include <curl/curl.h>

#include "agents/llm/model/net.h"

enum net_end_reason {
    NET_RUNNING,
    NET_ENOUGH,
    NET_TOO_MUCH,
    NET_LONG_HEADERS,
    NET_IDLE,
    NET_LATE,
    NET_STOPPED
};

struct net_call {
    const struct net_spec *spec; /* lives on the stack of the waiting caller */
    struct net_answer *answer;
    CURL *easy;
    struct curl_slist *headers;
    char reason[CURL_ERROR_SIZE];
    msec last_byte_at; /* time of the last byte */
    size_t header_bytes;
    enum net_end_reason end_reason; /* why the thread ended it */
    bool refused;                   /* the address is not allowed */
    CURLcode result;
    bool finished; /* below: guarded by the net's lock */
    bool stop;
    struct net_call *next;
};

/* Makes the handle. The caller frees with net_call_done. */
BT_MUST_CHECK enum bt_code net_call_init(struct net_call *c, const struct net_spec *spec,
                                         struct net_answer *answer, struct bt_error *err);
void net_call_done(struct net_call *c);
/* The result of a finished call. */
BT_MUST_CHECK enum bt_code net_call_verdict(const struct net_call *c, struct bt_error *err);
#endif
