#include "supervisor/cli/view/load.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "supervisor/cli/common/json.h"
#include "supervisor/cli/common/terminal.h"
#include "supervisor/cli/common/text.h"
#include "supervisor/cli/picture/spark.h"
#include "supervisor/cli/view/table.h"

enum {
    ID_MAX = 65,
    GOAL_SHOWN = 84,
    GOAL_NARROW = 24,
    FIELD_MAX = 96,
    FIELDS = 8,
    LABEL_COLUMNS = 16, /* before a line over the time */
    WIDE = 110,         /* columns from which on all of the tables is shown */
    AGENT_COLUMNS = 12, /* of an agent's load over the time */
    LEAST_ROWS = 2,     /* of a table that has more */
    LINES_FROM = 16,    /* lines of a terminal from which on it has lines over the time */
    FRAME_BYTES_MAX = 4 << 20
};

/* The load of an agent over the time. */
struct agent_load {
    char agent_id[ID_MAX];
    struct spark busy;
    bool seen; /* in the newest answer */
};

struct load {
    struct spark busy, rate, waiting;
    struct agent_load *agents;
    uint32_t n;
    double dispatched, at; /* of the answer before; at < 0 = there is none */
};

static const cJSON *get(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

struct load *load_new(void)
{
    struct load *l = calloc(1, sizeof *l);

    if (l != NULL) {
        l->at = -1;
    }
    return l;
}

void load_free(struct load *l)
{
    if (l != NULL) {
        free(l->agents);
        free(l);
    }
}

/* Part of the capacity that is in use; 0 without capacity. */
static double part_of(double busy, double capacity)
{
    return capacity > 0 ? busy / capacity : 0;
}

/* NULL: new and out of memory. */
static struct agent_load *agent_of(struct load *l, const char *agent_id)
{
    struct agent_load *more;

    for (uint32_t i = 0; i < l->n; i++) {
        if (strcmp(l->agents[i].agent_id, agent_id) == 0) {
            return &l->agents[i];
        }
    }
    more = realloc(l->agents, ((size_t)l->n + 1) * sizeof *more);
    if (more == NULL) {
        return NULL;
    }
    l->agents = more;
    more[l->n] = (struct agent_load){.seen = false};
    (void)snprintf(more[l->n].agent_id, ID_MAX, "%s", agent_id);
    return &more[l->n++];
}

static void forget_gone(struct load *l)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < l->n; i++) {
        if (l->agents[i].seen) {
            l->agents[i].seen = false;
            if (i != n) {
                l->agents[n] = l->agents[i];
            }
            n++;
        }
    }
    l->n = n;
}

void load_take(struct load *l, const struct cJSON *stats, double now)
{
    const double dispatched = json_number(stats, "stepsDispatched");
    double busy = 0;
    double capacity = 0;
    const cJSON *a;

    cJSON_ArrayForEach(a, get(stats, "agents"))
    {
        struct agent_load *agent = agent_of(l, json_text(a, "agentId", ""));
        busy += json_number(a, "inFlight");
        capacity += json_number(a, "capacity");
        if (agent != NULL) {
            agent->seen = true;
            spark_add(&agent->busy,
                      part_of(json_number(a, "inFlight"), json_number(a, "capacity")));
        }
    }
    forget_gone(l);
    spark_add(&l->busy, part_of(busy, capacity));
    spark_add(&l->waiting, json_number(stats, "plansWaiting"));
    if (l->at >= 0 && now > l->at) { /* a daemon that was started again counts from 0 */
        const double more = dispatched >= l->dispatched ? dispatched - l->dispatched : dispatched;
        spark_add(&l->rate, more * 1000 / (now - l->at));
    }
    l->dispatched = dispatched;
    l->at = now;
}

/* ---- the frame ---- */

struct fields {
    char at[FIELDS][FIELD_MAX];
    int n;
};

static BT_PRINTF(2, 3) void field(struct fields *f, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(f->at[f->n++], FIELD_MAX, fmt, args);
    va_end(args);
}

/* As many fields on a line as it takes. */
static void put_fields(const struct fields *f, int width, struct buf *out)
{
    int at = 0;

    for (int i = 0; i < f->n; i++) {
        const int n = look_columns(f->at[i]);
        const bool fits = at == 0 || at + 3 + n <= (width > 0 ? width : 100);
        buf_add_cstr(out, at == 0 ? "" : fits ? "   " : "\n");
        at = at > 0 && fits ? at + 3 + n : n;
        look_fit(f->at[i], width > 0 ? width : FIELD_MAX, false, false, out);
    }
    buf_add_byte(out, '\n');
}

/* "schedules 2, next nightly at 2026-11-25 03:00"; nothing without schedules. */
static void put_schedules(const cJSON *schedules, struct fields *f)
{
    const char *soonest = NULL;
    const char *name = "";
    char at[48] = "";
    const cJSON *s;

    cJSON_ArrayForEach(s, schedules)
    {
        const cJSON *next = cJSON_GetArrayItem(get(s, "next"), 0);
        if (cJSON_IsString(next) && strcmp(json_text(s, "status", ""), "active") == 0 &&
            (soonest == NULL || strcmp(next->valuestring, soonest) < 0)) {
            soonest = next->valuestring;
            name = json_text(s, "name", "");
        }
    }
    if (soonest != NULL) {
        cli_times_in(at, sizeof at, soonest);
        field(f, "schedules %d, next %.30s at %s", cJSON_GetArraySize(schedules), name, at);
    } else if (cJSON_GetArraySize(schedules) > 0) {
        field(f, "schedules %d, none active", cJSON_GetArraySize(schedules));
    }
}

static double sum_of(const cJSON *plans, const char *count)
{
    const cJSON *p;
    double n = 0;

    cJSON_ArrayForEach(p, plans)
    {
        n += json_number(get(p, "counts"), count);
    }
    return n;
}

static void put_head(const cJSON *frame, int width, struct buf *out)
{
    const cJSON *s = get(frame, "stats");
    const double asleep = sum_of(get(frame, "plans"), "sleeping");
    const double most = json_number(s, "inFlightMax");
    char limit[32] = "";
    char sleeping[32] = "";
    struct fields f = {.n = 0};

    if (most > 0) {
        (void)snprintf(limit, sizeof limit, " of %.0f", most);
    }
    field(&f, "plans %.0f open, %.0f waiting, %.0f done", json_number(s, "plansOpen"),
          json_number(s, "plansWaiting"), json_number(s, "plansDone"));
    if (asleep > 0) {
        (void)snprintf(sleeping, sizeof sleeping, ", %.0f asleep", asleep);
    }
    field(&f, "steps %.0f%s in flight, %.0f queued%s", json_number(s, "inFlight"), limit,
          json_number(s, "queued"), sleeping);
    field(&f, "reviews %.0f", json_number(s, "reviewsOpen"));
    field(&f, "dispatched %.0f, retried %.0f", json_number(s, "stepsDispatched"),
          json_number(s, "stepsRetried"));
    field(&f, "fallbacks %.0f, replans %.0f", json_number(s, "fallbacks"),
          json_number(s, "replans"));
    field(&f, "refused %.0f", json_number(s, "refusedBusy"));
    field(&f, "memory %.1f MiB", json_number(s, "rssBytes") / (1 << 20));
    put_schedules(get(frame, "schedules"), &f);
    put_fields(&f, width, out);
}

/* A label, the newest value, and a line over the time. */
static void put_line(const char *label, const char *value, const struct spark *s, double top,
                     const struct look *look, struct buf *out)
{
    buf_printf(out, "%-8s %6s ", label, value);
    spark_put(s, look->width - LABEL_COLUMNS, top, look, out);
    buf_add_byte(out, '\n');
}

static double newest(const struct spark *s)
{
    return s->n > 0 ? s->at[s->n - 1] : 0;
}

static void put_lines(const struct load *l, const struct look *look, struct buf *out)
{
    char value[24];

    (void)snprintf(value, sizeof value, "%.0f %%", 100 * newest(&l->busy));
    put_line("load", value, &l->busy, 1, look, out);
    (void)snprintf(value, sizeof value, "%.1f", newest(&l->rate));
    put_line("steps/s", value, &l->rate, 0, look, out);
    (void)snprintf(value, sizeof value, "%.0f", newest(&l->waiting));
    put_line("waiting", value, &l->waiting, 0, look, out);
}

static const struct agent_load *find(const struct load *l, const char *agent_id)
{
    for (uint32_t i = 0; i < l->n; i++) {
        if (strcmp(l->agents[i].agent_id, agent_id) == 0) {
            return &l->agents[i];
        }
    }
    return NULL;
}

static void cell_load(struct table *t, const struct load *l, const char *agent_id,
                      const struct look *look)
{
    const struct agent_load *agent = find(l, agent_id);
    const struct look plain = {.ascii = look->ascii};
    struct buf text;

    buf_init(&text, FIELD_MAX);
    if (agent != NULL && look->width > 0) {
        spark_put(&agent->busy, AGENT_COLUMNS, 1, &plain, &text);
    }
    table_cell(t, "%s", buf_cstr(&text));
    buf_done(&text);
}

static void cell_when(struct table *t, bool shown, double number)
{
    if (shown) {
        table_cell(t, "%.0f", number);
    } else {
        table_cell(t, "%s", "");
    }
}

/* A column whose cells are all empty is left out: so a narrow terminal has fewer of them. */
static struct table *agents_table(const struct load *l, const cJSON *agents,
                                  const struct look *look)
{
    static const char *const heads[] = {"agent", "state",   "breaker", ">instances", ">busy",
                                        "load",  ">queued", ">steps",  ">errors",    ">average",
                                        ">max",  ">tokens", NULL};
    const bool wide = look->width == 0 || look->width >= WIDE;
    struct table *t = table_new(heads);
    const cJSON *a;

    cJSON_ArrayForEach(a, agents)
    {
        const char *breaker = json_text(a, "breaker", "");
        char average[24];
        char max[24] = "";
        cli_format_ms(json_number(a, "averageMs"), average, sizeof average);
        if (wide) {
            cli_format_ms(json_number(a, "maxMs"), max, sizeof max);
        }
        table_cell(t, "%s", json_text(a, "agentId", ""));
        table_cell(t, "%s %s", cli_mark(json_text(a, "state", "")), json_text(a, "state", ""));
        table_cell(t, "%s", wide || strcmp(breaker, "closed") != 0 ? breaker : "");
        cell_when(t, wide, json_number(a, "instances"));
        table_cell(t, "%.0f/%.0f", json_number(a, "inFlight"), json_number(a, "capacity"));
        cell_load(t, l, json_text(a, "agentId", ""), look);
        table_cell(t, "%.0f", json_number(a, "queued"));
        table_cell(t, "%.0f", json_number(a, "steps"));
        table_cell(t, "%.0f", json_number(a, "errors"));
        table_cell(t, "%s", average);
        table_cell(t, "%s", max);
        cell_when(t, wide, json_number(a, "tokens"));
    }
    return t;
}

/* The column's head says the rest. */
static const char *without_waiting(const char *text)
{
    static const char before[] = "waiting for ";

    return strncmp(text, before, sizeof before - 1) == 0 ? text + sizeof before - 1 : text;
}

static struct table *plans_table(const cJSON *plans, const struct look *look)
{
    static const char *const heads[] = {"plan",     "status",   "phase", "paused",    ">done",
                                        "position", "schedule", "goal",  "waits for", NULL};
    const bool wide = look->width == 0 || look->width >= WIDE;
    struct table *t = table_new(heads);
    char goal[GOAL_SHOWN];
    char local[4 * GOAL_SHOWN];
    char wait[GOAL_SHOWN];
    const cJSON *p;

    cJSON_ArrayForEach(p, plans)
    {
        const cJSON *counts = get(p, "counts");
        const cJSON *paused = cJSON_GetArrayItem(get(p, "paused"), 0);
        const char *phase = json_text(p, "phase", "");
        table_cell(t, "%s", json_text(p, "planId", ""));
        table_cell(t, "%s %s", cli_mark(json_text(p, "status", "")), json_text(p, "status", ""));
        table_cell(t, "%s", strcmp(phase, "execution") == 0 ? "" : phase);
        table_cell(t, "%s", cJSON_IsString(paused) ? paused->valuestring : "");
        if (json_number(counts, "total") > 0) {
            table_cell(t, "%.0f/%.0f", json_number(counts, "completed"),
                       json_number(counts, "total"));
        } else {
            table_cell(t, "%s", "");
        }
        table_cell(t, "%s", wide ? json_text(p, "position", "") : "");
        table_cell(t, "%s", wide ? json_text(p, "schedule", "") : "");
        cli_cut_line(goal, wide ? sizeof goal : (size_t)GOAL_NARROW, json_text(p, "query", ""));
        table_cell(t, "%s", goal);
        cli_times_in(local, sizeof local, json_text(p, "waitsFor", ""));
        cli_cut_line(wait, sizeof wait, without_waiting(local));
        table_cell(t, "%s", wait);
    }
    return t;
}

/* Its heads, and at most `rows` rows, of which the last one counts what has no room; frees it. */
static void put_table(struct table *t, int n, int rows, const char *what, const struct look *look,
                      struct buf *out)
{
    const bool all = rows == 0 || n <= rows;
    const size_t begin = out->len;

    buf_add_cstr(out, look->color ? "\033[1m" : "");
    table_write(t, look->width, all ? 0 : rows - 1, out);
    if (look->color && out->len > begin) {
        struct buf text;
        const char *heads = buf_cstr(out) + begin;
        const size_t end = strcspn(heads, "\n");
        buf_init(&text, FRAME_BYTES_MAX);
        buf_printf(&text, "%.*s\033[0m%s", (int)end, heads, heads + end);
        buf_truncate(out, begin);
        buf_add_cstr(out, buf_cstr(&text));
        buf_done(&text);
    }
    if (!all) {
        buf_printf(out, "and %d more %s\n", n - rows + 1, what);
    }
    table_free(t);
}

static int lines_of(struct buf *out)
{
    int n = 0;

    for (const char *p = buf_cstr(out); *p != 0; p++) {
        n += *p == '\n';
    }
    return n;
}

void load_frame(const struct load *l, const struct cJSON *frame, const struct look *look,
                int height, struct buf *out)
{
    const cJSON *stats = get(frame, "stats");
    const cJSON *plans = get(frame, "plans");
    const int n_agents = cJSON_GetArraySize(get(stats, "agents"));
    const int n_plans = cJSON_GetArraySize(plans);
    int for_agents = 0;
    int for_plans = 0;

    put_head(frame, look->width, out);
    buf_add_byte(out, '\n');
    if (height > 0) {
        int left;
        if (height >= LINES_FROM) {
            put_lines(l, look, out);
            buf_add_byte(out, '\n');
        }
        left = height - lines_of(out) - 3; /* both heads, and a line between */
        for_plans =
            n_plans < left / 2 ? n_plans : left - (n_agents < left / 2 ? n_agents : left / 2);
        for_agents = left - for_plans;
        for_agents = for_agents < LEAST_ROWS ? LEAST_ROWS : for_agents;
        for_plans = for_plans < LEAST_ROWS ? LEAST_ROWS : for_plans;
    }
    put_table(agents_table(l, get(stats, "agents"), look), n_agents, for_agents, "agents", look,
              out);
    if (n_plans > 0) {
        buf_add_byte(out, '\n');
        put_table(plans_table(plans, look), n_plans, for_plans, "plans", look, out);
    }
}
