/* The files of the dashboard (ui/), embedded when the gateway is built. Pure. */
#ifndef GATEWAY_ASSETS_H
#define GATEWAY_ASSETS_H

#include <stddef.h>

struct asset {
    const char *name, *type;
    const unsigned char *bytes;
    size_t len;
};

/* Made by ui/embed.cmake. The files are at /ui/<assets_version>/NAME: a build has addresses of its
 * own, so that browsers keep them. index.html is at "/". */
extern const char assets_version[];
extern const struct asset assets[];
extern const size_t assets_n;
#endif
