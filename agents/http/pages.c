/* The member `pages` of an action. */
#include "agents/http/settings.h"
#include "agents/sdk/documents/pointer.h"
#include "agents/sdk/settings/fields.h"
#include "agents/sdk/settings/settings.h"

/* next: "link" or a pointer; cursor: a pointer, with param; page, offset: a parameter's name. */
static enum bt_code read_kind(struct arena *a, struct doc map, struct http_pages *ret,
                              struct bt_error *err)
{
    const struct {
        const char *member;
        enum http_pages_kind kind;
        const char **to;
    } kinds[] = {{"next", HTTP_PAGES_NEXT, &ret->from},
                 {"cursor", HTTP_PAGES_CURSOR, &ret->from},
                 {"page", HTTP_PAGES_NUMBER, &ret->param},
                 {"offset", HTTP_PAGES_OFFSET, &ret->param}};
    enum bt_code code = field_text(a, map, "param", false, &ret->param, err);

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && code == BT_OK; i++) {
        if (doc_get(map, str_from(kinds[i].member)).ptr == NULL) {
            continue;
        }
        if (ret->kind != HTTP_PAGES_NONE) {
            return err_set(err, BT_INVALID, "give one of next, cursor, page, offset");
        }
        ret->kind = kinds[i].kind;
        code = field_text(a, map, kinds[i].member, true, kinds[i].to, err);
    }
    if (code == BT_OK && ret->kind == HTTP_PAGES_NONE) {
        code = err_set(err, BT_INVALID,
                       "give one of next (\"link\" or a JSON pointer), cursor, page, offset");
    }
    if (code == BT_OK && ret->kind == HTTP_PAGES_NEXT && strcmp(ret->from, "link") == 0) {
        ret->kind = HTTP_PAGES_LINK;
    }
    if (code == BT_OK && ret->kind == HTTP_PAGES_CURSOR && ret->param == NULL) {
        code = err_set(err, BT_INVALID, "param: is missing; the query parameter of the cursor");
    }
    if (code == BT_OK && (ret->kind == HTTP_PAGES_NEXT || ret->kind == HTTP_PAGES_CURSOR)) {
        code = pointer_check(ret->from, err);
    }
    return code;
}

enum bt_code http_pages_read(struct arena *a, struct doc map, struct http_pages *ret,
                             struct bt_error *err)
{
    static const char *const known[] = {"items", "next",   "cursor", "param",
                                        "page",  "offset", "first",  "max"};
    struct doc items = doc_get(map, STR_LIT("items"));
    uint64_t max = HTTP_PAGES_MAX;
    enum bt_code code;

    if (map.ptr == NULL) {
        return BT_OK;
    }
    code = settings_check_names(map, known, sizeof known / sizeof known[0], err);
    if (code == BT_OK) {
        code = read_kind(a, map, ret, err);
    }
    ret->items = "";
    if (code == BT_OK && items.ptr != NULL) {
        ret->items = doc_head(items).kind == DOC_STR ? arena_str(a, doc_string(items)).ptr : "?";
        code = ret->items == NULL ? err_set(err, BT_NOMEM, "out of memory for the settings")
                                  : pointer_check(ret->items, err);
        code = code == BT_OK ? code : err_wrap(err, "items");
    }
    ret->first = ret->kind == HTTP_PAGES_NUMBER ? 1 : 0;
    if (code == BT_OK) {
        code = field_number(map, "first", 0, UINT32_MAX, &ret->first, err);
    }
    if (code == BT_OK) {
        code = field_number(map, "max", 0, HTTP_PAGES_MAX, &max, err);
    }
    if (code == BT_OK && max == 0) {
        code = err_set(err, BT_INVALID, "max: expected a number from 1 to %d", HTTP_PAGES_MAX);
    }
    ret->max = (uint32_t)max;
    return code == BT_OK ? BT_OK : err_wrap(err, "pages");
}
