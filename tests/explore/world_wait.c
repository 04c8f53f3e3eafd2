/* Steps that wait, and signals: a second opinion. */
#include "protocol/base/assert.h"
#include "tests/explore/world.h"

enum { WALL_AT_FIRST = 100000, CLOCK_SET = 5000 };

msec world_wall(const struct world *w)
{
    return (msec)((int64_t)w->at.now + WALL_AT_FIRST + w->at.clock);
}

static const struct plan_wait *wait_of(const struct world *w, uint32_t step)
{
    return world_plan(w)->steps[step].wait;
}

uint8_t world_sleeps_for(const struct world *w, uint32_t step)
{
    const struct plan_wait *wait = wait_of(w, step);
    const bool sleeps = w->shadow->steps[step].status == STEP_SLEEPING;
    return sleeps && wait->what == WAIT_FOR_SIGNAL ? (uint8_t)wait->signal.ptr[0] : 0;
}

uint32_t world_kept(const struct world *w, uint8_t name)
{
    for (uint32_t i = 0; i < w->at.signals; i++) {
        if (w->at.names[i] == name) {
            return i + 1;
        }
    }
    return 0;
}

static uint32_t kept(const struct world *w)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->at.signals; i++) {
        n += w->at.names[i] != 0 ? 1 : 0;
    }
    return n;
}

bool world_take_wait_started(struct world *w, const struct record *rec, const char **ret_why)
{
    struct told *told = &w->at.told[rec->step];
    const struct plan_wait *wait = wait_of(w, rec->step);
    RULE(wait != NULL && told->attempts == 0, "a step waits that has work to do");
    RULE(REC(rec, timed)->delay_ms == wait->ms, "it waits for another time");
    told->slept = 1;
    told->sent = w->at.now;
    return true;
}

bool world_take_signal(struct world *w, const struct record *rec, const char **ret_why)
{
    RULE(w->doing.kind == WORLD_SIGNAL && w->doing.variant == (uint8_t)rec->text.ptr[0],
         "a signal that nobody sent");
    RULE(REC(rec, signal)->serial == w->at.signals + 1u, "signals are not numbered one by one");
    RULE(!w->at.cancelling, "a signal for a plan that is called off");
    ASSERT(w->at.signals < WORLD_SIGNALS);
    w->at.names[w->at.signals++] = w->doing.variant;
    return true;
}

bool world_slept_rightly(struct world *w, const struct record *rec, const char **ret_why)
{
    const struct plan_wait *wait = wait_of(w, rec->step);
    const uint32_t serial = REC(rec, step_completed)->signal;
    const struct told *told = &w->at.told[rec->step];
    RULE((wait->what == WAIT_FOR_SIGNAL) == (serial != 0), "woken by another than it waits for");
    RULE(wait->what != WAIT_FOR_TIME || w->at.now >= told->sent + wait->ms,
         "woken before its time");
    RULE(wait->what != WAIT_FOR_DATE || world_wall(w) >= wait->until, "woken before its date");
    if (serial == 0) {
        return true;
    }
    RULE(serial <= w->at.signals && w->at.names[serial - 1] == (uint8_t)wait->signal.ptr[0],
         "woken by a signal of another name, or one that was taken");
    RULE(serial == world_kept(w, w->at.names[serial - 1]), "a signal overtakes an older one");
    RULE(REC(rec, step_completed)->result.id == 500 + serial, "the data of another signal");
    w->at.names[serial - 1] = 0;
    return true;
}

bool world_take_called(struct world *w, const struct core_cmd *cmd, const char **ret_why)
{
    RULE(world_sleeps_for(w, cmd->step) != 0 && kept(w) > 0, "called for no signal");
    w->at.told[cmd->step].calls = 1;
    return true;
}

void world_wait_translate(struct world *w, const struct world_event *ev, struct flat_event *out)
{
    static const char letters[] = "stu";
    const uint8_t name = ev->kind == WORLD_CALLED ? world_sleeps_for(w, ev->step) : ev->variant;
    if (ev->kind == WORLD_CLOCK) {
        w->at.clock += ev->variant == 0 ? -CLOCK_SET : CLOCK_SET;
        out->type = CORE_TICK;
        return;
    }
    out->type = CORE_SIGNAL;
    out->step = ev->kind == WORLD_CALLED ? ev->step : STEP_NONE;
    out->n = ev->kind == WORLD_CALLED ? world_kept(w, name) : 0;
    for (uint32_t i = 0; i < sizeof letters - 1; i++) {
        if (name == (uint8_t)letters[i]) {
            out->text = (struct str){&letters[i], 1};
        }
    }
    out->result =
        (struct blob_ref){.id = 500 + (out->n != 0 ? out->n : w->at.signals + 1u), .len = 1};
    if (ev->kind == WORLD_CALLED) {
        w->at.told[ev->step].calls = 0;
    }
}

/* The signals that a step of the plan waits for now, or may wait for. */
static uint32_t names_of(const struct world *w, uint8_t ret[WORLD_STEPS])
{
    const struct plan *plan = world_plan(w);
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        const struct plan_wait *wait = plan->steps[i].wait;
        bool twice = wait == NULL || wait->what != WAIT_FOR_SIGNAL;
        for (uint32_t k = 0; k < n && !twice; k++) {
            twice = ret[k] == (uint8_t)wait->signal.ptr[0];
        }
        if (!twice) {
            ret[n++] = (uint8_t)wait->signal.ptr[0];
        }
    }
    return n;
}

uint32_t world_wait_events(const struct world *w, struct world_event *ret)
{
    uint8_t names[WORLD_STEPS];
    const uint32_t n_names = names_of(w, names);
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_names && w->at.signals < WORLD_SIGNALS; i++) {
        bool wanted = false;
        for (uint32_t s = 0; s < w->shadow->n_steps; s++) {
            wanted |= world_sleeps_for(w, s) == names[i] && world_kept(w, names[i]) == 0;
        }
        ret[n++] = (struct world_event){
            .kind = WORLD_SIGNAL, .variant = names[i], .charged = !wanted || w->at.cancelling};
    }
    for (uint8_t s = 0; s < w->shadow->n_steps; s++) {
        const uint8_t name = world_sleeps_for(w, s);
        if (w->at.told[s].calls != 0 && name != 0 && world_kept(w, name) != 0) {
            ret[n++] = (struct world_event){.kind = WORLD_CALLED, .step = s};
        }
    }
    ret[n++] = (struct world_event){.kind = WORLD_CLOCK, .variant = 0, .charged = true};
    ret[n++] = (struct world_event){.kind = WORLD_CLOCK, .variant = 1, .charged = true};
    return n;
}

bool world_waits_hold(const struct world *w, const char **ret_why)
{
    RULE(w->shadow->signals == w->at.signals && w->shadow->kept == kept(w),
         "signals, or those that are kept");
    const bool ticks = core_deadline(w->core) <= w->at.now; /* in the same cycle */
    for (uint32_t i = 0; i < w->shadow->n_steps; i++) {
        const struct plan_wait *wait = wait_of(w, i);
        const struct told *told = &w->at.told[i];
        const uint8_t name = world_sleeps_for(w, i);
        if (w->shadow->steps[i].status != STEP_SLEEPING) {
            continue;
        }
        RULE(wait->what != WAIT_FOR_TIME || ticks || w->at.now < told->sent + wait->ms,
             "a step sleeps for too long");
        RULE(wait->what != WAIT_FOR_DATE || ticks || world_wall(w) < wait->until,
             "a step sleeps past its date");
        RULE(wait->what != WAIT_FOR_SIGNAL || wait->ms == 0 || w->at.now < told->sent + wait->ms,
             "a step waits for a signal for too long");
        RULE(name == 0 || world_kept(w, name) == 0 || told->calls != 0,
             "a step waits for a signal that is there");
    }
    return true;
}
