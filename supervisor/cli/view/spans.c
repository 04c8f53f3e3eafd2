#include "supervisor/cli/view/spans.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "protocol/base/map.h"
#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/view/children.h"

enum { ID_MAX = 65, NOTE_MAX = 64, SPANS_FIRST = 256 };

/* Rows of the plan itself, before those of the steps. */
enum plan_row { ROW_PLANNING, ROW_PAUSED, ROW_ANSWER, ROW_UNDO, PLAN_ROWS };
static const char *const plan_rows[PLAN_ROWS] = {"(planning)", "(paused)", "(answer)", "(undoing)"};

/* One row while the events are read. */
struct track {
    bool open;
    enum timeline_kind kind; /* of what is open */
    double since;            /* ms since 1970, as all times here */
    double until;            /* of a backoff, or of a wait; INFINITY = nobody knows */
    bool begun;              /* it had its first attempt */
    uint32_t left;           /* dependencies that have not ended */
    bool born;               /* its revision is there */
    uint32_t spans;
    char instance[ID_MAX]; /* that has the attempt */
};

struct spans {
    const cJSON *view;
    uint32_t n_steps;
    struct track *tracks; /* the plan's rows, then one per step */
    uint32_t **users;     /* by step: the steps that depend on it */
    uint32_t *n_users;
    const cJSON **steps; /* of the view, by index */
    struct timeline_span *all;
    uint32_t n, cap;
    double first, last; /* of the events */
    int pauses;         /* reasons that hold now */
    bool ended, failed; /* failed: out of memory */
    struct timeline_row *rows;
    char (*notes)[NOTE_MAX];
    struct timeline timeline;
};

static const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static void add(struct spans *s, uint32_t row, enum timeline_kind kind, double from, double to)
{
    if (s->n == s->cap) {
        const uint32_t cap = s->cap == 0 ? SPANS_FIRST : 2 * s->cap;
        struct timeline_span *all = realloc(s->all, cap * sizeof *all);
        if (all == NULL) {
            s->failed = true;
            return;
        }
        s->all = all;
        s->cap = cap;
    }
    s->all[s->n++] = (struct timeline_span){row, kind, from, to > from ? to : from};
    s->tracks[row].spans++;
}

/* After a backoff the next attempt runs, after a pause the next round: no event marks when its
 * agent got it. */
static void end_backoff(struct spans *s, uint32_t row, double now)
{
    struct track *t = &s->tracks[row];

    if (t->open && (t->kind == TIMELINE_BACKOFF || t->kind == TIMELINE_WAITING) && now > t->until) {
        add(s, row, t->kind, t->since, t->until);
        t->kind = TIMELINE_RUNNING;
        t->since = t->until;
    }
}

static void end_span(struct spans *s, uint32_t row, double now)
{
    struct track *t = &s->tracks[row];

    end_backoff(s, row, now);
    if (t->open) {
        add(s, row, t->kind, t->since, now);
    }
    t->open = false;
}

static void begin(struct spans *s, uint32_t row, enum timeline_kind kind, double now)
{
    end_backoff(s, row, now);
    if (s->tracks[row].open && s->tracks[row].since < now) { /* not what took no time */
        end_span(s, row, now);
    }
    s->tracks[row].open = true;
    s->tracks[row].kind = kind;
    s->tracks[row].since = now;
}

static void queue_when_ready(struct spans *s, uint32_t step, double now)
{
    const struct track *t = &s->tracks[PLAN_ROWS + step];

    if (t->born && t->left == 0 && !t->begun && !t->open && t->spans == 0) {
        begin(s, PLAN_ROWS + step, TIMELINE_QUEUED, now);
    }
}

/* ---- the steps and what they depend on ---- */

static bool add_user(struct spans *s, uint32_t dep, uint32_t user)
{
    uint32_t *users = s->users[dep];
    const uint32_t n = s->n_users[dep];

    if ((n & (n - 1)) == 0) { /* the room doubles */
        users = realloc(users, (n == 0 ? 1 : 2 * (size_t)n) * sizeof *users);
        if (users == NULL) {
            return false;
        }
        s->users[dep] = users;
    }
    users[n] = user;
    s->n_users[dep]++;
    s->tracks[PLAN_ROWS + user].left++;
    return true;
}

static bool is_superseded(const cJSON *step)
{
    return cJSON_IsTrue(get(step, "superseded"));
}

static bool read_steps(struct spans *s, bool chain)
{
    struct map by_id = {0};
    const cJSON *step;
    const cJSON *name;
    uint32_t n = 0;
    bool ok = true;

    cJSON_ArrayForEach(step, get(s->view, "steps"))
    {
        const struct str id = str_from(json_text(step, "stepId", ""));
        s->steps[n] = step;
        if (!is_superseded(step) || map_get(&by_id, id) == MAP_NONE) {
            ok = ok && map_put(&by_id, id, n) == BT_OK;
        }
        n++;
    }
    for (uint32_t i = 0; i < n && ok; i++) {
        ok = !chain || i == 0 || add_user(s, i - 1, i);
        cJSON_ArrayForEach(name, get(s->steps[i], "dependsOn"))
        {
            const uint32_t dep =
                cJSON_IsString(name) ? map_get(&by_id, str_from(name->valuestring)) : MAP_NONE;
            ok = ok && (dep == MAP_NONE || dep == i || add_user(s, dep, i));
        }
    }
    map_done(&by_id);
    return ok;
}

struct spans *spans_new(const struct cJSON *plan_view, bool chain)
{
    const size_t n = (size_t)cJSON_GetArraySize(get(plan_view, "steps"));
    struct spans *s = calloc(1, sizeof *s);

    if (s == NULL) {
        return NULL;
    }
    s->view = plan_view;
    s->n_steps = (uint32_t)n;
    s->tracks = calloc(n + PLAN_ROWS, sizeof *s->tracks);
    s->users = calloc(n + 1, sizeof *s->users);
    s->n_users = calloc(n + 1, sizeof *s->n_users);
    s->steps = calloc(n + 1, sizeof *s->steps);
    if (s->tracks == NULL || s->users == NULL || s->n_users == NULL || s->steps == NULL ||
        !read_steps(s, chain)) {
        spans_free(s);
        return NULL;
    }
    return s;
}

void spans_free(struct spans *s)
{
    if (s == NULL) {
        return;
    }
    for (uint32_t i = 0; s->users != NULL && i < s->n_steps; i++) {
        free(s->users[i]);
    }
    free(s->users);
    free(s->n_users);
    free(s->steps);
    free(s->tracks);
    free(s->all);
    free(s->rows);
    free(s->notes);
    free(s);
}

/* ---- events ---- */

/* The steps of that revision are there from now on; the first one has 1 or none. */
static void take_revision(struct spans *s, double revision, double now)
{
    for (uint32_t i = 0; i < s->n_steps; i++) {
        struct track *t = &s->tracks[PLAN_ROWS + i];
        const double own = json_number(s->steps[i], "revision");
        if (!t->born && (own < 1 ? 1 : own) <= revision) {
            t->born = true;
            queue_when_ready(s, i, now);
        }
    }
}

/* Whether the event ends a reason for a pause: of the two about reviews, those of the plan. */
static bool is_resumed(const char *type, const cJSON *ev)
{
    return strcmp(type, "plan_resumed") == 0 || strcmp(type, "review_voided") == 0 ||
           (strcmp(type, "review_decided") == 0 && get(ev, "stepIndex") == NULL);
}

static void plan_event(struct spans *s, const char *type, const cJSON *ev, double now)
{
    if (strcmp(type, "planning_started") == 0) {
        begin(s, ROW_PLANNING, TIMELINE_RUNNING, now);
    } else if (strcmp(type, "planning_failed") == 0 || strcmp(type, "plan_generated") == 0) {
        end_span(s, ROW_PLANNING, now);
    } else if (strcmp(type, "plan_started") == 0) {
        take_revision(s, 1, now);
    } else if (strcmp(type, "plan_paused") == 0 && s->pauses++ == 0) {
        begin(s, ROW_PAUSED, TIMELINE_PERSON, now);
    } else if (is_resumed(type, ev) && --s->pauses <= 0) {
        s->pauses = 0;
        end_span(s, ROW_PAUSED, now);
    } else if (strcmp(type, "synthesis_started") == 0) {
        begin(s, ROW_ANSWER, TIMELINE_RUNNING, now);
    } else if (strcmp(type, "synthesis_finished") == 0 || strcmp(type, "synthesis_retry") == 0) {
        end_span(s, ROW_ANSWER, now);
    } else if (strcmp(type, "compensation_started") == 0) {
        begin(s, ROW_UNDO, TIMELINE_RUNNING, now);
    } else if (strcmp(type, "compensation_finished") == 0) {
        end_span(s, ROW_UNDO, now);
    } else if (strcmp(type, "plan_completed") == 0) {
        s->ended = true;
    }
    if (get(ev, "revision") != NULL && strcmp(type, "plan_completed") != 0) {
        take_revision(s, json_number(ev, "revision"), now);
    }
}

/* Attempts that were out when the daemon ended: who has them still is adopted. */
static void restarted(struct spans *s, double now)
{
    for (uint32_t i = 0; i < s->n_steps; i++) {
        const uint32_t row = PLAN_ROWS + i;
        end_backoff(s, row, now);
        if (s->tracks[row].open && s->tracks[row].kind == TIMELINE_RUNNING) {
            begin(s, row, TIMELINE_ADOPTED, now);
        }
    }
}

static void step_completed(struct spans *s, uint32_t step, const cJSON *ev, double now)
{
    struct track *t = &s->tracks[PLAN_ROWS + step];
    const char *instance = json_text(ev, "instanceId", t->instance);

    if (t->open && t->kind == TIMELINE_ADOPTED && strcmp(instance, t->instance) != 0) {
        t->kind = TIMELINE_RUNNING; /* another instance did it again */
    }
    end_span(s, PLAN_ROWS + step, now);
    t->born = false; /* it is not queued again */
    for (uint32_t i = 0; i < s->n_users[step]; i++) {
        const uint32_t user = s->users[step][i];
        struct track *other = &s->tracks[PLAN_ROWS + user];
        other->left -= other->left > 0;
        queue_when_ready(s, user, now);
    }
}

static void step_event(struct spans *s, uint32_t step, const char *type, const cJSON *ev,
                       double now)
{
    const uint32_t row = PLAN_ROWS + step;
    struct track *t = &s->tracks[row];
    const enum timeline_kind goes_on = t->begun ? TIMELINE_RUNNING : TIMELINE_QUEUED;

    if (strcmp(type, "plan_step_started") == 0) {
        t->begun = true;
        begin(s, row, TIMELINE_RUNNING, now);
        (void)snprintf(t->instance, sizeof t->instance, "%s", json_text(ev, "instanceId", ""));
    } else if (strcmp(type, "plan_step_retry") == 0 || strcmp(type, "fallback_used") == 0) {
        begin(s, row, TIMELINE_BACKOFF, now);
        t->until = now + json_number(ev, "delayMs");
    } else if (strcmp(type, "plan_step_round") == 0) {
        begin(s, row, TIMELINE_WAITING, now);
        t->until = now + json_number(ev, "delayMs");
    } else if (strcmp(type, "wait_started") == 0 || strcmp(type, "calls_started") == 0) {
        begin(s, row, TIMELINE_WAITING, now);
        t->until = INFINITY;
    } else if (strcmp(type, "plan_step_waiting") == 0) {
        begin(s, row, TIMELINE_PERSON, now);
    } else if (strcmp(type, "quality_gate_started") == 0 || strcmp(type, "replan_started") == 0) {
        begin(s, row, TIMELINE_ASKED, now);
    } else if (strcmp(type, "review_decided") == 0 || strcmp(type, "calls_finished") == 0 ||
               strncmp(type, "quality_gate_", 13) == 0) {
        begin(s, row, goes_on, now);
    } else if (strcmp(type, "replan_finished") == 0) {
        end_span(s, row, now);
    } else if (strcmp(type, "plan_step_completed") == 0) {
        step_completed(s, step, ev, now);
    }
}

void spans_event(struct spans *s, const struct cJSON *event)
{
    const char *type = json_text(event, "type", "");
    const cJSON *index = get(event, "stepIndex");
    const double now = json_number(event, "tsMs");

    if (strcmp(type, "supervisor_started") == 0) {
        restarted(s, now);
        return;
    }
    s->first = s->first <= 0 ? now : s->first;
    s->last = now > s->last ? now : s->last;
    if (cJSON_IsNumber(index) && index->valuedouble >= 0 && index->valuedouble < s->n_steps) {
        step_event(s, (uint32_t)index->valuedouble, type, event, now);
    }
    plan_event(s, type, event, now);
}

/* ---- the timeline ---- */

/* An open step that waits, as the view has it, does not run. */
static void end_step(struct spans *s, uint32_t step, double now)
{
    struct track *t = &s->tracks[PLAN_ROWS + step];

    end_backoff(s, PLAN_ROWS + step, now);
    if (t->open && t->kind == TIMELINE_RUNNING && children_wait(s->steps[step]) != NULL) {
        t->kind = TIMELINE_QUEUED;
    }
    end_span(s, PLAN_ROWS + step, now);
}

/* "1 of 3, 1 failed, 12 ms, 2 attempts"; of a branch that was not taken that. */
static void describe(const cJSON *step, char *note)
{
    const cJSON *children = get(step, "children");
    /* each turn of an agent with calls is an attempt: that is told as a turn */
    const double attempts = json_number(step, "attempts") - children_turns(step);
    char done[NOTE_MAX];
    char ms[24] = "";
    char tries[24] = "";

    if (strcmp(json_text(step, "status", ""), "skipped") == 0 &&
        strcmp(json_text(step, "reason", ""), "condition") == 0) {
        (void)snprintf(note, NOTE_MAX, "not taken");
        return;
    }
    children_words(json_text(children, "kind", ""), children, done, sizeof done);
    if (get(step, "durationMs") != NULL) {
        cli_format_ms(json_number(step, "durationMs"), ms, sizeof ms);
    }
    if (attempts > 1) {
        (void)snprintf(tries, sizeof tries, "%.0f attempts", attempts);
    }
    (void)snprintf(note, NOTE_MAX, "%s%s%s%s%.20s", done, done[0] != 0 && ms[0] != 0 ? ", " : "",
                   ms, (done[0] != 0 || ms[0] != 0) && tries[0] != 0 ? ", " : "", tries);
}

static void add_row(struct spans *s, uint32_t track, uint32_t *map)
{
    const cJSON *step = track >= PLAN_ROWS ? s->steps[track - PLAN_ROWS] : NULL;
    struct timeline_row *row = &s->rows[s->timeline.n_rows];

    if (s->tracks[track].spans == 0 && (step == NULL || is_superseded(step))) {
        return;
    }
    *row = (struct timeline_row){.name = plan_rows[track < PLAN_ROWS ? track : 0],
                                 .status = "",
                                 .note = s->notes[s->timeline.n_rows]};
    if (step != NULL) {
        row->name = json_text(step, "stepId", "");
        row->status = json_text(step, "status", "");
        describe(step, s->notes[s->timeline.n_rows]);
    }
    map[track] = s->timeline.n_rows++;
}

struct timeline *spans_end(struct spans *s, double now)
{
    const uint32_t tracks = s->n_steps + PLAN_ROWS;
    const double end = s->ended ? s->last : now > s->last ? now : s->last;
    uint32_t *map = calloc(tracks, sizeof *map);

    for (uint32_t i = 0; i < PLAN_ROWS; i++) {
        end_span(s, i, end);
    }
    for (uint32_t i = 0; i < s->n_steps; i++) {
        end_step(s, i, end);
    }
    s->rows = calloc(tracks, sizeof *s->rows);
    s->notes = calloc(tracks, sizeof *s->notes);
    if (s->failed || map == NULL || s->rows == NULL || s->notes == NULL) {
        free(map);
        return NULL;
    }
    s->timeline = (struct timeline){.rows = s->rows,
                                    .spans = s->all,
                                    .n_spans = s->n,
                                    .length_ms = end > s->first ? end - s->first : 1};
    for (uint32_t i = 0; i < tracks; i++) {
        add_row(s, i, map);
    }
    for (uint32_t i = 0; i < s->n; i++) {
        struct timeline_span *span = &s->all[i];
        span->row = map[span->row];
        span->from = span->from > s->first ? span->from - s->first : 0;
        span->to = span->to > s->first ? span->to - s->first : 0;
        span->to = span->to < s->timeline.length_ms ? span->to : s->timeline.length_ms;
        span->from = span->from < span->to ? span->from : span->to;
    }
    free(map);
    return &s->timeline;
}
