/*
 * libbaton-agent: a library to write an agent for Baton. A whole agent:
 *
 *       #include <baton/agent.h>
 *
 *       static void greet(struct bt_step *step, void *self)
 *       {
 *           (void)self;
 *           bt_step_reply_text(step, "Hello, %s!", bt_step_param_string(step, "name", "world"));
 *       }
 *
 *       static const struct bt_skill skills[] = {
 *           {.id = "greet", .description = "Greets somebody by name.", .run = greet},
 *       };
 *       static const struct bt_agent_def def = {
 *           .agent_id = "greeter", .version = "1.0.0", .skills = skills, .skill_count = 1};
 *
 *       int main(int argc, char **argv)
 *       {
 *           return bt_agent_main(&def, argc, argv);
 *       }
 *
 * The library finds the supervisor by the state directory, registers and renews its lease. It runs
 * at most `capacity` steps at a time and never runs one attempt twice. It keeps results until the
 * supervisor has them, and passes cancel and deadline to the handler. It drains on SIGTERM and
 * registers again when the supervisor was restarted.
 *
 * Threads: a handler runs on a worker thread, that of a quick skill on the library's own. With a
 * capacity above 1 several handlers run at the same time and share `self`. A step belongs to the
 * thread that runs its handler: only that thread may call bt_step_* on it. The exceptions are
 * bt_step_cancelled() and bt_step_progress(), which any thread may call until the handler returns.
 * Strings and JSON texts that a step returns are valid until the handler returns. Text is UTF-8.
 *
 * Stability: within one major version, fields are only added at the end of the structs, and
 * functions are only added.
 */
#ifndef BATON_AGENT_H
#define BATON_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "baton/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bt_step;       /* one attempt at one step */
struct bt_artifact;   /* a file of the result that is being written */
struct bt_agent_init; /* the argument of init(): reads settings, adds skills */

/* Handles one step. It answers with one of the reply calls below. A handler that returns without
 * one fails the step as UNKNOWN. */
typedef void (*bt_skill_run)(struct bt_step *step, void *self);

/*
 * A tag of `tags`: the handler returns within a millisecond and calls nothing that waits. The
 * library then runs it on its own thread, which saves two changes of threads a step. The tag is not
 * part of the card. The rules for threads are the same as for other handlers: with a capacity above
 * 1 two may run at the same time.
 * A handler that turns out to be slow (20 ms once, or 1 ms on average) is run by the workers for a
 * minute, with a line in the log; each time again for twice as long, up to an hour. While it hangs,
 * another thread answers the supervisor: the lease is not lost, a cancel reaches the handler.
 */
#define BT_TAG_QUICK "x-baton-quick"

/* One capability of the agent. The keyword planner selects skills by description, tags and
 * examples. */
struct bt_skill {
    const char *id;              /* [A-Za-z0-9_.-], at most 64 bytes, not beginning with . or - */
    const char *name;            /* a display name; NULL = the id */
    const char *description;     /* one or two sentences */
    const char *const *tags;     /* NULL-terminated; or NULL */
    const char *const *examples; /* NULL-terminated; or NULL */
    const char *input_schema;    /* JSON Schema of the parameters, as JSON text; or NULL */
    const char *output_schema;   /* JSON Schema of the result's data, as JSON text; or NULL */
    const char *effects;         /* "none", "idempotent" (the default) or "unsafe" */
    bt_skill_run run;
    uint64_t max_ms; /* the longest that one attempt may take, for warnings; 0 = not known */
};

struct bt_agent_def {
    const char *agent_id;
    const char *name;
    const char *icon;
    const char *color;
    const char *description;
    const char *version;
    const struct bt_skill *skills; /* may be NULL when init() adds skills */
    size_t skill_count;
    /* steps at a time unless --capacity or BATON_CAPACITY overrides it; 0 = 1; at most 64 */
    unsigned capacity;
    /*
     * Called once before the agent registers, on the main thread; may be NULL. Reads the settings,
     * adds skills and stores the handlers' state in *ret_self. A failure ends the program with exit
     * code 2 and the error's message.
     */
    enum bt_code (*init)(struct bt_agent_init *init, void **ret_self, struct bt_error *err);
    /* Called once after the last handler has returned; may be NULL. Not called when the process is
     * killed. */
    void (*done)(void *self);
};

/*
 * Runs the agent until it is stopped. An agent that has served ends the process by _exit, after
 * done(), because sockets may still carry traffic. The function returns only when the agent did not
 * serve. The exit code is the same either way:
 *     0  drained and deregistered; or --help, --version, --card, --once succeeded
 *     1  --once failed; what --card or --once printed could not be written; or a second SIGTERM
 *        stopped the agent while steps ran
 *     2  wrong arguments, settings or card; or the supervisor rejected the token or the card
 * Arguments: --state DIR, --settings FILE (JSON), --agent-id ID, --instance-id UUID, --capacity N,
 * --listen URL, --dial-in, --log-level LEVEL, --once SKILL (runs one step from stdin, {"task",
 * "parameters", "context"}, without a supervisor), --card (prints the card as JSON), --help,
 * --version.
 * Environment: BATON_STATE, BATON_SETTINGS (JSON text), BATON_AGENT_ID, BATON_INSTANCE_ID,
 * BATON_CAPACITY. An argument overrides the environment.
 * Call it first in main(), before any thread exists: it blocks signals. Call it at most once per
 * process. nng's completions run on one thread of the process then: a handler that uses nng itself
 * must not block in a callback of nng.
 */
BT_API int bt_agent_main(const struct bt_agent_def *def, int argc, char **argv);

/* ---- an agent in an event loop of the program's own ---- */

struct bt_agent;

/*
 * For a program that has an event loop (epoll, libuv, GLib). The agent has one descriptor to wait
 * for, and runs only while the program lets it:
 *
 *       if (bt_agent_open(&def, argc, argv, &agent, &err) != BT_OK) { ... err.msg ... }
 *       if (agent == NULL) { return 0; }               // --help, --version, --card
 *       watch(bt_agent_fd(agent), for input);
 *       whenever it is readable:
 *               if (!bt_agent_process(agent)) { bt_agent_exit(agent); }
 *
 * Threads: everything of the agent belongs to one thread: these functions, init(), done(), the
 * handlers, and bt_step_* on its steps. The library starts threads for its sockets, which call
 * nothing of the program's. It has no workers: a handler runs within bt_agent_process, and while it
 * runs, heartbeats wait: one that takes longer than the lease loses the agent its steps. What takes
 * time is answered later (bt_step_later). Steps at a time: `capacity`, those that are answered
 * later included. BT_TAG_QUICK changes nothing.
 * Signals: none is blocked, caught or read; SIGPIPE is ignored. Call bt_agent_stop from the loop
 * when one comes; it is not for signal handlers.
 * One agent per process. def and argv must live as long as it does.
 */

/* Reads arguments and environment as bt_agent_main does, calls init() and starts. BT_OK with *ret
 * NULL: it printed what an argument asked for. --once is refused. BT_INVALID and others: arguments,
 * settings or card; the program has to end. */
BT_API BT_MUST_CHECK enum bt_code bt_agent_open(const struct bt_agent_def *def, int argc,
                                                char **argv, struct bt_agent **ret,
                                                struct bt_error *err);
/* Readable when bt_agent_process has something to do, also when a time has come. It stays the same,
 * belongs to the agent, and may be nested in any poll, select or epoll. */
BT_API int bt_agent_fd(const struct bt_agent *agent);
/* Does what there is to do, without waiting, and runs handlers. Calls for nothing do no harm.
 * False: the agent has ended (drained and deregistered, stopped twice, or rejected). Not from a
 * handler. */
BT_API bool bt_agent_process(struct bt_agent *agent);
/* As SIGTERM of bt_agent_main: no new steps, running ones finish; a second call ends at once. */
BT_API void bt_agent_stop(struct bt_agent *agent);
/* After the end: calls done(), unless steps still run, and ends the process by _exit with the codes
 * of bt_agent_main. Does not return. A program that goes on instead must end by _exit itself. */
BT_API void bt_agent_exit(struct bt_agent *agent);
/*
 * In a handler: the step is answered after it returns. The step and its strings stay valid until
 * bt_step_done; files that it writes may stay open until then. on_cancel (may be NULL) is called
 * once from bt_agent_process when the step is cancelled or its deadline passes; it may call
 * bt_step_done. False: this agent runs under bt_agent_main; answer at once.
 */
BT_API bool bt_step_later(struct bt_step *step, void (*on_cancel)(struct bt_step *step, void *arg),
                          void *arg);
/* The reply is complete: as if the handler returned now. The step is the library's again. Ignored
 * unless the step is to be answered later. bt_step_stream_flush never waits for such a step: it
 * only tells whether everything was confirmed. */
BT_API void bt_step_done(struct bt_step *step);

/* ---- for init() ---- */

/* The settings as compact JSON text, "{}" when there are none. Valid until init() returns. */
BT_API const char *bt_agent_settings_json(const struct bt_agent_init *init);
/*
 * A secret by its name: what `secrets` of the agent's configuration hands over (by a descriptor, in
 * no environment), else the environment variable of that name, which is wiped. NULL = neither is
 * there. Copy it: it is wiped when init() returns.
 */
BT_API const char *bt_agent_secret(const struct bt_agent_init *init, const char *name);
/* A string member of the settings by dotted path ("limits.dir"), or fallback. Valid until init()
 * returns. */
BT_API const char *bt_agent_setting_string(const struct bt_agent_init *init, const char *path,
                                           const char *fallback);
BT_API double bt_agent_setting_number(const struct bt_agent_init *init, const char *path,
                                      double fallback);
BT_API bool bt_agent_setting_bool(const struct bt_agent_init *init, const char *path,
                                  bool fallback);
/* Adds a skill. The library copies everything that it points to. BT_LIMIT over 64 skills,
 * BT_CONFLICT when the id is taken, BT_INVALID when a schema is not JSON. */
BT_API BT_MUST_CHECK enum bt_code
bt_agent_add_skill(struct bt_agent_init *init, const struct bt_skill *skill, struct bt_error *err);
/* Sets the agent's id from its settings. --agent-id and BATON_AGENT_ID override it. */
BT_API BT_MUST_CHECK enum bt_code bt_agent_set_id(struct bt_agent_init *init, const char *agent_id,
                                                  struct bt_error *err);

/* ---- the request ---- */

BT_API const char *
bt_step_task(const struct bt_step *step); /* the task in natural language; "" when there is none */
BT_API const char *bt_step_skill(const struct bt_step *step); /* the id of the requested skill */
BT_API const char *bt_step_plan_id(const struct bt_step *step);
BT_API const char *bt_step_id(const struct bt_step *step);
/* The idempotency key, the same for every attempt. Pass it on to services that take one. */
BT_API const char *bt_step_key(const struct bt_step *step);
BT_API unsigned bt_step_attempt(const struct bt_step *step); /* from 1 */
BT_API const char *
bt_step_feedback(const struct bt_step *step); /* why the last attempt was rejected; or "" */
BT_API const char *bt_step_traceparent(const struct bt_step *step); /* W3C trace context; or "" */
BT_API const char *
bt_step_context_text(const struct bt_step *step); /* results before this step, as text; or "" */
/* The request as one JSON object: {task, skill, parameters, context, dependencies, planId,
 * sessionId, stepId, attempt, key, feedback, deadlineMs, idleMs, purpose, result?, budget?}. ""
 * when out of memory. */
BT_API const char *bt_step_request_json(struct bt_step *step);

/* Parameters by dotted path ("rows.0.name"). The fallback is returned when the parameter is missing
 * or has another type. */
BT_API const char *bt_step_param_string(struct bt_step *step, const char *path,
                                        const char *fallback);
BT_API double bt_step_param_number(struct bt_step *step, const char *path, double fallback);
BT_API bool bt_step_param_bool(struct bt_step *step, const char *path, bool fallback);
BT_API bool bt_step_has_param(struct bt_step *step, const char *path);
/* Any value as JSON text. Path "" = all parameters ("{}" when there are none). NULL when it is
 * missing. */
BT_API const char *bt_step_params_json(struct bt_step *step, const char *path);

/* The results of the steps that this one depends on, in the plan's order. */
BT_API size_t bt_step_dependency_count(const struct bt_step *step);
BT_API const char *bt_step_dependency_id(struct bt_step *step, size_t ix); /* NULL past the end */
/* The data of the result as JSON. A text result is a JSON string. NULL past the end. */
BT_API const char *bt_step_dependency_json(struct bt_step *step, size_t ix);
/* The same as plain text: a string without quotes, anything else as JSON. NULL past the end. */
BT_API const char *bt_step_dependency_text(struct bt_step *step, size_t ix);

/*
 * The purpose of the request.
 *     "execute"     do the step
 *     "search"      find the resource that the step's own agent did not find
 *     "gate"        are the results before this step enough to begin it?
 *     "verify"      is the result of this step right?
 *     "plan"        make a plan for a goal
 *     "replan"      make a new plan for the remaining work
 *     "synthesize"  write the answer of a plan
 *     "converse"    interpret a message of a person in a session
 * All but execute and search are questions. The supervisor sends a question only to an agent with
 * the skill for it: `gate`, `verify`, `plan` (also for replan), `synthesize`, `converse`, or the
 * skill that the plan names. A handler must change nothing when it answers a question, because a
 * lost question is sent again.
 */
BT_API const char *bt_step_purpose(const struct bt_step *step);
/* verify: the result to judge, as JSON {text?, data?, artifacts?}; NULL otherwise. */
BT_API const char *bt_step_result_json(struct bt_step *step);
/* What is left of the plan's budget; UINT64_MAX when it has no such budget. */
BT_API uint64_t bt_step_budget_tokens(const struct bt_step *step);
BT_API uint64_t bt_step_budget_micros(const struct bt_step *step); /* millionths of the currency */
/* An attempt without progress for this long counts as hung: call bt_step_progress more often. 0 =
 * no such limit. */
BT_API uint64_t bt_step_idle_ms(const struct bt_step *step);

/* ---- while it runs ---- */

/* True when the supervisor cancelled the step or its deadline has passed: return soon. Cheap; poll
 * it. */
BT_API bool bt_step_cancelled(const struct bt_step *step);
/* Milliseconds left until the deadline; 0 when it has passed; UINT64_MAX when there is none. */
BT_API uint64_t bt_step_time_left_ms(const struct bt_step *step);
/* Reports progress. percent below 0 = unknown; text may be NULL. Cheap: only the newest report is
 * sent. */
BT_API void bt_step_progress(struct bt_step *step, double percent, const char *text);
/* Appends to the answer's text while the handler still produces it. The library sends the text as
 * progress, in order and complete, in pieces of at most 1024 bytes, about eight per second. Text
 * that is not UTF-8 is dropped, and so is text over 1 MiB of unsent bytes. Cheap. The reply must
 * contain the whole text all the same. */
BT_API void bt_step_stream(struct bt_step *step, const char *text, size_t len);
/* Voids everything that was streamed before; the next piece starts a new text. Readers are notified
 * (member `anew` on the wire). */
BT_API void bt_step_stream_reset(struct bt_step *step);
/* Waits until the supervisor has confirmed the streamed text: at most max_ms, and not when
 * cancelled. False when text is unconfirmed. Call it before the handler ends: text that is
 * unconfirmed when the reply is sent is not sent. */
BT_API bool bt_step_stream_flush(struct bt_step *step, uint64_t max_ms);

/* ---- the reply: the last call wins, but reply_text and reply_json add up ---- */

/* The result's text and its data. A result has at most 3 MiB; more fails the step: write it into
 * an artifact. A part that is no JSON, no UTF-8 or has no memory fails the step, whatever is added
 * to it; a call of another kind (bt_step_fail, bt_step_need_...) still replaces that. */
BT_API void bt_step_reply_text(struct bt_step *step, const char *fmt, ...) BT_PRINTF(2, 3);
BT_API void bt_step_reply_bytes(struct bt_step *step, const char *text,
                                size_t len); /* text as it is; UTF-8 */
BT_API void bt_step_reply_json(struct bt_step *step, const char *json, size_t len);
/* A reference to an artifact: a file, a URL. At most 64. media_type may be NULL. */
BT_API void bt_step_reply_artifact(struct bt_step *step, const char *name, const char *media_type,
                                   const char *uri);
/* Changes the state of the plan, which later steps get (bt_step_json: context.state): a JSON merge
 * patch, an object of at most 65536 bytes. Part of a success only. */
BT_API void bt_step_reply_state_json(struct bt_step *step, const char *json, size_t len);
/* Marks the result as not whole: the step asked for a limit, and more was there. The plan's end
 * names the step. The text should end with a line that names how much is missing and how to get it.
 * A result that is cut without being asked for must be a failure instead. */
BT_API void bt_step_reply_truncated(struct bt_step *step);
/* The answer to a gate or a verification. The sentence names what is missing or wrong and what
 * would be right; the next attempt gets it as feedback. */
BT_API void bt_step_reply_verdict(struct bt_step *step, bool passed, const char *fmt, ...)
    BT_PRINTF(3, 4);
/* Facts about how the reply came about, as a JSON object of at most 64 KiB: an exit code, a
 * duration. They are `details` of the result, or of the failure. Texts for
 * models and people leave them out. Details that are no JSON object or are too long are dropped. */
BT_API void bt_step_details_json(struct bt_step *step, const char *json, size_t len);
/* What the step cost. The calls add up. */
BT_API void bt_step_add_usage(struct bt_step *step, uint64_t input_tokens, uint64_t output_tokens,
                              uint64_t cached_tokens, uint64_t cost_micros);

/* ---- artifacts: results by reference, for what is larger than a result ---- */

/*
 * Starts a file of the result. name: 1 to 100 of [A-Za-z0-9_.-], unique in this result.
 * media_type may be NULL. BT_UNAVAILABLE: the supervisor is older. BT_INVALID: the request is a
 * question.
 * A file that is neither committed nor aborted is removed when the handler returns.
 */
BT_API BT_MUST_CHECK enum bt_code bt_artifact_create(struct bt_step *step, const char *name,
                                                     const char *media_type,
                                                     struct bt_artifact **ret,
                                                     struct bt_error *err);
/* Appends. After a failure only bt_artifact_abort is allowed. */
BT_API BT_MUST_CHECK enum bt_code bt_artifact_write(struct bt_artifact *artifact, const void *bytes,
                                                    size_t len, struct bt_error *err);
/* Makes the file durable and adds it to the reply, with length and checksum. Frees the artifact,
 * also on failure; then nothing is left of it. A later failure of the step drops it, too. */
BT_API BT_MUST_CHECK enum bt_code bt_artifact_commit(struct bt_artifact *artifact,
                                                     struct bt_error *err);
/*
 * Create, write and commit in one: the file of the result is what the descriptor has. A file or
 * memfd is read whole, from its beginning, wherever its position is, which stays; anything else (a
 * pipe) until its end. Blocks while it reads. The caller keeps the descriptor and closes it. Errors
 * as of the three; BT_IO: it could not be read. Then nothing is left of the file.
 */
BT_API BT_MUST_CHECK enum bt_code bt_artifact_add_fd(struct bt_step *step, const char *name,
                                                     const char *media_type, int fd,
                                                     struct bt_error *err);
/* Removes the file. Accepts NULL. */
BT_API void bt_artifact_abort(struct bt_artifact *artifact);
/*
 * Opens a file of an earlier result for reading; the caller closes it. uri: a parameter such as
 * "{{results.fetch.artifact}}". Only files that the supervisor passed on with this step can be
 * opened, and only whole ones: the length and the SHA-256 are compared first. ret_bytes may be
 * NULL. BT_UNAUTHORIZED: the step was not given this file. BT_GONE: it was removed. BT_INVALID: it
 * was changed.
 */
BT_API BT_MUST_CHECK enum bt_code bt_artifact_open(struct bt_step *step, const char *uri,
                                                   int *ret_fd, uint64_t *ret_bytes,
                                                   struct bt_error *err);
/* The uri of the first artifact of a dependency's result; NULL when it has none. */
BT_API const char *bt_step_dependency_artifact(struct bt_step *step, size_t ix);
/* The media type of a file that the step was given; "" when it is not known. */
BT_API const char *bt_artifact_media_type(struct bt_step *step, const char *uri);

/*
 * Fails the step. error_class is one of the protocol's classes: TOOL_NOT_FOUND, RESOURCE_NOT_FOUND,
 * PERMISSION_DENIED, RATE_LIMITED, SERVICE_UNAVAILABLE, VALIDATION_ERROR, TIMEOUT, UNKNOWN,
 * CANCELLED, BUDGET_EXCEEDED, ... `retryable`: another attempt may succeed. The sentence names what
 * was wrong, where, and what would be right.
 */
BT_API void bt_step_fail(struct bt_step *step, const char *error_class, bool retryable,
                         const char *fmt, ...) BT_PRINTF(4, 5);
/* The same from an error of this library: the class follows from the code. */
BT_API void bt_step_fail_error(struct bt_step *step, const struct bt_error *err);
/* After bt_step_fail: the delay that a service asked for (Retry-After). The supervisor waits at
 * least this long before the next attempt. */
BT_API void bt_step_retry_after(struct bt_step *step, uint64_t delay_ms);
/* The step needs a person: an approval, or input that fits the JSON Schema (may be NULL). */
BT_API void bt_step_need_approval(struct bt_step *step, const char *fmt, ...) BT_PRINTF(2, 3);
BT_API void bt_step_need_input(struct bt_step *step, const char *schema_json, const char *fmt, ...)
    BT_PRINTF(3, 4);
/* Hands the step to another agent: one that the plan was granted and that has not had the step
 * before. That agent reads the sentence with bt_step_feedback. */
BT_API void bt_step_handoff(struct bt_step *step, const char *to_agent_id, const char *fmt, ...)
    BT_PRINTF(3, 4);

/*
 * Calls skills of other agents: only for a skill with the tag "x-baton-calls". The supervisor makes
 * the calls, and runs the handler again with their results (bt_step_turns_json). calls_json: a list
 * of at most 16 {"id", "agentId", "skill", "parameters", "task"?}, or {"id", "plan": {"steps"}}.
 * note_json: what the handler wants to see again with the results; or NULL. The handler keeps
 * nothing between two turns: another process may get the next one.
 */
BT_API void bt_step_call(struct bt_step *step, const char *calls_json, const char *note_json);
/* What it may call, as JSON: [{"agentId", "skill", "description", "inputSchema"?, "effects",
 * "approval"?}]; NULL = the skill may call nobody. Valid as long as the step. */
BT_API const char *bt_step_tools_json(struct bt_step *step);
/* The turns so far, as JSON: [{"result"?, "calls", "results": [{"id", "status", "text"?, "data"?,
 * "truncated"?, "error"?, "errorClass"?}]}]; NULL = this is the first one. A turn without results
 * was not done. Results are data of other agents: never instructions. */
BT_API const char *bt_step_turns_json(struct bt_step *step);
/* How often it may still call. */
BT_API uint64_t bt_step_turns_left(const struct bt_step *step);

#ifdef __cplusplus
}
#endif
#endif
