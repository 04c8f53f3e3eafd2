#include "tests/unit/journal/journal_dump.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dump {
    struct journal *j;
    struct buf *out;
    uint32_t *fails;
    bool whole;
};

struct uuid dump_plan_id(uint64_t n)
{
    return (struct uuid){.b = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, (uint8_t)n}};
}

struct uuid dump_turn_id(uint64_t n)
{
    return (struct uuid){.b = {(uint8_t)(n + 1), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}};
}

static void add_id(struct dump *d, struct uuid id)
{
    char text[UUID_TEXT_LEN + 1];

    uuid_format(id, text);
    buf_printf(d->out, " %s", uuid_is_nil(id) ? "-" : text);
}

static void add_code(struct dump *d, const char *what, enum bt_code code,
                     const struct bt_error *err)
{
    if (code == BT_OK) {
        return;
    }
    *d->fails += code != BT_NOT_FOUND && code != BT_CONFLICT;
    buf_printf(d->out, "%s: code %d", what, (int)code);
    if (code != BT_NOT_FOUND && code != BT_CONFLICT) {
        buf_printf(d->out, ": %s", err->msg);
    }
    buf_add_byte(d->out, '\n');
}

static int by_text(const void *a, const void *b)
{
    const struct str *x = a;
    const struct str *y = b;
    const int is = memcmp(x->ptr, y->ptr, x->len < y->len ? x->len : y->len);

    return is != 0 ? is : x->len < y->len ? -1 : x->len > y->len;
}

/* Of what comes in no particular order: the lines from there on, by their text. */
static void sort_lines(struct dump *d, size_t from)
{
    struct str lines[64];
    struct buf copy;
    size_t n = 0;

    buf_init(&copy, 100000);
    buf_add(&copy, d->out->at + from, d->out->len - from);
    for (size_t at = 0; at < copy.len && n < 64; n++) {
        const char *end = memchr(copy.at + at, '\n', copy.len - at);
        const size_t len = end == NULL ? copy.len - at : (size_t)(end - (char *)copy.at) - at + 1;
        lines[n] = (struct str){(const char *)copy.at + at, len};
        at += len;
    }
    qsort(lines, n, sizeof lines[0], by_text);
    d->out->len = from;
    for (size_t i = 0; i < n; i++) {
        buf_add_str(d->out, lines[i]);
    }
    buf_done(&copy);
}

/* ---- plans ---- */

/* One in quarantine ended by the clock of the machine. */
static msec end_of(struct str status, msec ended)
{
    return str_is(status, "quarantined") && ended > 0 ? 1 : ended;
}

static bool add_plan_line(const struct journal_plan *p, void *self)
{
    struct dump *d = self;

    buf_printf(d->out, "  plan %" PRIu64, p->ix);
    add_id(d, p->plan_id);
    buf_printf(d->out,
               " session=%.*s key=%.*s hash=%" PRIu64 " goal=%.*s doc=%.*s created=%" PRIu64
               " status=%.*s ended=%" PRIu64 " note=%.*s job=%.*s owner=%.*s\n",
               STR_ARG(p->session_id), STR_ARG(p->client_key), p->body_hash, STR_ARG(p->goal),
               (int)(p->doc != NULL ? p->doc_len : 0), p->doc != NULL ? (const char *)p->doc : "",
               p->created_wall, STR_ARG(p->status), end_of(p->status, p->ended_wall),
               STR_ARG(p->note), STR_ARG(p->job), STR_ARG(p->owner));
    return true;
}

static void dump_one_plan(struct dump *d, uint64_t n)
{
    struct journal_plan p;
    struct journal_gone g;
    struct bt_error err;
    char key[16];
    char owner[20];
    enum bt_code code = journal_plan_by_id(d->j, dump_plan_id(n), &p, &err);
    uint64_t blobs[DUMP_BLOBS];
    uint64_t found = 0;
    uint32_t blobs_n;

    add_code(d, "by id", code, &err);
    if (code == BT_OK) {
        found = p.ix;
        add_plan_line(&p, d);
    }
    code = journal_plan_head(d->j, dump_plan_id(n), &p, &err);
    add_code(d, "head", code, &err);
    if (code == BT_OK) {
        p.doc = NULL;
        add_plan_line(&p, d);
    }
    (void)snprintf(key, sizeof key, "key%" PRIu64, n);
    code = journal_plan_by_key(d->j, str_from(key), &p, &err);
    add_code(d, "by key", code, &err);
    if (code == BT_OK) {
        add_plan_line(&p, d);
    } else if (code == BT_CONFLICT) {
        add_id(d, p.plan_id);
    }
    code = journal_gone_by_id(d->j, dump_plan_id(n), &g, &err);
    add_code(d, "gone", code, &err);
    if (code == BT_OK) {
        buf_printf(d->out, "  gone %" PRIu64, g.ix);
        add_id(d, g.plan_id);
        buf_printf(d->out,
                   " key=%.*s status=%.*s created=%" PRIu64 " ended=%" PRIu64 " deleted=%" PRIu64
                   " why=%.*s owner=%.*s rows=%" PRIu64 "\n",
                   STR_ARG(g.client_key), STR_ARG(g.status), g.created_wall,
                   end_of(g.status, g.ended_wall), g.deleted_wall, STR_ARG(g.why), STR_ARG(g.owner),
                   g.rows);
    }
    if (found == 0) {
        return;
    }
    code = journal_plan_owner(d->j, found, owner, sizeof owner, &err);
    add_code(d, "owner", code, &err);
    buf_printf(d->out, "  owner %s\n", owner);
    if (!d->whole) {
        return;
    }
    code = journal_plan_blobs(d->j, found, 0, blobs, DUMP_BLOBS, &blobs_n, &err);
    add_code(d, "blobs", code, &err);
    for (uint32_t i = 0; i < blobs_n; i++) {
        buf_printf(d->out, "  names %" PRIu64 "\n", blobs[i]);
    }
}

static void dump_plans(struct dump *d)
{
    static const char *const filters[] = {"", "s0", "s1", "nobody"};
    struct bt_error err;
    uint64_t left[8];
    uint32_t n;

    for (uint64_t i = 0; i < DUMP_IDS; i++) {
        dump_one_plan(d, i);
    }
    for (size_t i = 0; i < 4; i++) {
        buf_printf(d->out, "plans of %s\n", filters[i]);
        add_code(
            d, "plans",
            journal_plans(d->j, STR_LIT(""), str_from(filters[i]), 0, 9, add_plan_line, d, &err),
            &err);
        add_code(d, "running",
                 journal_plans(d->j, STR_LIT("running"), str_from(filters[i]), 0, 9, add_plan_line,
                               d, &err),
                 &err);
        add_code(
            d, "before",
            journal_plans(d->j, STR_LIT(""), str_from(filters[i]), 4, 2, add_plan_line, d, &err),
            &err);
        add_code(d, "jobs", journal_jobs(d->j, str_from(filters[i]), 0, 9, add_plan_line, d, &err),
                 &err);
        add_code(d, "jobs before",
                 journal_jobs(d->j, str_from(filters[i]), 5, 1, add_plan_line, d, &err), &err);
    }
    buf_add_cstr(d->out, "between\n");
    add_code(
        d, "between",
        journal_plans_between(d->j, dump_plan_id(1), dump_plan_id(3), 9, add_plan_line, d, &err),
        &err);
    add_code(
        d, "between 2",
        journal_plans_between(d->j, dump_plan_id(0), dump_plan_id(5), 2, add_plan_line, d, &err),
        &err);
    buf_add_cstr(d->out, "open\n");
    add_code(d, "open", journal_plans_open(d->j, add_plan_line, d, &err), &err);
    buf_add_cstr(d->out, "ended\n");
    add_code(d, "ended", journal_plans_ended(d->j, 0, 0, 9, add_plan_line, d, &err), &err);
    add_code(d, "ended after", journal_plans_ended(d->j, 2000, 2, 2, add_plan_line, d, &err), &err);
    if (d->whole && journal_imports(d->j, left, 8, &n, &err) == BT_OK) {
        for (uint32_t i = 0; i < n; i++) {
            buf_printf(d->out, "importing %" PRIu64 "\n", left[i]);
        }
    }
}

/* ---- sessions ---- */

static bool add_session_line(const struct journal_session *s, void *self)
{
    struct dump *d = self;

    buf_printf(d->out,
               "  session %.*s %" PRIu64 "-%" PRIu64 " messages=%" PRIu64 " summarized=%" PRIu64
               " summary=%" PRIu64 " calls=%" PRIu64 "/%" PRIu64 " owner=%.*s\n",
               STR_ARG(s->session_id), s->created_wall, s->updated_wall, s->messages, s->summarized,
               s->summary, s->agent_calls, s->tool_calls, STR_ARG(s->owner));
    return true;
}

static bool add_message_line(const struct journal_message *m, void *self)
{
    struct dump *d = self;

    buf_printf(d->out, "  message %" PRIu64 " %.*s: %.*s%s wall=%" PRIu64 "%s", m->n,
               STR_ARG(m->role), STR_ARG(m->text), m->cut ? " cut" : "", m->wall,
               m->damaged ? " damaged" : "");
    add_id(d, m->turn);
    add_id(d, m->plan);
    buf_add_byte(d->out, '\n');
    return true;
}

static bool add_turn_line(const struct journal_turn *t, void *self)
{
    struct dump *d = self;

    buf_add_cstr(d->out, "  turn");
    add_id(d, t->turn_id);
    buf_printf(d->out,
               " %.*s key=%.*s hash=%" PRIu64 " %" PRIu64 "/%" PRIu64 " %" PRIu64 "-%" PRIu64
               " action=%.*s context=%" PRIu64,
               STR_ARG(t->session_id), STR_ARG(t->client_key), t->body_hash, t->asked, t->answered,
               t->started_wall, t->ended_wall, STR_ARG(t->action), t->context_blob);
    add_id(d, t->plan);
    buf_add_byte(d->out, '\n');
    return true;
}

static void dump_turn(struct dump *d, enum bt_code code, const struct journal_turn *t,
                      const struct bt_error *err)
{
    add_code(d, "turn", code, err);
    if (code == BT_OK) {
        (void)add_turn_line(t, d);
    }
}

static void dump_sessions(struct dump *d)
{
    struct journal_turn t;
    struct journal_session s;
    struct bt_error err;
    char id[16];
    char key[16];

    for (int i = 0; i < DUMP_SESSIONS; i++) {
        (void)snprintf(id, sizeof id, "s%d", i);
        const enum bt_code code = journal_session(d->j, str_from(id), &s, &err);
        add_code(d, "session", code, &err);
        if (code == BT_OK) {
            (void)add_session_line(&s, d);
        }
        add_code(d, "messages",
                 journal_messages(d->j, str_from(id), 0, 9, add_message_line, d, &err), &err);
        add_code(d, "messages before",
                 journal_messages(d->j, str_from(id), 3, 1, add_message_line, d, &err), &err);
        for (int k = 0; k < DUMP_TURNS; k++) {
            (void)snprintf(key, sizeof key, "turn%d", k);
            buf_printf(d->out, "of %s by %s\n", id, key);
            dump_turn(d, journal_turn_by_key(d->j, str_from(id), str_from(key), &t, &err), &t,
                      &err);
        }
    }
    add_code(d, "sessions", journal_sessions(d->j, 9, add_session_line, d, &err), &err);
    add_code(d, "sessions 1", journal_sessions(d->j, 1, add_session_line, d, &err), &err);
    for (uint64_t i = 0; i < DUMP_TURNS; i++) {
        buf_printf(d->out, "turn %" PRIu64 "\n", i);
        dump_turn(d, journal_turn(d->j, dump_turn_id(i), &t, &err), &t, &err);
    }
    for (uint64_t i = 0; i < DUMP_IDS; i++) {
        buf_printf(d->out, "turn of plan %" PRIu64 "\n", i);
        dump_turn(d, journal_turn_of_plan(d->j, dump_plan_id(i), &t, &err), &t, &err);
    }
    const size_t from = d->out->len;
    add_code(d, "turns", journal_turns_open(d->j, add_turn_line, d, &err), &err);
    sort_lines(d, from);
}

/* ---- what else is kept ---- */

static bool add_schedule_line(const struct journal_schedule *p, void *self)
{
    struct dump *d = self;

    buf_printf(d->out,
               "  schedule %" PRIu64 " %.*s owner=%.*s hash=%" PRIu64 " created=%" PRIu64
               " rule=%.*s doc=%.*s state=%.*s%s\n",
               p->ix, STR_ARG(p->name), STR_ARG(p->owner), p->body_hash, p->created_wall,
               STR_ARG(p->rule), STR_ARG(p->doc), STR_ARG(p->state), p->damaged ? " damaged" : "");
    return true;
}

static void add_start_line(struct str name, uint32_t place, uint64_t wall, void *self)
{
    struct dump *d = self;

    buf_printf(d->out, "  start %.*s %u %" PRIu64 "\n", STR_ARG(name), place, wall);
}

static void add_agent_line(const struct journal_agent *a, void *self)
{
    struct dump *d = self;

    buf_printf(d->out, "  agent %.*s %" PRIu64 " %.*s\n", STR_ARG(a->id), a->seen_wall,
               STR_ARG(a->card));
}

static void dump_kept(struct dump *d)
{
    static const uint64_t since[] = {0, 1500, 2500};
    struct journal_schedule p;
    struct bt_error err;
    char name[16];

    for (int i = 0; i < DUMP_NAMES; i++) {
        (void)snprintf(name, sizeof name, "n%d", i);
        const enum bt_code code = journal_schedule_by_name(d->j, str_from(name), &p, &err);
        add_code(d, "schedule", code, &err);
        if (code == BT_OK) {
            (void)add_schedule_line(&p, d);
        }
        add_code(d, "schedules", journal_schedules(d->j, (uint64_t)i, add_schedule_line, d, &err),
                 &err);
        buf_printf(d->out, "since %" PRIu64 "\n", since[i]);
        const size_t from = d->out->len;
        add_code(d, "starts", journal_starts(d->j, since[i], add_start_line, d, &err), &err);
        sort_lines(d, from);
    }
    add_code(d, "agents", journal_agents(d->j, add_agent_line, d, &err), &err);
}

/* ---- rows ---- */

static bool add_row_line(const struct journal_row *r, void *self)
{
    struct dump *d = self;

    buf_printf(d->out,
               "  row %s%" PRIu64 " plan=%" PRIu64 "/%" PRIu64 " %.*s %.*s wall=%" PRIu64
               " body=%.*s%s\n",
               r->is_public ? "" : "after ", r->seq, r->plan_ix, r->plan_seq, STR_ARG(r->type),
               STR_ARG(r->topic), r->wall, (int)r->body_len,
               r->body != NULL ? (const char *)r->body : "", r->damaged ? " damaged" : "");
    return true;
}

static void dump_rows(struct dump *d)
{
    struct bt_error err;
    struct buf bytes;
    bool owned;

    add_code(d, "events", journal_events(d->j, 1, 0, 200, add_row_line, d, &err), &err);
    add_code(d, "events from", journal_events(d->j, 5, 0, 3, add_row_line, d, &err), &err);
    for (uint64_t ix = 1; ix <= DUMP_IDS; ix++) {
        buf_printf(d->out, "of plan %" PRIu64 "\n", ix);
        add_code(d, "events of", journal_events(d->j, 1, ix, 99, add_row_line, d, &err), &err);
        add_code(d, "events of from", journal_events(d->j, 4, ix, 2, add_row_line, d, &err), &err);
        add_code(d, "last", journal_last_row(d->j, ix, false, add_row_line, d, &err), &err);
        add_code(d, "last event", journal_last_row(d->j, ix, true, add_row_line, d, &err), &err);
        add_code(d, "replay", journal_replay(d->j, ix, add_row_line, d, &err), &err);
    }
    buf_init(&bytes, 100000);
    for (uint64_t id = 1; id <= journal_last_blob(d->j) && id <= DUMP_BLOBS; id++) {
        if (!d->whole && id % 2 != 0) {
            continue; /* of a session: it goes sooner or later */
        }
        buf_clear(&bytes);
        const enum bt_code code = journal_blob_get(d->j, id, &bytes, &err);
        add_code(d, "blob", code, &err);
        buf_printf(d->out, "  blob %" PRIu64 " %.*s", id, STR_ARG(buf_str(&bytes)));
        for (int i = 0; i < 2; i++) {
            add_code(d, "owned",
                     journal_blob_owned(d->j, id, i == 0 ? STR_LIT("ann") : STR_LIT("bob"), &owned,
                                        &err),
                     &err);
            buf_printf(d->out, " %s", owned ? "owned" : "-");
        }
        buf_add_byte(d->out, '\n');
    }
    buf_done(&bytes);
}

void journal_dump(struct journal *j, bool whole, struct buf *out, uint32_t *fails)
{
    struct dump d = {j, out, fails, whole};

    *fails = 0;
    dump_plans(&d);
    dump_sessions(&d);
    dump_kept(&d);
    dump_rows(&d);
}

/* ---- a journal with something of everything ---- */

enum bt_code journal_add_row(struct journal *j, uint64_t plan_seq, struct bt_error *err)
{
    static const uint64_t blobs[] = {1};
    const struct journal_row row = {.seq = journal_next_seq(j),
                                    .is_public = true,
                                    .plan_ix = 1,
                                    .plan_seq = plan_seq,
                                    .type = STR_LIT("t"),
                                    .topic = STR_LIT("t"),
                                    .body = "b",
                                    .body_len = 1,
                                    .blobs = blobs,
                                    .blobs_n = 1};
    return journal_append(j, &row, err);
}

void journal_fill(struct journal *j)
{
    struct journal_plan p = {.session_id = STR_LIT("s0"),
                             .client_key = STR_LIT("key0"),
                             .goal = STR_LIT("goal"),
                             .doc = "document",
                             .doc_len = 8,
                             .created_wall = 1000,
                             .status = STR_LIT("running"),
                             .owner = STR_LIT("ann")};
    const struct journal_agent a = {STR_LIT("n0"), 1000, STR_LIT("card")};
    const struct journal_schedule s = {
        .name = STR_LIT("n0"), .rule = STR_LIT("r"), .doc = STR_LIT("d")};
    struct journal_turn t = {.turn_id = dump_turn_id(0),
                             .session_id = STR_LIT("s0"),
                             .client_key = STR_LIT("turn0"),
                             .plan = dump_plan_id(0),
                             .action = STR_LIT("plan")};
    const struct journal_message m = {.role = STR_LIT("user"), .text = STR_LIT("hi"), .wall = 1000};
    const struct journal_row late = {.is_public = true,
                                     .type = STR_LIT("t"),
                                     .topic = STR_LIT("t"),
                                     .body = "z",
                                     .body_len = 1,
                                     .wall = 99000};
    struct journal_row row;
    struct bt_error err;
    uint64_t ix;
    uint64_t id;

    for (uint64_t i = 0; i < 4; i++) {
        p.plan_id = dump_plan_id(i);
        p.job = i == 1 ? STR_LIT("planning") : STR_LIT("");
        p.client_key = i == 0 ? STR_LIT("key0") : STR_LIT("");
        assert_ok(journal_plan_add(j, &p, &ix, &err), err);
        (void)add_event(j, ix, 1, "event");
        add_internal(j, ix, "internal");
    }
    assert_ok(journal_blob_add(j, "named", 5, &id, &err), err);
    assert_ok(journal_add_row(j, 2, &err), err);
    assert_ok(journal_blob_add(j, "not named", 9, &id, &err), err);
    (void)add_event(j, 0, 0, "of no plan");
    for (int i = 0; i < 3; i++) {
        assert_ok(journal_message_add(j, i == 2 ? STR_LIT("s1") : STR_LIT("s0"), &m, &id, &err),
                  err);
    }
    assert_ok(journal_turn_put(j, &t, &err), err);
    assert_ok(journal_schedule_put(j, &s, &ix, &err), err);
    assert_ok(journal_agent_put(j, &a, &err), err);
    assert_ok(journal_start_put(j, STR_LIT("n0"), 0, 2000, &err), err);
    assert_ok(journal_plan_status(j, 2, STR_LIT("completed"), 2000, &err), err);
    assert_ok(journal_plan_status(j, 3, STR_LIT("failed"), 2500, &err), err);
    assert_ok(journal_plan_status(j, 4, STR_LIT("failed"), 2600, &err), err);
    commit(j);
    assert_ok(journal_plan_delete(j, 3, STR_LIT("old"), 3000, &err), err);
    for (bool more = true; more;) {
        assert_ok(journal_sweep(j, 9, &more, &err), err);
    }
    commit(j);
    assert_ok(journal_plan_delete(j, 4, STR_LIT("old"), 3500, &err), err); /* and not swept */
    row = late;
    row.seq = journal_next_seq(j);
    assert_ok(journal_append(j, &row, &err), err);
    commit(j);
}
