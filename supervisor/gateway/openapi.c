/* The OpenAPI 3.1 document, from the tables of protocol/messages.def. */
#include "supervisor/gateway/openapi.h"

#include <inttypes.h>
#include <stdio.h>

#include "baton/vocabulary.h"
#include "protocol/wire/msg_table.h"
#include "supervisor/gateway/routes.h"

struct writing {
    struct buf *out;
    bool used[MSG_TYPE_COUNT]; /* messages that have a schema of their own */
};

static void put(struct writing *w, const char *text)
{
    buf_add_cstr(w->out, text);
}

static void put_string(struct writing *w, const char *text)
{
    buf_add_byte(w->out, '"');
    for (; *text != 0; text++) {
        if (*text == '"' || *text == '\\') {
            buf_add_byte(w->out, '\\');
        }
        buf_add_byte(w->out, (uint8_t)*text);
    }
    buf_add_byte(w->out, '"');
}

/* plan_get_ok -> planGetOk, or PlanGetOk. */
static void put_camel(struct writing *w, const char *name, bool capital)
{
    for (; *name != 0; name++) {
        if (*name == '_') {
            capital = true;
            continue;
        }
        buf_add_byte(w->out, (uint8_t)(capital ? *name - 'a' + 'A' : *name));
        capital = false;
    }
}

static void put_ref(struct writing *w, enum msg_type type)
{
    w->used[type] = true;
    put(w, "{\"$ref\":\"#/components/schemas/");
    put_camel(w, msg_table[type].name, true);
    put(w, "\"}");
}

static void put_field_schema(struct writing *w, const struct msg_field *f)
{
    switch (f->kind) {
    case FIELD_STR:
        buf_printf(w->out, "{\"type\":\"string\",\"maxLength\":%" PRIu64 "}", f->max);
        break;
    case FIELD_U64:
        put(w, "{\"type\":\"integer\",\"minimum\":0");
        if (f->max < INT64_MAX) {
            buf_printf(w->out, ",\"maximum\":%" PRIu64, f->max);
        }
        put(w, "}");
        break;
    case FIELD_I64:
        put(w, "{\"type\":\"integer\"}");
        break;
    case FIELD_F64:
        put(w, "{\"type\":\"number\"}");
        break;
    case FIELD_BOOL:
        put(w, "{\"type\":\"boolean\"}");
        break;
    case FIELD_SUB:
        put_ref(w, f->part);
        break;
    case FIELD_LIST:
        buf_printf(w->out, "{\"type\":\"array\",\"maxItems\":%u,\"items\":", f->list_max);
        put_ref(w, f->part);
        put(w, "}");
        break;
    case FIELD_STRS:
        buf_printf(w->out,
                   "{\"type\":\"array\",\"maxItems\":%u,\"items\":{\"type\":\"string\","
                   "\"maxLength\":%" PRIu64 "}}",
                   f->list_max, f->max);
        break;
    case FIELD_DOC:
    case FIELD_KIND_COUNT:
        put(w, "{\"description\":\"Any JSON value.\"}");
        break;
    }
}

static bool is_in_path(const struct route *r, const struct msg_field *f)
{
    const char *at = r == NULL ? "" : r->path;
    struct str part;
    bool param;

    while (route_part(&at, &part, &param)) {
        if (param && str_eq(part, f->name)) {
            return true;
        }
    }
    return false;
}

/* The object of a message. For the body of a request (route not NULL): without what the path has,
 * and with nothing else. */
static void put_object(struct writing *w, const struct msg_desc *desc, const struct route *r)
{
    const char *comma = "";

    put(w, "{\"type\":\"object\",\"properties\":{");
    for (uint32_t i = 0; i < desc->n; i++) {
        if (!is_in_path(r, &desc->fields[i])) {
            buf_printf(w->out, "%s\"%.*s\":", comma, STR_ARG(desc->fields[i].name));
            put_field_schema(w, &desc->fields[i]);
            comma = ",";
        }
    }
    put(w, "}");
    comma = "";
    for (uint32_t i = 0; i < desc->n; i++) {
        if (desc->fields[i].required && !is_in_path(r, &desc->fields[i]) &&
            (r == NULL || !route_fills(r, desc->fields[i].name))) {
            buf_printf(w->out, "%s\"%.*s\"", comma[0] == 0 ? ",\"required\":[" : comma,
                       STR_ARG(desc->fields[i].name));
            comma = ",";
        }
    }
    put(w, comma[0] == 0 ? "" : "]");
    put(w, r == NULL ? "}" : ",\"additionalProperties\":false}");
}

/* ---- parameters ---- */

static void put_parameter(struct writing *w, const struct msg_field *f, const char *in,
                          bool required, const char **comma)
{
    buf_printf(w->out, "%s{\"name\":\"%.*s\",\"in\":\"%s\",\"required\":%s,\"schema\":", *comma,
               STR_ARG(f->name), in, required ? "true" : "false");
    put_field_schema(w, f);
    put(w, "}");
    *comma = ",";
}

static void put_header(struct writing *w, const char *name, const char *about, const char **comma)
{
    buf_printf(w->out,
               "%s{\"name\":\"%s\",\"in\":\"header\",\"required\":false,\"description\":\"%s\","
               "\"schema\":{\"type\":\"string\"}}",
               *comma, name, about);
    *comma = ",";
}

static void put_vocabulary(struct writing *w, const char **comma)
{
    const char *const *names = bt_vocabulary_names();

    buf_printf(
        w->out,
        "%s{\"name\":\"vocabulary\",\"in\":\"query\",\"description\":\"Streams events in the "
        "words of another system. Only as text/event-stream.\",\"schema\":{\"type\":"
        "\"string\",\"examples\":[",
        *comma);
    for (uint32_t i = 0; names[i] != NULL; i++) {
        buf_printf(w->out, "%s\"%s\"", i == 0 ? "" : ",", names[i]);
    }
    put(w, "]}}");
    *comma = ",";
}

static void put_parameters(struct writing *w, const struct route *r)
{
    const struct msg_desc *desc = &msg_table[r->request];
    const char *comma = "";

    put(w, "\"parameters\":[");
    for (uint32_t i = 0; i < desc->n; i++) {
        const struct msg_field *f = &desc->fields[i];
        if (is_in_path(r, f)) {
            put_parameter(w, f, "path", true, &comma);
        } else if (!route_has_body(r) && !route_is_events(r)) {
            put_parameter(w, f, "query", f->required, &comma);
        }
    }
    if (route_is_events(r)) {
        buf_printf(
            w->out,
            "%s{\"name\":\"after\",\"in\":\"query\",\"description\":\"The seq of the last event "
            "that is known.\",\"schema\":{\"type\":\"integer\",\"minimum\":0}},"
            "{\"name\":\"type\",\"in\":\"query\",\"description\":\"Only these types.\","
            "\"schema\":{\"type\":\"array\",\"maxItems\":64,\"items\":{\"type\":\"string\"}}},"
            "{\"name\":\"limit\",\"in\":\"query\",\"description\":\"Of a page.\","
            "\"schema\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":1000}},"
            "{\"name\":\"waitMs\",\"in\":\"query\",\"description\":\"How long a page may wait "
            "for its first event.\",\"schema\":{\"type\":\"integer\",\"minimum\":0,"
            "\"maximum\":60000}}",
            comma);
        comma = ",";
    }
    if (route_is_events(r) || route_is_task(r)) {
        put_vocabulary(w, &comma);
        put_header(w, "Last-Event-ID",
                   route_is_task(r) ? "The id of the last event that is known."
                                    : "As after; it wins.",
                   &comma);
    }
    if (route_field(r, STR_LIT("clientKey")) != NULL) {
        put_header(w, "Idempotency-Key", "clientKey: the same key is the same request.", &comma);
    }
    if (route_field(r, STR_LIT("expectRevision")) != NULL) {
        put_header(w, "If-Match", "expectRevision: the ETag of the plan.", &comma);
    }
    put(w, "]");
}

/* ---- operations ---- */

static void put_answer(struct writing *w, const struct route *r, const char *status,
                       const char *about)
{
    buf_printf(w->out, "\"%s\":{\"description\":\"%s\",\"content\":{", status, about);
    if (route_is_task(r)) {
        put(w, "\"text/event-stream\":{\"schema\":{\"type\":\"string\"}}}},");
        return;
    }
    if (route_is_events(r)) {
        put(w, "\"text/event-stream\":{\"schema\":{\"type\":\"string\"}},"
               "\"application/x-ndjson\":{\"schema\":{\"type\":\"string\"}},");
    }
    put(w, "\"application/json\":{\"schema\":");
    put_ref(w, r->answer);
    put(w, "}}},");
}

static bool makes_something(const struct route *r)
{
    const struct msg_desc *desc = &msg_table[r->answer];

    for (uint32_t i = 0; i < desc->n; i++) {
        if (str_is(desc->fields[i].name, "existing")) {
            return true;
        }
    }
    return false;
}

static struct str tag_of(const struct route *r)
{
    const char *at = r->path + sizeof "/v1" - 1;
    struct str part;
    bool param;

    (void)route_part(&at, &part, &param);
    return part;
}

static void put_operation(struct writing *w, const struct route *r, bool again)
{
    static const char *const methods[HTTP_METHOD_COUNT] = {"get", "post", "put", "delete"};

    buf_printf(w->out, "\"%s\":{\"operationId\":\"", methods[r->method]);
    put_camel(w, r->name, false);
    buf_printf(w->out, "%s\",\"tags\":[\"%.*s\"],\"summary\":",
               !again             ? ""
               : route_is_task(r) ? "AsTask"
                                  : "OfPlan",
               STR_ARG(tag_of(r)));
    put_string(w, route_is_task(r) ? "Submits a plan, and answers with the stream of its events."
                                   : route_sentence(r));
    buf_printf(w->out, ",\"x-baton-role\":\"%s\",\"x-baton-request\":\"%s\",", route_role(r),
               msg_wire_type(r->request));
    put_parameters(w, r);
    if (route_has_body(r)) {
        put(w,
            ",\"requestBody\":{\"required\":false,\"content\":{\"application/json\":{\"schema\":");
        put_object(w, &msg_table[r->request], r);
        put(w, "}}}");
    }
    put(w, ",\"responses\":{");
    put_answer(w, r, "200", "The answer.");
    if (makes_something(r) && !route_is_task(r)) {
        put_answer(w, r, "201", "It was made; 200 = it was there.");
    }
    if (route_is_events(r)) {
        put(w, "\"204\":{\"description\":\"The plan is over, and nothing is left: do not come "
               "again.\"},");
    }
    put(w, "\"4XX\":{\"$ref\":\"#/components/responses/Problem\"},"
           "\"5XX\":{\"$ref\":\"#/components/responses/Problem\"}}}");
}

static void put_paths(struct writing *w)
{
    for (uint32_t i = 0; i < routes_n; i++) {
        bool before = false;
        for (uint32_t k = 0; k < i; k++) {
            before = before || strcmp(routes[k].path, routes[i].path) == 0;
        }
        if (before) {
            continue;
        }
        buf_printf(w->out, "%s\"%s\":{", i == 0 ? "" : ",", routes[i].path);
        for (uint32_t k = i; k < routes_n; k++) {
            if (strcmp(routes[k].path, routes[i].path) == 0) {
                put(w, k == i ? "" : ",");
                put_operation(w, &routes[k], k > 0 && routes[k - 1].request == routes[k].request);
            }
        }
        put(w, "}");
    }
}

/* Not a request of the wire: what agents over HTTP ask for. */
static void put_poll(struct writing *w)
{
    put(w,
        ",\"/v1/instances/{instanceId}/poll\":{\"post\":{\"operationId\":\"agentPoll\",\"tags\":["
        "\"instances\"],\"summary\":\"Waits for steps; the answer has them, and which to cancel.\","
        "\"x-baton-role\":\"AGENT\",\"parameters\":[{\"name\":\"instanceId\",\"in\":\"path\","
        "\"required\":true,\"schema\":{\"type\":\"string\",\"maxLength\":64}},{\"name\":\"waitMs\","
        "\"in\":\"query\",\"required\":false,\"schema\":{\"type\":\"integer\",\"minimum\":0,"
        "\"maximum\":60000}},{\"name\":\"max\",\"in\":\"query\",\"required\":false,\"schema\":{"
        "\"type\":\"integer\",\"minimum\":0,\"maximum\":16}}],\"requestBody\":{\"required\":false,"
        "\"content\":{\"application/json\":{\"schema\":{\"type\":\"object\",\"properties\":{"
        "\"inflight\":{\"type\":\"array\",\"maxItems\":64,\"items\":");
    put_ref(w, MSG_inflight);
    put(w, "}},\"additionalProperties\":false}}}},\"responses\":{\"200\":{\"description\":\"The "
           "answer.\","
           "\"content\":{\"application/"
           "json\":{\"schema\":{\"type\":\"object\",\"required\":[\"steps\","
           "\"cancel\",\"drain\"],\"properties\":{\"steps\":{\"type\":\"array\",\"items\":");
    put_ref(w, MSG_step_execute);
    put(w, "},\"cancel\":{\"type\":\"array\",\"items\":");
    put_ref(w, MSG_cancel_order);
    put(w, "},\"drain\":{\"type\":\"boolean\"}}}}}},\"4XX\":{\"$ref\":\"#/components/responses/"
           "Problem\"},"
           "\"5XX\":{\"$ref\":\"#/components/responses/Problem\"}}}}");
}

static void put_tags(struct writing *w)
{
    for (uint32_t i = 0; i < routes_n; i++) {
        bool before = false;
        for (uint32_t k = 0; k < i; k++) {
            before = before || str_eq(tag_of(&routes[k]), tag_of(&routes[i]));
        }
        if (!before) {
            buf_printf(w->out, "%s{\"name\":\"%.*s\",\"description\":\"/v1/%.*s\"}",
                       i == 0 ? "" : ",", STR_ARG(tag_of(&routes[i])), STR_ARG(tag_of(&routes[i])));
        }
    }
}

static const char problem[] =
    "\"Problem\":{\"type\":\"object\",\"description\":\"RFC 9457.\",\"required\":[\"type\","
    "\"title\",\"status\",\"detail\",\"code\"],\"properties\":{\"type\":{\"type\":\"string\"},"
    "\"title\":{\"type\":\"string\"},\"status\":{\"type\":\"integer\"},"
    "\"detail\":{\"type\":\"string\"},\"code\":{\"type\":\"string\"},"
    "\"class\":{\"type\":\"string\"},\"retryable\":{\"type\":\"boolean\"},"
    "\"retryAfterMs\":{\"type\":\"integer\"},\"field\":{\"type\":\"string\"},"
    "\"details\":{\"description\":\"Any JSON value.\"}}}";

/* A schema for each message that was named; each may name others. */
static void put_schemas(struct writing *w)
{
    bool done[MSG_TYPE_COUNT] = {false};
    bool more = true;

    put(w, problem);
    while (more) {
        more = false;
        for (uint32_t i = 0; i < MSG_TYPE_COUNT; i++) {
            if (w->used[i] && !done[i]) {
                more = done[i] = true;
                put(w, ",\"");
                put_camel(w, msg_table[i].name, true);
                put(w, "\":");
                put_object(w, &msg_table[i], NULL);
            }
        }
    }
}

enum bt_code openapi_write(struct buf *out, struct bt_error *err)
{
    struct writing w = {.out = out};

    put(&w,
        "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Baton\",\"version\":\"" BATON_VERSION
        "\",\"summary\":\"The HTTP API of the multi-agent supervisor Baton.\",\"description\":"
        "\"Requests of the wire protocol as JSON over HTTP, made from protocol/messages.def. "
        "Caps of strings are bytes of UTF-8.\",\"license\":{\"name\":\"Apache-2.0\","
        "\"identifier\":\"Apache-2.0\"}},\"servers\":[{\"url\":\"http://{address}\",\"variables\":"
        "{\"address\":{\"default\":\"127.0.0.1:7180\",\"description\":\"STATE/gateway.json has "
        "it.\"}}}],\"security\":[{\"bearer\":[]}],\"tags\":[");
    put_tags(&w);
    put(&w, "],\"paths\":{");
    put_paths(&w);
    put_poll(&w);
    put(&w,
        "},\"components\":{\"securitySchemes\":{\"bearer\":{\"type\":\"http\",\"scheme\":"
        "\"bearer\",\"description\":\"The daemon's token, or ID:KEY of a credential.\"}},"
        "\"responses\":{\"Problem\":{\"description\":\"Why not.\",\"content\":{"
        "\"application/problem+json\":{\"schema\":{\"$ref\":\"#/components/schemas/Problem\"}}}}},"
        "\"schemas\":{");
    put_schemas(&w);
    put(&w, "}}}");
    return buf_check(out, err);
}
