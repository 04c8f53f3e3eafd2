/* "Did you mean", names of shards, and files that are replaced as a whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/replace.h"
#include "protocol/base/shard.h"
#include "protocol/base/suggest.h"
#include "tests/support/cmocka.h"

/* "" = none. */
static const char *nearest(const char *word, const char *a, const char *b)
{
    struct suggest s = suggest_start(str_from(word));

    suggest_offer(&s, str_from(a));
    suggest_offer(&s, str_from(b));
    return s.best.ptr != NULL ? s.best.ptr : "";
}

static void the_nearest_name_is_suggested(void **state)
{
    (void)state;
    assert_string_equal(nearest("submitt", "submit", "summit"), "submit");
    assert_string_equal(nearest("summitt", "submit", "summit"), "summit");
    assert_string_equal(nearest("AGENTid", "agentId", "agentIds"), "agentId"); /* without case */
    assert_string_equal(nearest("agnetId", "agents", "agentId"), "agentId");   /* a swap is one */
    assert_string_equal(nearest("one", "ones", "oned"), "ones"); /* of two as near, the first */
    assert_string_equal(nearest("Zebra", "zebra", "zebrb"), "zebra");
}

static void a_name_is_near_with_one_edit_for_three_letters(void **state)
{
    (void)state;
    assert_string_equal(nearest("abc", "abx", ""), "abx");
    assert_string_equal(nearest("abc", "axx", ""), "");
    assert_string_equal(nearest("abcde", "abcxx", ""), "");
    assert_string_equal(nearest("abcdef", "abcdxx", ""), "abcdxx");
    assert_string_equal(nearest("abcdef", "abcxxx", ""), "");
    assert_string_equal(nearest("ab", "ax", ""), "ax"); /* short ones: one */
    assert_string_equal(nearest("ab", "xy", ""), "");
    assert_string_equal(nearest("a", "b", ""), ""); /* all of it would differ */
    assert_string_equal(nearest("a", "ab", ""), "ab");
}

/* Of the two letters of a swap both count, and nothing that is further apart. */
static void a_swap_is_of_two_neighbours(void **state)
{
    (void)state;
    assert_string_equal(nearest("abc", "acb", ""), "acb");
    assert_string_equal(nearest("abc", "bac", ""), "bac");
    assert_string_equal(nearest("abc", "cba", ""), "");
    assert_string_equal(nearest("ab", "ba", ""), "ba");
    assert_string_equal(nearest("AB", "ba", ""), "ba");
}

static void a_word_of_65_bytes_gets_no_suggestion(void **state)
{
    char word[67];

    (void)state;
    memset(word, 'w', sizeof word);
    word[64] = 0;
    assert_string_equal(nearest(word, word, ""), word);
    word[64] = 'w';
    word[65] = 0;
    assert_string_equal(nearest(word, word + 1, ""), "");
    assert_string_equal(nearest(word + 1, word, ""), ""); /* nor is such a name one */
    assert_string_equal(nearest("", "a", ""), "");
}

static void the_shard_in_an_id_changes_no_other_bit(void **state)
{
    struct uuid ones, zeros, got;

    (void)state;
    memset(&ones, 0xff, sizeof ones);
    memset(&zeros, 0, sizeof zeros);
    for (uint32_t shard = 0; shard < 1024; shard++) {
        assert_int_equal(shard_of_id(shard_put(ones, shard)), shard);
        assert_int_equal(shard_of_id(shard_put(zeros, shard)), shard);
    }
    got = shard_put(ones, 0);
    assert_int_equal(got.b[8], 0xc0);
    assert_int_equal(got.b[9], 0x0f);
    got.b[8] = got.b[9] = 0xff;
    assert_memory_equal(&got, &ones, sizeof got);
    got = shard_put(zeros, 1023);
    assert_int_equal(got.b[8], 0x3f);
    assert_int_equal(got.b[9], 0xf0);
}

/* By hand: FNV-1a of "a" is af63dc4c8601ec8c, of "" cbf29ce484222325. */
static void the_shard_of_a_key_is_a_hash_that_clients_know(void **state)
{
    (void)state;
    assert_int_equal(shard_of_key(STR_LIT("a"), 64), (0xaf63dc4cu ^ 0x8601ec8cu) % 64);
    assert_int_equal(shard_of_key(STR_LIT("a"), 7), (0xaf63dc4cu ^ 0x8601ec8cu) % 7);
    assert_int_equal(shard_of_key(STR_LIT(""), 7), (0xcbf29ce4u ^ 0x84222325u) % 7);
    assert_int_equal(shard_of_key(STR_LIT("a"), 1), 0);
}

static void a_file_is_replaced_as_a_whole_and_is_the_owners(void **state)
{
    char dir[] = "/tmp/baton-replace-XXXXXX";
    char path[64], link_path[64], text[16] = "";
    struct bt_error err;
    struct stat st;
    FILE *f;

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/file", dir);
    assert_int_equal(file_replace(path, "longer", 6, &err), BT_OK);
    assert_int_equal(file_replace(path, "new", 3, &err), BT_OK);
    f = fopen(path, "re");
    assert_non_null(f);
    assert_int_equal(fread(text, 1, sizeof text, f), 3);
    (void)fclose(f);
    assert_string_equal(text, "new");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    /* what lies at the name of the next one is not followed, and what fails leaves nothing */
    (void)snprintf(link_path, sizeof link_path, "%s.%ld", path, (long)getpid());
    assert_int_equal(symlink(path, link_path), 0);
    assert_int_equal(file_replace(path, "evil", 4, &err), BT_IO);
    assert_non_null(strstr(err.msg, path));
    assert_int_equal(lstat(link_path, &st), -1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_not_equal(file_replace(path, "file", 4, &err), BT_OK); /* a directory is there */
    assert_int_equal(lstat(link_path, &st), -1);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_name_is_suggested),
        cmocka_unit_test(a_name_is_near_with_one_edit_for_three_letters),
        cmocka_unit_test(a_swap_is_of_two_neighbours),
        cmocka_unit_test(a_word_of_65_bytes_gets_no_suggestion),
        cmocka_unit_test(the_shard_in_an_id_changes_no_other_bit),
        cmocka_unit_test(the_shard_of_a_key_is_a_hash_that_clients_know),
        cmocka_unit_test(a_file_is_replaced_as_a_whole_and_is_the_owners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
