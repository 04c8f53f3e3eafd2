/* Plans inside a plan are deleted before it, also when an allocation or a read on the way fails. */
#include <stdlib.h>
#include <string.h>

#include "protocol/wire/doc.h"
#include "supervisor/journal/port.h"
#include "supervisor/retention/retention.h"
#include "tests/unit/journal/journal_fixture.h"

enum { START = 1000000, INSIDE = 4, ATTEMPTS = 400 };

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *at, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *at, size_t n);
void __real_free(void *at);
void __wrap_free(void *at);

static bool in_journal;          /* whose memory is not the room's */
static long pieces;              /* of memory that are allocated now */
static long pieces_of_room;      /* without those of calls of the journal */
static long successes_left = -1; /* -1 = no failure; afterwards they succeed again */

static bool fails(void)
{
    return successes_left >= 0 && !in_journal && successes_left-- == 0;
}

static void *counted(void *at)
{
    pieces += at != NULL;
    pieces_of_room += at != NULL && !in_journal;
    return at;
}

void *__wrap_malloc(size_t n)
{
    return counted(fails() ? NULL : __real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return counted(fails() ? NULL : __real_calloc(n, size));
}

void *__wrap_realloc(void *at, size_t n)
{
    if (fails()) {
        return NULL;
    }
    return at == NULL ? counted(__real_realloc(at, n)) : __real_realloc(at, n);
}

void __wrap_free(void *at)
{
    pieces -= at != NULL;
    pieces_of_room -= at != NULL && !in_journal;
    __real_free(at);
}

static const struct journal_ops *real;
static struct journal_ops odd;
static long reads_left = -1; /* the read that fails; -1 = none */

static enum bt_code plan_by_id(struct journal *j, struct uuid id, struct journal_plan *ret,
                               struct bt_error *err)
{
    enum bt_code code;

    if (reads_left >= 0 && reads_left-- == 0) {
        return err_set(err, BT_IO, "the disk does not answer");
    }
    in_journal = true;
    code = real->plan_by_id(j, id, ret, err);
    in_journal = false;
    return code;
}

static enum bt_code plans_ended(struct journal *j, msec after, uint64_t after_ix, uint32_t limit,
                                journal_plan_fn fn, void *self, struct bt_error *err)
{
    enum bt_code code;

    in_journal = true; /* and who takes them allocates nothing */
    code = real->plans_ended(j, after, after_ix, limit, fn, self, err);
    in_journal = false;
    return code;
}

static enum bt_code plan_delete(struct journal *j, uint64_t ix, struct str why, msec wall,
                                struct bt_error *err)
{
    enum bt_code code;

    in_journal = true;
    code = real->plan_delete(j, ix, why, wall, err);
    in_journal = false;
    return code;
}

static bool is_open(void *self, struct uuid id)
{
    (void)self;
    (void)id;
    return false;
}

static void on_deleted(void *self, struct uuid id)
{
    (void)self;
    (void)id;
}

/* A plan that has ended, inside the other one; of NULL = inside none. */
static struct uuid add(struct journal *j, const struct uuid *of)
{
    char text[UUID_TEXT_LEN + 1] = "";
    struct journal_plan p = {.plan_id = uuid_new(),
                             .goal = STR_LIT("goal"),
                             .created_wall = START - 5,
                             .status = STR_LIT("running"),
                             .job = str_from(of != NULL ? "child" : "")};
    struct bt_error err;
    struct buf doc;
    uint64_t ix;

    if (of != NULL) {
        uuid_format(*of, text);
    }
    buf_init(&doc, 1000);
    doc_put_map(&doc, 1);
    doc_put_cstr(&doc, "child");
    doc_put_map(&doc, 2);
    doc_put_cstr(&doc, "kind");
    doc_put_cstr(&doc, "repeat");
    doc_put_cstr(&doc, "of");
    doc_put_cstr(&doc, text);
    p.doc = doc.at;
    p.doc_len = doc.len;
    assert_ok(journal_plan_add(j, &p, &ix, &err), err);
    assert_ok(journal_plan_status(j, ix, STR_LIT("completed"), START, &err), err);
    commit(j);
    buf_done(&doc);
    return p.plan_id;
}

struct world {
    struct journal *j;
    struct retention *r;
    struct uuid plan, inside[INSIDE];
};

static void open_world(struct world *w)
{
    const struct retention_options opt = {0};
    const struct retention_hooks hooks = {NULL, is_open, NULL, on_deleted};
    struct bt_error err;

    assert_ok(memory_journal_open(&w->j, &err), err);
    assert_ok(retention_new(&opt, &hooks, w->j, &w->r, &err), err);
    w->plan = add(w->j, NULL);
    for (int i = 0; i < INSIDE; i++) { /* each in the one before */
        w->inside[i] = add(w->j, i == 0 ? &w->plan : &w->inside[i - 1]);
    }
    real = w->j->ops;
    odd = *real;
    odd.plan_by_id = plan_by_id;
    odd.plans_ended = plans_ended;
    odd.plan_delete = plan_delete;
    w->j->ops = &odd;
}

static enum bt_code deleted(struct world *w, struct bt_error *err)
{
    struct journal_plan p;
    uint32_t jobs;

    in_journal = true;
    assert_ok(real->plan_by_id(w->j, w->plan, &p, err), *err); /* it goes last */
    in_journal = false;
    return retention_delete(w->r, &p, STR_LIT("x"), START, &jobs, err);
}

/* Once more, after a failure, and nothing is left. */
static void expect_all_go(struct world *w, enum bt_code code, enum bt_code reason,
                          struct bt_error *err)
{
    struct journal_plan p;

    successes_left = reads_left = -1;
    if (code != BT_OK) {
        assert_int_equal(code, reason);
        assert_int_equal(err->code, reason);
        commit(w->j);
        code = deleted(w, err);
    }
    assert_ok(code, *err);
    commit(w->j);
    for (int i = 0; i < INSIDE; i++) {
        assert_int_equal(journal_plan_by_id(w->j, w->inside[i], &p, err), BT_NOT_FOUND);
    }
    assert_int_equal(journal_plan_by_id(w->j, w->plan, &p, err), BT_NOT_FOUND);
    retention_free(w->r);
    journal_close(w->j);
}

static void plans_inside_a_plan_go_with_it_although_an_allocation_fails(void **state)
{
    bool failed = true;
    long failures = 0;

    (void)state;
    for (long i = 0; failed && i < ATTEMPTS; i++) {
        struct bt_error err;
        struct world w;
        open_world(&w);
        successes_left = i;
        const enum bt_code code = deleted(&w, &err);
        failed = successes_left < 0;
        failures += failed ? 1 : 0;
        expect_all_go(&w, code, BT_NOMEM, &err);
    }
    assert_false(failed);
    assert_true(failures > 1);
}

/* Whether a plan that cannot be read is inside another one is not known: it is no stranger. */
static void plans_inside_a_plan_go_with_it_although_one_cannot_be_read(void **state)
{
    bool failed = true;
    long failures = 0;

    (void)state;
    for (long i = 0; failed && i < ATTEMPTS; i++) {
        struct bt_error err;
        struct world w;
        open_world(&w);
        reads_left = i;
        const enum bt_code code = deleted(&w, &err);
        failed = reads_left < 0;
        failures += failed ? 1 : 0;
        assert_int_equal(code, failed ? BT_IO : BT_OK);
        expect_all_go(&w, code, BT_IO, &err);
    }
    assert_false(failed);
    assert_true(failures >= INSIDE);
}

static void without_memory_there_is_no_room(void **state)
{
    const struct retention_options opt = {0};
    const struct retention_hooks hooks = {NULL, is_open, NULL, on_deleted};
    struct retention *r = NULL;
    struct bt_error err;

    (void)state;
    successes_left = 0;
    assert_int_equal(retention_new(&opt, &hooks, NULL, &r, &err), BT_NOMEM);
    successes_left = -1;
    assert_int_equal(err.code, BT_NOMEM);
    assert_null(r);
    retention_free(NULL);
}

/* Whether a plan went, its deletion failed half way, or another one was looked at in between. */
static void nothing_of_a_search_stays_in_memory(void **state)
{
    (void)state;
    for (int ends = 0; ends < 3; ends++) {
        const long before = pieces;
        struct bt_error err;
        struct world w;
        struct journal_plan p;
        uint32_t jobs;
        open_world(&w);
        if (ends == 0) {
            const long had = pieces_of_room;
            assert_ok(deleted(&w, &err), err);
            assert_int_equal(pieces_of_room, had);
        } else {
            reads_left = 2;
            assert_int_equal(deleted(&w, &err), BT_IO);
            reads_left = -1;
        }
        if (ends == 2) {
            const struct uuid other = add(w.j, NULL);
            const struct uuid inside = add(w.j, &other);
            assert_ok(real->plan_by_id(w.j, other, &p, &err), err);
            assert_ok(retention_delete(w.r, &p, STR_LIT("x"), START, &jobs, &err), err);
            assert_int_equal(jobs, 1);
            assert_int_equal(journal_plan_by_id(w.j, inside, &p, &err), BT_NOT_FOUND);
        }
        commit(w.j);
        retention_free(w.r);
        journal_close(w.j);
        assert_int_equal(pieces, before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_there_is_no_room),
        cmocka_unit_test(nothing_of_a_search_stays_in_memory),
        cmocka_unit_test(plans_inside_a_plan_go_with_it_although_an_allocation_fails),
        cmocka_unit_test(plans_inside_a_plan_go_with_it_although_one_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
