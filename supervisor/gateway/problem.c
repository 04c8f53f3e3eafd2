#include "supervisor/gateway/problem.h"

#include "supervisor/gateway/json.h"

/* Which status a code has. A lint would not notice a new code; the assertion does. */
static const unsigned statuses[] = {
    [BT_OK] = 200,
    [BT_INVALID] = 400,
    [BT_UNAUTHORIZED] = 401,
    [BT_NOT_FOUND] = 404,
    [BT_CONFLICT] = 409,
    [BT_LIMIT] = 413,
    [BT_BUSY] = 503,
    [BT_TIMEOUT] = 504,
    [BT_UNAVAILABLE] = 503,
    [BT_GONE] = 410,
    [BT_CANCELLED] = 409,
    [BT_PROTOCOL] = 502,
    [BT_NOMEM] = 503,
    [BT_IO] = 500,
    [BT_INTERNAL] = 500,
    [BT_MOVED] = 503,
    [BT_HISTORY_CHANGED] = 409,
};
_Static_assert(sizeof statuses / sizeof statuses[0] == BT_CODE_COUNT, "a status per code");

static const struct {
    unsigned status;
    const char *title;
} titles[] = {
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {421, "Misdirected Request"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

unsigned problem_status(const struct problem *p)
{
    const bool quota = doc_get(p->details, STR_LIT("quota")).ptr != NULL;

    if (p->status != 0) {
        return p->status;
    }
    if (p->code == BT_UNAUTHORIZED && doc_get(p->details, STR_LIT("role")).ptr != NULL) {
        return 403;
    }
    if (quota && (p->code == BT_LIMIT || p->code == BT_BUSY)) {
        return 429;
    }
    return (unsigned)p->code < BT_CODE_COUNT ? statuses[p->code] : 500;
}

const char *problem_title(unsigned status)
{
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++) {
        if (titles[i].status == status) {
            return titles[i].title;
        }
    }
    return "Error";
}

uint64_t problem_retry_after_s(const struct problem *p)
{
    return p->retry_after_ms / 1000 + (p->retry_after_ms % 1000 != 0);
}

static void put_text(struct buf *out, const char *name, struct str text)
{
    doc_put_cstr(out, name);
    doc_put_str(out, text);
}

void problem_write(const struct problem *p, struct buf *out)
{
    const unsigned status = problem_status(p);
    const char *code = bt_code_name(p->code);
    char type[64] = "urn:baton:error:";
    struct buf map;

    buf_init(&map, 512 * 1024);
    doc_put_map(&map, 6u + (p->class_.len > 0) + (p->retry_after_ms > 0) +
                          (p->details.ptr != NULL) + (p->field.len > 0));
    (void)strncat(type, code, sizeof type - strlen(type) - 1);
    put_text(&map, "type", str_from(type));
    put_text(&map, "title", str_from(problem_title(status)));
    doc_put_cstr(&map, "status");
    doc_put_u64(&map, status);
    put_text(&map, "detail", p->message);
    put_text(&map, "code", str_from(code));
    doc_put_cstr(&map, "retryable");
    doc_put_bool(&map, err_code_retryable(p->code));
    if (p->class_.len > 0) {
        put_text(&map, "class", p->class_);
    }
    if (p->retry_after_ms > 0) {
        doc_put_cstr(&map, "retryAfterMs");
        doc_put_u64(&map, p->retry_after_ms);
    }
    if (p->field.len > 0) {
        put_text(&map, "field", p->field);
    }
    if (p->details.ptr != NULL) {
        doc_put_cstr(&map, "details");
        doc_put_doc(&map, p->details);
    }
    if (buf_check(&map, NULL) != BT_OK ||
        doc_to_json(doc_from_buf(&map), false, out, NULL) != BT_OK) {
        buf_clear(out);
        buf_printf(out, "{\"type\":\"%s\",\"title\":\"%s\",\"status\":%u}", type,
                   problem_title(status), status);
    }
    json_tame(out, 0);
    buf_done(&map);
}
