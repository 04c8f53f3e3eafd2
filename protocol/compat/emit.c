/* Reads the members of an event and emits objects. */
#include <stdlib.h>

#include "protocol/base/assert.h"
#include "protocol/compat/compat_internal.h"

/* ---- the event ---- */

struct doc compat_member(const struct compat_event *ev, const char *name)
{
    return doc_get(ev->body, str_from(name));
}

struct str compat_text(const struct compat_event *ev, const char *name)
{
    const struct doc d = compat_member(ev, name);
    return d.ptr == NULL ? (struct str){NULL, 0} : doc_string(d);
}

uint64_t compat_number(const struct compat_event *ev, const char *name, uint64_t fallback)
{
    const struct doc d = compat_member(ev, name);
    const struct doc_head head = d.ptr == NULL ? (struct doc_head){0} : doc_head(d);
    return d.ptr != NULL && head.kind == DOC_UINT ? head.u : fallback;
}

bool compat_bool(const struct compat_event *ev, const char *name)
{
    const struct doc d = compat_member(ev, name);
    const struct doc_head head = d.ptr == NULL ? (struct doc_head){0} : doc_head(d);
    return d.ptr != NULL && head.kind == DOC_BOOL && head.b;
}

struct doc_cursor compat_steps(const struct compat_event *ev, uint32_t *ret_n)
{
    const struct doc d = compat_member(ev, "steps");
    struct doc_cursor at = {NULL, NULL};
    struct doc_head head;

    *ret_n = 0;
    if (d.ptr != NULL) {
        at = doc_cursor(d);
        *ret_n = doc_next(&at, &head) && head.kind == DOC_ARRAY ? head.n : 0;
    }
    return at;
}

bool compat_next_step(struct doc_cursor *at, uint32_t *left, struct compat_event *ret)
{
    while (*left > 0) {
        *left -= 1;
        *ret = (struct compat_event){.body = doc_skip(at)};
        if (doc_head(ret->body).kind == DOC_MAP) {
            return true;
        }
    }
    return false;
}

struct str compat_or_default(struct str value, struct str fallback)
{
    return value.len > 0 ? value : fallback;
}

/* ---- maps ---- */

void compat_add(struct compat_map *m, const char *key, struct str value)
{
    if (value.ptr != NULL) {
        ASSERT(m->n < COMPAT_MEMBERS);
        m->members[m->n].key = key;
        m->members[m->n].kind = MEMBER_STR;
        m->members[m->n++].str = value;
    }
}

void compat_add_u64(struct compat_map *m, const char *key, uint64_t value)
{
    ASSERT(m->n < COMPAT_MEMBERS);
    m->members[m->n].key = key;
    m->members[m->n].kind = MEMBER_U64;
    m->members[m->n++].u = value;
}

void compat_add_doc(struct compat_map *m, const char *key, struct doc value)
{
    if (value.ptr != NULL) {
        ASSERT(m->n < COMPAT_MEMBERS);
        m->members[m->n].key = key;
        m->members[m->n].kind = MEMBER_DOC;
        m->members[m->n++].doc = value;
    }
}

void compat_copy(struct compat_map *m, const char *key, const struct compat_event *ev,
                 const char *name)
{
    compat_add_doc(m, key, compat_member(ev, name));
}

/* .ptr NULL: the result is not JSON. */
static struct doc read_result(struct bt_vocabulary *v, struct str result)
{
    const struct json_limits limits = {
        .bytes = LIMIT_CONTROL_BYTES, .depth = LIMIT_DEPTH, .nodes = LIMIT_NODES};
    enum bt_code code;

    compat_reset_buf(v, &v->value);
    code = json_to_doc(result, &limits, &v->value, NULL);
    code = code == BT_OK ? v->value.bad : code;
    if (code == BT_NOMEM) {
        v->bad = BT_NOMEM;
    }
    return code == BT_OK ? doc_from_buf(&v->value) : (struct doc){NULL, 0};
}

void compat_add_result(struct bt_vocabulary *v, struct compat_map *m, const char *key,
                       struct str result)
{
    const struct doc value = result.len > 0 ? read_result(v, result) : (struct doc){NULL, 0};

    if (value.ptr != NULL) {
        compat_add_doc(m, key, value);
    } else {
        compat_add(m, key, result);
    }
}

void compat_put_result(struct bt_vocabulary *v, struct buf *out, struct str result)
{
    const struct doc value = result.len > 0 ? read_result(v, result) : (struct doc){NULL, 0};

    if (value.ptr != NULL) {
        doc_put_doc(out, value);
    } else {
        doc_put_str(out, result);
    }
}

void compat_reset_buf(struct bt_vocabulary *v, struct buf *b)
{
    v->bad = b->bad != BT_OK ? b->bad : v->bad;
    buf_clear(b);
}

void compat_put(struct buf *out, const struct compat_map *m)
{
    doc_put_map(out, m->n);
    for (uint32_t i = 0; i < m->n; i++) {
        doc_put_cstr(out, m->members[i].key);
        switch (m->members[i].kind) {
        case MEMBER_STR:
            doc_put_str(out, m->members[i].str);
            break;
        case MEMBER_U64:
            doc_put_u64(out, m->members[i].u);
            break;
        case MEMBER_DOC:
            doc_put_doc(out, m->members[i].doc);
            break;
        }
    }
}

/* ---- output ---- */

static struct compat_span *new_span(struct bt_vocabulary *v)
{
    if (v->n_spans == v->spans_cap) {
        const uint32_t cap = v->spans_cap == 0 ? 8 : 2 * v->spans_cap;
        struct compat_span *more = realloc(v->spans, cap * sizeof *more);
        if (more == NULL) {
            return NULL;
        }
        v->spans = more;
        v->spans_cap = cap;
    }
    return &v->spans[v->n_spans];
}

static void emit_doc(struct bt_vocabulary *v, const char *type, const struct buf *body)
{
    const size_t start = v->out.len;
    struct compat_span *s = new_span(v);
    enum bt_code code = s == NULL ? BT_NOMEM : body->bad;

    code = code == BT_OK ? v->list.bad : code;
    code = code == BT_OK ? v->parts.bad : code;

    if (code == BT_OK) {
        code = doc_to_json(doc_from_buf(body), false, &v->out, NULL);
    }
    if (code == BT_OK) {
        buf_add_byte(&v->out, 0);
        code = v->out.bad;
    }
    if (code != BT_OK) {
        v->bad = code;
        buf_truncate(&v->out, start);
        return;
    }
    *s = (struct compat_span){.type = type, .json = start};
    v->n_spans++;
}

void compat_emit(struct bt_vocabulary *v, const char *type, const struct compat_map *m)
{
    compat_reset_buf(v, &v->body);
    compat_put(&v->body, m);
    emit_doc(v, type, &v->body);
}

void compat_emit_payload(struct bt_vocabulary *v, const char *type, const char *turn_id,
                         const struct compat_map *payload)
{
    const struct str plan = compat_id_str(&v->event_plan);
    const struct str turn = str_from(turn_id);
    const bool ids[] = {turn.len > 0, plan.len > 0};

    compat_reset_buf(v, &v->body);
    doc_put_map(&v->body, 2u + ids[0] + ids[1]);
    doc_put_cstr(&v->body, "type");
    doc_put_cstr(&v->body, type);
    if (ids[0]) {
        doc_put_cstr(&v->body, "turnId");
        doc_put_str(&v->body, turn);
    }
    if (ids[1]) {
        doc_put_cstr(&v->body, "planId");
        doc_put_str(&v->body, plan);
    }
    doc_put_cstr(&v->body, "payload");
    compat_put(&v->body, payload);
    emit_doc(v, type, &v->body);
}
