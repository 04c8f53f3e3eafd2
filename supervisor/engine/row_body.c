#include "supervisor/engine/row_body.h"

struct str row_text(struct doc body, const char *key)
{
    return doc_string(doc_get(body, str_from(key)));
}

uint64_t row_number(struct doc body, const char *key)
{
    struct doc v = doc_get(body, str_from(key));
    struct doc_head head = v.ptr != NULL ? doc_head(v) : (struct doc_head){.kind = DOC_NIL};

    return head.kind == DOC_UINT ? head.u : 0;
}

bool row_bool(struct doc body, const char *key)
{
    struct doc v = doc_get(body, str_from(key));
    struct doc_head head = v.ptr != NULL ? doc_head(v) : (struct doc_head){.kind = DOC_NIL};

    return head.kind == DOC_BOOL && head.b;
}

uint32_t row_blobs(const void *body, size_t len, uint64_t *ret, uint32_t max)
{
    return doc_refs(body, len, ret, max);
}

struct usage row_usage(struct doc body, const char *key)
{
    struct doc u = doc_get(body, str_from(key));

    return u.ptr == NULL
               ? (struct usage){0}
               : (struct usage){row_number(u, "inputTokens"), row_number(u, "outputTokens"),
                                row_number(u, "cachedTokens"), row_number(u, "costMicros")};
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

void usage_add(struct usage *to, const struct usage *more)
{
    to->input_tokens = add(to->input_tokens, more->input_tokens);
    to->output_tokens = add(to->output_tokens, more->output_tokens);
    to->cached_tokens = add(to->cached_tokens, more->cached_tokens);
    to->cost_micros = add(to->cost_micros, more->cost_micros);
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

struct usage usage_less(struct usage a, struct usage b)
{
    return (struct usage){
        less(a.input_tokens, b.input_tokens), less(a.output_tokens, b.output_tokens),
        less(a.cached_tokens, b.cached_tokens), less(a.cost_micros, b.cost_micros)};
}

struct msg_usage usage_view(const struct usage *u)
{
    return (struct msg_usage){.input_tokens = u->input_tokens,
                              .output_tokens = u->output_tokens,
                              .cached_tokens = u->cached_tokens,
                              .cost_micros = u->cost_micros};
}
