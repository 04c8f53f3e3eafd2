#include "tests/unit/agents/exec_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agents/exec/run.h"
#include "protocol/base/log.h"

static struct exec_settings *settings;
char exec_dir[] = "/tmp/baton-test-exec-XXXXXX";
char exec_logged[4096];
size_t exec_logged_lines;

#define SH "\"argv\":[\"/bin/sh\",\"-c\",\"{script}\"]"
#define SH_REPLY SH ",\"output\":\"reply\""
#define CMD(id, members) "{\"id\":\"" id "\",\"description\":\"d\"," members "}"

static const char settings_json[] = "{\"commands\":[" CMD("sh", SH) "," CMD("sh-reply", SH_REPLY) "," CMD(
    "sh-none", SH
    ",\"stdin"
    "\":"
    "\"none"
    "\"") "," CMD("sh-json", SH
                  ",\"output\":\"json\"") "," CMD("sh-text", SH
                                                  ",\"output\":\"text\"") "," CMD("sh-short", SH
                                                                                  ",\"timeoutMs\":"
                                                                                  "50") "," CMD("sh"
                                                                                                "-"
                                                                                                "cw"
                                                                                                "d",
                                                                                                SH
                                                                                                ","
                                                                                                "\""
                                                                                                "cw"
                                                                                                "d"
                                                                                                "\""
                                                                                                ":"
                                                                                                "\""
                                                                                                "/"
                                                                                                "us"
                                                                                                "r"
                                                                                                "\"") "," CMD("sh-lost",
                                                                                                              SH
                                                                                                              ",\"cw"
                                                                                                              "d\":"
                                                                                                              "\"/"
                                                                                                              "does/"
                                                                                                              "not/"
                                                                                                              "exist"
                                                                                                              "\"") "," CMD("env",
                                                                                                                            "\"argv\":[\"env\"],\"stdin\":\"none\","
                                                                                                                            "\"env\":{\"EXTRA\":\"a b\","
                                                                                                                            "\"LANG\":\"C\"}") "," CMD("cat",
                                                                                                                                                       "\"argv\":["
                                                                                                                                                       "\"cat\"]") "," CMD("cat-"
                                                                                                                                                                           "text",
                                                                                                                                                                           "\"arg"
                                                                                                                                                                           "v\":["
                                                                                                                                                                           "\"cat"
                                                                                                                                                                           "\"],"
                                                                                                                                                                           "\"std"
                                                                                                                                                                           "in\":"
                                                                                                                                                                           "\"tex"
                                                                                                                                                                           "t\"") "," CMD("args", "\"argv\":[\"printf\",\"<%s>\",\"{a}\",\"x{b}y\",\"\"]") "," CMD("nothing", "\"argv\":[\"baton-no-such-program\"]") "," CMD("directory", "\"argv\":[\"/usr\"]") "," CMD("sh-codes", SH ",\"retryOn\":[1,9],\"errorClasses\":{\"4\":\"RESOURCE_NOT_FOUND\"},"
                                                                                                                                                                                                                                                                                                                                                                                         "\"passEnv\":[\"SECRET\",\"BATON_NO_SUCH\"]") "]}";

static void sink(enum log_level level, const char *event, const char *text, void *self)
{
    size_t used = strlen(exec_logged);

    (void)level;
    (void)self;
    exec_logged_lines++;
    (void)snprintf(exec_logged + used, sizeof exec_logged - used, "%s %s\n", event, text);
}

int exec_set_up(void **state)
{
    struct bt_error err;

    (void)state;
    log_setup(LOG_INFO, sink, NULL);
    (void)setenv("SECRET", "never handed on", 1);
    (void)unsetenv("BATON_STATE");
    (void)unsetenv("BATON_SPAWNED");
    (void)setenv("BATON_INSTANCE_ID", "the-instance", 1);
    if (mkdtemp(exec_dir) == NULL || exec_settings_read(settings_json, &settings, &err) != BT_OK) {
        return -1;
    }
    return 0;
}

int exec_tear_down(void **state)
{
    (void)state;
    steps_forget();
    exec_settings_free(settings);
    return rmdir(exec_dir);
}

const char *exec_step(const char *skill, const char *step_json)
{
    exec_logged[0] = 0;
    exec_logged_lines = 0;
    return steps_run(steps_make(skill, step_json), exec_run, settings);
}

const char *exec_script(const char *skill, const char *script)
{
    struct buf json;
    const char *reply;

    buf_init(&json, 4096);
    buf_add_cstr(&json, "{\"parameters\":{\"script\":\"");
    for (const char *p = script; *p != 0; p++) {
        if (*p == '@') {
            buf_add_cstr(&json, exec_dir);
        } else {
            buf_add_byte(&json, (uint8_t)*p);
        }
    }
    buf_add_cstr(&json, "\"}}");
    reply = exec_step(skill, buf_cstr(&json));
    buf_done(&json);
    return reply;
}

const char *exec_run_made(struct bt_step *step)
{
    return steps_run(step, exec_run, settings);
}
