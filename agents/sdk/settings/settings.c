#include "agents/sdk/settings/settings.h"

#include "protocol/base/buf.h"
#include "protocol/base/suggest.h"
#include "protocol/base/utf8.h"

enum { NAME_SHOWN = 80, TEXT_BYTES = 2048 };

static enum bt_code reject(struct str name, const char *const *known, size_t n,
                           struct bt_error *err)
{
    struct suggest near = suggest_start(name);
    struct buf text;
    enum bt_code code;

    buf_init(&text, TEXT_BYTES);
    for (size_t i = 0; i < n; i++) {
        suggest_offer(&near, str_from(known[i]));
        buf_printf(&text, "%s%s", i > 0 ? ", " : "", known[i]);
    }
    code =
        near.best.ptr != NULL
            ? err_set(err, BT_INVALID, "unknown member '%.*s'; did you mean '%.*s'?",
                      (int)utf8_cut(name.ptr, name.len, NAME_SHOWN), name.ptr, STR_ARG(near.best))
            : err_set(err, BT_INVALID, "unknown member '%.*s'; known: %s",
                      (int)utf8_cut(name.ptr, name.len, NAME_SHOWN), name.ptr, buf_cstr(&text));
    buf_done(&text);
    return code;
}

enum bt_code settings_check_names(struct doc map, const char *const *known, size_t n,
                                  struct bt_error *err)
{
    struct doc_cursor c = doc_cursor(map);
    struct doc_head head;

    if (!doc_next(&c, &head) || head.kind != DOC_MAP) {
        return err_set(err, BT_INVALID, "expected an object");
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str key = doc_string(doc_skip(&c));
        size_t k = 0;
        (void)doc_skip(&c);
        while (k < n && !str_is(key, known[k])) {
            k++;
        }
        if (k == n) {
            return reject(key.ptr == NULL ? STR_LIT("") : key, known, n, err);
        }
    }
    return BT_OK;
}

enum bt_code settings_parse(const char *json, size_t max, settings_reader read, void *self,
                            struct bt_error *err)
{
    struct buf bytes;
    enum bt_code code;

    buf_init(&bytes, json_doc_capacity(max));
    code = json_to_doc(str_from(json), NULL, &bytes, err);
    code = code == BT_OK ? read(self, doc_from_buf(&bytes), err) : code;
    buf_done(&bytes);
    return code;
}
