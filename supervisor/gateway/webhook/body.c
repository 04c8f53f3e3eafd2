#include "supervisor/gateway/webhook/body.h"

#include <inttypes.h>
#include <stdio.h>

#include "supervisor/gateway/json.h"

const char *hook_content_type(enum hook_form form)
{
    return form == HOOK_CLOUDEVENTS ? "Content-Type: application/cloudevents+json; charset=utf-8"
           : form == HOOK_A2A       ? "Content-Type: application/a2a+json"
                                    : "Content-Type: application/json";
}

static struct str text_of(struct doc event, const char *name)
{
    return doc_string(doc_get(event, str_from(name)));
}

/* Of an event that a person is asked by. */
static bool asks(struct doc event)
{
    const struct str type = text_of(event, "type");

    return text_of(event, "reviewId").len > 0 &&
           (str_is(type, "plan_step_waiting") || str_is(type, "plan_paused"));
}

static void put_link(struct buf *out, struct doc event, const char *page)
{
    static const char digits[] = "0123456789ABCDEF";
    const struct str id = text_of(event, "reviewId");

    buf_add_cstr(out, page);
    buf_add_cstr(out, "/#/reviews/");
    for (size_t i = 0; i < id.len; i++) {
        const uint8_t c = (uint8_t)id.ptr[i];
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            c == '-' || c == '_' || c == '.') {
            buf_add_byte(out, c);
        } else {
            buf_add_byte(out, '%');
            buf_add_byte(out, (uint8_t)digits[c >> 4]);
            buf_add_byte(out, (uint8_t)digits[c & 15]);
        }
    }
}

static void put_cloudevent(struct doc event, const char *page, struct buf *out)
{
    const struct doc seq = doc_get(event, STR_LIT("seq"));
    const struct str plan = text_of(event, "planId");
    struct buf text;
    char order[24];

    buf_init(&text, 4096);
    json_open(out, '{');
    json_key(out, "specversion");
    json_cstr(out, "1.0");
    json_member(out, "id", text_of(event, "eventId"));
    json_key(out, "source");
    json_cstr(out, page[0] != 0 ? page : "urn:baton");
    buf_printf(&text, "baton.%.*s", STR_ARG(text_of(event, "type")));
    json_member(out, "type", buf_str(&text));
    json_member(out, "time", text_of(event, "timestamp"));
    json_member(out, "subject", plan.len > 0 ? plan : text_of(event, "sessionId"));
    if (seq.ptr != NULL) {
        (void)snprintf(order, sizeof order, "%020" PRIu64, doc_head(seq).u);
        json_member(out, "sequence", str_from(order));
    }
    if (asks(event)) {
        buf_clear(&text);
        put_link(&text, event, page);
        json_member(out, "reviewurl", buf_str(&text));
    }
    json_key(out, "datacontenttype");
    json_cstr(out, "application/json");
    json_key(out, "data");
    json_doc(out, event);
    json_close(out, '}');
    buf_done(&text);
}

/* "plan step waiting": the type as words. */
static void put_title(struct buf *out, struct doc event)
{
    const struct str type = text_of(event, "type");
    const struct str step = text_of(event, "stepId");

    for (size_t i = 0; i < type.len; i++) {
        buf_add_byte(out, (uint8_t)(type.ptr[i] == '_' ? ' ' : type.ptr[i]));
    }
    if (step.len > 0) {
        buf_printf(out, " %.*s", STR_ARG(step));
    }
}

static void put_text(struct buf *out, struct doc event, const char *page)
{
    static const char *const members[] = {"planId", "status",  "outcome", "kind",  "prompt",
                                          "reason", "comment", "error",   "result"};

    put_title(out, event);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        const struct str s = text_of(event, members[i]);
        if (s.len > 0) {
            buf_printf(out, "\n%s: %.*s", members[i], STR_ARG(s));
        }
    }
    if (asks(event)) {
        buf_add_cstr(out, "\ndecide: ");
        put_link(out, event, page);
    }
}

void hook_put_body(enum hook_form form, struct doc event, const char *page, struct buf *out)
{
    struct buf text;

    if (form == HOOK_CLOUDEVENTS) {
        put_cloudevent(event, page, out);
        return;
    }
    buf_init(&text, 64 * 1024);
    json_open(out, '{');
    if (form == HOOK_MAIL) {
        buf_add_cstr(&text, "Baton: ");
        put_title(&text, event);
        json_member(out, "subject", buf_str(&text));
        buf_clear(&text);
    }
    put_text(&text, event, page);
    json_member(out, "text", buf_str(&text));
    json_close(out, '}');
    buf_done(&text);
}
