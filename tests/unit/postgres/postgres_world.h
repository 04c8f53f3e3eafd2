/* A journal on a PostgreSQL server in memory, and what the tests do with it. */
#ifndef TESTS_POSTGRES_WORLD_H
#define TESTS_POSTGRES_WORLD_H

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/journal/journal.h"
#include "supervisor/journal/owner.h"
#include "supervisor/journal/postgres/postgres.h"
#include "supervisor/journal/postgres/postgres_internal.h"
#include "tests/support/cmocka.h"
#include "tests/support/fake_pq/fake_pq.h"

enum { LEASE = 3000 };
static const char URL[] = "postgresql://h1:1,h2:2,h3:3/db?connect_timeout=7";
static const char SHOWS_OVER[] = "a.application_name LIKE 'baton/%'), owner FROM baton.shards";
static const struct journal_options ONE = {
    .lease_ms = LEASE, .node = "one", .durability = DURABILITY_POWER};

/* A server whose tables are there and whose shard nobody owns. */
static inline void world_begin(void)
{
    fake_pq_begin();
    fake_pq_answer("SELECT format FROM baton.fleet", "3");
    fake_pq_answer("SELECT count(*) FROM pg_attribute", "1");
    fake_pq_answer("SELECT tables FROM baton.fleet", "3");
    fake_pq_answer("SELECT count(*) FROM baton.shards", "1");
    fake_pq_answer("SELECT format::int8", "3");
    fake_pq_answer(SHOWS_OVER, "0|''");
}

static inline enum bt_code world_open(const struct journal_options *opt, struct journal **ret,
                                      struct bt_error *err)
{
    return journal_open_postgres(URL, opt, ret, err);
}

static inline struct journal *world_lead(void)
{
    struct journal *j = NULL;
    struct bt_error err;

    if (world_open(&ONE, &j, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    return j;
}

static inline enum bt_code add_row(struct journal *j, const char *body, struct bt_error *err)
{
    const struct journal_row row = {.seq = journal_next_seq(j),
                                    .is_public = true,
                                    .type = STR_LIT("t"),
                                    .topic = STR_LIT("a/b"),
                                    .wall = 1234,
                                    .body = body,
                                    .body_len = strlen(body)};

    return journal_append(j, &row, err);
}

static inline enum bt_code add_rows(struct journal *j, uint32_t n, struct bt_error *err)
{
    enum bt_code code = BT_OK;

    for (uint32_t i = 0; i < n && code == BT_OK; i++) {
        code = add_row(j, "body", err);
    }
    return code;
}

static inline enum bt_code add_plan(struct journal *j, struct bt_error *err)
{
    const struct journal_plan p = {.plan_id = {{1, 2, 3}},
                                   .session_id = STR_LIT("s1"),
                                   .client_key = STR_LIT("key"),
                                   .goal = STR_LIT("goal"),
                                   .doc = "d",
                                   .doc_len = 1,
                                   .created_wall = 1000,
                                   .status = STR_LIT("running")};
    uint64_t ix;

    return journal_plan_add(j, &p, &ix, err);
}
#endif
