/* Identities: roles by name, and which agents a sender may be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "protocol/auth/identity.h"

static void the_token_is_an_admin_that_may_be_any_agent(void **state)
{
    (void)state;
    assert_string_equal(identity_local()->id, "local");
    assert_int_equal(identity_local()->role, ROLE_ADMIN);
    assert_true(identity_may_be_agent(identity_local(), STR_LIT("calc")));
}

static void who_has_not_proved_to_be_anybody_may_be_no_agent_and_has_no_name(void **state)
{
    (void)state;
    assert_string_equal(identity_nobody()->id, "");
    assert_int_equal(identity_nobody()->role, ROLE_OBSERVER);
    assert_false(identity_may_be_agent(identity_nobody(), STR_LIT("calc")));
    assert_false(identity_is_granted(identity_nobody(), STR_LIT("calc")));
}

static void an_agent_may_be_what_one_of_its_globs_fits(void **state)
{
    struct identity who = {
        .id = "x", .role = ROLE_AGENT, .agents_n = 2, .agents = {"calc*", "f?les"}};

    (void)state;
    assert_true(identity_may_be_agent(&who, STR_LIT("calc")));
    assert_true(identity_may_be_agent(&who, STR_LIT("calc-2")));
    assert_true(identity_may_be_agent(&who, STR_LIT("files")));
    assert_false(identity_may_be_agent(&who, STR_LIT("xcalc")));
    assert_false(identity_may_be_agent(&who, STR_LIT("fles")));
    assert_false(identity_may_be_agent(&who, STR_LIT("")));
    who.agents_n = 0;
    assert_false(identity_may_be_agent(&who, STR_LIT("calc")));
}

static void others_are_no_agent_whatever_their_globs(void **state)
{
    static const enum role others[] = {ROLE_OBSERVER, ROLE_SUBMITTER, ROLE_REVIEWER};

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const struct identity who = {.role = others[i], .agents_n = 1, .agents = {"*"}};
        assert_false(identity_may_be_agent(&who, STR_LIT("calc")));
    }
}

static void a_role_is_read_from_its_own_name_and_from_no_other(void **state)
{
    enum role role = ROLE_COUNT;

    (void)state;
    for (int i = 0; i < ROLE_COUNT; i++) {
        assert_true(role_parse(str_from(role_name((enum role)i)), &role));
        assert_int_equal(role, i);
    }
    assert_false(role_parse(STR_LIT("Admin"), &role));
    assert_false(role_parse(STR_LIT(""), &role));
    assert_false(role_parse(STR_LIT("admin "), &role));
}

static void a_quota_is_read_from_its_own_name_and_from_no_other(void **state)
{
    enum quota quota;

    (void)state;
    for (int i = 0; i < QUOTA_COUNT; i++) {
        assert_true(quota_parse(str_from(quota_name((enum quota)i)), &quota));
        assert_int_equal(quota, i);
    }
    assert_false(quota_parse(STR_LIT("Plans"), &quota));
    assert_false(quota_parse(STR_LIT(""), &quota));
    assert_string_equal(quota_name(QUOTA_COUNT), "unknown");
}

/* Submitters and reviewers have a quarter of the open plans, one at least; others, and all other
 * quotas, no limit. */
static void a_quota_that_nobody_wrote_down_is_of_the_role(void **state)
{
    struct identity who = {.role = ROLE_OBSERVER};

    (void)state;
    for (int q = 0; q < QUOTA_COUNT; q++) {
        who.quotas[q] = QUOTA_BY_ROLE;
    }
    for (int role = 0; role < ROLE_COUNT; role++) {
        const bool limited = role == ROLE_SUBMITTER || role == ROLE_REVIEWER;
        who.role = (enum role)role;
        assert_int_equal(identity_quota(&who, QUOTA_PLANS, 400), limited ? 100 : 0);
        assert_int_equal(identity_quota(&who, QUOTA_PLANS, 12), limited ? 3 : 0);
        assert_int_equal(identity_quota(&who, QUOTA_PLANS, 8), limited ? 2 : 0);
        assert_int_equal(identity_quota(&who, QUOTA_PLANS, 7), limited ? 1 : 0);
        assert_int_equal(identity_quota(&who, QUOTA_PLANS, 1), limited ? 1 : 0);
        for (int q = 0; q < QUOTA_COUNT; q++) {
            if (q != QUOTA_PLANS) {
                assert_int_equal(identity_quota(&who, (enum quota)q, 400), 0);
            }
        }
        who.quotas[QUOTA_PLANS] = 7;
        who.quotas[QUOTA_BYTES] = 9;
        assert_int_equal(identity_quota(&who, QUOTA_PLANS, 400), 7);
        assert_int_equal(identity_quota(&who, QUOTA_BYTES, 400), 9);
        who.quotas[QUOTA_PLANS] = QUOTA_BY_ROLE;
        who.quotas[QUOTA_BYTES] = QUOTA_BY_ROLE;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_token_is_an_admin_that_may_be_any_agent),
        cmocka_unit_test(who_has_not_proved_to_be_anybody_may_be_no_agent_and_has_no_name),
        cmocka_unit_test(an_agent_may_be_what_one_of_its_globs_fits),
        cmocka_unit_test(others_are_no_agent_whatever_their_globs),
        cmocka_unit_test(a_role_is_read_from_its_own_name_and_from_no_other),
        cmocka_unit_test(a_quota_is_read_from_its_own_name_and_from_no_other),
        cmocka_unit_test(a_quota_that_nobody_wrote_down_is_of_the_role),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
