/* Requests about schedules. */
#include "supervisor/schedule/schedules.h"

#include "protocol/base/suggest.h"
#include "protocol/base/utf8.h"
#include "supervisor/api/api.h"
#include "supervisor/engine/access.h"

enum { NEXT_DEFAULT = 5, LIST_DEFAULT = 100, NAME_SHOWN = 64, REFUSED = 100, NEAR_PAGE = 1000 };

static struct schedules *schedules_of(struct engine *engine)
{
    return engine_hooks(engine)->schedules;
}

static void refuse(struct engine *engine, struct request *rq, const struct bt_error *why)
{
    request_refuse(engine, rq, why, why->code == BT_INVALID ? CLASS_VALIDATION_ERROR : CLASS_NONE,
                   0, (struct doc){NULL, 0});
}

/* After a failed order: what the journal could not do ends the cycle. */
static void refuse_order(struct engine *engine, struct request *rq, const struct bt_error *why)
{
    if (why->code == BT_IO) {
        engine_fail(engine, why);
    } else {
        refuse(engine, rq, why);
    }
}

/* The name that is spelt most alike, among the first that the sender may see; "" = none. */
static struct str near_name(struct engine *engine, struct str name)
{
    struct suggest near = suggest_start(name);
    struct schedule *page[NEAR_PAGE];
    const uint32_t n = schedules_page(schedules_of(engine), 0, page, NEAR_PAGE);

    for (uint32_t i = 0; i < n; i++) {
        suggest_offer(&near, schedule_name(page[i]));
    }
    return near.best.ptr != NULL ? near.best : (struct str){"", 0};
}

/* NULL after refusing. */
static struct schedule *find(struct engine *engine, struct request *rq, struct str name)
{
    struct schedule *p = schedules_find(schedules_of(engine), name);

    if (p == NULL) {
        const struct str near = near_name(engine, name);
        request_refuse_text(engine, rq, BT_NOT_FOUND, "there is no schedule '%.*s'%s%.*s%s",
                            (int)utf8_cut(name.ptr, name.len, NAME_SHOWN), name.ptr,
                            near.len > 0 ? "; did you mean '" : "", STR_ARG(near),
                            near.len > 0 ? "'?" : "");
    }
    return p;
}

/* A schedule that the sender may change; NULL after refusing. */
static struct schedule *find_own(struct engine *engine, struct request *rq, struct str name)
{
    const struct identity *who = engine_who(engine);
    struct schedule *p = find(engine, rq, name);
    struct bt_error err;

    if (p == NULL || access_changes(who, schedule_owner(p))) {
        if (p != NULL && !str_eq(access_owner(who), schedule_owner(p))) {
            access_note(engine, AUDIT_ADMIN, who, rq->env.type, name, BT_OK,
                        str_from("changes what is another's"));
        }
        return p;
    }
    (void)err_set(&err, BT_UNAUTHORIZED,
                  "the schedule is of '%.*s': to change it, the credential '%s' needs the role "
                  "admin; it has %s",
                  STR_ARG(access_owner_shown(schedule_owner(p))), who->id, role_name(who->role));
    refuse(engine, rq, &err);
    return NULL;
}

/* No rows may be added now: the disk is full. */
static bool has_room(struct engine *engine, struct request *rq)
{
    struct bt_error err;

    if (!journal_storage_low(engine_journal(engine))) {
        return true;
    }
    (void)engine_room_error(engine, false, &err);
    request_refuse(engine, rq, &err, CLASS_NONE, engine_room_wait_ms(), (struct doc){NULL, 0});
    return false;
}

/* ---- put ---- */

static void put(struct engine *engine, struct request *rq, const struct msg_schedule_put *m)
{
    struct msg_schedule_put_ok ok = {.existing = false};
    struct submission d;
    struct bt_error err;
    enum bt_code code = submission_init(&d, &err);

    if (code == BT_OK) {
        code = schedules_put(schedules_of(engine), m, &d, &ok, &d.arena, &err);
    }
    if (code == BT_OK) {
        ok.problems_n = submission_problems(&d);
        ok.problems = d.problem_views;
        if (request_try_answer(engine, rq, MSG_schedule_put_ok, &ok, &err) != BT_OK) {
            ok.problems_n = 0; /* it was accepted: no remark turns that into a refusal */
            request_answer(engine, rq, MSG_schedule_put_ok, &ok);
        }
    } else if (!engine_has_failed(engine)) {
        if (d.problems.errors > 0 || d.planned.n_unrouted > 0) {
            submission_refuse_new(engine, rq, &d, &err);
        } else {
            refuse(engine, rq, &err);
        }
    }
    submission_done(&d);
}

void on_schedule_put(struct engine *engine, struct request *rq)
{
    struct msg_schedule_put m;
    const struct schedule *p;

    if (!request_read(engine, rq, MSG_schedule_put, &m)) {
        return;
    }
    p = schedules_find(schedules_of(engine), m.name);
    if ((p == NULL || find_own(engine, rq, m.name) != NULL) && has_room(engine, rq)) {
        put(engine, rq, &m);
    }
}

/* ---- reading ---- */

void on_schedule_get(struct engine *engine, struct request *rq)
{
    struct msg_schedule_get_ok ok = {.has = 0};
    struct msg_schedule_get m;
    struct arena arena = {0};
    struct bt_error err;
    const struct schedule *p;
    uint32_t next;

    if (!request_read(engine, rq, MSG_schedule_get, &m)) {
        return;
    }
    p = find(engine, rq, m.name);
    if (p == NULL) {
        return;
    }
    next = msg_has(&m, schedule_get, next) ? (uint32_t)m.next : NEXT_DEFAULT;
    if (schedules_view(schedules_of(engine), p, next, m.document, &arena, &ok.schedule, &err) ==
        BT_OK) {
        request_answer(engine, rq, MSG_schedule_get_ok, &ok);
    } else {
        refuse(engine, rq, &err);
    }
    arena_done(&arena);
}

static enum bt_code put_page(struct engine *engine, const struct msg_schedule_list *m,
                             struct arena *arena, struct msg_schedule_list_ok *ret,
                             struct bt_error *err)
{
    const uint32_t limit = m->limit == 0 ? LIST_DEFAULT : (uint32_t)m->limit;
    struct schedule **page = arena_alloc(arena, (limit + 2) * sizeof(struct schedule *));
    enum bt_code code = BT_OK;
    uint32_t n;

    struct msg_schedule_refused *refused = arena_alloc(arena, REFUSED * sizeof *refused);

    ret->schedules = arena_alloc(arena, (limit + 1) * sizeof *ret->schedules);
    if (page == NULL || ret->schedules == NULL || refused == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a list");
    }
    n = schedules_page(schedules_of(engine), m->cursor, page, limit + 1);
    for (uint32_t i = 0; code == BT_OK && i < n && i < limit; i++) {
        code = schedules_view(schedules_of(engine), page[i], 1, false, arena,
                              &ret->schedules[ret->schedules_n++], err);
        ret->cursor = n > limit ? schedule_number(page[i]) : 0;
    }
    ret->refused = refused;
    ret->refused_n = m->cursor == 0 ? schedules_refused(schedules_of(engine), refused, REFUSED) : 0;
    return code;
}

void on_schedule_list(struct engine *engine, struct request *rq)
{
    struct msg_schedule_list_ok ok = {.has = 0};
    struct msg_schedule_list m;
    struct arena arena = {0};
    struct bt_error err;

    if (!request_read(engine, rq, MSG_schedule_list, &m)) {
        return;
    }
    if (put_page(engine, &m, &arena, &ok, &err) == BT_OK) {
        request_answer(engine, rq, MSG_schedule_list_ok, &ok);
    } else {
        refuse(engine, rq, &err);
    }
    arena_done(&arena);
}

/* ---- orders ---- */

void on_schedule_pause(struct engine *engine, struct request *rq)
{
    struct msg_schedule_pause_ok ok = {.has = 0};
    struct msg_schedule_pause m;
    struct bt_error err;
    struct schedule *p;

    if (!request_read(engine, rq, MSG_schedule_pause, &m) || !has_room(engine, rq)) {
        return;
    }
    p = find_own(engine, rq, m.name);
    if (p != NULL && schedules_pause(schedules_of(engine), p, m.reason, &err) == BT_OK) {
        ok.name = m.name;
        ok.status = str_from(schedule_status(p));
        request_answer(engine, rq, MSG_schedule_pause_ok, &ok);
    } else if (p != NULL) {
        engine_fail(engine, &err);
    }
}

void on_schedule_resume(struct engine *engine, struct request *rq)
{
    struct msg_schedule_resume_ok ok = {.has = 0};
    struct msg_schedule_view view;
    struct msg_schedule_resume m;
    struct arena arena = {0};
    struct bt_error err;
    struct schedule *p;

    if (!request_read(engine, rq, MSG_schedule_resume, &m) || !has_room(engine, rq)) {
        return;
    }
    p = find_own(engine, rq, m.name);
    if (p != NULL && schedules_resume(schedules_of(engine), p, &err) == BT_OK) {
        ok.name = m.name;
        ok.status = str_from(schedule_status(p));
        if (schedules_view(schedules_of(engine), p, 1, false, &arena, &view, &err) == BT_OK &&
            view.next_n > 0) {
            ok.next = view.next[0];
        }
        request_answer(engine, rq, MSG_schedule_resume_ok, &ok);
    } else if (p != NULL) {
        engine_fail(engine, &err);
    }
    arena_done(&arena);
}

void on_schedule_trigger(struct engine *engine, struct request *rq)
{
    struct msg_schedule_trigger_ok ok = {.has = 0};
    struct msg_schedule_trigger m;
    char id[UUID_TEXT_LEN + 1];
    struct submission d;
    struct bt_error err;
    struct schedule *p;
    enum bt_code code;

    if (!request_read(engine, rq, MSG_schedule_trigger, &m)) {
        return;
    }
    p = find_own(engine, rq, m.name);
    if (p == NULL || !submission_may_start(engine, rq)) {
        return;
    }
    code = submission_init(&d, &err);
    if (code == BT_OK) {
        code = schedules_trigger(schedules_of(engine), p, m.client_key, &d, id, &ok.existing, &err);
    }
    if (code == BT_OK) {
        ok.name = m.name;
        ok.plan_id = str_from(id);
        ok.seq = journal_last_seq(engine_journal(engine));
        request_answer(engine, rq, MSG_schedule_trigger_ok, &ok);
    } else if (!engine_has_failed(engine)) {
        if (d.problems.errors > 0 || d.planned.n_unrouted > 0) {
            submission_refuse_new(engine, rq, &d, &err);
        } else {
            refuse_order(engine, rq, &err);
        }
    }
    submission_done(&d);
}

void on_schedule_backfill(struct engine *engine, struct request *rq)
{
    struct msg_schedule_backfill_ok ok = {.has = 0};
    struct msg_schedule_backfill m;
    struct arena arena = {0};
    struct bt_error err;
    struct schedule *p;

    if (!request_read(engine, rq, MSG_schedule_backfill, &m) || !has_room(engine, rq)) {
        return;
    }
    p = find_own(engine, rq, m.name);
    if (p != NULL && schedules_backfill(schedules_of(engine), p, &m, &ok, &arena, &err) == BT_OK) {
        ok.name = m.name;
        request_answer(engine, rq, MSG_schedule_backfill_ok, &ok);
    } else if (p != NULL) {
        refuse_order(engine, rq, &err);
    }
    arena_done(&arena);
}

void on_schedule_delete(struct engine *engine, struct request *rq)
{
    struct msg_schedule_delete_ok ok = {.has = 0};
    struct msg_schedule_delete m;
    struct bt_error err;
    struct schedule *p;

    if (!request_read(engine, rq, MSG_schedule_delete, &m)) {
        return;
    }
    p = find_own(engine, rq, m.name);
    if (p == NULL) {
        return;
    }
    ok.name = m.name;
    ok.open_plans = schedule_open_plans(p);
    if (schedules_delete(schedules_of(engine), p, &err) == BT_OK) {
        request_answer(engine, rq, MSG_schedule_delete_ok, &ok);
    } else {
        refuse_order(engine, rq, &err);
    }
}
