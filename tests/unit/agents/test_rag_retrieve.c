/* Passages for a question: words, meaning, their order, and what an answer has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/agents/rag_world.h"

static void index_all(const char *said)
{
    rag_says(rag_do("index", "{}"), said);
}

/* The files of the results, in their order, as "a b ". */
static const char *found(const char *reply)
{
    static char names[1024];
    size_t n = 0;

    names[0] = 0;
    for (const char *at = reply; (at = strstr(at, "\"file\":\"")) != NULL; at++) {
        const size_t len = strcspn(at + 8, "\"");
        n += (size_t)snprintf(names + n, sizeof names - n, "%.*s ", (int)len, at + 8);
    }
    return names;
}

static void a_passage_is_cited_with_file_and_lines(void **state)
{
    const char *reply;

    (void)state;
    rag_use("");
    rag_text("backup.md", "\n# Backups\n\nA backup is kept for 30 days.\n");
    rag_text("guide/days.md", "Everybody has days.\n");
    index_all("'indexed':2");
    reply = rag_do("retrieve", "{'query':'Backup?'}");
    rag_says(
        reply,
        "'query':'Backup?','matches':1,'results':[{'file':'backup.md','firstLine':2,'lastLine':4,"
        "'score':0.016393,'words':");
    rag_says(reply, "'text':'# Backups\\n\\nA backup is kept for 30 days.'}]");
    rag_says(reply, "'text':'[1] backup.md:2-4\\n# Backups\\n\\nA backup is kept for 30 days.'");
    assert_null(strstr(reply, "meaning"));
    reply = rag_do("retrieve", "{'query':'days'}");
    rag_says(reply, "'matches':2");
    assert_string_equal(found(reply), "guide/days.md backup.md "); /* the shorter one fits better */
    rag_says(reply, "\\n\\n[2] backup.md:2-4\\n");
    assert_string_equal(found(rag_do("retrieve", "{'query':'days','files':'guide/*'}")),
                        "guide/days.md ");
    rag_says(rag_do("retrieve", "{'query':'days','files':'guide/*'}"), "'matches':1");
    assert_string_equal(found(rag_do("retrieve", "{'query':'days','limit':1}")), "guide/days.md ");
    rag_says(rag_do("retrieve", "{'query':'days','limit':1}"), "'matches':2");
    reply = rag_do("retrieve", "{'query':'zebra'}");
    rag_says(reply, "'matches':0,'results':[]");
    rag_says(reply, "'text':'nothing fits the question'");
    reply = rag_do("retrieve", "{}"); /* the task is the question */
    rag_says(reply, "'query':'the task'");
}

static void nothing_in_a_question_is_syntax(void **state)
{
    static const char *const queries[] = {
        "alpha\\\" OR \\\"", "alpha NEAR(", "text:alpha", "alpha*", "(alpha",
        "alpha -beta",       "ALPHA",       "+alpha^2",   "{alpha}"};

    (void)state;
    rag_use("");
    rag_text("a.md", "alpha and gamma_1\n");
    rag_text("b.md", "\xc3\xa4pfel 09 azAZ\n");
    rag_text("c.md", "\xc4\x80z\n"); /* U+0100: its second byte is the least of all */
    index_all("'indexed':3");
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        char parameters[128];
        (void)snprintf(parameters, sizeof parameters, "{'query':'%s'}", queries[i]);
        assert_string_equal(found(rag_do("retrieve", parameters)), "a.md ");
    }
    assert_string_equal(found(rag_do("retrieve", "{'query':'gamma_1'}")), "a.md ");
    assert_string_equal(found(rag_do("retrieve", "{'query':'\xc3\xa4pfel'}")), "b.md ");
    assert_string_equal(found(rag_do("retrieve", "{'query':'apfel'}")),
                        "b.md "); /* without its marks */
    assert_string_equal(found(rag_do("retrieve", "{'query':'09'}")), "b.md ");
    assert_string_equal(found(rag_do("retrieve", "{'query':'\xc4\x80z'}")), "c.md ");
    assert_string_equal(found(rag_do("retrieve", "{'query':'azAZ'}")), "b.md ");
    assert_string_equal(found(rag_do("retrieve", "{'query':'alphas'}")), "a.md "); /* by its stem */
    assert_string_equal(found(rag_do("retrieve", "{'query':'09/alpha@azaz'}")), "b.md a.md ");
    rag_says(rag_do("retrieve", "{'query':'?! ./:;@[`{'}"), "query: has no words");
}

static void a_question_has_at_most_64_words_and_16_kib(void **state)
{
    static char parameters[20000];

    (void)state;
    rag_use("");
    rag_text("a.md", "w1\n");
    index_all("'indexed':1");
    for (int n = 64; n <= 65; n++) {
        (void)snprintf(parameters, sizeof parameters, "{'query':'");
        for (int i = 0; i < n; i++) {
            (void)snprintf(parameters + strlen(parameters), 16, "%sw%d", i > 0 ? " " : "", i);
        }
        (void)snprintf(parameters + strlen(parameters), 4, "'}");
        rag_says(rag_do("retrieve", parameters),
                 n == 64 ? "'matches':1" : "query: more than 64 words");
    }
    for (int more = 0; more < 2; more++) {
        (void)snprintf(parameters, sizeof parameters, "{'query':'%0*d'}", 16 * 1024 + more, 0);
        rag_says(rag_do("retrieve", parameters),
                 more == 0 ? "'matches':0" : "query: over 16384 bytes");
    }
}

static void a_limit_is_from_1_to_50(void **state)
{
    (void)state;
    rag_use("");
    for (int i = 0; i < 120; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "f%03d.md", i);
        rag_text(name, "same words\n");
    }
    index_all("'indexed':120");
    rag_says(rag_do("retrieve", "{'query':'words','limit':0}"),
             "limit: expected a number from 1 to 50");
    rag_says(rag_do("retrieve", "{'query':'words','limit':51}"),
             "limit: expected a number from 1 to 50");
    assert_string_equal(found(rag_do("retrieve", "{'query':'words','limit':1}")), "f000.md ");
    assert_string_equal(found(rag_do("retrieve", "{'query':'words'}")),
                        "f000.md f001.md f002.md f003.md f004.md ");
    rag_says(rag_do("retrieve", "{'query':'words'}"), "'matches':120");
    assert_int_equal(strlen(found(rag_do("retrieve", "{'query':'words','limit':50}"))), 50 * 8);
}

static void without_an_index_it_says_what_to_do(void **state)
{
    const char *reply;

    (void)state;
    rag_use("");
    reply = rag_do("retrieve", "{'query':'x'}");
    rag_says(reply, "nothing is indexed yet: run the skill index first");
    rag_says(reply, "'outcome':'failed'");
}

/* ---- meaning ---- */

#define VECTORS ",'embeddings':{'baseUrl':'$/v1','model':'toy','allowPrivate':['127.0.0.1']}"

static void next_vectors(const char *vectors)
{
    char body[4096];

    (void)snprintf(body, sizeof body, "{\"data\":[%s]}", vectors);
    service_next(200, "", body);
}

static void words_and_meaning_are_ranked_together(void **state)
{
    const char *reply;

    (void)state;
    rag_use(VECTORS);
    rag_text("car.md", "automobile\n");
    rag_text("cat.md", "feline\n");
    rag_text("sea.md", "ocean\n");
    next_vectors("{\"embedding\":[1,0,0]},{\"embedding\":[0,1,0]},{\"embedding\":[0,0,1]}");
    index_all("'embedded':3");
    next_vectors("{\"embedding\":[0.1,3,1]}"); /* of the question: near the cat, then the sea */
    reply = rag_do("retrieve", "{'query':'purr'}");
    service_expect(1, service_text("{'model':'toy','input':['purr']}"));
    assert_string_equal(found(reply), "cat.md sea.md car.md ");
    rag_says(reply, "'score':0.016393,'words':0,'meaning':0.948");
    rag_says(reply, "'score':0.016129,'words':0,'meaning':0.316");
    next_vectors("{\"embedding\":[0,3,1]}");
    reply =
        rag_do("retrieve", "{'query':'ocean'}"); /* a word weighs as much as meaning: both win */
    assert_string_equal(found(reply), "sea.md cat.md car.md ");
    rag_says(reply, "'score':0.032522"); /* 1/61 + 1/62 */
    rag_says(reply, "'matches':1");
    next_vectors("{\"embedding\":[0,3,1]}");
    assert_string_equal(found(rag_do("retrieve", "{'query':'purr','files':'s*'}")), "sea.md ");
    next_vectors("{\"embedding\":[0,3]}"); /* of another size: not comparable */
    assert_string_equal(found(rag_do("retrieve", "{'query':'purr'}")), "");
    service_next(503, "", "");
    rag_says(rag_do("retrieve", "{'query':'purr'}"), "'class':'SERVICE_UNAVAILABLE'");
    rag_change("");
    assert_string_equal(found(rag_do("retrieve", "{'query':'ocean'}")), "sea.md ");
    rag_change(",'embeddings':{'baseUrl':'$/v1','model':'other','allowPrivate':['127.0.0.1']}");
    assert_string_equal(found(rag_do("retrieve", "{'query':'ocean'}")),
                        "sea.md "); /* no vectors of it */
    assert_int_equal(service_count(), 6);
}

static void the_best_100_of_many_are_ranked(void **state)
{
    const char *reply;

    (void)state;
    rag_use(VECTORS);
    for (int i = 0; i < 130; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "f%03d.md", i);
        rag_text(name, "filler\n");
    }
    for (int at = 0; at < 130; at += 32) { /* the angle to the question falls and rises */
        struct buf all;
        buf_init(&all, 65536);
        buf_add_cstr(&all, "{\"data\":[");
        for (int i = at; i < at + 32 && i < 130; i++) {
            buf_printf(&all, "%s{\"embedding\":[1,%d]}", i > at ? "," : "", (i * 37) % 130);
        }
        buf_add_cstr(&all, "]}");
        service_next(200, "", buf_cstr(&all));
        buf_done(&all);
    }
    index_all("'embedded':130");
    next_vectors("{\"embedding\":[1,0]}");
    reply = rag_do("retrieve", "{'query':'other','limit':50}");
    /* i * 37 % 130 is 0, 1, 2, 3 for i = 0, 123, 116, 109 */
    assert_memory_equal(found(reply), "f000.md f123.md f116.md f109.md ", 32);
    rag_says(reply, "'meaning':1,");
    for (int i = 0; i < 49; i++) { /* each is as far as the one before, or farther */
        const char *a = strstr(reply, "\"meaning\":");
        const char *b = strstr(a + 1, "\"meaning\":");
        assert_true(strtod(a + 10, NULL) >= strtod(b + 10, NULL));
        reply = b;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_passage_is_cited_with_file_and_lines),
        cmocka_unit_test(nothing_in_a_question_is_syntax),
        cmocka_unit_test(a_question_has_at_most_64_words_and_16_kib),
        cmocka_unit_test(a_limit_is_from_1_to_50),
        cmocka_unit_test(without_an_index_it_says_what_to_do),
        cmocka_unit_test(words_and_meaning_are_ranked_together),
        cmocka_unit_test(the_best_100_of_many_are_ranked),
    };

    return cmocka_run_group_tests(tests, rag_start, rag_stop);
}
