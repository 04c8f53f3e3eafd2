/*
 * Every order of events in small worlds, depth first; a state that was met before is not entered
 * again. Stops at the first broken rule and prints the path that leads there.
 *
 * The first event of every state is what happens when all goes well from there on. It is followed
 * first, so the states on the stack that have not been left yet are one path on which all goes
 * well: when it meets itself, the plan would never end (liveness).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "tests/explore/scenarios.h"

enum { DEPTH_MAX = 1024, TABLE_BITS = 22, TABLE_BITS_DEEP = 26 };

struct level {
    unsigned char *snapshot;
    struct world_event events[WORLD_EVENTS_MAX];
    uint32_t n, next;
    uint32_t at; /* in the table */
};

struct counts {
    uint64_t scenarios, states, events, ends;
};

struct search {
    struct world *world;
    size_t bytes;
    struct level *levels;
    uint64_t *table; /* hashes of states, the lowest bit: an end is known; 0 = free */
    uint32_t mask;   /* of its places */
    struct counts n;
    uint64_t deepest;
    uint32_t limit; /* of the depth */
};

/* What all scenarios share. */
struct all {
    struct coverage seen;
    struct level *levels;
    uint64_t *table;
    uint32_t mask;
    struct counts total, family;
    const char *name; /* of the family */
    const char *only_family;
    long only, nth;
    bool verbose;
    bool shortest; /* looks for the shortest path to a broken rule */
};

/* True when the state is new. */
static bool remember(struct search *s, uint64_t hash, uint32_t *ret_at)
{
    const uint32_t mask = s->mask;
    hash = (hash & ~UINT64_C(1)) == 0 ? 2 : hash & ~UINT64_C(1);
    uint32_t at = (uint32_t)(hash >> 8) & mask;
    while (s->table[at] != 0) {
        if ((s->table[at] & ~UINT64_C(1)) == hash) {
            *ret_at = at;
            return false;
        }
        at = (at + 1) & mask;
    }
    ASSERT(s->n.states < mask / 4 * 3);
    s->table[at] = hash;
    s->n.states++;
    *ret_at = at;
    return true;
}

static void enter(struct search *s, uint32_t depth, uint32_t at)
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
    l->at = at;
    s->deepest = depth > s->deepest ? depth : s->deepest;
}

static int broken(struct search *s, uint32_t depth, const char *why)
{
    char text[160];
    (void)fprintf(stderr, "broken: %s\nplan: %s\n", why, s->world->scenario->plan);
    for (uint32_t i = 0; i <= depth; i++) {
        world_load(s->world, s->levels[i].snapshot);
        world_event_text(s->world, &s->levels[i].events[s->levels[i].next - 1], text, sizeof text);
        (void)fprintf(stderr, "%3u %s\n", (unsigned)i, text);
    }
    return 1;
}

/* An end is known for this state, so also for all that led here when all went well. */
static void settle(struct search *s, uint32_t depth)
{
    for (;; depth--) {
        s->table[s->levels[depth].at] |= 1;
        if (depth == 0 || (s->table[s->levels[depth - 1].at] & 1) != 0) {
            return;
        }
    }
}

/* After the end, what still comes back changes nothing. */
static bool over(struct search *s, const char **ret_why)
{
    s->n.ends++;
    for (uint8_t i = 0; i < WORLD_BODIES; i++) {
        const struct request *req = &s->world->at.bodies[i].now;
        const struct world_event ev = {WORLD_RESULT, i,    req->step, req->phase, ANSWER_FAIL,
                                       req->attempt, false};
        if (req->out) {
            return world_do(s->world, &ev, ret_why);
        }
    }
    return true;
}

static int search(struct search *s)
{
    uint32_t depth = 0;
    uint32_t at = 0;
    (void)remember(s, world_hash(s->world), &at);
    enter(s, 0, at);
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
        const bool well = l->next == 0;
        world_load(s->world, l->snapshot);
        s->n.events++;
        if (!world_do(s->world, &l->events[l->next++], &why)) {
            return broken(s, depth, why);
        }
        if (s->world->at.over) {
            if (!over(s, &why)) {
                return broken(s, depth, why);
            }
            if (well) {
                settle(s, depth);
            }
            continue;
        }
        if (depth + 1 >= s->limit) {
            settle(s, depth);
        } else if (remember(s, world_hash(s->world), &at)) {
            enter(s, ++depth, at);
        } else if (well && (s->table[at] & 1) == 0) {
            return broken(s, depth, "this goes on for ever");
        } else if (well) {
            settle(s, depth);
        }
    }
}

static void print_family(struct all *all)
{
    if (all->name != NULL) {
        (void)printf("%-10s %4" PRIu64 " scenarios %9" PRIu64 " states %10" PRIu64
                     " events %9" PRIu64 " ends\n",
                     all->name, all->family.scenarios, all->family.states, all->family.events,
                     all->family.ends);
        (void)fflush(stdout);
    }
    all->family = (struct counts){0};
}

static void count(struct counts *c, const struct counts *more)
{
    c->scenarios++;
    c->states += more->states;
    c->events += more->events;
    c->ends += more->ends;
}

static int explore(const struct scenario *sc, void *arg)
{
    struct all *all = arg;
    if ((all->only_family != NULL && strcmp(all->only_family, sc->family) != 0) ||
        (all->nth++ != all->only && all->only >= 0)) {
        return 0;
    }
    if (all->name == NULL || strcmp(all->name, sc->family) != 0) {
        print_family(all);
        all->name = sc->family;
    }
    struct search s = {.world = world_new(sc, &all->seen),
                       .levels = all->levels,
                       .table = all->table,
                       .mask = all->mask};
    s.bytes = world_size(s.world);
    memset(s.table, 0, ((size_t)all->mask + 1) * sizeof *s.table);
    int result = 0;
    for (uint32_t limit = all->shortest ? 2 : DEPTH_MAX; limit <= DEPTH_MAX && result == 0;
         limit++) {
        if (limit > 2 && all->shortest) { /* from the beginning, one step further */
            world_free(s.world);
            s = (struct search){.world = world_new(sc, &all->seen),
                                .levels = all->levels,
                                .table = all->table,
                                .mask = all->mask,
                                .bytes = s.bytes};
            memset(s.table, 0, ((size_t)all->mask + 1) * sizeof *s.table);
        }
        s.limit = limit;
        result = search(&s);
        if (s.deepest + 1 < limit) {
            break;
        }
    }
    if (all->verbose || result != 0) {
        (void)printf("%ld %s: %s: %" PRIu64 " states, %" PRIu64 " events, %" PRIu64
                     " ends, depth %" PRIu64 "\n",
                     all->nth - 1, sc->family, sc->plan, s.n.states, s.n.events, s.n.ends,
                     s.deepest);
        (void)fflush(stdout);
    }
    count(&all->family, &s.n);
    count(&all->total, &s.n);
    for (uint32_t i = 0; i < DEPTH_MAX; i++) {
        free(s.levels[i].snapshot);
        s.levels[i].snapshot = NULL;
    }
    world_free(s.world);
    return result;
}

int main(int argc, char **argv)
{
    static struct all all = {.only = -1};
    enum explore_scope scope = EXPLORE_USUAL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--deep") == 0) {
            scope = EXPLORE_DEEP;
        } else if (strcmp(argv[i], "--short") == 0) {
            scope = EXPLORE_SHORT;
        } else if (strcmp(argv[i], "-v") == 0) {
            all.verbose = true;
        } else if (strcmp(argv[i], "--shortest") == 0) {
            all.shortest = true;
        } else if (argv[i][0] >= '0' && argv[i][0] <= '9') {
            all.only = strtol(argv[i], NULL, 10);
        } else {
            all.only_family = argv[i];
        }
    }
    all.levels = calloc(DEPTH_MAX, sizeof *all.levels);
    all.mask = (UINT32_C(1) << (scope == EXPLORE_DEEP ? TABLE_BITS_DEEP : TABLE_BITS)) - 1;
    all.table = calloc((size_t)all.mask + 1, sizeof *all.table);
    ASSERT(all.levels != NULL && all.table != NULL);
    const int result = scenarios_each(scope, explore, &all);
    print_family(&all);
    (void)printf("all        %4" PRIu64 " scenarios %9" PRIu64 " states %10" PRIu64
                 " events %9" PRIu64 " ends\n",
                 all.total.scenarios, all.total.states, all.total.events, all.total.ends);
    free(all.levels);
    free(all.table);
    if (result == 0 && all.only < 0 && all.only_family == NULL && scope != EXPLORE_SHORT) {
        return coverage_check(&all.seen) == 0 ? 0 : 1;
    }
    return result;
}
