#include "supervisor/engine/access.h"

#include <stdio.h>

#include "supervisor/auth/sessions.h"
#include "supervisor/engine/engine_internal.h"
#include "supervisor/engine/request.h"
#include "supervisor/engine/schedule_key.h"

enum { NAME_SEPARATOR = ':', KEY_SEPARATOR = 0x1f }; /* no credential's id has it */

bool access_role_does(enum role have, enum role need)
{
    static const uint8_t rank[ROLE_COUNT] = {
        [ROLE_OBSERVER] = 1, [ROLE_SUBMITTER] = 2, [ROLE_REVIEWER] = 3, [ROLE_ADMIN] = 4};

    if ((unsigned)have >= ROLE_COUNT || (unsigned)need >= ROLE_COUNT) {
        return false;
    }
    if (have == ROLE_AGENT || need == ROLE_AGENT) {
        return have == need || have == ROLE_ADMIN;
    }
    return rank[have] >= rank[need];
}

struct str access_owner(const struct identity *who)
{
    const struct str id = who != NULL ? str_from(who->id) : (struct str){"", 0};

    return str_is(id, identity_local()->id) ? (struct str){"", 0} : id;
}

struct str access_owner_shown(struct str owner)
{
    return owner.len > 0 ? owner : str_from(identity_local()->id);
}

bool access_sees_all(const struct identity *who)
{
    return who == NULL || who->role == ROLE_OBSERVER || who->role == ROLE_REVIEWER ||
           who->role == ROLE_ADMIN;
}

bool access_sees(const struct identity *who, struct str owner)
{
    return access_sees_all(who) ||
           (who->role == ROLE_SUBMITTER && (str_eq(access_owner(who), owner) ||
                                            identity_is_granted(who, access_owner_shown(owner))));
}

bool access_changes(const struct identity *who, struct str owner)
{
    return who == NULL || who->role == ROLE_ADMIN ||
           (access_role_does(who->role, ROLE_SUBMITTER) && str_eq(access_owner(who), owner));
}

void access_client_key(const struct identity *who, struct str client_key, struct buf *out)
{
    const struct str owner = access_owner(who);

    if (owner.len > 0 && client_key.len > 0) {
        buf_add_str(out, owner);
        buf_add_byte(out, KEY_SEPARATOR);
    }
    buf_add_str(out, client_key);
}

void access_own_name(const struct identity *who, struct str asked, char ret[ACCESS_NAME_MAX + 1])
{
    const size_t n = who != NULL ? strlen(who->id) : 0;

    ret[0] = 0;
    if (who != NULL && who->role == ROLE_SUBMITTER && asked.len <= LIMIT_ID_BYTES &&
        !(asked.len > n && asked.ptr[n] == NAME_SEPARATOR && memcmp(asked.ptr, who->id, n) == 0)) {
        (void)snprintf(ret, ACCESS_NAME_MAX + 1, "%s%c%.*s", who->id, NAME_SEPARATOR,
                       STR_ARG(asked));
    }
}

/* ---- sessions ---- */

struct newest {
    bool found;
    char *owner;
};

static bool take_newest(const struct journal_plan *p, void *self)
{
    struct newest *n = self;

    n->found = true;
    (void)snprintf(n->owner, LIMIT_ID_BYTES + 1, "%.*s", STR_ARG(p->owner));
    return false;
}

enum bt_code access_session_owner(struct engine *engine, struct str session_id, bool *ret_known,
                                  char ret[LIMIT_ID_BYTES + 1], struct bt_error *err)
{
    struct newest n = {.owner = ret};
    struct journal_session s;
    enum bt_code code = journal_session(engine->journal, session_id, &s, err);

    ret[0] = 0;
    *ret_known = code == BT_OK;
    if (code == BT_OK) {
        (void)snprintf(ret, LIMIT_ID_BYTES + 1, "%.*s", STR_ARG(s.owner));
        return BT_OK;
    }
    if (code != BT_NOT_FOUND && code != BT_IO) {
        return code;
    }
    *ret_known = code == BT_IO; /* a damaged one harms no plan, and is nobody's to take */
    code =
        journal_plans(engine->journal, (struct str){"", 0}, session_id, 0, 1, take_newest, &n, err);
    *ret_known = *ret_known || n.found;
    return code;
}

bool access_name_session(struct engine *engine, struct request *rq, struct str *session_id)
{
    char own[ACCESS_NAME_MAX + 1];
    char owner[LIMIT_ID_BYTES + 1];
    struct bt_error err;
    bool known = false;
    enum bt_code code = BT_OK;

    access_own_name(engine->who, *session_id, own);
    if (session_id->len == 0 || own[0] == 0) {
        return true;
    }
    if (strlen(own) <= LIMIT_ID_BYTES) {
        code = access_session_owner(engine, str_from(own), &known, owner, &err);
    }
    if (code == BT_OK && !known) { /* one that it may see, with a name from before */
        code = access_session_owner(engine, *session_id, &known, owner, &err);
        if (code == BT_OK && known && access_sees(engine->who, str_from(owner))) {
            return true;
        }
    }
    if (code == BT_OK && strlen(own) > LIMIT_ID_BYTES) {
        const size_t max = LIMIT_ID_BYTES - 1 - strlen(engine->who->id);
        code = err_set(&err, BT_LIMIT,
                       "sessionId: a session of the credential '%s' has its id in front, so a new "
                       "one has at most %zu characters, got %zu",
                       engine->who->id, max, session_id->len);
    }
    if (code != BT_OK) {
        request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
        return false;
    }
    *session_id = engine_cycle_text(engine, str_from(own));
    return true;
}

bool access_sees_session(struct engine *engine, struct str session_id)
{
    char owner[LIMIT_ID_BYTES + 1];
    struct bt_error err;
    bool known;

    if (access_sees_all(engine->who)) {
        return true;
    }
    return access_session_owner(engine, session_id, &known, owner, &err) == BT_OK &&
           (!known || access_sees(engine->who, str_from(owner)));
}

enum bt_code access_take_session(struct engine *engine, struct str session_id, struct bt_error *err)
{
    char owner[LIMIT_ID_BYTES + 1];
    bool known;
    enum bt_code code;

    if (session_id.len == 0 || engine->who == NULL || engine->who->role == ROLE_ADMIN) {
        return BT_OK;
    }
    code = access_session_owner(engine, session_id, &known, owner, err);
    if (code == BT_OK && known && !access_changes(engine->who, str_from(owner))) {
        code = err_set(err, BT_CONFLICT,
                       "sessionId: '%.*s' is a session of another credential; use another id",
                       STR_ARG(session_id));
    }
    return code;
}

/* ---- the audit ---- */

void access_note(struct engine *engine, enum audit_kind kind, const struct identity *by,
                 struct str type, struct str about, enum bt_code outcome, struct str text)
{
    const struct audit_entry e = {.kind = kind,
                                  .type = type,
                                  .by = str_from(by != NULL ? by->id : ""),
                                  .role = str_from(by != NULL ? role_name(by->role) : ""),
                                  .peer = engine_request_peer(engine),
                                  .about = about,
                                  .outcome = bt_code_name(outcome),
                                  .text = text};

    audit_add(engine->opt.audit, engine->now, engine->wall, &e);
}

/* ---- refusals ---- */

bool access_may_take_session(struct engine *engine, struct request *rq, struct str session_id)
{
    struct bt_error err;

    if (access_take_session(engine, session_id, &err) == BT_OK) {
        return true;
    }
    request_refuse(engine, rq, &err, CLASS_NONE, 0, (struct doc){NULL, 0});
    return false;
}

static void refuse(struct engine *engine, struct request *rq, enum role need,
                   const struct bt_error *why)
{
    struct buf details;

    buf_init(&details, 256);
    doc_put_map(&details, 2);
    doc_put_cstr(&details, "role");
    doc_put_cstr(&details, role_name(need));
    doc_put_cstr(&details, "has");
    doc_put_cstr(&details, role_name(rq->who->role));
    request_refuse(engine, rq, why, CLASS_NONE, 0, doc_from_buf(&details));
    buf_done(&details);
}

void access_refuse_quota(struct engine *engine, struct request *rq, const struct bt_error *why,
                         const struct quota_over *over)
{
    struct buf details;

    buf_init(&details, 256);
    doc_put_map(&details, 2);
    doc_put_cstr(&details, "quota");
    doc_put_cstr(&details, quota_name(over->quota));
    doc_put_cstr(&details, "limit");
    doc_put_u64(&details, over->limit);
    request_refuse(engine, rq, why, CLASS_NONE, over->after, doc_from_buf(&details));
    buf_done(&details);
}

enum bt_code access_plans_left(struct engine *engine, struct str owner, struct quota_over *ret,
                               struct bt_error *err)
{
    const struct sessions *sessions = engine->opt.sessions;
    const struct identity *who =
        sessions != NULL && owner.len > 0 ? sessions_identity(sessions, owner, engine->wall) : NULL;
    const uint64_t limit =
        who == NULL ? 0 : identity_quota(who, QUOTA_PLANS, engine->opt.plans_max);
    uint64_t n = 0;

    if (who == NULL) {
        return BT_OK;
    }
    for (const struct open_plan *p = limit > 0 ? open_plan_next(engine, NULL) : NULL; p != NULL;
         p = open_plan_next(engine, p)) {
        n += p->job == NULL && str_eq(owner, open_plan_owner(p)) &&
             !plan_is_final(core_block_run(p->block)->status);
    }
    if (limit == 0 || n < limit) {
        return sessions_events_left(sessions, owner, engine->now, ret, err);
    }
    *ret = (struct quota_over){QUOTA_PLANS, limit, 0};
    return err_set(err, BT_BUSY,
                   "plans: %llu plans of '%.*s' are open, its quota is %llu; try again when one "
                   "has ended",
                   (unsigned long long)n, STR_ARG(owner), (unsigned long long)limit);
}

void access_refuse_role(struct engine *engine, struct request *rq, enum role need)
{
    struct bt_error err;

    (void)err_set(&err, BT_UNAUTHORIZED, "%.*s needs the role %s; the credential '%s' has %s",
                  STR_ARG(rq->env.type), role_name(need), rq->who->id, role_name(rq->who->role));
    refuse(engine, rq, need, &err);
}

/* What the body names: bodies have each name once. */
static struct str plan_of(const struct request *rq)
{
    const struct doc body = {rq->reader.body, rq->reader.len};

    return doc_string(doc_get(body, STR_LIT("planId")));
}

bool access_may_change(struct engine *engine, struct request *rq, struct str owner)
{
    struct bt_error err;
    const struct str shown = access_owner_shown(owner);

    if (access_changes(engine->who, owner)) {
        if (engine->who != NULL && !str_eq(access_owner(engine->who), owner)) {
            access_note(engine, AUDIT_ADMIN, engine->who, rq->env.type, plan_of(rq), BT_OK,
                        str_from("changes what is another's"));
        }
        return true;
    }
    (void)err_set(&err, BT_UNAUTHORIZED,
                  "the plan is of '%.*s': to change or repeat it, the credential '%s' needs the "
                  "role admin; it has %s",
                  STR_ARG(shown), rq->who->id, role_name(rq->who->role));
    refuse(engine, rq, ROLE_ADMIN, &err);
    return false;
}

/* ---- the clientKeys of schedules ---- */

bool schedule_of_key(struct str key, struct str *ret_name, struct str *ret_time)
{
    static const char TRIGGER[] = "trigger/";
    const char *own = memchr(key.ptr != NULL ? key.ptr : "", 0x1f, key.len);
    const char *slash;

    if (own != NULL) { /* the key of a credential: its id comes first */
        key.len -= (size_t)(own + 1 - key.ptr);
        key.ptr = own + 1;
    }
    if (key.len <= sizeof SCHEDULE_KEYS - 1 ||
        memcmp(key.ptr, SCHEDULE_KEYS, sizeof SCHEDULE_KEYS - 1) != 0) {
        return false;
    }
    key.ptr += sizeof SCHEDULE_KEYS - 1;
    key.len -= sizeof SCHEDULE_KEYS - 1;
    slash = memchr(key.ptr, '/', key.len);
    if (slash == NULL || slash == key.ptr) {
        return false;
    }
    *ret_name = (struct str){key.ptr, (size_t)(slash - key.ptr)};
    *ret_time = (struct str){slash + 1, key.len - ret_name->len - 1};
    if (ret_time->len >= sizeof TRIGGER - 1 &&
        memcmp(ret_time->ptr, TRIGGER, sizeof TRIGGER - 1) == 0) {
        ret_time->len = 0;
    }
    return true;
}
