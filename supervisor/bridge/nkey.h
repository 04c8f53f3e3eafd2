/* Keys of NATS (nkeys): the public half of a seed, which a server is told beside each signature. */
#ifndef BRIDGE_NKEY_H
#define BRIDGE_NKEY_H

#include <stdbool.h>

enum { NKEY_SEED_LEN = 58, NKEY_PUBLIC_LEN = 56 };

/* False: it is no seed of a user (SU and 56 more characters, with a checksum). Pure. */
bool nkey_public(const char *seed, char ret[NKEY_PUBLIC_LEN + 1]);
#endif
