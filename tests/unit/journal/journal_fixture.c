#include "tests/unit/journal/journal_fixture.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef BATON_POSTGRES
#include "tests/support/pg_server/pg_server.h"

static void open_postgres(struct fixture *f)
{
    struct bt_error err;

    f->opt.durability = DURABILITY_POWER;
    assert_ok(journal_open(pg_server_url(), &f->opt, &f->j, &err), err);
}

static void begin_postgres(struct fixture *f)
{
    if (!pg_server_installed()) {
        exit(pg_server_skip("the journal's tests"));
    }
    pg_server_start();
    pg_server_clear();
    open_postgres(f);
}
#else
static void open_postgres(struct fixture *f)
{
    (void)f;
    fail_msg("this build is without PostgreSQL");
}

static void begin_postgres(struct fixture *f)
{
    open_postgres(f);
}
#endif

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void fixture_remove_tree(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int fixture_make(void **state, enum kind kind)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct bt_error err;

    assert_non_null(f);
    f->kind = kind;
    f->opt = (struct journal_options){.durability = DURABILITY_PROCESS};
    (void)snprintf(f->root, sizeof f->root, "/tmp/baton-journal-XXXXXX");
    assert_non_null(mkdtemp(f->root));
    (void)snprintf(f->dir, sizeof f->dir, "%s/state", f->root);
    if (kind == KIND_SQLITE) {
        assert_ok(journal_open(f->dir, &f->opt, &f->j, &err), err);
    } else if (kind == KIND_POSTGRES) {
        begin_postgres(f);
    } else {
        assert_ok(memory_journal_open(&f->j, &err), err);
    }
    *state = f;
    return 0;
}

int fixture_sqlite(void **state)
{
    const char *on = getenv("BATON_TEST_JOURNAL");

    return fixture_make(state,
                        on != NULL && strcmp(on, "postgres") == 0 ? KIND_POSTGRES : KIND_SQLITE);
}

int fixture_memory(void **state)
{
    return fixture_make(state, KIND_MEMORY);
}

int fixture_done(void **state)
{
    struct fixture *f = *state;
    journal_close(f->j);
    fixture_remove_tree(f->root);
    free(f);
    return 0;
}

void fixture_reopen(struct fixture *f)
{
    struct bt_error err;

    if (f->kind == KIND_MEMORY) {
        memory_journal_restart(f->j);
        return;
    }
    journal_close(f->j);
    if (f->kind == KIND_POSTGRES) {
        open_postgres(f);
        return;
    }
    assert_ok(journal_open(f->dir, &f->opt, &f->j, &err), err);
}

uint64_t add_plan(struct journal *j, const char *key, const char *goal)
{
    struct bt_error err;
    uint64_t ix = 0;
    struct journal_plan p = {
        .plan_id = uuid_new(),
        .session_id = STR_LIT("s1"),
        .client_key = str_from(key),
        .body_hash = str_hash(str_from(goal)),
        .goal = str_from(goal),
        .doc = goal,
        .doc_len = strlen(goal),
        .created_wall = 1000,
        .status = STR_LIT("running"),
    };
    assert_ok(journal_plan_add(j, &p, &ix, &err), err);
    return ix;
}

uint64_t add_event(struct journal *j, uint64_t plan_ix, uint64_t plan_seq, const char *body)
{
    struct bt_error err;
    struct journal_row row = {
        .seq = journal_next_seq(j),
        .is_public = true,
        .plan_ix = plan_ix,
        .plan_seq = plan_seq,
        .type = STR_LIT("plan_started"),
        .topic = STR_LIT("plan/s1/x/plan_started"),
        .wall = 1234,
        .body = body,
        .body_len = strlen(body),
    };
    assert_ok(journal_append(j, &row, &err), err);
    return row.seq;
}

void add_internal(struct journal *j, uint64_t plan_ix, const char *body)
{
    struct bt_error err;
    struct journal_row row = {
        .plan_ix = plan_ix,
        .type = STR_LIT("step_assigned"),
        .wall = 1235,
        .body = body,
        .body_len = strlen(body),
    };
    assert_ok(journal_append(j, &row, &err), err);
}

void commit(struct journal *j)
{
    struct bt_error err;
    assert_ok(journal_commit(j, &err), err);
}

static void see(struct seen *s, const char *text)
{
    size_t n = strlen(text);
    if (s->len + n < sizeof s->text) {
        memcpy(s->text + s->len, text, n + 1);
        s->len += n;
    }
    s->n++;
}

bool see_row(const struct journal_row *row, void *self)
{
    char text[128];
    (void)snprintf(text, sizeof text, row->is_public ? "%llu:%.*s " : "(%llu):%.*s ",
                   (unsigned long long)row->seq, (int)row->body_len, (const char *)row->body);
    see(self, text);
    return true;
}

bool see_plan(const struct journal_plan *p, void *self)
{
    char text[256];
    (void)snprintf(text, sizeof text, "%llu:%.*s/%.*s%s%.*s ", (unsigned long long)p->ix,
                   STR_ARG(p->goal), STR_ARG(p->status), p->note.len > 0 ? "/" : "",
                   STR_ARG(p->note));
    see(self, text);
    return true;
}
