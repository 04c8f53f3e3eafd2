/* What a journal holds, as lines: each member of each line, in slices of any size, and the way back
 * into another journal; what an export asks for, and what goes wrong on its way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/wire/doc.h"
#include "supervisor/journal/port.h"
#include "supervisor/transfer/transfer_internal.h"
#include "tests/support/cmocka.h"
#include "tests/unit/journal/journal_fixture.h"

enum { TEXT_MOST = 32 * 1024 * 1024, SLICES_MOST = 2000 };

/* The ids of plans and turns end with two letters. */
#define ID(n) "0190F3C2-7A1B-7C3D-9E4F-0123456789" n

struct world {
    char dir[64];
    struct journal *j;
    struct arena arena;
    struct buf text; /* the last export */
    uint32_t slices;
    char open[3]; /* the plan that is still in memory; "" = none */
    const struct journal_ops *real;
    struct journal_ops ops;
};

static struct world *now; /* whose journal fails */
static uint32_t asked, fail_at;
static enum bt_code fail_with;

static void open_journal(struct world *w)
{
    const struct journal_options opt = {.durability = DURABILITY_PROCESS};
    struct bt_error err;

    (void)snprintf(w->dir, sizeof w->dir, "/tmp/baton-export-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    assert_ok(journal_open_sqlite(w->dir, &opt, &w->j, &err), err);
    buf_init(&w->text, TEXT_MOST);
    now = w;
    asked = fail_at = 0;
    fail_with = BT_NOMEM;
}

static void close_journal(struct world *w)
{
    if (w->real != NULL) {
        w->j->ops = w->real;
    }
    journal_close(w->j);
    fixture_remove_tree(w->dir);
    buf_done(&w->text);
    arena_done(&w->arena);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    open_journal(w);
    *state = w;
    return 0;
}

static int tear_down(void **state)
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
        return fails(err) ? fail_with : now->real->name names;                                     \
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

/* From now on each reading of the journal is counted. */
static void watch(struct world *w)
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
    w->j->ops = &w->ops;
}

/* ---- what is in it ---- */

static struct str quoted(struct world *w, const char *json)
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
static struct str doc(struct world *w, const char *json)
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

static struct uuid id_of(const char *end)
{
    char text[UUID_TEXT_LEN + 1];
    struct uuid id;

    (void)snprintf(text, sizeof text, ID("%s"), end);
    assert_true(uuid_parse(str_from(text), &id));
    return id;
}

static void keep(struct world *w)
{
    struct bt_error err;

    assert_ok(journal_commit(w->j, &err), err);
}

/* A plan that ended then; the document may be of any size. */
static uint64_t put_plan(struct world *w, const char *end, struct str document, msec created,
                         msec ended, const char *job)
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

static uint64_t put_blob(struct world *w, const char *bytes, size_t len)
{
    struct bt_error err;
    uint64_t id;

    assert_ok(journal_blob_add(w->j, bytes, len, &id, &err), err);
    return id;
}

/* A row with these members beside `seq`; plan_seq 0: an internal one. */
static void put_row(struct world *w, uint64_t ix, uint64_t plan_seq, const char *type,
                    const char *members, const uint64_t *blobs, uint32_t n)
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

#define EVENT(id, n) "'type':'plan_started','planId':'" ID(id) "','planSeq':" n

static void put_event(struct world *w, uint64_t ix, uint64_t n, const char *id)
{
    char members[200];

    (void)snprintf(members, sizeof members,
                   "'type':'plan_started','planId':'" ID("%s") "','planSeq':%llu", id,
                   (unsigned long long)n);
    put_row(w, ix, n, "plan_started", members, NULL, 0);
}

static void put_session(struct world *w, const char *id, msec updated, uint64_t messages)
{
    const struct journal_session s = {
        .session_id = str_from(id), .updated_wall = updated, .messages = messages};
    struct bt_error err;

    assert_ok(journal_session_put(w->j, &s, &err), err);
}

static void put_message(struct world *w, const char *session, const char *text)
{
    const struct journal_message m = {
        .role = STR_LIT("assistant"), .text = str_from(text), .wall = 1};
    struct bt_error err;
    uint64_t n;

    assert_ok(journal_message_add(w->j, str_from(session), &m, &n, &err), err);
}

static void put_schedule(struct world *w, const char *name, struct str document)
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
static struct str large(struct world *w, size_t bytes)
{
    char *text = arena_alloc(&w->arena, bytes + 20);

    assert_non_null(text);
    (void)snprintf(text, 20, "{'x':'");
    memset(text + 6, 'y', bytes);
    memcpy(text + 6 + bytes, "'}", 3);
    return doc(w, text);
}

/* ---- out and in ---- */

static bool is_open(void *self, struct uuid id)
{
    const struct world *w = self;

    return w->open[0] != 0 && uuid_eq(id, id_of(w->open));
}

/* All slices; what the last one came to. */
static enum bt_code export_want(struct world *w, const struct transfer_want *want,
                                struct bt_error *err)
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

static const char *exported(struct world *w, const struct transfer_want *want)
{
    struct bt_error err;

    assert_ok(export_want(w, want, &err), err);
    return buf_cstr(&w->text);
}

static const char *all(struct world *w)
{
    const struct transfer_want want = {.one = false};

    return exported(w, &want);
}

static void is_exported(struct world *w, const struct transfer_want *want, const char *lines)
{
    assert_string_equal(exported(w, want), quoted(w, lines).ptr);
}

static uint32_t count(const char *text, const char *word)
{
    uint32_t n = 0;

    for (const char *at = text; (at = strstr(at, word)) != NULL; at++) {
        n++;
    }
    return n;
}

/* Each plan, session and schedule by itself, in parts of so many lines. */
static void import(struct world *w, const char *lines, uint32_t part)
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
        const struct str some = {lines, (size_t)(end - lines)};
        assert_ok(transfer_import(t, w->j, some, before, 1000, &result, &failed, &err), err);
        assert_false(failed);
        assert_int_equal(result, last ? TRANSFER_DONE : TRANSFER_MORE);
        before = last ? 0 : before + n;
        lines = end;
        keep(w);
    }
    transfer_free(t);
}

/* ---- each line ---- */

static void a_plan_has_a_head_its_document_its_results_its_rows_and_an_end(void **state)
{
    const struct transfer_want want = {.one = false};
    struct world *w = *state;
    const struct str document = doc(w, "{'goal':'g'}");
    const struct journal_plan p = {.plan_id = id_of("AB"),
                                   .session_id = STR_LIT("s"),
                                   .client_key = STR_LIT("k"),
                                   .body_hash = 0x123456789abcdef0 >> 4,
                                   .goal = STR_LIT("what is it"),
                                   .doc = document.ptr,
                                   .doc_len = document.len,
                                   .created_wall = 11,
                                   .status = STR_LIT("running"),
                                   .job = STR_LIT("planning"),
                                   .owner = STR_LIT("ann")};
    uint64_t blobs[2];
    struct bt_error err;
    uint64_t ix;
    char event[200];

    assert_ok(journal_plan_add(w->j, &p, &ix, &err), err);
    (void)put_blob(w, "of nobody", 9);
    blobs[0] = put_blob(w, "hello", 5);
    blobs[1] = put_blob(w, "", 0);
    (void)snprintf(event, sizeof event, EVENT("AB", "1") ",'xRef':%llu,'Ref':9,'n':%llu,'yRef':'z'",
                   (unsigned long long)blobs[0], (unsigned long long)blobs[0]);
    put_row(w, ix, 1, "plan_started", event, blobs, 1);
    (void)snprintf(event, sizeof event, "'resultRef':%llu,'xRef':%llu",
                   (unsigned long long)blobs[1], (unsigned long long)blobs[0]);
    put_row(w, ix, 0, "step_dispatched", event, blobs, 2);
    assert_ok(journal_plan_state(w->j, ix, STR_LIT("failed"), 22, STR_LIT("a note"), &err), err);
    keep(w);
    is_exported(w, &want,
                "{'kind':'plan','planId':'" ID(
                    "AB") "','sessionId':'s','clientKey':'k','bodyHash':"
                          "'0123456789abcdef','query':'what is "
                          "it','job':'planning','owner':'ann','createdMs':11,"
                          "'status':'failed','endedMs':22,'note':'a note','documentBytes':8}\n"
                          "{'kind':'document','data':'gaRnb2FsoWc='}\n"
                          "{'kind':'blob','n':1,'bytes':5,'data':'aGVsbG8='}\n"
                          "{'kind':'blob','n':2}\n"
                          "{'kind':'row','planSeq':1,'type':'plan_started','topic':'a/"
                          "topic','tsMs':5,'event':{"
                          "'type':'plan_started','planId':'" ID(
                              "AB") "','planSeq':1,'xRef':1,'Ref':9,'n':2,"
                                    "'yRef':'z'}}\n"
                                    "{'kind':'row','type':'step_dispatched','topic':'a/"
                                    "topic','tsMs':5,'event':{'resultRef':2,"
                                    "'xRef':1}}\n"
                                    "{'kind':'end','planId':'" ID("AB") "'}\n");
}

static void a_session_has_its_messages_each_with_the_turn_that_it_began(void **state)
{
    const struct transfer_want want = {.one = false};
    struct world *w = *state;
    const struct journal_session s = {.session_id = STR_LIT("s"),
                                      .created_wall = 1,
                                      .updated_wall = 2,
                                      .messages = 3,
                                      .summarized = 2,
                                      .summary = put_blob(w, "sum", 3),
                                      .agent_calls = 4,
                                      .tool_calls = 5,
                                      .owner = STR_LIT("ann")};
    const struct journal_message m[] = {
        {.role = STR_LIT("user"),
         .text = STR_LIT("hi"),
         .cut = true,
         .turn = id_of("01"),
         .plan = id_of("AB"),
         .wall = 6},
        {.role = STR_LIT("assistant"), .text = STR_LIT("ho"), .turn = id_of("01"), .wall = 7},
        {.role = STR_LIT("user"), .text = STR_LIT("and"), .turn = id_of("02"), .wall = 8}};
    const struct journal_turn t[] = {{.turn_id = id_of("01"),
                                      .session_id = STR_LIT("s"),
                                      .client_key = STR_LIT("k"),
                                      .body_hash = 9,
                                      .asked = 1,
                                      .answered = 2,
                                      .started_wall = 10,
                                      .ended_wall = 11,
                                      .plan = id_of("AB"),
                                      .action = STR_LIT("plan"),
                                      .context_blob = put_blob(w, "ctx", 3)},
                                     {.turn_id = id_of("02"),
                                      .session_id = STR_LIT("s"),
                                      .asked = 3,
                                      .started_wall = 12,
                                      .action = STR_LIT("plan")}}; /* it is open */
    struct bt_error err;
    uint64_t n;

    for (size_t i = 0; i < 3; i++) {
        assert_ok(journal_message_add(w->j, STR_LIT("s"), &m[i], &n, &err), err);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_ok(journal_turn_put(w->j, &t[i], &err), err);
    }
    assert_ok(journal_session_put(w->j, &s, &err), err);
    keep(w);
    is_exported(
        w, &want,
        "{'kind':'session','sessionId':'s','createdMs':1,'updatedMs':2,'messages':3,'summarized':2,"
        "'agentCalls':4,'owner':'ann','toolCalls':5,'summary':'c3Vt'}\n"
        "{'kind':'message','n':1,'role':'user','cut':1,'turnId':'" ID("01") "','planId':'" ID(
            "AB") "','tsMs':6,'text':'hi'}\n"
                  "{'kind':'turn','turnId':'" ID(
                      "01") "','clientKey':'k','bodyHash':9,'asked':1,'answered':2,"
                            "'startedMs':10,'endedMs':11,'planId':'" ID(
                                "AB") "','action':'plan','context':'Y3R4'}\n"
                                      "{'kind':'message','n':2,'role':'assistant','turnId':'" ID(
                                          "01") "','tsMs':7,'text':'ho'}\n"
                                                "{'kind':'message','n':3,'role':'user','turnId':"
                                                "'" ID("02") "','tsMs':8,'text':'and'}\n"
                                                             "{'kind':'end','sessionId':'s'}\n");
}

static void a_schedule_has_its_rule_its_document_and_an_end(void **state)
{
    const struct transfer_want want = {.one = false};
    struct world *w = *state;

    put_schedule(w, "n", doc(w, "{'goal':'g'}"));
    put_schedule(w, "o", doc(w, "{}"));
    keep(w);
    is_exported(w, &want,
                "{'kind':'schedule','name':'n','owner':'ann','createdMs':11,'bodyHash':77,'rule':"
                "'gaRjcm9upkBkYWlseQ==','documentBytes':8}\n"
                "{'kind':'document','name':'n','bytes':'gaRnb2FsoWc='}\n"
                "{'kind':'end','name':'n'}\n"
                "{'kind':'schedule','name':'o','owner':'ann','createdMs':11,'bodyHash':77,'rule':"
                "'gaRjcm9upkBkYWlseQ==','documentBytes':1}\n"
                "{'kind':'document','name':'o','bytes':'gA=='}\n"
                "{'kind':'end','name':'o'}\n");
}

/* ---- and back ---- */

static void fill(struct world *w)
{
    const uint64_t ix = put_plan(w, "01", large(w, 500 * 1024), 1, 10, "");
    char *bytes = arena_alloc(&w->arena, 700 * 1024);
    uint64_t blobs[3];
    char members[128];

    assert_non_null(bytes);
    for (size_t i = 0; i < 700 * 1024; i++) {
        bytes[i] = (char)(i * 31 % 251);
    }
    blobs[0] = put_blob(w, bytes, 700 * 1024);
    blobs[1] = put_blob(w, bytes, 96 * 1024); /* just one line */
    blobs[2] = put_blob(w, "", 0);
    for (uint64_t i = 0; i < 3; i++) {
        (void)snprintf(members, sizeof members, EVENT("01", "%llu") ",'xRef':%llu",
                       (unsigned long long)i + 1, (unsigned long long)blobs[i]);
        put_row(w, ix, i + 1, "plan_started", members, &blobs[i], 1);
    }
    const uint64_t rows = put_plan(w, "02", doc(w, "{}"), 1, 11, "");
    for (uint64_t i = 1; i <= 1001; i++) {
        put_event(w, rows, i, "02");
    }
    (void)put_plan(w, "03", large(w, 96 * 1024 - 12), 1, 11, "");
    for (int i = 0; i < 3; i++) {
        const char *const ids[] = {"s", "s1", "r"};
        for (int k = 0; k < 40; k++) {
            put_message(w, ids[i], arena_str(&w->arena, large(w, 12 * 1024)).ptr + 6);
        }
        put_session(w, ids[i], i < 2 ? 20 : 19, 40);
    }
    put_schedule(w, "n", large(w, 600 * 1024));
    put_schedule(w, "m", doc(w, "{}"));
    keep(w);
}

static void what_goes_out_comes_in_and_goes_out_the_same_in_parts_of_any_size(void **state)
{
    static const uint32_t parts[] = {1, 7, 5000};
    struct world *w = *state;
    char *lines;

    fill(w);
    lines = strdup(all(w));
    assert_non_null(lines);
    assert_true(w->slices > 12);
    assert_int_equal(count(lines, "\"kind\":\"plan\""), 3);
    assert_int_equal(count(lines, "\"kind\":\"session\""), 3);
    assert_int_equal(count(lines, "\"kind\":\"schedule\""), 2);
    assert_int_equal(count(lines, "\"kind\":\"row\""), 1004);
    assert_int_equal(count(lines, "\"kind\":\"message\""), 120);
    assert_int_equal(count(lines, "\"kind\":\"document\""), 6 + 1 + 1 + 7 + 1);
    assert_int_equal(count(lines, "\"kind\":\"blob\""), 8 + 1 + 1);
    assert_true(strstr(lines, "\"sessionId\":\"r\"") < strstr(lines, "\"sessionId\":\"s\""));
    for (size_t i = 0; i < 3; i++) {
        struct world other = {.slices = 0};
        open_journal(&other);
        import(&other, lines, parts[i]);
        const char *again = all(&other);
        const char *differs = again;
        for (const char *at = lines; *at != 0 && *at == *differs; at++) {
            differs++;
        }
        if (strcmp(again, lines) != 0) {
            fail_msg("it differs from \"%.80s\" on", differs);
        }
        close_journal(&other);
    }
    now = w;
    free(lines);
}

/* ---- what is asked for ---- */

static void an_export_takes_what_ended_or_was_updated_since_then(void **state)
{
    struct world *w = *state;

    (void)put_plan(w, "01", doc(w, "{}"), 1, 10, "");
    (void)put_plan(w, "02", doc(w, "{}"), 1, 10, "");
    (void)put_plan(w, "03", doc(w, "{}"), 1, 0, ""); /* it has not ended */
    put_message(w, "s", "x");
    put_session(w, "s", 10, 1);
    put_schedule(w, "n", doc(w, "{}"));
    keep(w);
    for (msec since = 0; since <= 11; since++) {
        const struct transfer_want want = {.since = since};
        const char *lines = exported(w, &want);
        assert_int_equal(count(lines, "\"kind\":\"plan\""), since <= 10 ? 2 : 0);
        assert_int_equal(count(lines, "\"kind\":\"session\""), since <= 10);
        assert_int_equal(count(lines, "\"kind\":\"schedule\""), 1);
    }
}

static void what_is_in_memory_or_comes_in_just_now_is_not_given(void **state)
{
    struct world *w = *state;
    struct bt_error err;
    uint64_t ix;

    (void)put_plan(w, "01", doc(w, "{}"), 1, 10, "");
    ix = put_plan(w, "02", doc(w, "{}"), 1, 11, "");
    (void)put_plan(w, "03", doc(w, "{}"), 1, 12, "");
    assert_ok(journal_plan_state(w->j, ix, STR_LIT(JOURNAL_IMPORTING), 11, STR_LIT(""), &err), err);
    keep(w);
    (void)snprintf(w->open, sizeof w->open, "03");
    assert_int_equal(count(all(w), "\"kind\":\"plan\""), 1);
    assert_non_null(strstr(buf_cstr(&w->text), ID("01")));
    w->open[0] = 0;
    assert_int_equal(count(all(w), "\"kind\":\"plan\""), 2);
}

/* The jobs of a plan may end a minute later than it, and lie in one another. */
static void one_plan_goes_out_with_the_jobs_inside_it(void **state)
{
    struct world *w = *state;
    struct transfer_want want = {.one = true, .id = id_of("01")};
    const msec ended = 1000;

    (void)put_plan(w, "F0", doc(w, "{'errand':{'of':'" ID("01") "'}}"), 1, 99, "planning");
    want.ix = put_plan(w, "01", doc(w, "{}"), 100, ended, "");
    (void)put_plan(w, "02", doc(w, "{'errand':{'of':'" ID("01") "'}}"), 1, 100, "planning");
    (void)put_plan(w, "03", doc(w, "{'child':{'of':'" ID("01") "'}}"), 1, ended + 60000, "child");
    (void)put_plan(w, "04", doc(w, "{'errand':{'of':'" ID("03") "'}}"), 1, 500, "planning");
    (void)put_plan(w, "F1", doc(w, "{'errand':{'of':'" ID("01") "'}}"), 1, ended + 60001, "replan");
    (void)put_plan(w, "F2", doc(w, "{'errand':{'of':'" ID("F3") "'}}"), 1, 500, "planning");
    (void)put_plan(w, "F3", doc(w, "{'errand':{'of':'" ID("01") "'}}"), 1, 500, "");
    (void)put_plan(w, "F4", doc(w, "{}"), 1, 500, "planning");
    put_message(w, "s", "x");
    put_schedule(w, "n", doc(w, "{}"));
    keep(w);
    const char *lines = exported(w, &want);
    assert_int_equal(count(lines, "\"kind\":\"plan\""), 5);
    for (int i = 1; i <= 4; i++) {
        char head[80];
        (void)snprintf(head, sizeof head, "{\"kind\":\"plan\",\"planId\":\"" ID("%02d") "\"", i);
        assert_int_equal(count(lines, head), 1);
    }
    assert_non_null(
        strstr(lines, ID("F2"))); /* a job that another one inside had, without one of its own */
    assert_ptr_equal(strstr(lines, "{\"kind\":\"plan\",\"planId\":\"" ID("01")), lines); /* first */
    assert_int_equal(count(lines, "session") + count(lines, "schedule"), 0);
    want.alone = true;
    assert_int_equal(count(exported(w, &want), "\"kind\":\"plan\""), 1);
    assert_int_equal(count(buf_cstr(&w->text), "\"kind\":\"end\""), 1);
}

static void a_cursor_is_one_of_an_earlier_answer(void **state)
{
    static const struct {
        const char *cursor;
        bool ok;
    } cases[] = {
        {"x", false},
        {"p", false},
        {"p.1.1.3.0", false},
        {"p.1.1.3.0.0x", false},
        {"p.1.1.3.0.0.", false},
        {"p.1.1.3.0.0", true},
        {"p.9223372036854775807.1.3.0.0", true},
        {"p.9223372036854775808.1.3.0.0", false},
        {"p.1.9223372036854775807.3.0.0", true},
        {"p.1.9223372036854775808.3.0.0", false},
        {"p.1.1.4.0.0", false},
        {"p.1.1.3.9223372036854775806.0", true},
        {"p.1.1.3.9223372036854775807.0", false},
        {"c.0.0.1", true},
        {"c.0.0.0", false},
        {"c.1.0.2", false},
        {"c.9223372036854775806.0.1", true},
        {"c.9223372036854775807.0.1", false},
        {"c.1.8388608.1", true},
        {"c.1.8388609.1", false},
        {"c.1.0", false},
        {"c.1.0.1x", false},
        {"s.1.18446744073709551615.s", true},
        {"s.1.18446744073709551615.", true},
        {"s.9223372036854775807.18446744073709551615.s", true},
        {"s.9223372036854775808.18446744073709551615.s", false},
        {"s.1.1", false},
        {"s.1.18446744073709551615."
         "1234567890123456789012345678901234567890123456789012345678901234",
         true},
        {"s.1.18446744073709551615."
         "12345678901234567890123456789012345678901234567890123456789012345",
         false},
    };
    const struct transfer_want want = {.one = false};
    struct world *w = *state;
    const struct transfer_hooks hooks = {w, is_open};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char cursor[TRANSFER_CURSOR_MAX];
        struct bt_error err;
        (void)snprintf(cursor, sizeof cursor, "%s", cases[i].cursor);
        const enum bt_code code = transfer_export(w->j, &hooks, &want, cursor, &w->text, &err);
        if (code != (cases[i].ok ? BT_OK : BT_INVALID)) {
            fail_msg("%s: %s", cases[i].cursor, bt_code_name(code));
        }
        assert_true(code == BT_OK || strstr(err.msg, "of an earlier answer") != NULL);
    }
}

/* ---- what goes wrong ---- */

/* The first slice of an export, whose cursor is left. */
static void begin_export(struct world *w, char cursor[TRANSFER_CURSOR_MAX])
{
    const struct transfer_want want = {.one = false};
    const struct transfer_hooks hooks = {w, is_open};
    struct bt_error err;

    buf_clear(&w->text);
    cursor[0] = 0;
    assert_ok(transfer_export(w->j, &hooks, &want, cursor, &w->text, &err), err);
    assert_int_not_equal(cursor[0], 0);
}

static void is_conflict(struct world *w, char cursor[TRANSFER_CURSOR_MAX], const char *says)
{
    const struct transfer_want want = {.one = false};
    const struct transfer_hooks hooks = {w, is_open};
    struct bt_error err;

    buf_clear(&w->text);
    if (transfer_export(w->j, &hooks, &want, cursor, &w->text, &err) != BT_CONFLICT) {
        fail_msg("it goes on, instead of \"%s\", to %s", says, cursor);
    }
    assert_non_null(strstr(err.msg, says));
}

static void what_goes_while_it_is_given_ends_the_export(void **state)
{
    struct world *w = *state;
    char cursor[TRANSFER_CURSOR_MAX];
    struct bt_error err;
    uint64_t ix;
    bool more;

    ix = put_plan(w, "01", large(w, 500 * 1024), 1, 10, "");
    (void)put_plan(w, "02", doc(w, "{}"), 1, 11, "");
    keep(w);
    begin_export(w, cursor);
    assert_ok(journal_plan_delete(w->j, ix, STR_LIT("why"), 20, &err), err);
    keep(w);
    is_conflict(w, cursor, "a plan was deleted while it was exported");

    assert_int_equal(count(all(w), "\"kind\":\"plan\""), 1);
    for (int k = 0; k < 40; k++) {
        put_message(w, "s", large(w, 12 * 1024).ptr + 6);
    }
    put_session(w, "s", 20, 40);
    keep(w);
    begin_export(w, cursor);
    assert_int_equal(cursor[0], 's');
    assert_ok(journal_session_delete(w->j, STR_LIT("s"), 1000, &more, &err), err);
    keep(w);
    is_conflict(w, cursor, "a session was deleted while it was exported");

    put_schedule(w, "n", large(w, 600 * 1024));
    put_schedule(w, "o", doc(w, "{}"));
    keep(w);
    begin_export(w, cursor);
    assert_int_equal(cursor[0], 'c');
    struct journal_schedule row;
    assert_ok(journal_schedule_by_name(w->j, STR_LIT("n"), &row, &err), err);
    assert_ok(journal_schedule_delete(w->j, row.ix, &err), err);
    keep(w);
    is_conflict(w, cursor, "a schedule was deleted while it was exported");
}

/* What is damaged is named in its place, and all the others are given. */
static void a_damaged_part_costs_its_plan_or_session_alone(void **state)
{
    struct world *w = *state;
    uint32_t damaged = 0;
    uint32_t ended = 0;
    bool failed = true;

    fill(w);
    watch(w);
    (void)all(w);
    fail_with = BT_IO;
    for (uint32_t n = 1; n <= asked && failed && n < 45; n++) {
        const struct transfer_want want = {.one = false};
        struct bt_error err;
        uint32_t reads = asked;
        asked = 0;
        fail_at = n;
        const enum bt_code code = export_want(w, &want, &err);
        failed = asked >= n;
        asked = reads;
        fail_at = 0;
        if (code != BT_OK) {
            assert_int_equal(code, BT_IO);
            assert_string_equal(err.msg, "it cannot be read");
            ended++;
            continue;
        }
        const char *lines = buf_cstr(&w->text);
        assert_int_equal(count(lines, "\"kind\":\"end\"") + count(lines, "\"kind\":\"damaged\""),
                         8);
        damaged += count(lines, "\"kind\":\"damaged\"");
        assert_true(count(lines, "\"why\":\"it cannot be read\"") ==
                    count(lines, "\"kind\":\"damaged\""));
    }
    assert_true(damaged > 10);
    assert_true(ended > 0);
}

static void an_export_that_cannot_read_says_why_and_the_next_one_can(void **state)
{
    const struct transfer_want want = {.one = false};
    struct world *w = *state;
    struct bt_error err;
    uint32_t reads;
    char *lines;

    fill(w);
    watch(w);
    lines = strdup(all(w));
    assert_non_null(lines);
    reads = asked;
    for (uint32_t n = 1; n <= reads; n += n < 40 ? 1 : 37) {
        asked = 0;
        fail_at = n;
        assert_int_equal(export_want(w, &want, &err), BT_NOMEM);
        assert_string_equal(err.msg, "it cannot be read");
        assert_int_equal(err.code, BT_NOMEM);
        fail_at = 0;
    }
    assert_string_equal(all(w), lines);
    free(lines);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_plan_has_a_head_its_document_its_results_its_rows_and_an_end),
        TEST(a_session_has_its_messages_each_with_the_turn_that_it_began),
        TEST(a_schedule_has_its_rule_its_document_and_an_end),
        TEST(what_goes_out_comes_in_and_goes_out_the_same_in_parts_of_any_size),
        TEST(an_export_takes_what_ended_or_was_updated_since_then),
        TEST(what_is_in_memory_or_comes_in_just_now_is_not_given),
        TEST(one_plan_goes_out_with_the_jobs_inside_it),
        TEST(a_cursor_is_one_of_an_earlier_answer),
        TEST(what_goes_while_it_is_given_ends_the_export),
        TEST(a_damaged_part_costs_its_plan_or_session_alone),
        TEST(an_export_that_cannot_read_says_why_and_the_next_one_can),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
