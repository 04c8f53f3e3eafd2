/* One action of the settings, and the schema of its parameters. */
#include <stdio.h>

#include "agents/http/fill.h"
#include "agents/http/settings.h"
#include "agents/sdk/documents/pointer.h"
#include "agents/sdk/settings/settings.h"
#include "protocol/limits.h"

enum { SCHEMA_BYTES = 64 * 1024, TIMEOUT_MAX_MS = 60 * 60 * 1000 };

static enum bt_code no_memory(struct bt_error *err)
{
    return err_set(err, BT_NOMEM, "out of memory for the settings");
}

const char *http_effects_of(const char *method)
{
    if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0) {
        return "none";
    }
    return strcmp(method, "PUT") == 0 || strcmp(method, "DELETE") == 0 ? "idempotent" : "unsafe";
}

/* ---- the schema that follows from the placeholders ---- */

struct schema_writer {
    struct buf properties;
    struct buf required;
    struct buf seen; /* names, each between zero bytes */
    bool needed;     /* what comes now is required */
};

static bool seen_before(struct schema_writer *w, struct str name)
{
    struct buf key;
    bool seen;

    buf_init(&key, SCHEMA_BYTES);
    buf_add_byte(&key, 0);
    buf_add_str(&key, name);
    buf_add_byte(&key, 0);
    if (key.bad != BT_OK) {
        w->seen.bad = key.bad; /* the schema is none */
        buf_done(&key);
        return true;
    }
    seen = w->seen.len > 0 && memmem(w->seen.at, w->seen.len, key.at, key.len) != NULL;
    if (!seen) {
        buf_add(&w->seen, key.at, key.len);
    }
    buf_done(&key);
    return seen;
}

static enum bt_code add_name(void *self, struct str name, struct bt_error *err)
{
    struct schema_writer *w = self;
    const char *dot = memchr(name.ptr, '.', name.len);

    (void)err;
    name.len = dot != NULL ? (size_t)(dot - name.ptr) : name.len;
    if (seen_before(w, name)) {
        return BT_OK;
    }
    buf_printf(&w->properties, "%s\"%.*s\":{}", w->properties.len > 0 ? "," : "", STR_ARG(name));
    if (w->needed) {
        buf_printf(&w->required, "%s\"%.*s\"", w->required.len > 0 ? "," : "", STR_ARG(name));
    }
    return BT_OK;
}

static enum bt_code add_path_names(struct schema_writer *w, const char *path, struct bt_error *err)
{
    struct buf doc;
    enum bt_code code;

    buf_init(&doc, SCHEMA_BYTES);
    doc_put_cstr(&doc, path);
    code = buf_check(&doc, err);
    if (code == BT_OK) {
        code = fill_names(doc_from_buf(&doc), add_name, w, err);
    }
    buf_done(&doc);
    return code;
}

enum bt_code http_action_schema(struct arena *a, struct http_action *action, struct bt_error *err)
{
    struct schema_writer w = {.needed = true};
    const struct doc others[] = {action->query, action->headers, action->form, action->body};
    struct buf all;
    enum bt_code code;

    buf_init(&w.properties, SCHEMA_BYTES);
    buf_init(&w.required, SCHEMA_BYTES);
    buf_init(&w.seen, SCHEMA_BYTES);
    buf_init(&all, 2 * SCHEMA_BYTES);
    code = add_path_names(&w, action->path, err);
    w.needed = false;
    for (size_t i = 0; i < sizeof others / sizeof others[0] && code == BT_OK; i++) {
        code = fill_names(others[i], add_name, &w, err);
    }
    if (code == BT_OK && action->pages.kind != HTTP_PAGES_NONE &&
        !seen_before(&w, STR_LIT("limit"))) {
        buf_printf(&w.properties,
                   "%s\"limit\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"at most so "
                   "many items; missing = all of them\"}",
                   w.properties.len > 0 ? "," : "");
    }
    code = code == BT_OK ? buf_check(&w.properties, err) : code;
    code = code == BT_OK ? buf_check(&w.required, err) : code;
    code = code == BT_OK ? buf_check(&w.seen, err) : code;
    buf_printf(&all,
               "{\"type\":\"object\",\"properties\":{%s},\"required\":[%s],"
               "\"additionalProperties\":false}",
               buf_cstr(&w.properties), buf_cstr(&w.required));
    if (code == BT_OK) {
        action->input_schema = arena_str(a, buf_str(&all)).ptr;
        code =
            buf_check(&all, err) != BT_OK || action->input_schema == NULL ? no_memory(err) : BT_OK;
    }
    buf_done(&w.properties);
    buf_done(&w.required);
    buf_done(&w.seen);
    buf_done(&all);
    return code;
}

static enum bt_code compare(void *self, struct str name, struct bt_error *err)
{
    return str_is(name, self) ? err_set(err, BT_CONFLICT, "found") : BT_OK;
}

bool http_action_uses(const struct http_action *action, const char *name)
{
    const struct doc all[] = {action->query, action->headers, action->form, action->body};
    union {
        const char *in;
        char *out;
    } self = {.in = name};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (fill_names(all[i], compare, self.out, NULL) != BT_OK) {
            return true;
        }
    }
    return false;
}

/* ---- members ---- */

static enum bt_code read_map(struct arena *a, struct doc map, const char *member, bool texts,
                             struct doc *ret, struct bt_error *err)
{
    struct doc d = doc_get(map, str_from(member));
    struct doc_cursor c = doc_cursor(d);
    struct doc_head head;

    if (d.ptr == NULL) {
        return BT_OK;
    }
    if (!doc_next(&c, &head) || head.kind != DOC_MAP || head.n > HTTP_LIST_MAX) {
        return err_set(err, BT_INVALID, "%s: expected an object of at most %d members", member,
                       HTTP_LIST_MAX);
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str name = doc_string(doc_skip(&c));
        const struct doc_head value = doc_head(doc_skip(&c));
        if (value.kind == DOC_MAP || (texts && value.kind != DOC_STR)) {
            return err_set(err, BT_INVALID, "%s.%.*s: expected a text", member, STR_ARG(name));
        }
    }
    *ret = doc_copy(a, d);
    return ret->ptr == NULL ? no_memory(err) : BT_OK;
}

static enum bt_code read_pointers(struct arena *a, struct doc map, const char *member,
                                  struct doc *ret, struct bt_error *err)
{
    enum bt_code code = read_map(a, map, member, true, ret, err);
    struct doc_cursor c = doc_cursor(*ret);
    struct doc_head head = {.n = 0};

    if (code == BT_OK && ret->ptr != NULL) {
        (void)doc_next(&c, &head);
    }
    for (uint32_t i = 0; i < head.n && code == BT_OK; i++) {
        const struct str name = doc_string(doc_skip(&c));
        const struct str text = doc_string(doc_skip(&c));
        const char *pointer = arena_str(a, text).ptr;
        code = pointer == NULL ? no_memory(err) : pointer_check(pointer, err);
        if (code != BT_OK) {
            return err_wrap(err, "%s.%.*s", member, STR_ARG(name));
        }
    }
    return code;
}

/* `result` is a pointer, or a map of them. */
static enum bt_code read_result(struct arena *a, struct doc map, struct http_action *ret,
                                struct bt_error *err)
{
    struct doc d = doc_get(map, STR_LIT("result"));
    enum bt_code code = BT_OK;

    if (d.ptr != NULL && doc_head(d).kind == DOC_MAP) {
        code = read_pointers(a, map, "result", &ret->result_map, err);
    } else if (d.ptr != NULL) {
        if (doc_head(d).kind != DOC_STR) {
            return err_set(err, BT_INVALID,
                           "result: expected a JSON pointer, or an object of them");
        }
        ret->result = arena_str(a, doc_string(d)).ptr;
        code = ret->result == NULL ? no_memory(err) : pointer_check(ret->result, err);
        if (code != BT_OK) {
            return err_wrap(err, "result");
        }
    }
    if (code == BT_OK) {
        code = read_pointers(a, map, "fields", &ret->fields, err);
    }
    if (code == BT_OK && ret->pages.kind != HTTP_PAGES_NONE &&
        (ret->result != NULL || ret->result_map.ptr != NULL)) {
        code = err_set(err, BT_INVALID,
                       "result: an action with pages has the list of their items as its result; "
                       "use pages.items and fields");
    }
    return code;
}

static enum bt_code read_method(struct doc map, struct http_action *ret, struct bt_error *err)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"};
    unsigned method = 0;
    enum bt_code code = field_choice(map, "method", methods, 6, &method, err);

    ret->method = methods[method];
    return code;
}

static enum bt_code read_body(struct arena *a, struct doc map, struct http_action *ret,
                              struct bt_error *err)
{
    struct doc body = doc_get(map, STR_LIT("body"));

    if (body.ptr != NULL) {
        ret->body = doc_copy(a, body);
        if (ret->body.ptr == NULL) {
            return no_memory(err);
        }
    }
    if (ret->body.ptr != NULL && ret->form.ptr != NULL) {
        return err_set(err, BT_INVALID, "give body or form, not both");
    }
    if ((ret->body.ptr != NULL || ret->form.ptr != NULL) &&
        (strcmp(ret->method, "GET") == 0 || strcmp(ret->method, "HEAD") == 0)) {
        return err_set(err, BT_INVALID, "body: %s has none; use query, or another method",
                       ret->method);
    }
    return BT_OK;
}

static enum bt_code read_schema(struct arena *a, struct doc map, struct http_action *ret,
                                struct bt_error *err)
{
    struct doc d = doc_get(map, STR_LIT("inputSchema"));
    struct buf json;
    enum bt_code code;

    if (d.ptr == NULL) {
        return http_action_schema(a, ret, err);
    }
    if (doc_head(d).kind != DOC_MAP) {
        return err_set(err, BT_INVALID, "inputSchema: expected an object");
    }
    buf_init(&json, SCHEMA_BYTES);
    code = doc_to_json(d, false, &json, err);
    if (code == BT_OK) {
        ret->input_schema = arena_str(a, buf_str(&json)).ptr;
        code = ret->input_schema == NULL ? no_memory(err) : BT_OK;
    }
    buf_done(&json);
    return code;
}

static enum bt_code read_texts(struct arena *a, struct doc map, struct http_action *ret,
                               struct bt_error *err)
{
    const struct {
        const char *member;
        bool needed;
        const char **to;
    } texts[] = {{"id", true, &ret->id},
                 {"description", true, &ret->description},
                 {"path", true, &ret->path},
                 {"name", false, &ret->name},
                 {"effects", false, &ret->effects},
                 {"idempotencyHeader", false, &ret->key_header}};
    enum bt_code code = BT_OK;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && code == BT_OK; i++) {
        code = field_text(a, map, texts[i].member, texts[i].needed, texts[i].to, err);
    }
    if (code == BT_OK && ret->path[0] != '/') {
        code = err_set(err, BT_INVALID,
                       "path: expected a path from /, as /issues/{id}; the host is baseUrl's");
    }
    if (code == BT_OK) {
        code = field_list(a, map, "tags", HTTP_LIST_MAX, &ret->tags, err);
    }
    return code == BT_OK ? field_list(a, map, "examples", HTTP_LIST_MAX, &ret->examples, err)
                         : code;
}

static enum bt_code check_headers(struct doc headers, struct bt_error *err)
{
    struct doc_cursor c = doc_cursor(headers);
    struct doc_head head = {.n = 0};

    if (headers.ptr != NULL) {
        (void)doc_next(&c, &head);
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str name = doc_string(doc_skip(&c));
        if (http_header_check(name, doc_string(doc_skip(&c)), err) != BT_OK) {
            return err_wrap(err, "headers");
        }
    }
    return BT_OK;
}

static enum bt_code read_parts(struct arena *a, struct doc map, struct http_action *ret,
                               struct bt_error *err)
{
    static const char *const outputs[] = {"auto", "json", "text", "artifact"};
    unsigned output = HTTP_OUT_AUTO;
    enum bt_code code = read_map(a, map, "query", false, &ret->query, err);

    if (code == BT_OK) {
        code = read_map(a, map, "headers", true, &ret->headers, err);
    }
    if (code == BT_OK) {
        code = check_headers(ret->headers, err);
    }
    if (code == BT_OK) {
        code = read_map(a, map, "form", false, &ret->form, err);
    }
    if (code == BT_OK) {
        code = read_body(a, map, ret, err);
    }
    if (code == BT_OK) {
        code = http_pages_read(a, doc_get(map, STR_LIT("pages")), &ret->pages, err);
    }
    if (code == BT_OK) {
        code = read_result(a, map, ret, err);
    }
    if (code == BT_OK) {
        code = field_choice(map, "output", outputs, HTTP_OUT_COUNT, &output, err);
    }
    ret->output = (enum http_output)output;
    if (code == BT_OK && output >= HTTP_OUT_TEXT &&
        (ret->result != NULL || ret->result_map.ptr != NULL || ret->fields.ptr != NULL ||
         ret->pages.kind != HTTP_PAGES_NONE)) {
        code =
            err_set(err, BT_INVALID, "output: %s has no result, fields or pages", outputs[output]);
    }
    return code;
}

enum bt_code http_action_read(struct arena *a, struct doc map, struct http_action *ret,
                              struct bt_error *err)
{
    static const char *const known[] = {"id",
                                        "name",
                                        "description",
                                        "tags",
                                        "examples",
                                        "method",
                                        "path",
                                        "query",
                                        "headers",
                                        "form",
                                        "body",
                                        "effects",
                                        "inputSchema",
                                        "result",
                                        "fields",
                                        "pages",
                                        "output",
                                        "timeoutMs",
                                        "idempotencyHeader"};
    enum bt_code code = settings_check_names(map, known, sizeof known / sizeof known[0], err);

    if (code == BT_OK) {
        code = read_texts(a, map, ret, err);
    }
    if (code == BT_OK) {
        code = read_method(map, ret, err);
    }
    if (code == BT_OK) {
        code = read_parts(a, map, ret, err);
    }
    if (code == BT_OK) {
        code = field_number(map, "timeoutMs", 1, TIMEOUT_MAX_MS, &ret->timeout_ms, err);
    }
    if (code == BT_OK && ret->effects == NULL) {
        ret->effects = http_effects_of(ret->method);
    }
    return code == BT_OK ? read_schema(a, map, ret, err) : code;
}
