#include "agents/llm/model/http_attempt.h"

#include <stdio.h>

#include "agents/llm/model/answer_parser.h"
#include "agents/llm/model/retry.h"
#include "protocol/base/clock.h"
#include "protocol/base/utf8.h"

enum { BODY_MAX = 16 * 1024 * 1024, TRAILING_MAX = 64 * 1024, SENTENCE_MAX = 300 };

/* ---- receiving, on the net thread ---- */

/* Collects the model's texts of all channels in the order of arrival. */
static void collect_model_text(struct attempt *a, struct doc value)
{
    static const char *const channels[] = {"content",   "text",        "thinking",
                                           "reasoning", "arguments",   "reasoning_content",
                                           "refusal",   "partial_json"};
    struct doc_cursor c = doc_cursor(value);
    struct doc_head before = {0};
    struct doc_head h;

    while (doc_next(&c, &h)) {
        for (size_t i = 0; h.kind == DOC_STR && i < sizeof channels / sizeof channels[0]; i++) {
            if (before.kind == DOC_STR && str_is(before.str, channels[i])) {
                buf_add_str(&a->model_text, h.str);
            }
        }
        before = h;
    }
}

/* Passes the text received so far to the filter of the subscriber. */
static void filter_text(struct attempt *a, bool last)
{
    if (a->subscriber != NULL) {
        (void)pthread_mutex_lock(&a->lock);
        text_filter_feed(&a->text_filter, buf_str(&a->answer.text), last);
        (void)pthread_mutex_unlock(&a->lock);
    }
}

static enum bt_code on_json(void *self, struct str json, bool chunk, struct bt_error *err)
{
    struct attempt *a = self;
    struct buf doc;
    enum bt_code code;

    buf_init(&doc, json_doc_capacity(json.len * 3 + 16));
    code = dialect_json(json, a->provider->max_bytes, &doc, err);
    if (code == BT_OK && a->recording_on) {
        collect_model_text(a, doc_from_buf(&doc));
    }
    if (code == BT_OK) {
        code = dialect_read(&a->answer, doc_from_buf(&doc), chunk, err);
    }
    if (code == BT_OK && !a->answer.failed) {
        filter_text(a, false);
    }
    buf_done(&doc);
    return code;
}

static bool is_whole(const struct attempt *a)
{
    return a->answer.done || a->stream.ended;
}

static bool on_bytes(void *self, long status, struct str bytes)
{
    struct attempt *a = self;

    if (a->recording_on) {
        buf_add_str(&a->recorded, bytes);
    }
    if (status < 200 || status > 299) {
        size_t room = a->refused.max - a->refused.len;
        buf_add_str(&a->refused, (struct str){bytes.ptr, bytes.len < room ? bytes.len : room});
        return bytes.len < room;
    }
    if (is_whole(a)) { /* reads to the end, so that the connection can be reused */
        a->trailing += bytes.len;
        return a->trailing <= TRAILING_MAX;
    }
    a->read_code = stream_feed(&a->stream, bytes, &a->read_err);
    return a->read_code == BT_OK && !a->answer.failed;
}

/* ---- the subscriber, on the calling thread ---- */

static void emit_pieces(struct attempt *a)
{
    struct buf text;
    bool reset;

    if (a->subscriber == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&a->lock);
    text = a->text_filter.out;
    reset = a->text_filter.reset;
    buf_init(&a->text_filter.out, text.max);
    a->text_filter.reset = false;
    (void)pthread_mutex_unlock(&a->lock);
    if (reset && a->emitted) {
        a->subscriber->on_text(a->subscriber->self, true, (struct str){"", 0});
        a->emitted = false;
    }
    if (text.len > 0 && text.bad == BT_OK) {
        a->subscriber->on_text(a->subscriber->self, false, buf_str(&text));
        a->emitted = true;
    }
    buf_done(&text);
}

static bool emit_and_poll_stop(void *self)
{
    struct attempt *a = self;

    emit_pieces(a);
    return a->subscriber->stop != NULL && a->subscriber->stop(a->subscriber->self);
}

/* ---- the outcome ---- */

/* An error with the server's message: without keys, cut between characters. */
static enum bt_code server_error(struct attempt *a, const struct secrets *secrets,
                                 enum bt_code code, const char *what, struct bt_error *err)
{
    struct buf clean;
    size_t n;

    buf_init(&clean, ATTEMPT_ERROR_BODY * 4);
    (void)buf_add_repaired(&clean, buf_str(&a->answer.error));
    secrets_redact(secrets, &clean);
    n = clean.bad != BT_OK ? 0 : utf8_cut(buf_cstr(&clean), clean.len, SENTENCE_MAX);
    if (n == 0) {
        (void)err_set(err, code, "%s", what);
    } else {
        (void)err_set(err, code, "%s: %.*s", what, (int)n, (const char *)clean.at);
    }
    buf_done(&clean);
    return code;
}

static void read_refused(struct attempt *a)
{
    struct buf doc;

    buf_init(&doc, json_doc_capacity(ATTEMPT_ERROR_BODY * 3));
    if (dialect_json(buf_str(&a->refused), ATTEMPT_ERROR_BODY, &doc, NULL) == BT_OK &&
        doc_head(doc_from_buf(&doc)).kind == DOC_MAP) {
        dialect_read_error(&a->answer, doc_from_buf(&doc));
    } else { /* an error page of a proxy, or text */
        size_t n = a->refused.len < SENTENCE_MAX * 4 ? a->refused.len : SENTENCE_MAX * 4;
        buf_add(&a->answer.error, a->refused.at, n);
    }
    buf_done(&doc);
}

static enum bt_code refused(struct attempt *a, const struct secrets *secrets, struct bt_error *err)
{
    long s = a->http.status;
    enum bt_code code = s == 401 || s == 403   ? BT_UNAUTHORIZED
                        : s == 404 || s == 410 ? BT_NOT_FOUND
                        : s == 408             ? BT_TIMEOUT
                        : s == 409 || s == 429 ? BT_BUSY
                        : s >= 500             ? BT_UNAVAILABLE
                                               : BT_INVALID;
    char what[64];

    a->retryable = true; /* the status decides */
    if (s >= 300 && s <= 399) {
        return err_set(err, BT_INVALID,
                       "status %ld: redirects are not followed; give the URL "
                       "itself",
                       s);
    }
    read_refused(a);
    (void)snprintf(what, sizeof what, "status %ld", s);
    return server_error(a, secrets, code, what, err);
}

/* Takes the answer's text from the channel that has it. */
static enum bt_code finish_text(struct attempt *a, const struct dialect_request *ask,
                                const struct secrets *secrets, struct bt_error *err)
{
    struct dialect_answer *m = &a->answer;
    bool of_tool = m->tool_called && answer_parser_clean(buf_str(&m->text)).len == 0;
    struct str clean;
    struct buf kept;

    if (m->finish == LLM_FINISH_REFUSAL || m->refusal.len > 0) {
        m->finish = LLM_FINISH_REFUSAL;
        buf_clear(&m->error);
        buf_add(&m->error, m->refusal.at, m->refusal.len < 1024 ? m->refusal.len : 1024);
        return server_error(a, secrets, BT_INVALID, "the model refused to answer", err);
    }
    if (m->finish == LLM_FINISH_LENGTH) {
        return err_set(
            err, BT_LIMIT,
            "the answer was cut off at %llu tokens; raise maxTokens, or ask for a shorter answer",
            (unsigned long long)ask->request->max_tokens);
    }
    if (of_tool && ask->request->schema == NULL) {
        return err_set(err, BT_PROTOCOL, "the model called a tool; it was given none");
    }
    clean = answer_parser_clean(buf_str(of_tool ? &m->tool : &m->text));
    if (clean.len == 0) {
        a->retryable = true;
        return err_set(err, BT_PROTOCOL, "the model's answer is empty");
    }
    buf_init(&kept, m->text.max * 3);
    (void)buf_add_repaired(&kept, clean);
    secrets_redact(secrets, &kept);
    if (of_tool) {
        buf_add_str(&a->text_filter.out, buf_str(&kept)); /* emitted as one piece */
    } else {
        filter_text(a, true);
    }
    buf_done(&m->text);
    m->text = kept;
    return buf_check(&m->text, err);
}

static enum bt_code classify(struct attempt *a, const struct dialect_request *ask,
                             const struct secrets *secrets, enum bt_code code, struct bt_error *err)
{
    if (a->http.status > 299) { /* a status below 200 is not an answer yet */
        return code == BT_CANCELLED || code == BT_NOMEM ? code : refused(a, secrets, err);
    }
    if (code != BT_OK && !is_whole(a)) {
        a->retryable = code == BT_UNAVAILABLE || code == BT_TIMEOUT;
        return code;
    }
    if (a->read_code != BT_OK) {
        a->retryable = a->read_code == BT_PROTOCOL;
        return err_set(err, a->read_code, "%s", a->read_err.msg);
    }
    if (a->answer.failed) {
        a->retryable = true;
        return server_error(a, secrets, BT_UNAVAILABLE, "the server aborted mid-answer", err);
    }
    if (!is_whole(a) && a->answer.finish == LLM_FINISH_UNKNOWN) {
        a->retryable = true;
        return err_set(err, BT_UNAVAILABLE, "the answer ended early");
    }
    return finish_text(a, ask, secrets, err);
}

/* ---- the request ---- */

static struct net_spec spec_of(struct attempt *a, const struct llm_provider *p,
                               const struct llm_request *r)
{
    struct net_spec s = {
        .url = p->url,
        .headers = p->headers,
        .key = p->key,
        .body = buf_str(&a->body),
        .deadline = msec_add(clock_mono_ms(), p->timeout_ms),
        .connect_ms = p->connect_ms,
        .idle_ms = p->idle_ms,
        .max_bytes = p->max_bytes,
        .ca_file = p->ca_file,
        .proxy = p->proxy,
        .unix_socket = p->unix_socket,
        .loopback_only = !p->allow_http && strncasecmp(p->url, "https:", 6) != 0,
        .on_bytes = on_bytes,
        .self = a,
        .stop = a->subscriber != NULL ? emit_and_poll_stop : r->stop,
        .stop_self = a->subscriber != NULL ? a : r->self,
    };

    s.key_header = dialect_key_header(p->dialect, &s.key_prefix);
    if (p->key_header != NULL) {
        s.key_header = p->key_header;
        s.key_prefix = "";
    }
    s.deadline = r->deadline < s.deadline ? r->deadline : s.deadline;
    return s;
}

/* An answer with a key in it is not recorded: a key split over chunks cannot be removed from
 * them. */
static enum bt_code record(struct attempt *a, const struct secrets *secrets,
                           struct recording *recording, const struct net_spec *spec,
                           enum bt_code ended, const char *why, struct bt_error *err)
{
    struct str bytes = buf_str(&a->recorded);
    struct bt_error local;

    if (a->model_text.bad != BT_OK || secrets_contained(secrets, buf_str(&a->model_text))) {
        bytes = (struct str){"", 0};
        ended = BT_UNAUTHORIZED;
        why = "the answer held a key and was not recorded";
    }
    if (recording_record(recording, spec, &a->http, ended, why, bytes, &local) != BT_OK) {
        return err_set(err, BT_IO, "recording: %s", local.msg);
    }
    return BT_OK;
}

enum bt_code http_attempt_run(struct attempt *a, const struct llm_config *config,
                              const struct llm_provider *p, const struct dialect_request *ask,
                              struct net *net, struct recording *recording, struct bt_error *err)
{
    struct net_spec spec;
    enum bt_code code;

    *a = (struct attempt){.provider = p,
                          .subscriber = ask->request->on_text != NULL ? ask->request : NULL,
                          .recording_on = recording != NULL && !recording_replays(recording)};
    (void)pthread_mutex_init(&a->lock, NULL);
    text_filter_init(&a->text_filter, &config->secrets, p->max_bytes * 3);
    dialect_answer_init(&a->answer, p->dialect, p->max_bytes);
    stream_init(&a->stream, p->dialect == LLM_OLLAMA, p->max_bytes, on_json, a);
    buf_init(&a->refused, ATTEMPT_ERROR_BODY);
    buf_init(&a->recorded, p->max_bytes + 1);
    buf_init(&a->model_text, p->max_bytes * 3);
    buf_init(&a->body, BODY_MAX);
    code = dialect_body(p->dialect, ask, &a->body, err);
    if (code != BT_OK) {
        return code;
    }
    spec = spec_of(a, p, ask->request);
    if (recording != NULL && recording_replays(recording)) {
        code = recording_play(recording, &spec, &a->http, err);
    } else {
        code = net_post(net, &spec, &a->http, err);
    }
    if (code == BT_OK && a->read_code == BT_OK && !is_whole(a)) {
        a->read_code = stream_end(&a->stream, &a->read_err);
    }
    if (a->recording_on && code != BT_CANCELLED) {
        struct bt_error recording_err;
        if (record(a, &config->secrets, recording, &spec, code, code == BT_OK ? "" : err->msg,
                   &recording_err) != BT_OK) {
            *err = recording_err;
            return BT_IO;
        }
    }
    code = classify(a, ask, &config->secrets, code, err);
    if (code == BT_OK) {
        emit_pieces(a);
    }
    secrets_redact_error(&config->secrets, code == BT_OK ? NULL : err);
    return code;
}

void http_attempt_done(struct attempt *a)
{
    dialect_answer_done(&a->answer);
    stream_done(&a->stream);
    text_filter_done(&a->text_filter);
    (void)pthread_mutex_destroy(&a->lock);
    buf_done(&a->refused);
    buf_done(&a->recorded);
    buf_done(&a->model_text);
    buf_done(&a->body);
}
