/*
 * The plan that undoes another: the compensations of its steps that completed, the one that ended
 * last first, and among them those of its child plans. Results are put into tasks and parameters
 * when it is made, so it depends on no other plan. Its key is that of the plan, so there is never a
 * second one. What cannot be made into a step of an agent is one for a person.
 */
#include <stdio.h>
#include <string.h>

#include "protocol/base/log.h"
#include "supervisor/engine/children.h"
#include "supervisor/engine/engine_internal.h"
#include "supervisor/engine/scope.h"
#include "supervisor/engine/submission.h"
#include "supervisor/plan/expand.h"

enum { TASK_SHOWN = 1000 };

struct undo {
    struct engine *engine;
    const struct open_plan *p; /* whose step is undone */
    uint32_t step;
    struct buf *steps; /* of the document */
    uint32_t n;
    struct map ids; /* of its steps */
    struct arena arena;
    struct bt_error *err;
};

static void undo_key(struct str plan_id, char ret[CHILD_KEY_MAX])
{
    (void)snprintf(ret, CHILD_KEY_MAX,
                   "\x1f"
                   "undo/%.*s",
                   STR_ARG(plan_id));
}

bool engine_undo_plan(struct engine *engine, struct str plan_id, char ret[UUID_TEXT_LEN + 1])
{
    char key[CHILD_KEY_MAX];
    struct journal_plan row;
    struct bt_error unused;

    undo_key(plan_id, key);
    if (journal_plan_by_key(engine->journal, str_from(key), &row, &unused) != BT_OK) {
        return false;
    }
    uuid_format(row.plan_id, ret);
    return true;
}

/* ---- one compensation ---- */

static enum bt_code result_of(struct str id, struct doc *ret, void *self, struct bt_error *err)
{
    const struct undo *u = self;

    return scope_result(u->engine, u->p, u->step, id, ret, err);
}

static enum bt_code word_of(struct str word, struct doc *ret, void *self, struct bt_error *err)
{
    const struct undo *u = self;

    return scope_value(u->engine, u->p, u->step, word, ret, err);
}

static void put_text(struct buf *out, const char *name, struct str value)
{
    doc_put_cstr(out, name);
    doc_put_str(out, value.len > 0 ? value : (struct str){"", 0});
}

/* "undo-reserve", "undo-reserve-3" of an item, and a number where that is taken. */
static enum bt_code new_id(struct undo *u, struct str *ret)
{
    const struct str of = u->p->plan->steps[u->step].step_id;
    char text[LIMIT_ID_BYTES + 1];

    for (uint32_t again = 1;; again++) {
        char end[16] = "";
        if (again > 1) {
            (void)snprintf(end, sizeof end, ".%u", again);
        }
        int n = snprintf(text, sizeof text - strlen(end), "undo-%.*s", STR_ARG(of));
        n = n < (int)(sizeof text - strlen(end)) ? n : (int)(sizeof text - strlen(end)) - 1;
        for (int i = 0; i < n; i++) {
            text[i] = text[i] == '[' ? '-' : text[i];
        }
        n -= n > 0 && text[n - 1] == ']' ? 1 : 0;
        (void)snprintf(text + n, sizeof text - (size_t)n, "%s", end);
        *ret = str_from(text);
        if (map_get(&u->ids, *ret) == MAP_NONE) {
            break;
        }
    }
    *ret = arena_str(&u->arena, *ret);
    return ret->ptr != NULL && map_put(&u->ids, *ret, 1) == BT_OK
               ? BT_OK
               : err_set(u->err, BT_NOMEM, "out of memory for a plan that undoes another");
}

/* The members of the compensation but the task and the parameters. */
static uint32_t copy_rest(struct doc compensate, struct buf *out)
{
    struct doc_cursor c = doc_cursor(compensate);
    struct doc_head head;
    uint32_t n = 0;

    (void)doc_next(&c, &head);
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str key = doc_string(doc_skip(&c));
        const struct doc value = doc_skip(&c);
        if (!str_is(key, "task") && !str_is(key, "parameters")) {
            doc_put_str(out, key);
            doc_put_doc(out, value);
            n++;
        }
    }
    return n;
}

/* A person does what no agent can be asked for. */
static void put_review(struct undo *u, struct str id, const char *why, struct str task)
{
    struct buf text;

    buf_init(&text, LIMIT_CONTROL_BYTES);
    buf_printf(&text, "Undo step %.*s by hand, and approve when that is done. %s",
               STR_ARG(u->p->plan->steps[u->step].step_id), why);
    if (task.len > 0) {
        buf_printf(&text, " It was to be: %.*s",
                   (int)(task.len < TASK_SHOWN ? task.len : TASK_SHOWN), task.ptr);
    }
    doc_put_map(u->steps, 4);
    put_text(u->steps, "stepId", id);
    put_text(u->steps, "type", STR_LIT("human_review"));
    put_text(u->steps, "task", buf_str(&text));
    put_text(u->steps, "onFailure", STR_LIT("continue"));
    buf_done(&text);
}

static enum bt_code put_compensation(struct undo *u)
{
    const struct doc compensate = u->p->plan->steps[u->step].rules->compensate;
    const struct str wanted = doc_string(doc_get(compensate, STR_LIT("task")));
    const struct doc given = doc_get(compensate, STR_LIT("parameters"));
    struct scope_words words;
    const struct expand_scope scope = {words.at, scope_words(u->engine, u->p, u->step, &words),
                                       word_of};
    struct bt_error why = {.code = BT_OK};
    struct buf task;
    struct buf parameters;
    struct buf rest;
    struct str id;
    enum bt_code code = new_id(u, &id);

    if (code != BT_OK) {
        return code;
    }
    buf_init(&task, LIMIT_TASK_BYTES);
    buf_init(&parameters, LIMIT_STEP_BYTES);
    buf_init(&rest, LIMIT_STEP_BYTES);
    code = expand_text(wanted, result_of, &scope, u, &task, &why);
    if (code == BT_OK && given.ptr != NULL) {
        code = expand_params(given, result_of, &scope, u, &parameters, &why);
    }
    if (code == BT_OK) {
        const uint32_t n = copy_rest(compensate, &rest);
        doc_put_map(u->steps, n + 2 + (given.ptr != NULL ? 1u : 0u));
        put_text(u->steps, "stepId", id);
        put_text(u->steps, "task", buf_str(&task));
        if (given.ptr != NULL) {
            doc_put_cstr(u->steps, "parameters");
            doc_put_doc(u->steps, doc_from_buf(&parameters));
        }
        buf_add_str(u->steps, buf_str(&rest));
    } else if (code != BT_IO && code != BT_NOMEM) {
        put_review(u, id, why.msg, wanted);
        code = BT_OK;
    } else {
        *u->err = why;
    }
    u->n++;
    buf_done(&rest);
    buf_done(&parameters);
    buf_done(&task);
    return code;
}

/* ---- a plan, and its children ---- */

static enum bt_code collect(struct undo *u, const struct open_plan *p);

/* Of a plan that has ended in this cycle the journal cannot be read yet. */
static const struct open_plan *in_memory(struct engine *engine, struct uuid id)
{
    char text[UUID_TEXT_LEN + 1];

    uuid_format(id, text);
    for (uint32_t i = 0; i < engine->ended_n; i++) {
        if (str_eq(str_from(engine->ended[i].id), str_from(text))) {
            return &engine->ended[i];
        }
    }
    return open_plan_by_id(engine, str_from(text));
}

static enum bt_code collect_child(struct undo *u, const struct open_plan *child)
{
    const struct run *run = core_block_run(child->block);

    return run->undone != 0 || child->plan->undo == UNDO_NEVER /* it did, or must not */
               ? BT_OK
               : collect(u, child);
}

static enum bt_code collect_row(struct undo *u, const struct journal_plan *row)
{
    const struct open_plan *here = in_memory(u->engine, row->plan_id);
    const struct open_plan *within = u->p;
    struct open_plan child = {.run = 0};
    enum bt_code code;

    if (here != NULL) {
        struct open_plan_more more = *open_plan_more(here);
        child = *here;
        more.within = within;
        child.more = &more;
        return collect_child(u, &child);
    }
    code = open_plan_rebuild(u->engine, row, &child, u->err);
    open_plan_more_change(&child)->within = within;
    if (code == BT_OK) {
        code = collect_child(u, &child);
    }
    open_plan_done(&child);
    return code;
}

/* The newest child first. One that is not in the journal any more is for a person. */
static enum bt_code collect_children(struct undo *u, const struct open_plan *p, uint32_t step)
{
    const struct run_step *state = &((const struct run *)core_block_run(p->block))->steps[step];
    const bool loop = p->plan->steps[step].rules->loop.max > 0;
    enum bt_code code = BT_OK;
    uint32_t found = 0;

    for (uint32_t attempt = state->attempt; attempt > 0 && code == BT_OK; attempt--) {
        for (uint32_t round = loop ? state->round + 1 : 1; round > 0 && code == BT_OK; round--) {
            const struct child_task t = {.step = step, .attempt = attempt, .round = round - 1};
            struct journal_plan row;
            char key[CHILD_KEY_MAX];
            child_key(p, &t, key);
            code = journal_plan_by_key(u->engine->journal, str_from(key), &row, u->err);
            if (code == BT_OK) {
                found++;
                u->p = p;
                u->step = step;
                code = collect_row(u, &row);
            } else if (code == BT_NOT_FOUND || code == BT_CONFLICT) {
                code = BT_OK;
            }
        }
    }
    u->p = p;
    u->step = step;
    if (code == BT_OK && found == 0 && state->status == STEP_COMPLETED && state->result.len > 64) {
        struct str id;
        code = new_id(u, &id);
        if (code == BT_OK) {
            put_review(u, id, "Its child plans are not in the journal any more.",
                       (struct str){NULL, 0});
            u->n++;
        }
    }
    return code;
}

static enum bt_code collect(struct undo *u, const struct open_plan *p)
{
    const struct run *run = core_block_run(p->block);
    uint32_t *order = arena_alloc(&u->arena, (run->n_steps + 1) * sizeof *order);
    enum bt_code code =
        order != NULL ? BT_OK : err_set(u->err, BT_NOMEM, "out of memory for the undoing");
    const uint32_t n = code == BT_OK ? run_undo_order(run, p->plan, order) : 0;

    for (uint32_t i = 0; i < n && code == BT_OK; i++) {
        const struct plan_step *s = &p->plan->steps[order[i]];
        u->p = p;
        u->step = order[i];
        if (s->rules->compensate.ptr != NULL && run->steps[order[i]].status == STEP_COMPLETED) {
            code = put_compensation(u); /* of a sub-plan: instead of those inside */
        } else if (s->type == STEP_TYPE_PLAN) {
            code = collect_children(u, p, order[i]);
        }
    }
    return code;
}

/* ---- the document ---- */

/* The plan's rules for attempts. What concerns it as a whole does not hold for its undoing: its
 * time, its budget, who writes its answer. */
static void put_policy(struct doc policy, struct buf *out)
{
    static const char *const without[] = {"planTimeoutMs", "budget",        "synthesis",
                                          "signoff",       "gate",          "verifyWith",
                                          "agents",        "compensate",    "fallbackAgents",
                                          "searchAgent",   "maxConcurrency"};
    struct doc_cursor c = doc_cursor(policy);
    struct doc_head head = {.n = 0};
    struct buf kept;
    uint32_t n = 3;

    buf_init(&kept, LIMIT_CONTROL_BYTES);
    (void)doc_next(&c, &head);
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str key = doc_string(doc_skip(&c));
        const struct doc value = doc_skip(&c);
        bool copied = true;
        for (size_t k = 0; k < sizeof without / sizeof without[0]; k++) {
            copied = copied && !str_is(key, without[k]);
        }
        if (copied) {
            doc_put_str(&kept, key);
            doc_put_doc(&kept, value);
            n++;
        }
    }
    doc_put_map(out, n);
    buf_add_str(out, buf_str(&kept));
    doc_put_cstr(out, "planTimeoutMs");
    doc_put_u64(out, 0);
    doc_put_cstr(out, "maxConcurrency");
    doc_put_u64(out, 1);
    put_text(out, "synthesis", STR_LIT("concat"));
    buf_done(&kept);
}

static enum bt_code put_document(struct undo *u, const struct open_plan *p, struct doc stored,
                                 struct buf *out)
{
    const struct child_of of = {
        .kind = CHILD_OF_UNDO, .of = str_from(p->id), .step = 0, .depth = p->plan->child.depth + 1};
    const struct str session = p->plan->session_id;
    char goal[96];

    (void)snprintf(goal, sizeof goal, "Undo plan %s", p->id);
    doc_put_map(out, session.len > 0 ? 5 : 4);
    put_text(out, "goal", str_from(goal));
    if (session.len > 0) {
        put_text(out, "sessionId", session);
    }
    doc_put_cstr(out, "child");
    child_of_write(&of, (struct doc){NULL, 0}, out);
    doc_put_cstr(out, "policy");
    put_policy(doc_get(stored, STR_LIT("policy")), out);
    doc_put_cstr(out, "steps");
    doc_put_array(out, u->n);
    buf_add_str(out, buf_str(u->steps));
    out->bad = out->bad != BT_OK ? out->bad : u->steps->bad;
    return buf_check(out, u->err);
}

static enum bt_code start(struct undo *u, const struct open_plan *p, struct doc stored)
{
    char key[CHILD_KEY_MAX];
    char id[UUID_TEXT_LEN + 1];
    struct submission_start how = {.job = STR_LIT("child"),
                                   .owner = open_plan_owner(p),
                                   .whole_key = true,
                                   .parent = p->plan_id};
    struct submission d;
    enum bt_code code = submission_init(&d, u->err);

    undo_key(str_from(p->id), key);
    how.client_key = str_from(key);
    open_plan_trace(p, &how.trace);
    if (code == BT_OK) {
        code = put_document(u, p, stored, &d.normalised);
    }
    if (code == BT_OK) {
        code = plan_read_canonical(doc_from_buf(&d.normalised), &u->engine->opt.defaults,
                                   u->engine->registry, &d.arena, &d.made, u->err);
    }
    if (code == BT_OK) {
        code = submission_start(u->engine, &how, &d, id, u->err);
    }
    submission_done(&d);
    return code;
}

/* ---- when ---- */

/* The plan of a child whose row is known; false when it is none. */
static bool parent_of(struct engine *engine, struct str id, struct arena *arena, struct str *ret)
{
    const struct open_plan *p = open_plan_by_id(engine, id);
    struct journal_plan row;
    struct uuid uuid;
    struct child_of of;
    struct doc items;
    struct bt_error unused;

    if (p != NULL) {
        *ret = p->plan->child.of;
        return p->plan->child.kind != CHILD_OF_NONE;
    }
    if (!uuid_parse(id, &uuid) ||
        journal_plan_by_id(engine->journal, uuid, &row, &unused) != BT_OK) {
        return false;
    }
    child_of_read(doc_get((struct doc){row.doc, row.doc_len}, STR_LIT("child")), &of, &items);
    *ret = arena_str(arena, of.of);
    return of.kind != CHILD_OF_NONE && ret->ptr != NULL;
}

/* What its children still do cannot be undone yet. */
static bool has_open_children(struct undo *u, const struct open_plan *p)
{
    for (struct open_plan *q = NULL; (q = open_plan_next(u->engine, q)) != NULL;) {
        struct str of = {NULL, 0};
        struct str id = str_from(q->id);
        if (q == p || q->plan->child.kind == CHILD_OF_NONE ||
            plan_is_final(((const struct run *)core_block_run(q->block))->status)) {
            continue;
        }
        for (uint32_t depth = 0; depth <= CHILD_DEPTH_MAX + 1; depth++) {
            if (!parent_of(u->engine, id, &u->arena, &of)) {
                break;
            }
            if (str_eq(of, str_from(p->id))) {
                return true;
            }
            id = of;
        }
    }
    return false;
}

static void wait_for_others(struct engine *engine, struct open_plan *p)
{
    p->undo_waits = true;
    engine->undos_wait++;
}

void engine_undo_retry(struct engine *engine)
{
    if (engine->undos_wait == 0) {
        return;
    }
    engine->undos_wait = 0;
    for (struct open_plan *p = NULL; (p = open_plan_next(engine, p)) != NULL;) {
        if (p->undo_waits) {
            const struct core_cmd cmd = {.type = CMD_COMPENSATE, .run = p->run};
            p->undo_waits = false;
            engine_child_command(engine, &cmd);
        }
    }
}

static void report(struct engine *engine, uint64_t run, bool ok, struct str text)
{
    struct core_event ev = {CORE_EV_INIT(COMPENSATED, compensated, .ok = ok), .run = run,
                            .step = STEP_NONE, .lane = LANE_NONE, .text = text};

    engine_tell(engine, &ev);
}

static enum bt_code make(struct undo *u, const struct open_plan *p)
{
    struct journal_plan row;
    struct arena kept = {.chunks = NULL};
    struct doc stored = {NULL, 0};
    enum bt_code code = collect(u, p);

    if (code == BT_OK && u->n > LIMIT_STEPS) {
        code = err_set(u->err, BT_LIMIT,
                       "%u compensations are more than the %u steps of one plan: nothing was "
                       "undone",
                       u->n, (unsigned)LIMIT_STEPS);
    }
    if (code == BT_OK && u->n > 0) {
        code = journal_plan_by_id(u->engine->journal, p->plan_id, &row, u->err);
        stored = code == BT_OK ? doc_copy(&kept, (struct doc){row.doc, row.doc_len}) : stored;
        code = code == BT_OK && stored.ptr == NULL
                   ? err_set(u->err, BT_NOMEM, "out of memory for the undoing")
                   : code;
        code = code == BT_OK ? start(u, p, stored) : code;
    }
    arena_done(&kept);
    return code;
}

void engine_undo_start(struct engine *engine, struct open_plan *p)
{
    const uint64_t run = p->run;
    char id[UUID_TEXT_LEN + 1];
    struct buf steps;
    struct bt_error err = {.code = BT_OK};
    struct undo u = {.engine = engine, .steps = &steps, .err = &err};
    enum bt_code code;

    if (engine_undo_plan(engine, str_from(p->id), id)) {
        if (open_plan_by_id(engine, str_from(id)) == NULL) {
            report(engine, run, false,
                   STR_LIT("The plan that undoes it is in quarantine, and gave no answer"));
        }
        return; /* it goes on after a restart */
    }
    if (has_open_children(&u, p) || submission_job_room(engine, true, &err) != BT_OK) {
        wait_for_others(engine, p);
        arena_done(&u.arena);
        return;
    }
    buf_init(&steps, LIMIT_STEP_BYTES);
    code = make(&u, p);
    if (code == BT_OK && u.n == 0) {
        report(engine, run, true, STR_LIT("There was nothing to undo"));
    } else if (code != BT_OK && !engine->failed) {
        log_err("plan.undo", "plan=%s why=\"%s\"", p->id, err.msg);
        report(engine, run, false, engine_cycle_text(engine, str_from(err.msg)));
    }
    buf_done(&steps);
    map_done(&u.ids);
    arena_done(&u.arena);
}

struct core_event engine_undo_event(const struct open_plan *undo, const struct record *rec)
{
    const struct rec_plan_completed *end = REC(rec, plan_completed);
    const struct run *run = core_block_run(undo->block);
    const uint32_t by_hand = run->skipped; /* a person skips what is done already */
    const bool ok = end->outcome == OUTCOME_SUCCESS;

    return (struct core_event){
        CORE_EV_INIT(COMPENSATED, compensated, .ok = ok, .done = run->completed + by_hand,
                     .failed = run->failed + run->cancelled, .usage = run->usage),
        .step = STEP_NONE, .lane = LANE_NONE, .text = ok ? (struct str){"", 0} : rec->text};
}
