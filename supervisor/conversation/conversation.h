/*
 * Sessions: people's messages, their effects, and the replies. A message of a person is a
 * turn; it ends when it is answered, which for a new plan is when the plan has ended. Messages and
 * turns are rows of the journal and nothing else: after a restart the end of a plan finds its turn
 * again. What a model made of a message is checked like what a person types. (session_slots.h is
 * something else: numbers for the limits of the core.)
 *
 *     session.say ─► intent_read (rules) ─► new plan │ change │ decision │ words
 *                         │ no rule fits, and an agent can converse
 *                         └─► job converse ─► conversation_job_over ─► the same
 */
#ifndef CONVERSATION_CONVERSATION_H
#define CONVERSATION_CONVERSATION_H

#include "supervisor/conversation/intent_rules.h"
#include "supervisor/dispatch/job.h"
#include "supervisor/engine/request.h"
#include "supervisor/query/session_view.h"

enum {
    SESSION_ANSWER_MAX = 65000, /* of an answer as it is stored; the whole is in plan.result */
    SESSION_KEPT = 10 /* of SESSION_NEWEST messages, those that a new summary leaves out */
};

/* What a message was about when it came, for an answer that comes later. */
struct intent_meant {
    struct str plan; /* "" = none was open */
    uint64_t revision, awaited;
};

/* A turn in hand. */
struct turn_ctx {
    struct engine *engine;
    struct journal_turn turn; /* its strings are in the arena */
    struct str text;          /* of the message */
    struct str reasoning;     /* why the model takes it as it does; "" = no model was asked */
    struct str planner;       /* of a plan that it leads to */
    struct doc policy;
    struct actor by;        /* on whose behalf; "" = the client did not say */
    bool may_decide;        /* what waits for a reviewer */
    struct str shown;       /* the id of the review that the person saw last; "" = not known */
    struct open_plan *plan; /* the open plan of the session; NULL */
    struct arena arena;
    struct buf reply;
    struct str action;
    bool waits; /* the turn goes on until turn.plan has ended */
    struct intent_meant meant;
};

void turn_init(struct turn_ctx *t, struct engine *engine, struct str session_id);
void turn_done(struct turn_ctx *t);

/* ---- turn.c ---- */
/* Message, turn and turn_start. False: the journal has failed (engine_has_failed). */
bool turn_begin(struct turn_ctx *t);
/* What became of it: waits, or answer and turn_end. */
bool turn_end(struct turn_ctx *t);
/* ---- hooks of the engine and of dispatch ---- */
/* A plan has ended: its answer becomes a message and ends the turn that waits for it. The last
 * not_done bytes of the answer are kept when it is cut. */
BT_MUST_CHECK enum bt_code conversation_plan_ended(struct engine *engine, const struct open_plan *p,
                                                   const struct record *rec, struct str summary,
                                                   size_t not_done, struct bt_error *err);
/* After a recovery: turns whose plan or job did not come back are ended. */
BT_MUST_CHECK enum bt_code conversation_recover(struct engine *engine, struct bt_error *err);
/* A job of a session has ended. */
void conversation_job_over(struct engine *engine, const struct job *e, const struct job_end *end);

/* ---- intent_do.c: what was wanted, done or refused in words ---- */
/* On t->plan, which must not be NULL. */
void intent_do(struct turn_ctx *t, const struct intent *s);
/* The steps of the ranges, or to one, on the open plan. */
void intent_skip(struct turn_ctx *t, const struct intent_range *ranges, uint32_t n);
void intent_skip_to(struct turn_ctx *t, uint32_t number);
/* Feeds an event about the open plan. False: the core rejected it, and the reply has the reason. */
bool intent_feed(struct turn_ctx *t, struct core_event *ev);
/* It was done: the reply is empty and to be written, the turn is about the open plan. */
void intent_done(struct turn_ctx *t, const char *action);
/* The number of the step as the person gave it, 1 to n_steps; 0 after replying that there is none.
 */
uint32_t intent_number(struct turn_ctx *t, uint32_t said);

/* ---- intent_decide.c: what waits for a person ---- */
void intent_decide(struct turn_ctx *t, const struct intent *s, enum review_decision decision);
bool decision_is_awaited(const struct open_plan *p);
/* Distinguishes what waits for a person now from what waited before; 0 = nothing waits. */
uint64_t decision_awaited(const struct open_plan *p);
/* Whether one of the reviews that wait is the one that was shown (t->shown), or none was. On
 * t->plan, which must not be NULL. */
bool decision_is_shown(const struct turn_ctx *t);
/* Whether the open plan waits for words, which any text then is. */
bool decision_is_answer(const struct open_plan *p);

/* ---- turn_context.c: until an agent has answered ---- */
/* Keeps what the turn is about (turn.context_blob). False: the journal has failed. */
bool turn_context_keep(struct turn_ctx *t);
void turn_context_read(struct turn_ctx *t);
/* Whether the open plan, which must be there, is what was meant; false after replying that it is
 * not. */
bool turn_context_holds(struct turn_ctx *t, enum intent_kind intent);

/* ---- intent_plan.c: a new one ---- */
struct submission;
/* BT_OK: `d` can be started. Otherwise the reply has the reason. submission_done in both cases. */
BT_MUST_CHECK enum bt_code intent_submission(struct turn_ctx *t, struct str goal,
                                             struct submission *d);
void intent_start(struct turn_ctx *t, struct submission *d);

/* ---- reply.c: words ---- */
/* The answer is these words, and nothing changes. */
void reply_only(struct turn_ctx *t, const char *fmt, ...) BT_PRINTF(2, 3);
void reply_where(const struct open_plan *p, struct buf *out);
/* When no plan is open: what became of the last one. */
void reply_last(struct engine *engine, struct str session_id, struct buf *out);
/* To what no rule fits, when there is no model to ask. */
void reply_without_model(struct turn_ctx *t);
void reply_quote(struct buf *out, struct str text, size_t max);

/* ---- ask.c: what agents are asked about a session ---- */
/* The agent that has the skill and is there, the orchestrator first; empty: none. */
struct str conversation_agent(struct engine *engine, const char *skill);
/* The turn waits for what an agent makes of it. False: it could not be asked. */
bool conversation_converse(struct turn_ctx *t);

/* ---- summary.c: the summary of the older messages ---- */
/* Asks for a new one when one is due; after one that failed only some messages later. */
void conversation_summarize(struct engine *engine, struct str session_id);
void conversation_summary_over(struct engine *engine, const struct job *e,
                               const struct job_end *end);

/* ---- requests ---- */
/* Answers session.say. */
void conversation_say(struct engine *engine, struct request *rq);
#endif
