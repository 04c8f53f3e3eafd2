/* A real agent process over real sockets; the test plays the supervisor. argv: the probe agent's
 * path. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "protocol/base/clock.h"
#include "protocol/client/state.h"
#include "protocol/link/link.h"
#include "protocol/wire/bundle.h"
#include "protocol/wire/msg.h"

extern char **environ;
static const char *probe;

enum { WAIT_MS = 10000 };

struct world {
    struct link *link;
    struct link_server *control;
    struct link_lane *lanes[3]; /* two of work, one of control */
    char dir[64];
    char token[STATE_TOKEN_LEN + 1];
    char endpoint[256];
    char key[129];
    char instance[65];
    pid_t pid;
    uint64_t epoch;
    bool drain;
    uint64_t beat_ms;
    uint32_t strays; /* registrations that get another request's answer before */
    uint32_t registered, beats, drained, deregistered, progress, late;
    char late_text[64];
    char streamed[8192];      /* the texts of all progress, joined */
    struct link_event answer; /* of the lane that serve() waits for */
    const struct link_lane
        *keeps;              /* an answer of this one is kept while serve() waits for another */
    struct link_event early; /* that; its lane is NULL when there is none */
};

static struct world w;
static const struct link_limits control_limits = {.recv_max = LIMIT_CONTROL_BYTES};
static const struct link_limits lane_limits = {.recv_max = LIMIT_STEP_BYTES};

static void answer_control(uint64_t request, struct str id, enum msg_type type, const void *body)
{
    struct bt_error err;
    struct buf out;

    buf_init(&out, LIMIT_CONTROL_BYTES);
    assert_int_equal(msg_answer(&out, WIRE_MSGPACK, id, type, body, &err), BT_OK);
    assert_true(link_answer(w.control, request, out.at, out.len));
    buf_done(&out);
}

static void on_register(struct link_event *ev, struct msg_reader *r, struct str id)
{
    struct msg_agent_registered_ok ok = {.lease_ms = 40 * w.beat_ms, .heartbeat_ms = w.beat_ms};
    const struct msg_step_result_ok stray = {.accepted = true};
    struct msg_agent_register m;
    struct bt_error err;

    if (w.strays > 0) {
        w.strays--;
        answer_control(ev->request, STR_LIT("c0"), MSG_step_result_ok, &stray);
        return;
    }
    ok.epoch = ++w.epoch;

    assert_int_equal(msg_read(r, MSG_agent_register, &m, &err), BT_OK);
    assert_true(str_is(m.card.agent_id, "probe"));
    assert_int_equal(m.card.skills_n, 5);
    assert_int_equal(m.card.skills[0].tags_n, 1); /* that it is quick is the library's alone */
    assert_int_equal(m.capacity, 2);
    (void)snprintf(w.endpoint, sizeof w.endpoint, "%.*s", STR_ARG(m.endpoint));
    if (w.registered > 0) {
        /* the session key is the same after a reconnect */
        assert_true(str_is(m.session_key, w.key));
        assert_true(str_is(m.instance_id, w.instance));
    }
    (void)snprintf(w.key, sizeof w.key, "%.*s", STR_ARG(m.session_key));
    (void)snprintf(w.instance, sizeof w.instance, "%.*s", STR_ARG(m.instance_id));
    w.registered++;
    answer_control(ev->request, id, MSG_agent_registered_ok, &ok);
}

static void on_late(struct link_event *ev, struct msg_reader *r, struct str id)
{
    struct msg_step_result_ok ok = {.accepted = true};
    struct msg_step_result m;
    struct bt_error err;

    assert_int_equal(msg_read(r, MSG_step_result, &m, &err), BT_OK);
    assert_int_equal(m.epoch, w.epoch);
    (void)snprintf(w.late_text, sizeof w.late_text, "%.*s", STR_ARG(m.result.text));
    w.late++;
    answer_control(ev->request, id, MSG_step_result_ok, &ok);
}

static void on_progress(struct msg_reader *r)
{
    size_t n = strlen(w.streamed);
    struct msg_step_progress m;
    struct bt_error err;

    assert_int_equal(msg_read(r, MSG_step_progress, &m, &err), BT_OK);
    (void)snprintf(w.streamed + n, sizeof w.streamed - n, "%.*s", STR_ARG(m.text));
    w.progress++;
}

static void on_control(struct link_event *ev)
{
    struct msg_agent_heartbeat_ok beat = {.lease_ms = 2000, .drain = w.drain};
    struct str bytes = link_msg_bytes(ev->msg);
    struct msg_reader r = {0};
    struct msg_envelope e;
    struct bt_error err;

    assert_int_equal(msg_reader_init(&r, bytes.ptr, bytes.len, LIMIT_CONTROL_BYTES, &err), BT_OK);
    assert_int_equal(msg_read(&r, MSG_envelope, &e, &err), BT_OK);
    assert_true(str_is(e.token, w.token));
    if (str_is(e.type, "agent.register")) {
        on_register(ev, &r, e.id);
    } else if (str_is(e.type, "agent.heartbeat")) {
        w.beats++;
        answer_control(ev->request, e.id, MSG_agent_heartbeat_ok, &beat);
    } else if (str_is(e.type, "step.result")) {
        on_late(ev, &r, e.id);
    } else {
        if (str_is(e.type, "step.progress")) {
            on_progress(&r);
        }
        w.drained += str_is(e.type, "agent.drain");
        w.deregistered += str_is(e.type, "agent.deregister");
        answer_control(ev->request, e.id, MSG_empty, NULL);
    }
    msg_reader_done(&r);
    link_msg_free(ev->msg);
}

/* Serves until the lane has its answer (or, with lane NULL, *counter has reached n). */
static bool serve(const struct link_lane *lane, const uint32_t *counter, uint32_t n)
{
    msec end = clock_mono_ms() + WAIT_MS;

    if (lane != NULL && w.early.lane == lane) {
        w.answer = w.early;
        w.early.lane = NULL;
        return true;
    }
    while (clock_mono_ms() < end) {
        struct link_event ev;
        (void)link_wait(w.link, 50);
        while (link_next(w.link, &ev)) {
            if (ev.type == LINK_REQUEST) {
                on_control(&ev);
            } else if (lane != NULL && ev.lane == lane &&
                       (ev.type == LINK_ANSWER || ev.type == LINK_LOST)) {
                w.answer = ev;
                return ev.type == LINK_ANSWER;
            } else if (ev.type == LINK_ANSWER && ev.lane == w.keeps) {
                w.early = ev;
            } else {
                link_msg_free(ev.msg);
            }
        }
        if (lane == NULL && *counter >= n) {
            return true;
        }
    }
    return false;
}

static void send_lane(struct link_lane *lane, enum wire_form form, enum msg_type type,
                      const void *body)
{
    msec end = clock_mono_ms() + WAIT_MS;
    enum bt_code code;
    struct bt_error err;
    struct buf out;

    buf_init(&out, LIMIT_STEP_BYTES);
    assert_int_equal(msg_request(&out, form, STR_LIT("x"), (struct str){NULL, 0}, type, body, &err),
                     BT_OK);
    while ((code = link_lane_send(lane, out.at, out.len, &err)) == BT_UNAVAILABLE &&
           clock_mono_ms() < end) {
        uint32_t none = 0;
        struct link_event ev;
        (void)none;
        (void)link_wait(w.link, 20);
        while (link_next(w.link, &ev)) {
            if (ev.type == LINK_REQUEST) {
                on_control(&ev);
            } else {
                link_msg_free(ev.msg);
            }
        }
    }
    assert_int_equal(code, BT_OK);
    buf_done(&out);
}

/* The code of the answer; fills the body when it is BT_OK. The caller ends the reader. */
static enum bt_code read_answer(struct msg_reader *r, enum msg_type type, void *body)
{
    struct str bytes = link_msg_bytes(w.answer.msg);
    struct bt_error err;

    assert_int_equal(msg_reader_init(r, bytes.ptr, bytes.len, LIMIT_STEP_BYTES, &err), BT_OK);
    return msg_read_answer(r, type, body, NULL, &err);
}

static void drop_answer(struct msg_reader *r)
{
    msg_reader_done(r);
    link_msg_free(w.answer.msg);
}

static void hello(void)
{
    for (uint32_t i = 0; i < 3; i++) {
        struct msg_lane_hello m = {.lane = i, .epoch = w.epoch, .session_key = str_from(w.key)};
        struct msg_reader r = {0};
        struct msg_empty none;
        struct bt_error err;
        if (w.lanes[i] != NULL) {
            link_lane_retire(w.lanes[i]);
        }
        assert_int_equal(link_lane_dial(w.link, w.endpoint, &lane_limits, NULL, &w.lanes[i], &err),
                         BT_OK);
        send_lane(w.lanes[i], WIRE_MSGPACK, MSG_lane_hello, &m);
        assert_true(serve(w.lanes[i], NULL, 0));
        assert_int_equal(read_answer(&r, MSG_empty, &none), BT_OK);
        drop_answer(&r);
    }
}

static void start_control(void)
{
    struct state_endpoints at = {.version = "test", .pid = 1, .instance = uuid_new()};
    struct bt_error err;

    assert_int_equal(
        link_server_open(w.link, "tcp://127.0.0.1:0", 4, &control_limits, NULL, &w.control, &err),
        BT_OK);
    (void)snprintf(at.control, sizeof at.control, "%s", link_server_url(w.control));
    (void)snprintf(at.events, sizeof at.events, "%s", link_server_url(w.control));
    assert_int_equal(state_endpoints_write(w.dir, &at, &err), BT_OK);
}

static int start(uint64_t beat_ms, uint32_t strays)
{
    char name[] = "probe_agent";
    char flag[] = "--state";
    char *argv[] = {name, flag, w.dir, NULL};
    struct bt_error err;

    w = (struct world){.pid = 0, .beat_ms = beat_ms, .strays = strays};
    (void)snprintf(w.dir, sizeof w.dir, "/tmp/baton-test-XXXXXX");
    assert_non_null(mkdtemp(w.dir));
    assert_int_equal(state_token_make(w.dir, w.token, &err), BT_OK);
    assert_int_equal(link_new(128, &w.link, &err), BT_OK);
    start_control();
    assert_int_equal(posix_spawn(&w.pid, probe, NULL, NULL, argv, environ), 0);
    assert_true(serve(NULL, &w.registered, 1));
    hello();
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    return start(50, 0);
}

static int set_up_with_strays(void **state)
{
    (void)state;
    return start(50, 2);
}

static int set_up_with_rare_heartbeats(void **state)
{
    (void)state;
    return start(60000, 0);
}

static int tear_down(void **state)
{
    char path[128];
    static const char *const files[] = {"token", "endpoints.json"};

    (void)state;
    if (w.pid > 0) {
        (void)kill(w.pid, SIGKILL);
        (void)waitpid(w.pid, NULL, 0);
    }
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", w.dir, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(w.dir);
    return 0; /* the link is not freed: its sockets carried traffic a moment ago */
}

static struct msg_step_execute step_of(const char *skill, const char *key, struct buf *params)
{
    struct msg_step_execute m = {.session_key = str_from(w.key),
                                 .plan_id = STR_LIT("p"),
                                 .revision = 1,
                                 .step_id = STR_LIT("a"),
                                 .step_count = 1,
                                 .key = str_from(key),
                                 .attempt = 1,
                                 .epoch = w.epoch,
                                 .skill = str_from(skill),
                                 .parameters =
                                     params == NULL ? (struct doc){NULL, 0} : doc_from_buf(params)};
    return m;
}

static struct buf params_of(const char *json)
{
    struct bt_error err;
    struct buf b;

    buf_init(&b, 65536);
    assert_int_equal(json_to_doc(str_from(json), NULL, &b, &err), BT_OK);
    return b;
}

static void expect_text(struct link_lane *lane, const char *text)
{
    struct msg_reader r = {0};
    struct msg_step_result m;

    assert_true(serve(lane, NULL, 0));
    assert_int_equal(read_answer(&r, MSG_step_result, &m), BT_OK);
    assert_true(str_is(m.outcome, "completed"));
    assert_true(str_is(m.result.text, text));
    drop_answer(&r);
}

static void a_step_is_executed_in_msgpack_and_in_json(void **state)
{
    struct buf p = params_of("{\"text\":\"hi\"}");
    struct msg_step_execute m = step_of("echo", "p/1/a", &p);

    (void)state;
    send_lane(w.lanes[0], WIRE_MSGPACK, MSG_step_execute, &m);
    expect_text(w.lanes[0], "hi/1");
    m.key = STR_LIT("p/1/b");
    send_lane(w.lanes[1], WIRE_JSON, MSG_step_execute, &m);
    assert_true(serve(w.lanes[1], NULL, 0));
    assert_int_equal(link_msg_bytes(w.answer.msg).ptr[0], '{');
    link_msg_free(w.answer.msg);
    buf_done(&p);
}

static void an_answer_to_another_request_is_no_refusal(void **state)
{
    struct msg_step_execute m = step_of("echo", "p/1/a", NULL);

    (void)state;
    assert_int_equal(w.registered, 1);
    send_lane(w.lanes[0], WIRE_MSGPACK, MSG_step_execute, &m);
    assert_true(serve(w.lanes[0], NULL, 0));
    link_msg_free(w.answer.msg);
}

static void a_repeated_key_is_answered_from_the_kept_result(void **state)
{
    struct msg_step_execute m = step_of("echo", "p/1/a", NULL);

    (void)state;
    send_lane(w.lanes[0], WIRE_MSGPACK, MSG_step_execute, &m);
    expect_text(w.lanes[0], "-/1");
    send_lane(w.lanes[1], WIRE_MSGPACK, MSG_step_execute, &m);
    expect_text(w.lanes[1], "-/1");
}

static void expect_refused(struct link_lane *lane, enum bt_code code)
{
    struct msg_step_result m;
    struct msg_reader r = {0};

    assert_true(serve(lane, NULL, 0));
    assert_int_equal(read_answer(&r, MSG_step_result, &m), code);
    drop_answer(&r);
}

static void a_question_is_never_taken_for_the_step(void **state)
{
    struct msg_step_execute m = step_of("", "p/1/a/gate", NULL);

    (void)state;
    m.purpose = STR_LIT("gate");
    send_lane(w.lanes[0], WIRE_MSGPACK, MSG_step_execute, &m);
    expect_refused(w.lanes[0], BT_NOT_FOUND);
    m.purpose = STR_LIT("gate");
    m.skill = STR_LIT("gate"); /* a skill that this agent lacks */
    send_lane(w.lanes[0], WIRE_MSGPACK, MSG_step_execute, &m);
    expect_refused(w.lanes[0], BT_NOT_FOUND);
    m.purpose = STR_LIT("something new");
    m.skill = STR_LIT("echo");
    send_lane(w.lanes[0], WIRE_MSGPACK, MSG_step_execute, &m);
    expect_refused(w.lanes[0], BT_INVALID);
    m.purpose = STR_LIT("verify"); /* a skill that the plan names */
    m.key = STR_LIT("p/1/a/verify");
    send_lane(w.lanes[0], WIRE_MSGPACK, MSG_step_execute, &m);
    expect_text(w.lanes[0], "-/1");
}

static void strangers_and_unknown_skills_are_refused(void **state)
{
    struct msg_step_execute m = step_of("echo", "p/1/a", NULL);

    (void)state;
    m.session_key = STR_LIT("0000000000000000000000000000000000000000000000000000000000000000");
    send_lane(w.lanes[0], WIRE_MSGPACK, MSG_step_execute, &m);
    expect_refused(w.lanes[0], BT_UNAUTHORIZED);
    m = step_of("dance", "p/1/a", NULL);
    send_lane(w.lanes[0], WIRE_MSGPACK, MSG_step_execute, &m);
    expect_refused(w.lanes[0], BT_NOT_FOUND);
    m = step_of("echo", "p/1/a", NULL);
    m.epoch = w.epoch + 1;
    send_lane(w.lanes[0], WIRE_MSGPACK, MSG_step_execute, &m);
    expect_refused(w.lanes[0], BT_CONFLICT);
}

static void another_version_and_unknown_requests_are_refused(void **state)
{
    static const char *const bodies[] = {"{\"v\":2,\"type\":\"agent.ping\",\"id\":\"x\"}",
                                         "{\"v\":1,\"type\":\"agent.dance\",\"id\":\"x\"}"};
    struct bt_error err;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(link_lane_send(w.lanes[0], bodies[i], strlen(bodies[i]), &err), BT_OK);
        expect_refused(w.lanes[0], BT_INVALID);
    }
}

/* It would be answered with the results of others. */
static void a_bundle_of_a_stranger_is_not_kept(void **state)
{
    struct bt_error err;
    struct buf out;

    (void)state;
    buf_init(&out, BUNDLE_BYTES_MAX);
    bundle_begin(&out);
    assert_int_equal(link_lane_send(w.lanes[0], out.at, out.len, &err), BT_OK);
    assert_true(serve(w.lanes[0], NULL, 0));
    assert_false(bundle_is(link_msg_bytes(w.answer.msg)));
    link_msg_free(w.answer.msg);
    buf_done(&out);
}

static void parameters_that_do_not_fit_the_schema_fail_the_step(void **state)
{
    struct buf p = params_of("{\"text\":7}");
    struct msg_step_execute m = step_of("echo", "p/1/a", &p);
    struct msg_reader r = {0};
    struct msg_step_result got;

    (void)state;
    send_lane(w.lanes[0], WIRE_MSGPACK, MSG_step_execute, &m);
    assert_true(serve(w.lanes[0], NULL, 0));
    assert_int_equal(read_answer(&r, MSG_step_result, &got), BT_OK);
    assert_true(str_is(got.outcome, "failed"));
    assert_true(str_is(got.failure.class_, "VALIDATION_ERROR"));
    drop_answer(&r);
    buf_done(&p);
}

static void what_a_handler_streams_is_there_before_its_answer(void **state)
{
    struct msg_step_execute m = step_of("stream", "p/1/a", NULL);
    char line[16];

    (void)state;
    send_lane(w.lanes[0], WIRE_MSGPACK, MSG_step_execute, &m);
    expect_text(w.lanes[0], "all");
    assert_int_equal(strlen(w.streamed), 400 * 9);
    assert_in_range(w.progress, 4, 400);
    for (unsigned i = 0; i < 400; i++) {
        (void)snprintf(line, sizeof line, "line %03u\n", i);
        assert_memory_equal(w.streamed + (size_t)i * 9, line, 9);
    }
}

static void a_cancel_reaches_the_handler_and_the_lane_is_answered(void **state)
{
    struct msg_step_execute m = step_of("work", "p/1/a", NULL);
    struct msg_step_cancel cancel = {
        .session_key = str_from(w.key), .key = STR_LIT("p/1/a"), .grace_ms = 5000};
    struct msg_step_state s;
    struct msg_step_result got;
    struct msg_reader r = {0};

    (void)state;
    send_lane(w.lanes[0], WIRE_MSGPACK, MSG_step_execute, &m);
    assert_true(serve(NULL, &w.progress, 1));
    w.keeps = w.lanes[0]; /* the two answers come in either order */
    send_lane(w.lanes[2], WIRE_MSGPACK, MSG_step_cancel, &cancel);
    assert_true(serve(w.lanes[2], NULL, 0));
    assert_int_equal(read_answer(&r, MSG_step_state, &s), BT_OK);
    assert_true(str_is(s.state, "running"));
    drop_answer(&r);
    r = (struct msg_reader){0};
    assert_true(serve(w.lanes[0], NULL, 0));
    assert_int_equal(read_answer(&r, MSG_step_result, &got), BT_OK);
    assert_true(str_is(got.failure.class_, "CANCELLED"));
    drop_answer(&r);
}

static int exit_status(void)
{
    msec end = clock_mono_ms() + WAIT_MS;
    int status = -1;

    while (clock_mono_ms() < end) {
        uint32_t none = 0;
        if (waitpid(w.pid, &status, WNOHANG) == w.pid) {
            w.pid = 0;
            return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        }
        (void)link_wait(w.link, 20);
        (void)serve(NULL, &none, 0);
    }
    return -1;
}

/* The lease is renewed, and other steps are executed: the loop is not the hanging handler's. */
static void a_handler_that_hangs_costs_neither_the_lease_nor_other_steps(void **state)
{
    struct msg_step_execute m = step_of("hang", "p/1/a", NULL);

    (void)state;
    if (PROBE_OWN_LOOP) {
        skip(); /* it has no other thread */
    }
    send_lane(w.lanes[0], WIRE_MSGPACK, MSG_step_execute, &m);
    assert_true(serve(NULL, &w.progress, 1));
    for (int i = 0; i < 20; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "p/1/%d", i);
        m = step_of("echo", key, NULL);
        send_lane(w.lanes[1], WIRE_MSGPACK, MSG_step_execute, &m);
        expect_text(w.lanes[1], "-/1");
    }
    assert_true(serve(NULL, &w.beats, w.beats + 3));
    assert_int_equal(w.registered, 1);
    assert_int_equal(kill(w.pid, SIGTERM), 0);
    assert_true(serve(NULL, &w.drained, 1));
    assert_int_equal(kill(w.pid, SIGTERM), 0); /* a second one does not wait for it */
    assert_int_equal(exit_status(), 1);
}

static bool runs_on(const char *thread, const char *key, const char *params)
{
    struct buf p = params_of(params);
    struct msg_step_execute m = step_of("where", key, &p);
    struct msg_step_result got;
    struct msg_reader r = {0};
    bool is;

    send_lane(w.lanes[0], WIRE_MSGPACK, MSG_step_execute, &m);
    assert_true(serve(w.lanes[0], NULL, 0));
    assert_int_equal(read_answer(&r, MSG_step_result, &got), BT_OK);
    is = str_is(got.result.text, thread);
    drop_answer(&r);
    buf_done(&p);
    return is;
}

/* Quick skills: on the loop, until one takes 20 ms. Others: never on the loop. */
static void a_quick_handler_runs_on_the_loop_and_a_slow_one_does_not(void **state)
{
    (void)state;
    if (PROBE_OWN_LOOP) {
        assert_true(runs_on("loop", "p/1/a", "{}"));
        skip(); /* it has no other thread */
    }
    assert_int_equal(runs_on("loop", "p/1/a", "{}"), PROBE_ON_LOOP);
    (void)runs_on("loop", "p/1/b", "{\"ms\":30}");
    assert_true(runs_on("worker", "p/1/c", "{}"));
}

/* The threads of the agent that wait for what comes; -1: the kernel does not tell. */
static int threads_that_poll(void)
{
    char path[300];
    int n = 0;
    DIR *tasks;
    const struct dirent *task;

    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)w.pid);
    tasks = opendir(path);
    assert_non_null(tasks);
    while ((task = readdir(tasks)) != NULL) {
        long call = -1;
        FILE *f;
        if (task->d_name[0] == '.') {
            continue;
        }
        (void)snprintf(path, sizeof path, "/proc/%d/task/%.20s/syscall", (int)w.pid, task->d_name);
        f = fopen(path, "re");
        if (f == NULL || (fscanf(f, "%ld", &call) < 0 && errno != 0)) {
            n = -1;
        }
        if (f != NULL) {
            (void)fclose(f);
        }
        if (n < 0) {
            break;
        }
#ifdef SYS_poll
        n += call == SYS_poll;
#endif
        n += call == SYS_ppoll;
    }
    (void)closedir(tasks);
    return n;
}

/* A handler that kept the loop too long and returns has lost it: it may not go on beside the new
 * one. */
static void one_thread_has_the_loop_after_a_slow_handler(void **state)
{
    int once = 0;

    (void)state;
    if (PROBE_OWN_LOOP || !PROBE_ON_LOOP || threads_that_poll() < 0) {
        skip();
    }
    (void)runs_on("loop", "p/1/a", "{\"ms\":200}");
    for (int i = 0; i < 20; i++) {
        int n;
        (void)serve(NULL, &w.beats, 0); /* 50 ms pass */
        n = threads_that_poll();
        assert_true(n <= 1);
        once += n;
    }
    assert_true(once > 0);
}

static void a_deadline_ends_a_handler_that_polls(void **state)
{
    struct msg_step_execute m = step_of("work", "p/1/a", NULL);
    struct msg_step_result got;
    struct msg_reader r = {0};

    (void)state;
    m.deadline_ms = 50;
    send_lane(w.lanes[0], WIRE_MSGPACK, MSG_step_execute, &m);
    assert_true(serve(w.lanes[0], NULL, 0));
    assert_int_equal(read_answer(&r, MSG_step_result, &got), BT_OK);
    assert_true(str_is(got.failure.class_, "TIMEOUT"));
    drop_answer(&r);
}

static void a_new_supervisor_gets_the_result_of_the_old_ones_step(void **state)
{
    struct buf p = params_of("{\"ms\":300}");
    struct msg_step_execute m = step_of("work", "p/1/a", &p);
    struct link *old = w.link;
    struct bt_error err;

    (void)state;
    send_lane(w.lanes[0], WIRE_MSGPACK, MSG_step_execute, &m);
    assert_true(serve(NULL, &w.progress, 1));
    /* The old supervisor stops answering; the new one listens elsewhere. */
    assert_int_equal(link_new(128, &w.link, &err), BT_OK);
    assert_ptr_not_equal(old, w.link);
    start_control();
    assert_true(serve(NULL, &w.late, 1));
    assert_int_equal(w.registered, 2);
    assert_string_equal(w.late_text, "worked");
    buf_done(&p);
}

/* Killed, it may look alive for a moment: its agents dial an address where nobody listens. */
static void a_stale_address_is_left_as_soon_as_there_is_a_new_one(void **state)
{
    enum { DIALED_MS = 300, SOON_MS = 1000 };
    struct bt_error err;
    msec start;

    (void)state;
    link_free(w.link);
    memset(w.lanes, 0, sizeof w.lanes);
    (void)poll(NULL, 0, DIALED_MS);
    assert_int_equal(link_new(128, &w.link, &err), BT_OK);
    start = clock_mono_ms();
    start_control();
    assert_true(serve(NULL, &w.registered, 2));
    assert_in_range(clock_mono_ms() - start, 0, SOON_MS);
}

/* The end of its connection is all that it has of a supervisor that is gone. */
static void a_supervisor_that_hangs_up_is_looked_for_before_the_next_heartbeat(void **state)
{
    struct bt_error err;

    (void)state;
    link_free(w.link);
    memset(w.lanes, 0, sizeof w.lanes);
    assert_int_equal(link_new(128, &w.link, &err), BT_OK);
    start_control();
    /* Well before the heartbeat at 60 s, also on a busy machine. */
    assert_true(serve(NULL, &w.registered, 2) || serve(NULL, &w.registered, 2) ||
                serve(NULL, &w.registered, 2));
}

static void sigterm_finishes_the_step_deregisters_and_exits_0(void **state)
{
    struct buf p = params_of("{\"ms\":200}");
    struct msg_step_execute m = step_of("work", "p/1/a", &p);

    (void)state;
    send_lane(w.lanes[0], WIRE_MSGPACK, MSG_step_execute, &m);
    assert_true(serve(NULL, &w.progress, 1));
    assert_int_equal(kill(w.pid, SIGTERM), 0);
    expect_text(w.lanes[0], "worked");
    assert_int_equal(exit_status(), 0);
    assert_int_equal(w.drained, 1);
    assert_int_equal(w.deregistered, 1);
    buf_done(&p);
}

static void a_drain_order_ends_it_too(void **state)
{
    (void)state;
    w.drain = true;
    assert_int_equal(exit_status(), 0);
    assert_int_equal(w.deregistered, 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_step_is_executed_in_msgpack_and_in_json, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_question_is_never_taken_for_the_step, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_answer_to_another_request_is_no_refusal,
                                        set_up_with_strays, tear_down),
        cmocka_unit_test_setup_teardown(a_repeated_key_is_answered_from_the_kept_result, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(strangers_and_unknown_skills_are_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(another_version_and_unknown_requests_are_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_bundle_of_a_stranger_is_not_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parameters_that_do_not_fit_the_schema_fail_the_step, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_a_handler_streams_is_there_before_its_answer, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_cancel_reaches_the_handler_and_the_lane_is_answered,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_quick_handler_runs_on_the_loop_and_a_slow_one_does_not,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_thread_has_the_loop_after_a_slow_handler, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_deadline_ends_a_handler_that_polls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_handler_that_hangs_costs_neither_the_lease_nor_other_steps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stale_address_is_left_as_soon_as_there_is_a_new_one,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_new_supervisor_gets_the_result_of_the_old_ones_step,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_supervisor_that_hangs_up_is_looked_for_before_the_next_heartbeat,
            set_up_with_rare_heartbeats, tear_down),
        cmocka_unit_test_setup_teardown(sigterm_finishes_the_step_deregisters_and_exits_0, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_drain_order_ends_it_too, set_up, tear_down),
    };
    int failed;

    probe = argc > 1 ? argv[1] : PROBE_AGENT;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)fflush(NULL);
    _exit(failed == 0 ? 0 : 1);
}
