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

struct webhooks;

/* All of them must live as long. url: of this gateway, for links; filled in before the first run.
 * It lives as long as the process. */
BT_MUST_CHECK enum bt_code webhooks_new(const char *state_dir, const char *url, struct watch *watch,
                                        struct egress *out, struct webhooks **ret,
                                        struct bt_error *err);
void webhooks_run(struct webhooks *w, msec now);
/* When webhooks_run is due. */
msec webhooks_deadline(const struct webhooks *w, msec now);
/* Writes how far each is, before the process ends. */
void webhooks_flush(struct webhooks *w);
#endif
