/* G93: each time of a schedule fires exactly once, wherever the daemon dies. An engine with
 * schedules over a real journal, in virtual time; a child dies at a random point of failure, the
 * next one goes on. BATON_KILLS: how many; the seed is printed, and BATON_SEED repeats it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "protocol/zone/stamp.h"
#include "protocol/zone/zone.h"
#include "supervisor/schedule/schedules.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"
#include "tests/unit/engine/engine_fixture.h"
#include "tests/unit/journal/journal_fixture.h"

enum { KILLS = 1000, PERIOD_MS = 60000, STEP_MS = 7000, CYCLES = 40, POINTS = 60 };

#define START UINT64_C(1790000000000)

static struct schedules *schedules;
static msec *clock_wall; /* shared: how far the children have come */
static char dir[96];

static enum bt_code plan_ended(struct engine *engine, const struct open_plan *p,
                               const struct record *rec, struct str summary, size_t not_done,
                               struct bt_error *err)
{
    (void)engine;
    (void)summary;
    (void)not_done;
    return schedules_plan_ended(schedules, str_from(p->id), REC(rec, plan_completed)->status, err);
}

static void quiet(enum log_level level, const char *event, const char *text, void *self)
{
    (void)level;
    (void)event;
    (void)text;
    (void)self;
}

static void put(struct engine_world *w)
{
    struct msg_schedule_put m = {.name = STR_LIT("s"), .overlap = STR_LIT("allow")};
    struct msg_schedule_put_ok ok = {.existing = false};
    struct submission d;
    struct bt_error err;

    m.every_ms = PERIOD_MS;
    m.catch_up_ms = 24 * 3600 * 1000;
    m.plan = engine_world_doc(w, "{'steps':[{'stepId':'a','agentId':'calc','task':'tick'}]}");
    msg_set(&m, schedule_put, every_ms);
    msg_set(&m, schedule_put, catch_up_ms);
    assert_int_equal(submission_init(&d, &err), BT_OK);
    assert_ok(schedules_put(schedules, &m, &d, &ok, &d.arena, &err), err);
    submission_done(&d);
}

/* One daemon's life. */
static void live(uint32_t cycles)
{
    const struct journal_options opt = {.durability = DURABILITY_PROCESS};
    struct engine_world w;
    struct journal *j;
    struct bt_error err;
    uint64_t n = 0;
    msec mono = 1000;

    assert_ok(journal_open_sqlite(dir, &opt, &j, &err), err);
    engine_world_open_on(&w, j, *clock_wall);
    engine_world_plan_ended = plan_ended;
    assert_int_not_equal(registry_agent_configure(engine_registry(w.engine), STR_LIT("calc"), mono),
                         REGISTRY_NONE);
    assert_ok(schedules_new(w.engine, &schedules, &err), err);
    assert_ok(engine_recover(w.engine, &n, &err), err);
    assert_ok(schedules_load(schedules, &err), err);
    put(&w); /* the same each time: it changes nothing after the first */
    for (uint32_t i = 0; i < cycles; i++) {
        schedules_cycle(schedules);
        assert_ok(engine_end(w.engine, &err), err);
        mono += STEP_MS;
        *clock_wall += STEP_MS;
        engine_begin(w.engine, mono, *clock_wall);
    }
    assert_ok(engine_end(w.engine, &err), err);
    schedules_free(schedules);
    engine_world_close(&w);
}

/* True: it was killed. */
static bool spawn(uint32_t point, uint32_t cycles)
{
    const pid_t pid = fork();
    int status = 0;

    assert_true(pid >= 0);
    if (pid == 0) {
        char rule[32];
        (void)snprintf(rule, sizeof rule, "%u:kill", point);
        if (point > 0) {
            (void)setenv("BATON_FAILPOINT", rule, 1);
        }
        log_setup(LOG_ERR, quiet, NULL);
        live(cycles);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFSIGNALED(status)) {
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        return false;
    }
    assert_int_equal(WTERMSIG(status), SIGKILL);
    return true;
}

struct tally {
    uint32_t fired, plans, *times;
    uint64_t first;
};

static void count_time(struct tally *t, struct str stamp)
{
    struct bt_error err;
    msec at = 0;

    assert_ok(stamp_read(stamp, &ZONE_UTC, &at, &err), err);
    assert_int_equal(at % PERIOD_MS, 0);
    assert_true(at / PERIOD_MS >= t->first);
    t->times[at / PERIOD_MS - t->first]++;
}

static bool see_event(const struct journal_row *row, void *self)
{
    struct tally *t = self;
    const struct doc body = {row->body, row->body_len};

    if (str_is(row->type, "schedule_fired")) {
        t->fired++;
        count_time(t, doc_string(doc_get(body, STR_LIT("scheduledFor"))));
    }
    if (str_is(row->type, "schedule_skipped")) {
        fail_msg("skipped: %.*s %.*s", STR_ARG(doc_string(doc_get(body, STR_LIT("kind")))),
                 STR_ARG(doc_string(doc_get(body, STR_LIT("reason")))));
    }
    return true;
}

static bool see_a_plan(const struct journal_plan *p, void *self)
{
    struct tally *t = self;
    struct str name;
    struct str time;

    assert_true(schedule_of_key(p->client_key, &name, &time));
    assert_true(str_is(name, "s"));
    t->plans++;
    count_time(t, time);
    return true;
}

static void each_time_fires_once_wherever_the_daemon_dies(void **state)
{
    const char *given = getenv("BATON_KILLS");
    const uint32_t kills = given != NULL ? (uint32_t)strtoul(given, NULL, 10) : KILLS;
    const struct journal_options opt = {.durability = DURABILITY_PROCESS};
    struct rng r = rng_seeded("schedule_kill");
    struct tally t = {.first = START / PERIOD_MS};
    struct journal *j;
    struct bt_error err;
    uint32_t died = 0;
    uint64_t last;

    (void)state;
    *clock_wall = START + 1;
    for (uint32_t i = 0; died < kills; i++) {
        died += spawn(1 + rng_below(&r, POINTS), CYCLES);
        *clock_wall += rng_below(&r, 4) * 20000; /* away for up to a minute */
        if (rng_below(&r, 10) == 0) {
            *clock_wall -= rng_below(&r, PERIOD_MS); /* a clock that is set back */
        }
        assert_true(i < kills * 10);
    }
    *clock_wall += 2 * PERIOD_MS; /* after every set-back */
    assert_false(spawn(0, CYCLES));
    last = (*clock_wall - STEP_MS) / PERIOD_MS;
    t.times = calloc(last - t.first + 2, sizeof *t.times);
    assert_non_null(t.times);
    assert_ok(journal_open_sqlite(dir, &opt, &j, &err), err);
    assert_ok(journal_events(j, 1, 0, UINT32_MAX, see_event, &t, &err), err);
    assert_ok(journal_plans(j, STR_LIT(""), STR_LIT(""), 0, UINT32_MAX, see_a_plan, &t, &err), err);
    journal_close(j);
    for (uint64_t at = t.first + 1; at <= last; at++) {
        if (t.times[at - t.first] != 2) { /* one event, one plan */
            fail_msg("time %llu: %u of an event and a plan", (unsigned long long)at,
                     t.times[at - t.first]);
        }
    }
    assert_int_equal(t.fired, t.plans);
    assert_int_equal(t.fired, last - t.first);
    (void)printf("%u kills, %u times\n", died, t.fired);
    free(t.times);
}

static int make_dir(void **state)
{
    char root[] = "/tmp/baton-schedule-XXXXXX";

    (void)state;
    assert_non_null(mkdtemp(root));
    (void)snprintf(dir, sizeof dir, "%s", root);
    clock_wall =
        mmap(NULL, sizeof *clock_wall, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return clock_wall == MAP_FAILED ? -1 : 0;
}

static int remove_dir(void **state)
{
    (void)state;
    fixture_remove_tree(dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_time_fires_once_wherever_the_daemon_dies, make_dir,
                                        remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
