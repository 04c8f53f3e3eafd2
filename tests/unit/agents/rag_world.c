#include "tests/unit/agents/rag_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "tests/support/tree.h"

static char dir[] = "/tmp/baton-rag-XXXXXX";
static char folder[64];
static char database[64];
static struct rag *rag;

void rag_change(const char *members)
{
    char json[2048];
    struct bt_error err;

    rag_free(rag);
    rag = NULL;
    (void)snprintf(json, sizeof json, "{'folder':'%s','database':'%s'%s}", folder, database,
                   members);
    if (rag_new(service_text(json), &rag, &err) != BT_OK) {
        fail_msg("%s: %s", json, err.msg);
    }
}

void rag_use(const char *members)
{
    service_forget();
    rag_free(rag);
    rag = NULL;
    (void)tree_drop(dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    rag_change(members);
}

struct rag *rag_used(void)
{
    return rag;
}

const char *rag_folder(void)
{
    return folder;
}

const char *rag_database(void)
{
    return database;
}

void rag_write(const char *name, const void *bytes, size_t n)
{
    char path[512];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *at = path + strlen(folder) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = 0;
        (void)mkdir(path, 0700);
        *at = '/';
    }
    f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

void rag_text(const char *name, const char *text)
{
    rag_write(name, text, strlen(text));
}

void rag_remove(const char *name)
{
    char path[512];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(unlink(path), 0);
}

const char *rag_do(const char *skill, const char *parameters)
{
    struct buf json;
    struct bt_step *step;
    bt_skill_run run = strcmp(skill, "index") == 0 ? rag_index : rag_retrieve;

    buf_init(&json, 1024 * 1024);
    buf_printf(&json, "{\"task\":\"the task\",\"parameters\":%s}", service_text(parameters));
    step = steps_make(skill, buf_cstr(&json));
    buf_done(&json);
    return steps_run(step, run, rag);
}

void rag_says(const char *reply, const char *part)
{
    steps_expect(reply, service_text(part));
}

static sqlite3 *opened(void)
{
    sqlite3 *sql = NULL;

    assert_int_equal(sqlite3_open(database, &sql), SQLITE_OK);
    return sql;
}

void rag_sql(const char *text)
{
    sqlite3 *sql = opened();
    char *why = NULL;

    if (sqlite3_exec(sql, text, NULL, NULL, &why) != SQLITE_OK) {
        fail_msg("%s: %s", text, why);
    }
    (void)sqlite3_close(sql);
}

int64_t rag_count(const char *text)
{
    sqlite3 *sql = opened();
    sqlite3_stmt *st = NULL;
    int64_t n;

    assert_int_equal(sqlite3_prepare_v2(sql, text, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    n = sqlite3_column_int64(st, 0);
    (void)sqlite3_finalize(st);
    (void)sqlite3_close(sql);
    return n;
}

int rag_start(void **state)
{
    struct bt_error err;

    if (mkdtemp(dir) == NULL || web_start(&err) != BT_OK) {
        return -1;
    }
    (void)snprintf(folder, sizeof folder, "%s/docs", dir);
    (void)snprintf(database, sizeof database, "%s/index.db", dir);
    return service_start(state);
}

int rag_stop(void **state)
{
    rag_free(rag);
    steps_forget();
    return tree_drop(dir) != 0 ? -1 : service_stop(state);
}
