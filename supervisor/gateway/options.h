/* The command line of baton-gateway. */
#ifndef GATEWAY_OPTIONS_H
#define GATEWAY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "protocol/base/err.h"
#include "protocol/base/msec.h"
#include "supervisor/gateway/private.h"

enum { OPTIONS_HOSTS_MAX = 16, OPTIONS_ORIGINS_MAX = 16 };

struct options {
    const char *state;                    /* as given; NULL = by the rule of the state directory */
    char host[256];                       /* of --listen, without brackets */
    uint16_t port;                        /* 0 = that of the last time when it is free, else any */
    bool loopback;                        /* the host is of this machine alone */
    const char *tls;                      /* PEM with certificate and key; NULL = plain HTTP */
    const char *hosts[OPTIONS_HOSTS_MAX]; /* further names that Host may have */
    uint32_t hosts_n;
    const char *origins[OPTIONS_ORIGINS_MAX]; /* whose pages may use it */
    uint32_t origins_n;
    char otlp[512];            /* the collector's address, with its path; "" = none */
    struct private_list hooks; /* private addresses that webhooks may reach */
    const char *recipes;       /* a directory of recipes, which are tools of MCP; NULL = none */
    const char *incoming;      /* the file of incoming hooks; NULL = none */
    const char *url; /* of this gateway, as people reach it; NULL = the one that it listens on */
    msec lease_ms;   /* of agents over HTTP; 0 = the default */
    bool help, version, openapi;
    bool mcp; /* speak MCP over stdin and stdout, for a gateway */
};

/* BT_INVALID: a sentence for people. */
BT_MUST_CHECK enum bt_code options_parse(int argc, char **argv, struct options *ret,
                                         struct bt_error *err);
void options_help(FILE *out);
#endif
