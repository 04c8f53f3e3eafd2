/*
 * A stream in the words of another system (protocol/compat). Each has a translator of its own,
 * which has state: a plan is read from its first event on, also for a client that comes back, and
 * what the client has is not sent again. Of a plan that began before a stream of all plans, the
 * events of before are read when its first one comes. One thread.
 */
#ifndef GATEWAY_TRANSLATE_H
#define GATEWAY_TRANSLATE_H

#include "supervisor/gateway/http.h"
#include "supervisor/gateway/stream.h"

/* Streams with a translator at a time: each may hold 64 MiB of open plans. A sender gets another
 * one while it has fewer than are free, alone 32: no sender takes the last ones from those who have
 * few (dynamic thresholds with factor 1: Choudhury and Hahne, 1998). */
enum { TRANSLATIONS_MAX = 64 };

struct translation;
struct event_place;

extern const struct stream_view translation_view; /* its self is the translation */

/* types: of translated events, n = 0 for all; they must live as long as the request. after: the
 * last event that the client has. NULL after refusing: there is no such vocabulary, or
 * the sender has its share. The view frees it, or translation_free. */
struct translation *translation_new(struct http *h, struct str vocabulary, const struct str *types,
                                    uint32_t n, const struct event_place *after);
void translation_free(void *translation);
/* The plan that the request has made is its answer, in the words of the translation h->own. */
void translation_attach(struct http *h, struct str plan_id);
#endif
