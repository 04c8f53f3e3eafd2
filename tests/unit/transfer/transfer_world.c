#include "tests/unit/transfer/transfer_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/wire/doc.h"

struct world *world_now;
uint32_t asked, fail_at;
enum bt_code fail_with;
uint32_t written, fail_write_at;

enum { TEXT_MOST = 32 * 1024 * 1024, SLICES_MOST = 2000 };

void open_journal(struct world *w)
{
    const struct journal_options opt = {.durability = DURABILITY_PROCESS};
    struct bt_error err;

    (void)snprintf(w->dir, sizeof w->dir, "/tmp/baton-export-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    assert_ok(journal_open_sqlite(w->dir, &opt, &w->j, &err), err);
    buf_init(&w->text, TEXT_MOST);
    world_now = w;
    asked = fail_at = written = fail_write_at = 0;
    fail_with = BT_NOMEM;
}

void close_journal(struct world *w)
{
    if (w->real != NULL) {
        w->j->ops = w->real;
    }
    journal_close(w->j);
    fixture_remove_tree(w->dir);
    buf_done(&w->text);
    arena_done(&w->arena);
}

int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    open_journal(w);
    *state = w;
    return 0;
}

int tear_down(void **state)
{
    close_journal(*state);
    free(*state);
    return 0;
}

/* ---- a journal that fails ---- */

static bool fails(struct bt_error *err)
{
    ++asked;
    if (fail_at == 0 || asked != fail_at) {
        return false;
    }
    (void)err_set(err, fail_with, "it cannot be read");
    return true;
}

#define READ(name, args, names)                                                                    \
    static enum bt_code name##_or_fail args                                                        \
    {                                                                                              \
        return fails(err) ? fail_with : world_now->real->name names;                               \
    }

READ(plan_by_id,
     (struct journal * j, struct uuid id, struct journal_plan *ret, struct bt_error *err),
     (j, id, ret, err))
READ(plans_ended,
     (struct journal * j, msec after, uint64_t after_ix, uint32_t limit, journal_plan_fn fn,
      void *self, struct bt_error *err),
     (j, after, after_ix, limit, fn, self, err))
READ(plan_blobs,
     (struct journal * j, uint64_t ix, uint64_t after, uint64_t *ret, uint32_t max, uint32_t *ret_n,
      struct bt_error *err),
     (j, ix, after, ret, max, ret_n, err))
READ(blob_get, (struct journal * j, uint64_t id, struct buf *out, struct bt_error *err),
     (j, id, out, err))
READ(replay,
     (struct journal * j, uint64_t plan_ix, struct journal_place *place, journal_row_fn fn,
      void *self, struct bt_error *err),
     (j, plan_ix, place, fn, self, err))
READ(session,
     (struct journal * j, struct str id, struct journal_session *ret, struct bt_error *err),
     (j, id, ret, err))
READ(sessions_idle,
     (struct journal * j, msec before, uint32_t limit, journal_session_fn fn, void *self,
      struct bt_error *err),
     (j, before, limit, fn, self, err))
READ(messages,
     (struct journal * j, struct str session, uint64_t last, journal_message_fn fn, void *self,
      struct bt_error *err),
     (j, session, last, fn, self, err))
READ(turn, (struct journal * j, struct uuid id, struct journal_turn *ret, struct bt_error *err),
     (j, id, ret, err))
READ(schedules,
     (struct journal * j, uint64_t after, journal_schedule_fn fn, void *self, struct bt_error *err),
     (j, after, fn, self, err))
READ(schedule_by_name,
     (struct journal * j, struct str name, struct journal_schedule *ret, struct bt_error *err),
     (j, name, ret, err))

static bool write_fails(struct bt_error *err)
{
    ++written;
    if (fail_write_at == 0 || written != fail_write_at) {
        return false;
    }
    (void)err_set(err, BT_IO, "it cannot be written");
    return true;
}

#define WRITE(name, args, names)                                                                   \
    static enum bt_code name##_or_fail args                                                        \
    {                                                                                              \
        return write_fails(err) ? BT_IO : world_now->real->name names;                             \
    }

WRITE(plan_add,
      (struct journal * j, const struct journal_plan *p, uint64_t *ret_ix, struct bt_error *err),
      (j, p, ret_ix, err))
WRITE(plan_state,
      (struct journal * j, uint64_t ix, struct str status, msec ended, struct str note,
       struct bt_error *err),
      (j, ix, status, ended, note, err))
WRITE(plan_delete,
      (struct journal * j, uint64_t ix, struct str why, msec wall, struct bt_error *err),
      (j, ix, why, wall, err))
WRITE(gone_forget, (struct journal * j, struct uuid id, struct bt_error *err), (j, id, err))
WRITE(blob_add,
      (struct journal * j, const void *bytes, size_t len, uint64_t *ret_id, struct bt_error *err),
      (j, bytes, len, ret_id, err))
WRITE(append,
      (struct journal * j, uint64_t pos, const struct journal_row *row, struct bt_error *err),
      (j, pos, row, err))
WRITE(session_put, (struct journal * j, const struct journal_session *s, struct bt_error *err),
      (j, s, err))
WRITE(message_add,
      (struct journal * j, struct str session, const struct journal_message *m,
       struct bt_error *err),
      (j, session, m, err))
WRITE(turn_put, (struct journal * j, const struct journal_turn *t, struct bt_error *err),
      (j, t, err))
WRITE(schedule_put,
      (struct journal * j, const struct journal_schedule *p, uint64_t *ret_ix,
       struct bt_error *err),
      (j, p, ret_ix, err))

/* From now on what is read of the journal and written to it is counted. */
void watch(struct world *w)
{
    w->real = w->j->ops;
    w->ops = *w->real;
    w->ops.plan_by_id = plan_by_id_or_fail;
    w->ops.plans_ended = plans_ended_or_fail;
    w->ops.plan_blobs = plan_blobs_or_fail;
    w->ops.blob_get = blob_get_or_fail;
    w->ops.replay = replay_or_fail;
    w->ops.session = session_or_fail;
    w->ops.sessions_idle = sessions_idle_or_fail;
    w->ops.messages = messages_or_fail;
    w->ops.turn = turn_or_fail;
    w->ops.schedules = schedules_or_fail;
    w->ops.schedule_by_name = schedule_by_name_or_fail;
    w->ops.plan_add = plan_add_or_fail;
    w->ops.plan_state = plan_state_or_fail;
    w->ops.plan_delete = plan_delete_or_fail;
    w->ops.gone_forget = gone_forget_or_fail;
    w->ops.blob_add = blob_add_or_fail;
    w->ops.append = append_or_fail;
    w->ops.session_put = session_put_or_fail;
    w->ops.message_add = message_add_or_fail;
    w->ops.turn_put = turn_put_or_fail;
    w->ops.schedule_put = schedule_put_or_fail;
    w->j->ops = &w->ops;
}

/* ---- what is in it ---- */

struct str quoted(struct world *w, const char *json)
{
    struct str text = arena_str(&w->arena, str_from(json));

    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\'') {
            ((char *)(uintptr_t)text.ptr)[i] = '"';
        }
    }
    return text;
}

/* JSON ("'" for '"') as a document. */
struct str doc(struct world *w, const char *json)
{
    const struct str text = quoted(w, json);
    struct buf out;
    struct bt_error err;
    struct str ret;

    buf_init(&out, json_doc_capacity(text.len));
    assert_ok(json_to_doc(text, NULL, &out, &err), err);
    ret = arena_str(&w->arena, buf_str(&out));
    buf_done(&out);
    return ret;
}

struct uuid id_of(const char *end)
{
    char text[UUID_TEXT_LEN + 1];
    struct uuid id;

    (void)snprintf(text, sizeof text, ID("%s"), end);
    assert_true(uuid_parse(str_from(text), &id));
    return id;
}

void keep(struct world *w)
{
    struct bt_error err;

    assert_ok(journal_commit(w->j, &err), err);
}

/* A plan that ended then; the document may be of any size. */
uint64_t put_plan(struct world *w, const char *end, struct str document, msec created, msec ended,
                  const char *job)
{
    const struct journal_plan p = {.plan_id = id_of(end),
                                   .body_hash = 0xabc,
                                   .doc = document.ptr,
                                   .doc_len = document.len,
                                   .created_wall = created,
                                   .status = STR_LIT("completed"),
                                   .job = str_from(job)};
    struct bt_error err;
    uint64_t ix;

    assert_ok(journal_plan_add(w->j, &p, &ix, &err), err);
    if (ended > 0) {
        assert_ok(journal_plan_state(w->j, ix, p.status, ended, STR_LIT(""), &err), err);
    }
    return ix;
}

uint64_t put_blob(struct world *w, const char *bytes, size_t len)
{
    struct bt_error err;
    uint64_t id;

    assert_ok(journal_blob_add(w->j, bytes, len, &id, &err), err);
    return id;
}

/* A row with these members beside `seq`; plan_seq 0: an internal one. */
void put_row(struct world *w, uint64_t ix, uint64_t plan_seq, const char *type, const char *members,
             const uint64_t *blobs, uint32_t n)
{
    const uint64_t seq = journal_next_seq(w->j);
    char text[512];
    struct str body;
    struct bt_error err;

    if (plan_seq > 0) {
        (void)snprintf(text, sizeof text, "{'seq':%llu,%s}", (unsigned long long)seq, members);
    } else {
        (void)snprintf(text, sizeof text, "{%s}", members);
    }
    body = doc(w, text);
    const struct journal_row row = {.seq = plan_seq > 0 ? seq : 0,
                                    .is_public = plan_seq > 0,
                                    .plan_ix = ix,
                                    .plan_seq = plan_seq,
                                    .type = str_from(type),
                                    .topic = STR_LIT("a/topic"),
                                    .wall = 5,
                                    .body = body.ptr,
                                    .body_len = body.len,
                                    .blobs = blobs,
                                    .blobs_n = n};
    assert_ok(journal_append(w->j, &row, &err), err);
}

void put_event(struct world *w, uint64_t ix, uint64_t n, const char *id)
{
    char members[200];

    (void)snprintf(members, sizeof members,
                   "'type':'plan_started','planId':'" ID("%s") "','planSeq':%llu", id,
                   (unsigned long long)n);
    put_row(w, ix, n, "plan_started", members, NULL, 0);
}

void put_session(struct world *w, const char *id, msec updated, uint64_t messages)
{
    const struct journal_session s = {
        .session_id = str_from(id), .updated_wall = updated, .messages = messages};
    struct bt_error err;

    assert_ok(journal_session_put(w->j, &s, &err), err);
}

void put_message(struct world *w, const char *session, const char *text)
{
    const struct journal_message m = {
        .role = STR_LIT("assistant"), .text = str_from(text), .wall = 1};
    struct bt_error err;
    uint64_t n;

    assert_ok(journal_message_add(w->j, str_from(session), &m, &n, &err), err);
}

void put_schedule(struct world *w, const char *name, struct str document)
{
    const struct journal_schedule p = {.name = str_from(name),
                                       .owner = STR_LIT("ann"),
                                       .body_hash = 77,
                                       .created_wall = 11,
                                       .rule = doc(w, "{'cron':'@daily'}"),
                                       .doc = document};
    struct bt_error err;
    uint64_t ix;

    assert_ok(journal_schedule_put(w->j, &p, &ix, &err), err);
}

/* A document of about so many bytes. */
struct str large(struct world *w, size_t bytes)
{
    char *text = arena_alloc(&w->arena, bytes + 20);

    assert_non_null(text);
    (void)snprintf(text, 20, "{'x':'");
    memset(text + 6, 'y', bytes);
    memcpy(text + 6 + bytes, "'}", 3);
    return doc(w, text);
}

/* ---- out and in ---- */

bool is_open(void *self, struct uuid id)
{
    const struct world *w = self;

    return w->open[0] != 0 && uuid_eq(id, id_of(w->open));
}

/* All slices; what the last one came to. */
enum bt_code export_want(struct world *w, const struct transfer_want *want, struct bt_error *err)
{
    const struct transfer_hooks hooks = {w, is_open};
    char cursor[TRANSFER_CURSOR_MAX] = "";
    struct buf slice;
    enum bt_code code;

    buf_clear(&w->text);
    buf_init(&slice, TRANSFER_SLICE_MAX);
    w->slices = 0;
    do {
        buf_clear(&slice);
        code = transfer_export(w->j, &hooks, want, cursor, &slice, err);
        assert_true(w->slices++ < SLICES_MOST);
        assert_true(slice.len == 0 || slice.at[slice.len - 1] == '\n');
        buf_add(&w->text, slice.at, slice.len);
    } while (code == BT_OK && cursor[0] != 0);
    buf_done(&slice);
    return code;
}

const char *exported(struct world *w, const struct transfer_want *want)
{
    struct bt_error err;

    assert_ok(export_want(w, want, &err), err);
    return buf_cstr(&w->text);
}

const char *all(struct world *w)
{
    const struct transfer_want want = {.one = false};

    return exported(w, &want);
}

void is_exported(struct world *w, const struct transfer_want *want, const char *lines)
{
    assert_string_equal(exported(w, want), quoted(w, lines).ptr);
}

uint32_t count(const char *text, const char *word)
{
    uint32_t n = 0;

    for (const char *at = text; (at = strstr(at, word)) != NULL; at++) {
        n++;
    }
    return n;
}

/* Each plan, session and schedule by itself, in parts of so many lines. */
void import(struct world *w, const char *lines, uint32_t part)
{
    struct transfer *t;
    struct bt_error err;
    uint64_t before = 0;

    assert_ok(transfer_new(&t, &err), err);
    while (*lines != 0) {
        enum transfer_result result;
        const char *end = lines;
        bool failed = true;
        uint32_t n = 0;
        bool last = false;
        for (; n < part && !last; n++) {
            last = strncmp(end, "{\"kind\":\"end\"", 13) == 0;
            end = strchr(end, '\n') + 1;
        }
        const struct transfer_lines some = {
            .text = {lines, (size_t)(end - lines)}, .before = before, .now = 1, .wall = 1000};
        assert_ok(transfer_import(t, w->j, &some, &result, &failed, &err), err);
        assert_false(failed);
        assert_int_equal(result, last ? TRANSFER_DONE : TRANSFER_MORE);
        before = last ? 0 : before + n;
        lines = end;
        keep(w);
    }
    transfer_free(t);
}
