/* Push notifications of A2A: what their queues have beside those of webhooks. */
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/gateway/a2a/a2a.h"
#include "supervisor/gateway/webhook/webhook_internal.h"

void push_end(struct hook *h, const char *why)
{
    if (why != NULL) {
        log_warn("gateway.webhook", "%s ends: %s", h->name, why);
    }
    (void)hook_remove(h->of->dir, h->name);
    h->of->pushes_delivered += h->delivered;
    h->of->pushes_failed += h->failed;
    h->gone = true;
}

static void on_answer(void *self, const struct reply *reply)
{
    struct hook *h = self;
    const enum bt_code code = reply->problem.code;

    h->call = NULL;
    if (reply->ok) {
        buf_add(&h->answer, reply->body.ptr, reply->body.len);
    } else if (code == BT_NOT_FOUND || code == BT_GONE) {
        push_end(h, "its plan was deleted");
    } else {
        h->post_again = h->of->now + HOOK_AGAIN_MS;
    }
}

bool push_asks(struct hook *h)
{
    struct webhooks *w = h->of;
    struct caller *caller = watch_caller(w->watch, w->now);
    struct call_spec spec = {.type = MSG_plan_result,
                             .answer = MSG_plan_result_ok,
                             .reads = true,
                             .done = on_answer,
                             .self = h};
    struct bt_error err;
    struct buf fields;

    if (h->answer.len > 0 || !a2a_push_ends(h->event)) {
        return false;
    }
    if (h->call != NULL) {
        return true;
    }
    buf_init(&fields, 256);
    doc_put_map(&fields, 2);
    doc_put_cstr(&fields, "planId");
    doc_put_cstr(&fields, h->spec.plan);
    doc_put_cstr(&fields, "steps");
    doc_put_bool(&fields, false);
    spec.fields = doc_from_buf(&fields);
    if (caller == NULL || caller_call(caller, &spec, w->now, &h->call, &err) != BT_OK) {
        h->post_again = w->now + HOOK_AGAIN_MS;
    }
    buf_done(&fields);
    return true;
}

void push_put_body(const struct hook *h, struct buf *out)
{
    const struct doc none = {.ptr = NULL};
    const struct a2a_push p = {.modern = h->spec.form == HOOK_A2A,
                               .plan = h->spec.plan,
                               .context = h->spec.context,
                               .event = h->event,
                               .answer = h->answer.len > 0 ? doc_from_buf(&h->answer) : none};

    a2a_push_body(&p, out);
}

static struct hook *find(const struct webhooks *w, const char *plan, const char *config)
{
    for (int i = HOOKS_PLACES; i < HOOK_PLACES; i++) {
        struct hook *h = w->hooks[i];
        if (h != NULL && !h->gone && strcmp(h->spec.plan, plan) == 0 &&
            strcmp(h->spec.config, config) == 0) {
            return h;
        }
    }
    return NULL;
}

static enum bt_code too_many(struct bt_error *err)
{
    return err_set(err, BT_LIMIT,
                   "there are %d push notification configurations of open tasks; delete one, or "
                   "follow the task by a stream",
                   PUSHES_MAX);
}

/* Whether a configuration has a place, or there is one for it. */
static bool has_room(const struct webhooks *w, const char *plan, const char *config)
{
    uint32_t n = w->reserved;

    for (int i = HOOKS_PLACES; i < HOOK_PLACES; i++) {
        n += w->hooks[i] != NULL;
    }
    return n < PUSHES_MAX || find(w, plan, config) != NULL;
}

enum bt_code webhooks_push_reserve(struct webhooks *w, const char *plan, const char *config,
                                   struct bt_error *err)
{
    if (!has_room(w, plan, config)) {
        return too_many(err);
    }
    w->reserved++;
    return BT_OK;
}

void webhooks_push_unreserve(struct webhooks *w)
{
    w->reserved--;
}

enum bt_code webhooks_push_put(struct webhooks *w, const struct hook_spec *spec,
                               struct bt_error *err)
{
    char name[HOOK_NAME_MAX + 1];
    enum bt_code code =
        has_room(w, spec->plan, spec->config) ? hook_push_write(w->dir, spec, err) : too_many(err);

    if (code == BT_OK) {
        webhooks_scan(w);
        if (find(w, spec->plan, spec->config) == NULL) {
            hook_push_name(spec->plan, spec->config, name);
            (void)hook_remove(w->dir, name);
            code = too_many(err);
        }
    }
    return code;
}

const struct hook_spec *webhooks_push_next(const struct webhooks *w, const char *plan, uint32_t *at)
{
    while (*at < PUSHES_MAX) {
        const struct hook *h = w->hooks[HOOKS_PLACES + (*at)++];
        if (h != NULL && !h->gone && strcmp(h->spec.plan, plan) == 0) {
            return &h->spec;
        }
    }
    return NULL;
}

bool webhooks_push_remove(struct webhooks *w, const char *plan, const char *config)
{
    struct hook *h = find(w, plan, config);

    if (h != NULL) {
        push_end(h, NULL);
    }
    return h != NULL;
}

static uint64_t lag_of(const struct hook *h, uint64_t last)
{
    return last > h->state.at.seq ? last - h->state.at.seq : 0;
}

static void count_pushes(const struct webhooks *w, struct webhook_counts *ret)
{
    *ret = (struct webhook_counts){
        .name = "push", .delivered = w->pushes_delivered, .failed = w->pushes_failed};
    for (int i = HOOKS_PLACES; i < HOOK_PLACES; i++) {
        const struct hook *h = w->hooks[i];
        if (h != NULL && !h->gone) {
            const uint64_t lag = lag_of(h, h->last);
            ret->delivered += h->delivered;
            ret->failed += h->failed;
            ret->lag = lag > ret->lag ? lag : ret->lag;
        }
    }
}

/* Of all shards. */
static void count_hook(const struct webhooks *w, const char *name, struct webhook_counts *ret)
{
    *ret = (struct webhook_counts){.name = name};
    for (int i = 0; i < HOOKS_PLACES; i++) {
        const struct hook *h = w->hooks[i];
        if (h != NULL && !h->gone && strcmp(h->name, name) == 0) {
            ret->delivered += h->delivered;
            ret->failed += h->failed;
            ret->lag += lag_of(h, w->last[h->shard]);
            ret->parked = ret->parked || h->state.at.parked;
        }
    }
}

bool webhooks_counts(const struct webhooks *w, uint32_t *at, struct webhook_counts *ret)
{
    while (*at < HOOKS_PLACES) {
        const struct hook *h = w->hooks[(*at)++];
        if (h != NULL && !h->gone && h->shard == 0 && h->spec.url[0] != 0) {
            count_hook(w, h->name, ret);
            return true;
        }
    }
    if ((*at)++ > HOOKS_PLACES) {
        return false;
    }
    count_pushes(w, ret);
    return true;
}
