/* A refusal as application/problem+json (RFC 9457), whoever refused: this program or the daemon. */
#ifndef GATEWAY_PROBLEM_H
#define GATEWAY_PROBLEM_H

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"

struct problem {
    enum bt_code code;
    struct str class_;       /* empty = none */
    struct str message;      /* what, where, what would be right */
    uint64_t retry_after_ms; /* 0 = none */
    struct doc details;      /* .ptr NULL = none */
    struct str field;        /* the field of the request that it is about; empty = none */
    unsigned status;         /* 0: that of the code */
};

/* The status of HTTP: UNAUTHORIZED is 403 for a sender who is known (details have the `role`) and
 * else 401; what is over a quota is 429. */
unsigned problem_status(const struct problem *p);
/* "Not Found"; never NULL. */
const char *problem_title(unsigned status);
void problem_write(const struct problem *p, struct buf *out);
/* Seconds for Retry-After, rounded up; 0 = none. */
uint64_t problem_retry_after_s(const struct problem *p);
#endif
