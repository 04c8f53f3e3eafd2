/* The state of this room: reads that wait, and what the daemon is to know. For this room only. */
#ifndef API_INTERNAL_H
#define API_INTERNAL_H

#include "supervisor/api/api.h"
#include "supervisor/api/long_read.h"
#include "supervisor/artifacts/arriving.h"
#include "supervisor/transfer/transfer.h"

enum {
    /* Reads that wait at the same time; one more is answered at once. */
    API_PARKED_MAX = 64,
    /* Each event of a cycle registers at most one instance. */
    API_REGISTERED_MAX = ENGINE_CYCLE_EVENTS
};

struct parked_read {
    struct asker asker;
    msec deadline;
    uint64_t from_seq;
    uint32_t limit;
    uint64_t plan_ix;
    char types[512]; /* space separated, "" = all */
};

/* A request that waits for its turn. */
struct put_off {
    uint64_t handle;
    struct link_msg *msg;
    char plan_id[UUID_TEXT_LEN + 1]; /* of a read whose projection is prepared; "" = none */
    bool is_prepared;                /* it was, with the work of a cycle */
};

struct put_off_queue {
    struct put_off at[ENGINE_CONTEXTS];
    uint32_t first, n;
};

/* A file that an attempt may read: one who asks for its next bytes is not checked again. */
struct given_file {
    struct uuid instance;
    uint64_t attempt;
    char key[LIMIT_KEY_BYTES + 1]; /* "" = none */
    struct artifact_place at;
};

struct api {
    struct projections *projections;
    struct transfer *transfer;
    struct arriving *arriving;
    struct given_file given[16];
    uint32_t given_n; /* of all times: the next one takes this place, modulo */
    struct put_off_queue turns[TURN_COUNT]; /* that of TURN_NOW stays empty */
    struct long_read going_on[TURN_COUNT];
    struct parked_read parked[API_PARKED_MAX];
    uint32_t parked_n;
    struct uuid registered[API_REGISTERED_MAX];
    uint32_t registered_n;
    bool stop_asked;
    msec stop_grace_ms; /* MSEC_NEVER = the request gave none */
};

/* Takes the same time wherever the first difference is. */
bool api_token_ok(struct str have, struct str want);
/* Whether the token proves its sender: it is right, and auth is not `required`. */
bool api_token_proves(const struct engine *engine, struct str token);
/* auth.c: checks a sealed request before anything of it is read; *ret_body is what was sealed.
 * False: it was refused. */
bool api_open_sealed(struct engine *engine, uint64_t handle, struct str bytes, struct seal *ret,
                     struct str *ret_body);
/* The same for one that was checked when it arrived: its session may have ended since. Fills in
 * handle, seal, who. */
/* The request in hand has proved nothing: its peer is hung up on when it does so often. */
void api_failed(struct engine *engine);
/* Whether a sealed request is within the quotas of its credential; false after refusing. */
bool api_within_quotas(struct engine *engine, struct request *rq, size_t bytes);
bool api_reopen_sealed(struct engine *engine, struct request *rq, struct str bytes,
                       struct str *ret_body);
void api_refuse_token(struct engine *engine, struct request *rq);
/* The body is larger than that of its type may be. */
void api_refuse_size(struct engine *engine, struct request *rq);
/* What a request of this type needs at least; ROLE_COUNT: it is none. */
enum role api_role_of(enum msg_type type);
/* The request, as far as an answer needs it; borrows from the asker. */
struct request asker_request(const struct asker *a);
struct asker asker_of(const struct request *rq);
/* Reads, checks and routes one request, in its turn. */
void api_handle(struct engine *engine, uint64_t handle, struct str bytes);
/* Where the uri is below the directory of artifacts; false after refusing. */
bool api_locate_file(struct engine *engine, struct request *rq, struct str uri,
                     struct artifact_place *ret);
/* Answers with at most `limit` bytes of the file (0 = LIMIT_ARTIFACT_PART, which is the most).
 * to_agent: it was artifact.fetch that asked. */
void api_answer_file(struct engine *engine, struct request *rq, const struct artifact_place *at,
                     uint64_t offset, uint64_t limit, bool to_agent);
/* The agent that a request names; REGISTRY_NONE after refusing. */
uint32_t request_agent(struct engine *engine, struct request *rq, struct str id);
#endif
