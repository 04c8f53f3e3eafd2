/* What is done with a file of a result, over calls.h: for one source of a program. */
#ifndef TEST_ARTIFACT_CALLS_WORLD_H
#define TEST_ARTIFACT_CALLS_WORLD_H

#include "tests/unit/artifact/calls.h"

#include <dirent.h>

#include "protocol/artifact/artifact.h"
#include "tests/support/golden.h"

#define PLAN "0199A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5B"

enum { MIB = 1024 * 1024, BLOCK = 64 * 1024, DATA = 4 * MIB };

static char top[64];
static char dir[128];
static char spool[128];
static uint8_t *data;
static struct buf said;

static int set_up(void **state)
{
    (void)state;
    (void)umask(0);
    (void)snprintf(top, sizeof top, "/tmp/baton-calls-XXXXXX");
    calls.top = top;
    data = malloc(DATA);
    if (mkdtemp(top) == NULL || data == NULL) {
        return -1;
    }
    for (size_t i = 0; i < DATA; i++) {
        data[i] = (uint8_t)(i * 7 + i / 251);
    }
    (void)snprintf(dir, sizeof dir, "%s/" PLAN, top);
    (void)snprintf(spool, sizeof spool, "%s/spool", top);
    buf_init(&calls.told, GOLDEN_MAX);
    buf_init(&said, GOLDEN_MAX);
    return mkdir(spool, 0700) == 0 && setenv("TMPDIR", spool, 1) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    buf_done(&calls.told);
    buf_done(&said);
    free(data);
    return rmdir(spool) == 0 && rmdir(top) == 0 ? 0 : -1;
}

/* The names in the directory and their lengths; all of them are removed. */
static void tell_files(const char *of, struct buf *out)
{
    struct dirent **names = NULL;
    const int n = scandir(of, &names, NULL, alphasort);
    char path[400];
    struct stat st;

    for (int i = 0; i < n; i++) {
        if (strcmp(names[i]->d_name, ".") != 0 && strcmp(names[i]->d_name, "..") != 0) {
            (void)snprintf(path, sizeof path, "%s/%s", of, names[i]->d_name);
            assert_int_equal(stat(path, &st), 0);
            buf_add_cstr(out, ", ");
            calls_add(out, names[i]->d_name);
            buf_printf(out, " %o %lld", st.st_mode & 07777, (long long)st.st_size);
            assert_int_equal(unlink(path), 0);
        }
        free(names[i]);
    }
    free((void *)names);
    (void)(of == dir && rmdir(dir));
}

static void sum_of(const void *bytes, size_t len, char ret[ARTIFACT_SHA256_LEN + 1])
{
    struct artifact_digest *d = artifact_digest_new();

    artifact_digest_add(d, bytes, len);
    artifact_digest_end(d, ret);
    artifact_digest_free(d);
}

static void put_file(const char *name, size_t len)
{
    char path[400];
    int fd;

    (void)__real_mkdir(dir, 0700);
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    fd = __real_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && __real_write(fd, data, len) == (ssize_t)len && __real_close(fd) == 0);
}

/* ---- what is done ---- */

static enum bt_code write_three(struct artifact_writer *w, struct bt_error *err)
{
    static const size_t parts[] = {5, BLOCK - 5, 1, 2 * BLOCK};
    enum bt_code code = BT_OK;
    size_t at = 0;

    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && code == BT_OK; i++) {
        code = artifact_write(w, data + at, parts[i], err);
        at += parts[i];
    }
    return code;
}

static void tell_whole(uint64_t bytes, const char *sum)
{
    char expected[ARTIFACT_SHA256_LEN + 1];

    assert_true(bytes <= DATA);
    sum_of(data, bytes, expected);
    assert_string_equal(sum, expected);
    buf_printf(&said, "%llu bytes", (unsigned long long)bytes);
}

static enum bt_code writes(struct bt_error *err)
{
    struct artifact_writer *w = NULL;
    char sum[ARTIFACT_SHA256_LEN + 1];
    uint64_t bytes = 0;
    enum bt_code code = artifact_create(dir, "f", &w, err);

    if (code != BT_OK) {
        assert_null(w);
        return code;
    }
    code = write_three(w, err);
    if (code != BT_OK) {
        artifact_abort(w);
        return code;
    }
    code = artifact_commit(w, &bytes, sum, err);
    if (code == BT_OK) {
        tell_whole(bytes, sum);
    }
    return code;
}

static enum bt_code arrives(struct bt_error *err)
{
    static const size_t parts[] = {1, DATA - 2, 1};
    struct artifact_part *p = NULL;
    char sum[ARTIFACT_SHA256_LEN + 1];
    size_t at = 0;
    bool is_done = true;
    enum bt_code code = artifact_part_open(dir, "f", &p, err);

    if (code != BT_OK) {
        assert_null(p);
        return code;
    }
    sum_of(data, DATA, sum);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && code == BT_OK; i++) {
        code = artifact_part_add(p, data + at, parts[i], err);
        at += code == BT_OK ? parts[i] : 0;
        assert_int_equal(artifact_part_bytes(p), at);
    }
    code = code == BT_OK ? artifact_part_commit(p, str_from(sum), &is_done, err) : code;
    if (code == BT_OK) {
        buf_printf(&said, "%s", is_done ? "done" : "not done");
    } else {
        assert_true(at < DATA || !is_done);
    }
    artifact_part_close(p);
    return code;
}

/* The name of what was received of the file "f". */
static void part_name(char ret[8 + ARTIFACT_SHA256_LEN])
{
    char sum[ARTIFACT_SHA256_LEN + 1];

    sum_of("f", 1, sum);
    (void)snprintf(ret, 8 + ARTIFACT_SHA256_LEN, ".part-%s", sum);
}

static void put_whole(void)
{
    put_file("f", 4 * BLOCK + 1);
}

static const struct artifact_place place = {.plan = PLAN, .file = "f"};

static enum bt_code opens(struct bt_error *err)
{
    char sum[ARTIFACT_SHA256_LEN + 1];
    struct artifact_claim claim = {.bytes = 4 * BLOCK + 1};
    uint8_t byte = 0;
    int fd = -1;
    enum bt_code code;

    sum_of(data, 4 * BLOCK + 1, sum);
    claim.sha256 = str_from(sum);
    code = artifact_open(top, &place, &claim, NULL, NULL, &fd, err);
    if (code == BT_OK) {
        assert_int_equal(__real_read(fd, &byte, 1), 1);
        assert_int_equal(byte, data[0]);
        (void)close(fd);
    } else {
        assert_int_equal(fd, -1);
    }
    return code;
}

static enum bt_code reads_at(struct bt_error *err)
{
    uint8_t have[1000];
    size_t n = 9;
    uint64_t total = 9;
    const enum bt_code code =
        artifact_read_at(top, &place, 4 * BLOCK + 1 - 900, have, sizeof have, &n, &total, err);

    if (code == BT_OK) {
        buf_printf(&said, "%zu of %llu bytes", n, (unsigned long long)total);
        assert_memory_equal(have, data + 4 * BLOCK + 1 - 900, n);
    }
    return code;
}

static enum bt_code looks(struct bt_error *err)
{
    uint64_t bytes = 0;
    const enum bt_code code = artifact_stat(top, &place, &bytes, err);

    if (code == BT_OK) {
        buf_printf(&said, "%llu bytes", (unsigned long long)bytes);
    }
    return code;
}
#endif
