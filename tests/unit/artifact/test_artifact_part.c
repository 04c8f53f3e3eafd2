/* Files that arrive in parts: what is there counts, whoever brought it, and nothing of a file that
 * is another one stays. */
#include "tests/support/cmocka.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/artifact/artifact.h"
#include "protocol/limits.h"
#include "supervisor/artifacts/arriving.h"

enum {
    CHECKED_BY_ONE_CALL = 8 * 1024 * 1024,
    OPEN_AT_A_TIME = 32,
    IDLE_MS = 60 * 1000,
    NOW = 1000
};

static char top[64];
static char dir[128];
static uint8_t *data;
static struct arriving *arriving;

static int set_up(void **state)
{
    struct bt_error err;

    (void)state;
    (void)snprintf(top, sizeof top, "/tmp/baton-parts-XXXXXX");
    data = malloc(LIMIT_ARTIFACT_PART + 1);
    if (mkdtemp(top) == NULL || data == NULL || arriving_new(&arriving, &err) != BT_OK) {
        return -1;
    }
    for (size_t i = 0; i <= LIMIT_ARTIFACT_PART; i++) {
        data[i] = (uint8_t)(i * 7 + i / 251);
    }
    (void)snprintf(dir, sizeof dir, "%s/plan", top);
    return 0;
}

static bool is_part(const char *name)
{
    return strncmp(name, ".part-", 6) == 0;
}

/* The names in the directory, sorted, those of parts as a star. drop: removes the parts, or all. */
enum drop { NOTHING, PARTS, ALL };
static const char *files(enum drop drop)
{
    static char text[1024];
    struct dirent **names = NULL;
    const int n = scandir(dir, &names, NULL, alphasort);
    char path[400];

    text[0] = 0;
    for (int i = 0; i < n; i++) {
        const char *name = names[i]->d_name;
        const size_t len = strlen(text);
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            (void)snprintf(text + len, sizeof text - len, "%s ", is_part(name) ? "*" : name);
            (void)snprintf(path, sizeof path, "%s/%s", dir, name);
            if (drop == ALL || (drop == PARTS && is_part(name))) {
                assert_int_equal(unlink(path), 0);
            }
        }
        free(names[i]);
    }
    free((void *)names);
    return text;
}

static int tear_down(void **state)
{
    char path[128];

    (void)state;
    arriving_tidy(arriving, MSEC_NEVER);
    free(arriving);
    free(data);
    (void)files(ALL);
    (void)rmdir(dir);
    (void)snprintf(path, sizeof path, "%s/other", top);
    (void)unlink(path);
    return rmdir(top);
}

static const char *sum_of(size_t len)
{
    static char sum[ARTIFACT_SHA256_LEN + 1];
    struct artifact_digest *d = artifact_digest_new();

    artifact_digest_add(d, data, len);
    artifact_digest_end(d, sum);
    artifact_digest_free(d);
    return sum;
}

/* So many bytes after them; the code of the answer. */
static enum bt_code add(const char *file, uint64_t offset, size_t len, uint64_t *ret_bytes)
{
    struct bt_error err;

    return arriving_add(arriving, dir, file, offset, (struct str){(const char *)data + offset, len},
                        NOW, ret_bytes, &err);
}

static enum bt_code end(const char *file, uint64_t len, const char *sum, uint64_t *ret_bytes,
                        bool *ret_done)
{
    struct bt_error err;

    return arriving_end(arriving, dir, file, len, str_from(sum), NOW, ret_bytes, ret_done, &err);
}

static void is_file(const char *file, size_t len)
{
    char path[300];
    uint8_t *have = malloc(len + 1);
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", dir, file);
    f = fopen(path, "r");
    assert_true(f != NULL && have != NULL);
    assert_int_equal(fread(have, 1, len + 1, f), len);
    assert_memory_equal(have, data, len);
    (void)fclose(f);
    free(have);
}

static void files_of_every_size_arrive_whole(void **state)
{
    static const size_t sizes[] = {0, 1, LIMIT_ARTIFACT_PART, LIMIT_ARTIFACT_PART + 1};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t have = 0;
        bool is_done = false;
        while (have < sizes[i]) {
            const size_t left = sizes[i] - (size_t)have;
            assert_int_equal(
                add("f", have, left < LIMIT_ARTIFACT_PART ? left : LIMIT_ARTIFACT_PART, &have),
                BT_OK);
        }
        assert_int_equal(end("f", sizes[i], sum_of(sizes[i]), &have, &is_done), BT_OK);
        assert_true(is_done && have == sizes[i]);
        assert_string_equal(files(NOTHING), "f ");
        is_file("f", sizes[i]);
    }
}

/* An answer was lost, or another connection has brought them. */
static void bytes_that_are_there_are_not_written_again(void **state)
{
    uint64_t have = 0;
    bool is_done = false;

    (void)state;
    assert_int_equal(add("f", 0, 10, &have), BT_OK);
    assert_int_equal(add("f", 0, 10, &have), BT_OK);
    assert_int_equal(have, 10);
    assert_int_equal(add("f", 11, 5, &have), BT_OK); /* a gap */
    assert_int_equal(have, 10);
    assert_int_equal(end("f", 15, sum_of(15), &have, &is_done), BT_OK);
    assert_true(!is_done && have == 10);
    assert_string_equal(files(NOTHING), "* ");
    assert_int_equal(add("f", 10, 5, &have), BT_OK);
    for (int i = 0; i < 2; i++) { /* the second time its answer was lost */
        assert_int_equal(end("f", 15, sum_of(15), &have, &is_done), BT_OK);
        assert_true(is_done && have == 15);
    }
    is_file("f", 15);
}

static void another_checksum_leaves_nothing(void **state)
{
    uint64_t have = 0;
    bool is_done = true;

    (void)state;
    assert_int_equal(add("f", 0, 10, &have), BT_OK);
    assert_int_equal(end("f", 10, sum_of(9), &have, &is_done), BT_INVALID);
    assert_false(is_done);
    assert_string_equal(files(NOTHING), "");
    assert_int_equal(end("f", 10, sum_of(10), &have, &is_done), BT_OK);
    assert_true(!is_done && have == 0); /* from the beginning */
}

/* The daemon was restarted, or others needed the place: the next bytes go on after those on the
 * disk, which are hashed then. */
static void a_file_goes_on_after_it_was_closed(void **state)
{
    const size_t part = LIMIT_ARTIFACT_PART;
    struct bt_error err;
    uint64_t have = 0;
    bool is_done = false;

    (void)state;
    assert_int_equal(add("first", 0, part, &have), BT_OK);
    for (int i = 0; i < OPEN_AT_A_TIME; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(arriving_add(arriving, dir, name, 0, STR_LIT("x"), NOW + 1, &have, &err),
                         BT_OK);
    }
    assert_int_equal(add("first", part, 1, &have), BT_OK);
    assert_int_equal(have, part + 1);
    assert_int_equal(end("first", part + 1, sum_of(part + 1), &have, &is_done), BT_OK);
    assert_true(is_done);
    is_file("first", part + 1);
}

static void what_nobody_asks_for_is_closed_after_a_minute(void **state)
{
    struct bt_error err;
    uint64_t have = 0;

    (void)state;
    assert_int_equal(add("f", 0, 10, &have), BT_OK);
    arriving_tidy(arriving, NOW + IDLE_MS - 1);
    assert_string_equal(files(PARTS), "* ");
    assert_int_equal(add("f", 10, 1, &have), BT_GONE); /* still open: its file has gone */
    assert_int_equal(add("f", 0, 10, &have), BT_OK);
    arriving_tidy(arriving, NOW + IDLE_MS);
    assert_string_equal(files(PARTS), "* ");
    assert_int_equal(arriving_add(arriving, dir, "f", 0, STR_LIT("x"), NOW + IDLE_MS, &have, &err),
                     BT_OK);
    assert_int_equal(have, 1);
}

/* Whether the file, whose part was removed, is still open after so many bytes. */
static bool is_open(const char *file, uint64_t len)
{
    struct bt_error err;
    uint64_t have = 0;
    const enum bt_code code =
        arriving_add(arriving, dir, file, len, STR_LIT("x"), NOW + 100, &have, &err);

    assert_true(code == BT_OK || code == BT_GONE);
    return code == BT_GONE;
}

/* One more file than may be open closes the one that waited longest, and no other. */
static void of_files_that_arrive_the_one_that_waited_longest_is_closed(void **state)
{
    char name[16];
    uint64_t have;
    struct bt_error err;

    (void)state;
    for (int more = 0; more < 2; more++) {
        for (int i = 0; i < OPEN_AT_A_TIME + more; i++) {
            /* the fourth one was asked for first */
            const msec now =
                i == OPEN_AT_A_TIME ? 99 : (msec)((i + OPEN_AT_A_TIME - 3) % OPEN_AT_A_TIME);
            (void)snprintf(name, sizeof name, "n%d", i);
            assert_int_equal(
                arriving_add(arriving, dir, name, 0, STR_LIT("x"), NOW + now, &have, &err), BT_OK);
        }
        (void)files(PARTS);
        for (int i = OPEN_AT_A_TIME + more - 1; i >= 0;
             i--) { /* which closes those that were open */
            (void)snprintf(name, sizeof name, "n%d", i);
            if (more == 0 || i != 3) {
                assert_true(is_open(name, 1));
            }
        }
        assert_false(more == 1 && is_open("n3", 1));
        arriving_tidy(arriving, MSEC_NEVER);
    }
}

/* A whole file is remembered by its name, length and checksum, in letters of either case. */
static void the_answer_for_a_whole_file_is_given_again_for_the_same_file_only(void **state)
{
    char sum[ARTIFACT_SHA256_LEN + 1];
    uint64_t have = 0;
    bool is_done = false;
    struct bt_error err;

    (void)state;
    assert_int_equal(add("f", 0, 10, &have), BT_OK);
    assert_int_equal(end("f", 10, sum_of(10), &have, &is_done), BT_OK);
    assert_true(is_done);
    (void)snprintf(sum, sizeof sum, "%s", sum_of(10));
    for (int i = 0; i < ARTIFACT_SHA256_LEN; i++) {
        sum[i] = (char)(sum[i] >= 'a' ? sum[i] - 'a' + 'A' : sum[i]);
    }
    is_done = false;
    assert_int_equal(end("f", 10, sum, &have, &is_done), BT_OK);
    assert_true(is_done && have == 10);
    sum[ARTIFACT_SHA256_LEN - 1] = 0; /* and none of a digit less */
    assert_int_equal(end("f", 10, sum, &have, &is_done), BT_OK);
    assert_true(!is_done && have == 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(arriving_add(arriving, dir, "g", 0, STR_LIT("x"), NOW, &have, &err),
                         BT_OK);
        have = 0;
        if (i == 0) { /* another name, length, or checksum */
            assert_int_equal(end("h", 1, sum_of(10), &have, &is_done), BT_OK);
        } else if (i == 1) {
            assert_int_equal(end("g", 2, sum_of(10), &have, &is_done), BT_OK);
            assert_int_equal(have, 1);
        } else {
            assert_int_equal(end("g", 1, sum_of(10), &have, &is_done), BT_INVALID);
        }
        assert_false(is_done);
    }
}

/* The minute begins with the last request, also of one that only asks for the end. */
static void asking_for_the_end_keeps_a_file_open(void **state)
{
    uint64_t have = 0;
    bool is_done = false;
    struct bt_error err;

    (void)state;
    assert_int_equal(add("f", 0, 10, &have), BT_OK);
    assert_int_equal(
        arriving_end(arriving, dir, "f", 11, str_from(sum_of(11)), NOW + 5, &have, &is_done, &err),
        BT_OK);
    assert_int_equal(have, 10);
    arriving_tidy(arriving, NOW + 5 + IDLE_MS - 1);
    (void)files(PARTS);
    assert_true(is_open("f", 10));
}

static void a_long_file_of_before_is_hashed_in_pieces(void **state)
{
    const size_t part = LIMIT_ARTIFACT_PART;
    struct artifact_part *p = NULL;
    struct artifact_digest *d = artifact_digest_new();
    char sum[ARTIFACT_SHA256_LEN + 1];
    struct bt_error err;
    int calls = 1;
    bool is_done = false;

    (void)state;
    assert_int_equal(artifact_part_open(dir, "f", &p, &err), BT_OK);
    while (artifact_part_bytes(p) <= 2 * (uint64_t)CHECKED_BY_ONE_CALL) {
        assert_int_equal(artifact_part_add(p, data, part, &err), BT_OK);
        artifact_digest_add(d, data, part);
    }
    artifact_digest_end(d, sum);
    artifact_digest_free(d);
    artifact_part_close(p);
    assert_int_equal(artifact_part_open(dir, "f", &p, &err), BT_OK);
    for (;; calls++) {
        assert_int_equal(artifact_part_commit(p, str_from(sum), &is_done, &err), BT_OK);
        if (is_done) {
            break;
        }
        assert_string_equal(files(NOTHING), "* ");
    }
    assert_int_equal(calls, 3);
    assert_string_equal(files(NOTHING), "f ");
    artifact_part_close(p);
}

static void a_plan_that_has_ended_takes_nothing(void **state)
{
    char path[300];
    uint64_t have = 0;
    bool is_done = false;
    int fd;

    (void)state;
    assert_int_equal(add("f", 0, 10, &have), BT_OK);
    (void)snprintf(path, sizeof path, "%s/" ARTIFACT_ENDED, dir);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && close(fd) == 0);
    assert_int_equal(end("f", 10, sum_of(10), &have, &is_done), BT_GONE);
    assert_int_equal(add("f", 10, 1, &have), BT_GONE);
    assert_int_equal(add("g", 0, 1, &have), BT_GONE);
    assert_false(is_done);
    assert_string_equal(files(NOTHING), ".ended * ");
}

static void a_plan_has_files_when_it_has_a_directory(void **state)
{
    static const char id[] = "0190F3C2-7A1B-7C3D-9E4F-0123456789AB";
    char path[128];

    (void)state;
    assert_false(artifact_plan_has_files(top, str_from(id)));
    (void)snprintf(path, sizeof path, "%s/%s", top, id);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_true(artifact_plan_has_files(top, str_from(id)));
    assert_false(artifact_plan_has_files(top, (struct str){id, sizeof id - 2}));
    assert_int_equal(rmdir(path), 0);
}

/* The name of the parts of the file "f". */
static void part_of_f(char ret[300])
{
    struct artifact_digest *d = artifact_digest_new();
    char sum[ARTIFACT_SHA256_LEN + 1];

    artifact_digest_add(d, "f", 1);
    artifact_digest_end(d, sum);
    artifact_digest_free(d);
    (void)snprintf(ret, 300, "%s/.part-%s", dir, sum);
}

/* Who may write to the directory is the daemon's user, and still: no link is followed. */
static void a_link_in_the_place_of_the_parts_is_refused(void **state)
{
    char other[128];
    char part[300];
    uint64_t have = 0;
    struct stat st;
    FILE *f;

    (void)state;
    (void)snprintf(other, sizeof other, "%s/other", top);
    f = fopen(other, "w");
    assert_true(f != NULL && fclose(f) == 0);
    part_of_f(part);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(add("f", 0, 1, &have), BT_OK);
        arriving_tidy(arriving, NOW + IDLE_MS);
        assert_int_equal(unlink(part), 0);
        assert_int_equal(i == 0 ? symlink(other, part) : link(other, part), 0);
        assert_int_not_equal(add("f", 0, 1, &have), BT_OK);
        assert_int_equal(have, 0);
        assert_true(stat(other, &st) == 0 && st.st_size == 0);
        assert_int_equal(unlink(part), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_of_every_size_arrive_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bytes_that_are_there_are_not_written_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(another_checksum_leaves_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_goes_on_after_it_was_closed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_nobody_asks_for_is_closed_after_a_minute, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(of_files_that_arrive_the_one_that_waited_longest_is_closed,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_answer_for_a_whole_file_is_given_again_for_the_same_file_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(asking_for_the_end_keeps_a_file_open, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_long_file_of_before_is_hashed_in_pieces, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_plan_has_files_when_it_has_a_directory, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_plan_that_has_ended_takes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_link_in_the_place_of_the_parts_is_refused, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
