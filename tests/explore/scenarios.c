#include "tests/explore/scenarios.h"

#include <stdio.h>
#include <string.h>

/* Every kind of trouble, `n` of them on a path. */
#define TROUBLES(n)                                                                                \
    {                                                                                              \
        .faults = (n), .registrations = 1, .gones = 1, .restarts = 1, .losses = 1, .unsent = 1,    \
        .strays = 1, .pauses = 1, .modifies = 1, .cancels = 1                                      \
    }

#define PLANS (SAYS(PLAN_KEEP) | SAYS(PLAN_MISFIT) | SAYS(PLAN_INVALID) | SAYS(PLAN_STRANGER))

/* Small plans, one feature each. */
static const struct scenario features[] = {
    {"attempts", "A(retries=1 backoff=30 timeout=30)", "xx", TROUBLES(3), .answers = SAYS(NO)},
    {"attempts", "A(unsafe retries=1 timeout=30)", "xx", TROUBLES(3), .answers = SAYS(AGAIN)},
    {"attempts", "A(retry retries=1 timeout=30 noretry=UNKNOWN)", "xx", TROUBLES(3)},
    {"attempts", "A(retry retries=1 timeout=30)", "x", TROUBLES(3), .answers = SAYS(NO)},
    {"attempts", "A(skip timeout=30); B(unsafe)", "x", TROUBLES(3)},
    {"attempts", "timeout=70: A(retries=1 backoff=10 timeout=30); B", "xx", TROUBLES(3)},
    {"attempts",
     "A(retries=1 timeout=30)",
     "xx",
     {.faults = 2, .asks = 1, .losses = 1, .strays = 1},
     .answers = SAYS(INPUT)},
    {"attempts", "A(retries=1); B", "x", {.faults = 9, .unsent = 8}},
    {"attempts", "A; B<A(gate=x)", "x", {.faults = 9, .unsent = 8}},
    {"places",
     "par max=2: A(timeout=30); B(unsafe limit=500)",
     "xx",
     {.faults = 2, .busies = 2, .registrations = 1, .cancels = 1, .losses = 1, .pauses = 1}},
    {"places",
     "A(retries=1 timeout=30); B<A(gate=x queue=90 skip)",
     "x",
     {.faults = 4, .busies = 4, .gones = 1, .restarts = 1}},
    {"places",
     "A(retries=1 timeout=30)",
     "xx",
     {.faults = 2, .busies = 2, .drains = 1, .gones = 1},
     .breakers = 1},
    {"instances",
     "A(retries=1 backoff=10 timeout=30)",
     "xx",
     {.faults = 3, .registrations = 1, .gones = 1, .restarts = 1, .losses = 1, .silences = 1},
     .fine = true},
    {"instances",
     "A(unsafe retries=1 timeout=30)",
     "xx",
     {.faults = 3, .registrations = 1, .gones = 1, .restarts = 1, .losses = 1, .asks = 1},
     .fine = true},
    {"instances",
     "par max=1: A(continue); B(unsafe)",
     "xx",
     {.faults = 3, .registrations = 1, .losses = 1, .silences = 1, .cancels = 1},
     .fine = true},
    {"instances",
     "A(retries=1 timeout=30); B<A",
     "xx",
     {.faults = 3, .registrations = 1, .drains = 1, .gones = 1, .silences = 1, .strays = 1}},
    {"keys",
     "par: A(key=0 retries=1 backoff=10 timeout=30); B@y(key=0 skip)",
     "xy",
     {.faults = 2,
      .registrations = 1,
      .gones = 1,
      .restarts = 1,
      .losses = 1,
      .unsent = 1,
      .pauses = 1,
      .cancels = 1}},
    {"keys",
     "par max=2: A(key=0 unsafe); B(key=0); C",
     "xx",
     {.faults = 2, .gones = 1, .restarts = 1, .losses = 1, .asks = 1}},
    {"gate", "A; B<A(gate=y retries=1 timeout=30)", "xy", TROUBLES(2)},
    {"gate", "A; B<A(gate=y closed check=30 skip)", "xy", TROUBLES(2)},
    {"gate", "A; B<A(gate=x approve check=30 approval=30 continue)", "x", TROUBLES(2)},
    {"gate", "A; B<A(gate=y ask check=30)", "xy", TROUBLES(2)},
    {"gate", "A; B<A(review gate=y closed check=30 ask)", "xy", TROUBLES(2)},
    {"verify", "A(verify=y retries=1 timeout=30)", "xy", TROUBLES(2), .answers = SAYS(UNVERIFIED)},
    {"verify", "A(verify=x open check=30 timeout=30 retries=1)", "xx", TROUBLES(2)},
    {"verify", "A(verify=y onverify=ask unsafe timeout=30 retries=1)", "xy", TROUBLES(2),
     .answers = SAYS(UNVERIFIED)},
    {"verify", "A(verify=y onverify=continue check=30); B<A(always)", "xy", TROUBLES(2)},
    {"people", "A(review); B<A(approve approval=60 retries=1 timeout=30)", "x", TROUBLES(2)},
    {"people", "A(unsafe retries=1 timeout=30 approval=60); B@y", "xy", TROUBLES(2),
     .answers = SAYS(AGAIN)},
    {"people",
     "par fallbacks=1 handoffs=1: A(approve alt=y approval=30 skip)",
     "xy",
     {.faults = 2, .gones = 1, .losses = 1, .restarts = 1, .handoffs = 1},
     .answers = SAYS(SERVICE) | SAYS(HAND_Y)},
    {"people", "signoff: A(retries=1); B<A(review approval=30)", "x", TROUBLES(2)},
    {"people",
     "par max=2: A(timeout=30 ask); B@y(approval=30 retries=1)",
     "xy",
     {.faults = 2, .asks = 2, .pauses = 1, .cancels = 1, .restarts = 1, .losses = 1, .gones = 1},
     .answers = SAYS(INPUT) | SAYS(APPROVAL)},
    {"child", "A; B<A(child retries=1 timeout=30); C<B", "x", TROUBLES(2)},
    {"child", "A(child rounds=3 pause=30); B", "x", TROUBLES(2)},
    {"child", "A(child rounds=2 accept ask); B(child skip)", "x", TROUBLES(2)},
    {"child",
     "par max=2: A(child when approve); B(child rounds=2 continue verify=x); C<A,B(cleanup)",
     "x",
     {.faults = 2, .pauses = 1, .cancels = 1, .restarts = 1, .modifies = 1}},
    {"child",
     "par budget=9: A(child est=5 limit=60 continue); B(child est=5)",
     "x",
     {.faults = 1, .pauses = 1, .cancels = 1, .restarts = 1, .modifies = 1}},
    {"child",
     "par budget=9: A(child est=5 limit=60 continue); B(child est=5)",
     "x",
     {.faults = 2, .pauses = 1, .cancels = 1, .restarts = 1, .revisions = 1}},
    {"child",
     "replan=y replans=1 perstep=1: A(child replan)",
     "xy",
     {.faults = 2, .revisions = 1, .pauses = 1, .restarts = 1},
     .answers = SAYS(PLAN_KEEP)},
    {"calls",
     "A(retries=1 timeout=30); B<A",
     "x",
     {.faults = 2, .asks = 2, .pauses = 1, .cancels = 1, .restarts = 1, .losses = 1, .strays = 1},
     .answers = SAYS(CALLS)},
    {"calls",
     "par max=2: A(limit=60 ask); B(unsafe continue)",
     "xx",
     {.faults = 2, .asks = 1, .pauses = 1, .modifies = 1, .gones = 1, .restarts = 1},
     .answers = SAYS(CALLS)},
    {"undo", "A(undo); B<A(undo unsafe timeout=30); C<B(retries=1)", "x", TROUBLES(2),
     .answers = SAYS(NO)},
    {"undo", "par undoalways: A(undo timeout=30); B@y(undo continue); C<A,B(undo)", "xy",
     TROUBLES(1)},
    {"undo",
     "par undoalways timeout=90: A(child undoes rounds=2); B(undo); C<A,B(timeout=30)",
     "x",
     {.faults = 2, .cancels = 1, .restarts = 1, .pauses = 1, .modifies = 1, .strays = 1}},
    {"undo",
     "par undoalways answer=w rectify=1: A(undo); B<A(timeout=30); C<A(skip)",
     "x",
     {.faults = 2, .cancels = 1, .restarts = 1, .strays = 1, .progress = 1}},
    {"undo",
     "undoalways replan=y replans=1 perstep=1: A(undo); B<A(undo replan)",
     "xy",
     {.faults = 2, .cancels = 1, .revisions = 1, .pauses = 1, .restarts = 1, .strays = 1},
     .answers = SAYS(PLAN_KEEP) | SAYS(PLAN_REPEAT)},
    {"undo", "inner undoalways: A(undo); B<A(undo timeout=30)", "x", TROUBLES(2)},
    {"undo", "undonever: A(undo); B<A(timeout=30)", "x", TROUBLES(1)},
    {"undo", "undoing: A(ask); B(ask timeout=30)", "x", TROUBLES(2)},
    {"undo", "A(undo); B<A(undo); C<B(timeout=30)", "x", TROUBLES(1), .reuse = 1},
    {"condition", "A; B<A(when timeout=30); C<A(when); D<B,C", "x", TROUBLES(1)},
    {"condition", "A(when); B<A; C<A,B(when always)", "x", TROUBLES(2)},
    {"condition", "A(when ask); B(when skip); C(cleanup)", "x", TROUBLES(2)},
    {"condition", "par max=1: A(continue); B<A(cleanup when); C<A(when continue); D<B,C(cleanup)",
     "x", TROUBLES(1)},
    {"condition",
     "A; B<A(when approve); C<B",
     "x",
     {.faults = 2, .revisions = 1, .pauses = 1, .modifies = 1, .restarts = 1}},
    {"condition",
     "par replan=y replans=1 perstep=1 cooldown=30: A(replan); B(when replan); C<B(when)",
     "xy",
     {.faults = 2, .pauses = 1, .restarts = 1},
     .answers = SAYS(PLAN_KEEP)},
    {"wait",
     "A(sleep=30); B(timeout=30); C(date=100050)",
     "x",
     {.faults = 3, .restarts = 1, .pauses = 1, .modifies = 1, .cancels = 1, .clocks = 2}},
    {"wait",
     "par max=1: A(date=100040); B(date=100100); C(timeout=30)",
     "x",
     {.faults = 3, .restarts = 1, .pauses = 1, .clocks = 2}},
    {"wait",
     "A; B<A(signal=s patience=60); C<A(signal=s); D<B,C",
     "x",
     {.faults = 3, .restarts = 1, .signals = 2, .pauses = 1, .modifies = 1, .cancels = 1}},
    {"wait",
     "par max=1: A(signal=s patience=30 ask); B(signal=t when); C(timeout=30)",
     "x",
     {.faults = 3, .restarts = 1, .signals = 2, .pauses = 1}},
    {"wait",
     "A(signal=s patience=30 continue); B(cleanup); C(signal=s approve gate=x); D(sleep=10)",
     "x",
     {.faults = 2, .signals = 2, .restarts = 1, .revisions = 1, .gones = 1}},
    {"wait",
     "signoff: A(signal=s); B(sleep=20)",
     "x",
     {.faults = 3, .signals = 2, .revisions = 1, .restarts = 1, .cancels = 1}},
    {"wait",
     "par replan=y replans=1 perstep=1 cooldown=30: A(signal=s patience=30 replan); B(replan)",
     "xy",
     {.faults = 2, .signals = 2, .pauses = 1, .restarts = 1},
     .answers = SAYS(PLAN_KEEP)},
    {"replan", "replan=y replans=2 perstep=2 cooldown=30 replantime=30: A(replan timeout=30)", "xy",
     TROUBLES(2), .answers = PLANS},
    {"replan", "replan=y replans=2 perstep=1 cooldown=30: A(replan); B<A", "xy", TROUBLES(2),
     .answers = PLANS},
    {"replan", "par replan=y replans=2 perstep=2: A(replan); B(replan timeout=30)", "xxy",
     TROUBLES(1), .answers = PLANS},
    {"replan", "replan=x replans=1 perstep=1 replantime=30: A; B(verify=x onverify=replan)", "x",
     TROUBLES(2), .answers = PLANS | SAYS(UNVERIFIED)},
    {"replan",
     "par replan=y replans=1 perstep=1: A; B<A(gate=y closed replan); C(unsafe timeout=30 replan)",
     "xy", TROUBLES(2), .answers = SAYS(PLAN_KEEP)},
    {"replan", "replan=y replans=1 perstep=1: A; B<A(replan)", "xy", TROUBLES(1),
     .answers = SAYS(PLAN_REPEAT)},
    {"replan", "replan=y replans=1 perstep=1: A(unsafe); B<A(replan)", "xy", TROUBLES(1),
     .answers = SAYS(PLAN_REPEAT)},
    {"fallback", "fallbacks=3: A(alt=y timeout=30)", "xy", TROUBLES(2),
     .answers = SAYS(TOOL) | SAYS(SERVICE) | SAYS(RATE_LIMITED)},
    {"fallback", "fallbacks=2 search=y: A(retries=1 timeout=30); B", "xy", TROUBLES(2),
     .answers = SAYS(NOT_FOUND) | SAYS(RATE_LIMITED)},
    {"fallback", "fallbacks=1: A(alt=y continue); B<A(unsafe alt=y skip)", "xy", TROUBLES(2),
     .answers = SAYS(SERVICE)},
    {"fallback", "fallbacks=3 search=y: A(alt=y verify=x ask)", "xy", TROUBLES(2),
     .answers = SAYS(NOT_FOUND) | SAYS(TOOL)},
    {"handoff",
     "handoffs=2 handback grant=y: A(timeout=30 retries=1); B",
     "xy",
     {.faults = 3,
      .handoffs = 3,
      .losses = 1,
      .cancels = 1,
      .pauses = 1,
      .restarts = 1,
      .gones = 1},
     .answers = SAYS(HAND_X) | SAYS(HAND_Y) | SAYS(HAND_FORBIDDEN)},
    {"handoff",
     "handoffs=1 grant=y grant=z: A(retries=1)",
     "xyz",
     {.faults = 3, .handoffs = 3, .losses = 1, .restarts = 1},
     .answers = SAYS(HAND_X) | SAYS(HAND_Y) | SAYS(HAND_Z)},
    {"handoff",
     "handoffs=1: A(unsafe verify=y); B@y<A",
     "xy",
     {.faults = 3, .handoffs = 3, .losses = 1, .cancels = 1, .modifies = 1, .unsent = 1},
     .answers = SAYS(HAND_X) | SAYS(HAND_Y)},
    {"cancel",
     "par: A(timeout=30); B@y(unsafe)",
     "XY",
     {.faults = 3,
      .cancels = 1,
      .losses = 1,
      .unsent = 1,
      .gones = 1,
      .restarts = 1,
      .registrations = 1,
      .strays = 1,
      .pauses = 1}},
    {"cancel",
     "par: A(timeout=30); B@y(retries=1 timeout=30)",
     "xY",
     {.faults = 3, .cancels = 1, .losses = 1, .gones = 1, .asks = 1, .modifies = 1, .silences = 1},
     .answers = SAYS(INPUT)},
    {"cancel",
     "A; B<A(gate=y verify=y)",
     "XY",
     {.faults = 3, .cancels = 1, .losses = 1, .unsent = 1, .restarts = 1, .handoffs = 1},
     .answers = SAYS(HAND_Y)},
    {"budget", "par budget=10: A(est=4); B(est=4 retries=1); C(est=4)", "xxx", TROUBLES(2),
     .spends = 3},
    {"budget", "par budget=10: A(est=5 timeout=30); B@y(est=5 verify=y); C<A(est=2 limit=60)", "xy",
     TROUBLES(2), .spends = 4},
    {"budget", "budget=6 fallbacks=2: A(est=3 approve); B<A(est=3 gate=y alt=y)", "xy", TROUBLES(2),
     .spends = 1, .answers = SAYS(TOOL)},
    {"budget", "budget=8: A(retries=1); B<A(gate=x verify=x)", "x", TROUBLES(2), .spends = 4},
    {"budget",
     "replan=y replanbudget=4 replans=3 perstep=3: A(replan timeout=30)",
     "xy",
     {.faults = 2, .losses = 1, .restarts = 1, .pauses = 1, .unsent = 1},
     .answers = SAYS(PLAN_KEEP),
     .spends = 2},
    {"limits", "par: A(timeout=30); B@y(timeout=30); C", "xy", TROUBLES(2), .in_flight = 1},
    {"limits", "par: A(timeout=30 retries=1); B; C@y(verify=x)", "xxy", TROUBLES(1),
     .in_flight_agent = 1},
    {"limits", "par: A(timeout=30); B@y; C@y(verify=x)", "xxy", TROUBLES(2),
     .in_flight_session = 1},
    {"limits", "par: A; B@y; C(timeout=30)", "xxy", TROUBLES(2), .in_flight = 2,
     .in_flight_session = 2, .in_flight_agent = 1},
    {"waits",
     "par: A(idle=30 retries=1); B(timeout=20 continue retries=1)",
     "xx",
     {.faults = 4,
      .progress = 2,
      .losses = 1,
      .restarts = 1,
      .pauses = 1,
      .cancels = 1,
      .gones = 1}},
    {"waits", "A(limit=60 timeout=30 retries=3 backoff=10)", "xx", TROUBLES(2)},
    {"waits",
     "A(limit=60 retries=2 approval=90 verify=x check=30)",
     "xx",
     {.faults = 3, .asks = 1, .losses = 1, .restarts = 1, .gones = 1},
     .answers = SAYS(INPUT)},
    {"waits",
     "par: A(agentwait=30 skip); B(agentwait=90); C@y(agentwait=30 queue=60)",
     "x",
     {.faults = 3, .gones = 1, .registrations = 1, .restarts = 1, .pauses = 1}},
    {"waits", "par: A(queue=30 timeout=60); B(queue=30 skip); C(queue=90 limit=60)", "x",
     TROUBLES(2)},
    {"waits", "timeout=90: A(review); B<A(approve)", "x", TROUBLES(3)},
    {"changes",
     "A(timeout=30); B; C",
     "x",
     {.faults = 3, .modifies = 2, .pauses = 1, .losses = 1, .cancels = 1, .restarts = 1}},
    {"changes",
     "A(timeout=30); B<A(gate=x); C<B(review); D<A",
     "x",
     {.faults = 2, .modifies = 2, .pauses = 1, .losses = 1, .restarts = 1}},
    {"changes",
     "A(unsafe timeout=30); B<A(approve)",
     "xx",
     {.faults = 3, .revisions = 2, .pauses = 1, .losses = 1, .restarts = 1, .modifies = 1}},
    {"changes",
     "A; B(verify=x retries=1); C",
     "x",
     {.faults = 3, .revisions = 2, .pauses = 1, .losses = 1, .restarts = 1}},
    {"changes",
     "par replan=y replans=1 perstep=1 cooldown=30: A(replan); B<A(timeout=30)",
     "xy",
     {.faults = 3, .revisions = 1, .modifies = 1, .pauses = 1, .cancels = 1, .restarts = 1},
     .answers = SAYS(PLAN_KEEP)},
    {"changes",
     "signoff signtime=60 replan=y replans=1 perstep=1 cooldown=30: A(replan); B<A(timeout=30)",
     "xy",
     {.faults = 2, .revisions = 1, .modifies = 1, .pauses = 1, .cancels = 1, .restarts = 1},
     .answers = SAYS(PLAN_KEEP)},
    {"changes",
     "max=2 timeout=200 signoff: A(timeout=30 retries=1); B@y(verify=x check=30); C<A",
     "xy",
     {.faults = 2, .modifies = 2, .revisions = 1, .restarts = 1}},
    {"reuse", "A; B<A; C<A,B(gate=y); D<B", "xy", TROUBLES(2), .reuse = 3},
    {"reuse", "signoff: A; B; C", "x", TROUBLES(2), .reuse = 1},
    {"reuse", "A; B<A", "x", TROUBLES(2), .reuse = 3},
    {"reuse", "A; B<A; C<B(always)", "x", TROUBLES(2), .reuse = 2},
    {"breaker",
     "A(retries=1 timeout=30); B(continue)",
     "x",
     {.faults = 2, .losses = 2, .gones = 1, .restarts = 1, .cancels = 1, .registrations = 1},
     .answers = SAYS(SERVICE),
     .breakers = 1},
    {"breaker",
     "par: A(retries=1 timeout=30); B",
     "xx",
     {.faults = 1, .losses = 1, .gones = 1, .restarts = 1, .cancels = 1, .registrations = 1},
     .answers = SAYS(SERVICE),
     .breakers = 1},
    {"planning", "planner=p repairs=1:", "xy", TROUBLES(2), .made = "A(timeout=30); B@y<A"},
    {"planning", "planner=p signoff signtime=30:", "x", TROUBLES(3),
     .made = "signoff signtime=60: A(retries=1)"},
    {"planning", "planner=p repairs=1 oninvalid=interrupt signtime=30:", "x", TROUBLES(2),
     .made = "A(timeout=30)"},
    {"planning", "planner=p answer=w repairs=2 oninvalid=synthesize:", "x", TROUBLES(2),
     .made = "answer=w: A; B"},
    {"planning", "planner=p dry answer=w oninvalid=synthesize:", "x", TROUBLES(3),
     .made = "dry answer=w: A; B"},
    {"planning", "dry signoff: A; B<A", "x", TROUBLES(2)},
    {"planning",
     "planner=p repairs=2 budget=6 oninvalid=interrupt:",
     "x",
     {.faults = 2, .cancels = 1, .restarts = 1},
     .made = "budget=6: A(est=1); B",
     .spends = 2},
    {"synthesis", "par answer=w rectify=1: A(timeout=30); B@y(continue)", "xy", TROUBLES(2)},
    {"synthesis", "answer=w rectify=1: A(skip); B<A; C@y(approve ask)", "xy", TROUBLES(1)},
    {"synthesis",
     "timeout=70 answer=w rectify=1: A(timeout=30); B",
     "x",
     {.faults = 3, .cancels = 1, .restarts = 1, .losses = 1, .pauses = 1, .progress = 2}},
    {"synthesis",
     "par answer=w: A(unsafe timeout=30); B(review)",
     "x",
     {.faults = 3, .progress = 2, .strays = 1, .restarts = 1, .revisions = 1, .modifies = 1}},
    {"synthesis",
     "answer=w budget=5 rectify=2: A(skip); B(skip)",
     "x",
     {.faults = 2, .cancels = 1, .restarts = 1, .losses = 1},
     .spends = 1},
    {"synthesis", "answer=w rectify=2: A(timeout=30)", "x", TROUBLES(1)},
    {"synthesis", "par max=1 answer=w rectify=2: A; B", "x", {.faults = 1, .restarts = 1}},
    {"synthesis",
     "par answer=w rectify=1 replan=y replans=1 perstep=1: A(replan); B(skip)",
     "xy",
     {.faults = 2, .cancels = 1, .restarts = 1, .pauses = 1, .losses = 1},
     .answers = SAYS(PLAN_KEEP)},
    {"alone", "A(timeout=30 retries=1 queue=30); B<A(timeout=30 skip queue=30)", "xx", TROUBLES(2),
     .alone = true},
    {"alone",
     "A(limit=60 verify=y check=30 unsafe approval=30 queue=30); B<A(gate=y check=30 queue=30 "
     "timeout=30)",
     "xy", TROUBLES(2), .alone = true},
    {"alone",
     "timeout=200 signoff: A; B(review)",
     "xy",
     {.faults = 3, .modifies = 1, .losses = 1, .gones = 1, .restarts = 1}},
    {"alone",
     "replan=y replans=2 perstep=2 cooldown=30 replantime=30: A(replan timeout=30 queue=60)",
     "xy",
     {.faults = 2, .losses = 1, .gones = 1, .restarts = 1},
     .alone = true},
};

/* What the steps of a shape are like, in turn. */
static const char *const mixes[][4] = {
    {"(retries=1 timeout=30)", "@y(timeout=30)", "(continue timeout=30)", "@y(always timeout=30)"},
    {"(continue)", "(skip retries=1)", "@y(unsafe)", "(retry retries=1 timeout=30)"},
    {"@y(skip timeout=30)", "(always continue)", "@y(retries=1)", "(timeout=30)"},
};

struct shape {
    uint32_t n;
    uint32_t edges; /* a bit for each pair; no matter in a chain */
    bool chain;
    const char *const *mix;
};

static size_t put(char *text, size_t at, size_t size, const char *more, int n)
{
    const int put = snprintf(text + at, size - at, "%.*s", n, more);
    return put > 0 ? at + (size_t)put : at;
}

static void write_shape(const struct shape *shape, char *text, size_t size)
{
    size_t at = put(text, 0, size, shape->chain ? ": " : "par: ", 8);
    for (uint32_t i = 0, bit = 0; i < shape->n; i++) {
        const char *mix = shape->mix[i];
        const char *options = strchr(mix, '(');
        const char name[2] = {(char)('A' + i), '\0'};
        char between = '<';
        at = put(text, at, size, "; ", i == 0 ? 0 : 2);
        at = put(text, at, size, name, 1);
        at = put(text, at, size, mix, (int)(options - mix));
        for (uint32_t k = 0; k < i; k++, bit++) {
            const char dep[3] = {between, (char)('A' + k), '\0'};
            if (!shape->chain && (shape->edges & 1u << bit) != 0) {
                at = put(text, at, size, dep, 2);
                between = ',';
            }
        }
        at = put(text, at, size, options, 64);
    }
}

static uint8_t with_scope(int faults, enum explore_scope scope)
{
    return (uint8_t)(faults + (int)scope > 0 ? faults + (int)scope : 1);
}

/* All plans of up to four steps: every set of edges from earlier steps to later ones, and chains.
 */
static int each_shape(enum explore_scope scope, int (*explore)(const struct scenario *s, void *arg),
                      void *arg)
{
    char text[256];
    struct scenario s = {.family = "shapes", .plan = text, .bodies = "xy", .left = TROUBLES(1)};
    int result = 0;
    const size_t n_mixes = scope == EXPLORE_SHORT ? 1 : sizeof mixes / sizeof mixes[0];
    for (size_t m = 0; m < n_mixes; m++) {
        for (uint32_t n = 1; n <= 4; n++) {
            const uint32_t sets = 1u << (n * (n - 1) / 2);
            for (uint32_t edges = 0; edges <= sets && result == 0; edges++) {
                const struct shape shape = {n, edges, edges == sets, mixes[m]};
                const int faults = n <= 3 && !(n == 3 && edges == 0) ? 2 : 1;
                s.left.faults = with_scope(faults, scope);
                write_shape(&shape, text, sizeof text);
                result = explore(&s, arg);
            }
        }
    }
    return result;
}

int scenarios_each(enum explore_scope scope, int (*explore)(const struct scenario *s, void *arg),
                   void *arg)
{
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
        struct scenario s = features[i];
        s.left.faults = with_scope(s.left.faults, scope);
        const int result = explore(&s, arg);
        if (result != 0) {
            return result;
        }
    }
    return each_shape(scope, explore, arg);
}
