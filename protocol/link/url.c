/* Which addresses may be dialed or listened on. An agent that registers must not make the daemon
 * connect to a metadata service or to itself. Names are not resolved here. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "protocol/base/err.h"
#include "protocol/link/link.h"

enum { HOST_MAX = 253, IPC_PATH_MAX = 107 };

static bool take_prefix(struct str *s, const char *prefix)
{
    const size_t n = strlen(prefix);
    if (s->len < n || memcmp(s->ptr, prefix, n) != 0) {
        return false;
    }
    *s = (struct str){s->ptr + n, s->len - n};
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool port_ok(struct str port, bool zero_ok)
{
    uint32_t value = 0;
    if (port.len == 0 || port.len > 5 || (port.len > 1 && port.ptr[0] == '0')) {
        return false;
    }
    for (size_t i = 0; i < port.len; i++) {
        if (!is_digit(port.ptr[i])) {
            return false;
        }
        value = value * 10 + (uint32_t)(port.ptr[i] - '0');
    }
    return value <= 65535 && (value != 0 || zero_ok);
}

/* a: host byte order */
static bool ipv4_ok(uint32_t a, bool loopback_only)
{
    if (a >> 24 == 127) {
        return true;
    }
    /* 0/8 this host, 169.254/16 link-local (cloud metadata), 224/3 multicast, reserved and
     * broadcast */
    return !loopback_only && a >> 24 != 0 && a >> 16 != 0xa9fe && a < 0xe0000000u;
}

static bool ipv6_ok(const struct in6_addr *a, bool loopback_only)
{
    if (IN6_IS_ADDR_V4MAPPED(a)) {
        uint32_t v4 = 0;
        memcpy(&v4, a->s6_addr + 12, sizeof v4);
        return ipv4_ok(ntohl(v4), loopback_only);
    }
    if (IN6_IS_ADDR_LOOPBACK(a)) {
        return true;
    }
    /* v4-compatible addresses (::a.b.c.d) are deprecated and no peer needs one */
    return !loopback_only && !IN6_IS_ADDR_UNSPECIFIED(a) && !IN6_IS_ADDR_LINKLOCAL(a) &&
           !IN6_IS_ADDR_MULTICAST(a) && !IN6_IS_ADDR_SITELOCAL(a) && !IN6_IS_ADDR_V4COMPAT(a);
}

/* A host name whose last label starts with a letter. Without that rule "127.1", "0x7f000001" and
 * "2130706433" would pass as names although they are addresses. */
static bool name_ok(struct str host, bool loopback_only)
{
    size_t label = 0;
    for (size_t i = 0; i < host.len; i++) {
        const char c = host.ptr[i];
        if (c == '.') {
            if (i == label) {
                return false;
            }
            label = i + 1;
        } else if (!is_letter(c) && !is_digit(c) && (c != '-' || i == label)) {
            return false;
        }
    }
    if (label == host.len || !is_letter(host.ptr[label])) {
        return false;
    }
    return !loopback_only || str_is(host, "localhost");
}

static bool host_ok(struct str host, bool bracketed, bool loopback_only)
{
    char text[HOST_MAX + 1];
    struct in_addr v4;
    struct in6_addr v6;
    if (host.len == 0 || host.len > HOST_MAX) {
        return false;
    }
    memcpy(text, host.ptr, host.len);
    text[host.len] = '\0';
    if (strlen(text) != host.len) {
        return false;
    }
    if (bracketed) {
        return inet_pton(AF_INET6, text, &v6) == 1 && ipv6_ok(&v6, loopback_only);
    }
    if (inet_pton(AF_INET, text, &v4) == 1) {
        return ipv4_ok(ntohl(v4.s_addr), loopback_only);
    }
    return name_ok(host, loopback_only);
}

static bool authority_ok(struct str rest, bool loopback_only, bool port_zero_ok)
{
    const bool bracketed = rest.len > 0 && rest.ptr[0] == '[';
    const char *from = bracketed ? rest.ptr + 1 : rest.ptr;
    const size_t left = bracketed ? rest.len - 1 : rest.len;
    const char *end = left == 0 ? NULL : memchr(from, bracketed ? ']' : ':', left);
    if (end == NULL) {
        return false;
    }
    const char *port = bracketed ? end + 1 : end;
    const size_t port_len = (size_t)(rest.ptr + rest.len - port);
    if (port_len == 0 || *port != ':') {
        return false;
    }
    return host_ok((struct str){from, (size_t)(end - from)}, bracketed, loopback_only) &&
           port_ok((struct str){port + 1, port_len - 1}, port_zero_ok);
}

static bool path_ok(struct str path)
{
    if (path.len < 2 || path.len > IPC_PATH_MAX || path.ptr[0] != '/' ||
        path.ptr[path.len - 1] == '/') {
        return false;
    }
    for (size_t i = 0; i < path.len; i++) {
        if (path.ptr[i] <= ' ' || path.ptr[i] > '~' || path.ptr[i] == '%') {
            return false;
        }
    }
    return true;
}

bool link_url_is_near(struct str url)
{
    static const char localhost[] = "localhost:";
    struct str rest = url;

    return take_prefix(&rest, "tcp://") && authority_ok(rest, true, false) &&
           (rest.len < sizeof localhost - 1 ||
            memcmp(rest.ptr, localhost, sizeof localhost - 1) != 0);
}

enum bt_code link_url_check(struct str url, bool loopback_only, bool port_zero_ok,
                            struct bt_error *err)
{
    struct str rest = url;
    bool ok = false;
    if (take_prefix(&rest, "tcp://") || take_prefix(&rest, "tls+tcp://")) {
        ok = authority_ok(rest, loopback_only, port_zero_ok);
    } else if (take_prefix(&rest, "ipc://")) {
        ok = path_ok(rest);
    }
    if (!ok) {
        return err_set(err, BT_INVALID,
                       "address refused: it must be tcp://HOST:PORT, tls+tcp://HOST:PORT or "
                       "ipc:///PATH with a host "
                       "and port that are allowed here");
    }
    return BT_OK;
}
