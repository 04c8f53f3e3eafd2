/*
 * The protocol between daemon and spawner: one packet per SOCK_SEQPACKET message, at most
 * PACKET_BYTES. Every packet has all fields in one order, little-endian; unused ones are zero or
 * "". Both ends are the same build, which HELLO's version verifies first. Two things must never
 * change, so that a new daemon can end an old spawner: the type is the first byte, and
 * PACKET_SHUTDOWN needs only that byte.
 */
#ifndef SPAWN_PACKET_H
#define SPAWN_PACKET_H

#include <stdint.h>
#include <sys/types.h>

#include "protocol/base/buf.h"
#include "protocol/base/err.h"

enum { PACKET_BYTES = 64 * 1024, PACKET_LIST_MAX = 512 };

#define PACKET_VERSION "spawner/5 " BATON_VERSION

enum packet_type {
    PACKET_SHUTDOWN = 1, /* to the spawner: end all trees, then exit */
    PACKET_START,        /* instance name hash cwd(text) nofile memory_bytes log_bytes
                          * log_files argv env handover apart */
    PACKET_SIGNAL,       /* instance status(= the signal), to the main process */
    PACKET_KILL_TREE,    /* instance */
    PACKET_REGISTERED,   /* instance: it has read what it was handed */
    /* to the daemon: pid count(of the CHILD packets that follow) text(= version) */
    PACKET_HELLO,
    PACKET_CHILD,        /* instance name pid hash */
    PACKET_STARTED,      /* instance pid: exec succeeded */
    PACKET_START_FAILED, /* instance text */
    PACKET_EXITED,       /* instance pid status(= of wait) text(= the limit that it reached): the
                          * whole tree is gone */
    PACKET_TYPE_END
};

struct packet {
    enum packet_type type;
    pid_t pid;
    int status;
    uint32_t count;
    uint64_t hash;
    uint64_t nofile;
    uint64_t memory_bytes;
    uint64_t log_bytes;
    uint32_t log_files;
    const char *instance; /* decoded strings point into the packet's bytes; never NULL there */
    const char *name;
    const char *text;
    char *argv[PACKET_LIST_MAX + 1];     /* NULL-terminated */
    char *env[PACKET_LIST_MAX + 4];      /* room for the spawner's own variables */
    char *handover[PACKET_LIST_MAX + 1]; /* NAME=value, for the agent alone: by a descriptor */
    char *apart[PACKET_LIST_MAX + 1];    /* of apart.h */
};

/* Appends to out, whose cap must be PACKET_BYTES; NULL strings become "". buf_check(out) shows a
 * failure. */
void packet_encode(const struct packet *p, struct buf *out);
/* BT_PROTOCOL when the bytes are not exactly one packet of this version. */
BT_MUST_CHECK enum bt_code packet_decode(uint8_t *bytes, size_t len, struct packet *ret_packet,
                                         struct bt_error *err);
#endif
