/*
 * Every order of events in a small world, depth first; a state that was met before is not entered
 * again. Stops at the first broken rule and prints the path that leads there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "tests/explore/world.h"

enum { DEPTH_MAX = 512, TABLE_BITS = 23 };

struct level {
    unsigned char *snapshot;
    struct world_event events[WORLD_EVENTS_MAX];
    uint32_t n, next;
};

struct search {
    struct world *world;
    size_t bytes;
    struct level *levels;
    uint64_t *table; /* hashes of states; 0 = free */
    uint64_t states, edges, ends, deepest;
};

static const struct scenario {
    const char *plan;
    struct budget budget;
} scenarios[] = {
    {"A(retries=1 backoff=10 timeout=30); B<A; C<A(continue); D<B,C(always timeout=30)",
     {.losses = 1, .strays = 1}},
    {"A(retries=1 backoff=10 timeout=30)",
     {.registrations = 1, .restarts = 1, .losses = 1, .strays = 1, .silences = 1}},
    {"A(unsafe retries=1 backoff=10 timeout=30)",
     {.registrations = 1, .restarts = 1, .losses = 1, .waits = 1}},
    {"A(skip timeout=30); B(unsafe)", {.restarts = 1, .losses = 1, .waits = 1, .cancel = true}},
    {"par max=1: A(continue); B(unsafe)",
     {.registrations = 1, .losses = 1, .silences = 1, .cancel = true}},
    {"A(continue); B<A; C<B; D<A(always)", {.losses = 1}},
    {"timeout=70: A(retries=1 backoff=10); B<A", {.registrations = 1, .losses = 1, .waits = 1}},
};

/* True when the state is new. */
static bool remember(struct search *s, uint64_t hash)
{
    const uint64_t mask = (UINT64_C(1) << TABLE_BITS) - 1;
    hash = hash == 0 ? 1 : hash;
    uint64_t at = hash & mask;
    while (s->table[at] != 0) {
        if (s->table[at] == hash) {
            return false;
        }
        at = (at + 1) & mask;
    }
    ASSERT(s->states < mask / 2);
    s->table[at] = hash;
    s->states++;
    return true;
}

static void enter(struct search *s, uint32_t depth)
{
    ASSERT(depth < DEPTH_MAX);
    struct level *l = &s->levels[depth];
    if (l->snapshot == NULL) {
        l->snapshot = malloc(s->bytes);
        ASSERT(l->snapshot != NULL);
    }
    world_save(s->world, l->snapshot);
    l->n = world_events(s->world, l->events);
    l->next = 0;
    s->ends += l->n == 0 ? 1 : 0;
    s->deepest = depth > s->deepest ? depth : s->deepest;
}

static int broken(struct search *s, uint32_t depth, const char *why)
{
    char text[128];
    (void)fprintf(stderr, "broken: %s\nplan: %s\n", why, s->world->text);
    for (uint32_t i = 0; i <= depth; i++) {
        world_load(s->world, s->levels[i].snapshot);
        world_event_text(s->world, &s->levels[i].events[s->levels[i].next - 1], text, sizeof text);
        (void)fprintf(stderr, "%3u %s\n", (unsigned)i, text);
    }
    return 1;
}

static int search(struct search *s)
{
    uint32_t depth = 0;
    (void)remember(s, world_hash(s->world));
    enter(s, 0);
    for (;;) {
        struct level *l = &s->levels[depth];
        if (l->next == l->n) {
            if (depth == 0) {
                return 0;
            }
            depth--;
            continue;
        }
        const char *why = "";
        world_load(s->world, l->snapshot);
        s->edges++;
        if (!world_do(s->world, &l->events[l->next++], &why)) {
            return broken(s, depth, why);
        }
        if (remember(s, world_hash(s->world))) {
            enter(s, ++depth);
        }
    }
}

static int explore(const struct scenario *sc, uint64_t seen[WORLD_KIND_COUNT],
                   uint64_t moves[STEP_STATUS_COUNT][STEP_STATUS_COUNT])
{
    struct search s = {.world = world_new(sc->plan, &sc->budget)};
    s.bytes = core_size(&s.world->config) + core_run_size(s.world->plan) + run_size(WORLD_STEPS) +
              sizeof(struct situation);
    s.levels = calloc(DEPTH_MAX, sizeof *s.levels);
    s.table = calloc(UINT64_C(1) << TABLE_BITS, sizeof *s.table);
    ASSERT(s.levels != NULL && s.table != NULL);
    const int result = search(&s);
    (void)printf("%s: %" PRIu64 " states, %" PRIu64 " events, %" PRIu64 " ends, depth %" PRIu64
                 "\n",
                 sc->plan, s.states, s.edges, s.ends, s.deepest);
    (void)fflush(stdout);
    for (int i = 0; i < WORLD_KIND_COUNT; i++) {
        seen[i] += s.world->seen[i];
    }
    for (int i = 0; i < STEP_STATUS_COUNT; i++) {
        for (int j = 0; j < STEP_STATUS_COUNT; j++) {
            moves[i][j] += s.world->moves[i][j];
        }
    }
    for (uint32_t i = 0; i < DEPTH_MAX; i++) {
        free(s.levels[i].snapshot);
    }
    free(s.levels);
    free(s.table);
    world_free(s.world);
    return result;
}

/* What never happened was not tested. PENDING -> READY and the ends by PLAN_COMPLETED happen inside
 * other records. */
static int check_coverage(const uint64_t seen[WORLD_KIND_COUNT],
                          uint64_t moves[STEP_STATUS_COUNT][STEP_STATUS_COUNT])
{
    int result = 0;
    for (int i = 0; i < WORLD_KIND_COUNT; i++) {
        if (seen[i] == 0) {
            (void)fprintf(stderr, "event %d never happened\n", i);
            result = 1;
        }
    }
    for (int from = STEP_READY; from < STEP_COMPLETED; from++) {
        for (int to = 0; to < STEP_STATUS_COUNT; to++) {
            const bool allowed = run_move_allowed((enum step_status)from, (enum step_status)to);
            const bool by_plan_end = from == STEP_READY && to == STEP_CANCELLED;
            if (allowed && !by_plan_end && moves[from][to] == 0) {
                (void)fprintf(stderr, "no step went from %s to %s\n",
                              step_status_state_name((enum step_status)from),
                              step_status_state_name((enum step_status)to));
                result = 1;
            }
        }
    }
    return result;
}

int main(int argc, char **argv)
{
    static uint64_t seen[WORLD_KIND_COUNT];
    static uint64_t moves[STEP_STATUS_COUNT][STEP_STATUS_COUNT];
    const long only = argc > 1 ? strtol(argv[1], NULL, 10) : -1;
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        if ((only < 0 || (size_t)only == i) && explore(&scenarios[i], seen, moves) != 0) {
            return 1;
        }
    }
    return only < 0 ? check_coverage(seen, moves) : 0;
}
