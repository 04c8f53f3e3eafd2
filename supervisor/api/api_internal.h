/* The state of this room: reads that wait, and what the daemon is to know. For this room only. */
#ifndef API_INTERNAL_H
#define API_INTERNAL_H

#include "supervisor/api/api.h"

enum {
    /* Reads that wait at the same time; one more is answered at once. */
    API_PARKED_MAX = 64,
    /* Each event of a cycle registers at most one instance. */
    API_REGISTERED_MAX = ENGINE_CYCLE_EVENTS
};

struct parked_read {
    uint64_t request; /* 0 = free */
    enum wire_form form;
    char id[65];
    msec deadline;
    uint64_t from_seq;
    uint32_t limit;
    uint64_t plan_ix;
    char types[512]; /* space separated, "" = all */
};

struct api {
    struct parked_read parked[API_PARKED_MAX];
    uint32_t parked_n;
    struct uuid registered[API_REGISTERED_MAX];
    uint32_t registered_n;
    bool stop_asked;
    msec stop_grace_ms; /* MSEC_NEVER = the request gave none */
};
#endif
