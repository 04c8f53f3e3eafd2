/* The map of a fleet that a node writes: what is read of it, and files that are none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/client/fleet_map.h"
#include "tests/support/cmocka.h"

static char dir[] = "/tmp/baton-map-XXXXXX";
static char path[64];

static int make_dir(void **unused)
{
    (void)unused;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/" FLEET_MAP_FILE, dir);
    return 0;
}

static int remove_dir(void **unused)
{
    (void)unused;
    (void)unlink(path);
    return rmdir(dir);
}

static void write_map(const char *text, size_t spaces)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    (void)fputs(text, f);
    for (size_t i = 0; i < spaces; i++) {
        (void)fputc(' ', f);
    }
    assert_int_equal(fclose(f), 0);
}

static void a_shard_is_found_by_its_number_wherever_it_stands(void **unused)
{
    struct fleet_place at;
    struct buf map;

    (void)unused;
    write_map(
        "{\"version\":7,\"shards\":[{\"shard\":1,\"epoch\":3,\"control\":\"tcp://a:1\","
        "\"remote\":\"tls+tcp://b:2\",\"events\":\"tcp://c:3\",\"node\":\"two\",\"here\":true},"
        "{\"shard\":0,\"control\":null,\"here\":1},{\"shard\":3,\"here\":false}]}",
        0);
    assert_true(fleet_map_read(path, &map));
    assert_int_equal(fleet_map_version(doc_from_buf(&map)), 7);
    assert_true(fleet_map_shard(doc_from_buf(&map), 1, &at));
    assert_int_equal(at.epoch, 3);
    assert_true(str_is(at.control, "tcp://a:1") && str_is(at.remote, "tls+tcp://b:2"));
    assert_true(str_is(at.events, "tcp://c:3") && str_is(at.node, "two") && at.here);
    assert_true(fleet_map_shard(doc_from_buf(&map), 0, &at)); /* nobody leads it */
    assert_true(at.control.len == 0 && at.control.ptr != NULL && at.node.len == 0 && !at.here);
    assert_true(fleet_map_shard(doc_from_buf(&map), 3, &at) && !at.here);
    assert_false(fleet_map_shard(doc_from_buf(&map), 2, &at));
    assert_true(at.control.ptr != NULL && at.control.len == 0);
    buf_done(&map);
}

static void a_file_that_is_no_map_is_as_none(void **unused)
{
    static const char *const texts[] = {"", "{", "[1,2", "\xff"};
    struct fleet_place at;
    struct buf map;

    (void)unused;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        write_map(texts[i], 0);
        assert_false(fleet_map_read(path, &map));
        assert_int_equal(map.len, 0);
        buf_done(&map);
    }
    write_map("{\"shards\":7}", 0);
    assert_true(fleet_map_read(path, &map));
    assert_false(fleet_map_shard(doc_from_buf(&map), 0, &at));
    assert_int_equal(fleet_map_version(doc_from_buf(&map)), 0);
    buf_done(&map);
    assert_int_equal(unlink(path), 0);
    assert_false(fleet_map_read(path, &map));
    buf_done(&map);
    assert_int_equal(symlink("/etc/hostname", path), 0);
    assert_false(fleet_map_read(path, &map)); /* a link is not followed */
    buf_done(&map);
    assert_int_equal(unlink(path), 0);
}

static void a_map_ends_at_its_cap(void **unused)
{
    struct buf map;

    (void)unused;
    for (size_t more = 0; more < 2; more++) {
        write_map("{}", (size_t)128 * 1024 - 2 + more);
        assert_int_equal(fleet_map_read(path, &map), more == 0);
        buf_done(&map);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shard_is_found_by_its_number_wherever_it_stands),
        cmocka_unit_test(a_file_that_is_no_map_is_as_none),
        cmocka_unit_test(a_map_ends_at_its_cap),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
