#include <string.h>

#include "agents/web/call_internal.h"
#include "agents/web/url.h"
#include "protocol/base/clock.h"

enum { STATUS_SEE_OTHER = 303, STATUS_TEMPORARY = 307, STATUS_PERMANENT = 308 };

enum bt_code web_start(struct bt_error *err)
{
    return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK
               ? BT_OK
               : err_set(err, BT_NOMEM, "libcurl does not start");
}

/* ---- what an exchange came to ---- */

static enum bt_code refused(struct bt_error *err)
{
    return err_set(err, BT_INVALID,
                   "the name leads to a private address; list it in allowPrivate when it is meant");
}

static enum bt_code curl_verdict(const struct exchange *x, CURLcode result, struct bt_error *err)
{
    const char *why = x->reason[0] != 0 ? x->reason : curl_easy_strerror(result);

    switch ((int)result) {
    case CURLE_OK:
        return BT_OK;
    case CURLE_OPERATION_TIMEDOUT:
        return err_set(err, BT_TIMEOUT, "no complete answer within %llu ms: %s",
                       (unsigned long long)x->request->timeout_ms, why);
    case CURLE_OUT_OF_MEMORY:
        return err_set(err, BT_NOMEM, "out of memory for a call");
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return err_set(err, BT_INVALID, "%s", why);
    case CURLE_PEER_FAILED_VERIFICATION:
        return err_set(err, BT_INVALID,
                       "the server's certificate is refused: %s; caFile names an authority of "
                       "your own",
                       why);
    case CURLE_SSL_CACERT_BADFILE:
        return err_set(err, BT_INVALID, "caFile cannot be read: %s", why);
    default:
        return err_set(err, BT_UNAVAILABLE, "%s", why);
    }
}

static enum bt_code verdict(const struct exchange *x, CURLcode result, struct bt_error *err)
{
    const struct web_request *r = x->request;

    switch (x->end) {
    case WEB_TOO_MUCH:
        return err_set(err, BT_LIMIT, "the answer has more than %zu bytes", r->max_bytes);
    case WEB_LONG_HEADERS:
        if (x->response->headers.bad == BT_NOMEM) {
            return buf_check(&x->response->headers, err);
        }
        return err_set(err, BT_LIMIT, "the headers of the answer have more than %d bytes",
                       WEB_HEADERS_BYTES_MAX);
    case WEB_IDLE:
        return err_set(err, BT_TIMEOUT, "silence for %llu ms", (unsigned long long)r->idle_ms);
    case WEB_STOPPED:
        return err_set(err, BT_CANCELLED, "stopped on request");
    case WEB_REFUSED:
        return refused(err);
    case WEB_RUNNING:
        break;
    }
    if (x->response->body.bad != BT_OK) {
        return buf_check(&x->response->body, err);
    }
    return curl_verdict(x, result, err);
}

static enum bt_code run(struct exchange *x, struct bt_error *err)
{
    enum bt_code code;
    CURLcode result;
    long written = 0;

    x->response->status = 0;
    buf_clear(&x->response->headers);
    buf_clear(&x->response->body);
    code = exchange_setup(x, err);
    if (code == BT_OK) {
        result = curl_easy_perform(x->easy);
        /* What was written of it, headers included: a request without a body has effects, too. */
        (void)curl_easy_getinfo(x->easy, CURLINFO_REQUEST_SIZE, &written);
        x->response->sent |= written > 0;
        code = verdict(x, result, err);
    }
    exchange_done(x);
    return code;
}

/* ---- redirects ---- */

static bool is_redirect(long status)
{
    return status == 301 || status == 302 || status == STATUS_SEE_OTHER ||
           status == STATUS_TEMPORARY || status == STATUS_PERMANENT;
}

/* Whether the answer sends the request on; *ret_location is where. */
static bool sends_on(struct exchange *x, char ret_location[WEB_URL_MAX])
{
    const long status = x->response->status;
    const bool reads = strcmp(x->method, "GET") == 0 || strcmp(x->method, "HEAD") == 0;

    web_response_header(x->response, "location", ret_location, WEB_URL_MAX);
    if (!is_redirect(status) || ret_location[0] == 0) {
        return false;
    }
    if (reads || status == STATUS_TEMPORARY || status == STATUS_PERMANENT) {
        return true;
    }
    if (status == STATUS_SEE_OTHER) {
        x->method = "GET";
        x->with_body = false;
        return true;
    }
    return false;
}

static enum bt_code follow(struct exchange *x, const char *location, struct bt_error *err)
{
    char next[WEB_URL_MAX];
    enum bt_code code = web_resolve(x->url, location, next, err);

    if (code == BT_OK) {
        code = web_check_url(x->policy, next, err);
    }
    if (code == BT_OK && url_is_https(str_from(x->url)) && !url_is_https(str_from(next))) {
        code = err_set(err, BT_INVALID, "expected an https address, not http after https");
    }
    if (code != BT_OK) {
        return err_wrap(err, "redirect to %.200s", location);
    }
    x->with_secrets &= web_same_origin(x->url, next);
    (void)memcpy(x->response->url, next, sizeof next);
    return BT_OK;
}

enum bt_code web_call(const struct web_policy *policy, const struct web_request *request,
                      struct web_response *ret, struct bt_error *err)
{
    struct exchange x = {.policy = policy,
                         .request = request,
                         .response = ret,
                         .url = ret->url,
                         .method = request->method,
                         .with_body = request->body.ptr != NULL,
                         .with_secrets = true,
                         .deadline = clock_mono_ms() + request->timeout_ms};
    char location[WEB_URL_MAX];
    enum bt_code code = web_check_url(policy, request->url, err);

    memset(ret, 0, sizeof *ret);
    buf_init(&ret->headers, WEB_HEADERS_BYTES_MAX);
    buf_init(&ret->body, request->max_bytes);
    if (code != BT_OK) {
        return code;
    }
    (void)memcpy(ret->url, request->url, strlen(request->url) + 1);
    for (int i = 0; code == BT_OK; i++) {
        code = run(&x, err);
        if (code != BT_OK || !sends_on(&x, location)) {
            break;
        }
        code = i < WEB_REDIRECTS_MAX
                   ? follow(&x, location, err)
                   : err_set(err, BT_LIMIT, "more than %d redirects", WEB_REDIRECTS_MAX);
    }
    if (code != BT_OK && policy->secrets != NULL) {
        secrets_redact_error(policy->secrets, err);
    }
    return code;
}
