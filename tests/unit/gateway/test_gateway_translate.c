/* A stream in other words, with a translator of the test's own: which event becomes which lines and
 * ids, what is asked for before an event is taken, and how many translators there are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "baton/vocabulary.h"
#include "supervisor/gateway/stream_internal.h"
#include "supervisor/gateway/translate.h"
#include "tests/support/cmocka.h"
#include "tests/support/gateway/http_rig.h"

enum { TEXT = 16384, SAYS_MAX = 4 };

struct bt_vocabulary {
    char name[64];
};

/* What the translator was told, and what it says. */
static struct {
    char told[TEXT];
    struct str says[SAYS_MAX]; /* of the last event, not said yet */
    struct buf event;
    uint32_t says_n, said_n;
    int left;
    const char *wants; /* the type of event that wants its plan's document */
    enum bt_code code; /* of take, learn and describe */
} words;

static struct {
    struct stream st;
    struct call_spec spec;
    char fields[1024];
    uint32_t calls, called;
    bool refuses, held, stopped, finished;
    uint64_t plan_last;
    char attached[80];
    struct event_place attached_after;
} world;

static void note(const char *what, const char *more)
{
    const size_t n = strlen(words.told);

    (void)snprintf(words.told + n, sizeof words.told - n, "%s %s;", what, more);
}

static void note_seq(const char *what, const void *event, size_t len)
{
    char text[32];

    (void)snprintf(
        text, sizeof text, "%llu",
        (unsigned long long)doc_head(doc_get((struct doc){event, len}, STR_LIT("seq"))).u);
    note(what, text);
}

/* ---- the translator ---- */

const char *const *bt_vocabulary_names(void)
{
    static const char *const NAMES[] = {"words", NULL};

    return NAMES;
}

enum bt_code bt_vocabulary_new(const char *name, struct bt_vocabulary **ret, struct bt_error *err)
{
    if (strncmp(name, "bad", 3) == 0) {
        return err_set(err, BT_INVALID, "no vocabulary %s", name);
    }
    *ret = calloc(1, sizeof **ret);
    assert_non_null(*ret);
    (void)snprintf((*ret)->name, sizeof(*ret)->name, "%s", name);
    note("new", name);
    words.left++;
    return BT_OK;
}

void bt_vocabulary_free(struct bt_vocabulary *v)
{
    words.left -= v != NULL ? 1 : 0;
    free(v);
}

enum bt_code bt_vocabulary_take(struct bt_vocabulary *v, const void *event, size_t len,
                                struct bt_error *err)
{
    struct doc all;

    (void)v;
    note_seq("take", event, len);
    buf_clear(&words.event);
    buf_add(&words.event, event, len);
    all = doc_get(doc_from_buf(&words.event), STR_LIT("says"));
    words.says_n = all.ptr != NULL ? doc_head(all).n : 0;
    words.said_n = 0;
    for (uint32_t i = 0; i < words.says_n; i++) {
        words.says[i] = doc_string(doc_at(all, i));
    }
    return words.code == BT_OK ? BT_OK : err_set(err, words.code, "no event");
}

bool bt_vocabulary_next(struct bt_vocabulary *v, struct bt_translated *ret)
{
    static char type[32], json[64];

    (void)v;
    if (words.said_n == words.says_n) {
        return false;
    }
    (void)snprintf(type, sizeof type, "%.*s", STR_ARG(words.says[words.said_n]));
    (void)snprintf(json, sizeof json, "{\"t\":\"%s\"}", type);
    words.said_n++;
    *ret = (struct bt_translated){.type = type, .plan_id = "", .json = json};
    return true;
}

bool bt_vocabulary_lacks(const struct bt_vocabulary *v, const void *event, size_t len)
{
    (void)v;
    return doc_get((struct doc){event, len}, STR_LIT("lacks")).ptr != NULL;
}

enum bt_code bt_vocabulary_learn(struct bt_vocabulary *v, const void *event, size_t len,
                                 struct bt_error *err)
{
    (void)v;
    note_seq("learn", event, len);
    return words.code == BT_OK ? BT_OK : err_set(err, words.code, "no event");
}

bool bt_vocabulary_wants_plan(const struct bt_vocabulary *v, const char *event_type)
{
    (void)v;
    return words.wants != NULL && strcmp(event_type, words.wants) == 0;
}

enum bt_code bt_vocabulary_describe(struct bt_vocabulary *v, const char *plan_json,
                                    struct bt_error *err)
{
    (void)v;
    note("describe", plan_json);
    return words.code == BT_OK ? BT_OK : err_set(err, words.code, "no plan");
}

/* ---- the stream ---- */

void *stream_self(const struct stream *st)
{
    return st->self;
}

struct buf *stream_out(struct stream *st)
{
    return &st->out;
}

void stream_put_id(const struct stream *st, const struct event_place *at, struct buf *out)
{
    assert_ptr_equal(st, &world.st);
    buf_printf(out, "%llu%s%s", (unsigned long long)at->seq, at->id[0] != 0 ? ":" : "", at->id);
}

uint64_t stream_plan_last(const struct stream *st)
{
    assert_ptr_equal(st, &world.st);
    return world.plan_last;
}

void stream_hold(struct stream *st)
{
    assert_ptr_equal(st, &world.st);
    world.held = true;
}

void stream_go_on(struct stream *st)
{
    assert_ptr_equal(st, &world.st);
    world.held = false;
}

void stream_stop(struct stream *st)
{
    assert_ptr_equal(st, &world.st);
    world.stopped = true;
}

void stream_finish(struct stream *st)
{
    assert_ptr_equal(st, &world.st);
    world.finished = true;
}

bool stream_call(struct stream *st, const struct call_spec *spec)
{
    struct buf json;

    assert_ptr_equal(st, &world.st);
    assert_ptr_equal(spec->self, st);
    assert_true(spec->reads);
    world.spec = *spec;
    world.calls++;
    buf_init(&json, TEXT);
    assert_int_equal(doc_to_json(spec->fields, false, &json, NULL), BT_OK);
    (void)snprintf(world.fields, sizeof world.fields, "%s", buf_cstr(&json));
    buf_done(&json);
    return !world.refuses;
}

void stream_called(struct stream *st)
{
    assert_ptr_equal(st, &world.st);
    world.called++;
}

void stream_attach_after(struct http *h, struct str plan_id, const struct event_place *after,
                         const struct stream_view *view, void *self)
{
    assert_ptr_equal(h, &rig.h);
    assert_ptr_equal(view, &translation_view);
    (void)snprintf(world.attached, sizeof world.attached, "%.*s", STR_ARG(plan_id));
    world.attached_after = *after;
    world.st.self = self;
}

void event_id_copy(struct str text, char ret[UUID_TEXT_LEN + 1])
{
    (void)snprintf(ret, UUID_TEXT_LEN + 1, "%.*s", STR_ARG(text));
}

enum bt_code answer_body(struct doc whole, struct buf *out)
{
    return doc_to_json(whole, false, out, NULL);
}

/* ---- what happens ---- */

static const char *quoted(const char *text)
{
    static char out[4][TEXT];
    static int next;
    char *to = out[next++ % 4];

    (void)snprintf(to, TEXT, "%s", text);
    for (char *c = to; *c != 0; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    return to;
}

static void doc_of(const char *json, struct buf *out)
{
    buf_init(out, 1 << 20);
    assert_int_equal(json_to_doc(str_from(quoted(json)), NULL, out, NULL), BT_OK);
}

static void happens(const char *json)
{
    struct buf doc;

    doc_of(json, &doc);
    translation_view.event(&world.st, doc_from_buf(&doc));
    buf_done(&doc);
}

static void answers(const char *json)
{
    struct reply reply = {.ok = true};
    struct buf doc;

    doc_of(json, &doc);
    reply.body = doc_from_buf(&doc);
    world.spec.done(world.spec.self, &reply);
    buf_done(&doc);
}

static void refuses(enum bt_code code)
{
    const struct reply reply = {.problem = {.code = code, .message = STR_LIT("no")}};

    world.spec.done(world.spec.self, &reply);
}

static void asked(enum msg_type type, const char *fields)
{
    assert_string_equal(msg_wire_type(world.spec.type), msg_wire_type(type));
    assert_string_equal(world.fields, quoted(fields));
    assert_true(world.held);
}

static void sent(const char *text)
{
    assert_string_equal(buf_cstr(&world.st.out), quoted(text));
    buf_clear(&world.st.out);
}

static void told(const char *text)
{
    assert_string_equal(words.told, text);
    words.told[0] = 0;
}

static struct translation *translation(const char *name, uint64_t after)
{
    const struct event_place at = {.seq = after};

    return translation_new(&rig.h, str_from(name), NULL, 0, &at);
}

static void begin_after(uint64_t after)
{
    world.st.self = translation("words", after);
    assert_non_null(world.st.self);
    told("new words;");
}

static int begin(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    memset(&words, 0, sizeof words);
    buf_init(&words.event, 1 << 20);
    buf_init(&world.st.out, 1 << 20);
    memset(&rig.s, 0, sizeof rig.s);
    rig_begin("");
    return 0;
}

static int end(void **state)
{
    (void)state;
    if (world.st.self != NULL) {
        translation_view.gone(&world.st, true);
    }
    assert_int_equal(words.left, 0);
    assert_int_equal(rig.s.translations, 0);
    assert_null(rig.s.translating);
    buf_done(&words.event);
    buf_done(&world.st.out);
    rig_end();
    return 0;
}

static void an_event_becomes_a_line_for_each_object_and_one_id(void **state)
{
    (void)state;
    begin_after(0);
    happens("{'seq':1,'type':'x','says':['a']}");
    sent("data: {'t':'a'}\nid: 1\n\n");
    happens("{'seq':2,'type':'x','says':['a','b']}");
    sent("data: {'t':'a'}\n\ndata: {'t':'b'}\nid: 2\n\n");
    happens("{'seq':3,'type':'x'}"); /* nothing, and no id */
    sent("");
    told("take 1;take 2;take 3;");
    assert_int_equal(world.calls, 0);
    words.code = BT_INVALID; /* it goes on with the next one */
    happens("{'seq':4,'type':'x'}");
    sent("");
    words.code = BT_OK;
    happens("{'seq':5,'says':['c']}");
    sent("data: {'t':'c'}\nid: 5\n\n");
}

static void what_the_client_has_is_learned_and_not_sent(void **state)
{
    (void)state;
    begin_after(2);
    happens("{'seq':1,'says':['a']}");
    happens("{'seq':2,'says':['b']}");
    sent("");
    happens("{'seq':3,'says':['c']}");
    sent("data: {'t':'c'}\nid: 3\n\n");
    told("take 1;take 2;take 3;");
}

static void of_a_fleet_the_id_has_that_of_the_event(void **state)
{
    (void)state;
    begin_after(0);
    happens("{'seq':1,'eventId':'e-1','says':['a']}");
    sent("data: {'t':'a'}\nid: 1\n\n");
    (void)snprintf(world.st.leader, sizeof world.st.leader, "leader");
    happens("{'seq':2,'eventId':'e-2','says':['a']}");
    sent("data: {'t':'a'}\nid: 2:e-2\n\n");
}

static void only_the_types_that_were_asked_for_are_sent(void **state)
{
    static struct str types[66];
    const struct event_place none = {.seq = 0};

    (void)state;
    for (size_t i = 0; i < 66; i++) {
        types[i] = STR_LIT("none");
    }
    types[1] = STR_LIT("b");
    types[63] = STR_LIT("c");
    types[64] = STR_LIT("d"); /* there are 64 */
    world.st.self = translation_new(&rig.h, STR_LIT("words"), types, 66, &none);
    assert_non_null(world.st.self);
    happens("{'seq':1,'says':['a','b','c','d']}");
    sent("data: {'t':'b'}\n\ndata: {'t':'c'}\nid: 1\n\n");
    happens("{'seq':2,'says':['a']}");
    sent("");
}

static void an_event_waits_for_the_document_of_its_plan(void **state)
{
    (void)state;
    begin_after(0);
    words.wants = "planned";
    happens("{'seq':1,'type':'planned','planId':'P','says':['a']}");
    asked(MSG_plan_get, "{'planId':'P','document':true,'steps':false}");
    assert_int_equal(world.spec.answer, MSG_plan_view);
    sent("");
    told("");
    answers("{'planId':'P','document':{}}");
    told("describe {\"planId\":\"P\",\"document\":{}};take 1;");
    sent("data: {'t':'a'}\nid: 1\n\n");
    assert_false(world.held);
    assert_int_equal(world.called, 1);
    happens("{'seq':2,'type':'planned','planId':'P','says':['a']}");
    refuses(BT_NOT_FOUND); /* without the document */
    told("take 2;");
    sent("data: {'t':'a'}\nid: 2\n\n");
    words.code = BT_LIMIT;
    happens("{'seq':3,'type':'planned','planId':'P'}");
    answers("{}");
    told("describe {};take 3;");
    words.code = BT_OK;
    world.refuses = true; /* it cannot be asked for */
    happens("{'seq':4,'type':'planned','planId':'P','says':['a']}");
    told("take 4;");
    sent("data: {'t':'a'}\nid: 4\n\n");
    assert_false(world.held);
    world.refuses = false;
    happens("{'seq':5,'type':'other','planId':'P'}");
    assert_int_equal(world.calls, 4);
    told("take 5;");
}

#define LACKS(seq) "{'seq':" #seq ",'type':'x','planId':'P','lacks':true,'says':['a']}"

static void what_was_before_in_a_plan_is_learned_first(void **state)
{
    (void)state;
    begin_after(0);
    happens(LACKS(900));
    asked(MSG_events_read, "{'planId':'P','fromSeq':1,'limit':500}");
    assert_int_equal(world.spec.answer, MSG_events_read_ok);
    answers("{'events':[{'seq':3},{'seq':7}],'nextSeq':8}");
    told("learn 3;learn 7;");
    asked(MSG_events_read, "{'planId':'P','fromSeq':8,'limit':500}");
    answers("{'events':[{'seq':899},{'seq':900},{'seq':901}],'nextSeq':900}");
    told("learn 899;take 900;"); /* itself, and what comes after it, is not from before */
    sent("data: {'t':'a'}\nid: 900\n\n");
    assert_false(world.held);
    assert_int_equal(world.called, 2);
    happens(LACKS(1000));
    answers("{'events':[],'nextSeq':1}"); /* it does not go on for ever */
    told("take 1000;");
    happens(LACKS(1001));
    answers("{}");
    told("take 1001;");
    happens(LACKS(1002));
    words.code = BT_NOMEM;
    answers("{'events':[{'seq':3},{'seq':4}],'nextSeq':1002}");
    told("learn 3;learn 4;take 1002;");
}

static void a_read_of_before_that_fails_ends_the_stream_when_it_may_come_again(void **state)
{
    (void)state;
    begin_after(0);
    happens(LACKS(9));
    refuses(BT_UNAVAILABLE);
    assert_true(world.stopped);
    assert_false(world.held);
    told("");
    world.stopped = false;
    translation_view.gone(&world.st, false);
    begin_after(0);
    happens(LACKS(9));
    refuses(BT_NOT_FOUND);
    assert_false(world.stopped);
    told("take 9;");
    sent("data: {'t':'a'}\nid: 9\n\n");
    world.refuses = true;
    happens(LACKS(10));
    told("take 10;");
    assert_false(world.held);
    world.refuses = false;
    happens(LACKS(11));
    world.refuses = true; /* the second page */
    answers("{'events':[{'seq':3}],'nextSeq':4}");
    told("learn 3;take 11;");
}

static void the_document_comes_before_what_was_before(void **state)
{
    static const char *const WANTS[] = {"plan_generated", "replan_finished"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        begin_after(0);
        words.wants = WANTS[i];
        happens(LACKS(9));
        asked(MSG_plan_get, "{'planId':'P','document':true,'steps':false}");
        answers("{'d':1}");
        told("describe {\"d\":1};");
        asked(MSG_events_read, "{'planId':'P','fromSeq':1,'limit':500}");
        answers("{'events':[{'seq':3}],'nextSeq':9}");
        told("learn 3;take 9;");
        sent("data: {'t':'a'}\nid: 9\n\n");
        happens(LACKS(10));
        world.refuses = true;
        answers("{'d':1}");
        told("describe {\"d\":1};take 10;");
        assert_false(world.held);
        world.refuses = false;
        buf_clear(&world.st.out);
        translation_view.gone(&world.st, false);
        world.st.self = NULL;
    }
}

/* The event that waited may want the document itself. */
static void an_event_that_waited_may_wait_again(void **state)
{
    (void)state;
    begin_after(0);
    words.wants = "x";
    happens(LACKS(9));
    asked(MSG_events_read, "{'planId':'P','fromSeq':1,'limit':500}");
    answers("{'events':[],'nextSeq':9}");
    told("");
    asked(MSG_plan_get, "{'planId':'P','document':true,'steps':false}");
    answers("{'d':1}");
    told("describe {\"d\":1};take 9;");
    sent("data: {'t':'a'}\nid: 9\n\n");
}

static void as_many_plans_are_learned_as_a_translator_keeps(void **state)
{
    (void)state;
    begin_after(0);
    for (uint32_t i = 0; i < 1024; i++) {
        happens(LACKS(9));
        assert_true(world.held);
        refuses(BT_NOT_FOUND);
    }
    assert_int_equal(world.calls, 1024);
    happens(LACKS(9));
    assert_int_equal(world.calls, 1024);
    assert_false(world.held);
}

static void the_end_has_the_id_of_the_last_event(void **state)
{
    (void)state;
    begin_after(0);
    happens("{'seq':1,'says':['a']}");
    buf_clear(&world.st.out);
    translation_view.over(&world.st);
    sent(""); /* it was told */
    assert_true(world.finished);
    happens("{'seq':2}");
    translation_view.over(&world.st);
    sent("id: 2\n\n");
    world.plan_last = 2;
    translation_view.over(&world.st);
    sent("");
    world.plan_last = 5;
    translation_view.over(&world.st);
    sent("id: 5\n\n");
    told("take 1;take 2;");
    translation_view.gone(&world.st, false);
    begin_after(7);
    world.plan_last = 7; /* the client has it */
    translation_view.over(&world.st);
    sent("");
    world.plan_last = 8;
    translation_view.over(&world.st);
    sent("id: 8\n\n");
}

static void a_vocabulary_is_shown_by_forty_characters(void **state)
{
    (void)state;
    begin_after(0);
    assert_null(translation("bad", 0));
    assert_int_equal(rig.code, BT_INVALID);
    assert_string_equal(rig.field, "vocabulary");
    assert_string_equal(rig.message, "no vocabulary bad");
    assert_int_equal(rig.s.translations, 1);
    assert_null(translation("badxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxyz", 0));
    assert_string_equal(rig.message, "no vocabulary badxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    assert_null(translation("badxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\xc3\xa9", 0));
    assert_string_equal(rig.message, "no vocabulary badxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
}

static void a_sender_has_as_many_as_it_leaves_to_others(void **state)
{
    static struct translation *all[64];
    uint32_t n = 0;

    (void)state;
    for (uint32_t sender = 0; sender < 3; sender++) {
        static const uint32_t MOST[] = {32, 16, 8};
        rig.h.caller = (struct caller *)&all[sender];
        for (uint32_t i = 0; i < MOST[sender]; i++) {
            all[n] = translation("words", 0);
            assert_non_null(all[n++]);
        }
        assert_null(translation("words", 0));
        assert_int_equal(rig.code, BT_BUSY);
        assert_string_equal(rig.field, "vocabulary");
        assert_non_null(strstr(rig.message, "64 streams are translated at a time"));
    }
    assert_int_equal(rig.s.translations, 56);
    translation_free(all[20]); /* one of the middle, the first and the last of the list */
    translation_free(all[55]);
    translation_free(all[0]);
    assert_int_equal(rig.s.translations, 53);
    for (uint32_t i = 0; i < 56; i++) {
        if (i != 20 && i != 55 && i != 0) {
            translation_free(all[i]);
        }
    }
}

static void a_plan_that_was_submitted_is_told_in_the_words_of_its_request(void **state)
{
    (void)state;
    rig.h.own = translation("words", 6);
    translation_attach(&rig.h, STR_LIT("P"));
    assert_null(rig.h.own);
    assert_string_equal(world.attached, "P");
    assert_int_equal(world.attached_after.seq, 6);
    assert_non_null(world.st.self);
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_event_becomes_a_line_for_each_object_and_one_id),
        T(what_the_client_has_is_learned_and_not_sent),
        T(of_a_fleet_the_id_has_that_of_the_event),
        T(only_the_types_that_were_asked_for_are_sent),
        T(an_event_waits_for_the_document_of_its_plan),
        T(what_was_before_in_a_plan_is_learned_first),
        T(a_read_of_before_that_fails_ends_the_stream_when_it_may_come_again),
        T(the_document_comes_before_what_was_before),
        T(an_event_that_waited_may_wait_again),
        T(as_many_plans_are_learned_as_a_translator_keeps),
        T(the_end_has_the_id_of_the_last_event),
        T(a_vocabulary_is_shown_by_forty_characters),
        T(a_sender_has_as_many_as_it_leaves_to_others),
        T(a_plan_that_was_submitted_is_told_in_the_words_of_its_request),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
