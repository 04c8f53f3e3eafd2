/* The open plans: their memory, by the slot of their run, and their results. */
#include <stdlib.h>
#include <string.h>

#include "protocol/artifact/here.h"
#include "protocol/base/assert.h"
#include "protocol/base/utf8.h"
#include "supervisor/core/plan/template.h"
#include "supervisor/engine/engine_internal.h"
#include "supervisor/plan/about.h"
#include "supervisor/plan/pack.h"

enum { STEP_TASK_MAX = 1024, UTF8_MAX = 4 /* bytes of a character */ };

static uint32_t slot_of(uint64_t run)
{
    return (uint32_t)run;
}

struct open_plan *open_plan_of_run(struct engine *engine, uint64_t run)
{
    uint32_t slot = slot_of(run);

    if (run == 0 || slot >= engine->runs_used || engine->plans[slot].run == run) {
        return run == 0 || slot >= engine->runs_used ? NULL : &engine->plans[slot];
    }
    for (uint32_t i = 0; i < engine->ended_n; i++) {
        if (engine->ended[i].run == run) {
            return &engine->ended[i];
        }
    }
    return NULL;
}

/* ---- by id: the slots in a table with linear probing and backward-shift deletion, as in
 * protocol/base/map. Its keys are the ids of the plans themselves. */

static uint32_t home_of(const struct engine *engine, struct uuid id)
{
    return (uint32_t)str_hash((struct str){(const char *)&id, sizeof id}) & (engine->by_id_cap - 1);
}

/* The place of the id, or the free place for it. */
static uint32_t place_of(const struct engine *engine, struct uuid id)
{
    uint32_t i = home_of(engine, id);

    while (engine->by_id[i] != 0 && !uuid_eq(engine->plans[engine->by_id[i] - 1].plan_id, id)) {
        i = (i + 1) & (engine->by_id_cap - 1);
    }
    return i;
}

static void by_id_grow(struct engine *engine)
{
    const uint32_t before_cap = engine->by_id_cap;
    uint32_t *before = engine->by_id;

    engine->by_id_cap = before_cap == 0 ? 16 : before_cap * 2;
    engine->by_id = calloc(engine->by_id_cap, sizeof *engine->by_id);
    ASSERT(engine->by_id != NULL); /* half a cycle cannot be taken back: crash, replay */
    for (uint32_t i = 0; i < before_cap; i++) {
        if (before[i] != 0) {
            engine->by_id[place_of(engine, engine->plans[before[i] - 1].plan_id)] = before[i];
        }
    }
    free(before);
}

/* The plan is in its slot. */
static void by_id_put(struct engine *engine, uint32_t slot)
{
    uint32_t i;

    if (engine->by_id_n + 1 > engine->by_id_cap / 4 * 3) {
        by_id_grow(engine);
    }
    i = place_of(engine, engine->plans[slot].plan_id);
    engine->by_id_n += engine->by_id[i] == 0 ? 1 : 0;
    engine->by_id[i] = slot + 1;
}

/* The plan is still in its slot. */
static void by_id_remove(struct engine *engine, uint32_t slot)
{
    const uint32_t mask = engine->by_id_cap - 1;
    uint32_t hole = place_of(engine, engine->plans[slot].plan_id);

    ASSERT(engine->by_id[hole] == slot + 1);
    for (uint32_t i = (hole + 1) & mask; engine->by_id[i] != 0; i = (i + 1) & mask) {
        const uint32_t home = home_of(engine, engine->plans[engine->by_id[i] - 1].plan_id);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            engine->by_id[hole] = engine->by_id[i];
            hole = i;
        }
    }
    engine->by_id[hole] = 0;
    engine->by_id_n--;
}

/* The core gives a slot away as soon as its run has ended; what the cycle still has to do for that
 * run needs its plan. */
static void set_aside(struct engine *engine, struct open_plan *p)
{
    if (engine->ended_n == engine->ended_cap) {
        uint32_t cap = engine->ended_cap == 0 ? 16 : engine->ended_cap * 2;
        struct open_plan *at = realloc(engine->ended, cap * sizeof *at);
        ASSERT(at != NULL); /* half a cycle cannot be taken back: crash, replay */
        engine->ended = at;
        engine->ended_cap = cap;
    }
    by_id_remove(engine, (uint32_t)(p - engine->plans));
    engine->ended[engine->ended_n++] = *p;
    *p = (struct open_plan){0};
}

struct open_plan *open_plan_by_id(struct engine *engine, struct str id)
{
    struct uuid uuid;
    uint32_t at;

    if (engine->by_id_n == 0 || !uuid_parse(id, &uuid)) {
        return NULL;
    }
    at = engine->by_id[place_of(engine, uuid)];
    return at == 0 ? NULL : &engine->plans[at - 1];
}

static bool is_open(const struct open_plan *p)
{
    return p->job == NULL && p->plan->child.kind == CHILD_OF_NONE &&
           !plan_is_final(core_block_run(p->block)->status);
}

struct open_plan *open_plan_next(struct engine *engine, const struct open_plan *p)
{
    for (uint32_t i = p == NULL ? 0 : (uint32_t)(p - engine->plans) + 1; i < engine->runs_used;
         i++) {
        if (engine->plans[i].run != 0) {
            return &engine->plans[i];
        }
    }
    return NULL;
}

static struct open_plan *newest_of_session(struct engine *engine, struct str session_id,
                                           bool dry_too)
{
    struct open_plan *newest = NULL;

    for (struct open_plan *p = NULL; (p = open_plan_next(engine, p)) != NULL;) {
        if (is_open(p) && str_eq(p->plan->session_id, session_id) &&
            (dry_too || !p->plan->dry_run) && (newest == NULL || p->ix > newest->ix)) {
            newest = p;
        }
    }
    return newest;
}

struct open_plan *open_plan_of_session(struct engine *engine, struct str session_id)
{
    return newest_of_session(engine, session_id, true);
}

struct open_plan *open_plan_running_in(struct engine *engine, struct str session_id)
{
    return newest_of_session(engine, session_id, false);
}

void open_plans_of_sessions(struct engine *engine, const struct map *sessions,
                            struct open_plan **ret)
{
    for (struct open_plan *p = NULL; (p = open_plan_next(engine, p)) != NULL;) {
        const uint32_t at = is_open(p) ? map_get(sessions, p->plan->session_id) : MAP_NONE;
        if (at != MAP_NONE && (ret[at] == NULL || p->ix > ret[at]->ix)) {
            ret[at] = p;
        }
    }
}

void open_plan_await_job(struct engine *engine, struct open_plan *p, uint64_t run)
{
    engine->asking += (run != 0 ? 1u : 0u) - (p->asked != 0 ? 1u : 0u);
    p->asked = run;
}

static void copy_text(char *to, size_t cap, struct str s)
{
    size_t n = s.len < cap - 1 ? s.len : cap - 1;

    if (n > 0) {
        memcpy(to, s.ptr, n);
    }
    to[n] = 0;
}

struct job *job_of_document(struct doc document, bool *ret_ok)
{
    struct plan_job about;
    struct job *e;

    *ret_ok = true;
    plan_job_of(document, &about);
    if (about.kind == JOB_NONE) {
        return NULL;
    }
    e = calloc(1, sizeof *e);
    *ret_ok = e != NULL;
    if (e != NULL) {
        e->kind = about.kind;
        copy_text(e->of, sizeof e->of, about.of);
        copy_text(e->turn, sizeof e->turn, about.turn);
    }
    return e;
}

void *open_plan_block(const struct plan *plan)
{
    return calloc(1, core_run_size(plan));
}

void open_plan_bind(struct engine *engine, struct open_plan *plan, uint64_t run)
{
    struct open_plan *p = &engine->plans[slot_of(run)];

    ASSERT(slot_of(run) < engine->runs_max);
    engine->runs_used = engine->runs_used > slot_of(run) ? engine->runs_used : slot_of(run) + 1;
    if (p->run != 0) {
        set_aside(engine, p);
    }
    *p = *plan;
    *plan = (struct open_plan){0};
    p->run = run;
    engine->jobs += p->job != NULL ? 1 : 0;
    engine->children += p->plan->child.kind != CHILD_OF_NONE ? 1 : 0;
    uuid_format(p->plan_id, p->id);
    by_id_put(engine, slot_of(run));
}

void open_plan_trace(const struct open_plan *p, struct trace *ret)
{
    *ret = open_plan_more(p)->origin.trace;
    if (ret->span == 0) {
        trace_of_plan(p->plan_id, ret);
    }
    ret->span = trace_span((struct str){p->id, UUID_TEXT_LEN}, TRACE_STEP, TRACE_PLAN, 0);
}

const struct open_plan_more *open_plan_more(const struct open_plan *p)
{
    static const struct open_plan_more nothing;

    return p->more != NULL ? p->more : &nothing;
}

struct open_plan_more *open_plan_more_change(struct open_plan *p)
{
    if (p->more == NULL) {
        p->more = calloc(1, sizeof *p->more);
        ASSERT(p->more != NULL);
    }
    return p->more;
}

bool open_plan_own(struct open_plan *p, struct str owner)
{
    char *copy = owner.len > 0 ? malloc(owner.len + 1) : NULL;

    if (copy != NULL) {
        copy_text(copy, owner.len + 1, owner);
    }
    free(p->owner);
    p->owner = copy;
    return owner.len == 0 || copy != NULL;
}

void open_plan_done(struct open_plan *p)
{
    free(p->block);
    free(p->owner);
    step_notes_done(&p->notes);
    plan_pack_drop(p->plan);
    free(p->job);
    if (p->more != NULL) {
        signals_done(&p->more->signals);
        free((void *)(uintptr_t)p->more->failure.ptr);
        free(p->more);
    }
    *p = (struct open_plan){.session = SESSION_SLOT_NONE};
}

void open_plan_keep_failure(struct open_plan *p, struct str text)
{
    char *copy = text.len > 0 ? malloc(text.len) : NULL;

    if (copy != NULL) { /* without it the run's own, shorter text is used */
        memcpy(copy, text.ptr, text.len);
    }
    if (copy != NULL || p->more != NULL) {
        struct str *failure = &open_plan_more_change(p)->failure;
        free((void *)(uintptr_t)failure->ptr);
        *failure = (struct str){copy, copy != NULL ? text.len : 0};
    }
}

/* A run holds no text, or the beginning of one: it does not know why the step failed that a replan
 * drops, and has the beginning of the error of one that was searched for in vain. The step's notes
 * have all of it. A copy, because the notes end with the step. */
struct str open_plan_step_failure(struct open_plan *p, const struct record *rec,
                                  char mem[OPEN_PLAN_ERROR_MAX])
{
    const struct note *note = step_notes_of(&p->notes, rec->step);
    const struct rec_step_completed *end = REC(rec, step_completed);
    const bool dropped = end->status == STEP_FAILED && end->reason == REASON_SUPERSEDED;
    const struct str all = note != NULL ? note_text(note->error) : (struct str){"", 0};
    struct str error = {mem, 0};

    if (all.len == 0) {
        return rec->text;
    }
    const bool cut = rec->text.len + UTF8_MAX > STEP_OWN_TEXT && rec->text.len < all.len &&
                     memcmp(rec->text.ptr, all.ptr, rec->text.len) == 0;
    if (!dropped && !cut) {
        return rec->text;
    }
    error.len = utf8_cut(all.ptr, all.len, OPEN_PLAN_ERROR_MAX);
    memcpy(mem, all.ptr, error.len);
    if (cut) {
        open_plan_keep_failure(p, error); /* the plan may end with it */
    }
    return error;
}

void open_plan_keep(struct open_plan *p, const struct record *rec, const struct plan *revised)
{
    step_notes_record(&p->notes, rec);
    if (p->more != NULL || rec->type == REC_SIGNAL_RECEIVED) {
        signals_record(&open_plan_more_change(p)->signals, rec);
    }
    if (rec->type == REC_STEP_COMPLETED && REC(rec, step_completed)->state.id != 0) {
        open_plan_more_change(p)->state = REC(rec, step_completed)->state;
    }
    if (rec->type == REC_SYNTHESIS_STARTED || rec->type == REC_COMPENSATION_STARTED) {
        open_plan_keep_failure(p, open_plan_failure(p, rec->text));
    } else if (rec->type == REC_SYNTHESIS_RETRY && revised != NULL) {
        for (uint32_t i = 0; i < revised->n_steps; i++) {
            if (revised->steps[i].revision == REC(rec, revision)->revision) {
                step_notes_feedback(&p->notes, i, rec->text);
            }
        }
    }
}

struct str open_plan_step_task(struct engine *engine, const struct open_plan *p, uint32_t step,
                               struct buf *into)
{
    const struct str task = p->plan->steps[step].task;
    struct template_ref ref;
    size_t from = 0;
    size_t keep;

    buf_clear(into);
    if (p->job != NULL || p->plan->child.kind == CHILD_OF_UNDO ||
        !template_next(task, &from, &ref) || !engine->hooks.step_task(engine, p, step, into) ||
        into->bad != BT_OK || into->len == 0) {
        return task;
    }
    keep = utf8_cut((const char *)into->at, into->len, STEP_TASK_MAX);
    if (keep < into->len) {
        buf_truncate(into, keep);
        buf_add_cstr(into, "…");
    }
    return buf_str(into);
}

struct str open_plan_failure(const struct open_plan *p, struct str text)
{
    const struct str whole = open_plan_more(p)->failure;
    const bool cut =
        text.len > 0 && text.len < whole.len && memcmp(text.ptr, whole.ptr, text.len) == 0;

    return cut ? whole : text;
}

enum review_kind open_plan_review(const struct open_plan *p)
{
    return (core_block_run(p->block)->paused & 1u << PAUSE_PLANNING) != 0 ? REVIEW_PLANNING
                                                                          : REVIEW_PLAN;
}

struct str open_plan_prompt(const struct open_plan *p, uint32_t step)
{
    const struct note *t = step_notes_of(&p->notes, step);

    return note_text(t != NULL ? t->prompt : NULL);
}

void open_plan_revise(struct open_plan *p, struct new_revision *revision)
{
    const struct new_revision before = {.plan = p->plan,
                                        .block = p->block,
                                        .document = open_plan_more(p)->document,
                                        .text = revision->text};

    p->plan = revision->plan;
    p->block = revision->block;
    open_plan_more_change(p)->document = revision->document;
    *revision = before;
}

void new_revision_done(struct new_revision *r)
{
    free(r->block);
    plan_pack_drop(r->plan);
    buf_done(&r->text);
    *r = (struct new_revision){0};
}

void open_plan_session(struct engine *engine, struct open_plan *p)
{
    p->session = session_slots_take(&engine->sessions, p->plan->session_id);
    p->plan->session = p->session == SESSION_SLOT_NONE ? 0 : p->session;
}

void open_plan_session_drop(struct engine *engine, struct open_plan *p)
{
    session_slots_drop(&engine->sessions, p->session);
    p->session = SESSION_SLOT_NONE;
}

void open_plan_remove(struct engine *engine, uint64_t run)
{
    struct open_plan *p = open_plan_of_run(engine, run);

    if (p == NULL) {
        return;
    }
    open_plan_session_drop(engine, p);
    rates_drop(engine, p->plan);
    if (p == &engine->plans[slot_of(run)]) {
        by_id_remove(engine, slot_of(run));
        open_plan_done(p);
    } else {
        open_plan_done(p);
        *p = engine->ended[--engine->ended_n];
    }
}

enum bt_code engine_result_store(struct engine *engine, const struct buf *bytes,
                                 struct blob_ref *ret, struct bt_error *err)
{
    enum bt_code code = journal_blob_add(engine->journal, bytes->at, bytes->len, &ret->id, err);

    if (code == BT_OK) {
        ret->len = bytes->len;
        blob_cache_put(&engine->cache, ret->id, bytes->at, bytes->len);
    }
    return code;
}

void engine_result_forget(struct engine *engine, struct blob_ref ref)
{
    blob_cache_forget(&engine->cache, ref.id);
}

enum bt_code engine_result_doc(struct engine *engine, struct blob_ref ref, struct doc *ret,
                               struct bt_error *err)
{
    struct buf bytes;
    struct buf here;
    bool absent = false;
    enum bt_code code;

    *ret = blob_cache_get(&engine->cache, ref.id);
    if (ret->ptr != NULL || ref.id == 0) {
        return BT_OK;
    }
    buf_init(&bytes, LIMIT_STEP_BYTES);
    buf_init(&here, 2 * LIMIT_STEP_BYTES);
    code = journal_blob_get(engine->journal, ref.id, &bytes, err);
    if (code == BT_OK) {
        code = artifact_here(engine->opt.artifact_root, doc_from_buf(&bytes), &here, &absent, err);
    }
    if (code == BT_OK) {
        const struct buf *given = here.len > 0 ? &here : &bytes;
        blob_cache_put(&engine->cache, ref.id, given->at, given->len);
        *ret = blob_cache_get(&engine->cache, ref.id);
        if (ret->ptr == NULL) {
            code = err_set(err, BT_NOMEM, "out of memory for a result of %zu bytes", given->len);
        } else if (absent) {
            blob_cache_pass(&engine->cache, ref.id); /* its files may still come */
        }
    }
    buf_done(&here);
    buf_done(&bytes);
    return code;
}

/*
 * Data as JSON text, cut to what is wanted or to what the buffer holds: a byte of a document is at
 * most six of text
 * ("null," or an escape), so that 3 MiB of result may become 18. A cut is reported, it is never a
 * failure.
 */
static enum bt_code data_text(struct doc data, size_t max, struct buf *out, bool *ret_cut,
                              struct bt_error *err)
{
    size_t room = out->max - out->len;
    struct buf text;
    size_t keep;
    enum bt_code code;

    max = max == 0 || max > room ? room : max;
    buf_init(&text, data.len * 8 + 64);
    code = doc_to_text(data, &text, err);
    *ret_cut = text.len > max;
    if (code == BT_OK) {
        keep = *ret_cut ? utf8_cut((const char *)text.at, text.len, max) : text.len;
        buf_add(out, text.at, keep);
        code = buf_check(out, err);
    }
    buf_done(&text);
    return code;
}

enum bt_code engine_result_text(struct engine *engine, struct blob_ref ref, size_t max,
                                struct buf *out, bool *ret_cut, struct bt_error *err)
{
    struct doc doc;
    struct doc text;
    struct doc files;
    size_t keep;
    enum bt_code code = engine_result_doc(engine, ref, &doc, err);

    *ret_cut = false;
    if (code != BT_OK || doc.ptr == NULL) {
        return code;
    }
    files = doc_get(doc, STR_LIT("artifacts"));
    text = doc_get(doc, STR_LIT("text"));
    if (text.ptr != NULL) {
        struct str s = doc_string(text);
        keep = max == 0 ? s.len : utf8_cut(s.ptr, s.len, max);
        *ret_cut = keep < s.len;
        buf_add(out, s.ptr, keep);
        return result_files_put(doc, out, err);
    }
    text = doc_get(doc, STR_LIT("data"));
    if (text.ptr == NULL && doc_path(files, STR_LIT("0.bytes")).ptr == NULL) {
        text = files; /* no files: URLs, or data in place */
    }
    code = text.ptr == NULL ? BT_OK : data_text(text, max, out, ret_cut, err);
    return code == BT_OK ? result_files_put(doc, out, err) : code;
}

enum bt_code engine_result_cut(struct engine *engine, struct blob_ref ref, size_t max,
                               struct buf *out, struct result_cut *ret, struct bt_error *err)
{
    struct doc doc;
    enum bt_code code = engine_result_doc(engine, ref, &doc, err);

    *ret = (struct result_cut){.member = ""};
    return code != BT_OK || doc.ptr == NULL ? code : result_text_put(doc, max, out, ret, err);
}

enum bt_code engine_result_length(struct engine *engine, struct blob_ref ref, uint64_t *ret,
                                  struct bt_error *err)
{
    struct doc doc;
    enum bt_code code = engine_result_doc(engine, ref, &doc, err);

    *ret = 0;
    return code != BT_OK || doc.ptr == NULL ? code : result_text_length(doc, ret, err);
}
