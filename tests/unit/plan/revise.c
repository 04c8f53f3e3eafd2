#include "revise.h"

#include "supervisor/plan/reader_internal.h"

static void put(struct bench *b, struct run *run, struct record rec)
{
    rec.now = 1;
    if (!run_apply(run, b->plan, &rec)) {
        fail_msg("record %s of step %u does not fit", record_wire_type(rec.type), rec.step);
    }
}

struct run *start_run(struct bench *b, const char *json)
{
    if (read_json(b, json) != BT_OK) {
        fail_msg("%s", b->err.msg);
    }
    return begin_run(b);
}

struct run *begin_run(struct bench *b)
{
    struct run *run = run_init(arena_alloc(&b->arena, run_size(b->plan)), b->plan);
    put(b, run, (struct record){.type = REC_PLAN_GENERATED, .step = STEP_NONE});
    put(b, run, (struct record){.type = REC_PLAN_STARTED, .step = STEP_NONE});
    return run;
}

static void end(struct bench *b, struct run *run, uint32_t step, enum step_status to,
                enum step_reason reason)
{
    put(b, run,
        (struct record){REC_INIT(STEP_COMPLETED, step_completed, .status = to, .reason = reason),
                        .step = step, .attempt = run->steps[step].attempt});
}

void move_step(struct bench *b, struct run *run, uint32_t step, enum step_status to)
{
    if (to == STEP_IN_PROGRESS || to == STEP_COMPLETED || to == STEP_FAILED) {
        put(b, run,
            (struct record){REC_INIT(STEP_STARTED, assigned, .instance = {.b = {1}}), .step = step,
                            .attempt = 1, .agent = b->plan->steps[step].agent});
    }
    if (to != STEP_IN_PROGRESS) {
        end_step(b, run, step, to);
    }
}

void end_step(struct bench *b, struct run *run, uint32_t step, enum step_status to)
{
    end(b, run, step, to, to == STEP_SKIPPED ? REASON_USER_SKIP : REASON_NONE);
}

enum bt_code revise(struct bench *b, struct run *run, enum plan_revise_kind kind, struct doc change,
                    struct plan **ret)
{
    return revise_marked(b, run, kind, change, NULL, ret);
}

enum bt_code revise_marked(struct bench *b, struct run *run, enum plan_revise_kind kind,
                           struct doc change, const uint8_t *marked, struct plan **ret)
{
    const struct plan_revise_request request = {.kind = kind,
                                                .change = change,
                                                .plan = b->plan,
                                                .run = run,
                                                .registry = b->registry,
                                                .revision = run->revision + 1,
                                                .rerun = marked};
    b->problems = (struct problems){.at = b->at, .cap = 100};
    buf_clear(&b->normalised);
    return plan_revise(&request, &b->arena, ret, &b->problems, &b->normalised, &b->err);
}

static bool same_deps(const struct plan *a, const struct plan *b, uint32_t entry)
{
    for (uint32_t i = 0; a->chain && entry > 0 && i < 1; i++) {
        return b->steps[entry].deps_n == 1 && b->deps[b->steps[entry].deps_at] == entry - 1;
    }
    if (a->chain) {
        return b->steps[entry].deps_n == 0;
    }
    return a->steps[entry].deps_n == b->steps[entry].deps_n &&
           (a->steps[entry].deps_n == 0 ||
            memcmp(&a->deps[a->steps[entry].deps_at], &b->deps[b->steps[entry].deps_at],
                   a->steps[entry].deps_n * sizeof a->deps[0]) == 0);
}

/* What holds for old entries after every change. */
static void check_rows(struct bench *b, const struct run *run, const struct plan *next)
{
    const struct plan *old = b->plan;
    assert_false(next->chain);
    assert_true(next->n_steps >= old->n_steps);
    assert_int_equal(next->revision, run->revision + 1);
    assert_true(next->agents.n >= old->agents.n);
    for (uint32_t i = 0; i < old->agents.n; i++) {
        assert_true(str_eq(next->agents.ids[i], old->agents.ids[i]));
    }
    for (uint32_t i = 0; i < old->n_steps; i++) {
        const struct plan_step *was = &old->steps[i];
        const struct plan_step *is = &next->steps[i];
        const bool open =
            run->steps[i].status == STEP_PENDING || run->steps[i].status == STEP_READY;
        assert_true(str_eq(was->step_id, is->step_id));
        assert_true(str_eq(was->task, is->task));
        assert_true(str_eq(was->agent_id, is->agent_id));
        assert_int_equal(was->revision, is->revision);
        assert_memory_equal(&was->rules->policy, &is->rules->policy, sizeof was->rules->policy);
        assert_true(!was->superseded || is->superseded);
        assert_true(open || same_deps(old, next, i));
    }
    for (uint32_t i = old->n_steps; i < next->n_steps; i++) {
        assert_int_equal(next->steps[i].revision, next->revision);
        assert_false(next->steps[i].superseded);
    }
    for (uint32_t i = 0; i < next->n_steps; i++) {
        const struct plan_step *s = &next->steps[i];
        const bool open = i >= run->n_steps || run->steps[i].status == STEP_PENDING ||
                          run->steps[i].status == STEP_READY;
        for (uint32_t d = 0; open && !s->superseded && d < s->deps_n; d++) {
            assert_false(next->steps[next->deps[s->deps_at + d]].superseded);
        }
    }
}

struct run *reuse_results(struct bench *b, struct run *run, struct plan *next)
{
    const char *why = "";
    check_rows(b, run, next);
    assert_int_equal(plan_resolve(next, b->registry, 1, &b->err), BT_OK);
    for (uint32_t i = 0; i < run->n_steps; i++) {
        if (next->steps[i].superseded && !step_is_final(run->steps[i].status)) {
            end(b, run, i, STEP_SKIPPED, REASON_SUPERSEDED);
        }
    }
    struct record rec = {REC_INIT(PLAN_MODIFIED, revision, .modify = MODIFY_INSERT,
                                  .revision = next->revision, .result = {1, 1}),
                         .step = STEP_NONE, .now = 1};
    assert_true(record_revises(&rec));
    struct run *to = run_revise(arena_alloc(&b->arena, run_size(next)), next, run, b->plan, &rec);
    if (to == NULL) {
        fail_msg("the run does not take %s", shape(b, next));
    }
    if (!run_invariant(to, next, &why)) {
        fail_msg("%s: %s", why, shape(b, next));
    }
    b->plan = next;
    return to;
}

struct run *revised(struct bench *b, struct run *run, enum plan_revise_kind kind,
                    const char *change)
{
    struct plan *next = NULL;
    struct buf out;
    if (revise(b, run, kind, doc_of(b, change), &next) != BT_OK) {
        fail_msg("%s", b->err.msg);
    }
    (void)read_back(b);
    buf_init(&out, LIMIT_STEP_BYTES);
    assert_int_equal(plan_write(next, &out, &b->err), BT_OK);
    assert_int_equal(out.len, b->normalised.len);
    assert_memory_equal(out.at, b->normalised.at, out.len);
    buf_done(&out);
    return reuse_results(b, run, next);
}

const char *shape(struct bench *b, const struct plan *p)
{
    struct buf text;
    buf_init(&text, 1 << 20);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct plan_step *s = &p->steps[i];
        buf_printf(&text, "%s%s%.*s", i == 0 ? "" : "; ", s->superseded ? "-" : "",
                   STR_ARG(s->step_id));
        for (uint32_t d = 0; d < s->deps_n; d++) {
            const struct plan_step *dep = &p->steps[p->deps[s->deps_at + d]];
            buf_printf(&text, "%s%.*s",
                       d > 0              ? ","
                       : s->after_any_end ? "~"
                                          : "<",
                       STR_ARG(dep->step_id));
        }
    }
    const char *copy = arena_str(&b->arena, str_from(buf_cstr(&text))).ptr;
    buf_done(&text);
    return copy;
}
