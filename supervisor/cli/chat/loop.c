/* chat: the loop. Each line is a message; plans run and answer meanwhile. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/clock.h"
#include "protocol/base/utf8.h"
#include "protocol/base/uuid.h"
#include "supervisor/cli/chat/chat.h"
#include "supervisor/cli/common/deadline.h"

enum { BUSY_MS = 25, IDLE_MS = 100, PIPE_MS = 250, TYPING_MS = 5000, INPUT_BYTES = 4096 };

/* Bytes that were read and not handled yet. */
struct input {
    char bytes[INPUT_BYTES];
    size_t at, n;
    bool end;
    msec typed; /* when the last bytes came */
};

static void note_session(struct chat *c)
{
    screen_note(&c->screen, "to come back: baton chat --session %s", c->session);
}

static void new_session(struct chat *c)
{
    uuid_format(uuid_new(), c->session);
    c->is_named = false;
    c->plan = (struct chat_plan){.over = false};
    c->turn[0] = 0;
    c->last_reply[0] = 0;
    c->turn_open = false;
    note_session(c);
}

static void note_help(struct chat *c)
{
    static const char *const lines[] = {
        "a line is a message: a goal, a question, \"skip step 2\", \"yes\", \"stop\", ...",
        "/status    the plan and its steps",
        "/skip N    skip step N of the plan",
        "/stop      cancel the plan",
        "/new       begin another session",
        "/quit      leave; plans continue (also Ctrl-D)",
        "Ctrl-C     once: stop watching this plan; twice: leave",
    };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        screen_note(&c->screen, "%s", lines[i]);
    }
}

/* A line that begins with a slash is a command. */
static void command(struct chat *c, const char *line)
{
    char text[CHAT_ID_MAX + 16];
    const char *step = line + strcspn(line, " ");

    step += strspn(step, " ");
    if (strcmp(line, "/help") == 0) {
        note_help(c);
    } else if (strcmp(line, "/status") == 0) {
        chat_plan_show(c);
    } else if (strncmp(line, "/skip ", 6) == 0 && step[0] != 0 && strlen(step) <= CHAT_ID_MAX) {
        (void)snprintf(text, sizeof text, "skip step %s", step);
        chat_send(c, text);
    } else if (strcmp(line, "/stop") == 0) {
        chat_send(c, "stop");
    } else if (strcmp(line, "/new") == 0) {
        new_session(c);
    } else if (strcmp(line, "/quit") == 0 || strcmp(line, "/exit") == 0) {
        c->quit = true;
    } else {
        screen_note(&c->screen, "no such command: %s; /help lists them", line);
        c->exit = CLI_USAGE;
    }
}

static void take_line(struct chat *c, char *line)
{
    size_t n = strlen(line);

    while (n > 0 && strchr(" \r\n", line[n - 1]) != NULL) {
        line[--n] = 0;
    }
    line += strspn(line, " \n");
    chat_interrupts = 0;
    c->lines++;
    if (!utf8_valid(line, strlen(line))) {
        screen_note(&c->screen,
                    "line %" PRIu64 " is not UTF-8 text, from its byte %zu on; it is left out",
                    c->lines, utf8_prefix(line, strlen(line)) + 1);
        c->exit = CLI_USAGE;
    } else if (line[0] == '/') {
        command(c, line);
    } else if (line[0] != 0 && c->unsent != NULL) {
        screen_note(&c->screen,
                    "your last message still waits for the daemon; send this one again later");
    } else if (line[0] != 0) {
        chat_send(c, line);
    }
}

/* Handles bytes up to the end of a line. True when there was one. */
static bool next_line(struct chat *c, struct input *in)
{
    struct chat_line *line = &c->screen.line;

    while (in->at < in->n) {
        unsigned char byte = (unsigned char)in->bytes[in->at++];
        enum chat_key key = CHAT_KEY_MORE;
        if (c->screen.prompt) {
            key = chat_line_key(line, byte);
        } else if (byte == '\n') {
            key = CHAT_KEY_DONE;
        } else if (byte != 0) {
            chat_line_add(line, byte);
        }
        if (key == CHAT_KEY_END) {
            c->quit = true;
            return false;
        }
        if (key == CHAT_KEY_DONE) {
            return true;
        }
    }
    return false;
}

/* Handles the lines that were read; without a terminal one at a time. True when one was handled. */
static bool read_lines(struct chat *c, struct input *in)
{
    struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
    struct chat_line *line = &c->screen.line;

    if (in->at == in->n && !in->end && poll(&keys, 1, 0) > 0) {
        ssize_t n = read(STDIN_FILENO, in->bytes, sizeof in->bytes);
        in->end = n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
        in->at = 0;
        in->n = n > 0 ? (size_t)n : 0;
        in->typed = clock_mono_ms();
    }
    if (in->at == in->n && !(in->end && line->len > 0)) {
        return false;
    }
    while (!c->quit && (next_line(c, in) || (in->end && in->at == in->n && line->len > 0))) {
        char text[CHAT_LINE_MAX + 1];
        const bool cut = line->cut;
        (void)snprintf(text, sizeof text, "%s", line->text);
        if (c->screen.prompt) { /* the line stays above the prompt, as in a terminal */
            screen_typed(&c->screen);
            (void)fputc('\n', stderr);
            c->screen.drawn = false;
        }
        chat_line_clear(line);
        if (cut) {
            screen_note(&c->screen, "a message has at most %d bytes; this one is left out",
                        CHAT_LINE_MAX);
            c->exit = CLI_USAGE;
        } else {
            take_line(c, text);
        }
        if (!c->screen.interactive) {
            return true;
        }
    }
    screen_typed(&c->screen);
    return false;
}

/* Whether the last turn is over or waits for a person, so the next line may be read. */
static bool turn_is_over(struct chat *c)
{
    return c->unsent == NULL && (!c->turn_open || chat_plan_waits(c));
}

/* After the last line: whether its plan is over as well. */
static bool all_is_over(struct chat *c)
{
    return turn_is_over(c) && (c->plan.id[0] == 0 || c->plan.over || chat_plan_waits(c));
}

static void interrupted(struct chat *c)
{
    static int seen;
    int now = chat_interrupts;

    if (now == 0 || now == seen) {
        seen = now;
        return;
    }
    seen = now;
    if (now > 1 || !c->screen.interactive) {
        c->exit = CLI_INTERRUPTED;
        c->quit = true;
    } else if (c->plan.id[0] != 0 && !c->plan.over && !c->plan.muted) {
        c->plan.muted = true;
        screen_note(&c->screen, "the plan goes on unwatched: baton status %s; Ctrl-C again leaves",
                    c->plan.id);
    } else {
        screen_note(&c->screen, "Ctrl-C again leaves, as does /quit");
    }
}

/* Whether a line may be handled now. */
static bool takes_lines(struct chat *c)
{
    return c->screen.interactive || turn_is_over(c);
}

/* How long to wait for events, in milliseconds: not at all while there is input to read. */
static uint32_t slice(struct chat *c, const struct input *in)
{
    struct pollfd keys = {.fd = in->end ? -1 : STDIN_FILENO, .events = POLLIN};

    if (takes_lines(c) && poll(&keys, 1, 0) > 0) {
        return 0;
    }
    return !c->screen.interactive                    ? PIPE_MS
           : clock_mono_ms() - in->typed < TYPING_MS ? BUSY_MS
                                                     : IDLE_MS;
}

/* Handles signals and input. */
static void handle_input(struct chat *c, struct input *in)
{
    chat_signals_take(&c->screen);
    chat_send_pending(c);
    while (takes_lines(c) && read_lines(c, in)) {
        /* each line is a turn; some end at once */
    }
    interrupted(c);
    screen_prompt(&c->screen);
}

/* Handles events, and waits a little for them. */
static void handle_events(struct chat *c, const struct input *in)
{
    struct pollfd keys = {.fd = in->end ? -1 : STDIN_FILENO, .events = POLLIN};
    struct bt_event ev;
    uint32_t most = slice(c, in);

    if (chat_next(c, most, &ev)) {
        do {
            chat_event(c, &ev);
        } while (chat_next(c, 0, &ev));
    } else if (c->watch == NULL) {
        (void)poll(&keys, takes_lines(c) ? 1 : 0, (int)most);
    }
}

/* The end of the input, and everything that was sent is over. */
static bool is_done(struct chat *c, const struct input *in)
{
    return c->quit || chat_endings != 0 || deadline_is_over() ||
           (in->end && in->at == in->n && c->screen.line.len == 0 &&
            (c->screen.interactive || all_is_over(c)));
}

/* 0 with a person; otherwise that of the last turn's plan. */
static enum cli_exit exit_code(const struct chat *c)
{
    if (chat_endings != 0) {
        return CLI_INTERRUPTED;
    }
    if (deadline_is_over()) {
        return CLI_TIMEOUT;
    }
    if (c->screen.interactive) {
        return c->exit == CLI_INTERRUPTED || c->exit == CLI_NOT_FOUND ? c->exit : CLI_OK;
    }
    if (c->exit != CLI_OK || c->plan.id[0] == 0) {
        return c->exit;
    }
    if (c->plan.exit == CLI_PARTIAL && cli_flag(c->cli, "allow-partial")) {
        return CLI_OK;
    }
    return c->plan.over ? c->plan.exit : CLI_NEEDS_HUMAN;
}

static enum cli_exit run_loop(struct chat *c)
{
    struct input in = {.typed = clock_mono_ms()};

    handle_input(c, &in);
    while (!is_done(c, &in)) {
        handle_events(c, &in);
        handle_input(c, &in);
    }
    if (c->unsent != NULL) {
        screen_note(&c->screen, "the daemon has not got your last message");
    }
    if (c->plan.id[0] != 0 && !c->plan.over) {
        screen_note(&c->screen, "the plan goes on: baton status %s", c->plan.id);
    }
    if (c->screen.interactive) {
        note_session(c);
    }
    return exit_code(c);
}

enum cli_exit chat_run(struct cli *cli)
{
    struct chat *c = calloc(1, sizeof *c);
    enum cli_exit code;

    if (c == NULL) {
        cli_error("out of memory");
        return CLI_INTERNAL;
    }
    c->cli = cli;
    code = chat_begin(c);
    if (code == CLI_OK) {
        chat_signals_catch();
        screen_open(&c->screen, cli);
        if (cli_value(cli, "session") != NULL) {
            (void)snprintf(c->session, sizeof c->session, "%s", cli_value(cli, "session"));
            code = chat_catch_up(c);
        } else {
            new_session(c);
        }
        if (code == CLI_OK && c->screen.interactive) {
            screen_note(&c->screen, "/help lists what is not a message");
        }
        code = code == CLI_OK ? run_loop(c) : code;
        screen_close(&c->screen);
    }
    chat_end(c);
    free(c->unsent);
    free(c);
    return code;
}
