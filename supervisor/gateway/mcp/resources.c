/* Resources: plan://ID and plan://ID/result. */
#include <stdio.h>

#include "supervisor/gateway/mcp/mcp_internal.h"

enum { LISTED = 50 };
static const char scheme[] = "plan://";

static void fail(const struct mcp *m, const struct problem *p)
{
    struct buf text;

    buf_init(&text, 64 * 1024);
    (void)buf_add_repaired(&text, p->message);
    mcp_error(&m->h->out, m->id, p->code == BT_NOT_FOUND ? RPC_PARAMS : RPC_INTERNAL,
              buf_str(&text));
    mcp_answer(m);
    buf_done(&text);
}

static void put_resource(struct buf *out, struct doc plan)
{
    const struct str id = doc_string(doc_get(plan, STR_LIT("planId")));
    const struct str goal = doc_string(doc_get(plan, STR_LIT("goal")));
    char uri[96];

    (void)snprintf(uri, sizeof uri, "%s%.*s", scheme, (int)id.len, id.ptr);
    json_open(out, '{');
    json_key(out, "uri");
    json_cstr(out, uri);
    json_key(out, "name");
    json_str(out, id);
    json_member(out, "title", goal);
    json_member(out, "description", doc_string(doc_get(plan, STR_LIT("status"))));
    json_key(out, "mimeType");
    json_cstr(out, "application/json");
    json_close(out, '}');
}

static void on_plans(void *self, const struct reply *reply)
{
    struct mcp *m = self;
    struct buf *out = &m->h->out;
    const struct doc plans = doc_get(reply->body, STR_LIT("plans"));

    m->h->call = NULL;
    if (!reply->ok) {
        fail(m, &reply->problem);
        return;
    }
    mcp_begin(m, out);
    json_key(out, "resources");
    json_open(out, '[');
    for (uint32_t i = 0; i < doc_head(plans).n; i++) {
        put_resource(out, doc_at(plans, i));
    }
    json_close(out, ']');
    json_member(out, "nextCursor", doc_string(doc_get(reply->body, STR_LIT("cursor"))));
    mcp_no_cache(m, out);
    mcp_end(out);
    mcp_answer(m);
}

void mcp_list_resources(struct mcp *m)
{
    const struct str cursor = doc_string(mcp_param(m, "cursor"));
    struct buf fields;

    buf_init(&fields, 1024);
    doc_put_map(&fields, 1u + (cursor.len > 0));
    doc_put_cstr(&fields, "limit");
    doc_put_u64(&fields, LISTED);
    if (cursor.len > 0) {
        doc_put_cstr(&fields, "cursor");
        doc_put_str(&fields, cursor);
    }
    if (buf_check(&fields, NULL) != BT_OK) {
        mcp_refuse(m, RPC_PARAMS, "cursor: it is none of this server's");
    } else {
        mcp_ask(m, MSG_plan_list, MSG_plan_list_ok, true, doc_from_buf(&fields), on_plans);
    }
    buf_done(&fields);
}

void mcp_list_templates(struct mcp *m)
{
    struct buf *out = &m->h->out;

    mcp_begin(m, out);
    json_key(out, "resourceTemplates");
    json_raw(out, "[{\"uriTemplate\":\"plan://{planId}\",\"name\":\"plan\",\"title\":\"A plan\","
                  "\"description\":\"State of a plan and its steps.\",\"mimeType\":"
                  "\"application/json\"},{\"uriTemplate\":\"plan://{planId}/result\",\"name\":"
                  "\"result\",\"title\":\"Result of a plan\",\"description\":\"The result, with "
                  "those of its steps.\",\"mimeType\":\"application/json\"}]");
    mcp_no_cache(m, out);
    mcp_end(out);
    mcp_answer(m);
}

static void on_read(void *self, const struct reply *reply)
{
    struct mcp *m = self;
    struct buf *out = &m->h->out;
    struct buf text;

    m->h->call = NULL;
    if (!reply->ok) {
        fail(m, &reply->problem);
        return;
    }
    buf_init(&text, 4 * LIMIT_STEP_BYTES);
    if (answer_body(reply->body, &text) != BT_OK) {
        mcp_refuse(m, RPC_INTERNAL, "out of memory for the resource");
    } else {
        mcp_begin(m, out);
        json_key(out, "contents");
        json_open(out, '[');
        json_open(out, '{');
        json_key(out, "uri");
        json_doc(out, mcp_param(m, "uri"));
        json_key(out, "mimeType");
        json_cstr(out, "application/json");
        json_key(out, "text");
        json_str(out, buf_str(&text));
        json_close(out, '}');
        json_close(out, ']');
        mcp_no_cache(m, out);
        mcp_end(out);
        mcp_answer(m);
    }
    buf_done(&text);
}

void mcp_read_resource(struct mcp *m)
{
    static const char tail[] = "/result";
    const struct str uri = doc_string(mcp_param(m, "uri"));
    const size_t before = sizeof scheme - 1;
    struct str id = {NULL, 0};
    bool result = false;
    struct buf fields;

    if (uri.len > before && memcmp(uri.ptr, scheme, before) == 0) {
        id = (struct str){uri.ptr + before, uri.len - before};
    }
    if (id.len >= sizeof tail &&
        memcmp(id.ptr + id.len - sizeof tail + 1, tail, sizeof tail - 1) == 0) {
        result = true;
        id.len -= sizeof tail - 1;
    }
    if (id.len == 0 || id.len > 64 || memchr(id.ptr, '/', id.len) != NULL) {
        mcp_refuse(m, RPC_PARAMS, "uri: expected plan://PLANID or plan://PLANID/result");
        return;
    }
    buf_init(&fields, 256);
    doc_put_map(&fields, 1);
    doc_put_cstr(&fields, "planId");
    doc_put_str(&fields, id);
    mcp_ask(m, result ? MSG_plan_result : MSG_plan_get, result ? MSG_plan_result_ok : MSG_plan_view,
            true, doc_from_buf(&fields), on_read);
    buf_done(&fields);
}
