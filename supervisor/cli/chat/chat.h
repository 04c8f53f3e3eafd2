/*
 * What the files of `baton chat` share. A line is a turn (session.say); what the session's plans do
 * is followed by one watch over everything, from which the session's events are taken. One thread.
 */
#ifndef CLI_CHAT_H
#define CLI_CHAT_H

#include <signal.h>

#include "protocol/base/msec.h"
#include "supervisor/cli/chat/screen.h"
#include "supervisor/cli/common/cli.h"

struct cJSON;

enum {
    CHAT_ID_MAX = 64,
    CHAT_REVIEW_MAX = 160,
    CHAT_TURNS_KEPT = 16,
    CHAT_REPLY_MAX = 2048,    /* of the last thing we were told, to know it again */
    CHAT_CALL_MS = 3000,      /* a request; the daemon may be away */
    CHAT_AWAY_MS_MAX = 60000, /* without a person: then it will not come back */
};

/* What we know of the plan that the talk is about. */
struct chat_plan {
    char id[CHAT_ID_MAX + 1]; /* "" = none */
    bool over;
    bool end_shown;                   /* its end was shown, with its answer */
    bool waits;                       /* a person has to say something, as far as the events tell */
    bool muted;                       /* nobody wants to see how it goes on */
    char review[CHAT_REVIEW_MAX + 1]; /* that was shown last and still waits; "" = none */
    enum cli_exit exit;               /* when it is over */
};

struct chat {
    struct cli *cli;
    struct chat_screen screen;
    char session[CHAT_ID_MAX + 1];
    struct bt_watch *watch; /* NULL while the daemon is away */
    uint64_t last;          /* the newest event that was taken */
    bool away;              /* that was said */
    msec away_since, check_at;
    char *unsent;                      /* a message that the daemon has not taken yet; owned */
    char answers[CHAT_REVIEW_MAX + 1]; /* the review that was shown when it was typed */
    char key[BT_ID_LEN + 1];           /* its clientKey: said again, it is the same turn */
    msec send_at;                      /* when to try again */
    bool turn_open;                    /* turn_end is still to come */
    char turn[CHAT_ID_MAX + 1];        /* the newest */
    uint64_t lines;                    /* that were read */
    bool agents_checked;               /* whether there are agents at all: once is enough */
    char ended[CHAT_TURNS_KEPT][CHAT_ID_MAX + 1]; /* turns whose end was seen: a ring */
    uint32_t ended_at;
    struct {
        char turn[CHAT_ID_MAX + 1];
        bool replied;             /* what came of it is told: it was known at once */
    } own_turns[CHAT_TURNS_KEPT]; /* turns of what was said here: a ring; events may come later */
    uint32_t own_turns_at;
    char last_reply[CHAT_REPLY_MAX + 1]; /* what we were told last */
    struct chat_plan plan;
    enum cli_exit exit; /* of the last turn that came to nothing */
    bool quit;
};

/* ---- loop.c ---- */
/* Runs the chat until its end; the exit code of the verb. Its options are valid. */
enum cli_exit chat_run(struct cli *cli);

/* ---- signal.c ---- */
/* How often Ctrl-C was pressed, set to 0 by who has seen it; whether to end; whether to draw. */
extern volatile sig_atomic_t chat_interrupts, chat_endings, chat_changes;
void chat_signals_catch(void);
/* Ctrl-Z: the terminal is the shell's until the process goes on. Then, and when the window has
 * changed, draws again. */
void chat_signals_take(struct chat_screen *s);

/* ---- connection.c: the daemon, and that it may be away ---- */
/* A request. *ret is NULL unless BT_OK; cJSON_Delete it. Says nothing. */
enum bt_code chat_call(struct chat *c, const char *type, struct cJSON *fields, struct cJSON **ret,
                       struct bt_error *err);
/* Begins to watch. Says what went wrong. */
enum cli_exit chat_begin(struct chat *c);
/* The next event, waiting at most so long. False when none came; an absence of the daemon is said
 * and mended. */
bool chat_next(struct chat *c, uint32_t timeout_ms, struct bt_event *ret);
/* Whether the error means that the daemon is away, so that the request is to be repeated. */
bool chat_is_unreachable(const struct chat *c, enum bt_code code);
void chat_end(struct chat *c);

/* ---- turn.c: what is said, and what comes of it ---- */
/* Says a line of the person in the session: at once, or as soon as the daemon is there. */
void chat_send(struct chat *c, const char *text);
/* Tries again to say what is left to be said. */
void chat_send_pending(struct chat *c);
/* Takes an event of the session, and shows it. */
void chat_event(struct chat *c, const struct bt_event *ev);
/* What the session has come to: its last messages, the plan that is open. Says what is wrong: there
 * is no such session, unless --new was given. */
enum cli_exit chat_catch_up(struct chat *c);

/* ---- plan.c: the plan that the talk is about ---- */
/* From now on it is about this plan; asks how it is. */
void chat_plan_set(struct chat *c, const char *plan_id);
/* An event of a plan of the session: what it means for us, and a line about it. */
void chat_plan_event(struct chat *c, const char *type, const struct cJSON *event);
/* Whether the plan waits for a person; asks, when the events say so. */
bool chat_plan_waits(struct chat *c);
/* Prints the plan. */
void chat_plan_show(struct chat *c);
/* Shows what we were told, once. */
void chat_show_reply(struct chat *c, const char *text);
#endif
