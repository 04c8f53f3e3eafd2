/* Schedules over an engine, in virtual time: what is written while the clock goes on, stands still,
 * jumps forth and back; and what many of them cost. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "supervisor/journal/port.h"
#include "supervisor/schedule/schedules.h"
#include "tests/support/cmocka.h"
#include "tests/support/memory_journal/memory_journal.h"
#include "tests/unit/engine/engine_fixture.h"
#include "tests/unit/journal/journal_fixture.h"

enum { MINUTE = 60000, HOUR = 3600000, DAY = 24 * HOUR };

/* 2026-11-24T00:00:00Z, a Tuesday. */
#define MIDNIGHT UINT64_C(1795478400000)

struct clocked {
    struct engine_world w;
    struct schedules *s;
    msec mono, wall;
    uint64_t seen;
    char log[4096];
    const struct journal_ops *ops; /* before the engine's fixture counts what they do */
};

static struct schedules *running;

static enum bt_code plan_ended(struct engine *engine, const struct open_plan *p,
                               const struct record *rec, struct str summary, size_t not_done,
                               struct bt_error *err)
{
    (void)engine;
    (void)summary;
    (void)not_done;
    return schedules_plan_ended(running, str_from(p->id), REC(rec, plan_completed)->status, err);
}

static void quiet(enum log_level level, const char *event, const char *text, void *self)
{
    (void)level;
    (void)event;
    (void)text;
    (void)self;
}

static void start(struct clocked *f, struct journal *j, msec wall)
{
    struct bt_error err;
    uint64_t n = 0;

    f->mono = 1000;
    f->wall = wall;
    engine_world_open_on(&f->w, j, wall);
    engine_world_plan_ended = plan_ended;
    (void)registry_agent_configure(engine_registry(f->w.engine), STR_LIT("calc"), f->mono);
    assert_int_equal(schedules_new(f->w.engine, &f->s, &err), BT_OK);
    running = f->s;
    assert_int_equal(engine_recover(f->w.engine, &n, &err), BT_OK);
    assert_int_equal(schedules_load(f->s, &err), BT_OK);
}

static int set_up(void **state)
{
    struct clocked *f = calloc(1, sizeof *f);
    struct journal *j;
    struct bt_error err;

    assert_non_null(f);
    log_setup(LOG_ERR, quiet, NULL);
    assert_int_equal(memory_journal_open(&j, &err), BT_OK);
    f->ops = j->ops;
    start(f, j, MIDNIGHT);
    *state = f;
    return 0;
}

static void tear_down_parts(struct clocked *f)
{
    schedules_free(f->s);
    engine_world_close(&f->w);
}

static int tear_down(void **state)
{
    struct clocked *f = *state;

    tear_down_parts(f);
    free(f);
    return 0;
}

static bool see(const struct journal_row *row, void *self)
{
    struct clocked *f = self;
    const struct doc body = {row->body, row->body_len};
    const struct str at = doc_string(doc_get(body, STR_LIT("scheduledFor")));
    const struct str until = doc_string(doc_get(body, STR_LIT("until")));
    const struct str kind = doc_string(doc_get(body, STR_LIT("kind")));
    const size_t len = strlen(f->log);

    f->seen = row->seq;
    if (row->type.len > 9 && memcmp(row->type.ptr, "schedule_", 9) == 0) {
        (void)snprintf(f->log + len, sizeof f->log - len, "%.*s %.*s %.8s%s%.8s; ",
                       (int)row->type.len - 9, row->type.ptr + 9, STR_ARG(kind),
                       at.len > 16 ? at.ptr + 8 : "", until.len > 0 ? "-" : "",
                       until.len > 16 ? until.ptr + 8 : "");
    }
    return true;
}

/* A cycle at this wall time; `awake` of it has passed for the monotonic clock as well. */
static void cycle(struct clocked *f, msec wall, msec awake)
{
    struct bt_error err;

    f->mono += awake;
    f->wall = wall;
    engine_begin(f->w.engine, f->mono, wall);
    schedules_cycle(f->s);
    assert_int_equal(engine_end(f->w.engine, &err), BT_OK);
}

/* "fired time 24T03:00; skipped missed 24T01:00-24T02:00; " since the last call. */
static void expect(struct clocked *f, const char *want)
{
    struct bt_error err;

    f->log[0] = 0;
    assert_int_equal(journal_events(f->w.journal, f->seen + 1, 0, UINT32_MAX, see, f, &err), BT_OK);
    assert_string_equal(f->log, want);
}

static void put(struct clocked *f, const char *name, const char *cron, const char *overlap,
                msec catch_up)
{
    struct msg_schedule_put m = {.name = str_from(name),
                                 .cron = str_from(cron),
                                 .overlap = str_from(overlap),
                                 .catch_up_ms = catch_up};
    struct msg_schedule_put_ok ok = {.existing = false};
    struct submission d;
    struct bt_error err;

    msg_set(&m, schedule_put, catch_up_ms);
    m.plan = engine_world_doc(&f->w, "{'steps':[{'stepId':'a','agentId':'calc','task':'tick'}]}");
    assert_int_equal(submission_init(&d, &err), BT_OK);
    if (schedules_put(f->s, &m, &d, &ok, &d.arena, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    submission_done(&d);
}

static void a_time_comes_at_its_millisecond_also_when_the_clock_goes_back_over_it(void **state)
{
    struct clocked *f = *state;
    const msec three = MIDNIGHT + 3 * HOUR;

    put(f, "s", "0 3 * * *", "skip", HOUR);
    cycle(f, three - 1, 1000);
    expect(f, "");
    cycle(f, three, 1000);
    expect(f, "fired time 24T03:00; ");
    cycle(f, three - 1, 1000); /* set back over the time, and forth */
    cycle(f, three, 1000);
    cycle(f, three - 3 * HOUR, 5000);
    cycle(f, three + 1, 5000);
    expect(f, "");
    cycle(f, three + DAY, 5000);
    expect(f, "fired time 25T03:00; ");
}

static void a_laptop_that_slept_for_a_day_makes_up_for_what_its_window_says(void **state)
{
    struct clocked *f = *state;

    put(f, "skip", "0 */6 * * *", "skip", 13 * HOUR);
    cycle(f, MIDNIGHT + HOUR, 1000);
    cycle(f, MIDNIGHT + DAY + HOUR, 1000); /* the monotonic clock stood still */
    expect(f,
           "skipped missed 24T06:00; skipped superseded 24T12:00-24T18:00; fired time 25T00:00; ");
    put(f, "allow", "0 */6 * * *", "allow", 13 * HOUR);
    cycle(f, MIDNIGHT + 2 * DAY + HOUR, 1000);
    f->log[0] = 0;
    {
        struct bt_error err;
        assert_int_equal(journal_events(f->w.journal, f->seen + 1, 0, UINT32_MAX, see, f, &err),
                         BT_OK);
    }
    assert_non_null(strstr(f->log, "skipped missed 25T06:00; fired time 25T12:00; fired time "
                                   "25T18:00; fired time 26T00:00; "));
}

static void a_daemon_that_was_away_does_the_same(void **state)
{
    struct clocked *f = *state;
    struct journal *j = f->w.journal;

    put(f, "s", "0 * * * *", "skip", 3 * HOUR);
    cycle(f, MIDNIGHT + HOUR, 1000);
    expect(f, "fired time 24T01:00; ");
    schedules_free(f->s);
    engine_free(f->w.engine);
    link_free(f->w.link);
    arena_done(&f->w.arena);
    j->ops = f->ops;
    memory_journal_restart(j);
    start(f, j, MIDNIGHT + 9 * HOUR + 1);
    cycle(f, MIDNIGHT + 9 * HOUR + 1, 5000);
    expect(f, "skipped missed 24T02:00-24T06:00; skipped superseded 24T07:00-24T08:00; "
              "skipped overlap 24T09:00; "); /* the plan of 01:00 is still open */
    cycle(f, MIDNIGHT + 10 * HOUR, 5000);    /* it has ended: no agent came */
    expect(f, "fired time 24T10:00; ");
}

static void a_clock_that_was_wrong_by_years_does_not_silence_a_schedule(void **state)
{
    struct clocked *f = *state;

    put(f, "s", "0 3 * * *", "skip", HOUR);
    cycle(f, MIDNIGHT + 3 * HOUR, 1000);
    expect(f, "fired time 24T03:00; ");
    cycle(f, MIDNIGHT + 3 * HOUR + 5000, 5000);             /* its plan ends: no agent came */
    cycle(f, MIDNIGHT + (msec)1461 * DAY + 4 * HOUR, 5000); /* four years ahead */
    f->log[0] = 0;
    {
        struct bt_error err;
        assert_int_equal(journal_events(f->w.journal, f->seen + 1, 0, UINT32_MAX, see, f, &err),
                         BT_OK);
    }
    assert_non_null(strstr(f->log, "skipped missed 25T03:00-23T03:00; fired time 24T03:00; "));
    cycle(f, MIDNIGHT + 4 * HOUR, 5000); /* and right again */
    expect(f, "");
    cycle(f, MIDNIGHT + DAY + 3 * HOUR, 5000);
    expect(f, "fired time 25T03:00; ");
}

/* Of a thousand cycles, the fastest of some tries: other programs run beside it. */
static uint64_t cycles_ns(struct clocked *f)
{
    uint64_t best = UINT64_MAX;

    for (int try = 0; try < 100; try++) {
        const uint64_t from = clock_mono_ns();
        for (int i = 0; i < 1000; i++) {
            schedules_cycle(f->s);
        }
        best = clock_mono_ns() - from < best ? clock_mono_ns() - from : best;
    }
    return best;
}

/* So many rows in a journal of SQLite, as the one that is there. */
static struct journal *make_many(struct clocked *f, const char *dir, uint32_t many)
{
    const struct journal_options opt = {.durability = DURABILITY_PROCESS};
    struct journal_schedule row;
    struct journal *j;
    struct bt_error err;
    uint64_t ix;
    char name[32];

    assert_int_equal(journal_open_sqlite(dir, &opt, &j, &err), BT_OK);
    put(f, "first", "0 3 * * *", "skip", HOUR);
    assert_int_equal(journal_schedule_by_name(f->w.journal, STR_LIT("first"), &row, &err), BT_OK);
    for (uint32_t i = 0; i < many; i++) {
        (void)snprintf(name, sizeof name, "schedule-%u", i);
        row.name = str_from(name);
        assert_int_equal(journal_schedule_put(j, &row, &ix, &err), BT_OK);
    }
    assert_int_equal(journal_commit(j, &err), BT_OK);
    return j;
}

/* BATON_SCHEDULES=100000 for the figures. */
static void many_cost_little_memory_and_no_time_while_nothing_is_due(void **state)
{
    const char *given = getenv("BATON_SCHEDULES");
    const uint32_t many = given != NULL ? (uint32_t)strtoul(given, NULL, 10) : 3000;
    char dir[] = "/tmp/baton-schedules-XXXXXX";
    struct clocked *f = *state;
    struct mallinfo2 before;
    struct journal *j;
    struct bt_error err;
    uint64_t few;
    uint64_t all;
    uint64_t load;

    for (uint32_t i = 0; i < 10; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "few-%u", i);
        put(f, name, "0 3 * * *", "skip", HOUR);
    }
    cycle(f, MIDNIGHT + 1, 1);
    few = cycles_ns(f);
    assert_non_null(mkdtemp(dir));
    j = make_many(f, dir, many);
    tear_down_parts(f);
    start(f, j, MIDNIGHT);
    schedules_free(f->s);
    before = mallinfo2();
    load = clock_mono_ns();
    assert_int_equal(schedules_new(f->w.engine, &f->s, &err), BT_OK);
    running = f->s;
    assert_int_equal(schedules_load(f->s, &err), BT_OK);
    load = clock_mono_ns() - load;
    cycle(f, MIDNIGHT + 1, 1);
    all = cycles_ns(f);
    (void)printf("%u schedules: %zu bytes each, loaded in %llu ms; a cycle takes %llu ns, with ten "
                 "%llu ns\n",
                 many, (mallinfo2().uordblks - before.uordblks) / many,
                 (unsigned long long)(load / 1000000), (unsigned long long)(all / 1000),
                 (unsigned long long)(few / 1000));
    assert_true(given == NULL || (mallinfo2().uordblks - before.uordblks) / many <= 512);
    assert_true(all < few * 10 + 1000000); /* does not grow with their number */
    fixture_remove_tree(dir);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_time_comes_at_its_millisecond_also_when_the_clock_goes_back_over_it),
        TEST(a_laptop_that_slept_for_a_day_makes_up_for_what_its_window_says),
        TEST(a_daemon_that_was_away_does_the_same),
        TEST(a_clock_that_was_wrong_by_years_does_not_silence_a_schedule),
        TEST(many_cost_little_memory_and_no_time_while_nothing_is_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
