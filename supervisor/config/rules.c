/* Rules beyond the schema: settings that depend on each other, and the allowed listeners. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/config/loader.h"

enum listen_fault { LISTEN_FINE, LISTEN_SYNTAX, LISTEN_REMOTE };

static bool is_loopback(const char *host)
{
    struct in_addr v4;

    if (strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0) {
        return true;
    }
    return inet_pton(AF_INET, host, &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127;
}

/* Parses tcp://HOST:PORT; the port in *ret_port. */
static enum listen_fault check_url(const char *url, uint32_t *ret_port)
{
    static const char SCHEME[] = "tcp://";
    const char *colon = strrchr(url, ':');
    char host[256] = "";
    size_t len;
    uint32_t port = 0;

    if (strncmp(url, SCHEME, sizeof SCHEME - 1) != 0 || colon <= url + sizeof SCHEME - 1 ||
        colon[1] == '\0' || strlen(colon) > 6) {
        return LISTEN_SYNTAX;
    }
    for (const char *at = strcmp(colon, ":auto") == 0 ? "0" : colon + 1; *at != '\0'; at++) {
        if (*at < '0' || *at > '9') {
            return LISTEN_SYNTAX;
        }
        port = port * 10 + (uint32_t)(*at - '0');
    }
    len = (size_t)(colon - url) - (sizeof SCHEME - 1);
    if (port > 65535 || len >= sizeof host) {
        return LISTEN_SYNTAX;
    }
    memcpy(host, url + sizeof SCHEME - 1, len);
    *ret_port = port;
    return is_loopback(host) ? LISTEN_FINE : LISTEN_REMOTE;
}

static uint32_t check_listener(struct loader *l, const char *key, const char *url)
{
    char origin[ORIGIN_MAX];
    uint32_t port = 0;
    enum listen_fault fault = check_url(url, &port);

    setting_origin(l, key, origin);
    if (fault == LISTEN_SYNTAX) {
        config_problem(l, origin,
                       "%s: \"%.80s\" is not tcp://HOST:PORT, for example tcp://127.0.0.1:auto "
                       "(port auto = of the state directory, 0 = any)",
                       key, url);
    } else if (fault == LISTEN_REMOTE) {
        config_problem(
            l, origin,
            "%s: \"%.80s\" can be reached from other machines, without TLS and credentials: listen "
            "here on 127.0.0.1, localhost or [::1], and there with listen.remote",
            key, url);
    }
    return fault == LISTEN_FINE ? port : 0;
}

static void check_order(struct loader *l, const char *low_key, msec low, const char *high_key,
                        msec high, uint32_t times)
{
    char origin[ORIGIN_MAX];

    if (high >= low * times) {
        return;
    }
    setting_origin(l, high_key, origin);
    if (strcmp(origin, "default") == 0) {
        setting_origin(l, low_key, origin);
    }
    config_problem(l, origin, "%s: must be at least %s%s (%llu), is %llu", high_key,
                   times == 1 ? "" : "twice ", low_key, (unsigned long long)low,
                   (unsigned long long)high);
}

/* A password would be read in the list of processes, in `config show`, in logs. */
static bool has_password(const char *url)
{
    const char *host = strstr(url, "://");
    const char *end = host == NULL ? NULL : host + 3 + strcspn(host + 3, "/?@");

    return (end != NULL && *end == '@' &&
            memchr(host + 3, ':', (size_t)(end - host - 3)) != NULL) ||
           strstr(url, "password=") != NULL;
}

static void check_fleet(struct loader *l, const struct config *c)
{
    const char *url = c->fleet.url;
    char origin[ORIGIN_MAX];

    if (url[0] == 0) {
        return;
    }
    setting_origin(l, "fleet.url", origin);
    if (strncmp(url, "postgresql://", 13) != 0 && strncmp(url, "postgres://", 11) != 0) {
        config_problem(l, origin, "fleet.url: expected postgresql://HOST/DATABASE");
    } else if (has_password(url)) {
        config_problem(l, origin,
                       "fleet.url: leave the password out, others would read it: libpq takes it "
                       "from ~/.pgpass, from the file that PGPASSFILE names, or from PGPASSWORD");
    }
    if (c->durability == DURABILITY_PROCESS) {
        setting_origin(l, "durability", origin);
        config_problem(l, origin,
                       "durability: \"process\" is not possible in a fleet, a crash of PostgreSQL "
                       "would take back what was acknowledged; leave it out, and set "
                       "fleet.durability to replicated or power");
    }
}

void config_rules_check(struct loader *l)
{
    const struct config *c = &l->store->c;
    const struct config_policy *p = &c->policy;
    uint32_t control = check_listener(l, "listen.control", c->listen_control);
    uint32_t events = check_listener(l, "listen.events", c->listen_events);

    if (control != 0 && control == events && strcmp(c->listen_control, c->listen_events) == 0) {
        char origin[ORIGIN_MAX];
        setting_origin(l, "listen.events", origin);
        config_problem(l, origin, "listen.events: is the same address as listen.control");
    }
    check_fleet(l, c);
    check_order(l, "policy.heartbeatMs", p->heartbeat_ms, "policy.leaseMs", p->lease_ms, 2);
    check_order(l, "policy.backoff.initialMs", p->backoff.initial_ms, "policy.backoff.maxMs",
                p->backoff.max_ms, 1);
    check_order(l, "policy.restart.backoffMinMs", p->restart.backoff_min_ms,
                "policy.restart.backoffMaxMs", p->restart.backoff_max_ms, 1);
    check_order(l, "policy.breaker.cooldownMs", p->breaker.cooldown_ms,
                "policy.breaker.cooldownMaxMs", p->breaker.cooldown_max_ms, 1);
}
