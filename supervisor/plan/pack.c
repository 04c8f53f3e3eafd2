#include "supervisor/plan/pack.h"

#include <stdalign.h>
#include <stdlib.h>

#include "supervisor/plan/reader_internal.h"

/* What was packed last: most steps of a plan repeat one of few. */
enum { RECENT_MAX = 8 };
struct recent {
    const void *from[RECENT_MAX]; /* in the plan */
    void *kept[RECENT_MAX];       /* and in the block */
    uint32_t n, next;
};

/* Before a packed plan. */
struct packed {
    struct packed *next;   /* in its bucket */
    struct plan_shelf *on; /* NULL: it is its owner's alone */
    uint64_t hash;         /* of the plan, as it would be at HASH_AT */
    uint32_t refs;         /* owners, on a shelf */
    uint32_t bytes;        /* of the plan */
};
_Static_assert(sizeof(struct packed) % alignof(max_align_t) == 0, "the plan behind it is aligned");
/* Where a plan would lie whose bytes are hashed: any place, the same for all. */
enum { HASH_AT = 4096, BUCKETS_MIN = 64 };

/* Runs twice: without memory it counts bytes, with memory it copies. Equal plans packed for the
 * same place have the same bytes. */
struct packer {
    unsigned char *mem;
    uintptr_t base; /* where the plan will lie */
    size_t used;
    const struct plan *plan;
    struct str ids[LIMIT_PLAN_AGENTS]; /* the copies of plan->agents.ids */
    struct recent rules, waits;
    struct plan_shelf *shelf; /* may be NULL */
};

static void remember(struct recent *io, const void *from, void *kept)
{
    io->from[io->next] = from;
    io->kept[io->next] = kept;
    io->next = (io->next + 1) % RECENT_MAX;
    io->n = io->n < RECENT_MAX ? io->n + 1 : io->n;
}

/* What lies at a place of the plan. */
static void *at_place(const struct packer *k, const void *place)
{
    return k->mem + ((uintptr_t)place - k->base);
}

/* NULL while counting. */
static void *put(struct packer *k, const void *from, size_t bytes, size_t align)
{
    const size_t at = (k->used + align - 1) / align * align;
    k->used = at + bytes;
    if (k->mem == NULL) {
        return NULL;
    }
    if (bytes > 0) {
        memcpy(k->mem + at, from, bytes);
    }
    return (void *)(k->base + at); /* NOLINT(performance-no-int-to-ptr): it may be elsewhere */
}

static struct str put_str(struct packer *k, struct str s)
{
    if (s.len == 0) {
        return (struct str){s.ptr == NULL ? NULL : "", 0};
    }
    return (struct str){put(k, s.ptr, s.len, 1), s.len};
}

static struct doc put_doc(struct packer *k, struct doc d)
{
    return d.ptr == NULL ? d : (struct doc){put(k, d.ptr, d.len, 1), d.len};
}

/* The same bytes as those of the entry before: the steps of items share them. */
static struct doc put_doc_like(struct packer *k, struct doc d, struct doc before, struct doc kept)
{
    return d.ptr != NULL && d.ptr == before.ptr && d.len == before.len ? kept : put_doc(k, d);
}

/* An agent's id is stored once in the plan, however many steps name it. */
static struct str put_agent(struct packer *k, struct str id)
{
    const uint32_t at = id.len == 0 ? UINT32_MAX : plan_grant_find(k->plan, id);
    return at == UINT32_MAX ? put_str(k, id) : k->ids[at];
}

static void put_keys(struct packer *k, struct plan_keys *io)
{
    struct str names[LIMIT_PLAN_KEYS];
    for (uint32_t i = 0; i < io->n; i++) {
        names[i] = put_str(k, io->names[i]);
    }
    io->names = put(k, names, io->n * sizeof io->names[0], alignof(struct str));
    io->at = put(k, io->at, io->n * sizeof io->at[0], alignof(uint32_t));
}

static void put_agents(struct packer *k, struct plan_agents *io)
{
    for (uint32_t i = 0; i < io->n; i++) {
        k->ids[i] = put_str(k, io->ids[i]);
    }
    io->ids = put(k, k->ids, io->n * sizeof io->ids[0], alignof(struct str));
    io->at = put(k, io->at, io->n * sizeof io->at[0], alignof(uint32_t));
}

/* A text that equals the one of the entry before is shared: most plans repeat skills, many tasks.
 */
static struct str put_like(struct packer *k, struct str s, struct str before, struct str kept)
{
    return s.len > 0 && str_eq(s, before) ? kept : put_str(k, s);
}

static bool doc_same(struct doc a, struct doc b)
{
    return a.len == b.len && (a.ptr == NULL) == (b.ptr == NULL) &&
           (a.ptr == b.ptr || a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static bool waits_same(const struct plan_wait *a, const struct plan_wait *b)
{
    return a->what == b->what && a->ms == b->ms && a->until == b->until &&
           str_eq(a->signal, b->signal) && doc_same(a->schema, b->schema);
}

static const struct plan_wait *put_wait(struct packer *k, const struct plan_wait *from)
{
    struct plan_wait w;
    if (from == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < k->waits.n; i++) {
        if (waits_same(from, k->waits.from[i])) {
            return k->waits.kept[i];
        }
    }
    w = *from;
    w.signal = put_str(k, from->signal);
    w.schema = put_doc(k, from->schema);
    const struct plan_wait *kept = put(k, &w, sizeof w, alignof(struct plan_wait));
    remember(&k->waits, from, (void *)(uintptr_t)kept);
    return kept;
}

/* Policies are copied whole, padding too: the same bytes are the same policy. Others may be. */
static bool rules_same(const struct step_rules *a, const struct step_rules *b)
{
    return memcmp(&a->policy, &b->policy, sizeof a->policy) == 0 && a->loop.max == b->loop.max &&
           a->loop.accept == b->loop.accept && a->loop.delay_ms == b->loop.delay_ms &&
           doc_same(a->verify, b->verify) && doc_same(a->when, b->when) &&
           doc_same(a->child, b->child) && doc_same(a->compensate, b->compensate) &&
           doc_same(a->tools, b->tools) && str_eq(a->gate_with, b->gate_with) &&
           str_eq(a->verify_with, b->verify_with) && str_eq(a->gate_skill, b->gate_skill) &&
           str_eq(a->verify_skill, b->verify_skill) && a->gate_agent == b->gate_agent &&
           a->verify_agent == b->verify_agent;
}

/* Nothing in them lies in the plan's memory. */
static bool rules_are_plain(const struct step_rules *r)
{
    return r->verify.ptr == NULL && r->when.ptr == NULL && r->child.ptr == NULL &&
           r->compensate.ptr == NULL && r->tools.ptr == NULL && r->gate_with.len == 0 &&
           r->verify_with.len == 0 && r->gate_skill.len == 0 && r->verify_skill.len == 0;
}

/* The shelf's own copy of plain rules; NULL when it has no room for them. */
static struct step_rules *shelf_rules(struct plan_shelf *shelf, const struct step_rules *from)
{
    const uint64_t hash = str_hash((struct str){(const char *)&from->policy, sizeof from->policy});
    for (uint32_t i = 0; i < PLAN_SHELF_TRIES; i++) {
        struct step_rules **at = &shelf->rules[(hash + i) % PLAN_SHELF_RULES];
        if (*at == NULL) {
            *at = calloc(1, sizeof **at);
            if (*at != NULL) {
                **at = *from;
                (*at)->gate_with = (*at)->verify_with = (struct str){"", 0};
                (*at)->gate_skill = (*at)->verify_skill = (struct str){"", 0};
            }
            return *at;
        }
        if (rules_same(*at, from)) {
            return *at;
        }
    }
    return NULL;
}

static struct step_rules *put_rules(struct packer *k, const struct step_rules *from)
{
    struct step_rules *shared =
        k->shelf != NULL && rules_are_plain(from) ? shelf_rules(k->shelf, from) : NULL;
    if (shared != NULL) {
        return shared;
    }
    for (uint32_t i = 0; i < k->rules.n; i++) {
        if (rules_same(from, k->rules.from[i])) {
            return k->rules.kept[i];
        }
    }
    struct step_rules r = *from;
    r.verify = put_doc(k, from->verify);
    r.when = put_doc(k, from->when);
    r.child = put_doc(k, from->child);
    r.compensate = put_doc(k, from->compensate);
    r.tools = put_doc(k, from->tools);
    r.gate_with = put_agent(k, from->gate_with);
    r.verify_with = put_agent(k, from->verify_with);
    r.gate_skill = put_str(k, from->gate_skill);
    r.verify_skill = put_str(k, from->verify_skill);
    struct step_rules *kept = put(k, &r, sizeof r, alignof(struct step_rules));
    remember(&k->rules, from, kept);
    return kept;
}

static struct plan_step *put_steps(struct packer *k)
{
    const struct plan *p = k->plan;
    struct plan_step *steps =
        put(k, p->steps, p->n_steps * sizeof p->steps[0], alignof(struct plan_step));
    struct plan_step kept = {.step_id = {NULL, 0}};
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct plan_step *from = &p->steps[i];
        const struct plan_step *before = i > 0 ? from - 1 : &kept;
        struct plan_step s = *from;
        s.step_id = put_str(k, from->step_id);
        s.agent_id = put_agent(k, from->agent_id);
        s.skill = put_like(k, from->skill, before->skill, kept.skill);
        s.task = put_like(k, from->task, before->task, kept.task);
        s.parameters = put_doc_like(k, from->parameters, before->parameters, kept.parameters);
        s.item = put_doc_like(k, from->item, before->item, kept.item);
        s.wait = put_wait(k, from->wait);
        s.rules = put_rules(k, from->rules);
        kept = s;
        if (k->mem != NULL) {
            ((struct plan_step *)at_place(k, steps))[i] = s;
        }
    }
    return steps;
}

static void pack(struct packer *k)
{
    const size_t edges = k->plan->n_edges * sizeof k->plan->deps[0];
    struct plan p = *k->plan;
    k->used = sizeof p;
    k->rules = k->waits = (struct recent){.n = 0};
    p.policy = NULL;
    put_agents(k, &p.agents);
    put_keys(k, &p.keys);
    p.alternatives =
        put(k, p.alternatives, p.n_alternatives * sizeof p.alternatives[0], alignof(uint32_t));
    p.replan.agent_id = put_agent(k, p.replan.agent_id);
    p.replan.skill = put_str(k, p.replan.skill);
    p.search_with = put_agent(k, p.search_with);
    p.planning.agent_id = put_agent(k, p.planning.agent_id);
    p.planning.skill = put_str(k, p.planning.skill);
    p.synthesis.agent_id = put_agent(k, p.synthesis.agent_id);
    p.synthesis.skill = put_str(k, p.synthesis.skill);
    p.session_id = put_str(k, p.session_id);
    p.goal = put_str(k, p.goal);
    p.child.of = put_str(k, p.child.of);
    p.child.name = put_str(k, p.child.name);
    p.child.previous = put_doc(k, p.child.previous);
    p.planner = put_str(k, p.planner);
    p.deps = put(k, p.deps, edges, alignof(uint32_t));
    p.dependents = put(k, p.dependents, edges, alignof(uint32_t));
    p.steps = put_steps(k);
    if (k->mem != NULL) {
        memcpy(k->mem, &p, sizeof p);
    }
}

struct plan *plan_pack(const struct plan *plan, struct plan_shelf *shelf)
{
    struct packer k = {.plan = plan, .shelf = shelf};
    pack(&k);
    struct packed *made = calloc(1, sizeof *made + k.used);
    if (made == NULL) {
        return NULL;
    }
    k.mem = (unsigned char *)(made + 1);
    k.base = (uintptr_t)k.mem;
    pack(&k);
    made->bytes = (uint32_t)k.used;
    return (struct plan *)(void *)k.mem;
}

static struct packed *packed_of(struct plan *plan)
{
    return (struct packed *)(void *)plan - 1;
}

/* The bytes that the plan would have elsewhere. */
static void pack_for(struct plan *plan, struct plan_shelf *shelf, uintptr_t base, void *mem)
{
    struct packer k = {.plan = plan, .shelf = shelf, .mem = mem, .base = base};
    memset(mem, 0, packed_of(plan)->bytes);
    pack(&k);
}

static void grow(struct plan_shelf *shelf)
{
    const uint32_t cap = shelf->cap == 0 ? BUCKETS_MIN : 2 * shelf->cap;
    struct packed **buckets = shelf->n < shelf->cap ? NULL : calloc(cap, sizeof(struct packed *));
    if (buckets == NULL) {
        return; /* the buckets become longer */
    }
    for (uint32_t i = 0; i < shelf->cap; i++) {
        for (struct packed *at = shelf->buckets[i], *next; at != NULL; at = next) {
            next = at->next;
            at->next = buckets[at->hash % cap];
            buckets[at->hash % cap] = at;
        }
    }
    free(shelf->buckets);
    shelf->buckets = buckets;
    shelf->cap = cap;
}

struct plan *plan_pack_share(struct plan *plan, struct plan_shelf *shelf)
{
    struct packed *own = packed_of(plan);
    void *mem = plan->keys.n > 0 || own->on != NULL ? NULL : malloc(own->bytes);
    if (mem == NULL) {
        return plan;
    }
    pack_for(plan, shelf, HASH_AT, mem);
    own->hash = str_hash((struct str){mem, own->bytes});
    grow(shelf);
    struct packed *at = shelf->cap > 0 ? shelf->buckets[own->hash % shelf->cap] : NULL;
    for (; at != NULL; at = at->next) {
        if (at->hash == own->hash && at->bytes == own->bytes) {
            pack_for(plan, shelf, (uintptr_t)(at + 1), mem);
            if (memcmp(mem, at + 1, at->bytes) == 0) {
                break;
            }
        }
    }
    free(mem);
    if (at != NULL) {
        at->refs++;
        free(own);
        return (struct plan *)(void *)(at + 1);
    }
    if (shelf->cap > 0) {
        own->on = shelf;
        own->refs = 1;
        own->next = shelf->buckets[own->hash % shelf->cap];
        shelf->buckets[own->hash % shelf->cap] = own;
        shelf->n++;
    }
    return plan;
}

void plan_pack_drop(struct plan *plan)
{
    struct packed *own = plan != NULL ? packed_of(plan) : NULL;
    if (own == NULL || (own->on != NULL && --own->refs > 0)) {
        return;
    }
    if (own->on != NULL) {
        struct packed **at = &own->on->buckets[own->hash % own->on->cap];
        while (*at != own) {
            at = &(*at)->next;
        }
        *at = own->next;
        own->on->n--;
    }
    free(own);
}

size_t plan_pack_bytes(const struct plan *plan)
{
    return sizeof(struct packed) + ((const struct packed *)(const void *)plan - 1)->bytes;
}

void plan_shelf_done(struct plan_shelf *shelf)
{
    for (uint32_t i = 0; i < PLAN_SHELF_RULES; i++) {
        free(shelf->rules[i]);
    }
    free(shelf->buckets);
    *shelf = (struct plan_shelf){.n = 0};
}
