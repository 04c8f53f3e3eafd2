#include "agents/exec/settings.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "agents/sdk/settings/fields.h"
#include "agents/sdk/settings/settings.h"
#include "agents/sdk/settings/template.h"
#include "protocol/base/utf8.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

enum { SETTINGS_BYTES = 1024 * 1024, TIMEOUT_MAX_MS = 24 * 60 * 60 * 1000 };

static enum bt_code no_memory(struct bt_error *err)
{
    return err_set(err, BT_NOMEM, "out of memory for the settings");
}

/* ---- exit codes ---- */

enum { EXIT_TEMPORARY = 75 /* EX_TEMPFAIL of sysexits.h */ };
enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 }; /* of the shell */

static enum bt_code read_retry_on(struct doc map, struct exec_command *cmd, struct bt_error *err)
{
    struct doc list = doc_get(map, STR_LIT("retryOn"));

    cmd->retries[EXIT_TEMPORARY] = list.ptr == NULL;
    if (list.ptr != NULL && doc_head(list).kind != DOC_ARRAY) {
        return err_set(err, BT_INVALID, "retryOn: expected a list of exit codes, as in [1, 75]");
    }
    for (uint32_t i = 0; list.ptr != NULL && i < doc_head(list).n; i++) {
        const struct doc_head h = doc_head(doc_at(list, i));
        if (h.kind != DOC_UINT || h.u < 1 || h.u >= EXEC_CODES) {
            return err_set(err, BT_INVALID, "retryOn[%u]: expected an exit code from 1 to 255", i);
        }
        cmd->retries[h.u] = true;
    }
    return BT_OK;
}

/* "3" -> 3; 0 when it is no exit code of a failure. */
static uint32_t exit_code_of(struct str text)
{
    uint32_t code = 0;

    for (size_t i = 0; i < text.len && code < EXEC_CODES; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return 0;
        }
        code = code * 10 + (uint32_t)(text.ptr[i] - '0');
    }
    return code < EXEC_CODES ? code : 0;
}

static enum bt_code read_classes(struct doc map, struct exec_command *cmd, struct bt_error *err)
{
    struct doc given = doc_get(map, STR_LIT("errorClasses"));
    struct doc_cursor c = doc_cursor(given);
    struct doc_head h = {.n = 0};

    memset(cmd->classes, CLASS_UNKNOWN, sizeof cmd->classes);
    cmd->classes[EXIT_NOT_EXECUTABLE] = CLASS_PERMISSION_DENIED;
    cmd->classes[EXIT_NOT_FOUND] = CLASS_TOOL_NOT_FOUND;
    if (given.ptr != NULL && (!doc_next(&c, &h) || h.kind != DOC_MAP)) {
        return err_set(err, BT_INVALID,
                       "errorClasses: expected an object, as in {\"3\": \"RESOURCE_NOT_FOUND\"}");
    }
    for (uint32_t i = 0; i < h.n; i++) {
        const struct str code = doc_string(doc_skip(&c));
        const struct str name = doc_string(doc_skip(&c));
        const enum err_class cls =
            name.len > 0 ? err_class_from_name(name.ptr, name.len) : CLASS_NONE;
        if (exit_code_of(code) == 0) {
            return err_set(err, BT_INVALID, "errorClasses: \"%.*s\" is no exit code from 1 to 255",
                           (int)utf8_cut(code.ptr, code.len, 40), code.ptr);
        }
        if (cls == CLASS_NONE || !str_is(name, err_class_name(cls))) {
            return err_set(err, BT_INVALID,
                           "errorClasses.%.*s: expected a class of the protocol, such as "
                           "RESOURCE_NOT_FOUND, SERVICE_UNAVAILABLE or VALIDATION_ERROR",
                           STR_ARG(code));
        }
        cmd->classes[exit_code_of(code)] = (uint8_t)cls;
    }
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

static const char artifact_property[] =
    "\"artifact\":{\"type\":\"boolean\",\"description\":\"true: what the program prints, of any "
    "size, becomes a file of the plan that later steps open by {{results.STEP.artifact}}.\"}";
static const char input_property[] =
    "\"input\":{\"description\":\"its standard input; missing = the dependency's result, else the "
    "task\"}";

/* The parameters that it takes besides its arguments. */
static void add_own_properties(const struct exec_command *cmd, struct buf *names, struct buf *list)
{
    if (cmd->input == EXEC_INPUT_TEXT && strstr(buf_cstr(names), "\"input\"") == NULL) {
        buf_printf(list, "%s%s", list->len > 0 ? "," : "", input_property);
    }
    if (cmd->takes_artifact) {
        buf_printf(list, "%s%s", list->len > 0 ? "," : "", artifact_property);
    }
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
        /* A program without arguments to fill in may read any parameter of the step that is its
         * input. */
        const bool any = list.len == 0 && cmd->input == EXEC_INPUT_JSON;
        const char *others = any ? ",\"additionalProperties\":true" : "";
        add_own_properties(cmd, &names, &list);
        buf_printf(&all, "{\"type\":\"object\",\"properties\":{%s},\"required\":[%s]%s}",
                   buf_cstr(&list), buf_cstr(&names), others);
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
    cmd->takes_artifact = true;
    for (size_t i = 0; code == BT_OK && cmd->argv[i] != NULL; i++) {
        const char *at = cmd->argv[i];
        while (code == BT_OK && template_next(&at, &piece, &code, err)) {
            const struct str first = {piece.text.ptr, strcspn(piece.text.ptr, ".}")};
            cmd->takes_artifact &= !(piece.is_name && str_is(first, "artifact"));
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
    static const char *const outputs[] = {[EXEC_OUTPUT_AUTO] = "auto",
                                          [EXEC_OUTPUT_JSON] = "json",
                                          [EXEC_OUTPUT_TEXT] = "text",
                                          [EXEC_OUTPUT_REPLY] = "reply"};
    unsigned input = EXEC_INPUT_JSON;
    unsigned output = EXEC_OUTPUT_AUTO;
    enum bt_code code = field_choice(map, "stdin", inputs, EXEC_INPUT_COUNT, &input, err);

    if (code == BT_OK) {
        code = field_choice(map, "output", outputs, EXEC_OUTPUT_COUNT, &output, err);
    }
    cmd->input = (enum exec_input)input;
    cmd->output = (enum exec_output)output;
    cmd->takes_artifact &= cmd->output != EXEC_OUTPUT_REPLY; /* the reply is not the result */
    if (code == BT_OK) {
        code = field_number(map, "timeoutMs", 1, TIMEOUT_MAX_MS, &cmd->timeout_ms, err);
    }
    if (code == BT_OK) {
        code = read_retry_on(map, cmd, err);
    }
    return code == BT_OK ? read_classes(map, cmd, err) : code;
}

static enum bt_code read_command(struct arena *a, struct doc map, struct exec_command *cmd,
                                 struct bt_error *err)
{
    static const char *const known[] = {"id",          "argv",    "name",     "description",
                                        "tags",        "stdin",   "examples", "effects",
                                        "inputSchema", "cwd",     "output",   "timeoutMs",
                                        "env",         "passEnv", "retryOn",  "errorClasses"};
    const struct {
        const char *member;
        bool needed;
        const char **to;
    } texts[] = {{"id", true, &cmd->id},
                 {"description", true, &cmd->description},
                 {"name", false, &cmd->name},
                 {"effects", false, &cmd->effects},
                 {"cwd", false, &cmd->cwd}};
    enum bt_code code = settings_check_names(map, known, sizeof known / sizeof known[0], err);

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
        code = read_modes(map, cmd, err);
    }
    if (code == BT_OK) {
        code = read_schema(a, map, cmd, err);
    }
    if (code == BT_OK) {
        code = field_env(a, map, &cmd->env, err);
    }
    if (code == BT_OK) {
        code = field_list(a, map, "passEnv", FIELD_ENV_MAX, &cmd->pass_env, err);
    }
    return code;
}

static enum bt_code read_all(void *self, struct doc map, struct bt_error *err)
{
    struct exec_settings *s = self;
    static const char *const known[] = {"agentId", "commands"};
    struct doc list = doc_get(map, STR_LIT("commands"));
    enum bt_code code = settings_check_names(map, known, 2, err);

    if (code == BT_OK) {
        code = field_text(&s->arena, map, "agentId", false, &s->agent_id, err);
    }
    if (code == BT_OK && (list.ptr == NULL || doc_head(list).kind != DOC_ARRAY ||
                          doc_head(list).n < 1 || doc_head(list).n > LIMIT_SKILLS)) {
        code = err_set(err, BT_INVALID, "commands: %s a list of 1 to %d commands",
                       list.ptr == NULL ? "is missing; give" : "expected", LIMIT_SKILLS);
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
    enum bt_code code;

    if (s == NULL) {
        return no_memory(err);
    }
    code = settings_parse(json, SETTINGS_BYTES, read_all, s, err);
    if (code != BT_OK) {
        exec_settings_free(s);
        return code;
    }
    *ret = s;
    return BT_OK;
}

enum bt_code exec_settings_check(const struct exec_settings *s, struct bt_error *err)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const char *cwd = s->commands[i].cwd;
        struct stat st;
        if (cwd != NULL && (stat(cwd, &st) != 0 || !S_ISDIR(st.st_mode))) {
            return err_set(err, BT_INVALID,
                           "commands[%u] (%s): cwd '%.200s': no such directory; make it, or "
                           "correct the settings",
                           i, s->commands[i].id, cwd);
        }
    }
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
