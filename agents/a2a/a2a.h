/*
 * The agent around one A2A agent, of protocol 1.0 or 0.3 over JSON-RPC: its card, its skills, and
 * the handler of them.
 */
#ifndef A2A_A2A_H
#define A2A_A2A_H

#include <pthread.h>

#include "agents/web/secret.h"
#include "agents/web/web.h"
#include "baton/agent.h"
#include "protocol/base/arena.h"
#include "protocol/limits.h"
#include "protocol/wire/doc.h"

enum {
    A2A_BYTES_MAX = 16 * 1024 * 1024, /* of one answer or event */
    A2A_STREAM_MAX = 256 * 1024 * 1024,
    A2A_ARTIFACTS_MAX = 64,
    A2A_ID_MAX = 256,
    A2A_LIST_MAX = 64,
    A2A_TASKS_MAX = 64
};

/* The parameter of a skill by which a person's answer comes. */
#define A2A_ANSWER "a2a_answer"

struct a2a_settings {
    struct arena arena;
    struct secrets secrets;
    struct web_policy policy;
    const char *agent_id, *url, *bearer;
    struct doc headers;        /* an object of texts, or absent */
    struct doc effects;        /* globs of skills: none, idempotent, unsafe; or absent */
    const char *const *skills; /* globs of those that are offered; NULL = all */
    uint64_t timeout_ms;
};

/* settings.c. BT_INVALID names the member. */
BT_MUST_CHECK enum bt_code a2a_settings_read(const char *json, struct a2a_settings **ret,
                                             struct bt_error *err);
void a2a_settings_free(struct a2a_settings *s);

/* A skill of the card. */
struct a2a_skill {
    const char *id, *remote;
    bool unsafe;
};

/* The task that waits for a person, for the attempt that brings the answer. Kept in memory: without
 * it the answer begins a new task. */
struct a2a_waiting {
    char key[LIMIT_KEY_BYTES + 1];
    char task[A2A_ID_MAX], context[A2A_ID_MAX];
};

struct a2a_agent {
    struct a2a_settings *settings;
    struct arena arena;
    char endpoint[WEB_URL_MAX];
    bool modern;    /* 1.0; else 0.3 */
    bool streaming; /* the card offers it */
    struct a2a_skill skills[LIMIT_SKILLS];
    uint32_t n_skills;
    pthread_mutex_t lock; /* guards waiting */
    struct a2a_waiting waiting[A2A_TASKS_MAX];
    uint32_t next_waiting;
};

/* card.c: fetches the card, chooses the interface, and adds the skills to the agent. */
BT_MUST_CHECK enum bt_code a2a_card_read(struct a2a_agent *a, struct bt_agent_init *init,
                                         struct bt_error *err);
/* run.c: the handler of every skill. */
void a2a_run(struct bt_step *step, void *self);

/* ---- task.c: what an agent sent, of either version ---- */

enum a2a_state {
    A2A_NONE,
    A2A_WORKING,
    A2A_INPUT,
    A2A_AUTH,
    A2A_COMPLETED,
    A2A_FAILED,
    A2A_CANCELED,
    A2A_REJECTED
};

struct a2a_artifact {
    char id[A2A_ID_MAX], name[A2A_ID_MAX];
    struct buf parts; /* documents, one after the other */
};

struct a2a_task {
    char id[A2A_ID_MAX], context[A2A_ID_MAX]; /* "" until they are known */
    enum a2a_state state;
    bool resumes;    /* a stream that goes on with a task: it begins with the task as it waited */
    struct buf says; /* the text of the newest status */
    struct a2a_artifact artifacts[A2A_ARTIFACTS_MAX];
    uint32_t n;
    struct bt_error error; /* of JSON-RPC, or of what was sent; code BT_OK = none */
    struct bt_step *step;  /* gets text as it comes; NULL = none */
};

void a2a_task_init(struct a2a_task *t, struct bt_step *step);
void a2a_task_done(struct a2a_task *t);
/* Takes one JSON-RPC answer, or one event of a stream. Sets .error for what is neither. */
void a2a_task_take(struct a2a_task *t, struct doc answer);
/* Nothing more will come without another request. */
bool a2a_task_is_over(const struct a2a_task *t);
/* Replies to the step: text, data and files of the artifacts; or fails it, or asks a person. */
void a2a_task_reply(struct a2a_task *t, struct bt_step *step);
/* The texts of a list of parts, joined. */
void a2a_parts_text(struct doc parts, struct buf *out);

/* ---- call.c: requests ---- */

enum a2a_method { A2A_SEND, A2A_STREAM, A2A_GET, A2A_CANCEL };

/* Sends one request; what comes back is taken into *task. params is the member of that name.
 * BT_CANCELLED, BT_TIMEOUT, BT_UNAVAILABLE, ... ; *ret_sent: it may have arrived. */
BT_MUST_CHECK enum bt_code a2a_call(const struct a2a_agent *a, enum a2a_method method,
                                    struct doc params, uint64_t timeout_ms, struct a2a_task *task,
                                    bool *ret_sent, struct bt_error *err);
/* A GET with the headers of the settings, into *ret as JSON. */
BT_MUST_CHECK enum bt_code a2a_fetch(const struct a2a_agent *a, const char *url, long *ret_status,
                                     struct buf *ret, struct bt_error *err);
#endif
