#include "tests/support/fake_pq/fake_pq.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/journal/postgres/postgres_internal.h"
#include "tests/support/cmocka.h"

enum { CELL_MAX = 128, COLUMNS_MAX = 8, QUEUE_MAX = 512, RULES_MAX = 64, TEXT_SHOWN = 72 };
enum { PREPARED_MAX = SQL_COUNT + 8, NAME_MAX_LEN = 24, LIMIT_AT = -2, BEGAN = 1000000 };

struct cell {
    char bytes[CELL_MAX];
    int len;
};

struct pg_result {
    ExecStatusType status;
    int rows, columns;
    struct cell *cells;
    char state[6], message[128];
    char changed[24];
};

struct pg_conn {
    bool bad, pipeline, silent, lost, unanswered;
    bool aborted, in_transaction;
    bool begun; /* a statement since the last Sync */
    struct fake_pq_state before, is;
    struct pg_result *queue[QUEUE_MAX]; /* NULL: the end of a statement's answers */
    int n, at;
    int synced; /* so many of the queue may be read */
    uint64_t ready;
    char names[PREPARED_MAX][NAME_MAX_LEN];
    bool writes_row[PREPARED_MAX];
    int prepared;
    uint32_t texts; /* a hash of what was prepared since the last Sync */
    int backend;
    char error[128];
};

struct fake_pq fake_pq;
static struct {
    const char *text, *row;
    uint32_t pages;
} rules[RULES_MAX];
static int rules_n;
static struct fail {
    uint32_t in, times;
    enum fake_pq_fault fault;
    const char *state;
    const char *text; /* of fail_text: only those with it */
    bool seen;
} fail, fail_text;
static PGconn *newest; /* the connection of before is gone for the server */

uint64_t __wrap_clock_boot_ms(void);
uint64_t __wrap_clock_wall_ms(void);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);

uint64_t __wrap_clock_boot_ms(void)
{
    return fake_pq.now;
}

uint64_t __wrap_clock_wall_ms(void)
{
    return fake_pq.now;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
    const uint64_t until = fake_pq.now + (uint64_t)(timeout > 0 ? timeout : 0);
    const bool is_open = n == 1 && fds[0].fd >= 0 && newest != NULL;
    const bool comes = is_open && !newest->silent && newest->ready <= until;

    assert_true(timeout >= 0);
    if (fake_pq.poll_errno != 0) {
        errno = fake_pq.poll_errno;
        fake_pq.poll_errno = 0;
        return -1;
    }
    fds[0].revents = 0;
    fake_pq.now = comes && newest->ready > fake_pq.now ? newest->ready
                  : comes                              ? fake_pq.now
                                                       : until;
    fds[0].revents = comes ? fds[0].events : 0;
    return comes ? 1 : 0;
}

/* ---- what the test says ---- */

void fake_pq_begin(void)
{
    fake_pq = (struct fake_pq){.now = BEGAN, .stored = {.backend = 1}};
    buf_init(&fake_pq.log, 4 * 1024 * 1024);
    rules_n = 0;
    memset(&fail, 0, sizeof fail);
    memset(&fail_text, 0, sizeof fail_text);
    newest = NULL;
}

void fake_pq_end(void)
{
    buf_done(&fake_pq.log);
    assert_int_equal(fake_pq.left, 0);
}

void fake_pq_answer(const char *text, const char *row)
{
    assert_true(rules_n < RULES_MAX);
    rules[rules_n].text = text;
    rules[rules_n].row = row;
    rules[rules_n++].pages = 0;
}

void fake_pq_pages(const char *name, uint32_t rows)
{
    fake_pq_answer(name, NULL);
    rules[rules_n - 1].pages = rows;
}

void fake_pq_fail(uint32_t n, enum fake_pq_fault fault, const char *state, uint32_t times)
{
    fail.in = n;
    fail.fault = fault;
    fail.state = state;
    fail.times = times;
    fail.seen = false;
}

void fake_pq_fail_text(const char *text, enum fake_pq_fault fault, const char *state,
                       uint32_t times)
{
    fail_text.state = state;
    fail_text.in = 1;
    fail_text.text = text;
    fail_text.fault = fault;
    fail_text.times = times;
}

bool fake_pq_failed(void)
{
    return fail.seen;
}

/* ---- results ---- */

static PGresult *result(ExecStatusType status, int rows, int columns)
{
    PGresult *r = calloc(1, sizeof *r);

    assert_non_null(r);
    r->status = status;
    r->rows = rows;
    r->columns = columns;
    if (rows * columns > 0) {
        r->cells = calloc((size_t)(rows * columns), sizeof *r->cells);
        assert_non_null(r->cells);
    }
    fake_pq.left++;
    return r;
}

static PGresult *error(const char *state, const char *message)
{
    PGresult *r = result(PGRES_FATAL_ERROR, 0, 0);

    (void)snprintf(r->state, sizeof r->state, "%s", state);
    (void)snprintf(r->message, sizeof r->message, "%s", message);
    return r;
}

static void put_number(struct cell *c, uint64_t v, bool binary)
{
    const uint64_t be = htobe64(v);

    if (binary) {
        memcpy(c->bytes, &be, sizeof be);
        c->len = (int)sizeof be;
    } else {
        c->len = snprintf(c->bytes, sizeof c->bytes, "%" PRIu64, v);
    }
}

static PGresult *row_of(const char *spec, bool binary)
{
    PGresult *r;
    int columns = 1;

    for (const char *at = spec; at != NULL && *at != 0; at++) {
        columns += *at == '|' ? 1 : 0;
    }
    r = result(PGRES_TUPLES_OK, spec != NULL ? 1 : 0, columns);
    for (int i = 0; spec != NULL && i < columns; i++) {
        const size_t len = strcspn(spec, "|");
        if (spec[0] == '\'') {
            r->cells[i].len = (int)len - 2;
            memcpy(r->cells[i].bytes, spec + 1, len - 2);
        } else {
            put_number(&r->cells[i], strtoull(spec, NULL, 10), binary);
        }
        spec += len + 1;
    }
    return r;
}

void PQclear(PGresult *r)
{
    if (r != NULL) {
        free(r->cells);
        free(r);
        fake_pq.left--;
    }
}

ExecStatusType PQresultStatus(const PGresult *r)
{
    return r == NULL ? PGRES_FATAL_ERROR : r->status;
}

int PQntuples(const PGresult *r)
{
    return r == NULL ? 0 : r->rows;
}

static const struct cell *cell(const PGresult *r, int row, int column)
{
    assert_true(r != NULL && row >= 0 && row < r->rows && column >= 0 && column < r->columns);
    return &r->cells[row * r->columns + column];
}

char *PQgetvalue(const PGresult *r, int row, int column)
{
    return (char *)(uintptr_t)cell(r, row, column)->bytes;
}

int PQgetlength(const PGresult *r, int row, int column)
{
    return cell(r, row, column)->len;
}

char *PQcmdTuples(PGresult *r)
{
    return r->changed;
}

char *PQresultErrorField(const PGresult *r, int field)
{
    assert_true(field == PG_DIAG_SQLSTATE || field == PG_DIAG_MESSAGE_PRIMARY);
    if (r == NULL || r->state[0] == 0) {
        return NULL;
    }
    return (char *)(uintptr_t)(field == PG_DIAG_SQLSTATE ? r->state : r->message);
}

/* ---- what is written down ---- */

static uint32_t hash_of(const char *text)
{
    uint32_t h = 2166136261u;

    for (; *text != 0; text++) {
        h = (h ^ (unsigned char)*text) * 16777619u;
    }
    return h;
}

/* The program's version is another one after a release. */
static void mask(char *io, const char *version)
{
    for (char *at = strstr(io, version); at != NULL; at = strstr(at, version)) {
        memmove(at + 1, at + strlen(version), strlen(at + strlen(version)) + 1);
        *at = 'V';
    }
}

static char *masked(const char *text)
{
    char hex[2 * sizeof BATON_VERSION] = "";
    char *out = strdup(text);

    assert_non_null(out);
    for (size_t i = 0; BATON_VERSION[i] != 0; i++) {
        (void)snprintf(hex + 2 * i, 3, "%02x", (unsigned char)BATON_VERSION[i]);
    }
    mask(out, hex);
    mask(out, BATON_VERSION);
    return out;
}

static void write_text(const char *what, const char *sql)
{
    char *text;

    if (!fake_pq.writes_down) {
        return;
    }
    text = masked(sql);
    buf_printf(&fake_pq.log, "  %s %.*s", what, TEXT_SHOWN, text);
    if (strlen(text) > TEXT_SHOWN) {
        buf_printf(&fake_pq.log, "... %08" PRIx32, hash_of(text));
    }
    buf_add_byte(&fake_pq.log, '\n');
    free(text);
}

static void write_value(const char *v, int len)
{
    uint64_t be;

    if (v == NULL) {
        buf_add_cstr(&fake_pq.log, " NULL");
    } else if (len == (int)strlen(BATON_VERSION) && memcmp(v, BATON_VERSION, (size_t)len) == 0) {
        buf_add_cstr(&fake_pq.log, " V");
    } else if (len == (int)sizeof be) {
        memcpy(&be, v, sizeof be);
        buf_printf(&fake_pq.log, " %" PRId64, (int64_t)be64toh(be));
    } else {
        buf_add_cstr(&fake_pq.log, " '");
        for (int i = 0; i < len; i++) {
            buf_printf(&fake_pq.log, isprint((unsigned char)v[i]) ? "%c" : "\\%02x",
                       (unsigned char)v[i]);
        }
        buf_add_byte(&fake_pq.log, '\'');
    }
}

static void write_values(const char *name, const char *const *v, const int *lengths, int n)
{
    if (fake_pq.writes_down) {
        buf_printf(&fake_pq.log, "  %s", name);
        for (int i = 0; i < n; i++) {
            write_value(v[i], lengths[i]);
        }
        buf_add_byte(&fake_pq.log, '\n');
    }
}

/* ---- the server ---- */

/* The fault that the statement that is sent now has; NULL = none. */
static const struct fail *fault_of(const char *sql)
{
    if (fail_text.times > 0 && strstr(sql, fail_text.text) != NULL) {
        fail_text.times--;
        return &fail_text;
    }
    if (fail.times == 0 || --fail.in > 0) {
        return NULL;
    }
    fail.in = 1;
    fail.times--;
    fail.seen = true;
    return &fail;
}

static uint64_t number_of(const char *v)
{
    uint64_t be;

    memcpy(&be, v, sizeof be);
    return be64toh(be);
}

static PGresult *page_of(uint32_t rows, const char *const *v, int n)
{
    const uint64_t limit = number_of(v[n + LIMIT_AT]);
    const uint64_t offset = number_of(v[n - 1]);
    const uint64_t end = offset + limit < rows ? offset + limit : rows;
    PGresult *r = result(PGRES_TUPLES_OK, (int)(end - offset), 1);

    for (uint64_t i = offset; i < end; i++) {
        put_number(&r->cells[i - offset], i, true);
    }
    return r;
}

/* The n-th value of "owner = ... backend IN (-1, 7, 9)" is this connection's. */
static bool has_backend(const char *sql, int backend)
{
    char text[24];
    const char *list = strstr(sql, "backend IN (");

    (void)snprintf(text, sizeof text, ", %d", backend);
    list = list != NULL ? strstr(list, text) : NULL;
    return list != NULL && (list[strlen(text)] == ',' || list[strlen(text)] == ')');
}

static PGresult *take(PGconn *c, const char *sql)
{
    const char *mine = strstr(sql, "(epoch = ");
    char row[64];

    if (mine != NULL && strtoull(mine + 9, NULL, 10) != c->is.epoch &&
        !has_backend(sql, c->is.backend)) {
        return row_of(NULL, true);
    }
    c->is.epoch++;
    c->is.backend = c->backend;
    (void)snprintf(row, sizeof row, "%" PRIu64 "|%" PRIu64, c->is.epoch, c->is.pos);
    return row_of(row, true);
}

static PGresult *fence(PGconn *c, const char *const *v)
{
    if (number_of(v[0]) != c->is.epoch || number_of(v[1]) != c->is.pos) {
        return error("22012", "division by zero");
    }
    c->is.pos = number_of(v[2]);
    return row_of("1", true);
}

static PGresult *answer_to(PGconn *c, const char *sql, const char *const *v, int n, bool binary)
{
    char row[32];

    for (int i = rules_n; i-- > 0;) {
        const bool fits =
            n < 0 ? strstr(sql, rules[i].text) != NULL : strcmp(sql, rules[i].text) == 0;
        if (fits && rules[i].pages > 0) {
            return page_of(rules[i].pages, v, n);
        }
        if (fits) {
            return row_of(rules[i].row, binary);
        }
    }
    if (n < 0 && strstr(sql, "epoch = epoch + 1, owner") != NULL) {
        return take(c, sql);
    }
    if (n < 0 && strstr(sql, "key = 'turn'") != NULL) {
        (void)snprintf(row, sizeof row, "%" PRIu64, c->is.mark);
        return row_of(row, true);
    }
    if (n < 0) {
        return strstr(sql, "SELECT") != NULL || strncmp(sql, "SHOW", 4) == 0
                   ? row_of("0", binary)
                   : result(PGRES_COMMAND_OK, 0, 0);
    }
    return row_of(NULL, true);
}

static void control(PGconn *c, const char *sql)
{
    if (strcmp(sql, "BEGIN") == 0) {
        c->in_transaction = true;
    } else if (strcmp(sql, "ROLLBACK") == 0) {
        c->is = c->before;
        c->in_transaction = c->aborted = false;
    } else if (strcmp(sql, "COMMIT") == 0) {
        c->in_transaction = false;
    }
}

static PGresult *run_prepared(PGconn *c, const char *name, const char *const *v, const int *lengths,
                              int n)
{
    PGresult *r;
    int at = 0;

    while (at < c->prepared && strcmp(c->names[at], name) != 0) {
        at++;
    }
    if (at == c->prepared) {
        return error("26000", "no such prepared statement");
    }
    if (strcmp(name, "fence") == 0) {
        return fence(c, v);
    }
    if (strcmp(name, "take") == 0) {
        return take(c, "");
    }
    c->is.rows += c->writes_row[at] ? 1 : 0;
    if (strcmp(name, "unnest") == 0) { /* the length of an array is in its head */
        assert_true(lengths[0] > 16);
        c->is.rows += (unsigned char)v[0][15];
    }
    c->is.mark = strcmp(name, "turn") == 0 ? number_of(v[0]) : c->is.mark;
    r = answer_to(c, name, v, n, true);
    (void)snprintf(r->changed, sizeof r->changed, "1");
    return r;
}

/* ---- sending ---- */

static void put(PGconn *c, PGresult *r)
{
    assert_true(c->n + 2 <= QUEUE_MAX);
    c->queue[c->n++] = r;
    c->queue[c->n++] = NULL;
}

/* What the statement came to goes into the queue. False: it is not sent. */
static bool send(PGconn *c, const char *name, const char *sql, const char *const *v,
                 const int *lengths, int n)
{
    const struct fail *fault = fault_of(sql);

    if (c->bad || (fault != NULL && fault->fault == FAKE_PQ_UNSENT)) {
        (void)snprintf(c->error, sizeof c->error, c->bad ? "no connection" : "cannot be sent");
        return false;
    }
    if (!c->begun && !c->in_transaction) {
        c->before = c->is = fake_pq.stored;
    }
    c->begun = true;
    c->lost = c->lost || (fault != NULL && fault->fault == FAKE_PQ_LOST);
    c->unanswered = c->unanswered || (fault != NULL && fault->fault == FAKE_PQ_UNANSWERED);
    c->silent = c->silent || (fault != NULL && fault->fault == FAKE_PQ_SILENT);
    if (c->lost) {
        return true;
    }
    if (c->aborted && strcmp(sql, "ROLLBACK") != 0) {
        put(c, result(PGRES_PIPELINE_ABORTED, 0, 0));
        return true;
    }
    if (fault != NULL && fault->fault == FAKE_PQ_ERROR) {
        put(c, error(fault->state, "refused"));
        c->aborted = true;
        return true;
    }
    control(c, sql);
    put(c, name != NULL ? run_prepared(c, name, v, lengths, n) : answer_to(c, sql, v, -1, true));
    c->aborted = c->aborted || c->queue[c->n - 2]->status == PGRES_FATAL_ERROR;
    return true;
}

int PQsendQueryPrepared(PGconn *c, const char *name, int n, const char *const *v,
                        const int *lengths, const int *formats, int format)
{
    assert_int_equal(format, 1);
    for (int i = 0; i < n; i++) {
        assert_int_equal(formats[i], 1);
    }
    write_values(name, v, lengths, n);
    return send(c, name, name, v, lengths, n) ? 1 : 0;
}

int PQsendQueryParams(PGconn *c, const char *sql, int n, const Oid *types, const char *const *v,
                      const int *lengths, const int *formats, int format)
{
    (void)types;
    assert_int_equal(format, 1);
    write_text("text", sql);
    if (n > 0) {
        assert_int_equal(formats[0], 1);
        write_values("  with", v, lengths, n);
    }
    return send(c, NULL, sql, v, lengths, n) ? 1 : 0;
}

int PQsendPrepare(PGconn *c, const char *name, const char *sql, int n, const Oid *types)
{
    (void)types;
    assert_int_equal(n, 0);
    if (fake_pq.writes_prepared) {
        write_text(name, sql);
    }
    c->texts = c->texts * 31 + hash_of(sql) + hash_of(name);
    if (!send(c, NULL, "PREPARE", NULL, NULL, 0)) {
        return 0;
    }
    assert_true(c->prepared < PREPARED_MAX);
    c->writes_row[c->prepared] =
        strncmp(sql, "INSERT INTO rows(", 17) == 0 && strstr(sql, "unnest") == NULL;
    (void)snprintf(c->names[c->prepared++], NAME_MAX_LEN, "%s", name);
    return 1;
}

int PQpipelineSync(PGconn *c)
{
    if (c->bad) {
        return 0;
    }
    if (fake_pq.writes_down && c->texts > 0 && !fake_pq.writes_prepared) {
        buf_printf(&fake_pq.log, "  %d are prepared: %08" PRIx32 "\n", c->prepared, c->texts);
    }
    c->texts = 0;
    if (fake_pq.writes_down) {
        buf_add_cstr(&fake_pq.log, "  ;\n");
    }
    if (c->begun && !c->lost && !c->aborted && !c->in_transaction) {
        fake_pq.stored = c->is;
    }
    if (!c->in_transaction) {
        c->aborted = false;
    }
    c->begun = false;
    c->bad = c->lost || c->unanswered;
    put(c, fake_pq.no_sync ? NULL : result(PGRES_PIPELINE_SYNC, 0, 0));
    c->n -= fake_pq.no_sync ? 0 : 1;
    fake_pq.no_sync = false;
    c->synced = c->n;
    c->ready = fake_pq.now + fake_pq.latency;
    return 1;
}

int PQisBusy(PGconn *c)
{
    return !c->bad && (c->silent || c->at >= c->synced || fake_pq.now < c->ready) ? 1 : 0;
}

PGresult *PQgetResult(PGconn *c)
{
    PGresult *r;

    if (c->bad) {
        return NULL;
    }
    assert_true(c->at < c->synced);
    r = c->queue[c->at++];
    if (c->at == c->n) {
        c->at = c->n = c->synced = 0;
    }
    return r;
}

int PQflush(PGconn *c)
{
    return c->bad ? -1 : 0;
}

int PQsendFlushRequest(PGconn *c)
{
    (void)c;
    return 1;
}

int PQconsumeInput(PGconn *c)
{
    return c->bad ? 0 : 1;
}

/* ---- at once ---- */

static PGresult *at_once(PGconn *c, const char *sql)
{
    const struct fail *fault = fault_of(sql);
    PGresult *r;

    assert_false(c->pipeline);
    c->is = fake_pq.stored;
    if (fault != NULL) {
        c->bad = c->bad || fault->fault != FAKE_PQ_ERROR;
        (void)snprintf(c->error, sizeof c->error, "refused");
        return error(fault->state != NULL ? fault->state : "", "refused");
    }
    r = answer_to(c, sql, NULL, -1, false);
    (void)snprintf(r->changed, sizeof r->changed, "%d", r->rows);
    return r;
}

PGresult *PQexec(PGconn *c, const char *sql)
{
    write_text("exec", sql);
    return at_once(c, sql);
}

PGresult *PQexecParams(PGconn *c, const char *sql, int n, const Oid *types, const char *const *v,
                       const int *lengths, const int *formats, int format)
{
    assert_int_equal(format, 0);
    write_text("exec", sql);
    for (int i = 0; i < n; i++) {
        assert_int_equal(types[i], 17);
        assert_int_equal(formats[i], 1);
    }
    write_values("  with", v, lengths, n);
    return at_once(c, sql);
}

/* ---- connections ---- */

static PGconn *connect_with(const char *const *keys, const char *const *values, int expands)
{
    PGconn *c = calloc(1, sizeof *c);

    assert_non_null(c);
    fake_pq.left++;
    fake_pq.connections++;
    if (fake_pq.writes_down) {
        buf_printf(&fake_pq.log, "  connect at %" PRIu64 " %d", fake_pq.now - BEGAN, expands);
        for (int i = 0; keys[i] != NULL; i++) {
            buf_printf(&fake_pq.log, " %s=%s", keys[i], values[i]);
        }
        buf_add_byte(&fake_pq.log, '\n');
    }
    c->backend = (int)fake_pq.connections + 100;
    c->bad = fake_pq.refused > 0;
    fake_pq.refused -= c->bad ? 1 : 0;
    if (c->bad) {
        (void)snprintf(c->error, sizeof c->error, "\n connection \n\t refused, %d\n ", c->backend);
    }
    c->ready = fake_pq.now + fake_pq.latency;
    newest = c;
    return c;
}

PGconn *PQconnectdbParams(const char *const *keys, const char *const *values, int expands)
{
    return connect_with(keys, values, expands);
}

PGconn *PQconnectStartParams(const char *const *keys, const char *const *values, int expands)
{
    return connect_with(keys, values, expands);
}

PostgresPollingStatusType PQconnectPoll(PGconn *c)
{
    return c->bad ? PGRES_POLLING_FAILED : PGRES_POLLING_OK;
}

ConnStatusType PQstatus(const PGconn *c)
{
    return c == NULL || c->bad ? CONNECTION_BAD : CONNECTION_OK;
}

int PQsocket(const PGconn *c)
{
    return c->bad ? -1 : 3;
}

char *PQerrorMessage(const PGconn *c)
{
    return (char *)(uintptr_t)c->error;
}

int PQbackendPID(const PGconn *c)
{
    return c->backend;
}

int PQsetnonblocking(PGconn *c, int on)
{
    return c->bad || on != 1 ? -1 : 0;
}

int PQenterPipelineMode(PGconn *c)
{
    c->pipeline = true;
    return 1;
}

PQnoticeProcessor PQsetNoticeProcessor(PGconn *c, PQnoticeProcessor fn, void *self)
{
    (void)c;
    (void)self;
    return fn;
}

void PQfinish(PGconn *c)
{
    if (c == NULL) {
        return;
    }
    for (int i = c->at; i < c->n; i++) {
        PQclear(c->queue[i]);
    }
    newest = newest == c ? NULL : newest;
    free(c);
    fake_pq.left--;
}
