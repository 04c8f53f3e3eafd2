/*
 * The real core is driven at random; each record goes through the journal's bytes; replaying them
 * must give the live run, byte for byte.
 */
#include "tests/unit/journal/journal_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "supervisor/core/core.h"
#include "supervisor/journal/record_codec.h"
#include "tests/support/random.h"
#include "tests/unit/journal/codec_plan.h"

enum { ROUNDS = 300, EVENTS = 400, CAPACITY = 2, HELD_MAX = 64, WALL_AHEAD = 1000000 };

struct held {
    uint32_t step;
    uint32_t attempt;
    uint32_t slot;
    uint64_t epoch;
    uint32_t lane;
};

struct drive {
    struct rng r;
    struct codec_plan p;
    void *core_mem;
    struct core *core;
    void *block;
    struct commands out;
    uint64_t run;
    msec now;
    struct journal *j;
    uint64_t plan_seq;
    struct held held[HELD_MAX];
    uint32_t held_n;
    bool over;
    uint32_t records[REC_COUNT];
    struct run *live; /* a copy of the run, taken when it ended or the driving did */
};

static void grow(struct commands *c)
{
    c->cap = c->cap == 0 ? 64 : c->cap * 2;
    c->at = realloc(c->at, c->cap * sizeof *c->at);
    if (c->at == NULL) {
        abort();
    }
}

static void keep_record(struct drive *d, const struct record *rec)
{
    struct buf body;
    struct buf topic;
    struct bt_error err;
    struct record_extra x = {.seq = journal_next_seq(d->j),
                             .event_id = uuid_new(),
                             .handoff_id = uuid_new(),
                             .run = core_block_run(d->block)};
    struct journal_row row = {.seq = x.seq,
                              .is_public = record_is_public(rec->type),
                              .type = str_from(record_wire_type(rec->type)),
                              .wall = rec->wall};

    d->records[rec->type]++;
    buf_init(&body, LIMIT_EVENT_BYTES);
    buf_init(&topic, 1000);
    if (record_about(rec->type) == ABOUT_PLAN) {
        x.plan = &d->p.plan;
        row.plan_ix = 1;
        x.plan_seq = row.is_public ? ++d->plan_seq : 0;
        row.plan_seq = x.plan_seq;
    } else {
        x.agent_id = STR_LIT("files");
    }
    assert_ok(record_encode(rec, &x, core_registry(d->core), &body, &topic, &err), err);
    row.body = body.at;
    row.body_len = body.len;
    row.topic = buf_str(&topic);
    assert_ok(journal_append(d->j, &row, &err), err);
    buf_done(&body);
    buf_done(&topic);
}

static void give(struct drive *d, struct core_event ev)
{
    ev.now = d->now;
    ev.wall = d->now + WALL_AHEAD;
    ev.run = ev.run != 0 ? ev.run : d->run;
    d->out.n = 0;
    core_handle(d->core, &ev, &d->out);
    for (uint32_t i = 0; i < d->out.n; i++) {
        const struct core_cmd *c = &d->out.at[i];
        if (c->type == CMD_RECORD) {
            d->run = c->rec.run != 0 ? c->rec.run : d->run;
            keep_record(d, &c->rec);
        } else if (c->type == CMD_DISPATCH) {
            assert_true(d->held_n < HELD_MAX);
            d->held[d->held_n++] = (struct held){c->step, c->attempt, c->slot, c->epoch, c->lane};
        } else if (c->type == CMD_REGISTERED) {
            for (uint32_t lane = 0; lane <= CAPACITY; lane++) {
                struct core_event up = {.type = CORE_LANE_UP,
                                        .slot = c->slot,
                                        .epoch = c->epoch,
                                        .lane = lane < CAPACITY ? lane : REGISTRY_CONTROL_LANE};
                give(d, up);
                i = d->out.n; /* the commands were replaced */
            }
        } else if (c->type == CMD_RUN_DONE) {
            d->over = true;
        }
    }
    commit(d->j);
}

static void answer(struct drive *d)
{
    uint32_t at = rng_below(&d->r, d->held_n);
    struct held h = d->held[at];
    struct core_event ev = {.type = CORE_RESULT,
                            .step = h.step,
                            .attempt = h.attempt,
                            .slot = h.slot,
                            .epoch = h.epoch,
                            .lane = h.lane,
                            .outcome = (enum step_outcome)rng_below(&d->r, STEP_OUTCOME_COUNT),
                            .text = STR_LIT("a text"),
                            .usage = {1, 2, 3, 4}};

    d->held[at] = d->held[--d->held_n];
    if (ev.outcome == STEP_OUTCOME_COMPLETED || rng_below(&d->r, 3) != 0) {
        ev.outcome = STEP_OUTCOME_COMPLETED;
        ev.result = (struct blob_ref){1 + rng_next(&d->r) % 1000, rng_next(&d->r) % 1000};
    } else if (ev.outcome == STEP_OUTCOME_FAILED) {
        ev.error_class = (enum err_class)(1 + rng_below(&d->r, CLASS_COUNT - 1));
    }
    if (rng_below(&d->r, 6) == 0) {
        ev.type = CORE_LOST;
        ev.sent = rng_below(&d->r, 2) == 0;
    }
    give(d, ev);
}

static void something(struct drive *d)
{
    struct core_event ev = {.type = CORE_TICK, .step = rng_below(&d->r, d->p.plan.n_steps)};
    const struct run *run = core_block_run(d->block);

    ev.attempt = run->steps[ev.step].attempt;
    switch (rng_below(&d->r, 12)) {
    case 0:
        d->now += rng_below(&d->r, 3000);
        break;
    case 1:
        ev.type = CORE_DECIDE;
        ev.decision = (enum review_decision)rng_below(&d->r, DECISION_COUNT);
        ev.text = STR_LIT("because");
        break;
    case 2:
        if (d->held_n > 0) {
            struct held h = d->held[0];
            ev = (struct core_event){.type = CORE_PROGRESS,
                                     .step = h.step,
                                     .attempt = h.attempt,
                                     .slot = h.slot,
                                     .epoch = h.epoch,
                                     .n = 1,
                                     .percent = 0.5,
                                     .text = STR_LIT("half")};
        }
        break;
    case 3:
        if (rng_below(&d->r, 30) == 0) {
            ev.type = CORE_CANCEL;
            ev.text = STR_LIT("enough");
        }
        break;
    default:
        if (d->held_n > 0) {
            answer(d);
            return;
        }
        d->now += 50;
        break;
    }
    give(d, ev);
}

static void register_agents(struct drive *d, const struct uuid *ids)
{
    for (uint32_t a = 0; a < 3; a++) {
        give(d, (struct core_event){
                    .type = CORE_REGISTER, .agent = a, .instance = ids[a], .capacity = CAPACITY});
    }
}

struct replay {
    struct drive *d;
    struct run *run;
    struct arena arena;
};

static bool replay_row(const struct journal_row *row, void *self)
{
    struct replay *p = self;
    struct record rec;
    struct bt_error err;

    assert_ok(
        record_decode(row, &p->d->p.plan, p->d->now, p->d->now + WALL_AHEAD, &p->arena, &rec, &err),
        err);
    assert_true(run_apply(p->run, &p->d->p.plan, &rec));
    arena_reset(&p->arena);
    return true;
}

static void compare(struct drive *d)
{
    struct replay p = {.d = d};
    size_t size = run_size(d->p.plan.n_steps);
    void *mem = calloc(1, size);
    struct bt_error err;

    assert_non_null(mem);
    p.run = run_init(mem, &d->p.plan);
    assert_ok(journal_replay(d->j, 1, replay_row, &p, &err), err);
    assert_int_equal(p.run->plan_seq, d->plan_seq);
    assert_memory_equal(p.run, core_block_run(d->block), size);
    free(mem);
    arena_done(&p.arena);
}

static void drive_one(struct drive *d)
{
    struct core_config config = {.runs_max = 4,
                                 .registry = {.agents = 8,
                                              .instances = 8,
                                              .lease_ms = 5000,
                                              .suspect_ms = 2500,
                                              .epoch_base = 7},
                                 .agent_wait_ms = 4000,
                                 .unknown_wait_ms = 2000,
                                 .cancel_grace_ms = 100,
                                 .seed = rng_next(&d->r)};
    struct uuid ids[3] = {uuid_new(), uuid_new(), uuid_new()};
    struct bt_error err;

    codec_plan_make(&d->p, 1 + rng_below(&d->r, 12), 0, STR_LIT("a task"), 3);
    d->p.plan.chain = rng_below(&d->r, 4) == 0;
    d->core_mem = calloc(1, core_size(&config));
    d->block = calloc(1, core_run_size(&d->p.plan));
    assert_true(d->core_mem != NULL && d->block != NULL);
    d->core = core_init(d->core_mem, &config);
    d->now = 10000;
    for (uint32_t a = 0; a < 3; a++) {
        static const char *const NAMES[] = {"files", "sql-agent", "calc"};
        assert_int_equal(registry_agent_add(core_registry(d->core), str_from(NAMES[a]), d->now), a);
    }
    assert_ok(journal_open_memory(&d->j, &err), err);
    register_agents(d, ids);
    give(d, (struct core_event){.type = CORE_SUBMIT, .plan = &d->p.plan, .block = d->block});
    for (int i = 0; i < EVENTS && !d->over; i++) {
        something(d);
        if (i % 40 == 39) {
            compare(d);
        }
        if (i % 60 == 59) {
            register_agents(d, ids); /* new incarnations: what the old ones had is unknown */
            d->held_n = 0;
        }
    }
    compare(d);
    journal_close(d->j);
    free(d->core_mem);
    free(d->block);
}

static void replaying_the_stored_bytes_gives_the_live_run(void **state)
{
    struct rng r = rng_seeded(__func__);
    uint32_t seen[REC_COUNT] = {0};
    uint32_t over = 0;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct drive *d = calloc(1, sizeof *d);
        assert_non_null(d);
        d->r = (struct rng){rng_next(&r)};
        d->out.grow = grow;
        drive_one(d);
        for (int t = 0; t < REC_COUNT; t++) {
            seen[t] += d->records[t];
        }
        over += d->over;
        free(d->out.at);
        free(d);
    }
    assert_true(over > ROUNDS / 2);
    for (int t = 0; t <= REC_STEP_UNKNOWN; t++) { /* it reached all that it is about */
        if (record_about((enum record_type)t) == ABOUT_PLAN && seen[t] == 0) {
            fail_msg("never seen: %s", record_wire_type((enum record_type)t));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replaying_the_stored_bytes_gives_the_live_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
