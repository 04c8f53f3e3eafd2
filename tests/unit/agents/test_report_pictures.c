/*
 * Whole pictures, kept as files in pictures/: NAME.json is the chart, NAME.svg what is drawn of it,
 * to the last coordinate. BATON_WRITE=1 draws them anew: look at each that differs.
 */
#include "tests/support/cmocka.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "agents/report/chart.h"

enum { FILE_MAX = 256 * 1024 };

static void read_file(const char *name, struct buf *ret)
{
    char path[512];
    char block[4096];
    size_t n;
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", PICTURES, name);
    buf_clear(ret);
    f = fopen(path, "re");
    while (f != NULL && (n = fread(block, 1, sizeof block, f)) > 0) {
        buf_add(ret, block, n);
    }
    if (f != NULL) {
        (void)fclose(f);
    }
}

static void write_file(const char *name, const struct buf *content)
{
    char path[512];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", PICTURES, name);
    f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(content->at, 1, content->len, f), content->len);
    assert_int_equal(fclose(f), 0);
}

static void draw(const struct buf *spec, struct buf *ret)
{
    cJSON *tree = cJSON_ParseWithLength((const char *)spec->at, spec->len);
    struct chart chart;
    struct bt_error err;

    assert_non_null(tree);
    if (chart_read(tree, cJSON_GetObjectItemCaseSensitive(tree, "values"), &chart, &err) != BT_OK) {
        fail_msg("%.200s: %s", (const char *)spec->at, err.msg);
    }
    buf_clear(ret);
    chart_draw(&chart, ret);
    assert_int_equal(ret->bad, BT_OK);
    chart_done(&chart);
    cJSON_Delete(tree);
}

/* The first line that differs. */
static void compare(const char *name, const char *was, const char *is)
{
    unsigned line = 1;
    size_t at = 0;
    size_t start = 0;

    for (; was[at] != 0 && was[at] == is[at]; at++) {
        if (was[at] == '\n') {
            line++;
            start = at + 1;
        }
    }
    if (was[at] != is[at]) {
        fail_msg("%s:%u: %.*s\nis now: %.*s", name, line, (int)strcspn(was + start, "\n"),
                 was + start, (int)strcspn(is + start, "\n"), is + start);
    }
}

static void each_picture_is_as_it_was_drawn(void **state)
{
    struct dirent *e;
    DIR *dir = opendir(PICTURES);
    struct buf spec;
    struct buf was;
    struct buf is;
    int n = 0;

    (void)state;
    assert_non_null(dir);
    buf_init(&spec, FILE_MAX);
    buf_init(&was, FILE_MAX);
    buf_init(&is, FILE_MAX);
    while ((e = readdir(dir)) != NULL) {
        char name[256];
        const char *ending = strstr(e->d_name, ".json");
        if (ending == NULL) {
            continue;
        }
        n++;
        (void)snprintf(name, sizeof name, "%.*s.svg", (int)(ending - e->d_name), e->d_name);
        read_file(e->d_name, &spec);
        draw(&spec, &is);
        read_file(name, &was);
        if (getenv("BATON_WRITE") != NULL) {
            write_file(name, &is);
        } else {
            compare(name, buf_cstr(&was), buf_cstr(&is));
        }
    }
    assert_true(n > 0);
    (void)closedir(dir);
    buf_done(&spec);
    buf_done(&was);
    buf_done(&is);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_picture_is_as_it_was_drawn)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
