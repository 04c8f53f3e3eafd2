/* Shared by server.c (connections), http.c (one request), answer.c and stream.c. */
#ifndef GATEWAY_SERVER_INTERNAL_H
#define GATEWAY_SERVER_INTERNAL_H

#include "supervisor/gateway/http.h"

/* server.c: the answer that h has leaves. */
enum MHD_Result server_respond(struct http *h);

/* answer.c */
void answer_take(void *http, const struct reply *reply);
/* Appends the text for a part of a path or query. */
void answer_encode(struct buf *out, struct str text);

/* stream.c: events by SSE or NDJSON, or one page of them. */
void stream_begin(struct http *h);
/* Submits a plan; the answer is its events in other words. */
void task_begin(struct http *h);
struct MHD_Response *stream_response(struct stream *st);
void stream_free(struct stream *st);
void streams_run(struct server *s, msec now);
msec streams_deadline(const struct server *s, msec now);
#endif
