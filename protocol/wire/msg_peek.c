/*
 * The beginning of a body, looked at where it lies: no copy, no allocation, at most `look` bytes.
 * What is found is not valid yet: the reader checks the body, and what it finds wrong counts.
 */
#include "protocol/wire/mp_head_internal.h"
#include "protocol/wire/msg.h"

static struct str *place_of(struct msg_peek *p, struct str key)
{
    if (str_is(key, "type")) {
        return &p->type;
    }
    if (str_is(key, "token")) {
        return &p->token;
    }
    if (str_is(key, "id")) {
        return &p->id;
    }
    return str_is(key, "planId") ? &p->plan_id : NULL;
}

/* ---- msgpack ---- */

static void peek_msgpack(const uint8_t *at, const uint8_t *end, struct msg_peek *p)
{
    struct doc_head head;
    size_t len;

    if (mp_head_read(at, end, &head, &len) != HEAD_OK || head.kind != DOC_MAP) {
        return;
    }
    at += len;
    for (uint32_t left = head.n; left > 0; left--) {
        struct doc_head key;
        struct doc_head value;
        struct str *to;

        if (mp_head_read(at, end, &key, &len) != HEAD_OK || key.kind != DOC_STR) {
            return;
        }
        at += len;
        to = place_of(p, key.str);
        if (to != NULL && mp_head_read(at, end, &value, &len) == HEAD_OK && value.kind == DOC_STR) {
            *to = value.str;
        }
        if (!mp_head_skip(&at, end)) {
            return;
        }
    }
    p->whole = true;
}

/* ---- JSON ---- */

struct peek_text {
    const char *at, *end;
};

static void skip_space(struct peek_text *t)
{
    while (t->at < t->end &&
           (*t->at == ' ' || *t->at == '\t' || *t->at == '\n' || *t->at == '\r')) {
        t->at++;
    }
}

static bool skip_byte(struct peek_text *t, char byte)
{
    skip_space(t);
    if (t->at == t->end || *t->at != byte) {
        return false;
    }
    t->at++;
    return true;
}

/* A string as it stands there; *ret_plain: it has no escapes. At its quotation mark. */
static bool skip_string(struct peek_text *t, struct str *ret, bool *ret_plain)
{
    const char *from = ++t->at;

    *ret_plain = true;
    while (t->at < t->end && *t->at != '"') {
        if (*t->at == '\\') {
            *ret_plain = false;
            t->at++;
        }
        t->at += t->at < t->end;
    }
    if (t->at == t->end) {
        return false;
    }
    *ret = (struct str){from, (size_t)(t->at++ - from)};
    return true;
}

/* Any value up to the comma or bracket after it. */
static bool skip_value(struct peek_text *t)
{
    uint32_t depth = 0;
    struct str text;
    bool plain;

    while (t->at < t->end) {
        const char c = *t->at;
        if (c == '"') {
            if (!skip_string(t, &text, &plain)) {
                return false;
            }
            continue;
        }
        if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
            return true;
        }
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        t->at++;
    }
    return false;
}

static void peek_json(struct peek_text *t, struct msg_peek *p)
{
    if (!skip_byte(t, '{')) {
        return;
    }
    p->whole = skip_byte(t, '}');
    while (!p->whole) {
        struct str key;
        struct str value;
        struct str *to;
        bool plain;

        skip_space(t);
        if (t->at == t->end || *t->at != '"' || !skip_string(t, &key, &plain) ||
            !skip_byte(t, ':')) {
            return;
        }
        to = plain ? place_of(p, key) : NULL;
        skip_space(t);
        if (to != NULL && t->at < t->end && *t->at == '"') {
            if (!skip_string(t, &value, &plain)) {
                return;
            }
            *to = plain ? value : *to;
        } else if (!skip_value(t)) {
            return;
        }
        if (!skip_byte(t, ',')) {
            p->whole = skip_byte(t, '}');
            return;
        }
    }
}

struct msg_peek msg_peek(const void *bytes, size_t len, size_t look)
{
    struct msg_peek p = {.form = len > 0 && *(const char *)bytes == '{' ? WIRE_JSON : WIRE_MSGPACK};
    const size_t n = len < look ? len : look;

    if (p.form == WIRE_JSON) {
        peek_json(&(struct peek_text){bytes, (const char *)bytes + n}, &p);
    } else if (n > 0) {
        peek_msgpack(bytes, (const uint8_t *)bytes + n, &p);
    }
    return p;
}
