/* The i-th allocation fails, for every i: BT_NOMEM, and no object is emitted in part. ASan reports
 * leaks. */
#include <stdlib.h>

#include "protocol/compat/compat_internal.h"
#include "tests/support/memory.h"
#include "tests/unit/compat/streams.h"

static const char answer[] =
    "{\"planId\":\"P\",\"document\":{\"steps\":[{\"stepId\":\"a\",\"skill\":\"add\"}]}}";

/* Returns whether all went well. One allocation fails; what comes after it is translated all the
 * same. */
static bool translate_stream(const char *name, const struct stream *s)
{
    struct bt_vocabulary *v = NULL;
    struct bt_translated translated;
    struct bt_error err;
    bool well = true;
    enum bt_code code = bt_vocabulary_new(name, &v, &err);

    if (code != BT_OK) {
        assert_int_equal(code, BT_NOMEM);
        return false;
    }
    code = bt_vocabulary_describe(v, answer, &err);
    well = well && code == BT_OK;
    assert_true(code == BT_OK || code == BT_NOMEM);
    for (size_t i = 0; i < s->n; i++) {
        code = bt_vocabulary_take(v, s->lines[i], strlen(s->lines[i]), &err);
        if (code != BT_OK) {
            assert_int_equal(code, BT_NOMEM);
            assert_true(strlen(err.msg) > 0);
            well = false;
        }
        while (bt_vocabulary_next(v, &translated)) {
            assert_int_equal(translated.json[0], '{');
            assert_int_equal(translated.json[strlen(translated.json) - 1], '}');
        }
    }
    bt_vocabulary_free(v);
    return well;
}

static void each_allocation_may_fail(void **state)
{
    static struct stream streams[STREAMS_MAX];
    const size_t n = streams_read(streams);

    (void)state;
    for (const char *const *name = bt_vocabulary_names(); *name != NULL; name++) {
        for (size_t s = 0; s < n; s++) {
            long i = 0;
            for (;; i++) {
                memory_left = i;
                const bool well = translate_stream(*name, &streams[s]);
                const bool hit = memory_left < 0;
                memory_left = -1;
                if (well != !hit) {
                    fail_msg("%s as %s: allocation %ld fails, and nobody says so", streams[s].name,
                             *name, i);
                }
                if (!hit) {
                    break;
                }
            }
            assert_true(i > 3);
        }
    }
    streams_free(streams, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
