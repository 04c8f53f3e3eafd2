/*
 * Daemons in a thread of the test, which say what it likes: one address for each shard of a fleet.
 * Answers are JSON in which "'" stands for '"', without v and id.
 */
#ifndef CLIENT_FAKE_H
#define CLIENT_FAKE_H

#include <pthread.h>

#include "protocol/link/link.h"
#include "protocol/wire/doc.h"

enum { FAKE_SHARDS = 2, FAKE_REQUESTS_MAX = 64, FAKE_ROOM = 16 * 1024 };

/* In the place of an answer: the connection ends; bytes that are no message. */
extern const char FAKE_HANGS_UP[];
extern const char FAKE_GARBAGE[];

struct fake {
    char dir[64]; /* the state directory: its addresses are those of shard 0 */
    char url[FAKE_SHARDS][64];
    /*
     * Called in the thread with the number of the request (from 0), its shard and its body. Returns
     * the answer's fields; NULL: it is never answered. bytes: are its member `bytes`. What the test
     * reads of it, it reads between two calls of the client.
     */
    const char *(*says)(struct fake *f, uint32_t n, uint32_t shard, struct doc request,
                        struct str *bytes);
    uint32_t n;           /* requests so far */
    char log[4096];       /* "0 plan.get; 1 plan.get; ": shard and type of each */
    char room[FAKE_ROOM]; /* for an answer that `says` makes */
    bool other_id;        /* answers are to another request */
    _Atomic bool no_id;   /* answers are to no request that could be read */
    /* The body of a request that was sealed, and the bytes of its answer; NULL: nothing is sealed.
     */
    bool (*opens)(struct fake *f, struct str bytes, struct str *ret_body);
    void (*seals)(struct fake *f, struct buf *io_answer);
    /* its own */
    pthread_t thread;
    struct link *link;
    struct link_server *servers[FAKE_SHARDS];
    int stop[2];
};

void fake_start(struct fake *f, const char *(*says)(struct fake *f, uint32_t n, uint32_t shard,
                                                    struct doc request, struct str *bytes));
/* The same over TLS, as daemons on another host: pem has certificate and key, ca who signed both
 * sides'. */
void fake_start_tls(struct fake *f, const char *pem, const char *ca,
                    const char *(*says)(struct fake *f, uint32_t n, uint32_t shard,
                                        struct doc request, struct str *bytes));
/* Says that the state directory belongs to a fleet. */
void fake_is_fleet(struct fake *f);
void fake_stop(struct fake *f);
#endif
