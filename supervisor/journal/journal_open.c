/* Opens a journal by its address. */
#include <ctype.h>
#include <string.h>

#include "supervisor/journal/journal.h"
#include "supervisor/journal/owner.h"
#include "supervisor/journal/sqlite_internal.h"
#ifdef BATON_POSTGRES
#include "supervisor/journal/postgres/postgres.h"
#endif

/* The length of what is before the colon, when that is the name of a scheme; 0 = a directory. */
static size_t scheme_of(const char *url)
{
    size_t n = 0;

    while (isalnum((unsigned char)url[n]) ||
           (n > 0 && strchr("+-.", url[n]) != NULL && url[n] != 0)) {
        n++;
    }
    return url[n] == ':' ? n : 0;
}

bool journal_is_shared(const char *url)
{
    const struct str scheme = {url, scheme_of(url)};

    return str_is(scheme, "postgresql") || str_is(scheme, "postgres");
}

/* Held by the descriptor, which no program that this one starts inherits. */
enum bt_code journal_lock_dir(const char *dir, struct bt_error *err)
{
    int fd;

    return sqlite_lock_dir(dir, true, &fd, err);
}

#ifndef BATON_POSTGRES
static enum bt_code without_postgres(struct bt_error *err)
{
    return err_set(err, BT_INVALID,
                   "this Baton was built without PostgreSQL: build it with -DBATON_POSTGRES=ON, "
                   "which needs libpq-dev, or give a directory");
}

enum bt_code journal_look_open(const char *url, uint32_t lease_ms, uint32_t shard,
                               struct journal_look **ret, struct bt_error *err)
{
    (void)url;
    (void)shard;
    (void)lease_ms;
    *ret = NULL;
    return without_postgres(err);
}

enum bt_code journal_look(struct journal_look *l, struct journal_owner *ret, struct bt_error *err)
{
    (void)l;
    *ret = (struct journal_owner){.epoch = 0};
    return without_postgres(err);
}

enum bt_code journal_look_rewound(struct journal_look *l, uint64_t kept_seq, uint64_t lost_seq,
                                  struct bt_error *err)
{
    (void)l;
    (void)kept_seq;
    (void)lost_seq;
    return without_postgres(err);
}

enum bt_code journal_look_init(struct journal_look *l, uint32_t shards, struct bt_error *err)
{
    (void)shards;
    (void)l;
    return without_postgres(err);
}

enum bt_code journal_look_expand(struct journal_look *l, struct bt_error *err)
{
    (void)l;
    return without_postgres(err);
}

enum bt_code journal_look_finalize(struct journal_look *l, struct bt_error *err)
{
    (void)l;
    return without_postgres(err);
}

enum bt_code journal_look_grow(struct journal_look *l, uint32_t shards, struct bt_error *err)
{
    (void)l;
    (void)shards;
    return without_postgres(err);
}

void journal_look_close(struct journal_look *l)
{
    (void)l;
}

enum bt_code journal_look_wait(struct journal_look *l, const char *node, int64_t *ret_ms,
                               struct bt_error *err)
{
    (void)l;
    (void)node;
    *ret_ms = 0;
    return without_postgres(err);
}

enum bt_code journal_look_beat(struct journal_look *l, const char *node, const char *places,
                               const char *config, struct bt_error *err)
{
    (void)l;
    (void)node;
    (void)places;
    (void)config;
    return without_postgres(err);
}

enum bt_code journal_look_leave(struct journal_look *l, const char *node, struct bt_error *err)
{
    (void)l;
    (void)node;
    return without_postgres(err);
}

enum bt_code journal_look_shards(struct journal_look *l, struct journal_shard *ret, uint32_t max,
                                 uint32_t *ret_n, struct bt_error *err)
{
    (void)l;
    (void)ret;
    (void)max;
    *ret_n = 0;
    return without_postgres(err);
}

enum bt_code journal_look_nodes(struct journal_look *l, struct journal_node *ret, uint32_t max,
                                uint32_t *ret_n, struct bt_error *err)
{
    (void)l;
    (void)ret;
    (void)max;
    *ret_n = 0;
    return without_postgres(err);
}

enum bt_code journal_look_move(struct journal_look *l, uint32_t shard, const char *node,
                               struct bt_error *err)
{
    (void)l;
    (void)shard;
    (void)node;
    return without_postgres(err);
}

enum bt_code journal_look_drain(struct journal_look *l, const char *node, bool drain,
                                struct bt_error *err)
{
    (void)l;
    (void)node;
    (void)drain;
    return without_postgres(err);
}
#endif

static enum bt_code open_postgres(const char *url, const struct journal_options *opt,
                                  struct journal **ret, struct bt_error *err)
{
#ifdef BATON_POSTGRES
    return journal_open_postgres(url, opt, ret, err);
#else
    (void)url;
    (void)opt;
    (void)ret;
    return without_postgres(err);
#endif
}

enum bt_code journal_open(const char *url, const struct journal_options *opt, struct journal **ret,
                          struct bt_error *err)
{
    const struct str scheme = {url, scheme_of(url)};

    *ret = NULL;
    if (scheme.len == 0) {
        return journal_open_sqlite(url, opt, ret, err);
    }
    if (str_is(scheme, "sqlite")) {
        return journal_open_sqlite(url + scheme.len + 1, opt, ret, err);
    }
    if (journal_is_shared(url)) {
        return open_postgres(url, opt, ret, err);
    }
    /* Not the whole of it: it may have a password. */
    return err_set(err, BT_INVALID,
                   "a journal cannot be at \"%.*s:...\": give a directory, sqlite:DIR, or "
                   "postgresql://HOST/DATABASE",
                   STR_ARG(scheme));
}
