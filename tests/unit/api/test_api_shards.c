/* A fleet of several shards, one of which is the house: which requests are its own, and where it
 * says that the others are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/base/shard.h"
#include "tests/support/house/house.h"

enum { SHARDS = 3, HERE = 1 };

static char map_path[64];

/* What the journal was asked where keys are: "0 session k; " of each question. */
static char asked[512];
static const char *lives; /* the key that is found */
static bool broken;

static enum bt_code key_is_at(struct journal *j, uint32_t shard, enum journal_key kind,
                              struct str key, bool *ret, struct bt_error *err)
{
    static const char *const kinds[] = {"session", "client", "running", "name", "plan"};
    const size_t at = strlen(asked);

    (void)j;
    (void)snprintf(asked + at, sizeof asked - at, "%u %s %.*s; ", shard, kinds[kind],
                   kind == JOURNAL_KEY_PLAN ? 0 : (int)key.len, key.ptr);
    for (char *c = asked + at; *c != 0; c++) {
        *c = *c < ' ' ? '^' : *c; /* what separates the name of a credential from its keys */
    }
    *ret = lives != NULL && (kind == JOURNAL_KEY_PLAN ? key.len == 16 : str_is(key, lives));
    return broken ? err_set(err, BT_IO, "the disk cannot be read") : BT_OK;
}

static void put_map(const char *text)
{
    FILE *f = fopen(map_path, "we");

    assert_non_null(f);
    for (; *text != 0; text++) {
        (void)fputc(*text == '\'' ? '"' : *text, f);
    }
    assert_int_equal(fclose(f), 0);
}

static struct house *open_shard(uint32_t shard, uint32_t shards)
{
    struct engine_options opt = house_options();
    struct house *h;

    opt.shard = shard;
    opt.shards = shards;
    opt.fleet_map = map_path;
    opt.remote_url = "tls+tcp://192.0.2.1:7443";
    h = house_open_with(&opt);
    h->ops.key_is_at = key_is_at;
    asked[0] = 0;
    lives = NULL;
    broken = false;
    put_map("{'version':7,'shards':["
            "{'shard':0,'epoch':3,'control':'tcp://near:1','events':'tcp://near:2',"
            "'remote':'tls+tcp://far:1','node':'n0','here':true},"
            "{'shard':1,'epoch':4,'control':'tcp://near:3','remote':'tls+tcp://far:3',"
            "'node':'n1','here':true},"
            "{'shard':2,'epoch':5,'control':'tcp://near:5','remote':'tls+tcp://far:5',"
            "'node':'n2','here':false}]}");
    return h;
}

/* A key of so many letters that is of this shard now, and was of that one among fewer. */
static const char *key_of(uint32_t shard, uint32_t old, uint32_t olds)
{
    static char keys[4][16];
    static unsigned turn;
    char *key = keys[turn++ % 4];

    for (unsigned i = 0;; i++) {
        (void)snprintf(key, sizeof keys[0], "key%u", i);
        if (shard_of_key(str_from(key), SHARDS) == shard &&
            shard_of_key(str_from(key), olds) == old) {
            return key;
        }
    }
}

static const char *id_of(uint32_t shard)
{
    static char ids[4][UUID_TEXT_LEN + 1];
    static unsigned turn;
    char *id = ids[turn++ % 4];

    uuid_format(shard_put(uuid_new(), shard), id);
    return id;
}

#define PLAN "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':'do','task':'t'}]}"

/* The text with the key in the place of each "@". */
static const char *with(const char *text, const char *key)
{
    static char out[512];
    size_t n = 0;

    for (; *text != 0; text++) {
        n += (size_t)snprintf(out + n, sizeof out - n, "%.*s", *text == '@' ? 16 : 1,
                              *text == '@' ? key : text);
    }
    return out;
}

/* Fails the test unless the request has moved to the shard with that address. */
static void moved(struct house *h, const char *answer, uint32_t to, const char *address)
{
    house_says(h, answer,
               house_text(h,
                          "ok=false; error.code=MOVED; error.details.shard=%u; "
                          "error.details.mapVersion=7; error.details.control=%s; "
                          "error.message=~shard %u has it, at %s",
                          to, address, to, address));
}

static void a_key_of_another_shard_has_moved_there(void **state)
{
    static const char *const requests[][2] = {
        {"plan.submit", "'clientKey':'@'," PLAN},
        {"plan.submit", "'sessionId':'@'," PLAN},
        {"plan.submit", "'policy':{'concurrencyKey':'@'}," PLAN},
        {"session.get", "'sessionId':'@'"},
        {"session.say", "'sessionId':'@','text':'hello'"},
        {"schedule.get", "'name':'@'"},
        {"schedule.trigger", "'name':'@'"},
    };
    struct house *h = open_shard(HERE, SHARDS);

    (void)state;
    house_join(h, "calc", 1);
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        const char *answer =
            house_ask(h, requests[i][0], "%s", with(requests[i][1], key_of(2, 0, 1)));
        moved(h, answer, 2, "tls+tcp://far:5");
        house_has(h, answer, "error.message", "; this is shard 1");
        answer = house_ask(h, requests[i][0], "%s", with(requests[i][1], key_of(HERE, 0, 1)));
        if (strstr(answer, "MOVED") != NULL) {
            fail_msg("%s: %s", requests[i][0], answer);
        }
    }
    house_says(h, house_ok(h, "plan.list", " "), "plans.#=3; plans.0.planId=*");
    assert_string_equal(asked, ""); /* of a fleet that has not grown, nobody looks elsewhere */
    house_close(h);
}

static void an_id_names_its_shard_and_one_of_no_shard_is_looked_for_here(void **state)
{
    struct house *h = open_shard(HERE, SHARDS);

    (void)state;
    moved(h, house_ask(h, "plan.get", "'planId':'%s'", id_of(0)), 0, "tcp://near:1");
    house_refused(h, "NOT_FOUND", "", "plan.get", "'planId':'%s'", id_of(HERE));
    house_refused(h, "NOT_FOUND", "", "plan.get", "'planId':'%s'", id_of(SHARDS));
    moved(h, house_ask(h, "review.get", "'reviewId':'%s/a/1'", id_of(2)), 2, "tls+tcp://far:5");
    house_refused(h, "NOT_FOUND", "", "review.get", "'reviewId':'%s/a/1'", id_of(HERE));
    house_close(h);
}

/* Clients of this host reach a shard of this host by the address that only this host has. */
static void where_a_shard_is_depends_on_who_asks(void **state)
{
    struct house *h = open_shard(HERE, SHARDS);

    (void)state;
    moved(h, house_ask(h, "plan.get", "'planId':'%s'", id_of(0)), 0, "tcp://near:1");
    h->remote = true;
    (void)house_as(h, "admin");
    moved(h, house_ask(h, "plan.get", "'planId':'%s'", id_of(0)), 0, "tls+tcp://far:1");
    moved(h, house_ask(h, "plan.get", "'planId':'%s'", id_of(2)), 2, "tls+tcp://far:5");
    h->remote = false;
    (void)house_as(h, NULL);
    put_map("{'version':7,'shards':[{'shard':0,'control':'tcp://near:1','here':false},"
            "{'shard':2}]}");
    moved(h, house_ask(h, "plan.get", "'planId':'%s'", id_of(0)), 0, "tcp://near:1");
    house_says(h, house_ask(h, "plan.get", "'planId':'%s'", id_of(2)),
               "error.code=MOVED; error.details.control=; error.details.mapVersion=7; "
               "error.message=~shard 2 has it, at no address now");
    assert_int_equal(unlink(map_path), 0);
    house_says(h, house_ask(h, "plan.get", "'planId':'%s'", id_of(2)),
               "error.code=MOVED; error.details.control=; error.details.mapVersion=0; "
               "error.message=~shard 2 has it, at no address now");
    house_close(h);
}

static void one_daemon_and_a_fleet_of_one_refuse_no_key(void **state)
{
    (void)state;
    for (uint32_t shards = 0; shards <= 2; shards++) {
        struct house *h = open_shard(0, shards);
        const char *key = key_of(0, 1, 2);
        if (shards < 2) {
            house_refused(h, "NOT_FOUND", "", "session.get", "'sessionId':'%s'", key);
        } else {
            moved(h, house_ask(h, "session.get", "'sessionId':'%s'", key), 1, "tcp://near:3");
        }
        house_close(h);
    }
}

/* ---- a fleet that has grown ---- */

static void grown(struct house *h, uint32_t newer, uint32_t older)
{
    h->journal->maps[0] = newer;
    h->journal->maps[1] = older;
    h->journal->maps_n = older > 0 ? 2 : 1;
}

static void a_key_from_before_is_where_it_was(void **state)
{
    static const struct {
        const char *type, *fields, *kind;
    } cases[] = {
        {"plan.submit", "'clientKey':'@'," PLAN, "client"},
        {"plan.submit", "'sessionId':'@'," PLAN, "session"},
        {"plan.submit", "'policy':{'concurrencyKey':'@'}," PLAN, "running"},
        {"schedule.get", "'name':'@'", "name"},
    };
    struct house *h = open_shard(HERE, SHARDS);

    (void)state;
    house_join(h, "calc", 1);
    grown(h, 2, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *was_0 = key_of(HERE, 0, 2);
        const char *was_here = key_of(2, HERE, 2);
        lives = was_0;
        asked[0] = 0;
        moved(h, house_ask(h, cases[i].type, "%s", with(cases[i].fields, was_0)), 0,
              "tcp://near:1");
        assert_string_equal(asked, house_text(h, "0 %s %s; ", cases[i].kind, was_0));
        lives = was_here;
        asked[0] = 0;
        assert_null(
            strstr(house_ask(h, cases[i].type, "%s", with(cases[i].fields, was_here)), "MOVED"));
        assert_string_equal(asked, house_text(h, "1 %s %s; ", cases[i].kind, was_here));
        lives = NULL; /* it was not used before */
        asked[0] = 0;
        moved(h, house_ask(h, cases[i].type, "%s", with(cases[i].fields, was_here)), 2,
              "tls+tcp://far:5");
        assert_string_equal(asked, house_text(h, "1 %s %s; ", cases[i].kind, was_here));
    }
    house_close(h);
}

static void older_numbers_are_asked_newest_first_until_one_has_the_key(void **state)
{
    struct house *h = open_shard(HERE, SHARDS);
    const char *key = key_of(2, 1, 2);

    (void)state;
    grown(h, 2, 1);
    moved(h, house_ask(h, "session.get", "'sessionId':'%s'", key), 2, "tls+tcp://far:5");
    assert_string_equal(asked, house_text(h, "1 session %s; 0 session %s; ", key, key));
    asked[0] = 0;
    lives = key;
    house_refused(h, "NOT_FOUND", "", "session.get", "'sessionId':'%s'", key); /* it is here */
    assert_string_equal(asked, house_text(h, "1 session %s; ", key));
    /* Where all numbers say the same, nobody looks. */
    asked[0] = 0;
    moved(h, house_ask(h, "session.get", "'sessionId':'%s'", key_of(0, 0, 2)), 0, "tcp://near:1");
    assert_string_equal(asked, "");
    /* What has no key is not looked for: an id, a list. */
    moved(h, house_ask(h, "plan.get", "'planId':'%s'", id_of(2)), 2, "tls+tcp://far:5");
    (void)house_ok(h, "plan.list", " ");
    assert_string_equal(asked, "");
    house_close(h);
}

/* Of a credential with names of its own, a key is stored under that name. */
static void a_key_is_looked_for_as_it_was_sent_and_as_it_is_stored(void **state)
{
    static const struct {
        const char *type, *fields, *own;
    } cases[] = {
        {"plan.submit", "'sessionId':'@'," PLAN, "1 session @; 1 session submitter:@; "},
        {"plan.submit", "'clientKey':'@'," PLAN, "1 client @; 1 client submitter^@; "},
        {"schedule.get", "'name':'@'", "1 name @; 1 name submitter:@; "},
        {"plan.submit", "'policy':{'concurrencyKey':'@'}," PLAN, "1 running @; "},
    };
    struct house *h = open_shard(HERE, SHARDS);

    (void)state;
    grown(h, 2, 0);
    (void)house_as(h, "submitter");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *key = key_of(2, HERE, 2);
        asked[0] = 0;
        moved(h, house_ask(h, cases[i].type, "%s", with(cases[i].fields, key)), 2,
              "tls+tcp://far:5");
        assert_string_equal(asked, with(cases[i].own, key));
    }
    asked[0] = 0;
    lives = house_text(h, "submitter:%s", key_of(2, HERE, 2));
    house_refused(h, "NOT_FOUND", "", "session.get", "'sessionId':'%s'", key_of(2, HERE, 2));
    house_close(h);
}

static void where_a_key_is_that_cannot_be_read_is_not_guessed(void **state)
{
    struct house *h = open_shard(HERE, SHARDS);

    (void)state;
    grown(h, 2, 1);
    broken = true;
    house_refused(h, "IO", "the disk cannot be read", "session.get", "'sessionId':'%s'",
                  key_of(2, 1, 2));
    assert_string_equal(asked, house_text(h, "1 session %s; ", key_of(2, 1, 2)));
    asked[0] = 0;
    h->journal->strays = true;
    house_refused(h, "IO", "the disk cannot be read", "plan.get", "'planId':'%s'", id_of(2));
    assert_string_equal(asked, "0 plan ; ");
    house_close(h);
}

/* Shard 0 has plans whose ids are of elsewhere, when it was the only one and took an import. */
static void a_plan_that_came_by_an_import_stays_with_shard_0(void **state)
{
    struct house *h = open_shard(0, SHARDS);

    (void)state;
    moved(h, house_ask(h, "plan.get", "'planId':'%s'", id_of(2)), 2, "tls+tcp://far:5");
    assert_string_equal(asked, "");
    h->journal->strays = true;
    moved(h, house_ask(h, "plan.get", "'planId':'%s'", id_of(2)), 2, "tls+tcp://far:5");
    assert_string_equal(asked, "0 plan ; ");
    lives = "it";
    house_refused(h, "NOT_FOUND", "", "plan.get", "'planId':'%s'", id_of(2)); /* it is here */
    asked[0] = 0;
    house_refused(h, "NOT_FOUND", "", "plan.get", "'planId':'%s'", id_of(0));
    (void)house_ok(h, "plan.list", " ");
    assert_string_equal(asked, "");
    house_close(h);
    h = open_shard(HERE, SHARDS);
    h->journal->strays = true;
    lives = "it";
    moved(h, house_ask(h, "plan.get", "'planId':'%s'", id_of(2)), 0, "tcp://near:1");
    house_close(h);
}

/* ---- imports ---- */

static void an_import_says_whose_lines_it_brings(void **state)
{
    static const char needs[] = "planId, sessionId or name: a fleet of several shards needs one";
    static const char first[] = "lines: the first one is not of";
    struct house *h = open_shard(HERE, SHARDS);
    const char *here = id_of(HERE);

    (void)state;
    house_refused(h, "INVALID", needs, "journal.import", "'lines':'{}\\n'");
    house_refused(h, "INVALID", first, "journal.import", "'lines':'{}\\n%s','planId':'%s'", here,
                  here);
    house_refused(h, "INVALID", first, "journal.import", "'lines':'{}','planId':'%s'", here);
    house_refused(h, "INVALID", first, "journal.import", "'lines':'\\n%s','planId':'%s'", here,
                  here);
    /* The first line of the first part: later ones are of what began there. */
    assert_null(
        strstr(house_ask(h, "journal.import", "'lines':'{}\\n','planId':'%s','before':1", here),
               "the first one is not of"));
    house_refused(h, "INVALID", first, "journal.import", "'lines':'{}\\n','planId':'%s','before':0",
                  here);
    for (uint32_t shard = SHARDS; shard <= SHARDS + 1; shard++) {
        const char *id = id_of(shard);
        house_refused(
            h, "INVALID",
            house_text(h, "the id of plan %s names shard %u, and this fleet has 3", id, shard),
            "journal.import", "'lines':'%s\\n','planId':'%s'", id, id);
    }
    assert_null(strstr(house_ask(h, "journal.import", "'lines':'%s\\n','planId':'%s'", here, here),
                       "fleet"));
    /* Sessions and schedules are found by their keys. */
    moved(h, house_ask(h, "journal.import", "'lines':'{}\\n','sessionId':'%s'", key_of(2, 0, 1)), 2,
          "tls+tcp://far:5");
    moved(h, house_ask(h, "journal.import", "'lines':'{}\\n','name':'%s'", key_of(0, 0, 1)), 0,
          "tcp://near:1");
    house_close(h);
    h = open_shard(0, 1); /* one daemon takes what comes */
    assert_null(strstr(house_ask(h, "journal.import", "'lines':'{}\\n'"), needs));
    house_close(h);
}

/* ---- the map ---- */

static void the_map_of_one_daemon_is_itself(void **state)
{
    struct house *h = open_shard(0, 0);

    (void)state;
    house_says(h, house_ok(h, "fleet.map", " "),
               "version=1; shard=0; shards.#=1; shards.0.shard=0; shards.0.epoch=*; "
               "shards.0.control=tcp://127.0.0.1:7117; shards.0.events=tcp://127.0.0.1:7118; "
               "shards.0.node=-");
    h->remote = true;
    (void)house_as(h, "admin");
    house_says(h, house_ok(h, "fleet.map", " "),
               "shards.#=1; shards.0.control=tls+tcp://192.0.2.1:7443");
    house_close(h);
}

static void the_map_of_a_fleet_names_each_shard(void **state)
{
    struct house *h = open_shard(HERE, SHARDS);

    (void)state;
    house_says(h, house_ok(h, "fleet.map", " "),
               "version=7; shard=1; shards.#=3; shards.0.shard=0; shards.0.epoch=3; "
               "shards.0.control=tcp://near:1; shards.0.events=tcp://near:2; shards.0.node=n0; "
               "shards.1.shard=1; shards.1.epoch=4; shards.1.control=tcp://near:3; "
               "shards.1.events=-; shards.1.node=n1; shards.2.shard=2; shards.2.epoch=5; "
               "shards.2.control=tls+tcp://far:5; shards.2.node=n2");
    h->remote = true;
    (void)house_as(h, "admin");
    house_says(h, house_ok(h, "fleet.map", " "),
               "shards.0.control=tls+tcp://far:1; shards.1.control=tls+tcp://far:3; "
               "shards.2.control=tls+tcp://far:5");
    h->remote = false;
    (void)house_as(h, NULL);
    assert_int_equal(unlink(map_path), 0);
    house_says(h, house_ok(h, "fleet.map", " "),
               "version=0; shard=1; shards.#=3; shards.2.shard=2; shards.2.epoch=0; "
               "shards.2.control=-");
    house_close(h);
}

static int remove_map(void **state)
{
    (void)state;
    (void)unlink(map_path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_of_another_shard_has_moved_there),
        cmocka_unit_test(an_id_names_its_shard_and_one_of_no_shard_is_looked_for_here),
        cmocka_unit_test(where_a_shard_is_depends_on_who_asks),
        cmocka_unit_test(one_daemon_and_a_fleet_of_one_refuse_no_key),
        cmocka_unit_test(a_key_from_before_is_where_it_was),
        cmocka_unit_test(older_numbers_are_asked_newest_first_until_one_has_the_key),
        cmocka_unit_test(a_key_is_looked_for_as_it_was_sent_and_as_it_is_stored),
        cmocka_unit_test(where_a_key_is_that_cannot_be_read_is_not_guessed),
        cmocka_unit_test(a_plan_that_came_by_an_import_stays_with_shard_0),
        cmocka_unit_test(an_import_says_whose_lines_it_brings),
        cmocka_unit_test(the_map_of_one_daemon_is_itself),
        cmocka_unit_test(the_map_of_a_fleet_names_each_shard),
    };

    (void)snprintf(map_path, sizeof map_path, "/tmp/baton-test-shards-%ld.json", (long)getpid());
    return cmocka_run_group_tests(tests, NULL, remove_map);
}
