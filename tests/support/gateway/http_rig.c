#include "tests/support/gateway/http_rig.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "protocol/wire/doc.h"
#include "supervisor/gateway/telemetry/telemetry.h"
#include "tests/support/cmocka.h"

enum { BODY_BYTES = 1 << 20 };

struct http_rig rig;

void rig_begin(const char *body)
{
    const struct parts parts = rig.s.parts; /* and the time: they are of the server */
    const msec now = rig.s.now;

    memset(&rig, 0, sizeof rig);
    rig.s.parts = parts;
    rig.s.now = now;
    rig.h.s = &rig.s;
    rig.h.state = HTTP_BODY;
    buf_init(&rig.h.body, BODY_BYTES);
    buf_init(&rig.h.out, BODY_BYTES);
    buf_add_cstr(&rig.h.body, body);
}

void rig_end(void)
{
    buf_done(&rig.h.body);
    buf_done(&rig.h.out);
}

void rig_header(const char *name, const char *value)
{
    size_t n = 0;

    while (rig.headers[n].name != NULL) {
        n++;
    }
    assert_true(n + 1 < RIG_HEADERS_MAX);
    rig.headers[n].name = name;
    rig.headers[n].value = value;
}

const char *rig_out(void)
{
    return buf_cstr(&rig.h.out);
}

static void answer(const struct call_spec *spec, const char *json)
{
    char text[RIG_TEXT_BYTES];
    struct buf doc;
    struct reply reply = {.ok = true};

    (void)snprintf(text, sizeof text, "%s", json);
    for (char *c = text; *c != 0; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    buf_init(&doc, BODY_BYTES);
    assert_int_equal(json_to_doc(str_from(text), NULL, &doc, NULL), BT_OK);
    reply.body = doc_from_buf(&doc);
    spec->done(spec->self, &reply);
    buf_done(&doc);
}

static void refuse(const struct call_spec *spec, enum bt_code code, const char *message)
{
    const struct reply reply = {.problem = {.code = code, .message = str_from(message)}};

    spec->done(spec->self, &reply);
}

static struct rig_call *call_of(enum msg_type type)
{
    for (size_t i = 0; i < RIG_CALLS_MAX; i++) {
        if (rig.calls[i].open && rig.calls[i].spec.type == type) {
            return &rig.calls[i];
        }
    }
    fail_msg("no call of type %s waits", msg_wire_type(type));
    return NULL;
}

/* The last call that was made. */
static struct rig_call *last_call(void)
{
    struct rig_call *c = NULL;

    for (size_t i = 0; i < RIG_CALLS_MAX; i++) {
        if (rig.calls[i].open && rig.calls[i].spec.self == rig.spec.self &&
            rig.calls[i].spec.done == rig.spec.done) {
            c = &rig.calls[i];
        }
    }
    assert_non_null(c);
    return c;
}

static struct call_spec closed(struct rig_call *c)
{
    c->open = false;
    return c->spec;
}

void rig_answer(const char *json)
{
    const struct call_spec spec = closed(last_call());

    answer(&spec, json);
}

void rig_refuse(enum bt_code code, const char *message)
{
    const struct call_spec spec = closed(last_call());

    refuse(&spec, code, message);
}

void rig_answer_to(enum msg_type type, const char *json)
{
    const struct call_spec spec = closed(call_of(type));

    answer(&spec, json);
}

void rig_refuse_to(enum msg_type type, enum bt_code code)
{
    const struct call_spec spec = closed(call_of(type));

    refuse(&spec, code, "the daemon says no");
}

uint32_t rig_open(enum msg_type type)
{
    uint32_t n = 0;

    for (size_t i = 0; i < RIG_CALLS_MAX; i++) {
        n += rig.calls[i].open && rig.calls[i].spec.type == type;
    }
    return n;
}

/* ---- libmicrohttpd ---- */

const char *MHD_lookup_connection_value(struct MHD_Connection *c, enum MHD_ValueKind kind,
                                        const char *key)
{
    (void)c;
    assert_int_equal(kind, MHD_HEADER_KIND);
    for (size_t i = 0; rig.headers[i].name != NULL; i++) {
        if (strcasecmp(rig.headers[i].name, key) == 0) {
            return rig.headers[i].value;
        }
    }
    return NULL;
}

/* ---- http.c ---- */

void http_problem(struct http *h, const struct problem *p)
{
    h->state = HTTP_READY;
    h->status = problem_status(p);
    rig.code = p->code;
    rig.retry_after_ms = p->retry_after_ms;
    (void)snprintf(rig.message, sizeof rig.message, "%.*s", STR_ARG(p->message));
    (void)snprintf(rig.field, sizeof rig.field, "%.*s", STR_ARG(p->field));
}

void http_refuse(struct http *h, enum bt_code code, unsigned status, const char *field,
                 const char *message)
{
    const struct problem p = {
        .code = code, .status = status, .field = str_from(field), .message = str_from(message)};

    http_problem(h, &p);
}

void http_wait(struct http *h)
{
    h->state = HTTP_WAITS;
}

void http_ready(struct http *h)
{
    h->state = HTTP_READY;
    rig.woken++;
}

void telemetry_note_plan(const struct http *h, struct doc answer, struct doc meta)
{
    (void)h;
    (void)answer;
    (void)meta;
    rig.noted++;
}

/* ---- the daemon ---- */

struct caller *caller_keep(struct caller *c)
{
    return c;
}

enum bt_code caller_call(struct caller *c, const struct call_spec *spec, msec now,
                         struct call **ret, struct bt_error *err)
{
    struct rig_call *call = rig.calls;
    struct buf json;

    (void)c;
    (void)now;
    while (call->open) {
        call++;
        assert_true(call < rig.calls + RIG_CALLS_MAX);
    }
    rig.asked++;
    rig.spec = *spec;
    buf_init(&json, BODY_BYTES);
    assert_int_equal(doc_to_json(spec->fields, false, &json, NULL), BT_OK);
    (void)snprintf(rig.fields, sizeof rig.fields, "%s", buf_cstr(&json));
    buf_done(&json);
    *call = (struct rig_call){.spec = *spec, .open = rig.busy == BT_OK};
    *ret = call->open ? (struct call *)call : NULL;
    return rig.busy == BT_OK ? BT_OK : err_set(err, rig.busy, "too many wait");
}

void call_abandon(struct call *call)
{
    ((struct rig_call *)call)->open = false;
    rig.abandoned++;
}
