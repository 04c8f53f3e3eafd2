/* Deletion on request: plans, many of them by age, and sessions. Copies of the journal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "supervisor/api/api.h"
#include "supervisor/retention/retention.h"

/* Ended plans that one plan.prune looks at; turns that one session.delete removes at a time. */
enum { PRUNE_LOOKS = 2000, PRUNE_MAX = 100, TURNS_SLICE = 200, TURNS_SLICES = 50 };

/* After a failed write; returns false. */
static bool refuse_write(struct engine *engine, struct request *rq, const struct bt_error *err)
{
    if (err->code == BT_CONFLICT || err->code == BT_BUSY || err->code == BT_NOT_FOUND) {
        request_refuse(engine, rq, err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else {
        engine_fail(engine, err); /* the batch may be lost with what others wrote into it */
    }
    return false;
}

/* Some of the plans inside it went: the next request goes on. */
static void refuse_unfinished(struct engine *engine, struct request *rq, const struct bt_error *err)
{
    struct buf details;

    buf_init(&details, 64);
    doc_put_map(&details, 1);
    doc_put_cstr(&details, "unfinished");
    doc_put_bool(&details, true);
    request_refuse(engine, rq, err, CLASS_NONE, 0, doc_from_buf(&details));
    buf_done(&details);
}

void on_plan_delete(struct engine *engine, struct request *rq)
{
    struct retention *retention = engine_hooks(engine)->retention;
    struct msg_plan_delete_ok ok = {0};
    struct msg_plan_delete m;
    struct journal_plan row;
    struct bt_error err;
    char id[UUID_TEXT_LEN + 1];
    uint32_t jobs = 0;
    enum bt_code code;

    if (!request_read(engine, rq, MSG_plan_delete, &m)) {
        return;
    }
    if (request_plan_row(engine, m.plan_id, &row, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
        return;
    }
    if (row.job.len > 0) {
        request_refuse_text(engine, rq, BT_INVALID,
                            "planId: this is a question of a plan to an agent; it goes with its "
                            "plan");
        return;
    }
    uuid_format(row.plan_id, id);
    code = retention_delete(retention, &row, m.reason.len > 0 ? m.reason : STR_LIT("on request"),
                            engine_wall(engine), &jobs, &err);
    if (code == BT_BUSY && retention_is_under_way(retention, row.ix)) {
        refuse_unfinished(engine, rq, &err);
        return;
    }
    if (code != BT_OK) {
        (void)refuse_write(engine, rq, &err);
        return;
    }
    ok.plan_id = str_from(id);
    ok.jobs = jobs;
    request_answer(engine, rq, MSG_plan_delete_ok, &ok);
}

/* ---- plan.prune ---- */

struct prune {
    const struct msg_plan_prune *m;
    struct arena *arena;
    msec wall;
    struct journal_plan found[PRUNE_MAX]; /* strings in the arena */
    uint32_t n, looks;
    msec at_wall;
    uint64_t at_ix;
    bool more;
};

static bool take(const struct journal_plan *p, void *self)
{
    struct prune *q = self;

    if (msec_add(p->ended_wall, q->m->older_than_ms) > q->wall) {
        return false; /* all that follow are younger */
    }
    if (q->n == PRUNE_MAX || q->looks++ == PRUNE_LOOKS) {
        q->more = true;
        return false;
    }
    q->at_wall = p->ended_wall;
    q->at_ix = p->ix;
    if (p->job.len == 0 && (q->m->status.len == 0 || str_eq(p->status, q->m->status))) {
        struct journal_plan *to = &q->found[q->n++];
        *to = *p;
        to->session_id = arena_str(q->arena, p->session_id);
        to->goal = arena_str(q->arena, p->goal);
        to->status = arena_str(q->arena, p->status);
        to->job = (struct str){"", 0};
    }
    return true;
}

static void show(struct prune *q, uint32_t i, struct msg_plan_view *v)
{
    const struct journal_plan *p = &q->found[i];
    char text[UUID_TEXT_LEN + 1];
    char iso[CLOCK_ISO_LEN + 1];

    uuid_format(p->plan_id, text);
    v->plan_id = arena_str(q->arena, str_from(text));
    v->session_id = p->session_id;
    v->query = p->goal;
    v->status = p->status;
    clock_iso(p->created_wall, iso);
    v->created_at = arena_str(q->arena, str_from(iso));
    clock_iso(p->ended_wall, iso);
    v->completed_at = arena_str(q->arena, str_from(iso));
}

/* "" or "WALL.NUMBER" of the last plan that was looked at. */
static bool read_cursor(struct str text, struct prune *q)
{
    unsigned long long wall = 0;
    unsigned long long ix = 0;
    char copy[65];
    int used = 0;

    if (text.len == 0) {
        return true;
    }
    (void)snprintf(copy, sizeof copy, "%.*s", STR_ARG(text));
    if (text.len >= sizeof copy || sscanf(copy, "%20llu.%20llu%n", &wall, &ix, &used) != 2 ||
        (size_t)used != text.len || wall > INT64_MAX || ix > INT64_MAX) {
        return false;
    }
    q->at_wall = wall;
    q->at_ix = ix;
    return true;
}

/* Those that cannot be deleted now (their last attempts are not over) are left out. One with more
 * plans inside it than a call deletes is the first of the next page. */
static bool delete_found(struct engine *engine, struct request *rq, struct prune *q)
{
    struct retention *retention = engine_hooks(engine)->retention;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < q->n; i++) {
        struct bt_error err;
        uint32_t jobs;
        const enum bt_code code =
            retention_delete(retention, &q->found[i], STR_LIT("pruned"), q->wall, &jobs, &err);
        if (code == BT_BUSY && retention_is_under_way(retention, q->found[i].ix)) {
            q->at_wall = q->found[i].ended_wall;
            q->at_ix = q->found[i].ix - 1;
            q->more = true;
            break;
        }
        if (code == BT_OK) {
            q->found[kept++] = q->found[i];
        } else if (code != BT_BUSY && code != BT_NOT_FOUND && code != BT_CONFLICT) {
            return refuse_write(engine, rq, &err);
        }
    }
    q->n = kept;
    return true;
}

static void answer_prune(struct engine *engine, struct request *rq, struct prune *q)
{
    struct msg_plan_view *views = arena_alloc(q->arena, PRUNE_MAX * sizeof *views);
    struct msg_plan_prune_ok ok = {.plans = views, .plans_n = q->n};
    char cursor[48];

    if (views == NULL) {
        request_refuse_text(engine, rq, BT_NOMEM, "out of memory for a list");
        return;
    }
    for (uint32_t i = 0; i < q->n; i++) {
        views[i] = (struct msg_plan_view){.has = 0};
        show(q, i, &views[i]);
    }
    (void)snprintf(cursor, sizeof cursor, "%llu.%llu", (unsigned long long)q->at_wall,
                   (unsigned long long)q->at_ix);
    ok.cursor = q->more ? str_from(cursor) : (struct str){"", 0};
    request_answer(engine, rq, MSG_plan_prune_ok, &ok);
}

void on_plan_prune(struct engine *engine, struct request *rq)
{
    struct arena arena = {0};
    struct msg_plan_prune m;
    struct prune *q = NULL;
    struct bt_error err;

    if (!request_read(engine, rq, MSG_plan_prune, &m)) {
        return;
    }
    if (m.status.len > 0 && !str_is(m.status, "completed") && !str_is(m.status, "planned") &&
        !str_is(m.status, "failed") && !str_is(m.status, "cancelled") &&
        !str_is(m.status, "quarantined")) {
        request_refuse_text(engine, rq, BT_INVALID,
                            "status: \"%.*s\" is no status of an ended plan; expected completed, "
                            "failed, cancelled, planned or quarantined",
                            STR_ARG(m.status));
        return;
    }
    q = calloc(1, sizeof *q);
    if (q == NULL) {
        request_refuse_text(engine, rq, BT_NOMEM, "out of memory for a list");
        return;
    }
    q->m = &m;
    q->arena = &arena;
    q->wall = engine_wall(engine);
    if (!read_cursor(m.cursor, q)) {
        request_refuse_text(engine, rq, BT_INVALID,
                            "cursor: expected the cursor of an earlier plan.prune.ok, got \"%.*s\"",
                            STR_ARG(m.cursor));
    } else if (journal_plans_ended(engine_journal(engine), q->at_wall, q->at_ix, UINT32_MAX, take,
                                   q, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else if (m.dry_run || delete_found(engine, rq, q)) {
        answer_prune(engine, rq, q);
    }
    arena_done(&arena);
    free(q);
}

void on_session_delete(struct engine *engine, struct request *rq)
{
    struct msg_session_delete_ok ok = {0};
    struct msg_session_delete m;
    struct bt_error err;
    bool more = true;
    enum bt_code code = BT_OK;

    if (!request_read(engine, rq, MSG_session_delete, &m)) {
        return;
    }
    for (int i = 0; i < TURNS_SLICES && more && code == BT_OK; i++) {
        code =
            journal_session_delete(engine_journal(engine), m.session_id, TURNS_SLICE, &more, &err);
    }
    if (code != BT_OK) {
        (void)refuse_write(engine, rq, &err);
        return;
    }
    retention_wake(engine_hooks(engine)->retention);
    if (more) {
        request_refuse_text(engine, rq, BT_BUSY,
                            "the session is very long: a part of it is deleted, send it again");
        return;
    }
    ok.session_id = m.session_id;
    request_answer(engine, rq, MSG_session_delete_ok, &ok);
}

/* ---- journal.backup ---- */

static enum bt_code begin_copy(struct engine *engine, struct str file, struct bt_error *err)
{
    char path[RETENTION_PATH_MAX];
    const char *name;

    if (file.ptr[0] != '/' || memchr(file.ptr, 0, file.len) != NULL || file.len >= sizeof path) {
        return err_set(err, BT_INVALID, "file: expected an absolute path");
    }
    memcpy(path, file.ptr, file.len);
    path[file.len] = 0;
    name = strrchr(path, '/') + 1;
    if (strncmp(name, "journal.db", strlen("journal.db")) == 0) {
        return err_set(err, BT_INVALID, "file: names that begin with journal.db are the daemon's");
    }
    return retention_copy_begin(engine_hooks(engine)->retention, path, err);
}

void on_journal_backup(struct engine *engine, struct request *rq)
{
    const struct retention_copy *copy = retention_copy_state(engine_hooks(engine)->retention);
    struct msg_journal_backup_ok ok = {0};
    struct msg_journal_backup m;
    struct bt_error err;

    if (!request_read(engine, rq, MSG_journal_backup, &m)) {
        return;
    }
    if (m.file.len > 0 && begin_copy(engine, m.file, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
        return;
    }
    ok.file = str_from(copy->path);
    ok.running = copy->running;
    ok.pages = copy->pages;
    ok.left = copy->left;
    ok.failure = str_from(copy->failed ? copy->why.msg : "");
    request_answer(engine, rq, MSG_journal_backup_ok, &ok);
}
