#include "tests/unit/agents/sql_world.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cjson/cJSON.h>

static char dir[] = "/tmp/baton-test-sql-XXXXXX";
struct sql_settings *sql_reader;
struct sql_settings *sql_writer;

struct sql_settings *sql_settings_make(const char *more)
{
    struct sql_settings *s = NULL;
    struct bt_error err;
    char json[512];

    (void)snprintf(json, sizeof json, "{\"databaseDir\":\"%s/db\"%s}", dir, more);
    if (sql_settings_read(json, &s, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    return s;
}

int sql_set_up(void **state)
{
    (void)state;
    if (mkdtemp(dir) == NULL) {
        return -1;
    }
    sql_reader = sql_settings_make("");
    sql_writer = sql_settings_make(",\"readOnly\":false,\"busyTimeoutMs\":50,\"maxRows\":100");
    return 0;
}

static void empty(const char *path)
{
    DIR *d = opendir(path);
    const struct dirent *e;
    char name[512];

    while (d != NULL && (e = readdir(d)) != NULL) {
        (void)snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        (void)unlink(name);
    }
    if (d != NULL) {
        (void)closedir(d);
    }
}

const char *sql_dir(void)
{
    static char path[64];

    (void)snprintf(path, sizeof path, "%s/db", dir);
    return path;
}

int sql_tear_down(void **state)
{
    (void)state;
    steps_forget();
    free(sql_reader);
    free(sql_writer);
    empty(sql_dir());
    empty(dir);
    return rmdir(sql_dir()) == 0 && rmdir(dir) == 0 ? 0 : -1;
}

int sql_fresh(void **state)
{
    (void)state;
    empty(sql_dir());
    return 0;
}

const char *sql_run(bt_skill_run how, const struct sql_settings *s, const char *sql,
                    const char *more)
{
    cJSON *text = cJSON_CreateString(sql);
    char *quoted = cJSON_PrintUnformatted(text);
    struct sql_settings copy = *s;
    const char *reply;
    struct buf json;

    buf_init(&json, LIMIT_STEP_BYTES);
    buf_printf(&json, "{\"parameters\":{\"sql\":%s%s}}", quoted, more);
    reply = steps_run(steps_make("x", buf_cstr(&json)), how, &copy);
    buf_done(&json);
    cJSON_free(quoted);
    cJSON_Delete(text);
    return reply;
}

const char *sql_ask(const char *sql)
{
    return sql_run(sql_query, sql_reader, sql, "");
}

void sql_do(const char *sql)
{
    steps_expect(sql_run(sql_execute, sql_writer, sql, ""), "\"outcome\":\"completed\"");
}
