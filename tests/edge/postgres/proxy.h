/* A proxy before the test's PostgreSQL server, which loses, delays and cuts what goes through. */
#ifndef TESTS_POSTGRES_PROXY_H
#define TESTS_POSTGRES_PROXY_H

#include <stdint.h>

enum proxy_mode {
    PROXY_PASS,
    PROXY_LOSE_ANSWERS, /* of what is sent from now on; then the connection ends */
    PROXY_CUT,          /* some bytes of the next request arrive, and the connection ends */
    PROXY_LEAVE,        /* the client loses the connection, the server keeps it and what it runs */
    PROXY_HOLD,         /* some bytes of the next request arrive, and nothing more; it stays open */
    PROXY_LATE,         /* answers wait so many ms */
    PROXY_LATE_LONG,    /* the answer to the next request of more than 500 bytes does */
    PROXY_LOSE_TAKE,    /* the answer to the next UPDATE of the epoch, once */
    PROXY_AWAY          /* nobody answers; connections end, and new ones are refused */
};

/* Starts it; the address by which it is reached. It ends with the test. */
const char *proxy_start(void);
/* Connections that are there change, too. LOSE_ANSWERS, CUT, LEAVE, HOLD, LATE_LONG and LOSE_TAKE
 * happen once: then it passes all. */
void proxy_set(enum proxy_mode mode, uint32_t ms_or_bytes);
uint32_t proxy_connections(void); /* of all times */
#endif
