/* auth.begin over the house: what a client needs to begin a session, and what that is worth. */
#include <stdlib.h>
#include <string.h>

#include "protocol/auth/session.h"
#include "supervisor/auth/sessions.h"
#include "supervisor/auth/store.h"
#include "tests/support/house/house.h"
#include "tests/support/house/house_internal.h"
#include "tests/support/memory_journal/memory_journal.h"

#define ONE                                                                                        \
    "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'calc','skill':'do','task':'do it'}]}"

enum { BEGIN = 90001 };

/* How often the directory of credentials was looked at. */
static uint32_t looked;

void __wrap_auth_store_refresh(struct auth_store *store, struct session_time time, bool at_once);

void __wrap_auth_store_refresh(struct auth_store *store, struct session_time time, bool at_once)
{
    (void)store;
    (void)time;
    looked += at_once ? 1 : 0;
}

/* One credential with this key; previous_until 0 = it was never rotated. */
static void set_credential(struct house *h, uint8_t key, uint8_t previous, msec previous_until)
{
    struct credential *one = calloc(1, sizeof *one);

    assert_non_null(one);
    memcpy(one->who.id, "ann", 4);
    one->who.role = ROLE_OBSERVER;
    for (int q = 0; q < QUOTA_COUNT; q++) {
        one->who.quotas[q] = QUOTA_BY_ROLE;
    }
    memset(one->key, key, sizeof one->key);
    memset(one->previous, previous, sizeof one->previous);
    one->previous_until = previous_until;
    (void)sessions_set(h->opt.sessions, one, 1, (struct session_time){h->now, h->wall});
}

/* Begins a session with the key; *ret is open when the daemon has it, too. */
static const char *begin(struct house *h, const char *id, uint8_t byte, struct auth_session *ret,
                         enum bt_code want)
{
    char nonce[2 * AUTH_NONCE_BYTES + 1];
    uint8_t key[AUTH_KEY_BYTES];
    const char *answer, *previous;

    memset(key, byte, sizeof key);
    assert_int_equal(auth_session_begin(ret, nonce, NULL), BT_OK);
    answer = house_ok(h, "auth.begin", "'credential':'%s','nonceC':'%s'", id, nonce);
    previous = house_get(h, answer, "previousProof");
    const struct auth_begun begun = {
        str_from(house_get(h, answer, "sid")), str_from(house_get(h, answer, "nonceS")),
        str_from(house_get(h, answer, "proof")), str_from(previous != NULL ? previous : "")};
    assert_int_equal(auth_session_finish(ret, key, &begun, NULL), want);
    return answer;
}

static const char *ask_sealed(struct house *h, struct auth_session *s, const char *type)
{
    struct buf out;
    const char *body = house_text(h, "{'v':1,'type':'%s','id':'q'}", type);
    const char *bytes;
    struct str opened;

    buf_init(&out, LIMIT_STEP_BYTES);
    assert_int_equal(auth_session_seal(s, str_from(body), &out, NULL), BT_OK);
    fake_link_request(h->link, false, BEGIN + 100 + s->n, out.at, out.len);
    house_cycle(h);
    const struct buf *answer = fake_link_answer_to(h->link, BEGIN + 100 + s->n);
    assert_non_null(answer);
    buf_done(&out);
    bytes = house_keep(h, answer->at, answer->len);
    if (!seal_is_sealed((struct str){bytes, answer->len})) {
        return bytes;
    }
    assert_true(auth_session_open(s, (struct str){bytes, answer->len}, &opened));
    return house_keep(h, opened.ptr, opened.len);
}

static void a_session_is_begun_with_a_key_that_both_have(void **state)
{
    struct house *h = house_open();
    struct auth_session s;
    const char *answer;

    (void)state;
    set_credential(h, 7, 0, 0);
    answer = begin(h, "ann", 7, &s, BT_OK);
    house_says(h, answer, house_text(h, "idleMs=%d; previousProof=-", SESSIONS_IDLE_MS));
    assert_int_equal(strlen(house_get(h, answer, "sid")), 2 * AUTH_SID_BYTES);
    assert_int_equal(strlen(house_get(h, answer, "nonceS")), 2 * AUTH_NONCE_BYTES);
    assert_int_equal(strlen(house_get(h, answer, "proof")), 2 * AUTH_KEY_BYTES);
    house_says(h, ask_sealed(h, &s, "plan.list"), "ok=true; plans.#=0");
    house_says(h, ask_sealed(h, &s, "supervisor.drain"), "ok=false; error.code=UNAUTHORIZED");
    house_close(h);
}

/* Who asks learns not whether there is such a credential: the answer is as long and as random. */
static void an_unknown_credential_gets_an_answer_that_proves_nothing(void **state)
{
    struct house *h = house_open();
    struct auth_session s;
    const char *answer;

    (void)state;
    set_credential(h, 7, 0, 0);
    (void)begin(h, "ann", 8, &s, BT_UNAUTHORIZED);
    answer = begin(h, "bob", 7, &s, BT_UNAUTHORIZED);
    assert_int_equal(strlen(house_get(h, answer, "proof")), 2 * AUTH_KEY_BYTES);
    house_close(h);
}

static void the_key_before_a_rotation_is_proved_too_until_its_time(void **state)
{
    struct house *h = house_open();
    struct auth_session s;

    (void)state;
    set_credential(h, 7, 6, h->wall + 1000);
    (void)begin(h, "ann", 7, &s, BT_OK);
    (void)begin(h, "ann", 6, &s, BT_OK);
    house_says(h, ask_sealed(h, &s, "plan.list"), "ok=true");
    (void)begin(h, "ann", 5, &s, BT_UNAUTHORIZED);
    house_wait(h, 999);
    (void)begin(h, "ann", 6, &s, BT_OK);
    house_wait(h, 1);
    house_says(h, begin(h, "ann", 6, &s, BT_UNAUTHORIZED), "previousProof=-");
    (void)begin(h, "ann", 7, &s, BT_OK);
    house_close(h);
}

static void a_nonce_has_64_hexadecimal_digits(void **state)
{
    char nonce[2 * AUTH_NONCE_BYTES + 2];
    struct house *h = house_open();

    (void)state;
    memset(nonce, 'a', sizeof nonce);
    nonce[sizeof nonce - 1] = 0;
    house_refused(h, "LIMIT", "nonceC: 65 bytes, at most 64", "auth.begin",
                  "'credential':'ann','nonceC':'%s'", nonce);
    nonce[sizeof nonce - 2] = 0;
    (void)house_ok(h, "auth.begin", "'credential':'ann','nonceC':'%s'", nonce);
    nonce[0] = 'g';
    house_refused(h, "INVALID", "nonceC: expected 64 hexadecimal digits", "auth.begin",
                  "'credential':'ann','nonceC':'%s'", nonce);
    nonce[sizeof nonce - 3] = 0;
    house_refused(h, "INVALID", "nonceC: expected 64 hexadecimal digits", "auth.begin",
                  "'credential':'ann','nonceC':'%s'", nonce + 1);
    house_close(h);
}

static bool on_wait(void *self)
{
    struct house *h = self;
    const char *body = house_text(
        h, "{'v':1,'type':'auth.begin','id':'q','credential':'ann','nonceC':'%064d'}", 7);

    fake_link_request(h->link, false, BEGIN, body, strlen(body));
    engine_meanwhile(h->engine);
    return true;
}

/* Who has just been given a credential begins with it; while the journal waits, the credentials of
 * the request in hand stay as they are. */
static void credentials_are_looked_at_first_but_not_while_the_journal_waits(void **state)
{
    struct house *h = house_open();
    const struct buf *answer;
    struct auth_session s;

    (void)state;
    house_join(h, "calc", 1);
    set_credential(h, 7, 0, 0);
    looked = 0;
    (void)begin(h, "ann", 7, &s, BT_OK);
    assert_int_equal(looked, 1);
    journal_while_waiting(h->journal, on_wait, h);
    memory_journal_away(h->journal, 1);
    (void)house_submit(h, ONE);
    answer = fake_link_answer_to(h->link, BEGIN);
    assert_non_null(answer);
    house_says(h, house_keep(h, answer->at, answer->len), "ok=true; sid=*; proof=*");
    assert_int_equal(looked, 1);
    house_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_is_begun_with_a_key_that_both_have),
        cmocka_unit_test(an_unknown_credential_gets_an_answer_that_proves_nothing),
        cmocka_unit_test(the_key_before_a_rotation_is_proved_too_until_its_time),
        cmocka_unit_test(a_nonce_has_64_hexadecimal_digits),
        cmocka_unit_test(credentials_are_looked_at_first_but_not_while_the_journal_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
