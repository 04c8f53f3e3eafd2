/*
 * The settings of the exec agent: an allow-list of commands, each of them a skill. The program of a
 * command is fixed; a step only fills in arguments.
 */
#ifndef EXEC_SETTINGS_H
#define EXEC_SETTINGS_H

#include "baton/agent.h"
#include "protocol/base/arena.h"
#include "protocol/base/err.h"
#include "protocol/base/msec.h"

enum exec_input { EXEC_INPUT_JSON, EXEC_INPUT_TEXT, EXEC_INPUT_NONE, EXEC_INPUT_COUNT };
enum exec_output {
    EXEC_OUTPUT_AUTO,
    EXEC_OUTPUT_JSON,
    EXEC_OUTPUT_TEXT,
    EXEC_OUTPUT_REPLY,
    EXEC_OUTPUT_COUNT
};
enum { EXEC_ARGS_MAX = 256, EXEC_LIST_MAX = 32, EXEC_CODES = 256 };

struct exec_command {
    const char *id;
    const char *name; /* NULL = the id */
    const char *description;
    const char *const *tags;     /* NULL-terminated; or NULL */
    const char *const *examples; /* NULL-terminated; or NULL */
    /* JSON; derived from the placeholders when the settings have none */
    const char *input_schema;
    const char *effects; /* NULL = idempotent */
    /* NULL-terminated templates, at least one; argv[0] has no placeholder */
    const char *const *argv;
    const char *const *env; /* NULL-terminated "NAME=value"; or NULL */
    const char *cwd;        /* NULL = the agent's directory */
    enum exec_input input;
    enum exec_output output;
    bool takes_artifact;         /* the parameter `artifact` is not an argument's */
    msec timeout_ms;             /* 0 = only the step's deadline */
    const char *const *pass_env; /* names taken from the agent's environment; or NULL */
    bool retries[EXEC_CODES];    /* by exit code: another attempt may succeed */
    uint8_t classes[EXEC_CODES]; /* enum err_class by exit code */
};

struct exec_settings {
    struct arena arena;
    const char *agent_id; /* NULL = not given */
    struct exec_command *commands;
    uint32_t n;
};

/* Reads the settings' JSON. BT_INVALID names the member and what would be right. The caller frees
 * with exec_settings_free. */
BT_MUST_CHECK enum bt_code exec_settings_read(const char *json, struct exec_settings **ret,
                                              struct bt_error *err);
/* At the start, where a person reads it: BT_INVALID names a cwd that is no directory. */
BT_MUST_CHECK enum bt_code exec_settings_check(const struct exec_settings *s, struct bt_error *err);
/* Accepts NULL. */
void exec_settings_free(struct exec_settings *s);
/* The command of that id; the only command when the id is empty; NULL when there is none. */
const struct exec_command *exec_settings_find(const struct exec_settings *s, const char *id);
#endif
