#include "supervisor/query/waits.h"

static const char *person_wanted(enum review_kind kind)
{
    switch (kind) {
    case REVIEW_APPROVAL:
    case REVIEW_BEFORE:
        return "waiting for approval";
    case REVIEW_INPUT:
        return "waiting for input";
    case REVIEW_STEP:
        return "waiting for a person's review";
    case REVIEW_PLAN:
        return "waiting for the plan's sign-off";
    case REVIEW_PLANNING:
        return "waiting for a decision: no plan could be made";
    case REVIEW_FAILURE:
        return "waiting for a decision about its failure";
    case REVIEW_UNKNOWN_OUTCOME:
        return "waiting for a decision: whether its work was done is unknown";
    case REVIEW_KIND_COUNT:
    default:
        return "waiting for a person";
    }
}

static void person_sentence(const struct step_wait *w, const struct wait_names *names,
                            struct buf *out)
{
    buf_printf(out, "%s (review %.*s", person_wanted(w->review), STR_ARG(names->review_id));
    if (names->more > 0) {
        buf_printf(out, ", and %u more", names->more);
    }
    buf_add_cstr(out, ")");
}

static void dependency_sentence(const struct step_wait *w, struct str step_id, struct buf *out)
{
    if (w->n > 1) {
        buf_printf(out, "waiting for %u steps, the first is %.*s", w->n, STR_ARG(step_id));
    } else {
        buf_printf(out, "waiting for step %.*s", STR_ARG(step_id));
    }
}

static void agent_sentence(const struct step_wait *w, const struct wait_names *names,
                           struct buf *out)
{
    const struct wait_agent *a = names->agent;

    if (a != NULL && (!a->enabled || a->draining)) {
        buf_printf(out, "waiting for agent %.*s: it %s", STR_ARG(names->agent_id),
                   a->enabled ? "is draining" : "was taken out of service");
    } else if (w->kind == WAIT_AGENT) {
        buf_printf(out, "waiting for agent %.*s: 0 instances", STR_ARG(names->agent_id));
        if (a != NULL && a->failure.len > 0) {
            buf_printf(out, "; %.*s", STR_ARG(a->failure));
        }
        if (names->there.len > 0) {
            buf_printf(out, "; there are: %.*s", STR_ARG(names->there));
        }
    } else if (a != NULL && a->lanes_up == 0) {
        buf_printf(out, "waiting for agent %.*s: 0 of %u instances can be reached",
                   STR_ARG(names->agent_id), a->instances);
    } else {
        buf_printf(out, "waiting for a lane of %.*s: %u of %u busy", STR_ARG(names->agent_id),
                   a != NULL ? a->busy : w->n, a != NULL ? a->lanes : w->n);
    }
}

static void key_sentence(const struct step_wait *w, const struct wait_names *names, struct buf *out)
{
    buf_printf(out, "waiting for the concurrencyKey %.*s: ", STR_ARG(w->key));
    if (names->holder.len > 0 && w->n == 1) {
        buf_printf(out, "plan %.*s has it", STR_ARG(names->holder));
    } else if (w->n == 1) {
        buf_add_cstr(out, "another step has it");
    } else {
        buf_printf(out, "its %u places are taken", w->n);
    }
}

static void breaker_sentence(const struct wait_names *names, struct buf *out)
{
    buf_printf(out, "waiting: circuit of agent %.*s open%s%.*s", STR_ARG(names->agent_id),
               names->until.len > 0 ? " until " : "; it is being tried again",
               STR_ARG(names->until));
}

static void backoff_sentence(const struct wait_names *names, struct buf *out)
{
    buf_printf(out, "waiting for the next %s at %.*s", names->is_loop ? "round" : "attempt",
               STR_ARG(names->until));
    if (names->agent_id.len > 0) {
        buf_printf(out, ": agent %.*s asked for the pause", STR_ARG(names->agent_id));
    }
}

static void signal_sentence(const struct wait_names *names, struct buf *out)
{
    buf_printf(out, "waiting for the signal %.*s%s%.*s: baton signal PLAN %.*s",
               STR_ARG(names->signal), names->until.len > 0 ? " until " : "", STR_ARG(names->until),
               STR_ARG(names->signal));
}

static void rate_sentence(const struct step_wait *w, const struct wait_names *names,
                          struct buf *out)
{
    buf_printf(out, "waiting until %.*s: the rate of %s %.*s is used up, %u in %llu ms",
               STR_ARG(names->until), w->key.len > 0 ? "the concurrencyKey" : "agent",
               STR_ARG(w->key.len > 0 ? w->key : names->agent_id), w->n,
               (unsigned long long)w->per_ms);
}

void wait_sentence(const struct step_wait *w, const struct wait_names *names, struct buf *out)
{
    switch (w->kind) {
    case WAIT_DEPENDENCY:
        dependency_sentence(w, names->step_id, out);
        break;
    case WAIT_CONCURRENCY:
        buf_printf(out, "waiting for a place: %u of %u steps of the plan are under way", w->n,
                   w->n);
        break;
    case WAIT_AGENT:
    case WAIT_LANE:
        agent_sentence(w, names, out);
        break;
    case WAIT_BREAKER:
        breaker_sentence(names, out);
        break;
    case WAIT_LIMIT:
        buf_add_cstr(out, "waiting for a place among the attempts in flight");
        break;
    case WAIT_BUDGET:
        buf_add_cstr(out, "waiting for budget that other steps have reserved");
        break;
    case WAIT_BACKOFF:
        backoff_sentence(names, out);
        break;
    case WAIT_REPLY:
        buf_printf(out, "waiting for agent %.*s: its reply was lost", STR_ARG(names->agent_id));
        break;
    case WAIT_PERSON:
        person_sentence(w, names, out);
        break;
    case WAIT_PAUSED:
        buf_add_cstr(out, "the plan is paused");
        break;
    case WAIT_REPLAN:
        buf_add_cstr(out, "waiting for the plan to be revised");
        break;
    case WAIT_CHILD:
        buf_add_cstr(out, "a plan of its own does it");
        break;
    case WAIT_TIMER:
        buf_printf(out, "waiting until %.*s", STR_ARG(names->until));
        break;
    case WAIT_SIGNAL:
        signal_sentence(names, out);
        break;
    case WAIT_KEY:
        key_sentence(w, names, out);
        break;
    case WAIT_RATE:
        rate_sentence(w, names, out);
        break;
    case WAIT_NOTHING:
    case WAIT_KIND_COUNT:
    default:
        break;
    }
}

/* ---- the critical path ---- */

/* By step: the cost of the longest way that ends with it, and the step before on that way. */
struct way {
    uint64_t ms;
    uint32_t steps;
    uint32_t from;
    uint32_t open; /* dependencies not looked at yet */
};

static bool is_longer(const struct way *a, const struct way *b)
{
    return a->ms != b->ms ? a->ms > b->ms : a->steps > b->steps;
}

static uint32_t dependents(const struct plan *plan, uint32_t step)
{
    return plan->chain ? step + 1 < plan->n_steps : plan->steps[step].dependents_n;
}

static uint32_t dependent(const struct plan *plan, uint32_t step, uint32_t i)
{
    return plan->chain ? step + 1 : plan->dependents[plan->steps[step].dependents_at + i];
}

/* Fills the ways in the order of the dependencies; the step with the longest. */
static uint32_t walk(const struct plan *plan, const uint64_t *ms, struct way *ways, uint32_t *queue)
{
    uint32_t n = 0;
    uint32_t last = STEP_NONE;

    for (uint32_t i = 0; i < plan->n_steps; i++) {
        ways[i] =
            (struct way){.from = STEP_NONE, .open = plan->chain ? i > 0 : plan->steps[i].deps_n};
        if (ways[i].open == 0) {
            queue[n++] = i;
        }
    }
    for (uint32_t at = 0; at < n; at++) {
        struct way *w = &ways[queue[at]];
        if (!plan->steps[queue[at]].superseded) {
            w->ms += ms[queue[at]];
            w->steps++;
            last = last == STEP_NONE || is_longer(w, &ways[last]) ? queue[at] : last;
        }
        for (uint32_t i = 0; i < dependents(plan, queue[at]); i++) {
            uint32_t to = dependent(plan, queue[at], i);
            if (is_longer(w, &ways[to])) {
                ways[to].ms = w->ms;
                ways[to].steps = w->steps;
                ways[to].from = queue[at];
            }
            if (--ways[to].open == 0) {
                queue[n++] = to;
            }
        }
    }
    return last;
}

uint32_t critical_path(const struct plan *plan, const uint64_t *ms, struct arena *arena,
                       uint32_t *ret, uint32_t max)
{
    struct way *ways = arena_alloc(arena, plan->n_steps * sizeof *ways);
    uint32_t *queue = arena_alloc(arena, plan->n_steps * sizeof *queue);
    uint32_t n = 0;
    uint32_t last;

    if (ways == NULL || queue == NULL) {
        return UINT32_MAX;
    }
    last = walk(plan, ms, ways, queue);
    for (uint32_t i = last; i != STEP_NONE && n < max; i = ways[i].from) {
        if (!plan->steps[i].superseded) {
            ret[n++] = i;
        }
    }
    for (uint32_t i = 0; i < n / 2; i++) {
        uint32_t swap = ret[i];
        ret[i] = ret[n - 1 - i];
        ret[n - 1 - i] = swap;
    }
    return n;
}
