/* index: brings the database up to the folder. Each file is one transaction, so that what was done
 * before a cancel stays. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "agents/rag/rag.h"
#include "agents/sdk/input.h"

enum { VERSION = 1, SKIPPED_MAX = 1000, BATCH = 32, BINARY_SEEN = 8192 };

static const char SCHEMA[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE files(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL,"
    " changed INTEGER NOT NULL, inode INTEGER NOT NULL);"
    "CREATE TABLE chunks(id INTEGER PRIMARY KEY, file INTEGER NOT NULL REFERENCES files(id),"
    " first INTEGER NOT NULL, last INTEGER NOT NULL, text TEXT NOT NULL, vector BLOB);"
    "CREATE INDEX chunks_file ON chunks(file);"
    "CREATE INDEX chunks_bare ON chunks(id) WHERE vector IS NULL;"
    "CREATE VIRTUAL TABLE words USING fts5(text, content='chunks', content_rowid='id',"
    " tokenize='porter unicode61 remove_diacritics 2');";

enum bt_code rag_open(const struct rag *r, struct bt_step *step, bool may_make, struct store *ret,
                      struct bt_error *err)
{
    const struct store_form form = {.path = r->database,
                                    .version = VERSION,
                                    .schema = SCHEMA,
                                    .max_bytes = r->max_bytes,
                                    .may_make = may_make};
    enum bt_code code = store_open(ret, &form, step, err);

    return code != BT_NOT_FOUND
               ? code
               : err_set(err, BT_NOT_FOUND, "nothing is indexed yet: run the skill index first");
}

struct indexing {
    const struct rag *rag;
    struct bt_step *step;
    struct store store;
    sqlite3_stmt *find, *forget_words, *forget_chunks, *forget_file, *add_file, *add_chunk,
        *add_words;
    cJSON *skipped;
    uint64_t others; /* files that fit no glob */
    int64_t file;    /* that is being added */
    uint64_t chunks;
    uint32_t added, unchanged, removed, left_out;
};

static enum bt_code prepare(struct indexing *x, struct bt_error *err)
{
    const struct {
        sqlite3_stmt **st;
        const char *sql;
    } all[] = {
        {&x->find, "SELECT id, size, changed, inode FROM files WHERE path = ?1"},
        {&x->forget_words, "INSERT INTO words(words, rowid, text)"
                           " SELECT 'delete', id, text FROM chunks WHERE file = ?1"},
        {&x->forget_chunks, "DELETE FROM chunks WHERE file = ?1"},
        {&x->forget_file, "DELETE FROM files WHERE id = ?1"},
        {&x->add_file, "INSERT INTO files(path, size, changed, inode) VALUES (?1, ?2, ?3, ?4)"},
        {&x->add_chunk, "INSERT INTO chunks(file, first, last, text) VALUES (?1, ?2, ?3, ?4)"},
        {&x->add_words, "INSERT INTO words(rowid, text) VALUES (?1, ?2)"}};
    enum bt_code code = BT_OK;

    for (size_t i = 0; i < sizeof all / sizeof all[0] && code == BT_OK; i++) {
        code = store_prepare(&x->store, all[i].sql, all[i].st, err);
    }
    return code;
}

static void finish(struct indexing *x)
{
    (void)sqlite3_finalize(x->find);
    (void)sqlite3_finalize(x->forget_words);
    (void)sqlite3_finalize(x->forget_chunks);
    (void)sqlite3_finalize(x->forget_file);
    (void)sqlite3_finalize(x->add_file);
    (void)sqlite3_finalize(x->add_chunk);
    (void)sqlite3_finalize(x->add_words);
    store_close(&x->store);
    cJSON_Delete(x->skipped);
}

/* ---- one file ---- */

static enum bt_code forget(struct indexing *x, int64_t id, struct bt_error *err)
{
    enum bt_code code;

    (void)sqlite3_bind_int64(x->forget_words, 1, id);
    (void)sqlite3_bind_int64(x->forget_chunks, 1, id);
    (void)sqlite3_bind_int64(x->forget_file, 1, id);
    code = store_do(&x->store, x->forget_words, err);
    code = code == BT_OK ? store_do(&x->store, x->forget_chunks, err) : code;
    x->chunks -= code == BT_OK ? (uint64_t)sqlite3_changes(x->store.sql) : 0;
    return code == BT_OK ? store_do(&x->store, x->forget_file, err) : code;
}

static enum bt_code add_chunk(void *self, struct str text, uint32_t first, uint32_t last,
                              struct bt_error *err)
{
    struct indexing *x = self;
    enum bt_code code;

    if (x->chunks >= RAG_CHUNKS_MAX) {
        return err_set(
            err, BT_LIMIT,
            "the folder has more than %d pieces of text: name fewer files by the setting "
            "include",
            RAG_CHUNKS_MAX);
    }
    x->chunks++;
    (void)sqlite3_bind_int64(x->add_chunk, 1, x->file);
    (void)sqlite3_bind_int64(x->add_chunk, 2, first);
    (void)sqlite3_bind_int64(x->add_chunk, 3, last);
    store_bind(x->add_chunk, 4, text);
    code = store_do(&x->store, x->add_chunk, err);
    (void)sqlite3_bind_int64(x->add_words, 1, sqlite3_last_insert_rowid(x->store.sql));
    store_bind(x->add_words, 2, text);
    return code == BT_OK ? store_do(&x->store, x->add_words, err) : code;
}

static void skip(struct indexing *x, const char *path, const char *reason)
{
    cJSON *one;

    x->left_out++;
    if (cJSON_GetArraySize(x->skipped) < SKIPPED_MAX) {
        struct buf name;
        buf_init(&name, (size_t)CONFINE_PATH_MAX * 3 + 3);
        (void)buf_add_repaired(&name, str_from(path));
        one = name.bad == BT_OK ? cJSON_CreateObject() : NULL;
        (void)cJSON_AddStringToObject(one, "file", buf_cstr(&name));
        (void)cJSON_AddStringToObject(one, "reason", reason);
        (void)input_add(x->skipped, NULL, one);
        buf_done(&name);
    }
}

/* The text of a file; false: it is skipped, with the reason. */
static bool read_text(struct indexing *x, const struct rag_file *f, struct buf *text)
{
    struct bt_error why;
    struct buf bytes;
    bool ok = true;

    if (f->size > x->rag->max_file_bytes) {
        skip(x, f->path, "has more bytes than the setting maxFileBytes");
        return false;
    }
    buf_init(&bytes, x->rag->max_file_bytes);
    if (rag_read(x->rag, f->path, &bytes, &why) != BT_OK) {
        skip(x, f->path, why.msg);
        ok = false;
    } else if (bytes.len > 0 &&
               memchr(bytes.at, 0, bytes.len < BINARY_SEEN ? bytes.len : BINARY_SEEN) != NULL) {
        skip(x, f->path, "is no text: it has zero bytes");
        ok = false;
    } else {
        (void)buf_add_repaired(text, buf_str(&bytes));
    }
    buf_done(&bytes);
    return ok;
}

static enum bt_code write_file(struct indexing *x, const struct rag_file *f, int64_t old,
                               const struct buf *text, struct bt_error *err)
{
    enum bt_code code = store_begin(&x->store, err);

    code = code == BT_OK && old != 0 ? forget(x, old, err) : code;
    if (code == BT_OK && text != NULL) {
        store_bind(x->add_file, 1, str_from(f->path));
        (void)sqlite3_bind_int64(x->add_file, 2, (int64_t)f->size);
        (void)sqlite3_bind_int64(x->add_file, 3, f->changed);
        (void)sqlite3_bind_int64(x->add_file, 4, (int64_t)f->inode);
        code = store_do(&x->store, x->add_file, err);
        x->file = sqlite3_last_insert_rowid(x->store.sql);
        code = code == BT_OK ? rag_chunks(buf_str(text), add_chunk, x, err) : code;
    }
    if (code == BT_OK) {
        return store_commit(&x->store, err);
    }
    store_rollback(&x->store);
    return code;
}

static enum bt_code take_file(struct indexing *x, const struct rag_file *f, struct bt_error *err)
{
    struct buf text;
    int64_t old = 0;
    bool same;
    bool row;
    enum bt_code code;

    store_bind(x->find, 1, str_from(f->path));
    code = store_next(&x->store, x->find, &row, err);
    old = row ? sqlite3_column_int64(x->find, 0) : 0;
    same = row && sqlite3_column_int64(x->find, 1) == (int64_t)f->size &&
           sqlite3_column_int64(x->find, 2) == f->changed &&
           sqlite3_column_int64(x->find, 3) == (int64_t)f->inode;
    (void)sqlite3_reset(x->find);
    if (code != BT_OK || same) {
        x->unchanged += code == BT_OK ? 1 : 0;
        return code;
    }
    buf_init(&text, x->rag->max_file_bytes * 3 + 3);
    if (read_text(x, f, &text)) {
        code = write_file(x, f, old, &text, err);
        x->added += code == BT_OK ? 1 : 0;
    } else if (old != 0) {
        code = write_file(x, f, old, NULL, err); /* what it was is gone */
        x->removed += code == BT_OK ? 1 : 0;
    }
    buf_done(&text);
    return code;
}

/* ---- files that are gone ---- */

static bool is_there(const struct rag_files *files, const char *path)
{
    size_t low = 0;
    size_t high = files->n;

    while (low < high) {
        const size_t middle = (low + high) / 2;
        const int order = strcmp(files->at[middle].path, path);
        if (order == 0) {
            return true;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

static enum bt_code remove_gone(struct indexing *x, const struct rag_files *files,
                                struct bt_error *err)
{
    sqlite3_stmt *all;
    bool row = false;
    enum bt_code code = store_begin(&x->store, err);

    code = code == BT_OK ? store_prepare(&x->store, "SELECT id, path FROM files", &all, err) : code;
    if (code != BT_OK) {
        store_rollback(&x->store);
        return code;
    }
    while ((code = store_next(&x->store, all, &row, err)) == BT_OK && row) {
        if (!is_there(files, store_text(all, 1).ptr)) {
            code = forget(x, sqlite3_column_int64(all, 0), err);
            x->removed++;
        }
        if (code != BT_OK) {
            break;
        }
    }
    (void)sqlite3_finalize(all);
    if (code == BT_OK) {
        return store_commit(&x->store, err);
    }
    store_rollback(&x->store);
    return code;
}

/* ---- vectors ---- */

/* Vectors of another model cannot be compared: they are made again. */
static enum bt_code check_model(struct indexing *x, struct bt_error *err)
{
    sqlite3_stmt *st;
    bool row = false;
    bool same;
    enum bt_code code =
        store_prepare(&x->store, "SELECT value FROM meta WHERE key = 'model'", &st, err);

    code = code == BT_OK ? store_next(&x->store, st, &row, err) : code;
    same = row && str_is(store_text(st, 0), x->rag->embeddings.model);
    (void)sqlite3_finalize(st);
    if (code != BT_OK || same) {
        return code;
    }
    code = store_begin(&x->store, err);
    code =
        code == BT_OK
            ? store_run(&x->store, "UPDATE chunks SET vector = NULL WHERE vector IS NOT NULL", err)
            : code;
    code = code == BT_OK
               ? store_prepare(&x->store,
                               "INSERT OR REPLACE INTO meta(key, value) VALUES ('model', ?1)", &st,
                               err)
               : code;
    if (code == BT_OK) {
        store_bind(st, 1, str_from(x->rag->embeddings.model));
        code = store_do(&x->store, st, err);
        (void)sqlite3_finalize(st);
    }
    if (code == BT_OK) {
        return store_commit(&x->store, err);
    }
    store_rollback(&x->store);
    return code;
}

struct batch {
    int64_t id[BATCH];
    struct str text[BATCH];
    struct arena texts;
    size_t n;
};

static enum bt_code next_batch(struct indexing *x, struct batch *b, struct bt_error *err)
{
    sqlite3_stmt *st;
    bool row = false;
    enum bt_code code = store_prepare(
        &x->store, "SELECT id, text FROM chunks WHERE vector IS NULL ORDER BY id LIMIT 32", &st,
        err);

    b->n = 0;
    while (code == BT_OK && (code = store_next(&x->store, st, &row, err)) == BT_OK && row) {
        b->id[b->n] = sqlite3_column_int64(st, 0);
        b->text[b->n] = arena_str(&b->texts, store_text(st, 1));
        if (b->text[b->n].ptr == NULL) {
            code = err_set(err, BT_NOMEM, "out of memory for texts");
            break;
        }
        b->n++;
    }
    (void)sqlite3_finalize(st);
    return code;
}

static enum bt_code store_vectors(struct indexing *x, const struct batch *b, const float *vectors,
                                  uint32_t dimensions, struct bt_error *err)
{
    const int bytes = (int)(dimensions * sizeof(float));
    sqlite3_stmt *st = NULL;
    enum bt_code code = store_begin(&x->store, err);

    code = code == BT_OK
               ? store_prepare(&x->store, "UPDATE chunks SET vector = ?2 WHERE id = ?1", &st, err)
               : code;
    for (size_t i = 0; i < b->n && code == BT_OK; i++) {
        (void)sqlite3_bind_int64(st, 1, b->id[i]);
        (void)sqlite3_bind_blob(st, 2, vectors + i * dimensions, bytes, SQLITE_STATIC);
        code = store_do(&x->store, st, err);
    }
    (void)sqlite3_finalize(st);
    if (code == BT_OK) {
        return store_commit(&x->store, err);
    }
    store_rollback(&x->store);
    return code;
}

static enum bt_code embed_all(struct indexing *x, uint64_t *ret_n, struct bt_error *err)
{
    struct batch b = {.n = BATCH};
    enum bt_code code = check_model(x, err);

    *ret_n = 0;
    while (code == BT_OK) {
        float *vectors = NULL;
        uint32_t dimensions = 0;
        b.texts = (struct arena){.max = (size_t)BATCH * (RAG_CHUNK_MAX + 64)};
        code = next_batch(x, &b, err);
        if (code == BT_OK && b.n > 0) {
            code = rag_embed(x->rag, x->step, b.text, b.n, &vectors, &dimensions, err);
            code = code == BT_OK ? store_vectors(x, &b, vectors, dimensions, err) : code;
            *ret_n += code == BT_OK ? b.n : 0;
            bt_step_progress(x->step, -1.0, "vectors");
        }
        free(vectors);
        arena_done(&b.texts);
        if (b.n == 0) {
            break;
        }
    }
    return code;
}

/* ---- the skill ---- */

static enum bt_code index_all(struct indexing *x, const struct rag_files *files,
                              struct bt_error *err)
{
    int64_t n = 0;
    enum bt_code code = prepare(x, err);

    code = code == BT_OK ? store_number(&x->store, "SELECT count(*) FROM chunks", &n, err) : code;
    x->chunks = (uint64_t)n;
    code = code == BT_OK ? remove_gone(x, files, err) : code;
    for (size_t i = 0; i < files->n && code == BT_OK; i++) {
        if (bt_step_cancelled(x->step)) {
            return err_set(err, BT_CANCELLED,
                           "cancelled after %zu of %zu files; what was indexed stays", i, files->n);
        }
        if (i % 50 == 0) {
            bt_step_progress(x->step, 100.0 * (double)i / (double)files->n, files->at[i].path);
        }
        code = take_file(x, &files->at[i], err);
    }
    return code;
}

static enum bt_code reply(struct indexing *x, uint64_t embedded, struct bt_error *err)
{
    cJSON *data;
    char text[384];
    int64_t files = 0;
    int64_t chunks = 0;
    enum bt_code code = store_number(&x->store, "SELECT count(*) FROM files", &files, err);

    code =
        code == BT_OK ? store_number(&x->store, "SELECT count(*) FROM chunks", &chunks, err) : code;
    if (code != BT_OK) {
        return code;
    }
    data = cJSON_CreateObject();
    (void)cJSON_AddNumberToObject(data, "files", (double)files);
    (void)cJSON_AddNumberToObject(data, "chunks", (double)chunks);
    (void)cJSON_AddNumberToObject(data, "indexed", x->added);
    (void)cJSON_AddNumberToObject(data, "unchanged", x->unchanged);
    (void)cJSON_AddNumberToObject(data, "removed", x->removed);
    (void)cJSON_AddNumberToObject(data, "skippedCount", x->left_out);
    (void)cJSON_AddNumberToObject(data, "otherCount", (double)x->others);
    (void)input_add(data, "skipped", x->skipped);
    x->skipped = NULL;
    if (x->rag->embeddings.url != NULL) {
        (void)cJSON_AddNumberToObject(data, "embedded", (double)embedded);
    }
    (void)snprintf(text, sizeof text,
                   "%lld files in %lld pieces: %u indexed, %u unchanged, %u removed, %u skipped",
                   (long long)files, (long long)chunks, x->added, x->unchanged, x->removed,
                   x->left_out);
    if (x->others > 0) {
        const size_t n = strlen(text);
        (void)snprintf(text + n, sizeof text - n,
                       "; %llu of other kinds than the setting include names, such as %s",
                       (unsigned long long)x->others, x->rag->include[0]);
    }
    input_reply(x->step, data, text);
    return BT_OK;
}

void rag_index(struct bt_step *step, void *self)
{
    struct indexing x = {.rag = self, .step = step, .skipped = cJSON_CreateArray()};
    struct rag_files files;
    uint64_t embedded = 0;
    struct bt_error err;
    enum bt_code code = rag_walk(self, step, &files, &err);

    x.others = files.others;
    code = code == BT_OK ? rag_open(self, step, true, &x.store, &err) : code;
    code = code == BT_OK ? index_all(&x, &files, &err) : code;
    if (code == BT_OK && x.rag->embeddings.url != NULL) {
        code = embed_all(&x, &embedded, &err);
    }
    code = code == BT_OK ? reply(&x, embedded, &err) : code;
    if (code != BT_OK) {
        bt_step_fail_error(step, &err);
    }
    finish(&x);
    rag_files_done(&files);
}
