#include "supervisor/gateway/places.h"

#include "supervisor/gateway/a2a/a2a.h"
#include "supervisor/gateway/http.h"
#include "supervisor/gateway/incoming/incoming.h"
#include "supervisor/gateway/mcp/mcp.h"
#include "supervisor/gateway/polled/polled.h"
#include "supervisor/gateway/telemetry/telemetry.h"

#define GET_ONLY (1u << HTTP_GET)
#define GET_POST (1u << HTTP_GET | 1u << HTTP_POST)

/* Below an address of A2A over HTTP. */
#define A2A_PLACES(root)                                                                           \
    {root "/message:send", 1u << HTTP_POST, false, true, a2a_serve_rest},                          \
        {root "/message:stream", 1u << HTTP_POST, false, true, a2a_serve_rest},                    \
        {root "/tasks", GET_ONLY, false, true, a2a_serve_rest},                                    \
        {root "/tasks/{task}", GET_POST, false, true, a2a_serve_rest},                             \
        {root "/tasks/{task}/pushNotificationConfigs", GET_POST, false, true, a2a_serve_rest},     \
    {                                                                                              \
        root "/tasks/{task}/pushNotificationConfigs/{config}", 1u << HTTP_GET | 1u << HTTP_DELETE, \
            false, true, a2a_serve_rest                                                            \
    }

static const struct place places[] = {
    {"/v1/openapi.json", GET_ONLY, true, false, http_serve_openapi},
    {"/", GET_ONLY, true, true, page_serve_file},
    {"/ui/{version}/{file}", GET_ONLY, true, false, page_serve_file},
    {"/ui/session", 1u << HTTP_POST | 1u << HTTP_DELETE, true, false, page_serve_session},
    {"/metrics", GET_ONLY, false, false, telemetry_serve_metrics},
    {"/.well-known/agent-card.json", GET_ONLY, true, true, a2a_serve_card},
    {"/a2a", 1u << HTTP_POST, false, false, a2a_serve},
    A2A_PLACES("/a2a"),
    A2A_PLACES("/a2a/v1"),
    {"/hooks/{name}", 1u << HTTP_POST, true, true, incoming_serve},
    {"/v1/instances/{instanceId}/poll", 1u << HTTP_POST, false, true, polled_serve_poll},
    {"/mcp", 1u << HTTP_POST, false, false, mcp_serve},
};

const struct place *place_find(const struct uri *uri, struct route_params *ret)
{
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (route_fits(places[i].path, uri, ret)) {
            return &places[i];
        }
    }
    return NULL;
}

bool place_has_body(const struct place *p)
{
    return (p->methods & (1u << HTTP_POST | 1u << HTTP_PUT)) != 0;
}
