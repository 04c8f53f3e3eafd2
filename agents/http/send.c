/* One request, with what makes it harmless to send it again. */
#include <stdio.h>

#include "agents/http/call.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"

enum { FIRST_PAUSE_MS = 500, PAUSE_MAX_MS = 30000, ARENA_BYTES = 256 * 1024 };

static bool is_cancelled(void *self)
{
    const struct http_call *c = self;
    return bt_step_cancelled(c->step);
}

static const char *extension_of(const struct web_response *r)
{
    static const struct {
        const char *type;
        const char *name;
    } known[] = {{"application/json", "answer.json"}, {"text/csv", "answer.csv"},
                 {"text/html", "answer.html"},        {"text/plain", "answer.txt"},
                 {"application/pdf", "answer.pdf"},   {"application/zip", "answer.zip"},
                 {"image/png", "answer.png"},         {"image/jpeg", "answer.jpg"}};
    char type[128];

    web_response_header(r, "content-type", type, sizeof type);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strncmp(type, known[i].type, strlen(known[i].type)) == 0) {
            return known[i].name;
        }
    }
    return "answer.bin";
}

static bool take_bytes(void *self, struct str bytes)
{
    struct http_call *c = self;
    char type[128];
    enum bt_code code = BT_OK;

    if (c->artifact == NULL) {
        web_response_header(&c->response, "content-type", type, sizeof type);
        code = bt_artifact_create(c->step, extension_of(&c->response), type[0] != 0 ? type : NULL,
                                  &c->artifact, &c->artifact_error);
    }
    if (code == BT_OK) {
        code = bt_artifact_write(c->artifact, bytes.ptr, bytes.len, &c->artifact_error);
    }
    return code == BT_OK;
}

static enum bt_code send_once(struct http_call *c, const char *url, bool anew, struct bt_error *err)
{
    const msec now = clock_mono_ms();
    const char *secret[2];
    struct arena texts = {.max = ARENA_BYTES};
    enum bt_code code = http_auth_headers(c, &texts, anew, secret, err);

    web_response_done(&c->response);
    c->response = (struct web_response){0};
    if (code == BT_OK) {
        const struct web_request request = {
            .method = c->action->method,
            .url = url,
            .headers = c->headers,
            .secret_headers = secret,
            .body = c->body.at != NULL ? buf_str(&c->body) : (struct str){0},
            .timeout_ms = c->deadline > now ? c->deadline - now : 1,
            .max_bytes = c->s->max_bytes,
            .cancelled = is_cancelled,
            .take = c->action->output == HTTP_OUT_ARTIFACT ? take_bytes : NULL,
            .self = c};
        c->requests++;
        code = web_call(&c->s->policy, &request, &c->response, err);
        http_redact(c->s, &c->response.body);
        code = code == BT_OK ? buf_check(&c->response.body, err) : code;
    }
    if (secret[0] != NULL) {
        union {
            const char *in;
            char *out;
        } wiped = {.in = secret[0]};
        explicit_bzero(wiped.out, strlen(secret[0]));
    }
    arena_done(&texts);
    return code;
}

/* Whether what happened may be different next time, and sending it again does no harm. */
static bool may_try_again(const struct http_call *c, enum bt_code code)
{
    const long status = c->response.status;

    if (c->artifact != NULL) {
        return false; /* a part of it is in the file */
    }
    if (code == BT_UNAVAILABLE) {
        return !c->response.sent || http_is_repeatable(c);
    }
    return code == BT_OK && (status == 429 || ((status == 502 || status == 503 || status == 504) &&
                                               http_is_repeatable(c)));
}

static uint64_t pause_ms(const struct http_call *c, enum bt_code code, uint32_t n)
{
    const uint64_t asked = code == BT_OK ? web_response_retry_after_ms(&c->response) : 0;

    return asked > 0 ? asked : (uint64_t)FIRST_PAUSE_MS << n;
}

bool http_send(struct http_call *c, const char *url)
{
    bool anew = false;
    struct bt_error err = {.code = BT_OK};

    for (uint32_t n = 0;; n++) {
        uint64_t pause;
        enum bt_code code;
        if (!http_rate_wait(&c->s->rate, c->step, c->deadline)) {
            (void)err_set(&err, bt_step_cancelled(c->step) ? BT_CANCELLED : BT_TIMEOUT,
                          "the rate of %u in %llu ms leaves no place before the time is over",
                          c->s->rate.n, (unsigned long long)c->s->rate.per_ms);
            http_fail_call(c, &err);
            return false;
        }
        code = send_once(c, url, anew, &err);
        if (code == BT_OK && c->response.status < 300) {
            return true;
        }
        if (code == BT_OK && c->response.status == 401 && c->s->auth.kind == HTTP_AUTH_OAUTH2 &&
            !anew) {
            anew = true; /* the token was withdrawn */
            continue;
        }
        pause = pause_ms(c, code, n);
        if (n >= c->s->retries || pause > PAUSE_MAX_MS || !may_try_again(c, code) ||
            !http_pause(c->step, clock_mono_ms() + pause, c->deadline)) {
            if (code == BT_OK) {
                http_fail_status(c, web_response_retry_after_ms(&c->response));
            } else {
                http_fail_call(c, &err);
            }
            return false;
        }
    }
}
