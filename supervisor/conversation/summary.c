/*
 * The summary of a session's older messages, for agents: a job `digest`, begun with a message
 * when more are not in it than agents see. In its `turn` stands the number of the last message that
 * it is to cover, from which the next try is reckoned: nothing is kept but its row.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/log.h"
#include "protocol/base/utf8.h"
#include "supervisor/conversation/conversation.h"

enum {
    DIGEST_MS = 120000,
    RETRY_MESSAGES = 6, /* after a try, before the next one */
    LOOKS_MAX = 200     /* jobs of the session since its last try; more: it is as if none was */
};

/* Also one that has ended in this turn: its summary is not in the session yet. */
static bool is_summarizing(struct engine *engine, struct str session_id)
{
    for (const struct open_plan *p = NULL; (p = open_plan_next(engine, p)) != NULL;) {
        if (p->job != NULL && p->job->kind == JOB_SUMMARY &&
            str_eq(str_from(p->job->of), session_id)) {
            return true;
        }
    }
    return false;
}

static bool find_summary_job(const struct journal_plan *job, void *self)
{
    struct uuid *id = self;
    const bool is_one = str_is(job->job, job_kind_name(JOB_SUMMARY));

    *id = is_one ? job->plan_id : *id;
    return !is_one;
}

/* The last message that the newest digest of the session was to cover, whatever became of it; 0 =
 * there is none. */
static enum bt_code tried_upto(struct engine *engine, struct str session_id, uint64_t *ret,
                               struct bt_error *err)
{
    struct uuid id = {{0}};
    struct journal_plan row;
    struct job *e;
    bool ok;
    enum bt_code code =
        journal_jobs(engine_journal(engine), session_id, 0, LOOKS_MAX, find_summary_job, &id, err);

    *ret = 0;
    if (code != BT_OK || uuid_is_nil(id)) {
        return code;
    }
    code = journal_plan_by_id(engine_journal(engine), id, &row, err);
    if (code != BT_OK) {
        return code;
    }
    e = job_of_document((struct doc){row.doc, row.doc_len}, &ok);
    if (!ok) {
        return err_set(err, BT_NOMEM, "out of memory for a job");
    }
    *ret = e != NULL ? strtoull(e->turn, NULL, 10) : 0;
    free(e);
    return BT_OK;
}

/* Whether the last try was only just: one that fails may have cost money. After one that went well
 * a new one is due later anyway. */
static bool waits(struct engine *engine, const struct journal_session *s)
{
    struct bt_error err;
    uint64_t upto;

    _Static_assert(SESSION_NEWEST + 1 >= SESSION_KEPT + RETRY_MESSAGES, "a success does not wait");
    if (tried_upto(engine, s->session_id, &upto, &err) != BT_OK) {
        log_warn("session.digest", "session=%.*s %s", STR_ARG(s->session_id), err.msg);
        return false;
    }
    return upto <= s->messages && s->messages - upto < SESSION_KEPT + RETRY_MESSAGES;
}

void conversation_summarize(struct engine *engine, struct str session_id)
{
    char upto[24];
    struct job_ask ask = {.kind = JOB_SUMMARY,
                          .of = session_id,
                          .session_id = session_id,
                          .skill = STR_LIT("summarize"),
                          .task = STR_LIT("Sum up the conversation."),
                          .timeout_ms = DIGEST_MS,
                          .tokens = UINT64_MAX,
                          .micros = UINT64_MAX};
    struct journal_session s;
    struct bt_error err;
    uint64_t run;

    if (journal_session(engine_journal(engine), session_id, &s, &err) != BT_OK ||
        s.messages < s.summarized + SESSION_NEWEST + 1 || is_summarizing(engine, session_id)) {
        return;
    }
    ask.agent_id = conversation_agent(engine, "summarize");
    if (ask.agent_id.len == 0 || waits(engine, &s)) {
        return;
    }
    (void)snprintf(upto, sizeof upto, "%" PRIu64, s.messages - SESSION_KEPT);
    ask.turn = str_from(upto);
    if (job_start(engine, &ask, &run, &err) != BT_OK) {
        log_warn("session.digest", "session=%.*s %s", STR_ARG(session_id), err.msg);
    }
}

static enum bt_code put_summary(struct engine *engine, struct journal_session *s, uint64_t upto,
                                struct str text, struct bt_error *err)
{
    struct buf bytes;
    enum bt_code code;

    text.len = utf8_cut(text.ptr, text.len, SESSION_SUMMARY_MAX);
    buf_init(&bytes, LIMIT_CONTROL_BYTES);
    doc_put_map(&bytes, 1);
    doc_put_cstr(&bytes, "text");
    doc_put_str(&bytes, text);
    code = buf_check(&bytes, err);
    if (code == BT_OK) {
        code = journal_blob_add(engine_journal(engine), bytes.at, bytes.len, &s->summary, err);
    }
    if (code == BT_OK) {
        s->summarized = upto;
        s->agent_calls = s->tool_calls = 0;
        code = journal_session_put(engine_journal(engine), s, err);
    }
    buf_done(&bytes);
    return code;
}

void conversation_summary_over(struct engine *engine, const struct job *e,
                               const struct job_end *end)
{
    const uint64_t upto = strtoull(e->turn, NULL, 10);
    struct journal_session s;
    struct buf text;
    struct bt_error err = {.msg = "it is empty"};
    bool cut;

    buf_init(&text, LIMIT_RESULT_BYTES);
    if (!end->ok ||
        engine_result_text(engine, end->result, SESSION_SUMMARY_MAX, &text, &cut, &err) != BT_OK ||
        text.len == 0) {
        log_warn("session.digest", "session=%s no summary: %.*s", e->of,
                 end->ok ? (int)strlen(err.msg) : (int)end->text.len,
                 end->ok ? err.msg : end->text.ptr);
    } else if (journal_session(engine_journal(engine), str_from(e->of), &s, &err) == BT_OK &&
               upto > s.summarized && upto <= s.messages &&
               put_summary(engine, &s, upto, buf_str(&text), &err) != BT_OK) {
        engine_fail(engine, &err);
    }
    buf_done(&text);
}
