/*
 * What is kept of a message that an agent is asked about, until it has answered: what goes with a
 * plan of these words, and which plan and which review were there when the message came. An answer
 * that comes when they are not there any more changes nothing.
 */
#include "supervisor/conversation/conversation.h"

enum { MEMBERS = 5 };

static void note(struct turn_ctx *t)
{
    t->meant.plan = t->plan != NULL ? str_from(t->plan->id) : (struct str){"", 0};
    t->meant.revision = t->plan != NULL ? core_revision(engine_core(t->engine), t->plan->run) : 0;
    /* What was shown and has gone by now is nothing that a later review could be. */
    t->meant.awaited = t->plan == NULL        ? 0
                       : decision_is_shown(t) ? decision_awaited(t->plan)
                                              : INT64_MAX;
}

static void put_text(struct buf *out, const char *name, struct str text)
{
    doc_put_cstr(out, name);
    doc_put_str(out, text.len > 0 ? text : (struct str){"", 0});
}

/* Who decides when the agent takes the message for a decision. */
static void put_by(const struct actor *by, bool may_decide, struct buf *out)
{
    doc_put_map(out, 6);
    put_text(out, "id", by->id);
    doc_put_cstr(out, "decides");
    doc_put_bool(out, may_decide);
    put_text(out, "user", by->user);
    put_text(out, "host", by->host);
    put_text(out, "via", by->via);
    put_text(out, "address", by->address);
}

bool turn_context_keep(struct turn_ctx *t)
{
    struct buf bytes;
    struct bt_error err;
    enum bt_code code;

    note(t);
    buf_init(&bytes, LIMIT_CONTROL_BYTES);
    doc_put_map(&bytes, t->policy.ptr != NULL ? MEMBERS + 1 : MEMBERS);
    doc_put_cstr(&bytes, "planner");
    doc_put_str(&bytes, t->planner.len > 0 ? t->planner : (struct str){"", 0});
    doc_put_cstr(&bytes, "plan");
    doc_put_str(&bytes, t->meant.plan);
    doc_put_cstr(&bytes, "revision");
    doc_put_u64(&bytes, t->meant.revision);
    doc_put_cstr(&bytes, "awaited");
    doc_put_u64(&bytes, t->meant.awaited);
    doc_put_cstr(&bytes, "by");
    put_by(&t->by, t->may_decide, &bytes);
    if (t->policy.ptr != NULL) {
        doc_put_cstr(&bytes, "policy");
        doc_put_doc(&bytes, t->policy);
    }
    code = buf_check(&bytes, &err);
    if (code == BT_OK) {
        code = journal_blob_add(engine_journal(t->engine), bytes.at, bytes.len,
                                &t->turn.context_blob, &err);
    }
    buf_done(&bytes);
    if (code != BT_OK) {
        engine_fail(t->engine, &err);
    }
    return code == BT_OK;
}

static uint64_t number(struct doc map, struct str name)
{
    const struct doc value = doc_get(map, name);
    const struct doc_head head = value.ptr != NULL ? doc_head(value) : (struct doc_head){0};

    return value.ptr != NULL && head.kind == DOC_UINT ? head.u : 0;
}

/* Of a version without roles: everybody may. */
static bool may_decide(struct doc context)
{
    const struct doc value = doc_path(context, STR_LIT("by.decides"));

    return value.ptr == NULL || (doc_head(value).kind == DOC_BOOL && doc_head(value).b);
}

void turn_context_read(struct turn_ctx *t)
{
    struct doc context;
    struct bt_error err;

    t->meant = (struct intent_meant){.plan = {"", 0}};
    if (t->turn.context_blob != 0 &&
        engine_result_doc(t->engine, (struct blob_ref){.id = t->turn.context_blob}, &context,
                          &err) == BT_OK) {
        context = doc_copy(&t->arena, context);
        t->planner = doc_string(doc_get(context, STR_LIT("planner")));
        t->policy = doc_get(context, STR_LIT("policy"));
        t->meant.plan = doc_string(doc_get(context, STR_LIT("plan")));
        t->by = (struct actor){doc_string(doc_path(context, STR_LIT("by.user"))),
                               doc_string(doc_path(context, STR_LIT("by.host"))),
                               doc_string(doc_path(context, STR_LIT("by.via"))),
                               doc_string(doc_path(context, STR_LIT("by.address"))),
                               doc_string(doc_path(context, STR_LIT("by.id")))};
        t->may_decide = may_decide(context);
        t->meant.revision = number(context, STR_LIT("revision"));
        t->meant.awaited = number(context, STR_LIT("awaited"));
    }
}

bool turn_context_holds(struct turn_ctx *t, enum intent_kind intent)
{
    const char *why = NULL;

    if (!str_eq(t->meant.plan, str_from(t->plan->id))) {
        why = "By now another plan is open; nothing was changed.";
    } else if ((intent == INTENT_SKIP || intent == INTENT_SKIP_TO) &&
               t->meant.revision != core_revision(engine_core(t->engine), t->plan->run)) {
        why = "By now the plan has other steps; nothing was changed.";
    } else if ((intent == INTENT_YES || intent == INTENT_NO) &&
               t->meant.awaited != decision_awaited(t->plan)) {
        why = "By now something else waits for you; nothing was decided.";
    }
    if (why != NULL) {
        reply_only(t, "%s ", why);
        reply_where(t->plan, &t->reply);
    }
    return why == NULL;
}
