/* Requests that go on over cycles. For this room and the folders in it. */
#ifndef API_LONG_READ_H
#define API_LONG_READ_H

#include "supervisor/engine/request.h"

/* Who gets the answer of a request that is not answered in the cycle of its turn. */
struct asker {
    uint64_t request; /* 0 = nobody */
    enum wire_form form;
    struct identity who;
    struct seal seal;
    char id[65];
    enum msg_type answer;
};

/* The turns in their order; see turns.c. */
enum turn { TURN_NOW, TURN_SOON, TURN_LARGE, TURN_READ, TURN_SCAN, TURN_COUNT };

/*
 * A request that goes on over cycles. One of each turn is under way at most, and those after it
 * wait. go_on works until about until_ns, and answers when it has all, or the journal has failed;
 * false: there is more to do. `done` frees the state.
 */
struct long_read {
    struct asker asker;
    void *state;
    enum turn turn; /* that it has: TURN_LARGE, TURN_READ or TURN_SCAN */
    bool (*go_on)(struct engine *engine, struct request *rq, void *state, uint64_t until_ns);
    void (*done)(void *state);
};

/* A handler's read, now and in the cycles to come. Takes over the state, which borrows nothing of
 * the request. BUSY when another one of its turn is under way, which a request does that names its
 * type where its turn is not looked for. */
void api_read_on(struct engine *engine, struct request *rq, const struct long_read *read);
#endif
