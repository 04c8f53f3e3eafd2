#include "agents/exec/settings.h"

#include <stdlib.h>

#include "agents/exec/fields.h"
#include "agents/exec/template.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

enum { SETTINGS_BYTES = 1024 * 1024, TIMEOUT_MAX_MS = 24 * 60 * 60 * 1000 };

static enum bt_code no_memory(struct bt_error *err)
{
    return err_set(err, BT_NOMEM, "out of memory for the settings");
}

static enum bt_code read_timeout(struct doc map, msec *ret, struct bt_error *err)
{
    struct doc d = doc_get(map, STR_LIT("timeoutMs"));
    struct doc_head h;

    if (d.ptr == NULL) {
        return BT_OK;
    }
    h = doc_head(d);
    if (h.kind != DOC_UINT || h.u < 1 || h.u > TIMEOUT_MAX_MS) {
        return err_set(err, BT_INVALID, "timeoutMs: expected a number from 1 to %d",
                       TIMEOUT_MAX_MS);
    }
    *ret = h.u;
    return BT_OK;
}

/* ---- schemas ---- */

/* Adds each name that the arguments use as a required scalar property; of a dotted name only the
 * first part. */
static enum bt_code add_property(struct str name, struct buf *names, struct buf *list)
{
    const char *dot = memchr(name.ptr, '.', name.len);
    bool nested = dot != NULL;
    struct buf quoted;
    bool seen;

    name.len = nested ? (size_t)(dot - name.ptr) : name.len;
    buf_init(&quoted, 256);
    buf_printf(&quoted, "\"%.*s\"", STR_ARG(name));
    seen = names->len > 0 && strstr(buf_cstr(names), buf_cstr(&quoted)) != NULL;
    if (!seen && name.len > 0) {
        buf_printf(names, "%s%s", names->len > 0 ? "," : "", buf_cstr(&quoted));
        buf_printf(list, "%s%s:%s", list->len > 0 ? "," : "", buf_cstr(&quoted),
                   nested ? "{}" : "{\"type\":[\"string\",\"number\",\"boolean\"]}");
    }
    buf_done(&quoted);
    return names->bad != BT_OK ? names->bad : list->bad;
}

static enum bt_code make_schema(struct arena *a, struct exec_command *cmd, struct bt_error *err)
{
    struct template_piece piece;
    struct buf names;
    struct buf list;
    struct buf all;
    enum bt_code code = BT_OK;

    buf_init(&names, SETTINGS_BYTES);
    buf_init(&list, SETTINGS_BYTES);
    buf_init(&all, SETTINGS_BYTES);
    for (size_t i = 0; cmd->argv[i] != NULL && code == BT_OK; i++) {
        const char *at = cmd->argv[i];
        while (code == BT_OK && template_next(&at, &piece, &code, err)) {
            code = piece.is_name ? add_property(piece.text, &names, &list) : BT_OK;
        }
    }
    if (code == BT_OK) {
        buf_printf(&all, "{\"type\":\"object\",\"properties\":{%s},\"required\":[%s]}",
                   buf_cstr(&list), buf_cstr(&names));
        cmd->input_schema = arena_str(a, buf_str(&all)).ptr;
        code = buf_check(&all, err) != BT_OK || cmd->input_schema == NULL ? no_memory(err) : BT_OK;
    }
    buf_done(&names);
    buf_done(&list);
    buf_done(&all);
    return code;
}

static enum bt_code read_schema(struct arena *a, struct doc map, struct exec_command *cmd,
                                struct bt_error *err)
{
    struct doc d = doc_get(map, STR_LIT("inputSchema"));
    struct buf json;
    enum bt_code code;

    if (d.ptr == NULL) {
        return make_schema(a, cmd, err);
    }
    if (doc_head(d).kind != DOC_MAP) {
        return err_set(err, BT_INVALID, "inputSchema: expected an object");
    }
    buf_init(&json, SETTINGS_BYTES);
    code = doc_to_json(d, false, &json, err);
    if (code == BT_OK) {
        cmd->input_schema = arena_str(a, buf_str(&json)).ptr;
        code = cmd->input_schema == NULL ? no_memory(err) : BT_OK;
    }
    buf_done(&json);
    return code;
}

/* ---- a command ---- */

static enum bt_code read_argv(struct arena *a, struct doc map, struct exec_command *cmd,
                              struct bt_error *err)
{
    struct template_piece piece;
    enum bt_code code = field_list(a, map, "argv", EXEC_ARGS_MAX, &cmd->argv, err);

    if (code == BT_OK && (cmd->argv == NULL || cmd->argv[0] == NULL || cmd->argv[0][0] == 0)) {
        return err_set(err, BT_INVALID, "argv: expected a list: the program and its arguments");
    }
    for (size_t i = 0; code == BT_OK && cmd->argv[i] != NULL; i++) {
        const char *at = cmd->argv[i];
        while (code == BT_OK && template_next(&at, &piece, &code, err)) {
            if (i == 0 && piece.is_name) {
                code = err_set(err, BT_INVALID,
                               "the program itself is fixed: no {name} in the first element");
            }
        }
        if (code != BT_OK) {
            return err_wrap(err, "argv[%zu]", i);
        }
    }
    return code;
}

static enum bt_code read_modes(struct doc map, struct exec_command *cmd, struct bt_error *err)
{
    static const char *const inputs[] = {
        [EXEC_INPUT_JSON] = "json", [EXEC_INPUT_TEXT] = "text", [EXEC_INPUT_NONE] = "none"};
    static const char *const outputs[] = {
        [EXEC_OUTPUT_AUTO] = "auto", [EXEC_OUTPUT_JSON] = "json", [EXEC_OUTPUT_TEXT] = "text"};
    unsigned input = EXEC_INPUT_JSON;
    unsigned output = EXEC_OUTPUT_AUTO;
    enum bt_code code = field_choice(map, "stdin", inputs, EXEC_INPUT_COUNT, &input, err);

    if (code == BT_OK) {
        code = field_choice(map, "output", outputs, EXEC_OUTPUT_COUNT, &output, err);
    }
    cmd->input = (enum exec_input)input;
    cmd->output = (enum exec_output)output;
    return code == BT_OK ? read_timeout(map, &cmd->timeout_ms, err) : code;
}

static enum bt_code read_command(struct arena *a, struct doc map, struct exec_command *cmd,
                                 struct bt_error *err)
{
    static const char *const known[] = {"id",     "argv",      "name",    "description", "tags",
                                        "stdin",  "examples",  "effects", "inputSchema", "cwd",
                                        "output", "timeoutMs", "env"};
    const struct {
        const char *member;
        bool needed;
        const char **to;
    } texts[] = {{"id", true, &cmd->id},
                 {"description", true, &cmd->description},
                 {"name", false, &cmd->name},
                 {"effects", false, &cmd->effects},
                 {"cwd", false, &cmd->cwd}};
    enum bt_code code = field_check_names(map, known, sizeof known / sizeof known[0], err);

    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && code == BT_OK; i++) {
        code = field_text(a, map, texts[i].member, texts[i].needed, texts[i].to, err);
    }
    if (code == BT_OK) {
        code = field_list(a, map, "tags", EXEC_LIST_MAX, &cmd->tags, err);
    }
    if (code == BT_OK) {
        code = field_list(a, map, "examples", EXEC_LIST_MAX, &cmd->examples, err);
    }
    if (code == BT_OK) {
        code = read_argv(a, map, cmd, err);
    }
    if (code == BT_OK) {
        code = read_schema(a, map, cmd, err);
    }
    if (code == BT_OK) {
        code = field_env(a, map, &cmd->env, err);
    }
    return code == BT_OK ? read_modes(map, cmd, err) : code;
}

static enum bt_code read_all(struct exec_settings *s, struct doc map, struct bt_error *err)
{
    static const char *const known[] = {"agentId", "commands"};
    struct doc list = doc_get(map, STR_LIT("commands"));
    enum bt_code code = field_check_names(map, known, 2, err);

    if (code == BT_OK) {
        code = field_text(&s->arena, map, "agentId", false, &s->agent_id, err);
    }
    if (code == BT_OK && (list.ptr == NULL || doc_head(list).kind != DOC_ARRAY ||
                          doc_head(list).n < 1 || doc_head(list).n > LIMIT_SKILLS)) {
        code =
            err_set(err, BT_INVALID, "commands: expected a list of 1 to %d commands", LIMIT_SKILLS);
    }
    if (code == BT_OK) {
        s->commands = arena_alloc(&s->arena, doc_head(list).n * sizeof *s->commands);
        code = s->commands == NULL ? no_memory(err) : BT_OK;
    }
    for (uint32_t i = 0; code == BT_OK && i < doc_head(list).n; i++) {
        code = read_command(&s->arena, doc_at(list, i), &s->commands[i], err);
        if (code != BT_OK) {
            return err_wrap(err, "commands[%u]", i);
        }
        s->n++;
    }
    return code;
}

enum bt_code exec_settings_read(const char *json, struct exec_settings **ret, struct bt_error *err)
{
    struct exec_settings *s = calloc(1, sizeof *s);
    struct buf bytes;
    enum bt_code code;

    if (s == NULL) {
        return no_memory(err);
    }
    buf_init(&bytes, json_doc_capacity(SETTINGS_BYTES));
    code = json_to_doc(str_from(json), NULL, &bytes, err);
    if (code == BT_OK) {
        code = read_all(s, doc_from_buf(&bytes), err);
    }
    buf_done(&bytes);
    if (code != BT_OK) {
        exec_settings_free(s);
        return code;
    }
    *ret = s;
    return BT_OK;
}

void exec_settings_free(struct exec_settings *s)
{
    if (s != NULL) {
        arena_done(&s->arena);
        free(s);
    }
}

const struct exec_command *exec_settings_find(const struct exec_settings *s, const char *id)
{
    if (id[0] == 0) {
        return s->n == 1 ? &s->commands[0] : NULL;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        if (strcmp(s->commands[i].id, id) == 0) {
            return &s->commands[i];
        }
    }
    return NULL;
}
