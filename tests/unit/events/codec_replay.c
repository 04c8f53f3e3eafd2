/*
 * The real core is driven at random; each record goes through the journal's bytes; replaying them
 * must give the live run, byte for byte, over all revisions of its plan.
 */
#include "tests/unit/journal/journal_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "supervisor/core/sched/core.h"
#include "supervisor/events/record_codec.h"
#include "tests/unit/core/sched/flat_event.h"
#include "tests/unit/events/codec_plan.h"

enum {
    ROUNDS = 300,
    EVENTS = 400,
    CAPACITY = 2,
    HELD_MAX = 512,
    TODO_MAX = 64,
    REVISIONS_MAX = 8,
    PLAN_BLOBS = 1000000, /* a result of that id and more is the document of a revision */
    WALL_AHEAD = 1000000
};

struct held {
    uint32_t step;
    enum step_phase phase;
    uint32_t attempt;
    uint32_t slot;
    uint64_t epoch;
    uint32_t lane;
};

/* A revision of the plan and the block that goes with it. */
struct revision {
    struct codec_plan *p;
    void *block;
};

struct drive {
    struct rng r;
    struct revision revisions[REVISIONS_MAX + 1]; /* [current + 1]: what is being offered */
    uint32_t current;
    void *core_mem;
    struct core *core;
    struct commands out;
    uint64_t run;
    msec now;
    struct journal *j;
    uint64_t plan_seq;
    struct held held[HELD_MAX];
    uint32_t held_n;
    struct core_event todo[TODO_MAX]; /* what commands ask for, done when all are seen */
    uint32_t todo_n;
    bool over;
    uint32_t records[REC_COUNT];
};

static const struct plan *plan_of(const struct drive *d)
{
    return &d->revisions[d->current].p->plan;
}

static const struct run *run_of(const struct drive *d)
{
    return core_block_run(d->revisions[d->current].block);
}

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
                             .run = run_of(d)};
    struct journal_row row = {.seq = x.seq,
                              .is_public = record_is_public(rec->type),
                              .type = str_from(record_wire_type(rec->type)),
                              .wall = rec->wall};

    d->records[rec->type]++;
    buf_init(&body, LIMIT_EVENT_BYTES);
    buf_init(&topic, 1000);
    if (record_about(rec->type) == ABOUT_PLAN) {
        x.plan = plan_of(d);
        x.plan_id = d->revisions[0].p->plan_id;
        x.revised = record_revises(rec) ? &d->revisions[d->current + 1].p->plan : NULL;
        row.plan_ix = 1;
        row.is_public = record_row_is_public(rec, x.plan);
        d->plan_seq += record_is_public(rec->type) ? 1 : 0;
        x.plan_seq = row.is_public ? d->plan_seq : 0;
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

static void later(struct drive *d, struct core_event ev)
{
    assert_true(d->todo_n < TODO_MAX);
    d->todo[d->todo_n++] = ev;
}

static void lanes_up(struct drive *d, const struct core_cmd *c)
{
    for (uint32_t lane = 0; lane <= CAPACITY; lane++) {
        later(d, (struct core_event){.type = CORE_LANE_UP,
                                     .slot = c->slot,
                                     .epoch = c->epoch,
                                     .lane = lane < CAPACITY ? lane : REGISTRY_CONTROL_LANE});
    }
}

static void obey(struct drive *d, const struct core_cmd *c)
{
    if (c->type == CMD_RECORD) {
        d->run = c->rec.run != 0 ? c->rec.run : d->run;
        keep_record(d, &c->rec);
    } else if (c->type == CMD_DISPATCH) {
        assert_true(d->held_n < HELD_MAX);
        d->held[d->held_n++] =
            (struct held){c->step, c->phase, c->attempt, c->slot, c->epoch, c->lane};
    } else if (c->type == CMD_REGISTERED) {
        lanes_up(d, c);
    } else if (c->type == CMD_PROBE) {
        later(d, (struct core_event){CORE_EV_INIT(PROBED, probed, .ok = rng_below(&d->r, 3) != 0),
                                     .slot = c->slot, .epoch = c->epoch});
    } else if (c->type == CMD_CONDITION) {
        later(d, (struct core_event){
                     CORE_EV_INIT(CONDITION, condition,
                                  .verdict = rng_below(&d->r, 4) == 0   ? CONDITION_FALSE
                                             : rng_below(&d->r, 8) == 0 ? CONDITION_FAILED
                                                                        : CONDITION_TRUE),
                     .run = c->run, .step = c->step, .attempt = c->attempt,
                     .text = STR_LIT("results.a.n is 7")});
    } else if (c->type == CMD_CHILD || c->type == CMD_CHILD_STOP) {
        later(d, (struct core_event){
                     CORE_EV_INIT(CHILD, child, .round = c->round, .error_class = CLASS_UNKNOWN,
                                  .outcome = c->type == CMD_CHILD_STOP  ? CHILD_FAILED
                                             : rng_below(&d->r, 2) == 0 ? CHILD_AGAIN
                                                                        : CHILD_COMPLETED,
                                  .result = {.id = 5, .len = 3, .text_len = 2}),
                     .run = c->run, .step = c->step, .attempt = c->attempt,
                     .text = STR_LIT("results.a.n is 7")});
    } else if (c->type == CMD_SIGNAL) {
        later(d, (struct core_event){
                     CORE_EV_INIT(SIGNAL, signal, .serial = 1, .result = {.id = 77, .len = 3}),
                     .run = c->run, .step = c->step, .text = STR_LIT("go")});
    } else if (c->type == CMD_KILL) {
        later(d, (struct core_event){.type = CORE_GONE,
                                     .slot = c->slot,
                                     .epoch = c->epoch,
                                     .text = STR_LIT("killed")});
    } else if (c->type == CMD_REVISED) {
        d->current++;
    } else if (c->type == CMD_RUN_DONE) {
        d->over = true;
    }
}

static void give_one(struct drive *d, struct core_event ev)
{
    ev.now = d->now;
    ev.wall = d->now + WALL_AHEAD;
    ev.run = ev.run != 0 ? ev.run : d->run;
    d->out.n = 0;
    core_handle(d->core, &ev, &d->out);
    for (uint32_t i = 0; i < d->out.n; i++) {
        obey(d, &d->out.at[i]);
    }
    commit(d->j);
}

static void give(struct drive *d, struct core_event ev)
{
    give_one(d, ev);
    for (uint32_t i = 0; i < d->todo_n; i++) {
        give_one(d, d->todo[i]);
    }
    d->todo_n = 0;
}

/* ---- revisions ---- */

static void forget_offer(struct drive *d)
{
    struct revision *offer = &d->revisions[d->current + 1];

    free(offer->p);
    free(offer->block);
    *offer = (struct revision){NULL, NULL};
}

/* Puts a next revision into the event, or the plan that was asked for; false when there have been
 * enough of them. */
static bool offer_revision(struct drive *d, bool replan, struct flat_event *ev)
{
    struct revision *offer = &d->revisions[d->current + 1];

    if (d->current + 1 == REVISIONS_MAX || plan_of(d)->n_steps + 3 > CODEC_STEPS_MAX) {
        return false;
    }
    offer->p = calloc(1, sizeof *offer->p);
    assert_non_null(offer->p);
    if (plan_of(d)->planning.pending) {
        codec_plan_fill(d->revisions[d->current].p, 1 + rng_below(&d->r, 12), &d->r, offer->p);
    } else {
        codec_plan_revise(d->revisions[d->current].p, run_of(d), replan, &d->r, offer->p);
    }
    offer->block = calloc(1, core_run_size(&offer->p->plan));
    assert_non_null(offer->block);
    ev->plan = &offer->p->plan;
    ev->block = offer->block;
    ev->result = (struct blob_ref){.id = PLAN_BLOBS + d->current + 1, .len = 100};
    return true;
}

static void give_revision(struct drive *d, const struct flat_event *ev)
{
    const uint32_t before = d->current;

    give(d, event_of_flat(ev));
    if (d->current == before) {
        forget_offer(d); /* refused */
    }
}

/* ---- what happens ---- */

static void put_outcome(struct drive *d, struct flat_event *ev)
{
    ev->outcome = (enum step_outcome)rng_below(&d->r, STEP_OUTCOME_COUNT);
    ev->agent = rng_below(&d->r, CODEC_AGENTS + 1);
    if (ev->agent == CODEC_AGENTS) {
        ev->agent = AGENT_NONE;
    }
    if (ev->phase == PHASE_REPLAN) {
        ev->outcome = STEP_OUTCOME_FAILED;
        ev->invalid = rng_below(&d->r, 2) == 0;
        if (rng_below(&d->r, 4) != 0 && offer_revision(d, true, ev)) {
            ev->outcome = STEP_OUTCOME_COMPLETED;
        }
    } else if (rng_below(&d->r, 2) == 0) {
        ev->outcome = STEP_OUTCOME_COMPLETED;
    } else if (ev->outcome == STEP_OUTCOME_FAILED) {
        ev->error_class = (enum err_class)(1 + rng_below(&d->r, CLASS_COUNT - 1));
    }
    if (ev->phase <= PHASE_SEARCH && ev->outcome == STEP_OUTCOME_COMPLETED) {
        ev->result =
            (struct blob_ref){.id = 1 + rng_next(&d->r) % 1000, .len = rng_next(&d->r) % 1000};
    }
    if (ev->outcome == STEP_OUTCOME_CALLS) {
        ev->expect = 1 + rng_below(&d->r, LIMIT_CALLS);
        ev->result = (struct blob_ref){.id = 1 + rng_next(&d->r) % 1000, .len = 5};
    }
    ev->passed = rng_below(&d->r, 3) != 0;
}

static void answer(struct drive *d)
{
    uint32_t at = rng_below(&d->r, d->held_n);
    struct held h = d->held[at];
    struct flat_event ev = {.type = CORE_RESULT,
                            .step = h.step,
                            .phase = h.phase,
                            .attempt = h.attempt,
                            .slot = h.slot,
                            .epoch = h.epoch,
                            .lane = h.lane,
                            .text = STR_LIT("a text"),
                            .usage = {1, 2, 3, 4}};

    d->held[at] = d->held[--d->held_n];
    if (rng_below(&d->r, 8) == 0) {
        ev.type = CORE_LOST;
        ev.sent = rng_below(&d->r, 2) == 0;
        give(d, event_of_flat(&ev));
        return;
    }
    put_outcome(d, &ev);
    give_revision(d, &ev);
}

static uint32_t any_step(struct drive *d)
{
    const uint32_t n = plan_of(d)->n_steps;
    return n == 0 ? STEP_NONE : rng_below(&d->r, n);
}

static void decide(struct drive *d)
{
    const uint32_t asks = 1u << PAUSE_SIGNOFF | 1u << PAUSE_PLANNING;
    struct flat_event ev = {.type = CORE_DECIDE,
                            .step = any_step(d),
                            .decision = (enum review_decision)rng_below(&d->r, DECISION_COUNT),
                            .text = STR_LIT("because")};

    if (rng_below(&d->r, 3) != 0) {
        ev.decision = DECISION_APPROVE;
    }
    if (rng_below(&d->r, 2) == 0) {
        ev.result = (struct blob_ref){.id = 7, .len = 70};
    }
    if ((run_of(d)->paused & asks) != 0) {
        ev.step = STEP_NONE;
    }
    ev.attempt =
        ev.step == STEP_NONE ? run_of(d)->plan_review : run_of(d)->steps[ev.step].review_serial;
    if (ev.decision == DECISION_APPROVE && plan_of(d)->planning.pending &&
        rng_below(&d->r, 2) == 0 && offer_revision(d, false, &ev)) {
        give_revision(d, &ev);
    } else {
        give(d, event_of_flat(&ev));
    }
}

/* ---- jobs ---- */

static void planner_says(struct drive *d)
{
    const bool current = rng_below(&d->r, 8) != 0;
    struct flat_event ev = {.type = CORE_PLANNED,
                            .step = STEP_NONE,
                            .job = JOB_PLANNING,
                            .attempt = run_of(d)->asked + (current ? 0 : 1),
                            .usage = {3, 2, 1, 1},
                            .text = STR_LIT("steps[0].agentId: no such agent"),
                            .n = 2};

    if (rng_below(&d->r, 2) == 0 && offer_revision(d, false, &ev)) {
        give_revision(d, &ev);
        return;
    }
    ev.type = CORE_JOB_FAILED;
    ev.invalid = rng_below(&d->r, 3) != 0;
    give(d, event_of_flat(&ev));
}

static void synthesizer_says(struct drive *d)
{
    struct flat_event ev = {.type = CORE_JOB_TEXT,
                            .step = STEP_NONE,
                            .job = JOB_SYNTHESIS,
                            .attempt = 1,
                            .usage = {4, 3, 2, 1},
                            .text = STR_LIT("All is well."),
                            .invalid = rng_below(&d->r, 4) == 0};
    const uint32_t what = rng_below(&d->r, 6);

    if (what == 0) {
        ev.type = CORE_SYNTHESIZED;
        ev.result = (struct blob_ref){.id = 1 + rng_next(&d->r) % 1000, .len = 20};
    } else if (what == 1) {
        ev.type = CORE_JOB_FAILED;
    } else if (what == 2 && offer_revision(d, true, &ev)) {
        ev.type = CORE_RECTIFY;
        give_revision(d, &ev);
        return;
    }
    ev.usage = what > 1 ? (struct usage){0} : ev.usage;
    give(d, event_of_flat(&ev));
}

static void modify(struct drive *d)
{
    struct flat_event ev = {.type = CORE_MODIFY,
                            .modify = (enum modify_kind)rng_below(&d->r, MODIFY_KIND_COUNT),
                            .step = any_step(d),
                            .text = STR_LIT("a reason")};
    const uint32_t steps[1] = {any_step(d)};

    if (ev.modify == MODIFY_INSERT || ev.modify == MODIFY_REPLACE) {
        ev.type = CORE_REVISE;
        if (offer_revision(d, false, &ev)) {
            give_revision(d, &ev);
        }
        return;
    }
    ev.steps = steps;
    ev.n_steps = 1;
    give(d, event_of_flat(&ev));
}

static void progress(struct drive *d)
{
    if (d->held_n > 0) {
        struct held h = d->held[rng_below(&d->r, d->held_n)];
        give(d, (struct core_event){CORE_EV_INIT(PROGRESS, progress, .n = 1, .percent = 0.5),
                                    .step = h.step, .phase = h.phase, .attempt = h.attempt,
                                    .slot = h.slot, .epoch = h.epoch, .lane = LANE_NONE,
                                    .text = STR_LIT("half")});
    }
}

static void something(struct drive *d)
{
    const uint32_t what = rng_below(&d->r, 40);

    if (what < 4) {
        d->now += rng_below(&d->r, 3000);
        give(d, (struct core_event){.type = CORE_TICK});
    } else if (what < 8) {
        decide(d);
    } else if (what < 11) {
        progress(d);
    } else if (what < 13) {
        const bool paused = (run_of(d)->paused & 1u << PAUSE_REQUESTED) != 0;
        give(d, (struct core_event){.type = paused ? CORE_RESUME : CORE_PAUSE,
                                    .text = STR_LIT("a moment")});
    } else if (what == 13) {
        if (!plan_of(d)->planning.pending) {
            modify(d);
        }
    } else if (what == 14 && rng_below(&d->r, 12) == 0) {
        give(d, (struct core_event){.type = CORE_CANCEL, .text = STR_LIT("enough")});
    } else if (what == 15) {
        give(d, (struct core_event){CORE_EV_INIT(SIGNAL, signal, .result = {.id = 77, .len = 3},
                                                 .key = STR_LIT("key"), .digest = 5),
                                    .step = STEP_NONE, .text = STR_LIT("go")});
    } else if (run_of(d)->job == JOB_PLANNING) {
        planner_says(d);
    } else if (run_of(d)->job == JOB_SYNTHESIS && rng_below(&d->r, 3) != 0) {
        synthesizer_says(d);
    } else if (run_of(d)->job == JOB_COMPENSATION && rng_below(&d->r, 2) != 0) {
        const bool ok = rng_below(&d->r, 2) == 0;
        give(d, (struct core_event){CORE_EV_INIT(COMPENSATED, compensated, .ok = ok, .done = 3,
                                                 .failed = ok ? 0 : 1, .usage = {1, 2, 3, 4}),
                                    .step = STEP_NONE, .text = STR_LIT("as it is")});
    } else if (d->held_n > 0) {
        answer(d);
    } else {
        d->now += 50;
        give(d, (struct core_event){.type = CORE_TICK});
    }
}

static void register_agents(struct drive *d, const struct uuid *ids)
{
    for (uint32_t a = 0; a < CODEC_AGENTS; a++) {
        give(d, (struct core_event){CORE_EV_INIT(REGISTER, registration, .agent = a,
                                                 .capacity = CAPACITY, .spawned = a == 0),
                                    .instance = ids[a]});
    }
}

/* ---- replay ---- */

struct replay {
    struct drive *d;
    uint32_t revision; /* in force */
    struct run *run;
    void *mem[REVISIONS_MAX + 1];
    struct arena arena;
};

static void *run_room(const struct plan *plan)
{
    void *mem = calloc(1, run_size(plan));
    assert_non_null(mem);
    return mem;
}

static bool replay_row(const struct journal_row *row, void *self)
{
    struct replay *p = self;
    const struct plan *plan = &p->d->revisions[p->revision].p->plan;
    struct record rec;
    struct bt_error err;

    assert_ok(record_decode(row, plan, p->d->revisions[0].p->plan_id, p->d->now,
                            p->d->now + WALL_AHEAD, &p->arena, &rec, &err),
              err);
    if (record_revises(&rec)) {
        const uint64_t document = REC(&rec, revision)->result.id;
        const struct plan *to = &p->d->revisions[document - PLAN_BLOBS].p->plan;
        assert_int_equal(document - PLAN_BLOBS, p->revision + 1);
        p->mem[++p->revision] = run_room(to);
        p->run = run_revise(p->mem[p->revision], to, p->run, plan, &rec);
        assert_non_null(p->run);
    } else {
        assert_true(run_apply(p->run, plan, &rec));
    }
    arena_reset(&p->arena);
    return true;
}

static void compare(struct drive *d)
{
    struct replay p = {.d = d};
    struct bt_error err;

    p.mem[0] = run_room(&d->revisions[0].p->plan);
    p.run = run_init(p.mem[0], &d->revisions[0].p->plan);
    assert_ok(journal_replay(d->j, 1, replay_row, &p, &err), err);
    assert_int_equal(p.run->plan_seq, d->plan_seq);
    assert_int_equal(p.revision, d->current);
    assert_memory_equal(p.run, run_of(d), run_size(plan_of(d)));
    for (uint32_t i = 0; i <= p.revision; i++) {
        free(p.mem[i]);
    }
    arena_done(&p.arena);
}

/* ---- all ---- */

static void open_all(struct drive *d)
{
    static const char *const NAMES[CODEC_AGENTS] = {"files", "sql-agent", "calc"};
    struct core_config config = {.runs_max = 4,
                                 .registry = {.agents = 8,
                                              .instances = 8,
                                              .lease_ms = 5000,
                                              .suspect_ms = 2500,
                                              .epoch_base = 7},
                                 .agent_wait_ms = 4000,
                                 .unknown_wait_ms = 2000,
                                 .cancel_grace_ms = 100,
                                 .sessions = 1,
                                 .in_flight_session = rng_below(&d->r, 3),
                                 .seed = rng_next(&d->r)};
    struct codec_plan *p = calloc(1, sizeof *p);
    struct bt_error err;

    assert_non_null(p);
    if (rng_below(&d->r, 3) == 0) {
        codec_plan_blank(p, &d->r);
    } else {
        codec_plan_make(p, 1 + rng_below(&d->r, 12), 0, STR_LIT("a task"), CODEC_AGENTS);
        p->plan.chain = rng_below(&d->r, 4) == 0;
        codec_plan_vary(p, &d->r);
    }
    p->plan.job = rng_below(&d->r, 8) == 0 ? JOB_SYNTHESIS : JOB_NONE;
    d->revisions[0] = (struct revision){p, calloc(1, core_run_size(&p->plan))};
    d->core_mem = calloc(1, core_size(&config));
    assert_true(d->core_mem != NULL && d->revisions[0].block != NULL);
    d->core = core_init(d->core_mem, &config);
    d->now = 10000;
    for (uint32_t a = 0; a < CODEC_AGENTS; a++) {
        assert_int_equal(registry_agent_add(core_registry(d->core), str_from(NAMES[a]), d->now), a);
    }
    assert_ok(memory_journal_open(&d->j, &err), err);
}

static void drive_one(struct drive *d)
{
    struct uuid ids[CODEC_AGENTS] = {uuid_new(), uuid_new(), uuid_new()};

    open_all(d);
    register_agents(d, ids);
    const struct core_reuse doubt = {.step = rng_below(&d->r, 3), .doubt = true};
    give(d, (struct core_event){CORE_EV_INIT(
                SUBMIT, submit, .plan = plan_of(d), .block = d->revisions[0].block, .reuse = &doubt,
                .n_reuse = rng_below(&d->r, 4) == 0, .planning = {5, 6, 7, 8})});
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
    for (uint32_t i = 0; i <= d->current; i++) {
        free(d->revisions[i].p);
        free(d->revisions[i].block);
    }
}

static void replaying_the_stored_bytes_gives_the_live_run(void **state)
{
    struct rng r = rng_seeded(__func__);
    uint32_t seen[REC_COUNT] = {0};
    uint32_t over = 0;
    uint32_t revised = 0;

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
        revised += d->current;
        free(d->out.at);
        free(d);
    }
    assert_true(over > ROUNDS / 2);
    assert_true(revised > ROUNDS / 4);
    for (int t = 0; t < REC_COUNT; t++) { /* it reached all that it is about */
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
