/* What an agent asks its supervisor, and what it does with the answers. */
#include "tests/unit/sdk/runtime_world.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/wire/bundle.h"

static int set_up(void **state)
{
    (void)state;
    world_start(&(struct world_how){.capacity = 2});
    return 0;
}

static int nothing(void **state)
{
    (void)state;
    return 0;
}

/* ---- the registration ---- */

static void a_registration_says_who_where_and_what(void **state)
{
    struct msg_agent_register m;
    struct bt_error err;

    (void)state;
    assert_int_equal(world_begin(&(struct world_how){.capacity = 3}, &err), BT_OK);
    assert_string_equal(world_control()->url, "tcp://127.0.0.1:7117");
    world_up();
    world_asked(MSG_agent_register, &m);
    assert_true(str_is(m.card.agent_id, "one"));
    assert_int_equal(m.card.skills_n, 5);
    assert_true(str_is(m.card.skills[0].id, "echo"));
    assert_int_equal(m.capacity, 3);
    assert_int_equal(m.pid, getpid());
    assert_true(str_is(m.session_key, world.rt->session_key));
    assert_int_equal(m.session_key.len, 64);
    assert_int_equal(m.process_id.len, UUID_TEXT_LEN);
    assert_true(str_is(m.instance_id, world.rt->instance_id));
    assert_int_equal(m.bundle, BUNDLE_ITEMS_MAX);
    assert_true(m.proof);
    assert_false(m.dial_in);
    assert_true(str_is(m.endpoint, fake_control_url));
    assert_int_equal(doc_head(m.protocol).kind, DOC_ARRAY);
    assert_int_equal(doc_head(m.protocol).n, 1);
}

static void the_server_has_a_place_for_each_lane_and_bounds_for_strangers(void **state)
{
    const struct link_server *s = fake_link_server(world.rt->link, 0);

    (void)state;
    assert_int_equal(s->contexts, 2 + 1 + RUNTIME_SPARE_CONTEXTS);
    assert_int_equal(s->limits.recv_max, BUNDLE_BYTES_MAX);
    assert_int_equal(s->limits.peers.peers, 4 * RUNTIME_REQUESTS);
    assert_int_equal(s->limits.peers.unfinished_ms, 60000);
    assert_int_equal(world_control()->limits.recv_max, SEAL_HEADER_BYTES + LIMIT_CONTROL_BYTES);
}

/* What runtime_new says when it fails: the process has to end then, so it is a child. */
static void begins_in_vain(const struct world_how *how, const char *words)
{
    int status = 0;
    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct bt_error err = {.code = BT_OK};
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)alarm(60);
        _exit(world_begin(how, &err) != BT_OK && strstr(err.msg, words) != NULL ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void an_address_that_cannot_be_listened_on_is_named(void **state)
{
    (void)state;
    fake_link_fail_servers(BT_UNAVAILABLE);
    begins_in_vain(&(struct world_how){.args = {"--listen", "tcp://127.0.0.1:9"}},
                   "listening on tcp://127.0.0.1:9: no such address");
    fake_link_fail_servers(BT_OK);
}

static void a_refused_registration_is_asked_again_later_and_a_bad_one_ends_the_agent(void **state)
{
    struct bt_error err;

    (void)state;
    assert_int_equal(world_begin(&(struct world_how){.capacity = 1}, &err), BT_OK);
    world_up();
    world_refuse(BT_UNAVAILABLE);
    assert_false(world.rt->ended);
    assert_false(world_asks(MSG_agent_register));
    assert_in_range(runtime_wait_ms(world.rt), 1, 10);
    world_pass((msec)runtime_wait_ms(world.rt));
    assert_true(world_asks(MSG_agent_register));
    world_refuse(BT_INVALID);
    assert_true(world.rt->ended);
    assert_int_equal(world.rt->status, 2);
}

/* ---- heartbeats ---- */

static void a_heartbeat_lists_what_runs_and_how_far(void **state)
{
    struct msg_step_execute a = world_step("later", "p/1/a");
    struct msg_agent_heartbeat m;

    (void)state;
    world_pass(WORLD_BEAT_MS - 1);
    assert_false(world_control()->outstanding);
    assert_int_equal(runtime_wait_ms(world.rt), 1);
    world_pass(1);
    world_asked(MSG_agent_heartbeat, &m);
    assert_true(str_is(m.instance_id, world.rt->instance_id));
    assert_int_equal(m.epoch, world.epoch);
    assert_int_equal(m.inflight_n, 0);
    assert_true(m.load == 0.0);
    world_answer(MSG_agent_heartbeat_ok, &(struct msg_agent_heartbeat_ok){.lease_ms = 4000});
    a.attempt = 2;
    (void)world_send(MSG_step_execute, &a);
    world_pass(WORLD_BEAT_MS);
    world_asked(MSG_agent_heartbeat, &m);
    assert_int_equal(m.inflight_n, 1);
    assert_true(str_is(m.inflight[0].key, "p/1/a"));
    assert_int_equal(m.inflight[0].attempt, 2);
    assert_true(m.inflight[0].progress == 0.0);
    assert_true(m.load == 0.5);
    world_answer(MSG_agent_heartbeat_ok, &(struct msg_agent_heartbeat_ok){.lease_ms = 4000});
    bt_step_progress(world.later, 25.0, NULL);
    world_cycle();
    world_answer(MSG_empty, NULL);
    world_pass(WORLD_BEAT_MS);
    world_asked(MSG_agent_heartbeat, &m);
    assert_true(m.inflight[0].progress == 0.25);
}

static void orders_of_a_heartbeat_cancel_their_attempts(void **state)
{
    enum { GRACE_MS = 300 };
    struct msg_step_execute a = world_step("later", "p/1/a");
    struct msg_step_execute b = world_step("later", "p/1/b");
    struct msg_cancel_order orders[2] = {{.key = STR_LIT("p/1/b"), .attempt = 1, .grace_ms = 9000},
                                         {.key = STR_LIT("p/1/a"), .attempt = 1, .grace_ms = 300}};
    struct bt_step *first;

    (void)state;
    (void)world_send(MSG_step_execute, &a);
    first = world.later;
    (void)world_send(MSG_step_execute, &b);
    world_pass(WORLD_BEAT_MS);
    world_answer(MSG_agent_heartbeat_ok, &(struct msg_agent_heartbeat_ok){
                                             .lease_ms = 4000, .cancel = orders, .cancel_n = 2});
    assert_true(bt_step_cancelled(first));
    assert_true(bt_step_cancelled(world.later));
    assert_int_equal(world.told, 2);
    world_pass(GRACE_MS - 1);
    assert_false(world.rt->agent_state.slots[0].overdue);
    world_pass(1);
    assert_true(world.rt->agent_state.slots[0].overdue);
    assert_false(world.rt->agent_state.slots[1].overdue);
}

static void a_heartbeat_without_an_answer_is_lost_after_the_lease_it_gave(void **state)
{
    enum { LEASE_MS = 2500 };

    (void)state;
    world_pass(WORLD_BEAT_MS);
    world_answer(MSG_agent_heartbeat_ok, &(struct msg_agent_heartbeat_ok){.lease_ms = LEASE_MS});
    world_pass(WORLD_BEAT_MS);
    assert_true(world_asks(MSG_agent_heartbeat));
    world_pass(LEASE_MS - 1);
    assert_true(world.rt->agent_state.registered);
    world_pass(1);
    assert_false(world.rt->agent_state.registered);
}

static void an_order_to_drain_ends_the_agent_when_its_work_is_done(void **state)
{
    struct msg_step_execute a = world_step("later", "p/1/a");
    struct msg_agent_deregister m;

    (void)state;
    (void)world_send(MSG_step_execute, &a);
    world_pass(WORLD_BEAT_MS);
    world_answer(MSG_agent_heartbeat_ok,
                 &(struct msg_agent_heartbeat_ok){.lease_ms = 4000, .drain = true});
    assert_false(world_control()->outstanding);
    bt_step_done(world.later);
    world_cycle();
    world_pass(AGENT_STATE_LINGER_MS);
    world_asked(MSG_agent_deregister, &m);
    assert_true(str_is(m.instance_id, world.rt->instance_id));
    assert_int_equal(m.epoch, world.epoch);
    world_answer(MSG_empty, NULL);
    assert_true(world.rt->ended);
    assert_int_equal(world.rt->status, 0);
}

static void a_stop_is_told_to_the_supervisor(void **state)
{
    struct msg_agent_drain m;

    (void)state;
    runtime_feed(world.rt, (struct agent_state_event){.type = AGENT_STATE_STOP});
    world_asked(MSG_agent_drain, &m);
    assert_true(str_is(m.instance_id, world.rt->instance_id));
    assert_int_equal(m.epoch, world.epoch);
}

/* ---- progress ---- */

static void progress_says_which_attempt_how_far_and_what(void **state)
{
    struct msg_step_execute a = world_step("later", "p/1/a");
    struct msg_step_progress m;

    (void)state;
    a.attempt = 2;
    (void)world_send(MSG_step_execute, &a);
    bt_step_progress(world.later, 0.0, "begun");
    world_cycle();
    world_asked(MSG_step_progress, &m);
    assert_true(str_is(m.instance_id, world.rt->instance_id));
    assert_true(str_is(m.key, "p/1/a"));
    assert_int_equal(m.attempt, 2);
    assert_int_equal(m.epoch, world.epoch);
    assert_int_equal(m.n, 1);
    assert_true(str_is(m.text, "begun"));
    assert_true(msg_has(&m, step_progress, percent));
    assert_true(m.percent == 0.0);
    world_answer(MSG_empty, NULL);
    bt_step_progress(world.later, -1.0, "unknown");
    world_cycle();
    assert_false(world_control()->outstanding);
    world_pass(AGENT_STATE_PROGRESS_MS);
    world_asked(MSG_step_progress, &m);
    assert_false(msg_has(&m, step_progress, percent));
    assert_int_equal(m.n, 2);
    assert_true(str_is(m.text, "unknown"));
}

static void a_stream_goes_piece_by_piece_and_a_rejected_piece_ends_it(void **state)
{
    struct msg_step_execute a = world_step("later", "p/1/a");
    struct msg_step_progress m;
    char text[1500];

    (void)state;
    (void)world_send(MSG_step_execute, &a);
    memset(text, 'x', sizeof text);
    bt_step_stream(world.later, text, sizeof text);
    world_cycle();
    world_asked(MSG_step_progress, &m);
    assert_int_equal(m.text.len, 1024);
    assert_int_equal(m.data.len, 0);
    world_answer(MSG_empty, NULL);
    world_pass(AGENT_STATE_PROGRESS_MS);
    world_asked(MSG_step_progress, &m);
    assert_int_equal(m.text.len, sizeof text - 1024);
    world_answer(MSG_empty, NULL);
    bt_step_stream_reset(world.later);
    bt_step_stream(world.later, "new", 3);
    world_pass(AGENT_STATE_PROGRESS_MS);
    world_asked(MSG_step_progress, &m);
    assert_true(str_is(m.text, "new"));
    assert_true(doc_head(doc_get(m.data, STR_LIT("anew"))).b);
    world_refuse(BT_GONE);
    bt_step_stream(world.later, "more", 4);
    world_pass(AGENT_STATE_PROGRESS_MS);
    assert_false(step_stream_waits(world.later));
}

/* ---- results that were not delivered ---- */

/* A step of the epoch before ends in this one. */
static void a_result_that_comes_late_is_sent_under_the_new_epoch(void **state)
{
    const struct msg_step_result_ok taken = {.accepted = true};
    struct msg_step_execute a = world_step("later", "p/1/a");
    struct msg_step_result m;

    (void)state;
    (void)world_send(MSG_step_execute, &a);
    world_pass(WORLD_BEAT_MS);
    world_refuse(BT_CONFLICT);
    world_pass(WORLD_BEAT_MS);
    world_register();
    bt_step_reply_text(world.later, "late");
    bt_step_done(world.later);
    world_cycle();
    world_asked(MSG_step_result, &m);
    assert_int_equal(m.epoch, world.epoch);
    assert_int_equal(m.attempt, 1);
    assert_true(str_is(m.key, "p/1/a"));
    assert_true(str_is(m.result.text, "late"));
    world_refuse(BT_BUSY);
    assert_false(world_control()->outstanding);
    world_pass(AGENT_STATE_RESULT_AGAIN_MS - 1);
    assert_false(world_asks(MSG_step_result));
    if (world_asks(MSG_agent_heartbeat)) {
        world_answer(MSG_agent_heartbeat_ok, &(struct msg_agent_heartbeat_ok){.lease_ms = 4000});
    }
    world_pass(1);
    if (world_asks(MSG_agent_heartbeat)) {
        world_answer(MSG_agent_heartbeat_ok, &(struct msg_agent_heartbeat_ok){.lease_ms = 4000});
    }
    assert_true(world_asks(MSG_step_result));
    world_answer(MSG_step_result_ok, &taken);
    world_pass(AGENT_STATE_RESULT_AGAIN_MS);
    assert_false(world_asks(MSG_step_result));
}

static void a_late_result_that_is_too_large_is_kept_for_a_query(void **state)
{
    struct msg_step_execute a = world_step("later", "p/1/a");
    struct buf text;

    (void)state;
    (void)world_send(MSG_step_execute, &a);
    world_pass(WORLD_BEAT_MS);
    world_refuse(BT_CONFLICT);
    world_pass(WORLD_BEAT_MS);
    world_register();
    buf_init(&text, 2 * LIMIT_CONTROL_BYTES);
    for (size_t i = 0; i < LIMIT_CONTROL_BYTES + 1024; i++) {
        buf_add(&text, "x", 1);
    }
    bt_step_reply_bytes(world.later, (const char *)text.at, text.len);
    buf_done(&text);
    fake_lane_refuse(world_control(), BT_LIMIT);
    bt_step_done(world.later);
    world_cycle();
    fake_lane_refuse(world_control(), BT_OK);
    assert_true(world.rt->agent_state.registered);
    assert_false(world.rt->agent_state.slots[0].undelivered);
    assert_int_equal(world.rt->agent_state.slots[0].state, SLOT_DONE);
}

/* ---- answers and the connection ---- */

static void an_answer_to_another_request_breaks_the_connection(void **state)
{
    struct buf out;
    struct bt_error err;

    (void)state;
    world_pass(WORLD_BEAT_MS);
    assert_true(world_asks(MSG_agent_heartbeat));
    buf_init(&out, 4096);
    assert_int_equal(msg_answer(&out, WIRE_MSGPACK, STR_LIT("c1"), MSG_empty, NULL, &err), BT_OK);
    world_answer_raw((const char *)out.at, out.len);
    buf_done(&out);
    assert_false(world.rt->agent_state.registered);
    assert_false(world.rt->outstanding);
}

/* What could not be read has no id. */
static void a_refusal_without_an_id_is_of_the_request(void **state)
{
    struct bt_error why;
    struct buf out;

    (void)state;
    world_pass(WORLD_BEAT_MS);
    assert_true(world_asks(MSG_agent_heartbeat));
    (void)err_set(&why, BT_BUSY, "too many");
    buf_init(&out, 4096);
    assert_int_equal(msg_answer_error(&out, WIRE_MSGPACK, STR_LIT(""), &why, CLASS_NONE, 0,
                                      (struct doc){NULL, 0}),
                     BT_OK);
    world_answer_raw((const char *)out.at, out.len);
    buf_done(&out);
    assert_true(world.rt->agent_state.registered);
    assert_int_equal(world.rt->agent_state.call, CALL_NONE);
    world_pass(WORLD_BEAT_MS);
    assert_true(world_asks(MSG_agent_heartbeat));
}

static void an_answer_that_cannot_be_read_is_a_refusal(void **state)
{
    (void)state;
    world_pass(WORLD_BEAT_MS);
    assert_true(world_asks(MSG_agent_heartbeat));
    world_answer_raw("{", 1);
    assert_true(world.rt->agent_state.registered);
    assert_false(world.rt->outstanding);
}

static void a_connection_that_ends_is_not_made_again_by_itself(void **state)
{
    struct link_lane *lane = world_control();

    (void)state;
    fake_lane_down(lane, true);
    world_cycle();
    assert_true(lane->retired);
    assert_null(world.rt->control);
    assert_false(world.rt->agent_state.registered);
    assert_int_equal(fake_link_lanes(world.rt->link), 1);
    world_pass((msec)runtime_wait_ms(world.rt));
    assert_int_equal(fake_link_lanes(world.rt->link), 2);
    assert_string_equal(world_control()->url, "tcp://127.0.0.1:7117");
    world_up();
    world_register();
    assert_int_equal(world.rt->away_since, 0);
}

static void a_request_that_is_lost_is_the_end_of_the_registration(void **state)
{
    (void)state;
    world_pass(WORLD_BEAT_MS);
    fake_lane_down(world_control(), true);
    world_cycle();
    assert_false(world.rt->outstanding);
    assert_false(world.rt->agent_state.registered);
}

static void events_of_an_older_lane_are_nothing(void **state)
{
    struct link_lane old = {.link = world.rt->link};
    struct link_event ev = {.type = LINK_DOWN, .lane = &old};

    (void)state;
    runtime_on_control(world.rt, &ev);
    ev.type = LINK_LOST;
    runtime_on_control(world.rt, &ev);
    ev.type = LINK_ANSWER;
    runtime_on_control(world.rt, &ev);
    assert_non_null(world.rt->control);
    assert_true(world.rt->agent_state.registered);
}

/* Its address may be another program's soon. */
static void a_supervisor_that_is_not_there_is_looked_for_and_the_longer_the_rarer(void **state)
{
    struct bt_error err;

    (void)state;
    assert_int_equal(world_begin(&(struct world_how){.no_daemon = true}, &err), BT_OK);
    assert_int_equal(fake_link_lanes(world.rt->link), 0);
    assert_int_equal(runtime_wait_ms(world.rt), 2);
    for (msec until = WORLD_NOW + 400; world_now < until;) {
        const msec wait = (msec)runtime_wait_ms(world.rt);
        assert_in_range(wait, 1, 60);
        world_pass(wait);
    }
    assert_in_range(runtime_wait_ms(world.rt), 1, 60);
    world_daemon_writes("tcp://127.0.0.1:7200");
    world_pass(60);
    assert_int_equal(fake_link_lanes(world.rt->link), 1);
    assert_string_equal(world_control()->url, "tcp://127.0.0.1:7200");
    world_up();
    world_register();
}

/* Restarted: another address, or the same address and another start. */
static void a_supervisor_that_was_restarted_is_dialed_anew(void **state)
{
    (void)state;
    fake_lane_down(world_control(), true);
    world_cycle();
    world_daemon_writes("tcp://127.0.0.1:7300");
    world_pass((msec)runtime_wait_ms(world.rt));
    assert_int_equal(fake_link_lanes(world.rt->link), 2);
    assert_string_equal(world_control()->url, "tcp://127.0.0.1:7300");
    world_daemon_writes("tcp://127.0.0.1:7300");
    runtime_dial(world.rt);
    assert_int_equal(fake_link_lanes(world.rt->link), 3); /* the same port, another start */
    assert_true(fake_link_lane(world.rt->link, 1)->retired);
    runtime_dial(world.rt);
    assert_int_equal(fake_link_lanes(world.rt->link), 3); /* it is being connected */
    assert_int_not_equal(world.rt->look_at, MSEC_NEVER);
    world_up();
    assert_int_equal(world.rt->look_at, MSEC_NEVER);
    world_register();
}

static void an_address_that_must_not_be_dialed_is_not(void **state)
{
    struct bt_error err;

    (void)state;
    assert_int_equal(world_begin(&(struct world_how){.no_daemon = true}, &err), BT_OK);
    world_daemon_writes("ws://127.0.0.1:7200");
    world_pass(60);
    assert_int_equal(fake_link_lanes(world.rt->link), 0);
}

static void only_the_owner_of_the_token_is_trusted(void **state)
{
    const struct fake_trust *t = fake_link_trust(world.rt->link);

    (void)state;
    assert_int_equal(t->n, 1);
    assert_int_equal(t->uids[0], getuid());
}

/* ---- the loop ---- */

static void the_loop_waits_a_minute_at_most(void **state)
{
    const struct msg_agent_registered_ok ok = {
        .epoch = 1, .lease_ms = 86400000, .heartbeat_ms = 86400000};
    struct bt_error err;

    (void)state;
    assert_int_equal(world_begin(&(struct world_how){.capacity = 1}, &err), BT_OK);
    world_up();
    world_answer(MSG_agent_registered_ok, &ok);
    assert_int_equal(runtime_wait_ms(world.rt), 60000);
    world_pass(86400000 - 60000 - 1);
    assert_int_equal(runtime_wait_ms(world.rt), 60000);
    world_pass(2);
    assert_int_equal(runtime_wait_ms(world.rt), 59999);
    world_pass(59999);
    assert_true(world_asks(MSG_agent_heartbeat));
}

static void an_agent_that_has_ended_waits_for_nothing(void **state)
{
    (void)state;
    runtime_feed(world.rt, (struct agent_state_event){.type = AGENT_STATE_STOP});
    runtime_feed(world.rt, (struct agent_state_event){.type = AGENT_STATE_STOP});
    assert_true(world.rt->ended);
    assert_int_equal(world.rt->status, 0);
    assert_int_equal(runtime_wait_ms(world.rt), -1);
}

static void a_step_that_waits_for_the_loop_is_due_and_its_deadline_too(void **state)
{
    struct msg_step_execute a = world_step("later", "p/1/a");

    (void)state;
    a.deadline_ms = 300;
    (void)world_send(MSG_step_execute, &a);
    assert_int_equal(runtime_wait_ms(world.rt), 300);
    world_pass(299);
    assert_int_equal(world.told, 0);
    world_pass(1);
    assert_int_equal(world.told, 1);
    assert_true(runtime_wait_ms(world.rt) > 0);
    world.rt->quick.n = 1;
    assert_int_equal(runtime_wait_ms(world.rt), 0);
    world.rt->quick.n = 0;
}

/* ---- another host ---- */

static const char credential[] = "/tmp/baton-test-no-credential";

static void a_credential_that_is_not_there_ends_the_agent_with_its_name(void **state)
{
    (void)state;
    begins_in_vain(&(struct world_how){.args = {"--credential", credential}}, credential);
}

static void with_dial_in_it_dials_the_lanes_that_it_is_told_and_leaves_them_after(void **state)
{
    struct str lanes[] = {STR_LIT("tcp://127.0.0.1:7500"), STR_LIT("ws://127.0.0.1:1"),
                          STR_LIT("tcp://127.0.0.1:7501")};
    struct msg_agent_registered_ok ok = {.epoch = 5,
                                         .lease_ms = WORLD_LEASE_MS,
                                         .heartbeat_ms = WORLD_BEAT_MS,
                                         .lanes = lanes,
                                         .lanes_n = 3};
    struct msg_step_execute a;
    struct msg_agent_register m;
    struct bt_error err;
    struct link *l;
    uint64_t request;

    (void)state;
    assert_int_equal(world_begin(&(struct world_how){.args = {"--dial-in"}}, &err), BT_OK);
    l = world.rt->link;
    assert_null(fake_link_server(l, 0)); /* it does not listen */
    world_up();
    world_asked(MSG_agent_register, &m);
    assert_true(m.dial_in);
    assert_int_equal(m.endpoint.len, 0);
    world.epoch = ok.epoch;
    world_answer(MSG_agent_registered_ok, &ok);
    assert_int_equal(world.rt->dialed_n, 2);
    assert_string_equal(fake_link_server(l, 0)->url, "tcp://127.0.0.1:7500");
    assert_string_equal(fake_link_server(l, 1)->url, "tcp://127.0.0.1:7501");
    assert_int_equal(fake_link_server(l, 0)->limits.recv_max, BUNDLE_BYTES_MAX);
    assert_int_equal(fake_link_server(l, 0)->contexts, 1);
    a = world_step("later", "p/1/a");
    request = world_send_by(fake_link_server(l, 0), 3, MSG_step_execute, &a);
    world_pass(WORLD_BEAT_MS);
    world_refuse(BT_CONFLICT);
    world_pass(WORLD_BEAT_MS);
    ok.epoch = world.epoch = 6;
    ok.lanes_n = 1;
    world_answer(MSG_agent_registered_ok, &ok);
    assert_true(fake_link_server(l, 0)->retired && fake_link_server(l, 1)->retired);
    assert_false(fake_link_server(l, 2)->retired);
    assert_int_equal(world.rt->dialed_n, 1);
    bt_step_done(world.later);
    world_cycle();
    assert_false(world_is_answered(request)); /* nobody is there */
    for (uint64_t i = 0; i < RUNTIME_REQUESTS; i++) {
        assert_false(world.rt->requests[i].open);
    }
}

static void it_dials_one_lane_more_than_the_largest_capacity(void **state)
{
    struct str lanes[LIMIT_CAPACITY + 1];
    const struct msg_agent_registered_ok ok = {.epoch = 5,
                                               .lease_ms = WORLD_LEASE_MS,
                                               .heartbeat_ms = WORLD_BEAT_MS,
                                               .lanes = lanes,
                                               .lanes_n = LIMIT_CAPACITY + 1};
    struct bt_error err;

    (void)state;
    for (uint32_t i = 0; i <= LIMIT_CAPACITY; i++) {
        lanes[i] = STR_LIT("tcp://127.0.0.1:7500");
    }
    assert_int_equal(world_begin(&(struct world_how){.args = {"--dial-in"}}, &err), BT_OK);
    world_up();
    world_answer(MSG_agent_registered_ok, &ok);
    assert_int_equal(world.rt->dialed_n, LIMIT_CAPACITY + 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, world_end)
#define OWN(name) cmocka_unit_test_setup_teardown(name, nothing, world_end)
    const struct CMUnitTest tests[] = {
        OWN(a_registration_says_who_where_and_what),
        T(the_server_has_a_place_for_each_lane_and_bounds_for_strangers),
        cmocka_unit_test(an_address_that_cannot_be_listened_on_is_named),
        OWN(a_refused_registration_is_asked_again_later_and_a_bad_one_ends_the_agent),
        T(a_heartbeat_lists_what_runs_and_how_far),
        T(orders_of_a_heartbeat_cancel_their_attempts),
        T(a_heartbeat_without_an_answer_is_lost_after_the_lease_it_gave),
        T(an_order_to_drain_ends_the_agent_when_its_work_is_done),
        T(a_stop_is_told_to_the_supervisor),
        T(progress_says_which_attempt_how_far_and_what),
        T(a_stream_goes_piece_by_piece_and_a_rejected_piece_ends_it),
        T(a_result_that_comes_late_is_sent_under_the_new_epoch),
        T(a_late_result_that_is_too_large_is_kept_for_a_query),
        T(an_answer_to_another_request_breaks_the_connection),
        T(a_refusal_without_an_id_is_of_the_request),
        T(an_answer_that_cannot_be_read_is_a_refusal),
        T(a_connection_that_ends_is_not_made_again_by_itself),
        T(a_request_that_is_lost_is_the_end_of_the_registration),
        T(events_of_an_older_lane_are_nothing),
        OWN(a_supervisor_that_is_not_there_is_looked_for_and_the_longer_the_rarer),
        T(a_supervisor_that_was_restarted_is_dialed_anew),
        OWN(an_address_that_must_not_be_dialed_is_not),
        T(only_the_owner_of_the_token_is_trusted),
        OWN(the_loop_waits_a_minute_at_most),
        T(an_agent_that_has_ended_waits_for_nothing),
        T(a_step_that_waits_for_the_loop_is_due_and_its_deadline_too),
        cmocka_unit_test(a_credential_that_is_not_there_ends_the_agent_with_its_name),
        OWN(with_dial_in_it_dials_the_lanes_that_it_is_told_and_leaves_them_after),
        OWN(it_dials_one_lane_more_than_the_largest_capacity),
    };
#undef T
#undef OWN

    return cmocka_run_group_tests(tests, NULL, NULL);
}
