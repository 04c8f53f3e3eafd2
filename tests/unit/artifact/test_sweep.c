/* What becomes of the files of plans: those that results name stay for their time, and nothing that
 * is not of an ended plan is touched. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/artifact/sweep_rig.h"

#define OTHER_PLAN "0190F3C2-7A1B-7C3D-9E4F-0123456789AB"

static void at_the_end_only_what_a_result_names_stays(void **state)
{
    struct house *h = open_house(0);
    const char *id = ended_plan(h);
    char path[256];
    struct stat st;

    (void)state;
    (void)slices(h);
    write_file(id, "a@1.0@late", "late");
    (void)snprintf(path, sizeof path, "%s/%s/" ARTIFACT_ENDED, root, id);
    assert_true(chmod(path, 0600) == 0); /* as a daemon leaves it that dies while it sorts out */
    ends(id);
    (void)slices(h);
    assert_string_equal(files(id), ARTIFACT_ENDED " a@1.1@g ");
    assert_true(stat(path, &st) == 0 && (st.st_mode & 0777) == 0400);
    write_file(id, "x", "later"); /* it is sorted out: it is not looked at again */
    ends(id);
    (void)slices(h);
    assert_string_equal(files(id), ARTIFACT_ENDED " a@1.1@g x ");
    close_house(h);
}

/* What a result says of another plan, or of elsewhere, is no file of its own. */
static void files_of_another_place_keep_none_of_the_same_name(void **state)
{
    static const char *const elsewhere[] = {OTHER_PLAN "/a@1.0@late", OTHER_PLAN "/../a@1.0@late",
                                            "a@1.0@late"};
    struct house *h = open_house(0);

    (void)state;
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
        const char *id = house_submit(h, ONE);
        write_file(id, "a@1.0@late", "late");
        house_done(h, "calc",
                   "'result':{'text':'x','artifacts':[{'name':'g','uri':'file://%s/%s'}]}", root,
                   elsewhere[i]);
        ends(id);
        (void)slices(h);
        gone(id);
    }
    close_house(h);
}

static void a_plan_whose_results_name_no_file_leaves_no_directory(void **state)
{
    struct house *h = open_house(0);
    const char *id = house_submit(
        h, "'plan':{'goal':'g','steps':[" STEP("a", "") "," STEP("b", "") "," STEP("c", "") "]}");

    (void)state;
    write_file(id, "a@1.1@g", "hello");
    house_done(h, "calc", "'result':{'text':'x','artifacts':[]}");
    house_done(h, "calc", "'result':{'text':'x'}");
    house_failed(h, "calc", "PERMISSION_DENIED", false); /* no result at all */
    ends(id);
    (void)slices(h);
    gone(id);
    close_house(h);
}

static void files_of_an_open_plan_stay(void **state)
{
    struct house *h = open_house(1);
    const char *id =
        house_submit(h, "'plan':{'goal':'g','steps':[" STEP("a", ",'requiresApproval':true") "]}");

    (void)state;
    write_file(id, "a@1.1@g", "hello");
    write_file(id, ".g.tmp", "hel");
    ends(id);
    (void)slices(h);
    later(h, KEEP_MS);
    later(h, 2 * HOUR);
    assert_string_equal(files(id), ".g.tmp a@1.1@g ");
    close_house(h);
}

static void only_directories_with_the_id_of_a_plan_are_touched(void **state)
{
    static const char *const not_ours[] = {"not-a-plan", "0190f3c2-7a1b-7c3d-9e4f-0123456789ab",
                                           "0190F3C2-7A1B-7C3D-9E4F-0123456789ABC", "elsewhere"};
    static const char unknown[] = "0190F3C2-7A1B-7C3D-9E4F-0123456789AB";
    static const char linked[] = "0190F3C2-7A1B-7C3D-9E4F-0123456789AC";
    struct house *h = open_house(0);
    char path[256];
    char to[256];

    (void)state;
    for (size_t i = 0; i < sizeof not_ours / sizeof not_ours[0]; i++) {
        write_file(not_ours[i], "x", "x");
    }
    write_file(unknown, "x", "x");
    (void)snprintf(path, sizeof path, "%s/%s", root, linked);
    (void)snprintf(to, sizeof to, "%s/elsewhere", root);
    assert_int_equal(symlink(to, path), 0);
    (void)slices(h);
    for (size_t i = 0; i < sizeof not_ours / sizeof not_ours[0]; i++) {
        assert_string_equal(files(not_ours[i]), "x ");
    }
    gone(unknown);
    close_house(h);
}

static void files_stay_for_their_time(void **state)
{
    struct house *h = open_house(0);
    const char *id = ended_plan(h);

    (void)state;
    (void)slices(h); /* the pass of the start */
    assert_string_equal(files(id), ARTIFACT_ENDED " a@1.1@g ");
    assert_int_equal(sweep_deadline(sweep), h->now + KEEP_MS);
    later(h, KEEP_MS - 1);
    assert_string_equal(files(id), ARTIFACT_ENDED " a@1.1@g ");
    later(h, 1);
    gone(id);
    assert_int_equal(sweep_deadline(sweep), h->now + HOUR);
    close_house(h);
}

static void the_plans_that_ended_first_make_room_for_the_others(void **state)
{
    struct house *h = open_house(15); /* three files of five bytes */
    const char *ids[4];

    (void)state;
    for (int i = 0; i < 3; i++) {
        ids[i] = ended_plan(h);
        house_wait(h, 1000);
    }
    (void)slices(h);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(files(ids[i]), ARTIFACT_ENDED " a@1.1@g ");
    }
    ids[3] = ended_plan(h);
    ends(ids[3]);
    (void)slices(h);
    assert_int_equal(sweep_deadline(sweep), h->now + 10000);
    house_wait(h, 9999);
    (void)slices(h);
    assert_non_null(files(ids[0]));
    house_wait(h, 1);
    (void)slices(h);
    gone(ids[0]);
    for (int i = 1; i < 4; i++) {
        assert_string_equal(files(ids[i]), ARTIFACT_ENDED " a@1.1@g ");
    }
    ids[0] = ended_plan(h); /* and each pass counts anew */
    ends(ids[0]);
    (void)slices(h);
    house_wait(h, 10000);
    (void)slices(h);
    gone(ids[1]);
    assert_non_null(files(ids[2]));
    close_house(h);
}

static void a_slice_looks_at_sixteen_directories(void **state)
{
    struct house *h = open_house(0);
    char id[64];

    (void)state;
    for (int i = 0; i < 4 * PASS_PLANS; i++) {
        (void)snprintf(id, sizeof id, "0190F3C2-7A1B-7C3D-9E4F-0123456789%02X", i);
        write_file(id, "x", "x");
    }
    house_cycle_once(h);
    sweep_cycle(sweep); /* begins */
    sweep_cycle(sweep);
    {
        int left = 0;
        for (int i = 0; i < 4 * PASS_PLANS; i++) {
            (void)snprintf(id, sizeof id, "0190F3C2-7A1B-7C3D-9E4F-0123456789%02X", i);
            left += files(id) != NULL ? 1 : 0;
        }
        assert_in_range(left, 3 * PASS_PLANS, 3 * PASS_PLANS + 2); /* . and .. are looked at */
    }
    (void)slices(h);
    gone(id);
    close_house(h);
}

static void a_slice_removes_a_thousand_files(void **state)
{
    static const char unknown[] = "0190F3C2-7A1B-7C3D-9E4F-0123456789AB";
    struct house *h = open_house(0);
    struct dirent **names = NULL;
    char path[256];
    char name[32];
    int n;

    (void)state;
    (void)slices(h); /* the pass of the start */
    for (int i = 0; i < SLICE_FILES + 1; i++) {
        (void)snprintf(name, sizeof name, "x%d", i);
        write_file(unknown, name, "");
    }
    ends(unknown);
    sweep_cycle(sweep);
    (void)snprintf(path, sizeof path, "%s/%s", root, unknown);
    n = scandir(path, &names, NULL, NULL);
    for (int i = 0; i < n; i++) {
        free(names[i]);
    }
    free((void *)names);
    assert_int_equal(n - 2, 1);
    assert_int_equal(sweep_deadline(sweep), 0);
    (void)slices(h);
    gone(unknown);
    close_house(h);
}

static void more_ends_than_the_queue_has_make_a_pass(void **state)
{
    struct house *h = open_house(0);
    char id[64];

    (void)state;
    (void)slices(h);
    for (int i = 0; i < QUEUE + 1; i++) {
        (void)snprintf(id, sizeof id, "0190F3C2-7A1B-7C3D-9E4F-0123456789%02X", i % 256);
        ends(id);
    }
    write_file("0190F3C2-7A1B-7C3D-9E4F-00000000000A", "x", "x");
    assert_true(slices(h) >= QUEUE + 2); /* each end has its slice */
    gone("0190F3C2-7A1B-7C3D-9E4F-00000000000A");
    close_house(h);
}

/* The plan itself, then its rows. */
static void what_cannot_be_read_keeps_its_files(void **state)
{
    struct house *h = open_house(0);
    const char *id = ended_plan(h);

    (void)state;
    house_cycle_once(h);
    for (uint32_t n = 1; n < 3; n++) {
        house_fail_read(h, n);
        ends(id);
        sweep_cycle(sweep);
        assert_true(h->reads >= n);
        house_fail_read(h, 0);
        assert_non_null(strstr(files(id), "a@1.0@late a@1.1@g "));
    }
    assert_int_equal(slices(h), 2); /* none of these ends is asked for again: a pass, of a slice */
    assert_string_equal(files(id), ARTIFACT_ENDED " a@1.1@g ");
    close_house(h);
}

static void without_its_directory_nothing_is_done(void **state)
{
    struct house *h = open_house(0);
    const char *id = ended_plan(h);
    char moved[80];

    (void)state;
    (void)slices(h);
    (void)snprintf(moved, sizeof moved, "%s.moved", root);
    assert_int_equal(rename(root, moved), 0);
    ends(id);
    (void)slices(h);
    assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0); /* no file of another is closed */
    assert_int_equal(rename(moved, root), 0);
    assert_string_equal(files(id), ARTIFACT_ENDED " a@1.1@g ");
    close_house(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_the_end_only_what_a_result_names_stays),
        cmocka_unit_test(files_of_another_place_keep_none_of_the_same_name),
        cmocka_unit_test(a_plan_whose_results_name_no_file_leaves_no_directory),
        cmocka_unit_test(files_of_an_open_plan_stay),
        cmocka_unit_test(only_directories_with_the_id_of_a_plan_are_touched),
        cmocka_unit_test(files_stay_for_their_time),
        cmocka_unit_test(the_plans_that_ended_first_make_room_for_the_others),
        cmocka_unit_test(a_slice_looks_at_sixteen_directories),
        cmocka_unit_test(a_slice_removes_a_thousand_files),
        cmocka_unit_test(more_ends_than_the_queue_has_make_a_pass),
        cmocka_unit_test(what_cannot_be_read_keeps_its_files),
        cmocka_unit_test(without_its_directory_nothing_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
