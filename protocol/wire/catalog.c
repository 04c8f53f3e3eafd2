#include "protocol/wire/catalog.h"

const struct catalog_request catalog_requests[] = {
#define REQUEST(name, handler, answer, role, sentence)                                             \
    {MSG_##name, MSG_##answer, #role, NULL, sentence},
#define LANE_REQUEST(name, answer, lane, sentence)                                                 \
    {MSG_##name, MSG_##answer, NULL, #lane, sentence},
#include "protocol/messages.def"
};

const uint32_t catalog_requests_n = sizeof catalog_requests / sizeof catalog_requests[0];
