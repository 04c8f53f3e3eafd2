#include "supervisor/config/yaml_append.h"

#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/limits.h"
#include "supervisor/config/yaml.h"
#include "supervisor/config/yaml_write.h"

enum { POINTER_BYTES = 80 };

/* Where the item goes, and how it is written there. */
struct spot {
    size_t at;     /* a byte of the text: the beginning of a line, or its end */
    size_t indent; /* of the dash */
    bool apart;    /* a blank line before it, as between the others */
    size_t cut;    /* the bytes before `at` that an empty list in brackets takes */
};

static struct str line_at(struct str text, size_t at)
{
    const char *end = at < text.len ? memchr(text.ptr + at, '\n', text.len - at) : NULL;

    return (struct str){text.ptr + at,
                        end == NULL ? text.len - at : (size_t)(end - text.ptr) + 1 - at};
}

static size_t indent_of(struct str line)
{
    size_t n = 0;

    while (n < line.len && line.ptr[n] == ' ') {
        n++;
    }
    return n;
}

static bool is_blank(struct str line)
{
    const size_t n = indent_of(line);

    return n == line.len || line.ptr[n] == '\n' || line.ptr[n] == '\r';
}

/* The end of the block below `at`: after its last line with content. A comment that is further in
 * than the dashes belongs to it, too. */
static void find_end(struct str text, size_t at, struct spot *ret)
{
    bool found = false;
    bool blank = false;

    ret->at = at;
    while (at < text.len) {
        const struct str line = line_at(text, at);
        const size_t n = indent_of(line);
        const char first = is_blank(line) ? ' ' : line.ptr[n];
        at += line.len;
        if (first == ' ' || (first == '#' && (!found || n <= ret->indent))) {
            blank = found;
            continue;
        }
        if (!found) {
            ret->indent = n;
            found = true;
        } else if (n < ret->indent || (n == ret->indent && first != '-')) {
            return;
        }
        ret->apart = ret->apart || (blank && n == ret->indent);
        blank = false;
        ret->at = at;
    }
}

/* A list without items: `agents:` or `agents: []`, at the end of whose line the item begins. A key
 * without a colon in its line keeps the spot; check() refuses it. */
static void find_empty(struct str text, size_t key, struct spot *ret)
{
    const struct str line = line_at(text, key);
    const char *colon = memchr(line.ptr, ':', line.len);
    const char *p = colon == NULL ? NULL : colon + 1;
    const char *const end = line.ptr + line.len;

    if (p == NULL) {
        return;
    }
    p += indent_of((struct str){p, (size_t)(end - p)});
    ret->cut = end - p >= 2 && memcmp(p, "[]", 2) == 0 ? 2 : 0;
    ret->at = (size_t)(p - text.ptr) + ret->cut;
}

static void find_spot(struct str text, const struct cJSON *list, struct yaml_place key,
                      struct spot *ret)
{
    size_t at = 0;

    *ret = (struct spot){.at = text.len, .indent = 2};
    if (list == NULL) {
        return;
    }
    for (uint32_t line = 1; line < key.line; line++) {
        at += line_at(text, at).len;
    }
    if (!cJSON_IsArray(list) || list->child == NULL) {
        find_empty(text, at, ret);
        return;
    }
    find_end(text, at + line_at(text, at).len, ret);
}

/* The lines of the item: the first behind a dash, the others below it. */
static void put_item(struct str lines, size_t indent, struct buf *out)
{
    size_t at = 0;

    while (at < lines.len) {
        const struct str line = line_at(lines, at);
        if (!is_blank(line)) {
            buf_printf(out, "%*s%s", (int)indent, "", at == 0 ? "- " : "  ");
        }
        buf_add(out, line.ptr, line.len);
        at += line.len;
    }
}

static enum bt_code write_text(struct str text, const char *list, bool is_new, struct spot spot,
                               const cJSON *item, struct buf *out, struct bt_error *err)
{
    struct str rest = {text.ptr + spot.at, text.len - spot.at};
    struct buf lines;
    enum bt_code code;

    buf_init(&lines, LIMIT_CONTROL_BYTES);
    code = yaml_write(item, &lines, err);
    if (code == BT_OK) {
        buf_add(out, text.ptr, spot.at - spot.cut);
        if (spot.at > 0 && !is_new && text.ptr[spot.at - 1] != '\n') { /* the line of the key */
            const struct str line = line_at(text, spot.at);
            buf_add(out, line.ptr, line.len);
            rest = (struct str){rest.ptr + line.len, rest.len - line.len};
        }
        if (out->len > 0 && out->at[out->len - 1] != '\n') {
            buf_add_byte(out, '\n');
        }
        if (spot.apart || (is_new && spot.at > 0)) {
            buf_add_byte(out, '\n');
        }
        if (is_new) {
            buf_printf(out, "%s:\n", list);
        }
        put_item(buf_str(&lines), spot.indent, out);
        buf_add(out, rest.ptr, rest.len);
        code = buf_check(out, err);
    }
    buf_done(&lines);
    return code;
}

/* Whether the text has what was wanted: the same tree with the item at the end of the list. */
static enum bt_code check(struct buf *out, const char *name, const char *list, const cJSON *old,
                          const cJSON *item, struct bt_error *err)
{
    cJSON *wanted = cJSON_IsObject(old) ? cJSON_Duplicate(old, true) : cJSON_CreateObject();
    cJSON *items = cJSON_GetObjectItemCaseSensitive(wanted, list);
    cJSON *got = NULL;
    struct bt_error why;
    bool same = false;

    if (!cJSON_IsArray(items)) {
        cJSON_DeleteItemFromObjectCaseSensitive(wanted, list);
        items = cJSON_AddArrayToObject(wanted, list);
    }
    (void)cJSON_AddItemToArray(items, cJSON_Duplicate(item, true));
    same = yaml_read(buf_str(out), name, &got, NULL, &why) == BT_OK &&
           cJSON_Compare(got, wanted, true);
    cJSON_Delete(got);
    cJSON_Delete(wanted);
    return same ? BT_OK
                : err_set(err, BT_INVALID,
                          "%.150s: %s is not written as one item a line (\"- ...\"), so nothing "
                          "can be added to it without a change of the rest; add it by hand",
                          name, list);
}

enum bt_code yaml_append(struct str text, const char *name, const char *list,
                         const struct cJSON *item, struct buf *out, struct bt_error *err)
{
    struct yaml_marks *marks = NULL;
    const cJSON *old;
    struct spot spot;
    cJSON *tree = NULL;
    char pointer[POINTER_BYTES];
    enum bt_code code = yaml_read(text, name, &tree, &marks, err);

    if (code != BT_OK) {
        return code;
    }
    old = cJSON_GetObjectItemCaseSensitive(tree, list);
    (void)snprintf(pointer, sizeof pointer, "/%s", list);
    find_spot(text, old, yaml_place(marks, pointer), &spot);
    code = write_text(text, list, old == NULL, spot, item, out, err);
    if (code == BT_OK) {
        code = check(out, name, list, tree, item, err);
    }
    yaml_marks_free(marks);
    cJSON_Delete(tree);
    return code;
}
