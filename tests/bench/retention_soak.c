/*
 * Years of use in some seconds: plans of 100 steps are written into a real journal and end, and
 * retention deletes them at their age, in virtual time. Prints a line of JSON for each tenth: the
 * file's size, what is used of it, the memory of the process; then the time of a start. Fails when
 * any of them grew after the second tenth by more than a quarter.
 *
 *     retention_soak DIR STEPS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "supervisor/retention/retention.h"

enum { PLAN_STEPS = 100, BODY = 400, RESULT = 256, KEPT_PLANS = 20, TENTHS = 10 };

struct soak {
    struct journal *journal;
    struct retention *retention;
    msec now;
    uint64_t seq_of_plan;
};

static void must(enum bt_code code, const struct bt_error *err)
{
    if (code != BT_OK) {
        (void)fprintf(stderr, "%s\n", err->msg);
        exit(1);
    }
}

static bool none_open(void *self, struct uuid id)
{
    (void)self;
    (void)id;
    return false;
}

static void nothing(void *self, struct uuid id)
{
    (void)self;
    (void)id;
}

static void open_soak(struct soak *s, const char *dir)
{
    const struct journal_options opt = {.durability = DURABILITY_PROCESS};
    const struct retention_options keep = {.completed_ms = (msec)KEPT_PLANS * PLAN_STEPS,
                                           .failed_ms = 1000000,
                                           .events_ms = 1000,
                                           .gone_ms = (msec)2 * KEPT_PLANS * PLAN_STEPS};
    const struct retention_hooks hooks = {s, none_open, NULL, nothing};
    struct bt_error err;

    must(journal_open_sqlite(dir, &opt, &s->journal, &err), &err);
    must(retention_new(&keep, &hooks, s->journal, &s->retention, &err), &err);
}

static void row(struct soak *s, uint64_t plan, const char *type, const uint64_t *blob)
{
    static char body[BODY];
    struct journal_row r = {.seq = journal_next_seq(s->journal),
                            .is_public = true,
                            .plan_ix = plan,
                            .plan_seq = plan == 0 ? 0 : ++s->seq_of_plan,
                            .type = str_from(type),
                            .topic = STR_LIT("plan/s/p/event"),
                            .wall = s->now,
                            .body = body,
                            .body_len = sizeof body,
                            .blobs = blob,
                            .blobs_n = blob != NULL};
    struct bt_error err;

    must(journal_append(s->journal, &r, &err), &err);
}

static void run_plan(struct soak *s)
{
    struct journal_plan p = {.plan_id = uuid_new(),
                             .goal = STR_LIT("soak"),
                             .doc = "document",
                             .doc_len = 8,
                             .created_wall = s->now,
                             .status = STR_LIT("running")};
    static char result[RESULT];
    struct bt_error err;
    uint64_t ix;

    s->seq_of_plan = 0;
    must(journal_plan_add(s->journal, &p, &ix, &err), &err);
    for (int i = 0; i < PLAN_STEPS; i++) {
        uint64_t blob;
        s->now++;
        must(journal_blob_add(s->journal, result, sizeof result, &blob, &err), &err);
        row(s, ix, "plan_step_started", NULL);
        row(s, ix, "plan_step_completed", &blob);
        row(s, 0, "agent_heartbeat", NULL);
        must(journal_commit(s->journal, &err), &err);
        if (retention_deadline(s->retention) <= s->now) {
            must(retention_cycle(s->retention, s->now, s->now, &err), &err);
        }
    }
    must(journal_plan_status(s->journal, ix, STR_LIT("completed"), s->now, &err), &err);
    must(journal_commit(s->journal, &err), &err);
}

static uint64_t resident(void)
{
    unsigned long long size = 0;
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (f != NULL) {
        (void)!fscanf(f, "%20llu %20llu", &size, &pages);
        (void)fclose(f);
    }
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool grew(uint64_t before, uint64_t now)
{
    return now > before + before / 4 + 1024 * 1024;
}

int main(int argc, char **argv)
{
    struct soak s = {.now = 1000000};
    struct journal_size size;
    struct journal_size second = {0};
    uint64_t memory = 0;
    uint64_t start;
    struct bt_error err;
    bool bad = false;
    const uint64_t steps = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;

    if (steps < (uint64_t)TENTHS * PLAN_STEPS) {
        (void)fprintf(stderr, "usage: retention_soak DIR STEPS (at least 1000)\n");
        return 2;
    }
    open_soak(&s, argv[1]);
    for (uint64_t tenth = 1; tenth <= TENTHS; tenth++) {
        for (uint64_t i = 0; i < steps / PLAN_STEPS / TENTHS; i++) {
            run_plan(&s);
        }
        must(journal_size(s.journal, &size, &err), &err);
        (void)printf("{\"steps\": %llu, \"file\": %llu, \"used\": %llu, \"rss\": %llu}\n",
                     (unsigned long long)(steps / TENTHS * tenth), (unsigned long long)size.file,
                     (unsigned long long)size.used, (unsigned long long)resident());
        if (tenth == 2) {
            second = size;
            memory = resident();
        }
        bad = bad || (tenth > 2 && (grew(second.file, size.file) || grew(memory, resident())));
    }
    retention_free(s.retention);
    journal_close(s.journal);
    start = clock_mono_ms();
    open_soak(&s, argv[1]);
    (void)printf("{\"startMs\": %llu}\n", (unsigned long long)(clock_mono_ms() - start));
    retention_free(s.retention);
    journal_close(s.journal);
    return bad ? 1 : 0;
}
