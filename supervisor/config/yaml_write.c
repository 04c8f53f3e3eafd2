#include "supervisor/config/yaml_write.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cjson/cJSON.h>
#include <yaml.h>

#include "protocol/base/utf8.h"

enum { KEEP_LINES = -1 };

static int append(void *self, unsigned char *bytes, size_t n)
{
    struct buf *out = self;

    buf_add(out, bytes, n);
    return out->bad == BT_OK;
}

/* Whether a reader of YAML 1.1 or 1.2 takes the unquoted text for text. Conservative: it begins
 * like a word. */
static bool is_word(const char *text)
{
    static const char *const others[] = {"null", "true", "false", "yes", "no",
                                         "on",   "off",  "y",     "n",   NULL};
    const unsigned char first = (unsigned char)text[0];

    for (int i = 0; others[i] != NULL; i++) {
        if (strcasecmp(text, others[i]) == 0) {
            return false;
        }
    }
    return first >= 0x80 || (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') ||
           first == '_' || first == '/';
}

/* A literal block keeps its lines; the emitter quotes what cannot be one. */
static yaml_scalar_style_t style_of(const char *text)
{
    if (strchr(text, '\n') != NULL) {
        return YAML_LITERAL_SCALAR_STYLE;
    }
    return is_word(text) ? YAML_PLAIN_SCALAR_STYLE : YAML_SINGLE_QUOTED_SCALAR_STYLE;
}

static bool emit_text(yaml_emitter_t *emitter, const char *text, yaml_scalar_style_t style)
{
    yaml_event_t event;

    return yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text,
                                        (int)strlen(text), 1, 1, style) &&
           yaml_emitter_emit(emitter, &event);
}

static bool emit_scalar(yaml_emitter_t *emitter, const cJSON *value)
{
    char *text;
    bool ok;

    if (cJSON_IsString(value)) {
        return emit_text(emitter, value->valuestring, style_of(value->valuestring));
    }
    text = cJSON_PrintUnformatted(value);
    ok = text != NULL && emit_text(emitter, text, YAML_PLAIN_SCALAR_STYLE);
    cJSON_free(text);
    return ok;
}

/* The beginning or the end of a list or an object; an empty one stands in a line. */
static bool emit_bound(yaml_emitter_t *emitter, const cJSON *value, bool begins)
{
    yaml_event_t event;
    int ok;

    if (cJSON_IsObject(value)) {
        ok = begins ? yaml_mapping_start_event_initialize(
                          &event, NULL, NULL, 1,
                          value->child == NULL ? YAML_FLOW_MAPPING_STYLE : YAML_BLOCK_MAPPING_STYLE)
                    : yaml_mapping_end_event_initialize(&event);
    } else {
        ok = begins
                 ? yaml_sequence_start_event_initialize(
                       &event, NULL, NULL, 1,
                       value->child == NULL ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE)
                 : yaml_sequence_end_event_initialize(&event);
    }
    return ok && yaml_emitter_emit(emitter, &event);
}

static bool emit(yaml_emitter_t *emitter, const cJSON *value);

/* JSON text within a tree. */
static bool emit_raw(yaml_emitter_t *emitter, const cJSON *raw)
{
    cJSON *value = cJSON_Parse(raw->valuestring);
    const bool ok = value != NULL && emit(emitter, value);

    cJSON_Delete(value);
    return ok;
}

/* A tree of cJSON is at most CJSON_NESTING_LIMIT levels deep when it was parsed. */
static bool emit(yaml_emitter_t *emitter, const cJSON *value)
{
    bool ok;

    if (!cJSON_IsObject(value) && !cJSON_IsArray(value)) {
        return cJSON_IsRaw(value) ? emit_raw(emitter, value) : emit_scalar(emitter, value);
    }
    ok = emit_bound(emitter, value, true);
    for (const cJSON *v = value->child; ok && v != NULL; v = v->next) {
        if (cJSON_IsObject(value)) {
            ok = emit_text(emitter, v->string,
                           is_word(v->string) ? YAML_PLAIN_SCALAR_STYLE
                                              : YAML_SINGLE_QUOTED_SCALAR_STYLE);
        }
        ok = ok && emit(emitter, v);
    }
    return ok && emit_bound(emitter, value, false);
}

static bool emit_document(yaml_emitter_t *emitter, const cJSON *tree)
{
    yaml_event_t event;

    return yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING) &&
           yaml_emitter_emit(emitter, &event) &&
           yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1) &&
           yaml_emitter_emit(emitter, &event) && emit(emitter, tree) &&
           yaml_document_end_event_initialize(&event, 1) && yaml_emitter_emit(emitter, &event) &&
           yaml_stream_end_event_initialize(&event) && yaml_emitter_emit(emitter, &event);
}

static bool has_unsafe(const char *text)
{
    size_t n;

    for (size_t left = text == NULL ? 0 : strlen(text); left > 0; left -= n, text += n) {
        if (utf8_is_unsafe(utf8_char(text, left, &n))) {
            return true;
        }
    }
    return false;
}

static bool is_unsafe(const cJSON *tree)
{
    for (; tree != NULL; tree = tree->next) {
        if (has_unsafe(tree->string) || has_unsafe(tree->valuestring) || is_unsafe(tree->child)) {
            return true;
        }
    }
    return false;
}

enum bt_code yaml_write(const cJSON *tree, struct buf *out, struct bt_error *err)
{
    yaml_emitter_t emitter;
    bool ok = yaml_emitter_initialize(&emitter) != 0;

    if (ok) {
        yaml_emitter_set_output(&emitter, append, out);
        /* The emitter prints what it calls printable, direction marks and blanks without a width
         * among them: a document with such characters is written in ASCII, with escapes. */
        yaml_emitter_set_unicode(&emitter, !is_unsafe(tree));
        yaml_emitter_set_width(&emitter, KEEP_LINES);
        ok = emit_document(&emitter, tree);
        yaml_emitter_delete(&emitter);
    }
    if (ok) {
        return BT_OK;
    }
    return out->bad != BT_OK ? buf_check(out, err)
                             : err_set(err, BT_NOMEM, "out of memory for YAML");
}
