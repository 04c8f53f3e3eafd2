/* One request to the receiver of a webhook, and what came of it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/base/uuid.h"
#include "supervisor/gateway/a2a/a2a.h"
#include "supervisor/gateway/webhook/body.h"
#include "supervisor/gateway/webhook/sign.h"
#include "supervisor/gateway/webhook/webhook_internal.h"

enum { POST_MS = 15000 };

static void on_sent(void *self, unsigned status, uint64_t retry_after_ms, const char *why)
{
    struct hook *h = self;
    struct hook_state *s = &h->state;
    const uint32_t tries = s->at.tries;

    h->out = false;
    if (h->out_test) {
        s->test_status = status;
        (void)snprintf(s->test_why, sizeof s->test_why, "%s", why);
        s->tested = h->spec.test;
        hook_save(h);
        return;
    }
    if (h->out_serial != h->serial) {
        return; /* it was told to go on from elsewhere */
    }
    if (status / 100 == 2) {
        h->delivered++;
        if (tries > 0) {
            log_info("gateway.webhook", "%s: its receiver takes events again", h->name);
        }
        hook_passed(h, h->event_seq, doc_string(doc_get(h->event, STR_LIT("eventId"))));
        h->dirty = true;
        if (hook_is_push(&h->spec) && a2a_push_ends(h->event)) {
            push_end(h, NULL);
        }
        h->event.ptr = NULL;
        return;
    }
    h->failed++;
    hook_failed(&s->at, clock_wall_ms(), status, retry_after_ms, why,
                (uint32_t)(clock_mono_ns() * 2654435761u >> 7));
    if (tries == 0 || s->at.parked) {
        log_warn("gateway.webhook", "%s: event %" PRIu64 "%s: %s", h->name, h->event_seq,
                 s->at.parked ? ": it is parked until `baton webhook resend`" : "", s->at.why);
    }
    hook_save(h);
    if (s->at.parked && hook_is_push(&h->spec)) {
        push_end(h, "its receiver has not taken it");
    }
}

struct letter {
    struct buf body, signature;
    char id[96], stamp[64], token[PUSH_TEXT_MAX + 40];
};

/* What a receiver of push notifications knows them by. */
static void show_push(const struct hook_spec *s, struct letter *l)
{
    if (s->token[0] != 0) {
        (void)snprintf(l->token, sizeof l->token, "X-A2A-Notification-Token: %s", s->token);
    }
    if (s->scheme[0] != 0 && s->credentials[0] != 0) {
        buf_printf(&l->signature, "Authorization: %s %s", s->scheme, s->credentials);
    }
}

static enum bt_code sign(struct hook *h, struct str id, uint64_t time_s, struct letter *l,
                         struct bt_error *err)
{
    struct sign_secrets secrets;
    char text[SIGN_TEXT_MAX];
    enum bt_code code = hook_secret_read(&h->spec, text, sizeof text, err);

    if (code == BT_OK) {
        code = sign_read(str_from(text), &secrets, err);
        explicit_bzero(text, sizeof text);
    }
    if (code == BT_OK) {
        buf_add_cstr(&l->signature, "webhook-signature: ");
        code = sign_put(&secrets, id, time_s, buf_str(&l->body), &l->signature, err);
        sign_forget(&secrets);
    }
    return code;
}

static enum bt_code seal(struct hook *h, struct str id, struct letter *l, struct bt_error *err)
{
    const uint64_t time_s = clock_wall_ms() / 1000;
    enum bt_code code = BT_OK;

    l->token[0] = 0;
    if (hook_is_push(&h->spec)) {
        show_push(&h->spec, l);
    } else {
        code = sign(h, id, time_s, l, err);
    }
    (void)snprintf(l->id, sizeof l->id, "webhook-id: %.*s", (int)id.len, id.ptr);
    (void)snprintf(l->stamp, sizeof l->stamp, "webhook-timestamp: %" PRIu64, time_s);
    return code;
}

void hook_send(struct hook *h, struct doc event)
{
    struct egress_spec spec = {
        .url = h->spec.url, .timeout_ms = POST_MS, .done = on_sent, .self = h};
    struct letter l;
    struct bt_error err;
    enum bt_code code;
    size_t n = 0;

    buf_init(&l.body, hook_is_push(&h->spec) ? 8 * HOOK_PAGE_BYTES : 256 * 1024);
    buf_init(&l.signature, 2 * PUSH_TEXT_MAX);
    if (hook_is_push(&h->spec)) {
        push_put_body(h, &l.body);
    } else {
        hook_put_body(h->spec.form, event, h->of->url, &l.body);
    }
    code = buf_check(&l.body, &err);
    if (code == BT_OK) {
        code = seal(h, doc_string(doc_get(event, STR_LIT("eventId"))), &l, &err);
    }
    if (code == BT_OK) {
        spec.headers[n++] = hook_content_type(h->spec.form);
        spec.headers[n++] = l.id;
        spec.headers[n++] = l.stamp;
        spec.headers[n++] = "Expect:";
        if (l.signature.len > 0) {
            spec.headers[n++] = buf_cstr(&l.signature);
        }
        if (l.token[0] != 0) {
            spec.headers[n++] = l.token;
        }
        spec.body = buf_str(&l.body);
        code = egress_post(h->of->out, &spec, &err);
    }
    if (code == BT_OK) {
        h->out = true;
        h->out_serial = h->serial;
    } else if (code == BT_BUSY) {
        h->post_again = h->of->now + HOOK_AGAIN_MS;
    } else {
        h->out_serial = h->serial;
        on_sent(h, 0, 0, err.msg);
    }
    if (l.signature.at != NULL) {
        explicit_bzero(l.signature.at, l.signature.cap);
    }
    buf_done(&l.signature);
    buf_done(&l.body);
}

void hook_send_test(struct hook *h)
{
    char id[UUID_TEXT_LEN + 1];
    char at[CLOCK_ISO_LEN + 1];
    struct buf event;

    uuid_format(uuid_new(), id);
    clock_iso(clock_wall_ms(), at);
    buf_init(&event, 512);
    doc_put_map(&event, 4);
    doc_put_cstr(&event, "seq"); /* of the last one that was taken: the next one is above it */
    doc_put_u64(&event, h->state.at.seq);
    doc_put_cstr(&event, "eventId");
    doc_put_cstr(&event, id);
    doc_put_cstr(&event, "type");
    doc_put_cstr(&event, "webhook_test");
    doc_put_cstr(&event, "timestamp");
    doc_put_cstr(&event, at);
    h->out_test = true;
    hook_send(h, doc_from_buf(&event));
    buf_done(&event);
}
