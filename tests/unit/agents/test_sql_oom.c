/* Each allocation of the sql agent fails in its turn: a reply without some of its rows would be a
 * wrong one. SQLite allocates for itself. */
#include "tests/unit/agents/sql_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/no_memory.h"

static char root[] = "/tmp/baton-sql-oom-XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[128];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void drop(const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", root, name);
    assert_int_equal(remove(path), 0);
}

static void every_reply_is_whole_or_says_that_there_is_no_memory(void **state)
{
    static const struct {
        const char *skill, *parameters;
        bt_skill_run run;
    } asked[] = {
        {"query", "\"sql\":\"SELECT 1 AS a, 1.5 AS r, 'x' AS t, x'00' AS b, NULL AS n, 2 AS a\"",
         sql_query},
        {"query", "\"sql\":\"SELECT CAST(x'61ff' AS TEXT) AS t\"", sql_query},
        {"query", "\"sql\":\"SELECT ? AS a, ? AS b\",\"params\":[\"x\",{\"k\":[1]}]", sql_query},
        {"query", "\"sql\":\"SELECT :a AS a\",\"params\":{\"a\":[1]}", sql_query},
        {"query", "\"sql\":\"SELECT 1 AS a, 'x,y' AS b\",\"artifact\":true", sql_query},
        {"query", "\"sql\":\"SELECT 1 AS a, 'x,y' AS b\",\"artifact\":\"csv\"", sql_query},
        /* lines whose end is the first byte that does not fit */
        {"query", "\"sql\":\"SELECT printf('%.59c', 'x') AS a\",\"artifact\":true", sql_query},
        {"query", "\"sql\":\"SELECT printf('%.63c', 'x') AS a\",\"artifact\":\"csv\"", sql_query},
        {"load", "\"replace\":true,\"rows\":[{\"a\":1,\"b\":\"x\"},{\"b\":[1,{\"k\":2}]}]",
         sql_load},
        {"load",
         "\"replace\":true,\"columns\":[\"x\",\"y\"],\"types\":{\"x\":\"text\"},\"rows\":[[1,2]]",
         sql_load},
        {"load", "\"replace\":true,\"csv\":\"a,b\\n1,2\\n3,x\\n\"", sql_load},
        {"load", "\"replace\":true,\"file\":\"ROOT/a.csv\",\"types\":{\"b\":\"text\"}", sql_load},
        {"load", "\"replace\":true,\"file\":\"ROOT/a.ndjson\"", sql_load},
        {"execute", "\"sql\":\"UPDATE t SET v = v RETURNING v\"", sql_execute},
        {"execute", "\"sql\":\"UPDATE t SET v = v\"", sql_execute},
        {"schema", "\"database\":\"main\"", sql_schema},
    };
    struct sql_settings *s;
    char more[200];
    char json[600];

    (void)state;
    assert_non_null(mkdtemp(root));
    write_file("a.csv", "a,b\n1,2\nx\xff,3\n");
    write_file("a.ndjson", "{\"columns\":[\"a\",\"b\"]}\n[1,[2,{\"k\":3}]]\n[null,\"x\"]\n"
                           "{\"types\":{\"a\":\"integer\",\"b\":\"text\"},\"rowCount\":2}\n");
    (void)snprintf(more, sizeof more, ",\"readOnly\":false,\"roots\":[\"%s\"]", root);
    s = sql_settings_make(more);
    sql_do("CREATE TABLE t(v)");
    sql_do("INSERT INTO t VALUES (1), ('x')");
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        const char *at = strstr(asked[i].parameters, "ROOT");
        const int n =
            (int)(at == NULL ? strlen(asked[i].parameters) : (size_t)(at - asked[i].parameters));
        (void)snprintf(json, sizeof json, "{\"artifactDir\":\"%s/plan\",\"parameters\":{%.*s%s%s}}",
                       root, n, asked[i].parameters, at == NULL ? "" : root,
                       at == NULL ? "" : at + 4);
        no_memory_each(asked[i].skill, json, asked[i].run, s);
    }
    confine_done(&s->roots);
    free(s);
    drop("a.csv");
    drop("a.ndjson");
    drop("plan/once@1.1@rows.ndjson");
    drop("plan/once@1.1@rows.csv");
    drop("plan");
    assert_int_equal(rmdir(root), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_reply_is_whole_or_says_that_there_is_no_memory, sql_fresh)};

    return cmocka_run_group_tests(tests, sql_set_up, sql_tear_down);
}
