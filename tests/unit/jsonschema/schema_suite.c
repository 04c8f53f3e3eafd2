/*
 * The public JSON Schema test suite, draft 7 (Debian: json-schema-test-suite), against our subset.
 * Every case must behave as the suite demands, or be in the list below with its difference. A case
 * in the list that starts to behave fails too, so that the list and the README stay true.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "protocol/jsonschema/schema.h"

#define SUITE "/usr/share/json-schema-test-suite/tests/draft7"
enum { SKIPPED = 77, FILE_BYTES_MAX = 1 << 20 };

enum deviation {
    REFUSED, /* schema_compile returns BT_INVALID */
    DIFFERS  /* the verdict is another one */
};

static const struct unsupported {
    const char *file;
    const char *group; /* NULL: all groups of the file */
    const char *test;  /* NULL: all tests of the group */
    enum deviation how;
    const char *because;
} unsupported_rows[] = {
#include "tests/unit/jsonschema/unsupported.inc"
};

enum { UNSUPPORTED_COUNT = sizeof unsupported_rows / sizeof unsupported_rows[0] };
static unsigned seen[UNSUPPORTED_COUNT];

struct tally {
    unsigned cases;
    unsigned as_expected;
    unsigned listed;
    unsigned wrong;
};

static bool named(const char *listed, const char *name)
{
    return listed == NULL || strcmp(listed, name) == 0;
}

static const struct unsupported *find_row(const char *file, const char *group, const char *test)
{
    for (unsigned i = 0; i < UNSUPPORTED_COUNT; i++) {
        const struct unsupported *u = &unsupported_rows[i];
        if (strcmp(u->file, file) == 0 && named(u->group, group) && named(u->test, test)) {
            seen[i]++;
            return u;
        }
    }
    return NULL;
}

static const char *text_of(const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    return text == NULL ? "?" : text;
}

/* Returns the outcome of one case: "valid", "invalid", or why there is no verdict. */
static const char *verdict_of(const struct schema *s, const cJSON *data)
{
    struct schema_problem problems[4];
    struct bt_error err = {0};
    uint32_t n = 0;
    enum bt_code code = schema_check(s, data, problems, 4, &n, &err);

    if (code == BT_OK) {
        return "valid";
    }
    if (code == BT_INVALID && n >= 1 && problems[0].message[0] != '\0') {
        return "invalid";
    }
    return bt_code_name(code);
}

static void judge(const char *file, const cJSON *group, const cJSON *test, const struct schema *s,
                  const char *refusal, struct tally *t)
{
    const char *group_name = text_of(group, "description");
    const char *name = text_of(test, "description");
    const struct unsupported *u = find_row(file, group_name, name);
    const cJSON *data = cJSON_GetObjectItemCaseSensitive(test, "data");
    bool valid = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(test, "valid"));
    const char *want = valid ? "valid" : "invalid";
    const char *got = s == NULL ? "refused" : verdict_of(s, data);
    bool right = strcmp(got, want) == 0;

    t->cases++;
    if (u == NULL && right) {
        t->as_expected++;
    } else if (u != NULL && !right && (u->how == REFUSED) == (s == NULL)) {
        t->listed++;
    } else {
        t->wrong++;
        printf("WRONG %s: %s: %s: want %s, got %s%s%s%s\n", file, group_name, name, want, got,
               s == NULL ? ": " : "", s == NULL ? refusal : "",
               u == NULL ? "" : " (listed as unsupported; the list is stale)");
    }
}

static void run_group(const char *file, const cJSON *group, struct tally *t)
{
    struct bt_error err = {0};
    struct schema *s = NULL;
    const cJSON *test;

    if (schema_compile(cJSON_GetObjectItemCaseSensitive(group, "schema"), &s, &err) != BT_OK) {
        s = NULL;
    }
    cJSON_ArrayForEach(test, cJSON_GetObjectItemCaseSensitive(group, "tests"))
    {
        judge(file, group, test, s, err.msg, t);
    }
    schema_free(s);
}

static cJSON *read_json(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, FILE_BYTES_MAX + 1);
    cJSON *tree = NULL;

    assert_non_null(text);
    if (f != NULL && fread(text, 1, FILE_BYTES_MAX, f) > 0) {
        tree = cJSON_Parse(text);
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    free(text);
    return tree;
}

static int is_json(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return n > 5 && strcmp(e->d_name + n - 5, ".json") == 0;
}

/* folder is "" or "optional/"; optional/format/ is not walked: format is an annotation here. */
static void run_folder(const char *folder, struct tally *t)
{
    char path[512];
    struct dirent **files = NULL;
    int n;

    (void)snprintf(path, sizeof path, "%s/%s", SUITE, folder);
    n = scandir(path, &files, is_json, alphasort);
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        char name[300];
        const cJSON *group;
        cJSON *groups;
        (void)snprintf(name, sizeof name, "%s%s", folder, files[i]->d_name);
        (void)snprintf(path, sizeof path, "%s/%s", SUITE, name);
        groups = read_json(path);
        if (groups == NULL) {
            fail_msg("%s is not JSON", path);
        }
        cJSON_ArrayForEach(group, groups)
        {
            run_group(name, group, t);
        }
        cJSON_Delete(groups);
        free(files[i]);
    }
    free(files);
}

static void every_case_behaves_or_is_listed(void **state)
{
    struct tally t = {0};

    (void)state;
    run_folder("", &t);
    run_folder("optional/", &t);
    printf(
        "unsupported, by intent:\n  optional/format/*: format is an annotation, never checked\n");
    for (unsigned i = 0; i < UNSUPPORTED_COUNT; i++) {
        const struct unsupported *u = &unsupported_rows[i];
        printf("  %s: %s: %s: %s, %s (%u cases)\n", u->file, u->group == NULL ? "*" : u->group,
               u->test == NULL ? "*" : u->test, u->how == REFUSED ? "refused" : "differs",
               u->because, seen[i]);
        if (seen[i] == 0) {
            printf("WRONG the row above matches no case of the suite\n");
            t.wrong++;
        }
    }
    printf("%u cases: %u as the suite says, %u listed as unsupported, %u wrong\n", t.cases,
           t.as_expected, t.listed, t.wrong);
    assert_int_equal(t.wrong, 0);
    assert_true(t.cases > 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_case_behaves_or_is_listed)};
    struct stat st;

    if (stat(SUITE, &st) != 0) {
        printf("SKIPPED: " SUITE " is not there; install the package json-schema-test-suite\n");
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
