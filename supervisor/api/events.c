/* events.read: any range again, byte for byte as published; with waitMs the answer is parked until
 * there is one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "protocol/base/clock.h"
#include "protocol/base/suggest.h"
#include "supervisor/api/api_internal.h"
#include "supervisor/auth/sessions.h"
#include "supervisor/core/mutant.h"
#include "supervisor/core/run/record.h"
#include "supervisor/engine/access.h"
#include "supervisor/engine/row_body.h"
#include "supervisor/events/record_codec.h"
#include "supervisor/schedule/schedules.h"

/* Rows looked at by one read: a search for a rare type over a long history must not hold up the
 * others. */
enum { ROWS_PER_READ = 20000, RANGES_MAX = 1000, ROWS_PER_LOOK = 32 };

struct event_page {
    struct buf docs;
    uint32_t n, limit;
    uint32_t seen;
    uint64_t next_seq;
    char last_id[UUID_TEXT_LEN + 1]; /* of the event before next_seq; "" = not known */
    const char *types;               /* space separated, with one at both ends; "" = all */
    bool full;
    struct msg_seq_range deleted[RANGES_MAX];
    uint32_t deleted_n;
    bool all; /* of all plans: only then a jump is a deletion */
    struct engine *engine;
    uint64_t until_ns; /* of this slice */
    uint32_t in_slice; /* rows */
    bool stopped;      /* the slice is over */
    /* whether the sender sees the plan that was looked at last */
    uint64_t looked_ix;
    bool looked_sees;
};

/* What is of others is left out, as are types that were not asked for: the numbers go on. */
static bool is_seen(struct event_page *page, const struct journal_row *row)
{
    const struct identity *who = engine_who(page->engine);
    const struct doc body = {row->body, row->body_len};
    const enum record_type type = record_type_from_wire(row->type);
    char owner[LIMIT_ID_BYTES + 1];
    struct bt_error err;

    if (access_sees_all(who) || row->damaged) {
        return true;
    }
    if (row->plan_ix == 0) {
        if (type != REC_COUNT && record_about(type) == ABOUT_SCHEDULE) {
            return schedules_find(engine_hooks(page->engine)->schedules, row_text(body, "name")) !=
                   NULL;
        }
        return type == REC_COUNT || record_about(type) != ABOUT_SESSION ||
               access_sees_session(page->engine, row_text(body, "sessionId"));
    }
    if (page->looked_ix != row->plan_ix) {
        page->looked_ix = row->plan_ix;
        page->looked_sees = journal_plan_owner(engine_journal(page->engine), row->plan_ix, owner,
                                               sizeof owner, &err) == BT_OK &&
                            access_sees(who, str_from(owner));
    }
    return page->looked_sees;
}

/* The journal has checked that what is missing was deleted. False: no room. */
static bool note_deleted(struct event_page *page, uint64_t to)
{
    if (!page->all || page->next_seq > to) {
        return true;
    }
    if (page->deleted_n == RANGES_MAX) {
        return false;
    }
    page->deleted[page->deleted_n++] =
        (struct msg_seq_range){.from_seq = page->next_seq, .to_seq = to};
    page->next_seq = to + 1;
    page->last_id[0] = 0;
    return true;
}

static bool type_wanted(const char *types, struct str type)
{
    char padded[80];

    if (types[0] == 0 || type.len > sizeof padded - 3) {
        return types[0] == 0;
    }
    (void)snprintf(padded, sizeof padded, " %.*s ", STR_ARG(type));
    return strstr(types, padded) != NULL;
}

/* The marker in place of an event that cannot be read any more. The same one each time. */
static bool add_damaged(const struct journal_row *row, struct event_page *page)
{
    const struct record rec = {
        REC_INIT(EVENT_DAMAGED, damaged,
                 .last_seq = row->damaged_to > row->seq ? row->damaged_to : row->seq),
        .wall = row->wall,
        .text = STR_LIT("this event cannot be read in the journal any more; those before and "
                        "after it can (see: baton doctor)")};
    struct record_extra x = {.seq = row->seq};
    struct buf topic;
    struct buf body;
    bool ok;

    for (size_t i = 0; i < sizeof row->seq; i++) {
        x.event_id.b[sizeof x.event_id.b - 1 - i] = (uint8_t)(row->seq >> (8 * i));
    }
    buf_init(&topic, 256);
    buf_init(&body, LIMIT_EVENT_BYTES);
    ok = record_encode(&rec, &x, NULL, &body, &topic, NULL) == BT_OK;
    if (ok) {
        buf_add(&page->docs, body.at, body.len);
        page->n++;
    }
    buf_done(&topic);
    buf_done(&body);
    return ok;
}

/* The eventId of a row, as text; "" of one that is damaged. */
static void id_of(const struct journal_row *row, char ret[UUID_TEXT_LEN + 1])
{
    const struct doc body = {row->body, row->body_len};
    const struct str id =
        row->damaged ? (struct str){NULL, 0} : doc_string(doc_get(body, STR_LIT("eventId")));

    (void)snprintf(ret, UUID_TEXT_LEN + 1, "%.*s", id.ptr != NULL ? (int)id.len : 0,
                   id.ptr != NULL ? id.ptr : "");
}

static bool add_event(const struct journal_row *row, void *self)
{
    struct event_page *page = self;

    if (page->n == page->limit || page->seen == ROWS_PER_READ ||
        page->docs.len + row->body_len > LIMIT_CONTROL_BYTES / 2 ||
        !note_deleted(page, row->seq - 1)) {
        page->full = true;
        return false;
    }
    if (++page->in_slice % ROWS_PER_LOOK == 0 && clock_mono_ns() > page->until_ns) {
        page->stopped = true; /* the row is read again */
        return false;
    }
    page->seen++;
    page->next_seq = (row->damaged && row->damaged_to > row->seq ? row->damaged_to : row->seq) + 1;
    id_of(row, page->last_id);
    if (row->damaged) { /* whatever its type was */
        return add_damaged(row, page);
    }
    if (type_wanted(page->types, row->type) && is_seen(page, row)) {
        buf_add(&page->docs, row->body, row->body_len);
        page->n++;
    }
    return true;
}

static enum bt_code read_page(struct engine *engine, const struct parked_read *q,
                              struct event_page *page, struct bt_error *err)
{
    const struct journal *journal = engine_journal(engine);
    enum bt_code code;

    page->in_slice = 0;
    page->stopped = false;
    code = journal_events(engine_journal(engine), page->next_seq, q->plan_ix, UINT32_MAX, add_event,
                          page, err);
    if (code == BT_OK && !page->full && !page->stopped) {
        page->full = !note_deleted(page, journal_committed_seq(journal));
    }
    return code;
}

struct one_id {
    uint64_t seq;
    char id[UUID_TEXT_LEN + 1];
};

static bool take_id(const struct journal_row *row, void *self)
{
    struct one_id *of = self;

    of->seq = row->seq;
    id_of(row, of->id);
    return true;
}

/* The eventId of the event `seq`; "": it was deleted, cannot be read, or is not there yet. */
static enum bt_code find_id(struct engine *engine, uint64_t seq, char ret[UUID_TEXT_LEN + 1],
                            struct bt_error *err)
{
    struct one_id of = {.seq = 0};
    enum bt_code code = journal_events(engine_journal(engine), seq, 0, 1, take_id, &of, err);

    (void)snprintf(ret, UUID_TEXT_LEN + 1, "%s", of.seq == seq ? of.id : "");
    return code;
}

/* A reader whose last event is another one now, or is not there: numbers were used again. */
static bool has_history(struct engine *engine, struct request *rq, uint64_t from_seq,
                        struct str after_id)
{
    const uint64_t seq = from_seq - 1;
    const uint64_t last = journal_committed_seq(engine_journal(engine));
    char id[UUID_TEXT_LEN + 1] = "";
    uint64_t from = 1;
    struct buf details;
    struct bt_error err;
    enum bt_code code = BT_OK;

    if (after_id.len == 0 || from_seq < 2 || MUTANT(CURSOR_WITHOUT_ID)) {
        return true;
    }
    code = seq > last ? BT_OK : find_id(engine, seq, id, &err);
    if (code == BT_OK && seq <= last && (id[0] == 0 || str_is(after_id, id))) {
        return true;
    }
    code = code == BT_OK ? journal_parted(engine_journal(engine), seq, &from, &err) : code;
    buf_init(&details, LIMIT_ID_BYTES);
    if (code == BT_OK) {
        (void)err_set(&err, BT_HISTORY_CHANGED,
                      "event %" PRIu64 " is %s: a failover lost events that you have read, and "
                      "their numbers are used again; read again from event %" PRIu64,
                      seq, seq > last ? "not there any more" : "another one now", from);
        doc_put_map(&details, 2);
        doc_put_cstr(&details, "fromSeq");
        doc_put_u64(&details, from);
        doc_put_cstr(&details, "lastSeq");
        doc_put_u64(&details, last);
    }
    request_refuse(engine, rq, &err, CLASS_NONE, 0, doc_from_buf(&details));
    buf_done(&details);
    return false;
}

static void answer_page(struct engine *engine, struct request *rq, struct event_page *page)
{
    struct msg_events_read_ok ok = {.last_seq = journal_committed_seq(engine_journal(engine))};
    char id[UUID_TEXT_LEN + 1] = "";
    char leader[UUID_TEXT_LEN + 1];
    struct bt_error err;
    struct buf list;

    buf_init(&list, LIMIT_CONTROL_BYTES);
    doc_put_array(&list, page->n);
    buf_add(&list, page->docs.at, page->docs.len);
    list.bad = page->docs.bad != BT_OK ? page->docs.bad : list.bad;
    if (buf_check(&list, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
        buf_done(&list);
        return;
    }
    ok.events = doc_from_buf(&list);
    ok.deleted = page->deleted;
    ok.deleted_n = page->deleted_n;
    /* Read to the end: go on after the newest, not after the newest that matched. */
    ok.next_seq = page->full || page->next_seq > ok.last_seq ? page->next_seq : ok.last_seq + 1;
    if (ok.next_seq == page->next_seq && page->last_id[0] != 0) {
        ok.last_event_id = str_from(page->last_id);
    } else if (ok.next_seq > 1 && find_id(engine, ok.next_seq - 1, id, &err) == BT_OK) {
        ok.last_event_id = str_from(id);
    }
    if (engine_options(engine)->shards > 0) {
        uuid_format(engine_options(engine)->instance, leader);
        ok.leader = str_from(leader);
    }
    request_answer(engine, rq, MSG_events_read_ok, &ok);
    buf_done(&list);
}

/* One events.read, from its turn to its answer. */
struct reading {
    struct parked_read q;
    struct event_page page;
    bool may_wait;
};

/* NULL after refusing. */
static struct reading *reading_new(struct engine *engine, struct request *rq,
                                   const struct parked_read *q)
{
    struct reading *r = calloc(1, sizeof *r);

    if (r == NULL) {
        request_refuse_text(engine, rq, BT_NOMEM, "out of memory for a page of events");
        return NULL;
    }
    r->q = *q;
    buf_init(&r->page.docs, LIMIT_CONTROL_BYTES);
    r->page.engine = engine;
    r->page.limit = q->limit;
    r->page.next_seq = q->from_seq;
    r->page.types = r->q.types;
    r->page.all = q->plan_ix == 0;
    return r;
}

static void reading_done(void *self)
{
    struct reading *r = self;

    buf_done(&r->page.docs);
    free(r);
}

static bool park(struct engine *engine, struct request *rq, struct parked_read *q);

/* All places are taken: an empty answer now, and the client asks again. */
static void park_or_answer(struct engine *engine, struct request *rq, struct reading *r)
{
    if (!park(engine, rq, &r->q)) {
        answer_page(engine, rq, &r->page);
    }
}

static bool go_on(struct engine *engine, struct request *rq, void *self, uint64_t until_ns)
{
    struct reading *r = self;
    struct event_page *page = &r->page;
    struct bt_error err;

    page->until_ns = until_ns;
    if (read_page(engine, &r->q, page, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else if (page->stopped) {
        return false;
    } else if (page->n == 0 && !page->full && page->deleted_n == 0 && r->may_wait) {
        r->q.from_seq = page->next_seq; /* nothing up to here: not to be looked at again */
        park_or_answer(engine, rq, r);
    } else {
        answer_page(engine, rq, page);
    }
    return true;
}

/* One that is parked, which has only rows of this cycle to look at. False: still nothing. */
static bool try_again(struct engine *engine, struct request *rq, struct parked_read *q, bool due)
{
    struct reading *r = reading_new(engine, rq, q);
    struct bt_error err;
    bool done = true;

    if (r == NULL) {
        return true;
    }
    r->page.until_ns = UINT64_MAX;
    if (read_page(engine, q, &r->page, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    } else if (r->page.n == 0 && !r->page.full && r->page.deleted_n == 0 && !due) {
        q->from_seq = r->page.next_seq;
        done = false;
    } else {
        answer_page(engine, rq, &r->page);
    }
    reading_done(r);
    return done;
}

/* A misspelt type would select nothing, which reads as "it did not happen". */
static enum bt_code check_types(const struct msg_events_read *m, struct bt_error *err)
{
    for (uint32_t i = 0; i < m->types_n; i++) {
        const enum record_type type = record_type_from_wire(m->types[i]);
        struct suggest near = suggest_start(m->types[i]);
        if (type != REC_COUNT && record_is_public(type)) {
            continue;
        }
        for (int k = 0; k < REC_COUNT; k++) {
            if (record_is_public((enum record_type)k)) {
                suggest_offer(&near, str_from(record_wire_type((enum record_type)k)));
            }
        }
        return err_set(err, BT_INVALID, "types[%u]: \"%.*s\" is no event%s%.*s%s", i,
                       STR_ARG(m->types[i]), near.best.ptr != NULL ? "; did you mean \"" : "",
                       STR_ARG(near.best),
                       near.best.ptr != NULL ? "\"?" : "; EVENTS.md lists them");
    }
    return BT_OK;
}

static bool join_types(const struct msg_events_read *m, struct parked_read *q)
{
    size_t at = 0;

    for (uint32_t i = 0; i < m->types_n; i++) {
        if (at + m->types[i].len + 3 > sizeof q->types) {
            return false;
        }
        q->types[at++] = ' ';
        memcpy(q->types + at, m->types[i].ptr, m->types[i].len);
        at += m->types[i].len;
    }
    if (at > 0) {
        q->types[at++] = ' ';
    }
    q->types[at] = 0;
    return true;
}

/* The engine calls back for as long as a read is parked. */
static void report_parked(struct engine *engine)
{
    const struct api *api = api_of(engine);
    msec deadline = MSEC_NEVER;

    for (uint32_t i = 0; i < API_PARKED_MAX && api->parked_n > 0; i++) {
        if (api->parked[i].asker.request != 0 && api->parked[i].deadline < deadline) {
            deadline = api->parked[i].deadline;
        }
    }
    engine_set_waiting(engine, api->parked_n, deadline);
}

static bool park(struct engine *engine, struct request *rq, struct parked_read *q)
{
    struct api *api = api_of(engine);

    for (uint32_t i = 0; i < API_PARKED_MAX; i++) {
        if (api->parked[i].asker.request == 0) {
            q->asker = asker_of(rq);
            api->parked[i] = *q;
            api->parked_n++;
            report_parked(engine);
            return true;
        }
    }
    return false;
}

void on_events_read(struct engine *engine, struct request *rq)
{
    struct parked_read q = {.deadline = 0};
    struct reading *reading;
    struct msg_events_read m;
    struct journal_plan row;
    struct bt_error err;

    if (!request_read(engine, rq, MSG_events_read, &m)) {
        return;
    }
    if (m.plan_id.len > 0) {
        if (request_plan_row(engine, m.plan_id, &row, &err) != BT_OK) {
            request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
            return;
        }
        q.plan_ix = row.ix;
    }
    q.from_seq = m.from_seq == 0 ? 1 : m.from_seq;
    q.limit = m.limit == 0 ? 100 : (uint32_t)m.limit;
    q.deadline = engine_now(engine) + m.wait_ms;
    if (check_types(&m, &err) != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
        return;
    }
    if (!join_types(&m, &q)) {
        request_refuse_text(engine, rq, BT_LIMIT, "types: at most 500 bytes of names");
        return;
    }
    if (!has_history(engine, rq, q.from_seq, m.after_event_id)) {
        return;
    }
    reading = reading_new(engine, rq, &q);
    if (reading != NULL) {
        reading->may_wait = m.wait_ms > 0;
        api_read_on(engine, rq,
                    &(struct long_read){
                        .state = reading, .turn = TURN_SCAN, .go_on = go_on, .done = reading_done});
    }
}

/* Whether the session of a parked read goes on, with what its credential may see now. False: it was
 * refused. */
static bool is_still_known(struct engine *engine, struct asker *q)
{
    const struct sessions *sessions = engine_options(engine)->sessions;
    struct request rq = asker_request(q);
    const struct identity *who;

    if (q->seal.n == 0) {
        return true;
    }
    who = sessions_who(sessions, &q->seal, engine_wall(engine));
    if (who != NULL) {
        q->who = *who;
        return true;
    }
    rq.seal = (struct seal){.n = 0};
    request_refuse_text(engine, &rq, BT_UNAUTHORIZED,
                        "the session has ended; begin again with auth.begin");
    return false;
}

void api_after_commit(struct engine *engine, bool committed)
{
    struct api *api = api_of(engine);

    for (uint32_t i = 0; i < API_PARKED_MAX; i++) {
        struct parked_read *q = &api->parked[i];
        if (q->asker.request != 0 && !is_still_known(engine, &q->asker)) {
            q->asker.request = 0;
            api->parked_n--;
        }
        const bool waits = q->asker.request != 0;
        const bool due = waits && q->deadline <= engine_now(engine);
        struct request rq = asker_request(&q->asker);

        engine_act_for(engine, &q->asker.who);
        if (waits && (committed || due) && try_again(engine, &rq, q, due)) {
            q->asker.request = 0;
            api->parked_n--;
        }
        engine_act_for(engine, NULL);
    }
    report_parked(engine);
}
