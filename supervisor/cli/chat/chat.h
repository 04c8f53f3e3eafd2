/*
 * What the files of `baton chat` share. A line is a turn (session.say). One watch follows all
 * events; the chat takes those of its session. One thread.
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
    CHAT_REPLY_MAX = 2048,    /* of the last reply, to recognise it */
    CHAT_CALL_MS = 3000,      /* of a request; the daemon may be unreachable */
    CHAT_AWAY_MS_MAX = 60000, /* without a person: after that the daemon counts as gone */
};

/* The current plan of the session, as far as the events describe it. */
struct chat_plan {
    char id[CHAT_ID_MAX + 1]; /* "" = none */
    bool over;
    bool end_shown;                   /* its end was shown, with its answer */
    bool waits;                       /* a person has to decide */
    bool muted;                       /* its events are not shown any more */
    char review[CHAT_REVIEW_MAX + 1]; /* shown last and still open; "" = none */
    enum cli_exit exit;               /* once it is over */
};

struct chat {
    struct cli *cli;
    struct chat_screen screen;
    char session[CHAT_ID_MAX + 1];
    bool is_named;          /* session is what the daemon calls it */
    struct bt_watch *watch; /* NULL while the daemon is unreachable */
    uint64_t last;          /* the newest event that was handled */
    bool away;              /* the person has been informed */
    msec away_since, check_at;
    char *unsent;                      /* a message that the daemon has not accepted; owned */
    char answers[CHAT_REVIEW_MAX + 1]; /* the review that was shown when the message was typed */
    char key[BT_ID_LEN + 1];           /* its clientKey: sent again, it is the same turn */
    msec send_at;                      /* when to send it again */
    bool told_why;                     /* ... and the person knows why it waits */
    bool turn_open;                    /* turn_end has not come yet */
    char turn[CHAT_ID_MAX + 1];        /* the newest turn */
    uint64_t lines;                    /* lines that were read */
    bool agents_checked;               /* whether the daemon has agents was checked once */
    char ended[CHAT_TURNS_KEPT][CHAT_ID_MAX + 1]; /* a ring of turns whose end was handled */
    uint32_t ended_at;
    struct {
        char turn[CHAT_ID_MAX + 1];
        bool replied;             /* the reply was shown at once */
    } own_turns[CHAT_TURNS_KEPT]; /* a ring of turns that were sent from here; their events may come
                                     later */
    uint32_t own_turns_at;
    char last_reply[CHAT_REPLY_MAX + 1]; /* the last reply that was shown */
    struct chat_plan plan;
    enum cli_exit exit; /* of the last turn without a plan */
    bool quit;
};

/* ---- loop.c ---- */
/* Runs the chat until its end; the exit code of the verb. Its options are valid. */
enum cli_exit chat_run(struct cli *cli);

/* ---- signal.c ---- */
/* The number of Ctrl-C, which the reader resets to 0; whether to end; whether to redraw. */
extern volatile sig_atomic_t chat_interrupts, chat_endings, chat_changes;
void chat_signals_catch(void);
/*
 * On Ctrl-Z: gives the terminal back until the process continues. Then, and after a change of the
 * window's size, redraws.
 */
void chat_signals_take(struct chat_screen *s);

/* ---- connection.c: the connection to the daemon ---- */
/* One request. Prints nothing. *ret is NULL unless BT_OK; free it with cJSON_Delete. */
enum bt_code chat_call(struct chat *c, const char *type, struct cJSON *fields, struct cJSON **ret,
                       struct bt_error *err);
/* Connects and begins to watch. Prints the error. */
enum cli_exit chat_begin(struct chat *c);
/*
 * Waits at most timeout_ms for the next event. False when there was none. Reconnects after the
 * daemon was unreachable, and prints that.
 */
bool chat_next(struct chat *c, uint32_t timeout_ms, struct bt_event *ret);
/* Whether the error means that the daemon is unreachable, so the request has to be repeated. */
bool chat_is_unreachable(const struct chat *c, enum bt_code code);
void chat_end(struct chat *c);

/* ---- turn.c: messages and turns ---- */
/* Sends a line as a message of the session: now, or as soon as the daemon is reachable. */
void chat_send(struct chat *c, const char *text);
/* Sends the pending message again when it is time. */
void chat_send_pending(struct chat *c);
/* Handles and shows an event of the session. */
void chat_event(struct chat *c, const struct bt_event *ev);
/*
 * Shows the last messages and the open plan of the session. Prints the error: without --new the
 * session must exist.
 */
enum cli_exit chat_catch_up(struct chat *c);

/* ---- plan.c: the current plan ---- */
/* Makes it the current plan and asks for its state. */
void chat_plan_set(struct chat *c, const char *plan_id);
/* Handles and shows an event of one of the session's plans. */
void chat_plan_event(struct chat *c, const char *type, const struct cJSON *event);
/* Whether the plan waits for a person. Asks the daemon when the events indicate it. */
bool chat_plan_waits(struct chat *c);
/* Prints the plan. */
void chat_plan_show(struct chat *c);
/* Shows a reply, once. */
void chat_show_reply(struct chat *c, const char *text);
#endif
