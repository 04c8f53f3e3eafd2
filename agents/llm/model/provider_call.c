/* Attempts at one provider: retries, what each attempt teaches, and when to give up. */
#include "agents/llm/model/provider_call.h"

#include <stdio.h>
#include <sys/random.h>

#include "agents/llm/model/retry.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/base/utf8.h"

enum { STOP_POLL_MS = 25, LEARNED_MAX = 6 };

/* ---- waiting ---- */

static bool stopped(const struct provider_call *a)
{
    return a->request.stop != NULL && a->request.stop(a->request.self);
}

static bool wait_ms(struct provider_call *a, msec ms)
{
    msec until = msec_add(clock_mono_ms(), ms);

    for (msec now = clock_mono_ms(); now < until; now = clock_mono_ms()) {
        msec slice = until - now < STOP_POLL_MS ? until - now : STOP_POLL_MS;
        uint64_t at = clock_mono_ns() + slice * 1000000u;
        struct timespec ts = {.tv_sec = (time_t)(at / 1000000000u),
                              .tv_nsec = (long)(at % 1000000000u)};
        if (stopped(a)) {
            return false;
        }
        (void)pthread_mutex_lock(&a->c->lock);
        (void)pthread_cond_timedwait(&a->c->sleep_cond, &a->c->lock, &ts);
        (void)pthread_mutex_unlock(&a->c->lock);
    }
    return !stopped(a);
}

static uint64_t random_bits(void)
{
    uint64_t bits = 0;

    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != sizeof bits) {
        bits = clock_mono_ns(); /* jitter needs variation, not secrecy */
    }
    return bits;
}

/* ---- the outcome of an attempt ---- */

static void copy_clean(struct provider_call *a, char ret[LLM_NAME_MAX], const char *text)
{
    struct buf clean;
    size_t n;

    buf_init(&clean, 4096);
    buf_add_cstr(&clean, text);
    secrets_redact(&a->c->config->secrets, &clean);
    n = clean.len < LLM_NAME_MAX - 1 ? clean.len : LLM_NAME_MAX - 1;
    if (clean.bad == BT_OK && n > 0) {
        memcpy(ret, clean.at, n);
    }
    ret[n] = 0;
    buf_done(&clean);
}

/* Adds the usage of every answer, usable or not: each was paid for. */
static void account(struct provider_call *a, struct attempt *at)
{
    struct llm_usage u = at->answer.usage;
    struct llm_usage *sum = &a->reply->usage;

    a->reply->calls++;
    a->reply->finish = at->answer.finish;
    copy_clean(a, a->reply->model, at->answer.model);
    copy_clean(a, a->reply->request_id, at->http.request_id);
    copy_clean(a, a->reply->provider, at->provider->id);
    if (!u.known && (at->http.status < 200 || at->http.status > 299)) {
        return; /* errors cost nothing */
    }
    /* A prompt and a text both cost tokens: a server that reports none for them is not believed. */
    if (u.input == 0 || (u.output == 0 && at->answer.text.len > 0)) {
        u.known = false;
    }
    if (!u.known) { /* estimates four bytes per token */
        u.input = u.input > 0 ? u.input : at->body.len / 4 + 1;
        u.output = at->answer.text.len / 4 + 1;
    }
    sum->known = u.known && (sum->known || sum->input + sum->output == 0);
    sum->input += u.input;
    sum->output += u.output;
    sum->cached += u.cached;
    a->reply->cost_micros += llm_cost(at->provider, &u);
}

/* Recorded once per call, however many attempts it had: a call repeated three times shows no more
 * about the endpoint than one. */
static void record_outcome(struct provider_call *a, uint32_t ix, enum bt_code code, msec after,
                           const struct bt_error *err)
{
    char *why = a->c->at[ix].why;
    bool unhealthy =
        code == BT_UNAVAILABLE || code == BT_TIMEOUT || code == BT_BUSY || code == BT_PROTOCOL;

    (void)pthread_mutex_lock(&a->c->lock);
    if (unhealthy) {
        breaker_failed(&a->c->at[ix].breaker, clock_mono_ms(), after == MSEC_NEVER ? 0 : after);
        (void)snprintf(why, PROVIDER_CALL_WHY_MAX, "%.*s",
                       (int)utf8_cut(err->msg, strlen(err->msg), PROVIDER_CALL_WHY_MAX - 1),
                       err->msg);
    } else if (code != BT_CANCELLED && code != BT_NOMEM) {
        breaker_succeeded(&a->c->at[ix].breaker);
    }
    (void)pthread_mutex_unlock(&a->c->lock);
}

/* Stops using a feature that the server rejected. Another call may have learnt it meanwhile. */
static bool learn_caps(struct provider_call *a, uint32_t ix, const struct attempt *at,
                       const struct server_caps *used)
{
    struct server_caps *l = &a->c->at[ix].server_caps;
    bool again;
    bool down;
    enum llm_output_mode output_mode;

    (void)pthread_mutex_lock(&a->c->lock);
    if (l->output_mode != used->output_mode || l->quirks != used->quirks) {
        again = true;
        down = false;
    } else {
        again = output_mode_learn(l, at->provider->dialect, a->schema != NULL, at->http.status,
                                  buf_str(&at->answer.error));
        down = l->output_mode != used->output_mode;
    }
    output_mode = l->output_mode;
    (void)pthread_mutex_unlock(&a->c->lock);
    if (down) {
        log_info("llm.rung", "provider=%s structured=%s", at->provider->id,
                 output_mode == LLM_OUTPUT_MODE_OBJECT ? "object" : "text");
    }
    return again;
}

/* ---- one provider ---- */

static struct retry_verdict decide_retry(const struct provider_call *a, const struct attempt *at,
                                         uint32_t attempt, msec after)
{
    const struct llm_provider *p = at->provider;
    bool whole = at->http.status >= 200 && at->http.status <= 299;
    const char *should = at->http.should_retry;
    const struct retry_case c = {
        .status = whole ? 0 : at->http.status,
        .after = after,
        .should = strcmp(should, "true") == 0    ? 1
                  : strcmp(should, "false") == 0 ? 0
                                                 : -1,
        .attempt = attempt,
        .attempts = p->attempts,
        .now = clock_mono_ms(),
        .deadline = a->request.deadline,
        .base_ms = p->backoff_ms,
        .max_wait_ms = p->max_wait_ms,
        .random_bits = random_bits(),
    };

    return at->retryable ? retry_decide(&c) : (struct retry_verdict){0};
}

static msec asked_to_wait(const struct attempt *at)
{
    msec after = retry_after_ms_read(str_from(at->http.retry_after_ms));

    return after != MSEC_NEVER ? after
                               : retry_after_read(str_from(at->http.retry_after), clock_wall_ms());
}

static enum bt_code one_attempt(struct provider_call *a, uint32_t ix, struct attempt *at,
                                struct server_caps *used, struct bt_error *err)
{
    const struct llm_provider *p = &a->c->config->providers[ix];
    struct dialect_request ask = {
        .request = &a->request, .model = p->model, .extra = p->extra, .stream = p->stream};
    enum bt_code code;

    (void)pthread_mutex_lock(&a->c->lock);
    *used = a->c->at[ix].server_caps;
    (void)pthread_mutex_unlock(&a->c->lock);
    ask.output_mode = dialect_output_mode_for(p->dialect, used->output_mode, a->request.schema);
    ask.quirks = used->quirks;
    a->reply->output_mode = ask.output_mode;
    if (a->emitted) {
        a->request.on_text(a->request.self, true, (struct str){"", 0});
        a->emitted = false;
    }
    code = http_attempt_run(at, a->c->config, p, &ask, a->c->net, a->c->recording, err);
    a->emitted = at->emitted;
    account(a, at);
    return code;
}

/* Asks the breaker. The error has the remaining time and the last failure. */
static enum bt_code check_breaker(struct provider_call *a, uint32_t ix, struct bt_error *err)
{
    struct breaker *b = &a->c->at[ix].breaker;
    msec now = clock_mono_ms();
    enum bt_code code = BT_OK;

    (void)pthread_mutex_lock(&a->c->lock);
    if (!breaker_allow(b, now)) {
        msec left = breaker_left(b, now);
        a->refused_ms = left < a->refused_ms ? left : a->refused_ms;
        code = err_set(err, BT_UNAVAILABLE,
                       "it %s and is left alone for %llu s more; the last failure: %s",
                       b->failed >= b->failures ? "failed too often" : "asked for a longer wait",
                       (unsigned long long)(left + 999) / 1000, a->c->at[ix].why);
    }
    (void)pthread_mutex_unlock(&a->c->lock);
    return code;
}

/* Another call may have opened the breaker meanwhile, or this call is the only probe. */
static bool breaker_opened(struct provider_call *a, uint32_t ix)
{
    bool suspect;

    (void)pthread_mutex_lock(&a->c->lock);
    suspect = breaker_is_open(&a->c->at[ix].breaker);
    (void)pthread_mutex_unlock(&a->c->lock);
    return suspect;
}

static void take_text(struct provider_call *a, struct attempt *at)
{
    struct buf text = a->reply->text;

    a->reply->text = at->answer.text;
    at->answer.text = text;
}

enum bt_code provider_call_provider(struct provider_call *a, uint32_t ix, struct bt_error *err)
{
    uint32_t learned = 0;
    enum bt_code code = check_breaker(a, ix, err);

    if (code != BT_OK) {
        return code;
    }
    for (uint32_t attempt = 1;;) {
        struct retry_verdict verdict = {0};
        struct attempt at;
        struct server_caps used;
        bool again = false;
        msec after;

        code = one_attempt(a, ix, &at, &used, err);
        after = asked_to_wait(&at);
        if (code != BT_OK && after < a->reply->retry_after_ms) {
            a->reply->retry_after_ms = after; /* of several providers, the first that is ready */
        }
        if (code == BT_OK) {
            take_text(a, &at);
        } else {
            again = learned < LEARNED_MAX && at.http.status != 0 && learn_caps(a, ix, &at, &used);
        }
        if (code != BT_OK && !again && !breaker_opened(a, ix)) {
            verdict = decide_retry(a, &at, attempt, after);
        }
        http_attempt_done(&at);
        if (again) {
            learned++;
            continue;
        }
        if (verdict.again && wait_ms(a, verdict.wait_ms)) {
            attempt++;
            continue;
        }
        record_outcome(a, ix, code, after, err);
        return verdict.again ? err_set(err, BT_CANCELLED, "stopped on request") : code;
    }
}
