/* Headers of an answer, and addresses: what needs no connection. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>

#include "agents/web/url.h"
#include "agents/web/web.h"
#include "protocol/base/clock.h"

enum { DATE_MAX = 128, SECONDS_MAX = 1000000 };

void web_response_header(const struct web_response *r, const char *name, char *ret, size_t cap)
{
    const struct str all = buf_str(&r->headers);
    const size_t n = strlen(name);

    ret[0] = 0;
    for (size_t at = 0; at < all.len;) {
        const char *line = all.ptr + at;
        const char *end = memchr(line, '\n', all.len - at);
        const size_t len = end == NULL ? all.len - at : (size_t)(end - line);
        if (len > n + 1 && memcmp(line, name, n) == 0 && line[n] == ':') {
            const struct str value = str_trimmed((struct str){line + n + 1, len - n - 1});
            (void)snprintf(ret, cap, "%.*s", STR_ARG(value));
            return;
        }
        at += len + 1;
    }
}

uint64_t web_response_retry_after_ms(const struct web_response *r)
{
    char text[DATE_MAX];
    uint64_t seconds = 0;
    time_t at;

    web_response_header(r, "retry-after", text, sizeof text);
    if (text[0] >= '0' && text[0] <= '9') {
        for (const char *p = text; *p >= '0' && *p <= '9' && seconds < SECONDS_MAX; p++) {
            seconds = seconds * 10 + (uint64_t)(*p - '0');
        }
        return seconds * 1000;
    }
    at = text[0] == 0 ? -1 : curl_getdate(text, NULL);
    return at > 0 && (uint64_t)at * 1000 > clock_wall_ms() ? (uint64_t)at * 1000 - clock_wall_ms()
                                                           : 0;
}

void web_response_done(struct web_response *r)
{
    buf_done(&r->headers);
    buf_done(&r->body);
}

/* ---- addresses ---- */

static bool hosts_have(const struct web_policy *policy, const char *host, const char *port)
{
    char both[512];

    (void)snprintf(both, sizeof both, "%s:%s", host, port);
    for (size_t i = 0; policy->hosts != NULL && policy->hosts[i] != NULL; i++) {
        if (strcasecmp(policy->hosts[i], host) == 0 || strcasecmp(policy->hosts[i], both) == 0) {
            return true;
        }
    }
    return false;
}

enum bt_code web_check_url(const struct web_policy *policy, const char *url, struct bt_error *err)
{
    CURLU *u = curl_url();
    char *host = NULL;
    char *port = NULL;
    char *user = NULL;
    enum bt_code code = BT_OK;

    if (strlen(url) >= WEB_URL_MAX) {
        code = err_set(err, BT_INVALID, "the address has more than %d bytes", WEB_URL_MAX - 1);
    } else if (u == NULL) {
        code = err_set(err, BT_NOMEM, "out of memory for an address");
    } else if (curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK ||
               curl_url_get(u, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
               curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK) {
        code = err_set(err, BT_INVALID, "'%.200s': expected https://host/path", url);
    } else if (curl_url_get(u, CURLUPART_USER, &user, 0) == CURLUE_OK) {
        code = err_set(err, BT_INVALID, "an address has no user and no password");
    } else if (!url_is_https(str_from(url)) && strncasecmp(url, "http://", 7) != 0) {
        code = err_set(err, BT_INVALID, "'%.200s': expected https://host/path", url);
    } else if (!url_is_https(str_from(url)) && !policy->allow_http &&
               !url_is_loopback(str_from(url))) {
        code = err_set(err, BT_INVALID,
                       "'%.200s': http only to this machine; use https, or allowHttp: true", url);
    } else if (!hosts_have(policy, host, port)) {
        code = err_set(err, BT_INVALID,
                       "host %s (port %s) is not in baseUrl or allowHosts, the only ones called",
                       host, port);
    }
    curl_free(host);
    curl_free(port);
    curl_free(user);
    curl_url_cleanup(u);
    return code;
}

enum bt_code web_resolve(const char *base, const char *reference, char ret[WEB_URL_MAX],
                         struct bt_error *err)
{
    CURLU *u = curl_url();
    char *whole = NULL;
    enum bt_code code = BT_OK;

    if (u == NULL || curl_url_set(u, CURLUPART_URL, base, 0) != CURLUE_OK ||
        curl_url_set(u, CURLUPART_URL, reference, 0) != CURLUE_OK ||
        curl_url_get(u, CURLUPART_URL, &whole, 0) != CURLUE_OK || strlen(whole) >= WEB_URL_MAX) {
        code = err_set(err, BT_INVALID, "'%.200s': expected an address of at most %d bytes",
                       reference, WEB_URL_MAX - 1);
    } else {
        (void)memcpy(ret, whole, strlen(whole) + 1);
    }
    curl_free(whole);
    curl_url_cleanup(u);
    return code;
}

static bool same_part(CURLU *a, CURLU *b, CURLUPart part, unsigned flags)
{
    char *x = NULL;
    char *y = NULL;
    bool same = curl_url_get(a, part, &x, flags) == CURLUE_OK &&
                curl_url_get(b, part, &y, flags) == CURLUE_OK && strcasecmp(x, y) == 0;

    curl_free(x);
    curl_free(y);
    return same;
}

bool web_same_origin(const char *a, const char *b)
{
    CURLU *x = curl_url();
    CURLU *y = curl_url();
    bool same = x != NULL && y != NULL && curl_url_set(x, CURLUPART_URL, a, 0) == CURLUE_OK &&
                curl_url_set(y, CURLUPART_URL, b, 0) == CURLUE_OK &&
                same_part(x, y, CURLUPART_SCHEME, 0) && same_part(x, y, CURLUPART_HOST, 0) &&
                same_part(x, y, CURLUPART_PORT, CURLU_DEFAULT_PORT);

    curl_url_cleanup(x);
    curl_url_cleanup(y);
    return same;
}
