/* The requests of protocol/messages.def as data, for the documents and the tests. No program of the
 * product links it. */
#ifndef WIRE_CATALOG_H
#define WIRE_CATALOG_H

#include "protocol/wire/msg.h"

struct catalog_request {
    enum msg_type type, answer;
    const char *role; /* OBSERVER, ..., AGENT; NULL: the supervisor asks */
    const char *lane; /* EVERY, WORK, CONTROL; NULL: to the supervisor, on the control socket */
    const char *sentence;
};

extern const struct catalog_request catalog_requests[];
extern const uint32_t catalog_requests_n;
#endif
