#include "agents/exec/run.h"

#include <stdio.h>
#include <stdlib.h>

#include "agents/exec/output.h"
#include "agents/exec/state_file.h"
#include "agents/sdk/child/child.h"
#include "agents/sdk/input.h"
#include "agents/sdk/settings/fields.h"
#include "agents/sdk/settings/template.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

enum {
    ENV_OURS = 16,
    VALUE_MAX = 8 * 1024 * 1024,
    LOG_MAX = 64 * 1024, /* of one run's stderr in the agent's log */
    DETAILS_MAX = 4 * CHILD_TAIL_MAX
};

static const char default_path[] = "/usr/local/bin:/usr/bin:/bin";

struct command_run {
    struct bt_step *step;
    const struct exec_command *cmd;
    struct arena texts;
    char **argv;
    char *envp[ENV_OURS + 2 * FIELD_ENV_MAX + 1];
    size_t env_n;
    size_t logged;
    bool own_deadline;            /* the command's timeoutMs comes before the step's deadline */
    char state_path[PATH_MAX];    /* "" = no file for the plan's state */
    struct bt_artifact *artifact; /* takes stdout; NULL = the reply has it */
    uint64_t printed;             /* bytes in it */
    struct bt_error refused;      /* why it took no more */
};

/* ---- the environment: a fixed list, never the agent's own environment ---- */

static const char *env_value(const struct command_run *j, const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < j->env_n; i++) {
        if (strncmp(j->envp[i], name, n) == 0 && j->envp[i][n] == '=') {
            return j->envp[i] + n + 1;
        }
    }
    return NULL;
}

/* The first value of a name is used; an empty value is left out. */
static enum bt_code put_env(struct command_run *j, const char *name, const char *value,
                            struct bt_error *err)
{
    size_t n = value == NULL ? 0 : strlen(value);
    size_t name_n = strlen(name);
    char *pair;

    if (n == 0 || env_value(j, name) != NULL) {
        return BT_OK;
    }
    pair = arena_alloc(&j->texts, name_n + 1 + n + 1);
    if (pair == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the environment");
    }
    memcpy(pair, name, name_n);
    pair[name_n] = '=';
    memcpy(pair + name_n + 1, value, n + 1);
    j->envp[j->env_n++] = pair;
    return BT_OK;
}

static enum bt_code copy_settings_env(struct command_run *j, struct bt_error *err)
{
    for (size_t i = 0; j->cmd->env != NULL && j->cmd->env[i] != NULL; i++) {
        struct str kept = arena_str(&j->texts, str_from(j->cmd->env[i]));
        union {
            const char *from;
            char *to;
        } mutable = {.from = kept.ptr}; /* bytes of the arena; posix_spawn takes char * */
        if (kept.ptr == NULL) {
            return err_set(err, BT_NOMEM, "out of memory for the environment");
        }
        j->envp[j->env_n++] = mutable.to;
    }
    return BT_OK;
}

static const char *agent_env(const char *name, const char *fallback)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != 0 ? value : fallback;
}

static enum bt_code make_env(struct command_run *j, struct bt_error *err)
{
    char attempt[16];
    const struct {
        const char *name;
        const char *value;
    } all[] = {
        {"PATH", agent_env("PATH", default_path)},
        {"HOME", agent_env("HOME", "/")},
        {"LANG", agent_env("LANG", "C.UTF-8")},
        {"TRACEPARENT", bt_step_traceparent(j->step)},
        {"BATON_PLAN_ID", bt_step_plan_id(j->step)},
        {"BATON_STEP_ID", bt_step_id(j->step)},
        {"BATON_ATTEMPT", attempt},
        {"BATON_KEY", bt_step_key(j->step)},
        {STATE_FILE_ENV, j->state_path},
        /* The supervisor finds processes that a killed agent left behind by these variables. They
         * lead to no secret; BATON_STATE would. */
        {"BATON_INSTANCE_ID", agent_env("BATON_INSTANCE_ID", "")},
        {"BATON_SPAWNED", agent_env("BATON_SPAWNED", "")},
    };
    enum bt_code code = copy_settings_env(j, err);

    for (size_t i = 0; j->cmd->pass_env != NULL && j->cmd->pass_env[i] != NULL && code == BT_OK;
         i++) {
        code = put_env(j, j->cmd->pass_env[i], getenv(j->cmd->pass_env[i]), err);
    }
    _Static_assert(sizeof all / sizeof all[0] <= ENV_OURS, "room for all");
    (void)snprintf(attempt, sizeof attempt, "%u", bt_step_attempt(j->step));
    for (size_t i = 0; i < sizeof all / sizeof all[0] && code == BT_OK; i++) {
        code = put_env(j, all[i].name, all[i].value, err);
    }
    return code;
}

/* ---- arguments and input ---- */

static enum bt_code make_argv(struct command_run *j, struct bt_error *err)
{
    struct buf arg;
    size_t n = 0;
    enum bt_code code = BT_OK;

    while (j->cmd->argv[n] != NULL) {
        n++;
    }
    j->argv = arena_alloc(&j->texts, (n + 1) * sizeof *j->argv);
    if (j->argv == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the arguments");
    }
    buf_init(&arg, VALUE_MAX);
    for (size_t i = 0; i < n && code == BT_OK; i++) {
        buf_clear(&arg);
        code = template_fill(j->cmd->argv[i], j->step, &arg, err);
        if (code == BT_OK) {
            code = buf_check(&arg, err);
        }
        if (code == BT_OK) {
            j->argv[i] = arena_alloc(&j->texts, arg.len + 1);
            code = j->argv[i] == NULL ? err_set(err, BT_NOMEM, "out of memory for an argument")
                                      : BT_OK;
        }
        if (code == BT_OK && arg.len > 0) {
            memcpy(j->argv[i], arg.at, arg.len);
        }
    }
    buf_done(&arg);
    return code;
}

/* The input as text: the parameter `input`, else the result of the step before, else the task. */
static const char *make_input(struct bt_step *step, enum exec_input how)
{
    const char *text;

    if (how == EXEC_INPUT_NONE) {
        return NULL;
    }
    if (how == EXEC_INPUT_JSON) {
        return bt_step_request_json(step);
    }
    text = input_text(step, "input");
    return text != NULL ? text : bt_step_task(step);
}

/* ---- while it runs ---- */

static bool is_cancelled(void *self)
{
    const struct command_run *j = self;
    return bt_step_cancelled(j->step);
}

/* "::progress 40 text": a report instead of a line. The number may be missing. */
static bool is_progress(const struct command_run *j, const char *line)
{
    static const char prefix[] = "::progress";
    const char *text = line + sizeof prefix - 1;
    double percent = -1;

    if (strncmp(line, prefix, sizeof prefix - 1) != 0 || (*text != ' ' && *text != 0)) {
        return false;
    }
    text += strspn(text, " ");
    if (*text >= '0' && *text <= '9') {
        char *end;
        const double given = strtod(text, &end);
        const char *after = *end == '%' ? end + 1 : end;
        if ((*after == ' ' || *after == 0) && given <= 100) {
            percent = given;
            text = after + strspn(after, " ");
        }
    }
    bt_step_progress(j->step, percent, *text != 0 ? text : NULL);
    return true;
}

static bool take_line(const char *line, void *self)
{
    struct command_run *j = self;
    size_t n = strlen(line) + 1;

    if (is_progress(j, line)) {
        return false;
    }
    if (j->logged <= LOG_MAX && j->logged + n > LOG_MAX) {
        log_warn("exec.stderr",
                 "command=%s plan=%s step=%s more than %d bytes: the rest is left out", j->cmd->id,
                 bt_step_plan_id(j->step), bt_step_id(j->step), LOG_MAX);
    } else if (j->logged <= LOG_MAX) {
        log_info("exec.stderr", "command=%s plan=%s step=%s line=%s", j->cmd->id,
                 bt_step_plan_id(j->step), bt_step_id(j->step), line);
    }
    j->logged += n;
    return true;
}

/* ---- stdout as an artifact ---- */

static enum bt_code open_artifact(struct command_run *j, struct bt_error *err)
{
    const bool json = j->cmd->output == EXEC_OUTPUT_JSON;

    if (!j->cmd->takes_artifact || !bt_step_param_bool(j->step, "artifact", false)) {
        return BT_OK;
    }
    return bt_artifact_create(j->step, json ? "stdout.json" : "stdout.txt",
                              json ? "application/json" : "text/plain", &j->artifact, err);
}

static bool take_output(const void *bytes, size_t len, void *self)
{
    struct command_run *j = self;

    j->printed += len;
    return bt_artifact_write(j->artifact, bytes, len, &j->refused) == BT_OK;
}

static void reply_artifact(struct command_run *j)
{
    struct bt_artifact *made = j->artifact;
    struct bt_error err;
    char data[64];

    j->artifact = NULL;
    if (bt_artifact_commit(made, &err) != BT_OK) {
        bt_step_fail_error(j->step, &err);
        return;
    }
    (void)snprintf(data, sizeof data, "{\"bytes\":%llu}", (unsigned long long)j->printed);
    bt_step_reply_json(j->step, data, strlen(data));
    bt_step_reply_text(j->step, "The output of %s (%llu bytes) is in a file.", j->cmd->id,
                       (unsigned long long)j->printed);
}

static msec deadline_of(struct command_run *j)
{
    msec now = clock_mono_ms();
    msec deadline = msec_add(now, bt_step_time_left_ms(j->step));
    msec own_deadline = j->cmd->timeout_ms == 0 ? MSEC_NEVER : msec_add(now, j->cmd->timeout_ms);

    j->own_deadline = own_deadline < deadline;
    return j->own_deadline ? own_deadline : deadline;
}

/* ---- the reply ---- */

/* Facts about the run, beside the result or the failure: {exitCode | signal, durationMs, stderr,
 * stderrTruncated}. */
static void put_details(struct bt_step *step, const struct child_result *r)
{
    const bool exited = r->end == CHILD_EXITED;
    const bool ended = exited || r->end == CHILD_SIGNALLED;
    struct buf doc;
    struct buf tail;
    struct buf json;

    buf_init(&doc, DETAILS_MAX);
    buf_init(&tail, DETAILS_MAX);
    buf_init(&json, (size_t)DETAILS_MAX * 2);
    (void)buf_add_repaired(&tail, (struct str){r->tail, r->tail_len});
    doc_put_map(&doc, 1u + ended + (r->tail_len > 0) + r->tail_cut);
    if (ended) {
        doc_put_cstr(&doc, exited ? "exitCode" : "signal");
        doc_put_u64(&doc, (uint64_t)(exited ? r->exit_code : r->signal));
    }
    doc_put_cstr(&doc, "durationMs");
    doc_put_u64(&doc, r->duration_ms);
    if (r->tail_len > 0) {
        doc_put_cstr(&doc, "stderr");
        doc_put_str(&doc, buf_str(&tail));
    }
    if (r->tail_cut) {
        doc_put_cstr(&doc, "stderrTruncated");
        doc_put_bool(&doc, true);
    }
    if (tail.bad == BT_OK && doc.bad == BT_OK &&
        doc_to_json(doc_from_buf(&doc), false, &json, NULL) == BT_OK) {
        bt_step_details_json(step, (const char *)json.at, json.len);
    }
    buf_done(&doc);
    buf_done(&tail);
    buf_done(&json);
}

static void fail_timeout(const struct command_run *j, const struct child_result *r)
{
    const char *held =
        r->exited ? " (it had ended, but something it started held its output open)" : "";

    if (j->own_deadline) {
        bt_step_fail(j->step, "TIMEOUT", true,
                     "%s: not done in time, and ended%s: no result after %g s (timeoutMs: %llu); "
                     "set timeoutMs of the command",
                     j->cmd->id, held, (double)j->cmd->timeout_ms / 1000,
                     (unsigned long long)j->cmd->timeout_ms);
    } else {
        bt_step_fail(j->step, "TIMEOUT", true,
                     "%s: not done in time, and ended%s: no result after %.1f s, the step's "
                     "deadline; set timeoutMs of the step, or stepTimeoutMs of the policy",
                     j->cmd->id, held, (double)r->duration_ms / 1000);
    }
}

static void answer_exited(struct command_run *j, const struct child_result *r)
{
    if (r->exit_code != 0) {
        bt_step_fail(j->step, err_class_name((enum err_class)j->cmd->classes[r->exit_code]),
                     j->cmd->retries[r->exit_code], "%s: exit code %d%s%s", j->cmd->id,
                     r->exit_code, r->last_line[0] != 0 ? ": " : "", r->last_line);
        return;
    }
    if (!state_file_reply(j->step, j->cmd->id, j->state_path)) {
        return;
    }
    if (j->artifact != NULL) {
        reply_artifact(j);
    } else {
        output_reply(j->step, j->cmd->id, j->cmd->output, buf_str(&r->out));
    }
}

static void answer(struct command_run *j, const struct child_result *r)
{
    switch (r->end) {
    case CHILD_EXITED:
        answer_exited(j, r);
        break;
    case CHILD_REFUSED:
        bt_step_fail_error(j->step, &j->refused);
        break;
    case CHILD_SIGNALLED:
        bt_step_fail(j->step, "UNKNOWN", false, "%s: killed by signal %d%s%s", j->cmd->id,
                     r->signal, r->last_line[0] != 0 ? ": " : "", r->last_line);
        break;
    case CHILD_STOPPED:
        if (bt_step_time_left_ms(j->step) > 0) {
            bt_step_fail(j->step, "CANCELLED", false, "%s: cancelled, and ended%s", j->cmd->id,
                         r->exited ? " (it had ended, but something it started held its output "
                                     "open)"
                                   : "");
            break;
        }
        fail_timeout(j, r);
        break;
    case CHILD_TIMEOUT:
        fail_timeout(j, r);
        break;
    case CHILD_TOO_LARGE:
        bt_step_fail(j->step, "VALIDATION_ERROR", false,
                     "%s: result_too_large: its output is over %d bytes; use artifact: true, or "
                     "print less",
                     j->cmd->id, LIMIT_RESULT_BYTES);
        break;
    }
    put_details(j->step, r);
}

static void fail_start(struct bt_step *step, const struct bt_error *err)
{
    if (err->code == BT_NOT_FOUND) {
        bt_step_fail(step, "TOOL_NOT_FOUND", false, "%s", err->msg);
    } else {
        bt_step_fail_error(step, err);
    }
}

static enum bt_code run_command(struct command_run *j, struct child_result *ret,
                                struct bt_error *err)
{
    struct child_spec spec = {.cwd = j->cmd->cwd,
                              .output_max = LIMIT_RESULT_BYTES,
                              .deadline = deadline_of(j),
                              .grace_ms = CHILD_GRACE_MS,
                              .stop = is_cancelled,
                              .line = take_line,
                              .self = j};
    struct buf path;
    enum bt_code code = make_argv(j, err);

    buf_init(&path, VALUE_MAX);
    if (code == BT_OK) {
        code = open_artifact(j, err);
    }
    spec.output = j->artifact != NULL ? take_output : NULL;
    if (code == BT_OK) {
        (void)state_file_make(j->state_path);
        code = make_env(j, err);
    }
    if (code == BT_OK) {
        const char *list = env_value(j, "PATH");
        code = child_find(j->argv[0], list != NULL ? list : default_path, &path, err);
    }
    if (code == BT_OK) {
        spec.path = buf_cstr(&path);
        spec.argv = j->argv;
        spec.envp = j->envp;
        spec.input = make_input(j->step, j->cmd->input);
        spec.input_len = spec.input == NULL ? 0 : strlen(spec.input);
        code = child_run(&spec, ret, err);
    }
    buf_done(&path);
    return code;
}

void exec_run(struct bt_step *step, void *self)
{
    struct command_run j = {.step = step, .cmd = exec_settings_find(self, bt_step_skill(step))};
    struct child_result result = {0};
    struct bt_error err;

    if (j.cmd == NULL) {
        bt_step_fail(step, "TOOL_NOT_FOUND", false, "there is no command '%s'",
                     bt_step_skill(step));
        return;
    }
    if (bt_step_cancelled(step)) {
        /* no reply after a cancel or the deadline: the SDK fails the step with the class for it */
        return;
    }
    j.texts.max = (size_t)VALUE_MAX * 4;
    if (run_command(&j, &result, &err) == BT_OK) {
        answer(&j, &result);
    } else {
        fail_start(step, &err);
    }
    bt_artifact_abort(j.artifact);
    state_file_remove(j.state_path);
    child_result_done(&result);
    arena_done(&j.texts);
}
