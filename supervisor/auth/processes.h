/*
 * The credential of a process that the daemon starts: it may register as its own agentId, and asks
 * for nothing else. The process gets it by a descriptor (sdk/handover.h). No file has it: its key
 * is made of STATE/processes.key and the instance id, so that the next daemon knows the processes
 * that it adopts. It is valid while the process lives.
 */
#ifndef SUPERVISOR_AUTH_PROCESSES_H
#define SUPERVISOR_AUTH_PROCESSES_H

#include "protocol/client/credential.h"

struct process_keys {
    uint8_t secret[AUTH_KEY_BYTES];
};

/* Reads the file, and makes it at the first call. */
BT_MUST_CHECK enum bt_code process_keys_open(const char *state_dir, struct process_keys *ret,
                                             struct bt_error *err);
/* Its id is "process:INSTANCE", which no file's credential may have. False: out of memory. */
BT_MUST_CHECK bool process_credential(const struct process_keys *keys, struct str instance_id,
                                      struct str agent_id, struct credential *ret);
/* Its id, and its key as hexadecimal digits; self is the keys (spawn_prover). */
enum { PROCESS_TEXT_BYTES = 65 };
bool process_prove(void *self, struct str instance_id, struct str agent_id,
                   char ret_id[PROCESS_TEXT_BYTES], char ret_key[PROCESS_TEXT_BYTES]);
#endif
