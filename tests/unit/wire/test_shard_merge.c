/* A list of a fleet: what each shard is asked, and the answers of all as one. */
#include "protocol/wire/shard_merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"

enum { DOCS_MAX = SHARDS_MAX + 1 };

static struct buf docs[DOCS_MAX];
static uint32_t docs_n;
static char text_of_answer[65536];

static struct doc doc_of(const char *json)
{
    struct buf *doc = &docs[docs_n++];
    struct bt_error err;

    assert_true(docs_n <= DOCS_MAX);
    buf_init(doc, 1 << 20);
    if (json_to_doc(str_from(json), NULL, doc, &err) != BT_OK) {
        fail_msg("%s: %s", json, err.msg);
    }
    return doc_from_buf(doc);
}

static void docs_done(void)
{
    while (docs_n > 0) {
        buf_done(&docs[--docs_n]);
    }
}

static const char *text_of(const struct buf *doc)
{
    struct buf text;

    buf_init(&text, sizeof text_of_answer - 1);
    assert_int_equal(doc_to_json(doc_from_buf(doc), false, &text, NULL), BT_OK);
    (void)snprintf(text_of_answer, sizeof text_of_answer, "%s", buf_cstr(&text));
    buf_done(&text);
    return text_of_answer;
}

/* The one answer of these; NULL = a shard that is asked and does not answer, "" = not asked. */
static const char *merged(const char *type, const char *const *answers, uint32_t shards)
{
    static struct shard_merge m;
    struct bt_error err;
    struct buf out;

    shard_merge_begin(&m, str_from(type), shards);
    for (uint32_t i = 0; i < shards; i++) {
        m.asked[i] = answers[i] == NULL || answers[i][0] != 0;
        if (answers[i] != NULL && answers[i][0] != 0) {
            shard_merge_take(&m, i, doc_of(answers[i]));
        }
    }
    buf_init(&out, 1 << 20);
    if (shard_merge_write(&m, &out, &err) == BT_OK) {
        (void)text_of(&out);
    } else {
        (void)snprintf(text_of_answer, sizeof text_of_answer, "%s", err.msg);
    }
    buf_done(&out);
    docs_done();
    return text_of_answer;
}

#define ASSERT_MERGED(type, want, ...)                                                             \
    do {                                                                                           \
        static const char *const of[] = {__VA_ARGS__};                                             \
        assert_string_equal(merged(type, of, sizeof of / sizeof of[0]), want);                     \
    } while (0)

static void lists_are_one_in_their_own_order(void **state)
{
    (void)state;
    ASSERT_MERGED("plan.list",
                  "{\"plans\":[{\"planId\":\"d\"},{\"planId\":\"c\"},{\"planId\":\"b\"},"
                  "{\"planId\":\"a\"}],\"missingShards\":[]}",
                  "{\"plans\":[{\"planId\":\"c\"},{\"planId\":\"a\"}]}", "{\"plans\":[]}",
                  "{\"plans\":[{\"planId\":\"d\"},{\"planId\":\"b\"}]}");
    ASSERT_MERGED("review.list",
                  "{\"reviews\":[{\"reviewId\":\"a\"},{\"reviewId\":\"a/1\"},"
                  "{\"reviewId\":\"b\"}],\"missingShards\":[]}",
                  "{\"reviews\":[{\"reviewId\":\"a/1\"},{\"reviewId\":\"b\"}]}",
                  "{\"reviews\":[{\"reviewId\":\"a\"}]}");
    ASSERT_MERGED("session.list",
                  "{\"sessions\":[{\"updatedAt\":\"2026\"},{\"updatedAt\":\"2025\"}],"
                  "\"missingShards\":[]}",
                  "{\"sessions\":[{\"updatedAt\":\"2025\"}]}",
                  "{\"sessions\":[{\"updatedAt\":\"2026\"}]}");
    ASSERT_MERGED("schedule.list",
                  "{\"schedules\":[{\"name\":\"\"},{\"name\":\"a\"},{\"name\":\"aa\"},"
                  "{\"name\":\"b\"}],\"missingShards\":[]}",
                  "{\"schedules\":[{\"name\":\"aa\"},{\"name\":\"\"}]}",
                  "{\"schedules\":[{\"name\":\"b\"},{\"name\":\"a\"}]}");
}

static void a_list_without_an_order_has_the_shards_one_behind_the_other(void **state)
{
    (void)state;
    ASSERT_MERGED("plan.list",
                  "{\"plans\":[{\"planId\":\"a\"}],\"notes\":[2,1,3],\"missingShards\":[]}",
                  "{\"plans\":[{\"planId\":\"a\"}],\"notes\":[2]}", "{\"notes\":[1,3]}");
    ASSERT_MERGED("supervisor.stats",
                  "{\"agents\":[{\"planId\":\"b\"},{\"planId\":\"a\"}],"
                  "\"missingShards\":[]}",
                  "{\"agents\":[{\"planId\":\"b\"}]}", "{\"agents\":[{\"planId\":\"a\"}]}");
}

/* The longest cycle is of one shard; the version and `ok` are those of any. */
static void figures_are_added_up(void **state)
{
    (void)state;
    ASSERT_MERGED("supervisor.stats",
                  "{\"ok\":true,\"v\":1,\"plans\":7,\"longestCycleUs\":9,\"only\":5,"
                  "\"missingShards\":[]}",
                  "{\"ok\":true,\"v\":1,\"plans\":3,\"longestCycleUs\":2}",
                  "{\"ok\":true,\"v\":1,\"plans\":4,\"longestCycleUs\":9,\"only\":5}",
                  "{\"ok\":true,\"v\":1,\"plans\":0,\"longestCycleUs\":5}");
}

static void what_is_true_of_one_shard_is_true(void **state)
{
    (void)state;
    ASSERT_MERGED("plan.list", "{\"truncated\":true,\"more\":false,\"missingShards\":[]}",
                  "{\"truncated\":false,\"more\":false}", "{\"truncated\":true,\"more\":false}",
                  "{\"truncated\":false}");
    ASSERT_MERGED("plan.list", "{\"truncated\":true,\"missingShards\":[]}", "{\"truncated\":true}",
                  "{\"truncated\":false}");
}

/* Of a text there is only one. A member of another kind in a later shard counts for nothing. */
static void other_members_are_those_of_the_first_shard_that_has_them(void **state)
{
    (void)state;
    ASSERT_MERGED("supervisor.stats",
                  "{\"name\":\"first\",\"plans\":3,\"full\":false,\"rows\":[1],"
                  "\"missingShards\":[]}",
                  "{\"name\":\"first\",\"plans\":3,\"full\":false,\"rows\":[1]}",
                  "{\"name\":\"second\",\"plans\":\"many\",\"full\":\"yes\",\"rows\":\"none\"}");
}

static void the_shards_that_do_not_answer_are_named_and_those_not_asked_are_not(void **state)
{
    (void)state;
    ASSERT_MERGED("plan.list", "{\"ok\":true,\"missingShards\":[0,3]}", NULL, "{\"ok\":true}", "",
                  NULL);
    ASSERT_MERGED("plan.list", "none of the 2 shards answers", NULL, NULL);
    ASSERT_MERGED("plan.list", "none of the 2 shards answers", "[]", "7");
}

static void a_cursor_is_a_vector_of_the_shards_that_have_more(void **state)
{
    (void)state;
    ASSERT_MERGED("plan.list", "{\"cursor\":\"S0=x;S2=#17\",\"missingShards\":[]}",
                  "{\"cursor\":\"x\"}", "{\"cursor\":\"\"}", "{\"cursor\":17}", "{}");
    ASSERT_MERGED("plan.list", "{\"cursor\":\"S1=y\",\"missingShards\":[]}", "{\"cursor\":null}",
                  "{\"cursor\":\"y\"}");
    ASSERT_MERGED("plan.list", "{\"cursor\":\"\",\"missingShards\":[]}", "{\"cursor\":\"\"}",
                  "{\"cursor\":\"\"}");
}

/* What the shard is asked with; NULL: it is not. */
static const char *asked(const char *fields, uint32_t shard)
{
    struct buf out;
    bool is_asked;

    buf_init(&out, 65536);
    is_asked = shard_fields(doc_of(fields), shard, &out);
    if (is_asked) {
        (void)text_of(&out);
    }
    buf_done(&out);
    docs_done();
    return is_asked ? text_of_answer : NULL;
}

static void each_shard_is_asked_with_its_part_of_the_cursor(void **state)
{
    static const char all[] = "{\"limit\":5,\"cursor\":\"S0=x;S2=#17;S12=y;S3=\",\"a\":[1]}";

    (void)state;
    assert_string_equal(asked(all, 0), "{\"limit\":5,\"cursor\":\"x\",\"a\":[1]}");
    assert_string_equal(asked(all, 2), "{\"limit\":5,\"cursor\":17,\"a\":[1]}");
    assert_string_equal(asked(all, 12), "{\"limit\":5,\"cursor\":\"y\",\"a\":[1]}");
    assert_null(asked(all, 1)); /* it has no more */
    assert_null(asked(all, 3));
    assert_null(asked(all, 22));
    assert_string_equal(asked("{\"limit\":5}", 1), "{\"limit\":5}"); /* the first page */
    assert_string_equal(asked("{\"cursor\":\"\"}", 1), "{\"cursor\":\"\"}");
    assert_string_equal(asked("[]", 1), "{}");
    assert_null(asked("{\"cursor\":\"nonsense\"}", 0));
}

static void a_part_of_64_letters_comes_back_whole(void **state)
{
    char part[80], fields[128], want[128], answer[128];
    const char *of[1] = {answer};

    (void)state;
    memset(part, 'p', sizeof part);
    part[64] = 0;
    (void)snprintf(fields, sizeof fields, "{\"cursor\":\"S63=%s\"}", part);
    (void)snprintf(answer, sizeof answer, "{\"cursor\":\"%s\"}", part);
    assert_string_equal(asked(fields, 63), answer);
    (void)snprintf(want, sizeof want, "{\"cursor\":\"S0=%s\",\"missingShards\":[]}", part);
    assert_string_equal(merged("plan.list", of, 1), want);
}

static void all_shards_have_room_in_one_cursor(void **state)
{
    static char answers[SHARDS_MAX][96];
    const char *of[SHARDS_MAX];
    char last[80];

    (void)state;
    for (uint32_t i = 0; i < SHARDS_MAX; i++) {
        (void)snprintf(answers[i], sizeof answers[i], "{\"cursor\":\"%064u\"}", i);
        of[i] = answers[i];
    }
    (void)snprintf(last, sizeof last, ";S63=%064u\",\"missingShards\":[]}", 63u);
    assert_non_null(strstr(merged("plan.list", of, SHARDS_MAX), last));
}

static void an_answer_has_at_most_64_members(void **state)
{
    static struct shard_merge m;
    char json[2048] = "{";

    (void)state;
    for (int i = 0; i < SHARD_MERGE_KEYS_MAX + 1; i++) {
        (void)snprintf(json + strlen(json), sizeof json - strlen(json), "%s\"k%d\":%d",
                       i > 0 ? "," : "", i, i);
        if (i == SHARD_MERGE_KEYS_MAX - 1) {
            char whole[2048];
            (void)snprintf(whole, sizeof whole, "%s}", json);
            shard_merge_begin(&m, STR_LIT("plan.list"), 2);
            shard_merge_take(&m, 0, doc_of(whole));
            assert_int_equal(m.keys_n, SHARD_MERGE_KEYS_MAX);
            shard_merge_take(&m, 1, doc_of(whole)); /* the same ones */
            assert_int_equal(m.keys_n, SHARD_MERGE_KEYS_MAX);
        }
    }
    (void)snprintf(json + strlen(json), sizeof json - strlen(json), "}");
    shard_merge_take(&m, 1, doc_of(json));
    assert_int_equal(m.keys_n, SHARD_MERGE_KEYS_MAX);
    docs_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_one_in_their_own_order),
        cmocka_unit_test(a_list_without_an_order_has_the_shards_one_behind_the_other),
        cmocka_unit_test(figures_are_added_up),
        cmocka_unit_test(what_is_true_of_one_shard_is_true),
        cmocka_unit_test(other_members_are_those_of_the_first_shard_that_has_them),
        cmocka_unit_test(the_shards_that_do_not_answer_are_named_and_those_not_asked_are_not),
        cmocka_unit_test(a_cursor_is_a_vector_of_the_shards_that_have_more),
        cmocka_unit_test(each_shard_is_asked_with_its_part_of_the_cursor),
        cmocka_unit_test(a_part_of_64_letters_comes_back_whole),
        cmocka_unit_test(all_shards_have_room_in_one_cursor),
        cmocka_unit_test(an_answer_has_at_most_64_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
