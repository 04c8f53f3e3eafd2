/*
 * The journal in a file says what the one in memory says, whatever is written, committed, lost with
 * a kill and deleted: random work of a small world on both, and every reading of both compared.
 */
#include <stdio.h>
#include <string.h>

#include "tests/support/random.h"
#include "tests/unit/journal/journal_dump.h"

enum { ROUNDS = 12, STEPS = 60, DUMP_MAX = 4 * 1024 * 1024 };

struct pair {
    struct fixture *f[2];
    struct rng rng;
    uint64_t plans, blobs, schedules; /* numbers given so far, those of the open batch included */
    uint64_t plan_seq[DUMP_IDS + 1];
    msec now;
};

static uint64_t below(struct pair *p, uint64_t n)
{
    return rng_next(&p->rng) % n;
}

static bool chance(struct pair *p, uint64_t of)
{
    return below(p, of) == 0;
}

static const char *pick(struct pair *p, const char *prefix, uint64_t n, char mem[24])
{
    (void)snprintf(mem, 24, "%s%u", prefix, (unsigned)below(p, n));
    return mem;
}

/* Both say the same of a write. */
static enum bt_code agree(enum bt_code a, enum bt_code b, const struct bt_error *why)
{
    if (a != b) {
        fail_msg("one says %d, the other %d: %s", (int)a, (int)b, why->msg);
    }
    return a;
}

#define EACH(call)                                                                                 \
    do {                                                                                           \
        struct bt_error err = {.code = BT_OK, .msg = ""};                                          \
        enum bt_code code[2];                                                                      \
        for (int i = 0; i < 2; i++) {                                                              \
            struct journal *j = p->f[i]->j;                                                        \
            code[i] = (call);                                                                      \
        }                                                                                          \
        (void)agree(code[0], code[1], &err);                                                       \
    } while (0)

static void do_plan(struct pair *p)
{
    char session[24];
    char key[24];
    char text[24];
    const uint64_t id = p->plans;
    uint64_t ix = 0;
    struct journal_plan plan = {.plan_id = dump_plan_id(id),
                                .session_id = str_from(pick(p, "s", 2, session)),
                                .body_hash = rng_next(&p->rng) >> 1,
                                .goal = str_from(pick(p, "goal", 9, text)),
                                .doc = "document",
                                .doc_len = 8 - below(p, 3),
                                .created_wall = p->now,
                                .status = STR_LIT("running"),
                                .job = chance(p, 3) ? STR_LIT("planning") : STR_LIT(""),
                                .owner = chance(p, 2) ? STR_LIT("ann") : STR_LIT("")};

    (void)snprintf(key, sizeof key, "key%u", (unsigned)(chance(p, 4) ? below(p, 6) : id));
    plan.client_key = chance(p, 3) ? STR_LIT("") : str_from(key);
    if (p->plans >= DUMP_IDS) {
        return;
    }
    EACH(journal_plan_add(j, &plan, &ix, &err));
    p->plans = ix > p->plans ? ix : p->plans;
}

static void do_row(struct pair *p)
{
    char body[24];
    uint64_t named[2] = {0, 0};
    const uint64_t ix = chance(p, 3) || p->plans == 0 ? 0 : 1 + below(p, p->plans);
    struct journal_row row = {.is_public = !chance(p, 3),
                              .plan_ix = ix,
                              .type = STR_LIT("step_done"),
                              .topic = chance(p, 2) ? STR_LIT("plan/x") : STR_LIT("plan/y"),
                              .wall = p->now,
                              .body = pick(p, "body", 99, body),
                              .blobs = named};

    row.body_len = strlen(body);
    if (ix == 0 && !row.is_public) {
        return;
    }
    while (ix > 0 && row.blobs_n < 2 && p->blobs > 1 && chance(p, 2)) {
        named[row.blobs_n++] = 2 + 2 * below(p, p->blobs / 2); /* sessions name the others */
    }
    if (row.blobs_n == 2 && named[0] == named[1]) {
        row.blobs_n = 1;
    }
    row.seq = row.is_public ? journal_next_seq(p->f[0]->j) : 0;
    row.plan_seq = row.is_public && ix > 0 ? ++p->plan_seq[ix] : 0;
    EACH(journal_append(j, &row, &err));
}

static void do_status(struct pair *p)
{
    static const char *const ends[] = {"completed", "failed", "cancelled"};
    const uint64_t ix = 1 + below(p, DUMP_IDS);
    const bool end = !chance(p, 4);
    const char *status = end ? ends[below(p, 3)] : "paused";
    const msec at = end ? 1000 + below(p, 4) * 500 : 0;

    struct journal_plan was;

    if (ix <= p->plans &&
        journal_plan_head(p->f[0]->j, dump_plan_id(ix - 1), &was, NULL) == BT_OK &&
        !str_is(was.status, "quarantined")) { /* that is for good */
        EACH(journal_plan_status(j, ix, str_from(status), at, &err));
    }
}

static void do_message(struct pair *p)
{
    char session[24];
    char text[24];
    uint64_t n;
    const struct journal_message m = {
        .role = chance(p, 2) ? STR_LIT("user") : STR_LIT("assistant"),
        .text = str_from(pick(p, "text", 99, text)),
        .cut = chance(p, 3),
        .turn = chance(p, 2) ? dump_turn_id(below(p, DUMP_TURNS)) : (struct uuid){{0}},
        .plan = chance(p, 2) ? dump_plan_id(below(p, DUMP_IDS)) : (struct uuid){{0}},
        .wall = p->now,
        .owner = chance(p, 2) ? STR_LIT("ann") : STR_LIT("")};

    (void)pick(p, "s", DUMP_SESSIONS, session);
    EACH(journal_message_add(j, str_from(session), &m, &n, &err));
}

static uint64_t blob_of_session(struct pair *p)
{
    return p->blobs > 0 && chance(p, 2) ? 1 + 2 * below(p, (p->blobs + 1) / 2) : 0;
}

static void do_session(struct pair *p)
{
    char session[24];
    struct journal_session s = {.created_wall = 900 + below(p, 9),
                                .updated_wall = p->now,
                                .messages = 0,
                                .summary = blob_of_session(p),
                                .agent_calls = below(p, 9),
                                .tool_calls = below(p, 9),
                                .owner = STR_LIT("bob")};
    struct journal_session was;

    s.session_id = str_from(pick(p, "s", DUMP_SESSIONS, session));
    if (journal_session(p->f[0]->j, s.session_id, &was, NULL) == BT_OK) {
        s.messages = was.messages;
        s.summarized = was.messages > 0 ? below(p, was.messages) : 0;
    }
    EACH(journal_session_put(j, &s, &err));
}

static void do_turn(struct pair *p)
{
    const uint64_t id = below(p, DUMP_TURNS);
    char session[24];
    char key[24];
    struct journal_turn t = {.turn_id = dump_turn_id(id),
                             .body_hash = below(p, 99),
                             .asked = below(p, 9),
                             .answered = chance(p, 2) ? below(p, 9) : 0,
                             .started_wall = p->now,
                             .ended_wall = chance(p, 2) ? p->now : 0,
                             .plan = dump_plan_id(below(p, DUMP_IDS)),
                             .action = chance(p, 2) ? STR_LIT("plan") : STR_LIT("chat"),
                             .context_blob = blob_of_session(p)};
    struct journal_turn was;

    /* A turn keeps its session and its key, and no two wait for one plan. */
    (void)snprintf(session, sizeof session, "s%u", (unsigned)(id % DUMP_SESSIONS));
    (void)snprintf(key, sizeof key, "turn%u", (unsigned)(id == 3 ? 0 : id));
    t.session_id = str_from(session);
    t.client_key = id == 1 ? STR_LIT("") : str_from(key);
    if (journal_turn_of_plan(p->f[0]->j, t.plan, &was, NULL) == BT_OK &&
        !uuid_eq(was.turn_id, t.turn_id)) {
        return;
    }
    EACH(journal_turn_put(j, &t, &err)); /* the fourth has the key of the first, and its session */
}

static void do_kept(struct pair *p)
{
    char name[24];
    char text[24];
    uint64_t ix = 0;
    bool found[2] = {false, false};
    const struct journal_schedule s = {.name = str_from(pick(p, "n", DUMP_NAMES, name)),
                                       .owner = STR_LIT("ann"),
                                       .body_hash = below(p, 99),
                                       .created_wall = p->now,
                                       .rule = str_from(pick(p, "rule", 9, text)),
                                       .doc = STR_LIT("what"),
                                       .state = chance(p, 2) ? STR_LIT("") : STR_LIT("at 3")};
    const struct journal_agent a = {str_from(name), p->now, str_from(text)};
    const uint32_t place = (uint32_t)below(p, 3);
    const uint64_t wall = 1000 + below(p, 4) * 500;

    switch (below(p, 8)) {
    case 0:
    case 1:
        EACH(journal_schedule_put(j, &s, &ix, &err));
        p->schedules = ix > p->schedules ? ix : p->schedules;
        break;
    case 2:
        ix = 1 + below(p, DUMP_NAMES);
        EACH(journal_schedule_state(j, ix, str_from(text), &err));
        break;
    case 3:
        ix = 1 + below(p, DUMP_NAMES);
        if (ix < p->schedules) { /* the number of the last one may be used again */
            EACH(journal_schedule_delete(j, ix, &err));
        }
        break;
    case 4:
        EACH(journal_start_put(j, s.name, place, wall, &err));
        break;
    case 5:
        EACH(chance(p, 1) ? journal_starts_drop(j, wall, &err) : BT_OK);
        break;
    case 6:
        EACH(journal_agent_put(j, &a, &err));
        break;
    default:
        if (wall == 1500) {
            EACH(journal_agent_drop(j, s.name, &found[i], &err));
            assert_int_equal(found[0], found[1]);
        } else if (wall == 1000) {
            EACH(journal_agents_drop(j, p->now - 2, &err));
        }
        break;
    }
}

static void do_blob(struct pair *p)
{
    char bytes[24];
    uint64_t id = 0;

    if (p->blobs >= DUMP_BLOBS) {
        return;
    }
    (void)pick(p, "bytes", 999, bytes);
    EACH(journal_blob_add(j, bytes, strlen(bytes), &id, &err));
    p->blobs = id;
}

static void compare(struct pair *p);

static void settle(struct pair *p)
{
    EACH(journal_commit(j, &err));
    p->plans = 0;
    for (uint64_t i = 0; i < DUMP_IDS; i++) {
        struct journal_plan head;
        struct journal_gone gone;
        if (journal_plan_head(p->f[0]->j, dump_plan_id(i), &head, NULL) == BT_OK ||
            journal_gone_by_id(p->f[0]->j, dump_plan_id(i), &gone, NULL) == BT_OK) {
            p->plans = i + 1;
        }
    }
}

static enum bt_code delete_session(struct journal *j, struct str id, struct bt_error *err)
{
    bool more = true;
    enum bt_code code = BT_OK;

    for (int i = 0; more && code == BT_OK; i++) {
        assert_true(i < 9);
        code = journal_session_delete(j, id, 1, &more, err);
    }
    return code;
}

static void do_delete(struct pair *p)
{
    char session[24];
    struct journal_plan was;
    uint32_t n[2] = {0, 0};
    const uint64_t ix = 1 + below(p, DUMP_IDS);
    const msec wall = p->now;

    switch (below(p, 5)) {
    case 0:
    case 1:
        EACH(journal_plan_delete(j, ix, STR_LIT("why not"), wall, &err));
        break;
    case 2:
        (void)pick(p, "s", DUMP_SESSIONS, session);
        EACH(delete_session(j, str_from(session), &err));
        break;
    case 3:
        if (journal_plan_head(p->f[0]->j, dump_plan_id(ix - 1), &was, NULL) == BT_OK) {
            EACH(journal_quarantine(j, ix, STR_LIT("it crashed"), &err));
        }
        break;
    default:
        settle(p); /* retention works between batches */
        EACH(journal_rows_delete(j, wall - 3, 99, &n[i], &err));
        if (n[0] != n[1]) {
            compare(p);
            fail_msg("rows: %u and %u", n[0], n[1]);
        }
        break;
    }
}

static void sweep(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        struct bt_error err;
        bool more = true;
        for (int k = 0; more; k++) {
            assert_true(k < 99);
            assert_ok(journal_sweep(p->f[i]->j, 7, &more, &err), err);
        }
    }
}

static void compare(struct pair *p)
{
    struct buf text[2];
    uint32_t fails[2];

    for (int i = 0; i < 2; i++) {
        buf_init(&text[i], DUMP_MAX);
        journal_dump(p->f[i]->j, false, &text[i], &fails[i]);
        assert_int_equal(buf_check(&text[i], NULL), BT_OK);
        buf_add_byte(&text[i], 0);
        commit(p->f[i]->j);
    }
    const char *a = (const char *)text[0].at;
    const char *b = (const char *)text[1].at;
    size_t before = 0;
    size_t line = 0;
    for (size_t i = 0; a[i] != 0 && a[i] == b[i]; i++) {
        before = a[i] == '\n' ? line : before;
        line = a[i] == '\n' ? i + 1 : line;
    }
    if (strcmp(a, b) != 0) {
        fail_msg("%.*sfile:   %.*s\nmemory: %.*s", (int)(line - before), a + before,
                 (int)strcspn(a + line, "\n"), a + line, (int)strcspn(b + line, "\n"), b + line);
    }
    for (int i = 0; i < 2; i++) {
        buf_done(&text[i]);
    }
}

static void work(struct pair *p)
{
    static void (*const steps[])(struct pair *) = {do_plan,   do_row,     do_row,     do_row,
                                                   do_status, do_message, do_session, do_turn,
                                                   do_kept,   do_kept,    do_blob,    do_delete};

    for (int i = 0; i < STEPS; i++) {
        p->now += 1 + below(p, 3); /* sessions come in the order of their updates */
        steps[below(p, sizeof steps / sizeof steps[0])](p);
        if (chance(p, 12)) {
            settle(p);
            compare(p);
        }
        if (chance(p, 30)) { /* what is not committed is lost */
            settle(p);
            for (int k = 0; k < 2; k++) {
                fixture_reopen(p->f[k]);
            }
            compare(p);
        }
    }
    settle(p);
    sweep(p);
    settle(p);
    compare(p);
}

static void both_say_the_same_of_any_work(void **state)
{
    struct pair p = {.rng = rng_seeded("both_say_the_same_of_any_work")};

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        void *file;
        void *memory;
        assert_int_equal(fixture_sqlite(&file), 0);
        assert_int_equal(fixture_memory(&memory), 0);
        p.f[0] = file;
        p.f[1] = memory;
        p.plans = p.blobs = p.schedules = 0;
        p.now = 1000;
        memset(p.plan_seq, 0, sizeof p.plan_seq);
        work(&p);
        (void)fixture_done(&file);
        (void)fixture_done(&memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_say_the_same_of_any_work)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
