/* Zones by their names, from a directory that the test makes: found once, read again when changed,
 * and names that are none with what may have been meant. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/zone/zones.h"
#include "tests/support/cmocka.h"

enum { ZONES_MAX = 1024 };

static char dir[64];
static struct zones *zones;

/* A file with this rule and no change, in the place of the one that is there. */
static void make(const char *name, const char *rule)
{
    char block[54] = "TZif2";
    char path[512];
    char other[600];
    FILE *f;

    block[39] = 1; /* types */
    block[43] = 4; /* letters of their names */
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    (void)snprintf(other, sizeof other, "%s.new", path);
    f = fopen(other, "we");
    assert_non_null(f);
    for (int i = 0; i < 2 && rule != NULL; i++) {
        assert_int_equal(fwrite(block, 1, sizeof block, f), sizeof block);
    }
    (void)fprintf(f, "\n%s\n", rule != NULL ? rule : "no rule");
    assert_int_equal(fclose(f), 0);
    assert_int_equal(rename(other, path), 0);
}

static void make_dir(const char *name)
{
    char path[256];

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static int set_up(void **state)
{
    struct bt_error err;

    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/baton-zones-XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(setenv("TZDIR", dir, 1), 0);
    make_dir("Europe");
    make("Europe/Berlin", "CET-1");
    make("Japan", "JST-9");
    assert_int_equal(zones_new(&zones, &err), BT_OK);
    return 0;
}

static int tear_down(void **state)
{
    int status;
    pid_t pid;

    (void)state;
    zones_free(zones);
    pid = fork();
    if (pid == 0) {
        (void)execlp("rm", "rm", "-rf", dir, (char *)NULL);
        _exit(1);
    }
    return waitpid(pid, &status, 0) == pid ? 0 : -1;
}

static uint16_t found(const char *name)
{
    struct bt_error err;
    uint16_t id = 999;

    if (zones_find(zones, str_from(name), &id, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    return id;
}

static void refused(struct str name, enum bt_code want, const char *says)
{
    struct bt_error err;
    uint16_t id;

    assert_int_equal(zones_find(zones, name, &id, &err), want);
    if (strstr(err.msg, says) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.msg, says);
    }
}

static void a_zone_is_read_once_and_found_by_its_number(void **state)
{
    const uint16_t berlin = found("Europe/Berlin");
    const uint16_t japan = found("Japan");

    (void)state;
    assert_int_equal(found(""), 0);
    assert_int_equal(found("UTC"), 0);
    assert_string_equal(zones_name(zones, 0), "UTC");
    assert_int_equal(zone_offset(zones_at(zones, 0), 0), 0);
    assert_true(berlin != 0 && japan != 0 && berlin != japan);
    assert_int_equal(found("Europe/Berlin"), berlin);
    assert_int_equal(found("Japan"), japan);
    assert_string_equal(zones_name(zones, japan), "Japan");
    assert_int_equal(zone_offset(zones_at(zones, berlin), 0), 3600);
    assert_int_equal(zone_offset(zones_at(zones, japan), 0), 9 * 3600);
}

static void a_name_that_is_none_brings_the_nearest_one(void **state)
{
    char longest[ZONE_NAME_MAX + 2];

    (void)state;
    refused(STR_LIT("berlin"), BT_NOT_FOUND,
            "'berlin' is no time zone: did you mean Europe/Berlin");
    refused(STR_LIT("europe/berlin"), BT_NOT_FOUND, "did you mean Europe/Berlin");
    refused(STR_LIT("Japn"), BT_NOT_FOUND, "did you mean Japan");
    refused(STR_LIT("Mars/Base"), BT_NOT_FOUND, "use a name of tzdata");
    refused(STR_LIT("Europe"), BT_NOT_FOUND, "is no time zone"); /* a directory */
    refused(STR_LIT("../Japan"), BT_NOT_FOUND, "is no time zone");
    refused(STR_LIT("/etc/passwd"), BT_NOT_FOUND, "is no time zone");
    memset(longest, 'x', sizeof longest);
    refused((struct str){longest, ZONE_NAME_MAX}, BT_NOT_FOUND, "is no time zone");
    refused((struct str){longest, ZONE_NAME_MAX + 1}, BT_NOT_FOUND, "is no time zone");
    make("Japan.txt", "X-1"); /* what tzdata has no name for */
    refused(STR_LIT("Japan.txt"), BT_NOT_FOUND, "is no time zone");
}

static void without_tzdata_the_package_is_named(void **state)
{
    struct zones *none = NULL;
    struct bt_error err;
    uint16_t id;

    (void)state;
    assert_int_equal(setenv("TZDIR", "/no/such", 1), 0);
    assert_int_equal(zones_new(&none, &err), BT_OK);
    assert_int_equal(zones_find(none, STR_LIT("Japan"), &id, &err), BT_NOT_FOUND);
    assert_non_null(strstr(err.msg, "install the package tzdata"));
    assert_int_equal(zones_find(none, STR_LIT("UTC"), &id, &err), BT_OK);
    zones_free(none);
}

static void a_file_that_is_none_is_an_error_of_its_own(void **state)
{
    (void)state;
    make("Broken", NULL);
    refused(STR_LIT("Broken"), BT_IO, "is no file of a time zone");
    make("Broken", "CET-1");
    assert_int_equal(zone_offset(zones_at(zones, found("Broken")), 0), 3600);
}

static void a_new_tzdata_is_read_again_and_one_that_is_gone_or_broken_is_not(void **state)
{
    const uint16_t berlin = found("Europe/Berlin");
    const uint16_t japan = found("Japan");
    char path[256];

    (void)state;
    assert_false(zones_refresh(zones));
    make("Europe/Berlin", "CET-2");
    assert_true(zones_refresh(zones));
    assert_int_equal(zone_offset(zones_at(zones, berlin), 0), 7200);
    assert_int_equal(zone_offset(zones_at(zones, japan), 0), 9 * 3600);
    assert_false(zones_refresh(zones));
    make("Europe/Berlin", NULL);
    assert_false(zones_refresh(zones));
    assert_int_equal(zone_offset(zones_at(zones, berlin), 0), 7200);
    (void)snprintf(path, sizeof path, "%s/Japan", dir);
    assert_int_equal(unlink(path), 0);
    assert_false(zones_refresh(zones));
    assert_int_equal(zone_offset(zones_at(zones, japan), 0), 9 * 3600);
}

static void a_process_knows_so_many_zones(void **state)
{
    char name[32];

    (void)state;
    for (int i = 0; i < ZONES_MAX; i++) {
        (void)snprintf(name, sizeof name, "Z%d", i);
        make(name, "CET-1");
        assert_int_equal(found(name), i + 1);
    }
    refused(STR_LIT("Japan"), BT_NOMEM, "time zones");
    assert_int_equal(found("Z7"), 8); /* those that are known are found */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_zone_is_read_once_and_found_by_its_number),
        TEST(a_name_that_is_none_brings_the_nearest_one),
        TEST(without_tzdata_the_package_is_named),
        TEST(a_file_that_is_none_is_an_error_of_its_own),
        TEST(a_new_tzdata_is_read_again_and_one_that_is_gone_or_broken_is_not),
        TEST(a_process_knows_so_many_zones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
