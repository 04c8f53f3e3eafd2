#include "agents/sdk/settings/template.h"

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

bool template_next(const char **at, struct template_piece *ret, enum bt_code *ret_code,
                   struct bt_error *err)
{
    const char *p = *at;
    size_t n = 0;

    *ret_code = BT_OK;
    if (*p == 0) {
        return false;
    }
    if (p[0] != '{') {
        n = strcspn(p, "{");
        *ret = (struct template_piece){.text = {p, n}};
        *at = p + n;
        return true;
    }
    if (p[1] == '{') {
        *ret = (struct template_piece){.text = {p, 1}};
        *at = p + 2;
        return true;
    }
    while (is_name_byte(p[1 + n])) {
        n++;
    }
    if (n == 0 || p[1 + n] != '}') {
        *ret_code = err_set(err, BT_INVALID,
                            "'%.80s': expected {name} for a parameter, or {{ for a brace", p);
        return false;
    }
    *ret = (struct template_piece){.text = {p + 1, n}, .is_name = true};
    *at = p + n + 2;
    return true;
}

/* A parameter as an argument: texts without quotes; numbers, booleans, lists and objects as
 * JSON. */
static enum bt_code add_parameter(struct str name, struct bt_step *step, struct buf *out,
                                  struct bt_error *err)
{
    char path[128];
    const char *value;

    if (name.len >= sizeof path) {
        return err_set(err, BT_INVALID, "a parameter's name is at most %zu bytes", sizeof path - 1);
    }
    memcpy(path, name.ptr, name.len);
    path[name.len] = 0;
    value = bt_step_params_json(step, path);
    if (value == NULL || strcmp(value, "null") == 0) {
        return err_set(err, BT_INVALID, "parameters.%s: missing; the command needs it", path);
    }
    if (value[0] == '"') {
        value = bt_step_param_string(step, path, NULL);
    }
    if (value == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for an argument");
    }
    buf_add_cstr(out, value);
    return BT_OK;
}

enum bt_code template_fill(const char *text, struct bt_step *step, struct buf *out,
                           struct bt_error *err)
{
    struct template_piece piece;
    enum bt_code code;

    while (template_next(&text, &piece, &code, err)) {
        if (piece.is_name) {
            code = add_parameter(piece.text, step, out, err);
        } else {
            buf_add_str(out, piece.text);
        }
        if (code != BT_OK) {
            return code;
        }
    }
    return code;
}
