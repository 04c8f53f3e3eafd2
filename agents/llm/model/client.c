#include "agents/llm/model/client.h"

#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/llm/model/answer_parser.h"
#include "agents/llm/model/null_rules.h"
#include "agents/llm/model/provider_call.h"
#include "agents/web/url.h"
#include "protocol/base/assert.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/base/utf8.h"
#include "protocol/jsonschema/schema.h"

enum { REPAIRS_MAX = 1, REPAIR_QUOTE = 16 * 1024, CAUSE_MAX = BT_ERROR_MSG_MAX / 2 - 16 };

/* ---- life ---- */

enum bt_code llm_client_new(struct llm_config *config, struct llm_client **ret,
                            struct bt_error *err)
{
    struct llm_client *c = calloc(1, sizeof *c);
    const char *dir = config->replay != NULL ? config->replay : config->record;
    pthread_condattr_t attr;
    enum bt_code code = BT_OK;

    if (c == NULL) {
        llm_config_free(config);
        return err_set(err, BT_NOMEM, "out of memory for models");
    }
    c->config = config;
    (void)pthread_mutex_init(&c->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&c->sleep_cond, &attr);
    (void)pthread_condattr_destroy(&attr);
    for (uint32_t i = 0; i < config->n; i++) {
        const struct llm_provider *p = &config->providers[i];
        c->at[i].server_caps.output_mode = dialect_output_mode(p->dialect, p->output_mode);
        c->at[i].breaker =
            (struct breaker){.failures = p->breaker_failures, .cooldown_ms = p->breaker_ms};
    }
    if (dir != NULL) {
        code = recording_new(dir, config->replay != NULL, &config->secrets, &c->recording, err);
    }
    if (code == BT_OK && config->replay == NULL) {
        code = net_new(&c->net, err);
    }
    if (code != BT_OK) {
        llm_client_free(c);
        return code;
    }
    *ret = c;
    return BT_OK;
}

void llm_client_free(struct llm_client *c)
{
    if (c != NULL) {
        net_free(c->net);
        recording_free(c->recording);
        llm_config_free(c->config);
        (void)pthread_cond_destroy(&c->sleep_cond);
        (void)pthread_mutex_destroy(&c->lock);
        free(c);
    }
}

void llm_client_redact(const struct llm_client *c, struct buf *text)
{
    secrets_redact(&c->config->secrets, text);
}

enum llm_output_mode llm_client_output_mode(struct llm_client *c, uint32_t provider)
{
    enum llm_output_mode output_mode;

    (void)pthread_mutex_lock(&c->lock);
    output_mode = c->at[provider].server_caps.output_mode;
    (void)pthread_mutex_unlock(&c->lock);
    return output_mode;
}

void llm_reply_done(struct llm_reply *r)
{
    buf_done(&r->text);
    cJSON_Delete(r->json);
    r->json = NULL;
}

uint64_t llm_client_affordable(const struct llm_client *c, uint64_t input_tokens, uint64_t micros)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < c->config->n; i++) {
        const struct llm_provider *p = &c->config->providers[i];
        double left = (double)micros - (double)input_tokens * p->price.input;
        double tokens;
        if (!p->priced || (left >= 0 && p->price.output <= 0)) {
            continue;
        }
        tokens = left < 0 ? 0 : left / p->price.output;
        if (tokens < (double)LLM_TOKENS_SANE && (uint64_t)tokens < least) {
            least = (uint64_t)tokens;
        }
    }
    return least;
}

/* ---- all providers ---- */

static bool another_may_help(const struct provider_call *a, enum bt_code code)
{
    return code != BT_OK && code != BT_CANCELLED && code != BT_NOMEM &&
           a->reply->finish != LLM_FINISH_REFUSAL && clock_mono_ms() < a->request.deadline;
}

/* Puts the newest failure first, since its code is returned, and the one before it after it. */
static void add_cause(struct bt_error *all, enum bt_code code, const struct bt_error *why)
{
    const struct bt_error before = *all;

    if (before.msg[0] == 0) {
        *all = *why;
        return;
    }
    (void)err_set(all, code, "%.*s; before that, %.*s",
                  (int)utf8_cut(why->msg, strlen(why->msg), CAUSE_MAX), why->msg,
                  (int)utf8_cut(before.msg, strlen(before.msg), CAUSE_MAX), before.msg);
}

static enum bt_code try_providers(struct provider_call *a, struct bt_error *err)
{
    const struct llm_config *config = a->c->config;
    struct bt_error why = {0};
    struct bt_error all = {0};
    enum bt_code code = BT_OK;

    for (uint32_t i = 0; i < config->n; i++) {
        a->reply->finish = LLM_FINISH_UNKNOWN;
        code = provider_call_provider(a, i, &why);
        if (code != BT_OK) {
            struct str at = url_authority(str_from(config->providers[i].url));
            (void)err_wrap(&why, "model %s at %.*s", config->providers[i].id, (int)at.len, at.ptr);
            secrets_redact_error(&config->secrets, &why);
            add_cause(&all, code, &why);
        }
        if (!another_may_help(a, code)) {
            break;
        }
        if (i + 1 < config->n) {
            log_warn("llm.fallback", "next=%s error=\"%s\"", config->providers[i + 1].id, why.msg);
        }
    }
    if (code != BT_OK && a->reply->calls == 0 && a->refused_ms < a->reply->retry_after_ms) {
        /* no request was sent: the breaker decides when one can be */
        a->reply->retry_after_ms = a->refused_ms;
    }
    if (code != BT_OK && err != NULL) {
        *err = all;
    }
    return code;
}

/* ---- answers by a schema ---- */

/* The caller judges whether the answer fits; without a JSON value *json stays NULL. */
static enum bt_code complete_as_is(struct provider_call *a, struct bt_error *err)
{
    enum bt_code code = try_providers(a, err);
    struct bt_error why;

    if (code == BT_OK) {
        code =
            answer_parser_fit(buf_str(&a->reply->text), a->schema, a->tree, &a->reply->json, &why);
        if (code == BT_INVALID) {
            code = answer_parser_json(buf_str(&a->reply->text), &a->reply->json, &why);
        }
        code = code == BT_INVALID ? BT_OK : code;
        if (code != BT_OK && err != NULL) {
            *err = why;
        }
    }
    return code;
}

static enum bt_code complete_with_repair(struct provider_call *a, struct bt_error *err)
{
    struct llm_turn turns[LLM_TURNS_MAX + 2 * REPAIRS_MAX];
    char *said = NULL;
    struct buf wrong;
    enum bt_code code;

    memcpy(turns, a->request.turns, a->request.n_turns * sizeof *turns);
    a->request.turns = turns;
    buf_init(&wrong, 4096);
    for (;;) {
        code = try_providers(a, err);
        if (code != BT_OK) {
            break;
        }
        code =
            answer_parser_fit(buf_str(&a->reply->text), a->schema, a->tree, &a->reply->json, err);
        if (code == BT_OK && a->request.check != NULL) {
            code = a->request.check(a->request.self, a->reply->json, err);
        }
        if (code != BT_INVALID) {
            break;
        }
        if (a->reply->repairs == REPAIRS_MAX) {
            (void)err_wrap(err, "the model's answer does not fit, also after a repair turn");
            break;
        }
        a->reply->repairs++;
        cJSON_Delete(a->reply->json);
        a->reply->json = NULL;
        buf_printf(&wrong,
                   "Your answer does not fit: %s\nAnswer again, with the whole corrected JSON "
                   "object and nothing else.",
                   err->msg);
        said = strndup(buf_cstr(&a->reply->text),
                       utf8_cut(buf_cstr(&a->reply->text), a->reply->text.len, REPAIR_QUOTE));
        if (said == NULL || buf_check(&wrong, err) != BT_OK) {
            code = err_set(err, BT_NOMEM, "out of memory for a repair turn");
            break;
        }
        turns[a->request.n_turns++] = (struct llm_turn){.text = said, .by_model = true};
        turns[a->request.n_turns++] = (struct llm_turn){.text = buf_cstr(&wrong)};
    }
    free(said);
    buf_done(&wrong);
    return code;
}

/* The reader's schema: the one that is sent, without the requirement of optional members. */
static enum bt_code complete_by_schema(struct provider_call *a, struct bt_error *err)
{
    static const char *const none[] = {NULL};
    const struct llm_request *r = &a->request;
    cJSON *tree = null_rules_schema(r->schema, r->optional != NULL ? r->optional : none);
    struct schema *schema = NULL;
    enum bt_code code = tree == NULL ? err_set(err, BT_NOMEM, "out of memory for a schema") : BT_OK;

    if (r->extra) {
        cJSON_DeleteItemFromObjectCaseSensitive(tree, "additionalProperties");
    }
    if (code == BT_OK) {
        code = schema_compile(tree, &schema, err);
    }
    if (code == BT_OK) {
        a->schema = schema;
        a->tree = tree;
        code = r->as_is ? complete_as_is(a, err) : complete_with_repair(a, err);
    }
    schema_free(schema);
    cJSON_Delete(tree);
    return code;
}

enum bt_code llm_complete(struct llm_client *c, const struct llm_request *request,
                          struct llm_reply *ret, struct bt_error *err)
{
    struct provider_call a = {.c = c, .request = *request, .reply = ret, .refused_ms = MSEC_NEVER};
    struct bt_error local = {0};
    msec began = clock_mono_ms();
    enum bt_code code = BT_OK;

    *ret = (struct llm_reply){.retry_after_ms = MSEC_NEVER};
    buf_init(&ret->text, 1);
    err = err == NULL ? &local : err;
    ASSERT(request->n_turns >= 1 && request->n_turns <= LLM_TURNS_MAX && request->max_tokens >= 1);
    if (request->schema == NULL) {
        code = try_providers(&a, err);
    } else {
        code = complete_by_schema(&a, err);
    }
    if (code != BT_OK) {
        secrets_redact_error(&c->config->secrets, err);
    }
    ret->took_ms = clock_mono_ms() - began;
    return code;
}
