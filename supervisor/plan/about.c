#include "supervisor/plan/about.h"

#include "protocol/base/utf8.h"
#include "supervisor/plan/writer_internal.h"

/* So that sums over all plans fit into 64 bits. */
#define TOKENS_MAX (UINT64_C(1) << 40)

/* ---- reading ---- */

/* A longer text is cut, not an error: nothing depends on its end. */
static void read_text(const struct location *at, const char *field, struct doc v, size_t cap,
                      struct str *io)
{
    struct str text;
    if (!value_string(at, field, v, &text)) {
        return;
    }
    *io = (struct str){text.ptr, utf8_cut(text.ptr, text.len, cap)};
    if (io->len < text.len) {
        location_report(at, PROBLEM_STYLE, true, field, "is cut after %zu bytes", cap);
    }
}

/* Whether the list can be kept. One string stands for a list of one. */
static bool list_fits(const struct location *at, const char *field, struct doc v)
{
    struct doc_cursor c = doc_cursor(v);
    struct doc_head head;
    struct str item;
    if (v.ptr == NULL || !doc_next(&c, &head)) {
        return false;
    }
    const bool one = head.kind != DOC_ARRAY;
    const uint32_t n = one ? 1 : head.n;
    if (n > ABOUT_LIST_MAX) {
        location_report(at, PROBLEM_LIMIT, at->warn_only, field, "%u entries, at most %d", n,
                        ABOUT_LIST_MAX);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!value_string(at, field, one ? v : doc_skip(&c), &item)) {
            return false;
        }
        if (item.len > ABOUT_ITEM_MAX) {
            location_report(at, PROBLEM_LIMIT, at->warn_only, field,
                            "an entry of %zu bytes, at most %d", item.len, ABOUT_ITEM_MAX);
            return false;
        }
    }
    return n > 0;
}

static void read_list(const struct location *at, const char *field, struct doc v, struct doc *io)
{
    if (list_fits(at, field, v)) {
        *io = v;
    }
}

void plan_about_read(struct plan_reader *r, const struct about_fields *f)
{
    struct plan_about *about = &r->policy->about;
    struct location at = {.problems = r->problems, .prefix = "", .warn_only = true};
    read_text(&at, "description", f->description, ABOUT_TEXT_MAX, &about->description);
    read_text(&at, "reasoning", f->reasoning, ABOUT_TEXT_MAX, &about->reasoning);
    read_text(&at, "estimatedTotalTime", f->total_time, ABOUT_TIME_MAX, &about->total_time);
    read_list(&at, "successCriteria", f->success_criteria, &about->success_criteria);
    (void)value_u64(&at, "estimatedTokens", f->tokens, 0, TOKENS_MAX, &about->tokens);
    (void)value_u64(&at, "estimatedSteps", f->steps, 0, TOKENS_MAX, &about->steps);
    /* A wrong constraint is an error: without it the plan could do what it forbids. */
    at.warn_only = false;
    read_list(&at, "constraints", f->constraints, &about->constraints);
}

enum bt_code plan_about_constrain(struct plan_reader *r, const struct str *at, uint32_t n)
{
    const struct location top = {.problems = r->problems, .prefix = ""};
    struct buf list;
    if (n == 0) {
        return BT_OK;
    }
    buf_init(&list, LIMIT_CONTROL_BYTES);
    doc_put_array(&list, n);
    for (uint32_t i = 0; i < n; i++) {
        doc_put_str(&list, at[i]);
    }
    enum bt_code code = buf_check(&list, r->err);
    if (code == BT_OK) {
        const struct doc kept = doc_copy(r->arena, doc_from_buf(&list));
        code = kept.ptr == NULL ? reader_nomem(r) : BT_OK;
        if (code == BT_OK) {
            read_list(&top, "constraints", kept, &r->policy->about.constraints);
        }
    }
    buf_done(&list);
    return code;
}

/* ---- writing ---- */

static void put_text(struct writer *w, const char *key, struct str text)
{
    if (text.len > 0) {
        put_str(w, key, text);
    }
}

static void put_list(struct writer *w, const char *key, struct doc list)
{
    struct doc_cursor c = doc_cursor(list);
    struct doc_head head;
    if (list.ptr == NULL || !doc_next(&c, &head)) {
        return;
    }
    const bool one = head.kind != DOC_ARRAY;
    const uint32_t n = one ? 1 : head.n;
    put_key(w, key);
    doc_put_array(w->out, n);
    for (uint32_t i = 0; i < n; i++) {
        doc_put_str(w->out, doc_string(one ? list : doc_skip(&c)));
    }
}

void plan_about_write(struct writer *w, const struct plan_about *about)
{
    put_text(w, "description", about->description);
    put_list(w, "successCriteria", about->success_criteria);
    put_list(w, "constraints", about->constraints);
    if (about->tokens > 0) {
        put_u64(w, "estimatedTokens", about->tokens);
    }
    if (about->steps > 0) {
        put_u64(w, "estimatedSteps", about->steps);
    }
    put_text(w, "estimatedTotalTime", about->total_time);
    put_text(w, "reasoning", about->reasoning);
}

/* ---- from a document ---- */

static struct str text_of(struct doc document, const char *key)
{
    const struct str text = doc_string(doc_get(document, str_from(key)));
    return text.ptr == NULL ? (struct str){"", 0} : text;
}

static struct doc list_of(struct doc document, const char *key)
{
    const struct doc list = doc_get(document, str_from(key));
    return list.ptr != NULL && doc_head(list).kind == DOC_ARRAY ? list : (struct doc){NULL, 0};
}

static uint64_t number_of(struct doc document, const char *key)
{
    const struct doc v = doc_get(document, str_from(key));
    const struct doc_head head = v.ptr == NULL ? (struct doc_head){.kind = DOC_NIL} : doc_head(v);
    return head.kind == DOC_UINT ? head.u : 0;
}

void plan_about_of(struct doc document, struct plan_about *ret)
{
    *ret = (struct plan_about){.description = text_of(document, "description"),
                               .reasoning = text_of(document, "reasoning"),
                               .total_time = text_of(document, "estimatedTotalTime"),
                               .success_criteria = list_of(document, "successCriteria"),
                               .constraints = list_of(document, "constraints"),
                               .tokens = number_of(document, "estimatedTokens"),
                               .steps = number_of(document, "estimatedSteps")};
}

void plan_about_join(struct doc list, size_t cap, struct buf *out)
{
    struct doc_cursor c = doc_cursor(list);
    struct doc_head head;
    const size_t from = out->len;
    if (list.ptr == NULL || !doc_next(&c, &head) || head.kind != DOC_ARRAY) {
        return;
    }
    for (uint32_t i = 0; i < head.n && out->len - from < cap; i++) {
        const struct str item = doc_string(doc_skip(&c));
        buf_add_cstr(out, i == 0 ? "" : "; ");
        if (out->len - from < cap) {
            const size_t room = cap - (out->len - from);
            buf_add(out, item.ptr, utf8_cut(item.ptr, item.len, room));
        }
    }
    if (out->len - from > cap) {
        buf_truncate(out, from + cap);
    }
}
