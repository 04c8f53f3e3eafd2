/* Operations of an OpenAPI 3 document (https://spec.openapis.org/oas/) as actions. */
#include <stdio.h>

#include "agents/http/settings.h"
#include "agents/sdk/documents/flatten.h"
#include "agents/sdk/documents/pointer.h"
#include "protocol/base/glob.h"
#include "protocol/base/log.h"
#include "protocol/limits.h"

enum {
    TEXT_BYTES = 512 * 1024,
    DESCRIPTION_MAX = 400,
    AROUND = 2 /* the schema of all parameters, and its properties */
};

struct operation {
    struct doc spec;
    struct doc path_item;
    struct doc op;
    struct str path;
    const char *method;
    struct buf template;   /* of the path */
    struct buf properties; /* of the schema, as JSON */
    struct buf required;
    struct buf query; /* pairs of msgpack, without the head */
    struct buf headers;
    uint32_t n_query;
    uint32_t n_headers;
};

static enum bt_code no_memory(struct bt_error *err)
{
    return err_set(err, BT_NOMEM, "out of memory for the OpenAPI document");
}

static struct doc resolved(struct doc spec, struct doc d)
{
    for (int i = 0; i < 8 && d.ptr != NULL; i++) {
        const struct str ref = doc_string(doc_get(d, STR_LIT("$ref")));
        char pointer[HTTP_PATH_MAX];
        if (ref.ptr == NULL) {
            return d;
        }
        if (ref.len < 2 || ref.len > sizeof pointer || ref.ptr[0] != '#') {
            return (struct doc){0};
        }
        memcpy(pointer, ref.ptr + 1, ref.len - 1);
        pointer[ref.len - 1] = 0;
        d = pointer_get(spec, pointer);
    }
    return d;
}

/* A name of theirs as a parameter of ours: what a template may have, without dots. */
static void safe_name(struct str name, char *ret, size_t cap)
{
    size_t n = 0;

    for (size_t i = 0; i < name.len && n < cap - 1; i++) {
        const char c = name.ptr[i];
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '_' || c == '-';
        ret[n++] = plain ? c : '_';
    }
    ret[n] = 0;
}

/* ---- parameters ---- */

static enum bt_code add_property(struct operation *o, const char *name, struct doc schema,
                                 struct str about, bool required, struct bt_error *err)
{
    static const uint8_t empty_map[] = {0x80}; /* msgpack: a parameter without a schema */
    enum bt_code code;

    if (schema.ptr == NULL) {
        schema = (struct doc){empty_map, sizeof empty_map};
    }
    buf_printf(&o->properties, "%s\"%s\":", o->properties.len > 0 ? "," : "", name);
    code = schema_flatten(o->spec, schema, about, AROUND, &o->properties, err);
    if (required) {
        buf_printf(&o->required, "%s\"%s\"", o->required.len > 0 ? "," : "", name);
    }
    return code;
}

static void put_pair(struct buf *to, uint32_t *n, struct str key, const char *name)
{
    char value[80];

    (void)snprintf(value, sizeof value, "{%s}", name);
    doc_put_str(to, key);
    doc_put_cstr(to, value);
    (*n)++;
}

static enum bt_code add_parameter(struct operation *o, struct doc parameter, struct bt_error *err)
{
    const struct doc p = resolved(o->spec, parameter);
    const struct str in = doc_string(doc_get(p, STR_LIT("in")));
    const struct str key = doc_string(doc_get(p, STR_LIT("name")));
    const struct doc needed = doc_get(p, STR_LIT("required"));
    const bool is_path = str_is(in, "path");
    char name[LIMIT_ID_BYTES + 1];

    if (key.len == 0 || key.len > LIMIT_ID_BYTES || str_is(in, "cookie")) {
        return BT_OK; /* a cookie is the service's own matter */
    }
    safe_name(key, name, sizeof name);
    if (str_is(in, "query")) {
        put_pair(&o->query, &o->n_query, key, name);
    } else if (str_is(in, "header")) {
        put_pair(&o->headers, &o->n_headers, key, name);
    }
    return add_property(o, name, doc_get(p, STR_LIT("schema")),
                        doc_string(doc_get(p, STR_LIT("description"))),
                        is_path || (needed.ptr != NULL && doc_head(needed).b), err);
}

static bool same_parameter(struct doc spec, struct doc a, struct doc b)
{
    const struct doc x = resolved(spec, a);
    const struct doc y = resolved(spec, b);

    return doc_eq(doc_get(x, STR_LIT("name")), doc_get(y, STR_LIT("name"))) &&
           doc_eq(doc_get(x, STR_LIT("in")), doc_get(y, STR_LIT("in")));
}

/* Those of the path hold for all its operations, which may have their own of the same name. */
static enum bt_code add_parameters(struct operation *o, struct bt_error *err)
{
    const struct doc own = doc_get(o->op, STR_LIT("parameters"));
    const struct doc all = doc_get(o->path_item, STR_LIT("parameters"));
    const uint32_t n_own = own.ptr == NULL ? 0 : doc_head(own).n;
    enum bt_code code = BT_OK;

    for (uint32_t i = 0; i < n_own && code == BT_OK; i++) {
        code = add_parameter(o, doc_at(own, i), err);
    }
    for (uint32_t i = 0; all.ptr != NULL && i < doc_head(all).n && code == BT_OK; i++) {
        bool replaced = false;
        for (uint32_t k = 0; k < n_own; k++) {
            replaced |= same_parameter(o->spec, doc_at(all, i), doc_at(own, k));
        }
        code = replaced ? BT_OK : add_parameter(o, doc_at(all, i), err);
    }
    return code;
}

/* "/pets/{pet.id}" with the names of our parameters. */
static void make_template(struct operation *o)
{
    for (size_t i = 0; i < o->path.len; i++) {
        const char *close =
            o->path.ptr[i] == '{' ? memchr(o->path.ptr + i, '}', o->path.len - i) : NULL;
        char name[LIMIT_ID_BYTES + 1];
        if (close == NULL) {
            buf_add_byte(&o->template, (uint8_t)o->path.ptr[i]);
            continue;
        }
        safe_name((struct str){o->path.ptr + i + 1, (size_t)(close - o->path.ptr) - i - 1}, name,
                  sizeof name);
        buf_printf(&o->template, "{%s}", name);
        i = (size_t)(close - o->path.ptr);
    }
}

/* The schema of a body of JSON; .ptr NULL when the operation takes none. *ret_required: it must be
 * given, as JSON or otherwise. */
static struct doc body_schema(const struct operation *o, bool *ret_required)
{
    const struct doc body = resolved(o->spec, doc_get(o->op, STR_LIT("requestBody")));
    const struct doc content = doc_get(body, STR_LIT("content"));
    const struct doc required = doc_get(body, STR_LIT("required"));
    struct doc_cursor c = doc_cursor(content);
    struct doc_head head = {.n = 0};

    *ret_required = required.ptr != NULL && doc_head(required).b;
    if (content.ptr == NULL || !doc_next(&c, &head) || head.kind != DOC_MAP) {
        return (struct doc){0};
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str type = doc_string(doc_skip(&c));
        const struct doc media = doc_skip(&c);
        if (memmem(type.ptr, type.len, "json", 4) != NULL) {
            return doc_get(media, STR_LIT("schema"));
        }
    }
    return (struct doc){0};
}

/* ---- the action ---- */

static struct doc keep_map(struct arena *a, const struct buf *pairs, uint32_t n)
{
    struct buf all;
    struct doc ret;

    if (n == 0) {
        return (struct doc){0};
    }
    buf_init(&all, TEXT_BYTES);
    doc_put_map(&all, n);
    buf_add(&all, pairs->at, pairs->len);
    ret = all.bad == BT_OK ? doc_copy(a, doc_from_buf(&all)) : (struct doc){0};
    buf_done(&all);
    return ret;
}

static const char *make_id(struct arena *a, const struct operation *o)
{
    const struct str given = doc_string(doc_get(o->op, STR_LIT("operationId")));
    char id[LIMIT_ID_BYTES + 1];
    char text[2 * LIMIT_ID_BYTES];

    if (given.len > 0) {
        (void)snprintf(text, sizeof text, "%.*s", STR_ARG(given));
    } else {
        (void)snprintf(text, sizeof text, "%s%.*s", o->method, STR_ARG(o->path));
    }
    safe_name(str_from(text), id, sizeof id);
    if (id[0] == '-') {
        id[0] = '_';
    }
    return arena_str(a, str_from(id)).ptr;
}

static const char *make_description(struct arena *a, const struct operation *o)
{
    struct str about = doc_string(doc_get(o->op, STR_LIT("summary")));
    char text[DESCRIPTION_MAX];

    if (about.len == 0) {
        about = doc_string(doc_get(o->op, STR_LIT("description")));
    }
    (void)snprintf(text, sizeof text, "%.*s", about.len > 300 ? 300 : (int)about.len,
                   about.len > 0 ? about.ptr : "");
    if (text[0] == 0) {
        (void)snprintf(text, sizeof text, "%s %.*s", o->method, STR_ARG(o->path));
    }
    return arena_str(a, str_from(text)).ptr;
}

static enum bt_code make_action(struct arena *a, struct operation *o, struct http_action *ret,
                                struct bt_error *err)
{
    struct buf schema;
    struct buf body;

    buf_init(&schema, TEXT_BYTES);
    buf_init(&body, TEXT_BYTES);
    buf_printf(&schema,
               "{\"type\":\"object\",\"properties\":{%s},\"required\":[%s],"
               "\"additionalProperties\":false}",
               buf_cstr(&o->properties), buf_cstr(&o->required));
    *ret = (struct http_action){.id = make_id(a, o),
                                .description = make_description(a, o),
                                .method = o->method,
                                .effects = http_effects_of(o->method),
                                .path = arena_str(a, buf_str(&o->template)).ptr,
                                .query = keep_map(a, &o->query, o->n_query),
                                .headers = keep_map(a, &o->headers, o->n_headers),
                                .input_schema = arena_str(a, buf_str(&schema)).ptr};
    if (strstr(buf_cstr(&o->properties), "\"body\":") != NULL && strcmp(o->method, "GET") != 0 &&
        strcmp(o->method, "HEAD") != 0) {
        doc_put_cstr(&body, "{body}");
        ret->body = doc_copy(a, doc_from_buf(&body));
    }
    if (ret->id == NULL || ret->description == NULL || ret->path == NULL ||
        ret->input_schema == NULL || schema.bad != BT_OK || o->properties.bad != BT_OK) {
        buf_done(&schema);
        buf_done(&body);
        return no_memory(err);
    }
    buf_done(&schema);
    buf_done(&body);
    return BT_OK;
}

static enum bt_code read_operation(struct http_settings *s, struct operation *o,
                                   struct bt_error *err)
{
    bool required = false;
    struct doc body = body_schema(o, &required);
    enum bt_code code;

    if (body.ptr == NULL && required) {
        log_warn("http.left_out", "%s %.*s: its body is no JSON, so no step can give it", o->method,
                 STR_ARG(o->path));
        return BT_OK;
    }
    buf_init(&o->template, HTTP_PATH_MAX);
    buf_init(&o->properties, TEXT_BYTES);
    buf_init(&o->required, TEXT_BYTES);
    buf_init(&o->query, TEXT_BYTES);
    buf_init(&o->headers, TEXT_BYTES);
    o->n_query = 0;
    o->n_headers = 0;
    make_template(o);
    code = add_parameters(o, err);
    if (code == BT_OK && body.ptr != NULL) {
        code = add_property(o, "body", body, STR_LIT(""), required, err);
    }
    if (code == BT_OK && s->n == LIMIT_SKILLS) {
        code = err_set(err, BT_LIMIT,
                       "more than %d operations; choose some: operations: [\"get*\", \"POST "
                       "/orders\"]",
                       LIMIT_SKILLS);
    }
    if (code == BT_OK) {
        code = make_action(&s->arena, o, &s->actions[s->n], err);
    }
    for (uint32_t i = 0; code == BT_OK && i < s->n; i++) {
        if (strcmp(s->actions[i].id, s->actions[s->n].id) == 0) {
            code = err_set(err, BT_CONFLICT, "two operations have the id %s", s->actions[i].id);
        }
    }
    s->n += code == BT_OK;
    buf_done(&o->template);
    buf_done(&o->properties);
    buf_done(&o->required);
    buf_done(&o->query);
    buf_done(&o->headers);
    return code == BT_OK ? BT_OK : err_wrap(err, "%s %.*s", o->method, STR_ARG(o->path));
}

static bool is_wanted(const struct operation *o, const char *const *globs)
{
    const struct str id = doc_string(doc_get(o->op, STR_LIT("operationId")));
    char line[HTTP_PATH_MAX];
    char name[LIMIT_ID_BYTES * 2];

    (void)snprintf(line, sizeof line, "%s %.*s", o->method, STR_ARG(o->path));
    (void)snprintf(name, sizeof name, "%.*s", (int)id.len, id.len > 0 ? id.ptr : "");
    for (size_t i = 0; globs != NULL && globs[i] != NULL; i++) {
        if (glob_fits(str_from(globs[i]), str_from(line)) ||
            (name[0] != 0 && glob_fits(str_from(globs[i]), str_from(name)))) {
            return true;
        }
    }
    return globs == NULL;
}

enum bt_code http_openapi_add(struct http_settings *s, struct doc spec, const char *const *globs,
                              struct bt_error *err)
{
    static const struct {
        const char *member;
        const char *method;
    } methods[] = {{"get", "GET"},       {"put", "PUT"},     {"post", "POST"},
                   {"delete", "DELETE"}, {"patch", "PATCH"}, {"head", "HEAD"}};
    const struct str version = doc_string(doc_get(spec, STR_LIT("openapi")));
    const struct doc paths = doc_get(spec, STR_LIT("paths"));
    const uint32_t before = s->n;
    struct doc_cursor c = doc_cursor(paths);
    struct doc_head head = {.n = 0};
    enum bt_code code = BT_OK;

    if (version.len < 2 || version.ptr[0] != '3') {
        return err_set(err, BT_INVALID, "expected an OpenAPI 3 document: openapi is '%.*s'",
                       version.len > 20 ? 20 : (int)version.len,
                       version.len > 0 ? version.ptr : "");
    }
    if (paths.ptr == NULL || !doc_next(&c, &head) || head.kind != DOC_MAP) {
        return err_set(err, BT_INVALID, "paths: expected an object");
    }
    for (uint32_t i = 0; i < head.n && code == BT_OK; i++) {
        struct operation o = {.spec = spec, .path = doc_string(doc_skip(&c))};
        o.path_item = resolved(spec, doc_skip(&c));
        for (size_t k = 0; k < sizeof methods / sizeof methods[0] && code == BT_OK; k++) {
            o.op = doc_get(o.path_item, str_from(methods[k].member));
            o.method = methods[k].method;
            if (o.op.ptr != NULL && is_wanted(&o, globs)) {
                code = read_operation(s, &o, err);
            }
        }
    }
    if (code == BT_OK && s->n == before) {
        code = err_set(err, BT_INVALID, "no operation fits operations");
    }
    return code;
}
