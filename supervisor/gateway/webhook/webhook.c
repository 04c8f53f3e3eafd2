#include "supervisor/gateway/webhook/webhook.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "supervisor/gateway/webhook/webhook_internal.h"

enum {
    SCAN_MS = 500, /* how soon a changed file counts */
    WRITE_MS = 200 /* how far one is, while events are taken */
};

enum bt_code webhooks_new(const char *state_dir, const char *url, struct watch *watch,
                          struct egress *out, struct webhooks **ret, struct bt_error *err)
{
    struct webhooks *w = calloc(1, sizeof *w);

    *ret = w;
    if (w == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for webhooks");
    }
    w->dir = state_dir;
    w->url = url;
    w->watch = watch;
    w->out = out;
    return BT_OK;
}

/* ---- one turn ---- */

static bool is_due(const struct hook *h)
{
    const msec wall = clock_wall_ms();

    return h->post_again <= h->of->now && hook_due(&h->state.at, wall) <= wall;
}

static void turn(struct hook *h)
{
    struct webhooks *w = h->of;

    if (h->out || h->spec.url[0] == 0) {
        return;
    }
    if (h->shard == 0 && h->spec.test != h->state.tested && h->post_again <= w->now &&
        !hook_is_push(&h->spec)) {
        hook_send_test(h);
        return;
    }
    if (!is_due(h)) {
        return;
    }
    if (hook_next(h)) {
        h->out_test = false;
        if (!hook_is_push(&h->spec) || !push_asks(h)) {
            hook_send(h, h->event);
        }
    } else if (h->call == NULL && (h->read_again <= w->now || hook_has_more(h))) {
        hook_read_page(h);
    }
    if (h->dirty && w->now - h->written >= WRITE_MS) {
        hook_save(h);
    }
}

static void end(struct hook *h)
{
    if (h->call != NULL) {
        call_abandon(h->call);
    }
    if (h->shard > 0 || strncmp(h->name, "push-", 5) != 0) { /* it may have been written again */
        hook_state_remove(h->of->dir, h->name, h->shard);
    }
    buf_done(&h->page);
    buf_done(&h->answer);
    explicit_bzero(&h->spec, sizeof h->spec);
    free(h);
}

void webhooks_run(struct webhooks *w, msec now)
{
    w->now = now;
    if (now - w->scanned >= SCAN_MS) {
        w->scanned = now;
        webhooks_scan(w);
    }
    for (int i = 0; i < HOOK_PLACES; i++) {
        struct hook *h = w->hooks[i];
        if (h == NULL) {
            continue;
        }
        if (!h->gone) {
            turn(h);
        } else if (!h->out) {
            end(h);
            w->hooks[i] = NULL;
        }
    }
}

static msec deadline_of(const struct hook *h, msec now)
{
    const msec wall = clock_wall_ms();
    const msec due = hook_due(&h->state.at, wall);
    msec at = h->dirty ? h->written + WRITE_MS : MSEC_NEVER;

    if (h->out || h->gone || due == MSEC_NEVER) {
        return at;
    }
    if (due > wall) {
        return now + (due - wall) < at ? now + (due - wall) : at;
    }
    if (h->post_again > now) {
        return h->post_again < at ? h->post_again : at;
    }
    if (h->call == NULL && (h->event.ptr != NULL || h->left > 0)) {
        return now;
    }
    if (h->call == NULL) {
        const msec read = hook_has_more(h) ? now : h->read_again;
        at = read < at ? read : at;
    }
    return at;
}

msec webhooks_deadline(const struct webhooks *w, msec now)
{
    msec due = w->scanned + SCAN_MS;

    for (int i = 0; i < HOOK_PLACES; i++) {
        const msec at = w->hooks[i] == NULL ? MSEC_NEVER : deadline_of(w->hooks[i], now);
        due = at < due ? at : due;
    }
    return due;
}

void webhooks_flush(struct webhooks *w)
{
    for (int i = 0; i < HOOK_PLACES; i++) {
        if (w->hooks[i] != NULL && w->hooks[i]->dirty) {
            hook_save(w->hooks[i]);
        }
    }
}
