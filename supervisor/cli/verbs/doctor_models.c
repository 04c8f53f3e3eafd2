/* Whether model providers accept connections. Sends nothing. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/cli.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/verbs/doctor_internal.h"

enum { CONNECT_MS = 1000, HOST_MAX = 256 };

struct endpoint {
    char host[HOST_MAX];
    char port[8];
};

/*
 * scheme://host[:port][/path]. A user name before the host (proxies) is not printed. False for
 * another form, which the configuration reports.
 */
static bool endpoint_read(const char *url, struct endpoint *ret)
{
    const char *scheme = strstr(url, "://");
    const char *host = scheme == NULL ? url : scheme + 3;
    const size_t all = strcspn(host, "/?#");
    const char *at = memrchr(host, '@', all);
    const char *end = host + all;
    const char *close;
    size_t n;

    host = at == NULL ? host : at + 1;
    close = *host == '[' ? memchr(host, ']', (size_t)(end - host)) : NULL;
    host += close != NULL;
    n = close != NULL ? (size_t)(close - host) : strcspn(host, ":/?#");
    at = close != NULL ? close + 1 : host + n;
    if (n == 0 || n >= HOST_MAX || (*at == ':' && end - at > 6)) {
        return false;
    }
    (void)snprintf(ret->host, sizeof ret->host, "%.*s", (int)n, host);
    if (*at == ':' && end - at > 1) {
        (void)snprintf(ret->port, sizeof ret->port, "%.*s", (int)(end - at - 1), at + 1);
    } else {
        (void)snprintf(ret->port, sizeof ret->port, "%s",
                       strncasecmp(url, "https:", 6) == 0 ? "443" : "80");
    }
    return true;
}

/* 0, or an errno. */
static int connect_to(const struct sockaddr *to, socklen_t len)
{
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    socklen_t size = sizeof(int);
    int why = 0;

    if (fd < 0) {
        return errno;
    }
    if (connect(fd, to, len) != 0) {
        why = errno;
        if (why == EINPROGRESS) {
            why = ETIMEDOUT;
            if (poll(&p, 1, CONNECT_MS) == 1 &&
                getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &size) != 0) {
                why = errno;
            }
        }
    }
    (void)close(fd);
    return why;
}

static int connect_unix(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof to.sun_path) {
        return ENAMETOOLONG;
    }
    memcpy(to.sun_path, path, strlen(path));
    return connect_to((const struct sockaddr *)&to, sizeof to);
}

/* NULL, or the error. */
static const char *connect_host(const struct endpoint *to)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int why = 0;
    int looked;

    (void)setenv("RES_OPTIONS", "timeout:1 attempts:1", 0); /* a short wait for name resolution */
    looked = getaddrinfo(to->host, to->port, &hints, &list);
    if (looked != 0) {
        return gai_strerror(looked);
    }
    for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) {
        why = connect_to(a->ai_addr, a->ai_addrlen);
        if (why == 0) {
            break;
        }
    }
    freeaddrinfo(list);
    return why == 0 ? NULL : strerror(why);
}

bool doctor_check_model(const cJSON *provider, char *detail, size_t cap)
{
    const char *model = json_text(provider, "model", "");
    const char *id = json_text(provider, "id", model);
    const char *socket_path = json_text(provider, "unixSocket", NULL);
    const char *proxy = json_text(provider, "proxy", NULL);
    const char *url = proxy != NULL ? proxy : json_text(provider, "baseUrl", "");
    const char *why;
    struct endpoint to;

    if (socket_path != NULL) {
        const int failed = connect_unix(socket_path);
        why = failed == 0 ? NULL : strerror(failed);
        (void)snprintf(detail, cap, "%s at %s", id, socket_path);
    } else if (endpoint_read(url, &to)) {
        why = connect_host(&to);
        (void)snprintf(detail, cap, "%s at %s port %s%s", id, to.host, to.port,
                       proxy != NULL ? " (its proxy)" : "");
    } else {
        why = "expected https://host[:port][/path] as its baseUrl";
        (void)snprintf(detail, cap, "%s", id);
    }
    const size_t n = strlen(detail);
    (void)snprintf(detail + n, cap - n, "%s%s%s",
                   why == NULL ? " takes connections (nothing was asked)" : ": cannot connect: ",
                   why == NULL ? "" : why,
                   why == NULL ? "" : "; plans and answers that need a model will fail");
    return why == NULL;
}
