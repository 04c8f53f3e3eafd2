/* The translator's state: open plans and turns. Each has a cap; over it the oldest is dropped. */
#include <stdlib.h>
#include <string.h>

#include "protocol/base/utf8.h"
#include "protocol/compat/compat_internal.h"

void compat_id_set(struct compat_id *id, struct str from)
{
    const size_t n = from.ptr == NULL ? 0 : utf8_cut(from.ptr, from.len, COMPAT_ID_BYTES);
    if (n > 0) {
        memcpy(id->text, from.ptr, n);
    }
    id->text[n] = 0;
}

struct str compat_id_str(const struct compat_id *id)
{
    return str_from(id->text);
}

/* ---- plans ---- */

static void forget_step(struct bt_vocabulary *v, struct compat_plan *p, struct compat_step *s)
{
    v->bytes -= s->bytes;
    p->bytes -= s->bytes;
    free(s);
}

void compat_plan_text(struct bt_vocabulary *v, struct compat_plan *p, struct str *field,
                      struct str text)
{
    char *copy = NULL;

    v->bytes -= field->len;
    p->bytes -= field->len;
    free((void *)(uintptr_t)field->ptr);
    *field = (struct str){NULL, 0};
    if (text.ptr == NULL) {
        return;
    }
    text.len = utf8_cut(text.ptr, text.len, LIMIT_TASK_BYTES);
    copy = malloc(text.len + 1);
    if (copy == NULL) {
        v->bad = BT_NOMEM;
        return;
    }
    memcpy(copy, text.ptr, text.len);
    *field = (struct str){copy, text.len};
    v->bytes += text.len;
    p->bytes += text.len;
}

void compat_plan_forget(struct bt_vocabulary *v, struct compat_plan *p)
{
    const uint32_t at = map_remove(&v->by_id, compat_id_str(&p->id));

    if (at < v->n_plans) {
        v->plans[at] = v->plans[--v->n_plans];
        if (at < v->n_plans) { /* replaces a value, which needs no memory */
            (void)!map_put(&v->by_id, compat_id_str(&v->plans[at]->id), at);
        }
    }
    for (uint32_t i = 0; i < p->n_steps; i++) {
        forget_step(v, p, p->steps[i]);
    }
    compat_plan_text(v, p, &p->mission, (struct str){NULL, 0});
    compat_plan_text(v, p, &p->reason, (struct str){NULL, 0});
    compat_plan_text(v, p, &p->agent, (struct str){NULL, 0});
    compat_plan_text(v, p, &p->name, (struct str){NULL, 0});
    compat_document_forget(v, p);
    v->bytes -= p->plan_map.len;
    buf_done(&p->plan_map);
    free(p->steps);
    free(p->replanned);
    free(p);
}

/* Returns the plan that was added first, but not `but`. */
static struct compat_plan *oldest_plan(const struct bt_vocabulary *v, const struct compat_plan *but)
{
    struct compat_plan *found = NULL;

    for (uint32_t i = 0; i < v->n_plans; i++) {
        if (v->plans[i] != but && (found == NULL || v->plans[i]->age < found->age)) {
            found = v->plans[i];
        }
    }
    return found;
}

struct compat_plan *compat_plan_find(const struct bt_vocabulary *v, struct str plan_id)
{
    const uint32_t at = plan_id.len > 0 ? map_get(&v->by_id, plan_id) : MAP_NONE;
    return at == MAP_NONE ? NULL : v->plans[at];
}

struct compat_plan *compat_plan_get(struct bt_vocabulary *v, struct str plan_id)
{
    struct compat_id id;
    struct compat_plan *p;
    uint32_t at;

    compat_id_set(&id, plan_id);
    at = map_get(&v->by_id, compat_id_str(&id));
    if (at != MAP_NONE) {
        return v->plans[at];
    }
    if (v->n_plans == COMPAT_PLANS) {
        compat_plan_forget(v, oldest_plan(v, NULL));
    }
    p = calloc(1, sizeof *p);
    if (p == NULL) {
        return NULL;
    }
    p->id = id;
    p->age = v->next_age++;
    buf_init(&p->plan_map, 16 * (size_t)LIMIT_EVENT_BYTES);
    buf_init(&p->document, COMPAT_PLAN_BYTES / 2);
    if (map_put(&v->by_id, compat_id_str(&p->id), v->n_plans) != BT_OK) {
        free(p);
        return NULL;
    }
    v->plans[v->n_plans++] = p;
    return p;
}

/* ---- steps ---- */

/* Returns the position of the step, or where to insert it. */
static uint32_t place(const struct compat_plan *p, uint64_t index)
{
    uint32_t from = 0;
    uint32_t to = p->n_steps;

    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (p->steps[middle]->index < index) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

struct compat_step *compat_step_find(const struct compat_plan *p, uint64_t index)
{
    const uint32_t at = place(p, index);
    return at < p->n_steps && p->steps[at]->index == index ? p->steps[at] : NULL;
}

void compat_step_drop(struct bt_vocabulary *v, struct compat_plan *p, uint64_t index)
{
    const uint32_t at = place(p, index);

    if (at < p->n_steps && p->steps[at]->index == index) {
        forget_step(v, p, p->steps[at]);
        p->n_steps--;
        memmove(&p->steps[at], &p->steps[at + 1], (p->n_steps - at) * sizeof p->steps[0]);
    }
}

void compat_make_room(struct bt_vocabulary *v, const struct compat_plan *p, size_t bytes)
{
    while (v->bytes + bytes > COMPAT_BYTES && v->n_plans > 1) {
        compat_plan_forget(v, oldest_plan(v, p));
    }
}

static bool room_for_step(struct bt_vocabulary *v, struct compat_plan *p, size_t bytes)
{
    if (p->n_steps == COMPAT_STEPS || p->bytes + bytes > COMPAT_PLAN_BYTES) {
        return false;
    }
    compat_make_room(v, p, bytes);
    if (p->n_steps == p->steps_cap) {
        const uint32_t cap = p->steps_cap == 0 ? 8 : 2 * p->steps_cap;
        struct compat_step **more = realloc(p->steps, cap * sizeof *more);
        if (more == NULL) {
            v->bad = BT_NOMEM;
            return false;
        }
        p->steps = more;
        p->steps_cap = cap;
    }
    return true;
}

static struct str copy_after(char **at, struct str from)
{
    const struct str to = {from.ptr == NULL ? NULL : *at, from.len};

    if (from.len > 0) {
        memcpy(*at, from.ptr, from.len);
        *at += from.len;
    }
    return to;
}

struct compat_step *compat_step_keep(struct bt_vocabulary *v, struct compat_plan *p, uint64_t index,
                                     struct str id, struct str tool, struct str result)
{
    const size_t bytes = sizeof(struct compat_step) + id.len + tool.len + result.len + 1;
    struct compat_step *s;
    char *at;

    compat_step_drop(v, p, index);
    if (index > UINT32_MAX || !room_for_step(v, p, bytes)) {
        return NULL;
    }
    s = malloc(bytes);
    if (s == NULL) {
        v->bad = BT_NOMEM;
        return NULL;
    }
    at = (char *)(s + 1);
    *s = (struct compat_step){.index = (uint32_t)index, .bytes = bytes};
    s->id = copy_after(&at, id);
    s->tool = copy_after(&at, tool);
    s->result = copy_after(&at, result);
    const uint32_t where = place(p, index);
    memmove(&p->steps[where + 1], &p->steps[where], (p->n_steps - where) * sizeof p->steps[0]);
    p->steps[where] = s;
    p->n_steps++;
    v->bytes += bytes;
    p->bytes += bytes;
    return s;
}

void compat_step_complete(struct bt_vocabulary *v, struct compat_plan *p,
                          const struct compat_event *ev)
{
    const struct str id = compat_text(ev, "stepId");
    struct compat_step *s;

    for (uint32_t i = p->n_steps; i > 0; i--) { /* a step that a revision repeats counts once */
        if (p->steps[i - 1]->completed && str_eq(p->steps[i - 1]->id, id)) {
            compat_step_drop(v, p, p->steps[i - 1]->index);
        }
    }
    s = compat_step_keep(v, p, compat_number(ev, "stepIndex", UINT64_MAX), id,
                         (struct str){NULL, 0}, compat_text(ev, "result"));
    if (s != NULL) {
        s->completed = true;
    }
}

bool compat_step_began(const struct compat_plan *p, const struct compat_event *ev)
{
    const uint64_t index = compat_number(ev, "stepIndex", UINT64_MAX);
    const struct compat_step *s = compat_step_find(p, index);

    if (p->failure_emitted && p->replanning == index) {
        return false;
    }
    return s != NULL ? s->open : !p->seen_from_start && compat_number(ev, "attempts", 0) > 0;
}

struct str compat_error(const struct compat_plan *p, const struct compat_event *ev)
{
    const bool replanned = str_is(compat_text(ev, "status"), "failed") && p->reason.len > 0 &&
                           p->replanning == compat_number(ev, "stepIndex", 0);
    return replanned ? p->reason : compat_text(ev, "error");
}

static bool has_result(const struct compat_step *s)
{
    return s->completed && s->result.ptr != NULL;
}

struct doc compat_results(struct bt_vocabulary *v, const struct compat_plan *p)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n_steps; i++) {
        n += has_result(p->steps[i]) ? 1 : 0;
    }
    compat_reset_buf(v, &v->list);
    doc_put_map(&v->list, n);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (has_result(p->steps[i])) {
            doc_put_str(&v->list, p->steps[i]->id);
            compat_put_result(v, &v->list, p->steps[i]->result);
        }
    }
    return doc_from_buf(&v->list);
}

uint32_t compat_replanned(struct bt_vocabulary *v, struct compat_plan *p, struct str step_id)
{
    struct compat_id id;

    compat_id_set(&id, step_id);
    for (uint32_t i = 0; i < p->n_replanned; i++) {
        if (str_eq(compat_id_str(&p->replanned[i].id), compat_id_str(&id))) {
            return ++p->replanned[i].n;
        }
    }
    if (p->replanned == NULL) {
        p->replanned = calloc(COMPAT_REPLANNED, sizeof *p->replanned);
        v->bad = p->replanned == NULL ? BT_NOMEM : v->bad;
    }
    if (p->replanned == NULL || p->n_replanned == COMPAT_REPLANNED) {
        return 0;
    }
    p->replanned[p->n_replanned++] = (struct compat_replanned){.id = id, .n = 1};
    return 1;
}

/* ---- turns of sessions ---- */

struct compat_turn *compat_turn_find(struct bt_vocabulary *v, struct str turn_id)
{
    for (uint32_t i = v->n_turns; i > 0 && turn_id.len > 0; i--) {
        if (str_eq(compat_id_str(&v->turns[i - 1].id), turn_id)) {
            return &v->turns[i - 1];
        }
    }
    return NULL;
}

struct compat_turn *compat_turn_add(struct bt_vocabulary *v, struct str turn_id,
                                    struct str session_id)
{
    struct compat_turn *t;

    if (v->n_turns == COMPAT_TURNS) {
        compat_turn_drop(v, &v->turns[0]);
    }
    t = &v->turns[v->n_turns++];
    *t = (struct compat_turn){0};
    compat_id_set(&t->id, turn_id);
    compat_id_set(&t->session, session_id);
    return t;
}

void compat_turn_drop(struct bt_vocabulary *v, struct compat_turn *t)
{
    const size_t at = (size_t)(t - v->turns);

    v->n_turns--;
    memmove(t, t + 1, (v->n_turns - at) * sizeof *t);
}

void compat_forget_all(struct bt_vocabulary *v)
{
    while (v->n_plans > 0) {
        compat_plan_forget(v, v->plans[v->n_plans - 1]);
    }
    map_done(&v->by_id);
}
