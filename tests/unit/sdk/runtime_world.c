#include "tests/unit/sdk/runtime_world.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct world world;
_Atomic msec world_now;

enum { WORLDS_MAX = 128, ARGS_MAX = 20, NO_EPOCH = 100 };
static struct runtime *kept[WORLDS_MAX]; /* a runtime is never freed */
static struct card cards[WORLDS_MAX];
static uint32_t kept_n;

/* ---- the clock ---- */

msec __wrap_clock_mono_ms(void);
uint64_t __wrap_clock_mono_ns(void);

msec __wrap_clock_mono_ms(void)
{
    return world_now;
}

uint64_t __wrap_clock_mono_ns(void)
{
    return world_now * 1000000;
}

/* ---- the agent ---- */

static void echo(struct bt_step *step, void *self)
{
    (void)self;
    bt_step_reply_text(step, "%s", bt_step_param_string(step, "text", "-"));
}

static void give_up(struct bt_step *step, void *self)
{
    (void)self;
    bt_step_fail(step, "TIMEOUT", true, "%s", bt_step_param_string(step, "text", "no"));
}

/* Takes as long as its parameter says, of the world's clock. */
static void slow(struct bt_step *step, void *self)
{
    (void)self;
    world_now += (msec)bt_step_param_number(step, "ms", 0);
    bt_step_reply_text(step, "slow");
}

static void on_cancel(struct bt_step *step, void *arg)
{
    (void)step;
    (void)arg;
    world.told++;
}

static void later(struct bt_step *step, void *self)
{
    (void)self;
    world.later = step;
    assert_true(bt_step_later(step, on_cancel, NULL));
}

/* Reports progress and holds its thread until the test lets it go. */
sem_t world_hold;
static void hold(struct bt_step *step, void *self)
{
    const bool is_later = bt_step_later(step, NULL, NULL);

    (void)self;
    bt_step_progress(step, 50.0, "half");
    (void)sem_wait(&world_hold);
    bt_step_reply_text(step, is_later ? "later" : "held");
}

void world_done(void *self)
{
    (void)!write(*(const int *)self, "d", 1);
}

static const struct bt_skill skills[] = {
    {.id = "echo", .run = echo},   {.id = "fail", .run = give_up}, {.id = "slow", .run = slow},
    {.id = "later", .run = later}, {.id = "hold", .run = hold},
};

static const struct bt_agent_def def = {
    .agent_id = "one", .version = "1", .skills = skills, .skill_count = 5};

void world_daemon_writes(const char *control)
{
    struct bt_error err;

    world.at = (struct state_endpoints){.version = "test", .pid = 1, .instance = uuid_new()};
    (void)snprintf(world.at.control, sizeof world.at.control, "%s", control);
    (void)snprintf(world.at.events, sizeof world.at.events, "%s", control);
    assert_int_equal(state_endpoints_write(world.dir, &world.at, &err), BT_OK);
}

enum bt_code world_begin(const struct world_how *how, struct bt_error *err)
{
    char name[] = "agent";
    char flag[] = "--state";
    char *argv[ARGS_MAX] = {name, flag, world.dir};
    int argc = 3;
    enum bt_code code;

    world = (struct world){.epoch = NO_EPOCH};
    world_now = WORLD_NOW;
    fake_pipe_closed(0);
    (void)sem_init(&world_hold, 0, 0);
    (void)snprintf(world.dir, sizeof world.dir, "/tmp/baton-test-XXXXXX");
    assert_non_null(mkdtemp(world.dir));
    assert_int_equal(state_token_make(world.dir, world.token, err), BT_OK);
    if (!how->no_daemon) {
        world_daemon_writes("tcp://127.0.0.1:7117");
    }
    for (size_t i = 0; how->args[i] != NULL; i++) {
        world.args[i] = strdup(how->args[i]);
        argv[argc++] = world.args[i];
    }
    log_setup(LOG_ERR, NULL, NULL);
    assert_int_equal(options_read(&world.opt, argc, argv, err), BT_OK);
    assert_true(kept_n < WORLDS_MAX);
    world.card = &cards[kept_n];
    assert_int_equal(card_init(world.card, &def, err), BT_OK);
    code = runtime_new(&(struct runtime_how){.opt = &world.opt,
                                             .card = world.card,
                                             .capacity = how->capacity > 0 ? how->capacity : 2,
                                             .own_loop = !how->workers},
                       &world.rt, err);
    if (code == BT_OK) {
        kept[kept_n++] = world.rt;
        fake_link_wakes(world.rt->link);
    }
    return code;
}

void world_start(const struct world_how *how)
{
    struct bt_error err;

    assert_int_equal(world_begin(how, &err), BT_OK);
    world_up();
    world_register();
}

int world_end(void **state)
{
    static const char *const files[] = {"token", "endpoints.json"};
    char path[128];

    (void)state;
    msg_reader_done(&world.reader);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", world.dir, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(world.dir);
    for (size_t i = 0; i < sizeof world.args / sizeof world.args[0]; i++) {
        free(world.args[i]);
    }
    options_done(&world.opt);
    (void)unsetenv("BATON_STATE");
    return 0;
}

void world_cycle(void)
{
    assert_true(runtime_cycle(world.rt, 0));
}

void world_pass(msec ms)
{
    world_now += ms;
    world_cycle();
}

/* ---- the control lane ---- */

struct link_lane *world_control(void)
{
    const uint32_t n = fake_link_lanes(world.rt->link);

    assert_true(n > 0);
    return fake_link_lane(world.rt->link, n - 1);
}

void world_up(void)
{
    fake_lane_up(world_control());
    world_cycle();
}

static void open_sent(struct msg_envelope *ret)
{
    const struct buf *sent = &world_control()->sent;
    struct bt_error err;

    assert_true(world_control()->outstanding);
    msg_reader_done(&world.reader);
    assert_int_equal(msg_reader_init(&world.reader, sent->at, sent->len, LIMIT_CONTROL_BYTES, &err),
                     BT_OK);
    assert_int_equal(msg_read(&world.reader, MSG_envelope, ret, &err), BT_OK);
}

bool world_asks(enum msg_type type)
{
    struct msg_envelope e;

    if (!world_control()->outstanding) {
        return false;
    }
    open_sent(&e);
    return str_is(e.type, msg_wire_type(type));
}

struct str world_asked_id(void)
{
    struct msg_envelope e;

    open_sent(&e);
    return e.id;
}

void world_asked(enum msg_type type, void *ret_body)
{
    struct msg_envelope e;
    struct bt_error err;

    open_sent(&e);
    assert_true(str_is(e.type, msg_wire_type(type)));
    assert_true(str_is(e.token, world.token));
    assert_int_equal(msg_read(&world.reader, type, ret_body, &err), BT_OK);
}

void world_answer_raw(const char *bytes, size_t len)
{
    fake_lane_answer(world_control(), bytes, len);
    world_cycle();
}

void world_answer(enum msg_type type, const void *body)
{
    struct bt_error err;
    struct buf out;

    buf_init(&out, LIMIT_CONTROL_BYTES);
    assert_int_equal(msg_answer(&out, WIRE_MSGPACK, world_asked_id(), type, body, &err), BT_OK);
    world_answer_raw((const char *)out.at, out.len);
    buf_done(&out);
}

void world_refuse(enum bt_code code)
{
    struct bt_error why;
    struct buf out;

    (void)err_set(&why, code, "no");
    buf_init(&out, LIMIT_CONTROL_BYTES);
    assert_int_equal(msg_answer_error(&out, WIRE_MSGPACK, world_asked_id(), &why, CLASS_NONE, 0,
                                      (struct doc){NULL, 0}),
                     BT_OK);
    world_answer_raw((const char *)out.at, out.len);
    buf_done(&out);
}

void world_register(void)
{
    const struct msg_agent_registered_ok ok = {
        .epoch = ++world.epoch, .lease_ms = WORLD_LEASE_MS, .heartbeat_ms = WORLD_BEAT_MS};

    assert_true(world_asks(MSG_agent_register));
    world_answer(MSG_agent_registered_ok, &ok);
}

/* ---- lanes of work ---- */

struct msg_step_execute world_step(const char *skill, const char *key)
{
    return (struct msg_step_execute){.session_key = str_from(world.rt->session_key),
                                     .plan_id = STR_LIT("p"),
                                     .revision = 1,
                                     .step_id = STR_LIT("a"),
                                     .step_count = 1,
                                     .key = str_from(key),
                                     .attempt = 1,
                                     .epoch = world.epoch,
                                     .skill = str_from(skill)};
}

uint64_t world_send_by(struct link_server *s, uint32_t pipe, enum msg_type type, const void *body)
{
    struct bt_error err;
    struct buf out;

    buf_init(&out, LIMIT_STEP_BYTES);
    assert_int_equal(
        msg_request(&out, WIRE_MSGPACK, STR_LIT("x"), (struct str){NULL, 0}, type, body, &err),
        BT_OK);
    fake_server_request(s, pipe, ++world.request, out.at, out.len);
    buf_done(&out);
    world_cycle();
    return world.request;
}

uint64_t world_send(enum msg_type type, const void *body)
{
    return world_send_by(world.rt->server, 1, type, body);
}

uint64_t world_send_raw(const char *bytes, size_t len, uint32_t pipe)
{
    fake_server_request(world.rt->server, pipe, ++world.request, bytes, len);
    world_cycle();
    return world.request;
}

bool world_is_answered(uint64_t request)
{
    return fake_link_answer_to(world.rt->link, request) != NULL;
}

struct str world_bytes(uint64_t request)
{
    const struct buf *b = fake_link_answer_to(world.rt->link, request);

    assert_non_null(b);
    return buf_str(b);
}

enum bt_code world_read_bytes(struct str bytes, enum msg_type type, void *ret_body)
{
    struct bt_error err = {.code = BT_OK};
    enum bt_code code;

    msg_reader_done(&world.reader);
    assert_int_equal(msg_reader_init(&world.reader, bytes.ptr, bytes.len, LIMIT_STEP_BYTES, &err),
                     BT_OK);
    world.cls = CLASS_NONE;
    code = msg_read_answer(&world.reader, type, ret_body, &world.cls, &err);
    (void)snprintf(world.text, sizeof world.text, "%s", code == BT_OK ? "" : err.msg);
    return code;
}

enum bt_code world_read(uint64_t request, enum msg_type type, void *ret_body)
{
    return world_read_bytes(world_bytes(request), type, ret_body);
}
