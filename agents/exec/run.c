#include "agents/exec/run.h"

#include <stdio.h>
#include <stdlib.h>

#include "agents/exec/child.h"
#include "agents/exec/output.h"
#include "agents/exec/template.h"
#include "agents/sdk/input.h"
#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/limits.h"

enum {
    ENV_OURS = 16,
    VALUE_MAX = 8 * 1024 * 1024,
    LOG_MAX = 64 * 1024, /* of one run's stderr in the agent's log */
    EXIT_TEMPORARY = 75, /* EX_TEMPFAIL of sysexits.h */
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127
};

static const char default_path[] = "/usr/local/bin:/usr/bin:/bin";

struct command_run {
    struct bt_step *step;
    const struct exec_command *cmd;
    struct arena texts;
    char **argv;
    char *envp[ENV_OURS + EXEC_ENV_MAX + 1];
    size_t env_n;
    size_t logged;
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
        /* The supervisor finds processes that a killed agent left behind by these variables. */
        {"BATON_INSTANCE_ID", agent_env("BATON_INSTANCE_ID", "")},
        {"BATON_STATE", agent_env("BATON_STATE", "")},
        {"BATON_SPAWNED", agent_env("BATON_SPAWNED", "")},
    };
    enum bt_code code = copy_settings_env(j, err);

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

static void log_line(const char *line, void *self)
{
    struct command_run *j = self;
    size_t n = strlen(line) + 1;

    if (j->logged <= LOG_MAX && j->logged + n > LOG_MAX) {
        log_warn("exec.stderr", "command=%s step=%s more than %d bytes: the rest is left out",
                 j->cmd->id, bt_step_id(j->step), LOG_MAX);
    } else if (j->logged <= LOG_MAX) {
        log_info("exec.stderr", "command=%s step=%s line=%s", j->cmd->id, bt_step_id(j->step),
                 line);
    }
    j->logged += n;
}

static msec deadline_of(const struct command_run *j)
{
    msec now = clock_mono_ms();
    msec deadline = msec_add(now, bt_step_time_left_ms(j->step));
    msec own_deadline = j->cmd->timeout_ms == 0 ? MSEC_NEVER : msec_add(now, j->cmd->timeout_ms);

    return deadline < own_deadline ? deadline : own_deadline;
}

/* ---- the reply ---- */

static void fail_exit(const struct command_run *j, const struct child_result *r)
{
    const char *class = r->exit_code == EXIT_NOT_FOUND        ? "TOOL_NOT_FOUND"
                        : r->exit_code == EXIT_NOT_EXECUTABLE ? "PERMISSION_DENIED"
                                                              : "UNKNOWN";

    bt_step_fail(j->step, class, r->exit_code == EXIT_TEMPORARY, "%s: exit code %d%s%s", j->cmd->id,
                 r->exit_code, r->last_line[0] != 0 ? ": " : "", r->last_line);
}

static void answer(const struct command_run *j, const struct child_result *r)
{
    const char *held =
        r->exited ? " (it had ended, but something it started held its output open)" : "";

    switch (r->end) {
    case CHILD_EXITED:
        if (r->exit_code != 0) {
            fail_exit(j, r);
        } else {
            output_reply(j->step, j->cmd->id, j->cmd->output, buf_str(&r->out));
        }
        break;
    case CHILD_SIGNALLED:
        bt_step_fail(j->step, "UNKNOWN", false, "%s: killed by signal %d%s%s", j->cmd->id,
                     r->signal, r->last_line[0] != 0 ? ": " : "", r->last_line);
        break;
    case CHILD_TIMEOUT:
        bt_step_fail(j->step, "TIMEOUT", true, "%s: not done in time, and ended%s", j->cmd->id,
                     held);
        break;
    case CHILD_STOPPED:
        if (bt_step_time_left_ms(j->step) == 0) {
            bt_step_fail(j->step, "TIMEOUT", true, "%s: not done in time, and ended%s", j->cmd->id,
                         held);
        } else {
            bt_step_fail(j->step, "CANCELLED", false, "%s: cancelled, and ended%s", j->cmd->id,
                         held);
        }
        break;
    case CHILD_TOO_LARGE:
        bt_step_fail(j->step, "VALIDATION_ERROR", false,
                     "%s: result_too_large: its output is over %d bytes; write it to a file and "
                     "print the path, or print less",
                     j->cmd->id, LIMIT_RESULT_BYTES);
        break;
    }
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
                              .line = log_line,
                              .self = j};
    struct buf path;
    enum bt_code code = make_argv(j, err);

    buf_init(&path, VALUE_MAX);
    if (code == BT_OK) {
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
    child_result_done(&result);
    arena_done(&j.texts);
}
