/*
 * Events sent to addresses of others: each webhook of STATE/webhooks is one queue, its events go
 * out one after the other, each until its receiver has taken it. At least once; who gets one twice
 * knows it by webhook-id, the event's eventId. One thread; nothing blocks but small files.
 *
 *     the journal's page -> body -> signature -> egress -> 2xx: the next one; else a wait
 */
#ifndef GATEWAY_WEBHOOK_WEBHOOK_H
#define GATEWAY_WEBHOOK_WEBHOOK_H

#include "supervisor/gateway/egress.h"
#include "supervisor/gateway/watch.h"
#include "supervisor/gateway/webhook/store.h"

struct webhooks;

/* All of them must live as long. url: of this gateway, for links; filled in before the first run.
 * It lives as long as the process. */
BT_MUST_CHECK enum bt_code webhooks_new(const char *state_dir, const char *url, struct watch *watch,
                                        struct egress *out, struct webhooks **ret,
                                        struct bt_error *err);
void webhooks_run(struct webhooks *w, msec now);
/* When webhooks_run is due. */
msec webhooks_deadline(const struct webhooks *w, msec now);
/* Keeps a place for a configuration of push notifications until webhooks_push_unreserve; the one
 * with this plan and configuration has one. BT_LIMIT: there are PUSHES_MAX. */
BT_MUST_CHECK enum bt_code webhooks_push_reserve(struct webhooks *w, const char *plan,
                                                 const char *config, struct bt_error *err);
void webhooks_push_unreserve(struct webhooks *w);
/* Push notifications of A2A: a queue each, about one plan, gone with its end, or when its receiver
 * has taken nothing for a day. Takes the place of the one with its plan and configuration.
 * BT_LIMIT: there are PUSHES_MAX, with the places that are kept. */
BT_MUST_CHECK enum bt_code webhooks_push_put(struct webhooks *w, const struct hook_spec *spec,
                                             struct bt_error *err);
/* NULL ends them. */
const struct hook_spec *webhooks_push_next(const struct webhooks *w, const char *plan,
                                           uint32_t *at);
/* False: there is none. */
bool webhooks_push_remove(struct webhooks *w, const char *plan, const char *config);
struct webhook_counts {
    const char *name; /* "push": all push notifications */
    uint64_t delivered, failed;
    uint64_t lag; /* events that were not looked at */
    bool parked;
};
/* One after the other from *at = 0 on; false ends them. */
bool webhooks_counts(const struct webhooks *w, uint32_t *at, struct webhook_counts *ret);
/* Writes how far each is, before the process ends. */
void webhooks_flush(struct webhooks *w);
#endif
