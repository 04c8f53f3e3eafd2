#include "agents/files/files.h"

#include <stdlib.h>

#include "agents/sdk/settings/settings.h"

enum { SETTINGS_BYTES = 64 * 1024 };

/* ---- settings ---- */

static enum bt_code check_names(struct doc map, struct bt_error *err)
{
    static const char *const known[] = {"roots", "writeRoots", "maxBytes"};

    return settings_check_names(map, known, sizeof known / sizeof known[0], err);
}

static enum bt_code read_settings(struct files *f, struct doc map, struct bt_error *err)
{
    struct doc max = {NULL, 0};
    enum bt_code code = check_names(map, err);

    if (code == BT_OK) {
        max = doc_get(map, STR_LIT("maxBytes"));
        f->max_bytes = FILES_READ_DEFAULT;
    }
    if (code == BT_OK && max.ptr != NULL) {
        struct doc_head head = doc_head(max);
        if (head.kind != DOC_UINT || head.u < 1 || head.u > FILES_READ_MAX) {
            return err_set(err, BT_INVALID, "maxBytes: expected 1 to %d", FILES_READ_MAX);
        }
        f->max_bytes = (size_t)head.u;
    }
    if (code == BT_OK) {
        code = confine_add_all(&f->read, doc_get(map, STR_LIT("roots")), "roots", err);
    }
    if (code == BT_OK) {
        code = confine_add_all(&f->write, doc_get(map, STR_LIT("writeRoots")), "writeRoots", err);
    }
    if (code == BT_OK && f->read.n + f->write.n == 0) {
        return err_set(err, BT_INVALID,
                       "roots: say which directories may be read, such as [\"/var/log\"]");
    }
    return code;
}

enum bt_code files_new(const char *settings_json, struct files **ret, struct bt_error *err)
{
    struct files *f = calloc(1, sizeof *f);
    struct buf bytes;
    enum bt_code code;

    if (f == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the settings");
    }
    buf_init(&bytes, json_doc_capacity(SETTINGS_BYTES));
    code = json_to_doc(str_from(settings_json), NULL, &bytes, err);
    if (code == BT_OK) {
        code = read_settings(f, doc_from_buf(&bytes), err);
    }
    buf_done(&bytes);
    if (code != BT_OK) {
        files_free(f);
        return code;
    }
    *ret = f;
    return BT_OK;
}

void files_free(struct files *f)
{
    if (f != NULL) {
        confine_done(&f->read);
        confine_done(&f->write);
        free(f);
    }
}

/* ---- shared by the handlers ---- */

struct str files_param(const struct bt_step *step, const char *name)
{
    return step->req.parameters.ptr == NULL
               ? (struct str){NULL, 0}
               : doc_string(doc_get(step->req.parameters, str_from(name)));
}

uint32_t files_param_count(struct bt_step *step, const char *name, uint32_t fallback, uint32_t max)
{
    double v = bt_step_param_number(step, name, (double)fallback);

    return v < 0.0 ? 0 : v > (double)max ? max : (uint32_t)v;
}

void files_put_text(struct buf *out, const char *key, struct str value)
{
    doc_put_cstr(out, key);
    doc_put_str(out, value);
}

void files_put_count(struct buf *out, const char *key, uint64_t value)
{
    doc_put_cstr(out, key);
    doc_put_u64(out, value);
}

void files_put_bool(struct buf *out, const char *key, bool value)
{
    doc_put_cstr(out, key);
    doc_put_bool(out, value);
}

void files_reply(struct bt_step *step, const struct buf *data, const struct buf *text)
{
    struct buf json;
    struct bt_error err;
    enum bt_code code = data == NULL ? BT_OK : buf_check(data, &err);

    buf_init(&json, LIMIT_STEP_BYTES * 2);
    if (code == BT_OK && text != NULL) {
        code = buf_check(text, &err);
    }
    if (code == BT_OK && data != NULL) {
        code = doc_to_json(doc_from_buf(data), false, &json, &err);
    }
    if (code != BT_OK) {
        (void)err_wrap(&err, "the result (at most 3 MiB)");
        bt_step_fail_error(step, &err);
    } else {
        if (data != NULL) {
            bt_step_reply_json(step, (const char *)json.at, json.len);
        }
        if (text != NULL) {
            bt_step_reply_bytes(step, text->len > 0 ? (const char *)text->at : "", text->len);
        }
    }
    buf_done(&json);
}
