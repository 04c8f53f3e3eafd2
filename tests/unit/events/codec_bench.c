#include "tests/unit/events/codec_bench.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/base/utf8.h"
#include "protocol/wire/mp_validate.h"

char long_text[LONG_TEXT];

int bench_up(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    struct registry_limits lim = {
        .agents = 8, .instances = 8, .lease_ms = 3000, .suspect_ms = 1000};

    assert_non_null(b);
    memset(long_text, 'e', sizeof long_text - 1);
    for (size_t i = 0; i + 3 < sizeof long_text; i += 7) {
        memcpy(long_text + i, "\xe2\x82\xac", 3); /* a euro sign, to be cut between */
    }
    buf_init(&b->body, 64 * 1024);
    buf_init(&b->topic, 1024);
    b->registry_mem = calloc(1, registry_size(&lim));
    assert_non_null(b->registry_mem);
    b->reg = registry_init(b->registry_mem, &lim);
    (void)registry_agent_add(b->reg, STR_LIT("files"), 0);
    (void)registry_agent_add(b->reg, STR_LIT("sql-agent"), 0);
    (void)registry_agent_add(b->reg, STR_LIT("calc"), 0);
    b->card = (struct msg_card){.agent_id = STR_LIT("sql-agent"), .name = STR_LIT("The SQL agent")};
    registry_agent_card(b->reg, 1, &b->card);
    *state = b;
    return 0;
}

int bench_down(void **state)
{
    struct bench *b = *state;
    arena_done(&b->arena);
    buf_done(&b->body);
    buf_done(&b->topic);
    free(b->registry_mem);
    free(b);
    return 0;
}

struct record_extra extra_of(const struct bench *b, const struct record *rec)
{
    return (struct record_extra){.seq = 77,
                                 .plan_seq = 5,
                                 .event_id = uuid_new(),
                                 .handoff_id = uuid_new(),
                                 .plan = record_about(rec->type) == ABOUT_PLAN ? &b->p.plan : NULL,
                                 .plan_id = b->p.plan_id,
                                 .revised = record_revises(rec) ? &b->p.plan : NULL,
                                 .preview = STR_LIT("the preview"),
                                 .summary = {12, 3456},
                                 .agent_id = STR_LIT("files"),
                                 .agent_name = STR_LIT("Files"),
                                 .version = STR_LIT("1.2"),
                                 .plans_recovered = 3};
}

struct journal_row row_of(const struct bench *b, const struct record *rec)
{
    return (struct journal_row){.seq = 77,
                                .is_public = record_row_is_public(
                                    rec, record_about(rec->type) == ABOUT_PLAN ? &b->p.plan : NULL),
                                .plan_ix = 1,
                                .plan_seq = 5,
                                .type = str_from(record_wire_type(rec->type)),
                                .topic = buf_str(&b->topic),
                                .wall = rec->wall,
                                .body = b->body.at,
                                .body_len = b->body.len};
}

void encode(struct bench *b, const struct record *rec, const struct record_extra *x)
{
    struct bt_error err;

    assert_ok(record_encode(rec, x, b->reg, &b->body, &b->topic, &err), err);
    assert_true(b->topic.len + 1 + b->body.len <= LIMIT_EVENT_BYTES);
    assert_ok(mp_validate(b->body.at, b->body.len, NULL, &err), err);
    assert_true(utf8_valid((const char *)b->topic.at, b->topic.len));
}

struct record decode(struct bench *b, const struct record *rec, msec mono, msec wall)
{
    struct journal_row row = row_of(b, rec);
    struct record got;
    struct bt_error err;

    arena_reset(&b->arena);
    assert_ok(record_decode(&row, &b->p.plan, b->p.plan_id, mono, wall, &b->arena, &got, &err),
              err);
    return got;
}
