/*
 * Addresses beside the requests of the wire: what is asked there is no message of the daemon. One
 * row each; http.c checks the head of a request by it, and serve answers, or keeps it waiting.
 */
#ifndef GATEWAY_PLACES_H
#define GATEWAY_PLACES_H

#include "supervisor/gateway/routes.h"

struct http;

struct place {
    const char *path; /* with {name} for any part */
    uint32_t methods; /* bits of enum http_method */
    bool open;        /* nobody has to prove who it is */
    bool any_query;   /* parameters that it does not know are left out, not refused */
    void (*serve)(struct http *h);
};

/* NULL: there is none. The parts in braces go to ret. */
const struct place *place_find(const struct uri *uri, struct route_params *ret);
/* Whether a request by this method may have a body there. */
bool place_has_body(const struct place *p);
#endif
