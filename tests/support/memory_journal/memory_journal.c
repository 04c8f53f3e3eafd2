/* The memory journal: rows, blobs, commit. */
#include "protocol/base/assert.h"
#include "protocol/base/buf.h"
#include "tests/support/memory_journal/memory_internal.h"

static enum bt_code memory_append(struct journal *j, uint64_t pos, const struct journal_row *row,
                                  struct bt_error *err)
{
    struct memory *m = memory_of(j);
    struct mem_row *to;

    if (!memory_grow(&m->rows, m->rows_n, &m->rows_cap, sizeof *m->rows)) {
        return memory_full(err);
    }
    to = &m->rows[m->rows_n];
    to->pos = pos;
    to->row = *row;
    to->row.seq = pos_seq(pos);
    to->row.type.ptr = memory_copy(m, row->type.ptr, row->type.len);
    to->row.topic.ptr = memory_copy(m, row->topic.ptr, row->topic.len);
    to->row.body = memory_copy(m, row->body, row->body_len);
    to->gone = MEM_HERE;
    to->row.blobs = NULL;
    if (row->blobs_n > 0) {
        to->row.blobs = memory_copy(m, row->blobs, row->blobs_n * sizeof *row->blobs);
        if (to->row.blobs == NULL) {
            return memory_full(err);
        }
    }
    if (to->row.type.ptr == NULL || to->row.topic.ptr == NULL || to->row.body == NULL) {
        return memory_full(err);
    }
    m->rows_n++;
    return BT_OK;
}

static enum bt_code memory_blob_add(struct journal *j, const void *bytes, size_t len,
                                    uint64_t *ret_id, struct bt_error *err)
{
    struct memory *m = memory_of(j);
    void *copy = malloc(len + 1);

    if (copy == NULL || !memory_grow(&m->blobs, m->blobs_n, &m->blobs_cap, sizeof *m->blobs)) {
        free(copy);
        return memory_full(err);
    }
    if (len > 0) {
        memcpy(copy, bytes, len);
    }
    m->blobs[m->blobs_n++] = (struct mem_blob){copy, len, MEM_HERE};
    *ret_id = m->blobs_n;
    return BT_OK;
}

static enum bt_code memory_blob_get(struct journal *j, uint64_t id, struct buf *out,
                                    struct bt_error *err)
{
    struct memory *m = memory_of(j);

    if (id == 0 || id > m->blobs_n || m->blobs[id - 1].gone != MEM_HERE) {
        return err_set(err, BT_NOT_FOUND, "no blob %llu", (unsigned long long)id);
    }
    buf_add(out, m->blobs[id - 1].bytes, m->blobs[id - 1].len);
    return buf_check(out, err);
}

/* Commits the open batch. */
static void batch_commit(struct memory *m)
{
    memory_plans_commit(m);
    memory_delete_commit(m);
    m->conversation.sessions_committed = m->conversation.sessions_n;
    m->conversation.messages_committed = m->conversation.messages_n;
    m->conversation.turns_committed = m->conversation.turns_n;
    m->schedules_committed = m->schedules_n;
    m->starts_committed = m->starts_n;
    m->agents_committed = m->agents_n;
    m->rows_committed = m->rows_n;
    m->blobs_committed = m->blobs_n;
    m->base.committed_pos = m->base.pos;
}

static void batch_rollback(struct memory *m)
{
    memory_delete_rollback(m);
    memory_plans_rollback(m);
    m->conversation.sessions_n = m->conversation.sessions_committed;
    m->conversation.messages_n = m->conversation.messages_committed;
    m->conversation.turns_n = m->conversation.turns_committed;
    for (; m->blobs_n > m->blobs_committed; m->blobs_n--) {
        free(m->blobs[m->blobs_n - 1].bytes);
    }
    m->rows_n = m->rows_committed;
    m->schedules_n = m->schedules_committed;
    m->starts_n = m->starts_committed;
    m->agents_n = m->agents_committed;
    m->base.pos = m->base.committed_pos;
    m->base.dirty = false;
}

static enum bt_code memory_commit(struct journal *j, struct bt_error *err)
{
    struct memory *m = memory_of(j);

    for (; m->away > 0; m->away--) {
        if (j->waits != NULL && !j->waits(j->waits_self)) {
            m->away = 0;
            (void)err_set(err, BT_IO, "asked to stop while the server was away");
            journal_die(j, err);
            return BT_IO;
        }
    }
    if (m->fail_at > 0 && --m->fail_at == 0) {
        if (m->fail_stored) {
            batch_commit(m);
        }
        (void)err_set(err, BT_IO, "commit failed on request");
        journal_die(j, err);
        return BT_IO;
    }
    batch_commit(m);
    return BT_OK;
}

static size_t first_row(const struct memory *m, uint64_t pos)
{
    size_t lo = 0;
    size_t hi = m->rows_committed;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (m->rows[mid].pos < pos) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static enum bt_code memory_events(struct journal *j, uint64_t from_seq, uint64_t plan_ix,
                                  uint32_t limit, journal_row_fn fn, void *self,
                                  struct bt_error *err)
{
    struct memory *m = memory_of(j);
    uint32_t given = 0;

    (void)err;
    for (size_t i = first_row(m, from_seq << POS_K_BITS); i < m->rows_committed && given < limit;
         i++) {
        struct journal_row row = m->rows[i].row; /* a copy: fn may append, which moves the array */
        if (m->rows[i].gone != MEM_HERE || !row.is_public ||
            (plan_ix != 0 && row.plan_ix != plan_ix)) {
            continue;
        }
        given++;
        if (!fn(&row, self)) {
            break;
        }
    }
    return BT_OK;
}

static enum bt_code memory_last_row(struct journal *j, uint64_t plan_ix, bool only_public,
                                    journal_row_fn fn, void *self, struct bt_error *err)
{
    struct memory *m = memory_of(j);

    (void)err;
    for (size_t i = m->rows_committed; i > 0; i--) {
        const struct journal_row row = m->rows[i - 1].row;
        if (m->rows[i - 1].gone == MEM_HERE && (row.is_public || !only_public) &&
            row.plan_ix == plan_ix) {
            (void)fn(&row, self);
            break;
        }
    }
    return BT_OK;
}

static enum bt_code memory_replay(struct journal *j, uint64_t plan_ix, struct journal_place *place,
                                  journal_row_fn fn, void *self, struct bt_error *err)
{
    struct memory *m = memory_of(j);
    bool go_on = true;

    (void)err;
    for (size_t i = first_row(m, place->pos + 1); go_on && i < m->rows_committed; i++) {
        struct journal_row row = m->rows[i].row;
        if (m->rows[i].gone == MEM_HERE && row.plan_ix == plan_ix) {
            row.pos = m->rows[i].pos;
            go_on = fn(&row, self);
            *place = (struct journal_place){
                .pos = row.pos, .plan_seq = row.is_public ? row.plan_seq : place->plan_seq};
        }
    }
    return BT_OK;
}

static void memory_close(struct journal *j)
{
    struct memory *m = memory_of(j);

    for (size_t i = 0; i < m->blobs_n; i++) {
        free(m->blobs[i].bytes);
    }
    free(m->blobs);
    free(m->plans);
    free(m->rows);
    free(m->touched);
    free(m->gone);
    free(m->schedules);
    free(m->starts);
    free(m->agents);
    memory_conversation_done(&m->conversation);
    memory_take_back(&m->plan);
    memory_take_back(&m->session);
    memory_take_back(&m->turn);
    memory_take_back(&m->schedule);
    map_done(&m->by_id);
    map_done(&m->by_key);
    arena_done(&m->arena);
    free(m);
}

static const struct journal_ops MEMORY_OPS = {
    .close = memory_close,
    .plan_add = memory_plan_add,
    .plan_status = memory_plan_status,
    .plan_by_id = memory_plan_by_id,
    .plan_head = memory_plan_head,
    .plan_by_key = memory_plan_by_key,
    .plans = memory_plans,
    .plans_between = memory_plans_between,
    .jobs = memory_jobs,
    .plan_owner = memory_plan_owner,
    .blob_owned = memory_blob_owned,
    .plans_open = memory_plans_open,
    .quarantine = memory_quarantine,
    .session = memory_session,
    .session_put = memory_session_put,
    .sessions = memory_sessions,
    .message_add = memory_message_add,
    .messages = memory_messages,
    .turn_put = memory_turn_put,
    .turn = memory_turn,
    .turn_key = memory_turn_key,
    .turn_by_key = memory_turn_by_key,
    .turn_of_plan = memory_turn_of_plan,
    .turns_open = memory_turns_open,
    .schedule_put = memory_schedule_put,
    .schedule_state = memory_schedule_state,
    .schedule_delete = memory_schedule_delete,
    .schedule_by_name = memory_schedule_by_name,
    .schedules = memory_schedules,
    .start_put = memory_start_put,
    .starts = memory_starts,
    .starts_drop = memory_starts_drop,
    .agent_put = memory_agent_put,
    .agent_drop = memory_agent_drop,
    .agents_drop = memory_agents_drop,
    .agents = memory_agents,
    .append = memory_append,
    .blob_add = memory_blob_add,
    .blob_get = memory_blob_get,
    .commit = memory_commit,
    .events = memory_events,
    .last_row = memory_last_row,
    .replay = memory_replay,
    .plan_delete = memory_plan_delete,
    .gone_by_id = memory_gone_by_id,
    .plans_ended = memory_plans_ended,
    .session_delete = memory_session_delete,
    .sessions_idle = memory_sessions_idle,
    .gone_expire = memory_gone_expire,
    .rows_delete = memory_rows_delete,
    .sweep = memory_sweep,
    .blobs_unused = memory_blobs_unused,
    .last_blob = memory_last_blob,
    .size = memory_size,
};

enum bt_code memory_journal_open(struct journal **ret, struct bt_error *err)
{
    struct memory *m = calloc(1, sizeof *m);

    *ret = NULL;
    if (m == NULL) {
        return memory_full(err);
    }
    m->base.ops = &MEMORY_OPS;
    m->base.boot = 1;
    *ret = &m->base;
    return BT_OK;
}

void memory_journal_fail(struct journal *j, uint32_t fail_at, bool kept)
{
    ASSERT(j->ops == &MEMORY_OPS);
    memory_of(j)->fail_at = fail_at;
    memory_of(j)->fail_stored = kept;
}

void memory_journal_away(struct journal *j, uint32_t calls)
{
    memory_of(j)->away = calls;
}

void memory_journal_restart(struct journal *j)
{
    ASSERT(j->ops == &MEMORY_OPS);
    batch_rollback(memory_of(j));
    j->dead = false;
    j->boot++;
    recent_clear(&j->recent); /* of the process that has ended */
}
