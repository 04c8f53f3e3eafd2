/*
 * An agent's runtime in this process, over a link in memory: the test is the supervisor and has the
 * clock. Handlers run in the cycle (a loop of the program's own) unless `workers` is set.
 */
#ifndef UNIT_RUNTIME_WORLD_H
#define UNIT_RUNTIME_WORLD_H

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agents/sdk/runtime.h"
#include "baton/agent.h"
#include "tests/support/house/fake_link.h"

enum { WORLD_NOW = 1000000, WORLD_LEASE_MS = 4000, WORLD_BEAT_MS = 1000 };

struct world_how {
    const char *args[16]; /* after --state, up to a NULL */
    uint32_t capacity;    /* 0 = 2 */
    bool workers;
    bool no_daemon; /* there is no endpoints.json */
};

struct world {
    struct options opt;
    struct card *card;
    char *args[16];
    struct runtime *rt;
    char dir[64];
    char token[STATE_TOKEN_LEN + 1];
    struct state_endpoints at;
    uint64_t epoch;
    uint64_t request; /* the newest of the test's */
    struct msg_reader reader;
    char text[1024]; /* of the last error */
    enum err_class cls;
    struct bt_step *later; /* the newest step of the skill `later` */
    uint32_t told;         /* calls of its on_cancel */
};
extern struct world world;
/* Of the clocks: threads of the link read it, too, and outlive a test. */
extern _Atomic msec world_now;
/* Lets one handler of the skill `hold` go on. */
extern sem_t world_hold;
/* Writes "d" into the descriptor that self points to. */
void world_done(void *self);

/* Begins the runtime; world_code: what runtime_new said. */
enum bt_code world_begin(const struct world_how *how, struct bt_error *err);
/* The same, and the agent has registered. */
void world_start(const struct world_how *how);
int world_end(void **state);
void world_daemon_writes(const char *control); /* endpoints.json */
void world_cycle(void);
void world_pass(msec ms); /* and a cycle */

/* ---- the control lane ---- */
struct link_lane *world_control(void); /* the newest lane */
void world_up(void);
/* Reads the request that is outstanding: it has to be of this type. Valid until the next read. */
void world_asked(enum msg_type type, void *ret_body);
bool world_asks(enum msg_type type);
struct str world_asked_id(void);
/* Answers it, and a cycle. */
void world_answer(enum msg_type type, const void *body);
void world_refuse(enum bt_code code);
/* Answers register, with the next epoch. */
void world_register(void);
void world_answer_raw(const char *bytes, size_t len);

/* ---- lanes of work: pipe 1 unless said ---- */
struct msg_step_execute world_step(const char *skill, const char *key);
uint64_t world_send(enum msg_type type, const void *body);
uint64_t world_send_by(struct link_server *s, uint32_t pipe, enum msg_type type, const void *body);
uint64_t world_send_raw(const char *bytes, size_t len, uint32_t pipe);
bool world_is_answered(uint64_t request);
/* The code of an answer and its body (when BT_OK); world.text and world.cls else. */
enum bt_code world_read(uint64_t request, enum msg_type type, void *ret_body);
enum bt_code world_read_bytes(struct str bytes, enum msg_type type, void *ret_body);
struct str world_bytes(uint64_t request);
#endif
