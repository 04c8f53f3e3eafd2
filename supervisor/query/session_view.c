#include "supervisor/query/session_view.h"

#include "protocol/base/clock.h"
#include "protocol/base/utf8.h"

enum { AGENT_TEXT_MAX = 16384 /* of one message, for agents */ };

struct reading {
    struct session_messages *to;
    uint32_t cap;
    bool no_memory;
};

/* They come newest first and are kept from the end on. */
static bool keep(const struct journal_message *m, void *self)
{
    struct reading *r = self;
    struct session_messages *to = r->to;
    struct journal_message *kept = &to->at[r->cap - ++to->n];

    *kept = *m;
    kept->role = arena_str(to->arena, m->damaged ? STR_LIT("assistant") : m->role);
    kept->text = arena_str(to->arena, m->damaged ? STR_LIT("[damaged in the journal]") : m->text);
    r->no_memory = kept->role.ptr == NULL || kept->text.ptr == NULL;
    return !r->no_memory && to->n < r->cap;
}

enum bt_code session_messages(struct engine *engine, struct str session_id, uint64_t before,
                              uint32_t limit, struct arena *arena, struct session_messages *ret,
                              struct bt_error *err)
{
    struct reading r = {.to = ret, .cap = limit};
    enum bt_code code;

    *ret = (struct session_messages){.arena = arena};
    ret->at = arena_alloc(arena, (limit + 1u) * sizeof *ret->at);
    if (ret->at == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for messages");
    }
    code = journal_messages(engine_journal(engine), session_id, before, limit, keep, &r, err);
    if (code == BT_OK && r.no_memory) {
        code = err_set(err, BT_NOMEM, "out of memory for messages");
    }
    ret->at += limit - ret->n;
    return code;
}

struct str session_summary(struct engine *engine, const struct journal_session *s,
                           struct arena *arena)
{
    struct doc doc = {NULL, 0};
    struct bt_error err;
    struct str text = {"", 0};

    if (s->summary != 0 &&
        engine_result_doc(engine, (struct blob_ref){.id = s->summary}, &doc, &err) == BT_OK) {
        text = arena_str(arena, doc_string(doc_get(doc, STR_LIT("text"))));
    }
    return text.ptr == NULL ? (struct str){"", 0} : text;
}

static void put_message(struct buf *out, const struct journal_message *m, size_t room)
{
    char when[CLOCK_ISO_LEN + 1];
    const size_t n = m->text.len == 0 ? 0 : utf8_cut(m->text.ptr, m->text.len, room);

    clock_iso(m->wall, when);
    doc_put_map(out, 3u + (n < m->text.len || m->cut ? 1u : 0));
    doc_put_cstr(out, "role");
    doc_put_str(out, m->role);
    doc_put_cstr(out, "text");
    doc_put_str(out, (struct str){m->text.ptr, n});
    doc_put_cstr(out, "timestamp");
    doc_put_cstr(out, when);
    if (n < m->text.len || m->cut) {
        doc_put_cstr(out, "truncated");
        doc_put_bool(out, true);
    }
}

/* How much of each message fits, the newest first; the first one that is shown. */
static uint32_t share_room(const struct session_messages *all, size_t *rooms)
{
    size_t left = SESSION_CONTEXT_MAX;
    uint32_t first = all->n;

    while (first > 0 && left > 0) {
        const struct journal_message *m = &all->at[first - 1];
        size_t n = m->text.len < AGENT_TEXT_MAX ? m->text.len : AGENT_TEXT_MAX;
        n = n < left ? n : left;
        rooms[--first] = n;
        left -= n;
    }
    return first;
}

/* The summary, and what is in neither it nor the messages from `first` on. */
static struct str told_summary(struct engine *engine, const struct journal_session *s,
                               uint64_t first, struct arena *arena, uint64_t *ret_left_out)
{
    const struct str summary = session_summary(engine, s, arena);
    const uint64_t covered = summary.len > 0 ? s->summarized : 0;
    struct str told = summary;
    struct buf text;

    *ret_left_out = first > covered + 1 ? first - covered - 1 : 0;
    if (*ret_left_out > 0) {
        buf_init(&text, SESSION_SUMMARY_MAX + 128);
        buf_add_str(&text, summary);
        buf_printf(&text, "%s%llu older message%s left out", summary.len > 0 ? "\n\n" : "",
                   (unsigned long long)*ret_left_out, *ret_left_out == 1 ? " is" : "s are");
        told = text.bad == BT_OK ? arena_str(arena, buf_str(&text)) : summary;
        buf_done(&text);
    }
    return told.ptr != NULL ? told : (struct str){"", 0};
}

enum bt_code session_context_of(struct engine *engine, struct str session_id, uint64_t before,
                                struct arena *arena, struct session_context *ret,
                                struct bt_error *err)
{
    size_t rooms[SESSION_NEWEST];
    struct session_messages all;
    struct journal_session s;
    struct buf out;
    uint32_t first;
    enum bt_code code = journal_session(engine_journal(engine), session_id, &s, err);

    *ret = (struct session_context){.summary = {"", 0}};
    if (code == BT_OK) {
        code = session_messages(engine, session_id, before, SESSION_NEWEST, arena, &all, err);
    }
    if (code != BT_OK || all.n == 0) {
        return code == BT_NOT_FOUND ? BT_OK : code;
    }
    buf_init(&out, LIMIT_CONTROL_BYTES);
    first = share_room(&all, rooms);
    doc_put_array(&out, all.n - first);
    for (uint32_t i = first; i < all.n; i++) {
        put_message(&out, &all.at[i], rooms[i]);
    }
    code = buf_check(&out, err);
    if (code == BT_OK) {
        ret->messages = doc_copy(arena, doc_from_buf(&out));
        ret->summary = told_summary(engine, &s, all.at[first].n, arena, &ret->left_out);
        code = ret->messages.ptr == NULL ? err_set(err, BT_NOMEM, "out of memory for messages")
                                         : BT_OK;
    }
    buf_done(&out);
    return code;
}
