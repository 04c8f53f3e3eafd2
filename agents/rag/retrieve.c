/* retrieve: the pieces that fit a question best, by their words and, when vectors are there, by
 * their meaning. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "agents/rag/rag.h"
#include "agents/sdk/input.h"

enum {
    LIMIT_DEFAULT = 5,
    LIMIT_MOST = 50,
    POOL = 100,     /* of each ranking, before they are joined */
    RANK_BASE = 60, /* Cormack et al., reciprocal rank fusion (2009) */
    WORDS_MAX = 64,
    QUERY_BYTES = 16 * 1024
};

struct hit {
    int64_t id;
    double score;   /* the joined one */
    double words;   /* -bm25, or 0 */
    double meaning; /* the cosine, or 0 */
};

struct hits {
    struct hit at[POOL * 2];
    size_t n;
};

static struct hit *hit_of(struct hits *h, int64_t id)
{
    for (size_t i = 0; i < h->n; i++) {
        if (h->at[i].id == id) {
            return &h->at[i];
        }
    }
    h->at[h->n] = (struct hit){.id = id};
    return &h->at[h->n++];
}

/* ---- by words ---- */

static bool in_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (unsigned char)c >= 0x80;
}

/* Each word of the question in quotes, joined by OR: nothing in it is syntax of FTS5. */
static enum bt_code make_match(const char *query, struct buf *out, struct bt_error *err)
{
    uint32_t n = 0;

    for (const char *p = query; *p != 0;) {
        size_t len = 0;
        while (in_word(p[len])) {
            len++;
        }
        if (len > 0) {
            if (n == WORDS_MAX) {
                return err_set(err, BT_LIMIT, "query: more than %d words", WORDS_MAX);
            }
            buf_printf(out, "%s\"%.*s\"", n > 0 ? " OR " : "", (int)len, p);
            n++;
        }
        p += len > 0 ? len : 1;
    }
    return n > 0 ? buf_check(out, err) : err_set(err, BT_INVALID, "query: has no words");
}

static enum bt_code by_words(struct store *s, const char *match, const char *files,
                             struct hits *hits, int64_t *ret_matches, struct bt_error *err)
{
    sqlite3_stmt *st;
    bool row = false;
    int rank = 0;
    enum bt_code code = store_prepare(
        s,
        "SELECT words.rowid, bm25(words) FROM words JOIN chunks c ON c.id = words.rowid"
        " JOIN files f ON f.id = c.file WHERE words MATCH ?1 AND f.path GLOB ?2"
        " ORDER BY bm25(words), words.rowid LIMIT 100",
        &st, err);

    if (code != BT_OK) {
        return code;
    }
    store_bind(st, 1, str_from(match));
    store_bind(st, 2, str_from(files));
    while ((code = store_next(s, st, &row, err)) == BT_OK && row) {
        struct hit *h = hit_of(hits, sqlite3_column_int64(st, 0));
        h->words = -sqlite3_column_double(st, 1);
        h->score += 1.0 / (RANK_BASE + ++rank);
    }
    (void)sqlite3_finalize(st);
    if (code != BT_OK) {
        return code;
    }
    code = store_prepare(s,
                         "SELECT count(*) FROM words JOIN chunks c ON c.id = words.rowid"
                         " JOIN files f ON f.id = c.file WHERE words MATCH ?1 AND f.path GLOB ?2",
                         &st, err);
    if (code == BT_OK) {
        store_bind(st, 1, str_from(match));
        store_bind(st, 2, str_from(files));
        code = store_next(s, st, &row, err);
        *ret_matches = row ? sqlite3_column_int64(st, 0) : 0;
    }
    (void)sqlite3_finalize(st);
    return code;
}

/* ---- by meaning ---- */

static double product(const float *a, const float *b, uint32_t n)
{
    double sum = 0.0;

    for (uint32_t i = 0; i < n; i++) {
        sum += (double)a[i] * (double)b[i];
    }
    return sum;
}

struct near {
    int64_t id;
    double cosine;
};

/* The best POOL, sorted by falling cosine. */
static void offer(struct near *best, size_t *n, struct near one)
{
    size_t at = *n;

    if (*n == POOL && one.cosine <= best[POOL - 1].cosine) {
        return;
    }
    if (*n < POOL) {
        (*n)++;
    } else {
        at = POOL - 1;
    }
    while (at > 0 && best[at - 1].cosine < one.cosine) {
        best[at] = best[at - 1];
        at--;
    }
    best[at] = one;
}

static enum bt_code by_meaning(struct store *s, const float *question, uint32_t dimensions,
                               const char *files, struct hits *hits, struct bt_error *err)
{
    struct near best[POOL];
    size_t n = 0;
    sqlite3_stmt *st;
    bool row = false;
    float *vector = calloc(dimensions, sizeof *vector);
    enum bt_code code =
        vector == NULL
            ? err_set(err, BT_NOMEM, "out of memory for a vector")
            : store_prepare(s,
                            "SELECT c.id, c.vector FROM chunks c JOIN files f ON f.id = c.file"
                            " WHERE c.vector IS NOT NULL AND f.path GLOB ?1",
                            &st, err);

    if (code != BT_OK) {
        free(vector);
        return code;
    }
    store_bind(st, 1, str_from(files));
    while ((code = store_next(s, st, &row, err)) == BT_OK && row) {
        if ((size_t)sqlite3_column_bytes(st, 1) == dimensions * sizeof(float)) {
            memcpy(vector, sqlite3_column_blob(st, 1), dimensions * sizeof(float));
            offer(
                best, &n,
                (struct near){sqlite3_column_int64(st, 0), product(question, vector, dimensions)});
        }
    }
    (void)sqlite3_finalize(st);
    free(vector);
    for (size_t i = 0; i < n && code == BT_OK; i++) {
        struct hit *h = hit_of(hits, best[i].id);
        h->meaning = best[i].cosine;
        h->score += 1.0 / (double)(RANK_BASE + i + 1);
    }
    return code;
}

/* ---- the answer ---- */

static int by_score(const void *a, const void *b)
{
    const struct hit *x = a;
    const struct hit *y = b;

    if (x->score != y->score) {
        return x->score < y->score ? 1 : -1;
    }
    return x->words != y->words ? (x->words < y->words ? 1 : -1)
                                : (x->id > y->id) - (x->id < y->id);
}

static enum bt_code put_hit(struct store *s, sqlite3_stmt *st, const struct hit *h, size_t number,
                            cJSON *results, struct buf *text, struct bt_error *err)
{
    cJSON *one;
    bool row = false;
    enum bt_code code;

    (void)sqlite3_bind_int64(st, 1, h->id);
    code = store_next(s, st, &row, err);
    if (code == BT_OK && row) {
        const struct str body = store_text(st, 3);
        struct buf name;
        struct buf body_text;
        buf_init(&name, (size_t)CONFINE_PATH_MAX * 3 + 3);
        buf_init(&body_text, RAG_CHUNK_MAX * 4);
        (void)buf_add_repaired(&name, store_text(st, 0));
        (void)buf_add_repaired(&body_text, str_trimmed(body));
        code = buf_check(&name, err);
        code = code == BT_OK ? buf_check(&body_text, err) : code;
        one = cJSON_CreateObject();
        (void)cJSON_AddStringToObject(one, "file", buf_cstr(&name));
        (void)cJSON_AddNumberToObject(one, "firstLine", sqlite3_column_int(st, 1));
        (void)cJSON_AddNumberToObject(one, "lastLine", sqlite3_column_int(st, 2));
        (void)cJSON_AddNumberToObject(one, "score", round(h->score * 1e6) / 1e6);
        (void)cJSON_AddNumberToObject(one, "words", round(h->words * 1e6) / 1e6);
        if (h->meaning != 0.0) {
            (void)cJSON_AddNumberToObject(one, "meaning", round(h->meaning * 1e6) / 1e6);
        }
        (void)cJSON_AddStringToObject(one, "text", buf_cstr(&body_text));
        (void)input_add(results, NULL, one);
        buf_printf(text, "[%zu] %s:%d-%d\n", number, buf_cstr(&name), sqlite3_column_int(st, 1),
                   sqlite3_column_int(st, 2));
        buf_add_str(text, buf_str(&body_text));
        buf_add_cstr(text, "\n\n");
        buf_done(&name);
        buf_done(&body_text);
    }
    (void)sqlite3_reset(st);
    return code;
}

static enum bt_code answer(struct bt_step *step, struct store *s, struct hits *hits, size_t limit,
                           int64_t matches, const char *query, struct bt_error *err)
{
    cJSON *data = cJSON_CreateObject();
    cJSON *results;
    struct buf text;
    sqlite3_stmt *st = NULL;
    enum bt_code code = store_prepare(s,
                                      "SELECT f.path, c.first, c.last, c.text FROM chunks c"
                                      " JOIN files f ON f.id = c.file WHERE c.id = ?1",
                                      &st, err);

    buf_init(&text, (size_t)LIMIT_MOST * (RAG_CHUNK_MAX * 4 + CONFINE_PATH_MAX * 3));
    (void)cJSON_AddStringToObject(data, "query", query);
    (void)cJSON_AddNumberToObject(data, "matches", (double)matches);
    results = cJSON_AddArrayToObject(data, "results");
    qsort(hits->at, hits->n, sizeof hits->at[0], by_score);
    for (size_t i = 0; i < hits->n && i < limit && code == BT_OK; i++) {
        code = put_hit(s, st, &hits->at[i], i + 1, results, &text, err);
    }
    (void)sqlite3_finalize(st);
    while (text.len > 0 && text.at[text.len - 1] == '\n') {
        buf_truncate(&text, text.len - 1);
    }
    if (code == BT_OK) {
        if (hits->n == 0) {
            buf_add_cstr(&text, "nothing fits the question");
        }
        input_reply_buf(step, data, &text);
    } else {
        cJSON_Delete(data);
    }
    buf_done(&text);
    return code;
}

/* Vectors of another model cannot be compared with this one's. */
static enum bt_code has_vectors(struct store *s, const char *model, bool *ret, struct bt_error *err)
{
    sqlite3_stmt *st;
    bool row = false;
    enum bt_code code = store_prepare(s,
                                      "SELECT 1 FROM meta WHERE key = 'model' AND value = ?1 AND"
                                      " EXISTS (SELECT 1 FROM chunks WHERE vector IS NOT NULL)",
                                      &st, err);

    if (code == BT_OK) {
        store_bind(st, 1, str_from(model));
        code = store_next(s, st, &row, err);
    }
    (void)sqlite3_finalize(st);
    *ret = row;
    return code;
}

static enum bt_code search(const struct rag *r, struct bt_step *step, struct store *s,
                           struct bt_error *err)
{
    const char *query = input_text(step, "query");
    const char *files = bt_step_param_string(step, "files", "*");
    const double limit = bt_step_param_number(step, "limit", LIMIT_DEFAULT);
    struct hits hits = {.n = 0};
    int64_t matches = 0;
    bool vectors = false;
    struct buf match;
    float *question = NULL;
    uint32_t dimensions = 0;
    enum bt_code code;

    query = query != NULL ? query : bt_step_task(step);
    if (!(limit >= 1.0 && limit <= LIMIT_MOST)) {
        return err_set(err, BT_INVALID, "limit: expected a number from 1 to %d", LIMIT_MOST);
    }
    buf_init(&match, QUERY_BYTES * 2);
    code = strlen(query) > QUERY_BYTES ? err_set(err, BT_LIMIT, "query: over %d bytes", QUERY_BYTES)
                                       : make_match(query, &match, err);
    code = code == BT_OK ? by_words(s, buf_cstr(&match), files, &hits, &matches, err) : code;
    if (code == BT_OK && r->embeddings.url != NULL) {
        code = has_vectors(s, r->embeddings.model, &vectors, err);
    }
    if (code == BT_OK && vectors) {
        const struct str text = str_from(query);
        code = rag_embed(r, step, &text, 1, &question, &dimensions, err);
        code = code == BT_OK ? by_meaning(s, question, dimensions, files, &hits, err) : code;
    }
    code = code == BT_OK ? answer(step, s, &hits, (size_t)limit, matches, query, err) : code;
    free(question);
    buf_done(&match);
    return code;
}

void rag_retrieve(struct bt_step *step, void *self)
{
    struct store store;
    struct bt_error err;
    enum bt_code code = rag_open(self, step, false, &store, &err);

    code = code == BT_OK ? search(self, step, &store, &err) : code;
    if (code != BT_OK) {
        bt_step_fail_error(step, &err);
    }
    store_close(&store);
}
