#include "supervisor/config/yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>
#include <yaml.h>

#include "protocol/base/map.h"
#include "protocol/limits.h"
#include "supervisor/config/yaml_marks.h"
#include "supervisor/config/yaml_text.h"

enum { MESSAGE_BYTES = 320 };

/* A collection that is still open. */
struct frame {
    cJSON *container;
    struct map keys; /* of an object: cJSON's own lookup is linear */
    char *key;       /* a key that has no value yet; owned */
    struct yaml_place key_place;
};

struct reader {
    const char *name;
    struct str text;
    struct bt_error *err;
    yaml_parser_t parser;
    struct frame stack[YAML_DEPTH_MAX];
    uint32_t depth, depth_max;
    cJSON *root;
    bool done; /* one document is complete */
    struct yaml_marks *marks;
};

static enum bt_code fail(struct reader *r, struct yaml_place at, enum bt_code code, const char *fmt,
                         ...) BT_PRINTF(4, 5);
static enum bt_code fail(struct reader *r, struct yaml_place at, enum bt_code code, const char *fmt,
                         ...)
{
    char text[MESSAGE_BYTES];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return err_set(r->err, code, "%.150s:%u:%u: %s", r->name, at.line, at.column, text);
}

static enum bt_code no_memory(struct reader *r)
{
    return err_set(r->err, BT_NOMEM, "%.150s: out of memory", r->name);
}

static struct yaml_place place_of(yaml_mark_t mark)
{
    return (struct yaml_place){(uint32_t)mark.line + 1, (uint32_t)mark.column + 1};
}

static enum bt_code add_mark(struct reader *r, const cJSON *item, struct yaml_place place)
{
    enum bt_code code = yaml_marks_add(r->marks, item, place);

    if (code == BT_LIMIT) {
        return fail(r, place, BT_LIMIT, "more than %d values", LIMIT_NODES);
    }
    return code == BT_OK ? BT_OK : no_memory(r);
}

/* Adds the value to the open collection. Takes it, also on failure. */
static enum bt_code attach(struct reader *r, cJSON *value, struct yaml_place place)
{
    struct frame *f = r->depth == 0 ? NULL : &r->stack[r->depth - 1];
    bool added = true;

    if (f == NULL) {
        r->root = value;
    } else if (f->key == NULL) {
        added = cJSON_AddItemToArray(f->container, value);
    } else {
        added = cJSON_AddItemToObject(f->container, f->key, value);
        place = f->key_place;
        free(f->key);
        f->key = NULL;
    }
    if (!added) {
        cJSON_Delete(value);
        return no_memory(r);
    }
    if (f != NULL && cJSON_IsObject(f->container) &&
        map_put(&f->keys, str_from(value->string), 1) != BT_OK) {
        return no_memory(r);
    }
    return add_mark(r, value, place);
}

static bool wants_key(const struct reader *r)
{
    return r->depth > 0 && cJSON_IsObject(r->stack[r->depth - 1].container) &&
           r->stack[r->depth - 1].key == NULL;
}

static enum bt_code take_key(struct reader *r, const char *text, struct yaml_place place)
{
    struct frame *f = &r->stack[r->depth - 1];

    if (map_get(&f->keys, str_from(text)) != MAP_NONE) {
        return fail(r, place, BT_INVALID, "\"%.60s\" stands here twice", text);
    }
    f->key = strdup(text);
    f->key_place = place;
    return f->key == NULL ? no_memory(r) : BT_OK;
}

static enum bt_code on_scalar(struct reader *r, const yaml_event_t *e)
{
    const char *text = (const char *)e->data.scalar.value;
    struct yaml_place place = place_of(e->start_mark);
    bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    const char *why = "";
    cJSON *value = NULL;
    enum bt_code code;

    if (strlen(text) != e->data.scalar.length) {
        return fail(r, place, BT_INVALID, "the text holds a zero byte");
    }
    if (wants_key(r)) {
        return plain && text[0] == '\0'
                   ? fail(r, place, BT_INVALID, "a key is missing before \":\"")
                   : take_key(r, text, place);
    }
    code = yaml_scalar(text, plain, &value, &why);
    if (code == BT_NOMEM) {
        return no_memory(r);
    }
    return code == BT_OK ? attach(r, value, place) : fail(r, place, code, "%.40s: %s", text, why);
}

static enum bt_code on_open(struct reader *r, const yaml_event_t *e)
{
    struct yaml_place place = place_of(e->start_mark);
    cJSON *value;
    enum bt_code code;

    if (wants_key(r)) {
        return fail(r, place, BT_INVALID, "a key must be text");
    }
    if (r->depth == r->depth_max) {
        return fail(r, place, BT_LIMIT, "nests deeper than %u levels", r->depth_max);
    }
    value = e->type == YAML_MAPPING_START_EVENT ? cJSON_CreateObject() : cJSON_CreateArray();
    if (value == NULL) {
        return no_memory(r);
    }
    code = attach(r, value, place);
    if (code == BT_OK) {
        r->stack[r->depth++] = (struct frame){.container = value};
    }
    return code;
}

static void on_close(struct reader *r)
{
    struct frame *f = &r->stack[--r->depth];

    map_done(&f->keys);
    free(f->key);
    f->key = NULL;
}

/* YAML features that are rejected: readers disagree about them, or a small file can grow large. */
static const char *unsupported_feature(const yaml_event_t *e)
{
    bool scalar = e->type == YAML_SCALAR_EVENT;
    bool map = e->type == YAML_MAPPING_START_EVENT;
    bool list = e->type == YAML_SEQUENCE_START_EVENT;

    if (e->type == YAML_ALIAS_EVENT || (scalar && e->data.scalar.anchor != NULL) ||
        (map && e->data.mapping_start.anchor != NULL) ||
        (list && e->data.sequence_start.anchor != NULL)) {
        return "anchors and aliases are not supported; write the value out";
    }
    if ((scalar && e->data.scalar.tag != NULL) || (map && e->data.mapping_start.tag != NULL) ||
        (list && e->data.sequence_start.tag != NULL)) {
        return "tags are not supported; quote a value to make it text";
    }
    return NULL;
}

static enum bt_code on_event(struct reader *r, const yaml_event_t *e)
{
    const char *feature = unsupported_feature(e);

    if (feature != NULL) {
        return fail(r, place_of(e->start_mark), BT_INVALID, "%s", feature);
    }
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (r->done) {
            return fail(r, place_of(e->start_mark), BT_INVALID,
                        "a second document; one file holds one");
        }
        return BT_OK;
    case YAML_DOCUMENT_END_EVENT:
        r->done = true;
        return BT_OK;
    case YAML_SCALAR_EVENT:
        return on_scalar(r, e);
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        return on_open(r, e);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        on_close(r);
        return BT_OK;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_ALIAS_EVENT: /* rejected above */
        return BT_OK;
    }
    return BT_OK;
}

/* What is mostly the cause of a message of libyaml. */
static const char *advice(const char *problem)
{
    static const char *const causes[][2] = {
        {"mapping values are not allowed", "; a text with \": \" in it stands in quotes, and the "
                                           "members of a map begin in one column"},
        {"did not find expected ',' or", "; what begins with a bracket ends with one, and a text "
                                         "with {{ }} in it stands in quotes"},
        {"found character that cannot start any token",
         "; a text that begins with it stands in quotes"},
        {"did not find expected key", "; the members of a map begin in one column"},
        {"did not find expected '-'",
         "; the items of a list begin in one column, and the members of each in another"},
    };

    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        if (strncmp(problem, causes[i][0], strlen(causes[i][0])) == 0) {
            return causes[i][1];
        }
    }
    return "";
}

/* libyaml's message, except for the most common mistake. */
static enum bt_code parser_failed(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    struct yaml_place place = place_of(p->problem_mark);
    size_t offset = yaml_text_offset(r->text, p->problem_mark.line, p->problem_mark.column);

    if (p->error == YAML_MEMORY_ERROR) {
        return no_memory(r);
    }
    if (p->error == YAML_READER_ERROR) {
        return fail(r, yaml_text_place(r->text, p->problem_offset), BT_INVALID, "%s", p->problem);
    }
    if (offset < r->text.len && r->text.ptr[offset] == '\t') {
        return fail(r, place, BT_INVALID, "a tab cannot indent in YAML; use spaces");
    }
    if (p->context != NULL) {
        return fail(r, place, BT_INVALID, "%s, %s that starts in line %zu%s", p->problem,
                    p->context, p->context_mark.line + 1, advice(p->problem));
    }
    return fail(r, place, BT_INVALID, "%s%s", p->problem, advice(p->problem));
}

static enum bt_code read_events(struct reader *r)
{
    enum bt_code code = BT_OK;
    bool more = true;

    while (code == BT_OK && more) {
        yaml_event_t e;
        if (!yaml_parser_parse(&r->parser, &e)) {
            return parser_failed(r);
        }
        code = on_event(r, &e);
        more = e.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&e);
    }
    return code;
}

static enum bt_code check_text(struct reader *r)
{
    size_t valid;

    if (r->text.len > LIMIT_CONTROL_BYTES) {
        return err_set(r->err, BT_LIMIT, "%.150s: larger than %d KiB", r->name,
                       LIMIT_CONTROL_BYTES / 1024);
    }
    valid = yaml_text_valid(r->text);
    return valid == r->text.len
               ? BT_OK
               : fail(r, yaml_text_place(r->text, valid), BT_INVALID, "the text is not UTF-8");
}

static enum bt_code read_text(struct reader *r)
{
    struct buf joined;
    size_t start = 0;
    enum bt_code code = BT_OK;

    buf_init(&joined, (size_t)LIMIT_CONTROL_BYTES + 1);
    while (start < r->text.len && strchr(" \t\r\n", r->text.ptr[start]) != NULL) {
        start++;
    }
    if (start < r->text.len && (r->text.ptr[start] == '{' || r->text.ptr[start] == '[')) {
        yaml_text_join_surrogates(r->text, &joined);
        r->text = buf_str(&joined);
        code = buf_check(&joined, NULL) == BT_OK ? BT_OK : no_memory(r);
    }
    if (code == BT_OK) {
        yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
        const char *text =
            /* libyaml asserts that the pointer is not NULL */
            r->text.ptr != NULL ? r->text.ptr : "";
        yaml_parser_set_input_string(&r->parser, (const unsigned char *)text, r->text.len);
        code = read_events(r);
    }
    while (r->depth > 0) {
        on_close(r);
    }
    if (code == BT_OK && r->root == NULL) {
        cJSON *empty = cJSON_CreateNull();
        code = empty == NULL ? no_memory(r) : attach(r, empty, (struct yaml_place){1, 1});
    }
    buf_done(&joined);
    return code;
}

static enum bt_code read_tree(struct str text, const char *name, uint32_t depth,
                              struct cJSON **ret_tree, struct yaml_marks **ret_marks,
                              struct bt_error *err)
{
    struct reader r = {.name = name, .text = text, .err = err, .depth_max = depth};
    enum bt_code code = check_text(&r);

    if (code != BT_OK) {
        return code;
    }
    r.marks = yaml_marks_new();
    if (r.marks == NULL || !yaml_parser_initialize(&r.parser)) {
        yaml_marks_free(r.marks);
        return no_memory(&r);
    }
    code = read_text(&r);
    yaml_parser_delete(&r.parser);
    if (code != BT_OK) {
        yaml_marks_free(r.marks);
        cJSON_Delete(r.root);
        return code;
    }
    yaml_marks_seal(r.marks, r.root);
    *ret_tree = r.root;
    if (ret_marks != NULL) {
        *ret_marks = r.marks;
    } else {
        yaml_marks_free(r.marks);
    }
    return BT_OK;
}

enum bt_code yaml_read_deep(struct str text, const char *name, struct cJSON **ret_tree,
                            struct bt_error *err)
{
    return read_tree(text, name, YAML_DEPTH_MAX, ret_tree, NULL, err);
}

enum bt_code yaml_read(struct str text, const char *name, struct cJSON **ret_tree,
                       struct yaml_marks **ret_marks, struct bt_error *err)
{
    return read_tree(text, name, LIMIT_DEPTH, ret_tree, ret_marks, err);
}
