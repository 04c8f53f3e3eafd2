/* The command line of baton-gateway, the ring of events, and answers of the daemon as those of
 * HTTP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/gateway/options.h"
#include "supervisor/gateway/ring.h"
#include "supervisor/gateway/server_internal.h"
#include "supervisor/gateway/translate.h"
#include "tests/support/cmocka.h"
#include "tests/support/gateway/http_rig.h"

enum { WORDS_MAX = 64 };

static struct options options;
static struct bt_error err;

/* Of a command line, split at blanks. */
static enum bt_code parse(const char *line)
{
    static char text[8192];
    char *argv[WORDS_MAX];
    int argc = 0;
    char *save;

    (void)snprintf(text, sizeof text, "baton-gateway %s", line);
    for (char *w = strtok_r(text, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save)) {
        argv[argc++] = w;
    }
    memset(&options, 0, sizeof options);
    err.msg[0] = 0;
    return options_parse(argc, argv, &options, &err);
}

static void without_options_it_listens_on_this_machine(void **state)
{
    (void)state;
    assert_int_equal(parse(""), BT_OK);
    assert_string_equal(options.host, "127.0.0.1");
    assert_int_equal(options.port, 0);
    assert_true(options.loopback);
    assert_null(options.state);
    assert_null(options.tls);
    assert_string_equal(options.otlp, "");
    assert_int_equal(options.lease_ms, 0);
    assert_false(options.help || options.version || options.openapi || options.mcp);
}

static void each_option_has_its_value(void **state)
{
    (void)state;
    assert_int_equal(parse("--state S --listen [::1]:7180 --tls T --host a --host b --origin "
                           "https://o --origin http://p --private 10.0.0.0/8 --hooks H --recipes R "
                           "--lease 3600 --url https://u --otlp http://c:1 --mcp --openapi "
                           "--version --help"),
                     BT_OK);
    assert_string_equal(options.state, "S");
    assert_string_equal(options.host, "::1");
    assert_int_equal(options.port, 7180);
    assert_string_equal(options.tls, "T");
    assert_int_equal(options.hosts_n, 2);
    assert_string_equal(options.hosts[1], "b");
    assert_int_equal(options.origins_n, 2);
    assert_string_equal(options.origins[0], "https://o");
    assert_string_equal(options.origins[1], "http://p");
    assert_int_equal(options.hooks.n, 1);
    assert_string_equal(options.incoming, "H");
    assert_string_equal(options.recipes, "R");
    assert_int_equal(options.lease_ms, 3600000);
    assert_string_equal(options.url, "https://u");
    assert_true(options.help && options.version && options.openapi && options.mcp);
    assert_int_equal(parse("-h"), BT_OK);
    assert_true(options.help);
}

static void what_is_wrong_is_named(void **state)
{
    static const char *const all[][2] = {
        {"--nothing", "there is no option '--nothing'"},
        {"x", "there is no option 'x'"},
        {"--state", "--state needs a value"},
        {"--listen 7180", "--listen: expected HOST:PORT"},
        {"--listen :1", "--listen: expected HOST:PORT"},
        {"--listen []:1", "--listen: expected HOST:PORT"},
        {"--listen h:", "--listen: expected HOST:PORT"},
        {"--listen h:1x", "--listen: expected HOST:PORT"},
        {"--listen 127.0.0.1:65536", "--listen: expected HOST:PORT"},
        {"--listen 0.0.0.0:1", "other hosts can reach it, so it needs --tls"},
        {"--listen ::1:1x", "--listen: expected HOST:PORT"},
        {"--lease 0", "--lease: expected seconds, 1 to 3600"},
        {"--lease 3601", "--lease: expected seconds"},
        {"--lease 5s", "--lease: expected seconds"},
        {"--lease -5", "--lease: expected seconds"},
        {"--url ftp://x", "--url: expected an address"},
        {"--origin x", "--origin: expected an address"},
        {"--otlp ftp://x", "--otlp: expected the URL of a collector"},
        {"--private x", "x"}};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_int_equal(parse(all[i][0]), BT_INVALID);
        if (strstr(err.msg, all[i][1]) == NULL) {
            fail_msg("%s: %s", all[i][0], err.msg);
        }
    }
}

static void other_hosts_need_tls_and_this_one_does_not(void **state)
{
    static const char *const near[] = {"127.0.0.1:1", "127.1.2.3:65535", "[::1]:0", "::1:5",
                                       "localhost:1"};

    (void)state;
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++) {
        char line[64];
        (void)snprintf(line, sizeof line, "--listen %s", near[i]);
        assert_int_equal(parse(line), BT_OK);
        assert_true(options.loopback);
    }
    assert_int_equal(parse("--listen 0.0.0.0:1 --tls T"), BT_OK);
    assert_false(options.loopback);
}

static void a_collector_without_a_path_has_that_of_the_protocol(void **state)
{
    static const char *const all[][2] = {{"http://c:1", "http://c:1/v1/traces"},
                                         {"http://c:1/", "http://c:1/v1/traces"},
                                         {"https://c/x", "https://c/x"},
                                         {"https://c/x/", "https://c/x/"}};
    char line[700] = "--otlp http://";

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char one[64];
        (void)snprintf(one, sizeof one, "--otlp %s", all[i][0]);
        assert_int_equal(parse(one), BT_OK);
        assert_string_equal(options.otlp, all[i][1]);
    }
    for (int over = 0; over < 2; over++) { /* 511 bytes with the path */
        const size_t n = 512 - 11 - 7 + (size_t)over;
        memset(line + 14, 'c', n);
        line[14 + n] = 0;
        assert_int_equal(parse(line), over == 0 ? BT_OK : BT_INVALID);
    }
}

static void so_many_hosts_and_origins_have_room(void **state)
{
    char line[1024];

    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        size_t n = 0;
        for (int i = 0; i < 16; i++) {
            n += (size_t)snprintf(line + n, sizeof line - n, "%s ",
                                  kind == 0 ? "--host h" : "--origin http://o");
        }
        assert_int_equal(parse(line), BT_OK);
        (void)snprintf(line + n, sizeof line - n, "%s",
                       kind == 0 ? "--host h" : "--origin http://o");
        assert_int_equal(parse(line), BT_LIMIT);
    }
    (void)snprintf(line, sizeof line, "--tls T --listen %0255d:1", 7);
    assert_int_equal(parse(line), BT_OK);
    (void)snprintf(line, sizeof line, "--tls T --listen %0256d:1", 7);
    assert_int_equal(parse(line), BT_INVALID);
}

/* ---- the ring ---- */

static struct ring ring;

static bool add(uint64_t seq, const char *plan, size_t fill)
{
    struct buf event;
    char *text = calloc(1, fill + 1);
    bool ok;

    assert_non_null(text);
    memset(text, 'x', fill);
    buf_init(&event, fill + 1024);
    doc_put_map(&event, 5);
    doc_put_cstr(&event, "seq");
    doc_put_u64(&event, seq);
    doc_put_cstr(&event, "eventId");
    doc_put_cstr(&event, "E");
    doc_put_cstr(&event, "type");
    doc_put_cstr(&event, "t");
    doc_put_cstr(&event, "planId");
    doc_put_cstr(&event, plan);
    doc_put_cstr(&event, "x");
    doc_put_cstr(&event, text);
    ok = ring_add(&ring, doc_from_buf(&event));
    buf_done(&event);
    free(text);
    return ok;
}

static void an_event_is_kept_as_it_is_sent(void **state)
{
    const struct ring_event *e;

    (void)state;
    ring_reset(&ring, 5, false);
    assert_int_equal(ring.floor, 5);
    assert_int_equal(ring.end, 5);
    assert_true(add(7, "P", 2));
    e = ring_get(&ring, ring.first);
    assert_int_equal(e->seq, 7);
    assert_string_equal(e->plan_id, "P");
    assert_string_equal(e->event_id, "E");
    assert_string_equal(e->type, "t");
#define JSON "{\"seq\":7,\"eventId\":\"E\",\"type\":\"t\",\"planId\":\"P\",\"x\":\"xx\"}"
    assert_true(str_is(ring_json(e), JSON));
    assert_true(str_is(ring_line(e), JSON "\n"));
    assert_true(str_is(ring_sse(e), "id: 7\nevent: t\ndata: " JSON "\n\n"));
    assert_int_equal(ring.end, 8);
    assert_int_equal(ring.floor, 5);
    ring_reset(&ring, 9, true); /* of a fleet: with the id of the event */
    assert_int_equal(ring.n, 0);
    assert_int_equal(ring.bytes, 0);
    assert_true(add(9, "", 0));
    e = ring_get(&ring, ring.first);
    assert_int_equal(strncmp(e->text, "id: 9:E\n", 8), 0);
    assert_string_equal(e->plan_id, "");
    assert_false(ring_add(&ring, (struct doc){(const uint8_t *)"\x80", 1})); /* is no event */
    assert_int_equal(ring.n, 1);
    ring_reset(&ring, 0, false);
}

static void the_oldest_events_go_and_their_readers_notice_it(void **state)
{
    uint64_t place;

    (void)state;
    ring_reset(&ring, 1, false);
    place = ring_next(&ring);
    assert_null(ring_get(&ring, place)); /* nothing is there yet */
    for (uint64_t i = 1; i <= RING_EVENTS_MAX; i++) {
        assert_true(add(2 * i, "P", 0));
    }
    assert_int_equal(ring_get(&ring, place)->seq, 2);
    assert_int_equal(ring_find(&ring, 0), place);
    assert_int_equal(ring_find(&ring, 2), place);
    assert_int_equal(ring_find(&ring, 3), place + 1);
    assert_int_equal(ring_find(&ring, 4), place + 1);
    assert_int_equal(ring_find(&ring, 3 * RING_EVENTS_MAX), ring_next(&ring));
    assert_true(add(3 * RING_EVENTS_MAX, "P", 0));
    assert_null(ring_get(&ring, place)); /* it was overtaken */
    assert_int_equal(ring.floor, 3);
    assert_int_equal(ring.n, RING_EVENTS_MAX);
    ring_reset(&ring, 1, false);
    for (uint64_t i = 1; i <= 2000; i++) { /* of four mebibytes */
        assert_true(add(i, "P", 4 * 1024));
    }
    assert_true(ring.n > 900 && ring.n < 1024);
    assert_int_equal(ring.floor, 2000 - ring.n + 1);
    assert_true(ring.bytes <= RING_BYTES_MAX);
    assert_true(ring.bytes + ring_sse(ring_get(&ring, ring.first)).len > RING_BYTES_MAX);
    ring_reset(&ring, 0, false);
}

/* ---- answers ---- */

static bool translated;

void translation_attach(struct http *h, struct str plan_id)
{
    translated = str_is(plan_id, "P");
    h->state = HTTP_WAITS;
}

static void answered(const char *method, const char *target, const char *json)
{
    const struct route *r;
    enum http_method m;
    uint32_t allowed;
    struct bt_error e;
    struct reply reply = {.ok = true};
    struct buf doc;
    char text[1024];

    rig_end();
    buf_done(&rig.h.link);
    buf_done(&rig.h.location);
    rig_begin("");
    buf_init(&rig.h.link, 4096);
    buf_init(&rig.h.location, 4096);
    assert_int_equal(uri_parse(str_from(target), &rig.h.uri, &e), BT_OK);
    assert_true(http_method_parse(method, &m));
    r = route_find(&rig.h.uri, m, &rig.h.params, &allowed);
    assert_non_null(r);
    rig.h.route = r;
    (void)snprintf(text, sizeof text, "%s", json);
    for (char *c = text; *c != 0; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    buf_init(&doc, 8192);
    assert_int_equal(json_to_doc(str_from(text), NULL, &doc, NULL), BT_OK);
    reply.body = doc_from_buf(&doc);
    answer_take(&rig.h, &reply);
    buf_done(&doc);
}

static void an_answer_has_no_envelope_and_its_revision_is_its_etag(void **state)
{
    (void)state;
    answered("GET", "/v1/plans/P",
             "{'v':1,'type':'ok','id':'x','ok':true,'planId':'P','revision':3}");
    assert_int_equal(rig.h.status, 200);
    assert_string_equal(rig.h.type, "application/json");
    assert_string_equal(rig_out(), "{\"planId\":\"P\",\"revision\":3}");
    assert_string_equal(rig.h.etag, "\"3\"");
    assert_int_equal(rig.h.location.len, 0);
    assert_int_equal(rig.woken, 1);
    answered("GET", "/v1/plans/P", "{'revision':'x'}");
    assert_string_equal(rig.h.etag, "");
}

static void what_was_made_is_201_with_its_address(void **state)
{
    (void)state;
    answered("POST", "/v1/plans", "{'planId':'a/b é'}");
    assert_int_equal(rig.h.status, 201);
    assert_string_equal(buf_cstr(&rig.h.location), "/v1/plans/a%2Fb%20%C3%A9");
    answered("POST", "/v1/plans", "{'planId':'P','existing':true}");
    assert_int_equal(rig.h.status, 200);
    answered("POST", "/v1/plans", "{'planId':'P','existing':false}");
    assert_int_equal(rig.h.status, 201);
    translated = false;
    answered("POST", "/v1/tasks", "{'planId':'P'}"); /* its answer is a stream */
    assert_true(translated);
    assert_int_equal(rig.h.state, HTTP_WAITS);
    assert_int_equal(rig.h.status, 201);
}

static void the_next_page_is_a_link_with_the_same_parameters(void **state)
{
    (void)state;
    answered("GET", "/v1/plans?limit=2&cursor=old&status=a%20b", "{'plans':[],'cursor':'n&w'}");
    assert_string_equal(buf_cstr(&rig.h.link),
                        "</v1/plans?limit=2&status=a%20b&cursor=n%26w>; rel=\"next\"");
    answered("GET", "/v1/plans", "{'plans':[]}");
    assert_int_equal(rig.h.link.len, 0);
}

static void a_refusal_of_what_if_match_gave_is_412(void **state)
{
    struct reply reply = {
        .problem = {.code = BT_CONFLICT, .message = STR_LIT("expectRevision: it has 3")}};

    (void)state;
    answered("GET", "/v1/plans/P", "{}");
    rig.h.heads.if_match = "\"2\"";
    answer_take(&rig.h, &reply);
    assert_int_equal(rig.h.status, 412);
    rig.h.heads.if_match = NULL;
    answer_take(&rig.h, &reply);
    assert_int_equal(rig.h.status, 409);
    rig.h.heads.if_match = "\"2\"";
    reply.problem.message = STR_LIT("expect");
    answer_take(&rig.h, &reply);
    assert_int_equal(rig.h.status, 409);
    assert_null(rig.h.call);
}

static int done(void **state)
{
    (void)state;
    rig_end();
    buf_done(&rig.h.link);
    buf_done(&rig.h.location);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_options_it_listens_on_this_machine),
        cmocka_unit_test(each_option_has_its_value),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(other_hosts_need_tls_and_this_one_does_not),
        cmocka_unit_test(a_collector_without_a_path_has_that_of_the_protocol),
        cmocka_unit_test(so_many_hosts_and_origins_have_room),
        cmocka_unit_test(an_event_is_kept_as_it_is_sent),
        cmocka_unit_test(the_oldest_events_go_and_their_readers_notice_it),
        cmocka_unit_test(an_answer_has_no_envelope_and_its_revision_is_its_etag),
        cmocka_unit_test(what_was_made_is_201_with_its_address),
        cmocka_unit_test(the_next_page_is_a_link_with_the_same_parameters),
        cmocka_unit_test(a_refusal_of_what_if_match_gave_is_412),
    };
    return cmocka_run_group_tests(tests, NULL, done);
}
