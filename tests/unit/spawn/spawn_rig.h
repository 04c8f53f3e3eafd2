/* The daemon's side of process supervision; the test is the spawner, and has the time. */
#ifndef UNIT_SPAWN_RIG_H
#define UNIT_SPAWN_RIG_H

#include "tests/support/cmocka.h"

#include "supervisor/spawn/packet.h"
#include "supervisor/spawn/spawn.h"

struct rig {
    struct spawn *s;
    char dir[64];
    int listener, conn;
    msec now;
    uint8_t in[PACKET_BYTES + 1];
    struct packet got; /* the newest order; its texts are in `in` */
    char instance[UUID_TEXT_LEN + 1];
    struct spawn_event ev;
    struct bt_error err;
};
extern struct rig rig;

/* A living process that HELLO names. */
struct rig_child {
    const char *instance, *name;
    pid_t pid;
    uint64_t hash;
};

int rig_open(void **state);  /* a state directory */
int rig_close(void **state); /* and all in it */
/* Connects, says HELLO with these children, and greets. */
void rig_begin(const struct spawn_options *more, const struct rig_child *children, uint32_t n);
struct spawn_spec rig_spec(const char *name);
void rig_set(const struct spawn_spec *specs, size_t n);
/* The next order has to be of this type. */
void rig_ordered(enum packet_type type);
/* The next one starts the child: rig.instance is its instance. */
void rig_started(const char *name);
void rig_no_order(void);
void rig_report(enum packet_type type, const char *instance, pid_t pid, int status,
                const char *text);
/* The next event has to be of this type. */
void rig_event(enum spawn_event_type type, const char *name);
void rig_no_event(void);
void rig_pass(msec ms);
/* A child that runs and has registered, without orders or events left. */
void rig_up(const char *name, pid_t pid);
/* Listens where a spawner would. */
void rig_listen(void);
void rig_accept(void);
void rig_send(const struct packet *p);
#endif
