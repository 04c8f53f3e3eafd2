/*
 * The body of a request to a webhook: an event as a CloudEvent 1.0 in structured mode, or as text
 * for chats ({"text"}) and mail ({"subject", "text"}). One thread.
 */
#ifndef GATEWAY_WEBHOOK_BODY_H
#define GATEWAY_WEBHOOK_BODY_H

#include "protocol/base/buf.h"
#include "protocol/wire/doc.h"
#include "supervisor/gateway/webhook/store.h"

/* "Content-Type: ..." */
const char *hook_content_type(enum hook_form form);
/* page: the address of the dashboard, for links to reviews; a link shows the review, and decides
 * nothing before its reader has logged in. */
void hook_put_body(enum hook_form form, struct doc event, const char *page, struct buf *out);
#endif
