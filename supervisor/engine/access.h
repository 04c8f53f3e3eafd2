/*
 * Who may see and change what. A plan and a session belong to the credential that made them; those
 * of the token, and of journals without owners, to "local". The role decides the rest:
 *
 *   observer   sees all plans and sessions, changes none
 *   submitter  sees and changes its own, and sees those of the credentials that a grant names; the
 *              others are to it as if they were not there
 *   reviewer   sees all, decides reviews, changes its own
 *   admin      sees and changes all
 *
 * Between requests nobody is asked for: the supervisor itself sees all.
 */
#ifndef ENGINE_ACCESS_H
#define ENGINE_ACCESS_H

#include "protocol/auth/identity.h"
#include "supervisor/audit/audit.h"
#include "supervisor/auth/quota.h"
#include "supervisor/engine/engine.h"

struct request;

/* Whether the role does for a request that needs `need`. */
bool access_role_does(enum role have, enum role need);
/* As it is stored: "" for "local". */
struct str access_owner(const struct identity *who);
/* As it is shown. */
struct str access_owner_shown(struct str owner);
bool access_sees_all(const struct identity *who);
/* owner: as it is stored. who NULL: the supervisor itself. */
bool access_sees(const struct identity *who, struct str owner);
bool access_changes(const struct identity *who, struct str owner);

/* The clientKey as it is stored: keys of different credentials are different keys. Appends. */
void access_client_key(const struct identity *who, struct str client_key, struct buf *out);

/*
 * What a submitter names is its own, so no name tells it that somebody else has it. A session or
 * schedule that it names "x" is stored as "ID:x", ID being its credential.
 */
enum { ACCESS_NAME_MAX = 2 * LIMIT_ID_BYTES + 1 };
/* The name as it is stored when it is new. "": as it was asked, because the sender is no submitter,
 * or the name has that prefix already. */
void access_own_name(const struct identity *who, struct str asked, char ret[ACCESS_NAME_MAX + 1]);
/* Puts the id under which the session is stored, or would be, in the place of the one that the
 * request names: its own of that name, else one that it sees, else a new one. False after
 * refusing: LIMIT. It is valid until the end of the cycle. An empty id stays empty. */
bool access_name_session(struct engine *engine, struct request *rq, struct str *session_id);

/* Whose a session is: that of its first message, else of its newest plan. *ret_known false: no
 * such session. */
BT_MUST_CHECK enum bt_code access_session_owner(struct engine *engine, struct str session_id,
                                                bool *ret_known, char ret[LIMIT_ID_BYTES + 1],
                                                struct bt_error *err);
/* Whether the request in hand sees the session; one that is not there, too. */
bool access_sees_session(struct engine *engine, struct str session_id);
/* BT_CONFLICT: a session of another. An empty id is nobody's. */
BT_MUST_CHECK enum bt_code access_take_session(struct engine *engine, struct str session_id,
                                               struct bt_error *err);
/* A line of the audit about the request in hand. by NULL: nobody proved it. */
void access_note(struct engine *engine, enum audit_kind kind, const struct identity *by,
                 struct str type, struct str about, enum bt_code outcome, struct str text);
/* access_take_session; false after refusing. */
bool access_may_take_session(struct engine *engine, struct request *rq, struct str session_id);
/* Whether the request may change a plan that it sees; false after refusing: UNAUTHORIZED. */
bool access_may_change(struct engine *engine, struct request *rq, struct str owner);
/* With error.details {quota, limit}. over->after 0: as the code says. */
void access_refuse_quota(struct engine *engine, struct request *rq, const struct bt_error *why,
                         const struct quota_over *over);
/* Whether the credential may begin one more plan. BT_BUSY: as many are open as its quota allows, or
 * its plans have written as many events in this minute; *ret says which. owner: as it is stored. */
BT_MUST_CHECK enum bt_code access_plans_left(struct engine *engine, struct str owner,
                                             struct quota_over *ret, struct bt_error *err);
/* UNAUTHORIZED with the role that is needed, in words and in error.details {role, has}. */
void access_refuse_role(struct engine *engine, struct request *rq, enum role need);
#endif
