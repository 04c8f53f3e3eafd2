/* Files of plans without memory: what begins says so, and leaks nothing. */
#include "tests/support/memory.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/artifact/artifact.h"
#include "protocol/artifact/here.h"
#include "supervisor/artifacts/arriving.h"
#include "supervisor/artifacts/sweep.h"
#include "tests/support/tree.h"

static void what_begins_without_memory_says_so(void **state)
{
    const struct sweep_options opt = {.root = NULL};
    struct arriving *arriving = NULL;
    struct sweep *sweep = NULL;
    struct bt_error err;

    (void)state;
    memory_begin(1);
    assert_int_equal(arriving_new(&arriving, &err), BT_NOMEM);
    assert_string_equal(err.msg, "out of memory for files that arrive");
    assert_true(memory_end());
    memory_begin(1);
    assert_int_equal(sweep_new(&opt, NULL, &sweep, &err), BT_NOMEM);
    assert_string_equal(err.msg, "out of memory");
    assert_true(memory_end());
    memory_begin(0);
    assert_int_equal(arriving_new(&arriving, &err), BT_OK);
    assert_int_equal(sweep_new(&opt, NULL, &sweep, &err), BT_OK);
    free(arriving);
    free(sweep);
    (void)memory_end();
}

#define PLAN "0199A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5B"
#define SUM "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

static char top[] = "/tmp/baton-memory-XXXXXX";
static char dir[128];

static enum bt_code writes(struct bt_error *err)
{
    struct artifact_writer *w = NULL;
    const enum bt_code code = artifact_create(dir, "g", &w, err);

    artifact_abort(w);
    return code;
}

static enum bt_code spools(struct bt_error *err)
{
    struct artifact_writer *w = NULL;
    char sum[ARTIFACT_SHA256_LEN + 1];
    uint64_t bytes = 0;
    int fd = -1;
    enum bt_code code = artifact_spool(&w, err);

    if (code == BT_OK) {
        code = artifact_unspool(w, &fd, &bytes, sum, err);
    }
    (void)(fd >= 0 && close(fd));
    return code;
}

static enum bt_code arrives(struct bt_error *err)
{
    struct artifact_part *p = NULL;
    const enum bt_code code = artifact_part_open(dir, "h", &p, err);

    artifact_part_close(p);
    return code;
}

static enum bt_code opens(struct bt_error *err)
{
    const struct artifact_place at = {.plan = PLAN, .file = "f"};
    const struct artifact_claim claim = {5, STR_LIT(SUM)};
    int fd = -1;
    const enum bt_code code = artifact_open(top, &at, &claim, NULL, NULL, &fd, err);

    (void)(fd >= 0 && close(fd));
    return code;
}

static struct buf result;

static enum bt_code finds(struct bt_error *err)
{
    struct buf out;
    bool absent = true;
    enum bt_code code;

    buf_init(&out, 10000);
    code = artifact_here(top, doc_from_buf(&result), &out, &absent, err);
    assert_true(code != BT_OK || (out.len > 0 && !absent));
    buf_done(&out);
    return code;
}

/* Each allocation of each of them fails in its turn. */
static void what_is_done_with_a_file_without_memory_says_so(void **state)
{
    static enum bt_code (*const things[])(struct bt_error * err) = {writes, spools, arrives, opens,
                                                                    finds};
    struct bt_error err;
    char path[200];
    FILE *f;

    (void)state;
    assert_non_null(mkdtemp(top));
    (void)snprintf(dir, sizeof dir, "%s/" PLAN, top);
    (void)snprintf(path, sizeof path, "%s/f", dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    f = fopen(path, "we");
    assert_true(f != NULL && fputs("hello", f) >= 0 && fclose(f) == 0);
    buf_init(&result, 10000);
    assert_int_equal(json_to_doc(STR_LIT("{\"uri\":\"file:///old/artifacts/" PLAN
                                         "/f\",\"bytes\":5,\"sha256\":\"" SUM "\"}"),
                                 NULL, &result, &err),
                     BT_OK);
    for (size_t i = 0; i < sizeof things / sizeof things[0]; i++) {
        bool is_out = true;
        long n = 0;
        while (is_out) {
            enum bt_code code;
            memory_begin(++n);
            err.msg[0] = 0;
            code = things[i](&err);
            is_out = memory_end();
            assert_int_equal(code, is_out ? BT_NOMEM : BT_OK);
            assert_int_equal(strncmp(err.msg, "out of memory for a", 19) == 0, is_out);
        }
        assert_true(n >= 3);
    }
    buf_done(&result);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(tree_drop(top), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_begins_without_memory_says_so),
        cmocka_unit_test(what_is_done_with_a_file_without_memory_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
