/* The index follows its folder: files, pieces, caps, vectors, settings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/heap.h"
#include "tests/unit/agents/rag_world.h"

static struct bt_error err;

static void counts(const char *reply, int indexed, int unchanged, int removed, int skipped)
{
    char want[128];

    (void)snprintf(want, sizeof want, "'indexed':%d,'unchanged':%d,'removed':%d,'skippedCount':%d,",
                   indexed, unchanged, removed, skipped);
    rag_says(reply, want);
}

/* ---- files ---- */

static void the_index_follows_its_folder(void **state)
{
    const char *reply;

    (void)state;
    rag_use("");
    reply = rag_do("index", "{}");
    counts(reply, 0, 0, 0, 0);
    rag_says(reply, "'text':'0 files in 0 pieces: 0 indexed, 0 unchanged, 0 removed, 0 skipped'");
    rag_text("a.md", "alpha\n");
    rag_text("sub/deep/b.txt", "beta\n");
    rag_text("sub/.hidden/c.md", "gamma\n");
    rag_text(".d.md", "delta\n");
    rag_text("e.log", "epsilon\n");
    rag_text("sub/f.bin", "zeta\n");
    reply = rag_do("index", "{}");
    counts(reply, 2, 0, 0, 0);
    rag_says(reply, "'files':2,'chunks':2,");
    rag_says(reply, "'otherCount':2");
    rag_says(reply, "'text':'2 files in 2 pieces: 2 indexed, 0 unchanged, 0 removed, 0 skipped; 2 "
                    "of other kinds "
                    "than the setting include names, such as *.md'");
    counts(rag_do("index", "{}"), 0, 2, 0, 0);
    rag_text("a.md", "alphabet\n"); /* another size */
    rag_remove("sub/deep/b.txt");
    rag_text("new.rst", "eta\n");
    counts(rag_do("index", "{}"), 2, 0, 1, 0);
    assert_int_equal(rag_count("SELECT count(*) FROM files"), 2);
    assert_int_equal(rag_count("SELECT count(*) FROM chunks"), 2);
    assert_int_equal(rag_count("SELECT count(*) FROM words WHERE words MATCH 'beta'"), 0);
    assert_int_equal(rag_count("SELECT count(*) FROM words WHERE words MATCH 'alphabet'"), 1);
    rag_sql("INSERT INTO words(words) VALUES('integrity-check')");
}

static void a_file_is_the_same_by_size_time_and_inode(void **state)
{
    char path[128];
    char other[128];

    (void)state;
    rag_use("");
    rag_text("a.md", "one\n");
    counts(rag_do("index", "{}"), 1, 0, 0, 0);
    rag_sql("UPDATE files SET size = size + 1");
    counts(rag_do("index", "{}"), 1, 0, 0, 0);
    rag_sql("UPDATE files SET changed = changed + 1");
    counts(rag_do("index", "{}"), 1, 0, 0, 0);
    rag_sql("UPDATE files SET inode = inode + 1");
    counts(rag_do("index", "{}"), 1, 0, 0, 0);
    counts(rag_do("index", "{}"), 0, 1, 0, 0);
    (void)snprintf(path, sizeof path, "%s/a.md", rag_folder());
    (void)snprintf(other, sizeof other, "%s/b.md", rag_folder());
    assert_int_equal(rename(path, other), 0);
    counts(rag_do("index", "{}"), 1, 0, 1, 0); /* another name is another file */
}

static void links_and_the_supervisors_files_are_left_out(void **state)
{
    char path[128];

    (void)state;
    rag_use("");
    rag_text("open.md", "plain\n");
    rag_text("state/token.md", "secret\n");
    (void)snprintf(path, sizeof path, "%s/link.md", rag_folder());
    assert_int_equal(symlink("/etc/hostname", path), 0);
    (void)snprintf(path, sizeof path, "%s/pipe.md", rag_folder());
    assert_int_equal(mkfifo(path, 0600), 0);
    (void)snprintf(path, sizeof path, "%s/state", rag_folder());
    assert_int_equal(setenv("BATON_STATE", path, 1), 0);
    counts(rag_do("index", "{}"), 1, 0, 0, 0);
    assert_int_equal(unsetenv("BATON_STATE"), 0);
    assert_int_equal(rag_count("SELECT count(*) FROM words WHERE words MATCH 'secret'"), 0);
}

static void what_is_no_text_is_named(void **state)
{
    static char zeros[8300];
    const char *reply;

    (void)state;
    rag_use(",'maxFileBytes':8200");
    memset(zeros, 'x', sizeof zeros);
    zeros[8191] = 0;
    rag_write("in.md", zeros, 8192);
    zeros[8191] = 'x';
    zeros[8192] = 0;
    rag_write("behind.md", zeros, 8193); /* only the first 8 KiB are looked at */
    zeros[8192] = 'x';
    rag_write("most.md", zeros, 8200);
    rag_write("over.md", zeros, 8201);
    rag_write("latin.md", "caf\xe9 word\n", 10);
    rag_write("empty.md", "", 0);
    reply = rag_do("index", "{}");
    counts(reply, 4, 0, 0, 2);
    rag_says(
        reply,
        "'skipped':[{'file':'in.md','reason':'is no text: it has zero bytes'},{'file':'over.md',"
        "'reason':'has more bytes than the setting maxFileBytes'}]");
    assert_int_equal(rag_count("SELECT count(*) FROM words WHERE words MATCH 'word'"), 1);
    rag_write("most.md", zeros, 8201);
    counts(rag_do("index", "{}"), 0, 3, 1, 3); /* what it was is gone */
    counts(rag_do("index", "{}"), 0, 3, 0, 3);
}

static void a_name_that_is_no_text_is_repaired_in_the_answer(void **state)
{
    (void)state;
    rag_use("");
    rag_write("\xff.md", "\0", 1);
    rag_says(rag_do("index", "{}"), "'skipped':[{'file':'\xef\xbf\xbd.md','reason'");
    counts(rag_do("index", "{}"), 0, 0, 0, 1);
}

static void folders_are_at_most_32_deep(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        char name[256] = "";
        rag_use("");
        for (int i = 0; i < RAG_DEPTH_MAX + more; i++) {
            (void)snprintf(name + strlen(name), 3, "d/");
        }
        (void)snprintf(name + strlen(name), 8, "f.md");
        rag_text(name, "deep\n");
        if (more == 0) {
            counts(rag_do("index", "{}"), 1, 0, 0, 0);
        } else {
            rag_says(rag_do("index", "{}"), ": folders are more than 32 deep");
        }
    }
}

static void there_are_at_most_so_many_files(void **state)
{
    const char *reply;

    (void)state;
    rag_use(",'maxFiles':70");
    for (int i = 0; i < 71; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "f%d.md", i);
        if (i == 70) {
            counts(rag_do("index", "{}"), 70, 0, 0, 0);
        }
        rag_text(name, "word\n");
    }
    reply = rag_do("index", "{}");
    rag_says(
        reply,
        "the folder has more than 70 files that fit: name fewer by the setting include, or raise");
    rag_says(reply, "'outcome':'failed'");
    assert_int_equal(rag_count("SELECT count(*) FROM files"), 70); /* what was indexed stays */
}

static void a_cancel_keeps_what_was_indexed(void **state)
{
    struct bt_step *step = steps_make("index", "{}");
    const char *reply;

    (void)state;
    rag_use("");
    rag_text("a.md", "one\n");
    atomic_store(&step->cancelled, true);
    reply = steps_run(step, rag_index, rag_used());
    rag_says(reply, "'class':'CANCELLED'");
    rag_says(reply, "cancelled while the folder was read");
}

/* ---- pieces ---- */

#define FAKE                                                                                       \
    "INSERT INTO chunks(file, first, last, text) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "      \
    "SELECT i+1 "                                                                                  \
    "FROM n LIMIT %d) SELECT (SELECT id FROM files WHERE path = '%s'), 1, 1, '' FROM n"

static void there_are_at_most_200000_pieces(void **state)
{
    char sql[512];

    (void)state;
    rag_use("");
    rag_text("many.md", "many\n");
    counts(rag_do("index", "{}"), 1, 0, 0, 0);
    (void)snprintf(sql, sizeof sql, FAKE, RAG_CHUNKS_MAX - 2, "many.md");
    rag_sql(sql);
    rag_sql("INSERT INTO words(rowid, text) SELECT id, text FROM chunks WHERE text = ''");
    rag_text("one.md", "one\n");
    counts(rag_do("index", "{}"), 1, 1, 0, 0); /* the last one that there may be */
    rag_text("two.md", "two\n");
    rag_says(rag_do("index", "{}"),
             "the folder has more than 200000 pieces of text: name fewer files");
    assert_int_equal(rag_count("SELECT count(*) FROM files"), 2);
    /* A file that is written anew takes the place of what it was. */
    rag_remove("two.md");
    rag_text("many.md", "other\n");
    counts(rag_do("index", "{}"), 1, 1, 0, 0);
    assert_int_equal(rag_count("SELECT count(*) FROM chunks"), 2);
}

struct pieces {
    char text[2048];
    int stop_after;
    int n;
};

static enum bt_code put(void *self, struct str text, uint32_t first, uint32_t last,
                        struct bt_error *e)
{
    struct pieces *p = self;

    (void)snprintf(p->text + strlen(p->text), sizeof p->text - strlen(p->text),
                   "[%u-%u:%zu:%.*s%.*s]", first, last, text.len, text.len < 2 ? 1 : 2, text.ptr,
                   text.len < 2 ? 0 : 2, text.ptr + text.len - (text.len < 2 ? 0 : 2));
    return ++p->n == p->stop_after ? err_set(e, BT_LIMIT, "enough") : BT_OK;
}

static const char *pieces_of(const char *text, size_t n, int stop_after)
{
    static struct pieces p;

    p = (struct pieces){.stop_after = stop_after};
    if (rag_chunks((struct str){text, n}, put, &p, &err) != (stop_after > 0 ? BT_LIMIT : BT_OK)) {
        fail_msg("%s", err.msg);
    }
    for (char *at = p.text; *at != 0; at++) {
        *at = *at == '\n' ? '$' : *at;
    }
    return p.text;
}

/* Lines of n bytes with their breaks, then further lines. */
static const char *lines(int count, int n, const char *more)
{
    static char text[20000];
    size_t at = 0;

    for (int i = 0; i < count; i++) {
        memset(text + at, 'a' + i % 26, (size_t)n - 1);
        at += (size_t)n;
        text[at - 1] = '\n';
    }
    (void)snprintf(text + at, sizeof text - at, "%s", more);
    return pieces_of(text, strlen(text), 0);
}

static void a_piece_ends_at_a_good_place(void **state)
{
    static char endless[9000];

    (void)state;
    assert_string_equal(pieces_of("", 0, 0), "");
    assert_string_equal(pieces_of(" \n\t\n", 4, 0), "");
    assert_string_equal(pieces_of("\n\nab\ncd", 7, 0), "[3-4:5:abcd]");
    assert_string_equal(pieces_of("ab\n\n\n", 5, 0), "[1-3:5:ab$$]");
    assert_string_equal(lines(12, 100, "# next\n"), "[1-12:1200:aal$][13-13:7:# t$]");
    assert_string_equal(lines(12, 100, "  # next\n"), "[1-12:1200:aal$][13-13:9:  t$]");
    assert_string_equal(lines(11, 109, "# next\n"),
                        "[1-12:1206:aat$]"); /* 1199 bytes are too few */
    assert_string_equal(lines(12, 100, "\nnext\n"), "[1-12:1200:aal$][14-14:5:net$]");
    assert_string_equal(lines(12, 100, "next\n"), "[1-13:1205:aat$]"); /* no good place */
    assert_string_equal(lines(40, 100, "x\n"), "[1-40:4000:aan$][41-41:2:x$x$]");
    assert_string_equal(lines(39, 100, "x\n"), "[1-40:3902:aax$]");
    memset(endless, 'e', 8999);
    assert_string_equal(pieces_of(endless, 4000, 0), "[1-1:4000:eeee]");
    assert_string_equal(pieces_of(endless, 4001, 0), "[1-1:4000:eeee][1-1:1:e]");
    endless[3990] = ' '; /* between words, when there are some */
    assert_string_equal(pieces_of(endless, 4001, 0), "[1-1:3990:eeee][1-1:11: eee]");
    endless[3990] = 'e';
    assert_string_equal(pieces_of(endless, 8999, 1), "[1-1:4000:eeee]"); /* an error ends it */
    assert_string_equal(pieces_of("ab\n", 3, 1), "[1-1:3:abb$]");
}

/* ---- vectors ---- */

#define VECTORS ",'embeddings':{'baseUrl':'$/v1','model':'toy','allowPrivate':['127.0.0.1']%s}"

static void use_vectors(const char *more)
{
    char members[256];

    (void)snprintf(members, sizeof members, VECTORS, more);
    rag_use(members);
}

static void a_vector_is_asked_for_once(void **state)
{
    const char *reply;

    (void)state;
    assert_int_equal(setenv("RAG_KEY", "sk-0123456789", 1), 0);
    use_vectors(",'key':{'env':'RAG_KEY'}");
    rag_text("a.md", "one\n");
    rag_text("b.md", "two\n");
    service_next(200, "", service_text("{'data':[{'embedding':[3,4]},{'embedding':[0,2]}]}"));
    reply = rag_do("index", "{}");
    rag_says(reply, "'embedded':2");
    service_expect(0, "POST /v1/embeddings HTTP/1.1\r\n");
    service_expect(0, "\r\nContent-Type: application/json\r\n");
    service_expect(0, "\r\nAccept: application/json\r\n");
    service_expect(0, "\r\nAuthorization: Bearer sk-0123456789\r\n");
    service_expect(0, service_text("\r\n\r\n{'model':'toy','input':['one\\n','two\\n']}"));
    assert_int_equal(rag_count("SELECT count(*) FROM chunks WHERE length(vector) = 8"), 2);
    rag_says(rag_do("index", "{}"), "'embedded':0");
    assert_int_equal(service_count(), 1);
    rag_text("c.md", "three\n");
    service_next(200, "", service_text("{'data':[{'embedding':[1,1]}]}"));
    rag_says(rag_do("index", "{}"), "'embedded':1");
    service_expect(1, service_text("'input':['three\\n']"));
    rag_change(",'embeddings':{'baseUrl':'$/','model':'other','allowPrivate':['127.0.0.1']}");
    service_next(200, "",
                 service_text("{'data':[{'embedding':[1]},{'embedding':[1]},{'embedding':[1]}]}"));
    rag_says(rag_do("index", "{}"), "'embedded':3"); /* of another model: all again */
    service_expect(2, "POST /embeddings HTTP/1.1\r\n");
    service_expect_not(2, "Authorization");
    assert_int_equal(rag_count("SELECT count(*) FROM chunks WHERE length(vector) = 4"), 3);
    rag_change("");
    assert_null(strstr(rag_do("index", "{}"), "embedded"));
}

static void vectors_come_in_batches_of_32(void **state)
{
    struct buf all;

    (void)state;
    use_vectors("");
    for (int i = 0; i < 33; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "f%02d.md", i);
        rag_text(name, "word\n");
    }
    buf_init(&all, 65536);
    buf_add_cstr(&all, "{\"data\":[");
    for (int i = 0; i < 32; i++) {
        buf_printf(&all, "%s{\"embedding\":[1,%d]}", i > 0 ? "," : "", i);
    }
    buf_add_cstr(&all, "]}");
    service_next(200, "", buf_cstr(&all));
    service_next(200, "", "{\"data\":[{\"embedding\":[1,99]}]}");
    rag_says(rag_do("index", "{}"), "'embedded':33");
    assert_int_equal(service_count(), 2);
    buf_done(&all);
}

static void an_answer_that_is_none_is_refused(void **state)
{
    static const struct {
        int status;
        const char *body, *class, *says;
    } rows[] = {
        {503, "sk-0123456789 is busy", "SERVICE_UNAVAILABLE",
         "embeddings: status 503: [redacted] is busy"},
        {429, "", "SERVICE_UNAVAILABLE", "status 429"},
        {499, "", "VALIDATION_ERROR", "status 499"},
        {401, "no", "PERMISSION_DENIED", "status 401: no"},
        {403, "no", "PERMISSION_DENIED", "status 403: no"},
        {404, "no", "VALIDATION_ERROR", "status 404: no"},
        {201, "{}", "VALIDATION_ERROR", "status 201"},
        {200, "no", "VALIDATION_ERROR", "embeddings: the answer is no JSON"},
        {200, "{}", "VALIDATION_ERROR",
         "the answer has no list `data` of 2 vectors of 1 to 8192 numbers"},
        {200, "{'data':[{'embedding':[1]}]}", "VALIDATION_ERROR", "no list `data` of 2 vectors"},
        {200, "{'data':[{'embedding':[1]},{'embedding':[1]},{'embedding':[1]}]}",
         "VALIDATION_ERROR", "no list `data` of 2 vectors"},
        {200, "{'data':{'a':{'embedding':[1]},'b':{'embedding':[1]}}}", "VALIDATION_ERROR",
         "no list `data`"},
        {200, "{'data':[{'embedding':[]},{'embedding':[]}]}", "VALIDATION_ERROR", "no list `data`"},
        {200, "{'data':[{'embedding':[1,2]},{'embedding':[1]}]}", "VALIDATION_ERROR",
         "data[1] is no vector of 2 finite numbers"},
        {200, "{'data':[{'embedding':[1]},{'embedding':[1,2]}]}", "VALIDATION_ERROR",
         "data[1] is no vector of 1"},
        {200, "{'data':[{'embedding':[null]},{'embedding':[1]}]}", "VALIDATION_ERROR",
         "data[0] is no vector"},
        {200, "{'data':[{'embedding':[0]},{'embedding':[1]}]}", "VALIDATION_ERROR",
         "data[0] is no vector"},
        {200, "{'data':[{'embedding':[1e999]},{'embedding':[1]}]}", "VALIDATION_ERROR",
         "data[0] is no vector"},
        {200, "{'data':[{'embedding':[1e200]},{'embedding':[1]}]}", "VALIDATION_ERROR",
         "data[0] is no vector"},
        {200, "{'data':[{'index':1,'embedding':[1]},{'index':1,'embedding':[1]}]}",
         "VALIDATION_ERROR", "two vectors have the index 1"},
    };

    (void)state;
    use_vectors(",'key':{'env':'RAG_KEY'}");
    rag_text("a.md", "one\n");
    rag_text("b.md", "two\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char class[64];
        const char *reply;
        service_next(rows[i].status, "", service_text(rows[i].body));
        reply = rag_do("index", "{}");
        (void)snprintf(class, sizeof class, "'class':'%s'", rows[i].class);
        rag_says(reply, class);
        rag_says(reply, rows[i].says);
        assert_int_equal(rag_count("SELECT count(*) FROM chunks WHERE vector IS NULL"), 2);
    }
    service_raw(STR_LIT(""), SERVICE_CLOSES);
    rag_says(rag_do("index", "{}"), "'class':'SERVICE_UNAVAILABLE'");
}

static void a_vector_stands_where_its_index_says(void **state)
{
    (void)state;
    use_vectors("");
    rag_text("a.md", "one\n");
    rag_text("b.md", "two\n");
    service_next(
        200, "",
        service_text("{'data':[{'index':1,'embedding':[0,5]},{'index':0,'embedding':[5,0]}]}"));
    rag_says(rag_do("index", "{}"), "'embedded':2");
    /* little endian: 1.0f is 0000803F */
    assert_int_equal(rag_count("SELECT count(*) FROM chunks WHERE text LIKE 'one%' AND "
                               "hex(vector) = '0000803F00000000'"),
                     1);
    rag_text("a.md", "one more\n");
    rag_text("b.md", "two more\n");
    service_next(
        200, "",
        service_text("{'data':[{'index':7,'embedding':[5,0]},{'index':-1,'embedding':[0,5]}]}"));
    rag_says(rag_do("index", "{}"), "'embedded':2"); /* no index of these: their order counts */
    assert_int_equal(rag_count("SELECT count(*) FROM chunks WHERE text LIKE 'two%' AND "
                               "hex(vector) = '000000000000803F'"),
                     1);
}

static void a_vector_has_at_most_8192_numbers(void **state)
{
    struct buf all;

    (void)state;
    use_vectors("");
    rag_text("a.md", "one\n");
    for (int n = RAG_DIMENSIONS_MAX + 1; n >= RAG_DIMENSIONS_MAX; n--) {
        buf_init(&all, 65536);
        buf_add_cstr(&all, "{\"data\":[{\"embedding\":[");
        for (int i = 0; i < n; i++) {
            buf_add_cstr(&all, i == 0 ? "1" : ",1");
        }
        buf_add_cstr(&all, "]}]}");
        service_next(200, "", buf_cstr(&all));
        rag_says(rag_do("index", "{}"),
                 n == RAG_DIMENSIONS_MAX ? "'embedded':1" : "no list `data`");
        buf_done(&all);
    }
}

/* ---- settings ---- */

static void wrong_settings_are_named(void **state)
{
    static const char *const rows[][2] = {
        {"'globs':[]", "unknown member 'globs'"},
        {"'include':7", "include: expected a list of at most 64 texts"},
        {"'maxFiles':0", "maxFiles: expected a number from 1 to 1000000"},
        {"'maxFiles':1000001", "maxFiles: expected a number from 1 to 1000000"},
        {"'maxFileBytes':0", "maxFileBytes: expected a number from 1 to 67108864"},
        {"'maxFileBytes':67108865", "maxFileBytes: expected a number from 1 to 67108864"},
        {"'maxBytes':1048575", "maxBytes: expected a number from 1048576 to"},
        {"'embeddings':7", "embeddings: expected an object"},
        {"'embeddings':{'x':1}", "embeddings: unknown member 'x'"},
        {"'embeddings':{'model':'m'}", "embeddings: baseUrl: is missing"},
        {"'embeddings':{'baseUrl':'$'}", "embeddings: model: is missing"},
        {"'embeddings':{'baseUrl':'ftp://x','model':'m'}", "embeddings: baseUrl: expected https"},
        {"'embeddings':{'baseUrl':'http://x.example','model':'m'}",
         "embeddings: baseUrl: http only"},
        {"'embeddings':{'baseUrl':'$','model':'m','allowHttp':1}",
         "embeddings: allowHttp: expected"},
        {"'embeddings':{'baseUrl':'$','model':'m','key':'x'}",
         "embeddings: key: a secret does not"},
        {"'embeddings':{'baseUrl':'$','model':'m','allowPrivate':['x']}",
         "embeddings: allowPrivate[0]"},
    };
    static const char *const good[] = {
        "'maxFiles':1,'maxFileBytes':1,'maxBytes':1048576",
        "'maxFiles':1000000,'maxFileBytes':67108864",
        "'embeddings':{'baseUrl':'http://x.example','model':'m','allowHttp':true}"};
    struct rag *r = NULL;
    char json[512];

    (void)state;
    rag_use("");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)snprintf(json, sizeof json, "{'folder':'%s','database':'%s',%s}", rag_folder(),
                       rag_database(), rows[i][0]);
        assert_int_equal(rag_new(service_text(json), &r, &err), BT_INVALID);
        assert_null(r);
        if (strstr(err.msg, rows[i][1]) == NULL) {
            fail_msg("\"%s\" does not say \"%s\"", err.msg, rows[i][1]);
        }
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        (void)snprintf(json, sizeof json, "{'folder':'%s','database':'%s',%s}", rag_folder(),
                       rag_database(), good[i]);
        assert_int_equal(rag_new(service_text(json), &r, &err), BT_OK);
        rag_free(r);
        r = NULL;
    }
    assert_int_equal(rag_new("{}", &r, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "folder: is missing"));
    assert_int_not_equal(rag_new("{\"folder\":\"/no/such\"}", &r, &err), BT_OK);
    assert_non_null(strstr(err.msg, "folder: "));
    assert_int_equal(rag_new("{\"folder\":\"/tmp\"}", &r, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "database: is missing"));
    assert_int_equal(rag_new("{\"folder\":\"/tmp\",\"database\":\"/tmp/\"}", &r, &err), BT_INVALID);
    assert_non_null(strstr(err.msg, "database: expected the path of a file"));
    rag_free(NULL);
}

static void what_is_not_given_has_a_value(void **state)
{
    static const char *const kinds[] = {"*.md", "*.txt", "*.rst", "*.adoc", "*.html", "*.csv"};

    (void)state;
    rag_use("");
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(rag_used()->include[i], kinds[i]);
    }
    assert_null(rag_used()->include[6]);
    assert_int_equal(rag_used()->max_files, 20000);
    assert_int_equal(rag_used()->max_file_bytes, 4 * 1024 * 1024);
    assert_int_equal(rag_used()->max_bytes, 2147483648u);
    assert_null(rag_used()->embeddings.url);
    rag_change(",'include':['*.log']");
    rag_text("a.md", "a\n");
    rag_text("b.log", "b\n");
    rag_says(rag_do("index", "{}"), "'indexed':1,");
    rag_says(rag_do("index", "{}"), "such as *.log");
}

static void index_some(void *self)
{
    (void)self;
    use_vectors("");
    rag_text("a.md", "one\n");
    rag_write("b.md", "\0", 1);
    service_next(200, "", "{\"data\":[{\"embedding\":[1,2]}]}");
    (void)rag_do("index", "{}");
    rag_text("c.md", "two\n");
    service_next(200, "", "{\"data\":[{\"embedding\":[0,0]}]}");
    (void)rag_do("index", "{}");
    service_next(200, "", "{\"data\":[{\"embedding\":[2,1]}]}");
    (void)rag_do("retrieve", "{'query':'one'}");
    service_next(500, "", "no");
    (void)rag_do("retrieve", "{'query':'one'}");
    (void)rag_do("retrieve", "{'query':'?'}");
    steps_forget();
    service_forget();
}

static void a_step_keeps_no_memory(void **state)
{
    (void)state;
    heap_is_given_back(index_some, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_index_follows_its_folder),
        cmocka_unit_test(a_file_is_the_same_by_size_time_and_inode),
        cmocka_unit_test(links_and_the_supervisors_files_are_left_out),
        cmocka_unit_test(what_is_no_text_is_named),
        cmocka_unit_test(a_name_that_is_no_text_is_repaired_in_the_answer),
        cmocka_unit_test(folders_are_at_most_32_deep),
        cmocka_unit_test(there_are_at_most_so_many_files),
        cmocka_unit_test(a_cancel_keeps_what_was_indexed),
        cmocka_unit_test(there_are_at_most_200000_pieces),
        cmocka_unit_test(a_piece_ends_at_a_good_place),
        cmocka_unit_test(a_vector_is_asked_for_once),
        cmocka_unit_test(vectors_come_in_batches_of_32),
        cmocka_unit_test(an_answer_that_is_none_is_refused),
        cmocka_unit_test(a_vector_stands_where_its_index_says),
        cmocka_unit_test(a_vector_has_at_most_8192_numbers),
        cmocka_unit_test(wrong_settings_are_named),
        cmocka_unit_test(what_is_not_given_has_a_value),
        cmocka_unit_test(a_step_keeps_no_memory),
    };

    return cmocka_run_group_tests(tests, rag_start, rag_stop);
}
