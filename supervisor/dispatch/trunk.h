/*
 * The trunk of an instance that takes bundles (agent.register.bundle): BUNDLE_PIPES pipes carry the
 * steps of all its credits. A credit is a place for one attempt; to the core it is a lane.
 *
 * What the core sends waits in a queue until the cycle has been performed. Then a free pipe takes
 * as much of it as fits into one bundle. The agent keeps a request until it has results, which
 * answer the oldest request, whichever step they belong to. While steps are out, so is a request.
 *
 * A pipe that is lost with a request may have taken anybody's result with it: all attempts that are
 * out are LOST, and the core asks for them over the control lane.
 */
#ifndef DISPATCH_TRUNK_H
#define DISPATCH_TRUNK_H

#include "protocol/wire/bundle.h"
#include "supervisor/dispatch/lanes.h"

struct trunk {
    struct lane pipes[BUNDLE_PIPES];
    uint64_t carries[BUNDLE_PIPES]; /* credits whose last step the request on the pipe has */
    uint32_t up;                    /* pipes that were greeted */
    uint32_t out;                   /* requests without an answer */
    uint32_t sent;                  /* steps; part of their tags */
    uint32_t spare;   /* empty answers that the agent may still give: each request with steps earns
                       * one, up to BUNDLE_PIPES */
    struct buf queue; /* steps that no request has taken, as in a bundle */
    uint64_t queued;  /* their credits */
    struct lane_instance *instance;
    struct trunk *next; /* of those to flush */
    bool due;
};

/* Bodies that one message to an instance may have, as it registered; 0: no trunk. With few credits
 * a pipe for each is as good. */
uint32_t trunk_bundle(uint64_t bundle, uint64_t capacity);
BT_MUST_CHECK enum bt_code trunk_new(struct lane_instance *in, struct bt_error *err);
/* Its pipes were retired. */
void trunk_free(struct engine *engine, struct lane_instance *in);
/* Puts the step of a READY credit into the queue. */
BT_MUST_CHECK enum bt_code trunk_add(struct engine *engine, struct lane *credit, struct str body,
                                     struct bt_error *err);
/* The cycle was performed: what waits goes out. */
void trunks_flush(struct engine *engine);

/* ---- of lanes.c ---- */
/* The pipe was greeted. */
void trunk_up(struct engine *engine, struct lane *pipe);
/* The pipe has ended, or its request has no answer. sent: as in LINK_LOST. */
void trunk_lost(struct engine *engine, struct lane *pipe, bool sent);
/* The answer to the request on the pipe. */
void trunk_answered(struct engine *engine, struct lane *pipe, struct str bytes);
#endif
