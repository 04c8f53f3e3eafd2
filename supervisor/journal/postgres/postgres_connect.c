/* Connections to PostgreSQL: the first one waits, a later one is made while others are answered. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "supervisor/journal/postgres/postgres_internal.h"

enum { KEEPALIVES = 3, OPTIONS_MAX = 64, HOSTS_LEN = 1024 };

static void on_notice(void *self, const char *text)
{
    (void)self;
    log_debug("journal.postgres", "%s", text);
}

/* libpq's text has several lines; an error is one. */
static enum bt_code refused(PGconn *conn, struct bt_error *err)
{
    const char *text = conn != NULL ? PQerrorMessage(conn) : "out of memory";
    char line[BT_ERROR_MSG_MAX / 2];
    size_t n = 0;

    for (; *text != 0 && n < sizeof line - 1; text++) {
        if (*text > ' ' || (n > 0 && line[n - 1] != ' ')) {
            line[n++] = *text > ' ' ? *text : ' ';
        }
    }
    while (n > 0 && line[n - 1] == ' ') {
        n--;
    }
    line[n] = 0;
    return err_set(err, BT_UNAVAILABLE, "cannot connect to PostgreSQL: %s", line);
}

/* The address wins over what comes before it: it may name several servers, and how to choose. */
enum bt_code pg_connect(const char *url, const char *name, uint32_t lease_ms, PGconn **ret,
                        struct bt_error *err)
{
    char half[24];
    char seconds[24];
    const char *const keys[] = {"target_session_attrs", "dbname",          "application_name",
                                "tcp_user_timeout",     "keepalives_idle", "keepalives_interval",
                                "keepalives_count",     "connect_timeout", NULL};
    const char *const values[] = {"read-write", url, name, half, seconds, seconds, "2", "5", NULL};

    (void)snprintf(half, sizeof half, "%" PRIu32, lease_ms / 2);
    (void)snprintf(seconds, sizeof seconds, "%" PRIu32, lease_ms / 1000 / KEEPALIVES + 1);
    *ret = PQconnectdbParams(keys, values, 1);
    if (*ret == NULL || PQstatus(*ret) != CONNECTION_OK) {
        return refused(*ret, err);
    }
    (void)PQsetNoticeProcessor(*ret, on_notice, NULL);
    return BT_OK;
}

void pg_name(const struct pg_journal *p, char *ret, size_t cap)
{
    (void)snprintf(ret, cap, "baton/%s/%" PRIu32, p->node, p->shard);
}

/* ---- again ---- */

/* The n-th of the values between commas, counted around; the only one for all. *ret_of: how many
 * there are. */
static void nth(const char *list, uint32_t n, char *ret, size_t cap, uint32_t *ret_of)
{
    uint32_t of = 1;

    for (const char *at = strchr(list, ','); at != NULL; at = strchr(at + 1, ',')) {
        of++;
    }
    for (n %= of; n > 0; n--) {
        list = strchr(list, ',') + 1;
    }
    (void)snprintf(ret, cap, "%.*s", (int)strcspn(list, ","), list);
    *ret_of = of;
}

/* The values of the address, one host of several: libpq's own turn to the next one does not wait
 * for us. */
struct address {
    const char *keys[OPTIONS_MAX + 1], *values[OPTIONS_MAX + 1];
    int n;
    char host[HOSTS_LEN], hostaddr[HOSTS_LEN], port[HOSTS_LEN];
    char name[PG_NODE_MAX + 16], half[24], seconds[24];
};

static void put(struct address *a, const char *key, const char *value)
{
    for (int i = 0; i < a->n; i++) {
        if (strcmp(a->keys[i], key) == 0) {
            return;
        }
    }
    if (a->n < OPTIONS_MAX) {
        a->keys[a->n] = key;
        a->values[a->n++] = value;
    }
}

static void put_one(struct address *a, const PQconninfoOption *o, uint32_t n, char *ret)
{
    uint32_t of;

    nth(o->val, n, ret, HOSTS_LEN, &of);
    put(a, o->keyword, ret);
}

static void address_of(const struct pg_journal *p, const PQconninfoOption *o, struct address *ret)
{
    const uint32_t n = p->hosts_tried;

    ret->n = 0;
    for (; o->keyword != NULL; o++) {
        if (o->val == NULL) {
            continue;
        }
        if (strcmp(o->keyword, "host") == 0) {
            put_one(ret, o, n, ret->host);
        } else if (strcmp(o->keyword, "hostaddr") == 0) {
            put_one(ret, o, n, ret->hostaddr);
        } else if (strcmp(o->keyword, "port") == 0) {
            put_one(ret, o, n, ret->port);
        } else {
            put(ret, o->keyword, o->val);
        }
    }
    pg_name(p, ret->name, sizeof ret->name);
    (void)snprintf(ret->half, sizeof ret->half, "%" PRIu32, p->lease_ms / 2);
    (void)snprintf(ret->seconds, sizeof ret->seconds, "%" PRIu32,
                   p->lease_ms / 1000 / KEEPALIVES + 1);
    put(ret, "target_session_attrs", "read-write");
    put(ret, "application_name", ret->name);
    put(ret, "tcp_user_timeout", ret->half);
    put(ret, "keepalives_idle", ret->seconds);
    put(ret, "keepalives_interval", ret->seconds);
    put(ret, "keepalives_count", "2");
    ret->keys[ret->n] = ret->values[ret->n] = NULL;
}

static enum bt_code poll_connection(struct pg_journal *p, struct bt_error *err)
{
    const uint64_t deadline = clock_boot_ms() + p->lease_ms / 2;
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;

    while (status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED) {
        const short events = status == PGRES_POLLING_WRITING ? POLLOUT : POLLIN;
        struct pollfd fd = {.fd = PQsocket(p->conn), .events = events};
        if (fd.fd < 0 || clock_boot_ms() >= deadline ||
            !pg_wait_slice(p, fd.fd, events, deadline)) {
            return err_set(err, BT_UNAVAILABLE,
                           "cannot connect to PostgreSQL: no answer within half a lease");
        }
        if (poll(&fd, 1, 0) > 0) {
            status = PQconnectPoll(p->conn);
        }
    }
    return status == PGRES_POLLING_OK ? BT_OK : refused(p->conn, err);
}

enum bt_code pg_connect_again(struct pg_journal *p, struct bt_error *err)
{
    PQconninfoOption *options = PQconninfoParse(p->url, NULL);
    struct address a;
    enum bt_code code = BT_OK;

    if (options == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the address of PostgreSQL");
    }
    address_of(p, options, &a);
    p->hosts_tried++;
    p->conn = PQconnectStartParams(a.keys, a.values, 0);
    p->behind = false;
    PQconninfoFree(options);
    if (p->conn == NULL || PQstatus(p->conn) == CONNECTION_BAD) {
        return refused(p->conn, err);
    }
    code = poll_connection(p, err);
    if (code == BT_OK) {
        (void)PQsetNoticeProcessor(p->conn, on_notice, NULL);
    }
    return code;
}
