#include "supervisor/node/balance.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"

enum { MAX = 8 };

/* "aabb": who leads each shard; '.' = nobody, '>' = it is on its way. nodes: "ab"; upper case: it
 * drains; '-' before it: it is gone. */
static const char *give(const char *self, const char *leaders, const char *names)
{
    static char said[16];
    struct journal_shard shards[MAX] = {0};
    struct journal_node nodes[MAX] = {0};
    const uint32_t n = (uint32_t)strlen(leaders);
    uint32_t nodes_n = 0;
    uint32_t shard = 0;
    const struct journal_node *to;

    for (uint32_t i = 0; i < n; i++) {
        shards[i].shard = i;
        shards[i].led = leaders[i] != '.' && leaders[i] != '>';
        (void)snprintf(shards[i].node, sizeof shards[i].node, "%c", leaders[i]);
        (void)snprintf(shards[i].moves_to, sizeof shards[i].moves_to, "%s",
                       leaders[i] == '>' ? "x" : "");
    }
    for (const char *at = names; *at != 0; at++) {
        struct journal_node *node = &nodes[nodes_n++];
        node->alive = *at != '-';
        at += *at == '-';
        node->draining = *at >= 'A' && *at <= 'Z';
        (void)snprintf(node->node, sizeof node->node, "%c", node->draining ? *at + 32 : *at);
    }
    /* what lies behind them is not looked at */
    assert_true(n < MAX && nodes_n < MAX);
    shards[n] = (struct journal_shard){.shard = 9, .led = true};
    (void)snprintf(shards[n].node, sizeof shards[n].node, "%s", self);
    nodes[nodes_n] = (struct journal_node){.node = "z", .alive = true};
    to = balance_give(self, shards, n, nodes, nodes_n, &shard);
    (void)snprintf(said, sizeof said, "%s", "-");
    if (to != NULL) {
        (void)snprintf(said, sizeof said, "%u%s", shard, to->node);
    }
    return said;
}

static void a_node_gives_what_it_has_more_of_than_the_least(void **state)
{
    (void)state;
    assert_string_equal(give("a", "aaaa", "ab"), "3b");
    assert_string_equal(give("a", "aaab", "ab"), "2b");
    assert_string_equal(give("a", "aabb", "ab"), "-");
    assert_string_equal(give("a", "aabc", "abc"), "-"); /* a difference of one stays */
    assert_string_equal(give("a", "aaabbb", "abc"), "2c");
    assert_string_equal(give("b", "aaabbb", "abc"), "5c");
    assert_string_equal(give("c", "aaabbb", "abc"), "-");
}

static void nothing_is_given_to_who_is_gone_or_drains(void **state)
{
    (void)state;
    assert_string_equal(give("a", "aaaa", "a-b"), "-");
    assert_string_equal(give("a", "aaaa", "aB"), "-");
    assert_string_equal(give("a", "aaaa", "a"), "-");
}

static void one_moves_at_a_time(void **state)
{
    (void)state;
    assert_string_equal(give("a", "aaa>", "ab"), "-");
    assert_string_equal(give("a", "aaa.", "ab"), "2b"); /* lost: not on its way to anybody */
}

static void a_node_that_drains_gives_all(void **state)
{
    (void)state;
    assert_string_equal(give("a", "aabb", "Ab"), "1b");
    assert_string_equal(give("a", "abbb", "Ab"), "0b");
    assert_string_equal(give("a", "bbbb", "Ab"), "-");
    assert_string_equal(give("a", "aabc", "ABc"), "1c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_gives_what_it_has_more_of_than_the_least),
        cmocka_unit_test(nothing_is_given_to_who_is_gone_or_drains),
        cmocka_unit_test(one_moves_at_a_time),
        cmocka_unit_test(a_node_that_drains_gives_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
