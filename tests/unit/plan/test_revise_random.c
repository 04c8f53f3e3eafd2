/* Random revisions of random running plans: the run accepts whatever plan_revise returns. */
#include "revise.h"

enum { ROUNDS = 300, TURNS = 25 };

struct dice {
    uint32_t x;
    uint32_t named; /* step ids used so far */
};

static uint32_t draw(struct dice *d, uint32_t n)
{
    d->x = d->x * 1664525u + 1013904223u;
    return (d->x >> 8) % n;
}

/* Some ids of the plan, over or open, and of the new steps. */
static void put_deps(struct bench *b, struct dice *d, struct buf *json, uint32_t from, uint32_t to)
{
    const uint32_t n = draw(d, 3);
    buf_add_cstr(json, ",'dependsOn':[");
    for (uint32_t i = 0; i < n; i++) {
        const bool own = to > from && draw(d, 2) == 0;
        const uint32_t entry = b->plan == NULL ? 0 : draw(d, b->plan->n_steps);
        if (own) {
            buf_printf(json, "%s's%u'", i > 0 ? "," : "", from + draw(d, to - from));
        } else if (b->plan != NULL) {
            buf_printf(json, "%s'%.*s'", i > 0 ? "," : "", STR_ARG(b->plan->steps[entry].step_id));
        } else {
            break;
        }
    }
    buf_add_cstr(json, "]");
}

static void put_steps(struct bench *b, struct dice *d, struct buf *json)
{
    static const char *const agents[] = {"calc", "sql", "files"};
    const uint32_t n = 1 + draw(d, 4);
    const uint32_t from = d->named;
    const bool graph = draw(d, 2) == 0;
    buf_add_cstr(json, "'steps':[");
    for (uint32_t i = 0; i < n; i++) {
        /* Sometimes an old name for new work. */
        const uint32_t name = from > 0 && draw(d, 6) == 0 ? draw(d, from) : d->named++;
        buf_printf(json, "%s{'stepId':'s%u','agentId':'%s'," TASK "%s", i > 0 ? "," : "", name,
                   agents[draw(d, 3)], draw(d, 5) == 0 ? ",'runIf':'always'" : "");
        if (graph) {
            put_deps(b, d, json, from, d->named);
        }
        buf_add_cstr(json, "}");
    }
    buf_add_cstr(json, "]");
}

static struct run *start(struct bench *b, struct dice *d)
{
    struct run *run = NULL;
    while (run == NULL) {
        struct buf json;
        buf_init(&json, 1 << 16);
        b->plan = NULL;
        d->named = 0;
        buf_add_cstr(&json, "{'policy':{'handoffTo':['files']},");
        put_steps(b, d, &json);
        buf_add_cstr(&json, "}");
        if (read_json(b, buf_cstr(&json)) == BT_OK) {
            run = start_run(b, buf_cstr(&json));
        }
        buf_done(&json);
    }
    return run;
}

/* A step begins or ends. */
static void advance(struct bench *b, struct dice *d, struct run *run)
{
    const uint32_t entry = draw(d, run->n_steps);
    switch ((enum step_status)run->steps[entry].status) {
    case STEP_READY:
        if (run->active < b->plan->max_concurrency) {
            move_step(b, run, entry, STEP_IN_PROGRESS);
        }
        break;
    case STEP_IN_PROGRESS:
        end_step(b, run, entry, draw(d, 4) == 0 ? STEP_SKIPPED : STEP_COMPLETED);
        break;
    case STEP_PENDING:
        if (draw(d, 8) == 0) {
            end_step(b, run, entry, STEP_SKIPPED);
        }
        break;
    case STEP_BACKOFF:
    case STEP_UNKNOWN:
    case STEP_WAITING:
    case STEP_CHECKING:
    case STEP_SLEEPING:
    case STEP_COMPLETED:
    case STEP_FAILED:
    case STEP_SKIPPED:
    case STEP_CANCELLED:
    case STEP_STATUS_COUNT:
        break;
    }
}

static void put_change(struct bench *b, struct dice *d, const struct run *run,
                       enum plan_revise_kind kind, struct buf *json)
{
    static const char *const anchors[] = {"afterStepId", "beforeStepId", "x"};
    const uint32_t entry = draw(d, run->n_steps);
    const struct str id = b->plan->steps[entry].step_id;
    buf_add_cstr(json, "{");
    if (kind == REVISE_REPLAN) {
        const char *comma = "";
        buf_add_cstr(json, "'reuse':[");
        for (uint32_t i = 0; i < run->n_steps; i++) {
            if (run->steps[i].status == STEP_COMPLETED && !b->plan->steps[i].superseded &&
                draw(d, 3) > 0) {
                buf_printf(json, "%s'%.*s'", comma, STR_ARG(b->plan->steps[i].step_id));
                comma = ",";
            }
        }
        buf_add_cstr(json, "],");
    } else {
        buf_printf(json, "'%s':'%.*s',", kind == REVISE_REPLACE ? "stepId" : anchors[draw(d, 3)],
                   STR_ARG(id));
    }
    put_steps(b, d, json);
    buf_add_cstr(json, "}");
}

static void whatever_is_taken_fits_the_run(void **state)
{
    struct bench *b = *state;
    const uint32_t seed = 20261122;
    uint32_t taken[3] = {0};
    uint32_t refused = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct dice d = {.x = seed + round};
        add_house(b);
        struct run *run = start(b, &d);
        print_message("seed %u\r", seed + round); /* printed on a failure */
        for (uint32_t turn = 0; turn < TURNS; turn++) {
            if (draw(&d, 3) > 0) {
                advance(b, &d, run);
                continue;
            }
            const enum plan_revise_kind kind = (enum plan_revise_kind)draw(&d, 3);
            struct plan *next = NULL;
            struct buf json;
            buf_init(&json, 1 << 16);
            put_change(b, &d, run, kind, &json);
            const enum bt_code code = revise(b, run, kind, doc_of(b, buf_cstr(&json)), &next);
            buf_done(&json);
            assert_true(code == BT_OK || (code == BT_INVALID && b->problems.errors > 0));
            if (code != BT_OK) {
                refused++;
                continue;
            }
            (void)read_back(b);
            run = reuse_results(b, run, next);
            taken[kind]++;
        }
        arena_reset(&b->arena);
        (void)registry_init(b->registry, &bench_limits);
    }
    print_message("inserted %u, replaced %u, replanned %u, refused %u\n", taken[0], taken[1],
                  taken[2], refused);
    for (int kind = 0; kind < 3; kind++) {
        assert_true(taken[kind] > 50);
    }
    assert_true(refused > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {RULE(whatever_is_taken_fits_the_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
