/* The command line of baton-bridge-nats. Strings are those of argv. */
#ifndef BRIDGE_OPTIONS_H
#define BRIDGE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "protocol/base/err.h"

enum { OPTIONS_SERVERS_MAX = 16, OPTIONS_NAME_MAX = 32 };

struct options {
    const char *state; /* as given; NULL = by the rule of the state directory */
    const char *servers[OPTIONS_SERVERS_MAX];
    int servers_n;
    uint32_t shard, shards;   /* only this one of so many; shards 0 = not said */
    const char *name;         /* of the fleet: letters, digits, _ and -, at most OPTIONS_NAME_MAX */
    const char *creds, *nkey; /* files; NULL = none */
    const char *user, *password_file, *token_file;
    const char *tls_ca, *tls_cert, *tls_key;
    bool tls;
    uint32_t replicas; /* of a stream that it makes */
    bool after_given;  /* what an empty stream that is not new goes on after */
    uint64_t after;
    bool once, status, help, version;
};

/* BT_INVALID: a sentence for people. */
BT_MUST_CHECK enum bt_code options_parse(int argc, char **argv, struct options *ret,
                                         struct bt_error *err);
void options_help(FILE *out);
#endif
