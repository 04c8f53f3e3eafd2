#include "agents/web/url.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>

static bool has_scheme(struct str url, const char *scheme)
{
    size_t n = strlen(scheme);
    return url.len > n && strncasecmp(url.ptr, scheme, n) == 0;
}

bool url_is_https(struct str url)
{
    return has_scheme(url, "https://");
}

/* Without the port and the brackets. */
static struct str host_of(struct str url)
{
    size_t start = url_is_https(url) ? 8 : 7;
    struct str rest = {url.ptr + start, url.len - start};
    size_t n = 0;

    if (rest.len > 0 && rest.ptr[0] == '[') {
        while (n < rest.len && rest.ptr[n] != ']') {
            n++;
        }
        return (struct str){rest.ptr + 1, n - 1};
    }
    while (n < rest.len && rest.ptr[n] != '/' && rest.ptr[n] != ':') {
        n++;
    }
    return (struct str){rest.ptr, n};
}

struct str url_authority(struct str url)
{
    size_t start = url_is_https(url) ? 8 : 7;
    struct str rest = {url.ptr + start, url.len - start};
    const char *slash = memchr(rest.ptr, '/', rest.len);

    return (struct str){rest.ptr, slash == NULL ? rest.len : (size_t)(slash - rest.ptr)};
}

bool url_is_loopback(struct str url)
{
    struct str host = host_of(url);
    char text[64];
    struct in_addr v4;
    struct in6_addr v6;

    if (host.len >= sizeof text) {
        return false;
    }
    memcpy(text, host.ptr, host.len);
    text[host.len] = 0;
    if (strcasecmp(text, "localhost") == 0) {
        return true;
    }
    if (inet_pton(AF_INET, text, &v4) == 1) {
        return (ntohl(v4.s_addr) >> 24) == 127;
    }
    return inet_pton(AF_INET6, text, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

enum bt_code url_check(struct str url, bool any_http, struct bt_error *err)
{
    if (!url_is_https(url) && !has_scheme(url, "http://")) {
        return err_set(err, BT_INVALID, "expected https:// or http://");
    }
    for (size_t i = 0; i < url.len; i++) {
        if (url.ptr[i] <= ' ' || url.ptr[i] >= 0x7f || strchr("@?#\\", url.ptr[i]) != NULL) {
            return err_set(err, BT_INVALID,
                           "expected https://host[:port][/path] without user, query, fragment");
        }
    }
    if (host_of(url).len == 0) {
        return err_set(err, BT_INVALID, "expected a host");
    }
    if (!url_is_https(url) && !any_http && !url_is_loopback(url)) {
        return err_set(err, BT_INVALID,
                       "http only to this machine; use https, or allowHttp: true when keys and "
                       "texts may go in the clear");
    }
    return BT_OK;
}

static bool v4_allowed(uint32_t ip, bool loopback_only)
{
    if (loopback_only) {
        return ip >> 24 == 127;
    }
    return ip >> 24 != 0 && ip >> 16 != 0xa9fe && ip >> 28 != 0xe && ip != UINT32_MAX;
}

bool url_address_allowed(const struct sockaddr *addr, bool loopback_only)
{
    if (addr->sa_family == AF_UNIX) {
        return true; /* only from the configuration */
    }
    if (addr->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, addr, sizeof in);
        return v4_allowed(ntohl(in.sin_addr.s_addr), loopback_only);
    }
    if (addr->sa_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, addr, sizeof in);
        if (IN6_IS_ADDR_V4MAPPED(&in.sin6_addr)) {
            uint32_t ip;
            memcpy(&ip, in.sin6_addr.s6_addr + 12, sizeof ip);
            return v4_allowed(ntohl(ip), loopback_only);
        }
        return loopback_only ? IN6_IS_ADDR_LOOPBACK(&in.sin6_addr)
                             : !IN6_IS_ADDR_LINKLOCAL(&in.sin6_addr) &&
                                   !IN6_IS_ADDR_MULTICAST(&in.sin6_addr) &&
                                   !IN6_IS_ADDR_UNSPECIFIED(&in.sin6_addr);
    }
    return false;
}

void url_escape(struct buf *out, struct str text)
{
    static const char hex[] = "0123456789ABCDEF";

    for (size_t i = 0; i < text.len; i++) {
        const uint8_t c = (uint8_t)text.ptr[i];
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            (c != 0 && strchr("-._~", c) != NULL)) {
            buf_add_byte(out, c);
        } else {
            buf_add_byte(out, '%');
            buf_add_byte(out, (uint8_t)hex[c >> 4]);
            buf_add_byte(out, (uint8_t)hex[c & 15]);
        }
    }
}
