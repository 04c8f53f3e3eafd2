/*
 * Requests that libmicrohttpd cannot read are answered as all others are: as problem+json. The
 * library answers them itself, in HTML, and has no hook for it; 0.9.75 also writes the head of some
 * of these answers twice. It calls two functions of its own interface through the table of dynamic
 * symbols, where the definitions of a program come first; these here are such definitions:
 *
 * - MHD_lookup_connection_value_n, by which it asks for Content-Length, Host and cookies. It is not
 *   told of what it would refuse; http_head, which sees all headers, refuses it.
 * - MHD_queue_response, by which it queues its own answers. They are replaced.
 *
 * A library that was built to call itself directly (-Bsymbolic) never comes here, and answers as it
 * does without this file.
 */
#include <dlfcn.h>
#include <strings.h>

#include "supervisor/gateway/server_internal.h"

#define BEFORE_LIBRARY __attribute__((visibility("default")))

typedef enum MHD_Result (*queue_fn)(struct MHD_Connection *, unsigned, struct MHD_Response *);
typedef enum MHD_Result (*lookup_fn)(struct MHD_Connection *, enum MHD_ValueKind, const char *,
                                     size_t, const char **, size_t *);

static queue_fn library_queue(void)
{
    static queue_fn found;

    if (found == NULL) {
        *(void **)&found = dlsym(RTLD_NEXT, "MHD_queue_response");
    }
    return found;
}

static lookup_fn library_lookup(void)
{
    static lookup_fn found;

    if (found == NULL) {
        *(void **)&found = dlsym(RTLD_NEXT, "MHD_lookup_connection_value_n");
    }
    return found;
}

static bool is_name(const char *key, size_t size, const char *name)
{
    return size == strlen(name) && strncasecmp(key, name, size) == 0;
}

BEFORE_LIBRARY enum MHD_Result MHD_lookup_connection_value_n(struct MHD_Connection *mhd,
                                                             enum MHD_ValueKind kind,
                                                             const char *key, size_t key_size,
                                                             const char **value, size_t *value_size)
{
    const char *text = NULL;
    size_t n = 0;
    uint64_t number;
    enum MHD_Result found = library_lookup()(mhd, kind, key, key_size, &text, &n);

    if (kind == MHD_HEADER_KIND && is_name(key, key_size, "Host") && value == NULL) {
        return MHD_YES; /* whether there is one: http_head looks */
    }
    if (kind == MHD_HEADER_KIND && found == MHD_YES &&
        (is_name(key, key_size, "Cookie") ||
         (is_name(key, key_size, "Content-Length") &&
          !fields_number((struct str){text, n}, UINT64_MAX, &number)))) {
        return MHD_NO;
    }
    if (found == MHD_YES && value != NULL) {
        *value = text;
    }
    if (found == MHD_YES && value_size != NULL) {
        *value_size = n;
    }
    return found;
}

static enum MHD_Result explain(struct conn *c, struct MHD_Connection *mhd, unsigned status)
{
    struct http *h = c->http != NULL ? c->http : http_new(c, mhd, "");
    enum MHD_Result result = MHD_NO;

    if (h != NULL) {
        c->idle = false;
        http_unreadable(h, status);
        result = server_respond(h);
    }
    if (h != c->http) {
        http_free(h);
    }
    return result;
}

/* Of this program, whose answers all have Cache-Control, or of the library. */
BEFORE_LIBRARY enum MHD_Result MHD_queue_response(struct MHD_Connection *mhd, unsigned status,
                                                  struct MHD_Response *response)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct conn *c = info != NULL ? info->socket_context : NULL;

    if (c == NULL || MHD_get_response_header(response, "Cache-Control") != NULL) {
        return library_queue()(mhd, status, response);
    }
    return explain(c, mhd, status);
}
