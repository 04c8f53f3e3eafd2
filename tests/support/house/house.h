/*
 * The daemon's rooms in one process of a test: engine, api, dispatch, conversation and query over
 * the memory journal and a link without sockets, in virtual time. Requests and answers are JSON, in
 * which "'" stands for '"'.
 *
 *     struct house *h = house_open();
 *     house_join(h, "calc", 1);
 *     const char *id = house_submit(h, "'plan':{...}");
 *     house_done(h, "calc", "'result':{'text':'5'}");
 *     house_is(h, house_ask(h, "plan.get", "'planId':'%s'", id), "status", "completed");
 *     house_close(h);
 *
 * Texts that it returns are valid until house_close.
 */
#ifndef HOUSE_HOUSE_H
#define HOUSE_HOUSE_H

#include "supervisor/api/api.h"
#include "supervisor/dispatch/dispatch.h"
#include "supervisor/dispatch/lanes.h"
#include "supervisor/journal/port.h"
#include "tests/support/cmocka.h"
#include "tests/support/house/fake_link.h"

#define HOUSE_TOKEN "the token of the house, 32 letters"

enum {
    HOUSE_AGENTS_MAX = 72,
    HOUSE_LEASE_MS = 3000,
    HOUSE_PROCESSES_MAX = 8,
    HOUSE_BEAT_MS = 1000
};

struct house_agent {
    char id[LIMIT_ID_BYTES + 1];
    char instance[UUID_TEXT_LEN + 1];
    char url[64];
    uint64_t epoch;
    bool silent; /* no heartbeats */
    bool deaf;   /* no connections */
    /* Answers to what the rig answers by itself (hello, ping, query, cancel), as a whole body;
     * NULL or a NULL answer = the rig's. */
    const char *(*tells)(struct house_agent *agent, const char *request);
};

/* A process of an agent; texts are the test's. */
struct house_process {
    const char *agent_id;
    const char *why, *log; /* of the last one that ended; "" = none did */
    struct process_view view;
};

struct house {
    struct engine_options opt;
    struct journal *journal;
    struct link *link;
    struct engine *engine;
    struct api *api;
    struct dispatch *dispatch;
    struct retention *retention;
    struct schedules *schedules;
    struct sweep *sweep;
    struct house_roles *roles;
    /* What the supervisor of processes knows, in the hands of a test. */
    struct house_process processes[HOUSE_PROCESSES_MAX];
    uint32_t processes_n;
    struct process_hooks hooks;
    char ordered[512]; /* "restart calc/calc#1 now; " of each order */
    bool ours;         /* instances that register run in processes of ours */
    char told[512];    /* "kill INSTANCE; ", "lost INSTANCE; " */
    struct arena arena;
    msec now, wall;
    uint64_t requests;
    bool remote; /* requests come from another host; with the option remote_url */
    struct house_agent agents[HOUSE_AGENTS_MAX];
    uint32_t agents_n;
    /* The journal. */
    const struct journal_ops *real;
    struct journal_ops ops;
    uint32_t writes;  /* asked for since house_fail_write */
    uint32_t fail_at; /* the write that fails; 0 = none */
    uint32_t reads;   /* asked for since house_fail_read */
    uint32_t fail_read_at;
    uint32_t slow_us; /* that each row of a read takes */
    bool dead;        /* a cycle or a start ended with a failure, which is in why */
    struct bt_error why;
    const char *dir; /* of a SQLite journal; NULL = it is in memory */
};

struct house *house_open(void);
/* With the options of house_options, changed by the test. */
struct house *house_open_with(const struct engine_options *opt);
/* Over the SQLite journal in the directory, as a daemon's. What it cannot open is `dead`. */
struct house *house_open_in(const char *dir);
struct engine_options house_options(void);
/* Called before the daemon's rooms do something, and after it; NULL = nobody. */
extern void (*house_rooms_act)(bool act);
void house_close(struct house *h);
/* kill -9 and a new start over the same journal; agents have to join again. */
void house_restart(struct house *h);
/* The n-th write of the journal from now fails; 0 = none. */
void house_fail_write(struct house *h, uint32_t n);

/* The n-th read of the journal from now fails; 0 = none. */
void house_fail_read(struct house *h, uint32_t n);

/* Cycles until nothing is left to do, and what agents answer by themselves. */
void house_cycle(struct house *h);
/* One cycle of the daemon, and no more. */
void house_cycle_once(struct house *h);
/* So many milliseconds pass, with heartbeats. */
void house_wait(struct house *h, msec ms);

/* ---- requests ---- */
/* Sends a request; fields are those beside v, type, id and token, " " = none. Returns the answer;
 * NULL: none came within a few cycles (the journal has failed, or the request waits). */
const char *house_ask(struct house *h, const char *type, const char *fields, ...) BT_PRINTF(3, 4);
/* The same bytes as they are, without the head. */
const char *house_ask_bytes(struct house *h, const char *bytes, size_t len);
/* The answer to the request before, when it came later. */
const char *house_late_answer(struct house *h);
/* Requests come from the credential from now on: "observer", "submitter", "other" (a submitter),
 * "reviewer", "agent", "twin" (both of calc) or "admin", which have the role of their name, or
 * "poor" (a submitter: four requests in a minute, one plan at a time); NULL = the token. Returns
 * the one before. */
const char *house_as(struct house *h, const char *credential);
/* A request without fields as the credential would send it next; for house_ask_bytes. */
struct house_sealed {
    char *bytes;
    size_t len;
};
struct house_sealed house_sealed(struct house *h, const char *type);
/* Fails the test unless it was refused with the code, and words are in the message. */
void house_refused(struct house *h, const char *code, const char *words, const char *type,
                   const char *fields, ...) BT_PRINTF(5, 6);
/* Asks, and fails the test unless the answer is ok. */
const char *house_ok(struct house *h, const char *type, const char *fields, ...) BT_PRINTF(3, 4);
/* The planId of what was submitted with these fields. */
const char *house_submit(struct house *h, const char *fields, ...) BT_PRINTF(2, 3);

/* ---- looking at JSON ---- */
/* The value at a path such as "steps.0.status": text without quotes, other values as JSON; NULL:
 * there is none. "steps.#" is how many. */
const char *house_get(struct house *h, const char *json, const char *path);
/* Fails the test unless the value is this; want NULL = there is none. */
void house_is(struct house *h, const char *json, const char *path, const char *want);
/* Fails the test unless the words are in the value. */
void house_has(struct house *h, const char *json, const char *path, const char *words);
/* Several at once, "path=value; path=value"; the value "-" = there is none, "*" = there is one,
 * "~words" = the words are in it. All that differ are named. */
void house_says(struct house *h, const char *json, const char *wants);
/* "'" for '"', and the values. */
const char *house_text(struct house *h, const char *fmt, ...) BT_PRINTF(2, 3);

/* ---- agents ---- */
/* Registers an instance with the skill "do" and brings its lanes up. */
struct house_agent *house_join(struct house *h, const char *id, uint32_t capacity);
/* With these fields instead of the skills and beside the others. */
struct house_agent *house_join_as(struct house *h, const char *id, uint32_t capacity,
                                  const char *card_more, const char *more);
/* The same, with the instance id of a process that was started. */
struct house_agent *house_join_instance(struct house *h, const char *id, const char *instance,
                                        uint32_t capacity);
/* What the agent is asked to do and has not answered; step NULL = the oldest. NULL: nothing. */
const char *house_work(struct house *h, const char *agent, const char *step);
/* Answers that: fields beside v, id, ok, type, key, attempt and epoch. */
void house_answer(struct house *h, const char *agent, const char *step, const char *fields, ...)
    BT_PRINTF(4, 5);
/* outcome completed, and these fields. */
void house_done(struct house *h, const char *agent, const char *fields, ...) BT_PRINTF(3, 4);
/* outcome failed with this class. */
void house_failed(struct house *h, const char *agent, const char *cls, bool retryable);
/* The connection of the oldest work ends. */
void house_hang_up(struct house *h, const char *agent, bool sent);
struct link_lane *house_lane(struct house *h, const char *agent, const char *step);

/* ---- events ---- */
/* How many frames of the type were published. */
uint32_t house_seen(struct house *h, const char *type);
/* The last one, as JSON; NULL: none. */
const char *house_event(struct house *h, const char *type);
#endif
