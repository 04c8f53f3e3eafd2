/* Configurations of push notifications: their methods, and what receivers get. The queues are those
 * of webhooks. */
#include <stdio.h>

#include "protocol/base/clock.h"
#include "supervisor/gateway/a2a/a2a_internal.h"
#include "supervisor/gateway/webhook/webhook.h"

/* ---- what is sent ---- */

bool a2a_push_ends(struct doc event)
{
    return str_is(doc_string(doc_get(event, STR_LIT("type"))), "plan_completed");
}

bool a2a_push_wants(struct doc event)
{
    struct buf says;
    enum a2a_state state;

    buf_init(&says, 64 * 1024);
    state = a2a_event_state(event, &says);
    buf_done(&says);
    return state != A2A_STATES || a2a_push_ends(event);
}

void a2a_push_body(const struct a2a_push *p, struct buf *out)
{
    const struct str when = doc_string(doc_get(p->event, STR_LIT("timestamp")));
    struct a2a a = {.modern = p->modern, .wrapped = true};
    struct buf says;
    enum a2a_state state;

    (void)snprintf(a.plan, sizeof a.plan, "%s", p->plan);
    (void)snprintf(a.context, sizeof a.context, "%s", p->context);
    (void)snprintf(a.when, sizeof a.when, "%.*s", (int)when.len, when.len > 0 ? when.ptr : "");
    buf_init(&says, 64 * 1024);
    if (p->answer.ptr != NULL) {
        state = a2a_state_of(doc_string(doc_get(p->answer, STR_LIT("status"))));
        buf_add_str(&says, doc_string(doc_get(p->answer, STR_LIT("failureReason"))));
    } else {
        state = a2a_event_state(p->event, &says);
    }
    if (p->modern && p->answer.ptr == NULL) {
        a2a_put_status(&a, state, buf_str(&says), out);
    } else {
        a2a_put_task(&a, state, buf_str(&says), p->answer, out);
    }
    buf_done(&says);
}

/* ---- the methods ---- */

static struct str text(struct doc d, const char *name)
{
    return doc_string(doc_get(d, str_from(name)));
}

static struct doc param(const struct a2a *a, const char *name)
{
    return doc_get(a->params, str_from(name));
}

/* The configuration within params: 1.0 has its members beside the task's id. */
static struct doc config_of(const struct a2a *a)
{
    const struct doc how = param(a, "configuration");
    const struct doc inner = param(a, "pushNotificationConfig");
    struct doc config;

    if (!a->sends) {
        return inner.ptr != NULL ? inner : a->params;
    }
    config = doc_get(how, STR_LIT("taskPushNotificationConfig"));
    config = config.ptr != NULL ? config : doc_get(how, STR_LIT("pushNotificationConfig"));
    return config.ptr != NULL ? config : doc_get(how, STR_LIT("pushNotification"));
}

/* Printable characters: they become headers. */
static bool copy(struct str from, char *to, size_t max)
{
    for (size_t i = 0; i < from.len; i++) {
        if (from.ptr[i] < 0x20 || from.ptr[i] > 0x7e) {
            return false;
        }
    }
    if (from.len > max) {
        return false;
    }
    (void)snprintf(to, max + 1, "%.*s", (int)from.len, from.len > 0 ? from.ptr : "");
    return true;
}

/* NULL, or what would be right. */
static const char *read_config(const struct a2a *a, struct hook_spec *ret)
{
    const struct doc config = config_of(a);
    const struct doc proof = doc_get(config, STR_LIT("authentication"));
    const struct str scheme = text(proof, "scheme");
    const struct str first = doc_string(doc_at(doc_get(proof, STR_LIT("schemes")), 0));

    *ret = (struct hook_spec){.form = a->modern ? HOOK_A2A : HOOK_A2A_OLD, .made = clock_wall_ms()};
    if (!copy(text(config, "url"), ret->url, HOOK_URL_MAX) ||
        (strncmp(ret->url, "http://", 7) != 0 && strncmp(ret->url, "https://", 8) != 0)) {
        return "url: expected an address with http:// or https://, of at most 2048 bytes";
    }
    if (!copy(text(config, "id"), ret->config, sizeof ret->config - 1)) {
        return "id: expected at most 64 printable characters of ASCII";
    }
    if (!copy(text(config, "token"), ret->token, PUSH_TEXT_MAX) ||
        !copy(scheme.len > 0 ? scheme : first, ret->scheme, sizeof ret->scheme - 1) ||
        !copy(text(proof, "credentials"), ret->credentials, PUSH_TEXT_MAX)) {
        return "token, authentication: expected printable characters of ASCII, at most 1024";
    }
    if (ret->config[0] == 0) { /* one that has no name is that of the task */
        (void)snprintf(ret->config, sizeof ret->config, "%s", a->plan);
    }
    return NULL;
}

static void put_members(const struct hook_spec *s, bool modern, struct buf *out)
{
    json_member(out, "id", str_from(s->config));
    json_member(out, "url", str_from(s->url));
    json_member(out, "token", str_from(s->token));
    if (s->scheme[0] != 0) { /* credentials are not shown again */
        json_key(out, "authentication");
        json_open(out, '{');
        json_key(out, modern ? "scheme" : "schemes");
        buf_add_cstr(out, modern ? "" : "[");
        json_cstr(out, s->scheme);
        buf_add_cstr(out, modern ? "" : "]");
        json_close(out, '}');
    }
}

static void put_config(const struct a2a *a, const struct hook_spec *s, struct buf *out)
{
    char name[160];

    json_open(out, '{');
    if (a->modern) {
        json_member(out, "taskId", str_from(s->plan));
        put_members(s, true, out);
    } else {
        (void)snprintf(name, sizeof name, "tasks/%s/pushNotificationConfigs/%s", s->plan,
                       s->config);
        json_member(out, a->rest ? "name" : "taskId", str_from(a->rest ? name : s->plan));
        json_key(out, "pushNotificationConfig");
        json_open(out, '{');
        put_members(s, false, out);
        json_close(out, '}');
    }
    json_close(out, '}');
}

static void answer_config(struct a2a *a, const struct hook_spec *s)
{
    a2a_begin(a, &a->h->out);
    put_config(a, s, &a->h->out);
    a2a_end(a, &a->h->out);
    a2a_answer(a);
}

static void refuse_config(struct a2a *a)
{
    a2a_refuse(a, A2A_NO_TASK, "this task has no push notification configuration with this id");
}

/* The plan is there and the sender may see it: now what was asked. */

/* view: plan.get, or absent: a message brought it. False after refusing. */
static bool set(struct a2a *a, struct doc view, struct hook_spec *spec)
{
    const char *wrong = read_config(a, spec);
    const struct doc last = doc_get(view, STR_LIT("lastSeq"));
    struct bt_error err;

    if (wrong != NULL) {
        a2a_refuse(a, A2A_PARAMS, wrong);
        return false;
    }
    /* from now on; of a task that is over its end */
    spec->from = last.ptr == NULL ? a->push_from : doc_head(last).u;
    spec->from += last.ptr != NULL && !a2a_is_over(a2a_take_view(a, view));
    (void)snprintf(spec->plan, sizeof spec->plan, "%s", a->plan);
    (void)snprintf(spec->context, sizeof spec->context, "%s",
                   a->context[0] != 0 ? a->context : a->plan);
    if (webhooks_push_put(a->h->s->parts.hooks, spec, &err) != BT_OK) {
        a2a_refuse(a, err.code == BT_LIMIT ? A2A_UNSUPPORTED : A2A_INTERNAL, err.msg);
        return false;
    }
    return true;
}

static void on_set(void *self, const struct reply *reply)
{
    struct a2a *a = self;
    struct hook_spec spec;

    a->h->call = NULL;
    if (!reply->ok) {
        a2a_refuse_problem(a, &reply->problem);
    } else if (set(a, reply->body, &spec)) {
        answer_config(a, &spec);
    }
}

/* By id: 1.0 {taskId, id}; 0.3 {id, pushNotificationConfigId}, without it that of the task. */
static struct str config_id(const struct a2a *a)
{
    const struct str id =
        doc_string(param(a, a->modern || a->rest ? "configId" : "pushNotificationConfigId"));

    if (id.len == 0 && a->modern && !a->rest) {
        return doc_string(param(a, "id"));
    }
    return id.len > 0 ? id : str_from(a->plan);
}

static void on_get(void *self, const struct reply *reply)
{
    struct a2a *a = self;
    const struct str id = config_id(a);
    const struct hook_spec *spec;
    uint32_t at = 0;

    a->h->call = NULL;
    if (!reply->ok) {
        a2a_refuse_problem(a, &reply->problem);
        return;
    }
    while ((spec = webhooks_push_next(a->h->s->parts.hooks, a->plan, &at)) != NULL) {
        if (str_is(id, spec->config)) {
            answer_config(a, spec);
            return;
        }
    }
    refuse_config(a);
}

static void on_list(void *self, const struct reply *reply)
{
    struct a2a *a = self;
    struct buf *out = &a->h->out;
    const struct hook_spec *spec;
    uint32_t at = 0;

    a->h->call = NULL;
    if (!reply->ok) {
        a2a_refuse_problem(a, &reply->problem);
        return;
    }
    a2a_begin(a, out);
    if (a2a_is_proto(a)) {
        json_open(out, '{');
        json_key(out, "configs");
    }
    json_open(out, '[');
    while ((spec = webhooks_push_next(a->h->s->parts.hooks, a->plan, &at)) != NULL) {
        put_config(a, spec, out);
    }
    json_close(out, ']');
    if (a2a_is_proto(a)) {
        json_close(out, '}');
    }
    a2a_end(a, out);
    a2a_answer(a);
}

static void on_delete(void *self, const struct reply *reply)
{
    struct a2a *a = self;
    char config[65];

    a->h->call = NULL;
    if (!reply->ok) {
        a2a_refuse_problem(a, &reply->problem);
    } else if (!copy(config_id(a), config, sizeof config - 1) ||
               !webhooks_push_remove(a->h->s->parts.hooks, a->plan, config)) {
        refuse_config(a);
    } else {
        a2a_begin(a, &a->h->out);
        json_raw(&a->h->out, a2a_is_proto(a) ? "{}" : "null");
        a2a_end(a, &a->h->out);
        a2a_answer(a);
    }
}

/* The plan that is meant, as its sender may see it. */
static void ask(struct a2a *a, const char *name, call_done *done)
{
    struct buf fields;

    if (a2a_take_plan(a, doc_string(param(a, name)))) {
        buf_init(&fields, 256);
        a2a_put_fields(&fields, a->plan);
        a2a_ask(a, MSG_plan_get, MSG_plan_view, true, &fields, done);
        buf_done(&fields);
    }
}

void a2a_push_set(struct a2a *a)
{
    ask(a, "taskId", on_set);
}

void a2a_push_get(struct a2a *a)
{
    ask(a, a->modern || a->rest ? "taskId" : "id", on_get);
}

void a2a_push_list(struct a2a *a)
{
    ask(a, a->modern || a->rest ? "taskId" : "id", on_list);
}

void a2a_push_delete(struct a2a *a)
{
    ask(a, a->modern || a->rest ? "taskId" : "id", on_delete);
}

bool a2a_push_fits(struct a2a *a)
{
    struct hook_spec spec;
    struct bt_error err;
    const char *wrong;

    a->sends = true;
    if (config_of(a).ptr == NULL) {
        return true;
    }
    wrong = read_config(a, &spec);
    if (wrong != NULL) {
        a2a_refuse(a, A2A_PARAMS, wrong);
        return false;
    }
    a->reserves = webhooks_push_reserve(a->h->s->parts.hooks, a->plan, spec.config, &err) == BT_OK;
    if (!a->reserves) {
        a2a_refuse(a, A2A_UNSUPPORTED, err.msg);
    }
    return a->reserves;
}

void a2a_push_free(struct a2a *a)
{
    if (a->reserves) {
        webhooks_push_unreserve(a->h->s->parts.hooks);
    }
    a->reserves = false;
}

bool a2a_push_comes(struct a2a *a)
{
    struct hook_spec spec;

    a2a_push_free(a);
    a->sends = true;
    return config_of(a).ptr == NULL || set(a, (struct doc){.ptr = NULL}, &spec);
}
