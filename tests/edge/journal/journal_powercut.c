/*
 * G1: a power cut at any moment. Builds the disk as it may be then from the log of writes: each
 * 512-byte sector that was not synced is kept, dropped or torn, in any combination.
 */
#include "tests/support/cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/edge/journal/vfs_shim.h"
#include "tests/edge/journal/workload.h"
#include "tests/support/random.h"
#include "tests/unit/journal/journal_fixture.h"

enum { SECTOR = 512, BATCHES = 30, RANDOM_POINTS = 300 };

struct image {
    uint8_t *at;
    size_t len;
    size_t cap;
};

static void image_size(struct image *m, size_t len)
{
    if (len > m->cap) {
        m->cap = len * 2;
        m->at = realloc(m->at, m->cap);
        assert_non_null(m->at);
    }
    if (len > m->len) {
        memset(m->at + m->len, 0, len - m->len);
    }
    m->len = len;
}

static void image_write(struct image *m, uint64_t at, const uint8_t *bytes, size_t n)
{
    if (at + n > m->len) {
        image_size(m, at + n);
    }
    memcpy(m->at + at, bytes, n);
}

static void image_load(struct image *m, const char *dir, const char *name)
{
    char path[128];
    struct stat st;
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "rb");
    *m = (struct image){0};
    if (f == NULL) {
        return;
    }
    assert_int_equal(fstat(fileno(f), &st), 0);
    image_size(m, (size_t)st.st_size);
    assert_int_equal(fread(m->at, 1, m->len, f), m->len);
    (void)fclose(f);
}

static void image_store(const struct image *m, const char *dir, const char *name)
{
    char path[128];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(m->at, 1, m->len, f), m->len);
    assert_int_equal(fclose(f), 0);
}

/* Applies an unsynced write, sector by sector. */
static void write_maybe(struct image *m, const struct shim_op *op, struct rng *r, uint32_t mood)
{
    size_t done = 0;

    while (done < op->len) {
        size_t n = SECTOR - (op->at + done) % SECTOR;
        uint32_t fate = mood < 3 ? mood : rng_below(r, 3);
        n = n < op->len - done ? n : op->len - done;
        if (fate == 2) {
            image_write(m, op->at + done, op->bytes + done, rng_below(r, (uint32_t)n + 1));
        } else if (fate == 1) {
            image_write(m, op->at + done, op->bytes + done, n);
        }
        done += n;
    }
}

struct recorded {
    struct image start[SHIM_FILES];
    const struct shim_op *log;
    size_t n;
};

static bool synced_before(const struct recorded *rec, size_t op, size_t point)
{
    for (size_t i = op + 1; i < point; i++) {
        if (rec->log[i].kind == SHIM_SYNC && rec->log[i].file == rec->log[op].file) {
            return true;
        }
    }
    return false;
}

/* The disk after a cut right before log entry `point`. mood 0: all unsynced dropped, 1: kept, 2:
 * torn, 3: any. */
static struct told cut(const struct recorded *rec, size_t point, struct rng *r, uint32_t mood,
                       const char *dir)
{
    static const char *const NAMES[SHIM_FILES] = {"journal.db", "journal.db-wal"};
    struct image img[SHIM_FILES] = {{0}};
    struct told told = {0};
    uint64_t begun = 0;

    for (int f = 0; f < SHIM_FILES; f++) {
        image_size(&img[f], rec->start[f].len);
        if (rec->start[f].len > 0) {
            memcpy(img[f].at, rec->start[f].at, rec->start[f].len);
        }
    }
    for (size_t i = 0; i < point; i++) {
        const struct shim_op *op = &rec->log[i];
        bool sure = op->kind == SHIM_SYNC || op->kind == SHIM_ACK || synced_before(rec, i, point);
        if (op->kind == SHIM_ACK) {
            told.acked = op->at;
        } else if (op->kind == SHIM_TRUNCATE && (sure || rng_below(r, 2) == 0)) {
            image_size(&img[op->file], op->at);
        } else if (op->kind == SHIM_WRITE && sure) {
            image_write(&img[op->file], op->at, op->bytes, op->len);
        } else if (op->kind == SHIM_WRITE) {
            write_maybe(&img[op->file], op, r, mood);
        }
    }
    for (size_t i = point; i < rec->n && begun == 0; i++) {
        begun = rec->log[i].kind == SHIM_ACK ? rec->log[i].at : 0;
    }
    told.unknown = begun; /* the batch of the interrupted commit may be stored or not */
    for (int f = 0; f < SHIM_FILES; f++) {
        if (f == SHIM_DB || img[f].len > 0) {
            image_store(&img[f], dir, NAMES[f]);
        }
        free(img[f].at);
    }
    return told;
}

static void ack(uint64_t seq, void *self)
{
    (void)self;
    shim_log_ack(seq);
}

static void record_run(struct recorded *rec, const char *dir, enum durability durability)
{
    struct journal_options opt = {.durability = durability, .checkpoint_pages = 40};
    struct told told;

    told = work(dir, &opt, 2, NULL, NULL); /* makes the file; closed cleanly */
    assert_true(told.acked > 0);
    image_load(&rec->start[SHIM_DB], dir, "journal.db");
    image_load(&rec->start[SHIM_WAL], dir, "journal.db-wal");
    shim_log_start();
    told = work(dir, &opt, BATCHES, ack, NULL);
    rec->log = shim_log(&rec->n);
    assert_true(told.acked > 50);
    /* Drops the operations of close: the log ends with the last commit. */
    while (rec->n > 0 && rec->log[rec->n - 1].kind != SHIM_ACK) {
        rec->n--;
    }
}

/* Cuts at every sync and at random points. *ret_lost counts images that lack an acknowledged commit
 * (NULL: fail then). */
static uint32_t cut_everywhere(const struct recorded *rec, struct rng *r, uint32_t *ret_lost)
{
    char dir[64];
    uint32_t images = 0;
    size_t random_left = RANDOM_POINTS;

    for (size_t point = 1; point <= rec->n + random_left; point++) {
        bool boundary = point <= rec->n && rec->log[point - 1].kind == SHIM_SYNC;
        size_t at = point <= rec->n ? point : 1 + rng_below(r, (uint32_t)rec->n);
        if (point <= rec->n && !boundary &&
            (point == rec->n || rec->log[point].kind != SHIM_SYNC)) {
            continue;
        }
        for (uint32_t mood = point <= rec->n ? 0 : 3; mood <= 3; mood += 3) {
            struct told told;
            work_dir(dir);
            told = cut(rec, at, r, mood, dir);
            (void)work_check(dir, &told, ret_lost);
            fixture_remove_tree(dir);
            images++;
        }
    }
    return images;
}

static void power_cut(enum durability durability, uint32_t *ret_lost)
{
    struct rng r = rng_seeded(__func__);
    struct recorded rec = {0};
    char dir[64];
    uint32_t images;

    work_dir(dir);
    record_run(&rec, dir, durability);
    images = cut_everywhere(&rec, &r, ret_lost);
    (void)fprintf(stderr, "%zu calls to the disk, %u images\n", rec.n, images);
    for (int f = 0; f < SHIM_FILES; f++) {
        free(rec.start[f].at);
    }
    shim_log_free();
    fixture_remove_tree(dir);
}

static void nothing_acked_is_lost_by_a_power_cut_at_any_moment(void **state)
{
    (void)state;
    power_cut(DURABILITY_POWER, NULL);
}

/* Checks the test itself: with synchronous = NORMAL a power cut loses commits, and the images show
 * it. */
static void durability_process_does_lose_commits_by_a_power_cut(void **state)
{
    uint32_t lost = 0;

    (void)state;
    power_cut(DURABILITY_PROCESS, &lost);
    assert_true(lost > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_acked_is_lost_by_a_power_cut_at_any_moment),
        cmocka_unit_test(durability_process_does_lose_commits_by_a_power_cut),
    };
    shim_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
